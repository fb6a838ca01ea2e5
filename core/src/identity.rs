//! The records of a task and of the sessions that hold it (the task identity of OpenCode++).
use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boundary::Boundary;
use crate::fingerprint::{Deviation, Provenance, ProvenanceEvent, Reach, TreeRecord};
use crate::ids::{Fingerprint, Oid, RepositoryId, ReviewId, SessionRef, TaskId, WorktreeId};
use crate::paths::bytes_of_text;
use crate::plan::Plan;
use crate::process::ProcessIdentity;
use crate::review::Review;
use crate::status::Status;
use crate::time::Time;

/// A piece of work. What belongs to the work and not to one session of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its slug.
    pub task_id: TaskId,
    /// Its title, as it was given.
    pub title: String,
    /// What it may edit.
    #[serde(default)]
    pub boundary: Boundary,
    /// What has to be proved.
    #[serde(default)]
    pub plan: Plan,
    /// When it was started.
    pub created_at: Time,
}

/// A remark on a task, kept in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// When it was made.
    pub at: Time,
    /// By whom.
    pub by: SessionRef,
    /// The text, masked.
    pub text: String,
}

/// Where a session works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaceRecord {
    /// The repository's token.
    pub repository_id: RepositoryId,
    /// The work tree's token.
    pub worktree_id: WorktreeId,
    /// The real path of the work tree. Bytes that are not UTF-8 are written as in [`crate::fingerprint::Deviation`].
    pub root: String,
    /// The device the folder is on.
    pub device: u64,
    /// The folder's inode.
    pub inode: u64,
}

/// A recorded look with where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// What was seen.
    pub tree: TreeRecord,
    /// Which event, when.
    pub provenance: Provenance,
}

impl Recorded {
    /// Says that this content is what an agent's own store tells of: it was compared with that, and is equal.
    #[must_use]
    pub const fn imported(mut self) -> Self {
        self.provenance.event = ProvenanceEvent::Import;
        self
    }

    /// Returns the fingerprint, if the look was complete.
    pub const fn fingerprint(&self) -> Option<&Fingerprint> {
        self.tree.fingerprint.as_ref()
    }
}

/// What sessions before changed outside the task's boundary, where the task was taken up on other content than they left, or
/// what it began with is not recorded. That content is the base from then on, and does not tell of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Before {
    /// The paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathBefore>,
    /// Why there may be more, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// The question that was put to a person about what is not known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<ReviewId>,
}

/// One path that sessions before changed outside the task's boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathBefore {
    /// The path, as [`Deviation::path`].
    pub path: String,
    /// What was there when the task began; absent where that is what HEAD of the base has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<Deviation>,
    /// The commit that has it as it was, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Oid>,
    /// Nothing tells whether the task changed it, or somebody else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
}

impl Before {
    /// Tells whether nothing is known and nothing in doubt.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns what is known of a path.
    pub fn path(&self, path: &str) -> Option<&PathBefore> {
        self.paths.iter().find(|known| known.path == path)
    }

    /// Returns a base with these paths as they were when the task began.
    #[must_use]
    pub fn laid_over(&self, base: &TreeRecord) -> TreeRecord {
        let mut begun = base.clone();
        // Of what comes after the end of a list that was cut nothing is known, and nothing is put there.
        let reach = Reach::of(base);
        let known = |path: &&PathBefore| {
            reach.covers(&path.path) || base.deviations.iter().any(|found| found.path == path.path)
        };
        let known: Vec<&PathBefore> = self.paths.iter().filter(known).collect();
        begun
            .deviations
            .retain(|found| !known.iter().any(|path| path.path == found.path));
        begun
            .deviations
            .extend(known.iter().filter_map(|path| path.was.clone()));
        begun
            .deviations
            .sort_by_cached_key(|found| bytes_of_text(&found.path));
        begun
    }

