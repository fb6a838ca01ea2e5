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

/// The agent of a client that says nothing of itself: a model all the same, never a person.
const SOMEBODY: &str = "mcp-client";
/// The longest agent id that is made of a client's name.
const LONGEST_ID: usize = 40;

/// The key under which Codex sends what it knows of the turn, with every call.
const CODEX: &str = "x-codex-turn-metadata";

/// Who calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Client {
    /// The agent: what is at the other end is a model, so this is never a person.
    pub agent: String,
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
        let own = |known: &Known| {
            known
                .variables
                .iter()
                .find_map(|variable| env.text(variable))
        };
        // A client that says nothing of itself: whose variable is set?
        let found = found.or_else(|| {
            KNOWN
                .iter()
                .find(|known| name.is_none() && own(known).is_some())
        });
        let variable = found.and_then(own);
        let agent = match (found, &codex) {
            (Some(known), _) => known.agent.to_owned(),
            (None, Some(_)) => "codex".to_owned(),
            (None, None) => id_of(env.text("TAKEUP_AGENT").or(name).unwrap_or(SOMEBODY)),
        };
        // OpenCode's plugin names the session to every command; another agent that was started by one inherits it.
        let is_known = found.is_some() || codex.is_some();
        let inherited = env.var("OPENCODE").is_some() && is_known && agent != "opencode";
        let named = env.text("TAKEUP_SESSION").filter(|_| !inherited);
        let (session, folders) = codex.unwrap_or_default();
        Self {
            agent,
            session: session.or_else(|| variable.or(named).map(str::to_owned)),
            folders,
        }
    }
}

/// Makes an agent id of a client's name.
fn id_of(name: &str) -> String {
    let mut id = String::new();
    for c in name.to_lowercase().chars().take(LONGEST_ID) {
        if c.is_ascii_alphanumeric() {
            id.push(c);
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
    }
    let id = id.trim_end_matches('-');
    if id.is_empty() || id == "person" {
        SOMEBODY.to_owned()
    } else {
        id.to_owned()
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
/// a session; with who calls.
pub(super) fn env_in(env: &Env, client: &Client, folder: PathBuf) -> Env {
    let of_another = |name: &str| {
        KNOWN
            .iter()
            .any(|known| client.agent != known.agent && known.variables.contains(&name))
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
        .chain([("TAKEUP_AGENT".into(), client.agent.clone().into())])
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
            (Some("claude-code"), "claude-code", Some("outer")),
            (Some("github-copilot-cli"), "copilot", Some("inner")),
            (Some("gemini-cli-mcp-client"), "gemini", None),
            (Some("pilot-tool"), "pilot-tool", None),
            (Some("Visual Studio Code"), "visual-studio-code", None),
            (Some("Person"), "mcp-client", None),
            (Some("\u{1f600} --"), "mcp-client", None),
            (Some("pi 1.6"), "pi", None),
            (None, "claude-code", Some("outer")),
        ] {
            let found = Client::of(name, &env, &none);
            assert_eq!(
                (found.agent.as_str(), found.session.as_deref()),
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
