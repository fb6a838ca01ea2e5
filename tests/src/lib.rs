//! The kit of the end-to-end tests: scratch repositories, plain git as the judge, and the program itself.
//!
//! # Limitations
//! For tests only: failures panic.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a kit for tests: a failure ends the test"
)]
pub mod conformance;
pub mod fingerprint;
pub mod ledger;
pub mod readers;

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use takeup_core::time::{Clock as _, SystemClock, Time};

/// A scratch folder with a repository `repo`, an empty `home`, and nothing of the user's settings.
#[derive(Debug)]
pub struct Scratch {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Scratch {
    /// Makes a repository on branch `main` with one commit that holds `a.txt`. `program` is the program under test.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let scratch = Self::empty(program);
        std::fs::create_dir_all(scratch.repo()).expect("the folder of the repository can be made");
        scratch.git(&["init", "-q", "-b", "main"]);
        scratch.write("a.txt", "one\n");
        scratch.git(&["add", "a.txt"]);
        scratch.git(&["commit", "-q", "-m", "first"]);
        scratch
    }

    /// Makes a scratch folder without a repository.
    pub fn empty(program: impl Into<PathBuf>) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("takeup-test-")
            .tempdir()
            .expect("a temporary folder can be made");
        for name in ["home", "bin"] {
            std::fs::create_dir_all(folder.path().join(name)).expect("a folder can be made");
        }
        let program = program.into();
        std::os::unix::fs::symlink(&program, folder.path().join("bin/git-takeup"))
            .expect("a link can be made");
        Self { folder, program }
    }

    /// Returns the scratch folder, links resolved.
    pub fn path(&self) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .expect("the scratch folder is there")
    }

    /// Returns the repository's folder.
    pub fn repo(&self) -> PathBuf {
        self.path().join("repo")
    }

    /// Returns the home folder that every command sees.
    pub fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// Puts a program on the PATH of every command.
    pub fn put_program(&self, name: &str, script: &str) {
        put_program(&self.path().join("bin").join(name), script);
    }

    /// Gives a command the bare environment of the scratch: no settings of the user, the program first on PATH.
    pub fn dress(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut paths = vec![self.path().join("bin")];
        paths.extend(std::env::split_paths(&path));
        command
            .env_clear()
            .env(
                "PATH",
                std::env::join_paths(paths).expect("PATH can be joined"),
            )
            .env("HOME", self.home())
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            // Not `/dev/null`: as root, `git config --global` would put a file in its place.
            .env("GIT_CONFIG_GLOBAL", self.path().join("gitconfig"))
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_AUTHOR_NAME", "Test")
            .env("GIT_AUTHOR_EMAIL", "test@example.invalid")
            .env("GIT_COMMITTER_NAME", "Test")
            .env("GIT_COMMITTER_EMAIL", "test@example.invalid")
            .env("GIT_TERMINAL_PROMPT", "0");
        if let Some(profile) = std::env::var_os("LLVM_PROFILE_FILE") {
            command.env("LLVM_PROFILE_FILE", profile);
        }
    }

    /// Makes a command of the program under test in a folder.
    pub fn program_in(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        self.dress(&mut command);
        command.current_dir(folder);
        command
    }

    /// Runs the program in the repository.
    pub fn takeup<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        self.takeup_in(&self.repo(), args)
    }

    /// Runs the program in a folder.
    pub fn takeup_in<S: AsRef<OsStr>>(&self, folder: &Path, args: &[S]) -> Ran {
        let output = self
            .program_in(folder)
            .args(args)
            .output()
            .expect("the program can be started");
        Ran::of(output)
    }

    /// Runs plain git in the repository; it has to succeed. Returns its output without the last line end.
    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.repo(), args)
    }

    /// Runs plain git in a folder; it has to succeed.
    pub fn git_in(&self, folder: &Path, args: &[&str]) -> String {
        let output = self.git_may_fail(folder, args);
        assert!(
            output.status.success(),
            "git {args:?} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout)
            .trim_end_matches('\n')
            .to_owned()
    }

    /// Runs plain git in a folder, whatever it answers.
    pub fn git_may_fail(&self, folder: &Path, args: &[&str]) -> Output {
        let mut command = Command::new("git");
        self.dress(&mut command);
        command
            .current_dir(folder)
            .args(args)
            .output()
            .expect("git can be started")
    }

    /// Writes a file in the repository, with its folders.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's file needs no durability"
    )]
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.repo().join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).expect("a folder can be made");
        }
        std::fs::write(path, content).expect("a file can be written");
    }
}

