//! Where git's folder of hooks lies, and what stands in its place.
use serde_json::Value;

use super::*;

fn first_hook(scratch: &Scratch, folder: &Path) -> Value {
    let status = scratch
        .takeup_in(folder, &["hooks", "status", "--json"])
        .json();
    status["data"]["hooks"][0].clone()
}

fn run(scratch: &Scratch, folder: &Path, commands: &Value) {
    for command in commands.as_array().into_iter().flatten() {
        let mut shell = Command::new("sh");
        scratch.dress(&mut shell);
        let ran = shell
            .current_dir(folder)
            .args(["-c", command.as_str().unwrap()])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{command}: {said}");
    }
}

/// What is tracked is the user's, also behind a link.
#[test]
fn a_hooks_folder_that_leads_into_the_work_tree_is_left_alone() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    fs::remove_dir_all(hooks_folder(&scratch)).unwrap();
    script(&scratch.repo().join("githooks/post-commit"), "#!/bin/sh\n");
    std::os::unix::fs::symlink("../githooks", hooks_folder(&scratch)).unwrap();
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-q", "-m", "hooks"]);
    scratch.git(&["worktree", "add", "-q", "../linked", "-b", "linked"]);
    for folder in [scratch.repo(), scratch.path().join("linked")] {
        let answer = scratch
            .takeup_in(&folder, &["hooks", "install", "--json"])
            .exits(1)
            .json();
        let first = &answer["data"]["hooks"][0];
        assert_eq!(first["manager"], "tree-hooks-path");
        assert_eq!(scratch.git(&["status", "--porcelain"]), "");
        // What is advised does it.
        if folder == scratch.repo() {
            continue;
        }
        for hook in answer["data"]["hooks"].as_array().unwrap() {
            let file = hook["file"].as_str().unwrap();
            let before = fs::read_to_string(file).unwrap_or_default();
            let add = hook["add"].as_str().unwrap();
            fs::write(file, format!("{before}{add}\n")).unwrap();
            run(&scratch, &folder, &hook["run"]);
        }
        scratch.takeup_in(&folder, &["hooks", "status"]).exits(0);
        scratch.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        assert_eq!(settled(&scratch.repo()).observations.len(), 1);
    }
}

/// In a linked work tree `.git` is a file: no folder can be made below it.
#[test]
fn a_setting_that_holds_in_the_main_work_tree_alone_is_said_to_be_in_the_way() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["config", "core.hooksPath", ".git/hooks"]);
    scratch.takeup(&["hooks", "install"]).exits(0);
    scratch.git(&["worktree", "add", "-q", "../linked", "-b", "linked"]);
    let before = settled(&scratch.repo()).observations.len();
    let linked = scratch.path().join("linked");
    let refused = scratch
        .takeup_in(&linked, &["hooks", "install", "--json"])
        .exits(1)
        .json();
    let hint = refused["error"]["hint"].as_str().unwrap();
    assert!(
        hint.contains("git config --unset-all core.hooksPath"),
        "{hint}"
    );
    let commit = ["commit", "-q", "--allow-empty", "-m", "x"];
    scratch.git_in(&linked, &commit);
    assert_eq!(settled(&scratch.repo()).observations.len(), before);
    let hook = first_hook(&scratch, &linked);
    assert_eq!(hook["state"], "not-run", "{hook:#}");
    run(&scratch, &linked, &hook["run"]);
    scratch.takeup_in(&linked, &["hooks", "install"]).exits(0);
    scratch.git_in(&linked, &commit);
    assert_eq!(settled(&scratch.repo()).observations.len(), before + 1);
}

#[test]
fn what_stands_in_the_place_of_the_folder_is_said_with_a_way_out() {
    for link in [false, true] {
        let scratch = Scratch::new(PROGRAM);
        scratch.takeup(&["init"]).exits(0);
        let hooks = hooks_folder(&scratch);
        fs::remove_dir_all(&hooks).unwrap();
        if link {
            std::os::unix::fs::symlink("../nowhere", &hooks).unwrap();
        } else {
            fs::write(&hooks, "theirs\n").unwrap();
        }
        let refused = scratch
            .takeup(&["hooks", "install", "--json"])
            .exits(1)
            .json();
        assert_eq!(refused["error"]["code"], "hooks-no-folder");
        let hook = first_hook(&scratch, &scratch.repo());
        assert_eq!(hook["state"], "not-run");
        run(&scratch, &scratch.repo(), &hook["run"]);
        assert!(
            hooks
                .with_file_name("hooks.aside")
                .symlink_metadata()
                .is_ok()
        );
        scratch.takeup(&["hooks", "status"]).exits(0);
        scratch.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        assert_eq!(settled(&scratch.repo()).observations.len(), 1);
    }
}

/// Hooks that were put into one folder and, after the setting was changed, into another one are taken out of both.
#[test]
fn hooks_in_a_folder_that_git_looked_into_before_are_taken_out_as_well() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let first = scratch.repo().join(".git/first");
    let outside = scratch.path().join("outside");
    for folder in [&first, &outside, &hooks_folder(&scratch)] {
        script(&folder.join("post-commit"), "#!/bin/sh\necho mine\n");
    }
    let before = whole(&scratch.path());
    for setting in [".git/first", outside.to_str().unwrap(), ".git/made"] {
        scratch.git(&["config", "core.hooksPath", setting]);
        scratch.takeup(&["hooks", "install"]).exits(0);
    }
    scratch.git(&["config", "--unset-all", "core.hooksPath"]);
    scratch.takeup(&["hooks", "install"]).exits(0);
    // The last installation counts for what was missed.
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    settled(&scratch.repo());
    scratch.takeup(&["hooks", "status"]).exits(0);
    let answer = scratch
        .takeup(&["hooks", "uninstall", "--json"])
        .exits(0)
        .json();
    let notes = answer["data"]["notes"].as_array().unwrap();
    assert!(
        notes.len() == 1 && notes[0].as_str().unwrap().contains("outside stay"),
        "{notes:?}"
    );
    assert!(state(&scratch.repo()).hooks.is_empty());
    assert!(!scratch.repo().join(".git/made").exists());
    // What is said to stay goes where git looks there again.
    scratch.git(&["config", "core.hooksPath", outside.to_str().unwrap()]);
    scratch.takeup(&["hooks", "uninstall"]).exits(0);
    scratch.git(&["config", "--unset-all", "core.hooksPath"]);
    let hooks = |picture: &str| -> Vec<String> {
        let of_hooks = |line: &&str| {
            line.contains("hooks") || line.contains("first") || line.starts_with("outside")
        };
        timeless(picture)
            .lines()
            .filter(of_hooks)
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(hooks(&whole(&scratch.path())), hooks(&before));
}
