//! Who calls: what an agent's session holds is moved, ended and closed by that session, or in the name of who does it.
use std::process::Command;

use serde_json::Value;
use takeup_tests::{Ran, Scratch, copy_program};

use super::{Alive, PROGRAM, candidate, fails_with, scratch, within};

const CLAUDE: &[(&str, &str)] = &[("CLAUDE_CODE_SESSION_ID", "sv1")];

/// An agent's session that runs, has a task with a check, and left a file.
fn at_work(alive: &Alive) -> Scratch {
    let scratch = scratch();
    let pid = alive.pid();
    let start = [
        "start",
        "Agent task",
        "--check",
        "test -s a.txt",
        "--pid",
        &pid,
    ];
    within(&scratch, CLAUDE, &start).exits(0);
    scratch.write("b.txt", "the agent's\n");
    within(&scratch, CLAUDE, &["save"]).exits(0);
    scratch
}

fn seen(scratch: &Scratch) -> Value {
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    candidate(&answer, "agent-task", "sv1").clone()
}

fn log(scratch: &Scratch) -> Vec<Value> {
    let answer = scratch.takeup(&["log", "agent-task", "--json"]);
    let answer = answer.exits(0).json();
    answer["data"]["lines"].as_array().unwrap().clone()
}

/// Neither a person nor an agent that cannot be told from one.
#[test]
fn nobody_acts_as_an_agents_session_unasked() {
    for variables in [&[][..], &[("GEMINI_CLI", "1")]] {
        let alive = Alive::begin();
        let scratch = at_work(&alive);
        scratch.write("mine.txt", "not the agent's\n");
        let before = log(&scratch);
        for words in [
            &["save"][..],
            &["save", "--end"],
            &["save", "agent-task"],
            &["evaluate"],
            &["next"],
            &["next", "--looked"],
            &["finish", "--no-checks"],
            &["finish", "agent-task"],
            &["review", "request", "may I?"],
            &["evidence", "add", "--command", "true", "--exit-code", "0"],
            &["check", "--", "touch", "../ran"],
            &["check", "--task", "agent-task", "--", "touch", "../ran"],
            &["bg", "run", "--check", "--", "touch", "../ran"],
        ] {
            let words = [&["--json"], words].concat();
            let refused = within(&scratch, variables, &words).exits(4);
            fails_with(&refused, "held-by-other");
            let error = refused.json()["error"].clone();
            let (message, hint) = (error["message"].to_string(), error["hint"].to_string());
            assert!(
                message.contains("claude-code:sv1 holds task agent-task"),
                "{words:?}: {error}"
            );
            assert!(
                hint.contains("git takeup resume agent-task") && hint.contains("--session sv1"),
                "{words:?}: {error}"
            );
        }
        assert!(!scratch.path().join("ran").exists());
        assert_eq!(log(&scratch), before);
        assert_eq!(seen(&scratch)["verdict"], "in-use");
        drop(alive);
        assert_eq!(seen(&scratch)["verdict"], "stale-task");
        within(&scratch, variables, &["save"]).exits(4);
        assert_eq!(log(&scratch), before);
        // What is said of the task, and of no session, needs none; neither does looking.
        within(&scratch, variables, &["note", "a remark"]).exits(0);
        within(&scratch, variables, &["plan", "add", "true"]).exits(0);
        within(&scratch, variables, &["diff"]).exits(1);
        within(&scratch, variables, &["show"]).exits(0);
    }
}

#[test]
fn who_names_an_agents_session_is_named_for_what_is_done() {
    let alive = Alive::begin();
    let scratch = at_work(&alive);
    scratch.write("mine.txt", "a person's\n");
    let named = ["--session", "sv1"];
    scratch.takeup(&[&["save"][..], &named].concat()).exits(0);
    assert_eq!(seen(&scratch)["left"]["by"], "person:terminal");
    let line = log(&scratch).pop().unwrap();
    assert_eq!(line["event"], "save");
    assert_eq!(line["by"], "person:terminal");
    assert_eq!(seen(&scratch)["verdict"], "in-use", "it lives all the same");

    // That it is over says nothing of what it left.
    let left = seen(&scratch)["identity"]["latestWorkingTreeFingerprint"].clone();
    scratch.write("mine.txt", "more\n");
    let end = ["save", "--end", "--session", "sv1", "--json"];
    let ended = scratch.takeup(&end).exits(0).json();
    assert_eq!(ended["data"]["endedBy"], "person:terminal");
    let found = seen(&scratch);
    assert_eq!(found["identity"]["latestWorkingTreeFingerprint"], left);
    assert_eq!(found["verdict"], "stale-task");
    let proof = found["liveness"]["proof"].as_str().unwrap();
    assert!(
        proof.starts_with("person:terminal said so") && proof.ends_with("runs all the same"),
        "{proof}"
    );

    // A session that goes on has not ended.
    within(&scratch, CLAUDE, &["save"]).exits(0);
    let found = seen(&scratch);
    assert_eq!(found["verdict"], "in-use", "{found:#}");
    assert_eq!(found["left"]["by"], Value::Null);

    let check = ["check", "--session", "sv1", "--planned", "1", "--json"];
    let check = scratch.takeup(&check).exits(0).json();
    let by = &check["data"]["evidence"]["by"];
    assert_eq!(by["id"], "terminal", "{check:#}");
    scratch.takeup(&["next", "--session", "sv1"]).exits(0);
    let line = log(&scratch)
        .into_iter()
        .find(|line| line["event"] == "completed");
    assert_eq!(line.unwrap()["by"], "person:terminal");
}

