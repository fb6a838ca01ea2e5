//! The record of one look at a work tree.
use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{Fingerprint, Oid, SessionRef};
use crate::time::Time;

/// The version of the definition of [`TreeRecord::fingerprint`]; records of different versions are never equal.
pub const DEFINITION: u32 = 1;

/// What one look at a work tree found. Only the content decides equality; the rest become reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeRecord {
    /// The version of the definition, [`DEFINITION`].
    pub definition: u32,
    /// The runtime folders that were left out, sorted, such as `.agent-context`.
    pub excluded: Vec<String>,
    /// The content, or `None` when the look was incomplete.
    pub fingerprint: Option<Fingerprint>,
    /// Why the look was incomplete; an incomplete record equals nothing, not even itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// The commit HEAD names; `None` on an unborn branch.
    pub head: Option<Oid>,
    /// The short branch name; `None` on a detached HEAD.
    pub branch: Option<String>,
    /// The tree id of the index, or `conflict:` and a SHA-256 over the unmerged entries.
    pub index_tree: Option<String>,
    /// The git operation in progress: `merge`, `rebase`, `am`, `cherry-pick`, `revert` or `bisect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Submodules that are populated, by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub submodules: Vec<Submodule>,
    /// The stash's tip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stash: Option<Oid>,
    /// Paths that differ from HEAD, sorted by path, at most [`TreeRecord::DEVIATIONS`]: the first by their bytes, and those in
    /// repositories inside as far as there is room after all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<Deviation>,
    /// How many deviations there were beyond those kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deviations_left_out: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the shape that serde asks for"
)]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl TreeRecord {
    /// How many deviations are kept.
    pub const DEVIATIONS: usize = 1_000;

    /// Tells whether both looks saw everything and saw the same content. A submodule that is checked out on one side only
    /// is a difference, though git's tree is the same: all of its files are there, or none.
    pub fn same_content(&self, other: &Self) -> bool {
        self.definition == other.definition
            && self.excluded == other.excluded
            && self.incomplete.is_none()
            && other.incomplete.is_none()
            && self.fingerprint.is_some()
            && self.fingerprint == other.fingerprint
            && self.checked_out() == other.checked_out()
    }

    /// Returns the paths of the repositories inside that are checked out, each as [`Submodule::path`].
    pub fn checked_out(&self) -> BTreeSet<&str> {
        let paths = self.submodules.iter().map(|inner| inner.path.as_str());
        paths.collect()
    }
}

/// A populated submodule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Submodule {
    /// Its path, as [`Deviation::path`].
    pub path: String,
    /// The commit checked out in it.
    pub head: Option<Oid>,
    /// Whether its content differs from that commit.
    pub dirty: bool,
}

/// A path that differs from HEAD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deviation {
    /// The path with `/`. Bytes that are not UTF-8 are written `\xNN`, and a backslash `\\`, so that no two paths meet.
    pub path: String,
    /// What differs.
    pub kind: DeviationKind,
    /// Whether the index holds the path as it is on disk.
    pub staged: bool,
    /// The mode on disk in octal, such as `100644`; `None` when deleted.
    pub mode: Option<String>,
    /// The object id of the content in git's form; `None` when deleted.
    pub oid: Option<Oid>,
    /// Of what is [`DeviationKind::Nested`]: whether it is new, so that no HEAD has it, neither that of the repository it lies in
    /// nor the outer one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
}

impl Deviation {
    /// Tells whether HEAD has the path.
    pub fn is_in_head(&self) -> bool {
        !self.is_new && !matches!(self.kind, DeviationKind::Added | DeviationKind::Untracked)
    }
}

/// What differs at a path.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum DeviationKind {
    /// In HEAD and on disk, with other content or mode.
    Modified,
    /// Not in HEAD, tracked by the index.
    Added,
    /// In HEAD, not on disk.
    Deleted,
    /// Neither in HEAD nor in the index.
    Untracked,
    /// Unmerged in the index.
    Conflicted,
    /// Differs, and git would not show it (skip-worktree, assume-unchanged).
    Hidden,
    /// Dirt inside a submodule, or an untracked nested repository.
    Nested,
}

/// How a look was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The project's own engine.
    Engine,
    /// The `git` program.
    Git,
}

/// What a look cost. Tests state on these what must not happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Entries of the index.
    pub entries: u64,
    /// Metadata calls.
    pub stats: u64,
    /// Directories listed.
    pub directories: u64,
    /// Files whose content was read.
    pub files_read: u64,
    /// Bytes of content read.
    pub bytes_read: u64,
    /// Answers taken from the cache.
    pub cache_hits: u64,
    /// Programs started.
    pub programs: u64,
}

impl std::ops::AddAssign<&Self> for Counters {
    fn add_assign(&mut self, more: &Self) {
        self.entries += more.entries;
        self.stats += more.stats;
        self.directories += more.directories;
        self.files_read += more.files_read;
        self.bytes_read += more.bytes_read;
        self.cache_hits += more.cache_hits;
        self.programs += more.programs;
    }
}

/// A look: the record, and how it was come by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Look {
    /// What was seen.
    pub record: TreeRecord,
    /// How it was seen.
    pub method: Method,
    /// Why not by the engine, where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// What it cost.
    pub counters: Counters,
}

/// Which event recorded a fingerprint, when, and what is known to have happened in the session after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// The event.
    pub event: ProvenanceEvent,
    /// When.
    pub at: Time,
    /// Who asked for it, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<SessionRef>,
    /// Taken while git hooks ran, so perhaps of a tree with a part stashed away for the moment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub provisional: bool,
    /// What happened in the session afterwards, in words ("14 calls later it died").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Events that record a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProvenanceEvent {
    /// `start`.
    Start,
    /// `save`.
    Save,
    /// An agent's turn ended.
    TurnEnd,
    /// A git hook.
    GitHook,
    /// A check ran.
    Check,
    /// The task was evaluated.
    Evaluate,
    /// The task was taken up.
    TakeUp,
    /// Read from the agent's own store.
    Import,
}
