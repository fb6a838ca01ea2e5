//! Writing: only what holds the lock can append, and a transition is one append.
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use serde::Serialize;

use super::acknowledged::Acknowledged;
use super::frame::{self, Sum, VERSION};
use super::lock::Lock;
use super::places::{Files, Mark};
use super::read::{self, Loaded, Pace};
use super::{LedgerError, Transition, Work};
use crate::fault;
use crate::files::{self, FileError};
use crate::issue::{Issue, IssueKind};

/// The longest line that is written, in bytes. It bounds what one call can do to everybody's reading.
pub(super) const LONGEST_LINE: usize = 16 << 20;

#[derive(Serialize)]
struct Line<'a> {
    v: u32,
    seq: u64,
    transition: &'a Transition,
    prev: &'a Sum,
}

/// The right to write: the lock, and the ledger as it is while the lock is held.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) files: &'a Files,
    pub(super) lock: Lock,
    pub(super) loaded: Loaded,
    pub(super) work: Work,
    /// What was put aside, in words for the log.
    pub(super) aside: Vec<String>,
}

impl<'a> Writer<'a> {
    /// Brings what was read before the lock was taken up to date: reads what came after it, or everything where the
    /// files are others by now.
    pub(super) fn new(files: &'a Files, lock: Lock, before: Loaded) -> Result<Self, LedgerError> {
        let mut writer = Self {
            files,
            lock,
            loaded: before,
            work: Work::default(),
            aside: Vec::new(),
        };
        if !writer.catch_up()? {
            read::check_folder(&files.folder)?;
            writer.loaded = read::load_at(files, writer.loaded.pace)?;
            writer.work.read += writer.loaded.bytes;
        }
        Ok(writer)
    }

    /// Reads everything after all where that was passed over and must not be: something is damaged, or nobody has made the
    /// snapshots that were left to others.
    pub(super) fn take_time_where_needed(&mut self) -> Result<(), LedgerError> {
        let amiss = !self.loaded.view.issues.is_empty() || self.is_overdue();
        if self.loaded.pace == Pace::Passing && amiss {
            self.loaded = read::load(self.files)?;
            self.work.read += self.loaded.bytes;
        }
        Ok(())
    }

    fn catch_up(&mut self) -> Result<bool, LedgerError> {
        let mark = |path| {
            std::fs::symlink_metadata(path)
                .ok()
                .map(|data| (Mark::of(&data), data.size()))
        };
        let snapshot = mark(&self.files.snapshot).map(|(mark, _)| mark);
        let tail = &self.loaded.tail;
        if snapshot != self.loaded.snapshot
            || tail.unterminated
            || !tail.torn.is_empty()
            || self.loaded.cut
        {
            return Ok(false);
        }
        match (mark(&self.files.journal), tail.mark) {
            (None, None) => Ok(true),
            (Some((now, size)), Some(then)) if now.same_file(then) && size >= tail.whole => {
                if size == tail.whole {
                    return Ok(true);
                }
                let Ok(Some((mut file, _))) = read::open_own(&self.files.journal) else {
                    return Ok(false);
                };
                let Ok(bytes) = read::read_from(&self.files.journal, &mut file, tail.whole) else {
                    return Ok(false);
                };
                self.work.read += bytes.len() as u64;
                let mut tail = std::mem::take(&mut self.loaded.tail);
                self.loaded.feed(&self.files.journal, &bytes, &mut tail)?;
                let clean = tail.torn.is_empty() && !tail.unterminated;
                self.loaded.tail = tail;
                Ok(clean)
            }
            _ => Ok(false),
        }
    }

    /// Appends one transition and makes it durable. Returns its number.
    pub(super) fn append(&mut self, transition: &Transition) -> Result<u64, LedgerError> {
        let path = &self.files.journal;
        let fail = |source| LedgerError::File(FileError::new("cannot write", path, source));
        self.refuse_unreadable()?;
        let seq = self.loaded.next;
        if seq > read::LAST_NUMBER {
            return Err(LedgerError::Damaged(read::no_number(path, seq)));
        }
        let line = Line {
            v: VERSION,
            seq,
            transition,
            prev: &self.loaded.head,
        };
        let (mut line, sum) = frame::seal(&line).map_err(|error| fail(error.into()))?;
        if line.len() > LONGEST_LINE {
            return Err(LedgerError::TooLarge { size: line.len() });
        }
        line.push(b'\n');
        self.put_torn_aside(seq)?;
        if self.loaded.tail.unterminated {
            line.insert(0, b'\n');
        }
        let before = self.loaded.tail.whole;
        if before.saturating_add(line.len() as u64) > read::LONGEST_FILE {
            return Err(LedgerError::Full {
                most: read::LONGEST_FILE,
            });
        }
        let mut file = self.open_journal()?;
        // A new file has to be flushed, or the next writer would not know that its entry in the folder is not. Whoever made
        // it may have been killed before that: it is new until a line in it was acknowledged.
        let is_new = match (self.loaded.tail.mark, self.loaded.tail.lines) {
            (None, _) | (_, 0) => true,
            (_, 1) => self.loaded.acknowledged < self.loaded.view.seq,
            _ => false,
        };
        let leaves_flush = self.loaded.pace == Pace::Passing && !is_new;
        let flush = |file: &File| {
            if leaves_flush {
                return Ok(());
            }
            fault::around("journal-flush", || file.sync_data())
        };
        let written = fault::write_all("journal-append", &mut file, &line)
            .and_then(|()| flush(&file))
            .and_then(|()| {
                if is_new {
                    // Without its entry in the folder the line is not durable.
                    self.work.flushes += 1;
                    self.lock.flush_folder()
                } else {
                    Ok(())
                }
            });
        self.work.written += line.len() as u64;
        self.work.flushes += u32::from(!leaves_flush);
        if let Err(error) = written {
            // What was not acknowledged must not appear later, and half a line must not be in the way of the next.
            let undone = file.set_len(before).and_then(|()| file.sync_data());
            return Err(match undone {
                Ok(()) => fail(error),
                Err(_) => LedgerError::Uncertain(FileError::new("cannot write", path, error)),
            });
        }
        let data = file.metadata().map_err(fail)?;
        self.loaded.tail.mark = Some(Mark::of(&data));
        self.loaded.tail.whole = data.size();
        self.loaded.tail.lines += 1;
        self.loaded.tail.unterminated = false;
        self.loaded.view.state.apply(seq, transition);
        self.loaded.view.seq = seq;
        self.loaded.next = seq.saturating_add(1);
        self.loaded.head = sum;
        if !leaves_flush {
            self.acknowledge();
            self.loaded.acknowledged = seq;
        }
        Ok(seq)
    }

