//! How a background task ended is told to whoever it concerns: once to its session, and with every look at its task.
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use takeup_tests::{Ran, Scratch};

use super::kit::{Desk, until};

/// Calls a hook as OpenCode's plugin does, and returns what its model is shown.
fn hook(scratch: &Scratch, session: &str, event: &str) -> String {
    let payload = json!({"sessionID": session, "directory": scratch.repo(), "prompt": "go on"});
    let mut child = scratch
        .program_in(&scratch.repo())
        .args(["hook", "opencode", event])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = payload.to_string();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    Ran::of(child.wait_with_output().unwrap()).exits(0).stdout
}

/// Starts a background task as a session does, and waits for its end.
fn ran(scratch: &Scratch, session: &str, name: &str, script: &str) -> String {
    let mut command = scratch.program_in(&scratch.repo());
    command
        .args([
            "bg", "run", "--json", "--name", name, "--", "sh", "-c", script,
        ])
        .env("TAKEUP_SESSION", session)
        .env("TAKEUP_AGENT", "opencode");
    let started = Ran::of(command.output().unwrap()).exits(0).json();
    scratch.takeup(&["bg", "wait", name]);
    started["data"]["task"]["id"].as_str().unwrap().to_owned()
}

fn begin(scratch: &Scratch, session: &str) {
    let words = ["start", "Mine", "--session", session, "--agent", "opencode"];
    scratch
        .takeup(&[&words[..], &["--check", "true"]].concat())
        .exits(0);
}

#[test]
fn a_session_hears_once_how_its_background_tasks_ended() {
    let desk = Desk::in_repository();
    let scratch = &desk.scratch;
    begin(scratch, "ses_1");
    hook(scratch, "ses_1", "turn-start");
    let failed = ran(scratch, "ses_1", "build", "exit 3");
    hook(scratch, "ses_1", "turn-end");
    let heard = hook(scratch, "ses_1", "turn-start");
    assert!(
        heard.contains(&failed) && heard.contains("failed, exit status 3"),
        "{heard}"
    );
    let done = ran(scratch, "ses_1", "lint", "exit 0");
    // Another session has nothing to do with it.
    assert!(!hook(scratch, "ses_2", "turn-start").contains("background"));
    let heard = hook(scratch, "ses_1", "session-start");
    assert!(heard.contains(&done) && !heard.contains(&failed), "{heard}");
    let heard = hook(scratch, "ses_1", "turn-start");
    assert!(!heard.contains("background"), "{heard}");
}

#[test]
fn what_failed_for_a_task_is_told_with_the_task() {
    let desk = Desk::in_repository();
    let scratch = &desk.scratch;
    begin(scratch, "ses_1");
    let id = ran(scratch, "ses_1", "build", "exit 3");
    ran(scratch, "ses_1", "lint", "exit 0");
    let told = |words: &[&str]| -> String { scratch.takeup(words).stdout };
    let own = ["--session", "ses_1", "--agent", "opencode"];
    let next = [&["next"][..], &own].concat();
    for words in [
        &["show", "mine"][..],
        &["inspect"],
        &next,
        &["handover", "mine", "--dry-run"],
    ] {
        let said = told(words);
        assert!(
            said.contains("exit status 3") && said.contains(&format!("git takeup bg show {id}")),
            "{words:?}: {said}"
        );
        assert!(!said.contains("lint"), "{words:?}: {said}");
    }
    let ended = |scratch: &Scratch| -> Value {
        let shown = scratch.takeup(&["show", "mine", "--json"]).exits(0).json();
        shown["data"]["background"]["ended"].clone()
    };
    assert_eq!(ended(scratch)[0]["status"], "failed");
    // It was mended: nobody has to hear of the failure any more.
    ran(scratch, "ses_1", "build", "exit 0");
    assert_eq!(ended(scratch), Value::Null);
}

/// What jcode runs by its own means goes on when its session is gone, and whoever takes the work up hears of it.
#[test]
fn what_an_agent_runs_by_its_own_means_is_told_with_the_work_of_its_session() {
    let desk = Desk::in_repository();
    let scratch = &desk.scratch;
    let home = scratch.home().join(".jcode");
    let session = "session_fox_1777629600000_0000000000000000";
    std::fs::create_dir_all(home.join("sessions")).unwrap();
    let record = json!({
        "id": session, "parent_id": null, "title": "Uploader retry", "created_at": "2026-05-01T10:00:00Z",
        "updated_at": "2026-05-01T10:00:03Z", "messages": [{"id": "message_1", "role": "user",
            "content": [{"type": "text", "text": "Retry the upload"}], "timestamp": "2026-05-01T10:00:02Z"}],
        "is_canary": false, "working_dir": scratch.repo(), "short_name": "fox", "status": "Active",
        "last_pid": 99_999_999, "last_active_at": "2026-05-01T10:00:01Z", "is_debug": false, "saved": false,
    });
    std::fs::write(
        home.join(format!("sessions/{session}.json")),
        record.to_string(),
    )
    .unwrap();
    let mut living = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    let folder = home.join("scratch/jcode-bg-tasks");
    std::fs::create_dir_all(&folder).unwrap();
    let task = json!({
        "task_id": "400000dok1", "tool_name": "bash", "display_name": "long benchmark", "session_id": session,
        "status": "running", "pid": living.id(), "detached": true,
        "started_at": takeup_tests::a_tick_later().to_string(),
    });
    std::fs::write(folder.join("400000dok1.status.json"), task.to_string()).unwrap();
    std::fs::write(folder.join("400000dok1.output"), "42% done\n").unwrap();
    until("the task is seen to run", || {
        desk.bg(&["list", "--running"])
            .stdout
            .contains("long benchmark")
    });
    let hears = |words: &[&str]| {
        let said = scratch.takeup(words).stdout;
        assert!(
            said.contains("long benchmark") && said.contains("git takeup bg show 400000dok1"),
            "{words:?}: {said}"
        );
    };
    hears(&[]);
    hears(&["inspect"]);
    hears(&["sessions", "show", "fox"]);
    let taken = ["resume", "--from", "fox", "--rebuild", "--to", "me"];
    scratch
        .takeup(&[&taken[..], &["--agent", "codex"]].concat())
        .exits(0);
    hears(&["show", "uploader-retry"]);
    hears(&["next", "--session", "me", "--agent", "codex"]);
    hears(&["handover", "uploader-retry", "--dry-run"]);
    living.kill().unwrap();
    living.wait().unwrap();
    let said = scratch.takeup(&["show", "uploader-retry"]).exits(0).stdout;
    assert!(!said.contains("long benchmark"), "{said}");
}
