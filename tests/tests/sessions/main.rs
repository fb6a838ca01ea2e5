//! `sessions` over a home that the real jcode wrote: what people and machines are shown.
mod begun;
mod copies;
mod hooked;
mod words;

use std::path::{Path, PathBuf};

use insta::{assert_snapshot, with_settings};
use serde_json::Value;
use takeup_tests::{Scratch, picture};

const PROGRAM: &str = env!("CARGO_BIN_EXE_takeup-under-test");

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A scratch repository, and the home of the vectors as `~/.jcode`.
fn scratch() -> Scratch {
    let scratch = Scratch::new(PROGRAM);
    let fixture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/jcode-home/home");
    copy(&fixture, &scratch.home().join(".jcode"));
    scratch
}

/// Lets sessions of the vectors have worked in the scratch repository: those of these words.
fn here(scratch: &Scratch, words: &[&str]) {
    let sessions = scratch.home().join(".jcode/sessions");
    let root = scratch.repo().display().to_string();
    for entry in std::fs::read_dir(sessions).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if words
            .iter()
            .any(|word| name.starts_with(&format!("session_{word}_")))
        {
            let text = std::fs::read_to_string(&path).unwrap();
            let moved = text.replace("\"/repo\"", &format!("\"{root}\""));
            std::fs::write(&path, moved).unwrap();
        }
    }
}

/// Puts other words for what differs from run to run.
fn masked(scratch: &Scratch, text: &str) -> String {
    text.replace(&scratch.path().display().to_string(), "[scratch]")
}

fn settled(check: impl FnOnce()) {
    with_settings!({
        filters => vec![
            (r"\d+ (second|minute|hour|day|month|year)s? ago", "[age]"),
            (r"process \d+", "process [pid]"),
        ],
        omit_expression => true,
        prepend_module_to_snapshot => false,
        snapshot_path => ".",
    }, { check(); });
}

#[test]
fn the_list_for_people() {
    let scratch = scratch();
    let ran = scratch.takeup(&["sessions", "--all"]).exits(0);
    settled(|| assert_snapshot!("list", masked(&scratch, &ran.stdout)));
}

#[test]
fn the_list_for_machines() {
    let scratch = scratch();
    let ran = scratch.takeup(&["sessions", "--all", "--json"]).exits(0);
    settled(|| assert_snapshot!("list-json", masked(&scratch, &ran.stdout)));
}

#[test]
fn one_session_for_people_and_machines() {
    let scratch = scratch();
    for word in ["fox", "duck", "lion", "mole", "hippo", "otter"] {
        let ran = scratch.takeup(&["sessions", "show", word]).exits(0);
        settled(|| assert_snapshot!(format!("show-{word}"), masked(&scratch, &ran.stdout)));
    }
    let ran = scratch
        .takeup(&["sessions", "show", "fox", "--json", "--turns", "3"])
        .exits(0);
    settled(|| assert_snapshot!("show-fox-json", masked(&scratch, &ran.stdout)));
}

#[test]
fn what_could_be_recovered_as_a_document() {
    let scratch = scratch();
    for word in ["fox", "lion", "goat"] {
        let ran = scratch.takeup(&["sessions", "recover", word]).exits(0);
        settled(|| assert_snapshot!(format!("recover-{word}"), masked(&scratch, &ran.stdout)));
    }
    scratch
        .takeup(&["sessions", "recover", "mole", "--output", "mole.md"])
        .exits(0);
    let document = std::fs::read_to_string(scratch.repo().join("mole.md")).unwrap();
    assert!(document.contains("journal still here"));
    let again = scratch
        .takeup(&["sessions", "recover", "mole", "-o", "mole.md", "--json"])
        .exits(5)
        .json();
    assert_eq!(again["error"]["code"], "file-exists");
}

fn names(answer: &Value) -> Vec<&str> {
    let list = answer["data"]["sessions"].as_array().unwrap();
    list.iter()
        .map(|session| session["name"].as_str().unwrap())
        .collect()
}

