//! `git takeup inspect`
use takeup_core::engine::{self, Candidate, InspectRequest, Inspection};
use takeup_core::paths::text_of_path;
use takeup_core::repository::known_places;
use takeup_core::text;
use takeup_core::verdict::{ReasonCode, Verdict};

use crate::context::Context;
use crate::options::{SessionArgs, TaskArgs};
use crate::printer::{BOLD, DIM, RED, YELLOW, paint};
use crate::render;
use crate::reply::{Failure, Next, Reply};

/// Arguments of `inspect`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup inspect\n  git takeup inspect fix-login --json\n\nReads only. The verdicts: resume-verification, stale-task, human-review, in-use,\nnot-resumable, mismatched-repository."
)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,

    /// Only what this session left: its id, the beginning of that, or the word its agent calls it by
    #[arg(long, value_name = "SESSION")]
    from: Option<String>,

    #[command(flatten)]
    session: SessionArgs,

    /// Show closed tasks too (JSON always holds them)
    #[arg(long)]
    all: bool,

    /// Trust no file metadata and no cache: read everything
    #[arg(long)]
    verify: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let named = args.task.named().is_some() || args.from.is_some();
    let request = InspectRequest {
        task: args.task.named(),
        from: args.from,
        session: args.session.session,
        agent: args.session.agent,
        verify: args.verify,
    };
    let found = engine::inspect(&context.engine(), &request)?;
    let mut text = page(&found, context, args.all || named, "git");
    // The page of the whole place lists them by itself.
    let running = render::running(&found.background, context.now());
    if !running.is_empty() {
        text.push_str(&format!("\n{}\n{running}", paint(BOLD, "background")));
    }
    let mut reply = Reply::new(summary(&found), &found).human(text);
    if let Some(first) = found.candidates.first() {
        reply.next = Some(Next {
            action: first.next.action.clone(),
            command: first.next.command.clone(),
        });
    }
    Ok(reply)
}

/// Says in one line what was found.
pub(crate) fn summary(found: &Inspection) -> String {
    let damaged = found.issues.len();
    if found.candidates.is_empty() {
        return if damaged > 0 {
            format!("no task here that can be read; {damaged} damaged")
        } else if found.used {
            "no task here".to_owned()
        } else {
            "takeup was never used here, and no agent whose records are read left anything"
                .to_owned()
        };
    }
    let mut parts = Vec::new();
    for verdict in Verdict::ALL {
        let count = found
            .candidates
            .iter()
            .filter(|candidate| candidate.verdict == verdict)
            .count();
        if count > 0 {
            parts.push(format!("{count} {}", verdict.code()));
        }
    }
    if damaged > 0 {
        parts.push(format!("{damaged} damaged"));
    }
    parts.join(", ")
}

/// Shows what was found on one page. `git` begins a command that means this place.
pub(crate) fn page(found: &Inspection, context: &Context, all: bool, git: &str) -> String {
    let mut out = String::new();
    let spot = render::spot(
        found.repository.branch.as_deref(),
        found.repository.head.as_deref(),
    );
    let operation = found
        .repository
        .operation
        .as_ref()
        .map(|name| format!(", {name} in progress"))
        .unwrap_or_default();
    out.push_str(&format!(
        "{}\n",
        paint(
            DIM,
            format!("{} on {spot}{operation}", found.repository.root)
        )
    ));
    if let Some(why) = &found.incomplete {
        out.push_str(&format!(
            "{} the tree could not be seen whole: {}\n",
            paint(YELLOW, "warning:"),
            text::one_line(why, 500)
        ));
    }
    let is_shown = |candidate: &&Candidate| {
        let closed = candidate.identity.status.is_closed();
        all || candidate.verdict != Verdict::NotResumable && !closed
    };
    for candidate in found.candidates.iter().filter(is_shown) {
        out.push('\n');
        out.push_str(&render::candidate(candidate, context.now()));
    }
    let hidden = found
        .candidates
        .iter()
        .filter(|candidate| !is_shown(candidate))
        .count();
    if hidden > 0 {
        out.push_str(&format!(
            "\n{}\n",
            paint(
                DIM,
                format!(
                    "{}: {git} takeup inspect --all",
                    text::count(hidden, "closed session", "closed sessions")
                )
            )
        ));
    }
    if found.candidates.is_empty() {
        out.push_str(&format!("{}\n", summary(found)));
        let root = takeup_core::paths::path_of_text(&found.repository.root);
        out.push_str(&crate::unread::page(context, root.as_deref()));
        if let Some(line) = unused_now(found, context) {
            out.push_str(&format!("{} {line}\n", paint(YELLOW, "warning:")));
        }
        if !found.used {
            // A folder that was renamed has nothing under its new name.
            let line = "what agents left elsewhere, or here before the folder got this name: git takeup sessions --all";
            out.push_str(&format!("{}\n", paint(DIM, line)));
        }
    }
    let unrecorded = |candidate: &Candidate| {
        let mut reasons = candidate.reasons.iter();
        reasons.any(|reason| reason.code == ReasonCode::NeverRecorded)
    };
    if !found.used && found.candidates.iter().any(unrecorded) {
        let line = "after `git takeup init` here the hooks of agents (`git takeup agents`) record what their sessions leave";
        out.push_str(&format!("\n{}\n", paint(DIM, line)));
    }
    for issue in &found.issues {
        let message = format!("{}: {}", text_of_path(&issue.path), issue.message);
        out.push_str(&format!(
            "{} {}\n",
            paint(RED, "damaged:"),
            text::one_line(&message, 600)
        ));
    }
    out
}

/// Says that takeup was used in this folder when another repository stood in it.
fn unused_now(found: &Inspection, context: &Context) -> Option<String> {
    if found.used {
        return None;
    }
    let known = known_places(&context.env).items;
    known
        .iter()
        .any(|place| place.root == found.repository.root)
        .then(|| {
            "takeup was used in this folder: its records were removed, or lie in another repository's git folder that is gone from here"
                .to_owned()
        })
}
