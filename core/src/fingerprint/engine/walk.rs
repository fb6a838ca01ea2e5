//! The pass over the directories that hold tracked files: every entry's metadata is compared, and names are found that the
//! index does not know.
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, fstat, openat, statat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::cache::{Extra, File, Listing};
use super::content::{Content, Id, Reader};
use super::files::{open_dir, unreadable};
use super::index::{Child, Dir, Entry, flag, join};
use super::stat::{Kind, Meta};
use super::{Addition, Ctx, Leaf, Override, Pending, Stop, Target};
use crate::fingerprint::nested;
use crate::fingerprint::record::Counters;
use crate::fingerprint::scan::GITLINK;

/// What became of one directory's part of the cache.
#[derive(Debug, Default)]
pub(super) struct DirOut {
    /// The listing that was in the cache still holds.
    pub(super) kept: bool,
    /// The listing to keep instead.
    pub(super) listing: Option<Listing>,
    /// The files to keep.
    pub(super) files: Vec<File>,
    /// How many of them were in the cache.
    pub(super) hits: usize,
}

/// What one worker found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) overrides: Vec<Override>,
    pub(super) additions: Vec<Addition>,
    pub(super) pending: Vec<Pending>,
    /// Directories with names that the index does not know.
    pub(super) extras: Vec<(Vec<u8>, Vec<Extra>)>,
    /// Something that was looked at had changed since the look began.
    pub(super) young: bool,
    /// Untracked repositories without a commit.
    pub(super) headless: Vec<Vec<u8>>,
    /// By path, for directories whose part of the cache is more than a listing that still holds.
    pub(super) outs: Vec<(Vec<u8>, DirOut)>,
    pub(super) counters: Counters,
}

impl Found {
    pub(super) fn append(&mut self, mut other: Self) {
        self.overrides.append(&mut other.overrides);
        self.additions.append(&mut other.additions);
        self.pending.append(&mut other.pending);
        self.extras.append(&mut other.extras);
        self.headless.append(&mut other.headless);
        self.young |= other.young;
        self.outs.append(&mut other.outs);
        self.counters += &other.counters;
    }
}

/// One thread's part of the work.
pub(super) struct Worker<'a, 'c> {
    pub(super) ctx: &'a Ctx<'c>,
    pub(super) reader: Reader<'a>,
    pub(super) found: Found,
    listing: Vec<u8>,
    names: Vec<u8>,
}

/// A name as the kernel takes it.
pub(super) fn c_string(name: &[u8]) -> Result<CString, Stop> {
    CString::new(name).map_err(|_| Stop::Unsupported("a name holds a zero byte".to_owned()))
}

impl<'a, 'c> Worker<'a, 'c> {
    pub(super) fn new(ctx: &'a Ctx<'c>) -> Self {
        Self {
            ctx,
            reader: Reader::new(ctx.options, ctx.kind),
            found: Found::default(),
            listing: Vec::new(),
            names: Vec::new(),
        }
    }

