//! Questions about paths that a task must avoid: no answer lifts that. A yes is possible when they are back as they were.
use schemars::JsonSchema;
use serde::Serialize;

use super::super::stray::Strayed;
use super::super::{Elsewhere, EngineError, Site};
use crate::boundary::Boundary;
use crate::fingerprint::Look;
use crate::ledger::TaskEntry;
use crate::review::Review;

/// How many paths and commands are told.
const TOLD: usize = 20;

/// Why a question cannot be answered with yes: paths that the task must avoid are not as they were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotBack {
    /// The first of the paths.
    pub paths: Vec<String>,
    /// How many more there are.
    pub more: usize,
    /// Commands that put them back, where git has what was there; never run.
    pub commands: Vec<String>,
}

impl NotBack {
    /// Says what has to be done.
    pub(in super::super) fn way_out(&self) -> String {
        let commands: Vec<String> = self
            .commands
            .iter()
            .map(|command| format!("`{command}`"))
            .collect();
        if commands.is_empty() {
            "put it back as it was when the task began, then approve; or reject".to_owned()
        } else {
            format!(
                "put it back with {}, then approve; or reject",
                commands.join(", ")
            )
        }
    }
}

/// Returns what an approval adds to the boundary: what was asked for, without what must be avoided.
pub(super) fn granted(review: &Review, boundary: &Boundary) -> Vec<String> {
    let asked = review.requested_boundary.iter();
    asked
        .filter(|glob| !boundary.protects(glob))
        .cloned()
        .collect()
}

/// Tells whether a question is about what must be avoided.
fn concerns(review: &Review, boundary: &Boundary) -> bool {
    let mut asked = review.requested_boundary.iter();
    asked.any(|glob| boundary.protects(glob))
}

/// Demands that what must be avoided is as it was, where a question is about it. Returns the comparison, to be held against
/// what the ledger holds when the decision is recorded; `None` where there is nothing to compare.
pub(super) fn demand_back(
    site: &Site,
    entry: &TaskEntry,
    review: &Review,
    look: &Look,
) -> Result<Option<Strayed>, EngineError> {
    let Some(holder) = entry.open_holder() else {
        return Ok(None);
    };
    if !concerns(review, &entry.task.boundary) {
        return Ok(None);
    }
    if let Some(there) = Elsewhere::of(site, holder)? {
        return Err(EngineError::HeldElsewhere(there));
    }
    if let Some(why) = &look.record.incomplete {
        return Err(EngineError::Incomplete(why.clone()));
    }
    let strayed = Strayed::of(site, entry, holder, look);
    let avoided: Vec<_> = strayed.avoided().collect();
    if !avoided.is_empty() {
        let told = avoided.iter().take(TOLD);
        let mut commands = strayed.put_back();
        commands.truncate(TOLD);
        return Err(EngineError::NotBack(NotBack {
            paths: told.map(|changed| changed.path.clone()).collect(),
            more: avoided.len().saturating_sub(TOLD),
            commands,
        }));
    }
    if let Some(why) = &strayed.unknown {
        return Err(EngineError::BoundaryUnknown {
            task_id: entry.task.task_id.clone(),
            why: why.clone(),
        });
    }
    Ok(Some(strayed))
}
