//! The entry of takeup's MCP server in the settings of the clients that speak MCP.
//!
//! | Client | For the user | In a project |
//! |---|---|---|
//! | `claude-code` | `~/.claude.json` | `.mcp.json` |
//! | `codex` | `$CODEX_HOME/config.toml` | `.codex/config.toml` |
//! | `gemini` | `~/.gemini/settings.json` | `.gemini/settings.json` |
//! | `copilot` | `~/.copilot/mcp-config.json` | – |
//! | `cursor` | `~/.cursor/mcp.json` | `.cursor/mcp.json` |
//! | `pi` | `~/.pi/agent/mcp.json` | `.pi/mcp.json` |
//! | `opencode` | `opencode.json` or `.jsonc` in `~/.config/opencode` | the same in the project |
//! | `openclaw` | `openclaw.json` in its state folder | – |
use std::path::{Path, PathBuf};

use jsonc_parser::cst::{CstInputValue, CstObject};
use takeup_core::agent::{Agent, AgentError, Detection};
use takeup_core::env::Env;
use takeup_core::ids::AgentId;
use takeup_core::integration::{EditPlan, IntegrationState, Scope};
use toml_edit::{Array, DocumentMut, Item, Table, value};

use crate::json::{Present, object, remove};

/// The clients, in the order in which they are installed.
pub const CLIENTS: [&str; 8] = [
    "claude-code",
    "codex",
    "gemini",
    "copilot",
    "cursor",
    "pi",
    "opencode",
    "openclaw",
];

/// The name of the entry.
const NAME: &str = "takeup";
/// The command of the entry.
const PROGRAM: &str = "git-takeup";

/// The entries as `git takeup agents` knows them: of every client that is installed for the user.
#[derive(Clone, Copy, Debug, Default)]
pub struct McpEntries;

impl McpEntries {
    /// Puts the plans of the installed clients together.
    fn each(
        env: &Env,
        scope: &Scope,
        plan_of: fn(&str, &Env, &Scope) -> Result<EditPlan, AgentError>,
    ) -> EditPlan {
        let mut all = EditPlan::default();
        for client in CLIENTS {
            if target(client, env, &Scope::User).is_err() {
                continue;
            }
            match plan_of(client, env, scope) {
                Ok(mut plan) => {
                    all.edits.append(&mut plan.edits);
                    all.notes.append(&mut plan.notes);
                }
                Err(AgentError::Unsupported { .. }) => {}
                // One client's broken settings are no reason to leave the others out.
                Err(error) => all.notes.push(error.to_string()),
            }
        }
        all
    }
}

impl Agent for McpEntries {
    fn id(&self) -> AgentId {
        #[expect(clippy::expect_used, reason = "the constant is a slug")]
        AgentId::new("mcp").expect("a slug")
    }

    fn name(&self) -> &'static str {
        "MCP server for any client"
    }

    fn detect(&self, _: &Env) -> Detection {
        Detection::default()
    }

    fn install(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        let plan = Self::each(env, scope, mcp_entry_plan);
        if plan.edits.is_empty()
            && !CLIENTS
                .iter()
                .any(|client| target(client, env, &Scope::User).is_ok())
        {
            return Err(AgentError::NotInstalled {
                agent: "a client that speaks MCP",
                why: format!("none of these has a folder: {}", CLIENTS.join(", ")),
            });
        }
        Ok(plan)
    }

    fn uninstall(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        Ok(Self::each(env, scope, mcp_entry_removal))
    }

    fn integration(&self, env: &Env, scope: &Scope) -> IntegrationState {
        let states: Vec<(&str, IntegrationState)> = CLIENTS
            .into_iter()
            .filter(|client| target(client, env, &Scope::User).is_ok())
            .filter(|client| target(client, env, scope).is_ok())
            // An entry of that name that is the user's own is neither ours nor missing.
            .filter(|client| !is_theirs(client, env, scope).unwrap_or(false))
            .map(|client| (client, mcp_entry_state(client, env, scope)))
            .collect();
        let missing: Vec<&str> = states
            .iter()
            .filter(|(_, state)| *state != IntegrationState::Installed)
            .map(|(client, _)| *client)
            .collect();
        if missing.len() == states.len() {
            IntegrationState::Absent
        } else if missing.is_empty() {
            IntegrationState::Installed
        } else {
            IntegrationState::Outdated {
                what: format!("no entry for {}", missing.join(", ")),
            }
        }
    }
}

/// How a client writes an entry, and where.
#[derive(Debug)]
struct Target {
    /// What has to be there for the client to count as installed; the file lies in or beside it.
    base: PathBuf,
    /// The file below the base.
    file: PathBuf,
    /// Where in the file.
    path: &'static [&'static str],
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `{ command, args }`
    Plain,
    /// The same, and the tools that may be used: all.
    Copilot,
    /// The same, shown without a search.
    Pi,
    /// The command as a list.
    OpenCode,
    /// TOML.
    Codex,
}

