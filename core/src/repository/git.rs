//! What is asked of git, and the answers.
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::ConfigEntry;
use super::{Place, RepositoryError};
use crate::ids::Oid;
use crate::time::Time;

/// Git, for one place. Every answer is a look: nothing is written, nothing is fetched, no program that the repository
/// names is run.
pub trait Git {
    /// Returns the commit and branch of HEAD.
    fn head(&self) -> Result<Head, RepositoryError>;

    /// Returns the git operation in progress.
    fn operation(&self) -> Result<Option<Operation>, RepositoryError>;

    /// Returns the stash's tip.
    fn stash_tip(&self) -> Result<Option<Oid>, RepositoryError>;

    /// Returns the folder in which git looks for hooks. It need not exist.
    fn hooks_dir(&self) -> Result<PathBuf, RepositoryError>;

    /// Returns every setting in effect, in git's order: the last one of a key counts.
    fn config_entries(&self) -> Result<Vec<ConfigEntry>, RepositoryError>;

    /// Returns the kind of object ids.
    fn object_format(&self) -> Result<ObjectFormat, RepositoryError>;

    /// Lists the commits that are in `new` and not in `old`, newest first, at most `limit`. `old` is `None` for an
    /// unborn branch.
    fn commits_between(
        &self,
        old: Option<&Oid>,
        new: &Oid,
        limit: usize,
    ) -> Result<Listed<CommitLine>, RepositoryError>;

    /// Lists the paths in which two commits or trees differ, sorted by path, at most `limit`. `None` is the empty tree.
    /// Renames are a deletion and an addition.
    fn changed_paths(
        &self,
        old: Option<&Oid>,
        new: Option<&Oid>,
        limit: usize,
    ) -> Result<Listed<ChangedPath>, RepositoryError>;

    /// Returns the value of a setting in effect, and where it comes from. `key` is `section.name` or
    /// `section.subsection.name`.
    fn config(&self, key: &str) -> Result<Option<ConfigEntry>, RepositoryError> {
        let key = super::config::config_key(key);
        Ok(self
            .config_entries()?
            .into_iter()
            .rev()
            .find(|entry| entry.key == key))
    }
}

/// The first items of a list, and whether there are more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T> {
    /// The items.
    pub items: Vec<T>,
    /// There are more.
    pub more: bool,
}

/// What HEAD names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The commit; `None` on an unborn branch.
    pub commit: Option<Oid>,
    /// The short branch name; `None` on a detached HEAD. Bytes that are not UTF-8 are written as in
    /// [`crate::paths::text_of_bytes`].
    pub branch: Option<String>,
}

/// The kind of object ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFormat {
    /// 40 digits.
    Sha1,
    /// 64 digits.
    Sha256,
}

/// A git operation in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// `git merge`.
    Merge,
    /// `git rebase`, of any kind.
    Rebase,
    /// `git am`.
    Am,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

impl Operation {
    /// Returns the name as it stands in records.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::Am => "am",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisect",
        }
    }
}

/// A commit, for a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitLine {
    /// Its id.
    pub id: Oid,
    /// The first paragraph of its message, one line, control characters gone.
    pub subject: String,
    /// Its author's name, control characters gone.
    pub author: String,
    /// When it was written.
    pub authored_at: Time,
}

/// A path that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedPath {
    /// The path, written as in [`crate::fingerprint::Deviation::path`].
    pub path: String,
    /// What differs.
    pub change: PathChange,
    /// The mode in octal on the new side, such as `100644`; `None` when deleted.
    pub mode: Option<String>,
    /// The object id on the new side; `None` when deleted.
    pub oid: Option<Oid>,
}

/// How a path differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathChange {
    /// On the new side alone.
    Added,
    /// On the old side alone.
    Deleted,
    /// On both sides, with other content, mode or type.
    Modified,
}

/// One work tree of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    /// The top of the work tree, as git recorded it.
    pub root: PathBuf,
    /// Its own git folder.
    pub git_dir: PathBuf,
    /// The folder is gone, or is no longer this work tree.
    pub gone: bool,
}

