//! The recorder: looks at the content when the git command that called a hook is over.
//!
//! It is the very process that the hook called, where the text in the hook can be told to wait no longer ([`release`]), and
//! one of its own elsewhere ([`recorder_command`]).
//!
//! One at a time for each work tree. A hook first writes its observation as pending and then looks whether a recorder
//! holds the lock; a recorder looks for pending ones again after it has let the lock go. So none is left over.
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::{HookError, Means};
use crate::env::Env;
use crate::files::FileError;
use crate::fingerprint::{self, Provenance, ProvenanceEvent, TreeRecord};
use crate::identity::{self, Identity};
use crate::ids::{SessionRef, WorktreeId};
use crate::ledger::{Actor, Change, Ledger, State, TransactError, Transition};
use crate::observation::Observation;
use crate::process::{ProcessIdentity, Processes, ancestors, undisturbed};
use crate::repository::{Place, clean_git_environment, tokens};
use crate::status::{Event, Status, apply};
use crate::time::Time;

/// How long the end of the git command is waited for.
const LONGEST_COMMAND: Duration = Duration::from_mins(10);
/// How long the ledger's lock is waited for, and each hook of another commit: nobody waits for us.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often one recorder begins anew because hooks went on meanwhile.
const ROUNDS: u32 = 100;

/// What a recorder did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Observations that are pending no more.
    pub observations: usize,
    /// Identities whose latest record moved on.
    pub identities: usize,
}

fn lock_path(place: &Place) -> PathBuf {
    place.git_dir.join("takeup/recorder.lock")
}

fn try_lock(place: &Place) -> Result<Option<File>, HookError> {
    let path = lock_path(place);
    let fail = |error| FileError::new("cannot lock", &path, error);
    // A file of another user's would keep the owner's recorder from its work.
    Ledger::at(place.state()).is_there()?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        // No link is followed, and no pipe waited on.
        .custom_flags(
            (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK)
                .bits()
                .cast_signed(),
        )
        .open(&path)
        .map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(fail(error).into()),
    }
}

/// Tells whether a recorder has to be started: none is at work in this work tree.
pub fn recorder_is_needed(place: &Place) -> bool {
    matches!(try_lock(place), Ok(Some(_)))
}

/// How long a shell may take to hear that it need not wait.
const HEARING: Duration = Duration::from_millis(20);

/// Tells the text in the hook, which waits for the end of this process, to wait no longer: this process goes on as the
/// recorder. `chain` is this process and those above it. Returns `false` where nobody waits who would understand it.
///
/// The text names its shell in `TAKEUP_STUB` (`pid:` and a number), and waits in a shell below that one. Who waits goes away
/// when it hears.
pub fn release(env: &Env, processes: &dyn Processes, chain: &[ProcessIdentity]) -> bool {
    let shell: Option<u32> = env
        .text("TAKEUP_STUB")
        .and_then(|text| text.strip_prefix("pid:")?.parse().ok());
    let (Some(shell), Some(waiting), Some(above)) = (shell, chain.get(1), chain.get(2)) else {
        return false;
    };
    if above.pid != shell && waiting.pid != shell {
        return false;
    }
    // A signal that comes between the shell's last look and its wait is lost on it.
    (0..5).any(|_| {
        processes.signal(waiting, Signal::USR1).is_ok()
            && processes.wait_end(waiting, HEARING).unwrap_or(false)
    })
}

