//! Evidence, the plan, secrets, and the hand-over.
use std::process::Stdio;

use super::{fails_with, scratch};

fn planned(command: &str) -> takeup_tests::Scratch {
    let scratch = scratch();
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--check", command])
        .exits(0);
    scratch
}

fn next_step(scratch: &takeup_tests::Scratch) -> serde_json::Value {
    scratch
        .takeup(&["next", "--session", "s1", "--json"])
        .exits(0)
        .json()
}

fn proof(scratch: &takeup_tests::Scratch) -> String {
    next_step(scratch)["data"]["evidence"][0]["proof"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn old_runs_are_no_proof_of_other_content() {
    let scratch = planned("test -f a.txt");
    assert_eq!(proof(&scratch), "missing");
    scratch.write("a.txt", "two\n");
    scratch
        .takeup(&["check", "--session", "s1", "--", "test", "-f", "a.txt"])
        .exits(0);
    scratch.write("a.txt", "three\n");
    assert_eq!(proof(&scratch), "outdated");
    fails_with(
        &scratch
            .takeup(&["finish", "--session", "s1", "--json"])
            .exits(1),
        "not-proved",
    );
    // A look that happens between evaluate and next decides, not the evaluation.
    scratch.write("a.txt", "two\n");
    scratch.takeup(&["evaluate", "--session", "s1"]).exits(0);
    scratch.write("a.txt", "three\n");
    let step = next_step(&scratch);
    assert_eq!(step["data"]["finalized"], false);
    scratch.write("a.txt", "two\n");
    let step = next_step(&scratch);
    assert_eq!(step["data"]["finalized"], true);
    assert_eq!(step["data"]["nextAction"], "finalize");
    let revision = step["data"]["identity"]["revision"].clone();
    let again = scratch
        .takeup(&["next", "t1", "--session", "s1", "--json"])
        .exits(0)
        .json();
    assert_eq!(again["data"]["identity"]["revision"], revision);
}

#[test]
fn a_check_that_changes_the_tree_or_fails_or_cannot_fail_proves_nothing() {
    let scratch = planned("sh -c 'echo x >> a.txt'");
    scratch
        .takeup(&["check", "--session", "s1", "--planned", "1"])
        .exits(0);
    assert_eq!(proof(&scratch), "unsteady");
    scratch.takeup(&["plan", "remove", "1"]).exits(0);
    scratch.takeup(&["plan", "add", "false"]).exits(0);
    scratch
        .takeup(&["check", "--session", "s1", "--planned", "1"])
        .exits(1);
    assert_eq!(proof(&scratch), "failed");
    scratch.takeup(&["plan", "remove", "false"]).exits(0);
    scratch
        .takeup(&["plan", "add", "true", "--must-fail", "true"])
        .exits(0);
    scratch
        .takeup(&["check", "--session", "s1", "--planned", "1"])
        .exits(0);
    assert_eq!(proof(&scratch), "no-control");
    // Nor does a control that could not be run, or was killed, show anything.
    for control in [
        "./no-such-script.sh",
        "./a.txt",
        "kill -KILL $$",
        "sh -c 'kill -TERM $$'; exit $?",
    ] {
        scratch
            .takeup(&["plan", "add", "true", "--must-fail", control])
            .exits(0);
        let ran = scratch
            .takeup(&["check", "--session", "s1", "--planned", "1"])
            .exits(0);
        assert!(ran.stderr.contains("did not fail"), "{}", ran.stderr);
        assert_eq!(proof(&scratch), "no-control", "{control}");
    }
    scratch
        .takeup(&["plan", "add", "true", "--must-fail", "false"])
        .exits(0);
    scratch
        .takeup(&["check", "--session", "s1", "--planned", "1"])
        .exits(0);
    let step = next_step(&scratch);
    assert_eq!(step["data"]["finalized"], true);
}

#[test]
fn reported_evidence_counts_only_where_the_user_says_so() {
    let scratch = planned("make test");
    scratch
        .takeup(&[
            "evidence",
            "add",
            "--command",
            "make test",
            "--exit-code",
            "0",
            "--session",
            "s1",
        ])
        .exits(0);
    assert_eq!(proof(&scratch), "only-reported");
    // The repository's own configuration may not say so.
    scratch.git(&["config", "takeup.countReported", "true"]);
    assert_eq!(proof(&scratch), "only-reported");
    let mut command = scratch.program_in(&scratch.repo());
    command
        .args(["next", "--session", "s1", "--json"])
        .env("TAKEUP_COUNT_REPORTED", "true");
    let ran = takeup_tests::Ran::of(command.output().unwrap()).exits(0);
    assert_eq!(ran.json()["data"]["finalized"], true);
}

#[test]
fn check_ends_as_the_command_does() {
    let scratch = planned("true");
    for (words, exit) in [
        (&["sh", "-c", "exit 3"][..], 3),
        (&["sh", "-c", "exit 255"], 255),
        (&["sh", "-c", "kill -TERM $$"], 143),
        (&["sh", "-c", "kill -KILL $$"], 137),
        (&["no-such-program-anywhere"], 127),
        (&["/etc/hostname"], 126),
    ] {
        let ran = scratch.takeup(&[&["check", "--session", "s1", "--"], words].concat());
        assert_eq!(ran.code, exit, "{words:?}: {}", ran.stderr);
    }
    // A closed standard input, much output, and a process that is left behind and holds the pipe.
    let mut command = scratch.program_in(&scratch.repo());
    command.args([
        "check",
        "--session",
        "s1",
        "--",
        "sh",
        "-c",
        "cat; yes | head -c 3000000; sleep 1000 & echo $! > ../left",
    ]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout.len(), 3_000_000);
    let left = std::fs::read_to_string(scratch.path().join("left")).unwrap();
    let pid = rustix::process::Pid::from_raw(left.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    // As JSON, the command's own output goes elsewhere.
    let ran = scratch
        .takeup(&["check", "--session", "s1", "--json", "--", "echo", "hello"])
        .exits(0);
    let digest = ran.json()["data"]["evidence"]["stdout"].clone();
    assert_eq!(digest["size"], 6);
    assert_eq!(
        digest["sha256"],
        "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
    );
    assert!(ran.stderr.contains("hello"));
}

#[test]
fn a_plan_is_empty_only_when_somebody_said_so() {
    let scratch = scratch();
    scratch.takeup(&["start", "t1", "--session", "s1"]).exits(0);
    fails_with(
        &scratch
            .takeup(&["finish", "--session", "s1", "--json"])
            .exits(1),
        "no-plan",
    );
    let done = scratch
        .takeup(&["finish", "--session", "s1", "--no-checks", "--json"])
        .exits(0)
        .json();
    assert!(
        done["data"]["notProved"]
            .as_str()
            .unwrap()
            .contains("nothing was proved")
    );
}

/// A text that looks like a token of a well-known kind, put together here so that none stands in the repository.
fn token() -> String {
    format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
}

#[test]
fn no_secret_reaches_a_record_a_list_or_a_document() {
    // P19: entireio/cli#1716.
    let scratch = scratch();
    let token = token();
    let commit = scratch.git(&["rev-parse", "HEAD"]);
    let uuid = "123e4567-e89b-12d3-a456-426614174000";
    let title = format!("use {token} at {commit}");
    scratch
        .takeup(&["start", &title, "--session", "s1", "--no-checks"])
        .exits(0);
    // A planned check cannot hold a secret: masked, it could neither be run nor told from another.
    let header = format!("curl -H 'Authorization: Bearer {token}' x");
    fails_with(
        &scratch.takeup(&["plan", "add", &header, "--json"]).exits(1),
        "not-allowed",
    );
    let refused = scratch.takeup(&[
        "start",
        "other",
        "--session",
        "s2",
        "--check",
        &header,
        "--json",
    ]);
    fails_with(&refused.exits(1), "not-allowed");
    let task = "use-".to_owned();
    let url = format!("https://ana:{token}@example.invalid/x {uuid}");
    scratch
        .takeup(&[
            "note",
            &format!("the token is {token}, see {url}"),
            "--session",
            "s1",
        ])
        .exits(0);
    let mut command = scratch.program_in(&scratch.repo());
    command.env("API_TOKEN", &token).args([
        "check",
        "--session",
        "s1",
        "--",
        "sh",
        "-c",
        &format!("printf %s {token}"),
    ]);
    assert!(command.output().unwrap().status.success());
    scratch
        .takeup(&[
            "review",
            "request",
            &format!("is {token} fine?"),
            "--session",
            "s1",
        ])
        .exits(0);
    let mut shown = String::new();
    for words in [
        &["inspect"][..],
        &["inspect", "--json"],
        &["show", &task],
        &["show", &task, "--json"],
        &["log", &task],
        &["handover", &task],
        &["handover", &task, "--json"],
        &["review", "--json"],
        &["plan", "--json"],
        &[],
    ] {
        let ran = scratch.takeup(words);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.stderr);
        shown.push_str(&ran.stdout);
        shown.push_str(&ran.stderr);
    }
    for entry in std::fs::read_dir(scratch.repo().join(".git/takeup"))
        .unwrap()
        .flatten()
    {
        shown.push_str(&String::from_utf8_lossy(
            &std::fs::read(entry.path()).unwrap_or_default(),
        ));
    }
    assert!(!shown.contains(&token), "the token got through");
    assert!(shown.contains(uuid) && shown.contains(&commit[..10]));
    assert!(shown.contains("[redacted:"));
}

#[test]
fn a_hand_over_carries_text_as_data_and_says_what_changed() {
    // P20: yigitkonur/cli-continues#17.
    let scratch = scratch();
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    let note = "-first \"quoted\" $HOME `id`\nsecond ''' $(touch pwned)\ndritte Zeile äöü 修复";
    let mut command = scratch.program_in(&scratch.repo());
    command
        .args(["note", "--session", "s1", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), note.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    scratch.write("a.txt", "changed\n");
    let ran = scratch.takeup(&["handover", "t1", "--to", "opencode", "--dry-run"]);
    // OpenCode is not installed here: a clear error, and nothing is written.
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stderr.contains("not installed"), "{}", ran.stderr);
    let document = scratch.takeup(&["handover", "t1"]).exits(0).stdout;
    for line in note.lines() {
        assert!(document.contains(line), "{document}");
    }
    assert!(document.contains("stale-task") && document.contains("a.txt"));
    assert!(!scratch.repo().join("pwned").exists());
    fails_with(
        &scratch
            .takeup(&["handover", "t1", "--to", "nobody", "--json"])
            .exits(4),
        "no-such-agent",
    );
}

#[test]
fn a_caller_cannot_replace_the_plans_control() {
    let scratch = scratch();
    scratch.takeup(&["start", "t1", "--session", "s1"]).exits(0);
    scratch
        .takeup(&["plan", "add", "true", "--must-fail", "true"])
        .exits(0);
    scratch
        .takeup(&[
            "check",
            "--session",
            "s1",
            "--must-fail",
            "false",
            "--",
            "true",
        ])
        .exits(0);
    assert_eq!(proof(&scratch), "no-control");
}

/// What a line means depends on where it runs, so a planned check has one place.
#[test]
fn a_planned_check_runs_at_the_top_and_a_run_elsewhere_is_none_of_it() {
    let scratch = planned("sh t.sh");
    scratch.write("t.sh", "exit 1\n");
    scratch.write("sub/t.sh", "exit 0\n");
    let sub = scratch.repo().join("sub");
    let check = |folder: &std::path::Path, words: &[&str], exit| {
        let words = [&["check", "--session", "s1", "--json"], words].concat();
        scratch.takeup_in(folder, &words).exits(exit).json()
    };
    // It passes there, and is no proof.
    let answer = check(&sub, &["--", "sh", "t.sh"], 0);
    assert_eq!(answer["data"]["planned"], true, "{answer}");
    assert_eq!(answer["data"]["inOtherFolder"], true, "{answer}");
    assert_eq!(answer["data"]["evidence"]["folder"], "sub");
    assert_eq!(proof(&scratch), "elsewhere");
    let words = ["check", "--session", "s1", "--", "sh", "t.sh"];
    let said = scratch.takeup_in(&sub, &words).exits(0).stderr;
    assert!(said.contains("its folder is sub"), "{said}");
    fails_with(
        &scratch
            .takeup(&["finish", "--session", "s1", "--json"])
            .exits(1),
        "not-proved",
    );
    let log = scratch.takeup(&["log", "t1"]).exits(0).stdout;
    assert!(log.contains(", in sub"), "{log}");
    // By its number it runs at the top, wherever that is said.
    let answer = check(&sub, &["--planned", "1"], 1);
    assert_eq!(answer["data"]["inOtherFolder"], false, "{answer}");
    assert_eq!(answer["data"]["evidence"]["folder"], ".");
    assert_eq!(proof(&scratch), "failed");
    // Neither does a failure elsewhere count.
    scratch.write("t.sh", "exit 0\n");
    scratch.write("sub/t.sh", "exit 1\n");
    check(&sub, &["--planned", "1"], 0);
    check(&sub, &["--", "sh", "t.sh"], 1);
    assert_eq!(proof(&scratch), "fresh");
}

/// A link to the top is the top; a control runs where its check does.
#[test]
fn the_top_is_a_place_and_no_name() {
    let scratch = planned("test -f a.txt");
    scratch.write("sub/b.txt", "");
    let plan = ["plan", "add", "test -f a.txt", "--must-fail", "test -f sub"];
    scratch.takeup(&plan).exits(0);
    std::os::unix::fs::symlink(scratch.repo(), scratch.path().join("link")).unwrap();
    let words = ["check", "--session", "s1", "--planned", "1"];
    scratch
        .takeup_in(&scratch.repo().join("sub"), &words)
        .exits(0);
    let line = ["check", "--session", "s1", "--", "test", "-f", "a.txt"];
    scratch
        .takeup_in(&scratch.path().join("link"), &line)
        .exits(0);
    assert_eq!(proof(&scratch), "fresh");
}

/// A planned line is one word of the plan; given to `check` as one word, too, it is that line.
#[test]
fn a_planned_line_may_be_given_as_one_word() {
    let line = "test -f a.txt && test ! -e 'no such file'";
    let scratch = planned(line);
    // Another line is the name of a program, as everywhere.
    scratch
        .takeup(&["check", "--session", "s1", "--", "test -f a.txt"])
        .exits(127);
    assert_eq!(proof(&scratch), "missing");
    scratch
        .takeup(&["check", "--session", "s1", "--", line])
        .exits(0);
    assert_eq!(proof(&scratch), "fresh");
}

#[test]
fn changes_of_the_plan_are_in_the_log_with_their_doer() {
    let scratch = planned("make test");
    let remove = ["plan", "remove", "-t", "t1", "1"];
    scratch.takeup(&remove).exits(0);
    scratch
        .takeup(&["plan", "add", "-t", "t1", "-s", "s1", "--no-checks"])
        .exits(0);
    let log = scratch.takeup(&["log", "t1", "--json"]).exits(0).json();
    let edits: Vec<(String, String)> = log["data"]["lines"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| line["event"] == "plan")
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap().to_owned();
            (text("by"), text("message"))
        })
        .collect();
    assert_eq!(edits.len(), 2, "{edits:?}");
    assert!(edits[0].0.starts_with("person:"), "{edits:?}");
    assert!(edits[0].1.contains("make test"), "{edits:?}");
    assert!(edits[1].0.ends_with(":s1"), "{edits:?}");
}

