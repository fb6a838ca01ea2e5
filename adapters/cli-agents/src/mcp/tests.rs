use takeup_core::files::write_atomic;

use super::*;

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

/// A home in which every client is installed, with a repository in it.
fn home() -> (tempfile::TempDir, Env) {
    let home = tempfile::tempdir().unwrap();
    for folder in [
        ".claude",
        ".codex",
        ".gemini",
        ".copilot",
        ".cursor",
        ".pi/agent",
        ".config/opencode",
        ".openclaw",
        "repo",
    ] {
        std::fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    let env = Env::of([("HOME", home.path())], "/");
    (home, env)
}

#[test]
fn every_client_gets_its_entry_and_loses_it() {
    let (home, env) = home();
    let project = Scope::Project {
        root: home.path().join("repo"),
    };
    let mut seen = Vec::new();
    for client in CLIENTS {
        for scope in [&Scope::User, &project] {
            let plan = match mcp_entry_plan(client, &env, scope) {
                Ok(plan) => plan,
                Err(AgentError::Unsupported { .. }) => {
                    assert!(["copilot", "openclaw"].contains(&client) && scope == &project);
                    continue;
                }
                Err(error) => panic!("{client}: {error}"),
            };
            assert_eq!(
                mcp_entry_state(client, &env, scope),
                IntegrationState::Absent
            );
            apply(&plan);
            assert_eq!(
                mcp_entry_state(client, &env, scope),
                IntegrationState::Installed
            );
            let path = &plan.edits[0].path;
            let text = std::fs::read_to_string(path).unwrap();
            let below = path.strip_prefix(home.path()).unwrap().display();
            seen.push(format!("{client}: ~/{below}\n{text}"));
            apply(&mcp_entry_removal(client, &env, scope).unwrap());
            assert!(!path.exists(), "{client}");
        }
    }
    insta::assert_snapshot!(seen.join("\n"));
}

#[test]
fn what_is_theirs_stays_byte_for_byte() {
    let (home, env) = home();
    for (client, file, text) in [
        (
            "codex",
            ".codex/config.toml",
            "# mine\nmodel = \"gpt\" # the best\n\n[mcp_servers.other]\ncommand = 'x'\n",
        ),
        (
            "opencode",
            ".config/opencode/opencode.jsonc",
            "{\n  // mine\n  \"mcp\": {\n    \"other\": { \"type\": \"local\" },\n  },\n}\n",
        ),
        (
            "claude-code",
            ".claude.json",
            "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"other\": {}\n  }\n}",
        ),
        (
            "openclaw",
            ".openclaw/openclaw.json",
            "// mine\n{\n  gateway: { port: 1, },\n}\n",
        ),
    ] {
        let path = home.path().join(file);
        write_atomic(&path, text.as_bytes(), 0o600).unwrap();
        apply(&mcp_entry_plan(client, &env, &Scope::User).unwrap());
        let with = std::fs::read_to_string(&path).unwrap();
        assert!(with.contains("git-takeup") && with.contains("mine") == text.contains("mine"));
        apply(&mcp_entry_removal(client, &env, &Scope::User).unwrap());
        let left = std::fs::read_to_string(&path).unwrap();
        assert_eq!(left, text, "{client}");
    }
}

#[test]
fn what_is_not_there_is_not_made() {
    let env = Env::of([("HOME", "/nowhere")], "/");
    for client in CLIENTS {
        assert!(matches!(
            mcp_entry_plan(client, &env, &Scope::User),
            Err(AgentError::NotInstalled { .. })
        ));
    }
    assert!(matches!(
        mcp_entry_plan("amp", &env, &Scope::User),
        Err(AgentError::Unsupported { .. })
    ));
    let (home, env) = home();
    for (file, text, client) in [
        (".codex/config.toml", "= broken", "codex"),
        (".codex/config.toml", "mcp_servers = 7", "codex"),
        (".cursor/mcp.json", "[]", "cursor"),
        (".cursor/mcp.json", "{\"mcpServers\":[]}", "cursor"),
    ] {
        write_atomic(&home.path().join(file), text.as_bytes(), 0o600).unwrap();
        assert!(matches!(
            mcp_entry_plan(client, &env, &Scope::User),
            Err(AgentError::Damaged(_))
        ));
    }
}

#[test]
fn all_entries_at_once_are_of_installed_clients_only() {
    let home = tempfile::tempdir().unwrap();
    for folder in [".codex", ".gemini", ".cursor", "repo"] {
        std::fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    let env = Env::of([("HOME", home.path())], "/");
    write_atomic(&home.path().join(".cursor/mcp.json"), b"[]", 0o600).unwrap();
    let plan = McpEntries.install(&env, &Scope::User).unwrap();
    assert_eq!(plan.edits.len(), 2);
    assert_eq!(plan.notes.len(), 1);
    std::fs::remove_file(home.path().join(".cursor/mcp.json")).unwrap();
    let project = Scope::Project {
        root: home.path().join("repo"),
    };
    for scope in [Scope::User, project] {
        assert_eq!(
            McpEntries.integration(&env, &scope),
            IntegrationState::Absent
        );
        let plan = McpEntries.install(&env, &scope).unwrap();
        assert_eq!(plan.edits.len(), 3);
        apply(&plan);
        assert_eq!(
            McpEntries.integration(&env, &scope),
            IntegrationState::Installed
        );
        std::fs::remove_file(&plan.edits[0].path).unwrap();
        assert!(matches!(
            McpEntries.integration(&env, &scope),
            IntegrationState::Outdated { .. }
        ));
        apply(&McpEntries.uninstall(&env, &scope).unwrap());
        assert_eq!(
            McpEntries.integration(&env, &scope),
            IntegrationState::Absent
        );
    }
    let nowhere = Env::of([("HOME", "/nowhere")], "/");
    assert!(matches!(
        McpEntries.install(&nowhere, &Scope::User),
        Err(AgentError::NotInstalled { .. })
    ));
}

#[test]
fn the_ends_of_lines_and_the_mark_stay() {
    let (home, env) = home();
    for (client, file, text) in [
        (
            "codex",
            ".codex/config.toml",
            "# mine\r\nmodel = \"gpt\"\r\n\r\n[mcp_servers.other]\r\ncommand = 'x'\r\n",
        ),
        ("codex", ".codex/config.toml", "\u{feff}model = \"gpt\"\n"),
        (
            "claude-code",
            ".claude.json",
            "\u{feff}{\r\n  \"numStartups\": 3,\r\n  \"mcpServers\": {\r\n    \"other\": {}\r\n  }\r\n}\r\n",
        ),
    ] {
        let path = home.path().join(file);
        write_atomic(&path, text.as_bytes(), 0o600).unwrap();
        apply(&mcp_entry_plan(client, &env, &Scope::User).unwrap());
        let with = std::fs::read_to_string(&path).unwrap();
        assert!(with.contains("git-takeup"), "{with:?}");
        assert_eq!(with.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
        let bare = with.matches('\n').count() - with.matches("\r\n").count();
        assert!(!text.contains('\r') || bare == 0, "{with:?}");
        // Somebody writes in between, so that our part alone is taken out.
        apply(&mcp_entry_removal(client, &env, &Scope::User).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{client}");
    }
}

#[test]
fn the_user_s_own_link_stays_a_link_and_a_repository_s_leads_nowhere() {
    let (home, env) = home();
    let kept = home.path().join("dotfiles.json");
    write_atomic(&kept, b"{}\n", 0o600).unwrap();
    let link = home.path().join(".cursor/mcp.json");
    std::os::unix::fs::symlink(&kept, &link).unwrap();
    let plan = mcp_entry_plan("cursor", &env, &Scope::User).unwrap();
    assert_eq!(plan.edits[0].path, std::fs::canonicalize(&kept).unwrap());
    apply(&plan);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(
        mcp_entry_state("cursor", &env, &Scope::User),
        IntegrationState::Installed
    );
    std::fs::remove_file(&kept).unwrap();
    let dangling = mcp_entry_plan("cursor", &env, &Scope::User).unwrap_err();
    assert!(
        dangling.to_string().contains("a link to nothing"),
        "{dangling}"
    );

    let root = home.path().join("repo");
    std::os::unix::fs::symlink(&link, root.join(".mcp.json")).unwrap();
    let refused = mcp_entry_plan("claude-code", &env, &Scope::Project { root }).unwrap_err();
    assert!(matches!(refused, AgentError::Damaged(_)), "{refused}");
}

#[test]
fn an_entry_of_that_name_that_is_the_user_s_own_stays() {
    let (home, env) = home();
    for client in CLIENTS {
        apply(&mcp_entry_plan(client, &env, &Scope::User).unwrap());
    }
    // Its file names our program elsewhere, too.
    let own =
        "{\"mcpServers\":{\"takeup\":{\"command\":\"mine\"}},\"hooks\":\"git-takeup hook\"}\n";
    let path = home.path().join(".gemini/settings.json");
    write_atomic(&path, own.as_bytes(), 0o600).unwrap();
    let codex = "[mcp_servers.takeup]\ncommand = \"mine\"\n";
    let toml = home.path().join(".codex/config.toml");
    write_atomic(&toml, codex.as_bytes(), 0o600).unwrap();
    assert_eq!(
        McpEntries.integration(&env, &Scope::User),
        IntegrationState::Installed
    );
    apply(&McpEntries.uninstall(&env, &Scope::User).unwrap());
    assert_eq!(
        McpEntries.integration(&env, &Scope::User),
        IntegrationState::Absent
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), own);
    assert_eq!(std::fs::read_to_string(&toml).unwrap(), codex);
}

/// An entry that is there and runs nothing is not told as if it did.
#[test]
fn an_entry_that_cannot_run_is_not_called_installed() {
    let (home, env) = home();
    let tools = home.path().join("my tools/git-takeup");
    std::fs::create_dir_all(tools.parent().unwrap()).unwrap();
    write_atomic(&tools, b"", 0o755).unwrap();
    let tools = tools.display();
    for (client, file, text, expected) in [
        (
            "cursor",
            ".cursor/mcp.json",
            "{\"mcpServers\":{\"takeup\":{\"command\":\"/gone/git-takeup\",\"args\":[\"mcp\"]}}}"
                .to_owned(),
            "/gone/git-takeup, which is not there",
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            "{\"mcp\":{\"takeup\":{\"command\":[\"/gone/git-takeup\",\"mcp\"]}}}".to_owned(),
            "/gone/git-takeup, which is not there",
        ),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.takeup]\ncommand = \"/gone/git-takeup\"\nargs = [\"mcp\"]\n".to_owned(),
            "/gone/git-takeup, which is not there",
        ),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.takeup]\ncommand = \"git-takeup\"\nenabled = false\n".to_owned(),
            "switched off",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\"mcpServers\":{\"takeup\":{\"command\":\"git-takeup\",\"disabled\":true}}}"
                .to_owned(),
            "switched off",
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            "{\"mcp\":{\"takeup\":{\"command\":[\"git-takeup\",\"mcp\"],\"enabled\":false}}}"
                .to_owned(),
            "switched off",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\"mcpServers\":{\"takeup\":{\"url\":\"https://git-takeup.example\"}}}".to_owned(),
            "Absent",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\"mcpServers\":{\"takeup\":{\"command\":\"git-takeup\"}},\"mcpServers\":{}}"
                .to_owned(),
            "more than once",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            format!(
                "{{\"mcpServers\":{{\"takeup\":{{\"command\":\"{tools}\",\"args\":[\"mcp\"]}}}}}}"
            ),
            "Installed",
        ),
    ] {
        let path = home.path().join(file);
        write_atomic(&path, text.as_bytes(), 0o600).unwrap();
        let said = format!("{:?}", mcp_entry_state(client, &env, &Scope::User));
        assert!(said.contains(expected), "{client}: {said}");
        if expected.contains("/gone") {
            apply(&mcp_entry_plan(client, &env, &Scope::User).unwrap());
            let after = std::fs::read_to_string(&path).unwrap();
            assert_eq!(after, text.replace("/gone/git-takeup", "git-takeup"));
            assert_eq!(
                mcp_entry_state(client, &env, &Scope::User),
                IntegrationState::Installed
            );
        }
        std::fs::remove_file(&path).unwrap();
    }
    let bin = home.path().join("bin");
    let without = Env::of([("HOME", home.path()), ("PATH", &bin)], "/");
    let plan = McpEntries.install(&without, &Scope::User).unwrap();
    assert_eq!(plan.notes.len(), 1, "{:?}", plan.notes);
    apply(&plan);
    let said = format!("{:?}", McpEntries.integration(&without, &Scope::User));
    assert!(said.contains("not on PATH"), "{said}");
    assert_eq!(said.matches("not on PATH").count(), 1);
    assert_eq!(
        McpEntries.integration(&env, &Scope::User),
        IntegrationState::Installed
    );
}

