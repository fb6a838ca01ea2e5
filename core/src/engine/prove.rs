//! `check`, `evidence`, `evaluate` and `next`: what has to be proved, what was, and the one next step.
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::candidate::IdentityView;
use super::close::entry_of;
use super::folder::folder_in;
use super::running::Running;
use super::start::record;
use super::stray::Strayed;
use super::views::NextView;
use super::{Caller, Changed, Engine, EngineError, PATIENCE, Site, Which, effects, select};
use crate::evidence::{Evidence, EvidenceSource, Outcome};
use crate::fingerprint::{Look, ProvenanceEvent};
use crate::identity::{Identity, Note, OpenEffect, Task};
use crate::ids::{BackgroundId, Fingerprint, SessionRef};
use crate::ledger::{Change, TaskEntry, Transition, View};
use crate::plan::{Plan, Proof, prove};
use crate::status::{self, Event, Status};
use crate::time::Time;

/// Where one check stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckView {
    /// The command.
    pub command: String,
    /// Where it came from.
    pub source: String,
    /// Where it stands for the present content. Only `fresh` is proof.
    pub proof: Proof,
    /// How the run that decides ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The content it speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The session that ran it, where that is another than the one that holds the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<SessionRef>,
    /// Observed by us or only reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence_source: Option<EvidenceSource>,
    /// The background task that runs it on the present content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<BackgroundId>,
}

/// Judges every check of a plan. `holder` is the session that holds the task.
pub(super) fn check_views(
    plan: &Plan,
    evidence: &[Evidence],
    holder: Option<&SessionRef>,
    present: Option<&Fingerprint>,
    count_reported: bool,
) -> Vec<CheckView> {
    plan.checks
        .iter()
        .map(|check| {
            let (proof, run) = prove(check, evidence, present, count_reported);
            CheckView {
                command: check.command.clone(),
                source: check.source.clone(),
                proof,
                outcome: run.map(|run| run.outcome.clone()),
                at: run.map(|run| run.finished_at),
                fingerprint: run.and_then(Evidence::content).map(ToString::to_string),
                by: run
                    .map(|run| &run.by)
                    .filter(|by| holder.is_some_and(|holder| holder != *by))
                    .cloned(),
                evidence_source: run.map(|run| run.source),
                running: None,
            }
        })
        .collect()
}

/// Judges every check of a task's plan on the content of a look.
pub(super) fn proofs(engine: &Engine<'_>, entry: &TaskEntry, look: &Look) -> Vec<CheckView> {
    check_views(
        &entry.task.plan,
        entry.counted(),
        entry.holder().map(|holder| &holder.session),
        look.record.fingerprint.as_ref(),
        engine.settings.count_reported,
    )
}

/// The answer of `evaluate`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// The record.
    pub identity: IdentityView,
    /// The present content.
    pub fingerprint: Option<String>,
    /// Why the present content could not be seen whole, where that is so; nothing is proved then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// Where the checks stand.
    pub evidence: Vec<CheckView>,
    /// Every planned check is proved on the present content, and nothing stands in the way.
    pub proved: bool,
    /// Paths changed since the task began that its boundary does not allow.
    pub outside_boundary: Vec<Changed>,
    /// Why it is not known whether there are more of them, where that is so; the task is not proved then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boundary_unknown: Option<String>,
    /// Records of the task may be lost in damage: its plan and its questions have to be looked at, and runs of before do not
    /// count.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub records_lost: bool,
    /// Calls that may or may not have happened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_effects: Vec<OpenEffect>,
    /// The question that was put to a person about them, or that waits already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_id: Option<String>,
    /// What runs in the background for it.
    #[serde(skip_serializing_if = "Running::is_empty")]
    pub background: Running,
    /// What to do next.
    pub next: NextView,
    /// Something was written.
    pub wrote: bool,
}

