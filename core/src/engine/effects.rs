//! Effects on the agents' own files: decided in the ledger, applied after, and applied by the next call where that failed.
use super::{Engine, EngineError, PATIENCE, Site};
use crate::agent::{AgentError, Effect};
use crate::identity::{Identity, Task};
use crate::ids::AgentId;
use crate::ledger::{Actor, Change, PendingEffect, Transition};
use crate::paths::text_of_path;
use crate::time::Time;

/// Returns the effects that the agents whose files mirror this place have to show, ready to be put into a transition.
pub(super) fn decided(
    engine: &Engine<'_>,
    site: &Site,
    only: Option<&AgentId>,
    effect: &Effect,
) -> Vec<PendingEffect> {
    engine
        .agents
        .iter()
        .filter(|agent| only.is_none_or(|only| *only == agent.id()))
        .filter(|agent| agent.mirrors(engine.env, site.place()))
        .map(|agent| PendingEffect {
            effect_id: ulid::Ulid::generate().to_string().to_lowercase(),
            agent: agent.id(),
            root: text_of_path(&site.place().root),
            effect: effect.clone(),
        })
        .collect()
}

/// Applies what was decided for this place and not yet applied, beside another command: what fails stays for the next one.
pub(super) fn settle_beside(engine: &Engine<'_>, site: &Site, actor: &Actor) {
    if let Err(error) = settle(engine, site, actor) {
        site.ledger.log(engine.clock, &format!("settle: {error}"));
    }
}

/// Applies what was decided for this place and not yet applied. An effect that fails stays for the next call that writes;
/// returned is, for each, whose files do not show it and why.
pub(super) fn settle(
    engine: &Engine<'_>,
    site: &Site,
    actor: &Actor,
) -> Result<Vec<String>, EngineError> {
    let view = site.ledger.read()?;
    let root = text_of_path(&site.place().root);
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for pending in view
        .state
        .pending
        .iter()
        .filter(|pending| pending.root == root)
    {
        let Some(agent) = engine
            .agents
            .iter()
            .find(|agent| agent.id() == pending.agent)
        else {
            continue;
        };
        let applied = agent.apply(engine.env, site.place(), &pending.effect);
        // A conflict is final: somebody else decided there first, and trying again finds the same.
        let over = matches!(applied, Ok(()) | Err(AgentError::Conflict { .. }));
        if let Err(error) = applied {
            let what = format!("{}: {error}", pending.agent);
            site.ledger.log(engine.clock, &what);
            if !over {
                failed.push(what);
            }
        }
        if over {
            done.push(Change::Applied {
                effect_id: pending.effect_id.clone(),
            });
        }
    }
    if done.is_empty() {
        return Ok(failed);
    }
    let at = engine.clock.now();
    site.ledger.transact(engine.clock, PATIENCE, |view| {
        let changes: Vec<Change> = done
            .iter()
            .filter(|change| {
                matches!(change, Change::Applied { effect_id }
                    if view.state.pending.iter().any(|known| &known.effect_id == effect_id))
            })
            .cloned()
            .collect();
        let transition = (!changes.is_empty()).then(|| Transition {
            at,
            actor: actor.clone(),
            operation: "settle".to_owned(),
            changes,
        });
        Ok::<_, EngineError>((transition, ()))
    })?;
    Ok(failed)
}

/// Shows in the agents' own files how a task of the ledger stands. Best effort: nothing was promised to those files, and
/// the next transition shows the task anew.
pub(super) fn mirror(engine: &Engine<'_>, site: &Site, identity: &Identity, task: &Task) {
    let effect = mirrored(identity, task, identity.updated_at);
    for agent in engine
        .agents
        .iter()
        .filter(|agent| agent.mirrors(engine.env, site.place()))
    {
        let _shown = agent.apply(engine.env, site.place(), &effect);
    }
}

fn mirrored(identity: &Identity, task: &Task, at: Time) -> Effect {
    Effect::Mirrored {
        task_id: task.task_id.clone(),
        title: task.title.clone(),
        session: identity.session.clone(),
        status: identity.status,
        allowed: task.boundary.allowed.clone(),
        avoided: task.boundary.avoided.clone(),
        checks: task
            .plan
            .checks
            .iter()
            .map(|check| check.command.clone())
            .collect(),
        at,
    }
}
