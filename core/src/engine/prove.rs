//! `plan`, `check`, `evidence`, `evaluate` and `next`: what has to be proved, what was, and the one next step.
use crate::redact;
use schemars::JsonSchema;
use serde::Serialize;

use super::candidate::IdentityView;
use super::close::entry_of;
use super::start::record;
use super::views::NextView;
use super::{
    Caller, Changed, Engine, EngineError, PATIENCE, Site, Which, changes, effects, select,
};
use crate::evidence::{Evidence, EvidenceSource, Outcome};
use crate::fingerprint::{Look, ProvenanceEvent};
use crate::identity::{Identity, Task};
use crate::ids::{Fingerprint, TaskId};
use crate::ledger::{Change, TaskEntry, Transition, View};
use crate::plan::{Check, Plan, Proof, prove};
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
    /// Observed by us or only reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence_source: Option<EvidenceSource>,
}

/// Judges every check of a plan.
pub(super) fn check_views(
    plan: &Plan,
    evidence: &[Evidence],
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
                evidence_source: run.map(|run| run.source),
            }
        })
        .collect()
}

/// Judges every check of a task's plan on the content of a look.
pub(super) fn proofs(engine: &Engine<'_>, entry: &TaskEntry, look: &Look) -> Vec<CheckView> {
    check_views(
        &entry.task.plan,
        &entry.evidence,
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
    /// Where the checks stand.
    pub evidence: Vec<CheckView>,
    /// Every planned check is proved on the present content, and nothing stands in the way.
    pub proved: bool,
    /// Paths changed since the task began that its boundary does not allow.
    pub outside_boundary: Vec<Changed>,
    /// The question that was put to a person about them, or that waits already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_id: Option<String>,
    /// What to do next.
    pub next: NextView,
    /// Something was written.
    pub wrote: bool,
}

/// Compares the present content with boundary and plan.
pub fn evaluate(engine: &Engine<'_>, which: &Which) -> Result<Evaluation, EngineError> {
    let site = Site::open_used(engine)?;
    let caller = Caller::of(engine, which)?;
    super::review::apply_decided(engine, &site, &caller)?;
    let view = site.ledger.read()?;
    let identity = select::own_one(&site, &view.state, &caller, which.task.as_deref())?.clone();
    let look = site.look(engine, true, false)?;
    let outside = outside(&site, entry_of(&view, &identity.task_id)?, &identity, &look);
    let at = engine.clock.now();
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        evaluated(engine, &site, &caller, which, view, &look, &outside, at)
    })?;
    let wrote = committed.wrote;
    let Evaluated {
        identity,
        task,
        evidence,
        review_id,
    } = committed.value;
    effects::settle_beside(engine, &site, &caller.actor());
    if wrote {
        effects::mirror(engine, &site, &identity, &task);
    }
    let proved = review_id.is_none()
        && look.record.incomplete.is_none()
        && (task.plan.no_checks || !task.plan.checks.is_empty())
        && all_fresh(&evidence);
    Ok(Evaluation {
        next: next_step(
            &identity,
            &task.plan,
            &evidence,
            review_id.as_deref(),
            look.record.incomplete.as_deref(),
        ),
        identity: IdentityView::of(&identity, &task.title),
        fingerprint: look.record.fingerprint.as_ref().map(ToString::to_string),
        evidence,
        proved,
        outside_boundary: outside,
        review_id,
        wrote,
    })
}

fn all_fresh(evidence: &[CheckView]) -> bool {
    evidence.iter().all(|check| check.proof == Proof::Fresh)
}

/// Lists the paths changed since the task began that its boundary does not allow.
fn outside(site: &Site, entry: &TaskEntry, identity: &Identity, look: &Look) -> Vec<Changed> {
    let boundary = &entry.task.boundary;
    if boundary.allowed.is_empty() && boundary.avoided.is_empty() {
        return Vec::new();
    }
    let Some(base) = &identity.base else {
        return Vec::new();
    };
    let changes = changes::between(
        site.repository.git(),
        &site.place().root,
        &base.tree,
        &look.record,
        boundary,
    );
    changes
        .paths
        .into_iter()
        .filter(|changed| !changed.inside_boundary)
        .collect()
}

