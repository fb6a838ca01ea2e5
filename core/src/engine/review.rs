//! `review`: a question to a person. The decision is recorded first and applied after; where applying fails, the next call
//! applies it, once, without asking again.
mod avoided;
mod doubt;
mod elsewhere;
mod foreign;
mod list;

pub use avoided::NotBack;
pub(super) use doubt::doubt_review;
use list::find;
pub use list::{ReviewView, review_meant, reviews};

use super::close::entry_of;
use super::views::NextView;
use super::{Caller, Changed, Engine, EngineError, PATIENCE, Site, Which, effects, select};
use crate::boundary::{Boundary, Raise};
use crate::fingerprint::Look;
use crate::identity::Identity;
use crate::ids::{Fingerprint, ReviewId, SessionRef};
use crate::ledger::{Change, TaskEntry, Transition, View};
use crate::review::{Decision, Review, ReviewState};
use crate::status::{self, Event, Status};
use crate::time::Time;

/// The reason code of a question about paths outside the boundary.
pub const BOUNDARY: &str = "BOUNDARY_EXPANSION_REQUIRED";

/// The reason code of a question about what nothing tells of.
const AMBIGUOUS: &str = "AMBIGUOUS_REPOSITORY_STATE";

/// The reason codes of OpenCode++; others are free to be used.
pub const REASON_CODES: [&str; 6] = [
    "NO_EXECUTABLE_TEST",
    BOUNDARY,
    "EXTERNAL_SIDE_EFFECT",
    "UNVERIFIABLE_RESULT",
    "PLUGIN_FAILURE",
    AMBIGUOUS,
];

/// What `review request` is given.
#[derive(Clone, Debug, Default)]
pub struct ReviewRequest {
    /// Whose task.
    pub which: Which,
    /// The reason code.
    pub reason_code: String,
    /// One line; made from the reason code where none is given.
    pub title: Option<String>,
    /// The question in full.
    pub explanation: String,
    /// What the person has to do.
    pub required_action: Option<String>,
    /// When work goes on.
    pub resume_condition: Option<String>,
    /// Commands that may help; never run.
    pub suggested_commands: Vec<String>,
    /// Files it is about.
    pub affected_files: Vec<String>,
    /// Globs asked for.
    pub requested_boundary: Vec<String>,
}

/// What `review approve` and `review reject` are given.
#[derive(Clone, Debug, Default)]
pub struct DecideRequest {
    /// The review, or the task whose only pending review is meant.
    pub review: String,
    /// Yes or no.
    pub approve: bool,
    /// Who decides.
    pub by: String,
    /// The session it is decided from, where it is named.
    pub session: Option<String>,
    /// Its agent.
    pub agent: Option<String>,
    /// The person's remark.
    pub remark: Option<String>,
    /// Approve although the content changed since the question was asked.
    pub content_changed: bool,
}

/// The answer of [`decide`].
#[derive(Clone, Debug)]
pub struct Decided {
    /// The review, decided.
    pub review: Review,
    /// What to do next.
    pub next: NextView,
}

/// Puts a question to a person. An equal question that waits already is returned as it is.
pub fn request_review(engine: &Engine<'_>, request: &ReviewRequest) -> Result<Review, EngineError> {
    let requested_boundary = engine.read_globs(&request.requested_boundary)?;
    let reason = request.reason_code.trim();
    if reason.is_empty()
        || reason.len() > 64
        || !reason
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    {
        return Err(EngineError::NotAllowed(
            "a reason code is a word of letters, digits, '_' and '-'".to_owned(),
        ));
    }
    let site = Site::open_used(engine, request.which.task.as_deref())?;
    let caller = Caller::of(engine, &request.which)?;
    let look = site.settled_look(engine, &caller, true, false)?;
    let at = engine.clock.now();
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        let identity = select::own_one(&site, &view.state, &caller, request.which.task.as_deref())?;
        let entry = entry_of(view, &identity.task_id)?;
        let boundary = &entry.task.boundary;
        if let Some(glob) = request
            .requested_boundary
            .iter()
            .find(|glob| boundary.protects(glob))
        {
            return Err(EngineError::NotAllowed(format!(
                "{glob} must be avoided by task {}, and no approval lifts that",
                entry.task.task_id
            )));
        }
        let review = Review {
            review_id: new_id()?,
            task_id: identity.task_id.clone(),
            session: identity.session.clone(),
            reason_code: reason.to_owned(),
            title: engine.mask(request.title.as_deref().unwrap_or_else(|| title_of(reason))),
            explanation: engine.mask(&request.explanation),
            required_action: engine.mask(
                request
                    .required_action
                    .as_deref()
                    .unwrap_or("decide whether the work may go on"),
            ),
            resume_condition: engine.mask(
                request
                    .resume_condition
                    .as_deref()
                    .unwrap_or("a person approves"),
            ),
            suggested_commands: request
                .suggested_commands
                .iter()
                .map(|command| engine.mask(command))
                .collect(),
            affected_files: request
                .affected_files
                .iter()
                .map(|file| engine.mask(file))
                .collect(),
            current_boundary: entry.task.boundary.allowed.clone(),
            requested_boundary: requested_boundary.clone(),
            fingerprint: look.record.fingerprint.clone(),
            created_at: at,
            state: ReviewState::Pending,
        };
        ask(entry, identity, review, &caller, at)
    })?;
    let review = committed.value;
    if committed.wrote {
        effects::mirror(engine, &site, &review.task_id);
    }
    Ok(review)
}

