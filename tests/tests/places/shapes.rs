//! Each shape gets the right verdict, or is refused by its name.
use std::os::unix::ffi::OsStrExt as _;

use super::*;

/// Left, compatible; changed, stale; restored, compatible again. The repository itself is untouched.
fn full_circle(scratch: &Scratch, root: &Path, file: &Path) {
    leave(scratch, root, "task", "s1");
    assert_eq!(verdict(scratch, root), "resume-verification");
    let content = fs::read(file).unwrap();
    fs::write(file, [&content[..], b"changed\n"].concat()).unwrap();
    assert_eq!(verdict(scratch, root), "stale-task");
    fs::write(file, content).unwrap();
    assert_eq!(verdict(scratch, root), "resume-verification");
}

fn made(scratch: &Scratch, name: &str, options: &[&str]) -> Option<std::path::PathBuf> {
    let root = scratch.path().join(name);
    fs::create_dir(&root).unwrap();
    let init = [&["init", "-q", "-b", "main"], options].concat();
    if !scratch.git_may_fail(&root, &init).status.success() {
        println!("skipped: this git cannot {init:?}");
        return None;
    }
    fs::write(root.join("f"), "one\n").unwrap();
    scratch.git_in(&root, &["add", "f"]);
    scratch.git_in(&root, &["commit", "-q", "-m", "first"]);
    Some(root)
}

#[test]
fn object_and_reference_formats() {
    let scratch = Scratch::new(PROGRAM);
    for (name, option) in [
        ("sha256", "--object-format=sha256"),
        ("reftable", "--ref-format=reftable"),
    ] {
        if let Some(root) = made(&scratch, name, &[option]) {
            full_circle(&scratch, &root, &root.join("f"));
        }
    }
}

#[test]
fn partial_clones_and_sparse_checkouts() {
    let scratch = Scratch::new(PROGRAM);
    let source = made(&scratch, "source", &[]).unwrap();
    fs::create_dir(source.join("in")).unwrap();
    fs::create_dir(source.join("out")).unwrap();
    for path in ["in/a", "out/b"] {
        fs::write(source.join(path), path).unwrap();
    }
    scratch.git_in(&source, &["add", "-A"]);
    scratch.git_in(&source, &["commit", "-q", "-m", "more"]);
    scratch.git_in(&source, &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", source.display());
    scratch.git_in(
        &scratch.path(),
        &["clone", "-q", "--filter=blob:none", &url, "partial"],
    );
    let partial = scratch.path().join("partial");
    scratch.git_in(&partial, &["config", "core.repositoryFormatVersion", "1"]);
    scratch.git_in(&partial, &["config", "extensions.partialClone", "origin"]);
    full_circle(&scratch, &partial, &partial.join("f"));

    for index in ["--no-sparse-index", "--sparse-index"] {
        let name = format!("sparse{index}");
        scratch.git_in(&scratch.path(), &["clone", "-q", "source", &name]);
        let sparse = scratch.path().join(&name);
        scratch.git_in(&sparse, &["sparse-checkout", "set", index, "in"]);
        assert!(!sparse.join("out").exists());
        full_circle(&scratch, &sparse, &sparse.join("in/a"));
    }
}

#[test]
fn a_git_folder_without_head_belongs_to_the_repository_around_it() {
    let scratch = Scratch::new(PROGRAM);
    let sub = scratch.repo().join("sub");
    fs::create_dir_all(sub.join(".git/ai")).unwrap();
    full_circle(&scratch, &sub, &scratch.repo().join("a.txt"));
    let answer = scratch.takeup_in(&sub, &["inspect", "--json"]).json();
    assert_eq!(
        answer["data"]["repository"]["root"],
        scratch.repo().to_str().unwrap()
    );
    assert!(!sub.join(".git/takeup").exists());
}

#[test]
fn any_change_inside_a_submodule_is_a_change() {
    let scratch = Scratch::new(PROGRAM);
    let library = made(&scratch, "library", &[]).unwrap();
    scratch.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        library.to_str().unwrap(),
        "lib",
    ]);
    scratch.git(&["commit", "-q", "-m", "with a submodule"]);
    let repo = scratch.repo();
    let inner = repo.join("lib");
    leave(&scratch, &repo, "task", "s1");
    assert_eq!(verdict(&scratch, &repo), "resume-verification");
    for (change, undo) in [
        (
            &["sh", "-c", "echo x >> f"][..],
            &["git", "checkout", "-q", "f"][..],
        ),
        (
            &["sh", "-c", "echo x > untracked"][..],
            &["rm", "untracked"],
        ),
        (
            &["sh", "-c", "git commit -q --allow-empty -m moved"][..],
            &["git", "reset", "-q", "--hard", "HEAD~1"],
        ),
        (
            &["mv", "../.git/modules/lib", "../.git/modules/gone"][..],
            &["mv", "../.git/modules/gone", "../.git/modules/lib"],
        ),
        (
            &["git", "-C", "..", "submodule", "-q", "deinit", "-f", "lib"][..],
            &["git", "-C", "..", "submodule", "-q", "update", "--init"],
        ),
    ] {
        for (command, expected) in [(change, "stale-task"), (undo, "resume-verification")] {
            let mut run = Command::new(command[0]);
            scratch.dress(&mut run);
            assert!(
                run.current_dir(&inner)
                    .args(&command[1..])
                    .status()
                    .unwrap()
                    .success()
            );
            assert_eq!(verdict(&scratch, &repo), expected, "{command:?}");
            let shown = scratch.takeup(&["inspect"]).stdout;
            let named = shown.contains("lib");
            assert_eq!(named, expected == "stale-task", "{command:?}: {shown}");
        }
    }
}