/// What `evaluate` decides.
struct Evaluated {
    identity: Identity,
    task: Task,
    evidence: Vec<CheckView>,
    review_id: Option<String>,
}

#[expect(clippy::too_many_arguments, reason = "the facts of one pure decision")]
fn evaluated(
    engine: &Engine<'_>,
    site: &Site,
    caller: &Caller,
    which: &Which,
    view: &View,
    look: &Look,
    outside: &[Changed],
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
    };
    if found.review_id.is_some() {
        return Ok((None, found));
    }
    let refuse = |refusal| EngineError::Transition {
        task_id: identity.task_id.clone(),
        refusal,
    };
    let mut changes = Vec::new();
    let event = if outside.is_empty() {
        if all_fresh(&found.evidence) {
            Event::EvaluatedProved
        } else {
            Event::EvaluatedUnproved
        }
    } else {
        let review = super::review::boundary_review(engine, entry, identity, outside, look, at)?;
        found.review_id = Some(review.review_id.to_string());
        changes.push(Change::Review {
            review: Box::new(review),
        });
        Event::ReviewRequested
    };
    let mut next = identity.clone();
    next.status = status::apply(identity.status, event).map_err(refuse)?;
    let known = identity
        .latest
        .as_ref()
        .is_some_and(|latest| latest.tree == look.record && !latest.provenance.provisional);
    if !known {
        next.latest = Some(record(
            look,
            ProvenanceEvent::Evaluate,
            at,
            &identity.session,
        ));
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
) -> NextView {
    let task = identity.task_id.as_str();
    let session = identity.session.id.as_str();
    if let Some(review) = review {
        return NextView::new("human-review", &["git", "takeup", "review", "show", review]);
    }
    if incomplete.is_some() {
        return NextView::new("look", &["git", "takeup", "fingerprint"]);
    }
    if !identity.open_effects.is_empty() {
        return NextView::new("look-at-effects", &["git", "takeup", "show", task]);
    }
    if plan.checks.is_empty() && !plan.no_checks {
        return NextView::new("plan", &["git", "takeup", "plan", "add", "--task", task]);
    }
    let unproved = evidence.iter().find(|check| check.proof != Proof::Fresh);
    match unproved {
        Some(check) if check.proof == Proof::Failed => {
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
    /// Where the checks stand.
    pub evidence: Vec<CheckView>,
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
            identity: closed.identity,
            evidence: closed.evidence,
            wrote: closed.wrote,
        }),
        Err(
            EngineError::NotProved { .. }
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

/// Says the next step without taking it.
fn look_ahead(engine: &Engine<'_>, which: &Which) -> Result<NextStep, EngineError> {
    let site = Site::open_used(engine)?;
    let caller = Caller::of(engine, which)?;
    effects::settle_beside(engine, &site, &caller.actor());
    let identity = select::own_one(&site, &site.view.state, &caller, which.task.as_deref())?;
    let entry = entry_of(&site.view, &identity.task_id)?;
    let look = site.look(engine, false, false)?;
    let evidence = proofs(engine, entry, &look);
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
        )
    };
    Ok(NextStep {
        identity: IdentityView::of(identity, &entry.task.title),
        next_action: next.action.clone(),
        finalized: false,
        evidence,
        next,
        wrote: false,
    })
}

/// Makes the command of a planned check as it is kept. It cannot hold a secret: masked, it could neither be run nor told from
/// another.
pub(super) fn planned_command(engine: &Engine<'_>, text: &str) -> Result<String, EngineError> {
    let command = engine.mask(text.trim());
    if command.is_empty() {
        return Err(EngineError::NotAllowed(
            "a check needs a command".to_owned(),
        ));
    }
    if redact::is_masked(&command) {
        return Err(EngineError::NotAllowed(
            "a planned check may not hold a secret: let the command read it from the environment or a file".to_owned(),
        ));
    }
    Ok(command)
}

