//! Walks JSON text without building values, so that a text that ends in the middle still gives what it holds.
//!
//! Only the structure is followed (strings, brackets, commas); each piece that is used is checked by a real parser.
use memchr::{memchr2, memmem};

/// Returns the first place at or behind `at` that holds no white space.
pub(crate) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while text
        .get(at)
        .is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
    {
        at += 1;
    }
    at
}

/// Returns the place behind the string that opens at `at`; `None` where it does not end.
fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        let rest = text.get(at..)?;
        let found = memchr2(b'"', b'\\', rest)?;
        if rest.get(found) == Some(&b'"') {
            return Some(at + found + 1);
        }
        // A backslash and what it escapes.
        at += found + 2;
    }
}

/// Returns the place behind the value that begins at `at`; `None` where the text ends before the value does, or no
/// value begins there.
pub(crate) fn value_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => string_end(text, at),
        b'{' | b'[' => {
            let mut depth = 0_usize;
            let mut at = at;
            loop {
                match text.get(at)? {
                    b'"' => {
                        at = string_end(text, at)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return Some(at + 1);
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
        }
        b',' | b':' | b'}' | b']' => None,
        _ => {
            let rest = text.get(at..)?;
            // A number or a word that touches the end of the text may be cut.
            rest.iter()
                .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
                .map(|length| at + length)
        }
    }
}

/// A piece of a walked text: `whole` is false where the text ended before the piece did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// The bytes of the value.
    pub(crate) bytes: &'a [u8],
    /// Whether the value is complete.
    pub(crate) whole: bool,
}

/// The members of an object in order, as far as the text goes.
#[derive(Debug)]
pub(crate) struct Members<'a> {
    /// Key and value, the key without its quotes and with its escapes.
    pub(crate) list: Vec<(&'a [u8], Piece<'a>)>,
    /// The place behind the object, where it ends.
    pub(crate) end: Option<usize>,
}

impl<'a> Members<'a> {
    /// Returns the value of a key, the last one where it stands twice.
    pub(crate) fn get(&self, key: &str) -> Option<Piece<'a>> {
        self.list
            .iter()
            .rev()
            .find(|(name, _)| *name == key.as_bytes())
            .map(|(_, piece)| *piece)
    }
}

/// Walks the object that begins at `at`. Returns `None` where no object begins there.
pub(crate) fn members(text: &[u8], at: usize) -> Option<Members<'_>> {
    let mut at = skip_space(text, at);
    if text.get(at) != Some(&b'{') {
        return None;
    }
    let mut members = Members {
        list: Vec::new(),
        end: None,
    };
    at += 1;
    loop {
        at = skip_space(text, at);
        match text.get(at) {
            Some(b'}') => {
                members.end = Some(at + 1);
                return Some(members);
            }
            Some(b',') => at += 1,
            Some(b'"') => {
                let Some(key_end) = string_end(text, at) else {
                    return Some(members);
                };
                let key = text.get(at + 1..key_end - 1).unwrap_or_default();
                let colon = skip_space(text, key_end);
                if text.get(colon) != Some(&b':') {
                    return Some(members);
                }
                let start = skip_space(text, colon + 1);
                if let Some(end) = value_end(text, start) {
                    let bytes = text.get(start..end).unwrap_or_default();
                    members.list.push((key, Piece { bytes, whole: true }));
                    at = end;
                } else {
                    let bytes = text.get(start..).unwrap_or_default();
                    members.list.push((
                        key,
                        Piece {
                            bytes,
                            whole: false,
                        },
                    ));
                    return Some(members);
                }
            }
            _ => return Some(members),
        }
    }
}

/// The elements of an array in order, as far as the text goes; the last one may be cut.
pub(crate) fn elements(text: &[u8]) -> Vec<Piece<'_>> {
    let mut list = Vec::new();
    let mut at = skip_space(text, 0);
    if text.get(at) != Some(&b'[') {
        return list;
    }
    at += 1;
    loop {
        at = skip_space(text, at);
        match text.get(at) {
            None | Some(b']') => return list,
            Some(b',') => at += 1,
            Some(_) => {
                let Some(end) = value_end(text, at) else {
                    let bytes = text.get(at..).unwrap_or_default();
                    list.push(Piece {
                        bytes,
                        whole: false,
                    });
                    return list;
                };
                let bytes = text.get(at..end).unwrap_or_default();
                list.push(Piece { bytes, whole: true });
                at = end;
            }
        }
    }
}

