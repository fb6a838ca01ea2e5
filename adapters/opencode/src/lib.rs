//! OpenCode, with or without the OpenCode++ plugin.
//!
//! Three things of other people are read, and one is written:
//!
//! - the records of the OpenCode++ plugin (`.agent-context/sidecar`), byte for byte: its tasks are candidates, and what the
//!   ledger decides is written there as the plugin would have written it ([`sidecar`]);
//! - the plugin's own fingerprint, by calling `git` exactly as it does ([`fingerprint()`]);
//! - OpenCode's own store (a database, or JSON trees of earlier versions), read only: sessions, how they ended, whether
//!   anybody holds them, which calls were left open, and which tree they last saw;
//! - a small plugin of our own can be dropped in: tools for the model, records of what sessions do, the notice.
//!
//! ```
//! use takeup_core::agent::{Agent, SessionQuery};
//! use takeup_core::env::Env;
//! use takeup_opencode::OpenCode;
//!
//! let env = Env::of([("HOME", "/nowhere")], "/");
//! assert!(!OpenCode::new().detect(&env).installed);
//! assert!(OpenCode::new().sessions(&env, &SessionQuery::default()).items.is_empty());
//! ```
//!
//! # Limitations
//!
//! - Equal fingerprints of OpenCode++ are a proof only where nothing is known that it does not see. That HEAD did not move
//!   since is told by the times of git's own files. A file `AGENTS.md` that was removed since is not noticed.
//! - Records of OpenCode++ are looked for at the top of the work tree only; one that was started in a folder below keeps
//!   its own there.
//! - OpenCode++ lets a question be answered by its model's word. A no is taken over into the ledger; a yes is taken over where
//!   the user's settings let the caller's word count (`takeup.confirm = caller`), and is shown beside the question else.
//! - Liveness needs Linux's process table. Of several processes that work in one folder none is named as the session's.
//! - Sessions of OpenCode 2 are not read, and its plugins are of another kind.
mod answers;
mod effects;
mod fingerprint;
mod hook;
mod integration;
mod receive;
#[cfg(test)]
mod scenarios;
pub mod sidecar;
mod store;
mod tasks;
#[cfg(test)]
mod testing;

use std::ffi::OsString;

use takeup_core::agent::{
    Agent, AgentError, Detection, Effect, ForeignAnswer, ForeignTask, Found, HookEvent, Parcel,
    Received, Rung, Session, SessionDetail, SessionQuery,
};
use takeup_core::env::Env;
use takeup_core::ids::{AgentId, SessionId};
use takeup_core::integration::{EditPlan, IntegrationState, Scope};
use takeup_core::repository::{Place, find_program};
use takeup_core::review::Review;
use takeup_core::time::SystemClock;

pub use fingerprint::{CLEAN_TREE, FingerprintError, PluginFingerprint, fingerprint};

/// The agent's name for people.
pub(crate) const NAME: &str = "OpenCode";

/// The version of OpenCode that support was run against.
const VERSION: &str = "1.18.33";

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

impl OpenCode {
    /// Makes the adapter.
    pub const fn new() -> Self {
        Self
    }
}

impl Agent for OpenCode {
    fn id(&self) -> AgentId {
        agent_id()
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn ladder(&self) -> Vec<Rung> {
        [
            "seen",
            "read",
            "judged",
            "hooked",
            "hand-over-out",
            "hand-over-in",
        ]
        .into_iter()
        .map(|rung| Rung {
            rung,
            run_against: Some(VERSION),
        })
        .collect()
    }

    fn detect(&self, env: &Env) -> Detection {
        let program = find_program(env, "opencode");
        let home = store::Homes::of(env)
            .map(|homes| homes.data)
            .filter(|data| data.is_dir());
        Detection {
            installed: program.is_some() || home.is_some(),
            version: program.as_deref().and_then(store::version_beside),
            program,
            home,
        }
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

    fn tasks(&self, env: &Env, place: &Place) -> Found<ForeignTask> {
        tasks::tasks(env, place)
    }

    fn answers(&self, _env: &Env, place: &Place, asked: &[Review]) -> Found<ForeignAnswer> {
        answers::answers(place, asked)
    }

    fn refuses_yes(&self, asked: &Review) -> Option<String> {
        (asked.reason_code != sidecar::BOUNDARY).then(|| {
            format!(
                "OpenCode++ lets a person approve only {}; this question is {}",
                sidecar::BOUNDARY,
                asked.reason_code
            )
        })
    }

    /// In a place where OpenCode++ keeps records, or into which our plugin was put. An installation for the user alone does
    /// not put records into every repository.
    fn mirrors(&self, env: &Env, place: &Place) -> bool {
        let scope = Scope::Project {
            root: place.root.clone(),
        };
        place.root.join(sidecar::SIDECAR).is_dir()
            || integration::state(env, &scope) != IntegrationState::Absent
    }

    fn apply(&self, env: &Env, place: &Place, effect: &Effect) -> Result<(), AgentError> {
        effects::apply(env, place, effect)
    }

    fn install(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        let plan = integration::install(env, scope)?;
        Ok(plan.without_edited(env, &agent_id(), scope, |_| true))
    }

    fn uninstall(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        let plan = integration::uninstall(env, scope)?;
        Ok(plan.without_edited(env, &agent_id(), scope, |_| true))
    }

    fn integration(&self, env: &Env, scope: &Scope) -> IntegrationState {
        integration::state(env, scope).as_reached(env)
    }

    fn hook(&self, _env: &Env, event: &str, input: &[u8]) -> Result<HookEvent, AgentError> {
        hook::hook(event, input)
    }

    fn hook_reply(&self, event: &str, notice: &str) -> Option<String> {
        hook::reply(event, notice)
    }

    fn resume_command(&self, session: &SessionId) -> Option<Vec<OsString>> {
        Some(vec![
            "opencode".into(),
            "--session".into(),
            session.as_str().into(),
        ])
    }

    fn receives(&self) -> bool {
        true
    }

    fn receive(&self, env: &Env, place: &Place, parcel: &Parcel) -> Result<Received, AgentError> {
        receive::receive(env, place, parcel)
    }
}
