//! `git takeup abandon`
use takeup_core::engine::{self, AbandonRequest, EngineError};
use takeup_core::error::Exit;

use crate::ask;
use crate::context::Context;
use crate::options::{SessionArgs, TaskArgs, which};
use crate::render;
use crate::reply::{Failure, Next, Reply};

/// Arguments of `abandon`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  git takeup abandon fix-login --reason 'solved upstream'")]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,

    #[command(flatten)]
    session: SessionArgs,

    /// Why; kept as a note
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// A person's yes to giving up what a session holds that still runs
    #[arg(long)]
    confirm: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let mut request = AbandonRequest {
        which: which(&args.task, &args.session),
        reason: args.reason,
        confirmed: args.confirm,
    };
    let engine = context.engine();
    let closed = match engine::abandon(&engine, &request) {
        Err(EngineError::NeedsConfirmation { what, command }) => {
            match ask::person(context, || format!("{what}.\nGive it up?")) {
                ask::Answer::Yes => {
                    request.confirmed = true;
                    engine::abandon(&engine, &request)?
                }
                ask::Answer::No => return Err(Failure::new("declined", Exit::No, "not given up")),
                ask::Answer::Nobody => {
                    let mut failure = Failure::from(EngineError::NeedsConfirmation {
                        what,
                        command: command.clone(),
                    });
                    failure.next = Some(Next::new("confirm", command));
                    return Err(failure);
                }
            }
        }
        other => other?,
    };
    let summary = format!("task {} is given up", closed.identity.task_id);
    let running = render::running(&closed.background, context.now());
    let text = format!("{summary}\n{running}");
    Ok(Reply::new(summary, &closed).human(text.trim_end()))
}
