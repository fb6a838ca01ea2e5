//! Effects on the agents' own files: decided in the ledger, applied after, and applied by the next call where that failed.
use std::collections::BTreeMap;

use super::{Engine, EngineError, PATIENCE, Site};
use crate::agent::{AgentError, Effect};
use crate::boundary::Boundary;
use crate::identity::{Identity, Task};
use crate::ids::{AgentId, SessionRef, TaskId};
use crate::ledger::{Actor, Change, PendingEffect, State, Transition};
use crate::paths::text_of_path;
use crate::review::{Review, ReviewState};

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

/// Shows in the agents' own files how a task of the ledger stands: its questions, and who holds it. Best effort: nothing was
/// promised to those files, and the next transition shows the task anew.
pub(super) fn mirror(engine: &Engine<'_>, site: &Site, task_id: &TaskId) {
    let agents: Vec<_> = engine
        .agents
        .iter()
        .filter(|agent| agent.mirrors(engine.env, site.place()))
        .collect();
    if agents.is_empty() {
        return;
    }
    let effects = match site.ledger.read() {
        Ok(view) => shown(site, &view.state, task_id),
        Err(error) => {
            site.ledger.log(engine.clock, &format!("mirror: {error}"));
            return;
        }
    };
    for effect in &effects {
        for agent in &agents {
            if let Err(error) = agent.apply(engine.env, site.place(), effect) {
                let line = format!("{}: {error}", agent.id());
                site.ledger.log(engine.clock, &line);
            }
        }
    }
}

/// Says what those files have to show of a task that is held here.
fn shown(site: &Site, state: &State, task_id: &TaskId) -> Vec<Effect> {
    let Some(entry) = state.tasks.get(task_id) else {
        return Vec::new();
    };
    let Some(holder) = entry.holder().filter(|holder| site.is_here(&holder.place)) else {
        return Vec::new();
    };
    // What came of the others goes before the last question that waits of each session that asked: there is room for one.
    let (waiting, others): (Vec<&Review>, Vec<&Review>) =
        (entry.reviews.iter()).partition(|review| review.state == ReviewState::Pending);
    let waiting: BTreeMap<&SessionRef, &Review> = waiting
        .into_iter()
        .map(|review| (&review.session, review))
        .collect();
    let questions = others.into_iter().chain(waiting.into_values());
    let questions = questions.map(|review| Effect::Reviewed {
        review: Box::new(as_shown(review)),
        session: holder.session.clone(),
        status: holder.status,
    });
    // A take-up that could not be shown yet is shown as what it is, by whoever settles it.
    let waits = state.pending.iter().any(
        |pending| matches!(&pending.effect, Effect::TakenUp { task_id: of, .. } if of == task_id),
    );
    let sources = entry.identities.iter().filter(|identity| {
        !waits
            && identity.resumed_to.as_ref() == Some(&holder.session)
            && identity.session != holder.session
            && site.is_here(&identity.place)
    });
    let identities = sources
        .chain(std::iter::once(holder))
        .map(|identity| mirrored(identity, &entry.task));
    questions.chain(identities).collect()
}

fn mirrored(identity: &Identity, task: &Task) -> Effect {
    Effect::Mirrored {
        task_id: task.task_id.clone(),
        title: task.title.clone(),
        session: identity.session.clone(),
        status: identity.status,
        resumed_to: identity.resumed_to.clone(),
        allowed: unmarked(&task.boundary.allowed),
        avoided: unmarked(&task.boundary.avoided),
        checks: task
            .plan
            .checks
            .iter()
            .map(|check| check.command.clone())
            .collect(),
        at: identity.updated_at,
    }
}

/// A question as an agent's own files hold it.
pub(super) fn as_shown(review: &Review) -> Review {
    Review {
        current_boundary: unmarked(&review.current_boundary),
        requested_boundary: unmarked(&review.requested_boundary),
        ..review.clone()
    }
}

/// Patterns as an agent's own files hold them: these have no mark for a path that is none.
fn unmarked(globs: &[String]) -> Vec<String> {
    let unmarked = globs.iter().map(|glob| Boundary::unmarked(glob).to_owned());
    unmarked.collect()
}
