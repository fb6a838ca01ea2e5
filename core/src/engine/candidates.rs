//! Candidates: every identity there is a word of, each with its verdict, here and now.
use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

use super::candidate::{Candidate, IdentityView, ReasonView, RecordView, Source};
use super::compared::movement;
use super::life::{SESSIONS, life, own_session};
use super::prove::{CheckView, proofs};
use super::recorded::{identities, is_beside_tasks, seen_here};
use super::views::{NextView, next_at_work, next_of};
use super::{Caller, Engine, EngineError, Site, changes};
use crate::agent::{ForeignTask, Session, SessionQuery};
use crate::boundary::Boundary;
use crate::fingerprint::Look;
use crate::identity::{Closing, Identity, OpenEffect, Recorded, SessionRecord};
use crate::ids::{AgentId, Fingerprint, SessionRef, TaskId};
use crate::issue::Issue;
use crate::ledger::{Ledger, TaskEntry, View};
use crate::observation;
use crate::paths::text_of_path;
use crate::process::{Liveness, ProcessIdentity};
use crate::review::{Review, ReviewState};
use crate::status::Status;
use crate::text::hex;
use crate::time::Time;
use crate::verdict::{
    Content, Facts, Movement, ReasonCode, ReviewGate, Verdict, Whereabouts, judge,
};

/// Gathers candidates: one look at the tree serves all.
pub(super) struct Gatherer<'a> {
    pub engine: &'a Engine<'a>,
    pub site: &'a Site,
    pub caller: &'a Caller,
    pub look: &'a Look,
    /// The unfinished sessions of this place in the agents' own stores.
    pub sessions: Vec<Session>,
    /// The tasks of this place in the agents' own formats.
    pub foreign: Vec<ForeignTask>,
    /// What was damaged in the agents' stores.
    pub issues: Vec<Issue>,
}

impl<'a> Gatherer<'a> {
    /// Asks every adapter once.
    pub(super) fn new(
        engine: &'a Engine<'a>,
        site: &'a Site,
        caller: &'a Caller,
        look: &'a Look,
    ) -> Self {
        let mut gatherer = Self {
            engine,
            site,
            caller,
            look,
            sessions: Vec::new(),
            foreign: Vec::new(),
            issues: Vec::new(),
        };
        let query = SessionQuery {
            root: Some(site.place().root.clone()),
            limit: SESSIONS,
            ..SessionQuery::default()
        };
        for agent in engine.agents {
            let sessions = agent.sessions(engine.env, &query);
            gatherer.sessions.extend(sessions.items);
            gatherer.issues.extend(sessions.issues);
            let tasks = agent.tasks(engine.env, site.place());
            gatherer.foreign.extend(tasks.items);
            gatherer.issues.extend(tasks.issues);
        }
        for session in super::recorded::beside_tasks(engine, site) {
            let told = |known: &Session| known.session == session.session;
            if !gatherer.sessions.iter().any(told)
                && caller.session.as_ref() != Some(&session.session)
            {
                gatherer.sessions.push(session);
            }
        }
        gatherer
    }

    /// Judges everything there is a word of in `view`, the unfinished ones first.
    pub(super) fn all(&self, view: &View) -> Result<Vec<Candidate>, EngineError> {
        let mut found = Vec::new();
        for entry in view.state.tasks.values() {
            for identity in &entry.identities {
                found.push(self.of_identity(view, entry, identity)?);
            }
        }
        for task in &self.foreign {
            let ours = found.iter().any(|candidate| {
                candidate.identity.task_id == task.task_id && candidate.session() == task.session
            });
            // What the ledger does not hold of its own task was never so, whatever was shown there once.
            let shown = task.mirrored && view.state.tasks.contains_key(&task.task_id);
            if !ours && !shown {
                found.push(self.of_foreign(view, task));
            }
        }
        for session in &self.sessions {
            let unfinished = session.interruption.is_some();
            let at_work = matches!(session.liveness, Liveness::Live { .. });
            let counts = (unfinished || at_work) && !session.helper;
            let tasks = identities(&view.state, &session.session)
                .filter(|identity| self.site.is_here(&identity.place));
            let told = !is_beside_tasks(
                tasks,
                self.recorded(view, session).as_deref(),
                &session.open_effects,
                session.updated_at,
            ) || self
                .foreign
                .iter()
                .any(|task| task.session == session.session);
            if counts && !told {
                let candidate = self.of_session(view, session)?;
                let above = session.process.as_ref();
                let above = above.is_some_and(|process| self.caller.descends_from(process));
                // Whoever else is at work here is told, though nothing is left to take up.
                if unfinished || candidate.verdict == Verdict::InUse && !above {
                    found.push(candidate);
                }
            }
        }
        for there in self.beside_elsewhere(view)? {
            let place = (there.whereabouts, there.root);
            found.push(self.of_recorded(view, &there.session, Some(&there.record), place));
        }
        found.sort_by(|a, b| {
            (
                a.verdict,
                std::cmp::Reverse(a.identity.updated_at),
                &a.identity.task_id,
                &a.identity.session_id,
            )
                .cmp(&(
                    b.verdict,
                    std::cmp::Reverse(b.identity.updated_at),
                    &b.identity.task_id,
                    &b.identity.session_id,
                ))
        });
        Ok(found)
    }

