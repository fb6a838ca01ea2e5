//! jcode's records as they stand in its files, read leniently: what an older or newer jcode wrote is kept, and whether
//! the jcode of the described version could read it is remembered.
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Members, Piece, members};

/// The status of a session, in jcode's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Open.
    #[default]
    Active,
    /// Closed in good order.
    Closed,
    /// Marked as crashed, with jcode's own text.
    Crashed(Option<String>),
    /// Left by a reload of the client.
    Reloaded,
    /// Compacted (old versions).
    Compacted,
    /// Stopped by a rate limit (old versions).
    RateLimited,
    /// Ended by an error.
    Error(String),
    /// A word that the described version does not know.
    Unknown(String),
}

impl Status {
    /// Returns jcode's own word.
    pub fn word(&self) -> &str {
        match self {
            Self::Active => "Active",
            Self::Closed => "Closed",
            Self::Crashed(_) => "Crashed",
            Self::Reloaded => "Reloaded",
            Self::Compacted => "Compacted",
            Self::RateLimited => "RateLimited",
            Self::Error(_) => "Error",
            Self::Unknown(word) => word,
        }
    }

    fn read(bytes: &[u8]) -> Self {
        if let Ok(word) = serde_json::from_slice::<String>(bytes) {
            return match word.as_str() {
                "Active" => Self::Active,
                "Closed" => Self::Closed,
                "Reloaded" => Self::Reloaded,
                "Compacted" => Self::Compacted,
                "RateLimited" => Self::RateLimited,
                _ => Self::Unknown(word),
            };
        }
        let Some(object) = members(bytes, 0) else {
            return Self::Unknown("?".to_owned());
        };
        let message = |inner: Piece<'_>| {
            members(inner.bytes, 0)
                .and_then(|inner| inner.get("message"))
                .and_then(|text| serde_json::from_slice::<Option<String>>(text.bytes).ok())
        };
        match object.list.as_slice() {
            [(b"Crashed", inner)] => message(*inner).map(Self::Crashed),
            [(b"Error", inner)] => message(*inner).flatten().map(Self::Error),
            _ => None,
        }
        .unwrap_or_else(|| {
            let word = object.list.first().map_or(&b"?"[..], |(word, _)| *word);
            Self::Unknown(String::from_utf8_lossy(word).into_owned())
        })
    }
}

/// What jcode keeps of a session beside its messages: the fields of a snapshot, or the `meta` of a journal line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meta {
    pub(crate) id: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) custom_title: Option<String>,
    pub(crate) created_at: Option<Timestamp>,
    pub(crate) updated_at: Option<Timestamp>,
    pub(crate) provider_key: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) route: Option<String>,
    pub(crate) working_dir: Option<String>,
    pub(crate) short_name: Option<String>,
    pub(crate) status: Status,
    /// Whether the record said a status at all.
    pub(crate) has_status: bool,
    pub(crate) last_pid: Option<u32>,
    pub(crate) last_active_at: Option<Timestamp>,
    pub(crate) saved: bool,
    /// How many messages a summary stands for.
    pub(crate) compacted: Option<u64>,
    /// The summary.
    pub(crate) summary: Option<String>,
    /// Why the described version could not read this; empty where it could.
    pub(crate) strange: Vec<String>,
}

/// Reads one value; a wrong type is remembered and read as nothing.
fn value<T: for<'de> Deserialize<'de>>(
    object: &Members<'_>,
    key: &str,
    strange: &mut Vec<String>,
) -> Option<T> {
    let piece = object.get(key)?;
    if !piece.whole {
        return None;
    }
    serde_json::from_slice::<Option<T>>(piece.bytes).unwrap_or_else(|_| {
        strange.push(format!("{key} is not as expected"));
        None
    })
}

fn moment(object: &Members<'_>, key: &str, strange: &mut Vec<String>) -> Option<Timestamp> {
    let text: String = value(object, key, strange)?;
    let moment = text.parse().ok();
    if moment.is_none() {
        strange.push(format!("{key} is no time"));
    }
    moment
}

/// How a key is reported that is not there.
const MISSING: &str = " is missing";

