//! JSON as a JavaScript program reads and writes it: keys keep their order, numbers and texts are printed as
//! `JSON.stringify` prints them, so that a record that is read and written again is the one the plugin would have written.
use std::fmt::Write as _;

/// How deep a document may be nested. The plugin's records are four deep.
const DEEPEST: usize = 64;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; JavaScript has only this kind.
    Number(f64),
    /// A text.
    Text(Text),
    /// A list.
    List(Vec<Self>),
    /// An object, in the order of its keys.
    Object(Object),
}

/// A text. UTF-16 halves without their other half cannot stand in a Rust text; they are kept in the written form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The text, with U+FFFD for halves.
    value: String,
    /// How it is written between its quotes, where that does not follow from `value`.
    written: Option<String>,
}

impl Text {
    /// Returns the text, with U+FFFD for halves of characters.
    pub fn as_str(&self) -> &str {
        &self.value
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::Text(Text {
            value: value.to_owned(),
            written: None,
        })
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Self::Text(Text {
            value,
            written: None,
        })
    }
}

impl From<u64> for Json {
    #[expect(clippy::cast_precision_loss, reason = "JavaScript's numbers are so")]
    fn from(value: u64) -> Self {
        Self::Number(value as f64)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for Json {
    fn from(value: i32) -> Self {
        Self::Number(f64::from(value))
    }
}

impl From<Object> for Json {
    fn from(value: Object) -> Self {
        Self::Object(value)
    }
}

impl From<&[String]> for Json {
    fn from(value: &[String]) -> Self {
        Self::List(value.iter().map(|text| Self::from(text.as_str())).collect())
    }
}

impl<T: Into<Self>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl Json {
    /// Returns the text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.as_str()),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// Returns the number, if it is one.
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Null | Self::Bool(_) | Self::Text(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// Returns the number, if it is a whole one and not negative.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked just before"
    )]
    pub fn whole(&self) -> Option<u64> {
        let number = self.number()?;
        ((0.0..=9_007_199_254_740_991.0).contains(&number) && number.fract() == 0.0)
            .then_some(number as u64)
    }

    /// Returns the object, if it is one.
    pub const fn object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => None,
        }
    }

    /// Returns the list, if it is one.
    pub fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::Object(_) => None,
        }
    }

    /// Reads a document. Bytes that are not UTF-8 become U+FFFD, as in the plugin's runtime.
    ///
    /// # Errors
    /// What is wrong, and at which byte.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(bytes);
        let mut reader = Reader { text: &text, at: 0 };
        reader.space();
        let value = reader.value(0)?;
        reader.space();
        if reader.at < text.len() {
            return Err(reader.unexpected("something after the end"));
        }
        Ok(value)
    }

    /// Writes the document as the plugin does: two spaces a level, one final line feed.
    pub fn pretty(&self) -> String {
        let mut out = String::new();
        write_value(&mut out, self, Some(0));
        out.push('\n');
        out
    }

    /// Writes the document without any space.
    pub fn compact(&self) -> String {
        let mut out = String::new();
        write_value(&mut out, self, None);
        out
    }
}

/// An object that keeps the order of its keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(Vec<(Text, Json)>);

