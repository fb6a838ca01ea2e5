//! The state machine of an identity: one table, one function over it.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a task stands in one session (the `status` of an OpenCode++ task identity).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Started, nothing changed yet.
    Active,
    /// The session changed the tree, or a person approved an expansion.
    Dirty,
    /// Taken up, or changed since the last evaluation: the present content has to be evaluated.
    VerificationRequired,
    /// Waits for a person.
    HumanReview,
    /// Was left on other content.
    StaleTask,
    /// Done, proved on the content at that moment.
    Completed,
    /// Given up, or taken up by another session.
    Abandoned,
}

impl Status {
    /// Every status, in the order of a task's life.
    pub const ALL: [Self; 7] = [
        Self::Active,
        Self::Dirty,
        Self::VerificationRequired,
        Self::HumanReview,
        Self::StaleTask,
        Self::Completed,
        Self::Abandoned,
    ];

    /// Returns the name as it stands in records and JSON.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Dirty => "dirty",
            Self::VerificationRequired => "verification-required",
            Self::HumanReview => "human-review",
            Self::StaleTask => "stale-task",
            Self::Completed => "completed",
            Self::Abandoned => "abandoned",
        }
    }

    /// Tells whether nothing can happen to the identity any more.
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Completed | Self::Abandoned)
    }
}

/// What can happen to an identity.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The session saved its content, unchanged since the record before.
    SavedUnchanged,
    /// The session saved changed content.
    SavedChanged,
    /// An evaluation found checks missing, failed or outdated.
    EvaluatedUnproved,
    /// An evaluation found every planned check proved on the present content.
    EvaluatedProved,
    /// A question was put to a person.
    ReviewRequested,
    /// A person approved.
    ReviewApproved,
    /// A person rejected.
    ReviewRejected,
    /// The content was found to differ from what was left, on a confirmed take-up or a writing look.
    FoundStale,
    /// Another session took the task up, confirmed.
    TakenUp,
    /// The same session goes on, confirmed, on content that is not what it left: context and plan are rebuilt.
    Rebuilt,
    /// The task is closed with proof for the present content (or with a plan that is empty on purpose).
    Finished,
    /// A person or session gave it up.
    GivenUp,
}

impl Event {
    /// Every event.
    pub const ALL: [Self; 12] = [
        Self::SavedUnchanged,
        Self::SavedChanged,
        Self::EvaluatedUnproved,
        Self::EvaluatedProved,
        Self::ReviewRequested,
        Self::ReviewApproved,
        Self::ReviewRejected,
        Self::FoundStale,
        Self::TakenUp,
        Self::Rebuilt,
        Self::Finished,
        Self::GivenUp,
    ];

    /// Returns the name as it stands in records and documents.
    pub const fn code(self) -> &'static str {
        match self {
            Self::SavedUnchanged => "saved-unchanged",
            Self::SavedChanged => "saved-changed",
            Self::EvaluatedUnproved => "evaluated-unproved",
            Self::EvaluatedProved => "evaluated-proved",
            Self::ReviewRequested => "review-requested",
            Self::ReviewApproved => "review-approved",
            Self::ReviewRejected => "review-rejected",
            Self::FoundStale => "found-stale",
            Self::TakenUp => "taken-up",
            Self::Rebuilt => "rebuilt",
            Self::Finished => "finished",
            Self::GivenUp => "given-up",
        }
    }
}

/// Why an event cannot happen in a status. The code is stable.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    thiserror::Error,
)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The identity is completed or abandoned.
    #[error("the task is closed in this session")]
    Closed,
    /// A person has to decide first.
    #[error("a person has to decide first")]
    ReviewPending,
    /// There is nothing a person was asked.
    #[error("nothing waits for a person")]
    NoReview,
    /// Stale work has to be taken up (rebuilt) before it goes on.
    #[error("the tree is not as the task was left; take it up first")]
    Stale,
}

impl Refusal {
    /// Returns the stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Closed => "task-closed",
            Self::ReviewPending => "review-pending",
            Self::NoReview => "no-review",
            Self::Stale => "task-stale",
        }
    }
}

/// One row of the table: what an event makes of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The status before.
    pub from: Status,
    /// What happens.
    pub event: Event,
    /// The status after, or why it cannot happen.
    pub to: Result<Status, Refusal>,
}

