//! Masks for secrets in text, commands and JSON: each becomes `[redacted:RULE]`, where the rule says what kind it was.
//!
//! The rules are a table of the formats that vendors describe for their own keys, and rules of context: private-key blocks,
//! passwords in URLs, `Authorization` headers, cookies, `NAME=value` with a name that says secret, `--password value`, and
//! values of the environment whose names say secret. One search for the rules' keywords decides which of the patterns are
//! compiled and run, so that text without any of them costs one pass.
//!
//! # Limitations
//!
//! It is a net and not a promise: a secret in no known format and without a telling name beside it passes. Object ids, UUIDs,
//! hashes and paths have no such format and stay as they are, unless a telling name stands before them.
//!
//! ```
//! let masked = takeup_core::redact::text("curl --password hunter2 https://u:pw@host/");
//! assert_eq!(
//!     masked.text,
//!     "curl --password [redacted:argument] https://u:[redacted:url-password]@host/"
//! );
//! assert_eq!(masked.count, 2);
//! ```
mod names;
mod rules;
/// The most characters that are kept of what a person asked.
pub const PROMPT: usize = 4_000;

/// Makes what a person asked fit to be kept: with its lines, masked, and cut at [`PROMPT`] characters. Masked first: a cut could
/// hide what a secret is. What is far beyond the cut is not searched: a prompt may hold whole files.
pub fn prompt(asked: &str) -> String {
    let near = asked.char_indices().nth(PROMPT.saturating_mul(4));
    let near = near.map_or(asked, |(at, _)| asked.get(..at).unwrap_or(asked));
    crate::text::clean(text(near).text.trim(), PROMPT)
}

#[cfg(test)]
mod tests;
mod values;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;

use crate::env::Env;
pub use names::is_secret_name;
use rules::{RULES, Rule, Shape};

/// The version of the table of rules; it grows when a rule is added or changed.
pub const TABLE_VERSION: u32 = 3;

/// How a mask begins.
const MASK: &str = "[redacted:";

/// Tells whether a secret was masked in a text.
pub fn is_masked(text: &str) -> bool {
    text.contains(MASK)
}

/// Text with its secrets masked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redacted {
    /// The text.
    pub text: String,
    /// How many secrets were masked.
    pub count: usize,
}

/// A command with its secrets masked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactedCommand {
    /// The arguments.
    pub args: Vec<String>,
    /// How many secrets were masked.
    pub count: usize,
}

impl RedactedCommand {
    /// Returns the command as one shell line, quoted where it has to be.
    pub fn line(&self) -> String {
        line_of(self.args.iter().map(String::as_str))
    }
}

/// Writes arguments as one shell line, each quoted where it has to be.
pub fn line_of<'a>(args: impl IntoIterator<Item = &'a str>) -> String {
    let mut line = String::new();
    for arg in args {
        if !line.is_empty() {
            line.push(' ');
        }
        // Only a zero byte cannot be quoted; no argument holds one.
        match shlex::try_quote(arg) {
            Ok(quoted) => line.push_str(&quoted),
            Err(_) => line.push('?'),
        }
    }
    line
}

/// Masks the secrets in a text, without knowing the environment.
pub fn text(text: &str) -> Redacted {
    Masker::default().text(text)
}

/// Masks the secrets in a command, without knowing the environment.
pub fn command<S: AsRef<str>>(args: &[S]) -> RedactedCommand {
    Masker::default().command(args)
}

/// Masks the secrets in a JSON value, without knowing the environment. Returns the value and how many were masked.
pub fn json(value: &Value) -> (Value, usize) {
    Masker::default().json(value)
}

/// Masks secrets, and knows the values of one environment.
#[derive(Clone, Debug, Default)]
pub struct Masker {
    values: Option<AhoCorasick>,
}

/// A part of a text that is masked.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
    rule: &'static str,
    /// The mask has to stand in quotes: a bare value in JSON.
    quotes: bool,
}

impl Masker {
    /// Makes a masker that also masks the values of variables whose names say secret. Values shorter than eight bytes are
    /// left: they would match everywhere.
    pub fn of(env: &Env) -> Self {
        let values: Vec<&str> = env
            .vars()
            .filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
            .filter(|(name, value)| {
                is_secret_name(name) && value.len() >= 8 && !names::is_reference(value)
            })
            .map(|(_, value)| value)
            .collect();
        if values.is_empty() {
            return Self::default();
        }
        Self {
            values: AhoCorasickBuilder::new()
                .match_kind(MatchKind::LeftmostLongest)
                .build(values)
                .ok(),
        }
    }

