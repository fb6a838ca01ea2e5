//! The fingerprint beside everything a user could put in its place.
//!
//! Repositories are generated from a seed. For each state the commands run in turn, round after round; the table gives the
//! median and the median of the pairwise ratios, and what each held in memory at most, in a run of its own. Only the ratios
//! mean something on a shared machine.
//!
//! gix's status is left out: it would bring a hundred crates into the workshop. The state `cold` empties the kernel's caches
//! before each run, which needs root and slows everything else on the machine.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, openat, statat};
use takeup_core::env::Env;
use takeup_core::fingerprint::{Options, look};
use takeup_core::repository::Place;

use super::middle;

/// Arguments of `bench fingerprint`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sizes of the repositories, in files
    #[arg(long, value_delimiter = ',', default_value = "500,10000,90000")]
    files: Vec<usize>,
    /// States to measure
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "clean,modified,untracked,ignored,fresh,touched,first"
    )]
    states: Vec<String>,
    /// Counted rounds
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Where the repositories are kept from run to run; else a folder that is thrown away
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Write the tables to `docs/benchmarks.md`
    #[arg(long)]
    write: bool,
}

/// One thing measured in a process of its own, for `bench fingerprint` itself.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// `prime`, `cached`, `plain`, `libgit2` or `limit`
    what: String,
    /// The repository
    root: PathBuf,
}

/// Runs one contender.
pub(crate) fn one(args: &One) -> anyhow::Result<()> {
    let root = args.root.canonicalize()?;
    let git_dir = root.join(".git");
    let place = Place {
        root: root.clone(),
        git_dir: git_dir.clone(),
        common_dir: git_dir,
    };
    let env = Env::of_process();
    let mut options = Options::reading_only(&env);
    match args.what.as_str() {
        "prime" => options.write_cache = true,
        "cached" => {}
        "plain" => options.use_cache = false,
        "verify" => options.verify = true,
        "libgit2" => return libgit2(&root),
        "limit" => return limit(&root),
        other => anyhow::bail!("{other} is not known"),
    }
    let look = look(&place, &options)?;
    let print = look.record.fingerprint.context("the look was incomplete")?;
    println!("{print} {:?} {:?}", look.method, look.counters);
    Ok(())
}

/// libgit2's status, and the ids of what differs.
fn libgit2(root: &Path) -> anyhow::Result<()> {
    let repository = git2::Repository::open(root)?;
    let mut options = git2::StatusOptions::new();
    options
        .include_untracked(true)
        .recurse_untracked_dirs(true)
        .update_index(false);
    for entry in repository.statuses(Some(&mut options))?.iter() {
        if let Ok(path) = entry.path()
            && root.join(path).is_file()
        {
            git2::Oid::hash_file(git2::ObjectType::Blob, root.join(path))?;
        }
    }
    Ok(())
}

/// The bare cost of looking at every entry and listing every directory, on as many threads as the engine; prints the
/// nanoseconds of that part alone.
fn limit(root: &Path) -> anyhow::Result<()> {
    let index = git2::Repository::open(root)?.index()?;
    let mut dirs: std::collections::BTreeMap<Vec<u8>, Vec<Vec<u8>>> =
        std::collections::BTreeMap::new();
    for entry in index.iter() {
        let (dir, name) = match entry.path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (
                entry.path.get(..slash).unwrap_or_default().to_vec(),
                entry.path.get(slash + 1..).unwrap_or_default().to_vec(),
            ),
            None => (b".".to_vec(), entry.path.clone()),
        };
        dirs.entry(dir).or_default().push(name);
    }
    let dirs: Vec<_> = dirs.into_iter().collect();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = openat(CWD, root, flags, Mode::empty())?;
    let threads = std::thread::available_parallelism()?.get();
    let next = AtomicUsize::new(0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut buffer = Vec::with_capacity(1 << 16);
                while let Some((dir, names)) = dirs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Ok(folder) = openat(&top, dir.as_slice(), flags, Mode::empty()) else {
                        continue;
                    };
                    let mut list = RawDir::new(&folder, buffer.spare_capacity_mut());
                    while let Some(Ok(_)) = list.next() {}
                    for name in names {
                        std::hint::black_box(
                            statat(&folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW).is_ok(),
                        );
                    }
                }
            });
        }
    });
    println!("{}", begun.elapsed().as_nanos());
    Ok(())
}

/// A command of a comparison.
struct Contender {
    name: &'static str,
    make: Box<dyn Fn() -> Command>,
    /// It prints its own time.
    own_time: bool,
}

