//! The MCP server as clients meet it: raw JSON-RPC over the real program's standard input and output.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the helpers are tests too: a failure ends the test"
)]
mod allowed;
mod client;
mod place;
mod protocol;
mod tools;
mod yes;
