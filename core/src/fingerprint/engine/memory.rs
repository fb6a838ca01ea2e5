//! What is taken from the cache, and what goes into it.
use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::Ctx;
use super::cache::{self, Cache, Writer};
use super::content::Id;
use super::index::Index;
use super::stat::Meta;
use super::walk::DirOut;
use crate::fingerprint::DEFINITION;
use crate::repository::Place;

/// What a cache belongs to.
pub(super) fn binding(place: &Place, root: &Meta, excluded: &[String]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in [
        place.root.as_os_str().as_bytes(),
        place.git_dir.as_os_str().as_bytes(),
    ]
    .into_iter()
    .chain(excluded.iter().map(String::as_bytes))
    {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.update(root.dev.to_le_bytes());
    hasher.update(root.ino.to_le_bytes());
    hasher.update(DEFINITION.to_le_bytes());
    hasher.finalize().into()
}

/// Joins the directories of the index with the slots of the cache: both are in the same order.
pub(super) fn join_slots(index: &Index, cache: Option<&Cache>) -> Vec<Option<usize>> {
    let mut joined = vec![None; index.dirs.len()];
    let Some(cache) = cache else {
        return joined;
    };
    let mut at = 0;
    for (dir, place) in index.dirs.iter().zip(joined.iter_mut()) {
        let path = index.dir_path(dir);
        while let Some(slot) = cache.slots.get(at) {
            match cache::order(cache.path(slot), path) {
                std::cmp::Ordering::Less => at += 1,
                std::cmp::Ordering::Equal => {
                    *place = Some(at);
                    at += 1;
                    break;
                }
                std::cmp::Ordering::Greater => break,
            }
        }
    }
    joined
}

/// What is remembered beside directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lasting {
    /// A commit and its tree.
    pub(super) head: Option<(Id, Id)>,
    /// The checksum of an index whose tree cache was found to be right.
    pub(super) trees: Option<[u8; 32]>,
}

/// Writes the cache, if it differs from the one that was read. A part that did not hold is dropped, never carried over.
pub(super) fn remember(
    ctx: &Ctx<'_>,
    outs: &[(Vec<u8>, DirOut)],
    path: &Path,
    binding: &[u8; 32],
    lasting: &Lasting,
) {
    let known = ctx
        .cache
        .is_some_and(|cache| cache.head == lasting.head && cache.trees == lasting.trees);
    if known && ctx.cache.is_some_and(|cache| steady(ctx, cache, outs)) {
        return;
    }
    let mut by_path: BTreeMap<Ordered<'_>, Vec<&DirOut>> = BTreeMap::new();
    for (path, out) in outs {
        by_path.entry(Ordered(path)).or_default().push(out);
    }
    // Directories of which nothing was put aside are as they were.
    for (dir, slot) in ctx.index.dirs.iter().zip(&ctx.joined) {
        if slot.is_some() {
            by_path.entry(Ordered(ctx.index.dir_path(dir))).or_default();
        }
    }
    let mut writer = Writer::new(binding, ctx.hash_len, lasting);
    for (dir, outs) in by_path {
        let slot = ctx
            .cache
            .and_then(|cache| Some((cache, cache.slots.get(cache.find(dir.0)?)?)));
        let mut files: Vec<cache::File> = outs.iter().flat_map(|out| out.files.clone()).collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        files.dedup_by(|a, b| a.name == b.name);
        let hits: usize = outs.iter().map(|out| out.hits).sum();
        let listing = outs.iter().find_map(|out| out.listing.as_ref());
        let holds = outs.is_empty() || outs.iter().any(|out| out.kept);
        if let Some((cache, slot)) = slot
            && holds
            && listing.is_none()
            && files.len() == hits
            && hits == slot.count as usize
        {
            writer.keep(cache, slot);
            continue;
        }
        if let Some((cache, slot)) = slot
            && holds
            && listing.is_none()
        {
            writer.add(dir.0, cache.whole_listing(slot).as_ref(), &files);
        } else if listing.is_some() || !files.is_empty() {
            writer.add(dir.0, listing, &files);
        }
    }
    if ctx.cache.is_none() && !writer.changed {
        return;
    }
    writer.store(path);
}

/// Tells whether a look left everything in the cache as it was: every slot held, and every file in it was asked for.
fn steady(ctx: &Ctx<'_>, cache: &Cache, outs: &[(Vec<u8>, DirOut)]) -> bool {
    let mut hits = 0;
    // By directory: whether one of its parts says that its listing held.
    let mut held: HashMap<&[u8], bool> = HashMap::new();
    for (path, out) in outs {
        if out.listing.is_some() || out.files.len() != out.hits {
            return false;
        }
        hits += out.hits;
        *held.entry(path).or_default() |= out.kept;
    }
    // A directory of the index of which nothing was put aside held, with names to judge or without.
    let mut slots = 0;
    for (dir, slot) in ctx.index.dirs.iter().zip(&ctx.joined) {
        let known = held.remove(ctx.index.dir_path(dir));
        match slot {
            Some(_) if known == Some(false) => return false,
            Some(_) => slots += 1,
            None => {}
        }
    }
    slots += held.values().filter(|held| **held).count();
    slots == cache.slots.len()
        && hits
            == cache
                .slots
                .iter()
                .map(|slot| slot.count as usize)
                .sum::<usize>()
}

/// A directory's path, ordered as in an index.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ordered<'a>(&'a [u8]);

impl PartialOrd for Ordered<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        cache::order(self.0, other.0)
    }
}
