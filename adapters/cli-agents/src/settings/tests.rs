use takeup_core::files::write_atomic;

use super::*;
use crate::clients::CLIENTS;

fn client(id: &str) -> &'static Client {
    CLIENTS.iter().find(|client| client.id == id).unwrap()
}

fn apply(plan: &EditPlan) {
    for edit in &plan.edits {
        match &edit.after {
            Some(after) => {
                std::fs::create_dir_all(edit.path.parent().unwrap()).unwrap();
                write_atomic(&edit.path, after, edit.mode).unwrap();
            }
            None => std::fs::remove_file(&edit.path).unwrap(),
        }
    }
}

fn home(id: &str) -> (tempfile::TempDir, Env) {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join(client(id).home_folder)).unwrap();
    let env = Env::of([("HOME", home.path())], "/");
    (home, env)
}

#[test]
fn a_new_file_is_made_and_goes_again() {
    let mut seen = Vec::new();
    for client in CLIENTS {
        let (home, env) = home(client.id);
        let project = Scope::Project {
            root: home.path().join("repo"),
        };
        std::fs::create_dir_all(home.path().join("repo")).unwrap();
        for scope in [Scope::User, project] {
            assert_eq!(state(client, &env, &scope), IntegrationState::Absent);
            let plan = install(client, &env, &scope).unwrap();
            assert_eq!(plan.edits.len(), 1);
            apply(&plan);
            assert_eq!(state(client, &env, &scope), IntegrationState::Installed);
            assert!(install(client, &env, &scope).unwrap().edits.is_empty());
            let path = &plan.edits[0].path;
            if scope == Scope::User {
                let text = std::fs::read_to_string(path).unwrap();
                let below = path.strip_prefix(home.path()).unwrap().display();
                seen.push(format!("~/{below}\n{text}"));
            }
            apply(&uninstall(client, &env, &scope).unwrap());
            assert!(!path.exists());
            assert_eq!(state(client, &env, &scope), IntegrationState::Absent);
            assert!(uninstall(client, &env, &scope).unwrap().edits.is_empty());
        }
    }
    insta::assert_snapshot!(seen.join("\n"));
}

/// Hooks that the user's own switch keeps from running are not told as if they ran.
#[test]
fn hooks_that_are_switched_off_are_not_called_installed() {
    let (home, env) = home("claude-code");
    let client = client("claude-code");
    let path = home.path().join(".claude/settings.json");
    for (text, off) in [
        ("{\"disableAllHooks\": true}", true),
        ("{\"disableAllHooks\": false}", false),
    ] {
        write_atomic(&path, text.as_bytes(), 0o600).unwrap();
        assert_eq!(state(client, &env, &Scope::User), IntegrationState::Absent);
        apply(&install(client, &env, &Scope::User).unwrap());
        let found = state(client, &env, &Scope::User);
        assert_eq!(found == IntegrationState::Installed, !off, "{found:?}");
        assert_eq!(format!("{found:?}").contains("disableAllHooks"), off);
    }
}

const SETTINGS: &str = r#"{
  // theirs
  "model": "opus",
  "hooks": {
    "Stop": [
      { "hooks": [{ "type": "command", "command": "say done" }] }
    ]
  }
}
"#;

#[test]
fn hooks_of_others_stay_byte_for_byte() {
    let claude = client("claude-code");
    let (home, env) = home("claude-code");
    let path = home.path().join(".claude/settings.json");
    write_atomic(&path, SETTINGS.as_bytes(), 0o600).unwrap();
    apply(&install(claude, &env, &Scope::User).unwrap());
    let with = std::fs::read_to_string(&path).unwrap();
    insta::assert_snapshot!(with);
    apply(&uninstall(claude, &env, &Scope::User).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), SETTINGS);

    // A hook of an older version is replaced where it stands; ours in a shared group leaves the others.
    let older = with
        .replace(
            "git-takeup hook claude-code Stop 2>/dev/null || :",
            "git-takeup hook claude-code Stop --old",
        )
        .replace(
            "\"say done\" }",
            "\"say done\" }, { \"command\": \"git-takeup hook claude-code Stop x\" }",
        );
    write_atomic(&path, older.as_bytes(), 0o600).unwrap();
    assert!(matches!(
        state(claude, &env, &Scope::User),
        IntegrationState::Outdated { .. }
    ));
    apply(&install(claude, &env, &Scope::User).unwrap());
    assert_eq!(
        state(claude, &env, &Scope::User),
        IntegrationState::Installed
    );
    apply(&uninstall(claude, &env, &Scope::User).unwrap());
    let left = std::fs::read_to_string(&path).unwrap();
    assert!(
        !left.contains("git-takeup") && left.contains("say done"),
        "{left}"
    );
}

