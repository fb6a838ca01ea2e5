//! Decisions on questions that only an agent's own files hold.
use super::super::views::NextView;
use super::super::{Caller, Engine, EngineError, PATIENCE, ResumeRequest, Site, effects, resume};
use super::{DecideRequest, Decided};
use crate::agent::Effect;
use crate::ids::{ReviewId, TaskId};
use crate::ledger::{Change, Transition};
use crate::review::{Decision, Review, ReviewState};

/// Decides a question that only an agent's own files hold: the decision goes into our ledger, then into those files.
pub(super) fn decide(
    engine: &Engine<'_>,
    site: &Site,
    caller: &Caller,
    request: &DecideRequest,
) -> Result<Decided, EngineError> {
    let found = engine.agents.iter().find_map(|agent| {
        let tasks = agent.tasks(engine.env, site.place()).items;
        tasks
            .into_iter()
            .filter_map(|task| task.review)
            .find_map(|review| {
                let named = review.review_id.as_str() == request.review
                    || review.task_id.as_str() == request.review;
                (named && review.state == ReviewState::Pending).then_some((agent, review))
            })
    });
    let Some((agent, mut review)) = found else {
        return Err(EngineError::NoReview(request.review.clone()));
    };
    if let Some(why) = agent.refuses_yes(&review).filter(|_| request.approve) {
        let review_id = review.review_id;
        return Err(EngineError::NoYes { review_id, why });
    }
    let agent = agent.id();
    let at = engine.clock.now();
    let site_used = Site::open_or_init(engine)?;
    let task_id: TaskId = review.task_id.clone();
    let effect = Effect::ForeignReviewDecided {
        task_id,
        review_id: review.review_id.clone(),
        approved: request.approve,
        session: caller.actor().session,
        at,
    };
    let decided = effects::decided(engine, &site_used, Some(&agent), &effect);
    if decided.is_empty() {
        return Err(EngineError::NoReview(request.review.clone()));
    }
    let committed = site_used.ledger.transact(engine.clock, PATIENCE, |view| {
        // What was decided before and could not be written yet stands.
        let before = view.state.pending.iter().find_map(|pending| {
            let approved = decision_on(&pending.effect, &review.review_id)?;
            Some((pending.effect_id.clone(), approved))
        });
        match before {
            Some((_, approved)) if approved != request.approve => {
                return Err(EngineError::AlreadyDecided(review.review_id.to_string()));
            }
            Some((effect_id, _)) => return Ok((None, vec![effect_id])),
            None => {}
        }
        let changes = decided
            .iter()
            .map(|effect| Change::Decided {
                effect: Box::new(effect.clone()),
            })
            .collect();
        let transition = Transition {
            at,
            actor: caller.actor(),
            operation: "review-decide".to_owned(),
            changes,
        };
        let ids = decided.iter().map(|effect| effect.effect_id.clone());
        Ok::<_, EngineError>((Some(transition), ids.collect()))
    })?;
    let ids: Vec<String> = committed.value;
    let settled = effects::settle(engine, &site_used, &caller.actor())?;
    let waits = settled.failed.iter().any(|(id, _)| ids.contains(id));
    if let Some((_, error)) = settled.refused.into_iter().find(|(id, _)| ids.contains(id)) {
        return Err(error.into());
    }
    let decision = Decision {
        approved: request.approve,
        by: request.by.clone(),
        session: caller.actor().session,
        at,
        remark: request.remark.clone(),
        fingerprint: None,
    };
    review.state = if waits {
        ReviewState::Decided { decision }
    } else {
        ReviewState::Applied { decision, at }
    };
    let next = next_after(engine, caller, request, &review);
    Ok(Decided { review, next })
}

/// Says what comes after the decision. Where a session approved, the task is its own now, there, and is taken into the ledger.
fn next_after(
    engine: &Engine<'_>,
    caller: &Caller,
    request: &DecideRequest,
    review: &Review,
) -> NextView {
    let task = review.task_id.as_str();
    let is_applied = matches!(review.state, ReviewState::Applied { .. });
    let session = caller.session.as_ref();
    let session = session.filter(|session| !session.is_nobody_special());
    if let Some(session) = session.filter(|_| request.approve && is_applied) {
        let taking = ResumeRequest {
            task: Some(task.to_owned()),
            from: Some(session.id.to_string()),
            to: Some(session.id.to_string()),
            agent: Some(session.agent.to_string()),
            ..ResumeRequest::default()
        };
        // Where that is not possible here and now, `inspect` says why.
        if let Ok(taken) = resume(engine, &taking) {
            return taken.next;
        }
    }
    NextView::new("inspect", &["git", "takeup", "inspect", task])
}

/// Returns the word of a decision on a question that only an agent's own files hold.
fn decision_on(effect: &Effect, review: &ReviewId) -> Option<bool> {
    match effect {
        Effect::ForeignReviewDecided {
            review_id,
            approved,
            ..
        } => (review_id == review).then_some(*approved),
        Effect::TakenUp { .. } | Effect::Mirrored { .. } | Effect::Reviewed { .. } => None,
    }
}
