//! What a task really is, whatever its file says. Looking writes nothing.
use schemars::JsonSchema;
use serde::Serialize;

use super::record::{Record, State};
use super::store::{BackgroundError, Store};
use super::tree;
use crate::ids::BackgroundId;
use crate::issue::Issue;
use crate::process::{ProcessState, Processes};

/// Who watches a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Watch {
    /// Nobody needs to: it is over.
    Nobody,
    /// Its supervisor lives.
    Supervisor {
        /// What shows it.
        proof: String,
    },
    /// The command runs, and its supervisor is gone: the next command that writes takes it under watch again.
    Unwatched {
        /// What shows it.
        proof: String,
    },
    /// Whether it runs cannot be told from here: the state is the recorded one, and the task is not over until somebody sees it.
    Unknown {
        /// Why not.
        why: String,
    },
}

/// A task as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The record, its state put right.
    pub record: Record,
    /// The state is not the recorded one.
    pub corrected: bool,
    /// Who watches it.
    pub watch: Watch,
}

/// Looks at one task.
pub fn look(
    store: &Store,
    id: &BackgroundId,
    processes: &dyn Processes,
) -> Result<Seen, BackgroundError> {
    let read = || match store.read_told(id) {
        Ok(Some((record, _, told))) => Ok((record, told)),
        Ok(None) => Err(BackgroundError::Missing(id.to_string())),
        Err(issue) => Err(BackgroundError::Damaged(issue)),
    };
    let over = |record: Record, corrected: bool| Seen {
        record,
        corrected,
        watch: Watch::Nobody,
    };
    let (record, told) = read()?;
    if record.state.is_over() {
        return Ok(over(record, told));
    }
    if store.is_locked(id).map_err(BackgroundError::Damaged)? {
        let proof = record.supervisor.as_ref().map_or_else(
            || "its supervisor holds its lock".to_owned(),
            |supervisor| format!("its supervisor, pid {}, holds its lock", supervisor.pid),
        );
        return Ok(Seen {
            record,
            corrected: told,
            watch: Watch::Supervisor { proof },
        });
    }
    // The supervisor records the end before it lets go of the lock: what is read now is the last word.
    let (record, told) = read()?;
    if record.state.is_over() {
        return Ok(over(record, told));
    }
    let seen = unsupervised(record, processes);
    if let Watch::Supervisor { .. } = seen.watch {
        return Ok(seen);
    }
    // Where the lock file is gone, only the supervisor's own end shows that it has nothing more to say.
    let (record, told) = read()?;
    Ok(if record.state.is_over() {
        over(record, told)
    } else {
        seen
    })
}

/// Judges a task that is recorded as not over, and whose lock nobody holds. It is over when nothing of it lives; what cannot
/// be looked at is not known to be over.
pub(super) fn unsupervised(mut record: Record, processes: &dyn Processes) -> Seen {
    let seen = |record: Record, watch: Watch| Seen {
        record,
        corrected: false,
        watch,
    };
    if let Some(supervisor) = &record.supervisor {
        let state = processes.state(supervisor);
        if state == ProcessState::Running {
            let proof = format!("{} runs; its lock file is gone", supervisor.describe());
            return seen(record, Watch::Supervisor { proof });
        }
        // A supervisor says first who it is, so where it is out of sight, so is what it may have started.
        if !state.is_over() && matches!(record.state, State::Starting) {
            let why = format!("{} {}", supervisor.describe(), state.describe());
            return seen(record, Watch::Unknown { why });
        }
    }
    let command = record.state.process().cloned();
    let mut proof = "its supervisor ended before it had started the command".to_owned();
    if let Some(command) = &command {
        let state = processes.state(command);
        proof = format!("{} {}", command.describe(), state.describe());
        if state == ProcessState::Running {
            let proof = format!("{proof}; its supervisor is gone");
            return seen(record, Watch::Unwatched { proof });
        }
        if !state.is_over() {
            return seen(record, Watch::Unknown { why: proof });
        }
    }
    // The number of another boot is no number of this one's; else what the command has started may live on.
    let here = command.as_ref().or(record.supervisor.as_ref());
    let is_of_this_boot =
        here.is_none_or(|process| processes.state(process) != ProcessState::OtherBoot);
    if is_of_this_boot {
        match tree::scattered(processes, command.as_ref(), &record.id, std::process::id()) {
            Err(error) => {
                return seen(
                    record,
                    Watch::Unknown {
                        why: format!("{proof}; what it started cannot be looked for: {error}"),
                    },
                );
            }
            Ok(members) => {
                if let Some(first) = members.first() {
                    let proof = format!(
                        "{proof}; {} of it runs; its supervisor is gone",
                        first.describe()
                    );
                    if command.is_none() {
                        record.state = State::Running {
                            started_at: first.started_at.unwrap_or(record.created_at),
                            process: first.clone(),
                            command_end: None,
                        };
                    }
                    return Seen {
                        record,
                        corrected: command.is_none(),
                        watch: Watch::Unwatched { proof },
                    };
                }
            }
        }
    }
    record.state = match &record.state {
        State::Running {
            started_at,
            command_end: Some(end),
            ..
        } => State::of_end(end.how, *started_at, end.at),
        state @ State::Running { .. } => State::Lost {
            started_at: state.started_at(),
            why: format!(
                "its supervisor is gone, and so nobody saw the end, nor kept what it printed last: {proof}"
            ),
        },
        State::Starting
        | State::Completed { .. }
        | State::Failed { .. }
        | State::Stopped { .. }
        | State::TimedOut { .. }
        | State::Lost { .. }
        | State::Unobserved { .. } => State::Lost {
            started_at: None,
            why: proof,
        },
    };
    Seen {
        record,
        corrected: true,
        watch: Watch::Nobody,
    }
}

/// Looks at every task, oldest first. What cannot be read is reported beside the rest.
pub(super) fn look_all(
    store: &Store,
    processes: &dyn Processes,
) -> Result<(Vec<Seen>, Vec<Issue>), BackgroundError> {
    let mut seen = Vec::new();
    let mut issues = Vec::new();
    for id in store.ids()? {
        match look(store, &id, processes) {
            Ok(task) => seen.push(task),
            Err(BackgroundError::Damaged(issue)) => issues.push(issue),
            // Removed while we looked.
            Err(BackgroundError::Missing(_)) => {}
            Err(other) => return Err(other),
        }
    }
    Ok((seen, issues))
}

impl Store {
    /// Looks at every task, oldest first. What cannot be read is reported beside the rest.
    pub fn look_all(
        &self,
        processes: &dyn Processes,
    ) -> Result<(Vec<Seen>, Vec<Issue>), BackgroundError> {
        look_all(self, processes)
    }
}
