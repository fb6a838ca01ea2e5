//! `git takeup next`
use takeup_core::engine;

use crate::context::Context;
use crate::options::{SessionArgs, TaskArgs, which};
use crate::printer::{YELLOW, paint};
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

    /// Say first that you looked at the calls that may or may not have happened, and at what damage may have taken
    #[arg(long)]
    looked: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let which = which(&args.task, &args.session);
    if args.looked {
        engine::looked(&context.engine(), &which)?;
    }
    let step = engine::next(&context.engine(), &which)?;
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
    if let Some(why) = &step.not_proved {
        text.push_str(&format!("{} {why}\n", paint(YELLOW, "note:")));
    }
    if let Some(why) = &step.unsettled {
        text.push_str(&format!("{}\n", render::unsettled(why)));
    }
    text.push_str(&render::calls(&step.open_effects));
    if let Some(why) = &step.incomplete {
        text.push_str(&render::unseen(why));
    }
    if let Some(why) = &step.boundary_unknown {
        text.push_str(&render::unbounded(why));
    }
    if step.next.action == "plan" {
        let words = ["git", "takeup", "finish", task.as_str(), "--no-checks"];
        text.push_str(&format!(
            "  no check is planned; to close it without proof: {}\n",
            takeup_core::text::command_line(words)
        ));
    }
    if step.records_lost {
        text.push_str(&render::records_lost());
    }
    if matches!(
        step.next.action.as_str(),
        "look-at-effects" | "look-at-damage"
    ) {
        let session = step.identity.session_id.as_str();
        let words = [
            "git",
            "takeup",
            "next",
            task.as_str(),
            "--session",
            session,
            "--looked",
        ];
        text.push_str(&format!(
            "  when you have looked: {}\n",
            takeup_core::text::command_line(words)
        ));
    }
    text.push_str(&render::running(&step.background, context.now()));
    text.push_str(&render::next(&step.next));
    let next = Next {
        action: step.next.action.clone(),
        command: step.next.command.clone(),
    };
    Ok(Reply::new(summary, &step).human(text).next(next))
}
