//! Text of other people's files, made fit to be shown or handed on: secrets masked, no control characters, and cut.
use takeup_core::{redact, text};

/// How many characters beyond the wanted ones are looked at: a secret that the cut goes through is still known as one.
const BEYOND: usize = 1_000;

/// Makes text fit for one line of at most `most` characters.
pub(crate) fn line(of: &str, most: usize) -> String {
    let longer = text::one_line(of, most.saturating_add(BEYOND));
    text::one_line(&redact::text(&longer).text, most)
}

/// Makes text fit for a preview of several lines, at most `most` characters.
pub(crate) fn lines(of: &str, most: usize) -> String {
    let longer = text::clean(of, most.saturating_add(BEYOND));
    text::clean(&redact::text(&longer).text, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_also_where_the_cut_goes_through_them() {
        let said = "curl -H 'Authorization: Bearer abcdefghijklmnopqrstuvwxyz012345' https://u:hunter2secret@host/";
        for most in 0..said.len() {
            let shown = line(said, most);
            assert!(
                !shown.contains("hunter2") && !shown.contains("abcdefgh"),
                "{shown}"
            );
        }
        assert!(lines(said, 500).contains("redacted"));
    }
}
