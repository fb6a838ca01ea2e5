//! Reading git's index (`gitformat-index`), versions 2 to 4.
//!
//! The file is read once and kept; entries point into it. Directories are made while parsing, in the index's own order,
//! which is the order of trees: a directory's children are found by walking its range of entries.
use std::cmp::Ordering;
use std::ffi::CStr;
use std::ops::Range;

use super::Stop;
use crate::fingerprint::scan::GITLINK;

/// Bits of [`Entry::flags`].
pub(super) mod flag {
    /// The lower two bits hold the stage.
    pub(in super::super) const STAGE: u8 = 3;
    /// git was told not to look at it.
    pub(in super::super) const ASSUMED: u8 = 4;
    /// git was told that it is absent.
    pub(in super::super) const SKIPPED: u8 = 8;
    /// It is announced, and not in the index's tree.
    pub(in super::super) const INTENT: u8 = 16;
}

/// One entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Where its ten numbers begin in the file; the id follows them.
    block: u32,
    /// Where its path begins in the names.
    path: u32,
    /// Where its base name begins in the names.
    name: u32,
    len: u16,
    pub(super) flags: u8,
}

/// One directory that holds entries, at some depth.
#[derive(Clone, Debug)]
pub(super) struct Dir {
    path: u32,
    len: u32,
    /// The entries in it and below.
    pub(super) entries: Range<usize>,
    /// How many directories lie below it; they follow it.
    pub(super) below: usize,
}

/// A child of a directory, in tree order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Child {
    Entry(usize),
    Dir(usize),
}

/// A parsed index.
#[derive(Debug)]
pub(super) struct Index {
    bytes: Vec<u8>,
    /// The paths of version 4, each ended by a zero byte; earlier versions hold them so themselves.
    arena: Option<Vec<u8>>,
    hash_len: usize,
    pub(super) entries: Vec<Entry>,
    /// The first is the root.
    pub(super) dirs: Vec<Dir>,
    /// Whether there are entries of a stage other than 0.
    pub(super) unmerged: bool,
    /// Whether entries stand for whole directories.
    pub(super) sparse: bool,
    /// Which entries name a commit of another repository.
    pub(super) gitlinks: Vec<usize>,
    /// Where the tree cache lies in the file.
    pub(super) trees: Option<Range<usize>>,
}