/// Makes the transition that puts a question; none where an equal one waits already.
fn ask(
    entry: &TaskEntry,
    identity: &Identity,
    review: Review,
    caller: &Caller,
    at: Time,
) -> Result<(Option<Transition>, Review), EngineError> {
    let same = |known: &&Review| {
        known.state == ReviewState::Pending
            && known.reason_code == review.reason_code
            && known.explanation == review.explanation
            && known.affected_files == review.affected_files
            && known.requested_boundary == review.requested_boundary
    };
    if let Some(known) = entry.reviews.iter().find(same) {
        return Ok((None, known.clone()));
    }
    let refuse = |refusal| EngineError::Transition {
        task_id: identity.task_id.clone(),
        refusal,
    };
    let mut next = identity.clone();
    next.status = status::apply(identity.status, Event::ReviewRequested).map_err(refuse)?;
    next.updated_at = at;
    next.revision += 1;
    let changes = vec![
        Change::Review {
            review: Box::new(review.clone()),
        },
        Change::Identity {
            identity: Box::new(next),
        },
    ];
    let transition = Transition {
        at,
        actor: caller.actor(),
        operation: "review-request".to_owned(),
        changes,
    };
    Ok((Some(transition), review))
}

fn new_id() -> Result<ReviewId, EngineError> {
    Ok(ReviewId::new(format!(
        "review-{}",
        ulid::Ulid::generate().to_string().to_lowercase()
    ))?)
}

fn title_of(reason: &str) -> &'static str {
    match reason {
        "NO_EXECUTABLE_TEST" => "no check can be run",
        BOUNDARY => "files outside the task's boundary were changed",
        "EXTERNAL_SIDE_EFFECT" => "something outside the repository would be changed",
        "UNVERIFIABLE_RESULT" => "the result cannot be verified",
        "PLUGIN_FAILURE" => "a tool failed",
        AMBIGUOUS => "the state of the repository is not clear",
        _ => "a decision is needed",
    }
}

/// Makes the question about changed paths outside the boundary.
pub(super) fn boundary_review(
    engine: &Engine<'_>,
    entry: &TaskEntry,
    identity: &Identity,
    outside: &[Changed],
    look: &Look,
    at: Time,
) -> Result<Review, EngineError> {
    let files: Vec<String> = outside.iter().map(|changed| changed.path.clone()).collect();
    let all_avoided: Vec<&str> = files
        .iter()
        .filter(|path| entry.task.boundary.avoids(path))
        .map(String::as_str)
        .collect();
    let avoided = all_avoided.len();
    let mut explanation = format!(
        "{} outside what the task may edit: {}",
        crate::text::count(files.len(), "changed path lies", "changed paths lie"),
        files.join(", ")
    );
    if avoided > 0 {
        let which = if avoided == files.len() {
            "all of this must be avoided, and is put back before anybody can approve".to_owned()
        } else {
            format!(
                "of these must be avoided, and is put back before anybody can approve: {}",
                all_avoided.join(", ")
            )
        };
        explanation.push_str(&format!("; {which}"));
    }
    let required_action = match avoided {
        0 => "approve the wider boundary, or reject and undo the changes",
        all if all == files.len() => "put the paths back as they were and approve, or reject",
        _ => {
            "put back what must be avoided and approve the wider boundary for the rest, or reject and undo the changes"
        }
    };
    let resume_condition = match avoided {
        0 => "the boundary names the paths, or they are as they were; a person approved",
        _ => "what must be avoided is as it was, and a person approved",
    };
    Ok(Review {
        review_id: new_id()?,
        task_id: identity.task_id.clone(),
        session: identity.session.clone(),
        reason_code: BOUNDARY.to_owned(),
        title: title_of(BOUNDARY).to_owned(),
        explanation: engine.mask(&explanation),
        required_action: required_action.to_owned(),
        resume_condition: resume_condition.to_owned(),
        suggested_commands: Vec::new(),
        affected_files: files.clone(),
        current_boundary: entry.task.boundary.allowed.clone(),
        requested_boundary: files.iter().map(|path| Boundary::of_path(path)).collect(),
        fingerprint: look.record.fingerprint.clone(),
        created_at: at,
        state: ReviewState::Pending,
    })
}

