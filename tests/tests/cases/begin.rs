//! `resume … -- COMMAND`: the task is taken up when the one that goes on has come to life, and not before.
use std::time::Duration;

use takeup_tests::{Scratch, picture};

use super::{left, verdict};

/// Returns what is known of the task's sessions: id and status of each.
fn sessions(scratch: &Scratch) -> Vec<(String, String)> {
    let shown = scratch.takeup(&["show", "t1", "--json"]).exits(0).json();
    shown["data"]["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|candidate| {
            let identity = &candidate["identity"];
            let text = |name: &str| identity[name].as_str().unwrap().to_owned();
            (text("sessionId"), text("status"))
        })
        .collect()
}

fn read(scratch: &Scratch, name: &str) -> String {
    std::fs::read_to_string(scratch.path().join(name)).unwrap()
}

#[test]
fn a_command_that_does_not_come_to_life_changes_nothing() {
    let scratch = left();
    let before = picture(&scratch.repo(), &|_| false);
    for (words, code, said) in [
        (&["no-such-agent-at-all"][..], 127, "not found"),
        (&["/"], 126, "/"),
        (&["sh", "-c", "exit 3"], 3, "exit status 3"),
        (&["sh", "-c", "sleep 0.3; exit 4"], 4, "exit status 4"),
        (&["sh", "-c", "kill -9 $$"], 137, "signal 9"),
    ] {
        let ran = scratch.takeup(&[&["resume", "t1", "--confirm", "--"], words].concat());
        assert_eq!(ran.code, code, "{words:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(said) && ran.stderr.contains("the task stays where it is"),
            "{words:?}: {}",
            ran.stderr
        );
        assert_eq!(verdict(&scratch), "resume-verification", "{words:?}");
        assert_eq!(sessions(&scratch).len(), 1);
    }
    let after = picture(&scratch.repo(), &|_| false);
    // Only the cache of the fingerprint may be kept up.
    let changed: Vec<String> = takeup_tests::differences(&before, &after)
        .into_iter()
        .filter(|line| !line.contains(".git/takeup/look.cache") && !line.contains(".git/takeup "))
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
}

#[test]
fn nothing_is_started_before_a_person_confirmed() {
    let scratch = left();
    let marker = scratch.path().join("started");
    let marker = marker.to_str().unwrap();
    let ran = scratch
        .takeup(&["resume", "t1", "--no-input", "--", "touch", marker])
        .exits(3);
    assert!(
        ran.stderr.contains(&format!(" -- touch {marker}")),
        "{}",
        ran.stderr
    );
    scratch.write("a.txt", "other\n");
    // A plain yes does not do for a task that is stale, and neither does a token for something else.
    for confirm in ["--confirm", "--confirm=ok-0123456789"] {
        let ran = scratch.takeup(&["resume", "t1", confirm, "--", "touch", marker]);
        assert_ne!(ran.code, 0);
    }
    scratch
        .takeup(&["resume", "t1", "--confirm", "--json", "--", "touch", marker])
        .exits(2);
    assert!(!std::path::Path::new(marker).exists());
    assert_eq!(sessions(&scratch).len(), 1);
}

/// Starts a take-up with a command of a shell and does not wait for it.
fn started(scratch: &Scratch, script: &str) -> std::process::Child {
    let mut command = scratch.program_in(&scratch.repo());
    command
        .args(["resume", "t1", "--confirm", "--", "sh", "-c", script])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a_command_that_lives_goes_on_as_a_session_of_its_own() {
    let scratch = left();
    // What it does to the tree in its first moment is its own doing, and no change since the yes.
    let script = "pwd > ../where; printf %s \"$TAKEUP_AGENT:$TAKEUP_SESSION\" > ../who; echo new > a.txt; \
        until test -e ../go; do sleep 0.05; done; exit 7";
    let running = started(&scratch, script);
    while sessions(&scratch).len() < 2 {
        std::thread::sleep(Duration::from_millis(50));
    }
    let seen = scratch.takeup(&["show", "t1", "--json"]).exits(0).json();
    scratch.write("../go", "");
    let ran = takeup_tests::Ran::of(running.wait_with_output().unwrap()).exits(7);
    assert_eq!(ran.stdout, "", "standard output is the command's");
    assert!(
        ran.stderr.contains("taken up as it was left"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        read(&scratch, "where").trim(),
        scratch.repo().to_str().unwrap()
    );
    let who = read(&scratch, "who");
    let session = who.strip_prefix("person:").unwrap();
    let own = |seen: &serde_json::Value| {
        seen["data"]["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .find(|candidate| candidate["identity"]["sessionId"] == session)
            .unwrap()
            .clone()
    };
    // It ended by itself: that is no crash.
    let ended = own(&scratch.takeup(&["show", "t1", "--json"]).exits(0).json());
    assert_eq!(ended["liveness"]["state"], "ended", "{ended}");
    let own = own(&seen);
    assert_eq!(own["identity"]["status"], "verification-required");
    assert_eq!(own["liveness"]["state"], "live", "{own}");
    assert_eq!(own["verdict"], "in-use", "{own}");
    let known = sessions(&scratch);
    assert!(
        known.contains(&("s1".to_owned(), "abandoned".to_owned())),
        "{known:?}"
    );
    assert_eq!(known.len(), 2);
}

#[test]
fn a_command_that_is_done_at_once_has_lived_and_a_repeat_starts_it_again() {
    let scratch = left();
    let count = "echo x >> ../runs";
    let words = [
        "resume",
        "t1",
        "--to",
        "s2",
        "--confirm",
        "--",
        "sh",
        "-c",
        count,
    ];
    scratch.takeup(&words).exits(0);
    let known = sessions(&scratch);
    assert!(
        known.contains(&("s2".to_owned(), "verification-required".to_owned())),
        "{known:?}"
    );
    scratch.takeup(&words).exits(0);
    assert_eq!(sessions(&scratch), known);
    assert_eq!(read(&scratch, "runs"), "x\nx\n");
}

#[test]
fn who_is_overtaken_ends_what_it_began() {
    let say = |pid: &str| format!("echo {pid} > ../pid.new; mv ../pid.new ../pid");
    for script in [
        format!("{}; exec sleep 300", say("$$")),
        // The one that works is below what was begun, as with `npx`; or has left it.
        format!("sleep 300 & {}; wait", say("$!")),
        format!("(setsid sleep 300 & {}); exec sleep 300", say("$!")),
    ] {
        overtaken(&script);
    }
}

fn overtaken(script: &str) {
    let scratch = left();
    let slow = started(&scratch, script);
    let pid = scratch.path().join("pid");
    while !pid.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let fast = scratch.takeup(&["resume", "t1", "--to", "s3", "--confirm"]);
    let pid = read(&scratch, "pid");
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    if fast.code != 0 {
        // On a machine that stood still for two seconds, the first had come to life before the second came.
        println!("skipped: the second came too late: {}", fast.stderr);
        let _ended = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        return;
    }
    let slow = takeup_tests::Ran::of(slow.wait_with_output().unwrap()).exits(5);
    assert!(slow.stderr.contains("s3"), "{}", slow.stderr);
    let known = sessions(&scratch);
    assert!(known.contains(&("s3".to_owned(), "verification-required".to_owned())));
    let command = std::fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
    let is_there = command.is_ok_and(|command| command.contains("sleep"));
    if is_there {
        let _ended = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    assert!(!is_there, "{script}");
    assert_eq!(known.len(), 2, "{known:?}");
}
