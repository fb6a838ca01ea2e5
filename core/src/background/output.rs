//! What a task printed: written under a cap by its supervisor, read by anyone.
//!
//! A file that would outgrow its cap keeps its first eighth and its newest part; between them stands one line that says
//! how many bytes were left out. Offsets in the index count everything that was ever printed, so they stay right.
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::Store;
use crate::ids::BackgroundId;
use crate::time::Time;

mod show;

pub(super) use show::raw_stream;
pub use show::{Follow, Shown, clean as clean_output, read_output, tail_output};

/// The smallest cap, so that the parts that are kept stay longer than a line.
pub(super) const SMALLEST_CAP: u64 = 64 * 1024;

/// The first and the newest part of this size are kept when the middle is taken out. Both are copied then: the smaller
/// they are, the less often is what was printed written twice.
const KEPT: u64 = 8;

/// Which of the command's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    const fn code(self) -> &'static str {
        match self {
            Self::Stdout => "o",
            Self::Stderr => "e",
        }
    }
}

/// Where in the file what was printed lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The length of the first part.
    head: u64,
    /// How many bytes are left out after it; 0 where nothing is.
    left_out: u64,
}

const MARK_BEGIN: &str = "\n--- takeup left out ";
const MARK_END: &str = " bytes here ---\n";
const MARK_DIGITS: usize = 20;
const MARK_LEN: u64 = (MARK_BEGIN.len() + MARK_DIGITS + MARK_END.len()) as u64;

impl Layout {
    /// Reads the layout of a file that was written under a cap.
    pub(super) fn of(file: &File, cap: u64) -> io::Result<Self> {
        let head = cap.max(SMALLEST_CAP) / KEPT;
        let mut mark = Vec::new();
        let mut file = file;
        file.seek(SeekFrom::Start(head))?;
        file.take(MARK_LEN).read_to_end(&mut mark)?;
        let left_out = std::str::from_utf8(&mark)
            .ok()
            .and_then(|mark| mark.strip_prefix(MARK_BEGIN)?.strip_suffix(MARK_END))
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(0);
        Ok(Self { head, left_out })
    }

    /// Returns how much was printed before the place `at` of the file.
    pub(super) const fn printed(self, at: u64) -> u64 {
        if self.left_out == 0 || at <= self.head {
            return at;
        }
        at.saturating_sub(MARK_LEN).saturating_add(self.left_out)
    }

    /// Returns the place in the file of what was printed at `offset`; what was left out is at the first byte after it.
    pub(super) fn place(self, offset: u64) -> u64 {
        if self.left_out == 0 || offset < self.head {
            return offset;
        }
        offset
            .saturating_sub(self.left_out)
            .max(self.head)
            .saturating_add(MARK_LEN)
    }

    /// Returns the first offset after what was left out.
    pub(super) const fn resumes(self) -> u64 {
        self.head.saturating_add(self.left_out)
    }
}

/// Writes the output of one task.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    index_path: PathBuf,
    file: File,
    index: File,
    cap: u64,
    len: u64,
    layout: Layout,
    index_len: u64,
    /// The stream and second of the last index entry.
    last: Option<(&'static str, i64)>,
}

fn open(path: &Path, fresh: bool) -> io::Result<File> {
    let mut options = std::fs::OpenOptions::new();
    options
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    if fresh {
        // A new file, whatever was left behind.
        drop(std::fs::remove_file(path));
    }
    options.open(path)
}

impl Writer {
    /// Opens the output of a task, to be continued where there is some.
    pub(super) fn open(store: &Store, id: &BackgroundId, cap: u64) -> io::Result<Self> {
        let path = store.output_path(id);
        let index_path = store.index_path(id);
        let file = open(&path, false)?;
        let index = open(&index_path, false)?;
        let cap = cap.max(SMALLEST_CAP);
        Ok(Self {
            layout: Layout::of(&file, cap)?,
            len: file.metadata()?.len(),
            index_len: index.metadata()?.len(),
            path,
            index_path,
            file,
            index,
            cap,
            last: None,
        })
    }

