//! `git takeup mcp`
use crate::context::Context;
use crate::reply::{Failure, Reply};

/// Arguments of `mcp`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example of a client's entry:\n  { \"mcpServers\": { \"takeup\": { \"command\": \"git-takeup\", \"args\": [\"mcp\"] } } }\n\nSpeaks the Model Context Protocol on standard input and output until its input ends."
)]
pub(crate) struct Args {}

#[cfg(feature = "mcp")]
pub(crate) fn run(_args: Args, context: &Context) -> Result<Reply, Failure> {
    crate::mcp::serve(context)
}

#[cfg(not(feature = "mcp"))]
pub(crate) fn run(_args: Args, _context: &Context) -> Result<Reply, Failure> {
    Err(Failure::new(
        "not-built-in",
        takeup_core::error::Exit::Usage,
        "this program was built without the MCP server",
    ))
}
