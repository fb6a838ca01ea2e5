//! Stopping: the whole tree, nobody else, and what is said of it.
use std::process::Stdio;

use super::kit::{Desk, Terminal, code, kill, marked, runs, until};

#[test]
fn stop_ends_the_whole_tree() {
    let desk = Desk::new();
    let id = desk.sh(r#"sleep 500 & sh -c "sleep 501 & echo ready; wait" & trap "" TERM; wait"#);
    until("it is ready", || desk.output(&id) == "ready\n");
    until("all are there", || marked(&id).len() >= 5);
    let answer = desk
        .bg(&["stop", &id, "--grace", "2s", "--json"])
        .exits(0)
        .json();
    let stopped = &answer["data"]["tasks"][0];
    assert_eq!(stopped["task"]["status"], "stopped", "{answer}");
    assert_eq!(stopped["survivors"], serde_json::json!([]));
    let state = &stopped["task"]["state"];
    assert!(
        state["by"].as_str().unwrap().starts_with("user "),
        "{state}"
    );
    assert_eq!(state["stopping"]["graceMs"], 2000);
    assert!(state["stopping"]["askedAt"].is_string());
    assert_eq!(marked(&id), Vec::<u32>::new());
    // A second stop is harmless, and the first one stays.
    let again = desk.bg(&["stop", &id, "--json"]).exits(0).json();
    assert_eq!(again["data"]["tasks"][0]["wasOver"], true);
    assert_eq!(again["data"]["tasks"][0]["task"]["state"], *state);
}

#[test]
fn what_does_not_listen_is_killed_after_the_grace() {
    let desk = Desk::new();
    let id =
        desk.sh(r#"trap "" TERM; sleep 500 & setsid sh -c "sleep 501 & echo ready; wait" & wait"#);
    until("it is ready", || desk.output(&id) == "ready\n");
    until("all are there", || marked(&id).len() >= 5);
    let answer = desk
        .bg(&["stop", &id, "--grace", "200ms", "--json"])
        .exits(0)
        .json();
    let state = &answer["data"]["tasks"][0]["task"]["state"];
    assert_eq!(state["stopping"]["killed"], true, "{state}");
    assert_eq!(state["stopping"]["how"]["signal"], 9);
    assert_eq!(marked(&id), Vec::<u32>::new());
}

#[test]
fn a_gentle_stop_is_heard_also_by_what_stands_still() {
    let desk = Desk::new();
    let id = desk.sh("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.02; done");
    until("it is ready", || desk.output(&id) == "ready\n");
    let command = desk.command(&id);
    takeup_core::process::Processes::signal(
        &takeup_core::process::system(),
        &command,
        rustix::process::Signal::STOP,
    )
    .unwrap();
    let answer = desk
        .bg(&["stop", &id, "--grace", "60s", "--json"])
        .exits(0)
        .json();
    let state = &answer["data"]["tasks"][0]["task"]["state"];
    assert_eq!(state["stopping"]["how"]["code"], 7, "{state}");
    assert_eq!(state["stopping"]["killed"], false);
    // Beside it a shell may tell that its `sleep` was ended too.
    let output = desk.output(&id);
    assert!(output.lines().any(|line| line == "bye"), "{output}");
}

#[test]
fn a_killed_supervisor_does_not_save_a_task_from_being_stopped() {
    let desk = Desk::new();
    // The grandchild loses its parents and has no link to the command any more.
    let id = desk.sh("(sleep 502 &) ; echo ready; sleep 503");
    until("it is ready", || desk.output(&id) == "ready\n");
    kill(&desk.supervisor(&id));
    desk.bg(&["stop", &id, "--grace", "100ms"]).exits(0);
    assert_eq!(desk.status(&id), "stopped");
    assert_eq!(marked(&id), Vec::<u32>::new());
}

#[test]
fn a_supervisor_that_stands_still_is_no_obstacle() {
    let desk = Desk::new();
    let id = desk.sh("sleep 500");
    let supervisor = desk.supervisor(&id);
    takeup_core::process::Processes::signal(
        &takeup_core::process::system(),
        &supervisor,
        rustix::process::Signal::STOP,
    )
    .unwrap();
    desk.bg(&["stop", &id, "--grace", "1s"]).exits(0);
    assert_eq!(desk.status(&id), "stopped");
    assert_eq!(marked(&id), Vec::<u32>::new());
}

#[test]
fn a_task_started_inside_a_task_is_its_own() {
    let desk = Desk::new();
    let program = super::kit::PROGRAM;
    let outer = desk.sh(&format!(
        "{program:?} bg run --name inner -- sh -c '{}; exit 5' >/dev/null; echo ready; sleep 500",
        desk.wait_for_gate()
    ));
    until("it is ready", || desk.output(&outer) == "ready\n");
    desk.bg(&["stop", &outer, "--grace", "60s"]).exits(0);
    assert_eq!(desk.status("inner"), "running");
    desk.open_gate();
    assert_eq!(desk.end("inner")["exitCode"], 5);
}

#[test]
fn a_time_limit_stops_and_says_so() {
    let desk = Desk::new();
    let id = desk.start(&["--timeout", "200ms"], &["sleep", "500"]);
    let task = desk.end(&id);
    assert_eq!(task["status"], "timed-out", "{task}");
    assert_eq!(task["exitCode"], 124);
    assert_eq!(desk.bg(&["wait", &id, "--exit-code"]).code, 124);
    assert_eq!(desk.record(&id)["exit_code"], 124);
}

#[test]
fn a_foreground_run_passes_the_status_and_can_be_interrupted() {
    let desk = Desk::new();
    let ran = desk.bg(&[
        "run",
        "--foreground",
        "--exit-code",
        "--",
        "sh",
        "-c",
        "echo hi; exit 9",
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (9, "hi\n"));
    let mut foreground = desk
        .program()
        .args([
            "bg",
            "run",
            "--name",
            "t",
            "--foreground",
            "--",
            "sh",
            "-c",
            "echo hi; sleep 500",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("it prints", || desk.bg(&["output", "t"]).stdout == "hi\n");
    let pid = rustix::process::Pid::from_child(&foreground);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(code(&mut foreground), 1);
    assert_eq!(desk.status("t"), "stopped");
}

#[test]
fn a_foreground_run_can_be_left_alone_from_its_terminal_and_from_another() {
    let desk = Desk::new();
    let mut terminal = Terminal::open(&desk);
    terminal.write(b"git-takeup bg run --name t --foreground -- sh -c 'echo $((40+2)); sleep 500'; echo left with $?\n");
    until("it prints", || terminal.printed().contains("42\r\n"));
    terminal.write(b"\x1a");
    until("the first is answered", || {
        terminal.printed().contains("once more")
    });
    terminal.write(b"\x1a");
    until("it is left", || {
        terminal.printed().contains("left with 0\r\n")
    });
    assert_eq!(desk.status("t"), "running");

    terminal.write(b"git-takeup bg run --name u --foreground -- sh -c 'echo $((50+5)); sleep 500'; echo gone with $?\n");
    until("it prints", || terminal.printed().contains("55\r\n"));
    desk.bg(&["detach", "u"]).exits(0);
    until("it is left", || {
        terminal.printed().contains("gone with 0\r\n")
    });
    assert_eq!(desk.status("u"), "running");
    let command = desk.command("u");
    terminal.close();
    assert!(runs(&command));
}

#[test]
fn of_several_tasks_with_one_name_the_one_that_runs_is_stopped_and_never_a_guess() {
    let desk = Desk::new();
    let older = desk.start(&["--name", "server"], &["sleep", "500"]);
    let newer = desk.start(&["--name", "server"], &["sleep", "500"]);
    let unclear = desk.bg(&["stop", "server", "--grace", "0", "--json"]);
    assert_eq!(unclear.code, 2, "{unclear:?}");
    let message = unclear.json()["error"]["message"].to_string();
    assert!(
        message.contains(&older) && message.contains(&newer),
        "{message}"
    );
    assert_eq!(
        (desk.status(&older), desk.status(&newer)),
        ("running".into(), "running".into())
    );
    desk.bg(&["stop", &newer, "--grace", "0"]).exits(0);
    // The newest of that name is over; the one that runs is meant.
    let stopped = desk
        .bg(&["stop", "server", "--grace", "0", "--json"])
        .exits(0)
        .json();
    assert_eq!(stopped["data"]["tasks"][0]["task"]["id"], older);
    assert_eq!(stopped["data"]["tasks"][0]["wasOver"], false);
    // When none runs, it is the newest, and stopping it again is harmless.
    let again = desk.bg(&["stop", "server", "--json"]).exits(0).json();
    assert_eq!(again["data"]["tasks"][0]["task"]["id"], newer);
    assert_eq!(again["data"]["tasks"][0]["wasOver"], true);
}

#[test]
fn what_was_interrupted_never_counts_as_done() {
    let desk = Desk::new();
    // It answers to a stop with 0: `… && deploy` must not run all the same.
    let obeys = "trap 'exit 0' TERM; echo hi; while :; do sleep 0.05; done";
    for options in [&["--exit-code"][..], &[]] {
        let mut foreground = desk
            .program()
            .args(["bg", "run", "--foreground"])
            .args(options)
            .args(["--", "sh", "-c", obeys])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = std::io::BufReader::new(foreground.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        assert_eq!(line, "hi\n");
        let pid = rustix::process::Pid::from_child(&foreground);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(code(&mut foreground), 1, "{options:?}");
    }
    let id = desk.sh(obeys);
    until("it prints", || desk.output(&id) == "hi\n");
    desk.bg(&["stop", &id]).exits(0);
    assert_eq!(desk.bg(&["wait", &id, "--exit-code"]).code, 1);
    // The reader of a pipe goes first, as Ctrl-C ends both: nobody asked to leave it alone.
    let mut foreground = desk
        .program()
        .args(["bg", "run", "--foreground", "--", "sh", "-c"])
        .arg("while :; do echo hi; sleep 0.05; done")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(foreground.stdout.take());
    assert_eq!(code(&mut foreground), 1);
}

#[test]
fn of_two_that_run_under_one_name_neither_is_meant() {
    let desk = Desk::new();
    desk.start(&["--name", "t"], &["true"]);
    let ids = ["1", "2"].map(|_| desk.start(&["--name", "t"], &["sleep", "500"]));
    for words in [&["wait", "t", "--timeout", "1s"][..], &["stop", "t"]] {
        let refused = desk.bg(&[words, &["--json"]].concat()).exits(2).json();
        assert_eq!(refused["error"]["code"], "ambiguous-background-task");
    }
    desk.bg(&["stop", &ids[1]]).exits(0);
    let waited = desk
        .bg(&["wait", "t", "--timeout", "1ms", "--json"])
        .exits(6)
        .json();
    assert_eq!(waited["data"]["tasks"][0]["id"], ids[0].as_str());
}
