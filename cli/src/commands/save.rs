//! `git takeup save`
use takeup_core::engine::{self, SaveRequest};

use crate::context::Context;
use crate::options::{SessionArgs, TaskArgs};
use crate::printer::{YELLOW, paint};
use crate::reply::{Failure, Next, Reply};

/// Arguments of `save`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup save\n  git takeup save --end        # the session ends here in good order\n  git takeup save --end --session 4f0a9c   # that session is over, and cannot say so itself\n\nWithout --session it is the caller's own session that is saved: what an agent's session holds is\ntaken up, or that session is named. Who names another's session is recorded as the one who says it;\nwith --end the end alone is recorded then, and what was left stays as it was."
)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,

    #[command(flatten)]
    session: SessionArgs,

    /// The process that stands for the session from now on
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,

    /// The session ends here in good order
    #[arg(long)]
    end: bool,

    /// Why it ends
    #[arg(long, value_name = "TEXT", requires = "end")]
    reason: Option<String>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let request = SaveRequest {
        task: args.task.named(),
        session: args.session.session,
        agent: args.session.agent,
        pid: args.pid,
        end: args.end,
        reason: args.reason,
        event: None,
        open_effects: None,
    };
    let saved = engine::save(&context.engine(), &request)?;
    let tasks: Vec<&str> = saved
        .identities
        .iter()
        .map(|identity| identity.task_id.as_str())
        .collect();
    let print = saved.fingerprint.as_deref().map_or_else(
        || "that could not be seen whole".to_owned(),
        |print| print.chars().take(10).collect(),
    );
    let summary = match (saved.wrote, saved.ended) {
        _ if saved.deferred.is_some() => {
            format!("{}: the content stays recorded as it was", tasks.join(", "))
        }
        (true, true) if tasks.is_empty() => {
            "the session ended; it held no task, and nothing of it is offered any more".to_owned()
        }
        (true, true) => match &saved.ended_by {
            Some(by) => format!(
                "{}: the session is over, as {by} says; what it left stays recorded as it was",
                tasks.join(", ")
            ),
            None => format!("saved {}; the session ended", tasks.join(", ")),
        },
        (true, false) => format!("saved {} at content {print}", tasks.join(", ")),
        (false, _) => format!("{}: nothing changed since it was saved", tasks.join(", ")),
    };
    let mut text = summary.clone();
    if let Some(why) = &saved.deferred {
        text.push_str(&format!(
            "\n{} {why}; save again when it is over",
            paint(YELLOW, "warning:")
        ));
    }
    if let Some(why) = &saved.incomplete {
        text.push_str(&format!(
            "\n{} the tree could not be seen whole ({why}); the task can only be taken up as stale",
            paint(YELLOW, "warning:")
        ));
    }
    Ok(Reply::new(summary, &saved)
        .human(text)
        .next(Next::new("inspect", "git takeup inspect")))
}
