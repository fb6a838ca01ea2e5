//! The faces of takeup: the command line and, as one more face, the MCP server.
//!
//! A command parses its arguments, calls one function of the engine and renders the outcome, for people or as JSON.
//! No rule lives here.
//!
//! # Limitations
//! The library exists so that the program can be built once more under test; its Rust interface is not stable. What is
//! stable are the commands, the JSON (`docs/schemas/`) and the exit statuses.
#![expect(
    clippy::doc_markdown,
    reason = "doc comments of arguments are help texts on a terminal"
)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "faces show what they are given; the rules are matched in the core"
)]
use std::process::ExitCode;

use takeup_core::background::{EVIDENCE, SUPERVISE, supervise};
use takeup_core::time::SystemClock;

mod agents;
mod args;
mod ask;
mod commands;
mod context;
mod launch;
#[cfg(feature = "mcp")]
mod mcp;
mod options;
mod printer;
mod render;
mod reply;
mod schema;
mod settings;
mod unread;
mod watch;

pub use schema::schemas;

/// Runs the program with the arguments and the environment of the process.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // Neither a supervisor, which lives for days, nor a git hook, for which git waits, builds the command line.
    match words.next() {
        Some(word) if word == SUPERVISE => {
            return ExitCode::from(supervise(&SystemClock, &takeup_core::process::system()));
        }
        Some(word) if word == EVIDENCE => return commands::bg::record_check(),
        _ => {}
    }
    if let Some(exit) = commands::hook_git::at_once(std::env::args_os().skip(1)) {
        return ExitCode::from(exit as u8);
    }
    args::run()
}

/// Returns the definition of the command line, for completions, man pages and the reference.
pub fn command() -> clap::Command {
    <args::Cli as clap::CommandFactory>::command()
}

/// Lets the MCP server answer the messages of a client that stand in `input`, in an environment; the answers go nowhere. For
/// tests that try every kind of input.
#[cfg(feature = "mcp")]
pub fn answer_client(input: &[u8], env: takeup_core::env::Env) {
    mcp::answer_client(input, env);
}