/// Another agent's word is that agent's.
#[test]
fn an_agent_that_names_anothers_session_is_named() {
    let alive = Alive::begin();
    let scratch = at_work(&alive);
    let other = [("CODEX_THREAD_ID", "cx")];
    within(&scratch, &other, &["save", "--end", "--session", "sv1"]).exits(0);
    let proof = seen(&scratch)["liveness"]["proof"].to_string();
    assert!(proof.contains("codex:cx said so"), "{proof}");
}

#[test]
fn to_give_up_what_runs_needs_a_yes_also_by_its_session_s_name() {
    let alive = Alive::begin();
    let scratch = at_work(&alive);
    let words = ["abandon", "--session", "sv1", "--json"];
    let asked = scratch.takeup(&words).exits(3);
    fails_with(&asked, "confirmation-needed");
    let gemini = [("TAKEUP_AGENT", "gemini")];
    let refused = within(&scratch, &gemini, &["abandon", "agent-task", "--confirm"]);
    refused.exits(4);
    assert_eq!(seen(&scratch)["identity"]["status"], "dirty");
    within(&scratch, CLAUDE, &["abandon"]).exits(0);
    let line = log(&scratch)
        .into_iter()
        .find(|line| line["event"] == "abandoned");
    assert_eq!(line.unwrap()["by"], "claude-code:sv1");
}

/// Without hooks an agent's shell tool is known by the agent's variables, or by its process.
#[test]
fn an_agent_is_known_by_its_variables_or_its_process() {
    let alive = Alive::begin();
    let scratch = at_work(&alive);
    scratch.write("b.txt", "more\n");
    within(&scratch, CLAUDE, &["save", "agent-task"]).exits(0);
    let check = ["check", "--planned", "1", "--json"];
    let check = within(&scratch, CLAUDE, &check).exits(0).json();
    assert_eq!(check["data"]["evidence"]["by"]["id"], "sv1");

    // One that sets no variable, beside the first.
    let agent = scratch.path().join("gemini");
    copy_program(std::path::Path::new("/bin/sh"), &agent);
    let mut command = Command::new(&agent);
    scratch.dress(&mut command);
    let script = "set -e; git-takeup start Mine --agent gemini --check true; echo g >g.txt; \
        git-takeup save; git-takeup check --planned 1; git-takeup next; :";
    command.args(["-c", script]).current_dir(scratch.repo());
    Ran::of(command.output().unwrap()).exits(0);
    let done = scratch.takeup(&["log", "mine", "--json"]).exits(0).json();
    let lines = done["data"]["lines"].as_array().unwrap();
    assert!(
        lines.iter().any(|line| line["event"] == "completed"),
        "{done:#}"
    );
    for line in lines {
        assert!(
            line["by"].as_str().unwrap().starts_with("gemini:"),
            "{line}"
        );
    }
}

/// What a person began in one terminal, the same person saves in another, whatever agents hold beside it.
#[test]
fn a_person_goes_on_in_another_terminal() {
    let agent = Alive::begin();
    let scratch = at_work(&agent);
    let terminal = Alive::begin();
    let pid = terminal.pid();
    let start = ["start", "My own", "--no-checks", "--pid", &pid];
    scratch.takeup(&start).exits(0);
    scratch.write("mine.txt", "mine\n");
    let saved = scratch.takeup(&["save", "--json"]).exits(0).json();
    let identities = saved["data"]["identities"].as_array().unwrap();
    assert_eq!(identities.len(), 1, "{saved:#}");
    assert_eq!(identities[0]["taskId"], "my-own");
    scratch.takeup(&["next"]).exits(0);
    assert_eq!(seen(&scratch)["verdict"], "in-use");
}

#[test]
fn an_agent_that_holds_nothing_is_told_how_to_take_up_what_a_person_began() {
    let scratch = scratch();
    scratch
        .takeup(&["start", "Fix login timeout", "--no-checks"])
        .exits(0);
    for words in [
        &["save"][..],
        &["next"],
        &["note", "x"],
        &["check", "--", "true"],
    ] {
        let refused = within(&scratch, CLAUDE, &[&["--json"], words].concat()).exits(4);
        fails_with(&refused, "no-such-session");
        let hint = refused.json()["error"]["hint"].to_string();
        assert!(
            hint.contains("git takeup resume fix-login-timeout") && hint.contains("person:"),
            "{words:?}: {hint}"
        );
    }
}

