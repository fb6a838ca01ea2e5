//! Removing what is over and not wanted any more.
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::look::Seen;
use super::store::{ASIDE, BackgroundError, Store};
use crate::ids::BackgroundId;
use crate::issue::Issue;
use crate::process::Processes;
use crate::time::Time;

/// What is kept of the tasks that are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Older ones go.
    pub age: Duration,
    /// The newest ones of this number stay.
    pub number: usize,
    /// The newest ones stay whose files fit into this many bytes together.
    pub bytes: u64,
}

impl Limits {
    /// What is kept unless something else is asked for: 30 days, 1000 tasks, 2 GiB.
    pub const DEFAULT: Self = Self {
        age: Duration::from_hours(30 * 24),
        number: 1_000,
        bytes: 2 << 30,
    };

    /// Nothing is kept.
    pub const NOTHING: Self = Self {
        age: Duration::ZERO,
        number: 0,
        bytes: 0,
    };
}

/// One task that goes, or would.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Removal {
    /// The task.
    pub id: BackgroundId,
    /// Its name.
    pub name: String,
    /// Its status.
    pub status: String,
    /// The bytes of its files.
    pub bytes: u64,
    /// Why.
    pub why: String,
}

/// What came of cleaning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cleaned {
    /// What went, or would go.
    pub removed: Vec<Removal>,
    /// Leftovers of no task that went, or would go.
    pub leftovers: Vec<PathBuf>,
    /// Tasks that are not over, which always stay.
    pub running: usize,
    /// Records that cannot be read; they stay.
    pub issues: Vec<Issue>,
}

/// How old a leftover is before it is one: what is being started has no status file yet.
const LEFTOVER: Duration = Duration::from_hours(1);
/// How long a damaged record that was put aside is kept, with all that belongs to it.
const ASIDE_AGE: Duration = Duration::from_hours(30 * 24);

/// Removes tasks that are over and beyond the limits; with `dry_run` tells what would go. Of `only`, where given, no other
/// one goes.
pub fn clean(
    store: &Store,
    limits: Limits,
    only: Option<&[BackgroundId]>,
    dry_run: bool,
    processes: &dyn Processes,
    now: Time,
) -> Result<Cleaned, BackgroundError> {
    let (seen, issues) = store.look_all(processes)?;
    let mut cleaned = Cleaned {
        issues,
        ..Cleaned::default()
    };
    let mut kept = 0_usize;
    let mut kept_bytes = 0_u64;
    // Newest first: they are the ones that stay.
    for task in seen.iter().rev() {
        if !task.record.state.is_over() {
            cleaned.running = cleaned.running.saturating_add(1);
            continue;
        }
        let bytes = size(store, &task.record.id);
        if only.is_some_and(|only| !only.contains(&task.record.id)) {
            continue;
        }
        let Some(why) = surplus(task, limits, kept, kept_bytes.saturating_add(bytes), now) else {
            kept = kept.saturating_add(1);
            kept_bytes = kept_bytes.saturating_add(bytes);
            continue;
        };
        if !dry_run && !remove(store, &task.record.id)? {
            continue;
        }
        cleaned.removed.push(Removal {
            id: task.record.id.clone(),
            name: task.record.name.clone(),
            status: task.record.state.code().to_owned(),
            bytes,
            why,
        });
    }
    if only.is_none() {
        cleaned.leftovers = leftovers(store, dry_run, now)?;
    }
    Ok(cleaned)
}

fn surplus(task: &Seen, limits: Limits, kept: usize, bytes: u64, now: Time) -> Option<String> {
    let end = task
        .record
        .state
        .ended_at()
        .unwrap_or(task.record.created_at);
    let age = u64::try_from(now.since(end)).unwrap_or(0);
    if limits == Limits::NOTHING {
        Some("asked for".to_owned())
    } else if u128::from(age) > limits.age.as_millis() {
        Some(format!("over for {} days", age / 86_400_000))
    } else if kept >= limits.number {
        Some(format!("more than {} tasks", limits.number))
    } else if bytes > limits.bytes {
        Some(format!("more than {} bytes", limits.bytes))
    } else {
        None
    }
}

fn size(store: &Store, id: &BackgroundId) -> u64 {
    store
        .files(id)
        .iter()
        .filter_map(|path| path.symlink_metadata().ok())
        .fold(0, |sum, meta| sum.saturating_add(meta.len()))
}

/// Removes the files of a task; `false` where somebody holds its lock.
fn remove(store: &Store, id: &BackgroundId) -> Result<bool, BackgroundError> {
    let Some(held) = store.lock(id)? else {
        return Ok(false);
    };
    for path in store.files(id) {
        match std::fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(crate::files::FileError::new("cannot remove", &path, error).into());
            }
        }
    }
    drop(held);
    Ok(true)
}

/// Finds files of ours that belong to no task: of a start that failed, or a removal that was cut off. Nothing that does not
/// carry our endings is touched.
fn leftovers(store: &Store, dry_run: bool, now: Time) -> Result<Vec<PathBuf>, BackgroundError> {
    const ENDINGS: [&str; 10] = [
        ASIDE,
        ".output",
        ".output.index",
        ".output.new",
        ".output.index.new",
        ".events.jsonl",
        ".lock",
        ".stop.json",
        ".stdout",
        ".stderr",
    ];
    let mut known: BTreeSet<String> = store
        .ids()?
        .iter()
        .map(|id| id.as_str().to_owned())
        .collect();
    let entries = || {
        let entries = std::fs::read_dir(store.folder());
        entries.into_iter().flatten().flatten()
    };
    // What belongs to a damaged record stays as long as that is kept.
    known.extend(entries().filter_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.strip_suffix(ASIDE).map(str::to_owned)
    }));
    let mut found = Vec::new();
    for entry in entries() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_ours = name.starts_with(".takeup-tmp-")
            || name.split_once('.').is_some_and(|(id, ending)| {
                let ending = format!(".{ending}");
                BackgroundId::new(id).is_ok()
                    && (!known.contains(id) || ending == ASIDE)
                    && ENDINGS.contains(&ending.as_str())
            });
        let age = entry
            .metadata()
            .and_then(|meta| meta.modified())
            .ok()
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
            .and_then(|since| i64::try_from(since.as_millis()).ok())
            .map_or(0, |millis| now.millis().saturating_sub(millis));
        let most = if name.ends_with(ASIDE) {
            ASIDE_AGE
        } else {
            LEFTOVER
        };
        if !is_ours || u128::try_from(age).unwrap_or(0) < most.as_millis() {
            continue;
        }
        if dry_run || std::fs::remove_file(entry.path()).is_ok() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
