//! The fingerprint against plain git.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests: a failure ends them"
)]
mod cases;
mod costs;
mod found;
mod walks;