/// Measures and prints.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir()?;
    let base = args
        .keep
        .clone()
        .unwrap_or_else(|| scratch.path().to_path_buf());
    fs::create_dir_all(&base)?;
    let base = base.canonicalize()?;
    let mut report = String::new();
    for files in &args.files {
        let repo = base.join(files.to_string());
        if !repo.join(".git/takeup").is_dir() {
            println!("making {files} files");
            generate(&repo, *files)?;
        }
        for state in &args.states {
            let table = measure(&repo, state, args.rounds)
                .with_context(|| format!("{files} files, {state}"))?;
            let text = format!("\n### {files} files, {}\n\n{table}", words(state));
            println!("{text}");
            report.push_str(&text);
        }
    }
    if args.write {
        write(&report)?;
    }
    Ok(())
}

fn words(state: &str) -> &str {
    match state {
        "clean" => "nothing changed",
        "modified" => "10 files changed",
        "untracked" => "1,000 untracked files",
        "ignored" => "an ignored folder of 50,000 files",
        "fresh" => "just checked out (index as old as the files)",
        "touched" => "every file touched, as on the second look",
        "first" => "every file touched, as on the first look",
        "cold" => "nothing changed, nothing in the kernel's caches",
        other => other,
    }
}

fn git(repo: &Path, args: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("git")
        .args(["-c", "user.name=b", "-c", "user.email=b@example.org"])
        .args(["-c", "core.fsync=none", "-c", "gc.auto=0"])
        .args(args)
        .current_dir(repo)
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "git {args:?} failed");
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "scratch files need no durability"
)]
fn put(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, content)?)
}

/// Text of some size, the same for the same number.
fn text(number: usize) -> Vec<u8> {
    let size = 200 + number * 7_919 % 7_000;
    let line = format!("line of file {number}: let value = compute(argument, {number});\n");
    line.bytes().cycle().take(size).collect()
}

/// Makes a repository with 12 to 13 files a directory, three levels deep.
fn generate(repo: &Path, files: usize) -> anyhow::Result<()> {
    fs::create_dir_all(repo)?;
    git(repo, &["init", "-q", "-b", "main"])?;
    git(repo, &["config", "gc.auto", "0"])?;
    put(&repo.join(".gitignore"), b"node_modules/\n*.o\n")?;
    for number in 1..files {
        let dir = number / 13;
        let path = format!("d{}/e{}/g{dir}/file{number}.rs", dir / 400, dir / 20);
        put(&repo.join(path), &text(number))?;
    }
    git(repo, &["add", "-A"])?;
    git(repo, &["commit", "-q", "-m", "one"])?;
    git(repo, &["repack", "-adq"])?;
    // The index settles: its stat data becomes older than itself.
    std::thread::sleep(Duration::from_secs(3));
    git(
        repo,
        &["update-index", "--really-refresh", "--force-write-index"],
    )?;
    git(repo, &["status"])?;
    fs::create_dir_all(repo.join(".git/takeup"))?;
    Ok(())
}

fn tracked(repo: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files"])
        .current_dir(repo)
        .output()?;
    Ok(String::from_utf8(output.stdout)?
        .lines()
        .map(str::to_owned)
        .collect())
}

/// Sets all files' times to now, so that no metadata in the index holds.
fn touch(repo: &Path) -> anyhow::Result<()> {
    for path in tracked(repo)? {
        let file = fs::File::options().append(true).open(repo.join(path))?;
        file.set_modified(fs::metadata("/proc/self")?.modified()?)?;
    }
    Ok(())
}

fn apply(repo: &Path, state: &str) -> anyhow::Result<()> {
    match state {
        "clean" | "cold" => {}
        "modified" => {
            let files = tracked(repo)?;
            for path in files.iter().step_by(files.len().div_ceil(10)) {
                put(&repo.join(path), b"changed\n")?;
            }
        }
        "untracked" => {
            for number in 0..1_000 {
                let path = format!("new{}/file{number}", number / 50);
                put(&repo.join(path), &text(number))?;
            }
        }
        "ignored" => {
            for number in 0..50_000 {
                let path = format!("node_modules/m{}/file{number}", number / 40);
                put(&repo.join(path), b"x")?;
            }
        }
        "fresh" => {
            fs::remove_file(repo.join(".git/index"))?;
            git(repo, &["reset", "-q", "--hard"])?;
            for path in tracked(repo)? {
                fs::remove_file(repo.join(path))?;
            }
            git(repo, &["checkout", "-q", "-f", "HEAD", "--", "."])?;
        }
        "touched" | "first" => touch(repo)?,
        other => anyhow::bail!("the state {other} is not known"),
    }
    Ok(())
}

