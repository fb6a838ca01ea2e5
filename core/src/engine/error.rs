//! How a use case fails. Codes and exit statuses are stable.
use super::{Elsewhere, NotBack};
use crate::agent::AgentError;
use crate::error::{Exit, Explain};
use crate::files::FileError;
use crate::fingerprint::FingerprintError;
use crate::ids::{AgentId, InvalidId, ReviewId, SessionId, SessionRef, TaskId};
use crate::ledger::{LedgerError, TransactError};
use crate::process::ProcessError;
use crate::repository::RepositoryError;
use crate::status::Refusal;
use crate::time::Time;
use crate::verdict::{Judgement, ReasonCode, Verdict};

/// One of several things that were meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The task.
    pub task_id: TaskId,
    /// The session that holds it.
    pub session: SessionRef,
}

/// A use case failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The repository.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The look at the tree.
    #[error(transparent)]
    Fingerprint(#[from] FingerprintError),
    /// An adapter.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The process table.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A text that is no identifier.
    #[error(transparent)]
    Id(#[from] InvalidId),
    /// takeup was never used here.
    #[error("takeup is not used in {root}")]
    NotInitialised {
        /// The top of the work tree.
        root: String,
        /// The task that was asked for.
        asked: Option<String>,
    },
    /// No such task.
    #[error("there is no task {0:?} here")]
    NoTask(String),
    /// No task at all.
    #[error("there is no unfinished task here")]
    NoTasks,
    /// No such session.
    #[error("no task here was ever held by session {0:?}")]
    NoSession(String),
    /// No such session, and another one holds what may be meant.
    #[error("no task here was ever held by session {:?}", session.as_str())]
    HoldsNothing {
        /// The session.
        session: SessionId,
        /// The task.
        task_id: TaskId,
        /// Who holds it.
        holder: SessionRef,
    },
    /// The session is known, and nothing is left of it: it ended by itself, or never did anything.
    #[error("session {0:?} is known, and left nothing to take up")]
    NothingLeft(String),
    /// A session of that id is here, and of another agent.
    #[error("session {session} is here, of {}", agents.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and of "))]
    OtherAgent {
        /// The id.
        session: SessionId,
        /// Whose it is.
        agents: Vec<AgentId>,
    },
    /// No such review.
    #[error("there is no review {0:?} here")]
    NoReview(String),
    /// Several things were meant.
    #[error("several are meant: {}", list(.0))]
    Ambiguous(Vec<Choice>),
    /// It is not known which of several tasks the calling session works on.
    #[error("several are meant: {}", list(.0))]
    AmbiguousOwn(Vec<Choice>),
    /// Another session holds what is meant, and who calls is not known to be that session.
    #[error("session {holder} holds task {task_id}, and {}", not_that_session(.agent.as_ref()))]
    HeldByOther {
        /// The task.
        task_id: TaskId,
        /// Who holds it.
        holder: SessionRef,
        /// The agent that calls; a person where it is none.
        agent: Option<AgentId>,
    },
    /// The caller's session is not known.
    #[error("it is not known which session this is")]
    SessionUnknown,
    /// A task of that name is unfinished in another session.
    #[error("task {task_id} is unfinished in session {holder}")]
    TaskExists {
        /// The task.
        task_id: TaskId,
        /// Who holds it.
        holder: SessionRef,
    },
    /// A task of that name is unfinished at another place.
    #[error("it is unfinished elsewhere: {_0}")]
    TaskExistsElsewhere(Elsewhere),
    /// The task of that title is going on in this session, and is not what is asked for.
    #[error("task {task_id} is going on in this session, without {}", missing.join(", "))]
    TaskDiffers {
        /// The task.
        task_id: TaskId,
        /// What it lacks, in words.
        missing: Vec<String>,
        /// How to come by it.
        ways: Vec<String>,
    },
    /// The task that was named by its id is closed, and another one of its title is not.
    #[error("{error}; the unfinished task of that title is {open}")]
    Namesake {
        /// What is said of the closed one.
        error: Box<Self>,
        /// The other one.
        open: TaskId,
    },
    /// What is meant was left at another place.
    #[error("{_0}")]
    HeldElsewhere(Elsewhere),
    /// Another session took it up.
    #[error("task {task_id} was taken up by {winner} at {at}")]
    AlreadyTakenUp {
        /// The task.
        task_id: TaskId,
        /// By whom.
        winner: SessionRef,
        /// When.
        at: Time,
    },
    /// Something changed between looking and acting.
    #[error("{0} changed since it was shown")]
    Changed(String),
    /// The verdict is no.
    #[error("task {task_id} cannot be taken up here and now: {}", why(.judgement))]
    Refused {
        /// The task.
        task_id: TaskId,
        /// The verdict with its reasons.
        judgement: Judgement,
    },
    /// A person has to confirm.
    #[error("{what}; a person has to confirm")]
    NeedsConfirmation {
        /// What was found.
        what: String,
        /// The command that confirms exactly this.
        command: String,
    },
    /// The command that was to go on with the task did not come to life.
    #[error("{0}: the task stays where it is")]
    NotBegun(String),
    /// The state machine refuses.
    #[error("task {task_id}: {refusal}")]
    Transition {
        /// The task.
        task_id: TaskId,
        /// Why.
        refusal: Refusal,
    },
    /// The plan is not proved.
    #[error("task {task_id} is not proved on the present content: {what}")]
    NotProved {
        /// The task.
        task_id: TaskId,
        /// What is missing.
        what: String,
    },
    /// Paths outside the task's boundary changed.
    #[error("task {task_id} changed paths outside its boundary: {path}{}", and_more(*more))]
    OutsideBoundary {
        /// The task.
        task_id: TaskId,
        /// The first of them.
        path: String,
        /// How many more there are.
        more: usize,
    },
    /// Paths that the task must avoid are not as they were.
    #[error("{}{} must be avoided by this task and is not as it was; an approval does not lift that", .0.paths.join(", "), and_more(.0.more))]
    NotBack(NotBack),
    /// Whether paths outside the task's boundary changed cannot be told.
    #[error("whether task {task_id} stayed inside its boundary is not known: {why}")]
    BoundaryUnknown {
        /// The task.
        task_id: TaskId,
        /// Why.
        why: String,
    },
    /// Nothing tells whether the task changed paths outside its boundary before it was taken up.
    #[error("task {task_id}: {what}")]
    BoundaryDoubtful {
        /// The task.
        task_id: TaskId,
        /// What is not known.
        what: String,
    },
    /// Calls that sessions before left open were not looked at.
    #[error("task {task_id}: {calls} may or may not have happened, and nobody has looked")]
    EffectsUnknown {
        /// The task.
        task_id: TaskId,
        /// The calls, in words.
        calls: String,
    },
    /// Damage may have taken records of the task, and nobody has looked at what is left of it.
    #[error(
        "records of task {0} may be lost in damage of the ledger: of its plan, its questions, its runs"
    )]
    RecordsLost(TaskId),
    /// The plan is empty and nobody said that it shall be.
    #[error("task {0} has no checks planned")]
    NoPlan(TaskId),
    /// The tree could not be seen whole.
    #[error("the tree could not be seen whole: {0}")]
    Incomplete(String),
    /// A commit runs its hooks, so that the tree need not hold what was left in it.
    #[error(
        "a commit runs its hooks (git, pid {git}), and what is not staged may be put away meanwhile"
    )]
    CommitRuns {
        /// The git command.
        git: u32,
    },
    /// A review was decided already.
    #[error("review {0} was decided already")]
    AlreadyDecided(String),
    /// The agent in whose files a question stands takes no yes to it.
    #[error("{why}")]
    NoYes {
        /// The question.
        review_id: ReviewId,
        /// Why.
        why: String,
    },
    /// A record of ours is damaged, so that the question cannot be answered.
    #[error("{}: {}", .0.path.display(), .0.message)]
    Damaged(crate::issue::Issue),
    /// What was given is not what it has to be.
    #[error("{0}")]
    Usage(String),
    /// What was asked for is not allowed.
    #[error("{0}")]
    NotAllowed(String),
}

