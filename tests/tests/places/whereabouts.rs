//! Cases P8 and P9.
use super::*;

#[test]
fn a_moved_repository_is_relocated_and_a_copy_is_a_copy() {
    let scratch = Scratch::new(PROGRAM);
    leave(&scratch, &scratch.repo(), "t1", "s1");
    let moved = scratch.path().join("moved");
    fs::rename(scratch.repo(), &moved).unwrap();
    let ledger = || fs::read(moved.join(".git/takeup/journal.jsonl")).unwrap();
    let before = ledger();
    let found = candidates(&scratch, &moved);
    assert_eq!(found[0].1, "mismatched-repository");
    assert!(found[0].2.contains(&"relocated".to_owned()), "{found:?}");
    assert!(
        found[0].2.contains(&"content-equal".to_owned()),
        "{found:?}"
    );
    scratch
        .takeup_in(&moved, &["resume", "t1", "--confirm"])
        .exits(1);
    assert_eq!(ledger(), before, "looking and refusing wrote something");

    let copied = scratch.path().join("copied");
    copy(&moved, &copied);
    let found = candidates(&scratch, &copied);
    assert_eq!(found[0].1, "mismatched-repository");
    assert!(found[0].2.contains(&"copied".to_owned()), "{found:?}");

    // Another repository at the old place has nothing to do with it.
    fs::create_dir(scratch.repo()).unwrap();
    scratch.git(&["init", "-q"]);
    let answer = scratch.takeup(&["inspect", "--json"]);
    assert!(!answer.stdout.contains("\"t1\""), "{}", answer.stdout);

    // The move is confirmed, and the task can be taken up.
    scratch.takeup_in(&moved, &["init", "--moved"]).exits(0);
    assert_eq!(verdict(&scratch, &moved), "resume-verification");
    // The copy becomes a place of its own; the task stays with the original.
    scratch.takeup_in(&copied, &["init", "--copied"]).exits(0);
    assert!(
        candidates(&scratch, &copied)
            .iter()
            .all(|one| one.1 != "resume-verification")
    );
    assert_eq!(verdict(&scratch, &moved), "resume-verification");
    scratch
        .takeup_in(&moved, &["resume", "t1", "--session", "s2", "--confirm"])
        .exits(0);
}

#[test]
fn a_link_is_the_same_place_and_like_names_are_not() {
    let scratch = Scratch::new(PROGRAM);
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink(scratch.repo(), &link).unwrap();
    leave(&scratch, &link, "by-link", "s1");
    assert_eq!(verdict(&scratch, &scratch.repo()), "resume-verification");
    assert_eq!(verdict(&scratch, &link), "resume-verification");

    let mut places = Vec::new();
    for (name, content) in [("a-b/c", "one\n"), ("a/b-c", "two\n")] {
        let folder = scratch.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        scratch.git_in(&folder, &["init", "-q", "-b", "main"]);
        fs::write(folder.join("f"), content).unwrap();
        scratch.git_in(&folder, &["add", "f"]);
        scratch.git_in(&folder, &["commit", "-q", "-m", "first"]);
        leave(&scratch, &folder, "same", "same");
        places.push(folder);
    }
    fs::write(places[0].join("f"), "changed\n").unwrap();
    assert_eq!(verdict(&scratch, &places[0]), "stale-task");
    assert_eq!(verdict(&scratch, &places[1]), "resume-verification");
}

#[test]
fn a_work_tree_that_was_removed_and_made_anew_is_another_one() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["worktree", "add", "-q", "../w", "-b", "w"]);
    let linked = scratch.path().join("w");
    leave(&scratch, &linked, "there", "s1");
    let codes = |folder: &Path| candidates(&scratch, folder)[0].2.clone();
    assert_eq!(verdict(&scratch, &linked), "resume-verification");
    assert!(codes(&scratch.repo()).contains(&"other-worktree".to_owned()));
    scratch.git(&["worktree", "remove", "../w"]);
    scratch.git(&["worktree", "add", "-q", "../w", "w"]);
    assert_eq!(verdict(&scratch, &linked), "mismatched-repository");
    assert!(codes(&linked).contains(&"worktree-gone".to_owned()));
    // A task of the new one is its own.
    leave(&scratch, &linked, "anew", "s2");
    let found = candidates(&scratch, &linked);
    let by_task = |task: &str| found.iter().find(|one| one.0 == task).unwrap().1.clone();
    assert_eq!(by_task("anew"), "resume-verification");
    assert_eq!(by_task("there"), "mismatched-repository");
}

