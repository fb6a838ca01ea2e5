//! What an adapter can do. Every capability is optional; the default says honestly "not supported".
mod background;
mod masked;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use background::AgentTask;
pub use masked::Masked;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::env::Env;
use crate::error::{Exit, Explain};
use crate::identity::OpenEffect;
use crate::ids::{AgentId, Fingerprint, ReviewId, SessionId, SessionRef, TaskId};
use crate::integration::{EditPlan, IntegrationState, Scope};
use crate::issue::Issue;
use crate::process::{Liveness, LivenessKind, ProcessIdentity};
use crate::repository::{Place, is_there};
use crate::review::Review;
use crate::status::Status;
use crate::time::Time;
use crate::verdict::Content;

/// An adapter could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The adapter does not have this capability.
    #[error("{agent} cannot {what}")]
    Unsupported {
        /// The agent's name.
        agent: &'static str,
        /// What was asked, as a verb phrase.
        what: &'static str,
    },
    /// The agent is not installed.
    #[error("{agent} is not installed: {why}")]
    NotInstalled {
        /// The agent's name.
        agent: &'static str,
        /// What was looked for.
        why: String,
    },
    /// No session of that name.
    #[error("{agent} has no session {id:?}")]
    NoSession {
        /// The agent's name.
        agent: &'static str,
        /// What was asked for.
        id: String,
    },
    /// A live owner holds the thing.
    #[error("{agent} is using it: {proof}")]
    InUse {
        /// The agent's name.
        agent: &'static str,
        /// What shows it.
        proof: String,
    },
    /// Somebody else changed the agent's files in the meantime, and what was asked for no longer fits.
    #[error("{agent}: {what}")]
    Conflict {
        /// The agent's name.
        agent: &'static str,
        /// What contradicts what.
        what: String,
    },
    /// The agent's files are not as expected.
    #[error("{}: {}", .0.path.display(), .0.message)]
    Damaged(Issue),
    /// The hook's payload is not as expected.
    #[error("the payload of {event} is not understood: {why}")]
    Payload {
        /// The event.
        event: String,
        /// What is wrong.
        why: String,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    File(#[from] crate::files::FileError),
    /// Another failure.
    #[error("{0}")]
    Other(String),
}

impl AgentError {
    /// The failure of an agent that no hand-over can be given to.
    pub const fn cannot_receive(agent: &'static str) -> Self {
        Self::Unsupported {
            agent,
            what: "receive a hand-over",
        }
    }
}

impl Explain for AgentError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "agent-unsupported",
            Self::NotInstalled { .. } => "agent-not-installed",
            Self::NoSession { .. } => "no-such-session",
            Self::InUse { .. } => "agent-in-use",
            Self::Conflict { .. } => "agent-conflict",
            Self::Damaged(_) => "agent-store-damaged",
            Self::Payload { .. } => "hook-payload",
            Self::File(error) => error.code(),
            Self::Other(_) => "agent-error",
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::NoSession { .. } => Exit::Missing,
            Self::InUse { .. } => Exit::Busy,
            Self::Conflict { .. } => Exit::Conflict,
            Self::Unsupported { .. }
            | Self::NotInstalled { .. }
            | Self::Damaged(_)
            | Self::Payload { .. }
            | Self::File(_)
            | Self::Other(_) => Exit::No,
        }
    }
}

/// What was found, and what was damaged on the way: the healthy ones go on working.
#[derive(Clone, Debug)]
pub struct Found<T> {
    /// The healthy ones.
    pub items: Vec<T>,
    /// The damaged ones.
    pub issues: Vec<Issue>,
}

impl<T> Default for Found<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            issues: Vec::new(),
        }
    }
}

/// How far support for an agent reaches; each rung was run against the real client in the version named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rung {
    /// `seen`, `read`, `judged`, `hooked`, `hand-over-out` or `hand-over-in`.
    pub rung: &'static str,
    /// The client's version it was run against; `None` when it was only built from documentation.
    pub run_against: Option<&'static str>,
}

/// Whether an agent is installed here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Detection {
    /// Its program or home was found.
    pub installed: bool,
    /// Its program, found on PATH.
    pub program: Option<PathBuf>,
    /// Its home folder.
    pub home: Option<PathBuf>,
    /// Its version, where a file says so (no program is run to find out).
    pub version: Option<String>,
}

/// Which sessions are asked for.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// Only sessions of this work tree.
    pub root: Option<PathBuf>,
    /// At most so many, the newest first; 0 is all.
    pub limit: usize,
    /// Only these are wanted; none means any. An adapter may give others too, so who asks looks again and does not limit.
    pub states: Vec<LivenessKind>,
    /// Only those are wanted that were left in the middle; again others may come too.
    pub unfinished: bool,
}

