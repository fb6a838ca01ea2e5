//! The plugin's own fingerprint of a work tree, reproduced by calling `git` with exactly its arguments, and what it is
//! known not to see.
//!
//! The digest depends on the installed git and its configuration, so it is never a substitute for the project's own
//! fingerprint: it answers "would the plugin say equal?", and [`PluginFingerprint::blind`] says where that is no proof.
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};
use takeup_core::env::Env;
use takeup_core::error::Explain;

use crate::sidecar::{Collation, sha256_hex};

/// The digest of every clean tree of every repository and commit.
pub const CLEAN_TREE: &str = "6c3bccf6436bdf505e07548237508ef0715a2b57849f17a710c2a752cafdd3df";

/// The plugin's runtime gives up on more output than this.
const MOST_OUTPUT: u64 = 64 * 1024 * 1024;
/// How long one run of git may take. It waits for ever where a pipe stands in the place of a file it reads.
const LONGEST_RUN: std::time::Duration = std::time::Duration::from_mins(1);
/// Node does not read files of this size or more; Bun does.
const NODE_LARGEST: u64 = 2 * 1024 * 1024 * 1024;
/// The directory walk leaves out larger files.
const WALK_LARGEST: u64 = 16 * 1024 * 1024;

/// Files at the top that git reads whole wherever it compares, and waits for without end where a pipe stands in their place.
const READ_BY_GIT: [&str; 3] = [".gitignore", ".gitattributes", ".gitmodules"];

const DIFF: &[&str] = &["diff", "--binary", "HEAD"];
const STATUS: &[&str] = &["status", "--porcelain=v1", "-z", "--untracked-files=all"];
const PATHSPEC: &[&str] = &[
    "--",
    ".",
    ":(exclude).agent-context/**",
    ":(exclude)AGENTS.md",
];

/// The fingerprint could not be taken. It is an error, never a fingerprint.
#[derive(Debug, thiserror::Error)]
pub enum FingerprintError {
    /// The repository's own configuration names programs that `git diff` would run.
    #[error("the repository's own configuration names a program that would be run: {0}")]
    WouldRun(String),
    /// A folder or file of the directory walk cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The sort order cannot be loaded.
    #[error("the sort order cannot be loaded: {0}")]
    Order(String),
    /// A program cannot be started or read.
    #[error("cannot run git: {0}")]
    Program(io::Error),
}

impl Explain for FingerprintError {
    fn code(&self) -> &'static str {
        match self {
            Self::WouldRun(_) => "fingerprint-would-run",
            Self::Unreadable { .. } => "fingerprint-unreadable",
            Self::Order(_) => "fingerprint-order",
            Self::Program(_) => "fingerprint-program",
        }
    }

    fn hint(&self) -> Option<String> {
        matches!(self, Self::WouldRun(_)).then(|| {
            "look at `git config --local --list`; a program named in your own (global) settings is accepted".to_owned()
        })
    }
}

/// The plugin's fingerprint, with what it does not see here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginFingerprint {
    /// 64 lower-case hexadecimal digits, as the plugin records them under Node.
    pub digest: String,
    /// The same under Bun, where it differs: Bun reads untracked files of 2 GiB and more.
    pub on_bun: Option<String>,
    /// What it is known not to see here, in words. Equal digests prove equal content only where this is empty, and only
    /// on the same HEAD.
    pub blind: Vec<String>,
}

impl PluginFingerprint {
    /// Tells whether a recorded digest is this one.
    pub fn equals(&self, recorded: &str) -> bool {
        self.digest == recorded || self.on_bun.as_deref() == Some(recorded)
    }
}