/// Compares the present content with boundary and plan.
pub fn evaluate(engine: &Engine<'_>, which: &Which) -> Result<Evaluation, EngineError> {
    let site = Site::open_used(engine, which.task.as_deref())?;
    let caller = Caller::of(engine, which)?;
    super::review::apply_decided(engine, &site, &caller)?;
    let view = site.ledger.read()?;
    let identity = select::own_one(&site, &view.state, &caller, which.task.as_deref())?.clone();
    let look = site.settled_look(engine, &caller, true, false)?;
    let strayed = Strayed::of(&site, entry_of(&view, &identity.task_id)?, &identity, &look);
    let at = engine.clock.now();
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        evaluated(engine, &site, &caller, which, view, &look, &strayed, at)
    })?;
    let wrote = committed.wrote;
    let Evaluated {
        identity,
        task,
        mut evidence,
        review_id,
        proved,
        records_lost,
    } = committed.value;
    effects::settle_beside(engine, &site, &caller.actor());
    let running = Running::of_task(engine, &site, &identity.task_id);
    let present = look.record.fingerprint.as_ref();
    running.mark(&identity.task_id, &mut evidence, &site, present);
    if wrote {
        effects::mirror(engine, &site, &identity.task_id);
    }
    let unclear = strayed.unclear();
    Ok(Evaluation {
        next: next_step(
            &identity,
            &task.plan,
            &evidence,
            review_id.as_deref(),
            look.record.incomplete.as_deref(),
            records_lost,
            &strayed,
        ),
        identity: IdentityView::of(&identity, &task.title),
        fingerprint: look.record.fingerprint.as_ref().map(ToString::to_string),
        incomplete: look.record.incomplete,
        evidence,
        proved,
        outside_boundary: strayed.outside,
        boundary_unknown: unclear.or(strayed.unknown),
        records_lost,
        open_effects: identity.unknown_effects(),
        review_id,
        background: running,
        wrote,
    })
}

/// What `evaluate` decides.
struct Evaluated {
    identity: Identity,
    task: Task,
    evidence: Vec<CheckView>,
    review_id: Option<String>,
    proved: bool,
    records_lost: bool,
}

#[expect(clippy::too_many_arguments, reason = "the facts of one pure decision")]
fn evaluated(
    engine: &Engine<'_>,
    site: &Site,
    caller: &Caller,
    which: &Which,
    view: &View,
    look: &Look,
    strayed: &Strayed,
    at: Time,
) -> Result<(Option<Transition>, Evaluated), EngineError> {
    let identity = select::own_one(site, &view.state, caller, which.task.as_deref())?;
    let entry = entry_of(view, &identity.task_id)?;
    let mut found = Evaluated {
        identity: identity.clone(),
        task: entry.task.clone(),
        evidence: proofs(engine, entry, look),
        review_id: entry
            .open_review()
            .map(|review| review.review_id.to_string()),
        proved: false,
        records_lost: entry.doubted,
    };
    if found.review_id.is_some() {
        return Ok((None, found));
    }
    let refuse = |refusal| EngineError::Transition {
        task_id: identity.task_id.clone(),
        refusal,
    };
    let mut changes = Vec::new();
    let outside = strayed.outside.as_slice();
    let mut next = identity.clone();
    let event = if !outside.is_empty() {
        let review = super::review::boundary_review(engine, entry, identity, outside, look, at)?;
        found.review_id = Some(review.review_id.to_string());
        changes.push(Change::Review {
            review: Box::new(review),
        });
        Event::ReviewRequested
    } else if let Some(what) = strayed.unclear() {
        let doubtful = strayed.doubtful.as_slice();
        let review =
            super::review::doubt_review(engine, entry, identity, doubtful, &what, look, at)?;
        found.review_id = Some(review.review_id.to_string());
        next.before.asked = Some(review.review_id.clone());
        changes.push(Change::Review {
            review: Box::new(review),
        });
        Event::ReviewRequested
    } else {
        let plan = &entry.task.plan;
        found.proved = !entry.doubted
            && look.record.incomplete.is_none()
            && strayed.unknown.is_none()
            && identity.inherited_effects.is_empty()
            && (plan.no_checks || !plan.checks.is_empty())
            && found
                .evidence
                .iter()
                .all(|check| check.proof == Proof::Fresh);
        if found.proved {
            Event::EvaluatedProved
        } else {
            Event::EvaluatedUnproved
        }
    };
    next.status = status::apply(identity.status, event).map_err(refuse)?;
    let known = identity
        .latest
        .as_ref()
        .is_some_and(|latest| latest.tree == look.record && !latest.provenance.provisional);
    if !known {
        let by = caller.acts_as(identity);
        next.latest = Some(record(look, ProvenanceEvent::Evaluate, at, &by));
    }
    if next == *identity && changes.is_empty() {
        return Ok((None, found));
    }
    next.updated_at = at;
    next.revision += 1;
    changes.push(Change::Identity {
        identity: Box::new(next.clone()),
    });
    let transition = Transition {
        at,
        actor: caller.actor(),
        operation: "evaluate".to_owned(),
        changes,
    };
    found.identity = next;
    Ok((Some(transition), found))
}

