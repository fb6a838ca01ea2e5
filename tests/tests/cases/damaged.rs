//! A damaged ledger is said to be one, in every answer that rests on it.
use std::path::{Path, PathBuf};

use takeup_tests::Scratch;

use super::{fails_with, scratch};

/// Makes five tasks, each in a session of its own. Returns the ledger's folder.
fn five() -> (Scratch, PathBuf) {
    let scratch = scratch();
    for number in 1..=5 {
        scratch
            .takeup(&[
                "start",
                &format!("task {number}"),
                "--session",
                &format!("s{number}"),
            ])
            .exits(0);
    }
    let folder = scratch.repo().join(".git/takeup");
    (scratch, folder)
}

fn cut(path: &Path, bytes: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    let size = file.metadata().unwrap().len();
    file.set_len(size - bytes).unwrap();
}

/// anthropics/claude-code#52387 and #59811: a damaged store read as an empty one, and the session was "not found".
#[test]
fn what_is_not_found_in_a_damaged_ledger_may_be_among_what_is_lost() {
    let (scratch, folder) = five();
    let journal = folder.join("journal.jsonl");
    cut(&journal, 20);
    let asked = [
        &["save", "--session", "s5"][..],
        &["show", "task-5"],
        &["resume", "task-5", "--confirm"],
        &["inspect", "task-5"],
        &["inspect", "--from", "s5"],
    ];
    for words in asked {
        let ran = scratch
            .takeup(&[words, &["--json"]].concat())
            .exits(4)
            .json();
        let issues = ran["data"]["issues"].as_array().unwrap();
        assert!(
            issues
                .iter()
                .any(|issue| issue["kind"] == "torn" && issue["path"] == journal.to_str().unwrap()),
            "{words:?}: {ran:#}"
        );
        let message = ran["error"]["message"].as_str().unwrap();
        assert!(message.contains("damaged"), "{words:?}: {message}");
        assert!(message.contains(journal.to_str().unwrap()), "{message}");
    }
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    assert_eq!(answer["summary"], "4 stale-task, 2 damaged");
    // A healthy task goes on; what was put aside for it is still named where something is missed.
    scratch.takeup(&["save", "--session", "s4"]).exits(0);
    let after = scratch
        .takeup(&["save", "--session", "s5", "--json"])
        .exits(4);
    fails_with(&after, "no-such-session");
    assert!(after.stdout.contains("torn-5"), "{}", after.stdout);
    // A ledger without damage says nothing of the kind.
    let (sound, _) = five();
    let missing = sound.takeup(&["show", "task-9", "--json"]).exits(4).json();
    assert_eq!(
        missing["error"]["message"],
        "there is no task \"task-9\" here"
    );
    assert!(missing["data"].is_null());
}

#[test]
fn a_ledger_of_which_nothing_can_be_read_is_not_called_empty() {
    let (scratch, folder) = five();
    let journal = folder.join("journal.jsonl");
    let size = std::fs::metadata(&journal).unwrap().len();
    std::fs::write(&journal, vec![0; usize::try_from(size).unwrap()]).unwrap();
    for words in [&["inspect", "--json"][..], &["--json"]] {
        let answer = scratch.takeup(words).exits(0).json();
        let summary = answer["summary"].as_str().unwrap();
        assert!(summary.contains("damaged"), "{summary}");
    }
    let none = scratch.takeup(&["save"]).exits(4);
    assert!(none.stderr.contains("damaged"), "{}", none.stderr);
}

#[test]
fn a_folder_in_the_place_of_a_file_is_put_aside_on_request_and_then_all_is_well() {
    for name in ["journal.jsonl", "state.json", "acknowledged", "lock"] {
        let (scratch, folder) = five();
        let path = folder.join(name);
        drop(std::fs::remove_file(&path));
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("somebody-s"), "kept").unwrap();
        let looked = scratch.takeup(&["doctor", "--json"]);
        assert_eq!(looked.code, 1, "{name}: {}", looked.stdout);
        assert!(looked.stdout.contains(path.to_str().unwrap()), "{name}");
        let refused = scratch.takeup(&["doctor", "--fix", "--no-input"]).exits(3);
        assert!(path.is_dir(), "{name}: nothing without a yes: {refused:?}");
        scratch.takeup(&["doctor", "--fix", "--yes"]).exits(0);
        assert!(!path.is_dir(), "{name}");
        let kept = std::fs::read_dir(&folder)
            .unwrap()
            .flatten()
            .filter(|entry| entry.path().join("somebody-s").is_file())
            .count();
        assert_eq!(kept, 1, "{name}: what stood there is kept");
        scratch
            .takeup(&["start", "task 6", "--session", "s6"])
            .exits(0);
        scratch.takeup(&["save", "--session", "s6"]).exits(0);
        let tasks = scratch.takeup(&["inspect", "--json"]).exits(0).json();
        let tasks = tasks["data"]["candidates"].as_array().unwrap().len();
        assert_eq!(tasks, if name == "journal.jsonl" { 1 } else { 6 }, "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_left_alone_and_the_remedy_is_not_called_done() {
    let (scratch, folder) = five();
    let journal = folder.join("journal.jsonl");
    let before = std::fs::read(&journal).unwrap();
    // As root everything can be read, but not everything is one's own.
    let is_root = std::os::unix::fs::chown(&journal, Some(65534), None).is_ok();
    if !is_root {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&journal, std::fs::Permissions::from_mode(0o000)).unwrap();
    }
    let answer = scratch.takeup(&["doctor", "--json"]).exits(1);
    assert!(answer.stdout.contains(journal.to_str().unwrap()));
    let fixed = scratch.takeup(&["doctor", "--fix", "--yes"]);
    assert_eq!(fixed.code, 1, "{fixed:?}");
    assert!(!fixed.stdout.contains("done write"), "{}", fixed.stdout);
    let summary = scratch.takeup(&["inspect", "--json"]).exits(0).json()["summary"].clone();
    assert_eq!(summary, "no task here that can be read; 1 damaged");
    if is_root {
        std::os::unix::fs::chown(&journal, Some(0), None).unwrap();
    } else {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&journal, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(std::fs::read(&journal).unwrap(), before);
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    assert_eq!(answer["summary"], "5 resume-verification");
}

#[test]
fn a_boundary_that_git_can_compare_no_more_leaves_a_way_out() {
    let scratch = scratch();
    let start = ["start", "t1", "--session", "s1", "--no-checks"];
    scratch
        .takeup(&[&start[..], &["--allow", "b.txt"]].concat())
        .exits(0);
    scratch.write("b.txt", "b\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-q", "--amend", "-m", "another first"]);
    scratch.git(&["reflog", "expire", "--expire=now", "--all"]);
    scratch.git(&["gc", "-q", "--prune=now"]);
    let refused = scratch
        .takeup(&["finish", "t1", "--session", "s1", "--json"])
        .exits(1);
    fails_with(&refused, "boundary-unknown");
    let hint = refused.json()["error"]["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("`git takeup abandon t1`"), "{hint}");
    scratch
        .takeup(&["abandon", "t1", "--session", "s1"])
        .exits(0);
    let again = [&start[..], &["--allow", "b.txt"]].concat();
    scratch.takeup(&again).exits(0);
    scratch.write("b.txt", "c\n");
    let of = ["finish", "t1-2", "--session", "s1"];
    scratch.takeup(&of).exits(0);
}
