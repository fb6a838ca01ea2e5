//! Plain git as the judge: `git add -A && git write-tree` in a scratch index that carries no stat data and no flags.
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use takeup_core::env::Env;

/// What plain git says of the tree at `root`, without the runtime folder; `Err` with its words where it refuses.
///
/// A copied index would inherit what git overlooks, so the ids alone go into a new one. Skip-worktree is put back on
/// entries whose file is absent: for those the index entry stands. A file of attributes that is no longer a file is emptied in
/// the scratch index: whether git still reads it there depends on which names come before it.
pub fn tree(root: &Path, env: &Env) -> Result<String, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let git = Scratch {
        root,
        env,
        folder: scratch.path(),
    };
    std::fs::create_dir_all(scratch.path().join("objects")).map_err(|error| error.to_string())?;
    let staged = git.run(&["ls-files", "-s", "-z"], b"", false)?;
    let tagged = git.run(&["ls-files", "-t", "-z"], b"", false)?;
    let staged = without_stale_attributes(root, &staged, &tagged);
    git.run(&["update-index", "-z", "--index-info"], &staged, true)?;
    let mut skipped = Vec::new();
    for line in tagged.split(|byte| *byte == 0) {
        if let Some(path) = line.strip_prefix(b"S ")
            && root
                .join(OsStr::from_bytes(path))
                .symlink_metadata()
                .is_err()
        {
            skipped.extend(path);
            skipped.push(0);
        }
    }
    if !skipped.is_empty() {
        git.run(
            &["update-index", "--skip-worktree", "-z", "--stdin"],
            &skipped,
            true,
        )?;
    }
    git.run(&["add", "-A"], b"", true)?;
    let runtime = git.run(&["ls-files", "-z", "--", ".agent-context"], b"", true)?;
    if !runtime.is_empty() {
        git.run(
            &["update-index", "--force-remove", "-z", "--stdin"],
            &runtime,
            true,
        )?;
    }
    let tree = git.run(&["write-tree", "--missing-ok"], b"", true)?;
    Ok(String::from_utf8_lossy(&tree).trim().to_owned())
}

fn without_stale_attributes(root: &Path, staged: &[u8], tagged: &[u8]) -> Vec<u8> {
    let mut info = Vec::new();
    for line in staged
        .split(|byte| *byte == 0)
        .filter(|line| !line.is_empty())
    {
        let text = line.split(|byte| *byte == b'\t').next().unwrap_or_default();
        let path = line.get(text.len() + 1..).unwrap_or_default();
        let skipped = [b"S ".as_slice(), path].concat();
        let stale = path.split(|byte| *byte == b'/').next_back() == Some(b".gitattributes")
            && !root
                .join(OsStr::from_bytes(path))
                .symlink_metadata()
                .is_ok_and(|meta| meta.is_file())
            && !tagged.split(|byte| *byte == 0).any(|tag| tag == skipped);
        if stale {
            let text = String::from_utf8_lossy(text);
            let fields: Vec<&str> = text.split(' ').collect();
            if let [mode, id, stage] = fields.as_slice() {
                let empty = if id.len() == 40 {
                    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
                } else {
                    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
                };
                info.extend(format!("{mode} {empty} {stage}\t").bytes());
                info.extend(path);
            }
        } else {
            info.extend(line);
        }
        info.push(0);
    }
    info
}

struct Scratch<'a> {
    root: &'a Path,
    env: &'a Env,
    folder: &'a Path,
}

impl Scratch<'_> {
    fn run(&self, args: &[&str], input: &[u8], scratch: bool) -> Result<Vec<u8>, String> {
        let mut command = Command::new("git");
        command
            .env_clear()
            .envs(self.env.vars())
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("LC_ALL", "C")
            .current_dir(self.root)
            .args([
                "-c",
                "core.fsmonitor=false",
                "-c",
                "core.sparseCheckout=false",
                "-c",
                "core.safecrlf=false",
            ])
            .args([
                "-c",
                "core.fsync=none",
                "-c",
                "index.sparse=false",
                "-c",
                "core.splitIndex=false",
            ])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if scratch {
            let objects = self.git_path("objects")?;
            command
                .env("GIT_INDEX_FILE", self.folder.join("index"))
                .env("GIT_OBJECT_DIRECTORY", self.folder.join("objects"))
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
        }
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child
            .wait_with_output()
            .map_err(|error| error.to_string())?;
        // A git that refused may not have read all of it.
        drop(writer.join());
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(format!(
                "git {args:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            ))
        }
    }

    fn git_path(&self, name: &str) -> Result<std::path::PathBuf, String> {
        let path = self.run(&["rev-parse", "--git-path", name], b"", false)?;
        Ok(self.root.join(OsStr::from_bytes(path.trim_ascii_end())))
    }
}
