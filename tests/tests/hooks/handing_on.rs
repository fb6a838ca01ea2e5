//! Who waits for the program is told to go on, and the program looks at the content afterwards.
use super::*;

/// The shells that hooks are written for, where they are installed.
fn shells() -> Vec<PathBuf> {
    let found: Vec<PathBuf> = ["dash", "bash", "ksh", "mksh"]
        .iter()
        .map(|name| Path::new("/usr/bin").join(name))
        .filter(|path| path.exists())
        .collect();
    assert!(!found.is_empty(), "there is a shell");
    found
}

/// The part of a hook that waits until one of ours runs in this work tree with such words, and writes down which do.
fn look(words: &str) -> String {
    format!(
        r#"
rounds=0
until grep -q '{words}' ../running 2>/dev/null || [ "$rounds" = 2000 ]; do
	rounds=$((rounds + 1))
	for process in /proc/[0-9]*; do
		[ "$(readlink "$process/cwd")" = "$PWD" ] && tr '\0' ' ' <"$process/cmdline" && echo
	done >../running 2>/dev/null || :
done
"#
    )
}

fn observed(scratch: &Scratch) -> usize {
    settled(&scratch.repo()).observations.len()
}

/// No further program is started, in whatever shell the hook is written, and the rest of the script goes on meanwhile.
#[test]
fn the_program_that_recorded_looks_afterwards() {
    for shell in shells() {
        let scratch = Scratch::new(PROGRAM);
        let hook = scratch.repo().join(".git/hooks/post-commit");
        // What the script itself does with the signal is not touched.
        let look = look("hook git post-commit");
        let own = "trap 'echo theirs >../signalled' USR1\nkill -USR1 $$\n";
        script(
            &hook,
            &format!("#!{}\nset -eu\n{look}{own}", shell.display()),
        );
        scratch.takeup(&["hooks", "install"]).exits(0);
        scratch.takeup(&["start", "x", "--session", "s1", "--agent", "codex"]);
        for number in 0..250 {
            scratch.write(&format!("many/{number}"), "x");
        }
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-qm", "many"]);
        let running = fs::read_to_string(scratch.path().join("running")).unwrap();
        let name = shell.display();
        assert!(
            running.contains("hook git post-commit"),
            "{name}: {running}"
        );
        assert!(!running.contains("hook git recorder"), "{name}: {running}");
        let signalled = fs::read_to_string(scratch.path().join("signalled")).unwrap();
        assert_eq!(signalled, "theirs\n", "{name}");
        assert_eq!(observed(&scratch), 1, "{name}");
        let state = state(&scratch.repo());
        assert!(state.observations[0].fingerprint.is_some(), "{name}");
    }
}

/// Whoever ignores the signal cannot be told: a recorder of its own looks, and nobody waits for it.
#[test]
fn where_the_signal_is_ignored_a_recorder_is_started() {
    let scratch = Scratch::new(PROGRAM);
    let hook = scratch.repo().join(".git/hooks/post-commit");
    script(&hook, &format!("#!/bin/sh\n{}", look("hook git recorder")));
    scratch.takeup(&["hooks", "install"]).exits(0);
    scratch.takeup(&["init"]).exits(0);
    for number in 0..250 {
        scratch.write(&format!("many/{number}"), "x");
    }
    scratch.git(&["add", "-A"]);
    let mut commit = Command::new("sh");
    commit.args(["-c", "trap '' USR1; git commit -qm many"]);
    scratch.dress(&mut commit);
    let ran = commit.current_dir(scratch.repo()).output().unwrap();
    assert!(ran.status.success());
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
    let running = fs::read_to_string(scratch.path().join("running")).unwrap();
    assert!(running.contains("hook git recorder"), "{running}");
    assert_eq!(observed(&scratch), 1);
}

/// Whatever ends with git, as its process group does where an agent's terminal goes, the content is looked at.
#[test]
fn the_end_of_the_group_that_git_ran_in_is_not_that_of_the_look() {
    use std::os::unix::process::CommandExt as _;
    let scratch = installed();
    scratch.takeup(&["init"]).exits(0);
    for number in 0..250 {
        scratch.write(&format!("many/{number}"), "x");
    }
    scratch.git(&["add", "-A"]);
    for number in 1..=8 {
        let mut commit = Command::new("git");
        commit.args(["commit", "-q", "--allow-empty", "-m", "x"]);
        scratch.dress(&mut commit);
        commit.current_dir(scratch.repo()).process_group(0);
        let mut git = commit.spawn().unwrap();
        let group = rustix::process::Pid::from_child(&git);
        assert!(git.wait().unwrap().success());
        // There may be nobody left in it.
        let _ended = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        assert_eq!(observed(&scratch), number);
    }
}