/// Lists the work trees of a repository, the main one first where there is one (gitrepository-layout(5), `worktrees/`).
///
/// A damaged entry is listed with an empty root and as gone.
pub fn worktrees(place: &Place) -> Vec<Worktree> {
    let common = &place.common_dir;
    let mut found = Vec::new();
    if !place.is_linked() {
        found.push(Worktree {
            root: place.root.clone(),
            git_dir: common.clone(),
            gone: false,
        });
    } else if common.file_name().is_some_and(|name| name == ".git")
        && let Some(root) = common.parent()
    {
        // As `git worktree list` does; a main work tree elsewhere (core.worktree) is not looked for.
        found.push(Worktree {
            root: root.to_path_buf(),
            git_dir: common.clone(),
            gone: false,
        });
    }
    let mut linked: Vec<PathBuf> = std::fs::read_dir(common.join("worktrees"))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_dir())
        .collect();
    linked.sort();
    for git_dir in linked {
        let root = linked_root(&git_dir);
        let gone = root.as_deref().is_none_or(|root| !belongs(root, &git_dir));
        found.push(Worktree {
            root: root.unwrap_or_default(),
            git_dir,
            gone,
        });
    }
    found
}

/// Returns the work tree a linked git folder belongs to, by its `gitdir` file.
pub(super) fn linked_root(git_dir: &Path) -> Option<PathBuf> {
    let path = read_path_file(&git_dir.join("gitdir"), b"")?;
    let path = git_dir.join(path);
    let root = path.parent()?;
    // Relative entries (git 2.48 and later) hold `..`; a folder that is gone keeps its spelling.
    Some(std::fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf()))
}

/// Returns the git folder that the `.git` of a work tree names, as a real path.
pub(super) fn git_dir_of(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    let meta = std::fs::metadata(&dot_git).ok()?;
    if meta.is_dir() {
        return std::fs::canonicalize(dot_git).ok();
    }
    let target = read_path_file(&dot_git, b"gitdir: ")?;
    std::fs::canonicalize(root.join(target)).ok()
}

/// Tells whether two work trees are of one repository.
pub fn is_beside(one: &Path, other: &Path) -> bool {
    let common = |root: &Path| {
        let git_dir = git_dir_of(root)?;
        match read_path_file(&git_dir.join("commondir"), b"") {
            Some(path) => std::fs::canonicalize(git_dir.join(path)).ok(),
            None => Some(git_dir),
        }
    };
    let ours = common(one);
    ours.is_some() && ours == common(other)
}

/// Returns the work tree around a folder whose `.git` is a file that names a git folder which is not there, and that folder.
pub(super) fn broken_link(start: &Path) -> Option<(PathBuf, PathBuf)> {
    let root = start
        .ancestors()
        .find(|folder| std::fs::symlink_metadata(folder.join(".git")).is_ok())?;
    let target = root.join(read_path_file(&root.join(".git"), b"gitdir: ")?);
    (!target.exists()).then(|| (root.to_path_buf(), target))
}

/// Returns the reason for which a work tree is locked (git-worktree(1), `lock`), on one line; empty where none was given.
/// `None` where it is not locked.
pub(super) fn lock_of(git_dir: &Path) -> Option<String> {
    let bytes = crate::files::read_bounded(&git_dir.join("locked"), 64 * 1024).ok()??;
    let text = String::from_utf8_lossy(&bytes);
    Some(crate::text::one_line(text.trim(), 200))
}

fn belongs(root: &Path, git_dir: &Path) -> bool {
    let there = git_dir_of(root);
    there.is_some() && there == std::fs::canonicalize(git_dir).ok()
}

/// Tells whether the `.git` file of a work tree names a folder as this one is called, and that is not there.
pub(super) fn leads_nowhere(root: &Path, git_dir: &Path) -> bool {
    let target = read_path_file(&root.join(".git"), b"gitdir: ").map(|target| root.join(target));
    target.is_some_and(|target| {
        target.file_name() == git_dir.file_name()
            && std::fs::symlink_metadata(&target)
                .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    })
}