    /// Masks the secrets in a text. Twice equals once.
    pub fn text(&self, text: &str) -> Redacted {
        let mut redacted = Redacted {
            text: text.to_owned(),
            count: 0,
        };
        // A mask can bring a name and a value together that a longer match had kept apart.
        for _ in 0..8 {
            let spans = self.spans(&redacted.text);
            if spans.is_empty() {
                break;
            }
            redacted.count += spans.len();
            redacted.text = replace(&redacted.text, &spans);
        }
        redacted
    }

    /// Masks the secrets in a command: the argument after `--password` and its like, the value of `--token=…`, the
    /// password of `-u user:password`, and what [`Self::text`] finds in each argument.
    pub fn command<S: AsRef<str>>(&self, args: &[S]) -> RedactedCommand {
        let mut redacted = RedactedCommand::default();
        let mut program = "";
        let mut before = "";
        for arg in args {
            let arg = arg.as_ref();
            // It may stand behind `sudo`, `env` and their like.
            let name = arg.rsplit('/').next().unwrap_or_default();
            if program.is_empty() || takes_short_password(name) {
                program = name;
            }
            let Redacted { text, count } = mask_argument(program, before, arg)
                .map_or_else(|| self.text(arg), |text| Redacted { text, count: 1 });
            redacted.args.push(text);
            redacted.count += count;
            before = arg;
        }
        redacted
    }

    /// Masks the secrets in a JSON value: text under a name that says secret, and what [`Self::text`] finds elsewhere, so
    /// that JSON stays JSON. Returns the value and how many were masked.
    pub fn json(&self, value: &Value) -> (Value, usize) {
        match value {
            Value::String(text) => {
                let Redacted { text, count } = self.text(text);
                (Value::String(text), count)
            }
            Value::Array(items) => {
                let mut count = 0;
                let mut before = "";
                let items = items
                    .iter()
                    .map(|item| {
                        // A list may be a command.
                        let masked = item
                            .as_str()
                            .and_then(|text| mask_argument("", before, text));
                        before = item.as_str().unwrap_or_default();
                        let (item, more) =
                            masked.map_or_else(|| self.json(item), |text| (Value::String(text), 1));
                        count += more;
                        item
                    })
                    .collect();
                (Value::Array(items), count)
            }
            Value::Object(fields) => {
                let mut count = 0;
                let fields = fields
                    .iter()
                    .map(|(name, value)| {
                        let is_open = match value {
                            Value::String(text) => !text.is_empty() && !names::is_reference(text),
                            Value::Number(_) => names::is_password_name(name),
                            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                                false
                            }
                        };
                        let (value, more) = if is_open && is_secret_name(name) {
                            (Value::String(mask("field")), 1)
                        } else {
                            self.json(value)
                        };
                        let name = self.text(name);
                        count += more + name.count;
                        (name.text, value)
                    })
                    .collect();
                (Value::Object(fields), count)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => (value.clone(), 0),
        }
    }

    /// Finds what has to be masked: ordered, not overlapping, at character boundaries.
    fn spans(&self, text: &str) -> Vec<Span> {
        let mut spans = Vec::new();
        if let Some(values) = &self.values {
            spans.extend(values.find_iter(text).map(|found| Span {
                start: found.start(),
                end: found.end(),
                rule: "environment",
                quotes: false,
            }));
        }
        for (rule, regex) in triggered(text) {
            match rule.shape {
                Shape::KeyBlock => key_blocks(rule, regex, text, &mut spans),
                Shape::Assignment | Shape::Flag => values::find(rule, regex, text, &mut spans),
                Shape::Token
                | Shape::UserFlag
                | Shape::Header
                | Shape::Cookie
                | Shape::ShortPassword
                | Shape::UrlPassword
                | Shape::UrlToken => matches(rule, regex, text, &mut spans),
            }
        }
        merge(text, spans)
    }
}

fn mask(rule: &str) -> String {
    format!("{MASK}{rule}]")
}

/// The automaton for the keywords of all rules, and whose each of them is.
static FINDER: OnceLock<Option<(AhoCorasick, Vec<usize>)>> = OnceLock::new();

