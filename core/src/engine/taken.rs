//! What a take-up changes in the records: pure, so that each rule can be tried by itself.
use super::Caller;
use crate::identity::{Before, Identity, PlaceRecord, Recorded};
use crate::ids::SessionRef;
use crate::status::{self, Event, Refusal, Status};
use crate::time::Time;

/// A take-up that is allowed and confirmed.
pub(super) struct TakeUp<'a> {
    /// Who takes up.
    pub caller: &'a Caller,
    /// The session that goes on.
    pub target: &'a SessionRef,
    /// Where.
    pub place: &'a PlaceRecord,
    /// What is there now.
    pub now: &'a Recorded,
    /// What was changed outside the boundary before, and the base of the one that goes on does not tell of.
    pub before: &'a Before,
    /// The content is what was left.
    pub compatible: bool,
    /// When.
    pub at: Time,
}

/// What is recorded where another session goes on.
pub(super) struct TakenOver {
    /// The source, closed, with the link to the new session.
    pub source: Identity,
    /// What the new session holds.
    pub identity: Identity,
    /// What else was open of the task, closed with it: one task is held by one session.
    pub others: Vec<Identity>,
}

impl TakeUp<'_> {
    /// Lets the session that left it go on. `None`: there is nothing to record, since it is in the ledger (`known`) and on
    /// its own content.
    pub(super) fn same_session(
        &self,
        source: &Identity,
        known: bool,
    ) -> Result<Option<Identity>, Refusal> {
        let mut identity = source.clone();
        if self.compatible {
            if known {
                return Ok(None);
            }
            let equal = || Some(self.now.clone().imported());
            identity.base = identity.base.or_else(equal);
            identity.latest = identity.latest.or_else(equal);
        } else {
            identity.status = status::apply(identity.status, Event::Rebuilt)?;
            identity.base = Some(self.now.clone());
            identity.latest = Some(self.now.clone());
        }
        identity.before = self.before.clone();
        identity.closing = None;
        identity.process = self.caller.process.clone().or(identity.process);
        identity.updated_at = self.at;
        identity.revision += 1;
        Ok(Some(identity))
    }

    /// Hands the task over from `source`, one of `identities` where the ledger knows it.
    pub(super) fn taken_over(
        &self,
        identities: &[Identity],
        source: &Identity,
    ) -> Result<TakenOver, Refusal> {
        let mut left = source.clone();
        if !self.compatible {
            left.status = status::apply(left.status, Event::FoundStale)?;
        }
        let others = identities.iter().filter(|other| {
            !other.status.is_closed()
                && other.session != source.session
                && &other.session != self.target
        });
        let others = others.map(|other| self.closed(other.clone()));
        let before = identities
            .iter()
            .find(|known| &known.session == self.target);
        let base = if self.compatible {
            source
                .base
                .clone()
                .or_else(|| Some(self.now.clone().imported()))
        } else {
            Some(self.now.clone())
        };
        Ok(TakenOver {
            others: others.collect::<Result<_, _>>()?,
            source: self.closed(left)?,
            identity: Identity {
                task_id: source.task_id.clone(),
                session: self.target.clone(),
                place: self.place.clone(),
                status: Status::VerificationRequired,
                base,
                before: self.before.clone(),
                latest: Some(self.now.clone()),
                process: self.caller.process.clone(),
                closing: None,
                open_effects: Vec::new(),
                inherited_effects: source.unknown_effects(),
                resumed_from: Some(source.session.clone()),
                resumed_to: None,
                closed_by: None,
                created_at: before.map_or(self.at, |known| known.created_at),
                updated_at: self.at,
                revision: before.map_or(1, |known| known.revision + 1),
            },
        })
    }

    fn closed(&self, mut identity: Identity) -> Result<Identity, Refusal> {
        identity.status = status::apply(identity.status, Event::TakenUp)?;
        identity.resumed_to = Some(self.target.clone());
        identity.updated_at = self.at;
        identity.revision += 1;
        Ok(identity)
    }
}

#[cfg(test)]
mod tests;
