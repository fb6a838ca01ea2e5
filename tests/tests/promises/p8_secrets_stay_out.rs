//! Promise 8: secrets stay out of records, lists and hand-over texts.
//!
//! Here: every shape in every place where text comes in, then every file of ours, every list, every MCP answer. The shapes one
//! by one, and what must not be masked, are in the tests of `takeup_core::redact`; raw output in `background/privacy.rs`.
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use super::homes::{self, Words};
use super::mcp::Client;
use super::p5_looking_is_not_writing::{COMMANDS, Kind};
use super::world::World;

/// A shape: what it is, the text as it comes in, and the part that is the secret.
struct Shape {
    name: &'static str,
    text: &'static str,
    secret: &'static str,
}

/// Made up, in the shapes of real ones; each is put together here so that no scanner takes it for one.
const SHAPES: &[Shape] = &[
    Shape {
        name: "github",
        text: concat!("gh", "p_16C7e42F292c6912E7710c838347Ae178B4a"),
        secret: "16C7e42F292c6912E7710c838347Ae178B4a",
    },
    Shape {
        name: "anthropic",
        text: concat!("sk-", "ant-api03-Qm7xT2vK9pL4wZ8nR6bY1cJ5hD3fG0sA"),
        secret: "Qm7xT2vK9pL4wZ8nR6bY1cJ5hD3fG0sA",
    },
    Shape {
        name: "aws",
        text: concat!(
            "AWS_SECRET_",
            "ACCESS_KEY=uR9kLmT3vXq7Zp2Ws5Yd8Bn1Cf4Gh6JkQe0oMiVt"
        ),
        secret: "uR9kLmT3vXq7Zp2Ws5Yd8Bn1Cf4Gh6JkQe0oMiVt",
    },
    Shape {
        name: "url",
        text: "https://ada:b1tterSweetPlum77@host.invalid/x",
        secret: "b1tterSweetPlum77",
    },
    Shape {
        name: "bearer",
        text: concat!("Authorization: Bea", "rer tW5kPz8Qn2Lx7Vc4Rj9Mh3Gf6Sd1Ya0B"),
        secret: "tW5kPz8Qn2Lx7Vc4Rj9Mh3Gf6Sd1Ya0B",
    },
    Shape {
        name: "slack",
        text: concat!("xo", "xb-2718281828-3141592653-kUe8Tz5Rw2Qn9Lp4Mv7Xc1Bj"),
        secret: "kUe8Tz5Rw2Qn9Lp4Mv7Xc1Bj",
    },
    Shape {
        name: "google",
        text: concat!("AI", "zaSyD4e7Kx2Pq9Wv5Tn8Rb3Lm6Yc1Jh0GfZsU"),
        secret: "D4e7Kx2Pq9Wv5Tn8Rb3Lm6Yc1Jh0GfZsU",
    },
    Shape {
        name: "flag",
        text: "--password gr33nApplePie99 ",
        secret: "gr33nApplePie99",
    },
    Shape {
        name: "assignment",
        text: "API_TOKEN='vN3xQ8zL5kR2wT7pJ9'",
        secret: "vN3xQ8zL5kR2wT7pJ9",
    },
    Shape {
        name: "key block",
        text: concat!(
            "-----BEGIN OPENSSH PRIV",
            "ATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUQmZ7\nxTq2vLw9pKn4sRb8cYd5hJf3gMz6\n-----END OPENSSH PRIV",
            "ATE KEY-----"
        ),
        secret: "xTq2vLw9pKn4sRb8cYd5hJf3gMz6",
    },
];
/// The value of a variable whose name says that it is secret.
const IN_ENVIRONMENT: &str = "plain-looking-value-of-4711";
/// What the leak of a part would be.
const PART: usize = 12;

/// All shapes in one text, so long that it is cut wherever anything is cut, within a secret or beside it.
fn everything(offset: usize) -> String {
    shapes(offset, IN_ENVIRONMENT)
}

/// All shapes, and `besides`.
fn shapes(offset: usize, besides: &str) -> String {
    let mut text = "x".repeat(offset) + " ";
    for _ in 0..4 {
        for shape in SHAPES {
            text.push_str(shape.text);
            text.push(' ');
        }
        text.push_str(besides);
        text.push(' ');
    }
    text
}

/// Says which secrets stand in a text, whole or in part, also in another case or without signs between.
fn leaks(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let plain = |text: &str| -> String {
        text.chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect()
    };
    let flat = plain(&text);
    let mut found = Vec::new();
    let secrets = SHAPES
        .iter()
        .map(|shape| (shape.name, shape.secret))
        .chain([("environment", IN_ENVIRONMENT)]);
    for (name, secret) in secrets {
        let secret = plain(secret);
        let part = (0..=secret.len() - PART).find_map(|at| flat.find(&secret[at..at + PART]));
        if let Some(at) = part {
            let around = flat[..at].len().saturating_sub(60);
            found.push(format!(
                "{name}: …{}…",
                &flat[around..(at + 60).min(flat.len())]
            ));
        }
    }
    found
}

