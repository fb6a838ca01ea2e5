//! What a stopped installation left beside the hooks: files under a temporary name, which git never runs.
use std::path::{Path, PathBuf};

use super::HookError;
use crate::files::{FileError, Staged};
use crate::ledger::InstalledHook;
use crate::paths::path_of_text;
use crate::repository::{Git, Place};

/// Returns the folders that hooks are in or were put into, by git's answer and by the ledger's records, ordered.
pub(super) fn folders<'a>(
    place: &Place,
    git: &dyn Git,
    recorded: impl IntoIterator<Item = &'a InstalledHook>,
) -> Result<Vec<PathBuf>, HookError> {
    let mut folders = vec![place.common_dir.join("hooks"), git.hooks_dir()?];
    for hook in recorded {
        let file = path_of_text(&hook.place);
        let folder = file.as_deref().and_then(Path::parent);
        folders.extend(
            folder
                .filter(|folder| folder.is_absolute())
                .map(Path::to_path_buf),
        );
    }
    folders.sort();
    folders.dedup();
    Ok(folders)
}

/// Lists the temporary files in the folders of hooks, ordered by path. One of a process that is at work now is among
/// them: its age tells.
pub fn temporary_files<'a>(
    place: &Place,
    git: &dyn Git,
    recorded: impl IntoIterator<Item = &'a InstalledHook>,
) -> Result<Vec<PathBuf>, HookError> {
    let mut found = Vec::new();
    let mut all = folders(place, git, recorded)?;
    // That of git's configuration.
    all.push(place.common_dir.clone());
    for folder in all {
        found.extend(in_folder(&folder)?);
    }
    Ok(found)
}

/// Lists the temporary files in one folder, ordered; none where there is no folder.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, HookError> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let fail = |error| FileError::new("cannot list", folder, error);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(Vec::new()),
        Err(error) => return Err(fail(error).into()),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        let is_ours = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(Staged::PREFIX.as_bytes());
        if is_ours && entry.metadata().map_err(fail)?.is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
