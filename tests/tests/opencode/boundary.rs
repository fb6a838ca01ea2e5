//! What a task of OpenCode++ changed outside its boundary before takeup knew of it.
use serde_json::{Value, json};
use takeup_tests::Scratch;

use super::{digest, identity, put, record, scratch};

const SOURCE: &str = "task-identity-fix-ses-old.json";

/// A task that was left on changed content inside and outside its boundary. `base` is OpenCode++'s fingerprint of what it began
/// with.
fn left(base: Option<&str>) -> Scratch {
    let scratch = scratch();
    scratch.write("dist/x.js", "1\n");
    scratch.git(&["add", "dist"]);
    scratch.git(&["commit", "-q", "-m", "dist"]);
    scratch.write("src/a.txt", "changed\n");
    scratch.write("other.txt", "changed\n");
    scratch.write("dist/x.js", "2\n");
    let mut source = identity(&scratch, "fix", "ses_old");
    source["latestWorkingTreeFingerprint"] = json!(digest(&scratch));
    if let Some(base) = base {
        source["baseWorkingTreeFingerprint"] = json!(base);
    }
    source["updatedAt"] = json!("2099-01-01T00:00:00.000Z");
    put(&scratch, SOURCE, &source);
    let run = scratch.repo().join(".agent-context/runs/fix");
    std::fs::create_dir_all(&run).unwrap();
    let manifest = json!({
        "id": "fix", "task": "Fix", "type": "bugfix", "mustInspect": [], "requiredCommands": ["true"],
        "allowedEditGlobs": ["src/**"], "avoidEditGlobs": ["dist/**"], "files": [],
    });
    std::fs::write(run.join("run.json"), manifest.to_string()).unwrap();
    scratch
}

fn run(scratch: &Scratch, words: &[&str]) -> takeup_tests::Ran {
    let session = ["--session", "ses_new", "--agent", "opencode", "--json"];
    scratch.takeup(&[words, &session].concat())
}

fn question(scratch: &Scratch) -> Value {
    let shown = scratch
        .takeup(&["review", "show", "fix", "--json"])
        .exits(0);
    shown.json()["data"]["reviews"][0].clone()
}

/// The tree was clean when it began, so what differs from HEAD is the task's.
#[test]
fn what_it_changed_on_a_clean_tree_is_its_own() {
    let scratch = left(None);
    let words = [
        "resume",
        "fix",
        "--from",
        "ses_old",
        "--to",
        "ses_new",
        "--agent",
        "opencode",
        "--confirm",
    ];
    scratch.takeup(&words).exits(0);
    run(&scratch, &["check", "--planned", "1"]).exits(0);
    let found = run(&scratch, &["evaluate"]).exits(3).json();
    let paths: Vec<&str> = found["data"]["outsideBoundary"]
        .as_array()
        .unwrap()
        .iter()
        .map(|changed| changed["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["dist/x.js", "other.txt"]);
    let asked = question(&scratch);
    assert_eq!(asked["review"]["reasonCode"], "BOUNDARY_EXPANSION_REQUIRED");
    let command = asked["notBack"]["commands"][0].as_str().unwrap().to_owned();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    scratch.git(&words);
    let approve = ["review", "approve", "fix", "--confirm", "--content-changed"];
    scratch.takeup(&approve).exits(0);
    run(&scratch, &["check", "--planned", "1"]).exits(0);
    let step = run(&scratch, &["next"]).exits(0).json();
    assert_eq!(step["data"]["finalized"], true, "{step:#}");
}

/// What it began with is not known: a person says whose it is.
#[test]
fn what_differed_perhaps_before_it_began_is_asked_about() {
    let other = "0".repeat(64);
    for from in ["ses_new", "ses_old"] {
        let scratch = left(Some(&other));
        let mut source = record(&scratch, SOURCE);
        if from == "ses_new" {
            // Somebody changed what it may edit, too: what was left is not what is there.
            source["latestWorkingTreeFingerprint"] = json!("1".repeat(64));
            put(&scratch, SOURCE, &source);
        }
        let words = [
            "resume",
            "fix",
            "--from",
            "ses_old",
            "--to",
            from,
            "--agent",
            "opencode",
            "--rebuild",
        ];
        scratch.takeup(&words).exits(0);
        let words = [
            "evaluate",
            "fix",
            "--session",
            from,
            "--agent",
            "opencode",
            "--json",
        ];
        let found = scratch.takeup(&words).exits(3).json();
        assert_eq!(found["data"]["outsideBoundary"], json!([]));
        let asked = question(&scratch);
        assert_eq!(
            asked["review"]["affectedFiles"],
            json!(["dist/x.js", "other.txt"])
        );
        scratch
            .takeup(&["review", "approve", "fix", "--confirm"])
            .exits(0);
        scratch.takeup(&words).exits(1);
    }
}
