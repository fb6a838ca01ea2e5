//! Who has a database open: the lock byte of its `-shm` file.
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};

/// Whether any process has a database open in WAL mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// No process has it open.
    Free,
    /// At least one has.
    Held {
        /// One of them; `None` where its number is not visible from here.
        pid: Option<u32>,
    },
    /// It could not be found out.
    Unknown {
        /// Why not.
        why: String,
    },
}

/// The byte on which every connection to a WAL database holds a shared lock (`SQLite`'s `os_unix.c`, "dead man's switch").
const SWITCH: u64 = 128;

/// Connections this process has open, and descriptors that have to stay open as long as there are any.
///
/// Closing any descriptor of a file drops all POSIX locks this process has on it. A descriptor that was opened to ask
/// is therefore kept until the last connection is closed.
static OPEN: Mutex<Open> = Mutex::new(Open {
    connections: 0,
    parked: Vec::new(),
});

struct Open {
    connections: usize,
    parked: Vec<OwnedFd>,
}

fn open() -> MutexGuard<'static, Open> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stands for a connection that is open; dropped after it.
#[derive(Debug)]
pub(crate) struct Connected(());

impl Connected {
    pub(crate) fn new() -> Self {
        open().connections += 1;
        Self(())
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut open = open();
        open.connections -= 1;
        if open.connections == 0 {
            open.parked.clear();
        }
    }
}

/// Returns the path of a file that `SQLite` keeps beside a database.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(suffix);
    PathBuf::from(name)
}

/// Asks who has a database open, by `F_GETLK` on the lock byte: no lock is taken and nothing is written.
///
/// Another `git-takeup` that reads at the same moment is not an owner: it is waited for a moment, and where it stays
/// the answer is [`Owner::Unknown`]. A database that is not in WAL mode has no lock byte and is always [`Owner::Free`].
pub fn lock_owner(database: &Path) -> Owner {
    for pause in [2, 5, 10, 20, 40] {
        match ask(database) {
            Owner::Held { pid: Some(pid) } if is_reader_of_ours(pid) => {
                sleep(Duration::from_millis(pause));
            }
            answer @ (Owner::Free | Owner::Held { .. } | Owner::Unknown { .. }) => return answer,
        }
    }
    Owner::Unknown {
        why: "another git-takeup reads the database, and hides who else has it open".to_owned(),
    }
}

fn ask(database: &Path) -> Owner {
    let path = beside(database, "-shm");
    let mut open = open();
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match rustix::fs::open(&path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR) => return Owner::Free,
        Err(error) => return unknown(&path, error),
    };
    let question = Flock {
        start: SWITCH,
        length: 1,
        pid: None,
        typ: FlockType::WriteLock,
        offset_type: FlockOffsetType::Set,
    };
    let answer = match fcntl_getlk(&file, &question) {
        Ok(None) => Owner::Free,
        Ok(Some(lock)) => Owner::Held {
            pid: lock
                .pid
                .and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok()),
        },
        Err(error) => unknown(&path, error),
    };
    if open.connections > 0 {
        open.parked.push(file);
    }
    answer
}

fn unknown(path: &Path, error: Errno) -> Owner {
    Owner::Unknown {
        why: format!(
            "cannot ask for the lock of {}: {}",
            path.display(),
            std::io::Error::from(error)
        ),
    }
}

fn is_reader_of_ours(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_ascii() == b"git-takeup")
}
