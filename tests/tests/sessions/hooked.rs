//! Sessions that the hooks of their agents told of.
mod told;
mod turns;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use takeup_tests::Scratch;

use super::PROGRAM;

/// A shell under another name stands for an agent.
fn agent(scratch: &Scratch) -> PathBuf {
    let agent = scratch.path().join("claude");
    if !agent.exists() {
        std::fs::copy("/bin/sh", &agent).unwrap();
    }
    agent
}

fn payload(folder: &Path, id: &str, event: &str, more: &str) -> String {
    format!(
        "{{\"session_id\":\"{id}\",\"cwd\":\"{}\",\"hook_event_name\":\"{event}\"{more}}}",
        folder.display()
    )
}

/// A hook of an agent that is over when the hook is: the program of the session died.
fn dying(scratch: &Scratch, folder: &Path, id: &str, event: &str, more: &str) {
    dying_of(scratch, folder, "claude-code", id, event, more);
}

fn dying_of(scratch: &Scratch, folder: &Path, agent_id: &str, id: &str, event: &str, more: &str) {
    let payload = payload(folder, id, event, more);
    let mut program = Command::new(agent(scratch));
    program.args(["-c", "\"$@\"; :", "claude", PROGRAM]);
    program.args(["hook", agent_id, event, &payload]);
    scratch.dress(&mut program);
    program.current_dir(folder);
    program.stdin(Stdio::null());
    assert!(program.output().unwrap().status.success());
}

/// An agent that lives.
struct Living {
    agent: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Living {
    fn start(scratch: &Scratch) -> Self {
        let mut command = Command::new(agent(scratch));
        command.args(["-c", "while read -r line; do eval \"$line\"; echo .; done"]);
        scratch.dress(&mut command);
        command.current_dir(scratch.repo());
        let mut agent = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(agent.stdout.take().unwrap());
        Self { agent, said }
    }

    fn hook(&mut self, folder: &Path, id: &str, event: &str, more: &str) {
        let payload = payload(folder, id, event, more);
        self.run(&format!("hook claude-code {event} '{payload}'"));
    }

    /// Lets it call the program.
    fn run(&mut self, words: &str) {
        let line = format!("'{PROGRAM}' {words}\n");
        let stdin = self.agent.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        let mut line = String::new();
        while line.trim_end() != "." {
            line.clear();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0);
        }
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        drop(self.agent.kill());
        drop(self.agent.wait());
    }
}

fn candidates(scratch: &Scratch, folder: &Path) -> Vec<Value> {
    let found = scratch.takeup_in(folder, &["inspect", "--json"]).exits(0);
    let found = found.json();
    found["data"]["candidates"].as_array().unwrap().clone()
}

fn other_tree(scratch: &Scratch) -> PathBuf {
    let other = scratch.path().join("other");
    scratch.git(&["worktree", "add", "-q", other.to_str().unwrap()]);
    other
}

