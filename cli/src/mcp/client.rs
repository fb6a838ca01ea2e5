//! Who is at the other end: the agent, its session, and the process that stands for it.
//!
//! Where each agent says its session id was seen by running the agents (docs/mcp.md has the table). A variable counts
//! only for the agent that sets it: an agent that was started from another one's shell inherits that one's.
use std::collections::BTreeMap;
use std::path::PathBuf;

use rmcp::model::RequestMetaObject;
use serde_json::Value;
use takeup_core::env::Env;
use takeup_core::repository::LOCAL_VARIABLES;

/// What is known of an agent by the name its MCP client gives itself.
struct Known {
    /// A part of the name, in lower case.
    name: &'static str,
    /// The agent's id.
    agent: &'static str,
    /// The variables in which its servers or commands find the session id.
    variables: &'static [&'static str],
}

const KNOWN: &[Known] = &[
    known("claude", "claude-code", &["CLAUDE_CODE_SESSION_ID"]),
    known("codex", "codex", &["CODEX_SESSION_ID", "CODEX_THREAD_ID"]),
    known("copilot", "copilot", &["COPILOT_AGENT_SESSION_ID"]),
    known("gemini", "gemini", &[]),
    known("cursor", "cursor", &[]),
    known("openclaw", "openclaw", &["TAKEUP_OPENCLAW_SESSION"]),
    known("opencode", "opencode", &[]),
    known(
        "jcode",
        "jcode",
        &["JCODE_SESSION_ID", "JCODE_HOOK_SESSION_ID"],
    ),
    known("amp", "amp", &[]),
    known("pi", "pi", &["PI_SESSION_ID"]),
];

const fn known(
    name: &'static str,
    agent: &'static str,
    variables: &'static [&'static str],
) -> Known {
    Known {
        name,
        agent,
        variables,
    }
}

/// The key under which Codex sends what it knows of the turn, with every call.
const CODEX: &str = "x-codex-turn-metadata";

/// Who calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Client {
    /// The agent.
    pub agent: Option<String>,
    /// Its session.
    pub session: Option<String>,
    /// The folders the call itself names.
    pub folders: Vec<PathBuf>,
}

impl Client {
    /// Finds out who calls: by the client's name, its environment, and the call's metadata.
    pub(super) fn of(name: Option<&str>, env: &Env, meta: &RequestMetaObject) -> Self {
        let found = name.and_then(find);
        let codex = codex(meta);
        let agent = match (found, &codex) {
            (Some(known), _) => Some(known.agent),
            (None, Some(_)) => Some("codex"),
            (None, None) => env.text("TAKEUP_AGENT"),
        };
        let own = |known: &Known| {
            known
                .variables
                .iter()
                .find_map(|variable| env.text(variable))
        };
        let variable = match found {
            Some(known) => own(known),
            // A client that says nothing of itself: whose variable is set?
            None if name.is_none() => KNOWN.iter().find_map(own),
            None => None,
        };
        // OpenCode's plugin names the session to every command; another agent that was started by one inherits it.
        let inherited =
            env.var("OPENCODE").is_some() && agent.is_some_and(|agent| agent != "opencode");
        let named = env.text("TAKEUP_SESSION").filter(|_| !inherited);
        let (session, folders) = codex.unwrap_or_default();
        Self {
            agent: agent.map(str::to_owned),
            session: session.or_else(|| variable.or(named).map(str::to_owned)),
            folders,
        }
    }
}

/// Finds an agent by its client's name. `pi` and `amp` are too short to be looked for inside of words.
fn find(name: &str) -> Option<&'static Known> {
    let name = name.to_lowercase();
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric());
    KNOWN.iter().find(|known| {
        if known.name.len() > 3 {
            name.contains(known.name)
        } else {
            words().any(|word| word == known.name)
        }
    })
}

