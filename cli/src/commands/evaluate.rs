//! `git takeup evaluate`
use takeup_core::engine;
use takeup_core::error::Exit;

use crate::context::Context;
use crate::options::{SessionArgs, TaskArgs, which};
use crate::printer::{YELLOW, paint};
use crate::render;
use crate::reply::{Failure, Next, Reply};

/// Arguments of `evaluate`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  git takeup evaluate fix-login\n\nExit status 1: not everything is proved on the present content."
)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,

    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let found = engine::evaluate(&context.engine(), &which(&args.task, &args.session))?;
    let task = &found.identity.task_id;
    let (summary, exit) = match (&found.review_id, found.proved) {
        (Some(id), _) => (
            format!("task {task} waits for a person: {id}"),
            Exit::Confirm,
        ),
        (None, true) if found.evidence.is_empty() => {
            (format!("task {task}: nothing has to be proved"), Exit::Done)
        }
        (None, true) => (
            format!("task {task} is proved on the present content"),
            Exit::Done,
        ),
        (None, false) => (
            format!("task {task} is not proved on the present content"),
            Exit::No,
        ),
    };
    let mut text = format!("{summary}\n");
    for check in &found.evidence {
        text.push_str(&format!("  {}\n", render::check_line(check, context.now())));
    }
    for changed in &found.outside_boundary {
        text.push_str(&format!(
            "  {} {}\n",
            paint(YELLOW, "outside:"),
            render::changed_line(changed)
        ));
    }
    if let Some(why) = &found.incomplete {
        text.push_str(&render::unseen(why));
    }
    if let Some(why) = &found.boundary_unknown {
        text.push_str(&render::unbounded(why));
    }
    if found.records_lost {
        text.push_str(&render::records_lost());
    }
    text.push_str(&render::calls(&found.open_effects));
    text.push_str(&render::running(&found.background, context.now()));
    text.push_str(&render::next(&found.next));
    let next = Next {
        action: found.next.action.clone(),
        command: found.next.command.clone(),
    };
    Ok(Reply::new(summary, &found)
        .human(text)
        .next(next)
        .exit(exit))
}