#[test]
fn another_agent_does_not_change_what_has_to_be_proved() {
    let scratch = planned("make test");
    for words in [
        &["plan", "remove", "-t", "t1", "1", "--json"][..],
        &["plan", "add", "-t", "t1", "--no-checks", "--json"],
    ] {
        let mut other = scratch.program_in(&scratch.repo());
        other
            .args(words)
            .env("TAKEUP_AGENT", "codex")
            .env("TAKEUP_SESSION", "B");
        let ran = takeup_tests::Ran::of(other.output().unwrap()).exits(1);
        fails_with(&ran, "not-allowed");
    }
    let plan = ["plan", "list", "-t", "t1", "--json"];
    let plan = scratch.takeup(&plan).exits(0).json();
    assert_eq!(plan["data"]["plan"]["checks"][0]["command"], "make test");
}

#[test]
fn a_planned_check_is_one_line() {
    let scratch = planned("true");
    for words in [
        &["plan", "add", "echo a\nrm -rf b"][..],
        &["plan", "add", "echo a\rb"],
        &["plan", "add", "echo a", "--must-fail", "false\ntrue"],
        &["start", "t2", "--session", "s2", "--check", "true\nfalse"],
    ] {
        fails_with(
            &scratch.takeup(&[words, &["--json"]].concat()).exits(1),
            "not-allowed",
        );
    }
}

