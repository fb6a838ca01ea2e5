//! Git through the `git` program: it opens every repository its own version knows.
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::config::{ConfigEntry, ConfigScope, config_key, of_environment};
use super::environment::{LOCAL_VARIABLES, find_program};
use super::git::{
    ChangedPath, CommitLine, Git, Head, Listed, ObjectFormat, Operation, PathChange, linked_root,
    one_line, operation_by_marks,
};
use super::libgit2::{real, real_start, short_branch};
use super::{Place, RepositoryError};
use crate::env::Env;
use crate::files::FileError;
use crate::ids::Oid;
use crate::paths::text_of_bytes;
use crate::time::Time;

/// The most that is read of what git prints.
const MOST_OUTPUT: u64 = 256 * 1024 * 1024;

/// The `git` program, with the caller's environment cleaned of what ties it to another repository.
#[derive(Clone)]
pub struct GitProgram {
    program: Arc<Path>,
    vars: Arc<[(OsString, OsString)]>,
    of_call: Arc<[ConfigEntry]>,
    place: Option<Place>,
}

impl std::fmt::Debug for GitProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitProgram")
            .field("program", &self.program)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// A version of git.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl GitVersion {
    /// The oldest version that knows every option used here (`rev-parse --path-format`).
    pub const OLDEST: Self = Self::new(2, 31, 0);
    /// The first version that runs hooks named in the configuration.
    pub const CONFIG_HOOKS: Self = Self::new(2, 54, 0);

    /// Makes a version.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }

    /// Reads what `git version` prints; `2.54.0.rc1` and `2.39.5 (Apple Git-154)` are read as well.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().strip_prefix("git version ")?;
        let mut numbers = text
            .split(|c: char| !c.is_ascii_digit())
            .map(str::parse::<u32>);
        let major = numbers.next()?.ok()?;
        let minor = numbers.next()?.ok()?;
        let patch = numbers.next().and_then(Result::ok).unwrap_or(0);
        Some(Self::new(major, minor, patch))
    }
}

impl std::fmt::Display for GitVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

