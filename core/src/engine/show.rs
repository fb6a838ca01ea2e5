//! `show` and `log`: a task with all that is known of it, and its history in words. Reads only.
use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::candidate::Candidate;
use super::candidates::Gatherer;
use super::running::Running;
use super::{Caller, Engine, EngineError, Site, select};
use crate::boundary::Boundary;
use crate::evidence::{Evidence, Outcome};
use crate::fingerprint::Look;
use crate::identity::Note;
use crate::ids::{Fingerprint, TaskId};
use crate::issue::Issue;
use crate::ledger::TaskEntry;
use crate::observation;
use crate::plan::Plan;
use crate::review::{Review, ReviewState};
use crate::time::Time;

/// A task with all that is known of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    /// The task.
    pub task_id: TaskId,
    /// Its title.
    pub title: String,
    /// When it was started.
    pub created_at: Time,
    /// What it may edit.
    pub boundary: Boundary,
    /// What has to be proved.
    pub plan: Plan,
    /// Its sessions, in order, each with its verdict here and now.
    pub candidates: Vec<Candidate>,
    /// Its notes, oldest first.
    pub notes: Vec<Note>,
    /// Every run of a check that is kept, oldest first. Old runs are no proof: `candidates[].evidence` says what is.
    pub runs: Vec<Evidence>,
    /// Its reviews, oldest first.
    pub reviews: Vec<Review>,
    /// It lies in the archive.
    pub archived: bool,
    /// What runs in the background for it.
    #[serde(skip_serializing_if = "Running::is_empty")]
    pub background: Running,
    /// What was damaged on the way.
    pub issues: Vec<Issue>,
}

/// Shows one task; the only unfinished one where none is named.
pub fn show(
    engine: &Engine<'_>,
    task: Option<&str>,
    session: Option<&str>,
    verify: bool,
) -> Result<TaskView, EngineError> {
    let site = Site::open_used(engine, task)?;
    let caller = Caller::find(engine, session, None, None)?;
    let (entry, archived) = entry(&site, &caller, task)?;
    let look = site.look(engine, false, verify)?;
    seen_by(engine, &site, &caller, &look, &entry, archived)
}

/// Shows a task to one who reads of it.
pub(super) fn seen_by(
    engine: &Engine<'_>,
    site: &Site,
    reader: &Caller,
    look: &Look,
    entry: &TaskEntry,
    archived: bool,
) -> Result<TaskView, EngineError> {
    let gatherer = Gatherer::new(engine, site, reader, look);
    let mut candidates = Vec::new();
    for identity in &entry.identities {
        candidates.push(gatherer.of_identity(&site.view, entry, identity)?);
    }
    let running = Running::of(engine, site, entry);
    running.mark_all(&mut candidates, site, look.record.fingerprint.as_ref());
    Ok(TaskView {
        background: running,
        task_id: entry.task.task_id.clone(),
        title: entry.task.title.clone(),
        created_at: entry.task.created_at,
        boundary: entry.task.boundary.clone(),
        plan: entry.task.plan.clone(),
        candidates,
        notes: entry.notes.clone(),
        runs: entry.evidence.clone(),
        reviews: entry.reviews.clone(),
        archived,
        issues: site.view.issues.clone(),
    })
}

/// Finds a task, in the archive too.
pub(super) fn entry(
    site: &Site,
    caller: &Caller,
    task: Option<&str>,
) -> Result<(TaskEntry, bool), EngineError> {
    let state = &site.view.state;
    match task {
        None => {
            let identity = select::to_read(site, state, caller)?;
            state
                .tasks
                .get(&identity.task_id)
                .map(|entry| (entry.clone(), false))
                .ok_or_else(|| EngineError::NoTask(identity.task_id.to_string()))
        }
        Some(text) => {
            // An exact id goes before a title, also that of a task in the archive.
            let archived = match TaskId::new(text) {
                Ok(task_id) if !state.tasks.contains_key(&task_id) => site
                    .ledger
                    .read_archive(&task_id)
                    .map_err(EngineError::Damaged)?,
                _ => None,
            };
            match archived {
                Some(entry) => Ok((entry, true)),
                None => Ok((select::task(state, text)?.clone(), false)),
            }
        }
    }
}

/// One line of a task's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogLine {
    /// When.
    pub at: Time,
    /// What, as a stable word.
    pub event: String,
    /// Who.
    pub by: String,
    /// In words.
    pub message: String,
}

