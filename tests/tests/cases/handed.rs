//! Hand-overs: written for the one who receives them, and where they are written.
use serde_json::Value;
use takeup_tests::Scratch;

use super::{fails_with, scratch};

/// Starts `t1` in session `s1`.
fn started() -> Scratch {
    let scratch = scratch();
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--check", "true"])
        .exits(0);
    scratch
}

/// Returns the command that the document's next step names.
fn next_command(document: &str) -> Vec<String> {
    let line = document
        .lines()
        .find(|line| line.contains("next step at"))
        .unwrap_or_else(|| panic!("no next step in {document}"));
    let command = line.split('`').nth(1).unwrap();
    let words = command.split(' ').skip(2);
    words.map(ToOwned::to_owned).collect()
}

fn run(scratch: &Scratch, words: &[String], session: &str) -> takeup_tests::Ran {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.extend(["--session", session, "--json"]);
    scratch.takeup(&words)
}

#[test]
fn what_the_holder_hands_over_tells_the_receiver_what_to_do() {
    let scratch = started();
    let document = scratch
        .takeup(&["handover", "--session", "s1"])
        .exits(0)
        .stdout;
    // The one who reads it is not the calling session.
    assert!(!document.contains("calling session"), "{document}");
    assert!(document.contains("open: "), "{document}");
    assert!(document.contains("once session s1 has ended"), "{document}");
    let words = next_command(&document);
    assert_eq!(words, ["resume", "t1", "--from", "s1", "--confirm"]);
    // Where the content changed, nothing is confirmed beforehand.
    scratch.write("a.txt", "two\n");
    let document = scratch
        .takeup(&["handover", "--session", "s1"])
        .exits(0)
        .stdout;
    let stale = next_command(&document);
    assert_eq!(stale, ["resume", "t1", "--from", "s1"]);
    run(&scratch, &stale, "s2").exits(3);
    scratch.write("a.txt", "one\n");
    // The command of the document is the one that takes it up.
    let taken = run(&scratch, &words, "s2").exits(0).json();
    assert_eq!(taken["data"]["identity"]["sessionId"], "s2", "{taken:#}");
}

#[test]
fn what_is_delivered_names_who_gave_it() {
    let scratch = started();
    // Asked whether its gateway runs, it says no: the document stays in a file.
    std::fs::create_dir_all(scratch.home().join(".openclaw")).unwrap();
    scratch.put_program("openclaw", "#!/bin/sh\nexit 1\n");
    let handed = scratch
        .takeup(&["handover", "--to", "openclaw", "--session", "s1", "--json"])
        .exits(0)
        .json();
    let document = handed["data"]["markdown"].as_str().unwrap();
    assert_eq!(
        next_command(document),
        ["resume", "t1", "--from", "s1", "--confirm"]
    );
    let log = scratch.takeup(&["log", "t1", "--json"]).exits(0).json();
    let told = log["data"]["lines"].as_array().unwrap().iter();
    let by: Vec<&Value> = told
        .filter(|line| {
            line["message"]
                .as_str()
                .unwrap()
                .contains("a hand-over for")
        })
        .map(|line| &line["by"])
        .collect();
    assert_eq!(by, ["person:s1"], "{log:#}");
}

#[test]
fn an_agent_that_takes_none_is_said_to_take_none_before_it_is_installed() {
    let scratch = started();
    for words in [
        &["handover", "t1", "--to", "codex", "--json"][..],
        &["handover", "t1", "--to", "codex", "--dry-run", "--json"],
    ] {
        let refused = scratch.takeup(words).exits(1);
        fails_with(&refused, "agent-unsupported");
    }
}

