//! What the hooks of agents say: sessions begin and end, turns end, tools run. Recorded where takeup is used; elsewhere
//! nothing is written and nothing is made.
use std::path::Path;
use std::time::Duration;

use super::running::ends_between;
use super::start::{SaveRequest, record, saved_identity};
use super::{Caller, Candidate, Engine, EngineError, InspectRequest, Site, effects, inspect};
use crate::agent::{Agent, HookEvent, HookKind};
use crate::env::Env;
use crate::fingerprint::{Look, ProvenanceEvent};
use crate::identity::{Closing, Identity, OpenEffect, SessionRecord};
use crate::ids::SessionRef;
use crate::ledger::{Change, Transition, View};
use crate::process::ProcessIdentity;
use crate::redact;
use crate::repository::{RepositoryError, clean_environment, discover};
use crate::text;
use crate::time::Time;
use crate::verdict::Verdict;

/// How many open calls of a session are kept.
const EFFECTS: usize = 20;
/// How long an argument is kept.
const ARGUMENT: usize = 200;

/// How long the ledger's lock is waited for: less than an agent's hook may take, so that a failure is told of.
const HOOK_PATIENCE: Duration = Duration::from_secs(3);

/// Takes what an agent's hook handed over. Returns what the agent should show its model, in the agent's own form.
pub fn agent_hook(
    engine: &Engine<'_>,
    agent: &dyn Agent,
    event: &str,
    input: &[u8],
) -> Result<Option<String>, EngineError> {
    let said = agent.hook(engine.env, event, input)?;
    if said.kind == HookKind::Ignored {
        return Ok(None);
    }
    let told = said.cwd.as_deref().filter(|cwd| cwd.is_absolute());
    let env = told.map_or_else(|| engine.env.clone(), |cwd| env_in(engine.env, cwd));
    let engine = Engine {
        env: &env,
        ..*engine
    };
    let site = Site::open(&engine)?;
    // What nobody is shown is said when somebody is.
    let is_heard = agent.hook_reply(event, "").is_some();
    let mut heard = if site.is_used() {
        record_event(&engine, &site, &said, is_heard)?
    } else {
        Heard::default()
    };
    let lines = &mut heard.lines;
    if matches!(said.kind, HookKind::SessionStart | HookKind::Compaction) {
        let session = heard.started_as.as_ref().unwrap_or(&said.session);
        drop(lines.splice(0..0, notice(&engine, session)?));
    }
    if lines.is_empty() {
        return Ok(None);
    }
    Ok(agent.hook_reply(event, &lines.join("\n")))
}

/// Returns the environment in the folder that an agent works in. The repository around it counts: `GIT_DIR` and its kin may be
/// set for another one. Where there is none around it, they say which is meant.
fn env_in(env: &Env, cwd: &Path) -> Env {
    let there = env.at(cwd);
    if env.var("GIT_DIR").is_none() {
        return there;
    }
    let plain = clean_environment(&there);
    match discover(&plain, cwd) {
        Err(RepositoryError::NotARepository { .. } | RepositoryError::Bare { .. }) => there,
        Ok(_) | Err(_) => plain,
    }
}

/// What is known of the session that an event is of.
#[derive(Debug, Default)]
struct Heard {
    /// What a session that begins, or whose turn begins, has to hear, a line each: since it heard something last.
    lines: Vec<String>,
    /// The session that it was started as.
    started_as: Option<SessionRef>,
}

