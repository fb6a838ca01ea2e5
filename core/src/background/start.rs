//! Starting a task: the program starts itself again as a supervisor and waits for its word.
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::record::{CheckFor, Record, State, VERSION};
use super::store::{BackgroundError, Store};
use super::tree::MARK;
use super::{group, look};
use crate::env::Env;
use crate::files::FileError;
use crate::ids::{BackgroundId, RepositoryId, SessionRef, TaskId};
use crate::paths;
use crate::process::{ProcessIdentity, Processes};
use crate::redact::Masker;
use crate::time::{Clock, Time};

mod ready;

pub use ready::{Readiness, wait_ready};

/// The hidden command of the program that is a supervisor.
pub const SUPERVISE: &str = "bg-supervise";

/// What this machine and this program lend to the functions that start and stop tasks.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    /// This program, which becomes the supervisor.
    pub program: &'a Path,
    /// The process table.
    pub processes: &'a dyn Processes,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Masks the command lines that are kept.
    pub masker: &'a Masker,
}

impl std::fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

/// What is to be started.
#[derive(Clone, Debug)]
pub struct Request {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// The folder it runs in.
    pub cwd: PathBuf,
    /// Its name; one is made where there is none.
    pub name: Option<String>,
    /// The session that starts it.
    pub session: Option<SessionRef>,
    /// The task of a ledger it belongs to.
    pub task: Option<TaskId>,
    /// The repository whose ledger that is.
    pub repository: Option<RepositoryId>,
    /// Its time limit.
    pub timeout: Option<Duration>,
    /// The limit of memory in bytes: of the task where the system lets us make a control group, else of each process.
    pub memory: Option<u64>,
    /// The limit of processor time of each process, in seconds.
    pub cpu_seconds: Option<u64>,
    /// The largest size of its output, in bytes.
    pub output_cap: u64,
    /// Write the end into the output.
    pub notify: bool,
    /// The check it is run for.
    pub check: Option<CheckFor>,
    /// After how long without output and processor time it counts as quiet.
    pub quiet_after: Duration,
    /// What will show that it is of use: nothing is started where that is there already, of somebody else.
    pub readiness: Option<Readiness>,
}

impl Request {
    /// The size that output is kept to unless something else is asked for.
    pub const OUTPUT_CAP: u64 = 64 << 20;

    /// Makes a request with nothing but a command and a folder.
    pub fn new(command: Vec<OsString>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            command,
            cwd: cwd.into(),
            name: None,
            session: None,
            task: None,
            repository: None,
            timeout: None,
            memory: None,
            cpu_seconds: None,
            output_cap: Self::OUTPUT_CAP,
            notify: false,
            check: None,
            quiet_after: Duration::from_mins(1),
            readiness: None,
        }
    }
}

/// What a supervisor is told on its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// The folder of tasks, as [`paths::text_of_path`].
    pub(super) folder: String,
    /// The record to begin with.
    pub(super) record: Record,
    /// The command, each word as [`paths::text_of_bytes`]; empty where it runs already.
    pub(super) command: Vec<String>,
    /// See [`Request::quiet_after`].
    pub(super) quiet_ms: u64,
}

/// What a supervisor answers, on one line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// The command runs.
    Running {
        /// The command.
        process: ProcessIdentity,
    },
    /// The command could not be started.
    NotStarted {
        /// 127 where it was not found, else 126.
        status: i32,
        /// Why.
        why: String,
    },
    /// Somebody else supervises it.
    Taken,
    /// The supervisor itself failed.
    Failed {
        /// Why.
        why: String,
    },
}

/// A task that was started.
#[derive(Clone, Debug)]
pub struct Started {
    /// Its record.
    pub record: Record,
    /// The command.
    pub process: ProcessIdentity,
}

