//! The MCP server: the commands once more, for agents.
//!
//! A tool translates its arguments into the words of a command and runs it, so its answer is the command's. What is
//! its own: finding out where it is and who calls ([`place`], [`client`]), asking the person at the client
//! ([`ask`]), and packing answers so that text of strangers stays data ([`answer`]).
//!
//! # Limitations
//! Standard input and output only; one client a process. The request lifecycles are rmcp's: `initialize` for the
//! protocol versions 2024-11-05 to 2025-11-25, none for 2026-07-28.
mod answer;
mod ask;
mod client;
mod lines;
mod opening;
mod place;
mod prompts;
mod resources;
mod server;
mod side;
mod tasks;
mod tools;

use std::io::IsTerminal as _;

use takeup_core::error::Exit;

use crate::context::Context;
use crate::reply::{Failure, Reply};

/// How long the runtime waits for calls that still run when the client is gone. Each ends by itself: what it writes is
/// one append.
const LAST_CALLS: std::time::Duration = std::time::Duration::from_secs(5);

/// How long a thread that did a call waits for the next one.
const IDLE_THREAD: std::time::Duration = std::time::Duration::from_secs(1);

/// Serves one client until standard input ends.
pub(crate) fn serve(context: &Context) -> Result<Reply, Failure> {
    if std::io::stdin().is_terminal() {
        return Err(Failure::new(
            "usage",
            Exit::Usage,
            "this is for agents: it speaks the Model Context Protocol on standard input",
        )
        .hint("`git takeup agents install mcp` writes the entry for each installed agent"));
    }
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(
            "mcp-failed",
            Exit::No,
            format!("the MCP server ended: {error}"),
        )
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // A thread that has nothing to do holds its stack and its share of the heap.
        .thread_keep_alive(IDLE_THREAD)
        .build()
        .map_err(|error| failed(&error))?;
    let outcome = runtime.block_on(opening::serve(server::Server::new(context)));
    runtime.shutdown_timeout(LAST_CALLS);
    match outcome {
        Ok(()) => Ok(Reply::silent(Exit::Done)),
        Err(error) => Err(failed(&error)),
    }
}

/// Answers the messages of a client that stand in `input`, into nothing.
pub(crate) fn answer_client(input: &[u8], env: takeup_core::env::Env) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return;
    };
    let context = Context::of(env, true, true);
    let read = std::io::Cursor::new(input.to_vec());
    let _ended = runtime.block_on(opening::serve_on(
        server::Server::new(&context),
        read,
        Vec::new(),
    ));
    runtime.shutdown_timeout(LAST_CALLS);
}
