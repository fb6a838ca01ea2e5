//! The fingerprint against plain git.
mod cases;
