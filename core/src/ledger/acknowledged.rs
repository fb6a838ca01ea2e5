//! The note of the last record that was acknowledged: its number and its sum, in a small file beside the journal.
//!
//! It is written after the record is on disk and before anybody is told of it, in place and without a flush. So it is never
//! ahead of what the disk was told to keep: after a power loss it may be older than the journal, and then says nothing. Where
//! it is ahead, records that were acknowledged have been cut off since, and everything open is in doubt.
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::frame::{self, Newer, Sum, VERSION};
use super::{LedgerError, newer_version, read};
use crate::fault;
use crate::issue::{Issue, IssueKind};

/// The most bytes that are read; a note has about 160.
const LONGEST: u64 = 4096;

/// The last record that was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Acknowledged {
    v: u32,
    /// Its number.
    pub(super) seq: u64,
    /// Its sum.
    pub(super) head: Sum,
}

impl Acknowledged {
    pub(super) const fn new(seq: u64, head: Sum) -> Self {
        Self {
            v: VERSION,
            seq,
            head,
        }
    }

    /// Reads the note. `None`: there is none, as in a ledger of an older program. One that is damaged is an [`Issue`].
    pub(super) fn read(path: &Path) -> Result<Result<Option<Self>, Issue>, LedgerError> {
        let bytes = match read_bytes(path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(Ok(None)),
            Err(issue) => return Ok(Err(issue)),
        };
        let line = bytes.split(|byte| *byte == b'\n').next();
        let Some(line) = line.filter(|line| frame::check(line).is_ok()) else {
            return Ok(Err(Issue::new(
                path,
                IssueKind::Torn,
                "the note of the last acknowledged record is damaged; the next writer makes it anew",
            )));
        };
        let note: Self = frame::parse(line).map_err(|newer| newer_version(path, 1, &newer))?;
        if note.v != VERSION {
            let newer = Newer {
                version: Some(note.v),
            };
            return Err(newer_version(path, 1, &newer));
        }
        Ok(Ok(Some(note)))
    }

    /// Writes the note. Returns how many bytes it has.
    pub(super) fn write(&self, path: &Path) -> io::Result<usize> {
        let (mut line, _) = frame::seal(self)?;
        line.push(b'\n');
        // Without NONBLOCK a pipe that stands there would be waited for.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(flags.bits().cast_signed())
            .open(path)?;
        fault::write_all("acknowledged-write", &mut file, &line)?;
        Ok(line.len())
    }
}

fn read_bytes(path: &Path) -> Result<Option<Vec<u8>>, Issue> {
    let Some((file, _)) = read::open_own(path)? else {
        return Ok(None);
    };
    let mut bytes = Vec::with_capacity(256);
    file.take(LONGEST)
        .read_to_end(&mut bytes)
        .map_err(|error| Issue::new(path, IssueKind::Unreadable, error.to_string()))?;
    Ok(Some(bytes))
}
