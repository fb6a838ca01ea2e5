//! What a session is told of the tasks that others took up from it.
use takeup_tests::Scratch;

use super::{Living, PROGRAM, payload};

/// A session whose task was taken up while it was away is told so when it comes back.
#[test]
fn a_session_that_comes_back_is_told_who_took_its_task_up() {
    let scratch = Scratch::new(PROGRAM);
    let here = scratch.repo();
    let mut first = Living::start(&scratch);
    first.run("start Job --session c1 --agent claude-code --no-checks");
    first.hook(&here, "c1", "Stop", "");
    drop(first);
    let taker = Living::start(&scratch);
    let pid = taker.agent.id().to_string();
    let take = [
        "resume",
        "job",
        "--confirm",
        "--to",
        "k1",
        "--agent",
        "codex",
        "--pid",
        &pid,
    ];
    scratch.takeup(&take).exits(0);
    let payload = payload(&here, "c1", "SessionStart", ",\"source\":\"resume\"");
    let back = || {
        scratch
            .takeup(&["hook", "claude-code", "SessionStart", &payload])
            .exits(0)
    };
    let said = back().stdout;
    assert!(
        said.contains("job was taken up by codex:k1, which runs"),
        "{said}"
    );
    drop(taker);
    let said = back().stdout;
    assert!(
        said.contains("job was taken up by codex:k1: it is not yours any more"),
        "{said}"
    );
    scratch
        .takeup(&["finish", "job", "--session", "k1", "--no-checks"])
        .exits(0);
    let said = back().stdout;
    assert!(!said.contains("job"), "{said}");
}

/// A session that was left for another and goes on is told so at its next turn, once.
#[test]
fn a_session_that_goes_on_is_told_who_took_its_task_up() {
    let scratch = Scratch::new(PROGRAM);
    let here = scratch.repo();
    let turn = |more: &str| {
        let payload = payload(&here, "c1", "UserPromptSubmit", more);
        scratch
            .takeup(&["hook", "claude-code", "UserPromptSubmit", &payload])
            .exits(0)
            .stdout
    };
    let mut first = Living::start(&scratch);
    first.run("start Job --session c1 --agent claude-code --no-checks");
    first.hook(&here, "c1", "Stop", "");
    assert_eq!(turn(",\"prompt\":\"one\""), "");
    first.hook(&here, "c1", "Stop", "");
    drop(first);
    let take = [
        "resume",
        "job",
        "--confirm",
        "--to",
        "k1",
        "--agent",
        "codex",
    ];
    scratch.takeup(&take).exits(0);
    let said = turn(",\"prompt\":\"two\"");
    assert!(
        said.contains("job was taken up by codex:k1: it is not yours any more")
            && said.contains("\"hookEventName\":\"UserPromptSubmit\""),
        "{said}"
    );
    assert_eq!(turn(",\"prompt\":\"three\""), "");
}
