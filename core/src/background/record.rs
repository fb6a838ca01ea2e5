//! What is recorded of a background task, and the form in which it lies on disk.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events::{Event, EventKind};
use super::progress::Progress;
use crate::ids::{BackgroundId, RepositoryId, SessionRef, TaskId};
use crate::process::ProcessIdentity;
use crate::time::Time;

/// The version of the record; another one is not read.
pub(super) const VERSION: u32 = 1;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum End {
    /// It exited.
    Exited {
        /// Its exit status, 0 to 255.
        code: i32,
    },
    /// A signal ended it.
    Signalled {
        /// The signal's number.
        signal: i32,
        /// Its memory was written to a core file.
        #[serde(rename = "coreDumped")]
        core_dumped: bool,
    },
}

impl End {
    /// Returns the exit status as a shell would give it: 128 and the signal's number where a signal ended it.
    pub const fn status(self) -> i32 {
        match self {
            Self::Exited { code } => code,
            Self::Signalled { signal, .. } => 128_i32.saturating_add(signal),
        }
    }

    /// Says it in words.
    pub fn describe(self) -> String {
        match self {
            Self::Exited { code } => format!("exit status {code}"),
            Self::Signalled {
                signal,
                core_dumped,
            } => {
                let name = signal_name(signal);
                let core = if core_dumped { ", core dumped" } else { "" };
                format!("signal {signal}{name}{core}")
            }
        }
    }
}

/// Writes a limit of time, in milliseconds, as it was given.
pub(super) fn span(millis: u64) -> String {
    match millis {
        0 => "0s".to_owned(),
        hours if hours % 3_600_000 == 0 => format!("{}h", hours / 3_600_000),
        minutes if minutes % 60_000 == 0 => format!("{}m", minutes / 60_000),
        seconds if seconds % 1000 == 0 => format!("{}s", seconds / 1000),
        other => format!("{other}ms"),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (HUP)",
        2 => " (INT)",
        3 => " (QUIT)",
        4 => " (ILL)",
        6 => " (ABRT)",
        7 => " (BUS)",
        8 => " (FPE)",
        9 => " (KILL)",
        10 => " (USR1)",
        11 => " (SEGV)",
        12 => " (USR2)",
        13 => " (PIPE)",
        14 => " (ALRM)",
        15 => " (TERM)",
        24 => " (XCPU)",
        25 => " (XFSZ)",
        _ => "",
    }
}

/// How a task failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Failure {
    /// The command ended, and not well.
    Ended {
        /// How.
        how: End,
    },
    /// The command could not be started.
    NotStarted {
        /// 127 where it was not found, 126 where it could not be run.
        code: i32,
        /// Why.
        why: String,
    },
}

/// The end of the command itself, while processes that it started live on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandEnd {
    /// How.
    pub how: End,
    /// When.
    pub at: Time,
}

/// What a stop or a time limit did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stopping {
    /// When the first signal was sent.
    pub asked_at: Time,
    /// The grace between the gentle signal and the hard one, in milliseconds.
    pub grace_ms: u64,
    /// The hard signal was needed.
    pub killed: bool,
    /// How the command ended, where it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<End>,
    /// What lives on all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<ProcessIdentity>,
}

/// The status of a task; each one carries what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "status",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum State {
    /// The supervisor lives, the command does not yet.
    Starting,
    /// The command or something it started lives.
    Running {
        /// The command.
        process: ProcessIdentity,
        /// When it was started.
        started_at: Time,
        /// The command itself has ended; what it started lives on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_end: Option<CommandEnd>,
    },
    /// The command exited with status 0.
    Completed {
        /// When it was started.
        started_at: Time,
        /// When it was over.
        ended_at: Time,
    },
    /// The command ended otherwise, or could not be started.
    Failed {
        /// How.
        failure: Failure,
        /// When it was started; none where it could not be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<Time>,
        /// When it was over.
        ended_at: Time,
    },
    /// Somebody stopped it.
    Stopped {
        /// Who.
        by: String,
        /// How.
        stopping: Stopping,
        /// When it was started.
        started_at: Time,
        /// When it was over.
        ended_at: Time,
    },
    /// Its time was over.
    TimedOut {
        /// The limit in milliseconds.
        limit_ms: u64,
        /// How it was stopped.
        stopping: Stopping,
        /// When it was started.
        started_at: Time,
        /// When it was over.
        ended_at: Time,
    },
    /// It is gone, and nobody saw how or when.
    Lost {
        /// When it was started, where it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<Time>,
        /// What shows it.
        why: String,
    },
    /// It was seen to end by somebody who is not its parent, so that nobody knows how.
    Unobserved {
        /// When it was started, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<Time>,
        /// When it was over.
        ended_at: Time,
    },
}

impl State {
    /// Returns the state of a command that ended by itself.
    pub const fn of_end(how: End, started_at: Time, ended_at: Time) -> Self {
        match how {
            End::Exited { code: 0 } => Self::Completed {
                started_at,
                ended_at,
            },
            End::Exited { .. } | End::Signalled { .. } => Self::Failed {
                failure: Failure::Ended { how },
                started_at: Some(started_at),
                ended_at,
            },
        }
    }

