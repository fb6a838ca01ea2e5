//! Copies of a session that were made to go on with it: jcode's own, of its texts, and ours, of the whole conversation. A fork is
//! none: it is work of its own.
use std::collections::HashMap;

use jiff::Timestamp;

use crate::home::{Home, Key, Part};
use crate::list::Brief;
use crate::load::{Loaded, load};
use crate::wire::Block;

/// What stands before the id of the session in the note at the end of our copies.
pub(crate) const NOTE: &str = "This session was recovered from session `";

/// A copy that holds all that was said in the session.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) key: Key,
    /// It holds the calls and their results too.
    pub(crate) whole: bool,
    /// More was said in it since.
    pub(crate) gone_on: bool,
    made_at: Option<Timestamp>,
}

impl Copy {
    /// Says what it is to the session.
    pub(crate) fn note(&self) -> String {
        let key = self.key.as_str();
        if self.gone_on {
            return format!("it was gone on with as {key}");
        }
        let what = if self.whole {
            "git takeup has made a copy of it"
        } else {
            "jcode has made a copy of its texts"
        };
        format!("{what}, {key}")
    }
}

/// The sessions that name each other one as the one they came from.
#[derive(Debug, Default)]
pub(crate) struct Children(HashMap<String, Vec<Key>>);

impl Children {
    pub(crate) fn of<'b>(briefs: impl IntoIterator<Item = &'b Brief>) -> Self {
        let mut children: HashMap<String, Vec<Key>> = HashMap::new();
        for brief in briefs {
            if let Some(parent) = &brief.meta.parent
                && !brief.meta.is_helper()
            {
                let of_parent = children.entry(parent.clone()).or_default();
                of_parent.push(brief.key.clone());
            }
        }
        Self(children)
    }

    /// Finds the copies of a session: first those that were gone on with, then the newest.
    pub(crate) fn copies(&self, home: &Home, source: &Key) -> Vec<Copy> {
        let children = self.0.get(source.as_str()).map_or(&[][..], Vec::as_slice);
        let may_be = |key: &&Key| key.is_recovery() || is_ours(home, key, source);
        let children: Vec<&Key> = children.iter().filter(may_be).collect();
        if children.is_empty() {
            return Vec::new();
        }
        let Ok(Some(source)) = load(home, source) else {
            return Vec::new();
        };
        let loaded = children
            .into_iter()
            .filter_map(|key| load(home, key).ok().flatten());
        let mut copies: Vec<Copy> = loaded.filter_map(|copy| judge(&source, &copy)).collect();
        copies.sort_by_key(|copy| std::cmp::Reverse((copy.gone_on, copy.made_at)));
        copies
    }
}

/// Tells whether a session holds the note of our copies.
fn is_ours(home: &Home, key: &Key, source: &Key) -> bool {
    let note = note_of(source);
    let bytes = home.read(Part::Snapshot(key)).ok().flatten();
    bytes.is_some_and(|bytes| memchr::memmem::find(&bytes, note.as_bytes()).is_some())
}

fn note_of(source: &Key) -> String {
    format!("{NOTE}{}`", source.as_str())
}

/// `None` where more was said in the session since: the copy is none of what it is now.
fn judge(source: &Loaded, copy: &Loaded) -> Option<Copy> {
    let last = source
        .messages
        .iter()
        .filter_map(|message| message.at)
        .max();
    let made_at = copy.meta.created_at;
    if last > made_at {
        return None;
    }
    let holds = |blocks: &[Block], wanted: &dyn Fn(&str) -> bool| {
        blocks
            .iter()
            .any(|block| matches!(block, Block::Text(text) if wanted(text)))
    };
    let whole = !copy.key.is_recovery();
    let before = if whole {
        let note = note_of(&source.key);
        let is_note = |text: &str| text.contains(&note);
        let at = copy
            .messages
            .iter()
            .rposition(|message| holds(&message.blocks, &is_note));
        at.map_or(0, |at| at + 1)
    } else {
        // Its own first message, and the texts.
        let texts = source.messages.iter();
        1 + texts
            .filter(|message| holds(&message.blocks, &|_| true))
            .count()
    };
    Some(Copy {
        key: copy.key.clone(),
        whole,
        gone_on: copy.messages.len() > before,
        made_at,
    })
}
