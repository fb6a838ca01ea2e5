//! What changed since a task was left, path by path, and what the next one is told.
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

use serde_json::{Value, json};
use takeup_tests::{Ran, Scratch};

use super::{candidate, scratch};

/// Commits everything, and starts and saves `t1` in session `s1`.
fn left_with(scratch: &Scratch) {
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-q", "-m", "all", "--allow-empty"]);
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    scratch.takeup(&["save", "--session", "s1"]).exits(0);
}

fn diff(scratch: &Scratch) -> Value {
    scratch
        .takeup(&["diff", "t1", "--patch", "--json"])
        .exits(1)
        .json()
}

/// The changed path of that name.
fn path<'a>(diff: &'a Value, name: &str) -> &'a Value {
    let paths = diff["data"]["changes"]["paths"].as_array().unwrap();
    let mut found = paths.iter().filter(|path| path["path"] == name);
    found
        .next()
        .unwrap_or_else(|| panic!("no {name} in {diff:#}"))
}

fn patch(diff: &Value, name: &str) -> String {
    let patches = diff["data"]["patches"].as_array().unwrap();
    let found = patches.iter().find(|patch| patch["path"] == name).unwrap();
    found["patch"]
        .as_str()
        .unwrap_or_else(|| panic!("no patch of {name}: {found:#}"))
        .to_owned()
}

#[test]
fn a_patch_does_not_read_through_a_link() {
    let scratch = scratch();
    scratch.write("d/passwd", "mine\n");
    left_with(&scratch);
    let outside = scratch.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("passwd"), "SECRET\n").unwrap();
    std::fs::remove_dir_all(scratch.repo().join("d")).unwrap();
    symlink(&outside, scratch.repo().join("d")).unwrap();
    let diff = diff(&scratch);
    assert_eq!(path(&diff, "d/passwd")["verb"], "deleted");
    let patch = patch(&diff, "d/passwd");
    assert!(patch.contains("-mine"), "{patch}");
    assert!(!diff.to_string().contains("SECRET"), "{diff:#}");
}

#[test]
fn a_patch_compares_what_git_stores() {
    let scratch = scratch();
    scratch.write(".gitattributes", "*.txt text eol=crlf\n");
    scratch.write("crlf.txt", "one\r\ntwo\r\nthree\r\n");
    left_with(&scratch);
    scratch.write("crlf.txt", "one\r\n2\r\nthree\r\n");
    let diff = diff(&scratch);
    let patch = patch(&diff, "crlf.txt");
    let changed: Vec<&str> = patch
        .lines()
        .filter(|line| line.starts_with(['-', '+']))
        .filter(|line| !line.starts_with("---") && !line.starts_with("+++"))
        .collect();
    assert_eq!(changed, ["-two", "+2"], "{patch}");
}

/// Git undoes what a patch shows, and does it again.
#[test]
fn files_that_came_and_went_are_new_and_deleted_in_a_patch() {
    let scratch = scratch();
    scratch.write("gone", "gone\n");
    scratch.write("emptied", "content\n");
    scratch.write("was-empty", "");
    left_with(&scratch);
    scratch.write("new", "new\n");
    scratch.write("new-empty", "");
    scratch.write("emptied", "");
    scratch.write("run.sh", "true\n");
    let program = scratch.repo().join("run.sh");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["gone", "was-empty"] {
        std::fs::remove_file(scratch.repo().join(name)).unwrap();
    }
    let diff = diff(&scratch);
    let whole: String = ["emptied", "gone", "new", "new-empty", "run.sh", "was-empty"]
        .map(|name| patch(&diff, name))
        .concat();
    let file = scratch.path().join("patch");
    std::fs::write(&file, &whole).unwrap();
    let there = tree_of(&scratch);
    let file = file.to_str().unwrap();
    scratch.git(&["apply", "-R", file]);
    assert_eq!(scratch.git(&["status", "--porcelain"]), "", "{whole}");
    scratch.git(&["apply", file]);
    assert_eq!(tree_of(&scratch), there, "{whole}");
}