struct Answer {
    success: bool,
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl GitProgram {
    /// Finds `git` on the caller's PATH.
    pub fn find(env: &Env) -> Option<Self> {
        let program = find_program(env, "git")?;
        let vars = env
            .vars()
            .filter(|(name, _)| !is_unwanted(name))
            .map(|(name, value)| (name.to_os_string(), value.to_os_string()))
            .collect();
        Some(Self {
            program: program.into(),
            vars,
            of_call: of_environment(env).into(),
            place: None,
        })
    }

    /// Ties the program to a place.
    #[must_use]
    pub fn at(&self, place: &Place) -> Self {
        Self {
            place: Some(place.clone()),
            ..self.clone()
        }
    }

    /// Returns the place it is tied to.
    pub fn place(&self) -> Result<&Place, RepositoryError> {
        self.place.as_ref().ok_or_else(|| RepositoryError::Git {
            what: "be asked",
            message: "no place was discovered yet".to_owned(),
        })
    }

    /// Returns the program's path.
    pub fn path(&self) -> &Path {
        &self.program
    }

    /// Returns a call of git at this place that takes no optional lock, starts no pager, hook, monitor or fetch, and
    /// speaks English. Standard input is closed. The caller adds the command and its arguments.
    pub fn command(&self) -> Command {
        let mut command = self.plain();
        for setting in [
            "core.fsmonitor=false",
            "core.hooksPath=/dev/null",
            "log.showSignature=false",
        ] {
            command.arg("-c").arg(setting);
        }
        command.arg("--literal-pathspecs");
        command
    }

    /// As [`Self::command`], without settings of ours, for questions about the settings themselves.
    fn plain(&self) -> Command {
        let mut command = Command::new(&*self.program);
        command
            .env_clear()
            .envs(self.vars.iter().map(|(name, value)| (name, value)))
            .env("LC_ALL", "C")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_PAGER", "cat")
            .stdin(Stdio::null())
            .arg("--no-pager");
        if let Some(place) = &self.place {
            command
                .current_dir(&place.root)
                .arg(joined("--git-dir=", &place.git_dir))
                .arg(joined("--work-tree=", &place.root));
        }
        command
    }

    /// Returns the version.
    pub fn version(&self) -> Result<GitVersion, RepositoryError> {
        let what = "say its version";
        let mut command = self.plain();
        let answer = self.succeed(what, command.arg("version"))?;
        GitVersion::parse(&String::from_utf8_lossy(&answer)).ok_or_else(|| RepositoryError::Git {
            what,
            message: one_line(&answer),
        })
    }

    /// Finds the repository that `start` lies in, as [`super::discover`] says, and returns the program tied to it.
    pub fn discover(&self, env: &Env, start: &Path) -> Result<Self, RepositoryError> {
        let start = real_start(start)?;
        let named = named_git_dir(env, &start);
        let mut command = self.plain();
        command.current_dir(&start);
        // Settings of the call count for `safe.directory`.
        for (name, value) in env.vars() {
            if name.as_bytes().starts_with(b"GIT_CONFIG_") {
                command.env(name, value);
            }
        }
        if let Some(git_dir) = &named {
            command.env("GIT_DIR", git_dir);
        }
        let named_tree = named_work_tree(env, &start);
        if let Some(tree) = &named_tree {
            command.env("GIT_WORK_TREE", tree);
        }
        command.args([
            "rev-parse",
            "--absolute-git-dir",
            "--is-bare-repository",
            "--path-format=absolute",
            "--git-common-dir",
            "--is-inside-work-tree",
            "--show-toplevel",
        ]);
        let answer = self.ask(&mut command)?;
        let found = split_discovery(&answer.stdout);
        let Some(found) = found else {
            return Err(refused(&start, named.is_some(), &answer.stderr));
        };
        let git_dir = real(&found.git_dir)?;
        let common_dir = real(&found.common_dir)?;
        let natural = linked_root(&git_dir).or_else(|| {
            git_dir
                .file_name()
                .is_some_and(|name| name == ".git")
                .then(|| git_dir.parent().map(Path::to_path_buf))
                .flatten()
        });
        let root = match found.top {
            Some(top) if named.is_some() && named_tree.is_none() && top == start => natural
                .filter(|natural| contains(natural, &start))
                .unwrap_or(top),
            Some(top) => top,
            None if found.bare && linked_root(&git_dir).is_none() => {
                return Err(RepositoryError::Bare { path: git_dir });
            }
            // Inside the git folder itself.
            None => natural.ok_or_else(|| RepositoryError::Bare {
                path: git_dir.clone(),
            })?,
        };
        Ok(self.at(&Place {
            root: real(&root)?,
            git_dir,
            common_dir,
        }))
    }

    /// Tells whether git ignores a path of the work tree.
    pub(super) fn ignores(&self, path: &Path) -> Result<bool, RepositoryError> {
        // It knows no literal pathspecs, and takes the whole of a path for its name all the same.
        let mut command = self.plain();
        command
            .args(["-c", "core.fsmonitor=false", "check-ignore", "-q", "--"])
            .arg(path);
        let answer = self.ask(&mut command)?;
        match (answer.success, answer.code) {
            (true, _) => Ok(true),
            (false, Some(1)) => Ok(false),
            _ => Err(failed("tell what is ignored", &answer)),
        }
    }

    fn ask(&self, command: &mut Command) -> Result<Answer, RepositoryError> {
        let fail = |source| FileError::new("cannot run", &self.program, source);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(fail)?;
        let stderr = child.stderr.take();
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut stderr) = stderr {
                // What does not fit is read and dropped, so that git is not held up.
                let kept = stderr.by_ref().take(64 * 1024).read_to_end(&mut text);
                if kept.is_ok() {
                    drop(std::io::copy(&mut stderr, &mut std::io::sink()));
                }
            }
            text
        });
        let mut stdout = Vec::new();
        if let Some(pipe) = child.stdout.take() {
            let read = pipe
                .take(MOST_OUTPUT.saturating_add(1))
                .read_to_end(&mut stdout);
            if read.is_err() || stdout.len() as u64 > MOST_OUTPUT {
                drop(child.kill());
                drop(child.wait());
                read.map_err(fail)?;
                return Err(RepositoryError::Git {
                    what: "be read",
                    message: format!("it printed more than {MOST_OUTPUT} bytes"),
                });
            }
        }
        let status = child.wait().map_err(fail)?;
        Ok(Answer {
            success: status.success(),
            code: status.code(),
            stdout,
            stderr: reader.join().unwrap_or_default(),
        })
    }

    fn succeed(
        &self,
        what: &'static str,
        command: &mut Command,
    ) -> Result<Vec<u8>, RepositoryError> {
        let answer = self.ask(command)?;
        if answer.success {
            Ok(answer.stdout)
        } else {
            Err(failed(what, &answer))
        }
    }

    /// Resolves a reference; `Ok(None)` where git exits with 1, its silent "no".
    fn reference(&self, what: &'static str, name: &str) -> Result<Option<Oid>, RepositoryError> {
        let mut command = self.command();
        let answer = self.ask(command.args(["rev-parse", "-q", "--verify", name]))?;
        match (answer.success, answer.code) {
            (true, _) => oid(what, &answer.stdout).map(Some),
            (false, Some(1)) => Ok(None),
            _ => Err(failed(what, &answer)),
        }
    }

    /// Says which of the objects of a failed call is missing, if that is why it failed.
    fn explain<'a>(
        &self,
        error: RepositoryError,
        ids: impl IntoIterator<Item = &'a Oid>,
    ) -> RepositoryError {
        for id in ids {
            let mut command = self.command();
            let there = self.ask(command.args(["cat-file", "-e", id.as_str()]));
            if there.is_ok_and(|answer| !answer.success) {
                return RepositoryError::MissingObject { id: id.clone() };
            }
        }
        error
    }
}

