//! Trees: the one of the index and the one on disk.
use std::collections::HashMap;
use std::ops::Range;

use super::content::{Id, Reader};
use super::index::{Child, Index, flag, join};
use super::{Addition, Ctx, Leaf, Override, Stop};

mod deviations;

const TREE: u32 = 0o040_000;

/// One child of a directory as it is on disk.
#[derive(Clone, Debug)]
struct Node {
    name: Vec<u8>,
    mode: u32,
    id: Id,
    /// For a directory: its number in the index, and which additions lie in it.
    dir: Option<usize>,
    additions: Range<usize>,
}

/// The tree of a work tree.
pub(super) struct Trees<'a, 'c> {
    ctx: &'a Ctx<'c>,
    /// Trees of the index's directories ([`of_entries`]).
    cached: Vec<Option<Id>>,
    overrides: HashMap<usize, Option<Leaf>>,
    /// Sorted by path as trees are.
    additions: &'a [Addition],
    /// Directories that hold an override or an addition.
    marked: Vec<bool>,
    /// Ids found so far, by number of the directory.
    known: HashMap<usize, Option<Id>>,
}

/// Compares names as trees do: a directory as if its name ended with a slash.
fn tree_order(a: &[u8], a_dir: bool, b: &[u8], b_dir: bool) -> std::cmp::Ordering {
    let end = |dir: bool| if dir { &b"/"[..] } else { &b""[..] };
    let common = a.len().min(b.len());
    a.get(..common).cmp(&b.get(..common)).then_with(|| {
        let a = a.get(common..).unwrap_or_default();
        let b = b.get(common..).unwrap_or_default();
        let first = |rest: &[u8], dir| rest.first().or_else(|| end(dir).first()).copied();
        first(a, a_dir)
            .cmp(&first(b, b_dir))
            .then_with(|| a.len().cmp(&b.len()))
    })
}

fn hash_tree(ctx: &Ctx<'_>, nodes: &[Node]) -> Result<Id, Stop> {
    let mut bytes = Vec::with_capacity(nodes.len() * 48);
    for node in nodes {
        put_node(
            &mut bytes,
            node.mode,
            &node.name,
            node.id.bytes(ctx.hash_len),
        );
    }
    Reader::object(ctx.kind, "tree", &bytes)
}

impl<'a, 'c> Trees<'a, 'c> {
    /// Takes what was found. `additions` must be sorted by path.
    pub(super) fn new(
        ctx: &'a Ctx<'c>,
        trees: Vec<Option<Id>>,
        overrides: &[Override],
        additions: &'a [Addition],
    ) -> Self {
        let index = ctx.index;
        let mut marked = vec![false; index.dirs.len()];
        for change in overrides {
            mark(index, &mut marked, change.dir);
        }
        for addition in additions {
            mark_path(index, &mut marked, &addition.path);
        }
        Self {
            ctx,
            cached: trees,
            overrides: overrides
                .iter()
                .map(|change| (change.entry, change.leaf))
                .collect(),
            additions,
            marked,
            known: HashMap::new(),
        }
    }

    /// Returns the tree of the index: stage 0, without announced entries and without what is left out.
    pub(super) fn of_index(&self) -> Result<Id, Stop> {
        let left_out = self.ctx.index.children(0).any(|child| {
            let name = match child {
                Child::Entry(at) => self
                    .ctx
                    .index
                    .entries
                    .get(at)
                    .map(|e| self.ctx.index.name(e)),
                Child::Dir(at) => self
                    .ctx
                    .index
                    .dirs
                    .get(at)
                    .map(|d| self.ctx.index.dir_name(d)),
            };
            name.is_some_and(|name| self.ctx.is_excluded(name))
        });
        self.index_dir(0, left_out)
            .map(|id| id.unwrap_or(self.ctx.empty_tree))
    }

    fn index_dir(&self, dir: usize, anew: bool) -> Result<Option<Id>, Stop> {
        if !anew && let Some(Some(id)) = self.cached.get(dir) {
            return Ok(Some(*id));
        }
        let index = self.ctx.index;
        let mut nodes = Vec::new();
        for child in index.children(dir) {
            match child {
                Child::Entry(at) => {
                    let Some(entry) = index.entries.get(at) else {
                        continue;
                    };
                    let name = index.name(entry);
                    if entry.flags & (flag::STAGE | flag::INTENT) == 0
                        && !(dir == 0 && self.ctx.is_excluded(name))
                    {
                        nodes.push(leaf(name, index.mode(entry), Id::of(index.id(entry))));
                    }
                }
                Child::Dir(at) => {
                    let Some(child) = index.dirs.get(at) else {
                        continue;
                    };
                    let name = index.dir_name(child);
                    if dir == 0 && self.ctx.is_excluded(name) {
                        continue;
                    }
                    if let Some(id) = self.index_dir(at, false)? {
                        nodes.push(leaf(name, TREE, id));
                    }
                }
            }
        }
        if nodes.is_empty() {
            return Ok(None);
        }
        hash_tree(self.ctx, &nodes).map(Some)
    }

