//! The lines of a journal, and what torn ones still hold.
use memchr::memmem;

use crate::json::{members, skip_space, value_end};
use crate::load::{Counts, messages_of};
use crate::wire::{Message, Meta};

/// What every entry begins with.
const OPENING: &[u8] = b"{\"meta\":";

/// One complete entry of a journal.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) meta: Meta,
    pub(crate) messages: Vec<Message>,
    pub(crate) counts: Counts,
    /// The described version of jcode could read it.
    pub(crate) loads: bool,
}

/// One line of a journal.
#[derive(Debug)]
pub(crate) enum Line {
    /// Nothing stands there.
    Blank,
    /// One entry and nothing else.
    Whole(Box<Entry>),
    /// Something else: a torn entry, entries glued to it, or other bytes.
    Torn {
        /// The complete entries in it.
        entries: Vec<Entry>,
        /// The complete messages of entries that are not complete.
        messages: Vec<Message>,
        /// How many bytes give nothing.
        lost: usize,
        /// Zero bytes stand there.
        zeroed: bool,
    },
}

/// Splits on bytes, so that a character cut in the middle spoils its own line only.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line> {
    bytes.split(|byte| *byte == b'\n').map(line)
}

fn line(bytes: &[u8]) -> Line {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Line::Blank;
    }
    if let Some((entry, end)) = entry(bytes, 0)
        && skip_space(bytes, end) == bytes.len()
    {
        return Line::Whole(Box::new(entry));
    }
    let mut entries = Vec::new();
    let mut messages = Vec::new();
    let mut lost = 0;
    let mut start = 0;
    while start < bytes.len() {
        // The next complete entry, and what stands before it.
        let rest = bytes.get(start..).unwrap_or_default();
        let next = memmem::find_iter(rest, OPENING)
            .map(|place| start + place)
            .find_map(|place| entry(bytes, place).map(|(entry, end)| (place, entry, end)));
        let (place, end) = next
            .as_ref()
            .map_or((bytes.len(), bytes.len()), |(place, _, end)| (*place, *end));
        let torn = bytes.get(start..place).unwrap_or_default();
        let found = torn_messages(torn);
        if found.is_empty() {
            lost += torn.len();
        } else {
            let read: usize = found.iter().map(|message| message.raw.len()).sum();
            lost += torn.len().saturating_sub(read);
        }
        messages.extend(found);
        if let Some((_, entry, _)) = next {
            entries.push(entry);
        }
        start = end;
    }
    Line::Torn {
        entries,
        messages,
        lost,
        zeroed: bytes.contains(&0),
    }
}

/// Reads the entry that begins at `at`, with the place behind it.
fn entry(bytes: &[u8], at: usize) -> Option<(Entry, usize)> {
    let object = members(bytes, at)?;
    let end = object.end?;
    let text = bytes.get(at..end)?;
    serde_json::from_slice::<serde::de::IgnoredAny>(text).ok()?;
    let meta = object.get("meta")?;
    let fields = members(meta.bytes, 0)?;
    // Nested data of a tool could begin like an entry; a real one says when it was written, or has messages.
    let list = object.get("append_messages");
    if fields.get("updated_at").is_none() && list.is_none() {
        return None;
    }
    let meta = Meta::of_journal(&fields);
    let messages = list.map_or_else(Vec::new, |piece| messages_of(piece.bytes));
    let mut counts = Counts::default();
    counts.add(&object, "append_");
    let loads = meta.strange.is_empty()
        && messages.iter().all(|message| message.loads)
        && std::str::from_utf8(text).is_ok();
    let entry = Entry {
        meta,
        messages,
        counts,
        loads,
    };
    Some((entry, end))
}

/// Returns the complete messages of an entry that is not complete.
fn torn_messages(torn: &[u8]) -> Vec<Message> {
    let Some(start) = memmem::find(torn, OPENING) else {
        return loose_messages(torn);
    };
    let list = members(torn, start).and_then(|object| object.get("append_messages"));
    list.map_or_else(|| loose_messages(torn), |piece| messages_of(piece.bytes))
}

/// Returns complete messages wherever they stand, for bytes whose beginning is lost.
fn loose_messages(torn: &[u8]) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut at = 0;
    while let Some(found) = torn
        .get(at..)
        .and_then(|rest| memmem::find(rest, b"{\"id\":\""))
    {
        let start = at + found;
        at = start + 1;
        let Some(end) = value_end(torn, start) else {
            continue;
        };
        let whole = torn.get(start..end).unwrap_or_default();
        let is_message = members(whole, 0)
            .is_some_and(|object| object.get("role").is_some() && object.get("content").is_some());
        if is_message && let Some(message) = Message::read(whole) {
            messages.push(message);
            at = end;
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = r#"{"updated_at":"2026-05-01T10:00:00Z","is_canary":false,"status":"Active","is_debug":false,"saved":false}"#;

    fn text(message: &str) -> String {
        format!(r#"{{"id":"{message}","role":"user","content":[{{"type":"text","text":"x"}}]}}"#)
    }

    fn names(messages: &[Message]) -> Vec<String> {
        messages.iter().filter_map(|m| m.id.clone()).collect()
    }

    #[test]
    fn complete_messages_of_a_torn_batch_are_kept() {
        let whole = format!(
            r#"{{"meta":{META},"append_messages":[{},{},{}]}}"#,
            text("a"),
            text("b"),
            text("c")
        );
        let cut = whole.len() - 20;
        let Line::Torn {
            entries,
            messages,
            lost,
            ..
        } = line(&whole.as_bytes()[..cut])
        else {
            panic!("torn");
        };
        assert!(entries.is_empty() && lost > 0);
        assert_eq!(names(&messages), ["a", "b"]);
    }

    #[test]
    fn entries_glued_to_a_torn_one_are_kept_with_the_messages_before() {
        let one = format!(
            r#"{{"meta":{META},"append_messages":[{},{}]}}"#,
            text("a"),
            text("b")
        );
        let two = format!(r#"{{"meta":{META},"append_messages":[{}]}}"#, text("c"));
        let three = format!(r#"{{"meta":{META}}}"#);
        let glued = [
            &one.as_bytes()[..one.len() - 10],
            two.as_bytes(),
            three.as_bytes(),
        ]
        .concat();
        let Line::Torn {
            entries, messages, ..
        } = line(&glued)
        else {
            panic!("torn");
        };
        assert_eq!(names(&messages), ["a"]);
        assert_eq!(entries.len(), 2);
        assert_eq!(names(&entries[0].messages), ["c"]);
    }

    #[test]
    fn zero_bytes_before_an_entry_are_told() {
        let mut bytes = vec![0; 64];
        bytes.extend(format!(r#"{{"meta":{META},"append_messages":[{}]}}"#, text("a")).bytes());
        let Line::Torn {
            entries,
            lost,
            zeroed,
            ..
        } = line(&bytes)
        else {
            panic!("torn");
        };
        assert_eq!((entries.len(), lost, zeroed), (1, 64, true));
    }

    #[test]
    fn an_entry_whose_beginning_is_lost_still_gives_its_messages() {
        let one = format!(
            r#"{{"meta":{META},"append_messages":[{},{}]}}"#,
            text("a"),
            text("b")
        );
        let Line::Torn { messages, .. } = line(&one.as_bytes()[30..]) else {
            panic!("torn");
        };
        assert_eq!(names(&messages), ["a", "b"]);
    }
}
