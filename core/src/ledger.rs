//! The ledger: a journal of transitions and a snapshot of the state they add up to (`docs/formats/ledger.md`).
//!
//! [`Ledger::read`] looks without a lock and never writes. [`Ledger::transact`] takes the lock, brings what was read up to
//! date, lets a pure function decide, and appends one line: it happened, or it did not. The files are described in
//! `docs/formats/ledger.md`.
//!
//! # Limitations
//!
//! Records that are cut off the end of the journal are missed by the note of the last acknowledged one; where that note is cut
//! back with them, as when an older copy of the whole folder is put in its place, they are not. Locks on network file systems
//! hold as far as the file system's do.
//!
//! ```
//! use std::convert::Infallible;
//! use takeup_core::ledger::Ledger;
//! use takeup_core::time::SystemClock;
//!
//! let folder = tempfile::tempdir()?;
//! let ledger = Ledger::at(folder.path().join("takeup"));
//! assert!(!ledger.exists());
//! let tasks = ledger.transact(&SystemClock, Ledger::PATIENCE, |view| {
//!     Ok::<_, Infallible>((None, view.state.tasks.len()))
//! })?;
//! assert_eq!((tasks.value, tasks.wrote), (0, false));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod acknowledged;
mod archive;
mod frame;
mod lock;
mod log;
mod places;
mod read;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_bounds;
#[cfg(test)]
mod tests_compat;
#[cfg(test)]
mod tests_cut;
#[cfg(test)]
mod tests_hostile;
#[cfg(test)]
mod tests_passing;
mod write;

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use state::{Actor, Change, Doubt, InstalledHook, PendingEffect, State, TaskEntry, Transition};

use crate::error::{Exit, Explain};
use crate::files::{self, FileError, Staged};
use crate::issue::{Issue, IssueKind};
use crate::text;
use crate::time::Clock;
use frame::Newer;
use lock::Lock;
use places::Files;
use read::Pace;
use write::Writer;

/// The ledger cannot be read or written. What is damaged inside it is no error but an [`Issue`] of the [`View`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The folder is not ours, or is none: nothing in it is looked at.
    #[error("{}: {}", .0.path.display(), .0.message)]
    Refused(Issue),
    /// A newer version wrote here: nothing is changed.
    #[error("{}: line {line} was written by another version of this program{}", path.display(),
        version.map_or_else(String::new, |version| format!(" (format {version})")))]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The version it names, where it names another one.
        version: Option<u32>,
    },
    /// Another process held the lock for longer than was waited.
    #[error("the ledger is locked by {}; waited {} ms", holder.as_deref().unwrap_or("another process"), waited.as_millis())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// Who holds it, as the file says.
        holder: Option<String>,
        /// How long was waited.
        waited: Duration,
    },
    /// Something stands in the way of writing; reading goes on.
    #[error("{}: {}", .0.path.display(), .0.message)]
    Damaged(Issue),
    /// The record is longer than is ever written.
    #[error(
        "the record has {size} bytes; {} are written at the most",
        write::LONGEST_LINE
    )]
    TooLarge {
        /// Its size in bytes.
        size: usize,
    },
    /// The journal is as long as it is ever read, and no snapshot could be made.
    #[error("the journal would be longer than the {most} bytes that are read")]
    Full {
        /// The most bytes of a file.
        most: u64,
    },
    /// Writing failed, and so did taking it back: whether it was recorded is not known.
    #[error("{0}; whether it was recorded is not known")]
    Uncertain(FileError),
    /// Reading or writing failed, and nothing changed.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Explain for LedgerError {
    fn code(&self) -> &'static str {
        match self {
            Self::Refused(_) => "ledger-refused",
            Self::NewerVersion { .. } => "ledger-newer-version",
            Self::Busy { .. } => "ledger-busy",
            Self::Damaged(_) => "ledger-damaged",
            Self::TooLarge { .. } => "record-too-large",
            Self::Full { .. } => "ledger-full",
            Self::Uncertain(_) => "ledger-uncertain",
            Self::File(error) => error.code(),
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Refused(issue) if issue.kind == IssueKind::ForeignOwner => {
                return Some(format!(
                    "run it as the user who owns the folder, or give the folder to this user: {}",
                    files::give(&issue.path)
                ));
            }
            Self::Refused(_) => "look at what stands there, and move it away",
            Self::NewerVersion { .. } => {
                "use the newer version of git-takeup; nothing was changed by this one"
            }
            Self::Busy { .. } => {
                "try again; the lock is freed by itself when its holder ends, and its file is never to be deleted"
            }
            Self::Damaged(_) => "see `git takeup doctor`; nothing was changed",
            Self::TooLarge { .. } => "shorten what is recorded",
            Self::Full { .. } => {
                "finish or abandon tasks, and move them into the archive with `git takeup gc`"
            }
            Self::Uncertain(_) => "look with `git takeup` before you try again",
            Self::File(error) => return error.hint(),
        };
        Some(hint.to_owned())
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Busy { .. } => Exit::Busy,
            Self::File(error) => error.exit(),
            Self::Refused(_)
            | Self::NewerVersion { .. }
            | Self::Damaged(_)
            | Self::TooLarge { .. }
            | Self::Full { .. }
            | Self::Uncertain(_) => Exit::No,
        }
    }
}

