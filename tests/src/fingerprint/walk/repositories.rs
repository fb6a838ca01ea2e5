//! What a walk does to the repository, to those inside, and to the clock.
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::Walk;
use super::mutations::{make_way, remove};
use crate::fingerprint::repo::put;

impl Walk {
    fn quietly<S: AsRef<OsStr>>(&self, folder: &Path, args: &[S]) {
        // Some things cannot be done; that is part of the walk.
        drop(self.repo.try_git(folder, args));
    }

    /// Changes a file in a repository inside, and perhaps commits it.
    fn inside(&mut self, path: &Path, commit: bool) {
        if path.join(".git").symlink_metadata().is_err() {
            return;
        }
        let name = self.random.choose(&["inner", "deep/inner", "x.txt"]);
        let content = self.random.choose(&["i\n", "dirt\n", "ab\r\n"]);
        let file = path.join(name);
        // In a linked work tree the names may be the walk's links to nowhere.
        if make_way(path, &file) {
            put(&file, content.as_bytes());
        }
        if commit {
            self.quietly(path, &["add", "-A"]);
            self.quietly(path, &["commit", "-q", "--allow-empty", "-m", "n"]);
        }
    }

    pub(super) fn nested(&mut self) {
        let dir = self.random.choose(&["n", "a/n", "ign/n", "n/m"]);
        let path = self.repo.path(dir);
        let format = if self.random.below(8) == 0 {
            "--object-format=sha1".to_owned()
        } else {
            format!("--object-format={}", self.format)
        };
        let init = ["init", "-q", &format, dir];
        match self.random.below(7) {
            0 => {
                self.say(format!("young repository {dir}"));
                self.quietly(&self.repo.root, &init);
            }
            1..=3 => {
                self.say(format!("commit in {dir}"));
                self.quietly(&self.repo.root, &init);
                self.inside(&path, true);
            }
            4 | 5 => {
                self.say(format!("dirt in {dir}"));
                self.inside(&path, false);
            }
            _ => {
                self.say(format!("{dir} is no repository"));
                remove(&path.join(".git"));
            }
        }
    }

    /// The repository that submodules are made from.
    fn source(&self) -> String {
        let path = self.repo.base().join("source");
        if !path.exists() {
            let format = format!("--object-format={}", self.format);
            self.repo.git([
                OsStr::new("init"),
                OsStr::new("-q"),
                OsStr::new(&format),
                path.as_os_str(),
            ]);
            put(&path.join("inner"), b"s\n");
            put(&path.join("x.txt"), b"t\r\n");
            self.repo.git_in(&path, ["add", "-A", "-f"]);
            self.repo.git_in(&path, ["commit", "-q", "-m", "s"]);
        }
        path.to_str().unwrap_or_default().to_owned()
    }

    pub(super) fn submodule(&mut self) {
        let dir = self.random.choose(&["s", "a/s", "n", "s/t"]);
        let path = self.repo.path(dir);
        let root = self.repo.root.clone();
        match self.random.below(12) {
            0..=2 => {
                let source = self.source();
                self.git(&["submodule", "add", "-q", "--force", &source, dir]);
            }
            3 => self.git(&["submodule", "update", "-q", "--init", "--recursive"]),
            4 => self.git(&["submodule", "deinit", "-q", "-f", dir]),
            5 => self.git(&["rm", "-q", "-f", dir]),
            6 => self.git(&["submodule", "absorbgitdirs"]),
            7 => {
                self.say(format!("a submodule in {dir}"));
                let source = self.source();
                if path.join(".git").exists() {
                    self.quietly(&path, &["submodule", "add", "-q", "--force", &source, "t"]);
                }
            }
            8 => {
                self.say(format!("{dir} goes back"));
                if path.join(".git").exists() {
                    self.quietly(&path, &["checkout", "-q", "--detach", "HEAD~1"]);
                }
            }
            number => {
                self.say(format!("change in {dir}"));
                if number == 9 {
                    self.quietly(&root, &["add", dir]);
                }
                self.inside(&path, number == 10);
            }
        }
    }

    /// A linked work tree inside the work tree.
    pub(super) fn worktree(&mut self) {
        let dir = self.random.choose(&["w", "a/w", "n/w"]);
        match self.random.below(4) {
            0 | 1 => self.git(&["worktree", "add", "-q", "--detach", "-f", dir]),
            2 => self.git(&["worktree", "remove", "-f", dir]),
            _ => {
                self.say(format!("dirt in {dir}"));
                let path = self.repo.path(dir);
                self.inside(&path, false);
            }
        }
    }

    /// The clock was wrong for a while.
    pub(super) fn clock(&mut self) {
        let now = SystemTime::now();
        let time = self.random.choose(&[
            now + Duration::from_secs(3_600),
            now - Duration::from_secs(3_600),
            now - Duration::from_secs(2),
            SystemTime::UNIX_EPOCH,
            SystemTime::UNIX_EPOCH - Duration::from_secs(5),
            SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 33),
        ]);
        let path = match self.random.below(3) {
            0 => Some(self.repo.own("index")),
            1 => self.present(std::fs::Metadata::is_dir),
            _ => self.present(std::fs::Metadata::is_file),
        };
        let Some(path) = path else { return };
        self.say(format!("time of {} is {time:?}", path.display()));
        if let Ok(file) = std::fs::File::open(&path) {
            drop(file.set_modified(time));
        }
    }

    /// The index in another form, or beside its files.
    pub(super) fn index_form(&mut self) {
        match self.random.below(8) {
            0 => self.git(&["update-index", "--split-index"]),
            1 | 2 => self.git(&["update-index", "--no-split-index"]),
            3 => self.git(&["update-index", "--untracked-cache"]),
            4 => self.git(&["update-index", "--refresh", "--force-write-index"]),
            5 => self.git(&["pack-refs", "--all"]),
            6 => self.git(&["repack", "-adq"]),
            _ => {
                self.say("no index");
                remove(&self.repo.own("index"));
            }
        }
    }

    pub(super) fn history(&mut self) {
        let branch = self.random.choose(&["one", "two", "main", "linked"]);
        match self.random.below(10) {
            0 => self.git(&["cherry-pick", branch]),
            1 => self.git(&["rebase", "-q", branch]),
            2 => self.git(&["rebase", "--abort"]),
            3 => self.git(&["reset", "-q", "--soft", "HEAD~1"]),
            4 => self.git(&["checkout", "-q", "--detach", branch]),
            5 => self.git(&["revert", "--no-edit", "HEAD"]),
            6 => self.git(&["cherry-pick", "--abort"]),
            7 => self.git(&["read-tree", branch]),
            8 => self.git(&["checkout", "-q", "--orphan", "young"]),
            _ => self.git(&["clean", "-q", "-f", "-d", "-x"]),
        }
    }

    pub(super) fn user_settings(&mut self) {
        let home = self.repo.base().join("home");
        let (file, key) = self.random.choose(&[
            ("rules", "core.excludesFile"),
            ("attributes", "core.attributesFile"),
        ]);
        if self.random.below(3) == 0 {
            self.git(&["config", "--global", "--unset", key]);
            return;
        }
        let text = self
            .random
            .choose(&["*.log\n!keep.log\n", "f1\n", "* text=auto\n", ""]);
        self.say(format!("{key}: {text:?}"));
        put(&home.join(file), text.as_bytes());
        let path = format!("~/{file}");
        self.git(&["config", "--global", key, &path]);
    }
}
