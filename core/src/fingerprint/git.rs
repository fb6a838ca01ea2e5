//! The `git` program, started so that it changes nothing of the user's and runs nothing of the repository's.
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::FingerprintError;
use super::options::Options;
use crate::repository::Place;

/// Variables of git that say where the user's settings or git's own programs are. Every other variable that begins with
/// `GIT_` is left out: those that `git rev-parse --local-env-vars` names point at a repository or carry settings for one
/// call, and others change how paths are matched or what is printed.
const KEPT: &[&str] = &[
    "GIT_EXEC_PATH",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_ATTR_NOSYSTEM",
];

/// Settings for every call. No hook and no monitor runs, nothing is fetched, nothing is tidied up, no warning about line
/// ends is printed.
const SETTINGS: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.splitIndex", "false"),
    ("core.sparseCheckout", "false"),
    ("core.safecrlf", "false"),
    ("core.fsync", "none"),
    ("core.looseCompression", "0"),
    ("core.commitGraph", "false"),
    ("index.sparse", "false"),
    ("hook.post-index-change.enabled", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("advice.addEmbeddedRepo", "false"),
    ("advice.sparseIndexExpanded", "false"),
];

/// What a call printed.
pub(super) struct Output {
    pub(super) ok: bool,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl Output {
    /// Returns the first line of the complaint, without control characters.
    pub(super) fn complaint(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let line = text
            .lines()
            .find(|line| !line.trim().is_empty() && !line.starts_with("hint: "));
        plain(line.unwrap_or("it gave no reason"))
    }
}

/// Tells whether a line is, or ends, a remark of git's on what is without effect: it tells of nothing that was not seen. What
/// could not be opened ends with the reason of the system, whatever its name holds.
fn is_remark(line: &str) -> bool {
    let on_a_rule = |remark: &str| {
        // The place of the rule stands last, as `<file>:<line>`.
        let number = line.rsplit(':').next().unwrap_or_default();
        line.contains(remark)
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    line == "warning: Negative patterns are ignored in git attributes"
        || line == r"Use '\!' for literal leading exclamation."
        || on_a_rule(" not allowed: ")
        || on_a_rule(" is not a valid attribute name: ")
        // A link is no file of rules, and behind a link to itself is nothing. git says so of repositories inside as well.
        || line.ends_with(": Too many levels of symbolic links")
        // A folder in the place of the list of submodules is a folder, and no list.
        || line.ends_with(".gitmodules': Is a directory")
}

impl Output {
    /// Returns why what was asked for was not wholly done: git failed, or warned of something it passed over. A remark that
    /// goes over several lines, because a name in it does, counts as a warning: rather that than one that is overheard.
    pub(super) fn shortfall(&self) -> Option<String> {
        if !self.ok {
            return Some(self.complaint());
        }
        let text = String::from_utf8_lossy(&self.stderr);
        text.lines()
            .find(|line| !line.trim().is_empty() && !is_remark(line))
            .map(plain)
    }
}

fn plain(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(400).collect()
}

/// The program, bound to one repository.
pub(super) struct Git<'a> {
    place: &'a Place,
    options: &'a Options<'a>,
    settings: Vec<(OsString, OsString)>,
    env: Vec<(OsString, OsString)>,
    /// How many programs were started.
    pub(super) started: u64,
}

impl<'a> Git<'a> {
    pub(super) fn new(place: &'a Place, options: &'a Options<'a>) -> Self {
        Self {
            place,
            options,
            settings: SETTINGS
                .iter()
                .map(|(key, value)| (OsString::from(key), OsString::from(value)))
                .chain([("core.hooksPath".into(), "/dev/null".into())])
                .collect(),
            env: Vec::new(),
            started: 0,
        }
    }

    /// Adds a setting for the calls to come.
    pub(super) fn setting(&mut self, key: impl Into<OsString>, value: impl Into<OsString>) {
        self.settings.push((key.into(), value.into()));
    }

    /// Adds a variable for the calls to come.
    pub(super) fn env(&mut self, key: &str, value: impl Into<OsString>) {
        self.env.push((key.into(), value.into()));
    }

    /// Lets the calls to come write their objects into a scratch folder, and read those of the repository.
    pub(super) fn scratch_objects(&mut self, objects: &Path) {
        self.env("GIT_OBJECT_DIRECTORY", objects);
        self.env(
            "GIT_ALTERNATE_OBJECT_DIRECTORIES",
            quoted(&self.place.common_dir.join("objects")),
        );
    }

