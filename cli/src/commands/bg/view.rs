//! How a task is shown, to people and machines.
use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::background::{End, Progress, Record, Seen, State, Store, Watch, exit_status};
use takeup_core::ids::{BackgroundId, SessionRef, TaskId};
use takeup_core::issue::Issue;
use takeup_core::text;
use takeup_core::time::Time;

use super::units::{bytes, span};
use crate::printer::{CYAN, DIM, GREEN, RED, YELLOW, paint};

/// A background task, as it is now.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskData {
    /// Its id.
    pub id: BackgroundId,
    /// Whose it is: `takeup`, or the agent whose folder it lies in.
    pub agent: String,
    /// Its name.
    pub name: String,
    /// `starting`, `running`, `completed`, `failed`, `stopped`, `timed-out`, `lost` or `unobserved`.
    pub status: &'static str,
    /// The status with what belongs to it.
    pub state: State,
    /// The state is what a look found, and not what is recorded.
    pub corrected: bool,
    /// Who watches it.
    pub watch: Watch,
    /// The command, masked.
    pub command: String,
    /// The folder it runs in.
    pub cwd: String,
    /// The session that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionRef>,
    /// The task of a ledger it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// When it was asked for.
    pub created_at: Time,
    /// When it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it was over, where that was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// How long it ran or has been running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// The exit status that stands for its end: 128 and the number for a signal, 124 for a time limit, 125 where nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it is not well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Since when neither output nor processor time moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_since: Option<Time>,
    /// What it is limited to, and whether that counts for all of it or for each process by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// Why its end could not be recorded as evidence, where it was run for a check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence_missing: Option<String>,
    /// It ran already when it was taken under watch.
    pub adopted: bool,
    /// The raw output; secrets may stand in it.
    pub output_file: String,
    /// The size of that file.
    pub output_bytes: u64,
    /// How many bytes that were printed could not be written (a full disk), so that they are not in it. Machines are told by
    /// `bg output` and by the events.
    #[serde(skip)]
    pub output_lost_bytes: u64,
}

/// Says that bytes which were printed are not kept; `None` where none are missing.
pub(super) fn lost(count: u64) -> Option<String> {
    (count > 0).then(|| {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let bytes = text::count(count, "byte", "bytes");
        format!("{bytes} of its output could not be written")
    })
}

/// Says that a record cannot be read, on one line.
pub(crate) fn damaged(issue: &Issue) -> String {
    format!(
        "{} {}: {}",
        paint(YELLOW, "damaged:"),
        issue.path.display(),
        text::one_line(&issue.message, 200)
    )
}

