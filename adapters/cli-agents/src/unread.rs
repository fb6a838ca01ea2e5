//! Whether a client keeps sessions of a work tree. What stands in them is not read, but for the folder they worked in.
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use takeup_core::files::open_regular;
use takeup_core::repository::Folders;
use takeup_core::text::json_of_agent;

/// How many folders of sessions are looked at.
const MOST: usize = 1_000;
/// How much of a session is looked at for the folder it worked in, in bytes. The first lines may not name it.
const BEGINNING: u64 = 64 << 10;

/// Tells whether anything is in a folder.
pub(crate) fn is_filled(folder: &Path) -> bool {
    folder
        .read_dir()
        .is_ok_and(|mut entries| entries.next().is_some())
}

/// Finds a folder with sessions of a work tree among those of all places. Each is named after the folder that its sessions were
/// started in; one started below the top, or through a link, is known by what it says itself.
pub(crate) fn of_place(folder: &Path, root: &Path) -> Option<PathBuf> {
    let own = folder.join(place_name(root)?);
    if is_filled(&own) {
        return Some(own);
    }
    let mut here = Folders::of(root);
    let entries = folder.read_dir().ok()?.flatten().take(MOST);
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    folders
        .into_iter()
        .find(|folder| started_in(folder).is_some_and(|cwd| here.hold(&cwd)))
}

/// Returns the folder that the sessions of one place were started in, as one of them says.
fn started_in(sessions: &Path) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Line {
        cwd: PathBuf,
    }
    let entries = sessions.read_dir().ok()?.flatten().take(MOST);
    let mut files = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    files.find_map(|path| {
        let mut beginning = Vec::new();
        let file = open_regular(&path).ok()??;
        file.take(BEGINNING).read_to_end(&mut beginning).ok()?;
        let mut lines = beginning.split(|byte| *byte == b'\n');
        lines.find_map(|line| json_of_agent::<Line>(line).ok().map(|line| line.cwd))
    })
}

/// Returns the name of the folder in which Claude Code keeps the sessions of a work tree: its path, each character but letters
/// and digits a hyphen. Source: folders that it made.
fn place_name(root: &Path) -> Option<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    Some(root.to_str()?.chars().map(plain).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_below_the_top_and_through_a_link_are_of_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for path in ["r/.git", "r/src", "r-src/.git", "r/nested/.git"] {
            std::fs::create_dir_all(top.join(path)).unwrap();
        }
        // What git takes for a repository.
        for nested in ["r", "r-src", "r/nested"] {
            let git = top.join(nested).join(".git");
            std::fs::create_dir_all(git.join("objects")).unwrap();
            std::fs::create_dir_all(git.join("refs")).unwrap();
            takeup_core::files::write_atomic(&git.join("HEAD"), b"ref: refs/heads/main\n", 0o644)
                .unwrap();
        }
        std::os::unix::fs::symlink(top.join("r"), top.join("link")).unwrap();
        let root = top.join("r");
        for (started, is_here) in [
            ("r", true),
            ("r/src", true),
            ("link", true),
            ("r-src", false),
            ("r/nested", false),
        ] {
            let projects = top.join("projects");
            let own = projects.join(place_name(&top.join(started)).unwrap());
            std::fs::create_dir_all(&own).unwrap();
            let line = serde_json::json!({"type": "user", "cwd": top.join(started)});
            let text = format!("{{\"type\":\"summary\"}}\n{line}\n");
            takeup_core::files::write_atomic(&own.join("c1.jsonl"), text.as_bytes(), 0o600)
                .unwrap();
            assert_eq!(
                of_place(&projects, &root),
                is_here.then_some(own),
                "{started}"
            );
            std::fs::remove_dir_all(&projects).unwrap();
        }
    }
}
