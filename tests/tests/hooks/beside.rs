//! Who is at work beside: a writer that holds the ledger, another user.
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;

use takeup_core::time::SystemClock;

use super::*;

/// Does something while another writer holds the ledger's lock.
fn while_locked(scratch: &Scratch, work: impl FnOnce()) {
    let ledger = Ledger::at(scratch.repo().join(".git/takeup"));
    let (held, is_held) = std::sync::mpsc::channel();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let ledger = &ledger;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            ledger
                .transact(&SystemClock, Ledger::PATIENCE, |_| {
                    held.send(()).unwrap();
                    // Also where the work failed.
                    let _gone = is_done.recv();
                    Ok::<_, std::convert::Infallible>((None, ()))
                })
                .unwrap();
        });
        is_held.recv().unwrap();
        work();
        drop(done);
    });
}

/// What cannot be recorded is not done: nothing was touched, and the same call does it later.
#[test]
fn a_busy_ledger_leaves_the_hooks_as_they_were() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let hooks = hooks_folder(&scratch);
    script(&hooks.join("post-commit"), "#!/bin/sh\necho mine\n");
    script(&scratch.path().join("theirs"), "#!/bin/sh\ntrue\n");
    std::os::unix::fs::symlink("../../../theirs", hooks.join("post-merge")).unwrap();
    for (action, after) in [("install", 5), ("uninstall", 0)] {
        let before = whole(&hooks);
        while_locked(&scratch, || {
            let refused = scratch.takeup(&["hooks", action]).exits(6);
            assert!(refused.stderr.contains("locked"), "{}", refused.stderr);
        });
        assert_eq!(whole(&hooks), before, "{action}");
        scratch.takeup(&["hooks", action]).exits(0);
        assert_eq!(state(&scratch.repo()).hooks.len(), after);
    }
}

/// As `sudo git commit` does it: nothing of root's is left in the owner's folders, where it would be in the way.
#[test]
fn a_hook_that_another_user_runs_leaves_nothing_in_the_owner_s_folder() {
    let scratch = installed();
    scratch.git(&["worktree", "add", "-q", "../linked", "-b", "linked"]);
    settled(&scratch.repo());
    let given = Command::new("chown")
        .args(["-R", "65534:65534"])
        .arg(scratch.path())
        .status();
    if !given.unwrap().success() {
        println!("skipped: only root can give files away");
        return;
    }
    let program = scratch.path().join("bin/failing");
    let git_folder = scratch.repo().join(".git");
    let not_the_owner_s = || {
        let found = Command::new("find")
            .arg(&git_folder)
            .args(["-path", "*/.git/*takeup/*", "-not", "-user", "65534"])
            .output()
            .unwrap();
        String::from_utf8(found.stdout).unwrap()
    };
    let commit_in = |folder: &str, user: u32| {
        let folder = scratch.path().join(folder);
        let dress = |command: &mut Command| {
            command
                .uid(user)
                .env("GIT_CONFIG_COUNT", "1")
                .env("GIT_CONFIG_KEY_0", "safe.directory")
                .env("GIT_CONFIG_VALUE_0", "*");
        };
        let done = git_with(
            &scratch,
            &folder,
            dress,
            &["commit", "-q", "--allow-empty", "-m", "x"],
        );
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        until_nobody_works_in(&scratch.repo());
        // Git's own files are not what this is about.
        let objects = git_folder.join("objects");
        let given = Command::new("chown")
            .args(["-R", "65534:65534"])
            .arg(objects)
            .status();
        assert!(given.unwrap().success());
        String::from_utf8(done.stderr).unwrap()
    };
    for folder in ["repo", "linked"] {
        assert!(commit_in(folder, 0).contains("not recorded"));
        assert_eq!(not_the_owner_s(), "", "{folder}");
    }
    assert_eq!(commit_in("repo", 65_534), "");
    // And a failure of the owner's own is noted.
    script(&program, "#!/bin/sh\nexit 3\n");
    let hook = hooks_folder(&scratch).join("post-commit");
    let text = fs::read_to_string(&hook).unwrap();
    let (_, rest) = text.split_once("takeup_program='").unwrap();
    let (called, _) = rest.split_once('\'').unwrap();
    script(&hook, &text.replace(called, program.to_str().unwrap()));
    for user in [0, 65_534] {
        assert!(commit_in("repo", user).contains("not recorded"));
    }
    let note = git_folder.join("takeup/hook-failed");
    assert_eq!(fs::metadata(&note).unwrap().uid(), 65_534);
    assert!(
        fs::read_to_string(&note)
            .unwrap()
            .starts_with("post-commit 3 ")
    );
}
