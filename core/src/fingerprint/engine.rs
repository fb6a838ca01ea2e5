//! The project's own engine: one pass over directories for tracked and untracked names alike, stat data trusted by a rule
//! stricter than git's, and only what differs read.
//!
//! # Deviations from git
//!
//! * Metadata is believed only if modification *and* change time, with nanoseconds, inode, owner and size are those in the
//!   index, and both times are older than the index. git looks at the modification time alone, in seconds as distributions
//!   build it, and misses an edit of the same size whose time was put back. Where the file system does not promise that a
//!   change after a look moves a timestamp, 2.5 seconds have to lie between.
//! * A parent that was replaced by a link lends its files to nobody.
//! * A pipe, socket or device named `.gitignore` or `.gitattributes` is no file of rules.
//!
//! # Limitations
//!
//! * Further stores into a page that is mapped and already dirty move no timestamp before the kernel writes it back. Only
//!   [`Options::verify`] sees them.
//! * What it does not know (a split index, file systems that ignore case, attributes read from a tree) is a reason to let
//!   git look.
mod attributes;
mod cache;
mod content;
mod convert;
mod extras;
mod files;
mod ignore;
mod index;
mod memory;
mod objects;
mod settings;
mod stat;
mod tree;
mod walk;

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, fstat};

use self::attributes::Attributes;
use self::cache::Cache;
use self::content::{Id, Reader};
use self::ignore::Ignore;
use self::index::{Index, flag};
use self::objects::Objects;
use self::settings::Settings;
use self::stat::{Kind, Meta, Stamp, Trust};
use self::walk::{Found, Worker};
use super::error::FingerprintError;
use super::facts::Facts;
use super::options::Options;
use super::scan::{GITLINK, Scan, conflict_digest};
use crate::repository::Place;

/// Why the engine did not finish.
#[derive(Debug)]
pub(super) enum Stop {
    /// It cannot do this repository right: another method has to.
    Unsupported(String),
    /// Not everything could be seen.
    Incomplete(String),
    /// Something changed under it.
    Moving,
    /// Nothing can be said.
    Failed(FingerprintError),
}

impl Stop {
    /// Makes of an error inside the work tree what it is for the whole: something that could not be seen.
    fn inside(error: FingerprintError) -> Self {
        match Self::from(error) {
            Self::Failed(FingerprintError::Interrupted) => {
                Self::Failed(FingerprintError::Interrupted)
            }
            Self::Failed(error) => Self::Incomplete(error.to_string()),
            stop @ (Self::Unsupported(_) | Self::Incomplete(_) | Self::Moving) => stop,
        }
    }
}

impl From<FingerprintError> for Stop {
    fn from(error: FingerprintError) -> Self {
        match error {
            FingerprintError::Git { command, message } => {
                Self::Incomplete(format!("git {command}: {message}"))
            }
            other @ (FingerprintError::Io { .. }
            | FingerprintError::NoGit(_)
            | FingerprintError::Damaged { .. }
            | FingerprintError::Excluded(_)
            | FingerprintError::Interrupted
            | FingerprintError::Unsupported(_)) => Self::Failed(other),
        }
    }
}

/// A mode and an object id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leaf {
    mode: u32,
    id: Id,
}

/// An entry that is not on disk as the index has it.
#[derive(Clone, Copy, Debug)]
struct Override {
    dir: usize,
    entry: usize,
    /// `None` where it is gone.
    leaf: Option<Leaf>,
}

/// A path that the index does not know.
#[derive(Clone, Debug)]
struct Addition {
    path: Vec<u8>,
    leaf: Leaf,
}

/// What a converted file is.
#[derive(Clone, Copy, Debug)]
enum Target {
    Entry { dir: usize, entry: usize },
    Addition,
}

/// A file whose content git has to convert.
#[derive(Clone, Debug)]
struct Pending {
    path: Vec<u8>,
    target: Target,
    mode: u32,
    meta: Meta,
}

