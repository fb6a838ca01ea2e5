//! Beside OpenCode++: its records in the work tree, its writers at the same time, its answers, and records made to harm.
mod boundary;
mod costs;
mod hostile;
mod reviews;
mod store;
mod takers;

use std::path::PathBuf;

use serde_json::{Value, json};
use takeup_tests::Scratch;

const PROGRAM: &str = env!("CARGO_BIN_EXE_takeup-under-test");
/// OpenCode++'s fingerprint of a clean tree.
const CLEAN: &str = "6c3bccf6436bdf505e07548237508ef0715a2b57849f17a710c2a752cafdd3df";

/// Makes a repository with one commit, into which OpenCode++ has written before.
fn scratch() -> Scratch {
    let scratch = Scratch::new(PROGRAM);
    std::fs::create_dir_all(sidecar(&scratch)).unwrap();
    scratch
}

fn sidecar(scratch: &Scratch) -> PathBuf {
    scratch.repo().join(".agent-context/sidecar")
}

/// Reads one of its records.
fn record(scratch: &Scratch, name: &str) -> Value {
    let text = std::fs::read_to_string(sidecar(scratch).join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Writes one of its records as it stands.
fn put(scratch: &Scratch, name: &str, record: &Value) {
    let mut text = serde_json::to_string_pretty(record).unwrap();
    text.push('\n');
    std::fs::write(sidecar(scratch).join(name), text).unwrap();
}

/// A task as OpenCode++ records it.
fn identity(scratch: &Scratch, task: &str, session: &str) -> Value {
    json!({
        "schemaVersion": "opencode-plusplus.task-resume.v1",
        "sessionId": session,
        "repositoryRoot": scratch.repo(),
        "taskId": task,
        "baseWorkingTreeFingerprint": CLEAN,
        "latestWorkingTreeFingerprint": CLEAN,
        "status": "active",
        "updatedAt": "2026-03-01T10:00:00.000Z",
        "revision": 1,
    })
}

/// Asks OpenCode++'s fingerprint of the work tree.
fn digest(scratch: &Scratch) -> String {
    let ran = scratch
        .takeup(&["fingerprint", "--format", "opencode-plusplus"])
        .exits(0);
    ran.stdout.trim().to_owned()
}
