//! The place of a call, found without opening a repository, where its shape is the plain one.
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::{LOCAL_VARIABLES, Place};
use crate::env::Env;

/// The largest `.git/config` that is looked at.
const LARGEST: u64 = 64 << 10;

/// Variables that change where git looks, beside [`LOCAL_VARIABLES`].
const ELSEWHERE: [&str; 2] = ["GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"];

/// Finds the place that `start` lies in where nothing about it is special: no variable of git's names another, `.git` is a
/// folder of the user's own in a folder of the user's own, with an object store and references, and its settings name
/// neither another work tree nor a format to be understood first. `None` says nothing but that [`super::discover`] has to
/// find out; it costs ten times as much, since it opens the repository.
pub fn plain_place(env: &Env, start: &Path) -> Option<Place> {
    if LOCAL_VARIABLES
        .iter()
        .chain(&ELSEWHERE)
        .any(|name| env.var(name).is_some())
    {
        return None;
    }
    let start = std::fs::canonicalize(start).ok()?;
    let device = start.metadata().ok()?.dev();
    let user = rustix::process::geteuid().as_raw();
    for root in start.ancestors() {
        let git_dir = root.join(".git");
        let meta = match git_dir.symlink_metadata() {
            Ok(meta) => meta,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // It may be a git folder itself, or lie in one.
                if root.join("HEAD").symlink_metadata().is_ok() {
                    return None;
                }
                continue;
            }
            Err(_) => return None,
        };
        let top = root.symlink_metadata().ok()?;
        let ours = |meta: &Metadata| meta.is_dir() && meta.uid() == user && meta.dev() == device;
        let is_dir = |name: &str| {
            git_dir
                .join(name)
                .symlink_metadata()
                .is_ok_and(|meta| meta.is_dir())
        };
        let plain = ours(&meta)
            && ours(&top)
            && is_dir("objects")
            && is_dir("refs")
            && has_plain_head(&git_dir.join("HEAD"))
            && git_dir.join("commondir").symlink_metadata().is_err()
            && has_plain_settings(&git_dir.join("config"));
        return plain.then(|| Place {
            root: root.to_path_buf(),
            common_dir: git_dir.clone(),
            git_dir,
        });
    }
    None
}

/// Tells whether HEAD says what it should: git passes by a folder where it does not.
fn has_plain_head(path: &Path) -> bool {
    let Ok(Some(head)) = crate::files::read_bounded(path, LARGEST) else {
        return false;
    };
    let head = head.trim_ascii_end();
    head.starts_with(b"ref: refs/heads/")
        || (matches!(head.len(), 40 | 64) && head.iter().all(u8::is_ascii_hexdigit))
}

/// Tells whether a repository's settings are there and say nothing of another work tree, a bare repository, an extension or
/// another file. Whatever is written in an unusual way counts as saying so.
fn has_plain_settings(path: &Path) -> bool {
    let Ok(Some(bytes)) = crate::files::read_bounded(path, LARGEST) else {
        return false;
    };
    let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let usual = |line: &str| {
        let Some((key, value)) = line.split_once('=') else {
            return false;
        };
        matches!(
            (key.trim(), value.trim()),
            ("bare", "false") | ("repositoryformatversion", "0")
        )
    };
    !["worktree", "extensions", "include"]
        .iter()
        .any(|word| text.contains(word))
        && text.lines().all(|line| {
            !(line.contains("bare") || line.contains("repositoryformatversion")) || usual(line)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_not_plain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let plain = |text: &str| {
            crate::files::write_atomic(&path, text.as_bytes(), 0o600).unwrap();
            has_plain_settings(&path)
        };
        assert!(plain(
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[user]\n\tname = a\n"
        ));
        for text in [
            "[core] bare = true\n",
            "[core]\n\tbare\n",
            "[core]\n\tbare = \\\nfalse\n",
            "[core]\n\tbare = false # no\n",
            "[core]\n\tWorkTree = /elsewhere\n",
            "[core]\n\trepositoryformatversion = 1\n",
            "[extensions]\n\tobjectFormat = sha256\n",
            "[includeIf \"gitdir:x\"]\n\tpath = y\n",
        ] {
            assert!(!plain(text), "{text}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(!has_plain_settings(&path));
    }

    #[test]
    fn a_plain_place_is_the_one_that_is_discovered() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        git2::Repository::init(&root).unwrap();
        let deep = root.join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        let env = Env::of([("HOME", folder.path())], &deep);
        let place = plain_place(&env, &deep).unwrap();
        assert_eq!(place, super::super::discover(&env, &deep).unwrap());
        // In git's own folder, and where a variable says something, only the long way tells.
        assert_eq!(plain_place(&env, &root.join(".git/refs")), None);
        let named = Env::of([("GIT_DIR", root.join(".git"))], &deep);
        assert_eq!(plain_place(&named, &deep), None);
    }
}
