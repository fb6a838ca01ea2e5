//! Records of ours for work that only an agent's own store, or what our hooks recorded of a session, knows.
use super::Engine;
use super::candidate::{Candidate, Source};
use crate::boundary::Boundary;
use crate::identity::{Identity, PlaceRecord, SessionRecord, Task};
use crate::ids::TaskId;
use crate::plan::{Check, Plan};
use crate::status::Status;
use crate::time::Time;

/// Makes the records of a candidate; `None` where the ledger has them. `recorded` is what hooks recorded of its session.
pub(super) fn records(
    engine: &Engine<'_>,
    recorded: Option<&SessionRecord>,
    candidate: &Candidate,
    place: &PlaceRecord,
    at: Time,
) -> Option<(Task, Identity)> {
    let (boundary, plan) = match &candidate.source {
        Source::Ledger => return None,
        Source::Session => (Boundary::default(), Plan::default()),
        Source::Foreign(task) => (
            Boundary {
                allowed: task.allowed.clone(),
                avoided: task.avoided.clone(),
                ..Boundary::default()
            },
            Plan {
                checks: task
                    .checks
                    .iter()
                    .map(|command| Check {
                        command: engine.mask(command),
                        source: task.session.agent.to_string(),
                        must_fail: None,
                    })
                    .collect(),
                no_checks: false,
            },
        ),
    };
    let task_id: TaskId = candidate.identity.task_id.clone();
    let task = Task {
        task_id: task_id.clone(),
        title: engine.mask(&candidate.identity.title),
        boundary,
        plan,
        created_at: at,
    };
    let identity = Identity {
        task_id,
        session: candidate.session(),
        place: place.clone(),
        status: match candidate.identity.status {
            Status::Completed | Status::Abandoned => Status::Active,
            Status::HumanReview => Status::Dirty,
            status @ (Status::Active
            | Status::Dirty
            | Status::VerificationRequired
            | Status::StaleTask) => status,
        },
        base: None,
        latest: recorded.and_then(|record| record.latest.clone()),
        process: recorded.and_then(|record| record.process.clone()),
        closing: recorded.and_then(|record| record.closing.clone()),
        open_effects: candidate.open_effects.clone(),
        resumed_from: None,
        resumed_to: None,
        created_at: candidate.identity.updated_at,
        updated_at: candidate.identity.updated_at,
        revision: candidate.identity.revision,
    };
    Some((task, identity))
}
