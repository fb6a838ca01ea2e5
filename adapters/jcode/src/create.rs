//! Writes a new session that jcode loads. An existing session is never written to: a living owner would overwrite it,
//! and jcode forgets keys it does not know.
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::os::unix::fs::MetadataExt as _;

use serde::Serialize;
use serde_json::{Map, Value, json};
use takeup_core::agent::AgentError;
use takeup_core::files;
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::time::Time;

use crate::adapter::NAME;
use crate::copies::NOTE;
use crate::home::{Home, Key, Part};
use crate::load::Loaded;
use crate::wire::{Block, Message};

/// Words for new ids. jcode takes any word; these are plain animals and plants that can be said on the telephone.
const WORDS: [&str; 24] = [
    "badger", "beaver", "birch", "cedar", "crane", "falcon", "finch", "hazel", "heron", "jackdaw",
    "larch", "lark", "maple", "marten", "moose", "osprey", "plover", "poplar", "raven", "robin",
    "rowan", "stork", "thrush", "willow",
];

/// What a call is given that has no result: jcode and the providers want one for each.
const NO_RESULT: &str = "No result was recorded: the session ended before the tool did. It may or may not have taken effect; look before repeating it.";

/// A session to be written. The fields stand in the order in which jcode writes them.
#[derive(Serialize)]
struct NewSession<'a> {
    id: &'a str,
    parent_id: Option<&'a str>,
    title: Option<&'a str>,
    created_at: String,
    updated_at: String,
    messages: &'a [Value],
    #[serde(skip_serializing_if = "Option::is_none")]
    compaction: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route_api_method: Option<&'a str>,
    is_canary: bool,
    working_dir: &'a str,
    short_name: &'a str,
    status: &'static str,
    last_active_at: String,
    is_debug: bool,
    saved: bool,
}

/// Writes a session whose only message is a text for the model and the person.
pub(crate) fn with_text(
    home: &Home,
    now: Time,
    title: &str,
    working_dir: &str,
    text: &str,
) -> Result<Key, AgentError> {
    let messages = [message(
        now,
        0,
        "user",
        None,
        json!([{"type": "text", "text": text}]),
    )];
    write(home, now, |id, word| {
        serde_json::to_vec(&NewSession {
            id,
            parent_id: None,
            title: Some(title),
            created_at: now.to_string(),
            updated_at: now.to_string(),
            messages: &messages,
            compaction: None,
            provider_key: None,
            model: None,
            route_api_method: None,
            is_canary: false,
            working_dir,
            short_name: word,
            status: "Closed",
            last_active_at: now.to_string(),
            is_debug: false,
            saved: false,
        })
    })
}

/// Writes a copy of a session as a new one: texts, calls and results; what only its provider can read is left out, and
/// calls without a result are given one that says so.
pub(crate) fn copy(home: &Home, now: Time, source: &Loaded) -> Result<Key, AgentError> {
    let working_dir = source.working_dir().unwrap_or_default();
    let (mut messages, compacted) = carried(source, now);
    let name = source.name().unwrap_or_else(|| source.key.as_str());
    let note = format!(
        "<system-reminder>\n{NOTE}{}` ({}) by git takeup. Look at the state of the files before going on: it may differ from what the conversation says.\n</system-reminder>",
        source.key.as_str(),
        takeup_core::text::one_line(name, 60)
    );
    let note = json!([{"type": "text", "text": note}]);
    messages.push(message(now, u64::MAX, "user", Some("system"), note));
    let compaction = source
        .meta
        .summary
        .as_ref()
        .filter(|_| compacted > 0)
        .map(|summary| {
            json!({
                "summary_text": summary,
                "covers_up_to_turn": compacted,
                "original_turn_count": compacted,
                "compacted_count": compacted,
            })
        });
    write(home, now, |id, word| {
        serde_json::to_vec(&NewSession {
            id,
            parent_id: Some(source.key.as_str()),
            title: source.title(),
            created_at: now.to_string(),
            updated_at: now.to_string(),
            messages: &messages,
            compaction,
            provider_key: source.meta.provider_key.as_deref(),
            model: source.meta.model.as_deref(),
            route_api_method: source.meta.route.as_deref(),
            is_canary: false,
            working_dir,
            short_name: word,
            status: "Closed",
            last_active_at: now.to_string(),
            is_debug: false,
            saved: source.meta.saved,
        })
    })
}

fn random(salt: u64) -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(salt);
    hasher.finish()
}

fn message(at: Time, salt: u64, role: &str, display_role: Option<&str>, content: Value) -> Value {
    let mut message = Map::new();
    let id = format!("message_{}_{}", at.millis(), random(salt));
    message.insert("id".to_owned(), id.into());
    message.insert("role".to_owned(), role.into());
    message.insert("content".to_owned(), content);
    if let Some(display_role) = display_role {
        message.insert("display_role".to_owned(), display_role.into());
    }
    message.insert("timestamp".to_owned(), at.to_string().into());
    Value::Object(message)
}