#[test]
fn filters_choose() {
    let scratch = scratch();
    let list = |args: &[&str]| {
        let mut all = vec!["sessions", "--json"];
        all.extend(args);
        scratch.takeup(&all).exits(0).json()
    };
    assert!(
        names(&list(&[])).is_empty(),
        "none of them worked in this repository"
    );
    let crashed = list(&["--all", "--state", "crashed"]);
    assert_eq!(names(&crashed).len(), 14);
    assert!(names(&crashed).contains(&"owl") && !names(&crashed).contains(&"swan"));
    assert_eq!(
        names(&list(&["--all", "--state", "ended", "--state", "unknown"])).len(),
        8
    );
    let unfinished = list(&["--all", "--unfinished", "-n", "0"]);
    assert_eq!(
        names(&unfinished).len(),
        16,
        "crashed, ended by an error, of unknown status"
    );
    let two = list(&["--all", "--limit", "2"]);
    assert_eq!(names(&two), ["lion", "mole"]);
    assert_eq!(two["data"]["more"], true);
    assert_eq!(names(&list(&["--all", "--agent", "jcode"])).len(), 22);
    let answer = scratch
        .takeup(&["sessions", "--agent", "none", "--json"])
        .exits(2)
        .json();
    assert_eq!(answer["error"]["code"], "no-such-agent");
}

#[test]
fn only_what_worked_in_this_work_tree_is_listed_there() {
    let scratch = scratch();
    scratch.git(&["worktree", "add", "-q", "../wt", "-b", "other"]);
    let sessions = scratch.home().join(".jcode/sessions");
    let repo = scratch.repo().display().to_string();
    let wt = scratch.path().join("wt").display().to_string();
    for (word, folder) in [
        ("bear_1777633800000", &repo),
        ("swan_1777639800000_0000000000000011", &wt),
    ] {
        let path = sessions.join(format!("session_{word}.json"));
        let text = std::fs::read_to_string(&path).unwrap();
        let moved = text.replace(
            "\"working_dir\":\"/repo\"",
            &format!("\"working_dir\":\"{folder}\""),
        );
        assert_ne!(moved, text);
        takeup_core::files::write_atomic(&path, moved.as_bytes(), 0o600).unwrap();
    }
    let here = scratch.takeup(&["sessions", "--json"]).exits(0).json();
    assert_eq!(names(&here), ["bear"]);
    let there = scratch
        .takeup_in(&scratch.path().join("wt"), &["sessions", "--json"])
        .exits(0)
        .json();
    assert_eq!(names(&there), ["swan"]);
}

#[test]
fn looking_changes_nothing() {
    let scratch = scratch();
    let before = picture(&scratch.path(), &|_| false);
    for args in [
        &["sessions", "--all"][..],
        &["sessions", "--all", "--json", "-n", "0"],
        &["sessions", "--unfinished"],
        &["sessions", "show", "zebra"],
        &["sessions", "show", "deer", "--json"],
        &["sessions", "recover", "lion"],
    ] {
        scratch.takeup(args).exits(0);
    }
    assert_eq!(picture(&scratch.path(), &|_| false), before);
}

#[test]
fn a_session_is_recovered_into_a_new_one() {
    let scratch = scratch();
    let fox = "session_fox_1777629600000_0000000000000000";
    let before = picture(&scratch.home(), &|_| false);
    let answer = scratch
        .takeup(&["sessions", "recover", "fox", "--as-session", "--json"])
        .exits(0)
        .json();
    let id = answer["data"]["recoveredTo"]
        .as_str()
        .unwrap()
        .strip_prefix("jcode:")
        .unwrap();
    assert_eq!(answer["next"]["command"], format!("jcode --resume {id}"));
    let shown = scratch
        .takeup(&["sessions", "show", id, "--json"])
        .exits(0)
        .json();
    let session = &shown["data"]["detail"]["session"];
    assert_eq!(session["parent"], fox);
    assert_eq!(session["liveness"]["state"], "ended");
    assert!(session["openEffects"].as_array().unwrap().is_empty());
    let name = format!("{id}.json");
    let after = picture(&scratch.home(), &|path| path.ends_with(&name));
    let files = |picture: &str| {
        picture
            .lines()
            .filter(|line| !line.contains("/sessions "))
            .count()
    };
    assert_eq!(files(&after), files(&before), "nothing else was written");
}

