//! OpenClaw: its sessions, the skill that any agent can use, and its plugin.
//!
//! Both session stores are read and never written: `SQLite` since 2026.7.2, files before. OpenClaw takes up an
//! interrupted turn by itself when its gateway starts again; what it does not do is to look whether the work tree is
//! still as it was. So what is installed here tells the resumed turn the verdict before it repeats anything.
//!
//! # Limitations
//!
//! Transcripts moved to the cold archive, deleted sessions and archived ones are left out. Of a transcript the last
//! events are read: a turn of more than some sixty messages shows its end only. Conversations that run in another agent
//! (`acp`) are listed as OpenClaw's. Liveness rests on a lock byte that Unix systems have.
//!
//! # Example
//!
//! ```
//! use takeup_core::agent::{Agent as _, SessionQuery};
//! use takeup_core::env::Env;
//! use takeup_openclaw::OpenClaw;
//!
//! let empty = tempfile::tempdir()?;
//! let env = Env::of([("HOME", empty.path())], "/");
//! let agent = OpenClaw::new();
//! assert!(!agent.detect(&env).installed);
//! assert!(agent.sessions(&env, &SessionQuery::default()).items.is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```
mod home;
mod hook;
mod integration;
mod receive;
pub mod skills;
mod store;
mod text;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use takeup_core::agent::{
    Agent, AgentError, Detection, Found, HookEvent, Parcel, Received, Rung, Session, SessionDetail,
    SessionQuery,
};
use takeup_core::env::Env;
use takeup_core::files::read_bounded;
use takeup_core::ids::{AgentId, SessionId};
use takeup_core::integration::{EditPlan, IntegrationState, Scope};
use takeup_core::process::Processes;
use takeup_core::repository::{Place, find_program};

use home::Home;
use store::list::{Wanted, list};

/// The agent's id.
pub(crate) const ID: &str = "openclaw";
/// The agent's name for people.
pub(crate) const NAME: &str = "OpenClaw";
/// The variable our plugin puts into every command the agent runs.
pub(crate) const SESSION_VARIABLE: &str = "TAKEUP_OPENCLAW_SESSION";

/// The agent's id.
#[expect(
    clippy::expect_used,
    reason = "the constant is a slug; a test says so too"
)]
pub(crate) fn agent_id() -> AgentId {
    AgentId::new(ID).expect("a slug")
}

/// The version the rungs were run against.
const RUN_AGAINST: Option<&str> = Some("2026.9.6");

/// OpenClaw.
#[derive(Clone)]
pub struct OpenClaw {
    processes: Arc<dyn Processes + Send + Sync>,
}

impl OpenClaw {
    /// Makes the adapter over the process table of this machine.
    pub fn new() -> Self {
        Self::with_processes(Arc::new(takeup_core::process::system()))
    }

    /// Makes the adapter over another process table, for tests.
    pub fn with_processes(processes: Arc<dyn Processes + Send + Sync>) -> Self {
        Self { processes }
    }
}

impl Default for OpenClaw {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for OpenClaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenClaw").finish_non_exhaustive()
    }
}

