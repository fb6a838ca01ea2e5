//! A question of the ledger that is answered inside OpenCode++.
use serde_json::{Value, json};
use takeup_tests::{Ran, Scratch, picture};

use super::{digest, identity, put, record, scratch, sidecar};

const QUESTION: &str = "human-review-t1-ses-1.json";
const HOLDER: &str = "task-identity-t1-ses-1.json";

/// A task in a session of OpenCode, with a question about a path outside its boundary.
fn asked() -> Scratch {
    asked_for("BOUNDARY_EXPANSION_REQUIRED")
}

fn asked_for(reason: &str) -> Scratch {
    asked_in(reason, &[])
}

/// `process`: what `start` is told of the session's process.
fn asked_in(reason: &str, process: &[&str]) -> Scratch {
    let scratch = scratch();
    let start = [
        "start",
        "t1",
        "--session",
        "ses_1",
        "--agent",
        "opencode",
        "--no-checks",
        "--allow",
        "src/**",
    ];
    scratch.takeup(&[&start[..], process].concat()).exits(0);
    scratch
        .takeup(&[
            "review",
            "request",
            "It needs the helper.",
            "--reason",
            reason,
            "--allow",
            "lib/token.ts",
            "--session",
            "ses_1",
            "--agent",
            "opencode",
        ])
        .exits(0);
    scratch
}

/// Answers as OpenCode++ does: the question, and the identity of the task.
fn answer(scratch: &Scratch, status: &str, identity: &str) {
    for (name, status) in [(QUESTION, status), (HOLDER, identity)] {
        let mut record = record(scratch, name);
        record["status"] = json!(status);
        record["revision"] = json!(record["revision"].as_u64().unwrap() + 1);
        record["updatedAt"] = json!("2099-01-01T00:00:00.000Z");
        put(scratch, name, &record);
    }
}

fn evaluate(scratch: &Scratch, confirm: &str) -> Ran {
    let mut command = scratch.program_in(&scratch.repo());
    command
        .args([
            "evaluate",
            "--session",
            "ses_1",
            "--agent",
            "opencode",
            "--json",
        ])
        .env("TAKEUP_CONFIRM", confirm);
    Ran::of(command.output().unwrap())
}

fn shown(scratch: &Scratch) -> Value {
    scratch.takeup(&["show", "t1", "--json"]).exits(0).json()
}

fn status(scratch: &Scratch) -> String {
    let shown = shown(scratch);
    let status = &shown["data"]["candidates"][0]["identity"]["status"];
    status.as_str().unwrap().to_owned()
}

/// The answer that `review list` shows beside the question.
fn listed(scratch: &Scratch) -> Value {
    let before = picture(&scratch.repo(), &|_| false);
    let list = scratch
        .takeup(&["review", "list", "--json"])
        .exits(0)
        .json();
    assert_eq!(
        picture(&scratch.repo(), &|_| false),
        before,
        "looking wrote something"
    );
    list["data"]["reviews"][0]["answer"]["approved"].clone()
}

#[test]
fn a_no_is_taken_over_by_whoever_writes_next() {
    let scratch = asked();
    assert_eq!(listed(&scratch), Value::Null);
    answer(&scratch, "rejected", "abandoned");
    assert_eq!(listed(&scratch), json!(false));
    assert_eq!(status(&scratch), "human-review", "looking decides nothing");
    evaluate(&scratch, "person");
    assert_eq!(status(&scratch), "abandoned");
    // The decision stands in the journal before its application, and names who gave it.
    let journal =
        std::fs::read_to_string(scratch.repo().join(".git/takeup/journal.jsonl")).unwrap();
    let (decided, applied) = (journal.find("review-decide"), journal.find("review-apply"));
    assert!(decided.is_some() && decided < applied, "{journal}");
    let shown = scratch
        .takeup(&["review", "show", "t1", "--json"])
        .exits(0)
        .json();
    let state = &shown["data"]["reviews"][0]["review"]["state"];
    assert_eq!(state["state"], "applied");
    assert_eq!(state["decision"]["by"], "opencode");
    let at = state["decision"]["at"].as_str().unwrap();
    assert!(at < "2099", "a moment that has not come: {at}");
    // Again it changes nothing.
    let before = picture(&scratch.repo(), &|_| false);
    evaluate(&scratch, "person");
    assert_eq!(picture(&scratch.repo(), &|_| false), before);
}

