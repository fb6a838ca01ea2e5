//! `resume`: one session takes up what another left. One append decides; whoever comes second is told who was first.
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::candidate::{Candidate, IdentityView};
use super::candidates::Gatherer;
use super::recorded::seen_here;
use super::start::record;
use super::taken::TakeUp;
use super::views::NextView;
use super::{
    Caller, Changes, Choice, Engine, EngineError, PATIENCE, Site, before, effects, import, select,
};
use crate::agent::Effect;
use crate::fingerprint::{Look, ProvenanceEvent};
use crate::identity::{Identity, OpenEffect};
use crate::ids::{AgentId, SessionId, SessionRef, TaskId};
use crate::ledger::{Change, State, Transition, View};
use crate::names;
use crate::process::Liveness;
use crate::repository;
use crate::time::Time;
use crate::verdict::{ReasonCode, Verdict};

/// How often a take-up looks anew when the ledger moved under it.
const TRIES: usize = 5;

/// How long a take-up counts as just made, in milliseconds.
const JUST_NOW: i64 = 60_000;

/// How the take-up is confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Confirm {
    /// Not at all: only ask.
    #[default]
    No,
    /// By a person who saw that there is one candidate, and it is compatible.
    Plainly,
    /// By a person who wants to go on with the present content, whatever it is.
    Rebuild,
    /// By the token that `inspect` showed.
    Token(String),
}

/// What `resume` is given.
#[derive(Clone, Debug, Default)]
pub struct ResumeRequest {
    /// The task.
    pub task: Option<String>,
    /// The session that left it.
    pub from: Option<String>,
    /// The session that takes it up; the caller's own where none is named.
    pub to: Option<String>,
    /// The agent of the session that takes it up.
    pub agent: Option<String>,
    /// The process that stands for it.
    pub pid: Option<u32>,
    /// The confirmation.
    pub confirm: Confirm,
    /// Trust no metadata and no cache.
    pub verify: bool,
}

/// The answer of `resume`. The same call again gives the same answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resumed {
    /// What the task was taken up as: `resume-verification`, or `stale-task` when it was rebuilt.
    pub verdict: Verdict,
    /// The source, now abandoned; `null` where the same session goes on.
    pub source: Option<IdentityView>,
    /// The identity of the session that took it up.
    pub identity: IdentityView,
    /// Its agent.
    pub agent: String,
    /// What differs from what was left, where it was stale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// Calls that may or may not have happened; look before repeating them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_effects: Vec<OpenEffect>,
    /// Why it is not known whether the session that left it still lives, where that is so. Said to people by the call that takes
    /// up; an equal call later gives the same answer without it.
    #[serde(skip)]
    pub liveness_unknown: Option<String>,
    /// What the agents' own files do not show, and why. Where they only could not be written, the next call that writes tries
    /// again; where they contradict it, they stay as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_applied: Vec<String>,
    /// Always `evaluate`: taking up proves nothing.
    pub next: NextView,
    /// Something was written.
    #[serde(skip)]
    pub wrote: bool,
}

/// Begins the session that takes a task up, in a work tree's folder, and returns the process that stands for it; `None`
/// where it lived and is over. Fails with [`EngineError::NotBegun`] where it did not come to life.
pub type Begin<'a> = dyn FnMut(&SessionRef, &Path) -> Result<Option<u32>, EngineError> + 'a;

/// Takes a task up.
pub fn resume(engine: &Engine<'_>, request: &ResumeRequest) -> Result<Resumed, EngineError> {
    resume_with(engine, request, None)
}

/// Takes a task up for a session that begins with it, as a new one where the request names none.
///
/// `begin` is called once, when the take-up is allowed and confirmed and before anything is recorded. Where it fails, the
/// source stays as it was. What the new session does to the tree meanwhile does not count: what was looked at before is taken
/// up. Where another session was faster, the take-up fails after `begin`; what was begun is the caller's to end.
pub fn resume_and_begin(
    engine: &Engine<'_>,
    request: &ResumeRequest,
    begin: &mut Begin<'_>,
) -> Result<Resumed, EngineError> {
    resume_with(engine, request, Some(begin))
}

