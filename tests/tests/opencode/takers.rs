//! Takers of both kinds at once: takeup, and writers that follow OpenCode++'s lock procedure.
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use takeup_tests::{Ran, Scratch};

use super::{digest, identity, put, record, scratch, sidecar};

const SOURCE: &str = "task-identity-fix-login-ses-old.json";

/// Leaves a task of OpenCode++ with everything that belongs to it, on a changed tree that equals what was left.
fn left() -> Scratch {
    let scratch = scratch();
    scratch.write("a.txt", "changed\n");
    let mut source = identity(&scratch, "fix-login", "ses_old");
    source["latestWorkingTreeFingerprint"] = json!(digest(&scratch));
    put(&scratch, SOURCE, &source);
    let run = scratch.repo().join(".agent-context/runs/fix-login");
    std::fs::create_dir_all(&run).unwrap();
    let manifest = json!({
        "id": "fix-login", "task": "Fix login", "type": "bugfix", "mustInspect": [], "requiredCommands": ["true"],
        "allowedEditGlobs": ["**"], "avoidEditGlobs": [], "files": [],
    });
    std::fs::write(run.join("run.json"), manifest.to_string()).unwrap();
    scratch
}

/// Holds a record's lock as the plugin does, while something is done with it.
fn locked<T>(path: &Path, owner: &str, act: impl FnOnce() -> T) -> T {
    let lock = path.with_file_name(format!(
        "{}.lock",
        path.file_name().unwrap().to_string_lossy()
    ));
    let mut file = loop {
        match File::create_new(&lock) {
            Ok(file) => break file,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    };
    let content = json!({"schemaVersion": 1, "pid": std::process::id(), "ownerToken": owner, "createdAt": "2026-03-01T10:00:00.000Z"});
    file.write_all(content.to_string().as_bytes()).unwrap();
    let done = act();
    let mine: Value = serde_json::from_slice(&std::fs::read(&lock).unwrap()).unwrap();
    assert_eq!(mine["ownerToken"], owner, "somebody broke a live lock");
    std::fs::remove_file(&lock).unwrap();
    done
}

/// Takes the task up as a careful writer of the plugin's kind would: it looks under the lock whether it is still there.
fn plugin_takes(scratch: &Scratch, session: &str) -> bool {
    let source = sidecar(scratch).join(SOURCE);
    let write = |name: &str, record: &Value| {
        let path = sidecar(scratch).join(name);
        let temporary = path.with_file_name(format!("{name}.tmp-{session}"));
        let text = serde_json::to_string_pretty(record).unwrap() + "\n";
        std::fs::write(&temporary, text).unwrap();
        std::fs::rename(&temporary, &path).unwrap();
    };
    let won = locked(&source, session, || {
        let mut left = record(scratch, SOURCE);
        if left["status"] == "abandoned" {
            return false;
        }
        left["status"] = json!("abandoned");
        left["updatedAt"] = json!("2026-03-02T10:00:00.000Z");
        left["revision"] = json!(left["revision"].as_u64().unwrap() + 1);
        left["resumedToSessionId"] = json!(session);
        write(SOURCE, &left);
        true
    });
    if won {
        let mut mine = identity(scratch, "fix-login", session);
        mine["status"] = json!("verification-required");
        mine["latestWorkingTreeFingerprint"] =
            record(scratch, SOURCE)["latestWorkingTreeFingerprint"].clone();
        let name = format!("task-identity-fix-login-{}.json", session.replace('_', "-"));
        locked(&sidecar(scratch).join(&name), session, || {
            write(&name, &mine)
        });
    }
    won
}

/// Starts a session that takes the task up when the gate opens.
fn at_gate(scratch: &Scratch, gate: &Path, session: &str) -> Child {
    let program = scratch.program_in(&scratch.repo()).get_program().to_owned();
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "while [ ! -e \"$0\" ]; do :; done; exec \"$@\""])
        .arg(gate)
        .arg(&program)
        .args([
            "resume",
            "fix-login",
            "--from",
            "ses_old",
            "--agent",
            "opencode",
            "--to",
            session,
            "--rebuild",
            "--json",
        ]);
    scratch.dress(&mut shell);
    shell
        .current_dir(scratch.repo())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    shell.spawn().unwrap()
}

