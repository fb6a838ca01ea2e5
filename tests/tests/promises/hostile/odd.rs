//! Something else in the place of a file: a pipe, on which whoever opens it waits; a socket; a folder; a link to a device
//! that has no end; a file larger than memory. Git waits on some of them. Our commands come to an end, and say why.
use std::fs::File;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use super::*;

/// What stands there instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Odd {
    Pipe,
    Socket,
    Folder,
    Endless,
    Huge,
}

/// Files that git opens whatever it is asked: no answer can be had while a pipe stands there.
const OPENED_BY_GIT: &[&str] = &[
    ".git/HEAD",
    ".git/config",
    ".git/config.worktree",
    ".git/index",
    ".git/shallow",
    ".git/commondir",
    ".git/packed-refs",
    ".git/refs/heads/main",
    ".git/refs/stash",
    ".git/MERGE_HEAD",
    ".git/CHERRY_PICK_HEAD",
    ".git/info/exclude",
    ".git/info/attributes",
    ".git/info/grafts",
    ".git/info/sparse-checkout",
    ".git/objects/info/alternates",
    ".git/objects/info/commit-graph",
    ".git/objects/pack/pack-0000000000000000000000000000000000000000.idx",
];

/// Others, of git's, of the work tree, and our own.
const OTHERS: &[&str] = &[
    ".git/logs/HEAD",
    ".git/sequencer/todo",
    ".git/hooks/post-commit",
    ".gitignore",
    ".gitattributes",
    ".gitmodules",
    "src/.gitignore",
    "src/.gitattributes",
    "a.txt",
    "untracked",
    ".agent-context/sidecar/plugin-session.json",
    ".claude/settings.json",
    ".mcp.json",
    ".git/takeup/journal.jsonl",
    ".git/takeup/state.json",
    ".git/takeup/repository-id",
    ".git/takeup/worktree-id",
    ".git/takeup/lock",
    ".git/takeup/log",
    ".git/takeup/look.cache",
    ".git/takeup/acknowledged",
    ".git/takeup/recorder.lock",
    ".git/takeup/pending",
    ".git/takeup/archive",
];

/// Commands that look and commands that write. The first ones are those for which one face has to stand for all.
const COMMANDS: &[&[&str]] = &[
    &["inspect", "--json"],
    &["fingerprint"],
    &["hook", "git", "post-commit"],
    &["save", "--session", "s2"],
    &[],
    &["show", "held"],
    &["diff", "stale", "--patch"],
    &["sessions"],
    &["bg", "list"],
    &["agents"],
    &["hooks", "status"],
    &["doctor"],
    &["hook", "claude-code", "SessionStart"],
    &["start", "another", "--session", "s9", "--no-checks"],
    &["hooks", "install"],
    &["gc", "--dry-run"],
];

/// Puts something else in a file's place. `None` where this file system or system cannot.
pub(super) fn put(path: &Path, odd: Odd) -> Option<()> {
    std::fs::create_dir_all(path.parent()?).ok()?;
    match odd {
        Odd::Pipe => rustix::fs::mkfifoat(
            rustix::fs::CWD,
            path,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        )
        .ok(),
        Odd::Socket => UnixListener::bind(path).ok().map(drop),
        Odd::Folder => std::fs::create_dir_all(path.join("inner")).ok(),
        Odd::Endless => std::os::unix::fs::symlink("/dev/zero", path).ok(),
        Odd::Huge => File::create(path).ok()?.set_len(10 << 30).ok(),
    }
}

/// Runs a command that has to end by itself, within two minutes and a few gigabytes.
fn run(world: &World, words: &[&str], context: &str) -> takeup_tests::Ran {
    let mut command = Command::new("sh");
    world.scratch.dress(&mut command);
    command
        .env("TMPDIR", world.temporary())
        .current_dir(world.scratch.repo())
        .stdin(std::process::Stdio::null())
        .args(["-c", "ulimit -v 6000000; exec \"$@\"", "sh", crate::PROGRAM])
        .args(words);
    world
        .bounded(&mut command)
        .ended_well(format_args!("{context}: {words:?}"))
}

