//! The one answer: may this task be taken up here and now? A pure rule over facts, with reasons.
mod place;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::place::misplaced;
use self::place::place;
pub use self::place::{Sharing, Whereabouts};
use crate::ids::{Oid, ReviewId, SessionRef};
use crate::process::Liveness;
use crate::status::Status;
use crate::time::Time;

/// The answer for one identity, in order of how ready it is (`docs/concepts.md`, Verdicts).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The content is what was left: it may be taken up, and has to be evaluated.
    ResumeVerification,
    /// The content differs, or nothing is known about what was left.
    StaleTask,
    /// A person has to decide first.
    HumanReview,
    /// The session that holds it is alive.
    InUse,
    /// It is completed or abandoned.
    NotResumable,
    /// It belongs to another repository, work tree or place.
    MismatchedRepository,
}

impl Verdict {
    /// Every verdict, in order.
    pub const ALL: [Self; 6] = [
        Self::ResumeVerification,
        Self::StaleTask,
        Self::HumanReview,
        Self::InUse,
        Self::NotResumable,
        Self::MismatchedRepository,
    ];

    /// Returns the name as it stands in JSON and documents.
    pub const fn code(self) -> &'static str {
        match self {
            Self::ResumeVerification => "resume-verification",
            Self::StaleTask => "stale-task",
            Self::HumanReview => "human-review",
            Self::InUse => "in-use",
            Self::NotResumable => "not-resumable",
            Self::MismatchedRepository => "mismatched-repository",
        }
    }
}

/// How the present content relates to what was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Equal, by complete looks on both sides.
    Equal,
    /// Different.
    Differs,
    /// No fingerprint was ever recorded.
    NeverRecorded,
    /// The record of what was left was itself incomplete; it equals nothing.
    RecordIncomplete(String),
    /// The present look was incomplete; it equals nothing.
    LookIncomplete(String),
    /// It belongs elsewhere, so nothing was compared.
    NotCompared,
    /// A foreign fingerprint is equal, but it is known to be blind here (for example: every clean tree has the same one).
    Blind(String),
}

/// How HEAD and the branch moved since the record, where the content is equal.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Movement {
    /// HEAD before and now, if they differ; `None` inside means unborn.
    pub head: Option<(Option<Oid>, Option<Oid>)>,
    /// Branch before and now, if they differ; `None` inside means detached.
    pub branch: Option<(Option<String>, Option<String>)>,
    /// The stash's tip is another one.
    pub stash: bool,
    /// The git operation in progress before and now, by name, if they differ.
    pub operation: Option<(Option<String>, Option<String>)>,
    /// The index's own tree differs.
    pub index: bool,
}

/// A question to a person that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewGate {
    /// Nobody has decided.
    Pending(ReviewId),
    /// Decided, and the decision is not yet applied.
    Decided(ReviewId),
}

/// Everything the rule looks at. Gathered by the engine; no look is taken in here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The recorded status.
    pub status: Status,
    /// Where the task was taken up, if it was.
    pub resumed_to: Option<SessionRef>,
    /// The place.
    pub whereabouts: Whereabouts,
    /// The work tree it was left in, for people; empty where none is known.
    pub root: String,
    /// The content.
    pub content: Content,
    /// What moved beside the content.
    pub movement: Movement,
    /// The review that stands in the way, if any.
    pub review: Option<ReviewGate>,
    /// Whether the session that holds the task is alive.
    pub liveness: Liveness,
    /// Calls that had started and not finished when the session ended.
    pub open_effects: usize,
    /// The last sign of a turn that began and whose end was never recorded.
    pub open_turn: Option<Time>,
}

/// Why the verdict is what it is. Codes are stable, messages are for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// The stable code.
    pub code: ReasonCode,
    /// What it means here.
    pub message: String,
}

macro_rules! reason_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// The stable codes of reasons.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum ReasonCode {
            $($(#[$doc])* $name,)*
        }

        impl ReasonCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the code as it stands in JSON.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }
        }
    };
}