fn undo(repo: &Path, state: &str) -> anyhow::Result<()> {
    for folder in ["node_modules"]
        .into_iter()
        .map(str::to_owned)
        .chain((0..20).map(|number| format!("new{number}")))
    {
        if repo.join(&folder).exists() {
            fs::remove_dir_all(repo.join(folder))?;
        }
    }
    git(repo, &["reset", "-q", "--hard"])?;
    if !matches!(state, "clean" | "cold") {
        std::thread::sleep(Duration::from_secs(3));
    }
    git(
        repo,
        &["update-index", "--really-refresh", "--force-write-index"],
    )?;
    git(repo, &["status"])
}

/// The index and our cache, put back before each run: `git status` writes the index.
struct Saved {
    files: Vec<(PathBuf, Vec<u8>, std::time::SystemTime)>,
}

impl Saved {
    fn of(repo: &Path) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for name in [".git/index", ".git/takeup/look.cache"] {
            let path = repo.join(name);
            if path.exists() {
                files.push((
                    path.clone(),
                    fs::read(&path)?,
                    fs::metadata(&path)?.modified()?,
                ));
            }
        }
        Ok(Self { files })
    }

    fn put_back(&self) -> anyhow::Result<()> {
        for (path, content, time) in &self.files {
            if fs::read(path)? != *content || fs::metadata(path)?.modified()? != *time {
                put(path, content)?;
                fs::File::options()
                    .write(true)
                    .open(path)?
                    .set_modified(*time)?;
            }
        }
        Ok(())
    }
}

fn contenders(repo: &Path, program: &Path, primed: bool) -> anyhow::Result<Vec<Contender>> {
    let me = std::env::current_exe()?;
    let helper = |what: &'static str| {
        let (me, repo) = (me.clone(), repo.to_path_buf());
        move || {
            let mut command = Command::new(&me);
            command.args(["bench", "one", what]).arg(&repo);
            command
        }
    };
    let shell = |script: &'static str| {
        let repo = repo.to_path_buf();
        move || {
            let mut command = Command::new("sh");
            command.args(["-c", script]).current_dir(&repo);
            command
        }
    };
    let takeup = {
        let (program, repo) = (program.to_path_buf(), repo.to_path_buf());
        move || {
            let mut command = Command::new(&program);
            command.args(["fingerprint", "--json"]).current_dir(&repo);
            command
        }
    };
    let new = |name, make: Box<dyn Fn() -> Command>, own_time| Contender {
        name,
        make,
        own_time,
    };
    let status = {
        let repo = repo.to_path_buf();
        move || {
            let mut command = Command::new("git");
            command
                .args(["status", "--porcelain", "-uall"])
                .current_dir(&repo);
            command
        }
    };
    let mut all = vec![new("git status --porcelain -uall", Box::new(status), false)];
    if primed {
        all.push(new("git takeup fingerprint", Box::new(takeup), false));
        all.push(new(
            "the look alone, with cache",
            Box::new(helper("cached")),
            false,
        ));
    }
    all.push(new(
        "the look alone, without cache",
        Box::new(helper("plain")),
        false,
    ));
    all.push(new(
        "git add -A, write-tree in a scratch index",
        Box::new(shell(
            "s=$(mktemp -d) && mkdir $s/o && cp .git/index $s/i && export GIT_INDEX_FILE=$s/i \
             GIT_OBJECT_DIRECTORY=$s/o GIT_ALTERNATE_OBJECT_DIRECTORIES=$PWD/.git/objects && git add -A && git write-tree; \
             rm -rf $s",
        )),
        false,
    ));
    all.push(new(
        "libgit2 status, and hashing",
        Box::new(helper("libgit2")),
        false,
    ));
    all.push(new(
        "OpenCode++'s two git calls, hashed",
        Box::new(shell(
            "{ git diff --binary HEAD; git status --porcelain=v1 -z --untracked-files=all; } | sha256sum",
        )),
        false,
    ));
    all.push(new(
        "limit: bare stats and listings",
        Box::new(helper("limit")),
        true,
    ));
    Ok(all)
}