impl From<TransactError<Self>> for EngineError {
    fn from(error: TransactError<Self>) -> Self {
        match error {
            TransactError::Ledger(error) => Self::Ledger(error),
            TransactError::Decision(error) => error,
        }
    }
}

fn list(choices: &[Choice]) -> String {
    choices
        .iter()
        .map(|choice| format!("{} (session {})", choice.task_id, choice.session))
        .collect::<Vec<_>>()
        .join(", ")
}

fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}

fn not_that_session(agent: Option<&AgentId>) -> String {
    match agent {
        Some(agent) => format!("{agent} does not say which session it is itself"),
        None => "this call is not that session's".to_owned(),
    }
}

fn is_gone(judgement: &Judgement) -> bool {
    judgement
        .reasons
        .iter()
        .any(|reason| reason.code == ReasonCode::WorktreeGone)
}

fn why(judgement: &Judgement) -> String {
    judgement.reasons.first().map_or_else(
        || judgement.verdict.code().to_owned(),
        |reason| reason.message.clone(),
    )
}

impl Explain for EngineError {
    fn code(&self) -> &'static str {
        match self {
            Self::Repository(error) => error.code(),
            Self::Ledger(error) => error.code(),
            Self::Fingerprint(error) => error.code(),
            Self::Agent(error) => error.code(),
            Self::File(error) => error.code(),
            Self::Process(error) => error.code(),
            Self::Id(_) => "invalid-id",
            Self::NotInitialised { .. } => "not-initialised",
            Self::NoTask(_) => "no-such-task",
            Self::NoTasks => "no-task",
            Self::NoSession(_) | Self::HoldsNothing { .. } | Self::OtherAgent { .. } => {
                "no-such-session"
            }
            Self::NothingLeft(_) => "nothing-left",
            Self::NoReview(_) => "no-such-review",
            Self::Ambiguous(_) | Self::AmbiguousOwn(_) => "ambiguous",
            Self::SessionUnknown => "session-unknown",
            Self::HeldByOther { .. } => "held-by-other",
            Self::TaskExists { .. } | Self::TaskExistsElsewhere(_) => "task-exists",
            Self::TaskDiffers { .. } => "task-differs",
            Self::Namesake { error, .. } => error.code(),
            Self::HeldElsewhere(_) => "held-elsewhere",
            Self::AlreadyTakenUp { .. } => "already-taken-up",
            Self::Changed(_) => "changed-since-shown",
            Self::Refused { judgement, .. } => judgement.verdict.code(),
            Self::NeedsConfirmation { .. } => "confirmation-needed",
            Self::NotBegun(_) => "not-begun",
            Self::Transition { refusal, .. } => refusal.code(),
            Self::NotProved { .. } => "not-proved",
            Self::OutsideBoundary { .. } => "outside-boundary",
            Self::BoundaryUnknown { .. } => "boundary-unknown",
            Self::BoundaryDoubtful { .. } => "boundary-doubtful",
            Self::EffectsUnknown { .. } => "effects-unknown",
            Self::RecordsLost(_) => "records-lost",
            Self::NoPlan(_) => "no-plan",
            Self::Incomplete(_) => "look-incomplete",
            Self::CommitRuns { .. } => "commit-runs",
            Self::AlreadyDecided(_) => "review-decided",
            Self::NoYes { .. } => "no-yes",
            Self::Damaged(_) => "ledger-damaged",
            Self::Usage(_) => "usage",
            Self::NotAllowed(_) | Self::NotBack(_) => "not-allowed",
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Repository(error) => return error.hint(),
            Self::Ledger(error) => return error.hint(),
            Self::Fingerprint(error) => return error.hint(),
            Self::Agent(error) => return error.hint(),
            Self::File(error) => return error.hint(),
            Self::Process(error) => return error.hint(),
            Self::NotInitialised { .. } => {
                "`git takeup inspect` shows what sessions left here; start a task with `git takeup start TITLE`, or only make the ledger with `git takeup init`"
            }
            Self::NoTask(_) => {
                "`git takeup inspect --all` lists every task, finished ones too; what a session left without a task has to be taken up first"
            }
            Self::NoTasks => "start one with `git takeup start TITLE`",
            Self::OtherAgent { .. } => "name its agent with --agent",
            Self::NoSession(_) => {
                "`git takeup inspect --all` lists every session; what one left without a task has to be taken up first"
            }
            Self::HoldsNothing {
                task_id, holder, ..
            } => {
                return Some(format!(
                    "session {holder} holds task {task_id}: take it up with `git takeup resume {task_id}`; `git takeup inspect --all` lists every session"
                ));
            }
            Self::NothingLeft(session) => {
                let words = ["git", "takeup", "sessions", "show", session];
                let show = crate::text::command_line(words);
                return Some(format!("`{show}` shows what is known of it"));
            }
            Self::NoReview(_) => "`git takeup review list --all` lists every review",
            Self::Ambiguous(_) => "name the task, and with --from the session",
            Self::AmbiguousOwn(choices)
                if choices
                    .windows(2)
                    .all(|two| matches!(two, [one, other] if one.session == other.session)) =>
            {
                "name the task"
            }
            Self::AmbiguousOwn(_) => "name the task, or with --session the session",
            Self::SessionUnknown => "name it with --session, or set TAKEUP_SESSION",
            Self::HeldByOther {
                task_id,
                holder,
                agent,
            } => {
                let name = crate::text::command_line(["--session", holder.id.as_str()]);
                let take_up = format!("take it up with `git takeup resume {task_id}`");
                return Some(match agent {
                    Some(agent) => {
                        format!(
                            "{take_up}; where {agent} is that session, it says so with `{name}`"
                        )
                    }
                    None => format!("{take_up}, or name the session that holds it with `{name}`"),
                });
            }
            Self::TaskExists { task_id, .. } => {
                return Some(format!(
                    "take it up with `git takeup resume {task_id}`, or give the new task another title"
                ));
            }
            Self::TaskExistsElsewhere(there) => {
                return Some(format!(
                    "{}; or give the new task another title",
                    there.way_out()
                ));
            }
            Self::TaskDiffers { ways, .. } => {
                return Some(format!(
                    "{}; or give the new task another title",
                    ways.join("; ")
                ));
            }
            Self::Namesake { open, .. } => {
                return Some(format!("name {open} where that one is meant"));
            }
            Self::HeldElsewhere(there) => return Some(there.way_out()),
            Self::AlreadyTakenUp { .. } => {
                "one session continues a task: ask there; to go on from where it is, name it with --from"
            }
            Self::Changed(_) => {
                "look again with `git takeup inspect`, and confirm what it shows now"
            }
            Self::Refused { judgement, .. } => match judgement.verdict {
                Verdict::HumanReview => "`git takeup review list` shows the question",
                Verdict::InUse => "end that session first, or hand the task over from there",
                Verdict::MismatchedRepository if is_gone(judgement) => {
                    "begin anew from its records (`git takeup show`); or make a work tree at the same path, and there `git takeup init --moved`"
                }
                Verdict::MismatchedRepository => "`git takeup inspect` says where it belongs",
                Verdict::ResumeVerification | Verdict::StaleTask | Verdict::NotResumable => {
                    return None;
                }
            },
            Self::Transition { refusal, .. } => match refusal {
                Refusal::ReviewPending => "`git takeup review list` shows the question",
                Refusal::Stale => "`git takeup resume --rebuild` goes on with the present content",
                Refusal::Closed | Refusal::NoReview => return None,
            },
            Self::NotProved { .. } => "`git takeup next` says the next step",
            Self::OutsideBoundary { task_id, .. } => {
                return Some(format!(
                    "`git takeup evaluate {task_id}` puts the question to a person; or undo the changes"
                ));
            }
            Self::BoundaryDoubtful { task_id, .. } => {
                return Some(format!(
                    "`git takeup evaluate {task_id}` puts the question to a person"
                ));
            }
            Self::NotBack(not_back) => return Some(not_back.way_out()),
            Self::BoundaryUnknown { task_id, .. } => {
                return Some(format!(
                    "commit what belongs to the task, or let git ignore what is no work, and look again; where git no longer has what was there when the session began, that will not help: give the task up (`git takeup abandon {task_id}`) and start it anew"
                ));
            }
            Self::EffectsUnknown { task_id, .. } => {
                return Some(format!(
                    "look whether they happened, then say so: `git takeup next {task_id} --looked`"
                ));
            }
            Self::RecordsLost(task_id) => {
                return Some(format!(
                    "look at its plan and its questions (`git takeup show {task_id}`, `git takeup doctor`), then say so: `git takeup next {task_id} --looked`; checks have to run again"
                ));
            }
            Self::NoPlan(_) => {
                "add one with `git takeup plan add 'COMMAND'`, or finish without proof with --no-checks"
            }
            Self::NotBegun(_) => "nothing was changed; mend the command and take the task up again",
            Self::NoYes { review_id, .. } => {
                return Some(format!(
                    "`git takeup review reject {review_id}` gives the task up; its work can be begun anew with `git takeup start`"
                ));
            }
            Self::Damaged(_) => "`git takeup doctor` says what can be done",
            Self::Incomplete(_) => "mend what cannot be read and look again",
            Self::CommitRuns { .. } => "ask again when the commit is over",
            Self::NeedsConfirmation { .. }
            | Self::Id(_)
            | Self::AlreadyDecided(_)
            | Self::Usage(_)
            | Self::NotAllowed(_) => return None,
        };
        Some(hint.to_owned())
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "no other failure is about a task that is not there"
    )]
    fn missing_task(&self) -> Option<&str> {
        match self {
            Self::NoTask(text) => Some(text),
            Self::NotInitialised { asked, .. } => asked.as_deref(),
            _ => None,
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Repository(error) => error.exit(),
            Self::Ledger(error) => error.exit(),
            Self::Fingerprint(error) => error.exit(),
            Self::Agent(error) => error.exit(),
            Self::File(error) => error.exit(),
            Self::Process(error) => error.exit(),
            Self::Id(_) | Self::SessionUnknown | Self::Usage(_) => Exit::Usage,
            Self::NotInitialised { .. }
            | Self::NoTask(_)
            | Self::NoTasks
            | Self::NoSession(_)
            | Self::HoldsNothing { .. }
            | Self::NothingLeft(_)
            | Self::OtherAgent { .. }
            | Self::NoReview(_)
            | Self::HeldByOther { .. }
            | Self::HeldElsewhere(_) => Exit::Missing,
            Self::CommitRuns { .. } => Exit::Busy,
            Self::Ambiguous(_) | Self::AmbiguousOwn(_) | Self::NeedsConfirmation { .. } => {
                Exit::Confirm
            }
            Self::Namesake { error, .. } => error.exit(),
            Self::TaskExists { .. }
            | Self::TaskExistsElsewhere(_)
            | Self::TaskDiffers { .. }
            | Self::AlreadyTakenUp { .. }
            | Self::Changed(_)
            | Self::NoYes { .. }
            | Self::AlreadyDecided(_) => Exit::Conflict,
            Self::Refused { judgement, .. } => match judgement.verdict {
                Verdict::InUse => Exit::Conflict,
                Verdict::HumanReview => Exit::Confirm,
                Verdict::ResumeVerification
                | Verdict::StaleTask
                | Verdict::NotResumable
                | Verdict::MismatchedRepository => Exit::No,
            },
            Self::Transition {
                refusal: Refusal::ReviewPending,
                ..
            }
            | Self::OutsideBoundary { .. }
            | Self::BoundaryDoubtful { .. } => Exit::Confirm,
            Self::NotBegun(_)
            | Self::Transition { .. }
            | Self::NotProved { .. }
            | Self::BoundaryUnknown { .. }
            | Self::EffectsUnknown { .. }
            | Self::RecordsLost(_)
            | Self::NoPlan(_)
            | Self::Incomplete(_)
            | Self::Damaged(_)
            | Self::NotBack(_)
            | Self::NotAllowed(_) => Exit::No,
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "no other failure passes by itself"
    )]
    fn retryable(&self) -> bool {
        match self {
            Self::Repository(error) => error.retryable(),
            Self::Ledger(error) => error.retryable(),
            Self::Fingerprint(error) => error.retryable(),
            Self::Agent(error) => error.retryable(),
            Self::CommitRuns { .. } => true,
            _ => false,
        }
    }
}