/// Says the one next step. Pure.
fn next_step(
    identity: &Identity,
    plan: &Plan,
    evidence: &[CheckView],
    review: Option<&str>,
    incomplete: Option<&str>,
    records_lost: bool,
    strayed: &Strayed,
) -> NextView {
    let task = identity.task_id.as_str();
    let session = identity.session.id.as_str();
    if let Some(review) = review {
        return NextView::new("human-review", &["git", "takeup", "review", "show", review]);
    }
    if incomplete.is_some() {
        return NextView::new("look", &["git", "takeup", "fingerprint"]);
    }
    if records_lost {
        return NextView::new("look-at-damage", &["git", "takeup", "show", task]);
    }
    // A call of this program is the one that asks.
    let asks = |effect: &OpenEffect| {
        [&effect.tool, &effect.argument]
            .into_iter()
            .any(|text| text.contains("takeup"))
    };
    if !identity.inherited_effects.is_empty() || !identity.open_effects.iter().all(asks) {
        return NextView::new("look-at-effects", &["git", "takeup", "show", task]);
    }
    if !strayed.outside.is_empty() || strayed.unclear().is_some() {
        return NextView::new(
            "evaluate",
            &["git", "takeup", "evaluate", task, "--session", session],
        );
    }
    if strayed.unknown.is_some() {
        return NextView::new("look", &["git", "takeup", "diff", task]);
    }
    if plan.checks.is_empty() && !plan.no_checks {
        return NextView::new("plan", &["git", "takeup", "plan", "list", "--task", task]);
    }
    let unproved = evidence.iter().find(|check| check.proof != Proof::Fresh);
    match unproved {
        Some(CheckView {
            running: Some(id), ..
        }) => NextView::new("wait", &["git", "takeup", "bg", "wait", id.as_str()]),
        Some(check) if matches!(check.proof, Proof::Failed | Proof::NoControl) => {
            NextView::new("repair", &["git", "takeup", "show", task])
        }
        Some(check) => {
            let number = evidence
                .iter()
                .position(|other| other == check)
                .map_or(1, |index| index + 1)
                .to_string();
            NextView::new(
                "check",
                &[
                    "git",
                    "takeup",
                    "check",
                    "--task",
                    task,
                    "--session",
                    session,
                    "--planned",
                    &number,
                ],
            )
        }
        None => NextView::new(
            "finalize",
            &["git", "takeup", "next", task, "--session", session],
        ),
    }
}

/// The answer of `next`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextStep {
    /// The record.
    pub identity: IdentityView,
    /// The step that was taken or is to be taken: `finalize` closed the task.
    pub next_action: String,
    /// The task is closed.
    pub finalized: bool,
    /// Why the present content could not be seen whole, where that is so; nothing is proved then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// Where the checks stand.
    pub evidence: Vec<CheckView>,
    /// Records of the task may be lost in damage: its plan and its questions have to be looked at, and runs of before do not
    /// count.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub records_lost: bool,
    /// Calls that may or may not have happened: look before repeating them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_effects: Vec<OpenEffect>,
    /// Why it is not known whether the work stayed inside the boundary, where that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boundary_unknown: Option<String>,
    /// What runs in the background for the task.
    #[serde(skip_serializing_if = "Running::is_empty")]
    pub background: Running,
    /// What git is in the middle of, where it is closed so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsettled: Option<String>,
    /// What was not proved, where it is closed with an empty plan.
    #[serde(skip)]
    pub not_proved: Option<String>,
    /// What to do next.
    pub next: NextView,
    /// Something was written; repeating the call changes nothing.
    pub wrote: bool,
}

