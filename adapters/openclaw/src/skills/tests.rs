use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::*;

/// The kind of place that most tests are about; the folder itself is said beside it.
fn project() -> Scope {
    Scope::Project { root: "/".into() }
}

fn apply(plan: &EditPlan) {
    for edit in &plan.edits {
        match &edit.after {
            Some(after) => put_file(&edit.path, after, edit.mode),
            None => std::fs::remove_file(&edit.path).unwrap(),
        }
    }
}

/// Writes without a flush: many small files, and no power is lost here.
fn put_file(path: &Path, bytes: &[u8], mode: u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = File::create(path).unwrap();
    file.write_all(bytes).unwrap();
    file.set_permissions(Permissions::from_mode(mode)).unwrap();
}

/// The copy in this repository is what the source says, byte for byte: it is the snapshot of the skill. With `TAKEUP_UPDATE` set it is written anew.
#[test]
fn the_copy_in_the_repository_is_up_to_date() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = top.join("skills").join(SKILL);
    if !top.join("xtask").exists() {
        println!("skipped: this package was taken out of its repository");
        return;
    }
    for (name, text, runs) in files() {
        let path = folder.join(&name);
        if std::env::var_os("TAKEUP_UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            put_file(&path, text.as_bytes(), if runs { 0o755 } else { 0o644 });
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == text,
            "{name} is out of date: run with TAKEUP_UPDATE=1"
        );
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o111 != 0, runs, "{name}");
    }
    let known = files().len();
    let there = std::fs::read_dir(folder.join("scripts")).unwrap().count();
    assert_eq!(there + 1, known, "a file too many in {}", folder.display());
}

/// The rules of the skill format and of its hub.
#[test]
fn the_head_follows_the_rules() {
    let (_, text, _) = files().remove(0);
    let (head, body) = text
        .strip_prefix("---\n")
        .unwrap()
        .split_once("\n---\n")
        .unwrap();
    let mut keys = Vec::new();
    for line in head.lines() {
        let (key, value) = line.split_once(": ").unwrap();
        keys.push(key);
        match key {
            "name" => assert_eq!(value, SKILL),
            "description" => {
                assert!(value.len() < 160, "{} bytes", value.len());
                assert!(!value.contains(['<', '>', ':', '#', '"']));
            }
            "metadata" => {
                let json: serde_json::Value = serde_json::from_str(value).unwrap();
                let ours = &json["openclaw"];
                assert_eq!(
                    ours["requires"]["bins"],
                    serde_json::json!(["git", "git-takeup"])
                );
                for variable in ours["envVars"].as_array().unwrap() {
                    assert_eq!(variable["required"], false);
                }
            }
            _ => {}
        }
    }
    assert_eq!(
        keys,
        ["name", "description", "license", "homepage", "metadata"]
    );
    assert!(text.len() < 20_000);
    assert!(!body.contains("@@") && !body.contains("{baseDir}"));
    for (name, _, runs) in files() {
        let extension = Path::new(&name).extension();
        assert!(name == "SKILL.md" || runs && extension == Some("sh".as_ref()));
    }
}

#[test]
fn shellcheck_finds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    apply(&plan(folder.path(), &project()).unwrap());
    let scripts = folder.path().join(REPOSITORY_FOLDERS[0]).join("scripts");
    let paths: Vec<PathBuf> = std::fs::read_dir(scripts)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let Ok(output) = Command::new("shellcheck")
        .arg("--shell=sh")
        .args(paths)
        .output()
    else {
        println!("skipped: shellcheck is not installed");
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// The scripts beside a stand-in for the program that prints its arguments, each ended by a zero byte.
struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        apply(&plan(folder.path(), &project()).unwrap());
        let stand_in = b"#!/bin/sh\nprintf '%s\\0' \"$@\"\nexit \"$STATUS\"\n";
        put_file(&folder.path().join("bin/git-takeup"), stand_in, 0o755);
        Self { folder }
    }

    fn run(&self, script: &str, arguments: &[&str], status: i32) -> (Vec<String>, i32) {
        let bin = self.folder.path().join("bin");
        let scripts = self
            .folder
            .path()
            .join(REPOSITORY_FOLDERS[0])
            .join("scripts");
        let output = Command::new(scripts.join(format!("{script}.sh")))
            .args(arguments)
            .current_dir(self.folder.path())
            .env(
                "PATH",
                format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()),
            )
            .env("STATUS", status.to_string())
            .output()
            .unwrap();
        let words = output.stdout.split(|byte| *byte == 0);
        let mut words: Vec<String> = words
            .map(|word| {
                std::ffi::OsStr::from_bytes(word)
                    .to_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        assert_eq!(words.pop().as_deref(), Some(""));
        (words, output.status.code().unwrap())
    }
}

