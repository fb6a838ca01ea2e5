//! How a text stands in its file: what an editor of its lines does not see, and would lose.

/// The byte order mark.
const MARK: char = '\u{feff}';

/// Takes the byte order mark off a text; parsers refuse it.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// Puts an edited text back into the form that the old one had: its byte order mark, and the end of each line that was there
/// before. A new line ends as most of the old ones do.
pub fn in_form_of(before: &str, after: &str) -> String {
    let mut old = lines(without_mark(before));
    let (mut crlf, mut all) = (0_usize, 0_usize);
    for (_, end) in old.clone() {
        crlf = crlf.saturating_add(usize::from(end == "\r\n"));
        all = all.saturating_add(usize::from(!end.is_empty()));
    }
    let usual = if crlf.saturating_mul(2) > all {
        "\r\n"
    } else {
        "\n"
    };
    let mut text = String::with_capacity(after.len());
    if before.starts_with(MARK) {
        text.push(MARK);
    }
    for (line, end) in lines(without_mark(after)) {
        text.push_str(line);
        // The same line further down: what stands between was taken out.
        let mut further = old.clone();
        let known = further.find(|(old, end)| *old == line && !end.is_empty());
        if known.is_some() {
            old = further;
        }
        if !end.is_empty() {
            text.push_str(known.map_or(usual, |(_, end)| end));
        }
    }
    text
}

/// Splits a text into lines and their ends.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> + Clone {
    text.split_inclusive('\n').map(|line| {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        let bare = bare
            .strip_suffix('\r')
            .filter(|_| bare != line)
            .unwrap_or(bare);
        (bare, line.get(bare.len()..).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_stays_as_it_stood() {
        for (before, after, expected) in [
            ("a\r\nb\r\n", "a\nb\nnew\n", "a\r\nb\r\nnew\r\n"),
            ("a\r\nb\r\n", "b\n", "b\r\n"),
            ("\u{feff}a\n", "a\nnew\n", "\u{feff}a\nnew\n"),
            ("a\nb\r\nc\n", "a\nx\nb\nc\n", "a\nx\nb\r\nc\n"),
            ("a\r\n\r\nb", "a\n\nb\nnew\n", "a\r\n\r\nb\r\nnew\r\n"),
            ("", "new\n", "new\n"),
            ("a\r\nb", "a\r\nb", "a\r\nb"),
        ] {
            assert_eq!(in_form_of(before, after), expected, "{before:?}");
        }
    }
}
