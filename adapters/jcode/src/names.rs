//! From what a person types to one session, in jcode's order: the id, an imported session's own id, the word, the title.
use takeup_core::time::Time;

use crate::home::{Home, Key, Part};
use crate::list::list;

/// What stands before another client's own id when its session was imported.
const IMPORTS: [&str; 4] = [
    "imported_opencode_",
    "imported_codex_",
    "imported_cc_",
    "imported_cursor_",
];

/// Finds the session that `text` names; `None` where there is none.
///
/// Differs from jcode where that loses sessions: damaged ones and those without a snapshot are found too, an id that is
/// there counts even if jcode cannot load it, and at last the beginning of exactly one id is enough.
pub(crate) fn resolve(home: &Home, text: &str) -> Option<Key> {
    let text = text.trim();
    if let Some(key) = Key::new(text) {
        if is_there(home, &key) {
            return Some(key);
        }
        let imported = IMPORTS
            .iter()
            .filter_map(|prefix| Key::new(&format!("{prefix}{text}")))
            .find(|key| is_there(home, key));
        if imported.is_some() {
            return imported;
        }
    }
    let wanted = plain(text);
    if wanted.is_empty() {
        return None;
    }
    let briefs = list(home).briefs;
    let mut best: Option<(u8, Option<Time>, &Key)> = None;
    let mut begins = Vec::new();
    for brief in &briefs {
        let by_word =
            brief.key.word() == Some(text) || brief.meta.short_name.as_deref() == Some(text);
        let by_title = brief
            .title()
            .is_some_and(|title| plain(title).contains(&wanted));
        let rank = if by_word { 2 } else { u8::from(by_title) };
        if rank > 0 {
            let candidate = (rank, brief.updated_at(), &brief.key);
            best = best.max(Some(candidate));
        }
        if brief.key.as_str().starts_with(text) {
            begins.push(&brief.key);
        }
    }
    match (best, begins.as_slice()) {
        (Some((_, _, key)), _) => Some(key.clone()),
        (None, [only]) => Some((*only).clone()),
        (None, _) => None,
    }
}

fn is_there(home: &Home, key: &Key) -> bool {
    [Part::Snapshot(key), Part::Journal(key), Part::Backup(key)]
        .into_iter()
        .any(|part| std::fs::symlink_metadata(home.path(part)).is_ok())
}

fn plain(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::{expected, home, id};

    #[test]
    fn names_resolve_as_in_jcode_and_damaged_sessions_too() {
        let home = home();
        for (text, answer) in expected("resolve.json").as_object().unwrap() {
            let found = resolve(&home, text);
            let theirs = answer["id"].as_str().and_then(Key::new);
            if text.contains("hippo") {
                assert_eq!(
                    found,
                    Some(id("hippo")),
                    "jcode cannot load it; it is there"
                );
            } else {
                assert_eq!(found, theirs, "{text}");
            }
        }
        assert_eq!(resolve(&home, "lynx"), Some(id("lynx")));
        assert_eq!(resolve(&home, "session_lion_17776428"), Some(id("lion")));
        for nothing in ["", "  ", "session_", "../auth", "no such title"] {
            assert_eq!(resolve(&home, nothing), None, "{nothing:?}");
        }
    }
}