/// One conversation of one agent, normalised.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Which.
    pub session: SessionRef,
    /// A name people can say.
    pub name: Option<String>,
    /// Its title, control characters gone.
    pub title: Option<String>,
    /// The folder it works in.
    pub cwd: Option<PathBuf>,
    /// When it began.
    pub created_at: Option<Time>,
    /// When it last did something.
    pub updated_at: Option<Time>,
    /// The agent's own word for its status.
    pub status: Option<String>,
    /// Whether it is alive.
    pub liveness: Liveness,
    /// The process the agent or our hook recorded for it.
    pub process: Option<ProcessIdentity>,
    /// Why it is unfinished; `None` where it ended in good order.
    pub interruption: Option<Interruption>,
    /// Calls that may or may not have happened.
    pub open_effects: Vec<OpenEffect>,
    /// How many messages it holds, where that is cheap to know.
    pub messages: Option<u64>,
    /// The last thing the person said, cut.
    pub last_prompt: Option<String>,
    /// Its plan or todos.
    pub plan: Vec<PlanItem>,
    /// The session it continues or was started by.
    pub parent: Option<SessionId>,
    /// It was started by its parent for a part of the parent's work, so it is no work of its own. A fork is.
    pub helper: bool,
    /// Sessions that crashed together carry the same group.
    pub crash_group: Option<String>,
    /// The tree id of the work tree that the agent itself recorded last (OpenCode's step snapshots).
    pub snapshot_tree: Option<String>,
    /// What was called after that tree was recorded and may have changed the content, in words; the tree is then not what was
    /// left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_after: Option<String>,
    /// What was recovered that the agent itself cannot load, in words.
    pub recovered: Vec<String>,
}

impl Session {
    /// Says why the tree that the agent recorded is not known to be what was left in this work tree. Looks for the session's folder.
    pub fn snapshot_doubt(&self) -> Option<String> {
        if let Some(after) = &self.snapshot_after {
            return Some(format!("the agent recorded no content after {after}"));
        }
        let there = self.cwd.as_deref().is_some_and(is_there);
        (!there).then(|| {
            "the folder it worked in is not there, so nothing says in which work tree that was"
                .to_owned()
        })
    }
}

/// Why a session is unfinished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interruption {
    /// The kind.
    pub reason: InterruptionReason,
    /// What shows it.
    pub proof: String,
    /// For a usage limit: until when.
    pub until: Option<Time>,
}

/// Kinds of interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterruptionReason {
    /// It died.
    Crash,
    /// It was closed in the middle.
    Closed,
    /// Its context is full.
    ContextFull,
    /// A usage limit.
    UsageLimit,
    /// The model refused.
    Refused,
    /// The person cancelled.
    Cancelled,
    /// An error of the provider or a tool.
    Error,
    /// It is in the middle, and nothing says why.
    Unknown,
}

/// One item of a session's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanItem {
    /// Its text.
    pub text: String,
    /// Whether it is done.
    pub done: bool,
    /// The agent's own word for its state.
    pub state: String,
}

/// One turn of a conversation, for a preview. The text is data of somebody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// `user`, `assistant` or `tool`.
    pub role: String,
    /// When.
    pub at: Option<Time>,
    /// The text, cut, control characters gone.
    pub text: String,
}

/// A session with its last turns.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionDetail {
    /// The session.
    pub session: Session,
    /// The last turns, oldest first.
    pub turns: Vec<Turn>,
    /// Where the whole transcript lies.
    pub transcript: Option<PathBuf>,
}

/// A task kept in an agent's own format.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignTask {
    /// The task.
    pub task_id: TaskId,
    /// Its title.
    pub title: String,
    /// The session that holds it.
    pub session: SessionRef,
    /// Its status there.
    pub status: Status,
    /// The root it was recorded for.
    pub root: PathBuf,
    /// Whether that root is this work tree.
    pub root_matches: bool,
    /// What the agent's own fingerprint says of the content, and where it is known to be blind.
    pub content: Content,
    /// It is known that nothing differed from HEAD when the task began.
    pub began_clean: bool,
    /// The agent's own latest fingerprint, for people.
    pub fingerprint: String,
    /// The last write.
    pub updated_at: Time,
    /// The agent's own revision.
    pub revision: Option<u64>,
    /// Where it was taken up.
    pub resumed_to: Option<SessionId>,
    /// A question that waits for a person.
    pub review: Option<Review>,
    /// Globs it may edit.
    pub allowed: Vec<String>,
    /// Globs it must avoid.
    pub avoided: Vec<String>,
    /// Checks it has to pass.
    pub checks: Vec<String>,
    /// Calls that may or may not have happened.
    pub open_effects: Vec<OpenEffect>,
    /// Whether the session is alive, as far as the agent's files say.
    pub liveness: Liveness,
    /// The record was last written by this program, to show what the ledger held: it says nothing that the ledger does not
    /// know better.
    pub mirrored: bool,
}

