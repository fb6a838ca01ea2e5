//! Identity of a process, and what can be known of its life.
//!
//! A process number says nothing by itself: the kernel gives it out again, and after a restart of the machine it belongs
//! to somebody else. A [`ProcessIdentity`] therefore carries the boot, the start time in ticks and the namespace, and no
//! signal is ever sent to a number, only to an identity that was looked at again ([`Processes::signal`]).
//!
//! # Limitations
//! - Linux alone is known: the table is `/proc`.
//! - A process of another pid namespace (a container, or the host seen from one) is unknown.
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Exit, Explain};
use crate::time::Time;

mod commit;
pub mod fake;
pub mod linux;
mod liveness;
mod session;

pub use commit::{RunningCommit, commit_above, undisturbed};
pub use liveness::liveness_of;
pub use session::{ancestors, session_process};

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

impl ProcessIdentity {
    /// Tells whether both are the same process: boot, number, start and namespace. What is for people only is left out.
    pub fn is(&self, other: &Self) -> bool {
        self.boot_id == other.boot_id
            && self.pid == other.pid
            && self.start_ticks == other.start_ticks
            && self.pid_namespace == other.pid_namespace
    }

    /// Names it for people: `claude (pid 4711), started 2026-03-04T05:06:07.089Z`.
    pub fn describe(&self) -> String {
        let start = self.started_at.map_or_else(
            || format!("{} ticks after the boot", self.start_ticks),
            |at| at.to_string(),
        );
        match &self.name {
            Some(name) => format!("{name} (pid {}), started {start},", self.pid),
            None => format!("pid {}, started {start},", self.pid),
        }
    }
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

impl Liveness {
    /// Returns the answer without its proof.
    pub const fn kind(&self) -> LivenessKind {
        match self {
            Self::Live { .. } => LivenessKind::Live,
            Self::Ended { .. } => LivenessKind::Ended,
            Self::Crashed { .. } => LivenessKind::Crashed,
            Self::Unknown { .. } => LivenessKind::Unknown,
        }
    }
}

/// The answers [`Liveness`] knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LivenessKind {
    /// It is alive.
    Live,
    /// It ended and said so.
    Ended,
    /// It ended without saying so.
    Crashed,
    /// Nothing reliable says anything.
    Unknown,
}

/// What the process table says of an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// This very process runs.
    Running,
    /// It has ended; its parent has not yet taken the exit status.
    Zombie,
    /// There is no process with its number.
    Gone,
    /// Its number belongs to another process now.
    Recycled {
        /// The other's name, where it can be read.
        by: Option<String>,
    },
    /// It belongs to an earlier boot of the machine, so it is gone.
    OtherBoot,
    /// Its number belongs to another pid namespace and says nothing here.
    OtherNamespace,
    /// The table cannot tell, and why.
    Unknown(String),
}

impl ProcessState {
    /// Tells whether the process surely has ended.
    pub const fn is_over(&self) -> bool {
        match self {
            Self::Zombie | Self::Gone | Self::Recycled { .. } | Self::OtherBoot => true,
            Self::Running | Self::OtherNamespace | Self::Unknown(_) => false,
        }
    }

    /// Says it in words, for a sentence that begins with the process.
    pub fn describe(&self) -> String {
        match self {
            Self::Running => "runs".to_owned(),
            Self::Zombie => "has ended and is not yet reaped".to_owned(),
            Self::Gone => "is gone".to_owned(),
            Self::Recycled { by: Some(name) } => {
                format!("is gone; its number belongs to another process now ({name})")
            }
            Self::Recycled { by: None } => {
                "is gone; its number belongs to another process now".to_owned()
            }
            Self::OtherBoot => "is gone; the machine was started again since".to_owned(),
            Self::OtherNamespace => {
                "belongs to another pid namespace, so its number says nothing here".to_owned()
            }
            Self::Unknown(why) => format!("cannot be looked at: {why}"),
        }
    }
}

/// Whose a process is, and what it was started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessDetails {
    /// The number of the user.
    pub user: u32,
    /// The command line. Secrets may stand in it.
    pub command: Vec<OsString>,
    /// The folder it works in, where that is shown.
    pub cwd: Option<PathBuf>,
}