    /// Looks at one directory of the index.
    pub(super) fn visit(&mut self, number: usize) -> Result<(), Stop> {
        let ctx = self.ctx;
        ctx.options.check_interrupt()?;
        let Some(dir) = ctx.index.dirs.get(number) else {
            return Ok(());
        };
        let path = ctx.index.dir_path(dir);
        if ctx.is_excluded(path) {
            return Ok(());
        }
        let slot = ctx
            .cache
            .zip(ctx.joined.get(number).copied().flatten())
            .and_then(|(cache, slot)| Some((cache, cache.slots.get(slot)?)));
        let access = if slot.is_some() {
            OFlags::PATH
        } else {
            OFlags::RDONLY
        };
        let Some(mut folder) = open_dir(ctx.root.as_fd(), path, access)? else {
            self.all_gone(number);
            return Ok(());
        };
        self.found.counters.stats += 1;
        let meta = Meta::of(&fstat(&folder).map_err(|error| unreadable(path, error))?);
        let known = self.known(number);
        let mut out = DirOut::default();
        let mut names = None;
        if let Some((cache, slot)) = slot
            && ctx.lasting(&meta)
        {
            names = cache.listing(slot, &meta, &known);
        }
        let extras = if let Some(extras) = names {
            self.found.counters.cache_hits += 1;
            out.kept = true;
            extras
        } else {
            if slot.is_some() {
                folder = openat(
                    &folder,
                    c".",
                    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                    Mode::empty(),
                )
                .map_err(|error| unreadable(path, error))?;
            }
            self.note(&meta);
            let extras = self.extras(number, &folder, path)?;
            if ctx.lasting(&meta) && meta.settled(ctx.begin) {
                out.listing = Some(Listing {
                    meta,
                    known,
                    extras: extras.clone(),
                });
            }
            extras
        };
        let files = slot
            .filter(|(_, slot)| slot.count > 0)
            .map_or_else(Vec::new, |(cache, slot)| cache.files(slot));
        let mut group: Option<(&[u8], u8)> = None;
        for child in ctx.index.children(number) {
            let Child::Entry(at) = child else { continue };
            let Some(entry) = ctx.index.entries.get(at) else {
                continue;
            };
            let name = ctx.index.name(entry);
            if path.is_empty() && ctx.is_excluded(name) {
                continue;
            }
            // Of an unmerged path the first stage stands for all.
            if entry.flags & flag::STAGE != 0 {
                if group.is_some_and(|(before, _)| before == name) {
                    continue;
                }
                group = Some((name, 0));
            }
            let place = InDir {
                number,
                dir,
                folder: folder.as_fd(),
                files: &files,
            };
            self.entry(&place, at, entry, &mut out)?;
        }
        if !extras.is_empty() {
            self.found.extras.push((path.to_vec(), extras));
        }
        let plain = out.kept && out.files.is_empty() && files.is_empty();
        if !plain {
            self.found.outs.push((path.to_vec(), out));
        }
        Ok(())
    }

    /// Digests the names that the index knows in a directory, with their kind.
    fn known(&mut self, number: usize) -> [u8; 16] {
        let index = self.ctx.index;
        self.names.clear();
        for child in index.children(number) {
            let (kind, name) = match child {
                Child::Entry(at) => match index.entries.get(at) {
                    Some(entry) if index.mode(entry) == GITLINK => (b'g', index.name(entry)),
                    Some(entry) => (b'f', index.name(entry)),
                    None => continue,
                },
                Child::Dir(at) => match index.dirs.get(at) {
                    Some(dir) => (b'd', index.dir_name(dir)),
                    None => continue,
                },
            };
            self.names.push(kind);
            self.names.extend_from_slice(name);
            self.names.push(0);
        }
        half(&Sha256::digest(&self.names))
    }

    /// Lists a directory and returns the names that the index does not know as what they are.
    fn extras(&mut self, number: usize, folder: &OwnedFd, path: &[u8]) -> Result<Vec<Extra>, Stop> {
        let ctx = self.ctx;
        let mut files: Vec<(&[u8], bool)> = Vec::new();
        let mut dirs: Vec<&[u8]> = Vec::new();
        for child in ctx.index.children(number) {
            match child {
                Child::Entry(at) => {
                    if let Some(entry) = ctx.index.entries.get(at) {
                        files.push((ctx.index.name(entry), ctx.index.mode(entry) == GITLINK));
                    }
                }
                Child::Dir(at) => {
                    if let Some(dir) = ctx.index.dirs.get(at) {
                        dirs.push(ctx.index.dir_name(dir));
                    }
                }
            }
        }
        dirs.sort_unstable();
        let names = self.list(folder, path)?;
        Ok(names
            .into_iter()
            .filter(|extra| {
                let file = files
                    .binary_search_by(|(name, _)| (*name).cmp(&extra.name))
                    .ok()
                    .and_then(|at| files.get(at));
                match (extra.kind, file) {
                    // A submodule's folder, or whatever stands in its place.
                    (_, Some((_, true)))
                    | (Kind::File | Kind::Link, Some(_))
                    | (Kind::Other, _) => false,
                    (Kind::Dir, _) => dirs.binary_search(&extra.name.as_slice()).is_err(),
                    (Kind::File | Kind::Link, None) => true,
                }
            })
            .collect())
    }