reason_codes! {
    /// It belongs to another repository.
    OtherRepository = "other-repository",
    /// It belongs to another work tree of this repository.
    OtherWorktree = "other-worktree",
    /// The work tree it belongs to is gone.
    WorktreeGone = "worktree-gone",
    /// The repository was moved.
    Relocated = "relocated",
    /// This is a copy of the place.
    Copied = "copied",
    /// The task is completed.
    Completed = "completed",
    /// The task was given up.
    Abandoned = "abandoned",
    /// Another session took it up.
    TakenUp = "taken-up",
    /// A person has not decided yet.
    ReviewPending = "review-pending",
    /// A decision is recorded and not yet applied.
    ReviewNotApplied = "review-not-applied",
    /// The session that holds it is alive.
    SessionLive = "session-live",
    /// Nothing says whether the session is alive.
    LivenessUnknown = "liveness-unknown",
    /// The session ended without saying so.
    SessionCrashed = "session-crashed",
    /// The session ended.
    SessionEnded = "session-ended",
    /// The content is what was left.
    ContentEqual = "content-equal",
    /// The content differs.
    ContentChanged = "content-changed",
    /// No fingerprint was ever recorded.
    NeverRecorded = "never-recorded",
    /// A look could not see everything.
    LookIncomplete = "look-incomplete",
    /// The recorded look could not see everything.
    RecordIncomplete = "record-incomplete",
    /// The only fingerprint there is cannot tell.
    FingerprintBlind = "fingerprint-blind",
    /// It had been marked stale.
    MarkedStale = "marked-stale",
    /// HEAD moved.
    HeadMoved = "head-moved",
    /// The branch is another one.
    BranchChanged = "branch-changed",
    /// The stash changed.
    StashChanged = "stash-changed",
    /// A git operation began or ended.
    OperationChanged = "operation-changed",
    /// The staged content differs.
    IndexChanged = "index-changed",
    /// Calls may or may not have happened.
    EffectUnknown = "effect-unknown",
    /// A turn began, and its end was never recorded.
    TurnOpen = "turn-open",
}

/// A verdict with its reasons: the deciding one first, every further one that holds after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    /// The answer.
    pub verdict: Verdict,
    /// Why, the deciding reason first.
    pub reasons: Vec<Reason>,
}

impl Judgement {
    /// Tells whether a reason with this code holds.
    pub fn has(&self, code: ReasonCode) -> bool {
        self.reasons.iter().any(|reason| reason.code == code)
    }
}

fn reason(code: ReasonCode, message: impl Into<String>) -> Reason {
    Reason {
        code,
        message: message.into(),
    }
}

/// Judges one identity (`docs/concepts.md`, Verdicts): the first rule that holds gives the verdict, every further one is listed.
pub fn judge(facts: &Facts) -> Judgement {
    let mut found: Vec<(Verdict, Reason)> = Vec::new();
    let gates = [
        place(facts.whereabouts, &facts.root),
        closed(facts),
        review(facts),
        live(facts),
    ];
    found.extend(gates.into_iter().flatten());
    found.extend(content(facts));
    let verdict = found
        .first()
        .map_or(Verdict::StaleTask, |(verdict, _)| *verdict);
    let mut reasons: Vec<Reason> = found.into_iter().map(|(_, reason)| reason).collect();
    reasons.extend(side(facts));
    Judgement { verdict, reasons }
}

fn closed(facts: &Facts) -> Option<(Verdict, Reason)> {
    let why = match (facts.status, &facts.resumed_to) {
        (Status::Completed, _) => reason(ReasonCode::Completed, "it is completed"),
        (Status::Abandoned, Some(to)) => {
            reason(ReasonCode::TakenUp, format!("it was taken up by {to}"))
        }
        (Status::Abandoned, None) => reason(ReasonCode::Abandoned, "it was given up"),
        (
            Status::Active
            | Status::Dirty
            | Status::VerificationRequired
            | Status::HumanReview
            | Status::StaleTask,
            _,
        ) => return None,
    };
    Some((Verdict::NotResumable, why))
}

fn review(facts: &Facts) -> Option<(Verdict, Reason)> {
    let why = match &facts.review {
        Some(ReviewGate::Pending(id)) => reason(
            ReasonCode::ReviewPending,
            format!("a person has to decide first: review {id}"),
        ),
        Some(ReviewGate::Decided(id)) => reason(
            ReasonCode::ReviewNotApplied,
            format!("the decision on review {id} is recorded and not yet applied"),
        ),
        None if facts.status == Status::HumanReview => {
            reason(ReasonCode::ReviewPending, "a person has to decide first")
        }
        None => return None,
    };
    Some((Verdict::HumanReview, why))
}

fn live(facts: &Facts) -> Option<(Verdict, Reason)> {
    match &facts.liveness {
        Liveness::Live { proof } => Some((
            Verdict::InUse,
            reason(
                ReasonCode::SessionLive,
                format!("the session is still open: {proof}"),
            ),
        )),
        Liveness::Ended { .. } | Liveness::Crashed { .. } | Liveness::Unknown { .. } => None,
    }
}

