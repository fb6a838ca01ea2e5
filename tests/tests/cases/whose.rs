//! Whose session it is: who may close a task, and who is told what.
use serde_json::Value;
use takeup_tests::Scratch;

use super::{Alive, candidate, fails_with, left, scratch, within};

fn held_by_one_that_runs(alive: &Alive) -> Scratch {
    let scratch = scratch();
    let pid = alive.pid();
    let of = ["--session", "A", "--agent", "claude-code", "--pid", &pid];
    scratch
        .takeup(&[&["start", "a work"][..], &of].concat())
        .exits(0);
    scratch
}

fn status(scratch: &Scratch, task: &str, session: &str) -> String {
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let found = candidate(&answer, task, session);
    found["identity"]["status"].as_str().unwrap().to_owned()
}

#[test]
fn no_agent_gives_up_what_another_session_holds() {
    let alive = Alive::begin();
    let scratch = held_by_one_that_runs(&alive);
    scratch
        .takeup(&[
            "review",
            "request",
            "--session",
            "A",
            "--agent",
            "claude-code",
            "may I?",
        ])
        .exits(0);
    for variables in [
        &[("TAKEUP_SESSION", "B"), ("TAKEUP_AGENT", "codex")][..],
        &[("CLAUDE_CODE_SESSION_ID", "B"), ("CLAUDECODE", "1")],
    ] {
        for more in [&[][..], &["--confirm"]] {
            let words = [&["abandon", "a-work", "--json"][..], more].concat();
            let refused = within(&scratch, variables, &words).exits(1);
            fails_with(&refused, "not-allowed");
            let message = refused.json()["error"]["message"].to_string();
            assert!(
                message.contains("claude-code:A holds task a-work"),
                "{message}"
            );
        }
    }
    let reviews = scratch
        .takeup(&["review", "list", "--json"])
        .exits(0)
        .json();
    assert_eq!(
        reviews["data"]["reviews"][0]["review"]["state"]["state"], "pending",
        "{reviews}"
    );
    assert_eq!(status(&scratch, "a-work", "A"), "human-review");
}

/// What the log says of the end of the task.
fn who_gave_up(scratch: &Scratch) -> Value {
    let log = scratch.takeup(&["log", "a-work", "--json"]).exits(0).json();
    let lines = log["data"]["lines"].as_array().unwrap();
    let end = lines.iter().find(|line| line["event"] == "abandoned");
    end.unwrap_or_else(|| panic!("{log:#}"))["by"].clone()
}

#[test]
fn a_person_who_gives_up_what_runs_is_told_and_says_yes_and_is_named() {
    let alive = Alive::begin();
    let scratch = held_by_one_that_runs(&alive);
    for words in [&["abandon", "a-work", "--json"][..], &["abandon", "--json"]] {
        let asked = scratch.takeup(words).exits(3);
        fails_with(&asked, "confirmation-needed");
        assert_eq!(
            asked.json()["next"]["command"],
            "git takeup abandon a-work --confirm"
        );
    }
    // What was said goes along.
    let words = ["abandon", "a-work", "--reason", "solved there", "--json"];
    assert_eq!(
        scratch.takeup(&words).exits(3).json()["next"]["command"],
        "git takeup abandon a-work --reason 'solved there' --confirm"
    );
    assert_eq!(status(&scratch, "a-work", "A"), "active");
    scratch.takeup(&["abandon", "a-work", "--confirm"]).exits(0);
    assert_eq!(who_gave_up(&scratch), "person:terminal");
    // Once more: the same answer.
    scratch.takeup(&["abandon", "a-work"]).exits(0);
}

#[test]
fn the_session_itself_gives_its_task_up_without_a_question() {
    let alive = Alive::begin();
    let scratch = held_by_one_that_runs(&alive);
    let itself = [("TAKEUP_SESSION", "A"), ("TAKEUP_AGENT", "claude-code")];
    within(&scratch, &itself, &["abandon", "a-work"]).exits(0);
    assert_eq!(who_gave_up(&scratch), "claude-code:A");
}