/// A reload that never came back leaves work; what was closed by somebody does not.
#[test]
fn a_session_that_was_reloaded_in_the_middle_is_unfinished() {
    let scratch = scratch();
    let home = scratch.home().join(".jcode");
    let (id, repo) = ("session_fox_1777629600000_0000000000000000", scratch.repo());
    let path = home.join(format!("sessions/{id}.json"));
    std::fs::remove_file(home.join(format!("sessions/{id}.journal.jsonl"))).unwrap();
    std::fs::remove_file(home.join(format!("sessions/{id}.tmp.4242.1234567890123456789"))).unwrap();
    std::fs::remove_file(home.join(format!("active_pids/{id}"))).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let whole: Value = serde_json::from_str(&text).unwrap();
    for (status, messages, unfinished) in [
        ("Reloaded", 1, true),
        ("Reloaded", 0, false),
        ("Closed", 1, false),
    ] {
        let mut left = whole.clone();
        left["status"] = status.into();
        left["working_dir"] = repo.to_str().unwrap().into();
        let all = left["messages"].as_array_mut().unwrap();
        all.truncate(messages);
        assert!(all.iter().all(|message| message["role"] == "user"));
        let text = serde_json::to_vec(&left).unwrap();
        takeup_core::files::write_atomic(&path, &text, 0o600).unwrap();
        let list = scratch
            .takeup(&["sessions", "--unfinished", "--json"])
            .exits(0)
            .json();
        assert_eq!(
            names(&list).contains(&"fox"),
            unfinished,
            "{status}: {list:#}"
        );
    }
}

#[test]
fn what_is_not_there_is_exit_4() {
    let scratch = scratch();
    for args in [
        ["sessions", "show", "ghost", "--json"],
        ["sessions", "recover", "ghost", "--json"],
    ] {
        let answer = scratch.takeup(&args).exits(4).json();
        assert_eq!(answer["error"]["code"], "no-such-session");
    }
}

/// The pid of the test itself stands for a living owner, a child that ended for a dead one.
#[test]
fn living_owners_are_told_by_the_process_table() {
    let scratch = scratch();
    let home = scratch.home().join(".jcode");
    let state = |word: &str| {
        let shown = scratch
            .takeup(&["sessions", "show", word, "--json"])
            .exits(0)
            .json();
        shown["data"]["detail"]["session"]["liveness"].clone()
    };
    let path = home.join("sessions/session_seal_1777641000000_0000000000000013.json");
    let journal = home.join("sessions/session_seal_1777641000000_0000000000000013.journal.jsonl");
    let own = std::process::id().to_string();
    let active_at = |pid: &str, at: &str| {
        for path in [&path, &journal] {
            let fixture = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
                .join("fixtures/jcode-home/home/sessions")
                .join(path.file_name().unwrap());
            let text = std::fs::read_to_string(fixture).unwrap();
            let text = text
                .replace("99999999", pid)
                .replace("2026-05-01T13:10:01.500000001Z", at);
            takeup_core::files::write_atomic(path, text.as_bytes(), 0o600).unwrap();
        }
        let marker = home.join("active_pids/session_seal_1777641000000_0000000000000013");
        takeup_core::files::write_atomic(&marker, pid.as_bytes(), 0o600).unwrap();
    };
    // Recorded after the process had begun: it is the owner.
    active_at(&own, "2999-01-01T00:00:00Z");
    assert_eq!(state("seal")["state"], "live");
    let refused = scratch
        .takeup(&["sessions", "recover", "seal", "--as-session", "--json"])
        .exits(6)
        .json();
    assert_eq!(refused["error"]["code"], "agent-in-use");
    // Recorded months before the process began, in a marker written now: the two contradict each other.
    active_at(&own, "2026-05-01T13:10:01Z");
    assert_eq!(state("seal")["state"], "unknown");
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let dead = child.id().to_string();
    child.wait().unwrap();
    active_at(&dead, "2999-01-01T00:00:00Z");
    assert_eq!(state("seal")["state"], "crashed");
}

