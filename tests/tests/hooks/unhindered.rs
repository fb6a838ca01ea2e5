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
    // Nothing but git and a shell.
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

/// Where takeup is not used the shell decides by itself, in every kind of place.
#[test]
fn where_takeup_is_not_used_the_program_is_not_started() {
    let (scratch, program) = with_own_program();
    fs::remove_dir_all(scratch.repo().join(".git/takeup")).unwrap();
    scratch.git(&["worktree", "add", "-q", "../linked", "-b", "linked"]);
    let marker = scratch.path().join("marker");
    script(
        &program,
        &format!("#!/bin/sh\necho \"$@\" >> '{}'\n", marker.display()),
    );
    let git_dir = format!("--git-dir={}", scratch.repo().join(".git").display());
    let tree = format!("--work-tree={}", scratch.repo().display());
    let commit = ["commit", "-q", "--allow-empty", "-m", "x"];
    let home = scratch.home();
    let linked = scratch.path().join("linked");
    let run = || {
        for (folder, options) in [
            (scratch.repo(), vec![]),
            (linked.clone(), vec![]),
            (home.clone(), vec![git_dir.as_str(), tree.as_str()]),
        ] {
            let args = [&options[..], &commit[..]].concat();
            let done = git_with(&scratch, &folder, |_| {}, &args);
            assert!(done.status.success());
            assert_eq!(String::from_utf8_lossy(&done.stderr), "");
        }
        scratch.git(&["checkout", "-q", "--detach"]);
        scratch.git(&["checkout", "-q", "main"]);
    };
    run();
    assert!(!marker.exists(), "{:?}", fs::read_to_string(&marker));
    assert!(!scratch.repo().join(".git/takeup").exists());
    // The same calls reach the program where takeup is used.
    scratch.takeup(&["init"]).exits(0);
    run();
    let heard = fs::read_to_string(&marker).unwrap();
    assert_eq!(heard.lines().count(), 5, "{heard}");
}

/// What the caller of git holds open ends with git, however long a recorder works on.
#[test]
fn nobody_waits_for_what_works_on_after_git() {
    use std::io::Read as _;
    let (scratch, program) = with_own_program();
    let pid = scratch.path().join("pid");
    // In the place of the recorder.
    script(
        &program,
        &format!("#!/bin/sh\nsleep 600 &\necho $! > '{}'\n", pid.display()),
    );
    let mut shell = Command::new("sh");
    scratch.dress(&mut shell);
    let mut shell = shell
        .current_dir(scratch.repo())
        .args([
            "-c",
            "exec 3>&1 4>&2 9>&1; git commit -q --allow-empty -m x",
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Reads to the end: until nobody holds the other end open.
    let (mut out, mut err) = (String::new(), String::new());
    let (mut from_out, mut from_err) = (shell.stdout.take().unwrap(), shell.stderr.take().unwrap());
    from_out.read_to_string(&mut out).unwrap();
    from_err.read_to_string(&mut err).unwrap();
    assert!(shell.wait().unwrap().success());
    assert_eq!((out.as_str(), err.as_str()), ("", ""));
    let sleeper = fs::read_to_string(&pid).unwrap();
    let killed = Command::new("kill").arg(sleeper.trim()).status().unwrap();
    assert!(killed.success(), "it went on after git");
}

/// A folder of ours that cannot be written, by somebody for whom that counts, and a disk that is really full.
#[test]
fn a_ledger_that_takes_nothing_does_not_stop_a_commit() {
    use std::os::unix::process::CommandExt as _;
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !root {
        println!("skipped: only root can become somebody else and mount a small disk");
        return;
    }
    let scratch = installed();
    let own = Command::new("chown")
        .args(["-R", "65534:65534"])
        .arg(scratch.path())
        .status();
    assert!(own.unwrap().success());
    let state_folder = scratch.repo().join(".git/takeup");
    let commit_as_other = || {
        let done = git_with(
            &scratch,
            &scratch.repo(),
            |command| {
                command.uid(65_534);
            },
            &["commit", "-q", "--allow-empty", "-m", "x"],
        );
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
        said
    };
    for mode in [0o500, 0o000] {
        fs::set_permissions(&state_folder, fs::Permissions::from_mode(mode)).unwrap();
        let said = commit_as_other();
        assert!(said.lines().count() <= 1, "{said}");
    }
    fs::set_permissions(&state_folder, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(commit_as_other(), "");

    let scratch = installed();
    let state_folder = scratch.repo().join(".git/takeup");
    let aside = scratch.path().join("aside");
    let sh = |text: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", text]).arg(&state_folder).arg(&aside);
        shell.output().unwrap().status.success()
    };
    if !sh("cp -a \"$0\" \"$1\" && mount -t tmpfs -o size=256k,mode=700 none \"$0\"") {
        println!("skipped: no disk can be mounted here");
        return;
    }
    let filled = sh(
        "cp -a \"$1\"/. \"$0\"/ && { dd if=/dev/zero of=\"$0/filler\" bs=1k; test -f \"$0/filler\"; }",
    );
    // The rest of the last block still takes some lines.
    let silent = (0..20)
        .find(|_| {
            let said = commit(&scratch, |_| {});
            assert!(said.lines().count() <= 1, "{said}");
            !said.is_empty()
        })
        .expect("a line that does not fit is said");
    let during = Ledger::at(&state_folder).read();
    let emptied = sh("rm \"$0/filler\"");
    let later = commit(&scratch, |_| {});
    let after = Ledger::at(&state_folder).read();
    until("the disk is free", || sh("umount \"$0\""));
    assert!(filled && emptied);
    assert_eq!(later, "");
    let during = during.unwrap();
    assert_eq!(
        (during.state.observations.len(), during.issues.len()),
        (silent, 0)
    );
    let after = after.unwrap();
    assert_eq!(
        (after.state.observations.len(), after.issues.len()),
        (silent + 1, 0)
    );
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
