//! Judging fingerprints: repositories in every awkward state, and plain git as the independent judge.
pub mod judge;
pub mod repo;
pub mod walk;