fn measure(repo: &Path, state: &str, rounds: usize) -> anyhow::Result<String> {
    let program = super::release_program()?;
    let cache = repo.join(".git/takeup/look.cache");
    undo(repo, "clean")?;
    if cache.exists() {
        fs::remove_file(&cache)?;
    }
    apply(repo, state)?;
    std::thread::sleep(Duration::from_millis(300));
    let primed = state != "first";
    if primed {
        let me = std::env::current_exe()?;
        for _ in 0..2 {
            let status = Command::new(&me)
                .args(["bench", "one", "prime"])
                .arg(repo)
                .stdout(Stdio::null())
                .status()?;
            ensure!(status.success(), "priming failed");
        }
    }
    let saved = Saved::of(repo)?;
    let contenders = contenders(repo, &program, primed)?;
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for (contender, times) in contenders.iter().zip(&mut times) {
            saved.put_back()?;
            if state == "cold" {
                forget_files()?;
            }
            let mut command = (contender.make)();
            command.stdin(Stdio::null()).stderr(Stdio::null());
            let begun = Instant::now();
            let took = if contender.own_time {
                let output = command.output()?;
                let nanos: u64 = String::from_utf8(output.stdout)?.trim().parse()?;
                Duration::from_nanos(nanos)
            } else {
                let status = command.stdout(Stdio::null()).status()?;
                ensure!(status.success(), "{} failed: {status}", contender.name);
                begun.elapsed()
            };
            if round > 0 {
                times.push(took);
            }
        }
    }
    let mut peaks = Vec::new();
    for contender in &contenders {
        saved.put_back()?;
        peaks.push(peak((contender.make)())?);
    }
    undo(repo, state)?;
    Ok(table(&contenders, &times, &peaks))
}

/// Empties the kernel's caches of files, folders and metadata.
#[expect(
    clippy::disallowed_methods,
    reason = "this is no file but a switch of the kernel's"
)]
fn forget_files() -> anyhow::Result<()> {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3").context("the state `cold` needs root")
}

/// Runs a command and returns how many kilobytes it held in memory at most, as its last sign of life told.
fn peak(mut command: Command) -> anyhow::Result<u64> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let told = text
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok());
        peak = told.unwrap_or(peak);
    }
    Ok(peak)
}

fn table(contenders: &[Contender], times: &[Vec<Duration>], peaks: &[u64]) -> String {
    use std::fmt::Write as _;
    let first = times.first().cloned().unwrap_or_default();
    let mut text = "| command | median ms | min | max | git status takes so many times as long | peak memory, MiB |\n|---|---|---|---|---|---|\n".to_owned();
    for ((contender, times), peak) in contenders.iter().zip(times).zip(peaks) {
        // Of a script only the shell is seen.
        let memory = match contender.name {
            name if name.contains("scratch") || name.contains("calls") => String::new(),
            _ => format!("{}.{}", peak / 1024, peak % 1024 * 10 / 1024),
        };
        let mut ratios: Vec<f64> = first
            .iter()
            .zip(times)
            .map(|(first, time)| first.as_secs_f64() / time.as_secs_f64())
            .collect();
        ratios.sort_by(f64::total_cmp);
        let mut sorted: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        sorted.sort_by(f64::total_cmp);
        // Writing to a string cannot fail.
        let _: std::fmt::Result = writeln!(
            text,
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} | {memory} |",
            contender.name,
            middle(&sorted).unwrap_or_default(),
            sorted.first().copied().unwrap_or_default(),
            sorted.last().copied().unwrap_or_default(),
            middle(&ratios).unwrap_or_default()
        );
    }
    text
}

const MARK: &str = "<!-- cargo xtask bench fingerprint -->";

/// Writes the tables into the documentation, in place of those of the last run.
fn write(report: &str) -> anyhow::Result<()> {
    let path = Path::new("docs/benchmarks.md");
    let old = fs::read_to_string(path).unwrap_or_else(|_| "# Benchmarks\n".to_owned());
    let parts: Vec<&str> = old.split(MARK).collect();
    let before = parts.first().copied().unwrap_or_default().trim_end();
    let after = parts.get(2).copied().unwrap_or_default().trim();
    let cores = std::thread::available_parallelism()?.get();
    let text = format!(
        "{before}\n\n{MARK}\n## The fingerprint\n\n`cargo xtask bench fingerprint` on {cores} processors. Ratios are medians over pairs \
         of one run; the milliseconds depend on what else the machine did. `git takeup fingerprint` is the whole program with its \
         start, its settings and its answer; the look alone is the same work in a process that does nothing else. The limit opens, \
         lists and looks at all there is and compares nothing: with a cache, directories that did not change are not listed, so a \
         look can be faster than that. gix's status was not measured, and git's file-system monitor is not asked \
         ([why](decisions/monitor.md)).\n{report}\n{MARK}\n{after}\n"
    );
    takeup_core::files::write_atomic(path, text.trim_end().as_bytes(), 0o644)?;
    Ok(())
}
