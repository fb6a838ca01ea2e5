//! What a task really is, whatever its file says. Looking writes nothing.
use schemars::JsonSchema;
use serde::Serialize;

use super::record::{Record, State};
use super::store::{BackgroundError, Store};
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
    let read = || match store.read(id) {
        Ok(Some((record, _))) => Ok(record),
        Ok(None) => Err(BackgroundError::Missing(id.to_string())),
        Err(issue) => Err(BackgroundError::Damaged(issue)),
    };
    let over = |record: Record| Seen {
        record,
        corrected: false,
        watch: Watch::Nobody,
    };
    let record = read()?;
    if record.state.is_over() {
        return Ok(over(record));
    }
    if store.is_locked(id).map_err(BackgroundError::Damaged)? {
        let proof = record.supervisor.as_ref().map_or_else(
            || "its supervisor holds its lock".to_owned(),
            |supervisor| format!("its supervisor, pid {}, holds its lock", supervisor.pid),
        );
        return Ok(Seen {
            record,
            corrected: false,
            watch: Watch::Supervisor { proof },
        });
    }
    // The supervisor records the end before it lets go of the lock: what is read now is the last word.
    let record = read()?;
    if record.state.is_over() {
        return Ok(over(record));
    }
    let seen = unsupervised(record, processes);
    if let Watch::Supervisor { .. } = seen.watch {
        return Ok(seen);
    }
    // Where the lock file is gone, only the supervisor's own end shows that it has nothing more to say.
    let record = read()?;
    Ok(if record.state.is_over() {
        over(record)
    } else {
        seen
    })
}

/// Judges a task that is recorded as not over, and whose lock nobody holds.
pub(super) fn unsupervised(mut record: Record, processes: &dyn Processes) -> Seen {
    if let Some(supervisor) = &record.supervisor
        && processes.state(supervisor) == ProcessState::Running
    {
        let proof = format!("{} runs; its lock file is gone", supervisor.describe());
        return Seen {
            record,
            corrected: false,
            watch: Watch::Supervisor { proof },
        };
    }
    let lost = match &record.state {
        State::Running {
            process,
            started_at,
            command_end,
        } => {
            let state = processes.state(process);
            let proof = format!("{} {}", process.describe(), state.describe());
            if state == ProcessState::Running {
                return Seen {
                    record,
                    corrected: false,
                    watch: Watch::Unwatched {
                        proof: format!("{proof}; its supervisor is gone"),
                    },
                };
            }
            match command_end {
                // The command's own end was seen; what it had left behind went with the supervisor's watch.
                Some(end) => State::of_end(end.how, *started_at, end.at),
                None => State::Lost {
                    started_at: Some(*started_at),
                    why: format!(
                        "its supervisor is gone, and so nobody saw the end, nor kept what it printed last: {proof}"
                    ),
                },
            }
        }
        State::Starting
        | State::Completed { .. }
        | State::Failed { .. }
        | State::Stopped { .. }
        | State::TimedOut { .. }
        | State::Lost { .. }
        | State::Unobserved { .. } => State::Lost {
            started_at: None,
            why: "its supervisor ended before it had started the command".to_owned(),
        },
    };
    record.state = lost;
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
