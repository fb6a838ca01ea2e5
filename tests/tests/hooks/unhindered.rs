//! Whatever becomes of the program, git goes on.
use super::*;

/// Commits, and returns what was said on standard error.
fn commit(scratch: &Scratch, dress: impl Fn(&mut Command)) -> String {
    let before = scratch.git(&["rev-parse", "HEAD"]);
    let done = git_with(
        scratch,
        &scratch.repo(),
        dress,
        &["commit", "-q", "--allow-empty", "-m", "x"],
    );
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    assert_ne!(scratch.git(&["rev-parse", "HEAD"]), before);
    said
}

fn bare(command: &mut Command) {
    command.env_clear().env("GIT_CONFIG_NOSYSTEM", "1");
    for name in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{name}_NAME"), "x")
            .env(format!("GIT_{name}_EMAIL"), "x@example.invalid");
    }
}

/// A program of its own for this test, so that it can be broken.
fn with_own_program() -> (Scratch, PathBuf) {
    let scratch = Scratch::new(PROGRAM);
    let program = scratch.path().join("own/git-takeup");
    fs::create_dir(scratch.path().join("own")).unwrap();
    let copied = Command::new("cp").arg(PROGRAM).arg(&program).status();
    assert!(copied.unwrap().success());
    let mut install = Command::new(&program);
    scratch.dress(&mut install);
    assert!(
        install
            .current_dir(scratch.repo())
            .args(["hooks", "install"])
            .output()
            .unwrap()
            .status
            .success()
    );
    fs::remove_file(scratch.path().join("bin/git-takeup")).unwrap();
    (scratch, program)
}

/// Not on PATH, gone, failing, hanging.
#[test]
fn a_program_that_is_gone_fails_or_hangs_does_not_stop_a_commit() {
    let (scratch, program) = with_own_program();
    let home = scratch.home();
    // As a graphical client calls git.
    let said = commit(&scratch, |command| {
        bare(command);
        command.env("HOME", &home).env("PATH", "/usr/bin:/bin");
    });
    assert_eq!(said, "");
    assert_eq!(settled(&scratch.repo()).observations.len(), 1);
    let count = || state(&scratch.repo()).observations.len();

    let aside = program.with_file_name("aside");
    fs::rename(&program, &aside).unwrap();
    assert_eq!(commit(&scratch, |_| {}), "");
    for (text, mode) in [
        ("#!/bin/sh\necho out; echo err >&2; exit 1\n", 0o755),
        ("#!/bin/sh\nexec sleep 60\n", 0o755),
        (
            "#!/bin/sh\ntrap '' TERM; while :; do sleep 1; done\n",
            0o755,
        ),
        ("no program at all\0", 0o755),
        ("#!/bin/sh\nexit 1\n", 0o644),
    ] {
        script(&program, text);
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let begun = Instant::now();
        let said = commit(&scratch, |_| {});
        // A hang is ended after two seconds; the rest is room for a busy machine, and far from a minute.
        assert!(begun.elapsed() < Duration::from_secs(30), "{text}");
        assert!(said.lines().count() <= 1, "{text}: {said}");
    }
    assert_eq!(count(), 1);
    // Found again by PATH where the place it was installed in is gone.
    fs::remove_file(&program).unwrap();
    fs::rename(&aside, scratch.path().join("bin/git-takeup")).unwrap();
    assert_eq!(commit(&scratch, |_| {}), "");
    assert_eq!(count(), 2);
}

#[test]
fn nothing_of_the_environment_is_needed() {
    let (scratch, program) = with_own_program();
    assert_eq!(commit(&scratch, bare), "");
    assert_eq!(state(&scratch.repo()).observations.len(), 1);
    // Without `timeout` the shell watches by itself.
    let tools = scratch.path().join("tools");
    fs::create_dir(&tools).unwrap();
    for name in ["git", "sh", "sleep"] {
        let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|folder| folder.join(name))
            .find(|file| file.exists())
            .unwrap();
        std::os::unix::fs::symlink(real, tools.join(name)).unwrap();
    }
    let only_tools = |command: &mut Command| {
        bare(command);
        // Git puts its own folder first on PATH; where there are tools in it too, this is as the other case.
        command.env("PATH", &tools);
    };
    assert_eq!(commit(&scratch, only_tools), "");
    assert_eq!(state(&scratch.repo()).observations.len(), 2);
    script(&program, "#!/bin/sh\nexec sleep 60\n");
    let said = commit(&scratch, only_tools);
    assert!(said.lines().count() <= 1, "{said}");
}

