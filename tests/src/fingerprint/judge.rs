//! Plain git as the judge: `git add -A && git write-tree` in a scratch index that carries no stat data and no flags.
use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use takeup_core::env::Env;

/// The name that is never part of the content.
const RUNTIME: &[u8] = b".agent-context";

/// `ELOOP`.
const LOOP: i32 = 40;

/// What plain git says of a work tree and of the repositories in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The tree that git would commit.
    pub tree: String,
    /// The repositories that this tree names and that are there, by path.
    pub nested: Vec<Nested>,
    /// Files in folders that this tree names as repositories and that are none, sorted by path.
    pub loose: Vec<Loose>,
    /// The repositories that this tree names and of which nothing is there, by path.
    pub absent: Vec<Vec<u8>>,
}

/// A file by its path, git's mode and its content.
pub type Loose = (Vec<u8>, u32, Vec<u8>);

/// A repository inside another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nested {
    /// Its path in the other.
    pub path: Vec<u8>,
    /// The commit checked out in it; `None` where there is none yet.
    pub head: Option<String>,
    /// Whether anything in it differs from that commit, or there is none.
    pub dirty: bool,
    /// What is in it.
    pub inside: Whole,
}

impl Whole {
    /// Writes down all that decides about equality: the tree, and what is in the repositories that are not clean.
    pub fn content(&self) -> String {
        let mut text = self.tree.clone();
        for nested in &self.nested {
            if !nested.dirty && !nested.inside.lacks() {
                continue;
            }
            let _: std::fmt::Result = write!(
                text,
                " [{} {}]",
                nested.path.escape_ascii(),
                nested.inside.content()
            );
        }
        for (path, mode, bytes) in &self.loose {
            let (path, bytes) = (path.escape_ascii(), bytes.escape_ascii());
            let _: std::fmt::Result = write!(text, " ({path} {mode:o} {bytes})");
        }
        for path in &self.absent {
            let _: std::fmt::Result = write!(text, " -{}", path.escape_ascii());
        }
        text
    }

    /// Tells whether something that the tree names as a repository is not there, however deep.
    fn lacks(&self) -> bool {
        !self.absent.is_empty() || self.nested.iter().any(|nested| nested.inside.lacks())
    }

    /// Lists path, commit and whether it is dirty of every repository inside, however deep.
    pub fn flat(&self) -> Vec<(Vec<u8>, Option<String>, bool)> {
        let mut all = Vec::new();
        for nested in &self.nested {
            all.push((nested.path.clone(), nested.head.clone(), nested.dirty));
            for (path, head, dirty) in nested.inside.flat() {
                all.push(([nested.path.as_slice(), b"/", &path].concat(), head, dirty));
            }
        }
        all
    }
}

/// What plain git says of the tree at `root`, without the runtime folder; `Err` with its words where it refuses.
///
/// A copied index would inherit what git overlooks, so the ids alone go into a new one. Skip-worktree is put back on
/// entries whose file is absent: for those the index entry stands. A file of attributes that is no longer a file is emptied in
/// the scratch index: whether git still reads it there depends on which names come before it. A file behind a link to
/// itself is left out: git complains of it, and neither keeps nor removes it with reason.
pub fn tree(root: &Path, env: &Env) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    Scratch::new(root, env, folder.path())?.tree()
}

/// As [`tree`], and into the repositories inside.
pub fn whole(root: &Path, env: &Env) -> Result<Whole, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let git = Scratch::new(root, env, folder.path())?;
    let tree = git.tree()?;
    let mut nested = Vec::new();
    let mut loose = Vec::new();
    let mut absent = Vec::new();
    if holds_repository(root) || git.may_hold_gitlinks() {
        let staged = git.run(&["ls-files", "-s", "-z"], b"", true)?;
        for line in staged.split(|byte| *byte == 0) {
            if let Some(rest) = line.strip_prefix(b"160000 ")
                && let Some(tab) = rest.iter().position(|byte| *byte == b'\t')
                && let Some(path) = rest.get(tab + 1..)
            {
                match git.nested(path)? {
                    Some(found) => nested.push(found),
                    None => {
                        let files = git.loose(path)?;
                        if files.is_empty() && git.is_folder(path) {
                            absent.push(path.to_vec());
                        }
                        loose.extend(files);
                    }
                }
            }
        }
    }
    Ok(Whole {
        tree,
        nested,
        loose,
        absent,
    })
}