    /// Judges one identity of the ledger.
    pub(super) fn of_identity(
        &self,
        view: &View,
        entry: &TaskEntry,
        identity: &Identity,
    ) -> Result<Candidate, EngineError> {
        let whereabouts = self.site.whereabouts(&identity.place)?;
        // A task that is over is not written to any more; that its session ended stands in the session's own record.
        let closing = identity.closing.as_ref().or_else(|| {
            let over = identity.status.is_closed();
            let session = view.state.session(&identity.session).filter(|_| over)?;
            session.closing.as_ref()
        });
        let mut liveness = self.liveness(&identity.session, identity.process.as_ref(), closing);
        // Life belongs to the session: what another of its tasks recorded counts too.
        if !matches!(liveness, Liveness::Live { .. }) && identity.closing.is_none() {
            let live = identities(&view.state, &identity.session)
                .filter(|other| other.task_id != identity.task_id)
                .map(|other| {
                    self.liveness(
                        &other.session,
                        other.process.as_ref(),
                        other.closing.as_ref(),
                    )
                })
                .find(|other| matches!(other, Liveness::Live { .. }));
            liveness = live.unwrap_or(liveness);
        }
        let mut open_effects = identity.unknown_effects();
        if let Some(session) = self
            .sessions
            .iter()
            .find(|session| session.session == identity.session)
        {
            let recorded = open_effects.clone();
            open_effects.extend(
                session
                    .open_effects
                    .iter()
                    .filter(|effect| {
                        // Our hook and the agent's own store do not tell the same moment of one call.
                        !recorded.iter().any(|known| {
                            known.tool == effect.tool && known.argument == effect.argument
                        })
                    })
                    .cloned(),
            );
        }
        // The agent's own files may know more than our ledger: a take-up or a question that its plugin recorded.
        let told = self
            .foreign
            .iter()
            .find(|task| task.task_id == identity.task_id && task.session == identity.session);
        let known = |review: &&Review| {
            entry
                .reviews
                .iter()
                .any(|own| own.review_id == review.review_id)
        };
        let asked_there = told.and_then(|task| task.review.as_ref());
        let review = entry
            .reviews
            .iter()
            .find_map(gate)
            .or_else(|| asked_there.filter(|review| !known(review)).and_then(gate));
        let taken_there = told.filter(|task| {
            task.status == Status::Abandoned && !task.mirrored && !identity.status.is_closed()
        });
        let content = self.recorded_content(view, whereabouts, identity);
        let left = identity.latest.as_ref().map(|recorded| &recorded.tree);
        let at_record = identity.latest.as_ref().map(|left| left.provenance.at);
        let facts = Facts {
            status: taken_there.map_or(identity.status, |task| task.status),
            resumed_to: identity.resumed_to.clone().or_else(|| {
                let id = taken_there?.resumed_to.clone()?;
                Some(SessionRef::new(identity.session.agent.clone(), id))
            }),
            whereabouts,
            root: self
                .site
                .described(self.engine, &identity.place, whereabouts),
            // What lies elsewhere did not move.
            movement: movement(
                left.filter(|_| content != Content::NotCompared),
                &self.look.record,
            ),
            content,
            review,
            liveness,
            open_effects: open_effects.len(),
            open_turn: self
                .open_turn(view, &identity.session)
                .filter(|(at, recorded)| Some(*at) > at_record || *recorded >= at_record)
                .map(|(at, _)| at),
        };
        let evidence = proofs(self.engine, entry, self.look);
        let mut candidate = self.candidate(
            IdentityView::of(identity, &entry.task.title),
            identity.session.agent.clone(),
            &facts,
            identity.latest.as_ref(),
            &entry.task.boundary,
            evidence,
            open_effects,
            entry.seq,
            Source::Ledger,
        );
        if candidate.own
            && self.is_at_work(identity)
            && let Some(next) = next_at_work(&candidate.identity, candidate.verdict)
        {
            candidate.next = next;
        }
        self.add_what_others_left(&mut candidate, view, entry, identity);
        if !identity.status.is_closed()
            && let Some(left) = &identity.latest
        {
            candidate.since = observation::since(
                &view.state.observations,
                &identity.place.worktree_id,
                left.provenance.at,
            );
            for happening in &mut candidate.since {
                happening.what = self.engine.mask(&happening.what);
            }
        }
        Ok(candidate)
    }

