//! A seeded random walk through the states of a work tree, judged by plain git after every step.
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use takeup_core::fingerprint::{Look, Method, Options, look};
use takeup_core::ids::Fingerprint;

use super::judge;
use super::repo::Repo;

mod mutations;

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
        let repo = Repo::with_format(format);
        std::fs::create_dir_all(repo.path(".git/takeup")).expect("a folder");
        let mut walk = Self {
            seed,
            random,
            repo,
            log: Vec::new(),
            old_cache: None,
            before: Vec::new(),
            tally: Tally::default(),
            steps: 0,
        };
        if walk.random.below(2) == 0 {
            walk.repo
                .git(["config", "--global", "filter.up.clean", "tr a-z A-Z"]);
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
        for _ in 0..=self.random.below(3) {
            self.mutate();
        }
        self.settle_conversions();
        let result = self.compare();
        result.map_err(|what| {
            let kept = std::env::temp_dir()
                .join(format!("takeup-difference-{}-{}", self.seed, self.steps));
            // A copy keeps the times; whether it worked is seen when it is looked at.
            drop(
                std::process::Command::new("cp")
                    .arg("-a")
                    .arg(self.repo.base())
                    .arg(&kept)
                    .status(),
            );
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
    /// would convert it anew. Where the settings changed, everything is touched, so that all look at it.
    fn settle_conversions(&mut self) {
        let mut now = Vec::new();
        for path in [
            self.repo.path(".git/config"),
            self.repo.path(".git/info/attributes"),
            self.repo.base().join("home/.gitconfig"),
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
            self.touch_all();
        }
    }

    fn look(&self, change: impl FnOnce(&mut Options<'_>)) -> Result<Look, String> {
        let mut options = Options::reading_only(&self.repo.env);
        change(&mut options);
        look(&self.repo.place(), &options).map_err(|error| error.to_string())
    }

    fn cached(&self) -> Result<Look, String> {
        self.look(|options| options.write_cache = true)
    }

    fn compare(&mut self) -> Result<(), String> {
        let index = self.index_state();
        let judged = judge::tree(&self.repo.root, &self.repo.env);
        let plain = self.look(|options| options.use_cache = false)?;
        let mut looks = vec![
            ("engine", plain),
            ("cached", self.cached()?),
            ("cached again", self.cached()?),
        ];
        if judged.is_err() || self.random.below(6) == 0 {
            looks.push((
                "git",
                self.look(|options| options.method = Some(Method::Git))?,
            ));
        }
        if self.random.below(4) == 0 {
            looks.push(("verify", self.look(|options| options.verify = true)?));
        }
        if self.index_state() != index {
            return Err("the index was written".to_owned());
        }
        self.tally.fallbacks += u64::from(looks.iter().any(|(_, look)| look.fallback.is_some()));
        let judged = match judged {
            Ok(tree) => tree,
            Err(why) => {
                self.tally.refused += 1;
                // git refuses; where our two readings are both whole they must still agree.
                let whole: Vec<_> = looks
                    .iter()
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
                return Ok(());
            }
        };
        self.tally.judged += 1;
        let mut problems = String::new();
        for (name, look) in &looks {
            let seen = look.record.fingerprint.as_ref().map(Fingerprint::tree);
            // The method of last resort may say that it cannot tell: git complains of links that go in circles.
            if *name == "git" && seen.is_none() {
                continue;
            }
            if seen != Some(judged.as_str()) {
                let _: std::fmt::Result = writeln!(
                    problems,
                    "{name}: {seen:?}, plain git {judged}, incomplete {:?}, fallback {:?}",
                    look.record.incomplete, look.fallback
                );
            } else if let Some((first, other)) = looks.first()
                && other.record != look.record
            {
                let _: std::fmt::Result = writeln!(
                    problems,
                    "{name} and {first} differ beside the tree:\n{:#?}\n{:#?}",
                    look.record, other.record
                );
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    fn index_state(&self) -> Option<(u64, u64, i64, i64)> {
        let meta = self.repo.path(".git/index").symlink_metadata().ok()?;
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
