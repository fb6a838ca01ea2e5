//! What happened to a work tree, seen by a git hook: who, when, from where to where.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{Fingerprint, Oid, SessionRef, WorktreeId};
use crate::time::Time;

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// The work tree.
    pub worktree_id: WorktreeId,
    /// The git hook: `post-commit`, `post-checkout`, `post-merge`, `post-rewrite`, `post-applypatch`.
    pub event: String,
    /// When.
    pub at: Time,
    /// HEAD before, where known.
    pub head_before: Option<Oid>,
    /// HEAD after; `None` when unborn.
    pub head_after: Option<Oid>,
    /// The branch after; `None` when detached.
    pub branch: Option<String>,
    /// The git operation in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The content, where it was looked at in time.
    pub fingerprint: Option<Fingerprint>,
    /// A detached recorder will look, and has not yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
    /// The live session among the caller's ancestors; `None` is a person.
    pub by: Option<SessionRef>,
}

/// One thing that was seen, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Happening {
    /// When.
    pub at: Time,
    /// The git hook that saw it.
    pub event: String,
    /// Whose doing it was; absent is a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<SessionRef>,
    /// What, in words: `commit d4e5f6a7b8 on main`.
    pub what: String,
}

/// Tells what was seen of a work tree after a moment, oldest first.
pub fn since(seen: &[Observation], worktree: &WorktreeId, after: Time) -> Vec<Happening> {
    let mut before: Option<&Observation> = None;
    let mut happenings = Vec::new();
    for one in seen.iter().filter(|one| &one.worktree_id == worktree) {
        if one.at > after {
            let from = before.and_then(|before| before.branch.as_deref());
            happenings.push(Happening {
                at: one.at,
                event: one.event.clone(),
                by: one.by.clone(),
                what: one.describe(before.is_some_and(|_| from != one.branch.as_deref())),
            });
        }
        before = Some(one);
    }
    happenings
}

impl Observation {
    /// Says in words what happened. `other_branch` tells whether the work tree was on another branch before: a checkout of
    /// another branch at the same commit is told from one of files.
    pub fn describe(&self, other_branch: bool) -> String {
        let short = |id: &Option<Oid>| {
            id.as_ref().map_or_else(
                || "no commit".to_owned(),
                |id| id.as_str().chars().take(10).collect(),
            )
        };
        let after = short(&self.head_after);
        let branch = self
            .branch
            .as_ref()
            .map(|branch| crate::text::one_line(branch, 80));
        let on = branch
            .as_ref()
            .map_or_else(|| "a detached HEAD".to_owned(), Clone::clone);
        let what = match self.event.as_str() {
            "post-commit" => format!("commit {after} on {on}"),
            "post-checkout" if self.head_before == self.head_after && !other_branch => {
                format!("checkout on {on} at {after}")
            }
            "post-checkout" => format!(
                "checkout of {}",
                branch.map_or_else(|| after.clone(), |branch| format!("{branch} at {after}"))
            ),
            "post-merge" => format!("merge into {on}, now {after}"),
            "post-rewrite" => format!("{} rewritten to {after} on {on}", short(&self.head_before)),
            "post-applypatch" => format!("patch applied as {after} on {on}"),
            _ => format!("HEAD at {after} on {on}"),
        };
        match &self.operation {
            Some(operation) => format!(
                "{what} ({} in progress)",
                crate::text::one_line(operation, 20)
            ),
            None => what,
        }
    }

    /// Tells whether both are records of the same moment: work tree, hook, time and HEAD.
    pub fn is_same_moment(&self, other: &Self) -> bool {
        self.at == other.at
            && self.event == other.event
            && self.worktree_id == other.worktree_id
            && self.head_after == other.head_after
    }
}
