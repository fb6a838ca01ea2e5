//! The MCP server as clients meet it: raw JSON-RPC over the real program's standard input and output.
mod client;
mod place;
mod protocol;
mod tools;
mod yes;
