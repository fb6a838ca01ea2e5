//! `start`, `save` and `note`: a session begins with a task, says what it leaves, and remarks.
use schemars::JsonSchema;
use serde::Serialize;

use super::candidate::IdentityView;
use super::{Caller, Engine, EngineError, PATIENCE, Site, Which, again, select};
use crate::boundary::Boundary;
use crate::fingerprint::{Look, Provenance, ProvenanceEvent};
use crate::identity::{Before, Closing, Identity, Note, Recorded, Task};
use crate::ids::{SessionId, SessionRef, TaskId};
use crate::ledger::{Change, Ledger, State, Transition};
use crate::names;
use crate::plan::{Check, Plan};
use crate::propose::{Proposal, propose};
use crate::status::{self, Event, Status};
use crate::time::Time;

/// The longest title, in characters: it stands in lists. A prompt is not a title.
const LONGEST_TITLE: usize = 500;
/// The longest note, in bytes: every command reads it again.
pub const LONGEST_NOTE: usize = 1 << 20;

/// What `start` is given.
#[derive(Clone, Debug, Default)]
pub struct StartRequest {
    /// The title.
    pub title: String,
    /// The session, where it is named.
    pub session: Option<String>,
    /// Its agent.
    pub agent: Option<String>,
    /// The process that stands for the session.
    pub pid: Option<u32>,
    /// Globs the task may edit.
    pub allowed: Vec<String>,
    /// Globs it must avoid.
    pub avoided: Vec<String>,
    /// Commands that have to pass.
    pub checks: Vec<String>,
    /// The plan is empty on purpose.
    pub no_checks: bool,
}

/// The answer of `start`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    /// The record.
    pub identity: IdentityView,
    /// The agent.
    pub agent: String,
    /// The session's name was made up here.
    pub session_made_up: bool,
    /// The plan.
    pub plan: Plan,
    /// Checks that the repository suggests; none of them was run.
    pub proposals: Vec<Proposal>,
    /// Why nothing can be judged later, where the look was incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// Patterns to avoid that hold nothing: git ignores what they name, or it is left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// The closed task of the same title, where this is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_before: Option<TaskId>,
    /// The task is new. A repeated call finds it going on.
    pub wrote: bool,
}

