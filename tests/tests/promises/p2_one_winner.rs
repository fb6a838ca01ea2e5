//! Promise 2: one winner.
//!
//! Here: decisions that exclude each other, at once. Sixteen sessions that take up one task, and sessions that start and save
//! at once, are in `cases/races.rs`; forty writers on one ledger in `ledger/locks.rs`; the demo plays a race as well.
use std::sync::Barrier;

use serde_json::Value;
use takeup_tests::{Ran, Scratch};

use super::PROGRAM;

/// Runs the program many times at once.
fn at_once(scratch: &Scratch, calls: &[Vec<&str>]) -> Vec<Ran> {
    let gate = Barrier::new(calls.len());
    std::thread::scope(|scope| {
        let running: Vec<_> = calls
            .iter()
            .map(|words| {
                scope.spawn(|| {
                    gate.wait();
                    scratch.takeup(words)
                })
            })
            .collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

fn left() -> Scratch {
    let scratch = Scratch::new(PROGRAM);
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    scratch
}

fn identity(scratch: &Scratch, session: &str) -> Value {
    let shown = scratch.takeup(&["show", "t1", "--json"]).exits(0).json();
    let all = shown["data"]["candidates"].as_array().cloned();
    all.unwrap_or_else(|| panic!("{shown:#}"))
        .into_iter()
        .map(|one| one["identity"].clone())
        .find(|one| one["sessionId"] == session)
        .unwrap_or_else(|| panic!("{session} in {shown:#}"))
}

fn codes(ran: &[Ran]) -> Vec<i32> {
    ran.iter().map(|ran| ran.code).collect()
}

#[test]
fn of_a_yes_and_a_no_at_once_one_is_recorded() {
    for _ in 0..4 {
        let scratch = left();
        scratch
            .takeup(&["review", "request", "may I?", "--session", "s1"])
            .exits(0);
        let calls: Vec<Vec<&str>> = (0..6)
            .map(|number| {
                let word = if number % 2 == 0 { "approve" } else { "reject" };
                vec!["review", word, "t1", "--confirm", "--json"]
            })
            .collect();
        let ran = at_once(&scratch, &calls);
        let status = identity(&scratch, "s1")["status"].clone();
        let (said_yes, said_no): (Vec<_>, Vec<_>) = ran
            .iter()
            .enumerate()
            .filter(|(_, ran)| ran.code == 0)
            .partition(|(number, _)| number % 2 == 0);
        // The same word again may give the same answer; the other word never.
        assert!(
            said_yes.is_empty() != said_no.is_empty(),
            "{:?}, {status}",
            codes(&ran)
        );
        let expected = if said_no.is_empty() {
            "dirty"
        } else {
            "abandoned"
        };
        assert_eq!(status, expected, "{:?}", codes(&ran));
    }
}

#[test]
fn a_task_is_taken_up_or_given_up_and_not_both() {
    for _ in 0..4 {
        let scratch = left();
        scratch
            .takeup(&["save", "--session", "s1", "--end"])
            .exits(0);
        let take = ["resume", "t1", "--from", "s1", "--to", "s2", "--confirm"];
        let give = ["abandon", "t1", "--session", "s1"];
        let calls: Vec<Vec<&str>> = (0..6)
            .map(|number| {
                if number % 2 == 0 {
                    take.to_vec()
                } else {
                    give.to_vec()
                }
            })
            .collect();
        let ran = at_once(&scratch, &calls);
        let source = identity(&scratch, "s1");
        let taken = ran.iter().step_by(2).any(|ran| ran.code == 0);
        assert_eq!(source["status"], "abandoned", "{source:#}");
        assert_eq!(
            source["resumedToSessionId"] == "s2",
            taken,
            "{:?}: {source:#}",
            codes(&ran)
        );
    }
}

#[test]
fn everybody_finds_the_same_place() {
    let scratch = Scratch::new(PROGRAM);
    let ran = at_once(&scratch, &vec![vec!["init", "--json"]; 8]);
    assert_eq!(codes(&ran), [0; 8]);
    let ids: Vec<String> = ran
        .iter()
        .map(|ran| ran.json()["data"]["repositoryId"].to_string())
        .collect();
    assert_ne!(ids[0], "null");
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[test]
fn hooks_that_are_put_in_at_once_are_taken_out_whole() {
    let scratch = Scratch::new(PROGRAM);
    scratch.write(".git/hooks/post-commit", "#!/bin/sh\nexit 0\n");
    let before = super::look::content(&scratch.repo().join(".git/hooks"), &|_| false);
    let ran = at_once(&scratch, &vec![vec!["hooks", "install"]; 4]);
    assert_eq!(codes(&ran), [0; 4]);
    scratch.takeup(&["hooks", "uninstall"]).exits(0);
    let after = super::look::content(&scratch.repo().join(".git/hooks"), &|_| false);
    let changed = super::look::differences(&before, &after);
    assert!(changed.is_empty(), "{changed:#?}");
}
