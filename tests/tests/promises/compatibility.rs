//! Files of the first version, as the real program wrote them, load for good; those of a version that is not known yet are
//! refused with a clear error and stay as they are.
//!
//! `tests/fixtures/state-v1` is never made anew: a later version gets a folder of its own beside it. (`make_the_files` made it.)
//! The ledger's records with every field there is are held in code in `takeup_core::ledger`'s own tests.
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use takeup_tests::Scratch;

use super::look::{content, differences};
use super::world::World;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/state-v1")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    let done = Command::new("cp")
        .arg("-a")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(done.success());
}

/// A repository and a home that were used with the first version.
fn used() -> World {
    let world = World::plain();
    copy(&fixture().join("ledger"), &world.ours());
    copy(&fixture().join("state"), &world.state());
    let private = "chmod -R go= \"$@\"";
    let done = Command::new("sh")
        .args(["-c", private, "x"])
        .args([world.ours(), world.state()])
        .status()
        .unwrap();
    assert!(done.success());
    world
}

#[test]
fn the_files_of_the_first_version_load() {
    let world = used();
    let before = content(&world.ours(), &|_| false);
    let answer = world.run(&["inspect", "--json"]).exits(0).json();
    assert_eq!(
        answer["data"]["issues"],
        serde_json::json!([]),
        "{answer:#}"
    );
    let mut found: Vec<(String, String)> = answer["data"]["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let word = |value: &Value| value.as_str().unwrap().to_owned();
            (
                word(&one["identity"]["taskId"]),
                word(&one["identity"]["status"]),
            )
        })
        .collect();
    found.sort();
    let expected = [
        ("asked", "human-review"),
        ("given-up", "abandoned"),
        ("held", "active"),
        ("stale", "active"),
    ];
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(task, status)| (task.as_str(), status.as_str()))
        .collect();
    assert_eq!(found, expected);
    let shown = world.run(&["show", "held", "--json"]).exits(0).json();
    assert_eq!(
        shown["data"]["boundary"]["allowed"],
        serde_json::json!(["src/"])
    );
    assert_eq!(shown["data"]["plan"]["checks"][0]["command"], "true");
    let notes = shown["data"]["notes"].as_array().unwrap();
    assert_eq!(notes[0]["text"], "a remark");
    assert_eq!(notes.len(), 141);
    assert_eq!(shown["data"]["runs"].as_array().map(Vec::len), Some(1));
    let asked = world.run(&["show", "asked", "--json"]).exits(0).json();
    assert_eq!(asked["data"]["reviews"][0]["explanation"], "fine?");
    let done = world.run(&["show", "done", "--json"]).exits(0).json();
    assert_eq!(done["data"]["archived"], true);
    let tasks = world.run(&["bg", "list", "--json"]).exits(0).json();
    assert!(
        tasks.to_string().contains("\"name\":\"build\""),
        "{tasks:#}"
    );
    let output = world.run(&["bg", "output", "build"]).exits(0);
    assert!(
        output.stdout.contains("3/10 tests") && output.stdout.contains("err"),
        "{}",
        output.stdout
    );
    let shown = world
        .run(&["bg", "show", "build", "--json"])
        .exits(0)
        .json();
    assert!(shown.to_string().contains("\"exitCode\":0"), "{shown:#}");
    world.run(&["--all"]).exits(0);
    // Everything was only looked at.
    let changed = differences(&before, &content(&world.ours(), &|_| false));
    assert!(changed.is_empty(), "{changed:#?}");
    // And it goes on, once somebody said that this is the place itself and no copy: what is written now stands beside what was
    // written then.
    world.run(&["init", "--moved"]).exits(0);
    world
        .run(&["note", "of today", "--task", "held", "--session", "s2"])
        .exits(0);
    let shown = world.run(&["show", "held", "--json"]).exits(0).json();
    assert_eq!(shown["data"]["notes"].as_array().map(Vec::len), Some(142));
    world
        .run(&["agents", "uninstall", "claude-code", "--user"])
        .exits(0);
}

