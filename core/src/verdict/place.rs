//! How the present place relates to a recorded one, and what that means for taking up.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Judgement, Reason, ReasonCode, Verdict, reason};
use crate::paths::shell_word_of_text;

/// Why two folders share one git folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// The `.git` of both leads to it, as in a copy of a folder whose `.git` is a file.
    Link,
    /// Its settings name the present folder (`core.worktree`).
    Setting,
    /// The present folder is named by the environment of the call (`GIT_WORK_TREE`, `GIT_DIR`).
    Environment,
    /// It belongs to the present folder, and the record was made in one that a setting or the environment named; or it was
    /// moved here from there.
    Named,
}

/// How the present place relates to the recorded one (`docs/formats/place.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Whereabouts {
    /// The same repository and work tree, where it was.
    Same,
    /// The same tokens at another path, and the old place is gone.
    Relocated,
    /// The same tokens, but another folder, and the old place still exists.
    Copied,
    /// The same tokens, but another folder, and nothing of the old place is at its path any more: the original was removed,
    /// or moved elsewhere.
    CopyOfGone,
    /// The same git folder, and so the same tokens, with another folder as its work tree; the folder of the record is there.
    Shared(Sharing),
    /// The repository is the same; the work tree it was in is another one, which still exists.
    OtherWorktree,
    /// The repository is the same; the work tree it was in is not there at present, and git keeps it: it is locked
    /// (git-worktree(1), `lock`), as one on a portable disk is.
    WorktreeAway,
    /// The repository is the same; the work tree it was in stands where git knows it, and its link to the repository leads
    /// nowhere, as after the repository was moved.
    WorktreeUnlinked,
    /// The repository is the same; the work tree it was in is gone.
    WorktreeGone,
    /// Another repository.
    OtherRepository,
}

impl Whereabouts {
    /// Tells whether the present content is compared with what was left: a moved or copied tree is the one that was left, another
    /// one is not.
    pub const fn is_compared(self) -> bool {
        match self {
            Self::Same | Self::Relocated | Self::Copied | Self::CopyOfGone | Self::Shared(_) => {
                true
            }
            Self::OtherWorktree
            | Self::WorktreeAway
            | Self::WorktreeUnlinked
            | Self::WorktreeGone
            | Self::OtherRepository => false,
        }
    }
}

/// Judges by the place alone, left in the work tree `root`; `None` at the same place.
pub(crate) fn misplaced(whereabouts: Whereabouts, root: &str) -> Option<Judgement> {
    place(whereabouts, root).map(|(verdict, reason)| Judgement {
        verdict,
        reasons: vec![reason],
    })
}

pub(super) fn place(whereabouts: Whereabouts, root: &str) -> Option<(Verdict, Reason)> {
    let at = if root.is_empty() {
        String::new()
    } else {
        format!(" ({root})")
    };
    let (code, message) = match whereabouts {
        Whereabouts::Same => return None,
        Whereabouts::OtherRepository => (
            ReasonCode::OtherRepository,
            format!("it belongs to another repository{at}"),
        ),
        Whereabouts::OtherWorktree => (
            ReasonCode::OtherWorktree,
            format!("it belongs to another work tree of this repository{at}; take it up there"),
        ),
        Whereabouts::WorktreeAway => (
            ReasonCode::OtherWorktree,
            format!(
                "the work tree it was left in{at} is not there at present, and git keeps it: take it up there when it is back"
            ),
        ),
        Whereabouts::WorktreeUnlinked => (
            ReasonCode::OtherWorktree,
            format!(
                "the link of the work tree it was left in{at} to this repository is broken, as after a move of the repository; \
                 mend it with `git worktree repair {}`, and take it up there",
                shell_word_of_text(root)
            ),
        ),
        Whereabouts::WorktreeGone => (
            ReasonCode::WorktreeGone,
            format!(
                "the work tree it was left in{at} is gone; one that is made anew at that path (`git worktree add`) takes it \
                 over with `git takeup init --moved` there"
            ),
        ),
        Whereabouts::Relocated => (
            ReasonCode::Relocated,
            format!(
                "the repository was moved here from where it was left{at}; confirm the move with `git takeup init --moved`"
            ),
        ),
        Whereabouts::Copied => (
            ReasonCode::Copied,
            format!(
                "this is a copy, and the place it was left in{at} still exists; take it up there, or make this copy a place \
                 of its own with `git takeup init --copied`"
            ),
        ),
        Whereabouts::CopyOfGone => (
            ReasonCode::Copied,
            format!(
                "this is a copy, and the place it was left in{at} is not there any more; where this copy takes its place: \
                 `git takeup init --moved`; where the original lies elsewhere now: `git takeup init --copied`"
            ),
        ),
        Whereabouts::Shared(Sharing::Link) => (
            ReasonCode::Copied,
            format!(
                "this is a copy that shares its git folder, and so its records, with the place it was left in{at}: the `.git` \
                 of both leads there; take it up there, or make a work tree of its own with `git worktree add`"
            ),
        ),
        Whereabouts::Shared(Sharing::Setting) => (
            ReasonCode::OtherWorktree,
            format!(
                "the setting core.worktree makes this folder the work tree, and it was left in another one{at} of the same git \
                 folder; take it up there, or, where the work tree is here for good: `git takeup init --moved`"
            ),
        ),
        Whereabouts::Shared(Sharing::Environment) => (
            ReasonCode::OtherWorktree,
            format!(
                "GIT_DIR and GIT_WORK_TREE make this folder the work tree, and it was left in another one{at} of the same git \
                 folder; take it up there, or, where the work tree is here for good: `git takeup init --moved`"
            ),
        ),
        Whereabouts::Shared(Sharing::Named) => (
            ReasonCode::OtherWorktree,
            format!(
                "it was left in another folder{at}, which is there: GIT_DIR, GIT_WORK_TREE or core.worktree made that the work \
                 tree of this git folder, or the git folder was moved here from there; take it up there, or tie it to this \
                 folder with `git takeup init --moved`"
            ),
        ),
    };
    Some((Verdict::MismatchedRepository, reason(code, message)))
}
