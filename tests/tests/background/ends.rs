//! How a task ends, and what is said of it.
use std::path::Path;

use serde_json::json;

use super::kit::{Desk, until};

#[test]
fn every_exit_status_is_told_as_it_was() {
    let desk = Desk::new();
    for code in [0, 1, 2, 126, 127, 255] {
        let id = desk.sh(&format!("exit {code}"));
        let task = desk.end(&id);
        assert_eq!(task["exitCode"], code, "{task}");
        assert_eq!(task["signal"], json!(null));
        assert_eq!(
            task["status"],
            if code == 0 { "completed" } else { "failed" }
        );
        assert_eq!(desk.bg(&["wait", &id, "--exit-code"]).code, code);
        assert_eq!(desk.bg(&["wait", &id]).code, i32::from(code != 0));
        assert_eq!(desk.record(&id)["exit_code"], code);
    }
}

#[test]
fn every_signal_is_told_as_it_was() {
    let desk = Desk::new();
    // All but those whose default is to do nothing, to stop or to go on; 32 and 33 belong to the C library.
    let plain = (1..=31).filter(|signal| ![17, 18, 19, 20, 21, 22, 23, 28].contains(signal));
    for signal in plain.chain([34, 50, 64]) {
        let id = desk.sh(&format!("ulimit -c 0; kill -{signal} $$; sleep 500"));
        let task = desk.end(&id);
        assert_eq!(task["signal"], signal, "{task}");
        assert_eq!(task["exitCode"], 128 + signal);
        assert_eq!(task["status"], "failed");
        assert_eq!(task["state"]["failure"]["how"]["coreDumped"], false);
    }
}

/// A shell ignores interruptions for what it runs behind `&`, and nohup the end of the terminal.
#[test]
fn what_the_caller_ignores_the_command_does_not() {
    let desk = Desk::new();
    for signal in [1, 2, 3, 15] {
        let mut shell = std::process::Command::new("sh");
        desk.scratch.dress(&mut shell);
        let ran = takeup_tests::Ran::of(
            shell
                .current_dir(desk.scratch.home())
                .args(["-c", "trap '' HUP INT QUIT TERM; exec \"$@\"", "sh"])
                .arg(super::kit::PROGRAM)
                .args(["bg", "run", "--json", "--", "sh", "-c"])
                .arg(format!("ulimit -c 0; kill -{signal} $$; sleep 500"))
                .output()
                .unwrap(),
        )
        .exits(0);
        let id = ran.json()["data"]["task"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(desk.end(&id)["signal"], signal);
    }
}

#[test]
fn a_core_dump_is_told() {
    // Whether a core file is written depends on the machine; then the flag is set also where a pipe takes it.
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let desk = Desk::new();
    let judge = std::process::Command::new("sh")
        .args(["-c", "ulimit -c unlimited; kill -ABRT $$"])
        .current_dir(desk.scratch.home())
        .status()
        .unwrap();
    let id = desk.sh("ulimit -c unlimited; kill -ABRT $$");
    let task = desk.end(&id);
    assert_eq!(
        task["state"]["failure"]["how"]["coreDumped"],
        std::os::unix::process::ExitStatusExt::core_dumped(&judge),
        "pattern {pattern}"
    );
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test's file needs no durability"
)]
fn what_cannot_be_started_is_said_at_once() {
    let desk = Desk::new();
    let ran = desk
        .bg(&[
            "run",
            "--name",
            "none",
            "--json",
            "--",
            "no-such-command-4711",
        ])
        .exits(1)
        .json();
    assert_eq!(ran["error"]["code"], "command-not-found");
    let task = desk.show("none");
    assert_eq!(
        (&task["status"], &task["exitCode"]),
        (&json!("failed"), &json!(127))
    );
    assert_eq!(desk.record(task["id"].as_str().unwrap())["exit_code"], 127);

    let plain = desk.scratch.home().join("plain");
    std::fs::write(&plain, "text").unwrap();
    let ran = desk
        .bg(&[
            "run",
            "--name",
            "plain",
            "--json",
            "--",
            plain.to_str().unwrap(),
        ])
        .exits(1)
        .json();
    assert_eq!(ran["error"]["code"], "command-not-runnable");
    assert_eq!(desk.show("plain")["exitCode"], 126);
    // A folder is no program either.
    assert_eq!(desk.bg(&["run", "--", "/"]).code, 1);
    assert_eq!(
        desk.bg(&["run", "--cwd", "/no/such/folder", "--", "true"])
            .code,
        2
    );
    assert_eq!(desk.bg(&["run"]).code, 2);
    assert!(!Path::new(&desk.file(task["id"].as_str().unwrap(), ".stdout")).exists());
}

