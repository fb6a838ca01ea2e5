//! Whether a session lives, as another one sees it.
use super::recorded::liveness_here;
use super::{Caller, Engine, Site};
use crate::agent::{Session, SessionQuery};
use crate::identity::{Closing, Identity};
use crate::ids::SessionRef;
use crate::process::{Liveness, ProcessIdentity};

/// How many sessions of one agent are looked at.
pub(super) const SESSIONS: usize = 50;

/// Tells whether a session lives, seen by a caller that is another one. `told` is what its agent's own store says.
pub(super) fn life(
    engine: &Engine<'_>,
    caller: &Caller,
    told: Option<&Session>,
    session: &SessionRef,
    process: Option<&ProcessIdentity>,
    closing: Option<&Closing>,
) -> Liveness {
    let told = told.map(|known| &known.liveness);
    // The agent's own answer first, where it says that the session lives.
    if closing.is_none()
        && let Some(live @ Liveness::Live { .. }) = told
    {
        return live.clone();
    }
    let by_process = liveness_here(engine, session, process, closing);
    match (&by_process, process) {
        (Liveness::Live { proof }, Some(process)) if caller.descends_from(process) => {
            Liveness::Unknown {
                why: format!("{proof}, but the caller runs in it too"),
            }
        }
        (Liveness::Unknown { .. }, _) => told.cloned().unwrap_or(by_process),
        _ => by_process,
    }
}

/// As a [`Gatherer`] tells it of the session of one identity, where nothing else is asked.
pub(super) fn life_of_holder(
    engine: &Engine<'_>,
    site: &Site,
    caller: &Caller,
    identity: &Identity,
) -> Liveness {
    let query = SessionQuery {
        root: Some(site.place().root.clone()),
        limit: SESSIONS,
        ..SessionQuery::default()
    };
    let of_agent = engine
        .agents
        .iter()
        .filter(|agent| agent.id() == identity.session.agent);
    let told = of_agent
        .flat_map(|agent| agent.sessions(engine.env, &query).items)
        .find(|known| known.session == identity.session);
    life(
        engine,
        caller,
        told.as_ref(),
        &identity.session,
        identity.process.as_ref(),
        identity.closing.as_ref(),
    )
}

/// The calling session itself is in nobody's way.
pub(super) fn own_session() -> Liveness {
    Liveness::Unknown {
        why: "it is the calling session itself".to_owned(),
    }
}
