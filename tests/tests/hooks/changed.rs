//! Hooks that were changed after they were put in. The judge is git: what records nothing is not said to run.
use serde_json::Value;

use super::*;

fn first_hook(scratch: &Scratch) -> Value {
    let status = scratch.takeup(&["hooks", "status", "--json"]).json();
    status["data"]["hooks"][0].clone()
}

/// Commits, and tells how many records came of it.
fn recorded(scratch: &Scratch) -> usize {
    let before = state(&scratch.repo()).observations.len();
    scratch.git_may_fail(
        &scratch.repo(),
        &["commit", "-q", "--allow-empty", "-m", "x"],
    );
    settled(&scratch.repo()).observations.len() - before
}

fn change(path: &Path, change: impl Fn(&str) -> String) {
    let text = fs::read_to_string(path).unwrap();
    let changed = change(&text);
    assert_ne!(changed, text);
    script(path, &changed);
}

/// Each way to switch our lines off is seen, and another installation puts them right or says why it does not.
#[test]
fn a_hook_that_was_changed_is_not_said_to_run() {
    type Change = fn(&str) -> String;
    let ways: [(&str, Change, bool); 5] = [
        (
            "our call is commented out",
            |text| text.replace("\ntakeup_hook post", "\n# takeup_hook post"),
            true,
        ),
        (
            "an exit above",
            |text| text.replace("#!/bin/sh\n", "#!/bin/sh\nexit 0\n"),
            true,
        ),
        (
            "the function does nothing",
            |text| text.replace("takeup_hook() {\n", "takeup_hook() {\n\treturn 0\n"),
            true,
        ),
        (
            "a condition around",
            |text| {
                format!(
                    "{}\nfi\n",
                    text.replace("#!/bin/sh\n", "#!/bin/sh\nif false; then\n")
                )
            },
            false,
        ),
        (
            "only a text",
            |text| {
                format!(
                    "{}\nX\n",
                    text.replace("#!/bin/sh\n", "#!/bin/sh\n: <<'X'\n")
                )
            },
            false,
        ),
    ];
    for theirs in [false, true] {
        for (what, how, mends) in &ways {
            let scratch = Scratch::new(PROGRAM);
            let hook = hooks_folder(&scratch).join("post-commit");
            if theirs {
                script(&hook, "#!/bin/sh\necho theirs >/dev/null\n");
            }
            scratch.takeup(&["hooks", "install"]).exits(0);
            assert_eq!(recorded(&scratch), 1);
            assert_eq!(first_hook(&scratch)["state"], "installed");
            change(&hook, how);
            assert_eq!(recorded(&scratch), 0, "{what}");
            scratch.takeup(&["hooks", "status"]).exits(1);
            assert_eq!(first_hook(&scratch)["state"], "not-run", "{what}");
            let again = scratch.takeup(&["hooks", "install", "--json"]);
            let complete = &again.json()["data"]["complete"];
            assert_eq!(complete.as_bool(), Some(*mends), "{what}");
            assert_eq!(recorded(&scratch), usize::from(*mends), "{what}");
            let state = if *mends { "installed" } else { "not-run" };
            assert_eq!(first_hook(&scratch)["state"], state, "{what}");
            // What is left is good shell, whatever stood around our lines.
            scratch.takeup(&["hooks", "uninstall"]).exits(0);
            if hook.exists() {
                let read = Command::new("sh").arg("-n").arg(&hook).status().unwrap();
                assert!(read.success(), "{what}");
                let left = fs::read_to_string(&hook).unwrap();
                assert!(!left.contains("takeup"), "{what}: {left}");
                assert_eq!(left.contains("theirs"), theirs, "{what}");
            }
        }
    }
}

#[test]
fn a_hook_that_cannot_be_executed_is_made_executable_again() {
    let scratch = installed();
    for event in EVENTS {
        let hook = hooks_folder(&scratch).join(event);
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o644)).unwrap();
    }
    assert_eq!(recorded(&scratch), 0);
    scratch.takeup(&["hooks", "install"]).exits(0);
    assert_eq!(recorded(&scratch), 1);
    scratch.takeup(&["hooks", "status"]).exits(0);
}

