use std::os::unix::fs::PermissionsExt as _;

use takeup_core::agent::{Agent as _, Parcel};
use takeup_core::env::Env;
use takeup_core::ids::TaskId;
use takeup_core::repository::Place;
use takeup_core::time::FixedClock;

use super::*;
use crate::Jcode;
use crate::load::load;
use crate::processes::fake::Fake;
use crate::vectors;
use crate::wire::Status;

fn now() -> Time {
    "2026-05-02T08:00:00Z".parse().unwrap()
}

fn jcode() -> Jcode {
    Jcode::with(Fake::default(), FixedClock(now()))
}

/// What the described version of jcode demands of a snapshot, field by field.
fn demand(text: &[u8], key: &Key) -> Value {
    let value: Value = serde_json::from_slice(text).unwrap();
    assert!(!text.contains(&b'\n'), "compact, without a line end");
    let text = std::str::from_utf8(text).unwrap();
    let places: Vec<usize> = [
        "\"id\":",
        "\"parent_id\":",
        "\"title\":",
        "\"created_at\":",
        "\"updated_at\":",
        "\"messages\":",
        "\"is_canary\":",
        "\"working_dir\":",
        "\"short_name\":",
        "\"status\":",
        "\"last_active_at\":",
        "\"is_debug\":",
        "\"saved\":",
    ]
    .iter()
    .enumerate()
    .map(|(number, field)| {
        if number < 6 {
            text.find(field)
        } else {
            text.rfind(field)
        }
        .unwrap()
    })
    .collect();
    assert!(
        places.is_sorted(),
        "in the order in which jcode writes them"
    );
    assert_eq!(value["id"], key.as_str());
    assert_eq!(value["status"], "Closed");
    assert!(value.get("last_pid").is_none(), "nobody owns it");
    for flag in ["is_canary", "is_debug"] {
        assert_eq!(value[flag], false);
    }
    assert_eq!(value["short_name"].as_str(), key.word());
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    for field in ["created_at", "updated_at", "last_active_at"] {
        time(&value[field]);
        assert!(value[field].as_str().unwrap().ends_with('Z'));
    }
    let mut ids = std::collections::HashSet::new();
    for message in value["messages"].as_array().unwrap() {
        let id = message["id"].as_str().unwrap();
        assert!(ids.insert(id), "no id twice");
        assert!(matches!(
            message["role"].as_str().unwrap(),
            "user" | "assistant"
        ));
        assert!(matches!(
            message
                .get("display_role")
                .map(|role| role.as_str().unwrap()),
            None | Some("system" | "background_task")
        ));
        time(&message["timestamp"]);
        let known = ["id", "role", "content", "display_role", "timestamp"];
        assert!(
            message
                .as_object()
                .unwrap()
                .keys()
                .all(|key| known.contains(&key.as_str()))
        );
        for block in message["content"].as_array().unwrap() {
            let fields: &[&str] = match block["type"].as_str().unwrap() {
                "text" => &["text"],
                "tool_use" => &["id", "name", "input"],
                "tool_result" => &["tool_use_id", "content"],
                "image" => &["media_type", "data"],
                other => panic!("{other} must not be written"),
            };
            for field in fields {
                assert!(block.get(field).is_some(), "{block}");
                assert!(*field == "input" || block[field].is_string());
            }
        }
    }
    value
}

fn home_of(folder: &tempfile::TempDir) -> (Home, Env) {
    let root = folder.path().join("home");
    std::fs::create_dir_all(&root).unwrap();
    let env = Env::of([("JCODE_HOME", &root)], "/");
    (Home::at(root), env)
}

