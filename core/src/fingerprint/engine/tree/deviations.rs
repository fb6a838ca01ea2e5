//! What differs between HEAD's tree and the tree on disk.
use std::collections::HashSet;
use std::iter::Peekable;
use std::vec::IntoIter;

use super::super::Stop;
use super::super::content::Id;
use super::super::index::{flag, join};
use super::super::objects::Objects;
use super::{Node, TREE, Trees, leaf, tree_order};
use crate::fingerprint::scan::{self, Deviations, Tracked, named_twice};

/// How deep the folders of a commit may nest. git itself refuses at half of it (git-config(1), `core.maxTreeDepth`).
const DEEPEST: usize = 4_096;

/// An entry of a tree object: mode, name, id.
type Entry = (u32, Vec<u8>, Id);

/// One folder of HEAD and of the disk, on the way through both.
struct Level {
    path: Vec<u8>,
    /// The index names the folder as a whole.
    whole: bool,
    old: Peekable<IntoIter<Entry>>,
    new: Peekable<IntoIter<Node>>,
}

impl Level {
    /// Takes the next name, with what HEAD and the disk hold under it.
    fn step(&mut self) -> Option<(Vec<u8>, Option<Entry>, Option<Node>)> {
        let order = match (self.old.peek(), self.new.peek()) {
            (None, None) => return None,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((mode, name, _)), Some(node)) => {
                tree_order(name, *mode == TREE, &node.name, node.mode == TREE)
            }
        };
        let old = if order.is_le() { self.old.next() } else { None };
        let new = if order.is_ge() { self.new.next() } else { None };
        let name = match (&old, &new) {
            (Some((_, name, _)), _) => name.clone(),
            (None, Some(node)) => node.name.clone(),
            (None, None) => return None,
        };
        Some((name, old, new))
    }
}

impl Trees<'_, '_> {
    /// Compares HEAD's tree with what is on disk.
    pub(in super::super) fn deviations(
        &mut self,
        head: Option<Id>,
        disk: Id,
        objects: &mut Objects<'_>,
    ) -> Result<Deviations, Stop> {
        let mut deviations = Deviations::default();
        if head.unwrap_or(self.ctx.empty_tree) == disk && !self.ctx.has_excluded() {
            return Ok(deviations);
        }
        let root = Node {
            name: Vec::new(),
            mode: TREE,
            id: disk,
            dir: Some(0),
            additions: 0..self.additions.len(),
        };
        self.compare(head, &root, objects, &mut deviations)?;
        Ok(deviations)
    }

    /// Walks both trees side by side. Its own stack of levels, since a tree may nest deeper than calls can.
    fn compare(
        &mut self,
        head: Option<Id>,
        disk: &Node,
        objects: &mut Objects<'_>,
        deviations: &mut Deviations,
    ) -> Result<(), Stop> {
        let mut levels = vec![self.level(head, Some(disk), Vec::new(), objects)?];
        while let Some(level) = levels.last_mut() {
            let Some((name, a, b)) = level.step() else {
                levels.pop();
                continue;
            };
            let path = join(&level.path, &name);
            let whole = level.whole;
            let is_tree = a.as_ref().map_or_else(
                || b.as_ref().is_some_and(|node| node.mode == TREE),
                |(mode, _, _)| *mode == TREE,
            );
            let same = match (&a, &b) {
                (Some((mode, _, id)), Some(node)) => *mode == node.mode && *id == node.id,
                _ => false,
            };
            if same {
                continue;
            }
            if is_tree {
                if levels.len() > DEEPEST {
                    return Err(Stop::Incomplete(format!(
                        "the commit nests folders deeper than {DEEPEST} levels"
                    )));
                }
                let head = a.map(|(_, _, id)| id);
                levels.push(self.level(head, b.as_ref(), path, objects)?);
                continue;
            }
            let disk = match &b {
                Some(node) => Some(scan::Leaf {
                    mode: node.mode,
                    oid: node.id.oid(self.ctx.hash_len)?,
                }),
                None => None,
            };
            let tracked = match &disk {
                Some(leaf) if whole => Some(Tracked::Merged {
                    leaf: leaf.clone(),
                    flagged: true,
                }),
                Some(_) | None => self.tracked(&path, objects)?,
            };
            deviations.judge(&path, a.is_some(), disk, tracked.as_ref());
        }
        Ok(())
    }