fn newer_version(path: &Path, line: u64, newer: &Newer) -> LedgerError {
    LedgerError::NewerVersion {
        path: path.to_path_buf(),
        line,
        version: newer.version,
    }
}

/// A transaction did not come about: the ledger failed, or the decision was no.
#[derive(Debug, thiserror::Error)]
pub enum TransactError<E> {
    /// The ledger cannot be read or written.
    #[error(transparent)]
    Ledger(LedgerError),
    /// The decision was no; nothing was written.
    #[error("{0}")]
    Decision(E),
}

impl<E> From<LedgerError> for TransactError<E> {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

impl<E> From<FileError> for TransactError<E> {
    fn from(error: FileError) -> Self {
        Self::Ledger(error.into())
    }
}

impl<E: Explain> Explain for TransactError<E> {
    fn code(&self) -> &'static str {
        match self {
            Self::Ledger(error) => error.code(),
            Self::Decision(error) => error.code(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Ledger(error) => error.hint(),
            Self::Decision(error) => error.hint(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Ledger(error) => error.exit(),
            Self::Decision(error) => error.exit(),
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Ledger(error) => error.retryable(),
            Self::Decision(error) => error.retryable(),
        }
    }
}

/// What a look at the ledger gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The state that the healthy records add up to.
    pub state: State,
    /// The number of the last record; 0 in an empty ledger.
    pub seq: u64,
    /// What is damaged.
    pub issues: Vec<Issue>,
}

impl View {
    /// Tells whether every record that was ever acknowledged is in the state, as far as can be told. A torn last line does
    /// not count: it was never acknowledged. Where this is false, a record that would change a verdict may be among the
    /// lost ones.
    pub fn is_whole(&self) -> bool {
        self.issues
            .iter()
            .all(|issue| issue.kind == IssueKind::Torn)
    }

    /// Says that records are lost, where that is all that is left of the damage: what was damaged was put aside in the
    /// ledger's folder, and nobody has taken note yet.
    pub fn loss(&self, folder: &Path) -> Option<Issue> {
        let lost = self.state.lost;
        (lost > 0 && self.is_whole()).then(|| {
            let lost = text::count(
                usize::try_from(lost).unwrap_or(usize::MAX),
                "acknowledged record is",
                "acknowledged records are",
            );
            Issue::new(
                folder,
                IssueKind::Missing,
                format!("{lost} lost; what was put aside is kept here (torn-…, damaged-…)"),
            )
        })
    }
}

/// A transaction that came about.
#[derive(Clone, Debug)]
pub struct Committed<T> {
    /// What the decision returned.
    pub value: T,
    /// The number of the last record afterwards.
    pub seq: u64,
    /// Whether a line was written; if not, everything was so already.
    pub wrote: bool,
    /// How long the lock was held.
    pub held: Duration,
    /// What was done while it was held.
    pub work: Work,
    /// What is damaged.
    pub issues: Vec<Issue>,
}

/// What was done while the lock was held. Tests state on it what must not happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Flushes of files and folders.
    pub flushes: u32,
}

/// The ledger of one repository.
#[derive(Clone, Debug)]
pub struct Ledger {
    files: Files,
    operation: String,
}

impl Ledger {
    /// How long a writer waits for the lock where nothing else is said: 5 seconds.
    pub const PATIENCE: Duration = Duration::from_secs(5);

