//! Which paths differ between what was left and what is there.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::Engine;
use crate::boundary::Boundary;
use crate::fingerprint::{Deviation, DeviationKind, Reach, Submodule, TreeRecord};
use crate::ids::{Oid, SessionRef};
use crate::paths::{bytes_of_text, path_of_text};
use crate::repository::{ChangedPath, CommitLine, Git, PathChange};

/// How many paths and commits are listed.
const MOST_PATHS: usize = 1_000;
const MOST_COMMITS: usize = 50;
/// How many paths of commits are compared where all are needed.
pub(super) const MOST_COMPARED: usize = 100_000;

/// What differs between what was left and what is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// The paths, sorted.
    pub paths: Vec<Changed>,
    /// The commits since, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<CommitLine>,
    /// Why the list is not whole, where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// One path that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// The path, written as in [`Deviation::path`].
    pub path: String,
    /// What happened to it.
    pub verb: Verb,
    /// Where the change stands now.
    pub place: ChangedPlace,
    /// Whether the task's boundary allows the path.
    pub inside_boundary: bool,
    /// Its modes in octal, where both sides hold it, the mode differs and both are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<Modes>,
    /// The session whose record is the first that has the path as it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<SessionRef>,
    /// Whether it is the task's own: it was at work on it when it was left, or its boundary names it.
    #[serde(skip)]
    pub own: bool,
    /// The object id that was left, where it is known.
    #[serde(skip)]
    pub left: Option<Oid>,
    /// The object id that is there, where it is known.
    #[serde(skip)]
    pub there: Option<Oid>,
}

/// The modes of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Modes {
    /// What was left.
    pub left: String,
    /// What is there.
    pub there: String,
}

impl Modes {
    /// Names two modes, where both are known and they differ.
    pub(super) fn of(left: Option<String>, there: Option<String>) -> Option<Self> {
        let (left, there) = (left?, there?);
        (left != there).then_some(Self { left, there })
    }
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// It was not there.
    Added,
    /// Its content, mode or type changed.
    Modified,
    /// It is gone.
    Deleted,
}

impl Verb {
    /// Returns the word for people and JSON.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

/// Where a change stands now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangedPlace {
    /// In a commit made since.
    Committed,
    /// In the index.
    Staged,
    /// In the work tree alone.
    Unstaged,
    /// In a file that git does not track.
    Untracked,
    /// Unmerged.
    Conflicted,
    /// Behind a flag that hides it from git (skip-worktree, assume-unchanged).
    Hidden,
    /// Inside a submodule or nested repository.
    Nested,
    /// In a linked work tree of this repository that lies inside this one.
    Worktree,
    /// Uncommitted work that is gone: the path is as HEAD has it.
    Restored,
    /// A file that HEAD has not, and that is gone.
    Gone,
    /// A file that HEAD has not, and that is there still: a rule says now that it is no content.
    Ignored,
}

impl ChangedPlace {
    /// Says it to people.
    pub const fn words(self) -> &'static str {
        if matches!(self, Self::Restored) {
            // The file is back, and the work in it is not.
            return "as HEAD has it";
        }
        self.code()
    }

    /// Returns the word for people and JSON.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Staged => "staged",
            Self::Unstaged => "unstaged",
            Self::Untracked => "untracked",
            Self::Conflicted => "conflicted",
            Self::Hidden => "hidden",
            Self::Nested => "nested",
            Self::Worktree => "worktree",
            Self::Restored => "restored",
            Self::Gone => "gone",
            Self::Ignored => "ignored",
        }
    }
}

/// What a path held at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    /// What both HEADs have.
    AsHead,
    /// Nothing.
    Nothing,
    /// A file, link or submodule.
    Entry(Option<String>, Option<Oid>),
}

impl Held {
    fn of_deviation(deviation: &Deviation) -> Self {
        if deviation.mode.is_none() {
            return Self::Nothing;
        }
        Self::Entry(deviation.mode.clone(), deviation.oid.clone())
    }

    /// What the side of a comparison holds that [`ChangedPath`] calls the new one.
    fn of_side(changed: &ChangedPath) -> Self {
        match changed.change {
            PathChange::Deleted => Self::Nothing,
            PathChange::Added | PathChange::Modified => {
                Self::Entry(changed.mode.clone(), changed.oid.clone())
            }
        }
    }