/// Gives a sealed record another version and seals it again.
fn newer(line: &str) -> String {
    let (body, _) = line.rsplit_once(",\"sum\":\"").unwrap();
    let body = body.replacen("\"v\":1", "\"v\":2", 1);
    let sum = Sha256::digest(body.as_bytes())
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    format!("{body},\"sum\":\"{sum}\"}}")
}

/// A versioned file: where it is, and how a newer one looks.
type Versioned = (PathBuf, fn(&str) -> String);

/// Every versioned file.
fn versioned(world: &World) -> Vec<Versioned> {
    let sealed: fn(&str) -> String = |text| newer(text.trim_end()) + "\n";
    let last_line: fn(&str) -> String = |text| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let last = lines.pop().unwrap();
        lines.push(newer(&last));
        lines.join("\n") + "\n"
    };
    let plain: fn(&str) -> String = |text| {
        let changed = text.replacen("\"version\": 1", "\"version\": 2", 1);
        assert_ne!(changed, text);
        changed
    };
    let find = |folder: PathBuf, ending: &str| {
        let mut todo = vec![folder];
        while let Some(next) = todo.pop() {
            for entry in std::fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    todo.push(path);
                } else if path.to_str().unwrap().ends_with(ending) {
                    return path;
                }
            }
        }
        panic!("no {ending}")
    };
    vec![
        (world.ours().join("state.json"), sealed),
        (world.ours().join("journal.jsonl"), last_line),
        (world.ours().join("archive/done.json"), sealed),
        (world.state().join("places.json"), plain),
        (find(world.state().join("tasks"), ".status.json"), plain),
        (
            find(world.state().join("installed"), "manifest.json"),
            plain,
        ),
    ]
}

#[test]
fn a_newer_version_is_refused_by_name_and_stays_as_it_is() {
    let count = versioned(&used()).len();
    for number in 0..count {
        let world = used();
        let (path, change) = versioned(&world).remove(number);
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = change(&std::fs::read_to_string(&path).unwrap());
        std::fs::write(&path, &text).unwrap();
        let mut said = String::new();
        for words in [
            &["inspect", "--json"][..],
            &["show", "done"],
            &["bg", "list", "--json"],
            &["bg", "show", "build"],
            &["--all", "--json"],
            &["doctor", "--json"],
            // Those that would write.
            &["note", "x", "--task", "held", "--session", "s2"],
            &["start", "new", "--session", "n1", "--no-checks"],
            &["save", "--session", "s2"],
            &["bg", "clean"],
            &["gc"],
            &["doctor", "--fix", "--yes"],
            &["agents", "install", "claude-code", "--user"],
            &["agents", "uninstall", "claude-code", "--user"],
        ] {
            let ran = world
                .run(words)
                .ended_well(format_args!("{name}: {words:?}"));
            said += &(ran.stdout + &ran.stderr);
        }
        assert!(said.contains(&name), "{name} is not named: {said}");
        assert!(said.contains("version"), "{name}: {said}");
        assert_eq!(
            std::fs::read_to_string(&path).ok(),
            Some(text),
            "{name} was changed"
        );
    }
}

/// Makes the fixture, once for a version.
#[test]
#[ignore = "makes the fixture of a version, in a folder that must not be there yet"]
fn make_the_files() {
    let folder = fixture();
    assert!(!folder.exists(), "a fixture is never made anew");
    // The program stands in the scratch folder, so that no path of this machine's builds is recorded.
    let world = World::at_home();
    let ledger = takeup_core::ledger::Ledger::at(world.ours());
    for number in 0..140 {
        let note = takeup_tests::ledger::note("held", &format!("note {number}"));
        takeup_tests::ledger::put(&ledger, note).unwrap();
    }
    world
        .run(&["agents", "install", "claude-code", "--user"])
        .exits(0);
    copy(&world.ours(), &folder.join("ledger"));
    copy(&world.state(), &folder.join("state"));
    let _: &Scratch = &world.scratch;
}
