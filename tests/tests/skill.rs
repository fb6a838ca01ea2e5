//! The scripts of the skill through the real program: what a model is given in each situation.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up ends there"
)]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use takeup_tests::{Ran, Scratch};

/// A repository with the skill installed in it, as `git takeup agents install skills` does it.
struct Stage {
    scratch: Scratch,
}

impl Stage {
    fn new() -> Self {
        let scratch = Scratch::new(env!("CARGO_BIN_EXE_takeup-under-test"));
        scratch.write(".gitignore", ".agents/\n.claude/\n");
        scratch.git(&["add", ".gitignore"]);
        scratch.git(&["commit", "-q", "-m", "ignore the skill"]);
        scratch.takeup(&["agents", "install", "skills"]).exits(0);
        Self { scratch }
    }

    fn script(&self, name: &str, arguments: &[&str]) -> Ran {
        let path: PathBuf = [".claude/skills/takeup/scripts", name].iter().collect();
        let mut command = Command::new(self.scratch.repo().join(path));
        self.scratch.dress(&mut command);
        command.current_dir(self.scratch.repo()).args(arguments);
        Ran::of(command.output().unwrap())
    }

    /// What the script printed, with all that differs from run to run named instead.
    fn shown(&self, name: &str, arguments: &[&str], code: i32) -> String {
        let ran = self.script(name, arguments).exits(code);
        let mut json = ran.json();
        settle(&mut json, &self.scratch.path().display().to_string());
        serde_json::to_string_pretty(&json).unwrap()
    }

