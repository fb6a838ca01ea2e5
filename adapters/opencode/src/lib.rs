//! The OpenCode adapter of git takeup.
mod effects;
mod fingerprint;
#[cfg(test)]
mod scenarios;
pub mod sidecar;
mod tasks;
#[cfg(test)]
mod testing;

use takeup_core::agent::{Agent, AgentError, Detection, Effect, ForeignTask, Found};
use takeup_core::env::Env;
use takeup_core::ids::AgentId;
use takeup_core::repository::Place;

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

    fn tasks(&self, env: &Env, place: &Place) -> Found<ForeignTask> {
        tasks::tasks(env, place)
    }

    fn apply(&self, env: &Env, place: &Place, effect: &Effect) -> Result<(), AgentError> {
        effects::apply(env, place, effect)
    }
}
