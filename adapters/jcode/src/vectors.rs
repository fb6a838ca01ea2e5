//! The home that the real program wrote, and the answers that the real program gave.
use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::Value;

use crate::home::{Home, Key};
use crate::load::{Loaded, load};
use crate::wire::{Block, Message, Status};

pub(crate) fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/jcode-home")
        .join(name)
}

pub(crate) fn home() -> Home {
    Home::at(fixture("home"))
}

pub(crate) fn expected(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(fixture("expected").join(name)).unwrap()).unwrap()
}

/// The ids of the vectors by their word.
pub(crate) fn id(word: &str) -> Key {
    let names = expected("names.json");
    Key::new(names["sessions"][word].as_str().unwrap()).unwrap()
}

pub(crate) fn loaded(word: &str) -> Loaded {
    load(&home(), &id(word)).unwrap().unwrap()
}

fn ids(session: &Loaded) -> Vec<String> {
    session
        .messages
        .iter()
        .map(|m| m.id.clone().unwrap())
        .collect()
}

/// The line jcode shows for a message.
fn preview(message: &Message) -> String {
    let words = |text: &str| text.replace('\n', " ").trim().to_owned();
    if let Some(text) = message.text() {
        return words(text);
    }
    message
        .blocks
        .iter()
        .find_map(|block| match block {
            Block::ToolResult { content, .. } if !content.is_empty() => {
                Some(format!("[result: {}]", words(content)))
            }
            Block::Text(_)
            | Block::ToolUse { .. }
            | Block::ToolResult { .. }
            | Block::Image { .. }
            | Block::Hidden
            | Block::Unknown { .. } => None,
        })
        .unwrap_or_else(|| "(empty)".to_owned())
}

fn status(status: &Status) -> Value {
    match status {
        Status::Crashed(message) => serde_json::json!({"Crashed": {"message": message}}),
        Status::Error(message) => serde_json::json!({"Error": {"message": message}}),
        Status::Active
        | Status::Closed
        | Status::Reloaded
        | Status::Compacted
        | Status::RateLimited
        | Status::Unknown(_) => Value::from(status.word()),
    }
}

/// The sessions that jcode itself answers wrongly or not at all, by the description of the vectors.
const WRONG: [&str; 4] = ["duck", "lion", "mole", "hippo"];

#[test]
fn every_session_loads_as_in_jcode_where_jcode_is_right() {
    let wrong: Vec<Key> = WRONG.iter().map(|word| id(word)).collect();
    let mut compared = 0;
    for answer in expected("load-all.json").as_array().unwrap() {
        let key = Key::new(answer["id"].as_str().unwrap()).unwrap();
        let session = load(&home(), &key).unwrap().unwrap();
        if wrong.contains(&key) {
            assert!(!session.recovered.is_empty(), "{key:?}");
            continue;
        }
        compared += 1;
        assert_eq!(session.recovered, Vec::<String>::new(), "{key:?}");
        assert_eq!(session.jcode_loads, Some(session.messages.len()));
        let previews: Vec<String> = session.messages.iter().map(preview).collect();
        let visible = session.messages.iter().filter(|m| m.is_visible()).count();
        let updated: Timestamp = answer["updated_at"].as_str().unwrap().parse().unwrap();
        assert_eq!(session.updated_at(), Some(updated));
        assert_eq!(
            serde_json::json!({
                "display_name": session.name().unwrap_or(key.as_str()),
                "display_title": session.title(),
                "env_snapshots": session.counts.environments,
                "id": key.as_str(),
                "last_pid": session.last_pid(),
                "memory_injections": session.counts.memories,
                "message_count": session.messages.len(),
                "message_ids": ids(&session),
                "previews": previews,
                "replay_events": session.counts.replays,
                "status": status(session.status()),
                "visible_message_count": visible,
                "compacted_count": session.meta.compacted,
                "summary_text": session.meta.summary,
            }),
            serde_json::json!({
                "display_name": answer["display_name"],
                "display_title": answer["display_title"],
                "env_snapshots": answer["env_snapshots"],
                "id": answer["id"],
                "last_pid": answer["last_pid"],
                "memory_injections": answer["memory_injections"],
                "message_count": answer["message_count"],
                "message_ids": answer["message_ids"],
                "previews": answer["previews"],
                "replay_events": answer["replay_events"],
                "status": answer["status"],
                "visible_message_count": answer["visible_message_count"],
                "compacted_count": answer["compaction"]["compacted_count"],
                "summary_text": answer["compaction"]["summary_text"],
            })
        );
    }
    assert_eq!(compared, 19);
}

