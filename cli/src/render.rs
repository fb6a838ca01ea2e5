//! How tasks and their verdicts look to people.
use std::fmt::Write as _;

use anstyle::Style;
use takeup_core::background::Watch;
use takeup_core::engine::{
    AgentRunningView, Candidate, Changed, ChangedPlace, Changes, CheckView, NextView, Running, Verb,
};
use takeup_core::identity::OpenEffect;
use takeup_core::observation::Happening;
use takeup_core::plan::Proof;
use takeup_core::process::Liveness;
use takeup_core::text;
use takeup_core::time::Time;
use takeup_core::verdict::{ReasonCode, Verdict};

use crate::printer::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, ago, cut, field, paint, when, width};

/// Where the second column begins.
const COLUMN: usize = 11;
/// How many changed paths are listed.
const PATHS: usize = 12;

/// Returns the style of a verdict.
pub(crate) const fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::ResumeVerification => GREEN,
        Verdict::StaleTask | Verdict::HumanReview => YELLOW,
        Verdict::InUse => CYAN,
        Verdict::NotResumable => DIM,
        Verdict::MismatchedRepository => RED,
    }
}

/// Shows one candidate on a few lines.
pub(crate) fn candidate(found: &Candidate, now: Time) -> String {
    let mut out = String::new();
    let identity = &found.identity;
    let title = text::one_line(&identity.title, 200);
    let head = if title == identity.task_id.as_str() {
        String::new()
    } else {
        format!("  {title}")
    };
    let verdict = paint(style(found.verdict), found.verdict.code());
    let room =
        width().saturating_sub(identity.task_id.as_str().len() + found.verdict.code().len() + 4);
    line(
        &mut out,
        &format!(
            "{}  {verdict}{}",
            paint(BOLD, &identity.task_id),
            paint(DIM, cut(&head, room))
        ),
    );

    let mut session = format!("{}:{}", found.agent, identity.session_id);
    if found.own {
        session.push_str(" (this session)");
    }
    if let Liveness::Live { .. } = found.liveness {
        session.push_str(" (open)");
    }
    out.push_str(&field("  session", COLUMN, &session));
    out.push_str(&field("  left", COLUMN, &left(found, now)));
    let mut reasons = found
        .reasons
        .iter()
        .filter(|reason| !quiet(found, reason.code));
    if let Some(first) = reasons.next() {
        let mut why = first.message.clone();
        for reason in reasons {
            let _: std::fmt::Result = write!(why, "; {}", reason.message);
        }
        out.push_str(&field("  why", COLUMN, &text::one_line(&why, 2_000)));
    }
    if !found.since.is_empty() {
        out.push_str(&field("  since", COLUMN, &since(&found.since, now)));
    }
    if let Some(changes) = &found.changes {
        out.push_str(&changed(changes, PATHS));
    }
    out.push_str(&calls(&found.open_effects));
    for todo in found.todos.iter().take(TODOS) {
        out.push_str(&field("  todo", COLUMN, &text::one_line(&todo.text, 120)));
    }
    if let Some(more) = found
        .todos
        .len()
        .checked_sub(TODOS)
        .filter(|more| *more > 0)
    {
        out.push_str(&field("  todo", COLUMN, &format!("and {more} more")));
    }
    for check in &found.evidence {
        out.push_str(&field("  check", COLUMN, &check_line(check, now)));
    }
    out.push_str(&next(&found.next));
    out
}

/// How many todos of a session are told.
const TODOS: usize = 5;

/// Tells of calls that may or may not have happened.
pub(crate) fn calls(effects: &[OpenEffect]) -> String {
    let mut out = String::new();
    for effect in effects.iter().take(5) {
        let what = format!(
            "{} {} may or may not have happened",
            effect.tool,
            text::one_line(&effect.argument, 120)
        );
        out.push_str(&field("  call", COLUMN, &what));
    }
    out
}

/// Says of a task that was closed what git is in the middle of.
pub(crate) fn unsettled(why: &str) -> String {
    format!(
        "{} {}; the content counts as it is now, and a commit may hold another",
        paint(YELLOW, "note:"),
        text::one_line(why, 200)
    )
}

/// Says why it is not known whether a task stayed inside its boundary.
pub(crate) fn unbounded(why: &str) -> String {
    let what = format!("not known: {}", text::one_line(why, 300));
    field("  boundary", COLUMN, &what)
}

/// Says that the present content could not be seen whole.
pub(crate) fn unseen(why: &str) -> String {
    let what = format!(
        "the tree could not be seen whole: {}",
        text::one_line(why, 500)
    );
    field("  content", COLUMN, &what)
}