/// What stands behind the messages of a snapshot, found from the end of the file.
#[derive(Debug)]
pub(crate) struct Tail {
    /// The place of the bracket that closes the messages, in the window.
    pub(crate) messages_end: usize,
    /// The members behind it, as an object of their own.
    pub(crate) rest: Vec<u8>,
}

/// Finds where the messages of a compact snapshot end, in a window that reaches to the end of the file.
///
/// A bracket closes an array of the outermost object exactly when what follows it, with an opening brace put before,
/// is one complete object up to the end of the file. The bytes `],"` never stand inside a string in which this holds:
/// there the quote would be escaped, or the rest would be read with inside and outside exchanged and end within a
/// string. The messages stand before `status`, every other array behind it.
pub(crate) fn tail_of_snapshot(window: &[u8]) -> Option<Tail> {
    for place in memmem::find_iter(window, b"],\"") {
        // The mark of an array of the outermost object: between it and the end nothing closes that was not opened.
        let behind = window.get(place + 2..)?;
        if !closes_once(behind) {
            continue;
        }
        let mut rest = Vec::with_capacity(behind.len() + 1);
        rest.push(b'{');
        rest.extend_from_slice(behind);
        let whole = members(&rest, 0)
            .filter(|members| {
                members
                    .end
                    .is_some_and(|end| skip_space(&rest, end) == rest.len())
            })
            .is_some_and(|members| members.get("status").is_some());
        return whole.then_some(Tail {
            messages_end: place,
            rest,
        });
    }
    None
}

/// Tells whether the members in `text` are followed by exactly one closing brace at the end.
fn closes_once(text: &[u8]) -> bool {
    let mut depth = 1_usize;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => match string_end(text, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => return false,
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return skip_space(text, at + 1) == text.len();
                }
            }
            _ => {}
        }
        at += 1;
    }
    false
}

/// Returns the elements at the end of the array that closes at `end`, newest last, as far as the window holds them
/// whole. An element is taken only if it ends exactly where the next one or the array's end stands, so that nothing
/// nested is mistaken for one.
pub(crate) fn last_elements(window: &[u8], end: usize) -> Vec<&[u8]> {
    let mut list = Vec::new();
    let mut next = end;
    let head = window.get(..end).unwrap_or_default();
    let starts: Vec<usize> = memmem::find_iter(head, b"{\"id\":").collect();
    for start in starts.into_iter().rev() {
        if value_end(head, start) != Some(next) {
            continue;
        }
        list.push(head.get(start..next).unwrap_or_default());
        match start.checked_sub(1).and_then(|place| head.get(place)) {
            Some(b',') => next = start - 1,
            _ => break,
        }
    }
    list.reverse();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_gives_what_it_holds() {
        let text = br#"{"id":"a\"]},","messages":[{"x":[1,2]},{"y":"{"},{"z":"cut"#;
        let members = members(text, 0).unwrap();
        assert!(members.end.is_none());
        let messages = members.get("messages").unwrap();
        assert!(!messages.whole);
        let elements = elements(messages.bytes);
        let whole: Vec<&[u8]> = elements
            .iter()
            .filter(|piece| piece.whole)
            .map(|piece| piece.bytes)
            .collect();
        assert_eq!(whole, [&br#"{"x":[1,2]}"#[..], br#"{"y":"{"}"#]);
        assert_eq!(elements.len(), 3);
    }

    #[test]
    fn every_cut_of_a_text_is_walked_without_a_panic() {
        let text = br#" {"a" : [1, "\\", {"b":null}], "c":{"d":"\"]},\""} , "e":-1.5e3}"#;
        for cut in 0..=text.len() {
            let whole = members(&text[..cut], 0).and_then(|members| members.end);
            assert_eq!(whole.is_some(), cut == text.len());
        }
    }

    #[test]
    fn the_tail_is_found_behind_texts_that_look_like_it() {
        let text = br#"{"id":"x","messages":[{"id":"1","t":"],\"status\":1}"},{"id":"2","a":["],",":"],"n":[{"id":"3"}],"status":0}],"status":"Active","env_snapshots":[{"a":[]}],"saved":false}"#;
        for from in 0..20 {
            let window = &text[from..];
            let tail = tail_of_snapshot(window).unwrap();
            assert!(tail.rest.starts_with(br#"{"status":"Active""#));
            let last = last_elements(window, tail.messages_end);
            assert_eq!(last.len(), 2, "nested ones are not taken");
            assert!(last[0].starts_with(br#"{"id":"1""#));
        }
        // The window begins behind the messages: the next array's end is not taken for theirs.
        let place = memmem::find(text, b"env_snapshots").unwrap();
        assert!(tail_of_snapshot(&text[place..]).is_none());
    }
}
