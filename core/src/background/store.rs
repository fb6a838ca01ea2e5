//! The folder of background tasks.
use std::fs::{File, TryLockError};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::events::{self, Event};
use super::record::{ReadBack, Record, State, VERSION, to_json};
use crate::env::Env;
use crate::error::{Exit, Explain};
use crate::files::{self, FileError};
use crate::ids::BackgroundId;
use crate::issue::{Issue, IssueKind};
use crate::paths;
use crate::process::{ProcessError, Processes};
use crate::time::Time;

/// The largest status file that is read.
const LARGEST: u64 = 1 << 20;
const STATUS: &str = ".status.json";
/// How the name of a damaged status file ends that was put aside.
pub(super) const ASIDE: &str = ".status.damaged";

/// Something about background tasks did not work.
#[derive(Debug, thiserror::Error)]
pub enum BackgroundError {
    /// The user has no folder for state.
    #[error("there is no folder for background tasks: neither HOME nor XDG_STATE_HOME is set")]
    NoFolder,
    /// The folder belongs to somebody else.
    #[error("{} belongs to another user", .0.display())]
    ForeignFolder(PathBuf),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A record cannot be read.
    #[error("the record of the background task cannot be read: {}: {}", .0.path.display(), .0.message)]
    Damaged(Issue),
    /// No task has this id or name.
    #[error("no background task {0:?}")]
    Missing(String),
    /// No task has this id or name, and a record cannot be read that may have it.
    #[error(
        "no background task {text:?} can be read; it may be among what is damaged: {}: {}",
        issue.path.display(),
        issue.message
    )]
    PerhapsDamaged {
        /// What was asked for.
        text: String,
        /// The first of what is damaged.
        issue: Issue,
    },
    /// Several tasks could be meant.
    #[error("{text:?} could be several background tasks: {}", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// Their ids.
        candidates: Vec<String>,
    },
    /// The process table could not be asked.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// No command was given.
    #[error("no command was given")]
    NoCommand,
    /// The folder the command should run in is not there.
    #[error("{}", no_folder(.0))]
    NoWorkingFolder(PathBuf),
    /// The command could not be started; the task is recorded as failed.
    #[error("the command was not started: {why}")]
    NotStarted {
        /// The task.
        id: BackgroundId,
        /// 127 where it was not found, 126 where it could not be run.
        status: i32,
        /// Why.
        why: String,
    },
    /// What shows that the task is ready is there before the task is.
    #[error(
        "something answers on port {0} already, so that it cannot show whether this task is ready; nothing was started"
    )]
    PortTaken(u16),
    /// The supervisor could not be started or did not answer.
    #[error("the supervisor {what}")]
    Supervisor {
        /// What happened.
        what: String,
    },
    /// There is no such process to take under watch.
    #[error("there is no process {0}, or it has ended")]
    NoProcess(u32),
    /// The first process, this command or one that stands above it.
    #[error(
        "process {0} is the first of all, or stands above this command: stopping it would stop the caller"
    )]
    Above(u32),
    /// What runs the task cannot be seen or reached from here.
    #[error("the task cannot be stopped from here: {0}")]
    OutOfReach(String),
    /// The process belongs to another user.
    #[error("process {0} belongs to another user")]
    ForeignProcess(u32),
}

fn no_folder(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return "the folder this was called in is not there".to_owned();
    }
    let name = path.to_string_lossy();
    if path.exists() {
        format!("{name} is no folder")
    } else {
        format!("the folder {name} is not there")
    }
}