    /// Returns the tree of what is on disk.
    pub(super) fn of_disk(&mut self) -> Result<Id, Stop> {
        let left_out = self.ctx.has_excluded();
        let marked = self.marked.first().copied().unwrap_or(false);
        if !left_out
            && !marked
            && let Some(Some(id)) = self.cached.first()
        {
            return Ok(*id);
        }
        let nodes = self.nodes(Some(0), b"", 0..self.additions.len())?;
        hash_tree(self.ctx, &nodes)
    }

    fn disk_dir(
        &mut self,
        dir: Option<usize>,
        path: &[u8],
        additions: Range<usize>,
    ) -> Result<Option<Id>, Stop> {
        if let Some(dir) = dir {
            if additions.is_empty()
                && !self.marked.get(dir).copied().unwrap_or(true)
                && let Some(Some(id)) = self.cached.get(dir)
            {
                return Ok(Some(*id));
            }
            if let Some(id) = self.known.get(&dir) {
                return Ok(*id);
            }
        }
        let nodes = self.nodes(dir, path, additions)?;
        let id = if nodes.is_empty() {
            None
        } else {
            Some(hash_tree(self.ctx, &nodes)?)
        };
        if let Some(dir) = dir {
            self.known.insert(dir, id);
        }
        Ok(id)
    }

    /// Returns the children of a directory on disk, in tree order.
    fn nodes(
        &mut self,
        dir: Option<usize>,
        path: &[u8],
        additions: Range<usize>,
    ) -> Result<Vec<Node>, Stop> {
        let index = self.ctx.index;
        let mut nodes: Vec<Node> = Vec::new();
        // Additions by their next name: a leaf, or a folder with a range of its own.
        let mut added: Vec<(&[u8], Option<Leaf>, Range<usize>)> = Vec::new();
        let skip = if path.is_empty() { 0 } else { path.len() + 1 };
        for at in additions {
            let Some(addition) = self.additions.get(at) else {
                continue;
            };
            let rest = addition.path.get(skip..).unwrap_or_default();
            match memchr::memchr(b'/', rest) {
                None => added.push((rest, Some(addition.leaf), 0..0)),
                Some(slash) => {
                    let name = rest.get(..slash).unwrap_or_default();
                    match added.last_mut() {
                        Some((last, None, range)) if *last == name => range.end = at + 1,
                        _ => added.push((name, None, at..at + 1)),
                    }
                }
            }
        }
        let mut taken = vec![false; added.len()];
        let mut by_name: HashMap<&[u8], [Option<usize>; 2]> = HashMap::new();
        for (at, (name, leaf, _)) in added.iter().enumerate() {
            let [of_leaf, of_folder] = by_name.entry(name).or_default();
            *(if leaf.is_some() { of_leaf } else { of_folder }) = Some(at);
        }
        let find = |name: &[u8]| by_name.get(name).copied().unwrap_or_default();
        let root = path.is_empty();
        let children: Vec<Child> = dir.map_or_else(Vec::new, |dir| index.children(dir).collect());
        let mut previous: Option<&[u8]> = None;
        for child in children {
            match child {
                Child::Entry(at) => {
                    let Some(entry) = index.entries.get(at) else {
                        continue;
                    };
                    let name = index.name(entry);
                    if root && self.ctx.is_excluded(name) {
                        continue;
                    }
                    let stands = entry.flags & (flag::STAGE | flag::INTENT) == 0;
                    let found = match self.overrides.get(&at) {
                        Some(found) => *found,
                        None if stands => Some(Leaf {
                            mode: index.mode(entry),
                            id: Id::of(index.id(entry)),
                        }),
                        None => None,
                    };
                    // An addition of the same name is the same path, seen from the other side.
                    let [added_leaf, added_folder] = find(name);
                    if let Some(place) = added_leaf.and_then(|at| taken.get_mut(at)) {
                        *place = true;
                    }
                    let found = found.or_else(|| {
                        added_leaf
                            .and_then(|at| added.get(at))
                            .and_then(|(_, leaf, _)| *leaf)
                    });
                    // A folder of this name displaces an entry that git was told is absent.
                    if let Some(found) = found
                        && previous != Some(name)
                        && added_folder.is_none()
                    {
                        nodes.push(leaf(name, found.mode, found.id));
                        previous = Some(name);
                    }
                }
                Child::Dir(at) => {
                    let Some(child) = index.dirs.get(at) else {
                        continue;
                    };
                    let name = index.dir_name(child);
                    // A file or link of this name displaces the directory.
                    let [added_leaf, added_folder] = find(name);
                    if (root && self.ctx.is_excluded(name)) || added_leaf.is_some() {
                        continue;
                    }
                    let range = match added_folder {
                        Some(found) => {
                            if let Some(place) = taken.get_mut(found) {
                                *place = true;
                            }
                            added.get(found).map_or(0..0, |(_, _, range)| range.clone())
                        }
                        None => 0..0,
                    };
                    let below = index.dir_path(child).to_vec();
                    if let Some(id) = self.disk_dir(Some(at), &below, range.clone())? {
                        nodes.push(Node {
                            name: name.to_vec(),
                            mode: TREE,
                            id,
                            dir: Some(at),
                            additions: range,
                        });
                    }
                }
            }
        }
        for ((name, leaf_of, range), taken) in added.iter().zip(taken) {
            if taken {
                continue;
            }
            if let Some(found) = leaf_of {
                nodes.push(leaf(name, found.mode, found.id));
            } else if let Some(id) = self.disk_dir(None, &join(path, name), range.clone())? {
                nodes.push(Node {
                    name: name.to_vec(),
                    mode: TREE,
                    id,
                    dir: None,
                    additions: range.clone(),
                });
            }
        }
        nodes.sort_by(|a, b| tree_order(&a.name, a.mode == TREE, &b.name, b.mode == TREE));
        Ok(nodes)
    }
}