    /// Names the ledger in the folder `dir`. Nothing is looked at.
    pub fn at(dir: impl AsRef<Path>) -> Self {
        Self {
            files: Files::of(dir.as_ref()),
            operation: "takeup".to_owned(),
        }
    }

    /// Names the operation that is under way, so that those who wait for the lock can be told.
    #[must_use]
    pub fn during(mut self, operation: impl Into<String>) -> Self {
        self.operation = operation.into();
        self
    }

    /// Returns the folder.
    pub fn dir(&self) -> &Path {
        &self.files.folder
    }

    /// Returns the lock file.
    pub fn lock_path(&self) -> PathBuf {
        lock::path(self.dir())
    }

    /// Says who holds the lock at this moment, `None` where nobody does. Waits for nothing and changes nothing.
    pub fn lock_holder(&self) -> Option<String> {
        lock::holder_now(&self.lock_path())
    }

    /// Tells whether there is anything where the ledger would be.
    pub fn exists(&self) -> bool {
        std::fs::symlink_metadata(self.dir()).is_ok()
    }

    /// Tells whether there is a folder; fails where something else stands there, or it belongs to another user.
    pub fn is_there(&self) -> Result<bool, LedgerError> {
        read::check_folder(self.dir())
    }

    /// Returns the file that every record is added to.
    pub fn journal_path(&self) -> &Path {
        &self.files.journal
    }

    /// Reads the ledger without a lock. Never writes; a ledger that is not there reads as an empty one.
    pub fn read(&self) -> Result<View, LedgerError> {
        read::load(&self.files).map(|loaded| loaded.view)
    }

    /// Reads everything there is: what [`Self::read`] reads, the older generation that it needs only after damage, and the
    /// whole archive. Returns what is damaged. Never writes.
    pub fn examine(&self) -> Result<Vec<Issue>, LedgerError> {
        let mut issues = self.read()?.issues;
        for issue in read::older_issues(&self.files)? {
            if !issues.contains(&issue) {
                issues.push(issue);
            }
        }
        issues.extend(self.read_whole_archive()?.issues);
        Ok(issues)
    }

    /// Lets `decide` look at the ledger while nobody else can change it, and appends the transition it returns; with
    /// `None` nothing is written. The line is on disk when this returns.
    ///
    /// `decide` runs under the lock: it must do nothing slow (no git, no scan, no other program). It runs once. The folder
    /// is made where it is not there: ask [`Self::exists`] first where nothing may be made. `patience` is how long to wait
    /// for the lock ([`Self::PATIENCE`]).
    pub fn transact<T, E>(
        &self,
        clock: &dyn Clock,
        patience: Duration,
        decide: impl FnOnce(&View) -> Result<(Option<Transition>, T), E>,
    ) -> Result<Committed<T>, TransactError<E>> {
        self.transact_at(Pace::Sure, clock, patience, decide)
    }

    /// Like [`Self::transact`], where somebody waits who is told nothing: the line is in the file when this returns, and
    /// survives whatever becomes of this process, but it is left to the next writer to flush it and to make a snapshot. For
    /// what git hooks see: git itself does not flush the commit they tell of. `decide` sees no observations.
    ///
    /// Where anything is amiss with the ledger this is [`Self::transact`].
    pub fn transact_in_passing<T, E>(
        &self,
        clock: &dyn Clock,
        patience: Duration,
        decide: impl FnOnce(&View) -> Result<(Option<Transition>, T), E>,
    ) -> Result<Committed<T>, TransactError<E>> {
        self.transact_at(Pace::Passing, clock, patience, decide)
    }

