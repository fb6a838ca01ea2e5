use super::*;

fn home(files: &[(&str, &str)]) -> (tempfile::TempDir, Home, Env) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        takeup_core::files::write_atomic(&path, text.as_bytes(), 0o600).unwrap();
    }
    let env = Env::of([("HOME", folder.path())], "/");
    let home = Home::at(folder.path());
    (folder, home, env)
}

/// Does what the caller of a plan does.
fn apply(plan: &EditPlan) {
    for edit in &plan.edits {
        let there = std::fs::read(&edit.path).ok();
        assert_eq!(there, edit.before, "{}", edit.path.display());
        match &edit.after {
            Some(after) => {
                std::fs::create_dir_all(edit.path.parent().unwrap()).unwrap();
                takeup_core::files::write_atomic(&edit.path, after, edit.mode).unwrap();
            }
            None => std::fs::remove_file(&edit.path).unwrap(),
        }
    }
}

fn text(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.root().join(name)).unwrap()
}

#[test]
fn comments_and_hooks_of_others_stay_and_still_run() {
    let config = "# mine\n[display]\nexternal_sessions = false # keep\n\n[hooks]\n# tell me\nturn_end = \"~/bin/notify --sound 'a b'\" # loud\nsession_start = \"\"\npost_tool = [\"log-tool\"]\nturn_start = \"other\"\n";
    let (_folder, home, env) = home(&[("config.toml", config)]);
    apply(&install(&home, &env, &Scope::User).unwrap());
    let after = text(&home, "config.toml");
    for kept in [
        "# mine\n",
        "external_sessions = false # keep",
        "# tell me\n",
        " # loud",
        "turn_start = \"other\"",
    ] {
        assert!(after.contains(kept), "{kept}\n{after}");
    }
    let document: DocumentMut = after.parse().unwrap();
    let hook = |event: &str| {
        document["hooks"][event]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(hook("session_start"), "git-takeup hook jcode session_start");
    assert_eq!(hook("session_end"), "git-takeup hook jcode session_end");
    // jcode splits the line as a shell would, and runs the words.
    let words = shlex::split(&hook("turn_end")).unwrap();
    let notify = format!("{}/bin/notify", home.root().display());
    assert_eq!(
        words,
        [
            "sh",
            "-c",
            "git-takeup hook jcode turn_end; exec \"$@\"",
            "takeup",
            &notify,
            "--sound",
            "a b"
        ]
    );
    let list = document["hooks"]["post_tool"].as_array().unwrap();
    let list: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    assert_eq!(list, ["log-tool", "git-takeup hook jcode post_tool"]);
    assert_eq!(
        state(&home, &env, &Scope::User),
        IntegrationState::Installed
    );
    assert!(
        install(&home, &env, &Scope::User).unwrap().edits.is_empty(),
        "twice equals once"
    );
}

#[test]
fn a_chained_hook_runs_both_commands() {
    let (folder, home, env) = home(&[("config.toml", "[hooks]\nturn_end = \"touch theirs\"\n")]);
    apply(&install(&home, &env, &Scope::User).unwrap());
    let document: DocumentMut = text(&home, "config.toml").parse().unwrap();
    let words = shlex::split(document["hooks"]["turn_end"].as_str().unwrap()).unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let ours = bin.join("git-takeup");
    takeup_core::files::write_atomic(&ours, b"#!/bin/sh\necho \"$@\" > ours; exit 3\n", 0o755)
        .unwrap();
    let path = format!(
        "{}:{}",
        bin.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let status = std::process::Command::new(&words[0])
        .args(&words[1..])
        .env("PATH", path)
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(status.success(), "theirs decides");
    assert_eq!(text(&home, "ours"), "hook jcode turn_end\n");
    assert_eq!(text(&home, "theirs"), "");
}

#[test]
fn removal_takes_out_only_what_is_ours() {
    let config = "[hooks]\nturn_end = \"notify\"\n";
    let mcp = "{\n  \"servers\": {\n    \"files\": { \"command\": \"files\", \"env\": { \"TOKEN\": \"x\" } }\n  }\n}\n";
    let (_folder, home, env) = home(&[("config.toml", config), ("mcp.json", mcp)]);
    apply(&install(&home, &env, &Scope::User).unwrap());
    let servers: serde_json::Value = serde_json::from_str(&text(&home, "mcp.json")).unwrap();
    assert_eq!(servers["servers"]["takeup"]["command"], "git-takeup");
    assert_eq!(
        servers["servers"]["takeup"]["args"],
        serde_json::json!(["mcp"])
    );
    assert_eq!(servers["servers"]["files"]["env"]["TOKEN"], "x");
    assert!(text(&home, "skills/takeup/SKILL.md").starts_with("---\nname: takeup\n"));
    // Edited since: the caller cannot put the old bytes back.
    let edited = format!("# added later\n{}", text(&home, "config.toml"));
    takeup_core::files::write_atomic(&home.root().join("config.toml"), edited.as_bytes(), 0o600)
        .unwrap();
    apply(&uninstall(&home, &env, &Scope::User).unwrap());
    assert_eq!(
        text(&home, "config.toml"),
        format!("# added later\n{config}")
    );
    let servers: serde_json::Value = serde_json::from_str(&text(&home, "mcp.json")).unwrap();
    let before: serde_json::Value = serde_json::from_str(mcp).unwrap();
    assert_eq!(servers, before);
    assert!(!home.root().join("skills/takeup/SKILL.md").exists());
    assert_eq!(state(&home, &env, &Scope::User), IntegrationState::Absent);
}

#[test]
fn files_that_cannot_be_read_are_not_changed() {
    for (name, text) in [
        ("config.toml", "[hooks\n"),
        ("config.toml", "hooks = 3\n"),
        ("mcp.json", "{ \"servers\": 3 }"),
        ("mcp.json", "{,}"),
    ] {
        let (_folder, home, env) = home(&[(name, text)]);
        assert!(install(&home, &env, &Scope::User).is_err(), "{text}");
        assert_eq!(
            std::fs::read_to_string(home.root().join(name)).unwrap(),
            text
        );
        assert!(matches!(
            state(&home, &env, &Scope::User),
            IntegrationState::Outdated { .. }
        ));
    }
}

#[test]
fn an_empty_home_is_integrated_and_left_as_it_was() {
    let (_folder, home, env) = home(&[]);
    let plan = install(&home, &env, &Scope::User).unwrap();
    assert!(
        plan.edits
            .iter()
            .all(|edit| edit.before.is_none() && edit.mode == 0o600)
    );
    apply(&plan);
    apply(&uninstall(&home, &env, &Scope::User).unwrap());
    assert_eq!(state(&home, &env, &Scope::User), IntegrationState::Absent);
    let project = Scope::Project {
        root: "/repo".into(),
    };
    assert!(install(&home, &env, &project).is_err());
}

#[test]
fn an_import_of_other_settings_is_not_prevented() {
    let (folder, home, env) = home(&[]);
    std::fs::create_dir_all(folder.path().join(".codex")).unwrap();
    takeup_core::files::write_atomic(&folder.path().join(".codex/config.toml"), b"", 0o600)
        .unwrap();
    let plan = install(&home, &env, &Scope::User).unwrap();
    assert!(
        plan.edits
            .iter()
            .all(|edit| !edit.path.ends_with("mcp.json"))
    );
    assert!(plan.notes.iter().any(|note| note.contains("mcp.json")));
}

#[test]
fn the_ends_of_lines_and_the_mark_stay() {
    for config in [
        "# mine\r\n[display]\r\nexternal_sessions = false\r\n",
        "\u{feff}[hooks]\nturn_start = \"other\"\n",
    ] {
        let (_folder, home, env) = home(&[("config.toml", config)]);
        apply(&install(&home, &env, &Scope::User).unwrap());
        let with = text(&home, "config.toml");
        assert!(
            with.contains("git-takeup")
                && with.starts_with('\u{feff}') == config.starts_with('\u{feff}'),
            "{with:?}"
        );
        let bare = with.matches('\n').count() - with.matches("\r\n").count();
        assert!(!config.contains('\r') || bare == 0, "{with:?}");
        apply(&uninstall(&home, &env, &Scope::User).unwrap());
        let left = text(&home, "config.toml");
        assert!(left.starts_with(config), "{left:?}");
        assert_eq!(left.contains("\r\n"), config.contains('\r'));
    }
}

/// An empty file of servers is one without any, and no damage.
#[test]
fn an_empty_file_of_servers_is_none() {
    for empty in ["", "\n"] {
        let (_folder, home, env) = home(&[("mcp.json", empty)]);
        assert_eq!(state(&home, &env, &Scope::User), IntegrationState::Absent);
        apply(&install(&home, &env, &Scope::User).unwrap());
        assert_eq!(
            state(&home, &env, &Scope::User),
            IntegrationState::Installed
        );
        apply(&uninstall(&home, &env, &Scope::User).unwrap());
        assert_eq!(state(&home, &env, &Scope::User), IntegrationState::Absent);
    }
}

/// A skill of that name that somebody else made is neither replaced nor removed.
#[test]
fn a_skill_of_somebody_else_is_left() {
    let (_folder, home, env) = home(&[]);
    let skill = home.path(Part::Skill);
    std::fs::create_dir_all(skill.parent().unwrap()).unwrap();
    takeup_core::files::write_atomic(&skill, b"mine", 0o600).unwrap();
    for plan in [
        install(&home, &env, &Scope::User).unwrap(),
        uninstall(&home, &env, &Scope::User).unwrap(),
    ] {
        assert!(plan.edits.iter().all(|edit| edit.path != skill));
        assert!(plan.notes.iter().any(|note| note.contains("SKILL.md")));
    }
}

/// A folder of dotfiles: the files behind the links are edited, and the links stay.
#[test]
fn settings_behind_a_link_are_edited_where_they_lie() {
    let (folder, home, env) = home(&[
        ("dot/config.toml", "# mine\n"),
        ("dot/mcp.json", "{\n  \"mcpServers\": {}\n}\n"),
    ]);
    let dot = folder.path().canonicalize().unwrap().join("dot");
    for name in ["config.toml", "mcp.json"] {
        std::os::unix::fs::symlink(dot.join(name), home.root().join(name)).unwrap();
    }
    let plan = install(&home, &env, &Scope::User).unwrap();
    assert!(
        plan.edits
            .iter()
            .any(|edit| edit.path == dot.join("config.toml"))
    );
    apply(&plan);
    assert!(home.root().join("config.toml").is_symlink());
    assert!(text(&home, "dot/config.toml").contains("git-takeup"));
    assert_eq!(
        state(&home, &env, &Scope::User),
        IntegrationState::Installed
    );
    let unreached = Env::of([("HOME", folder.path()), ("PATH", &dot)], "/");
    let said = format!("{:?}", state(&home, &unreached, &Scope::User));
    assert!(said.contains("not on PATH"), "{said}");
    apply(&uninstall(&home, &env, &Scope::User).unwrap());
    assert!(!text(&home, "dot/config.toml").contains("git-takeup"));
    assert!(!text(&home, "dot/mcp.json").contains("git-takeup"));
    let twice = "{\"mcpServers\":{},\"mcpServers\":{}}";
    takeup_core::files::write_atomic(&dot.join("mcp.json"), twice.as_bytes(), 0o600).unwrap();
    let error = install(&home, &env, &Scope::User).unwrap_err().to_string();
    assert!(error.contains("more than once"), "{error}");
}

/// What a repository brings is not followed, also where it is the home by the variable.
#[test]
fn a_link_in_a_repository_is_not_followed() {
    let (folder, _, env) = home(&[("theirs", "# theirs\n")]);
    let root = folder.path().join("repo");
    std::fs::create_dir_all(root.join(".git")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("theirs"), root.join("config.toml")).unwrap();
    let error = install(&Home::at(&root), &env, &Scope::User)
        .unwrap_err()
        .to_string();
    assert!(error.contains("inside a repository"), "{error}");
}
