//! Promise 3: no lost record.
//!
//! Here: every command that writes, killed and starved at every point at which it writes; what it leaves is what was before
//! or what would have come after, and the same call again gets there. The ledger's own writer at every point, torn at every
//! byte, on a disk that is really full and on one that is read-only, with a reader of its own as the judge: `ledger/kills.rs`,
//! `ledger/damage.rs`. Where strace is at hand, `calls.rs` stops a command at each of its system calls that write, whether
//! there is a point or not. What a kill leaves beside a file goes with the next command that writes there, or with `gc`.
mod beyond;
mod calls;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use takeup_tests::Ran;

use super::look::{Look, content, differences};
use super::world::World;

/// A command that writes, and what has to be there before it.
struct Scenario {
    before: &'static [&'static [&'static str]],
    words: &'static [&'static str],
    /// The git on PATH says that it runs hooks of the configuration.
    modern: bool,
    /// The command that takes back what this one puts into files of others.
    undo: &'static [&'static str],
}

const fn scenario(
    before: &'static [&'static [&'static str]],
    words: &'static [&'static str],
) -> Scenario {
    Scenario {
        before,
        words,
        modern: false,
        undo: &[],
    }
}

const UNHOOK: &[&str] = &["hooks", "uninstall"];
const UNCLAUDE: &[&str] = &["agents", "uninstall", "claude-code", "--user"];
const UNPLUG: &[&str] = &["agents", "uninstall", "opencode", "--user"];

const SCENARIOS: &[Scenario] = &[
    scenario(&[], &["init"]),
    scenario(&[], &["start", "t", "--session", "s1", "--check", "true"]),
    scenario(STARTED, &["save", "--session", "s1", "--end"]),
    scenario(STARTED, &["note", "a remark", "--session", "s1"]),
    scenario(STARTED, &["plan", "add", "false", "--task", "t"]),
    scenario(STARTED, &["check", "--session", "s1", "--planned", "1"]),
    scenario(CHECKED, &["next", "--session", "s1"]),
    scenario(CHECKED, &["finish", "t", "--session", "s1"]),
    scenario(
        ENDED,
        &["resume", "t", "--from", "s1", "--to", "s2", "--confirm"],
    ),
    scenario(ASKED, &["review", "approve", "t", "--confirm"]),
    scenario(ASKED, &["review", "reject", "t", "--confirm"]),
    scenario(STARTED, &["abandon", "t", "--session", "s1"]),
    Scenario {
        undo: UNHOOK,
        ..scenario(STARTED, &["hooks", "install"])
    },
    scenario(HOOKED, UNHOOK),
    Scenario {
        modern: true,
        undo: UNHOOK,
        ..scenario(STARTED, &["hooks", "install"])
    },
    Scenario {
        modern: true,
        ..scenario(HOOKED, UNHOOK)
    },
    Scenario {
        undo: UNCLAUDE,
        ..scenario(STARTED, &["agents", "install", "claude-code", "--user"])
    },
    scenario(INSTALLED, UNCLAUDE),
    // Folders that are not there yet.
    Scenario {
        undo: UNPLUG,
        ..scenario(STARTED, &["agents", "install", "opencode", "--user"])
    },
    scenario(PLUGGED, UNPLUG),
];

const STARTED: &[&[&str]] = &[&["start", "t", "--session", "s1", "--check", "true"]];
const CHECKED: &[&[&str]] = &[STARTED[0], &["check", "--session", "s1", "--planned", "1"]];
const ENDED: &[&[&str]] = &[STARTED[0], &["save", "--session", "s1", "--end"]];
const ASKED: &[&[&str]] = &[
    STARTED[0],
    &["review", "request", "may I?", "--session", "s1"],
];
const HOOKED: &[&[&str]] = &[STARTED[0], &["hooks", "install"]];
const PLUGGED: &[&[&str]] = &[STARTED[0], &["agents", "install", "opencode", "--user"]];
const INSTALLED: &[&[&str]] = &[STARTED[0], &["agents", "install", "claude-code", "--user"]];

/// A world as it was before a command, kept aside to be put back.
struct Stage {
    world: World,
}

impl Stage {
    fn of(scenario: &Scenario) -> Self {
        let world = World::plain();
        if scenario.modern {
            modern_git(&world);
        }
        for words in scenario.before {
            world.run(words).exits(0);
        }
        let stage = Self { world };
        stage.copy(&stage.world.scratch.path(), "repo", "kept");
        stage.copy(&stage.world.scratch.path(), "home", "kept");
        stage
    }

    fn copy(&self, top: &Path, name: &str, ending: &str) {
        let done = Command::new("cp")
            .args(["-a", name, &format!("{name}.{ending}")])
            .current_dir(top)
            .status()
            .unwrap();
        assert!(done.success());
    }

