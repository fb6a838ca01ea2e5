//! Links and folders in the place of our files, pointing out of the repository.
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::{World, ends_well};
use crate::look::{differences, look};

/// A folder outside of the repository that must stay as it is.
fn outside(world: &World) -> PathBuf {
    let folder = world.scratch.path().join("outside");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("mine"), "mine\n").unwrap();
    folder
}

/// Looks that read the ledger, and what stands beside it.
const LOOKING: &[&[&str]] = &[
    &[],
    &["inspect", "--json"],
    &["show", "done"],
    &["doctor"],
    &["bg", "list"],
];

const WRITING: &[&[&str]] = &[
    &["init"],
    &["start", "new", "--session", "n1", "--no-checks"],
    &["save", "--session", "s2"],
    &["note", "x", "--session", "s2"],
    &["check", "--session", "s2", "--", "true"],
    &["resume", "held", "--from", "s2", "--to", "n3", "--confirm"],
    &["abandon", "asked", "--session", "s3"],
    &["hook", "git", "post-commit"],
    &["gc"],
    &["doctor", "--fix", "--yes"],
];

fn nothing_is_written_outside(world: &World, context: &str) {
    let folder = world.scratch.path().join("outside");
    let before = look(&folder, &|_| false);
    for words in LOOKING.iter().chain(WRITING) {
        ends_well(world, words);
        let changed = differences(&before, &look(&folder, &|_| false));
        assert!(changed.is_empty(), "{context}: {words:?}: {changed:#?}");
    }
}

#[test]
fn a_ledger_that_is_a_link_is_refused() {
    let world = World::lived();
    let outside = outside(&world);
    std::fs::rename(world.ours(), outside.join("takeup")).unwrap();
    symlink(outside.join("takeup"), world.ours()).unwrap();
    nothing_is_written_outside(&world, "the folder");
    let ran = ends_well(&world, &["inspect", "--json"]);
    assert!(
        !ran.stdout.contains("resume-verification"),
        "{}",
        ran.stdout
    );
}

#[test]
fn files_of_the_ledger_that_are_links_are_not_followed() {
    for name in [
        "journal.jsonl",
        "lock",
        "log",
        "archive",
        "repository-id",
        "worktree-id",
        "fingerprint-cache",
    ] {
        let world = World::lived();
        let outside = outside(&world);
        let target = outside.join("target");
        let path = world.ours().join(name);
        if path.exists() {
            std::fs::rename(&path, &target).unwrap();
        } else {
            std::fs::write(&target, "mine\n").unwrap();
        }
        symlink(&target, &path).unwrap();
        nothing_is_written_outside(&world, name);
    }
}

/// The same with a link to nothing: it would be made where it points to.
#[test]
fn links_to_nothing_make_nothing() {
    for name in [
        "journal.jsonl",
        "state.json",
        "lock",
        "log",
        "archive",
        "repository-id",
        "torn-1",
    ] {
        let world = World::lived();
        let outside = outside(&world);
        let path = world.ours().join(name);
        if path.is_dir() {
            std::fs::remove_dir_all(&path).unwrap();
        } else {
            drop(std::fs::remove_file(&path));
        }
        symlink(outside.join("made"), &path).unwrap();
        nothing_is_written_outside(&world, name);
        assert!(!outside.join("made").exists(), "{name}");
    }
}

#[test]
fn the_records_of_a_plugin_in_the_work_tree_are_not_followed_out_of_it() {
    for part in [
        ".agent-context",
        ".agent-context/sidecar",
        ".agent-context/runs",
    ] {
        let world = World::lived();
        let outside = outside(&world);
        let path = world.scratch.repo().join(part);
        if path.exists() {
            std::fs::rename(&path, outside.join("there")).unwrap();
        } else {
            std::fs::create_dir_all(outside.join("there")).unwrap();
        }
        symlink(outside.join("there"), &path).unwrap();
        nothing_is_written_outside(&world, part);
    }
}
