//! Which reviews there are, and which one a text means.
use schemars::JsonSchema;
use serde::Serialize;

use super::super::{Engine, EngineError, Site};
use super::{NotBack, avoided, elsewhere};
use crate::agent::ForeignAnswer;
use crate::ledger::View;
use crate::review::{Review, ReviewState};

/// A review and whether it still speaks of the present content.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewView {
    /// The review.
    pub review: Review,
    /// The title of its task.
    pub task_title: String,
    /// The content changed since the question was asked; `null` where that is not known.
    pub content_changed: Option<bool>,
    /// Why it cannot be approved yet, where paths that the task must avoid are not as they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_back: Option<NotBack>,
    /// Why it can never be approved, where the agent in whose files it stands takes no yes to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_yes: Option<String>,
    /// An answer that was given inside an agent and is not taken over yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<ForeignAnswer>,
}

/// Lists reviews, the newest last. Without `all` only those that wait. Reads only.
pub fn reviews(
    engine: &Engine<'_>,
    only: Option<&str>,
    all: bool,
) -> Result<Vec<ReviewView>, EngineError> {
    let site = Site::open(engine)?;
    let mut found: Vec<(Review, String)> = Vec::new();
    for entry in site.view.state.tasks.values() {
        found.extend(
            entry
                .reviews
                .iter()
                .map(|review| (review.clone(), entry.task.title.clone())),
        );
    }
    let mut no_yes = Vec::new();
    for agent in engine.agents {
        for task in agent.tasks(engine.env, site.place()).items {
            if let Some(review) = task.review
                && !found
                    .iter()
                    .any(|(known, _)| known.review_id == review.review_id)
            {
                let why = agent.refuses_yes(&review);
                no_yes.extend(why.map(|why| (review.review_id.clone(), why)));
                found.push((review, task.title));
            }
        }
    }
    if let Some(text) = only {
        found.retain(|(review, _)| {
            review.review_id.as_str().starts_with(text) || review.task_id.as_str() == text
        });
        if found.is_empty() {
            return Err(EngineError::NoReview(text.to_owned()));
        }
    }
    if !all && only.is_none() {
        found.retain(|(review, _)| review.is_open());
    }
    found.sort_by_key(|(review, _)| review.created_at);
    let look = if found.is_empty() {
        None
    } else {
        Some(site.look(engine, false, false)?)
    };
    let present = look
        .as_ref()
        .and_then(|look| look.record.fingerprint.as_ref());
    let not_back = |review: &Review| {
        let entry = site.view.state.tasks.get(&review.task_id)?;
        let waits = review.state == ReviewState::Pending;
        match avoided::demand_back(&site, entry, review, look.as_ref().filter(|_| waits)?) {
            Err(EngineError::NotBack(not_back)) => Some(not_back),
            _ => None,
        }
    };
    let asked: Vec<Review> = found.iter().map(|(review, _)| review.clone()).collect();
    let answers = elsewhere::answers(engine, &site, asked.iter());
    Ok(found
        .into_iter()
        .map(|(review, task_title)| ReviewView {
            answer: answers
                .items
                .iter()
                .find(|answer| answer.review_id == review.review_id)
                .cloned(),
            not_back: not_back(&review),
            no_yes: no_yes
                .iter()
                .find(|(id, _)| *id == review.review_id)
                .map(|(_, why)| why.clone()),
            content_changed: match (&review.fingerprint, present) {
                (Some(asked), Some(present)) => Some(asked != present),
                _ => None,
            },
            review,
            task_title,
        })
        .collect())
}

/// Finds the one review that [`super::decide`] decides for this text, which a person is asked about before. Reads only.
///
/// Fails where there is none, and where several are meant.
pub fn review_meant(engine: &Engine<'_>, text: &str) -> Result<ReviewView, EngineError> {
    let found = reviews(engine, Some(text), true)?;
    let meant = pick(found.iter().map(|view| &view.review), text)?
        .review_id
        .clone();
    let mut found = found.into_iter();
    found
        .find(|view| view.review.review_id == meant)
        .ok_or_else(|| EngineError::NoReview(text.to_owned()))
}

pub(super) fn find<'a>(view: &'a View, text: &str) -> Result<&'a Review, EngineError> {
    let tasks = view.state.tasks.values();
    pick(tasks.flat_map(|entry| &entry.reviews), text)
}

/// Picks the review of that id, the open one of that task, or the one whose id begins so.
fn pick<'a>(
    all: impl Iterator<Item = &'a Review> + Clone,
    text: &str,
) -> Result<&'a Review, EngineError> {
    if let Some(review) = all.clone().find(|one| one.review_id.as_str() == text) {
        return Ok(review);
    }
    let of_task: Vec<&Review> = all
        .clone()
        .filter(|review| review.task_id.as_str() == text)
        .filter(|review| review.is_open())
        .collect();
    let by_prefix: Vec<&Review> = all
        .filter(|review| text.len() >= 4 && review.review_id.as_str().starts_with(text))
        .collect();
    match (of_task.as_slice(), by_prefix.as_slice()) {
        ([one], _) | ([], [one]) => Ok(one),
        ([], []) => Err(EngineError::NoReview(text.to_owned())),
        ([], several) | (several, _) => {
            let ids: Vec<&str> = several.iter().map(|one| one.review_id.as_str()).collect();
            Err(EngineError::NotAllowed(format!(
                "{text:?} names several reviews; name one by its id: {}",
                ids.join(", ")
            )))
        }
    }
}
