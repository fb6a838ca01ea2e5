//! Trees and places of shapes that nobody means well with: deep, huge, endless, somebody else's, elsewhere.
use std::os::unix::fs::{MetadataExt as _, chown};

use super::*;

/// Looks that ask for the content.
const CONTENT: &[&[&str]] = &[
    &["inspect", "--json"],
    &["fingerprint", "--json"],
    &["diff", "stale", "--patch"],
    &["doctor", "--json"],
    &[],
];

/// A world without records of the OpenCode++ plugin: its fingerprint is what git prints, and waits a minute for git where
/// git waits for ever.
fn plain() -> World {
    let world = World::lived();
    std::fs::remove_dir_all(world.scratch.repo().join(".agent-context")).unwrap();
    world
}

#[test]
fn a_deep_tree_ends_in_an_answer() {
    let world = plain();
    // Deeper than a path may be long; git itself cannot follow.
    let script = "i=0; while [ $i -lt 60 ]; do mkdir -p d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d; cd -P d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d 2>/dev/null || break; i=$((i+1)); done; echo x >file || :";
    sh(&world.scratch.repo(), script);
    for words in CONTENT {
        let ran = ends_well(&world, words);
        assert!(
            !ran.stdout.contains("\"verdict\": \"resume-verification\""),
            "{words:?}: {}",
            ran.stdout
        );
    }
}

/// A commit whose tree nests deeper than any stack of calls.
#[test]
fn a_commit_of_a_deep_tree_ends_in_an_answer() {
    let world = World::lived();
    let repo = git2::Repository::open(world.scratch.repo()).unwrap();
    let mut oid = {
        let blob = repo.blob(b"x\n").unwrap();
        let mut builder = repo.treebuilder(None).unwrap();
        builder.insert("f", blob, 0o100_644).unwrap();
        builder.write().unwrap()
    };
    for _ in 0..3_000 {
        let mut builder = repo.treebuilder(None).unwrap();
        builder.insert("d", oid, 0o040_000).unwrap();
        oid = builder.write().unwrap();
    }
    let who = git2::Signature::new("x", "x@example.invalid", &git2::Time::new(0, 0)).unwrap();
    let head = repo.head().unwrap().peel_to_commit().unwrap();
    let tree = repo.find_tree(oid).unwrap();
    repo.commit(Some("HEAD"), &who, &who, "deep", &tree, &[&head])
        .unwrap();
    for words in CONTENT {
        ends_well(&world, words);
    }
}

#[test]
fn a_wide_tree_ends_in_an_answer() {
    let world = World::lived();
    let folder = world.scratch.repo().join("wide");
    std::fs::create_dir_all(&folder).unwrap();
    for number in 0..4_000 {
        std::fs::write(folder.join(format!("{number:0200}")), "x\n").unwrap();
    }
    for words in CONTENT {
        let ran = ends_well(&world, words);
        assert!(
            ran.stdout.len() < 8 << 20,
            "{words:?}: {} bytes",
            ran.stdout.len()
        );
    }
}

#[test]
fn a_repository_of_somebody_else_is_not_looked_into() {
    let world = World::lived();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give a repository away");
        return;
    }
    let script = "chown -R 65534:65534 .";
    sh(&world.scratch.repo(), script);
    chown(world.scratch.repo(), Some(65534), Some(65534)).unwrap();
    for words in [
        &["inspect", "--json"][..],
        &["start", "x", "--session", "n1"],
        &["init"],
        &["fingerprint"],
    ] {
        let ran = ends_well(&world, words);
        assert_ne!(ran.code, 0, "{words:?}: {}", ran.stdout);
        let git = world
            .scratch
            .git_may_fail(&world.scratch.repo(), &["status"]);
        assert!(!git.status.success(), "git looks into it as well");
    }
    assert_eq!(std::fs::metadata(world.ours()).unwrap().uid(), 65534);
}

#[test]
fn a_git_file_that_points_elsewhere_leads_to_an_answer() {
    let world = World::lived();
    let outer = world.scratch.path();
    let victim = outer.join("victim");
    sh(&outer, "git init -q victim");
    let before = crate::look::look(&victim, &|_| false);
    let place = outer.join("lure");
    std::fs::create_dir_all(&place).unwrap();
    let look = |context: &str| {
        for words in [
            &["inspect", "--json"][..],
            &[],
            &["doctor", "--json"],
            &["fingerprint"],
            &["sessions"],
            &["hooks", "status"],
        ] {
            world
                .bounded(world.program_in(&place).args(words))
                .ended_well(format_args!("{context}: {words:?}"));
            let changed =
                crate::look::differences(&before, &crate::look::look(&victim, &|_| false));
            assert!(changed.is_empty(), "{context}: {words:?}: {changed:#?}");
        }
    };
    let git = place.join(".git");
    for (context, text) in [
        (
            "another repository",
            format!("gitdir: {}\n", victim.join(".git").display()),
        ),
        ("itself", "gitdir: .git\n".to_owned()),
        ("nothing", "gitdir: /nowhere/at/all\n".to_owned()),
        ("no end", format!("gitdir: {}\n", "../".repeat(2_000))),
        ("no text", "\0\0\0".to_owned()),
        ("empty", String::new()),
    ] {
        std::fs::write(&git, text).unwrap();
        look(context);
    }
    drop(std::fs::remove_file(&git));
    odd::put(&git, odd::Odd::Pipe).unwrap();
    look("a pipe");
    std::fs::remove_file(&git).unwrap();
    std::os::unix::fs::symlink(victim.join(".git"), &git).unwrap();
    look("a link");
    std::fs::remove_file(&git).unwrap();
    sh(
        &place,
        "git init -q . && echo ../../victim/.git >.git/commondir",
    );
    look("a common folder elsewhere");
    sh(
        &place,
        "rm -rf .git && git init -q . && git config core.worktree ../victim",
    );
    look("a work tree elsewhere");
}
