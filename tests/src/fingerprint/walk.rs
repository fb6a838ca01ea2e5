//! A seeded random walk through the states of a work tree, judged by plain git after every step.
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use takeup_core::fingerprint::{Look, Method, Options, look};
use takeup_core::ids::Fingerprint;
use takeup_core::paths::{bytes_of_text, text_of_bytes};

use super::judge::{self, Whole};
use super::repo::Repo;

mod mutations;
mod repositories;

/// A small generator of numbers (splitmix64), so that a walk is told by its seed alone.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Makes one from a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or(0)
    }

    /// Chooses one of some.
    pub fn choose<T: Copy>(&mut self, some: &[T]) -> T {
        let at = self.below(some.len());
        *some.get(at).expect("something to choose from")
    }
}

/// What a walk met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Steps that were judged.
    pub judged: u64,
    /// States that git itself refuses.
    pub refused: u64,
    /// Looks that the engine left to git.
    pub fallbacks: u64,
    /// Steps at which a clean file would have another id if it was added anew: its conversion was switched on later.
    pub drifts: u64,
}

/// A difference between a look and plain git.
#[derive(Debug)]
pub struct Difference {
    /// The seed of the walk.
    pub seed: u64,
    /// The step.
    pub step: u64,
    /// What differed.
    pub what: String,
    /// The last things that were done.
    pub log: Vec<String>,
    /// The repository, kept for looking at.
    pub kept: PathBuf,
}

/// A walk.
#[derive(Debug)]
pub struct Walk {
    seed: u64,
    random: Random,
    repo: Repo,
    log: Vec<String>,
    old_cache: Option<Vec<u8>>,
    before: Vec<u8>,
    /// Filters that only the repository configures may run.
    trusting: bool,
    touched: bool,
    format: &'static str,
    /// What each fingerprint stood for, and which fingerprint stood for what.
    prints: [HashMap<String, String>; 2],
    /// What was met so far.
    pub tally: Tally,
    steps: u64,
}