impl Object {
    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0
            .iter()
            .find(|(name, _)| name.written.is_none() && name.value == key)
            .map(|(_, value)| value)
    }

    /// Returns the text of a key, if it is one.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Json::text)
    }

    /// Returns the texts of a list, `None` where there is no list.
    pub fn texts(&self, key: &str) -> Option<Vec<String>> {
        let items = self.get(key)?.list()?;
        Some(
            items
                .iter()
                .filter_map(Json::text)
                .map(str::to_owned)
                .collect(),
        )
    }

    /// Returns every key that is a plain text, with its value, in order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0
            .iter()
            .filter(|(name, _)| name.written.is_none())
            .map(|(name, value)| (name.as_str(), value))
    }

    /// Sets a key: an existing one keeps its position, a new one goes to the end.
    pub fn set(&mut self, key: &str, value: impl Into<Json>) {
        let value = value.into();
        match self
            .0
            .iter_mut()
            .find(|(name, _)| name.written.is_none() && name.value == key)
        {
            Some((_, old)) => *old = value,
            None => self.0.push((
                Text {
                    value: key.to_owned(),
                    written: None,
                },
                value,
            )),
        }
    }

    /// Sets a key where there is a value, and leaves it as it is where there is none.
    pub fn set_some(&mut self, key: &str, value: Option<impl Into<Json>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Sets a key and returns the object, to build one.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.set(key, value);
        self
    }

    /// Returns the revision.
    pub fn revision(&self) -> Option<u64> {
        self.get("revision")?.whole()
    }
}
/// What a key is to JavaScript: whole numbers come first, in their order.
fn index_of(key: &Text) -> Option<u32> {
    if key.written.is_some() {
        return None;
    }
    let number: u32 = key.value.parse().ok()?;
    (number != u32::MAX && number.to_string() == key.value).then_some(number)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn unexpected(&self, what: &str) -> String {
        format!("{what} at byte {}", self.at)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, String> {
        if self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word))
        {
            self.at += word.len();
            return Ok(value);
        }
        Err(self.unexpected("an unknown word"))
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        if depth > DEEPEST {
            return Err(format!("nested deeper than {DEEPEST}"));
        }
        match self.peek() {
            None => Err(self.unexpected("the end in the middle")),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err(self.unexpected("an unexpected character")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, String> {
        self.at += 1;
        let mut entries: Vec<(Text, Json)> = Vec::new();
        let mut known = std::collections::HashMap::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(Object(entries)));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("no key"));
            }
            let key = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("no colon"));
            }
            self.at += 1;
            self.space();
            let value = self.value(depth + 1)?;
            // Of equal keys the last value counts, at the first place.
            let name = (key.value.clone(), key.written.clone());
            if let Some((_, old)) = known.get(&name).and_then(|&at: &usize| entries.get_mut(at)) {
                *old = value;
            } else {
                known.insert(name, entries.len());
                entries.push((key, value));
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    if entries.iter().any(|(key, _)| index_of(key).is_some()) {
                        entries.sort_by_key(|(key, _)| index_of(key).map_or((1, 0), |n| (0, n)));
                    }
                    return Ok(Json::Object(Object(entries)));
                }
                Some(_) | None => return Err(self.unexpected("no comma or end of object")),
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json, String> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::List(items));
        }
        loop {
            self.space();
            items.push(self.value(depth + 1)?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::List(items));
                }
                Some(_) | None => return Err(self.unexpected("no comma or end of list")),
            }
        }
    }

    fn number(&mut self) -> Result<Json, String> {
        let start = self.at;
        let digits = |reader: &mut Self| {
            let from = reader.at;
            while matches!(reader.peek(), Some(b'0'..=b'9')) {
                reader.at += 1;
            }
            reader.at - from
        };
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let zero = self.peek() == Some(b'0');
        let whole = digits(self);
        if whole == 0 || (zero && whole > 1) {
            return Err(self.unexpected("no number"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if digits(self) == 0 {
                return Err(self.unexpected("no digits after the point"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if digits(self) == 0 {
                return Err(self.unexpected("no digits in the exponent"));
            }
        }
        self.text
            .get(start..self.at)
            .and_then(|text| text.parse().ok())
            .map(Json::Number)
            .ok_or_else(|| self.unexpected("no number"))
    }

    /// Reads a text; the cursor stands on its first quote.
    fn string(&mut self) -> Result<Text, String> {
        self.at += 1;
        let mut units: Vec<u16> = Vec::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(c) = rest.chars().next() else {
                return Err(self.unexpected("the end inside a text"));
            };
            self.at += c.len_utf8();
            match c {
                '"' => break,
                '\\' => units.push(self.escape()?),
                c if u32::from(c) < 0x20 => {
                    return Err(self.unexpected("a control character inside a text"));
                }
                c => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
            }
        }
        let decoded: Vec<_> = char::decode_utf16(units).collect();
        let value: String = decoded
            .iter()
            .map(|unit| *unit.as_ref().unwrap_or(&char::REPLACEMENT_CHARACTER))
            .collect();
        let written = decoded.iter().any(Result::is_err).then(|| {
            let mut out = String::new();
            for unit in &decoded {
                match unit {
                    Ok(c) => write_char(&mut out, *c),
                    Err(half) => {
                        // Writing to a string cannot fail.
                        let _: std::fmt::Result =
                            write!(out, "\\u{:04x}", half.unpaired_surrogate());
                    }
                }
            }
            out
        });
        Ok(Text { value, written })
    }

    fn escape(&mut self) -> Result<u16, String> {
        let escape = self.peek();
        self.at += 1;
        Ok(match escape {
            Some(b'"') => 0x22,
            Some(b'\\') => 0x5c,
            Some(b'/') => 0x2f,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => 0x0a,
            Some(b'r') => 0x0d,
            Some(b't') => 0x09,
            Some(b'u') => {
                let digits = self
                    .text
                    .get(self.at..self.at + 4)
                    .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
                    .ok_or_else(|| self.unexpected("no four digits after \\u"))?;
                self.at += 4;
                u16::from_str_radix(digits, 16).map_err(|error| error.to_string())?
            }
            Some(_) | None => {
                // Step back, so that the cursor stays on a character boundary.
                self.at -= 1;
                return Err(self.unexpected("an unknown escape"));
            }
        })
    }
}

fn write_char(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if u32::from(c) < 0x20 => {
            // Writing to a string cannot fail.
            let _: std::fmt::Result = write!(out, "\\u{:04x}", u32::from(c));
        }
        c => out.push(c),
    }
}

fn write_text(out: &mut String, text: &Text) {
    out.push('"');
    match &text.written {
        Some(written) => out.push_str(written),
        None => text.value.chars().for_each(|c| write_char(out, c)),
    }
    out.push('"');
}

/// Prints a number as JavaScript does (ECMA-262, "Number to string"): shortest digits, an exponent from 1e21 and below 1e-6.
fn write_number(out: &mut String, number: f64) {
    if !number.is_finite() {
        out.push_str("null");
        return;
    }
    if number == 0.0 {
        out.push('0');
        return;
    }
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number < 0.0 {
        out.push('-');
    }
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // The decimal point stands behind so many digits.
    let point = exponent + 1;
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or(0));
    if count <= point && point <= 21 {
        out.push_str(&digits);
        out.push_str(&zeros(point - count));
    } else if 0 < point && point <= 21 {
        let (whole, rest) = digits.split_at(usize::try_from(point).unwrap_or(0));
        out.push_str(whole);
        out.push('.');
        out.push_str(rest);
    } else if -6 < point && point <= 0 {
        out.push_str("0.");
        out.push_str(&zeros(-point));
        out.push_str(&digits);
    } else {
        let (first, rest) = digits.split_at(1);
        out.push_str(first);
        if !rest.is_empty() {
            out.push('.');
            out.push_str(rest);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a string cannot fail.
        let _: std::fmt::Result = write!(out, "e{sign}{}", exponent.abs());
    }
}

/// Writes a value; `indent` is the level for the pretty form.
fn write_value(out: &mut String, value: &Json, indent: Option<usize>) {
    let inner = indent.map(|level| level + 1);
    let line = |out: &mut String, level: Option<usize>| {
        if let Some(level) = level {
            out.push('\n');
            for _ in 0..level {
                out.push_str("  ");
            }
        }
    };
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(yes) => out.push_str(if *yes { "true" } else { "false" }),
        Json::Number(number) => write_number(out, *number),
        Json::Text(text) => write_text(out, text),
        Json::List(items) if items.is_empty() => out.push_str("[]"),
        Json::List(items) => {
            for (at, item) in items.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                line(out, inner);
                write_value(out, item, inner);
            }
            line(out, indent);
            out.push(']');
        }
        Json::Object(object) if object.0.is_empty() => out.push_str("{}"),
        Json::Object(object) => {
            for (at, (key, item)) in object.0.iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                line(out, inner);
                write_text(out, key);
                out.push_str(if indent.is_some() { ": " } else { ":" });
                write_value(out, item, inner);
            }
            line(out, indent);
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests;
