//! Promise 5: looking is not writing.
//!
//! Every command of the command line is sorted here into those that read and those that write; one that is not sorted fails
//! the test. Around each reading form everything is compared: the repository, our own files, and the homes of all agents.
//! More: `cases/untouched.rs`, `sessions.rs`, `background/privacy.rs`, and in the adapters the tests of each store.
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::look::{Look, differences, look};
use super::world::World;

/// How a command treats the disk.
pub(crate) enum Kind {
    /// It reads only, in each of these forms.
    Reads(&'static [&'static [&'static str]]),
    /// It writes; these forms of it read only.
    Writes(&'static [&'static [&'static str]]),
}
use Kind::{Reads, Writes};

/// Every command there is.
pub(crate) const COMMANDS: &[(&str, Kind)] = &[
    (
        "",
        Reads(&[&[], &["--all"], &["--json"], &["--all", "--json"]]),
    ),
    ("init", Writes(&[])),
    ("start", Writes(&[])),
    ("save", Writes(&[])),
    ("note", Writes(&[])),
    ("plan", Reads(&[&[], &["--session", "s2", "--json"]])),
    ("plan list", Reads(&[&[], &["--task", "held", "--json"]])),
    ("plan add", Writes(&[])),
    ("plan remove", Writes(&[])),
    ("check", Writes(&[])),
    ("evidence add", Writes(&[])),
    ("evaluate", Writes(&[])),
    ("next", Writes(&[])),
    ("finish", Writes(&[])),
    ("abandon", Writes(&[])),
    (
        "inspect",
        Reads(&[
            &[],
            &["--json"],
            &["held", "--json"],
            &["--verify", "--json"],
        ]),
    ),
    // Without a yes it shows what it would take up.
    (
        "resume",
        Writes(&[&["held", "--to", "s9"], &["stale", "--to", "s9", "--json"]]),
    ),
    (
        "show",
        Reads(&[
            &["held"],
            &["held", "--json"],
            &["stale"],
            &["done"],
            &["asked", "--json"],
        ]),
    ),
    ("log", Reads(&[&["held"], &["held", "--json"], &["stale"]])),
    ("hook", Writes(&[])),
    ("hooks", Reads(&[&[], &["--json"]])),
    (
        "hooks install",
        Writes(&[&["--dry-run"], &["--dry-run", "--json"]]),
    ),
    ("hooks status", Reads(&[&[], &["--json"]])),
    ("hooks uninstall", Writes(&[&["--dry-run"]])),
    (
        "sessions",
        Reads(&[&[], &["--all", "--json", "-n", "0"], &["--unfinished"]]),
    ),
    (
        "sessions show",
        Reads(&[
            &["fox"],
            &["ses_1", "--json"],
            &["agent:main:main"],
            &["agent:old:main", "--json"],
        ]),
    ),
    // Printed it only looks; with --output or --as-session it writes.
    ("sessions recover", Writes(&[&["lion"], &["ses_1"]])),
    ("bg run", Writes(&[])),
    ("bg list", Reads(&[&[], &["--json"]])),
    ("bg show", Reads(&[&["build"], &["build", "--json"]])),
    ("bg output", Reads(&[&["build"], &["build", "--json"]])),
    ("bg tail", Reads(&[&["build"], &["-f", "build"]])),
    ("bg wait", Reads(&[&["build"], &["build", "--json"]])),
    ("bg stop", Writes(&[&["build"]])),
    ("bg clean", Writes(&[&["--dry-run"]])),
    ("bg adopt", Writes(&[])),
    ("bg detach", Writes(&[])),
    (
        "diff",
        Reads(&[
            &["stale"],
            &["stale", "--patch"],
            &["stale", "--json"],
            &["held"],
        ]),
    ),
    (
        "handover",
        Writes(&[
            &["held"],
            &["stale", "--json"],
            &["held", "--to", "jcode", "--dry-run"],
            &["held", "--to", "opencode", "--dry-run", "--json"],
        ]),
    ),
    ("review", Reads(&[&[], &["--json"]])),
    ("review list", Reads(&[&[], &["--json"]])),
    ("review show", Reads(&[&["asked"], &["asked", "--json"]])),
    ("review request", Writes(&[])),
    ("review approve", Writes(&[])),
    ("review reject", Writes(&[])),
    ("doctor", Reads(&[&[], &["--json"]])),
    ("gc", Writes(&[&["--dry-run"], &["--dry-run", "--json"]])),
    ("agents", Reads(&[&[], &["--json"]])),
    ("agents list", Reads(&[&[], &["--json"]])),
    (
        "agents install",
        Writes(&[
            &["opencode", "--dry-run"],
            &["openclaw", "--user", "--dry-run"],
            &["jcode", "--user", "--dry-run"],
            &["claude-code", "--user", "--dry-run", "--json"],
        ]),
    ),
    (
        "agents status",
        Reads(&[
            &["opencode"],
            &["openclaw", "--user"],
            &["codex", "--user", "--json"],
        ]),
    ),
    (
        "agents uninstall",
        Writes(&[&["gemini", "--user", "--dry-run"]]),
    ),
    ("fingerprint", Reads(&[&[], &["--json"], &["--verify"]])),
    ("config", Reads(&[&[], &["--json"]])),
    // In a scratch repository of its own.
    ("demo", Writes(&[])),
    ("completions", Reads(&[&["bash"], &["fish"]])),
    // Its tools are looked at below.
    ("mcp", Writes(&[])),
    ("version", Reads(&[&[], &["--json"]])),
];

/// The command line with every command: each defines its own only when it is called.
fn whole() -> clap::Command {
    let mut command = git_takeup::command();
    command.build();
    command
}

/// The commands of the command line that can be called, by their words.
fn callable(command: &clap::Command, words: &str, into: &mut Vec<String>) {
    let subcommands: Vec<&clap::Command> = command
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
        .collect();
    if subcommands.is_empty() || !command.is_subcommand_required_set() {
        into.push(words.to_owned());
    }
    for subcommand in subcommands {
        let words = format!("{words} {}", subcommand.get_name());
        callable(subcommand, words.trim(), into);
    }
}

#[test]
fn every_command_is_sorted() {
    let mut there = Vec::new();
    callable(&whole(), "", &mut there);
    there.sort();
    let mut sorted: Vec<&str> = COMMANDS.iter().map(|(words, _)| *words).collect();
    sorted.sort_unstable();
    assert_eq!(there, sorted, "sort each command by whether it only reads");
    for (words, kind) in COMMANDS {
        if let Reads(forms) = kind {
            assert!(!forms.is_empty(), "{words}: in what form is it looked at?");
        }
    }
}

/// Everything but the folder for temporary files, where names alone count: what was made there has to be gone.
fn everything(world: &World) -> Look {
    let mut found = look(&world.scratch.path(), &|_| false);
    for (name, line) in &mut found {
        if name == "tmp" {
            line.clear();
        }
    }
    found
}

/// A world with everything of ours in it.
fn full() -> World {
    let world = World::lived();
    world.run(&["hooks", "install"]).exits(0);
    for agent in ["claude-code", "codex", "jcode"] {
        world.run(&["agents", "install", agent, "--user"]).exits(0);
    }
    world
}

#[test]
fn no_command_that_reads_changes_anything() {
    let world = full();
    let mut before = everything(&world);
    for (words, kind) in COMMANDS {
        let (Reads(forms) | Writes(forms)) = kind;
        for form in *forms {
            let all: Vec<&str> = words
                .split_whitespace()
                .chain(form.iter().copied())
                .collect();
            let ran = world.run(&all);
            // A form that is no form at all would prove nothing.
            assert!(
                ![2, 70, 101].contains(&ran.code) && ran.code < 128,
                "{all:?}: exit {}: {}{}",
                ran.code,
                ran.stdout,
                ran.stderr
            );
            let after = everything(&world);
            let changed = differences(&before, &after);
            assert!(changed.is_empty(), "{all:?}: {changed:#?}");
            before = after;
        }
    }
}

/// Help is a look as well, and what is refused was not done. The lock may have been taken to find that out.
#[test]
fn no_help_and_no_refusal_changes_anything() {
    let world = full();
    let everything = |world: &World| {
        let mut found = everything(world);
        found.remove("repo/.git/takeup/lock");
        found
    };
    let before = everything(&world);
    let mut all = Vec::new();
    callable(&whole(), "", &mut all);
    for words in &all {
        let words: Vec<&str> = words.split_whitespace().chain(["--help"]).collect();
        world.run(&words).exits(0);
    }
    for words in [
        &["inspect", "nothing-of-the-kind"][..],
        &["resume", "held", "--to", "s9", "--confirm", "ok-0000000000"],
        &["finish", "held", "--session", "s2", "--no-such-option"],
        &["save", "--session", "nobody"],
        &["note", "x", "--session", "nobody"],
        &["abandon", "nothing"],
        &["review", "approve", "asked"],
        &["agents", "install", "nobody"],
        &["sessions", "recover", "ghost", "--as-session"],
        &["bg", "stop", "nothing"],
        &["bg", "run", "--no-such-option"],
        &["hooks", "install", "--no-such-option"],
    ] {
        let ran = world.run(words);
        assert_ne!(ran.code, 0, "{words:?}");
        let changed = differences(&before, &everything(&world));
        assert!(changed.is_empty(), "{words:?}: {changed:#?}");
    }
    let changed = differences(&before, &everything(&world));
    assert!(changed.is_empty(), "{changed:#?}");
}

/// What is called outside of any repository, or in one that takeup was never used in, leaves no trace at all.
#[test]
fn looking_in_a_fresh_repository_leaves_no_trace() {
    let world = World::new();
    let mut before = everything(&world);
    for (words, kind) in COMMANDS {
        let (Reads(forms) | Writes(forms)) = kind;
        for form in *forms {
            let all: Vec<&str> = words
                .split_whitespace()
                .chain(form.iter().copied())
                .collect();
            let ran = world.run(&all);
            assert!(ran.code < 70, "{all:?}: {}{}", ran.stdout, ran.stderr);
            let after = everything(&world);
            let changed = differences(&before, &after);
            assert!(changed.is_empty(), "{all:?}: {changed:#?}");
            before = after;
        }
    }
    assert!(!world.ours().exists() && !world.state().exists());
}

/// What each MCP tool that reads is asked.
fn questions() -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        ("takeup_status", json!({})),
        ("takeup_inspect", json!({})),
        ("takeup_show", json!({"task": "held"})),
        ("takeup_diff", json!({"task": "stale"})),
        ("takeup_handover", json!({"task": "held"})),
        ("takeup_sessions", json!({})),
        ("takeup_bg_list", json!({})),
        ("takeup_bg_show", json!({"id": "build"})),
        ("takeup_bg_output", json!({"id": "build"})),
        ("takeup_bg_wait", json!({"ids": ["build"]})),
    ])
}

#[test]
fn no_mcp_tool_or_resource_that_reads_changes_anything() {
    let world = full();
    let mut client = super::mcp::Client::of(&world);
    let tools = client.request("tools/list", json!({}))["tools"].clone();
    let reading: Vec<String> = tools
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| tool["annotations"]["readOnlyHint"] == true)
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    let questions = questions();
    let named: Vec<&str> = questions.keys().copied().collect();
    let mut sorted = reading.clone();
    sorted.sort();
    assert_eq!(sorted, named, "what is each tool that reads asked?");
    let before = everything(&world);
    let still = |what: &str| {
        let changed = differences(&before, &everything(&world));
        assert!(changed.is_empty(), "{what}: {changed:#?}");
    };
    for tool in &reading {
        let answer = client.request(
            "tools/call",
            json!({"name": tool, "arguments": questions[tool.as_str()]}),
        );
        assert_ne!(answer["isError"], true, "{tool}: {answer:#}");
        still(tool);
    }
    let resources = client.request("resources/list", json!({}))["resources"].clone();
    for resource in resources.as_array().unwrap() {
        let uri = resource["uri"].as_str().unwrap();
        client.request("resources/read", json!({"uri": uri}));
        still(uri);
    }
    let prompts = client.request("prompts/list", json!({}))["prompts"].clone();
    for prompt in prompts.as_array().unwrap() {
        let name = prompt["name"].as_str().unwrap();
        client.request("prompts/get", json!({"name": name, "arguments": {}}));
        still(name);
    }
}
