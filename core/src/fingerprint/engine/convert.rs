//! Files whose content git changes before it names it (line ends, `$Id$`, encodings, filters): git itself does it, for all
//! of them at once, in an index and an object folder that are thrown away.
use std::collections::HashMap;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, OFlags, statat};

use super::content::Id;
use super::files::open_dir;
use super::index::base_name;
use super::stat::Meta;
use super::walk::c_string;
use super::{Ctx, Pending, Stop, Target};
use crate::fingerprint::git::{Git, Scratch, split_at_byte};
use crate::fingerprint::program::filter_reason;

/// Returns the ids of `pending`, in its order. The number of programs that were started is added to `programs`.
pub(super) fn run(ctx: &Ctx<'_>, pending: &[Pending], programs: &mut u64) -> Result<Vec<Id>, Stop> {
    if pending.is_empty() {
        return Ok(Vec::new());
    }
    let scratch = Scratch::new()?;
    let index = scratch.file("index");
    let mut git = Git::new(ctx.place, ctx.options);
    git.scratch_objects(&scratch.objects());
    let blocked: Vec<&[u8]> = ctx
        .settings
        .filters
        .iter()
        .filter(|(_, repository)| **repository && !ctx.options.repository_programs)
        .map(|(name, _)| name.as_slice())
        .collect();
    for name in &blocked {
        git.without_filter(name);
    }
    let result = in_scratch(ctx, pending, &mut git, &index, &blocked);
    *programs += git.started;
    let ids = result?;
    for pending in pending {
        let dir = memchr::memrchr(b'/', &pending.path)
            .and_then(|slash| pending.path.get(..slash))
            .unwrap_or_default();
        let name = c_string(base_name(&pending.path))?;
        let Some(folder) = open_dir(ctx.root.as_fd(), dir, OFlags::PATH)? else {
            return Err(Stop::Moving);
        };
        match statat(folder.as_fd(), &*name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if Meta::of(&stat) == pending.meta => {}
            _ => return Err(Stop::Moving),
        }
    }
    Ok(ids)
}

fn in_scratch(
    ctx: &Ctx<'_>,
    pending: &[Pending],
    git: &mut Git<'_>,
    index: &std::path::Path,
    blocked: &[&[u8]],
) -> Result<Vec<Id>, Stop> {
    let mut paths = Vec::new();
    for pending in pending {
        paths.extend(&pending.path);
        paths.push(0);
    }
    let info = entries(ctx, pending);
    git.must(&["update-index", "-z", "--index-info"], &info, Some(index))?;
    if !blocked.is_empty() {
        let answer = git.must(
            &["check-attr", "--stdin", "-z", "filter"],
            &paths,
            Some(index),
        )?;
        let mut fields = answer.split(|byte| *byte == 0);
        while let (Some(path), Some(_), Some(value)) = (fields.next(), fields.next(), fields.next())
        {
            if blocked.contains(&value) {
                return Err(Stop::Incomplete(filter_reason(path, value)));
            }
        }
    }
    // Unlike `git add` this does not ask whether a folder above is a repository of its own: the index as it is knows
    // files in it, and then it is none.
    let added = git.run(
        &["update-index", "--add", "--replace", "-z", "--stdin"],
        &paths,
        Some(index),
    )?;
    if let Some(reason) = added.shortfall() {
        return Err(Stop::Incomplete(format!("git update-index: {reason}")));
    }
    let listing = git.must(&["ls-files", "-s", "-z"], b"", Some(index))?;
    let mut ids: HashMap<&[u8], Id> = HashMap::new();
    for line in listing.split(|byte| *byte == 0) {
        // `<mode> <id> <stage>\t<path>`
        if let Some((head, path)) = split_at_byte(line, b'\t')
            && let Some(id) = std::str::from_utf8(head)
                .ok()
                .and_then(|head| head.split(' ').nth(1))
                .and_then(Id::parse)
        {
            ids.insert(path, id);
        }
    }
    pending
        .iter()
        .map(|pending| {
            ids.get(pending.path.as_slice())
                .copied()
                .ok_or(Stop::Moving)
        })
        .collect()
}

/// Writes the index entries that bear on the conversion: those of the files (what the index holds decides about line ends)
/// and the files of attributes.
fn entries(ctx: &Ctx<'_>, pending: &[Pending]) -> Vec<u8> {
    let index = ctx.index;
    let mut info = Vec::new();
    let mut add = |at: usize| {
        if let Some(entry) = index.entries.get(at) {
            let line = format!(
                "{:06o} {} {}\t",
                index.mode(entry),
                Id::of(index.id(entry)).hex(ctx.hash_len),
                entry.flags & super::index::flag::STAGE
            );
            info.extend(line.bytes());
            info.extend(index.path(entry));
            info.push(0);
        }
    };
    let mut done = std::collections::HashSet::new();
    for pending in pending {
        if let Target::Entry { entry, .. } = pending.target {
            let name = index.entries.get(entry).map(|entry| index.name(entry));
            let mut at = entry;
            // The stages of an unmerged path follow one another.
            while index.entries.get(at).map(|entry| index.name(entry)) == name && done.insert(at) {
                add(at);
                at += 1;
                if index
                    .entries
                    .get(entry)
                    .is_some_and(|entry| entry.flags & super::index::flag::STAGE == 0)
                {
                    break;
                }
            }
        }
    }
    // Files of attributes that git was told are absent count all the same; others count as they are on disk.
    for number in 0..index.dirs.len() {
        if let Some(at) = index.entry_in(number, b".gitattributes")
            && ctx.is_skipped(at)
            && done.insert(at)
        {
            add(at);
        }
    }
    info
}
