//! Putting in and taking out.
use super::*;

/// Hooks that are there survive, also those that look for their own folder.
#[test]
fn hooks_that_are_there_go_on_running_as_they_did() {
    let scratch = Scratch::new(PROGRAM);
    let hooks = hooks_folder(&scratch);
    let log = scratch.path().join("log");
    fs::write(hooks.join("beside"), "beside\n").unwrap();
    script(
        &hooks.join("pre-commit"),
        &format!("#!/bin/sh\necho pre-commit >> '{}'\n", log.display()),
    );
    script(
        &hooks.join("post-commit"),
        &format!(
            "#!/bin/sh\nfolder=$(cd \"$(dirname \"$0\")\" && pwd)\n{{ echo \"$0\"; cat \"$folder/beside\"; echo \"$#\"; }} >> '{}'\n",
            log.display()
        ),
    );
    script(
        &hooks.join("commit-msg"),
        "#!/bin/sh\ngrep -q '[0-9]' \"$1\"\n",
    );
    // A link whose target is a program in another language reads its arguments and its input.
    let target = scratch.path().join("rewrite.pl");
    script(
        &target,
        &format!(
            "#!/usr/bin/perl\nopen(L, '>>', '{}'); print L \"args=@ARGV\\n\"; print L \"stdin=$_\" while <STDIN>;\n",
            log.display()
        ),
    );
    std::os::unix::fs::symlink(&target, hooks.join("post-rewrite")).unwrap();
    script(&hooks.join("post-checkout"), "#!/bin/sh\nexit 7\n");
    // Not executable: git passes it by, and so do we.
    fs::write(hooks.join("post-merge"), "#!/bin/sh\necho never\n").unwrap();
    // Without a command in it: what a file of ours alone would leave looks the same.
    script(&hooks.join("post-applypatch"), "#!/bin/sh\n");
    let before = whole(&hooks);

    let dry = scratch
        .takeup(&["hooks", "install", "--dry-run", "--json"])
        .exits(0)
        .json();
    assert_eq!(whole(&hooks), before);
    scratch.takeup(&["hooks", "install"]).exits(0);
    let once = whole(&hooks);
    for change in dry["data"]["changes"].as_array().unwrap() {
        if change["change"] == "write" {
            let content = fs::read_to_string(change["path"].as_str().unwrap()).unwrap();
            let shown = change["after"].as_str().unwrap();
            assert_eq!(
                takeup_core::paths::bytes_of_text(shown).unwrap(),
                content.as_bytes()
            );
        }
    }
    scratch.takeup(&["hooks", "install"]).exits(0);
    assert_eq!(
        whole(&hooks),
        once,
        "a second installation changed something"
    );
    let kept = fs::symlink_metadata(hooks.join("post-rewrite.takeup-kept")).unwrap();
    assert!(kept.is_symlink());

    assert!(
        !scratch
            .git_may_fail(&scratch.repo(), &["commit", "--allow-empty", "-m", "none"])
            .status
            .success()
    );
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "number 1"]);
    scratch.git(&["commit", "-q", "--allow-empty", "--amend", "-m", "number 2"]);
    let (old, new) = (
        scratch.git(&["rev-parse", "HEAD@{1}"]),
        scratch.git(&["rev-parse", "HEAD"]),
    );
    let expected = format!(
        "pre-commit\npre-commit\n.git/hooks/post-commit\nbeside\n0\npre-commit\n.git/hooks/post-commit\nbeside\n0\nargs=amend\nstdin={old} {new}\n"
    );
    assert_eq!(fs::read_to_string(&log).unwrap(), expected);
    // The status of a hook that counts still counts.
    let checkout = scratch.git_may_fail(&scratch.repo(), &["checkout", "-q", "-b", "side"]);
    assert_eq!(checkout.status.code(), Some(1));
    let seen = settled(&scratch.repo()).observations;
    assert_eq!(
        events(&seen),
        [
            "post-commit",
            "post-commit",
            "post-rewrite",
            "post-checkout"
        ]
    );

    for _ in 0..2 {
        scratch.takeup(&["hooks", "uninstall"]).exits(0);
        assert_eq!(timeless(&whole(&hooks)), timeless(&before));
    }
}

/// An installation from a linked work tree serves all, and names none of them.
#[test]
fn an_installation_from_a_linked_work_tree_outlives_it() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["worktree", "add", "-q", "../wt", "-b", "f"]);
    let linked = scratch.path().join("wt");
    scratch.takeup_in(&linked, &["hooks", "install"]).exits(0);
    for folder in [&linked, &scratch.repo()] {
        scratch.git_in(folder, &["commit", "-q", "--allow-empty", "-m", "x"]);
    }
    let seen = settled(&scratch.repo()).observations;
    assert_eq!(events(&seen), ["post-commit"; 2]);
    assert_ne!(seen[0].worktree_id, seen[1].worktree_id);
    let hook = fs::read_to_string(hooks_folder(&scratch).join("post-commit")).unwrap();
    assert!(!hook.contains(linked.to_str().unwrap()), "{hook}");
    scratch.git(&["worktree", "remove", "--force", "../wt"]);
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "y"]);
    assert_eq!(settled(&scratch.repo()).observations.len(), 3);

    // A relative folder that exists in the main work tree alone.
    let scratch = Scratch::new(PROGRAM);
    fs::create_dir(scratch.repo().join(".githooks")).unwrap();
    scratch.git(&["config", "core.hooksPath", ".githooks"]);
    scratch.git(&["worktree", "add", "-q", "../wt", "-b", "f"]);
    let refused = scratch
        .takeup_in(&scratch.path().join("wt"), &["hooks", "install", "--json"])
        .exits(1)
        .json();
    assert_eq!(refused["error"]["code"], "hooks-managed");
    let notes = refused["data"]["notes"].as_array().unwrap();
    assert!(
        notes[0].as_str().unwrap().contains("has no hooks"),
        "{notes:?}"
    );
}

