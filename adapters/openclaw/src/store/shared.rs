//! The database all agents share: gateway, boots, runs, managed work trees.
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use rusqlite::Connection;
use serde::Deserialize;
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::process::{ProcessIdentity, Processes};
use takeup_core::text::json_of_agent;
use takeup_core::time::Time;
use takeup_sqlite::{ReadError, columns, integer, text};

use super::entry::lenient;
use crate::home::Home;

/// What the shared database says. Empty where there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    /// The agents it lists, with their databases inside the state folder.
    pub(crate) agents: Vec<(String, PathBuf)>,
    /// The gateway that owns the state folder.
    pub(crate) gateway: Option<Owner>,
    /// When gateways started, oldest first, with whether they ended in good order.
    pub(crate) boots: Vec<Boot>,
    /// Runs recorded as going on.
    pub(crate) running: Vec<Run>,
    /// Managed work trees by id.
    pub(crate) worktrees: BTreeMap<String, Worktree>,
    /// The version that wrote it.
    pub(crate) version: Option<String>,
}

/// A process as OpenClaw records it: number and, on Linux, start time in clock ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Owner {
    #[serde(deserialize_with = "lenient")]
    pub(crate) pid: Option<u32>,
    #[serde(rename = "startedAt", deserialize_with = "lenient")]
    pub(crate) start: Option<u64>,
}

/// One start of the gateway.
#[derive(Clone, Debug)]
pub(crate) struct Boot {
    pub(crate) id: String,
    pub(crate) started_at: Time,
    pub(crate) completed: bool,
}

/// A run recorded as going on.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) session_key: String,
    pub(crate) is_exec: bool,
    pub(crate) what: String,
    pub(crate) started_at: Option<Time>,
    pub(crate) owner: Owner,
}

/// A managed work tree.
#[derive(Clone, Debug)]
pub(crate) struct Worktree {
    pub(crate) path: PathBuf,
    pub(crate) removed: bool,
    pub(crate) snapshot: Option<String>,
}

/// What has become of a recorded process.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// It runs.
    Runs(ProcessIdentity),
    /// It has ended, and how that is known.
    Over(String),
    /// It cannot be told.
    Unknown(String),
}

impl Owner {
    /// Looks what has become of the process.
    pub(crate) fn fate(&self, processes: &dyn Processes) -> Fate {
        let Some(pid) = self.pid else {
            return Fate::Unknown("no process is recorded".to_owned());
        };
        match processes.identify(pid) {
            Ok(None) => Fate::Over(format!("pid {pid} is gone")),
            Ok(Some(process)) => match self.start {
                Some(start) if start == process.start_ticks => Fate::Runs(process),
                Some(_) => Fate::Over(format!(
                    "pid {pid} belongs to another process now (start {})",
                    process.start_ticks
                )),
                None => Fate::Unknown(format!("pid {pid} runs, and its start is not recorded")),
            },
            Err(error) => Fate::Unknown(error.to_string()),
        }
    }
}

/// Reads the shared database.
pub(crate) fn read(home: &Home) -> Result<Shared, Issue> {
    let path = home.shared_database();
    let shared = takeup_sqlite::read(&path, |db| {
        let mut shared = Shared {
            version: version(db)?,
            ..Shared::default()
        };
        agents(db, home, &mut shared)?;
        gateway(db, &mut shared)?;
        boots(db, &mut shared)?;
        runs(db, &mut shared)?;
        worktrees(db, &mut shared)?;
        Ok(shared)
    })?;
    Ok(shared.unwrap_or_default())
}

/// Returns the program version a database says it was written by.
pub(crate) fn version(db: &Connection) -> Result<Option<String>, ReadError> {
    let meta = columns(db, "schema_meta")?;
    if !meta.has("app_version") || !meta.has("meta_key") {
        return Ok(None);
    }
    let mut statement =
        db.prepare("select app_version from schema_meta where meta_key = 'primary'")?;
    let mut rows = statement.query([])?;
    match rows.next()? {
        Some(row) => text(row, 0),
        None => Ok(None),
    }
}

fn agents(db: &Connection, home: &Home, shared: &mut Shared) -> Result<(), ReadError> {
    let table = columns(db, "agent_databases")?;
    if !table.has("agent_id") || !table.has("path") {
        return Ok(());
    }
    let mut statement = db.prepare("select agent_id, path from agent_databases")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let (Some(name), Some(path)) = (text(row, 0)?, text(row, 1)?)
            && let Some(path) = inside(&home.state, Path::new(&path))
        {
            shared.agents.push((name, path));
        }
    }
    Ok(())
}

