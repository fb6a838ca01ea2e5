//! A disk that is full, and what cannot be seen from here: neither keeps a task from being stopped, nor makes it over.
use serde_json::{Value, json};

use super::kit::{Desk, kill, marked, until};

/// As on a full disk: no file can be made, and nothing but what room was kept for is appended.
const FULL: &str = "file-create:before,replace-create:before,event-room:before";

impl Desk {
    /// Starts a task of the shell whose supervisor finds the disk full at these points, whenever the file `full` exists.
    fn start_short_of(&self, points: &str, script: &str) -> String {
        let ran = self
            .program()
            .args(["bg", "run", "--json", "--", "sh", "-c", script])
            .env("TAKEUP_FAULT", self.fault(points))
            .output()
            .unwrap();
        let answer = takeup_tests::Ran::of(ran).exits(0).json();
        answer["data"]["task"]["id"].as_str().unwrap().to_owned()
    }

    fn fault(&self, points: &str) -> String {
        format!("{points}=full={}", self.full().display())
    }

    fn full(&self) -> std::path::PathBuf {
        self.scratch.path().join("full")
    }

    fn fill(&self) {
        drop(std::fs::File::create(self.full()).unwrap());
    }

    fn make_room(&self) {
        std::fs::remove_file(self.full()).unwrap();
    }

    /// Runs `bg` on the full disk.
    fn short(&self, words: &[&str]) -> takeup_tests::Ran {
        let output = self
            .program()
            .arg("bg")
            .args(words)
            .env("TAKEUP_FAULT", self.fault(FULL))
            .output()
            .unwrap();
        takeup_tests::Ran::of(output)
    }
}

#[test]
fn a_task_that_filled_the_disk_is_stopped_and_cleaned_away() {
    let desk = Desk::new();
    let id = desk.start_short_of(FULL, "echo ready; sleep 500");
    until("it is ready", || desk.output(&id) == "ready\n");
    desk.fill();
    desk.short(&["stop", &id, "--grace", "1s"]).exits(0);
    assert_eq!(marked(&id), Vec::<u32>::new());
    // The end stands among the events alone.
    assert_eq!(
        desk.record(&id)["takeup"]["state"]["status"],
        "running",
        "there was room"
    );
    let task = desk.show(&id);
    assert_eq!(task["status"], "stopped", "{task}");
    assert_eq!(desk.short(&["wait", &id]).code, 1);
    let cleaned = desk.short(&["clean", "--all", "--json"]).exits(0).json();
    assert_eq!(cleaned["data"]["removed"][0]["id"], json!(id), "{cleaned}");
    assert!(!desk.file(&id, ".output").exists());
}

#[test]
fn a_killed_supervisor_and_a_full_disk_together_save_no_task() {
    let desk = Desk::new();
    let id = desk.start_short_of(FULL, "echo ready; sleep 500");
    until("it is ready", || desk.output(&id) == "ready\n");
    desk.fill();
    kill(&desk.supervisor(&id));
    desk.short(&["stop", &id, "--grace", "1s"]).exits(0);
    assert_eq!(marked(&id), Vec::<u32>::new());
    assert_eq!(desk.status(&id), "stopped");
}

#[test]
fn an_end_on_a_full_disk_is_known_and_recorded_later() {
    let desk = Desk::new();
    let script = format!("{}; exit 3", desk.wait_for_gate());
    let id = desk.start_short_of(FULL, &script);
    desk.fill();
    desk.open_gate();
    assert_eq!(desk.bg(&["wait", &id, "--exit-code"]).code, 3);
    let shown = desk.bg(&["show", &id, "--json"]).exits(0).json();
    assert_eq!(shown["data"]["task"]["status"], "failed", "{shown}");
    assert_eq!(shown["data"]["task"]["corrected"], true);
    let last = shown["data"]["events"].as_array().unwrap().last().unwrap();
    assert_eq!(last["kind"], "not_recorded");
    assert_eq!(desk.record(&id)["takeup"]["state"]["status"], "running");
    desk.make_room();
    desk.bg(&["clean"]).exits(0);
    let record = desk.record(&id);
    assert_eq!(
        (&record["takeup"]["state"]["status"], &record["exit_code"]),
        (&json!("failed"), &json!(3))
    );
    assert_eq!(desk.show(&id)["corrected"], false);
}