/// The keys without which the described version refuses a record.
const REQUIRED_OF_SNAPSHOT: [&str; 4] = ["id", "created_at", "updated_at", "messages"];
const REQUIRED_OF_META: [&str; 5] = ["updated_at", "is_canary", "status", "is_debug", "saved"];

impl Meta {
    /// Reads the fields of a snapshot.
    pub(crate) fn of_snapshot(object: &Members<'_>) -> Self {
        let mut meta = Self::read(object);
        meta.require(object, &REQUIRED_OF_SNAPSHOT);
        meta
    }

    /// Reads the `meta` of a journal line.
    pub(crate) fn of_journal(object: &Members<'_>) -> Self {
        let mut meta = Self::read(object);
        meta.require(object, &REQUIRED_OF_META);
        meta
    }

    fn require(&mut self, object: &Members<'_>, keys: &[&str]) {
        for key in keys {
            let missing = object
                .get(key)
                .is_none_or(|piece| !piece.whole || piece.bytes == b"null");
            if missing {
                self.strange.push(format!("{key}{MISSING}"));
            }
        }
    }

    fn read(object: &Members<'_>) -> Self {
        let mut strange = Vec::new();
        let s = &mut strange;
        let status = match object.get("status") {
            Some(piece) if piece.whole => Status::read(piece.bytes),
            _ => Status::Active,
        };
        if let Status::Unknown(word) = &status {
            s.push(format!(
                "status `{}` is not known",
                crate::shown::line(word, 40)
            ));
        }
        let compaction = object
            .get("compaction")
            .and_then(|piece| members(piece.bytes, 0));
        let (compacted, summary) = compaction.map_or((None, None), |compaction| {
            (
                value(&compaction, "compacted_count", s),
                value(&compaction, "summary_text", s),
            )
        });
        let mut meta = Self {
            id: value(object, "id", s),
            parent: value(object, "parent_id", s),
            title: value(object, "title", s),
            custom_title: value(object, "custom_title", s),
            created_at: moment(object, "created_at", s),
            updated_at: moment(object, "updated_at", s),
            provider_key: value(object, "provider_key", s),
            model: value(object, "model", s),
            route: value(object, "route_api_method", s),
            working_dir: value(object, "working_dir", s),
            short_name: value(object, "short_name", s),
            status,
            has_status: object.get("status").is_some_and(|piece| piece.whole),
            last_pid: value(object, "last_pid", s),
            last_active_at: moment(object, "last_active_at", s),
            saved: value(object, "saved", s).unwrap_or_default(),
            compacted,
            summary,
            strange: Vec::new(),
        };
        meta.strange = strange;
        meta
    }

    /// Tells whether it was started to do a part of another session's work: a worker of a swarm, or a reviewer. jcode
    /// names its parent in forks, transfers, overnight work and scheduled work too, which are work of their own; only the
    /// title that it gives tells them apart.
    pub(crate) fn is_helper(&self) -> bool {
        let title = self.title.as_deref().unwrap_or_default();
        let worker = title.ends_with(" swarm)") && title.contains("(@");
        let reviewer = matches!(title, "review" | "autoreview" | "judge" | "autojudge");
        self.parent.is_some() && (worker || reviewer)
    }

    /// Tells whether every key is there that the described version demands.
    pub(crate) fn is_complete(&self) -> bool {
        !self.strange.iter().any(|why| why.ends_with(MISSING))
    }

