//! What git says of the place beside its content: HEAD, branch, operation, stash.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::error::FingerprintError;
use super::git::Git;
use super::options::Options;
use crate::files::read_bounded;
use crate::ids::Oid;
use crate::paths::text_of_bytes;
use crate::repository::Place;

/// The largest file of references that is read.
const LARGEST: u64 = 256 << 20;

pub(super) struct Facts {
    pub(super) head: Option<Oid>,
    pub(super) branch: Option<String>,
    pub(super) stash: Option<Oid>,
    pub(super) operation: Option<String>,
}

/// Reads the facts from git's files, and asks the program where references are kept in tables.
pub(super) fn facts(place: &Place, options: &Options<'_>) -> Result<Facts, FingerprintError> {
    let (head, branch, stash) = if place.common_dir.join("reftable").is_dir() {
        let mut git = Git::new(place, options);
        let branch = git.run(&["symbolic-ref", "-q", "HEAD"], b"", None)?;
        let branch = branch.ok.then(|| branch_name(trimmed(&branch.stdout)));
        (
            asked(&mut git, "HEAD")?,
            branch,
            asked(&mut git, "refs/stash")?,
        )
    } else {
        let head = read(&place.git_dir.join("HEAD"))?.ok_or_else(|| {
            FingerprintError::io(
                "read",
                &place.git_dir.join("HEAD"),
                std::io::ErrorKind::NotFound,
            )
        })?;
        let target = trimmed(&head);
        match target.strip_prefix(b"ref:") {
            Some(name) => {
                let name = name.trim_ascii();
                (
                    resolve(place, name, 0)?,
                    Some(branch_name(name)),
                    resolve(place, b"refs/stash", 0)?,
                )
            }
            None => (
                Some(oid(target, &place.git_dir.join("HEAD"))?),
                None,
                resolve(place, b"refs/stash", 0)?,
            ),
        }
    };
    Ok(Facts {
        head,
        branch,
        stash,
        operation: operation(&place.git_dir).map(str::to_owned),
    })
}

/// Returns the commit HEAD names, without asking a program; `None` on an unborn branch.
pub(super) fn head(place: &Place, options: &Options<'_>) -> Result<Option<Oid>, FingerprintError> {
    facts(place, options).map(|facts| facts.head)
}

fn asked(git: &mut Git<'_>, name: &str) -> Result<Option<Oid>, FingerprintError> {
    let answer = git.run(&["rev-parse", "--verify", "-q", name], b"", None)?;
    if !answer.ok {
        return Ok(None);
    }
    oid(trimmed(&answer.stdout), Path::new(name)).map(Some)
}

fn branch_name(reference: &[u8]) -> String {
    text_of_bytes(reference.strip_prefix(b"refs/heads/").unwrap_or(reference))
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}

fn oid(text: &[u8], path: &Path) -> Result<Oid, FingerprintError> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| Oid::new(text.to_ascii_lowercase()).ok())
        .ok_or_else(|| FingerprintError::damaged(path, "it holds no object id"))
}

/// Reads a small file of the repository; `None` where there is none. A folder counts as none: names of references may be
/// folders of others.
fn read(path: &Path) -> Result<Option<Vec<u8>>, FingerprintError> {
    match read_bounded(path, LARGEST) {
        Ok(content) => Ok(content),
        Err(_) if path.is_dir() => Ok(None),
        // Old versions of git made HEAD a link.
        Err(issue) if issue.kind == crate::issue::IssueKind::Symlink => std::fs::read_link(path)
            .map(|target| {
                let mut text = b"ref: ".to_vec();
                text.extend(target.as_os_str().as_bytes());
                Some(text)
            })
            .map_err(|error| FingerprintError::io("read", path, error)),
        Err(issue) => Err(FingerprintError::damaged(path, issue.message)),
    }
}

/// Resolves a reference by name: its own file, else the packed ones.
fn resolve(place: &Place, name: &[u8], depth: u32) -> Result<Option<Oid>, FingerprintError> {
    let bad = depth > 5
        || !name.starts_with(b"refs/")
        || name
            .split(|byte| *byte == b'/')
            .any(|part| part.is_empty() || part == b"." || part == b"..");
    if bad || name.contains(&0) {
        return Err(FingerprintError::damaged(
            &place.git_dir.join("HEAD"),
            format!("it names the reference {:?}", text_of_bytes(name)),
        ));
    }
    // References of one work tree alone are in its own folder.
    let own = [
        b"refs/worktree/".as_slice(),
        b"refs/bisect/",
        b"refs/rewritten/",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix));
    let folder = if own {
        &place.git_dir
    } else {
        &place.common_dir
    };
    let path = folder.join(OsStr::from_bytes(name));
    if let Some(content) = read(&path)? {
        let target = trimmed(&content);
        return match target.strip_prefix(b"ref:") {
            Some(next) => resolve(place, next.trim_ascii(), depth + 1),
            None => oid(target, &path).map(Some),
        };
    }
    let packed = place.common_dir.join("packed-refs");
    let Some(content) = read(&packed)? else {
        return Ok(None);
    };
    for line in content.split(|byte| *byte == b'\n') {
        if let Some((id, rest)) = super::git::split_at_byte(line, b' ')
            && rest == name
        {
            return oid(id, &packed).map(Some);
        }
    }
    Ok(None)
}

/// Names the operation in progress by the files git keeps for it.
fn operation(git_dir: &Path) -> Option<&'static str> {
    let there = |name: &str| git_dir.join(name).symlink_metadata().is_ok();
    if there("rebase-merge") {
        return Some("rebase");
    }
    if there("rebase-apply") {
        return Some(if there("rebase-apply/applying") {
            "am"
        } else {
            "rebase"
        });
    }
    [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ]
    .into_iter()
    .find_map(|(file, name)| there(file).then_some(name))
    .or_else(|| {
        // Between two commits of a series only the list of what is left to do tells.
        let todo = read(&git_dir.join("sequencer/todo")).ok().flatten()?;
        let first = todo.trim_ascii_start();
        if first.starts_with(b"pick") || first.starts_with(b"p ") {
            Some("cherry-pick")
        } else if first.starts_with(b"revert") {
            Some("revert")
        } else {
            None
        }
    })
}