/// Records a person's decision and applies it.
pub fn decide(engine: &Engine<'_>, request: &DecideRequest) -> Result<Decided, EngineError> {
    let site = Site::open(engine)?;
    let caller = Caller::find(
        engine,
        request.session.as_deref(),
        request.agent.as_deref(),
        None,
    )?;
    let review = match find(&site.view, &request.review) {
        Ok(review) => review.clone(),
        Err(EngineError::NoReview(_)) => return foreign::decide(engine, &site, &caller, request),
        Err(error) => return Err(error),
    };
    if let ReviewState::Applied { decision, .. } = &review.state {
        // The same answer again changes nothing; another one comes too late.
        return if decision.approved == request.approve {
            effects::mirror(engine, &site, &review.task_id);
            Ok(Decided::of(review, &site.view, request.approve))
        } else {
            Err(EngineError::AlreadyDecided(review.review_id.to_string()))
        };
    }
    if review.state == ReviewState::Pending {
        let look = site.settled_look(engine, &caller, true, false)?;
        record_decision(engine, &site, &caller, request, &review, &look)?;
    }
    apply_decided(engine, &site, &caller)?;
    let view = site.ledger.read()?;
    let review = find(&view, review.review_id.as_str())?.clone();
    // Somebody may have been first, with the other word.
    if let ReviewState::Decided { decision } | ReviewState::Applied { decision, .. } = &review.state
        && decision.approved != request.approve
    {
        return Err(EngineError::AlreadyDecided(review.review_id.to_string()));
    }
    effects::mirror(engine, &site, &review.task_id);
    Ok(Decided::of(review, &view, request.approve))
}

impl Decided {
    /// Says what comes after a decision on a question of the ledger.
    fn of(review: Review, view: &View, approved: bool) -> Self {
        let task = review.task_id.as_str();
        let entry = view.state.tasks.get(&review.task_id);
        let next = match entry {
            Some(entry) if approved => {
                if let Some(other) = entry.open_review() {
                    let id = other.review_id.as_str();
                    NextView::new("human-review", &["git", "takeup", "review", "show", id])
                } else if let Some(holder) = entry.open_holder() {
                    let session = holder.session.id.as_str();
                    let words = ["git", "takeup", "evaluate", task, "--session", session];
                    NextView::new("evaluate", &words)
                } else {
                    NextView::new("show", &["git", "takeup", "show", task])
                }
            }
            Some(_) | None => NextView::new("show", &["git", "takeup", "show", task]),
        };
        Self { review, next }
    }
}

fn record_decision(
    engine: &Engine<'_>,
    site: &Site,
    caller: &Caller,
    request: &DecideRequest,
    review: &Review,
    look: &Look,
) -> Result<(), EngineError> {
    let present: Option<&Fingerprint> = look.record.fingerprint.as_ref();
    let same = present.is_some() && present == review.fingerprint.as_ref();
    let entry = entry_of(&site.view, &review.task_id)?;
    let compared = if request.approve {
        avoided::demand_back(site, entry, review, look)?
    } else {
        None
    };
    // A yes that grants nothing is for whatever is there: what was asked about is back.
    let grants = compared.is_none() || !avoided::granted(review, &entry.task.boundary).is_empty();
    if request.approve && !same && grants && !request.content_changed {
        return Err(EngineError::NeedsConfirmation {
            what: "the content changed since the question was asked".to_owned(),
            command: format!(
                "git takeup review approve {} --content-changed",
                review.review_id
            ),
        });
    }
    let at = engine.clock.now();
    site.ledger.transact(engine.clock, PATIENCE, |view| {
        let (entry, known) = view
            .state
            .review(&review.review_id)
            .ok_or_else(|| EngineError::NoReview(review.review_id.to_string()))?;
        if known.state != ReviewState::Pending {
            return Ok((None, ()));
        }
        if let Some(compared) = &compared {
            compared.demand_none_avoided(entry)?;
        }
        let mut decided = known.clone();
        decided.state = ReviewState::Decided {
            decision: Decision {
                approved: request.approve,
                by: engine.mask(&request.by),
                session: caller.actor().session,
                at,
                remark: request.remark.as_deref().map(|text| engine.mask(text)),
                fingerprint: present.cloned(),
            },
        };
        let changes = vec![Change::Review {
            review: Box::new(decided),
        }];
        let transition = Transition {
            at,
            actor: caller.actor(),
            operation: "review-decide".to_owned(),
            changes,
        };
        Ok((Some(transition), ()))
    })?;
    Ok(())
}

