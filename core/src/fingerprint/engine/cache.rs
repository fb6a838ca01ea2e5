//! What a look remembers for the next: the names in a directory that the index does not know, and the ids of files whose
//! stat data the index does not hold. Only ever a shortcut.
//!
//! Nothing in it is believed for its own sake. A directory's names count only while its device, inode and timestamps are the
//! same and the index knows the same names in it; a file's id only while its device, inode, size, mode and timestamps are.
//! What is kept is the id of the bytes as they are, so no setting and no rule can make it wrong. Only what was at rest
//! before the look is kept ([`Meta::settled`]). The file begins with a checksum and with what it belongs to; anything else
//! than exactly that is no cache. It is written beside and renamed, without waiting for the disk.
//!
//! ```text
//! magic 16 · SHA-256 of the rest 32 · place 32 · length of ids 1 · HEAD flag 1, commit 32, its tree 32
//!       · checksum 32 of an index whose tree cache is right, or zeros · slots
//! slot: bytes behind this 4 · path 2+n · listing flag 1 [meta 52, known names 16, count 4, (kind 1, name 2+n)*]
//!       · files 4 (name 2+n, meta 52, bits 1, id)*
//! ```
use std::cmp::Ordering;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::content::{Content, Id};
use super::memory::Lasting;
use super::stat::{Kind, Meta, Stamp};

const MAGIC: &[u8; 16] = b"takeup look 002\n";

/// The largest cache that is read or written.
const LARGEST: u64 = 128 << 20;

/// A name that the index does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extra {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
}

/// The names in one directory that the index does not know.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    pub(super) meta: Meta,
    /// A digest of the names the index does know.
    pub(super) known: [u8; 16],
    pub(super) extras: Vec<Extra>,
}

/// One file's content.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) name: Vec<u8>,
    pub(super) meta: Meta,
    pub(super) content: Content,
}

/// One directory in the cache, as ranges of its bytes.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    all: Range<usize>,
    path: Range<usize>,
    listing: Option<Range<usize>>,
    files: Range<usize>,
    /// How many files.
    pub(super) count: u32,
}

/// A cache that was read.
#[derive(Debug)]
pub(super) struct Cache {
    bytes: Vec<u8>,
    hash_len: usize,
    pub(super) slots: Vec<Slot>,
    /// A commit and its tree.
    pub(super) head: Option<(Id, Id)>,
    /// The checksum of an index whose tree cache was found to be right.
    pub(super) trees: Option<[u8; 32]>,
}

/// Compares two directories in the order of an index: as if each path ended with a slash.
pub(super) fn order(a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().cmp(&b.len());
    }
    let common = a.len().min(b.len());
    a.get(..common).cmp(&b.get(..common)).then_with(|| {
        let next = |path: &[u8]| path.get(common).copied();
        match (next(a), next(b)) {
            (Some(byte), None) => byte.cmp(&b'/').then(Ordering::Greater),
            (None, Some(byte)) => b'/'.cmp(&byte).then(Ordering::Less),
            (None, None) | (Some(_), Some(_)) => Ordering::Equal,
        }
    })
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let len = u16::from_le_bytes(self.array()?);
        self.take(usize::from(len))
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn meta(&mut self) -> Option<Meta> {
        Some(Meta {
            dev: self.long()?,
            ino: self.long()?,
            size: self.long()?,
            mode: self.number()?,
            mtime: Stamp {
                seconds: self.long()?.cast_signed(),
                nanos: self.number()?,
            },
            ctime: Stamp {
                seconds: self.long()?.cast_signed(),
                nanos: self.number()?,
            },
            ..Meta::default()
        })
    }
}

const META: usize = 52;

