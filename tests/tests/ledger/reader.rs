//! A reader that shares no code with the ledger: what docs/formats/ledger.md says, in a few lines.
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// What this reader found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The texts of the notes of task `t`, in order.
    pub(crate) notes: Vec<String>,
    /// Ids of the tasks.
    pub(crate) tasks: Vec<String>,
    /// The number of the last record.
    pub(crate) seq: u64,
    /// Lines that are none.
    pub(crate) bad: usize,
    /// A record that was acknowledged is gone from the end.
    pub(crate) cut: bool,
}

/// Checks a record: everything before `,"sum":"` is what the sum is over.
fn sound(line: &str) -> Option<Value> {
    let (content, sum) = line.rsplit_once(",\"sum\":\"")?;
    let hex = Sha256::digest(content.as_bytes())
        .iter()
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    (sum == format!("{hex}\"}}"))
        .then(|| serde_json::from_str(line).expect("a sound record is JSON"))
}

fn snapshot(path: &Path) -> Option<Found> {
    let text = String::from_utf8(std::fs::read(path).ok()?).ok()?;
    let record = sound(text.trim_end_matches('\n'))?;
    let tasks = record["state"]["tasks"].as_object().unwrap();
    Some(Found {
        notes: tasks
            .get("t")
            .and_then(|entry| entry["notes"].as_array())
            .map(|notes| {
                notes
                    .iter()
                    .map(|note| note["text"].as_str().unwrap().to_owned())
                    .collect()
            })
            .unwrap_or_default(),
        tasks: tasks.keys().cloned().collect(),
        seq: record["seq"].as_u64().unwrap(),
        bad: 0,
        cut: false,
    })
}

fn journal(path: &Path, found: &mut Found) {
    let Ok(bytes) = std::fs::read(path) else {
        return;
    };
    for line in bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let Some(record) = std::str::from_utf8(line).ok().and_then(sound) else {
            found.bad += 1;
            continue;
        };
        assert_eq!(record["v"], 1);
        let seq = record["seq"].as_u64().unwrap();
        if seq <= found.seq {
            continue;
        }
        found.seq = seq;
        for change in record["transition"]["changes"].as_array().unwrap() {
            match change["put"].as_str().unwrap() {
                "note" => found
                    .notes
                    .push(change["note"]["text"].as_str().unwrap().to_owned()),
                "task" => found
                    .tasks
                    .push(change["task"]["taskId"].as_str().unwrap().to_owned()),
                "archived" => {
                    let gone: Vec<&str> = change["taskIds"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|id| id.as_str().unwrap())
                        .collect();
                    found.tasks.retain(|task| !gone.contains(&task.as_str()));
                }
                _ => {}
            }
        }
    }
}

/// Reads a ledger.
pub(crate) fn read(folder: &Path) -> Found {
    let mut found = if let Some(found) = snapshot(&folder.join("state.json")) {
        found
    } else {
        let mut found = snapshot(&folder.join("state.old.json")).unwrap_or_default();
        journal(&folder.join("journal.old.jsonl"), &mut found);
        found
    };
    journal(&folder.join("journal.jsonl"), &mut found);
    let note = std::fs::read_to_string(folder.join("acknowledged")).unwrap_or_default();
    let note = note.lines().next().and_then(sound);
    found.cut = note.is_some_and(|note| note["seq"].as_u64().unwrap() > found.seq);
    found
}
