//! Sessions that only the ledger knows: their agents keep no store that is read.
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::candidates::Gatherer;
use super::select::names;
use super::{Caller, Elsewhere, Engine, EngineError, PATIENCE, Saved, Site};
use crate::agent::{Found, Interruption, InterruptionReason, Session};
use crate::identity::{Closing, Identity, OpenEffect, PlaceRecord, SessionRecord};
use crate::ids::{AgentId, SessionRef, WorktreeId};
use crate::issue::{Issue, IssueKind};
use crate::ledger::{Change, State, Transition, View};
use crate::paths::path_of_text;
use crate::process::{Liveness, ProcessIdentity, liveness_of};
use crate::repository::{RepositoryError, discover};
use crate::status::Status;
use crate::time::Time;
use crate::verdict::Whereabouts;

/// Lists the sessions that the ledger knows, from hooks or as holders of tasks: those of this work tree, the newest first, and
/// after them the unfinished ones of the repository's other work trees, there or gone; or all of the repository; and what of
/// the ledger is damaged. Reads only; where takeup is not used, and outside a repository, there are none.
pub fn recorded_sessions(engine: &Engine<'_>, everywhere: bool) -> Found<Session> {
    let site = match Site::open(engine) {
        Ok(site) => site,
        Err(EngineError::Repository(
            RepositoryError::NotARepository { .. } | RepositoryError::Bare { .. },
        )) => return Found::default(),
        Err(error) => {
            let path = discover(engine.env, &engine.env.cwd)
                .map_or_else(|_| engine.env.cwd.clone(), |place| place.state());
            let issue = Issue::new(path, IssueKind::Unreadable, error.to_string());
            return Found {
                items: Vec::new(),
                issues: vec![issue],
            };
        }
    };
    let state = &site.view.state;
    let holders = holders(state);
    let records = || state.sessions.iter().chain(&holders);
    if everywhere {
        return Found {
            items: listed(engine, state, records().map(Cow::Borrowed)),
            issues: site.view.issues.clone(),
        };
    }
    let here = records().filter_map(|record| seen_here(&site, record));
    let mut items = listed(engine, state, here);
    let elsewhere = records()
        .filter(|record| seen_here(&site, record).is_none() && is_of(&site, &record.place))
        .map(Cow::Borrowed);
    let left = listed(engine, state, elsewhere);
    items.extend(
        left.into_iter()
            .filter(|session| session.interruption.is_some()),
    );
    Found {
        items,
        issues: site.view.issues.clone(),
    }
}

fn is_of(site: &Site, place: &PlaceRecord) -> bool {
    Some(&place.repository_id) == site.tokens.repository.as_ref()
}

/// Returns the record of a session as it is for this work tree.
pub(super) fn seen_here<'a>(
    site: &Site,
    record: &'a SessionRecord,
) -> Option<Cow<'a, SessionRecord>> {
    record.seen_in(|place| site.is_here(place))
}

/// Finds the place that a session left something in, where that is another than this one.
pub(super) fn left_elsewhere(site: &Site, state: &State, named: &str) -> Option<Elsewhere> {
    let mut records = state.sessions.iter().filter(|record| {
        names(named, &record.session)
            && seen_here(site, record).is_none()
            && leaves_more(state, record)
    });
    let record = records.next()?;
    let whereabouts = site.whereabouts(&record.place).ok()?;
    Some(Elsewhere {
        task_id: None,
        session: record.session.clone(),
        root: site.root_now(&record.place, whereabouts),
        whereabouts,
    })
}

/// Lists those of this work tree that hooks recorded and whose tasks do not tell all that is left of them: see
/// [`is_beside_tasks`].
pub(super) fn beside_tasks(engine: &Engine<'_>, site: &Site) -> Vec<Session> {
    let state = &site.view.state;
    let here = state
        .sessions
        .iter()
        .filter_map(|record| seen_here(site, record));
    let sessions = here.filter(|record| leaves_more(state, record));
    listed(engine, state, sessions)
}

/// What a session left in another work tree.
pub(super) struct LeftThere {
    /// How the present place relates to that work tree.
    pub whereabouts: Whereabouts,
    /// The name of that work tree, for people.
    pub root: String,
    /// The session's record as it is for that work tree.
    pub record: SessionRecord,
    /// The session.
    pub session: Session,
}