fn put_meta(out: &mut Vec<u8>, meta: &Meta) {
    out.extend(meta.dev.to_le_bytes());
    out.extend(meta.ino.to_le_bytes());
    out.extend(meta.size.to_le_bytes());
    out.extend(meta.mode.to_le_bytes());
    for stamp in [meta.mtime, meta.ctime] {
        out.extend(stamp.seconds.to_le_bytes());
        out.extend(stamp.nanos.to_le_bytes());
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(text.get(..usize::from(u16::MAX)).unwrap_or(text));
}

/// Compares what the cache keeps of metadata: owners are left out, a change of theirs moves `ctime`.
pub(super) fn same(a: &Meta, b: &Meta) -> bool {
    a.dev == b.dev
        && a.ino == b.ino
        && a.size == b.size
        && a.mode == b.mode
        && a.mtime == b.mtime
        && a.ctime == b.ctime
}

impl Cache {
    /// Reads the cache of `place`, a digest of what it must belong to. `None` where there is none that is whole and its own.
    pub(super) fn load(path: &Path, place: &[u8; 32], hash_len: usize) -> Option<Self> {
        let bytes = crate::files::read_bounded(path, LARGEST).ok()??;
        let mut cursor = Cursor {
            bytes: &bytes,
            at: 0,
        };
        if cursor.take(16)? != MAGIC {
            return None;
        }
        let sum: [u8; 32] = cursor.array()?;
        if Sha256::digest(bytes.get(48..)?).as_slice() != sum {
            return None;
        }
        if cursor.array::<32>()? != *place || usize::from(cursor.byte()?) != hash_len {
            return None;
        }
        let has_head = cursor.byte()? == 1;
        let head = (Id(cursor.array()?), Id(cursor.array()?));
        let trees: [u8; 32] = cursor.array()?;
        let mut slots = Vec::new();
        while cursor.at < bytes.len() {
            let slot = slot(&mut cursor, hash_len)?;
            slots.push(slot);
        }
        Some(Self {
            hash_len,
            slots,
            head: has_head.then_some(head),
            trees: (trees != [0; 32]).then_some(trees),
            bytes,
        })
    }

    /// Returns the path of a slot.
    pub(super) fn path(&self, slot: &Slot) -> &[u8] {
        self.bytes.get(slot.path.clone()).unwrap_or_default()
    }

    /// Returns a slot's bytes, to be written again.
    fn raw(&self, slot: &Slot) -> &[u8] {
        self.bytes.get(slot.all.clone()).unwrap_or_default()
    }

    /// Finds the slot of a directory.
    pub(super) fn find(&self, dir: &[u8]) -> Option<usize> {
        self.slots
            .binary_search_by(|slot| order(self.path(slot), dir))
            .ok()
    }

    /// Returns the names of a directory, if its metadata and the names known to the index are as they were.
    pub(super) fn listing(&self, slot: &Slot, meta: &Meta, known: &[u8; 16]) -> Option<Vec<Extra>> {
        let bytes = self.bytes.get(slot.listing.clone()?)?;
        let mut cursor = Cursor { bytes, at: 0 };
        if !same(&cursor.meta()?, meta) || cursor.array::<16>()? != *known {
            return None;
        }
        let count = cursor.number()?;
        let mut extras = Vec::new();
        for _ in 0..count {
            let kind = match cursor.byte()? {
                b'd' => Kind::Dir,
                b'l' => Kind::Link,
                _ => Kind::File,
            };
            extras.push(Extra {
                name: cursor.text()?.to_vec(),
                kind,
            });
        }
        Some(extras)
    }

    /// Returns the listing of a slot as it is.
    pub(super) fn whole_listing(&self, slot: &Slot) -> Option<Listing> {
        let bytes = self.bytes.get(slot.listing.clone()?)?;
        let mut cursor = Cursor { bytes, at: 0 };
        let meta = cursor.meta()?;
        let known = cursor.array()?;
        let extras = self.listing(slot, &meta, &known)?;
        Some(Listing {
            meta,
            known,
            extras,
        })
    }

    /// Reads the files of a slot.
    pub(super) fn files(&self, slot: &Slot) -> Vec<File> {
        let bytes = self.bytes.get(slot.files.clone()).unwrap_or_default();
        let mut cursor = Cursor { bytes, at: 0 };
        let mut files = Vec::with_capacity(slot.count.min(1 << 16) as usize);
        while let Some(file) = self.file(&mut cursor) {
            files.push(file);
        }
        files
    }

    fn file(&self, cursor: &mut Cursor<'_>) -> Option<File> {
        let name = cursor.text()?.to_vec();
        let meta = cursor.meta()?;
        let bits = cursor.byte()?;
        let raw = Id::of(cursor.take(self.hash_len)?);
        Some(File {
            name,
            meta,
            content: Content {
                raw,
                cr: bits & 1 != 0,
                ident: bits & 2 != 0,
            },
        })
    }
}

/// Reads one slot, only far enough to know where its parts are.
fn slot(cursor: &mut Cursor<'_>, hash_len: usize) -> Option<Slot> {
    let start = cursor.at;
    let len = cursor.number()? as usize;
    let end = cursor.at.checked_add(len)?;
    let path_len = cursor.text()?.len();
    let path = cursor.at - path_len..cursor.at;
    let listing = if cursor.byte()? == 1 {
        let from = cursor.at;
        cursor.take(META + 16)?;
        for _ in 0..cursor.number()? {
            cursor.byte()?;
            cursor.text()?;
        }
        Some(from..cursor.at)
    } else {
        None
    };
    let count = cursor.number()?;
    let from = cursor.at;
    for _ in 0..count {
        cursor.text()?;
        cursor.take(META + 1 + hash_len)?;
    }
    (cursor.at == end).then_some(Slot {
        all: start..end,
        path,
        listing,
        files: from..end,
        count,
    })
}

/// A cache that is being written.
#[derive(Debug)]
pub(super) struct Writer {
    out: Vec<u8>,
    hash_len: usize,
    /// Whether it differs from the one that was read.
    pub(super) changed: bool,
}

impl Writer {
    pub(super) fn new(place: &[u8; 32], hash_len: usize, lasting: &Lasting) -> Self {
        let mut out = MAGIC.to_vec();
        out.extend([0; 32]);
        out.extend(place);
        out.push(u8::try_from(hash_len).unwrap_or(0));
        out.push(u8::from(lasting.head.is_some()));
        let (commit, tree) = lasting.head.unwrap_or_default();
        out.extend(commit.0);
        out.extend(tree.0);
        out.extend(lasting.trees.unwrap_or_default());
        Self {
            out,
            hash_len,
            changed: false,
        }
    }

    /// Takes a slot over as it was.
    pub(super) fn keep(&mut self, cache: &Cache, slot: &Slot) {
        self.out.extend_from_slice(cache.raw(slot));
    }

    /// Writes a slot anew.
    pub(super) fn add(&mut self, path: &[u8], listing: Option<&Listing>, files: &[File]) {
        self.changed = true;
        if listing.is_none() && files.is_empty() || path.len() > usize::from(u16::MAX) {
            return;
        }
        let start = self.out.len();
        self.out.extend([0; 4]);
        put_text(&mut self.out, path);
        self.out.push(u8::from(listing.is_some()));
        if let Some(listing) = listing {
            put_meta(&mut self.out, &listing.meta);
            self.out.extend(listing.known);
            self.count(listing.extras.len());
            for extra in &listing.extras {
                self.out.push(match extra.kind {
                    Kind::Dir => b'd',
                    Kind::Link => b'l',
                    Kind::File | Kind::Other => b'f',
                });
                put_text(&mut self.out, &extra.name);
            }
        }
        self.count(files.len());
        for file in files {
            put_text(&mut self.out, &file.name);
            put_meta(&mut self.out, &file.meta);
            self.out
                .push(u8::from(file.content.cr) | u8::from(file.content.ident) << 1);
            self.out
                .extend_from_slice(file.content.raw.bytes(self.hash_len));
        }
        let len = u32::try_from(self.out.len() - start - 4).unwrap_or(0);
        if let Some(place) = self.out.get_mut(start..start + 4) {
            place.copy_from_slice(&len.to_le_bytes());
        }
    }

    fn count(&mut self, count: usize) {
        self.out
            .extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
    }

    /// Writes the file. That it could not be written is no failure of the look.
    pub(super) fn store(mut self, path: &Path) {
        if self.out.len() as u64 > LARGEST {
            return;
        }
        let sum = Sha256::digest(self.out.get(48..).unwrap_or_default());
        if let Some(place) = self.out.get_mut(16..48) {
            place.copy_from_slice(&sum);
        }
        drop(crate::files::replace(path, &self.out, 0o600));
    }
}

/// Returns what git program `meta` said where its system-wide settings are, if that was put down at `path`.
pub(super) fn system_file(path: &Path, meta: &Meta) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = crate::files::read_bounded(path, 1 << 16).ok()??;
    let mut cursor = Cursor {
        bytes: &bytes,
        at: 0,
    };
    let sum: [u8; 32] = cursor.array()?;
    if Sha256::digest(bytes.get(32..)?).as_slice() != sum || !same(&cursor.meta()?, meta) {
        return None;
    }
    Some(std::ffi::OsStr::from_bytes(bytes.get(cursor.at..)?).into())
}