#[test]
fn a_work_tree_that_was_made_anew_in_its_place_takes_its_tasks_over_on_request() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["worktree", "add", "-q", "../w", "-b", "w"]);
    scratch.git(&["worktree", "add", "-q", "../v", "-b", "v"]);
    let (linked, other) = (scratch.path().join("w"), scratch.path().join("v"));
    leave(&scratch, &linked, "there", "s1");
    leave(&scratch, &other, "elsewhere", "s2");
    scratch.git(&["worktree", "remove", "../w"]);
    scratch.git(&["worktree", "remove", "../v"]);
    // Not from the main one, and not from one at another path.
    scratch.takeup(&["init"]).exits(0);
    scratch.takeup(&["init", "--moved"]).exits(0);
    scratch.git(&["worktree", "add", "-q", "../w", "w"]);
    let next = |folder: &Path| {
        let answer = scratch
            .takeup_in(folder, &["inspect", "there", "--json"])
            .exits(0)
            .json();
        answer["next"]["command"].as_str().unwrap().to_owned()
    };
    assert_eq!(next(&scratch.repo()), "git takeup show there");
    // The way out is said where the records are shown, and leads there.
    let page = scratch.takeup(&["inspect"]).exits(0).stdout;
    let said: Vec<&str> = page.split_whitespace().collect();
    let said = said.join(" ");
    assert!(said.contains("git worktree add"), "{page}");
    assert!(said.contains("git takeup init --moved"), "{page}");
    assert_eq!(next(&linked), "git takeup init --moved");
    let refused = scratch.takeup_in(&linked, &["resume", "there", "--confirm"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("init --moved"),
        "{}",
        refused.stderr
    );
    scratch.takeup_in(&linked, &["init", "--moved"]).exits(0);
    let found = candidates(&scratch, &linked);
    let by_task = |task: &str| found.iter().find(|one| one.0 == task).unwrap().1.clone();
    assert_eq!(by_task("there"), "resume-verification");
    assert_eq!(by_task("elsewhere"), "mismatched-repository");
    // The content decides as ever.
    fs::write(linked.join("a.txt"), "changed\n").unwrap();
    assert_eq!(
        candidates(&scratch, &linked)
            .iter()
            .find(|one| one.0 == "there")
            .unwrap()
            .1,
        "stale-task"
    );
}

/// What is closed to whoever asks is not gone.
#[test]
fn an_original_that_cannot_be_looked_into_is_still_there() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    let scratch = Scratch::new(PROGRAM);
    leave(&scratch, &scratch.repo(), "task", "s1");
    let copied = scratch.path().join("copied");
    copy(&scratch.repo(), &copied);
    let root = rustix::process::getuid().is_root();
    if root {
        let given = Command::new("chown")
            .args(["-R", "65534"])
            .arg(scratch.path())
            .status();
        assert!(given.unwrap().success());
    }
    let reasons = |mode: u32, closed: &Path| {
        let open = fs::metadata(closed).unwrap().permissions();
        fs::set_permissions(closed, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = scratch.program_in(&copied);
        command.args(["inspect", "--json"]);
        if root {
            command.uid(65_534);
        }
        let ran = takeup_tests::Ran::of(command.output().unwrap());
        fs::set_permissions(closed, open).unwrap();
        ran.json()["data"]["candidates"][0]["reasons"].to_string()
    };
    for closed in [
        scratch.repo(),
        scratch.repo().join(".git"),
        scratch.repo().join(".git/takeup"),
    ] {
        let said = reasons(0o000, &closed);
        assert!(said.contains("still exists"), "{closed:?}: {said}");
    }
}

