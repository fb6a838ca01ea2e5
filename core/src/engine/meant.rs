//! Which session is meant by what a person or agent says of it: its id, the beginning of that, or the word its agent calls it by.
use super::EngineError;
use super::candidate::Candidate;
use super::candidates::Gatherer;
use super::select::names;
use crate::ids::SessionRef;
use crate::ledger::View;

impl Gatherer<'_> {
    /// Returns the session that a text means: what it says where an id is so, or begins so, else the only one here that its
    /// agent calls by this word.
    pub(super) fn meant(&self, view: &View, named: &str) -> String {
        let all = view.state.tasks.values();
        let held = all
            .flat_map(|entry| &entry.identities)
            .map(|identity| &identity.session);
        let recorded = view.state.sessions.iter().map(|record| &record.session);
        let in_stores = self.sessions.iter().map(|session| &session.session);
        let beside = self.foreign.iter().map(|task| &task.session);
        let mut known = held.chain(recorded).chain(in_stores).chain(beside);
        if known.any(|session| names(named, session)) {
            return named.to_owned();
        }
        let mut called = self
            .sessions
            .iter()
            .filter(|session| session.name.as_deref() == Some(named));
        match (called.next(), called.next()) {
            (Some(only), None) => only.session.to_string(),
            _ => named.to_owned(),
        }
    }

    /// Keeps the candidates of the session that is meant; of every one, where several are called by the word.
    pub(super) fn keep_of(
        &self,
        candidates: &mut Vec<Candidate>,
        view: &View,
        named: &str,
    ) -> Result<(), EngineError> {
        let meant = self.meant(view, named);
        let called = |session: &SessionRef| {
            let mut known = self.sessions.iter();
            known.any(|known| {
                &known.session == session && known.name.as_deref() == Some(meant.as_str())
            })
        };
        let by_id = |candidate: &Candidate| names(&meant, &candidate.session());
        if candidates.iter().any(by_id) {
            candidates.retain(by_id);
        } else {
            candidates.retain(|candidate| called(&candidate.session()));
        }
        if candidates.is_empty() {
            return Err(self.no_session(view, &meant));
        }
        Ok(())
    }

    /// Says why a session that was named is none of the candidates.
    fn no_session(&self, view: &View, named: &str) -> EngineError {
        if let Some(there) = super::recorded::left_elsewhere(self.site, &view.state, named) {
            return EngineError::HeldElsewhere(there);
        }
        let mut known = view.state.sessions.iter().map(|record| &record.session);
        let mut in_stores = self.sessions.iter().map(|session| &session.session);
        if known.any(|session| names(named, session))
            || in_stores.any(|session| names(named, session))
        {
            EngineError::NothingLeft(named.to_owned())
        } else {
            EngineError::NoSession(named.to_owned())
        }
    }
}
