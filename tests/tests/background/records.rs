//! Records that are damaged, limits that are none, and evidence that could not be recorded: each is said.
use serde_json::json;
use takeup_core::error::Explain as _;
use takeup_core::process::Processes as _;

use super::kit::{Desk, until};

#[test]
fn a_damaged_record_is_named_by_every_command_that_may_mean_it() {
    let desk = Desk::in_repository();
    let id = desk.start(&["--name", "build"], &["sh", "-c", "echo kept"]);
    desk.end(&id);
    let path = desk.file(&id, ".status.json");
    let whole = std::fs::read(&path).unwrap();
    let half = &whole[..whole.len() / 2];
    takeup_core::files::write_atomic(&path, half, 0o600).unwrap();
    let name = format!("{id}.status.json");
    for words in [
        &["show", "build"][..],
        &["wait", "build"],
        &["stop", "build"],
        &["output", "build"],
        &["wait"],
    ] {
        let ran = desk.bg(words);
        assert_eq!(ran.code, 1, "{words:?}: {ran:?}");
        assert!(
            format!("{}{}", ran.stdout, ran.stderr).contains(&name),
            "{words:?}: {ran:?}"
        );
    }
    let waited = desk.bg(&["wait", "--json"]).exits(1).json();
    assert_eq!(waited["data"]["issues"][0]["kind"], "torn", "{waited}");
    let overview = desk.here(&[]).exits(0);
    assert!(overview.stdout.contains(&name), "{overview:?}");

    let doctor = desk.here(&["doctor", "--fix", "--yes", "--json"]).json();
    assert!(doctor.to_string().contains(".status.damaged"), "{doctor}");
    assert_eq!(
        std::fs::read(desk.file(&id, ".status.damaged")).unwrap(),
        half
    );
    assert!(!path.exists());
    desk.bg(&["show", "build"]).exits(4);
    desk.bg(&["wait"]).exits(0);
    // What belongs to it is kept as long as it is.
    let cleaned = desk.bg(&["clean", "--all", "--json"]).exits(0).json();
    assert_eq!(cleaned["data"]["leftovers"], json!([]), "{cleaned}");
    assert_eq!(std::fs::read(desk.file(&id, ".output")).unwrap(), b"kept\n");
}

#[test]
fn a_damaged_record_of_what_is_watched_is_not_put_aside() {
    let desk = Desk::in_repository();
    let script = format!("{}; exit 3", desk.wait_for_gate());
    let id = desk.start(&["--name", "build"], &["sh", "-c", &script]);
    let path = desk.file(&id, ".status.json");
    takeup_core::files::write_atomic(&path, b"{", 0o600).unwrap();
    desk.here(&["doctor", "--fix", "--yes"]);
    assert!(path.exists());
    desk.open_gate();
    // Its supervisor writes it anew.
    until("it is whole again", || {
        desk.bg(&["show", "build"]).code == 0
    });
    assert_eq!(desk.end(&id)["exitCode"], 3);
}

#[test]
fn limits_that_leave_nothing_and_ends_without_a_beginning_are_said_in_words() {
    let desk = Desk::new();
    for limit in [
        ["--timeout", "0s"],
        ["--memory", "0"],
        ["--cpu-time", "0"],
        ["--timeout", "99999999999999d"],
    ] {
        let ran = desk.bg(&["run", limit[0], limit[1], "--", "true"]);
        assert_eq!(ran.code, 2, "{limit:?}: {ran:?}");
    }
    let id = desk.start(&["--timeout", "1s"], &["sleep", "500"]);
    assert_eq!(desk.end(&id)["trouble"], "its time of 1s was over");
    desk.bg(&["run", "--name", "none", "--", "/no/such/program"])
        .exits(1);
    let shown = desk.bg(&["show", "none"]).exits(0).stdout;
    assert!(
        shown.contains("ended") && !shown.contains("after"),
        "{shown}"
    );
    for (raw, said) in [
        (rustix::io::Errno::TOOBIG.into(), "long input"),
        (std::ffi::CString::new("\0").unwrap_err().into(), "NUL"),
    ] {
        let error: std::io::Error = raw;
        let not_started = takeup_core::background::BackgroundError::NotStarted {
            id: takeup_core::ids::BackgroundId::new("x").unwrap(),
            status: 126,
            why: error.to_string(),
        };
        let hint = not_started.hint().unwrap();
        assert!(hint.contains(said), "{error}: {hint}");
    }
}

#[test]
fn evidence_that_cannot_be_recorded_is_missed_aloud_and_a_busy_ledger_is_waited_for() {
    let desk = Desk::in_repository();
    desk.here(&["start", "--session", "s1", "fix it"]).exits(0);
    desk.here(&["plan", "--session", "s1", "add", "true"])
        .exits(0);
    let check = || {
        let words = ["bg", "run", "--json", "--check", "--session", "s1"];
        let ran = desk.here(&[&words[..], &["--", "true"]].concat());
        ran.exits(0).json()["data"]["task"]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    // Another holds the lock for longer than one try waits.
    let state = desk.scratch.repo().join(".git/takeup");
    let lock = std::fs::File::options()
        .write(true)
        .open(state.join("lock"))
        .unwrap();
    lock.lock().unwrap();
    let id = check();
    let tries = |seen: &mut std::collections::BTreeSet<u32>| {
        let processes = takeup_core::process::system();
        for pid in super::kit::marked(&id) {
            let details = processes.details(pid);
            if details
                .is_some_and(|details| details.command.iter().any(|word| word == "bg-evidence"))
            {
                seen.insert(pid);
            }
        }
        seen.len()
    };
    let mut seen = std::collections::BTreeSet::new();
    until("it is tried again", || tries(&mut seen) > 1);
    drop(lock);
    let waited = desk.bg(&["wait", &id]).exits(0);
    assert!(!waited.stdout.contains("evidence"), "{waited:?}");
    let evaluated = desk.here(&["evaluate", "--session", "s1", "--json"]).json();
    assert_eq!(evaluated["data"]["proved"], true, "{evaluated}");

    // What no time mends is said.
    let id = {
        let id = check();
        desk.end(&id);
        let script = format!("{}; true", desk.wait_for_gate());
        let words = ["bg", "run", "--json", "--check", "--session", "s1"];
        let ran = desk.here(&[&words[..], &["--", "sh", "-c", &script]].concat());
        ran.exits(0).json()["data"]["task"]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    takeup_core::files::rename(&state.join("journal.jsonl"), &state.join("kept")).unwrap();
    std::fs::create_dir(state.join("journal.jsonl")).unwrap();
    desk.open_gate();
    let waited = desk.bg(&["wait", &id]);
    assert!(
        waited.stdout.contains("evidence not recorded: "),
        "{waited:?}"
    );
    let listed = desk.bg(&["list"]).exits(0);
    assert!(
        listed.stdout.contains("evidence not recorded: "),
        "{listed:?}"
    );
    assert!(desk.show(&id)["evidenceMissing"].is_string());
}