pub(super) fn read_path_file(file: &Path, prefix: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = crate::files::read_bounded(file, 64 * 1024).ok()??;
    let path = bytes.strip_prefix(prefix)?;
    let path = path.strip_suffix(b"\n").unwrap_or(path);
    let path = path.strip_suffix(b"\r").unwrap_or(path);
    (!path.is_empty()).then(|| PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}

/// Finds the operation in progress by git's own marks in the work tree's git folder. `has_ref` tells whether a
/// pseudo-ref exists: where refs are not files, `CHERRY_PICK_HEAD` and `REVERT_HEAD` are not either.
pub(super) fn operation_by_marks(
    git_dir: &Path,
    has_ref: impl Fn(&str) -> Result<bool, RepositoryError>,
) -> Result<Option<Operation>, RepositoryError> {
    let there = |name: &str| git_dir.join(name).exists();
    Ok(if there("rebase-merge") {
        Some(Operation::Rebase)
    } else if there("rebase-apply") {
        Some(if there("rebase-apply/applying") {
            Operation::Am
        } else {
            Operation::Rebase
        })
    } else if there("MERGE_HEAD") {
        Some(Operation::Merge)
    } else if has_ref("CHERRY_PICK_HEAD")? {
        Some(Operation::CherryPick)
    } else if has_ref("REVERT_HEAD")? {
        Some(Operation::Revert)
    } else if let Some(operation) = sequencer(git_dir) {
        Some(operation)
    } else if there("BISECT_LOG") {
        Some(Operation::Bisect)
    } else {
        None
    })
}

/// Between two picks of a series there is no pseudo-ref; the list of what is left says which command it was.
fn sequencer(git_dir: &Path) -> Option<Operation> {
    let todo =
        crate::files::read_bounded(&git_dir.join("sequencer/todo"), 16 * 1024 * 1024).ok()??;
    if todo.starts_with(b"pick ") || todo.starts_with(b"p ") {
        Some(Operation::CherryPick)
    } else if todo.starts_with(b"revert ") {
        Some(Operation::Revert)
    } else {
        None
    }
}

/// The last line of a reference's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastMove {
    /// Where it was; `None` where it was not there.
    pub before: Option<Oid>,
    /// Where it is.
    pub after: Oid,
    /// When it moved, to the second.
    pub at: Time,
    /// What git was doing, such as `commit (amend): subject`.
    pub reason: String,
}

/// Reads the last line of a reference's log. `None` where there is none, or where references are not kept in files. `name` is
/// `HEAD` or a whole reference name.
pub fn last_move(place: &Place, name: &str) -> Option<LastMove> {
    let bytes = end_of_log(place, name)?;
    let line = bytes
        .strip_suffix(b"\n")?
        .rsplit(|byte| *byte == b'\n')
        .next()?;
    move_of(line)
}

/// Reads the last lines of a reference's log, oldest first, by the end of its file: logs get long. None where references are
/// not kept in files; lines that are damaged are left out.
pub fn last_moves(place: &Place, name: &str) -> Vec<LastMove> {
    let bytes = end_of_log(place, name).unwrap_or_default();
    let Some(lines) = bytes.strip_suffix(b"\n") else {
        return Vec::new();
    };
    lines
        .split(|byte| *byte == b'\n')
        .filter_map(move_of)
        .collect()
}

fn end_of_log(place: &Place, name: &str) -> Option<Vec<u8>> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    const MOST: u64 = 64 * 1024;
    let folder = if name == "HEAD" {
        &place.git_dir
    } else {
        &place.common_dir
    };
    let mut file = crate::files::open_regular(&folder.join("logs").join(name)).ok()??;
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(MOST))).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Reads `<old id> <new id> <name> <mail> <seconds> <zone>\t<reason>` (gitformat of reflogs).
fn move_of(line: &[u8]) -> Option<LastMove> {
    let text = String::from_utf8_lossy(line);
    let (head, reason) = text.split_once('\t').unwrap_or((&text, ""));
    let mut words = head.split(' ');
    let before = words.next()?;
    let after = Oid::new(words.next()?).ok()?;
    let seconds = head.rsplit(' ').nth(1)?.parse::<i64>().ok()?;
    Some(LastMove {
        before: real_id(before),
        after,
        at: Time::from_millis(seconds.saturating_mul(1000)),
        reason: one_line(reason.as_bytes()),
    })
}

/// Reads an object id; all zeros is git's "none".
pub fn real_id(text: &str) -> Option<Oid> {
    Oid::new(text)
        .ok()
        .filter(|id| id.as_str().bytes().any(|digit| digit != b'0'))
}

/// Makes one clean line of foreign text.
pub(super) fn one_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>()
        .trim()
        .to_owned()
}