#[test]
fn work_trees_of_a_bare_repository_work_and_the_bare_one_is_refused() {
    let scratch = Scratch::new(PROGRAM);
    let bare = scratch.path().join("bare.git");
    scratch.git_in(
        &scratch.path(),
        &["clone", "-q", "--bare", "repo", "bare.git"],
    );
    scratch.git_in(&bare, &["config", "extensions.worktreeConfig", "true"]);
    scratch.git_in(&bare, &["worktree", "add", "-q", "../tree", "main"]);
    let tree = scratch.path().join("tree");
    let before = picture(&bare, &|_| false);
    let refused = scratch
        .takeup_in(&bare, &["inspect", "--json"])
        .exits(1)
        .json();
    assert_eq!(refused["error"]["code"], "bare-repository");
    assert_eq!(picture(&bare, &|_| false), before);
    full_circle(&scratch, &tree, &tree.join("a.txt"));
}

#[test]
fn unborn_branches_and_odd_names() {
    let scratch = Scratch::new(PROGRAM);
    let root = scratch.path().join("unborn");
    fs::create_dir(&root).unwrap();
    scratch.git_in(&root, &["init", "-q"]);
    let odd = root.join(std::ffi::OsStr::from_bytes(b"new\nline \xff\x1b[31m"));
    fs::write(&odd, "odd\n").unwrap();
    full_circle(&scratch, &root, &odd);
    fs::remove_file(&odd).unwrap();
    let shown = scratch.takeup_in(&root, &["inspect"]);
    assert!(!shown.stdout.contains('\u{1b}'), "{:?}", shown.stdout);
    assert_eq!(verdict(&scratch, &root), "stale-task");
}

#[test]
fn what_cannot_be_used_is_refused_by_its_kind() {
    let scratch = Scratch::new(PROGRAM);
    let refused = scratch
        .takeup_in(&scratch.home(), &["inspect", "--json"])
        .exits(1)
        .json();
    assert_eq!(refused["error"]["code"], "not-a-repository");
    fs::write(scratch.repo().join(".git/HEAD"), "nonsense\n").unwrap();
    let refused = scratch.takeup(&["inspect", "--json"]).json();
    assert_eq!(refused["ok"], false);
    assert!(!scratch.repo().join(".git/takeup").exists());
}

#[test]
fn what_git_says_of_a_repository_it_cannot_read_is_passed_on_whole() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["config", "core.repositoryFormatVersion", "1"]);
    scratch.git(&["config", "extensions.noSuchThing", "true"]);
    let refused = scratch.takeup(&["inspect", "--json"]).exits(1).json();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.to_lowercase().contains("nosuchthing"), "{message}");

    let scratch = Scratch::new(PROGRAM);
    let index = scratch.repo().join(".git/index");
    let bytes = std::fs::read(&index).unwrap();
    std::fs::write(&index, &bytes[..30]).unwrap();
    let looked = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let why = looked["data"]["incomplete"].as_str().unwrap();
    assert!(why.contains(index.to_str().unwrap()), "{why}");
}

#[test]
fn the_ledger_is_no_content_where_the_git_folder_has_another_name() {
    for linked in [false, true] {
        let scratch = Scratch::new(PROGRAM);
        let repo = scratch.repo();
        let data = repo.join(".gitdata");
        fs::rename(repo.join(".git"), &data).unwrap();
        if linked {
            fs::write(repo.join(".git"), "gitdir: .gitdata\n").unwrap();
        }
        let dress = |command: &mut Command| {
            if !linked {
                command.env("GIT_DIR", &data).env("GIT_WORK_TREE", &repo);
            }
        };
        let takeup = |words: &[&str]| {
            let mut command = scratch.program_in(&repo);
            dress(&mut command);
            takeup_tests::Ran::of(command.args(words).output().unwrap())
        };
        takeup(&["start", "t1", "--session", "s1"]).exits(0);
        fs::write(repo.join("w.txt"), "work\n").unwrap();
        takeup(&["save", "--session", "s1"]).exits(0);
        takeup(&["note", "more in the journal", "--session", "s1"]).exits(0);
        let seen = takeup(&["inspect", "--json"]).exits(0).json();
        let verdict = &seen["data"]["candidates"][0]["verdict"];
        assert_eq!(*verdict, "resume-verification", "{seen:#}");
        takeup(&["resume", "t1", "--to", "s2", "--confirm"]).exits(0);
        let seen = takeup(&["inspect", "--json"]).exits(0).json();
        let verdict = &seen["data"]["candidates"][0]["verdict"];
        assert_eq!(*verdict, "resume-verification", "{seen:#}");
        // Git sees the same.
        let mut git = Command::new("git");
        scratch.dress(&mut git);
        dress(&mut git);
        let listed = git.args(["status", "--porcelain", "-uall"]);
        let listed = listed.current_dir(&repo).output().unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(
            listed.contains("?? w.txt") && !listed.contains("takeup"),
            "{listed}"
        );
    }
}

