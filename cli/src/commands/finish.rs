//! `git takeup finish`
use takeup_core::engine::{self, Closed, FinishRequest};

use crate::context::Context;
use crate::options::{SessionArgs, TaskArgs, which};
use crate::printer::{YELLOW, paint};
use crate::render;
use crate::reply::{Failure, Reply};

/// Arguments of `finish`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup finish\n  git takeup finish fix-typo --no-checks    # nothing was planned, so nothing was proved"
)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,

    #[command(flatten)]
    session: SessionArgs,

    /// Finish although no check is planned
    #[arg(long)]
    no_checks: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let request = FinishRequest {
        which: which(&args.task, &args.session),
        no_checks: args.no_checks,
    };
    let closed = engine::finish(&context.engine(), &request)?;
    Ok(reply(&closed, context))
}

fn reply(closed: &Closed, context: &Context) -> Reply {
    let summary = format!("task {} is completed", closed.identity.task_id);
    let mut text = summary.clone();
    for check in &closed.evidence {
        text.push_str(&format!("\n  {}", render::check_line(check, context.now())));
    }
    if let Some(why) = &closed.not_proved {
        text.push_str(&format!("\n{} {why}", paint(YELLOW, "note:")));
    }
    let running = render::running(&closed.background, context.now());
    if !running.is_empty() {
        text.push_str(&format!("\n{}", running.trim_end()));
    }
    if let Some(why) = &closed.unsettled {
        text.push_str(&format!("\n{}", render::unsettled(why)));
    }
    Reply::new(summary, closed).human(text)
}
