//! What a hook saw: one line in the ledger, in little time, and nothing where takeup is not used.
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::{EVENTS, HookError, are_off};
use crate::env::Env;
use crate::fingerprint::{self, Options};
use crate::ids::{Fingerprint, Oid, SessionRef, WorktreeId};
use crate::ledger::{Actor, Change, InstalledHook, Ledger, State, TransactError, Transition};
use crate::observation::Observation;
use crate::process::{ProcessIdentity, Processes, ancestors};
use crate::redact;
use crate::repository::{
    Head, Operation, Place, Repository, RepositoryError, create_tokens, last_move, plain_head,
    plain_place, real_id, tokens,
};
use crate::settings::Settings;
use crate::time::Clock;

/// How long a hook waits for the ledger's lock.
const PATIENCE: Duration = Duration::from_millis(600);
/// With more tasks than this a recorder is started to tidy up.
const CROWDED: usize = 2 * crate::gc::Limits::DEFAULT.closed_number;
/// A tree with so many entries in its index is looked at while git waits; a larger one afterwards.
const INLINE_ENTRIES: u32 = 200;

/// What was recorded.
#[derive(Clone, Debug)]
pub struct Heard {
    /// The place.
    pub place: Place,
    /// The record.
    pub observation: Observation,
    /// The git command that called the hook, where the process table shows it: the content is looked at again when it is
    /// over.
    pub git: Option<ProcessIdentity>,
    /// A recorder has to look at the content.
    pub needs_recorder: bool,
    /// This process, its parent, and so on.
    pub chain: Vec<ProcessIdentity>,
}

/// What a record is made with.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// The caller's environment.
    pub env: &'a Env,
    /// The process table.
    pub processes: &'a dyn Processes,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Reads the settings in effect; asked where the content is looked at, and only there, since git waits.
    pub settings: &'a dyn Fn() -> Settings,
}

impl std::fmt::Debug for Means<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Means")
            .field("env", self.env)
            .finish_non_exhaustive()
    }
}

impl Means<'_> {
    /// Returns how the content is looked at.
    pub(super) fn options(&self) -> Options<'_> {
        let settings = (self.settings)();
        let mut options = Options::new(self.env);
        options.excluded = settings.exclude;
        options.repository_programs = settings.repository_programs;
        options
    }
}

/// Records what the git hook `event` saw.
///
/// `args` are the hook's own arguments. `by_environment` is the session that the environment names; what it counts for is
/// said at [`attribute`]. Returns `None`, and has made nothing,
/// where hooks are turned off and in a repository that does not use takeup.
///
/// The content of a small tree is looked at at once; that look is provisional, since hook managers put a part of the tree
/// away while hooks run. It never changes an identity: [`super::record_pending`] does, when the git command is over.
pub fn record(
    means: &Means<'_>,
    event: &str,
    args: &[OsString],
    by_environment: Option<&SessionRef>,
) -> Result<Option<Heard>, HookError> {
    let Means {
        env,
        processes,
        clock,
        ..
    } = *means;
    if are_off(env) {
        return Ok(None);
    }
    if !EVENTS.contains(&event) {
        return Err(HookError::UnknownEvent {
            name: event.chars().take(40).collect(),
        });
    }
    let Some(spot) = Spot::find(env)? else {
        return Ok(None);
    };
    let place = spot.place().clone();
    let known = tokens(&place)?;
    if known.repository.is_none() {
        return Ok(None);
    }
    let ledger = Ledger::at(place.state()).during(format!("hook git {event}"));
    // Before anything is made: in another user's folder (`sudo git commit`) it would stand in the owner's way.
    ledger.is_there()?;
    let worktree_id = match known.worktree {
        Some(id) => id,
        None => create_tokens(&place)?.1,
    };
    let (head, operation) = spot.head(env)?;
    let at = clock.now();
    let fingerprint = inline_look(&place, means);
    let chain = ancestors(processes, std::process::id()).unwrap_or_default();
    let observed = Observation {
        worktree_id,
        event: event.to_owned(),
        at,
        head_before: head_before(&place, event, args, &head),
        head_after: head.commit,
        branch: head.branch.map(|name| redact::text(&name).text),
        operation: operation.map(|operation| operation.code().to_owned()),
        fingerprint,
        pending: true,
        by: None,
    };
    let written = ledger.transact_in_passing(clock, PATIENCE, |view| {
        let mut observation = observed;
        observation.by = attribute(
            &view.state,
            &observation.worktree_id,
            &chain,
            by_environment,
        );
        observation.pending = observation.fingerprint.is_none() || observation.by.is_some();
        let transition = transition(&view.state, &observation);
        // The recorder also moves closed tasks out of what every hook has to read.
        let crowded = view.state.tasks.len() > CROWDED;
        Ok::<_, std::convert::Infallible>((Some(transition), (observation, crowded)))
    });
    let (observation, crowded) = match written {
        Ok(committed) => committed.value,
        Err(TransactError::Ledger(error)) => return Err(error.into()),
        Err(TransactError::Decision(never)) => match never {},
    };
    Ok(Some(Heard {
        git: calling_git(processes, &chain),
        needs_recorder: observation.pending || crowded,
        chain,
        place,
        observation,
    }))
}