/// The variables that move a client's settings move its entry, as they move its hooks.
#[test]
fn the_entry_is_where_the_client_looks() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    for folder in ["home/.claude", "claude", "copilot"] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    let env = Env::of(
        [
            ("HOME", at("home")),
            ("CLAUDE_CONFIG_DIR", at("claude")),
            ("COPILOT_HOME", at("copilot")),
        ],
        "/",
    );
    for (client, file) in [
        ("claude-code", "claude/.claude.json"),
        ("copilot", "copilot/mcp-config.json"),
    ] {
        let plan = mcp_entry_plan(client, &env, &Scope::User).unwrap();
        assert_eq!(
            plan.edits[0].path,
            at(file)
                .parent()
                .unwrap()
                .canonicalize()
                .unwrap()
                .join(at(file).file_name().unwrap())
        );
    }
    std::fs::remove_dir_all(at("claude")).unwrap();
    assert!(matches!(
        mcp_entry_plan("claude-code", &env, &Scope::User),
        Err(AgentError::NotInstalled { .. })
    ));
}

/// Where nothing could be done at all, that is a failure; where something could, the rest is told.
#[test]
fn what_fails_for_every_client_fails() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join(".cursor")).unwrap();
    let env = Env::of([("HOME", home.path())], "/");
    let settings = home.path().join(".cursor/mcp.json");
    write_atomic(&settings, b"{ broken", 0o600).unwrap();
    let error = McpEntries.install(&env, &Scope::User).unwrap_err();
    assert!(
        matches!(&error, AgentError::Damaged(issue) if issue.path.ends_with("mcp.json")),
        "{error}"
    );
    std::fs::create_dir_all(home.path().join(".codex")).unwrap();
    // Larger than what is read.
    std::fs::File::create(&settings)
        .unwrap()
        .set_len(takeup_core::integration::LONGEST + 1)
        .unwrap();
    let plan = McpEntries.install(&env, &Scope::User).unwrap();
    assert_eq!((plan.edits.len(), plan.notes.len()), (1, 1));
    let agent = McpEntries.id();
    let state = Env::of(
        [
            ("HOME", home.path()),
            ("TAKEUP_HOME", &home.path().join("own")),
        ],
        "/",
    );
    takeup_core::integration::install(&state, &agent, &Scope::User, &plan).unwrap();
    // What can be read can be put back, too.
    let much = format!("{{\"projects\":\"{}\"}}\n", "x".repeat(17 << 20));
    write_atomic(&settings, much.as_bytes(), 0o600).unwrap();
    let plan = McpEntries.install(&state, &Scope::User).unwrap();
    takeup_core::integration::install(&state, &agent, &Scope::User, &plan).unwrap();
    std::fs::create_dir_all(home.path().join(".gemini")).unwrap();
    write_atomic(&home.path().join(".gemini/settings.json"), b"[", 0o600).unwrap();
    let said = format!("{:?}", McpEntries.integration(&state, &Scope::User));
    assert!(said.contains("no entry for gemini"), "{said}");
    let plan = McpEntries.uninstall(&state, &Scope::User).unwrap();
    takeup_core::integration::uninstall(&state, &agent, &Scope::User, &plan).unwrap();
    assert_eq!(
        McpEntries.integration(&state, &Scope::User),
        IntegrationState::Absent
    );
    assert!(std::fs::read(&settings).unwrap() == much.as_bytes());
}

/// A table that somebody wrote the header of is theirs.
#[test]
fn an_empty_table_of_the_user_s_own_stays() {
    let (home, env) = home();
    let path = home.path().join(".codex/config.toml");
    let text = "model = \"gpt\"\n\n[mcp_servers]\n";
    write_atomic(&path, text.as_bytes(), 0o600).unwrap();
    apply(&mcp_entry_plan("codex", &env, &Scope::User).unwrap());
    apply(&mcp_entry_removal("codex", &env, &Scope::User).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}