#[test]
fn a_work_tree_of_the_repository_inside_it_is_named() {
    let scratch = Scratch::new(PROGRAM);
    leave(&scratch, &scratch.repo(), "t1", "s1");
    scratch.git(&["worktree", "add", "-q", ".claude/worktrees/x", "-b", "x"]);
    scratch.git(&["init", "-q", "other"]);
    let other = scratch.repo().join("other");
    scratch.git_in(&other, &["commit", "-q", "--allow-empty", "-m", "x"]);
    let said = scratch.takeup(&["inspect"]).exits(0).stdout;
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    assert!(
        lines.iter().any(|line| line.contains("x (worktree)")),
        "{said}"
    );
    assert!(
        lines.iter().any(|line| line.contains("other (nested)")),
        "{said}"
    );
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("a work tree of this repository lies inside"),
        "{said}"
    );
    fs::remove_dir_all(&other).unwrap();
    scratch.write(".git/info/exclude", ".claude/worktrees/\n");
    assert_eq!(verdict(&scratch, &scratch.repo()), "resume-verification");
}

#[test]
fn a_place_that_git_cannot_open_names_the_way_out() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["worktree", "add", "-q", "../it's w", "-b", "w"]);
    leave(&scratch, &scratch.repo(), "t1", "s1");
    scratch.takeup(&["save", "--session", "s1"]).exits(0);
    let linked = scratch.path().join("it's w");
    let moved = scratch.path().join("moved");
    fs::rename(scratch.repo(), &moved).unwrap();
    let refused = scratch.takeup_in(&linked, &["inspect"]).exits(1);
    let command = refused.stderr.split("run in it: ").nth(1).unwrap();
    let command = command.split(';').next().unwrap();
    let mut shell = Command::new("sh");
    scratch.dress(&mut shell);
    let mended = shell.args(["-c", command]).current_dir(&moved).output();
    assert!(mended.unwrap().status.success(), "{}", refused.stderr);
    let seen = scratch.takeup_in(&linked, &["inspect", "--json"]).json();
    let next = format!("git -C {} takeup inspect", moved.display());
    assert_eq!(seen["next"]["command"], next, "{seen:#}");
    let refused = scratch
        .takeup_in(&linked, &["save", "--session", "s1"])
        .exits(4);
    assert!(refused.stderr.contains(&next), "{}", refused.stderr);

    scratch.git_in(&moved, &["config", "core.bare", "true"]);
    let refused = scratch.takeup_in(&moved, &["inspect"]).exits(1);
    assert!(
        refused.stderr.contains("core.bare false"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_locked_work_tree_that_is_not_there_is_waited_for() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["worktree", "add", "-q", "../disk", "-b", "disk"]);
    let disk = scratch.path().join("disk");
    leave(&scratch, &disk, "t1", "s1");
    scratch.git(&[
        "worktree",
        "lock",
        "../disk",
        "--reason",
        "on the portable disk",
    ]);
    let away = scratch.path().join("away");
    fs::rename(&disk, &away).unwrap();
    let said = scratch.takeup(&["inspect"]).exits(0).stdout;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("locked: on the portable disk") && said.contains("when it is back"),
        "{said}"
    );
    assert!(!said.contains("is gone"), "{said}");
    let refused = scratch.takeup(&["start", "t1", "--session", "s2"]).exits(5);
    assert!(
        refused.stderr.contains("when it is back"),
        "{}",
        refused.stderr
    );
    fs::rename(&away, &disk).unwrap();
    assert_eq!(verdict(&scratch, &disk), "resume-verification");
}

#[test]
fn in_a_work_tree_without_a_task_no_move_is_confirmed() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["worktree", "add", "-q", "../w", "-b", "w"]);
    leave(&scratch, &scratch.path().join("w"), "t1", "s1");
    let said = scratch.takeup(&["init", "--moved"]).exits(0).stdout;
    assert!(said.contains("no task was left at another place"), "{said}");
}
