//! `plan`: which checks a task has to pass, and who said so.
use super::close::entry_of;
use super::{Caller, Engine, EngineError, PATIENCE, Site, Which, effects, select};
use crate::ids::{AgentId, SessionRef, TaskId};
use crate::ledger::{Change, TaskEntry, Transition, View};
use crate::plan::{Check, Plan};
use crate::redact;

/// Makes the command of a planned check as it is kept. It cannot hold a secret: masked, it could neither be run nor told from
/// another.
pub(super) fn planned_command(engine: &Engine<'_>, text: &str) -> Result<String, EngineError> {
    // A tab is white space inside a line, and no line of its own.
    if text.trim().chars().any(|c| c.is_control() && c != '\t') {
        return Err(EngineError::NotAllowed(
            "a planned check is one line: what stands on another would be run and not be seen"
                .to_owned(),
        ));
    }
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

/// Changes the plan of a task that is not closed and was not left at another place. Adding what is there changes nothing: a
/// check that is added again without a control keeps the one it has, and one that is added with another control gets that.
/// What an agent's session has to prove is changed by that session or by a person, and not by another agent.
pub fn edit_plan(
    engine: &Engine<'_>,
    which: &Which,
    edit: &PlanEdit,
) -> Result<(TaskId, Plan), EngineError> {
    let site = Site::open_used(engine, which.task.as_deref())?;
    let caller = Caller::of(engine, which)?;
    let at = engine.clock.now();
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        let task_id = meant(&site, view, &caller, which)?;
        let entry = entry_of(view, &task_id)?;
        allowed(&caller, entry)?;
        let mut task = entry.task.clone();
        match edit {
            PlanEdit::Add { command, must_fail } => {
                let command = planned_command(engine, command)?;
                let check = Check {
                    command,
                    source: caller.source(),
                    must_fail: must_fail
                        .as_deref()
                        .map(|text| planned_command(engine, text))
                        .transpose()?,
                };
                let mut known = task.plan.checks.iter_mut();
                match known.find(|known| known.command == check.command) {
                    // The same check with no word of its control keeps the control it has.
                    Some(_) if check.must_fail.is_none() => {}
                    Some(known) if known.must_fail == check.must_fail => {}
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
                task.plan.checks.clear();
                task.plan.no_checks = true;
            }
        }
        task.plan
            .note_edits(&entry.task.plan, &caller.actor().session, at);
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

/// Refuses to let an agent's session change what another has to prove.
fn allowed(caller: &Caller, entry: &TaskEntry) -> Result<(), EngineError> {
    let holder = entry.open_holder().map(|holder| &holder.session);
    match (&caller.session, holder) {
        (Some(session), Some(holder))
            if session != holder && session.agent != AgentId::person() =>
        {
            Err(EngineError::NotAllowed(format!(
                "session {holder} holds task {}, not session {session}: only the one that holds it changes its plan, or a person",
                entry.task.task_id
            )))
        }
        _ => Ok(()),
    }
}

/// Returns the task that is to be changed: the one that is named, else the caller's own.
fn meant(site: &Site, view: &View, caller: &Caller, which: &Which) -> Result<TaskId, EngineError> {
    match (&which.task, &which.session) {
        // An agent that does not say which session it is changes what it holds itself.
        (Some(text), None)
            if caller.session.is_some() || caller.agent_or_person() == AgentId::person() =>
        {
            let entry = select::open_here(site, &view.state, text)?;
            Ok(entry.task.task_id.clone())
        }
        (task, _) => Ok(
            select::anybodys_one(site, &view.state, caller, task.as_deref())?
                .task_id
                .clone(),
        ),
    }
}

/// Returns the task that a run can be recorded for, its plan and the session that holds it: as [`super::add_evidence`] finds
/// it, so that nothing is run for what could not be recorded. Reads only.
pub fn plan_to_prove(
    engine: &Engine<'_>,
    which: &Which,
) -> Result<(TaskId, Plan, SessionRef), EngineError> {
    let site = Site::open_used(engine, which.task.as_deref())?;
    let caller = Caller::of(engine, which)?;
    let identity = select::own_one(&site, &site.view.state, &caller, which.task.as_deref())?;
    let plan = entry_of(&site.view, &identity.task_id)?.task.plan.clone();
    Ok((identity.task_id.clone(), plan, identity.session.clone()))
}

/// Returns the task that is meant and its plan. Reads only.
pub fn plan_of(
    engine: &Engine<'_>,
    which: &Which,
) -> Result<(TaskId, Plan, Vec<crate::propose::Proposal>), EngineError> {
    let site = Site::open_used(engine, which.task.as_deref())?;
    let caller = Caller::of(engine, which)?;
    let state = &site.view.state;
    let task_id = match &which.task {
        Some(text) => select::task(state, text)?.task.task_id.clone(),
        None => select::to_read(&site, state, &caller)?.task_id.clone(),
    };
    let plan = entry_of(&site.view, &task_id)?.task.plan.clone();
    Ok((task_id, plan, crate::propose::propose(&site.place().root)))
}