#[test]
fn arguments_reach_the_program_as_they_are() {
    let stage = Stage::new();
    let odd = [
        "it's \"quoted\"",
        "two\nlines",
        "$(touch hacked) `touch hacked` $HOME",
        "--help",
        "-",
        "修复 ü \u{1f9f6}",
        "",
        "* ? [a]",
        "a\\b",
        "; rm -r .",
    ];
    for text in odd {
        let expected = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            stage.run("start", &[text, "--check", text], 0),
            (
                expected(&["start", "--json", "--check", text, "--", text]),
                0
            )
        );
        assert_eq!(
            stage.run("resume", &[text], 3),
            (
                expected(&["resume", "--json", &format!("--task={text}")]),
                3
            )
        );
        assert_eq!(
            stage.run("bg-run", &["printf", text, "-x"], 0),
            (
                expected(&["bg", "run", "--json", "--", "printf", text, "-x"]),
                0
            )
        );
        assert_eq!(
            stage.run("review", &["request", text, "--title", text], 0),
            (
                expected(&["review", "request", "--json", "--title", text, "--", text]),
                0
            )
        );
        assert_eq!(
            stage.run("inspect", &["--session", text], 1),
            (expected(&["inspect", "--json", "--session", text]), 1)
        );
    }
    let (got, _) = stage.run("review", &["list"], 0);
    assert_eq!(got, ["review", "list", "--json"]);
    for (script, words) in [
        ("save", &["save"][..]),
        ("evaluate", &["evaluate"]),
        ("next", &["next"]),
        ("handover", &["handover"]),
        ("bg-list", &["bg", "list"]),
    ] {
        let (got, _) = stage.run(script, &[], 0);
        assert_eq!(got, [words, &["--json"]].concat());
    }
}

#[test]
fn a_script_without_the_program_or_its_arguments_answers_in_json() {
    let folder = tempfile::tempdir().unwrap();
    apply(&plan(folder.path(), &project()).unwrap());
    let scripts = folder.path().join(REPOSITORY_FOLDERS[1]).join("scripts");
    let bin = folder.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    put_file(&bin.join("git-takeup"), b"#!/bin/sh\n", 0o755);
    for script in SCRIPTS {
        let ask = |path: &Path| {
            let output = Command::new("/bin/sh")
                .arg(scripts.join(format!("{}.sh", script.name)))
                .env("PATH", path)
                .output()
                .unwrap();
            let json: Result<serde_json::Value, _> = serde_json::from_slice(&output.stdout);
            (json, output.status.code().unwrap())
        };
        let (json, status) = ask(folder.path());
        assert_eq!(json.unwrap()["error"]["code"], "not-installed");
        assert_eq!(status, 1);
        if script.plain > 0 {
            let (json, status) = ask(&bin);
            assert_eq!(json.unwrap()["error"]["code"], "usage");
            assert_eq!(status, 2);
        }
    }
}

#[test]
fn putting_in_and_taking_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    assert_eq!(
        state(root, &project(), &|_| false),
        IntegrationState::Absent
    );
    let first = plan(root, &project()).unwrap();
    assert_eq!(first.edits.len(), 2 * files().len());
    assert_eq!(
        state(root, &project(), &|_| false),
        IntegrationState::Absent
    );
    apply(&first);
    assert_eq!(
        state(root, &project(), &|_| false),
        IntegrationState::Installed
    );
    assert!(plan(root, &project()).unwrap().edits.is_empty());

    let edited = root.join(".agents/skills/takeup/SKILL.md");
    put_file(&edited, b"my own words", 0o644);
    let older = root.join(".claude/skills/takeup/scripts/next.sh");
    put_file(&older, format!("#!/bin/sh\n{MARK}\nold").as_bytes(), 0o755);
    assert!(matches!(
        state(root, &project(), &|_| false),
        IntegrationState::Outdated { .. }
    ));
    let out = unplan(root, &project()).unwrap();
    assert_eq!(out.notes.len(), 1);
    apply(&out);
    assert!(edited.exists() && !older.exists());
    std::fs::remove_file(&edited).unwrap();
    assert_eq!(
        state(root, &project(), &|_| false),
        IntegrationState::Absent
    );
}

