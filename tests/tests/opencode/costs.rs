//! What a look costs, whatever the number of records.

use serde_json::json;
use takeup_tests::Scratch;

use super::{digest, identity, put, scratch};

/// Leaves so many tasks, half of them as the tree is now.
fn left(count: usize) -> Scratch {
    let scratch = scratch();
    scratch.write("a.txt", "changed\n");
    let present = digest(&scratch);
    for number in 0..count {
        let mut record = identity(
            &scratch,
            &format!("task-{number}"),
            &format!("ses_{number}"),
        );
        if number % 2 == 0 {
            record["latestWorkingTreeFingerprint"] = json!(present);
        }
        put(
            &scratch,
            &format!("task-identity-task-{number}-ses-{number}.json"),
            &record,
        );
    }
    scratch
}

/// Runs the program with a `git` that writes down what it is called with, and returns those lines.
fn calls_of_git(scratch: &Scratch, words: &[&str]) -> Vec<String> {
    let log = scratch.path().join("calls");
    let git = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("git"))
        .find(|git| git.is_file())
        .unwrap();
    let text = format!(
        "#!/bin/sh\necho \"$*\" >> {}\nexec {} \"$@\"\n",
        log.display(),
        git.display()
    );
    scratch.put_program("git", &text);
    scratch.takeup(words).exits(0);
    std::fs::remove_file(scratch.path().join("bin/git")).unwrap();
    let calls = std::fs::read_to_string(&log).unwrap_or_default();
    std::fs::remove_file(&log).unwrap_or_default();
    calls.lines().map(str::to_owned).collect()
}

#[test]
fn one_fingerprint_of_the_plugins_kind_a_command_whatever_the_number_of_tasks() {
    let mut of_one = Vec::new();
    for count in [1, 40] {
        let scratch = left(count);
        let calls = calls_of_git(&scratch, &["inspect", "--json"]);
        let diffs = calls
            .iter()
            .filter(|call| call.starts_with("diff --binary HEAD"))
            .count();
        assert_eq!(diffs, 1, "{count} tasks: {calls:#?}");
        // And nothing else is asked once a task.
        if count == 1 {
            of_one = calls;
        } else {
            assert_eq!(calls.len(), of_one.len(), "{calls:#?} {of_one:#?}");
        }
    }
    // Where no task could be equal, nothing is asked at all.
    let scratch = scratch();
    let calls = calls_of_git(&scratch, &["inspect", "--json"]);
    assert!(
        !calls.iter().any(|call| call.starts_with("diff")),
        "{calls:#?}"
    );
}

#[test]
fn the_engines_own_look_is_one_whatever_the_number_of_tasks() {
    let entries = |count| {
        let scratch = left(count);
        let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
        answer["data"]["look"]["counters"]["entries"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(entries(1), entries(40));
}