/// Nothing is run for what could not be recorded.
#[test]
fn no_check_runs_for_a_task_that_is_closed() {
    let scratch = scratch();
    let of = ["--session", "s1"];
    scratch
        .takeup(&[&["start", "C", "--no-checks"][..], &of].concat())
        .exits(0);
    scratch.takeup(&[&["finish"][..], &of].concat()).exits(0);
    for words in [
        &["check", "--session", "s1", "--", "touch", "../ran"][..],
        &["check", "--task", "c", "--", "touch", "../ran"],
        &[
            "bg", "run", "--check", "--task", "c", "--", "touch", "../ran",
        ],
        &[
            "bg",
            "run",
            "--check",
            "--session",
            "s1",
            "--",
            "touch",
            "../ran",
        ],
    ] {
        let refused = scratch.takeup(&[&["--json"], words].concat()).exits(1);
        fails_with(&refused, "task-closed");
        assert!(!scratch.path().join("ran").exists(), "{words:?}");
    }
}

/// Calls on a terminal of its own and says yes there.
fn on_a_terminal(scratch: &Scratch, variables: &[(&str, &str)], words: &[&str]) -> i32 {
    use std::io::{Read as _, Write as _};

    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let terminal = std::fs::File::from(ioctl_tiocgptpeer(&master, flags).unwrap());
    let mut command = Command::new("setsid");
    scratch.dress(&mut command);
    command
        .args(["-c", PROGRAM])
        .args(words)
        .current_dir(scratch.repo())
        .envs(variables.iter().copied())
        .stdin(terminal.try_clone().unwrap())
        .stdout(terminal.try_clone().unwrap())
        .stderr(terminal);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut master = std::fs::File::from(master);
    master.write_all(b"y\n").unwrap();
    // The end of it is an error, once nobody is left on the other side.
    let _end = master.read_to_end(&mut Vec::new());
    child.wait().unwrap().code().unwrap()
}

/// However the session is named: what sets no variable of its own has the general ones.
#[test]
fn nobody_is_asked_inside_an_agents_session() {
    let scratch = super::left();
    for variables in [
        &[("TAKEUP_SESSION", "x"), ("TAKEUP_AGENT", "codex")][..],
        &[("TAKEUP_SESSION", "codex:x")],
        &[("TAKEUP_AGENT", "gemini")],
        &[("CLAUDE_CODE_SESSION_ID", "x")],
    ] {
        let code = on_a_terminal(&scratch, variables, &["resume", "t1"]);
        assert_eq!(code, 3, "{variables:?}");
        assert_eq!(super::verdict(&scratch), "resume-verification");
    }
    let person = [("TAKEUP_SESSION", "evening"), ("TAKEUP_AGENT", "person")];
    assert_eq!(on_a_terminal(&scratch, &person, &["resume", "t1"]), 0);
}

/// An agent that is started for a task names its session by itself: what its hooks tell is told of that task.
#[test]
fn an_agent_that_was_started_for_a_task_works_on_it() {
    let scratch = super::left();
    copy_program(
        std::path::Path::new("/bin/sh"),
        &scratch.path().join("bin/claude"),
    );
    let said = |event: &str, id: &str| {
        let cwd = scratch.repo().display().to_string();
        let said = serde_json::json!({"session_id": id, "cwd": cwd, "hook_event_name": event, "prompt": "go on"});
        format!("git-takeup hook claude-code {event} '{said}'")
    };
    let script = [
        said("SessionStart", "cc-9"),
        "until git-takeup show t1 --json | grep -q verification-required; do sleep 0.05; done"
            .to_owned(),
        said("UserPromptSubmit", "cc-9"),
        "echo one >by-agent; git-takeup save || exit 1; echo two >by-agent".to_owned(),
        said("Stop", "cc-9"),
        // Another conversation in the same program.
        said("SessionEnd", "cc-9"),
        said("SessionStart", "cc-10"),
        said("UserPromptSubmit", "cc-10"),
        "echo three >by-agent".to_owned(),
        said("Stop", "cc-10"),
        "kill -9 $$".to_owned(),
    ]
    .join("\n");
    let words = ["resume", "t1", "--confirm", "--", "claude", "-c", &script];
    scratch.takeup(&words).exits(137);
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let found = answer["data"]["candidates"].as_array().unwrap().iter();
    let open: Vec<&Value> = found
        .filter(|one| one["verdict"] != "not-resumable")
        .collect();
    let [found] = open.as_slice() else {
        panic!("{answer:#}")
    };
    assert_eq!(found["identity"]["taskId"], "t1");
    assert_eq!(found["agent"], "claude-code", "by the program's name");
    assert_eq!(found["verdict"], "resume-verification", "{found:#}");
    assert_eq!(found["liveness"]["state"], "crashed");
    let by = format!(
        "claude-code:{}",
        found["identity"]["sessionId"].as_str().unwrap()
    );
    let log = scratch.takeup(&["log", "t1", "--json"]).exits(0).json();
    let lines = log["data"]["lines"].as_array().unwrap();
    let turn = lines.iter().find(|line| line["event"] == "turn-end");
    assert_eq!(turn.unwrap()["by"], by.as_str(), "{log:#}");
    let sessions = scratch.takeup(&["sessions", "--json"]).exits(0).json();
    assert!(
        !sessions
            .to_string()
            .contains(found["identity"]["sessionId"].as_str().unwrap()),
        "{sessions:#}"
    );
}
