//! An adapter whose every word passes the masks: secrets of the agents' records stay out of whatever is told of them, whichever
//! field they stand in.
//!
//! The answers are taken apart without a rest, so that a field that is added later does not pass by unseen. Ids, paths and tree
//! ids are left: they name what they name.
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{
    Agent, AgentError, AgentTask, Detection, Effect, ForeignAnswer, ForeignTask, Found, HookEvent,
    HookKind, Interruption, Parcel, PlanItem, Received, Rung, Session, SessionDetail, SessionQuery,
    Turn,
};
use crate::env::Env;
use crate::identity::OpenEffect;
use crate::ids::{AgentId, SessionId};
use crate::integration::{EditPlan, IntegrationState, Scope};
use crate::issue::Issue;
use crate::process::Liveness;
use crate::redact::Masker;
use crate::repository::Place;
use crate::review::{Decision, Review, ReviewState};
use crate::verdict::Content;

/// An adapter behind the masks.
#[derive(Clone, Copy, Debug)]
pub struct Masked<A>(A);

impl<A: Agent> Masked<A> {
    /// Puts an adapter behind them.
    pub const fn new(agent: A) -> Self {
        Self(agent)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<A: Agent> Agent for Masked<A> {
    fn id(&self) -> AgentId {
        self.0.id()
    }

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn ladder(&self) -> Vec<Rung> {
        self.0.ladder()
    }

    fn detect(&self, env: &Env) -> Detection {
        self.0.detect(env)
    }

    fn session_of(&self, env: &Env) -> Option<SessionId> {
        self.0.session_of(env)
    }

    fn sessions(&self, env: &Env, query: &SessionQuery) -> Found<Session> {
        Words::of(env).found(self.0.sessions(env, query), Words::session)
    }

    fn unread(&self, env: &Env, root: &Path) -> Option<PathBuf> {
        self.0.unread(env, root)
    }

    fn session(&self, env: &Env, id: &str, turns: usize) -> Result<SessionDetail, AgentError> {
        let words = Words::of(env);
        let mut detail = words.result(self.0.session(env, id, turns))?;
        let SessionDetail {
            session,
            turns,
            transcript: _,
        } = &mut detail;
        words.session(session);
        for Turn { role, at: _, text } in turns {
            words.mask(role);
            words.mask(text);
        }
        Ok(detail)
    }

    fn recover(&self, env: &Env, id: &str) -> Result<String, AgentError> {
        let words = Words::of(env);
        let mut document = words.result(self.0.recover(env, id))?;
        words.mask(&mut document);
        Ok(document)
    }

    fn recover_as_session(&self, env: &Env, id: &str) -> Result<Received, AgentError> {
        Words::of(env).result(self.0.recover_as_session(env, id))
    }

    fn background(&self, env: &Env) -> Found<AgentTask> {
        Words::of(env).found(self.0.background(env), |words, task| {
            let AgentTask {
                id: _,
                name,
                session: _,
                runs: _,
                proof,
                output: _,
            } = task;
            words.all(name);
            words.mask(proof);
        })
    }

    fn tasks(&self, env: &Env, place: &Place) -> Found<ForeignTask> {
        Words::of(env).found(self.0.tasks(env, place), Words::task)
    }

    fn answers(&self, env: &Env, place: &Place, asked: &[Review]) -> Found<ForeignAnswer> {
        // Ids, a yes or no, and a time.
        Words::of(env).found(self.0.answers(env, place, asked), |_, _| {})
    }

    fn refuses_yes(&self, asked: &Review) -> Option<String> {
        self.0.refuses_yes(asked)
    }

    fn mirrors(&self, env: &Env, place: &Place) -> bool {
        self.0.mirrors(env, place)
    }

    fn apply(&self, env: &Env, place: &Place, effect: &Effect) -> Result<(), AgentError> {
        Words::of(env).result(self.0.apply(env, place, effect))
    }

    fn install(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        Words::of(env).result(self.0.install(env, scope))
    }

    fn uninstall(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        Words::of(env).result(self.0.uninstall(env, scope))
    }

    fn integration(&self, env: &Env, scope: &Scope) -> IntegrationState {
        self.0.integration(env, scope)
    }

    fn tells_ends(&self) -> bool {
        self.0.tells_ends()
    }

    fn hook(&self, env: &Env, event: &str, input: &[u8]) -> Result<HookEvent, AgentError> {
        let words = Words::of(env);
        let mut said = words.result(self.0.hook(env, event, input))?;
        let HookEvent {
            session: _,
            cwd: _,
            kind,
            transcript: _,
        } = &mut said;
        words.kind(kind);
        Ok(said)
    }

    fn hook_reply(&self, event: &str, notice: &str) -> Option<String> {
        self.0.hook_reply(event, notice)
    }

    fn resume_command(&self, session: &SessionId) -> Option<Vec<OsString>> {
        self.0.resume_command(session)
    }

    fn receives(&self) -> bool {
        self.0.receives()
    }

    fn receive(&self, env: &Env, place: &Place, parcel: &Parcel) -> Result<Received, AgentError> {
        Words::of(env).result(self.0.receive(env, place, parcel))
    }
}

/// The masks, and which words of an answer they are put on.
struct Words(Masker);

impl Words {
    fn of(env: &Env) -> Self {
        Self(Masker::of(env))
    }

    fn mask(&self, text: &mut String) {
        let masked = self.0.text(text);
        if masked.count > 0 {
            *text = masked.text;
        }
    }

    fn all<'a>(&self, texts: impl IntoIterator<Item = &'a mut String>) {
        for text in texts {
            self.mask(text);
        }
    }

    fn found<T>(&self, mut found: Found<T>, mask: impl Fn(&Self, &mut T)) -> Found<T> {
        for item in &mut found.items {
            mask(self, item);
        }
        for issue in &mut found.issues {
            self.issue(issue);
        }
        found
    }

    fn result<T>(&self, result: Result<T, AgentError>) -> Result<T, AgentError> {
        result.map_err(|mut error| {
            match &mut error {
                AgentError::NotInstalled {
                    agent: _,
                    why: text,
                }
                | AgentError::NoSession { agent: _, id: text }
                | AgentError::InUse {
                    agent: _,
                    proof: text,
                }
                | AgentError::Conflict {
                    agent: _,
                    what: text,
                }
                | AgentError::Payload {
                    event: _,
                    why: text,
                }
                | AgentError::Other(text) => self.mask(text),
                AgentError::Damaged(issue) => self.issue(issue),
                AgentError::Unsupported { .. } | AgentError::File(_) => {}
            }
            error
        })
    }

    fn issue(&self, issue: &mut Issue) {
        let Issue {
            path: _,
            kind: _,
            message,
        } = issue;
        self.mask(message);
    }

    fn session(&self, session: &mut Session) {
        let Session {
            session: _,
            name,
            title,
            cwd: _,
            created_at: _,
            updated_at: _,
            status,
            liveness,
            process: _,
            interruption,
            open_effects,
            messages: _,
            last_prompt,
            plan,
            parent: _,
            helper: _,
            crash_group,
            snapshot_tree: _,
            snapshot_after,
            recovered,
        } = session;
        let texts = [
            name,
            title,
            status,
            last_prompt,
            crash_group,
            snapshot_after,
        ];
        self.all(texts.into_iter().flatten());
        self.liveness(liveness);
        if let Some(Interruption {
            reason: _,
            proof,
            until: _,
        }) = interruption
        {
            self.mask(proof);
        }
        self.effects(open_effects);
        for PlanItem {
            text,
            done: _,
            state,
        } in plan
        {
            self.mask(text);
            self.mask(state);
        }
        self.all(recovered);
    }

    fn liveness(&self, liveness: &mut Liveness) {
        match liveness {
            Liveness::Live { proof: text }
            | Liveness::Ended { proof: text }
            | Liveness::Crashed { proof: text }
            | Liveness::Unknown { why: text } => self.mask(text),
        }
    }

    fn effects(&self, effects: &mut [OpenEffect]) {
        for OpenEffect {
            tool,
            argument,
            at: _,
        } in effects
        {
            self.mask(tool);
            self.mask(argument);
        }
    }

    fn task(&self, task: &mut ForeignTask) {
        let ForeignTask {
            task_id: _,
            title,
            session: _,
            status: _,
            root: _,
            root_matches: _,
            content,
            began_clean: _,
            fingerprint: _,
            updated_at: _,
            revision: _,
            resumed_to: _,
            review,
            allowed,
            avoided,
            checks,
            open_effects,
            liveness,
            mirrored: _,
        } = task;
        self.mask(title);
        match content {
            Content::RecordIncomplete(why) | Content::LookIncomplete(why) | Content::Blind(why) => {
                self.mask(why);
            }
            Content::Equal | Content::Differs | Content::NeverRecorded | Content::NotCompared => {}
        }
        if let Some(review) = review {
            self.review(review);
        }
        self.all(allowed);
        self.all(avoided);
        self.all(checks);
        self.effects(open_effects);
        self.liveness(liveness);
    }

    fn review(&self, review: &mut Review) {
        let Review {
            review_id: _,
            task_id: _,
            session: _,
            reason_code,
            title,
            explanation,
            required_action,
            resume_condition,
            suggested_commands,
            affected_files,
            current_boundary,
            requested_boundary,
            fingerprint: _,
            created_at: _,
            state,
        } = review;
        let texts = [
            reason_code,
            title,
            explanation,
            required_action,
            resume_condition,
        ];
        self.all(texts);
        self.all(suggested_commands);
        self.all(affected_files);
        self.all(current_boundary);
        self.all(requested_boundary);
        match state {
            ReviewState::Pending => {}
            ReviewState::Decided { decision } | ReviewState::Applied { decision, at: _ } => {
                let Decision {
                    approved: _,
                    by,
                    session: _,
                    at: _,
                    remark,
                    fingerprint: _,
                } = decision;
                self.mask(by);
                self.all(remark);
            }
        }
    }

    fn kind(&self, kind: &mut HookKind) {
        match kind {
            HookKind::TurnStart { prompt: text }
            | HookKind::TurnEnd { status: text }
            | HookKind::SessionEnd { reason: text } => self.all(text),
            HookKind::ToolStart { tool, argument } | HookKind::ToolEnd { tool, argument } => {
                self.mask(tool);
                self.mask(argument);
            }
            HookKind::Error { message } => self.mask(message),
            HookKind::SessionStart | HookKind::Compaction | HookKind::Ignored => {}
        }
    }
}
