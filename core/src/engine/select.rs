//! Which task and which session a caller means.
use super::{Caller, Candidate, Choice, Elsewhere, EngineError, Site};
use crate::identity::Identity;
use crate::ids::{AgentId, SessionRef, TaskId};
use crate::ledger::{State, TaskEntry};
use crate::status::Refusal;
use crate::verdict::{Verdict, Whereabouts, misplaced};

/// Finds a task by its id, its title, or the beginning of its id where that is enough. An exact id means that task alone, also
/// where it is closed or archived and another one has it for a title.
pub(super) fn task<'a>(state: &'a State, text: &str) -> Result<&'a TaskEntry, EngineError> {
    let entries = || state.tasks.values();
    if let Some(entry) = entries().find(|entry| entry.task.task_id.as_str() == text) {
        return Ok(entry);
    }
    if is_id(state, text) {
        return Err(EngineError::NoTask(text.to_owned()));
    }
    let by_title: Vec<_> = entries().filter(|entry| entry.task.title == text).collect();
    let mut matching: Vec<_> = if by_title.is_empty() {
        entries()
            .filter(|entry| !text.is_empty() && entry.task.task_id.as_str().starts_with(text))
            .collect()
    } else {
        by_title
    };
    // Who shortens a name means what is unfinished, where one such is.
    if let [one] = matching
        .iter()
        .copied()
        .filter(|entry| !entry.is_closed())
        .collect::<Vec<_>>()
        .as_slice()
    {
        matching = vec![one];
    }
    match matching.as_slice() {
        [] => Err(EngineError::NoTask(text.to_owned())),
        [one] => Ok(one),
        several => Err(EngineError::AmbiguousOwn(
            several
                .iter()
                .filter_map(|entry| choice(entry.holder()?).into())
                .collect(),
        )),
    }
}

/// Tells whether a text is the id of a task there is, or was.
fn is_id(state: &State, text: &str) -> bool {
    let known = state.tasks.keys().chain(&state.archived);
    known.into_iter().any(|id| id.as_str() == text)
}

/// Keeps the candidates of the task that a text names, also of one that only an agent's own store knows.
pub(super) fn narrow(
    candidates: &mut Vec<Candidate>,
    state: &State,
    text: &str,
) -> Result<(), EngineError> {
    let named = |candidate: &Candidate| candidate.identity.task_id.as_str() == text;
    if is_id(state, text) || candidates.iter().any(named) {
        candidates.retain(named);
    } else {
        let wanted = match task(state, text) {
            Ok(entry) => entry.task.task_id.as_str(),
            Err(EngineError::NoTask(_)) => text,
            Err(error) => return Err(error),
        };
        candidates.retain(|candidate| {
            candidate.identity.task_id.as_str() == wanted || candidate.identity.title == text
        });
    }
    if candidates.is_empty() {
        return Err(EngineError::NoTask(text.to_owned()));
    }
    Ok(())
}

/// Adds to what is said of a closed task that was named by its id which unfinished one has its title.
pub(super) fn with_namesake(state: &State, text: Option<&str>, error: EngineError) -> EngineError {
    let is_over = closed_in(&error).is_some()
        || matches!(error, EngineError::NoTask(_))
        || matches!(&error, EngineError::Refused { judgement, .. } if judgement.verdict == Verdict::NotResumable);
    let Some(text) = text.filter(|text| is_over && is_id(state, text)) else {
        return error;
    };
    let known = state.tasks.values();
    let closed = known
        .clone()
        .find(|entry| entry.task.task_id.as_str() == text);
    let of_title = |entry: &&TaskEntry| {
        let title = entry.task.title.as_str();
        let same = match closed {
            Some(closed) => closed.task.title == title,
            None => TaskId::from_title(title).as_str() == text,
        };
        (same || title == text) && entry.task.task_id.as_str() != text
    };
    let mut open = known.filter(|entry| !entry.is_closed()).filter(of_title);
    match open.next() {
        Some(entry) => EngineError::Namesake {
            error: Box::new(error),
            open: entry.task.task_id.clone(),
        },
        None => error,
    }
}

