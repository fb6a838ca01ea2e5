//! Keeps the disk bounded: what may go, why, and how much it is.
//!
//! The caps, all of them in [`Limits::DEFAULT`]: closed tasks leave the hot path for the archive after 14 days, or when
//! more than 100 are there; the archive keeps 32 MiB, and a single task that is larger for 30 days; damaged pieces that were put aside stay 30 days; temporary files that
//! a killed process left go after an hour. The journal and the snapshot hold the open tasks, the last 500 observations and
//! the last 100 closed tasks; the log and its predecessor hold 512 KiB. Background tasks have limits of their own
//! ([`crate::background::Limits`]).
//!
//! [`collect`] is what `git takeup gc` calls. [`tidy`] is what runs by itself after a git hook, and only archives.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::background;
use crate::engine::Engine;
use crate::error::{Exit, Explain};
use crate::files::{FileError, Staged, sweep};
use crate::ids::{SessionRef, TaskId};
use crate::ledger::{Actor, Ledger, LedgerError, TaskEntry, View};
use crate::paths::state_dir;
use crate::repository::{Place, RepositoryError, discover, forget_gone_places};
use crate::time::{Clock, Time};

/// So many tasks are archived by one record. Every file is flushed, so thousands take a while; what is done by then stays
/// done when the process is ended.
const AT_ONCE: usize = 500;

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Closed tasks that were not touched for so long go into the archive.
    pub closed_age: Duration,
    /// The newest closed tasks of this number stay out of the archive.
    pub closed_number: usize,
    /// The newest archived tasks stay whose files fit into this many bytes together.
    pub archive_bytes: u64,
    /// Damaged pieces that were put aside stay so long.
    pub aside_age: Duration,
    /// Temporary files that are so old belong to nobody.
    pub temporary_age: Duration,
}

impl Limits {
    /// What is kept unless something else is asked for.
    pub const DEFAULT: Self = Self {
        closed_age: Duration::from_hours(14 * 24),
        closed_number: 100,
        archive_bytes: 32 << 20,
        aside_age: Duration::from_hours(30 * 24),
        temporary_age: Duration::from_hours(1),
    };
}

/// What is collected in this call.
#[derive(Debug, thiserror::Error)]
pub enum GcError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The place.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// Background tasks.
    #[error(transparent)]
    Background(#[from] background::BackgroundError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Explain for GcError {
    fn code(&self) -> &'static str {
        match self {
            Self::Ledger(error) => error.code(),
            Self::Repository(error) => error.code(),
            Self::Background(error) => error.code(),
            Self::File(error) => error.code(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Ledger(error) => error.hint(),
            Self::Repository(error) => error.hint(),
            Self::Background(error) => error.hint(),
            Self::File(error) => error.hint(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Ledger(error) => error.exit(),
            Self::Repository(error) => error.exit(),
            Self::Background(error) => error.exit(),
            Self::File(error) => error.exit(),
        }
    }
}

/// One thing that goes, or would.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// Its name or path.
    pub name: String,
    /// Why it goes.
    pub why: String,
    /// Its bytes; what moves into the archive is not freed.
    pub bytes: u64,
}

/// Kinds of things that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// A closed task moves into the archive.
    ClosedTask,
    /// An archived task is deleted.
    ArchivedTask,
    /// A damaged piece that was put aside is deleted.
    Aside,
    /// A temporary file of a killed process is deleted.
    Temporary,
    /// A background task with its output is deleted.
    BackgroundTask,
    /// A leftover of a background task is deleted.
    Leftover,
    /// A place that is gone leaves the index.
    GonePlace,
}

/// What came of collecting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Collected {
    /// Nothing was changed.
    pub dry_run: bool,
    /// What went, or would go.
    pub items: Vec<Item>,
    /// Bytes that were freed, or would be.
    pub freed_bytes: u64,
    /// Bytes of this repository's ledger before.
    pub ledger_bytes: u64,
}

