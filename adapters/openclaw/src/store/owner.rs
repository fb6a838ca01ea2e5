//! Who holds an agent's store, and whether a session of it is alive.
use takeup_core::process::{Liveness, ProcessIdentity, Processes};
use takeup_core::time::Time;
use takeup_sqlite::Owner as Lock;

use super::shared::{Fate, Run, Shared};

/// Who has the store open.
#[derive(Clone, Debug)]
pub(crate) enum Holder {
    /// Nobody, and how that is known.
    Nobody(String),
    /// Somebody.
    Somebody {
        /// In words.
        who: String,
        /// The process, where it can be identified.
        process: Option<ProcessIdentity>,
    },
    /// A process that works on this very session, as the lock file beside its transcript says.
    AtWork(ProcessIdentity),
    /// It cannot be told, and why.
    Unknown(String),
}

impl Holder {
    /// Finds the holder: the lock byte first, since it cannot outlive its process; the gateway's lease second.
    pub(crate) fn find(lock: Lock, shared: &Shared, processes: &dyn Processes) -> Self {
        match lock {
            Lock::Free => Self::Nobody("no process has OpenClaw's database open".to_owned()),
            Lock::Held { pid } => {
                let identified = pid.map(|pid| (pid, processes.identify(pid)));
                if let Some((pid, Ok(None))) = identified {
                    // A killed process keeps its locks until the last of its threads is gone.
                    return Self::Nobody(format!(
                        "pid {pid}, which had OpenClaw's database open, is over"
                    ));
                }
                let process = identified.and_then(|(_, process)| process.ok().flatten());
                let is_gateway = shared
                    .gateway
                    .as_ref()
                    .is_some_and(|gateway| gateway.pid.is_some() && gateway.pid == pid);
                let does = if is_gateway {
                    "is the gateway and has OpenClaw's database open"
                } else {
                    "has OpenClaw's database open"
                };
                let who = match (&process, pid) {
                    (Some(process), _) => format!("{} {does}", process.describe()),
                    (None, Some(pid)) => format!("pid {pid} {does}"),
                    (None, None) => format!("a process of another pid namespace {does}"),
                };
                Self::Somebody { who, process }
            }
            Lock::Unknown { why } => {
                match shared.gateway.as_ref().map(|owner| owner.fate(processes)) {
                    Some(Fate::Runs(process)) => Self::Somebody {
                        who: format!("{} is the gateway", process.describe()),
                        process: Some(process),
                    },
                    Some(Fate::Over(_) | Fate::Unknown(_)) | None => Self::Unknown(why),
                }
            }
        }
    }
}

/// What the rows and the transcript say of a session's last turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn<'a> {
    /// It had begun and not ended.
    pub(crate) open: bool,
    /// In words, such as `a call had begun and not ended`.
    pub(crate) how: &'a str,
    /// When the session last did anything.
    pub(crate) last: Option<Time>,
}

/// Tells whether a session is alive, and which process stands for it.
pub(crate) fn liveness(
    turn: Turn<'_>,
    runs: &[&Run],
    holder: &Holder,
    processes: &dyn Processes,
) -> (Liveness, Option<ProcessIdentity>) {
    let how = turn.how;
    match holder {
        Holder::Nobody(proof) if turn.open => (
            Liveness::Crashed {
                proof: format!("{how}, and {proof}"),
            },
            None,
        ),
        Holder::Nobody(proof) => (
            Liveness::Ended {
                proof: format!("{how}, and {proof}"),
            },
            None,
        ),
        Holder::AtWork(process) => (
            Liveness::Live {
                proof: format!("{} holds its lock file", process.describe()),
            },
            Some(process.clone()),
        ),
        Holder::Unknown(why) => (Liveness::Unknown { why: why.clone() }, None),
        Holder::Somebody { who, process } => {
            let mut over = None;
            for run in runs.iter().filter(|run| !run.is_exec) {
                match run.owner.fate(processes) {
                    Fate::Runs(process) => {
                        let proof = format!("{} works on a turn of it", process.describe());
                        return (Liveness::Live { proof }, Some(process));
                    }
                    Fate::Over(why) => over = Some(why),
                    Fate::Unknown(_) => {}
                }
            }
            if !turn.open {
                let proof = format!("{how}; {who} and works on no turn of it");
                return (Liveness::Ended { proof }, None);
            }
            let since = process.as_ref().and_then(|process| process.started_at);
            let older = match (turn.last, since) {
                (Some(last), Some(since)) => last < since,
                _ => false,
            };
            match over {
                Some(why) => (
                    Liveness::Crashed {
                        proof: format!(
                            "{how}, and the process that worked on it is over ({why}); {who} and may go on with it by itself"
                        ),
                    },
                    None,
                ),
                None if older => (
                    Liveness::Crashed {
                        proof: format!(
                            "{how}; {who}, began after that, and may go on with it by itself"
                        ),
                    },
                    None,
                ),
                None => (
                    Liveness::Live {
                        proof: format!("{how}, and {who}"),
                    },
                    process.clone(),
                ),
            }
        }
    }
}
