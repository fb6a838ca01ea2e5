use takeup_core::files::write_atomic;

use super::*;

struct Installed {
    folder: tempfile::TempDir,
}

impl Installed {
    fn with_config(config: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if let Some(config) = config {
            write_atomic(
                &folder.path().join("openclaw.json"),
                config.as_bytes(),
                0o600,
            )
            .unwrap();
        }
        Self { folder }
    }

    fn env(&self) -> Env {
        Env::of([("OPENCLAW_STATE_DIR", self.folder.path())], "/")
    }

    /// An environment in which a program of this version is on PATH.
    fn env_of_version(&self, version: &str) -> Env {
        let bin = self.folder.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        for program in ["openclaw", "git-takeup"] {
            write_atomic(&bin.join(program), b"#!/bin/sh\n", 0o755).unwrap();
        }
        let package = format!(r#"{{"name":"openclaw","version":"{version}"}}"#);
        write_atomic(&bin.join("package.json"), package.as_bytes(), 0o644).unwrap();
        Env::of(
            [
                ("OPENCLAW_STATE_DIR", self.folder.path()),
                ("PATH", bin.as_path()),
            ],
            "/",
        )
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("openclaw.json")).unwrap()
    }

    fn path(&self) -> String {
        self.folder
            .path()
            .join("takeup-plugin")
            .display()
            .to_string()
    }
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

const CONFIG: &str = r#"// my own comment
{
  gateway: { mode: 'local', port: 18789, }, // trailing
  agents: { defaults: { workspace: "~/claw" } },
  plugins: {
    // keep these
    allow: ["memory-core"],
    entries: { "memory-core": { enabled: true } },
  },
}
"#;

#[test]
fn the_configuration_gets_the_smallest_edit_and_loses_it_again() {
    let there = Installed::with_config(Some(CONFIG));
    let env = there.env();
    assert_eq!(state(&env, &Scope::User), IntegrationState::Absent);
    apply(&install(&env, &Scope::User).unwrap());
    assert_eq!(state(&env, &Scope::User), IntegrationState::Installed);
    assert!(install(&env, &Scope::User).unwrap().edits.is_empty());
    let config = there.config();
    insta::assert_snapshot!(config.replace(&there.path(), "[plugin]"));
    let value = Home::of(&env).unwrap().read_config().unwrap().unwrap();
    assert_eq!(
        value["plugins"]["entries"]["takeup"]["hooks"]["allowConversationAccess"],
        true
    );
    assert_eq!(value["plugins"]["load"]["paths"][0], there.path());
    assert_eq!(
        value["plugins"]["allow"],
        serde_json::json!(["memory-core", "takeup"])
    );
    assert_eq!(value["gateway"]["mode"], "local");

    // Something else was changed since: that stays, ours goes.
    let edited = config.replace("18789", "18790");
    write_atomic(
        &there.folder.path().join("openclaw.json"),
        edited.as_bytes(),
        0o600,
    )
    .unwrap();
    apply(&uninstall(&env, &Scope::User).unwrap());
    let left = there.config();
    assert!(!left.contains("takeup"), "{left}");
    assert!(left.contains("// keep these") && left.contains("'local'") && left.contains("18790"));
    let value = Home::of(&env).unwrap().read_config().unwrap().unwrap();
    assert_eq!(
        value["plugins"],
        serde_json::json!({
            "allow": ["memory-core"], "entries": {"memory-core": {"enabled": true}}
        })
    );
    assert_eq!(state(&env, &Scope::User), IntegrationState::Absent);
}

#[test]
fn configurations_of_other_shapes() {
    for (config, expected) in [
        ("{}", true),
        ("{ plugins: {} }", true),
        ("// only a comment\n{}\n", true),
        (r#"{"plugins":{"load":{"paths":["/x"]}}}"#, true),
        ("[]", false),
        ("", false),
        ("{ plugins: 7 }", false),
        ("{ plugins: { load: { paths: {} } } }", false),
        ("{ plugins: null }", false),
        ("{ plugins: { load: { paths: 'x' } } }", false),
        ("{ plugins: {}, plugins: { load: {} } }", false),
        ("{ broken", false),
    ] {
        let there = Installed::with_config(Some(config));
        let env = there.env();
        let plan = install(&env, &Scope::User).unwrap();
        let edits_config = plan
            .edits
            .iter()
            .any(|edit| edit.path.ends_with("openclaw.json"));
        assert_eq!(edits_config, expected, "{config}");
        // What cannot be edited is said, with what to add by hand.
        assert_eq!(
            plan.notes.iter().any(|note| note.contains("by hand")),
            !expected,
            "{config}"
        );
        apply(&plan);
        if expected {
            let before: Value = Home::of(&Installed::with_config(Some(config)).env())
                .unwrap()
                .read_config()
                .unwrap()
                .unwrap();
            apply(&uninstall(&env, &Scope::User).unwrap());
            let after = Home::of(&env).unwrap().read_config().unwrap().unwrap();
            if config != "{ plugins: {} }" {
                assert_eq!(after, before, "{config}");
            }
        } else {
            assert_eq!(there.config(), config);
            // What is there is not loaded, and not told as if it were; and it can be taken out again.
            let said = state(&env, &Scope::User);
            assert!(
                matches!(said, IntegrationState::Outdated { .. }),
                "{config}: {said:?}"
            );
            apply(&uninstall(&env, &Scope::User).unwrap());
            assert_eq!(there.config(), config);
            assert!(!there.folder.path().join("takeup-plugin/index.js").exists());
            assert_eq!(
                state(&env, &Scope::User),
                IntegrationState::Absent,
                "{config}"
            );
        }
    }
}

#[test]
fn what_is_not_there_is_not_made() {
    let none = Env::of([("HOME", "/nowhere/at/all")], "/");
    assert!(matches!(
        install(&none, &Scope::User),
        Err(AgentError::NotInstalled { .. })
    ));
    assert_eq!(state(&none, &Scope::User), IntegrationState::Absent);
    let there = Installed::with_config(None);
    let plan = install(&there.env(), &Scope::User).unwrap();
    assert!(
        plan.edits
            .iter()
            .all(|edit| !edit.path.ends_with("openclaw.json"))
    );
    assert!(
        plan.notes
            .iter()
            .any(|note| note.contains("set OpenClaw up first"))
    );
}

#[test]
fn a_release_without_plugins_gets_the_internal_hook() {
    let there = Installed::with_config(Some(
        "{ hooks: { internal: { entries: { mine: { enabled: true } } } } }",
    ));
    let env = there.env_of_version("2026.7.1");
    apply(&install(&env, &Scope::User).unwrap());
    assert!(there.folder.path().join("hooks/takeup/handler.js").exists());
    assert!(!there.folder.path().join("takeup-plugin").exists());
    assert!(there.config().contains("takeup"));
    assert_eq!(state(&env, &Scope::User), IntegrationState::Installed);
    // A newer release replaces it by the plugin.
    let env = there.env_of_version("2026.9.6");
    assert!(matches!(
        state(&env, &Scope::User),
        IntegrationState::Outdated { .. }
    ));
    apply(&install(&env, &Scope::User).unwrap());
    assert!(!there.folder.path().join("hooks/takeup/handler.js").exists());
    apply(&uninstall(&env, &Scope::User).unwrap());
    assert!(!there.folder.path().join("takeup-plugin/index.js").exists());
    assert!(!there.config().contains("takeup"));
}

#[test]
fn versions_are_compared_by_number() {
    assert_eq!(numbers("2026.9.6"), Some([2026, 9, 6]));
    assert_eq!(numbers("2026.10.1-beta.2"), Some([2026, 10, 1]));
    assert_eq!(numbers("next"), None);
}

#[test]
fn a_project_gets_the_skill_alone() {
    let folder = tempfile::tempdir().unwrap();
    let scope = Scope::Project {
        root: folder.path().to_path_buf(),
    };
    let env = Env::of([("HOME", "/nowhere")], "/");
    apply(&install(&env, &scope).unwrap());
    assert!(
        folder
            .path()
            .join(".agents/skills/takeup/SKILL.md")
            .exists()
    );
    assert_eq!(state(&env, &scope), IntegrationState::Installed);
    apply(&uninstall(&env, &scope).unwrap());
    assert_eq!(state(&env, &scope), IntegrationState::Absent);
}

#[test]
fn a_plugin_that_the_configuration_keeps_out_is_not_called_installed() {
    let there = Installed::with_config(Some("{ plugins: { deny: [], allow: [] } }"));
    let env = there.env();
    apply(&install(&env, &Scope::User).unwrap());
    assert_eq!(state(&env, &Scope::User), IntegrationState::Installed);
    let config = there.config();
    let path = there.folder.path().join("openclaw.json");
    for (from, to, expected) in [
        ("deny: []", "deny: ['takeup']", "plugins.deny"),
        ("deny: []", "enabled: false", "plugins.enabled"),
        (
            "enabled\": true",
            "enabled\": false",
            "takeup.enabled is false",
        ),
        (
            "Access\": true",
            "Access\": false",
            "allowConversationAccess",
        ),
    ] {
        let changed = config.replace(from, to);
        let changed = if changed == config {
            config.replace(&from.replace('"', ""), &to.replace('"', ""))
        } else {
            changed
        };
        assert_ne!(changed, config, "{from}");
        write_atomic(&path, changed.as_bytes(), 0o600).unwrap();
        let said = format!("{:?}", state(&env, &Scope::User));
        assert!(said.contains(expected), "{said}\n{changed}");
        // Installing changes nothing that the user said.
        assert!(install(&env, &Scope::User).unwrap().edits.is_empty());
    }
    let hook = Installed::with_config(Some("{ hooks: { internal: { enabled: false } } }"));
    let env = hook.env_of_version("2026.7.1");
    apply(&install(&env, &Scope::User).unwrap());
    let said = format!("{:?}", state(&env, &Scope::User));
    assert!(said.contains("hooks.internal.enabled"), "{said}");
    let none = Installed::with_config(None);
    apply(&install(&none.env(), &Scope::User).unwrap());
    let said = format!("{:?}", state(&none.env(), &Scope::User));
    assert!(said.contains("is not there"), "{said}");
}

/// A folder of dotfiles: the file behind the link is edited, and the link stays one.
#[test]
fn a_configuration_behind_a_link_is_edited_where_it_lies() {
    let there = Installed::with_config(None);
    let dot = tempfile::tempdir().unwrap();
    let kept = dot.path().canonicalize().unwrap().join("claw.json");
    write_atomic(&kept, b"{ gateway: {} }\n", 0o600).unwrap();
    let link = there.folder.path().join("openclaw.json");
    std::os::unix::fs::symlink(&kept, &link).unwrap();
    let env = there.env();
    let plan = install(&env, &Scope::User).unwrap();
    assert!(plan.edits.iter().any(|edit| edit.path == kept));
    apply(&plan);
    assert!(link.is_symlink());
    assert_eq!(state(&env, &Scope::User), IntegrationState::Installed);
    assert!(
        without_edited(
            uninstall(&env, &Scope::User).unwrap(),
            &env,
            &AgentId::new(ID).unwrap(),
            &Scope::User
        )
        .edits
        .iter()
        .any(|edit| edit.path == kept)
    );
    apply(&uninstall(&env, &Scope::User).unwrap());
    let left = std::fs::read_to_string(&kept).unwrap();
    assert!(
        left.contains("gateway") && !left.contains("takeup"),
        "{left}"
    );
    std::fs::remove_file(&kept).unwrap();
    let error = install(&env, &Scope::User).unwrap_err().to_string();
    assert!(error.contains("a link to nothing"), "{error}");
}
