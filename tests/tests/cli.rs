//! The command line as a person or script meets it.
use takeup_tests::Scratch;

const PROGRAM: &str = env!("CARGO_BIN_EXE_takeup-under-test");

#[test]
fn the_version_is_printed_for_people_and_machines() {
    let scratch = Scratch::empty(PROGRAM);
    let people = scratch.takeup_in(&scratch.home(), &["version"]).exits(0);
    assert_eq!(
        people.stdout,
        format!("git-takeup {}\n", env!("CARGO_PKG_VERSION"))
    );
    let machines = scratch
        .takeup_in(&scratch.home(), &["version", "--json"])
        .exits(0)
        .json();
    assert_eq!(machines["data"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(machines["ok"], true);
}

#[test]
fn wrong_usage_is_exit_2_and_json_when_asked() {
    let scratch = Scratch::empty(PROGRAM);
    scratch
        .takeup_in(&scratch.home(), &["no-such-command"])
        .exits(2);
    let answer = scratch
        .takeup_in(&scratch.home(), &["no-such-command", "--json"])
        .exits(2)
        .json();
    assert_eq!(answer["error"]["code"], "usage");
}

#[test]
fn the_demo_plays_the_whole_story_and_touches_nothing_else() {
    let scratch = Scratch::new(PROGRAM);
    let before = takeup_tests::picture(&scratch.path(), &|_| false);
    let answer = scratch.takeup(&["demo", "--json"]).exits(0).json();
    let steps = answer["data"]["steps"].as_array().unwrap();
    let verdicts: Vec<&str> = steps
        .iter()
        .filter_map(|step| step["verdict"].as_str())
        .collect();
    assert_eq!(verdicts, ["in-use", "stale-task", "resume-verification"]);
    let mut takers: Vec<i64> = steps
        .iter()
        .filter(|step| step["title"] == "a taker")
        .filter_map(|step| step["exit"].as_i64())
        .collect();
    takers.sort_unstable();
    assert_eq!(takers, [0, 5]);
    let changed =
        takeup_tests::differences(&before, &takeup_tests::picture(&scratch.path(), &|_| false));
    assert!(changed.is_empty(), "{changed:#?}");
}

/// Checks `data` of an answer, and its envelope, against the schemas that are kept in the repository.
fn fits(schema: &str, answer: &serde_json::Value) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/schemas");
    for (name, value) in [("envelope", answer), (schema, &answer["data"])] {
        let mut schemas = boon::Schemas::new();
        let index = boon::Compiler::new()
            .compile(&format!("{folder}/{name}.json"), &mut schemas)
            .unwrap();
        if let Err(error) = schemas.validate(value, index) {
            panic!("{schema} does not fit {name}: {error:#}\n{value:#}");
        }
    }
}

#[test]
fn every_answer_fits_its_schema() {
    let scratch = Scratch::new(PROGRAM);
    let long = [
        "start",
        "a task",
        "--session",
        "s1",
        "--check",
        "true",
        "--allow",
        "src/",
        "--avoid",
        "x",
    ];
    for (schema, exit, words) in [
        ("init", 0, &["init"][..]),
        ("start", 0, &long),
        ("note", 0, &["note", "hello", "--session", "s1"]),
        ("plan", 0, &["plan"]),
        ("check", 0, &["check", "--session", "s1", "--planned", "1"]),
        (
            "evidence",
            0,
            &[
                "evidence",
                "add",
                "--command",
                "x",
                "--exit-code",
                "1",
                "--session",
                "s1",
            ],
        ),
        ("save", 0, &["save", "--session", "s1"]),
        ("inspect", 0, &["inspect"]),
        ("overview", 0, &[]),
        (
            "resume",
            0,
            &[
                "resume",
                "a-task",
                "--from",
                "s1",
                "--to",
                "s2",
                "--confirm",
            ],
        ),
        ("evaluate", 0, &["evaluate", "a-task", "--session", "s2"]),
        (
            "review-edit",
            0,
            &["review", "request", "why?", "--session", "s2"],
        ),
        ("review", 0, &["review", "list"]),
        (
            "review-edit",
            0,
            &["review", "approve", "a-task", "--confirm"],
        ),
        ("show", 0, &["show", "a-task"]),
        ("log", 0, &["log", "a-task"]),
        ("diff", 0, &["diff", "a-task"]),
        ("handover", 0, &["handover", "a-task"]),
        ("next", 0, &["next", "a-task", "--session", "s2"]),
        ("start", 0, &["start", "b", "--session", "s3"]),
        ("abandon", 0, &["abandon", "b", "--session", "s3"]),
        ("fingerprint", 0, &["fingerprint"]),
        ("sessions", 0, &["sessions"]),
        ("agents", 0, &["agents"]),
        ("agents-edit", 0, &["agents", "status", "opencode"]),
        ("hooks-status", 1, &["hooks", "status"]),
        ("hooks-edit", 0, &["hooks", "install", "--dry-run"]),
        ("gc", 0, &["gc"]),
        ("config", 0, &["config"]),
        ("bg-list", 0, &["bg", "list"]),
        ("version", 0, &["version"]),
    ] {
        let ran = scratch.takeup(&[words, &["--json"]].concat());
        assert_eq!(ran.code, exit, "{words:?}: {}{}", ran.stdout, ran.stderr);
        fits(schema, &ran.json());
    }
    let doctor = scratch.takeup(&["doctor", "--json"]);
    fits("doctor", &doctor.json());
}

#[test]
fn options_behind_a_note_are_options() {
    let scratch = Scratch::new(PROGRAM);
    scratch
        .takeup(&["start", "t", "--session", "s1", "--no-checks"])
        .exits(0);
    let noted = scratch
        .takeup(&["note", "two words", "more", "--session", "s1", "--json"])
        .exits(0)
        .json();
    assert_eq!(noted["data"]["note"]["text"], "two words more");
    let noted = scratch
        .takeup(&[
            "note",
            "--session",
            "s1",
            "--json",
            "--",
            "-begins with a dash",
        ])
        .exits(0)
        .json();
    assert_eq!(noted["data"]["note"]["text"], "-begins with a dash");
}

/// What nobody got is no answer: a full disk fails, whatever the command; a reader that went away does not.
#[test]
fn an_answer_that_could_not_be_written_is_no_success() {
    use std::fs::File;
    let scratch = Scratch::new(PROGRAM);
    scratch
        .takeup(&["start", "task", "--session", "s"])
        .exits(0);
    for args in [
        &["inspect"][..],
        &["inspect", "--json"],
        &["status"],
        &["show", "task"],
        &["log", "task"],
        &["diff", "task", "--name-only", "-z"],
        &["doctor"],
        &["hooks", "status"],
        &["config"],
        &["version"],
        &["completions", "bash"],
        &["--help"],
        &["help", "inspect"],
        &["gc", "--dry-run"],
        &["fingerprint"],
        &["note", "a remark", "--session", "s"],
        &[],
    ] {
        let well = scratch.takeup(args);
        let ended = scratch
            .program_in(&scratch.repo())
            .args(args)
            .stdout(File::options().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        if well.stdout.is_empty() {
            // Nothing was to be said, or it was said on standard error.
            assert_eq!(ended.status.code(), Some(well.code), "{args:?}: {said}");
            continue;
        }
        let expected = if well.code == 0 { 1 } else { well.code };
        assert_eq!(ended.status.code(), Some(expected), "{args:?}: {said}");
        assert!(
            said.contains("cannot write to standard output"),
            "{args:?}: {said}"
        );
        // A reader that is gone before the first byte comes: nothing is said of it.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = scratch
            .program_in(&scratch.repo())
            .args(args)
            .stdout(writer)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(well.code), "{args:?}: {said}");
        assert_eq!(said, well.stderr, "{args:?}");
    }
}

#[test]
fn a_folder_that_is_gone_is_told_from_one_without_a_repository() {
    use std::process::Command;
    let scratch = Scratch::empty(PROGRAM);
    let mut shell = Command::new("sh");
    scratch.dress(&mut shell);
    let ran = shell
        .current_dir(scratch.home())
        .args([
            "-c",
            "mkdir gone && cd gone && rmdir ../gone && git-takeup inspect --json",
        ])
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let answer: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(answer["error"]["code"], "no-current-folder");
    assert_eq!(answer["error"]["message"], "the current folder is gone");
}

#[test]
fn a_session_is_found_without_its_agent_where_nobody_else_is_meant() {
    let scratch = Scratch::new(PROGRAM);
    let start = |title: &str, agent: &str| {
        scratch
            .takeup(&["start", title, "--session", "a1", "--agent", agent])
            .exits(0);
    };
    start("Fix it", "codex");
    let saved = scratch.takeup(&["save", "--session", "a1", "--json"]);
    let saved = saved.exits(0).json();
    assert_eq!(saved["data"]["identities"][0]["taskId"], "fix-it");
    start("Mend it", "pi");
    let refused = scratch.takeup(&["save", "--session", "a1", "--json"]);
    let error = refused.exits(4).json()["error"].clone();
    assert_eq!(error["message"], "session a1 is here, of codex and of pi");
    assert_eq!(error["hint"], "name its agent with --agent");
    scratch
        .takeup(&["save", "--session", "a1", "--agent", "amp"])
        .exits(4);
    scratch
        .takeup(&["save", "--session", "a1", "--agent", "pi"])
        .exits(0);
}

#[test]
fn the_next_command_runs_whatever_the_sessions_are_called() {
    let scratch = Scratch::new(PROGRAM);
    for (title, session) in [("Fix it", "-x"), ("Mend it", "--rebuild")] {
        let named = format!("--session={session}");
        scratch.takeup(&["start", title, &named]).exits(0);
        scratch.takeup(&["save", "--end", &named]).exits(0);
    }
    let seen = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let candidates = seen["data"]["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 2);
    let run = |command: &str| {
        let words = shlex::split(command).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(words[..2], ["git", "takeup"]);
        scratch.takeup(&words[2..]).exits(0);
    };
    for candidate in candidates {
        run(candidate["next"]["command"].as_str().unwrap());
    }
    // What is asked for names the session that takes it up, too.
    scratch.takeup(&["start", "Third", "--session=-a"]).exits(0);
    scratch.takeup(&["save", "--end", "--session=-a"]).exits(0);
    let asked = scratch.takeup(&["resume", "third", "--to=--rebuild", "--json"]);
    run(asked.exits(3).json()["next"]["command"].as_str().unwrap());
}

#[test]
fn a_hand_over_goes_where_it_is_said() {
    let scratch = Scratch::new(PROGRAM);
    scratch
        .takeup(&["start", "Fix it", "--session", "s1"])
        .exits(0);
    for few in ["0", "500", "1499", "many"] {
        let refused = scratch.takeup(&["handover", "fix-it", "--budget", few]);
        refused.exits(2);
    }
    scratch
        .takeup(&["handover", "fix-it", "--budget", "1500"])
        .exits(0);
    let printed = scratch.takeup(&["handover", "fix-it", "-o", "-"]).exits(0);
    assert!(printed.stdout.contains("Fix it"), "{printed:?}");
    assert!(!scratch.repo().join("-").exists());
}

#[test]
fn what_install_cannot_mend_is_no_advice() {
    let scratch = Scratch::new(PROGRAM);
    let settings = scratch.home().join(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let install = ["agents", "install", "claude-code", "--user"];
    scratch.takeup(&install).exits(0);
    let ours = std::fs::read_to_string(&settings).unwrap();
    for broken in ["{ broken".to_owned(), format!("{ours} and more")] {
        std::fs::write(&settings, broken).unwrap();
        scratch.takeup(&install).exits(1);
        let found = scratch.takeup(&["doctor", "--json"]).json();
        let about: Vec<&serde_json::Value> = found["data"]["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| finding["check"] == "agent-claude-code")
            .collect();
        assert_eq!(about.len(), 1, "{about:?}");
        let advice = about[0]["advice"].as_str().unwrap();
        assert!(advice.starts_with("mend or move that file"), "{advice}");
    }
}

/// Every other name of a command that help and completions offer is one.
#[test]
fn every_alias_that_is_offered_is_known() {
    fn aliases(command: &clap::Command, above: &[String], found: &mut Vec<Vec<String>>) {
        for inner in command.get_subcommands() {
            let path = |name: &str| {
                let mut path = above.to_vec();
                path.push(name.to_owned());
                path
            };
            found.extend(inner.get_visible_aliases().map(path));
            aliases(inner, &path(inner.get_name()), found);
        }
    }
    let scratch = Scratch::empty(PROGRAM);
    let mut found = Vec::new();
    let mut command = git_takeup::command();
    command.build();
    aliases(&command, &[], &mut found);
    assert!(found.iter().any(|path| path == &["handoff"]), "{found:?}");
    for path in found {
        let mut words = path.clone();
        words.push("--help".to_owned());
        scratch.takeup_in(&scratch.home(), &words).exits(0);
        let mut words = vec!["help".to_owned()];
        words.extend(path);
        scratch.takeup_in(&scratch.home(), &words).exits(0);
    }
}

/// Nothing is written below a home that is relative to the folder of the call, and no settings of an agent are edited for a
/// user whose home nobody named.
#[test]
fn a_home_has_to_be_one() {
    let scratch = Scratch::new(PROGRAM);
    let run = |home: Option<&str>, words: &[&str]| {
        let mut command = scratch.program_in(&scratch.repo());
        command.args(words);
        match home {
            Some(home) => command.env("HOME", home),
            None => command.env_remove("HOME"),
        };
        takeup_tests::Ran::of(command.output().unwrap())
    };
    run(Some("relhome"), &["start", "x", "--session", "s"]).exits(0);
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    for home in [None, Some("relhome")] {
        let ran = run(
            home,
            &["agents", "install", "skills", "--user", "--dry-run"],
        )
        .exits(1);
        assert!(ran.stderr.contains("HOME"), "{}", ran.stderr);
    }
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
}