#[test]
fn a_command_that_puts_itself_in_the_background_is_not_over() {
    let desk = Desk::new();
    let id = desk.sh(&format!(
        "setsid sh -c '{}; echo late' & echo early; exit 5",
        desk.wait_for_gate()
    ));
    until("the command has ended", || {
        desk.show(&id)["state"]["commandEnd"]["how"]["code"] == 5
    });
    assert_eq!(desk.status(&id), "running");
    desk.open_gate();
    let task = desk.end(&id);
    assert_eq!(
        (&task["status"], &task["exitCode"]),
        (&json!("failed"), &json!(5))
    );
    assert_eq!(desk.output(&id), "early\nlate\n");
}

#[test]
fn one_any_or_all_can_be_waited_for() {
    let desk = Desk::new();
    let fast = desk.sh("exit 3");
    let slow = desk.sh(&desk.wait_for_gate());
    desk.bg(&["wait", "--any", &slow, &fast, "--timeout", "60s"])
        .exits(1);
    let waited = desk
        .bg(&["wait", &slow, &fast, "--timeout", "50ms", "--json"])
        .exits(6)
        .json();
    assert_eq!(waited["data"]["timedOut"], true);
    // One that completed is no failure: the other is waited for. One that failed is.
    let good = desk.sh("true");
    desk.end(&good);
    desk.bg(&["wait", "--first-failure", &slow, &good, "--timeout", "50ms"])
        .exits(6);
    desk.bg(&["wait", "--first-failure", &slow, &good, &fast])
        .exits(1);
    desk.bg(&["wait", "--first-failure", "--any", &good])
        .exits(2);
    desk.open_gate();
    desk.bg(&["wait", "--first-failure", &slow, &good]).exits(0);
    desk.bg(&["wait", &slow]).exits(0);
    desk.bg(&["wait", &slow, &fast]).exits(1);
    desk.bg(&["wait"]).exits(0);
    desk.bg(&["wait", "no-such-task"]).exits(4);
}

#[test]
fn readiness_can_be_waited_for() {
    let desk = Desk::new();
    desk.start(
        &["--ready", "listening on"],
        &["sh", "-c", "echo listening on 1; sleep 500"],
    );
    let file = desk.scratch.home().join("made");
    desk.start(
        &["--ready", &format!("cmd:test -e {}", file.display())],
        &["sh", "-c", &format!("touch {file:?}; sleep 500")],
    );
    let ran = desk
        .bg(&["run", "--json", "--ready", "never", "--", "true"])
        .exits(1)
        .json();
    assert_eq!(ran["data"]["ready"], false);
}

/// Takes a port for itself: nothing answers there until it listens.
fn own_port(address: std::net::IpAddr) -> (std::os::fd::OwnedFd, u16) {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = socket(family, SocketType::STREAM, None).unwrap();
    bind(&socket, &std::net::SocketAddr::new(address, 0)).unwrap();
    let bound = getsockname(&socket).unwrap();
    let port = std::net::SocketAddr::try_from(bound).unwrap().port();
    (socket, port)
}

