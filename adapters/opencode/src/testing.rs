//! What the tests of this crate share.
use std::path::{Path, PathBuf};
use std::process::Command;

use takeup_core::env::Env;
use takeup_core::repository::Place;
use takeup_core::status::Status;
use takeup_core::time::{Clock as _, SystemClock, Time};

use crate::sidecar::{Json, NewIdentity, Paths};

/// A repository with one commit, `src/a` and `src/b`.
pub(crate) struct Repo {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) place: Place,
    pub(crate) env: Env,
}

impl Repo {
    pub(crate) fn new() -> Self {
        let repo = Self::empty();
        repo.sh("git init -q -b main . && mkdir src && echo a > src/a && echo b > src/b && git add . && git commit -qm base");
        repo
    }

    /// A folder without a repository.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let root = top.join("repo");
        std::fs::create_dir_all(&root).unwrap();
        let home = top.join("home");
        std::fs::create_dir_all(&home).unwrap();
        let env = Env::of(
            [
                ("PATH", std::env::var("PATH").unwrap().as_str()),
                ("HOME", home.to_str().unwrap()),
                ("LC_ALL", "C.UTF-8"),
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_AUTHOR_NAME", "A"),
                ("GIT_AUTHOR_EMAIL", "a@example.invalid"),
                ("GIT_COMMITTER_NAME", "A"),
                ("GIT_COMMITTER_EMAIL", "a@example.invalid"),
            ],
            &root,
        );
        let place = Place {
            git_dir: root.join(".git"),
            common_dir: root.join(".git"),
            root,
        };
        Self { folder, place, env }
    }

    pub(crate) fn sh_in(&self, folder: &Path, script: &str) {
        let status = Command::new("sh")
            .arg("-euc")
            .arg(script)
            .current_dir(folder)
            .env_clear()
            .envs(self.env.vars())
            .status()
            .unwrap();
        assert!(status.success(), "{script}");
    }

    pub(crate) fn sh(&self, script: &str) {
        self.sh_in(&self.place.root, script);
    }

    pub(crate) fn output(&self, script: &str) -> String {
        let output = Command::new("sh")
            .arg("-euc")
            .arg(script)
            .current_dir(&self.place.root)
            .env_clear()
            .envs(self.env.vars())
            .output()
            .unwrap();
        assert!(output.status.success(), "{script}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn digest(&self) -> String {
        crate::fingerprint(&self.place.root, &self.env)
            .unwrap()
            .digest
    }

    /// Writes an identity that holds the present fingerprint.
    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    pub(crate) fn identity(&self, task: &str, session: &str, status: &str) -> PathBuf {
        let digest = self.digest();
        let paths = Paths::new(&self.place.root);
        let path = paths.identity(task, session);
        let object = NewIdentity {
            task,
            session,
            root: self.place.root.to_str().unwrap(),
            base: &digest,
            latest: &digest,
            status: Status::ALL
                .into_iter()
                .find(|known| known.code() == status)
                .unwrap(),
            at: &a_tick_later().to_string(),
        }
        .over(None);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, Json::Object(object).pretty()).unwrap();
        path
    }
}

/// The time once everything written so far is older than it by more than the longest tick of a kernel. What is closer to a
/// record is taken for newer than it.
fn a_tick_later() -> Time {
    let now = || SystemClock.now().millis();
    let from = now();
    while now() <= from + 11 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    SystemClock.now()
}
