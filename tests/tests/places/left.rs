//! What sessions that only hooks recorded left in other work trees of the repository, there or gone.
use super::*;
use std::path::PathBuf;

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn candidate(scratch: &Scratch, folder: &Path, session: &str) -> Value {
    let answer = scratch
        .takeup_in(folder, &["inspect", "--json"])
        .exits(0)
        .json();
    let found = answer["data"]["candidates"].as_array().unwrap().iter();
    let mut found = found.filter(|one| one["identity"]["sessionId"] == session);
    let one = found.next().unwrap_or_else(|| panic!("{answer:#}")).clone();
    assert!(found.next().is_none(), "{answer:#}");
    one
}

/// A linked work tree in which a session that hooks alone tell of left an edit.
fn left_in_linked() -> (Scratch, PathBuf) {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    scratch.git(&["worktree", "add", "-q", "../w", "-b", "w"]);
    let linked = scratch.path().join("w");
    fs::write(linked.join("edit.txt"), "an edit\n").unwrap();
    hooked(&scratch, "cs1", &linked, &[]);
    (scratch, linked)
}

#[test]
fn a_session_in_a_work_tree_that_is_gone_shows_with_the_way_out() {
    let (scratch, linked) = left_in_linked();

    // It is there, and is another one's to take up.
    let there = candidate(&scratch, &scratch.repo(), "cs1");
    assert_eq!(there["verdict"], "mismatched-repository");
    assert_eq!(there["reasons"][0]["code"], "other-worktree");
    let command = format!("git -C {} takeup inspect", linked.display());
    assert_eq!(there["next"]["command"], command);
    assert_eq!(
        candidate(&scratch, &linked, "cs1")["verdict"],
        "resume-verification"
    );

    // Whoever is not there does not say that it is over there.
    scratch
        .takeup(&["save", "--end", "--session", "cs1"])
        .exits(4);

    scratch.git(&["worktree", "remove", "--force", "../w"]);
    let gone = candidate(&scratch, &scratch.repo(), "cs1");
    assert_eq!(gone["verdict"], "mismatched-repository");
    assert_eq!(gone["reasons"][0]["code"], "worktree-gone");
    assert_eq!(gone["next"]["command"], "git takeup sessions show cs1");
    scratch.takeup(&["sessions", "show", "cs1"]).exits(0);
    for said in [&[][..], &["inspect"], &["inspect", "--all"]] {
        let page = words(&scratch.takeup(said).exits(0).stdout);
        for part in ["mend cs1", "is gone", "git worktree add", "init --moved"] {
            assert!(page.contains(part), "{said:?}: {part}: {page}");
        }
    }
    let list = scratch.takeup(&["sessions"]).exits(0).stdout;
    assert!(list.contains("cs1"), "{list}");
    assert!(
        list.contains(&format!("in {}, which is gone", linked.display())),
        "{list}"
    );
    let taken = scratch.takeup(&["resume", "--from", "cs1", "--session", "s2", "--confirm"]);
    assert_eq!(taken.code, 1, "{taken:?}");
    assert!(words(&taken.stderr).contains("init --moved"), "{taken:?}");

    // What nobody will go on with is over, also where its work tree is gone.
    let ledger = scratch.repo().join(".git/takeup");
    let kept = scratch.path().join("kept");
    copy(&ledger, &kept);
    scratch
        .takeup(&["save", "--end", "--session", "cs1"])
        .exits(0);
    assert!(candidates(&scratch, &scratch.repo()).is_empty());
    fs::remove_dir_all(&ledger).unwrap();
    copy(&kept, &ledger);

    // The way out is taken.
    scratch.git(&["worktree", "add", "-q", "../w", "w"]);
    let anew = candidate(&scratch, &linked, "cs1");
    assert_eq!(anew["next"]["command"], "git takeup init --moved");
    scratch.takeup_in(&linked, &["init", "--moved"]).exits(0);
    assert_eq!(candidate(&scratch, &linked, "cs1")["verdict"], "stale-task");
    fs::write(linked.join("edit.txt"), "an edit\n").unwrap();
    assert_eq!(
        candidate(&scratch, &linked, "cs1")["verdict"],
        "resume-verification"
    );
}

#[test]
fn what_ended_in_good_order_or_lives_in_another_work_tree_is_not_told() {
    let (scratch, linked) = left_in_linked();
    let payload = format!(
        "{{\"session_id\":\"cs1\",\"cwd\":\"{}\"}}",
        linked.display()
    );
    scratch
        .takeup_in(&linked, &["hook", "claude-code", "SessionEnd", &payload])
        .exits(0);
    assert!(candidates(&scratch, &scratch.repo()).is_empty());
    let list = scratch.takeup(&["sessions"]).exits(0).stdout;
    assert!(!list.contains("cs1"), "{list}");
    // A copy that was made a place of its own shows nothing of the original's.
    hooked(&scratch, "cs2", &linked, &[]);
    let copied = scratch.path().join("copied");
    leave(&scratch, &scratch.repo(), "t1", "s1");
    copy(&scratch.repo(), &copied);
    scratch.takeup_in(&copied, &["init", "--copied"]).exits(0);
    assert!(candidates(&scratch, &copied).is_empty());
    let list = scratch.takeup_in(&copied, &["sessions"]).exits(0).stdout;
    assert!(!list.contains("cs2"), "{list}");
    // Where the session went on in the main work tree, both are told, each for its place.
    fs::write(scratch.repo().join("edit.txt"), "another\n").unwrap();
    hooked(&scratch, "cs2", &scratch.repo(), &[]);
    let found = candidates(&scratch, &scratch.repo());
    let of_session = |code: &str| {
        found
            .iter()
            .filter(|one| one.2.contains(&code.to_owned()))
            .count()
    };
    assert_eq!(of_session("other-worktree"), 1, "{found:?}");
    // What was asked for by name and is elsewhere is not taken up here in its stead.
    scratch
        .takeup(&["resume", "mend-cs2", "--session", "s9", "--confirm"])
        .exits(0);
}