/// Tells a task's history across its whole chain of sessions, oldest first.
pub fn log(
    engine: &Engine<'_>,
    task: Option<&str>,
    session: Option<&str>,
) -> Result<(TaskId, Vec<LogLine>), EngineError> {
    let site = Site::open_used(engine, task)?;
    let caller = Caller::find(engine, session, None, None)?;
    let (entry, _) = entry(&site, &caller, task)?;
    let mut lines = history(&entry);
    let worktrees: BTreeSet<_> = entry
        .identities
        .iter()
        .map(|identity| &identity.place.worktree_id)
        .collect();
    let before = Time::from_millis(entry.task.created_at.millis() - 1);
    for worktree in worktrees {
        for seen in observation::since(&site.view.state.observations, worktree, before) {
            let by = seen
                .by
                .map_or_else(|| "a person".to_owned(), |by| by.to_string());
            let what = engine.mask(&seen.what);
            lines.push(line(seen.at, &seen.event, &by, what));
        }
    }
    lines.sort_by_key(|line| line.at);
    Ok((entry.task.task_id.clone(), lines))
}

fn line(at: Time, event: &str, by: &str, message: impl Into<String>) -> LogLine {
    LogLine {
        at,
        event: event.to_owned(),
        by: by.to_owned(),
        message: message.into(),
    }
}

fn history(entry: &TaskEntry) -> Vec<LogLine> {
    let mut lines = Vec::new();
    for identity in &entry.identities {
        let by = identity.session.to_string();
        match &identity.resumed_from {
            Some(from) => lines.push(line(
                identity.created_at,
                "resume",
                &by,
                format!("took it up from {from}"),
            )),
            None => lines.push(line(
                identity.created_at,
                "start",
                &by,
                format!("began: {}", entry.task.title),
            )),
        }
        if let Some(latest) = &identity.latest
            && latest.provenance.at != identity.created_at
        {
            let print = latest
                .fingerprint()
                .map_or_else(|| "an incomplete look".to_owned(), Fingerprint::short);
            let event = serde_json::to_value(latest.provenance.event).ok();
            let event = event
                .as_ref()
                .and_then(|value| value.as_str())
                .unwrap_or("save");
            let (by, what) = match &latest.provenance.by {
                Some(other) if *other != identity.session => {
                    (other.to_string(), format!("said that {by} left {print}"))
                }
                _ => (by.clone(), format!("left {print}")),
            };
            lines.push(line(latest.provenance.at, event, &by, what));
        }
        if let Some(closing) = &identity.closing {
            let reason = closing
                .reason
                .as_ref()
                .map(|reason| format!(" ({reason})"))
                .unwrap_or_default();
            let (by, what) = match &closing.by {
                Some(other) => (other.to_string(), format!("said that {by} ended{reason}")),
                None => (by.clone(), format!("the session ended{reason}")),
            };
            lines.push(line(closing.at, "end", &by, what));
        }
        if identity.status.is_closed() && identity.resumed_to.is_none() {
            let closed_by = identity.closed_by.as_ref().map(ToString::to_string);
            lines.push(line(
                identity.updated_at,
                identity.status.code(),
                closed_by.as_deref().unwrap_or(&by),
                format!("the task is {}", identity.status.code()),
            ));
        }
    }
    for run in &entry.evidence {
        let end = match &run.outcome {
            Outcome::Exited { code } => format!("exit {code}"),
            Outcome::Signalled { signal } => format!("signal {signal}"),
            Outcome::NotStarted { why } => format!("not started: {why}"),
        };
        let on = run.content().map_or_else(
            || "content that changed meanwhile".to_owned(),
            Fingerprint::short,
        );
        let folder = run.elsewhere();
        let place = folder.map_or_else(String::new, |folder| format!(", in {folder}"));
        lines.push(line(
            run.finished_at,
            "check",
            &run.by.to_string(),
            format!("{}: {end}, on {on}{place}", run.command),
        ));
    }
    for edit in &entry.task.plan.edits {
        lines.push(line(edit.at, "plan", &edit.by.to_string(), edit.words()));
    }
    for note in &entry.notes {
        lines.push(line(
            note.at,
            "note",
            &note.by.to_string(),
            note.text.clone(),
        ));
    }
    for review in &entry.reviews {
        let question = match review.explanation.trim() {
            "" => review.title.as_str(),
            question => question,
        };
        lines.push(line(
            review.created_at,
            "review",
            &review.session.to_string(),
            format!("asked: {question}"),
        ));
        if let ReviewState::Decided { decision } | ReviewState::Applied { decision, .. } =
            &review.state
        {
            let word = if decision.approved {
                "approved"
            } else {
                "rejected"
            };
            let remark = decision
                .remark
                .as_ref()
                .map(|remark| format!(": {remark}"))
                .unwrap_or_default();
            lines.push(line(
                decision.at,
                word,
                &decision.by,
                format!("{word} {}{remark}", review.review_id),
            ));
        }
    }
    lines
}
