//! Waiting for the end of tasks.
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::look::{Seen, Watch, look};
use super::record::State;
use super::start::{Host, watch_again};
use super::store::{BackgroundError, Store};
use crate::ids::BackgroundId;
use crate::process::Processes;

/// How many of several tasks are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Until one is over.
    Any,
    /// Until one is over and did not complete, or all are over.
    FirstFailure,
    /// Until all are over.
    All,
}

/// What came of waiting.
#[derive(Clone, Debug, PartialEq)]
pub struct Waited {
    /// The tasks as they are now, in the order in which they were named.
    pub tasks: Vec<Seen>,
    /// The time was over first, or the caller was interrupted.
    pub timed_out: bool,
}

/// How long is slept at most: a process table that cannot wake us is looked at this often.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Waits until as many of the tasks are over as asked for, or the time is. One that cannot be seen from here counts as one that
/// did not complete. Where `interrupt` is raised, the time is over
/// within a second. With a `host`, a task whose supervisor is gone is taken under watch again, so that what it prints from
/// now on is kept; without one nothing is written.
pub fn wait(
    store: &Store,
    ids: &[BackgroundId],
    until: WaitFor,
    most: Option<Duration>,
    interrupt: Option<&AtomicBool>,
    host: Option<&Host<'_>>,
    processes: &dyn Processes,
) -> Result<Waited, BackgroundError> {
    let deadline = most.and_then(|most| Instant::now().checked_add(most));
    loop {
        let tasks = ids
            .iter()
            .map(|id| look(store, id, processes))
            .collect::<Result<Vec<Seen>, _>>()?;
        if let Some(host) = host {
            let unwatched = |seen: &&Seen| matches!(seen.watch, Watch::Unwatched { .. });
            let mut again = false;
            for seen in tasks.iter().filter(unwatched) {
                again |= watch_again(store, seen.record.clone(), host)?;
            }
            if again {
                continue;
            }
        }
        // What cannot be seen from here is not waited for: nothing would ever wake us.
        let is_over = |seen: &Seen| {
            seen.record.state.is_over() || matches!(seen.watch, Watch::Unknown { .. })
        };
        let failed =
            |seen: &Seen| is_over(seen) && !matches!(seen.record.state, State::Completed { .. });
        let all = tasks.iter().all(is_over);
        let done = match until {
            WaitFor::Any => all || tasks.iter().any(is_over),
            WaitFor::FirstFailure => all || tasks.iter().any(failed),
            WaitFor::All => all,
        };
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let interrupted = interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed));
        let timed_out = !done && (interrupted || left.is_some_and(|left| left.is_zero()));
        if done || timed_out {
            return Ok(Waited { tasks, timed_out });
        }
        let handles: Vec<OwnedFd> = tasks
            .iter()
            .filter_map(|seen| handle(seen, processes))
            .collect();
        let sleep = left.map_or(LONGEST_SLEEP, |left| left.min(LONGEST_SLEEP));
        let sleep = Timespec::try_from(sleep).ok();
        let mut watched: Vec<PollFd<'_>> = handles
            .iter()
            .map(|handle| PollFd::new(handle, PollFlags::IN))
            .collect();
        // Woken or not, the next look tells.
        if poll(&mut watched, sleep.as_ref()).is_err() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Returns what becomes readable when the task may be over.
fn handle(seen: &Seen, processes: &dyn Processes) -> Option<OwnedFd> {
    let process = match &seen.watch {
        Watch::Nobody | Watch::Unknown { .. } => None,
        Watch::Supervisor { .. } => seen.record.supervisor.as_ref(),
        Watch::Unwatched { .. } => seen.record.state.process(),
    }?;
    processes.watch(process).ok()?.ok()
}