#[test]
fn the_search_finds_what_is_there() {
    for shape in SHAPES {
        assert!(shape.text.contains(shape.secret), "{}", shape.name);
        assert_eq!(leaks(shape.text.as_bytes()).len(), 1, "{}", shape.name);
    }
    let cut = &SHAPES[0].secret[..PART + 3];
    assert_eq!(leaks(cut.to_ascii_uppercase().as_bytes()).len(), 1);
    assert!(leaks(b"nothing").is_empty());
}

/// Fails with everything that leaked, so that one run tells all.
struct Findings(Vec<String>);

impl Findings {
    fn look(&mut self, place: &str, text: &[u8]) {
        for leak in leaks(text) {
            self.0.push(format!("{place}: {leak}"));
        }
    }

    fn files(&mut self, folder: &Path, skip: &dyn Fn(&Path) -> bool) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.files(&path, skip);
            } else if path.is_file() && !skip(&path) {
                self.look(&path.display().to_string(), &std::fs::read(&path).unwrap());
                self.look(
                    "a file's name",
                    path.file_name().unwrap().as_encoded_bytes(),
                );
            }
        }
    }

    fn none(self) {
        assert!(self.0.is_empty(), "{:#?}", self.0);
    }
}

/// A world in which secrets came in everywhere; what the commands said on the way is looked at at once.
fn careless(findings: &mut Findings, offset: usize) -> World {
    let all = everything(offset);
    // Nobody's environment says that a word in another program's store is secret.
    let theirs = shapes(offset, "");
    let words = Words {
        prompt: theirs.clone(),
        command: theirs.clone(),
        title: theirs.clone(),
    };
    let world = World::with(&words);
    homes::told(&world.scratch.home(), &world.scratch.repo(), &theirs);
    // A branch and a file cannot carry every sign.
    let name = format!("x-{}-{}", SHAPES[0].text, SHAPES[1].text);
    world.scratch.git(&["checkout", "-qb", &name]);
    world.scratch.write("b.txt", &all);
    world.scratch.git(&["add", "b.txt"]);
    world.scratch.git(&["commit", "-qm", &all, "b.txt"]);
    let all = all.as_str();
    let mut run = |exit: Option<i32>, words: &[&str]| {
        let ran = world
            .program()
            .env("DEPLOY_TOKEN", IN_ENVIRONMENT)
            .args(words)
            .output()
            .unwrap();
        let code = ran.status.code();
        assert!(exit.is_none() || code == exit, "{words:?}: {ran:?}");
        // What a checked command prints is passed on as it is.
        if words[0] != "check" {
            findings.look(&format!("output of {}", words[0]), &ran.stdout);
            findings.look(&format!("errors of {}", words[0]), &ran.stderr);
        }
    };
    run(
        Some(0),
        &["start", "held", "--session", "s1", "--check", "true"],
    );
    run(None, &["start", all, "--session", "s2", "--no-checks"]);
    run(
        None,
        &[
            "start",
            "avoiding",
            "--session",
            "s6",
            "--avoid",
            SHAPES[0].text,
            "--no-checks",
        ],
    );
    run(None, &["plan", "add", all, "--task", "held"]);
    run(
        None,
        &["plan", "add", "true", "--must-fail", all, "--task", "held"],
    );
    run(Some(0), &["note", "--session", "s1", all]);
    run(
        Some(1),
        &[
            "check",
            "--session",
            "s1",
            "--",
            "sh",
            "-c",
            "echo \"$1\"; echo \"$1\" >&2; exit 1",
            "x",
            all,
        ],
    );
    run(None, &["check", "--session", "s1", "--planned", "1"]);
    run(
        Some(0),
        &[
            "evidence",
            "add",
            "--command",
            all,
            "--exit-code",
            "0",
            "--session",
            "s1",
        ],
    );
    run(
        Some(0),
        &[
            "review",
            "request",
            all,
            "--title",
            all,
            "--action",
            all,
            "--until",
            all,
            "--suggest",
            all,
            "--session",
            "s1",
        ],
    );
    run(
        Some(0),
        &["review", "approve", "held", "--remark", all, "--confirm"],
    );
    run(
        Some(0),
        &["save", "--session", "s1", "--end", "--reason", all],
    );
    run(
        Some(0),
        &["start", "left", "--session", "s3", "--no-checks"],
    );
    run(
        Some(0),
        &["abandon", "left", "--session", "s3", "--reason", all],
    );
    run(None, &["show", all]);
    run(None, &["finish", "held", "--session", all]);
    run(
        Some(0),
        &[
            "bg",
            "run",
            "--name",
            SHAPES[0].text,
            "--",
            "sh",
            "-c",
            "echo \"$1\"; echo \"$1\" >&2",
            "x",
            all,
        ],
    );
    run(
        Some(0),
        &[
            "bg",
            "run",
            "--name",
            "build",
            "--",
            "sh",
            "-c",
            "printf '%s' \"$1\"",
            "x",
            all,
        ],
    );
    run(Some(0), &["bg", "wait"]);
    // Hooks of the agents, with all that they hand over.
    let all = shapes(offset, "");
    let payload = json!({
        "session_id": "c1", "sessionId": "c1", "sessionID": "c1", "cwd": world.scratch.repo(), "prompt": all, "initialPrompt": all,
        "reason": all, "error": all, "status": all, "message": all, "title": all,
        "tool": "bash", "tool_input": {"command": all}, "trigger": all,
    })
    .to_string();
    for (agent, events) in [
        (
            "claude-code",
            &["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"][..],
        ),
        (
            "copilot",
            &[
                "sessionStart",
                "userPromptSubmitted",
                "errorOccurred",
                "sessionEnd",
            ],
        ),
        (
            "openclaw",
            &["session-start", "turn-start", "turn-end", "reset"],
        ),
        (
            "opencode",
            &[
                "session-start",
                "turn-start",
                "turn-end",
                "error",
                "tool-start",
            ],
        ),
        (
            "jcode",
            &[
                "session_start",
                "turn_start",
                "turn_end",
                "session_end",
                "pre_tool",
            ],
        ),
    ] {
        for event in events {
            let mut child = world
                .program()
                .env("DEPLOY_TOKEN", IN_ENVIRONMENT)
                .args(["hook", agent, event])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            // A hook that is not for it may end before it has read everything.
            drop(child.stdin.take().unwrap().write_all(payload.as_bytes()));
            let output = child.wait_with_output().unwrap();
            findings.look(&format!("hook {agent} {event}"), &output.stdout);
        }
    }
    world
}