fn resume_with(
    engine: &Engine<'_>,
    request: &ResumeRequest,
    begin: Option<&mut Begin<'_>>,
) -> Result<Resumed, EngineError> {
    let mut site = Site::open(engine)?;
    let error = match take_up(engine, request, &mut site, begin) {
        Ok(resumed) => return Ok(resumed),
        Err(error) => error,
    };
    let nothing_found = matches!(
        error,
        EngineError::NoTask(_)
            | EngineError::NoTasks
            | EngineError::NoSession(_)
            | EngineError::HoldsNothing { .. }
            | EngineError::NothingLeft(_)
    );
    Err(
        if nothing_found && request.from.is_none() && !site.is_used() {
            site.unused(request.task.as_deref())
        } else {
            select::with_namesake(&site.view.state, request.task.as_deref(), error)
        },
    )
}

fn take_up(
    engine: &Engine<'_>,
    request: &ResumeRequest,
    site: &mut Site,
    mut begin: Option<&mut Begin<'_>>,
) -> Result<Resumed, EngineError> {
    let to = request.to.as_deref();
    let mut caller = Caller::find(engine, to, request.agent.as_deref(), request.pid)?;
    if begin.is_some() && to.is_none() {
        // The calling session is not the one that begins.
        caller.session = None;
    }
    let keep = site.is_used() && request.confirm != Confirm::No;
    let look = site.settled_look(engine, &caller, keep, request.verify)?;
    let named = caller.session.is_some();
    let mut made_up = None;
    for _ in 0..TRIES {
        let view = site.ledger.read()?;
        if site.tokens.worktree.is_none() {
            // Somebody else may have begun here meanwhile; what that one wrote is of this place.
            site.tokens = repository::tokens(site.place())?;
        }
        if caller.session.is_none() {
            let name = made_up.get_or_insert_with(|| {
                names::memorable(|name| {
                    let identities = view
                        .state
                        .tasks
                        .values()
                        .flat_map(|entry| &entry.identities);
                    identities
                        .into_iter()
                        .any(|identity| identity.session.id.as_str() == name)
                })
            });
            caller.session = Some(SessionRef::new(
                caller.agent_or_person(),
                SessionId::new(name.as_str())?,
            ));
        }
        if let Some(mut answer) = attempt(
            engine,
            request,
            site,
            &mut caller,
            named,
            &look,
            &view,
            &mut begin,
        )? {
            answer.not_applied = effects::settle(engine, site, &caller.actor())?.not_applied();
            return Ok(answer);
        }
    }
    Err(EngineError::Changed("the task".to_owned()))
}

