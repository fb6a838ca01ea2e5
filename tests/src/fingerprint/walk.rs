//! A seeded random walk through the states of a work tree, judged by plain git after every step.
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use takeup_core::fingerprint::{Look, Method, Options, look};
use takeup_core::ids::Fingerprint;

use super::judge;
use super::repo::{Repo, put};

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

const DIRS: &[&[u8]] = &[
    b"",
    b"",
    b"",
    b"a",
    b"a/b",
    b"a/b/c",
    b"a-b",
    b"a.b",
    b"sp ace",
    b"\xc3\xa9",
    b"\xff",
    b"ign",
    b"n",
];
const NAMES: &[&[u8]] = &[
    b"f0",
    b"f1",
    b"f2",
    b"x.txt",
    b"X.txt",
    b"y.log",
    b"z.bin",
    b"w.id",
    b"v.flt",
    b"new\nline",
    b"\xfe\"q",
    b"-dash",
    b"!bang",
    b"#hash",
    b"trail ",
    b"a",
    b"b",
    b"keep.log",
    b"\\back",
    b"aa[b]",
    b"+x",
];
const RULES: &[&str] = &[
    "*.log",
    "!keep.log",
    "/a",
    "b/",
    "ign/",
    "ign/*",
    "!ign/f0",
    "**/c",
    "a/**/f1",
    "f[0-1]",
    "*",
    "!*/",
    "!f2",
    "x.txt",
    "\\#hash",
    "\\!bang",
    "trail\\ ",
    "trail ",
    "/a/b/",
    "a/b",
    "!a/b",
    "n",
    "# note",
    "",
    "*.t?t",
    "aa\\[b\\]",
    "é",
    "**",
    "/*",
    "!/a",
    "new*",
    "  f0",
    "f1\t",
];
const ATTRIBUTES: &[&str] = &[
    "* text=auto",
    "*.txt text",
    "*.bin -text",
    "*.id ident",
    "* -text",
    "*.flt filter=up",
    "x.txt eol=crlf",
    "*.log text=auto eol=lf",
    "[attr]mine text",
    "*.bin mine",
    "a/* text",
    "*.flt -filter",
    "b/ text",
];

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

    fn some_path(&mut self) -> Vec<u8> {
        let dir = self.random.choose(DIRS);
        let name = self.random.choose(NAMES);
        if dir.is_empty() {
            name.to_vec()
        } else {
            [dir, b"/", name].concat()
        }
    }

    /// Chooses a file, link or folder that is there.
    fn present(&mut self, want: impl Fn(&std::fs::Metadata) -> bool) -> Option<PathBuf> {
        let mut found = Vec::new();
        gather(&self.repo.root, &mut |path, meta| {
            if want(meta) {
                found.push(path.to_path_buf());
            }
        });
        found.sort();
        (!found.is_empty()).then(|| found.swap_remove(self.random.below(found.len())))
    }

    fn file(&mut self) -> Option<PathBuf> {
        self.present(std::fs::Metadata::is_file)
    }

    fn dir(&mut self) -> Option<PathBuf> {
        self.present(std::fs::Metadata::is_dir)
    }

    fn content(&mut self) -> Vec<u8> {
        let len = self.random.choose(&[0, 1, 3, 8, 8, 8, 40, 5000]);
        let letters = self
            .random
            .choose(&["abc\n", "ab\r\n", "a\0b\n", "$Id$\n", "$Id: x $\r\n"]);
        letters
            .bytes()
            .cycle()
            .skip(self.random.below(3))
            .take(len)
            .collect()
    }

    fn write_file(&mut self) {
        let path = self.some_path();
        let content = self.content();
        self.say(format!("write {}", path.escape_ascii()));
        let path = self.repo.path(&path);
        if make_way(&self.repo.root, &path) {
            put(&path, &content);
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm a mutation")]
    fn mutate(&mut self) {
        match self.random.below(52) {
            0..=5 => self.write_file(),
            6..=9 => self.same_size(false),
            10 | 11 => self.same_size(true),
            12 => {
                if let Some(path) = self.file() {
                    self.say(format!("chmod {path:?}"));
                    let mode = self.random.choose(&[0o644, 0o755, 0o600, 0o744]);
                    drop(std::fs::set_permissions(
                        &path,
                        std::fs::Permissions::from_mode(mode),
                    ));
                }
            }
            13 | 14 => {
                if let Some(from) = self.present(|_| true) {
                    let to = self.some_path();
                    self.say(format!("rename {from:?} to {}", to.escape_ascii()));
                    let to = self.repo.path(to);
                    rename(&from, &to);
                }
            }
            15 => {
                if let (Some(a), Some(b)) = (self.file(), self.file()) {
                    self.say(format!("swap {a:?} {b:?}"));
                    let middle = self.repo.root.join(".git/takeup-swap");
                    rename(&a, &middle);
                    rename(&b, &a);
                    rename(&middle, &b);
                }
            }
            16 | 17 => {
                if let Some(path) = self.file() {
                    self.say(format!("delete {path:?}"));
                    drop(std::fs::remove_file(path));
                }
            }
            18 => {
                if let Some(path) = self.dir() {
                    self.say(format!("delete folder {path:?}"));
                    drop(std::fs::remove_dir_all(path));
                }
            }
            19 | 20 => {
                if let Some(path) = self.present(|_| true) {
                    let target = self.random.choose(&["f0", "a", "../a", "/nowhere", "a/b"]);
                    self.say(format!("{path:?} becomes a link to {target}"));
                    remove(&path);
                    drop(std::os::unix::fs::symlink(target, path));
                }
            }
            21 => {
                if let Some(path) = self.file() {
                    self.say(format!("{path:?} becomes a folder"));
                    remove(&path);
                    put(&path.join("inner"), b"x\n");
                }
            }
            22 => {
                if let Some(path) = self.dir() {
                    self.say(format!("{path:?} becomes a file"));
                    remove(&path);
                    put(&path, b"y\n");
                }
            }
            23..=25 => {
                let rules = self.lines(RULES);
                let path = match self.random.below(6) {
                    0 => self.repo.path(".git/info/exclude"),
                    1 => self.repo.base().join("home/.config/git/ignore"),
                    2 => self.repo.path(".gitignore"),
                    _ => self
                        .dir()
                        .unwrap_or_else(|| self.repo.root.clone())
                        .join(".gitignore"),
                };
                self.say(format!("rules {path:?}: {rules:?}"));
                if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
                    remove(&path);
                }
                put(&path, rules.as_bytes());
            }
            26 => {
                let path = self
                    .dir()
                    .unwrap_or_else(|| self.repo.root.clone())
                    .join(".gitignore");
                self.say(format!("no rules {path:?}"));
                remove(&path);
            }
            27 => {
                let lines = self.lines(ATTRIBUTES);
                let path = match self.random.below(4) {
                    0 => self.repo.path(".git/info/attributes"),
                    1 => self
                        .dir()
                        .unwrap_or_else(|| self.repo.root.clone())
                        .join(".gitattributes"),
                    _ => self.repo.path(".gitattributes"),
                };
                self.say(format!("attributes {path:?}: {lines:?}"));
                if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
                    remove(&path);
                }
                put(&path, lines.as_bytes());
            }
            28 => {
                let (key, value) = self.random.choose(&[
                    ("core.fileMode", "false"),
                    ("core.fileMode", "true"),
                    ("core.autocrlf", "input"),
                    ("core.autocrlf", "false"),
                    ("core.autocrlf", "true"),
                ]);
                self.git(&["config", key, value]);
            }
            29..=33 => self.stage(),
            34 | 35 => {
                self.git(&["add", "-A"]);
                self.git(&["commit", "-q", "-m", "m"]);
            }
            36 => self.git(&["commit", "-q", "-a", "-m", "m"]),
            37 => {
                let branch = self.random.choose(&["one", "two", "main"]);
                self.git(&["checkout", "-q", "-f", "-B", branch]);
            }
            38 => {
                let branch = self.random.choose(&["one", "two", "main"]);
                self.git(&["checkout", "-q", "-f", branch]);
            }
            39 => {
                let branch = self.random.choose(&["one", "two", "main"]);
                self.git(&["merge", "-q", "--no-edit", branch]);
            }
            40 => self.git(&["reset", "-q", "--hard"]),
            41 => {
                let args = self.random.choose(&[
                    &["stash", "-u"],
                    &["stash", "pop"],
                    &["merge", "--abort"],
                ]);
                self.git(args);
            }
            42 => {
                let dir = self.random.choose(&["a", "a/b", "sp ace", "ign"]);
                match self.random.below(4) {
                    0 => self.git(&["sparse-checkout", "disable"]),
                    1 => self.git(&["sparse-checkout", "set", "--cone", "--sparse-index", dir]),
                    2 => self.git(&["sparse-checkout", "set", "--no-cone", dir]),
                    _ => self.git(&["sparse-checkout", "set", "--cone", "--no-sparse-index", dir]),
                }
            }
            43 | 44 => {
                if let Some(path) = self.file() {
                    let flag = self.random.choose(&[
                        "--skip-worktree",
                        "--no-skip-worktree",
                        "--assume-unchanged",
                        "--no-assume-unchanged",
                    ]);
                    self.say(format!("{flag} {path:?}"));
                    drop(self.repo.try_git(
                        &self.repo.root,
                        &[
                            OsStr::new("update-index"),
                            OsStr::new(flag),
                            path.as_os_str(),
                        ],
                    ));
                }
            }
            45 => {
                let version = self.random.choose(&["2", "3", "4"]);
                self.git(&["update-index", "--index-version", version]);
            }
            46 => self.nested(),
            47 => {
                let path = self.some_path();
                self.say(format!("pipe or hard link {}", path.escape_ascii()));
                let path = self.repo.path(path);
                if path.symlink_metadata().is_err() && path.parent().is_some_and(Path::is_dir) {
                    if self.random.below(2) == 0 {
                        if let Some(other) = self.file() {
                            drop(std::fs::hard_link(other, path));
                        }
                    } else {
                        drop(std::process::Command::new("mkfifo").arg(path).status());
                    }
                }
            }
            48 => {
                self.say("runtime folder");
                let name = self
                    .random
                    .choose(&[".agent-context/x", ".agent-context/y/z"]);
                let path = self.repo.path(name);
                if make_way(&self.repo.root, &path) {
                    put(&path, b"1");
                }
                if self.random.below(3) == 0 {
                    self.git(&["add", "-f", ".agent-context"]);
                }
            }
            49 => {
                self.say("touch all");
                self.touch_all();
            }
            50 => self.git(&["status", "--short"]),
            _ => self.damage_cache(),
        }
    }

    fn lines(&mut self, from: &[&str]) -> String {
        let mut text = String::new();
        for _ in 0..=self.random.below(4) {
            text.push_str(self.random.choose(from));
            text.push('\n');
        }
        text
    }

    fn git(&mut self, args: &[&str]) {
        self.say(format!("git {args:?}"));
        drop(self.repo.try_git(&self.repo.root, args));
    }

    /// Writes other bytes of the same length, at once after git or we looked, perhaps with the times put back.
    fn same_size(&mut self, put_back: bool) {
        let Some(path) = self.file() else { return };
        let Ok(meta) = path.metadata() else { return };
        let Ok(mut bytes) = std::fs::read(&path) else {
            return;
        };
        match self.random.below(4) {
            0 => {
                let path = path.clone();
                drop(
                    self.repo
                        .try_git(&self.repo.root, &[OsStr::new("add"), path.as_os_str()]),
                );
            }
            1 => drop(self.repo.try_git(&self.repo.root, &["status", "--short"])),
            2 => drop(self.cached()),
            _ => {}
        }
        let new = self.random.choose(b"pqr");
        for byte in bytes.iter_mut().filter(|byte| byte.is_ascii_lowercase()) {
            *byte = new;
        }
        self.say(format!("same size {path:?}, put back {put_back}"));
        put(&path, &bytes);
        if put_back && let Ok(file) = std::fs::File::options().write(true).open(&path) {
            drop(file.set_modified(meta.modified().expect("a time")));
        }
    }

    fn stage(&mut self) {
        let Some(path) = self.present(|_| true) else {
            return;
        };
        let args: &[&str] = match self.random.below(6) {
            0 | 1 => &["add"],
            2 => &["add", "-N"],
            3 => &["rm", "-r", "-q", "--cached"],
            4 => &["reset", "-q", "--"],
            _ => &["add", "-f"],
        };
        self.say(format!("git {args:?} {path:?}"));
        let args: Vec<&OsStr> = args
            .iter()
            .map(OsStr::new)
            .chain([path.as_os_str()])
            .collect();
        drop(self.repo.try_git(&self.repo.root, &args));
    }

    fn nested(&mut self) {
        let dir = self.random.choose(&["n", "a/n", "ign/n"]);
        let path = self.repo.path(dir);
        match self.random.below(6) {
            0 => {
                self.say(format!("young repository {dir}"));
                drop(self.repo.try_git(&self.repo.root, &["init", "-q", dir]));
            }
            1..=3 => {
                self.say(format!("commit in {dir}"));
                drop(self.repo.try_git(&self.repo.root, &["init", "-q", dir]));
                if path.join(".git").is_dir() {
                    put(&path.join("inner"), b"i\n");
                    drop(self.repo.try_git(&path, &["add", "-A"]));
                    drop(
                        self.repo
                            .try_git(&path, &["commit", "-q", "--allow-empty", "-m", "n"]),
                    );
                }
            }
            4 => {
                self.say(format!("dirt in {dir}"));
                if path.join(".git").is_dir() {
                    put(&path.join("inner"), b"dirt\n");
                }
            }
            _ => {
                self.say(format!("{dir} is no repository"));
                remove(&path.join(".git"));
            }
        }
    }

    fn damage_cache(&mut self) {
        let path = self.repo.path(".git/takeup/look.cache");
        let Ok(mut bytes) = std::fs::read(&path) else {
            return;
        };
        match self.random.below(4) {
            0 => {
                self.say("cache: a byte");
                let at = self.random.below(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 0x55;
                }
                put(&path, &bytes);
            }
            1 => {
                self.say("cache: cut");
                bytes.truncate(self.random.below(bytes.len()));
                put(&path, &bytes);
            }
            2 => {
                self.say("cache: kept aside");
                self.old_cache = Some(bytes);
            }
            _ => {
                self.say("cache: an old one");
                if let Some(old) = &self.old_cache {
                    put(&path, old);
                }
            }
        }
    }

    fn touch_all(&self) {
        gather(&self.repo.root, &mut |path, meta| {
            if meta.is_file()
                && let Ok(file) = std::fs::File::options().append(true).open(path)
            {
                drop(
                    file.set_modified(
                        std::fs::metadata(self.repo.base())
                            .and_then(|m| m.modified())
                            .expect("a time"),
                    ),
                );
            }
        });
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

fn remove(path: &Path) {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => drop(std::fs::remove_dir_all(path)),
        Ok(_) => drop(std::fs::remove_file(path)),
        Err(_) => {}
    }
}

#[expect(clippy::disallowed_methods, reason = "a rename of the tree under test")]
fn rename(from: &Path, to: &Path) {
    // Some renames cannot be; that is part of the walk.
    drop(std::fs::rename(from, to));
}

/// Makes the folders of a path below the root real ones, and the path free for a file; `false` where a folder stands there.
fn make_way(root: &Path, path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(root) else {
        return false;
    };
    let mut at = root.to_path_buf();
    for part in inside.parent().into_iter().flat_map(Path::components) {
        at.push(part);
        match at.symlink_metadata() {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => {
                remove(&at);
                drop(std::fs::create_dir_all(&at));
            }
            Err(_) => drop(std::fs::create_dir_all(&at)),
        }
    }
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => false,
        Ok(meta) if meta.is_file() => true,
        Ok(_) => {
            remove(path);
            true
        }
        Err(_) => true,
    }
}