    fn transact_at<T, E>(
        &self,
        pace: Pace,
        clock: &dyn Clock,
        patience: Duration,
        decide: impl FnOnce(&View) -> Result<(Option<Transition>, T), E>,
    ) -> Result<Committed<T>, TransactError<E>> {
        self.make_folder()?;
        // The long part of reading comes before the lock.
        let before = read::load_at(&self.files, pace)?;
        let lock = Lock::take(self.dir(), &self.operation, clock, patience)?;
        let mut writer = Writer::new(&self.files, lock, before)?;
        writer.take_time_where_needed()?;
        let (transition, value) = decide(&writer.loaded.view).map_err(TransactError::Decision)?;
        let mut complaint = None;
        if let Some(transition) = &transition {
            writer.append(transition)?;
            // What was put aside or is gone leaves no trace in the journal: the doubt it raised is kept in a snapshot.
            let traceless = !writer.aside.is_empty() || writer.loaded.cut;
            let state = &writer.loaded.view.state;
            let doubts = traceless && (!state.doubtful.is_empty() || state.lost > 0);
            // What went into the archive is read by everybody until a snapshot leaves it out.
            let shrinks = transition.archives() && writer.is_safe();
            if writer.is_due() || doubts || shrinks {
                // The line is acknowledged already; the next writer tries again.
                complaint = writer.make_snapshot().err();
            }
        }
        let Writer {
            lock,
            loaded,
            work,
            aside,
            ..
        } = writer;
        let held = lock.held();
        drop(lock);
        for message in aside {
            self.log(clock, &message);
        }
        if let Some(error) = complaint {
            self.log(clock, &format!("no snapshot was made: {error}"));
        }
        Ok(Committed {
            value,
            seq: loaded.view.seq,
            wrote: transition.is_some(),
            held,
            work,
            issues: loaded.view.issues,
        })
    }

    /// Writes a snapshot of the healthy records now. What is torn or damaged, or no file at all, is put aside under a name of
    /// its own, and kept. Does nothing where there is no ledger. Fails with what is still damaged after it, as where something
    /// cannot be read that may be healthy: that is left as it is.
    pub fn rewrite(&self, clock: &dyn Clock, patience: Duration) -> Result<(), LedgerError> {
        if !read::check_folder(self.dir())? {
            return Ok(());
        }
        let before = read::load(&self.files)?;
        let lock = Lock::take(self.dir(), &self.operation, clock, patience)?;
        let mut writer = Writer::new(&self.files, lock, before)?;
        writer.put_strangers_aside()?;
        let next = writer.loaded.next;
        writer.put_torn_aside(next)?;
        if writer.is_safe() && (writer.loaded.tail.mark.is_some() || writer.loaded.cut) {
            writer.make_snapshot()?;
            writer.acknowledge();
        }
        let Writer { lock, aside, .. } = writer;
        drop(lock);
        for message in aside {
            self.log(clock, &message);
        }
        match self.read()?.issues.into_iter().next() {
            Some(left) => Err(LedgerError::Damaged(left)),
            None => Ok(()),
        }
    }

    /// Takes note of lost records: nothing says any more that they are. What is in doubt stays so.
    pub fn forget_losses(&self, clock: &dyn Clock, patience: Duration) -> Result<(), LedgerError> {
        if !read::check_folder(self.dir())? {
            return Ok(());
        }
        let before = read::load(&self.files)?;
        let lock = Lock::take(self.dir(), &self.operation, clock, patience)?;
        let mut writer = Writer::new(&self.files, lock, before)?;
        if writer.is_safe() {
            writer.loaded.view.state.lost = 0;
            writer.make_snapshot()?;
        }
        Ok(())
    }

    /// Appends a line to the file `log`, for what cannot be said on a terminal. Does nothing where there is no ledger.
    pub fn log(&self, clock: &dyn Clock, message: &str) {
        if matches!(read::check_folder(self.dir()), Ok(true)) {
            log::append(self.dir(), clock, &self.operation, message);
        }
    }

    /// Lists what was put aside because it was damaged (`torn-…`, `damaged-…`), and temporary files that a killed process
    /// left here and in the archive, ordered by path.
    pub fn aside(&self) -> Result<Vec<PathBuf>, LedgerError> {
        let mut found = Vec::new();
        for (folder, prefixes) in [
            (self.dir(), &["torn-", "damaged-", Staged::PREFIX][..]),
            (&self.archive_folder(), &[Staged::PREFIX][..]),
        ] {
            if !read::check_folder(folder)? {
                break;
            }
            let fail = |source| FileError::new("cannot list", folder, source);
            for item in std::fs::read_dir(folder).map_err(fail)? {
                let item = item.map_err(fail)?;
                let name = item.file_name();
                let name = name.to_string_lossy();
                if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                    found.push(item.path());
                }
            }
        }
        found.sort();
        Ok(found)
    }

    fn make_folder(&self) -> Result<(), LedgerError> {
        if read::check_folder(self.dir())? {
            return Ok(());
        }
        files::make_private_folder(self.dir())?;
        if let Some(parent) = self.dir().parent() {
            files::sync_folder(parent)?;
        }
        read::check_folder(self.dir()).map(|_| ())
    }
}
