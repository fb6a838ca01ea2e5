//! The eight promises, one module each, through the real program. A module's first lines say where else a promise is proved.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests: a failure ends the test"
)]
mod homes;
mod look;
mod mcp;
mod p5_looking_is_not_writing;
mod world;

const PROGRAM: &str = env!("CARGO_BIN_EXE_takeup-under-test");