/// Takes the plugin's fingerprint of `root`, the folder the plugin was started with. Writes nothing, not even git's
/// index.
///
/// ```no_run
/// let env = takeup_core::env::Env::of_process();
/// let taken = takeup_opencode::fingerprint(&env.cwd, &env)?;
/// println!("{}", taken.digest);
/// # Ok::<(), takeup_opencode::FingerprintError>(())
/// ```
///
/// # Errors
/// Where a look is not possible. A folder that is no repository, or has no commit, is not an error: the plugin then walks
/// the folder, and so does this.
pub fn fingerprint(root: &Path, env: &Env) -> Result<PluginFingerprint, FingerprintError> {
    refuse_pipes(root)?;
    let mut blind = refuse_programs(root, env)?;
    let scratch = ScratchIndex::of(root, env)?;
    let Some(diff) = run(root, env, scratch.as_ref(), DIFF, PATHSPEC)? else {
        return walk(root);
    };
    let Some(status) = run(root, env, None, STATUS, PATHSPEC)? else {
        return walk(root);
    };
    let exact = diff.valid && status.valid;
    if !exact {
        blind.push("bytes that are not UTF-8 are all alike to it".to_owned());
    }
    if diff
        .text
        .lines()
        .any(|line| line.starts_with("+Subproject commit") && line.ends_with("-dirty"))
    {
        blind.push("changes inside a submodule are all alike to it".to_owned());
    }
    let manifest = Manifest::take(root, &status.text, &mut blind)?;
    let digest = |manifest: &str| {
        let mut hasher = Sha256::new();
        hasher.update("status=0\n");
        hasher.update(&diff.text);
        hasher.update("\n\n\n");
        hasher.update(manifest);
        takeup_core::text::hex(&hasher.finalize())
    };
    Ok(PluginFingerprint {
        digest: digest(&manifest.on_node),
        on_bun: manifest.on_bun.as_deref().map(digest),
        blind,
    })
}

/// Refuses what git would open and wait for. Deeper in the tree its time limit has to do.
#[expect(
    clippy::filetype_is_file,
    reason = "pipes and devices are what is looked for"
)]
fn refuse_pipes(root: &Path) -> Result<(), FingerprintError> {
    for name in READ_BY_GIT {
        let path = root.join(name);
        let is_special = path.symlink_metadata().is_ok_and(|meta| {
            let kind = meta.file_type();
            !(kind.is_file() || kind.is_dir() || kind.is_symlink())
        });
        if is_special {
            return Err(FingerprintError::Unreadable {
                path,
                source: io::Error::other("it is neither a file nor a folder nor a link"),
            });
        }
    }
    Ok(())
}

/// Looks for settings that make `git diff` run programs or hide changes. Those of the repository itself are refused: it
/// may be a stranger's. Those of the user are accepted and make the digest blind.
fn refuse_programs(root: &Path, env: &Env) -> Result<Vec<String>, FingerprintError> {
    let mut blind = Vec::new();
    let listing = run(
        root,
        env,
        None,
        &["config", "--list", "--show-scope", "-z"],
        &[],
    )?;
    let text = listing.map(|output| output.text).unwrap_or_default();
    let mut fields = text.split('\0');
    while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        let part = key.rsplit('.').next().unwrap_or(key);
        let shows = key == "diff.external"
            || (key.starts_with("diff.") && matches!(part, "command" | "textconv"));
        let filters = key.starts_with("filter.") && matches!(part, "clean" | "process");
        let own = matches!(scope, "local" | "worktree");
        if own && (shows || filters) && !value.is_empty() {
            return Err(FingerprintError::WouldRun(key.to_owned()));
        }
        if shows && !value.is_empty() {
            blind.push(format!("{key} decides what of a change it sees"));
        }
        if key == "diff.ignoresubmodules" || (key.starts_with("submodule.") && part == "ignore") {
            blind.push(format!("{key} hides changes of submodules from it"));
        }
    }
    if let Ok(Some(bytes)) = takeup_core::files::read_bounded(&root.join(".gitmodules"), 1 << 20)
        && String::from_utf8_lossy(&bytes).contains("ignore")
    {
        blind.push(".gitmodules hides changes of submodules from it".to_owned());
    }
    Ok(blind)
}