/// Begins a task in the calling session.
pub fn start(engine: &Engine<'_>, request: &StartRequest) -> Result<Started, EngineError> {
    let title = engine.mask(request.title.trim());
    if title.is_empty() || title.chars().any(char::is_control) {
        return Err(EngineError::Usage("a title is one line of text".to_owned()));
    }
    if title.chars().count() > LONGEST_TITLE {
        return Err(EngineError::Usage(format!(
            "a title has at most {LONGEST_TITLE} characters; put the rest into a note"
        )));
    }
    let boundary = Boundary {
        allowed: engine.read_globs(&request.allowed)?,
        avoided: engine.read_globs(&request.avoided)?,
        ..Boundary::default()
    };
    let mut caller = Caller::find(
        engine,
        request.session.as_deref(),
        request.agent.as_deref(),
        request.pid,
    )?;
    let mut checks = Vec::new();
    for command in &request.checks {
        checks.push(Check {
            command: super::plan::planned_command(engine, command)?,
            source: caller.source(),
            must_fail: None,
        });
    }
    let site = Site::open_or_init(engine)?;
    if request.agent.is_none()
        && let Some(named) = &caller.session
    {
        caller.session = Some(super::recorded::meant(&site.view.state, named));
    }
    let place = site.place_record()?;
    let look = site.settled_look(engine, &caller, true, false)?;
    let session_made_up = caller.session.is_none();
    if session_made_up {
        caller.session = Some(known_or_new(&site, &caller)?);
    }
    let session = caller.session.clone().unwrap_or_else(SessionRef::person);
    let at = engine.clock.now();
    let recorded = record(&look, ProvenanceEvent::Start, at, &session);
    let plan = Plan {
        checks,
        no_checks: request.no_checks,
        ..Plan::default()
    };
    let slug = TaskId::from_title(&title);

    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        if let Some((entry, own)) = again::unfinished(&site, &view.state, &session, &title)? {
            again::demand_same(&entry.task, &plan, &boundary)?;
            let mut own = own.clone();
            let other = caller.process_named && own.process != caller.process;
            let transition = other.then(|| {
                // The session says anew which process stands for it.
                own.process.clone_from(&caller.process);
                own.updated_at = at;
                own.revision += 1;
                Transition {
                    at,
                    actor: caller.actor(),
                    operation: "start".to_owned(),
                    changes: vec![Change::Identity {
                        identity: Box::new(own.clone()),
                    }],
                }
            });
            return Ok((transition, (own, entry.task.clone(), None)));
        }
        let task = Task {
            task_id: free(&site.ledger, &view.state, &slug),
            title: title.clone(),
            boundary: boundary.clone(),
            plan: plan.clone(),
            created_at: at,
        };
        let before = again::closed_before(&view.state, &title);
        let identity = Identity {
            task_id: task.task_id.clone(),
            session: session.clone(),
            place: place.clone(),
            status: Status::Active,
            base: Some(recorded.clone()),
            before: Before::default(),
            latest: Some(recorded.clone()),
            process: caller.process.clone(),
            closing: None,
            open_effects: Vec::new(),
            inherited_effects: Vec::new(),
            resumed_from: None,
            resumed_to: None,
            closed_by: None,
            created_at: at,
            updated_at: at,
            revision: 1,
        };
        let changes = vec![
            Change::Task { task: task.clone() },
            Change::Identity {
                identity: Box::new(identity.clone()),
            },
        ];
        let transition = Transition {
            at,
            actor: caller.actor(),
            operation: "start".to_owned(),
            changes,
        };
        Ok((Some(transition), (identity, task, Some(before))))
    })?;
    let (identity, task, begun) = committed.value;
    super::effects::settle_beside(engine, &site, &caller.actor());
    if committed.wrote {
        super::effects::mirror(engine, &site, &identity.task_id);
    }
    Ok(Started {
        agent: identity.session.agent.to_string(),
        identity: IdentityView::of(&identity, &task.title),
        session_made_up,
        proposals: if task.plan.checks.is_empty() && !task.plan.no_checks {
            propose(&site.place().root)
        } else {
            Vec::new()
        },
        plan: task.plan,
        unseen: super::unseen::unseen(engine, &site, &boundary.avoided),
        incomplete: look.record.incomplete,
        wrote: begun.is_some(),
        closed_before: begun.flatten(),
    })
}

/// Returns the session the caller's agent, or the person at this terminal, already has here, else a new name that
/// nobody has.
fn known_or_new(site: &Site, caller: &Caller) -> Result<SessionRef, EngineError> {
    let agent = caller.agent_or_person();
    let identities = || {
        site.view
            .state
            .tasks
            .values()
            .flat_map(|entry| &entry.identities)
    };
    let mine = identities()
        .filter(|identity| !identity.status.is_closed() && identity.session.agent == agent)
        .find(|identity| match (&identity.process, &caller.process) {
            (Some(theirs), Some(mine)) => theirs.is(mine),
            _ => false,
        });
    if let Some(identity) = mine {
        return Ok(identity.session.clone());
    }
    let name =
        names::memorable(|name| identities().any(|identity| identity.session.id.as_str() == name));
    Ok(SessionRef::new(agent, SessionId::new(name)?))
}

/// Returns the slug, or the first numbered one that no task has or had.
fn free(ledger: &Ledger, state: &State, slug: &TaskId) -> TaskId {
    let taken = |id: &TaskId| ledger.knows(state, id);
    if !taken(slug) {
        return slug.clone();
    }
    (2_u32..u32::MAX)
        .filter_map(|number| TaskId::new(format!("{slug}-{number}")).ok())
        .find(|id| !taken(id))
        .unwrap_or_else(|| slug.clone())
}

/// Puts a look and its provenance together.
pub(super) fn record(look: &Look, event: ProvenanceEvent, at: Time, by: &SessionRef) -> Recorded {
    Recorded {
        tree: look.record.clone(),
        provenance: Provenance {
            event,
            at,
            by: Some(by.clone()),
            provisional: false,
            after: None,
        },
    }
}

