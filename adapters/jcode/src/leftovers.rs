//! What the files beside a session still hold that neither its snapshot nor its journal does.
use takeup_core::issue::Issue;

use crate::home::{Home, Key, Part, Sibling, SiblingKind};
use crate::load::{Snapshot, State};
use crate::replay::{Line, lines};

/// Takes what only the files beside the session still hold.
pub(crate) fn take(
    home: &Home,
    key: &Key,
    siblings: Option<&[Sibling]>,
    state: &mut State,
    issues: &mut Vec<Issue>,
    why: &mut Vec<String>,
) {
    let mut read = |result: Result<Option<Vec<u8>>, Issue>| match result {
        Ok(bytes) => bytes,
        Err(issue) => {
            issues.push(issue);
            None
        }
    };
    // jcode copies a journal with bad lines before it forgets them: what only those lines hold was never loaded.
    if let Some(bytes) = read(home.read(Part::CorruptJournal(key))) {
        let torn = lines(&bytes).filter_map(|line| match line {
            Line::Torn { messages, .. } => Some(messages),
            Line::Blank | Line::Whole(_) => None,
        });
        for message in torn.flatten() {
            if !state.has(&message) {
                state.insert(message);
            }
        }
    }
    let listed;
    let siblings = if let Some(siblings) = siblings {
        siblings
    } else {
        listed = home.siblings(key).unwrap_or_else(|issue| {
            why.push(issue.message);
            Vec::new()
        });
        &listed
    };
    for sibling in siblings {
        let Some(bytes) = read(home.read(Part::Sibling(sibling))) else {
            continue;
        };
        let Some(snapshot) = Snapshot::read(&bytes) else {
            continue;
        };
        let counts = match sibling.kind {
            // Written after everything else, and not renamed into place.
            SiblingKind::Unfinished => snapshot.meta.updated_at > state.meta.updated_at,
            SiblingKind::PreWipe(_) => state.messages.is_empty(),
        };
        if !counts || snapshot.meta.id.as_deref() != Some(key.as_str()) {
            continue;
        }
        let before = state.messages.len();
        for message in snapshot.messages {
            if !state.has(&message) {
                state.insert(message);
            }
        }
        if state.messages.len() > before {
            why.push(match sibling.kind {
                SiblingKind::Unfinished => "a write of the snapshot did not end".to_owned(),
                SiblingKind::PreWipe(_) => "an empty session has replaced them".to_owned(),
            });
        }
        if state.meta.updated_at.is_none() {
            state.meta = snapshot.meta;
        }
    }
}
