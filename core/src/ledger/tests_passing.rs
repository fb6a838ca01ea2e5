//! What is written in passing: nothing is lost by it, and what it leaves to others they do.
use std::convert::Infallible;
use std::fs;
use std::io::Write as _;

use super::tests::{CLOCK, start, transition};
use super::*;
use crate::ids::WorktreeId;
use crate::observation::Observation;
use crate::status::Status;
use crate::time::Time;

fn observation(number: i64) -> Transition {
    transition(vec![Change::Observation {
        observation: Box::new(Observation {
            worktree_id: WorktreeId::new("w").unwrap(),
            event: "post-commit".to_owned(),
            at: Time::from_millis(number),
            head_before: None,
            head_after: None,
            branch: None,
            operation: None,
            fingerprint: None,
            pending: true,
            by: None,
        }),
    }])
}

fn passing(ledger: &Ledger, number: i64) -> Committed<usize> {
    ledger
        .transact_in_passing(&CLOCK, Ledger::PATIENCE, |view| {
            Ok::<_, Infallible>((Some(observation(number)), view.state.tasks.len()))
        })
        .unwrap()
}

fn sure(ledger: &Ledger, transition: Transition) -> Committed<()> {
    ledger
        .transact(&CLOCK, Ledger::PATIENCE, |_| {
            Ok::<_, Infallible>((Some(transition), ()))
        })
        .unwrap()
}

fn times(ledger: &Ledger) -> Vec<i64> {
    let view = ledger.read().unwrap();
    assert!(view.issues.is_empty(), "{:?}", view.issues);
    let seen = view.state.observations.iter();
    seen.map(|one| one.at.millis()).collect()
}

#[test]
fn it_flushes_nothing_and_the_next_sure_line_makes_up_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("takeup"));
    sure(&ledger, start("one", Status::Active));
    let done = passing(&ledger, 1);
    assert_eq!((done.value, done.seq, done.wrote), (1, 2, true));
    assert_eq!(done.work.flushes, 0);
    assert_eq!(times(&ledger), [1]);
    assert_eq!(sure(&ledger, observation(2)).work.flushes, 1);
    assert_eq!(times(&ledger), [1, 2]);
}

/// A power loss takes what was not flushed: the ledger is whole, and nothing is in doubt.
#[test]
fn what_was_not_flushed_is_not_missed() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("takeup"));
    sure(&ledger, start("one", Status::Active));
    let flushed = fs::metadata(ledger.dir().join("journal.jsonl"))
        .unwrap()
        .len();
    passing(&ledger, 1);
    passing(&ledger, 2);
    let journal = fs::File::options()
        .write(true)
        .open(ledger.dir().join("journal.jsonl"))
        .unwrap();
    journal.set_len(flushed).unwrap();
    assert_eq!(times(&ledger), [0; 0]);
    let view = ledger.read().unwrap();
    let identity = &view.state.tasks.values().next().unwrap().identities[0];
    assert!(!view.state.is_doubtful(identity));
    passing(&ledger, 3);
    sure(&ledger, observation(4));
    assert_eq!(times(&ledger), [3, 4]);
    // What was flushed is missed.
    journal.set_len(flushed).unwrap();
    assert_eq!(ledger.read().unwrap().issues.len(), 1);
}

/// A hundred lines of both kinds, in every order of snapshots: what was passed over is in the end as it was.
#[test]
fn observations_that_are_passed_over_are_kept() {
    for every in [2, 3, 7, 1_000] {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(folder.path().join("takeup"));
        sure(&ledger, start("one", Status::Active));
        for number in 1..=100 {
            if number % every == 0 {
                sure(&ledger, observation(number));
            } else {
                assert_eq!(passing(&ledger, number).value, 1);
            }
        }
        assert_eq!(times(&ledger), (1..=100).collect::<Vec<_>>(), "{every}");
        // Also where nobody else ever comes, somebody makes the snapshot.
        let lines = fs::read_to_string(ledger.dir().join("journal.jsonl")).unwrap();
        assert!(lines.lines().count() < 20, "{every}");
        assert!(ledger.read().unwrap().state.tasks.len() == 1);
    }
}

#[test]
fn a_new_journal_is_flushed_with_its_entry_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("takeup"));
    assert_eq!(passing(&ledger, 1).work.flushes, 2);
    assert_eq!(passing(&ledger, 2).work.flushes, 0);
}

#[test]
fn where_something_is_amiss_it_takes_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("takeup"));
    sure(&ledger, start("one", Status::Active));
    passing(&ledger, 1);
    let journal = ledger.dir().join("journal.jsonl");
    fs::File::options()
        .append(true)
        .open(&journal)
        .unwrap()
        .write_all(b"{\"v\":1,\"seq\":9,\0\0\0")
        .unwrap();
    assert!(passing(&ledger, 2).work.flushes > 0);
    assert_eq!(times(&ledger), [1, 2]);
    // An end of zeros raises doubt, and the doubt outlives what was put aside, as in any other write.
    let view = ledger.read().unwrap();
    let identity = &view.state.tasks.values().next().unwrap().identities[0];
    assert!(view.state.is_doubtful(identity));
    assert_eq!(ledger.aside().unwrap().len(), 1);
}
