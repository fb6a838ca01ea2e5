//! What takeup never touches.
use takeup_tests::{Scratch, differences, picture};

use super::scratch;

/// A repository in the middle of everything: staged, unstaged, untracked, ignored and conflicted files, a rebase in
/// progress, an empty untracked folder, odd modes.
fn busy() -> Scratch {
    let scratch = scratch();
    scratch.write(".gitignore", "ignored/\n");
    scratch.write("conflict", "base\n");
    scratch.write("staged", "base\n");
    scratch.write("unstaged", "base\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "base"]);
    scratch.git(&["checkout", "-qb", "other"]);
    scratch.write("conflict", "other\n");
    scratch.git(&["commit", "-qam", "other"]);
    scratch.git(&["checkout", "-q", "main"]);
    scratch.write("conflict", "main\n");
    scratch.git(&["commit", "-qam", "main"]);
    let rebase = scratch.git_may_fail(&scratch.repo(), &["rebase", "other"]);
    assert!(!rebase.status.success());
    scratch.write("staged", "staged\n");
    scratch.git(&["add", "staged"]);
    scratch.write("unstaged", "unstaged\n");
    scratch.write("untracked", "untracked\n");
    scratch.write("ignored/big", "ignored\n");
    std::fs::create_dir(scratch.repo().join("empty")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o750);
    std::fs::set_permissions(scratch.repo().join("untracked"), mode).unwrap();
    scratch
}

#[test]
fn the_repository_is_byte_for_byte_the_same_around_every_command() {
    // P12: github/copilot-cli#1675, anthropics/claude-code#28078.
    let scratch = busy();
    let ours = |path: &str| path == ".git/takeup" || path.starts_with(".git/takeup/");
    let look = || picture(&scratch.repo(), &ours);
    let before = look();
    let run = |exit: i32, words: &[&str]| {
        let ran = scratch.takeup(words);
        assert_eq!(ran.code, exit, "{words:?}: {}{}", ran.stdout, ran.stderr);
        let changed = differences(&before, &look());
        assert!(changed.is_empty(), "{words:?}: {changed:#?}");
        ran
    };
    run(0, &["init"]);
    run(0, &["start", "t1", "--session", "s1", "--check", "true"]);
    run(0, &["note", "hello", "--session", "s1"]);
    run(0, &["save", "--session", "s1"]);
    run(0, &["inspect"]);
    run(0, &["inspect", "--verify", "--json"]);
    run(0, &[]);
    run(0, &["--all"]);
    run(
        0,
        &["resume", "t1", "--from", "s1", "--to", "s2", "--confirm"],
    );
    run(1, &["evaluate", "t1", "--session", "s2"]);
    run(0, &["plan"]);
    run(0, &["check", "--session", "s2", "--planned", "1"]);
    run(0, &["review", "request", "fine?", "--session", "s2"]);
    run(0, &["review", "list"]);
    run(0, &["review", "approve", "t1", "--confirm"]);
    run(0, &["show", "t1"]);
    run(0, &["log", "t1"]);
    run(0, &["diff", "t1", "--patch"]);
    run(0, &["handover", "t1"]);
    run(0, &["fingerprint"]);
    run(0, &["fingerprint", "--verify"]);
    run(0, &["sessions"]);
    run(0, &["agents"]);
    run(0, &["config"]);
    run(0, &["bg", "list"]);
    run(0, &["gc"]);
    run(0, &["next", "t1", "--session", "s2"]);
    run(0, &["start", "t2", "--session", "s3", "--no-checks"]);
    run(0, &["abandon", "t2", "--session", "s3"]);
    let _doctor = scratch.takeup(&["doctor", "--fix"]);
    let changed = differences(&before, &look());
    assert!(changed.is_empty(), "doctor --fix: {changed:#?}");
}

#[test]
fn a_stale_take_up_touches_nothing_either() {
    let scratch = busy();
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    scratch.write("untracked", "other\n");
    let ours = |path: &str| path == ".git/takeup" || path.starts_with(".git/takeup/");
    let before = picture(&scratch.repo(), &ours);
    scratch
        .takeup(&["resume", "t1", "--from", "s1", "--to", "s2", "--rebuild"])
        .exits(0);
    let changed = differences(&before, &picture(&scratch.repo(), &ours));
    assert!(changed.is_empty(), "{changed:#?}");
}

#[test]
fn looking_writes_nothing_at_all() {
    let scratch = busy();
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--check", "true"])
        .exits(0);
    scratch.write("untracked", "other\n");
    let before = picture(&scratch.path(), &|_| false);
    for words in [
        &["inspect"][..],
        &["inspect", "--verify"],
        &[],
        &["show", "t1"],
        &["log", "t1"],
        &["diff", "t1", "--patch"],
        &["handover", "t1"],
        &["sessions"],
        &["review", "list"],
        &["plan", "list"],
        &["fingerprint"],
        &["doctor"],
        &["agents", "list"],
        &["agents", "install", "opencode", "--dry-run"],
        &["hooks", "status"],
        &["hooks", "install", "--dry-run"],
        &["bg", "list"],
        &["config"],
        &["version"],
        &["resume", "t1", "--to", "s2"],
    ] {
        let _ran = scratch.takeup(words);
        let changed = differences(&before, &picture(&scratch.path(), &|_| false));
        assert!(changed.is_empty(), "{words:?}: {changed:#?}");
    }
}