/// A session that only hooks told of, without a task: it is listed, shown and can be taken up.
#[test]
fn a_session_that_only_hooks_recorded_is_listed_and_can_be_taken_up() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let hook = |event: &str, more: &str| {
        dying(&scratch, &scratch.repo(), "cs1-session", event, more);
    };
    hook("SessionStart", ",\"source\":\"startup\"");
    hook("UserPromptSubmit", ",\"prompt\":\"mend the parser\"");
    scratch.write("src/a", "half done");
    // A text that was cut in the middle of a character.
    hook("Stop", ",\"last_assistant_message\":\"cut \\ud83d\"");
    for args in [
        &["sessions", "--json"][..],
        &["sessions", "--all", "--json"],
    ] {
        let listed = scratch.takeup(args).exits(0).json();
        let session = &listed["data"]["sessions"][0];
        assert_eq!(session["session"]["id"], "cs1-session", "{listed}");
        assert_eq!(session["liveness"]["state"], "crashed", "{listed}");
        assert_eq!(session["title"], "mend the parser");
    }
    for name in ["cs1-session", "cs1-", "the parser"] {
        let shown = scratch.takeup(&["sessions", "show", name]).exits(0);
        assert!(shown.stdout.contains("claude-code:cs1-session"));
    }
    let found = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let candidate = &found["data"]["candidates"][0];
    assert_eq!(candidate["verdict"], "resume-verification", "{found}");
    scratch.write("src/a", "other");
    let found = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    assert_eq!(found["data"]["candidates"][0]["verdict"], "stale-task");
    scratch.write("src/a", "half done");
    let taken = scratch
        .takeup(&["resume", "--from", "cs1-session", "--confirm", "--json"])
        .exits(0)
        .json();
    assert_eq!(taken["data"]["source"]["sessionId"], "cs1-session");
    // What was known of it stays, and it is a session as before.
    let shown = scratch.takeup(&["show", "mend-the-parser", "--from", "cs1-session"]);
    assert!(
        !shown.stdout.contains("nothing was recorded"),
        "{}",
        shown.stdout
    );
    let listed = scratch.takeup(&["sessions", "--json"]).exits(0).json();
    assert_eq!(
        listed["data"]["sessions"][0]["session"]["id"],
        "cs1-session"
    );
    // It is told once, as the task it is now.
    let found = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let candidates = found["data"]["candidates"].as_array().unwrap();
    let of_it = candidates
        .iter()
        .filter(|candidate| candidate["identity"]["sessionId"] == "cs1-session");
    assert_eq!(of_it.count(), 1, "{found}");
    // It is opened again, and goes on: what it did then is told beside the task that was taken from it.
    hook("SessionStart", ",\"source\":\"resume\"");
    hook("Stop", "");
    let open = || {
        let found = scratch.takeup(&["inspect", "--json"]).exits(0).json();
        let candidates = found["data"]["candidates"].as_array().unwrap().clone();
        candidates
            .into_iter()
            .filter(|one| one["identity"]["sessionId"] == "cs1-session")
            .map(|one| one["verdict"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(open(), ["not-resumable"]);
    // A turn that ends late did not see who took it up at work.
    scratch.write("src/a", "done and more");
    hook("Stop", "");
    assert_eq!(open(), ["not-resumable"]);
    hook("UserPromptSubmit", ",\"prompt\":\"go on\"");
    hook("Stop", "");
    assert_eq!(open(), ["resume-verification", "not-resumable"]);
    let taken = scratch
        .takeup(&["resume", "--from", "cs1-session", "--confirm", "--json"])
        .exits(0)
        .json();
    assert_eq!(taken["data"]["source"]["sessionId"], "cs1-session");
    assert_eq!(open(), ["not-resumable", "not-resumable"]);
    // One that said that it ended left nothing in the middle.
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    for event in ["SessionStart", "Stop", "SessionEnd"] {
        let payload = "{\"session_id\":\"cs2\",\"reason\":\"other\"}";
        scratch
            .takeup(&["hook", "claude-code", event, payload])
            .exits(0);
    }
    let listed = scratch.takeup(&["sessions", "--json"]).exits(0).json();
    assert_eq!(listed["data"]["sessions"][0]["liveness"]["state"], "ended");
    let found = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    assert_eq!(found["data"]["candidates"].as_array().unwrap().len(), 0);
    for args in [
        &["resume", "--from", "cs2", "--confirm", "--json"][..],
        &["inspect", "--from", "cs2", "--json"],
    ] {
        let said = scratch.takeup(args).exits(4).json();
        assert_eq!(said["error"]["code"], "nothing-left", "{said}");
    }
}

/// One that was continued in a second terminal lives as long as the first one speaks.
#[test]
fn who_spoke_last_stands_for_a_session() {
    for with_task in [false, true] {
        let scratch = Scratch::new(PROGRAM);
        scratch.takeup(&["init"]).exits(0);
        let here = scratch.repo();
        let mut first = Living::start(&scratch);
        first.hook(&here, "s1", "SessionStart", "");
        if with_task {
            first.run("start Mend --session s1 --agent claude-code");
        }
        first.hook(&here, "s1", "UserPromptSubmit", ",\"prompt\":\"a\"");
        for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
            dying(&scratch, &here, "s1", event, ",\"prompt\":\"b\"");
        }
        first.hook(&here, "s1", "UserPromptSubmit", ",\"prompt\":\"c\"");
        scratch.write("a.txt", "at work");
        first.hook(&here, "s1", "Stop", "");
        let found = candidates(&scratch, &here);
        assert_eq!(found[0]["verdict"], "in-use", "{found:?}");
        scratch
            .takeup(&["resume", "--from", "s1", "--confirm"])
            .exits(5);
        drop(first);
        let found = candidates(&scratch, &here);
        assert_eq!(found[0]["verdict"], "resume-verification", "{found:?}");
    }
}

#[test]
fn a_damaged_ledger_is_not_an_empty_list() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let here = scratch.repo();
    for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
        dying(&scratch, &here, "s1", event, ",\"prompt\":\"a\"");
    }
    let own = here.join(".git/takeup");
    let journal = own.join("journal.jsonl");
    let whole = std::fs::read(&journal).unwrap();
    let said = |what: &str| {
        let listed = scratch.takeup(&["sessions", "--json"]).exits(0).json();
        let issues = listed["data"]["issues"].as_array().unwrap();
        assert!(!issues.is_empty(), "{what}: {listed}");
        let page = scratch.takeup(&["sessions"]).exits(0).stdout;
        assert_ne!(page, "no sessions\n", "{what}");
    };
    std::fs::write(&journal, vec![0; whole.len()]).unwrap();
    said("zeros");
    std::fs::remove_file(&journal).unwrap();
    std::fs::create_dir(&journal).unwrap();
    said("a folder");
    std::fs::remove_dir(&journal).unwrap();
    std::fs::write(&journal, &whole).unwrap();
    std::fs::write(own.join("worktree-id"), "").unwrap();
    said("an empty token");
    let aside = scratch.path().join("aside");
    std::fs::rename(&own, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &own).unwrap();
    said("a link");
}