/// What every part of a look needs.
struct Ctx<'a> {
    place: &'a Place,
    options: &'a Options<'a>,
    excluded: &'a [String],
    settings: &'a Settings,
    index: &'a Index,
    cache: Option<&'a Cache>,
    /// The slot in the cache of each directory of the index.
    joined: Vec<Option<usize>>,
    root: OwnedFd,
    dev: u64,
    /// Whether what is remembered by timestamps lasts on this file system.
    local: bool,
    trust: Trust,
    begin: Stamp,
    ignore: Ignore,
    attributes: Attributes,
    objects: Mutex<Objects<'a>>,
    kind: gix_hash::Kind,
    hash_len: usize,
    empty_blob: Id,
    empty_tree: Id,
}

impl Ctx<'_> {
    /// Tells whether a path is, or lies below, a name that is left out.
    fn is_excluded(&self, path: &[u8]) -> bool {
        !path.is_empty() && super::program::is_excluded(path, self.excluded)
    }

    /// Tells whether the index holds something that is left out.
    fn has_excluded(&self) -> bool {
        self.index.children(0).any(|child| match child {
            index::Child::Entry(at) => self
                .index
                .entries
                .get(at)
                .is_some_and(|entry| self.is_excluded(self.index.name(entry))),
            index::Child::Dir(at) => self
                .index
                .dirs
                .get(at)
                .is_some_and(|dir| self.is_excluded(self.index.dir_path(dir))),
        })
    }

    /// Tells whether what is remembered of a file or folder lasts: it lies on the root's own file system, a local one.
    const fn lasting(&self, meta: &Meta) -> bool {
        self.local && meta.dev == self.dev
    }

    /// Returns the mode git gives a file or link; `old` is that in the index.
    fn mode(&self, meta: &Meta, old: Option<u32>) -> u32 {
        if meta.kind() == Kind::Link {
            return 0o120_000;
        }
        match old {
            Some(0o120_000) if !self.settings.symlinks => 0o120_000,
            Some(old @ (0o100_644 | 0o100_755)) if !self.settings.file_mode => old,
            _ if self.settings.file_mode && meta.mode & 0o100 != 0 => 0o100_755,
            _ => 0o100_644,
        }
    }

    /// Tells whether git was told that an entry is absent.
    fn is_skipped(&self, entry: usize) -> bool {
        self.index
            .entries
            .get(entry)
            .is_some_and(|entry| entry.flags & flag::SKIPPED != 0)
    }

    /// Reads a `.gitignore` that git was told is absent on disk: its rules hold all the same.
    fn rules_in_index(&self, path: &[u8]) -> Result<Option<Vec<u8>>, Stop> {
        let Some(entry) = self
            .index
            .find(path)
            .and_then(|at| self.index.entries.get(at))
        else {
            return Ok(None);
        };
        if entry.flags & flag::SKIPPED == 0 {
            return Ok(None);
        }
        let id = Id::of(self.index.id(entry));
        self.objects
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .read(&id, "blob")
            .map(Some)
    }
}

/// Runs `work` on so many threads, this one among them, and gathers what they return.
fn on_threads<T: Send>(threads: usize, work: &(impl Fn() -> T + Sync)) -> Vec<T> {
    if threads <= 1 {
        return vec![work()];
    }
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut results = vec![work()];
        for other in others {
            match other.join() {
                Ok(result) => results.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    })
}

/// How many threads are of use for so many entries: lookups wait on the kernel, so a few more than processors.
fn threads(entries: usize) -> usize {
    if entries < 256 {
        return 1;
    }
    let cores = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize);
    if entries < 6_000 {
        cores.min(1 + entries / 256)
    } else {
        cores.max((entries / 2_500).min(8)).min(16)
    }
}

