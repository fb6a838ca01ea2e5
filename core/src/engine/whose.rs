//! Whose record is the first that has a changed path as it is now.
use super::Changes;
use crate::fingerprint::{Deviation, DeviationKind, Reach};
use crate::identity::Recorded;
use crate::ids::{SessionRef, WorktreeId};
use crate::ledger::State;

/// Names, for each path that differs from what a session left in the work tree `here`, the session that recorded it so first, where one did since.
///
/// A record says what was there when a session's turn ended; that the session made it is likely, and is not said.
pub(super) fn name(
    changes: &mut Changes,
    state: &State,
    session: &SessionRef,
    here: &WorktreeId,
    left: &Recorded,
) {
    let since = left.provenance.at;
    let of_sessions = state
        .sessions
        .iter()
        .map(|record| (&record.session, &record.place, &record.latest));
    let of_tasks = state
        .tasks
        .values()
        .flat_map(|entry| &entry.identities)
        .map(|other| (&other.session, &other.place, &other.latest));
    let mut records: Vec<(&SessionRef, &Recorded)> = of_sessions
        .chain(of_tasks)
        .filter(|(_, place, _)| &place.worktree_id == here)
        .filter_map(|(session, _, latest)| Some((session, latest.as_ref()?)))
        .filter(|(by, latest)| {
            latest.provenance.at > since
                && !latest.provenance.provisional
                && !(*by == session && latest.tree == left.tree)
        })
        .collect();
    records.sort_by_key(|(_, latest)| latest.provenance.at);
    let records: Vec<_> = records
        .into_iter()
        .map(|(session, latest)| (session, latest, Reach::of(&latest.tree)))
        .collect();
    for changed in &mut changes.paths {
        let has_it = |found: &Deviation| {
            found.path == changed.path
                && found.kind != DeviationKind::Nested
                && found.oid == changed.there
                && (changed.there.is_some() || found.kind == DeviationKind::Deleted)
        };
        // Where the list of an earlier record was cut before the path, that one may have had it first.
        let first = records
            .iter()
            .map(|(session, latest, reach)| {
                let has_it = latest.tree.deviations.iter().any(has_it);
                (session, has_it, reach)
            })
            .find(|(_, has_it, reach)| *has_it || !reach.covers(&changed.path));
        changed.by = first
            .filter(|(_, has_it, _)| *has_it)
            .map(|(session, _, _)| (**session).clone());
    }
}