/// Looks for paths that git was told to overlook and that are there all the same. Asked only where digests are equal.
///
/// # Errors
/// If git cannot be run.
pub(crate) fn overlooked(root: &Path, env: &Env) -> Result<Option<String>, FingerprintError> {
    let Some(listing) = run(root, env, None, &["ls-files", "-v", "-s", "-z"], &[])? else {
        return Ok(Some("git does not list the files".to_owned()));
    };
    Ok(listing.text.split('\0').find_map(|entry| {
        // `TAG MODE ID STAGE<tab>NAME`
        let (facts, name) = entry.split_once('\t')?;
        let (tag, facts) = facts.split_once(' ')?;
        let flagged = tag == "S" || tag.chars().all(|c| c.is_ascii_lowercase());
        if flagged && root.join(name).symlink_metadata().is_ok() {
            return Some(format!("git was told to overlook {name:?}, and so does it"));
        }
        // `git diff` says nothing of untracked files in a submodule.
        let looked_into = !facts.starts_with("160000 ")
            || root.join(name).join(".git").symlink_metadata().is_err();
        (!looked_into).then(|| format!("it does not see untracked files in the submodule {name:?}"))
    }))
}

/// A copy of the index: `git diff` writes the index back when times in it are outdated, and cannot be told not to without
/// changing what it prints.
struct ScratchIndex {
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl ScratchIndex {
    /// Copies the index with its time (git compares the times of files with it). `None` where there is none.
    fn of(root: &Path, env: &Env) -> Result<Option<Self>, FingerprintError> {
        let Some(answer) = run(root, env, None, &["rev-parse", "--git-path", "index"], &[])? else {
            return Ok(None);
        };
        let index = root.join(answer.text.trim_end_matches('\n'));
        let mut original = match File::open(&index) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(FingerprintError::Unreadable {
                    path: index,
                    source,
                });
            }
        };
        let mut copied = || -> io::Result<Self> {
            let folder = tempfile::Builder::new().prefix("takeup-").tempdir()?;
            let file = folder.path().join("index");
            let mut copy = File::create_new(&file)?;
            io::copy(&mut original, &mut copy)?;
            copy.set_modified(original.metadata()?.modified()?)?;
            Ok(Self {
                file,
                _folder: folder,
            })
        };
        copied()
            .map(Some)
            .map_err(|source| FingerprintError::Unreadable {
                path: index,
                source,
            })
    }
}

struct Output {
    text: String,
    /// Nothing had to be replaced.
    valid: bool,
}

/// Variables that tie git to a repository. They are those of the caller (a git hook, say) and not the plugin's.
const TIES: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INTERNAL_SUPER_PREFIX",
];

/// Runs git in `root`. `None` where it fails, or prints more than the plugin's runtime takes.
fn run(
    root: &Path,
    env: &Env,
    index: Option<&ScratchIndex>,
    arguments: &[&str],
    pathspec: &[&str],
) -> Result<Option<Output>, FingerprintError> {
    let mut command = Command::new("git");
    command
        .args(arguments)
        .args(pathspec)
        .current_dir(root)
        .env_clear()
        .envs(env.vars())
        // Looking is not writing: no refreshed index, nothing fetched.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    for name in TIES {
        command.env_remove(name);
    }
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", &index.file);
    }
    // The file-system monitor changes nothing of the output, and may be a program that the repository names.
    let count: usize = env
        .text("GIT_CONFIG_COUNT")
        .and_then(|count| count.parse().ok())
        .unwrap_or(0);
    command
        .env("GIT_CONFIG_COUNT", (count + 1).to_string())
        .env(format!("GIT_CONFIG_KEY_{count}"), "core.fsmonitor")
        .env(format!("GIT_CONFIG_VALUE_{count}"), "false");
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FingerprintError::Program(error)),
    };
    let stdout = child.stdout.take();
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.map_or(Ok(0), |stdout| {
            stdout.take(MOST_OUTPUT + 1).read_to_end(&mut bytes)
        });
        // Nobody listens any more when the time is over.
        let _gone = done.send(read.map(|_| bytes));
    });
    let read = ended
        .recv_timeout(LONGEST_RUN)
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let too_much = read
        .as_ref()
        .is_ok_and(|bytes| bytes.len() as u64 > MOST_OUTPUT);
    if too_much || read.is_err() {
        // It may have ended by itself in the meantime.
        drop(child.kill());
    }
    let status = child.wait().map_err(FingerprintError::Program)?;
    let bytes = read.map_err(FingerprintError::Program)?;
    if too_much || !status.success() {
        return Ok(None);
    }
    let valid = std::str::from_utf8(&bytes).is_ok();
    Ok(Some(Output {
        text: String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        valid,
    }))
}

