//! Text of other people's files, made fit to be shown or handed on: no control characters, and cut.
use takeup_core::text;

/// Makes text fit for one line of at most `most` characters.
pub(crate) fn line(of: &str, most: usize) -> String {
    text::one_line(of, most)
}

/// Makes text fit for a preview of several lines, at most `most` characters.
pub(crate) fn lines(of: &str, most: usize) -> String {
    text::clean(of, most)
}
