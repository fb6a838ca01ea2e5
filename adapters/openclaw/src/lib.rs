//! Adapter.