#[test]
fn what_a_session_left_in_another_work_tree_is_said_to_be_there() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let here = scratch.repo();
    scratch.write("a.txt", "half done");
    for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
        dying(&scratch, &here, "s1", event, ",\"prompt\":\"blue\"");
    }
    let other = other_tree(&scratch);
    let take = ["resume", "--from", "s1", "--confirm", "--json"];
    let said = scratch.takeup_in(&other, &take).exits(1).json();
    assert_eq!(said["error"]["code"], "mismatched-repository", "{said}");
    let look = ["inspect", "--from", "s1", "--json"];
    let seen = scratch.takeup_in(&other, &look).exits(0).json();
    let reason = &seen["data"]["candidates"][0]["reasons"][0];
    assert_eq!(reason["code"], "other-worktree", "{seen}");
    for text in [said.to_string(), seen["next"].to_string()] {
        assert!(text.contains(&here.display().to_string()), "{text}");
    }
}

#[test]
fn what_is_closed_in_another_work_tree_is_not_unfinished_here() {
    let scratch = Scratch::new(PROGRAM);
    scratch
        .takeup(&["start", "done", "--session", "a", "--no-checks"])
        .exits(0);
    scratch
        .takeup(&["finish", "done", "--session", "a", "--no-checks"])
        .exits(0);
    let other = other_tree(&scratch);
    let page = scratch.takeup_in(&other, &["inspect"]).exits(0).stdout;
    assert!(!page.contains("done "), "{page}");
    assert!(page.contains("1 closed"), "{page}");
    let all = scratch.takeup_in(&other, &["inspect", "--all"]).exits(0);
    assert!(all.stdout.contains("mismatched-repository"));
}