impl Gatherer<'_> {
    /// Lists what sessions left in other work trees of this repository, there or gone, that no task tells of, each with its
    /// record as it is for that work tree. What is left there is not looked at.
    pub(super) fn beside_elsewhere(&self, view: &View) -> Result<Vec<LeftThere>, EngineError> {
        let (state, site) = (&view.state, self.site);
        let mut found = Vec::new();
        // Many sessions leave work in few work trees, and asking for one costs reading git's list of them.
        let mut known: BTreeMap<(&WorktreeId, &str), (Whereabouts, String)> = BTreeMap::new();
        for record in &state.sessions {
            let is_alive = |session: &Session| {
                session.session == record.session
                    && matches!(session.liveness, Liveness::Live { .. })
            };
            if self.caller.session.as_ref() == Some(&record.session)
                || self.sessions.iter().any(is_alive)
            {
                continue;
            }
            let places = record.places();
            for place in places.filter(|place| is_of(site, place) && !site.is_here(place)) {
                let Some(there) = record.seen_in(|known| known.worktree_id == place.worktree_id)
                else {
                    continue;
                };
                if !leaves_more(state, &there) {
                    continue;
                }
                let mut listed = listed(self.engine, state, std::iter::once(there.clone()));
                let Some(session) = listed
                    .pop()
                    .filter(|session| session.interruption.is_some())
                else {
                    continue;
                };
                let (whereabouts, root) = match known.entry((&place.worktree_id, &place.root)) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => {
                        let whereabouts = site.whereabouts(place)?;
                        let root = site.described(self.engine, place, whereabouts);
                        entry.insert((whereabouts, root))
                    }
                };
                found.push(LeftThere {
                    whereabouts: *whereabouts,
                    root: root.clone(),
                    record: there.into_owned(),
                    session,
                });
            }
        }
        Ok(found)
    }
}

/// Returns what the ledger holds of the tasks of a session, also under the one that it was started as.
pub(super) fn identities<'a>(
    state: &'a State,
    session: &'a SessionRef,
) -> impl Iterator<Item = &'a Identity> {
    let record = state.session(session);
    let started_as = record.and_then(|record| record.started_as.as_ref());
    let names = std::iter::once(session).chain(started_as);
    names.flat_map(move |session| {
        let of_id = state.of_session(&session.id);
        of_id.filter(move |identity| &identity.session == session)
    })
}

/// Makes records of the sessions that are known by their tasks alone, of the last task each.
fn holders(state: &State) -> Vec<SessionRecord> {
    let is_recorded = |session: &SessionRef| {
        let mut records = state.sessions.iter();
        records
            .any(|record| &record.session == session || record.started_as.as_ref() == Some(session))
    };
    let mut found: BTreeMap<&SessionRef, (&Identity, &str)> = BTreeMap::new();
    for entry in state.tasks.values() {
        for identity in &entry.identities {
            let newer = found
                .get(&identity.session)
                .is_none_or(|(known, _)| known.updated_at < identity.updated_at);
            if newer && !is_recorded(&identity.session) {
                found.insert(&identity.session, (identity, &entry.task.title));
            }
        }
    }
    let record = |(identity, title): (&Identity, &str)| SessionRecord {
        session: identity.session.clone(),
        place: identity.place.clone(),
        latest: identity.latest.clone(),
        process: identity.process.clone(),
        closing: identity.closing.clone(),
        open_effects: identity.open_effects.clone(),
        acted_at: None,
        acted_after: None,
        told_at: None,
        started_as: None,
        prompt: Some(title.to_owned()),
        left: Vec::new(),
        created_at: identity.created_at,
        updated_at: identity.updated_at,
    };
    found.into_values().map(record).collect()
}

fn listed<'a>(
    engine: &Engine<'_>,
    state: &State,
    records: impl Iterator<Item = Cow<'a, SessionRecord>>,
) -> Vec<Session> {
    let person = AgentId::person();
    let mut found: Vec<Session> = records
        .filter(|record| record.session.agent != person)
        .map(|record| session_of(engine, state, &record))
        .collect();
    found.sort_by(|a, b| {
        let by_time = b.updated_at.cmp(&a.updated_at);
        by_time.then_with(|| a.session.cmp(&b.session))
    });
    found
}

fn leaves_more(state: &State, record: &SessionRecord) -> bool {
    let tasks = identities(state, &record.session)
        .filter(|identity| identity.place.worktree_id == record.place.worktree_id);
    is_beside_tasks(
        tasks,
        Some(record),
        &record.open_effects,
        Some(record.updated_at),
    )
}

/// Tells whether something may be left of a session that no task tells of: it never held one, or it went on when the last
/// of its tasks was closed. It did where a call began since, or a hook of its agent saw other content since. What was given
/// up or taken up by another is closed without a look, and what comes after may be another's work: there a turn or a call
/// must have begun as well. `tasks` are what it holds and held in one work tree, `seen` what hooks recorded of it there.
pub(super) fn is_beside_tasks<'a>(
    tasks: impl Iterator<Item = &'a Identity>,
    seen: Option<&SessionRecord>,
    open_effects: &[OpenEffect],
    updated_at: Option<Time>,
) -> bool {
    let tasks: Vec<&Identity> = tasks.collect();
    let Some(last) = tasks.iter().max_by_key(|identity| identity.updated_at) else {
        return true;
    };
    let since = last.updated_at;
    let began = |effect: &OpenEffect| effect.at.or(updated_at).is_some_and(|at| at > since);
    let acted = seen.and_then(|record| record.acted_at);
    let went_on = last.status != Status::Abandoned || acted.is_some_and(|at| at > since);
    let changed = seen
        .filter(|_| went_on)
        .and_then(|record| record.latest.as_ref())
        .is_some_and(|seen| {
            let left = last.latest.as_ref();
            seen.provenance.at > since
                && left.is_none_or(|left| !left.tree.same_content(&seen.tree))
        });
    tasks.iter().all(|identity| identity.status.is_closed())
        && (changed || open_effects.iter().any(began))
}

