//! `handover`: gathers what another agent has to know, and delivers it.
use super::show::{TaskView, entry, seen_by};
use super::views::NextView;
use super::{
    AgentRunningView, Caller, Candidate, Elsewhere, EndedView, Engine, EngineError, PATIENCE,
    ReasonView, RunningView, Site,
};
use crate::agent::{Agent, AgentError, Parcel, Received, SessionDetail};
use crate::background::Watch;
use crate::fingerprint::Look;
use crate::handover::{
    AgentRunningLine, Asked, ChangeLine, CheckLine, Claim, ClaimFacts, Document, EndedLine,
    Handover, LeftIn, NextLine, RunningLine, SessionLine, claims_in,
};
use crate::identity::Note;
use crate::ids::TaskId;
use crate::ledger::{Change, Transition};
use crate::plan::Proof;
use crate::process::Liveness;
use crate::status::Status;
use crate::time::Time;
use crate::verdict::{ReasonCode, Verdict, Whereabouts};

/// How many turns of the last session are looked at for claims.
const TURNS: usize = 6;

/// Gathers a hand-over and makes the document, at most `budget` characters of Markdown. Reads only.
pub fn gather(
    engine: &Engine<'_>,
    task: Option<&str>,
    session: Option<&str>,
    budget: usize,
) -> Result<(Handover, Document), EngineError> {
    let site = Site::open_used(engine, task)?;
    let caller = Caller::find(engine, session, None, None)?;
    let look = site.look(engine, false, false)?;
    let view = as_received(engine, &site, &caller, &look, task)?;
    let found = collect(engine, &site, &look, &view);
    let document = found.document(budget, engine.masker());
    Ok((found, document))
}

/// Shows a task as the one will see it who receives it: where the session that holds it writes, that is somebody else.
fn as_received(
    engine: &Engine<'_>,
    site: &Site,
    caller: &Caller,
    look: &Look,
    task: Option<&str>,
) -> Result<TaskView, EngineError> {
    let (entry, archived) = entry(site, caller, task)?;
    let is_holder = entry
        .holder()
        .is_some_and(|holder| Some(&holder.session) == caller.session.as_ref());
    let somebody = Caller::somebody_else();
    let reader = if is_holder { &somebody } else { caller };
    seen_by(engine, site, reader, look, &entry, archived)
}

/// Refuses where a task was left at another place: who receives it would begin in the wrong work tree.
fn demand_here(view: &TaskView) -> Result<(), EngineError> {
    let Some(holder) = holder(view) else {
        return Ok(());
    };
    if holder.whereabouts == Whereabouts::Same {
        return Ok(());
    }
    Err(EngineError::HeldElsewhere(Elsewhere {
        task_id: Some(view.task_id.clone()),
        session: holder.session(),
        root: holder.identity.repository_root.clone(),
        whereabouts: holder.whereabouts,
    }))
}

/// Says what the receiver does. A document is read later: what it says is confirmed then, on what is there then.
fn next_line(holder: &Candidate) -> NextLine {
    let session = holder.identity.session_id.as_str();
    let task = holder.identity.task_id.as_str();
    let mut words = vec!["git", "takeup", "resume", task, "--from", session];
    let resume = |words: &[&str]| NextView::new("resume", words).command;
    match holder.verdict {
        Verdict::StaleTask => NextLine {
            action: "resume, which shows what changed and asks".to_owned(),
            command: resume(&words),
        },
        Verdict::InUse => {
            let is_equal = |reason: &ReasonView| reason.code == ReasonCode::ContentEqual;
            if holder.reasons.iter().any(is_equal) {
                words.push("--confirm");
            }
            NextLine {
                action: format!("resume, once session {session} has ended"),
                command: resume(&words),
            }
        }
        Verdict::ResumeVerification
        | Verdict::HumanReview
        | Verdict::NotResumable
        | Verdict::MismatchedRepository => NextLine {
            action: holder.next.action.clone(),
            command: holder.next.command.clone(),
        },
    }
}

