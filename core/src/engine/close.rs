//! `finish` and `abandon`: a task is closed with proof, or given up.
use schemars::JsonSchema;
use serde::Serialize;

use super::candidate::IdentityView;
use super::life::life_of_holder;
use super::prove::{CheckView, check_views, proofs};
use super::running::Running;
use super::start::record;
use super::stray::Strayed;
use super::{Caller, Engine, EngineError, PATIENCE, Site, Which, effects, select};
use crate::fingerprint::{Look, ProvenanceEvent, TreeRecord};
use crate::gc::{self, Limits};
use crate::identity::{Identity, Note, Task};
use crate::ids::{AgentId, SessionRef, TaskId};
use crate::ledger::{Change, TaskEntry, Transition, View};
use crate::plan::Proof;
use crate::process::Liveness;
use crate::review::ReviewState;
use crate::status::{self, Event};
use crate::text::{self, command_line};

/// So many closed tasks beyond the limit are waited for, so that not every close tidies.
const SLACK: usize = 50;

/// What `finish` is given.
#[derive(Clone, Debug, Default)]
pub struct FinishRequest {
    /// Whose task.
    pub which: Which,
    /// Finish although nothing is planned, and so nothing proved.
    pub no_checks: bool,
}

/// What `abandon` is given.
#[derive(Clone, Debug, Default)]
pub struct AbandonRequest {
    /// Whose task.
    pub which: Which,
    /// Why.
    pub reason: Option<String>,
    /// A person said yes to giving up what a session holds that still runs.
    pub confirmed: bool,
}

/// The answer of `finish` and `abandon`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Closed {
    /// The record.
    pub identity: IdentityView,
    /// Where the checks stand.
    pub evidence: Vec<CheckView>,
    /// What was not proved, where the plan is empty on purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_proved: Option<String>,
    /// What runs in the background for the task: it goes on.
    #[serde(skip_serializing_if = "Running::is_empty")]
    pub background: Running,
    /// What git is in the middle of, where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsettled: Option<String>,
    /// Something was written.
    pub wrote: bool,
}

/// Says what git is in the middle of.
fn unsettled(look: &TreeRecord) -> Option<String> {
    let unmerged = look
        .index_tree
        .as_deref()
        .is_some_and(|tree| tree.starts_with("conflict:"));
    match (&look.operation, unmerged) {
        (Some(operation), true) => Some(format!(
            "a {operation} is in progress, and paths are unmerged"
        )),
        (Some(operation), false) => Some(format!("a {operation} is in progress")),
        (None, true) => Some("paths are unmerged".to_owned()),
        (None, false) => None,
    }
}