/// Returns the rules whose keywords stand in the text, with their patterns.
fn triggered(text: &str) -> impl Iterator<Item = (&'static Rule, &'static Regex)> {
    static COMPILED: OnceLock<Vec<OnceLock<Option<Regex>>>> = OnceLock::new();
    static SHORT_ONES: AtomicUsize = AtomicUsize::new(0);
    let by_word = text.len() <= SHORT
        && FINDER.get().is_none()
        && SHORT_ONES.fetch_add(1, Ordering::Relaxed) < FEW;
    let compiled = COMPILED.get_or_init(|| RULES.iter().map(|_| OnceLock::new()).collect());
    let wanted = if by_word {
        found_in_short(text)
    } else {
        found_in_long(text)
    };
    RULES
        .iter()
        .zip(compiled)
        .zip(wanted)
        .filter(|(_, wanted)| *wanted)
        .filter_map(|((rule, cell), _)| {
            let regex = cell.get_or_init(|| compile(rule)).as_ref()?;
            Some((rule, regex))
        })
}

/// Up to so many bytes a text is searched word by word: the automaton for all words costs more to make than that, and a
/// command that shows the name of a branch would pay for it.
const SHORT: usize = 64;
/// Of more short texts than these, such as the titles in a long list, each would cost more word by word.
const FEW: usize = 16;

/// Tells which rules have a keyword in a text, word by word.
fn found_in_short(text: &str) -> Vec<bool> {
    let holds = |word: &&str| {
        text.as_bytes()
            .windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    RULES
        .iter()
        .map(|rule| rule.keywords.iter().any(holds))
        .collect()
}

/// Tells which rules have a keyword in a text, all words at once.
fn found_in_long(text: &str) -> Vec<bool> {
    let finder = FINDER.get_or_init(|| {
        let owners: Vec<(usize, &str)> = RULES
            .iter()
            .enumerate()
            .flat_map(|(number, rule)| rule.keywords.iter().map(move |word| (number, *word)))
            .collect();
        AhoCorasickBuilder::new()
            .ascii_case_insensitive(true)
            .build(owners.iter().map(|(_, word)| word))
            .ok()
            .map(|finder| (finder, owners.iter().map(|(number, _)| *number).collect()))
    });
    let mut wanted = vec![false; RULES.len()];
    let mut missing = RULES.len();
    if let Some((finder, owners)) = finder {
        for found in finder.find_overlapping_iter(text) {
            let rule = owners
                .get(found.pattern().as_usize())
                .and_then(|number| wanted.get_mut(*number));
            if let Some(wanted) = rule
                && !*wanted
            {
                *wanted = true;
                missing -= 1;
            }
            if missing == 0 {
                break;
            }
        }
    }
    wanted
}

/// Compiles a rule's pattern. A pattern that does not compile would be a mistake in the table; a test compiles them all.
fn compile(rule: &Rule) -> Option<Regex> {
    RegexBuilder::new(rule.pattern)
        .unicode(false)
        .case_insensitive(rule.shape != Shape::Token && rule.shape != Shape::KeyBlock)
        .build()
        .ok()
}

/// Finds the matches of a pattern that its rule accepts. After a match the search goes on right behind the secret, and after
/// one that is not accepted inside it: the next may begin there.
fn matches(rule: &'static Rule, regex: &Regex, text: &str, spans: &mut Vec<Span>) {
    let mut at = 0;
    while let Some(captures) = regex.captures_at(text.as_bytes(), at) {
        let Some(secret) = captures.name("s") else {
            break;
        };
        let value = text.get(secret.start()..secret.end()).unwrap_or_default();
        let value = match rule.shape {
            Shape::Header | Shape::UserFlag => values::trim(value),
            Shape::Token
            | Shape::KeyBlock
            | Shape::Assignment
            | Shape::Flag
            | Shape::Cookie
            | Shape::ShortPassword
            | Shape::UrlPassword
            | Shape::UrlToken => value,
        };
        if accepts(rule, value) {
            at = secret.start() + value.len();
            spans.push(Span {
                start: secret.start(),
                end: at,
                rule: rule.id,
                quotes: false,
            });
        } else {
            at = secret.start().max(at + 1);
        }
    }
}

fn accepts(rule: &Rule, value: &str) -> bool {
    if value.is_empty() || value.starts_with(MASK) {
        return false;
    }
    if rule.entropy > 0.0 && entropy(value) < rule.entropy {
        return false;
    }
    match rule.shape {
        Shape::Token | Shape::KeyBlock | Shape::Assignment | Shape::Flag => true,
        Shape::Header | Shape::UrlToken => !names::is_reference(value),
        // `docker run --name mysql -p3306:3306` publishes a port.
        Shape::ShortPassword => {
            !names::is_reference(value)
                && !value
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || b":.".contains(&byte))
        }
        Shape::UserFlag => {
            !names::is_reference(value) && !value.bytes().all(|byte| byte.is_ascii_digit())
        }
        Shape::Cookie => value.contains('='),
        Shape::UrlPassword => !names::is_reference(value) && !names::begins_with_port(value),
    }
}