    fn oid(&self) -> Option<Oid> {
        match self {
            Self::Entry(_, oid) => oid.clone(),
            Self::AsHead | Self::Nothing => None,
        }
    }

    fn mode(&self) -> Option<&String> {
        match self {
            Self::Entry(mode, _) => mode.as_ref(),
            Self::AsHead | Self::Nothing => None,
        }
    }
}

impl Changes {
    /// Masks secrets in what commits say.
    pub(super) fn masked(mut self, engine: &Engine<'_>) -> Self {
        for commit in &mut self.commits {
            commit.subject = engine.mask(&commit.subject);
            commit.author = engine.mask(&commit.author);
        }
        self
    }
}

/// Lists what differs between two looks at one work tree, the later of them a look at `root`. Starts no scan: both records
/// carry what is needed, and git is asked only what the commits between changed. A path of which one side tells nothing, since
/// its list was cut before it, is not listed: what is not known is no change.
pub(super) fn between(
    git: &dyn Git,
    root: &Path,
    left: &TreeRecord,
    there: &TreeRecord,
    boundary: &Boundary,
) -> Changes {
    between_most(git, root, left, there, boundary, MOST_PATHS)
}

/// As [`between`], with at most `most` paths that commits changed.
pub(super) fn between_most(
    git: &dyn Git,
    root: &Path,
    left: &TreeRecord,
    there: &TreeRecord,
    boundary: &Boundary,
    most: usize,
) -> Changes {
    let mut changes = Changes::default();
    let mut incomplete = Vec::new();
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    let mut commits = Reach::WHOLE;
    if left.head != there.head {
        let compared = git
            .changed_paths(left.head.as_ref(), there.head.as_ref(), most)
            .and_then(|forth| {
                let back = git.changed_paths(there.head.as_ref(), left.head.as_ref(), most)?;
                Ok((forth, back))
            });
        match compared {
            Ok((forth, back)) => {
                if forth.more || back.more {
                    // Both hold the same paths: each names one side of them.
                    commits = Reach::until(forth.items.last().map(|last| last.path.as_str()));
                    incomplete.push(format!(
                        "the commits since changed more than {most} paths{}",
                        not_compared([&commits])
                    ));
                }
                after.extend(
                    forth
                        .items
                        .into_iter()
                        .map(|changed| (changed.path.clone(), Held::of_side(&changed))),
                );
                before.extend(
                    back.items
                        .into_iter()
                        .map(|changed| (changed.path.clone(), Held::of_side(&changed))),
                );
            }
            Err(error) => {
                commits = Reach::NOTHING;
                incomplete.push(format!(
                    "the commit it was left on cannot be compared: {error}"
                ));
            }
        }
        if let Some(new) = &there.head {
            match git.commits_between(left.head.as_ref(), new, MOST_COMMITS) {
                Ok(listed) => changes.commits = listed.items,
                Err(error) => {
                    incomplete.push(format!("the commits since cannot be listed: {error}"));
                }
            }
        }
    }
    let reaches = [Reach::of(left), Reach::of(there)];
    if left.deviations_left_out > 0 || there.deviations_left_out > 0 {
        incomplete.push(format!(
            "more than {} paths differ from HEAD{}",
            TreeRecord::DEVIATIONS,
            not_compared(&reaches)
        ));
    }
    let old: BTreeMap<&str, &Deviation> = left
        .deviations
        .iter()
        .map(|found| (found.path.as_str(), found))
        .collect();
    let new: BTreeMap<&str, &Deviation> = there
        .deviations
        .iter()
        .map(|found| (found.path.as_str(), found))
        .collect();
    let mut names: BTreeSet<&str> = old.keys().copied().collect();
    names.extend(new.keys());
    names.extend(before.keys().map(String::as_str));
    names.extend(after.keys().map(String::as_str));

    // What lies beyond the tree is compared as one digest: where that differs, every nested path is named.
    let beyond = |record: &TreeRecord| {
        record.fingerprint.as_ref().and_then(|print| {
            print
                .as_str()
                .split_once('+')
                .map(|(_, digest)| digest.to_owned())
        })
    };
    let nested_differs = beyond(left) != beyond(there);
    for name in names {
        let nested = [old.get(name), new.get(name)]
            .into_iter()
            .flatten()
            .any(|found| found.kind == DeviationKind::Nested);
        let held = |deviations: &BTreeMap<&str, &Deviation>,
                    side: &BTreeMap<String, Held>,
                    reach: &Reach| {
            if let Some(found) = deviations.get(name) {
                return Some(Held::of_deviation(found));
            }
            if !reach.covers(name) || (nested && *reach != Reach::WHOLE) {
                return None;
            }
            let by_commits = side.get(name).cloned();
            by_commits.or_else(|| commits.covers(name).then_some(Held::AsHead))
        };
        let [reach_left, reach_there] = &reaches;
        let (Some(was), Some(is)) = (
            held(&old, &before, reach_left),
            held(&new, &after, reach_there),
        ) else {
            continue;
        };
        if was == is && !(nested && nested_differs && was != Held::Nothing) {
            continue;
        }
        let mut verb = verb(&was, &is, old.get(name).copied(), new.get(name).copied());
        // Committed in the repository it lies in: the HEAD that did not have it is another one now.
        if verb == Verb::Deleted
            && is == Held::AsHead
            && inner_head(left, name) != inner_head(there, name)
            && is_file(root, name)
        {
            verb = Verb::Modified;
        }
        let place = match new.get(name) {
            Some(found) => match found.kind {
                DeviationKind::Untracked => ChangedPlace::Untracked,
                DeviationKind::Hidden => ChangedPlace::Hidden,
                DeviationKind::Nested if is_own_worktree(root, name) => ChangedPlace::Worktree,
                DeviationKind::Nested => ChangedPlace::Nested,
                DeviationKind::Conflicted => ChangedPlace::Conflicted,
                DeviationKind::Modified | DeviationKind::Added | DeviationKind::Deleted
                    if found.staged =>
                {
                    ChangedPlace::Staged
                }
                DeviationKind::Modified | DeviationKind::Added | DeviationKind::Deleted => {
                    ChangedPlace::Unstaged
                }
            },
            None if after.contains_key(name) => ChangedPlace::Committed,
            None if verb != Verb::Deleted => ChangedPlace::Restored,
            None if is_file(root, name) => ChangedPlace::Ignored,
            None => ChangedPlace::Gone,
        };
        changes.paths.push(Changed {
            verb,
            place,
            inside_boundary: boundary.allows(name),
            own: old.contains_key(name) || (!boundary.allowed.is_empty() && boundary.allows(name)),
            modes: Modes::of(was.mode().cloned(), is.mode().cloned()),
            by: None,
            left: was.oid(),
            there: is.oid(),
            path: name.to_owned(),
        });
    }
    let unnamed = checkouts(left, there, boundary, &changes.paths);
    changes.paths.extend(unnamed);
    changes.paths.sort_by(|a, b| a.path.cmp(&b.path));
    if !incomplete.is_empty() {
        changes.incomplete = Some(incomplete.join("; "));
    }
    changes
}