/// Records an event.
fn record_event(
    engine: &Engine<'_>,
    site: &Site,
    said: &HookEvent,
    is_heard: bool,
) -> Result<Heard, EngineError> {
    let caller = Caller {
        session: Some(said.session.clone()),
        ..Caller::find(engine, None, None, None)?
    };
    let looks = matches!(
        said.kind,
        HookKind::TurnEnd { .. } | HookKind::SessionEnd { .. }
    );
    let look = match looks.then(|| site.settled_look(engine, &caller, true, false)) {
        // While a commit runs its hooks, what was left stays as it was last seen.
        None | Some(Err(EngineError::CommitRuns { .. })) => None,
        Some(look) => Some(look?),
    };
    // A work tree that was added since: takeup is used in its repository, so it is here too.
    site.make_tokens(engine)?;
    let place = site.place_record()?;
    let at = engine.clock.now();
    let committed = site.ledger.transact(engine.clock, HOOK_PATIENCE, |view| {
        let known = view.state.session(&said.session);
        let mut session = known.cloned().unwrap_or_else(|| SessionRecord {
            session: said.session.clone(),
            place: place.clone(),
            latest: None,
            process: None,
            closing: None,
            open_effects: Vec::new(),
            acted_at: None,
            acted_after: None,
            told_at: None,
            started_as: None,
            prompt: None,
            left: Vec::new(),
            created_at: at,
            updated_at: at,
        });
        session.go_on_in(place.clone());
        if session.started_as.is_none() {
            session.started_as = started_as(view, said, &caller);
        }
        let started_as = session.started_as.clone();
        let told_at = session.told_at;
        let heard_at = told_at.unwrap_or(session.created_at);
        let lost = if matches!(said.kind, HookKind::TurnStart { .. }) {
            let names = std::iter::once(&said.session).chain(&started_as);
            names
                .flat_map(|session| lost_since(view, session, heard_at))
                .collect()
        } else {
            Vec::new()
        };
        let told = session.process.clone();
        let speaking = |known: Option<&ProcessIdentity>| Caller {
            process_named: speaks_for(engine, said, &caller, known, told.as_ref()),
            ..caller.clone()
        };
        let speaker = speaking(told.as_ref());
        if said.kind == HookKind::SessionStart && caller.process.is_none() {
            session.process = None;
        }
        apply(engine, &mut session, said, look.as_ref(), &speaker, at);
        if !is_heard {
            session.told_at = told_at;
        }
        let mut changes = Vec::new();
        let mut shown = Vec::new();
        for identity in held(site, view, said, started_as.as_ref()) {
            // The content here says nothing of what was left elsewhere.
            let look = look.as_ref().filter(|_| site.is_here(&identity.place));
            let speaker = Caller {
                session: Some(identity.session.clone()),
                ..speaking(identity.process.as_ref())
            };
            if let Some(next) = follow(identity, &session, said, look, &speaker, at)? {
                shown.push(next.task_id.clone());
                changes.push(Change::Identity {
                    identity: Box::new(next),
                });
            }
        }
        if known != Some(&session) {
            session.updated_at = at;
            changes.push(Change::Session {
                session: Box::new(session),
            });
        }
        let transition = (!changes.is_empty()).then(|| Transition {
            at,
            actor: caller.actor(),
            operation: "hook".to_owned(),
            changes,
        });
        let heard = Heard {
            lines: lost,
            started_as,
        };
        Ok::<_, EngineError>((transition, (shown, heard, heard_at)))
    })?;
    let (shown, mut heard, heard_at) = committed.value;
    for task_id in &shown {
        effects::mirror(engine, site, task_id);
    }
    let begins = matches!(
        said.kind,
        HookKind::SessionStart | HookKind::TurnStart { .. }
    );
    if begins && is_heard {
        let span = (heard_at, at);
        heard
            .lines
            .extend(ends_between(engine, site, &said.session, span));
    }
    Ok(heard)
}

/// Returns the session as which the agent that speaks was started: the one that its environment names, where that holds a
/// task as the agent's and its process is above the hook. An agent names its session by itself, and the command that
/// started it could not know that name. One conversation at a time goes by it: another agent's, or one within the first, does not.
fn started_as(view: &View, said: &HookEvent, caller: &Caller) -> Option<SessionRef> {
    let started_as = caller
        .environment
        .as_ref()
        .filter(|named| **named != said.session && named.agent == said.session.agent)?;
    let above = |process: &ProcessIdentity| caller.descends_from(process);
    let holds = view.state.of_session(&started_as.id).any(|identity| {
        &identity.session == started_as
            && !identity.status.is_closed()
            && identity.process.as_ref().is_some_and(above)
    });
    let is_taken = view.state.sessions.iter().any(|record| {
        record.session != said.session
            && record.closing.is_none()
            && record.started_as.as_ref() == Some(started_as)
    });
    (holds && !is_taken).then(|| started_as.clone())
}

/// Tells whether the process of a hook stands for its session from now on: who speaks for a session is it, and one may be
/// continued in another process while the first still runs. What an agent calls its hooks with is not: the agent is above
/// it. Nor is it in the place of a process that somebody named and that runs, unless the session begins: `told` is the one
/// that hooks told of.
fn speaks_for(
    engine: &Engine<'_>,
    said: &HookEvent,
    caller: &Caller,
    known: Option<&ProcessIdentity>,
    told: Option<&ProcessIdentity>,
) -> bool {
    if caller.process.is_none() || matches!(said.kind, HookKind::SessionEnd { .. }) {
        return false;
    }
    let Some(known) = known else {
        return true;
    };
    !caller.descends_from(known)
        && (said.kind == HookKind::SessionStart
            || told.is_some_and(|told| told.is(known))
            || engine.processes.state(known).is_over())
}

/// Returns the open identities of a session in this work tree; where it ends, those it left in others as well.
fn held<'a>(
    site: &'a Site,
    view: &'a View,
    said: &'a HookEvent,
    started_as: Option<&'a SessionRef>,
) -> impl Iterator<Item = &'a Identity> {
    let ends = matches!(said.kind, HookKind::SessionEnd { .. });
    view.state
        .tasks
        .values()
        .flat_map(|entry| &entry.identities)
        .filter(move |identity| {
            (identity.session == said.session || Some(&identity.session) == started_as)
                && !identity.status.is_closed()
                && (ends || site.is_here(&identity.place))
        })
}

