//! What the plugin says, translated. Its events are ours by name; its payload is one JSON object.
use serde_json::Value;
use takeup_core::agent::{AgentError, HookEvent, HookKind};
use takeup_core::ids::{SessionId, SessionRef};
use takeup_core::redact;
use takeup_core::text;
use takeup_core::text::json_of_agent;

/// The longest argument or message that is kept.
const LONGEST: usize = 1_000;

/// Translates an event.
pub(crate) fn hook(event: &str, input: &[u8]) -> Result<HookEvent, AgentError> {
    let refuse = |why: String| AgentError::Payload {
        event: text::one_line(event, 60),
        why,
    };
    let payload: Value =
        json_of_agent(input).map_err(|error| refuse(format!("it is no JSON: {error}")))?;
    let field = |key: &str| payload.get(key).and_then(Value::as_str);
    let shown = |key: &str| field(key).map(|value| text::one_line(value, LONGEST));
    let session = field("sessionID").ok_or_else(|| refuse("it names no session".to_owned()))?;
    let session = SessionId::new(session).map_err(|error| refuse(error.to_string()))?;
    let tool = || text::one_line(field("tool").unwrap_or("tool"), 80);
    let kind = match event {
        "session-start" => HookKind::SessionStart,
        "turn-start" => HookKind::TurnStart {
            prompt: field("prompt")
                .map(redact::prompt)
                .filter(|prompt| !prompt.is_empty()),
        },
        "tool-start" => HookKind::ToolStart {
            tool: tool(),
            argument: shown("argument").unwrap_or_default(),
        },
        "tool-end" => HookKind::ToolEnd {
            tool: tool(),
            argument: shown("argument").unwrap_or_default(),
        },
        "turn-end" => HookKind::TurnEnd {
            status: shown("status"),
        },
        "compaction" => HookKind::Compaction,
        // An abort by the user ends the turn; nothing failed.
        "error" if field("name") == Some("MessageAbortedError") => HookKind::TurnEnd {
            status: Some("aborted".to_owned()),
        },
        "error" => HookKind::Error {
            message: shown("message").unwrap_or_else(|| "an error".to_owned()),
        },
        "session-end" => HookKind::SessionEnd {
            reason: shown("reason"),
        },
        _ => HookKind::Ignored,
    };
    Ok(HookEvent {
        session: SessionRef::new(crate::agent_id(), session),
        cwd: field("directory").map(Into::into),
        kind,
        transcript: None,
    })
}

/// Puts a notice into the form the plugin reads.
pub(crate) fn reply(event: &str, notice: &str) -> Option<String> {
    matches!(event, "session-start" | "turn-start" | "compaction")
        .then(|| serde_json::json!({ "notice": notice }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_translated() {
        let of =
            |event: &str, payload: &str| hook(event, payload.as_bytes()).map(|event| event.kind);
        let session = r#""sessionID":"ses_1","directory":"/repo""#;
        assert_eq!(
            of("session-start", &format!("{{{session}}}")).unwrap(),
            HookKind::SessionStart
        );
        assert_eq!(
            of(
                "tool-start",
                &format!(r#"{{{session},"tool":"bash","argument":"a\u001b[31mb"}}"#)
            )
            .unwrap(),
            HookKind::ToolStart {
                tool: "bash".to_owned(),
                argument: "ab".to_owned()
            }
        );
        assert_eq!(
            of(
                "error",
                &format!(r#"{{{session},"name":"MessageAbortedError"}}"#)
            )
            .unwrap(),
            HookKind::TurnEnd {
                status: Some("aborted".to_owned())
            }
        );
        assert_eq!(
            of("something-new", &format!("{{{session}}}")).unwrap(),
            HookKind::Ignored
        );
        for bad in [
            "",
            "{",
            "{}",
            r#"{"sessionID":" "}"#,
            r#"{"sessionID":"a\u001b"}"#,
        ] {
            assert!(of("session-start", bad).is_err(), "{bad}");
        }
        assert_eq!(
            reply("session-start", "a \"b\"").as_deref(),
            Some(r#"{"notice":"a \"b\""}"#)
        );
        assert_eq!(reply("turn-end", "x"), None);
    }
}
