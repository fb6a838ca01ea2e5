//! Which folders belong to one work tree: the nearest `.git` above a folder says so, as it does to git.
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Tells which folders lie in one work tree. Each is looked at once, so that ten thousand sessions cost a handful of looks.
#[derive(Debug)]
pub struct Folders {
    root: PathBuf,
    known: HashMap<PathBuf, bool>,
}

impl Folders {
    /// Those of the work tree at `root`.
    pub fn of(root: &Path) -> Self {
        Self {
            root: root.canonicalize().unwrap_or_else(|_| root.to_path_buf()),
            known: HashMap::new(),
        }
    }

    /// Tells whether a folder is the top of the work tree or below it, with no other repository or work tree between. One that is
    /// gone is looked for by its name below what is left of its path; that it was of this work tree is then likely and not
    /// known ([`is_there`]).
    pub fn hold(&mut self, folder: &Path) -> bool {
        if let Some(known) = self.known.get(folder) {
            return *known;
        }
        let holds = lies_in(folder, &self.root);
        self.known.insert(folder.to_path_buf(), holds);
        holds
    }
}

fn lies_in(folder: &Path, root: &Path) -> bool {
    // What is relative is so to a folder that is not known.
    if !folder.is_absolute() {
        return false;
    }
    let there = folder
        .ancestors()
        .find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, real)) = there else {
        return false;
    };
    let gone = folder.strip_prefix(above).unwrap_or_else(|_| Path::new(""));
    if gone.components().any(|part| part == Component::ParentDir) {
        return false;
    }
    let real = real.join(gone);
    real.starts_with(root)
        && !real
            .ancestors()
            .take_while(|above| *above != root)
            .any(has_git)
}

/// Tells whether a `.git` stands in a folder. One that cannot be looked for counts as there: the folder may be another work tree.
/// A folder of that name without a HEAD is none to git, and what lies around it goes on.
fn has_git(folder: &Path) -> bool {
    let git = folder.join(".git");
    let is_there = |path: &Path| match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    };
    is_there(&git) && (!git.is_dir() || is_there(&git.join("HEAD")))
}

/// Tells whether a folder can be looked at. Of one that is gone nobody can say which work tree it belonged to: a nested one may
/// have been removed with it.
pub fn is_there(folder: &Path) -> bool {
    folder.is_absolute() && folder.is_dir()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test's own files")]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_git_decides() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let root = top.join("home/r");
        for path in [
            "home/.git",
            "home/r/.git",
            "home/r/src/deep",
            "home/r/nested/.git",
            "home/r/nested/src",
            "home/r/stray/.git/ai",
            "home/r.old",
        ] {
            std::fs::create_dir_all(top.join(path)).unwrap();
        }
        for git in ["home/.git", "home/r/.git", "home/r/nested/.git"] {
            std::fs::write(top.join(git).join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        // The `.git` of a linked work tree and of a submodule is a file.
        std::fs::create_dir_all(root.join(".worktrees/x/src")).unwrap();
        std::fs::write(root.join(".worktrees/x/.git"), "gitdir: /elsewhere").unwrap();
        std::os::unix::fs::symlink(&root, top.join("link")).unwrap();
        std::os::unix::fs::symlink(root.join("nested"), root.join("inward")).unwrap();
        let mut here = Folders::of(&top.join("link"));
        for folder in [
            "home/r",
            "home/r/src/deep",
            "link",
            "link/src",
            "home/r/gone/for/good",
            "link/gone",
            "home/r/stray",
        ] {
            assert!(here.hold(&top.join(folder)), "{folder}");
        }
        for folder in [
            "",
            "home",
            "home/r.old",
            "home/r.gone",
            "home/r/nested",
            "home/r/nested/src",
            "home/r/nested/gone",
            "home/r/inward/src",
            "home/r/inward/gone",
            "home/r/.worktrees/x/src",
            "home/r/.worktrees/x/gone",
            "home/r/gone/../../other",
        ] {
            assert!(!here.hold(&top.join(folder)), "{folder}");
        }
        assert!(!here.hold(Path::new("src")));
        assert!(!here.hold(Path::new("")));
        // A repository that holds others has what is its own alone.
        let mut above = Folders::of(&top.join("home"));
        assert!(above.hold(&top.join("home/r.old")));
        assert!(!above.hold(&top.join("home/r/src")));
        assert!(is_there(&root) && !is_there(&root.join("gone")));
    }
}