/// Joins a recorded path to its folder; `None` where it leads out of it.
pub(crate) fn inside(folder: &Path, path: &Path) -> Option<PathBuf> {
    let joined = folder.join(path);
    let below = joined.strip_prefix(folder).ok()?;
    below
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
        .then_some(joined)
}

fn gateway(db: &Connection, shared: &mut Shared) -> Result<(), ReadError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Payload {
        owner: Owner,
    }
    let table = columns(db, "state_leases")?;
    if !table.has("scope") || !table.has("payload_json") {
        return Ok(());
    }
    let mut statement =
        db.prepare("select payload_json from state_leases where scope = 'gateway-owner'")?;
    let mut rows = statement.query([])?;
    if let Some(row) = rows.next()? {
        shared.gateway = text(row, 0)?
            .and_then(|text| json_of_agent::<Payload>(text.as_bytes()).ok())
            .map(|payload| payload.owner);
    }
    Ok(())
}

fn boots(db: &Connection, shared: &mut Shared) -> Result<(), ReadError> {
    let table = columns(db, "gateway_boot_lifecycle")?;
    if !table.has("boot_id") || !table.has("started_at_ms") {
        return Ok(());
    }
    let query = format!(
        "select boot_id, started_at_ms, {} from gateway_boot_lifecycle order by started_at_ms desc limit 200",
        table.or_null("completed_at_ms")
    );
    let mut statement = db.prepare(&query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let (Some(id), Some(started_at)) = (text(row, 0)?, integer(row, 1)?) {
            shared.boots.push(Boot {
                id,
                started_at: Time::from_millis(started_at),
                completed: integer(row, 2)?.is_some(),
            });
        }
    }
    shared.boots.reverse();
    Ok(())
}

fn runs(db: &Connection, shared: &mut Shared) -> Result<(), ReadError> {
    let table = columns(db, "task_runs")?;
    if !table.has("status") || !table.has("task") {
        return Ok(());
    }
    let query = format!(
        "select coalesce({}, {}, {}), {}, {}, task, {}, {}, {}, {} from task_runs \
         where status = 'running' order by rowid desc limit 1000",
        table.or_null("child_session_key"),
        table.or_null("requester_session_key"),
        table.or_null("owner_key"),
        table.or_null("task_kind"),
        table.or_null("label"),
        table.or_null("started_at"),
        table.or_null("created_at"),
        table.or_null("execution_owner_pid"),
        table.or_null("execution_owner_start_identity"),
    );
    let mut statement = db.prepare(&query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let Some(session_key) = text(row, 0)? else {
            continue;
        };
        let (kind, label, task) = (text(row, 1)?, text(row, 2)?, text(row, 3)?);
        let (started, created) = (integer(row, 4)?, integer(row, 5)?);
        let (pid, start) = (integer(row, 6)?, integer(row, 7)?);
        shared.running.push(Run {
            session_key,
            is_exec: kind.as_deref() == Some("exec"),
            what: task.or(label).unwrap_or_default(),
            started_at: started.or(created).map(Time::from_millis),
            owner: Owner {
                pid: pid.and_then(|pid| u32::try_from(pid).ok()),
                start: start.and_then(|start| u64::try_from(start).ok()),
            },
        });
    }
    Ok(())
}

fn worktrees(db: &Connection, shared: &mut Shared) -> Result<(), ReadError> {
    let table = columns(db, "worktrees")?;
    if !table.has("id") || !table.has("path") {
        return Ok(());
    }
    let query = format!(
        "select id, path, {}, {} from worktrees limit 10000",
        table.or_null("removed_at"),
        table.or_null("snapshot_ref")
    );
    let mut statement = db.prepare(&query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let (Some(id), Some(path)) = (text(row, 0)?, text(row, 1)?) {
            let worktree = Worktree {
                path: PathBuf::from(path),
                removed: integer(row, 2)?.is_some(),
                snapshot: text(row, 3)?,
            };
            shared.worktrees.insert(id, worktree);
        }
    }
    Ok(())
}

/// An issue for a path that leads out of the state folder.
pub(crate) fn unsafe_path(at: &Path, what: &str) -> Issue {
    Issue::new(
        at,
        IssueKind::UnsafePath,
        format!("{what} leads out of its folder and is not read"),
    )
}