#[test]
fn a_start_that_could_not_be_recorded_is_known() {
    let desk = Desk::new();
    desk.fill();
    let script = format!("{}; exit 3", desk.wait_for_gate());
    let id = desk.start_short_of("replace-create:before", &script);
    assert_eq!(desk.record(&id)["takeup"]["state"]["status"], "starting");
    assert_eq!(desk.status(&id), "running");
    // Nor is it lost with its supervisor.
    kill(&desk.supervisor(&id));
    assert_eq!(desk.show(&id)["watch"]["by"], "unwatched");
    std::fs::remove_file(desk.file(&id, ".events.jsonl")).unwrap();
    let task = desk.show(&id);
    assert_eq!(
        (&task["status"], &task["watch"]["by"]),
        (&json!("running"), &json!("unwatched")),
        "{task}"
    );
    desk.bg(&["clean"]).exits(0);
    assert_eq!(desk.show(&id)["watch"]["by"], "supervisor");
    desk.open_gate();
    assert_eq!(desk.end(&id)["status"], "unobserved");
}

#[test]
fn what_a_task_started_lives_on_when_its_supervisor_and_its_command_are_gone() {
    let desk = Desk::new();
    for (end, judged) in [("exit 0", "completed"), ("exit 4", "failed")] {
        let id = desk.sh(&format!(
            "(setsid sleep 604 </dev/null >/dev/null 2>&1 &); {end}"
        ));
        until("the command is over", || {
            desk.record(&id)["takeup"]["state"]["commandEnd"].is_object()
        });
        kill(&desk.supervisor(&id));
        let task = desk.show(&id);
        assert_eq!(
            (&task["status"], &task["watch"]["by"]),
            (&json!("running"), &json!("unwatched")),
            "{task}"
        );
        let timed = desk.bg(&["wait", &id, "--timeout", "10ms"]);
        assert_eq!(timed.code, 6, "{timed:?}");
        let stopped = desk.bg(&["stop", &id, "--json"]).exits(0).json();
        assert_eq!(stopped["data"]["tasks"][0]["wasOver"], false, "{stopped}");
        assert_eq!(marked(&id), Vec::<u32>::new());
        assert_eq!(desk.status(&id), "stopped");

        // Where nothing lives on, the end that was seen stands.
        let id = desk.sh(&format!(
            "(setsid sh -c {:?} </dev/null >/dev/null 2>&1 &); {end}",
            desk.wait_for_gate()
        ));
        until("the command is over", || {
            desk.record(&id)["takeup"]["state"]["commandEnd"].is_object()
        });
        kill(&desk.supervisor(&id));
        desk.open_gate();
        until("all of it is over", || marked(&id).is_empty());
        assert_eq!(desk.status(&id), judged);
        std::fs::remove_file(desk.gate()).unwrap();
    }
}

