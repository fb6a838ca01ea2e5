//! What stands in the place of git's own files: neither libgit2 nor the `git` program looks before it opens one, and both
//! wait for ever on a pipe and read a device to the end of memory.
//!
//! # Limitations
//! Looked at is what is opened whatever is asked: settings and what they include, references of HEAD and the stash, the
//! lists of packs. Not looked at are the loose objects, which are too many to look at each time.
use std::ffi::OsStr;
use std::fs::FileType;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::git::read_path_file;
use crate::files::read_bounded;
use crate::issue::{Issue, IssueKind};

/// The largest file of settings, names or references.
const SMALL: u64 = 16 << 20;
/// The largest file of many entries: the index, packed references. A million entries take a tenth of it.
pub(crate) const LARGE: u64 = 2 << 30;
/// How deep files of settings may include one another, as in git.
const DEEPEST: u32 = 10;

/// Files of one work tree, below its own git folder.
const OWN: [(&str, u64); 8] = [
    ("HEAD", SMALL),
    ("index", LARGE),
    ("config.worktree", SMALL),
    ("info/sparse-checkout", LARGE),
    ("MERGE_HEAD", SMALL),
    ("CHERRY_PICK_HEAD", SMALL),
    ("REVERT_HEAD", SMALL),
    ("gitdir", SMALL),
];

/// Files of the repository, below the folder that all work trees share.
const COMMON: [(&str, u64); 10] = [
    ("config", SMALL),
    ("packed-refs", LARGE),
    ("shallow", LARGE),
    ("refs/stash", SMALL),
    ("reftable/tables.list", SMALL),
    ("info/exclude", LARGE),
    ("info/attributes", LARGE),
    ("info/grafts", LARGE),
    ("objects/info/alternates", SMALL),
    ("objects/info/commit-graph", u64::MAX),
];

/// Looks at the git folders that a search from `start` comes by, up to the first that is a repository, or at a named one.
pub(super) fn around(named: Option<&Path>, start: &Path) -> Result<(), Issue> {
    if let Some(named) = named {
        return folder(named);
    }
    for outer in start.ancestors() {
        let link = outer.join(".git");
        if let Ok(meta) = std::fs::metadata(&link) {
            if meta.is_dir() {
                folder(&link)?;
                if is_repository(&link) {
                    break;
                }
            } else if let Some(target) = read_path_file(&link, b"gitdir: ") {
                folder(&outer.join(target))?;
                break;
            }
        }
        if is_repository(outer) {
            folder(outer)?;
            break;
        }
    }
    Ok(())
}

fn is_repository(git_dir: &Path) -> bool {
    git_dir.join("HEAD").symlink_metadata().is_ok() && git_dir.join("objects").is_dir()
}

/// Looks at a git folder and the one it shares with others.
fn folder(git_dir: &Path) -> Result<(), Issue> {
    let link = git_dir.join("commondir");
    regular(&link, SMALL)?;
    let common = read_path_file(&link, b"")
        .map_or_else(|| git_dir.to_path_buf(), |target| git_dir.join(target));
    both(git_dir, &common)
}

/// Looks at what git opens below a work tree's own git folder and the shared one.
pub(crate) fn both(git_dir: &Path, common_dir: &Path) -> Result<(), Issue> {
    for (name, most) in OWN {
        regular(&git_dir.join(name), most)?;
    }
    for (name, most) in COMMON {
        regular(&common_dir.join(name), most)?;
    }
    if let Ok(Some(head)) = read_bounded(&git_dir.join("HEAD"), SMALL)
        && let Some(name) = head.strip_prefix(b"ref:")
    {
        let name = OsStr::from_bytes(name.trim_ascii());
        for folder in [git_dir, common_dir] {
            regular(&folder.join(name), SMALL)?;
        }
    }
    for folder in ["objects/pack", "reftable"] {
        listed(&common_dir.join(folder))?;
    }
    for folder in [git_dir, common_dir] {
        for name in ["config", "config.worktree"] {
            included(&folder.join(name), DEEPEST)?;
        }
    }
    Ok(())
}

/// Looks at every entry of a folder by what the folder itself says of it.
fn listed(folder: &Path) -> Result<(), Issue> {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_odd = |kind: FileType| kind.is_symlink() || odd(kind).is_some();
        if entry.file_type().is_ok_and(is_odd) {
            regular(&entry.path(), u64::MAX)?;
        }
    }
    Ok(())
}

/// Names what is neither a file nor a folder.
fn odd(kind: FileType) -> Option<&'static str> {
    if kind.is_fifo() {
        Some("a pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_char_device() || kind.is_block_device() {
        Some("a device")
    } else {
        None
    }
}

/// Demands that whoever opens a path, links followed, finds a file that has an end, a folder or nothing.
fn regular(path: &Path, most: u64) -> Result<(), Issue> {
    // What cannot be looked at cannot be opened either; who opens it says so.
    let Ok(meta) = std::fs::metadata(path) else {
        return Ok(());
    };
    if let Some(what) = odd(meta.file_type()) {
        let message = format!("{what} stands where git has a file");
        return Err(Issue::new(path, IssueKind::NotAFile, message));
    }
    if !meta.is_dir() && meta.len() > most {
        let message = format!(
            "{} bytes are more than the {most} that are read",
            meta.len()
        );
        return Err(Issue::new(path, IssueKind::TooLarge, message));
    }
    Ok(())
}

/// Looks at the files that a file of settings includes, whether or not their condition holds.
fn included(path: &Path, deepest: u32) -> Result<(), Issue> {
    let Ok(Some(bytes)) = read_bounded(path, SMALL) else {
        return Ok(());
    };
    for target in includes(&bytes) {
        // Below the user's home or another variable folder lies what is the user's.
        if target.as_os_str().as_bytes().starts_with(b"~") || deepest == 0 {
            continue;
        }
        let target = path.parent().unwrap_or_else(|| Path::new("/")).join(target);
        regular(&target, SMALL)?;
        included(&target, deepest - 1)?;
    }
    Ok(())
}

/// Returns the paths that the sections `include` and `includeIf` of a file of settings name, as far as they are plainly
/// written.
fn includes(bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in bytes.split(|byte| *byte == b'\n') {
        let mut line = line.trim_ascii();
        if let Some(section) = line.strip_prefix(b"[") {
            inside = section
                .get(..7)
                .is_some_and(|word| word.eq_ignore_ascii_case(b"include"));
            // A setting may stand behind its section.
            let end = line.iter().rposition(|byte| *byte == b']');
            line = end
                .and_then(|end| line.get(end + 1..))
                .unwrap_or_default()
                .trim_ascii();
        }
        let Some((key, value)) = line
            .iter()
            .position(|byte| *byte == b'=')
            .and_then(|at| line.split_at_checked(at))
        else {
            continue;
        };
        if inside && key.trim_ascii().eq_ignore_ascii_case(b"path") {
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            let value: Vec<u8> = value.iter().copied().filter(|byte| *byte != b'"').collect();
            found.push(PathBuf::from(OsStr::from_bytes(&value)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn included_files_are_found() {
        let text = b"[core]\n\tpath = no\n[include]\n\tpath = one\n[includeIf \"gitdir:x\"]\n Path=\"two three\"\n\
                     [Include] path = four\n[user]\n\tpath = no\n";
        let found: Vec<String> = includes(text)
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        assert_eq!(found, ["one", "two three", "four"]);
    }
}
