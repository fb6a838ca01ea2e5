//! Situations from public reports, each through the real program with plain git as the judge.
//!
//! Sources are named at each test by project and number.
#[path = "cases/begin.rs"]
mod begin;
#[path = "cases/boundary.rs"]
mod boundary;
#[path = "cases/callers.rs"]
mod callers;
#[path = "cases/carried.rs"]
mod carried;
#[path = "cases/damaged.rs"]
mod damaged;
#[path = "cases/diffs.rs"]
mod diffs;
#[path = "cases/handed.rs"]
mod handed;
#[path = "cases/inherited.rs"]
mod inherited;
#[path = "cases/named.rs"]
mod named;
#[path = "cases/outcomes.rs"]
mod outcomes;
#[path = "cases/proof.rs"]
mod proof;
#[path = "cases/races.rs"]
mod races;
#[path = "cases/random.rs"]
mod random;
#[path = "cases/reviews.rs"]
mod reviews;
#[path = "cases/shown.rs"]
mod shown;
#[path = "cases/untouched.rs"]
mod untouched;
#[path = "cases/whose.rs"]
mod whose;

use std::process::{Child, Command, Stdio};

use serde_json::Value;
use takeup_tests::{Ran, Scratch};

const PROGRAM: &str = env!("CARGO_BIN_EXE_takeup-under-test");

/// Makes a repository with one commit.
fn scratch() -> Scratch {
    Scratch::new(PROGRAM)
}

/// Starts task `t1` in session `s1` and saves it.
fn left() -> Scratch {
    let scratch = scratch();
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    scratch.takeup(&["save", "--session", "s1"]).exits(0);
    scratch
}

/// A process that stands for a session, and is above nobody who calls.
struct Alive(Child);

impl Alive {
    fn begin() -> Self {
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Runs the program with variables as a session of an agent has them.
fn within(scratch: &Scratch, variables: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut program = scratch.program_in(&scratch.repo());
    program.envs(variables.iter().copied()).args(args);
    Ran::of(program.output().unwrap())
}

/// Returns the candidate of a task and session in an answer of `inspect --json`.
fn candidate<'a>(answer: &'a Value, task: &str, session: &str) -> &'a Value {
    answer["data"]["candidates"]
        .as_array()
        .and_then(|all| {
            all.iter().find(|one| {
                one["identity"]["taskId"] == task && one["identity"]["sessionId"] == session
            })
        })
        .unwrap_or_else(|| panic!("no candidate {task} of {session} in {answer:#}"))
}

/// Asks for the verdict of `t1` as `s1` left it.
fn verdict(scratch: &Scratch) -> String {
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    candidate(&answer, "t1", "s1")["verdict"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Returns the codes of a candidate's reasons.
fn reasons(candidate: &Value) -> Vec<String> {
    let all = candidate["reasons"].as_array().cloned().unwrap_or_default();
    all.iter()
        .filter_map(|reason| reason["code"].as_str().map(str::to_owned))
        .collect()
}

/// Returns the changed paths of a candidate with the place of each change.
fn changed(candidate: &Value) -> Vec<(String, String)> {
    let all = candidate["changes"]["paths"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    all.iter()
        .map(|path| {
            (
                path["path"].as_str().unwrap_or_default().to_owned(),
                path["place"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

/// Demands that a failed answer carries a code.
fn fails_with(ran: &Ran, code: &str) {
    assert_eq!(ran.json()["error"]["code"], code, "{}", ran.stdout);
}