/// Starts a task.
pub fn start(
    store: &Store,
    request: &Request,
    host: &Host<'_>,
) -> Result<Started, BackgroundError> {
    let now = host.clock.now();
    if request.command.is_empty() {
        return Err(BackgroundError::NoCommand);
    }
    if !request.cwd.is_dir() {
        return Err(BackgroundError::NoWorkingFolder(request.cwd.clone()));
    }
    if let Some(readiness @ Readiness::Port(port)) = &request.readiness
        && readiness.is_taken()
    {
        return Err(BackgroundError::PortTaken(*port));
    }
    store.make()?;
    let (id, made) = new_id(store, now)?;
    let shown: Vec<String> = request
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut record = Record {
        version: VERSION,
        name: request
            .name
            .as_deref()
            .map_or(made, |name| shown_name(name, host.masker)),
        id,
        command: host.masker.command(&shown).line(),
        cwd: paths::text_of_path(&request.cwd),
        session: request.session.clone(),
        task: request.task.clone(),
        repository: request.repository.clone(),
        created_at: now,
        timeout_ms: request
            .timeout
            .map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        memory_limit: request.memory,
        memory_group: None,
        cpu_seconds: request.cpu_seconds,
        notify: request.notify,
        output_cap: request.output_cap.max(super::output::SMALLEST_CAP),
        adopted: false,
        check: request.check.clone(),
        supervisor: None,
        watched_again_at: None,
        state: State::Starting,
        progress: None,
        quiet_since: None,
        output_lost: 0,
        evidence_missing: None,
    };
    let order = Order {
        folder: paths::text_of_path(store.folder()),
        record: record.clone(),
        command: request
            .command
            .iter()
            .map(|word| paths::text_of_bytes(word.as_bytes()))
            .collect(),
        quiet_ms: u64::try_from(request.quiet_after.as_millis()).unwrap_or(u64::MAX),
    };
    match launch(&order, host.program, store.folder())? {
        Answer::Running { process } => {
            record.state = State::Running {
                process: process.clone(),
                started_at: now,
                command_end: None,
            };
            Ok(Started { record, process })
        }
        Answer::NotStarted { status, why } => Err(BackgroundError::NotStarted {
            id: record.id,
            status,
            why,
        }),
        Answer::Taken => Err(BackgroundError::Supervisor {
            what: "found the new task's lock held".to_owned(),
        }),
        Answer::Failed { why } => Err(BackgroundError::Supervisor {
            what: format!("failed: {why}"),
        }),
    }
}

/// Makes an id that no task has: the moment in ten characters that sort by time, and two words. Its lock file claims it.
pub(super) fn new_id(store: &Store, now: Time) -> Result<(BackgroundId, String), BackgroundError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let millis = u64::try_from(now.millis()).unwrap_or(0);
    let stamp = ulid::Ulid::from_parts(millis, 0).to_string().to_lowercase();
    let stamp = stamp.get(..10).unwrap_or(&stamp);
    let full = |name: &str| BackgroundId::new(format!("{stamp}-{name}"));
    let failure = std::cell::RefCell::new(None);
    let name = crate::names::memorable(|name| {
        let Ok(id) = full(name) else { return false };
        let path = store.lock_path(&id);
        match std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
        {
            Ok(_) => false,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => true,
            Err(error) => {
                failure.replace(Some(FileError::new("cannot make", &path, error)));
                false
            }
        }
    });
    if let Some(failure) = failure.into_inner() {
        return Err(failure.into());
    }
    let id = full(&name).map_err(|error| supervisor_error(&error))?;
    Ok((id, name))
}

fn supervisor_error(error: &dyn std::fmt::Display) -> BackgroundError {
    BackgroundError::Supervisor {
        what: format!("cannot be started: {error}"),
    }
}

/// Starts a supervisor and waits for its answer: only then it has left this terminal.
pub(super) fn launch(
    order: &Order,
    program: &Path,
    folder: &Path,
) -> Result<Answer, BackgroundError> {
    let failed = |error: &dyn std::fmt::Display| supervisor_error(error);
    let mut supervisor = Command::new(program)
        .arg(SUPERVISE)
        .arg(order.record.id.as_str())
        .env(MARK, order.record.id.as_str())
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(&error))?;
    let text = serde_json::to_vec(order).map_err(|error| failed(&error))?;
    if let Some(mut stdin) = supervisor.stdin.take() {
        // A supervisor that does not listen does not answer either.
        drop(stdin.write_all(&text));
    }
    let mut line = String::new();
    if let Some(stdout) = supervisor.stdout.take() {
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(|error| failed(&error))?;
    }
    if let Ok(answer) = serde_json::from_str(&line) {
        // Where this process lives on, it is the parent that has to take note of the supervisor's end.
        drop(std::thread::spawn(move || supervisor.wait()));
        return Ok(answer);
    }
    let status = supervisor.wait().map_err(|error| failed(&error))?;
    Err(BackgroundError::Supervisor {
        what: format!("ended before it was ready: {status}"),
    })
}