/// One attempt. `None`: the ledger moved in between, look again. `named`: somebody named the session that takes it up.
#[expect(
    clippy::too_many_arguments,
    reason = "each is one thing that an attempt needs; a struct would only repeat it"
)]
fn attempt(
    engine: &Engine<'_>,
    request: &ResumeRequest,
    site: &Site,
    caller: &mut Caller,
    named: bool,
    look: &Look,
    view: &View,
    begin: &mut Option<&mut Begin<'_>>,
) -> Result<Option<Resumed>, EngineError> {
    let target = caller.session.clone().ok_or(EngineError::SessionUnknown)?;
    if let Some(answer) = repeated(&view.state, request, &target)? {
        return Ok(Some(answer));
    }
    let gatherer = Gatherer::new(engine, site, caller, look);
    let from = request.from.as_deref();
    let from = from.map(|from| gatherer.meant(view, from));
    let request = &ResumeRequest {
        from,
        ..request.clone()
    };
    if let Some(answer) = repeated(&view.state, request, &target)? {
        return Ok(Some(answer));
    }
    let candidate = choose(&gatherer, view, request, &target, engine.clock.now())?;
    let task_id = candidate.identity.task_id.clone();
    permit(&candidate, request, &target, named)?;
    if let Some(begin) = begin.take() {
        let pid = begin(&target, &site.place().root)?;
        caller.process = pid.map_or(Ok(None), |pid| engine.processes.identify(pid))?;
        caller.process_named = true;
    }
    // Work that only an agent's own store knows can be taken up where takeup was never used: the yes makes the ledger.
    site.make_tokens(engine)?;

    let at = engine.clock.now();
    let compatible = candidate.verdict == Verdict::ResumeVerification;
    let now = record(look, ProvenanceEvent::TakeUp, at, &target);
    let source_session = candidate.session();
    let same_session = source_session == target;
    let effect = look
        .record
        .fingerprint
        .clone()
        .map(|fingerprint| Effect::TakenUp {
            task_id: task_id.clone(),
            title: candidate.identity.title.clone(),
            source: source_session.clone(),
            target: target.clone(),
            fingerprint,
            compatible,
            at,
        });
    let decided = match (&effect, same_session) {
        (Some(effect), false) => effects::decided(engine, site, None, effect),
        _ => Vec::new(),
    };
    let place = site.place_record()?;
    let recorded = site.view.state.session(&candidate.session());
    let recorded = recorded.and_then(|record| seen_here(site, record));
    let recorded = recorded.as_deref();
    let equal = compatible.then_some(&now);
    let entry = view.state.tasks.get(&task_id);
    let imported = import::records(engine, entry, recorded, &candidate, &place, equal, at);
    let before = before::carried(site, view, &candidate, imported.as_ref(), look);
    let seen = seq_of(view, &task_id);
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        if seq_of(view, &task_id) != seen {
            return Ok((None, None));
        }
        let entry = view.state.tasks.get(&task_id);
        let known = entry.and_then(|entry| entry.identity(&source_session));
        let (source, mut changes) = match (known, &imported) {
            (Some(known), _) => (known.clone(), Vec::new()),
            (None, Some((task, identity))) => {
                let task = entry.map_or(task, |entry| &entry.task);
                (identity.clone(), vec![Change::Task { task: task.clone() }])
            }
            (None, None) => return Err(EngineError::Changed(format!("task {task_id}"))),
        };
        let refuse = |refusal| EngineError::Transition {
            task_id: task_id.clone(),
            refusal,
        };
        let taking = TakeUp {
            caller,
            target: &target,
            place: &place,
            now: &now,
            before: &before,
            compatible,
            at,
        };
        let (recorded, outcome) = if same_session {
            match taking
                .same_session(&source, known.is_some())
                .map_err(refuse)?
            {
                None => return Ok((None, Some((None, source)))),
                Some(identity) => (vec![identity.clone()], (None, identity)),
            }
        } else {
            let identities = entry.map_or(&[][..], |entry| &entry.identities);
            // The agent's own store may know of more calls than was recorded, and it will not for ever.
            let mut source = source;
            source.open_effects.clone_from(&candidate.open_effects);
            let taken = taking.taken_over(identities, &source).map_err(refuse)?;
            let mut recorded = taken.others;
            recorded.extend([taken.source.clone(), taken.identity.clone()]);
            (recorded, (Some(taken.source), taken.identity))
        };
        changes.extend(recorded.into_iter().map(|identity| Change::Identity {
            identity: Box::new(identity),
        }));
        changes.extend(decided.iter().map(|effect| Change::Decided {
            effect: Box::new(effect.clone()),
        }));
        let transition = Transition {
            at,
            actor: caller.actor(),
            operation: "resume".to_owned(),
            changes,
        };
        Ok((Some(transition), Some(outcome)))
    })?;
    let wrote = committed.wrote;
    Ok(committed.value.map(|(source, identity)| {
        let title = candidate.identity.title.as_str();
        Resumed {
            verdict: candidate.verdict,
            source: source.map(|source| IdentityView::of(&source, title)),
            agent: identity.session.agent.to_string(),
            next: evaluate_next(&identity),
            identity: IdentityView::of(&identity, title),
            changes: if compatible {
                None
            } else {
                candidate.changes.clone()
            },
            open_effects: candidate.open_effects.clone(),
            liveness_unknown: unknown_life(&candidate, &target).map(ToOwned::to_owned),
            not_applied: Vec::new(),
            wrote,
        }
    }))
}

/// Returns the number of the last line that changed anything of a task.
fn seq_of(view: &View, task_id: &TaskId) -> Option<u64> {
    view.state.tasks.get(task_id).map(|entry| entry.seq)
}

fn evaluate_next(identity: &Identity) -> NextView {
    let task = identity.task_id.as_str();
    NextView::new(
        "evaluate",
        &[
            "git",
            "takeup",
            "evaluate",
            task,
            "--session",
            identity.session.id.as_str(),
        ],
    )
}