fn collect(engine: &Engine<'_>, site: &Site, look: &Look, view: &TaskView) -> Handover {
    let holder = holder(view);
    let details: Vec<SessionDetail> = view
        .candidates
        .iter()
        .filter_map(|candidate| {
            let agent = engine
                .agents
                .iter()
                .find(|agent| agent.id() == candidate.agent)?;
            agent
                .session(engine.env, candidate.identity.session_id.as_str(), TURNS)
                .ok()
        })
        .collect();
    let detail = holder.and_then(|holder| {
        details
            .iter()
            .find(|detail| detail.session.session == holder.session())
    });
    // Where it was left elsewhere, the present tree tells nothing of it.
    let is_compared = holder.is_none_or(|holder| holder.whereabouts.is_compared());
    let deviations = look.record.deviations.len() as u64 + look.record.deviations_left_out;
    let facts = ClaimFacts {
        unpushed: unpushed(site).filter(|_| is_compared),
        uncommitted: is_compared.then_some(deviations),
        proved: holder.map(|holder| {
            let fresh = holder
                .evidence
                .iter()
                .filter(|check| check.proof == Proof::Fresh)
                .count();
            (fresh as u64, holder.evidence.len() as u64)
        }),
    };
    let changes = holder.and_then(|holder| holder.changes.as_ref());
    Handover {
        task_id: view.task_id.clone(),
        title: view.title.clone(),
        at: engine.clock.now(),
        root: crate::paths::text_of_path(&site.place().root),
        branch: look.record.branch.clone(),
        head: look.record.head.as_ref().map(ToString::to_string),
        left_in: holder
            .filter(|holder| holder.whereabouts != Whereabouts::Same)
            .map(|holder| LeftIn {
                root: holder.identity.repository_root.clone(),
                branch: holder.left.as_ref().and_then(|left| left.branch.clone()),
                head: holder.left.as_ref().and_then(|left| left.head.clone()),
                is_compared,
            }),
        boundary: view.boundary.clone(),
        status: holder.map_or(Status::Active, |holder| holder.identity.status),
        judgement: holder.map(Candidate::judgement),
        asked: asked(site, view, &details),
        changes: changes
            .iter()
            .flat_map(|changes| &changes.paths)
            .map(|changed| ChangeLine {
                path: changed.path.clone(),
                what: {
                    let what = format!("{}, {}", changed.verb.code(), changed.place.words());
                    match &changed.by {
                        Some(by) => format!("{what}, recorded by {by}"),
                        None => what,
                    }
                },
                inside_boundary: changed.inside_boundary,
            })
            .collect(),
        changes_incomplete: changes.and_then(|changes| changes.incomplete.clone()),
        commits: changes
            .iter()
            .flat_map(|changes| &changes.commits)
            .map(|commit| {
                let id: String = commit.id.as_str().chars().take(10).collect();
                format!("{id} {} ({})", commit.subject, commit.author)
            })
            .collect(),
        checks: holder
            .iter()
            .flat_map(|holder| &holder.evidence)
            .map(|check| CheckLine {
                command: check.command.clone(),
                proof: check.proof.code().to_owned(),
                counts: check.proof == Proof::Fresh,
                outcome: check.outcome.clone(),
                at: check.at,
                observed: check.evidence_source != Some(crate::evidence::EvidenceSource::Reported),
            })
            .collect(),
        no_checks: view.plan.no_checks,
        running: view.background.tasks.iter().map(running_line).collect(),
        running_of_agents: view.background.of_agents.iter().map(agent_line).collect(),
        ended: view.background.ended.iter().map(ended_line).collect(),
        running_unread: view
            .background
            .issues
            .iter()
            .map(|issue| crate::paths::text_of_path(&issue.path))
            .collect(),
        reviews: view
            .reviews
            .iter()
            .filter(|review| review.is_open())
            .cloned()
            .collect(),
        effects: holder
            .map(|holder| holder.open_effects.clone())
            .unwrap_or_default(),
        notes: view.notes.clone(),
        todos: detail
            .map(|detail| detail.session.plan.clone())
            .filter(|plan| !plan.is_empty())
            .or_else(|| holder.map(|holder| holder.todos.clone()))
            .unwrap_or_default(),
        claims: claims(view, detail, &facts),
        sessions: view
            .candidates
            .iter()
            .map(|candidate| {
                let detail = details
                    .iter()
                    .find(|detail| detail.session.session == candidate.session());
                let known = site
                    .view
                    .state
                    .identity(&view.task_id, &candidate.session());
                // Where another session took it up, its record was changed then, and it did nothing.
                let closed = candidate.identity.status.is_closed();
                let last = detail
                    .and_then(|detail| detail.session.updated_at)
                    .or_else(|| known.filter(|_| closed).map(|known| known.created_at));
                session_line(engine, candidate, last)
            })
            .collect(),
        next: holder.map_or_else(
            || NextLine {
                action: "inspect".to_owned(),
                command: None,
            },
            next_line,
        ),
        transcript: detail
            .and_then(|detail| detail.transcript.as_deref())
            .map(crate::paths::text_of_path),
    }
}