    /// Takes a person's yes to the question about what is not known: it is not held against the task. Returns whether it was
    /// this question.
    pub fn settle(&mut self, review: &Review) -> bool {
        if self.asked.as_ref() != Some(&review.review_id) {
            return false;
        }
        let told = |path: &PathBefore| review.affected_files.contains(&path.path);
        self.paths.retain(|path| !path.doubtful || !told(path));
        self.unknown = None;
        self.asked = None;
        true
    }
}

/// How a session ended, where it said so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Closing {
    /// When.
    pub at: Time,
    /// The agent's own word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who said so, where that was not the session itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<SessionRef>,
}

/// A call that had started and not finished: it may or may not have happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenEffect {
    /// The tool's name.
    pub tool: String,
    /// Its argument, masked and cut.
    pub argument: String,
    /// When it started, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

impl fmt::Display for OpenEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.tool, self.argument)
    }
}

impl Identity {
    /// Returns the calls that may or may not have happened: what sessions before left open, and this one's own.
    pub fn unknown_effects(&self) -> Vec<OpenEffect> {
        let mut effects: Vec<OpenEffect> = Vec::new();
        for effect in self.inherited_effects.iter().chain(&self.open_effects) {
            if !effects.contains(effect) {
                effects.push(effect.clone());
            }
        }
        effects
    }
}

/// What hooks of an agent recorded of one of its sessions, whether or not it holds a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRecord {
    /// Which.
    pub session: SessionRef,
    /// Where it works.
    pub place: PlaceRecord,
    /// What was there at its last record.
    pub latest: Option<Recorded>,
    /// The process that stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessIdentity>,
    /// How it ended, where it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<Closing>,
    /// Calls that had started and not finished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_effects: Vec<OpenEffect>,
    /// When its last turn or call began, where its hooks said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted_at: Option<Time>,
    /// Whether that was told after `latest` was: a clock may have gone back in between. Where it is not known, the times decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted_after: Option<bool>,
    /// When it was last told which of its tasks others took up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Time>,
    /// The session that it goes by for takeup: the one that the command which started the agent took a task up for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_as: Option<SessionRef>,
    /// Its first prompt, masked and cut, with its lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What it left in other work trees before it went on in this one, the last one last, at most
    /// [`SessionRecord::LEFT`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// When it was first heard of.
    pub created_at: Time,
    /// The last record.
    pub updated_at: Time,
}

/// What a session left in a work tree before it went on in another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Left {
    /// Where.
    pub place: PlaceRecord,
    /// What was there at the last record.
    pub latest: Option<Recorded>,
    /// When its last turn or call there began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted_at: Option<Time>,
    /// Whether that was told after `latest` was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted_after: Option<bool>,
    /// The last record there.
    pub updated_at: Time,
}

impl Left {
    /// Tells whether anything may be left: changes that are in no commit, or a turn after the last look.
    fn is_something(&self) -> bool {
        let is_clean = |tree: &TreeRecord| {
            tree.deviations.is_empty() && tree.deviations_left_out == 0 && tree.incomplete.is_none()
        };
        let latest = self.latest.as_ref();
        latest.is_some_and(|latest| !is_clean(&latest.tree))
            || acted_since(self.acted_at, self.acted_after, latest).is_some()
    }
}

/// Returns when a turn or a call began, where that was after the last record.
fn acted_since(
    acted_at: Option<Time>,
    acted_after: Option<bool>,
    latest: Option<&Recorded>,
) -> Option<Time> {
    let recorded = latest.map(|latest| latest.provenance.at);
    acted_at.filter(|at| acted_after.unwrap_or_else(|| Some(*at) > recorded))
}

impl SessionRecord {
    /// How many work trees are remembered besides the one that the session works in.
    pub const LEFT: usize = 8;