/// jcode names a parent in forks, transfers and overnight work, which are work of their own, and in helpers.
#[test]
fn a_fork_can_be_taken_up_and_a_helper_of_a_swarm_is_not_offered() {
    let scratch = scratch();
    let sessions = scratch.home().join(".jcode/sessions");
    let fixture =
        std::fs::read_to_string(sessions.join("session_panda_1777631400000_0000000000000003.json"))
            .unwrap();
    let made = |word: &str, title: &str, parent: &str| {
        let id = format!("session_{word}_1777631400001_00000000000000f0");
        let mut session: Value = serde_json::from_str(&fixture).unwrap();
        session["id"] = id.clone().into();
        session["title"] = title.into();
        session["short_name"] = word.into();
        session["working_dir"] = scratch.repo().display().to_string().into();
        session["parent_id"] = parent.into();
        let text = serde_json::to_vec(&session).unwrap();
        takeup_core::files::write_atomic(&sessions.join(format!("{id}.json")), &text, 0o600)
            .unwrap();
    };
    let parent = "session_otter_1777630800000_0000000000000002";
    made("ant", "Split the parser", parent);
    made("yak", "Overnight: all the tests", parent);
    made("elk", "Find the slow query (@researcher swarm)", parent);
    made("emu", "autoreview", parent);
    let listed = scratch.takeup(&["sessions", "--json"]).exits(0).json();
    let helpers: Vec<bool> = ["ant", "yak", "elk", "emu"]
        .iter()
        .map(|word| {
            let list = listed["data"]["sessions"].as_array().unwrap();
            let found = list.iter().find(|session| session["name"] == *word);
            assert_eq!(found.unwrap()["parent"], parent);
            found.unwrap()["helper"].as_bool().unwrap()
        })
        .collect();
    assert_eq!(helpers, [false, false, true, true]);
    let inspected = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let mut offered: Vec<&str> = inspected["data"]["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|candidate| candidate["identity"]["title"].as_str().unwrap())
        .collect();
    offered.sort_unstable();
    assert_eq!(offered, ["Overnight: all the tests", "Split the parser"]);
}

/// Nothing says where a session worked whose file is damaged, so it is named everywhere.
#[test]
fn a_damaged_session_of_no_known_place_is_named_in_every_place() {
    for (content, word) in [
        (vec![0; 5_000], "zero"),
        (br#"{"id":"session_fox"#.to_vec(), ""),
    ] {
        let scratch = Scratch::new(PROGRAM);
        let name = "session_fox_1796000000006_0000000000000007.json";
        let folder = scratch.home().join(".jcode/sessions");
        std::fs::create_dir_all(&folder).unwrap();
        takeup_core::files::write_atomic(&folder.join(name), &content, 0o600).unwrap();
        for args in [&["sessions"][..], &["sessions", "--all"], &["inspect"], &[]] {
            let ran = scratch.takeup(args).exits(0);
            let shown = ran.stdout.replace("\n  ", "");
            assert_eq!(shown.matches(name).count(), 1, "{args:?}: {shown}");
            assert!(shown.contains(word), "{shown}");
        }
    }
}

/// Whoever is at work here is told as such, whether or not takeup is used here.
#[test]
fn a_living_session_is_in_use_and_not_denied() {
    let scratch = scratch();
    let sessions = scratch.home().join(".jcode/sessions");
    let id = "session_panda_1777631400000_0000000000000003";
    let path = sessions.join(format!("{id}.json"));
    let mut session: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    session["working_dir"] = scratch.repo().display().to_string().into();
    session["status"] = "Active".into();
    // Not the test itself: that one is above the program, which would then be asked from inside the session.
    let mut owner = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    session["last_pid"] = owner.id().into();
    session["last_active_at"] = "2999-01-01T00:00:00Z".into();
    let text = serde_json::to_vec(&session).unwrap();
    takeup_core::files::write_atomic(&path, &text, 0o600).unwrap();
    let marker = scratch.home().join(".jcode/active_pids").join(id);
    let pid = owner.id().to_string();
    takeup_core::files::write_atomic(&marker, pid.as_bytes(), 0o600).unwrap();
    for _ in 0..2 {
        let listed = scratch.takeup(&["sessions", "--json"]).exits(0).json();
        assert_eq!(listed["data"]["sessions"][0]["liveness"]["state"], "live");
        let found = scratch.takeup(&["inspect", "--json"]).exits(0).json();
        assert_eq!(found["data"]["candidates"][0]["verdict"], "in-use");
        let refused = scratch
            .takeup(&["resume", "--from", id, "--confirm", "--json"])
            .exits(5)
            .json();
        assert!(refused.to_string().contains(&pid), "{refused}");
        scratch.takeup(&["init"]).exits(0);
    }
    drop(owner.stdin.take());
    owner.wait().unwrap();
}

/// A session that only `start` told of is listed with its task, and that of another work tree with `--all`.
#[test]
fn a_session_that_is_known_by_its_task_alone_is_listed() {
    let scratch = Scratch::new(PROGRAM);
    let start = ["start", "Mend it", "--session", "s1", "--agent", "codex"];
    scratch.takeup(&start).exits(0);
    let titles = |folder: &std::path::Path, option: &str| {
        let listed = scratch.takeup_in(folder, &["sessions", option, "--json"]);
        let listed = listed.exits(0).json();
        let sessions = listed["data"]["sessions"].as_array().unwrap().clone();
        sessions
            .iter()
            .map(|one| one["title"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let here = scratch.repo();
    assert_eq!(titles(&here, "--limit=0"), ["Mend it"]);
    let shown = scratch.takeup(&["sessions", "show", "s1"]).exits(0);
    assert!(shown.stdout.contains("codex:s1"), "{}", shown.stdout);
    let done = ["abandon", "mend-it", "--session", "s1", "--agent", "codex"];
    scratch.takeup(&done).exits(0);
    assert_eq!(titles(&here, "--limit=0"), ["Mend it"]);
    assert_eq!(titles(&here, "--unfinished"), [""; 0]);
    // A person's session is none of an agent's.
    scratch.takeup(&["start", "By hand"]).exits(0);
    assert_eq!(titles(&here, "--limit=0"), ["Mend it"]);
    let other = scratch.path().join("other");
    scratch.git(&["worktree", "add", "-q", other.to_str().unwrap()]);
    assert_eq!(titles(&other, "--limit=0"), [""; 0]);
    assert_eq!(titles(&other, "--all"), ["Mend it"]);
}

/// What is not read is said, where it would seem that nothing was left.
#[test]
fn stores_that_are_not_read_are_said_to_be_there() {
    let scratch = Scratch::new(PROGRAM);
    let silent = scratch.takeup(&["sessions"]).exits(0);
    assert!(!silent.stdout.contains("not read"), "{}", silent.stdout);
    let slug = scratch
        .repo()
        .display()
        .to_string()
        .replace(['/', '.'], "-");
    let folder = scratch.home().join(".claude/projects").join(slug);
    std::fs::create_dir_all(&folder).unwrap();
    takeup_core::files::write_atomic(&folder.join("c1.jsonl"), b"{}", 0o600).unwrap();
    std::fs::create_dir_all(scratch.home().join(".codex/sessions/2026")).unwrap();
    for args in [&["sessions"][..], &["inspect"], &[]] {
        let said = scratch.takeup(args).exits(0).stdout;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for name in ["Claude Code", "Codex"] {
            assert!(
                said.contains(&format!("what {name} itself keeps is not read")),
                "{said}"
            );
        }
    }
    let listed = scratch.takeup(&["sessions", "--json"]).exits(0).json();
    assert_eq!(listed["data"]["unread"].as_array().unwrap().len(), 2);
    // Whoever names such a session is told why it is not found.
    let missing = scratch
        .takeup(&["sessions", "show", "c1", "--json"])
        .exits(4)
        .json();
    let hint = missing["error"]["hint"].as_str().unwrap();
    assert!(
        hint.contains("what Claude Code itself keeps is not read"),
        "{hint}"
    );
}

/// A home that was left over is nobody who could go on; what was only written is not said to be sent.
#[test]
fn a_hand_over_is_told_as_it_is() {
    let scratch = Scratch::new(PROGRAM);
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    for (agent, home) in [("jcode", ".jcode/sessions"), ("openclaw", ".openclaw")] {
        std::fs::create_dir_all(scratch.home().join(home)).unwrap();
        let before = picture(&scratch.home(), &|_| false);
        let refused = scratch
            .takeup(&["handover", "t1", "--to", agent, "--json"])
            .exits(1)
            .json();
        assert_eq!(refused["error"]["code"], "agent-not-installed");
        assert_eq!(picture(&scratch.home(), &|_| false), before);
    }
    scratch.put_program("openclaw", "#!/bin/sh\nexit 1\n");
    let written = scratch
        .takeup(&["handover", "t1", "--to", "openclaw"])
        .exits(0)
        .stdout;
    assert!(written.contains("written, and not sent"), "{written}");
    let shown = scratch.takeup(&["show", "t1"]).exits(0).stdout;
    assert!(!shown.contains("handed over"), "{shown}");
    assert!(
        shown.contains("a hand-over for openclaw was written"),
        "{shown}"
    );
}