/// What it left in the first is still offered there, and says nothing of the second.
#[test]
fn a_session_that_goes_on_in_another_work_tree() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let (here, other) = (scratch.repo(), other_tree(&scratch));
    let turn = |folder: &Path| {
        dying(
            &scratch,
            folder,
            "s1",
            "UserPromptSubmit",
            ",\"prompt\":\"blue\"",
        );
        std::fs::write(folder.join("half.txt"), folder.display().to_string()).unwrap();
        dying(&scratch, folder, "s1", "Stop", "");
    };
    let verdicts = |folder: &Path| -> Vec<String> {
        candidates(&scratch, folder)
            .iter()
            .map(|one| one["verdict"].as_str().unwrap().to_owned())
            // What it left in the other one is told, as that one's.
            .filter(|verdict| verdict != "mismatched-repository")
            .collect()
    };
    dying(&scratch, &here, "s1", "SessionStart", "");
    turn(&here);
    // A turn began there, and how it ended was not seen: what was seen here does not stand for it.
    dying(
        &scratch,
        &other,
        "s1",
        "UserPromptSubmit",
        ",\"prompt\":\"red\"",
    );
    std::fs::copy(here.join("half.txt"), other.join("half.txt")).unwrap();
    assert_eq!(verdicts(&here), ["resume-verification"]);
    assert_eq!(verdicts(&other), ["stale-task"]);
    turn(&other);
    assert_eq!(verdicts(&here), ["resume-verification"]);
    assert_eq!(verdicts(&other), ["resume-verification"]);
    scratch.write("half.txt", "changed");
    assert_eq!(verdicts(&here), ["stale-task"]);
    assert_eq!(verdicts(&other), ["resume-verification"]);
    for folder in [&here, &other] {
        let listed = scratch.takeup_in(folder, &["sessions", "--json"]).exits(0);
        let listed = listed.json();
        assert_eq!(listed["data"]["sessions"].as_array().unwrap().len(), 1);
        let cwd = &listed["data"]["sessions"][0]["cwd"];
        assert_eq!(cwd, folder.to_str().unwrap(), "{listed}");
    }
    // It comes back.
    turn(&here);
    assert_eq!(verdicts(&here), ["resume-verification"]);
    assert_eq!(verdicts(&other), ["resume-verification"]);
    // Taken up in one, it is still left in the other.
    let take = ["resume", "--from", "s1", "--confirm", "--to", "s2"];
    scratch.takeup_in(&here, &take).exits(0);
    assert_eq!(verdicts(&other)[0], "resume-verification");
    // The move of the repository takes both along.
    let moved = scratch.path().join("moved");
    std::fs::rename(&other, &moved).unwrap();
    scratch.git(&["worktree", "repair", moved.to_str().unwrap()]);
    assert!(!verdicts(&moved).contains(&"resume-verification".to_owned()));
    scratch.takeup_in(&moved, &["init", "--moved"]).exits(0);
    assert_eq!(verdicts(&moved)[0], "resume-verification");
}

#[test]
fn a_session_that_did_nothing_before_it_went_on_left_nothing() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let (here, other) = (scratch.repo(), other_tree(&scratch));
    dying(&scratch, &here, "s1", "SessionStart", "");
    for event in ["UserPromptSubmit", "Stop"] {
        dying(&scratch, &other, "s1", event, ",\"prompt\":\"blue\"");
    }
    let found = candidates(&scratch, &here);
    assert_eq!(found.len(), 1, "{found:?}");
    let root = &found[0]["identity"]["repositoryRoot"];
    assert_eq!(root, other.to_str().unwrap(), "it is the other one's");
    assert_eq!(candidates(&scratch, &other).len(), 1);
}

/// An agent may go into another work tree of its own and end there.
#[test]
fn an_end_that_is_said_elsewhere_is_heard() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let here = scratch.repo();
    dying(&scratch, &here, "s1", "SessionStart", "");
    let start = [
        "start",
        "Mend it",
        "--session",
        "s1",
        "--agent",
        "claude-code",
    ];
    scratch.takeup(&start).exits(0);
    scratch.write("a.txt", "half done");
    dying(&scratch, &here, "s1", "Stop", "");
    let left = candidates(&scratch, &here)[0]["identity"]["latestWorkingTreeFingerprint"].clone();
    let other = other_tree(&scratch);
    dying(&scratch, &other, "s1", "SessionEnd", ",\"reason\":\"exit\"");
    let found = candidates(&scratch, &here);
    assert_eq!(found[0]["liveness"]["state"], "ended", "{found:?}");
    assert_eq!(found[0]["identity"]["latestWorkingTreeFingerprint"], left);
}

/// Codex does not say when a session ends: one that is gone need not have crashed, and can be said to be over.
#[test]
fn a_session_of_an_agent_that_tells_no_end_can_be_ended() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let here = scratch.repo();
    for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
        dying_of(&scratch, &here, "codex", "c1", event, ",\"prompt\":\"q\"");
    }
    let found = candidates(&scratch, &here);
    assert_eq!(found[0]["liveness"]["state"], "unknown", "{found:?}");
    assert_eq!(found[0]["verdict"], "resume-verification");
    scratch.takeup(&["save", "--session", "c1"]).exits(4);
    scratch
        .takeup(&["save", "--end", "--session", "c2"])
        .exits(4);
    let ended = scratch.takeup(&["save", "--end", "--session", "c1"]);
    assert!(ended.exits(0).stdout.contains("ended"));
    assert!(candidates(&scratch, &here).is_empty());
}