#[test]
fn a_port_shows_that_a_task_is_ready_only_where_it_was_free_before() {
    let desk = Desk::new();
    let localhost = [
        std::net::IpAddr::from([127, 0, 0, 1]),
        std::net::IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
    ];
    for address in localhost {
        if std::net::TcpListener::bind((address, 0)).is_err() {
            eprintln!("this machine has no {address}: that part was skipped");
            continue;
        }
        let (socket, port) = own_port(address);
        let mark = desk.gate();
        let mut waits = desk
            .program()
            .args([
                "bg",
                "run",
                "--ready",
                &format!("port:{port}"),
                "--",
                "sh",
                "-c",
            ])
            .arg(format!("touch {mark:?}; sleep 500"))
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        until("it runs", || mark.exists());
        rustix::net::listen(&socket, 8).unwrap();
        assert_eq!(waits.wait().unwrap().code(), Some(0));
        std::fs::remove_file(&mark).unwrap();
        // What listens there now is somebody else's, seen from the next task.
        let refused = desk.bg(&[
            "run",
            "--json",
            "--ready",
            &format!("port:{port}"),
            "--",
            "touch",
            mark.to_str().unwrap(),
        ]);
        assert_eq!(refused.code, 5, "{refused:?}");
        assert_eq!(refused.json()["error"]["code"], "port-taken");
        assert!(!mark.exists(), "nothing was started");
    }
}

#[test]
fn waiting_for_readiness_ends_with_its_time_and_with_the_task() {
    let desk = Desk::new();
    // A command that never ends is no longer waited for than was said.
    let ran = desk
        .bg(&[
            "run",
            "--json",
            "--ready",
            "cmd:sleep 500",
            "--ready-timeout",
            "200ms",
            "--",
            "sleep",
            "500",
        ])
        .exits(1)
        .json();
    assert_eq!(ran["data"]["ready"], false);
    assert_eq!(ran["data"]["task"]["status"], "running");
    // What answers when the task is over does not speak of the task.
    let over = desk.scratch.home().join("over");
    let script = format!("touch {over:?}");
    let ran = desk
        .bg(&[
            "run",
            "--json",
            "--ready",
            &format!(
                "cmd:sh -c 'until test -e {}; do sleep 0.01; done; sleep 1; exit 1'",
                over.display()
            ),
            "--",
            "sh",
            "-c",
            &script,
        ])
        .exits(1)
        .json();
    assert_eq!(ran["data"]["ready"], false);
}

#[test]
fn waiting_for_readiness_ends_when_nobody_wants_to_know_any_more() {
    use takeup_core::background::{Host, Readiness, Store, look, wait_ready};
    let desk = Desk::new();
    let id = desk.sh("sleep 500");
    let store = Store::at(desk.folder());
    let processes = takeup_core::process::system();
    let record = look(&store, &store.find(&id).unwrap(), &processes)
        .unwrap()
        .record;
    let host = Host {
        program: std::path::Path::new(super::kit::PROGRAM),
        processes: &processes,
        clock: &takeup_core::time::SystemClock,
        masker: &takeup_core::redact::Masker::default(),
    };
    let hours = std::time::Duration::from_hours(2);
    for readiness in ["never printed", "port:1", "cmd:sleep 500"] {
        let raised = std::sync::atomic::AtomicBool::new(true);
        let readiness = Readiness::parse(readiness).unwrap();
        let ready = wait_ready(&store, &record, &readiness, hours, Some(&raised), &host);
        assert!(!ready.unwrap(), "{readiness:?}");
    }
}

