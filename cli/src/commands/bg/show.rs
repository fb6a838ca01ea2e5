//! `git takeup bg show` and `git takeup bg detach`
use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::background::{Event, EventKind, State, Watch, look};
use takeup_core::text;

use super::units::bytes;
use super::view::TaskData;
use super::{Meant, find, find_any, foreign, store};
use crate::agents::AgentTask;
use crate::context::Context;
use crate::printer::{BOLD, DIM, ago, field, paint, shell};
use crate::reply::{Failure, Next, Reply};

/// How many events are shown.
const EVENTS: usize = 10;

/// Arguments of `bg show`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  git takeup bg show amber-otter")]
pub(crate) struct Args {
    /// The task: its id, its name, or the beginning of either
    task: String,
}

/// Arguments of `bg detach`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  git takeup bg detach amber-otter")]
pub(crate) struct DetachArgs {
    /// The task: its id, its name, or the beginning of either
    task: String,
}

/// The answer of `bg show`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShowData {
    /// The task.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskData>,
    /// The task, where an agent started it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    of_agent: Option<AgentTask>,
    /// What happened last, oldest first.
    events: Vec<Event>,
}

impl ShowData {
    /// Makes an answer that leaves out what happened.
    pub(super) const fn without_events(task: TaskData) -> Self {
        Self {
            task: Some(task),
            of_agent: None,
            events: Vec::new(),
        }
    }

    /// Makes an answer of an agent's own task.
    pub(super) const fn of_agent(task: AgentTask) -> Self {
        Self {
            task: None,
            of_agent: Some(task),
            events: Vec::new(),
        }
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Reply, Failure> {
    let store = store(context)?;
    let now = context.clock.now();
    let id = match find_any(&args.task, &store, context)? {
        Meant::Ours(id) => id,
        Meant::Agents(task) => return Ok(foreign::show(*task, context)),
    };
    let seen = look(&store, &id, &*context.processes)?;
    let task = TaskData::new(&store, seen, now);
    let events = store.events(&id, EVENTS);
    let mut human = format!(
        "{} {} {}\n",
        paint(BOLD, text::one_line(&task.name, 60)),
        task.painted(),
        paint(DIM, &task.id)
    );
    let mut add = |label: &str, value: String| {
        if !value.is_empty() {
            human.push_str(&field(label, 12, &value));
        }
    };
    add("command", text::one_line(&task.command, 500));
    add("folder", text::one_line(&task.cwd, 500));
    add(
        "task",
        task.task_id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    );
    add(
        "session",
        task.session_id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    );
    add("limits", task.limits.join(", "));
    if let Some(started) = task.started_at {
        add("started", format!("{} ({started})", ago(now, started)));
    }
    match task.ended_at {
        Some(ended) => {
            let took = task.took();
            let after = if took.is_empty() { "" } else { ", after " };
            add(
                "ended",
                format!("{} ({ended}){after}{took}", ago(now, ended)),
            );
        }
        None if !task.state.is_over() => add("running", task.took()),
        None => {}
    }
    add("end", task.trouble.clone().unwrap_or_default());
    add(
        "evidence",
        task.evidence_missing
            .as_ref()
            .map(|why| format!("not recorded: {}", text::one_line(why, 300)))
            .unwrap_or_default(),
    );
    if let State::Running {
        process,
        command_end,
        ..
    } = &task.state
    {
        add(
            "process",
            process.describe().trim_end_matches(',').to_owned(),
        );
        if let Some(end) = command_end {
            add(
                "note",
                format!(
                    "the command ended with {}; what it started lives on",
                    end.how.describe()
                ),
            );
        }
    }
    match &task.watch {
        Watch::Nobody => {}
        Watch::Supervisor { proof } => add("watched", proof.clone()),
        Watch::Unwatched { proof } => add("unwatched", proof.clone()),
        Watch::Unknown { why } => add("unknown", why.clone()),
    }
    add("progress", task.how_far(false));
    if let Some(since) = task.quiet_since {
        add(
            "quiet",
            format!(
                "neither output nor processor time moved since {}",
                ago(now, since)
            ),
        );
    }
    let is_there = task.adopted || std::path::Path::new(&task.output_file).exists();
    add(
        "output",
        if is_there {
            format!("{} in {}", bytes(task.output_bytes), task.output_file)
        } else {
            format!("not there: {}", task.output_file)
        },
    );
    for event in &events {
        let message = event.message.as_deref().unwrap_or_default();
        let colon = if message.is_empty() { "" } else { ": " };
        add(
            "",
            format!(
                "{} {}{colon}{}",
                ago(now, event.timestamp),
                event.kind.words(),
                text::one_line(message, 200)
            ),
        );
    }
    let next = Next::new(
        "output",
        shell(["git", "takeup", "bg", "output", task.id.as_str()]),
    );
    let summary = task.sentence();
    let data = ShowData {
        task: Some(task),
        of_agent: None,
        events,
    };
    Ok(Reply::new(summary, &data).human(human).next(next))
}

pub(super) fn detach(args: &DetachArgs, context: &Context) -> Result<Reply, Failure> {
    let store = store(context)?;
    let now = context.clock.now();
    let id = find(&args.task, &store, context)?;
    let seen = look(&store, &id, &*context.processes)?;
    store.note(&id, &Event::new(EventKind::Detached, now))?;
    let task = TaskData::new(&store, seen, now);
    let summary = format!("a terminal that shows {id} was asked to leave it alone");
    Ok(Reply::new(summary, &ShowData::without_events(task)))
}
