//! What a person or script meets: the main job, its answers and its refusals.
use super::{candidate, changed, fails_with, left, reasons, scratch, verdict};

#[test]
fn a_repository_that_never_used_takeup_is_looked_at_without_a_trace() {
    let scratch = scratch();
    let before = takeup_tests::picture(&scratch.path(), &|_| false);
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    assert_eq!(answer["data"]["used"], false);
    for words in [
        &["show", "x"][..],
        &["save"],
        &["resume", "x", "--to", "s"],
        &["next"],
        &["log"],
        &["diff"],
    ] {
        let ran = scratch.takeup(&[words, &["--json"]].concat());
        assert_eq!(ran.code, 4, "{words:?}: {}", ran.stdout);
        fails_with(&ran, "not-initialised");
    }
    let changed =
        takeup_tests::differences(&before, &takeup_tests::picture(&scratch.path(), &|_| false));
    assert!(changed.is_empty(), "{changed:#?}");
}

#[test]
fn a_task_left_on_this_content_may_be_taken_up_and_on_other_content_not() {
    let scratch = left();
    assert_eq!(verdict(&scratch), "resume-verification");
    scratch.write("a.txt", "two\n");
    scratch.write("new.txt", "new\n");
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let found = candidate(&answer, "t1", "s1");
    assert_eq!(found["verdict"], "stale-task");
    assert_eq!(
        changed(found),
        [
            ("a.txt".to_owned(), "unstaged".to_owned()),
            ("new.txt".to_owned(), "untracked".to_owned())
        ]
    );
    // The content is back, by other means.
    scratch.git(&["checkout", "-q", "--", "a.txt"]);
    scratch.git(&["clean", "-qf"]);
    assert_eq!(verdict(&scratch), "resume-verification");
}

#[test]
fn every_kind_of_change_is_named_by_where_it_stands() {
    let scratch = scratch();
    for name in ["committed", "staged", "unstaged", "deleted", "hidden"] {
        scratch.write(name, "one\n");
    }
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "more"]);
    scratch.git(&["update-index", "--assume-unchanged", "hidden"]);
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    scratch.write("committed", "two\n");
    scratch.git(&["commit", "-qam", "moved on"]);
    scratch.write("staged", "two\n");
    scratch.git(&["add", "staged"]);
    scratch.write("unstaged", "two\n");
    scratch.git(&["rm", "-q", "--cached", "deleted"]);
    std::fs::remove_file(scratch.repo().join("deleted")).unwrap();
    scratch.write("hidden", "two\n");
    scratch.write("untracked", "two\n");
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let found = candidate(&answer, "t1", "s1");
    let places: std::collections::BTreeMap<String, String> = changed(found).into_iter().collect();
    for name in ["committed", "staged", "unstaged", "hidden", "untracked"] {
        assert_eq!(
            places.get(name).map(String::as_str),
            Some(name),
            "{places:?}"
        );
    }
    assert!(places.contains_key("deleted"));
    assert_eq!(found["changes"]["commits"][0]["subject"], "moved on");
    assert!(reasons(found).contains(&"head-moved".to_owned()));
}

#[test]
fn committing_exactly_what_was_left_is_no_change_of_content() {
    // P18 b, c: entireio/cli#939.
    let scratch = left();
    scratch.write("a.txt", "two\n");
    scratch.takeup(&["save", "--session", "s1"]).exits(0);
    scratch.git(&["commit", "-qam", "exactly that"]);
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let found = candidate(&answer, "t1", "s1");
    assert_eq!(found["verdict"], "resume-verification");
    assert!(reasons(found).contains(&"head-moved".to_owned()));
    scratch.git(&["commit", "-q", "--amend", "-m", "another message"]);
    assert_eq!(verdict(&scratch), "resume-verification");
}

