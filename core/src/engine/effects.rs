//! Effects on the agents' own files: decided in the ledger, applied after, and applied by the next call where that failed.
use super::{Engine, EngineError, PATIENCE, Site};
use crate::agent::{AgentError, Effect};
use crate::boundary::Boundary;
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

/// What came of applying.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// The effects that failed and stay for the next call that writes: which, whose files do not show it, and why.
    pub(super) failed: Vec<(String, String)>,
    /// The effects that the agent's files contradict. They are over: trying again finds the same.
    pub(super) refused: Vec<(String, AgentError)>,
}

impl Settled {
    /// Says what the agents' own files do not show, and why.
    pub(super) fn not_applied(&self) -> Vec<String> {
        let failed = self.failed.iter().map(|(_, what)| what.clone());
        let refused = self.refused.iter().map(|(_, error)| error.to_string());
        failed.chain(refused).collect()
    }
}

/// Applies what was decided for this place and not yet applied.
pub(super) fn settle(
    engine: &Engine<'_>,
    site: &Site,
    actor: &Actor,
) -> Result<Settled, EngineError> {
    let view = site.ledger.read()?;
    let root = text_of_path(&site.place().root);
    let (mut done, mut settled) = (Vec::new(), Settled::default());
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
        let id = pending.effect_id.clone();
        match agent.apply(engine.env, site.place(), &pending.effect) {
            Ok(()) => {}
            // Somebody else decided there first, or nobody may decide this there.
            Err(error @ AgentError::Conflict { .. }) => {
                site.ledger
                    .log(engine.clock, &format!("{}: {error}", pending.agent));
                settled.refused.push((id.clone(), error));
            }
            Err(error) => {
                let what = format!("{}: {error}", pending.agent);
                site.ledger.log(engine.clock, &what);
                settled.failed.push((id, what));
                continue;
            }
        }
        done.push(Change::Applied { effect_id: id });
    }
    if done.is_empty() {
        return Ok(settled);
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
    Ok(settled)
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
        allowed: unmarked(&task.boundary.allowed),
        avoided: unmarked(&task.boundary.avoided),
        checks: task
            .plan
            .checks
            .iter()
            .map(|check| check.command.clone())
            .collect(),
        at,
    }
}

/// Patterns as an agent's own files hold them: these have no mark for a path that is none.
pub(super) fn unmarked(globs: &[String]) -> Vec<String> {
    let unmarked = globs.iter().map(|glob| Boundary::unmarked(glob).to_owned());
    unmarked.collect()
}
