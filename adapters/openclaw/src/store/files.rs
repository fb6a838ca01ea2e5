//! The store of 2026.7.1 and earlier: `sessions.json` and one JSONL file a session.
use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use takeup_core::files::{open_regular, read_bounded};
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::text::json_of_agent;

use super::database::SessionRow;
use super::entry::{Entry, is_conversation, lenient};
use super::shared::{Owner, unsafe_path};
use super::transcript::Event;

/// The largest index that is read, in bytes.
const INDEX_LIMIT: u64 = 256 << 20;
/// How much of the end of a transcript is read, in bytes.
const TAIL: u64 = 512 << 10;
/// The largest lock file that is read, in bytes.
const LOCK_LIMIT: u64 = 4 << 10;

/// What a transcript holds.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// The folder the session works in, by the header.
    pub(crate) folder: Option<PathBuf>,
    /// The last events, oldest first.
    pub(crate) events: Vec<Event>,
    /// Lines that are none, left out of the events.
    pub(crate) damage: Option<Issue>,
}

/// The files of one agent's sessions.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
}

impl Files {
    /// The store in `<state>/agents/<id>/sessions`, where there is such a folder.
    pub(crate) fn in_folder(folder: PathBuf) -> Option<Self> {
        let is_there = std::fs::symlink_metadata(&folder).is_ok();
        is_there.then_some(Self { folder })
    }

    /// Reads the index, newest first. Without one that can be read, the transcripts there are stand for their sessions.
    pub(crate) fn sessions(&self) -> Result<(Vec<SessionRow>, Vec<Issue>), Issue> {
        let path = self.folder.join("sessions.json");
        if std::fs::symlink_metadata(&path).is_ok() {
            return self
                .indexed()
                .or_else(|issue| Ok((self.by_name()?, vec![issue])));
        }
        let rows = self.by_name()?;
        let missing = (!rows.is_empty()).then(|| {
            Issue::new(
                &path,
                IssueKind::Missing,
                "the list of these sessions is gone; they are known by their transcripts alone",
            )
        });
        Ok((rows, missing.into_iter().collect()))
    }

