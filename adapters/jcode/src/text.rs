//! Text of other people's files, made fit to be shown: no control characters, one line, cut.

/// Returns the text with every run of white space and control characters made one space, cut to `limit` characters.
/// Marks that turn the direction of writing are left out: they could make a line look like another.
pub(crate) fn clean(text: &str, limit: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    let mut space = false;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            space = count > 0;
            continue;
        }
        if is_invisible(c) {
            continue;
        }
        if count >= limit {
            line.push('…');
            return line;
        }
        if space {
            line.push(' ');
            space = false;
            count += 1;
        }
        line.push(c);
        count += 1;
    }
    line
}

/// Returns the text with control characters taken out, line ends and tabs kept, cut to `limit` characters.
pub(crate) fn clean_block(text: &str, limit: usize) -> String {
    let mut kept = String::new();
    for (count, c) in text
        .chars()
        .filter(|c| (!c.is_control() && !is_invisible(*c)) || matches!(c, '\n' | '\t'))
        .enumerate()
    {
        if count >= limit {
            kept.push('…');
            break;
        }
        kept.push(c);
    }
    kept
}

/// Marks of direction and width that show nothing themselves.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_escape_sequence_passes() {
        assert_eq!(clean(" a\u{1b}[31m\r\n b\t\u{202e}c ", 80), "a [31m b c");
        assert_eq!(clean("abcdef", 3), "abc…");
        assert_eq!(clean_block("a\u{7}\nb\u{9b}31m", 80), "a\nb31m");
    }
}