/// Where a hook was called.
enum Spot {
    /// A plain place: the repository is not opened, since git waits.
    Plain(Place),
    /// Any other.
    Opened(Box<Repository>),
}

impl Spot {
    /// Returns `None` where there is no work tree.
    fn find(env: &Env) -> Result<Option<Self>, RepositoryError> {
        if let Some(place) = plain_place(env, &env.cwd) {
            return Ok(Some(Self::Plain(place)));
        }
        match Repository::discover(env, &env.cwd) {
            Ok(repository) => Ok(Some(Self::Opened(Box::new(repository)))),
            Err(RepositoryError::Bare { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    const fn place(&self) -> &Place {
        match self {
            Self::Plain(place) => place,
            Self::Opened(repository) => repository.place(),
        }
    }

    fn head(&self, env: &Env) -> Result<(Head, Option<Operation>), RepositoryError> {
        let ask = |repository: &Repository| {
            let git = repository.git();
            Ok((git.head()?, git.operation()?))
        };
        match self {
            Self::Plain(place) => match plain_head(place) {
                Some(found) => Ok(found),
                None => ask(&Repository::open(env, place)?),
            },
            Self::Opened(repository) => ask(repository),
        }
    }
}

fn transition(state: &State, observation: &Observation) -> Transition {
    let mut changes = vec![Change::Observation {
        observation: Box::new(observation.clone()),
    }];
    if let Some(hook) = state.hooks.get(&observation.event) {
        changes.push(Change::Hook {
            name: observation.event.clone(),
            hook: Some(InstalledHook {
                last_ran: Some(observation.at),
                ..hook.clone()
            }),
        });
    }
    Transition {
        at: observation.at,
        actor: Actor {
            session: observation.by.clone().unwrap_or_else(SessionRef::person),
            pid: std::process::id(),
        },
        operation: "hook".to_owned(),
        changes,
    }
}

/// Finds out whose doing it was: the session of the nearest ancestor that the ledger knows as the process of an open
/// session. `chain` begins with the process itself. `None` is a person.
///
/// One process may stand for several sessions: an agent's server, a new conversation in the same program, a terminal. Then
/// it is the one that the environment names, else the only one that works in `worktree`, else the only one at all. Where
/// that leaves several, it is nobody's: a session's record does not move on by what another may have done. Where the process
/// table shows nobody, the environment counts for an open session that has no process of its own.
pub fn attribute(
    state: &State,
    worktree: &WorktreeId,
    chain: &[ProcessIdentity],
    by_environment: Option<&SessionRef>,
) -> Option<SessionRef> {
    let open = || {
        let identities = state
            .tasks
            .values()
            .flat_map(|entry| &entry.identities)
            .filter(|identity| !identity.status.is_closed() && identity.closing.is_none())
            .map(|one| (&one.session, one.process.as_ref(), &one.place));
        let sessions = state
            .sessions
            .iter()
            .filter(|session| session.closing.is_none())
            .map(|one| (&one.session, one.process.as_ref(), &one.place));
        identities.chain(sessions)
    };
    for ancestor in chain.iter().skip(1) {
        let mut here = BTreeSet::new();
        let mut anywhere = BTreeSet::new();
        for (session, process, place) in open() {
            if process.is_some_and(|process| process.is(ancestor)) {
                anywhere.insert(session);
                if &place.worktree_id == worktree {
                    here.insert(session);
                }
            }
        }
        if anywhere.is_empty() {
            continue;
        }
        let named = by_environment.filter(|named| anywhere.contains(named));
        let only = |some: BTreeSet<&SessionRef>| {
            let mut some = some.into_iter();
            some.next().filter(|_| some.next().is_none()).cloned()
        };
        return named
            .cloned()
            .or_else(|| only(if here.is_empty() { anywhere } else { here }));
    }
    by_environment
        .filter(|named| {
            // A session with a process of its own would have been found above, were it the caller.
            open().any(|(session, process, _)| session == *named && process.is_none())
        })
        .cloned()
}

/// Returns where HEAD was. A checkout says so itself; for the rest git's own log does, that of the branch before that of
/// HEAD: a rebase moves HEAD often and the branch once.
fn head_before(place: &Place, event: &str, args: &[OsString], head: &Head) -> Option<Oid> {
    if event == "post-checkout" {
        return args.first().and_then(|id| real_id(id.to_str()?));
    }
    let after = head.commit.as_ref()?;
    let branch = head
        .branch
        .as_ref()
        .and_then(|branch| last_move(place, &format!("refs/heads/{branch}")));
    branch
        .into_iter()
        .chain(last_move(place, "HEAD"))
        .find(|moved| &moved.after == after)
        .and_then(|moved| moved.before)
}

/// Looks at the content where the tree is small.
fn inline_look(place: &Place, means: &Means<'_>) -> Option<Fingerprint> {
    if index_entries(&place.git_dir)? > INLINE_ENTRIES {
        return None;
    }
    // What cannot be seen now is looked at afterwards.
    let look = fingerprint::look(place, &means.options()).ok()?;
    look.record.fingerprint
}

/// Reads how many entries an index has, from its first twelve bytes (gitformat-index(5)).
fn index_entries(git_dir: &Path) -> Option<u32> {
    use std::io::Read as _;
    let mut file = crate::files::open_regular(&git_dir.join("index")).ok()??;
    let mut header = [0_u8; 12];
    file.read_exact(&mut header).ok()?;
    let (signature, rest) = header.split_first_chunk::<4>()?;
    let (_, count) = rest.split_last_chunk::<4>()?;
    (signature == b"DIRC").then(|| u32::from_be_bytes(*count))
}

/// Finds the outermost git command above us: a rebase calls others. A hook manager in any language may stand between.
pub(super) fn calling_git(
    processes: &dyn Processes,
    chain: &[ProcessIdentity],
) -> Option<ProcessIdentity> {
    chain
        .iter()
        .skip(1)
        .skip_while(|process| {
            process
                .name
                .as_deref()
                .is_none_or(|name| !name.starts_with("git") || name == "git-takeup")
        })
        .take_while(|process| {
            // Beyond the shell that git started there is nothing of this command.
            let program = processes.program(process.pid).ok().flatten();
            program.is_some_and(|program| {
                matches!(
                    program.as_str(),
                    "git" | "sh" | "dash" | "bash" | "ash" | "ksh" | "busybox" | "timeout"
                ) || (program.starts_with("git-") && program != "git-takeup")
            })
        })
        .filter(|process| {
            process
                .name
                .as_deref()
                .is_some_and(|name| name.starts_with("git"))
        })
        .last()
        .cloned()
}
