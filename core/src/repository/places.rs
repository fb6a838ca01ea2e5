//! The index of known places, for `--all` and `doctor`: an aid to find ledgers, never a record that decides.
//!
//! `places.json` in [`crate::paths::state_dir`], version 1: one object a work tree. It is rewritten whole, under a lock of
//! its own; a damaged one is reported and left alone.
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::git::git_dir_of;
use super::tokens::holds_token;
use super::{Place, RepositoryError};
use crate::agent::Found;
use crate::env::Env;
use crate::files::{FileError, keep_out_of_git, make_private_folder, read_bounded, write_atomic};
use crate::identity::PlaceRecord;
use crate::ids::{RepositoryId, WorktreeId};
use crate::issue::{Issue, IssueKind};
use crate::paths::{path_of_text, state_dir, text_of_path};
use crate::time::Time;

const VERSION: u32 = 1;
/// The most places that are kept; the ones used longest ago go first.
const MOST: usize = 1_000;
/// A place that was added so recently is not written again.
const RECENT_MILLIS: i64 = 24 * 60 * 60 * 1000;
const LARGEST: u64 = 8 * 1024 * 1024;

/// One work tree in which takeup was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KnownPlace {
    /// The repository's token.
    pub repository_id: RepositoryId,
    /// The work tree's token.
    pub worktree_id: WorktreeId,
    /// The real path of the work tree, written as [`PlaceRecord::root`].
    pub root: String,
    /// The real path of the git folder all work trees share, written likewise.
    pub common_dir: String,
    /// When it was last used, to the day.
    pub used_at: Time,
    /// Nothing with this token is there any more. Found out when the list is read, not kept.
    #[serde(default, skip_deserializing)]
    pub gone: bool,
}

#[derive(Serialize, Deserialize)]
struct Index {
    version: u32,
    places: Vec<KnownPlace>,
}

/// Adds a place to the index, or notes that it was used. Does nothing where the user has no state folder.
pub fn add_place(
    env: &Env,
    place: &Place,
    record: &PlaceRecord,
    now: Time,
) -> Result<(), RepositoryError> {
    let Some(folder) = state_dir(env) else {
        return Ok(());
    };
    let entry = KnownPlace {
        repository_id: record.repository_id.clone(),
        worktree_id: record.worktree_id.clone(),
        root: record.root.clone(),
        common_dir: text_of_path(&place.common_dir),
        used_at: now,
        gone: false,
    };
    let file = folder.join("places.json");
    let is_known = |known: &KnownPlace| {
        known.root == entry.root
            && known.worktree_id == entry.worktree_id
            && known.repository_id == entry.repository_id
            && known.common_dir == entry.common_dir
            && (0..RECENT_MILLIS).contains(&now.since(known.used_at))
    };
    if read(&file)
        .map_err(RepositoryError::DamagedToken)?
        .iter()
        .any(is_known)
    {
        return Ok(());
    }
    make_private_folder(&folder)?;
    keep_out_of_git(&folder)?;
    let lock = lock(&folder.join("places.lock"))?;
    let mut places = read(&file).map_err(RepositoryError::DamagedToken)?;
    places.retain(|known| known.root != entry.root);
    places.push(entry);
    places.sort_by_key(|known| known.used_at);
    let beyond = places.len().saturating_sub(MOST);
    places.drain(..beyond);
    write(&file, places)?;
    drop(lock);
    Ok(())
}

/// Lists the known places, the last used first. A damaged index is an issue.
pub fn known_places(env: &Env) -> Found<KnownPlace> {
    let Some(folder) = state_dir(env) else {
        return Found::default();
    };
    match read(&folder.join("places.json")) {
        Ok(mut items) => {
            for known in &mut items {
                known.gone = is_gone(known);
            }
            items.reverse();
            Found {
                items,
                issues: Vec::new(),
            }
        }
        Err(issue) => Found {
            items: Vec::new(),
            issues: vec![issue],
        },
    }
}

/// Takes the places that are gone out of the index and returns them. `apply` false only says what would go.
pub fn forget_gone_places(env: &Env, apply: bool) -> Result<Vec<KnownPlace>, RepositoryError> {
    let Some(folder) = state_dir(env) else {
        return Ok(Vec::new());
    };
    let file = folder.join("places.json");
    let _lock = if apply && folder.exists() {
        Some(lock(&folder.join("places.lock"))?)
    } else {
        None
    };
    let places = read(&file).map_err(RepositoryError::DamagedToken)?;
    let (gone, kept): (Vec<_>, Vec<_>) = places.into_iter().partition(is_gone);
    if apply && !gone.is_empty() {
        write(&file, kept)?;
    }
    Ok(gone)
}

/// Tells whether a place is gone. One that cannot be looked at is not: it is only closed.
fn is_gone(known: &KnownPlace) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let Some(root) = path_of_text(&known.root) else {
        return true;
    };
    if let Err(error) = std::fs::metadata(root.join(".git")) {
        return matches!(error.kind(), NotFound | NotADirectory);
    }
    git_dir_of(&root)
        .and_then(|git_dir| holds_token(&git_dir, &known.worktree_id).or(Some(true)))
        .is_none_or(|holds| !holds)
}

fn read(file: &Path) -> Result<Vec<KnownPlace>, Issue> {
    let Some(bytes) = read_bounded(file, LARGEST)? else {
        return Ok(Vec::new());
    };
    if !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0) {
        return Err(Issue::new(
            file,
            IssueKind::Zeroed,
            "the index of known places holds zero bytes",
        ));
    }
    let index: Index = serde_json::from_slice(&bytes).map_err(|error| {
        Issue::new(
            file,
            if error.is_eof() {
                IssueKind::Torn
            } else {
                IssueKind::Corrupt
            },
            format!("the index of known places cannot be read: {error}"),
        )
    })?;
    if index.version != VERSION {
        return Err(Issue::new(
            file,
            IssueKind::UnknownVersion,
            format!("version {} of the index of known places", index.version),
        ));
    }
    Ok(index.places)
}

fn write(file: &Path, places: Vec<KnownPlace>) -> Result<(), RepositoryError> {
    let index = Index {
        version: VERSION,
        places,
    };
    let mut text = serde_json::to_vec_pretty(&index)
        .map_err(|error| FileError::new("cannot write", file, std::io::Error::other(error)))?;
    text.push(b'\n');
    Ok(write_atomic(file, &text, 0o600)?)
}

/// Waits two seconds at the most. The lock belongs to the open file, so a dead holder holds nothing.
fn lock(path: &Path) -> Result<File, RepositoryError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let fail = |source| FileError::new("cannot lock", path, source);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        // No link is followed, and no pipe waited on.
        .custom_flags(
            (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK)
                .bits()
                .cast_signed(),
        )
        .open(path)
        .map_err(fail)?;
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(fail(std::io::ErrorKind::TimedOut.into()).into());
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(fail(error).into()),
        }
    }
}
