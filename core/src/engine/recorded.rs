//! Sessions that only our own hooks know: their agents keep no store that is read.
use super::{Engine, EngineError, Site};
use crate::agent::{Interruption, InterruptionReason, Session};
use crate::identity::SessionRecord;
use crate::ids::AgentId;
use crate::paths::path_of_text;
use crate::process::{Liveness, liveness_of};

/// Lists the sessions of this work tree that hooks recorded, the newest first. Reads only; where takeup is not used there are
/// none.
pub fn recorded_sessions(engine: &Engine<'_>) -> Result<Vec<Session>, EngineError> {
    Ok(recorded(engine, &Site::open(engine)?, |_| true))
}

/// Lists those that hold no task and never held one: what is left of the others is told by their tasks.
pub(super) fn without_task(engine: &Engine<'_>, site: &Site) -> Vec<Session> {
    let state = &site.view.state;
    recorded(engine, site, |record| {
        let mut identities = state.of_session(&record.session.id);
        !identities.any(|identity| identity.session == record.session)
    })
}

fn recorded(
    engine: &Engine<'_>,
    site: &Site,
    counts: impl Fn(&SessionRecord) -> bool,
) -> Vec<Session> {
    let person = AgentId::person();
    let mut found: Vec<Session> = site
        .view
        .state
        .sessions
        .iter()
        .filter(|record| record.session.agent != person)
        .filter(|record| Some(&record.place.worktree_id) == site.tokens.worktree.as_ref())
        .filter(|record| counts(record))
        .map(|record| session_of(engine, record))
        .collect();
    found.sort_by(|a, b| {
        let by_time = b.updated_at.cmp(&a.updated_at);
        by_time.then_with(|| a.session.cmp(&b.session))
    });
    found
}

fn session_of(engine: &Engine<'_>, record: &SessionRecord) -> Session {
    let liveness = liveness_of(
        engine.processes,
        record.process.as_ref(),
        record.closing.as_ref(),
    );
    // One that began and did nothing left nothing.
    let left =
        record.latest.is_some() || record.prompt.is_some() || !record.open_effects.is_empty();
    let interrupted = |reason, proof: &str| Interruption {
        reason,
        proof: proof.to_owned(),
        until: None,
    };
    let interruption = match &liveness {
        Liveness::Live { .. } => None,
        Liveness::Ended { .. } => (!record.open_effects.is_empty()).then(|| {
            interrupted(
                InterruptionReason::Closed,
                "it ended while calls had no result",
            )
        }),
        Liveness::Crashed { .. } => {
            left.then(|| interrupted(InterruptionReason::Crash, "it never said that it ended"))
        }
        Liveness::Unknown { .. } => {
            left.then(|| interrupted(InterruptionReason::Unknown, "it never said that it ended"))
        }
    };
    Session {
        session: record.session.clone(),
        name: None,
        title: record.prompt.clone(),
        cwd: path_of_text(&record.place.root),
        created_at: Some(record.created_at),
        updated_at: Some(record.updated_at),
        status: None,
        process: record.process.clone(),
        interruption,
        open_effects: match &liveness {
            Liveness::Live { .. } => Vec::new(),
            Liveness::Ended { .. } | Liveness::Crashed { .. } | Liveness::Unknown { .. } => {
                record.open_effects.clone()
            }
        },
        liveness,
        messages: None,
        last_prompt: None,
        plan: Vec::new(),
        parent: None,
        helper: false,
        crash_group: None,
        snapshot_tree: None,
        snapshot_after: None,
        recovered: Vec::new(),
    }
}
