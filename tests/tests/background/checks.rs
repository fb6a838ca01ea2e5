//! Checks that run in the background: where they run, what they count for, and that they are told of while they run.
use serde_json::Value;

use super::kit::Desk;

/// A repository whose check fails at the top and passes in `sub`, with a task that plans it.
fn planned() -> Desk {
    let desk = Desk::in_repository();
    desk.scratch.write("t.sh", "exit 1\n");
    desk.scratch.write("sub/t.sh", "exit 0\n");
    desk.here(&["start", "t1", "--session", "s1", "--check", "sh t.sh"])
        .exits(0);
    desk
}

fn proof(desk: &Desk) -> String {
    let answer = desk.here(&["next", "t1", "--session", "s1", "--json"]);
    let proof = &answer.exits(0).json()["data"]["evidence"][0]["proof"];
    proof.as_str().unwrap().to_owned()
}

/// Starts a task in a folder of the repository, waits for its end and returns the answer of the start.
fn ended(desk: &Desk, folder: &str, words: &[&str]) -> Value {
    let folder = desk.scratch.repo().join(folder);
    let words = [&["bg", "run", "--json", "--session", "s1"], words].concat();
    let answer = desk.scratch.takeup_in(&folder, &words).exits(0).json();
    desk.end(answer["data"]["task"]["id"].as_str().unwrap());
    answer
}

#[test]
fn a_check_in_the_background_counts_at_the_top_alone() {
    let desk = planned();
    for (from, words) in [
        ("sub", &["--check", "--", "sh", "t.sh"][..]),
        (
            "",
            &["--check", "--cwd", "sub", "--", "sh", "-c", "sh t.sh"],
        ),
    ] {
        let answer = ended(&desk, from, words);
        let check = &answer["data"]["check"];
        assert_eq!(check["planned"], true, "{answer}");
        assert_eq!(check["inOtherFolder"], true, "{answer}");
        assert_eq!(proof(&desk), "elsewhere");
    }
    // A planned one goes to the top by itself.
    let answer = ended(&desk, "sub", &["--planned", "1"]);
    assert_eq!(answer["data"]["check"]["inOtherFolder"], false, "{answer}");
    assert_eq!(proof(&desk), "failed");
    desk.scratch.write("t.sh", "exit 0\n");
    ended(&desk, "sub", &["--planned", "1"]);
    assert_eq!(proof(&desk), "fresh");
}

#[test]
fn what_is_not_in_the_plan_is_said_to_be_not() {
    let desk = planned();
    let words = ["bg", "run", "--check", "--session", "s1", "--", "true"];
    let said = desk.here(&words).exits(0).stdout;
    assert!(said.contains("plan add --task t1 true"), "{said}");
    desk.here(&["plan", "add", "--session", "s1", "sleep 0; test -f a.txt"])
        .exits(0);
    let line = ["--check", "--", "sh", "-c", "sleep 0; test -f a.txt"];
    let answer = ended(&desk, "", &line);
    assert_eq!(answer["data"]["check"]["planned"], true, "{answer}");
    let missing = ["bg", "run", "--session", "s1", "--planned", "9"];
    desk.here(&missing).exits(4);
}

#[test]
fn a_file_is_no_folder_to_run_in() {
    let desk = planned();
    for (folder, why) in [("a.txt", "is no folder"), ("gone", "is not there")] {
        for check in [&[][..], &["--check"]] {
            let words = [&["bg", "run", "--cwd", folder], check, &["--", "true"]].concat();
            let ran = desk.here(&words).exits(2);
            assert!(ran.stderr.contains(&format!("{folder} {why}")), "{ran:?}");
        }
    }
}

/// Starts a command that runs until the gate is open and returns its id.
fn held(desk: &Desk, options: &[&str], folder: &std::path::Path) -> String {
    let words = [&["bg", "run", "--json"], options].concat();
    let answer = desk.scratch.takeup_in(folder, &words).exits(0).json();
    answer["data"]["task"]["id"].as_str().unwrap().to_owned()
}

fn ids(answer: &Value) -> Vec<&str> {
    let tasks = answer["data"]["background"]["tasks"].as_array();
    let tasks = tasks.into_iter().flatten();
    tasks.map(|task| task["id"].as_str().unwrap()).collect()
}

