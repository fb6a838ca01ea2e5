//! Promise 6: the repository stays as it is, and so do the agents' homes.
//!
//! Here: around every command that writes, nothing but our own folders changes (and, since the OpenCode++ plugin is in use in
//! that work tree, its own records, in which transitions are told); and integrations are taken out byte for byte.
//! A repository in the middle of a rebase is in `cases/untouched.rs`; hooks beside every kind of hook manager in
//! `hooks/install.rs`, `hooks/managers.rs` and `hooks/real_managers.rs`.
use std::collections::BTreeSet;

use super::look::{Look, content, differences, look};
use super::p5_looking_is_not_writing::{COMMANDS, Kind};
use super::world::World;

/// Everything but what is ours.
fn not_ours(world: &World) -> Look {
    let mut found = look(&world.scratch.path(), &|name| {
        name.starts_with("repo/.git/takeup")
            || name.starts_with("home/.local/state")
            || name.starts_with("repo/.agent-context")
            || name == "tmp"
    });
    // Entries appear in these: our folder, and a state folder where there was none.
    for folder in ["repo/.git", "home/.local"] {
        found.remove(folder);
    }
    found
}

/// Every command that writes, in an order in which each has something to do.
const WRITING: &[&[&str]] = &[
    &["init"],
    &["start", "one", "--session", "s1", "--check", "true"],
    &["plan", "add", "test -e a.txt", "--task", "one"],
    &["plan", "remove", "2", "--task", "one"],
    &["note", "a remark", "--session", "s1"],
    &["check", "--session", "s1", "--planned", "1"],
    &["check", "--session", "s1", "--", "cat", "a.txt"],
    &[
        "evidence",
        "add",
        "--command",
        "x",
        "--exit-code",
        "0",
        "--session",
        "s1",
    ],
    &["save", "--session", "s1", "--end"],
    &["resume", "one", "--from", "s1", "--to", "s2", "--confirm"],
    &["review", "request", "may I?", "--session", "s2"],
    &["review", "approve", "one", "--confirm"],
    &["evaluate", "one", "--session", "s2"],
    &["next", "one", "--session", "s2"],
    &["start", "two", "--session", "s3", "--no-checks"],
    &["finish", "two", "--session", "s3"],
    &["start", "three", "--session", "s4", "--no-checks"],
    &["review", "request", "may I?", "--session", "s4"],
    &["review", "reject", "three", "--confirm"],
    &["start", "four", "--session", "s5", "--no-checks"],
    &["abandon", "four", "--session", "s5"],
    &["handover", "one"],
    &["hook", "git", "post-commit"],
    &["hook", "claude-code", "Stop", "{\"session_id\": \"c1\"}"],
    &["bg", "run", "--name", "t", "--", "true"],
    &["bg", "wait", "t"],
    &["bg", "run", "--name", "u", "--", "sleep", "1000"],
    &["bg", "stop", "u", "--grace", "0s"],
    &["bg", "clean"],
    &["gc"],
    &["demo"],
];

/// Commands that change other files than ours on request: looked at below, or named with where that is.
const ON_REQUEST: &[&str] = &[
    "agents install",
    "agents uninstall",
    // hooks/
    "hooks install",
    "hooks uninstall",
    // sessions.rs: one new file, or one new session
    "sessions recover",
    // Its tools call the same commands.
    "mcp",
    // background/: needs a process that runs already, or a terminal
    "bg adopt",
    "bg detach",
];

#[test]
fn every_command_that_writes_is_here() {
    let there: BTreeSet<&str> = COMMANDS
        .iter()
        .filter(|(_, kind)| matches!(kind, Kind::Writes(_)))
        .map(|(words, _)| *words)
        .filter(|words| !ON_REQUEST.contains(words))
        .collect();
    let here: BTreeSet<&str> = there
        .iter()
        .copied()
        .filter(|words| {
            let words: Vec<&str> = words.split(' ').collect();
            WRITING.iter().any(|call| call.starts_with(&words))
        })
        .collect();
    assert_eq!(there, here);
}