fn running_line(running: &RunningView) -> RunningLine {
    RunningLine {
        name: running.name.clone(),
        command: running.command.clone(),
        since: running.created_at,
        is_seen: !matches!(running.watch, Watch::Unknown { .. }),
        look: running.look.clone(),
        stop: running.stop.clone(),
    }
}

fn agent_line(running: &AgentRunningView) -> AgentRunningLine {
    AgentRunningLine {
        name: running.name.clone().unwrap_or_else(|| running.id.clone()),
        session: running.session_id.clone(),
        runs: running.runs,
        proof: running.proof.clone(),
        look: running.look.clone(),
    }
}

fn ended_line(ended: &EndedView) -> EndedLine {
    EndedLine {
        name: ended.name.clone(),
        how: ended.how.clone(),
        at: ended.ended_at,
        look: ended.look.clone(),
    }
}

/// Returns the session that holds the task now.
fn holder(view: &TaskView) -> Option<&Candidate> {
    let open = view
        .candidates
        .iter()
        .rev()
        .find(|candidate| !candidate.identity.status.is_closed());
    open.or_else(|| view.candidates.last())
}

fn session_line(engine: &Engine<'_>, candidate: &Candidate, last: Option<Time>) -> SessionLine {
    let agent = engine
        .agents
        .iter()
        .find(|agent| agent.id() == candidate.agent);
    let words = agent.and_then(|agent| agent.resume_command(&candidate.identity.session_id));
    SessionLine {
        session: candidate.session(),
        status: candidate.identity.status,
        liveness: match &candidate.liveness {
            Liveness::Live { proof } => format!("open: {proof}"),
            Liveness::Ended { proof } => format!("ended: {proof}"),
            Liveness::Crashed { proof } => format!("crashed: {proof}"),
            Liveness::Unknown { why } => format!("not known: {why}"),
        },
        last_record: candidate
            .left
            .as_ref()
            .map(|left| left.at)
            .or(last)
            .unwrap_or(candidate.identity.updated_at),
        resume_command: words.map(|words| {
            let words: Vec<String> = words
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            crate::redact::line_of(words.iter().map(String::as_str))
        }),
    }
}

fn asked(site: &Site, view: &TaskView, details: &[SessionDetail]) -> Vec<Asked> {
    let mut asked = Vec::new();
    for candidate in &view.candidates {
        let session = candidate.session();
        if let Some(record) = site.view.state.session(&session)
            && let Some(prompt) = &record.prompt
        {
            asked.push(Asked {
                at: Some(record.created_at),
                session: session.clone(),
                text: prompt.clone(),
            });
        }
        let detail = details
            .iter()
            .find(|detail| detail.session.session == session);
        // Where the turn is among those that were read it is there with its lines.
        let turn = detail.and_then(|detail| {
            let mut turns = detail.turns.iter().rev();
            turns
                .find(|turn| turn.role == "user")
                .map(|turn| turn.text.clone())
        });
        let last = detail.and_then(|detail| detail.session.last_prompt.clone());
        if let Some(prompt) = longer(turn, last) {
            let at = detail.and_then(|detail| detail.session.updated_at);
            asked.push(Asked {
                at,
                session,
                text: prompt,
            });
        }
    }
    asked
}

