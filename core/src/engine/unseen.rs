//! What a look does not see: ignored files, folders that are left out, git's own.
use std::path::{Path, PathBuf};

use super::{Engine, EngineError, Site};
use crate::boundary::Boundary;
use crate::fingerprint::RUNTIME_FOLDERS;
use crate::paths::path_of_text;
use crate::repository::Repository;

/// For so many patterns git is asked.
const MOST: usize = 64;

/// Returns those of some patterns that name what a look does not see: a boundary of them holds nothing. Where git cannot be
/// asked, nothing is said of it.
pub(super) fn unseen(engine: &Engine<'_>, site: &Site, globs: &[String]) -> Vec<String> {
    let unseen = |glob: &&String| {
        let path = Boundary::unmarked(glob);
        let path = path_of_text(path).unwrap_or_else(|| PathBuf::from(path));
        is_left_out(engine, &path) || is_ignored(&site.repository, &path)
    };
    globs.iter().take(MOST).filter(unseen).cloned().collect()
}

/// Tells whether a file is a part of the content of the work tree of this call: it lies in it, and is neither ignored nor left
/// out.
pub fn is_content(engine: &Engine<'_>, file: &Path) -> Result<bool, EngineError> {
    let site = Site::open(engine)?;
    let file = engine.env.cwd.join(file);
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return Ok(false);
    };
    let real = folder.canonicalize();
    let file = real.unwrap_or_else(|_| folder.to_path_buf()).join(name);
    let place = site.place();
    let is_git_s = [&place.git_dir, &place.common_dir]
        .into_iter()
        .any(|folder| file.starts_with(folder));
    let Ok(path) = file.strip_prefix(&place.root) else {
        return Ok(false);
    };
    Ok(!is_git_s
        && !is_left_out(engine, path)
        && !site.repository.ignores(path).unwrap_or_default())
}

/// Tells whether a path lies in a folder that no look goes into.
fn is_left_out(engine: &Engine<'_>, path: &Path) -> bool {
    let Some(first) = path.components().next() else {
        return false;
    };
    let first = first.as_os_str();
    let mut names = RUNTIME_FOLDERS
        .iter()
        .copied()
        .chain(engine.settings.exclude.iter().map(String::as_str));
    first == ".git" || names.any(|name| first == name)
}

fn is_ignored(repository: &Repository, path: &Path) -> bool {
    let ignores = |path: &Path| repository.ignores(path).unwrap_or_default();
    if ignores(path) {
        return true;
    }
    // A rule may name folders alone, and a folder may hold what is tracked beside what is ignored.
    let there = std::fs::symlink_metadata(repository.place().root.join(path));
    let may_be_folder = there.map_or(true, |data| data.is_dir());
    may_be_folder && ignores(&path.join("any-file-of-takeup"))
}