fn at_every_place(odd: Odd, commands: &[&[&str]]) {
    let world = World::lived();
    // Its fingerprint is what git prints, and it waits for git.
    std::fs::remove_dir_all(world.scratch.repo().join(".agent-context")).unwrap();
    let repo = world.scratch.repo();
    sh(&world.scratch.path(), "cp -a repo kept");
    let few = commands.get(..4).unwrap_or(commands);
    for name in OPENED_BY_GIT.iter().chain(OTHERS) {
        // Every command looks at these first, and in the same way.
        let commands = if OPENED_BY_GIT.contains(name) {
            few
        } else {
            commands
        };
        // What is part of the content is read to its end, as large as it is.
        if odd == Odd::Huge && !name.starts_with(".git/") {
            continue;
        }
        let path = repo.join(name);
        sh(&world.scratch.path(), &format!("cd repo; rm -rf '{name}'"));
        let context = format!("{odd:?} as {name}");
        if put(&path, odd).is_none() {
            println!("skipped: {context} cannot be made here");
        } else {
            for words in commands {
                let ran = run(&world, words, &context);
                let is_hook = words.first() == Some(&"hook");
                if is_hook {
                    assert_eq!(ran.code, 0, "{context}: {words:?}");
                }
                if matches!(odd, Odd::Pipe | Odd::Endless)
                    && OPENED_BY_GIT.contains(name)
                    && words.first() == Some(&"inspect")
                {
                    let last = PathBuf::from(name);
                    let last = last.file_name().unwrap().to_str().unwrap();
                    assert!(
                        ran.code == 1 && ran.stdout.contains(last),
                        "{context}: {words:?}: {}{}",
                        ran.stdout,
                        ran.stderr
                    );
                }
            }
        }
        // What a hook left running writes there. The folder stays the same one, so that the place is the same.
        takeup_tests::until_nobody_works_in(&repo);
        sh(
            &world.scratch.path(),
            "find repo -mindepth 1 -delete; cp -a kept/. repo/",
        );
    }
    run(&world, &["inspect", "--json"], "put back").exits(0);
}

#[test]
fn a_pipe_in_the_place_of_a_file_holds_nobody_up() {
    at_every_place(Odd::Pipe, COMMANDS);
}

#[test]
fn a_device_in_the_place_of_a_file_is_not_read_to_its_end() {
    at_every_place(Odd::Endless, &COMMANDS[..4]);
}

#[test]
fn a_file_larger_than_memory_is_not_read() {
    at_every_place(Odd::Huge, &COMMANDS[..2]);
}

#[test]
fn a_socket_or_folder_in_the_place_of_a_file_ends_in_an_answer() {
    at_every_place(Odd::Socket, &COMMANDS[..2]);
    at_every_place(Odd::Folder, &COMMANDS[..2]);
}

/// A file of settings can name others.
#[test]
fn a_pipe_that_is_included_by_settings_holds_nobody_up() {
    let world = World::lived();
    std::fs::remove_dir_all(world.scratch.repo().join(".agent-context")).unwrap();
    put(&world.scratch.repo().join(".git/pipe"), Odd::Pipe).unwrap();
    world.scratch.git(&["config", "include.path", "pipe"]);
    let ran = run(&world, &["inspect"], "an included pipe").exits(1);
    assert!(ran.stderr.contains("a pipe stands"), "{}", ran.stderr);
}

/// A submodule's own files are looked at by the look at the outer tree.
#[test]
fn a_pipe_in_a_submodule_holds_nobody_up() {
    let world = World::plain();
    let other = world.scratch.path().join("other");
    sh(
        &world.scratch.path(),
        "git init -q -b main other; cd other; echo x >x; git add x; git -c user.name=x -c user.email=x commit -qm x",
    );
    let other = other.to_str().unwrap();
    world.scratch.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        other,
        "sub",
    ]);
    for name in ["config", "index", "HEAD", "packed-refs", "info/exclude"] {
        let path = world.scratch.repo().join(".git/modules/sub").join(name);
        let kept = world.scratch.path().join("kept");
        let was_there = std::fs::rename(&path, &kept).is_ok();
        put(&path, Odd::Pipe).unwrap();
        let ran = run(&world, &["fingerprint", "--json"], name);
        assert!(
            ran.stdout.contains("sub"),
            "{name}: {}{}",
            ran.stdout,
            ran.stderr
        );
        run(&world, &["inspect"], name);
        std::fs::remove_file(&path).unwrap();
        if was_there {
            std::fs::rename(&kept, &path).unwrap();
        }
    }
}
