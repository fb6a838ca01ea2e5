//! Sessions that were recovered: the copy is named, and one conversation is not gone on with twice without a word.
use serde_json::{Value, json};
use takeup_tests::{Scratch, picture};

use super::{here, scratch};

const OWL: &str = "session_owl_1777629600000_000000000000000a";
const KOALA: &str = "session_koala_1777632000000_0000000000000004";
/// The copy that jcode made of the one before.
const COPY: &str = "session_recovery_rec_1777632300000_4444444444444444444";

/// What is said of a session, where it is offered.
fn offered(scratch: &Scratch, session: &str) -> Option<String> {
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let candidates = answer["data"]["candidates"].as_array().unwrap();
    let found = candidates
        .iter()
        .find(|one| one["identity"]["sessionId"] == session)?;
    Some(found["reasons"].to_string())
}

fn shown(scratch: &Scratch, session: &str) -> String {
    let words = ["sessions", "show", session, "--json"];
    scratch.takeup(&words).exits(0).stdout
}

/// Says something in a session, as jcode would.
fn go_on(scratch: &Scratch, session: &str) {
    let path = scratch
        .home()
        .join(format!(".jcode/sessions/{session}.json"));
    let mut record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let messages = record["messages"].as_array_mut().unwrap();
    let role = |role: &str, text: &str| {
        json!({"id": format!("message_{role}"), "role": role, "content": [{"type": "text", "text": text}],
            "timestamp": "2099-01-01T00:00:00Z"})
    };
    messages.push(role("user", "Go on."));
    messages.push(role("assistant", "It is done."));
    record["updated_at"] = json!("2099-01-01T00:00:00Z");
    std::fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
}

#[test]
fn a_copy_of_jcode_is_named_and_what_was_gone_on_with_there_is_not_offered() {
    let scratch = scratch();
    here(&scratch, &["koala", "recovery", "owl"]);
    let reasons = offered(&scratch, KOALA).unwrap();
    assert!(reasons.contains(COPY), "{reasons}");
    assert!(shown(&scratch, "koala").contains(COPY));
    go_on(&scratch, COPY);
    assert_eq!(offered(&scratch, KOALA), None);
    assert!(offered(&scratch, OWL).is_some());
    // It can be looked at, and says where its work went on.
    assert!(shown(&scratch, "koala").contains(&format!("gone on with as {COPY}")));
    // More was said in the first one since: the copy is no copy of that.
    go_on(&scratch, KOALA);
    assert!(offered(&scratch, KOALA).is_some());
}

#[test]
fn a_session_is_recovered_once() {
    let scratch = scratch();
    here(&scratch, &["owl"]);
    let recover = || {
        let answer = scratch
            .takeup(&["sessions", "recover", "owl", "--as-session", "--json"])
            .exits(0)
            .json();
        let id = answer["data"]["recoveredTo"].as_str().unwrap();
        id.strip_prefix("jcode:").unwrap().to_owned()
    };
    let copy = recover();
    let before = picture(&scratch.home(), &|_| false);
    assert_eq!(recover(), copy);
    assert_eq!(picture(&scratch.home(), &|_| false), before);
    let reasons = offered(&scratch, OWL).unwrap();
    assert!(reasons.contains(&copy), "{reasons}");
    go_on(&scratch, &copy);
    assert_eq!(offered(&scratch, OWL), None);
    assert_eq!(recover(), copy);
}
