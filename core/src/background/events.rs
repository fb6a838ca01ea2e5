//! What happened to a background task, one line each.
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::progress::Progress;
use crate::time::Time;

/// The largest size of the file of events; beyond it only what changes the state is written.
const LARGEST: u64 = 1 << 20;

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
            Self::Detached => "a terminal left",
            Self::Evidence => "evidence",
            Self::Ready => "ready",
        }
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
        }
    }

    /// Adds words.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

/// Appends an event as one line in one write.
pub(super) fn append(path: &Path, event: &Event) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    if matches!(event.kind, EventKind::Progress | EventKind::Checkpoint)
        && file.metadata()?.len() > LARGEST
    {
        return Ok(());
    }
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    crate::fault::write_all("event-append", &mut file, &line)
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
