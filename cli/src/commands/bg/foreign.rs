//! Background tasks that agents started by themselves: what their own records and outputs say. They are looked at, and neither
//! waited for nor stopped: that is their agent's.
use takeup_core::background::{BackgroundError, clean_output};
use takeup_core::error::Exit;
use takeup_core::text;

use super::output::OutputData;
use super::show::ShowData;
use super::units::bytes;
use crate::agents::{AgentTask, AgentTaskState, background_tasks, task_output};
use crate::context::Context;
use crate::printer::{self, BOLD, DIM, ago, field, paint, shell};
use crate::reply::{Failure, Next, Reply};

/// The most that is printed of an output, in bytes.
const MOST: u64 = 64 << 20;
/// The shortest beginning of an id that counts.
const SHORTEST: usize = 4;

/// Finds the task of an agent that is meant where none of ours is: by its id, the name it has there, or the beginning of one id.
pub(super) fn meant(text: &str, error: &BackgroundError, context: &Context) -> Option<AgentTask> {
    if !matches!(error, BackgroundError::Missing(_)) {
        return None;
    }
    let theirs = background_tasks(&context.env).items;
    let is_it = |task: &&AgentTask| task.id == text || task.label.as_deref() == Some(text);
    let mut begins = theirs
        .iter()
        .filter(|task| text.len() >= SHORTEST && task.id.starts_with(text));
    let found = theirs.iter().find(is_it).or_else(|| {
        let first = begins.next();
        first.filter(|_| begins.next().is_none())
    });
    found.cloned()
}

/// Says of a task that takeup does not do with it what was asked.
pub(super) fn refuse(task: &AgentTask) -> Failure {
    let id = task.id.as_str();
    let pid = task.pid.filter(|_| task.state == AgentTaskState::Running);
    let adopt = pid.map_or_else(String::new, |pid| {
        let pid = pid.to_string();
        let words = shell(["git", "takeup", "bg", "adopt", pid.as_str()]);
        format!("; `{words}` watches its process")
    });
    Failure::new(
        "foreign-background-task",
        Exit::Missing,
        format!(
            "background task {} is jcode's: {}, {}",
            text::one_line(id, 80),
            task.state.word(),
            task.proof
        ),
    )
    .hint(format!(
        "`{}` shows it and `{}` what it printed; jcode itself waits for its tasks and stops them (its `bg` tool){adopt}",
        shell(["git", "takeup", "bg", "show", id]),
        shell(["git", "takeup", "bg", "output", id]),
    ))
}

const fn is_over(task: &AgentTask) -> bool {
    !matches!(
        task.state,
        AgentTaskState::Running | AgentTaskState::Unknown
    )
}

/// Shows what is known of it.
pub(super) fn show(task: AgentTask, context: &Context) -> Reply {
    let now = context.clock.now();
    let name = task.label.as_deref().unwrap_or(&task.id);
    let mut human = format!(
        "{} {} {}\n",
        paint(BOLD, text::one_line(name, 60)),
        task.state.word(),
        paint(DIM, &task.id)
    );
    let mut add = |label: &str, value: String| {
        if !value.is_empty() {
            human.push_str(&field(label, 12, &value));
        }
    };
    add("of", "jcode".to_owned());
    add("tool", task.tool.clone().unwrap_or_default());
    let session = task.session.as_ref();
    add(
        "session",
        session.map_or_else(String::new, |id| format!("jcode:{id}")),
    );
    if let Some(started) = task.started_at {
        add("started", format!("{} ({started})", ago(now, started)));
    }
    if let Some(ended) = task.ended_at {
        add("ended", format!("{} ({ended})", ago(now, ended)));
    }
    add(
        "exit status",
        task.exit_code
            .map_or_else(String::new, |code| code.to_string()),
    );
    add("known by", task.proof.clone());
    add("recorded", task.recorded.clone().unwrap_or_default());
    add("error", task.error.clone().unwrap_or_default());
    if let Some(progress) = &task.progress {
        let percent = progress.percent.map(|percent| format!("{percent:.0}%"));
        let guessed = progress.guessed.then(|| "(guessed by jcode)".to_owned());
        let parts = [percent, progress.message.clone(), guessed];
        add(
            "progress",
            parts.into_iter().flatten().collect::<Vec<_>>().join(" "),
        );
    }
    if let Some(path) = &task.output {
        let size = path.metadata().map_or(0, |data| data.len());
        let path = takeup_core::paths::text_of_path(path);
        add("output", format!("{} in {path}", bytes(size)));
    }
    let summary = format!(
        "{} {}: {}",
        text::one_line(name, 60),
        task.state.word(),
        task.proof
    );
    let next = Next::new(
        "output",
        shell(["git", "takeup", "bg", "output", task.id.as_str()]),
    );
    Reply::new(summary, &ShowData::of_agent(task))
        .human(human)
        .next(next)
}

/// Prints what it printed: all of it, or the last lines.
pub(super) fn output(
    task: AgentTask,
    lines: Option<usize>,
    context: &Context,
) -> Result<Reply, Failure> {
    let most = if context.json {
        super::output::JSON_MOST
    } else {
        MOST
    };
    let Some((bytes, size)) = task_output(&task, most)? else {
        return Err(Failure::new(
            "no-output",
            Exit::Missing,
            format!(
                "background task {} has no output",
                text::one_line(&task.id, 80)
            ),
        ));
    };
    let mut text = clean_output(&bytes, context.masker());
    let mut truncated = size > bytes.len() as u64;
    if let Some(lines) = lines {
        let all: Vec<&str> = text.lines().collect();
        let first = all.len().saturating_sub(lines);
        truncated |= first > 0;
        let last = all.into_iter().skip(first);
        text = last.flat_map(|line| [line, "\n"]).collect();
    }
    if !context.json {
        drop(printer::out_raw(text.as_bytes()));
        return Ok(Reply::silent(Exit::Done));
    }
    let summary = format!("{size} bytes were printed");
    let human = text.clone();
    let over = is_over(&task);
    let data = OutputData {
        id: task.id,
        text,
        printed_bytes: size,
        left_out_bytes: 0,
        lost_bytes: 0,
        truncated,
        over,
    };
    Ok(Reply::new(summary, &data).human(human))
}
