//! What a task may edit.
use serde_json::Value;
use takeup_tests::Scratch;

use super::{fails_with, scratch};

/// Starts `t1` in session `s1` with a check that passes, and with more words.
fn started(more: &[&str]) -> Scratch {
    let scratch = scratch();
    let words = [&["start", "t1", "--session", "s1", "--check", "true"], more].concat();
    scratch.takeup(&words).exits(0);
    scratch
}

fn checked(scratch: &Scratch) {
    scratch
        .takeup(&["check", "--session", "s1", "--", "true"])
        .exits(0);
}

fn next(scratch: &Scratch) -> Value {
    scratch
        .takeup(&["next", "t1", "--session", "s1", "--json"])
        .exits(0)
        .json()
}

#[test]
fn a_task_outside_its_boundary_is_not_closed() {
    for (words, path) in [
        (&["--allow", "src/"][..], "docs/x"),
        (&["--avoid", "docs/"], "docs/x"),
        (&["--allow", "src/", "--avoid", "src/gen"], "src/gen/x"),
    ] {
        for commit in [false, true] {
            let scratch = started(words);
            scratch.write("src/a", "inside\n");
            scratch.write(path, "outside\n");
            if commit {
                scratch.git(&["add", "-A"]);
                scratch.git(&["commit", "-q", "-m", "outside"]);
            }
            checked(&scratch);
            fails_with(
                &scratch
                    .takeup(&["finish", "--session", "s1", "--json"])
                    .exits(3),
                "outside-boundary",
            );
            let step = next(&scratch);
            assert_eq!(step["data"]["finalized"], false, "{words:?}");
            assert_eq!(step["data"]["nextAction"], "evaluate");
            let command = step["next"]["command"].as_str().unwrap().to_owned();
            let command: Vec<&str> = command.split(' ').skip(2).collect();
            scratch.takeup(&command).exits(3);
            assert_eq!(next(&scratch)["data"]["nextAction"], "human-review");
        }
    }
    // Inside, it is closed as before.
    let scratch = started(&["--allow", "src/"]);
    scratch.write("src/a", "inside\n");
    checked(&scratch);
    assert_eq!(next(&scratch)["data"]["finalized"], true);
}

#[test]
fn what_was_approved_lets_the_task_be_closed() {
    let scratch = started(&["--allow", "src/"]);
    scratch.write("docs/x", "outside\n");
    scratch.takeup(&["evaluate", "--session", "s1"]).exits(3);
    scratch
        .takeup(&["review", "approve", "t1", "--confirm"])
        .exits(0);
    checked(&scratch);
    assert_eq!(next(&scratch)["data"]["finalized"], true);
}

#[test]
fn a_list_that_is_cut_is_no_proof_of_staying_inside() {
    let scratch = started(&["--allow", "a/"]);
    for number in 0..1_001 {
        scratch.write(&format!("a/{number:04}"), "x\n");
    }
    scratch.write("z.txt", "outside\n");
    checked(&scratch);
    let found = scratch
        .takeup(&["evaluate", "--session", "s1", "--json"])
        .exits(1)
        .json();
    assert_eq!(found["data"]["proved"], false);
    let why = found["data"]["boundaryUnknown"].as_str().unwrap();
    assert!(why.contains("1000"), "{why}");
    fails_with(
        &scratch
            .takeup(&["finish", "--session", "s1", "--json"])
            .exits(1),
        "boundary-unknown",
    );
    let step = next(&scratch);
    assert_eq!(step["data"]["finalized"], false);
    assert_eq!(step["data"]["nextAction"], "look");
    // What is committed is known path by path.
    scratch.git(&["add", "a"]);
    scratch.git(&["commit", "-q", "-m", "inside"]);
    let found = scratch
        .takeup(&["evaluate", "--session", "s1", "--json"])
        .exits(3)
        .json();
    assert_eq!(found["data"]["outsideBoundary"][0]["path"], "z.txt");
}

#[test]
fn commits_of_any_length_are_compared_whole() {
    let scratch = started(&["--allow", "a/"]);
    for number in 0..1_001 {
        scratch.write(&format!("a/{number:04}"), "x\n");
    }
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-q", "-m", "inside"]);
    checked(&scratch);
    let step = next(&scratch);
    assert_eq!(step["data"]["finalized"], true, "{step:#}");
}

#[test]
fn an_approval_is_for_the_paths_that_were_shown() {
    use std::os::unix::ffi::OsStrExt as _;
    let odd: [(&[u8], &str); 8] = [
        (b"app/[id]/page.tsx", "app/i/page.tsx"),
        (b"*", "any"),
        (b"a?", "ab"),
        (b"!x", "x"),
        (b":x", "y"),
        (b" x", "x"),
        (b"caf\xe9", "cafe"),
        (b"a\\b", "ab"),
    ];
    for (path, other) in odd {
        let scratch = started(&["--allow", "src/"]);
        let name = scratch.repo().join(std::ffi::OsStr::from_bytes(path));
        std::fs::create_dir_all(name.parent().unwrap()).unwrap();
        std::fs::write(&name, "odd\n").unwrap();
        scratch.takeup(&["evaluate", "--session", "s1"]).exits(3);
        scratch
            .takeup(&["review", "approve", "t1", "--confirm"])
            .exits(0);
        checked(&scratch);
        scratch.takeup(&["evaluate", "--session", "s1"]).exits(0);
        scratch.write(other, "not asked for\n");
        let found = scratch
            .takeup(&["evaluate", "--session", "s1", "--json"])
            .exits(3)
            .json();
        let outside = &found["data"]["outsideBoundary"];
        assert_eq!(outside.as_array().map(Vec::len), Some(1), "{outside:#}");
        assert_eq!(outside[0]["path"], other);
    }
}
