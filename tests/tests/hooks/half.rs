//! While a commit runs its hooks, a hook manager may have put away what is not staged: then the work tree holds half of what
//! was left, and nothing is recorded, closed or taken up on it.
use std::process::{Child, Stdio};

use takeup_core::identity::Identity;
use takeup_core::ids::Fingerprint;

use super::*;

const OF: &str = "--session s1 --agent claude-code";

/// A repository with a task of the session `s1` that left `b.txt` staged and `a.txt` changed.
fn left() -> Scratch {
    let scratch = Scratch::new(PROGRAM);
    let start = ["start", "the task", "--no-checks"];
    scratch.takeup(&[&start[..], &of()].concat()).exits(0);
    scratch.write("b.txt", "staged\n");
    scratch.git(&["add", "b.txt"]);
    scratch.write("a.txt", "unstaged\n");
    scratch.takeup(&[&["save"][..], &of()].concat()).exits(0);
    scratch
}

fn of() -> Vec<&'static str> {
    OF.split(' ').collect()
}

/// Puts a hook in that has the unstaged part away while `then` runs.
fn manager(scratch: &Scratch, hook: &str, then: &str) {
    script(
        &hooks_folder(scratch).join(hook),
        &format!(
            "#!/bin/sh\nset -e\ngit stash push -q --keep-index -u\n\
             ({then}) >../said 2>&1 || :\ngit stash pop -q\n"
        ),
    );
}

