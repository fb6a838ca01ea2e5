//! How far a command is, read from what it prints.
//!
//! The rules are those of jcode's format (lines of `JCODE_PROGRESS` and `JCODE_CHECKPOINT`, ratios, percentages, phases),
//! with its mistakes mended: a date or a version is no ratio, numbers with a decimal point are read whole, a pair that
//! cannot be a ratio does not hide what follows it, and JSON without any measure is indeterminate.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest line that is looked at.
const LONGEST: usize = 4096;
/// The longest message that is kept, in characters.
const MESSAGE: usize = 200;

/// Whether there is a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgressKind {
    /// There is.
    Determinate,
    /// It does something, and nobody knows how much of it is left.
    Indeterminate,
}

/// Where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgressSource {
    /// The command said so in a line made for it.
    Reported,
    /// Read from a line made for people.
    ParsedOutput,
}

/// How far a command is. Field names are those of jcode's files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// Whether there is a measure.
    pub kind: ProgressKind,
    /// 0 to 100, at most two decimals.
    pub percent: Option<f64>,
    /// The line, or what the command said.
    pub message: Option<String>,
    /// Done.
    pub current: Option<u64>,
    /// Of how many.
    pub total: Option<u64>,
    /// Of what.
    pub unit: Option<String>,
    /// How many seconds are left, as the command says.
    pub eta_seconds: Option<u64>,
    /// Where it comes from.
    pub source: ProgressSource,
}

impl Progress {
    /// Brings it into order: counted numbers decide the percentage, which is cut to 0 to 100 and two decimals.
    fn normalise(mut self) -> Self {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a percentage needs no more than two decimals"
        )]
        if let (Some(current), Some(total @ 1..)) = (self.current, self.total) {
            self.percent = Some(current as f64 / total as f64 * 100.0);
        }
        self.percent = self
            .percent
            .filter(|percent| percent.is_finite())
            .map(|percent| (percent.clamp(0.0, 100.0) * 100.0).round() / 100.0);
        if self.percent.is_some() || self.total.is_some_and(|total| total > 0) {
            self.kind = ProgressKind::Determinate;
        }
        self
    }
}

/// What a line says of progress.
#[derive(Clone, Debug, PartialEq)]
pub enum Recognised {
    /// How far it is.
    Progress(Progress),
    /// A point it has reached.
    Checkpoint(Progress),
}

/// Reads one line, without its end.
pub fn recognise(line: &[u8]) -> Option<Recognised> {
    let text = std::str::from_utf8(line.get(..LONGEST.min(line.len()))?).ok()?;
    let text = text.trim();
    reported(text).or_else(|| {
        parsed(text)
            .map(Progress::normalise)
            .map(Recognised::Progress)
    })
}

/// Tells whether a line may be one that was made for us, so that none of these is ever skipped.
pub(super) fn is_reported(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"JCODE_")
}

#[derive(Deserialize)]
struct Report {
    percent: Option<f64>,
    message: Option<String>,
    current: Option<u64>,
    total: Option<u64>,
    unit: Option<String>,
    eta_seconds: Option<u64>,
    kind: Option<String>,
    checkpoint: Option<bool>,
}

fn reported(text: &str) -> Option<Recognised> {
    if let Some(rest) = text.strip_prefix("JCODE_CHECKPOINT ") {
        let progress = serde_json::from_str::<Report>(rest).map_or_else(
            |_| {
                let mut progress = blank(ProgressKind::Indeterminate, ProgressSource::Reported);
                progress.message = Some(short(rest));
                progress
            },
            |report| of_report(report, ProgressKind::Indeterminate),
        );
        return Some(Recognised::Checkpoint(progress));
    }
    let rest = text.strip_prefix("JCODE_PROGRESS ")?;
    let report: Report = serde_json::from_str(rest).ok()?;
    let checkpoint =
        report.checkpoint == Some(true) || report.kind.as_deref() == Some("checkpoint");
    let progress = of_report(report, ProgressKind::Indeterminate);
    Some(if checkpoint {
        Recognised::Checkpoint(progress)
    } else {
        Recognised::Progress(progress)
    })
}

fn of_report(report: Report, kind: ProgressKind) -> Progress {
    Progress {
        kind,
        percent: report.percent,
        message: report.message.map(|message| short(&message)),
        current: report.current,
        total: report.total,
        unit: report.unit.map(|unit| short(&unit)),
        eta_seconds: report.eta_seconds,
        source: ProgressSource::Reported,
    }
    .normalise()
}

const fn blank(kind: ProgressKind, source: ProgressSource) -> Progress {
    Progress {
        kind,
        percent: None,
        message: None,
        current: None,
        total: None,
        unit: None,
        eta_seconds: None,
        source,
    }
}

/// Cuts a message and takes control characters out: it is a stranger's text that will be shown.
fn short(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(MESSAGE)
        .collect()
}