    /// Lists a directory: files, links and directories, without `.git` and what is left out.
    pub(super) fn list(&mut self, folder: &OwnedFd, path: &[u8]) -> Result<Vec<Extra>, Stop> {
        let ctx = self.ctx;
        self.found.counters.directories += 1;
        let mut buffer = std::mem::take(&mut self.listing);
        if buffer.capacity() == 0 {
            buffer.reserve(1 << 16);
        }
        let mut names = Vec::new();
        let mut iterator = RawDir::new(folder, buffer.spare_capacity_mut());
        while let Some(entry) = iterator.next() {
            let entry = entry.map_err(|error| unreadable(path, error))?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b".." | b".git") || (path.is_empty() && ctx.is_excluded(name))
            {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::RegularFile => Kind::File,
                FileType::Symlink => Kind::Link,
                FileType::Directory => Kind::Dir,
                FileType::Unknown => {
                    self.found.counters.stats += 1;
                    match statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) => Meta::of(&stat).kind(),
                        Err(Errno::NOENT) => continue,
                        Err(error) => return Err(unreadable(&join(path, name), error)),
                    }
                }
                FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice => Kind::Other,
            };
            if kind != Kind::Other {
                names.push(Extra {
                    name: name.to_vec(),
                    kind,
                });
            }
        }
        self.listing = buffer;
        Ok(names)
    }

    /// The directory is gone, or something else stands there.
    fn all_gone(&mut self, number: usize) {
        let ctx = self.ctx;
        let path = ctx
            .index
            .dirs
            .get(number)
            .map(|dir| ctx.index.dir_path(dir));
        let above = path.and_then(|path| path.get(..memchr::memrchr(b'/', path)?));
        if let Ok(Some(folder)) =
            open_dir(ctx.root.as_fd(), above.unwrap_or_default(), OFlags::PATH)
        {
            self.note_folder(folder.as_fd());
        }
        for child in ctx.index.children(number) {
            let Child::Entry(at) = child else { continue };
            let Some(entry) = ctx.index.entries.get(at) else {
                continue;
            };
            // Through a linked parent an entry may be there for git, and is then deleted.
            let absent = entry.flags & flag::SKIPPED != 0 && {
                self.found.counters.stats += 1;
                let path = ctx.index.path(entry);
                ctx.place
                    .root
                    .join(std::ffi::OsStr::from_bytes(&path))
                    .symlink_metadata()
                    .is_err()
            };
            if !absent {
                self.gone(number, at);
            }
        }
    }

    /// Notes whether something changed since the look began. Change time cannot be set; that it lies in the future of a
    /// clock that was set back costs a second look, and no more.
    pub(super) fn note(&mut self, meta: &Meta) {
        self.found.young |= meta.ctime >= self.ctx.begin;
    }

    /// Notes whether names in a directory changed since the look began.
    fn note_folder(&mut self, folder: BorrowedFd<'_>) {
        self.found.counters.stats += 1;
        match fstat(folder) {
            Ok(stat) => self.note(&Meta::of(&stat)),
            Err(_) => self.found.young = true,
        }
    }

    fn gone(&mut self, dir: usize, entry: usize) {
        self.found.overrides.push(Override {
            dir,
            entry,
            leaf: None,
        });
    }

    fn entry(
        &mut self,
        place: &InDir<'_>,
        at: usize,
        entry: &Entry,
        out: &mut DirOut,
    ) -> Result<(), Stop> {
        let ctx = self.ctx;
        let name = ctx.index.name(entry);
        let mode = ctx.index.mode(entry);
        let owned;
        let c_name: &CStr = if let Some(name) = ctx.index.c_name(entry) {
            name
        } else {
            owned = c_string(name)?;
            &owned
        };
        self.found.counters.stats += 1;
        let meta = match statat(place.folder, c_name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Meta::of(&stat),
            Err(Errno::NOENT) => {
                if entry.flags & flag::SKIPPED == 0 && mode != 0o040_000 {
                    self.note_folder(place.folder);
                    self.gone(place.number, at);
                }
                return Ok(());
            }
            Err(error) => return Err(unreadable(&ctx.index.path(entry), error)),
        };
        if mode == 0o040_000 {
            return Err(Stop::Unsupported(
                "a folder outside the sparse checkout is there".to_owned(),
            ));
        }
        self.note(&meta);
        let merged = entry.flags & (flag::STAGE | flag::INTENT) == 0;
        match meta.kind() {
            Kind::Other => {
                let path = ctx.index.path(entry);
                return Err(Stop::Incomplete(format!(
                    "{} is neither file nor link nor folder",
                    crate::paths::text_of_bytes(&path)
                )));
            }
            Kind::Dir => return self.folder_of_entry(place, at, entry, mode, merged),
            Kind::File | Kind::Link => {}
        }
        let old_mode = if merged { mode } else { ctx.index.old_mode(at) };
        let new_mode = ctx.mode(&meta, Some(old_mode));
        if merged
            && new_mode == mode
            && ctx.trust.holds(&meta, ctx.index.block(entry), || {
                ctx.index.id(entry) == ctx.empty_blob.bytes(ctx.hash_len)
            })
        {
            return Ok(());
        }
        let path = || ctx.index.path(entry);
        let (meta, content) = self.content(place.folder, c_name, &path, meta, place.files, out)?;
        let new_mode = ctx.mode(&meta, Some(old_mode));
        let target = Target::Entry {
            dir: place.number,
            entry: at,
        };
        if meta.kind() == Kind::File {
            let whole = path();
            if self.converted(ctx.index.dir_path(place.dir), &whole, &content)? {
                self.found.pending.push(Pending {
                    path: whole,
                    target,
                    mode: new_mode,
                    meta,
                });
                return Ok(());
            }
        }
        if !merged || new_mode != mode || ctx.index.id(entry) != content.raw.bytes(ctx.hash_len) {
            self.found.overrides.push(Override {
                dir: place.number,
                entry: at,
                leaf: Some(Leaf {
                    mode: new_mode,
                    id: content.raw,
                }),
            });
        }
        Ok(())
    }

    /// A folder stands where the index has an entry.
    fn folder_of_entry(
        &mut self,
        place: &InDir<'_>,
        at: usize,
        entry: &Entry,
        mode: u32,
        merged: bool,
    ) -> Result<(), Stop> {
        let ctx = self.ctx;
        let path = ctx.index.path(entry);
        let head = match nested::place(ctx.place, &path).map_err(Stop::inside)? {
            Some(inner) => {
                crate::fingerprint::facts::head(&inner, ctx.options).map_err(Stop::inside)?
            }
            None => None,
        };
        match head {
            Some(head) => {
                let id = Id::parse(head.as_str()).unwrap_or_default();
                if !merged || mode != GITLINK || ctx.index.id(entry) != id.bytes(ctx.hash_len) {
                    self.found.overrides.push(Override {
                        dir: place.number,
                        entry: at,
                        leaf: Some(Leaf { mode: GITLINK, id }),
                    });
                }
            }
            None if mode == GITLINK && merged => {}
            None if mode == GITLINK => {
                return Err(Stop::Unsupported(
                    "a submodule is unmerged and not checked out".to_owned(),
                ));
            }
            None => self.gone(place.number, at),
        }
        Ok(())
    }

    /// Finds the content of a file or link: in the cache, else by reading it.
    pub(super) fn content(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &CStr,
        path: &dyn Fn() -> Vec<u8>,
        meta: Meta,
        files: &[File],
        out: &mut DirOut,
    ) -> Result<(Meta, Content), Stop> {
        let ctx = self.ctx;
        let cached = files
            .binary_search_by(|file| file.name.as_slice().cmp(name.to_bytes()))
            .ok()
            .and_then(|at| files.get(at))
            .filter(|file| ctx.lasting(&meta) && super::cache::same(&file.meta, &meta));
        let (meta, content) = if let Some(file) = cached {
            self.found.counters.cache_hits += 1;
            out.hits += 1;
            (meta, file.content)
        } else {
            self.reader
                .read(folder, name, path, meta, &mut self.found.counters)?
        };
        self.note(&meta);
        if cached.is_some() || (ctx.lasting(&meta) && meta.settled(ctx.begin)) {
            out.files.push(File {
                name: name.to_bytes().to_vec(),
                meta,
                content,
            });
        }
        Ok((meta, content))
    }

    /// Tells whether git would, or might, change a file's content before it names it.
    pub(super) fn converted(
        &self,
        dir: &[u8],
        path: &[u8],
        content: &Content,
    ) -> Result<bool, Stop> {
        let ctx = self.ctx;
        let may = ctx.attributes.may(ctx.root.as_fd(), dir, path, &|path| {
            ctx.index.find(path).is_some_and(|at| ctx.is_skipped(at))
        })?;
        Ok(may.filter || (may.text && content.cr) || (may.ident && content.ident))
    }
}

/// Where an entry is looked at.
struct InDir<'a> {
    number: usize,
    dir: &'a Dir,
    folder: BorrowedFd<'a>,
    files: &'a [File],
}

/// The first half of a digest.
pub(super) fn half(digest: &[u8]) -> [u8; 16] {
    let mut half = [0; 16];
    for (to, from) in half.iter_mut().zip(digest) {
        *to = *from;
    }
    half
}
