//! What the tests of background tasks share.
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use takeup_core::process::{ProcessIdentity, Processes as _};
pub(crate) use takeup_tests::until;
use takeup_tests::{Ran, Scratch};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_takeup-under-test");

/// A scratch folder whose background tasks are all ended with it.
pub(crate) struct Desk {
    pub(crate) scratch: Scratch,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self {
            scratch: Scratch::empty(PROGRAM),
        }
    }

    pub(crate) fn in_repository() -> Self {
        Self {
            scratch: Scratch::new(PROGRAM),
        }
    }

    /// Runs the program in the repository.
    pub(crate) fn here(&self, words: &[&str]) -> Ran {
        self.scratch.takeup(words)
    }

    /// Makes a command of the program in the home folder.
    pub(crate) fn program(&self) -> Command {
        self.scratch.program_in(&self.scratch.home())
    }

    /// Runs `bg` with these words.
    pub(crate) fn bg(&self, words: &[&str]) -> Ran {
        let output = self.program().arg("bg").args(words).output().unwrap();
        Ran::of(output)
    }

    /// Starts a task and returns its id.
    pub(crate) fn start(&self, options: &[&str], command: &[&str]) -> String {
        let words = [&["run", "--json"], options, &["--"], command].concat();
        let answer = self.bg(&words).exits(0).json();
        answer["data"]["task"]["id"].as_str().unwrap().to_owned()
    }

    /// Starts a task of the shell.
    pub(crate) fn sh(&self, script: &str) -> String {
        self.start(&[], &["sh", "-c", script])
    }

    /// Returns the task as `bg show` sees it.
    pub(crate) fn show(&self, id: &str) -> Value {
        self.bg(&["show", id, "--json"]).exits(0).json()["data"]["task"].clone()
    }

    pub(crate) fn status(&self, id: &str) -> String {
        self.show(id)["status"].as_str().unwrap().to_owned()
    }

    /// Waits for the end and returns the task.
    pub(crate) fn end(&self, id: &str) -> Value {
        let ran = self.bg(&["wait", id, "--json"]);
        assert!(ran.code < 2, "{ran:?}");
        ran.json()["data"]["tasks"][0].clone()
    }

    pub(crate) fn output(&self, id: &str) -> String {
        self.bg(&["output", id]).exits(0).stdout
    }

    /// Returns the folder of tasks.
    pub(crate) fn folder(&self) -> PathBuf {
        self.scratch.home().join(".local/state/takeup/tasks")
    }

    pub(crate) fn file(&self, id: &str, ending: &str) -> PathBuf {
        self.folder().join(format!("{id}{ending}"))
    }

    /// Returns the record as it lies on disk.
    pub(crate) fn record(&self, id: &str) -> Value {
        let bytes = std::fs::read(self.file(id, ".status.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Returns a path in the home folder that a script can wait for.
    pub(crate) fn gate(&self) -> PathBuf {
        self.scratch.home().join("gate")
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a test's file needs no durability"
    )]
    pub(crate) fn open_gate(&self) {
        std::fs::write(self.gate(), "").unwrap();
    }

    /// Returns a piece of shell that waits for the gate.
    pub(crate) fn wait_for_gate(&self) -> String {
        format!("while [ ! -e {:?} ]; do sleep 0.02; done", self.gate())
    }

    pub(crate) fn supervisor(&self, id: &str) -> ProcessIdentity {
        serde_json::from_value(self.record(id)["takeup"]["supervisor"].clone()).unwrap()
    }

    pub(crate) fn command(&self, id: &str) -> ProcessIdentity {
        serde_json::from_value(self.show(id)["state"]["process"].clone()).unwrap()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let listed = self.bg(&["list", "--running", "--json"]);
        let Ok(listed) = serde_json::from_str::<Value>(&listed.stdout) else {
            return;
        };
        for task in listed["data"]["tasks"].as_array().into_iter().flatten() {
            if let Some(id) = task["id"].as_str() {
                drop(self.bg(&["stop", id, "--grace", "0"]));
            }
        }
    }
}

/// Returns the numbers of living processes that carry the mark of a task.
pub(crate) fn marked(id: &str) -> Vec<u32> {
    let processes = takeup_core::process::system();
    processes
        .everyone()
        .unwrap()
        .into_iter()
        .map(|process| process.pid)
        .filter(|pid| {
            processes
                .variable(*pid, "TAKEUP_BG")
                .is_some_and(|mark| mark == id)
        })
        .collect()
}

/// Kills a process for good and waits until it is gone.
pub(crate) fn kill(process: &ProcessIdentity) {
    let processes = takeup_core::process::system();
    processes
        .signal(process, rustix::process::Signal::KILL)
        .unwrap();
    assert!(processes.wait_end(process, Duration::from_mins(1)).unwrap());
}

pub(crate) fn runs(process: &ProcessIdentity) -> bool {
    !takeup_core::process::system().state(process).is_over()
}

/// Waits for a child and returns its exit status, 128 and the number for a signal.
pub(crate) fn code(child: &mut Child) -> i32 {
    let status: ExitStatus = child.wait().unwrap();
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap()
}

/// A pseudo-terminal with a shell in it, which is that terminal's session.
pub(crate) struct Terminal {
    master: Option<std::fs::File>,
    pub(crate) shell: Child,
    printed: Arc<Mutex<Vec<u8>>>,
    closing: Arc<AtomicBool>,
    reading: Option<std::thread::JoinHandle<()>>,
}

impl Terminal {
    pub(crate) fn open(desk: &Desk) -> Self {
        use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave = std::fs::File::from(ioctl_tiocgptpeer(&master, flags).unwrap());
        // `setsid -c` makes the terminal the controlling one of a new session.
        let mut command = Command::new("setsid");
        desk.scratch.dress(&mut command);
        let shell = command
            .args(["-c", "sh"])
            .current_dir(desk.scratch.home())
            .env("PS1", "")
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave)
            .spawn()
            .unwrap();
        let master = std::fs::File::from(master);
        let printed = Arc::new(Mutex::new(Vec::new()));
        let closing = Arc::new(AtomicBool::new(false));
        let (reader, sink, stop) = (
            master.try_clone().unwrap(),
            Arc::clone(&printed),
            Arc::clone(&closing),
        );
        let reading = std::thread::spawn(move || read_along(&reader, &sink, &stop));
        Self {
            master: Some(master),
            shell,
            printed,
            closing,
            reading: Some(reading),
        }
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        use std::io::Write as _;
        self.master.as_ref().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn printed(&self) -> String {
        String::from_utf8_lossy(&self.printed.lock().unwrap()).into_owned()
    }

    /// Kills the shell and closes the terminal under everything that is still in it.
    pub(crate) fn close(&mut self) {
        self.shell.kill().unwrap();
        self.closing.store(true, Ordering::Relaxed);
        self.reading.take().unwrap().join().unwrap();
        self.master = None;
        self.shell.wait().unwrap();
    }
}

/// Collects what is printed until the terminal is to be closed.
fn read_along(reader: &std::fs::File, sink: &Mutex<Vec<u8>>, stop: &AtomicBool) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let pause = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    let mut buffer = [0; 4096];
    while !stop.load(Ordering::Relaxed) {
        if poll(&mut [PollFd::new(reader, PollFlags::IN)], Some(&pause)) != Ok(1) {
            continue;
        }
        match std::io::Read::read(&mut &*reader, &mut buffer) {
            Ok(read @ 1..) => sink.lock().unwrap().extend_from_slice(&buffer[..read]),
            // Nobody is left on the other side.
            Ok(0) | Err(_) => return,
        }
    }
}