/// Plans the entry of one client. Changes nothing.
pub fn mcp_entry_plan(client: &str, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
    let target = target(client, env, scope)?;
    let file = Present::read(&target.base, &target.file, scope)?;
    let mut plan = EditPlan::default();
    let after = if target.form == Form::Codex {
        let mut document = toml(&file)?;
        if !document.contains_key("mcp_servers") {
            let mut servers = Table::new();
            servers.set_implicit(true);
            document.insert("mcp_servers", Item::Table(servers));
        }
        let servers = document
            .get_mut("mcp_servers")
            .and_then(Item::as_table_like_mut)
            .ok_or_else(|| file.damaged("mcp_servers is no table"))?;
        if !servers.contains_key(NAME) {
            let mut entry = Table::new();
            entry.insert("command", value(PROGRAM));
            entry.insert("args", value(Array::from_iter(["mcp"])));
            servers.insert(NAME, Item::Table(entry));
        }
        document.to_string()
    } else {
        file.edited(|top| {
            let mut parent = top.clone();
            for name in target.path {
                parent = object(&parent, name)?;
            }
            if parent.get(NAME).is_none() {
                parent.append(NAME, entry(target.form));
            }
            Ok(())
        })?
    };
    file.put(Some(after), 0o644, &mut plan);
    Ok(plan)
}

/// Plans its removal: only an entry that runs our program, and the file where it holds nothing else.
pub fn mcp_entry_removal(client: &str, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
    let target = target(client, env, scope)?;
    let file = Present::read(&target.base, &target.file, scope)?;
    let mut plan = EditPlan::default();
    let Some(text) = file.text()? else {
        return Ok(plan);
    };
    if !text.contains(PROGRAM) {
        return Ok(plan);
    }
    let after = if target.form == Form::Codex {
        let mut document = toml(&file)?;
        if let Some(servers) = document
            .get_mut("mcp_servers")
            .and_then(Item::as_table_like_mut)
        {
            let ours = servers
                .get(NAME)
                .and_then(|entry| entry.get("command"))
                .and_then(Item::as_str)
                .is_some_and(|command| command.contains(PROGRAM));
            if ours {
                servers.remove(NAME);
            }
            if servers.is_empty() {
                document.remove("mcp_servers");
            }
        }
        document.to_string()
    } else {
        file.edited(|top| {
            if entry_text(top, target.path).is_some_and(|text| text.contains(PROGRAM)) {
                let mut path = target.path.to_vec();
                path.push(NAME);
                remove(top, &path);
            }
            Ok(())
        })?
    };
    let empty = matches!(after.trim(), "" | "{}");
    file.put(Some(after).filter(|_| !empty), 0o644, &mut plan);
    Ok(plan)
}

/// Looks whether a client has the entry.
pub fn mcp_entry_state(client: &str, env: &Env, scope: &Scope) -> IntegrationState {
    match mcp_entry_plan(client, env, scope) {
        Ok(plan) if plan.edits.is_empty() => IntegrationState::Installed,
        Ok(_) | Err(AgentError::NotInstalled { .. } | AgentError::Unsupported { .. }) => {
            IntegrationState::Absent
        }
        Err(error) => IntegrationState::Outdated {
            what: error.to_string(),
        },
    }
}

/// Tells whether a client has an entry of our name that does not run our program.
fn is_theirs(client: &str, env: &Env, scope: &Scope) -> Result<bool, AgentError> {
    let target = target(client, env, scope)?;
    let file = Present::read(&target.base, &target.file, scope)?;
    let mut found = None;
    if target.form == Form::Codex {
        let document = toml(&file)?;
        let servers = document.get("mcp_servers").and_then(Item::as_table_like);
        found = servers
            .and_then(|servers| servers.get(NAME))
            .map(ToString::to_string);
    } else {
        file.edited(|top| {
            found = entry_text(top, target.path);
            Ok(())
        })?;
    }
    Ok(found.is_some_and(|text| !text.contains(PROGRAM)))
}

/// Returns the text of the entry of our name.
fn entry_text(top: &CstObject, path: &[&str]) -> Option<String> {
    let mut parent = top.clone();
    for name in path {
        parent = parent.object_value(name)?;
    }
    Some(parent.get(NAME)?.to_string())
}

fn toml(file: &Present) -> Result<DocumentMut, AgentError> {
    file.text()?
        .unwrap_or_default()
        .parse::<DocumentMut>()
        .map_err(|error| file.damaged(error.to_string()))
}

