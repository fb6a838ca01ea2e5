//! `git takeup log`
use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::engine::{self, LogLine};
use takeup_core::ids::TaskId;
use takeup_core::text;

use crate::context::Context;
use crate::options::{SessionArgs, TaskArgs};
use crate::printer::{DIM, ago, paint, table};
use crate::reply::{Failure, Reply};

/// Arguments of `log`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Of what a session left, the last record is told; the ones before gave way to it.\n\nExample:\n  git takeup log fix-login"
)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,

    #[command(flatten)]
    session: SessionArgs,
}

/// The answer of `log`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogData {
    /// The task.
    task_id: TaskId,
    /// Its history, oldest first.
    lines: Vec<LogLine>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let (task_id, lines) = engine::log(
        &context.engine(),
        args.task.named().as_deref(),
        args.session.session.as_deref(),
    )?;
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|line| {
            vec![
                paint(DIM, ago(context.now(), line.at)),
                line.event.clone(),
                paint(DIM, text::one_line(&line.by, 40)),
                text::one_line(&line.message, 300),
            ]
        })
        .collect();
    let summary = format!(
        "task {task_id}: {}",
        text::count(lines.len(), "event", "events")
    );
    Ok(Reply::new(summary, &LogData { task_id, lines }).human(table(&rows)))
}