/// Writes a program. Another process does it: a file that this one has open for writing would be open in every child that a
/// test beside forks in that moment, and could not be started (`ETXTBSY`).
pub fn put_program(path: &Path, script: &str) {
    use std::io::Write as _;
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("a shell can be started");
    let written = writer
        .stdin
        .take()
        .map(|mut pipe| pipe.write_all(script.as_bytes()));
    let status = writer.wait().expect("a shell ends");
    assert!(
        status.success() && matches!(written, Some(Ok(()))),
        "{} can be written",
        path.display()
    );
}

/// Copies a program, as [`put_program`] writes one.
pub fn copy_program(from: &Path, to: &Path) {
    let status = Command::new("cp").arg(from).arg(to).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{} can be copied",
        from.display()
    );
}

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    /// The exit status, or 128 and the signal's number.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ran {
    /// Takes over the output of a command.
    pub fn of(output: Output) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        let code = output
            .status
            .code()
            .or_else(|| output.status.signal().map(|signal| 128 + signal))
            .unwrap_or(-1);
        Self {
            code,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Demands an exit status.
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// Demands that the program ended by itself, in one of the ways that are documented, whatever it said.
    pub fn ended_well(self, context: impl Display) -> Self {
        assert!(
            matches!(self.code, 0..=6) && !self.stderr.contains("panicked"),
            "{context}: exit {}\nstdout:\n{}\nstderr:\n{}",
            self.code,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Reads standard output as one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!(
                "no JSON: {error}\nstdout:\n{}\nstderr:\n{}",
                self.stdout, self.stderr
            )
        })
    }
}

/// Waits until something holds; two minutes without it are a failure.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        let waited = begun.elapsed();
        assert!(waited < std::time::Duration::from_mins(2), "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Waits until no process works in a folder or below it: what a hook leaves running goes on after the command that called
/// the hook, and writes into a folder that is removed meanwhile. `folder` is without links.
pub fn until_nobody_works_in(folder: &Path) {
    until("nobody works in the folder", || {
        let processes = std::fs::read_dir("/proc").expect("the processes can be listed");
        // One that ended meanwhile, and one of somebody else, has no folder that could be read.
        !processes.flatten().any(|process| {
            std::fs::read_link(process.path().join("cwd"))
                .is_ok_and(|working| working.starts_with(folder))
        })
    });
}

/// Returns the time once everything written so far is older than it by more than the longest tick of a kernel: what is closer
/// to a record is taken for newer than it.
pub fn a_tick_later() -> Time {
    let now = || SystemClock.now().millis();
    let from = now();
    while now() <= from + 11 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    SystemClock.now()
}

/// Returns everything below a folder as text, one line an entry: path, kind, mode, size or target, mtime to the
/// nanosecond, and a hash of the content. `skip` leaves out what it says by its path relative to the folder.
pub fn picture(folder: &Path, skip: &dyn Fn(&str) -> bool) -> String {
    use std::fmt::Write as _;
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    use std::os::unix::fs::MetadataExt as _;
    let mut lines = Vec::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(current) = todo.pop() {
        for entry in std::fs::read_dir(&current).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path
                .strip_prefix(folder)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            if skip(&name) {
                continue;
            }
            let Ok(meta) = path.symlink_metadata() else {
                continue;
            };
            let mut line = format!("{name} {:o} ", meta.mode());
            if meta.is_dir() {
                todo.push(path);
            } else if meta.is_symlink() {
                write!(line, "-> {:?}", std::fs::read_link(&path))
                    .expect("writing to a string cannot fail");
            } else if meta.is_file() {
                let mut hasher = DefaultHasher::new();
                std::fs::read(&path).unwrap_or_default().hash(&mut hasher);
                write!(
                    line,
                    "{} {}.{:09} {:x}",
                    meta.size(),
                    meta.mtime(),
                    meta.mtime_nsec(),
                    hasher.finish()
                )
                .expect("writing to a string cannot fail");
            }
            lines.push(line);
        }
    }
    lines.sort();
    lines.join("\n")
}

/// Returns the lines in which two pictures differ, with `-` and `+`.
pub fn differences(before: &str, after: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let gone = old
        .iter()
        .filter(|line| !new.contains(line))
        .map(|line| format!("-{line}"));
    let come = new
        .iter()
        .filter(|line| !old.contains(line))
        .map(|line| format!("+{line}"));
    gone.chain(come).collect()
}
