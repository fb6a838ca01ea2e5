//! `git takeup diff`
use takeup_core::engine::{self, DiffView};
use takeup_core::error::Exit;
use takeup_core::paths::bytes_of_text;
use takeup_core::text;

use crate::context::Context;
use crate::options::{SessionArgs, TaskArgs};
use crate::printer::{self, DIM, ago, paint};
use crate::render;
use crate::reply::{Failure, Reply};

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup diff fix-login\n  git takeup diff --name-only -z | xargs -0 ls -l\n  git takeup diff --patch\n\nExit status 1: something changed since the task was left."
)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,

    /// Since this session left it [default: the one that holds the task]
    #[arg(long, value_name = "SESSION")]
    from: Option<String>,

    #[command(flatten)]
    session: SessionArgs,

    /// Only the names of the paths
    #[arg(long, conflicts_with_all = ["stat", "patch"])]
    name_only: bool,

    /// End names with a NUL byte instead of a line end, and write them byte for byte
    #[arg(short = 'z', requires = "name_only")]
    nul: bool,

    /// Paths with what happened to them (the default)
    #[arg(long)]
    stat: bool,

    /// The text of the changes, where what was left is still in git's object database
    #[arg(short, long)]
    patch: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let view = engine::diff(
        &context.engine(),
        args.task.named().as_deref(),
        args.from.as_deref(),
        args.session.session.as_deref(),
        args.patch,
    )?;
    let exit = if view.equal { Exit::Done } else { Exit::No };
    let summary = if view.equal {
        format!("task {}: the content is what was left", view.task_id)
    } else {
        let paths = text::count(view.changes.paths.len(), "path", "paths");
        match (&view.changes.incomplete, view.changes.paths.len()) {
            (None, _) => format!("task {}: {paths} changed since it was left", view.task_id),
            (Some(_), 0) => format!(
                "task {}: the content is not what was left; which paths changed is not known",
                view.task_id
            ),
            (Some(_), _) => format!(
                "task {}: {paths} changed since it was left, perhaps more",
                view.task_id
            ),
        }
    };
    if args.name_only && args.nul && !context.json {
        let mut bytes = Vec::new();
        for changed in &view.changes.paths {
            bytes.extend(bytes_of_text(&changed.path).unwrap_or_default());
            bytes.push(0);
        }
        // A reader that went away is no failure.
        let _done: std::io::Result<()> = printer::out_raw(&bytes);
        return Ok(Reply::silent(exit));
    }
    let text = if args.name_only {
        view.changes
            .paths
            .iter()
            .fold(String::new(), |text, changed| {
                text + &changed.path
                    + "
"
            })
    } else {
        page(&view, &summary, context)
    };
    Ok(Reply::new(summary, &view).human(text).exit(exit))
}

fn page(view: &DiffView, summary: &str, context: &Context) -> String {
    let left = format!(
        "left {} by {}",
        ago(context.now(), view.left.at),
        view.session_id
    );
    let mut out = format!("{summary}\n{}\n", paint(DIM, left));
    if !view.since.is_empty() {
        let since = render::since(&view.since, context.now());
        out.push_str(&printer::field("  since", 11, &since));
    }
    out.push_str(&render::changed(&view.changes, usize::MAX));
    for patch in &view.patches {
        out.push('\n');
        match (&patch.patch, &patch.why) {
            (Some(patch), _) => out.push_str(&text::clean(patch, 1_000_000)),
            (None, why) => {
                let why = why.as_deref().unwrap_or("no patch");
                out.push_str(&format!(
                    "{}: {}\n",
                    patch.path,
                    paint(DIM, text::one_line(why, 200))
                ));
            }
        }
    }
    out
}
