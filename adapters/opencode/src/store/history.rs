//! What a session's messages say: how it ended, what was still running, what it last saw of the tree.
use serde_json::Value;
use takeup_core::agent::{Interruption, InterruptionReason, Turn};
use takeup_core::identity::OpenEffect;
use takeup_core::text;
use takeup_core::time::Time;

use super::{LOOKED_AT, Row};

/// A message with its parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    id: String,
    data: Value,
    parts: Vec<(String, Value)>,
}

impl Message {
    pub(super) fn new(id: String, data: Value, parts: Vec<(String, Value)>) -> Self {
        Self { id, data, parts }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn is_user(&self) -> bool {
        field(&self.data, "role") == Some("user")
    }

    fn at(&self) -> Option<Time> {
        self.data
            .pointer("/time/created")
            .and_then(Value::as_i64)
            .map(Time::from_millis)
    }

    fn is_complete(&self) -> bool {
        self.data
            .pointer("/time/completed")
            .is_some_and(Value::is_number)
    }

    /// What the person typed: texts that no program put there.
    pub(super) fn prompt(&self) -> Option<String> {
        let typed: Vec<&str> = self
            .parts
            .iter()
            .map(|(_, part)| part)
            .filter(|part| {
                field(part, "type") == Some("text")
                    && !flag(part, "synthetic")
                    && !flag(part, "ignored")
            })
            .filter_map(|part| field(part, "text"))
            .collect();
        (!typed.is_empty()).then(|| text::one_line(&typed.join(" "), LOOKED_AT))
    }

    /// One turn for a preview: its texts and the names of its tools.
    pub(super) fn turn(&self) -> Option<Turn> {
        let mut lines: Vec<String> = Vec::new();
        for (_, part) in &self.parts {
            match field(part, "type") {
                Some("text") if !flag(part, "ignored") => {
                    lines.push(field(part, "text").unwrap_or_default().to_owned());
                }
                Some("tool") => lines.push(format!(
                    "[{} {}]",
                    field(part, "tool").unwrap_or("tool"),
                    part.pointer("/state/status")
                        .and_then(Value::as_str)
                        .unwrap_or("unknown")
                )),
                Some(_) | None => {}
            }
        }
        let shown = text::clean(&lines.join("\n"), 2_000);
        (!shown.is_empty()).then(|| Turn {
            role: if self.is_user() { "user" } else { "assistant" }.to_owned(),
            at: self.at(),
            text: shown,
        })
    }

    /// The calls that had begun and not ended, and the parts of which nobody can tell.
    fn open_tools(&self) -> impl Iterator<Item = &Value> {
        self.parts
            .iter()
            .map(|(_, part)| part)
            .filter(|part| is_open(part) || may_be_call(part))
    }
}

fn is_open(part: &Value) -> bool {
    field(part, "type") == Some("tool")
        && matches!(
            part.pointer("/state/status").and_then(Value::as_str),
            Some("pending" | "running")
        )
}

/// Reads a message or a part. What cannot be read is kept as the beginning of its text, for a healthy one is an object.
pub(super) fn parse(data: &str) -> Value {
    text::json_of_agent::<Value>(data.as_bytes())
        .ok()
        .filter(Value::is_object)
        .unwrap_or_else(|| Value::String(data.chars().take(LOOKED_AT).collect()))
}

/// Tells whether a part that cannot be read may have been a call: its first words may still say what it was.
fn may_be_call(part: &Value) -> bool {
    let begins = |text: &str| {
        ["text", "reasoning", "step-start", "step-finish", "patch"]
            .iter()
            .any(|kind| text.starts_with(&format!("{{\"type\":\"{kind}\"")))
    };
    !part.is_object() && !part.as_str().is_some_and(begins)
}

fn field<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool) == Some(true)
}

/// Reads a pending undo.
pub(super) fn revert_of(revert: &Value) -> Option<(String, Option<String>)> {
    let message = field(revert, "messageID")?.to_owned();
    Some((message, field(revert, "partID").map(str::to_owned)))
}

/// Takes out what a pending undo hides: the message (or its parts from one on) and everything after it.
pub(super) fn hide_reverted(row: &mut Row) {
    let Some((message, part)) = &row.revert else {
        return;
    };
    row.messages.retain_mut(|known| {
        if known.id == *message
            && let Some(part) = part
        {
            known.parts.retain(|(id, _)| id < part);
            return true;
        }
        known.id < *message
    });
}

/// How a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// One word for it.
    pub(super) word: &'static str,
    /// A turn had begun and not ended.
    pub(super) in_turn: bool,
    /// Why it is unfinished.
    pub(super) interruption: Option<Interruption>,
}