/// The lines about untracked files.
struct Manifest {
    on_node: String,
    on_bun: Option<String>,
}

impl Manifest {
    fn take(root: &Path, status: &str, blind: &mut Vec<String>) -> Result<Self, FingerprintError> {
        let mut names: Vec<&str> = status
            .split('\0')
            .filter_map(|entry| entry.strip_prefix("?? "))
            .filter(|name| !name.is_empty())
            .collect();
        let order = Collation::new().map_err(FingerprintError::Order)?;
        names.sort_by(|a, b| order.compare(a, b));
        let mut on_node = Vec::with_capacity(names.len());
        let mut on_bun: Vec<(usize, String)> = Vec::new();
        for name in names {
            let line = untracked(root, name);
            if let Some(why) = line.blind {
                blind.push(why);
            }
            if let Some(other) = line.on_bun {
                on_bun.push((on_node.len(), other));
            }
            on_node.push(line.on_node);
        }
        let joined = on_node.join("\n");
        let differs = !on_bun.is_empty();
        for (at, line) in on_bun {
            if let Some(place) = on_node.get_mut(at) {
                *place = line;
            }
        }
        Ok(Self {
            on_node: joined,
            on_bun: differs.then(|| on_node.join("\n")),
        })
    }
}

#[derive(Default)]
struct Line {
    on_node: String,
    on_bun: Option<String>,
    blind: Option<String>,
}

/// Describes one untracked path as the plugin does.
#[expect(
    clippy::filetype_is_file,
    reason = "the plugin tells regular files from everything else"
)]
fn untracked(root: &Path, name: &str) -> Line {
    let path = root.join(name);
    let shown = path.to_string_lossy();
    let unreadable = |error: &io::Error, call: Option<&str>| Line {
        on_node: format!("{name}\0unreadable\0{}", message_of(error, call, &shown)),
        on_bun: None,
        blind: Some(format!("it could not read {name:?}")),
    };
    let kind = match path.symlink_metadata() {
        Ok(kind) => kind,
        Err(error) => return unreadable(&error, Some("lstat")),
    };
    if kind.is_symlink() {
        return match std::fs::read_link(&path) {
            Ok(target) => Line {
                on_node: format!("{name}\0symlink\0{}", target.to_string_lossy()),
                ..Line::default()
            },
            Err(error) => unreadable(&error, Some("readlink")),
        };
    }
    let mode = format!("{:o}", kind.mode());
    if !kind.file_type().is_file() {
        return Line {
            on_node: format!("{name}\0non-file\0{mode}"),
            on_bun: None,
            blind: Some(format!("it does not look into {name:?}")),
        };
    }
    let content = open_for_reading(&path)
        .map_err(|error| unreadable(&error, Some("open")))
        .and_then(|file| digest_of(file).map_err(|error| unreadable(&error, None)));
    match content {
        Ok(digest) => {
            let line = format!("{name}\0file\0{mode}\0{digest}");
            if kind.len() < NODE_LARGEST {
                return Line {
                    on_node: line,
                    ..Line::default()
                };
            }
            Line {
                on_node: format!(
                    "{name}\0unreadable\0File size ({}) is greater than 2 GiB",
                    kind.len()
                ),
                on_bun: Some(line),
                blind: Some(format!(
                    "under Node it does not read {name:?}, which is too large"
                )),
            }
        }
        Err(line) => line,
    }
}

