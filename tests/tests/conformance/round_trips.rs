//! From one format into another and back: nothing is lost that both can hold.
use std::path::Path;

use serde_json::{Value, json};
use takeup_tests::Scratch;
use takeup_tests::conformance::facts::Format;
use takeup_tests::conformance::stage::{Stage, TASK, TITLE};
use takeup_tests::conformance::story::{Step, read};
use takeup_tests::conformance::tell::{opencode, teller};

use super::programs;

const CHECKS: [&str; 2] = ["cargo test --workspace", "grep -q 'two' a.txt"];

/// A task of session `ses_ann` with a boundary and a plan, in a place where OpenCode++ keeps records.
fn started(checks: &[&str]) -> Scratch {
    let scratch = Scratch::new(programs().takeup);
    std::fs::create_dir_all(scratch.repo().join(".agent-context/sidecar")).unwrap();
    let mut words = vec![
        "start",
        TITLE,
        "--agent",
        "opencode",
        "--session",
        "ses_ann",
    ];
    words.extend([
        "--allow",
        "src/**",
        "--allow",
        "a.txt",
        "--avoid",
        "src/made/**",
    ]);
    for check in checks {
        words.extend(["--check", check]);
    }
    if checks.is_empty() {
        words.push("--no-checks");
    }
    scratch.takeup(&words).exits(0);
    scratch.write("a.txt", "two\n");
    scratch
        .takeup(&["save", "--agent", "opencode", "--session", "ses_ann"])
        .exits(0);
    scratch
}

fn candidate(scratch: &Scratch, session: &str) -> Value {
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let all = answer["data"]["candidates"].as_array().unwrap();
    all.iter()
        .find(|one| one["identity"]["sessionId"] == session)
        .unwrap_or_else(|| panic!("no candidate of {session} in {answer:#}"))
        .clone()
}

/// What is told of a task: its title, boundary and checks.
fn task(scratch: &Scratch) -> Value {
    let shown = scratch.takeup(&["show", TASK, "--json"]).exits(0).json();
    let data = &shown["data"];
    let checks: Vec<&Value> = data["plan"]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| &check["command"])
        .collect();
    json!({"title": data["title"], "allowed": data["boundary"]["allowed"], "avoided": data["boundary"]["avoided"],
        "checks": checks})
}

fn take(scratch: &Scratch, from: &str, to: &str) {
    let words = [
        "resume",
        TASK,
        "--from",
        from,
        "--to",
        to,
        "--agent",
        "opencode",
        "--confirm",
    ];
    scratch.takeup(&words).exits(0);
}

