//! Which file holds a client's entry, and in what form.
use std::path::{Path, PathBuf};

use takeup_core::agent::AgentError;
use takeup_core::env::Env;
use takeup_core::integration::Scope;

use crate::clients::{CLIENTS, is_home};

/// How a client writes an entry, and where.
#[derive(Debug)]
pub(super) struct Target {
    /// What has to be there for the client to count as installed; the file lies in or beside it.
    pub(super) base: PathBuf,
    /// The file below the base.
    pub(super) file: PathBuf,
    /// Where in the file.
    pub(super) path: &'static [&'static str],
    pub(super) form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
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

/// Finds a client's file.
pub(super) fn target(client: &str, env: &Env, scope: &Scope) -> Result<Target, AgentError> {
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
            let folder_of = |id: &str| CLIENTS.iter().find(|known| known.id == id)?.home(env);
            match client {
                "claude-code" => {
                    let folder = home.join(".claude");
                    let base = match env.absolute("CLAUDE_CONFIG_DIR") {
                        Some(own) => own,
                        // Its settings folder shows that it is there, and so does the file beside that folder, where the entry
                        // belongs.
                        None if is_home(&folder) || is_there(&home.join(".claude.json")) => home,
                        None => {
                            return Err(AgentError::NotInstalled {
                                agent: "Claude Code",
                                why: format!("there is nothing of it in {}", folder.display()),
                            });
                        }
                    };
                    let target = of(base, ".claude.json", SERVERS, Form::Plain);
                    (target, "Claude Code")
                }
                "codex" => {
                    let base = folder_of(client).ok_or_else(missing)?;
                    (of(base, "config.toml", &[], Form::Codex), "Codex")
                }
                "gemini" => {
                    let base = folder_of(client).ok_or_else(missing)?;
                    (of(base, "settings.json", SERVERS, Form::Plain), "Gemini")
                }
                "copilot" => {
                    let base = folder_of(client).ok_or_else(missing)?;
                    let target = of(base, "mcp-config.json", SERVERS, Form::Copilot);
                    (target, "GitHub Copilot")
                }
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

fn is_there(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// The one of the two names that is there.
fn opencode_file(folder: &Path) -> &'static str {
    if is_there(&folder.join("opencode.jsonc")) {
        "opencode.jsonc"
    } else {
        "opencode.json"
    }
}
