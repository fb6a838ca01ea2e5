//! Answers that were given inside OpenCode++ to questions of the ledger.
use takeup_core::agent::{ForeignAnswer, Found};
use takeup_core::ids::{SessionId, SessionRef};
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::repository::Place;
use takeup_core::review::Review;

use crate::sidecar::{self, Collation, Identity, Paths, Request};

/// Looks for the answers to these questions, each in the record it was shown in.
pub(crate) fn answers(place: &Place, asked: &[Review]) -> Found<ForeignAnswer> {
    let mut found = Found::default();
    let paths = Paths::new(&place.root);
    let order = match Collation::new() {
        Ok(order) => order,
        Err(why) => {
            let issue = Issue::new(paths.sidecar(), IssueKind::Unreadable, why);
            found.issues.push(issue);
            return found;
        }
    };
    for review in asked {
        match answer(&paths, review, &order) {
            Ok(answer) => found.items.extend(answer),
            Err(issue) => found.issues.push(issue),
        }
    }
    found
}

fn answer(
    paths: &Paths,
    review: &Review,
    order: &Collation,
) -> Result<Option<ForeignAnswer>, Issue> {
    let (task, asked_by) = (review.task_id.as_str(), review.session.id.as_str());
    let path = paths.review(Some(task), Some(asked_by));
    let Some(document) = sidecar::read(&path)? else {
        return Ok(None);
    };
    let corrupt = |why: String| Issue::new(&path, IssueKind::Corrupt, why);
    let request = Request::check(&document.object).map_err(corrupt)?;
    if !request.has_id(review.review_id.as_str()) {
        // The plugin asks something else there.
        return Ok(None);
    }
    let approved = match request.status.as_str() {
        "approved" | "resumed" => true,
        "rejected" => false,
        _ => return Ok(None),
    };
    if !request.asks(review, order) {
        return Err(corrupt(
            "it was answered, and what it asks is not what was asked; the answer does not count"
                .to_owned(),
        ));
    }
    // An answer from another session moved the task there.
    let moved = sidecar::read(&paths.identity(task, asked_by))?
        .and_then(|document| Identity::check(&document.object, paths.root()).ok())
        .filter(|identity| identity.session == asked_by && identity.task == task)
        .and_then(|identity| identity.resumed_to)
        .and_then(|id| SessionId::new(id).ok());
    Ok(Some(ForeignAnswer {
        review_id: review.review_id.clone(),
        approved,
        session: moved.map_or_else(
            || review.session.clone(),
            |id| SessionRef::new(crate::agent_id(), id),
        ),
        at: sidecar::time(&request.updated_at),
    }))
}
