//! What the ledger holds, and how one change alters it. Pure: no file is touched here.
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::Effect;
use crate::evidence::Evidence;
use crate::identity::{Identity, Note, SessionRecord, Task};
use crate::ids::{AgentId, Oid, ReviewId, SessionId, SessionRef, TaskId};
use crate::observation::Observation;
use crate::review::Review;
use crate::time::Time;

/// Who made a transition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Actor {
    /// The session, or a person.
    pub session: SessionRef,
    /// The process that wrote it.
    pub pid: u32,
}

/// One line of the journal before it has a number: everything it changes happens, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// When.
    pub at: Time,
    /// Who.
    pub actor: Actor,
    /// The operation, by the name of the command: `start`, `save`, `resume`, …
    pub operation: String,
    /// What it changes, whole records.
    pub changes: Vec<Change>,
}

impl Transition {
    /// Tells whether tasks leave the state for the archive.
    pub(super) fn archives(&self) -> bool {
        let mut changes = self.changes.iter();
        changes.any(|change| matches!(change, Change::Archived { .. }))
    }
}

/// One change. Records are put whole, so a line says what is so afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "put",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Change {
    /// A task.
    Task {
        /// The record.
        task: Task,
    },
    /// An identity.
    Identity {
        /// The record.
        identity: Box<Identity>,
    },
    /// A note on a task.
    Note {
        /// The task.
        task_id: TaskId,
        /// The note.
        note: Note,
    },
    /// Evidence for a task.
    Evidence {
        /// The record.
        evidence: Box<Evidence>,
    },
    /// A review.
    Review {
        /// The record.
        review: Box<Review>,
    },
    /// An observation of a work tree.
    Observation {
        /// The record.
        observation: Box<Observation>,
    },
    /// A decision whose effect on another agent's files is not applied yet.
    Decided {
        /// The effect.
        effect: Box<PendingEffect>,
    },
    /// An effect was applied.
    Applied {
        /// Its id.
        effect_id: String,
    },
    /// What a hook of an agent recorded of a session, whether or not it holds a task.
    Session {
        /// The record.
        session: Box<SessionRecord>,
    },
    /// A git hook was installed, removed or ran.
    Hook {
        /// The record; `None` when removed.
        hook: Option<InstalledHook>,
        /// The hook's name.
        name: String,
    },
    /// Finished tasks moved into the archive.
    Archived {
        /// The tasks.
        task_ids: Vec<TaskId>,
    },
}

/// An effect on another agent's files that was decided and not yet applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingEffect {
    /// Its id.
    pub effect_id: String,
    /// The agent whose files it concerns.
    pub agent: AgentId,
    /// The work tree it concerns, as [`crate::identity::PlaceRecord::root`].
    pub root: String,
    /// What has to be shown.
    pub effect: Effect,
}

/// A git hook of ours, as it was installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstalledHook {
    /// The hook's name, such as `post-commit`.
    pub name: String,
    /// The file, or the configuration key, it was put into.
    pub place: String,
    /// SHA-256 of what was put there, in hexadecimal.
    pub sha256: String,
    /// When it was installed.
    pub installed_at: Time,
    /// When it last ran.
    pub last_ran: Option<Time>,
    /// The folder was made for it, and goes with it where it is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made_folder: bool,
    /// The commit HEAD named then, in the work tree the call was made in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Oid>,
}

/// Everything that belongs to one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskEntry {
    /// The task.
    pub task: Task,
    /// Its identities, in the order in which the sessions began with it.
    #[serde(default)]
    pub identities: Vec<Identity>,
    /// Its notes, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Its evidence, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// Its reviews, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<Review>,
    /// The number of the last line that changed anything of it.
    pub seq: u64,
    /// Records of it may be lost in damage, of its plan and its reviews too, until the task is put anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubted: bool,
    /// How many of the first runs do not count: damage was met after them, and a later run may be lost in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub doubted_runs: usize,
}

impl TaskEntry {
    /// Returns the runs that count, oldest first: those that no damage came after.
    pub fn counted(&self) -> &[Evidence] {
        self.evidence.get(self.doubted_runs..).unwrap_or_default()
    }