fn bad(what: &str) -> Stop {
    Stop::Unsupported(format!("the index cannot be read: {what}"))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

impl Index {
    /// Makes the index of a repository that has no index file.
    pub(super) fn empty(hash_len: usize) -> Self {
        Self {
            bytes: Vec::new(),
            arena: None,
            hash_len,
            entries: Vec::new(),
            dirs: vec![Dir {
                path: 0,
                len: 0,
                entries: 0..0,
                below: 0,
            }],
            unmerged: false,
            sparse: false,
            gitlinks: Vec::new(),
            trees: None,
        }
    }

    /// Parses an index with ids of `hash_len` bytes. What this reader does not know is a reason to let git read it.
    pub(super) fn parse(bytes: Vec<u8>, hash_len: usize) -> Result<Self, Stop> {
        let mut index = Self::empty(hash_len);
        if bytes.get(..4) != Some(b"DIRC") {
            return Err(bad("it does not begin with DIRC"));
        }
        if u32::try_from(bytes.len()).is_err() {
            return Err(bad("it is larger than 4 GiB"));
        }
        let version = be32(&bytes, 4).unwrap_or(0);
        if !(2..=4).contains(&version) {
            return Err(bad("its version is none of 2, 3 and 4"));
        }
        let count = be32(&bytes, 8).unwrap_or(0) as usize;
        let end = bytes
            .len()
            .checked_sub(hash_len)
            .ok_or_else(|| bad("it is too short"))?;
        if count > end / (42 + hash_len) {
            return Err(bad("it is too short"));
        }
        let parsed = index
            .parse_entries(&bytes, version, count, end)
            .ok_or_else(|| bad("an entry ends beyond the file"))?;
        let after = parsed.map_err(bad)?;
        index.parse_extensions(&bytes, after, end)?;
        index.bytes = bytes;
        Ok(index)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the file is shorter than 4 GiB, and lengths of names are checked"
    )]
    fn parse_entries(
        &mut self,
        bytes: &[u8],
        version: u32,
        count: usize,
        end: usize,
    ) -> Option<Result<usize, &'static str>> {
        self.entries.reserve(count);
        let mut arena = (version == 4).then(|| Vec::with_capacity(bytes.len()));
        let mut open: Vec<usize> = vec![0];
        let mut previous: (usize, usize, u8) = (0, 0, 0);
        let mut at = 12;
        for number in 0..count {
            let start = at;
            let raw = be16(bytes, start + 40 + self.hash_len)?;
            let mut name = start + 42 + self.hash_len;
            let mut flags = ((raw >> 12) & 3) as u8;
            if raw & 0x8000 != 0 {
                flags |= flag::ASSUMED;
            }
            if raw & 0x4000 != 0 {
                if version == 2 {
                    return Some(Err("an entry of version 2 is extended"));
                }
                let more = be16(bytes, name)?;
                name += 2;
                if more & 0x4000 != 0 {
                    flags |= flag::SKIPPED;
                }
                if more & 0x2000 != 0 {
                    flags |= flag::INTENT;
                }
                if more & 0x9fff != 0 {
                    return Some(Err("an entry has a flag of a later version"));
                }
            }
            // The path, as a range of the names.
            let path = if let Some(arena) = &mut arena {
                let (strip, after) = varint(bytes, name)?;
                let suffix = after + memchr::memchr(0, bytes.get(after..end)?)?;
                let keep = previous.1.checked_sub(strip)?;
                let path = arena.len();
                arena.extend_from_within(previous.0..previous.0 + keep);
                arena.extend_from_slice(bytes.get(after..suffix)?);
                let len = arena.len() - path;
                arena.push(0);
                at = suffix + 1;
                (path, len)
            } else {
                let mut len = usize::from(raw & 0xfff);
                if len == 0xfff || bytes.get(name + len) != Some(&0) {
                    len = memchr::memchr(0, bytes.get(name..end)?)?;
                }
                at = start + ((name - start + len + 8) & !7);
                (name, len)
            };
            let names = arena.as_deref().unwrap_or(bytes);
            let text = names.get(path.0..path.0 + path.1)?;
            if u32::try_from(path.0).is_err() || path.1 == 0 || path.1 > 0xffff {
                return Some(Err("a path is empty or too long"));
            }
            let stage = flags & flag::STAGE;
            if number > 0 {
                let before = names.get(previous.0..previous.0 + previous.1)?;
                match before.cmp(text) {
                    // git itself writes such a thing at times, and reads the two as one.
                    Ordering::Less if before.ends_with(b"/") && text.starts_with(before) => {
                        return Some(Err("it holds a folder as a whole, and what is in it"));
                    }
                    Ordering::Less => {}
                    Ordering::Equal if previous.2 < stage && previous.2 != 0 => {}
                    Ordering::Equal | Ordering::Greater => {
                        return Some(Err("its entries are not in order"));
                    }
                }
            }
            self.unmerged |= stage != 0;
            // Close the directories that do not hold it.
            let mut inside = loop {
                let Some(top) = open.last().copied() else {
                    return Some(Err("its entries are not in order"));
                };
                let dir = self.dirs.get(top)?;
                let len = dir.len as usize;
                let holds = len == 0
                    || (path.1 > len
                        && text.get(len) == Some(&b'/')
                        && text.get(..len)
                            == names.get(dir.path as usize..dir.path as usize + len));
                if holds {
                    break if len == 0 { 0 } else { len + 1 };
                }
                open.pop();
                self.close(top, number)?;
            };
            let mode = be32(bytes, start + 24)?;
            if mode == GITLINK {
                self.gitlinks.push(number);
            }
            let text = if mode == 0o040_000 {
                self.sparse = true;
                text.strip_suffix(b"/")?
            } else {
                text
            };
            while let Some(slash) = memchr::memchr(b'/', text.get(inside..)?) {
                if !sane(text.get(inside..inside + slash)?) {
                    return Some(Err("a path leads out of the work tree"));
                }
                open.push(self.dirs.len());
                self.dirs.push(Dir {
                    path: path.0 as u32,
                    len: (inside + slash) as u32,
                    entries: number..number,
                    below: 0,
                });
                inside += slash + 1;
            }
            let base = text.get(inside..)?;
            if !sane(base) {
                return Some(Err("a path leads out of the work tree"));
            }
            self.entries.push(Entry {
                block: start as u32,
                path: path.0 as u32,
                name: (path.0 + inside) as u32,
                len: base.len() as u16,
                flags,
            });
            previous = (path.0, path.1, stage);
        }
        while let Some(top) = open.pop() {
            self.close(top, count)?;
        }
        self.arena = arena;
        Some(Ok(at))
    }

    fn close(&mut self, dir: usize, end: usize) -> Option<()> {
        let below = self.dirs.len() - 1 - dir;
        let dir = self.dirs.get_mut(dir)?;
        dir.entries.end = end;
        dir.below = below;
        Some(())
    }

    fn parse_extensions(&mut self, bytes: &[u8], from: usize, end: usize) -> Result<(), Stop> {
        let mut at = from;
        while at < end {
            let signature = bytes
                .get(at..at + 4)
                .ok_or_else(|| bad("it ends in the middle"))?;
            let len = be32(bytes, at + 4).ok_or_else(|| bad("it ends in the middle"))? as usize;
            let body = at + 8..(at + 8).saturating_add(len);
            if body.end > end {
                return Err(bad("an extension ends beyond the file"));
            }
            match signature {
                b"TREE" => self.trees = Some(body.clone()),
                b"sdir" => self.sparse = true,
                b"link" => return Err(Stop::Unsupported("the index is split".to_owned())),
                // Extensions that may be left aside begin with a capital letter.
                [b'A'..=b'Z', ..] => {}
                _ => return Err(bad("it has an extension that must be understood")),
            }
            at = body.end;
        }
        Ok(())
    }

    fn names(&self) -> &[u8] {
        self.arena.as_deref().unwrap_or(&self.bytes)
    }

    /// Returns the base name of an entry.
    pub(super) fn name(&self, entry: &Entry) -> &[u8] {
        let start = entry.name as usize;
        self.names()
            .get(start..start + usize::from(entry.len))
            .unwrap_or_default()
    }

    /// Returns the ten numbers of an entry.
    pub(super) fn block(&self, entry: &Entry) -> &[u8; 40] {
        let start = entry.block as usize;
        self.bytes
            .get(start..start + 40)
            .and_then(|bytes| bytes.try_into().ok())
            .unwrap_or(&[0; 40])
    }

    /// Returns the object id of an entry.
    pub(super) fn id(&self, entry: &Entry) -> &[u8] {
        let start = entry.block as usize + 40;
        self.bytes
            .get(start..start + self.hash_len)
            .unwrap_or_default()
    }

    /// Returns the mode of an entry.
    pub(super) fn mode(&self, entry: &Entry) -> u32 {
        be32(&self.bytes, entry.block as usize + 24).unwrap_or(0)
    }

    /// Returns the mode that git holds a file against at the path whose first entry is `at`: for an unmerged one that of our
    /// side, where it follows the common base.
    pub(super) fn old_mode(&self, at: usize) -> u32 {
        let (Some(first), next) = (self.entries.get(at), self.entries.get(at + 1)) else {
            return 0;
        };
        match next {
            Some(next)
                if first.flags & flag::STAGE == 1
                    && next.flags & flag::STAGE == 2
                    && self.whole(first) == self.whole(next) =>
            {
                self.mode(next)
            }
            Some(_) | None => self.mode(first),
        }
    }

    /// Returns the bytes of the file.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the checksum that git wrote behind the index; `None` where it was told to write none (`index.skipHash`).
    pub(super) fn checksum(&self) -> Option<[u8; 32]> {
        let from = self.bytes.len().checked_sub(self.hash_len)?;
        let mut sum = [0; 32];
        for (to, byte) in sum.iter_mut().zip(self.bytes.get(from..)?) {
            *to = *byte;
        }
        (sum != [0; 32]).then_some(sum)
    }

    /// Returns the path of a directory, without a slash at its end; empty for the root.
    pub(super) fn dir_path(&self, dir: &Dir) -> &[u8] {
        let start = dir.path as usize;
        self.names()
            .get(start..start + dir.len as usize)
            .unwrap_or_default()
    }

    /// Returns the base name of a directory.
    pub(super) fn dir_name(&self, dir: &Dir) -> &[u8] {
        base_name(self.dir_path(dir))
    }

    /// Returns the base name of an entry as the kernel takes it, without copying.
    pub(super) fn c_name(&self, entry: &Entry) -> Option<&CStr> {
        let start = entry.name as usize;
        let name = self.names().get(start..=start + usize::from(entry.len))?;
        CStr::from_bytes_with_nul(name).ok()
    }

    /// Finds a directory by its path.
    pub(super) fn find_dir(&self, path: &[u8]) -> Option<usize> {
        self.dirs
            .binary_search_by(|dir| super::cache::order(self.dir_path(dir), path))
            .ok()
    }

    /// Finds the first entry of a name in a directory.
    pub(super) fn entry_in(&self, dir: usize, name: &[u8]) -> Option<usize> {
        let found = self.dirs.get(dir)?;
        let prefix = self.dir_path(found);
        let whole = join(prefix, name);
        let at = found.entries.start
            + self
                .entries
                .get(found.entries.clone())?
                .partition_point(|entry| self.key(entry) < whole.as_slice());
        (found.entries.contains(&at) && self.key(self.entries.get(at)?) == whole).then_some(at)
    }

    /// Returns the whole path of an entry.
    fn whole(&self, entry: &Entry) -> &[u8] {
        let end = entry.name as usize + usize::from(entry.len);
        self.names()
            .get(entry.path as usize..end)
            .unwrap_or_default()
    }

    /// Returns what entries are ordered by: the whole path, with the slash behind it where it stands for a whole directory.
    fn key(&self, entry: &Entry) -> &[u8] {
        let end = entry.name as usize + usize::from(entry.len);
        let slash = usize::from(self.sparse && self.mode(entry) == 0o040_000);
        self.names()
            .get(entry.path as usize..end + slash)
            .unwrap_or_default()
    }

    /// Finds the first entry of a path.
    pub(super) fn find(&self, path: &[u8]) -> Option<usize> {
        let at = self.entries.partition_point(|entry| self.key(entry) < path);
        (self.key(self.entries.get(at)?) == path).then_some(at)
    }

    /// Returns a copy of the whole path of an entry.
    pub(super) fn path(&self, entry: &Entry) -> Vec<u8> {
        self.whole(entry).to_vec()
    }

    /// Walks the children of a directory in tree order.
    pub(super) fn children(&self, dir: usize) -> Children<'_> {
        let (entries, below) = self
            .dirs
            .get(dir)
            .map_or((0..0, 0), |dir| (dir.entries.clone(), dir.below));
        Children {
            index: self,
            entry: entries.start,
            end: entries.end,
            dir: dir + 1,
            dirs_end: dir + 1 + below,
        }
    }
}

