//! Reading: the snapshot, then the lines after it. Nothing is locked and nothing is written.
//!
//! A reader may come in between the steps of a writer that makes a new snapshot (see `snapshot.rs`): it looks at the
//! snapshot file again when it is through, and starts anew when that is another file by then.
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::acknowledged::Acknowledged;
use super::frame::{self, Newer, Sum, VERSION};
use super::places::{Files, Mark};
use super::state::{Doubt, InstalledHook, PendingEffect, TaskEntry};
use super::{LedgerError, State, Transition, View, newer_version};
use crate::files;
use crate::identity::SessionRecord;
use crate::ids::TaskId;
use crate::issue::{Issue, IssueKind};

/// The most bytes of one file that are read, and so the most that are written.
pub(super) const LONGEST_FILE: u64 = if cfg!(test) { 4 << 20 } else { 512 << 20 };
/// The largest number of a record. Nobody writes so many; a file that says so is damaged, whatever its checksum.
pub(super) const LAST_NUMBER: u64 = u64::MAX / 2;

/// Says that a number is none that a record can have.
pub(super) fn no_number(path: &Path, seq: u64) -> Issue {
    Issue::new(
        path,
        IssueKind::Corrupt,
        format!("{seq} is no number that a record has"),
    )
}

/// What was read of the journal file.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail {
    /// The file; `None` where there is none.
    pub(super) mark: Option<Mark>,
    /// Bytes up to the end of the last whole line.
    pub(super) whole: u64,
    /// What stands after it.
    pub(super) torn: Vec<u8>,
    /// The last record is whole and lacks its newline, or there are whole records in the torn part: it is not cut.
    pub(super) unterminated: bool,
    /// Lines in the file.
    pub(super) lines: u64,
    /// Something in it is damaged.
    pub(super) damaged: bool,
}

/// The ledger as it was read, with what a writer has to know to add to it.
#[derive(Clone, Debug)]
pub(super) struct Loaded {
    /// The state and what was damaged.
    pub(super) view: View,
    /// The sum of the last line.
    pub(super) head: Sum,
    /// The number of the next line. Numbers of damaged lines are not given out again.
    pub(super) next: u64,
    /// The journal.
    pub(super) tail: Tail,
    /// The snapshot file; `None` where there is none.
    pub(super) snapshot: Option<Mark>,
    /// Its size in bytes.
    pub(super) snapshot_size: u64,
    /// The snapshot before, where there is no present one.
    older: Option<Mark>,
    /// The number of the last line it holds.
    snapshot_seq: u64,
    /// Where the state came from.
    pub(super) base: Base,
    /// Records that were acknowledged are missing at the end, or the note of the last one is damaged.
    pub(super) cut: bool,
    /// The number of the record that was acknowledged last, as far as the note says; 0 for none.
    pub(super) acknowledged: u64,
    /// Bytes that were read.
    pub(super) bytes: u64,
    /// Whether observations were passed over.
    pub(super) pace: Pace,
    /// A line was damaged, and no healthy one came after it yet: the chain cannot be checked there.
    broken: bool,
    /// Records before the next one are gone, and the state was not yet doubted for it.
    lost: bool,
}

/// What the lines were added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// The snapshot, or nothing in a ledger that has none yet.
    Snapshot,
    /// The snapshot before and the lines after it, since the present one is missing.
    Missing,
    /// The same, since the present one is damaged.
    Damaged,
    /// Something could not be read that may be healthy: nothing may be replaced.
    Unknown,
}

#[derive(Deserialize)]
struct Line {
    v: u32,
    seq: u64,
    transition: Transition,
    prev: Sum,
}

#[derive(Deserialize)]
struct Snapshot<S> {
    v: u32,
    seq: u64,
    head: Sum,
    state: S,
}

/// How much time there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// As much as it takes.
    Sure,
    /// Somebody waits: observations, which are most of a ledger, are passed over, and so is the flush of the next line.
    Passing,
}

/// The state without its observations.
#[derive(Deserialize)]
struct Light {
    #[serde(default)]
    tasks: BTreeMap<TaskId, TaskEntry>,
    #[serde(default)]
    pending: Vec<PendingEffect>,
    #[serde(default)]
    sessions: Vec<SessionRecord>,
    #[serde(default)]
    hooks: BTreeMap<String, InstalledHook>,
    #[serde(default)]
    doubtful: BTreeSet<Doubt>,
    #[serde(default)]
    lost: u64,
    #[serde(default)]
    archived: Vec<TaskId>,
}