/// Without its last line our text is found all the same: it is not put in twice, and goes as a whole.
#[test]
fn a_text_without_its_end_is_put_right_and_taken_out() {
    for install in [true, false] {
        let scratch = Scratch::new(PROGRAM);
        let hook = hooks_folder(&scratch).join("post-commit");
        let theirs = "#!/bin/sh\necho theirs >/dev/null\n";
        script(&hook, theirs);
        scratch.takeup(&["hooks", "install"]).exits(0);
        change(&hook, |text| text.replace("# <<< takeup hook <<<\n", ""));
        if install {
            scratch.takeup(&["hooks", "status"]).exits(1);
            scratch.takeup(&["hooks", "install"]).exits(0);
            scratch.takeup(&["hooks", "status"]).exits(0);
            assert_eq!(recorded(&scratch), 1);
        }
        scratch.takeup(&["hooks", "uninstall"]).exits(0);
        assert_eq!(fs::read_to_string(&hook).unwrap(), theirs);
    }
    // As it was made by versions that did not know this.
    let scratch = installed();
    let hook = hooks_folder(&scratch).join("post-commit");
    change(&hook, |text| {
        let ours = text.strip_prefix("#!/bin/sh\n").unwrap();
        format!("{text}{}", ours.replace("# <<< takeup hook <<<\n", ""))
    });
    assert_eq!(recorded(&scratch), 2);
    scratch.takeup(&["hooks", "status"]).exits(1);
    scratch.takeup(&["hooks", "install"]).exits(0);
    assert_eq!(recorded(&scratch), 1);
}

/// What is only shown is no call.
#[test]
fn a_hook_that_speaks_of_us_gets_our_lines() {
    let scratch = Scratch::new(PROGRAM);
    let hook = hooks_folder(&scratch).join("post-commit");
    script(
        &hook,
        "#!/bin/sh\necho \"run: git-takeup hook git post-commit\"\n",
    );
    scratch.takeup(&["hooks", "install"]).exits(0);
    assert_eq!(recorded(&scratch), 1);
    // A call that is never reached does not count either, and is not made two.
    script(
        &hook,
        "#!/bin/sh\nexit 0\ngit-takeup hook git post-commit\n",
    );
    assert_eq!(recorded(&scratch), 0);
    let answer = scratch.takeup(&["hooks", "install", "--json"]).exits(1);
    let first = &answer.json()["data"]["hooks"][0];
    assert!(
        first["obstacle"]
            .as_str()
            .unwrap()
            .contains("line 2: exit 0"),
        "{first:#}"
    );
    assert_eq!(first_hook(&scratch)["state"], "not-run");
}

/// husky's own scripts: the line stands there, and is not reached.
#[test]
fn a_line_by_hand_below_an_exit_is_not_said_to_run() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    scratch.git(&["config", "core.hooksPath", ".husky"]);
    let hook = scratch.repo().join(".husky/post-commit");
    let line = "git-takeup hook git post-commit \"$@\" || :\n";
    script(&hook, line);
    assert_eq!(recorded(&scratch), 1);
    assert_eq!(first_hook(&scratch)["state"], "by-hand");
    for text in [
        format!("exit 0\n{line}"),
        format!("if false; then\n{line}fi\n"),
        format!("[ -n x ] && exit 0\nexit\n{line}"),
    ] {
        script(&hook, &text);
        assert_eq!(recorded(&scratch), 0);
        assert_eq!(first_hook(&scratch)["state"], "not-run", "{text}");
    }
}

/// Under another name such a hook would do something else, however it asks; it runs as before, and ours beside it.
#[test]
fn a_hook_that_may_ask_for_its_name_is_not_kept_under_another() {
    let scratch = Scratch::new(PROGRAM);
    let log = scratch.path().join("log");
    let asks = [
        format!(
            "#!/bin/sh\ncase \"$0\" in */post-commit) echo right >>'{}' ;; esac\n",
            log.display()
        ),
        format!(
            "#!/usr/bin/perl\nopen(L, '>>', '{}'); print L \"right\\n\" if $0 =~ m#/post-commit$#;\n",
            log.display()
        ),
    ];
    let target = scratch.path().join("theirs");
    let hook = hooks_folder(&scratch).join("post-commit");
    std::os::unix::fs::symlink(&target, &hook).unwrap();
    let again = |expected: &str| {
        let answer = scratch.takeup(&["hooks", "install", "--json"]).exits(1);
        assert_eq!(answer.json()["data"]["hooks"][0]["outcome"], "by-hand");
        scratch.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        assert_eq!(fs::read_to_string(&log).unwrap_or_default(), expected);
    };
    for (number, text) in asks.iter().enumerate() {
        script(&target, text);
        again(&"right\n".repeat(number + 1));
    }
    // Of a compiled program it cannot be seen.
    takeup_tests::copy_program(Path::new("/bin/true"), &target);
    again("right\nright\n");
}