/// What came of a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signalled {
    /// It was sent to this very process.
    Sent,
    /// It was not sent: the process is not there, and how that is known.
    NotThere(ProcessState),
}

/// The process table could not be asked, or would not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// A file of the table cannot be read or does not have the shape it should.
    #[error("cannot read the process table at {}: {source}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A signal could not be sent, or a process not be watched.
    #[error("cannot {what} process {pid}: {source}")]
    Call {
        /// What was tried: `signal`, `watch`.
        what: &'static str,
        /// The process number.
        pid: u32,
        /// Why.
        source: std::io::Error,
    },
}

impl Explain for ProcessError {
    fn code(&self) -> &'static str {
        match self {
            Self::Table { .. } => "process-table-unreadable",
            Self::Call { .. } => "process-call-failed",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Table { .. } => Some("is /proc mounted, and for this pid namespace?".to_owned()),
            Self::Call { .. } => Some(
                "the process may belong to another user, or the kernel be older than 5.3"
                    .to_owned(),
            ),
        }
    }

    fn exit(&self) -> Exit {
        Exit::No
    }
}

/// The process table. Passed in, so that tests can lie about it.
pub trait Processes {
    /// Returns the identity of the process that has the number now; `None` where there is none or it has ended.
    fn identify(&self, pid: u32) -> Result<Option<ProcessIdentity>, ProcessError>;

    /// Tells what has become of a process.
    fn state(&self, process: &ProcessIdentity) -> ProcessState;

    /// Returns the number of the parent; `None` for the first process, or where there is no such process.
    fn parent(&self, pid: u32) -> Result<Option<u32>, ProcessError>;

    /// Returns the identity of a process and the number of its parent, where the table can tell both by one look.
    fn identify_with_parent(
        &self,
        pid: u32,
    ) -> Result<Option<(ProcessIdentity, Option<u32>)>, ProcessError> {
        let Some(identity) = self.identify(pid)? else {
            return Ok(None);
        };
        Ok(Some((identity, self.parent(pid)?)))
    }

    /// Returns every process that descends from this one by the present parent links, parents before their children.
    /// Zombies are left out. What was taken over by another parent is not found.
    fn descendants(&self, pid: u32) -> Result<Vec<ProcessIdentity>, ProcessError>;

    /// Returns every process of the table that can be read, zombies left out.
    fn everyone(&self) -> Result<Vec<ProcessIdentity>, ProcessError>;

    /// Returns a variable of the environment it was started with; `None` where it has none or does not show it to us.
    fn variable(&self, pid: u32, name: &str) -> Option<OsString>;

    /// Returns when it was started, in clock ticks since the boot, also where it has ended and is not yet reaped.
    fn start_ticks(&self, pid: u32) -> Option<u64>;

    /// Returns whose it is and what it was started with; `None` where that is not shown to us.
    fn details(&self, pid: u32) -> Option<ProcessDetails>;

    /// Returns the processor time it has used itself, in clock ticks; `None` where there is no such process.
    fn cpu_ticks(&self, pid: u32) -> Option<u64>;

    /// Returns the name of the program it runs: that of its executable, else the short name of the table.
    fn program(&self, pid: u32) -> Result<Option<String>, ProcessError>;

    /// Sends a signal to this very process and to no other: it is held first, then looked at again, then signalled.
    fn signal(&self, process: &ProcessIdentity, signal: Signal) -> Result<Signalled, ProcessError>;

    /// Returns a descriptor that becomes readable when this very process ends; the state where it is not running.
    fn watch(
        &self,
        process: &ProcessIdentity,
    ) -> Result<Result<OwnedFd, ProcessState>, ProcessError>;

    /// Waits until this very process has ended, or until the time is over; tells whether it has ended.
    fn wait_end(&self, process: &ProcessIdentity, most: Duration) -> Result<bool, ProcessError>;
}

/// Returns the process table of this machine.
pub fn system() -> linux::LinuxProcesses {
    linux::LinuxProcesses::new()
}