impl Git for GitProgram {
    fn head(&self) -> Result<Head, RepositoryError> {
        let what = "read HEAD";
        let mut command = self.command();
        let answer = self.ask(command.args(["symbolic-ref", "-q", "HEAD"]))?;
        let name = match (answer.success, answer.code) {
            (true, _) => Some(answer.stdout.trim_ascii_end().to_vec()),
            (false, Some(1)) => None,
            _ => return Err(failed(what, &answer)),
        };
        let commit = self.reference(what, "HEAD")?;
        if commit.is_none() {
            // Unborn, or broken: git's silent "no" is the same for both, so ask whether the branch is there.
            let unborn = match &name {
                Some(name) => {
                    let mut command = self.command();
                    command
                        .args(["for-each-ref", "--count=1"])
                        .arg(OsStr::from_bytes(name));
                    let answer = self.ask(&mut command)?;
                    answer.success && answer.stdout.is_empty() && answer.stderr.is_empty()
                }
                None => false,
            };
            if !unborn {
                return Err(RepositoryError::Git {
                    what,
                    message: "it names no commit".to_owned(),
                });
            }
        }
        Ok(Head {
            commit,
            branch: name.as_deref().map(short_branch),
        })
    }

    fn operation(&self) -> Result<Option<Operation>, RepositoryError> {
        operation_by_marks(&self.place()?.git_dir, |name| {
            self.reference("read the operation in progress", name)
                .map(|id| id.is_some())
        })
    }

    fn stash_tip(&self) -> Result<Option<Oid>, RepositoryError> {
        self.reference("read the stash", "refs/stash")
    }

    fn hooks_dir(&self) -> Result<PathBuf, RepositoryError> {
        let place = self.place()?;
        let mut command = self.plain();
        for entry in self.of_call.iter() {
            command
                .arg("-c")
                .arg(format!("{}={}", entry.key, entry.value));
        }
        let answer = self.succeed(
            "name its hooks folder",
            command.args(["rev-parse", "--path-format=absolute", "--git-path", "hooks"]),
        )?;
        let path = answer.strip_suffix(b"\n").unwrap_or(&answer);
        Ok(place.root.join(OsStr::from_bytes(path)))
    }

