//! What a task outlives: terminal, shell, launcher, supervisor, the program's file, and how a restart of the machine is seen.
use serde_json::json;
use takeup_core::process::Processes as _;

use super::kit::{Desk, PROGRAM, Terminal, kill, runs, until};

#[test]
fn a_task_outlives_the_terminal_and_the_program_it_was_started_by() {
    let desk = Desk::new();
    // A copy of the program, which will be replaced.
    let copy = desk.scratch.path().join("copy");
    std::fs::copy(PROGRAM, &copy).unwrap();
    let mut terminal = Terminal::open(&desk);
    terminal.write(
        format!(
            "{copy:?} bg run --name p14 -- sh -c 'for i in $(seq 60); do echo $i; sleep 0.01; done; {}; exit 3'\n",
            desk.wait_for_gate()
        )
        .as_bytes(),
    );
    until("the task is started", || {
        let ran = desk.bg(&["show", "p14", "--json"]);
        ran.code == 0 && ran.json()["data"]["task"]["status"] == "running"
    });
    until("the launcher said so", || {
        terminal.printed().contains("running")
    });
    terminal.close();
    std::fs::remove_file(&copy).unwrap();
    std::os::unix::fs::symlink("/bin/false", &copy).unwrap();

    assert_eq!(desk.status("p14"), "running");
    let mut follow = desk
        .program()
        .args(["bg", "tail", "-f", "-n", "100", "p14"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    desk.open_gate();
    assert_eq!(desk.bg(&["wait", "p14", "--exit-code"]).code, 3);
    let lines = (1..=60).fold(String::new(), |text, number| text + &format!("{number}\n"));
    assert_eq!(desk.output("p14"), lines);
    let mut followed = String::new();
    std::io::Read::read_to_string(follow.stdout.as_mut().unwrap(), &mut followed).unwrap();
    follow.wait().unwrap();
    assert_eq!(followed, lines);
    let task = desk.show("p14");
    assert_eq!(
        (&task["status"], &task["exitCode"]),
        (&json!("failed"), &json!(3))
    );
    assert!(task["endedAt"].is_string());
}

#[test]
fn a_task_outlives_its_launcher() {
    let desk = Desk::new();
    let script = format!("echo begun; {}; echo done", desk.wait_for_gate());
    let mut launcher = desk
        .program()
        .args([
            "bg",
            "run",
            "--name",
            "t",
            "--ready",
            "never printed",
            "--",
            "sh",
            "-c",
            &script,
        ])
        .spawn()
        .unwrap();
    until("it prints", || {
        desk.bg(&["output", "t"]).stdout == "begun\n"
    });
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    desk.open_gate();
    assert_eq!(desk.end("t")["status"], "completed");
    assert_eq!(desk.output("t"), "begun\ndone\n");
}

#[test]
fn a_command_whose_supervisor_was_killed_is_watched_again_and_loses_no_line() {
    let desk = Desk::new();
    let second = desk.scratch.home().join("second");
    let id = desk.sh(&format!(
        "echo one; {}; echo two; while [ ! -e {second:?} ]; do sleep 0.02; done; echo three; exit 4",
        desk.wait_for_gate()
    ));
    until("it prints", || desk.output(&id) == "one\n");
    kill(&desk.supervisor(&id));
    // What it prints now waits in its pipe.
    desk.open_gate();
    let before = takeup_tests::picture(&desk.folder(), &|_| false);
    let task = desk.show(&id);
    assert_eq!(task["status"], "running");
    assert_eq!(task["watch"]["by"], "unwatched", "{task}");
    for look in [
        &["list"][..],
        &["list", "--json"],
        &["output", &id],
        &["tail", &id],
    ] {
        assert_eq!(desk.bg(look).code, 0);
    }
    assert_eq!(
        before,
        takeup_tests::picture(&desk.folder(), &|_| false),
        "looking wrote"
    );

    desk.bg(&["clean"]).exits(0);
    assert_eq!(desk.show(&id)["watch"]["by"], "supervisor");
    until("the rest is read", || desk.output(&id) == "one\ntwo\n");
    drop(std::fs::File::create(second).unwrap());
    let task = desk.end(&id);
    assert_eq!(task["status"], "unobserved", "{task}");
    assert_eq!(desk.output(&id), "one\ntwo\nthree\n");
    assert_eq!(desk.bg(&["wait", &id, "--exit-code"]).code, 125);
}

#[test]
fn launcher_and_supervisor_may_both_be_killed() {
    let desk = Desk::new();
    let mut launcher = desk
        .program()
        .args(["bg", "run", "--name", "t", "--ready", "never printed", "--"])
        .args(["sh", "-c"])
        .arg(format!("echo begun; {}; echo done", desk.wait_for_gate()))
        .spawn()
        .unwrap();
    until("it prints", || {
        desk.bg(&["output", "t"]).stdout == "begun\n"
    });
    let id = desk.show("t")["id"].as_str().unwrap().to_owned();
    kill(&desk.supervisor(&id));
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    assert_eq!(desk.show(&id)["watch"]["by"], "unwatched");
    // The next command that writes takes it under watch, whatever it is about.
    let other = desk.sh("true");
    desk.end(&other);
    assert_eq!(desk.show(&id)["watch"]["by"], "supervisor");
    desk.open_gate();
    assert_eq!(desk.end(&id)["status"], "unobserved");
    assert_eq!(desk.output(&id), "begun\ndone\n");
}

#[test]
fn what_ended_unseen_is_lost_and_nothing_else() {
    let desk = Desk::new();
    let first = desk.sh(&format!("{}; exit 0", desk.wait_for_gate()));
    let second = desk.sh("exec sleep 1000");
    let commands = [desk.command(&first), desk.command(&second)];
    kill(&desk.supervisor(&first));
    kill(&desk.supervisor(&second));
    // One ends by itself, one is killed as well.
    desk.open_gate();
    until("it ends by itself", || !runs(&commands[0]));
    kill(&commands[1]);
    for id in [&first, &second] {
        let task = desk.show(id);
        assert_eq!(task["status"], "lost", "{task}");
        assert_eq!(task["corrected"], true);
        assert_eq!(desk.record(id)["takeup"]["state"]["status"], "running");
    }
    desk.bg(&["clean", "--keep", "100"]).exits(0);
    for id in [&first, &second] {
        assert_eq!(desk.record(id)["takeup"]["state"]["status"], "lost");
        assert_eq!(desk.record(id)["status"], "failed");
        assert_eq!(desk.bg(&["wait", id]).code, 1);
    }
}

#[test]
fn after_a_restart_of_the_machine_nobody_is_taken_for_the_task() {
    let desk = Desk::new();
    let id = desk.sh("exec sleep 1000");
    let command = desk.command(&id);
    kill(&desk.supervisor(&id));
    kill(&command);
    // A stranger has the numbers now; the record is of another boot.
    let mut stranger = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    let path = desk.file(&id, ".status.json");
    let mut record = desk.record(&id);
    for pointer in ["/takeup/supervisor", "/takeup/state/process"] {
        let process = record.pointer_mut(pointer).unwrap();
        process["pid"] = json!(stranger.id());
        process["bootId"] = json!("00000000-0000-0000-0000-000000000000");
        // Even the start may be the same by chance.
        process["startTicks"] = json!(
            takeup_core::process::system()
                .start_ticks(stranger.id())
                .unwrap()
        );
    }
    takeup_core::files::write_atomic(&path, record.to_string().as_bytes(), 0o600).unwrap();
    let task = desk.show(&id);
    assert_eq!(task["status"], "lost");
    assert!(
        task["trouble"].as_str().unwrap().contains("started again"),
        "{task}"
    );
    let stopped = desk.bg(&["stop", &id, "--json"]).exits(0).json();
    assert_eq!(stopped["data"]["tasks"][0]["wasOver"], true);
    assert_eq!(
        stranger.try_wait().unwrap(),
        None,
        "a stranger was signalled"
    );
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn a_number_that_was_given_out_again_is_not_the_task() {
    let desk = Desk::new();
    let id = desk.sh("exec sleep 1000");
    let command = desk.command(&id);
    kill(&desk.supervisor(&id));
    kill(&command);
    let mut stranger = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    let path = desk.file(&id, ".status.json");
    let mut record = desk.record(&id);
    // The command began before the stranger; within one tick of the clock their start times would be the same.
    let ticks = record["takeup"]["state"]["process"]["startTicks"]
        .as_u64()
        .unwrap();
    record["takeup"]["state"]["process"]["startTicks"] = json!(ticks - 1);
    record["takeup"]["state"]["process"]["pid"] = json!(stranger.id());
    takeup_core::files::write_atomic(&path, record.to_string().as_bytes(), 0o600).unwrap();
    assert_eq!(desk.status(&id), "lost");
    desk.bg(&["stop", &id]).exits(0);
    assert_eq!(
        stranger.try_wait().unwrap(),
        None,
        "a stranger was signalled"
    );
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn a_deleted_lock_file_does_not_make_a_second_supervisor() {
    let desk = Desk::new();
    let id = desk.sh(&format!("{}; exit 6", desk.wait_for_gate()));
    std::fs::remove_file(desk.file(&id, ".lock")).unwrap();
    let supervisor = desk.supervisor(&id);
    assert_eq!(desk.show(&id)["watch"]["by"], "supervisor");
    desk.bg(&["clean"]).exits(0);
    assert!(desk.supervisor(&id).is(&supervisor));
    desk.open_gate();
    assert_eq!(desk.end(&id)["exitCode"], 6);
}

#[test]
fn a_running_process_can_be_taken_under_watch() {
    let desk = Desk::new();
    let mut process = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    let answer = desk
        .bg(&[
            "adopt",
            &process.id().to_string(),
            "--name",
            "old",
            "--json",
        ])
        .exits(0)
        .json();
    let id = answer["data"]["task"]["id"].as_str().unwrap();
    assert_eq!(desk.status(id), "running");
    assert_eq!(desk.show(id)["command"], "sleep 1000");
    assert_eq!(desk.bg(&["output", id]).code, 4);
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(desk.end(id)["status"], "unobserved");
    assert_eq!(desk.bg(&["adopt", "4194304"]).code, 4);

    // Stopping it works as for any other.
    let mut process = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    desk.bg(&["adopt", &process.id().to_string(), "--name", "new"])
        .exits(0);
    let reaper = std::thread::spawn(move || process.wait().unwrap());
    desk.bg(&["stop", "new"]).exits(0);
    assert_eq!(desk.status("new"), "stopped");
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&reaper.join().unwrap()),
        Some(15)
    );
}

#[test]
fn who_waits_takes_what_lost_its_supervisor_under_watch() {
    let desk = Desk::new();
    let id = desk.sh(&format!(
        "echo one; {}; echo two; exit 5",
        desk.wait_for_gate()
    ));
    until("it prints", || desk.output(&id) == "one\n");
    let mut waits = desk
        .program()
        .args(["bg", "wait", &id, "--exit-code"])
        .spawn()
        .unwrap();
    kill(&desk.supervisor(&id));
    until("it is watched again", || {
        desk.show(&id)["watch"]["by"] == "supervisor"
    });
    desk.open_gate();
    assert_eq!(super::kit::code(&mut waits), 125);
    assert_eq!(desk.status(&id), "unobserved");
    assert_eq!(desk.output(&id), "one\ntwo\n");
    // It is not called failed where nobody saw it fail.
    let shown = desk.bg(&["show", &id, "--json"]).exits(0).json();
    let last = shown["data"]["events"].as_array().unwrap().last().unwrap();
    assert_eq!(last["kind"], "unobserved", "{shown}");
}