/// The copy of a linked work tree shares the ledger with the original.
#[test]
fn nothing_is_recorded_for_the_original_from_its_copy() {
    let scratch = Scratch::new(PROGRAM);
    let (original, copied) = (scratch.path().join("w"), scratch.path().join("copy"));
    scratch.git(&["worktree", "add", "-q", original.to_str().unwrap()]);
    leave(&scratch, &original, "here", "s1");
    copy(&original, &copied);
    fs::write(copied.join("new.txt"), "new\n").unwrap();
    for words in [
        &["save", "--session", "s1"][..],
        &["note", "text", "--session", "s1"],
        &["check", "--session", "s1", "--", "true"],
        &["abandon", "here", "--session", "s1"],
    ] {
        let ran = scratch.takeup_in(&copied, words);
        assert_eq!(ran.code, 1, "{words:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("this is a copy"), "{}", ran.stderr);
    }
    assert_eq!(verdict(&scratch, &original), "resume-verification");
}

#[test]
fn a_session_that_only_hooks_recorded_moves_along_and_stays_with_the_original() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let session = |id: &str, folder: &Path| hooked(&scratch, id, folder, &[]);
    session("cs1", &scratch.repo());
    let moved = scratch.path().join("moved");
    fs::rename(scratch.repo(), &moved).unwrap();
    assert_eq!(verdict(&scratch, &moved), "mismatched-repository");
    scratch.takeup_in(&moved, &["init", "--moved"]).exits(0);
    assert_eq!(verdict(&scratch, &moved), "resume-verification");

    let copied = scratch.path().join("copied");
    copy(&moved, &copied);
    assert_eq!(verdict(&scratch, &copied), "mismatched-repository");
    session("cs2", &copied);
    let said = scratch.takeup_in(&copied, &["init", "--copied"]).exits(0);
    assert!(
        said.stdout.contains("a place of its own"),
        "{}",
        said.stdout
    );
    let found = scratch.takeup_in(&copied, &["inspect", "--json"]).json();
    let candidates = found["data"]["candidates"].as_array().unwrap();
    let of_here: Vec<_> = candidates
        .iter()
        .map(|one| (&one["identity"]["sessionId"], &one["verdict"]))
        .collect();
    assert_eq!(of_here.len(), 1, "{of_here:?}");
    assert_eq!(of_here[0].0, "cs2");
    assert_eq!(of_here[0].1, "resume-verification");
    let again = scratch.takeup_in(&copied, &["init", "--copied"]).exits(0);
    assert!(again.stdout.contains("nothing changed"), "{}", again.stdout);
    assert_eq!(verdict(&scratch, &moved), "resume-verification");
}

/// A repository that was moved leaves its linked work trees where they are: they are not gone, and git mends the link.
#[test]
fn a_linked_work_tree_of_a_moved_repository_is_not_gone() {
    let scratch = Scratch::new(PROGRAM);
    let linked = scratch.path().join("it's linked");
    let name = linked.to_str().unwrap();
    scratch.git(&["worktree", "add", "-q", name, "-b", "side"]);
    leave(&scratch, &linked, "t1", "s1");
    let moved = scratch.path().join("moved");
    fs::rename(scratch.repo(), &moved).unwrap();

    let answer = scratch
        .takeup_in(&moved, &["inspect", "t1", "--json"])
        .json();
    let candidate = &answer["data"]["candidates"][0];
    assert_eq!(candidate["reasons"][0]["code"], "other-worktree");
    let repair = candidate["next"]["command"].as_str().unwrap().to_owned();
    assert!(repair.starts_with("git worktree repair "), "{repair}");
    for words in [
        &["diff", "t1"][..],
        &["resume", "t1", "--confirm"],
        &["doctor"],
    ] {
        let ran = scratch.takeup_in(&moved, words);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let parts: Vec<&str> = said.split_whitespace().collect();
        let said = parts.join(" ");
        assert!(said.contains("git worktree repair"), "{words:?}: {said}");
        assert!(!said.contains("abandon"), "{words:?}: {said}");
        assert!(
            !said.contains("work tree that is gone"),
            "{words:?}: {said}"
        );
        assert!(!said.contains(", which is gone"), "{words:?}: {said}");
    }
    // The command that is named mends it.
    let mut shell = Command::new("sh");
    scratch.dress(&mut shell);
    let done = shell
        .args(["-c", &repair])
        .current_dir(&moved)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(verdict(&scratch, &linked), "resume-verification");

    // One whose link leads into another repository is that one's.
    fs::rename(&moved, scratch.repo()).unwrap();
    fs::remove_file(linked.join(".git")).unwrap();
    scratch.git_in(&linked, &["init", "-q"]);
    let found = candidates(&scratch, &scratch.repo());
    assert!(
        found[0].2.contains(&"worktree-gone".to_owned()),
        "{found:?}"
    );
}
