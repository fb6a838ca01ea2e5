//! The names that the index does not know: ignore rules decide, then they are read, folders level by level.
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{AtFlags, OFlags, fstat, statat};
use rustix::io::Errno;

use super::cache::{Extra, Listing};
use super::content::Id;
use super::files::{open_beneath, open_dir, unreadable};
use super::index::join;
use super::stat::{Kind, Meta};
use super::walk::{DirOut, Found, Worker, c_string};
use super::{Addition, Ctx, Leaf, Pending, Stop, Target};
use crate::fingerprint::nested;
use crate::fingerprint::scan::GITLINK;

/// A piece of work.
enum Job {
    /// Judge some names in a directory.
    Judge(Vec<u8>, Vec<Extra>),
    /// List an untracked directory, and judge its names.
    List(Vec<u8>),
}

/// How many names of one directory make one piece of work.
const PART: usize = 256;

/// Looks at all extra names that `found` holds, and adds what it finds.
pub(super) fn run(ctx: &Ctx<'_>, found: &mut Found, threads: usize) -> Result<(), Stop> {
    let mut jobs: Vec<Job> = Vec::new();
    for (dir, names) in std::mem::take(&mut found.extras) {
        push(&mut jobs, &dir, names);
    }
    while !jobs.is_empty() {
        let names: usize = jobs
            .iter()
            .map(|job| match job {
                Job::Judge(_, names) => names.len(),
                Job::List(_) => 16,
            })
            .sum();
        let threads = threads.min(1 + names / 64).min(jobs.len());
        let next = AtomicUsize::new(0);
        let work = || -> Result<(Found, Vec<Job>), Stop> {
            let mut worker = Worker::new(ctx);
            let mut more = Vec::new();
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                match job {
                    Job::Judge(dir, names) => worker.judge(dir, names, None, &mut more)?,
                    Job::List(dir) => worker.untracked(dir, &mut more)?,
                }
            }
            Ok((worker.found, more))
        };
        let results = super::on_threads(threads, &work);
        let mut following = Vec::new();
        for result in results {
            let (part, more) = result?;
            found.append(part);
            following.extend(more);
        }
        jobs = following;
    }
    Ok(())
}

fn push(jobs: &mut Vec<Job>, dir: &[u8], names: Vec<Extra>) {
    if names.len() <= PART {
        jobs.push(Job::Judge(dir.to_vec(), names));
        return;
    }
    for part in names.chunks(PART) {
        jobs.push(Job::Judge(dir.to_vec(), part.to_vec()));
    }
}

impl Worker<'_, '_> {
    /// Lists a directory of which the index knows nothing.
    fn untracked(&mut self, dir: &[u8], more: &mut Vec<Job>) -> Result<(), Stop> {
        let ctx = self.ctx;
        ctx.options.check_interrupt()?;
        let slot = ctx
            .cache
            .and_then(|cache| cache.slots.get(cache.find(dir)?).map(|slot| (cache, slot)));
        let Some(folder) = open_beneath(ctx.root.as_fd(), dir)? else {
            return Err(Stop::Moving);
        };
        self.found.counters.stats += 1;
        let meta = Meta::of(&fstat(&folder).map_err(|error| unreadable(dir, error))?);
        let known = [0; 16];
        let mut out = DirOut::default();
        let mut names = None;
        if let Some((cache, slot)) = slot
            && ctx.lasting(&meta)
        {
            names = cache.listing(slot, &meta, &known);
        }
        let names = if let Some(names) = names {
            self.found.counters.cache_hits += 1;
            out.kept = true;
            names
        } else {
            self.note(&meta);
            let names = self.list(&folder, dir)?;
            if ctx.lasting(&meta) && meta.settled(ctx.begin) {
                out.listing = Some(Listing {
                    meta,
                    known,
                    extras: names.clone(),
                });
            }
            names
        };
        drop(folder);
        if names.len() > PART {
            self.found.outs.push((dir.to_vec(), out));
            push(more, dir, names);
            return Ok(());
        }
        self.judge(dir, &names, Some(out), more)
    }

    /// Judges names in a directory by the rules, and reads the files that are not ignored.
    fn judge(
        &mut self,
        dir: &[u8],
        names: &[Extra],
        out: Option<DirOut>,
        more: &mut Vec<Job>,
    ) -> Result<(), Stop> {
        let ctx = self.ctx;
        let mut out = out.unwrap_or_default();
        let rules = ctx
            .ignore
            .rules(ctx.root.as_fd(), dir, &|path| ctx.rules_in_index(path))?;
        let mut folder = None;
        let slot = ctx
            .cache
            .and_then(|cache| cache.slots.get(cache.find(dir)?).map(|slot| (cache, slot)));
        let files = slot
            .filter(|(_, slot)| slot.count > 0)
            .map_or_else(Vec::new, |(cache, slot)| cache.files(slot));
        for extra in names {
            let path = join(dir, &extra.name);
            if ctx
                .ignore
                .is_ignored(&rules, &path, extra.kind == Kind::Dir)
            {
                continue;
            }
            ctx.options.check_interrupt()?;
            if extra.kind == Kind::Dir {
                self.folder(path, more)?;
                continue;
            }
            if folder.is_none() {
                folder = open_dir(ctx.root.as_fd(), dir, OFlags::PATH)?;
            }
            let Some(folder) = &folder else {
                return Err(Stop::Moving);
            };
            let name = c_string(&extra.name)?;
            self.found.counters.stats += 1;
            let meta = match statat(folder, &*name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Meta::of(&stat),
                Err(Errno::NOENT | Errno::NOTDIR) => return Err(Stop::Moving),
                Err(error) => return Err(unreadable(&path, error)),
            };
            if meta.kind() != extra.kind {
                return Err(Stop::Moving);
            }
            let (meta, content) = self.content(
                folder.as_fd(),
                &name,
                &|| path.clone(),
                meta,
                &files,
                &mut out,
            )?;
            let mode = ctx.mode(&meta, None);
            if meta.kind() == Kind::File && self.converted(dir, &path, &content)? {
                self.found.pending.push(Pending {
                    path,
                    target: Target::Addition,
                    mode,
                    meta,
                });
                continue;
            }
            self.found.additions.push(Addition {
                path,
                leaf: Leaf {
                    mode,
                    id: content.raw,
                },
            });
        }
        self.found.outs.push((dir.to_vec(), out));
        Ok(())
    }

    /// A folder that the index does not know: a repository of its own, or one to look into.
    fn folder(&mut self, path: Vec<u8>, more: &mut Vec<Job>) -> Result<(), Stop> {
        let ctx = self.ctx;
        let Some(inner) = nested::place(ctx.place, &path).map_err(Stop::inside)? else {
            more.push(Job::List(path));
            return Ok(());
        };
        match crate::fingerprint::facts::head(&inner, ctx.options).map_err(Stop::inside)? {
            Some(head) => {
                let id = Id::parse(head.as_str()).unwrap_or_default();
                self.found.additions.push(Addition {
                    path,
                    leaf: Leaf { mode: GITLINK, id },
                });
            }
            None => self.found.headless.push(path),
        }
        Ok(())
    }
}