fn entry(form: Form) -> CstInputValue {
    let list =
        |words: &[&str]| CstInputValue::Array(words.iter().map(|word| (*word).into()).collect());
    let pair = |name: &str, value: CstInputValue| (name.to_owned(), value);
    let plain = || {
        vec![
            pair("command", PROGRAM.into()),
            pair("args", list(&["mcp"])),
        ]
    };
    CstInputValue::Object(match form {
        Form::Plain | Form::Codex => plain(),
        Form::Copilot => {
            let mut entry = vec![pair("type", "local".into())];
            entry.extend(plain());
            entry.push(pair("tools", list(&["*"])));
            entry
        }
        Form::Pi => {
            let mut entry = plain();
            entry.push(pair("exposure", "direct".into()));
            entry
        }
        Form::OpenCode => vec![
            pair("type", "local".into()),
            pair("command", list(&[PROGRAM, "mcp"])),
            pair("enabled", true.into()),
        ],
    })
}

fn target(client: &str, env: &Env, scope: &Scope) -> Result<Target, AgentError> {
    const SERVERS: &[&str] = &["mcpServers"];
    let unsupported = || AgentError::Unsupported {
        agent: "this client",
        what: "be given an MCP server there",
    };
    let (target, name) = match scope {
        Scope::Project { root } => {
            let (file, path, form): (&str, &'static [&'static str], Form) = match client {
                "claude-code" => (".mcp.json", SERVERS, Form::Plain),
                "codex" => (".codex/config.toml", &[], Form::Codex),
                "gemini" => (".gemini/settings.json", SERVERS, Form::Plain),
                "cursor" => (".cursor/mcp.json", SERVERS, Form::Plain),
                "pi" => (".pi/mcp.json", SERVERS, Form::Pi),
                "opencode" => (opencode_file(root), &["mcp"], Form::OpenCode),
                _ => return Err(unsupported()),
            };
            let target = Target {
                base: root.clone(),
                file: file.into(),
                path,
                form,
            };
            return Ok(target);
        }
        Scope::User => {
            let missing = || AgentError::NotInstalled {
                agent: "the client",
                why: "the user has no home".to_owned(),
            };
            let home = env.home().ok_or_else(missing)?;
            let of =
                |base: PathBuf, file: &str, path: &'static [&'static str], form: Form| Target {
                    base,
                    file: file.into(),
                    path,
                    form,
                };
            match client {
                // Its own settings folder shows that it is there; the entry belongs into the file beside that folder.
                "claude-code" if home.join(".claude").is_dir() => (
                    of(home, ".claude.json", SERVERS, Form::Plain),
                    "Claude Code",
                ),
                "claude-code" => (
                    of(home.join(".claude"), "", SERVERS, Form::Plain),
                    "Claude Code",
                ),
                "codex" => {
                    let base = env
                        .absolute("CODEX_HOME")
                        .unwrap_or_else(|| home.join(".codex"));
                    (of(base, "config.toml", &[], Form::Codex), "Codex")
                }
                "gemini" => (
                    of(home.join(".gemini"), "settings.json", SERVERS, Form::Plain),
                    "Gemini",
                ),
                "copilot" => (
                    of(
                        home.join(".copilot"),
                        "mcp-config.json",
                        SERVERS,
                        Form::Copilot,
                    ),
                    "GitHub Copilot",
                ),
                "cursor" => (
                    of(home.join(".cursor"), "mcp.json", SERVERS, Form::Plain),
                    "Cursor",
                ),
                "pi" => (
                    of(home.join(".pi"), "agent/mcp.json", SERVERS, Form::Pi),
                    "Pi",
                ),
                "opencode" => {
                    let base = env
                        .absolute("XDG_CONFIG_HOME")
                        .unwrap_or_else(|| home.join(".config"))
                        .join("opencode");
                    let file = opencode_file(&base);
                    (of(base, file, &["mcp"], Form::OpenCode), "OpenCode")
                }
                "openclaw" => {
                    let base = env
                        .absolute("OPENCLAW_STATE_DIR")
                        .unwrap_or_else(|| home.join(".openclaw"));
                    (
                        of(base, "openclaw.json", &["mcp", "servers"], Form::Plain),
                        "OpenClaw",
                    )
                }
                _ => return Err(unsupported()),
            }
        }
    };
    if target.base.is_dir() {
        Ok(target)
    } else {
        Err(AgentError::NotInstalled {
            agent: name,
            why: format!("there is no {}", target.base.display()),
        })
    }
}

/// The one of the two names that is there.
fn opencode_file(folder: &Path) -> &'static str {
    if std::fs::symlink_metadata(folder.join("opencode.jsonc")).is_ok() {
        "opencode.jsonc"
    } else {
        "opencode.json"
    }
}

#[cfg(test)]
mod tests;