/// Damages the last line of the journal that holds a text: its checksum is wrong then.
fn damage(scratch: &takeup_tests::Scratch, text: &str) {
    let path = scratch.repo().join(".git/takeup/journal.jsonl");
    let journal = std::fs::read_to_string(&path).unwrap();
    let at = journal.rfind(text).unwrap();
    let mut bytes = journal.into_bytes();
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
}

/// A run, a planned check or a question may be lost in damage: what is left proves nothing until somebody looked.
#[test]
fn a_damaged_ledger_proves_nothing() {
    let scratch = planned("test ! -e .git/broken");
    let run = ["check", "--session", "s1", "--planned", "1"];
    scratch.takeup(&run).exits(0);
    std::fs::write(scratch.repo().join(".git/broken"), "").unwrap();
    scratch.takeup(&run).exits(1);
    // The failure is lost, and the pass of before is the last run that can be read.
    damage(&scratch, "\"kind\":\"exited\"");
    let next = |more: &[&str]| {
        let words = [&["next", "--session", "s1", "--json"][..], more].concat();
        scratch.takeup(&words).exits(0).json()
    };
    let step = next(&[]);
    assert_eq!(step["data"]["nextAction"], "look-at-damage", "{step:#}");
    assert_eq!(step["data"]["recordsLost"], true);
    let text = scratch.takeup(&["next", "--session", "s1"]).exits(0).stdout;
    assert!(
        text.contains("may be lost") && text.contains("--looked"),
        "{text}"
    );
    fails_with(
        &scratch
            .takeup(&["finish", "--session", "s1", "--json"])
            .exits(1),
        "records-lost",
    );
    scratch.takeup(&["evaluate", "--session", "s1"]).exits(1);
    // What the session says of its content lifts no doubt of what has to be proved.
    scratch.takeup(&["save", "--session", "s1"]).exits(0);
    assert_eq!(next(&[])["data"]["nextAction"], "look-at-damage");
    let step = next(&["--looked"]);
    assert_eq!(step["data"]["nextAction"], "check", "{step:#}");
    assert_eq!(step["data"]["evidence"][0]["proof"], "missing");
    scratch.takeup(&run).exits(1);
    std::fs::remove_file(scratch.repo().join(".git/broken")).unwrap();
    scratch.takeup(&run).exits(0);
    assert_eq!(next(&[])["data"]["finalized"], true);
}