    /// Starts a task in a session that a process stands for.
    fn task(&self) -> Session {
        let child = Command::new("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id().to_string();
        let session = Session(child);
        self.scratch.write("a.txt", "two\n");
        let start = [
            "Fix the parser",
            "--no-checks",
            "--agent",
            "opencode",
            "--session",
            "ses_1",
            "--pid",
            &pid,
        ];
        self.script("start.sh", &start).exits(0);
        self.script("save.sh", &["--session", "ses_1", "--agent", "opencode"])
            .exits(0);
        session
    }
}

/// The process of a session; ended when dropped.
struct Session(Child);

impl Drop for Session {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Names what differs from run to run: times, ids, process numbers, the scratch folder.
fn settle(json: &mut Value, folder: &str) {
    match json {
        Value::Object(fields) => {
            for (name, value) in fields {
                let varies = name.ends_with("At")
                    || name == "at"
                    || name.ends_with("Id") && name != "taskId" && name != "sessionId"
                    || [
                        "id",
                        "token",
                        "inode",
                        "device",
                        "worktree",
                        "pid",
                        "startTicks",
                        "seq",
                        "look",
                        "ageSeconds",
                    ]
                    .contains(&name.as_str());
                if varies && !value.is_null() {
                    *value = Value::from(format!("[{name}]"));
                } else {
                    settle(value, folder);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| settle(item, folder)),
        Value::String(text) => {
            let words: Vec<String> = text
                .replace(folder, "[folder]")
                .split(' ')
                .map(settled_word)
                .collect();
            *text = words.join(" ");
        }
        Value::Number(number) if number.as_u64().is_some_and(|number| number > 1_000_000) => {
            *json = Value::from("[number]");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn settled_word(word: &str) -> String {
    let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_hex = bare.len() >= 7 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_time = bare.starts_with("20") && bare.contains('T') && bare.ends_with('Z');
    let is_number = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
    let is_mixed = bare.len() >= 8
        && bare.bytes().any(|byte| byte.is_ascii_digit())
        && bare.bytes().any(|byte| byte.is_ascii_alphabetic())
        && bare
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if bare.is_empty() || !(is_hex || is_time || is_number || is_mixed) {
        return word.to_owned();
    }
    word.replace(bare, "[…]")
}

#[test]
fn nothing_unfinished() {
    let stage = Stage::new();
    insta::assert_snapshot!(stage.shown("inspect.sh", &[], 0));
    insta::assert_snapshot!("not_used", stage.shown("next.sh", &[], 4));
}

#[test]
fn in_use_then_compatible_then_stale() {
    let stage = Stage::new();
    let session = stage.task();
    insta::assert_snapshot!("in_use", stage.shown("inspect.sh", &[], 0));
    drop(session);
    insta::assert_snapshot!("compatible", stage.shown("inspect.sh", &[], 0));
    // Without a person's yes nothing is taken up, and the answer says what a person can run.
    insta::assert_snapshot!(
        "unconfirmed",
        stage.shown("resume.sh", &["fix-the-parser"], 3)
    );
    stage.scratch.write("a.txt", "three\n");
    insta::assert_snapshot!("stale", stage.shown("inspect.sh", &[], 0));
    let json = stage.script("inspect.sh", &[]).json();
    let token = json["data"]["candidates"][0]["token"].as_str();
    let token = token.unwrap_or_default().to_owned();
    assert!(!token.is_empty(), "{json:#}");
    stage
        .script(
            "resume.sh",
            &["fix-the-parser", "--confirm", &token, "--session", "new-1"],
        )
        .exits(0);
    insta::assert_snapshot!(
        "evaluate",
        stage.shown("evaluate.sh", &["--session", "new-1"], 0)
    );
}

#[test]
fn a_review_waits() {
    let stage = Stage::new();
    drop(stage.task());
    let request = [
        "request",
        "-- may I $(deploy)?",
        "--session",
        "ses_1",
        "--agent",
        "opencode",
    ];
    stage.script("review.sh", &request).exits(0);
    insta::assert_snapshot!("review", stage.shown("inspect.sh", &[], 0));
    insta::assert_snapshot!("review_list", stage.shown("review.sh", &["list"], 0));
}

#[test]
fn errors_come_through() {
    let stage = Stage::new();
    std::fs::remove_dir_all(stage.scratch.repo().join(".git")).unwrap();
    insta::assert_snapshot!("no_repository", stage.shown("inspect.sh", &[], 1));
    insta::assert_snapshot!("usage", stage.shown("inspect.sh", &["--no-such-option"], 2));
}

/// What somebody changed in the skill is theirs: an uninstall, however often, and an install leave it and say so.
#[test]
fn an_edited_file_of_the_skill_stays() {
    let stage = Stage::new();
    let scratch = &stage.scratch;
    let edited = scratch.repo().join(".claude/skills/takeup/SKILL.md");
    let script = scratch
        .repo()
        .join(".agents/skills/takeup/scripts/inspect.sh");
    for file in [&edited, &script] {
        let text = std::fs::read_to_string(file).unwrap();
        std::fs::write(file, format!("{text}# mine\n")).unwrap();
    }
    let (before, before_script) = (std::fs::read(&edited), std::fs::read(&script));
    for words in [
        &["agents", "uninstall", "skills", "--dry-run"][..],
        &["agents", "uninstall", "skills"],
        &["agents", "uninstall", "skills"],
        &["agents", "install", "skills"],
        &["agents", "uninstall", "skills"],
    ] {
        let told = scratch.takeup(words).exits(0).stdout;
        assert_eq!(told.matches("is left").count(), 2, "{words:?}: {told}");
        assert!(!told.contains("changed /"), "{words:?}: {told}");
        assert_eq!(std::fs::read(&edited).unwrap(), *before.as_ref().unwrap());
        assert_eq!(
            std::fs::read(&script).unwrap(),
            *before_script.as_ref().unwrap()
        );
    }
    let other = scratch.repo().join(".agents/skills/takeup/SKILL.md");
    assert!(!other.exists(), "what nobody edited is gone");
    for file in [&edited, &script] {
        std::fs::remove_file(file).unwrap();
    }
    scratch.takeup(&["agents", "uninstall", "skills"]).exits(0);
    assert!(!scratch.repo().join(".claude").exists());
    assert!(!scratch.repo().join(".agents").exists());
}

/// The same for a plugin that is ours as a whole.
#[test]
fn an_edited_plugin_stays() {
    let scratch = Scratch::new(env!("CARGO_BIN_EXE_takeup-under-test"));
    scratch.takeup(&["agents", "install", "opencode"]).exits(0);
    let plugin = scratch.repo().join(".opencode/plugins/takeup.js");
    let mut text = std::fs::read_to_string(&plugin).unwrap();
    text.push_str("// mine\n");
    std::fs::write(&plugin, &text).unwrap();
    for word in ["install", "uninstall", "uninstall"] {
        let told = scratch
            .takeup(&["agents", word, "opencode"])
            .exits(0)
            .stdout;
        assert!(told.contains("is left"), "{word}: {told}");
        assert_eq!(std::fs::read_to_string(&plugin).unwrap(), text, "{word}");
    }
}
