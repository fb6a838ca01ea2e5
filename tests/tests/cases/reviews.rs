//! Questions to a person.
use super::{candidate, fails_with, left, scratch};

fn ask(scratch: &takeup_tests::Scratch) -> String {
    let asked = scratch
        .takeup(&[
            "review",
            "request",
            "may I deploy?",
            "--reason",
            "EXTERNAL_SIDE_EFFECT",
            "--session",
            "s1",
            "--json",
        ])
        .exits(0)
        .json();
    asked["data"]["review"]["reviewId"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_pending_review_blocks_from_everywhere_even_after_the_tree_changed() {
    let scratch = left();
    let id = ask(&scratch);
    for change in [false, true] {
        if change {
            scratch.write("a.txt", "changed\n");
        }
        let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
        assert_eq!(candidate(&answer, "t1", "s1")["verdict"], "human-review");
        for words in [
            &["resume", "t1", "--from", "s1", "--to", "s2", "--confirm"][..],
            &["resume", "t1", "--from", "s1", "--to", "s2", "--rebuild"],
        ] {
            fails_with(
                &scratch.takeup(&[words, &["--json"]].concat()).exits(3),
                "human-review",
            );
        }
        let step = scratch
            .takeup(&["next", "--session", "s1", "--json"])
            .exits(0)
            .json();
        assert_eq!(step["data"]["nextAction"], "human-review");
        scratch.takeup(&["finish", "--session", "s1"]).exits(3);
        scratch.takeup(&["evaluate", "--session", "s1"]).exits(3);
        scratch.takeup(&["save", "--session", "s1"]).exits(0);
    }
    // The question itself is found by its task and by its id, from any session, and asked once.
    for name in ["t1", &id] {
        let shown = scratch
            .takeup(&["review", "show", name, "--json"])
            .exits(0)
            .json();
        assert_eq!(shown["data"]["reviews"][0]["review"]["reviewId"], *id);
        assert_eq!(shown["data"]["reviews"][0]["contentChanged"], true);
    }
    assert_eq!(ask(&scratch), id);
}

#[test]
fn a_list_says_what_is_asked_and_a_log_who_answered() {
    let scratch = left();
    for question in ["may I deploy?", "may I write to the customers?"] {
        scratch
            .takeup(&["review", "request", question, "--session", "s1"])
            .exits(0);
    }
    for words in [&["review"][..], &["review", "list"], &["log", "t1"]] {
        let said = scratch.takeup(words).exits(0).stdout;
        assert!(said.contains("may I deploy?"), "{said}");
        assert!(said.contains("may I write to the customers?"), "{said}");
    }
    let shown = scratch.takeup(&["review", "show", "t1"]).exits(0).stdout;
    assert_eq!(shown.matches("may I deploy?").count(), 1, "{shown}");
    // A boundary's question names the paths.
    let scratch = scratch_outside();
    let said = scratch.takeup(&["review"]).exits(0).stdout;
    assert!(said.contains("docs/outside.md"), "{said}");
    let mut command = scratch.program_in(&scratch.repo());
    command.env_remove("USER").env_remove("LOGNAME");
    command.args(["review", "approve", "t1", "--confirm"]);
    takeup_tests::Ran::of(command.output().unwrap()).exits(0);
    let said = scratch.takeup(&["log", "t1"]).exits(0).stdout;
    let line = said.lines().find(|line| line.contains("approved review-"));
    assert!(line.unwrap().contains("a person"), "{said}");
}

fn scratch_outside() -> takeup_tests::Scratch {
    let scratch = scratch();
    let words = [
        "start",
        "t1",
        "--session",
        "s1",
        "--no-checks",
        "--allow",
        "src/",
    ];
    scratch.takeup(&words).exits(0);
    scratch.write("docs/outside.md", "outside\n");
    scratch.takeup(&["evaluate", "--session", "s1"]).exits(3);
    scratch
}

/// What was decided before says nothing of the next question, though both are asked for by the name of the task.
#[test]
fn the_second_question_of_a_task_is_a_persons_too() {
    let scratch = left();
    let ask = |question: &str| {
        let words = ["review", "request", question, "--session", "s1", "--json"];
        let asked = scratch.takeup(&words).exits(0).json();
        asked["data"]["review"]["reviewId"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    ask("may I deploy?");
    scratch
        .takeup(&["review", "approve", "t1", "--confirm"])
        .exits(0);
    let second = ask("may I write to the customers?");
    for word in ["approve", "reject"] {
        let refused = scratch.takeup(&["review", word, "t1", "--json"]).exits(3);
        fails_with(&refused, "confirmation-needed");
        let next = refused.json()["next"]["command"].to_string();
        assert!(next.contains(&second), "{next}");
        let shown = scratch.takeup(&["review", "show", &second, "--json"]);
        let state = &shown.json()["data"]["reviews"][0]["review"]["state"];
        assert!(state.to_string().contains("pending"), "{state}");
    }
    // Where several wait, the name of the task is no answer to either.
    let third = ask("may I delete the logs?");
    let refused = scratch
        .takeup(&["review", "approve", "t1", "--json"])
        .exits(1);
    let message = refused.json()["error"]["message"].to_string();
    for id in [&second, &third] {
        assert!(message.contains(id.as_str()), "{message}");
    }
}

#[test]
fn an_approval_is_a_persons_and_for_what_was_shown() {
    let scratch = left();
    let id = ask(&scratch);
    fails_with(
        &scratch
            .takeup(&["review", "approve", &id, "--json"])
            .exits(3),
        "confirmation-needed",
    );
    scratch.write("a.txt", "changed\n");
    let late = scratch
        .takeup(&["review", "approve", &id, "--confirm", "--json"])
        .exits(3);
    fails_with(&late, "confirmation-needed");
    assert!(
        late.json()["next"]["command"]
            .as_str()
            .unwrap()
            .contains("--content-changed")
    );
    scratch.git(&["checkout", "-q", "--", "a.txt"]);
    let words = [
        "review",
        "approve",
        &id,
        "--confirm",
        "--by",
        "ana",
        "--remark",
        "go on",
        "--json",
    ];
    let done = scratch.takeup(&words).exits(0).json();
    assert_eq!(done["data"]["review"]["state"]["state"], "applied");
    assert_eq!(done["data"]["review"]["state"]["decision"]["by"], "ana");
    let shown = scratch.takeup(&["show", "t1", "--json"]).exits(0).json();
    assert_eq!(
        shown["data"]["candidates"][0]["identity"]["status"],
        "dirty"
    );
    // Deciding again the same way changes nothing, another way comes too late.
    scratch.takeup(&words).exits(0);
    fails_with(
        &scratch
            .takeup(&["review", "reject", &id, "--confirm", "--json"])
            .exits(5),
        "review-decided",
    );
}

#[test]
fn a_rejection_gives_the_task_up() {
    let scratch = left();
    let id = ask(&scratch);
    scratch
        .takeup(&["review", "reject", &id, "--confirm"])
        .exits(0);
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    assert_eq!(candidate(&answer, "t1", "s1")["verdict"], "not-resumable");
    assert_eq!(
        candidate(&answer, "t1", "s1")["identity"]["status"],
        "abandoned"
    );
}

#[test]
fn files_outside_the_boundary_are_a_question_and_avoided_ones_are_never_approved() {
    let scratch = scratch();
    scratch
        .takeup(&[
            "start",
            "t1",
            "--session",
            "s1",
            "--no-checks",
            "--allow",
            "src/",
            "--avoid",
            "src/secret",
        ])
        .exits(0);
    scratch.write("src/fine.rs", "fine\n");
    scratch.takeup(&["evaluate", "--session", "s1"]).exits(0);
    scratch.write("docs/outside.md", "outside\n");
    let found = scratch
        .takeup(&["evaluate", "--session", "s1", "--json"])
        .exits(3)
        .json();
    assert_eq!(
        found["data"]["outsideBoundary"][0]["path"],
        "docs/outside.md"
    );
    let id = found["data"]["reviewId"].as_str().unwrap().to_owned();
    scratch
        .takeup(&["review", "approve", &id, "--confirm"])
        .exits(0);
    let shown = scratch.takeup(&["show", "t1", "--json"]).exits(0).json();
    assert_eq!(shown["data"]["boundary"]["revision"], 1);
    assert_eq!(
        shown["data"]["boundary"]["allowed"],
        serde_json::json!(["src/", "docs/outside.md"])
    );
    scratch.takeup(&["evaluate", "--session", "s1"]).exits(0);

    scratch.write("src/secret/key", "no\n");
    let found = scratch
        .takeup(&["evaluate", "--session", "s1", "--json"])
        .exits(3)
        .json();
    let id = found["data"]["reviewId"].as_str().unwrap().to_owned();
    fails_with(
        &scratch
            .takeup(&["review", "approve", &id, "--confirm", "--json"])
            .exits(1),
        "not-allowed",
    );
}

#[test]
fn a_question_keeps_no_secret_and_asks_for_no_pattern_that_holds_one() {
    let scratch = left();
    let secret = format!("gh{}_{}", "p", "16C7e42F292c6912E7710c838347Ae178B4a");
    let refused = scratch
        .takeup(&[
            "review",
            "request",
            "may I?",
            "--allow",
            &format!("keys/{secret}"),
            "--session",
            "s1",
            "--json",
        ])
        .exits(1);
    fails_with(&refused, "not-allowed");
    assert!(!refused.stdout.contains(&secret), "{}", refused.stdout);
    let asked = scratch
        .takeup(&[
            "review",
            "request",
            "may I?",
            "--file",
            &format!("keys/{secret}"),
            "--session",
            "s1",
            "--json",
        ])
        .exits(0);
    assert!(!asked.stdout.contains(&secret), "{}", asked.stdout);
    let journal =
        std::fs::read_to_string(scratch.repo().join(".git/takeup/journal.jsonl")).unwrap();
    assert!(!journal.contains(&secret));
}

/// What a person pastes elsewhere is what was called here: for whom, with which words, on which content.
#[test]
fn the_command_for_a_person_says_all_that_was_said() {
    for (by_environment, changed) in [(false, false), (false, true), (true, true)] {
        let scratch = left();
        let id = ask(&scratch);
        if changed {
            scratch.write("a.txt", "changed\n");
        }
        let mut command = scratch.program_in(&scratch.repo());
        command.args(["review", "approve", &id, "--json"]);
        command.args(["--remark=- it's ok", "--by", "Ana"]);
        if by_environment {
            command.env("TAKEUP_SESSION", "s2");
            command.env("TAKEUP_AGENT", "opencode");
        } else {
            command.args(["--session", "s2", "--agent", "opencode"]);
        }
        let refused = takeup_tests::Ran::of(command.output().unwrap()).exits(3);
        fails_with(&refused, "confirmation-needed");
        let next = refused.json()["next"]["command"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(next.contains("--content-changed"), changed, "{next}");
        pasted(&scratch, &next).exits(0);
        let shown = scratch
            .takeup(&["review", "show", &id, "--json"])
            .exits(0)
            .json();
        let decision = &shown["data"]["reviews"][0]["review"]["state"]["decision"];
        assert_eq!(decision["remark"], "- it's ok");
        assert_eq!(decision["by"], "Ana");
        // The one that asked goes on.
        scratch
            .takeup(&["evaluate", "--session", "s2", "--agent", "opencode"])
            .exits(0);
    }
    // The same where the yes was given already, and the content is another one.
    let scratch = left();
    let id = ask(&scratch);
    scratch.write("a.txt", "changed\n");
    let words = [
        "review",
        "approve",
        &id,
        "--confirm",
        "--by",
        "Ana",
        "--json",
    ];
    let refused = scratch.takeup(&words).exits(3).json();
    let next = refused["next"]["command"].as_str().unwrap();
    assert!(next.contains("--by Ana"), "{next}");
    pasted(&scratch, next).exits(0);
}

/// Runs a proposed command as a person would, in a shell of their own.
fn pasted(scratch: &takeup_tests::Scratch, command: &str) -> takeup_tests::Ran {
    let line = command.replacen("git takeup", super::PROGRAM, 1);
    let mut shell = std::process::Command::new("sh");
    scratch.dress(&mut shell);
    shell.current_dir(scratch.repo()).args(["-c", &line]);
    takeup_tests::Ran::of(shell.output().unwrap())
}
