//! Answers that were given inside an agent to a question of the ledger.
//!
//! Such an answer is the agent's word, and may be the model's. A no is taken over: it grants nothing. A yes is taken over only
//! where the user's own settings let the caller's word count, and only for the content the question was asked on; else the
//! question waits on, and the answer is shown beside it.
use super::super::{Caller, Engine, EngineError, PATIENCE, Site, effects};
use crate::agent::{ForeignAnswer, Found};
use crate::boundary::Boundary;
use crate::ids::Fingerprint;
use crate::ledger::{Change, Transition};
use crate::review::{Decision, Review, ReviewState};
use crate::settings::ConfirmBy;

/// Asks the agents whose files mirror this place for answers to questions that wait.
pub(super) fn answers<'a>(
    engine: &Engine<'_>,
    site: &Site,
    asked: impl Iterator<Item = &'a Review>,
) -> Found<ForeignAnswer> {
    let waiting: Vec<Review> = asked
        .filter(|review| review.state == ReviewState::Pending)
        .map(effects::as_shown)
        .collect();
    let mut found = Found::default();
    if waiting.is_empty() {
        return found;
    }
    for agent in engine
        .agents
        .iter()
        .filter(|agent| agent.mirrors(engine.env, site.place()))
    {
        let mut given = agent.answers(engine.env, site.place(), &waiting);
        found.items.append(&mut given.items);
        found.issues.append(&mut given.issues);
    }
    found
}

/// Records the answers that count as decisions. They are applied like every other, by whoever applies next.
pub(super) fn take_over(
    engine: &Engine<'_>,
    site: &Site,
    caller: &Caller,
) -> Result<(), EngineError> {
    let view = site.ledger.read()?;
    let all = || view.state.tasks.values().flat_map(|entry| &entry.reviews);
    let found = answers(engine, site, all());
    for issue in &found.issues {
        let line = format!("{}: {}", issue.path.display(), issue.message);
        site.ledger.log(engine.clock, &line);
    }
    let counts =
        |answer: &&ForeignAnswer| !answer.approved || engine.settings.confirm == ConfirmBy::Caller;
    let given: Vec<&ForeignAnswer> = found.items.iter().filter(counts).collect();
    if given.is_empty() {
        return Ok(());
    }
    let present = site.look(engine, true, false)?.record.fingerprint;
    let at = engine.clock.now();
    site.ledger.transact(engine.clock, PATIENCE, |view| {
        let mut changes = Vec::new();
        for answer in &given {
            let Some((entry, review)) = view.state.review(&answer.review_id) else {
                continue;
            };
            if review.state != ReviewState::Pending
                || answer.approved && !may_approve(review, &entry.task.boundary, present.as_ref())
            {
                continue;
            }
            let mut decided = review.clone();
            decided.state = ReviewState::Decided {
                decision: Decision {
                    approved: answer.approved,
                    by: answer.session.agent.to_string(),
                    session: answer.session.clone(),
                    // The agent's word for it; no moment that has not come.
                    at: answer.at.min(at),
                    remark: None,
                    fingerprint: present.clone(),
                },
            };
            changes.push(Change::Review {
                review: Box::new(decided),
            });
        }
        let transition = (!changes.is_empty()).then(|| Transition {
            at,
            actor: caller.actor(),
            operation: "review-decide".to_owned(),
            changes,
        });
        Ok::<_, EngineError>((transition, ()))
    })?;
    Ok(())
}

/// A yes holds for the content it was asked on, and never for paths that the task must avoid.
fn may_approve(review: &Review, boundary: &Boundary, present: Option<&Fingerprint>) -> bool {
    let protected = |glob: &String| boundary.protects(glob);
    present.is_some()
        && present == review.fingerprint.as_ref()
        && !review.requested_boundary.iter().any(protected)
}