fn leaf(name: &[u8], mode: u32, id: Id) -> Node {
    Node {
        name: name.to_vec(),
        mode,
        id,
        dir: None,
        additions: 0..0,
    }
}

fn mark(index: &Index, marked: &mut [bool], dir: usize) {
    let path = index
        .dirs
        .get(dir)
        .map(|dir| index.dir_path(dir))
        .unwrap_or_default();
    if let Some(place) = marked.get_mut(dir) {
        *place = true;
    }
    mark_path(index, marked, path);
}

/// Marks every directory above a path.
fn mark_path(index: &Index, marked: &mut [bool], path: &[u8]) {
    if let Some(root) = marked.first_mut() {
        *root = true;
    }
    for slash in memchr::memchr_iter(b'/', path) {
        let Some(dir) = path.get(..slash).and_then(|path| index.find_dir(path)) else {
            return;
        };
        if let Some(place) = marked.get_mut(dir) {
            *place = true;
        }
    }
}

/// Returns the tree of each directory of the index, by number; `None` where an entry is unmerged or only announced. The second
/// value tells whether the index's own tree cache says the same.
///
/// That cache is not to be believed unseen: after `git checkout -f -B` it was found to hold the trees of HEAD beside entries
/// that differ, and git then commits and shows those.
pub(super) fn of_entries(ctx: &Ctx<'_>) -> Result<(Vec<Option<Id>>, bool), Stop> {
    let index = ctx.index;
    let mut ids: Vec<Option<Id>> = vec![None; index.dirs.len()];
    let mut bytes = Vec::new();
    // Directories stand before those in them.
    for number in (0..index.dirs.len()).rev() {
        bytes.clear();
        let mut whole = true;
        for child in index.children(number) {
            let (name, mode, id) = match child {
                Child::Entry(at) => match index.entries.get(at) {
                    Some(entry) if entry.flags & (flag::STAGE | flag::INTENT) == 0 => {
                        (index.name(entry), index.mode(entry), index.id(entry))
                    }
                    Some(_) | None => {
                        whole = false;
                        break;
                    }
                },
                Child::Dir(at) => {
                    let (Some(dir), Some(Some(id))) = (index.dirs.get(at), ids.get(at)) else {
                        whole = false;
                        break;
                    };
                    (index.dir_name(dir), TREE, id.bytes(ctx.hash_len))
                }
            };
            put_node(&mut bytes, mode, name, id);
        }
        if whole && let Some(place) = ids.get_mut(number) {
            *place = Some(Reader::object(ctx.kind, "tree", &bytes)?);
        }
    }
    let agreed = cached(index, ctx.hash_len)
        .iter()
        .zip(&ids)
        .all(|(cached, found)| cached.is_none() || cached == found);
    Ok((ids, agreed))
}