/// The last part of a path.
pub(super) fn base_name(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).map_or(path, |slash| path.get(slash + 1..).unwrap_or_default())
}

/// Puts a directory's path and a name together.
pub(super) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(dir.len() + 1 + name.len());
    if !dir.is_empty() {
        path.extend_from_slice(dir);
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Iterates over the children of a directory.
#[derive(Debug)]
pub(super) struct Children<'a> {
    index: &'a Index,
    entry: usize,
    end: usize,
    dir: usize,
    dirs_end: usize,
}

impl Iterator for Children<'_> {
    type Item = Child;

    fn next(&mut self) -> Option<Child> {
        if self.entry >= self.end {
            return None;
        }
        if self.dir < self.dirs_end
            && let Some(dir) = self.index.dirs.get(self.dir)
            && dir.entries.start == self.entry
        {
            let child = self.dir;
            self.entry = dir.entries.end;
            self.dir += dir.below + 1;
            return Some(Child::Dir(child));
        }
        self.entry += 1;
        Some(Child::Entry(self.entry - 1))
    }
}

/// Tells whether a part of a path is a name, and not one that leads elsewhere.
fn sane(part: &[u8]) -> bool {
    let leads_away =
        part.is_empty() || matches!(part, b"." | b"..") || part.eq_ignore_ascii_case(b".git");
    !leads_away && memchr::memchr(0, part).is_none()
}

/// Reads a number of version 4 (`gitformat-index`, the encoding of offsets in packs).
fn varint(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    at += 1;
    let mut value = usize::from(byte & 127);
    while byte & 128 != 0 {
        byte = *bytes.get(at)?;
        at += 1;
        value = value.checked_add(1)?.checked_shl(7)?;
        if value > 1 << 30 {
            return None;
        }
        value |= usize::from(byte & 127);
    }
    Some((value, at))
}
