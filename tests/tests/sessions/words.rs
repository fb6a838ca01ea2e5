//! The words that jcode calls its sessions by, wherever a session can be named; and what is said where nobody is meant.
use serde_json::Value;
use takeup_tests::Scratch;

use super::{here, scratch};

const OWL: &str = "session_owl_1777629600000_000000000000000a";

fn inspected(scratch: &Scratch, from: &str) -> Vec<String> {
    let answer = scratch
        .takeup(&["inspect", "--from", from, "--json"])
        .exits(0)
        .json();
    let candidates = answer["data"]["candidates"].as_array().unwrap();
    let mut found: Vec<String> = candidates
        .iter()
        .map(|one| one["identity"]["sessionId"].as_str().unwrap().to_owned())
        .collect();
    found.sort();
    found
}

#[test]
fn a_session_is_named_by_its_word() {
    let scratch = scratch();
    here(&scratch, &["owl", "koala", "fox"]);
    assert_eq!(inspected(&scratch, "owl"), [OWL]);
    let take = || {
        let words = ["resume", "--from", "owl", "--rebuild", "--to", "me"];
        scratch
            .takeup(&[&words[..], &["--agent", "codex", "--json"]].concat())
            .exits(0)
            .json()
    };
    let taken = take();
    assert_eq!(taken["data"]["source"]["sessionId"], OWL, "{taken}");
    // The same call again gives the same answer; and the word is known of what the ledger holds.
    assert_eq!(take()["data"], taken["data"]);
    assert_eq!(inspected(&scratch, "owl"), [OWL]);
    let late = scratch
        .takeup(&[
            "resume",
            "--from",
            "owl",
            "--rebuild",
            "--to",
            "late",
            "--json",
        ])
        .exits(5)
        .json();
    assert_eq!(late["error"]["code"], "already-taken-up", "{late}");
    // What was recorded of it is compared.
    let told = scratch.takeup(&["diff", "--from", "owl", "--json"]).json();
    let task = &taken["data"]["identity"]["taskId"];
    match told["ok"].as_bool() {
        Some(true) => assert_eq!(&told["data"]["taskId"], task, "{told}"),
        _ => assert!(
            told["error"]["message"].as_str().unwrap().contains(OWL),
            "{told}"
        ),
    }
}

#[test]
fn a_word_of_several_sessions_names_them_all_and_takes_up_none() {
    let scratch = scratch();
    here(&scratch, &["owl"]);
    let sessions = scratch.home().join(".jcode/sessions");
    let text = std::fs::read_to_string(sessions.join(format!("{OWL}.json"))).unwrap();
    let other = "session_owl_1777629700000_00000000000000bb";
    let path = sessions.join(format!("{other}.json"));
    std::fs::write(path, text.replace(OWL, other)).unwrap();
    assert_eq!(inspected(&scratch, "owl"), [OWL, other]);
    let refused = scratch
        .takeup(&["resume", "--from", "owl", "--rebuild", "--json"])
        .exits(3)
        .json();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains(OWL) && message.contains(other),
        "{refused}"
    );
}

/// A failure names nothing that was not asked for.
#[test]
fn what_was_not_asked_for_is_not_proposed() {
    let scratch = scratch();
    here(&scratch, &["owl", "koala"]);
    let failed = |words: &[&str]| -> Value {
        let ran = scratch.takeup(&[words, &["--json"]].concat());
        ran.exits(4).json()["error"].clone()
    };
    let text = |error: &Value| format!("{} {}", error["message"], error["hint"]);
    for words in [
        &["show", "no-such-task"][..],
        &["next"],
        &["resume", "no-such-task", "--to", "me"],
        &["resume", "--from", "no-such-session", "--rebuild"],
        &["resume", "retry-docs", "--from", "koala", "--rebuild"],
    ] {
        let error = failed(words);
        assert!(!text(&error).contains("resume "), "{words:?}: {error}");
    }
    // What is asked for is.
    let error = failed(&["show", "retry-docs"]);
    let hint = error["hint"].as_str().unwrap();
    assert!(
        hint.contains(&format!("git takeup resume retry-docs --from {OWL}")),
        "{error}"
    );
}
