//! What other sessions left beside the content: open items of the plans that agents keep themselves, and changes of theirs.
use super::candidate::Candidate;
use super::candidates::Gatherer;
use super::whose;
use crate::agent::PlanItem;
use crate::identity::Identity;
use crate::ids::SessionRef;
use crate::ledger::{TaskEntry, View};

impl Gatherer<'_> {
    /// What is open of a session's own plan.
    pub(super) fn todos(&self, session: &SessionRef) -> Vec<PlanItem> {
        let known = self.sessions.iter().find(|known| &known.session == session);
        let items = known.into_iter().flat_map(|known| &known.plan);
        items.filter(|item| !item.done).cloned().collect()
    }

    /// Adds to an identity's candidate what other sessions left: open todos, and who recorded a path first.
    pub(super) fn add_what_others_left(
        &self,
        candidate: &mut Candidate,
        view: &View,
        entry: &TaskEntry,
        identity: &Identity,
    ) {
        if let (Some(changes), Some(left)) = (&mut candidate.changes, &identity.latest) {
            let here = &identity.place.worktree_id;
            whose::name(changes, &view.state, &identity.session, here, left);
        }
        if candidate.todos.is_empty() && !identity.status.is_closed() {
            candidate.todos = self.inherited_todos(entry, identity);
        }
    }

    /// What was open of the plans of the sessions before, the last that had one.
    fn inherited_todos(&self, entry: &TaskEntry, identity: &Identity) -> Vec<PlanItem> {
        let mut before = identity.resumed_from.as_ref();
        for _ in &entry.identities {
            let Some(session) = before else { break };
            let todos = self.todos(session);
            if !todos.is_empty() {
                return todos;
            }
            before = entry
                .identity(session)
                .and_then(|known| known.resumed_from.as_ref());
        }
        Vec::new()
    }
}
