//! The supervisor of one task: a process of its own that outlives everything else.
//!
//! It sleeps until something happens: output, the end of a process, a signal, or a moment it waits for (a time limit, the
//! grace of a stop, a look whether a silent command still works, once a minute).
use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};

use super::events::{self, Event, EventKind};
use super::output::{Stream, Writer};
use super::record::{CommandEnd, End, Failure, Record, State, Stopping};
use super::start::{Answer, Order};
use super::store::{BackgroundError, Store};
use super::{check, stop, tree};
use crate::files::FileError;
use crate::ids::BackgroundId;
use crate::paths;
use crate::process::{ProcessIdentity, Processes};
use crate::redact::Masker;
use crate::time::{Clock, Time};

mod begin;
mod pipes;
mod watching;

use pipes::Pipe;
use watching::Reading;

/// How long the hard signal is repeated before what lives on is called a survivor.
const KILLING: Duration = Duration::from_secs(5);
/// How often it is repeated.
const KILL_AGAIN: Duration = Duration::from_millis(50);
/// How many events the status file keeps.
const HISTORY: usize = 50;

/// Why a task is stopped.
#[derive(Clone, Debug)]
enum Why {
    /// Somebody asked.
    By(String),
    /// Its time, in milliseconds, was over.
    Limit(u64),
}

/// How far a stop is.
#[derive(Debug)]
enum Phase {
    /// Nobody stops it.
    Going,
    /// The gentle signal was sent.
    Asked {
        why: Why,
        stopping: Stopping,
        kill_at: Instant,
        /// Who was sent it.
        asked: Vec<ProcessIdentity>,
    },
    /// The hard signal is sent again and again.
    Killing {
        why: Why,
        stopping: Stopping,
        again_at: Instant,
        until: Instant,
    },
}

/// Flags that signals set, and the pipe that wakes.
struct Signals {
    wake: UnixStream,
    asked: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
}

struct Supervisor<'a> {
    store: Store,
    id: BackgroundId,
    record: Record,
    history: VecDeque<Event>,
    writer: Option<Writer>,
    pipes: Vec<Pipe>,
    /// What is read goes through here; empty until something is.
    buffer: Vec<u8>,
    reading: Reading,
    masker: Masker,
    signals: Signals,
    phase: Phase,
    /// The command is our own child, so that its end is seen by us.
    is_parent: bool,
    /// What is watched where we are not the parent.
    held: Vec<OwnedFd>,
    /// No child is left, so nothing of the task lives.
    no_child: bool,
    limit_at: Option<Instant>,
    command_end: Option<CommandEnd>,
    clock: &'a dyn Clock,
    processes: &'a dyn Processes,
}

/// Runs the supervisor that standard input describes, to the end of its task. Returns the exit status of this process.
pub fn supervise(clock: &dyn Clock, processes: &dyn Processes) -> u8 {
    // Out of the terminal, first of all. Where this process leads a group already, it has left before.
    let _ = rustix::process::setsid();
    let mut text = Vec::new();
    if io::stdin().lock().read_to_end(&mut text).is_err() {
        return 1;
    }
    let Ok(order) = serde_json::from_slice::<Order>(&text) else {
        return 1;
    };
    drop(text);
    match begin::begin(order, clock, processes) {
        Ok(Some((supervisor, _lock))) => {
            supervisor.run();
            0
        }
        Ok(None) => 0,
        Err(error) => {
            answer(&Answer::Failed {
                why: error.to_string(),
            });
            1
        }
    }
}

/// Tells the launcher, which may be gone.
fn answer(answer: &Answer) {
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    drop(stdout.write_all(&line).and_then(|()| stdout.flush()));
}

/// Appends the event that says how a task ended.
pub(super) fn announce_end(store: &Store, record: &Record, now: Time) {
    let event = end_event(record, now);
    // The record says it too.
    drop(events::append(&store.events_path(&record.id), &event));
}

fn end_event(record: &Record, now: Time) -> Event {
    let kind = match &record.state {
        State::Completed { .. } => EventKind::Completed,
        State::Stopped { .. } => EventKind::Cancelled,
        State::Lost { .. } => EventKind::Lost,
        State::Unobserved { .. } => EventKind::Unobserved,
        State::Starting | State::Running { .. } | State::Failed { .. } | State::TimedOut { .. } => {
            EventKind::Failed
        }
    };
    let mut event = Event::new(kind, now);
    event.message = record.state.trouble();
    event.status = Some(
        if kind == EventKind::Completed {
            "completed"
        } else {
            "failed"
        }
        .to_owned(),
    );
    event.exit_code = super::record::exit_status(&record.state);
    event
}

