//! The end of a transcript: what was said last, and which calls had begun and not ended. The events have the same shape
//! in both stores.
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use takeup_core::agent::Turn;
use takeup_core::identity::OpenEffect;
use takeup_core::text::json_of_agent;
use takeup_core::time::Time;

use super::entry::lenient;
use crate::text::{argument, masked, one_line};

/// One event. Unknown types and fields are left alone.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Event {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(crate) kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) parent_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) target_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) timestamp: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cwd: Option<PathBuf>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) message: Option<Message>,
    /// It cannot be read, so it may have been anything.
    #[serde(skip)]
    pub(crate) lost: bool,
}

/// A message in an event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Message {
    #[serde(deserialize_with = "lenient")]
    pub(crate) role: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) content: Option<Content>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) stop_reason: Option<String>,
    #[serde(rename = "errorMessage", deserialize_with = "lenient")]
    pub(crate) failure: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) tool_call_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) tool_name: Option<String>,
}

/// Plain text, or blocks.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de serde_json::value::RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        if text.starts_with('"') {
            json_of_agent(text.as_bytes()).map(Self::Text)
        } else {
            json_of_agent(text.as_bytes()).map(Self::Blocks)
        }
        .map_err(serde::de::Error::custom)
    }
}

/// One block of a message.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Block {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(crate) kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) text: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) arguments: Option<Value>,
}

impl Event {
    /// An event that cannot be read.
    pub(crate) fn lost() -> Self {
        Self {
            lost: true,
            ..Self::default()
        }
    }

    fn is(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    /// Tells whether the active path may end here: marks and settings may hang anywhere in the tree.
    fn leads(&self) -> bool {
        matches!(
            self.kind.as_deref(),
            Some("message" | "custom_message" | "compaction" | "reset" | "branch_summary" | "leaf")
        )
    }

    fn role(&self) -> Option<&str> {
        self.message.as_ref()?.role.as_deref()
    }

    /// Returns when it was written.
    pub(crate) fn at(&self) -> Option<Time> {
        self.timestamp.as_deref()?.parse().ok()
    }

    fn blocks(&self) -> &[Block] {
        match self
            .message
            .as_ref()
            .and_then(|message| message.content.as_ref())
        {
            Some(Content::Blocks(blocks)) => blocks,
            Some(Content::Text(_)) | None => &[],
        }
    }

    fn text(&self) -> String {
        match self
            .message
            .as_ref()
            .and_then(|message| message.content.as_ref())
        {
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Blocks(blocks)) => {
                let texts: Vec<&str> = blocks
                    .iter()
                    .filter(|block| block.kind.as_deref() == Some("text"))
                    .filter_map(|block| block.text.as_deref())
                    .collect();
                texts.join("\n")
            }
            None => String::new(),
        }
    }

    /// Returns what a person said in it, as it was; `None` for everything else, also for what OpenClaw itself put there.
    pub(crate) fn said(&self) -> Option<String> {
        if self.role() != Some("user") {
            return None;
        }
        let text = self.text();
        let text = without_envelope(&text).trim();
        (!text.is_empty() && !text.starts_with("[System]")).then(|| text.to_owned())
    }

    /// Returns the calls it makes.
    fn calls(&self) -> impl Iterator<Item = (&str, &Block)> {
        self.blocks()
            .iter()
            .filter(|block| block.kind.as_deref() == Some("toolCall"))
            .filter_map(|block| Some((block.id.as_deref()?, block)))
    }
}

/// OpenClaw may put a stamp such as `[Sun 2026-11-29 15:20 UTC] ` before what was said.
fn without_envelope(text: &str) -> &str {
    let Some((stamp, rest)) = text
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
    else {
        return text;
    };
    let is_stamp = stamp.len() < 60
        && stamp.bytes().filter(u8::is_ascii_digit).count() >= 8
        && stamp.contains('-')
        && stamp.contains(':');
    if is_stamp { rest } else { text }
}

/// How a transcript ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing was said since the start or the last reset.
    Empty,
    /// The assistant had the last word.
    Finished,
    /// Calls had begun and not ended.
    Calling,
    /// All calls had ended, and the assistant had not gone on.
    Between,
    /// What stood at the end cannot be read.
    Lost,
    /// Something was asked, and not answered.
    Asked,
    /// The person stopped it.
    Aborted,
    /// It failed, and what was said about it.
    Failed(String),
}

/// What the end of a transcript tells.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    pub(crate) end: End,
    pub(crate) open: Vec<OpenEffect>,
    pub(crate) last_prompt: Option<String>,
    pub(crate) last_at: Option<Time>,
    pub(crate) turns: Vec<Turn>,
}