/// Returns what a look held at some paths, each as what differs from the commit `head`; `None` where that commit has it so.
/// Fails with the reason where the commits cannot be compared whole.
pub(super) fn seen_from<'a>(
    git: &dyn Git,
    seen: &TreeRecord,
    head: Option<&Oid>,
    paths: impl Iterator<Item = &'a str>,
) -> Result<Vec<Option<Deviation>>, String> {
    let known = |path: &str| seen.deviations.iter().find(|found| found.path == path);
    let (mut here, mut there) = (BTreeMap::new(), BTreeMap::new());
    if seen.head.as_ref() != head {
        let sides = |old: Option<&Oid>, new: Option<&Oid>| {
            let listed = git.changed_paths(old, new, MOST_COMPARED);
            let listed = listed.map_err(|error| format!("commits cannot be compared: {error}"))?;
            if listed.more {
                return Err(format!("commits differ in more than {MOST_COMPARED} paths"));
            }
            let sides = listed.items.into_iter();
            Ok(sides
                .map(|changed| (changed.path.clone(), Held::of_side(&changed)))
                .collect::<BTreeMap<_, _>>())
        };
        here = sides(head, seen.head.as_ref())?;
        there = sides(seen.head.as_ref(), head)?;
    }
    let kind = |was: &Held, head: Option<&Held>| match (was, head) {
        (Held::Nothing, _) => DeviationKind::Deleted,
        (_, Some(Held::Nothing)) => DeviationKind::Added,
        (_, _) => DeviationKind::Modified,
    };
    let found = paths.map(|path| {
        let of_head = there.get(path);
        if let Some(found) = known(path) {
            let was = Held::of_deviation(found);
            if of_head == Some(&was) {
                return None;
            }
            let is_kept = of_head.is_none() || found.kind == DeviationKind::Nested;
            return Some(Deviation {
                kind: if is_kept {
                    found.kind
                } else {
                    kind(&was, of_head)
                },
                ..found.clone()
            });
        }
        let was = here.get(path)?;
        Some(Deviation {
            path: path.to_owned(),
            kind: kind(was, of_head),
            staged: false,
            mode: was.mode().cloned(),
            oid: was.oid(),
            is_new: false,
        })
    });
    Ok(found.collect())
}

