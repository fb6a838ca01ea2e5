//! The corpus of conformance as a plain test; and that it covers what the core knows.
#[path = "conformance/round_trips.rs"]
mod round_trips;

use std::collections::BTreeSet;
use std::path::PathBuf;

use takeup_core::status::{Event, Status};
use takeup_core::verdict::{ReasonCode, Verdict};
use takeup_tests::conformance::corpus::{Corpus, Scenario};
use takeup_tests::conformance::facts::{Format, rank, verdict_of};
use takeup_tests::conformance::stage::Programs;
use takeup_tests::conformance::{Expected, report, run};

fn programs() -> Programs {
    Programs {
        takeup: PathBuf::from(env!("CARGO_BIN_EXE_takeup-under-test")),
        stand_in: PathBuf::from(env!("CARGO_BIN_EXE_stand-in")),
    }
}

#[test]
fn every_story_has_its_answer_in_every_format_through_every_face() {
    let corpus = Corpus::read();
    let cells = run(&corpus, &programs(), |_, _| true);
    let different: Vec<String> = cells
        .iter()
        .filter_map(|cell| {
            let difference = cell.difference.as_ref()?;
            Some(format!(
                "{} / {}: {difference}",
                cell.scenario,
                cell.format.word()
            ))
        })
        .collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn the_document_is_what_the_corpus_says() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/conformance.md");
    let recorded = std::fs::read_to_string(path).expect("the document is there");
    assert!(
        recorded == report::document(&Corpus::read()),
        "docs/conformance.md is out of date; run `cargo xtask conformance`"
    );
}

/// Returns those that none of the scenarios of our ledger has.
fn missing<T: Ord + Copy>(all: &[T], of: impl Fn(&Scenario) -> Vec<T>) -> Vec<T> {
    let corpus = Corpus::read();
    let told: BTreeSet<T> = corpus
        .scenarios()
        .filter(|scenario| scenario.is_told_in(Format::Ledger))
        .flat_map(of)
        .collect();
    all.iter()
        .copied()
        .filter(|one| !told.contains(one))
        .collect()
}

#[test]
fn every_verdict_reason_status_and_event_has_a_story() {
    let corpus = Corpus::read();
    assert!(corpus.scenarios().count() >= 60);
    let verdicts = missing(&Verdict::ALL, |scenario| {
        let first = scenario.reasons.first();
        first
            .and_then(|code| verdict_of(*code))
            .into_iter()
            .collect()
    });
    assert_eq!(verdicts, []);
    let statuses = missing(&Status::ALL, |scenario| {
        scenario.status.into_iter().collect()
    });
    assert_eq!(statuses, []);
    let events = missing(&Event::ALL, |scenario| scenario.events.clone());
    assert_eq!(events, []);
    // Some reasons hold in other formats only: they belong to what our ledger always knows.
    let told: BTreeSet<ReasonCode> = corpus
        .scenarios()
        .flat_map(|scenario| Format::ALL.map(|format| (scenario, format)))
        .filter(|(scenario, format)| scenario.is_told_in(*format))
        .flat_map(|(scenario, format)| Expected::of(&corpus, scenario, format).reasons)
        .collect();
    let untold: Vec<&ReasonCode> = ReasonCode::ALL
        .iter()
        .filter(|code| !told.contains(code))
        .collect();
    assert!(untold.is_empty(), "{untold:?}");
}

#[test]
fn the_corpus_is_well_formed() {
    let corpus = Corpus::read();
    let mut names = BTreeSet::new();
    for scenario in corpus.scenarios() {
        let name = &scenario.name;
        assert!(names.insert(name), "{name:?} is there twice");
        assert!(!scenario.steps().is_empty(), "{name}");
        for format in Format::ALL {
            let reasons = Expected::of(&corpus, scenario, format).reasons;
            assert!(
                reasons.is_sorted_by_key(|code| rank(*code)),
                "{name}: {reasons:?} is not in the order of the rule"
            );
            assert!(
                reasons
                    .first()
                    .is_none_or(|code| verdict_of(*code).is_some()),
                "{name}: {reasons:?} decides nothing"
            );
        }
        for format in Format::ALL {
            let Some(exception) = scenario.exception(format) else {
                continue;
            };
            let notes = corpus.notes(format);
            assert!(
                exception
                    .lacks
                    .is_none_or(|fact| notes.lacks.contains_key(&fact)),
                "{name}: {} does not say that it lacks {:?}",
                notes.name,
                exception.lacks
            );
        }
    }
}
