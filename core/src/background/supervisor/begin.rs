//! Beginning the watch: lock, files, pipes, and the command itself.
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit};

use super::*;
use crate::background::group::{self, Group, Place};
use crate::background::record::Record;
use crate::background::store::Held;

const STREAMS: [(Stream, &str); 2] = [(Stream::Stdout, "stdout"), (Stream::Stderr, "stderr")];

/// Brings the supervisor to life and answers the launcher. `None` where there is nothing to watch.
pub(super) fn begin<'a>(
    order: Order,
    clock: &'a dyn Clock,
    processes: &'a dyn Processes,
) -> Result<Option<(Supervisor<'a>, Held)>, BackgroundError> {
    let folder = paths::path_of_text(&order.folder).unwrap_or_default();
    let store = Store::at(folder);
    let mut record = order.record;
    let id = record.id.clone();
    let Some(lock) = store.lock(&id)? else {
        answer(&Answer::Taken);
        return Ok(None);
    };
    // What loses its parent comes to us, so that nothing of the task gets out of sight.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    drop(std::env::set_current_dir("/"));
    record.supervisor = processes.identify(std::process::id())?;
    let is_parent = !order.command.is_empty();
    let mut history = VecDeque::new();
    if !is_parent && !record.adopted_now() {
        // The last word of the former supervisor counts, not what the launcher read.
        match store.read_told(&id) {
            Ok(Some((last, events, _))) if !last.state.is_over() => {
                let found = record;
                record = last;
                record.supervisor = found.supervisor;
                record.watched_again_at = found.watched_again_at;
                if matches!(record.state, State::Starting) {
                    // Only what runs of it is known.
                    record.state = found.state;
                }
                history.extend(events);
            }
            Ok(_) | Err(_) => {
                answer(&Answer::Taken);
                return Ok(None);
            }
        }
    }
    let now = clock.now();
    let written = store.write(&record, &history, now, true);
    let kept = events::make(&store.events_path(&id));
    if is_parent {
        written?;
        kept.map_err(|error| FileError::new("cannot write", &store.events_path(&id), error))?;
    }
    let mut supervisor = Supervisor {
        reading: Reading::new(order.quiet_ms),
        masker: Masker::of(&crate::env::Env::of_process()),
        signals: signals()
            .map_err(|error| FileError::new("cannot watch", store.folder(), error))?,
        command_end: match &record.state {
            State::Running { command_end, .. } => *command_end,
            State::Starting
            | State::Completed { .. }
            | State::Failed { .. }
            | State::Stopped { .. }
            | State::TimedOut { .. }
            | State::Lost { .. }
            | State::Unobserved { .. } => None,
        },
        writer: None,
        pipes: Vec::new(),
        buffer: Vec::new(),
        phase: Phase::Going,
        is_parent,
        held: Vec::new(),
        no_child: false,
        limit_at: None,
        store,
        id,
        record,
        history,
        clock,
        processes,
    };
    if is_parent {
        supervisor.start_command(&order.command)?;
    } else {
        supervisor.take_over();
    }
    if supervisor.record.state.is_over() {
        return Ok(None);
    }
    supervisor.limit_at = supervisor.record.timeout_ms.and_then(|limit| {
        let since = supervisor.record.state.started_at().unwrap_or(now);
        let gone = u64::try_from(now.since(since)).unwrap_or(0);
        Instant::now().checked_add(Duration::from_millis(limit.saturating_sub(gone)))
    });
    leave_launcher();
    Ok(Some((supervisor, lock)))
}

impl Record {
    /// Tells whether this record is the first one of a process that is taken under watch while it runs.
    const fn adopted_now(&self) -> bool {
        self.adopted && self.watched_again_at.is_none()
    }
}

/// Lets go of the launcher's pipes, so that whoever waits for their end does not wait for the task.
fn leave_launcher() {
    if let Ok(nothing) = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let _ = rustix::stdio::dup2_stdout(&nothing);
        let _ = rustix::stdio::dup2_stderr(&nothing);
    }
}

fn signals() -> io::Result<Signals> {
    let (wake, send) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    let asked = Arc::new(AtomicBool::new(false));
    let terminated = Arc::new(AtomicBool::new(false));
    // Flags are set before the pipe wakes. What is handled here has its default in the command again, also where whoever began
    // it ignores it: a shell does so for what it runs behind `&`, and nohup.
    signal_hook::flag::register(SIGUSR1, Arc::clone(&asked))?;
    for signal in [SIGTERM, SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::clone(&terminated))?;
    }
    for signal in [SIGUSR1, SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGCHLD] {
        signal_hook::low_level::pipe::register(signal, send.try_clone()?)?;
    }
    Ok(Signals {
        wake,
        asked,
        terminated,
    })
}

/// Takes from a child the right to raise a limit again. Processor time keeps a second behind the limit, so that the child
/// hears of it first.
fn harden(child: &Child, resource: Resource, limit: Option<u64>) {
    let Some(limit) = limit else { return };
    let most = if resource == Resource::Cpu {
        limit.saturating_add(1)
    } else {
        limit
    };
    let hard = Rlimit {
        current: Some(limit),
        maximum: Some(most),
    };
    // A hard limit that is lower already stays: raising it is refused.
    let _refused = rustix::process::prlimit(
        Some(rustix::process::Pid::from_child(child)),
        resource,
        hard,
    );
}