#[test]
fn commands_that_write_change_nothing_but_our_own_folders() {
    let world = World::new();
    let mut before = not_ours(&world);
    for words in WRITING {
        let ran = world.run(words);
        assert!(
            ran.code <= 1,
            "{words:?}: exit {}: {}{}",
            ran.code,
            ran.stdout,
            ran.stderr
        );
        let after = not_ours(&world);
        let changed = differences(&before, &after);
        assert!(changed.is_empty(), "{words:?}: {changed:#?}");
        before = after;
    }
    world.scratch.git(&["fsck", "--strict"]);
}

/// The agents that can be installed for, with the words that choose the scope.
fn installable(world: &World) -> Vec<(String, &'static [&'static str])> {
    let agents = world.run(&["agents", "--json"]).exits(0).json();
    let names: Vec<String> = agents["data"]["agents"]
        .as_array()
        .unwrap_or_else(|| panic!("{agents:#}"))
        .iter()
        .map(|agent| agent["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(names.len() >= 7, "{names:?}");
    let scopes: [&[&str]; 2] = [&[], &["--user"]];
    names
        .iter()
        .flat_map(|name| scopes.map(|scope| (name.clone(), scope)))
        .filter(|(name, scope)| {
            let words = [&["agents", "install", name, "--dry-run"], *scope].concat();
            world.run(&words).code == 0
        })
        .collect()
}

/// Names, modes and contents of everything but our own folders.
fn files(world: &World) -> Look {
    content(&world.scratch.path(), &|name| {
        name.starts_with("repo/.git/takeup")
            || name.starts_with("home/.local/state")
            || name == "tmp"
    })
}

#[test]
fn integrations_are_taken_out_byte_for_byte() {
    let world = World::new();
    let before = files(&world);
    let all = installable(&world);
    assert!(all.len() >= 8, "{all:?}");
    let run = |action: &str, name: &str, scope: &[&str]| {
        world
            .run(&[&["agents", action, name], scope].concat())
            .exits(0);
    };
    for (name, scope) in &all {
        run("install", name, scope);
        let installed = files(&world);
        assert!(
            !differences(&before, &installed).is_empty(),
            "{name} {scope:?}: nothing was installed"
        );
        run("install", name, scope);
        let changed = differences(&installed, &files(&world));
        assert!(changed.is_empty(), "{name} {scope:?} again: {changed:#?}");
        run("uninstall", name, scope);
        let changed = differences(&before, &files(&world));
        assert!(changed.is_empty(), "{name} {scope:?}: {changed:#?}");
        run("uninstall", name, scope);
        let changed = differences(&before, &files(&world));
        assert!(changed.is_empty(), "{name} {scope:?} again: {changed:#?}");
    }
    // All of them together, out in the order in which they came in.
    for (name, scope) in &all {
        run("install", name, scope);
    }
    for (name, scope) in &all {
        run("uninstall", name, scope);
    }
    let changed = differences(&before, &files(&world));
    assert!(changed.is_empty(), "all together: {changed:#?}");
}

/// Two integrations in one file: whichever goes first, the last puts back what its owner had, empty keys and comments
/// among it; and where its owner wrote into it in between, those stay, too.
#[test]
fn two_integrations_in_one_file_are_taken_out_byte_for_byte() {
    let gemini = "{\n  \"theme\": \"x\", // dark\n  \"hooks\": {}, // none yet\n  \"mcpServers\": {} // nor here\n}\n";
    let openclaw =
        "{ plugins: { entries: {} }, // json5\n  \"mcp\": { /* none */ \"servers\": {} },\n}\n";
    for (agent, file, text) in [
        ("gemini", ".gemini/settings.json", gemini),
        (
            "gemini",
            ".gemini/settings.json",
            "{\"hooks\":{},\"mcpServers\":{}}",
        ),
        ("openclaw", ".openclaw/openclaw.json", openclaw),
        (
            "openclaw",
            ".openclaw/openclaw.json",
            "{\n  // only a comment\n}\n",
        ),
    ] {
        let world = World::plain();
        let path = world.scratch.home().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let run = |action: &str, name: &str| {
            world.run(&["agents", action, name, "--user"]).exits(0);
        };
        let read = || std::fs::read_to_string(&path).unwrap();
        for order in [[agent, "mcp"], ["mcp", agent]] {
            for removal in [[agent, "mcp"], ["mcp", agent]] {
                std::fs::write(&path, text).unwrap();
                let both = |action: &str, order: [&str; 2]| order.map(|name| run(action, name));
                both("install", order);
                assert!(read().matches("takeup").count() >= 2, "{}", read());
                both("uninstall", removal);
                assert_eq!(read(), text, "in as {order:?}, out as {removal:?}");

                both("install", order);
                std::fs::write(&path, format!("{}\n", read())).unwrap();
                both("uninstall", removal);
                let left = read();
                assert!(!left.contains("takeup"), "{left}");
                for (at, _) in text.match_indices("//").chain(text.match_indices("/*")) {
                    let comment = text[at..].lines().next().unwrap();
                    let comment = comment.split_inclusive("*/").next().unwrap();
                    assert!(left.contains(comment), "{comment:?} is gone: {left}");
                }
            }
        }
    }
}

/// A file that two integrations want goes with the second of them.
#[test]
fn what_two_integrations_want_stays_until_the_second_is_taken_out() {
    let world = World::new();
    let before = files(&world);
    let run = |words: &[&str]| world.run(&[&["agents"], words].concat());
    let state = |name: &str| {
        let said = run(&["status", name, "--json"]).exits(0).json();
        said["data"]["state"].as_str().unwrap().to_owned()
    };
    for installed in [["skills", "openclaw"], ["openclaw", "skills"]] {
        for removed in [["skills", "openclaw"], ["openclaw", "skills"]] {
            for name in installed {
                run(&["install", name]).exits(0);
            }
            assert_eq!(installed.map(state), ["installed", "installed"]);
            let [first, last] = removed;
            let shown = run(&["uninstall", first, "--dry-run"]).exits(0).stdout;
            let said = run(&["uninstall", first]).exits(0).stdout;
            for said in [shown, said] {
                assert!(
                    said.contains(&format!("it is installed for {last}, too")),
                    "{said}"
                );
            }
            let states = (state(first), state(last));
            assert_eq!(
                states,
                ("absent".to_owned(), "installed".to_owned()),
                "{installed:?} {removed:?}"
            );
            run(&["uninstall", last]).exits(0);
            assert_eq!(removed.map(state), ["absent", "absent"]);
            let changed = differences(&before, &files(&world));
            assert!(
                changed.is_empty(),
                "{installed:?} {removed:?}: {changed:#?}"
            );
        }
    }
}

#[test]
fn what_somebody_added_to_a_file_of_ours_stays() {
    let world = World::new();
    world
        .run(&["agents", "install", "claude-code", "--user"])
        .exits(0);
    let settings = world.scratch.home().join(".claude/settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    let edited = text.replacen("\"model\": \"opus\"", "\"model\": \"sonnet\"", 1);
    assert_ne!(edited, text);
    std::fs::write(&settings, edited).unwrap();
    world
        .run(&["agents", "uninstall", "claude-code", "--user"])
        .exits(0);
    let after = std::fs::read_to_string(&settings).unwrap();
    assert!(
        after.contains("sonnet") && !after.contains("git-takeup"),
        "{after}"
    );
    assert!(after.contains("\"command\": \"true\""), "{after}");
}

/// Lines of an earlier version that somebody's edit hid from the record go as well, and a preview shows what will be.
#[test]
fn a_removal_takes_every_line_of_ours_and_is_shown_before() {
    let world = World::new();
    let settings = world.scratch.home().join(".claude/settings.json");
    let read = || std::fs::read_to_string(&settings).unwrap();
    std::fs::write(
        &settings,
        "{\"model\": \"opus\", \"hooks\": {\"Stop\": []}}\n",
    )
    .unwrap();
    let run = |words: &[&str]| {
        let words = [&["agents"], words, &["claude-code", "--user"]].concat();
        world.run(&words).exits(0)
    };
    let before = read();
    run(&["install"]);
    let shown = run(&["uninstall", "--dry-run"]).stdout;
    assert!(
        shown.contains("changed") && !shown.contains("removed"),
        "{shown}"
    );
    run(&["uninstall"]);
    assert_eq!(read(), before);
    // As an earlier version wrote it, after an edit that nobody recorded.
    run(&["install"]);
    std::fs::write(&settings, read().replace(" 2>/dev/null || :", "")).unwrap();
    run(&["install"]);
    run(&["uninstall"]);
    assert!(!read().contains("takeup"), "{}", read());
}

/// What the documents say removes takeup leaves nothing of it, in linked work trees neither.
#[test]
fn what_is_documented_to_remove_takeup_does() {
    for page in ["day-one.md", "faq.md"] {
        let world = World::plain();
        let scratch = &world.scratch;
        scratch.git(&["worktree", "add", "-q", "../linked", "-b", "linked"]);
        let linked = scratch.path().join("linked");
        scratch.takeup(&["hooks", "install"]).exits(0);
        for (folder, task) in [(&scratch.repo(), "one"), (&linked, "two")] {
            let start = ["start", task, "--session", "s"];
            scratch.takeup_in(folder, &start).exits(0);
            scratch.git_in(folder, &["commit", "-q", "--allow-empty", "-m", "x"]);
            takeup_tests::until_nobody_works_in(folder);
        }
        scratch.takeup(&["hooks", "uninstall"]).exits(0);
        let page = format!("{}/../docs/{page}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&page).unwrap();
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("rm -r"))
            .collect();
        assert!(!lines.is_empty());
        let mut shell = std::process::Command::new("sh");
        scratch.dress(&mut shell);
        shell
            .current_dir(scratch.repo())
            .args(["-ec", &lines.join("\n")]);
        assert!(shell.status().unwrap().success());
        let left = |folder: &std::path::Path| -> Vec<String> {
            let found = content(folder, &|_| false);
            found
                .into_keys()
                .filter(|name| name.contains("takeup"))
                .collect()
        };
        assert_eq!(
            left(&scratch.repo().join(".git")),
            Vec::<String>::new(),
            "{page}"
        );
    }
}

/// A folder that was made for the skill is no client, and what was put into a client's settings is told while it is there.
#[test]
fn the_skill_alone_makes_no_client() {
    let scratch = takeup_tests::Scratch::new(super::PROGRAM);
    let run = |words: &[&str]| scratch.takeup(&[&["agents"], words, &["--user"]].concat());
    let is_found = || {
        let said = scratch.takeup(&["agents", "--json"]).exits(0).json();
        let all = said["data"]["agents"].as_array().unwrap();
        let claude = all
            .iter()
            .find(|agent| agent["id"] == "claude-code")
            .unwrap();
        claude["detection"]["installed"] == true
    };
    run(&["install", "skills"]).exits(0);
    assert!(!is_found());
    let refused = run(&["install", "mcp"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    let claude = scratch.home().join(".claude");
    std::fs::write(claude.join("settings.json"), "{}").unwrap();
    assert!(is_found());
    run(&["install", "mcp"]).exits(0);
    std::fs::remove_dir_all(&claude).unwrap();
    let state = run(&["status", "mcp", "--json"]).exits(0).json();
    assert_ne!(state["data"]["state"], "absent", "{state:#}");
    run(&["uninstall", "mcp"]).exits(0);
    assert!(!scratch.home().join(".claude.json").exists());
}

/// Who forgets `--user` is told where it is.
#[test]
fn what_is_installed_elsewhere_is_said() {
    let world = World::plain();
    for (installed, asked) in [(&["--user"][..], &[][..]), (&[], &["--user"])] {
        let run = |action: &str, scope: &[&str]| {
            let words = [&["agents", action, "claude-code"], scope].concat();
            world.run(&words).exits(0).stdout
        };
        run("install", installed);
        for action in ["status", "uninstall"] {
            let said = run(action, asked);
            let command = [
                &["git", "takeup", "agents", action, "claude-code"],
                installed,
            ]
            .concat();
            assert!(said.contains(&format!(": {}", command.join(" "))), "{said}");
        }
        run("uninstall", installed);
        for scope in [installed, asked] {
            let said = run("uninstall", scope);
            assert!(!said.contains("it is installed"), "{said}");
        }
    }
}