/// Finds a task that is to be changed by whoever names it: it is neither closed, nor held in another work tree.
pub(super) fn open_here<'a>(
    site: &Site,
    state: &'a State,
    text: &str,
) -> Result<&'a TaskEntry, EngineError> {
    let entry = task(state, text).map_err(|error| with_namesake(state, Some(text), error))?;
    let Some(holder) = entry.holder() else {
        return Ok(entry);
    };
    if holder.status.is_closed() {
        return Err(with_namesake(state, Some(text), closed_error(holder)));
    }
    if !site.is_here(&holder.place)
        && let Some(there) = Elsewhere::of(site, holder)?
    {
        return Err(EngineError::HeldElsewhere(there));
    }
    refuse_copies(site, holder)?;
    Ok(entry)
}

/// Refuses in a copy of the place, and where a work tree is shared: what is recorded of an identity there would be taken for
/// the original's.
fn refuse_copies(site: &Site, identity: &Identity) -> Result<(), EngineError> {
    let whereabouts = site.whereabouts(&identity.place)?;
    let is_others = matches!(
        whereabouts,
        Whereabouts::Copied | Whereabouts::CopyOfGone | Whereabouts::Shared(_)
    );
    if is_others && let Some(judgement) = misplaced(whereabouts, &identity.place.root) {
        return Err(EngineError::Refused {
            task_id: identity.task_id.clone(),
            judgement,
        });
    }
    Ok(())
}

fn choice(identity: &Identity) -> Choice {
    Choice {
        task_id: identity.task_id.clone(),
        session: identity.session.clone(),
    }
}

/// Tells whether a text names a session: its id, `agent:id`, or the beginning of its id of at least four characters.
pub(super) fn names(text: &str, session: &SessionRef) -> bool {
    let id = session.id.as_str();
    id == text || session.to_string() == text || (text.len() >= 4 && id.starts_with(text))
}

/// What is given to a caller that names no session and runs in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// What it may act for: a person's own. An agent's session says itself what it leaves and when it ends.
    Own,
    /// What anybody holds, for one who reads, or says something of the task and nothing of its session.
    Anybodys,
}

/// Finds the open identities that the caller works on here: of the session that was named, else of the session whose
/// process is above the caller, else a person's, where that is only one. What an agent's session holds is nobody else's,
/// unless that session is named. In a copy of the place, or in another folder with its git folder, they are not the caller's:
/// what is recorded of them would be taken for the original's.
pub(super) fn own<'a>(
    site: &'a Site,
    state: &'a State,
    caller: &Caller,
    task_text: Option<&str>,
) -> Result<Vec<&'a Identity>, EngineError> {
    found(site, state, caller, task_text, Reach::Own)
}

fn found<'a>(
    site: &'a Site,
    state: &'a State,
    caller: &Caller,
    task_text: Option<&str>,
    reach: Reach,
) -> Result<Vec<&'a Identity>, EngineError> {
    let found = named(site, state, caller, task_text, reach)
        .map_err(|error| with_namesake(state, task_text, error))?;
    for identity in &found {
        refuse_copies(site, identity)?;
    }
    Ok(found)
}

