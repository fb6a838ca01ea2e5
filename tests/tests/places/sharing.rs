//! Folders that share one git folder are no copies of each other: there is one ledger, and nothing in it is put out of sight.
use takeup_tests::Ran;

use super::*;

/// Runs the program in a folder with variables of git's.
fn with(scratch: &Scratch, folder: &Path, variables: &[(&str, &Path)], words: &[&str]) -> Ran {
    let mut command = scratch.program_in(folder);
    command.envs(variables.iter().copied()).args(words);
    Ran::of(command.output().unwrap())
}

/// Runs a command that the program named, as a person would. Returns what it printed.
fn as_named(scratch: &Scratch, folder: &Path, variables: &[(&str, &Path)], line: &str) -> String {
    let bin = scratch.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let program = bin.join("git-takeup");
    if !program.exists() {
        std::os::unix::fs::symlink(PROGRAM, &program).unwrap();
    }
    let mut shell = Command::new("sh");
    scratch.dress(&mut shell);
    let path = format!("PATH={}:$PATH; {line}", bin.display());
    let done = shell
        .args(["-c", &path])
        .envs(variables.iter().copied())
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{line}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// The task of the place, and the session that only hooks told of, are there, and may be taken up.
fn all_is_there(scratch: &Scratch, folder: &Path) {
    let found = candidates(scratch, folder);
    assert_eq!(found.len(), 2, "{found:?}");
    for one in found {
        assert_eq!(one.1, "resume-verification", "{one:?}");
    }
    scratch.takeup_in(folder, &["show", "t1"]).exits(0);
}

/// In `other` the program says that what was left in `root` is there, why, and how to go on; `init --copied` refuses.
fn no_copy(scratch: &Scratch, root: &Path, other: &Path, variables: &[(&str, &Path)], why: &str) {
    let ledger = || {
        let git = scratch.git_in(
            root,
            &["rev-parse", "--path-format=absolute", "--git-common-dir"],
        );
        picture(&Path::new(git.trim()).join("takeup"), &|_| false)
    };
    let before = ledger();
    let found = with(scratch, other, variables, &["inspect", "--json"]).json();
    let candidates = found["data"]["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 2, "{found:#}");
    for candidate in candidates {
        assert_eq!(candidate["verdict"], "mismatched-repository");
        let said = candidate["reasons"][0]["message"].as_str().unwrap();
        assert!(said.contains(why), "{said}");
        assert!(!candidate.to_string().contains("--copied"), "{candidate}");
        assert_eq!(candidate["next"]["action"], "go-there");
    }
    let next = found["next"]["command"].as_str().unwrap();
    let there = as_named(scratch, other, variables, next);
    assert!(there.contains("resume-verification"), "{next}: {there}");
    let refused = with(scratch, other, variables, &["init", "--copied"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("shares its git folder with"),
        "{refused:?}"
    );
    let spoken: Vec<&str> = refused.stderr.split_whitespace().collect();
    assert!(spoken.join(" ").contains(why), "{refused:?}");
    let saved = with(scratch, other, variables, &["save", "--session", "s1"]);
    assert_eq!(saved.code, 1, "{saved:?}");
    assert_eq!(ledger(), before, "looking and refusing wrote something");
}

#[test]
fn a_work_tree_named_by_a_setting_is_no_copy() {
    let scratch = Scratch::new(PROGRAM);
    let root = scratch.repo();
    leave(&scratch, &root, "t1", "s1");
    hooked(&scratch, "cs1", &root, &[]);
    let other = scratch.path().join("the other");
    fs::create_dir(&other).unwrap();
    scratch.git(&["config", "core.worktree", other.to_str().unwrap()]);
    let ledger = root.join(".git/takeup");
    let before = picture(&ledger, &|_| false);
    let found = scratch.takeup_in(&root, &["inspect", "--json"]).json();
    let first = &found["data"]["candidates"][0];
    let said = first["reasons"][0]["message"].as_str().unwrap();
    assert!(said.contains("core.worktree"), "{said}");
    let next = found["next"]["command"].as_str().unwrap();
    assert!(as_named(&scratch, &root, &[], next).contains("resume-verification"));
    let refused = scratch.takeup_in(&root, &["init", "--copied"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("core.worktree"), "{refused:?}");
    assert_eq!(picture(&ledger, &|_| false), before);
    scratch.git(&["config", "--unset", "core.worktree"]);
    all_is_there(&scratch, &root);

    // Where the work tree is there for good, what was left goes along, and back.
    scratch.git(&["config", "core.worktree", other.to_str().unwrap()]);
    scratch.takeup_in(&root, &["init", "--moved"]).exits(0);
    for one in candidates(&scratch, &root) {
        assert_eq!(one.1, "stale-task", "{one:?}");
    }
    scratch.git(&["config", "--unset", "core.worktree"]);
    let found = scratch.takeup(&["inspect", "--json"]).json();
    let next = found["next"]["command"].as_str().unwrap();
    assert!(as_named(&scratch, &root, &[], next).contains("stale-task"));
    scratch.takeup(&["init", "--copied"]).exits(1);
    scratch.takeup(&["init", "--moved"]).exits(0);
    all_is_there(&scratch, &root);
}

#[test]
fn a_work_tree_named_by_the_environment_is_no_copy() {
    let scratch = Scratch::new(PROGRAM);
    let root = scratch.repo();
    leave(&scratch, &root, "t1", "s1");
    hooked(&scratch, "cs1", &root, &[]);
    let (other, folder) = (scratch.path().join("deploy"), root.join(".git"));
    fs::create_dir(&other).unwrap();
    let variables = [("GIT_DIR", &*folder), ("GIT_WORK_TREE", &*other)];
    no_copy(&scratch, &root, &other, &variables, "GIT_WORK_TREE");
    all_is_there(&scratch, &root);
}

#[test]
fn a_copy_that_shares_the_git_folder_is_no_copy_of_the_records() {
    let scratch = Scratch::new(PROGRAM);
    let original = scratch.path().join("w");
    let folder = scratch.path().join("folder");
    fs::create_dir(&original).unwrap();
    let init = ["init", "-q", "--separate-git-dir", folder.to_str().unwrap()];
    scratch.git_in(&original, &init);
    fs::write(original.join("a.txt"), "a\n").unwrap();
    let linked = scratch.path().join("linked");
    scratch.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    for root in [original, linked] {
        leave(&scratch, &root, "t1", "s1");
        hooked(&scratch, "cs1", &root, &[]);
        let copied = root.with_extension("copy");
        copy(&root, &copied);
        no_copy(&scratch, &root, &copied, &[], "git worktree add");
        let refused = scratch.takeup_in(&copied, &["init", "--moved"]);
        assert_eq!(refused.code, 1, "{refused:?}");
        all_is_there(&scratch, &root);
    }
}

/// The copy may be all that is left of an original that is gone.
#[test]
fn the_records_of_an_original_that_is_gone_are_kept() {
    let scratch = Scratch::new(PROGRAM);
    leave(&scratch, &scratch.repo(), "t1", "s1");
    scratch
        .takeup(&["note", "mind the gap", "t1", "--session", "s1"])
        .exits(0);
    let copied = scratch.path().join("copied");
    copy(&scratch.repo(), &copied);
    fs::remove_dir_all(scratch.repo()).unwrap();
    let done = scratch.takeup_in(&copied, &["init", "--copied"]).exits(0);
    assert!(!done.stdout.contains("stays with"), "{}", done.stdout);
    assert!(
        done.stdout.contains("git takeup show t1"),
        "{}",
        done.stdout
    );
    let shown = scratch.takeup_in(&copied, &["show", "t1"]).exits(0);
    assert!(shown.stdout.contains("mind the gap"), "{}", shown.stdout);
    assert!(candidates(&scratch, &copied).is_empty());
}

#[test]
fn a_folder_that_only_the_environment_tied_to_the_repository_is_not_said_to_be_gone() {
    let scratch = Scratch::new(PROGRAM);
    let (named, other) = (scratch.repo(), scratch.path().join("other"));
    fs::create_dir(&other).unwrap();
    scratch.git_in(&other, &["init", "-q"]);
    let folder = named.join(".git");
    let variables = [("GIT_DIR", &*folder)];
    with(
        &scratch,
        &other,
        &variables,
        &["start", "leak", "--session", "s1"],
    )
    .exits(0);
    with(
        &scratch,
        &other,
        &variables,
        &["save", "--session", "s1", "--end"],
    )
    .exits(0);
    let found = scratch.takeup(&["inspect", "--json"]).json();
    let candidate = &found["data"]["candidates"][0];
    let said = candidate["reasons"].to_string();
    assert!(
        said.contains("GIT_DIR") && !said.contains("not there any more"),
        "{said}"
    );
    let next = found["next"]["command"].as_str().unwrap();
    assert!(as_named(&scratch, &named, &[], next).contains("resume-verification"));

    // A hook records in the folder that the agent works in, not where a variable of its own leads.
    scratch.takeup_in(&other, &["init"]).exits(0);
    hooked(&scratch, "cs1", &other, &variables);
    assert_eq!(verdict(&scratch, &other), "resume-verification");
    assert_eq!(candidates(&scratch, &named).len(), 1);
    // Outside any repository the variables say which one is meant.
    let dotfiles = scratch.path().join("dotfiles");
    fs::create_dir(&dotfiles).unwrap();
    let variables = [("GIT_DIR", &*folder), ("GIT_WORK_TREE", &*dotfiles)];
    hooked(&scratch, "cs2", &dotfiles, &variables);
    let found = with(
        &scratch,
        &dotfiles,
        &variables,
        &["inspect", "--from", "cs2", "--json"],
    )
    .json();
    assert_eq!(
        found["data"]["candidates"][0]["verdict"],
        "resume-verification"
    );
}
