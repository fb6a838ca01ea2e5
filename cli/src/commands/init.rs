//! `git takeup init`
use takeup_core::engine::{self, InitMode, Initialised};

use crate::context::Context;
use crate::reply::{Failure, Next, Reply};

/// Arguments of `init`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup init\n  git takeup init --moved    # after the repository's folder was moved or renamed"
)]
pub(crate) struct Args {
    /// The repository was moved here, or a work tree was made anew in its old place: the tasks belong to this place now
    #[arg(long, conflicts_with = "copied")]
    moved: bool,

    /// This is a copy: make it a place of its own; the tasks stay with the original
    #[arg(long)]
    copied: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let mode = match (args.moved, args.copied) {
        (true, _) => InitMode::Moved,
        (_, true) => InitMode::Copied,
        _ => InitMode::Plain,
    };
    let done = engine::init(&context.engine(), mode)?;
    let summary = match mode {
        InitMode::Moved if done.rebound > 0 => format!(
            "{} to {} now",
            takeup_core::text::count(done.rebound, "task record belongs", "task records belong"),
            done.repository_root
        ),
        InitMode::Moved => "no task was left at another place; nothing changed".to_owned(),
        InitMode::Copied if done.changed => format!(
            "this copy is a place of its own; {}{}",
            stayed(&done),
            if done.rebound > 0 {
                ", and what was begun here stays here"
            } else {
                ""
            }
        ),
        InitMode::Copied => "this is no copy; nothing changed".to_owned(),
        InitMode::Plain if done.changed => format!(
            "takeup keeps its ledger in the git folder of {}",
            done.repository_root
        ),
        InitMode::Plain => "takeup is used here already; nothing changed".to_owned(),
    };
    Ok(Reply::new(summary, &done).next(Next::new("start", "git takeup start TITLE")))
}

/// Says what became of the tasks that a copy brought along.
fn stayed(done: &Initialised) -> String {
    let stay = takeup_core::text::count(done.left_behind, "task stays", "tasks stay");
    let Some(first) = done.archived.first() else {
        return format!("{stay} with the original");
    };
    let kept = takeup_core::text::count(done.archived.len(), "task", "tasks");
    format!(
        "{kept} of the original, which is not where it was, cannot be taken up here; the records are kept: git takeup show {first}"
    )
}
