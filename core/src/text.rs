//! Text of strangers, made fit to be shown: no control character, no escape sequence, no hidden direction change, no more
//! characters than asked for.

use std::borrow::Cow;

/// Options whose value comes from outside.
const VALUED: [&str; 8] = [
    "--from",
    "--to",
    "--session",
    "--agent",
    "--task",
    "--remark",
    "--by",
    "--reason",
];

/// Makes the line of a command that a shell splits into these words again. A value that looks like an option is tied to its
/// own: `--from=-x`.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted =
        |word: &str| shlex::try_quote(word).map_or_else(|_| "''".to_owned(), Cow::into_owned);
    let mut line = String::new();
    let mut valued = false;
    for word in words {
        let tied = valued && word.starts_with('-');
        if tied {
            line.push('=');
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&quoted(word));
        valued = !valued && VALUED.contains(&word);
    }
    line
}

/// Writes bytes as lower-case hexadecimal digits.
///
/// ```
/// assert_eq!(takeup_core::text::hex(&[0x0f, 0xa0]), "0fa0");
/// ```
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 0xf));
    }
    text
}

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

/// Makes text fit to be shown on one line as it is: as [`clean`], and a line break or tab is one space. Other white space
/// stays, so a command can be pasted.
///
/// ```
/// assert_eq!(takeup_core::text::as_it_is("printf 'a  b'\n", 100), "printf 'a  b' ");
/// ```
pub fn as_it_is(text: &str, most: usize) -> String {
    clean(text, most).replace(['\n', '\t'], " ")
}

/// Makes a path that [`crate::paths::text_of_path`] wrote fit to be shown on one line, so that no two paths look alike: what would
/// be hidden is written `\xNN` as well, and a path with a blank at an end stands in quotes.
///
/// ```
/// assert_eq!(takeup_core::text::path("a  b", 100), "a  b");
/// assert_eq!(takeup_core::text::path(" a", 100), "\" a\"");
/// assert_eq!(takeup_core::text::path("a\u{202e}b", 100), "a\\xe2\\x80\\xaeb");
/// ```
pub fn path(text: &str, most: usize) -> String {
    use std::fmt::Write as _;
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_shown(c) && !matches!(c, '\n' | '\t') {
            shown.push(c);
            continue;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            // Writing to a string cannot fail.
            let _: std::fmt::Result = write!(shown, "\\x{byte:02x}");
        }
    }
    let needs_quotes = |c: char| c.is_whitespace() || c == '"';
    if shown.starts_with(needs_quotes) || shown.ends_with(needs_quotes) {
        shown = format!("\"{shown}\"");
    }
    cut(shown, most)
}

/// Lets nothing through to a terminal but text and colours: of escape sequences only those that style text (SGR, ECMA-48
/// section 8.3.117), no control character but newline and tab, nothing that turns the direction of text or hides in it.
///
/// ```
/// let hostile = "\u{1b}[1mbold\u{1b}[0m \u{1b}]0;title\u{7} a\u{202e}b";
/// assert_eq!(takeup_core::text::styled(hostile), "\u{1b}[1mbold\u{1b}[0m ]0;title ab");
/// ```
pub fn styled(text: &str) -> Cow<'_, str> {
    if all_shown(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let style = style_length(rest);
        let (taken, behind) = rest.split_at(style.unwrap_or_else(|| c.len_utf8()));
        if style.is_some() || is_shown(c) {
            out.push_str(taken);
        }
        rest = behind;
    }
    Cow::Owned(out)
}

/// Tells whether [`is_shown`] holds for every character; of ASCII, which most long texts are, at a glance.
fn all_shown(text: &str) -> bool {
    let is_plain = |byte: &u8| matches!(byte, b'\n' | b' '..=b'~');
    // Looked at in pieces without a way out of them, so that many bytes are looked at in one step.
    let mut pieces = text.as_bytes().chunks(4096);
    let is_ascii = pieces.all(|piece| piece.iter().fold(true, |all, byte| all & is_plain(byte)));
    is_ascii || text.chars().all(is_shown)
}

/// Returns the length of the styling sequence that a text begins with.
fn style_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let length = parameters
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || b";:".contains(byte))
        .count();
    (parameters.as_bytes().get(length) == Some(&b'm')).then_some(2 + length + 1)
}

