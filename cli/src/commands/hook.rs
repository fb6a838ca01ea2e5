//! `git takeup hook`: the one entry that all drop-ins call.
use std::ffi::OsString;

use crate::commands::{hook_agent, hook_git};
use crate::context::Context;
use crate::reply::{Failure, Reply};

/// Arguments of `hook`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Whose hook it is: `git`, or an agent
    agent: String,
    /// The event, by the caller's name for it
    event: String,
    /// What the caller hands over besides
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of every command")]
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    if args.agent == "git" {
        return Ok(hook_git::run(args.event, args.rest, context));
    }
    Ok(hook_agent::run(args.agent, args.event, &args.rest, context))
}
