//! What is open of the plans that agents keep themselves.
use super::candidates::Gatherer;
use crate::agent::PlanItem;
use crate::identity::Identity;
use crate::ids::SessionRef;
use crate::ledger::TaskEntry;

impl Gatherer<'_> {
    /// What is open of a session's own plan.
    pub(super) fn todos(&self, session: &SessionRef) -> Vec<PlanItem> {
        let known = self.sessions.iter().find(|known| &known.session == session);
        let items = known.into_iter().flat_map(|known| &known.plan);
        items.filter(|item| !item.done).cloned().collect()
    }

    /// What was open of the plans of the sessions before, the last that had one.
    pub(super) fn inherited_todos(&self, entry: &TaskEntry, identity: &Identity) -> Vec<PlanItem> {
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