/// Brings the record of a session up to date. Pure.
fn apply(
    engine: &Engine<'_>,
    session: &mut SessionRecord,
    said: &HookEvent,
    look: Option<&Look>,
    caller: &Caller,
    at: Time,
) {
    let effect = |tool: &str, argument: &str| OpenEffect {
        tool: text::one_line(tool, 80),
        argument: text::one_line(&engine.mask(argument), ARGUMENT),
        at: Some(at),
    };
    let turn_end = |look| record(look, ProvenanceEvent::TurnEnd, at, &said.session);
    match &said.kind {
        HookKind::SessionStart => {
            session.closing = None;
            session.told_at = Some(at);
        }
        HookKind::TurnStart { prompt } => {
            session.closing = None;
            session.note_act(at);
            session.told_at = Some(at);
            if session.prompt.is_none() {
                session.prompt = prompt
                    .as_deref()
                    .map(|prompt| redact::prompt(&engine.mask(prompt)));
            }
        }
        HookKind::ToolStart { tool, argument } => {
            session.note_act(at);
            session.open_effects.push(effect(tool, argument));
            let beyond = session.open_effects.len().saturating_sub(EFFECTS);
            session.open_effects.drain(..beyond);
        }
        HookKind::ToolEnd { tool, argument } => {
            let ended = effect(tool, argument);
            let same =
                |open: &OpenEffect| open.tool == ended.tool && open.argument == ended.argument;
            if let Some(index) = session.open_effects.iter().position(same) {
                session.open_effects.remove(index);
            }
            note_calls_after(session);
        }
        HookKind::TurnEnd { .. } => {
            session.open_effects.clear();
            if let Some(look) = look {
                session.note_look(turn_end(look));
            }
        }
        HookKind::SessionEnd { reason } => {
            match look {
                Some(look) if session.open_effects.is_empty() => {
                    session.note_look(turn_end(look));
                }
                Some(_) => {}
                None => note_after(session, "it ended while a commit ran its hooks".to_owned()),
            }
            session.closing = Some(Closing {
                at,
                reason: reason
                    .as_deref()
                    .map(|reason| text::one_line(&engine.mask(reason), 80)),
                by: None,
            });
        }
        HookKind::Error { message } => {
            let message = text::one_line(&engine.mask(message), ARGUMENT);
            note_after(session, format!("it failed: {message}"));
        }
        HookKind::Compaction | HookKind::Ignored => {}
    }
    if caller.process_named || session.process.is_none() {
        session.process.clone_from(&caller.process);
    }
}

/// Says what is known to have happened since the last record.
fn note_after(session: &mut SessionRecord, what: String) {
    if let Some(latest) = &mut session.latest {
        latest.provenance.after = Some(what);
    }
}

/// Counts the calls since the last record, so that a later reader knows that more happened.
fn note_calls_after(session: &mut SessionRecord) {
    if let Some(latest) = &mut session.latest {
        let before = latest
            .provenance
            .after
            .as_deref()
            .and_then(|after| after.split(' ').next()?.parse::<u64>().ok());
        latest.provenance.after = {
            let calls = before.unwrap_or(0) + 1;
            Some(if calls == 1 {
                "1 call later".to_owned()
            } else {
                format!("{calls} calls later")
            })
        };
    }
}

/// Brings an identity of the session up to date; `None` where nothing is new.
fn follow(
    identity: &Identity,
    session: &SessionRecord,
    said: &HookEvent,
    look: Option<&Look>,
    caller: &Caller,
    at: Time,
) -> Result<Option<Identity>, EngineError> {
    let end = matches!(said.kind, HookKind::SessionEnd { .. });
    if let Some(look) = look
        && (!end || session.open_effects.is_empty())
    {
        let request = SaveRequest {
            end,
            reason: session
                .closing
                .as_ref()
                .and_then(|closing| closing.reason.clone()),
            event: Some(ProvenanceEvent::TurnEnd),
            open_effects: Some(session.open_effects.clone()),
            ..SaveRequest::default()
        };
        return saved_identity(identity, Some(look), &request, caller, at);
    }
    let mut next = identity.clone();
    if !end || look.is_some() {
        next.open_effects.clone_from(&session.open_effects);
    }
    next.closing.clone_from(&session.closing);
    if caller.process_named {
        next.process.clone_from(&session.process);
    }
    if let (Some(latest), Some(seen)) = (&mut next.latest, &session.latest) {
        latest.provenance.after.clone_from(&seen.provenance.after);
    }
    if next == *identity {
        return Ok(None);
    }
    next.updated_at = at;
    next.revision += 1;
    Ok(Some(next))
}

