//! `inspect`: may a task be taken up here and now, and why? Reads only.
use schemars::JsonSchema;
use serde::Serialize;

use super::candidate::Candidate;
use super::candidates::Gatherer;
use super::running::Running;
use super::{Caller, Engine, EngineError, Site, select};
use crate::fingerprint::Look;
use crate::issue::Issue;
use crate::ledger::TaskEntry;
use crate::paths::text_of_path;

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct InspectRequest {
    /// Only this task.
    pub task: Option<String>,
    /// Only what this session left.
    pub from: Option<String>,
    /// Who asks, where it is named.
    pub session: Option<String>,
    /// The agent of the asking session.
    pub agent: Option<String>,
    /// Trust no metadata and no cache.
    pub verify: bool,
}

/// The answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// The place.
    pub repository: RepositoryView,
    /// The present content; `null` when the look was incomplete.
    pub fingerprint: Option<String>,
    /// Why the look was incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// How the look was taken, and what it cost.
    pub look: LookView,
    /// Every identity there is a word of.
    pub candidates: Vec<Candidate>,
    /// What was damaged on the way.
    pub issues: Vec<Issue>,
    /// What runs in the background for the tasks of the candidates.
    #[serde(skip_serializing_if = "Running::is_empty")]
    pub background: Running,
    /// Whether takeup is used in this repository.
    pub used: bool,
}

/// The place.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryView {
    /// The repository's id; `null` where takeup was never used.
    pub id: Option<String>,
    /// The work tree's id.
    pub worktree_id: Option<String>,
    /// The top of the work tree.
    pub root: String,
    /// The commit HEAD names.
    pub head: Option<String>,
    /// The branch.
    pub branch: Option<String>,
    /// The git operation in progress.
    pub operation: Option<String>,
}

/// How a look was taken.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LookView {
    /// The method.
    pub method: crate::fingerprint::Method,
    /// Why not by the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// What it cost.
    pub counters: crate::fingerprint::Counters,
}

impl LookView {
    /// Shows how a look was taken.
    pub(super) fn of(look: &Look) -> Self {
        Self {
            method: look.method,
            fallback: look.fallback.clone(),
            counters: look.counters,
        }
    }
}

impl RepositoryView {
    /// Shows a place with what a look found.
    pub(super) fn of(site: &Site, look: &Look) -> Self {
        Self {
            id: site.tokens.repository.as_ref().map(ToString::to_string),
            worktree_id: site.tokens.worktree.as_ref().map(ToString::to_string),
            root: text_of_path(&site.place().root),
            head: look.record.head.as_ref().map(ToString::to_string),
            branch: look.record.branch.clone(),
            operation: look.record.operation.clone(),
        }
    }
}

/// Looks, judges and changes nothing.
pub fn inspect(engine: &Engine<'_>, request: &InspectRequest) -> Result<Inspection, EngineError> {
    let site = Site::open(engine)?;
    let caller = Caller::find(
        engine,
        request.session.as_deref(),
        request.agent.as_deref(),
        None,
    )?;
    let look = site.look(engine, false, request.verify)?;
    let gatherer = Gatherer::new(engine, &site, &caller, &look);
    let mut candidates = gatherer.all(&site.view)?;
    if let Some(text) = &request.task {
        select::narrow(&mut candidates, &site.view.state, text)?;
    }
    if let Some(from) = &request.from {
        gatherer.keep_of(&mut candidates, &site.view, from)?;
    }
    let shown = |entry: &&TaskEntry| {
        let mut shown = candidates.iter();
        shown.any(|candidate| candidate.identity.task_id == entry.task.task_id)
    };
    let tasks = site.view.state.tasks.values().filter(shown);
    let beside: Vec<_> = candidates
        .iter()
        .map(|candidate| (candidate.identity.task_id.clone(), candidate.session()))
        .filter(|(task_id, _)| !site.view.state.tasks.contains_key(task_id))
        .collect();
    let running = Running::of_all(engine, &site, tasks, &beside);
    running.mark_all(&mut candidates, &site, look.record.fingerprint.as_ref());
    let mut issues = site.view.issues.clone();
    issues.extend(site.view.loss(&site.place().state()));
    issues.extend(gatherer.issues.iter().cloned());
    Ok(Inspection {
        repository: RepositoryView::of(&site, &look),
        fingerprint: look.record.fingerprint.as_ref().map(ToString::to_string),
        incomplete: look.record.incomplete.clone(),
        look: LookView::of(&look),
        candidates,
        issues,
        background: running,
        used: site.is_used(),
    })
}
