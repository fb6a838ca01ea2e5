//! The arguments of the tools. The comments are what a model reads.
use schemars::JsonSchema;
use serde::Deserialize;

/// Arguments of `takeup_inspect`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Inspect {
    /// Only this task
    pub task: Option<String>,
    /// Only what this session left
    pub from: Option<String>,
}

/// Arguments of tools that need a task at most.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    /// The task; your own where none is named
    pub task: Option<String>,
}

/// Arguments of `takeup_next`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Next {
    /// The task; your own where none is named
    pub task: Option<String>,
    /// Say first that you looked at the calls that may or may not have happened
    #[serde(default)]
    pub looked: bool,
}

/// Arguments of `takeup_start`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    /// What the work is, in one line
    pub title: String,
    /// Path patterns the task may edit; without any, every path
    #[serde(default)]
    pub allow: Vec<String>,
    /// Path patterns it must avoid
    #[serde(default)]
    pub avoid: Vec<String>,
    /// Commands that have to pass before the task is finished; none is run now
    #[serde(default)]
    pub checks: Vec<String>,
}

/// Arguments of `takeup_save`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Save {
    /// Only this task; every open one of your session where none is named
    pub task: Option<String>,
    /// The session ends here in good order
    #[serde(default)]
    pub end: bool,
    /// Why it ends
    pub reason: Option<String>,
}

/// Arguments of `takeup_note`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Note {
    /// What the next one has to know
    pub text: String,
    /// The task; your own where none is named
    pub task: Option<String>,
}

/// Arguments of `takeup_resume`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Resume {
    /// The task
    pub task: Option<String>,
    /// The session that left it
    pub from: Option<String>,
}

/// What to do with a plan.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum PlanAction {
    /// Show it, and what the repository suggests.
    #[default]
    Show,
    /// Add a check.
    Add,
    /// Take a check out.
    Remove,
}

/// Arguments of `takeup_check_plan`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckPlan {
    /// show, add or remove
    #[serde(default)]
    pub action: PlanAction,
    /// The command to add or take out, as one shell line; it is not run
    pub command: Option<String>,
    /// With add: a command that has to fail for the check to count
    pub must_fail: Option<String>,
    /// The task; your own where none is named
    pub task: Option<String>,
}

/// What to do with reviews.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReviewAction {
    /// List the questions that wait.
    #[default]
    List,
    /// Put a question.
    Request,
    /// A person says yes.
    Approve,
    /// A person says no.
    Reject,
}

/// Arguments of `takeup_review`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_field_names,
    reason = "the field is the argument's name"
)]
pub(super) struct Review {
    /// list, request, approve or reject; the last two are decided by the person, who is asked
    #[serde(default)]
    pub action: ReviewAction,
    /// With approve and reject: the review
    pub review: Option<String>,
    /// With request: the question in full
    pub question: Option<String>,
    /// With request: a reason code such as EXTERNAL_SIDE_EFFECT or BOUNDARY_EXPANSION_REQUIRED
    pub reason: Option<String>,
    /// With request: what the person has to do
    pub todo: Option<String>,
    /// With request: files it is about
    #[serde(default)]
    pub files: Vec<String>,
    /// With request: path patterns the task wants to edit
    #[serde(default)]
    pub allow: Vec<String>,
    /// With request: the task; your own where none is named
    pub task: Option<String>,
    /// With approve and reject: the person's remark
    pub remark: Option<String>,
}

/// Arguments of `takeup_sessions`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Sessions {
    /// Only sessions of this agent
    pub agent: Option<String>,
    /// Only sessions that were left in the middle
    #[serde(default)]
    pub unfinished: bool,
    /// Sessions of every folder, not only of this work tree
    #[serde(default)]
    pub all: bool,
}

/// Arguments of `takeup_bg_run`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BgRun {
    /// The program and its arguments, a word each; no shell reads them
    pub command: Vec<String>,
    /// A name for it
    pub name: Option<String>,
    /// The task it belongs to
    pub task: Option<String>,
    /// Stop it after this time, such as 90s or 10m
    pub timeout: Option<String>,
    /// Wait until it is ready: a text of its output, or port:8080
    pub ready: Option<String>,
}

/// Arguments of `takeup_bg_list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BgList {
    /// Only what is not over
    #[serde(default)]
    pub running: bool,
}

/// Arguments of tools for one background task.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Bg {
    /// The background task: its id, its name, or the beginning of either
    pub id: String,
}

/// Arguments of `takeup_bg_output`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BgOutput {
    /// The background task: its id, its name, or the beginning of either
    pub id: String,
    /// How many lines from the end, 40 where nothing is said
    pub lines: Option<u32>,
}

/// Arguments of `takeup_bg_wait`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BgWait {
    /// The background tasks; all that run where none is named
    #[serde(default)]
    pub ids: Vec<String>,
    /// Until one of them is over, not all
    #[serde(default)]
    pub any: bool,
    /// How many seconds to wait at most, 25 where nothing is said
    pub seconds: Option<u32>,
}

/// Arguments of `takeup_status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Status {}

/// Arguments of `takeup_diff`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Diff {
    /// The task; your own where none is named
    pub task: Option<String>,
    /// Since this session left it
    pub from: Option<String>,
    /// With the text of the changes, where what was left is still known to git
    #[serde(default)]
    pub patch: bool,
}