/// Whoever names only the id of a session that hooks told of means that one.
#[test]
fn a_task_is_started_in_the_session_that_hooks_told_of() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let here = scratch.repo();
    dying(&scratch, &here, "s1", "SessionStart", "");
    scratch
        .takeup(&["start", "Mend it", "--session", "s1"])
        .exits(0);
    scratch.write("a.txt", "half done");
    dying(
        &scratch,
        &here,
        "s1",
        "UserPromptSubmit",
        ",\"prompt\":\"go\"",
    );
    dying(&scratch, &here, "s1", "Stop", "");
    let found = candidates(&scratch, &here);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["verdict"], "resume-verification");
}

/// What was given up is not offered again by the end of the same turn.
#[test]
fn a_task_that_was_given_up_does_not_come_back() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let here = scratch.repo();
    dying(&scratch, &here, "s1", "SessionStart", "");
    let of_session = ["--session", "s1", "--agent", "claude-code"];
    scratch
        .takeup(&[&["start", "Two", "--no-checks"][..], &of_session].concat())
        .exits(0);
    scratch.write("b.txt", "2");
    scratch
        .takeup(&[&["abandon", "two"][..], &of_session].concat())
        .exits(0);
    dying(&scratch, &here, "s1", "Stop", "");
    let open = |found: &[Value]| {
        let open = found.iter().filter(|one| one["verdict"] != "not-resumable");
        open.count()
    };
    assert_eq!(open(&candidates(&scratch, &here)), 0);
    // Another turn is other work.
    dying(
        &scratch,
        &here,
        "s1",
        "UserPromptSubmit",
        ",\"prompt\":\"x\"",
    );
    scratch.write("b.txt", "3");
    dying(&scratch, &here, "s1", "Stop", "");
    assert_eq!(open(&candidates(&scratch, &here)), 1);
}

/// A work tree that is made anew at the same path takes over what was left in the one before.
#[test]
fn what_hooks_recorded_in_a_work_tree_made_anew() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let other = other_tree(&scratch);
    for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
        dying(&scratch, &other, "s1", event, ",\"prompt\":\"blue\"");
    }
    let path = other.to_str().unwrap();
    scratch.git(&["worktree", "remove", "--force", path]);
    scratch.git(&["worktree", "add", "-q", path, "other"]);
    let found = candidates(&scratch, &other);
    assert_eq!(found[0]["verdict"], "mismatched-repository", "{found:?}");
    assert_eq!(found[0]["next"]["command"], "git takeup init --moved");
    scratch.takeup_in(&other, &["init", "--moved"]).exits(0);
    let found = candidates(&scratch, &other);
    assert_eq!(found[0]["identity"]["sessionId"], "s1", "{found:?}");
}

#[test]
fn one_id_of_two_agents_is_not_chosen_for_one() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    for agent in ["claude-code", "codex"] {
        let payload = payload(&scratch.repo(), "z1", "SessionStart", "");
        scratch
            .takeup(&["hook", agent, "SessionStart", &payload])
            .exits(0);
    }
    let said = scratch.takeup(&["sessions", "show", "z1", "--json"]);
    let said = said.exits(1).json();
    assert_eq!(said["error"]["code"], "several-sessions", "{said}");
    let shown = scratch.takeup(&["sessions", "show", "codex:z1"]).exits(0);
    assert!(shown.stdout.contains("codex:z1"));
}