const SIZES: [&str; 13] = [
    "bytes", "byte", "kib", "mib", "gib", "tib", "kb", "mb", "gb", "tb", "kbytes", "mbytes", "b",
];
const UNITS: [&str; 15] = [
    "test", "step", "file", "item", "case", "task", "target", "chunk", "batch", "example", "crate",
    "module", "package", "worker", "batche",
];
const PHASES: [&str; 8] = [
    "Compiling ",
    "Downloading ",
    "Running ",
    "Building ",
    "Linking ",
    "Resolving ",
    "Fetching ",
    "Installing ",
];

fn parsed(text: &str) -> Option<Progress> {
    let mut found = ratio(text, "/")
        .or_else(|| ratio(text, " of "))
        .or_else(|| percent(text));
    if found.is_none() && PHASES.iter().any(|phase| text.starts_with(phase)) {
        let mut progress = blank(ProgressKind::Indeterminate, ProgressSource::ParsedOutput);
        progress.message = Some(short(text));
        found = Some((progress, false));
    }
    let (mut progress, is_whole_line) = found?;
    if !is_whole_line {
        progress.message = Some(short(text));
    }
    Some(progress)
}

/// A number and how it was written.
#[derive(Clone, Copy)]
struct Number<'a> {
    text: &'a str,
    value: f64,
}

impl Number<'_> {
    fn whole(self) -> Option<u64> {
        if self.text.len() > 6 {
            return None;
        }
        self.text.parse().ok()
    }
}

/// Tells whether a character beside a number makes it part of something else: a word, a path, a date, a version.
fn joins(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '/' | '.' | ':' | '-' | '\\' | '@' | '#')
}

/// Reads the number that ends at the end of `text`, and returns what stands before it.
fn number_at_end(text: &str) -> Option<(&str, Number<'_>)> {
    let start = text
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_ascii_digit() || *c == '.')
        .last()?
        .0;
    let (before, number) = text.split_at_checked(start)?;
    number_of(number).map(|number| (before, number))
}

/// Reads the number that begins `text`, and returns what stands after it.
fn number_at_start(text: &str) -> Option<(Number<'_>, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, after) = text.split_at_checked(end)?;
    // A full stop ends a sentence, not a number.
    let trimmed = number.trim_end_matches('.');
    let after = text.get(trimmed.len()..).unwrap_or(after);
    number_of(trimmed).map(|number| (number, after))
}

fn number_of(text: &str) -> Option<Number<'_>> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) || text.len() > 15 {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    Some(Number { text, value })
}

/// Finds the first pair of numbers around `sign` that can be a ratio. The second part tells whether it is all of the line.
fn ratio(text: &str, sign: &str) -> Option<(Progress, bool)> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find(sign) {
        let at = from.checked_add(at)?;
        from = at.checked_add(sign.len())?;
        if let Some(found) = ratio_at(text.get(..at)?, text.get(from..)?) {
            return Some(found);
        }
    }
    None
}

fn ratio_at(left: &str, right: &str) -> Option<(Progress, bool)> {
    let (before, current) = number_at_end(left.trim_end_matches(' '))?;
    let (total, after) = number_at_start(right.trim_start_matches(' '))?;
    if before.chars().next_back().is_some_and(joins) {
        return None;
    }
    let rest = after.trim_start_matches(' ');
    let word: &str = rest
        .find(|c: char| !c.is_ascii_alphabetic())
        .map_or(rest, |end| rest.get(..end).unwrap_or(rest));
    let lower = word.to_ascii_lowercase();
    let behind = rest.get(word.len()..).unwrap_or_default();
    let mut progress = blank(ProgressKind::Determinate, ProgressSource::ParsedOutput);
    let spaced = after.starts_with(' ');
    if SIZES.contains(&lower.as_str()) && !behind.starts_with(joins_but_stop) {
        if total.value <= 0.0 || current.value > total.value {
            return None;
        }
        progress.percent = Some(current.value / total.value * 100.0);
        progress.unit = Some(lower);
        return Some((progress, before.is_empty() && behind.is_empty()));
    }
    if !spaced && after.starts_with(joins_but_stop) {
        return None;
    }
    let (current, total) = (current.whole()?, total.whole()?);
    if total < 2 || current > total {
        return None;
    }
    progress.current = Some(current);
    progress.total = Some(total);
    let is_unit = UNITS.iter().any(|unit| {
        lower
            .strip_prefix(unit)
            .is_some_and(|end| end.is_empty() || end == "s")
    });
    let whole_line = if is_unit {
        progress.unit = Some(lower);
        before.is_empty() && behind.is_empty()
    } else {
        before.is_empty() && rest.is_empty()
    };
    Some((progress, whole_line))
}

/// As [`joins`], but a full stop or colon may end the phrase.
fn joins_but_stop(c: char) -> bool {
    joins(c) && !matches!(c, '.' | ':')
}

