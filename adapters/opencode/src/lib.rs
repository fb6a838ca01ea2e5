//! The OpenCode adapter of git takeup.
mod effects;
mod fingerprint;
#[cfg(test)]
mod scenarios;
pub mod sidecar;
mod store;
mod tasks;
#[cfg(test)]
mod testing;

use std::ffi::OsString;

use takeup_core::agent::{
    Agent, AgentError, Detection, Effect, ForeignTask, Found, Session, SessionDetail, SessionQuery,
};
use takeup_core::env::Env;
use takeup_core::ids::{AgentId, SessionId};
use takeup_core::repository::Place;
use takeup_core::time::SystemClock;

pub use fingerprint::{CLEAN_TREE, FingerprintError, PluginFingerprint, fingerprint};

/// The agent's name for people.
pub(crate) const NAME: &str = "OpenCode";

/// The agent's id.
#[expect(
    clippy::expect_used,
    reason = "the text is constant and has the right form"
)]
pub(crate) fn agent_id() -> AgentId {
    AgentId::new("opencode").expect("a constant id of the right form")
}

/// OpenCode, with or without the OpenCode++ plugin.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenCode;

impl Agent for OpenCode {
    fn id(&self) -> AgentId {
        agent_id()
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn detect(&self, env: &Env) -> Detection {
        let _ = env;
        Detection::default()
    }

    fn session_of(&self, env: &Env) -> Option<SessionId> {
        // OpenCode itself names no session to its shell; our plugin adds it.
        env.var("OPENCODE")?;
        SessionId::new(env.text("TAKEUP_SESSION")?).ok()
    }

    fn sessions(&self, env: &Env, query: &SessionQuery) -> Found<Session> {
        store::sessions(env, query, &SystemClock)
    }

    fn session(&self, env: &Env, id: &str, turns: usize) -> Result<SessionDetail, AgentError> {
        store::session(env, id, turns, &SystemClock)
    }

    fn resume_command(&self, session: &SessionId) -> Option<Vec<OsString>> {
        Some(vec![
            "opencode".into(),
            "--session".into(),
            session.as_str().into(),
        ])
    }

    fn tasks(&self, env: &Env, place: &Place) -> Found<ForeignTask> {
        tasks::tasks(env, place)
    }

    fn apply(&self, env: &Env, place: &Place, effect: &Effect) -> Result<(), AgentError> {
        effects::apply(env, place, effect)
    }
}
