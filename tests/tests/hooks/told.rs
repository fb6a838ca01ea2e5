//! What is said of hooks that were added by hand, that missed something, or that failed.
use serde_json::Value;

use super::*;

fn doctor(scratch: &Scratch, folder: &Path, check: &str) -> Option<String> {
    let answer = scratch.takeup_in(folder, &["doctor", "--json"]).json();
    let found = answer["data"]["findings"].as_array().unwrap();
    let one = found
        .iter()
        .find(|one| one["check"] == check && one["verdict"] != "ok")?;
    Some(format!("{} | {}", one["message"], one["advice"]))
}

/// Git's log knows seconds only: what was missed at once after the installation is told all the same.
#[test]
fn a_commit_that_was_missed_right_after_the_installation_is_told() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "before"]);
    scratch.git(&["worktree", "add", "-q", "../linked", "-b", "linked"]);
    scratch.takeup(&["hooks", "install"]).exits(0);
    let linked = scratch.path().join("linked");
    scratch.takeup_in(&linked, &["init"]).exits(0);
    for folder in [scratch.repo(), linked.clone()] {
        assert_eq!(doctor(&scratch, &folder, "hooks-missed"), None);
    }
    let off = "core.hooksPath=/dev/null";
    scratch.git(&["-c", off, "commit", "-q", "--allow-empty", "-m", "missed"]);
    let said = doctor(&scratch, &scratch.repo(), "hooks-missed").unwrap();
    assert!(said.contains("commit: missed"), "{said}");
    let status = scratch.takeup(&["hooks", "status", "--json"]).json();
    assert!(status["data"]["unseen"].is_object(), "{status:#}");
    // Also when later ones were seen.
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "seen"]);
    settled(&scratch.repo());
    let said = doctor(&scratch, &scratch.repo(), "hooks-missed").unwrap();
    assert!(
        said.contains("1 commit was made") && said.contains("commit: missed"),
        "{said}"
    );
    assert_eq!(doctor(&scratch, &linked, "hooks-missed"), None);
}

/// husky before version 9: git runs the scripts themselves.
fn by_hand() -> Scratch {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["config", "core.hooksPath", ".husky"]);
    for event in EVENTS {
        script(
            &scratch.repo().join(".husky").join(event),
            &format!("#!/bin/sh\n\ngit-takeup hook git {event} \"$@\" || :\n"),
        );
    }
    scratch
}

#[test]
fn an_installation_makes_hooks_by_hand_record() {
    let scratch = by_hand();
    for _ in 0..2 {
        let answer = scratch
            .takeup(&["hooks", "install", "--json"])
            .exits(0)
            .json();
        assert_eq!(answer["data"]["changes"].as_array().unwrap().len(), 0);
        assert_eq!(state(&scratch.repo()).hooks.len(), EVENTS.len());
        scratch.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        let seen = settled(&scratch.repo()).observations;
        assert_eq!(events(&seen), ["post-commit"]);
        scratch.takeup(&["hooks", "status"]).exits(0);
        // The records are lost, and the hooks are there.
        fs::remove_dir_all(scratch.repo().join(".git/takeup")).unwrap();
    }
    // A second installation writes nothing.
    scratch.takeup(&["hooks", "install"]).exits(0);
    let before = picture(&scratch.repo().join(".git/takeup"), &|_| false);
    scratch.takeup(&["hooks", "install"]).exits(0);
    let after = picture(&scratch.repo().join(".git/takeup"), &|_| false);
    assert_eq!(after, before);
    // Where the line is gone, it has to be added again.
    script(&scratch.repo().join(".husky/post-commit"), "#!/bin/sh\n");
    let status = scratch.takeup(&["hooks", "status", "--json"]).json();
    assert_eq!(status["data"]["hooks"][0]["state"], "missing");

    // Ours, in the files of git.
    let scratch = installed();
    fs::remove_dir_all(scratch.repo().join(".git/takeup")).unwrap();
    scratch.takeup(&["hooks", "install"]).exits(0);
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    assert_eq!(settled(&scratch.repo()).observations.len(), 1);
    assert_eq!(state(&scratch.repo()).hooks.len(), EVENTS.len());
}