/// Writes what turns the direction of text or hides in it as `\uXXXX`, so that a JSON document shows what it holds.
///
/// ```
/// assert_eq!(takeup_core::text::escaped_json("\"a\u{202e}b\""), "\"a\\u202eb\"");
/// ```
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    use std::fmt::Write as _;
    if all_shown(json) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_shown(c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _: std::fmt::Result = write!(out, "\\u{unit:04x}");
            }
        }
    }
    Cow::Owned(out)
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

/// Reads a JSON document of an agent. Half of a surrogate pair in it (`\\ud83d` alone) is read as U+FFFD: a program in
/// JavaScript that cuts a text in the middle of a character writes just that, and means no more by it.
///
/// # Errors
/// Where it is no JSON for another reason.
pub fn json_of_agent<T: serde::de::DeserializeOwned>(input: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(input).or_else(|error| {
        without_halves(input).map_or(Err(error), |mended| serde_json::from_slice(&mended))
    })
}

/// Returns the text with U+FFFD in the place of each half of a surrogate pair; `None` where there is none.
fn without_halves(input: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| {
        let digits = input.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut out, mut at, mut found) = (Vec::with_capacity(input.len()), 0, false);
    while let Some(byte) = input.get(at) {
        let length = match (byte, unit(at), unit(at + 6)) {
            (b'\\', Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (b'\\', Some(0xD800..=0xDFFF), _) => {
                out.extend(b"\\ufffd");
                found = true;
                at += 6;
                continue;
            }
            (b'\\', _, _) => 2,
            _ => 1,
        };
        out.extend(input.iter().skip(at).take(length));
        at += length;
    }
    found.then_some(out)
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
    fn only_styles_pass_to_the_terminal() {
        for (text, shown) in [
            ("plain ä", "plain ä"),
            ("\u{1b}[1;31mred\u{1b}[0m", "\u{1b}[1;31mred\u{1b}[0m"),
            ("\u{1b}[38:5:1mx\u{1b}[m", "\u{1b}[38:5:1mx\u{1b}[m"),
            ("\u{1b}[2J\u{1b}[Hx", "[2J[Hx"),
            ("\u{1b}]52;c;AAAA\u{7}x", "]52;c;AAAAx"),
            ("\u{9b}2Jx", "2Jx"),
            ("\u{1b}", ""),
            ("\u{1b}[31", "[31"),
            ("\u{1b}[\u{1b}[1mx", "[\u{1b}[1mx"),
            ("a\r\u{8}b\u{200b}\u{2066}c\u{e0041}", "abc"),
            ("tab\tline\n", "tab\tline\n"),
        ] {
            assert_eq!(styled(text), shown, "{text:?}");
            assert_eq!(styled(shown), shown);
        }
    }

    #[test]
    fn json_shows_what_it_holds_and_holds_the_same() {
        let value = serde_json::json!({"p": "a\u{202e}b\u{e0041}\u{feff}", "q": "\u{1b}\n\u{85}"});
        for text in [
            value.to_string(),
            serde_json::to_string_pretty(&value).unwrap(),
        ] {
            let escaped = escaped_json(&text);
            assert!(escaped.chars().all(is_shown), "{escaped}");
            let back: serde_json::Value = serde_json::from_str(&escaped).unwrap();
            assert_eq!(back, value);
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

    #[test]
    fn half_a_character_is_read_and_a_whole_one_stays() {
        let read = |text: &str| {
            json_of_agent::<serde_json::Value>(text.as_bytes()).map(|value| value["a"].clone())
        };
        assert_eq!(read(r#"{"a":"cut \ud83d"}"#).unwrap(), "cut \u{fffd}");
        assert_eq!(
            read(r#"{"a":"\udca9 \ud83d\udca9"}"#).unwrap(),
            "\u{fffd} \u{1f4a9}"
        );
        // What is written out is no escape.
        assert_eq!(
            read(r#"{"a":"\\ud83d \ud83d"}"#).unwrap(),
            "\\ud83d \u{fffd}"
        );
        assert!(read(r#"{"a":"\ud83d""#).is_err());
        assert!(read(r#"{"a":"\u12"}"#).is_err());
    }
}
