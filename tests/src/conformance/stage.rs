//! The stage of one telling: a scratch place, the processes that stand for sessions, and the shell.
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use takeup_core::ledger::Ledger;
use takeup_core::time::{Clock as _, SystemClock, Time};

use super::story::Step;
use crate::Scratch;

/// The title of the task of every story.
pub const TITLE: &str = "Fix the parser";
/// Its id.
pub const TASK: &str = "fix-the-parser";

/// The programs a telling needs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The program under test.
    pub takeup: PathBuf,
    /// The process that stands for an agent: `stand-in [DATABASE]`.
    pub stand_in: PathBuf,
}

/// A stage.
#[derive(Debug)]
pub struct Stage {
    /// The scratch folder.
    pub scratch: Scratch,
    /// The place, as the story goes.
    pub place: PathBuf,
    stand_in: PathBuf,
    processes: BTreeMap<String, Process>,
    strangers: Vec<Process>,
}

/// A process that stands for a session, and its answers.
#[derive(Debug)]
struct Process {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Stage {
    /// Makes a repository with `a.txt` and a first commit.
    pub fn new(programs: &Programs) -> Self {
        let scratch = Scratch::new(&programs.takeup);
        Self {
            place: scratch.repo(),
            scratch,
            stand_in: programs.stand_in.clone(),
            processes: BTreeMap::new(),
            strangers: Vec::new(),
        }
    }

    /// Runs a command for the shell in the place, or makes another folder the place.
    pub fn set(&mut self, step: &Step) {
        match step {
            Step::Shell(line) => self.shell(line),
            Step::Go(path) => {
                // The place itself may be gone: it may have been moved.
                let place = match (path.strip_prefix("../"), self.place.parent()) {
                    (Some(beside), Some(folder)) => folder.join(beside),
                    _ => self.place.join(path),
                };
                // A link stays a link.
                assert!(place.is_dir(), "{} is no place to go to", place.display());
                self.place = place;
            }
            Step::Told { .. } => {}
        }
    }

    fn shell(&self, line: &str) {
        let mut command = Command::new("sh");
        self.scratch.dress(&mut command);
        let output = command
            .args(["-euc", line])
            .current_dir(&self.place)
            .stdin(Stdio::null())
            .output()
            .expect("a shell can be started");
        assert!(
            output.status.success(),
            "$ {line}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Starts the process of a session in the place, with a database open or none. Returns its number.
    pub fn begin(&mut self, who: &str, database: Option<&Path>) -> u32 {
        let child = self.start(database);
        let pid = child.child.id();
        if let Some(mut before) = self.processes.insert(who.to_owned(), child) {
            end(&mut before);
        }
        pid
    }

    fn start(&self, database: Option<&Path>) -> Process {
        let mut command = Command::new(&self.stand_in);
        self.scratch.dress(&mut command);
        let mut child = command
            .args(database)
            .current_dir(&self.place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the stand-in can be started");
        let output = child.stdout.take().expect("its output is piped");
        let mut process = Process {
            child,
            answers: BufReader::new(output),
        };
        assert_eq!(process.answer(), "ready\n", "the stand-in could not begin");
        process
    }

    /// Lets the process of a session run a command by the shell.
    pub fn lets(&mut self, who: &str, command: &str) {
        let process = self
            .processes
            .get_mut(who)
            .unwrap_or_else(|| panic!("{who} has no process"));
        let input = process.child.stdin.as_mut().expect("its input is piped");
        writeln!(input, "{command}").expect("the stand-in reads");
        assert_eq!(process.answer(), "done\n", "{command}");
    }

    /// Does what a hook is called for until the ledger has it: on a busy machine a hook gives up.
    pub fn recorded(&mut self, mut call: impl FnMut(&mut Self)) {
        let before = self.seq();
        for _ in 0..8 {
            call(self);
            if self.seq() > before {
                return;
            }
        }
        panic!("the hook recorded nothing");
    }

    /// Returns our ledger of the place.
    pub fn ledger(&self) -> Ledger {
        let common = self
            .scratch
            .git_in(&self.place, &["rev-parse", "--git-common-dir"]);
        Ledger::at(self.place.join(common).join("takeup"))
    }

    fn seq(&self) -> u64 {
        self.ledger().read().expect("the ledger can be read").seq
    }

    /// Kills the process of a session.
    pub fn kill(&mut self, who: &str) {
        if let Some(mut child) = self.processes.remove(who) {
            end(&mut child);
        }
    }

    /// Lets the process of a session end by itself.
    pub fn close(&mut self, who: &str) {
        if let Some(mut process) = self.processes.remove(who) {
            drop(process.child.stdin.take());
            process.child.wait().expect("the stand-in ends");
        }
    }

    /// Starts a process that has nothing to do with anybody. Returns its number.
    pub fn stranger(&mut self) -> u32 {
        let child = self.start(None);
        let pid = child.child.id();
        self.strangers.push(child);
        pid
    }

    /// Returns the place as text.
    pub fn root(&self) -> String {
        self.place.display().to_string()
    }

    /// Returns the tree that git would write for everything that is not ignored, made in an index and a store of its own.
    pub fn tree(&self) -> String {
        let common = self
            .scratch
            .git_in(&self.place, &["rev-parse", "--git-common-dir"]);
        let objects = self.place.join(common).join("objects");
        let store = self.scratch.path().join("snapshot-objects");
        std::fs::create_dir_all(&store).expect("a folder can be made");
        let run = |args: &[&str]| {
            let mut command = Command::new("git");
            self.scratch.dress(&mut command);
            let output = command
                .args(args)
                .current_dir(&self.place)
                .env("GIT_INDEX_FILE", self.scratch.path().join("snapshot-index"))
                .env("GIT_OBJECT_DIRECTORY", &store)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &objects)
                .output()
                .expect("git can be started");
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        run(&["add", "-A"]);
        run(&["write-tree"])
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for child in self.processes.values_mut().chain(&mut self.strangers) {
            end(child);
        }
    }
}

impl Process {
    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .expect("the stand-in speaks");
        line
    }
}

fn end(process: &mut Process) {
    let _killed = process.child.kill();
    let _ended = process.child.wait();
}

/// Writes a file with its folders.
pub fn put(path: &Path, text: impl AsRef<[u8]>) {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).expect("a folder can be made");
    }
    std::fs::write(path, text).expect("a file can be written");
}

/// Adds to a file.
pub fn append(path: &Path, text: &str) {
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .expect("a file can be opened");
    file.write_all(text.as_bytes())
        .expect("a file can be written");
}

/// Cuts so many bytes off the end of a file.
pub fn cut(path: &Path, bytes: usize) {
    let content = std::fs::read(path).expect("the record is there");
    let rest = content.len().saturating_sub(bytes);
    std::fs::write(path, content.get(..rest).unwrap_or_default()).expect("it can be written");
}

/// Returns the present moment.
pub fn now() -> Time {
    SystemClock.now()
}