#[test]
fn every_step_that_is_proposed_can_be_run() {
    let scratch = scratch();
    scratch.takeup(&["start", "t1", "--session", "s1"]).exits(0);
    let step = next_step(&scratch);
    assert_eq!(step["data"]["nextAction"], "plan");
    let command = step["next"]["command"].as_str().unwrap();
    let words: Vec<&str> = command.split(' ').skip(2).collect();
    scratch.takeup(&words).exits(0);
    // A check that cannot fail is mended, and not run again.
    let plan = ["plan", "add", "true", "--must-fail", "true", "-s", "s1"];
    scratch.takeup(&plan).exits(0);
    scratch
        .takeup(&["check", "--session", "s1", "--planned", "1"])
        .exits(0);
    let step = next_step(&scratch);
    assert_eq!(step["data"]["nextAction"], "repair", "{step:#}");
}

/// An agent that does not say which session it is owns nothing of another's.
#[test]
fn an_agent_without_a_session_does_not_speak_for_another() {
    let scratch = scratch();
    let mut living = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    let pid = living.id().to_string();
    let start = ["start", "t1", "--session", "s1", "--check", "true"];
    scratch
        .takeup(&[&start[..], &["--pid", &pid]].concat())
        .exits(0);
    scratch
        .takeup(&["check", "--session", "s1", "--planned", "1"])
        .exits(0);
    scratch.write("foreign.txt", "not of s1\n");
    for words in [
        &["save", "--json"][..],
        &["save", "--end", "--json"],
        &["evaluate", "--json"],
        &["next", "--json"],
        &["finish", "--json"],
        &["check", "--json", "--", "true"],
        &["plan", "remove", "1", "--json"],
    ] {
        let mut cursor = scratch.program_in(&scratch.repo());
        cursor.args(words).env("TAKEUP_AGENT", "cursor");
        let ran = takeup_tests::Ran::of(cursor.output().unwrap()).exits(4);
        fails_with(&ran, "held-by-other");
    }
    // Looking is free.
    let mut cursor = scratch.program_in(&scratch.repo());
    cursor.arg("show").env("TAKEUP_AGENT", "cursor");
    takeup_tests::Ran::of(cursor.output().unwrap()).exits(0);
    let verdict = || {
        let found = scratch.takeup(&["inspect", "--json"]).exits(0).json();
        found["data"]["candidates"][0]["verdict"].clone()
    };
    assert_eq!(verdict(), "in-use");
    living.kill().unwrap();
    living.wait().unwrap();
    assert_eq!(verdict(), "stale-task");
}