#[test]
fn what_another_pid_namespace_holds_is_neither_over_nor_cleaned_away_nor_stopped() {
    let desk = Desk::new();
    let id = desk.sh("echo kept; sleep 500");
    until("it prints", || desk.output(&id) == "kept\n");
    let (supervisor, command) = (desk.supervisor(&id), desk.command(&id));
    let path = desk.file(&id, ".status.json");
    let here = desk.record(&id);
    let rewrite = |pointers: &[&str]| {
        let mut record = here.clone();
        for pointer in pointers {
            *record.pointer_mut(pointer).unwrap() = json!(1);
        }
        takeup_core::files::write_atomic(&path, record.to_string().as_bytes(), 0o600).unwrap();
    };
    let refused = || {
        let ran = desk.bg(&["stop", &id, "--json"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        let error: Value = ran.json()["error"].clone();
        assert_eq!(error["code"], "background-task-out-of-reach", "{error}");
        assert!(!desk.file(&id, ".stop.json").exists(), "an order is left");
    };
    let all = [
        "/takeup/supervisor/pidNamespace",
        "/takeup/state/process/pidNamespace",
    ];
    rewrite(&all);
    assert_eq!(desk.show(&id)["watch"]["by"], "supervisor");
    refused();
    kill(&supervisor);
    let task = desk.show(&id);
    assert_eq!(
        (&task["status"], &task["watch"]["by"]),
        (&json!("running"), &json!("unknown")),
        "{task}"
    );
    refused();
    let waited = desk.bg(&["wait", &id]);
    assert_eq!(waited.code, 1);
    assert!(waited.stdout.contains("out of sight"), "{waited:?}");
    let cleaned = desk.bg(&["clean", "--all", "--json"]).exits(0).json();
    assert_eq!(cleaned["data"]["removed"], json!([]));
    assert_eq!(desk.output(&id), "kept\n");
    // Before the start was recorded, it is no other.
    let mut starting = here.clone();
    starting["takeup"]["state"] = json!({"status": "starting"});
    starting["takeup"]["supervisor"]["pidNamespace"] = json!(1);
    takeup_core::files::write_atomic(&path, starting.to_string().as_bytes(), 0o600).unwrap();
    assert_eq!(desk.show(&id)["watch"]["by"], "unknown");
    // Seen from where it runs, it is stopped.
    rewrite(&[]);
    assert_eq!(desk.show(&id)["watch"]["by"], "unwatched");
    desk.bg(&["stop", &id]).exits(0);
    assert!(!super::kit::runs(&command));
}

#[test]
fn what_a_full_disk_did_not_take_is_said_to_be_missing() {
    let desk = Desk::new();
    let gate = desk.gate();
    let script = format!(
        "until test -e {0}.1; do sleep 0.02; done; echo one; until test -e {0}.2; do sleep 0.02; done; echo two",
        gate.display()
    );
    let open = |number: u8| {
        drop(std::fs::File::create(format!("{}.{number}", gate.display())).unwrap());
    };
    let id = desk.start_short_of("task-output:before", &script);
    desk.fill();
    open(1);
    until("it is lost", || {
        let shown = desk.bg(&["show", &id, "--json"]).exits(0).json();
        let mut events = shown["data"]["events"].as_array().unwrap().iter();
        events.any(|event| event["kind"] == "output_lost")
    });
    desk.make_room();
    open(2);
    desk.end(&id);
    let shown = desk.bg(&["output", &id]).exits(0);
    assert_eq!(shown.stdout, "two\n");
    for said in [
        shown.stderr,
        desk.bg(&["tail", &id]).exits(0).stderr,
        desk.bg(&["tail", "-f", &id]).exits(0).stderr,
        desk.bg(&["wait", &id]).exits(0).stdout,
    ] {
        assert!(
            said.contains("4 bytes of its output could not be written"),
            "{said}"
        );
    }
    let data = desk.bg(&["output", &id, "--json"]).exits(0).json();
    assert_eq!(data["data"]["lostBytes"], 4);
}

#[test]
fn an_output_that_is_gone_is_no_empty_one() {
    let desk = Desk::new();
    let id = desk.sh("echo one");
    desk.end(&id);
    std::fs::remove_file(desk.file(&id, ".output")).unwrap();
    for word in ["output", "tail"] {
        let said = desk.bg(&[word, &id]).exits(4).stderr;
        assert!(said.contains("not there any more"), "{said}");
    }
    let shown = desk.bg(&["show", &id]).exits(0).stdout;
    assert!(shown.contains("not there:"), "{shown}");
}