#[test]
fn a_rebase_onto_other_content_is_stale_with_the_path() {
    // P18 d.
    let scratch = scratch();
    scratch.git(&["checkout", "-qb", "feature"]);
    scratch.write("mine", "mine\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "mine"]);
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    scratch.git(&["checkout", "-q", "main"]);
    scratch.write("theirs", "theirs\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "theirs"]);
    scratch.git(&["checkout", "-q", "feature"]);
    assert_eq!(verdict(&scratch), "resume-verification");
    scratch.git(&["rebase", "-q", "main"]);
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let found = candidate(&answer, "t1", "s1");
    assert_eq!(found["verdict"], "stale-task");
    assert_eq!(
        changed(found),
        [("theirs".to_owned(), "committed".to_owned())]
    );
}

#[test]
fn a_stash_of_another_work_tree_is_stale_and_hinted_at() {
    // P18 a: mattias800/prosper#3174.
    let scratch = scratch();
    let other = scratch.path().join("other");
    scratch.git(&[
        "worktree",
        "add",
        "-q",
        other.to_str().unwrap(),
        "-b",
        "other",
    ]);
    scratch.write("a.txt", "mine\n");
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    std::fs::write(other.join("a.txt"), "theirs\n").unwrap();
    scratch
        .takeup_in(&other, &["start", "t2", "--session", "s2", "--no-checks"])
        .exits(0);
    scratch.git(&["stash", "-q"]);
    scratch.git_in(&other, &["stash", "-q"]);
    scratch.git(&["stash", "pop", "-q"]);
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let mine = candidate(&answer, "t1", "s1");
    assert_eq!(mine["verdict"], "stale-task");
    assert!(reasons(mine).contains(&"content-changed".to_owned()));
    assert!(reasons(mine).contains(&"stash-changed".to_owned()));
    assert_eq!(
        candidate(&answer, "t2", "s2")["verdict"],
        "mismatched-repository"
    );
    let there = scratch
        .takeup_in(&other, &["inspect", "--json"])
        .exits(0)
        .json();
    let theirs = candidate(&there, "t2", "s2");
    assert_eq!(theirs["verdict"], "stale-task");
    assert!(reasons(theirs).contains(&"stash-changed".to_owned()));
}

#[test]
fn a_yes_is_for_what_was_shown() {
    let scratch = left();
    scratch.write("a.txt", "two\n");
    let plain = scratch
        .takeup(&["resume", "t1", "--to", "s2", "--confirm", "--json"])
        .exits(3);
    fails_with(&plain, "confirmation-needed");
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let token = candidate(&answer, "t1", "s1")["token"]
        .as_str()
        .unwrap()
        .to_owned();
    scratch.write("a.txt", "three\n");
    let before = takeup_tests::picture(&scratch.repo().join(".git/takeup"), &|path| path == "lock");
    let late = scratch
        .takeup(&["resume", "t1", "--to", "s2", "--confirm", &token, "--json"])
        .exits(5);
    fails_with(&late, "changed-since-shown");
    let after = takeup_tests::picture(&scratch.repo().join(".git/takeup"), &|path| path == "lock");
    let journal = |picture: &str| {
        picture
            .lines()
            .filter(|line| line.contains("journal"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(journal(&before), journal(&after));
    scratch.write("a.txt", "two\n");
    let taken = scratch
        .takeup(&["resume", "t1", "--to", "s2", "--confirm", &token, "--json"])
        .exits(0)
        .json();
    assert_eq!(taken["data"]["verdict"], "stale-task");
    assert_eq!(taken["data"]["next"]["action"], "evaluate");
    assert_eq!(taken["data"]["source"]["status"], "abandoned");
    assert_eq!(taken["data"]["identity"]["status"], "verification-required");
}

#[test]
fn nobody_confirms_without_a_person() {
    let scratch = left();
    for words in [
        &["resume", "t1"][..],
        &["resume", "t1", "--to", "s2", "--no-input"],
    ] {
        let ran = scratch.takeup(words);
        assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("--confirm"), "{}", ran.stderr);
    }
    assert_eq!(verdict(&scratch), "resume-verification");
}

#[test]
fn a_chain_of_three_sessions_keeps_the_task() {
    let scratch = left();
    scratch
        .takeup(&["resume", "t1", "--from", "s1", "--to", "s2", "--confirm"])
        .exits(0);
    scratch.write("a.txt", "two\n");
    scratch.takeup(&["save", "--session", "s2"]).exits(0);
    scratch
        .takeup(&["resume", "t1", "--from", "s2", "--to", "s3", "--confirm"])
        .exits(0);
    let shown = scratch.takeup(&["show", "t1", "--json"]).exits(0).json();
    let chain: Vec<_> = shown["data"]["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["identity"]["sessionId"].clone(),
                one["identity"]["resumedToSessionId"].clone(),
            )
        })
        .collect();
    assert_eq!(
        chain,
        [
            ("s1".into(), "s2".into()),
            ("s2".into(), "s3".into()),
            ("s3".into(), serde_json::Value::Null)
        ]
    );
    // The base of the first session is kept along a compatible chain.
    let base = |index: usize| {
        shown["data"]["candidates"][index]["identity"]["baseWorkingTreeFingerprint"].clone()
    };
    assert_eq!(base(0), base(2));
}

#[test]
fn bad_input_has_a_code_and_a_way_out() {
    let scratch = left();
    let outside = scratch.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let bare = scratch.path().join("bare.git");
    scratch.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    for (folder, words, exit, code) in [
        (
            scratch.repo(),
            &["resume", "nope", "--to", "s2", "--confirm"][..],
            4,
            "no-such-task",
        ),
        (
            scratch.repo(),
            &["resume", "t1", "--from", "nope", "--to", "s2", "--confirm"],
            4,
            "no-such-session",
        ),
        (scratch.repo(), &["show", "nope"], 4, "no-such-task"),
        (
            scratch.repo(),
            &["save", "--session", "nope"],
            4,
            "no-such-session",
        ),
        (
            scratch.repo(),
            &["start", "t1", "--session", "s9"],
            5,
            "task-exists",
        ),
        (
            scratch.repo(),
            &["start", "x", "--session", "\u{1b}[31m"],
            2,
            "invalid-id",
        ),
        (
            scratch.repo(),
            &["start", "x", "--allow", ":(exclude)x"],
            1,
            "not-allowed",
        ),
        (
            scratch.repo(),
            &["review", "show", "nope"],
            4,
            "no-such-review",
        ),
        (outside.clone(), &["inspect"], 1, "not-a-repository"),
        (bare, &["inspect"], 1, "bare-repository"),
    ] {
        let ran = scratch.takeup_in(&folder, &[words, &["--json"]].concat());
        assert_eq!(ran.code, exit, "{words:?}: {}{}", ran.stdout, ran.stderr);
        fails_with(&ran, code);
    }
}

#[test]
fn the_same_call_twice_equals_once() {
    let scratch = left();
    let journal = || std::fs::read(scratch.repo().join(".git/takeup/journal.jsonl")).unwrap();
    let before = journal();
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    scratch.takeup(&["save", "--session", "s1"]).exits(0);
    assert_eq!(journal(), before);
    let first = scratch
        .takeup(&[
            "resume",
            "t1",
            "--from",
            "s1",
            "--to",
            "s2",
            "--confirm",
            "--json",
        ])
        .exits(0);
    let before = journal();
    let again = scratch
        .takeup(&[
            "resume",
            "t1",
            "--from",
            "s1",
            "--to",
            "s2",
            "--confirm",
            "--json",
        ])
        .exits(0);
    assert_eq!(first.json(), again.json());
    assert_eq!(journal(), before);
    scratch.takeup(&["next", "t1", "--session", "s2"]).exits(0);
    let before = journal();
    let again = scratch
        .takeup(&["next", "--session", "s2", "--json"])
        .exits(0)
        .json();
    assert_eq!(again["data"]["finalized"], true);
    assert_eq!(journal(), before);
}

/// What may happen to the last record of a journal: the whole journal and where that record begins.
type Damage = fn(&mut Vec<u8>, usize);

#[test]
fn a_last_record_that_is_lost_raises_doubt_that_outlives_its_repair() {
    let damages: [(&str, Damage); 4] = [
        ("zeros", |bytes, last| bytes[last..].fill(0)),
        ("cut off", |bytes, last| bytes.truncate(last)),
        ("half cut off", |bytes, last| {
            bytes.truncate(usize::midpoint(last, bytes.len()));
        }),
        ("all cut off", |bytes, _| bytes.clear()),
    ];
    for (name, damage) in damages {
        let scratch = left();
        if name == "all cut off" {
            // There has to be something to fall back to.
            for number in 0..64 {
                let text = number.to_string();
                scratch.takeup(&["note", &text, "--session", "s1"]).exits(0);
            }
        }
        scratch.write("a.txt", "two\n");
        scratch.takeup(&["save", "--session", "s1"]).exits(0);
        scratch.git(&["checkout", "-q", "--", "a.txt"]);
        let journal = scratch.repo().join(".git/takeup/journal.jsonl");
        let mut bytes = std::fs::read(&journal).unwrap();
        let last = bytes[..bytes.len() - 1]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        damage(&mut bytes, last);
        std::fs::write(&journal, bytes).unwrap();
        // The tree is what the record before says; what the lost one said is not known.
        assert_eq!(verdict(&scratch), "stale-task", "{name}");
        scratch
            .takeup(&["start", "t2", "--session", "s2", "--no-checks"])
            .exits(0);
        assert_eq!(verdict(&scratch), "stale-task", "{name}");
        // That one is gone is said until somebody takes note of it.
        let seen = scratch.takeup(&["inspect", "--json"]).exits(0).json();
        let issues = seen["data"]["issues"].as_array().unwrap();
        assert_eq!(issues.len(), 1, "{name}: {issues:?}");
        assert_eq!(issues[0]["kind"], "missing", "{name}");
        scratch.takeup(&["save", "--session", "s1"]).exits(0);
        assert_eq!(verdict(&scratch), "resume-verification", "{name}");
    }
}

#[test]
fn a_title_is_one_line_of_a_bounded_length() {
    let scratch = scratch();
    for title in ["", " ", "a\nb", &"x".repeat(501)] {
        fails_with(
            &scratch.takeup(&["start", title, "--json"]).exits(2),
            "usage",
        );
    }
    scratch.takeup(&["start", &"x".repeat(500)]).exits(0);
}

#[test]
fn a_name_that_was_archived_long_ago_is_not_given_again() {
    use takeup_core::ledger::{Change, Ledger, State};
    use takeup_core::status::Status;
    use takeup_tests::ledger::{put, start, task_id, transition};
    let scratch = left();
    scratch
        .takeup(&["start", "gone long", "--session", "s9", "--no-checks"])
        .exits(0);
    for task in ["t1", "gone-long"] {
        scratch.takeup(&["abandon", task]).exits(0);
    }
    let ledger = Ledger::at(scratch.repo().join(".git/takeup"));
    let actor = takeup_tests::ledger::actor();
    let moved = ledger
        .archive(
            &takeup_core::time::SystemClock,
            Ledger::PATIENCE,
            &actor,
            |_| true,
        )
        .unwrap();
    assert_eq!(moved.value, [task_id("gone-long"), task_id("t1")]);
    // So many others went after it that the state remembers it no longer.
    let names: Vec<String> = (0..=State::ARCHIVED)
        .map(|number| format!("other-{number}"))
        .collect();
    let others = names
        .iter()
        .flat_map(|name| start(name, Status::Completed).changes)
        .collect();
    put(&ledger, transition("start", others)).unwrap();
    let task_ids = names.iter().map(|name| task_id(name)).collect();
    put(
        &ledger,
        transition("archive", vec![Change::Archived { task_ids }]),
    )
    .unwrap();
    assert!(
        !ledger
            .read()
            .unwrap()
            .state
            .archived
            .contains(&task_id("t1"))
    );

    let started = scratch
        .takeup(&["start", "t1", "--session", "s2", "--no-checks", "--json"])
        .exits(0)
        .json();
    assert_eq!(started["data"]["identity"]["taskId"], "t1-2");
    let shown = scratch
        .takeup(&["show", "gone-long", "--json"])
        .exits(0)
        .json();
    assert_eq!(shown["data"]["archived"], true, "{shown}");
}

/// What root makes in a user's repository under `sudo` would lock that user out.
#[test]
fn nothing_is_begun_for_a_user_by_way_of_sudo() {
    let scratch = scratch();
    let given = std::process::Command::new("chown")
        .args(["-R", "65534"])
        .arg(scratch.repo())
        .output()
        .is_ok_and(|output| output.status.success());
    if !given {
        eprintln!("only root can give files away: this was skipped");
        return;
    }
    let by_sudo = |words: &[&str]| {
        let output = scratch
            .program_in(&scratch.repo())
            .env("SUDO_UID", "65534")
            .args(words)
            .output()
            .unwrap();
        takeup_tests::Ran::of(output)
    };
    let begun = by_sudo(&["start", "t1", "--session", "s1", "--json"]).exits(1);
    fails_with(&begun, "not-allowed");
    by_sudo(&["init"]).exits(1);
    assert!(!scratch.repo().join(".git/takeup").exists());
    // Looking is free.
    by_sudo(&["inspect", "--json"]).exits(0);
}

#[test]
fn a_task_that_is_closed_within_a_merge_says_so() {
    for command in ["next", "finish"] {
        let scratch = scratch();
        scratch.git(&["checkout", "-q", "-b", "side"]);
        scratch.write("a.txt", "side\n");
        scratch.git(&["commit", "-q", "-a", "-m", "side"]);
        scratch.git(&["checkout", "-q", "main"]);
        scratch.write("a.txt", "main\n");
        scratch.git(&["commit", "-q", "-a", "-m", "main"]);
        let merge = scratch.git_may_fail(&scratch.repo(), &["merge", "-q", "side"]);
        assert!(!merge.status.success());
        scratch
            .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
            .exits(0);
        let text = scratch
            .takeup(&[command, "t1", "--session", "s1"])
            .exits(0)
            .stdout;
        assert!(text.contains("is completed"), "{text}");
        let words = "a merge is in progress, and paths are unmerged";
        assert!(text.contains(words), "{text}");
        // Again, it says the same.
        let again = scratch.takeup(&[command, "t1", "--session", "s1", "--json"]);
        assert_eq!(again.exits(0).json()["data"]["unsettled"], words);
        scratch.git(&["merge", "--abort"]);
        scratch
            .takeup(&["start", "t2", "--session", "s1", "--no-checks"])
            .exits(0);
        let settled = scratch.takeup(&[command, "t2", "--session", "s1", "--json"]);
        let settled = settled.exits(0).json();
        assert_eq!(settled["data"]["unsettled"], serde_json::Value::Null);
    }
}

#[test]
fn of_one_session_s_tasks_the_task_has_to_be_named() {
    let scratch = scratch();
    for (task, session) in [("t1", "s1"), ("t2", "s1"), ("t3", "s2")] {
        scratch
            .takeup(&["start", task, "--session", session, "--no-checks"])
            .exits(0);
    }
    let hint = |words: &[&str]| {
        let refused = scratch.takeup(words).exits(3);
        fails_with(&refused, "ambiguous");
        refused.json()["error"]["hint"].clone()
    };
    assert_eq!(
        hint(&["evaluate", "--session", "s1", "--json"]),
        "name the task"
    );
    assert_eq!(
        hint(&["evaluate", "--json"]),
        "name the task, or with --session the session"
    );
}