/// Closes a task, if its plan is proved on the present content at this moment.
pub fn finish(engine: &Engine<'_>, request: &FinishRequest) -> Result<Closed, EngineError> {
    let site = Site::open_used(engine, request.which.task.as_deref())?;
    let caller = Caller::of(engine, &request.which)?;
    if let Some(closed) = finished_before(&site.view, &site, &caller, request)? {
        return Ok(closed);
    }
    let identity = select::own_one(
        &site,
        &site.view.state,
        &caller,
        request.which.task.as_deref(),
    )?;
    let look = site.settled_look(engine, &caller, true, false)?;
    let strayed = Strayed::of(
        &site,
        entry_of(&site.view, &identity.task_id)?,
        identity,
        &look,
    );
    let at = engine.clock.now();
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        // An equal call may have been faster.
        if let Some(closed) = finished_before(view, &site, &caller, request)? {
            return Ok((None, Err(closed)));
        }
        let identity = select::own_one(&site, &view.state, &caller, request.which.task.as_deref())?;
        let entry = entry_of(view, &identity.task_id)?;
        let refuse = |refusal| EngineError::Transition {
            task_id: identity.task_id.clone(),
            refusal,
        };
        let status = status::apply(identity.status, Event::Finished).map_err(refuse)?;
        open_review(entry)?;
        if entry.doubted {
            return Err(EngineError::RecordsLost(identity.task_id.clone()));
        }
        let evidence = proved(engine, entry, &look, request.no_checks)?;
        if !identity.inherited_effects.is_empty() {
            let calls = identity.inherited_effects.iter();
            let calls: Vec<String> = calls
                .map(|effect| text::one_line(&effect.to_string(), 120))
                .collect();
            return Err(EngineError::EffectsUnknown {
                task_id: identity.task_id.clone(),
                calls: calls.join(", "),
            });
        }
        strayed.demand_none(entry, identity)?;
        let mut next = identity.clone();
        next.status = status;
        let by = caller.acts_as(identity);
        next.latest = Some(record(&look, ProvenanceEvent::Evaluate, at, &by));
        next.closed_by = caller.acts_instead_of(identity);
        next.updated_at = at;
        next.revision += 1;
        let mut changes = vec![Change::Identity {
            identity: Box::new(next.clone()),
        }];
        if request.no_checks && entry.task.plan.checks.is_empty() && !entry.task.plan.no_checks {
            let mut task = entry.task.clone();
            task.plan.no_checks = true;
            task.plan
                .note_edits(&entry.task.plan, &caller.actor().session, at);
            changes.push(Change::Task { task });
        }
        let transition = Transition {
            at,
            actor: caller.actor(),
            operation: "finish".to_owned(),
            changes,
        };
        let done = Ok((next, entry.task.clone(), evidence));
        Ok::<_, EngineError>((Some(transition), done))
    })?;
    let (identity, task, evidence) = match committed.value {
        Ok(done) => done,
        Err(closed) => return Ok(closed),
    };
    effects::settle_beside(engine, &site, &caller.actor());
    effects::mirror(engine, &site, &identity.task_id);
    tidy(engine, &site);
    Ok(Closed {
        background: Running::of_task(engine, &site, &identity.task_id),
        identity: IdentityView::of(&identity, &task.title),
        not_proved: not_proved(&evidence),
        evidence,
        unsettled: unsettled(&look.record),
        wrote: committed.wrote,
    })
}

fn not_proved(evidence: &[CheckView]) -> Option<String> {
    evidence
        .is_empty()
        .then(|| "no check was planned, so nothing was proved".to_owned())
}

/// Moves old closed tasks into the archive when there are many, so that what every command reads stays small. The task is
/// closed already: where tidying fails, a later call or `gc` does it.
fn tidy(engine: &Engine<'_>, site: &Site) {
    let limits = Limits::DEFAULT;
    let closed = site
        .view
        .state
        .tasks
        .values()
        .filter(|entry| entry.is_closed())
        .count();
    if closed > limits.closed_number + SLACK {
        let _later = gc::tidy(&site.ledger, engine.clock, limits);
    }
}

/// Finds the answer of an earlier, equal call: closing twice closes once.
fn finished_before(
    view: &View,
    site: &Site,
    caller: &Caller,
    request: &FinishRequest,
) -> Result<Option<Closed>, EngineError> {
    let entry = match (&request.which.task, &caller.session) {
        (Some(text), _) => select::task(&view.state, text)?,
        // Without a task: the one this session completed last, if it holds no other.
        (None, Some(session)) => {
            let of_session = |entry: &&TaskEntry| entry.identity(session).is_some();
            let mut held: Vec<_> = view.state.tasks.values().filter(of_session).collect();
            held.sort_by_key(|entry| entry.seq);
            let all_closed = held.iter().all(|entry| entry.is_closed());
            match held.pop() {
                Some(last) if all_closed => last,
                _ => return Ok(None),
            }
        }
        (None, None) => return Ok(None),
    };
    let completed = entry.identities.iter().rev().find(|identity| {
        identity.status == status::Status::Completed
            && site.is_here(&identity.place)
            && caller
                .session
                .as_ref()
                .is_none_or(|session| session == &identity.session)
    });
    if entry
        .identities
        .iter()
        .any(|identity| !identity.status.is_closed())
    {
        return Ok(None);
    }
    Ok(completed.map(|identity| {
        let print = identity
            .latest
            .as_ref()
            .and_then(crate::identity::Recorded::fingerprint);
        let evidence = check_views(
            &entry.task.plan,
            &entry.evidence,
            Some(&identity.session),
            print,
            true,
        );
        Closed {
            identity: IdentityView::of(identity, &entry.task.title),
            not_proved: not_proved(&evidence),
            evidence,
            background: Running::default(),
            unsettled: identity
                .latest
                .as_ref()
                .and_then(|latest| unsettled(&latest.tree)),
            wrote: false,
        }
    }))
}

