//! What happened to a background task, one line each.
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::progress::Progress;
use super::record::State;
use crate::time::Time;

/// The largest size of the file of events; beyond it only what changes the state is written.
const LARGEST: u64 = 1 << 20;
/// The room that is kept behind the last line, so that a disk that is full can still take the end of the task.
const ROOM: u64 = 8 << 10;
/// How much of the end is read for the last state.
const TAIL: u64 = 32 << 10;

/// Kinds of events. The first five are jcode's, with its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// It got on.
    Progress,
    /// It reached a point that it named.
    Checkpoint,
    /// It completed.
    Completed,
    /// It failed, or its time was over.
    Failed,
    /// It was stopped.
    Cancelled,
    /// It is gone, and nobody saw how.
    Lost,
    /// It ended, and nobody was there to see its exit status.
    Unobserved,
    /// The command was started.
    Started,
    /// The command ended; what it started lives on.
    CommandEnded,
    /// Neither output nor processor time moves.
    Quiet,
    /// It moves again.
    Moving,
    /// Somebody asked for it to be stopped, or its time was over.
    StopRequested,
    /// The hard signal followed the gentle one.
    Killing,
    /// A supervisor that is not its parent took it under watch.
    WatchedAgain,
    /// Output could not be written.
    OutputLost,
    /// The status file could not be written (a full disk): the state stands here alone.
    NotRecorded,
    /// A terminal that showed it was asked to leave.
    Detached,
    /// The end was recorded as evidence, or could not be.
    Evidence,
    /// What was waited for at the start is there.
    Ready,
}

impl EventKind {
    /// Says it in words, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Progress => "got on",
            Self::Checkpoint => "checkpoint",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "stopped",
            Self::Lost => "lost",
            Self::Unobserved => "ended unobserved",
            Self::Started => "started",
            Self::CommandEnded => "the command ended",
            Self::Quiet => "quiet",
            Self::Moving => "moves again",
            Self::StopRequested => "asked to stop",
            Self::Killing => "killed",
            Self::WatchedAgain => "watched again",
            Self::OutputLost => "output lost",
            Self::NotRecorded => "the status could not be written",
            Self::Detached => "a terminal left",
            Self::Evidence => "evidence",
            Self::Ready => "ready",
        }
    }

    /// Tells whether it is written into the room that is kept for it, where the disk is full.
    const fn is_needed(self) -> bool {
        matches!(
            self,
            Self::Completed
                | Self::Failed
                | Self::Cancelled
                | Self::Lost
                | Self::Unobserved
                | Self::NotRecorded
        )
    }

    /// Tells whether jcode's format knows this kind.
    pub(super) const fn is_foreign(self) -> bool {
        matches!(
            self,
            Self::Progress | Self::Checkpoint | Self::Completed | Self::Failed | Self::Cancelled
        )
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// When.
    pub timestamp: Time,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// jcode's word for the status after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The exit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The state that the status file could not be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<State>>,
}

impl Event {
    /// Makes an event.
    pub fn new(kind: EventKind, timestamp: Time) -> Self {
        Self {
            kind,
            timestamp,
            message: None,
            status: None,
            exit_code: None,
            progress: None,
            state: None,
        }
    }

    /// Adds words.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// Makes the file of events, with room for the end.
pub(super) fn make(path: &Path) -> std::io::Result<()> {
    let file = open(path)?;
    keep_room(&file, file.metadata()?.len())
}

/// Appends an event as one line in one write. What is not needed is refused where no room would be left for what is.
pub(super) fn append(path: &Path, event: &Event) -> std::io::Result<()> {
    let mut file = open(path)?;
    let len = file.metadata()?.len();
    if matches!(event.kind, EventKind::Progress | EventKind::Checkpoint) && len > LARGEST {
        return Ok(());
    }
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    if !event.kind.is_needed() {
        keep_room(&file, len.saturating_add(line.len() as u64))?;
    }
    crate::fault::write_all("event-append", &mut file, &line)
}

/// Keeps room behind a length. Fails on a full disk alone: not every file system can do it.
fn keep_room(file: &File, len: u64) -> std::io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    let kept = crate::fault::around("event-room", || {
        Ok(fallocate(file, FallocateFlags::KEEP_SIZE, len, ROOM)?)
    });
    match kept {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded
            ) =>
        {
            Err(error)
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns the last state that the status file could not be given; `whole` looks through all events for it, not only the
/// newest.
pub(super) fn last_state(path: &Path, whole: bool) -> Option<State> {
    let mut file = crate::files::open_regular(path).ok()??;
    let len = file.metadata().ok()?.len();
    let most = if whole {
        LARGEST.saturating_mul(4)
    } else {
        TAIL
    };
    file.seek(SeekFrom::Start(len.saturating_sub(most))).ok()?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    bytes
        .split(|&byte| byte == b'\n')
        .rev()
        .filter(|line| bstr::ByteSlice::contains_str(*line, "not_recorded"))
        .find_map(|line| serde_json::from_slice::<Event>(line).ok()?.state)
        .map(|state| *state)
}

/// Reads the last events, oldest first. Lines that are none are left out: the file may be written at this moment.
pub(super) fn read(path: &Path, last: usize) -> Vec<Event> {
    let Ok(Some(bytes)) = crate::files::read_bounded(path, LARGEST.saturating_mul(4)) else {
        return Vec::new();
    };
    let mut events: Vec<Event> = bytes
        .split(|&byte| byte == b'\n')
        .rev()
        .filter_map(|line| serde_json::from_slice(line).ok())
        .take(last)
        .collect();
    events.reverse();
    events
}
