//! What runs in the background for a task: it goes on whatever becomes of the task, so every answer about the task says so. What
//! ended there without success is said, too: nobody waits for it as a rule.
use schemars::JsonSchema;
use serde::Serialize;

use super::folder::folder_in;
use super::prove::CheckView;
use super::{Candidate, Engine, EngineError, Site};
use crate::background::{BackgroundError, CheckFor, Record, State, Store, Watch, exit_status};
use crate::evidence::Evidence;
use crate::ids::{AgentId, BackgroundId, Fingerprint, RepositoryId, SessionRef, TaskId};
use crate::issue::{Issue, IssueKind};
use crate::ledger::TaskEntry;
use crate::paths::path_of_text;
use crate::plan::Proof;
use crate::repository;
use crate::text::command_line;
use crate::time::Time;

/// For so long an end counts as one of late, in milliseconds.
const LATELY: i64 = 86_400_000;

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

/// A background task that belongs to a task and ended lately, and neither with success nor because somebody stopped it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedView {
    /// Its id.
    pub id: BackgroundId,
    /// Its name.
    pub name: String,
    /// The task it belongs to.
    pub task_id: TaskId,
    /// `failed`, `timed-out`, `lost` or `unobserved`.
    pub status: String,
    /// How it ended, in words.
    pub how: String,
    /// When it ended, where that was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// The command that looks at it.
    pub look: String,
}

/// A background task that an agent runs by its own means for a session that holds or held the task.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRunningView {
    /// Its id there.
    pub id: String,
    /// What it is called there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The task it belongs to.
    pub task_id: TaskId,
    /// The session that started it.
    pub session_id: SessionRef,
    /// It is known to run; if not, it may.
    pub runs: bool,
    /// What shows that.
    pub proof: String,
    /// The command that looks at it.
    pub look: String,
}

/// What runs in the background for a task, or for the tasks of a place.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// Background tasks that belong to it and are not over, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<RunningView>,
    /// Those that ended in the last day without success and were not started again, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedView>,
    /// What agents run for it by their own means.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of_agents: Vec<AgentRunningView>,
    /// Records of background tasks that cannot be read: they may belong to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<Issue>,
}

impl Running {
    /// Tells whether nothing runs, and nothing is hidden.
    pub(super) const fn is_empty(&self) -> bool {
        self.tasks.is_empty()
            && self.ended.is_empty()
            && self.of_agents.is_empty()
            && self.issues.is_empty()
    }

    /// Looks for what runs for one task.
    pub(super) fn of(engine: &Engine<'_>, site: &Site, entry: &TaskEntry) -> Self {
        Self::of_all(engine, site, [entry], &[])
    }

    /// Looks for what runs for a task that a place had when it was opened.
    pub(super) fn of_task(engine: &Engine<'_>, site: &Site, task_id: &TaskId) -> Self {
        let entry = site.view.state.tasks.get(task_id);
        entry.map_or_else(Self::default, |entry| Self::of(engine, site, entry))
    }

    /// Looks for what runs for some tasks of a place, and for what sessions left `beside` them. Reads only.
    pub(super) fn of_all<'t>(
        engine: &Engine<'_>,
        site: &Site,
        entries: impl IntoIterator<Item = &'t TaskEntry>,
        beside: &[(TaskId, SessionRef)],
    ) -> Self {
        let entries: Vec<&TaskEntry> = entries.into_iter().collect();
        let held = entries.iter().flat_map(|entry| &entry.identities);
        let held = held.map(|identity| (&identity.task_id, &identity.session));
        let left = beside.iter().map(|(task_id, session)| (task_id, session));
        let of_agents = of_agents(engine, held.chain(left));
        Self {
            of_agents,
            ..Self::of_ours(engine, site, &entries)
        }
    }

    /// Looks for what this program runs for some tasks.
    fn of_ours(engine: &Engine<'_>, site: &Site, entries: &[&TaskEntry]) -> Self {
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
                return Self {
                    issues: vec![Issue::new(store.folder(), kind, error.to_string())],
                    ..Self::default()
                };
            }
        };
        let mut found = Self {
            issues,
            ..Self::default()
        };
        let now = engine.clock.now();
        for seen in seen {
            let record = &seen.record;
            let is_over = record.state.is_over();
            if is_over && now.since(over_at(record)) > LATELY {
                continue;
            }
            let mut of = entries.iter().filter(|entry| belongs(record, entry));
            let Some(entry) = of.next().filter(|_| is_here(engine, site, record)) else {
                continue;
            };
            // Whatever became of it, it was started again.
            found.ended.retain(|ended| ended.name != record.name);
            if !is_over {
                found
                    .tasks
                    .push(view(seen.record, seen.watch, &entry.task.task_id));
            } else if let Some(how) = failure(record) {
                found.ended.push(EndedView {
                    id: record.id.clone(),
                    name: record.name.clone(),
                    task_id: entry.task.task_id.clone(),
                    status: record.state.code().to_owned(),
                    how,
                    ended_at: record.state.ended_at(),
                    look: command_line(["git", "takeup", "bg", "show", record.id.as_str()]),
                });
            }
        }
        found
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