impl Agent for OpenClaw {
    fn id(&self) -> AgentId {
        agent_id()
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn ladder(&self) -> Vec<Rung> {
        ["seen", "read", "judged", "hooked", "hand-over-in"]
            .into_iter()
            .map(|rung| Rung {
                rung,
                run_against: RUN_AGAINST,
            })
            .collect()
    }

    fn detect(&self, env: &Env) -> Detection {
        let program = find_program(env, ID);
        let home = Home::of(env).filter(|home| home.state.is_dir());
        Detection {
            installed: program.is_some() || home.is_some(),
            version: program.as_deref().and_then(version_of).or_else(|| {
                let home = home.as_ref()?;
                store::shared::read(home).ok()?.version
            }),
            program,
            home: home.map(|home| home.state),
        }
    }

    fn session_of(&self, env: &Env) -> Option<SessionId> {
        env.text(SESSION_VARIABLE)
            .and_then(|id| SessionId::new(id).ok())
    }

    fn sessions(&self, env: &Env, query: &SessionQuery) -> Found<Session> {
        let Some(home) = Home::of(env) else {
            return Found::default();
        };
        let found = list(&home, &*self.processes, &Wanted::of(query));
        Found {
            items: found
                .items
                .into_iter()
                .map(|listed| listed.session)
                .collect(),
            issues: found.issues,
        }
    }

    fn session(&self, env: &Env, id: &str, turns: usize) -> Result<SessionDetail, AgentError> {
        let missing = || AgentError::NoSession {
            agent: NAME,
            id: text::one_line(id, 80),
        };
        let home = Home::of(env).ok_or_else(missing)?;
        let wanted = Wanted {
            root: None,
            limit: 0,
            id: Some(id).filter(|id| !id.is_empty()),
            turns: turns.max(1),
        };
        let mut found = list(&home, &*self.processes, &wanted);
        if found.items.is_empty() && !id.is_empty() {
            // By a part of the title, which stands in the entry or in the transcript.
            let all = Wanted { id: None, ..wanted };
            let text = id.to_lowercase();
            found = list(&home, &*self.processes, &all);
            found.items.retain(|listed| {
                let title = listed.session.title.as_deref().unwrap_or_default();
                title.to_lowercase().contains(&text)
            });
        }
        let exact = |listed: &&store::list::Listed| {
            listed.key == id || listed.session.session.id.as_str() == id
        };
        let chosen = found
            .items
            .iter()
            .find(exact)
            .or(match found.items.as_slice() {
                [only] => Some(only),
                _ => None,
            });
        match chosen {
            Some(listed) => Ok(SessionDetail {
                session: listed.session.clone(),
                turns: listed.turns.clone(),
                transcript: Some(listed.transcript.clone()),
            }),
            None if found.items.len() > 1 && !id.is_empty() => {
                let named: Vec<String> = found
                    .items
                    .iter()
                    .take(5)
                    .map(|listed| {
                        let title = listed.session.title.as_deref().unwrap_or_default();
                        format!("{} ({title})", listed.session.session.id)
                    })
                    .collect();
                Err(AgentError::Other(text::one_line(
                    &format!(
                        "{:?} fits {} sessions of {NAME}: {}",
                        text::one_line(id, 80),
                        found.items.len(),
                        named.join(", ")
                    ),
                    800,
                )))
            }
            // A store that could not be read at all, or an entry of that name, may be what was asked for.
            None => {
                let asked = |issue: &takeup_core::issue::Issue| {
                    let of_one = ["session \"", "entry \""]
                        .iter()
                        .any(|start| issue.message.starts_with(start));
                    !of_one || !id.is_empty() && issue.message.contains(id)
                };
                match found.issues.into_iter().find(asked) {
                    Some(issue) => Err(AgentError::Damaged(issue)),
                    None => Err(missing()),
                }
            }
        }
    }

    fn install(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        let plan = integration::install(env, scope)?;
        Ok(integration::without_edited(plan, env, &self.id(), scope))
    }

    fn uninstall(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        let plan = integration::uninstall(env, scope)?;
        Ok(integration::without_edited(plan, env, &self.id(), scope))
    }

    fn integration(&self, env: &Env, scope: &Scope) -> IntegrationState {
        integration::state(env, scope)
    }

    fn hook(&self, env: &Env, event: &str, input: &[u8]) -> Result<HookEvent, AgentError> {
        hook::translate(env, &*self.processes, event, input)
    }

    fn hook_reply(&self, event: &str, notice: &str) -> Option<String> {
        // The plugin shows what is printed as it is.
        matches!(event, "session-start" | "turn-start").then(|| notice.to_owned())
    }

    fn receives(&self) -> bool {
        true
    }

    fn receive(&self, env: &Env, place: &Place, parcel: &Parcel) -> Result<Received, AgentError> {
        receive::receive(env, &*self.processes, place, parcel)
    }

    fn resume_command(&self, session: &SessionId) -> Option<Vec<OsString>> {
        let command = [
            "openclaw",
            "agent",
            "--session-id",
            session.as_str(),
            "--message",
            "Go on with the unfinished task.",
        ];
        Some(command.into_iter().map(OsString::from).collect())
    }
}

/// Reads the version beside the program: its package says it.
fn version_of(program: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
    }
    let real = std::fs::canonicalize(program).ok()?;
    let folders = real.ancestors().skip(1).take(3);
    folders.into_iter().find_map(|folder| {
        let bytes = read_bounded(&folder.join("package.json"), 1 << 20).ok()??;
        let package: Package = serde_json::from_slice(&bytes).ok()?;
        (package.name == ID).then(|| text::one_line(&package.version, 40))
    })
}
