//! Tasks that were left at another place: what is said of them, and the way out. Cases P8 and P20.
use super::*;

/// Leaves `t1` of session `s1` in the repository, copies that, and returns the copy.
fn copied(scratch: &Scratch) -> std::path::PathBuf {
    leave(scratch, &scratch.repo(), "t1", "s1");
    let there = scratch.path().join("copied");
    copy(&scratch.repo(), &there);
    there
}

#[test]
fn a_copy_of_what_is_gone_says_so_and_can_take_its_place() {
    let scratch = Scratch::new(PROGRAM);
    let there = copied(&scratch);
    let said = scratch.takeup_in(&there, &["inspect"]).exits(0).stdout;
    assert!(said.contains("still exists"), "{said}");
    scratch.takeup_in(&there, &["init", "--moved"]).exits(0);
    assert_eq!(verdict(&scratch, &there), "mismatched-repository");

    // Held open, so that no copy is given its inode: that one would be the original, moved.
    let _gone = fs::File::open(scratch.repo()).unwrap();
    fs::remove_dir_all(scratch.repo()).unwrap();
    let said = scratch.takeup_in(&there, &["inspect"]).exits(0).stdout;
    let repo = scratch.repo().display().to_string();
    assert!(!said.contains("still exists"), "{said}");
    assert!(
        said.contains("is not there any more") && said.contains(&repo),
        "{said}"
    );
    let next = scratch.takeup_in(&there, &["inspect", "--json"]).json();
    assert_eq!(next["next"]["command"], "git takeup init --moved");
    let doctor = scratch.takeup_in(&there, &["doctor"]).stdout;
    assert!(doctor.contains("places-copy-of-gone"), "{doctor}");
    let other = scratch.path().join("other");
    copy(&there, &other);

    let tied = scratch.takeup_in(&there, &["init", "--moved"]).exits(0);
    assert!(
        tied.stdout.contains("1 task record belongs"),
        "{}",
        tied.stdout
    );
    assert_eq!(verdict(&scratch, &there), "resume-verification");
    scratch
        .takeup_in(&there, &["resume", "t1", "--session", "s2", "--confirm"])
        .exits(0);
    // Where the original lives on elsewhere, the other answer is as good.
    let cut = scratch.takeup_in(&other, &["init", "--copied"]).exits(0);
    assert!(
        cut.stdout.contains("1 task of the original"),
        "{}",
        cut.stdout
    );
    assert!(candidates(&scratch, &other).is_empty());
}

#[test]
fn what_was_begun_in_a_copy_stays_with_the_copy() {
    let scratch = Scratch::new(PROGRAM);
    let there = copied(&scratch);
    scratch.git_in(&there, &["worktree", "add", "-q", "../beside", "-b", "b"]);
    let beside = scratch.path().join("beside");
    scratch
        .takeup_in(&there, &["start", "new work", "--session", "n1"])
        .exits(0);
    scratch
        .takeup_in(&beside, &["start", "more work", "--session", "n2"])
        .exits(0);
    // The title that the original has is its own until it is said whose it is.
    let taken = scratch.takeup_in(&there, &["start", "t1", "--session", "s1"]);
    assert_eq!(taken.code, 5, "{taken:?}");
    assert!(taken.stderr.contains("init --copied"), "{}", taken.stderr);

    let said = scratch
        .takeup_in(&there, &["init", "--copied"])
        .exits(0)
        .stdout;
    assert!(
        said.contains("1 task stays with the original, and what was begun here stays here"),
        "{said}"
    );
    fs::write(there.join("w.txt"), "work\n").unwrap();
    scratch
        .takeup_in(&there, &["save", "--session", "n1"])
        .exits(0);
    scratch
        .takeup_in(&beside, &["save", "--session", "n2"])
        .exits(0);
    let found = candidates(&scratch, &there);
    let by_task = |task: &str| found.iter().find(|one| one.0 == task).unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(by_task("new-work").1, "resume-verification");
    assert!(
        by_task("more-work")
            .2
            .contains(&"other-worktree".to_owned())
    );
    assert_eq!(verdict(&scratch, &scratch.repo()), "resume-verification");
    // It is another repository now, and no copy any more.
    scratch
        .takeup_in(&there, &["start", "t1", "--session", "s1"])
        .exits(0);
    let again = scratch
        .takeup_in(&there, &["init", "--copied"])
        .exits(0)
        .stdout;
    assert!(again.contains("no copy"), "{again}");
}

/// Wherever `init --copied` is cut off, the same call again ends it: what was begun in the copy belongs to it.
#[test]
fn a_copy_that_was_cut_off_is_ended_by_the_next_call() {
    let scratch = Scratch::new(PROGRAM);
    let there = copied(&scratch);
    leave(&scratch, &there, "t2", "s2");
    let own = there.join(".git/takeup");
    let kept = scratch.path().join("kept");
    copy(&own, &kept);
    let log = scratch.path().join("points");
    let cut_at = |fault: Option<&str>| {
        fs::remove_dir_all(&own).unwrap();
        copy(&kept, &own);
        let mut command = scratch.program_in(&there);
        command.args(["init", "--copied"]);
        match fault {
            Some(fault) => command.env("TAKEUP_FAULT", fault),
            None => command.env("TAKEUP_FAULT_LOG", &log),
        };
        takeup_tests::Ran::of(command.output().unwrap())
    };
    cut_at(None).exits(0);
    let expected = candidates(&scratch, &there);
    assert_eq!(expected.len(), 1, "{expected:?}");
    let points = fs::read_to_string(&log).unwrap();
    let mut seen = std::collections::BTreeMap::<&str, usize>::new();
    for point in points.lines() {
        let count = seen.entry(point).or_default();
        *count += 1;
        cut_at(Some(&format!("{point}#{count}=kill")));
        scratch.takeup_in(&there, &["init", "--copied"]).exits(0);
        assert_eq!(
            candidates(&scratch, &there),
            expected,
            "after {point}#{count}"
        );
        assert_eq!(verdict(&scratch, &there), "resume-verification");
        assert!(!own.join("ids-of-copy").exists() || point.starts_with("file-remove"));
    }
    assert!(seen.len() > 5, "{points}");
}

