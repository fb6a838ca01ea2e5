//! Names and texts with escape sequences: none reaches a terminal.
use std::os::unix::ffi::OsStrExt as _;

use serde_json::json;
use takeup_core::ledger::{Change, Ledger};

use super::*;
use crate::homes::Words;

/// A title for the terminal, colours, a bell, a clipboard, the eight-bit forms, an order of writing, a line end.
const EVIL: &str = "\u{1b}]0;owned\u{7}\u{1b}[35;47m\u{1b}]52;c;b3duZWQ=\u{7}\u{9b}2J\u{202e}\r\nrm -rf\u{8}\u{0085}";

/// Takes our own colours out.
fn colourless(text: &str) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';');
        match end {
            Some(end) if after[end..].starts_with('m') && &after[..end] != "35;47" => {
                rest = &after[end + 1..];
            }
            _ => {
                out.push_str("\u{1b}[");
                rest = after;
            }
        }
    }
    out + rest
}

/// Says which lines hold characters that act on a terminal.
fn acts(text: &str) -> Vec<String> {
    colourless(text)
        .split('\n')
        .filter(|line| {
            line.chars().any(|c| {
                c.is_control() && c != '\t'
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            })
        })
        .map(|line| format!("{line:?}"))
        .collect()
}

#[test]
fn what_acts_on_a_terminal_is_found() {
    for text in [
        EVIL,
        "\u{1b}[35;47mx",
        "\u{1b}[2J",
        "\u{9b}2J",
        "\r",
        "\u{202e}",
    ] {
        assert!(!acts(text).is_empty(), "{text:?}");
    }
    assert!(acts("\u{1b}[1m\u{1b}[31mred\u{1b}[0m\tend\n").is_empty());
}

#[test]
fn no_escape_sequence_reaches_a_terminal() {
    let words = Words {
        prompt: format!("prompt {EVIL}"),
        command: format!("command {EVIL}"),
        title: format!("title {EVIL}"),
    };
    let world = World::with(&words);
    let repo = world.scratch.repo();
    let name = EVIL.replace('\r', "");
    std::fs::write(repo.join(format!("file {name}")), "x\n").unwrap();
    std::fs::write(
        repo.join(std::ffi::OsStr::from_bytes(b"bytes \xff\x1b[1m")),
        "x\n",
    )
    .unwrap();
    world.scratch.git(&["add", "-A"]);
    world.scratch.git(&[
        "-c",
        "core.commentChar=;",
        "commit",
        "-qm",
        &format!("subject {EVIL}"),
    ]);
    let call = |words: &[&str]| drop(world.run(words));
    call(&["start", "held", "--session", "s2", "--no-checks"]);
    call(&["note", "--session", "s2", EVIL]);
    call(&[
        "start",
        EVIL,
        "--session",
        "s1",
        "--check",
        EVIL,
        "--avoid",
        EVIL,
    ]);
    call(&["save", "--session", "s2", "--end", "--reason", EVIL]);
    call(&[
        "review",
        "request",
        EVIL,
        "--title",
        EVIL,
        "--session",
        "s2",
        "--suggest",
        EVIL,
    ]);
    call(&["start", "stale", "--session", EVIL, "--no-checks"]);
    call(&["start", "stale", "--session", "s7", "--no-checks"]);
    call(&["start", "asked", "--session", "s3", "--no-checks"]);
    call(&["review", "request", EVIL, "--session", "s3"]);
    call(&["bg", "run", "--name", EVIL, "--", "printf", "%s", EVIL]);
    call(&["bg", "run", "--name", "build", "--", "printf", "%s", EVIL]);
    call(&["bg", "wait"]);
    let payload =
        json!({"session_id": "c1", "prompt": EVIL, "reason": EVIL, "error": EVIL}).to_string();
    for event in ["SessionStart", "UserPromptSubmit", "SessionEnd"] {
        call(&["hook", "claude-code", event, &payload]);
    }
    // What no command of ours writes, a ledger that was brought along may hold.
    let ledger = Ledger::at(world.ours());
    let mut entry = ledger
        .read()
        .unwrap()
        .state
        .tasks
        .values()
        .next()
        .unwrap()
        .clone();
    entry.task.title = EVIL.to_owned();
    let mut identity = entry.identities[0].clone();
    identity.place.root = EVIL.to_owned();
    let noted = takeup_tests::ledger::note(entry.task.task_id.as_str(), EVIL);
    let mut changes = noted.changes;
    changes.push(Change::Task {
        task: entry.task.clone(),
    });
    changes.push(Change::Identity {
        identity: Box::new(identity),
    });
    takeup_tests::ledger::put(&ledger, takeup_tests::ledger::transition("note", changes)).unwrap();
    // A file of the tree changes, so that names are listed.
    std::fs::write(repo.join(format!("file {name}")), "y\n").unwrap();
    std::fs::write(repo.join(format!("new {name}")), "y\n").unwrap();
    let answer = world.run(&["inspect", "--json"]).exits(0);
    assert!(answer.stdout.contains("new "), "{}", answer.stdout);
    let mut found = Vec::new();
    for words in looks() {
        let coloured: Vec<&str> = words.iter().copied().chain(["--color", "always"]).collect();
        let ran = world.run(&coloured);
        // A patch and a hand-over are documents; a document acts on nothing by being written.
        for line in acts(&ran.stdout).into_iter().chain(acts(&ran.stderr)) {
            found.push(format!("{words:?}: {line}"));
        }
    }
    for words in [
        &["sessions", "--all"][..],
        &["bg", "output", "build"],
        &["show", EVIL],
        &["log", "held"],
    ] {
        let words = [words, &["--color", "always"]].concat();
        let ran = world.run(&words);
        for line in acts(&ran.stdout).into_iter().chain(acts(&ran.stderr)) {
            found.push(format!("{words:?}: {line}"));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