/// Returns the messages that can be carried into another session, and how many of them the summary stands for.
fn carried(source: &Loaded, now: Time) -> (Vec<Value>, usize) {
    let compacted = source.compacted();
    let mut answered: std::collections::HashSet<&str> = std::collections::HashSet::new();
    for message in &source.messages {
        for block in &message.blocks {
            if let Block::ToolResult { id, .. } = block {
                answered.insert(id);
            }
        }
    }
    let mut list = Vec::new();
    let mut before = 0;
    for (index, old) in source.messages.iter().enumerate() {
        let content = content_of(old);
        if !content.is_empty() {
            list.push(carry(old, content, now));
        }
        let open: Vec<Value> = old
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::ToolUse { id, .. } if !answered.contains(id.as_str()) => Some(json!({
                    "type": "tool_result", "tool_use_id": id, "content": NO_RESULT, "is_error": true,
                })),
                Block::ToolUse { .. }
                | Block::ToolResult { .. }
                | Block::Text(_)
                | Block::Image { .. }
                | Block::Hidden
                | Block::Unknown { .. } => None,
            })
            .collect();
        if !open.is_empty() {
            let at = old.at.map_or(now, crate::alive::time);
            list.push(message(at, index as u64, "user", None, Value::Array(open)));
        }
        if index < compacted {
            before = list.len();
        }
    }
    (list, before)
}

/// Makes a message anew with the fields jcode knows.
fn carry(old: &Message, content: Vec<Value>, now: Time) -> Value {
    let at = old.at.map_or(now, crate::alive::time);
    let role = if old.role == "assistant" {
        "assistant"
    } else {
        "user"
    };
    let display_role = old
        .display_role
        .as_deref()
        .filter(|role| matches!(*role, "system" | "background_task"));
    let mut new = message(at, 0, role, display_role, Value::Array(content));
    if let (Some(object), Some(id)) = (new.as_object_mut(), &old.id) {
        object.insert("id".to_owned(), id.clone().into());
    }
    if let (Some(object), Some(at)) = (new.as_object_mut(), old.at) {
        object.insert("timestamp".to_owned(), at.to_string().into());
    }
    new
}

fn content_of(message: &Message) -> Vec<Value> {
    let raw: Value = serde_json::from_str(&message.raw).unwrap_or(Value::Null);
    let pictures = raw
        .get("content")
        .and_then(Value::as_array)
        .map(|blocks| blocks.iter().filter(|block| block["type"] == "image"));
    let mut pictures = pictures.into_iter().flatten();
    message
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text)
            | Block::Unknown {
                text: Some(text), ..
            } => Some(json!({"type": "text", "text": text})),
            Block::ToolUse { id, name, input } => {
                let input: Value = serde_json::from_str(input).unwrap_or(Value::Null);
                Some(json!({"type": "tool_use", "id": id, "name": name, "input": input}))
            }
            Block::ToolResult {
                id,
                content,
                failed,
            } => {
                let mut result =
                    json!({"type": "tool_result", "tool_use_id": id, "content": content});
                if let Some(object) = result.as_object_mut().filter(|_| *failed) {
                    object.insert("is_error".to_owned(), true.into());
                }
                Some(result)
            }
            Block::Image { media_type } => {
                let data = pictures.next().and_then(|block| block["data"].as_str());
                data.map(|data| json!({"type": "image", "media_type": media_type, "data": data}))
            }
            Block::Hidden | Block::Unknown { text: None, .. } => None,
        })
        .collect()
}

/// Writes a new session under a fresh id.
fn write(
    home: &Home,
    now: Time,
    make: impl FnOnce(&str, &str) -> serde_json::Result<Vec<u8>>,
) -> Result<Key, AgentError> {
    check_owner(home)?;
    let word = pick(home);
    let id = format!(
        "session_{word}_{:013}_{:016x}",
        now.millis().max(0),
        random(2)
    );
    let key = Key::new(&id).ok_or_else(|| AgentError::Other(format!("{id} is no plain id")))?;
    let text = make(&id, word)
        .map_err(|error| AgentError::Other(format!("cannot write the session: {error}")))?;
    let path = home.path(Part::Snapshot(&key));
    if let Some(folder) = path.parent() {
        files::make_private_folder(folder)?;
    }
    files::write_atomic(&path, &text, 0o600)?;
    Ok(key)
}

/// Picks a word that no active session has, where there is one.
fn pick(home: &Home) -> &'static str {
    let active = home.list(crate::home::Folder::Active).unwrap_or_default();
    let used = |word: &str| {
        let start = format!("session_{word}_");
        active.iter().any(|name| name.starts_with(start.as_bytes()))
    };
    let first = usize::try_from(random(3) % WORDS.len() as u64).unwrap_or_default();
    let mut words = WORDS.iter().cycle().skip(first).take(WORDS.len()).copied();
    let fallback = words.clone().next().unwrap_or("badger");
    words.find(|word| !used(word)).unwrap_or(fallback)
}

/// A home of somebody else would get files that its owner cannot change.
fn check_owner(home: &Home) -> Result<(), AgentError> {
    let root = home.root();
    let data = match std::fs::metadata(root) {
        Ok(data) if data.is_dir() => data,
        _ => {
            return Err(AgentError::NotInstalled {
                agent: NAME,
                why: format!("{} is no folder", root.display()),
            });
        }
    };
    if data.uid() != rustix::process::geteuid().as_raw() {
        return Err(AgentError::Damaged(Issue::new(
            root,
            IssueKind::ForeignOwner,
            "the home belongs to another user; nothing is written there",
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
