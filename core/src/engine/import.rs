//! Records of ours for work that only an agent's own store, or what our hooks recorded of a session, knows.
use super::Engine;
use super::candidate::{Candidate, Source};
use crate::boundary::Boundary;
use crate::identity::{Before, Identity, PlaceRecord, Recorded, SessionRecord, Task};
use crate::ids::TaskId;
use crate::ledger::TaskEntry;
use crate::plan::{Check, Plan};
use crate::status::Status;
use crate::time::Time;

/// Makes the records of a candidate; `None` where the ledger has them. `entry` is what the ledger knows of the task in other
/// sessions: what those began with here is what the work is compared with. `recorded` is what hooks recorded of its session,
/// `equal` the present content where that is what was left, by the word of the agent's own store or by our own record.
pub(super) fn records(
    engine: &Engine<'_>,
    entry: Option<&TaskEntry>,
    recorded: Option<&SessionRecord>,
    candidate: &Candidate,
    place: &PlaceRecord,
    equal: Option<&Recorded>,
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
                ..Plan::default()
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
    let known = entry
        .and_then(TaskEntry::holder)
        .filter(|holder| holder.place.worktree_id == place.worktree_id);
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
        base: known.and_then(|known| known.base.clone()),
        before: known.map_or_else(Before::default, |known| known.before.clone()),
        latest: recorded
            .and_then(|record| record.latest.clone())
            .filter(|latest| equal.is_none_or(|equal| latest.tree.same_content(&equal.tree)))
            .or_else(|| equal.map(|equal| equal.clone().imported())),
        process: recorded.and_then(|record| record.process.clone()),
        closing: recorded.and_then(|record| record.closing.clone()),
        open_effects: candidate.open_effects.clone(),
        inherited_effects: Vec::new(),
        resumed_from: None,
        resumed_to: None,
        closed_by: None,
        created_at: candidate.identity.updated_at,
        updated_at: candidate.identity.updated_at,
        revision: candidate.identity.revision,
    };
    Some((task, identity))
}