#[test]
fn whoever_comes_second_at_the_first_use_of_a_repository_is_told_who_was_first() {
    for _ in 0..5 {
        let scratch = left();
        let gate = scratch.path().join("gate");
        let running: Vec<(String, Child)> = (0..4)
            .map(|number| {
                let session = format!("ses_{number}");
                let child = at_gate(&scratch, &gate, &session);
                (session, child)
            })
            .collect();
        std::fs::write(&gate, "").unwrap();
        let ran: Vec<(String, Ran)> = running
            .into_iter()
            .map(|(session, child)| (session, Ran::of(child.wait_with_output().unwrap())))
            .collect();
        let (won, lost): (Vec<_>, Vec<_>) = ran.iter().partition(|(_, ran)| ran.code == 0);
        let [(winner, _)] = won.as_slice() else {
            panic!("{ran:?}")
        };
        for (_, ran) in lost {
            assert_eq!(ran.code, 5, "{}", ran.stdout);
            let error = &ran.json()["error"];
            assert_eq!(error["code"], "already-taken-up", "{error}");
            assert!(
                error["message"].as_str().unwrap().contains(winner),
                "{error}"
            );
        }
    }
}

#[test]
fn of_sixteen_takers_of_both_kinds_one_wins_and_both_records_name_it() {
    for round in 0..3 {
        let scratch = left();
        let gate = scratch.path().join("gate");
        let running: Vec<(String, Child)> = (0..8)
            .map(|number| {
                let session = format!("ses_takeup{number}");
                let child = at_gate(&scratch, &gate, &session);
                (session, child)
            })
            .collect();
        let plugins: Vec<String> = (0..8).map(|number| format!("ses_plugin{number}")).collect();
        let mut winners: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = plugins
                .iter()
                .enumerate()
                .map(|(number, session)| {
                    let (scratch, gate, source) = (&scratch, &gate, sidecar(&scratch).join(SOURCE));
                    scope.spawn(move || {
                        while !gate.exists() {
                            std::thread::yield_now();
                        }
                        // Some come at once; the others while the takers of the other kind look at the tree.
                        let journal = scratch.repo().join(".git/takeup/journal.jsonl");
                        while (number + round) % 3 != 0
                            && !journal.exists()
                            && record(scratch, SOURCE)["status"] == "active"
                        {
                            std::thread::yield_now();
                        }
                        assert!(source.exists());
                        plugin_takes(scratch, session).then(|| session.clone())
                    })
                })
                .collect();
            std::fs::write(&gate, "").unwrap();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().unwrap())
                .collect()
        });
        let mut codes = Vec::new();
        for (session, child) in running {
            let ran = Ran::of(child.wait_with_output().unwrap());
            codes.push(ran.code);
            if ran.code == 0 {
                winners.push(session);
            } else {
                assert!(matches!(ran.code, 4..=6), "{}{}", ran.stdout, ran.stderr);
            }
        }
        assert_eq!(winners.len(), 1, "{winners:?} {codes:?}");
        let source = record(&scratch, SOURCE);
        assert_eq!(source["status"], "abandoned");
        assert_eq!(source["resumedToSessionId"], winners[0], "{codes:?}");
        let inspected = scratch.takeup(&["inspect", "--json"]).exits(0).json();
        let holders: Vec<&str> = inspected["data"]["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| {
                one["identity"]["taskId"] == "fix-login" && one["verdict"] != "not-resumable"
            })
            .map(|one| one["identity"]["sessionId"].as_str().unwrap())
            .collect();
        assert_eq!(holders, [winners[0].as_str()], "{inspected:#}");
        let left_over: Vec<String> = sidecar(&scratch)
            .read_dir()
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.contains(".lock") || name.contains(".tmp"))
            .collect();
        assert_eq!(left_over, Vec::<String>::new());
    }
}

