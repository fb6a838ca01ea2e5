//! Text of strangers, made fit to be shown: no control character, no escape sequence, no hidden direction change, no more
//! characters than asked for.

/// Says how many there are: `1 task`, `2 tasks`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Makes text fit to be shown over several lines: escape sequences and control characters are gone (newlines and tabs
/// stay), and it is cut to `most` characters with `…` at the end.
///
/// ```
/// assert_eq!(takeup_core::text::clean("\u{1b}[31mred\u{7}\r\nend", 100), "red\nend");
/// assert_eq!(takeup_core::text::clean("abcdef", 4), "abc…");
/// ```
pub fn clean(text: &str, most: usize) -> String {
    cut(visible(text), most)
}

/// Makes text fit to be shown on one line: as [`clean`], and every run of white space is one space.
///
/// ```
/// assert_eq!(takeup_core::text::one_line(" a\n\tb ", 100), "a b");
/// ```
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut counted = 0;
    for word in visible(text).split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
            counted += 1;
        }
        line.push_str(word);
        counted += word.chars().count();
        if counted > most {
            break;
        }
    }
    cut(line, most)
}

fn cut(mut text: String, most: usize) -> String {
    let mut places = text.char_indices().map(|(at, _)| at);
    let Some(last) = most.checked_sub(1) else {
        return String::new();
    };
    if let Some(at) = places.nth(last)
        && places.next().is_some()
    {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// Where a walk through escape sequences stands (ECMA-48, sections 5.4 and 5.6).
enum Inside {
    /// Plain text.
    Text,
    /// After ESC.
    Escape,
    /// In a control sequence: ends with a byte from `@` to `~`.
    Sequence,
    /// In a control string (OSC, DCS, …): ends with BEL or ESC `\`.
    ControlString,
    /// After ESC in a control string.
    ControlStringEscape,
}

#[expect(
    clippy::match_same_arms,
    reason = "the arms are in the order in which they decide"
)]
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = Inside::Text;
    for c in text.chars() {
        inside = match (inside, c) {
            (Inside::ControlString, '\u{7}' | '\u{9c}') | (Inside::ControlStringEscape, '\\') => {
                Inside::Text
            }
            (Inside::ControlString, '\u{1b}') => Inside::ControlStringEscape,
            // A line break never stands inside a string that a terminal would take; the text goes on.
            (
                Inside::ControlString
                | Inside::ControlStringEscape
                | Inside::Sequence
                | Inside::Escape,
                '\n',
            ) => {
                out.push('\n');
                Inside::Text
            }
            (Inside::ControlString | Inside::ControlStringEscape, _) => Inside::ControlString,
            (_, '\u{1b}') => Inside::Escape,
            (_, '\u{9b}') => Inside::Sequence,
            (_, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => Inside::ControlString,
            (Inside::Escape, '[') => Inside::Sequence,
            (Inside::Escape, ']' | 'P' | 'X' | '^' | '_') => Inside::ControlString,
            (Inside::Escape, ' '..='/') => Inside::Escape,
            (Inside::Escape, '0'..='~') => Inside::Text,
            (Inside::Sequence, ' '..='?') => Inside::Sequence,
            (Inside::Sequence, '@'..='~') => Inside::Text,
            (Inside::Text | Inside::Escape | Inside::Sequence, c) => {
                if is_shown(c) {
                    out.push(c);
                }
                Inside::Text
            }
        };
    }
    out
}

/// Tells whether a character may be shown: newline, tab, and whatever is neither a control character nor one that turns
/// the direction of the text or hides in it (Unicode bidirectional controls, zero-width characters but the joiners that
/// scripts and emoji need, tags).
pub const fn is_shown(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{0}'..='\u{1f}'
        | '\u{7f}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_that_is_not_text() {
        for (hostile, shown) in [
            ("\u{1b}[2J\u{1b}[1;1Hhello", "hello"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://e\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{9b}31mred", "red"),
            ("\u{1b}(Bplain", "plain"),
            ("a\rb\u{8}c", "abc"),
            (
                "open \u{1b}]52;c;never closed\nnext line",
                "open \nnext line",
            ),
            ("user\u{202e}gnp.exe", "usergnp.exe"),
            ("\u{1b}", ""),
            ("tab\tä👩\u{200d}💻", "tab\tä👩\u{200d}💻"),
        ] {
            assert_eq!(clean(hostile, 1_000), shown, "{hostile:?}");
        }
    }

    #[test]
    fn the_cut_is_at_characters() {
        assert_eq!(clean("äöü", 3), "äöü");
        assert_eq!(clean("äöüß", 3), "äö…");
        assert_eq!(clean("x", 0), "");
        assert_eq!(one_line("one  two\nthree", 7), "one tw…");
        assert_eq!(one_line(&"word ".repeat(100_000), 6), "word …");
    }
}
