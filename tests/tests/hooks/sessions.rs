//! Whose doing it was.
use takeup_core::fingerprint::ProvenanceEvent;
use takeup_core::identity::Identity;

use super::*;

/// Runs a shell that is the session `s1` of a task: it says so, then goes on with `then`. Its end is a crash.
fn session(scratch: &Scratch, then: &str) {
    let mut shell = Command::new("sh");
    scratch.dress(&mut shell);
    let script =
        format!("set -e\ngit-takeup start 'the task' --session s1 --pid $$ >/dev/null\n{then}\n");
    let ran = shell
        .current_dir(scratch.repo())
        .args(["-c", &script])
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

fn identity(scratch: &Scratch) -> Identity {
    let state = state(&scratch.repo());
    let entry = state.tasks.values().next().expect("the task is there");
    entry.identities[0].clone()
}

fn latest_event(scratch: &Scratch) -> ProvenanceEvent {
    identity(scratch).latest.unwrap().provenance.event
}

fn verdict(scratch: &Scratch) -> String {
    let answer = scratch.takeup(&["inspect", "--json"]).json();
    answer["data"]["candidates"][0]["verdict"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn what_the_session_itself_commits_moves_its_record_on_and_what_others_do_does_not() {
    let scratch = installed();
    session(
        &scratch,
        "echo b > b.txt\ngit add b.txt\ngit commit -q -m 'by the session'\necho c > c.txt\ngit commit -q --allow-empty -m again",
    );
    until("the record moved on", || {
        latest_event(&scratch) == ProvenanceEvent::GitHook
    });
    settled(&scratch.repo());
    let seen = state(&scratch.repo()).observations;
    assert_eq!(seen.len(), 2);
    for one in &seen {
        assert_eq!(one.by.as_ref().unwrap().id.as_str(), "s1");
    }
    let left = identity(&scratch).latest.unwrap();
    assert!(!left.provenance.provisional);
    // What lies untracked beside the commit is part of the content.
    let mut index = Command::new("sh");
    scratch.dress(&mut index);
    let judge = index
        .current_dir(scratch.repo())
        .env("GIT_INDEX_FILE", scratch.path().join("judge"))
        .args(["-c", "git add -A && git write-tree"])
        .output()
        .unwrap();
    assert_eq!(
        left.tree.fingerprint.as_ref().unwrap().as_str(),
        String::from_utf8_lossy(&judge.stdout).trim()
    );
    assert_eq!(verdict(&scratch), "resume-verification");

    // A person commits: the record stays, and the task is known to have drifted, by what.
    scratch.git(&["add", "c.txt"]);
    scratch.git(&["rm", "-q", "b.txt"]);
    scratch.git(&["commit", "-q", "-m", "by a person"]);
    let after = settled(&scratch.repo());
    assert_eq!(after.observations.last().unwrap().by, None);
    assert_eq!(identity(&scratch).latest.unwrap(), left);
    assert_eq!(verdict(&scratch), "stale-task");
    let answer = scratch.takeup(&["inspect", "--json"]).json();
    let since = answer["data"]["candidates"][0]["since"].as_array().unwrap();
    assert_eq!(since.len(), 1);
    let head = scratch.git(&["rev-parse", "HEAD"]);
    assert_eq!(since[0]["what"], format!("commit {} on main", &head[..10]));
    assert!(since[0]["by"].is_null());
    let shown = scratch.takeup(&["inspect"]).stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.contains(&format!("commit {} on main by a person", &head[..10])),
        "{shown}"
    );
    // Undone, it is as it was left.
    scratch.git(&["reset", "-q", "--hard", "HEAD~1"]);
    scratch.write("c.txt", "c\n");
    settled(&scratch.repo());
    assert_eq!(verdict(&scratch), "resume-verification");
}

#[test]
fn a_commit_of_a_second_session_is_its_own() {
    let scratch = installed();
    session(&scratch, "true");
    let left = identity(&scratch).latest;
    let mut shell = Command::new("sh");
    scratch.dress(&mut shell);
    let ran = shell
        .current_dir(scratch.repo())
        .args(["-c", "git-takeup start other --session s2 --pid $$ >/dev/null && echo x > x.txt && git add x.txt && git commit -q -m x"])
        .output()
        .unwrap();
    assert!(ran.status.success());
    let after = settled(&scratch.repo());
    assert_eq!(after.observations[0].by.as_ref().unwrap().id.as_str(), "s2");
    let first = after
        .tasks
        .values()
        .flat_map(|entry| &entry.identities)
        .find(|identity| identity.session.id.as_str() == "s1")
        .unwrap();
    assert_eq!(first.latest, left);
}

/// A new conversation in the same program, sessions of one server, two tasks at one terminal.
#[test]
fn a_commit_in_a_process_of_two_sessions_is_the_named_one_s_or_nobody_s() {
    for (named, whose) in [(None, None), (Some("s2"), Some("s2"))] {
        let scratch = installed();
        let begin = "git-takeup start other --session s2 --pid $$ >/dev/null\necho x > x.txt\ngit add x.txt";
        let name = named.map_or(String::new(), |name| format!("TAKEUP_SESSION={name} "));
        session(&scratch, &format!("{begin}\n{name}git commit -q -m x"));
        let after = settled(&scratch.repo());
        let by = after.observations[0].by.as_ref();
        assert_eq!(by.map(|by| by.id.as_str()), whose);
        let moved_on: Vec<&str> = after
            .tasks
            .values()
            .flat_map(|entry| &entry.identities)
            .filter(|identity| {
                let latest = identity.latest.as_ref().unwrap();
                latest.provenance.event == ProvenanceEvent::GitHook
            })
            .map(|identity| identity.session.id.as_str())
            .collect();
        assert_eq!(moved_on, Vec::from_iter(whose));
    }
}

#[test]
fn a_commit_in_another_work_tree_is_that_of_the_session_there() {
    let scratch = installed();
    session(
        &scratch,
        "git worktree add -q ../linked\ncd ../linked\n\
         git-takeup start other --session s2 --pid $$ >/dev/null\ngit commit -q --allow-empty -m x",
    );
    let after = settled(&scratch.repo());
    let last = after.observations.last().unwrap();
    assert_eq!(last.by.as_ref().unwrap().id.as_str(), "s2");
}

/// Within one commit a manager parks the unstaged part; the session's record holds the whole.
#[test]
fn a_session_s_record_never_holds_a_tree_that_was_parked_while_hooks_ran() {
    let scratch = installed();
    let post = hooks_folder(&scratch).join("post-commit");
    let ours = fs::read_to_string(&post).unwrap();
    // As a manager that parks the unstaged part before hooks, and brings it back when all of them are over.
    script(
        &hooks_folder(&scratch).join("pre-commit"),
        "#!/bin/sh\nset -e\ngit diff --binary > .git/parked\ngit apply -R .git/parked\n",
    );
    script(&post, &format!("{ours}sleep 0.2\ngit apply .git/parked\n"));
    session(
        &scratch,
        "echo staged > b.txt\ngit add b.txt\necho unstaged >> a.txt\ngit commit -q -m half",
    );
    until("the record moved on", || {
        latest_event(&scratch) == ProvenanceEvent::GitHook
    });
    settled(&scratch.repo());
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M a.txt");
    assert_eq!(verdict(&scratch), "resume-verification");
}

/// The same, where a hook of the user's own saves while the unstaged part is away.
#[test]
fn what_a_hook_of_a_commit_saves_is_not_the_content() {
    for call in ["git takeup", "git-takeup", "exec git takeup"] {
        let scratch = Scratch::new(PROGRAM);
        script(
            &hooks_folder(&scratch).join("pre-commit"),
            &format!(
                "#!/bin/sh\nset -e\ngit stash push -q --keep-index\n\
                 ({call} save --session s1) > ../said 2>&1\ngit stash pop -q\n"
            ),
        );
        scratch
            .takeup(&["start", "the task", "--session", "s1"])
            .exits(0);
        scratch.write("b.txt", "staged\n");
        scratch.git(&["add", "b.txt"]);
        scratch.write("a.txt", "unstaged\n");
        scratch.takeup(&["save", "--session", "s1"]).exits(0);
        let left = identity(&scratch).latest;
        scratch.git(&["commit", "-q", "-m", "half"]);
        let said = fs::read_to_string(scratch.path().join("said")).unwrap();
        assert!(said.contains("a commit runs its hooks"), "{call}: {said}");
        assert_eq!(identity(&scratch).latest, left, "{call}");
        scratch.git(&["checkout", "-q", "--", "a.txt"]);
        assert_eq!(verdict(&scratch), "stale-task");
    }
}
