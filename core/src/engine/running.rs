//! What runs in the background for a task: it goes on whatever becomes of the task, so every answer about the task says so.
use schemars::JsonSchema;
use serde::Serialize;

use super::folder::folder_in;
use super::prove::CheckView;
use super::{Candidate, Engine, EngineError, Site};
use crate::background::{BackgroundError, CheckFor, Record, Store, Watch};
use crate::evidence::Evidence;
use crate::ids::{AgentId, BackgroundId, Fingerprint, RepositoryId, SessionRef, TaskId};
use crate::issue::{Issue, IssueKind};
use crate::ledger::TaskEntry;
use crate::paths::path_of_text;
use crate::plan::Proof;
use crate::repository;
use crate::text::command_line;
use crate::time::Time;

/// A background task that belongs to a task and is not over: it was started for the task, or for none by a session that holds it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunningView {
    /// Its id.
    pub id: BackgroundId,
    /// Its name.
    pub name: String,
    /// The task it belongs to.
    pub task_id: TaskId,
    /// `starting` or `running`.
    pub status: String,
    /// Who watches it; `unknown` where it cannot be seen from here whether it runs.
    pub watch: Watch,
    /// The command, masked.
    pub command: String,
    /// The folder it runs in.
    pub cwd: String,
    /// The session that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionRef>,
    /// When it was asked for.
    pub created_at: Time,
    /// Its end is recorded as evidence.
    pub is_check: bool,
    /// The command that looks at it.
    pub look: String,
    /// The command that stops it.
    pub stop: String,
    /// The check it is run for.
    #[serde(skip)]
    check: Option<CheckFor>,
}

/// What runs in the background for a task, or for the tasks of a place.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// Background tasks that belong to it and are not over, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<RunningView>,
    /// Records of background tasks that cannot be read: they may belong to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<Issue>,
}

impl Running {
    /// Tells whether nothing runs, and nothing is hidden.
    pub(super) const fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.issues.is_empty()
    }

    /// Looks for what runs for one task.
    pub(super) fn of(engine: &Engine<'_>, site: &Site, entry: &TaskEntry) -> Self {
        Self::of_all(engine, site, [entry])
    }

    /// Looks for what runs for a task that a place had when it was opened.
    pub(super) fn of_task(engine: &Engine<'_>, site: &Site, task_id: &TaskId) -> Self {
        let entry = site.view.state.tasks.get(task_id);
        entry.map_or_else(Self::default, |entry| Self::of(engine, site, entry))
    }

    /// Looks for what runs for some tasks of a place. Reads only.
    pub(super) fn of_all<'t>(
        engine: &Engine<'_>,
        site: &Site,
        entries: impl IntoIterator<Item = &'t TaskEntry>,
    ) -> Self {
        let entries: Vec<&TaskEntry> = entries.into_iter().collect();
        if entries.is_empty() {
            return Self::default();
        }
        let Ok(store) = Store::of(engine.env) else {
            // Where there is no folder for it, nothing was started.
            return Self::default();
        };
        let (seen, issues) = match store.look_all(engine.processes) {
            Ok(looked) => looked,
            Err(error) => {
                let is_foreign = matches!(error, BackgroundError::ForeignFolder(_));
                let kind = if is_foreign {
                    IssueKind::ForeignOwner
                } else {
                    IssueKind::Unreadable
                };
                let issue = Issue::new(store.folder(), kind, error.to_string());
                return Self {
                    tasks: Vec::new(),
                    issues: vec![issue],
                };
            }
        };
        let mut tasks = Vec::new();
        for seen in seen.into_iter().filter(|seen| !seen.record.state.is_over()) {
            let mut of = entries.iter().filter(|entry| belongs(&seen.record, entry));
            let Some(entry) = of.next() else {
                continue;
            };
            if is_here(engine, site, &seen.record) {
                tasks.push(view(seen.record, seen.watch, &entry.task.task_id));
            }
        }
        Self { tasks, issues }
    }

    /// Marks the checks of a task that are being run on the present content.
    pub(super) fn mark(
        &self,
        task_id: &TaskId,
        checks: &mut [CheckView],
        site: &Site,
        present: Option<&Fingerprint>,
    ) {
        for check in checks {
            let of_check = |running: &&RunningView| {
                &running.task_id == task_id
                    && check.proof != Proof::Fresh
                    && !matches!(running.watch, Watch::Unknown { .. })
                    && running.check.as_ref().is_some_and(|run| {
                        run.line == check.command
                            && present.is_some()
                            && run.before.as_ref() == present
                            && at_top(site, run)
                    })
            };
            let running = self.tasks.iter().find(of_check);
            check.running = running.map(|running| running.id.clone());
        }
    }

    /// Marks the checks of candidates that are being run on the present content.
    pub(super) fn mark_all(
        &self,
        candidates: &mut [Candidate],
        site: &Site,
        present: Option<&Fingerprint>,
    ) {
        for candidate in candidates {
            let (task_id, checks) = (&candidate.identity.task_id, &mut candidate.evidence);
            self.mark(task_id, checks, site, present);
        }
    }
}

/// Returns the id of the call's repository, for what is recorded elsewhere of its tasks; `None` where takeup was never used.
pub fn repository_id(engine: &Engine<'_>) -> Result<Option<RepositoryId>, EngineError> {
    let place = repository::discover(engine.env, &engine.env.cwd)?;
    Ok(repository::tokens(&place)?.repository)
}

fn at_top(site: &Site, run: &CheckFor) -> bool {
    path_of_text(&run.root)
        .is_some_and(|folder| folder_in(&site.place().root, &folder) == Evidence::TOP)
}

/// Tells whether a record names the task, or no task and an agent's session that has held it.
fn belongs(record: &Record, entry: &TaskEntry) -> bool {
    match (&record.task, &record.session) {
        (Some(task), _) => task == &entry.task.task_id,
        (None, Some(session)) => {
            session.agent != AgentId::person() && entry.identity(session).is_some()
        }
        (None, None) => false,
    }
}

/// Tells whether a record is of this repository: what says so is what was recorded, else the folder it runs in.
fn is_here(engine: &Engine<'_>, site: &Site, record: &Record) -> bool {
    let Some(here) = &site.tokens.repository else {
        return false;
    };
    if let Some(repository) = &record.repository {
        return repository == here;
    }
    let there = path_of_text(&record.cwd)
        .and_then(|folder| repository::discover(engine.env, &folder).ok())
        .and_then(|place| repository::tokens(&place).ok());
    there.is_some_and(|tokens| tokens.repository.as_ref() == Some(here))
}

fn view(record: Record, watch: Watch, task_id: &TaskId) -> RunningView {
    let id = record.id.as_str();
    RunningView {
        look: command_line(["git", "takeup", "bg", "show", id]),
        stop: command_line(["git", "takeup", "bg", "stop", id]),
        name: record.name,
        task_id: task_id.clone(),
        status: record.state.code().to_owned(),
        watch,
        command: record.command,
        cwd: record.cwd,
        session_id: record.session,
        created_at: record.created_at,
        is_check: record.check.is_some(),
        check: record.check,
        id: record.id,
    }
}