#[test]
fn a_disk_that_is_full_or_read_only_and_damage_do_not_stop_a_commit() {
    let scratch = installed();
    let full = commit(&scratch, |command| {
        command.env("TAKEUP_FAULT", "journal-append:middle=enospc");
    });
    assert!(full.lines().count() <= 1, "{full}");
    assert_eq!(state(&scratch.repo()).observations.len(), 0);
    let killed = commit(&scratch, |command| {
        command.env("TAKEUP_FAULT", "journal-append:after=kill");
    });
    assert!(killed.lines().count() <= 1, "{killed}");
    assert_eq!(commit(&scratch, |_| {}), "");
    settled(&scratch.repo());

    let journal = scratch.repo().join(".git/takeup/journal.jsonl");
    fs::remove_file(&journal).unwrap();
    fs::create_dir(&journal).unwrap();
    let said = commit(&scratch, |_| {});
    assert!(said.lines().count() <= 1, "{said}");
    let log = fs::read_to_string(scratch.repo().join(".git/takeup/log")).unwrap();
    assert!(log.contains("hook git post-commit"), "{log}");
    fs::remove_dir(&journal).unwrap();

    // Read-only for somebody who is not root: git itself fails at the commit, a checkout of a file works.
    fs::write(scratch.repo().join(".git/takeup/repository-id"), "\0\0").unwrap();
    let said = commit(&scratch, |_| {});
    assert!(said.lines().count() <= 1, "{said}");
}

/// A ledger that cannot be written in time: git goes on, it is said in one line and in the log, and a recorder is started
/// that makes room.
#[test]
fn a_record_that_takes_too_long_is_given_up_and_room_is_made() {
    let scratch = installed();
    for n in 0..102 {
        let task = format!("task-{n}");
        scratch
            .takeup(&["start", &task, "--session", "s", "--no-checks"])
            .exits(0);
        scratch
            .takeup(&["abandon", &task, "--session", "s"])
            .exits(0);
    }
    let never = scratch.path().join("never");
    let fault = format!("journal-append:before=pause={}", never.display());
    let said = commit(&scratch, |command| {
        command.env("TAKEUP_FAULT", &fault);
    });
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(state(&scratch.repo()).observations.is_empty());
    let log = fs::read_to_string(scratch.repo().join(".git/takeup/log")).unwrap();
    assert!(log.contains("not recorded within"), "{log}");
    // The recorder meets the same fault: it waits where it would archive, until it may go on.
    fs::write(&never, "").unwrap();
    until("closed tasks are archived", || {
        state(&scratch.repo()).tasks.len() == 100
    });
    assert_eq!(commit(&scratch, |_| {}), "");
}

/// Turned off.
#[test]
fn turned_off_nothing_is_recorded() {
    let scratch = installed();
    for (name, value) in [("TAKEUP_HOOKS", "0"), ("TAKEUP_SKIP", "1")] {
        assert_eq!(
            commit(&scratch, |command| {
                command.env(name, value);
            }),
            ""
        );
        let direct = scratch
            .program_in(&scratch.repo())
            .env(name, value)
            .args(["hook", "git", "post-commit"])
            .output()
            .unwrap();
        assert!(direct.status.success() && direct.stdout.is_empty() && direct.stderr.is_empty());
    }
    assert!(state(&scratch.repo()).observations.is_empty());
}

#[test]
fn the_face_of_the_hook_is_silent_and_succeeds_also_on_nonsense() {
    let scratch = Scratch::new(PROGRAM);
    for (folder, args) in [
        (scratch.repo(), &["hook", "git", "post-commit"][..]),
        (
            scratch.repo(),
            &["hook", "git", "no-such-hook", "--x", "\u{1b}[31m"],
        ),
        (scratch.home(), &["hook", "git", "post-commit"]),
        (scratch.repo(), &["hook", "git", "recorder", "1:2"]),
    ] {
        let ran = scratch.takeup_in(&folder, args).exits(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    }
    assert!(!scratch.repo().join(".git/takeup").exists());
}
