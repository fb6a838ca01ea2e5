//! Which task a name means, and which one `start` means when it is called again.
use serde_json::Value;
use takeup_tests::{Ran, Scratch};

use super::{fails_with, scratch};

/// Calls with `--json` and returns the answer.
fn asked(scratch: &Scratch, code: i32, words: &[&str]) -> Ran {
    scratch.takeup(&[&["--json"], words].concat()).exits(code)
}

fn started(scratch: &Scratch, words: &[&str]) -> Value {
    let words = [&["start"], words, &["--session", "s1"]].concat();
    asked(scratch, 0, &words).json()
}

fn id(answer: &Value) -> &str {
    answer["data"]["identity"]["taskId"].as_str().unwrap()
}

#[test]
fn another_title_is_another_task_also_where_the_slug_is_the_same() {
    let scratch = scratch();
    let first = started(&scratch, &["C++ parser", "--check", "make cpp"]);
    assert_eq!(id(&first), "c-parser");
    let words = ["C parser", "--check", "make c", "--allow", "c/"];
    let second = started(&scratch, &words);
    assert_eq!(id(&second), "c-parser-2");
    assert_eq!(second["data"]["identity"]["title"], "C parser");
    assert_eq!(second["data"]["wrote"], true);
    assert_eq!(second["data"]["plan"]["checks"][0]["command"], "make c");
    // Each is found again by its title, and by its id.
    for (words, task) in [
        (&words[..], "c-parser-2"),
        (&["C parser"], "c-parser-2"),
        (&["c-parser-2"], "c-parser-2"),
        (&["C++ parser"], "c-parser"),
        (&["c++  PARSER"], "c-parser"),
        (&["c-parser"], "c-parser"),
    ] {
        let again = started(&scratch, words);
        assert_eq!(id(&again), task, "{words:?}");
        assert_eq!(again["data"]["wrote"], false, "{words:?}");
    }
    // Who is told the same work in another session is told who is at it.
    for title in ["C parser", "c-parser-2", "C++ Parser"] {
        fails_with(
            &asked(&scratch, 5, &["start", title, "--session", "s2"]),
            "task-exists",
        );
    }
    let other = asked(&scratch, 0, &["start", "C# parser", "--session", "s2"]).json();
    assert_eq!(id(&other), "c-parser-3");
}

#[test]
fn nothing_that_start_is_asked_for_is_dropped() {
    let scratch = scratch();
    let begun = ["x", "--check", "a", "--allow", "src/", "--avoid", "src/gen"];
    started(&scratch, &begun);
    let journal = || std::fs::read(scratch.repo().join(".git/takeup/journal.jsonl")).unwrap();
    let before = journal();
    for words in [
        &begun[..],
        &["x"],
        &["x", "--check", "a"],
        &["x", "--avoid", "src/gen"],
    ] {
        assert_eq!(
            started(&scratch, words)["data"]["wrote"],
            false,
            "{words:?}"
        );
    }
    for (words, said, way) in [
        (
            &["--check", "a", "--check", "b c"][..],
            "the check b c",
            "git takeup plan add --task x -- 'b c'",
        ),
        (
            &["--no-checks"],
            "nothing has to be proved",
            "git takeup plan add --no-checks --task x",
        ),
        (
            &["--allow", "docs/"],
            "--allow docs/",
            "review request --allow",
        ),
        (
            &["--allow", "src/", "--allow", "docs/"],
            "--allow docs/",
            "review request --allow",
        ),
        (&["--avoid", "src"], "--avoid src", "review request --allow"),
    ] {
        let words = [&["start", "x", "--session", "s1"], words].concat();
        let refused = asked(&scratch, 5, &words);
        fails_with(&refused, "task-differs");
        let error = &refused.json()["error"];
        let (message, hint) = (error["message"].as_str(), error["hint"].as_str());
        assert!(message.unwrap().contains(said), "{error:#}");
        assert!(hint.unwrap().contains(way), "{error:#}");
    }
    assert_eq!(journal(), before, "nothing was written");
    // The command that is named does what it says, and then the call is the same again.
    scratch
        .takeup(&["plan", "add", "--task", "x", "--session", "s1", "--", "b c"])
        .exits(0);
    started(&scratch, &["x", "--check", "a", "--check", "b c"]);
    // What a person approved since is no difference.
    scratch.write("docs/x", "outside\n");
    scratch
        .takeup(&["evaluate", "x", "--session", "s1"])
        .exits(3);
    scratch
        .takeup(&["review", "approve", "x", "--confirm"])
        .exits(0);
    assert_eq!(started(&scratch, &begun)["data"]["wrote"], false);
}