#[test]
fn limits_reach_the_command() {
    let desk = Desk::new();
    let go = desk.scratch.home().join("go");
    let look = format!(
        "until test -e {go:?}; do sleep 0.01; done; ulimit -v; ulimit -H -v; ulimit -t; \
         cat /sys/fs/cgroup/$(sed -n 's/^0::.//p' /proc/self/cgroup)/memory.max; :"
    );
    let id = desk.start(
        &["--memory", "1G", "--cpu-time", "7s"],
        &["sh", "-c", &look],
    );
    // The hard limit is set once the command has begun; `bg run` returns after that.
    std::fs::write(go, "").unwrap();
    let task = desk.end(&id);
    assert_eq!(task["status"], "completed");
    let said: Vec<&str> = task["limits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|limit| limit.as_str().unwrap())
        .collect();
    // Which of the two it is depends on the machine; what is said must be what holds.
    let output = desk.output(&id);
    let lines: Vec<&str> = output.lines().collect();
    if said[0] == "memory 1.0 GiB for all of it" {
        assert_eq!(lines, ["unlimited", "unlimited", "7", "1073741824"]);
        assert!(!desk.record(&id)["takeup"]["memoryGroup"].is_null());
    } else {
        assert_eq!(said[0], "memory 1.0 GiB for each process");
        assert_eq!(lines[..3], ["1048576", "1048576", "7"]);
    }
    assert_eq!(said[1], "processor 7s for each process");
}

#[test]
fn a_command_that_uses_too_much_is_ended_and_the_signal_is_told() {
    let desk = Desk::new();
    let id = desk.start(
        &["--cpu-time", "1s"],
        &["sh", "-c", "ulimit -t 60; while :; do :; done"],
    );
    let task = desk.end(&id);
    // The limit cannot be raised again: the shell is told, and hears by SIGXCPU.
    assert_eq!(
        (&task["status"], &task["signal"]),
        (&json!("failed"), &json!(24)),
        "{task}"
    );
    let id = desk.start(
        &["--memory", "256M"],
        &["sh", "-c", "head -c 1G /dev/zero | tail -c 1G | wc -c"],
    );
    desk.end(&id);
    assert_ne!(desk.output(&id).trim(), "1073741824");
}

#[test]
fn what_is_over_can_be_cleaned_away_after_a_preview() {
    let desk = Desk::new();
    let done = desk.sh("echo x");
    let running = desk.sh("sleep 500");
    desk.end(&done);
    let preview = desk
        .bg(&["clean", "--all", "--dry-run", "--json"])
        .exits(0)
        .json();
    assert_eq!(preview["data"]["removed"][0]["id"], done.as_str());
    assert_eq!(preview["data"]["running"], 1);
    assert_eq!(desk.status(&done), "completed");
    desk.bg(&["clean", "--all"]).exits(0);
    desk.bg(&["show", &done]).exits(4);
    assert_eq!(desk.status(&running), "running");
    let left: Vec<_> = std::fs::read_dir(desk.folder())
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&done))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test's file needs no durability"
)]
fn a_damaged_record_is_reported_and_the_others_are_listed() {
    let desk = Desk::new();
    let ids: Vec<String> = (0..4).map(|_| desk.sh("true")).collect();
    for id in &ids {
        desk.end(id);
    }
    let path = |number: usize| desk.file(&ids[number], ".status.json");
    std::fs::write(path(0), vec![0; 700]).unwrap();
    let whole = std::fs::read(path(1)).unwrap();
    std::fs::write(path(1), &whole[..whole.len() / 2]).unwrap();
    std::fs::remove_file(path(2)).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", path(2)).unwrap();
    let listed = desk.bg(&["list", "--json"]).exits(0).json();
    let tasks = listed["data"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 1);
    assert_eq!(tasks[0]["id"], ids[3].as_str());
    let mut kinds: Vec<&str> = listed["data"]["issues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| issue["kind"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["symlink", "torn", "zeroed"]);
    desk.bg(&["show", &ids[0]]).exits(1);
}

#[test]
fn jcode_reads_our_status_files() {
    let desk = Desk::new();
    let id = desk.start(
        &["--name", "label", "--session", "ses_1", "--notify"],
        &[
            "sh",
            "-c",
            "echo 3/10 tests; echo JCODE_CHECKPOINT half; exit 3",
        ],
    );
    desk.end(&id);
    let file = desk.record(&id);
    // The keys and types of section 6.2 of the format.
    for key in [
        "task_id",
        "tool_name",
        "session_id",
        "status",
        "started_at",
        "completed_at",
        "error",
    ] {
        assert!(file[key].is_string(), "{key}: {file}");
    }
    assert_eq!(file["display_name"], "label");
    assert_eq!(
        (&file["status"], &file["exit_code"]),
        (&json!("failed"), &json!(3))
    );
    assert!(file["duration_secs"].is_f64() && file["pid"].is_null() && file["detached"] == true);
    let known = [
        "progress",
        "checkpoint",
        "completed",
        "failed",
        "superseded",
        "cancelled",
        "delivery_updated",
    ];
    for event in file["event_history"].as_array().unwrap() {
        assert!(known.contains(&event["kind"].as_str().unwrap()) && event["timestamp"].is_string());
    }
    // Progress has its required keys wherever it stands: one without them makes jcode pass over the whole file.
    let events = file["event_history"].as_array().unwrap();
    let told: Vec<_> = std::iter::once(&file["progress"])
        .chain(events.iter().map(|event| &event["progress"]))
        .filter(|progress| !progress.is_null())
        .collect();
    assert!(told.len() > 1, "{file}");
    for progress in told {
        for key in ["kind", "updated_at", "source"] {
            assert!(progress[key].is_string(), "{key}: {progress}");
        }
    }
    // Its rule for the exit status of a detached task: the last line that is exactly this.
    let output = std::fs::read_to_string(desk.file(&id, ".output")).unwrap();
    assert_eq!(
        output.lines().last(),
        Some("--- Command finished with exit code: 3 ---")
    );
}

#[test]
fn the_end_of_a_check_is_recorded_as_evidence_for_the_content_it_saw() {
    let desk = Desk {
        scratch: takeup_tests::Scratch::new(super::kit::PROGRAM),
    };
    let takeup = |words: &[&str]| desk.scratch.takeup(words);
    takeup(&["start", "fix it", "--session", "s1"]).exits(0);
    takeup(&[
        "plan",
        "--session",
        "s1",
        "add",
        "sh -c 'cat a.txt; echo warning >&2'",
    ])
    .exits(0);
    let run = takeup(&[
        "bg",
        "run",
        "--json",
        "--check",
        "--session",
        "s1",
        "--",
        "sh",
        "-c",
        "cat a.txt; echo warning >&2",
    ])
    .exits(0)
    .json();
    let id = run["data"]["task"]["id"].as_str().unwrap();
    assert_eq!(run["data"]["task"]["taskId"], "fix-it");
    desk.bg(&["wait", id]).exits(0);
    let shown = desk.bg(&["show", id, "--json"]).json();
    let told: Vec<&str> = shown["data"]["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["kind"] == "evidence")
        .map(|event| event["message"].as_str().unwrap())
        .collect();
    assert_eq!(told, ["recorded"]);
    let evaluated = takeup(&["evaluate", "--session", "s1", "--json"]).json();
    assert_eq!(
        evaluated["data"]["evidence"][0]["proof"], "fresh",
        "{evaluated}"
    );
    assert_eq!(
        evaluated["data"]["evidence"][0]["evidenceSource"],
        "observed"
    );
    assert_eq!(evaluated["data"]["proved"], true);
    let journal =
        std::fs::read_to_string(desk.scratch.repo().join(".git/takeup/journal.jsonl")).unwrap();
    // printf 'one\n' | sha256sum
    assert!(journal.contains("2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806"));

    // A check during which the content changed proves nothing.
    let run = takeup(&[
        "bg",
        "run",
        "--json",
        "--check",
        "--session",
        "s1",
        "--",
        "sh",
        "-c",
        "cat a.txt; echo warning >&2; echo x > b.txt",
    ])
    .exits(0)
    .json();
    desk.bg(&["wait", run["data"]["task"]["id"].as_str().unwrap()])
        .exits(0);
    let evaluated = takeup(&["evaluate", "--session", "s1", "--json"]).json();
    assert_eq!(evaluated["data"]["proved"], false);
}

#[test]
fn what_ends_before_it_is_ready_is_said_to_have_ended() {
    let desk = Desk::new();
    let ran = desk.bg(&["run", "--ready", "X", "--", "sh", "-c", "exit 4"]);
    let ran = ran.exits(1);
    assert!(
        ran.stdout
            .contains("it ended before it was ready: the command ended with exit status 4"),
        "{ran:?}"
    );
    assert!(!ran.stdout.contains("in time"), "{ran:?}");
}

#[test]
fn a_task_that_is_not_there_is_not_taken_down() {
    let scratch = takeup_tests::Scratch::new(super::kit::PROGRAM);
    scratch
        .takeup(&["start", "Fix it", "--session", "s1"])
        .exits(0);
    let run = |task: &str| scratch.takeup(&["bg", "run", "--task", task, "--", "true"]);
    run("nope").exits(4);
    run("fix-it").exits(0);
    scratch.takeup(&["bg", "wait"]).exits(0);
}

#[test]
fn a_task_of_jcode_is_said_to_be_jcodes() {
    let desk = Desk::new();
    let folder = desk.scratch.home().join(".jcode/scratch/jcode-bg-tasks");
    std::fs::create_dir_all(&folder).unwrap();
    let task = json!({
        "task_id": "123456abcd", "tool_name": "bash", "display_name": "theirs", "session_id": "session_fox_1",
        "status": "completed", "exit_code": 0, "started_at": "2026-01-01T00:00:00Z",
        "completed_at": "2026-01-01T00:00:01Z", "detached": false,
    });
    std::fs::write(folder.join("123456abcd.status.json"), task.to_string()).unwrap();
    std::fs::write(folder.join("123456abcd.output"), "done\n").unwrap();
    let listed = desk.bg(&["list", "--json"]).exits(0).json();
    assert_eq!(
        listed["data"]["ofAgents"][0]["id"], "123456abcd",
        "{listed}"
    );
    // What its records and its output say is told.
    for name in ["123456abcd", "1234", "theirs"] {
        let shown = desk.bg(&["show", name, "--json"]).exits(0).json();
        assert_eq!(shown["data"]["ofAgent"]["exitCode"], 0, "{shown}");
        let page = desk.bg(&["show", name]).exits(0).stdout;
        for said in ["jcode:session_fox_1", "exit status", "123456abcd.output"] {
            assert!(page.contains(said), "{page}");
        }
    }
    std::fs::write(
        folder.join("123456abcd.output"),
        "one\n\u{1b}[31mtwo\u{1b}[0m\nTOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345\n",
    )
    .unwrap();
    let printed = desk.bg(&["output", "theirs"]).exits(0).stdout;
    assert!(printed.starts_with("one\ntwo\n"), "{printed:?}");
    assert!(!printed.contains("ghp_"), "{printed:?}");
    let last = desk.bg(&["tail", "-n", "2", "theirs", "--json"]).exits(0);
    let last = &last.json()["data"];
    assert!(
        last["text"].as_str().unwrap().starts_with("two\n"),
        "{last}"
    );
    assert_eq!(
        (&last["truncated"], &last["over"]),
        (&json!(true), &json!(true))
    );
    // Waiting for it and stopping it are its agent's.
    for (words, id) in [("wait", "123456abcd"), ("stop", "theirs")] {
        let refused = desk.bg(&[words, id, "--json"]).exits(4).json();
        assert_eq!(
            refused["error"]["code"], "foreign-background-task",
            "{refused}"
        );
    }
    desk.bg(&["output", "theirs", "--stream", "stderr"])
        .exits(4);
}