    /// Takes the fields of a later journal line: all but the three that a line does not carry.
    pub(crate) fn replace(&mut self, later: Self) {
        let old = std::mem::replace(self, later);
        self.id = old.id.or_else(|| self.id.take());
        self.created_at = old.created_at.or(self.created_at);
        self.route = old.route;
        self.strange = old.strange;
        if !self.has_status {
            self.status = old.status;
        }
        if self.updated_at.is_none() {
            self.updated_at = old.updated_at;
        }
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id, unique in practice.
    pub id: Option<String>,
    /// `user` or `assistant`.
    pub role: String,
    /// How jcode shows a user message that no person wrote.
    pub display_role: Option<String>,
    /// When it was made.
    pub at: Option<Timestamp>,
    /// Its content.
    pub blocks: Vec<Block>,
    /// Its bytes as they stand in the file.
    pub raw: String,
    /// Whether the described version of jcode can read it.
    pub loads: bool,
}

/// One block of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// What was said.
    Text(String),
    /// A tool call.
    ToolUse {
        /// Its id.
        id: String,
        /// The tool.
        name: String,
        /// Its argument, as JSON text.
        input: String,
    },
    /// What a tool gave back.
    ToolResult {
        /// The call it answers.
        id: String,
        /// The text.
        content: String,
        /// Whether the tool failed.
        failed: bool,
    },
    /// A picture.
    Image {
        /// Its type, such as `image/png`.
        media_type: String,
    },
    /// Thoughts of the model and what only its provider can read; never shown or carried on.
    Hidden,
    /// A kind that the described version does not know.
    Unknown {
        /// Its word.
        kind: String,
        /// Its text, where it has one.
        text: Option<String>,
    },
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    id: Option<String>,
    role: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    display_role: Option<String>,
    timestamp: Option<String>,
}

#[derive(Deserialize)]
struct WireBlock<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    tool_use_id: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
    media_type: Option<String>,
}

impl Message {
    /// Reads a message. Anything that is an object is a message: what is not understood is kept as it stands.
    /// Returns `None` where the bytes are no complete JSON.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let lossy;
        let (text, mut loads) = if let Ok(text) = std::str::from_utf8(bytes) {
            (text, true)
        } else {
            lossy = String::from_utf8_lossy(bytes);
            (lossy.as_ref(), false)
        };
        let mut message = Self {
            id: None,
            role: "user".to_owned(),
            display_role: None,
            at: None,
            blocks: Vec::new(),
            raw: text.to_owned(),
            loads,
        };
        let Ok(wire) = serde_json::from_str::<WireMessage<'_>>(text) else {
            let value: serde_json::Value = serde_json::from_str(text).ok()?;
            let object = value.as_object()?;
            let of = |key: &str| object.get(key).and_then(|v| v.as_str()).map(str::to_owned);
            message.id = of("id");
            message.role = of("role").unwrap_or_else(|| "user".to_owned());
            message.display_role = of("display_role");
            message.loads = false;
            let content = object.get("content").map(ToString::to_string);
            message.blocks = blocks(content.as_deref().unwrap_or_default(), &mut loads);
            return Some(message);
        };
        if let Some(moment) = &wire.timestamp {
            message.at = moment.parse().ok();
            loads &= message.at.is_some();
        }
        loads &= wire.id.is_some()
            && matches!(wire.role.as_deref(), Some("user" | "assistant"))
            && matches!(
                wire.display_role.as_deref(),
                None | Some("system" | "background_task")
            );
        message.id = wire.id;
        message.role = wire.role.unwrap_or_else(|| "user".to_owned());
        message.display_role = wire.display_role;
        match wire.content {
            Some(content) => message.blocks = blocks(content.get(), &mut loads),
            None => loads = false,
        }
        message.loads = loads;
        Some(message)
    }

    /// Tells whether jcode counts it as part of the conversation: no display role, and no reminder or scheduled task.
    pub fn is_visible(&self) -> bool {
        if self.display_role.is_some() {
            return false;
        }
        let Some(text) = self.text() else { return true };
        !(text.trim_start().starts_with("<system-reminder>")
            || self.role == "user" && text.starts_with("[Scheduled task]\n"))
    }

    /// Tells whether a person wrote it.
    pub fn is_prompt(&self) -> bool {
        self.role == "user"
            && self.is_visible()
            && self.text().is_some_and(|text| {
                let text = text.trim();
                !text.is_empty()
                    && !text.starts_with("[auto]")
                    && !text.starts_with("[Attached image")
            })
    }

    /// Returns the first text of it.
    pub fn text(&self) -> Option<&str> {
        self.blocks.iter().find_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::ToolUse { .. }
            | Block::ToolResult { .. }
            | Block::Image { .. }
            | Block::Hidden
            | Block::Unknown { .. } => None,
        })
    }
}

