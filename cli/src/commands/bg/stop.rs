//! `git takeup bg stop`
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::background::{self, State};
use takeup_core::error::Exit;

use super::view::TaskData;
use super::{Lender, find_running, session, settle, store, units};
use crate::context::Context;
use crate::printer::{YELLOW, paint};
use crate::reply::{Failure, Reply};

/// Arguments of `bg stop`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  git takeup bg stop amber-otter --grace 2s\n\nExit status: 0 it is over (also when it was before), 1 something of it lives on."
)]
pub(crate) struct Args {
    /// The tasks: id, name, or the beginning of either
    #[arg(required = true)]
    tasks: Vec<String>,

    /// How long the gentle signal is given before the hard one
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "5s")]
    grace: Duration,
}

/// One task that was to be stopped.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoppedData {
    /// The task now.
    task: TaskData,
    /// It was over before.
    was_over: bool,
    /// The numbers of processes that live on.
    survivors: Vec<u32>,
}

/// The answer of `bg stop`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StopData {
    /// The tasks.
    tasks: Vec<StoppedData>,
}

/// Says who stops a task.
pub(super) fn who(context: &Context) -> Result<String, Failure> {
    if let Some(session) = session(None, context)? {
        return Ok(format!("session {session}"));
    }
    let user = context
        .env
        .text("USER")
        .or_else(|| context.env.text("LOGNAME"))
        .map_or_else(
            || format!("user {}", rustix::process::getuid().as_raw()),
            |name| format!("user {}", takeup_core::text::one_line(name, 60)),
        );
    Ok(user)
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Reply, Failure> {
    let store = store(context)?;
    let lender = Lender::new(context);
    let host = lender.host(context);
    settle(&store, &host);
    let by = who(context)?;
    let ids = args
        .tasks
        .iter()
        .map(|text| find_running(text, &store, context))
        .collect::<Result<Vec<_>, _>>()?;
    let mut tasks = Vec::new();
    let mut human = String::new();
    for id in ids {
        let stopped = background::stop(&store, &id, &by, args.grace, &host)?;
        let survivors: Vec<u32> = match &stopped.seen.record.state {
            State::Stopped { stopping, .. } | State::TimedOut { stopping, .. } => stopping
                .survivors
                .iter()
                .map(|process| process.pid)
                .collect(),
            State::Starting
            | State::Running { .. }
            | State::Completed { .. }
            | State::Failed { .. }
            | State::Lost { .. }
            | State::Unobserved { .. } => Vec::new(),
        };
        let task = TaskData::new(&store, stopped.seen, context.clock.now());
        human.push_str(&task.sentence());
        if stopped.was_over {
            human.push_str(" (it was over before)");
        }
        human.push('\n');
        if !survivors.is_empty() {
            human.push_str(&format!(
                "{} these live on: {survivors:?}\n",
                paint(YELLOW, "warning:")
            ));
        }
        tasks.push(StoppedData {
            task,
            was_over: stopped.was_over,
            survivors,
        });
    }
    let alive = tasks.iter().any(|task| !task.survivors.is_empty());
    let summary = format!("{} background tasks are over", tasks.len());
    Ok(Reply::new(summary, &StopData { tasks })
        .human(human)
        .exit(if alive { Exit::No } else { Exit::Done }))
}
