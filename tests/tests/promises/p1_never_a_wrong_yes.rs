//! Promise 1: never a wrong "yes".
//!
//! Here: random stories of edits, commits and changes of git's own state; after each, the program's verdict against plain
//! git's own answer in a scratch index. The fingerprint by itself is held against plain git in `fingerprint/` (walks, cases),
//! the rules in the tests of `takeup_core::verdict`, damage in promise 4, and histories of sessions in `cases/random.rs`.
use std::fs::{File, FileTimes};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use takeup_core::env::Env;
use takeup_tests::Scratch;
use takeup_tests::fingerprint::judge;

use super::{Dice, PROGRAM};

struct Story {
    scratch: Scratch,
    dice: Dice,
    told: Vec<String>,
}

impl Story {
    fn new(seed: u64) -> Self {
        let scratch = Scratch::new(PROGRAM);
        scratch.write(".gitignore", "*.log\n");
        scratch.write("src/one", "one\n");
        scratch.write("src/two", "two\n");
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-qm", "base"]);
        Self {
            scratch,
            dice: Dice(seed),
            told: Vec::new(),
        }
    }

    /// What plain git says the content is.
    fn judged(&self) -> String {
        let home = self.scratch.home();
        let vars = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOME", home.display().to_string()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
            ("GIT_CONFIG_SYSTEM", "/dev/null".to_owned()),
        ];
        judge::tree(&self.scratch.repo(), &Env::of(vars, self.scratch.repo())).unwrap()
    }

    fn path(&mut self) -> PathBuf {
        let names = [
            "a.txt",
            "src/one",
            "src/two",
            "new",
            "deep/er/file",
            "x.log",
            "src",
        ];
        self.scratch.repo().join(self.dice.pick(&names))
    }

    fn clear(path: &PathBuf) {
        if path.is_dir() && !path.is_symlink() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            drop(std::fs::remove_file(path));
        }
        for folder in path.ancestors().skip(1) {
            if folder.is_file() || folder.is_symlink() {
                std::fs::remove_file(folder).unwrap();
            }
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    }

    fn git(&self, words: &[&str]) {
        // Whether git agrees to it is part of the story.
        drop(self.scratch.git_may_fail(&self.scratch.repo(), words));
    }

    /// Does one thing and returns what.
    fn act(&mut self) -> &'static str {
        let path = self.path();
        match self.dice.roll(16) {
            0..=2 => {
                Self::clear(&path);
                std::fs::write(&path, self.dice.pick(&["one\n", "two\n", "three\n"])).unwrap();
                "write"
            }
            3 => {
                Self::clear(&path);
                "remove"
            }
            4 => {
                Self::clear(&path);
                symlink(self.dice.pick(&["one", "two"]), &path).unwrap();
                "link"
            }
            5 => {
                if path.is_file() && !path.is_symlink() {
                    let mode = self.dice.pick(&[0o644, 0o755, 0o600]);
                    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
                }
                "mode"
            }
            // Other bytes of the same length under the same time.
            6 | 7 => {
                if let Ok(meta) = path.symlink_metadata()
                    && meta.is_file()
                {
                    let mut bytes = std::fs::read(&path).unwrap();
                    for byte in &mut bytes {
                        *byte = if *byte == b'o' { b'0' } else { b'o' };
                    }
                    std::fs::write(&path, bytes).unwrap();
                    let times = FileTimes::new().set_modified(meta.modified().unwrap());
                    File::options()
                        .write(true)
                        .open(&path)
                        .unwrap()
                        .set_times(times)
                        .unwrap();
                }
                "same size, same time"
            }
            8 => {
                if let Ok(meta) = path.symlink_metadata()
                    && meta.is_file()
                {
                    let bytes = std::fs::read(&path).unwrap();
                    std::fs::write(&path, bytes).unwrap();
                }
                "touch"
            }
            9 => {
                self.git(&["add", "-A"]);
                "stage"
            }
            10 => {
                self.git(&["add", "-A"]);
                self.git(&["commit", "-qm", "more"]);
                "commit"
            }
            11 => {
                self.git(&["stash", "-q"]);
                "stash"
            }
            12 => {
                self.git(&["stash", "pop", "-q"]);
                "pop"
            }
            13 => {
                let to = self.dice.pick(&["main", "HEAD~1"]);
                self.git(&["checkout", "-q", "-f", to]);
                "check out"
            }
            14 => {
                let how = self.dice.pick(&["--hard", "--mixed", "--soft"]);
                self.git(&["reset", "-q", how, "HEAD~1"]);
                "reset"
            }
            _ => {
                self.scratch
                    .write(".gitignore", self.dice.pick(&["*.log\n", "new\n", ""]));
                "ignore"
            }
        }
    }

    fn verdict(&self) -> String {
        let answer = self
            .scratch
            .takeup(&["inspect", "t1", "--json"])
            .exits(0)
            .json();
        let candidates = answer["data"]["candidates"].as_array().unwrap();
        assert_eq!(candidates.len(), 1, "{:?}", self.told);
        candidates[0]["verdict"].as_str().unwrap().to_owned()
    }

    fn play(&mut self, steps: usize) -> (usize, usize) {
        let scratch = &self.scratch;
        scratch
            .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
            .exits(0);
        let mut left = self.judged();
        let (mut same, mut other) = (0, 0);
        for _ in 0..steps {
            let did = self.act();
            self.told.push(did.to_owned());
            if self.dice.roll(6) == 0 {
                self.scratch
                    .takeup(&["save", "t1", "--session", "s1"])
                    .exits(0);
                left = self.judged();
                self.told.push("save".to_owned());
            }
            let expected = if self.judged() == left {
                same += 1;
                "resume-verification"
            } else {
                other += 1;
                "stale-task"
            };
            assert_eq!(self.verdict(), expected, "{:?}", self.told);
        }
        (same, other)
    }
}

#[test]
fn a_yes_is_given_exactly_when_plain_git_finds_what_was_left() {
    let (mut same, mut other) = (0, 0);
    for seed in 1..=4 {
        let played = Story::new(seed).play(12);
        same += played.0;
        other += played.1;
    }
    // Stories in which nothing or everything is equal would prove nothing.
    assert!(same >= 6 && other >= 6, "{same} equal, {other} not");
}
