//! What is in a hook's way: it is said, with what to do, and doing that helps.
use serde_json::Value;

use super::*;

fn doctor(scratch: &Scratch, check: &str) -> Option<String> {
    let answer = scratch.takeup(&["doctor", "--json"]).json();
    let found = answer["data"]["findings"].as_array().unwrap();
    let one = found
        .iter()
        .find(|one| one["check"] == check && one["verdict"] != "ok")?;
    Some(format!("{} | {}", one["message"], one["advice"]))
}

fn first_hook(scratch: &Scratch) -> Value {
    let status = scratch.takeup(&["hooks", "status", "--json"]).json();
    status["data"]["hooks"][0].clone()
}

fn run(scratch: &Scratch, commands: &Value) {
    for command in commands.as_array().unwrap() {
        let mut shell = Command::new("sh");
        scratch.dress(&mut shell);
        let ran = shell
            .current_dir(scratch.repo())
            .args(["-c", command.as_str().unwrap()])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{command}: {said}");
    }
}

fn commit(scratch: &Scratch) -> String {
    let done = scratch.git_may_fail(
        &scratch.repo(),
        &["commit", "-q", "--allow-empty", "-m", "x"],
    );
    assert!(done.status.success());
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// A copy of the program, called by a name in the folder `b` that is a link to it.
fn linked_program(scratch: &Scratch) -> (PathBuf, PathBuf) {
    let path = scratch.path();
    let (link, first) = (path.join("b/git-takeup"), path.join("c/1/git-takeup"));
    for file in [&link, &first] {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
    }
    let copied = Command::new("cp").arg(PROGRAM).arg(&first).status();
    assert!(copied.unwrap().success());
    std::os::unix::fs::symlink("../c/1/git-takeup", &link).unwrap();
    fs::remove_file(path.join("bin/git-takeup")).unwrap();
    (link, first)
}

fn install_by(scratch: &Scratch, program: &Path) {
    let mut command = Command::new(program);
    scratch.dress(&mut command);
    let done = command
        .current_dir(scratch.repo())
        .args(["hooks", "install"])
        .output()
        .unwrap();
    assert!(done.status.success());
}

/// Git says "the doctor says why": so it does, also where nothing ran yet.
#[test]
fn a_program_that_fails_is_said_by_status_and_doctor() {
    for (text, how) in [
        ("#!/bin/sh\nexit 3\n", "exit status 3"),
        ("no program at all\0", "could not be started"),
        ("#!/bin/sh\nexec sleep 600\n", "within two seconds"),
    ] {
        let scratch = Scratch::new(PROGRAM);
        let (link, program) = linked_program(&scratch);
        install_by(&scratch, &link);
        assert_eq!(doctor(&scratch, "hooks-failed"), None);
        let aside = scratch.path().join("aside");
        fs::rename(&program, &aside).unwrap();
        script(&program, text);
        assert!(
            commit(&scratch).contains("git takeup doctor says why"),
            "{how}"
        );
        let said = doctor(&scratch, "hooks-failed").expect(how);
        assert!(
            said.contains(how) && said.contains("b/git-takeup"),
            "{said}"
        );
        scratch.takeup(&["hooks", "status"]).exits(1);
        assert_eq!(first_hook(&scratch)["failure"]["event"], "post-commit");
        let mode = fs::metadata(scratch.repo().join(".git/takeup/hook-failed")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
        // A good run after it is the last word.
        fs::rename(&aside, &program).unwrap();
        assert_eq!(commit(&scratch), "");
        settled(&scratch.repo());
        assert_eq!(doctor(&scratch, "hooks-failed"), None);
        scratch.takeup(&["hooks", "status"]).exits(0);
    }
}

/// The note of a failure goes nowhere else, and nobody waits for it.
#[test]
fn the_note_of_a_failure_is_written_through_no_link_and_no_pipe() {
    let scratch = Scratch::new(PROGRAM);
    let (link, program) = linked_program(&scratch);
    install_by(&scratch, &link);
    fs::remove_file(&program).unwrap();
    script(&program, "#!/bin/sh\nexit 1\n");
    let note = scratch.repo().join(".git/takeup/hook-failed");
    let theirs = scratch.path().join("theirs");
    fs::write(&theirs, "theirs\n").unwrap();
    std::os::unix::fs::symlink(&theirs, &note).unwrap();
    commit(&scratch);
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs\n");
    fs::remove_file(&note).unwrap();
    let made = Command::new("mkfifo").arg(&note).status().unwrap();
    assert!(made.success());
    commit(&scratch);
    scratch.takeup(&["hooks", "status"]);
}

/// A link to the present version is kept as it was called: an upgrade moves it on.
#[test]
fn a_hook_calls_the_program_by_the_link_it_was_called_by() {
    let scratch = Scratch::new(PROGRAM);
    let (link, first) = linked_program(&scratch);
    install_by(&scratch, &link);
    let hook = fs::read_to_string(hooks_folder(&scratch).join("post-commit")).unwrap();
    assert!(hook.contains(&format!("'{}'", link.display())), "{hook}");
    // The upgrade, and a client without PATH.
    let second = scratch.path().join("c/2/git-takeup");
    fs::create_dir_all(second.parent().unwrap()).unwrap();
    fs::rename(&first, &second).unwrap();
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("../c/2/git-takeup", &link).unwrap();
    assert_eq!(commit(&scratch), "");
    assert_eq!(settled(&scratch.repo()).observations.len(), 1);
    // Called through git, by PATH; and by a path with nothing to it.
    for (words, folder) in [
        (&["git", "takeup"][..], "b"),
        (&["../b/./git-takeup"][..], ""),
    ] {
        let mut command = Command::new(words[0]);
        scratch.dress(&mut command);
        let mut paths = vec![scratch.path().join(folder)];
        paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let done = command
            .current_dir(scratch.repo())
            .env("PATH", std::env::join_paths(paths).unwrap())
            .args(&words[1..])
            .args(["hooks", "install"])
            .output()
            .unwrap();
        assert!(done.status.success());
        let now = fs::read_to_string(hooks_folder(&scratch).join("post-commit")).unwrap();
        let now = now.replace("repo/../b", "b");
        assert_eq!(now, hook, "{words:?}");
    }
}

#[test]
fn a_program_whose_name_is_no_text_is_called_all_the_same() {
    use std::os::unix::ffi::OsStrExt as _;
    let scratch = Scratch::new(PROGRAM);
    let (_, program) = linked_program(&scratch);
    let folder = scratch
        .path()
        .join(std::ffi::OsStr::from_bytes(b"it's \xff"));
    fs::create_dir(&folder).unwrap();
    fs::rename(&program, folder.join("git-takeup")).unwrap();
    install_by(&scratch, &folder.join("git-takeup"));
    assert_eq!(commit(&scratch), "");
    assert_eq!(settled(&scratch.repo()).observations.len(), 1);
    scratch.takeup(&["hooks", "status"]).exits(0);
    // In JSON it is written as every path.
    let shown = r"it's \xff/git-takeup";
    let program = folder.join("git-takeup");
    fs::remove_file(&program).unwrap();
    let missing = first_hook(&scratch)["missingProgram"].clone();
    assert!(missing.as_str().unwrap().ends_with(shown), "{missing}");
    script(&program, "#!/bin/sh\nexit 1\n");
    commit(&scratch);
    let failed = first_hook(&scratch)["failure"]["program"].clone();
    assert!(failed.as_str().unwrap().ends_with(shown), "{failed}");
    scratch.takeup(&["hooks", "uninstall"]).exits(0);
    assert!(!hooks_folder(&scratch).join("post-commit").exists());
}

/// The usual way to switch hooks off, in each place a setting can be in.
#[test]
fn hooks_that_are_switched_off_are_said_to_be() {
    for (value, option) in [
        ("/dev/null", "--local"),
        ("/dev/null", "--global"),
        ("", "--local"),
    ] {
        let scratch = Scratch::new(PROGRAM);
        scratch.takeup(&["init"]).exits(0);
        scratch.git(&["config", option, "core.hooksPath", value]);
        let refused = scratch
            .takeup(&["hooks", "install", "--json"])
            .exits(1)
            .json();
        assert_eq!(refused["error"]["code"], "hooks-switched-off");
        let hook = first_hook(&scratch);
        assert_eq!(hook["state"], "not-run", "{hook:#}");
        let said = doctor(&scratch, "hooks").unwrap();
        assert!(said.contains("switched off"), "{said}");
        assert!(!said.contains("hooks install"), "{said}");
        scratch.takeup(&["hooks", "uninstall"]).exits(0);
        // What is advised.
        run(&scratch, &hook["run"]);
        scratch.takeup(&["hooks", "install"]).exits(0);
        commit(&scratch);
        assert_eq!(settled(&scratch.repo()).observations.len(), 1);
    }
    let scratch = Scratch::new(PROGRAM);
    let off = scratch
        .program_in(&scratch.repo())
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "core.hooksPath")
        .env("GIT_CONFIG_VALUE_0", "/dev/null")
        .args(["hooks", "install"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&off.stderr).contains("for this call alone"));
}

/// What cannot be joined: the commands that are said are run to the letter, and both run.
#[test]
fn a_hook_that_cannot_be_joined_is_joined_by_what_is_advised() {
    let log = |scratch: &Scratch| scratch.path().join("log");
    let perl = |scratch: &Scratch| {
        format!(
            "#!/usr/bin/perl\n# argv[0]\nuse File::Basename;\nopen(L, '>>', '{}'); print L basename($0), \" @ARGV\\n\";\n",
            log(scratch).display()
        )
    };
    for kind in ["program", "link", "own folder", "taken"] {
        let scratch = Scratch::new(PROGRAM);
        scratch.takeup(&["init"]).exits(0);
        let mut hook = hooks_folder(&scratch).join("post-commit");
        match kind {
            "link" => {
                script(&scratch.repo().join(".git/dispatch"), &perl(&scratch));
                std::os::unix::fs::symlink("../dispatch", &hook).unwrap();
            }
            "own folder" => {
                let folder = scratch.path().join("own hooks");
                scratch.git(&[
                    "config",
                    "--global",
                    "core.hooksPath",
                    folder.to_str().unwrap(),
                ]);
                hook = folder.join("post-commit");
                script(&hook, &perl(&scratch));
            }
            "taken" => {
                script(&hook, &perl(&scratch).replace("argv[0]", ""));
                fs::write(hook.with_file_name("post-commit.takeup-kept"), "theirs").unwrap();
            }
            _ => script(&hook, &perl(&scratch)),
        }
        let answer = scratch
            .takeup(&["hooks", "install", "--json"])
            .exits(1)
            .json();
        let first = &answer["data"]["hooks"][0];
        assert_eq!(first["outcome"], "by-hand", "{kind}");
        // No line for a shell into a program that is none.
        assert_eq!(first["add"], "", "{kind}");
        assert_eq!(first_hook(&scratch)["what"]["run"], first["run"], "{kind}");
        run(&scratch, &first["run"]);
        assert!(
            ["installed", "by-hand"].contains(&first_hook(&scratch)["state"].as_str().unwrap())
        );
        assert_eq!(commit(&scratch), "");
        assert_eq!(settled(&scratch.repo()).observations.len(), 1, "{kind}");
        assert_eq!(
            fs::read_to_string(log(&scratch)).unwrap(),
            "post-commit \n",
            "{kind}"
        );
    }
    // A folder.
    let scratch = Scratch::new(PROGRAM);
    fs::create_dir(hooks_folder(&scratch).join("post-commit")).unwrap();
    let answer = scratch
        .takeup(&["hooks", "install", "--json"])
        .exits(1)
        .json();
    assert_eq!(first_hook(&scratch)["state"], "missing");
    run(&scratch, &answer["data"]["hooks"][0]["run"]);
    scratch.takeup(&["hooks", "status"]).exits(0);
}

/// lefthook gives a hook that it finds the ending `.old`, and pre-commit `.legacy`: ours goes from there, and what was kept
/// beside it takes its place.
#[test]
fn a_hook_of_ours_that_a_manager_renamed_is_taken_out_too() {
    for (ending, theirs) in [
        ("old", "#!/bin/sh\ncall_lefthook\n"),
        (
            "legacy",
            "#!/bin/sh\n# File generated by pre-commit: https://pre-commit.com\n\"$0.legacy\" \"$@\"\n",
        ),
    ] {
        for kept in [false, true] {
            let scratch = Scratch::new(PROGRAM);
            let hook = hooks_folder(&scratch).join("post-commit");
            let mark = scratch.path().join("mark");
            let perl = format!(
                "#!/usr/bin/perl\nopen(L, '>>', '{}'); print L \"x\";\n",
                mark.display()
            );
            if kept {
                script(&hook, &perl);
            }
            scratch.takeup(&["hooks", "install"]).exits(0);
            let renamed = hook.with_file_name(format!("post-commit.{ending}"));
            fs::rename(&hook, &renamed).unwrap();
            script(&hook, theirs);
            if ending == "legacy" {
                commit(&scratch);
                assert_eq!(settled(&scratch.repo()).observations.len(), 1);
                // The one that was there first runs, too.
                assert_eq!(
                    fs::read_to_string(&mark).unwrap_or_default(),
                    if kept { "x" } else { "" }
                );
            }
            scratch.takeup(&["hooks", "uninstall"]).exits(0);
            assert_eq!(fs::read_to_string(&renamed).ok(), kept.then_some(perl));
            assert_eq!(fs::read_to_string(&hook).unwrap(), theirs);
            assert!(!hook.with_file_name("post-commit.takeup-kept").exists());
        }
    }
}

/// What stops every record and every look is found by the doctor as well.
#[test]
fn a_head_that_cannot_be_read_and_a_place_that_cannot_be_written_are_named() {
    use std::os::unix::process::CommandExt as _;
    let scratch = installed();
    let git = scratch.repo().join(".git");
    assert_eq!(doctor(&scratch, "tree"), None);
    for (file, content, check) in [
        ("HEAD", Some(""), "repository"),
        (
            "refs/heads/main",
            Some("1111111111111111111111111111111111111111\n"),
            "tree",
        ),
        ("HEAD", None, "repository"),
        ("refs/heads/main", Some(""), "repository"),
        ("index", Some("garbage"), "tree"),
    ] {
        let file = git.join(file);
        let before = fs::read(&file).unwrap();
        match content {
            Some(content) => fs::write(&file, content).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        // The judge: nothing can be said of a tree that git cannot read.
        let judge = scratch.git_may_fail(&scratch.repo(), &["diff", "--cached", "HEAD"]);
        assert!(!judge.status.success(), "{}", file.display());
        let said = doctor(&scratch, check);
        assert!(
            said.as_ref()
                .is_some_and(|said| said.contains("git status") || said.contains("git fsck")),
            "{}: {said:?}",
            file.display()
        );
        fs::write(&file, before).unwrap();
        assert_eq!(doctor(&scratch, check), None);
    }

    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !root {
        println!("skipped: only root can become somebody else and mount a small disk");
        return;
    }
    let state_folder = scratch.repo().join(".git/takeup");
    let sh = |text: &str| {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", text])
            .arg(&state_folder)
            .arg(scratch.path());
        shell.output().unwrap().status.success()
    };
    assert!(sh("chown -R 65534:65534 \"$1\" && chmod 500 \"$0\""));
    let other = scratch
        .program_in(&scratch.repo())
        .uid(65_534)
        .args(["doctor"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&other.stdout);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("cannot be written by you"), "{said}");
    assert!(sh("chown -R 0:0 \"$1\" && chmod 700 \"$0\""));
    if !sh("cp -a \"$0\" \"$1/aside\" && mount -t tmpfs -o size=256k,mode=700 none \"$0\"") {
        println!("skipped: no disk can be mounted here");
        return;
    }
    let filled = sh(
        "cp -a \"$1\"/aside/. \"$0\"/ && { dd if=/dev/zero of=\"$0/filler\" bs=1k; test -f \"$0/filler\"; }",
    );
    let full = doctor(&scratch, "file-system");
    let emptied = sh("rm \"$0/filler\"");
    let empty = doctor(&scratch, "file-system");
    until("the disk is free", || sh("umount \"$0\""));
    assert!(filled && emptied);
    assert!(
        full.clone().is_some_and(|said| said.contains("no room")),
        "{full:?}"
    );
    assert_eq!(empty, None);
}

/// A line that a person put into a hook counts, also behind a link, and an installation does not make it two.
#[test]
fn a_line_by_hand_in_an_own_hook_is_enough() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let hooks = hooks_folder(&scratch);
    let call = |event: &str| format!("#!/bin/sh\ngit-takeup hook git {event} \"$@\"\n");
    script(&hooks.join("post-commit"), &call("post-commit"));
    script(&scratch.repo().join(".git/theirs"), &call("post-checkout"));
    std::os::unix::fs::symlink("../theirs", hooks.join("post-checkout")).unwrap();
    let before = whole(&hooks.join("post-commit"));
    let answer = scratch
        .takeup(&["hooks", "install", "--json"])
        .exits(0)
        .json();
    for hook in answer["data"]["hooks"].as_array().unwrap() {
        let by_hand = ["post-commit", "post-checkout"].contains(&hook["event"].as_str().unwrap());
        assert_eq!(hook["outcome"], if by_hand { "there" } else { "put" });
    }
    assert_eq!(whole(&hooks.join("post-commit")), before);
    scratch.takeup(&["hooks", "status"]).exits(0);
    commit(&scratch);
    scratch.git(&["checkout", "-q", "-b", "side"]);
    let seen = settled(&scratch.repo()).observations;
    assert_eq!(events(&seen), ["post-commit", "post-checkout"]);
}

#[test]
fn a_hooks_folder_that_is_not_there_is_said_by_status_and_doctor() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    scratch.git(&["config", "core.hooksPath", "/nowhere/hooks"]);
    let said = doctor(&scratch, "hooks").unwrap();
    assert!(
        said.contains("/nowhere/hooks") && !said.contains("hooks install"),
        "{said}"
    );
    run(&scratch, &first_hook(&scratch)["run"]);
    scratch.takeup(&["hooks", "install"]).exits(0);
    scratch.takeup(&["hooks", "status"]).exits(0);
}