/// Masks blocks of private keys from their first to their last line. Of a block without an end (cut text) everything that
/// can belong to it.
fn key_blocks(rule: &'static Rule, regex: &Regex, text: &str, spans: &mut Vec<Span>) {
    const END: &str = "-----END";
    let ends: Vec<usize> = text.match_indices(END).map(|(at, _)| at).collect();
    let begins: Vec<_> = regex.find_iter(text.as_bytes()).collect();
    let mut done = 0;
    for (number, begin) in begins.iter().enumerate() {
        if begin.start() < done {
            continue;
        }
        let next = begins
            .get(number + 1)
            .map_or(text.len(), regex::bytes::Match::start);
        let end = ends
            .get(ends.partition_point(|end| *end < begin.end()))
            .filter(|end| **end < next)
            .and_then(|end| {
                let rest = text.get(end + END.len()..)?;
                Some(end + END.len() + rest.find("-----")? + 5)
            });
        let end = end.unwrap_or_else(|| {
            let rest = text.get(begin.end()..next).unwrap_or_default();
            let body = rest
                .bytes()
                .take_while(|byte| {
                    byte.is_ascii_alphanumeric() || b"+/=\\ \r\n\t:,-".contains(byte)
                })
                .count();
            begin.end() + body
        });
        done = end;
        spans.push(Span {
            start: begin.start(),
            end,
            rule: rule.id,
            quotes: false,
        });
    }
}

/// Joins overlapping spans under the rule of the longest and puts them in order.
fn merge(text: &str, mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.start, usize::MAX - span.end));
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        let span = Span {
            start: text.floor_char_boundary(span.start),
            end: text.ceil_char_boundary(span.end),
            ..span
        };
        match merged.last_mut() {
            Some(last) if span.start < last.end => {
                if span.end - span.start > last.end - last.start {
                    last.rule = span.rule;
                }
                last.end = last.end.max(span.end);
                last.quotes &= span.quotes;
            }
            _ => merged.push(span),
        }
    }
    merged
}

fn replace(text: &str, spans: &[Span]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        out.push_str(text.get(at..span.start).unwrap_or_default());
        let quote = if span.quotes { "\"" } else { "" };
        out.extend([quote, MASK, span.rule, "]", quote]);
        at = span.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Returns the masked argument where its place in the command makes it a secret.
fn mask_argument(program: &str, before: &str, arg: &str) -> Option<String> {
    if arg.is_empty() || arg.contains(MASK) || names::is_reference(arg) {
        return None;
    }
    let is_flag = before.starts_with('-') && !before.contains('=');
    if is_flag && is_secret_name(before) && !arg.starts_with('-') {
        return Some(mask("argument"));
    }
    if matches!(before, "-u" | "--user" | "--proxy-user")
        && let Some((user, password)) = arg.split_once(':')
        && !password.is_empty()
        && !password.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Some(format!("{user}:{}", mask("argument")));
    }
    if arg.starts_with('-')
        && let Some((name, value)) = arg.split_once('=')
        && is_secret_name(name)
        && !value.is_empty()
        && !names::is_reference(value)
    {
        return Some(format!("{name}={}", mask("argument")));
    }
    // Programs whose short options take a password (their manuals: mysql, sshpass, redis-cli, docker login).
    let follows = match program {
        "sshpass" | "docker" | "podman" | "helm" => before == "-p",
        "redis-cli" => before == "-a",
        _ => false,
    };
    if follows {
        return Some(mask("argument"));
    }
    match (program, arg.split_at_checked(2)) {
        (program, Some(("-p", value))) if !value.is_empty() && takes_short_password(program) => {
            Some(format!("-p{}", mask("argument")))
        }
        _ => None,
    }
}

/// Tells whether a program takes a password right behind `-p`.
fn takes_short_password(program: &str) -> bool {
    matches!(
        program,
        "mysql"
            | "mysqldump"
            | "mysqladmin"
            | "mysqlimport"
            | "mysqlshow"
            | "mariadb"
            | "mariadb-dump"
            | "mariadb-admin"
            | "sshpass"
    )
}

/// Returns Shannon's entropy of the bytes, in bits a byte.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let total = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / total;
            -share * share.log2()
        })
        .sum()
}