    /// Returns the identity of a session.
    pub fn identity(&self, session: &SessionRef) -> Option<&Identity> {
        self.identities
            .iter()
            .find(|identity| &identity.session == session)
    }

    /// Returns the first question that stands in the way of the task.
    pub fn open_review(&self) -> Option<&Review> {
        self.reviews.iter().find(|review| review.is_open())
    }

    /// Returns the identity that holds the task now: the last one that is not closed, else the last one.
    pub fn holder(&self) -> Option<&Identity> {
        self.open_holder().or_else(|| self.identities.last())
    }

    /// Returns the identity that holds the task now, where it is not closed.
    pub fn open_holder(&self) -> Option<&Identity> {
        self.identities
            .iter()
            .rev()
            .find(|identity| !identity.status.is_closed())
    }

    /// Tells whether every identity is closed.
    pub fn is_closed(&self) -> bool {
        self.identities
            .iter()
            .all(|identity| identity.status.is_closed())
    }
}

/// An identity of which a later record may have been lost.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Doubt {
    /// The task.
    pub task_id: TaskId,
    /// The session.
    pub session: SessionRef,
}

impl Doubt {
    fn of(identity: &Identity) -> Self {
        Self {
            task_id: identity.task_id.clone(),
            session: identity.session.clone(),
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde wants"
)]
const fn is_none(number: &u64) -> bool {
    *number == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde wants"
)]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The state that the journal adds up to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// The tasks that are not archived.
    #[serde(default)]
    pub tasks: BTreeMap<TaskId, TaskEntry>,
    /// The last observations, oldest first, at most [`State::OBSERVATIONS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observations: Vec<Observation>,
    /// Effects decided and not yet applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingEffect>,
    /// Sessions that hooks spoke of, oldest record first, at most [`State::SESSIONS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionRecord>,
    /// Git hooks of ours, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hooks: BTreeMap<String, InstalledHook>,
    /// Identities of which a later record may have been lost in damage; a record that puts one anew takes it out.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub doubtful: BTreeSet<Doubt>,
    /// How many records that were acknowledged are lost, as far as can be told, until a person has taken note of it
    /// ([`super::Ledger::forget_losses`]).
    #[serde(default, skip_serializing_if = "is_none")]
    pub lost: u64,
    /// Ids of the tasks that were archived last, at most [`State::ARCHIVED`], so that no new task takes their name. For
    /// older ones ask [`super::Ledger::knows`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archived: Vec<TaskId>,
}

impl State {
    /// How many observations are kept.
    pub const OBSERVATIONS: usize = 500;
    /// How many sessions are kept.
    pub const SESSIONS: usize = 300;
    /// How many ids of archived tasks are kept.
    pub const ARCHIVED: usize = 500;
    /// How many runs of checks are kept for one task.
    pub const EVIDENCE: usize = 200;
    /// How many notes are kept for one task.
    pub const NOTES: usize = 1_000;

    /// Returns the identity of a task in a session.
    pub fn identity(&self, task: &TaskId, session: &SessionRef) -> Option<&Identity> {
        self.tasks.get(task)?.identity(session)
    }

    /// Marks every open identity, and its task, as one of which a later record may have been lost: damage was met at this
    /// point.
    pub fn doubt(&mut self) {
        for entry in self.tasks.values_mut().filter(|entry| !entry.is_closed()) {
            let open = entry.identities.iter();
            let open = open.filter(|identity| !identity.status.is_closed());
            self.doubtful.extend(open.map(Doubt::of));
            entry.doubted = true;
            entry.doubted_runs = entry.evidence.len();
        }
    }

    /// Tells whether a later record of an identity may have been lost.
    pub fn is_doubtful(&self, identity: &Identity) -> bool {
        !self.doubtful.is_empty() && self.doubtful.contains(&Doubt::of(identity))
    }

    /// Returns every identity of a session id, whatever its agent.
    pub fn of_session<'a>(&'a self, id: &'a SessionId) -> impl Iterator<Item = &'a Identity> {
        self.tasks
            .values()
            .flat_map(|entry| &entry.identities)
            .filter(move |identity| &identity.session.id == id)
    }

    /// Returns what hooks recorded of a session.
    pub fn session(&self, session: &SessionRef) -> Option<&SessionRecord> {
        self.sessions
            .iter()
            .find(|record| &record.session == session)
    }

