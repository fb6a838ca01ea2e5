//! How a task stands, from what jcode recorded, what its output ends with, and the process table.
use takeup_core::time::Time;

use super::{OutputEnd, TaskState};
use crate::processes::{Look, Processes};
use crate::shown::line;

/// How far clocks may differ.
const SLACK_MS: i64 = 5_000;

/// jcode lets a command run in the foreground so long at the most before it becomes a task (its limit of 600 s), so the
/// process may be that much older than the record.
const FOREGROUND_MS: i64 = 610_000;

/// What a status file says.
pub(super) struct Facts<'a> {
    pub(super) word: Option<&'a str>,
    pub(super) error: Option<&'a str>,
    pub(super) exit_code: Option<i32>,
    pub(super) detached: bool,
    pub(super) pid: Option<u32>,
    pub(super) owner: Option<u32>,
    pub(super) started_at: Option<Time>,
    pub(super) cancelled: bool,
    pub(super) whole: bool,
}

/// The answer.
pub(super) struct Judged {
    pub(super) state: TaskState,
    pub(super) proof: String,
    pub(super) exit_code: Option<i32>,
    pub(super) recorded_differs: bool,
}

impl Judged {
    fn new(state: TaskState, proof: impl Into<String>) -> Self {
        Self {
            state,
            proof: proof.into(),
            exit_code: None,
            recorded_differs: false,
        }
    }

    fn code(mut self, code: Option<i32>) -> Self {
        self.exit_code = code;
        self
    }

    fn corrected(mut self) -> Self {
        self.recorded_differs = true;
        self
    }
}

/// Judges a task.
pub(super) fn judge(facts: &Facts<'_>, end: &OutputEnd, processes: &dyn Processes) -> Judged {
    match facts.word {
        Some("running") => running(facts, end, processes),
        Some("completed") => match end.moved_code.filter(|code| *code != 0) {
            // A command that was moved to the background: jcode records success whatever it did.
            Some(code) if !facts.detached && end.code.is_none() => {
                let proof = format!("its output ends with exit code {code}");
                Judged::new(TaskState::Failed, proof)
                    .code(Some(code))
                    .corrected()
            }
            _ => Judged::new(TaskState::Completed, "jcode recorded its end").code(facts.exit_code),
        },
        Some("superseded") => {
            Judged::new(TaskState::Superseded, "jcode recorded its end").code(facts.exit_code)
        }
        Some("failed") => {
            let state = if facts.cancelled {
                TaskState::Cancelled
            } else {
                TaskState::Failed
            };
            Judged::new(state, "jcode recorded its end").code(facts.exit_code)
        }
        Some(word) => Judged::new(
            TaskState::Unknown,
            format!("its status `{}` is not known here", line(word, 40)),
        ),
        None if facts.whole => Judged::new(TaskState::Unknown, "its status file names no status"),
        None => Judged::new(TaskState::Unknown, "its status file is half-written"),
    }
}

/// What is recorded as running.
fn running(facts: &Facts<'_>, end: &OutputEnd, processes: &dyn Processes) -> Judged {
    let rebooted = facts.started_at.is_some_and(|started| {
        processes
            .booted_at()
            .is_some_and(|boot| boot.since(started) > SLACK_MS)
    });
    let over = |why: String| match end.code {
        Some(0) => {
            Judged::new(TaskState::Completed, "its output ends with exit code 0").code(Some(0))
        }
        Some(code) => {
            let proof = format!("its output ends with exit code {code}");
            Judged::new(TaskState::Failed, proof).code(Some(code))
        }
        None => Judged::new(TaskState::Lost, why),
    };
    if rebooted {
        return over("the machine was started again since".to_owned()).corrected();
    }
    let (pid, is_owner) = match (facts.detached, facts.pid, facts.owner) {
        (_, Some(pid), _) => (pid, false),
        (false, None, Some(owner)) => (owner, true),
        (true, None, _) | (false, None, None) => {
            return Judged::new(
                TaskState::Unknown,
                "jcode recorded no process for it; it is recorded as running",
            );
        }
    };
    match is_it(pid, is_owner, facts.started_at, processes) {
        Ok(proof) => Judged::new(TaskState::Running, proof),
        Err(Absent::Unclear(why)) => Judged::new(TaskState::Unknown, why),
        Err(Absent::Gone(why)) if is_owner => Judged::new(
            TaskState::Lost,
            format!("the jcode that ran it is gone: {why}"),
        )
        .corrected(),
        Err(Absent::Gone(why)) => over(why).corrected(),
    }
}

enum Absent {
    Gone(String),
    Unclear(String),
}

/// Tells whether the number still belongs to the process that was recorded. An owner began before its task; the process
/// of a task began with it, or so long before as a command may stay in the foreground.
fn is_it(
    pid: u32,
    is_owner: bool,
    started_at: Option<Time>,
    processes: &dyn Processes,
) -> Result<String, Absent> {
    let running = match processes.look(pid) {
        Look::Running(running) => running,
        Look::Gone => return Err(Absent::Gone(format!("process {pid} has ended"))),
        Look::Unknown(why) => return Err(Absent::Unclear(format!("process {pid}: {why}"))),
    };
    let name = running.name.as_deref().unwrap_or("?");
    let name = line(name, 40);
    let (Some(began), Some(started)) = (running.started_at, started_at) else {
        return Err(Absent::Unclear(format!(
            "process {pid} (`{name}`) runs; whether it is the one that was recorded cannot be told"
        )));
    };
    let later = began.since(started) > SLACK_MS;
    let earlier = !is_owner && started.since(began) > FOREGROUND_MS;
    if pid == 1 && !name.contains("jcode") || later || earlier {
        return Err(Absent::Gone(format!(
            "the number {pid} belongs to another process now (`{name}`, since {began})"
        )));
    }
    Ok(format!("process {pid} (`{name}`) runs since {began}"))
}