/// Returns the turn where it is the prompt, or begins as it does; else the prompt.
fn longer(turn: Option<String>, prompt: Option<String>) -> Option<String> {
    let prompt = prompt?;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let begins = words(prompt.trim_end_matches('…'));
    Some(
        turn.filter(|turn| words(turn).starts_with(&begins))
            .unwrap_or(prompt),
    )
}

/// Finds what was claimed in notes and in the last turns, and holds it against what was seen.
fn claims(view: &TaskView, detail: Option<&SessionDetail>, facts: &ClaimFacts) -> Vec<Claim> {
    let mut found = Vec::new();
    for note in &view.notes {
        for (kind, text) in claims_in(&note.text) {
            found.push(Claim {
                by: note.by.clone(),
                text,
                standing: facts.hold(kind),
            });
        }
    }
    if let Some(detail) = detail {
        for turn in detail.turns.iter().filter(|turn| turn.role == "assistant") {
            for (kind, text) in claims_in(&turn.text) {
                let by = detail.session.session.clone();
                found.push(Claim {
                    by,
                    text,
                    standing: facts.hold(kind),
                });
            }
        }
    }
    found
}

/// Counts the commits on the branch that its upstream does not have; `None` where there is no upstream to compare with.
fn unpushed(site: &Site) -> Option<u64> {
    let repository = site.repository.libgit2()?;
    let head = repository.head().ok()?;
    let name = head.name().ok()?;
    let upstream = repository.branch_upstream_name(name).ok()?;
    let upstream = repository
        .find_reference(upstream.as_str().ok()?)
        .ok()?
        .target()?;
    let (ahead, _) = repository
        .graph_ahead_behind(head.target()?, upstream)
        .ok()?;
    Some(ahead as u64)
}

/// A hand-over that was delivered.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// The task.
    pub task_id: TaskId,
    /// The document.
    pub document: Document,
    /// How the agent received it.
    pub received: Received,
}

/// Delivers a task to another agent: as a new session, a message or a file, whatever it takes. The task stays where it is
/// until that session takes it up; that it was handed over is noted on it.
pub fn hand_over(
    engine: &Engine<'_>,
    to: &dyn Agent,
    task: Option<&str>,
    session: Option<&str>,
    budget: usize,
) -> Result<Delivered, EngineError> {
    let site = Site::open_used(engine, task)?;
    let caller = Caller::find(engine, session, None, None)?;
    let look = site.look(engine, false, false)?;
    let view = as_received(engine, &site, &caller, &look, task)?;
    demand_here(&view)?;
    if !to.receives() {
        return Err(AgentError::cannot_receive(to.name()).into());
    }
    if !to.detect(engine.env).installed {
        return Err(AgentError::NotInstalled {
            agent: to.name(),
            why: "its program and its home were not found".to_owned(),
        }
        .into());
    }
    let found = collect(engine, &site, &look, &view);
    let document = found.document(budget, engine.masker());
    let at = engine.clock.now();
    let parcel = Parcel {
        task_id: found.task_id.clone(),
        title: document.title.clone(),
        document: document.markdown(),
        at,
    };
    let received = to.receive(engine.env, site.place(), &parcel)?;
    let told = match (&received.session, &received.file) {
        (Some(session), _) => format!("handed over to {session}"),
        // Nobody has it before a person sends it.
        (None, Some(file)) => format!(
            "a hand-over for {} was written to {}",
            to.id(),
            crate::paths::text_of_path(file)
        ),
        (None, None) => format!("handed over to {}", to.id()),
    };
    let actor = caller.actor();
    let by = actor.session.clone();
    site.ledger.transact(engine.clock, PATIENCE, |_| {
        let note = Note {
            at,
            by: by.clone(),
            text: told.clone(),
        };
        let changes = vec![Change::Note {
            task_id: found.task_id.clone(),
            note,
        }];
        Ok::<_, EngineError>((
            Some(Transition {
                at,
                actor: actor.clone(),
                operation: "handover".to_owned(),
                changes,
            }),
            (),
        ))
    })?;
    Ok(Delivered {
        task_id: found.task_id,
        document,
        received,
    })
}
