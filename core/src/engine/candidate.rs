//! A candidate: the shapes in which an identity and its verdict are shown.
use schemars::JsonSchema;
use serde::Serialize;

use super::Changes;
use super::prove::CheckView;
use super::views::NextView;
use crate::agent::{ForeignTask, PlanItem};
use crate::fingerprint::ProvenanceEvent;
use crate::identity::{Identity, OpenEffect, Recorded};
use crate::ids::{AgentId, SessionId, SessionRef, TaskId};
use crate::observation::Happening;
use crate::process::Liveness;
use crate::status::Status;
use crate::time::Time;
use crate::verdict::{Judgement, ReasonCode, Verdict, Whereabouts};

/// One identity with its verdict.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// The record, in the words of OpenCode++.
    pub identity: IdentityView,
    /// The agent whose session it is.
    pub agent: AgentId,
    /// The answer.
    pub verdict: Verdict,
    /// Why, the deciding reason first.
    pub reasons: Vec<ReasonView>,
    /// Where the checks of the plan stand for the present content.
    pub evidence: Vec<CheckView>,
    /// The record the present content was compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<RecordView>,
    /// What differs from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// What git's hooks saw in the work tree since, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub since: Vec<Happening>,
    /// Whether the session is alive.
    pub liveness: Liveness,
    /// Calls that may or may not have happened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_effects: Vec<OpenEffect>,
    /// What is open of the session's own plan; of one that has none, what the session has left from which it took the task up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub todos: Vec<PlanItem>,
    /// It is held by the calling session itself.
    pub own: bool,
    /// Confirms exactly what is shown: `resume --confirm TOKEN`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// What to do next.
    pub next: NextView,
    /// The session that took it up.
    #[serde(skip)]
    pub resumed_to: Option<SessionRef>,
    /// How the present place relates to the one it was left in.
    #[serde(skip)]
    pub whereabouts: Whereabouts,
    /// Where it comes from.
    #[serde(skip)]
    pub(super) source: Source,
}

/// Where a candidate comes from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Our own ledger.
    Ledger,
    /// A session in an agent's own store.
    Session,
    /// A task in an agent's own format.
    Foreign(Box<ForeignTask>),
}

/// The record of an identity in the words of OpenCode++.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityView {
    /// The task.
    pub task_id: TaskId,
    /// Its title.
    pub title: String,
    /// The session.
    pub session_id: SessionId,
    /// The root of the work tree it was left in.
    pub repository_root: String,
    /// What was there when the session began with the task.
    pub base_working_tree_fingerprint: Option<String>,
    /// What was there at the last record.
    pub latest_working_tree_fingerprint: Option<String>,
    /// The status.
    pub status: Status,
    /// The last transition.
    pub updated_at: Time,
    /// 1 at first, one more at every transition; 0 for a session that no ledger knows.
    pub revision: u64,
    /// The session that took it up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_to_session_id: Option<SessionId>,
    /// The session it was taken up from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_from_session_id: Option<SessionId>,
}

/// A reason, with the paths it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasonView {
    /// The stable code.
    pub code: ReasonCode,
    /// What it means here.
    pub message: String,
    /// The paths, at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}

/// Where a record comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordView {
    /// The event that made it.
    pub event: ProvenanceEvent,
    /// When.
    pub at: Time,
    /// Who made it, where that was not the session itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How old it is, in seconds.
    pub age_seconds: i64,
    /// HEAD then.
    pub head: Option<String>,
    /// The branch then.
    pub branch: Option<String>,
    /// Taken while git hooks ran.
    pub provisional: bool,
    /// What happened in the session afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl RecordView {
    /// Shows a record of a session at the moment `now`.
    pub(super) fn of(recorded: &Recorded, session: &SessionRef, now: Time) -> Self {
        let by = recorded.provenance.by.as_ref();
        Self {
            by: by.filter(|by| *by != session).map(ToString::to_string),
            event: recorded.provenance.event,
            at: recorded.provenance.at,
            age_seconds: now.since(recorded.provenance.at) / 1000,
            head: recorded.tree.head.as_ref().map(ToString::to_string),
            branch: recorded.tree.branch.clone(),
            provisional: recorded.provenance.provisional,
            after: recorded.provenance.after.clone(),
        }
    }
}

impl IdentityView {
    /// Shows an identity of the ledger.
    pub fn of(identity: &Identity, title: &str) -> Self {
        let print = |recorded: &Option<Recorded>| {
            recorded
                .as_ref()
                .and_then(Recorded::fingerprint)
                .map(|print| print.as_str().to_owned())
        };
        Self {
            task_id: identity.task_id.clone(),
            title: title.to_owned(),
            session_id: identity.session.id.clone(),
            repository_root: identity.place.root.clone(),
            base_working_tree_fingerprint: print(&identity.base),
            latest_working_tree_fingerprint: print(&identity.latest),
            status: identity.status,
            updated_at: identity.updated_at,
            revision: identity.revision,
            resumed_to_session_id: identity.resumed_to.as_ref().map(|to| to.id.clone()),
            resumed_from_session_id: identity.resumed_from.as_ref().map(|from| from.id.clone()),
        }
    }
}

impl Candidate {
    /// Returns the session.
    pub fn session(&self) -> SessionRef {
        SessionRef::new(self.agent.clone(), self.identity.session_id.clone())
    }

    /// Returns the verdict with its reasons.
    pub fn judgement(&self) -> Judgement {
        let reasons = self.reasons.iter().map(|reason| crate::verdict::Reason {
            code: reason.code,
            message: reason.message.clone(),
        });
        Judgement {
            verdict: self.verdict,
            reasons: reasons.collect(),
        }
    }
}