#[test]
fn a_yes_counts_where_the_users_settings_let_the_callers_word_count() {
    let scratch = asked();
    answer(&scratch, "resumed", "dirty");
    evaluate(&scratch, "person").exits(3);
    assert_eq!(status(&scratch), "human-review");
    assert_eq!(listed(&scratch), json!(true));
    evaluate(&scratch, "caller");
    assert_ne!(status(&scratch), "human-review");
    let allowed = &shown(&scratch)["data"]["boundary"]["allowed"];
    assert_eq!(*allowed, json!(["src/**", "lib/token.ts"]));

    // Without the setting a person takes the same answer over.
    let scratch = asked();
    answer(&scratch, "resumed", "dirty");
    scratch
        .takeup(&["review", "approve", "t1", "--confirm"])
        .exits(0);
    assert_eq!(status(&scratch), "dirty");
    assert_eq!(record(&scratch, QUESTION)["status"], "resumed");
}

#[test]
fn a_yes_holds_for_the_content_and_the_paths_that_were_asked_about() {
    let scratch = asked();
    answer(&scratch, "resumed", "dirty");
    scratch.write("a.txt", "changed\n");
    evaluate(&scratch, "caller").exits(3);
    assert_eq!(status(&scratch), "human-review");

    let scratch = asked();
    answer(&scratch, "resumed", "dirty");
    let mut other = record(&scratch, QUESTION);
    other["requestedBoundary"] = json!(["**"]);
    put(&scratch, QUESTION, &other);
    assert_eq!(listed(&scratch), Value::Null);
    evaluate(&scratch, "caller").exits(3);
    assert_eq!(status(&scratch), "human-review");
}

