//! Sessions made for one rule each: what their files hold decides what is loaded.
use crate::home::{Home, Key};
use crate::load::load;
use crate::trials::put;

/// A session of three messages, of which the files hold what a test puts there.
fn message(number: usize) -> String {
    format!(
        r#"{{"id":"m{number}","role":"user","content":[{{"type":"text","text":"{number}"}}],"timestamp":"2026-05-01T10:00:0{number}Z"}}"#
    )
}

fn snapshot(key: &Key, numbers: &[usize], status: &str, second: usize) -> String {
    let messages: Vec<String> = numbers.iter().map(|number| message(*number)).collect();
    format!(
        r#"{{"id":"{}","created_at":"2026-05-01T10:00:00Z","updated_at":"2026-05-01T10:00:{second:02}Z","messages":[{}],"title":"t","working_dir":"/repo","status":"{status}"}}"#,
        key.as_str(),
        messages.join(",")
    )
}

fn entry(numbers: &[usize], second: usize) -> String {
    let messages: Vec<String> = numbers.iter().map(|number| message(*number)).collect();
    format!(
        r#"{{"meta":{{"title":"later","updated_at":"2026-05-01T10:00:{second:02}Z","is_canary":false,"working_dir":"/repo","status":"Active","is_debug":false,"saved":false}},"append_messages":[{}]}}"#,
        messages.join(",")
    )
}

/// Loads a session out of files given by their endings.
fn made(files: &[(&str, &[u8])]) -> crate::Loaded {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    std::fs::create_dir_all(folder.path().join("sessions")).unwrap();
    for (ending, bytes) in files {
        put(
            &folder
                .path()
                .join(format!("sessions/session_fox_1_2.{ending}")),
            bytes,
        );
    }
    load(&home, &fox()).unwrap().unwrap()
}

fn fox() -> Key {
    Key::new("session_fox_1_2").unwrap()
}

fn numbers(loaded: &crate::Loaded) -> Vec<&str> {
    loaded
        .messages
        .iter()
        .filter_map(|message| message.text())
        .collect()
}

#[test]
fn what_only_files_beside_the_session_hold_is_found() {
    let now = snapshot(&fox(), &[1, 3], "Active", 10);
    // A write that did not end, and was the last.
    let unfinished = snapshot(&fox(), &[1, 3, 4], "Active", 20);
    let loaded = made(&[("json", now.as_bytes()), ("tmp.1.2", unfinished.as_bytes())]);
    assert_eq!(numbers(&loaded), ["1", "3", "4"]);
    assert_eq!(loaded.jcode_loads, Some(2));
    assert!(
        loaded.recovered[0].starts_with("messages that jcode cannot load: 1 "),
        "{:?}",
        loaded.recovered
    );
    // One that was left over long ago counts nothing: what it holds was taken out since.
    let old = snapshot(&fox(), &[1, 2], "Active", 5);
    let loaded = made(&[("json", now.as_bytes()), ("tmp.1.2", old.as_bytes())]);
    assert_eq!(numbers(&loaded), ["1", "3"]);
    // The journal whose bad line jcode kept a copy of: what only that line held was never loaded.
    let whole = entry(&[2, 5], 8);
    let torn = &whole.as_bytes()[..whole.len() - 20];
    let loaded = made(&[("json", now.as_bytes()), ("journal.corrupt.jsonl", torn)]);
    assert_eq!(numbers(&loaded), ["1", "2", "3"], "at its place in time");
    // An empty session has replaced a big one.
    let empty = snapshot(&fox(), &[], "Active", 30);
    let loaded = made(&[
        ("json", empty.as_bytes()),
        ("json.pre-wipe-7.bak", now.as_bytes()),
    ]);
    assert_eq!(numbers(&loaded), ["1", "3"]);
    assert_eq!(loaded.jcode_loads, Some(0));
}

#[test]
fn damaged_snapshots_give_what_they_hold() {
    let old = snapshot(&fox(), &[1], "Active", 5);
    let newer = snapshot(&fox(), &[1, 2, 3], "Active", 10);
    let cut = &newer.as_bytes()[..newer.find("\"m3\"").unwrap()];
    // With a backup that is older, and a journal that is newer.
    let journal = entry(&[4], 12);
    let loaded = made(&[
        ("json", cut),
        ("bak", old.as_bytes()),
        ("journal.jsonl", journal.as_bytes()),
    ]);
    assert_eq!(numbers(&loaded), ["1", "2", "4"]);
    assert_eq!(loaded.jcode_loads, Some(2));
    // With nothing beside it.
    let loaded = made(&[("json", cut)]);
    assert_eq!(numbers(&loaded), ["1", "2"]);
    assert_eq!(loaded.jcode_loads, None);
    // Zero bytes at its end, or nothing but zero bytes.
    let padded = [newer.as_bytes(), &[0; 512]].concat();
    let loaded = made(&[("json", &padded)]);
    assert_eq!(numbers(&loaded), ["1", "2", "3"]);
    assert_eq!(loaded.jcode_loads, None);
    let loaded = made(&[("json", &[0; 512]), ("journal.jsonl", journal.as_bytes())]);
    assert_eq!(numbers(&loaded), ["4"]);
    assert!(
        loaded
            .issues
            .iter()
            .any(|issue| issue.kind == takeup_core::issue::IssueKind::Zeroed)
    );
}

#[test]
fn journals_are_replayed_by_time_and_id() {
    let base = snapshot(&fox(), &[1], "Closed", 10);
    // Left behind by an older snapshot: known messages, an older status.
    let stale = entry(&[1], 8);
    let loaded = made(&[
        ("json", base.as_bytes()),
        ("journal.jsonl", stale.as_bytes()),
    ]);
    assert_eq!(
        (numbers(&loaded), loaded.status()),
        (vec!["1"], &crate::Status::Closed)
    );
    // Newer lines count, blank ones do not; a line without the keys jcode demands gives its messages only.
    let lacking = entry(&[3], 13)
        .replace("\"is_canary\":false,", "")
        .replace("later", "no title");
    let journal = [entry(&[2], 12), String::new(), lacking].join("\n");
    let loaded = made(&[
        ("json", base.as_bytes()),
        ("journal.jsonl", journal.as_bytes()),
    ]);
    assert_eq!(numbers(&loaded), ["1", "2", "3"]);
    assert_eq!(
        (loaded.title(), loaded.jcode_loads),
        (Some("later"), Some(2))
    );
    assert_eq!(loaded.status(), &crate::Status::Active);
    // jcode has saved what it had shown twice.
    let twice = snapshot(&fox(), &[1, 2, 1, 2], "Active", 10);
    let loaded = made(&[("json", twice.as_bytes())]);
    assert_eq!(
        (numbers(&loaded), loaded.jcode_loads),
        (vec!["1", "2"], Some(4))
    );
}
