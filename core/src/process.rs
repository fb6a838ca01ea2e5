//! Identity of a process, and what can be known of its life.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// A process that cannot be mistaken for another: a number alone is given out again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessIdentity {
    /// The kernel's id of this boot; a process of another boot is gone.
    pub boot_id: String,
    /// The process number, in the namespace of `pid_namespace`.
    pub pid: u32,
    /// Start time in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
    /// The inode of the pid namespace the number belongs to, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_namespace: Option<u64>,
    /// Wall-clock start, for people only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// The program's short name, for people only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Whether a session is alive, with the proof it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Liveness {
    /// It is alive.
    Live {
        /// What shows it, in words: names pid and start time where there are any.
        proof: String,
    },
    /// It ended and said so.
    Ended {
        /// What shows it.
        proof: String,
    },
    /// It ended without saying so.
    Crashed {
        /// What shows it.
        proof: String,
    },
    /// Nothing reliable says anything.
    Unknown {
        /// Why not.
        why: String,
    },
}