#[test]
fn a_document_in_the_work_tree_is_said_to_be_new_content() {
    let scratch = started();
    scratch.write(".git/info/exclude", "*.out\n/kept/\n");
    scratch.write("kept/x", "x\n");
    let clean = scratch.git(&["status", "--porcelain"]);
    assert_eq!(clean, "");
    for file in [
        "../outside.md",
        "here.out",
        "kept/here.md",
        ".git/takeup/here.md",
        "here.md",
        "kept/../there.md",
    ] {
        let ran = scratch.takeup(&["handover", "t1", "-o", file, "--json"]);
        let written = ran.exits(0).json()["data"]["written"].clone();
        // Plain git tells whether it is content.
        let is_content = !scratch.git(&["status", "--porcelain"]).is_empty();
        assert_eq!(written["inContent"], is_content, "{file}");
        scratch.git(&["clean", "-q", "-f"]);
    }
    let text = scratch
        .takeup(&["handover", "t1", "-o", "other.md"])
        .exits(0)
        .stdout;
    assert!(text.contains("new content of the work tree"), "{text}");
}

#[test]
fn what_is_left_out_is_found_by_the_commands_that_are_named() {
    let scratch = started();
    // Another task, so that one has to be named.
    scratch
        .takeup(&["start", "t2", "--session", "s2", "--no-checks"])
        .exits(0);
    for number in 0..30 {
        let note = format!("{number} {}", "word ".repeat(300));
        scratch
            .takeup(&["note", &note, "--task", "t1", "--session", "s1"])
            .exits(0);
    }
    for number in 0..300 {
        scratch.write(&format!("new/file-{number}"), "x\n");
    }
    let document = scratch
        .takeup(&["handover", "t1", "--budget", "2000"])
        .exits(0)
        .stdout;
    let left_out = document.split("## Left out").nth(1).unwrap();
    let commands: Vec<&str> = left_out
        .lines()
        .filter_map(|line| line.split('`').nth(1))
        .collect();
    assert!(
        ["git takeup diff t1 --stat", "git takeup show t1"]
            .iter()
            .all(|command| commands.contains(command)),
        "{left_out}"
    );
    for command in commands {
        let words: Vec<&str> = command.split(' ').skip(2).collect();
        // A stale task and a difference are said by exit status 1.
        let ran = scratch.takeup(&words);
        assert!(ran.code < 2, "{command}: {}", ran.stderr);
    }
}

#[test]
fn what_opencode_does_not_say_that_it_took_is_not_handed_over() {
    let scratch = started();
    scratch.write(".git/info/exclude", "opencode.json\n");
    scratch.write("opencode.json", "{\"model\": \"mock/mock-1\"}");
    for says in [
        "Failed to read session data",
        "error: database is locked",
        "Imported session: ses_other",
        "",
    ] {
        scratch.put_program("opencode", &format!("#!/bin/sh\necho '{says}'\n"));
        let ran = scratch.takeup(&["handover", "t1", "--to", "opencode"]);
        assert_eq!(ran.code, 1, "{says}: {}", ran.stdout);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
        let log = scratch.takeup(&["log", "t1"]).exits(0).stdout;
        assert!(!log.contains("handed over"), "{says}: {log}");
    }
    scratch.put_program(
        "opencode",
        "#!/bin/sh\necho \"Imported session: $(grep -o 'ses_[0-9A-Za-z]*' \"$2\" | head -n 1)\"\n",
    );
    scratch
        .takeup(&["handover", "t1", "--to", "opencode"])
        .exits(0);
}

/// Proof belongs to the content, whoever ran it: that it was another session is said.
#[test]
fn whose_run_proves_a_task_is_said() {
    let scratch = started();
    scratch
        .takeup(&["check", "--session", "s1", "--planned", "1"])
        .exits(0);
    let own = scratch
        .takeup(&["evaluate", "--session", "s1", "--json"])
        .exits(0)
        .json();
    assert!(own["data"]["evidence"][0].get("by").is_none(), "{own:#}");
    scratch
        .takeup(&["resume", "t1", "--from", "s1", "--to", "s2", "--confirm"])
        .exits(0);
    let seen = scratch
        .takeup(&["evaluate", "--session", "s2", "--json"])
        .exits(0)
        .json();
    assert_eq!(seen["data"]["evidence"][0]["by"]["id"], "s1", "{seen:#}");
    let said = scratch.takeup(&["next", "--session", "s2"]).exits(0).stdout;
    assert!(said.contains("by person:s1"), "{said}");
}
