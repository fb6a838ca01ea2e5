//! The table format × scenario, for a terminal and as a document.
use std::fmt::Write as _;

use takeup_core::verdict::Verdict;

use super::corpus::{Corpus, Scenario};
use super::facts::{Fact, Format};
use super::{Cell, Expected};

/// What `tests/tests/conformance/round_trips.rs` tries.
const ROUND_TRIPS: &str = "
## There and back

| From | over | back in | Held | Not held there |
|---|---|---|---|---|
| the ledger | the records of OpenCode++ | the ledger | task, title, session, every status but `stale-task`, boundary, checks, an open question | \
runs of checks, notes, provenance |
| the records of OpenCode++ | the ledger | the records of OpenCode++ | every field of the identity but those a take-up \
changes, the run whole | – |
| the ledger | a session of jcode | what is recovered of it | the document, line by line; folder; the session is closed | \
everything that is not in the document |
| the ledger | what `opencode import` is given | a session of OpenCode | the same | the same |
";

/// Returns the word for a verdict in a table.
const fn word(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::ResumeVerification) => "resume",
        Some(Verdict::StaleTask) => "stale",
        Some(Verdict::HumanReview) => "review",
        Some(Verdict::InUse) => "in use",
        Some(Verdict::NotResumable) => "closed",
        Some(Verdict::MismatchedRepository) => "elsewhere",
        None => "–",
    }
}

/// Returns what stands in a field: the verdict, and the letters of the facts without which it is another answer.
fn field(expected: &Expected, told: bool) -> String {
    if !told {
        return String::new();
    }
    let letters: String = expected.lacks.iter().map(|fact| fact.letter()).collect();
    let gap = if letters.is_empty() { "" } else { " " };
    format!("{}{gap}{letters}", word(expected.verdict()))
}

/// Draws the cells of a run for a terminal: a row a scenario, a column a format, and below it what was different.
pub fn drawn(corpus: &Corpus, cells: &[Cell]) -> String {
    let mut out = String::new();
    let columns: Vec<Format> = Format::ALL
        .into_iter()
        .filter(|format| cells.iter().any(|cell| cell.format == *format))
        .collect();
    let _row = write!(out, "{:<58}", "");
    for format in &columns {
        let _row = write!(out, "{:<16}", format.word());
    }
    for theme in &corpus.themes {
        let told = |scenario: &&Scenario| cells.iter().any(|cell| cell.scenario == scenario.name);
        let rows: Vec<&Scenario> = theme.scenarios.iter().filter(told).collect();
        if rows.is_empty() {
            continue;
        }
        let _row = write!(out, "\n\n{}", theme.about);
        for scenario in rows {
            let name: String = scenario.name.chars().take(54).collect();
            let _row = write!(out, "\n  {name:<56}");
            for format in &columns {
                let cell = cells
                    .iter()
                    .find(|cell| cell.scenario == scenario.name && cell.format == *format);
                let text = cell.map_or_else(String::new, |cell| {
                    let text = field(&cell.expected, true);
                    if cell.difference.is_some() {
                        format!("!{text}")
                    } else {
                        text
                    }
                });
                let _row = write!(out, "{text:<16}");
            }
        }
    }
    out.push('\n');
    for cell in cells {
        if let Some(difference) = &cell.difference {
            let _row = write!(
                out,
                "\n! {} / {}: {difference}",
                cell.scenario,
                cell.format.word()
            );
        }
    }
    let trimmed: Vec<&str> = out.lines().map(str::trim_end).collect();
    trimmed.join("\n")
}

/// Makes the document of what was declared. That the program does so is what a run shows.
pub fn document(corpus: &Corpus) -> String {
    let count = corpus.scenarios().count();
    let tellings: usize = corpus
        .scenarios()
        .map(|scenario| {
            let told = |format: &&Format| scenario.is_told_in(**format);
            Format::ALL.iter().filter(told).count()
        })
        .sum();
    let mut out = format!(
        "# Conformance\n\nMade by `cargo xtask conformance`; a test fails when it is out of date.\n\n\
         {count} stories are told in the formats that can hold them, {tellings} tellings in all, and each telling is asked \
         for through four faces: the command line, the MCP server, the script of the skill, and the notice that a hook hands \
         to a model. All four give the same answer. Without a person's yes none of them takes anything up.\n\n\
         The stories are in `tests/conformance/`. Each names every reason that holds at its end. Where a format cannot carry \
         a fact, a letter says which one, and the answer is the one that is right without it; what is so instead stands \
         [below](#what-a-format-cannot-carry). An empty field: the story is about the records of one format.\n\n\
         | In the tables | Verdict |\n|---|---|\n"
    );
    for verdict in Verdict::ALL {
        let _row = writeln!(out, "| {} | `{}` |", word(Some(verdict)), verdict.code());
    }
    out.push_str("| – | nothing is unfinished |\n");
    for theme in &corpus.themes {
        let _row = write!(out, "\n## {}\n\n| Story |", theme.about);
        for format in Format::ALL {
            let _row = write!(out, " {} |", corpus.notes(format).name);
        }
        out.push_str(" Reasons |\n|---|");
        out.push_str(&"---|".repeat(Format::ALL.len() + 1));
        out.push('\n');
        for scenario in &theme.scenarios {
            let _row = write!(out, "| {} |", scenario.name);
            for format in Format::ALL {
                let expected = Expected::of(corpus, scenario, format);
                let _row = write!(out, " {} |", field(&expected, scenario.is_told_in(format)));
            }
            let codes: Vec<&str> = scenario.reasons.iter().map(|code| code.code()).collect();
            let _row = writeln!(out, " {} |", codes.join(", "));
        }
    }
    out.push_str(ROUND_TRIPS);
    out.push_str("\n## What a format cannot carry\n");
    for format in Format::ALL {
        let notes = corpus.notes(format);
        let _row = writeln!(out, "\n{}, {}:\n", notes.name, notes.version);
        if notes.lacks.is_empty() {
            out.push_str("- nothing that a story tells\n");
        }
        for fact in Fact::ALL {
            if let Some(instead) = notes.lacks.get(&fact) {
                let _row = writeln!(out, "- **{}** {instead}", fact.letter());
            }
        }
    }
    out
}