/// As [`liveness_of`]; of an agent that does not say when its sessions end, one whose process is gone need not have crashed.
pub(super) fn liveness_here(
    engine: &Engine<'_>,
    session: &SessionRef,
    process: Option<&ProcessIdentity>,
    closing: Option<&Closing>,
) -> Liveness {
    let found = liveness_of(engine.processes, process, closing);
    let silent = engine
        .agents
        .iter()
        .find(|agent| agent.id() == session.agent && !agent.tells_ends());
    match (found, silent, process) {
        (Liveness::Crashed { .. }, Some(agent), Some(process)) => Liveness::Unknown {
            why: format!(
                "{} {}, and {} does not say when a session ends",
                process.describe(),
                engine.processes.state(process).describe(),
                agent.name()
            ),
        },
        (found, _, _) => found,
    }
}

/// Finds the session that is meant where only an id was said: that of the one agent whose hooks told of it.
pub(super) fn meant(state: &State, named: &SessionRef) -> SessionRef {
    let mut same = state
        .sessions
        .iter()
        .map(|record| &record.session)
        .filter(|session| session.id == named.id);
    match (same.next(), same.next()) {
        (Some(only), None) if named.agent == AgentId::person() => only.clone(),
        _ => named.clone(),
    }
}

/// Records that a session without a task here, or in a work tree that is gone, is over: nothing of it is offered any more.
/// `None` where no hook told of it.
pub(super) fn end(
    engine: &Engine<'_>,
    site: &Site,
    caller: &Caller,
    reason: Option<&str>,
) -> Result<Option<Saved>, EngineError> {
    let Some(named) = &caller.session else {
        return Ok(None);
    };
    let at = engine.clock.now();
    // Nobody can say it there any more where the work tree is gone.
    let known = site.view.state.session(&meant(&site.view.state, named));
    let gone = known.map(|record| &record.place).filter(|place| {
        is_of(site, place)
            && site
                .whereabouts(place)
                .is_ok_and(|found| found == Whereabouts::WorktreeGone)
    });
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        let session = meant(&view.state, named);
        let record = view.state.session(&session);
        let counts = |record: &&SessionRecord| {
            seen_here(site, record).is_some() || Some(&record.place) == gone
        };
        let Some(record) = record.filter(counts) else {
            return Ok::<_, EngineError>((None, false));
        };
        let by = caller.acts_for(&record.session, record.process.as_ref());
        let ended = SessionRecord {
            closing: Some(Closing {
                at,
                reason: reason.map(str::to_owned),
                by: (by != record.session).then_some(by),
            }),
            open_effects: Vec::new(),
            updated_at: at,
            ..record.clone()
        };
        let transition = Transition {
            at,
            actor: caller.actor(),
            operation: "end".to_owned(),
            changes: vec![Change::Session {
                session: Box::new(ended),
            }],
        };
        Ok((Some(transition), true))
    })?;
    Ok(committed.value.then(|| Saved {
        identities: Vec::new(),
        fingerprint: None,
        incomplete: None,
        deferred: None,
        wrote: true,
        ended: true,
        ended_by: None,
    }))
}

fn session_of(engine: &Engine<'_>, state: &State, record: &SessionRecord) -> Session {
    let liveness = liveness_here(
        engine,
        &record.session,
        record.process.as_ref(),
        record.closing.as_ref(),
    );
    let holds = identities(state, &record.session).any(|identity| !identity.status.is_closed());
    // One that began and did nothing left nothing, and neither did one whose tasks are over.
    let left = (holds || leaves_more(state, record))
        && (record.latest.is_some() || record.prompt.is_some() || !record.open_effects.is_empty());
    let interrupted = |reason, proof: &str| Interruption {
        reason,
        proof: match record.open_turn() {
            Some(at) => format!("{proof}, and a turn was going on (the last sign of it: {at})"),
            None => proof.to_owned(),
        },
        until: None,
    };
    let interruption = match &liveness {
        Liveness::Live { .. } => None,
        Liveness::Ended { .. } => (left && !record.open_effects.is_empty()).then(|| {
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
        title: record
            .prompt
            .as_deref()
            .map(|prompt| crate::text::one_line(prompt, 200)),
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
