//! `git takeup bg adopt`
use takeup_core::background::{self, look};

use super::show::ShowData;
use super::view::TaskData;
use super::{Lender, session, settle, store};
use crate::context::Context;
use crate::printer::{BOLD, DIM, paint, shell};
use crate::reply::{Failure, Next, Reply};

/// Arguments of `bg adopt`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  git takeup bg adopt 4711 --name server\n\nIts end will be seen; its exit status will not, since only a parent sees that, and its output goes where it went."
)]
pub(crate) struct Args {
    /// The number of the process
    pid: u32,

    /// A name for it
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Reply, Failure> {
    let store = store(context)?;
    let now = context.clock.now();
    let lender = Lender::new(context);
    let host = lender.host(context);
    let caller = session(None, context)?;
    let started = background::adopt(&store, args.pid, args.name.as_deref(), caller, &host)?;
    settle(&store, &host);
    let id = started.record.id;
    let seen = look(&store, &id, &*context.processes)?;
    let task = TaskData::new(&store, seen, now);
    let human = format!(
        "{} {} {}\n{}",
        paint(BOLD, &task.name),
        task.painted(),
        paint(DIM, &id),
        started.process.describe().trim_end_matches(',')
    );
    let next = Next::new("wait", shell(["git", "takeup", "bg", "wait", id.as_str()]));
    let summary = format!("process {} is watched as {id}", args.pid);
    Ok(Reply::new(summary, &ShowData::without_events(task))
        .human(human)
        .next(next))
}