pub(super) fn entry_of<'a>(view: &'a View, task_id: &TaskId) -> Result<&'a TaskEntry, EngineError> {
    view.state
        .tasks
        .get(task_id)
        .ok_or_else(|| EngineError::NoTask(task_id.to_string()))
}

/// Fails where a question stands in the way, whatever the status says.
pub(super) fn open_review(entry: &TaskEntry) -> Result<(), EngineError> {
    match entry.open_review() {
        Some(_) => Err(EngineError::Transition {
            task_id: entry.task.task_id.clone(),
            refusal: status::Refusal::ReviewPending,
        }),
        None => Ok(()),
    }
}

/// Demands that every planned check is proved on the content of this look.
pub(super) fn proved(
    engine: &Engine<'_>,
    entry: &TaskEntry,
    look: &Look,
    no_checks: bool,
) -> Result<Vec<CheckView>, EngineError> {
    if let Some(why) = &look.record.incomplete {
        return Err(EngineError::Incomplete(why.clone()));
    }
    let plan = &entry.task.plan;
    if plan.checks.is_empty() {
        return if plan.no_checks || no_checks {
            Ok(Vec::new())
        } else {
            Err(EngineError::NoPlan(entry.task.task_id.clone()))
        };
    }
    let evidence = proofs(engine, entry, look);
    let missing: Vec<String> = evidence
        .iter()
        .filter(|check| check.proof != Proof::Fresh)
        .map(|check| format!("{} ({})", check.command, check.proof.code()))
        .collect();
    if missing.is_empty() {
        Ok(evidence)
    } else {
        Err(EngineError::NotProved {
            task_id: entry.task.task_id.clone(),
            what: missing.join(", "),
        })
    }
}

/// Finds what an equal call gave up before: the task that `error` says is closed in the caller's session.
fn given_up_before(
    view: &View,
    caller: &Caller,
    text: Option<&str>,
    error: &EngineError,
) -> Option<(Identity, Task)> {
    let error = if let EngineError::Namesake { error, .. } = error {
        error
    } else {
        error
    };
    let EngineError::Transition {
        task_id,
        refusal: status::Refusal::Closed,
    } = error
    else {
        return None;
    };
    text?;
    let entry = view.state.tasks.get(task_id)?;
    let identity = entry.identity(caller.session.as_ref()?)?;
    (identity.status == status::Status::Abandoned && identity.resumed_to.is_none())
        .then(|| (identity.clone(), entry.task.clone()))
}

/// Tells whether it is the holding session itself that gives its task up.
fn is_own(caller: &Caller, identity: &Identity) -> bool {
    let below = |process| caller.descends_from(process);
    match &caller.session {
        Some(_) => caller.acts_as(identity) == identity.session,
        None => identity.process.as_ref().is_some_and(below),
    }
}

/// Demands a person's yes where a session that runs would lose its task to somebody else. Returns the session that was
/// looked at.
fn allow(
    engine: &Engine<'_>,
    site: &Site,
    caller: &Caller,
    request: &AbandonRequest,
    as_session: bool,
) -> Result<Option<SessionRef>, EngineError> {
    let state = &site.view.state;
    let found = match request.which.task.as_deref() {
        Some(text) if !as_session => select::task(state, text)?.open_holder(),
        text => select::anybodys_one(site, state, caller, text).ok(),
    };
    let Some(holder) = found else {
        return Ok(None);
    };
    if !request.confirmed
        && !is_own(caller, holder)
        && let Liveness::Live { proof } = life_of_holder(engine, site, caller, holder)
    {
        let task = holder.task_id.as_str();
        let mut words = vec!["git", "takeup", "abandon", task];
        if let Some(reason) = &request.reason {
            words.extend(["--reason", reason]);
        }
        words.push("--confirm");
        return Err(EngineError::NeedsConfirmation {
            what: format!(
                "session {} holds task {task} and still runs: {proof}",
                holder.session
            ),
            command: command_line(words),
        });
    }
    Ok(Some(holder.session.clone()))
}