    /// Puts everything back as it was. The folders stay the same ones, so that the place is the same.
    fn reset(&self) {
        takeup_tests::until_nobody_works_in(&self.world.scratch.path());
        let script = "for name in repo home; do find $name -mindepth 1 -delete; cp -a $name.kept/. $name/; done";
        let done = Command::new("sh")
            .args(["-euc", script])
            .current_dir(self.world.scratch.path())
            .status()
            .unwrap();
        assert!(done.success());
    }

    /// What the ledger and the installed files say, without what differs from run to run.
    fn told(&self, context: &str) -> Told {
        let ran = self.world.run(&["show", "t", "--json"]);
        assert!(
            matches!(ran.code, 0 | 4),
            "{context}: {}{}",
            ran.stdout,
            ran.stderr
        );
        let shown = ran.json();
        Told {
            // Where there is no such task, what is damaged may be told, and nothing else.
            ledger: steady(if ran.code == 4 {
                &Value::Null
            } else {
                &shown["data"]
            }),
            issues: shown["data"]["issues"].clone(),
            files: content(&self.world.scratch.path(), &|name| {
                !(name.is_empty() || name.starts_with("repo") || name.starts_with("home"))
                    || name.contains(".kept")
                    // Left by a kill, told by its name, and never read.
                    || name.contains(".takeup-tmp-")
                    || name.starts_with("repo/.git/takeup")
                    || name.starts_with("home/.local")
            }),
        }
    }
}

/// Puts a git first on PATH that says it is 2.54, and is real git for the rest.
fn modern_git(world: &World) {
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("git"))
        .find(|file| file.exists())
        .unwrap();
    let script = format!(
        "#!/bin/sh\nfor word; do case $word in version) echo 'git version 2.54.0'; exit ;; -*|*=*) ;; *) break ;; esac; done\nexec '{}' \"$@\"\n",
        real.display()
    );
    world.scratch.put_program("git", &script);
}