#[test]
fn an_uninstallation_says_what_goes_on_by_hand() {
    let scratch = by_hand();
    scratch.takeup(&["hooks", "install"]).exits(0);
    let before = whole(&scratch.repo());
    let answer = scratch
        .takeup(&["hooks", "uninstall", "--json"])
        .exits(1)
        .json();
    assert_eq!(answer["data"]["complete"], false);
    for (hook, event) in answer["data"]["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .zip(EVENTS)
    {
        assert_eq!(hook["outcome"], "stays");
        let file = scratch.repo().join(".husky").join(event);
        assert_eq!(hook["place"].as_str(), file.to_str());
        assert_eq!(hook["lines"], Value::from(vec![3]));
    }
    let said = scratch.takeup(&["hooks", "uninstall"]).exits(1).stdout;
    assert!(said.contains(".husky/post-commit, line 3"), "{said}");
    assert_eq!(whole(&scratch.repo()), before);
    // As it is said.
    for event in EVENTS {
        script(&scratch.repo().join(".husky").join(event), "#!/bin/sh\n");
    }
    scratch.takeup(&["hooks", "uninstall"]).exits(0);
}

#[test]
fn a_work_tree_without_hooks_is_told_to_people_too() {
    let scratch = Scratch::new(PROGRAM);
    fs::create_dir(scratch.repo().join(".githooks")).unwrap();
    scratch.git(&["config", "core.hooksPath", ".githooks"]);
    scratch.git(&["worktree", "add", "-q", "../linked", "-b", "linked"]);
    let linked = scratch.path().join("linked");
    let said = scratch.takeup_in(&linked, &["hooks", "install"]).exits(1);
    assert!(said.stderr.contains("it has no hooks"), "{}", said.stderr);
}

/// What the program itself said of a failure is told, and no new installation is advised for it.
#[test]
fn a_ledger_that_was_busy_is_said_to_have_been() {
    let scratch = installed();
    let ledger = Ledger::at(scratch.repo().join(".git/takeup")).during("a long test");
    let (held, is_held) = std::sync::mpsc::channel();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let ledger = &ledger;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let clock = takeup_core::time::SystemClock;
            ledger
                .transact(&clock, Ledger::PATIENCE, |_| {
                    held.send(()).unwrap();
                    is_done.recv().unwrap();
                    Ok::<_, std::convert::Infallible>((None, ()))
                })
                .unwrap();
        });
        is_held.recv().unwrap();
        scratch.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        done.send(()).unwrap();
    });
    let said = doctor(&scratch, &scratch.repo(), "hooks-failed").unwrap();
    assert!(said.contains("ledger-busy"), "{said}");
    assert!(!said.contains("install takeup again"), "{said}");
}

#[test]
fn hooks_that_a_variable_turns_off_are_said_to_record_nothing() {
    let scratch = installed();
    let ran = scratch
        .program_in(&scratch.repo())
        .env("TAKEUP_HOOKS", "0")
        .args(["hooks", "status", "--json"])
        .output()
        .unwrap();
    let status = takeup_tests::Ran::of(ran).exits(1).json();
    assert_eq!(status["data"]["turnedOff"], true);
    let summary = status["summary"].as_str().unwrap();
    assert!(summary.contains("record nothing here"), "{summary}");
    let status = scratch
        .takeup(&["hooks", "status", "--json"])
        .exits(0)
        .json();
    assert_eq!(status["data"]["turnedOff"], false);
}

/// What was made while the hooks were taken out was not missed by any.
#[test]
fn what_was_made_between_two_installations_is_not_missed() {
    let scratch = installed();
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "seen"]);
    settled(&scratch.repo());
    scratch.takeup(&["hooks", "uninstall"]).exits(0);
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "between"]);
    scratch.takeup(&["hooks", "install"]).exits(0);
    assert_eq!(doctor(&scratch, &scratch.repo(), "hooks-missed"), None);
    let status = scratch.takeup(&["hooks", "status", "--json"]).exits(0);
    assert!(status.json()["data"]["unseen"].is_null());
    let off = "core.hooksPath=/dev/null";
    scratch.git(&["-c", off, "commit", "-q", "--allow-empty", "-m", "missed"]);
    let said = doctor(&scratch, &scratch.repo(), "hooks-missed").unwrap();
    assert!(said.contains("commit: missed"), "{said}");
}

/// The judge is git: after either of the ways that the doctor names, it calls us again.
#[test]
fn hooks_that_a_setting_displaced_run_again_by_what_the_doctor_says() {
    for scope in ["--global", "--local"] {
        let scratch = installed();
        let folder = match scope {
            "--global" => scratch.home().join("hooks"),
            _ => scratch.repo().join("tree-hooks"),
        };
        fs::create_dir_all(&folder).unwrap();
        scratch.git(&["config", scope, "core.hooksPath", folder.to_str().unwrap()]);
        let commit = |message: &str, seen: bool| {
            let before = state(&scratch.repo()).observations.len();
            scratch.git(&["commit", "-q", "--allow-empty", "-m", message]);
            let after = settled(&scratch.repo()).observations.len();
            assert_eq!(after > before, seen, "{scope} {message}");
        };
        commit("unseen", false);
        let said = doctor(&scratch, &scratch.repo(), "hook-post-commit").unwrap();
        assert!(said.contains("displaced by core.hooksPath"), "{said}");
        assert!(!said.contains("hooks install"), "{said}");
        let status = scratch
            .takeup(&["hooks", "status", "--json"])
            .exits(1)
            .json();
        assert!(status["next"].is_null(), "{}", status["next"]);
        let hook = &status["data"]["hooks"][0];
        let unset = hook["run"][0].as_str().unwrap();
        assert!(said.contains(unset), "{said}");
        let words: Vec<&str> = unset.split(' ').skip(1).collect();
        scratch.git(&words);
        commit("seen", true);
        scratch.git(&["config", scope, "core.hooksPath", folder.to_str().unwrap()]);
        script(
            Path::new(hook["what"]["file"].as_str().unwrap()),
            hook["what"]["add"].as_str().unwrap(),
        );
        commit("seen by the lines", true);
    }
}