/// Finds the active path in the last events of a transcript (oldest first): the chain of parents from the newest one,
/// from the target of a `leaf` mark where one stands last. Events whose parents lie before the window end the chain.
/// Everything up to the last `reset` belongs to another conversation and is left out.
pub(crate) fn active(events: Vec<Event>) -> Vec<Event> {
    let mut start = events
        .iter()
        .rev()
        .find(|event| event.leads() && event.id.is_some())
        .and_then(|event| {
            if event.is("leaf") {
                event.target_id.clone()
            } else {
                event.id.clone()
            }
        });
    let parents: BTreeMap<&str, Option<&str>> = events
        .iter()
        .filter_map(|event| Some((event.id.as_deref()?, event.parent_id.as_deref())))
        .collect();
    let mut path = BTreeSet::new();
    while let Some(id) = start {
        start = parents
            .get(id.as_str())
            .copied()
            .flatten()
            .map(str::to_owned);
        // A circle of parents is damage; it ends the walk.
        if !path.insert(id) {
            break;
        }
    }
    let mut chain: Vec<Event> = events
        .into_iter()
        .filter(|event| event.id.as_ref().is_some_and(|id| path.contains(id)))
        .collect();
    if let Some(reset) = chain.iter().rposition(|event| event.is("reset")) {
        chain.drain(..=reset);
    }
    chain
}

/// Reads the end of the last events of a transcript (oldest first); `turns` is how many of the last ones are wanted. What
/// cannot be read and stands behind the assistant's last word may have been a call.
pub(crate) fn end_of(events: Vec<Event>, turns: usize) -> Tail {
    let spoke = |event: &Event| event.is("message") && event.role() == Some("assistant");
    let last_word = events.iter().rposition(spoke).map_or(0, |at| at + 1);
    let lost = events.iter().skip(last_word).any(|event| event.lost);
    let mut tail = tail(&active(events), turns);
    if lost {
        tail.open.push(OpenEffect {
            tool: "unknown".to_owned(),
            argument: "(its record cannot be read)".to_owned(),
            at: None,
        });
        tail.end = End::Lost;
    }
    tail
}

/// Reads the end of an active path; `turns` is how many of the last ones are wanted.
pub(crate) fn tail(path: &[Event], turns: usize) -> Tail {
    let messages: Vec<&Event> = path
        .iter()
        .filter(|event| event.is("message") && event.role().is_some())
        .collect();
    let answered: BTreeSet<&str> = messages
        .iter()
        .filter_map(|event| event.message.as_ref()?.tool_call_id.as_deref())
        .collect();
    let mut open = Vec::new();
    if let Some(last) = messages
        .iter()
        .rev()
        .find(|event| event.role() == Some("assistant"))
    {
        for (_, call) in last.calls().filter(|(id, _)| !answered.contains(id)) {
            open.push(OpenEffect {
                tool: one_line(call.name.as_deref().unwrap_or("unknown"), 80),
                argument: call.arguments.as_ref().map(argument).unwrap_or_default(),
                at: last.at(),
            });
        }
    }
    let end = match messages.last() {
        None => End::Empty,
        Some(last) => match last.role() {
            Some("user") if !open.is_empty() => End::Calling,
            Some("user") => End::Asked,
            Some("toolResult") if open.is_empty() => End::Between,
            Some("assistant" | "toolResult") => {
                let message = last.message.as_ref();
                match message.and_then(|message| message.stop_reason.as_deref()) {
                    Some("aborted") => End::Aborted,
                    Some("error") => End::Failed(
                        message
                            .and_then(|message| message.failure.as_deref())
                            .map(|text| masked(text, 200))
                            .unwrap_or_default(),
                    ),
                    Some(_) | None if !open.is_empty() => End::Calling,
                    Some(_) | None => End::Finished,
                }
            }
            Some(_) | None => End::Finished,
        },
    };
    let shown = messages.len().saturating_sub(turns);
    Tail {
        end,
        open,
        last_prompt: messages
            .iter()
            .rev()
            .find_map(|event| event.said())
            .map(|text| masked(&text, 400)),
        last_at: messages.last().and_then(|event| event.at()),
        turns: messages
            .iter()
            .skip(shown)
            .filter_map(|event| turn(event))
            .collect(),
    }
}

fn turn(event: &Event) -> Option<Turn> {
    let role = match event.role()? {
        "user" => "user",
        "assistant" => "assistant",
        _ => "tool",
    };
    let mut text = event.text();
    for (_, call) in event.calls() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(call.name.as_deref().unwrap_or("unknown"));
        if let Some(arguments) = &call.arguments {
            text.push(' ');
            text.push_str(&argument(arguments));
        }
    }
    Some(Turn {
        role: role.to_owned(),
        at: event.at(),
        text: masked(&text, 2_000),
    })
}