    /// Returns the status as it stands in JSON.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running { .. } => "running",
            Self::Completed { .. } => "completed",
            Self::Failed { .. } => "failed",
            Self::Stopped { .. } => "stopped",
            Self::TimedOut { .. } => "timed-out",
            Self::Lost { .. } => "lost",
            Self::Unobserved { .. } => "unobserved",
        }
    }

    /// Tells whether the task is over.
    pub const fn is_over(&self) -> bool {
        !matches!(self, Self::Starting | Self::Running { .. })
    }

    /// Returns the process of a command that runs.
    pub const fn process(&self) -> Option<&ProcessIdentity> {
        match self {
            Self::Running { process, .. } => Some(process),
            Self::Starting
            | Self::Completed { .. }
            | Self::Failed { .. }
            | Self::Stopped { .. }
            | Self::TimedOut { .. }
            | Self::Lost { .. }
            | Self::Unobserved { .. } => None,
        }
    }

    /// Returns when the command was started.
    pub const fn started_at(&self) -> Option<Time> {
        match self {
            Self::Starting => None,
            Self::Running { started_at, .. }
            | Self::Completed { started_at, .. }
            | Self::Stopped { started_at, .. }
            | Self::TimedOut { started_at, .. } => Some(*started_at),
            Self::Failed { started_at, .. }
            | Self::Lost { started_at, .. }
            | Self::Unobserved { started_at, .. } => *started_at,
        }
    }

    /// Returns when the task was over, where that was seen.
    pub const fn ended_at(&self) -> Option<Time> {
        match self {
            Self::Starting | Self::Running { .. } | Self::Lost { .. } => None,
            Self::Completed { ended_at, .. }
            | Self::Failed { ended_at, .. }
            | Self::Stopped { ended_at, .. }
            | Self::TimedOut { ended_at, .. }
            | Self::Unobserved { ended_at, .. } => Some(*ended_at),
        }
    }

    /// Returns how the command ended, where it was seen.
    pub const fn end(&self) -> Option<End> {
        match self {
            Self::Starting | Self::Lost { .. } | Self::Unobserved { .. } => None,
            Self::Running { command_end, .. } => match command_end {
                Some(end) => Some(end.how),
                None => None,
            },
            Self::Completed { .. } => Some(End::Exited { code: 0 }),
            Self::Failed { failure, .. } => match failure {
                Failure::Ended { how } => Some(*how),
                Failure::NotStarted { code, .. } => Some(End::Exited { code: *code }),
            },
            Self::Stopped { stopping, .. } | Self::TimedOut { stopping, .. } => stopping.how,
        }
    }

    /// Says in words why it is not well; `None` where it is.
    pub fn trouble(&self) -> Option<String> {
        match self {
            Self::Starting | Self::Running { .. } | Self::Completed { .. } => None,
            Self::Failed { failure, .. } => Some(match failure {
                Failure::Ended { how } => format!("the command ended with {}", how.describe()),
                Failure::NotStarted { why, .. } => format!("the command was not started: {why}"),
            }),
            Self::Stopped { by, .. } => Some(format!("stopped by {by}")),
            Self::TimedOut { limit_ms, .. } => {
                Some(format!("its time of {} was over", span(*limit_ms)))
            }
            Self::Lost { why, .. } => Some(why.clone()),
            Self::Unobserved { .. } => {
                Some("it ended, and nobody saw with which exit status".to_owned())
            }
        }
    }
}

/// Returns the exit status that stands for the end of a task: its own where it was seen (128 and the number for a signal),
/// 124 for a time limit, 125 where nobody knows; `None` while it is not over.
pub fn exit_status(state: &State) -> Option<i32> {
    match state {
        State::Starting | State::Running { .. } => None,
        State::TimedOut { .. } => Some(124),
        State::Completed { .. }
        | State::Failed { .. }
        | State::Stopped { .. }
        | State::Lost { .. }
        | State::Unobserved { .. } => Some(state.end().map_or(125, End::status)),
    }
}

/// A check that the task is run for, to be recorded as evidence when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckFor {
    /// The folder of the repository it runs in.
    pub root: String,
    /// The check as one shell line, masked.
    pub line: String,
    /// A command that has to fail for the check to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must_fail: Option<String>,
    /// The content before the start, if the look was complete.
    pub before: Option<crate::ids::Fingerprint>,
}

