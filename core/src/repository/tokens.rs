//! The random ids by which a repository and a work tree are known again (`docs/formats/place.md`).
//!
//! `<common git dir>/takeup/repository-id` and `<git dir>/takeup/worktree-id`, one line each. Git removes the second with
//! its folder when a linked work tree is removed, so a slot that is used again has none.
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::git::linked_root;
use super::{Place, RepositoryError};
use crate::files::{
    FileError, Staged, foreign, make_private_folder, read_bounded, remove, sweep, write_atomic,
};
use crate::identity::PlaceRecord;
use crate::ids::{RepositoryId, WorktreeId};
use crate::issue::{Issue, IssueKind};
use crate::paths::text_of_path;
use crate::verdict::Sharing;

/// The tokens of a place, as far as it has any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// The repository's.
    pub repository: Option<RepositoryId>,
    /// The work tree's.
    pub worktree: Option<WorktreeId>,
}

fn repository_file(place: &Place) -> PathBuf {
    place.common_dir.join("takeup/repository-id")
}

fn promise_file(place: &Place) -> PathBuf {
    place.git_dir.join("takeup/ids-of-copy")
}

pub(super) fn worktree_file(git_dir: &Path) -> PathBuf {
    git_dir.join("takeup/worktree-id")
}

/// Reads the tokens of a place. Nothing is made; a damaged one is an error, never "none".
pub fn tokens(place: &Place) -> Result<Tokens, RepositoryError> {
    Ok(Tokens {
        repository: read(&repository_file(place), RepositoryId::new)?,
        worktree: read(&worktree_file(&place.git_dir), WorktreeId::new)?,
    })
}

/// Reads the tokens of a place, and makes those that are missing. However many do so at once, all get the same.
pub fn create_tokens(place: &Place) -> Result<(RepositoryId, WorktreeId), RepositoryError> {
    Ok((
        create(&repository_file(place), RepositoryId::new)?,
        create(&worktree_file(&place.git_dir), WorktreeId::new)?,
    ))
}

/// Makes up tokens of its own for a copied repository. Nothing is written: see [`put_tokens`].
///
/// Fails for a copied linked work tree: it shares the original's git folder, and so its token.
pub fn new_tokens(place: &Place) -> Result<(RepositoryId, WorktreeId), RepositoryError> {
    if place.is_linked()
        && let Some(other) = linked_root(&place.git_dir)
        && other != place.root
    {
        return Err(RepositoryError::SharedGitDir {
            root: place.root.clone(),
            other,
            sharing: Sharing::Link,
        });
    }
    Ok((
        fresh(&repository_file(place), RepositoryId::new)?.0,
        fresh(&worktree_file(&place.git_dir), WorktreeId::new)?.0,
    ))
}

/// Gives a copied repository the tokens of its own. What was recorded with the old ones belongs to the original from then on.
pub fn put_tokens(
    place: &Place,
    tokens: &(RepositoryId, WorktreeId),
) -> Result<(), RepositoryError> {
    put(&repository_file(place), tokens.0.as_str())?;
    put(&worktree_file(&place.git_dir), tokens.1.as_str())?;
    forget_promise(place)
}

/// Writes down which tokens a copied repository is about to get, before anything is recorded with them: whoever goes on after a
/// cut finds them in [`promised_tokens`].
pub fn promise_tokens(
    place: &Place,
    tokens: &(RepositoryId, WorktreeId),
) -> Result<(), RepositoryError> {
    let lines = format!("{}\n{}", tokens.0.as_str(), tokens.1.as_str());
    put(&promise_file(place), &lines)
}

/// Returns the tokens that this repository was about to get when something cut that off.
pub fn promised_tokens(
    place: &Place,
) -> Result<Option<(RepositoryId, WorktreeId)>, RepositoryError> {
    read(&promise_file(place), |text| {
        let (repository, worktree) = text.split_once('\n').unwrap_or((&text, ""));
        Ok((
            RepositoryId::new(repository.to_owned())?,
            WorktreeId::new(worktree.to_owned())?,
        ))
    })
}

