//! A question of the ledger that is answered inside OpenCode++.
use serde_json::{Value, json};
use takeup_tests::{Ran, Scratch, picture};

use super::{digest, identity, put, record, scratch};

const QUESTION: &str = "human-review-t1-ses-1.json";
const HOLDER: &str = "task-identity-t1-ses-1.json";

/// A task in a session of OpenCode, with a question about a path outside its boundary.
fn asked() -> Scratch {
    asked_for("BOUNDARY_EXPANSION_REQUIRED")
}

fn asked_for(reason: &str) -> Scratch {
    let scratch = scratch();
    scratch
        .takeup(&[
            "start",
            "t1",
            "--session",
            "ses_1",
            "--agent",
            "opencode",
            "--no-checks",
            "--allow",
            "src/**",
        ])
        .exits(0);
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
