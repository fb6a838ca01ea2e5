//! What people see: one story, every human output, with times, ids and places replaced.
use insta::assert_snapshot;

use super::{left, scratch};

fn filters() -> Vec<(&'static str, &'static str)> {
    vec![
        (r"/[^\s]*takeup-test-\w+", "[SCRATCH]"),
        (r"review-[0-9a-z]{26}", "[REVIEW]"),
        (r"ok-[0-9a-f]{10}", "[TOKEN]"),
        (r"\b[0-9a-f]{40}\b", "[OID]"),
        (r"\b[0-9a-f]{10}\b", "[SHORT]"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[TIME]"),
        (r"just now|\d+ seconds? ago", "[AGO]"),
        (
            r"(?s)is\s+not\s+known: [^;]*?runs\s+in\s+it\s+too",
            "is not known: [WHY]",
        ),
    ]
}

#[test]
fn every_output_for_people_is_as_it_was() {
    let scratch = scratch();
    let mut shown = String::new();
    let mut show = |words: &[&str]| {
        let ran = scratch.takeup(words);
        shown.push_str(&format!(
            "$ git takeup {}\n{}{}[exit {}]\n\n",
            words.join(" "),
            ran.stdout,
            ran.stderr,
            ran.code
        ));
    };
    show(&["inspect"]);
    show(&[
        "start",
        "Fix login",
        "--session",
        "s1",
        "--check",
        "test -f a.txt",
        "--allow",
        "a.txt",
    ]);
    show(&["note", "the flaky test is not ours", "--session", "s1"]);
    show(&["plan"]);
    scratch.write("a.txt", "two\n");
    show(&["save", "--session", "s1", "--end"]);
    show(&["inspect"]);
    scratch.write("b.txt", "new\n");
    show(&[]);
    show(&["diff", "fix-login"]);
    show(&["resume", "fix-login", "--to", "s2", "--confirm"]);
    show(&["resume", "fix-login", "--to", "s2", "--rebuild"]);
    show(&["evaluate", "fix-login", "--session", "s2"]);
    scratch.write("c.txt", "outside\n");
    show(&["evaluate", "fix-login", "--session", "s2"]);
    let id =
        scratch.takeup(&["review", "--json"]).json()["data"]["reviews"][0]["review"]["reviewId"]
            .as_str()
            .unwrap()
            .to_owned();
    show(&["review"]);
    show(&["review", "show", &id]);
    show(&["next", "--session", "s2"]);
    show(&[
        "review",
        "approve",
        &id,
        "--confirm",
        "--by",
        "ana",
        "--remark",
        "fine",
    ]);
    show(&["check", "--session", "s2", "--planned", "1"]);
    show(&["show", "fix-login"]);
    show(&["next", "--session", "s2"]);
    show(&["log", "fix-login"]);
    show(&["inspect", "--all"]);
    insta::with_settings!({filters => filters()}, { assert_snapshot!(shown) });
}

#[test]
fn tokens_in_commits_branches_and_reasons_are_not_shown_and_not_kept() {
    let scratch = left();
    // Put together here, so that nothing secret-looking stands in the source.
    let token = format!("ghp_{}", "a1B2c3D4e5".repeat(4).get(..36).unwrap());
    scratch.git(&["checkout", "-qb", &format!("try/{token}")]);
    scratch.write("a.txt", "two\n");
    scratch.git(&["commit", "-qam", &format!("use {token} for now")]);
    scratch
        .takeup(&["save", "--session", "s1", "--end", "--reason", &token])
        .exits(0);
    scratch.write("a.txt", "three\n");
    scratch.git(&["commit", "-qam", &format!("really use {token}")]);
    for words in [
        &["inspect"][..],
        &["diff", "t1"],
        &["log", "t1"],
        &["show", "t1"],
        &["handover", "t1", "--dry-run"],
        &[],
        &["sessions"],
    ] {
        for json in [&[][..], &["--json"]] {
            let ran = scratch.takeup(&[words, json].concat());
            assert!(ran.code <= 1, "{words:?}: {}", ran.stderr);
            assert!(!ran.stdout.contains(&token), "{words:?}: {}", ran.stdout);
        }
    }
    let diff = scratch.takeup(&["diff", "t1"]).exits(1).stdout;
    assert!(diff.contains("really use [redacted:"), "{diff}");
    let kept = std::fs::read_to_string(scratch.repo().join(".git/takeup/journal.jsonl")).unwrap();
    assert!(!kept.contains(&token));
}

#[test]
fn what_turns_the_direction_of_text_is_shown_to_nobody_and_kept_as_data() {
    let scratch = scratch();
    scratch
        .takeup(&[
            "start",
            "t1",
            "--session",
            "s1",
            "--allow",
            "a.txt",
            "--no-checks",
        ])
        .exits(0);
    let name = "user\u{202e}gnp\u{200b}\u{1b}[2J.exe";
    scratch.write(name, "x");
    scratch.takeup(&["save", "--session", "s1"]).exits(0);
    for words in [
        &["evaluate", "--session", "s1"][..],
        &["inspect"],
        &["diff", "t1"],
        &["show", "t1"],
        &["review"],
        &["show", name],
        &["log", name],
    ] {
        let ran = scratch.takeup(words);
        for hidden in ['\u{202e}', '\u{200b}', '\u{1b}'] {
            assert!(!ran.stdout.contains(hidden), "{words:?}: {}", ran.stdout);
            assert!(!ran.stderr.contains(hidden), "{words:?}: {}", ran.stderr);
        }
        let json = scratch.takeup(&[words, &["--json"]].concat());
        assert!(
            !json.stdout.contains('\u{202e}'),
            "{words:?}: {}",
            json.stdout
        );
    }
    let found = scratch
        .takeup(&["evaluate", "--session", "s1", "--json"])
        .json();
    // A path's control characters are written out; the rest of it is as it is.
    assert_eq!(
        found["data"]["outsideBoundary"][0]["path"],
        name.replace('\u{1b}', "\\x1b")
    );
}

#[test]
fn a_plan_shows_its_commands_as_they_are_and_takes_its_options_anywhere() {
    let scratch = scratch();
    scratch.takeup(&["start", "t1", "--session", "s1"]).exits(0);
    let command = "printf 'a  b   c'";
    scratch
        .takeup(&["plan", "add", command, "-s", "s1"])
        .exits(0);
    scratch
        .takeup(&["plan", "--session", "s1", "add", "true"])
        .exits(0);
    scratch
        .takeup(&["plan", "remove", "true", "--session", "s1", "--task", "t1"])
        .exits(0);
    let listed = scratch
        .takeup(&["plan", "list", "-s", "s1"])
        .exits(0)
        .stdout;
    assert!(
        listed.contains(command) && listed.contains("1 check"),
        "{listed}"
    );
    let found = scratch.takeup(&["evaluate", "-s", "s1"]).exits(1).stdout;
    assert!(found.contains(command), "{found}");
}

#[test]
fn a_boundary_that_can_name_nothing_is_refused_with_the_reason() {
    let scratch = scratch();
    for (glob, why) in [
        ("/etc/passwd", "from the top"),
        ("../other", "leads out"),
        (".", "whole work tree"),
        (":(exclude)a", "magic"),
    ] {
        for option in ["--allow", "--avoid"] {
            let ran = scratch
                .takeup(&[
                    "start",
                    "t1",
                    "--session",
                    "s1",
                    &format!("{option}={glob}"),
                ])
                .exits(1);
            assert!(ran.stderr.contains(why), "{glob}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_note_that_is_too_long_is_refused_and_not_cut() {
    use std::io::Write as _;
    let scratch = left();
    let noted = |text: &str| {
        let mut child = scratch
            .program_in(&scratch.repo())
            .args(["note", "--task", "t1", "-", "--json"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // One that refuses does not read to the end.
        drop(child.stdin.take().unwrap().write_all(text.as_bytes()));
        takeup_tests::Ran::of(child.wait_with_output().unwrap())
    };
    let most = 1 << 20;
    let kept = noted(&"n".repeat(most)).exits(0).json();
    assert_eq!(kept["data"]["note"]["text"].as_str().unwrap().len(), most);
    for too_long in ["n".repeat(most + 1), "ü".repeat(most)] {
        let refused = noted(&too_long).exits(1);
        super::fails_with(&refused, "not-allowed");
    }
    let log = scratch.takeup(&["show", "t1", "--json"]).exits(0).json();
    assert_eq!(log["data"]["notes"].as_array().unwrap().len(), 1);
}

#[test]
fn work_that_is_gone_is_not_called_restored() {
    for (undo, note) in [
        (&["clean", "-fdq"][..], "D w.txt (gone)"),
        (&["stash", "-uq"], "D w.txt (gone)"),
        (
            &["config", "core.excludesFile", ".git/rules"],
            "D w.txt (ignored)",
        ),
    ] {
        let scratch = scratch();
        scratch
            .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
            .exits(0);
        scratch.write("w.txt", "work\n");
        scratch.takeup(&["save", "--session", "s1"]).exits(0);
        scratch.write(".git/rules", "w.txt\n");
        scratch.git(undo);
        for words in [&["inspect"][..], &["diff", "t1"]] {
            let said = scratch.takeup(words).stdout;
            assert!(said.contains(note), "{undo:?}: {said}");
            assert!(!said.contains("restored"), "{undo:?}: {said}");
        }
        let listed = scratch.takeup(&["diff", "t1", "--json"]).json();
        let place = listed["data"]["changes"]["paths"][0]["place"].clone();
        assert!(note.contains(place.as_str().unwrap()), "{listed}");
    }
    // What HEAD has is there again, and the work is not.
    let scratch = scratch();
    scratch.write("a.txt", "work\n");
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    scratch.git(&["checkout", "-q", "a.txt"]);
    let said = scratch.takeup(&["inspect"]).stdout;
    assert!(said.contains("M a.txt (as HEAD has it)"), "{said}");
}

#[test]
fn where_several_are_meant_the_option_that_is_named_is_there() {
    let scratch = left();
    scratch
        .takeup(&["start", "t2", "--session", "s2", "--no-checks"])
        .exits(0);
    for words in [
        &["next"][..],
        &["evaluate"],
        &["check", "--", "true"],
        &["resume"],
    ] {
        let refused = scratch.takeup(words).exits(3);
        let option = refused.stderr.split("--").nth(1).unwrap_or_default();
        let option = option.split_whitespace().next().unwrap_or_default();
        let help = scratch.takeup(&[words[0], "--help"]).exits(0).stdout;
        assert!(
            help.contains(&format!("--{option} ")),
            "{words:?}: {}",
            refused.stderr
        );
    }
}
