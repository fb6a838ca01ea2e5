//! The lock: held by one writer at a time, and freed by the system when that writer is gone, however it went.
//!
//! It is an advisory lock on the file `lock`, and a second one on the folder itself. The file is never deleted by us; when
//! somebody else deletes it, a writer that holds the deleted one and a writer that made a new one still meet at the folder.
//! The text in the file names the holder for the others and means nothing else: nobody breaks a lock because of it.
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::LedgerError;
use crate::fault;
use crate::files::FileError;
use crate::issue::{Issue, IssueKind};
use crate::text;
use crate::time::{Clock, Time};

/// The lock, held. Freed when dropped.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    /// The folder's own lock goes with the handle.
    folder: File,
    since: Instant,
}

/// Who holds the lock, as it stands in the file.
#[derive(Debug, Serialize, Deserialize)]
struct Holder {
    pid: u32,
    operation: String,
    since: Time,
}

impl Lock {
    /// Takes the lock, waiting at most `patience`.
    pub(super) fn take(
        folder: &Path,
        operation: &str,
        clock: &dyn Clock,
        patience: Duration,
    ) -> Result<Self, LedgerError> {
        let path = folder.join("lock");
        let began = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(lock) = Self::attempt(folder, &path)? {
                lock.sign(operation, clock);
                return Ok(lock);
            }
            let waited = began.elapsed();
            let Some(left) = patience.checked_sub(waited).filter(|left| !left.is_zero()) else {
                return Err(LedgerError::Busy {
                    holder: holder(&path),
                    path,
                    waited,
                });
            };
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    fn attempt(folder: &Path, path: &Path) -> Result<Option<Self>, LedgerError> {
        let fail = |source| FileError::new("cannot lock", path, source);
        // Rust opens files with O_CLOEXEC: a program started while the lock is held does not inherit it.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc_nofollow())
            .open(path);
        let file = match file {
            Ok(file) => file,
            Err(error) if is_loop(&error) => {
                let issue = Issue::new(
                    path,
                    IssueKind::Symlink,
                    "a link stands in the place of the lock file",
                );
                return Err(LedgerError::Damaged(issue));
            }
            Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => {
                let issue = Issue::new(
                    path,
                    IssueKind::NotAFile,
                    "a folder stands in the place of the lock file",
                );
                return Err(LedgerError::Damaged(issue));
            }
            Err(error) => return Err(fail(error).into()),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(fail(error).into()),
        }
        let data = file.metadata().map_err(fail)?;
        let here = std::fs::symlink_metadata(path)
            .is_ok_and(|there| there.dev() == data.dev() && there.ino() == data.ino());
        if !here {
            // Deleted, or replaced, between opening and locking: this lock excludes nobody.
            return Ok(None);
        }
        let folder = File::open(folder).map_err(fail)?;
        match folder.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            // Some network file systems lock no folders; the file's lock has to do.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        Ok(Some(Self {
            file,
            folder,
            since: Instant::now(),
        }))
    }

    /// Writes who holds it. For the others' messages only, so a failure (a full disk) is none.
    fn sign(&self, operation: &str, clock: &dyn Clock) {
        let holder = Holder {
            pid: std::process::id(),
            operation: operation.to_owned(),
            since: clock.now(),
        };
        if let Ok(mut line) = serde_json::to_vec(&holder) {
            line.push(b'\n');
            let mut file = &self.file;
            let written = self
                .file
                .set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| file.write_all(&line));
            drop(written);
        }
        drop(fault::around("lock-taken", || Ok(())));
    }

    /// Returns how long it has been held.
    pub(super) fn held(&self) -> Duration {
        self.since.elapsed()
    }

    /// Makes the folder's entries durable.
    pub(super) fn flush_folder(&self) -> std::io::Result<()> {
        fault::around("folder-flush", || self.folder.sync_all())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        drop(self.file.set_len(0));
        drop(fault::around("lock-freed", || Ok(())));
    }
}

const fn libc_nofollow() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
}

fn is_loop(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Says who holds the lock at this moment; `None` where it is free.
pub(super) fn holder_now(path: &Path) -> Option<String> {
    let file = crate::files::open_regular(path).ok().flatten()?;
    match file.try_lock_shared() {
        Ok(()) | Err(TryLockError::Error(_)) => None,
        Err(TryLockError::WouldBlock) => {
            Some(holder(path).unwrap_or_else(|| "another process".to_owned()))
        }
    }
}

/// Says in words who holds the lock, where the file says so.
fn holder(path: &Path) -> Option<String> {
    let file = crate::files::open_regular(path).ok().flatten()?;
    let mut text = String::new();
    file.take(4_096).read_to_string(&mut text).ok()?;
    let holder: Holder = serde_json::from_str(text.trim()).ok()?;
    Some(format!(
        "process {} ({}) since {}",
        holder.pid,
        text::one_line(&holder.operation, 40),
        holder.since
    ))
}

/// Returns the path of the lock file, for documents and checks.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("lock")
}
