//! jcode's home: where it is, and the closed list of what is ever opened in it.
//!
//! Who owns what: everything below the home is jcode's. It is opened for reading, by [`Home::open`] and
//! [`Home::read_own`] alone, and only the files a [`Part`] can name: sessions, their journals and backups, process markers,
//! todos and the configuration.
//! Credentials (`auth.json` and its like) have no part, so no call of this crate can open them. Written is only a new
//! session ([`crate::create`]) and, on request, the configuration and the skill ([`crate::integrate`]).
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use takeup_core::env::Env;
use takeup_core::files;
use takeup_core::ids::SessionId;
use takeup_core::issue::{Issue, IssueKind};

/// The largest file that is read whole, in bytes. Sessions with many pictures reach tens of megabytes.
pub(crate) const LARGEST: u64 = 256 << 20;

/// The largest small file (marker, todos, configuration), in bytes.
const LARGEST_SMALL: u64 = 4 << 20;

/// A session's id as jcode's own interfaces accept it: 1 to 128 characters of `[A-Za-z0-9_-]`. It names a file and
/// leads nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// Makes a key; `None` where the text is no plain id.
    pub fn new(text: &str) -> Option<Self> {
        let plain = (1..=128).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        plain.then(|| Self(text.to_owned()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id as the rest of the program knows it.
    pub fn session(&self) -> Option<SessionId> {
        SessionId::new(self.0.clone()).ok()
    }

    /// Returns the memorable word: what stands between `session_` and the next `_`.
    pub fn word(&self) -> Option<&str> {
        self.0
            .strip_prefix("session_")?
            .split_once('_')
            .map(|(word, _)| word)
    }

    /// Tells whether another client's session was imported under this id.
    pub fn is_import(&self) -> bool {
        self.0.starts_with("imported_")
    }

    /// Tells whether this is the copy that jcode makes of a crashed session.
    pub fn is_recovery(&self) -> bool {
        self.word() == Some("recovery")
    }
}

/// What may be opened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    /// `sessions/<id>.json`.
    Snapshot(&'a Key),
    /// `sessions/<id>.journal.jsonl`.
    Journal(&'a Key),
    /// `sessions/<id>.bak`: the snapshot before.
    Backup(&'a Key),
    /// `sessions/<id>.journal.corrupt.jsonl`: the copy jcode makes of a journal with bad lines.
    CorruptJournal(&'a Key),
    /// `sessions/<name>`: left over by a write that did not end, or a copy made before an empty session replaced it.
    Sibling(&'a Sibling),
    /// `active_pids/<id>`.
    Active(&'a Key),
    /// `streaming_pids/<id>`.
    Streaming(&'a Key),
    /// `todos/<id>.json`.
    Todos(&'a Key),
    /// `todos/<id>-plan.json`.
    Plan(&'a Key),
    /// `config.toml`.
    Config,
    /// `mcp.json`.
    Mcp,
    /// `skills/takeup/SKILL.md`.
    Skill,
}

/// A file beside a snapshot that its name says belongs to the session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sibling {
    name: String,
    /// What it is.
    pub(crate) kind: SiblingKind,
}

/// Kinds of files beside a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SiblingKind {
    /// `<id>.tmp.<pid>.<n>`: a snapshot that was not renamed into place.
    Unfinished,
    /// `<id>.json.pre-wipe-<ms>.bak`: made when an empty session was about to replace a big one.
    PreWipe(u64),
}

/// A folder that may be listed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Folder {
    /// `sessions`.
    Sessions,
    /// `active_pids`.
    Active,
}

/// A name in the folder of sessions, understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A snapshot.
    Snapshot(Key),
    /// A journal.
    Journal(Key),
    /// Another file of a session that may hold messages.
    Sibling(Key, Sibling),
    /// A snapshot or journal whose name is no plain id.
    Strange(String),
    /// Something else.
    Other,
}

/// Understands a name in the folder of sessions.
pub(crate) fn entry(name: &[u8]) -> Entry {
    let Ok(text) = std::str::from_utf8(name) else {
        return Entry::Other;
    };
    let known = |stem: &str, make: fn(Key) -> Entry| {
        Key::new(stem).map_or_else(|| Entry::Strange(text.to_owned()), make)
    };
    if text.ends_with(".journal.corrupt.jsonl") {
        return Entry::Other;
    }
    if let Some(stem) = text.strip_suffix(".journal.jsonl") {
        return known(stem, Entry::Journal);
    }
    if let Some(stem) = text.strip_suffix(".json") {
        return known(stem, Entry::Snapshot);
    }
    let sibling = |stem: &str, kind| {
        Key::new(stem).map_or(Entry::Other, |key| {
            let name = text.to_owned();
            Entry::Sibling(key, Sibling { name, kind })
        })
    };
    if let Some((stem, rest)) = text.split_once(".json.pre-wipe-") {
        return match rest.strip_suffix(".bak").and_then(|ms| ms.parse().ok()) {
            Some(ms) => sibling(stem, SiblingKind::PreWipe(ms)),
            None => Entry::Other,
        };
    }
    match text.split_once(".tmp.") {
        Some((stem, _)) => sibling(stem, SiblingKind::Unfinished),
        None => Entry::Other,
    }
}

/// jcode's home folder.
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// Returns the home: `JCODE_HOME` where it is set (even to nothing: then the working folder is the home, as in
    /// jcode itself), else `~/.jcode`.
    pub fn of(env: &Env) -> Option<Self> {
        let set = env
            .vars()
            .find(|(name, _)| *name == "JCODE_HOME")
            .map(|(_, value)| env.cwd.join(value));
        set.or_else(|| env.home().map(|home| home.join(".jcode")))
            .map(|root| Self { root })
    }

    /// Makes a home at a path.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns its path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a part.
    pub(crate) fn path(&self, part: Part<'_>) -> PathBuf {
        let sessions = || self.root.join("sessions");
        match part {
            Part::Snapshot(key) => sessions().join(format!("{}.json", key.0)),
            Part::Journal(key) => sessions().join(format!("{}.journal.jsonl", key.0)),
            Part::Backup(key) => sessions().join(format!("{}.bak", key.0)),
            Part::CorruptJournal(key) => {
                sessions().join(format!("{}.journal.corrupt.jsonl", key.0))
            }
            Part::Sibling(sibling) => sessions().join(&sibling.name),
            Part::Active(key) => self.root.join("active_pids").join(&key.0),
            Part::Streaming(key) => self.root.join("streaming_pids").join(&key.0),
            Part::Todos(key) => self.root.join("todos").join(format!("{}.json", key.0)),
            Part::Plan(key) => self.root.join("todos").join(format!("{}-plan.json", key.0)),
            Part::Config => self.root.join("config.toml"),
            Part::Mcp => self.root.join("mcp.json"),
            Part::Skill => self.root.join("skills/takeup/SKILL.md"),
        }
    }

    /// Opens a part for reading. Links are not followed. `Ok(None)` where there is no such file.
    pub(crate) fn open(&self, part: Part<'_>) -> Result<Option<File>, Issue> {
        files::open_regular(&self.path(part))
    }

    /// Reads a file of the person's own: it may lie behind a link of theirs. Returns where it really lies.
    pub(crate) fn read_own(
        &self,
        env: &Env,
        part: Part<'_>,
    ) -> Result<(PathBuf, Option<Vec<u8>>), Issue> {
        let path = files::own(env, &self.path(part))?;
        let bytes = files::read_bounded(&path, LARGEST_SMALL)?;
        Ok((path, bytes))
    }

    /// Reads a part whole. `Ok(None)` where there is no such file.
    pub(crate) fn read(&self, part: Part<'_>) -> Result<Option<Vec<u8>>, Issue> {
        let limit = match part {
            Part::Snapshot(_)
            | Part::Journal(_)
            | Part::Backup(_)
            | Part::CorruptJournal(_)
            | Part::Sibling(_) => LARGEST,
            Part::Active(_)
            | Part::Streaming(_)
            | Part::Todos(_)
            | Part::Plan(_)
            | Part::Config
            | Part::Mcp
            | Part::Skill => LARGEST_SMALL,
        };
        let Some(file) = self.open(part)? else {
            return Ok(None);
        };
        read_file(&file, &self.path(part), limit).map(Some)
    }

    /// Lists the names in a folder. A missing folder is empty.
    pub(crate) fn list(&self, folder: Folder) -> Result<Vec<Vec<u8>>, Issue> {
        let path = self.root.join(match folder {
            Folder::Sessions => "sessions",
            Folder::Active => "active_pids",
        });
        let unreadable =
            |error: std::io::Error| Issue::new(&path, IssueKind::Unreadable, error.to_string());
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry.map_err(unreadable)?.file_name().as_bytes().to_vec());
        }
        Ok(names)
    }

    /// Returns what stands beside a session's snapshot.
    pub(crate) fn siblings(&self, key: &Key) -> Result<Vec<Sibling>, Issue> {
        let mut list: Vec<Sibling> = self
            .list(Folder::Sessions)?
            .iter()
            .filter_map(|name| match entry(name) {
                Entry::Sibling(of, sibling) if of == *key => Some(sibling),
                Entry::Sibling(..)
                | Entry::Snapshot(_)
                | Entry::Journal(_)
                | Entry::Strange(_)
                | Entry::Other => None,
            })
            .collect();
        list.sort();
        Ok(list)
    }
}

/// Reads the rest of an open file, at most `limit` bytes.
pub(crate) fn read_file(file: &File, path: &Path, limit: u64) -> Result<Vec<u8>, Issue> {
    let unreadable =
        |error: std::io::Error| Issue::new(path, IssueKind::Unreadable, error.to_string());
    let size = file.metadata().map_err(unreadable)?.size();
    let too_large = || {
        Issue::new(
            path,
            IssueKind::TooLarge,
            format!("more than the {limit} bytes that are read"),
        )
    };
    if size > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_is_found_as_jcode_finds_it() {
        let home = |vars: &[(&str, &str)]| {
            Home::of(&Env::of(vars.iter().copied(), "/w")).map(|home| home.root)
        };
        assert_eq!(home(&[("HOME", "/h")]), Some("/h/.jcode".into()));
        let both = [("HOME", "/h"), ("JCODE_HOME", "/j")];
        assert_eq!(home(&both), Some("/j".into()));
        let relative = [("HOME", "/h"), ("JCODE_HOME", "j")];
        assert_eq!(home(&relative), Some("/w/j".into()));
        let empty = [("HOME", "/h"), ("JCODE_HOME", "")];
        assert_eq!(home(&empty), Some("/w/".into()));
    }

    #[test]
    fn a_key_leads_nowhere_else() {
        for bad in [
            "",
            "..",
            "../auth",
            "a/b",
            "a.b",
            "a b",
            "ä",
            "a\0",
            &"a".repeat(129),
        ] {
            assert_eq!(Key::new(bad), None, "{bad:?}");
        }
        let key = Key::new("session_t-rex_1777639200000_0000000000000010").unwrap();
        assert_eq!(key.word(), Some("t-rex"));
        assert_eq!(Key::new("session_fox").unwrap().word(), None);
    }

    #[test]
    fn names_are_told_apart() {
        let key = || Key::new("session_fox_1_2").unwrap();
        assert_eq!(entry(b"session_fox_1_2.json"), Entry::Snapshot(key()));
        assert_eq!(
            entry(b"session_fox_1_2.journal.jsonl"),
            Entry::Journal(key())
        );
        assert_eq!(
            entry(b"session_fox_1_2.journal.corrupt.jsonl"),
            Entry::Other
        );
        assert_eq!(entry(b"session_fox_1_2.bak"), Entry::Other);
        assert_eq!(
            entry(b"my notes.json"),
            Entry::Strange("my notes.json".to_owned())
        );
        assert!(
            matches!(entry(b"session_fox_1_2.tmp.4242.123"), Entry::Sibling(k, s)
            if k == key() && s.kind == SiblingKind::Unfinished)
        );
        assert!(
            matches!(entry(b"session_fox_1_2.json.pre-wipe-7.bak"), Entry::Sibling(k, s)
            if k == key() && s.kind == SiblingKind::PreWipe(7))
        );
        assert_eq!(
            entry(b"session_fox_1_2.journal.jsonl.pre-wipe-7.bak"),
            Entry::Other
        );
    }
}
