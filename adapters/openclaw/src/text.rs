//! Text of others, in the lengths in which it is shown.
use serde_json::Value;
use takeup_core::redact;
pub(crate) use takeup_core::text::one_line;

/// Returns what was said or called on one line, its secrets masked. Masked first: a cut could hide what a secret is.
pub(crate) fn masked(text: &str, most: usize) -> String {
    // What is far beyond the cut is not searched: a prompt may hold whole files.
    let near = text.char_indices().nth(most.saturating_mul(4));
    let near = near.map_or(text, |(at, _)| text.get(..at).unwrap_or(text));
    one_line(&redact::text(near).text, most)
}

/// Returns the first line of a text as a title.
pub(crate) fn title(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(masked(line, 100)).filter(|title| !title.is_empty())
}

/// Writes a call's argument for people: the one telling field where there is one, else all of it.
pub(crate) fn argument(arguments: &Value) -> String {
    let telling = ["command", "path", "file_path", "url", "query"]
        .into_iter()
        .find_map(|field| arguments.get(field).and_then(Value::as_str));
    match telling {
        Some(text) => masked(text, 200),
        None => masked(&arguments.to_string(), 200),
    }
}