impl Supervisor<'_> {
    fn file_error(&self, what: &'static str, error: io::Error) -> BackgroundError {
        FileError::new(what, self.store.folder(), error).into()
    }

    fn open_output(&mut self) -> Result<(), BackgroundError> {
        let writer = Writer::open(&self.store, &self.id, self.record.output_cap)
            .map_err(|error| self.file_error("cannot write the output in", error))?;
        self.writer = Some(writer);
        Ok(())
    }

    /// Opens the reading end of a named pipe, making it where `fresh`.
    fn open_pipe(&mut self, stream: Stream, name: &str, fresh: bool) -> io::Result<()> {
        let path = self.store.pipe_path(&self.id, name);
        if fresh {
            rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR)?;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
        self.pipes.push(Pipe::new(stream, file));
        Ok(())
    }

    fn start_command(&mut self, words: &[String]) -> Result<(), BackgroundError> {
        self.open_output()?;
        for (stream, name) in STREAMS {
            self.open_pipe(stream, name, true)
                .map_err(|error| self.file_error("cannot make a pipe in", error))?;
        }
        match self.spawn(words) {
            Ok(child) => {
                let now = self.now();
                let process = self.identify_child(&child)?;
                self.record.state = State::Running {
                    process: process.clone(),
                    started_at: now,
                    command_end: None,
                };
                self.note(Event::new(EventKind::Started, now));
                self.write_state(false);
                answer(&Answer::Running { process });
            }
            Err(error) => {
                let status = if error.kind() == io::ErrorKind::NotFound {
                    127
                } else {
                    126
                };
                let why = if status == 127 {
                    "it is not found".to_owned()
                } else {
                    error.to_string()
                };
                self.pipes.clear();
                self.record.state = State::Failed {
                    failure: Failure::NotStarted {
                        code: status,
                        why: why.clone(),
                    },
                    started_at: None,
                    ended_at: self.now(),
                };
                let event = end_event(&self.record, self.now());
                self.note(event);
                self.write_state(true);
                for (_, name) in STREAMS {
                    drop(std::fs::remove_file(self.store.pipe_path(&self.id, name)));
                }
                answer(&Answer::NotStarted { status, why });
            }
        }
        Ok(())
    }

    /// Returns the identity of a child that may have ended already: it stays a zombie until we reap it, so that its entry is
    /// there.
    fn identify_child(&self, child: &Child) -> Result<ProcessIdentity, BackgroundError> {
        if let Some(process) = self.processes.identify(child.id())? {
            return Ok(process);
        }
        let own = self
            .record
            .supervisor
            .clone()
            .ok_or_else(|| BackgroundError::NoProcess(child.id()))?;
        Ok(ProcessIdentity {
            pid: child.id(),
            start_ticks: self.processes.start_ticks(child.id()).unwrap_or(0),
            name: None,
            started_at: None,
            ..own
        })
    }

    fn spawn(&mut self, words: &[String]) -> io::Result<Child> {
        let words: Vec<OsString> = words
            .iter()
            .filter_map(|word| paths::bytes_of_text(word))
            .map(OsString::from_vec)
            .collect();
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(paths::path_of_text(&self.record.cwd).unwrap_or_default())
            .env(tree::MARK, self.id.as_str())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(self.writing_end("stdout")?)
            .stderr(self.writing_end("stderr")?);
        let group = self.enter_group();
        let each = self.record.memory_limit.filter(|_| group.is_none());
        let limits = [
            (Resource::As, each),
            (Resource::Cpu, self.record.cpu_seconds),
        ];
        let before = limits.map(|(resource, _)| (resource, rustix::process::getrlimit(resource)));
        for ((resource, limit), (_, before)) in limits.into_iter().zip(before) {
            if let Some(limit) = limit {
                let lowered = Rlimit {
                    current: Some(before.maximum.map_or(limit, |most| limit.min(most))),
                    maximum: before.maximum,
                };
                rustix::process::setrlimit(resource, lowered)?;
            }
        }
        let child = command.spawn();
        for (resource, limit) in before {
            // The soft limit may always be raised back to the hard one.
            let _ = rustix::process::setrlimit(resource, limit);
        }
        if let Some(group) = group {
            // Where it cannot leave, this process counts as well.
            drop(group.leave());
        }
        if let Ok(child) = &child {
            for (resource, limit) in limits {
                harden(child, resource, limit);
            }
        }
        child
    }

    /// Makes a group for the command where it has a limit of memory and the system grants one, and goes into it.
    fn enter_group(&mut self) -> Option<Group> {
        let limit = self.record.memory_limit?;
        let group = Place::of_process()?.make(&self.id, limit)?;
        if group.enter().is_err() {
            group::remove(&group.folder, &self.id);
            return None;
        }
        self.record.memory_group = Some(paths::text_of_path(&group.folder));
        Some(group)
    }

    /// Opens the command's end of a pipe for reading too: so it is never without a reader, and outlives our death.
    fn writing_end(&self, name: &str) -> io::Result<Stdio> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let path = self.store.pipe_path(&self.id, name);
        let handle = rustix::fs::open(&path, flags, Mode::empty())?;
        Ok(Stdio::from(File::from(handle)))
    }

    /// Goes on watching what runs already.
    fn take_over(&mut self) {
        let State::Running { process, .. } = &self.record.state else {
            answer(&Answer::Taken);
            self.record.state = State::Lost {
                started_at: None,
                why: "there was nothing to watch".to_owned(),
            };
            return;
        };
        let process = process.clone();
        if !self.record.adopted {
            // On a full disk it is watched all the same.
            drop(self.open_output());
            for (stream, name) in STREAMS {
                // A pipe that is gone cannot be read on; the command is watched all the same.
                drop(self.open_pipe(stream, name, false));
            }
        }
        let event = Event::new(EventKind::WatchedAgain, self.now()).message(format!(
            "{} is watched, not by its parent",
            process.describe()
        ));
        self.note(event);
        self.write_status(true);
        answer(&Answer::Running { process });
    }
}
