//! What a task did outside its boundary before it was taken up, and what others did meanwhile.
use serde_json::{Value, json};
use takeup_tests::{Ran, Scratch};

use super::{candidate, fails_with, scratch};

/// A repository with a folder for the task and two for others.
fn begun(more: &[&str]) -> Scratch {
    let scratch = scratch();
    for path in ["src/a", "secret/k", "docs/x"] {
        scratch.write(path, "1\n");
    }
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-q", "-m", "all"]);
    let words = ["start", "t1", "--session", "s1", "--no-checks"];
    scratch.takeup(&[&words[..], more].concat()).exits(0);
    scratch
}

fn commit(scratch: &Scratch) {
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-q", "-m", "more"]);
}

fn save(scratch: &Scratch, session: &str, more: &[&str]) {
    let words = ["save", "--session", session];
    scratch.takeup(&[&words[..], more].concat()).exits(0);
}

fn take_up(scratch: &Scratch, from: &str, to: &str) {
    let shown = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let left = candidate(&shown, "t1", from);
    assert_eq!(left["verdict"], "stale-task", "{left:#}");
    let token = left["token"].as_str().unwrap();
    let words = [
        "resume",
        "t1",
        "--from",
        from,
        "--to",
        to,
        "--confirm",
        token,
    ];
    scratch.takeup(&words).exits(0);
}

fn evaluate(scratch: &Scratch, session: &str) -> Ran {
    scratch.takeup(&["evaluate", "t1", "--session", session, "--json"])
}

fn outside(scratch: &Scratch, session: &str) -> Vec<String> {
    let found = evaluate(scratch, session).exits(3).json();
    let paths = found["data"]["outsideBoundary"].as_array().unwrap();
    paths
        .iter()
        .map(|changed| changed["path"].as_str().unwrap().to_owned())
        .collect()
}

fn question(scratch: &Scratch) -> Value {
    let shown = scratch
        .takeup(&["review", "show", "t1", "--json"])
        .exits(0)
        .json();
    let mut all = shown["data"]["reviews"].as_array().unwrap().clone();
    all.pop().unwrap()
}

fn approve(scratch: &Scratch) {
    let asked = question(scratch);
    let id = asked["review"]["reviewId"].as_str().unwrap();
    scratch
        .takeup(&["review", "approve", id, "--confirm"])
        .exits(0);
}

fn is_closed(scratch: &Scratch, session: &str) -> bool {
    let words = ["next", "t1", "--session", session, "--json"];
    let step = scratch.takeup(&words).exits(0).json();
    step["data"]["finalized"] == true
}

#[test]
fn what_a_task_must_avoid_and_changed_stays_its_own_when_it_is_taken_up() {
    for (committed, takers) in [
        (false, &["s2"][..]),
        (true, &["s2"]),
        (false, &["s1"]),
        (true, &["s2", "s3"]),
        (false, &["s2", "s1"]),
    ] {
        let scratch = begun(&["--avoid", "secret/"]);
        let was = scratch.git(&["rev-parse", "HEAD:secret/k"]);
        scratch.write("secret/k", "2\n");
        scratch.write("secret/new", "2\n");
        if committed {
            commit(&scratch);
        }
        save(&scratch, "s1", &[]);
        let mut session = "s1";
        for (number, taker) in takers.iter().enumerate() {
            // Somebody changes what the task may edit.
            scratch.write("src/a", format!("theirs {number}\n"));
            if committed {
                commit(&scratch);
            }
            take_up(&scratch, session, taker);
            session = taker;
        }
        let words = ["finish", "t1", "--session", session, "--json"];
        fails_with(&scratch.takeup(&words).exits(3), "outside-boundary");
        assert!(!is_closed(&scratch, session));
        assert_eq!(outside(&scratch, session), ["secret/k", "secret/new"]);
        let refused = scratch.takeup(&["review", "approve", "t1", "--confirm", "--json"]);
        fails_with(&refused.exits(1), "not-allowed");
        // What is proposed puts it back as it was when the task began, and not as the session found it.
        let commands = question(&scratch)["notBack"]["commands"].clone();
        let commands = commands.as_array().unwrap();
        assert_eq!(commands.len(), 2, "{commands:?}");
        for command in commands {
            let words: Vec<&str> = command.as_str().unwrap().split(' ').skip(1).collect();
            scratch.git(&words);
        }
        assert_eq!(scratch.git(&["hash-object", "secret/k"]), was);
        assert!(!scratch.repo().join("secret/new").exists());
        approve(&scratch);
        evaluate(&scratch, session).exits(0);
        assert!(is_closed(&scratch, session));
    }
}