/// Returns the status after `event`, or the reason why it cannot happen in `status`.
///
/// Every pair has an answer: the match is exhaustive over events, and each arm over statuses.
///
/// ```
/// use takeup_core::status::{apply, Event, Status};
/// assert_eq!(apply(Status::Active, Event::SavedChanged), Ok(Status::Dirty));
/// assert!(apply(Status::Completed, Event::TakenUp).is_err());
/// ```
#[expect(
    clippy::match_same_arms,
    reason = "one arm a rule reads better than one arm a result"
)]
pub const fn apply(status: Status, event: Event) -> Result<Status, Refusal> {
    use Status as S;
    match (status, event) {
        (S::Completed | S::Abandoned, _) => Err(Refusal::Closed),

        // A person's decision lifts the wait; nothing else does, not even a changed tree (`docs/concepts.md`, Verdicts).
        (S::HumanReview, Event::ReviewApproved) => Ok(S::Dirty),
        (S::HumanReview, Event::ReviewRejected | Event::GivenUp) => Ok(S::Abandoned),
        (S::HumanReview, Event::ReviewRequested | Event::SavedUnchanged | Event::SavedChanged) => {
            Ok(S::HumanReview)
        }
        (
            S::HumanReview,
            Event::EvaluatedUnproved
            | Event::EvaluatedProved
            | Event::FoundStale
            | Event::TakenUp
            | Event::Rebuilt
            | Event::Finished,
        ) => Err(Refusal::ReviewPending),
        (_, Event::ReviewApproved | Event::ReviewRejected) => Err(Refusal::NoReview),

        (S::StaleTask, Event::Finished | Event::EvaluatedProved | Event::EvaluatedUnproved) => {
            Err(Refusal::Stale)
        }
        (S::StaleTask, Event::FoundStale) => Ok(S::StaleTask),
        // What the session itself says it leaves is what was left; it is evaluated anew.
        (S::StaleTask, Event::SavedUnchanged | Event::SavedChanged) => Ok(S::VerificationRequired),
        (S::Active | S::Dirty | S::VerificationRequired | S::StaleTask, Event::Rebuilt) => {
            Ok(S::VerificationRequired)
        }

        (S::Active | S::Dirty | S::VerificationRequired | S::StaleTask, Event::ReviewRequested) => {
            Ok(S::HumanReview)
        }
        (
            S::Active | S::Dirty | S::VerificationRequired | S::StaleTask,
            Event::TakenUp | Event::GivenUp,
        ) => Ok(S::Abandoned),
        (S::Active | S::Dirty | S::VerificationRequired, Event::FoundStale) => Ok(S::StaleTask),
        (S::Active | S::Dirty | S::VerificationRequired, Event::Finished) => Ok(S::Completed),
        (
            S::Active | S::Dirty | S::VerificationRequired,
            Event::EvaluatedUnproved | Event::EvaluatedProved,
        ) => Ok(S::VerificationRequired),
        (S::Active, Event::SavedUnchanged) => Ok(S::Active),
        (S::Dirty, Event::SavedUnchanged) => Ok(S::Dirty),
        (S::VerificationRequired, Event::SavedUnchanged) => Ok(S::VerificationRequired),
        (S::Active | S::Dirty | S::VerificationRequired, Event::SavedChanged) => Ok(S::Dirty),
    }
}

/// Returns the whole table, for documents and tests.
pub fn table() -> impl Iterator<Item = Transition> {
    Status::ALL.into_iter().flat_map(|from| {
        Event::ALL.into_iter().map(move |event| Transition {
            from,
            event,
            to: apply(from, event),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_an_answer_and_closed_stays_closed() {
        assert_eq!(table().count(), Status::ALL.len() * Event::ALL.len());
        for row in table() {
            if row.from.is_closed() {
                assert_eq!(row.to, Err(Refusal::Closed));
            }
        }
    }

    #[test]
    fn only_a_decision_or_giving_up_leaves_a_review() {
        for row in table().filter(|row| row.from == Status::HumanReview) {
            let leaves = row.to.is_ok_and(|to| to != Status::HumanReview);
            assert_eq!(
                leaves,
                matches!(
                    row.event,
                    Event::ReviewApproved | Event::ReviewRejected | Event::GivenUp
                ),
                "{row:?}"
            );
        }
    }

    #[test]
    fn completed_is_reached_by_finishing_alone() {
        for row in table() {
            if row.to == Ok(Status::Completed) {
                assert_eq!(row.event, Event::Finished);
            }
        }
    }
}