#[test]
fn an_answer_from_another_session_moves_the_task_there() {
    let scratch = asked();
    answer(&scratch, "resumed", "abandoned");
    let mut left = record(&scratch, HOLDER);
    left["resumedToSessionId"] = json!("ses_2");
    put(&scratch, HOLDER, &left);
    evaluate(&scratch, "caller");
    let shown = shown(&scratch);
    let of = |session: &str| {
        shown["data"]["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["identity"]["sessionId"] == session)
            .unwrap_or_else(|| panic!("no identity of {session} in {shown:#}"))["identity"]
            .clone()
    };
    assert_eq!(of("ses_1")["status"], "abandoned");
    assert_eq!(of("ses_1")["resumedToSessionId"], "ses_2");
    assert_eq!(of("ses_2")["status"], "dirty");
}

/// A task that waits for a person whose question is gone: nobody can answer it, and a person can go on all the same.
#[test]
fn a_question_that_is_gone_is_no_dead_end() {
    let scratch = scratch();
    scratch.write("src/a", "changed");
    let mut left = identity(&scratch, "fix", "ses_old");
    left["latestWorkingTreeFingerprint"] = digest(&scratch).into();
    left["status"] = "human-review".into();
    put(&scratch, "task-identity-fix-ses-old.json", &left);
    let found = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let candidate = &found["data"]["candidates"][0];
    assert_eq!(candidate["verdict"], "stale-task", "{found}");
    assert!(
        candidate["reasons"][0]["message"]
            .as_str()
            .unwrap()
            .contains("question")
    );
    // Never by a plain yes.
    scratch.takeup(&["resume", "fix", "--confirm"]).exits(3);
    let next = candidate["next"]["command"].as_str().unwrap();
    let words: Vec<&str> = next.split(' ').skip(2).collect();
    scratch.takeup(&words).exits(0);
    let old = record(&scratch, "task-identity-fix-ses-old.json");
    assert_eq!(old["status"], "abandoned", "{old}");
}

/// A question that only OpenCode++'s records hold, and its id.
fn foreign(reason: &str) -> (Scratch, String) {
    let scratch = asked_for(reason);
    std::fs::remove_dir_all(scratch.repo().join(".git/takeup")).unwrap();
    let mut question = record(&scratch, QUESTION);
    question.as_object_mut().unwrap().remove("takeup");
    put(&scratch, QUESTION, &question);
    let id = question["requestId"].as_str().unwrap().to_owned();
    (scratch, id)
}

fn decide(scratch: &Scratch, word: &str, id: &str) -> Ran {
    scratch.takeup(&["review", word, id, "--confirm", "--json"])
}

#[test]
fn a_yes_that_the_plugin_would_not_take_is_no_yes() {
    let (scratch, id) = foreign("EXTERNAL_SIDE_EFFECT");
    let refused = decide(&scratch, "approve", &id).exits(5).json();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("EXTERNAL_SIDE_EFFECT"), "{message}");
    let hint = refused["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("review reject"), "{hint}");
    // Nor is one proposed, and nobody is asked for it.
    let shown = scratch.takeup(&["review", "show", &id]).exits(0).stdout;
    assert!(!shown.contains("review approve"), "{shown}");
    assert!(shown.contains("review reject"), "{shown}");
    scratch.takeup(&["review", "approve", &id]).exits(5);
    assert_eq!(record(&scratch, QUESTION)["status"], "pending");
    // A no is taken by it, and so it is said.
    decide(&scratch, "reject", &id).exits(0);
    assert_eq!(record(&scratch, QUESTION)["status"], "rejected");

    let (scratch, id) = foreign("BOUNDARY_EXPANSION_REQUIRED");
    let done = decide(&scratch, "approve", &id).exits(0).json();
    assert_eq!(done["data"]["review"]["state"]["state"], "applied");
    assert_eq!(record(&scratch, QUESTION)["status"], "resumed");
}

#[test]
fn the_first_word_stands_even_where_it_could_not_be_written() {
    let (scratch, id) = foreign("BOUNDARY_EXPANSION_REQUIRED");
    // Nothing can be written where a folder stands.
    let manifest = scratch.repo().join(".agent-context/runs/t1/run.json");
    let aside = scratch.path().join("aside.json");
    std::fs::rename(&manifest, &aside).unwrap();
    std::fs::create_dir(&manifest).unwrap();
    let done = decide(&scratch, "approve", &id).exits(0).json();
    assert_eq!(done["data"]["review"]["state"]["state"], "decided");
    let summary = done["summary"].as_str().unwrap();
    assert!(summary.contains("could not be written"), "{summary}");
    assert_eq!(record(&scratch, QUESTION)["status"], "pending");
    std::fs::remove_dir(&manifest).unwrap();
    std::fs::rename(&aside, &manifest).unwrap();
    let late = decide(&scratch, "reject", &id).exits(5).json();
    assert_eq!(late["error"]["code"], "review-decided");
    decide(&scratch, "approve", &id).exits(0);
    assert_eq!(record(&scratch, QUESTION)["status"], "resumed");
    let journal =
        std::fs::read_to_string(scratch.repo().join(".git/takeup/journal.jsonl")).unwrap();
    assert_eq!(
        journal.matches(r#""operation":"review-decide""#).count(),
        1,
        "{journal}"
    );
}

/// How the records show the task: each session with its status, and where it went.
fn holders(scratch: &Scratch) -> Vec<(String, String, Value)> {
    let mut found: Vec<_> = sidecar(scratch)
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("task-identity-t1-") && name.ends_with(".json"))
        .map(|name| {
            let record = record(scratch, &name);
            let text = |key: &str| record[key].as_str().unwrap().to_owned();
            (
                text("sessionId"),
                text("status"),
                record["resumedToSessionId"].clone(),
            )
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn holder(session: &str, status: &str, to: Value) -> (String, String, Value) {
    (session.to_owned(), status.to_owned(), to)
}

/// A process that stands for a session.
struct Living(std::process::Child);

impl Drop for Living {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A person's answer at a terminal moves nothing: the session that asked lives, and has its task.
#[test]
fn a_persons_answer_leaves_the_task_with_the_session_that_asked() {
    let living = Living(
        std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap(),
    );
    let pid = living.0.id().to_string();
    let scratch = asked_in("BOUNDARY_EXPANSION_REQUIRED", &["--pid", &pid]);
    scratch
        .takeup(&["review", "approve", "t1", "--confirm"])
        .exits(0);
    let only = [holder("ses_1", "dirty", Value::Null)];
    assert_eq!(holders(&scratch), only);
    let shown = shown(&scratch);
    assert_eq!(shown["data"]["candidates"][0]["verdict"], "in-use");
    let list = scratch.takeup(&["inspect", "--all", "--json"]).json();
    assert_eq!(list["data"]["candidates"].as_array().unwrap().len(), 1);
    let other = ["resume", "t1", "--to", "ses_2", "--agent", "opencode"];
    scratch
        .takeup(&[&other[..], &["--confirm"]].concat())
        .exits(5);
    assert_eq!(holders(&scratch), only);

    // The same of a question that only OpenCode++'s records hold.
    let (scratch, id) = foreign("BOUNDARY_EXPANSION_REQUIRED");
    decide(&scratch, "approve", &id).exits(0);
    assert_eq!(holders(&scratch), only);
}

/// What our own program showed there says nothing against the ledger.
#[test]
fn a_record_that_we_wrote_ourselves_is_no_word_against_the_ledger() {
    let scratch = asked();
    let mut phantom = record(&scratch, HOLDER);
    phantom["sessionId"] = json!("ses_phantom");
    phantom["status"] = json!("dirty");
    put(&scratch, "task-identity-t1-ses-phantom.json", &phantom);
    let mut left = record(&scratch, HOLDER);
    left["status"] = json!("abandoned");
    left["resumedToSessionId"] = json!("ses_phantom");
    put(&scratch, HOLDER, &left);
    let list = scratch.takeup(&["inspect", "--all", "--json"]).json();
    let found = list["data"]["candidates"].as_array().unwrap();
    assert_eq!(found.len(), 1, "{list}");
    assert_eq!(found[0]["verdict"], "human-review");
    // Where somebody else wrote since, it is.
    phantom["revision"] = json!(phantom["revision"].as_u64().unwrap() + 1);
    put(&scratch, "task-identity-t1-ses-phantom.json", &phantom);
    let list = scratch.takeup(&["inspect", "--all", "--json"]).json();
    assert_eq!(list["data"]["candidates"].as_array().unwrap().len(), 2);
}

/// A task with a change outside its boundary, about which `evaluate` asked.
fn strayed() -> Scratch {
    let scratch = scratch();
    let own = ["--session", "ses_1", "--agent", "opencode"];
    scratch
        .takeup(
            &[
                &["start", "t1", "--no-checks", "--allow", "src/**"][..],
                &own,
            ]
            .concat(),
        )
        .exits(0);
    scratch.write("other.txt", "changed\n");
    scratch
        .takeup(&[&["evaluate", "t1"][..], &own].concat())
        .exits(3);
    scratch
}

/// The question that the check of the boundary asks stands there as every other, and so does what came of it.
#[test]
fn a_question_of_evaluate_is_shown_and_so_is_its_answer() {
    let scratch = strayed();
    let question = record(&scratch, QUESTION);
    assert_eq!(question["status"], "pending");
    assert_eq!(question["reasonCode"], "BOUNDARY_EXPANSION_REQUIRED");
    assert_eq!(question["affectedFiles"], json!(["other.txt"]));
    assert_eq!(
        holders(&scratch),
        [holder("ses_1", "human-review", Value::Null)]
    );
    // Answered there, it is taken over as every other is.
    answer(&scratch, "rejected", "abandoned");
    assert_eq!(listed(&scratch), json!(false));

    for from in [&[][..], &["--session", "ses_1", "--agent", "opencode"]] {
        let scratch = strayed();
        scratch
            .takeup(&[&["review", "approve", "t1", "--confirm"][..], from].concat())
            .exits(0);
        assert_eq!(record(&scratch, QUESTION)["status"], "resumed");
        assert_eq!(holders(&scratch), [holder("ses_1", "dirty", Value::Null)]);
        let run = std::fs::read(scratch.repo().join(".agent-context/runs/t1/run.json")).unwrap();
        let run: Value = serde_json::from_slice(&run).unwrap();
        assert_eq!(run["allowedEditGlobs"], json!(["other.txt", "src/**"]));
        assert_eq!(run["boundaryRevision"], 2);
    }
    let elsewhere = &["--session", "ses_2", "--agent", "opencode"][..];
    for from in [&[][..], elsewhere] {
        let scratch = strayed();
        scratch
            .takeup(&[&["review", "reject", "t1", "--confirm"][..], from].concat())
            .exits(0);
        assert_eq!(record(&scratch, QUESTION)["status"], "rejected");
        assert_eq!(
            holders(&scratch),
            [holder("ses_1", "abandoned", Value::Null)]
        );
    }
}

/// The ledger knows more kinds of questions that can be approved than OpenCode++ does.
#[test]
fn an_answer_from_another_session_is_shown_whatever_was_asked() {
    for reason in ["BOUNDARY_EXPANSION_REQUIRED", "UNVERIFIABLE_RESULT"] {
        let scratch = asked_for(reason);
        scratch
            .takeup(&[
                "review",
                "approve",
                "t1",
                "--confirm",
                "--session",
                "ses_2",
                "--agent",
                "opencode",
            ])
            .exits(0);
        assert_eq!(record(&scratch, QUESTION)["status"], "resumed", "{reason}");
        assert_eq!(
            holders(&scratch),
            [
                holder("ses_1", "abandoned", json!("ses_2")),
                holder("ses_2", "dirty", Value::Null)
            ],
            "{reason}"
        );
    }
}

/// There is room for one question of a session: the last that waits stands there.
#[test]
fn of_two_questions_the_one_that_waits_is_shown() {
    let scratch = asked();
    let own = ["--session", "ses_1", "--agent", "opencode"];
    let asked = scratch
        .takeup(
            &[
                &["review", "request", "And the docs?", "--json"][..],
                &["--reason", "EXTERNAL_SIDE_EFFECT"],
                &own,
            ]
            .concat(),
        )
        .exits(0)
        .json();
    let second = asked["data"]["review"]["reviewId"].as_str().unwrap();
    let shown = || {
        let question = record(&scratch, QUESTION);
        (
            question["explanation"].as_str().unwrap().to_owned(),
            question["status"].as_str().unwrap().to_owned(),
        )
    };
    let waits = [holder("ses_1", "human-review", Value::Null)];
    assert_eq!(shown(), ("And the docs?".to_owned(), "pending".to_owned()));
    scratch
        .takeup(&["review", "approve", second, "--confirm"])
        .exits(0);
    assert_eq!(
        shown(),
        ("It needs the helper.".to_owned(), "pending".to_owned())
    );
    assert_eq!(holders(&scratch), waits);
    scratch
        .takeup(&["review", "approve", "t1", "--confirm"])
        .exits(0);
    assert_eq!(shown().1, "resumed");
    assert_eq!(holders(&scratch), [holder("ses_1", "dirty", Value::Null)]);
}

/// What is given up asks nothing any more.
#[test]
fn the_question_of_a_task_that_is_given_up_is_over_there_too() {
    let scratch = asked();
    let own = ["--session", "ses_1", "--agent", "opencode"];
    scratch
        .takeup(&[&["abandon", "t1"][..], &own].concat())
        .exits(0);
    assert_eq!(record(&scratch, QUESTION)["status"], "rejected");
    assert_eq!(
        holders(&scratch),
        [holder("ses_1", "abandoned", Value::Null)]
    );
}

/// What is over in OpenCode++'s records alone: nothing is proposed that would fail.
#[test]
fn of_what_is_over_there_nothing_is_proposed() {
    let scratch = scratch();
    for (task, status) in [("done-task", "completed"), ("gone", "abandoned")] {
        let mut over = identity(&scratch, task, "ses_x");
        over["status"] = status.into();
        put(&scratch, &format!("task-identity-{task}-ses-x.json"), &over);
    }
    let found = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let candidates = found["data"]["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 2, "{found:#}");
    for candidate in candidates {
        assert_eq!(candidate["verdict"], "not-resumable");
        assert_eq!(candidate["next"], json!({"action": "none"}));
    }
    let said = scratch.takeup(&["show", "gone", "--json"]).exits(4).json();
    let hint = said["error"]["hint"].as_str().unwrap();
    assert!(!hint.contains("resume"), "{hint}");
}

/// Where a session approves, the task is its own, and the command that is proposed goes on with it.
#[test]
fn after_a_yes_there_the_next_command_works() {
    for agent_session in [Some("ses_2"), None] {
        let (scratch, id) = foreign("BOUNDARY_EXPANSION_REQUIRED");
        let mut words = vec!["review", "approve", &id, "--confirm", "--json"];
        if let Some(session) = agent_session {
            words.extend(["--session", session, "--agent", "opencode"]);
        }
        let done = scratch.takeup(&words).exits(0).json();
        let next = done["next"]["command"].as_str().unwrap();
        let words: Vec<&str> = next.split(' ').skip(2).chain(["--json"]).collect();
        let ran = scratch.takeup(&words);
        assert_ne!(ran.json()["ok"], false, "{next}: {}", ran.stdout);
        if let Some(session) = agent_session {
            assert_eq!(done["next"]["action"], "evaluate");
            assert_eq!(ran.json()["data"]["identity"]["sessionId"], session);
            let mine = record(&scratch, "task-identity-t1-ses-2.json");
            assert_eq!(mine["status"], "verification-required", "{mine}");
        }
    }
    // After a no nothing is left to show.
    let (scratch, id) = foreign("BOUNDARY_EXPANSION_REQUIRED");
    let done = decide(&scratch, "reject", &id).exits(0).json();
    let next = done["next"]["command"].as_str().unwrap();
    let words: Vec<&str> = next.split(' ').skip(2).collect();
    scratch.takeup(&words).exits(0);
}