/// Applies every decision that is recorded and not yet applied. Called by whatever writes next.
pub(super) fn apply_decided(
    engine: &Engine<'_>,
    site: &Site,
    caller: &Caller,
) -> Result<(), EngineError> {
    elsewhere::take_over(engine, site, caller)?;
    let at = engine.clock.now();
    let view = site.ledger.read()?;
    let undecided = |view: &View| -> Vec<Review> {
        let all = view.state.tasks.values().flat_map(|entry| &entry.reviews);
        all.filter(|review| matches!(review.state, ReviewState::Decided { .. }))
            .cloned()
            .collect()
    };
    if undecided(&view).is_empty() {
        return Ok(());
    }
    let place = site.place_record()?;
    let committed = site.ledger.transact(engine.clock, PATIENCE, |view| {
        let mut changes = Vec::new();
        let undecided = undecided(view);
        for review in &undecided {
            let ReviewState::Decided { decision } = &review.state else {
                continue;
            };
            let entry = entry_of(view, &review.task_id)?;
            changes.extend(consequences(entry, review, decision, &place, at));
            let mut applied = review.clone();
            applied.state = ReviewState::Applied {
                decision: decision.clone(),
                at,
            };
            changes.push(Change::Review {
                review: Box::new(applied),
            });
        }
        let transition = (!changes.is_empty()).then(|| Transition {
            at,
            actor: caller.actor(),
            operation: "review-apply".to_owned(),
            changes,
        });
        Ok::<_, EngineError>((transition, undecided))
    })?;
    for review in &committed.value {
        effects::mirror(engine, site, &review.task_id);
    }
    Ok(())
}

/// Returns what a decision changes: boundary, status, and which session holds the task.
fn consequences(
    entry: &TaskEntry,
    review: &Review,
    decision: &Decision,
    place: &crate::identity::PlaceRecord,
    at: Time,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let granted = avoided::granted(review, &entry.task.boundary);
    if decision.approved && !granted.is_empty() {
        let mut task = entry.task.clone();
        let added: Vec<String> = granted
            .into_iter()
            .filter(|glob| !task.boundary.allowed.contains(glob))
            .collect();
        // An empty list allows everything: there is nothing to widen.
        if !task.boundary.allowed.is_empty() {
            task.boundary.allowed.extend(added.iter().cloned());
        }
        task.boundary.revision += 1;
        let why = decision
            .remark
            .clone()
            .unwrap_or_else(|| review.title.clone());
        task.boundary.raised.push(Raise {
            at,
            by: decision.session.clone(),
            why,
            added,
        });
        changes.push(Change::Task { task });
    }
    let others_wait = entry
        .reviews
        .iter()
        .any(|other| other.review_id != review.review_id && other.is_open());
    let Some(mut holder) = entry.open_holder().cloned() else {
        return changes;
    };
    let settled = decision.approved && holder.before.settle(review);
    let event = if decision.approved {
        Event::ReviewApproved
    } else {
        Event::ReviewRejected
    };
    if decision.approved && others_wait {
        if settled {
            holder.updated_at = at;
            holder.revision += 1;
            changes.push(Change::Identity {
                identity: Box::new(holder),
            });
        }
        return changes;
    }
    let Ok(status) = status::apply(Status::HumanReview, event) else {
        return changes;
    };
    let moves = decision.approved && decides_for_itself(&decision.session, &holder);
    let mut next = holder.clone();
    next.status = if moves { Status::Abandoned } else { status };
    next.resumed_to = moves.then(|| decision.session.clone());
    next.updated_at = at;
    next.revision += 1;
    changes.push(Change::Identity {
        identity: Box::new(next),
    });
    if moves {
        let known = entry.identity(&decision.session);
        changes.push(Change::Identity {
            identity: Box::new(Identity {
                session: decision.session.clone(),
                place: place.clone(),
                status,
                process: None,
                closing: None,
                open_effects: Vec::new(),
                inherited_effects: holder.unknown_effects(),
                resumed_from: Some(holder.session.clone()),
                resumed_to: None,
                closed_by: None,
                created_at: known.map_or(at, |known| known.created_at),
                updated_at: at,
                revision: known.map_or(1, |known| known.revision + 1),
                ..holder
            }),
        });
    }
    changes
}

/// Tells whether an approval ties the task to the session it came from: another agent session does, a person at a
/// terminal who answers for the session that asked does not.
fn decides_for_itself(session: &SessionRef, holder: &Identity) -> bool {
    session != &holder.session && !session.is_nobody_special()
}