fn blocks(text: &str, loads: &mut bool) -> Vec<Block> {
    let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(text) else {
        *loads = false;
        // A bare text where blocks should be is still readable.
        return serde_json::from_str::<String>(text)
            .map(Block::Text)
            .into_iter()
            .collect();
    };
    list.into_iter()
        .map(|raw| {
            let Ok(wire) = serde_json::from_str::<WireBlock<'_>>(raw.get()) else {
                *loads = false;
                return Block::Unknown {
                    kind: "?".to_owned(),
                    text: readable(raw),
                };
            };
            block(wire, loads)
        })
        .collect()
}

/// Returns the text member of a block that is not as expected.
fn readable(raw: &RawValue) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(raw.get()).ok()?;
    ["text", "content"]
        .iter()
        .find_map(|key| value.get(key)?.as_str().map(str::to_owned))
}

fn block(wire: WireBlock<'_>, loads: &mut bool) -> Block {
    let kind = wire.kind.unwrap_or_default();
    let known = match kind.as_str() {
        "text" => wire.text.clone().map(Block::Text),
        "reasoning" | "reasoning_trace" => wire.text.clone().map(|_| Block::Hidden),
        "anthropic_thinking" | "open_a_i_reasoning" | "open_a_i_compaction" => Some(Block::Hidden),
        "tool_use" => match (wire.id, wire.name, wire.input) {
            (Some(id), Some(name), Some(input)) => Some(Block::ToolUse {
                id,
                name,
                input: input.get().to_owned(),
            }),
            _ => None,
        },
        "tool_result" => match (
            wire.tool_use_id,
            wire.content
                .and_then(|raw| serde_json::from_str::<String>(raw.get()).ok()),
        ) {
            (Some(id), Some(content)) => Some(Block::ToolResult {
                id,
                content,
                failed: wire.is_error.unwrap_or_default(),
            }),
            (Some(id), None) => {
                *loads = false;
                Some(Block::ToolResult {
                    id,
                    content: wire
                        .content
                        .map_or_else(String::new, |raw| raw.get().to_owned()),
                    failed: wire.is_error.unwrap_or_default(),
                })
            }
            _ => None,
        },
        "image" => wire
            .media_type
            .map(|media_type| Block::Image { media_type }),
        _ => None,
    };
    known.unwrap_or_else(|| {
        *loads = false;
        Block::Unknown {
            kind,
            text: wire.text,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_things_are_kept_and_named() {
        let message = Message::read(
            br#"{"id":"m","role":"user","content":[{"type":"hologram","text":"kept"},{"type":"text","text":"hi"}]}"#,
        )
        .unwrap();
        assert!(!message.loads);
        assert_eq!(message.text(), Some("hi"));
        assert_eq!(
            message.blocks[0],
            Block::Unknown {
                kind: "hologram".to_owned(),
                text: Some("kept".to_owned())
            }
        );
        let message = Message::read(br#"{"id":7,"role":"user","content":"bare"}"#).unwrap();
        assert!(!message.loads);
        assert_eq!(message.text(), Some("bare"));
        assert_eq!(Message::read(b"{\"id\":"), None);
    }

    #[test]
    fn statuses_are_read_as_they_are_written() {
        for (text, status) in [
            (r#""Active""#, Status::Active),
            (r#"{"Crashed":{"message":null}}"#, Status::Crashed(None)),
            (
                r#"{"Crashed":{"message":"x"}}"#,
                Status::Crashed(Some("x".to_owned())),
            ),
            (
                r#"{"Error":{"message":"e"}}"#,
                Status::Error("e".to_owned()),
            ),
            (r#""Paused""#, Status::Unknown("Paused".to_owned())),
            (
                r#"{"Waiting":{"for":1}}"#,
                Status::Unknown("Waiting".to_owned()),
            ),
            ("7", Status::Unknown("?".to_owned())),
        ] {
            assert_eq!(Status::read(text.as_bytes()), status, "{text}");
        }
    }
}
