//! Repositories inside the work tree: submodules, and others that lie there untracked.
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::files::read_bounded;
use crate::repository::Place;

use super::error::FingerprintError;

/// The longest file that names a git folder.
const LONGEST: u64 = 1 << 20;

/// Finds the repository whose work tree is the folder `path` of `outer`. `Ok(None)` where the folder is missing, is
/// reached through a link, or is no repository by git's own test.
pub(super) fn place(outer: &Place, path: &[u8]) -> Result<Option<Place>, FingerprintError> {
    let root = outer.root.join(OsStr::from_bytes(path));
    // Nearly every folder ends here: asking for each folder above first costs a deep tree the square of its depth.
    if let Err(error) = root.join(".git").symlink_metadata()
        && matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    {
        return Ok(None);
    }
    let mut folder = outer.root.clone();
    for part in path.split(|byte| *byte == b'/') {
        folder.push(OsStr::from_bytes(part));
        match folder.symlink_metadata() {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Ok(None),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(FingerprintError::io("look at", &folder, error)),
        }
    }
    let Some(git_dir) = git_dir(&root)? else {
        return Ok(None);
    };
    let common_dir = match read_bounded(&git_dir.join("commondir"), LONGEST) {
        Ok(Some(text)) => {
            let target = git_dir.join(OsStr::from_bytes(text.trim_ascii()));
            match target.canonicalize() {
                Ok(path) => path,
                Err(_) => return Ok(None),
            }
        }
        Ok(None) => git_dir.clone(),
        Err(issue) => return Err(FingerprintError::damaged(&issue.path, issue.message)),
    };
    let valid = git_dir.join("HEAD").symlink_metadata().is_ok()
        && common_dir.join("objects").is_dir()
        && common_dir.join("refs").is_dir();
    Ok(valid.then_some(Place {
        root,
        git_dir,
        common_dir,
    }))
}

/// Resolves `.git` below `root`: a folder, or a file that names one.
fn git_dir(root: &Path) -> Result<Option<PathBuf>, FingerprintError> {
    let link = root.join(".git");
    let meta = match std::fs::metadata(&link) {
        Ok(meta) => meta,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(FingerprintError::io("look at", &link, error)),
    };
    let folder = if meta.is_dir() {
        link
    } else {
        let Ok(real) = link.canonicalize() else {
            return Ok(None);
        };
        let Ok(Some(text)) = read_bounded(&real, LONGEST) else {
            return Ok(None);
        };
        let Some(target) = text.strip_prefix(b"gitdir: ") else {
            return Ok(None);
        };
        let end = target
            .iter()
            .rposition(|byte| !matches!(byte, b'\n' | b'\r'))
            .map_or(0, |at| at + 1);
        root.join(OsStr::from_bytes(target.get(..end).unwrap_or_default()))
    };
    Ok(folder.canonicalize().ok())
}