#[test]
fn a_new_hooks_folder_goes_with_the_hooks() {
    let scratch = Scratch::new(PROGRAM);
    fs::remove_dir_all(hooks_folder(&scratch)).unwrap();
    let before = whole(&scratch.repo());
    scratch.takeup(&["hooks", "install"]).exits(0);
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    scratch.git(&["update-ref", "-d", "HEAD"]);
    assert_eq!(settled(&scratch.repo()).observations.len(), 1);
    scratch.takeup(&["hooks", "uninstall"]).exits(0);
    assert!(!hooks_folder(&scratch).exists(), "{before}");

    // Without commits in between the whole repository is as it was.
    let scratch = Scratch::new(PROGRAM);
    let before = whole(&scratch.repo());
    scratch.takeup(&["hooks", "install"]).exits(0);
    scratch.takeup(&["hooks", "status"]).exits(0);
    scratch.takeup(&["hooks", "uninstall"]).exits(0);
    assert_eq!(whole(&scratch.repo()), before);
}

#[test]
fn nothing_is_made_outside_the_repository() {
    let scratch = Scratch::new(PROGRAM);
    let elsewhere = scratch.path().join("not there/hooks");
    scratch.git(&["config", "core.hooksPath", elsewhere.to_str().unwrap()]);
    let before = picture(&scratch.path(), &|_| false);
    for args in [
        &["hooks", "install", "--json"][..],
        &["hooks", "install", "--dry-run", "--json"],
    ] {
        let refused = scratch.takeup(args).exits(1).json();
        assert_eq!(refused["error"]["code"], "hooks-folder-missing");
        let line = format!("mkdir -p '{}'", elsewhere.display());
        assert!(
            refused["error"]["hint"].as_str().unwrap().contains(&line),
            "{refused:#}"
        );
    }
    assert_eq!(picture(&scratch.path(), &|_| false), before);
    // Once it is made, they go into it.
    fs::create_dir_all(&elsewhere).unwrap();
    scratch.takeup(&["hooks", "install"]).exits(0);
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    assert_eq!(settled(&scratch.repo()).observations.len(), 1);
    scratch.takeup(&["hooks", "uninstall"]).exits(0);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    // The same by a path that leads out of the work tree.
    scratch.git(&["config", "core.hooksPath", "../nowhere/hooks"]);
    let refused = scratch
        .takeup(&["hooks", "install", "--json"])
        .exits(1)
        .json();
    assert_eq!(refused["error"]["code"], "hooks-folder-missing");
    scratch.git(&["config", "core.hooksPath", "../not there/hooks"]);
    scratch.takeup(&["hooks", "install"]).exits(0);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 5);
}

#[test]
fn a_hook_that_asks_for_its_name_is_left_alone() {
    let scratch = Scratch::new(PROGRAM);
    let target = scratch.path().join("dispatch");
    script(
        &target,
        "#!/bin/sh\ncase ${0##*/} in post-commit) ;; esac\n",
    );
    let hook = hooks_folder(&scratch).join("post-commit");
    std::os::unix::fs::symlink(&target, &hook).unwrap();
    let answer = scratch
        .takeup(&["hooks", "install", "--json"])
        .exits(1)
        .json();
    let first = &answer["data"]["hooks"][0];
    assert_eq!(
        (first["event"].as_str(), first["outcome"].as_str()),
        (Some("post-commit"), Some("by-hand"))
    );
    assert!(fs::symlink_metadata(&hook).unwrap().is_symlink());
    // The others are in place and run.
    scratch.git(&["checkout", "-q", "-b", "side"]);
    assert_eq!(
        events(&settled(&scratch.repo()).observations),
        ["post-checkout"]
    );
}