fn nothing_leaks(offset: usize) {
    let mut findings = Findings(Vec::new());
    let world = careless(&mut findings, offset);
    for (words, kind) in COMMANDS {
        let (Kind::Reads(forms) | Kind::Writes(forms)) = kind;
        for form in *forms {
            let all: Vec<&str> = words
                .split_whitespace()
                .chain(form.iter().copied())
                .collect();
            let ran = world
                .program()
                .env("DEPLOY_TOKEN", IN_ENVIRONMENT)
                .args(&all)
                .output()
                .unwrap();
            // A patch is the content itself.
            if !form.contains(&"--patch") {
                findings.look(&format!("{all:?}"), &ran.stdout);
                findings.look(&format!("errors of {all:?}"), &ran.stderr);
            }
        }
    }
    for session in [
        "ses_1",
        "agent:main:main",
        "agent:old:main",
        "c1",
        "session_fails",
        "session_dies",
        "session_odd",
    ] {
        let ran = world.run(&["sessions", "show", session, "--turns", "20", "--json"]);
        findings.look(&format!("session {session}"), ran.stdout.as_bytes());
    }
    for words in [
        &["review", "show", "the-parser"][..],
        &["review", "show", "the-parser", "--json"],
        &["show", "the-parser"],
        &["show", "the-parser", "--json"],
        &["inspect", "the-parser", "--json"],
        &["handover", "the-parser"],
        &["resume", "the-parser"],
    ] {
        let ran = world.run(words);
        findings.look(&format!("{words:?}"), ran.stdout.as_bytes());
        findings.look(&format!("errors of {words:?}"), ran.stderr.as_bytes());
    }
    let mut client = Client::with(&world, &[("DEPLOY_TOKEN", IN_ENVIRONMENT)]);
    let all = shapes(offset, "");
    for (tool, arguments) in [
        ("takeup_start", json!({"title": all})),
        ("takeup_note", json!({"text": all, "task": "held"})),
        ("takeup_save", json!({"end": true, "reason": all})),
        ("takeup_status", json!({})),
        ("takeup_inspect", json!({})),
        ("takeup_show", json!({"task": "held"})),
        ("takeup_handover", json!({"task": "held"})),
        ("takeup_sessions", json!({})),
        ("takeup_review", json!({"action": "list"})),
        ("takeup_bg_list", json!({})),
        ("takeup_bg_output", json!({"id": "build"})),
    ] {
        client.request("tools/call", json!({"name": tool, "arguments": arguments}));
    }
    findings.look("mcp", client.heard.as_bytes());
    drop(client);
    let raw = |path: &Path| path.extension().is_some_and(|ending| ending == "output");
    findings.files(&world.ours(), &raw);
    findings.files(&world.state(), &raw);
    findings.none();
}

#[test]
fn no_shape_leaks_through_any_place() {
    nothing_leaks(3);
}

/// The same with every cut at another place.
#[test]
fn no_cut_leaves_a_part_of_a_secret() {
    nothing_leaks(21);
}
