//! Many at once, and sessions that are still alive.
use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};

use takeup_tests::{Ran, Scratch};

use super::{candidate, fails_with, left, reasons, scratch};

/// Runs the program many times at once: every process waits at a gate that opens when all of them were started.
fn at_once(scratch: &Scratch, commands: &[Vec<String>]) -> Vec<Ran> {
    let gate = scratch.path().join("gate");
    let program = scratch.program_in(&scratch.repo()).get_program().to_owned();
    let running: Vec<Child> = commands
        .iter()
        .map(|words| {
            let mut shell = Command::new("sh");
            // A busy wait, so that all go on within the same moment.
            shell
                .args(["-c", "while [ ! -e \"$0\" ]; do :; done; exec \"$@\""])
                .arg(&gate)
                .arg(&program)
                .args(words);
            scratch.dress(&mut shell);
            shell
                .current_dir(scratch.repo())
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            shell.spawn().unwrap()
        })
        .collect();
    std::fs::write(&gate, "").unwrap();
    running
        .into_iter()
        .map(|child| Ran::of(child.wait_with_output().unwrap()))
        .collect()
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn sixteen_sessions_take_one_task_and_one_wins() {
    for named in [true, false] {
        let scratch = left();
        let commands: Vec<Vec<String>> = (0..16)
            .map(|number| {
                let taker = format!("taker-{number:02}");
                let mut list = words(&["resume", "t1", "--to", &taker, "--confirm", "--json"]);
                if named {
                    list.extend(words(&["--from", "s1"]));
                }
                list
            })
            .collect();
        let ran = at_once(&scratch, &commands);
        let winners: Vec<&Ran> = ran.iter().filter(|ran| ran.code == 0).collect();
        assert_eq!(
            winners.len(),
            1,
            "{:?}",
            ran.iter().map(|ran| ran.code).collect::<Vec<_>>()
        );
        let winner = winners[0].json()["data"]["identity"]["sessionId"]
            .as_str()
            .unwrap()
            .to_owned();
        for loser in ran.iter().filter(|ran| ran.code != 0) {
            assert_eq!(loser.code, 5, "{}", loser.stdout);
            fails_with(loser, "already-taken-up");
            assert!(
                loser.json()["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains(&winner),
                "{}",
                loser.stdout
            );
        }
        let again = [
            "resume",
            "t1",
            "--from",
            "s1",
            "--to",
            &winner,
            "--confirm",
            "--json",
        ];
        let again = scratch.takeup(&again).exits(0).json();
        assert_eq!(again, winners[0].json());
        let journal =
            std::fs::read_to_string(scratch.repo().join(".git/takeup/journal.jsonl")).unwrap();
        let taken = journal
            .lines()
            .filter(|line| line.contains("\"operation\":\"resume\""))
            .count();
        assert_eq!(taken, 1);
    }
}

#[test]
fn many_sessions_start_and_save_at_once_and_nothing_is_lost() {
    let scratch = scratch();
    let commands: Vec<Vec<String>> = (0..12)
        .map(|number| {
            let (task, session) = (format!("task {number}"), format!("s{number}"));
            words(&["start", &task, "--session", &session, "--no-checks"])
        })
        .collect();
    for ran in at_once(&scratch, &commands) {
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    assert_eq!(
        answer["data"]["candidates"].as_array().map(Vec::len),
        Some(12)
    );
    let all = answer["data"]["candidates"].as_array().unwrap();
    let tasks: BTreeSet<&str> = all
        .iter()
        .filter_map(|one| one["identity"]["taskId"].as_str())
        .collect();
    assert_eq!(tasks.len(), 12);
}

/// A process that stands for a session and is nobody's ancestor.
struct Session(Child);

impl Session {
    fn new() -> Self {
        Self(
            Command::new("sleep")
                .arg("1000")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_session_that_is_open_somewhere_holds_its_task() {
    // P11: anthropics/claude-code#69364.
    let scratch = scratch();
    let mut session = Session::new();
    let pid = session.pid();
    scratch
        .takeup(&[
            "start",
            "t1",
            "--session",
            "s1",
            "--pid",
            &pid,
            "--no-checks",
        ])
        .exits(0);
    let resume = [
        "resume",
        "t1",
        "--from",
        "s1",
        "--to",
        "s2",
        "--confirm",
        "--json",
    ];
    let blocked = scratch.takeup(&resume).exits(5);
    fails_with(&blocked, "in-use");
    let message = blocked.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.contains(&format!("pid {pid}")) && message.contains("started"),
        "{message}"
    );

    session.kill();
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let found = candidate(&answer, "t1", "s1");
    assert_eq!(found["verdict"], "resume-verification");
    assert!(
        reasons(found).contains(&"session-crashed".to_owned()),
        "{found:#}"
    );
    scratch.takeup(&resume).exits(0);
}

#[test]
fn a_session_that_ended_in_good_order_is_no_crash() {
    let scratch = scratch();
    let mut session = Session::new();
    let pid = session.pid();
    scratch
        .takeup(&[
            "start",
            "t1",
            "--session",
            "s1",
            "--pid",
            &pid,
            "--no-checks",
        ])
        .exits(0);
    scratch
        .takeup(&[
            "save",
            "--session",
            "s1",
            "--end",
            "--reason",
            "done for today",
        ])
        .exits(0);
    session.kill();
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let found = candidate(&answer, "t1", "s1");
    assert_eq!(found["verdict"], "resume-verification");
    assert!(
        reasons(found).contains(&"session-ended".to_owned()),
        "{found:#}"
    );
    // A session that saves again has not ended.
    scratch.write("a.txt", "two\n");
    scratch.takeup(&["save", "--session", "s1"]).exits(0);
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    assert!(reasons(candidate(&answer, "t1", "s1")).contains(&"session-crashed".to_owned()));
}

#[test]
fn a_live_session_holds_every_task_it_began() {
    let scratch = scratch();
    let session = Session::new();
    scratch
        .takeup(&[
            "start",
            "t1",
            "--session",
            "s1",
            "--pid",
            &session.pid(),
            "--no-checks",
        ])
        .exits(0);
    scratch
        .takeup(&["start", "t2", "--session", "s1", "--no-checks"])
        .exits(0);
    let answer = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    for task in ["t1", "t2"] {
        assert_eq!(candidate(&answer, task, "s1")["verdict"], "in-use");
    }
}

#[test]
fn who_waits_for_the_ledger_is_told_what_holds_it() {
    if !cfg!(debug_assertions) {
        println!("skipped: fault points exist in builds with debug assertions only");
        return;
    }
    let scratch = left();
    let gate = scratch.path().join("gate");
    let mut holder = scratch.program_in(&scratch.repo());
    holder
        .args(["note", "held", "--session", "s1"])
        .env(
            "TAKEUP_FAULT",
            format!("journal-open:before=pause={}", gate.display()),
        )
        .stdout(Stdio::null());
    let mut holder = holder.spawn().unwrap();
    let waiting = scratch.path().join("gate.waiting");
    while !waiting.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let ran = scratch.takeup(&["save", "--session", "s1"]);
    std::fs::write(&gate, "").unwrap();
    assert!(holder.wait().unwrap().success());
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert!(ran.stderr.contains("note"), "{}", ran.stderr);
}

#[test]
fn who_closes_a_task_that_another_call_just_closed_hears_that_it_is_closed() {
    let closings = [
        (
            &["finish", "t1", "--session", "s1", "--json"][..],
            "completed",
        ),
        (&["next", "t1", "--session", "s1", "--json"], "completed"),
        (&["abandon", "t1", "--session", "s1", "--json"], "abandoned"),
    ];
    for (call, status) in closings {
        let scratch = left();
        let calls = vec![words(call); 8];
        for ran in at_once(&scratch, &calls) {
            assert_eq!(ran.code, 0, "{call:?}: {}", ran.stdout);
            assert_eq!(ran.json()["data"]["identity"]["status"], status);
        }
        let journal =
            std::fs::read_to_string(scratch.repo().join(".git/takeup/journal.jsonl")).unwrap();
        let records = journal.lines().count();
        let again = scratch.takeup(call).exits(0).json();
        assert_eq!(again["data"]["identity"]["status"], status);
        let after =
            std::fs::read_to_string(scratch.repo().join(".git/takeup/journal.jsonl")).unwrap();
        assert_eq!(after.lines().count(), records, "{call:?}");
        // What was closed in another way is refused as ever.
        let other = if status == "completed" {
            "abandon"
        } else {
            "finish"
        };
        scratch.takeup(&[other, "t1", "--session", "s1"]).exits(1);
    }
}

/// In a time namespace (a container that was moved, for instance) the starts of all processes are shown shifted, and a session
/// that runs looked like another one of the same number.
#[test]
fn a_session_lives_also_seen_from_another_time_namespace() {
    let scratch = scratch();
    let mut agent = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = agent.id().to_string();
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--pid", &pid])
        .exits(0);
    let program = scratch.program_in(&scratch.repo()).get_program().to_owned();
    let mut elsewhere = Command::new("unshare");
    scratch.dress(&mut elsewhere);
    let seen = elsewhere
        .args(["--time", "--boottime", "86400", "--"])
        .arg(program)
        .args(["inspect", "--json"])
        .current_dir(scratch.repo())
        .output();
    let here = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(candidate(&here, "t1", "s1")["verdict"], "in-use");
    match seen {
        Ok(output) if output.status.success() => {
            let there = Ran::of(output).json();
            assert_eq!(candidate(&there, "t1", "s1")["verdict"], "in-use");
        }
        _ => eprintln!("no time namespace can be made here: that part was skipped"),
    }
}

/// The calls of those who are to take `t1` up, before the yes and with it, for people. The yes comes last.
const LOOKS: [&[&str]; 4] = [
    &["inspect"],
    &["show", "t1"],
    &["resume", "t1", "--to", "s2"],
    &["resume", "t1", "--to", "s2", "--confirm"],
];

/// Everything that was said, as one line.
fn unwrapped(said: &Ran) -> String {
    let text = format!("{} {}", said.stdout, said.stderr);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn who_takes_up_is_told_where_it_is_not_known_whether_the_session_lives() {
    let scratch = scratch();
    // The process that stands for both is this test: that it lives says nothing of `s1`.
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    for (words, code) in LOOKS.iter().zip([0, 0, 3, 0]) {
        let said = scratch.takeup(words).exits(code);
        let text = unwrapped(&said);
        assert!(
            text.contains("whether the session is still open is not known: ")
                && text.contains("the caller runs in it too"),
            "{words:?}: {text}"
        );
    }
    // Of one's own session, and of one that is over, nobody asks that.
    for session in ["s1", "s2"] {
        let said = scratch.takeup(&["inspect", "--all", "--session", session]);
        let other = usize::from(session == "s1");
        assert_eq!(
            unwrapped(&said).matches("is not known").count(),
            other,
            "{}",
            said.stdout
        );
    }
}

#[test]
fn who_takes_up_is_told_of_a_session_in_another_pid_namespace() {
    use std::io::BufRead as _;
    let scratch = scratch();
    let program = scratch.program_in(&scratch.repo()).get_program().to_owned();
    let mut inside = Command::new("unshare");
    scratch.dress(&mut inside);
    let mut inside = inside
        .args([
            "--pid",
            "--fork",
            "--kill-child",
            "--mount",
            "--mount-proc",
            "--",
        ])
        .args(["sh", "-c"])
        .arg("sleep 1000 & \"$0\" start t1 --session s1 --no-checks --pid $! && echo begun; wait")
        .arg(program)
        .current_dir(scratch.repo())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(inside.stdout.take().unwrap()).lines();
    let begun = lines.map_while(Result::ok).any(|line| line == "begun");
    let said: Vec<Ran> = if begun {
        LOOKS.iter().map(|words| scratch.takeup(words)).collect()
    } else {
        eprintln!("no pid namespace can be made here: skipped");
        Vec::new()
    };
    inside.kill().unwrap();
    inside.wait().unwrap();
    for (said, words) in said.into_iter().zip(LOOKS) {
        let text = unwrapped(&said);
        assert!(
            text.contains("whether the session is still open is not known: ")
                && text.contains("another pid namespace"),
            "{words:?}: {text}"
        );
    }
}