#[test]
fn what_runs_for_a_task_is_told_by_every_answer_about_it() {
    let desk = Desk::in_repository();
    desk.here(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    desk.here(&["start", "t2", "--session", "s2", "--no-checks"])
        .exits(0);
    let gate = desk.wait_for_gate();
    let home = desk.scratch.home();
    // It belongs to the task wherever it runs, and another repository has a task of that name, too.
    let cwd = home.to_str().unwrap();
    let words = [
        "--name", "srv", "--task", "t1", "--cwd", cwd, "--", "sh", "-c", &gate,
    ];
    let id = held(&desk, &words, &desk.scratch.repo());
    let other = Desk::in_repository();
    other
        .here(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    let state = home.join(".local/state");
    let in_other = |words: &[&str]| {
        let mut command = other.scratch.program_in(&other.scratch.repo());
        command.args(words).env("XDG_STATE_HOME", &state);
        takeup_tests::Ran::of(command.output().unwrap()).exits(0)
    };
    assert_eq!(ids(&in_other(&["show", "t1", "--json"]).json()), [""; 0]);

    let stop = format!("git takeup bg stop {id}");
    let told = |words: &[&str]| {
        let said = desk.here(words).exits(0).stdout;
        assert!(
            said.contains("srv") && said.contains(&stop),
            "{words:?}: {said}"
        );
        let json = desk.here(&[words, &["--json"]].concat()).exits(0).json();
        assert!(json.to_string().contains(&stop), "{words:?}: {json}");
        json
    };
    for words in [
        &["show", "t1"][..],
        &["inspect", "t1"],
        &["inspect"],
        &["handover", "t1"],
        &["evaluate", "t1", "--session", "s1"],
    ] {
        told(words);
    }
    // Another task's answers are about that one.
    let shown = desk.here(&["show", "t2", "--json"]).exits(0).json();
    assert_eq!(ids(&shown), [""; 0]);
    // A task is closed all the same, and what runs for it goes on.
    let closed = desk
        .here(&["next", "t1", "--session", "s1", "--json"])
        .exits(0)
        .json();
    assert_eq!(closed["data"]["finalized"], true, "{closed}");
    assert_eq!(ids(&closed), [id.as_str()]);
    assert_eq!(desk.status(&id), "running");
    desk.here(&["start", "t3", "--session", "s3", "--no-checks"])
        .exits(0);
    desk.here(&["start", "t4", "--session", "s4", "--no-checks"])
        .exits(0);
    // Without a task, what an agent's session starts belongs to the task it holds.
    for (task, session, close) in [("t3", "s3", "finish"), ("t4", "s4", "abandon")] {
        let words = ["--name", "srv", "--task", task, "--", "sh", "-c", &gate];
        let id = held(&desk, &words, &desk.scratch.repo());
        let said = desk
            .here(&[close, task, "--session", session])
            .exits(0)
            .stdout;
        assert!(said.contains(&format!("git takeup bg show {id}")), "{said}");
    }
    desk.open_gate();
    desk.end(&id);
    let shown = desk.here(&["show", "t1", "--json"]).exits(0).json();
    assert_eq!(ids(&shown), [""; 0]);
}

#[test]
fn what_a_session_starts_without_a_task_belongs_to_the_one_it_holds() {
    let desk = Desk::in_repository();
    let by_agent = |words: &[&str]| {
        let mut command = desk.scratch.program_in(&desk.scratch.repo());
        command
            .args(words)
            .env("TAKEUP_SESSION", "a1")
            .env("TAKEUP_AGENT", "codex");
        takeup_tests::Ran::of(command.output().unwrap()).exits(0)
    };
    by_agent(&["start", "t1", "--no-checks"]);
    let gate = desk.wait_for_gate();
    let words = ["bg", "run", "--json", "--", "sh", "-c", &gate];
    let id = by_agent(&words).json()["data"]["task"]["id"].clone();
    let shown = desk.here(&["show", "t1", "--json"]).exits(0).json();
    assert_eq!(ids(&shown), [id.as_str().unwrap()]);
    desk.open_gate();
}

#[test]
fn a_planned_check_that_runs_is_waited_for_and_not_started_again() {
    let desk = Desk::in_repository();
    let gate = desk.wait_for_gate();
    desk.here(&["start", "t1", "--session", "s1", "--check", &gate])
        .exits(0);
    let words = ["--session", "s1", "--planned", "1"];
    let id = held(&desk, &words, &desk.scratch.repo());
    let wait = format!("git takeup bg wait {id}");
    for (command, exit) in [("evaluate", 1), ("next", 0)] {
        let words = [command, "t1", "--session", "s1", "--json"];
        let answer = desk.here(&words).exits(exit).json();
        assert_eq!(answer["next"]["command"], wait.as_str(), "{answer}");
        assert_eq!(answer["data"]["evidence"][0]["running"], id.as_str());
    }
    let said = desk
        .here(&["next", "t1", "--session", "s1"])
        .exits(0)
        .stdout;
    assert!(said.contains("runs in the background"), "{said}");
    // What runs on other content is not worth waiting for.
    desk.scratch.write("a.txt", "two\n");
    let answer = desk.here(&["next", "t1", "--session", "s1", "--json"]);
    let answer = answer.exits(0).json();
    assert_eq!(answer["data"]["nextAction"], "check", "{answer}");
    desk.scratch.write("a.txt", "one\n");
    desk.open_gate();
    desk.end(&id);
    let answer = desk.here(&["next", "t1", "--session", "s1", "--json"]);
    assert_eq!(answer.exits(0).json()["data"]["finalized"], true);
}

#[test]
fn a_record_that_cannot_be_read_may_be_of_the_task() {
    let desk = Desk::in_repository();
    desk.here(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    let id = desk.start(&[], &["true"]);
    desk.end(&id);
    let path = desk.file(&id, ".status.json");
    takeup_core::files::write_atomic(&path, b"{", 0o600).unwrap();
    for words in [
        ["show", "t1"],
        ["handover", "t1"],
        ["inspect", "t1"],
        ["finish", "t1"],
    ] {
        let said = desk.here(&words).exits(0).stdout;
        assert!(said.contains(&id), "{words:?}: {said}");
    }
}