#[test]
fn a_task_that_is_over_is_said_to_be_so_right_after_it_was_taken_up() {
    let taken = || {
        let scratch = left();
        scratch
            .takeup(&["save", "--session", "s1", "--end"])
            .exits(0);
        scratch
            .takeup(&["resume", "t1", "--to", "s2", "--confirm"])
            .exits(0);
        scratch
    };
    let again = ["resume", "t1", "--to", "s3", "--confirm", "--json"];
    let finished = taken();
    finished
        .takeup(&["finish", "t1", "--session", "s2", "--no-checks"])
        .exits(0);
    fails_with(&finished.takeup(&again).exits(1), "not-resumable");
    let given_up = taken();
    given_up
        .takeup(&["abandon", "t1", "--session", "s2"])
        .exits(0);
    fails_with(&given_up.takeup(&again).exits(1), "not-resumable");
    let asking = taken();
    asking
        .takeup(&["review", "request", "--session", "s2", "may I?"])
        .exits(0);
    fails_with(&asking.takeup(&again).exits(3), "human-review");
    // Of one that goes on the moment of the take-up is said, whatever it did since.
    let going_on = taken();
    let at = going_on.takeup(&["inspect", "--json"]).exits(0).json();
    let at = candidate(&at, "t1", "s1")["identity"]["updatedAt"].clone();
    going_on.write("a.txt", "more\n");
    going_on.takeup(&["save", "--session", "s2"]).exits(0);
    let refused = going_on.takeup(&again).exits(5);
    fails_with(&refused, "already-taken-up");
    let message = refused.json()["error"]["message"].to_string();
    assert!(message.contains(at.as_str().unwrap()), "{message}, {at}");
}

#[test]
fn the_command_for_a_person_says_who_asked() {
    let scratch = left();
    let asking = [("TAKEUP_SESSION", "C"), ("TAKEUP_AGENT", "claude-code")];
    let asked = within(&scratch, &asking, &["resume", "t1", "--json"])
        .exits(3)
        .json();
    let command = asked["next"]["command"].as_str().unwrap();
    assert!(
        command.contains(" --to C --agent claude-code --confirm ok-"),
        "{command}"
    );
    // Run in another terminal.
    let words: Vec<&str> = command.split(' ').skip(2).collect();
    let taken = scratch
        .takeup(&[&words[..], &["--json"]].concat())
        .exits(0)
        .json();
    assert_eq!(taken["data"]["agent"], "claude-code");
    assert_eq!(taken["data"]["identity"]["sessionId"], "C");
}

#[test]
fn what_the_own_session_changed_is_saved_and_not_taken_up() {
    let scratch = scratch();
    let own = [("TAKEUP_SESSION", "B"), ("TAKEUP_AGENT", "claude-code")];
    within(&scratch, &own, &["start", "x", "--no-checks"]).exits(0);
    let next = || {
        let answer = within(&scratch, &own, &["inspect", "--json"])
            .exits(0)
            .json();
        candidate(&answer, "x", "B")["next"].clone()
    };
    assert_eq!(next()["command"], "git takeup evaluate x --session B");
    scratch.write("y", "y\n");
    assert_eq!(next()["command"], "git takeup save x --session B");
    let words = next()["command"].as_str().unwrap().to_owned();
    let words: Vec<&str> = words.split(' ').skip(2).collect();
    within(&scratch, &own, &words).exits(0);
    assert_eq!(next()["command"], "git takeup evaluate x --session B");
    // One that ended and came back may find other people's changes.
    within(&scratch, &own, &["save", "--end"]).exits(0);
    scratch.write("y", "z\n");
    assert_eq!(next()["action"], "resume");
}

#[test]
fn a_short_name_means_what_is_unfinished() {
    let scratch = scratch();
    for (title, session) in [("fix login", "s1"), ("fix logout", "s2")] {
        scratch
            .takeup(&["start", title, "--session", session, "--no-checks"])
            .exits(0);
    }
    let ambiguous = scratch.takeup(&["show", "fix", "--json"]).exits(3);
    fails_with(&ambiguous, "ambiguous");
    scratch
        .takeup(&["finish", "fix-login", "--session", "s1", "--no-checks"])
        .exits(0);
    let shown = scratch.takeup(&["show", "fix", "--json"]).exits(0).json();
    assert_eq!(shown["data"]["taskId"], "fix-logout");
    scratch
        .takeup(&["resume", "fix", "--to", "s3", "--confirm"])
        .exits(0);
}

/// A yes to it would be a yes to whatever is there.
#[test]
fn an_incomplete_look_gives_no_token() {
    let scratch = left();
    // A program that the repository itself names is not run, so what git would store is not known.
    scratch.write(".gitattributes", "*.up filter=up\n");
    scratch.git(&["config", "filter.up.clean", "cat"]);
    scratch.write("x.up", "x\n");
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    assert_eq!(answer["data"]["fingerprint"], Value::Null);
    let found = candidate(&answer, "t1", "s1");
    assert_eq!(found["verdict"], "stale-task");
    assert_eq!(found["token"], Value::Null, "{found:#}");
    let plain = "git takeup resume t1 --from s1";
    assert_eq!(found["next"]["command"], format!("{plain} --rebuild"));
    let asked = ["resume", "t1", "--to", "s2", "--confirm", "--json"];
    let asked = scratch.takeup(&asked).exits(3).json();
    assert_eq!(
        asked["next"]["command"],
        format!("{plain} --to s2 --rebuild")
    );
    scratch
        .takeup(&["resume", "t1", "--to", "s2", "--rebuild"])
        .exits(0);
}