fn named<'a>(
    site: &'a Site,
    state: &'a State,
    caller: &Caller,
    task_text: Option<&str>,
    reach: Reach,
) -> Result<Vec<&'a Identity>, EngineError> {
    let only: Option<TaskId> = task_text
        .map(|text| task(state, text).map(|entry| entry.task.task_id.clone()))
        .transpose()?;
    let here: Vec<&Identity> = state
        .tasks
        .values()
        .filter(|entry| only.as_ref().is_none_or(|only| only == &entry.task.task_id))
        .flat_map(|entry| &entry.identities)
        .filter(|identity| site.is_here(&identity.place))
        .collect();
    let open: Vec<&Identity> = here
        .iter()
        .copied()
        .filter(|identity| !identity.status.is_closed())
        .collect();
    if let Some(session) = &caller.session {
        let session = meant_session(session, &here)?;
        let record = state.session(&session);
        let started_as = record.and_then(|record| record.started_as.as_ref());
        let of_session = |identities: &[&'a Identity]| -> Vec<&'a Identity> {
            let is_its = |identity: &&Identity| {
                identity.session == session || Some(&identity.session) == started_as
            };
            identities.iter().copied().filter(is_its).collect()
        };
        let found = of_session(&open);
        if !found.is_empty() {
            return Ok(found);
        }
        if let Some(closed) = last_changed(of_session(&here)) {
            return Err(closed_error(closed));
        }
        let held = |identity: &&Identity| identity.session == session;
        return Err(match elsewhere(site, state, only.as_ref(), held)? {
            Some(elsewhere) => elsewhere,
            None => holds_nothing(&session, open),
        });
    }
    let above: Vec<&Identity> = open
        .iter()
        .copied()
        .filter(|identity| {
            identity
                .process
                .as_ref()
                .is_some_and(|process| caller.descends_from(process))
        })
        .collect();
    let found = match &caller.agent {
        _ if !above.is_empty() => above,
        Some(agent) if *agent != AgentId::person() => of_unnamed(agent, open)?,
        _ if reach == Reach::Anybodys => open,
        _ => of_persons(open)?,
    };
    let mut sessions: Vec<&SessionRef> = found.iter().map(|identity| &identity.session).collect();
    sessions.sort();
    sessions.dedup();
    match sessions.len() {
        0 if only.is_none() => Err(EngineError::NoTasks),
        0 => Err(match here.last() {
            Some(closed) => closed_error(closed),
            None => {
                elsewhere(site, state, only.as_ref(), |_| true)?.unwrap_or(EngineError::NoTasks)
            }
        }),
        1 => Ok(found),
        _ => Err(EngineError::AmbiguousOwn(
            found.into_iter().map(choice).collect(),
        )),
    }
}

/// Returns what an agent may hold that does not say which session it is, and that no process of a session stands above: what it
/// began where no process could be told. What others hold it has to take up like everybody.
fn of_unnamed<'a>(
    agent: &AgentId,
    open: Vec<&'a Identity>,
) -> Result<Vec<&'a Identity>, EngineError> {
    let is_own =
        |identity: &Identity| identity.session.agent == *agent && identity.process.is_none();
    only_own(open, is_own, Some(agent))
}

/// Returns what a person may hold who is in none of the sessions: what persons began, in whichever terminal.
fn of_persons(open: Vec<&Identity>) -> Result<Vec<&Identity>, EngineError> {
    let person = AgentId::person();
    only_own(open, |identity| identity.session.agent == person, None)
}

fn only_own<'a>(
    open: Vec<&'a Identity>,
    is_own: impl Fn(&Identity) -> bool,
    agent: Option<&AgentId>,
) -> Result<Vec<&'a Identity>, EngineError> {
    let (own, others): (Vec<&Identity>, Vec<&Identity>) =
        open.into_iter().partition(|identity| is_own(identity));
    match last_changed(others) {
        Some(held) if own.is_empty() => Err(EngineError::HeldByOther {
            task_id: held.task_id.clone(),
            holder: held.session.clone(),
            agent: agent.cloned(),
        }),
        _ => Ok(own),
    }
}

/// Says that a session holds nothing here, and what others hold that it may have meant.
fn holds_nothing(session: &SessionRef, open: Vec<&Identity>) -> EngineError {
    match last_changed(open) {
        Some(held) => EngineError::HoldsNothing {
            session: session.id.clone(),
            task_id: held.task_id.clone(),
            holder: held.session.clone(),
        },
        None => EngineError::NoSession(session.id.to_string()),
    }
}