impl Explain for BackgroundError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoFolder => "no-state-folder",
            Self::ForeignFolder(_) => "foreign-state-folder",
            Self::File(error) => error.code(),
            Self::Damaged(_) | Self::PerhapsDamaged { .. } => "background-record-damaged",
            Self::Missing(_) => "no-such-background-task",
            Self::Ambiguous { .. } => "ambiguous-background-task",
            Self::Process(error) => error.code(),
            Self::NoCommand => "no-command",
            Self::NoWorkingFolder(_) => "no-working-folder",
            Self::NotStarted { status: 127, .. } => "command-not-found",
            Self::NotStarted { .. } => "command-not-runnable",
            Self::PortTaken(_) => "port-taken",
            Self::Supervisor { .. } => "supervisor-failed",
            Self::NoProcess(_) => "no-such-process",
            Self::ForeignProcess(_) => "foreign-process",
            Self::Above(_) => "process-above",
            Self::OutOfReach(_) => "background-task-out-of-reach",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoFolder => Some("set HOME or TAKEUP_HOME".to_owned()),
            Self::ForeignFolder(_) => {
                Some("set TAKEUP_HOME or XDG_STATE_HOME to a folder of your own".to_owned())
            }
            Self::File(error) => error.hint(),
            Self::Process(error) => error.hint(),
            Self::Missing(_) => Some("list them with `git takeup bg list`".to_owned()),
            Self::Ambiguous { .. } => Some("give more of its id".to_owned()),
            Self::NoCommand => {
                Some("give it after `--`: `git takeup bg run -- make test`".to_owned())
            }
            Self::NotStarted { status: 127, .. } => Some(
                "is it installed, and on PATH? shell words need a shell: `sh -c '…'`".to_owned(),
            ),
            Self::NotStarted { why, .. } if why.contains("rgument list too long") => Some(
                "the system has an end for command lines: hand long input over in a file".to_owned(),
            ),
            Self::NotStarted { why, .. } if why.contains("nul byte") => {
                Some("no word of a command can hold a NUL".to_owned())
            }
            Self::NotStarted { why, .. } if why.contains("memory") => {
                Some("give it more with `--memory`".to_owned())
            }
            Self::NotStarted { .. } => Some("is it executable?".to_owned()),
            Self::PortTaken(_) => Some(
                "end what listens there (a task of before? see `git takeup bg list`), or wait for a text of the output"
                    .to_owned(),
            ),
            Self::PerhapsDamaged { .. } => Some(
                "name it by its id, or look at the file; `git takeup doctor --fix` puts it aside".to_owned(),
            ),
            Self::OutOfReach(_) => Some(
                "stop it where it runs, such as in the container it was started in".to_owned(),
            ),
            Self::Damaged(_)
            | Self::NoWorkingFolder(_)
            | Self::Supervisor { .. }
            | Self::NoProcess(_)
            | Self::ForeignProcess(_)
            | Self::Above(_) => None,
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Missing(_) | Self::NoProcess(_) => Exit::Missing,
            Self::PortTaken(_) => Exit::Conflict,
            Self::Ambiguous { .. } | Self::NoCommand | Self::NoWorkingFolder(_) => Exit::Usage,
            Self::NoFolder
            | Self::ForeignFolder(_)
            | Self::File(_)
            | Self::Damaged(_)
            | Self::PerhapsDamaged { .. }
            | Self::Process(_)
            | Self::NotStarted { .. }
            | Self::Supervisor { .. }
            | Self::ForeignProcess(_)
            | Self::OutOfReach(_)
            | Self::Above(_) => Exit::No,
        }
    }
}

/// The folder of background tasks.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A held lock: proof that its holder lives.
#[derive(Debug)]
pub(super) struct Held {
    _file: File,
}

impl Store {
    /// Names the folder of the user's background tasks; makes nothing.
    pub fn of(env: &Env) -> Result<Self, BackgroundError> {
        let state = paths::state_dir(env).ok_or(BackgroundError::NoFolder)?;
        Ok(Self::at(state.join("tasks")))
    }

    /// Names a folder; makes nothing.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder where it is not there; refuses one that belongs to somebody else.
    pub fn make(&self) -> Result<(), BackgroundError> {
        files::make_private_folder(&self.folder)?;
        self.check_owner()?;
        Ok(files::keep_out_of_git(&self.folder)?)
    }

    fn check_owner(&self) -> Result<(), BackgroundError> {
        match std::fs::metadata(&self.folder) {
            Ok(meta) if meta.uid() != rustix::process::geteuid().as_raw() => {
                Err(BackgroundError::ForeignFolder(self.folder.clone()))
            }
            _ => Ok(()),
        }
    }

    fn file(&self, id: &BackgroundId, ending: &str) -> PathBuf {
        self.folder.join(format!("{id}{ending}"))
    }

    /// Returns the path of a task's status file.
    pub fn status_path(&self, id: &BackgroundId) -> PathBuf {
        self.file(id, STATUS)
    }

    /// Returns the path of a task's output.
    pub fn output_path(&self, id: &BackgroundId) -> PathBuf {
        self.file(id, ".output")
    }

