//! What each method has to find out about one repository, before its nested repositories are looked into.
use std::collections::BTreeMap;

use super::record::{Counters, Deviation, DeviationKind, TreeRecord};
use crate::ids::Oid;
use crate::paths::text_of_bytes;

/// What a method saw of one repository.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The tree that git would commit; `None` where not everything could be seen.
    pub(super) tree: Option<Oid>,
    /// Why not everything could be seen.
    pub(super) incomplete: Option<String>,
    /// The tree of the index, or `conflict:` and a digest.
    pub(super) index_tree: Option<String>,
    /// What differs from HEAD.
    pub(super) deviations: Deviations,
    /// Paths in the tree that are repositories of their own, tracked or not.
    pub(super) gitlinks: Vec<Vec<u8>>,
    /// Untracked repositories without a commit: no tree can name them.
    pub(super) headless: Vec<Vec<u8>>,
    /// Something changed while it was looked at: only a second look that sees the same shows that this was a moment's state.
    pub(super) young: bool,
    /// What it cost.
    pub(super) counters: Counters,
}

impl Scan {
    pub(super) fn incomplete(reason: impl Into<String>) -> Self {
        Self {
            incomplete: Some(reason.into()),
            ..Self::default()
        }
    }
}

/// A mode and an object id, as one entry of an index or a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) mode: u32,
    pub(super) oid: Oid,
}

/// How the index knows a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tracked {
    /// Merged; `flagged` where skip-worktree or assume-unchanged would hide a change.
    Merged { leaf: Leaf, flagged: bool },
    /// Unmerged.
    Conflicted,
}

/// Deviations, bounded while they are gathered.
#[derive(Debug, Default)]
pub(super) struct Deviations {
    pub(super) kept: Vec<Deviation>,
    pub(super) left_out: u64,
}

impl Deviations {
    pub(super) fn push(&mut self, deviation: Deviation) {
        if self.kept.len() < TreeRecord::DEVIATIONS {
            self.kept.push(deviation);
        } else {
            self.left_out += 1;
        }
    }

    /// Judges one path at which the tree on disk differs from HEAD's.
    pub(super) fn judge(
        &mut self,
        path: &[u8],
        in_head: bool,
        disk: Option<Leaf>,
        tracked: Option<&Tracked>,
    ) {
        let (kind, staged) = match (tracked, &disk) {
            (Some(Tracked::Conflicted), _) => (DeviationKind::Conflicted, false),
            (Some(Tracked::Merged { leaf, flagged }), disk) => {
                let staged = disk.as_ref() == Some(leaf);
                let kind = if *flagged && !staged {
                    DeviationKind::Hidden
                } else if disk.is_none() {
                    DeviationKind::Deleted
                } else if in_head {
                    DeviationKind::Modified
                } else {
                    DeviationKind::Added
                };
                (kind, staged)
            }
            (None, Some(leaf)) if leaf.mode == GITLINK => (DeviationKind::Nested, false),
            // Taken out of the index, and there all the same.
            (None, Some(_)) => (DeviationKind::Untracked, false),
            (None, None) => (DeviationKind::Deleted, true),
        };
        self.push(Deviation {
            path: text_of_bytes(path),
            kind,
            staged,
            mode: disk.as_ref().map(|leaf| format!("{:06o}", leaf.mode)),
            oid: disk.map(|leaf| leaf.oid),
            is_new: kind == DeviationKind::Nested && !in_head,
        });
    }
}

/// The mode of an entry that names a commit of another repository.
pub(super) const GITLINK: u32 = 0o160_000;

/// The index by path.
pub(super) type Index = BTreeMap<Vec<u8>, Tracked>;

/// Why nothing is said of a folder whose tree names a path more than once, as trees of git's own making do at times: git
/// keeps such a tree or writes it anew, as it happens.
pub(super) fn named_twice(path: &[u8]) -> String {
    format!(
        "a damaged tree names {} more than once",
        text_of_bytes(path)
    )
}

/// Returns the id of the tree without entries.
pub(super) const fn empty_tree(sha256: bool) -> &'static str {
    if sha256 {
        "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
    } else {
        "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    }
}

/// Returns the id of the content without bytes.
pub(super) const fn empty_blob(sha256: bool) -> &'static str {
    if sha256 {
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
    } else {
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    }
}

/// Returns the digest that stands for the tree of an index with unmerged entries: SHA-256 over mode, id, stage and path of
/// each, sorted.
pub(super) fn conflict_digest<'a>(
    unmerged: impl IntoIterator<Item = (u32, &'a str, u8, &'a [u8])>,
) -> String {
    use sha2::{Digest as _, Sha256};
    let mut entries: Vec<_> = unmerged.into_iter().collect();
    entries.sort_by(|a, b| (a.3, a.2).cmp(&(b.3, b.2)));
    let mut hasher = Sha256::new();
    for (mode, oid, stage, path) in entries {
        hasher.update(format!("{mode:06o} {oid} {stage}\t"));
        hasher.update(path);
        hasher.update([0]);
    }
    format!("conflict:{}", crate::text::hex(&hasher.finalize()))
}
