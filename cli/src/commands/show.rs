//! `git takeup show`
use takeup_core::engine::{self, TaskView};
use takeup_core::review::ReviewState;
use takeup_core::text;

use crate::context::Context;
use crate::options::{SessionArgs, TaskArgs};
use crate::printer::{BOLD, DIM, ago, field, paint};
use crate::render;
use crate::reply::{Failure, Reply};

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  git takeup show fix-login")]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,

    #[command(flatten)]
    session: SessionArgs,

    /// Trust no file metadata and no cache: read everything
    #[arg(long)]
    verify: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let view = engine::show(
        &context.engine(),
        args.task.named().as_deref(),
        args.session.session.as_deref(),
        args.verify,
    )?;
    let summary = format!(
        "task {} in {}",
        view.task_id,
        text::count(view.candidates.len(), "session", "sessions")
    );
    Ok(Reply::new(summary, &view).human(page(&view, context)))
}

fn page(view: &TaskView, context: &Context) -> String {
    let now = context.now();
    let mut out = format!(
        "{}  {}\n",
        paint(BOLD, &view.task_id),
        text::one_line(&view.title, 200)
    );
    out.push_str(&field("  started", 11, &ago(now, view.created_at)));
    if view.archived {
        out.push_str(&field("  archived", 11, "yes"));
    }
    if !view.boundary.allowed.is_empty() {
        out.push_str(&field(
            "  may edit",
            11,
            &text::one_line(&view.boundary.allowed.join(" "), 2_000),
        ));
    }
    if !view.boundary.avoided.is_empty() {
        out.push_str(&field(
            "  avoids",
            11,
            &text::one_line(&view.boundary.avoided.join(" "), 2_000),
        ));
    }
    match (view.plan.checks.is_empty(), view.plan.no_checks) {
        (true, true) => out.push_str(&field("  plan", 11, "nothing has to be proved")),
        (true, false) => out.push_str(&field("  plan", 11, "no checks yet")),
        (false, _) => {
            for check in &view.plan.checks {
                out.push_str(&field("  check", 11, &text::one_line(&check.command, 200)));
            }
        }
    }
    for note in &view.notes {
        let label = format!("{} {}", ago(now, note.at), note.by);
        out.push_str(&field(
            "  note",
            11,
            &format!("{} — {label}", text::one_line(&note.text, 2_000)),
        ));
    }
    for review in &view.reviews {
        let state = match &review.state {
            ReviewState::Pending => "waits",
            ReviewState::Decided { .. } => "decided, not yet applied",
            ReviewState::Applied { decision, .. } if decision.approved => "approved",
            ReviewState::Applied { .. } => "rejected",
        };
        out.push_str(&field(
            "  review",
            11,
            &format!(
                "{} {state}: {}",
                review.review_id,
                text::one_line(&review.title, 200)
            ),
        ));
    }
    for candidate in &view.candidates {
        out.push('\n');
        out.push_str(&render::candidate(candidate, now));
    }
    let running = render::running(&view.background, now);
    if !running.is_empty() {
        out.push_str(&format!("\n{running}"));
    }
    if !view.runs.is_empty() {
        out.push_str(&format!(
            "\n{}\n",
            paint(
                DIM,
                format!(
                    "{} kept; only those on the present content count",
                    text::count(view.runs.len(), "run of a check is", "runs of checks are")
                )
            )
        ));
    }
    out
}