fn put_node(bytes: &mut Vec<u8>, mode: u32, name: &[u8], id: &[u8]) {
    // The modes there are, in octal without a leading zero.
    match mode {
        0o100_644 => bytes.extend_from_slice(b"100644 "),
        0o100_755 => bytes.extend_from_slice(b"100755 "),
        TREE => bytes.extend_from_slice(b"40000 "),
        other => bytes.extend(format!("{other:o} ").bytes()),
    }
    bytes.extend_from_slice(name);
    bytes.push(0);
    bytes.extend_from_slice(id);
}

/// Reads the tree cache of the index (`gitformat-index`, "Cache tree"), by number of the directory.
pub(super) fn cached(index: &Index, hash_len: usize) -> Vec<Option<Id>> {
    let mut ids = vec![None; index.dirs.len()];
    let Some(range) = index.trees.clone() else {
        return ids;
    };
    let bytes = index.bytes().get(range).unwrap_or_default();
    let mut at = 0;
    // What cannot be read is computed.
    if read_node(index, bytes, &mut at, hash_len, Some(0), &mut ids, 0).is_none() {
        return vec![None; index.dirs.len()];
    }
    ids
}

/// As [`cached`], with the root's alone.
pub(super) fn cached_root(index: &Index, hash_len: usize) -> Vec<Option<Id>> {
    let mut ids = vec![None; index.dirs.len()];
    let bytes = index
        .trees
        .clone()
        .and_then(|range| index.bytes().get(range))
        .unwrap_or_default();
    // What cannot be read is not there.
    let _children: Option<usize> = read_head(index, bytes, &mut 0, hash_len, Some(0), &mut ids);
    ids
}

/// Reads a node of the tree cache up to its children, and returns how many there are.
fn read_head(
    index: &Index,
    bytes: &[u8],
    at: &mut usize,
    hash_len: usize,
    dir: Option<usize>,
    ids: &mut [Option<Id>],
) -> Option<usize> {
    // The name was read by the caller; the root's is empty.
    let zero = *at + memchr::memchr(0, bytes.get(*at..)?)?;
    *at = zero + 1;
    let line = *at + memchr::memchr(b'\n', bytes.get(*at..)?)?;
    let numbers = std::str::from_utf8(bytes.get(*at..line)?).ok()?;
    *at = line + 1;
    let (count, children) = numbers.split_once(' ')?;
    let count: i64 = count.parse().ok()?;
    let children: usize = children.parse().ok()?;
    if count >= 0 {
        let id = Id::of(bytes.get(*at..*at + hash_len)?);
        *at += hash_len;
        // It stands for as many entries as the directory has, or it is not this directory's.
        if let Some(dir) = dir
            && let Some(held) = index.dirs.get(dir).map(|dir| dir.entries.len())
            && i64::try_from(held) == Ok(count)
            && let Some(place) = ids.get_mut(dir)
        {
            *place = Some(id);
        }
    }
    Some(children)
}

fn read_node(
    index: &Index,
    bytes: &[u8],
    at: &mut usize,
    hash_len: usize,
    dir: Option<usize>,
    ids: &mut [Option<Id>],
    depth: u32,
) -> Option<()> {
    if depth > 4_096 {
        return None;
    }
    let children = read_head(index, bytes, at, hash_len, dir, ids)?;
    // Its children are in another order than the index's: by length first.
    let mut names: Vec<(&[u8], usize)> = Vec::new();
    if children > 0
        && let Some(dir) = dir
    {
        names.extend(index.children(dir).filter_map(|child| match child {
            Child::Dir(at) => Some((index.dir_name(index.dirs.get(at)?), at)),
            Child::Entry(_) => None,
        }));
        names.sort_unstable();
    }
    for _ in 0..children {
        let end = *at + memchr::memchr(0, bytes.get(*at..)?)?;
        let name = bytes.get(*at..end)?;
        let child = names
            .binary_search_by_key(&name, |(name, _)| name)
            .ok()
            .and_then(|found| names.get(found))
            .map(|(_, child)| *child);
        read_node(index, bytes, at, hash_len, child, ids, depth + 1)?;
    }
    Some(())
}