impl From<Light> for State {
    fn from(light: Light) -> Self {
        Self {
            tasks: light.tasks,
            observations: Vec::new(),
            pending: light.pending,
            sessions: light.sessions,
            hooks: light.hooks,
            doubtful: light.doubtful,
            lost: light.lost,
            archived: light.archived,
        }
    }
}

/// Says what is wrong with the folder itself, if anything. A folder that is not there is fine.
pub(super) fn check_folder(folder: &Path) -> Result<bool, LedgerError> {
    let data = match std::fs::symlink_metadata(folder) {
        Ok(data) => data,
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(false);
        }
        Err(error) => {
            return Err(files::FileError::new("cannot look at", folder, error).into());
        }
    };
    let refuse = |kind, message: &str| Err(LedgerError::Refused(Issue::new(folder, kind, message)));
    if data.is_symlink() {
        return refuse(
            IssueKind::Symlink,
            "a link stands in the place of the folder",
        );
    }
    if !data.is_dir() {
        return refuse(
            IssueKind::NotAFile,
            "something else stands in the place of the folder",
        );
    }
    if data.uid() != rustix::process::geteuid().as_raw() {
        return refuse(
            IssueKind::ForeignOwner,
            &format!("the folder belongs to {}", files::user(data.uid())),
        );
    }
    Ok(true)
}

/// Opens one of our files: a regular one that belongs to this user. `None` where there is none.
pub(super) fn open_own(path: &Path) -> Result<Option<(File, std::fs::Metadata)>, Issue> {
    let Some(file) = files::open_regular(path).map_err(files::foreign)? else {
        return Ok(None);
    };
    let data = file
        .metadata()
        .map_err(|error| Issue::new(path, IssueKind::Unreadable, error.to_string()))?;
    if data.uid() != rustix::process::geteuid().as_raw() {
        return Err(Issue::new(
            path,
            IssueKind::ForeignOwner,
            format!("the file belongs to {}", files::user(data.uid())),
        ));
    }
    Ok(Some((file, data)))
}