/// Says that records of a task may be lost in damage.
pub(crate) fn records_lost() -> String {
    let what = "records of this task may be lost: look whether its plan and its questions are whole; checks have to run again";
    field("  damaged", COLUMN, what)
}

/// Tells what runs in the background for a task, with the commands that look at it and stop it.
pub(crate) fn running(running: &Running, now: Time) -> String {
    let mut out = String::new();
    for task in &running.tasks {
        let since = ago(now, task.created_at);
        let unknown = match &task.watch {
            Watch::Unknown { .. } => ", not seen from here",
            Watch::Nobody | Watch::Supervisor { .. } | Watch::Unwatched { .. } => "",
        };
        let what = format!(
            "{}: {}, since {since}{unknown}",
            text::one_line(&task.name, 60),
            text::as_it_is(&task.command, 120)
        );
        out.push_str(&field("  runs", COLUMN, &what));
        for command in [&task.look, &task.stop] {
            line(
                &mut out,
                &format!("{}{}", " ".repeat(COLUMN), paint(CYAN, command)),
            );
        }
    }
    out.push_str(&of_agents(&running.of_agents));
    for task in &running.ended {
        let when = task
            .ended_at
            .map_or_else(String::new, |at| format!(", {}", ago(now, at)));
        let what = format!(
            "{} {}{when}: {}",
            text::one_line(&task.name, 60),
            task.status,
            text::one_line(&task.how, 300)
        );
        out.push_str(&field("  ended", COLUMN, &what));
        line(
            &mut out,
            &format!("{}{}", " ".repeat(COLUMN), paint(CYAN, &task.look)),
        );
    }
    for issue in &running.issues {
        out.push_str(&format!("{}\n", crate::commands::bg::damaged(issue)));
    }
    out
}

/// Tells what agents run in the background by their own means.
pub(crate) fn of_agents(tasks: &[AgentRunningView]) -> String {
    let mut out = String::new();
    for task in tasks {
        let name = task.name.as_deref().unwrap_or(&task.id);
        let label = if task.runs { "  runs" } else { "  may run" };
        let what = format!(
            "{}, of {}: {}",
            text::one_line(name, 60),
            task.session_id.agent,
            text::one_line(&task.proof, 200)
        );
        out.push_str(&field(label, COLUMN, &what));
        line(
            &mut out,
            &format!("{}{}", " ".repeat(COLUMN), paint(CYAN, &task.look)),
        );
    }
    out
}

/// How many happenings are told, the last ones.
const HAPPENINGS: usize = 5;

/// Tells what git's hooks saw since.
pub(crate) fn since(happenings: &[Happening], now: Time) -> String {
    let first = happenings.len().saturating_sub(HAPPENINGS);
    let mut told: Vec<String> = happenings
        .iter()
        .skip(first)
        .map(|one| {
            let by = one
                .by
                .as_ref()
                .map_or_else(|| "a person".to_owned(), ToString::to_string);
            format!("{}: {} by {by}", when(now, one.at), one.what)
        })
        .collect();
    if first > 0 {
        told.insert(0, format!("{first} earlier"));
    }
    told.join("; ")
}

/// Reasons that the other lines say already. Whether a session still lives is asked only of others, and while its task is
/// open.
fn quiet(found: &Candidate, code: ReasonCode) -> bool {
    let asked = !found.own && found.verdict != Verdict::NotResumable;
    code == ReasonCode::EffectUnknown || (code == ReasonCode::LivenessUnknown && !asked)
}

fn left(found: &Candidate, now: Time) -> String {
    match &found.left {
        Some(left) => {
            let event = serde_json::to_value(left.event).ok();
            let event = event
                .as_ref()
                .and_then(|value| value.as_str())
                .unwrap_or_default()
                .to_owned();
            let spot = spot(left.branch.as_deref(), left.head.as_deref());
            let after = left
                .after
                .as_ref()
                .map(|after| format!(", then {after}"))
                .unwrap_or_default();
            let by = left
                .by
                .as_ref()
                .map(|by| format!(" by {by}"))
                .unwrap_or_default();
            format!("{} ({event}{by}), on {spot}{after}", when(now, left.at))
        }
        None if found.identity.latest_working_tree_fingerprint.is_some() => format!(
            "{}, by the agent's own record",
            ago(now, found.identity.updated_at)
        ),
        None => format!(
            "{}, and nothing was recorded of the content",
            ago(now, found.identity.updated_at)
        ),
    }
}

/// Names a branch and its commit, as in `main at b1c00c4d52`.
pub(crate) fn spot(branch: Option<&str>, head: Option<&str>) -> String {
    let branch = text::one_line(branch.unwrap_or("a detached HEAD"), 200);
    match head {
        Some(head) => format!("{branch} at {}", head.chars().take(10).collect::<String>()),
        None => format!("{branch}, with no commit yet"),
    }
}