/// Says the next step, and closes the task if everything is proved at this moment.
pub fn next(engine: &Engine<'_>, which: &Which) -> Result<NextStep, EngineError> {
    let request = super::FinishRequest {
        which: which.clone(),
        no_checks: false,
    };
    match super::finish(engine, &request) {
        Ok(closed) => Ok(NextStep {
            next: NextView::new(
                "show",
                &["git", "takeup", "show", closed.identity.task_id.as_str()],
            ),
            next_action: "finalize".to_owned(),
            finalized: true,
            incomplete: None,
            identity: closed.identity,
            evidence: closed.evidence,
            records_lost: false,
            open_effects: Vec::new(),
            boundary_unknown: None,
            background: closed.background,
            unsettled: closed.unsettled,
            not_proved: closed.not_proved,
            wrote: closed.wrote,
        }),
        Err(
            EngineError::NotProved { .. }
            | EngineError::EffectsUnknown { .. }
            | EngineError::RecordsLost(_)
            | EngineError::OutsideBoundary { .. }
            | EngineError::BoundaryUnknown { .. }
            | EngineError::BoundaryDoubtful { .. }
            | EngineError::NoPlan(_)
            | EngineError::Incomplete(_)
            | EngineError::Transition {
                refusal: status::Refusal::ReviewPending | status::Refusal::Stale,
                ..
            },
        ) => look_ahead(engine, which),
        Err(error) => Err(error),
    }
}

/// Records that the calls which sessions before left open were looked at, and what damage may have taken of the task: they are
/// no unknown any more. Changes nothing where there is neither.
pub fn looked(engine: &Engine<'_>, which: &Which) -> Result<Vec<OpenEffect>, EngineError> {
    let site = Site::open_used(engine, which.task.as_deref())?;
    let caller = Caller::of(engine, which)?;
    let at = engine.clock.now();
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        let identity = select::own_one(&site, &view.state, &caller, which.task.as_deref())?;
        let entry = entry_of(view, &identity.task_id)?;
        let note = |text: String| Change::Note {
            task_id: identity.task_id.clone(),
            note: Note {
                at,
                by: caller.actor().session,
                text,
            },
        };
        let mut changes = Vec::new();
        let mut next = identity.clone();
        let effects = std::mem::take(&mut next.inherited_effects);
        if !effects.is_empty() {
            next.updated_at = at;
            next.revision += 1;
            changes.push(Change::Identity {
                identity: Box::new(next),
            });
            let calls: Vec<String> = effects.iter().map(OpenEffect::to_string).collect();
            changes.push(note(format!(
                "looked at what may or may not have happened: {}",
                calls.join("; ")
            )));
        }
        if entry.doubted {
            changes.push(Change::Task {
                task: entry.task.clone(),
            });
            changes.push(note(
                "looked at the plan and the questions, of which records may be lost".to_owned(),
            ));
        }
        if changes.is_empty() {
            return Ok((None, Vec::new()));
        }
        let transition = Transition {
            at,
            actor: caller.actor(),
            operation: "looked".to_owned(),
            changes,
        };
        Ok::<_, EngineError>((Some(transition), effects))
    })?;
    Ok(committed.value)
}