#[test]
fn a_title_whose_task_is_closed_begins_one_other_task() {
    let scratch = scratch();
    started(&scratch, &["x", "--no-checks"]);
    scratch
        .takeup(&["abandon", "x", "--session", "s1"])
        .exits(0);
    let second = started(&scratch, &["x", "--no-checks"]);
    assert_eq!(
        (id(&second), &second["data"]["wrote"]),
        ("x-2", &Value::from(true))
    );
    assert_eq!(second["data"]["closedBefore"], "x");
    for _ in 0..2 {
        let again = started(&scratch, &["x", "--no-checks"]);
        assert_eq!(
            (id(&again), &again["data"]["wrote"]),
            ("x-2", &Value::from(false))
        );
    }
    scratch
        .takeup(&["finish", "x-2", "--session", "s1"])
        .exits(0);
    let third = started(&scratch, &["x", "--no-checks"]);
    assert_eq!(
        (id(&third), third["data"]["closedBefore"].as_str()),
        ("x-3", Some("x-2"))
    );
}

#[test]
fn a_session_that_starts_again_says_which_process_stands_for_it() {
    let scratch = scratch();
    let mut processes: Vec<std::process::Child> = (0..2)
        .map(|_| {
            std::process::Command::new("sleep")
                .arg("300")
                .spawn()
                .unwrap()
        })
        .collect();
    let pids: Vec<String> = processes.iter().map(|one| one.id().to_string()).collect();
    started(&scratch, &["x", "--no-checks", "--pid", &pids[0]]);
    processes[0].kill().unwrap();
    processes[0].wait().unwrap();
    let verdict = || {
        let answer = asked(&scratch, 0, &["inspect", "x"]).json();
        answer["data"]["candidates"][0]["verdict"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(verdict(), "resume-verification");
    let again = started(&scratch, &["x", "--no-checks", "--pid", &pids[1]]);
    assert_eq!(again["data"]["wrote"], false, "no task was begun");
    assert_eq!(verdict(), "in-use");
    processes[1].kill().unwrap();
    processes[1].wait().unwrap();
}

#[test]
fn an_exact_id_means_that_task_also_where_it_is_closed() {
    for close in ["abandon", "finish"] {
        let scratch = scratch();
        started(&scratch, &["r", "--no-checks"]);
        scratch.takeup(&[close, "r", "--session", "s1"]).exits(0);
        let second = started(&scratch, &["r", "--no-checks"]);
        assert_eq!(id(&second), "r-2");
        // Nobody gets another task than the one that was named, and everybody is told of the one of that title.
        for words in [
            &["resume", "r", "--to", "s2", "--confirm"][..],
            &["resume", "r", "--to", "s2", "--rebuild"],
            &["resume", "r", "--session", "s1"],
            &["evaluate", "r", "--session", "s1"],
            &["check", "--task", "r", "--session", "s1", "--", "true"],
            &["save", "r", "--session", "s1"],
            &["plan", "add", "true", "--task", "r"],
            &["plan", "add", "true", "--task", "r", "--session", "s1"],
            &["plan", "remove", "1", "--task", "r"],
            &["note", "a remark", "--task", "r"],
            &[
                "review",
                "request",
                "may I?",
                "--task",
                "r",
                "--session",
                "s1",
            ],
        ] {
            let refused = asked(&scratch, 1, words);
            let code = if words[0] == "resume" {
                "not-resumable"
            } else {
                "task-closed"
            };
            fails_with(&refused, code);
            let error = &refused.json()["error"];
            assert!(
                error["message"].as_str().unwrap().ends_with(" is r-2"),
                "{words:?}: {error:#}"
            );
        }
        for (words, pointer) in [
            (&["show", "r"][..], "/data/taskId"),
            (&["log", "r"], "/data/taskId"),
            (&["plan", "--task", "r"], "/data/taskId"),
            (&["diff", "r"], "/data/taskId"),
            (&["inspect", "r"], "/data/candidates/0/identity/taskId"),
            (&["inspect", "r-2"], "/data/candidates/0/identity/taskId"),
        ] {
            let answer = asked(&scratch, 0, words).json();
            let expected = words.last().unwrap();
            assert_eq!(answer.pointer(pointer).unwrap(), expected, "{words:?}");
            assert!(answer.pointer("/data/candidates/1").is_none(), "{words:?}");
        }
        // Closing what is closed is the same again, and touches nothing else.
        scratch.takeup(&[close, "r", "--session", "s1"]).exits(0);
        let answer = asked(&scratch, 0, &["inspect", "r-2"]).json();
        assert_eq!(
            answer["data"]["candidates"][0]["verdict"],
            "resume-verification"
        );
        let taken = asked(&scratch, 0, &["resume", "r-2", "--to", "s2", "--confirm"]).json();
        assert_eq!(id(&taken), "r-2");
    }
}

#[test]
fn an_id_that_went_into_the_archive_means_no_other_task() {
    let scratch = scratch();
    started(&scratch, &["r", "--no-checks"]);
    scratch.takeup(&["finish", "r", "--session", "s1"]).exits(0);
    let ledger = takeup_core::ledger::Ledger::at(scratch.repo().join(".git/takeup"));
    ledger
        .archive(
            &takeup_core::time::SystemClock,
            takeup_core::ledger::Ledger::PATIENCE,
            &takeup_tests::ledger::actor(),
            |_| true,
        )
        .unwrap();
    assert_eq!(id(&started(&scratch, &["r", "--no-checks"])), "r-2");
    let refused = asked(&scratch, 4, &["resume", "r", "--to", "s2", "--confirm"]);
    fails_with(&refused, "no-such-task");
    assert!(refused.stdout.contains("is r-2"), "{}", refused.stdout);
    let shown = asked(&scratch, 0, &["show", "r"]).json();
    assert_eq!(shown["data"]["taskId"], "r");
    assert_eq!(shown["data"]["archived"], true);
}

#[test]
fn a_task_is_changed_in_its_own_work_tree() {
    let scratch = scratch();
    let mut other = std::process::Command::new("sleep")
        .arg("300")
        .spawn()
        .unwrap();
    let pid = other.id().to_string();
    started(&scratch, &["x", "--check", "true", "--pid", &pid]);
    let beside = scratch.path().join("beside");
    scratch.git(&["worktree", "add", "-q", beside.to_str().unwrap()]);
    for words in [
        &["plan", "add", "false", "--task", "x"][..],
        &["plan", "remove", "1", "--task", "x"],
        &["plan", "add", "--no-checks", "--task", "x"],
        &["note", "a remark", "--task", "x"],
    ] {
        let refused = scratch.takeup_in(&beside, &[words, &["--json"]].concat());
        fails_with(&refused.exits(4), "held-elsewhere");
    }
    let mut command = scratch.program_in(&scratch.repo());
    command.env("TAKEUP_AGENT", "stranger");
    command.args(["--json", "plan", "remove", "1", "--task", "x"]);
    let refused = Ran::of(command.output().unwrap()).exits(4);
    fails_with(&refused, "held-by-other");
    other.kill().unwrap();
    other.wait().unwrap();
    // Reading is free.
    let seen = scratch.takeup_in(&beside, &["plan", "--task", "x", "--json"]);
    let seen = seen.exits(0).json();
    assert_eq!(seen["data"]["plan"]["checks"][0]["command"], "true");
    let shown = asked(&scratch, 0, &["show", "x"]).json();
    assert_eq!(shown["data"]["notes"], serde_json::json!([]));
}

#[test]
fn a_check_that_is_planned_again_keeps_its_control() {
    let scratch = scratch();
    started(&scratch, &["x", "--no-checks"]);
    let control = || {
        let plan = asked(&scratch, 0, &["plan", "--session", "s1"]).json();
        let checks = plan["data"]["plan"]["checks"].as_array().unwrap().clone();
        assert_eq!(checks.len(), 1);
        checks[0]["mustFail"].clone()
    };
    let add = |words: &[&str]| {
        let words = [&["plan", "add", "--session", "s1", "t"], words].concat();
        scratch.takeup(&words).exits(0).stdout
    };
    add(&["--must-fail", "t broken"]);
    assert!(add(&[]).contains("must fail: t broken"));
    assert_eq!(control(), "t broken");
    add(&["--must-fail", "t other"]);
    assert_eq!(control(), "t other");
    let log = scratch.takeup(&["log", "x"]).exits(0).stdout;
    assert!(
        log.contains("planned the check t, with t broken that has to fail"),
        "{log}"
    );
    assert!(
        log.contains("planned the check t anew, with t other that has to fail"),
        "{log}"
    );
    scratch
        .takeup(&["plan", "remove", "--session", "s1", "t"])
        .exits(0);
    add(&[]);
    assert_eq!(control(), Value::Null);
    // A tab is white space like any other; a second line is not.
    let words = ["plan", "add", "--session", "s1", "printf 'a\tb'"];
    scratch.takeup(&words).exits(0);
    scratch
        .takeup(&["check", "--session", "s1", "--planned", "2"])
        .exits(0);
    let words = ["plan", "add", "--session", "s1", "true\nfalse"];
    fails_with(&asked(&scratch, 1, &words), "not-allowed");
}

#[test]
fn what_only_reads_finds_the_task_that_the_session_closed() {
    let scratch = scratch();
    for task in ["first", "second"] {
        started(&scratch, &[task, "--no-checks"]);
    }
    // The one that was closed last is meant, whatever it is called.
    for task in ["second", "first"] {
        scratch
            .takeup(&["finish", task, "--session", "s1"])
            .exits(0);
    }
    for words in [&["show"][..], &["log"], &["plan"], &["diff"], &["handover"]] {
        let words = [words, &["--session", "s1"]].concat();
        let answer = asked(&scratch, 0, &words).json();
        let task = &answer["data"]["taskId"];
        let task = answer.pointer("/data/document/taskId").unwrap_or(task);
        assert_eq!(task, "first", "{words:?}: {answer:#}");
    }
    // What writes does not.
    fails_with(
        &asked(&scratch, 1, &["note", "late", "--session", "s1"]),
        "task-closed",
    );
}
