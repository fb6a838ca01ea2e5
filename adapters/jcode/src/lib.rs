//! jcode's sessions, journals and background tasks, as jcode itself would see them, and better.
//!
//! jcode keeps each conversation as a snapshot (`sessions/<id>.json`) and a journal of what came after it, beside process
//! markers and todos, all below one home. This crate reads them without changing anything, finds what jcode's own loader
//! loses, tells which sessions crashed and how that is known, and writes new sessions that jcode loads.
//!
//! ```
//! use takeup_core::agent::{Agent, SessionQuery};
//! use takeup_core::env::Env;
//!
//! let jcode = takeup_jcode::Jcode::new();
//! let env = Env::of([("JCODE_HOME", "/nowhere")], "/");
//! assert!(!jcode.detect(&env).installed);
//! assert!(jcode.sessions(&env, &SessionQuery::default()).items.is_empty());
//! ```
//!
//! # Limitations
//! - The format is that of jcode 0.79.1. What other versions add is kept and passed over.
//! - jcode records a bare process number. Whether it is still the owner is told by start times; a home that is shared
//!   between machines or containers makes a living owner look dead.
//! - In the list, of sessions beyond the newest 200 only head and tail are read: their messages are not counted, and
//!   damage in their middle is not seen until one of them is shown.
//! - A session is never written to, not even to close it: a new one is made instead.
mod adapter;
mod alive;
mod calls;
mod copies;
mod create;
mod document;
mod home;
mod hook;
mod integrate;
mod json;
mod leftovers;
mod list;
mod load;
mod names;
mod processes;
mod replay;
mod report;
mod sessions;
mod shown;
pub mod tasks;
mod wire;

pub use adapter::Jcode;
pub use home::{Home, Key};
pub use load::{Counts, Loaded, load};
pub use processes::{Look, Processes, Running, SystemProcesses};
pub use wire::{Block, Message, Status};

#[cfg(test)]
mod rules;
#[cfg(test)]
mod trials;
#[cfg(test)]
mod vectors;