    fn command(&self, args: &[&OsStr], index: Option<&Path>) -> Command {
        let mut command = Command::new("git");
        command.env_clear().current_dir(&self.place.root);
        for (name, value) in self.options.env.vars() {
            if !name.as_bytes().starts_with(b"GIT_")
                || KEPT.iter().any(|kept| name == OsStr::new(kept))
            {
                command.env(name, value);
            }
        }
        command
            .env("GIT_DIR", &self.place.git_dir)
            .env("GIT_WORK_TREE", &self.place.root)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ALLOW_PROTOCOL", "none")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("LC_ALL", "C")
            .env("LANGUAGE", "C")
            .env("GIT_CONFIG_COUNT", self.settings.len().to_string());
        for (number, (key, value)) in self.settings.iter().enumerate() {
            command
                .env(format!("GIT_CONFIG_KEY_{number}"), key)
                .env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        if let Some(index) = index {
            command.env("GIT_INDEX_FILE", index);
        }
        command
            .envs(self.env.iter().map(|(key, value)| (key, value)))
            .arg("--no-pager")
            .args(args);
        command
    }

    /// Runs `git`, with `input` on its standard input and `index` as its index, and waits for its end. Fails only where it
    /// cannot be started or the caller interrupts.
    pub(super) fn run(
        &mut self,
        args: &[&str],
        input: &[u8],
        index: Option<&Path>,
    ) -> Result<Output, FingerprintError> {
        self.options.check_interrupt()?;
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        let temporary = |error| FingerprintError::io("write", &std::env::temp_dir(), error);
        let mut stdin = tempfile::tempfile().map_err(temporary)?;
        stdin.write_all(input).map_err(temporary)?;
        stdin.seek(SeekFrom::Start(0)).map_err(temporary)?;
        let mut stderr = tempfile::tempfile().map_err(temporary)?;
        let mut child = self
            .command(&args, index)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(stderr.try_clone().map_err(temporary)?)
            .spawn()
            .map_err(FingerprintError::NoGit)?;
        self.started += 1;
        let mut out = Vec::new();
        if let Some(mut pipe) = child.stdout.take() {
            let mut buffer = vec![0; 1 << 16];
            loop {
                if let Err(error) = self.options.check_interrupt() {
                    // The child is gone in either case.
                    drop(child.kill());
                    drop(child.wait());
                    return Err(error);
                }
                let mut fds = [PollFd::new(&pipe, PollFlags::IN)];
                let tick = Timespec {
                    tv_sec: 0,
                    tv_nsec: 100_000_000,
                };
                match poll(&mut fds, Some(&tick)) {
                    Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                    Ok(_) => {}
                    Err(error) => return Err(FingerprintError::NoGit(error.into())),
                }
                match pipe.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => out.extend(buffer.iter().take(count)),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(FingerprintError::NoGit(error)),
                }
            }
        }
        let status = child.wait().map_err(FingerprintError::NoGit)?;
        Ok(Output {
            ok: status.success(),
            stdout: out,
            stderr: read_back(&mut stderr).map_err(temporary)?,
        })
    }

    /// Runs `git` and fails unless it succeeds.
    pub(super) fn must(
        &mut self,
        args: &[&str],
        input: &[u8],
        index: Option<&Path>,
    ) -> Result<Vec<u8>, FingerprintError> {
        let output = self.run(args, input, index)?;
        if output.ok {
            return Ok(output.stdout);
        }
        Err(FingerprintError::Git {
            command: args.first().copied().unwrap_or_default().to_owned(),
            message: output.complaint(),
        })
    }

    /// Returns the names of the clean filters whose program the repository itself configures.
    pub(super) fn repository_filters(&mut self) -> Result<Vec<Vec<u8>>, FingerprintError> {
        let listing = self.run(
            &[
                "config",
                "--show-scope",
                "-z",
                "--get-regexp",
                r"^filter\..*\.(clean|process)$",
            ],
            b"",
            None,
        )?;
        // Scope, then key and value with a line feed between them. The last value of a key is the one that holds.
        let mut last = std::collections::BTreeMap::new();
        let mut fields = listing.stdout.split(|byte| *byte == 0);
        while let (Some(scope), Some(pair)) = (fields.next(), fields.next()) {
            let (key, value) = split_at_byte(pair, b'\n').unwrap_or((pair, b""));
            last.insert(
                key.to_vec(),
                matches!(scope, b"local" | b"worktree") && !value.is_empty(),
            );
        }
        let mut names: Vec<Vec<u8>> = last
            .into_iter()
            .filter(|(_, from_repository)| *from_repository)
            .filter_map(|(key, _)| {
                let name = key.strip_prefix(b"filter.")?;
                let name = name
                    .strip_suffix(b".clean")
                    .or_else(|| name.strip_suffix(b".process"))?;
                Some(name.to_vec())
            })
            .collect();
        names.dedup();
        Ok(names)
    }