impl Supervisor<'_> {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn note(&mut self, event: Event) {
        // A full disk must not end the watch.
        drop(events::append(&self.store.events_path(&self.id), &event));
        self.history.push_back(event);
        while self.history.len() > HISTORY {
            self.history.pop_front();
        }
    }

    /// Writes the status file. Returns the failure, which most changes may bear: the next one writes all again.
    fn write_status(&self, durable: bool) -> Option<FileError> {
        self.store
            .write(&self.record, &self.history, self.now(), durable)
            .err()
    }

    /// As [`Self::write_status`] for a change of the state: where the status file cannot be written, the state stands among
    /// the events, for which room is kept. Returns `false` where not even that was possible.
    fn write_state(&self, durable: bool) -> bool {
        let Some(error) = self.write_status(durable) else {
            return true;
        };
        let mut event = Event::new(EventKind::NotRecorded, self.now()).message(error.to_string());
        event.state = Some(Box::new(self.record.state.clone()));
        events::append(&self.store.events_path(&self.id), &event).is_ok()
    }

    fn run(mut self) {
        if !self.is_parent {
            self.hold_members();
        }
        // Output alone does not end it, and to look whether it is over means to look at every process.
        let mut may_be_over = true;
        while !((may_be_over || self.no_child) && self.is_over()) {
            let timeout = self.sleep_for();
            may_be_over = self.wait(timeout).unwrap_or_else(|_| {
                // Polling itself cannot fail for long; never spin.
                std::thread::sleep(Duration::from_secs(1));
                true
            });
            if may_be_over {
                self.on_signals();
                self.ask_orphans();
            }
            may_be_over |= !matches!(self.phase, Phase::Going);
            self.read_pipes(false);
            self.on_time();
        }
        self.finish();
    }

    /// Sleeps until something happens. Returns `false` where it was nothing but output.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut watched: Vec<PollFd<'_>> = Vec::with_capacity(3);
        watched.push(PollFd::new(&self.signals.wake, PollFlags::IN));
        for pipe in &self.pipes {
            watched.push(PollFd::from_borrowed_fd(pipe.file().as_fd(), PollFlags::IN));
        }
        for handle in &self.held {
            watched.push(PollFd::new(handle, PollFlags::IN));
        }
        let woken = match poll(&mut watched, timeout.as_ref()) {
            Ok(woken) => woken,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        let ready: Vec<bool> = watched
            .iter()
            .map(|watched| woken > 0 && !watched.revents().is_empty())
            .collect();
        drop(watched);
        let (signal, others) = ready.split_first().unwrap_or((&false, &[]));
        let (outputs, members) = others.split_at(self.pipes.len().min(others.len()));
        for (pipe, ready) in self.pipes.iter_mut().zip(outputs) {
            pipe.set_ready(*ready);
        }
        let member_ended = members.contains(&true);
        if member_ended {
            self.hold_members();
        }
        Ok(*signal || member_ended || woken == 0)
    }

    /// Returns how long may be slept at most; `None` for ever.
    fn sleep_for(&self) -> Option<Duration> {
        let phase = match &self.phase {
            Phase::Going => self.limit_at,
            Phase::Asked { kill_at, .. } => Some(*kill_at),
            Phase::Killing { again_at, .. } => Some(*again_at),
        };
        let pending = self.pipes.iter().filter_map(Pipe::flush_at).min();
        let look_again = self
            .is_blind()
            .then(|| Instant::now().checked_add(Duration::from_secs(1)))
            .flatten();
        [phase, pending, look_again, self.reading.next_at()]
            .into_iter()
            .flatten()
            .min()
            .map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Tells whether nothing can wake us at the end of what we watch, since it could not be looked at.
    const fn is_blind(&self) -> bool {
        !self.is_parent && !self.no_child && self.held.is_empty()
    }

    fn on_signals(&mut self) {
        let mut waste = [0; 64];
        let mut woken = false;
        while (&self.signals.wake)
            .read(&mut waste)
            .is_ok_and(|read| read > 0)
        {
            woken = true;
        }
        if !woken {
            return;
        }
        self.reap();
        if self.signals.asked.swap(false, Ordering::Relaxed) {
            // Who asks writes first who it is; where that found no room, it is asked for all the same.
            let (by, grace) = stop::read_request(&self.store, &self.id).map_or_else(
                || {
                    (
                        "somebody whose order could not be written".to_owned(),
                        stop::GRACE,
                    )
                },
                |request| (request.by, Duration::from_millis(request.grace_ms)),
            );
            self.begin_stop(Why::By(by), grace);
        }
        // What we did not start is not ours to end when we are told to: it is found again by the next look.
        if self.signals.terminated.swap(false, Ordering::Relaxed) && !self.record.adopted {
            let why = Why::By("the system (its supervisor was told to end)".to_owned());
            self.begin_stop(why, Duration::from_secs(2));
        }
    }

    /// Takes note of every child that ended.
    fn reap(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    let is_command = self.is_parent
                        && matches!(&self.record.state, State::Running { process, .. }
                            if i64::from(process.pid) == i64::from(pid.as_raw_nonzero().get()));
                    if is_command && let Some(how) = end_of(status.as_raw()) {
                        self.command_ended(how);
                    }
                }
                Ok(None) => return,
                Err(Errno::INTR) => {}
                Err(_) => {
                    // Where we are not the parent, to have no child says nothing.
                    self.no_child |= self.is_parent;
                    return;
                }
            }
        }
    }

    fn command_ended(&mut self, how: End) {
        let end = CommandEnd {
            how,
            at: self.now(),
        };
        self.command_end = Some(end);
        if let State::Running { command_end, .. } = &mut self.record.state {
            *command_end = Some(end);
        }
    }

    /// Returns what of the task lives; `None` where the process table cannot be read.
    fn living(&self) -> Option<Vec<ProcessIdentity>> {
        let me = std::process::id();
        let members = if self.is_parent {
            if self.no_child {
                return Some(Vec::new());
            }
            tree::below(self.processes, me, &self.id)
        } else {
            tree::scattered(self.processes, self.record.state.process(), &self.id, me)
        };
        members.ok()
    }

    /// Returns what of the task can be found alive.
    fn members(&self) -> Vec<ProcessIdentity> {
        self.living().unwrap_or_default()
    }

    /// Holds on to what is to be watched, where we are not the parent.
    fn hold_members(&mut self) {
        let Some(members) = self.living() else {
            // Not to see is not to know that nobody is there; the next look may see.
            self.held.clear();
            return;
        };
        self.held = members
            .iter()
            .filter_map(|process| self.processes.watch(process).ok()?.ok())
            .collect();
        if members.is_empty() {
            self.no_child = true;
        }
    }

    /// Tells whether nothing of the task lives any more, or whether it cannot be ended.
    fn is_over(&mut self) -> bool {
        if !self.is_parent {
            return self.no_child || self.gave_up();
        }
        if self.gave_up() {
            return true;
        }
        let Some(_) = self.command_end else {
            return self.no_child;
        };
        // Where the table cannot be read, only the children's own ends are believed.
        if self.no_child || self.living().is_some_and(|members| members.is_empty()) {
            return true;
        }
        if let State::Running { command_end, .. } = &self.record.state
            && self.reading.announce_command_end()
        {
            let how = command_end
                .map(|end| end.how.describe())
                .unwrap_or_default();
            let event = Event::new(EventKind::CommandEnded, self.now())
                .message(format!("{how}; what it started lives on"));
            self.note(event);
            self.write_status(true);
        }
        false
    }

    fn gave_up(&self) -> bool {
        matches!(&self.phase, Phase::Killing { until, .. } if Instant::now() >= *until)
    }

    fn begin_stop(&mut self, why: Why, grace: Duration) {
        if !matches!(self.phase, Phase::Going) {
            return;
        }
        let message = match &why {
            Why::By(by) => format!("by {by}"),
            Why::Limit(limit) => format!("its time of {} is over", super::record::span(*limit)),
        };
        let now = self.now();
        self.note(Event::new(EventKind::StopRequested, now).message(message));
        let members = self.members();
        self.ask(&members);
        let begun = Instant::now();
        self.phase = Phase::Asked {
            why,
            stopping: Stopping {
                asked_at: now,
                grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
                killed: false,
                how: None,
                survivors: Vec::new(),
            },
            kill_at: begun.checked_add(grace).unwrap_or(begun),
            asked: members,
        };
    }

    /// Sends the gentle signal.
    fn ask(&self, members: &[ProcessIdentity]) {
        tree::signal_all(self.processes, members, Signal::TERM);
        // What stands still cannot hear.
        tree::signal_all(self.processes, members, Signal::CONT);
    }

    /// Asks those who were started in the moment in which the others were asked.
    fn ask_orphans(&mut self) {
        let Phase::Asked { asked, .. } = &self.phase else {
            return;
        };
        let late = tree::unasked_orphans(self.processes, &self.members(), asked);
        self.ask(&late);
        if let Phase::Asked { asked, .. } = &mut self.phase {
            asked.extend(late);
        }
    }

    /// Does what its time has come for.
    fn on_time(&mut self) {
        let now = Instant::now();
        if self.is_blind() {
            self.hold_members();
        }
        if matches!(self.phase, Phase::Going)
            && self.limit_at.is_some_and(|limit| now >= limit)
            && let Some(limit) = self.record.timeout_ms
        {
            self.begin_stop(Why::Limit(limit), Duration::from_secs(5));
        }
        match std::mem::replace(&mut self.phase, Phase::Going) {
            Phase::Asked {
                why,
                mut stopping,
                kill_at,
                ..
            } if now >= kill_at => {
                let members = self.members();
                stopping.killed = !members.is_empty();
                if stopping.killed {
                    let event = Event::new(EventKind::Killing, self.now())
                        .message(format!("{} did not end in time", members.len()));
                    self.note(event);
                }
                tree::signal_all(self.processes, &members, Signal::KILL);
                self.phase = Phase::Killing {
                    why,
                    stopping,
                    again_at: now.checked_add(KILL_AGAIN).unwrap_or(now),
                    until: now.checked_add(KILLING).unwrap_or(now),
                };
            }
            Phase::Killing {
                why,
                stopping,
                again_at,
                until,
            } => {
                let mut next = again_at;
                if now >= again_at {
                    tree::signal_all(self.processes, &self.members(), Signal::KILL);
                    next = now.checked_add(KILL_AGAIN).unwrap_or(now);
                    self.reap();
                    if !self.is_parent {
                        self.hold_members();
                    }
                }
                self.phase = Phase::Killing {
                    why,
                    stopping,
                    again_at: next,
                    until,
                };
            }
            other @ (Phase::Going | Phase::Asked { .. }) => self.phase = other,
        }
        self.on_reading_time(now);
    }

    fn finish(mut self) {
        self.read_pipes(true);
        self.examine(true);
        let now = self.now();
        let started = self.record.state.started_at();
        let started_at = started.unwrap_or(self.record.created_at);
        let how = self.command_end.map(|end| end.how);
        self.record_check(how, started_at, now);
        let phase = std::mem::replace(&mut self.phase, Phase::Going);
        self.record.quiet_since = None;
        self.record.state = match phase {
            Phase::Going => match how {
                Some(how) => State::of_end(how, started_at, now),
                None => State::Unobserved {
                    started_at: started,
                    ended_at: now,
                },
            },
            Phase::Asked {
                why, mut stopping, ..
            }
            | Phase::Killing {
                why, mut stopping, ..
            } => {
                stopping.how = how;
                stopping.survivors = self.members();
                match why {
                    Why::By(by) => State::Stopped {
                        by,
                        stopping,
                        started_at,
                        ended_at: now,
                    },
                    Why::Limit(limit_ms) => State::TimedOut {
                        limit_ms,
                        stopping,
                        started_at,
                        ended_at: now,
                    },
                }
            }
        };
        super::group::remove_of(&self.record);
        if self.record.notify {
            let end = super::record::exit_status(&self.record.state).unwrap_or(125);
            let line = format!("\n--- Command finished with exit code: {end} ---\n");
            self.put(Stream::Stdout, line.as_bytes());
        }
        self.note(end_event(&self.record, now));
        // A disk that is full now may have room again soon; an end that stands nowhere is worth waiting for.
        for _ in 0..600 {
            if self.write_state(true) {
                break;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        for stream in ["stdout", "stderr"] {
            drop(std::fs::remove_file(self.store.pipe_path(&self.id, stream)));
        }
        drop(std::fs::remove_file(self.store.stop_path(&self.id)));
    }
}

impl Supervisor<'_> {
    /// Has the end recorded as evidence, where the task is run for a check.
    fn record_check(&mut self, how: Option<End>, started_at: Time, ended_at: Time) {
        if self.record.check.is_none() {
            return;
        }
        let recorded = how.map_or_else(
            || Err("nobody saw how the command ended".to_owned()),
            |how| check::record(&self.store, &self.record, how, started_at, ended_at),
        );
        self.record.evidence_missing = recorded.err();
        let message = self.record.evidence_missing.as_ref().map_or_else(
            || "recorded".to_owned(),
            |why| format!("not recorded: {why}"),
        );
        self.note(Event::new(EventKind::Evidence, ended_at).message(message));
    }
}

/// Reads a wait status (`wait(2)`); `None` for one that is no end.
fn end_of(raw: i32) -> Option<End> {
    let signal = raw & 0x7f;
    if signal == 0 {
        Some(End::Exited {
            code: (raw >> 8) & 0xff,
        })
    } else if signal == 0x7f {
        None
    } else {
        Some(End::Signalled {
            signal,
            core_dumped: raw & 0x80 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wait_status_is_read_right() {
        use std::os::unix::process::ExitStatusExt as _;
        for raw in 0..=0xffff_i32 {
            let judge = std::process::ExitStatus::from_raw(raw);
            let expected = match (judge.code(), judge.signal()) {
                (Some(code), _) => Some(End::Exited { code }),
                (None, Some(signal)) => Some(End::Signalled {
                    signal,
                    core_dumped: judge.core_dumped(),
                }),
                (None, None) => None,
            };
            assert_eq!(end_of(raw), expected, "{raw:#x}");
        }
    }
}