/// Reads Codex's turn metadata: an object, or the text of one; the session's id and the folders of the workspace.
fn codex(meta: &RequestMetaObject) -> Option<(Option<String>, Vec<PathBuf>)> {
    let value = meta.0.0.get(CODEX)?;
    let parsed: Option<Value> = value
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let object = parsed.as_ref().unwrap_or(value).as_object()?;
    let session = ["session_id", "thread_id"]
        .iter()
        .find_map(|key| object.get(*key)?.as_str())
        .map(str::to_owned);
    let folders = object
        .get("workspaces")
        .and_then(Value::as_object)
        .map(|folders| folders.keys().map(PathBuf::from).collect())
        .unwrap_or_default();
    Some((session, folders))
}

/// Returns the environment of a call in a folder: without what ties a process to one repository, and without what names
/// a session. Who calls is said to the command in so many words.
pub(super) fn env_in(env: &Env, client: &Client, folder: PathBuf) -> Env {
    let of_another = |name: &str| {
        client.agent.is_some()
            && KNOWN.iter().any(|known| {
                client.agent.as_deref() != Some(known.agent) && known.variables.contains(&name)
            })
    };
    let is_left_out = |name: &str| {
        LOCAL_VARIABLES.contains(&name)
            || ["TAKEUP_SESSION", "TAKEUP_AGENT"].contains(&name)
            || of_another(name)
    };
    let vars: BTreeMap<_, _> = env
        .vars()
        .filter(|(name, _)| name.to_str().is_none_or(|name| !is_left_out(name)))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    Env::of(vars, folder)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meta(value: Value) -> RequestMetaObject {
        serde_json::from_value(json!({ CODEX: value })).unwrap()
    }

    #[test]
    fn a_variable_counts_only_for_the_agent_that_sets_it() {
        let env = Env::of(
            [
                ("CLAUDE_CODE_SESSION_ID", "outer"),
                ("COPILOT_AGENT_SESSION_ID", "inner"),
            ],
            "/",
        );
        let none = RequestMetaObject::default();
        for (name, agent, session) in [
            (Some("claude-code"), Some("claude-code"), Some("outer")),
            (Some("github-copilot-cli"), Some("copilot"), Some("inner")),
            (Some("gemini-cli-mcp-client"), Some("gemini"), None),
            (Some("pilot-tool"), None, None),
            (Some("pi 1.6"), Some("pi"), None),
            (None, None, Some("outer")),
        ] {
            let found = Client::of(name, &env, &none);
            assert_eq!(
                (found.agent.as_deref(), found.session.as_deref()),
                (agent, session),
                "{name:?}"
            );
        }
    }

    #[test]
    fn what_opencode_named_to_a_command_is_not_for_the_agent_that_the_command_started() {
        let env = Env::of([("OPENCODE", "1"), ("TAKEUP_SESSION", "outer")], "/");
        let none = RequestMetaObject::default();
        for (name, session) in [
            ("opencode", Some("outer")),
            ("gemini-cli", None),
            ("some-client", Some("outer")),
        ] {
            let found = Client::of(Some(name), &env, &none);
            assert_eq!(found.session.as_deref(), session, "{name}");
            let env = env_in(&env, &found, PathBuf::from("/x"));
            assert_eq!(env.text("TAKEUP_SESSION"), None);
        }
    }

    #[test]
    fn codex_says_it_with_every_call() {
        let object = json!({"session_id": "s", "thread_id": "t", "workspaces": {"/w/a": {}}});
        let env = Env::of([("CLAUDE_CODE_SESSION_ID", "outer")], "/");
        for value in [object.clone(), Value::String(object.to_string())] {
            let found = Client::of(Some("codex-mcp-client"), &env, &meta(value));
            assert_eq!(found.session.as_deref(), Some("s"));
            assert_eq!(found.folders, [PathBuf::from("/w/a")]);
        }
        let broken = Client::of(Some("codex-mcp-client"), &env, &meta(json!("{")));
        assert_eq!(broken.session, None);
    }
}