/// Removes what is beyond the limits, in this repository and for this user; with `dry_run` only says what would go.
pub fn collect(engine: &Engine<'_>, limits: Limits, dry_run: bool) -> Result<Collected, GcError> {
    let mut collected = Collected {
        dry_run,
        ..Collected::default()
    };
    match discover(engine.env, &engine.env.cwd) {
        Ok(place) if place.state().exists() => {
            collected.ledger_bytes = size_of(&place.state());
            in_ledger(engine, &place, limits, &mut collected)?;
        }
        Ok(_) | Err(RepositoryError::NotARepository { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    of_user(engine, &mut collected)?;
    collected.freed_bytes = collected
        .items
        .iter()
        .filter(|item| item.kind != ItemKind::ClosedTask)
        .map(|item| item.bytes)
        .sum();
    Ok(collected)
}

fn in_ledger(
    engine: &Engine<'_>,
    place: &Place,
    limits: Limits,
    collected: &mut Collected,
) -> Result<(), GcError> {
    let clock = engine.clock;
    let dry_run = collected.dry_run;
    let ledger = Ledger::at(place.state()).during("gc");
    let view = ledger.read()?;
    let chosen = surplus(&view, limits, clock.now());
    for (task, why) in &chosen {
        collected.items.push(Item {
            kind: ItemKind::ClosedTask,
            name: task.to_string(),
            why: why.clone(),
            bytes: 0,
        });
    }
    if !dry_run {
        archive(&ledger, clock, &chosen)?;
    }
    let folder = place.state().join("archive");
    let mut kept = 0_u64;
    for file in newest_first(&folder) {
        // One that would not fit alone is no reason to let the others go, and does not go at once.
        if file.bytes > limits.archive_bytes && !file.is_older(clock.now(), limits.aside_age) {
            continue;
        }
        let is_beyond = kept.saturating_add(file.bytes) > limits.archive_bytes;
        if is_beyond && file.path.extension().is_some_and(|end| end == "json") {
            let why = format!(
                "the archive is larger than {} MiB",
                limits.archive_bytes >> 20
            );
            remove(collected, ItemKind::ArchivedTask, &file, why)?;
        } else {
            kept = kept.saturating_add(file.bytes);
        }
    }
    let now = clock.now();
    for path in ledger.aside()? {
        let Some(file) = Found::at(path) else {
            continue;
        };
        let name = file
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let (kind, most) = if name.starts_with(Staged::PREFIX) {
            (ItemKind::Temporary, limits.temporary_age)
        } else {
            (ItemKind::Aside, limits.aside_age)
        };
        if file.is_older(now, most) {
            remove(collected, kind, &file, "older than is kept".to_owned())?;
        }
    }
    Ok(())
}

fn of_user(engine: &Engine<'_>, collected: &mut Collected) -> Result<(), GcError> {
    let store = background::Store::of(engine.env)?;
    let cleaned = background::clean(
        &store,
        background::Limits::DEFAULT,
        None,
        collected.dry_run,
        engine.processes,
        engine.clock.now(),
    )?;
    for removal in cleaned.removed {
        collected.items.push(Item {
            kind: ItemKind::BackgroundTask,
            name: format!("{} {}", removal.id, removal.name),
            why: removal.why,
            bytes: removal.bytes,
        });
    }
    for path in cleaned.leftovers {
        collected.items.push(Item {
            kind: ItemKind::Leftover,
            name: path.display().to_string(),
            why: "it belongs to no task".to_owned(),
            bytes: 0,
        });
    }
    if let Some(state) = state_dir(engine.env).filter(|_| !collected.dry_run) {
        sweep(&state);
    }
    // A damaged index is the doctor's business.
    for place in forget_gone_places(engine.env, !collected.dry_run).unwrap_or_default() {
        collected.items.push(Item {
            kind: ItemKind::GonePlace,
            name: place.root,
            why: "nothing of it is there any more".to_owned(),
            bytes: 0,
        });
    }
    Ok(())
}

/// Moves closed tasks beyond the limits into the archive, so that what every command reads stays small. Meant to run
/// where nobody waits.
pub fn tidy(ledger: &Ledger, clock: &dyn Clock, limits: Limits) -> Result<usize, LedgerError> {
    let chosen = surplus(&ledger.read()?, limits, clock.now());
    archive(ledger, clock, &chosen)
}

/// Picks the closed tasks that go: those beyond the number, the oldest first, and those that are too old.
fn surplus(view: &View, limits: Limits, now: Time) -> Vec<(TaskId, String)> {
    let mut closed: Vec<(Time, &TaskEntry)> = view
        .state
        .tasks
        .values()
        .filter(|entry| entry.is_closed() && !entry.identities.is_empty())
        .map(|entry| {
            let last = entry
                .identities
                .iter()
                .map(|identity| identity.updated_at)
                .max();
            (last.unwrap_or(entry.task.created_at), entry)
        })
        .collect();
    closed.sort_by_key(|(last, entry)| (std::cmp::Reverse(*last), entry.task.task_id.clone()));
    let mut chosen = Vec::new();
    for (number, (last, entry)) in closed.iter().enumerate() {
        let age = u128::try_from(now.since(*last)).unwrap_or(0);
        let why = if number >= limits.closed_number {
            format!("more than {} closed tasks", limits.closed_number)
        } else if age > limits.closed_age.as_millis() {
            format!("closed for {} days", age / 86_400_000)
        } else {
            continue;
        };
        chosen.push((entry.task.task_id.clone(), why));
    }
    chosen
}

fn archive(
    ledger: &Ledger,
    clock: &dyn Clock,
    chosen: &[(TaskId, String)],
) -> Result<usize, LedgerError> {
    let actor = Actor {
        session: SessionRef::person(),
        pid: std::process::id(),
    };
    let mut moved = 0;
    for some in chosen.chunks(AT_ONCE) {
        let ids: BTreeSet<&TaskId> = some.iter().map(|(task, _)| task).collect();
        let done = ledger.archive(clock, Ledger::PATIENCE, &actor, |entry| {
            ids.contains(&entry.task.task_id)
        })?;
        moved += done.value.len();
    }
    Ok(moved)
}

struct Found {
    path: PathBuf,
    bytes: u64,
    modified: i64,
}

impl Found {
    fn at(path: PathBuf) -> Option<Self> {
        let meta = std::fs::symlink_metadata(&path).ok()?;
        let modified = meta
            .modified()
            .ok()?
            .duration_since(std::time::UNIX_EPOCH)
            .ok()?;
        meta.is_file().then(|| Self {
            path,
            bytes: meta.len(),
            modified: i64::try_from(modified.as_millis()).unwrap_or(i64::MAX),
        })
    }

    fn is_older(&self, now: Time, most: Duration) -> bool {
        let age = now.millis().saturating_sub(self.modified);
        u128::try_from(age).is_ok_and(|age| age > most.as_millis())
    }
}

fn newest_first(folder: &Path) -> Vec<Found> {
    let mut files: Vec<Found> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Found::at(entry.path()))
        .collect();
    files.sort_by(|one, other| (other.modified, &other.path).cmp(&(one.modified, &one.path)));
    files
}

fn remove(
    collected: &mut Collected,
    kind: ItemKind,
    file: &Found,
    why: String,
) -> Result<(), GcError> {
    if !collected.dry_run {
        std::fs::remove_file(&file.path)
            .map_err(|error| FileError::new("cannot remove", &file.path, error))?;
    }
    collected.items.push(Item {
        kind,
        name: file.path.display().to_string(),
        why,
        bytes: file.bytes,
    });
    Ok(())
}

/// Returns the bytes of all files below a folder, links not followed.
pub fn size_of(folder: &Path) -> u64 {
    let mut bytes = 0_u64;
    let mut todo = vec![folder.to_path_buf()];
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => todo.push(entry.path()),
                Ok(meta) => bytes = bytes.saturating_add(meta.len()),
                Err(_) => {}
            }
        }
    }
    bytes
}
