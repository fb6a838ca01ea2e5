//! Which agents and which session are meant.
use takeup_core::agent::{Agent, AgentError, Session, SessionDetail};
use takeup_core::engine;
use takeup_core::error::Exit;

use super::ShowArgs;
use crate::context::Context;
use crate::reply::Failure;

/// Finds the session that is meant: by its id or name before any part of a title, whichever agent's it is.
pub(super) fn session_meant(args: &ShowArgs, context: &Context) -> Result<SessionDetail, Failure> {
    let wanted = args.session.as_str();
    let is_exact = |session: &Session| {
        session.session.id.as_str() == wanted
            || session.session.to_string() == wanted
            || session.name.as_deref() == Some(wanted)
    };
    let known = engine::recorded_sessions(&context.engine(), true).items;
    let mut found = Vec::new();
    let missing = find(wanted, args.agent.as_deref(), context, |agent| {
        let answer = agent.session(&context.env, wanted, args.turns);
        let mut recorded = Vec::new();
        add_recorded(agent, &known, &mut recorded);
        match answer {
            Ok(detail) => found.push(detail),
            Err(AgentError::NoSession { .. } | AgentError::Unsupported { .. }) => {}
            Err(error) => return Err(error),
        }
        let text = wanted.to_lowercase();
        let fits = |session: &Session| {
            let title = session.title.as_deref().unwrap_or_default();
            is_exact(session)
                || (wanted.len() >= 4 && session.session.id.as_str().starts_with(wanted))
                || (!wanted.is_empty() && title.to_lowercase().contains(&text))
        };
        for session in recorded.into_iter().filter(fits) {
            if !found
                .iter()
                .any(|known| known.session.session == session.session)
            {
                found.push(SessionDetail {
                    session,
                    turns: Vec::new(),
                    transcript: None,
                });
            }
        }
        // Every agent is asked: an exact name of another one counts more than a part of a title.
        Err::<(), _>(AgentError::Unsupported {
            agent: "",
            what: "",
        })
    });
    if found.iter().any(|detail| is_exact(&detail.session)) {
        found.retain(|detail| is_exact(&detail.session));
    }
    if found.len() > 1 {
        let named: Vec<String> = found
            .iter()
            .take(5)
            .map(|detail| detail.session.session.to_string())
            .collect();
        return Err(Failure::new(
            "several-sessions",
            Exit::No,
            format!(
                "{:?} fits several sessions: {}",
                takeup_core::text::one_line(wanted, 120),
                named.join(", ")
            ),
        )
        .hint("name one by its agent and id"));
    }
    match (found.pop(), missing) {
        (Some(detail), _) => Ok(detail),
        (None, Err(failure)) => Err(failure),
        (None, Ok(())) => Err(no_such(wanted, context)),
    }
}

/// Says of a session that no agent could recover that its agent cannot, where one has it.
pub(super) fn unrecovered(failure: Failure, args: &ShowArgs, context: &Context) -> Failure {
    if failure.code != "no-such-session" {
        return failure;
    }
    let Ok(detail) = session_meant(args, context) else {
        return failure;
    };
    let session = detail.session.session;
    let mut agents = context.agents.iter();
    let agent = agents
        .find(|agent| agent.id() == session.agent)
        .map_or_else(
            || session.agent.to_string(),
            |agent| agent.name().to_owned(),
        );
    let id = session.id.to_string();
    Failure::new(
        "agent-unsupported",
        Exit::No,
        format!("{session} cannot be recovered: that is not done for sessions of {agent}"),
    )
    .hint(format!("what it holds: {}", super::command("show", &id)))
}

/// Asks the agents for a session until one knows it.
pub(super) fn find<T>(
    wanted: &str,
    agent: Option<&str>,
    context: &Context,
    mut ask: impl FnMut(&dyn Agent) -> Result<T, AgentError>,
) -> Result<T, Failure> {
    let mut first: Option<AgentError> = None;
    for agent in agents(agent, context)? {
        match ask(agent) {
            Ok(found) => return Ok(found),
            Err(
                AgentError::NoSession { .. }
                | AgentError::Unsupported { .. }
                | AgentError::NotInstalled { .. },
            ) => {}
            Err(error) => first = first.or(Some(error)),
        }
    }
    match first {
        Some(error) => Err(error.into()),
        None => Err(no_such(wanted, context)),
    }
}

fn no_such(wanted: &str, context: &Context) -> Failure {
    let mut hint = "list them with: git takeup sessions --all".to_owned();
    for unread in crate::unread::unread(context, super::root(context).ok().flatten().as_deref()) {
        hint.push_str("; ");
        hint.push_str(&unread);
    }
    Failure::new(
        "no-such-session",
        Exit::Missing,
        format!(
            "no agent has a session {:?}",
            takeup_core::text::one_line(wanted, 120)
        ),
    )
    .hint(hint)
}

/// Returns the adapters that are meant.
pub(super) fn agents<'a>(
    wanted: Option<&str>,
    context: &'a Context,
) -> Result<Vec<&'a dyn Agent>, Failure> {
    let all = context.agents.iter().map(AsRef::as_ref);
    let Some(wanted) = wanted else {
        return Ok(all.collect());
    };
    let found: Vec<&dyn Agent> = all.filter(|agent| agent.id().as_str() == wanted).collect();
    if found.is_empty() {
        let known: Vec<String> = context
            .agents
            .iter()
            .map(|agent| agent.id().to_string())
            .collect();
        return Err(Failure::new(
            "no-such-agent",
            Exit::Usage,
            format!("no agent {wanted:?} is known"),
        )
        .hint(format!("known are: {}", known.join(", "))));
    }
    Ok(found)
}

/// Adds what only our ledger knows of an agent's sessions, in the order of the list.
pub(super) fn add_recorded(agent: &dyn Agent, recorded: &[Session], items: &mut Vec<Session>) {
    for session in recorded {
        let known = items.iter().any(|known| known.session == session.session);
        if session.session.agent == agent.id() && !known {
            items.push(session.clone());
        }
    }
    items.sort_by_key(|session| std::cmp::Reverse(session.updated_at));
}