#[test]
fn what_a_task_changed_outside_is_asked_about_when_it_was_taken_up() {
    let scratch = begun(&["--allow", "src/"]);
    scratch.write("docs/x", "2\n");
    scratch.write("docs/undone", "2\n");
    save(&scratch, "s1", &[]);
    scratch.write("src/a", "theirs\n");
    std::fs::remove_file(scratch.repo().join("docs/undone")).unwrap();
    take_up(&scratch, "s1", "s2");
    assert_eq!(outside(&scratch, "s2"), ["docs/x"]);
    approve(&scratch);
    let shown = scratch.takeup(&["show", "t1", "--json"]).exits(0).json();
    let allowed = &shown["data"]["boundary"]["allowed"];
    assert_eq!(*allowed, json!(["src/", "docs/x"]));
    assert!(is_closed(&scratch, "s2"));
}

#[test]
fn what_others_changed_between_is_not_held_against_a_task() {
    for committed in [false, true] {
        let scratch = begun(&["--allow", "src/", "--avoid", "secret/"]);
        scratch.write("src/a", "2\n");
        save(&scratch, "s1", &["--end"]);
        scratch.write("secret/k", "theirs\n");
        scratch.write("docs/x", "theirs\n");
        if committed {
            commit(&scratch);
        }
        take_up(&scratch, "s1", "s2");
        evaluate(&scratch, "s2").exits(0);
        // What the one that goes on changes there is.
        scratch.write("docs/x", "ours\n");
        assert_eq!(outside(&scratch, "s2"), ["docs/x"]);
        approve(&scratch);
        assert!(is_closed(&scratch, "s2"));
    }
}

#[test]
fn what_may_be_a_tasks_or_anothers_a_person_is_asked_once() {
    for path in ["secret/k", "docs/x"] {
        let scratch = begun(&["--allow", "src/", "--avoid", "secret/"]);
        save(&scratch, "s1", &[]);
        // Nobody said that the session had ended.
        scratch.write(path, "2\n");
        take_up(&scratch, "s1", "s2");
        scratch.write("src/a", "2\n");
        let words = ["finish", "t1", "--session", "s2", "--json"];
        fails_with(&scratch.takeup(&words).exits(3), "boundary-doubtful");
        assert!(!is_closed(&scratch, "s2"));
        // As it was before, there is nothing to ask.
        scratch.write(path, "1\n");
        evaluate(&scratch, "s2").exits(0);
        scratch.write(path, "2\n");
        let found = evaluate(&scratch, "s2").exits(3).json();
        assert_eq!(found["data"]["outsideBoundary"], json!([]));
        let why = found["data"]["boundaryUnknown"].as_str().unwrap();
        assert!(why.contains(path), "{why}");
        let review = question(&scratch)["review"].clone();
        assert_eq!(review["reasonCode"], "AMBIGUOUS_REPOSITORY_STATE");
        assert_eq!(review["affectedFiles"], json!([path]));
        approve(&scratch);
        let shown = scratch.takeup(&["show", "t1", "--json"]).exits(0).json();
        assert_eq!(shown["data"]["boundary"]["revision"], 0);
        evaluate(&scratch, "s2").exits(0);
        // The yes was for what was there.
        scratch.write(path, "3\n");
        assert_eq!(outside(&scratch, "s2"), [path]);
    }
}

#[test]
fn a_doubt_goes_on_until_somebody_answers() {
    let scratch = begun(&["--avoid", "secret/"]);
    scratch.write("secret/k", "2\n");
    save(&scratch, "s1", &["--end"]);
    // The task changed it, and then somebody else.
    scratch.write("secret/k", "3\n");
    take_up(&scratch, "s1", "s2");
    save(&scratch, "s2", &["--end"]);
    scratch.write("src/a", "theirs\n");
    take_up(&scratch, "s2", "s3");
    assert_eq!(outside(&scratch, "s3"), [""; 0]);
    let asked = question(&scratch);
    assert_eq!(asked["review"]["affectedFiles"], json!(["secret/k"]));
    scratch
        .takeup(&["review", "reject", "t1", "--confirm"])
        .exits(0);
}