fn content(facts: &Facts) -> Option<(Verdict, Reason)> {
    let answer = match &facts.content {
        Content::NotCompared => return None,
        Content::Equal => (
            Verdict::ResumeVerification,
            reason(ReasonCode::ContentEqual, "the content is what was left"),
        ),
        Content::Differs => (
            Verdict::StaleTask,
            reason(
                ReasonCode::ContentChanged,
                "the content is not what was left",
            ),
        ),
        Content::NeverRecorded => (
            Verdict::StaleTask,
            reason(
                ReasonCode::NeverRecorded,
                "no fingerprint was ever recorded, so nothing says what was left",
            ),
        ),
        Content::RecordIncomplete(why) => (
            Verdict::StaleTask,
            reason(
                ReasonCode::RecordIncomplete,
                format!("the recorded look could not see everything: {why}"),
            ),
        ),
        Content::LookIncomplete(why) => (
            Verdict::StaleTask,
            reason(
                ReasonCode::LookIncomplete,
                format!("the present look could not see everything: {why}"),
            ),
        ),
        Content::Blind(why) => (
            Verdict::StaleTask,
            reason(ReasonCode::FingerprintBlind, why.clone()),
        ),
    };
    Some(answer)
}

/// What does not decide, and is worth knowing.
fn side(facts: &Facts) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if facts.status == Status::StaleTask && facts.content == Content::Equal {
        reasons.push(reason(
            ReasonCode::MarkedStale,
            "it had been marked stale; the content is back",
        ));
    }
    match &facts.liveness {
        Liveness::Live { .. } => {}
        Liveness::Ended { proof } => reasons.push(reason(
            ReasonCode::SessionEnded,
            format!("the session ended: {proof}"),
        )),
        Liveness::Crashed { proof } => {
            reasons.push(reason(
                ReasonCode::SessionCrashed,
                format!("the session crashed: {proof}"),
            ));
        }
        Liveness::Unknown { why } => reasons.push(reason(
            ReasonCode::LivenessUnknown,
            format!("whether the session is still open is not known: {why}"),
        )),
    }
    let movement = &facts.movement;
    if let Some((before, now)) = &movement.head {
        let name = |oid: &Option<Oid>| {
            oid.as_ref().map_or_else(
                || "no commit".to_owned(),
                |oid| oid.as_str().chars().take(10).collect(),
            )
        };
        reasons.push(reason(
            ReasonCode::HeadMoved,
            format!("HEAD moved from {} to {}", name(before), name(now)),
        ));
    }
    if let Some((before, now)) = &movement.branch {
        let name = |branch: &Option<String>| {
            branch
                .clone()
                .unwrap_or_else(|| "a detached HEAD".to_owned())
        };
        reasons.push(reason(
            ReasonCode::BranchChanged,
            format!("the branch was {} and is {}", name(before), name(now)),
        ));
    }
    if let Some((before, now)) = &movement.operation {
        let name =
            |operation: &Option<String>| operation.clone().unwrap_or_else(|| "none".to_owned());
        reasons.push(reason(
            ReasonCode::OperationChanged,
            format!(
                "the git operation in progress was {} and is {}",
                name(before),
                name(now)
            ),
        ));
    }
    if movement.index {
        reasons.push(reason(
            ReasonCode::IndexChanged,
            "other content is staged than was",
        ));
    }
    if movement.stash {
        reasons.push(reason(
            ReasonCode::StashChanged,
            "the stash changed; it is shared by all work trees",
        ));
    }
    // A call of a session that lives is going on.
    if facts.open_effects > 0 && !matches!(facts.liveness, Liveness::Live { .. }) {
        reasons.push(reason(
            ReasonCode::EffectUnknown,
            format!(
                "{} may or may not have happened; look before repeating",
                crate::text::count(facts.open_effects, "unfinished call", "unfinished calls")
            ),
        ));
    }
    if let Some(at) = facts.open_turn
        && !matches!(
            facts.liveness,
            Liveness::Live { .. } | Liveness::Ended { .. }
        )
    {
        reasons.push(reason(
            ReasonCode::TurnOpen,
            format!("a turn was going on, and its end was never recorded (the last sign of it: {at}); what it did may be half done"),
        ));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{AgentId, SessionId};

    fn facts() -> Facts {
        Facts {
            status: Status::Dirty,
            resumed_to: None,
            whereabouts: Whereabouts::Same,
            root: "/r".to_owned(),
            content: Content::Equal,
            movement: Movement::default(),
            review: None,
            liveness: Liveness::Ended {
                proof: "it said so".to_owned(),
            },
            open_effects: 0,
            open_turn: None,
        }
    }

    #[test]
    fn the_rules_hold_in_their_order() {
        let mut facts = facts();
        assert_eq!(judge(&facts).verdict, Verdict::ResumeVerification);
        facts.content = Content::Differs;
        assert_eq!(judge(&facts).verdict, Verdict::StaleTask);
        facts.liveness = Liveness::Live {
            proof: "pid 7".to_owned(),
        };
        assert_eq!(judge(&facts).verdict, Verdict::InUse);
        facts.review = Some(ReviewGate::Pending(ReviewId::new("r1").unwrap()));
        assert_eq!(judge(&facts).verdict, Verdict::HumanReview);
        facts.status = Status::Completed;
        assert_eq!(judge(&facts).verdict, Verdict::NotResumable);
        facts.whereabouts = Whereabouts::OtherRepository;
        let judgement = judge(&facts);
        assert_eq!(judgement.verdict, Verdict::MismatchedRepository);
        for code in [
            ReasonCode::OtherRepository,
            ReasonCode::Completed,
            ReasonCode::ReviewPending,
            ReasonCode::SessionLive,
            ReasonCode::ContentChanged,
        ] {
            assert!(judgement.has(code), "{code:?} holds and is not listed");
        }
    }

    #[test]
    fn only_equal_content_in_the_same_place_with_nobody_in_the_way_may_be_taken_up() {
        let contents = [
            Content::Equal,
            Content::Differs,
            Content::NeverRecorded,
            Content::RecordIncomplete(String::new()),
            Content::LookIncomplete(String::new()),
            Content::Blind(String::new()),
            Content::NotCompared,
        ];
        let places = [
            Whereabouts::Same,
            Whereabouts::Relocated,
            Whereabouts::Copied,
            Whereabouts::CopyOfGone,
            Whereabouts::Shared(Sharing::Link),
            Whereabouts::Shared(Sharing::Setting),
            Whereabouts::Shared(Sharing::Environment),
            Whereabouts::Shared(Sharing::Named),
            Whereabouts::OtherWorktree,
            Whereabouts::WorktreeAway,
            Whereabouts::WorktreeUnlinked,
            Whereabouts::WorktreeGone,
            Whereabouts::OtherRepository,
        ];
        let reviews = [
            None,
            Some(ReviewGate::Pending(ReviewId::new("r").unwrap())),
            Some(ReviewGate::Decided(ReviewId::new("r").unwrap())),
        ];
        let lives = [
            Liveness::Live {
                proof: String::new(),
            },
            Liveness::Ended {
                proof: String::new(),
            },
            Liveness::Crashed {
                proof: String::new(),
            },
            Liveness::Unknown { why: String::new() },
        ];
        for status in Status::ALL {
            for content in &contents {
                for whereabouts in places {
                    for review in &reviews {
                        for liveness in &lives {
                            let facts = Facts {
                                status,
                                content: content.clone(),
                                whereabouts,
                                review: review.clone(),
                                liveness: liveness.clone(),
                                ..facts()
                            };
                            let yes = judge(&facts).verdict == Verdict::ResumeVerification;
                            let may = !status.is_closed()
                                && status != Status::HumanReview
                                && *content == Content::Equal
                                && whereabouts == Whereabouts::Same
                                && review.is_none()
                                && !matches!(liveness, Liveness::Live { .. });
                            assert_eq!(yes, may, "{facts:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn an_abandoned_task_names_who_took_it() {
        let to = SessionRef::new(
            AgentId::new("codex").unwrap(),
            SessionId::new("s2").unwrap(),
        );
        let facts = Facts {
            status: Status::Abandoned,
            resumed_to: Some(to),
            ..facts()
        };
        let judgement = judge(&facts);
        assert_eq!(judgement.verdict, Verdict::NotResumable);
        assert!(judgement.reasons[0].message.contains("codex:s2"));
    }

    #[test]
    fn codes_are_what_json_says() {
        for code in ReasonCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.code());
        }
        for verdict in Verdict::ALL {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.code());
        }
        for status in Status::ALL {
            assert_eq!(serde_json::to_value(status).unwrap(), status.code());
        }
    }
}