/// Reads what an open file holds from `offset` on.
pub(super) fn read_from(path: &Path, file: &mut File, offset: u64) -> Result<Vec<u8>, Issue> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let unreadable =
        |error: std::io::Error| Issue::new(path, IssueKind::Unreadable, error.to_string());
    if offset > 0 {
        file.seek(SeekFrom::Start(offset)).map_err(unreadable)?;
    }
    let size = file
        .metadata()
        .map_err(unreadable)?
        .size()
        .saturating_sub(offset);
    if size > LONGEST_FILE {
        return Err(Issue::new(
            path,
            IssueKind::TooLarge,
            format!("{size} bytes are more than the {LONGEST_FILE} that are read"),
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(LONGEST_FILE)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    Ok(bytes)
}

/// Reads the ledger in `files`.
pub(super) fn load(files: &Files) -> Result<Loaded, LedgerError> {
    load_at(files, Pace::Sure)
}

/// Reads the ledger in `files`, all of it or what is needed in passing.
pub(super) fn load_at(files: &Files, pace: Pace) -> Result<Loaded, LedgerError> {
    const TRIES: u32 = 20;
    for attempt in 0.. {
        let loaded = load_once(files, pace)?;
        let last = attempt + 1 >= TRIES;
        if !last && marks_of(files) != (loaded.snapshot, loaded.older) {
            // A writer made a new snapshot meanwhile.
            continue;
        }
        if !last && attempt < 3 && (!loaded.tail.torn.is_empty() || loaded.cut) {
            // What is being written at this moment looks torn, and is not.
            std::thread::sleep(Duration::from_millis(2));
            continue;
        }
        return Ok(loaded);
    }
    load_once(files, pace)
}

/// Returns the snapshot file; where there is none, which is so for a moment of every new one, the one before: that it is
/// missing twice says not that it was the same moment.
fn marks_of(files: &Files) -> (Option<Mark>, Option<Mark>) {
    match mark_of(&files.snapshot) {
        None => (None, mark_of(&files.old_snapshot)),
        present => (present, None),
    }
}

fn mark_of(path: &Path) -> Option<Mark> {
    std::fs::symlink_metadata(path)
        .ok()
        .map(|data| Mark::of(&data))
}

/// Returns what is damaged in the older generation alone.
pub(super) fn older_issues(files: &Files) -> Result<Vec<Issue>, LedgerError> {
    let mut loaded = Loaded::nothing();
    if check_folder(&files.folder)? {
        loaded.take_snapshot(&files.old_snapshot)?;
        if let Some(fed) = loaded.feed_file(&files.old_journal)? {
            fed.report(&files.old_journal, &mut loaded);
        }
        // Together they make up the snapshot, or there would be nothing to fall back on.
        let before = mark_of(&files.snapshot);
        let mut present = Loaded::nothing();
        if present.take_snapshot(&files.snapshot)? == Taken::Yes
            && before == mark_of(&files.snapshot)
            && loaded.view.seq < present.view.seq
            && loaded.view.issues.is_empty()
        {
            loaded.view.issues.push(Issue::new(
                &files.old_journal,
                IssueKind::Missing,
                format!(
                    "it ends with record {}, and the snapshot holds {}",
                    loaded.view.seq, present.view.seq
                ),
            ));
        }
    }
    Ok(loaded.view.issues)
}

fn load_once(files: &Files, pace: Pace) -> Result<Loaded, LedgerError> {
    let mut loaded = Loaded::nothing();
    loaded.pace = pace;
    if !check_folder(&files.folder)? {
        return Ok(loaded);
    }
    // Before the records: what it speaks of is there by then.
    let acknowledged = Acknowledged::read(&files.acknowledged)?;
    (loaded.snapshot, loaded.older) = marks_of(files);
    match loaded.take_snapshot(&files.snapshot)? {
        Taken::Yes => {}
        Taken::Absent => loaded.base = Base::Missing,
        Taken::Damaged => loaded.base = Base::Damaged,
        Taken::Unreadable => loaded.base = Base::Unknown,
    }
    if loaded.base != Base::Snapshot {
        let old = loaded.take_snapshot(&files.old_snapshot)?;
        if old == Taken::Unreadable {
            loaded.base = Base::Unknown;
        }
        loaded.lost = matches!(old, Taken::Damaged | Taken::Unreadable);
        match loaded.feed_file(&files.old_journal)? {
            Some(fed) => fed.report(&files.old_journal, &mut loaded),
            // Neither a snapshot nor anything older: a young ledger.
            None if loaded.base == Base::Missing && old == Taken::Absent => {
                loaded.base = Base::Snapshot;
            }
            None => {}
        }
        if loaded.base == Base::Missing && !loaded.view.issues.is_empty() {
            loaded.view.issues.push(Issue::new(
                &files.snapshot,
                IssueKind::Missing,
                "the snapshot is gone, and what it was made of is damaged",
            ));
        }
    }
    if let Some(fed) = loaded.feed_file(&files.journal)? {
        fed.report(&files.journal, &mut loaded);
        loaded.tail = fed;
    }
    loaded.compare(acknowledged, files);
    loaded.doubt_losses();
    Ok(loaded)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Yes,
    Absent,
    Damaged,
    Unreadable,
}

impl Tail {
    fn report(&self, path: &Path, loaded: &mut Loaded) {
        if !self.torn.is_empty() {
            let zeroed = self.torn.contains(&0);
            // An append that was interrupted leaves the beginning of a line; zeros are what a disk makes of a whole one.
            loaded.lost |= zeroed;
            loaded.view.issues.push(Issue::new(
                path,
                if zeroed { IssueKind::Zeroed } else { IssueKind::Torn },
                format!(
                    "line {}: {} bytes at the end are no whole record; the next writer puts them aside",
                    self.lines + 1,
                    self.torn.len()
                ),
            ));
            loaded.next += 1;
        }
    }
}

impl Loaded {
    fn nothing() -> Self {
        Self {
            view: View::default(),
            head: frame::origin(),
            next: 1,
            tail: Tail::default(),
            snapshot: None,
            older: None,
            snapshot_size: 0,
            snapshot_seq: 0,
            base: Base::Snapshot,
            cut: false,
            acknowledged: 0,
            bytes: 0,
            pace: Pace::Sure,
            broken: false,
            lost: false,
        }
    }

    /// Compares the last record with the one that was acknowledged last. Where that one is missing, it counts as the last
    /// one all the same: its number is not given again, and the next record follows it.
    fn compare(&mut self, acknowledged: Result<Option<Acknowledged>, Issue>, files: &Files) {
        match acknowledged {
            Ok(None) => {}
            Ok(Some(Acknowledged { seq, .. })) if seq > LAST_NUMBER => {
                self.view.issues.push(no_number(&files.acknowledged, seq));
                self.cut = true;
            }
            Ok(Some(Acknowledged { seq, head, .. })) => {
                self.acknowledged = seq;
                let other = seq == self.view.seq && head != self.head;
                // It may stand in a damaged last line or in a file that cannot be read, which were reported as they were met.
                let known = (self.broken && seq < self.next) || self.base == Base::Unknown;
                if (seq <= self.view.seq && !other) || known {
                    return;
                }
                self.view.issues.push(Issue::new(
                    &files.journal,
                    IssueKind::Missing,
                    format!("record {seq} was acknowledged, and is gone from the end"),
                ));
                // Damaged lines were counted as they were met.
                let known = if self.broken {
                    self.next.saturating_sub(1)
                } else {
                    self.view.seq
                };
                self.miss(seq.saturating_sub(known).max(1));
                self.view.seq = seq;
                self.next = self.next.max(seq + 1);
                self.head = head;
                self.lost = true;
                self.cut = true;
            }
            Err(issue) => {
                self.view.issues.push(issue);
                self.cut = true;
            }
        }
    }

    fn take_snapshot(&mut self, path: &Path) -> Result<Taken, LedgerError> {
        let read = open_own(path).and_then(|found| match found {
            Some((mut file, data)) => {
                read_from(path, &mut file, 0).map(|bytes| Some((bytes, data)))
            }
            None => Ok(None),
        });
        let (bytes, data) = match read {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Taken::Absent),
            Err(issue) => {
                self.view.issues.push(issue);
                return Ok(Taken::Unreadable);
            }
        };
        self.bytes += bytes.len() as u64;
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        if let Err(kind) = frame::check(line) {
            let kind = if bytes.is_empty() {
                IssueKind::Torn
            } else {
                kind
            };
            self.view.issues.push(Issue::new(
                path,
                kind,
                "the snapshot is damaged; older records are used in its place",
            ));
            return Ok(Taken::Damaged);
        }
        let snapshot = match self.pace {
            Pace::Sure => frame::parse::<Snapshot<State>>(line),
            Pace::Passing => frame::parse::<Snapshot<Light>>(line).map(|light| Snapshot {
                v: light.v,
                seq: light.seq,
                head: light.head,
                state: light.state.into(),
            }),
        };
        let snapshot = snapshot.map_err(|newer| newer_version(path, 1, &newer))?;
        if snapshot.v != VERSION {
            let newer = Newer {
                version: Some(snapshot.v),
            };
            return Err(newer_version(path, 1, &newer));
        }
        if snapshot.seq > LAST_NUMBER {
            self.view.issues.push(no_number(path, snapshot.seq));
            return Ok(Taken::Damaged);
        }
        self.snapshot_size = data.size();
        self.view.state = snapshot.state;
        self.view.seq = snapshot.seq;
        self.snapshot_seq = snapshot.seq;
        self.next = snapshot.seq + 1;
        self.head = snapshot.head;
        Ok(Taken::Yes)
    }

    /// Adds the lines of a file. What is wrong with the file as such becomes an issue.
    fn feed_file(&mut self, path: &Path) -> Result<Option<Tail>, LedgerError> {
        let read = open_own(path).and_then(|found| match found {
            Some((mut file, data)) => {
                read_from(path, &mut file, 0).map(|bytes| Some((bytes, data)))
            }
            None => Ok(None),
        });
        match read {
            Ok(Some((bytes, data))) => {
                self.bytes += bytes.len() as u64;
                let mut tail = Tail {
                    mark: Some(Mark::of(&data)),
                    ..Tail::default()
                };
                self.feed(path, &bytes, &mut tail)?;
                Ok(Some(tail))
            }
            Ok(None) => Ok(None),
            Err(issue) => {
                self.view.issues.push(issue);
                self.base = Base::Unknown;
                self.lost = true;
                Ok(None)
            }
        }
    }

    /// Adds lines. `tail` says what was read of the file before and is brought up to date.
    pub(super) fn feed(
        &mut self,
        path: &Path,
        bytes: &[u8],
        tail: &mut Tail,
    ) -> Result<(), LedgerError> {
        for raw in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(line) = raw.strip_suffix(b"\n") else {
                self.feed_rest(path, raw, tail)?;
                break;
            };
            tail.lines += 1;
            tail.whole += raw.len() as u64;
            if let Err(kind) = frame::check(line) {
                tail.damaged = true;
                self.feed_damaged(path, line, kind, tail.lines)?;
            } else {
                tail.damaged |= !self.feed_record(path, line, tail.lines)?;
            }
        }
        Ok(())
    }

    /// The last line, which lacks its newline.
    fn feed_rest(&mut self, path: &Path, raw: &[u8], tail: &mut Tail) -> Result<(), LedgerError> {
        let number = tail.lines + 1;
        if frame::check(raw).is_ok() {
            tail.lines = number;
            tail.whole += raw.len() as u64;
            tail.unterminated = true;
            tail.damaged |= !self.feed_record(path, raw, number)?;
        } else if frame::salvage(raw).is_empty() {
            tail.torn = raw.to_vec();
        } else {
            tail.lines = number;
            tail.whole += raw.len() as u64;
            tail.unterminated = true;
            tail.damaged = true;
            self.feed_damaged(path, raw, IssueKind::Corrupt, number)?;
        }
        Ok(())
    }

    /// Counts records that were acknowledged and are lost.
    const fn miss(&mut self, records: u64) {
        self.view.state.lost = self.view.state.lost.saturating_add(records);
    }

    /// Doubts every open identity where records are gone: what was lost may have said more of any of them. A torn end does
    /// not count where it was never acknowledged (one of zeros does); nor does a damaged snapshot whose records stand
    /// elsewhere.
    fn doubt_losses(&mut self) {
        if std::mem::take(&mut self.lost) {
            self.view.state.doubt();
        }
    }

    fn feed_damaged(
        &mut self,
        path: &Path,
        line: &[u8],
        kind: IssueKind,
        number: u64,
    ) -> Result<(), LedgerError> {
        let saved = frame::salvage(line);
        let what = if kind == IssueKind::Zeroed {
            "holds zero bytes"
        } else if kind == IssueKind::Checksum {
            "does not match its checksum"
        } else {
            "is no record"
        };
        let message = if saved.is_empty() {
            format!("line {number} {what}")
        } else {
            format!(
                "line {number} {what}; whole records in it were read: {}",
                saved.len()
            )
        };
        self.view.issues.push(Issue::new(path, kind, message));
        self.broken = true;
        self.lost = true;
        self.next += 1;
        if saved.is_empty() {
            self.miss(1);
        }
        for record in saved {
            self.feed_record(path, record, number)?;
            self.broken = true;
        }
        Ok(())
    }

    /// Adds one record whose frame is sound. Returns whether nothing was wrong with its place in the chain.
    fn feed_record(
        &mut self,
        path: &Path,
        record: &[u8],
        number: u64,
    ) -> Result<bool, LedgerError> {
        let line: Line =
            frame::parse(record).map_err(|newer| newer_version(path, number, &newer))?;
        if line.v != VERSION {
            let newer = Newer {
                version: Some(line.v),
            };
            return Err(newer_version(path, number, &newer));
        }
        let sum = frame::check(record).unwrap_or_default();
        if line.seq > LAST_NUMBER {
            self.view.issues.push(no_number(path, line.seq));
            self.broken = true;
            self.lost = true;
            return Ok(false);
        }
        if line.seq <= self.view.seq {
            // Lines up to the snapshot are left in the journal when a writer was stopped between two steps.
            if line.seq > self.snapshot_seq {
                self.view.issues.push(Issue::new(
                    path,
                    IssueKind::Corrupt,
                    format!(
                        "line {number} repeats the number {} and is left out",
                        line.seq
                    ),
                ));
                return Ok(false);
            }
            return Ok(true);
        }
        let follows = line.prev == self.head || self.broken;
        if !follows {
            self.lost = true;
            self.miss(
                line.seq
                    .saturating_sub(self.view.seq)
                    .saturating_sub(1)
                    .max(1),
            );
            self.view.issues.push(Issue::new(
                path,
                IssueKind::Checksum,
                format!(
                    "line {number} (record {}) does not follow record {}: records between them are gone",
                    line.seq, self.view.seq
                ),
            ));
        }
        self.doubt_losses();
        self.view.state.apply(line.seq, &line.transition);
        self.view.seq = line.seq;
        self.next = self.next.max(line.seq + 1);
        sum.clone_into(&mut self.head);
        self.broken = false;
        Ok(follows)
    }
}