/// Everything that is recorded of a background task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// 1.
    pub version: u32,
    /// Its id.
    pub id: BackgroundId,
    /// Its name.
    pub name: String,
    /// The command as one shell line, masked.
    pub command: String,
    /// The folder it runs in, as [`crate::paths::text_of_path`].
    pub cwd: String,
    /// The session that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionRef>,
    /// The task of a ledger it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The repository whose ledger that is, where a task was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryId>,
    /// When it was asked for.
    pub created_at: Time,
    /// The time limit in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The limit of memory in bytes: of all processes together where there is a group, else of each one's address space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// The control group that holds its processes together to the limit of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_group: Option<String>,
    /// The limit of processor time of each process, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// The end is written into the output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notify: bool,
    /// The largest size of the output file in bytes.
    pub output_cap: u64,
    /// It was running already when it was taken under watch; its output goes elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// The check it is run for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckFor>,
    /// The supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<ProcessIdentity>,
    /// Since when a supervisor watches that is not the command's parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched_again_at: Option<Time>,
    /// Where it stands.
    pub state: State,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Since when neither output nor processor time moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_since: Option<Time>,
    /// Output that could not be written (a full disk), in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_lost: u64,
    /// Why the end of a check could not be recorded as evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_missing: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde wants"
)]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Record {
    /// Returns how long it ran or has been running, in milliseconds.
    pub fn duration_ms(&self, now: Time) -> Option<i64> {
        let started = self.state.started_at()?;
        let end = if self.state.is_over() {
            self.state.ended_at()?
        } else {
            now
        };
        Some(end.since(started).max(0))
    }

    /// Returns the label of a list: the name, without the words of the id where they are the name.
    pub fn label(&self) -> &str {
        &self.name
    }
}

/// The status file: what jcode's rules read, and our own record.
#[derive(Debug, Serialize)]
pub(super) struct StatusFile<'a> {
    task_id: &'a str,
    tool_name: &'static str,
    display_name: &'a str,
    session_id: String,
    status: &'static str,
    exit_code: Option<i32>,
    error: Option<String>,
    started_at: Time,
    completed_at: Option<Time>,
    duration_secs: Option<f64>,
    pid: Option<u32>,
    owner_pid: Option<u32>,
    owner_instance: Option<String>,
    detached: bool,
    notify: bool,
    wake: bool,
    progress: Option<ForeignProgress<'a>>,
    event_history: Vec<ForeignEvent<'a>>,
    takeup: &'a Record,
}

/// [`Progress`] with the names of jcode's files.
#[derive(Debug, Serialize)]
struct ForeignProgress<'a> {
    #[serde(flatten)]
    progress: &'a Progress,
    updated_at: Time,
}

/// [`Event`] as jcode reads it: it refuses the whole file where the progress of one event does not say when.
#[derive(Debug, Serialize)]
struct ForeignEvent<'a> {
    kind: EventKind,
    timestamp: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ForeignProgress<'a>>,
}

impl<'a> ForeignEvent<'a> {
    fn of(event: &'a Event) -> Self {
        Self {
            kind: event.kind,
            timestamp: event.timestamp,
            message: event.message.as_deref(),
            status: event.status.as_deref(),
            exit_code: event.exit_code,
            progress: event.progress.as_ref().map(|progress| ForeignProgress {
                progress,
                updated_at: event.timestamp,
            }),
        }
    }
}

/// What we read of a status file.
#[derive(Debug, Deserialize)]
pub(super) struct ReadBack {
    pub(super) takeup: Record,
    #[serde(default)]
    pub(super) event_history: Vec<Event>,
}

/// Writes the status file of a record.
pub(super) fn to_json<'a>(
    record: &'a Record,
    events: impl IntoIterator<Item = &'a Event>,
    now: Time,
) -> Vec<u8> {
    let state = &record.state;
    let (status, exit_code) = match state {
        State::Starting | State::Running { .. } => ("running", None),
        State::Completed { .. } => ("completed", Some(0)),
        State::Failed { .. } | State::TimedOut { .. } => ("failed", exit_status(state)),
        State::Stopped { .. } | State::Lost { .. } | State::Unobserved { .. } => {
            ("failed", state.end().map(End::status))
        }
    };
    let pid = state.process().map(|process| process.pid);
    #[expect(clippy::cast_precision_loss, reason = "seconds for people")]
    let duration_secs = state
        .ended_at()
        .zip(state.started_at())
        .map(|(end, start)| end.since(start) as f64 / 1000.0);
    let file = StatusFile {
        task_id: record.id.as_str(),
        tool_name: "takeup",
        display_name: &record.name,
        session_id: record
            .session
            .as_ref()
            .map(|session| session.id.as_str().to_owned())
            .unwrap_or_default(),
        status,
        exit_code,
        error: state.trouble(),
        started_at: state.started_at().unwrap_or(record.created_at),
        completed_at: state.ended_at().or_else(|| state.is_over().then_some(now)),
        duration_secs,
        pid,
        owner_pid: None,
        owner_instance: None,
        detached: true,
        notify: record.notify,
        wake: false,
        progress: record.progress.as_ref().map(|progress| ForeignProgress {
            progress,
            updated_at: now,
        }),
        event_history: events
            .into_iter()
            .filter(|event| event.kind.is_foreign())
            .map(ForeignEvent::of)
            .collect(),
        takeup: record,
    };
    let mut bytes = serde_json::to_vec_pretty(&file).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
