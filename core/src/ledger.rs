//! The ledger: a journal of transitions and a snapshot of the state they add up to (DESIGN, section 7).
mod state;

pub use state::{Actor, Change, InstalledHook, PendingEffect, State, TaskEntry, Transition};