    /// Returns what hooks recorded of a session: of this work tree, else of the one it works in.
    fn recorded<'v>(&self, view: &'v View, session: &Session) -> Option<Cow<'v, SessionRecord>> {
        let record = view.state.session(&session.session)?;
        seen_here(self.site, record).or(Some(Cow::Borrowed(record)))
    }

    /// Tells of a turn of another session, here, that was going on when it was last heard of, and when the record is of that its
    /// hooks made before.
    fn open_turn(&self, view: &View, session: &SessionRef) -> Option<(Time, Option<Time>)> {
        let own = self.caller.session.as_ref() == Some(session);
        let record = view.state.session(session).filter(|_| !own)?;
        let recorded = record.latest.as_ref().map(|latest| latest.provenance.at);
        record
            .open_turn()
            .filter(|_| self.site.is_here(&record.place))
            .map(|at| (at, recorded))
    }

    /// Tells whether the calling session goes on with what it holds: it runs in the process that was there when it recorded
    /// last. One that was opened again since may find other people's changes.
    fn is_at_work(&self, identity: &Identity) -> bool {
        let recorded = identity.latest.as_ref().map(|left| left.provenance.at);
        identity.closing.is_none()
            && identity.status != Status::StaleTask
            && identity.process.as_ref().is_some_and(|process| {
                self.caller.descends_from(process) && process.started_at <= recorded
            })
    }

    /// Judges a session that no task of the ledger knows: by what our hook recorded, else by the agent's own snapshot.
    fn of_session(&self, view: &View, session: &Session) -> Result<Candidate, EngineError> {
        let recorded = self.recorded(view, session);
        let recorded = recorded.as_deref();
        // The agent's store knows a folder; what our hook recorded knows whether it is still the same place.
        let place = match recorded {
            Some(record) => {
                let whereabouts = self.site.whereabouts(&record.place)?;
                let root = self.site.described(self.engine, &record.place, whereabouts);
                (whereabouts, root)
            }
            None => (Whereabouts::Same, String::new()),
        };
        Ok(self.of_recorded(view, session, recorded, place))
    }

    /// Judges it by its record and by where that was made: how the present place relates to that one, and its name.
    fn of_recorded(
        &self,
        view: &View,
        session: &Session,
        recorded: Option<&SessionRecord>,
        (whereabouts, root): (Whereabouts, String),
    ) -> Candidate {
        let latest = recorded.and_then(|record| record.latest.as_ref());
        let liveness = self.liveness(
            &session.session,
            recorded
                .and_then(|record| record.process.as_ref())
                .or(session.process.as_ref()),
            recorded.and_then(|record| record.closing.as_ref()),
        );
        let content = match (latest, &session.snapshot_tree) {
            (None, Some(tree)) if whereabouts == Whereabouts::Same => {
                let doubt = session.snapshot_doubt();
                doubt.map_or_else(|| self.content_of_tree(tree), Content::RecordIncomplete)
            }
            (latest, _) => self.content(whereabouts, latest),
        };
        let left = latest.map(|recorded| &recorded.tree);
        let facts = Facts {
            status: Status::Active,
            resumed_to: None,
            whereabouts,
            root,
            // What lies elsewhere did not move.
            movement: movement(
                left.filter(|_| content != Content::NotCompared),
                &self.look.record,
            ),
            content,
            review: None,
            liveness,
            open_effects: session.open_effects.len(),
            open_turn: self.open_turn(view, &session.session).map(|(at, _)| at),
        };
        let title = session
            .title
            .clone()
            .or_else(|| session.last_prompt.clone())
            .or_else(|| session.name.clone())
            .unwrap_or_else(|| session.session.id.to_string());
        let title = self.engine.mask(&title);
        let identity = IdentityView {
            task_id: own_slug(&self.site.ledger, view, &title, &session.session),
            title,
            session_id: session.session.id.clone(),
            repository_root: text_of_path(
                session.cwd.as_deref().unwrap_or(&self.site.place().root),
            ),
            base_working_tree_fingerprint: None,
            latest_working_tree_fingerprint: latest
                .and_then(Recorded::fingerprint)
                .map(|print| print.as_str().to_owned())
                .or_else(|| session.snapshot_tree.clone()),
            status: Status::Active,
            updated_at: session
                .updated_at
                .or(session.created_at)
                .unwrap_or_else(|| Time::from_millis(0)),
            revision: 0,
            resumed_to_session_id: None,
            resumed_from_session_id: None,
        };
        let effects = session.open_effects.clone();
        let source = Source::Session;
        let agent = session.session.agent.clone();
        self.candidate(
            identity,
            agent,
            &facts,
            latest,
            &Boundary::default(),
            Vec::new(),
            effects,
            0,
            source,
        )
    }

    /// Judges a task in an agent's own format, by our rules.
    fn of_foreign(&self, view: &View, task: &ForeignTask) -> Candidate {
        let whereabouts = if task.root_matches {
            Whereabouts::Same
        } else {
            Whereabouts::OtherRepository
        };
        let review = task.review.as_ref().and_then(gate);
        let own = self.caller.session.as_ref() == Some(&task.session);
        // Nobody can answer a question that is gone. A person can go on with the present content all the same.
        let question_lost = task.status == Status::HumanReview && task.review.is_none();
        let facts = Facts {
            status: if question_lost {
                Status::Dirty
            } else {
                task.status
            },
            resumed_to: task
                .resumed_to
                .clone()
                .map(|id| SessionRef::new(task.session.agent.clone(), id)),
            whereabouts,
            root: text_of_path(&task.root),
            content: if whereabouts != Whereabouts::Same {
                Content::NotCompared
            } else if question_lost {
                Content::Blind(
                    "it waits for a person's decision, and the question is not there or cannot be read; only a person can go on with it"
                        .to_owned(),
                )
            } else {
                task.content.clone()
            },
            movement: Movement::default(),
            review,
            liveness: if own {
                own_session()
            } else {
                task.liveness.clone()
            },
            open_effects: task.open_effects.len(),
            open_turn: None,
        };
        let identity = IdentityView {
            task_id: task.task_id.clone(),
            title: self.engine.mask(&task.title),
            session_id: task.session.id.clone(),
            repository_root: text_of_path(&task.root),
            base_working_tree_fingerprint: None,
            latest_working_tree_fingerprint: Some(task.fingerprint.clone()),
            status: task.status,
            updated_at: task.updated_at,
            revision: task.revision.unwrap_or(0),
            resumed_to_session_id: task.resumed_to.clone(),
            resumed_from_session_id: None,
        };
        let boundary = Boundary {
            allowed: task.allowed.clone(),
            avoided: task.avoided.clone(),
            ..Boundary::default()
        };
        let effects = task.open_effects.clone();
        let agent = task.session.agent.clone();
        let source = Source::Foreign(Box::new(task.clone()));
        let mut candidate = self.candidate(
            identity,
            agent,
            &facts,
            None,
            &boundary,
            Vec::new(),
            effects,
            task.revision.unwrap_or(0),
            source,
        );
        // Of what is over in the agent's own files alone there is nothing to show.
        let is_known = self.site.ledger.knows(&view.state, &task.task_id);
        if candidate.verdict == Verdict::NotResumable && !is_known {
            candidate.next = NextView::none();
        }
        candidate
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "each is one part of the answer; a struct would only repeat it"
    )]
    fn candidate(
        &self,
        identity: IdentityView,
        agent: AgentId,
        facts: &Facts,
        left: Option<&Recorded>,
        boundary: &Boundary,
        evidence: Vec<CheckView>,
        open_effects: Vec<OpenEffect>,
        seq: u64,
        source: Source,
    ) -> Candidate {
        let judgement = judge(facts);
        let differs = facts.content == Content::Differs;
        let changes = match left {
            Some(left) if differs => Some(
                changes::between(
                    self.site.repository.git(),
                    &self.site.place().root,
                    &left.tree,
                    &self.look.record,
                    boundary,
                )
                .masked(self.engine),
            ),
            _ => None,
        };
        let listed: Vec<String> = changes
            .iter()
            .flat_map(|changes| &changes.paths)
            .take(20)
            .map(|changed| changed.path.clone())
            .collect();
        let reasons = judgement
            .reasons
            .into_iter()
            .map(|reason| ReasonView {
                paths: if reason.code == ReasonCode::ContentChanged {
                    listed.clone()
                } else {
                    Vec::new()
                },
                code: reason.code,
                message: reason.message,
            })
            .collect();
        let session = SessionRef::new(agent.clone(), identity.session_id.clone());
        let takeable = matches!(
            judgement.verdict,
            Verdict::ResumeVerification | Verdict::StaleTask
        );
        // An incomplete look binds no content, so nothing can be confirmed by it.
        let present = self.present().filter(|_| takeable);
        let token =
            present.map(|present| token(&identity, &agent, judgement.verdict, present, seq));
        let next = next_of(
            &identity,
            &session,
            judgement.verdict,
            facts,
            token.as_deref(),
            self.site.place(),
        );
        let now = self.engine.clock.now();
        Candidate {
            own: self.caller.session.as_ref() == Some(&session),
            resumed_to: facts.resumed_to.clone(),
            whereabouts: facts.whereabouts,
            left: left.map(|recorded| RecordView::of(recorded, &session, now)),
            verdict: judgement.verdict,
            liveness: facts.liveness.clone(),
            identity,
            agent,
            reasons,
            evidence,
            changes,
            since: Vec::new(),
            open_effects,
            todos: self.todos(&session),
            token,
            next,
            source,
        }
    }

    fn liveness(
        &self,
        session: &SessionRef,
        process: Option<&ProcessIdentity>,
        closing: Option<&Closing>,
    ) -> Liveness {
        if self.caller.session.as_ref() == Some(session) {
            return own_session();
        }
        let told = self.sessions.iter().find(|known| &known.session == session);
        life(self.engine, self.caller, told, session, process, closing)
    }
}