/// Looks at one repository. `cache` is the file where this place's cache lies.
pub(super) fn scan(
    place: &Place,
    facts: &Facts,
    excluded: &[String],
    options: &Options<'_>,
    cache: Option<&Path>,
) -> Result<Scan, Stop> {
    let mut programs = 0;
    let settings = Settings::read(place, options, cache.and_then(Path::parent), &mut programs)?;
    let hash_len = if settings.sha256 { 32 } else { 20 };
    let kind = if settings.sha256 {
        gix_hash::Kind::Sha256
    } else {
        gix_hash::Kind::Sha1
    };
    let index_path = place.git_dir.join("index");
    let (index, index_meta) = read_index(&index_path, hash_len)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(&place.root, flags, Mode::empty())
        .map_err(|error| FingerprintError::io("open", &place.root, error))?;
    let root_meta = Meta::of(
        &fstat(&root).map_err(|error| FingerprintError::io("look at", &place.root, error))?,
    );
    let begin = now();
    let (local, fine) = file_system(&root);
    let same_system = index_meta.is_none_or(|meta| meta.dev == root_meta.dev);
    let binding = memory::binding(place, &root_meta, excluded);
    let loaded = cache
        .filter(|_| options.use_cache && !options.verify)
        .and_then(|path| Cache::load(path, &binding, hash_len));
    let joined = memory::join_slots(&index, loaded.as_ref());
    let ctx = Ctx {
        place,
        options,
        excluded,
        settings: &settings,
        index: &index,
        cache: loaded.as_ref(),
        joined,
        root,
        dev: root_meta.dev,
        local,
        trust: Trust::new(
            index_meta.map(|meta| meta.mtime).unwrap_or_default(),
            root_meta.dev,
            fine && same_system,
            options.verify,
        ),
        begin,
        ignore: Ignore::new(
            &place.common_dir.join("info/exclude"),
            settings.excludes.as_deref(),
        )?,
        attributes: Attributes::new(
            settings.autocrlf,
            settings.filters.keys().cloned().collect(),
            &attribute_files(place, &settings),
        )?,
        objects: Mutex::new(Objects::new(place, options, settings.sha256)),
        kind,
        hash_len,
        empty_blob: Reader::object(kind, "blob", b"")?,
        empty_tree: Reader::object(kind, "tree", b"")?,
    };
    let mut found = walk(&ctx)?;
    found.counters.entries = index.entries.len() as u64;
    let head = facts
        .head
        .as_ref()
        .and_then(|head| Id::parse(head.as_str()));
    let (mut scan, lasting) = conclude(&ctx, &mut found, head, &mut programs)?;
    if index_stat(&index_path)? != index_meta {
        return Err(Stop::Moving);
    }
    if let Some(path) = cache
        && options.write_cache
    {
        memory::remember(&ctx, &found.outs, path, &binding, &lasting);
    }
    scan.counters = found.counters;
    // A git that holds the index may be in the middle of a checkout. One that died left its lock behind, so this is no
    // reason to give up.
    scan.young = found.young || index_stat(&place.git_dir.join("index.lock"))?.is_some();
    scan.counters.programs += programs;
    Ok(scan)
}

/// Walks all directories.
fn walk(ctx: &Ctx<'_>) -> Result<Found, Stop> {
    let dirs = ctx.index.dirs.len();
    let threads = threads(ctx.index.entries.len());
    let next = AtomicUsize::new(0);
    let part = if threads > 1 { 16 } else { dirs };
    let work = || -> Result<Found, Stop> {
        let mut worker = Worker::new(ctx);
        loop {
            let from = next.fetch_add(part, Ordering::Relaxed);
            if from >= dirs {
                return Ok(worker.found);
            }
            for number in from..dirs.min(from + part) {
                if let Err(stop) = worker.visit(number) {
                    // The others need not go on.
                    next.fetch_add(dirs, Ordering::Relaxed);
                    return Err(stop);
                }
            }
        }
    };
    let mut found = Found::default();
    for result in on_threads(threads, &work) {
        found.append(result?);
    }
    let cores = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize);
    extras::run(ctx, &mut found, cores)?;
    Ok(found)
}

