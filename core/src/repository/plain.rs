//! The place of a call and what HEAD names, found without opening a repository, where its shape is the plain one.
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::git::operation_by_marks;
use super::{Head, LOCAL_VARIABLES, Operation, Place};
use crate::env::Env;
use crate::ids::Oid;

/// The largest `.git/config` that is looked at.
const LARGEST: u64 = 64 << 10;

/// Variables that change where git looks, beside [`LOCAL_VARIABLES`].
const ELSEWHERE: [&str; 2] = ["GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"];

/// Those of [`LOCAL_VARIABLES`] that say nothing of the place. git sets them for its hooks.
const HARMLESS: [&str; 2] = ["GIT_INDEX_FILE", "GIT_PREFIX"];

/// Finds the place that `start` lies in where nothing about it is special: no variable of git's names another, `.git` is a
/// folder of the user's own in a folder of the user's own, with an object store and references, and its settings name
/// neither another work tree nor a format to be understood first. `None` says nothing but that [`super::discover`] has to
/// find out; it costs ten times as much, since it opens the repository.
pub fn plain_place(env: &Env, start: &Path) -> Option<Place> {
    if LOCAL_VARIABLES
        .iter()
        .chain(&ELSEWHERE)
        .any(|name| !HARMLESS.contains(name) && env.var(name).is_some())
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

/// Returns what HEAD names in a place that [`plain_place`] found, and the git operation in progress. `None` says nothing but
/// that [`super::Git`] has to be asked: the branch has no commit yet or no file of its own, or anything is unusual.
pub fn plain_head(place: &Place) -> Option<(Head, Option<Operation>)> {
    let read = |name: &str| {
        let bytes = crate::files::read_bounded(&place.git_dir.join(name), LARGEST).ok()??;
        String::from_utf8(bytes.strip_suffix(b"\n")?.to_vec()).ok()
    };
    let commit = |text: String| (text.len() == 40).then(|| Oid::new(text).ok()).flatten();
    let head = read("HEAD")?;
    let head = match head.strip_prefix("ref: ") {
        Some(name) => {
            let branch = name.strip_prefix("refs/heads/")?;
            if !is_plain_name(branch) {
                return None;
            }
            Head {
                commit: Some(commit(read(name)?)?),
                branch: Some(branch.to_owned()),
            }
        }
        None => Head {
            commit: Some(commit(head)?),
            branch: None,
        },
    };
    // Here the pseudo-refs are files.
    let operation =
        operation_by_marks(&place.git_dir, |name| Ok(place.git_dir.join(name).exists()));
    Some((head, operation.ok()?))
}

/// Tells whether a branch has a name that git takes and that leads nowhere else (git-check-ref-format(1)); some that git takes
/// are not among them.
fn is_plain_name(name: &str) -> bool {
    name.split('/').all(|part| {
        let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+=,#%".contains(&byte);
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.to_ascii_lowercase().ends_with(".lock")
            && !part.contains("..")
            && part.bytes().all(usual)
    })
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
        // git's hooks are called with this.
        let index = Env::of([("GIT_INDEX_FILE", ".git/next-index-1.lock")], &deep);
        assert_eq!(plain_place(&index, &deep), Some(place));
    }

    /// What is found without git is what git says; where nothing is found, git is asked.
    #[test]
    fn head_is_what_git_says() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let repository = git2::Repository::init(&root).unwrap();
        let env = Env::of([("HOME", folder.path())], &root);
        let place = plain_place(&env, &root).unwrap();
        let by_git = || {
            let opened = super::super::Repository::open(&env, &place).unwrap();
            let git = opened.git();
            (git.head().unwrap(), git.operation().unwrap())
        };
        let same = || assert_eq!(plain_head(&place), Some(by_git()));
        let asked = || assert_eq!(plain_head(&place), None);
        let put = |name: &str, text: &str| {
            let path = root.join(".git").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            crate::files::write_atomic(&path, text.as_bytes(), 0o600).unwrap();
        };
        asked();
        let author = git2::Signature::now("a", "a@example.org").unwrap();
        let tree = repository.treebuilder(None).unwrap().write().unwrap();
        let tree = repository.find_tree(tree).unwrap();
        let commit = repository
            .commit(Some("HEAD"), &author, &author, "m", &tree, &[])
            .unwrap();
        same();
        for name in ["refs/heads/a/b-c.d", "refs/heads/v1.0+x"] {
            put(name, &format!("{commit}\n"));
            repository.set_head(name).unwrap();
            same();
        }
        for mark in ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"] {
            put(mark, &format!("{commit}\n"));
            same();
            assert!(plain_head(&place).unwrap().1.is_some());
            std::fs::remove_file(root.join(".git").join(mark)).unwrap();
        }
        put("BISECT_LOG", "");
        put("rebase-apply/applying", "");
        same();
        repository.set_head_detached(commit).unwrap();
        same();
        for (name, text) in [
            ("HEAD", "ref: refs/heads/../../HEAD\n"),
            ("HEAD", "ref: refs/heads/x.lock\n"),
            ("HEAD", "ref: refs/heads/a//b-c.d\n"),
            ("HEAD", "ref: refs/heads/packed\n"),
            ("HEAD", "ref: refs/heads/indirect\n"),
            ("HEAD", &format!("{commit}")),
        ] {
            put("refs/heads/x.lock", &format!("{commit}\n"));
            put("refs/heads/indirect", "ref: refs/heads/a/b-c.d\n");
            put("packed-refs", &format!("{commit} refs/heads/packed\n"));
            put(name, text);
            asked();
        }
    }
}