/// What the ledger decided and the agent's own files have to show. Applying the same effect twice equals once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "effect",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Effect {
    /// A task was taken up from one session by another.
    TakenUp {
        /// The task.
        task_id: TaskId,
        /// Its title.
        title: String,
        /// From.
        source: SessionRef,
        /// To.
        target: SessionRef,
        /// The content it was taken up on.
        fingerprint: Fingerprint,
        /// Whether it was compatible; a stale one was rebuilt.
        compatible: bool,
        /// When it was decided.
        at: Time,
    },
    /// A task of the ledger stands so now.
    Mirrored {
        /// The task.
        task_id: TaskId,
        /// Its title.
        title: String,
        /// The session that holds it.
        session: SessionRef,
        /// Its status.
        status: Status,
        /// The session that took it up from there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resumed_to: Option<SessionRef>,
        /// Globs it may edit.
        allowed: Vec<String>,
        /// Globs it must avoid.
        avoided: Vec<String>,
        /// Checks it has to pass.
        checks: Vec<String>,
        /// When it was decided.
        at: Time,
    },
    /// A review of the ledger stands so now.
    Reviewed {
        /// The review, with its state.
        review: Box<Review>,
        /// The session that holds the task now, whoever decided.
        session: SessionRef,
        /// The task's status in that session.
        status: Status,
    },
    /// A review kept in the agent's own files was decided here.
    ForeignReviewDecided {
        /// The task.
        task_id: TaskId,
        /// The agent's own id of the request.
        review_id: ReviewId,
        /// The decision.
        approved: bool,
        /// The session that decided.
        session: SessionRef,
        /// When.
        at: Time,
    },
}

/// An answer that was given inside the agent to a question of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForeignAnswer {
    /// The ledger's id of the question.
    pub review_id: ReviewId,
    /// Yes or no.
    pub approved: bool,
    /// The session it was given in.
    pub session: SessionRef,
    /// When.
    pub at: Time,
}

/// What an agent's own hook said, translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookEvent {
    /// Which session.
    pub session: SessionRef,
    /// The folder it works in, where the payload says so.
    pub cwd: Option<PathBuf>,
    /// What happened.
    pub kind: HookKind,
    /// The transcript, where the payload names it.
    pub transcript: Option<PathBuf>,
}

/// What an agent's hook can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// A session began, anew or continued. Answered with the notice.
    SessionStart,
    /// A turn began with this prompt.
    TurnStart {
        /// What the person said, cut.
        prompt: Option<String>,
    },
    /// A tool is about to run.
    ToolStart {
        /// The tool.
        tool: String,
        /// Its argument, cut.
        argument: String,
    },
    /// A tool has run.
    ToolEnd {
        /// The tool.
        tool: String,
        /// Its argument, cut.
        argument: String,
    },
    /// A turn ended: the fingerprint is recorded.
    TurnEnd {
        /// The agent's own word for how it ended.
        status: Option<String>,
    },
    /// The context is about to be compacted. Answered with the notice.
    Compaction,
    /// Something failed.
    Error {
        /// What.
        message: String,
    },
    /// The session ended.
    SessionEnd {
        /// The agent's own word for why.
        reason: Option<String>,
    },
    /// Nothing that matters here.
    Ignored,
}

/// A document that lets another agent take a task up, ready to be received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// The task.
    pub task_id: TaskId,
    /// Its title.
    pub title: String,
    /// The document, as Markdown.
    pub document: String,
    /// The moment it was made.
    pub at: Time,
}

/// How a hand-over was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The new session, where one was made.
    pub session: Option<SessionRef>,
    /// The command that continues it.
    pub command: Vec<OsString>,
    /// The file the document was put into, where there is one.
    pub file: Option<PathBuf>,
}

/// One agent.
pub trait Agent: Send + Sync {
    /// Returns the stable id, such as `opencode`.
    fn id(&self) -> AgentId;

    /// Returns the name for people, such as `OpenCode`.
    fn name(&self) -> &'static str;

    /// Returns how far support reaches.
    fn ladder(&self) -> Vec<Rung> {
        Vec::new()
    }

    /// Looks whether the agent is installed. Runs no program.
    fn detect(&self, env: &Env) -> Detection;

    /// Returns the session that the caller's environment belongs to, by the agent's own variable.
    fn session_of(&self, env: &Env) -> Option<SessionId> {
        let _ = env;
        None
    }

    /// Lists sessions, newest first. Reads only; damaged ones are issues.
    fn sessions(&self, env: &Env, query: &SessionQuery) -> Found<Session> {
        let _ = (env, query);
        Found::default()
    }