/// Puts trees and deviations together.
fn conclude(
    ctx: &Ctx<'_>,
    found: &mut Found,
    head: Option<Id>,
    programs: &mut u64,
) -> Result<(Scan, memory::Lasting), Stop> {
    let ids = convert::run(ctx, &found.pending, programs)?;
    for (pending, id) in std::mem::take(&mut found.pending).into_iter().zip(ids) {
        let leaf = Leaf {
            mode: pending.mode,
            id,
        };
        match pending.target {
            Target::Entry { dir, entry } => {
                let unchanged = ctx.index.entries.get(entry).is_some_and(|entry| {
                    entry.flags & (flag::STAGE | flag::INTENT) == 0
                        && ctx.index.mode(entry) == leaf.mode
                        && ctx.index.id(entry) == leaf.id.bytes(ctx.hash_len)
                });
                if !unchanged {
                    found.overrides.push(Override {
                        dir,
                        entry,
                        leaf: Some(leaf),
                    });
                }
            }
            Target::Addition => found.additions.push(Addition {
                path: pending.path,
                leaf,
            }),
        }
    }
    found.additions.sort_by(|a, b| a.path.cmp(&b.path));
    let sum = ctx.index.checksum();
    let known = sum.is_some() && ctx.cache.is_some_and(|cache| cache.trees == sum);
    let remembered = ctx
        .cache
        .and_then(|cache| cache.head)
        .filter(|(commit, _)| Some(*commit) == head)
        .map(|(_, tree)| tree);
    let top = tree::cached_root(ctx.index, ctx.hash_len);
    let clean = found.overrides.is_empty()
        && found.additions.is_empty()
        && !ctx.has_excluded()
        && remembered.is_some()
        && top.first().copied().flatten() == remembered;
    let (ids, agreed) = if known && clean {
        // All is as in HEAD: nothing but the tree at the top is asked for.
        (top, true)
    } else if known {
        (tree::cached(ctx.index, ctx.hash_len), true)
    } else {
        tree::of_entries(ctx)?
    };
    let mut trees = tree::Trees::new(ctx, ids, &found.overrides, &found.additions);
    let disk = trees.of_disk()?;
    let mut scan = Scan {
        tree: Some(disk.oid(ctx.hash_len)?),
        index_tree: Some(match conflict(ctx) {
            Some(digest) => digest,
            None => trees.of_index()?.hex(ctx.hash_len),
        }),
        ..Scan::default()
    };
    let mut objects = ctx.objects.lock().unwrap_or_else(PoisonError::into_inner);
    let head_tree = match head {
        None => None,
        Some(commit) => match remembered {
            Some(tree) => Some(tree),
            None => Some(objects.tree_of(&commit)?),
        },
    };
    scan.deviations = trees.deviations(head_tree, disk, &mut objects)?;
    *programs += objects.programs;
    drop(objects);
    scan.gitlinks = gitlinks(ctx, found);
    scan.headless = std::mem::take(&mut found.headless);
    let lasting = memory::Lasting {
        head: head.zip(head_tree),
        trees: sum.filter(|_| agreed),
    };
    Ok((scan, lasting))
}

/// Returns the paths in the tree on disk that are repositories of their own.
fn gitlinks(ctx: &Ctx<'_>, found: &Found) -> Vec<Vec<u8>> {
    let index = ctx.index;
    let changed: HashSet<usize> = found.overrides.iter().map(|change| change.entry).collect();
    let still = index.gitlinks.iter().copied().filter(|at| {
        let merged = index
            .entries
            .get(*at)
            .is_some_and(|entry| entry.flags & flag::STAGE == 0);
        merged && !changed.contains(at)
    });
    let became = found
        .overrides
        .iter()
        .filter(|change| change.leaf.is_some_and(|leaf| leaf.mode == GITLINK))
        .map(|change| change.entry);
    let mut paths: Vec<Vec<u8>> = still
        .chain(became)
        .filter_map(|at| index.entries.get(at))
        .map(|entry| index.path(entry))
        .filter(|path| !ctx.is_excluded(path))
        .collect();
    paths.extend(
        found
            .additions
            .iter()
            .filter(|addition| addition.leaf.mode == GITLINK)
            .map(|addition| addition.path.clone()),
    );
    paths.sort();
    paths.dedup();
    paths
}