    /// Returns a review and its task's entry.
    pub fn review(&self, id: &ReviewId) -> Option<(&TaskEntry, &Review)> {
        self.tasks.values().find_map(|entry| {
            entry
                .reviews
                .iter()
                .find(|review| &review.review_id == id)
                .map(|review| (entry, review))
        })
    }

    /// Applies the line with number `seq`. A change to a task that is not there is left out: it was archived.
    pub fn apply(&mut self, seq: u64, transition: &Transition) {
        for change in &transition.changes {
            self.apply_change(seq, change);
        }
    }

    fn apply_change(&mut self, seq: u64, change: &Change) {
        match change {
            Change::Task { task } => {
                let entry = self
                    .tasks
                    .entry(task.task_id.clone())
                    .or_insert_with(|| TaskEntry {
                        task: task.clone(),
                        identities: Vec::new(),
                        notes: Vec::new(),
                        evidence: Vec::new(),
                        reviews: Vec::new(),
                        seq,
                        doubted: false,
                        doubted_runs: 0,
                    });
                entry.task = task.clone();
                entry.seq = seq;
                entry.doubted = false;
            }
            Change::Identity { identity } => {
                self.doubtful.remove(&Doubt::of(identity));
                if let Some(entry) = self.touch(seq, &identity.task_id) {
                    match entry
                        .identities
                        .iter_mut()
                        .find(|known| known.session == identity.session)
                    {
                        Some(known) => known.clone_from(identity),
                        None => entry.identities.push((**identity).clone()),
                    }
                }
            }
            Change::Note { task_id, note } => {
                if let Some(entry) = self.touch(seq, task_id) {
                    entry.notes.push(note.clone());
                    keep_last(&mut entry.notes, Self::NOTES);
                }
            }
            Change::Evidence { evidence } => {
                if let Some(entry) = self.touch(seq, &evidence.task_id) {
                    entry.evidence.push((**evidence).clone());
                    let gone = entry.evidence.len().saturating_sub(Self::EVIDENCE);
                    keep_last(&mut entry.evidence, Self::EVIDENCE);
                    entry.doubted_runs = entry.doubted_runs.saturating_sub(gone);
                }
            }
            Change::Review { review } => {
                if let Some(entry) = self.touch(seq, &review.task_id) {
                    match entry
                        .reviews
                        .iter_mut()
                        .find(|known| known.review_id == review.review_id)
                    {
                        Some(known) => known.clone_from(review),
                        None => entry.reviews.push((**review).clone()),
                    }
                }
            }
            Change::Observation { observation } => {
                // Put again, it says what was found out since.
                if let Some(known) = self
                    .observations
                    .iter_mut()
                    .rev()
                    .find(|known| known.is_same_moment(observation))
                {
                    known.clone_from(observation);
                    return;
                }
                self.observations.push((**observation).clone());
                keep_last(&mut self.observations, Self::OBSERVATIONS);
            }
            Change::Decided { effect } => self.pending.push((**effect).clone()),
            Change::Applied { effect_id } => {
                self.pending.retain(|effect| &effect.effect_id != effect_id);
            }
            Change::Session { session } => {
                self.sessions
                    .retain(|known| known.session != session.session);
                self.sessions.push((**session).clone());
                keep_last(&mut self.sessions, Self::SESSIONS);
            }
            Change::Hook { hook, name } => match hook {
                Some(hook) => {
                    self.hooks.insert(name.clone(), hook.clone());
                }
                None => {
                    self.hooks.remove(name);
                }
            },
            Change::Archived { task_ids } => {
                for task_id in task_ids {
                    if self.tasks.remove(task_id).is_some() {
                        self.archived.push(task_id.clone());
                    }
                }
                keep_last(&mut self.archived, Self::ARCHIVED);
            }
        }
    }

    fn touch(&mut self, seq: u64, task_id: &TaskId) -> Option<&mut TaskEntry> {
        let entry = self.tasks.get_mut(task_id)?;
        entry.seq = seq;
        Some(entry)
    }
}

fn keep_last<T>(items: &mut Vec<T>, most: usize) {
    let beyond = items.len().saturating_sub(most);
    items.drain(..beyond);
}