fn commit(scratch: &Scratch) -> Child {
    let mut git = Command::new("git");
    scratch.dress(&mut git);
    git.current_dir(scratch.repo())
        .args(["commit", "-q", "-m", "half"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

fn identity(scratch: &Scratch) -> Identity {
    let state = state(&scratch.repo());
    assert_eq!(state.tasks.len(), 1, "no other task was begun");
    let entry = state.tasks.values().next().unwrap();
    assert_eq!(entry.identities.len(), 1, "nobody took it up");
    entry.identities[0].clone()
}

fn content(identity: &Identity) -> &Fingerprint {
    identity.latest.as_ref().unwrap().fingerprint().unwrap()
}

/// What plain git says of the content.
fn judge(scratch: &Scratch) -> String {
    let index = scratch.path().join("judge");
    let git = |args: &[&str]| {
        let named = |command: &mut Command| {
            command.env("GIT_INDEX_FILE", &index);
        };
        let ran = git_with(scratch, &scratch.repo(), named, args);
        assert!(ran.status.success());
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    };
    git(&["add", "-A"]);
    git(&["write-tree"])
}

fn agent_hook(event: &str) -> String {
    format!(
        "printf '{{\"session_id\":\"s1\",\"cwd\":\"%s\",\"hook_event_name\":\"{event}\"}}' \"$PWD\" \
         | git-takeup hook claude-code {event}"
    )
}

#[test]
fn inside_a_hook_of_a_commit_nothing_is_recorded_closed_or_taken_up() {
    let busy = "\"code\":\"commit-runs\"";
    let held = "a commit runs its hooks";
    for hook in ["pre-commit", "prepare-commit-msg", "commit-msg"] {
        for (call, says) in [
            (format!("git takeup save {OF}"), held),
            (
                format!("env -i HOME=\"$HOME\" PATH=\"$PATH\" git-takeup save {OF}"),
                held,
            ),
            (format!("git takeup evaluate --json {OF}"), busy),
            (format!("git takeup next --json {OF}"), busy),
            (format!("git takeup finish --json {OF}"), busy),
            (
                "git takeup start other --session s2 --json".to_owned(),
                busy,
            ),
            (
                "git takeup resume the-task --rebuild --to s2 --json".to_owned(),
                busy,
            ),
            (agent_hook("Stop"), ""),
            (agent_hook("SessionEnd"), ""),
        ] {
            if hook != "pre-commit" && says == busy {
                continue;
            }
            let scratch = left();
            let before = identity(&scratch);
            let whole = judge(&scratch);
            assert_eq!(content(&before).to_string(), whole);
            manager(&scratch, hook, &call);
            assert!(commit(&scratch).wait().unwrap().success());
            let said = fs::read_to_string(scratch.path().join("said")).unwrap();
            assert!(
                said.replace(": ", ":").contains(&says.replace(": ", ":")),
                "{call}: {said}"
            );
            let after = identity(&scratch);
            assert_eq!(content(&after).to_string(), whole, "{hook}: {call}");
            assert_eq!(
                after.status.is_closed(),
                before.status.is_closed(),
                "{call}"
            );
            for session in state(&scratch.repo()).sessions {
                let seen = session
                    .latest
                    .and_then(|latest| latest.fingerprint().cloned());
                assert!(
                    seen.is_none_or(|seen| seen.to_string() == whole),
                    "{hook}: {call}"
                );
            }
            assert_eq!(judge(&scratch), whole);
        }
    }
}

#[test]
fn what_is_ended_in_a_hook_of_a_commit_is_ended() {
    let scratch = left();
    manager(&scratch, "pre-commit", &agent_hook("SessionEnd"));
    assert!(commit(&scratch).wait().unwrap().success());
    let ended = identity(&scratch);
    assert!(ended.closing.is_some());
}

/// The same while the commit runs somewhere else: an agent's turn ends, a person looks after something.
#[test]
fn beside_a_commit_that_runs_its_hooks_nothing_is_recorded_closed_or_taken_up() {
    let scratch = left();
    let whole = judge(&scratch);
    let (away, back) = (scratch.path().join("away"), scratch.path().join("back"));
    manager(
        &scratch,
        "pre-commit",
        "touch ../away; while ! test -e ../back; do sleep 0.02; done",
    );
    let mut git = commit(&scratch);
    until("the unstaged part is away", || away.exists());
    assert_ne!(judge(&scratch), whole);
    let saved = scratch.takeup(&[&["save"][..], &of()].concat()).exits(0);
    assert!(
        saved.stdout.contains("a commit runs its hooks"),
        "{}",
        saved.stdout
    );
    for words in [&["evaluate"][..], &["finish"]] {
        let said = scratch
            .takeup(&[words, &of(), &["--json"]].concat())
            .exits(6);
        let said = said.json();
        assert_eq!(said["error"]["code"], "commit-runs");
        assert_eq!(said["error"]["retryable"], true);
    }
    let mut stop = Command::new("sh");
    scratch.dress(&mut stop);
    stop.current_dir(scratch.repo())
        .args(["-c", &agent_hook("Stop")]);
    assert!(stop.status().unwrap().success());
    assert_eq!(content(&identity(&scratch)).to_string(), whole);

    // One that asks just before the end waits for it.
    let mut save = scratch.program_in(&scratch.repo());
    let mut save = save.args([&["save"][..], &of()].concat()).spawn().unwrap();
    fs::write(&back, "").unwrap();
    assert!(save.wait().unwrap().success());
    assert!(git.wait().unwrap().success());
    assert_eq!(judge(&scratch), whole);
    assert_eq!(content(&identity(&scratch)).to_string(), whole);
    scratch.takeup(&[&["finish"][..], &of()].concat()).exits(0);
}

/// Nothing is away while the message is written, and that may take hours.
#[test]
fn the_editor_of_a_commit_is_no_hook() {
    let scratch = left();
    manager(&scratch, "pre-commit", ":");
    let (open, done) = (scratch.path().join("open"), scratch.path().join("done"));
    script(
        &scratch.path().join("editor"),
        "#!/bin/sh\ntouch ../open\nwhile ! test -e ../done; do sleep 0.02; done\necho half >\"$1\"\n",
    );
    let mut git = Command::new("git");
    scratch.dress(&mut git);
    let mut git = git
        .current_dir(scratch.repo())
        .env("GIT_EDITOR", scratch.path().join("editor"))
        .args(["commit", "-q"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    until("the editor is open", || open.exists());
    scratch.write("a.txt", "more\n");
    scratch.takeup(&[&["save"][..], &of()].concat()).exits(0);
    assert_eq!(content(&identity(&scratch)).to_string(), judge(&scratch));
    fs::write(&done, "").unwrap();
    assert!(git.wait().unwrap().success());
}