/// Says from where on the paths are not compared.
fn not_compared<'a>(reaches: impl IntoIterator<Item = &'a Reach>) -> String {
    let ends = reaches.into_iter().filter_map(Reach::end);
    let first = ends.min_by_key(|end| bytes_of_text(end));
    first.map_or_else(String::new, |end| {
        format!("; of those that come after {end:?} not all are compared")
    })
}

/// Names the submodules that are checked out on one side only, where the tree says nothing of it and `named` does not either.
fn checkouts(
    left: &TreeRecord,
    there: &TreeRecord,
    boundary: &Boundary,
    named: &[Changed],
) -> Vec<Changed> {
    let tree = |record: &TreeRecord| {
        record
            .fingerprint
            .as_ref()
            .map(|print| print.tree().to_owned())
    };
    if tree(left) != tree(there) {
        return Vec::new();
    }
    let (was, is) = (left.checked_out(), there.checked_out());
    was.symmetric_difference(&is)
        .filter(|path| !named.iter().any(|known| known.path == **path))
        .map(|path| Changed {
            verb: if was.contains(path) {
                Verb::Deleted
            } else {
                Verb::Added
            },
            place: ChangedPlace::Nested,
            inside_boundary: boundary.allows(path),
            modes: None,
            by: None,
            own: false,
            left: None,
            there: None,
            path: (*path).to_owned(),
        })
        .collect()
}

/// Returns the commit of the innermost repository inside in which a path lies; `None` where it lies in none that has one.
fn inner_head<'a>(record: &'a TreeRecord, name: &str) -> Option<&'a Oid> {
    let holds = |inner: &&Submodule| {
        name.strip_prefix(&inner.path)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let all = record.submodules.iter().filter(holds);
    all.max_by_key(|inner| inner.path.len())?.head.as_ref()
}

/// Tells whether a linked work tree of the repository of `root` lies at a path, or lay there when it was made.
fn is_own_worktree(root: &Path, name: &str) -> bool {
    path_of_text(name.trim_end_matches('/'))
        .is_some_and(|path| crate::repository::is_beside(root, &root.join(path)))
}

/// Tells whether a file or a link is at a path that a whole look did not take for content. One that cannot be looked at is
/// there: it lies in a folder that is ignored, else the look would not have been whole.
fn is_file(root: &Path, name: &str) -> bool {
    let Some(path) = path_of_text(name) else {
        return false;
    };
    match std::fs::symlink_metadata(root.join(path)) {
        Ok(data) => data.is_file() || data.is_symlink(),
        Err(error) => !matches!(
            error.kind(),
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
        ),
    }
}

/// Says what happened to a path. Where one side is as HEAD has it, the deviation of the other side tells whether HEAD has
/// it at all.
fn verb(was: &Held, is: &Held, old: Option<&Deviation>, new: Option<&Deviation>) -> Verb {
    let head_has = |deviation: Option<&Deviation>| deviation.is_some_and(Deviation::is_in_head);
    let existed = match was {
        Held::Nothing => false,
        Held::Entry(..) => true,
        Held::AsHead => head_has(new),
    };
    let exists = match is {
        Held::Nothing => false,
        Held::Entry(..) => true,
        Held::AsHead => head_has(old),
    };
    match (existed, exists) {
        (false, _) => Verb::Added,
        (true, false) => Verb::Deleted,
        (true, true) => Verb::Modified,
    }
}