/// Says in a few words what is unfinished here, for a model that begins. `None` where there is nothing to say.
pub fn notice(engine: &Engine<'_>, session: &SessionRef) -> Result<Option<String>, EngineError> {
    let request = InspectRequest {
        session: Some(session.id.to_string()),
        agent: Some(session.agent.to_string()),
        ..InspectRequest::default()
    };
    let found = inspect(engine, &request)?;
    let told = |candidate: &&Candidate| {
        matches!(
            candidate.verdict,
            Verdict::ResumeVerification | Verdict::StaleTask | Verdict::HumanReview
        )
    };
    let own: Vec<&Candidate> = found
        .candidates
        .iter()
        .filter(|candidate| candidate.own)
        .filter(told)
        .collect();
    let others: Vec<&Candidate> = found
        .candidates
        .iter()
        .filter(|candidate| !candidate.own)
        .filter(told)
        .collect();
    let mut lines = Vec::new();
    for candidate in own {
        let mut line = format!(
            "takeup: your task {}: {}",
            name(candidate),
            candidate.verdict.code()
        );
        let paths: Vec<&str> = candidate
            .changes
            .iter()
            .flat_map(|changes| &changes.paths)
            .take(8)
            .map(|path| path.path.as_str())
            .collect();
        if !paths.is_empty() {
            line.push_str(&format!(
                " (changed since you left it: {})",
                paths.join(", ")
            ));
        }
        if !candidate.open_effects.is_empty() {
            line.push_str(&format!(
                "; {} may or may not have happened: look before repeating",
                text::count(candidate.open_effects.len(), "call", "calls")
            ));
        }
        lines.push(line);
    }
    lines.extend(lost(&found.candidates));
    if !others.is_empty() {
        let list: Vec<String> = others
            .iter()
            .take(3)
            .map(|candidate| format!("{} ({})", name(candidate), candidate.verdict.code()))
            .collect();
        let more = others.len().saturating_sub(3);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        lines.push(format!(
            "takeup: unfinished here: {}{more}. Look with `git takeup inspect`; taking one up needs the user's yes.",
            list.join(", ")
        ));
    }
    Ok((!lines.is_empty()).then(|| lines.join("\n")))
}

/// Tells a session of the tasks that others took up from it and that are not over: it may have come back without knowing.
fn lost(all: &[Candidate]) -> Vec<String> {
    let taken = all
        .iter()
        .filter(|candidate| candidate.own && candidate.resumed_to.is_some());
    let holder = |task: &str| {
        all.iter().find(|other| {
            let closed = other.identity.status.is_closed();
            other.identity.task_id.as_str() == task && !other.own && !closed
        })
    };
    taken
        .filter_map(|candidate| {
            let task = name(candidate);
            let holder = holder(task)?;
            let runs = holder.verdict == Verdict::InUse;
            Some(taken_by(task, &holder.session(), runs))
        })
        .collect()
}

/// Tells a session whose turn begins of the tasks that others took up from it since it was told last and that are not over:
/// it goes on without knowing.
fn lost_since(view: &View, session: &SessionRef, since: Time) -> Vec<String> {
    view.state
        .tasks
        .values()
        .filter(|entry| {
            entry.identity(session).is_some_and(|own| {
                own.status.is_closed() && own.resumed_to.is_some() && own.updated_at >= since
            })
        })
        .filter_map(|entry| {
            let holder = entry.open_holder()?;
            let task = entry.task.task_id.as_str();
            (holder.session != *session).then(|| taken_by(task, &holder.session, false))
        })
        .collect()
}

fn taken_by(task: &str, holder: &SessionRef, runs: bool) -> String {
    let runs = if runs { ", which runs" } else { "" };
    // An id may be any text; only one that can be nothing else is shown to a model.
    let id = holder.id.as_str();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let by = if id.len() <= 64 && id.chars().all(plain) {
        holder.to_string()
    } else {
        format!("a session of {}", holder.agent)
    };
    format!(
        "takeup: your task {task} was taken up by {by}{runs}: it is not yours any more. Ask the user before you go on with it."
    )
}

/// Returns the task's id: a slug, so nothing of a stranger's text reaches the model as an instruction.
fn name(candidate: &Candidate) -> &str {
    candidate.identity.task_id.as_str()
}

/// Tells whether takeup is used at a folder. Creates nothing.
pub fn is_used_at(engine: &Engine<'_>, folder: &Path) -> bool {
    let mut env = engine.env.clone();
    env.cwd = folder.to_path_buf();
    Site::open(&Engine {
        env: &env,
        ..*engine
    })
    .is_ok_and(|site| site.is_used())
}