/// What `save` is given.
#[derive(Clone, Debug, Default)]
pub struct SaveRequest {
    /// Only this task.
    pub task: Option<String>,
    /// The session, where it is named.
    pub session: Option<String>,
    /// Its agent.
    pub agent: Option<String>,
    /// The process that stands for the session from now on.
    pub pid: Option<u32>,
    /// The session ends here, in good order.
    pub end: bool,
    /// The agent's own word for why.
    pub reason: Option<String>,
    /// Which event asks for it; a plain `save` where none is given.
    pub event: Option<ProvenanceEvent>,
    /// Calls that have started and not finished.
    pub open_effects: Option<Vec<crate::identity::OpenEffect>>,
}

/// The answer of `save`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// The records that were saved: every open task of the session in this work tree.
    pub identities: Vec<IdentityView>,
    /// The present content; `null` when the look was incomplete.
    pub fingerprint: Option<String>,
    /// Why the look was incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// Why nothing was recorded of the content: a commit runs its hooks, and what is not staged may be put away meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferred: Option<String>,
    /// Something was written; the same content saved twice writes nothing.
    pub wrote: bool,
    /// The session said that it ends.
    pub ended: bool,
    /// Who said it, where that was not the session itself: then the end alone is recorded, and nothing of the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
}

/// Records what the calling session leaves.
pub fn save(engine: &Engine<'_>, request: &SaveRequest) -> Result<Saved, EngineError> {
    let site = Site::open_used(engine, None)?;
    let caller = Caller::find(
        engine,
        request.session.as_deref(),
        request.agent.as_deref(),
        request.pid,
    )?;
    let request = &SaveRequest {
        reason: request.reason.as_deref().map(|reason| engine.mask(reason)),
        ..request.clone()
    };
    match select::own(&site, &site.view.state, &caller, request.task.as_deref()) {
        Ok(_) => {}
        Err(error @ (EngineError::NoSession(_) | EngineError::HoldsNothing { .. }))
            if request.end =>
        {
            let reason = request.reason.as_deref();
            return super::recorded::end(engine, &site, &caller, reason)?.ok_or(error);
        }
        Err(error) => return Err(error),
    }
    let (look, deferred) = match site.settled_look(engine, &caller, true, false) {
        Ok(look) => (Some(look), None),
        Err(error @ EngineError::CommitRuns { .. }) => (None, Some(error.to_string())),
        Err(error) => return Err(error),
    };
    let at = engine.clock.now();
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        let own = select::own(&site, &view.state, &caller, request.task.as_deref())?;
        let mut changes = Vec::new();
        let mut saved = Vec::new();
        for identity in own {
            // Who says for a session that it is over says nothing of what it left.
            let is_its_word = caller.acts_instead_of(identity).is_none();
            let look = look.as_ref().filter(|_| is_its_word || !request.end);
            let mut next = saved_identity(identity, look, request, &caller, at)?;
            if let Some(look) = look
                && next.is_none()
                && view.state.is_doubtful(identity)
            {
                // What the session says anew lifts the doubt that damage raised.
                let mut again = identity.clone();
                let by = caller.acts_as(identity);
                again.latest = Some(record(look, ProvenanceEvent::Save, at, &by));
                again.updated_at = at;
                again.revision += 1;
                next = Some(again);
            }
            let title = view
                .state
                .tasks
                .get(&identity.task_id)
                .map_or("", |entry| entry.task.title.as_str());
            saved.push((
                next.clone().unwrap_or_else(|| identity.clone()),
                title.to_owned(),
            ));
            changes.extend(next.map(|identity| Change::Identity {
                identity: Box::new(identity),
            }));
        }
        let transition = (!changes.is_empty()).then(|| Transition {
            at,
            actor: caller.actor(),
            operation: if request.end { "end" } else { "save" }.to_owned(),
            changes,
        });
        Ok::<_, EngineError>((transition, saved))
    })?;
    super::effects::settle_beside(engine, &site, &caller.actor());
    if committed.wrote {
        for (identity, _) in &committed.value {
            super::effects::mirror(engine, &site, &identity.task_id);
        }
    }
    let mut saved = committed.value.iter().filter(|_| request.end);
    let ended_by = saved.find_map(|(identity, _)| caller.acts_instead_of(identity));
    Ok(Saved {
        identities: committed
            .value
            .iter()
            .map(|(identity, title)| IdentityView::of(identity, title))
            .collect(),
        fingerprint: look
            .as_ref()
            .and_then(|look| look.record.fingerprint.as_ref())
            .map(ToString::to_string),
        incomplete: look.and_then(|look| look.record.incomplete),
        deferred,
        wrote: committed.wrote,
        ended_by: ended_by.map(|by| by.to_string()),
        ended: request.end,
    })
}