/// Finds the answer of an earlier, equal call: the target holds the task already, taken up from the session that is named.
fn repeated(
    state: &State,
    request: &ResumeRequest,
    target: &SessionRef,
) -> Result<Option<Resumed>, EngineError> {
    let wanted = match &request.task {
        Some(text) => match select::task(state, text) {
            Ok(entry) => Some(entry.task.task_id.clone()),
            Err(EngineError::NoTask(_)) => return Ok(None),
            Err(error) => return Err(error),
        },
        None => None,
    };
    let held: Vec<_> = state
        .tasks
        .values()
        .filter(|entry| {
            wanted
                .as_ref()
                .is_none_or(|wanted| wanted == &entry.task.task_id)
        })
        .filter_map(|entry| {
            let identity = entry
                .identity(target)
                .filter(|identity| !identity.status.is_closed())?;
            let source = entry.identity(identity.resumed_from.as_ref()?)?;
            let from = request.from.as_deref();
            (source.resumed_to.as_ref() == Some(target)
                && from.is_none_or(|from| select::names(from, &source.session)))
            .then_some((entry, identity, source))
        })
        .collect();
    let [(entry, identity, source)] = held.as_slice() else {
        return Ok(None);
    };
    if request.from.is_none() && request.task.is_none() {
        return Ok(None);
    }
    let title = entry.task.title.as_str();
    let stale = identity
        .base
        .as_ref()
        .is_some_and(|base| base.provenance.event == ProvenanceEvent::TakeUp);
    Ok(Some(Resumed {
        verdict: if stale {
            Verdict::StaleTask
        } else {
            Verdict::ResumeVerification
        },
        source: Some(IdentityView::of(source, title)),
        agent: identity.session.agent.to_string(),
        identity: IdentityView::of(identity, title),
        changes: None,
        open_effects: source.open_effects.clone(),
        liveness_unknown: None,
        not_applied: Vec::new(),
        next: evaluate_next(identity),
        wrote: false,
    }))
}

/// Picks the candidate that is meant.
fn choose(
    gatherer: &Gatherer<'_>,
    view: &View,
    request: &ResumeRequest,
    target: &SessionRef,
    now: Time,
) -> Result<Candidate, EngineError> {
    let mut matching = gatherer.all(view)?;
    if let Some(text) = &request.task {
        select::narrow(&mut matching, &view.state, text)?;
    }
    if let Some(from) = &request.from {
        gatherer.keep_of(&mut matching, view, from)?;
    }
    if let Confirm::Token(token) = &request.confirm {
        return match matching
            .iter()
            .position(|candidate| candidate.token.as_ref() == Some(token))
        {
            Some(index) => Ok(matching.swap_remove(index)),
            None => Err(stale_token(&matching)),
        };
    }
    let closed = |candidate: &Candidate| candidate.verdict == Verdict::NotResumable;
    let elsewhere = |candidate: &Candidate| candidate.verdict == Verdict::MismatchedRepository;
    let open: Vec<usize> = (0..matching.len())
        .filter(|index| {
            matching
                .get(*index)
                .is_some_and(|candidate| !closed(candidate) && !elsewhere(candidate))
        })
        .collect();
    let pick = match open.as_slice() {
        [one] => *one,
        // Nothing can be taken up: say why of the one that comes nearest.
        [] if !matching.is_empty() => 0,
        [] => return Err(EngineError::NoTasks),
        several => {
            let own: Vec<_> = several
                .iter()
                .copied()
                .filter(|index| {
                    matching
                        .get(*index)
                        .is_some_and(|candidate| &candidate.session() == target)
                })
                .collect();
            match own.as_slice() {
                [one] => *one,
                _ => {
                    return Err(EngineError::Ambiguous(
                        several
                            .iter()
                            .filter_map(|index| matching.get(*index))
                            .map(|candidate| Choice {
                                task_id: candidate.identity.task_id.clone(),
                                session: candidate.session(),
                            })
                            .collect(),
                    ));
                }
            }
        }
    };
    let candidate = matching.swap_remove(pick);
    if request.from.is_none()
        && &candidate.session() != target
        && let Some(at) = just_taken_up(&view.state, &candidate, now)
    {
        return Err(EngineError::AlreadyTakenUp {
            task_id: candidate.identity.task_id.clone(),
            winner: candidate.session(),
            at,
        });
    }
    Ok(candidate)
}