#[test]
fn a_hand_over_is_received_as_a_session_that_jcode_loads() {
    let folder = tempfile::tempdir().unwrap();
    let (home, env) = home_of(&folder);
    let place = Place {
        root: "/repo".into(),
        git_dir: "/repo/.git".into(),
        common_dir: "/repo/.git".into(),
    };
    let document = "# Fix login\n\n\"quotes\", $dollar, `ticks`, -dash, ünïcode 修复\n\u{1b}[31m";
    let parcel = Parcel {
        task_id: TaskId::new("fix-login").unwrap(),
        title: "Fix login\nnow".to_owned(),
        document: document.to_owned(),
        at: now(),
    };
    // A home that was left over is nobody who could go on.
    let refused = jcode().receive(&env, &place, &parcel).unwrap_err();
    assert_eq!(
        takeup_core::error::Explain::code(&refused),
        "agent-not-installed"
    );
    let program = folder.path().join("jcode");
    files::write_atomic(&program, b"#!/bin/sh\n", 0o755).unwrap();
    let env = Env::of([("JCODE_HOME", home.root()), ("PATH", folder.path())], "/");
    let received = jcode().receive(&env, &place, &parcel).unwrap();
    let key = Key::new(received.session.unwrap().id.as_str()).unwrap();
    assert_eq!(
        received.command,
        ["jcode", "--resume", key.as_str()].map(std::ffi::OsString::from)
    );
    let shape: Vec<&str> = key.as_str().split('_').collect();
    assert_eq!(shape.len(), 4);
    assert_eq!((shape[2].len(), shape[3].len()), (13, 16));
    let path = home.path(Part::Snapshot(&key));
    let value = demand(&std::fs::read(&path).unwrap(), &key);
    assert_eq!(value["working_dir"], "/repo");
    assert_eq!(value["title"], "Fix login now");
    assert_eq!(
        value["messages"][0]["content"][0]["text"], document,
        "byte for byte"
    );
    assert_eq!(value["messages"][0].get("display_role"), None);
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    let loaded = load(&home, &key).unwrap().unwrap();
    assert_eq!(loaded.jcode_loads, Some(1));
    assert!(loaded.recovered.is_empty() && loaded.issues.is_empty());
    let names: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing else is left");
}

#[test]
fn every_session_of_the_vectors_is_recovered_into_one_that_jcode_loads() {
    for entry in vectors::expected("names.json")["sessions"]
        .as_object()
        .unwrap()
        .values()
    {
        let source = load(
            &vectors::home(),
            &Key::new(entry.as_str().unwrap()).unwrap(),
        )
        .unwrap()
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (home, _) = home_of(&folder);
        let key = copy(&home, now(), &source).unwrap();
        let text = std::fs::read(home.path(Part::Snapshot(&key))).unwrap();
        let value = demand(&text, &key);
        assert_eq!(value["parent_id"], source.key.as_str());
        let loaded = load(&home, &key).unwrap().unwrap();
        assert_eq!(loaded.jcode_loads, Some(loaded.messages.len()));
        assert_eq!(loaded.status(), &Status::Closed);
        // Every text that can be read is still there, in order.
        let texts = |session: &Loaded| -> Vec<String> {
            session
                .messages
                .iter()
                .filter_map(|m| m.text().map(str::to_owned))
                .collect()
        };
        let (old, mut new) = (texts(&source), texts(&loaded));
        new.pop();
        assert_eq!(old, new, "{}", source.key.as_str());
        assert!(
            crate::calls::open_calls(&loaded.messages).is_empty(),
            "each call has a result"
        );
        assert_eq!(
            loaded.compacted(),
            source.compacted(),
            "{}",
            source.key.as_str()
        );
    }
    let goat = vectors::loaded("goat");
    let (messages, _) = carried(&goat, now());
    let text = serde_json::to_string(&messages).unwrap();
    for private in ["signature", "encrypted", "hidden", "trace only"] {
        assert!(
            !text.contains(private),
            "{private} is for its provider only"
        );
    }
    assert!(text.contains("aGVsbG8="), "pictures are carried");
}

#[test]
fn a_living_session_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let (home, env) = home_of(&folder);
    let sessions = home.root().join("sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    let fox = vectors::id("fox");
    std::fs::copy(
        vectors::home().path(Part::Snapshot(&fox)),
        home.path(Part::Snapshot(&fox)),
    )
    .unwrap();
    let alive = Fake::default().running(99_999_999, "jcode", "2026-04-01T00:00:00Z");
    let jcode = Jcode::with(alive, FixedClock(now()));
    assert!(matches!(
        jcode.recover_as_session(&env, "fox"),
        Err(AgentError::InUse { .. })
    ));
    assert_eq!(std::fs::read_dir(&sessions).unwrap().count(), 1);
}

#[test]
fn nothing_is_written_into_the_home_of_another_user() {
    let folder = tempfile::tempdir().unwrap();
    let (home, _) = home_of(&folder);
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give a folder to another user");
        return;
    }
    std::os::unix::fs::chown(home.root(), Some(65_534), None).unwrap();
    let error = with_text(&home, now(), "t", "/repo", "text").unwrap_err();
    assert!(matches!(error, AgentError::Damaged(issue) if issue.kind == IssueKind::ForeignOwner));
    assert_eq!(std::fs::read_dir(home.root()).unwrap().count(), 0);
}

#[test]
fn a_home_that_is_not_there_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("none"));
    let error = with_text(&home, now(), "t", "/repo", "text").unwrap_err();
    assert!(matches!(error, AgentError::NotInstalled { .. }));
    assert!(!home.root().exists());
}
