//! The question about what nothing tells of the time before a task was taken up. A yes says that it is not held against the task.
use super::super::{Changed, Engine, EngineError};
use super::{AMBIGUOUS, new_id};
use crate::fingerprint::Look;
use crate::identity::Identity;
use crate::ledger::TaskEntry;
use crate::review::{Review, ReviewState};
use crate::time::Time;

/// Makes the question about what nothing tells of the time before a task was taken up.
pub(in super::super) fn doubt_review(
    engine: &Engine<'_>,
    entry: &TaskEntry,
    identity: &Identity,
    doubtful: &[Changed],
    what: &str,
    look: &Look,
    at: Time,
) -> Result<Review, EngineError> {
    let files = doubtful.iter().map(|changed| changed.path.clone());
    Ok(Review {
        review_id: new_id()?,
        task_id: identity.task_id.clone(),
        session: identity.session.clone(),
        reason_code: AMBIGUOUS.to_owned(),
        title: "whether the task stayed inside its boundary before it was taken up is not known"
            .to_owned(),
        explanation: engine.mask(what),
        required_action:
            "approve where it was somebody else, and the paths stay as they are; or put them back, or reject"
                .to_owned(),
        resume_condition: "a person approved".to_owned(),
        suggested_commands: Vec::new(),
        affected_files: files.collect(),
        current_boundary: entry.task.boundary.allowed.clone(),
        requested_boundary: Vec::new(),
        fingerprint: look.record.fingerprint.clone(),
        created_at: at,
        state: ReviewState::Pending,
    })
}