/// Says the next step without taking it.
fn look_ahead(engine: &Engine<'_>, which: &Which) -> Result<NextStep, EngineError> {
    let site = Site::open_used(engine, which.task.as_deref())?;
    let caller = Caller::of(engine, which)?;
    effects::settle_beside(engine, &site, &caller.actor());
    let identity = select::own_one(&site, &site.view.state, &caller, which.task.as_deref())?;
    let entry = entry_of(&site.view, &identity.task_id)?;
    let look = site.look(engine, false, false)?;
    let mut evidence = proofs(engine, entry, &look);
    let running = Running::of(engine, &site, entry);
    let present = look.record.fingerprint.as_ref();
    running.mark(&identity.task_id, &mut evidence, &site, present);
    let strayed = Strayed::of(&site, entry, identity, &look);
    let review = entry.open_review().map(|review| review.review_id.as_str());
    let next = if identity.status == Status::StaleTask && review.is_none() {
        let task = identity.task_id.as_str();
        NextView::new("resume", &["git", "takeup", "resume", task, "--rebuild"])
    } else {
        next_step(
            identity,
            &entry.task.plan,
            &evidence,
            review,
            look.record.incomplete.as_deref(),
            entry.doubted,
            &strayed,
        )
    };
    let unclear = strayed.unclear();
    Ok(NextStep {
        records_lost: entry.doubted,
        background: running,
        open_effects: identity.unknown_effects(),
        boundary_unknown: unclear.or(strayed.unknown),
        unsettled: None,
        not_proved: None,
        identity: IdentityView::of(identity, &entry.task.title),
        next_action: next.action.clone(),
        finalized: false,
        incomplete: look.record.incomplete,
        evidence,
        next,
        wrote: false,
    })
}

/// One look for a check: before or after it ran.
pub fn present(engine: &Engine<'_>) -> Result<Option<Fingerprint>, EngineError> {
    let site = Site::open(engine)?;
    Ok(site.look(engine, true, false)?.record.fingerprint)
}

/// A run of a check, ready to be recorded.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The command as one shell line; masked here.
    pub command: String,
    /// The folder it ran in, where that is known.
    pub folder: Option<PathBuf>,
    /// How it ended.
    pub outcome: Outcome,
    /// When it began.
    pub started_at: Time,
    /// When it ended.
    pub finished_at: Time,
    /// The content before.
    pub before: Option<Fingerprint>,
    /// The content after.
    pub after: Option<Fingerprint>,
    /// Digest of standard output.
    pub stdout: Option<crate::evidence::Digest>,
    /// Digest of standard error.
    pub stderr: Option<crate::evidence::Digest>,
    /// Observed or reported.
    pub source: EvidenceSource,
    /// How the negative control ended.
    pub control: Option<Outcome>,
}

/// Records a run of a check as evidence.
pub fn add_evidence(
    engine: &Engine<'_>,
    which: &Which,
    report: &RunReport,
) -> Result<Evidence, EngineError> {
    let site = Site::open_used(engine, which.task.as_deref())?;
    let caller = Caller::of(engine, which)?;
    let at = engine.clock.now();
    let command = engine.mask(&report.command);
    let named = |folder: &PathBuf| engine.mask(&folder_in(&site.place().root, folder));
    let folder = report.folder.as_ref().map(named);
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        let identity = select::own_one(&site, &view.state, &caller, which.task.as_deref())?;
        if identity.status.is_closed() {
            return Err(select::closed_error(identity));
        }
        let evidence = Evidence {
            task_id: identity.task_id.clone(),
            by: caller.acts_as(identity),
            command: command.clone(),
            folder: folder.clone(),
            outcome: report.outcome.clone(),
            started_at: report.started_at,
            finished_at: report.finished_at,
            before: report.before.clone(),
            after: report.after.clone(),
            stdout: report.stdout.clone(),
            stderr: report.stderr.clone(),
            source: report.source,
            control: report.control.clone(),
        };
        let changes = vec![Change::Evidence {
            evidence: Box::new(evidence.clone()),
        }];
        let transition = Transition {
            at,
            actor: caller.actor(),
            operation: "check".to_owned(),
            changes,
        };
        Ok((Some(transition), evidence))
    })?;
    effects::settle_beside(engine, &site, &caller.actor());
    Ok(committed.value)
}
