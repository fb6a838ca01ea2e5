//! Making a new snapshot, so that the journal stays short.
//!
//! The order of the steps, each of them durable before the next. `P` is the last line of the present snapshot, `S` the
//! last line there is. A reader holds no lock and may come at any moment; a kill may come at any moment.
//!
//! 1. The new snapshot (up to `S`) is written and flushed under a temporary name. Nothing has changed for anybody.
//! 2. `state.json` (up to `P`) becomes `state.old.json`. For this moment there is no `state.json`: a reader takes
//!    `state.old.json` and the journals after it, which is the same state.
//! 3. The new one becomes `state.json`. The journal still holds the lines after `P`; a reader leaves out those up to `S`.
//! 4. `journal.jsonl` becomes `journal.old.jsonl`: it holds the lines after `P`, so `state.old.json` and it make up what
//!    `state.json` says. When that is damaged one day, nothing is lost.
//! 5. The next line makes a new `journal.jsonl`.
//!
//! What is damaged is never replaced: a damaged `state.json` is renamed to `damaged-S-state.json` in step 2, and then the
//! new snapshot is also written as `state.old.json`, since the lines between would be missing for the old one. Of a damaged
//! journal a copy is kept as `damaged-S-journal.jsonl` before step 4. What could not be read, and may be healthy, stops all
//! of this.
use serde::Serialize;

use super::frame::{self, Sum, VERSION};
use super::read::{Base, LONGEST_FILE, Pace};
use super::write::Writer;
use super::{LedgerError, State};
use crate::files::{self, FileError, Staged};

/// A snapshot is made when the journal has this many lines, …
const LINES: u64 = if cfg!(test) { 8 } else { 64 };
/// … or this many bytes, and not less than half of what the snapshot has.
const BYTES: u64 = 128 << 10;

#[derive(Serialize)]
struct Snapshot<'a> {
    v: u32,
    seq: u64,
    head: &'a Sum,
    state: &'a State,
}

impl Writer<'_> {
    /// Tells whether a snapshot is due for so long that whoever it was left to did not make it.
    pub(super) const fn is_overdue(&self) -> bool {
        self.loaded.tail.lines >= 2 * LINES
    }

    /// Tells whether a snapshot is due and safe to make.
    pub(super) fn is_due(&self) -> bool {
        let loaded = &self.loaded;
        let long =
            loaded.tail.lines >= LINES || loaded.tail.whole >= BYTES.max(loaded.snapshot_size / 2);
        long && self.is_safe()
    }

    /// Tells whether everything was read that may be healthy, so that a snapshot may take its place.
    pub(super) fn is_safe(&self) -> bool {
        self.loaded.pace == Pace::Sure
            && self.loaded.base != Base::Unknown
            && !self.loaded.tail.unterminated
    }

    /// Makes a snapshot of the present state.
    pub(super) fn make_snapshot(&mut self) -> Result<(), LedgerError> {
        let files = self.files;
        let seq = self.loaded.view.seq;
        let record = Snapshot {
            v: VERSION,
            seq,
            head: &self.loaded.head,
            state: &self.loaded.view.state,
        };
        let fail = |source: std::io::Error| FileError::new("cannot write", &files.snapshot, source);
        let (mut bytes, _) = frame::seal(&record).map_err(|error| fail(error.into()))?;
        bytes.push(b'\n');
        // What nobody would read must not take the place of what everybody reads.
        if bytes.len() as u64 > LONGEST_FILE {
            return Err(LedgerError::Full { most: LONGEST_FILE });
        }
        let staged = Staged::write(&files.snapshot, &bytes, 0o600)?;
        self.work.written += bytes.len() as u64;
        self.work.flushes += 4;
        match self.loaded.base {
            Base::Snapshot if self.loaded.snapshot.is_some() => {
                files::rename(&files.snapshot, &files.old_snapshot)?;
            }
            Base::Damaged => {
                let aside = self.free_path(&format!("damaged-{seq}-state.json"));
                files::rename(&files.snapshot, &aside)?;
                self.aside.push(format!(
                    "the damaged snapshot was put aside as {}",
                    aside.display()
                ));
            }
            Base::Snapshot | Base::Missing | Base::Unknown => {}
        }
        staged.put()?;
        if matches!(self.loaded.base, Base::Damaged | Base::Missing) {
            files::write_atomic(&files.old_snapshot, &bytes, 0o600)?;
        }
        if self.loaded.tail.damaged
            && let Ok(Some(journal)) = files::read_bounded(&files.journal, u64::MAX)
        {
            let aside = self.free_name(&format!("damaged-{seq}-journal.jsonl"), &journal)?;
            self.aside.push(format!(
                "a copy of the damaged journal is kept as {}",
                aside.display()
            ));
        }
        if self.loaded.tail.mark.is_some() {
            files::rename(&files.journal, &files.old_journal)?;
        }
        Ok(())
    }

    pub(super) fn free_path(&self, name: &str) -> std::path::PathBuf {
        let mut path = self.files.folder.join(name);
        let mut number = 2_u32;
        while std::fs::symlink_metadata(&path).is_ok() {
            path = self.files.folder.join(format!("{name}-{number}"));
            number += 1;
        }
        path
    }
}