/// What OpenCode++'s records could not be made to show is said, and shown by the next command that writes.
#[test]
fn what_its_records_do_not_show_is_said_and_shown_later() {
    for later in [
        &["note", "--task", "fix", "still at it"][..],
        &["plan", "add", "true", "--session", "ses_new"],
        &["next", "fix", "--session", "ses_new"],
        &["save", "--session", "ses_new", "--agent", "opencode"],
        &["evaluate", "fix", "--session", "ses_new"],
        &[
            "check",
            "--session",
            "ses_new",
            "--agent",
            "opencode",
            "--",
            "true",
        ],
        &["start", "something else"],
    ] {
        let scratch = scratch();
        scratch.write("src/a", "changed");
        let digest = digest(&scratch);
        let mut left = identity(&scratch, "fix", "ses_old");
        left["latestWorkingTreeFingerprint"] = digest.into();
        left["status"] = "dirty".into();
        left["updatedAt"] = takeup_tests::a_tick_later().to_string().into();
        put(&scratch, "task-identity-fix-ses-old.json", &left);
        // In the place of the new record stands something that cannot be written.
        let blocked = sidecar(&scratch).join("task-identity-fix-ses-new.json");
        std::os::unix::fs::symlink("/dev/null", &blocked).unwrap();
        let take = || {
            scratch
                .takeup(&[
                    "resume",
                    "fix",
                    "--to",
                    "ses_new",
                    "--agent",
                    "opencode",
                    "--confirm",
                    "--json",
                ])
                .exits(0)
                .json()
        };
        let taken = take();
        let why = taken["data"]["notApplied"][0].as_str().unwrap();
        assert!(why.contains("ses-new"), "{taken}");
        assert_eq!(taken["data"]["verdict"], "resume-verification");
        assert_eq!(
            record(&scratch, "task-identity-fix-ses-old.json")["status"],
            "dirty"
        );
        std::fs::remove_file(&blocked).unwrap();
        let ran = scratch.takeup(later);
        let old = record(&scratch, "task-identity-fix-ses-old.json");
        assert_eq!(old["status"], "abandoned", "{later:?}: {ran:?}");
        assert_eq!(old["resumedToSessionId"], "ses_new");
        // The same call again gives the same answer.
        let again = take();
        assert_eq!(again["data"]["verdict"], "resume-verification");
    }
}

/// Which session goes on, the one that left it or another: the ledger has the task afterwards, with what was left.
#[test]
fn a_task_that_only_the_records_beside_knew_is_in_the_ledger_when_it_was_taken_up() {
    for to in ["ses_old", "ses_new"] {
        let scratch = left();
        // It was recorded after the commit that is there: nothing moved that its fingerprint does not cover.
        let mut source = record(&scratch, SOURCE);
        source["updatedAt"] = json!(takeup_tests::a_tick_later().to_string());
        put(&scratch, SOURCE, &source);
        let of = ["--to", to, "--agent", "opencode", "--confirm", "--json"];
        let taken = scratch.takeup(&[&["resume", "fix-login"][..], &of].concat());
        let taken = taken.exits(0).json();
        assert_eq!(taken["data"]["verdict"], "resume-verification", "{taken}");
        let command = taken["data"]["next"]["command"].as_str().unwrap();
        let words: Vec<&str> = command.split(' ').skip(2).collect();
        let evaluated = scratch.takeup(&[&words[..], &["--json"]].concat());
        assert_eq!(
            evaluated.json()["data"]["identity"]["sessionId"],
            to,
            "{}",
            evaluated.stdout
        );
        let shown = scratch
            .takeup(&["show", "fix-login", "--json"])
            .exits(0)
            .json();
        for one in shown["data"]["candidates"].as_array().unwrap() {
            let reasons = one["reasons"].to_string();
            assert!(!reasons.contains("never-recorded"), "{one:#}");
        }
    }
}
