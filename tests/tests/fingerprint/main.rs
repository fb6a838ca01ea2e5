//! The fingerprint against plain git.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests: a failure ends them"
)]
mod cases;
mod costs;
mod walks;