/// The tree that git would make of everything there.
fn tree_of(scratch: &Scratch) -> String {
    scratch.git(&["add", "-A"]);
    let tree = scratch.git(&["write-tree"]);
    scratch.git(&["reset", "-q"]);
    tree
}

#[test]
fn a_mode_that_changed_is_said() {
    let scratch = scratch();
    scratch.write("run.sh", "true\n");
    left_with(&scratch);
    let file = scratch.repo().join("run.sh");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let diff = diff(&scratch);
    assert_eq!(
        path(&diff, "run.sh")["modes"],
        json!({"left": "100644", "there": "100755"})
    );
    let patch = patch(&diff, "run.sh");
    assert!(
        patch.contains("old mode 100644\nnew mode 100755\n"),
        "{patch}"
    );
    let text = scratch.takeup(&["diff", "t1"]).exits(1).stdout;
    assert!(text.contains("mode 100755 was 100644"), "{text}");
    // Plain git says the same of it.
    let judge = scratch.git(&["diff", "--summary"]);
    assert!(
        judge.contains("mode change 100644 => 100755 run.sh"),
        "{judge}"
    );
}

/// What happened to a path inside a submodule is said as git says it there.
#[test]
fn what_changed_in_a_submodule_is_named_as_its_own_git_does() {
    let scratch = scratch();
    scratch.git(&["init", "-q", "-b", "main", "../other"]);
    let other = scratch.path().join("other");
    for name in ["changed", "deleted", "kept", "lost"] {
        std::fs::write(other.join(name), "one\n").unwrap();
    }
    scratch.git_in(&other, &["add", "-A"]);
    scratch.git_in(&other, &["commit", "-q", "-m", "x"]);
    let other = other.to_str().unwrap();
    let allowed = "protocol.file.allow=always";
    scratch.git(&["-c", allowed, "submodule", "--quiet", "add", other, "sub"]);
    let sub = scratch.repo().join("sub");
    scratch.write("sub/gone", "untracked\n");
    scratch.write("sub/committed", "untracked\n");
    std::fs::remove_file(sub.join("lost")).unwrap();
    left_with(&scratch);
    scratch.write("sub/changed", "two\n");
    scratch.write("sub/new", "new\n");
    scratch.write("sub/staged", "staged\n");
    scratch.git_in(&sub, &["add", "staged"]);
    std::fs::remove_file(sub.join("deleted")).unwrap();
    std::fs::remove_file(sub.join("gone")).unwrap();
    scratch.git(&["-C", "sub", "checkout", "-q", "--", "lost"]);

    let verbs = |diff: &Value| -> Vec<(String, String)> {
        let paths = diff["data"]["changes"]["paths"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        paths
            .iter()
            .map(|path| (text(&path["path"]), text(&path["verb"])))
            .filter(|(path, _)| path.starts_with("sub/") && path != "sub/committed")
            .collect()
    };
    let judge = scratch.git_in(&sub, &["status", "--porcelain", "-uall"]);
    for said in [" M changed", " D deleted", "?? new", "A  staged"] {
        assert!(judge.lines().any(|line| line == said), "{judge}");
    }
    let expected = [
        ("sub/changed", "modified"),
        ("sub/deleted", "deleted"),
        ("sub/gone", "deleted"),
        ("sub/lost", "added"),
        ("sub/new", "added"),
        ("sub/staged", "added"),
    ];
    let expected = expected.map(|(path, verb)| (path.to_owned(), verb.to_owned()));
    assert_eq!(verbs(&diff(&scratch)), expected);

    // What was untracked is in a commit of the submodule now: neither new nor gone.
    scratch.git_in(&sub, &["add", "committed"]);
    scratch.git_in(&sub, &["commit", "-q", "-m", "more"]);
    let diff = diff(&scratch);
    assert_eq!(path(&diff, "sub/committed")["verb"], "modified");
    assert_eq!(path(&diff, "sub/committed")["place"], "restored");
}

/// Whoever goes on is bound by the boundary.
#[test]
fn a_hand_over_says_what_the_task_may_edit() {
    let scratch = scratch();
    let start = ["start", "bound", "--no-checks", "--allow", "src/"];
    scratch
        .takeup(&[&start[..], &["--avoid", "src/made/", "--session", "s1"]].concat())
        .exits(0);
    let document = scratch.takeup(&["handover", "bound"]).exits(0).stdout;
    for said in ["may edit only: `src/`", "must not touch: `src/made/`"] {
        assert!(document.contains(said), "{said}: {document}");
    }
}

/// Names of which no two look alike on a page, nor in a hand-over.
#[test]
fn names_that_differ_look_different() {
    let scratch = scratch();
    left_with(&scratch);
    let names = ["a b", "a  b", " a b", "a b ", "a\u{202e}b", "\"a\""];
    for name in names {
        scratch.write(name, "x\n");
    }
    let shown = [
        "a b",
        "a  b",
        "\" a b\"",
        "\"a b \"",
        r"a\xe2\x80\xaeb",
        "\"\"a\"\"",
    ];
    let page = scratch.takeup(&["diff", "t1"]).exits(1).stdout;
    for shown in shown {
        let line = format!("A {shown} (");
        assert!(page.contains(&line), "{line:?}: {page}");
    }
    let document = scratch.takeup(&["handover", "t1"]).exits(0).stdout;
    for shown in shown {
        let span = format!("`{shown}`: added");
        assert!(document.contains(&span), "{span:?}: {document}");
    }
}

#[test]
fn a_repository_that_was_not_there_is_added() {
    let scratch = scratch();
    left_with(&scratch);
    scratch.git(&["init", "-q", "empty"]);
    scratch.git(&["init", "-q", "nest"]);
    scratch.git(&["-C", "nest", "commit", "-q", "--allow-empty", "-m", "x"]);
    scratch.git(&["worktree", "add", "-q", "tree"]);
    let diff = diff(&scratch);
    for name in ["empty", "nest", "tree"] {
        assert_eq!(path(&diff, name)["verb"], "added", "{name}");
    }
}

#[test]
fn what_another_session_recorded_first_is_named() {
    let scratch = scratch();
    left_with(&scratch);
    scratch.write("theirs.txt", "x\n");
    scratch
        .takeup(&["start", "t2", "--session", "B", "--no-checks"])
        .exits(0);
    scratch.write("a.txt", "theirs\n");
    scratch.takeup(&["save", "--session", "B"]).exits(0);
    scratch.write("nobodys.txt", "x\n");
    let diff = diff(&scratch);
    for name in ["theirs.txt", "a.txt"] {
        assert_eq!(path(&diff, name)["by"]["id"], "B", "{name}");
    }
    assert_eq!(path(&diff, "nobodys.txt")["by"], Value::Null);
    let found = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let listed = candidate(&found, "t1", "s1")["changes"]["paths"].clone();
    assert_eq!(listed[0]["by"]["id"], "B", "{listed:#}");
    // What changed again after that record is nobody's.
    scratch.write("a.txt", "mine\n");
    let diff = self::diff(&scratch);
    assert_eq!(path(&diff, "a.txt")["by"], Value::Null);
}

#[test]
fn a_hand_over_carries_what_was_asked_with_its_lines() {
    let scratch = scratch();
    scratch
        .takeup(&[
            "start",
            "t1",
            "--session",
            "ses_1",
            "--agent",
            "opencode",
            "--no-checks",
        ])
        .exits(0);
    let asked = format!("Do this:\n- first {}\n- last word", "x".repeat(600));
    let payload = json!({"sessionID": "ses_1", "directory": scratch.repo(), "prompt": asked});
    let mut hook = scratch
        .program_in(&scratch.repo())
        .args(["hook", "opencode", "turn-start"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = hook.stdin.take().unwrap();
    stdin.write_all(payload.to_string().as_bytes()).unwrap();
    drop(stdin);
    assert!(hook.wait().unwrap().success());
    let document = scratch
        .takeup(&["handover", "t1", "--json"])
        .exits(0)
        .json();
    let quoted = document["data"]["document"]["sections"]
        .as_array()
        .unwrap()
        .iter()
        .find(|section| section["id"] == "asked")
        .unwrap_or_else(|| panic!("{document:#}"))["lines"][0]["quote"]
        .clone();
    assert_eq!(quoted, asked);
    // An agent that takes none by itself can read a file.
    scratch.put_program("codex", "#!/bin/sh\n");
    let refused: Ran = scratch.takeup(&["handover", "t1", "--to", "codex", "--json"]);
    let hint = refused.json()["error"]["hint"].clone();
    assert!(
        hint.as_str().unwrap_or_default().contains("-o FILE"),
        "{hint}"
    );
}

/// Demands that no change is claimed but those named, and that the list is said not to be whole.
fn claims_no_more(diff: &Value, changes: &[(&str, &str)]) {
    let paths = diff["data"]["changes"]["paths"].as_array().unwrap();
    let claimed: Vec<(&str, &str)> = paths
        .iter()
        .map(|path| {
            (
                path["path"].as_str().unwrap(),
                path["verb"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        claimed, changes,
        "{}",
        diff["data"]["changes"]["incomplete"]
    );
    assert_ne!(diff["data"]["changes"]["incomplete"], Value::Null);
}

#[test]
fn what_fell_off_a_cut_list_is_not_said_to_be_gone() {
    let scratch = scratch();
    scratch.git(&["init", "-q", "inner"]);
    scratch.git(&["-C", "inner", "commit", "-q", "--allow-empty", "-m", "x"]);
    for number in 1..=1_100 {
        scratch.write(&format!("f{number:04}"), "x\n");
    }
    scratch.write("inner/mine", "x\n");
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    scratch.write("a0", "a\n");
    scratch.write("f0500b", "b\n");
    std::fs::remove_file(scratch.repo().join("f0003")).unwrap();
    // Beyond what either list holds.
    std::fs::remove_file(scratch.repo().join("f1099")).unwrap();
    let known = [("a0", "added"), ("f0003", "deleted"), ("f0500b", "added")];
    claims_no_more(&diff(&scratch), &known);
    let text = scratch.takeup(&["diff", "t1"]).exits(1).stdout;
    for words in [
        "3 paths changed since it was left, perhaps more",
        "3 paths known",
        "\"f0999\" not all are compared",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    let found = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let listed = &candidate(&found, "t1", "s1")["changes"];
    assert_eq!(listed["paths"].as_array().unwrap().len(), 3, "{listed:#}");
    let document = scratch.takeup(&["handover", "t1"]).exits(0).stdout;
    assert_eq!(document.matches(": deleted").count(), 1, "{document}");
    assert!(document.contains("this list is not whole"), "{document}");
}

#[test]
fn what_a_great_commit_took_in_is_not_said_to_be_gone() {
    let scratch = scratch();
    scratch.write("z", "mine\n");
    left_untracked(&scratch);
    for number in 1..=1_100 {
        scratch.write(&format!("f{number:04}"), "x\n");
    }
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-q", "-m", "all"]);
    scratch.write("a.txt", "two\n");
    let found = diff(&scratch);
    let paths = found["data"]["changes"]["paths"].as_array().unwrap();
    assert!(paths.iter().all(|path| path["path"] != "z"), "{paths:#?}");
    assert_eq!(path(&found, "a.txt")["verb"], "modified");
    assert_eq!(paths.len(), 1_001);
    assert!(
        found["summary"].as_str().unwrap().ends_with("perhaps more"),
        "{found:#}"
    );
}

/// As [`left_with`], and commits nothing.
fn left_untracked(scratch: &Scratch) {
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    scratch.takeup(&["save", "--session", "s1"]).exits(0);
}

#[test]
fn without_the_commit_it_was_left_on_no_path_is_said_to_be_gone() {
    let scratch = scratch();
    scratch.write("z", "mine\n");
    left_untracked(&scratch);
    scratch.git(&["add", "z"]);
    scratch.git(&["commit", "-q", "--amend", "-m", "other"]);
    scratch.git(&["reflog", "expire", "--expire=now", "--all"]);
    scratch.git(&["gc", "-q", "--prune=now"]);
    scratch.write("b", "new\n");
    let found = diff(&scratch);
    claims_no_more(&found, &[]);
    let text = scratch.takeup(&["diff", "t1"]).exits(1).stdout;
    assert!(text.contains("which paths changed is not known"), "{text}");
    assert!(text.contains("cannot be compared"), "{text}");
}
