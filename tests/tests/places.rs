//! Places: moved, copied, linked, recycled, and odd shapes of repositories; doctor and gc.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::create_dir,
    reason = "tests make files and move folders as a user does"
)]
#[path = "places/causes.rs"]
mod causes;
#[path = "places/elsewhere.rs"]
mod elsewhere;
#[path = "places/health.rs"]
mod health;
#[path = "places/left.rs"]
mod left;
#[path = "places/shapes.rs"]
mod shapes;
#[path = "places/sharing.rs"]
mod sharing;
#[path = "places/whereabouts.rs"]
mod whereabouts;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use takeup_tests::{Scratch, picture};

const PROGRAM: &str = env!("CARGO_BIN_EXE_takeup-under-test");

/// Starts a task in a folder and leaves it in good order.
fn leave(scratch: &Scratch, folder: &Path, task: &str, session: &str) {
    scratch
        .takeup_in(folder, &["start", task, "--session", session])
        .exits(0);
    scratch
        .takeup_in(folder, &["save", "--session", session, "--end"])
        .exits(0);
}

/// The candidates of a folder: task, verdict, codes of the reasons.
fn candidates(scratch: &Scratch, folder: &Path) -> Vec<(String, String, Vec<String>)> {
    let answer = scratch.takeup_in(folder, &["inspect", "--json"]).json();
    let list = answer["data"]["candidates"].as_array();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    list.unwrap_or_else(|| panic!("{answer:#}"))
        .iter()
        .map(|one| {
            let codes = one["reasons"].as_array().unwrap();
            (
                text(&one["identity"]["taskId"]),
                text(&one["verdict"]),
                codes.iter().map(|reason| text(&reason["code"])).collect(),
            )
        })
        .collect()
}

fn verdict(scratch: &Scratch, folder: &Path) -> String {
    let found = candidates(scratch, folder);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].1.clone()
}

/// Runs a session of Claude Code, seen by its hooks alone, that crashes after its first turn: a shell under the agent's name
/// calls the hooks, and is over when they are. `variables` are of its environment.
fn hooked(scratch: &Scratch, id: &str, folder: &Path, variables: &[(&str, &Path)]) {
    let agent = scratch.path().join("claude");
    if !agent.exists() {
        takeup_tests::copy_program(Path::new("/bin/sh"), &agent);
    }
    for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
        let payload = format!(
            "{{\"session_id\":\"{id}\",\"cwd\":\"{}\",\"prompt\":\"mend {id}\"}}",
            folder.display()
        );
        let mut program = Command::new(&agent);
        scratch.dress(&mut program);
        program
            .current_dir(folder)
            .envs(variables.iter().copied())
            .stdin(std::process::Stdio::null())
            .args(["-c", "\"$@\"; :", "claude", PROGRAM])
            .args(["hook", "claude-code", event, &payload]);
        let done = program.output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp")
        .arg("-a")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(done.success());
}
