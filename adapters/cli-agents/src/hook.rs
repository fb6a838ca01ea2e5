//! What the clients' hooks hand over, translated; and the answer in the form each of them wants.
use std::path::PathBuf;

use serde_json::{Value, json};
use takeup_core::agent::{AgentError, HookEvent, HookKind};
use takeup_core::ids::{AgentId, SessionId, SessionRef};
use takeup_core::redact;
use takeup_core::text::{json_of_agent, one_line};

use crate::clients::{Client, Meaning, Shape};

/// The largest payload that is read, in bytes: a prompt with pasted files.
const LIMIT: usize = 8 << 20;

/// Translates one event. The name on the command line counts, else the one in the payload.
pub(crate) fn translate(
    client: &Client,
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
    let payload: Value = json_of_agent(input).map_err(|error| refuse(error.to_string()))?;
    let text = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| payload.get(name).and_then(Value::as_str))
    };
    let id = text(["session_id", "sessionId"])
        .ok_or_else(|| refuse("it names no session".to_owned()))?;
    let id = SessionId::new(id).map_err(|error| refuse(error.to_string()))?;
    let agent = AgentId::new(client.id).map_err(|error| refuse(error.to_string()))?;
    let path = |names: [&str; 2]| {
        text(names)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    // Masked first: a cut could hide what a secret is.
    let short = |text: &str| one_line(&redact::text(&one_line(text, 1_200)).text, 200);
    let meaning = client
        .events
        .iter()
        .find(|(name, _)| *name == event)
        .map(|(_, meaning)| *meaning);
    let kind = match meaning {
        Some(Meaning::SessionStart) => HookKind::SessionStart,
        Some(Meaning::TurnStart) => HookKind::TurnStart {
            prompt: text(["prompt", "initialPrompt"]).map(redact::prompt),
        },
        Some(Meaning::TurnEnd) => HookKind::TurnEnd {
            status: text(["status", "stopReason"]).map(short),
        },
        Some(Meaning::Compaction) => HookKind::Compaction,
        Some(Meaning::Error) => HookKind::Error {
            message: error_of(&payload)
                .map(|text| short(&text))
                .unwrap_or_default(),
        },
        Some(Meaning::SessionEnd) => HookKind::SessionEnd {
            reason: text(["reason", "trigger"]).map(short),
        },
        None => HookKind::Ignored,
    };
    Ok(HookEvent {
        session: SessionRef::new(agent, id),
        cwd: path(["cwd", "workingDirectory"]),
        kind,
        transcript: path(["transcript_path", "transcriptPath"]),
    })
}

fn error_of(payload: &Value) -> Option<String> {
    let error = payload.get("error")?;
    let text = error
        .get("message")
        .and_then(Value::as_str)
        .or_else(|| error.as_str());
    Some(text.map_or_else(|| error.to_string(), str::to_owned))
}

/// Puts a notice into the form in which the client hands it on to its model.
pub(crate) fn reply(client: &Client, event: &str, notice: &str) -> Option<String> {
    if !client.answered.contains(&event) {
        return None;
    }
    let answer = match client.shape {
        Shape::Groups { .. } => json!({
            "hookSpecificOutput": { "hookEventName": event, "additionalContext": notice }
        }),
        Shape::Flat => json!({ "additionalContext": notice }),
    };
    Some(answer.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::CLIENTS;

    fn client(id: &str) -> &'static Client {
        CLIENTS.iter().find(|client| client.id == id).unwrap()
    }

    /// Payloads as the clients send them; the fields are those seen with the versions named in the documentation.
    #[test]
    fn payloads_of_all_four() {
        let claude = br#"{"session_id":"0b0c","transcript_path":"/h/.claude/projects/-r/0b0c.jsonl","cwd":"/r",
            "hook_event_name":"SessionStart","source":"resume","permission_mode":"default"}"#;
        let event = translate(client("claude-code"), "SessionStart", claude).unwrap();
        assert_eq!(event.kind, HookKind::SessionStart);
        assert_eq!(event.cwd, Some("/r".into()));
        assert_eq!(
            event.transcript,
            Some("/h/.claude/projects/-r/0b0c.jsonl".into())
        );
        let prompt = br#"{"session_id":"0b0c","cwd":"/r","prompt":"use sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-AAAAAAAA now\nplease"}"#;
        let HookKind::TurnStart {
            prompt: Some(prompt),
        } = translate(client("codex"), "UserPromptSubmit", prompt)
            .unwrap()
            .kind
        else {
            panic!("no prompt")
        };
        assert!(prompt.starts_with("use ") && prompt.ends_with("now\nplease"));
        assert!(!prompt.contains("AAAAAAAA"), "{prompt}");
        let gemini = br#"{"session_id":"g1","cwd":"/r","hook_event_name":"SessionEnd","reason":"exit","timestamp":"x"}"#;
        assert_eq!(
            translate(client("gemini"), "SessionEnd", gemini)
                .unwrap()
                .kind,
            HookKind::SessionEnd {
                reason: Some("exit".to_owned())
            }
        );
        let copilot = br#"{"sessionId":"c1","timestamp":1,"cwd":"/r","error":{"message":"limit","name":"E"}}"#;
        let event = translate(client("copilot"), "errorOccurred", copilot).unwrap();
        assert_eq!(event.session.to_string(), "copilot:c1");
        assert_eq!(
            event.kind,
            HookKind::Error {
                message: "limit".to_owned()
            }
        );
        assert_eq!(
            translate(client("copilot"), "agentStop", copilot)
                .unwrap()
                .kind,
            HookKind::TurnEnd { status: None }
        );
    }

    #[test]
    fn what_is_no_payload_is_refused_and_what_is_new_ignored() {
        for client in CLIENTS {
            for input in [
                &b""[..],
                b"[]",
                b"{}",
                b"{\"session_id\":7}",
                b"{\"session_id\":\"a\\u0007\"}",
                b"\xff",
            ] {
                assert!(matches!(
                    translate(client, "SessionStart", input),
                    Err(AgentError::Payload { .. })
                ));
            }
            let event = translate(
                client,
                "OfALaterVersion",
                b"{\"session_id\":\"s\",\"cwd\":\"relative\"}",
            )
            .unwrap();
            assert_eq!(event.kind, HookKind::Ignored);
            assert_eq!(event.cwd, None);
        }
    }

    #[test]
    fn the_answer_has_each_clients_form() {
        let notice = "task \"x\"\nis unfinished";
        let answers: Vec<String> = CLIENTS
            .iter()
            .map(|client| reply(client, client.events[0].0, notice).unwrap())
            .collect();
        insta::assert_snapshot!(answers.join("\n"), @r#"
        {"hookSpecificOutput":{"additionalContext":"task \"x\"\nis unfinished","hookEventName":"SessionStart"}}
        {"hookSpecificOutput":{"additionalContext":"task \"x\"\nis unfinished","hookEventName":"SessionStart"}}
        {"hookSpecificOutput":{"additionalContext":"task \"x\"\nis unfinished","hookEventName":"SessionStart"}}
        {"additionalContext":"task \"x\"\nis unfinished"}
        "#);
        for client in CLIENTS {
            assert_eq!(reply(client, "SessionEnd", notice), None);
            for event in client.answered {
                assert!(client.events.iter().any(|(name, _)| name == event));
            }
        }
    }
}
