//! What git commands leave in the ledger, and that they leave the rest as plain git does.
use super::*;

fn commits(scratch: &Scratch, count: usize, file: &str) {
    for n in 0..count {
        scratch.write(file, format!("{n}\n"));
        scratch.git(&["add", file]);
        scratch.git(&["commit", "-q", "-m", &format!("{file} {n}")]);
    }
}

#[test]
fn every_kind_of_history_is_recorded_with_its_heads() {
    let scratch = installed();
    let head = || Some(scratch.git(&["rev-parse", "HEAD"]));
    let first = head();
    commits(&scratch, 1, "b.txt");
    let second = head();
    scratch.git(&["commit", "-q", "--amend", "-m", "amended"]);
    let amended = head();
    scratch.git(&["checkout", "-q", "-b", "side", "HEAD~1"]);
    commits(&scratch, 1, "c.txt");
    let side = head();
    scratch.git(&["checkout", "-q", "main"]);
    scratch.git(&["merge", "-q", "--no-edit", "side"]);
    let merged = head();
    scratch.git(&["checkout", "-q", "--detach"]);
    let state = settled(&scratch.repo());
    let heads: Vec<_> = state
        .observations
        .iter()
        .map(|seen| {
            let text = |id: &Option<takeup_core::ids::Oid>| id.as_ref().map(ToString::to_string);
            (
                seen.event.as_str(),
                text(&seen.head_before),
                text(&seen.head_after),
                seen.branch.as_deref(),
            )
        })
        .collect();
    let main = Some("main");
    assert_eq!(
        heads,
        [
            ("post-commit", first.clone(), second.clone(), main),
            ("post-commit", second.clone(), amended.clone(), main),
            ("post-rewrite", second, amended.clone(), main),
            (
                "post-checkout",
                amended.clone(),
                first.clone(),
                Some("side")
            ),
            ("post-commit", first, side.clone(), Some("side")),
            ("post-checkout", side, amended.clone(), main),
            ("post-merge", amended, merged.clone(), main),
            ("post-checkout", merged.clone(), merged, None),
        ]
    );
    assert!(state.observations.iter().all(|seen| seen.by.is_none()));
    assert!(
        state
            .observations
            .windows(2)
            .all(|pair| pair[0].at <= pair[1].at)
    );
}

#[test]
fn commits_in_three_work_trees_at_once_are_all_recorded_each_for_its_own() {
    let scratch = installed();
    let mut trees = vec![scratch.repo()];
    for name in ["one", "two"] {
        scratch.git(&["worktree", "add", "-q", &format!("../{name}"), "-b", name]);
        trees.push(scratch.path().join(name));
    }
    let before = settled(&scratch.repo()).observations.len();
    let each = 8;
    std::thread::scope(|scope| {
        for tree in &trees {
            let scratch = &scratch;
            scope.spawn(move || {
                for n in 0..each {
                    scratch.git_in(
                        tree,
                        &["commit", "-q", "--allow-empty", "-m", &format!("{n}")],
                    );
                }
            });
        }
    });
    let seen = settled(&scratch.repo()).observations;
    let seen = &seen[before..];
    assert_eq!(seen.len(), each * trees.len());
    for tree in &trees {
        let place = takeup_core::repository::discover(
            &takeup_core::env::Env::of([("HOME", "/")], tree),
            tree,
        )
        .unwrap();
        let id = takeup_core::repository::tokens(&place)
            .unwrap()
            .worktree
            .unwrap();
        let mut heads: Vec<_> = seen
            .iter()
            .filter(|seen| seen.worktree_id == id)
            .map(|seen| seen.head_after.as_ref().unwrap().to_string())
            .collect();
        heads.reverse();
        let log = scratch.git_in(tree, &["log", &format!("-{each}"), "--format=%H"]);
        assert_eq!(heads, log.lines().collect::<Vec<_>>());
    }
}

#[test]
fn a_repository_named_by_variables_is_recorded_in_its_own_ledger() {
    let scratch = installed();
    let elsewhere = scratch.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let git_dir = scratch.repo().join(".git");
    let git_dir = format!("--git-dir={}", git_dir.display());
    let tree = format!("--work-tree={}", scratch.repo().display());
    let done = git_with(
        &scratch,
        &elsewhere,
        |_| {},
        &[&git_dir, &tree, "commit", "-q", "--allow-empty", "-m", "x"],
    );
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    // Partial commits name another index in the environment; it is not kept.
    scratch.write("a.txt", "two\n");
    scratch.git(&["commit", "-q", "-a", "-m", "y"]);
    scratch.write("a.txt", "three\n");
    scratch.git(&["commit", "-q", "-m", "z", "a.txt"]);
    let seen = settled(&scratch.repo()).observations;
    assert_eq!(events(&seen), ["post-commit"; 3]);
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    assert!(!elsewhere.join(".git").exists());
}
