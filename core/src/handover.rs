//! The hand-over: a document that lets another agent, or a person, take a task up.
//!
//! Pure: whoever calls gathers the facts into a [`Handover`]; [`Handover::document`] masks secrets, grades every line by how
//! it is known, keeps within a budget of characters, and says what it left out. Text of others stands in fences and code
//! spans that it cannot break out of, without control characters.
//!
//! # Limitations
//!
//! The masks are those of [`crate::redact`]. Claims are found in English text only ([`claims_in`]).
mod claims;
mod markdown;
mod render;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

pub use claims::{Claim, ClaimFacts, ClaimKind, Standing, claims_in};

use crate::agent::PlanItem;
use crate::boundary::Boundary;
use crate::evidence::Outcome;
use crate::identity::{Note, OpenEffect};
use crate::ids::{SessionRef, TaskId};
use crate::redact::Masker;
use crate::review::Review;
use crate::status::Status;
use crate::time::Time;
use crate::verdict::Judgement;

/// The characters of a document where nothing else is said.
pub const BUDGET: usize = 8_000;
/// The least budget: a smaller one is taken for this.
pub const LEAST_BUDGET: usize = 1_500;

/// Everything a hand-over says. Texts are as they are found: masking, cutting and quoting are done here.
#[derive(Clone, Debug)]
pub struct Handover {
    /// The task.
    pub task_id: TaskId,
    /// Its title.
    pub title: String,
    /// When this was gathered.
    pub at: Time,
    /// The work tree.
    pub root: String,
    /// The branch; `None` when HEAD is detached or not known.
    pub branch: Option<String>,
    /// The commit.
    pub head: Option<String>,
    /// Where it was left, where that is not this work tree.
    pub left_in: Option<LeftIn>,
    /// What the task may edit.
    pub boundary: Boundary,
    /// The recorded status.
    pub status: Status,
    /// The verdict here and now; `None` where it could not be judged.
    pub judgement: Option<Judgement>,
    /// What was asked, oldest first.
    pub asked: Vec<Asked>,
    /// What changed since the task was left.
    pub changes: Vec<ChangeLine>,
    /// Why that list is not whole.
    pub changes_incomplete: Option<String>,
    /// Commits since, newest first, one line each.
    pub commits: Vec<String>,
    /// The checks of the plan.
    pub checks: Vec<CheckLine>,
    /// The plan is empty on purpose.
    pub no_checks: bool,
    /// Background tasks of it that are not over, oldest first.
    pub running: Vec<RunningLine>,
    /// What agents run for it by their own means.
    pub running_of_agents: Vec<AgentRunningLine>,
    /// Background tasks of it that ended lately without success.
    pub ended: Vec<EndedLine>,
    /// Records of background tasks that cannot be read and may be of it.
    pub running_unread: Vec<String>,
    /// Reviews that are not applied.
    pub reviews: Vec<Review>,
    /// Calls that may or may not have happened.
    pub effects: Vec<OpenEffect>,
    /// Notes, oldest first.
    pub notes: Vec<Note>,
    /// The session's own plan.
    pub todos: Vec<PlanItem>,
    /// What was claimed, and how it stands.
    pub claims: Vec<Claim>,
    /// The sessions that held the task, oldest first.
    pub sessions: Vec<SessionLine>,
    /// The next step.
    pub next: NextLine,
    /// Where the full transcript is.
    pub transcript: Option<String>,
}

/// The place a task was left in, where it is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftIn {
    /// The work tree.
    pub root: String,
    /// The branch then; `None` when HEAD was detached, or nothing was recorded.
    pub branch: Option<String>,
    /// The commit then.
    pub head: Option<String>,
    /// The present tree was compared with what was left: it is the same one, moved or copied.
    pub is_compared: bool,
}

/// Something a person said to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When, where known.
    pub at: Option<Time>,
    /// To which session.
    pub session: SessionRef,
    /// The words.
    pub text: String,
}

/// A path that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeLine {
    /// The path.
    pub path: String,
    /// What happened, in words: `modified, unstaged, by jcode:fox`.
    pub what: String,
    /// Whether the boundary allows it.
    pub inside_boundary: bool,
}

/// A check of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckLine {
    /// The command.
    pub command: String,
    /// Where it stands, by its stable word: `fresh`, `missing`, `failed`, `outdated`, …
    pub proof: String,
    /// Whether it counts as proof of the present content.
    pub counts: bool,
    /// How the run that decides ended.
    pub outcome: Option<Outcome>,
    /// When it ended.
    pub at: Option<Time>,
    /// We saw the run ourselves; if not, somebody reported it.
    pub observed: bool,
}

/// A background task that is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningLine {
    /// Its name.
    pub name: String,
    /// The command.
    pub command: String,
    /// When it was asked for.
    pub since: Time,
    /// It was seen to run; if not, nobody knows from here.
    pub is_seen: bool,
    /// The command that looks at it.
    pub look: String,
    /// The command that stops it.
    pub stop: String,
}

/// A background task that an agent runs by its own means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRunningLine {
    /// What it is called there.
    pub name: String,
    /// The session that started it.
    pub session: SessionRef,
    /// It is known to run; if not, it may.
    pub runs: bool,
    /// What shows that.
    pub proof: String,
    /// The command that looks at it.
    pub look: String,
}

/// A background task that ended without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedLine {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub how: String,
    /// When, where that was seen.
    pub at: Option<Time>,
    /// The command that looks at it.
    pub look: String,
}

/// A session that held the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLine {
    /// Which.
    pub session: SessionRef,
    /// Its status for this task.
    pub status: Status,
    /// What is known of its life, in words.
    pub liveness: String,
    /// When it last recorded anything.
    pub last_record: Time,
    /// The command that continues it in its own agent.
    pub resume_command: Option<String>,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextLine {
    /// What to do, as a stable word.
    pub action: String,
    /// A command that does it.
    pub command: Option<String>,
}

/// How something is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Looked at when the document was made.
    Observed,
    /// In the ledger, or in an agent's store, since it happened.
    Recorded,
    /// Somebody said so.
    Claimed,
    /// Nobody knows.
    Unknown,
}

impl Grade {
    /// Returns the word for people and JSON.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Recorded => "recorded",
            Self::Claimed => "claimed",
            Self::Unknown => "unknown",
        }
    }
}

/// A hand-over, ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// The task.
    pub task_id: TaskId,
    /// Its title, masked and cut.
    pub title: String,
    /// When it was made.
    pub made_at: Time,
    /// The most characters its Markdown has.
    pub budget: usize,
    /// Its sections, in order. Empty ones are not there.
    pub sections: Vec<Section>,
    /// What was left out, and where it is found.
    pub left_out: Vec<String>,
    /// How many secrets were masked.
    pub masked: usize,
    /// The version of the table of masks, [`crate::redact::TABLE_VERSION`].
    pub mask_table: u32,
}

/// A section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Section {
    /// Its stable name.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// A line, with how it is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// How it is known.
    pub grade: Grade,
    /// What it says, as Markdown. Words of others stand in code spans.
    pub text: String,
    /// A longer text of others, masked and cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
}

impl Handover {
    /// Makes the document within `budget` characters of Markdown.
    pub fn document(&self, budget: usize, masker: &Masker) -> Document {
        render::document(self, budget, masker)
    }
}

impl Document {
    /// Returns the document as Markdown, at most [`Self::budget`] characters.
    pub fn markdown(&self) -> String {
        markdown::of(self)
    }
}
