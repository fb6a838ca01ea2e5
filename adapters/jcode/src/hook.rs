//! What jcode hands to a hook: variables named `JCODE_HOOK_…`, and the same as JSON in one of them, cut at 16 KB.
use serde_json::Value;
use takeup_core::agent::{AgentError, HookEvent, HookKind};
use takeup_core::env::Env;
use takeup_core::ids::{AgentId, SessionRef};
use takeup_core::text::one_line;

use crate::home::Key;

/// The events that are hooked, in the order of the configuration.
pub(crate) const EVENTS: [&str; 4] = ["session_start", "turn_end", "post_tool", "session_end"];

/// How many characters of an argument are kept.
const ARGUMENT: usize = 200;

/// Translates a call.
pub(crate) fn hook(
    agent: &AgentId,
    env: &Env,
    event: &str,
    input: &[u8],
) -> Result<HookEvent, AgentError> {
    let refuse = |why: &str| AgentError::Payload {
        event: one_line(event, 60),
        why: why.to_owned(),
    };
    // A payload that was cut is no JSON; the variables say the same.
    let payload: Value = env
        .text("JCODE_HOOK_PAYLOAD")
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or(Value::Null);
    let field = |name: &str| {
        let variable = format!("JCODE_HOOK_{}", name.to_uppercase());
        env.text(&variable)
            .or_else(|| payload.get(name).and_then(Value::as_str))
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let id = field("session_id").ok_or_else(|| refuse("it names no session"))?;
    let session = Key::new(&id)
        .and_then(|key| key.session())
        .ok_or_else(|| refuse("its session id is not plain"))?;
    let tool = || field("tool_name").map_or_else(String::new, |tool| one_line(&tool, 80));
    let kind = match event {
        "session_start" | "session_start_context" => HookKind::SessionStart,
        "turn_start" => HookKind::TurnStart { prompt: None },
        "turn_end" => {
            let status = field("status");
            match field("error") {
                Some(error) if status.as_deref() == Some("error") => HookKind::TurnEnd {
                    status: Some(format!("error: {}", crate::shown::line(&error, ARGUMENT))),
                },
                _ => HookKind::TurnEnd { status },
            }
        }
        "pre_tool" => HookKind::ToolStart {
            tool: tool(),
            argument: crate::calls::argument(&String::from_utf8_lossy(input)),
        },
        "post_tool" => HookKind::ToolEnd {
            tool: tool(),
            argument: String::new(),
        },
        "session_end" => HookKind::SessionEnd {
            reason: field("source"),
        },
        _ => HookKind::Ignored,
    };
    Ok(HookEvent {
        session: SessionRef::new(agent.clone(), session),
        cwd: field("cwd").map(Into::into),
        kind,
        transcript: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(vars: &[(&str, &str)], event: &str) -> Result<HookEvent, AgentError> {
        let agent = AgentId::new("jcode").unwrap();
        hook(&agent, &Env::of(vars.iter().copied(), "/"), event, b"")
    }

    #[test]
    fn variables_and_payload_are_read() {
        let vars = [
            ("JCODE_HOOK_EVENT", "turn_end"),
            (
                "JCODE_HOOK_SESSION_ID",
                "session_fox_1777629600000_0000000000000000",
            ),
            ("JCODE_HOOK_CWD", "/repo"),
            ("JCODE_HOOK_STATUS", "ok"),
            ("JCODE_HOOK_PAYLOAD", "{\"event\":\"turn_end\",\"cut"),
        ];
        let event = call(&vars, "turn_end").unwrap();
        assert_eq!(
            event.session.id.as_str(),
            "session_fox_1777629600000_0000000000000000"
        );
        assert_eq!(event.cwd.as_deref(), Some(std::path::Path::new("/repo")));
        let ok = HookKind::TurnEnd {
            status: Some("ok".to_owned()),
        };
        assert_eq!(event.kind, ok);
        let payload = r#"{"session_id":"session_owl_1_2","source":"close","cwd":"/r"}"#;
        let event = call(&[("JCODE_HOOK_PAYLOAD", payload)], "session_end").unwrap();
        assert_eq!(event.session.id.as_str(), "session_owl_1_2");
        let close = HookKind::SessionEnd {
            reason: Some("close".to_owned()),
        };
        assert_eq!(event.kind, close);
        assert_eq!(
            call(&[("JCODE_HOOK_SESSION_ID", "s")], "new_event")
                .unwrap()
                .kind,
            HookKind::Ignored
        );
    }

    #[test]
    fn a_call_without_a_plain_session_is_refused() {
        assert!(call(&[], "turn_end").is_err());
        assert!(call(&[("JCODE_HOOK_SESSION_ID", "../../auth")], "turn_end").is_err());
    }
}