    /// Goes on in a place. What was recorded in another work tree says nothing of this one, and stays with that.
    pub fn go_on_in(&mut self, place: PlaceRecord) {
        let before = std::mem::replace(&mut self.place, place);
        if before.worktree_id == self.place.worktree_id {
            return;
        }
        let there = Left {
            place: before,
            latest: self.latest.take(),
            acted_at: self.acted_at.take(),
            acted_after: self.acted_after.take(),
            updated_at: self.updated_at,
        };
        if let Some(at) = self
            .left
            .iter()
            .position(|left| left.place.worktree_id == self.place.worktree_id)
        {
            let back = self.left.remove(at);
            (self.latest, self.acted_at) = (back.latest, back.acted_at);
            self.acted_after = back.acted_after;
        }
        if there.is_something() {
            self.left.push(there);
            let beyond = self.left.len().saturating_sub(Self::LEFT);
            self.left.drain(..beyond);
        }
    }

    /// Returns the record as it is for a work tree: what was left in it, where the session went on in another. `None` where
    /// nothing is known of it there. Calls without an answer are told where the session is.
    pub fn seen_in(&self, is_there: impl Fn(&PlaceRecord) -> bool) -> Option<Cow<'_, Self>> {
        if is_there(&self.place) {
            return Some(Cow::Borrowed(self));
        }
        let left = self.left.iter().find(|left| is_there(&left.place))?;
        Some(Cow::Owned(Self {
            place: left.place.clone(),
            latest: left.latest.clone(),
            acted_at: left.acted_at,
            acted_after: left.acted_after,
            updated_at: left.updated_at,
            open_effects: Vec::new(),
            left: Vec::new(),
            ..self.clone()
        }))
    }

    /// Tells of a turn that began and of which no end was ever recorded: when its last sign was, the beginning of the turn or
    /// of a call in it. `None` where the session said that it ended.
    pub fn open_turn(&self) -> Option<Time> {
        acted_since(self.acted_at, self.acted_after, self.latest.as_ref())
            .filter(|_| self.closing.is_none())
    }

    /// Records that a turn or a call began.
    pub const fn note_act(&mut self, at: Time) {
        self.acted_at = Some(at);
        self.acted_after = Some(true);
    }

    /// Records what was there.
    pub fn note_look(&mut self, recorded: Recorded) {
        self.latest = Some(recorded);
        self.acted_after = Some(false);
    }

    /// Lists every place it worked in.
    pub fn places(&self) -> impl Iterator<Item = &PlaceRecord> {
        std::iter::once(&self.place).chain(self.left.iter().map(|left| &left.place))
    }

    /// Ties it to other places: `to` is asked for each.
    #[must_use]
    pub fn tied(mut self, to: impl Fn(&PlaceRecord) -> PlaceRecord) -> Self {
        self.place = to(&self.place);
        for left in &mut self.left {
            left.place = to(&left.place);
        }
        self
    }
}

/// The record of one task in one session. A task is a chain of these, linked by `resumed_to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// The task.
    pub task_id: TaskId,
    /// The session that holds or held it.
    pub session: SessionRef,
    /// Where.
    pub place: PlaceRecord,
    /// The status.
    pub status: Status,
    /// What was there when the session began with the task.
    pub base: Option<Recorded>,
    /// What sessions before changed outside the task's boundary and `base` does not tell of.
    #[serde(default, skip_serializing_if = "Before::is_empty")]
    pub before: Before,
    /// What was there at the last record.
    pub latest: Option<Recorded>,
    /// The process that stands for the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessIdentity>,
    /// How the session ended, where it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<Closing>,
    /// Calls that may or may not have happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_effects: Vec<OpenEffect>,
    /// Calls that sessions before this one left open, until somebody says that they were looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherited_effects: Vec<OpenEffect>,
    /// The session it was taken up from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<SessionRef>,
    /// The session that took it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_to: Option<SessionRef>,
    /// Who closed it, where that was not the session itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_by: Option<SessionRef>,
    /// When the session began with the task.
    pub created_at: Time,
    /// The last transition.
    pub updated_at: Time,
    /// 1 at first, one more at every transition.
    pub revision: u64,
}