/// Puts right on disk what a look finds: a task whose supervisor is gone is taken under watch again, or recorded as lost.
/// Called by every command that writes. Returns the ids of the tasks that are watched again; fails with the first failure,
/// after all were tried.
pub fn settle(store: &Store, host: &Host<'_>) -> Result<Vec<BackgroundId>, BackgroundError> {
    let mut again = Vec::new();
    let mut failed = None;
    for seen in store.look_all(host.processes)?.0 {
        let id = seen.record.id.clone();
        // What cannot be done for one task is done for the others.
        let done = match seen.watch {
            look::Watch::Unwatched { .. } => watch_again(store, seen.record, host).map(|taken| {
                if taken {
                    again.push(id);
                }
            }),
            look::Watch::Nobody if seen.corrected => record_lost(store, &id, host),
            look::Watch::Nobody | look::Watch::Supervisor { .. } | look::Watch::Unknown { .. } => {
                Ok(())
            }
        };
        failed = failed.or_else(|| done.err());
    }
    failed.map_or(Ok(again), Err)
}

/// Takes a task under watch again. Returns `false` where somebody was faster, or it ended at this moment.
pub(super) fn watch_again(
    store: &Store,
    mut record: Record,
    host: &Host<'_>,
) -> Result<bool, BackgroundError> {
    record.watched_again_at = Some(host.clock.now());
    let order = Order {
        folder: paths::text_of_path(store.folder()),
        record,
        command: Vec::new(),
        quiet_ms: 60_000,
    };
    match launch(&order, host.program, store.folder())? {
        Answer::Running { .. } => Ok(true),
        // The next look tells.
        Answer::Taken | Answer::NotStarted { .. } => Ok(false),
        Answer::Failed { why } => Err(BackgroundError::Supervisor {
            what: format!("failed: {why}"),
        }),
    }
}

fn record_lost(store: &Store, id: &BackgroundId, host: &Host<'_>) -> Result<(), BackgroundError> {
    let Some(held) = store.lock(id)? else {
        return Ok(());
    };
    let Ok(Some((mut record, events, told))) = store.read_told(id) else {
        return Ok(());
    };
    if record.state.is_over() {
        if told {
            store.write(&record, &events, host.clock.now(), true)?;
        }
    } else {
        let seen = look::unsupervised(record, host.processes);
        record = seen.record;
        if seen.corrected {
            group::remove_of(&record);
            super::supervisor::announce_end(store, &record, host.clock.now());
            store.write(&record, &events, host.clock.now(), true)?;
        }
    }
    drop(held);
    Ok(())
}

/// Returns reasons why the system may end background tasks all the same, in words.
pub fn warnings(env: &Env) -> Vec<String> {
    let mut warnings = Vec::new();
    if kills_user_processes() && env.var("XDG_SESSION_ID").is_some() && !lingers() {
        warnings.push(
            "this system ends all processes of a user at log-out (KillUserProcesses=yes); `loginctl enable-linger` keeps \
             them"
                .to_owned(),
        );
    }
    warnings
}

fn kills_user_processes() -> bool {
    let mut files = vec![PathBuf::from("/etc/systemd/logind.conf")];
    for folder in [
        "/usr/lib/systemd/logind.conf.d",
        "/etc/systemd/logind.conf.d",
    ] {
        let mut more: Vec<PathBuf> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        more.sort();
        files.extend(more);
    }
    let mut kills = false;
    for file in files {
        for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
            if let Some(value) = line.trim().strip_prefix("KillUserProcesses=") {
                kills = matches!(value.trim(), "yes" | "true" | "on" | "1");
            }
        }
    }
    kills
}

fn lingers() -> bool {
    let uid = rustix::process::getuid().as_raw();
    let name = std::fs::read_to_string("/etc/passwd")
        .unwrap_or_default()
        .lines()
        .find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
        });
    name.is_some_and(|name| Path::new("/var/lib/systemd/linger").join(name).exists())
}

/// Makes a name fit to be kept and shown: one line, without control characters, secrets masked.
pub(super) fn shown_name(name: &str, masker: &Masker) -> String {
    crate::text::one_line(&masker.text(name).text, 120)
}
