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

/// Asks about what was done outside and returns the question's id.
fn asked(scratch: &Scratch) -> String {
    let found = scratch
        .takeup(&["evaluate", "t1", "--session", "s1", "--json"])
        .exits(3)
        .json();
    found["data"]["reviewId"].as_str().unwrap().to_owned()
}

fn shell(scratch: &Scratch, folder: &str, script: &str) {
    let mut command = std::process::Command::new("sh");
    scratch.dress(&mut command);
    command
        .current_dir(scratch.repo().join(folder))
        .args(["-c", script]);
    takeup_tests::Ran::of(command.output().unwrap()).exits(0);
}

#[test]
fn what_must_be_avoided_is_put_back_and_then_the_task_goes_on() {
    for (script, how) in [
        ("echo 2 > g/z", "git checkout "),
        ("echo 2 > g/z; git commit -qam z", "git checkout "),
        ("git rm -q g/z", "git checkout "),
        ("rm g/z; git commit -qam z", "git checkout "),
        ("echo 2 > g/new", "git clean -f -- :/g/new"),
        (
            "mkdir g/deep; echo 2 > 'g/deep/n[e]w'",
            "git clean -f -- ':(top,literal)g/deep/n[e]w'",
        ),
        ("echo 2 > g/new; git add .", "git rm -f -- :/g/new"),
        (
            "echo 2 > g/new; git add .; git commit -qm n",
            "git rm -f -- :/g/new",
        ),
    ] {
        let scratch = scratch();
        scratch.write("g/z", "1\n");
        scratch.write("g/also", "1\n");
        scratch.write("sub/x", "1\n");
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-q", "-m", "g"]);
        begin_without_g(&scratch);
        shell(&scratch, "", script);
        let id = asked(&scratch);
        // While it is not back there is no yes, and none is proposed.
        let shown = scratch.takeup(&["review", "show", &id]).exits(0).stdout;
        assert!(!shown.contains("review approve"), "{script}: {shown}");
        let shown = scratch
            .takeup(&["review", "show", &id, "--json"])
            .exits(0)
            .json();
        let command = shown["data"]["reviews"][0]["notBack"]["commands"][0]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(command.starts_with(how), "{script}: {command}");
        for words in [&["--confirm"][..], &["--confirm", "--content-changed"], &[]] {
            let words = [&["review", "approve", &id, "--json"], words].concat();
            let refused = scratch.takeup(&words).exits(1);
            fails_with(&refused, "not-allowed");
            assert_eq!(refused.json()["next"]["command"], command, "{script}");
        }
        // The command that is proposed works from every folder, and then one yes is enough.
        shell(&scratch, "sub", &command);
        let shown = scratch.takeup(&["review", "show", &id]).exits(0).stdout;
        assert!(shown.contains("review approve"), "{script}: {shown}");
        scratch
            .takeup(&["review", "approve", &id, "--confirm"])
            .exits(0);
        let seen = scratch.takeup(&["show", "t1", "--json"]).exits(0).json();
        assert_eq!(
            seen["data"]["boundary"]["revision"], 0,
            "nothing was granted"
        );
        scratch
            .takeup(&["evaluate", "t1", "--session", "s1"])
            .exits(0);
        assert_eq!(next(&scratch)["data"]["finalized"], true, "{script}");
    }
}

#[test]
fn a_yes_for_the_rest_lifts_nothing_that_must_be_avoided() {
    let scratch = started(&["--allow", "src/", "--avoid", "g"]);
    scratch.write("docs/x", "outside\n");
    scratch.write("g/z", "avoided\n");
    let id = asked(&scratch);
    scratch
        .takeup(&["review", "approve", &id, "--confirm"])
        .exits(1);
    std::fs::remove_file(scratch.repo().join("g/z")).unwrap();
    // It grants something, so it is for the content that the person knows of.
    fails_with(
        &scratch
            .takeup(&["review", "approve", &id, "--confirm", "--json"])
            .exits(3),
        "confirmation-needed",
    );
    scratch
        .takeup(&["review", "approve", &id, "--confirm", "--content-changed"])
        .exits(0);
    let seen = scratch.takeup(&["show", "t1", "--json"]).exits(0).json();
    assert_eq!(
        seen["data"]["boundary"]["allowed"],
        serde_json::json!(["src/", "docs/x"])
    );
    assert_eq!(
        seen["data"]["boundary"]["raised"][0]["added"],
        serde_json::json!(["docs/x"])
    );
    // Touched again, it is asked about again.
    scratch.write("g/z", "avoided\n");
    asked(&scratch);
    // What could not be approved is not asked for.
    let scratch = started(&["--avoid", "g"]);
    let words = [
        "review",
        "request",
        "may I?",
        "--allow",
        "g/z",
        "--session",
        "s1",
        "--json",
    ];
    fails_with(&scratch.takeup(&words).exits(1), "not-allowed");
    // Uncommitted work that stood there is in no commit: no command is proposed that would put something else there.
    let scratch = scratch_with_work();
    scratch.write("g/z", "3\n");
    let id = asked(&scratch);
    let shown = scratch
        .takeup(&["review", "show", &id, "--json"])
        .exits(0)
        .json();
    let not_back = &shown["data"]["reviews"][0]["notBack"];
    assert_eq!(not_back["paths"], serde_json::json!(["g/z"]));
    assert_eq!(not_back["commands"], serde_json::json!([]));
    scratch.write("g/z", "2\n");
    scratch
        .takeup(&["review", "approve", &id, "--confirm"])
        .exits(0);
}