    /// Notes that the last record is on disk. A note that cannot be written stays behind, and then says nothing.
    pub(super) fn acknowledge(&mut self) {
        let note = Acknowledged::new(self.loaded.view.seq, self.loaded.head.clone());
        match note.write(&self.files.acknowledged) {
            Ok(bytes) => self.work.written += bytes as u64,
            Err(error) => self.aside.push(format!(
                "{}: {error}; a cut at the end of the journal would not be noticed",
                self.files.acknowledged.display()
            )),
        }
    }

    /// A journal that cannot be read may hold anything: nothing is added to it, and nothing is put in its place.
    fn refuse_unreadable(&self) -> Result<(), LedgerError> {
        match read::open_own(&self.files.journal) {
            Ok(_) => Ok(()),
            Err(issue) => Err(LedgerError::Damaged(issue)),
        }
    }

    /// Opens the journal for appending, at exactly the length that was read.
    fn open_journal(&self) -> Result<File, LedgerError> {
        let path = &self.files.journal;
        let fail = |source| LedgerError::File(FileError::new("cannot write", path, source));
        let file = fault::around("journal-open", || {
            OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
                .open(path)
        })
        .map_err(fail)?;
        let data = file.metadata().map_err(fail)?;
        let expected = self.loaded.tail.mark;
        let known =
            expected.map_or_else(|| data.size() == 0, |mark| mark.same_file(Mark::of(&data)));
        if !known || data.size() != self.loaded.tail.whole {
            let issue = Issue::new(
                path,
                IssueKind::Corrupt,
                "the journal was changed by a program that does not hold the lock",
            );
            return Err(LedgerError::Damaged(issue));
        }
        Ok(file)
    }

    /// Renames what stands in the place of one of our files and is no file, and reads anew: it holds no record.
    pub(super) fn put_strangers_aside(&mut self) -> Result<(), LedgerError> {
        let seq = self.loaded.view.seq;
        let files = self.files;
        let mut moved = false;
        for path in [
            &files.journal,
            &files.snapshot,
            &files.old_journal,
            &files.old_snapshot,
            &files.acknowledged,
        ] {
            let is_stranger = std::fs::symlink_metadata(path).is_ok_and(|data| !data.is_file());
            if !is_stranger {
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let aside = self.free_path(&format!("damaged-{seq}-{name}"));
            files::rename(path, &aside)?;
            self.aside.push(format!(
                "what stood in the place of {name} and is no file was put aside as {}",
                aside.display()
            ));
            moved = true;
        }
        if moved {
            self.loaded = read::load(files)?;
        }
        Ok(())
    }

    /// Keeps what stands after the last whole line in a file of its own and cuts it off the journal. Stopped in between,
    /// the same is done again.
    pub(super) fn put_torn_aside(&mut self, seq: u64) -> Result<(), LedgerError> {
        if self.loaded.tail.torn.is_empty() {
            return Ok(());
        }
        let path = &self.files.journal;
        let torn = std::mem::take(&mut self.loaded.tail.torn);
        // The torn line had the number before.
        let kept = self.free_name(&format!("torn-{}", seq.saturating_sub(1)), &torn)?;
        let fail = |source| LedgerError::File(FileError::new("cannot cut", path, source));
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)
            .map_err(fail)?;
        fault::around("journal-cut", || file.set_len(self.loaded.tail.whole)).map_err(fail)?;
        fault::around("journal-cut-flush", || file.sync_data()).map_err(fail)?;
        self.work.flushes += 1;
        self.aside.push(format!(
            "{} bytes of a torn line were put aside as {}",
            torn.len(),
            kept.display()
        ));
        Ok(())
    }

    /// Writes `bytes` under `name` or, where another content has that name, under `name-2` and so on.
    pub(super) fn free_name(&mut self, name: &str, bytes: &[u8]) -> Result<PathBuf, LedgerError> {
        for number in 1_u32.. {
            let name = if number == 1 {
                name.to_owned()
            } else {
                format!("{name}-{number}")
            };
            let path = self.files.folder.join(name);
            if std::fs::symlink_metadata(&path).is_err() {
                files::write_atomic(&path, bytes, 0o600)?;
                self.work.written += bytes.len() as u64;
                self.work.flushes += 2;
                return Ok(path);
            }
            if files::read_bounded(&path, bytes.len() as u64)
                .ok()
                .flatten()
                .as_deref()
                == Some(bytes)
            {
                return Ok(path);
            }
        }
        Err(LedgerError::Damaged(Issue::new(
            &self.files.folder,
            IssueKind::Corrupt,
            "no free name is left for what has to be put aside",
        )))
    }
}