/// Tells how a session ended, by its last message.
pub(super) fn ending(row: &Row) -> Ending {
    let ending = |word, in_turn, reason, proof: String| Ending {
        word,
        in_turn,
        interruption: Some(Interruption {
            reason,
            proof,
            until: None,
        }),
    };
    let Some(last) = row.messages.last() else {
        return Ending {
            word: "empty",
            in_turn: false,
            interruption: None,
        };
    };
    if last.is_user() {
        return ending(
            "unanswered",
            false,
            InterruptionReason::Unknown,
            "the last prompt was never answered".to_owned(),
        );
    }
    if let Some(error) = last.data.get("error").filter(|error| error.is_object()) {
        let name = text::one_line(field(error, "name").unwrap_or("an error"), 80);
        let message = text::one_line(
            error
                .pointer("/data/message")
                .and_then(Value::as_str)
                .unwrap_or(""),
            LOOKED_AT,
        );
        let proof = if message.is_empty() {
            format!("the last turn ended with {name}")
        } else {
            format!("the last turn ended with {name}: {message}")
        };
        let status = error.pointer("/data/statusCode").and_then(Value::as_i64);
        let (word, reason) = match name.as_str() {
            "MessageAbortedError" => ("aborted", InterruptionReason::Cancelled),
            "MessageOutputLengthError" | "ContextOverflowError" => {
                ("failed", InterruptionReason::ContextFull)
            }
            // What a provider answers to one who asked too much (RFC 6585, section 4).
            "APIError" if status == Some(429) => ("failed", InterruptionReason::UsageLimit),
            _ => ("failed", InterruptionReason::Error),
        };
        return ending(word, false, reason, proof);
    }
    if !last.data.is_object() {
        return ending(
            "unreadable",
            true,
            InterruptionReason::Unknown,
            "the last message cannot be read".to_owned(),
        );
    }
    if !last.is_complete() {
        let open: Vec<String> = last
            .open_tools()
            .map(|part| text::one_line(field(part, "tool").unwrap_or("a tool"), 40))
            .collect();
        let proof = if open.is_empty() {
            "the last message never ended".to_owned()
        } else {
            format!(
                "the last message never ended; still running: {}",
                open.join(", ")
            )
        };
        return ending("interrupted", true, InterruptionReason::Unknown, proof);
    }
    match field(&last.data, "finish") {
        Some("tool-calls") => ending(
            "interrupted",
            true,
            InterruptionReason::Unknown,
            "it stopped between two steps: after its tools the model was never asked again"
                .to_owned(),
        ),
        Some("length") => ending(
            "cut",
            false,
            InterruptionReason::ContextFull,
            "the last answer was cut at the model's limit".to_owned(),
        ),
        Some("content-filter") => ending(
            "refused",
            false,
            InterruptionReason::Refused,
            "the last answer was refused".to_owned(),
        ),
        Some(_) | None => {
            let open = row.todos.iter().filter(|todo| !todo.done).count();
            if open == 0 {
                return Ending {
                    word: "finished",
                    in_turn: false,
                    interruption: None,
                };
            }
            ending(
                "open-todos",
                false,
                InterruptionReason::Closed,
                format!(
                    "the last turn ended, and {open} of {} todos are open",
                    row.todos.len()
                ),
            )
        }
    }
}

/// What of the messages cannot be read, in words.
pub(super) fn damage(messages: &[Message]) -> Option<String> {
    let broken: Vec<&str> = messages
        .iter()
        .flat_map(|message| {
            std::iter::once((&message.id, &message.data))
                .chain(message.parts.iter().map(|(id, part)| (id, part)))
        })
        .filter(|(_, data)| !data.is_object())
        .map(|(id, _)| id.as_str())
        .collect();
    let (shown, more) = broken.split_at_checked(3).unwrap_or((&broken, &[]));
    (!broken.is_empty()).then(|| {
        let more = match more.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text::one_line(&format!("cannot be read: {}{more}", shown.join(", ")), 200)
    })
}