/// A change of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanEdit {
    /// Add a check.
    Add {
        /// The command.
        command: String,
        /// A command that has to fail.
        must_fail: Option<String>,
    },
    /// Take a check out, by its command or its number from 1.
    Remove(String),
    /// The plan is empty on purpose.
    NoChecks,
}

/// Changes the plan of a task. Adding what is there, or removing what is not, changes nothing.
pub fn edit_plan(
    engine: &Engine<'_>,
    which: &Which,
    edit: &PlanEdit,
) -> Result<(TaskId, Plan), EngineError> {
    let site = Site::open_used(engine)?;
    let caller = Caller::of(engine, which)?;
    let at = engine.clock.now();
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        let task_id = meant(&site, view, &caller, which)?;
        let entry = entry_of(view, &task_id)?;
        let mut task = entry.task.clone();
        match edit {
            PlanEdit::Add { command, must_fail } => {
                let command = planned_command(engine, command)?;
                let check = Check {
                    command,
                    source: caller.source(),
                    must_fail: must_fail.as_deref().map(|text| engine.mask(text)),
                };
                match task
                    .plan
                    .checks
                    .iter_mut()
                    .find(|known| known.command == check.command)
                {
                    Some(known) => *known = check,
                    None => task.plan.checks.push(check),
                }
                task.plan.no_checks = false;
            }
            PlanEdit::Remove(text) => {
                let number = text
                    .parse::<usize>()
                    .ok()
                    .and_then(|number| number.checked_sub(1));
                let index = task
                    .plan
                    .checks
                    .iter()
                    .position(|check| &check.command == text)
                    .or(number);
                match index.filter(|index| *index < task.plan.checks.len()) {
                    Some(index) => {
                        task.plan.checks.remove(index);
                    }
                    None => {
                        return Err(EngineError::NotAllowed(format!(
                            "the plan has no check {text:?}"
                        )));
                    }
                }
            }
            PlanEdit::NoChecks => {
                task.plan = Plan {
                    checks: Vec::new(),
                    no_checks: true,
                }
            }
        }
        let plan = task.plan.clone();
        let transition = (task != entry.task).then(|| Transition {
            at,
            actor: caller.actor(),
            operation: "plan".to_owned(),
            changes: vec![Change::Task { task }],
        });
        Ok((transition, (task_id, plan)))
    })?;
    effects::settle_beside(engine, &site, &caller.actor());
    Ok(committed.value)
}

/// Returns the task that is meant: the one that is named, else the caller's own.
fn meant(site: &Site, view: &View, caller: &Caller, which: &Which) -> Result<TaskId, EngineError> {
    match (&which.task, &which.session) {
        (Some(text), None) => Ok(select::task(&view.state, text)?.task.task_id.clone()),
        (task, _) => Ok(select::own_one(site, &view.state, caller, task.as_deref())?
            .task_id
            .clone()),
    }
}

/// Returns the task that is meant and its plan. Reads only.
pub fn plan_of(
    engine: &Engine<'_>,
    which: &Which,
) -> Result<(TaskId, Plan, Vec<crate::propose::Proposal>), EngineError> {
    let site = Site::open_used(engine)?;
    let caller = Caller::of(engine, which)?;
    let task_id = meant(&site, &site.view, &caller, which)?;
    let plan = entry_of(&site.view, &task_id)?.task.plan.clone();
    Ok((task_id, plan, crate::propose::propose(&site.place().root)))
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
    let site = Site::open_used(engine)?;
    let caller = Caller::of(engine, which)?;
    let at = engine.clock.now();
    let command = engine.mask(&report.command);
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        let identity = select::own_one(&site, &view.state, &caller, which.task.as_deref())?;
        if identity.status.is_closed() {
            return Err(select::closed_error(identity));
        }
        let evidence = Evidence {
            task_id: identity.task_id.clone(),
            by: identity.session.clone(),
            command: command.clone(),
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
