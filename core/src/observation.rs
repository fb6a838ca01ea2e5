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

impl Observation {
    /// Tells whether both are records of the same moment: work tree, hook, time and HEAD.
    pub fn is_same_moment(&self, other: &Self) -> bool {
        self.at == other.at
            && self.event == other.event
            && self.worktree_id == other.worktree_id
            && self.head_after == other.head_after
    }
}