/// Mode and id of every path in the tree that [`tree`] names.
pub fn entries(root: &Path, env: &Env) -> Result<Entries, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let git = Scratch::new(root, env, folder.path())?;
    git.tree()?;
    Ok(listed(&git.run(&["ls-files", "-s", "-z"], b"", true)?, 1))
}

/// Mode and id of every path in the commit at HEAD.
pub fn head_entries(root: &Path, env: &Env) -> Result<Entries, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let git = Scratch::new(root, env, folder.path())?;
    if git
        .run(&["rev-parse", "-q", "--verify", "HEAD"], b"", false)
        .is_err()
    {
        return Ok(Entries::new());
    }
    // `<mode> <type> <id>\t<path>`
    let listing = git.run(&["ls-tree", "-r", "-z", "HEAD"], b"", false)?;
    Ok(listed(&listing, 2))
}

/// Tells whether a file is, byte for byte, what git checks out of its merged entry in the index, or what git made that entry
/// of under a conversion of the walk's, and the entry is `entry`. For git such a file is clean, whatever a conversion that was
/// switched on or off later would make of it.
pub fn is_checked_out(root: &Path, env: &Env, path: &[u8], entry: &(String, String)) -> bool {
    let Ok(folder) = tempfile::tempdir() else {
        return false;
    };
    let Ok(git) = Scratch::new(root, env, folder.path()) else {
        return false;
    };
    let listing = git.run(&["ls-files", "-s", "-z"], b"", false);
    let index = listed(&listing.unwrap_or_default(), 1);
    let (Some(found), Ok(bytes)) = (
        index.get(path),
        std::fs::read(root.join(OsStr::from_bytes(path))),
    ) else {
        return false;
    };
    if found != entry {
        return false;
    }
    let named = OsString::from_vec([b":0:".as_slice(), path].concat());
    let read = |how: &str, name: &OsStr| {
        let args = [OsStr::new("cat-file"), OsStr::new(how), name];
        let output = git.command(args, false).output();
        output.map_or_else(|_| Vec::new(), |output| output.stdout)
    };
    let blob = read("blob", OsStr::new(&entry.1));
    bytes == blob || bytes == read("--filters", &named) || conversions(&bytes).contains(&blob)
}

/// What the conversions of a walk may make of content, alone and together.
fn conversions(bytes: &[u8]) -> Vec<Vec<u8>> {
    let lines = |bytes: &[u8]| replaced(bytes, b"\r\n", b"\n");
    let upper = |bytes: &[u8]| bytes.to_ascii_uppercase();
    let decoded = |bytes: &[u8]| match bytes.strip_prefix(b"\xff\xfe") {
        Some(text) => {
            let units = text
                .chunks_exact(2)
                .map(|two| u16::from_le_bytes([two[0], two[1]]));
            String::from_utf16_lossy(&units.collect::<Vec<u16>>()).into_bytes()
        }
        None => bytes.to_vec(),
    };
    let own = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| {
                if (b'a'..=b'y').contains(byte) {
                    byte + 1
                } else {
                    *byte
                }
            })
            .collect()
    };
    type Step<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;
    let steps: [Step<'_>; 5] = [&upper, &own, &decoded, &lines, &folded];
    let mut all = vec![bytes.to_vec()];
    for step in steps {
        let more: Vec<Vec<u8>> = all.iter().map(|bytes| step(bytes)).collect();
        all.extend(more);
    }
    all
}