/// Says whose a task is that the calling session may not give up.
fn not_yours(view: &View, caller: &Caller, text: Option<&str>, error: EngineError) -> EngineError {
    let holder = text
        .filter(|_| {
            matches!(
                error,
                EngineError::NoSession(_) | EngineError::HoldsNothing { .. }
            )
        })
        .and_then(|text| select::task(&view.state, text).ok())
        .and_then(TaskEntry::open_holder);
    match (holder, &caller.session) {
        (Some(holder), Some(session)) => EngineError::NotAllowed(format!(
            "session {} holds task {}, not session {session}: only the one that holds it gives it up, or a person",
            holder.session, holder.task_id
        )),
        _ => error,
    }
}

/// Gives a task up.
pub fn abandon(engine: &Engine<'_>, request: &AbandonRequest) -> Result<Closed, EngineError> {
    let site = Site::open_used(engine, request.which.task.as_deref())?;
    let caller = Caller::of(engine, &request.which)?;
    // A person may give up what any session left; a session that is named, and an agent that calls, must hold it.
    let as_session =
        request.which.session.is_some() || caller.agent_or_person() != AgentId::person();
    let asked = allow(engine, &site, &caller, request, as_session)?;
    let at = engine.clock.now();
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        let identity = match (&request.which.task, as_session) {
            (Some(text), false) => {
                let entry = select::task(&view.state, text)?;
                let holder = entry
                    .holder()
                    .ok_or_else(|| EngineError::NoTask(text.clone()))?;
                if holder.status == status::Status::Abandoned && holder.resumed_to.is_none() {
                    return Ok((None, (holder.clone(), entry.task.clone())));
                }
                if holder.status.is_closed() {
                    return Err(select::closed_error(holder));
                }
                holder
            }
            (task, _) => {
                match select::anybodys_one(&site, &view.state, &caller, task.as_deref()) {
                    Ok(identity) => identity,
                    Err(error) => {
                        // An equal call gave it up before.
                        let before = given_up_before(view, &caller, task.as_deref(), &error);
                        return match before {
                            Some(done) => Ok((None, done)),
                            None => Err(not_yours(view, &caller, task.as_deref(), error)),
                        };
                    }
                }
            }
        };
        if asked
            .as_ref()
            .is_some_and(|asked| asked != &identity.session)
        {
            return Err(EngineError::Changed(format!("task {}", identity.task_id)));
        }
        let entry = entry_of(view, &identity.task_id)?;
        let refuse = |refusal| EngineError::Transition {
            task_id: identity.task_id.clone(),
            refusal,
        };
        let mut next = identity.clone();
        next.status = status::apply(identity.status, Event::GivenUp).map_err(refuse)?;
        let by = match &caller.session {
            Some(_) => caller.acts_as(identity),
            None => caller.actor().session,
        };
        next.closed_by = (!is_own(&caller, identity)).then_some(by);
        next.updated_at = at;
        next.revision += 1;
        let mut changes = vec![Change::Identity {
            identity: Box::new(next.clone()),
        }];
        for review in entry
            .reviews
            .iter()
            .filter(|review| review.state == ReviewState::Pending)
        {
            // A question about work that is given up needs no answer any more.
            let mut review = review.clone();
            let decision = crate::review::Decision {
                approved: false,
                by: "the task was given up".to_owned(),
                session: caller.actor().session,
                at,
                remark: None,
                fingerprint: None,
            };
            review.state = ReviewState::Applied { decision, at };
            changes.push(Change::Review {
                review: Box::new(review),
            });
        }
        if let Some(reason) = &request.reason {
            let note = Note {
                at,
                by: caller.actor().session,
                text: engine.mask(&format!("given up: {reason}")),
            };
            changes.push(Change::Note {
                task_id: identity.task_id.clone(),
                note,
            });
        }
        let transition = Transition {
            at,
            actor: caller.actor(),
            operation: "abandon".to_owned(),
            changes,
        };
        Ok((Some(transition), (next, entry.task.clone())))
    })?;
    let (identity, task) = committed.value;
    effects::settle_beside(engine, &site, &caller.actor());
    effects::mirror(engine, &site, &identity.task_id);
    tidy(engine, &site);
    Ok(Closed {
        background: Running::of_task(engine, &site, &identity.task_id),
        identity: IdentityView::of(&identity, &task.title),
        evidence: Vec::new(),
        not_proved: None,
        unsettled: None,
        wrote: committed.wrote,
    })
}