fn record(scratch: &Scratch, name: &str) -> Value {
    let path = scratch.repo().join(".agent-context/sidecar").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn ledger_to_sidecar_and_back() {
    let scratch = started(&CHECKS);
    let before = task(&scratch);
    let left = candidate(&scratch, "ses_ann");
    // Only the records of OpenCode++ are left.
    std::fs::remove_dir_all(scratch.repo().join(".git/takeup")).unwrap();
    let back = candidate(&scratch, "ses_ann");
    for field in ["taskId", "title", "sessionId", "status", "repositoryRoot"] {
        assert_eq!(back["identity"][field], left["identity"][field], "{field}");
    }
    assert_eq!(back["verdict"], "resume-verification");
    assert_eq!(back["agent"], left["agent"]);
    take(&scratch, "ses_ann", "ses_bob");
    assert_eq!(task(&scratch), before);
}

#[test]
fn every_status_of_the_ledger_comes_back_from_the_sidecar() {
    let deeds: [(&str, &[&str]); 6] = [
        ("dirty", &[]),
        ("verification-required", &["evaluate"]),
        (
            "human-review",
            &[
                "review",
                "request",
                "may I?",
                "--reason",
                "EXTERNAL_SIDE_EFFECT",
            ],
        ),
        ("abandoned", &["abandon", TASK]),
        ("completed", &["finish"]),
        ("active", &["start", "Another task", "--no-checks"]),
    ];
    for (status, words) in deeds {
        let checks = if status == "completed" {
            &[][..]
        } else {
            &CHECKS
        };
        let scratch = started(checks);
        let session = if status == "active" {
            "ses_cid"
        } else {
            "ses_ann"
        };
        if !words.is_empty() {
            let of = ["--agent", "opencode", "--session", session];
            let ran = scratch.takeup(&[words, &of].concat());
            assert!(ran.code <= 1, "{words:?}: {}{}", ran.stdout, ran.stderr);
        }
        let left = candidate(&scratch, session);
        assert_eq!(left["identity"]["status"], status);
        let shown = scratch
            .takeup(&["review", "list", "--json"])
            .exits(0)
            .json();
        std::fs::remove_dir_all(scratch.repo().join(".git/takeup")).unwrap();
        let back = candidate(&scratch, session);
        for field in ["taskId", "title", "status"] {
            assert_eq!(
                back["identity"][field], left["identity"][field],
                "{status}: {field}"
            );
        }
        assert_eq!(back["verdict"], left["verdict"], "{status}");
        let again = scratch
            .takeup(&["review", "list", "--json"])
            .exits(0)
            .json();
        let question = |answer: &Value| {
            let review = &answer["data"]["reviews"][0]["review"];
            json!([
                review["taskId"],
                review["reasonCode"],
                review["title"],
                review["explanation"],
                review["requiredAction"],
                review["resumeCondition"],
                review["state"]
            ])
        };
        assert_eq!(question(&again), question(&shown), "{status}");
    }
}

#[test]
fn sidecar_to_ledger_and_back() {
    let mut stage = Stage::new(&programs());
    let mut teller = teller(Format::Sidecar);
    let story = "ann begins allow 'src/**' allow a.txt avoid 'src/made/**' prove 'cargo test'\n\
                 $ echo two > a.txt\n\
                 ann saves";
    for step in read(story).unwrap() {
        match &step {
            Step::Told { who, deed } => teller.tell(&mut stage, who, deed).unwrap(),
            Step::Shell(_) | Step::Go(_) => stage.set(&step),
        }
    }
    let scratch = &stage.scratch;
    let ann = format!("task-identity-{TASK}-ses-ann.json");
    let before = record(scratch, &ann);
    let run = || -> Value {
        let path = scratch
            .repo()
            .join(format!(".agent-context/runs/{TASK}/run.json"));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let manifest = run();
    take(scratch, "ses_ann", "ses_bob");
    let expected = json!({"title": TITLE, "allowed": ["src/**", "a.txt"], "avoided": ["src/made/**"],
        "checks": ["cargo test"]});
    assert_eq!(task(scratch), expected);
    // The plugin finds what it would have written itself.
    let after = record(scratch, &ann);
    assert_eq!(after["status"], "abandoned");
    assert_eq!(after["resumedToSessionId"], "ses_bob");
    let mut kept = before.clone();
    // `takeup` marks the record as one that we wrote last.
    for field in [
        "status",
        "updatedAt",
        "revision",
        "resumedToSessionId",
        "takeup",
    ] {
        kept[field] = after[field].clone();
    }
    assert_eq!(after, kept);
    let bob = record(scratch, &format!("task-identity-{TASK}-ses-bob.json"));
    assert_eq!(bob["status"], "verification-required");
    for field in [
        "baseWorkingTreeFingerprint",
        "latestWorkingTreeFingerprint",
        "repositoryRoot",
        "taskId",
    ] {
        assert_eq!(bob[field], before[field], "{field}");
    }
    assert_eq!(run(), manifest);
    std::fs::remove_dir_all(scratch.repo().join(".git/takeup")).unwrap();
    assert_eq!(
        candidate(scratch, "ses_bob")["verdict"],
        "resume-verification"
    );
    take(scratch, "ses_bob", "ses_cid");
    assert_eq!(task(scratch), expected);
}

/// A task with all that a hand-over tells, and the document.
fn noted() -> (Scratch, String) {
    let scratch = started(&CHECKS);
    let note = [
        "note",
        "--task",
        TASK,
        "--session",
        "ses_ann",
        "--agent",
        "opencode",
        "the lexer is next",
    ];
    scratch.takeup(&note).exits(0);
    scratch.write("src/new.rs", "fn new() {}\n");
    let made = scratch
        .takeup(&["handover", TASK, "--json"])
        .exits(0)
        .json();
    let document = made["data"]["markdown"].as_str().unwrap().to_owned();
    for part in [
        TITLE,
        "src/new.rs",
        "cargo test --workspace",
        "the lexer is next",
        "ses_ann",
    ] {
        assert!(document.contains(part), "{part}: {document}");
    }
    (scratch, document)
}

/// Demands that a text holds every line of a document that does not tell a moment.
fn holds(text: &str, document: &str) {
    let year = |line: &&str| !line.contains("2026-") && !line.contains(" ago");
    for line in document.lines().filter(year) {
        assert!(text.contains(line.trim()), "{line:?} is not in\n{text}");
    }
}

#[test]
fn a_hand_over_is_read_back_from_jcode() {
    let (scratch, document) = noted();
    std::fs::create_dir_all(scratch.home().join(".jcode/sessions")).unwrap();
    scratch.put_program("jcode", "#!/bin/sh\n");
    let made = scratch
        .takeup(&["handover", TASK, "--to", "jcode", "--json"])
        .exits(0)
        .json();
    let session = made["data"]["delivered"]["session"].as_str().map_or_else(
        || {
            made["data"]["delivered"]["session"]["id"]
                .as_str()
                .unwrap()
                .to_owned()
        },
        |text| text.trim_start_matches("jcode:").to_owned(),
    );
    let shown = scratch
        .takeup(&["sessions", "show", &session, "--json"])
        .exits(0)
        .json();
    let detail = &shown["data"]["detail"];
    assert_eq!(detail["session"]["cwd"], scratch.repo().to_str().unwrap());
    assert_eq!(detail["session"]["liveness"]["state"], "ended");
    let whole = scratch
        .takeup(&["sessions", "recover", &session])
        .exits(0)
        .stdout;
    holds(&whole, &document);
}

#[test]
fn a_hand_over_is_read_back_from_opencode() {
    let (scratch, document) = noted();
    // Only what `opencode import` is given is looked at here; the real one is run by `cargo xtask e2e opencode`.
    let given = scratch.path().join("given.json");
    scratch.put_program(
        "opencode",
        &format!(
            "#!/bin/sh\ncp \"$2\" '{}'\n\
             echo \"Imported session: $(grep -o 'ses_[0-9A-Za-z]*' \"$2\" | head -n 1)\"\n",
            given.display()
        ),
    );
    let config = scratch.home().join(".config/opencode/opencode.json");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, r#"{"model": "mock/mock-1"}"#).unwrap();
    scratch
        .takeup(&["handover", TASK, "--to", "opencode"])
        .exits(0);
    let session = read_json(&given);
    let id = opencode::import(&scratch.home(), &session);
    let shown = scratch
        .takeup(&["sessions", "show", &id, "--json"])
        .exits(0)
        .json();
    let detail = &shown["data"]["detail"];
    assert_eq!(detail["session"]["cwd"], scratch.repo().to_str().unwrap());
    let text = session["messages"][0]["parts"][0]["text"].as_str().unwrap();
    holds(text, &document);
    // Of a turn the first two thousand characters are shown.
    let turn = detail["turns"][0]["text"].as_str().unwrap();
    let start: String = text.chars().take(500).collect();
    holds(turn, &start);
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