    fn config_entries(&self) -> Result<Vec<ConfigEntry>, RepositoryError> {
        let mut command = self.plain();
        let answer = self.succeed(
            "read its settings",
            command.args(["config", "--null", "--show-scope", "--list"]),
        )?;
        let mut fields = answer.split(|byte| *byte == 0);
        let mut found = Vec::new();
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            let scope = match scope {
                b"system" => ConfigScope::System,
                b"global" => ConfigScope::Global,
                b"worktree" => ConfigScope::Worktree,
                b"command" => ConfigScope::Command,
                _ => ConfigScope::Local,
            };
            let mut parts = entry.splitn(2, |byte| *byte == b'\n');
            let key = text_of_bytes(parts.next().unwrap_or_default());
            found.push(ConfigEntry {
                key: config_key(&key),
                value: parts
                    .next()
                    .map_or_else(|| "true".to_owned(), text_of_bytes),
                scope,
            });
        }
        found.extend_from_slice(&self.of_call);
        Ok(found)
    }

    fn object_format(&self) -> Result<ObjectFormat, RepositoryError> {
        let what = "say its object format";
        let mut command = self.command();
        let answer = self.succeed(what, command.args(["rev-parse", "--show-object-format"]))?;
        match answer.trim_ascii() {
            b"sha1" => Ok(ObjectFormat::Sha1),
            b"sha256" => Ok(ObjectFormat::Sha256),
            other => Err(RepositoryError::Git {
                what,
                message: one_line(other),
            }),
        }
    }

    fn commits_between(
        &self,
        old: Option<&Oid>,
        new: &Oid,
        limit: usize,
    ) -> Result<Listed<CommitLine>, RepositoryError> {
        let what = "list commits";
        let mut command = self.command();
        command
            .args([
                "log",
                "-z",
                "--topo-order",
                "--encoding=UTF-8",
                "--no-decorate",
            ])
            .arg("--format=%H%n%at%n%an%n%s")
            .arg(format!("--max-count={}", limit.saturating_add(1)))
            .arg(new.as_str());
        if let Some(old) = old {
            command.arg(format!("^{old}"));
        }
        let answer = self
            .succeed(what, command.arg("--"))
            .map_err(|error| self.explain(error, old.into_iter().chain([new])))?;
        let mut items = Vec::new();
        for record in answer.split(|byte| *byte == 0).filter(|r| !r.is_empty()) {
            let mut parts = record.splitn(4, |byte| *byte == b'\n');
            let mut part = || parts.next().unwrap_or_default();
            let id = oid(what, part())?;
            let seconds = String::from_utf8_lossy(part()).parse::<i64>().unwrap_or(0);
            let author = one_line(part());
            items.push(CommitLine {
                id,
                subject: one_line(part()),
                author,
                authored_at: Time::from_millis(seconds.saturating_mul(1000)),
            });
        }
        let more = items.len() > limit;
        items.truncate(limit);
        Ok(Listed { items, more })
    }

    fn changed_paths(
        &self,
        old: Option<&Oid>,
        new: Option<&Oid>,
        limit: usize,
    ) -> Result<Listed<ChangedPath>, RepositoryError> {
        let what = "compare two trees";
        let empty = match (old, new) {
            (Some(_), Some(_)) => "",
            _ => empty_tree(self.object_format()?),
        };
        let mut command = self.command();
        command
            .args([
                "diff-tree",
                "-r",
                "-z",
                "--raw",
                "--no-abbrev",
                "--no-renames",
            ])
            .args(["--no-ext-diff", "--no-textconv", "--ignore-submodules=none"])
            .args([old, new].map(|id| id.map_or(empty, Oid::as_str)));
        let answer = self
            .succeed(what, command.arg("--"))
            .map_err(|error| self.explain(error, old.into_iter().chain(new)))?;
        let mut items = Vec::new();
        let mut fields = answer.split(|byte| *byte == 0);
        while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
            if items.len() == limit {
                return Ok(Listed { items, more: true });
            }
            // `:<old mode> <new mode> <old id> <new id> <letter>`
            let mut words = head.split(|byte| *byte == b' ').skip(1);
            let mode = String::from_utf8_lossy(words.next().unwrap_or_default()).into_owned();
            let id = words.nth(1).unwrap_or_default();
            let change = match words.next().and_then(<[u8]>::first) {
                Some(b'A') => PathChange::Added,
                Some(b'D') => PathChange::Deleted,
                _ => PathChange::Modified,
            };
            let there = change != PathChange::Deleted;
            items.push(ChangedPath {
                path: text_of_bytes(path),
                change,
                mode: there.then_some(mode),
                oid: if there { Some(oid(what, id)?) } else { None },
            });
        }
        Ok(Listed { items, more: false })
    }
}

struct Discovery {
    git_dir: PathBuf,
    common_dir: PathBuf,
    bare: bool,
    top: Option<PathBuf>,
}

/// Takes apart what `rev-parse` printed. Paths may hold newlines; the two truth values stand between them.
fn split_discovery(text: &[u8]) -> Option<Discovery> {
    let (git_dir, bare, rest) = split_at_truth(text)?;
    let (common_dir, _, top) = split_at_truth(rest)?;
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    Some(Discovery {
        git_dir: path(git_dir),
        common_dir: path(common_dir),
        bare,
        top: top.strip_suffix(b"\n").map(path),
    })
}

