//! One run of one check. It counts for its own fingerprint and for no other.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{Fingerprint, SessionRef, TaskId};
use crate::time::Time;

/// One run of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The task it was run for.
    pub task_id: TaskId,
    /// Who ran it.
    pub by: SessionRef,
    /// The command, as one shell line, masked.
    pub command: String,
    /// How it ended.
    pub outcome: Outcome,
    /// When it began.
    pub started_at: Time,
    /// When it ended.
    pub finished_at: Time,
    /// The content before, if the look was complete.
    pub before: Option<Fingerprint>,
    /// The content after, if the look was complete.
    pub after: Option<Fingerprint>,
    /// Its standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<Digest>,
    /// Its standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Digest>,
    /// Observed by us, or reported by somebody.
    pub source: EvidenceSource,
    /// How the negative control ended, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Outcome>,
}

impl Evidence {
    /// Returns the content it speaks of: known before and after, and the same.
    pub fn content(&self) -> Option<&Fingerprint> {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if before == after => Some(after),
            _ => None,
        }
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    /// It exited.
    Exited {
        /// Its exit status.
        code: i32,
    },
    /// A signal ended it.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// It could not be started.
    NotStarted {
        /// Why not.
        why: String,
    },
}

impl Outcome {
    /// Tells whether it exited with status 0.
    pub const fn passed(&self) -> bool {
        matches!(self, Self::Exited { code: 0 })
    }
}

/// Digest of an output stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Digest {
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
}

/// Where evidence comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceSource {
    /// We started the command and saw it end.
    Observed,
    /// An agent or a person says so.
    Reported,
}