/// git's tree is the same with a submodule checked out and without: what a check saw of it is not.
#[test]
fn a_submodule_that_is_gone_is_no_content_to_prove_anything_on() {
    let scratch = scratch();
    let inner = scratch.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("a.txt"), "one\n").unwrap();
    scratch.git_in(&inner, &["init", "-q"]);
    scratch.git_in(&inner, &["add", "a.txt"]);
    scratch.git_in(&inner, &["commit", "-q", "-m", "one"]);
    let add = ["submodule", "--quiet", "add", "../inner", "sm"];
    scratch.git(&[&["-c", "protocol.file.allow=always"][..], &add].concat());
    scratch.git(&["commit", "-q", "-m", "sm"]);
    let start = [
        "start",
        "t1",
        "--session",
        "s1",
        "--check",
        "test -f sm/a.txt",
    ];
    scratch.takeup(&start).exits(0);
    scratch
        .takeup(&["check", "--session", "s1", "--planned", "1"])
        .exits(0);
    let proof = || {
        let ran = scratch.takeup(&["evaluate", "--session", "s1", "--json"]);
        ran.json()["data"]["evidence"][0]["proof"].clone()
    };
    assert_eq!(proof(), "fresh");
    scratch.git(&["submodule", "--quiet", "deinit", "-f", "sm"]);
    assert_eq!(proof(), "outdated");
    fails_with(
        &scratch
            .takeup(&["finish", "--session", "s1", "--json"])
            .exits(1),
        "not-proved",
    );
}
