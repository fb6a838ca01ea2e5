//! Reading and hashing content.
use std::ffi::CStr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, Mode, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::Stop;
use super::files::{FILE, unreadable};
use super::stat::{Kind, Meta};
use crate::fingerprint::options::{Options, Progress};
use crate::fingerprint::record::Counters;
use crate::ids::Oid;

/// An object id, with zeros behind the 20 bytes of a SHA-1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, PartialOrd, Ord, Hash)]
pub(super) struct Id(pub(super) [u8; 32]);

impl Id {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut id = [0; 32];
        for (to, from) in id.iter_mut().zip(bytes) {
            *to = *from;
        }
        Self(id)
    }

    /// Returns the bytes of an id of `len` bytes.
    pub(super) fn bytes(&self, len: usize) -> &[u8] {
        self.0.get(..len).unwrap_or(&self.0)
    }

    /// Writes an id of `len` bytes in hexadecimal.
    pub(super) fn hex(&self, len: usize) -> String {
        crate::text::hex(self.bytes(len))
    }

    /// Makes an object id of the project's own type.
    pub(super) fn oid(&self, len: usize) -> Result<Oid, Stop> {
        Oid::new(self.hex(len)).map_err(|error| Stop::Incomplete(error.to_string()))
    }

    /// Reads hexadecimal.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut id = [0; 32];
        for (to, pair) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
            *to = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(id))
    }
}

/// What was read of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// The id of the bytes as they are.
    pub(super) raw: Id,
    /// There is a carriage return among them.
    pub(super) cr: bool,
    /// There is `$Id` among them.
    pub(super) ident: bool,
}

/// Reads and hashes, with buffers that are used again.
pub(super) struct Reader<'a> {
    options: &'a Options<'a>,
    kind: gix_hash::Kind,
    buffer: Vec<u8>,
}

/// Files up to this size are read at once.
const WHOLE: usize = 1 << 20;

impl<'a> Reader<'a> {
    pub(super) const fn new(options: &'a Options<'a>, kind: gix_hash::Kind) -> Self {
        Self {
            options,
            kind,
            buffer: Vec::new(),
        }
    }

    /// Hashes an object.
    pub(super) fn object(kind: gix_hash::Kind, what: &str, bytes: &[u8]) -> Result<Id, Stop> {
        let mut hasher = gix_hash::hasher(kind);
        hasher.update(format!("{what} {}\0", bytes.len()).as_bytes());
        hasher.update(bytes);
        finish(hasher)
    }

    /// Reads the file or link `name` in `folder`, until its metadata is the same before and after. `meta` is what a look at
    /// it just said. [`Stop::Moving`] where it is gone or became something else.
    pub(super) fn read(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &CStr,
        path: &dyn Fn() -> Vec<u8>,
        meta: Meta,
        counters: &mut Counters,
    ) -> Result<(Meta, Content), Stop> {
        if meta.kind() == Kind::Link {
            let target = readlinkat(folder, name, std::mem::take(&mut self.buffer));
            let target = match target {
                Ok(target) => target.into_bytes(),
                Err(Errno::NOENT | Errno::INVAL | Errno::NOTDIR) => return Err(Stop::Moving),
                Err(error) => return Err(unreadable(&path(), error)),
            };
            counters.files_read += 1;
            counters.bytes_read += target.len() as u64;
            let raw = Self::object(self.kind, "blob", &target)?;
            self.buffer = target;
            let after = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
            counters.stats += 1;
            if after.map(|stat| Meta::of(&stat)) != Ok(meta) {
                return Err(Stop::Moving);
            }
            let content = Content {
                raw,
                cr: false,
                ident: false,
            };
            return Ok((meta, content));
        }
        let file = match openat(folder, name, FILE, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => {
                return Err(Stop::Moving);
            }
            Err(error) => return Err(unreadable(&path(), error)),
        };
        let look = |counters: &mut Counters| {
            counters.stats += 1;
            fstat(&file)
                .map(|stat| Meta::of(&stat))
                .map_err(|error| unreadable(&path(), error))
        };
        let mut before = look(counters)?;
        for _ in 0..3 {
            if before.kind() != Kind::File {
                return Err(Stop::Moving);
            }
            if let Some(content) = self.bytes(file.as_fd(), path, before.size, counters)? {
                let after = look(counters)?;
                if after == before {
                    return Ok((before, content));
                }
                before = after;
            } else {
                before = look(counters)?;
            }
            rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))
                .map_err(|error| unreadable(&path(), error))?;
        }
        Err(Stop::Moving)
    }

    /// Reads `size` bytes and hashes them; `None` where there are more or fewer.
    fn bytes(
        &mut self,
        file: BorrowedFd<'_>,
        path: &dyn Fn() -> Vec<u8>,
        size: u64,
        counters: &mut Counters,
    ) -> Result<Option<Content>, Stop> {
        let mut hasher = gix_hash::hasher(self.kind);
        hasher.update(format!("blob {size}\0").as_bytes());
        // One byte more than expected shows that the file grew.
        let room = usize::try_from(size.saturating_add(1))
            .unwrap_or(WHOLE)
            .min(WHOLE);
        // The two last bytes of a part go before the next: `$Id` may lie across.
        let keep = 2;
        if self.buffer.len() < keep + room {
            self.buffer.resize(keep + room, 0);
        }
        counters.files_read += 1;
        let mut carried = 0;
        let mut done: u64 = 0;
        let (mut cr, mut ident) = (false, false);
        loop {
            self.options.check_interrupt()?;
            let mut filled = carried;
            let mut ended = false;
            while filled < carried + room {
                let Some(space) = self.buffer.get_mut(filled..carried + room) else {
                    break;
                };
                match rustix::io::read(file, space) {
                    Ok(0) => {
                        ended = true;
                        break;
                    }
                    Ok(count) => filled += count,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(unreadable(&path(), error)),
                }
                if done + (filled - carried) as u64 > size {
                    return Ok(None);
                }
                if done + (filled - carried) as u64 == size && size < room as u64 {
                    // The end is where it should be; the check of the metadata sees what comes after it.
                    ended = true;
                    break;
                }
            }
            let fresh = self.buffer.get(carried..filled).unwrap_or_default();
            hasher.update(fresh);
            done += fresh.len() as u64;
            counters.bytes_read += fresh.len() as u64;
            cr = cr || memchr::memchr(b'\r', fresh).is_some();
            let seen = self.buffer.get(..filled).unwrap_or_default();
            ident = ident || memchr::memmem::find(seen, b"$Id").is_some();
            if ended {
                break;
            }
            if size >= self.options.large
                && let Some(progress) = self.options.progress
            {
                progress(&Progress {
                    path: std::ffi::OsStr::from_bytes(&path()).into(),
                    done,
                    size,
                });
            }
            let from = filled.saturating_sub(keep);
            self.buffer.copy_within(from..filled, 0);
            carried = filled - from;
        }
        if done != size {
            return Ok(None);
        }
        Ok(Some(Content {
            raw: finish(hasher)?,
            cr,
            ident,
        }))
    }
}

fn finish(hasher: gix_hash::Hasher) -> Result<Id, Stop> {
    hasher
        .try_finalize()
        .map(|id| Id::of(id.as_bytes()))
        .map_err(|_| {
            Stop::Incomplete("content was made to collide under SHA-1; git refuses it".to_owned())
        })
}
