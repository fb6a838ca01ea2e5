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

fn removal(client: &Client, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
    uninstall(client, &AgentId::new(client.id).unwrap(), env, scope)
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
            apply(&removal(client, &env, &scope).unwrap());
            assert!(!path.exists());
            assert_eq!(state(client, &env, &scope), IntegrationState::Absent);
            assert!(removal(client, &env, &scope).unwrap().edits.is_empty());
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
    apply(&removal(claude, &env, &Scope::User).unwrap());
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
    apply(&removal(claude, &env, &Scope::User).unwrap());
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
    apply(&removal(copilot, &env, &Scope::User).unwrap());
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        format!("{theirs}\n")
    );
    // One that is no JSON is named and left.
    write_atomic(&path, b"theirs", 0o600).unwrap();
    assert!(install(copilot, &env, &Scope::User).is_err());
    assert!(
        removal(copilot, &env, &Scope::User)
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
        assert!(AgentId::new(client.id).is_ok());
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

/// What a command of the user's own holds beside a call of ours is theirs: it is neither replaced nor taken out.
#[test]
fn a_call_inside_another_command_is_left_and_named() {
    let claude = client("claude-code");
    for own in [
        "notify-send done; git-takeup hook claude-code Stop",
        "git-takeup hook claude-code Stop && notify-send done",
        "PATH=/opt/tools:$PATH git-takeup hook claude-code Stop || :",
        "x=$(git-takeup hook claude-code Stop) true",
        "git-takeup hook claude-code Stop > log",
        "sh -c 'git-takeup hook claude-code Stop'",
    ] {
        let (home, env) = home("claude-code");
        let path = home.path().join(".claude/settings.json");
        let text = serde_json::json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": own}]}]}});
        write_atomic(&path, text.to_string().as_bytes(), 0o600).unwrap();
        // Alone, it is no installation, and nothing of it is taken out.
        assert_eq!(
            state(claude, &env, &Scope::User),
            IntegrationState::Absent,
            "{own}"
        );
        let plan = removal(claude, &env, &Scope::User).unwrap();
        assert!(plan.edits.is_empty(), "{own}");
        assert!(plan.notes[0].contains("in Stop"), "{:?}", plan.notes);
        let plan = install(claude, &env, &Scope::User).unwrap();
        assert!(plan.notes[0].contains("in Stop"), "{:?}", plan.notes);
        apply(&plan);
        let json: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let stop = serde_json::json!([{"hooks": [{"type": "command", "command": own}]}]);
        assert_eq!(json["hooks"]["Stop"], stop);
        assert_eq!(
            state(claude, &env, &Scope::User),
            IntegrationState::Installed
        );
        apply(&removal(claude, &env, &Scope::User).unwrap());
        let left: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(left, text, "{own}");
    }
    // What only speaks of us, or of somebody else's program, is nothing of ours.
    for other in [
        "my-git-takeup hook claude-code Stop",
        "git-takeup hook claude-codes x",
    ] {
        assert_eq!(claude.call("Stop", other), Call::Other, "{other}");
    }
}

/// Without PATH a hook needs the path of the program: one that is there stays, one that is gone does not.
#[test]
fn the_path_that_somebody_wrote_before_the_program_stays() {
    let claude = client("claude-code");
    let (home, env) = home("claude-code");
    let path = home.path().join(".claude/settings.json");
    let tools = home.path().join("my tools");
    std::fs::create_dir_all(&tools).unwrap();
    let program = tools.join("git-takeup");
    write_atomic(&program, b"", 0o755).unwrap();
    apply(&install(claude, &env, &Scope::User).unwrap());
    let bare = std::fs::read_to_string(&path).unwrap();
    for named in [
        format!("'{}'", program.display()),
        "~/bin/git-takeup".to_owned(),
    ] {
        let text = bare.replace("git-takeup hook", &format!("{named} hook"));
        write_atomic(&path, text.as_bytes(), 0o600).unwrap();
        assert!(
            install(claude, &env, &Scope::User)
                .unwrap()
                .edits
                .is_empty()
        );
        assert_eq!(
            state(claude, &env, &Scope::User),
            IntegrationState::Installed
        );
        // An older form is brought up to date, by the same program.
        let older = text.replace(" 2>/dev/null || :", "");
        write_atomic(&path, older.as_bytes(), 0o600).unwrap();
        apply(&install(claude, &env, &Scope::User).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        apply(&removal(claude, &env, &Scope::User).unwrap());
        assert!(!path.exists());
    }
    let gone = bare.replace("git-takeup hook", "/gone/git-takeup hook");
    write_atomic(&path, gone.as_bytes(), 0o600).unwrap();
    let said = format!("{:?}", state(claude, &env, &Scope::User));
    assert!(
        said.contains("/gone/git-takeup, which is not there"),
        "{said}"
    );
    apply(&install(claude, &env, &Scope::User).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), bare);
}

/// Hooks that call a program which is nowhere record nothing, and are not told as if they did.
#[test]
fn a_program_that_is_not_on_path_is_told() {
    let claude = client("claude-code");
    let (home, _) = home("claude-code");
    let bin = home.path().join("bin");
    let env = Env::of([("HOME", home.path()), ("PATH", &bin)], "/");
    let plan = install(claude, &env, &Scope::User).unwrap();
    assert!(plan.notes[0].contains("not on PATH"), "{:?}", plan.notes);
    apply(&plan);
    let said = format!("{:?}", state(claude, &env, &Scope::User));
    assert!(said.contains("not on PATH"), "{said}");
    std::fs::create_dir_all(&bin).unwrap();
    write_atomic(&bin.join("git-takeup"), b"", 0o755).unwrap();
    assert_eq!(
        state(claude, &env, &Scope::User),
        IntegrationState::Installed
    );
    assert!(
        install(claude, &env, &Scope::User)
            .unwrap()
            .notes
            .is_empty()
    );
}

/// A folder of dotfiles: what is not there yet has the same name before and after it is made.
#[test]
fn a_folder_behind_a_link_has_one_name() {
    let claude = client("claude-code");
    let home = tempfile::tempdir().unwrap();
    let top = home.path().canonicalize().unwrap();
    let env = Env::of([("HOME", &top), ("TAKEUP_HOME", &top.join("own"))], "/");
    std::fs::create_dir_all(top.join("dot/claude")).unwrap();
    std::os::unix::fs::symlink(top.join("dot/claude"), top.join(".claude")).unwrap();
    let agent = AgentId::new(claude.id).unwrap();
    let plan = install(claude, &env, &Scope::User).unwrap();
    takeup_core::integration::install(&env, &agent, &Scope::User, &plan).unwrap();
    assert_eq!(plan.edits[0].path, top.join("dot/claude/settings.json"));
    let plan = removal(claude, &env, &Scope::User).unwrap();
    let done = takeup_core::integration::uninstall(&env, &agent, &Scope::User, &plan).unwrap();
    assert_eq!(done.changed, [top.join("dot/claude/settings.json")]);
    assert!(!done.changed[0].exists() && top.join("dot/claude").is_dir());
}

/// Clients read the last of two equal keys, so an edit of the first is seen by nobody.
#[test]
fn a_key_that_stands_twice_is_named_and_left() {
    let claude = client("claude-code");
    for text in [
        "{\"hooks\":{},\"hooks\":{\"Stop\":[]}}",
        "{\"hooks\":{\"Stop\":[],\"Stop\":[]}}",
    ] {
        let (home, env) = home("claude-code");
        let path = home.path().join(".claude/settings.json");
        write_atomic(&path, text.as_bytes(), 0o600).unwrap();
        let error = install(claude, &env, &Scope::User).unwrap_err().to_string();
        assert!(error.contains("more than once"), "{error}");
        assert_eq!(state(claude, &env, &Scope::User), IntegrationState::Absent);
        // With hooks of ours in one of them, it is said; and they can be taken out of both.
        let ours = r#"[{"hooks":[{"command":"git-takeup hook claude-code Stop"}]}]"#;
        write_atomic(&path, text.replace("[]", ours).as_bytes(), 0o600).unwrap();
        let said = format!("{:?}", state(claude, &env, &Scope::User));
        assert!(said.contains("more than once"), "{said}");
        apply(&removal(claude, &env, &Scope::User).unwrap());
        let left = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(!left.contains("git-takeup"), "{left}");
    }
}

/// A switch of the project, or the user's own that the project leaves alone.
#[test]
fn a_switch_elsewhere_keeps_the_hooks_of_a_project_from_running() {
    for (id, on, off, local) in [
        (
            "claude-code",
            "{\"disableAllHooks\": false}",
            "{\"disableAllHooks\": true}",
            ".claude/settings.local.json",
        ),
        (
            "gemini",
            "{\"hooksConfig\": {\"enabled\": true}}",
            "{\"hooksConfig\": {\"enabled\": false}}",
            ".gemini/settings.json",
        ),
    ] {
        let client = client(id);
        let (home, env) = home(id);
        let root = home.path().join("repo");
        std::fs::create_dir_all(root.join(local).parent().unwrap()).unwrap();
        let scope = Scope::Project { root: root.clone() };
        let user = home.path().join(client.home_folder).join("settings.json");
        let is_off =
            |said: IntegrationState| format!("{said:?}").contains("none of its hooks runs");
        for (of_user, of_project, expected) in [
            (off, None, true),
            (off, Some(on), false),
            (on, Some(off), true),
        ] {
            write_atomic(&user, of_user.as_bytes(), 0o600).unwrap();
            drop(std::fs::remove_file(root.join(local)));
            if let Some(text) = of_project {
                write_atomic(&root.join(local), text.as_bytes(), 0o600).unwrap();
            }
            apply(&install(client, &env, &scope).unwrap());
            assert_eq!(
                is_off(state(client, &env, &scope)),
                expected,
                "{id} {of_user} {of_project:?}"
            );
            apply(&install(client, &env, &Scope::User).unwrap());
            assert_eq!(is_off(state(client, &env, &Scope::User)), of_user == off);
        }
    }
}

/// The same hook twice would record twice; in groups for different things it is none too many.
#[test]
fn a_second_hook_of_ours_goes() {
    let claude = client("claude-code");
    let (home, env) = home("claude-code");
    let path = home.path().join(".claude/settings.json");
    apply(&install(claude, &env, &Scope::User).unwrap());
    let mut json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let first = json["hooks"]["SessionStart"][0].clone();
    let mut matched = first.clone();
    matched["matcher"] = "resume".into();
    json["hooks"]["SessionStart"] = serde_json::json!([first, first, matched]);
    write_atomic(&path, json.to_string().as_bytes(), 0o600).unwrap();
    let said = format!("{:?}", state(claude, &env, &Scope::User));
    assert!(said.contains("there twice"), "{said}");
    apply(&install(claude, &env, &Scope::User).unwrap());
    let after: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(
        after["hooks"]["SessionStart"],
        serde_json::json!([first, matched])
    );
    assert_eq!(
        state(claude, &env, &Scope::User),
        IntegrationState::Installed
    );
}

/// A file that was there before is there afterwards, whatever was typed into it in between.
#[test]
fn a_file_that_was_there_before_stays_there() {
    let claude = client("claude-code");
    for (text, left) in [
        ("", ""),
        ("\n", "\n"),
        ("{}\n", "{}\n"),
        ("{\"hooks\":{\"Stop\":[]}}", "{\"hooks\":{\"Stop\":[]}}"),
    ] {
        let (home, env) = home("claude-code");
        let path = home.path().join(".claude/settings.json");
        write_atomic(&path, text.as_bytes(), 0o600).unwrap();
        let agent = AgentId::new(claude.id).unwrap();
        let plan = install(claude, &env, &Scope::User).unwrap();
        takeup_core::integration::install(&env, &agent, &Scope::User, &plan).unwrap();
        let mut with = std::fs::read(&path).unwrap();
        with.push(b'\n');
        write_atomic(&path, &with, 0o600).unwrap();
        let plan = removal(claude, &env, &Scope::User).unwrap();
        takeup_core::integration::uninstall(&env, &agent, &Scope::User, &plan).unwrap();
        let now = std::fs::read_to_string(&path).unwrap();
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(bare(&now), bare(left), "{text:?}");
        assert_eq!(now.is_empty(), left.is_empty());
    }
}
