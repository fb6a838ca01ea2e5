//! `git takeup abandon`
use takeup_core::engine::{self, AbandonRequest};

use crate::context::Context;
use crate::options::{SessionArgs, TaskArgs, which};
use crate::reply::{Failure, Reply};

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
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let request = AbandonRequest {
        which: which(&args.task, &args.session),
        reason: args.reason,
    };
    let closed = engine::abandon(&context.engine(), &request)?;
    Ok(Reply::new(
        format!("task {} is given up", closed.identity.task_id),
        &closed,
    ))
}