    /// Switches a filter off for the calls to come.
    pub(super) fn without_filter(&mut self, name: &[u8]) {
        for (part, value) in [("clean", ""), ("process", ""), ("required", "false")] {
            let mut key = b"filter.".to_vec();
            key.extend(name);
            key.push(b'.');
            key.extend(part.bytes());
            self.setting(OsStr::from_bytes(&key), value);
        }
    }
}

/// How much of what git complains of is kept, in bytes, and how long one line of it may be.
const COMPLAINTS: u64 = 1 << 16;

/// Reads what git complained of, without the remarks: a file may give cause to thousands, and a warning behind them counts.
fn read_back(file: &mut File) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::new(file);
    let (mut kept, mut line) = (Vec::new(), Vec::new());
    while (kept.len() as u64) < COMPLAINTS
        && reader
            .by_ref()
            .take(COMPLAINTS)
            .read_until(b'\n', &mut line)?
            > 0
    {
        let text = String::from_utf8_lossy(&line);
        if !text.lines().all(is_remark) {
            kept.extend_from_slice(&line);
        }
        line.clear();
    }
    Ok(kept)
}

/// Writes a path as one element of `GIT_ALTERNATE_OBJECT_DIRECTORIES`, which separates with colons and knows quotes as in C.
fn quoted(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b':' | b'"')) {
        return path.as_os_str().to_owned();
    }
    let mut text = b"\"".to_vec();
    for byte in bytes {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text.push(b'"');
    OsStr::from_bytes(&text).to_owned()
}

/// Splits at the first `byte`.
pub(super) fn split_at_byte(bytes: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|b| *b == byte)?;
    let (before, rest) = bytes.split_at_checked(at)?;
    Some((before, rest.split_first()?.1))
}

/// A folder for an index and objects that are thrown away.
pub(super) struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    pub(super) fn new() -> Result<Self, FingerprintError> {
        let failed = |error| FingerprintError::io("write", &std::env::temp_dir(), error);
        let folder = tempfile::tempdir().map_err(failed)?;
        std::fs::create_dir_all(folder.path().join("objects")).map_err(failed)?;
        Ok(Self { folder })
    }

    pub(super) fn objects(&self) -> PathBuf {
        self.folder.path().join("objects")
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortfall(stderr: &str) -> Option<String> {
        let output = Output {
            ok: true,
            stdout: Vec::new(),
            stderr: stderr.as_bytes().to_vec(),
        };
        output.shortfall()
    }

    #[test]
    fn a_warning_behind_thousands_of_remarks_is_heard() {
        let mut file = tempfile::tempfile().unwrap();
        let remark = "$ is not a valid attribute name: a/.gitattributes:1\n";
        let warning = "warning: could not open directory 'd/': Permission denied\n";
        file.write_all(remark.repeat(6_000).as_bytes()).unwrap();
        assert_eq!(read_back(&mut file).unwrap(), b"");
        file.write_all(warning.as_bytes()).unwrap();
        assert_eq!(read_back(&mut file).unwrap(), warning.as_bytes());
    }

    #[test]
    fn remarks_are_no_shortfall() {
        for remark in [
            "",
            "a/b: Too many levels of symbolic links\n",
            "warning: unable to access '.gitmodules': Is a directory\n",
            "warning: Negative patterns are ignored in git attributes\nUse '\\!' for literal leading exclamation.\n",
            "-x is not a valid attribute name: .gitattributes:1\n",
            "[attr]a not allowed: dir/.gitattributes:12\n",
        ] {
            assert_eq!(shortfall(remark), None, "{remark}");
        }
    }

    #[test]
    fn what_could_not_be_opened_is_a_shortfall_whatever_its_name_holds() {
        for (complaint, first) in [
            (
                "warning: could not open directory 'a not allowed: b:1/': Permission denied\n",
                None,
            ),
            (
                "warning: could not open directory 'a: Too many levels of symbolic links/': Permission denied\n",
                None,
            ),
            (
                "warning: could not open directory 'x\ny: Too many levels of symbolic links\nz/': Permission denied\n",
                Some("warning: could not open directory 'x"),
            ),
            (
                "Ignoring path .gitmodules\n-x is not a valid attribute name: .gitattributes:1\n",
                Some("Ignoring path .gitmodules"),
            ),
            (
                "a/new\nline: Too many levels of symbolic links\n",
                Some("a/new"),
            ),
            ("something new\n", None),
        ] {
            let expected = first.unwrap_or_else(|| complaint.trim_end());
            assert_eq!(shortfall(complaint).as_deref(), Some(expected));
        }
    }
}
