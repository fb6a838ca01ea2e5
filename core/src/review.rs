//! A question to a person, and the decision, which is recorded before it is applied.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{Fingerprint, ReviewId, SessionRef, TaskId};
use crate::time::Time;

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// Its id.
    pub review_id: ReviewId,
    /// The task it stands in the way of.
    pub task_id: TaskId,
    /// The session that asked.
    pub session: SessionRef,
    /// Why: one of the codes of OpenCode++, such as `BOUNDARY_EXPANSION_REQUIRED`, or a free one.
    pub reason_code: String,
    /// One line.
    pub title: String,
    /// The question in full.
    pub explanation: String,
    /// What the person has to do.
    pub required_action: String,
    /// When work goes on.
    pub resume_condition: String,
    /// Commands that may help; never run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggested_commands: Vec<String>,
    /// Files it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub affected_files: Vec<String>,
    /// The boundary at that moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub current_boundary: Vec<String>,
    /// The globs asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requested_boundary: Vec<String>,
    /// The content the question was asked on.
    pub fingerprint: Option<Fingerprint>,
    /// When it was asked.
    pub created_at: Time,
    /// Where it stands.
    pub state: ReviewState,
}

impl Review {
    /// Tells whether it still stands in the way of its task: undecided, or decided and not applied.
    pub const fn is_open(&self) -> bool {
        !matches!(self.state, ReviewState::Applied { .. })
    }
}

/// Where a review stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum ReviewState {
    /// Nobody has decided.
    Pending,
    /// Decided, not yet applied.
    Decided {
        /// The decision.
        decision: Decision,
    },
    /// Decided and applied.
    Applied {
        /// The decision.
        decision: Decision,
        /// When it was applied.
        at: Time,
    },
}

/// A person's decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Yes or no.
    pub approved: bool,
    /// By whom: the login name, or what the client said.
    pub by: String,
    /// From which session.
    pub session: SessionRef,
    /// When.
    pub at: Time,
    /// The person's remark, masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// The content the decision was given for.
    pub fingerprint: Option<Fingerprint>,
}