/// Says what a task is limited to.
fn limits(record: &Record) -> Vec<String> {
    let memory = record.memory_limit.map(|limit| {
        let whose = if record.memory_group.is_some() {
            "for all of it"
        } else {
            "for each process"
        };
        format!("memory {} {whose}", bytes(limit))
    });
    [
        record
            .timeout_ms
            .map(|limit| format!("time {}", span(i64::try_from(limit).unwrap_or(0)))),
        memory,
        record
            .cpu_seconds
            .map(|limit| format!("processor {limit}s for each process")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl TaskData {
    pub(crate) fn new(store: &Store, seen: Seen, now: Time) -> Self {
        let record = seen.record;
        let output = store.output_path(&record.id);
        Self {
            agent: "takeup".to_owned(),
            status: record.state.code(),
            corrected: seen.corrected,
            watch: seen.watch,
            started_at: record.state.started_at(),
            ended_at: record.state.ended_at(),
            duration_ms: record.duration_ms(now),
            exit_code: exit_status(&record.state),
            signal: match record.state.end() {
                Some(End::Signalled { signal, .. }) => Some(signal),
                Some(End::Exited { .. }) | None => None,
            },
            trouble: record.state.trouble(),
            limits: limits(&record),
            output_lost_bytes: record.output_lost,
            output_bytes: output.metadata().map_or(0, |meta| meta.len()),
            output_file: output.to_string_lossy().into_owned(),
            id: record.id,
            name: record.name,
            state: record.state,
            command: record.command,
            cwd: record.cwd,
            session_id: record.session,
            task_id: record.task,
            created_at: record.created_at,
            progress: record.progress,
            quiet_since: record.quiet_since,
            evidence_missing: record.evidence_missing,
            adopted: record.adopted,
        }
    }

    /// Tells whether it ended well, or has not ended.
    pub(crate) const fn is_well(&self) -> bool {
        matches!(
            self.state,
            State::Starting | State::Running { .. } | State::Completed { .. }
        ) && !matches!(self.watch, Watch::Unknown { .. })
    }

    /// Returns the exit status that stands for the task's: its own, and never 0 for a task that did not complete (a command
    /// may answer to a stop with 0).
    pub(crate) fn code_to_pass_on(&self) -> Option<u8> {
        self.exit_code
            .map(|code| u8::try_from(code).unwrap_or(255))
            .filter(|code| self.is_well() || *code != 0)
    }

    /// Returns the status in colour, with the exit status where there is one to tell.
    pub(crate) fn painted(&self) -> String {
        let style = match self.state {
            State::Starting | State::Running { .. } => CYAN,
            State::Completed { .. } => GREEN,
            State::Stopped { .. } | State::Unobserved { .. } => YELLOW,
            State::Failed { .. } | State::TimedOut { .. } | State::Lost { .. } => RED,
        };
        let mut text = self.status.to_owned();
        match (&self.state, self.state.end()) {
            (State::Failed { .. }, Some(End::Exited { code })) => {
                text.push_str(&format!(" ({code})"));
            }
            (State::Failed { .. }, Some(End::Signalled { signal, .. })) => {
                text.push_str(&format!(" (signal {signal})"));
            }
            _ => {}
        }
        match self.watch {
            Watch::Unwatched { .. } => text.push_str(", unwatched"),
            Watch::Unknown { .. } => text.push_str(", unknown from here"),
            Watch::Nobody | Watch::Supervisor { .. } => {}
        }
        paint(style, text)
    }

    /// Returns how far it is, in one short text.
    pub(crate) fn how_far(&self, bar: bool) -> String {
        if self.state.is_over() {
            return String::new();
        }
        let Some(progress) = &self.progress else {
            return self
                .quiet_since
                .map(|_| paint(YELLOW, "quiet"))
                .unwrap_or_default();
        };
        let mut parts = Vec::new();
        if let Some(percent) = progress.percent {
            if bar {
                parts.push(bar_of(percent));
            }
            parts.push(format!("{percent:.0}%"));
        } else if let Some(message) = &progress.message {
            parts.push(text::one_line(message, 40));
        }
        if let (Some(current), Some(total)) = (progress.current, progress.total) {
            let unit = progress.unit.as_deref().unwrap_or_default();
            parts.push(text::one_line(&format!("{current}/{total} {unit}"), 30));
        }
        if self.quiet_since.is_some() {
            parts.push(paint(YELLOW, "quiet"));
        }
        parts.join(" ")
    }

    /// Returns how long it took or takes.
    pub(crate) fn took(&self) -> String {
        self.duration_ms.map(span).unwrap_or_default()
    }

    /// Returns one line that says it all.
    pub(crate) fn sentence(&self) -> String {
        let name = text::one_line(&self.name, 60);
        let mut line = format!("{name} {}", self.status);
        if !self.took().is_empty() {
            line.push_str(&format!(" after {}", self.took()));
        }
        if let Some(trouble) = &self.trouble {
            line.push_str(&format!(": {}", text::one_line(trouble, 300)));
        }
        if let Some(why) = &self.evidence_missing {
            line.push_str(&format!(
                "; evidence not recorded: {}",
                text::one_line(why, 300)
            ));
        }
        if let Some(lost) = lost(self.output_lost_bytes) {
            line.push_str(&format!("; {lost}"));
        }
        if let Watch::Unknown { why } = &self.watch {
            line.push_str(&format!(
                ", when it was last seen; now it is out of sight: {}",
                text::one_line(why, 300)
            ));
        }
        line
    }
}

fn bar_of(percent: f64) -> String {
    const WIDTH: usize = 10;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 10"
    )]
    let full = ((percent / 10.0).round().clamp(0.0, 10.0) as usize).min(WIDTH);
    format!(
        "{}{}",
        paint(GREEN, "█".repeat(full)),
        paint(DIM, "░".repeat(WIDTH.saturating_sub(full)))
    )
}