/// Folds every `$Id: … $` of a line into `$Id$`, as `ident` does.
fn folded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        let long = rest.strip_prefix(b"$Id:").and_then(|inside| {
            let end = inside
                .iter()
                .position(|byte| matches!(byte, b'$' | b'\n'))?;
            inside[end..].strip_prefix(b"$")
        });
        if let Some(after) = long {
            out.extend(b"$Id$");
            rest = after;
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(from) {
            out.extend(to);
            rest = after;
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

/// Mode and id by path.
pub type Entries = BTreeMap<Vec<u8>, (String, String)>;

/// Reads lines of fields, a tab and a path; the id is the field with the number `at`.
fn listed(listing: &[u8], at: usize) -> Entries {
    listing
        .split(|byte| *byte == 0)
        .filter_map(|line| {
            let head = line.split(|byte| *byte == b'\t').next()?;
            let path = line.get(head.len() + 1..)?;
            let head = std::str::from_utf8(head).ok()?;
            let fields: Vec<&str> = head.split(' ').collect();
            let (mode, id) = (*fields.first()?, *fields.get(at)?);
            let merged = at == 2 || fields.get(2) == Some(&"0");
            let runtime = path.split(|byte| *byte == b'/').next() == Some(RUNTIME);
            (merged && !runtime).then(|| (path.to_vec(), (mode.to_owned(), id.to_owned())))
        })
        .collect()
}

/// Tells whether a `.git` lies somewhere below a root.
fn holds_repository(root: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(root) else {
        return false;
    };
    entries.flatten().any(|entry| {
        entry.file_name() != ".git"
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && (entry.path().join(".git").symlink_metadata().is_ok()
                || holds_repository(&entry.path()))
    })
}

/// Finds the git folder of a work tree, and the folder of its objects, by git's files: a folder `.git`, or a file that names
/// one, which may name a common one.
fn folders(root: &Path) -> Result<(PathBuf, PathBuf), String> {
    let text = |path: &Path| {
        std::fs::read(path).map(|bytes| OsStr::from_bytes(bytes.trim_ascii_end()).to_owned())
    };
    let link = root.join(".git");
    let git_dir = if link.is_dir() {
        link
    } else {
        let named = text(&link).map_err(|error| format!("{}: {error}", link.display()))?;
        let named = named
            .as_bytes()
            .strip_prefix(b"gitdir: ")
            .ok_or("a .git that names nothing")?;
        root.join(OsStr::from_bytes(named))
    };
    let common = match text(&git_dir.join("commondir")) {
        Ok(common) => git_dir.join(common),
        Err(_) => git_dir.clone(),
    };
    Ok((git_dir, common.join("objects")))
}

struct Scratch<'a> {
    root: &'a Path,
    env: &'a Env,
    folder: &'a Path,
    git_dir: PathBuf,
    objects: PathBuf,
}

impl<'a> Scratch<'a> {
    fn new(root: &'a Path, env: &'a Env, folder: &'a Path) -> Result<Self, String> {
        std::fs::create_dir_all(folder.join("objects")).map_err(|error| error.to_string())?;
        let (git_dir, objects) = folders(root)?;
        Ok(Self {
            root,
            env,
            folder,
            git_dir,
            objects,
        })
    }

    fn tree(&self) -> Result<String, String> {
        // `<tag> <mode> <id> <stage>\t<path>`; the tag `S` is skip-worktree.
        let listing = self.run(&["ls-files", "-s", "-t", "-z"], b"", false)?;
        let (mut info, mut skipped) = (Vec::new(), Vec::new());
        let mut held = HashSet::new();
        for line in listing
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty())
        {
            let (tag, line) = line.split_at_checked(2).unwrap_or_default();
            let head = line.split(|byte| *byte == b'\t').next().unwrap_or_default();
            let path = line.get(head.len() + 1..).unwrap_or_default();
            if !held.insert((path, head.last())) {
                self.must_name_once()?;
            }
            if path.split(|byte| *byte == b'/').next() == Some(RUNTIME) {
                continue;
            }
            let there = self.root.join(OsStr::from_bytes(path)).symlink_metadata();
            if tag != b"S "
                && there
                    .as_ref()
                    .is_err_and(|error| error.raw_os_error() == Some(LOOP))
            {
                continue;
            }
            if tag == b"S " && there.is_err() && self.is_intended(head, path)? {
                continue;
            }
            let stale = path.split(|byte| *byte == b'/').next_back() == Some(b".gitattributes")
                && !there.as_ref().is_ok_and(std::fs::Metadata::is_file)
                && tag != b"S ";
            if stale {
                info.extend(emptied(head));
            } else {
                info.extend(head);
            }
            info.push(b'\t');
            info.extend(path);
            info.push(0);
            if tag == b"S " && there.is_err() {
                skipped.extend(path);
                skipped.push(0);
            }
        }
        if !info.is_empty() {
            self.run(&["update-index", "-z", "--index-info"], &info, true)?;
        }
        if !skipped.is_empty() {
            self.run(
                &["update-index", "--skip-worktree", "-z", "--stdin"],
                &skipped,
                true,
            )?;
        }
        self.run(&["add", "-A"], b"", true)?;
        if self
            .root
            .join(OsStr::from_bytes(RUNTIME))
            .symlink_metadata()
            .is_err()
        {
            return self.written();
        }
        self.without_runtime()
    }

    /// Tells whether an entry is only meant to be added, and so in no tree: it looks like an empty file.
    fn is_intended(&self, head: &[u8], path: &[u8]) -> Result<bool, String> {
        if emptied(head) != head {
            return Ok(false);
        }
        let args = ["--literal-pathspecs", "ls-files", "--debug", "-z", "--"];
        let args = args.map(OsStr::new).into_iter();
        let output = self
            .command(args.chain([OsStr::from_bytes(path)]), false)
            .output()
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let flags = text.trim_end().rsplit(' ').next().unwrap_or_default();
        let flags = u32::from_str_radix(flags, 16).map_err(|error| format!("{text}: {error}"))?;
        Ok(flags & 0x2000_0000 != 0)
    }

    /// Refuses where a tree that the index names as a whole names a path twice: which tree git writes then depends on whether
    /// it had to read that one.
    fn must_name_once(&self) -> Result<(), String> {
        let args = [
            "-c",
            "core.sparseCheckout=true",
            "-c",
            "core.sparseCheckoutCone=true",
            "-c",
            "index.sparse=true",
            "ls-files",
            "--sparse",
            "-s",
            "-z",
        ];
        let listing = self.run(&args, b"", false)?;
        let folders = String::from_utf8_lossy(&listing);
        for folder in folders
            .split('\0')
            .filter_map(|line| line.strip_prefix("040000 "))
        {
            let id = folder.split(' ').next().unwrap_or_default();
            let names = self.run(&["ls-tree", "-r", "-z", "--name-only", id], b"", false)?;
            let mut held = HashSet::new();
            if !names.split(|byte| *byte == 0).all(|name| held.insert(name)) {
                return Err(format!("the tree of {folder} names a path twice"));
            }
        }
        Ok(())
    }

    fn written(&self) -> Result<String, String> {
        let tree = self.run(&["write-tree", "--missing-ok"], b"", true)?;
        Ok(String::from_utf8_lossy(&tree).trim().to_owned())
    }

    /// Returns the tree of the scratch index without the runtime folder.
    fn without_runtime(&self) -> Result<String, String> {
        let runtime = self.run(&["ls-files", "-z", "--", ".agent-context"], b"", true)?;
        if !runtime.is_empty() {
            self.run(
                &["update-index", "--force-remove", "-z", "--stdin"],
                &runtime,
                true,
            )?;
        }
        self.written()
    }

    /// Tells whether the scratch index has the bytes of a gitlink's mode in it.
    fn may_hold_gitlinks(&self) -> bool {
        let index = std::fs::read(self.folder.join("index")).unwrap_or_default();
        index.windows(4).any(|four| four == [0, 0, 0xE0, 0])
    }

    /// Tells whether a path is a folder that no link leads to.
    fn is_folder(&self, path: &[u8]) -> bool {
        let mut folder = self.root.to_path_buf();
        path.split(|byte| *byte == b'/').all(|part| {
            folder.push(OsStr::from_bytes(part));
            folder.symlink_metadata().is_ok_and(|meta| meta.is_dir())
        })
    }

    /// Lists the files and links below a folder, without what is named `.git`.
    fn loose(&self, path: &[u8]) -> Result<Vec<Loose>, String> {
        use std::os::unix::fs::MetadataExt as _;
        let mut found = Vec::new();
        let mut todo = Vec::from_iter(self.is_folder(path).then(|| path.to_vec()));
        while let Some(folder) = todo.pop() {
            let listed = std::fs::read_dir(self.root.join(OsStr::from_bytes(&folder)));
            for entry in listed.map_err(|error| error.to_string())?.flatten() {
                let name = [folder.as_slice(), b"/", entry.file_name().as_bytes()].concat();
                let meta = entry.metadata().map_err(|error| error.to_string())?;
                if entry.file_name() == ".git" {
                    continue;
                }
                if meta.is_dir() {
                    todo.push(name);
                } else if meta.is_symlink() {
                    let target = std::fs::read_link(entry.path()).unwrap_or_default();
                    found.push((name, 0o120_000, target.into_os_string().into_vec()));
                } else if meta.is_file() {
                    let bytes = std::fs::read(entry.path()).map_err(|error| error.to_string())?;
                    found.push((name, 0o100_644 | meta.mode() & 0o100, bytes));
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// Tells whether a tree is that of HEAD, without our own folder. git writes trees at times that name a path twice: such a
    /// one is compared by what it comes to when it is written anew.
    fn is_tree_of_head(&self, tree: &str) -> Result<bool, String> {
        let head = self.run(&["rev-parse", "HEAD^{tree}"], b"", false)?;
        if String::from_utf8_lossy(&head).trim() == tree {
            return Ok(true);
        }
        let listing = self.run(&["ls-tree", "-r", "-z", "HEAD"], b"", false)?;
        self.run(&["read-tree", "--empty"], b"", true)?;
        self.run(&["update-index", "-z", "--index-info"], &listing, true)?;
        Ok(self.without_runtime()? == tree)
    }

    /// Looks into a repository inside; `None` where there is none.
    fn nested(&self, path: &[u8]) -> Result<Option<Nested>, String> {
        let root = self.root.join(OsStr::from_bytes(path));
        if !self.is_folder(path) {
            return Ok(None);
        }
        let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
        let Ok(git) = Scratch::new(&root, self.env, scratch.path()) else {
            return Ok(None);
        };
        let inside = whole(&root, self.env)?;
        let Ok(head) = git.run(&["rev-parse", "-q", "--verify", "HEAD"], b"", false) else {
            return Ok(Some(Nested {
                path: path.to_vec(),
                head: None,
                dirty: true,
                inside,
            }));
        };
        let is_head = git.is_tree_of_head(&inside.tree)?;
        Ok(Some(Nested {
            path: path.to_vec(),
            head: Some(String::from_utf8_lossy(&head).trim().to_owned()),
            dirty: !is_head
                || !inside.loose.is_empty()
                || inside.nested.iter().any(|nested| nested.dirty),
            inside,
        }))
    }

    fn command<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        scratch: bool,
    ) -> Command {
        let mut command = Command::new("git");
        command
            .env_clear()
            .envs(self.env.vars())
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("LC_ALL", "C")
            .current_dir(self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A submodule that was moved is still looked at where it is, and a folder that is none never stands for the one
        // around it.
        command
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_WORK_TREE", self.root);
        for setting in [
            "core.fsmonitor=false",
            "core.sparseCheckout=false",
            "core.safecrlf=false",
            "core.fsync=none",
            "core.looseCompression=0",
            "index.sparse=false",
            "core.splitIndex=false",
        ] {
            command.args(["-c", setting]);
        }
        command.args(args);
        if scratch {
            command
                .env("GIT_INDEX_FILE", self.folder.join("index"))
                .env("GIT_OBJECT_DIRECTORY", self.folder.join("objects"))
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.objects);
        }
        command
    }

    fn run(&self, args: &[&str], input: &[u8], scratch: bool) -> Result<Vec<u8>, String> {
        let mut command = self.command(args, scratch);
        if !input.is_empty() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let writer = child.stdin.take().map(|mut stdin| {
            let input = input.to_vec();
            std::thread::spawn(move || stdin.write_all(&input))
        });
        let output = child
            .wait_with_output()
            .map_err(|error| error.to_string())?;
        // A git that refused may not have read all of it.
        drop(writer.map(std::thread::JoinHandle::join));
        // What it passes over it only says.
        let passed_over = args.first() == Some(&"update-index")
            && output
                .stderr
                .windows(13)
                .any(|text| text == b"gnoring path ");
        if output.status.success() && !passed_over {
            Ok(output.stdout)
        } else {
            Err(format!(
                "git {args:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            ))
        }
    }
}

/// `<mode> <id> <stage>` with the id of the content without bytes.
fn emptied(head: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(head);
    let fields: Vec<&str> = text.split(' ').collect();
    match fields.as_slice() {
        [mode, id, stage] => {
            let empty = if id.len() == 40 {
                "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
            } else {
                "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
            };
            format!("{mode} {empty} {stage}").into_bytes()
        }
        _ => head.to_vec(),
    }
}
