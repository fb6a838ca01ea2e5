//! Claude Code, Codex, Gemini and GitHub Copilot: their session hooks share one shape, so one table serves them all.
//! Beside them the entry of takeup's MCP server in the settings of every client that is known.
//!
//! A hook of ours is one line in the client's own settings that runs `git-takeup hook CLIENT EVENT`. It gets the client's
//! JSON on its standard input, and answers in the form in which that client hands context on to its model.
//!
//! # Limitations
//!
//! Their session stores are not read: a session is known by its hooks, from the first one on. That they hold something is said;
//! of Claude Code's, which keeps all places beside each other, the folder that a session names is looked at for that. Codex asks once whether a
//! new hook is trusted; Gemini has no variable that names the session inside commands. The hooks were built from the
//! clients' documentation and not run in them.
//!
//! # Example
//!
//! ```
//! use takeup_core::agent::{Agent as _, HookKind};
//! use takeup_core::env::Env;
//!
//! let env = Env::of([("HOME", "/nowhere")], "/");
//! let claude = takeup_cli_agents::all().remove(0);
//! let input = br#"{"session_id":"s1","cwd":"/work","hook_event_name":"SessionStart"}"#;
//! let event = claude.hook(&env, "SessionStart", input).unwrap();
//! assert_eq!(event.kind, HookKind::SessionStart);
//! assert_eq!(event.session.to_string(), "claude-code:s1");
//! ```
mod clients;
mod hook;
mod json;
pub mod mcp;
mod programs;
mod settings;
mod unread;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use takeup_core::agent::{Agent, AgentError, Detection, HookEvent, Rung};
use takeup_core::env::Env;
use takeup_core::ids::{AgentId, SessionId};
use takeup_core::integration::{EditPlan, IntegrationState, Scope};
use takeup_core::repository::find_program;

use clients::{CLIENTS, Client, is_home};

/// One of the four.
#[derive(Clone, Copy, Debug)]
pub struct CliAgent {
    client: &'static Client,
}

/// Returns the four.
pub fn all() -> Vec<CliAgent> {
    CLIENTS.iter().map(|client| CliAgent { client }).collect()
}

impl Agent for CliAgent {
    fn id(&self) -> AgentId {
        #[expect(
            clippy::expect_used,
            reason = "the table holds slugs; a test says so too"
        )]
        AgentId::new(self.client.id).expect("a slug")
    }

    fn name(&self) -> &'static str {
        self.client.name
    }

    fn tells_ends(&self) -> bool {
        let mut events = self.client.events.iter();
        events.any(|(_, meaning)| *meaning == clients::Meaning::SessionEnd)
    }

    fn ladder(&self) -> Vec<Rung> {
        vec![Rung {
            rung: "hooked",
            run_against: None,
        }]
    }

    fn detect(&self, env: &Env) -> Detection {
        let program = find_program(env, self.client.program);
        let home = self.client.home(env).filter(|home| is_home(home));
        Detection {
            installed: program.is_some() || home.is_some(),
            program,
            home,
            version: None,
        }
    }

    fn session_of(&self, env: &Env) -> Option<SessionId> {
        self.client
            .session_variables
            .iter()
            .find_map(|name| SessionId::new(env.text(name)?).ok())
    }

    fn unread(&self, env: &Env, root: &Path) -> Option<PathBuf> {
        let folder = self.client.home(env)?.join(self.client.sessions);
        if self.client.by_place {
            unread::of_place(&folder, root)
        } else {
            unread::is_filled(&folder).then_some(folder)
        }
    }

    fn install(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        settings::install(self.client, env, scope)
    }

    fn uninstall(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        settings::uninstall(self.client, &self.id(), env, scope)
    }

    fn integration(&self, env: &Env, scope: &Scope) -> IntegrationState {
        settings::state(self.client, env, scope)
    }

    fn hook(&self, _: &Env, event: &str, input: &[u8]) -> Result<HookEvent, AgentError> {
        hook::translate(self.client, event, input)
    }

    fn hook_reply(&self, event: &str, notice: &str) -> Option<String> {
        hook::reply(self.client, event, notice)
    }

    fn resume_command(&self, session: &SessionId) -> Option<Vec<OsString>> {
        let command = self.client.resume.iter().map(|word| {
            if word.contains("{}") {
                word.replace("{}", session.as_str()).into()
            } else {
                OsString::from(word)
            }
        });
        Some(command.collect())
    }
}