/// Tells when another session took the task up, if that was a moment ago and nothing shows that it ended. Who then asks for
/// the task without naming that session came second in a race; to continue from there on purpose, name it. Where the task
/// is over or waits for a person, that is the answer.
fn just_taken_up(state: &State, candidate: &Candidate, now: Time) -> Option<Time> {
    let answer = match candidate.verdict {
        Verdict::ResumeVerification | Verdict::StaleTask | Verdict::InUse => false,
        Verdict::NotResumable | Verdict::HumanReview | Verdict::MismatchedRepository => true,
    };
    let over = matches!(
        candidate.liveness,
        Liveness::Ended { .. } | Liveness::Crashed { .. }
    );
    let entry = state.tasks.get(&candidate.identity.task_id)?;
    let holder = entry.identity(&candidate.session())?;
    let source = entry.identity(holder.resumed_from.as_ref()?)?;
    // The source was closed by the take-up; the holder's own record is renewed by all that it does.
    let at = source.updated_at;
    (!answer && !over && now.since(at) < JUST_NOW).then_some(at)
}

/// Says what a token that fits nothing means: somebody was first, or something changed.
fn stale_token(candidates: &[Candidate]) -> EngineError {
    match candidates
        .iter()
        .find(|candidate| candidate.resumed_to.is_some())
    {
        Some(candidate) if candidates.len() <= 2 => already(candidate),
        _ => EngineError::Changed("what the token was given for".to_owned()),
    }
}

fn already(candidate: &Candidate) -> EngineError {
    match &candidate.resumed_to {
        Some(winner) => EngineError::AlreadyTakenUp {
            task_id: candidate.identity.task_id.clone(),
            winner: winner.clone(),
            at: candidate.identity.updated_at,
        },
        None => EngineError::Refused {
            task_id: candidate.identity.task_id.clone(),
            judgement: candidate.judgement(),
        },
    }
}

/// Demands that the verdict allows it and that the confirmation is for this.
fn permit(
    candidate: &Candidate,
    request: &ResumeRequest,
    target: &SessionRef,
    named: bool,
) -> Result<(), EngineError> {
    let task_id = candidate.identity.task_id.clone();
    match candidate.verdict {
        Verdict::NotResumable => return Err(already(candidate)),
        Verdict::MismatchedRepository | Verdict::HumanReview | Verdict::InUse => {
            return Err(EngineError::Refused {
                task_id,
                judgement: candidate.judgement(),
            });
        }
        Verdict::ResumeVerification | Verdict::StaleTask => {}
    }
    let stale = candidate.verdict == Verdict::StaleTask;
    match &request.confirm {
        // Going on in the same session with the content that it left itself needs no one's word.
        Confirm::No if !stale && &candidate.session() == target => Ok(()),
        Confirm::Token(_) | Confirm::Rebuild => Ok(()),
        Confirm::Plainly if !stale => Ok(()),
        Confirm::No | Confirm::Plainly => {
            let mut reason = candidate
                .reasons
                .first()
                .map_or_else(String::new, |reason| reason.message.clone());
            if let Some(unknown) = unknown_life(candidate, target) {
                reason = format!("{reason}; {unknown}");
            }
            let words = [
                "git",
                "takeup",
                "resume",
                task_id.as_str(),
                "--from",
                candidate.identity.session_id.as_str(),
            ];
            let mut words = words.to_vec();
            // Whoever runs the command may be elsewhere: who asked is said by it.
            if named && target.id != SessionId::terminal() {
                words.extend(["--to", target.id.as_str()]);
            }
            if target.agent != AgentId::person() {
                words.extend(["--agent", target.agent.as_str()]);
            }
            match &candidate.token {
                Some(token) => words.extend(["--confirm", token]),
                None => words.push("--rebuild"),
            }
            Err(EngineError::NeedsConfirmation {
                what: format!("task {task_id} is {}: {reason}", candidate.verdict.code()),
                command: NextView::new("confirm", &words).command.unwrap_or_default(),
            })
        }
    }
}

/// Says that it is not known whether the session that left it still lives, and why, where that is so.
fn unknown_life<'a>(candidate: &'a Candidate, target: &SessionRef) -> Option<&'a str> {
    candidate
        .reasons
        .iter()
        .find(|reason| reason.code == ReasonCode::LivenessUnknown)
        .filter(|_| &candidate.session() != target)
        .map(|reason| reason.message.as_str())
}
