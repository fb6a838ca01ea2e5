//! Whether a task stayed inside its boundary.
use super::{Changed, EngineError, Site, changes};
use crate::boundary::Boundary;
use crate::fingerprint::Look;
use crate::identity::{Identity, Recorded};
use crate::ids::TaskId;
use crate::ledger::TaskEntry;

/// How many paths of commits are compared with a boundary: all of any work that is one task.
const MOST_PATHS: usize = 100_000;
/// How many paths outside a boundary are told.
const TOLD: usize = 1_000;

/// The paths changed since a task began that its boundary does not allow.
#[derive(Debug)]
pub(super) struct Strayed {
    task_id: TaskId,
    boundary: Boundary,
    base: Option<Recorded>,
    /// The paths, as far as they are known.
    pub(super) outside: Vec<Changed>,
    /// Why it is not known whether there are more, where that is so: what is not known is not inside.
    pub(super) unknown: Option<String>,
}

impl Strayed {
    /// Compares what was there when the task began with what is there.
    pub(super) fn of(site: &Site, entry: &TaskEntry, identity: &Identity, look: &Look) -> Self {
        let boundary = &entry.task.boundary;
        let mut strayed = Self {
            task_id: identity.task_id.clone(),
            boundary: boundary.clone(),
            base: identity.base.clone(),
            outside: Vec::new(),
            unknown: None,
        };
        if boundary.allowed.is_empty() && boundary.avoided.is_empty() {
            return strayed;
        }
        let Some(base) = &identity.base else {
            strayed.unknown =
                Some("what was there when the session began is not recorded".to_owned());
            return strayed;
        };
        let changes = changes::between_most(
            site.repository.git(),
            &site.place().root,
            &base.tree,
            &look.record,
            boundary,
            MOST_PATHS,
        );
        strayed.unknown = changes.incomplete.or_else(|| {
            let why = base.tree.incomplete.as_ref()?;
            Some(format!(
                "what was there when the session began was not seen whole: {why}"
            ))
        });
        let outside = changes
            .paths
            .into_iter()
            .filter(|changed| !changed.inside_boundary);
        strayed.outside = outside.take(TOLD).collect();
        strayed
    }

    /// Fails where the task is not known to have stayed inside. `entry` and `identity` are what the ledger holds now; where
    /// they are not what was compared, somebody was at work meanwhile.
    pub(super) fn demand_none(
        &self,
        entry: &TaskEntry,
        identity: &Identity,
    ) -> Result<(), EngineError> {
        if entry.task.boundary != self.boundary || identity.base != self.base {
            return Err(EngineError::Changed("the task".to_owned()));
        }
        if let Some(first) = self.outside.first() {
            return Err(EngineError::OutsideBoundary {
                task_id: self.task_id.clone(),
                path: first.path.clone(),
                more: self.outside.len().saturating_sub(1),
            });
        }
        match &self.unknown {
            Some(why) => Err(EngineError::BoundaryUnknown {
                task_id: self.task_id.clone(),
                why: why.clone(),
            }),
            None => Ok(()),
        }
    }
}