fn percent(text: &str) -> Option<(Progress, bool)> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find('%') {
        let at = from.checked_add(at)?;
        from = at.checked_add(1)?;
        let Some((before, number)) = number_at_end(text.get(..at)?.trim_end_matches(' ')) else {
            continue;
        };
        let leading_zero =
            number.text.len() > 1 && number.text.starts_with('0') && !number.text.starts_with("0.");
        if leading_zero
            || number.value > 100.0
            || before
                .chars()
                .next_back()
                .is_some_and(|c| joins(c) && c != ':' && c != '/')
        {
            continue;
        }
        let mut progress = blank(ProgressKind::Determinate, ProgressSource::ParsedOutput);
        progress.percent = Some(number.value);
        let after = text.get(from..).unwrap_or_default();
        return Some((progress, before.is_empty() && after.is_empty()));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn as_json(line: &str) -> Value {
        match recognise(line.as_bytes()) {
            None => Value::Null,
            Some(Recognised::Progress(progress)) => {
                json!({"event": "progress", "progress": progress})
            }
            Some(Recognised::Checkpoint(progress)) => {
                json!({"event": "checkpoint", "progress": progress})
            }
        }
    }

    /// Lines that jcode reads wrongly, and what we read instead.
    fn mended() -> Vec<(&'static str, Value)> {
        let percent = |percent: f64, message: Option<&str>| {
            json!({"event": "progress", "progress": {
                "kind": "determinate", "percent": percent, "message": message, "current": null, "total": null,
                "unit": null, "eta_seconds": null, "source": "parsed_output"}})
        };
        let indeterminate = |event: &str,
                             current: Option<u64>,
                             total: Option<u64>,
                             message: Option<&str>| {
            json!({"event": event, "progress": {
                "kind": "indeterminate", "percent": null, "message": message, "current": current, "total": total,
                "unit": null, "eta_seconds": null, "source": "reported"}})
        };
        vec![
            ("08/22/2026 started", Value::Null),
            ("10.5/8.2 MB", Value::Null),
            ("99.5%", percent(99.5, None)),
            (
                "ratio 12/7 then 50%",
                percent(50.0, Some("ratio 12/7 then 50%")),
            ),
            // Without any measure there is nothing determinate.
            (
                "JCODE_PROGRESS {\"kind\":\"checkpoint\",\"message\":\"m\"}",
                indeterminate("checkpoint", None, None, Some("m")),
            ),
            (
                "JCODE_PROGRESS {\"message\":\"no kind\"}",
                indeterminate("progress", None, None, Some("no kind")),
            ),
            (
                "JCODE_PROGRESS {\"current\":3,\"total\":0}",
                indeterminate("progress", Some(3), Some(0), None),
            ),
            (
                "JCODE_PROGRESS {}",
                indeterminate("progress", None, None, None),
            ),
        ]
    }

    #[test]
    fn lines_are_read_as_jcode_reads_them_but_for_its_mistakes() {
        let vectors = include_str!("../../tests/fixtures/progress-lines.jsonl");
        let mended = mended();
        let mut seen = 0;
        for vector in vectors.lines() {
            let vector: Value = serde_json::from_str(vector).unwrap();
            let line = vector["line"].as_str().unwrap();
            let mut expected = vector["result"].clone();
            let got = as_json(line);
            if let Some((_, better)) = mended.iter().find(|(known, _)| *known == line) {
                assert_ne!(expected, *better, "no mistake: {line}");
                assert_eq!(got, *better, "{line}");
                seen += 1;
                continue;
            }
            // The vectors hold 32-bit numbers.
            if let Some(percent) = expected["progress"]["percent"].as_f64() {
                expected["progress"]["percent"] = json!((percent * 100.0).round() / 100.0);
            }
            assert_eq!(got, expected, "{line}");
        }
        assert_eq!(seen, mended.len());
    }

    #[test]
    fn what_only_looks_like_progress_is_none() {
        for line in [
            "2026-11-29 started",
            "29.11.2026",
            "11/29/2026 12:00",
            "v1.2/3",
            "src/foo.rs:12/3",
            "/2/3/4",
            "http://host/1/20",
            "1/20/300",
            "a1/20",
            "TCP 10.0.0.1/24",
            "3/10x",
            "5 of the 10",
            "CPU 145%",
            "version 1.2.3%",
            "",
        ] {
            assert_eq!(recognise(line.as_bytes()), None, "{line}");
        }
        assert_eq!(recognise(b"\xff 50%"), None);
    }

    #[test]
    fn a_message_is_cut_and_carries_no_escape_sequence() {
        let line = format!("50% \u{1b}[31m{}", "x".repeat(1000));
        let Some(Recognised::Progress(progress)) = recognise(line.as_bytes()) else {
            panic!("not recognised")
        };
        let message = progress.message.unwrap();
        assert!(message.len() <= MESSAGE && !message.contains('\u{1b}'));
    }
}