/// Puts down where the git program `meta` has its system-wide settings.
pub(super) fn store_system_file(path: &Path, meta: &Meta, file: &[u8]) {
    let mut rest = Vec::new();
    put_meta(&mut rest, meta);
    rest.extend_from_slice(file);
    let mut out = Sha256::digest(&rest).to_vec();
    out.extend(rest);
    // Without waiting for the disk: a cache that is torn has a wrong checksum.
    drop(crate::files::replace(path, &out, 0o600));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_in_the_order_of_an_index() {
        // As `a-b/x`, `a.b/x`, `a/x` stand in an index: each folder as if it ended in a slash.
        let sorted = ["", "a-b", "a.b", "a", "a/b", "a/b/c", "a0", "b"];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(order(a.as_bytes(), b.as_bytes()), i.cmp(&j), "{a} {b}");
            }
        }
    }

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let place = [7; 32];
        let meta = Meta {
            ino: 9,
            mtime: Stamp {
                seconds: -5,
                nanos: 3,
            },
            ..Meta::default()
        };
        let extras = vec![Extra {
            name: b"x".to_vec(),
            kind: Kind::Dir,
        }];
        let listing = Listing {
            meta,
            known: [1; 16],
            extras: extras.clone(),
        };
        let content = Content {
            raw: Id::of(&[5; 20]),
            cr: true,
            ident: false,
        };
        let file = File {
            name: b"f".to_vec(),
            meta,
            content,
        };
        let mut writer = Writer::new(
            &place,
            20,
            &Lasting {
                head: Some((Id::of(&[1; 20]), Id::of(&[2; 20]))),
                trees: Some([3; 32]),
            },
        );
        writer.add(b"", Some(&listing), std::slice::from_ref(&file));
        writer.add(b"d", None, std::slice::from_ref(&file));
        writer.store(&path);
        let cache = Cache::load(&path, &place, 20).unwrap();
        assert_eq!(cache.slots.len(), 2);
        let slot = &cache.slots[cache.find(b"").unwrap()];
        assert_eq!(cache.listing(slot, &meta, &[1; 16]), Some(extras));
        assert_eq!(cache.listing(slot, &meta, &[2; 16]), None);
        assert_eq!(cache.files(slot)[0].content, content);
        assert!(cache.find(b"e").is_none());
        assert!(Cache::load(&path, &[8; 32], 20).is_none());
        assert!(Cache::load(&path, &place, 32).is_none());
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            crate::files::write_atomic(&path, &damaged, 0o600).unwrap();
            assert!(Cache::load(&path, &place, 20).is_none(), "byte {at}");
            crate::files::write_atomic(&path, &whole[..at], 0o600).unwrap();
            assert!(Cache::load(&path, &place, 20).is_none(), "cut at {at}");
        }
    }
}