/// Forgets promised tokens: they are in place.
pub fn forget_promise(place: &Place) -> Result<(), RepositoryError> {
    Ok(remove(&promise_file(place))?)
}

/// Describes the place for a record. Fails where it has no tokens yet.
pub fn place_record(place: &Place) -> Result<PlaceRecord, RepositoryError> {
    let Tokens {
        repository: Some(repository_id),
        worktree: Some(worktree_id),
    } = tokens(place)?
    else {
        return Err(RepositoryError::NotInitialised {
            root: place.root.clone(),
        });
    };
    let meta = std::fs::metadata(&place.root)
        .map_err(|source| FileError::new("cannot look at", &place.root, source))?;
    Ok(PlaceRecord {
        repository_id,
        worktree_id,
        root: text_of_path(&place.root),
        device: meta.dev(),
        inode: meta.ino(),
    })
}

/// Reads the token of a work tree's git folder; a damaged one is `None`.
pub(super) fn worktree_token(git_dir: &Path) -> Option<WorktreeId> {
    read(&worktree_file(git_dir), WorktreeId::new)
        .ok()
        .flatten()
}

/// Tells whether a work tree's git folder holds a token. `None` where that cannot be looked at, whoever closed it.
pub(super) fn holds_token(git_dir: &Path, id: &WorktreeId) -> Option<bool> {
    match read(&worktree_file(git_dir), WorktreeId::new) {
        Ok(found) => Some(found.as_ref() == Some(id)),
        Err(RepositoryError::DamagedToken(issue)) if issue.is_closed() => None,
        Err(_) => Some(false),
    }
}

type Make<T> = fn(String) -> Result<T, crate::ids::InvalidId>;

fn read<T>(file: &Path, make: Make<T>) -> Result<Option<T>, RepositoryError> {
    let damaged =
        |kind, message: String| RepositoryError::DamagedToken(Issue::new(file, kind, message));
    let Some(bytes) =
        read_bounded(file, 1024).map_err(|issue| RepositoryError::DamagedToken(foreign(issue)))?
    else {
        return Ok(None);
    };
    if bytes.contains(&0) {
        return Err(damaged(
            IssueKind::Zeroed,
            "the token holds zero bytes".to_owned(),
        ));
    }
    let Some(line) = bytes.strip_suffix(b"\n") else {
        return Err(damaged(IssueKind::Torn, "the token has no end".to_owned()));
    };
    String::from_utf8(line.to_vec())
        .map_err(|_| "it is not text".to_owned())
        .and_then(|text| make(text).map_err(|error| error.to_string()))
        .map(Some)
        .map_err(|why| {
            damaged(
                IssueKind::Corrupt,
                format!("the token cannot be read: {why}"),
            )
        })
}

fn fresh<T>(file: &Path, make: Make<T>) -> Result<(T, Vec<u8>), RepositoryError> {
    let text = ulid::Ulid::generate().to_string().to_ascii_lowercase();
    let line = format!("{text}\n").into_bytes();
    match make(text) {
        Ok(id) => Ok((id, line)),
        Err(error) => Err(RepositoryError::DamagedToken(Issue::new(
            file,
            IssueKind::Corrupt,
            error.to_string(),
        ))),
    }
}

fn create<T>(file: &Path, make: Make<T>) -> Result<T, RepositoryError> {
    if let Some(id) = read(file, make)? {
        return Ok(id);
    }
    let folder = file.parent().unwrap_or_else(|| Path::new("/"));
    make_private_folder(folder)?;
    let (id, line) = fresh(file, make)?;
    sweep(folder);
    if Staged::write(file, &line, 0o600)?.put_new()? {
        return Ok(id);
    }
    // Somebody else was first: theirs counts.
    read(file, make)?
        .ok_or_else(|| FileError::new("cannot read", file, std::io::ErrorKind::NotFound).into())
}

fn put(file: &Path, id: &str) -> Result<(), RepositoryError> {
    if let Some(folder) = file.parent() {
        make_private_folder(folder)?;
    }
    Ok(write_atomic(file, format!("{id}\n").as_bytes(), 0o600)?)
}