    /// Returns the folder in which the agent itself keeps sessions of this work tree, or of any, that [`Self::sessions`] does not
    /// read; `None` where there is none. What is not read is said, for it may hold work that was left.
    fn unread(&self, env: &Env, root: &Path) -> Option<PathBuf> {
        let _ = (env, root);
        None
    }

    /// Shows one session with its last `turns` turns. `id` may be what the agent itself accepts (id, prefix, name).
    fn session(&self, env: &Env, id: &str, turns: usize) -> Result<SessionDetail, AgentError> {
        let _ = (env, id, turns);
        Err(AgentError::Unsupported {
            agent: self.name(),
            what: "show sessions",
        })
    }

    /// Returns what could be recovered of a session, as a Markdown document.
    fn recover(&self, env: &Env, id: &str) -> Result<String, AgentError> {
        let _ = (env, id);
        Err(AgentError::Unsupported {
            agent: self.name(),
            what: "recover sessions",
        })
    }

    /// Writes what could be recovered of a session as a new session of the agent; the old one stays as it is.
    fn recover_as_session(&self, env: &Env, id: &str) -> Result<Received, AgentError> {
        let _ = (env, id);
        Err(AgentError::Unsupported {
            agent: self.name(),
            what: "recover a session into a new one",
        })
    }

    /// Lists what sessions of the agent run in the background by the agent's own means and that is, or may be, not over. Reads
    /// only.
    fn background(&self, env: &Env) -> Found<AgentTask> {
        let _ = env;
        Found::default()
    }

    /// Lists tasks kept in the agent's own format at this place. Reads only.
    fn tasks(&self, env: &Env, place: &Place) -> Found<ForeignTask> {
        let _ = (env, place);
        Found::default()
    }

    /// Lists answers that stand in the agent's own files to questions of the ledger. Only an answer to exactly what was asked is
    /// one; an answer to something else is an issue. Reads only.
    fn answers(&self, env: &Env, place: &Place, asked: &[Review]) -> Found<ForeignAnswer> {
        let _ = (env, place, asked);
        Found::default()
    }

    /// Says why a question of the agent's own files ([`ForeignTask::review`]) cannot be answered with yes, where that is so.
    fn refuses_yes(&self, asked: &Review) -> Option<String> {
        let _ = asked;
        None
    }

    /// Tells whether our transitions are mirrored into the agent's own files at this place (its integration is
    /// installed, or it has such files already).
    fn mirrors(&self, env: &Env, place: &Place) -> bool {
        let _ = (env, place);
        false
    }

    /// Writes into the agent's own files what the ledger decided. Twice equals once.
    fn apply(&self, env: &Env, place: &Place, effect: &Effect) -> Result<(), AgentError> {
        let _ = (env, place, effect);
        Ok(())
    }

    /// Plans the installation of the drop-in files. Changes nothing.
    fn install(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        let _ = (env, scope);
        Err(AgentError::Unsupported {
            agent: self.name(),
            what: "be integrated by files",
        })
    }

    /// Plans their removal where the files were edited since; the unedited case is put back byte for byte by the caller.
    fn uninstall(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        let _ = (env, scope);
        Err(AgentError::Unsupported {
            agent: self.name(),
            what: "be integrated by files",
        })
    }

    /// Looks at the drop-in files.
    fn integration(&self, env: &Env, scope: &Scope) -> IntegrationState {
        let _ = (env, scope);
        IntegrationState::Absent
    }

    /// Tells whether the agent's hooks say when a session ends. Where they do not, an end that nobody recorded proves nothing.
    fn tells_ends(&self) -> bool {
        true
    }

    /// Translates what the agent's own hook handed over. `input` is its standard input.
    fn hook(&self, env: &Env, event: &str, input: &[u8]) -> Result<HookEvent, AgentError> {
        let _ = (env, event, input);
        Err(AgentError::Unsupported {
            agent: self.name(),
            what: "call hooks",
        })
    }

    /// Puts a notice for the model into the form in which the agent's hook hands it on. `None` prints nothing.
    fn hook_reply(&self, event: &str, notice: &str) -> Option<String> {
        let _ = (event, notice);
        None
    }

    /// Returns the command that continues a session in the agent itself.
    fn resume_command(&self, session: &SessionId) -> Option<Vec<OsString>> {
        let _ = session;
        None
    }

    /// Tells whether the agent can be given a hand-over, where it is installed.
    fn receives(&self) -> bool {
        false
    }

    /// Receives a hand-over: as a new session, a message or a file. An adapter that has this says so in
    /// [`Agent::receives`].
    fn receive(&self, env: &Env, place: &Place, parcel: &Parcel) -> Result<Received, AgentError> {
        let _ = (env, place, parcel);
        Err(AgentError::cannot_receive(self.name()))
    }
}