/// A file of that name that somebody else made keeps what is in it, and can be edited between the two.
#[test]
fn hooks_of_others_in_a_file_of_our_name_stay() {
    let copilot = client("copilot");
    let (home, env) = home("copilot");
    let path = home.path().join(".copilot/hooks/takeup.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let theirs = "{\n  \"version\": 1,\n  \"hooks\": {\n    \"agentStop\": [\n      {\n        \"type\": \"command\",\n        \"bash\": \"echo x\"\n      }\n    ]\n  }\n}\n";
    write_atomic(&path, theirs.as_bytes(), 0o600).unwrap();
    assert_eq!(state(copilot, &env, &Scope::User), IntegrationState::Absent);
    apply(&install(copilot, &env, &Scope::User).unwrap());
    assert_eq!(
        state(copilot, &env, &Scope::User),
        IntegrationState::Installed
    );
    let with = std::fs::read_to_string(&path).unwrap();
    let json: serde_json::Value = serde_json::from_str(&with).unwrap();
    assert_eq!(json["hooks"]["agentStop"][0]["bash"], "echo x");
    assert_eq!(
        json["hooks"]["agentStop"][1]["bash"],
        copilot.command("agentStop")
    );
    assert_eq!(json["hooks"]["agentStop"][1]["timeoutSec"], 10);
    assert_eq!(
        json["hooks"]["sessionStart"][0]["bash"],
        copilot.command("sessionStart")
    );
    write_atomic(&path, format!("{with}\n").as_bytes(), 0o600).unwrap();
    apply(&uninstall(copilot, &env, &Scope::User).unwrap());
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        format!("{theirs}\n")
    );
    // One that is no JSON is named and left.
    write_atomic(&path, b"theirs", 0o600).unwrap();
    assert!(install(copilot, &env, &Scope::User).is_err());
    assert!(
        uninstall(copilot, &env, &Scope::User)
            .unwrap()
            .edits
            .is_empty()
    );
}

#[test]
fn a_home_that_is_elsewhere_is_named() {
    let env = Env::of([("HOME", "/nowhere"), ("CODEX_HOME", "/elsewhere")], "/");
    let error = install(client("codex"), &env, &Scope::User).unwrap_err();
    assert!(error.to_string().contains("/elsewhere"), "{error}");
}

#[test]
fn settings_that_cannot_be_changed_are_named_and_left() {
    let claude = client("claude-code");
    for text in [
        "{ broken",
        "[]",
        "{\"hooks\": 7}",
        "{\"hooks\": {\"Stop\": {}}}",
    ] {
        let (home, env) = home("claude-code");
        let path = home.path().join(".claude/settings.json");
        write_atomic(&path, text.as_bytes(), 0o600).unwrap();
        let error = install(claude, &env, &Scope::User).unwrap_err();
        assert!(
            matches!(&error, AgentError::Damaged(issue) if issue.path == path),
            "{error}"
        );
    }
    let nowhere = Env::of([("HOME", "/nowhere")], "/");
    assert!(matches!(
        install(claude, &nowhere, &Scope::User),
        Err(AgentError::NotInstalled { .. })
    ));
    let (home, _) = home("copilot");
    std::os::unix::fs::symlink("/tmp", home.path().join(".github")).unwrap();
    let scope = Scope::Project {
        root: home.path().to_path_buf(),
    };
    assert!(matches!(
        install(client("copilot"), &nowhere, &scope),
        Err(AgentError::Damaged(_))
    ));
}

/// The command as a shell runs it: with the program gone, failing, or printing to its standard error.
#[test]
fn the_command_always_ends_well() {
    for client in CLIENTS {
        assert!(takeup_core::ids::AgentId::new(client.id).is_ok());
        let folder = tempfile::tempdir().unwrap();
        let command = client.command(client.events[0].0);
        let run = || {
            let output = std::process::Command::new("/bin/sh")
                .args(["-c", &command])
                .env("PATH", folder.path())
                .output()
                .unwrap();
            assert!(output.status.success());
            assert!(output.stderr.is_empty());
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(run(), "");
        let program = folder.path().join("git-takeup");
        write_atomic(
            &program,
            b"#!/bin/sh\necho out \"$@\"\necho err >&2\nexit 3\n",
            0o755,
        )
        .unwrap();
        assert_eq!(
            run(),
            format!("out hook {} {}\n", client.id, client.events[0].0)
        );
    }
}
