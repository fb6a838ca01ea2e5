//! `git takeup next`
use takeup_core::engine;

use crate::context::Context;
use crate::options::{SessionArgs, TaskArgs, which};
use crate::render;
use crate::reply::{Failure, Next, Reply};

/// Arguments of `next`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  git takeup next\n\nCloses the task when every planned check is proved on the content of this moment;\nelse says the one step that comes next. Repeating it changes nothing."
)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,

    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let step = engine::next(&context.engine(), &which(&args.task, &args.session))?;
    let task = &step.identity.task_id;
    let summary = if step.finalized {
        format!("task {task} is completed")
    } else {
        format!("task {task}: next is {}", step.next_action)
    };
    let mut text = format!("{summary}\n");
    for check in &step.evidence {
        text.push_str(&format!("  {}\n", render::check_line(check, context.now())));
    }
    text.push_str(&render::next(&step.next));
    let next = Next {
        action: step.next.action.clone(),
        command: step.next.command.clone(),
    };
    Ok(Reply::new(summary, &step).human(text).next(next))
}
