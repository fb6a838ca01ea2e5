//! How the present place relates to a recorded one (`docs/formats/place.md`).
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::git::{git_dir_of, leads_nowhere, lock_of, worktrees};
use super::tokens::{Tokens, holds_token, worktree_token};
use super::{Place, RepositoryError};
use crate::files::FileError;
use crate::identity::PlaceRecord;
use crate::ids::WorktreeId;
use crate::paths::path_of_text;
use crate::verdict::{Sharing, Whereabouts};

/// Compares the present place with a recorded one. `tokens` are those of the present place.
///
/// Places are compared as the file system compares them, by device and inode, so a place reached through a link, a bind
/// mount or other letter case is the same. Where the tokens are equal and the path is another:
/// a folder that kept its inode, or that lies on another device, was moved when nothing of it is left at the old path;
/// a folder with another inode on the same device is a copy even then, for moving within a device keeps the inode: what became
/// of the original is not known. A copy has a git folder of its own: where there is one for both folders, or the present one
/// has it only by a setting or the environment, they share it, and the ledger with it.
pub fn whereabouts(
    place: &Place,
    tokens: &Tokens,
    recorded: &PlaceRecord,
) -> Result<Whereabouts, RepositoryError> {
    if tokens.repository.as_ref() != Some(&recorded.repository_id) {
        return Ok(Whereabouts::OtherRepository);
    }
    if tokens.worktree.as_ref() != Some(&recorded.worktree_id) {
        return Ok(if lives_elsewhere(place, &recorded.worktree_id) {
            Whereabouts::OtherWorktree
        } else if lock_reason(place, &recorded.worktree_id).is_some() {
            Whereabouts::WorktreeAway
        } else if is_unlinked(place, &recorded.worktree_id) {
            Whereabouts::WorktreeUnlinked
        } else {
            Whereabouts::WorktreeGone
        });
    }
    let here = std::fs::metadata(&place.root)
        .map_err(|source| FileError::new("cannot look at", &place.root, source))?;
    let Some(old) = path_of_text(&recorded.root) else {
        return Ok(Whereabouts::Copied);
    };
    if old == place.root {
        return Ok(Whereabouts::Same);
    }
    let has_own = git_dir_of(&place.root).as_ref() == Some(&place.git_dir);
    match std::fs::metadata(&old) {
        Ok(there) if (there.dev(), there.ino()) == (here.dev(), here.ino()) => {
            return Ok(Whereabouts::Same);
        }
        Ok(there) => {
            if git_dir_of(&old).as_ref() == Some(&place.git_dir) {
                return Ok(Whereabouts::Shared(if has_own {
                    Sharing::Link
                } else {
                    named_by(place)
                }));
            }
            if may_hold(&old, &recorded.worktree_id) {
                return Ok(Whereabouts::Copied);
            }
            if !has_own {
                return Ok(Whereabouts::Shared(named_by(place)));
            }
            if (there.dev(), there.ino()) == (recorded.device, recorded.inode) {
                return Ok(Whereabouts::Shared(Sharing::Named));
            }
        }
        Err(error)
            if !matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            // It cannot be shown to be gone.
            return Ok(Whereabouts::Copied);
        }
        Err(_) => {}
    }
    let same_device = here.dev() == recorded.device;
    // A folder that is the work tree by a setting or the environment brought no git folder along.
    Ok(if has_own && same_device && here.ino() != recorded.inode {
        Whereabouts::CopyOfGone
    } else {
        Whereabouts::Relocated
    })
}

/// Says what makes a folder the work tree of a git folder that its own `.git` does not lead to.
fn named_by(place: &Place) -> Sharing {
    let sets = |name: &str| {
        let bytes = crate::files::read_bounded(&place.git_dir.join(name), 1 << 20);
        let text = bytes.ok().flatten().unwrap_or_default();
        text.split(|byte| *byte == b'\n').any(|line| {
            let line = line.trim_ascii().to_ascii_lowercase();
            let rest = line.strip_prefix(b"worktree");
            rest.is_some_and(|rest| rest.trim_ascii_start().starts_with(b"="))
        })
    };
    if sets("config") || sets("config.worktree") {
        Sharing::Setting
    } else {
        Sharing::Environment
    }
}

/// Tells whether the folder is a work tree with that token, or cannot be shown to be none.
fn may_hold(root: &Path, id: &WorktreeId) -> bool {
    match std::fs::metadata(root.join(".git")) {
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
        Ok(_) => git_dir_of(root).is_some_and(|git_dir| holds_token(&git_dir, id) != Some(false)),
    }
}

/// Tells whether another work tree of this repository has that token and still exists.
fn lives_elsewhere(place: &Place, id: &WorktreeId) -> bool {
    root_of(place, id).is_some()
}

/// Tells whether the work tree with that token stands where git knows it, with a `.git` that leads to a folder that is gone: the
/// repository was moved, and nobody told the work tree (git-worktree(1), `repair`). One that leads elsewhere is another's now.
fn is_unlinked(place: &Place, id: &WorktreeId) -> bool {
    worktrees(place).iter().any(|tree| {
        tree.gone
            && worktree_token(&tree.git_dir).as_ref() == Some(id)
            && leads_nowhere(&tree.root, &tree.git_dir)
    })
}

/// Returns where the work tree with that token is now, if it is one of this repository and is there.
pub fn root_of(place: &Place, id: &WorktreeId) -> Option<PathBuf> {
    worktrees(place)
        .into_iter()
        .find(|tree| !tree.gone && worktree_token(&tree.git_dir).as_ref() == Some(id))
        .map(|tree| tree.root)
}

/// Returns the reason for which the work tree with that token is locked, empty where none was given; `None` where it is not
/// locked, or not of this repository.
pub fn lock_reason(place: &Place, id: &WorktreeId) -> Option<String> {
    worktrees(place)
        .iter()
        .find(|tree| worktree_token(&tree.git_dir).as_ref() == Some(id))
        .and_then(|tree| lock_of(&tree.git_dir))
}