    /// Lists the transcripts, the one written last first. Their keys are not known.
    fn by_name(&self) -> Result<Vec<SessionRow>, Issue> {
        let unreadable = |error: std::io::Error| {
            Issue::new(&self.folder, IssueKind::Unreadable, error.to_string())
        };
        let mut rows = Vec::new();
        for entry in std::fs::read_dir(&self.folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".jsonl"));
            let Some(id) = id.filter(|id| self.transcript(id).is_some()) else {
                continue;
            };
            let written = entry.metadata().map_err(unreadable)?.mtime();
            rows.push(SessionRow {
                key: id.to_owned(),
                id: id.to_owned(),
                status: None,
                updated_at: written.checked_mul(1000),
                created_at: None,
                label: None,
                display_name: None,
                parent_key: None,
                archived: false,
                entry: None,
                damaged: None,
            });
        }
        rows.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then(a.key.cmp(&b.key)));
        Ok(rows)
    }

    /// Reads the index, newest first.
    fn indexed(&self) -> Result<(Vec<SessionRow>, Vec<Issue>), Issue> {
        let path = self.folder.join("sessions.json");
        let bytes = read_bounded(&path, INDEX_LIMIT)?.unwrap_or_default();
        let index: BTreeMap<String, Box<RawValue>> = json_of_agent(&bytes).map_err(|error| {
            let kind = if bytes.iter().all(|byte| *byte == 0) {
                IssueKind::Zeroed
            } else if error.is_eof() {
                IssueKind::Torn
            } else {
                IssueKind::Corrupt
            };
            Issue::new(&path, kind, error.to_string())
        })?;
        let mut rows = Vec::new();
        let mut issues = Vec::new();
        for (key, raw) in index {
            if !is_conversation(&key) {
                continue;
            }
            let entry = match json_of_agent::<Entry>(raw.get().as_bytes()) {
                Ok(entry) => entry,
                Err(error) => {
                    let message = format!("entry {:?}: {error}", crate::text::one_line(&key, 80));
                    issues.push(Issue::new(&path, IssueKind::Corrupt, message));
                    continue;
                }
            };
            let Some(id) = entry.session_id.clone() else {
                let key = crate::text::one_line(&key, 80);
                let message = format!("entry {key:?} names no session id");
                issues.push(Issue::new(&path, IssueKind::Corrupt, message));
                continue;
            };
            if self.transcript(&id).is_none() {
                issues.push(unsafe_path(&path, "a session id"));
                continue;
            }
            if entry.archived_at.is_some() {
                continue;
            }
            rows.push(SessionRow {
                parent_key: entry
                    .parent_session_key
                    .clone()
                    .or_else(|| entry.spawned_by.clone()),
                key,
                id,
                status: entry.status.clone(),
                updated_at: entry.updated_at,
                created_at: entry.session_started_at.or(entry.started_at),
                label: None,
                display_name: None,
                archived: false,
                entry: Some(entry),
                damaged: None,
            });
        }
        rows.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then(a.key.cmp(&b.key)));
        Ok((rows, issues))
    }

    /// The transcript of a session; `None` where the id is no file name.
    pub(crate) fn transcript(&self, id: &str) -> Option<PathBuf> {
        let plain = !id.is_empty()
            && id.len() <= 200
            && !id.starts_with('.')
            && !id.contains(['/', '\\', '\0']);
        plain.then(|| self.folder.join(format!("{id}.jsonl")))
    }

    /// Reads the header and the last events of a session.
    pub(crate) fn transcript_of(&self, id: &str) -> Result<Transcript, Issue> {
        let Some(path) = self.transcript(id) else {
            return Err(unsafe_path(&self.folder, "a session id"));
        };
        let Some(mut file) = open_regular(&path)? else {
            return Ok(Transcript::default());
        };
        let unreadable =
            |error: std::io::Error| Issue::new(&path, IssueKind::Unreadable, error.to_string());
        let size = file.metadata().map_err(unreadable)?.len();
        let header = {
            let mut start = Vec::new();
            (&file)
                .take(64 << 10)
                .read_to_end(&mut start)
                .map_err(unreadable)?;
            let line = start
                .split(|byte| *byte == b'\n')
                .next()
                .unwrap_or_default();
            json_of_agent::<Event>(line).ok()
        };
        let from = size.saturating_sub(TAIL);
        file.seek(SeekFrom::Start(from)).map_err(unreadable)?;
        let mut end = Vec::new();
        (&file)
            .take(TAIL)
            .read_to_end(&mut end)
            .map_err(unreadable)?;
        if !end.is_empty() && end.iter().all(|byte| *byte == 0) {
            return Err(Issue::new(
                &path,
                IssueKind::Zeroed,
                "it holds zero bytes only",
            ));
        }
        let mut lines = end.split(|byte| *byte == b'\n');
        if from > 0 {
            // The first line of the window is the end of one that began before it.
            lines.next();
        }
        let (mut events, mut bad, mut is_torn) = (Vec::new(), 0_usize, false);
        for line in lines {
            match json_of_agent::<Event>(line) {
                Ok(event) => {
                    events.push(event);
                    is_torn = false;
                }
                Err(_) if line.iter().all(u8::is_ascii_whitespace) => is_torn = false,
                Err(error) => {
                    events.push(Event::lost());
                    bad += 1;
                    is_torn = error.is_eof();
                }
            }
        }
        let damage = match (bad, is_torn) {
            (0, _) => None,
            (1, true) => Some(Issue::new(
                &path,
                IssueKind::Torn,
                "the last line is cut off; it is left out",
            )),
            (bad, _) => Some(Issue::new(
                &path,
                IssueKind::Corrupt,
                format!("{bad} line(s) cannot be read and are left out"),
            )),
        };
        let folder = header
            .and_then(|event| event.cwd)
            .filter(|path| path.is_absolute());
        Ok(Transcript {
            folder,
            events,
            damage,
        })
    }

    /// Reads who works on a session: the lock file beside the transcript.
    pub(crate) fn lock(&self, id: &str) -> Result<Option<Owner>, Issue> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct LockFile {
            #[serde(deserialize_with = "lenient")]
            pid: Option<u32>,
            #[serde(deserialize_with = "lenient")]
            starttime: Option<u64>,
        }
        let Some(mut path) = self.transcript(id) else {
            return Ok(None);
        };
        path.as_mut_os_string().push(".lock");
        let Some(bytes) = read_bounded(&path, LOCK_LIMIT)? else {
            return Ok(None);
        };
        let lock: LockFile = json_of_agent(&bytes)
            .map_err(|error| Issue::new(&path, IssueKind::Corrupt, error.to_string()))?;
        Ok(Some(Owner {
            pid: lock.pid,
            start: lock.starttime,
        }))
    }
}

/// Tells whether an agent has a database at all: with one, its files are what was migrated.
pub(crate) fn is_migrated(database: &Path) -> bool {
    std::fs::symlink_metadata(database).is_ok()
}
