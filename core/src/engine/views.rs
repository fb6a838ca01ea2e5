//! Small shapes that several answers share.
use schemars::JsonSchema;
use serde::Serialize;

use super::candidate::IdentityView;
use crate::ids::SessionRef;
use crate::paths::{shell_word_of_text, text_of_path};
use crate::repository::Place;
use crate::text;
use crate::verdict::{Facts, ReviewGate, Sharing, Verdict, Whereabouts};

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextView {
    /// The step, as a stable word.
    pub action: String,
    /// The words of a command that does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl NextView {
    /// Makes a step with the words of its command.
    pub fn new(action: &str, words: &[&str]) -> Self {
        Self {
            action: action.to_owned(),
            command: Some(text::command_line(words.iter().copied())),
        }
    }

    /// Says that there is nothing to do.
    pub(super) fn none() -> Self {
        Self {
            action: "none".to_owned(),
            command: None,
        }
    }
}

/// Says the step that comes next for a candidate, seen from the place `here`.
pub(super) fn next_of(
    identity: &IdentityView,
    session: &SessionRef,
    verdict: Verdict,
    facts: &Facts,
    token: Option<&str>,
    here: &Place,
) -> NextView {
    let task = identity.task_id.as_str();
    let from = session.id.as_str();
    match verdict {
        Verdict::ResumeVerification => NextView::new(
            "resume",
            &["git", "takeup", "resume", task, "--from", from, "--confirm"],
        ),
        Verdict::StaleTask => {
            let mut words = vec!["git", "takeup", "resume", task, "--from", from];
            match token {
                Some(token) => words.extend(["--confirm", token]),
                None => words.push("--rebuild"),
            }
            NextView::new("resume", &words)
        }
        Verdict::HumanReview => match &facts.review {
            Some(ReviewGate::Pending(id) | ReviewGate::Decided(id)) => NextView::new(
                "human-review",
                &["git", "takeup", "review", "show", id.as_str()],
            ),
            None => NextView::new("human-review", &["git", "takeup", "review", "list"]),
        },
        Verdict::InUse => NextView {
            action: "wait".to_owned(),
            command: None,
        },
        Verdict::NotResumable => NextView::new("show", &["git", "takeup", "show", task]),
        Verdict::MismatchedRepository => match facts.whereabouts {
            Whereabouts::Relocated | Whereabouts::CopyOfGone => {
                NextView::new("confirm-move", &["git", "takeup", "init", "--moved"])
            }
            Whereabouts::Copied => {
                NextView::new("confirm-copy", &["git", "takeup", "init", "--copied"])
            }
            // What shares the folder is not the place that its own `.git` would lead to.
            Whereabouts::Shared(Sharing::Setting | Sharing::Environment | Sharing::Named) => {
                let folder = shell_word_of_text(&text_of_path(&here.git_dir));
                let root = shell_word_of_text(&facts.root);
                NextView {
                    action: "go-there".to_owned(),
                    command: Some(format!(
                        "git --git-dir={folder} --work-tree={root} takeup inspect"
                    )),
                }
            }
            Whereabouts::OtherWorktree | Whereabouts::Shared(Sharing::Link) => {
                let root = shell_word_of_text(&facts.root);
                NextView {
                    action: "go-there".to_owned(),
                    command: Some(format!("git -C {root} takeup inspect")),
                }
            }
            Whereabouts::WorktreeGone if facts.status.is_closed() => NextView::none(),
            Whereabouts::WorktreeUnlinked => {
                let root = shell_word_of_text(&facts.root);
                NextView {
                    action: "repair".to_owned(),
                    command: Some(format!("git worktree repair {root}")),
                }
            }
            // Another work tree was made in its place.
            Whereabouts::WorktreeGone if identity.repository_root == text_of_path(&here.root) => {
                NextView::new("confirm-move", &["git", "takeup", "init", "--moved"])
            }
            Whereabouts::WorktreeAway | Whereabouts::WorktreeGone if identity.revision == 0 => {
                // No task has it: only hooks told of the session.
                NextView::new("show", &["git", "takeup", "sessions", "show", from])
            }
            Whereabouts::WorktreeAway | Whereabouts::WorktreeGone => {
                NextView::new("show", &["git", "takeup", "show", task])
            }
            Whereabouts::Same | Whereabouts::OtherRepository => NextView::none(),
        },
    }
}

/// Says the step that comes next for a task that the calling session holds and works on: what changed is its own work, and
/// there is nothing to take up. `None` where the verdict does not turn on the content.
pub(super) fn next_at_work(identity: &IdentityView, verdict: Verdict) -> Option<NextView> {
    let action = match verdict {
        Verdict::ResumeVerification => "evaluate",
        Verdict::StaleTask => "save",
        Verdict::HumanReview
        | Verdict::InUse
        | Verdict::NotResumable
        | Verdict::MismatchedRepository => return None,
    };
    let task = identity.task_id.as_str();
    let session = identity.session_id.as_str();
    Some(NextView::new(
        action,
        &["git", "takeup", action, task, "--session", session],
    ))
}
