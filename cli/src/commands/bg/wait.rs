//! `git takeup bg wait`
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::background::{self, WaitFor};
use takeup_core::error::Exit;
use takeup_core::ids::BackgroundId;
use takeup_core::issue::Issue;
use takeup_core::process;

use super::view::{TaskData, damaged};
use super::{Lender, find_running, store, units};
use crate::context::Context;
use crate::reply::{Failure, Reply};

/// Arguments of `bg wait`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup bg wait amber-otter --exit-code\n  git takeup bg wait --any build tests --timeout 10m\n\nExit status: 0 all that were waited for completed, 1 one of them did not, 6 the time was over."
)]
pub(crate) struct Args {
    /// The tasks; all that run where none is named
    tasks: Vec<String>,

    /// Until one of them is over, not all
    #[arg(long, conflicts_with = "first_failure")]
    any: bool,

    /// Until one of them is over and did not complete, or all are over
    #[arg(long)]
    first_failure: bool,

    /// Wait no longer than this
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    timeout: Option<Duration>,

    /// Exit with the status of the task (of the first that is over and did not complete): 124 for a time limit, 125 where
    /// nobody knows
    #[arg(long)]
    exit_code: bool,
}

/// The answer of `bg wait`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WaitData {
    /// The tasks that were waited for.
    tasks: Vec<TaskData>,
    /// The time was over first.
    timed_out: bool,
    /// Records that cannot be read, where all that run were waited for: what they are of may run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    issues: Vec<Issue>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Reply, Failure> {
    let store = store(context)?;
    let processes = process::system();
    let mut issues = Vec::new();
    let ids: Vec<BackgroundId> = if args.tasks.is_empty() {
        let (seen, damaged) = store.look_all(&processes)?;
        issues = damaged;
        seen.into_iter()
            .filter(|seen| !seen.record.state.is_over())
            .map(|seen| seen.record.id)
            .collect()
    } else {
        args.tasks
            .iter()
            .map(|text| find_running(text, &store, context))
            .collect::<Result<_, _>>()?
    };
    let until = if args.any {
        WaitFor::Any
    } else if args.first_failure {
        WaitFor::FirstFailure
    } else {
        WaitFor::All
    };
    // Over MCP to wait is to look, and looking is not writing.
    let lender = Lender::new(context);
    let host = (context.operation != "mcp").then(|| lender.host(context));
    let waited = background::wait(
        &store,
        &ids,
        until,
        args.timeout,
        context.interrupt.as_deref(),
        host.as_ref(),
        &processes,
    )?;
    let now = context.clock.now();
    let tasks: Vec<TaskData> = waited
        .tasks
        .into_iter()
        .map(|seen| TaskData::new(&store, seen, now))
        .collect();
    let over = tasks.iter().filter(|task| task.state.is_over()).count();
    let failed = tasks.iter().find(|task| !task.is_well());
    let exit = if waited.timed_out {
        Exit::Busy
    } else if failed.is_some() || !issues.is_empty() {
        Exit::No
    } else {
        Exit::Done
    };
    let code = failed
        .filter(|_| args.exit_code && !waited.timed_out)
        .and_then(TaskData::code_to_pass_on);
    let mut lines: Vec<String> = tasks.iter().map(TaskData::sentence).collect();
    lines.extend(issues.iter().map(damaged));
    let summary = match (&waited.timed_out, over) {
        (true, done) => format!("the time was over; {done} of {} are over", tasks.len()),
        (false, done) => format!("{done} of {} background tasks are over", tasks.len()),
    };
    let human = if lines.is_empty() {
        "nothing runs in the background".to_owned()
    } else {
        lines.join("\n")
    };
    let data = WaitData {
        timed_out: waited.timed_out,
        tasks,
        issues,
    };
    let mut reply = Reply::new(summary, &data).human(human).exit(exit);
    reply.code = code;
    Ok(reply)
}
