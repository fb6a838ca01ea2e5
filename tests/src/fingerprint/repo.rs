//! A repository that is thrown away, and the hand that changes it.
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use takeup_core::env::Env;
use takeup_core::repository::Place;

/// A repository in a temporary folder, with a home of its own.
#[derive(Debug)]
pub struct Repo {
    folder: tempfile::TempDir,
    /// The top of the work tree.
    pub root: PathBuf,
    /// The environment that git and the looks get.
    pub env: Env,
    place: Place,
}

impl Repo {
    /// Makes an empty SHA-1 repository.
    pub fn new() -> Self {
        Self::with_format("sha1")
    }

    /// Makes an empty repository with the object format.
    pub fn with_format(format: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let base = folder.path().canonicalize().expect("a real path");
        let home = base.join("home");
        std::fs::create_dir_all(&home).expect("a home");
        let settings = "[user]\n\tname = A\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n\
             [protocol \"file\"]\n\tallow = always\n[advice]\n\tdetachedHead = false\n[gc]\n\tauto = 0\n\
             [core]\n\tfsync = none\n[maintenance]\n\tauto = false\n";
        put(&home.join(".gitconfig"), settings.as_bytes());
        let root = base.join("repo");
        std::fs::create_dir_all(&root).expect("a root");
        let git_dir = root.join(".git");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let env = Env::of(
            [
                ("PATH", path),
                ("HOME", home.into_os_string()),
                ("GIT_CONFIG_NOSYSTEM", OsString::from("1")),
            ],
            &root,
        );
        let place = Place {
            root: root.clone(),
            git_dir: git_dir.clone(),
            common_dir: git_dir,
        };
        let repo = Self {
            folder,
            root,
            env,
            place,
        };
        repo.git(["init", "-q", &format!("--object-format={format}"), "."]);
        repo
    }

    /// Makes a linked work tree of an empty repository with the object format.
    pub fn linked(format: &str) -> Self {
        let mut repo = Self::with_format(format);
        let main = repo.place.common_dir.clone();
        repo.git(["commit", "-q", "--allow-empty", "-m", "m"]);
        let linked = repo
            .base()
            .canonicalize()
            .expect("a real path")
            .join("linked");
        let at = linked.to_str().expect("a path as text");
        repo.git(["worktree", "add", "-q", "-b", "linked", at]);
        repo.root.clone_from(&linked);
        repo.place = Place {
            root: linked,
            git_dir: main.join("worktrees/linked"),
            common_dir: main,
        };
        repo
    }

    /// Returns the temporary folder, which holds more than the repository.
    pub fn base(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves the temporary folder where it is, to be looked at.
    pub fn keep(&mut self) -> PathBuf {
        self.folder.disable_cleanup(true);
        self.folder.path().to_path_buf()
    }

    /// Returns the place.
    pub fn place(&self) -> Place {
        self.place.clone()
    }

    /// Returns a path in the work tree's own git folder, such as that of the index.
    pub fn own(&self, name: &str) -> PathBuf {
        self.place.git_dir.join(name)
    }

    /// Returns a path in the git folder that all work trees share, such as that of the settings.
    pub fn common(&self, name: &str) -> PathBuf {
        self.place.common_dir.join(name)
    }

    /// Returns a path below the root.
    pub fn path(&self, name: impl AsRef<[u8]>) -> PathBuf {
        self.root.join(OsStr::from_bytes(name.as_ref()))
    }

    /// Writes a file, with its folders.
    pub fn write(&self, name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) {
        put(&self.path(name), content.as_ref());
    }

    /// Removes a file or folder, whatever it is.
    pub fn remove(&self, name: impl AsRef<[u8]>) {
        let path = self.path(name);
        match path.symlink_metadata() {
            Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path).expect("removed"),
            Ok(_) => std::fs::remove_file(path).expect("removed"),
            Err(_) => {}
        }
    }

    /// Makes a link.
    pub fn link(&self, target: &str, name: &str) {
        let path = self.path(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        std::os::unix::fs::symlink(target, path).expect("a link");
    }

    /// Runs git in the root; panics unless it succeeds.
    pub fn git<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        self.git_in(&self.root, args)
    }

    /// Runs git in a folder; panics unless it succeeds.
    pub fn git_in<S: AsRef<OsStr>>(
        &self,
        folder: &Path,
        args: impl IntoIterator<Item = S>,
    ) -> String {
        let args: Vec<OsString> = args
            .into_iter()
            .map(|arg| arg.as_ref().to_owned())
            .collect();
        let output = self.try_git(folder, &args);
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs git in a folder and returns what came of it.
    pub fn try_git<S: AsRef<OsStr>>(&self, folder: &Path, args: &[S]) -> Output {
        Command::new("git")
            .env_clear()
            .envs(self.env.vars())
            .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
            .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
            .current_dir(folder)
            .args(args)
            .output()
            .expect("git runs")
    }

    /// Stages everything and commits it.
    pub fn commit(&self) {
        self.git(["add", "-A"]);
        self.git(["commit", "-q", "--allow-empty", "-m", "m"]);
    }
}

impl Default for Repo {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes a file, with its folders.
#[expect(clippy::disallowed_methods, reason = "a test's own files")]
pub fn put(path: &Path, content: &[u8]) {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    std::fs::write(path, content).expect("a file");
}