/// Calls that had started and not finished. Only the last turn can hold any that are not known to be over.
pub(super) fn open_effects(messages: &[Message]) -> Vec<OpenEffect> {
    let start = messages.iter().rposition(Message::is_user).unwrap_or(0);
    messages
        .iter()
        .skip(start)
        .flat_map(Message::open_tools)
        .map(|part| {
            if !part.is_object() {
                return OpenEffect {
                    tool: "unknown".to_owned(),
                    argument: text::one_line(
                        &format!(
                            "(its record cannot be read) {}",
                            part.as_str().unwrap_or_default()
                        ),
                        LOOKED_AT,
                    ),
                    at: None,
                };
            }
            let input = part.pointer("/state/input").cloned().unwrap_or(Value::Null);
            let argument = input
                .get("command")
                .or_else(|| input.get("filePath"))
                .and_then(Value::as_str)
                .map_or_else(
                    || {
                        if input.is_null() {
                            String::new()
                        } else {
                            input.to_string()
                        }
                    },
                    str::to_owned,
                );
            OpenEffect {
                tool: text::one_line(field(part, "tool").unwrap_or("tool"), 80),
                argument: text::one_line(&argument, LOOKED_AT),
                at: part
                    .pointer("/state/time/start")
                    .and_then(Value::as_i64)
                    .map(Time::from_millis),
            }
        })
        .collect()
}

/// What OpenCode recorded last of the work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// The tree, at the beginning or the end of a step.
    pub(super) tree: Option<String>,
    /// What came after it and may have changed the content, in words.
    pub(super) after: Option<String>,
}

/// OpenCode's tools that change nothing in the work tree.
const READING: [&str; 13] = [
    "codesearch",
    "glob",
    "grep",
    "invalid",
    "list",
    "lsp",
    "question",
    "read",
    "skill",
    "todoread",
    "todowrite",
    "webfetch",
    "websearch",
];

/// Finds the last snapshot, and what came after it. Calls that never ended are not counted: they are told by themselves.
pub(super) fn snapshot(messages: &[Message]) -> Snapshot {
    let mut calls: Vec<String> = Vec::new();
    let mut patched = false;
    let parts = messages
        .iter()
        .rev()
        .flat_map(|message| message.parts.iter().rev());
    for (_, part) in parts {
        match field(part, "type") {
            Some(kind @ ("step-start" | "step-finish")) => {
                let Some(tree) = field(part, "snapshot") else {
                    continue;
                };
                // A step's list of changed files follows the snapshot of its end, which holds them. Where there is none, the list is
                // the only word of a change, or of the calls that are known.
                if patched && kind == "step-start" && calls.is_empty() {
                    calls.push("changed files".to_owned());
                }
                calls.reverse();
                let after = match calls.len() {
                    0 => None,
                    1 => Some(format!("1 later call: {}", calls.concat())),
                    more => Some(format!("{more} later calls: {}", calls.join(", "))),
                };
                return Snapshot {
                    tree: Some(tree.to_owned()).filter(|id| is_object_id(id)),
                    after: after.map(|after| text::one_line(&after, 200)),
                };
            }
            Some("patch") => patched = true,
            Some("tool") => {
                let tool = field(part, "tool").unwrap_or("tool");
                if !READING.contains(&tool) && !is_open(part) {
                    calls.push(text::one_line(tool, 40));
                }
            }
            Some(_) => {}
            None => {
                if may_be_call(part) {
                    calls.push("a part that cannot be read".to_owned());
                }
            }
        }
    }
    Snapshot::default()
}

fn is_object_id(id: &str) -> bool {
    matches!(id.len(), 40 | 64) && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The title, or the first prompt where there is only the placeholder.
pub(super) fn title(row: &Row) -> Option<String> {
    let placeholder = row.title.starts_with("New session - ") || row.title.trim().is_empty();
    if !placeholder {
        return Some(text::one_line(&row.title, LOOKED_AT));
    }
    row.messages
        .iter()
        .filter(|message| message.is_user())
        .find_map(Message::prompt)
        .or_else(|| (!row.title.trim().is_empty()).then(|| text::one_line(&row.title, LOOKED_AT)))
}

/// When the last turn began: the last prompt was written.
pub(super) fn turn_start(row: &Row) -> Option<Time> {
    row.messages.iter().rfind(|message| message.is_user())?.at()
}

/// When anything of the session was last written: the row itself lags behind its messages.
pub(super) fn last_write(row: &Row) -> Time {
    let of_parts = row
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|(_, part)| {
            [
                "/state/time/end",
                "/state/time/start",
                "/time/end",
                "/time/start",
            ]
            .iter()
            .find_map(|pointer| part.pointer(pointer).and_then(Value::as_i64))
        });
    let of_messages = row.messages.iter().filter_map(|message| {
        message
            .data
            .pointer("/time/completed")
            .or_else(|| message.data.pointer("/time/created"))
            .and_then(Value::as_i64)
    });
    Time::from_millis(
        of_parts
            .chain(of_messages)
            .max()
            .unwrap_or(0)
            .max(row.updated),
    )
}
