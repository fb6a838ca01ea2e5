//! What a transcript says of its end: calls without a result, the last prompt.
use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::shown::line;
use crate::wire::{Block, Message};

/// The result jcode puts in, at the next turn, for a call whose session died: whether it happened is still not known.
const STAND_IN: &str = "Tool output missing (session interrupted";

/// How jcode's note in a fork begins, behind the marks of the system: what stands before it is the parent's, which goes on
/// with its own calls.
const FORKED: &str = "This session was forked (split) from session ";

/// How many characters of an argument are kept.
const ARGUMENT: usize = 200;

/// How many characters of a prompt are kept.
const PROMPT: usize = 200;

/// A call that had started and has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenCall {
    pub(crate) tool: String,
    /// One line, cut, not masked.
    pub(crate) argument: String,
    pub(crate) at: Option<Timestamp>,
}

/// Returns the calls that have no result, in order. A stand-in for a result counts as none while no answer of the model
/// follows it: until then nobody has looked what happened.
pub(crate) fn open_calls(messages: &[Message]) -> Vec<OpenCall> {
    let own = messages.iter().rposition(is_fork_note);
    let messages = own
        .and_then(|note| messages.get(note..))
        .unwrap_or(messages);
    let last_answer = messages
        .iter()
        .rposition(|message| message.role == "assistant");
    let mut answered = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        for block in &message.blocks {
            if let Block::ToolResult {
                id,
                content,
                failed,
            } = block
            {
                let stand_in = *failed
                    && content.starts_with(STAND_IN)
                    && last_answer.is_none_or(|last| last < index);
                if !stand_in {
                    answered.insert(id.as_str());
                }
            }
        }
    }
    let calls = messages.iter().flat_map(|message| {
        message.blocks.iter().filter_map(|block| match block {
            Block::ToolUse { id, name, input } if !answered.contains(id.as_str()) => {
                Some(OpenCall {
                    tool: line(name, 80),
                    argument: argument(input),
                    at: message.at,
                })
            }
            Block::ToolUse { .. }
            | Block::ToolResult { .. }
            | Block::Text(_)
            | Block::Image { .. }
            | Block::Hidden
            | Block::Unknown { .. } => None,
        })
    });
    calls.collect()
}

fn is_fork_note(message: &Message) -> bool {
    message.display_role.as_deref() == Some("system")
        && message.text().is_some_and(|text| {
            text.trim_start()
                .strip_prefix("<system-reminder>")
                .is_some_and(|note| note.trim_start().starts_with(FORKED))
        })
}

/// Returns what a call was about: the command or file, else the whole argument.
pub(crate) fn argument(input: &str) -> String {
    let value: Value = serde_json::from_str(input).unwrap_or(Value::Null);
    let telling = ["command", "file_path", "path", "url", "pattern", "query"]
        .iter()
        .find_map(|key| value.get(key)?.as_str());
    telling.map_or_else(|| line(input, ARGUMENT), |text| line(text, ARGUMENT))
}

/// Returns the last thing a person said.
pub(crate) fn last_prompt(messages: &[Message]) -> Option<String> {
    let message = messages.iter().rev().find(|message| message.is_prompt())?;
    message.text().map(|text| line(text, PROMPT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: &str, blocks: Vec<Block>) -> Message {
        Message {
            id: None,
            role: role.to_owned(),
            display_role: None,
            at: None,
            blocks,
            raw: String::new(),
            loads: true,
        }
    }

    fn call(id: &str) -> Block {
        Block::ToolUse {
            id: id.to_owned(),
            name: "bash".to_owned(),
            input: r#"{"command":"make\ndeploy","intent":"x"}"#.to_owned(),
        }
    }

    fn result(id: &str, content: &str) -> Block {
        Block::ToolResult {
            id: id.to_owned(),
            content: content.to_owned(),
            failed: content.starts_with("Tool output missing"),
        }
    }

    #[test]
    fn a_stand_in_is_no_result_until_the_model_has_seen_it() {
        let stand_in = "Tool output missing (session interrupted before tool execution completed)";
        let mut messages = vec![
            message("assistant", vec![call("1"), call("2")]),
            message("user", vec![result("1", "done")]),
        ];
        assert_eq!(open_calls(&messages).len(), 1);
        messages.push(message("user", vec![result("2", stand_in)]));
        let open = open_calls(&messages);
        assert_eq!(open.len(), 1);
        assert_eq!(open[0].argument, "make deploy");
        messages.push(message(
            "assistant",
            vec![Block::Text("I will look.".to_owned())],
        ));
        assert_eq!(open_calls(&messages), []);
    }

    #[test]
    fn the_calls_of_the_parent_are_not_those_of_a_fork() {
        let mut note = message(
            "user",
            vec![Block::Text(format!(
                "<system-reminder>\n{FORKED}otter (session_otter_1_2) by the user.\n</system-reminder>"
            ))],
        );
        let said_by_a_person = note.clone();
        note.display_role = Some("system".to_owned());
        let mut messages = vec![message("assistant", vec![call("1")]), note];
        assert_eq!(open_calls(&messages), []);
        messages.push(message("assistant", vec![call("2")]));
        assert_eq!(open_calls(&messages).len(), 1);
        let quoted = [message("assistant", vec![call("1")]), said_by_a_person];
        assert_eq!(open_calls(&quoted).len(), 1);
    }
}