/// Returns what stands for the index's tree where paths are unmerged.
fn conflict(ctx: &Ctx<'_>) -> Option<String> {
    if !ctx.index.unmerged {
        return None;
    }
    let unmerged: Vec<(u32, String, u8, Vec<u8>)> = ctx
        .index
        .entries
        .iter()
        .filter(|entry| entry.flags & flag::STAGE != 0)
        .map(|entry| {
            (
                ctx.index.mode(entry),
                Id::of(ctx.index.id(entry)).hex(ctx.hash_len),
                entry.flags & flag::STAGE,
                ctx.index.path(entry),
            )
        })
        .filter(|(_, _, _, path)| !ctx.is_excluded(path))
        .collect();
    // What is left out may be unmerged alone.
    (!unmerged.is_empty()).then(|| {
        conflict_digest(
            unmerged
                .iter()
                .map(|(mode, oid, stage, path)| (*mode, oid.as_str(), *stage, path.as_slice())),
        )
    })
}

fn index_stat(path: &Path) -> Result<Option<Meta>, Stop> {
    match rustix::fs::lstat(path) {
        Ok(stat) => Ok(Some(Meta::of(&stat))),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(FingerprintError::io("look at", path, error).into()),
    }
}

/// Reads the index, and its metadata from the same open file: git replaces it by renaming.
fn read_index(path: &Path, hash_len: usize) -> Result<(Index, Option<Meta>), Stop> {
    use std::io::Read as _;
    let io = |error: std::io::Error| Stop::from(FingerprintError::io("read", path, error));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let mut file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(handle) => std::fs::File::from(handle),
        Err(rustix::io::Errno::NOENT) => return Ok((Index::empty(hash_len), None)),
        Err(error) => return Err(io(error.into())),
    };
    let meta = Meta::of(&fstat(&file).map_err(|error| io(error.into()))?);
    if meta.kind() != Kind::File {
        return Err(Stop::Unsupported("the index is no file".to_owned()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.size).unwrap_or(0) + 1);
    #[expect(
        clippy::verbose_file_reads,
        reason = "content and metadata are of one file"
    )]
    file.read_to_end(&mut bytes).map_err(io)?;
    Ok((Index::parse(bytes, hash_len)?, Some(meta)))
}

/// The clock that the kernel stamps files with. It is no clock to be passed in: it is compared with what the file system
/// says, and another would make that comparison wrong.
fn now() -> Stamp {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    Stamp {
        seconds: now.tv_sec,
        nanos: u32::try_from(now.tv_nsec).unwrap_or(0),
    }
}

/// Tells of the file system of the work tree whether it is a local one, and whether every change after a look gets a
/// timestamp of its own.
fn file_system(root: &OwnedFd) -> (bool, bool) {
    #[expect(
        clippy::cast_sign_loss,
        reason = "the field has other types on other machines"
    )]
    let magic = rustix::fs::fstatfs(root).map_or(0, |system| system.f_type as u64);
    let name = rustix::system::uname();
    let since = stat::since_6_13(name.release().to_str().unwrap_or_default());
    (stat::local(magic), since && stat::many_grains(magic))
}

fn attribute_files(place: &Place, settings: &Settings) -> Vec<PathBuf> {
    let mut files = settings.attributes.clone();
    files.push(place.common_dir.join("info/attributes"));
    files
}