#[test]
fn the_whole_content_of_a_session_is_read_as_jcode_reads_it() {
    for (file, word) in [
        ("load-fox-full.json", "fox"),
        ("load-goat-full.json", "goat"),
    ] {
        let answer = expected(file);
        let session = loaded(word);
        let expected = answer["session"]["messages"].as_array().unwrap();
        let ours: Vec<Value> = session
            .messages
            .iter()
            .map(|message| serde_json::from_str(&message.raw).unwrap())
            .collect();
        assert_eq!(ours.len(), expected.len());
        for (ours, theirs) in ours.iter().zip(expected) {
            let at = |value: &Value| value["timestamp"].as_str().unwrap().parse::<Timestamp>();
            assert_eq!(at(ours).unwrap(), at(theirs).unwrap());
            for key in [
                "id",
                "role",
                "content",
                "display_role",
                "token_usage",
                "tool_duration_ms",
            ] {
                assert_eq!(ours.get(key), theirs.get(key), "{word} {key}");
            }
        }
        let theirs = &answer["session"];
        assert_eq!(session.meta.model.as_deref(), theirs["model"].as_str());
        assert_eq!(
            session.meta.provider_key.as_deref(),
            theirs["provider_key"].as_str()
        );
        assert_eq!(
            session.meta.route.as_deref(),
            theirs["route_api_method"].as_str()
        );
        assert_eq!(session.working_dir(), theirs["working_dir"].as_str());
        assert_eq!(session.meta.saved, theirs["saved"].as_bool().unwrap());
        let time = |key: &str| theirs[key].as_str().unwrap().parse::<Timestamp>().ok();
        assert_eq!(session.meta.created_at, time("created_at"));
        assert_eq!(session.meta.last_active_at, time("last_active_at"));
    }
}

#[test]
fn what_jcode_loses_or_turns_round_is_right_here() {
    let numbers: BTreeMap<&str, usize> = [
        ("duck", 3),
        ("mole", 1),
        ("lion", 2),
        ("hippo", 1),
        ("lynx", 1),
        ("zebra", 2),
        ("crab", 2),
        ("deer", 2),
    ]
    .into();
    for (word, number) in &numbers {
        assert_eq!(loaded(word).messages.len(), *number, "{word}");
    }
    let duck = loaded("duck");
    assert_eq!(duck.status(), &Status::Closed);
    assert_eq!(duck.jcode_loads, Some(5), "jcode shows two of them twice");
    for word in ["mole", "lion", "hippo", "lynx"] {
        let session = loaded(word);
        assert_eq!(session.jcode_loads, None, "{word}");
        assert_eq!(session.recovered.len(), 1, "{word}");
        assert!(session.recovered[0].starts_with("messages that jcode cannot load: "));
    }
    let hippo = loaded("hippo");
    assert_eq!(hippo.status(), &Status::Unknown("Paused".to_owned()));
    assert_eq!(loaded("mole").meta.short_name.as_deref(), Some("mole"));
    let deer = loaded("deer");
    assert_eq!(
        deer.issues.len(),
        2,
        "the damage and the gap are told: {:?}",
        deer.issues
    );
    assert_eq!(loaded("zebra").issues.len(), 1);
    assert_eq!(loaded("crab").issues.len(), 1);
}

/// Every process that the vectors name is dead.
fn listed(now: &str) -> takeup_core::agent::Found<takeup_core::agent::Session> {
    use takeup_core::agent::Agent as _;
    let clock = takeup_core::time::FixedClock(now.parse().unwrap());
    let jcode = crate::Jcode::with(crate::processes::fake::Fake::default(), clock);
    let env = takeup_core::env::Env::of([("JCODE_HOME", fixture("home"))], "/");
    jcode.sessions(&env, &takeup_core::agent::SessionQuery::default())
}

#[test]
fn crashes_are_found_as_in_jcode_where_jcode_is_right() {
    use takeup_core::process::Liveness;
    let found = listed("2026-05-01T14:00:00Z");
    let crashed: BTreeMap<&str, &takeup_core::agent::Session> = found
        .items
        .iter()
        .filter(|session| matches!(session.liveness, Liveness::Crashed { .. }))
        .map(|session| (session.name.as_deref().unwrap(), session))
        .collect();
    let words: Vec<&str> = crashed.keys().copied().collect();
    assert_eq!(
        words,
        [
            "bear", "crab", "deer", "fox", "koala", "lion", "lynx", "mole", "owl", "panda", "seal",
            "whale", "wolf", "zebra"
        ]
    );
    // jcode's full scan without the session that hides the others: one group, the rest left out.
    let theirs = expected("detect-crashed.no-legacy.json");
    let newest = found
        .items
        .iter()
        .filter_map(|s| s.crash_group.as_deref())
        .max()
        .unwrap();
    let group: Vec<&str> = found
        .items
        .iter()
        .filter(|session| session.crash_group.as_deref() == Some(newest))
        .map(|session| session.session.id.as_str())
        .collect();
    // The last one to crash is one that jcode cannot load; the last that it can is in the group it gives.
    assert_eq!(group, [id("lion").as_str()]);
    let seal = crashed["seal"].crash_group.as_deref().unwrap();
    let with_seal: Vec<&str> = found
        .items
        .iter()
        .filter(|session| session.crash_group.as_deref() == Some(seal))
        .map(|session| session.session.id.as_str())
        .collect();
    assert_eq!(serde_json::json!(with_seal), theirs["session_ids"]);
    assert_eq!(crashed["koala"].crash_group, None, "jcode has recovered it");
    assert_eq!(
        crashed["fox"].crash_group, crashed["owl"].crash_group,
        "they went down together"
    );
}