#[test]
fn nothing_is_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join(".claude")).unwrap();
    assert!(
        matches!(plan(folder.path(), &project()), Err(AgentError::Damaged(issue)) if issue.kind == IssueKind::Symlink)
    );
}

#[test]
fn two_names_of_one_folder_are_one_copy() {
    for (link, target) in [
        (".claude/skills", "../.agents/skills"),
        (".claude", ".agents"),
        (".agents", ".claude"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for folder in match link {
            ".agents" => &[".claude/skills"][..],
            ".claude" => &[".agents/skills"],
            _ => &[".agents/skills", ".claude"],
        } {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        assert_eq!(
            state(root, &project(), &|_| false),
            IntegrationState::Absent,
            "{link}"
        );
        let first = plan(root, &project()).unwrap();
        assert_eq!(first.edits.len(), files().len(), "{link}");
        apply(&first);
        assert_eq!(
            state(root, &project(), &|_| false),
            IntegrationState::Installed,
            "{link}"
        );
        for name in REPOSITORY_FOLDERS {
            assert!(root.join(name).join("SKILL.md").exists());
        }
        apply(&unplan(root, &project()).unwrap());
        assert_eq!(
            state(root, &project(), &|_| false),
            IntegrationState::Absent,
            "{link}"
        );
    }
}

#[test]
fn what_the_user_wrote_is_kept_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("repo");
    let own = root.join(".claude/skills/takeup/SKILL.md");
    put_file(&own, b"---\nname: other\n---\nmine\n", 0o644);
    let env = Env::of([("TAKEUP_HOME", folder.path().join("state"))], "/");
    let scope = Scope::Project { root: root.clone() };
    let plan = Skills.install(&env, &scope).unwrap();
    assert_eq!(plan.notes.len(), 1, "{:?}", plan.notes);
    takeup_core::integration::install(&env, &Skills.id(), &scope, &plan).unwrap();
    assert!(std::fs::read_to_string(&own).unwrap().contains("mine"));

    // Ours, and changed by the user since.
    let ours = root.join(".agents/skills/takeup/SKILL.md");
    let mut text = std::fs::read_to_string(&ours).unwrap();
    text.push_str("and mine\n");
    put_file(&ours, text.as_bytes(), 0o644);
    for plan in [
        Skills.install(&env, &scope).unwrap(),
        Skills.uninstall(&env, &scope).unwrap(),
    ] {
        assert!(plan.edits.iter().all(|edit| edit.path != ours));
        let said = plan.notes.iter().any(|note| note.contains("was edited"));
        assert!(said, "{:?}", plan.notes);
    }
    let plan = Skills.uninstall(&env, &scope).unwrap();
    takeup_core::integration::uninstall(&env, &Skills.id(), &scope, &plan).unwrap();
    assert_eq!(std::fs::read_to_string(&ours).unwrap(), text);
}

#[test]
fn in_the_user_s_home_folders_may_be_links() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let kept = folder.path().join("dotfiles/claude");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::create_dir_all(&kept).unwrap();
    std::os::unix::fs::symlink(&kept, home.join(".claude")).unwrap();
    let first = plan(&home, &Scope::User).unwrap();
    assert_eq!(first.edits.len(), 2 * files().len());
    apply(&first);
    assert!(kept.join("skills/takeup/SKILL.md").exists());
    assert_eq!(
        state(&home, &Scope::User, &|_| false),
        IntegrationState::Installed
    );
    apply(&unplan(&home, &Scope::User).unwrap());
    assert_eq!(
        state(&home, &Scope::User, &|_| false),
        IntegrationState::Absent
    );
}