/// Opens without following a link at the last part and without waiting on a pipe.
fn open_for_reading(path: &Path) -> io::Result<File> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

fn digest_of(mut file: File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 128 * 1024];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(takeup_core::text::hex(&hasher.finalize()));
        }
        hasher.update(buffer.get(..count).unwrap_or_default());
    }
}

/// Writes an error as Node does: `ENOENT: no such file or directory, lstat '/path'`. Texts: libuv's table of errors.
fn message_of(error: &io::Error, call: Option<&str>, path: &str) -> String {
    use rustix::io::Errno;
    let (code, text) = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => ("ENOENT", "no such file or directory"),
        Some(Errno::ACCESS) => ("EACCES", "permission denied"),
        Some(Errno::PERM) => ("EPERM", "operation not permitted"),
        Some(Errno::NOTDIR) => ("ENOTDIR", "not a directory"),
        Some(Errno::ISDIR) => ("EISDIR", "illegal operation on a directory"),
        Some(Errno::LOOP) => ("ELOOP", "too many symbolic links encountered"),
        Some(Errno::NAMETOOLONG) => ("ENAMETOOLONG", "name too long"),
        Some(Errno::IO) => ("EIO", "i/o error"),
        Some(Errno::MFILE) => ("EMFILE", "too many open files"),
        Some(Errno::NFILE) => ("ENFILE", "file table overflow"),
        Some(Errno::NXIO) => ("ENXIO", "no such device or address"),
        Some(Errno::INVAL) => ("EINVAL", "invalid argument"),
        Some(_) | None => ("UNKNOWN", "unknown error"),
    };
    match call {
        Some(call) => format!("{code}: {text}, {call} '{path}'"),
        None => format!("{code}: {text}, read"),
    }
}

/// The plugin's fallback where git says nothing: every regular file below the root, ignored ones too.
#[expect(
    clippy::filetype_is_file,
    reason = "the plugin takes regular files only"
)]
fn walk(root: &Path) -> Result<PluginFingerprint, FingerprintError> {
    let unreadable = |path: &Path, source: io::Error| FingerprintError::Unreadable {
        path: path.to_path_buf(),
        source,
    };
    let mut files: Vec<String> = Vec::new();
    let mut folders: Vec<PathBuf> = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let full = root.join(&folder);
        for entry in std::fs::read_dir(&full).map_err(|error| unreadable(&full, error))? {
            let entry = entry.map_err(|error| unreadable(&full, error))?;
            let name = entry.file_name();
            if matches!(
                name.as_bytes(),
                b".git" | b".agent-context" | b"node_modules"
            ) {
                continue;
            }
            let kind = entry
                .file_type()
                .map_err(|error| unreadable(&full, error))?;
            let below = folder.join(&name);
            if kind.is_dir() {
                folders.push(below);
            } else if kind.is_file() {
                let size = entry
                    .metadata()
                    .map_err(|error| unreadable(&full, error))?
                    .len();
                if size <= WALK_LARGEST {
                    files.push(
                        String::from_utf8_lossy(&below.into_os_string().into_vec()).into_owned(),
                    );
                }
            }
        }
    }
    files.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    let mut lines = Vec::with_capacity(files.len());
    for name in files {
        let path = root.join(&name);
        let digest = open_for_reading(&path)
            .and_then(digest_of)
            .map_err(|error| unreadable(&path, error))?;
        lines.push(format!("{name}\0{digest}"));
    }
    Ok(PluginFingerprint {
        digest: sha256_hex(lines.join("\n")),
        on_bun: None,
        blind: vec![
            "git could not compare with HEAD, so it walked the folder, where it sees neither modes nor links nor large files"
                .to_owned(),
        ],
    })
}

#[cfg(test)]
mod tests;