    /// Reads what HEAD and the disk hold in one folder.
    fn level(
        &mut self,
        head: Option<Id>,
        disk: Option<&Node>,
        path: Vec<u8>,
        objects: &mut Objects<'_>,
    ) -> Result<Level, Stop> {
        let mut old = match head {
            Some(id) if id != self.ctx.empty_tree => objects.tree(&id)?,
            _ => Vec::new(),
        };
        // A damaged tree may name a path more than once; whoever reads it into an index keeps the last.
        old.dedup_by(|later, kept| {
            let twice = later.1 == kept.1;
            if twice {
                std::mem::swap(later, kept);
            }
            twice
        });
        if path.is_empty() {
            old.retain(|(_, name, _)| !self.ctx.is_excluded(name));
        }
        // A folder that the index names as a whole: what is in it is known to the object database alone.
        let whole = disk.filter(|node| node.dir.is_none() && node.additions.is_empty());
        let new = match (whole, disk) {
            (Some(node), _) => {
                let held = objects.tree(&node.id)?;
                let mut names = HashSet::new();
                if let Some((_, name, _)) = held.iter().find(|(_, name, _)| !names.insert(name)) {
                    return Err(Stop::Incomplete(named_twice(&join(&path, name))));
                }
                held.into_iter()
                    .map(|(mode, name, id)| leaf(&name, mode, id))
                    .collect()
            }
            (None, Some(node)) => self.nodes(node.dir, &path, node.additions.clone())?,
            (None, None) => Vec::new(),
        };
        Ok(Level {
            path,
            whole: whole.is_some(),
            old: old.into_iter().peekable(),
            new: new.into_iter().peekable(),
        })
    }

    /// Tells how the index knows a path.
    fn tracked(&self, path: &[u8], objects: &mut Objects<'_>) -> Result<Option<Tracked>, Stop> {
        let index = self.ctx.index;
        let Some(at) = index.find(path) else {
            return self.tracked_by_folder(path, objects);
        };
        let Some(entry) = index.entries.get(at) else {
            return Ok(None);
        };
        if entry.flags & flag::STAGE != 0 {
            return Ok(Some(Tracked::Conflicted));
        }
        Ok(Some(Tracked::Merged {
            leaf: scan::Leaf {
                mode: index.mode(entry),
                oid: Id::of(index.id(entry)).oid(self.ctx.hash_len)?,
            },
            flagged: entry.flags & (flag::ASSUMED | flag::SKIPPED) != 0,
        }))
    }

    /// Tells how the index knows a path by naming a folder above it as a whole.
    fn tracked_by_folder(
        &self,
        path: &[u8],
        objects: &mut Objects<'_>,
    ) -> Result<Option<Tracked>, Stop> {
        let index = self.ctx.index;
        if !index.sparse {
            return Ok(None);
        }
        let named = memchr::memchr_iter(b'/', path).find_map(|slash| {
            let entry = index.entries.get(index.find(path.get(..=slash)?)?)?;
            Some((entry, path.get(slash + 1..)?))
        });
        let Some((folder, below)) = named else {
            return Ok(None);
        };
        let mut held = (TREE, Id::of(index.id(folder)));
        for part in below.split(|byte| *byte == b'/') {
            let (mode, folder) = held;
            if mode != TREE {
                return Ok(None);
            }
            // Of a name that a damaged tree holds twice, the last counts.
            let entries = objects.tree(&folder)?;
            let Some((mode, _, id)) = entries.into_iter().rfind(|(_, name, _)| name == part) else {
                return Ok(None);
            };
            held = (mode, id);
        }
        let (mode, id) = held;
        Ok((mode != TREE).then_some(Tracked::Merged {
            leaf: scan::Leaf {
                mode,
                oid: id.oid(self.ctx.hash_len)?,
            },
            flagged: true,
        }))
    }
}
