//! Values behind a name: `NAME=value`, `"name": "value"`, `--name value`, in quotes, in escaped quotes, or bare.
use regex::bytes::Regex;

use super::rules::{Rule, Shape};
use super::{MASK, Span, names};

/// A value and how it stands there.
struct Value {
    start: usize,
    end: usize,
    quoted: bool,
}

/// Finds values behind names that say secret.
pub(super) fn find(rule: &'static Rule, regex: &Regex, text: &str, spans: &mut Vec<Span>) {
    let mut at = 0;
    // Where the bare run ends that was looked at last: looked for once a run, so that the whole stays linear.
    let mut run = 0..0;
    while let Some(captures) = regex.captures_at(text.as_bytes(), at) {
        let (Some(whole), Some(name)) = (captures.get(0), captures.name("n")) else {
            break;
        };
        let behind_operator = whole.end();
        at = behind_operator.max(at + 1);
        let name_text = text.get(name.start()..name.end()).unwrap_or_default();
        let operator = captures
            .name("o")
            .and_then(|found| text.get(found.start()..found.end()))
            .unwrap_or_default();
        if !names::is_secret_name(name_text) {
            if rule.shape == Shape::Flag {
                // What follows a flag may be the next flag, and that needs the white space before it.
                at = name.end();
            }
            continue;
        }
        let in_query = text
            .as_bytes()
            .get(name.start().wrapping_sub(1))
            .is_some_and(|byte| b"?&".contains(byte));
        let Some(value) = value_at(text, behind_operator, in_query, &mut run) else {
            continue;
        };
        let content = text.get(value.start..value.end).unwrap_or_default();
        // A list or an object is no value; what is in it is looked at by itself.
        let is_open = value.quoted || !content.starts_with(['{', '[']);
        if content.is_empty() || content.starts_with(MASK) || !is_open {
            continue;
        }
        let accepted = if rule.shape == Shape::Flag {
            !content.starts_with('-') && !names::is_reference(content)
        } else {
            let behind = text.as_bytes().get(value.end).copied();
            names::is_assigned_secret(name_text, operator, content, value.quoted, behind)
        };
        if accepted {
            at = value.end.max(at);
            spans.push(Span {
                start: value.start,
                end: value.end,
                rule: rule.id,
                quotes: !value.quoted && text.as_bytes().get(name.end()) == Some(&b'"'),
            });
        }
    }
}

/// Finds the value that begins at `at`.
fn value_at(
    text: &str,
    at: usize,
    in_query: bool,
    run: &mut std::ops::Range<usize>,
) -> Option<Value> {
    // `$'…'` and `$"…"` of a shell.
    let dollar = text
        .get(at..)?
        .strip_prefix('$')
        .is_some_and(|rest| rest.starts_with(['\'', '"']));
    let at = at + usize::from(dollar);
    let rest = text.get(at..)?;
    let slashes = rest
        .bytes()
        .take(16)
        .take_while(|byte| *byte == b'\\')
        .count();
    let quote = rest
        .as_bytes()
        .get(slashes)
        .copied()
        .filter(|byte| b"\"'`".contains(byte));
    let Some(quote) = quote else {
        let end = continued(text, at, bare_end(text, at, run));
        let mut value = text.get(at..end)?;
        if in_query {
            value = value.split(['&', '#']).next().unwrap_or_default();
        }
        let value = trim(value);
        return Some(Value {
            start: at,
            end: at + value.len(),
            quoted: false,
        });
    };
    let start = at + slashes + 1;
    let content = text.as_bytes().get(start..)?;
    let mut length = 0;
    let mut backslashes = 0;
    while let Some(byte) = content.get(length) {
        match byte {
            b'\n' | b'\r' => break,
            // The quote that closes has as many backslashes before it as the one that opens; one with more is inside.
            byte if *byte == quote && backslashes <= slashes => {
                let behind = content.get(length..).unwrap_or_default();
                let Some(gap) = reopened(behind).filter(|_| slashes == 0) else {
                    length -= backslashes;
                    break;
                };
                length += gap;
                backslashes = 0;
                continue;
            }
            b'\\' => backslashes += 1,
            _ => backslashes = 0,
        }
        length += 1;
    }
    Some(Value {
        start,
        end: start + length,
        quoted: true,
    })
}

/// Tells how long the way is by which a word in single quotes holds one: `'\''` or `'"'"'`, also with the backslashes that
/// JSON adds. `None`: the word is over.
fn reopened(behind: &[u8]) -> Option<usize> {
    let rest = behind.strip_prefix(b"'")?;
    let slashes = |bytes: &[u8]| bytes.iter().take_while(|byte| **byte == b'\\').count();
    let before = slashes(rest);
    let rest = rest.get(before..)?;
    if before > 0 && rest.starts_with(b"''") {
        return Some(1 + before + 2);
    }
    let rest = rest.strip_prefix(b"\"'")?;
    let after = slashes(rest);
    rest.get(after..)?
        .starts_with(b"\"'")
        .then_some(1 + before + 2 + after + 2)
}

/// How many times a bare word is followed over a quoted character, and how far.
const CONTINUED: usize = 32;

/// Returns the end of a bare word of a shell: a backslash before it makes a blank, a quote or a semicolon part of the word.
fn continued(text: &str, at: usize, mut end: usize) -> usize {
    let bytes = text.as_bytes();
    for _ in 0..CONTINUED {
        let is_quoted = end > at
            && bytes.get(end - 1) == Some(&b'\\')
            && bytes.get(end).is_some_and(|byte| b" \t';".contains(byte));
        if !is_quoted {
            break;
        }
        end += 1;
        end += bytes
            .iter()
            .skip(end)
            .take(CONTINUED * 8)
            .take_while(|byte| !byte.is_ascii_whitespace() && !b"\"'`;".contains(byte))
            .count();
    }
    end
}

fn bare_end(text: &str, at: usize, run: &mut std::ops::Range<usize>) -> usize {
    if !run.contains(&at) {
        let length = text
            .as_bytes()
            .iter()
            .skip(at)
            .take_while(|byte| !byte.is_ascii_whitespace() && !b"\"'`;".contains(byte))
            .count();
        *run = at..at + length;
    }
    run.end
}

/// Cuts off what belongs to the sentence or the code around a value.
pub(super) fn trim(value: &str) -> &str {
    value.trim_end_matches([',', '.', ')', ']', '}', ':', '\\', '|', '>'])
}
