//! The store in files, of 2026.7.1 and earlier.
use std::path::PathBuf;

use serde_json::{Value, json};
use takeup_core::agent::{Agent as _, InterruptionReason};
use takeup_core::files::write_atomic;
use takeup_core::issue::IssueKind;
use takeup_core::process::Liveness;

use super::world::{World, calls, says, transcript, user};

fn folder(world: &World) -> PathBuf {
    let folder = world.state().join("agents/main/sessions");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn put(world: &World, name: &str, text: &str) {
    write_atomic(&folder(world).join(name), text.as_bytes(), 0o600).unwrap();
}

fn lines(events: &[Value]) -> String {
    events.iter().fold(String::new(), |text, event| {
        text + &event.to_string() + "\n"
    })
}

#[test]
fn index_transcripts_and_locks() {
    let mut world = World::new();
    world.table = vec![(70, 900, "node")];
    let entry = |id: &str, status: &str| {
        json!({"sessionId": id, "updatedAt": 2000, "sessionStartedAt": 1000, "status": status,
            "sessionFile": "/etc/passwd", "abortedLastRun": status == "failed"})
    };
    let index = json!({
        "agent:main:main": entry("s1", "failed"),
        "agent:main:live": entry("s2", "running"),
        "agent:main:stale": entry("s3", "running"),
        "agent:main:done": entry("s4", "done"),
        "agent:main:missing": entry("s5", "done"),
        "agent:main:evil": entry("../../../repo/x", "done"),
        "cron:7": entry("s7", "done"),
        "agent:main:odd": 7,
    });
    put(&world, "sessions.json", &index.to_string());
    let open = transcript(&world.repo(), &[user("fix it"), calls("c1", "make")]);
    for id in ["s1", "s2", "s3"] {
        put(&world, &format!("{id}.jsonl"), &lines(&open));
    }
    // The last line was cut off by the crash.
    let mut torn = lines(&open);
    torn.push_str("{\"type\":\"mess");
    put(&world, "s1.jsonl", &torn);
    let closed = transcript(&world.repo(), &[user("fix it"), says("done", "stop")]);
    put(&world, "s4.jsonl", &lines(&closed));
    put(&world, "s2.jsonl.lock", r#"{"pid":70,"starttime":900}"#);
    put(&world, "s3.jsonl.lock", r#"{"pid":70,"starttime":800}"#);
    let before = world.content();

    let found = world.here();
    let seen: Vec<(&str, Option<InterruptionReason>, &Liveness)> = found
        .items
        .iter()
        .map(|session| {
            let reason = session.interruption.as_ref().map(|it| it.reason);
            (session.name.as_deref().unwrap(), reason, &session.liveness)
        })
        .collect();
    assert!(
        matches!(
            seen.as_slice(),
            [
                ("agent:main:done", None, Liveness::Ended { .. }),
                ("agent:main:live", None, Liveness::Live { .. }),
                (
                    "agent:main:main",
                    Some(InterruptionReason::Crash),
                    Liveness::Crashed { .. }
                ),
                (
                    "agent:main:stale",
                    Some(InterruptionReason::Crash),
                    Liveness::Crashed { .. }
                ),
            ]
        ),
        "{seen:#?}"
    );
    assert_eq!(found.items[1].process.as_ref().unwrap().start_ticks, 900);
    let mut kinds: Vec<IssueKind> = found.issues.iter().map(|issue| issue.kind).collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        [IssueKind::Torn, IssueKind::Corrupt, IssueKind::UnsafePath]
    );
    assert_eq!(world.content(), before);

    // With a database beside it the files are what was migrated.
    drop(world.database("main"));
    assert!(world.here().items.is_empty());
}

/// A program in JavaScript that cuts a text may cut a character in two, and writes the half as it is.
#[test]
fn half_a_character_is_no_damage() {
    let world = World::new();
    let index = json!({"agent:main:main": {"sessionId": "s1", "updatedAt": 2000, "status": "running",
        "label": "named CUT"}});
    let cut = |text: String| text.replace("CUT", "\\ud83d");
    put(&world, "sessions.json", &cut(index.to_string()));
    let events = transcript(&world.repo(), &[user("fix CUT"), calls("c1", "make CUT")]);
    put(&world, "s1.jsonl", &cut(lines(&events)));
    let found = world.here();
    assert_eq!(found.issues, []);
    let session = &found.items[0];
    assert_eq!(session.last_prompt.as_deref(), Some("fix \u{fffd}"));
    assert_eq!(session.open_effects[0].argument, "make \u{fffd}");
}

#[test]
fn a_damaged_index_is_named_and_not_empty() {
    for (text, kind) in [
        ("{\"agent:main:main\":{\"sess", IssueKind::Torn),
        ("\0\0\0\0", IssueKind::Zeroed),
        ("[1]", IssueKind::Corrupt),
        ("", IssueKind::Zeroed),
    ] {
        let world = World::new();
        put(&world, "sessions.json", text);
        let found = world.here();
        assert_eq!(found.issues.len(), 1);
        assert_eq!(found.issues[0].kind, kind, "{text:?}");
        assert!(found.items.is_empty());
        // The transcripts are still there.
        let open = transcript(&world.repo(), &[user("fix it"), calls("c1", "make")]);
        put(&world, "s1.jsonl", &lines(&open));
        put(&world, "s2.jsonl.deleted.5", &lines(&open));
        let found = world.here();
        assert_eq!(found.issues.len(), 1);
        assert_eq!(found.items.len(), 1);
        assert_eq!(found.items[0].session.id.as_str(), "s1");
        assert_eq!(found.items[0].title.as_deref(), Some("fix it"));
        assert_eq!(found.items[0].open_effects.len(), 1);
        std::fs::remove_file(folder(&world).join("sessions.json")).unwrap();
        let found = world.here();
        assert_eq!(
            (found.items.len(), found.issues[0].kind),
            (1, IssueKind::Missing)
        );
    }
}

#[test]
fn whoever_holds_the_lock_file_is_at_work_since_whenever() {
    let mut world = World::new();
    world.table = vec![(70, u64::MAX / 2, "node")];
    let index = json!({"agent:main:main": {"sessionId": "s1", "updatedAt": 2000}});
    put(&world, "sessions.json", &index.to_string());
    let open = transcript(&world.repo(), &[user("fix it"), calls("c1", "make")]);
    put(&world, "s1.jsonl", &lines(&open));
    let lock = json!({"pid": 70, "starttime": u64::MAX / 2}).to_string();
    put(&world, "s1.jsonl.lock", &lock);
    let session = world.healthy().remove("agent:main:main").unwrap();
    assert!(
        matches!(session.liveness, Liveness::Live { .. }),
        "{:?}",
        session.liveness
    );
    assert_eq!(session.process.unwrap().pid, 70);
    // A process is named only for a session that it works on: the two answers are one.
    put(
        &world,
        "s1.jsonl.lock",
        &json!({"pid": 70, "starttime": 1}).to_string(),
    );
    let session = world.healthy().remove("agent:main:main").unwrap();
    assert!(matches!(session.liveness, Liveness::Crashed { .. }));
    assert_eq!(session.process, None);
}

#[test]
fn a_line_that_is_cut_may_have_been_a_call() {
    let world = World::new();
    let index = json!({"agent:main:main": {"sessionId": "s1", "updatedAt": 2000}});
    put(&world, "sessions.json", &index.to_string());
    let mut text = lines(&transcript(&world.repo(), &[user("fix it")]));
    text.push_str("{\"type\":\"mess");
    put(&world, "s1.jsonl", &text);
    let found = world.here();
    assert_eq!(found.issues.len(), 1);
    assert_eq!(found.items[0].open_effects.len(), 1);
    assert!(found.items[0].interruption.is_some());
}

#[test]
fn a_huge_transcript_is_read_at_its_end() {
    let world = World::new();
    let index = json!({"agent:main:main": {"sessionId": "s1", "updatedAt": 2000}});
    put(&world, "sessions.json", &index.to_string());
    let filler = "x".repeat(10_000);
    let mut events: Vec<Value> = (0..200).map(|_| says(&filler, "stop")).collect();
    events.push(calls("c1", "make"));
    put(
        &world,
        "s1.jsonl",
        &lines(&transcript(&world.repo(), &events)),
    );
    let sessions = world.healthy();
    assert_eq!(sessions["agent:main:main"].open_effects.len(), 1);
    let detail = world.agent().session(&world.env(), "s1", 2).unwrap();
    assert_eq!(detail.turns.len(), 2);
    assert!(detail.turns[0].text.chars().count() <= 2_001);
}

#[test]
fn a_link_in_the_place_of_an_agent_is_named() {
    let world = World::new();
    let elsewhere = world.repo().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let agents = world.state().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::os::unix::fs::symlink(&elsewhere, agents.join("main")).unwrap();
    let found = world.here();
    assert_eq!(found.issues.len(), 1);
    assert_eq!(found.issues[0].kind, IssueKind::Symlink);
    assert_eq!(found.issues[0].path, agents.join("main"));
}
