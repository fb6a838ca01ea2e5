//! The faces: the command line, the MCP server, the script of the skill, and the notice that a hook hands to a model.
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::stage::Stage;
use crate::Ran;

/// What a face says of one candidate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Said {
    /// The task.
    pub task: String,
    /// The agent.
    pub agent: String,
    /// The session.
    pub session: String,
    /// The verdict.
    pub verdict: String,
    /// The codes of the reasons, in order.
    pub reasons: Vec<String>,
    /// The recorded status.
    pub status: String,
    /// The changed paths named with the reason that the content changed.
    pub paths: Vec<String>,
}

/// What a face says of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The candidates.
    pub candidates: Vec<Said>,
    /// The kinds of damage.
    pub issues: Vec<String>,
    /// All of it as text.
    pub text: String,
}

impl Answer {
    fn of(data: &Value, text: String) -> Self {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let candidates = list(&data["candidates"]);
        Self {
            candidates: candidates
                .iter()
                .map(|one| Said {
                    task: word(&one["identity"]["taskId"]),
                    agent: word(&one["agent"]),
                    session: word(&one["identity"]["sessionId"]),
                    verdict: word(&one["verdict"]),
                    reasons: list(&one["reasons"])
                        .iter()
                        .map(|reason| word(&reason["code"]))
                        .collect(),
                    status: word(&one["identity"]["status"]),
                    paths: list(&one["reasons"])
                        .iter()
                        .flat_map(|reason| list(&reason["paths"]))
                        .map(|path| word(&path))
                        .collect(),
                })
                .collect(),
            issues: list(&data["issues"])
                .iter()
                .map(|issue| word(&issue["kind"]))
                .collect(),
            text,
        }
    }
}

/// Asks the command line.
pub fn command(stage: &Stage) -> Answer {
    let ran = stage
        .scratch
        .takeup_in(&stage.place, &["inspect", "--json"])
        .exits(0);
    Answer::of(&ran.json()["data"], ran.stdout)
}

/// Asks the script of the skill.
pub fn skill(stage: &Stage) -> Answer {
    let script =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../skills/takeup/scripts/inspect.sh");
    let mut command = Command::new(script);
    stage.scratch.dress(&mut command);
    let output = command
        .current_dir(&stage.place)
        .output()
        .expect("the script can be started");
    let ran = Ran::of(output).exits(0);
    Answer::of(&ran.json()["data"], ran.stdout)
}

/// Asks the MCP server, and then tries to take a task up without a person's yes. Returns the answer, and the code with
/// which the take-up was refused.
pub fn mcp(stage: &Stage, task: &str, from: &str) -> (Answer, Option<String>) {
    let call = |id: u32, tool: &str, arguments: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}})
    };
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": {"name": "some-client", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}),
        call(2, "takeup_inspect", json!({})),
        call(
            3,
            "takeup_resume",
            json!({"task": task, "from": from, "session": "visitor"}),
        ),
    ];
    let mut child = stage
        .scratch
        .program_in(&stage.place)
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server can be started");
    let mut input = child.stdin.take().expect("its input is piped");
    for line in lines {
        writeln!(input, "{line}").expect("the server reads");
    }
    drop(input);
    let output = child.wait_with_output().expect("the server ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let answer = |id: u32| {
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find(|message| message["id"] == id && message.get("result").is_some())
            .map_or_else(
                || panic!("the server did not answer call {id}: {text}"),
                |message| message["result"]["structuredContent"].clone(),
            )
    };
    let inspected = answer(2);
    let refused = answer(3)["error"]["code"].as_str().map(str::to_owned);
    (
        Answer::of(&inspected["data"], inspected.to_string()),
        refused,
    )
}

/// Asks for the notice that a model is given when another session begins here. Returns the pairs of task and verdict in it.
pub fn notice(stage: &Stage) -> (BTreeSet<(String, String)>, String) {
    let said = json!({"sessionID": "visitor", "directory": stage.root()});
    let mut child = stage
        .scratch
        .program_in(&stage.place)
        .args(["hook", "opencode", "session-start"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut input = child.stdin.take().expect("its input is piped");
    input
        .write_all(said.to_string().as_bytes())
        .expect("the hook reads");
    drop(input);
    let ran = Ran::of(child.wait_with_output().expect("the hook ends")).exits(0);
    let reply: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    let text = reply["notice"].as_str().unwrap_or_default().to_owned();
    let list = text
        .lines()
        .find_map(|line| line.strip_prefix("takeup: unfinished here: "))
        .and_then(|rest| rest.split(". Look with").next())
        .unwrap_or_default();
    let pairs = list
        .split(", ")
        .filter_map(|one| {
            one.split(" and ")
                .next()?
                .trim_end_matches(')')
                .split_once(" (")
        })
        .map(|(task, verdict)| (task.to_owned(), verdict.to_owned()))
        .collect();
    (pairs, text)
}