/// What a session left without a task is compared, and elsewhere it is said what it is and how to take it up.
#[test]
fn what_a_session_left_is_compared_before_it_is_taken_up() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let hook = |event: &str, more: &str| dying(&scratch, &scratch.repo(), "c1", event, more);
    hook("SessionStart", ",\"source\":\"startup\"");
    hook("UserPromptSubmit", ",\"prompt\":\"mend the parser\"");
    scratch.write("src/a", "half done");
    hook("Stop", "");
    let compare = ["diff", "mend-the-parser", "--json"];
    let equal = scratch.takeup(&compare).exits(0).json();
    assert_eq!(equal["data"]["equal"], true, "{equal}");
    scratch.write("src/b", "another's");
    for words in [
        &compare[..],
        &["diff", "--from", "c1", "--json"],
        &["diff", "--json"],
    ] {
        let changed = scratch.takeup(words).exits(1).json();
        assert_eq!(changed["data"]["sessionId"], "c1");
        assert_eq!(
            changed["data"]["changes"]["paths"][0]["path"], "src/b",
            "{changed}"
        );
    }
    for words in [
        &["show", "mend-the-parser"][..],
        &["log", "mend-the-parser"],
        &["handover", "mend-the-parser"],
        &["abandon", "mend-the-parser"],
        &["note", "x", "--task", "mend-the-parser"],
        &["plan", "--task", "mend-the-parser"],
    ] {
        let said = scratch
            .takeup(&[words, &["--json"]].concat())
            .exits(4)
            .json();
        let error = &said["error"];
        assert_eq!(error["code"], "no-such-task", "{said}");
        let message = error["message"].as_str().unwrap();
        assert_eq!(
            message,
            "mend-the-parser is what session claude-code:c1 left, and no task yet"
        );
        let hint = error["hint"].as_str().unwrap();
        for command in [
            "git takeup sessions show c1",
            "git takeup resume mend-the-parser --from c1",
        ] {
            assert!(hint.contains(&format!("`{command}`")), "{hint}");
            let words: Vec<&str> = command.split(' ').skip(2).collect();
            let ran = scratch.takeup(&words);
            assert!([0, 3].contains(&ran.code), "{command}: {}", ran.stderr);
        }
    }
    let none = scratch
        .takeup(&["show", "nothing-such", "--json"])
        .exits(4)
        .json();
    let message = none["error"]["message"].as_str().unwrap();
    assert_eq!(message, "there is no task \"nothing-such\" here");
}

#[test]
fn a_death_in_the_middle_of_a_turn_is_told() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let hook = |event: &str, more: &str| dying(&scratch, &scratch.repo(), "c1", event, more);
    let open = |task: &str| {
        let found = candidates(&scratch, &scratch.repo());
        let found = found
            .iter()
            .find(|one| one["identity"]["taskId"] == task)
            .unwrap();
        let reasons = found["reasons"].as_array().unwrap();
        reasons.iter().any(|reason| reason["code"] == "turn-open")
    };
    hook("SessionStart", ",\"source\":\"startup\"");
    hook("UserPromptSubmit", ",\"prompt\":\"look around\"");
    hook("Stop", "");
    assert!(!open("look-around"));
    hook("UserPromptSubmit", ",\"prompt\":\"deploy it\"");
    assert!(open("look-around"));
    let of = ["--session", "c1", "--agent", "claude-code"];
    scratch
        .takeup(&[&["start", "Job", "--no-checks"][..], &of].concat())
        .exits(0);
    assert!(
        !open("job"),
        "what was recorded in the middle of it is known"
    );
    hook("Stop", "");
    assert!(!open("job"));
    takeup_tests::a_tick_later();
    hook("UserPromptSubmit", ",\"prompt\":\"deploy it\"");
    assert!(open("job"));
    let shown = scratch.takeup(&["sessions", "show", "c1"]).exits(0).stdout;
    assert!(shown.contains("a turn was going on"), "{shown}");
    let handed = scratch.takeup(&["handover", "job"]).exits(0).stdout;
    assert!(handed.contains("a turn was going on"), "{handed}");
    hook("SessionEnd", ",\"reason\":\"other\"");
    assert!(!open("job"));
}

/// An id is any text: behind `claude -r` it would be an option.
#[test]
fn an_id_that_looks_like_an_option_is_put_into_no_command() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    for (id, offered) in [("--dangerously-skip-permissions", false), ("c1", true)] {
        let hook = |event: &str, more: &str| dying(&scratch, &scratch.repo(), id, event, more);
        hook("UserPromptSubmit", ",\"prompt\":\"mend the parser\"");
        hook("Stop", "");
        let shown = scratch
            .takeup(&["sessions", "show", "--json", "--", id])
            .exits(0)
            .json();
        assert_eq!(shown["next"]["command"].is_string(), offered, "{shown}");
    }
}