impl Walk {
    /// Begins a walk in a new repository.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let format = if random.below(5) == 0 {
            "sha256"
        } else {
            "sha1"
        };
        let repo = if random.below(4) == 0 {
            Repo::linked(format)
        } else {
            Repo::with_format(format)
        };
        std::fs::create_dir_all(repo.common("takeup")).expect("a folder");
        let mut walk = Self {
            seed,
            random,
            repo,
            log: Vec::new(),
            old_cache: None,
            before: Vec::new(),
            trusting: false,
            touched: false,
            format,
            prints: [HashMap::new(), HashMap::new()],
            tally: Tally::default(),
            steps: 0,
        };
        if walk.random.below(2) == 0 {
            walk.repo
                .git(["config", "--global", "filter.up.clean", "tr a-z A-Z"]);
        }
        walk.trusting = walk.random.below(3) == 0;
        if walk.trusting {
            walk.repo.git(["config", "filter.own.clean", "tr a-y b-z"]);
        }
        for _ in 0..10 {
            walk.write_file();
        }
        walk.repo.commit();
        walk
    }

    /// Changes something and compares.
    pub fn step(&mut self) -> Result<(), Box<Difference>> {
        self.steps += 1;
        let lock = self.repo.own("index.lock");
        if lock.exists() && self.random.below(3) == 0 {
            drop(std::fs::remove_file(lock));
        }
        for _ in 0..=self.random.below(3) {
            self.mutate();
        }
        self.settle_conversions();
        let result = self.compare();
        result.map_err(|what| {
            let kept = self.repo.keep();
            Box::new(Difference {
                seed: self.seed,
                step: self.steps,
                what,
                log: self.log.iter().rev().take(24).rev().cloned().collect(),
                kept,
            })
        })
    }

    fn say(&mut self, what: impl Into<String>) {
        self.log.push(format!("{}: {}", self.steps, what.into()));
    }

    /// A clean entry stays what it was under the conversion of its time, for git and for us; plain git without stat data
    /// would convert it anew. Where the settings changed, mostly everything is touched, so that all look at it.
    fn settle_conversions(&mut self) {
        let mut now = Vec::new();
        for path in [
            self.repo.common("config"),
            self.repo.own("config.worktree"),
            self.repo.common("info/attributes"),
            self.repo.base().join("home/.gitconfig"),
            self.repo.base().join("home/.config/git/attributes"),
            self.repo.base().join("home/attributes"),
        ] {
            now.extend(std::fs::read(path).unwrap_or_default());
        }
        gather(&self.repo.root, &mut |path, meta| {
            if path.file_name() == Some(OsStr::new(".gitattributes")) {
                now.extend(path.as_os_str().as_bytes());
                now.push(u8::from(meta.is_file()));
                now.extend(std::fs::read(path).unwrap_or_default());
            }
        });
        if now != self.before {
            self.before = now;
            if self.random.below(4) > 0 {
                self.touch_all();
            }
        }
    }

    fn look(&self, change: impl FnOnce(&mut Options<'_>)) -> Result<Look, String> {
        let mut options = Options::reading_only(&self.repo.env);
        options.repository_programs = self.trusting;
        change(&mut options);
        look(&self.repo.place(), &options).map_err(|error| error.to_string())
    }

    fn cached(&self) -> Result<Look, String> {
        self.look(|options| options.write_cache = true)
    }

    fn compare(&mut self) -> Result<(), String> {
        let index = self.index_state();
        let judged = judge::whole(&self.repo.root, &self.repo.env);
        let plain = self.look(|options| options.use_cache = false)?;
        let mut looks = vec![("engine", plain), ("cached", self.cached()?)];
        if self.random.below(3) == 0 {
            looks.push(("cached again", self.cached()?));
        }
        if judged.is_err() || self.random.below(6) == 0 {
            looks.push((
                "git",
                self.look(|options| options.method = Some(Method::Git))?,
            ));
        }
        let nested = judged
            .as_ref()
            .is_ok_and(|judged| !judged.nested.is_empty());
        if nested || self.random.below(4) == 0 {
            looks.push(("verify", self.look(|options| options.verify = true)?));
        }
        if self.index_state() != index {
            return Err("the index was written".to_owned());
        }
        self.tally.fallbacks += u64::from(looks.iter().any(|(_, look)| look.fallback.is_some()));
        let trusts = |name: &str| !matches!(name, "git" | "verify");
        let judged = match judged {
            Ok(whole) => whole,
            Err(why) => {
                self.tally.refused += 1;
                // git refuses; where our readings are whole they must still agree, those that trust stat data and those
                // that read everything.
                for trusting in [true, false] {
                    let whole: Vec<_> = looks
                        .iter()
                        .filter(|(name, _)| trusts(name) == trusting)
                        .filter(|(_, look)| look.record.incomplete.is_none())
                        .collect();
                    if let [(_, first), rest @ ..] = whole.as_slice()
                        && let Some((name, other)) =
                            rest.iter().find(|(_, look)| look.record != first.record)
                    {
                        return Err(format!(
                            "{name} differs where git refuses ({why}):\n{:#?}\n{:#?}",
                            first.record, other.record
                        ));
                    }
                }
                return Ok(());
            }
        };
        self.tally.judged += 1;
        // What git remarks on a name of two lines is taken for a shortfall: rather that than one that is overheard.
        looks.retain(|(name, look)| {
            let Some(why) = &look.record.incomplete else {
                return true;
            };
            // A repository inside is looked at by git alone at times, whatever looks at the one around it.
            let by_git = *name == "git" || look.fallback.is_some() || why.contains("git ");
            !by_git || !why.ends_with("new")
        });
        let mut problems = String::new();
        let mut drifted = false;
        for (name, look) in &looks {
            let seen = look.record.fingerprint.as_ref().map(Fingerprint::tree);
            if seen == Some(judged.tree.as_str()) {
                continue;
            }
            if trusts(name) && seen.is_some() && self.is_drift(look)? {
                drifted = true;
                continue;
            }
            let _: std::fmt::Result = writeln!(
                problems,
                "{name}: {seen:?}, plain git {}, incomplete {:?}, fallback {:?}",
                judged.tree, look.record.incomplete, look.fallback
            );
        }
        self.tally.drifts += u64::from(drifted);
        if let Some(((first, look), others)) = looks.split_first()
            && problems.is_empty()
            && !drifted
        {
            for (name, other) in others {
                if other.record != look.record {
                    let _: std::fmt::Result = writeln!(
                        problems,
                        "{name} and {first} differ beside the tree:\n{:#?}\n{:#?}",
                        other.record, look.record
                    );
                }
            }
            // Nothing drifts where nothing is trusted, not even in a repository inside.
            let strict = others.iter().find(|(name, _)| *name == "verify");
            let strict = strict.map_or(look, |(_, look)| look);
            problems.push_str(&self.beside_the_tree(strict, &judged));
        }
        if !problems.is_empty() && !judged.nested.is_empty() && !self.touched {
            // What is clean in a repository inside may drift as well: once everything was touched, nothing does.
            self.touched = true;
            self.touch_all();
            let result = self.compare();
            self.touched = false;
            return result;
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    /// Tells whether a look differs from plain git only at files that are, byte for byte, what git checks out of the index.
    fn is_drift(&self, look: &Look) -> Result<bool, String> {
        let (root, env) = (&self.repo.root, &self.repo.env);
        let judged = judge::entries(root, env)?;
        let mut ours = judge::head_entries(root, env)?;
        let links: Vec<String> = look
            .record
            .submodules
            .iter()
            .map(|inner| format!("{}/", inner.path))
            .collect();
        for deviation in &look.record.deviations {
            let path = bytes_of_text(&deviation.path).ok_or("a path that was not written by us")?;
            if links.iter().any(|link| deviation.path.starts_with(link)) {
                continue;
            }
            match (&deviation.mode, &deviation.oid) {
                (Some(mode), Some(oid)) => {
                    ours.insert(path, (mode.clone(), oid.as_str().to_owned()));
                }
                (None, _) => drop(ours.remove(&path)),
                (Some(_), None) => {}
            }
        }
        let mut paths: Vec<_> = judged.keys().chain(ours.keys()).collect();
        paths.sort();
        paths.dedup();
        let mut differing = paths
            .into_iter()
            .filter(|path| judged.get(*path) != ours.get(*path))
            .peekable();
        Ok(differing.peek().is_some()
            && differing.all(|path| {
                ours.get(path).is_some_and(|entry| {
                    judged.contains_key(path) && judge::is_checked_out(root, env, path, entry)
                })
            }))
    }

    /// Compares what is said of the repositories inside, and sees that equal content has one fingerprint and other content
    /// another.
    fn beside_the_tree(&mut self, look: &Look, judged: &Whole) -> String {
        let mut problems = String::new();
        let mut seen: Vec<_> = look
            .record
            .submodules
            .iter()
            .map(|found| {
                let head = found.head.as_ref().map(|head| head.as_str().to_owned());
                (found.path.clone(), head, found.dirty)
            })
            .collect();
        let mut wanted: Vec<_> = judged
            .flat()
            .into_iter()
            .map(|(path, head, dirty)| (text_of_bytes(&path), head, dirty))
            .collect();
        seen.sort();
        wanted.sort();
        if seen != wanted {
            let _: std::fmt::Result = writeln!(
                problems,
                "repositories inside: {seen:?}, plain git {wanted:?}"
            );
        }
        let Some(print) = &look.record.fingerprint else {
            return problems;
        };
        let (print, content) = (print.as_str().to_owned(), judged.content());
        let [by_print, by_content] = &mut self.prints;
        let before = by_print
            .insert(print.clone(), content.clone())
            .unwrap_or_else(|| content.clone());
        if before != content {
            let _: std::fmt::Result = writeln!(
                problems,
                "{print} stood for {before}, and now for {content}"
            );
        }
        let before = by_content
            .insert(content.clone(), print.clone())
            .unwrap_or_else(|| print.clone());
        if before != print {
            let _: std::fmt::Result =
                writeln!(problems, "{content} was {before}, and now is {print}");
        }
        problems
    }

    fn index_state(&self) -> Option<(u64, u64, i64, i64)> {
        let meta = self.repo.own("index").symlink_metadata().ok()?;
        Some((meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
    }
}

/// Walks everything below a folder but `.git`.
fn gather(folder: &Path, found: &mut dyn FnMut(&Path, &std::fs::Metadata)) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if entry.file_name() == ".git" {
            continue;
        }
        let Ok(meta) = path.symlink_metadata() else {
            continue;
        };
        found(&path, &meta);
        if meta.is_dir() {
            gather(&path, found);
        }
    }
}
