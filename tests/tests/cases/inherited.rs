//! What a session leaves beside the content: calls that may or may not have happened, and open todos.
use serde_json::{Value, json};
use takeup_tests::Scratch;
use takeup_tests::conformance::tell::opencode;

use super::{candidate, fails_with, scratch};

/// A session of OpenCode that died in the middle of a call, with an open todo.
fn died(scratch: &Scratch) {
    let at = 1_780_000_000_000_i64;
    let call = json!({"id": "prt_2", "type": "tool", "tool": "bash", "callID": "call_1", "state": {"status": "running",
        "input": {"command": "./deploy.sh prod"}, "time": {"start": at}}});
    let session = json!({
        "info": {"id": "ses_e", "projectID": "global", "slug": "eff", "directory": scratch.repo(), "title": "eff",
            "version": "1.18.33", "time": {"created": at, "updated": at}},
        "messages": [
            {"info": {"id": "msg_1", "role": "user", "time": {"created": at}},
                "parts": [{"id": "prt_1", "type": "text", "text": "deploy it"}]},
            {"info": {"id": "msg_2", "role": "assistant", "time": {"created": at}},
                "parts": [{"id": "prt_0", "type": "step-start", "snapshot": scratch.git(&["rev-parse", "HEAD^{tree}"]).trim()}, call]},
        ],
        "todos": [{"content": "write test", "status": "pending"}, {"content": "read code", "status": "completed"}],
    });
    opencode::import(&scratch.home(), &session);
}

fn next(scratch: &Scratch, more: &[&str]) -> Value {
    let words = [&["next", "eff", "-s", "n1", "--json"], more].concat();
    scratch.takeup(&words).exits(0).json()
}

/// Takes the task up in session `n1`.
fn taken_up(scratch: &Scratch) -> Value {
    let from = ["resume", "eff", "--from", "ses_e"];
    let to = ["--rebuild", "--to", "n1", "--json"];
    scratch.takeup(&[from, to].concat()).exits(0).json()
}

#[test]
fn calls_that_may_have_happened_are_looked_at_before_the_task_is_closed() {
    let scratch = scratch();
    died(&scratch);
    let found = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let left = candidate(&found, "eff", "ses_e");
    assert_eq!(left["openEffects"][0]["argument"], "./deploy.sh prod");
    assert_eq!(left["todos"].as_array().map(Vec::len), Some(1), "{left:#}");
    assert_eq!(left["todos"][0]["text"], "write test");
    let text = scratch.takeup(&["inspect"]).exits(0).stdout;
    assert!(
        text.contains("write test") && !text.contains("read code"),
        "{text}"
    );

    let taken = taken_up(&scratch);
    assert_eq!(
        taken["data"]["openEffects"][0]["argument"],
        "./deploy.sh prod"
    );
    assert_eq!(taken_up(&scratch), taken, "the same call again");
    scratch
        .takeup(&["plan", "add", "-t", "eff", "true"])
        .exits(0);
    scratch
        .takeup(&["check", "-t", "eff", "-s", "n1", "--", "true"])
        .exits(0);
    // A check speaks of the content, and not of what a call did elsewhere.
    let step = next(&scratch, &[]);
    assert_eq!(step["data"]["nextAction"], "look-at-effects");
    assert_eq!(step["data"]["finalized"], false);
    let text = scratch.takeup(&["next", "eff", "-s", "n1"]).exits(0).stdout;
    assert!(
        text.contains("./deploy.sh prod") && text.contains("--looked"),
        "{text}"
    );
    fails_with(
        &scratch
            .takeup(&["finish", "eff", "-s", "n1", "--json"])
            .exits(1),
        "effects-unknown",
    );
    scratch.takeup(&["evaluate", "eff", "-s", "n1"]).exits(1);
    for words in [&["handover", "eff"][..], &["handover", "eff", "--json"]] {
        let text = scratch.takeup(words).exits(0).stdout;
        assert!(text.contains("./deploy.sh prod"), "{text}");
        assert!(text.contains("write test"), "{text}");
    }
    // Who takes it up from there hears of them too.
    scratch
        .takeup(&["resume", "eff", "--from", "n1", "--confirm", "--to", "n2"])
        .exits(0);
    let words = ["next", "eff", "-s", "n2", "--json"];
    let step = scratch.takeup(&words).exits(0).json();
    assert_eq!(step["data"]["nextAction"], "look-at-effects");
    let found = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    assert_eq!(
        candidate(&found, "eff", "n2")["todos"][0]["text"],
        "write test"
    );
    let step = scratch
        .takeup(&["next", "eff", "-s", "n2", "--looked", "--json"])
        .exits(0)
        .json();
    assert_eq!(step["data"]["finalized"], true, "{step:#}");
    let log = scratch.takeup(&["log", "eff"]).exits(0).stdout;
    assert!(
        log.contains("looked at") && log.contains("./deploy.sh prod"),
        "{log}"
    );
}

#[test]
fn that_one_looked_is_said_once_and_of_nothing_else() {
    let scratch = scratch();
    died(&scratch);
    taken_up(&scratch);
    let step = next(&scratch, &["--looked"]);
    assert_eq!(step["data"]["nextAction"], "plan");
    let revision = step["data"]["identity"]["revision"].clone();
    let step = next(&scratch, &["--looked"]);
    assert_eq!(step["data"]["identity"]["revision"], revision);
}
