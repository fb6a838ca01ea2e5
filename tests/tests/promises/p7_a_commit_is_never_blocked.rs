//! Promise 7: a commit is never blocked or noticeably slowed by us; and no agent is held up either.
//!
//! Git's hooks under every failure, beside every kind of hook manager, are in `hooks/` (`unhindered.rs` above all). Here: the
//! hooks of the agents, in the same situations: each ends with 0 and says nothing that an agent would take for an answer.
use std::io::Write as _;
use std::process::Stdio;

use super::world::World;

/// The events that the agents' drop-ins call us with.
const EVENTS: &[(&str, &str)] = &[
    ("claude-code", "SessionStart"),
    ("claude-code", "Stop"),
    ("codex", "UserPromptSubmit"),
    ("gemini", "AfterAgent"),
    ("copilot", "sessionEnd"),
    ("openclaw", "turn-end"),
    ("opencode", "turn-end"),
    ("jcode", "turn_end"),
    ("nobody", "anything"),
    ("claude-code", "NoSuchEvent\u{1b}[31m"),
];

/// Calls a hook with a payload, in a situation, and demands that it does no harm. Returns what it said.
fn call(world: &World, agent: &str, event: &str, payload: &[u8], vars: &[(&str, &str)]) -> String {
    let mut command = world.program();
    command
        .args(["hook", agent, event])
        .envs(vars.iter().copied())
        .stdin(Stdio::piped());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it has read everything.
    drop(child.stdin.take().unwrap().write_all(payload));
    let output = child.wait_with_output().unwrap();
    let context = format!(
        "{agent} {event} {:?} {vars:?}",
        String::from_utf8_lossy(payload)
    );
    assert_eq!(output.status.code(), Some(0), "{context}: {output:?}");
    assert!(output.stderr.is_empty(), "{context}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

const SOUND: &[u8] =
    b"{\"session_id\":\"s1\",\"sessionId\":\"s1\",\"sessionID\":\"s1\",\"prompt\":\"x\"}";

#[test]
fn nonsense_is_no_reason_to_stop_an_agent() {
    let world = World::lived();
    for (agent, event) in EVENTS {
        for payload in [
            &b""[..],
            b"{",
            b"null",
            b"[]",
            b"{}",
            b"\xff\xfe\0",
            b"{\"session_id\":7}",
            b"{\"session_id\":\"\",\"sessionId\":\"\",\"sessionID\":\"\"}",
        ] {
            assert_eq!(call(&world, agent, event, payload, &[]), "");
        }
        // A session of any name, and a place that is none.
        for payload in [
            &b"{\"session_id\":\"../../x\",\"cwd\":\"/nowhere\"}"[..],
            b"{\"session_id\":\"s\",\"cwd\":\"relative\"}",
        ] {
            call(&world, agent, event, payload, &[]);
        }
        let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
        assert_eq!(call(&world, agent, event, &deep, &[]), "");
    }
}

#[test]
fn a_ledger_that_cannot_be_used_is_no_reason_to_stop_an_agent() {
    let world = World::lived();
    let journal = world.ours().join("journal.jsonl");
    let aside = world.scratch.path().join("aside");
    let all = |world: &World, vars: &[(&str, &str)]| {
        for (agent, event) in EVENTS {
            call(world, agent, event, SOUND, vars);
        }
    };
    all(&world, &[("TAKEUP_FAULT", "journal-append:middle=enospc")]);
    all(&world, &[("HOME", "/dev/null/home"), ("PATH", "/nowhere")]);
    all(&world, &[("GIT_DIR", "/nowhere")]);
    all(&world, &[("TAKEUP_HOOKS", "0")]);
    std::fs::rename(&journal, &aside).unwrap();
    std::fs::create_dir_all(&journal).unwrap();
    all(&world, &[]);
    std::fs::remove_dir(&journal).unwrap();
    std::fs::write(&journal, "noise\n\0\0").unwrap();
    all(&world, &[]);
    std::fs::rename(&aside, &journal).unwrap();
    std::fs::write(world.ours().join("repository-id"), "\0").unwrap();
    all(&world, &[]);
}

/// Somebody holds the lock for ever: a hook gives up in time.
#[test]
fn a_lock_that_is_held_is_no_reason_to_stop_an_agent() {
    let world = World::lived();
    let lock = std::fs::File::options()
        .write(true)
        .open(world.ours().join("lock"))
        .unwrap();
    lock.lock().unwrap();
    call(&world, "claude-code", "Stop", SOUND, &[]);
    call(&world, "jcode", "turn_end", SOUND, &[]);
}