/// Shows where one check stands.
pub(crate) fn check_line(check: &CheckView, now: Time) -> String {
    let when = check
        .at
        .map(|at| format!(", {}", ago(now, at)))
        .unwrap_or_default();
    let state = match check.proof {
        Proof::Fresh => "proved on this content",
        Proof::Missing => "never run",
        Proof::Failed => "failed on this content",
        Proof::Outdated => "ran on other content",
        Proof::Unsteady => "the content changed while it ran",
        Proof::NoControl => "its control did not fail, so it proves nothing",
        Proof::OnlyReported => "only reported",
        Proof::Elsewhere => "ran in another folder than the top of the work tree",
    };
    let running = check.running.as_ref().map_or_else(String::new, |id| {
        format!("; it runs in the background: {id}")
    });
    let by = check
        .by
        .as_ref()
        .map_or_else(String::new, |by| format!(" by {by}"));
    format!(
        "{}: {state}{when}{by}{running}",
        text::as_it_is(&check.command, 120)
    )
}

/// Shows the next command, ready to paste.
pub(crate) fn next(next: &NextView) -> String {
    match &next.command {
        Some(command) => format!("  {}{}\n", paint(DIM, "next     "), paint(CYAN, command)),
        None => String::new(),
    }
}

/// Shows what changed, at most `most` paths.
pub(crate) fn changed(changes: &Changes, most: usize) -> String {
    let mut out = String::new();
    let many = changes.paths.len() > 1;
    if many {
        let own = changes.paths.iter().filter(|path| path.own).count();
        let own = match own {
            0 => "none of them the task's own".to_owned(),
            own if own == changes.paths.len() => "all of them the task's own".to_owned(),
            own => format!("{own} of them the task's own"),
        };
        let known = changes.incomplete.as_ref().map_or("", |_| " known");
        let said = format!("{} paths{known}, {own}", changes.paths.len());
        out.push_str(&field("  changed", COLUMN, &said));
    }
    for (number, path) in changes.paths.iter().take(most).enumerate() {
        let label = if number == 0 && !many {
            "  changed"
        } else {
            ""
        };
        let pad = " ".repeat(COLUMN.saturating_sub(label.len()));
        line(
            &mut out,
            &format!("{}{pad}{}", paint(DIM, label), changed_line(path)),
        );
    }
    let more = changes.paths.len().saturating_sub(most);
    if more > 0 {
        out.push_str(&field(
            "",
            COLUMN,
            &format!("and {more} more: git takeup diff"),
        ));
    }
    if changes
        .paths
        .iter()
        .any(|path| path.place == ChangedPlace::Worktree)
    {
        let said = "a work tree of this repository lies inside this one, so each commit in it changes the content here: \
                    ignore its folder";
        out.push_str(&field("", COLUMN, said));
    }
    for (number, commit) in changes.commits.iter().take(5).enumerate() {
        let label = if number == 0 { "  commits" } else { "" };
        let id: String = commit.id.as_str().chars().take(10).collect();
        out.push_str(&field(
            label,
            COLUMN,
            &format!(
                "{id} {} ({})",
                text::one_line(&commit.subject, 300),
                text::one_line(&commit.author, 100)
            ),
        ));
    }
    let more = changes.commits.len().saturating_sub(5);
    if more > 0 {
        out.push_str(&field("", COLUMN, &format!("and {more} more")));
    }
    if let Some(why) = &changes.incomplete {
        out.push_str(&field("  unknown", COLUMN, &text::one_line(why, 2_000)));
    }
    out
}

/// Shows one changed path.
pub(crate) fn changed_line(changed: &Changed) -> String {
    let verb = match changed.verb {
        Verb::Added => paint(GREEN, "A"),
        Verb::Modified => paint(YELLOW, "M"),
        Verb::Deleted => paint(RED, "D"),
    };
    let outside = if changed.inside_boundary {
        ""
    } else {
        ", outside the boundary"
    };
    let by = changed.by.as_ref().map_or_else(String::new, |by| {
        format!(", recorded by {}", text::one_line(&by.to_string(), 40))
    });
    let modes = changed.modes.as_ref().map_or_else(String::new, |modes| {
        format!(", mode {} was {}", modes.there, modes.left)
    });
    let words = changed.place.words();
    let note = paint(DIM, format!("({words}{modes}{by}{outside})"));
    format!(
        "{verb} {} {note}",
        cut(
            &text::path(&changed.path, 4_096),
            width().saturating_sub(COLUMN + 30).max(20)
        )
    )
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}
