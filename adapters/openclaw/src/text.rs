//! Text of others, in the lengths in which it is shown.
use serde_json::Value;
pub(crate) use takeup_core::text::one_line;

/// Returns the first line of a text as a title.
pub(crate) fn title(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(one_line(line, 100)).filter(|title| !title.is_empty())
}

/// Writes a call's argument for people: the one telling field where there is one, else all of it.
pub(crate) fn argument(arguments: &Value) -> String {
    let telling = ["command", "path", "file_path", "url", "query"]
        .into_iter()
        .find_map(|field| arguments.get(field).and_then(Value::as_str));
    match telling {
        Some(text) => one_line(text, 200),
        None => one_line(&arguments.to_string(), 200),
    }
}
