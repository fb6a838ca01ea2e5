//! What a stopped installation left beside the hooks: files under a temporary name, which git never runs.
use std::path::{Component, Path, PathBuf};

use super::seen::Seen;
use super::{HookError, stub};
use crate::files::{FileError, Staged};
use crate::ledger::InstalledHook;
use crate::paths::path_of_text;
use crate::repository::{Git, Place};

/// Returns the folders that hooks are in or were put into, by git's answer and by the ledger's records, ordered. A record
/// of a folder outside this repository counts for nothing, unless git looks there: in a copied or moved repository it names
/// the hooks of another.
pub(super) fn folders<'a>(
    place: &Place,
    git: &dyn Git,
    recorded: impl IntoIterator<Item = &'a InstalledHook>,
) -> Result<Vec<PathBuf>, HookError> {
    let mut folders = vec![place.common_dir.join("hooks"), git.hooks_dir()?];
    let recorded = recorded.into_iter().filter_map(folder_of);
    folders.extend(recorded.filter(|folder| is_inside(folder, place)));
    folders.sort();
    folders.dedup();
    Ok(folders)
}

/// Returns the folder into whose files a hook was put, by its record; `None` where it was put into the configuration.
pub(super) fn folder_of(hook: &InstalledHook) -> Option<PathBuf> {
    let file = path_of_text(&hook.place)?;
    let folder = file.parent()?;
    folder.is_absolute().then(|| folder.to_path_buf())
}

/// Tells whether a folder lies in git's own folder of this repository.
fn is_inside(folder: &Path, place: &Place) -> bool {
    let is_plain = |part| part != Component::ParentDir;
    folder.starts_with(&place.common_dir) && folder.components().all(is_plain)
}

/// Tells whether our text is in a file.
pub(super) fn is_ours(path: &Path) -> bool {
    matches!(Seen::at(path), Ok(Seen::File { bytes, .. }) if stub::find(&bytes).is_some())
}

/// Tells whether our text is in the file that a record names.
pub(super) fn is_ours_still(hook: &InstalledHook) -> bool {
    folder_of(hook).is_some() && path_of_text(&hook.place).is_some_and(|file| is_ours(&file))
}

/// Returns the name under which a hook is recorded that was put into another place since.
pub(super) fn former_name(hook: &InstalledHook) -> String {
    format!("{} in {}", hook.name, hook.place)
}

/// Returns the folders of hooks that an installation made. The one of a repository that was moved or copied since lies where it
/// lay there.
pub(super) fn made_folders<'a>(
    place: &Place,
    recorded: impl IntoIterator<Item = &'a InstalledHook>,
) -> Vec<PathBuf> {
    let made = recorded.into_iter().filter(|hook| hook.made_folder);
    let mut folders: Vec<PathBuf> = made
        .filter_map(folder_of)
        .filter_map(|folder| {
            if is_inside(&folder, place) {
                return Some(folder);
            }
            folder
                .ends_with("hooks")
                .then(|| place.common_dir.join("hooks"))
        })
        .collect();
    folders.sort();
    folders.dedup();
    folders
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

/// Says of hooks that were recorded in folders which are not looked at, and are there, that they stay.
pub(super) fn left_elsewhere<'a>(
    recorded: impl IntoIterator<Item = &'a InstalledHook>,
    looked_at: &[PathBuf],
) -> Vec<String> {
    let mut folders: Vec<PathBuf> = recorded
        .into_iter()
        .filter_map(|hook| Some((folder_of(hook)?, &hook.name)))
        .filter(|(folder, name)| !looked_at.contains(folder) && is_ours(&folder.join(name)))
        .map(|(folder, _)| folder)
        .collect();
    folders.sort();
    folders.dedup();
    let note = |folder: PathBuf| {
        format!(
            "the hooks in {} stay: that folder is outside this repository, and git does not look there for it",
            folder.display()
        )
    };
    folders.into_iter().map(note).collect()
}