/// Makes the call that starts a recorder for a place. It inherits nothing that would hold the caller or the terminal up.
pub fn recorder_command(program: &Path, place: &Place, git: Option<&ProcessIdentity>) -> Command {
    let mut command = Command::new(program);
    clean_git_environment(&mut command);
    command
        .args(["hook", "git", "recorder"])
        .env("GIT_DIR", &place.git_dir)
        .env("GIT_WORK_TREE", &place.root)
        .current_dir(&place.root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(git) = git {
        command.arg(format!("{}:{}", git.pid, git.start_ticks));
    }
    command
}

/// Reads back what [`recorder_command`] says of the git command to wait for.
pub fn parse_git(processes: &dyn Processes, text: &str) -> Option<ProcessIdentity> {
    let (pid, ticks) = text.split_once(':')?;
    let process = processes.identify(pid.parse().ok()?).ok()??;
    (process.start_ticks.to_string() == ticks).then_some(process)
}

/// Looks at the content for every pending observation of a work tree, after the git command is over.
///
/// The content belongs to the last of them; of the ones before it is not known any more, and they are pending no longer.
/// Where the last was the doing of an open session, that session's identities take the look as their latest record. Does
/// nothing where another recorder is at work.
pub fn record_pending(
    means: &Means<'_>,
    place: &Place,
    git: Option<&ProcessIdentity>,
) -> Result<Recorded, HookError> {
    let Some(worktree) = tokens(place)?.worktree else {
        return Ok(Recorded::default());
    };
    let ledger = Ledger::at(place.state()).during("hook git recorder");
    let mut done = Recorded::default();
    let mut tidied = false;
    for _ in 0..ROUNDS {
        let Some(lock) = try_lock(place)? else {
            return Ok(done);
        };
        if let Some(git) = git {
            // Where it cannot be watched the look is taken at once.
            let _over = means.processes.wait_end(git, LONGEST_COMMAND);
        }
        let mut is_stuck = false;
        if waits(&ledger, &worktree)? {
            let one = record_once(means, place, &ledger, &worktree)?;
            // What waits was seen after this look: the clock went back, and looking again would change nothing. Or other commits
            // run their hooks, and what is seen next is looked at with it.
            is_stuck = one.observations == 0;
            done.observations += one.observations;
            done.identities += one.identities;
        }
        if !tidied {
            // Nobody waits here, so this is where what every command reads is kept small; one at a time, as the look.
            crate::gc::tidy(&ledger, means.clock, crate::gc::Limits::DEFAULT)?;
            tidied = true;
        }
        drop(lock);
        if is_stuck || !waits(&ledger, &worktree)? {
            break;
        }
    }
    Ok(done)
}

/// Tells whether an observation of a work tree waits for a look.
fn waits(ledger: &Ledger, worktree: &WorktreeId) -> Result<bool, HookError> {
    let state = ledger.read()?.state;
    let mut observations = state.observations.iter();
    Ok(observations.any(|seen| is_pending(seen, worktree)))
}

fn is_pending(seen: &Observation, worktree: &WorktreeId) -> bool {
    seen.pending && &seen.worktree_id == worktree
}

fn record_once(
    means: &Means<'_>,
    place: &Place,
    ledger: &Ledger,
    worktree: &WorktreeId,
) -> Result<Recorded, HookError> {
    let clock = means.clock;
    let chain = ancestors(means.processes, std::process::id()).unwrap_or_default();
    let looked = undisturbed(means.processes, &place.root, &chain, PATIENCE, || {
        let at = clock.now();
        fingerprint::look(place, &means.options()).map(|look| (at, look.record))
    })?;
    let Ok((at, tree)) = looked else {
        return Ok(Recorded::default());
    };
    let written = ledger.transact(clock, PATIENCE, |view| {
        let settled = settle(&view.state, worktree, &tree, at, clock.now());
        let transition = (!settled.changes.is_empty()).then(|| Transition {
            at: clock.now(),
            actor: Actor {
                session: settled.by.clone().unwrap_or_else(SessionRef::person),
                pid: std::process::id(),
            },
            operation: "hook".to_owned(),
            changes: settled.changes,
        });
        Ok::<_, std::convert::Infallible>((transition, settled.done))
    });
    match written {
        Ok(committed) => Ok(committed.value),
        Err(TransactError::Ledger(error)) => Err(error.into()),
        Err(TransactError::Decision(never)) => match never {},
    }
}

/// What a look means for the ledger.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) changes: Vec<Change>,
    pub(super) done: Recorded,
    pub(super) by: Option<SessionRef>,
}

/// Settles the pending observations that were made before the look at `at`.
pub(super) fn settle(
    state: &State,
    worktree: &WorktreeId,
    tree: &TreeRecord,
    at: Time,
    now: Time,
) -> Settled {
    let mut settled = Settled::default();
    let pending: Vec<&Observation> = state
        .observations
        .iter()
        .filter(|seen| is_pending(seen, worktree) && seen.at <= at)
        .collect();
    let Some(last) = pending.last() else {
        return settled;
    };
    for seen in &pending {
        let mut seen = (*seen).clone();
        seen.pending = false;
        seen.fingerprint = if seen.is_same_moment(last) {
            tree.fingerprint.clone()
        } else {
            None
        };
        settled.changes.push(Change::Observation {
            observation: Box::new(seen),
        });
        settled.done.observations += 1;
    }
    settled.by.clone_from(&last.by);
    let Some(by) = &last.by else {
        return settled;
    };
    let recorded = identity::Recorded {
        tree: tree.clone(),
        provenance: Provenance {
            event: ProvenanceEvent::GitHook,
            at,
            by: Some(by.clone()),
            provisional: false,
            after: None,
        },
    };
    let identities = state
        .tasks
        .values()
        .flat_map(|entry| &entry.identities)
        .filter(|identity| &identity.session == by && &identity.place.worktree_id == worktree);
    for identity in identities {
        if let Some(moved) = moved_on(identity, &recorded, now) {
            settled.changes.push(Change::Identity {
                identity: Box::new(moved),
            });
            settled.done.identities += 1;
        }
    }
    if let Some(session) = state.session(by)
        && &session.place.worktree_id == worktree
        && session.closing.is_none()
        && is_older(session.latest.as_ref(), at)
    {
        let mut session = session.clone();
        session.note_look(recorded);
        session.updated_at = now;
        settled.changes.push(Change::Session {
            session: Box::new(session),
        });
    }
    settled
}

fn is_older(latest: Option<&identity::Recorded>, at: Time) -> bool {
    latest.is_none_or(|latest| latest.provenance.at < at)
}

/// Returns the identity with the look as its latest record. A stale one and one that waits for a person stay as they are:
/// only the session itself or a person can say what is left then.
fn moved_on(identity: &Identity, recorded: &identity::Recorded, now: Time) -> Option<Identity> {
    if matches!(identity.status, Status::StaleTask | Status::HumanReview)
        || identity.closing.is_some()
        || recorded.tree.fingerprint.is_none()
        || !is_older(identity.latest.as_ref(), recorded.provenance.at)
    {
        return None;
    }
    let same = identity
        .latest
        .as_ref()
        .is_some_and(|latest| latest.tree.same_content(&recorded.tree));
    let event = if same {
        Event::SavedUnchanged
    } else {
        Event::SavedChanged
    };
    let status = apply(identity.status, event).ok()?;
    Some(Identity {
        status,
        latest: Some(recorded.clone()),
        updated_at: now,
        revision: identity.revision.saturating_add(1),
        ..identity.clone()
    })
}
