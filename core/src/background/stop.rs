//! Stopping a task: its supervisor is asked to, and does it.
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::look::{Seen, Watch, look};
use super::start::{Host, SUPERVISE, watch_again};
use super::store::{BackgroundError, Store};
use crate::files;
use crate::ids::BackgroundId;
use crate::process::{ProcessIdentity, ProcessState, Processes, Signalled};
use crate::time::Time;

/// The grace of a stop whose order could not be written.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// How long, beyond the grace, a supervisor may take.
const ANSWER: Duration = Duration::from_secs(10);

/// What is asked of the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StopRequest {
    /// Who asks.
    pub(super) by: String,
    /// When.
    pub(super) at: Time,
    /// The grace between the gentle signal and the hard one, in milliseconds.
    pub(super) grace_ms: u64,
}

/// Reads the request that lies there for a supervisor.
pub(super) fn read_request(store: &Store, id: &BackgroundId) -> Option<StopRequest> {
    let bytes = files::read_bounded(&store.stop_path(id), 1 << 16).ok()??;
    serde_json::from_slice(&bytes).ok()
}

/// What came of a stop.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopped {
    /// The task now.
    pub seen: Seen,
    /// It was over before.
    pub was_over: bool,
}

/// Stops a task: TERM to everything that belongs to it, KILL after the grace to what is left. Waits until it is over.
/// A task that is over is left as it is.
pub fn stop(
    store: &Store,
    id: &BackgroundId,
    by: &str,
    grace: Duration,
    host: &Host<'_>,
) -> Result<Stopped, BackgroundError> {
    let processes = host.processes;
    let mut is_second_try = false;
    loop {
        let seen = look(store, id, processes)?;
        match &seen.watch {
            Watch::Nobody => {
                return Ok(Stopped {
                    seen,
                    was_over: true,
                });
            }
            // Somebody has to see the end: a new supervisor.
            Watch::Unwatched { .. } => {
                watch_again(store, seen.record, host)?;
                continue;
            }
            Watch::Unknown { why } => return Err(BackgroundError::OutOfReach(why.clone())),
            Watch::Supervisor { .. } => {}
        }
        let recorded = seen.record.supervisor;
        let supervisor = match &recorded {
            Some(supervisor) if !processes.state(supervisor).is_over() => recorded,
            _ => unrecorded(id, processes)?.or(recorded),
        };
        let Some(supervisor) = supervisor else {
            return Err(deaf("has not said who it is"));
        };
        let state = processes.state(&supervisor);
        if state != ProcessState::Running && !state.is_over() {
            return Err(BackgroundError::OutOfReach(format!(
                "its supervisor, {} {}",
                supervisor.describe(),
                state.describe()
            )));
        }
        let request = StopRequest {
            by: by.to_owned(),
            at: host.clock.now(),
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        };
        let text = serde_json::to_vec(&request).unwrap_or_default();
        // A disk that the task has filled must not keep it from being stopped: the signal alone stops it, too.
        let grace = match files::replace(&store.stop_path(id), &text, 0o600) {
            Ok(()) => grace,
            Err(_) => GRACE,
        };
        let most = grace.saturating_add(ANSWER);
        if ask(&supervisor, processes)? && !wait_over(store, id, &supervisor, most, processes)? {
            if is_second_try {
                return Err(deaf("does not answer, and neither did the one after it"));
            }
            // It hangs: another one takes its place and is asked again.
            processes.signal(&supervisor, Signal::KILL)?;
            processes.wait_end(&supervisor, ANSWER)?;
            is_second_try = true;
            continue;
        }
        let seen = look(store, id, processes)?;
        if seen.watch == Watch::Nobody {
            return Ok(Stopped {
                seen,
                was_over: false,
            });
        }
        // The supervisor ended meanwhile without an end of the task: look again.
        if is_second_try {
            return Err(deaf("was ended while it stopped the task"));
        }
        is_second_try = true;
    }
}

/// Finds the supervisor of a task that found no room to record who it is.
fn unrecorded(
    id: &BackgroundId,
    processes: &dyn Processes,
) -> Result<Option<ProcessIdentity>, BackgroundError> {
    Ok(processes.everyone()?.into_iter().find(|process| {
        processes.details(process.pid).is_some_and(|details| {
            matches!(details.command.get(1..), Some([first, second]) if first == SUPERVISE && second == id.as_str())
        })
    }))
}

fn deaf(what: &str) -> BackgroundError {
    BackgroundError::Supervisor {
        what: what.to_owned(),
    }
}

/// Wakes the supervisor; `false` where it is not there any more.
fn ask(supervisor: &ProcessIdentity, processes: &dyn Processes) -> Result<bool, BackgroundError> {
    let sent = processes.signal(supervisor, Signal::USR1)?;
    // One that was made to stand still hears nothing.
    processes.signal(supervisor, Signal::CONT)?;
    Ok(sent == Signalled::Sent)
}

fn wait_over(
    store: &Store,
    id: &BackgroundId,
    supervisor: &ProcessIdentity,
    most: Duration,
    processes: &dyn Processes,
) -> Result<bool, BackgroundError> {
    let deadline = Instant::now().checked_add(most);
    loop {
        if look(store, id, processes)?.watch != (Watch::Nobody) {
            let left = deadline.map_or(Duration::from_secs(1), |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Ok(false);
            }
            processes.wait_end(supervisor, left.min(Duration::from_secs(1)))?;
            if processes.state(supervisor).is_over() {
                return Ok(true);
            }
            continue;
        }
        return Ok(true);
    }
}