fn split_at_truth(text: &[u8]) -> Option<(&[u8], bool, &[u8])> {
    use bstr::ByteSlice as _;
    let cut = |word: &str| {
        text.find(word)
            .and_then(|at| Some((at, text.get(..at)?, text.get(at + word.len()..)?)))
    };
    match (cut("\ntrue\n"), cut("\nfalse\n")) {
        (Some((a, head, tail)), Some((b, ..))) if a < b => Some((head, true, tail)),
        (Some((_, head, tail)), None) => Some((head, true, tail)),
        (_, Some((_, head, tail))) => Some((head, false, tail)),
        (None, None) => None,
    }
}

fn refused(start: &Path, named: bool, stderr: &[u8]) -> RepositoryError {
    let message = String::from_utf8_lossy(stderr);
    if let Some((_, rest)) = message.split_once("detected dubious ownership in repository at '") {
        let path = rest.split_once("'\n").map_or(rest, |(path, _)| path);
        return RepositoryError::Unsafe {
            path: PathBuf::from(path),
        };
    }
    if !named && message.contains("not a git repository (or any") {
        return RepositoryError::NotARepository {
            start: start.to_path_buf(),
        };
    }
    RepositoryError::Unreadable {
        path: start.to_path_buf(),
        why: first_line(stderr),
    }
}

/// Returns the git folder that the environment of the call names, when `start` is the folder of the call.
pub(super) fn named_git_dir(env: &Env, start: &Path) -> Option<PathBuf> {
    let named = env.var("GIT_DIR")?;
    let here = std::fs::canonicalize(&env.cwd).ok()?;
    (here == start).then(|| start.join(named))
}

/// Returns the work tree that the environment of the call names, when `start` is the folder of the call. As in git it counts with
/// `GIT_DIR` and without.
pub(super) fn named_work_tree(env: &Env, start: &Path) -> Option<PathBuf> {
    let named = env.var("GIT_WORK_TREE")?;
    let here = std::fs::canonicalize(&env.cwd).ok()?;
    (here == start).then(|| start.join(named))
}

/// Tells whether a folder lies in another, links resolved.
pub(super) fn contains(outer: &Path, inner: &Path) -> bool {
    std::fs::canonicalize(outer).is_ok_and(|outer| inner.starts_with(outer))
}

fn empty_tree(format: ObjectFormat) -> &'static str {
    match format {
        ObjectFormat::Sha1 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        ObjectFormat::Sha256 => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
    }
}

fn is_unwanted(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    LOCAL_VARIABLES
        .iter()
        .any(|local| bytes == local.as_bytes())
        || bytes.starts_with(b"GIT_CONFIG_KEY_")
        || bytes.starts_with(b"GIT_CONFIG_VALUE_")
        || bytes.starts_with(b"GIT_TRACE")
        || matches!(bytes, b"GIT_EXTERNAL_DIFF" | b"LANGUAGE" | b"GIT_NAMESPACE")
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut text = OsString::from(option);
    text.push(path);
    text
}

fn oid(what: &'static str, text: &[u8]) -> Result<Oid, RepositoryError> {
    Oid::new(String::from_utf8_lossy(text.trim_ascii())).map_err(|error| RepositoryError::Git {
        what,
        message: error.to_string(),
    })
}

fn failed(what: &'static str, answer: &Answer) -> RepositoryError {
    let message = match (answer.stderr.is_empty(), answer.code) {
        (false, _) => first_line(&answer.stderr),
        (true, Some(code)) => format!("it ended with status {code}"),
        (true, None) => "it was killed".to_owned(),
    };
    RepositoryError::Git { what, message }
}

/// Returns the first line, with the indented ones after it where it announces them.
fn first_line(stderr: &[u8]) -> String {
    let mut lines = stderr
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let line = lines.next().unwrap_or(b"it said nothing");
    let mut line = line.strip_prefix(b"fatal: ").unwrap_or(line).to_vec();
    if line.ends_with(b":") {
        for more in lines.take_while(|more| more.starts_with(b"\t")) {
            line.push(b' ');
            line.extend(more.trim_ascii());
        }
    }
    one_line(&line)
}