/// Finds the identity that a reader means who names no task: the caller's own, else the one its session closed last.
pub(super) fn to_read<'a>(
    site: &'a Site,
    state: &'a State,
    caller: &Caller,
) -> Result<&'a Identity, EngineError> {
    let caller = &caller.as_reader();
    let error = match anybodys_one(site, state, caller, None) {
        Ok(identity) => return Ok(identity),
        Err(error) => error,
    };
    let entry = closed_in(&error).and_then(|task_id| state.tasks.get(task_id));
    let named = caller.session.as_ref();
    let of_session = |identity: &&Identity| {
        named.is_some_and(|named| named.id == identity.session.id) && site.is_here(&identity.place)
    };
    let held = entry.map(|entry| entry.identities.iter().filter(of_session).collect());
    held.and_then(last_changed).ok_or(error)
}

/// Returns the task of which a failure says that it is closed in the session.
const fn closed_in(error: &EngineError) -> Option<&TaskId> {
    if let EngineError::AlreadyTakenUp { task_id, .. }
    | EngineError::Transition {
        task_id,
        refusal: Refusal::Closed,
    } = error
    {
        Some(task_id)
    } else {
        None
    }
}

/// Returns the identity that was changed last.
fn last_changed(identities: Vec<&Identity>) -> Option<&Identity> {
    identities
        .into_iter()
        .max_by_key(|identity| identity.updated_at)
}

/// Says where the open identity is that is meant and is not here, if there is one.
fn elsewhere(
    site: &Site,
    state: &State,
    only: Option<&TaskId>,
    is_meant: impl FnMut(&&Identity) -> bool,
) -> Result<Option<EngineError>, EngineError> {
    let open = state
        .tasks
        .values()
        .filter(|entry| only.is_none_or(|only| only == &entry.task.task_id))
        .flat_map(|entry| &entry.identities)
        .filter(|identity| !identity.status.is_closed());
    let Some(identity) = open.rev().find(is_meant) else {
        return Ok(None);
    };
    Ok(Elsewhere::of(site, identity)?.map(EngineError::HeldElsewhere))
}

/// Returns the session here that a caller means by the one it names: itself, else the only one of the same id where one of
/// the two does not say whose it is (`--session` without `--agent` is written down as a person's).
fn meant_session(named: &SessionRef, here: &[&Identity]) -> Result<SessionRef, EngineError> {
    let mut same: Vec<&SessionRef> = here
        .iter()
        .map(|identity| &identity.session)
        .filter(|session| session.id == named.id)
        .collect();
    same.sort();
    same.dedup();
    if same.contains(&named) {
        return Ok(named.clone());
    }
    let person = AgentId::person();
    match same.as_slice() {
        [] => Ok(named.clone()),
        [only] if named.agent == person || only.agent == person => Ok((*only).clone()),
        others => Err(EngineError::OtherAgent {
            session: named.id.clone(),
            agents: others.iter().map(|other| other.agent.clone()).collect(),
        }),
    }
}

/// Finds the one open identity the caller means.
pub(super) fn own_one<'a>(
    site: &'a Site,
    state: &'a State,
    caller: &Caller,
    task_text: Option<&str>,
) -> Result<&'a Identity, EngineError> {
    one_of(own(site, state, caller, task_text)?)
}

/// Finds the one open identity that is meant by a caller who does nothing in the name of its session: as [`own_one`], else
/// the only one there is, whoever holds it.
pub(super) fn anybodys_one<'a>(
    site: &'a Site,
    state: &'a State,
    caller: &Caller,
    task_text: Option<&str>,
) -> Result<&'a Identity, EngineError> {
    one_of(found(site, state, caller, task_text, Reach::Anybodys)?)
}

fn one_of(found: Vec<&Identity>) -> Result<&Identity, EngineError> {
    match found.as_slice() {
        [one] => Ok(one),
        several => Err(EngineError::AmbiguousOwn(
            several.iter().map(|identity| choice(identity)).collect(),
        )),
    }
}

/// Says why nothing can be done with a closed identity.
pub(super) fn closed_error(identity: &Identity) -> EngineError {
    match &identity.resumed_to {
        Some(winner) => EngineError::AlreadyTakenUp {
            task_id: identity.task_id.clone(),
            winner: winner.clone(),
            at: identity.updated_at,
        },
        None => EngineError::Transition {
            task_id: identity.task_id.clone(),
            refusal: Refusal::Closed,
        },
    }
}
