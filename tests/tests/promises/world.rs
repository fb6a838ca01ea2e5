//! A repository in the middle of work, with tasks in every state, background work, and a home full of agents.
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use takeup_core::ledger::{Actor, Ledger};
use takeup_core::time::SystemClock;
use takeup_tests::{Ran, Scratch};

use super::PROGRAM;
use super::homes::{self, Words};

/// The world.
pub(crate) struct World {
    pub(crate) scratch: Scratch,
}

impl World {
    /// A repository and a home full of agents, and nothing of ours.
    pub(crate) fn new() -> Self {
        Self::with(&Words::default())
    }

    /// A repository with one commit and a home with settings alone: what is quickly made and quickly copied.
    pub(crate) fn plain() -> Self {
        let world = Self {
            scratch: Scratch::new(PROGRAM),
        };
        std::fs::create_dir_all(world.temporary()).unwrap();
        homes::settings(&world.scratch.home());
        world
    }

    /// The same, with these words in the agents' stores.
    pub(crate) fn with(words: &Words) -> Self {
        let scratch = Scratch::new(PROGRAM);
        let world = Self { scratch };
        std::fs::create_dir_all(world.temporary()).unwrap();
        let scratch = &world.scratch;
        homes::fill(&scratch.home(), &scratch.repo(), &world.temporary(), words);
        scratch.write(".gitignore", "ignored/\n");
        scratch.write("src/lib.rs", "fn one() {}\n");
        scratch.git(&["add", ".gitignore", "src"]);
        scratch.git(&["commit", "-qm", "second"]);
        scratch.write("staged", "staged\n");
        scratch.git(&["add", "staged"]);
        scratch.write("a.txt", "unstaged\n");
        scratch.write("untracked", "untracked\n");
        scratch.write("ignored/file", "ignored\n");
        std::fs::create_dir_all(scratch.repo().join("empty")).unwrap();
        world
    }

    /// The same after a day of work: `stale` (left by s1 on other content), `held` (s2, as it is), `asked` (s3, with a
    /// question), `given-up` and, in the archive, `done`; background tasks; hooks and integrations put in.
    pub(crate) fn lived() -> Self {
        let world = Self::new();
        world.live();
        world
    }

    /// The same, with a copy of the program in the scratch folder.
    pub(crate) fn at_home() -> Self {
        let aside = std::env::temp_dir().join(format!("takeup-program-{}", std::process::id()));
        takeup_tests::copy_program(std::path::Path::new(PROGRAM), &aside);
        let scratch = Scratch::new(&aside);
        let world = Self { scratch };
        std::fs::create_dir_all(world.temporary()).unwrap();
        homes::settings(&world.scratch.home());
        world.scratch.write("untracked", "untracked\n");
        world.live();
        world
    }

    fn live(&self) {
        let done = |words: &[&str]| drop(self.run(words).exits(0));
        done(&["start", "stale", "--session", "s1", "--no-checks"]);
        done(&["save", "--session", "s1", "--end"]);
        self.scratch.write("untracked", "other\n");
        done(&["start", "done", "--session", "s0", "--no-checks"]);
        done(&["finish", "done", "--session", "s0"]);
        self.archive();
        done(&[
            "start",
            "held",
            "--session",
            "s2",
            "--check",
            "true",
            "--allow",
            "src/",
        ]);
        done(&["note", "a remark", "--session", "s2"]);
        done(&["check", "--session", "s2", "--planned", "1"]);
        done(&["save", "--session", "s2", "--end"]);
        done(&["start", "asked", "--session", "s3", "--no-checks"]);
        done(&["review", "request", "fine?", "--session", "s3"]);
        done(&["start", "given up", "--session", "s4", "--no-checks"]);
        done(&["abandon", "given-up", "--session", "s4"]);
        done(&[
            "bg",
            "run",
            "--name",
            "build",
            "--",
            "sh",
            "-c",
            "echo 3/10 tests; echo err >&2",
        ]);
        done(&["bg", "wait", "build"]);
    }

    /// Moves closed tasks into the archive, which otherwise happens to the hundredth.
    fn archive(&self) {
        let actor = Actor {
            session: takeup_tests::ledger::session("keeper"),
            pid: std::process::id(),
        };
        let ledger = Ledger::at(self.ours());
        let moved = ledger
            .archive(&SystemClock, Duration::from_mins(1), &actor, |_| true)
            .unwrap();
        assert_eq!(moved.value.len(), 1);
    }

    /// The folder for temporary files.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.scratch.path().join("tmp")
    }

    /// The ledger's folder.
    pub(crate) fn ours(&self) -> PathBuf {
        self.scratch.repo().join(".git/takeup")
    }

    /// Our folder in the user's home.
    pub(crate) fn state(&self) -> PathBuf {
        self.scratch.home().join(".local/state/takeup")
    }

    /// A command of the program in the repository.
    pub(crate) fn program(&self) -> Command {
        self.program_in(&self.scratch.repo())
    }

    /// A command of the program in a folder.
    pub(crate) fn program_in(&self, folder: &Path) -> Command {
        let mut command = self.scratch.program_in(folder);
        command.env("TMPDIR", self.temporary()).stdin(Stdio::null());
        command
    }

    /// Runs a command and demands that it ends: two minutes are as good as never.
    pub(crate) fn bounded(&self, command: &mut Command) -> Ran {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(child.wait_with_output()));
        match ended.recv_timeout(Duration::from_mins(2)) {
            Ok(output) => Ran::of(output.unwrap()),
            Err(_) => {
                let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                panic!("{command:?} does not end");
            }
        }
    }

    /// Runs the program in the repository.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, words: &[S]) -> Ran {
        Ran::of(self.program().args(words).output().unwrap())
    }
}
