//! Everything that reads bytes of others, with a fixed corpus and seeded changes of it: the same functions that `fuzz/` calls.
//! None of them may panic or hang; what they say is not asked here.
use std::path::{Path, PathBuf};

use serde_json::json;
use takeup_tests::readers::READERS;

use super::Dice;

/// How often each piece of the corpus is changed.
const ROUNDS: usize = 25;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("fixtures")
            .join(name),
    )
    .unwrap()
}

/// The bodies of sealed lines, as the readers seal them.
fn bodies(bytes: &[u8], mark: &str) -> Vec<u8> {
    String::from_utf8(bytes.to_vec())
        .unwrap()
        .lines()
        .map(|line| line.split_once(mark).unwrap().0)
        .collect::<Vec<_>>()
        .join("\n")
        .into_bytes()
}

fn newest(folder: &str, ending: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(folder);
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(ending))
        .collect();
    all.sort();
    std::fs::read(all.pop().unwrap()).unwrap()
}

/// What a reader is given first: files of the real programs, and a few of the shapes that readers fall over.
fn corpus(reader: &str) -> Vec<Vec<u8>> {
    let mut all = vec![
        Vec::new(),
        vec![b'['; 20_000],
        vec![0; 100],
        b"{\"a\":1e999}\n".to_vec(),
    ];
    let jcode = "jcode-home/home/sessions";
    match reader {
        "journal" => all.push(fixture("state-v1/ledger/journal.jsonl")),
        "sealed_journal" => all.push(bodies(&fixture("state-v1/ledger/journal.jsonl"), ",\"prev\":\"")),
        "snapshot" => all.push(bodies(&fixture("state-v1/ledger/state.json"), ",\"sum\":\"")),
        "archive" => all.push(bodies(&fixture("state-v1/ledger/archive/done.json"), ",\"sum\":\"")),
        "sidecar" => all.push(
            json!({"schemaVersion": "opencode-plusplus.task-resume.v1", "sessionId": "b", "repositoryRoot": "/repo",
                "taskId": "a", "baseWorkingTreeFingerprint": "0", "latestWorkingTreeFingerprint": "0", "status": "dirty",
                "updatedAt": "2026-03-01T10:00:00.000Z", "revision": 1})
            .to_string()
            .into_bytes(),
        ),
        "jcode_snapshot" => all.push(newest(jcode, ".json")),
        "jcode_journal" => all.push(newest(jcode, ".journal.jsonl")),
        "openclaw_jsonl" => all.push(
            b"{\"type\":\"session\",\"version\":4,\"id\":\"s\",\"timestamp\":\"1970-01-01T00:00:01.000Z\",\"cwd\":\"/repo\"}\n\
              {\"type\":\"message\",\"id\":\"e0\",\"parentId\":null,\"timestamp\":\"1970-01-01T00:00:02.000Z\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n\
              {\"agent:main:main\":{\"sessionId\":\"s1\",\"updatedAt\":2000}}\n"
                .to_vec(),
        ),
        "hook_payload" => all.push(
            b"{\"session_id\":\"s\",\"sessionID\":\"s\",\"cwd\":\"/repo\",\"prompt\":\"x\",\"error\":{\"message\":\"m\"}}".to_vec(),
        ),
        "json_rpc" => all.push(
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}\n\
              {\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n\
              {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{}}\n\
              {\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"takeup_status\",\"arguments\":{}}}\n"
                .to_vec(),
        ),
        "status_file" => all.push(newest("state-v1/state/tasks", ".status.json")),
        "git_index" => all.push(index()),
        _ => all.push(b"token=abc AWS_SECRET_ACCESS_KEY=x https://a:b@c/ -----BEGIN RSA PRIVATE KEY-----\nx".to_vec()),
    }
    all
}

/// An index that git wrote.
fn index() -> Vec<u8> {
    let scratch = takeup_tests::Scratch::new(super::PROGRAM);
    scratch.write("deep/er/file", "x\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["update-index", "--index-version", "4"]);
    std::fs::read(scratch.repo().join(".git/index")).unwrap()
}

/// Changes bytes in one of the ways in which disks and strangers do.
fn changed(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=dice.roll(3) {
        let size = bytes.len() as u64;
        let at = usize::try_from(dice.roll(size.max(1)))
            .unwrap()
            .min(bytes.len());
        let to = (at + usize::try_from(dice.roll(40)).unwrap()).min(bytes.len());
        match dice.roll(8) {
            0 | 1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << dice.roll(8);
                }
            }
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..to)),
            4 => bytes[at..to].fill(0),
            5 => {
                let piece = bytes[at..to].to_vec();
                bytes.splice(at..at, piece);
            }
            6 => {
                let words: [&[u8]; 8] = [
                    b"\\ud800",
                    b"-1",
                    b"99999999999999999999",
                    b"null",
                    b"{",
                    b"\"",
                    b"\xff",
                    b"\n",
                ];
                bytes.splice(at..to, dice.pick(&words).iter().copied());
            }
            _ => {
                for byte in &mut bytes[at..to] {
                    *byte = dice.roll(256) as u8;
                }
            }
        }
    }
    bytes
}

#[test]
fn no_reader_falls_over_bytes_of_others() {
    for (name, read) in READERS {
        let mut dice = Dice(name.len() as u64);
        for piece in corpus(name) {
            read(&piece);
            for round in 0..ROUNDS {
                let bytes = changed(&piece, &mut dice);
                let failed = std::panic::catch_unwind(|| read(&bytes)).is_err();
                assert!(
                    !failed,
                    "{name}, round {round}: {:?}",
                    String::from_utf8_lossy(&bytes)
                );
            }
        }
    }
}