#[test]
fn a_copied_linked_work_tree_takes_nothing_from_the_original() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["worktree", "add", "-q", "../w", "-b", "w"]);
    let linked = scratch.path().join("w");
    leave(&scratch, &linked, "there", "s1");
    let copied = scratch.path().join("w-copy");
    copy(&linked, &copied);
    let refused = scratch.takeup_in(&copied, &["init", "--copied"]).exits(1);
    assert!(
        refused.stderr.contains("git worktree add"),
        "{}",
        refused.stderr
    );
    assert_eq!(verdict(&scratch, &linked), "resume-verification");
}

#[test]
fn a_title_of_another_work_tree_names_that_work_tree_and_the_way_out() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["worktree", "add", "-q", "../it's w", "-b", "w"]);
    let linked = scratch.path().join("it's w");
    scratch
        .takeup_in(&linked, &["start", "t1", "--session", "s1"])
        .exits(0);
    let there = linked.display().to_string();
    for (words, code) in [
        (&["start", "t1", "--session", "s1"][..], 5),
        (&["start", "t1", "--session", "s2"], 5),
        (&["save", "--session", "s1"], 4),
        (&["save", "t1"], 4),
        (&["next", "t1"], 4),
        (&["evaluate", "t1", "--session", "s1"], 4),
        (&["check", "--task", "t1", "--", "true"], 4),
        (&["diff", "t1"], 4),
    ] {
        let refused = scratch.takeup(words).exits(code);
        assert!(
            refused.stderr.contains(&there),
            "{words:?}: {}",
            refused.stderr
        );
        assert!(
            !refused.stderr.contains("resume t1"),
            "{words:?}: {}",
            refused.stderr
        );
        // The way out can be pasted.
        let line = refused.stderr.split("git -C ").nth(1).unwrap();
        let line = line.split(['\n', ';']).next().unwrap();
        let mut shell = Command::new("sh");
        scratch.dress(&mut shell);
        let went = shell
            .args(["-c", &format!("git -C {line}")])
            .output()
            .unwrap();
        assert!(
            String::from_utf8_lossy(&went.stdout).contains("t1"),
            "{line}: {went:?}"
        );
    }
    scratch.git(&["worktree", "remove", "--force", &there]);
    let refused = scratch.takeup(&["start", "t1", "--session", "s2"]).exits(5);
    assert!(
        refused.stderr.contains("which is gone") && refused.stderr.contains("abandon t1"),
        "{}",
        refused.stderr
    );
    scratch.takeup(&["abandon", "t1"]).exits(0);
    scratch.takeup(&["start", "t1", "--session", "s2"]).exits(0);
}

#[test]
fn a_hand_over_names_the_place_the_task_was_left_in() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["worktree", "add", "-q", "../w", "-b", "side"]);
    let linked = scratch.path().join("w");
    fs::write(linked.join("a.txt"), "two\n").unwrap();
    leave(&scratch, &linked, "t1", "s1");
    fs::write(linked.join("b.txt"), "new\n").unwrap();
    let place = linked.display().to_string();
    let inside = scratch
        .takeup_in(&linked, &["handover", "t1", "--dry-run"])
        .exits(0)
        .stdout;
    assert!(
        inside.contains("`b.txt`") && !inside.contains("another place"),
        "{inside}"
    );
    for gone in [false, true] {
        if gone {
            scratch.git(&["worktree", "remove", "--force", "../w"]);
        }
        let said = scratch
            .takeup(&["handover", "t1", "--dry-run"])
            .exits(0)
            .stdout;
        let left = said.lines().find(|line| line.contains("left in")).unwrap();
        assert!(
            left.contains(&place) && left.contains("`side`") && left.contains("*recorded*"),
            "{said}"
        );
        assert!(said.contains("a work tree that was not compared"), "{said}");
        assert!(
            said.contains("not compared: it was left in another place"),
            "{said}"
        );
        assert!(!said.contains("no list of what changed"), "{said}");
        let diff = scratch.takeup(&["diff", "t1"]).exits(4);
        assert!(diff.stderr.contains(&place), "{}", diff.stderr);
        // Nobody is sent into the wrong work tree.
        let sent = scratch
            .takeup(&["handover", "t1", "--to", "opencode"])
            .exits(4);
        assert!(sent.stderr.contains(&place), "{}", sent.stderr);
    }
}

#[test]
fn background_tasks_of_a_nested_work_tree_are_its_own() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["worktree", "add", "-q", "nested"]);
    let nested = scratch.repo().join("nested");
    scratch.takeup(&["init"]).exits(0);
    for (folder, name) in [(&scratch.repo(), "outer"), (&nested, "inner")] {
        let run = ["bg", "run", "--foreground", "--name", name, "--", "true"];
        scratch.takeup_in(folder, &run).exits(0);
    }
    for (folder, name, other) in [
        (&scratch.repo(), "outer", "inner"),
        (&nested, "inner", "outer"),
    ] {
        let page = scratch.takeup_in(folder, &["--no-input"]).exits(0).stdout;
        assert!(page.contains(name) && !page.contains(other), "{page}");
    }
}