/// Temporary files of ours and locks of git that stand below the repository and the home.
fn left(world: &World) -> Vec<String> {
    let output = Command::new("find")
        .args([
            "repo",
            "home",
            "(",
            "-name",
            ".takeup-tmp-*",
            "-o",
            "-name",
            ".look-*",
        ])
        .args([
            "-o",
            "-path",
            "repo/.git/*.lock",
            "-not",
            "-path",
            "*/takeup/*",
            ")",
        ])
        .current_dir(world.scratch.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Demands that nothing is left by a kill that nothing ever removes: the next write goes over what lies in folders of
/// others, and `gc` over what is an hour old in ours.
fn nothing_stays(world: &World, context: &str) {
    let all = left(world);
    let strange: Vec<&String> = all
        .iter()
        .filter(|name| {
            !name.starts_with("repo/.git/takeup/") && !name.starts_with("home/.local/state/takeup/")
        })
        .collect();
    assert!(strange.is_empty(), "{context}: {strange:?}");
    if all.is_empty() {
        return;
    }
    let done = Command::new("touch")
        .args(["-h", "-d", "2 hours ago"])
        .args(&all)
        .current_dir(world.scratch.path())
        .status()
        .unwrap();
    assert!(done.success());
    world.run(&["gc"]).exits(0);
    let all = left(world);
    assert!(all.is_empty(), "{context}: after gc: {all:?}");
}

/// What was found.
#[derive(Debug)]
struct Told {
    ledger: String,
    issues: Value,
    files: Look,
}

impl Told {
    fn same(&self, other: &Self) -> bool {
        self.ledger == other.ledger && self.files == other.files
    }
}

/// Writes a value without times, ages, tokens and ids that are made anew each time.
fn steady(value: &Value) -> String {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(map) => {
                for name in [
                    "at",
                    "updatedAt",
                    "createdAt",
                    "ageSeconds",
                    "age",
                    "token",
                    "seq",
                    "revision",
                    "reviewId",
                    "startedAt",
                    "endedAt",
                    "finishedAt",
                    "durationMs",
                    "id",
                    "repositoryId",
                    "worktreeId",
                    "command",
                    "message",
                    "next",
                    "process",
                    "pid",
                    "liveness",
                    "milliseconds",
                    "proof",
                    "issues",
                ] {
                    map.remove(name);
                }
                map.values_mut().for_each(walk);
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut value = value.clone();
    walk(&mut value);
    value.to_string()
}

/// The points that a command reaches, the same name again being the same point once more.
fn points(stage: &Stage, words: &[&str]) -> Vec<String> {
    let log = stage.world.scratch.path().join("points");
    drop(std::fs::remove_file(&log));
    let output = stage
        .world
        .program()
        .env("TAKEUP_FAULT_LOG", &log)
        .args(words)
        .output()
        .unwrap();
    let ran = Ran::of(output);
    assert!(
        matches!(ran.code, 0 | 1),
        "{words:?}: {}{}",
        ran.stdout,
        ran.stderr
    );
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut all: Vec<String> = std::fs::read_to_string(log)
        .unwrap_or_default()
        .lines()
        .map(|point| {
            let count = seen.entry(point.to_owned()).or_default();
            *count += 1;
            format!("{point}#{count}")
        })
        .collect();
    // Nothing is written when a lock is taken or freed.
    all.retain(|point| !point.starts_with("lock-"));
    all
}

/// Stops or starves a command at a point, and says what has to hold.
fn strike(
    stage: &Stage,
    scenario: &Scenario,
    before: &Told,
    after: &Told,
    blow: &str,
    hit: impl FnOnce() -> Ran,
) {
    let context = format!("{:?}: {blow}", scenario.words);
    stage.reset();
    let ran = hit();
    let now = stage.told(&context);
    // A torn line is what a kill in the middle of an append leaves; it is said, and the next writer puts it aside.
    let issues = now.issues.as_array().cloned().unwrap_or_default();
    assert!(
        issues.iter().all(|issue| issue["kind"] == "torn"),
        "{context}: {issues:?}"
    );
    if ran.code == 0 {
        assert_eq!(
            now.ledger, after.ledger,
            "{context}: it said that it was done"
        );
    } else {
        assert!(
            now.ledger == before.ledger || now.ledger == after.ledger || is_between(scenario),
            "{context}: neither before nor after:\nbefore {}\nafter  {}\nnow    {}",
            before.ledger,
            after.ledger,
            now.ledger
        );
    }
    // The same call again gets there, whatever was left.
    let again = stage.world.run(scenario.words);
    let end = stage.told(&context);
    assert!(
        matches!(again.code, 0 | 1 | 4 | 5) && !again.stderr.contains("panicked"),
        "{context}: again: {}{}",
        again.stdout,
        again.stderr
    );
    nothing_stays(&stage.world, &context);
    if adds(scenario) {
        return;
    }
    assert_eq!(
        end.ledger, after.ledger,
        "{context}: again: {}{}",
        again.stdout, again.stderr
    );
    let left = differences(&after.files, &end.files);
    assert!(left.is_empty(), "{context}: again: {left:#?}");
    if !scenario.undo.is_empty() {
        stage.world.run(scenario.undo).exits(0);
        let back = stage.told(&context);
        let left = differences(&before.files, &back.files);
        assert!(left.is_empty(), "{context}: taken back: {left:#?}");
    }
}

/// A decision is recorded before it is applied: between the two the next call applies it.
fn is_between(scenario: &Scenario) -> bool {
    scenario.words[0] == "review" || scenario.words[0] == "hooks"
}

/// Said twice it is there twice.
fn adds(scenario: &Scenario) -> bool {
    matches!(
        scenario.words[0],
        "note" | "check" | "plan" | "finish" | "next"
    )
}

fn at_every_point(action: &str, chosen: impl Fn(&Scenario) -> bool) {
    if !cfg!(debug_assertions) {
        println!("skipped: fault points exist in builds with debug assertions only");
        return;
    }
    for scenario in SCENARIOS.iter().filter(|scenario| chosen(scenario)) {
        let stage = Stage::of(scenario);
        let before = stage.told("before");
        let all = points(&stage, scenario.words);
        assert!(all.len() >= 4, "{:?}: {all:?}", scenario.words);
        let after = stage.told("after");
        assert!(
            !before.same(&after) || scenario.words == ["init"],
            "{:?} changes nothing: {before:#?}",
            scenario.words
        );
        // Killed after one step is killed before the next; and a full disk is met before a step, or in its middle.
        let chosen = |point: &&String| {
            if action == "kill" {
                !point.contains(":before#") || *point == &all[0]
            } else {
                !point.contains(":after#")
            }
        };
        for point in all.iter().filter(chosen) {
            strike(
                &stage,
                scenario,
                &before,
                &after,
                &format!("{action} at {point}"),
                || {
                    let output = stage
                        .world
                        .program()
                        .env("TAKEUP_FAULT", format!("{point}={action}"))
                        .args(scenario.words)
                        .output()
                        .unwrap();
                    let ran = Ran::of(output);
                    // Whether the cache of the fingerprint is written, which is no record, depends on the moment.
                    assert!(
                        action != "kill" || ran.code == 128 + 9 || point.starts_with("replace-"),
                        "{:?}: {point}: it was not reached",
                        scenario.words
                    );
                    ran
                },
            );
        }
    }
}

#[test]
fn a_kill_at_any_point_leaves_before_or_after() {
    at_every_point("kill", |_| true);
}

#[test]
fn a_full_disk_at_any_point_leaves_before_or_after() {
    // Those that write more than one line of the ledger: what happens to that line is in `ledger/kills.rs`.
    at_every_point("enospc", |scenario| {
        matches!(
            scenario.words[0],
            "init" | "start" | "review" | "hooks" | "agents"
        )
    });
}