/// Git 2.54 is played by a stand-in that says so and is real git for the rest.
#[test]
fn a_git_that_runs_hooks_of_the_configuration_has_its_configuration_changed_and_no_file() {
    let scratch = Scratch::new(PROGRAM);
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("git"))
        .find(|file| file.exists())
        .unwrap();
    script(
        &scratch.path().join("bin/git"),
        &format!(
            "#!/bin/sh\nfor word; do case $word in version) echo 'git version 2.54.0'; exit ;; -*|*=*) ;; *) break ;; esac; done\nexec '{}' \"$@\"\n",
            real.display()
        ),
    );
    let config = scratch.repo().join(".git/config");
    // Without a line end at the end, to make it hard.
    let mut content = fs::read(&config).unwrap();
    content.extend_from_slice(b"[a]\n\tb = c");
    fs::write(&config, &content).unwrap();
    let hooks = whole(&hooks_folder(&scratch));
    scratch.takeup(&["hooks", "install"]).exits(0);
    scratch.takeup(&["hooks", "install"]).exits(0);
    assert_eq!(whole(&hooks_folder(&scratch)), hooks);
    let status = scratch
        .takeup(&["hooks", "status", "--json"])
        .exits(0)
        .json();
    assert_eq!(status["data"]["git"], "2.54.0");
    assert_eq!(
        scratch.git(&["config", "--get", "hook.takeup-post-commit.event"]),
        "post-commit"
    );
    // What git 2.54 does: the command in a shell, with the hook's arguments added.
    let command = scratch.git(&["config", "--get", "hook.takeup-post-checkout.command"]);
    let head = scratch.git(&["rev-parse", "HEAD"]);
    let mut shell = Command::new("sh");
    scratch.dress(&mut shell);
    let ran = shell
        .current_dir(scratch.repo())
        .args([
            "-c",
            &format!("{command} \"$@\""),
            &command,
            &"0".repeat(40),
            &head,
            "1",
        ])
        .output()
        .unwrap();
    assert!(ran.status.success());
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
    let seen = settled(&scratch.repo()).observations;
    assert_eq!(events(&seen), ["post-checkout"]);
    assert_eq!(seen[0].head_before, None);

    // A program that is gone is named.
    let text = fs::read_to_string(&config).unwrap();
    let other = text.replace(PROGRAM, "/nowhere/it's gone");
    assert_ne!(other, text);
    fs::write(&config, other.replace("it's", r"it'\\''s")).unwrap();
    let status = scratch.takeup(&["hooks", "status", "--json"]).json();
    let hook = &status["data"]["hooks"][0];
    assert_eq!(hook["missingProgram"], "/nowhere/it's gone");
    fs::write(&config, text).unwrap();

    // A command that was changed is not taken for ours, and put right by another installation.
    let key = "hook.takeup-post-commit.command";
    scratch.git(&[
        "config",
        key,
        &format!(": {command}").replace("checkout", "commit"),
    ]);
    let status = scratch
        .takeup(&["hooks", "status", "--json"])
        .exits(1)
        .json();
    assert_eq!(status["data"]["hooks"][0]["state"], "not-run");
    scratch.takeup(&["hooks", "install"]).exits(0);
    scratch.takeup(&["hooks", "status"]).exits(0);

    // An older git passes such hooks by: that is said.
    fs::remove_file(scratch.path().join("bin/git")).unwrap();
    let status = scratch
        .takeup(&["hooks", "status", "--json"])
        .exits(1)
        .json();
    assert_eq!(status["data"]["hooks"][0]["state"], "not-run");

    // Switched off by hand.
    scratch.git(&["config", "hook.takeup-post-commit.enabled", "false"]);
    scratch.git(&["config", "--unset", "hook.takeup-post-commit.enabled"]);
    scratch.takeup(&["hooks", "uninstall"]).exits(0);
    let left = scratch.git_may_fail(&scratch.repo(), &["config", "--get-regexp", "^hook\\."]);
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    // For one repository alone: there the others are the user's.
    let refused = scratch
        .takeup(&["hooks", "install", "--global", "--json"])
        .exits(1)
        .json();
    assert_eq!(refused["error"]["code"], "git-too-old");
}

#[test]
fn the_configuration_is_put_back_to_the_byte_and_git_s_lock_is_respected() {
    let scratch = Scratch::new(PROGRAM);
    let real = PathBuf::from(
        String::from_utf8(
            Command::new("sh")
                .args(["-c", "command -v git"])
                .output()
                .unwrap()
                .stdout,
        )
        .unwrap()
        .trim(),
    );
    script(
        &scratch.path().join("bin/git"),
        &format!(
            "#!/bin/sh\nfor word; do case $word in version) echo 'git version 2.54.0'; exit ;; -*|*=*) ;; *) break ;; esac; done\nexec '{}' \"$@\"\n",
            real.display()
        ),
    );
    let config = scratch.repo().join(".git/config");
    for end in ["", "[a]\n\tb = c", "[a]\n\tb = c\n"] {
        let mut content = fs::read(&config).unwrap();
        content.extend_from_slice(end.as_bytes());
        fs::write(&config, &content).unwrap();
        scratch.takeup(&["hooks", "install"]).exits(0);
        assert_ne!(fs::read(&config).unwrap(), content);
        scratch.takeup(&["hooks", "uninstall"]).exits(0);
        assert_eq!(fs::read(&config).unwrap(), content);
    }
    let lock = scratch.repo().join(".git/config.lock");
    fs::write(&lock, "").unwrap();
    let busy = scratch
        .takeup(&["hooks", "install", "--json"])
        .exits(6)
        .json();
    assert_eq!(busy["error"]["code"], "config-locked");
    assert!(lock.exists());
}
