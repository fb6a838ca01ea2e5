//! What our plugin and our internal hook hand over, translated.
use std::path::PathBuf;

use serde::Deserialize;
use takeup_core::agent::{AgentError, HookEvent, HookKind};
use takeup_core::env::Env;
use takeup_core::ids::{AgentId, SessionId, SessionRef};
use takeup_core::process::Processes;
use takeup_core::redact;
use takeup_core::text::json_of_agent;

use crate::ID;
use crate::home::Home;
use crate::store::entry::lenient;
use crate::store::list::{Wanted, list};
use crate::text::{masked, one_line};

/// The largest payload that is read, in bytes.
const LIMIT: usize = 256 << 10;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Payload {
    #[serde(deserialize_with = "lenient")]
    session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    cwd: Option<PathBuf>,
    #[serde(deserialize_with = "lenient")]
    workspace_dir: Option<PathBuf>,
    #[serde(deserialize_with = "lenient")]
    prompt: Option<String>,
    #[serde(deserialize_with = "lenient")]
    status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    error: Option<String>,
}

/// Translates one event.
pub(crate) fn translate(
    env: &Env,
    processes: &dyn Processes,
    event: &str,
    input: &[u8],
) -> Result<HookEvent, AgentError> {
    let refuse = |why: String| AgentError::Payload {
        event: one_line(event, 40),
        why,
    };
    if input.len() > LIMIT {
        return Err(refuse(format!("it has more than {LIMIT} bytes")));
    }
    let payload: Payload = json_of_agent(input).map_err(|error| refuse(error.to_string()))?;
    let id = payload
        .session_id
        .as_deref()
        .ok_or_else(|| refuse("it names no session".to_owned()))?;
    let id = SessionId::new(id).map_err(|error| refuse(error.to_string()))?;
    let agent = AgentId::new(ID).map_err(|error| refuse(error.to_string()))?;
    let short = |text: &str| masked(text, 200);
    let kind = match event {
        "session-start" => HookKind::SessionStart,
        "turn-start" => HookKind::TurnStart {
            prompt: payload.prompt.as_deref().map(redact::prompt),
        },
        "turn-end" => match payload.error.as_deref() {
            Some(error) => HookKind::Error {
                message: short(error),
            },
            None => HookKind::TurnEnd {
                status: payload.status.as_deref().map(short),
            },
        },
        // The conversation goes on under the same id, and what was before it is left: the content is recorded.
        "reset" => HookKind::TurnEnd {
            status: Some(
                payload
                    .reason
                    .as_deref()
                    .map_or_else(|| "reset".to_owned(), short),
            ),
        },
        "compaction" => HookKind::Compaction,
        "session-end" => HookKind::SessionEnd {
            reason: payload.reason.as_deref().map(short),
        },
        _ => HookKind::Ignored,
    };
    let cwd = payload
        .cwd
        .filter(|path| path.is_absolute())
        .or_else(|| folder(env, processes, id.as_str()))
        .or_else(|| payload.workspace_dir.filter(|path| path.is_absolute()));
    Ok(HookEvent {
        session: SessionRef::new(agent, id),
        cwd,
        kind,
        transcript: None,
    })
}

/// Where the session's commands run: its workspace, which the payload names, may be another folder. The store says it;
/// of a session that is too new to be there, the configuration.
fn folder(env: &Env, processes: &dyn Processes, id: &str) -> Option<PathBuf> {
    let home = Home::of(env)?;
    let wanted = Wanted {
        root: None,
        limit: 1,
        id: Some(id),
        turns: 0,
    };
    let stored = list(&home, processes, &wanted)
        .items
        .into_iter()
        .find(|listed| listed.session.session.id.as_str() == id)
        .and_then(|listed| listed.session.cwd);
    stored.or_else(|| {
        let config = home.read_config().ok()??;
        let cwd = config.pointer("/agents/defaults/cwd")?.as_str()?;
        let path = crate::home::expand(cwd, env.home().as_deref());
        path.is_absolute().then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use takeup_core::process::fake::FakeProcesses;

    use super::*;

    fn hook(env: &Env, event: &str, input: &str) -> Result<HookEvent, AgentError> {
        translate(env, &FakeProcesses::new(), event, input.as_bytes())
    }

    #[test]
    fn every_event_has_its_kind() {
        let env = Env::of([("HOME", "/nowhere")], "/");
        let input = r#"{"sessionId":"s1","workspaceDir":"/w","prompt":"do\nit","status":"done","reason":"idle","new":[1]}"#;
        let kind = |event: &str| hook(&env, event, input).unwrap().kind;
        assert_eq!(kind("session-start"), HookKind::SessionStart);
        assert_eq!(
            kind("turn-start"),
            HookKind::TurnStart {
                prompt: Some("do\nit".to_owned())
            }
        );
        assert_eq!(
            kind("turn-end"),
            HookKind::TurnEnd {
                status: Some("done".to_owned())
            }
        );
        assert_eq!(
            kind("session-end"),
            HookKind::SessionEnd {
                reason: Some("idle".to_owned())
            }
        );
        assert_eq!(kind("compaction"), HookKind::Compaction);
        assert_eq!(kind("of-a-later-version"), HookKind::Ignored);
        assert_eq!(
            hook(&env, "turn-end", r#"{"sessionId":"s1","error":"limit"}"#)
                .unwrap()
                .kind,
            HookKind::Error {
                message: "limit".to_owned()
            }
        );
        assert_eq!(
            hook(&env, "turn-end", input).unwrap().cwd,
            Some("/w".into())
        );
    }

    #[test]
    fn what_is_no_payload_is_refused() {
        let env = Env::of([("HOME", "/nowhere")], "/");
        for input in [
            "",
            "[]",
            "{}",
            r#"{"sessionId":""}"#,
            r#"{"sessionId":"a\u0007"}"#,
        ] {
            assert!(
                matches!(
                    hook(&env, "turn-end", input),
                    Err(AgentError::Payload { .. })
                ),
                "{input}"
            );
        }
        let huge = format!(r#"{{"sessionId":"s","prompt":"{}"}}"#, "x".repeat(LIMIT));
        assert!(hook(&env, "turn-start", &huge).is_err());
    }
}
