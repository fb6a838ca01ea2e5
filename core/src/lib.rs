//! Task identity, working-tree fingerprint and state machine of `git takeup`.
//!
//! The crate knows git, files and processes. It knows no terminal and no agent's format: those live in the `cli` crate
//! and in the adapter crates. Data takes one way through it: a face calls a function of [`engine`], the engine gathers
//! facts, a pure rule ([`status::apply`], [`verdict::judge`]) decides, one line is appended to the [`ledger`].
//!
//! # Limitations
//! A run of a check counts for the content that was there before it and after it; what was there in between is not looked at
//! (see [`evidence`]). The modules name their own limits.
#[cfg(not(target_os = "linux"))]
compile_error!("takeup runs on Linux: processes are known from /proc and pidfds");

pub mod agent;
pub mod background;
pub mod boundary;
pub mod doctor;
pub mod engine;
pub mod env;
pub mod error;
pub mod evidence;
pub mod fault;
pub mod files;
pub mod fingerprint;
pub mod gc;
pub mod handover;
pub mod hooks;
pub mod identity;
pub mod ids;
pub mod integration;
pub mod issue;
pub mod ledger;
pub mod names;
pub mod observation;
pub mod paths;
pub mod plan;
pub mod process;
pub mod propose;
pub mod redact;
pub mod repository;
pub mod review;
pub mod settings;
pub mod status;
pub mod text;
pub mod time;
pub mod verdict;