    /// Appends what came from a stream.
    pub(super) fn write(&mut self, stream: Stream, mut bytes: &[u8], now: Time) -> io::Result<()> {
        // What is longer than the room that is made comes in pieces.
        let most = usize::try_from(self.cap / 4).unwrap_or(usize::MAX);
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(most.min(bytes.len()));
            if self.len.saturating_add(piece.len() as u64) > self.cap {
                self.shorten()?;
            }
            self.mark(stream, now)?;
            crate::fault::write_all("task-output", &mut self.file, piece)?;
            self.len = self.len.saturating_add(piece.len() as u64);
            bytes = rest;
        }
        Ok(())
    }

    /// Notes in the index where what comes next came from. When the index grows beyond an eighth of the cap, which only
    /// streams that take turns every few bytes bring about, the streams are no longer told apart.
    fn mark(&mut self, stream: Stream, now: Time) -> io::Result<()> {
        let full = self.index_len > self.cap / 8;
        let entry = if full {
            ("b", 0)
        } else {
            (stream.code(), now.millis() / 1000)
        };
        if self.last == Some(entry) {
            return Ok(());
        }
        let offset = self.layout.printed(self.len);
        let line = format!("{offset} {} {}\n", now.millis(), entry.0);
        self.index.write_all(line.as_bytes())?;
        self.index_len = self.index_len.saturating_add(line.len() as u64);
        self.last = Some(entry);
        Ok(())
    }

    /// Takes the middle out: the first eighth and the newest eighth stay.
    fn shorten(&mut self) -> io::Result<()> {
        let head = self.layout.head;
        let from = self.line_start(self.len.saturating_sub(self.cap / KEPT))?;
        let resumes = self.layout.printed(from);
        let left_out = resumes.saturating_sub(head);
        let fresh_path = self.path.with_extension("output.new");
        let mut fresh = open(&fresh_path, true)?;
        let mut old = &self.file;
        old.seek(SeekFrom::Start(0))?;
        io::copy(&mut old.take(head), &mut fresh)?;
        write!(fresh, "{MARK_BEGIN}{left_out:020}{MARK_END}")?;
        old.seek(SeekFrom::Start(from))?;
        io::copy(&mut old.take(self.len.saturating_sub(from)), &mut fresh)?;
        self.shorten_index(resumes)?;
        exchange(&fresh_path, &self.path)?;
        self.len = fresh.metadata()?.len();
        self.file = fresh;
        self.layout.left_out = left_out;
        Ok(())
    }

    /// Returns the first line start at or after a place, as far as a line is short enough.
    fn line_start(&self, at: u64) -> io::Result<u64> {
        let mut bytes = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))?;
        file.take(16 * 1024).read_to_end(&mut bytes)?;
        Ok(bytes
            .iter()
            .position(|&byte| byte == b'\n')
            .map_or(at, |end| at.saturating_add(end as u64).saturating_add(1)))
    }

    fn shorten_index(&mut self, resumes: u64) -> io::Result<()> {
        let fresh_path = self.index_path.with_extension("index.new");
        let mut fresh = io::BufWriter::new(open(&fresh_path, true)?);
        let mut old = &self.index;
        old.seek(SeekFrom::Start(0))?;
        let mut last_before: Option<String> = None;
        for line in io::BufRead::lines(io::BufReader::new(old)) {
            let line = line?;
            let Some(entry) = show::Entry::parse(&line) else {
                continue;
            };
            if entry.offset < self.layout.head {
                writeln!(fresh, "{line}")?;
            } else if entry.offset <= resumes {
                last_before = Some(line);
            } else {
                if let Some(line) = last_before.take() {
                    writeln!(fresh, "{line}")?;
                }
                writeln!(fresh, "{line}")?;
            }
        }
        if let Some(line) = last_before {
            writeln!(fresh, "{line}")?;
        }
        let fresh = fresh.into_inner().map_err(io::IntoInnerError::into_error)?;
        exchange(&fresh_path, &self.index_path)?;
        self.index_len = fresh.metadata()?.len();
        self.index = fresh;
        self.last = None;
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what a task printed may be lost with the power; flushing it would slow the task down"
)]
fn exchange(fresh: &Path, old: &Path) -> io::Result<()> {
    std::fs::rename(fresh, old)
}

#[cfg(test)]
mod tests;