/// Says how a task ended, where that was neither success nor somebody's wish, and where no evidence says it.
fn failure(record: &Record) -> Option<String> {
    let is_told = record.check.is_some() && record.evidence_missing.is_none();
    match record.state {
        State::Starting
        | State::Running { .. }
        | State::Completed { .. }
        | State::Stopped { .. } => None,
        State::Failed { .. } | State::TimedOut { .. } if is_told => None,
        State::Failed { .. }
        | State::TimedOut { .. }
        | State::Lost { .. }
        | State::Unobserved { .. } => record.state.trouble(),
    }
}

/// When a task was over; of one that was lost nobody knows, and it counts from its beginning.
fn over_at(record: &Record) -> Time {
    record.state.ended_at().unwrap_or(record.created_at)
}

/// Tells a session, a line each, which background tasks that it started, or that belong to a task it holds, ended between two
/// moments.
pub(super) fn ends_between(
    engine: &Engine<'_>,
    site: &Site,
    session: &SessionRef,
    (after, until): (Time, Time),
) -> Vec<String> {
    let seen = Store::of(engine.env).and_then(|store| store.look_all(engine.processes));
    // A record that cannot be read is told by every command that looks.
    let Ok((seen, _)) = seen else {
        return Vec::new();
    };
    let holds = |entry: &&TaskEntry| {
        let own = entry.identity(session);
        own.is_some_and(|own| !own.status.is_closed())
    };
    let held: Vec<&TaskEntry> = site.view.state.tasks.values().filter(holds).collect();
    let records = seen.into_iter().map(|seen| seen.record);
    records
        .filter(|record| {
            let at = over_at(record);
            record.state.is_over() && at > after && at <= until
        })
        .filter(|record| {
            record.session.as_ref() == Some(session)
                || held.iter().any(|entry| belongs(record, entry)) && is_here(engine, site, record)
        })
        .map(|record| {
            let id = record.id.as_str();
            let how = match exit_status(&record.state) {
                Some(code) => format!("{}, exit status {code}", record.state.code()),
                None => record.state.code().to_owned(),
            };
            let look = command_line(["git", "takeup", "bg", "output", id]);
            format!("takeup: background task {id} ended: {how}; `{look}` shows what it printed.")
        })
        .collect()
}

/// Looks for what agents run by their own means for sessions of tasks.
fn of_agents<'s>(
    engine: &Engine<'_>,
    sessions: impl Iterator<Item = (&'s TaskId, &'s SessionRef)>,
) -> Vec<AgentRunningView> {
    let sessions: Vec<_> = sessions.collect();
    let mut found = Vec::new();
    for agent in engine.agents {
        let of_agent = |(_, session): &&(&TaskId, &SessionRef)| session.agent == agent.id();
        let sessions: Vec<_> = sessions.iter().filter(of_agent).collect();
        if sessions.is_empty() {
            continue;
        }
        for task in agent.background(engine.env).items {
            let Some((task_id, session)) = sessions
                .iter()
                .find(|(_, session)| session.id == task.session)
            else {
                continue;
            };
            found.push(AgentRunningView {
                look: command_line(["git", "takeup", "bg", "show", task.id.as_str()]),
                id: task.id,
                name: task.name,
                task_id: (*task_id).clone(),
                session_id: (*session).clone(),
                runs: task.runs,
                proof: task.proof,
            });
        }
    }
    found
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