    pub(super) fn index_path(&self, id: &BackgroundId) -> PathBuf {
        self.file(id, ".output.index")
    }

    /// Returns the path of a task's events.
    pub fn events_path(&self, id: &BackgroundId) -> PathBuf {
        self.file(id, ".events.jsonl")
    }

    pub(super) fn lock_path(&self, id: &BackgroundId) -> PathBuf {
        self.file(id, ".lock")
    }

    pub(super) fn pipe_path(&self, id: &BackgroundId, stream: &str) -> PathBuf {
        self.file(id, &format!(".{stream}"))
    }

    pub(super) fn stop_path(&self, id: &BackgroundId) -> PathBuf {
        self.file(id, ".stop.json")
    }

    /// Returns every file that belongs to a task, whether it is there or not; the status file last.
    pub(super) fn files(&self, id: &BackgroundId) -> Vec<PathBuf> {
        vec![
            self.pipe_path(id, "stdout"),
            self.pipe_path(id, "stderr"),
            self.stop_path(id),
            self.index_path(id),
            self.output_path(id),
            self.events_path(id),
            self.lock_path(id),
            self.status_path(id),
        ]
    }

    /// Returns the ids of all tasks, oldest first. A folder that is not there holds none.
    pub fn ids(&self) -> Result<Vec<BackgroundId>, BackgroundError> {
        self.check_owner()?;
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                return Err(FileError::new("cannot list", &self.folder, error).into());
            }
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry =
                entry.map_err(|error| FileError::new("cannot list", &self.folder, error))?;
            if let Some(id) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.strip_suffix(STATUS))
                .and_then(|id| BackgroundId::new(id).ok())
            {
                ids.push(id);
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// Reads the record of a task and its last events; `None` where there is none.
    pub(super) fn read(&self, id: &BackgroundId) -> Result<Option<(Record, Vec<Event>)>, Issue> {
        let path = self.status_path(id);
        let Some(bytes) = files::read_bounded(&path, LARGEST)? else {
            return Ok(None);
        };
        if bytes.is_empty() || bytes.iter().all(|&byte| byte == 0) {
            return Err(Issue::new(
                path,
                IssueKind::Zeroed,
                "there is no text in it",
            ));
        }
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let file: ReadBack = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let kind = if error.inner().is_eof() {
                IssueKind::Torn
            } else {
                IssueKind::Corrupt
            };
            Issue::new(&path, kind, error.to_string())
        })?;
        if file.takeup.version != VERSION {
            return Err(Issue::new(
                path,
                IssueKind::UnknownVersion,
                format!("version {} is not known", file.takeup.version),
            ));
        }
        if &file.takeup.id != id {
            return Err(Issue::new(
                path,
                IssueKind::Corrupt,
                "it holds the record of another task",
            ));
        }
        Ok(Some((file.takeup, file.event_history)))
    }

    /// As [`Self::read`], with the state that the status file could not be given; the last part tells whether there was one.
    pub(super) fn read_told(
        &self,
        id: &BackgroundId,
    ) -> Result<Option<(Record, Vec<Event>, bool)>, Issue> {
        let Some((mut record, events)) = self.read(id)? else {
            return Ok(None);
        };
        let is_starting = matches!(record.state, State::Starting);
        let told = (!record.state.is_over())
            .then(|| events::last_state(&self.events_path(id), is_starting))
            .flatten()
            .filter(|state| is_starting || state.is_over());
        let is_told = told.is_some();
        if let Some(state) = told {
            record.state = state;
        }
        Ok(Some((record, events, is_told)))
    }

    /// Writes the record of a task, so that a reader sees the old one or the new one. `durable` ones survive a loss of
    /// power as well; they cost a flush.
    pub(super) fn write<'a>(
        &self,
        record: &'a Record,
        events: impl IntoIterator<Item = &'a Event>,
        now: Time,
        durable: bool,
    ) -> Result<(), FileError> {
        let bytes = to_json(record, events, now);
        let path = self.status_path(&record.id);
        if durable {
            files::write_atomic(&path, &bytes, 0o600)
        } else {
            files::replace(&path, &bytes, 0o600)
        }
    }

    /// Reads the last events of a task, oldest first.
    pub fn events(&self, id: &BackgroundId, last: usize) -> Vec<Event> {
        events::read(&self.events_path(id), last)
    }

    /// Returns the name under which a damaged record can be put aside: nothing but what is damaged for sure, and no record
    /// whose supervisor lives, which writes it anew by itself.
    pub fn aside(&self, issue: &Issue) -> Option<PathBuf> {
        let is_damaged = matches!(
            issue.kind,
            IssueKind::Torn | IssueKind::Zeroed | IssueKind::Corrupt
        );
        let name = issue.path.file_name()?.to_str()?;
        let id = BackgroundId::new(name.strip_suffix(STATUS)?).ok()?;
        let is_free = is_damaged && matches!(self.is_locked(&id), Ok(false));
        is_free.then(|| self.file(&id, ASIDE))
    }

    /// Adds an event to a task's file of events.
    pub fn note(&self, id: &BackgroundId, event: &Event) -> Result<(), BackgroundError> {
        let path = self.events_path(id);
        events::append(&path, event)
            .map_err(|error| FileError::new("cannot write", &path, error).into())
    }

    /// Finds a task by its id, its name, or the beginning of either. Of several with one name, the newest is meant.
    pub fn find(&self, text: &str) -> Result<BackgroundId, BackgroundError> {
        let ids = self.ids()?;
        if let Some(id) = ids.iter().find(|id| id.as_str() == text) {
            return Ok(id.clone());
        }
        let mut named = Vec::new();
        let mut begun = Vec::new();
        let mut damaged = None;
        for id in ids {
            let name = match self.read(&id) {
                Ok(Some((record, _))) => record.name,
                Ok(None) => String::new(),
                // A damaged record can still be named by its id.
                Err(issue) => {
                    damaged.get_or_insert(issue);
                    String::new()
                }
            };
            if name == text {
                named.push(id);
            } else if !text.is_empty() && (id.as_str().starts_with(text) || name.starts_with(text))
            {
                begun.push(id);
            }
        }
        if let Some(newest) = named.pop() {
            return Ok(newest);
        }
        match begun.as_slice() {
            [] => {
                let text = text.chars().take(80).collect();
                Err(match damaged {
                    Some(issue) => BackgroundError::PerhapsDamaged { text, issue },
                    None => BackgroundError::Missing(text),
                })
            }
            [only] => Ok(only.clone()),
            [..] => Err(BackgroundError::Ambiguous {
                text: text.chars().take(80).collect(),
                candidates: begun.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    /// Finds the task that is meant to be stopped: of several with the same name the one that runs. Where more than one of them
    /// runs, nobody knows which is meant.
    pub fn find_running(
        &self,
        text: &str,
        processes: &dyn Processes,
    ) -> Result<BackgroundId, BackgroundError> {
        let found = self.find(text)?;
        if found.as_str() == text {
            return Ok(found);
        }
        let (seen, _) = self.look_all(processes)?;
        let mut running: Vec<BackgroundId> = seen
            .into_iter()
            .map(|seen| seen.record)
            .filter(|record| record.name == text && !record.state.is_over())
            .map(|record| record.id)
            .collect();
        match running.pop() {
            None => Ok(found),
            Some(only) if running.is_empty() => Ok(only),
            Some(last) => {
                running.push(last);
                Err(BackgroundError::Ambiguous {
                    text: text.chars().take(80).collect(),
                    candidates: running.iter().map(ToString::to_string).collect(),
                })
            }
        }
    }

    /// Takes the lock of a task; `None` where somebody else holds it.
    pub(super) fn lock(&self, id: &BackgroundId) -> Result<Option<Held>, FileError> {
        let path = self.lock_path(id);
        let fail = |error: std::io::Error| FileError::new("cannot lock", &path, error);
        let file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .map_err(fail)?;
        // A look holds the lock shared for a moment: it is waited for.
        for _ in 0..50 {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Held { _file: file })),
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                Err(TryLockError::Error(error)) => return Err(fail(error)),
            }
        }
        Ok(None)
    }

    /// Tells whether somebody holds the lock of a task; takes it for no longer than a moment, and shared.
    pub(super) fn is_locked(&self, id: &BackgroundId) -> Result<bool, Issue> {
        let Some(file) = files::open_regular(&self.lock_path(id))? else {
            return Ok(false);
        };
        match file.try_lock_shared() {
            // The lock goes with the file.
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(Issue::new(
                self.lock_path(id),
                IssueKind::Unreadable,
                error.to_string(),
            )),
        }
    }
}
