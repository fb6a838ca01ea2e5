//! Where a check runs: a planned one at the top of the work tree, another where it was asked for.
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{Engine, EngineError};
use crate::evidence::Evidence;
use crate::paths::text_of_path;
use crate::repository;

/// Returns the top of the work tree of the call's place: planned checks run there.
pub fn top(engine: &Engine<'_>) -> Result<PathBuf, EngineError> {
    let place = match repository::plain_place(engine.env, &engine.env.cwd) {
        Some(place) => place,
        None => repository::discover(engine.env, &engine.env.cwd)?,
    };
    Ok(place.root)
}

/// Names a folder as evidence keeps it: relative to the top of the work tree, absolute where it lies elsewhere.
pub fn folder_in(root: &Path, folder: &Path) -> String {
    let is_top = || {
        let (top, here) = (root.metadata().ok()?, folder.metadata().ok()?);
        Some((top.dev(), top.ino()) == (here.dev(), here.ino()))
    };
    if is_top() == Some(true) {
        return Evidence::TOP.to_owned();
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let (root, folder) = (real(root), real(folder));
    match folder.strip_prefix(&root) {
        Ok(below) if below.as_os_str().is_empty() => Evidence::TOP.to_owned(),
        Ok(below) => text_of_path(below),
        Err(_) => text_of_path(&folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_from_the_top() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap().join("r");
        std::fs::create_dir_all(root.join("sub/deep")).unwrap();
        std::os::unix::fs::symlink(&root, scratch.path().join("link")).unwrap();
        std::os::unix::fs::symlink(root.join("sub"), root.join("inward")).unwrap();
        let name = |path: &str| folder_in(&root, &scratch.path().join(path));
        assert_eq!(name("r"), ".");
        assert_eq!(name("link"), ".");
        assert_eq!(name("r/sub/.."), ".");
        assert_eq!(name("r/sub/deep"), "sub/deep");
        assert_eq!(name("link/inward"), "sub");
        assert_eq!(name("r/gone"), "gone");
        let above = scratch.path().canonicalize().unwrap();
        assert_eq!(name(""), text_of_path(&above));
    }
}