fn scratch_with_work() -> Scratch {
    let scratch = scratch();
    scratch.write("g/z", "1\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-q", "-m", "g"]);
    scratch.write("g/z", "2\n");
    begin_without_g(&scratch);
    scratch
}

/// Begins a task that must avoid the folder `g`.
fn begin_without_g(scratch: &Scratch) {
    let start = ["start", "t1", "--session", "s1", "--avoid", "g"];
    scratch
        .takeup(&[&start[..], &["--no-checks"]].concat())
        .exits(0);
}

#[test]
fn a_pattern_is_read_from_the_folder_it_was_given_in() {
    let scratch = scratch();
    let sub = scratch.repo().join("app/[id]");
    for path in ["app/[id]/x", "app/[id]/y", "app/i/x", "app/z", "x"] {
        scratch.write(path, "1\n");
    }
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-q", "-m", "all"]);
    // Plain git says which files the same words mean there.
    let judge = |pattern: &str| {
        let named = scratch.git_in(&sub, &["ls-files", "--full-name", "--", pattern]);
        named.lines().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    for (number, pattern) in [
        "x",
        "./y",
        "../z",
        "../i",
        "..",
        ":/x",
        ":/app/*",
        "../*",
        ":(top)app/i",
    ]
    .into_iter()
    .enumerate()
    {
        let title = format!("t{number}");
        let words = [
            "start",
            &title,
            "--session",
            "s1",
            "--no-checks",
            "--allow",
            pattern,
            "--json",
        ];
        scratch.takeup_in(&sub, &words).exits(0);
        let mut allowed = Vec::new();
        for path in judge(":/") {
            scratch.write(&path, "2\n");
            let ran = scratch.takeup(&["diff", &title, "--session", "s1", "--json"]);
            let paths = ran.exits(1).json()["data"]["changes"]["paths"].clone();
            assert_eq!(paths.as_array().unwrap().len(), 1, "{paths:#}");
            if paths[0]["insideBoundary"] == true {
                allowed.push(path.clone());
            }
            scratch.git(&["checkout", "-q", "."]);
        }
        assert_eq!(allowed, judge(pattern), "{pattern}");
    }
    for pattern in ["../../..", "../../../x", "*.tsx"] {
        let words = [
            "start",
            "no",
            "--session",
            "s1",
            "--allow",
            pattern,
            "--json",
        ];
        fails_with(&scratch.takeup_in(&sub, &words).exits(1), "not-allowed");
    }
    let words = [
        "review",
        "request",
        "may I",
        "--task",
        "t0",
        "--session",
        "s1",
        "--allow",
        "../i",
        "--json",
    ];
    let asked = scratch.takeup_in(&sub, &words).exits(0).json();
    assert_eq!(asked["data"]["review"]["requestedBoundary"][0], "app/i");
}

#[test]
fn a_boundary_around_what_is_never_looked_at_is_said_to_hold_nothing() {
    let scratch = scratch();
    scratch.write(".gitignore", ".env\nbuild/\n*.log\nkept.log\n/gen/*\n");
    for path in ["kept.log", "src/a", "gen/tracked"] {
        scratch.write(path, "1\n");
    }
    scratch.git(&["add", "-f", "-A"]);
    scratch.git(&["commit", "-q", "-m", "all"]);
    let unseen = [
        ".env",
        "build",
        "build/deep/",
        "src/*.log",
        "gen",
        ".agent-context/",
        ".git/hooks",
    ];
    let seen = ["kept.log", "src", "src/b", "*.txt", "nowhere"];
    let mut words = vec!["start", "t1", "--session", "s1", "--no-checks"];
    for glob in unseen.iter().chain(&seen) {
        words.extend(["--avoid", glob]);
    }
    let said = scratch
        .takeup(&[&words[..], &["--json"]].concat())
        .exits(0)
        .json();
    assert_eq!(said["data"]["unseen"], serde_json::json!(unseen));
    let text = scratch.takeup(&words).exits(0).stdout;
    assert!(text.contains("warning: .env build "), "{text}");
    // It is so: what was to be avoided is changed, and nobody notices.
    scratch.write(".env", "2\n");
    scratch.write("gen/other", "2\n");
    scratch
        .takeup(&["finish", "t1", "--session", "s1"])
        .exits(0);
}