/// Returns the identity after a save, or `None` where nothing is new. Without a look the content stays as it was left.
pub(super) fn saved_identity(
    identity: &Identity,
    look: Option<&Look>,
    request: &SaveRequest,
    caller: &Caller,
    at: Time,
) -> Result<Option<Identity>, EngineError> {
    let mut next = identity.clone();
    let by = caller.acts_as(identity);
    let other = caller.acts_instead_of(identity);
    if let Some(look) = look {
        let latest = identity.latest.as_ref();
        let same_content = latest.is_some_and(|latest| latest.tree.same_content(&look.record));
        let event = if same_content {
            Event::SavedUnchanged
        } else {
            Event::SavedChanged
        };
        next.status =
            status::apply(identity.status, event).map_err(|refusal| EngineError::Transition {
                task_id: identity.task_id.clone(),
                refusal,
            })?;
        let same_record = latest.is_some_and(|latest| {
            latest.tree == look.record && same_content && !latest.provenance.provisional
        });
        if !same_record {
            let event = request.event.unwrap_or(ProvenanceEvent::Save);
            next.latest = Some(record(look, event, at, &by));
        }
    }
    if other.is_none()
        && (caller.process_named
            || (next.process.is_none() && caller.session.as_ref() == Some(&identity.session)))
    {
        next.process.clone_from(&caller.process);
    }
    if let Some(effects) = &request.open_effects {
        next.open_effects.clone_from(effects);
    }
    if request.end && next.closing.is_none() {
        next.closing = Some(Closing {
            at,
            reason: request.reason.clone(),
            by: other,
        });
    } else if !request.end && other.is_none() {
        // A session that saves again has not ended.
        next.closing = None;
    }
    if next == *identity {
        return Ok(None);
    }
    next.updated_at = at;
    next.revision += 1;
    Ok(Some(next))
}

/// What `note` is given.
#[derive(Clone, Debug, Default)]
pub struct AddNoteRequest {
    /// Whose task.
    pub which: Which,
    /// The text.
    pub text: String,
}

/// Adds a note to a task that is not closed and was not left at another place. Returns the task and the note as it was kept.
pub fn add_note(
    engine: &Engine<'_>,
    request: &AddNoteRequest,
) -> Result<(TaskId, Note), EngineError> {
    if request.text.len() > LONGEST_NOTE {
        return Err(EngineError::NotAllowed(format!(
            "a note has at most {LONGEST_NOTE} bytes; put the text into a file and name it"
        )));
    }
    let text = engine.mask(request.text.trim_end());
    if text.trim().is_empty() {
        return Err(EngineError::NotAllowed("a note needs some text".to_owned()));
    }
    let site = Site::open_used(engine, request.which.task.as_deref())?;
    let caller = Caller::of(engine, &request.which)?;
    let at = engine.clock.now();
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        let task_id = match &request.which.task {
            Some(text) => select::open_here(&site, &view.state, text)?
                .task
                .task_id
                .clone(),
            None => select::anybodys_one(&site, &view.state, &caller, None)?
                .task_id
                .clone(),
        };
        let note = Note {
            at,
            by: caller.actor().session,
            text: text.clone(),
        };
        let changes = vec![Change::Note {
            task_id: task_id.clone(),
            note: note.clone(),
        }];
        let transition = Transition {
            at,
            actor: caller.actor(),
            operation: "note".to_owned(),
            changes,
        };
        Ok::<_, EngineError>((Some(transition), (task_id, note)))
    })?;
    super::effects::settle_beside(engine, &site, &caller.actor());
    Ok(committed.value)
}