/// Returns what a review puts in the way.
fn gate(review: &Review) -> Option<ReviewGate> {
    match review.state {
        ReviewState::Pending => Some(ReviewGate::Pending(review.review_id.clone())),
        ReviewState::Decided { .. } => Some(ReviewGate::Decided(review.review_id.clone())),
        ReviewState::Applied { .. } => None,
    }
}

/// Returns the slug of a title, with a part of the session's id where another task has that slug.
fn own_slug(ledger: &Ledger, view: &View, title: &str, session: &SessionRef) -> TaskId {
    let slug = TaskId::from_title(title);
    if !ledger.knows(&view.state, &slug) {
        return slug;
    }
    let digest = hex(&Sha256::digest(session.to_string().as_bytes()));
    let suffix: String = digest.chars().take(6).collect();
    TaskId::new(format!("{slug}-{suffix}")).unwrap_or(slug)
}

/// Makes the token that confirms exactly what was shown: the record, its verdict, the content, the task's last line.
fn token(
    identity: &IdentityView,
    agent: &AgentId,
    verdict: Verdict,
    present: &Fingerprint,
    seq: u64,
) -> String {
    let mut digest = Sha256::new();
    let revision = identity.revision.to_string();
    let seq = seq.to_string();
    for part in [
        identity.task_id.as_str(),
        agent.as_str(),
        identity.session_id.as_str(),
        verdict.code(),
        present.as_str(),
        &revision,
        &seq,
    ] {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    let digest: String = hex(&digest.finalize()).chars().take(10).collect();
    format!("ok-{digest}")
}
