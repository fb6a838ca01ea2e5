//! Finished tasks, out of the hot path: one file a task under `archive/`, in the frame of `frame.rs`.
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::frame::{self, VERSION};
use super::{
    Actor, Change, Committed, Ledger, LedgerError, State, TaskEntry, TransactError, Transition,
};
use super::{newer_version, read};
use crate::agent::Found;
use crate::files::{self, Staged};
use crate::ids::TaskId;
use crate::issue::{Issue, IssueKind};
use crate::time::Clock;

/// The longest file that is read, and so the longest that is written.
const LONGEST: u64 = if cfg!(test) { 1 << 20 } else { 64 << 20 };

#[derive(Serialize)]
struct OutRecord<'a> {
    v: u32,
    seq: u64,
    entry: &'a TaskEntry,
}

#[derive(Deserialize)]
struct InRecord {
    v: u32,
    entry: TaskEntry,
}

impl Ledger {
    /// Moves closed tasks that `choose` picks into the archive. Returns those that were moved.
    ///
    /// The files are written before the lock is taken. A task that changed in between stays where it is; a file that is
    /// left over then, or after a kill, means nothing as long as the task stands in the state. A task that is longer than the
    /// longest file that is read stays in the state.
    pub fn archive(
        &self,
        clock: &dyn Clock,
        patience: Duration,
        actor: &Actor,
        choose: impl Fn(&TaskEntry) -> bool,
    ) -> Result<Committed<Vec<TaskId>>, LedgerError> {
        let view = self.read()?;
        let chosen: Vec<&TaskEntry> = view
            .state
            .tasks
            .values()
            .filter(|entry| entry.is_closed() && choose(entry))
            .collect();
        let chosen = self.write_archive(chosen)?;
        self.transact(clock, patience, |now| {
            let task_ids: Vec<TaskId> = chosen
                .iter()
                .filter(|entry| now.state.tasks.get(&entry.task.task_id) == Some(entry))
                .map(|entry| entry.task.task_id.clone())
                .collect();
            let transition = (!task_ids.is_empty()).then(|| Transition {
                at: clock.now(),
                actor: actor.clone(),
                operation: "archive".to_owned(),
                changes: vec![Change::Archived {
                    task_ids: task_ids.clone(),
                }],
            });
            Ok((transition, task_ids))
        })
        .map_err(|error| match error {
            TransactError::Ledger(error) | TransactError::Decision(error) => error,
        })
    }

    /// Writes the files of tasks, and returns the tasks for which that was done: those that are not longer than what is read. A
    /// file means nothing as long as its task stands in the state.
    pub(crate) fn write_archive<'a>(
        &self,
        chosen: Vec<&'a TaskEntry>,
    ) -> Result<Vec<&'a TaskEntry>, LedgerError> {
        let folder = self.archive_folder();
        if !chosen.is_empty() {
            files::make_private_folder(&folder)?;
            files::sync_folder(self.dir())?;
        }
        let mut written = Vec::new();
        for entry in chosen {
            let path = self.archive_path(&entry.task.task_id);
            let record = OutRecord {
                v: VERSION,
                seq: entry.seq,
                entry,
            };
            let (mut bytes, _) = frame::seal(&record)
                .map_err(|error| files::FileError::new("cannot write", &path, error))?;
            bytes.push(b'\n');
            if bytes.len() as u64 > LONGEST {
                continue;
            }
            Staged::write(&path, &bytes, 0o600)?.put_unflushed()?;
            written.push(entry);
        }
        if !written.is_empty() {
            files::sync_folder(&folder)?;
        }
        Ok(written)
    }

    /// Reads a task from the archive. `None` where there is none; a damaged one is an [`Issue`]. A task that stands in
    /// the state as well is not archived: ask the state first.
    pub fn read_archive(&self, task_id: &TaskId) -> Result<Option<TaskEntry>, Issue> {
        let path = self.archive_path(task_id);
        self.read_in_place(&path)
    }

    /// Reads a file of the archive; one that holds the task of another file is damaged.
    fn read_in_place(&self, path: &Path) -> Result<Option<TaskEntry>, Issue> {
        match read_record(path)? {
            Some(entry) if self.archive_path(&entry.task.task_id) != path => Err(Issue::new(
                path,
                IssueKind::Corrupt,
                format!("it holds the task {}", entry.task.task_id),
            )),
            found => Ok(found),
        }
    }

    /// Tells whether a task has a name or had it. The state remembers only the tasks that were archived last
    /// ([`State::ARCHIVED`]), so the archive is asked as well.
    pub fn knows(&self, state: &State, task_id: &TaskId) -> bool {
        state.tasks.contains_key(task_id)
            || state.archived.contains(task_id)
            || std::fs::symlink_metadata(self.archive_path(task_id)).is_ok()
    }

    /// Reads the whole archive, ordered by task id.
    pub fn read_whole_archive(&self) -> Result<Found<TaskEntry>, LedgerError> {
        let mut found = Found::default();
        let folder = self.archive_folder();
        if !read::check_folder(self.dir())? || !read::check_folder(&folder)? {
            return Ok(found);
        }
        let fail = |source| files::FileError::new("cannot list", &folder, source);
        for item in std::fs::read_dir(&folder).map_err(fail)? {
            let path = item.map_err(fail)?.path();
            let is_record = path
                .extension()
                .is_some_and(|extension| extension == "json");
            if !is_record {
                continue;
            }
            match self.read_in_place(&path) {
                Ok(entry) => found.items.extend(entry),
                Err(issue) => found.issues.push(issue),
            }
        }
        found
            .items
            .sort_by(|one, other| one.task.task_id.cmp(&other.task.task_id));
        found.issues.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    pub(super) fn archive_folder(&self) -> PathBuf {
        self.dir().join("archive")
    }

    fn archive_path(&self, task_id: &TaskId) -> PathBuf {
        self.archive_folder().join(file_name(task_id))
    }
}

/// Returns the name of a task's file: its id, or where that is too long for a file name its beginning and a digest.
fn file_name(task_id: &TaskId) -> String {
    let id = task_id.as_str();
    // Slugs are ASCII, so every place is a boundary.
    match id.get(..200) {
        Some(start) if id.len() > 200 => {
            let digest = frame::sum_of(id.as_bytes());
            format!("{start}-{}.json", digest.get(..16).unwrap_or_default())
        }
        _ => format!("{id}.json"),
    }
}

fn read_record(path: &Path) -> Result<Option<TaskEntry>, Issue> {
    let Some((mut file, data)) = read::open_own(path)? else {
        return Ok(None);
    };
    if data.len() > LONGEST {
        return Err(Issue::new(
            path,
            IssueKind::TooLarge,
            format!(
                "{} bytes are more than the {LONGEST} that are read",
                data.len()
            ),
        ));
    }
    let bytes = read::read_from(path, &mut file, 0)?;
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    frame::check(line).map_err(|kind| Issue::new(path, kind, "the archived task is damaged"))?;
    let unknown = |newer: &frame::Newer| {
        Issue::new(
            path,
            IssueKind::UnknownVersion,
            newer_version(path, 1, newer).to_string(),
        )
    };
    let record: InRecord = frame::parse(line).map_err(|newer| unknown(&newer))?;
    if record.v != VERSION {
        return Err(unknown(&frame::Newer {
            version: Some(record.v),
        }));
    }
    Ok(Some(record.entry))
}
