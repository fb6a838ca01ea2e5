//! One run of one check. It counts for its own fingerprint and for no other.
//!
//! # Limitations
//! - The content is looked at before the run and after it. A command that changes files and puts them back, or somebody who does
//!   so while it runs, is not noticed: the run counts for content it did not see all the time.
//! - What the fingerprint does not name (ignored files, the environment, the network) is no part of what a run counts for.
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
    /// The folder it ran in, relative to the top of the work tree: `.` is the top itself. Absolute where it lies elsewhere, masked.
    /// None where it is not known: reported, or recorded before folders were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
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
    /// How the top of the work tree is written in [`Evidence::folder`].
    pub const TOP: &'static str = ".";

    /// Returns the folder it ran in, where that is known to be another one than the top of the work tree.
    pub fn elsewhere(&self) -> Option<&str> {
        self.folder.as_deref().filter(|folder| *folder != Self::TOP)
    }

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

    /// Tells whether it ran and said no, as a negative control has to. A command that could not be run (126, 127) or that a
    /// signal ended (128 and its number, where a shell passes it on) says nothing (POSIX, Shell Command Language, 2.8.2).
    pub const fn said_no(&self) -> bool {
        match self {
            Self::Exited { code } => !matches!(code, 0 | 126 | 127 | 129..=192),
            Self::Signalled { .. } | Self::NotStarted { .. } => false,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_ran_says_no() {
        let exit = |code| Outcome::Exited { code };
        for code in [1, 2, 77, 125, 128, 193, 255] {
            assert!(exit(code).said_no(), "{code}");
        }
        for code in [0, 126, 127, 130, 137, 143] {
            assert!(!exit(code).said_no(), "{code}");
        }
        let why = String::new();
        assert!(!Outcome::Signalled { signal: 6 }.said_no());
        assert!(!Outcome::NotStarted { why }.said_no());
    }
}
