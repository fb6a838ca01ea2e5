//! The plugin that is dropped in, and the entry for the MCP server where one is wanted.
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use takeup_core::agent::AgentError;
use takeup_core::env::Env;
use takeup_core::files::read_bounded;
use takeup_core::integration::{Edit, EditPlan, IntegrationState, Scope};

use crate::sidecar;
use crate::store::Homes;

/// The plugin, as it is dropped in.
const PLUGIN: &str = include_str!("../plugin/takeup.js");
/// How a file of ours is recognised, whatever its version.
const MARKER: &str = "// takeup for OpenCode.";
/// No plugin or settings file is larger.
const LARGEST: u64 = 4 << 20;
/// More records are not removed by a plan.
const MOST_RECORDS: usize = 5_000;
/// The MCP server's name in the settings.
const SERVER: &str = "takeup";

/// The folder in which OpenCode looks for plugins and settings of a scope.
fn folder(env: &Env, scope: &Scope) -> Result<PathBuf, AgentError> {
    match scope {
        Scope::Project { root } => Ok(root.join(".opencode")),
        Scope::User => {
            Homes::of(env)
                .map(|homes| homes.config)
                .ok_or_else(|| AgentError::NotInstalled {
                    agent: crate::NAME,
                    why: "there is no home folder".to_owned(),
                })
        }
    }
}

fn plugin_path(env: &Env, scope: &Scope) -> Result<PathBuf, AgentError> {
    Ok(folder(env, scope)?.join("plugins/takeup.js"))
}

/// The settings file of a scope: the one that is there, else `opencode.json`.
fn settings_path(env: &Env, scope: &Scope) -> Result<PathBuf, AgentError> {
    let folder = match scope {
        Scope::Project { root } => root.clone(),
        Scope::User => folder(env, scope)?,
    };
    Ok(["opencode.jsonc", "opencode.json"]
        .iter()
        .map(|name| folder.join(name))
        .find(|path| path.symlink_metadata().is_ok())
        .unwrap_or_else(|| folder.join("opencode.json")))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, AgentError> {
    read_bounded(path, LARGEST).map_err(AgentError::Damaged)
}

fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(MARKER.as_bytes())
}

/// Plans the installation. `mcp` adds the entry for the MCP server; the plugin alone gives the same tools.
pub(crate) fn install(env: &Env, scope: &Scope, mcp: bool) -> Result<EditPlan, AgentError> {
    let mut plan = EditPlan::default();
    let path = plugin_path(env, scope)?;
    let before = read(&path)?;
    if before.as_deref().is_some_and(|bytes| !is_ours(bytes)) {
        return Err(AgentError::Other(format!(
            "{} is a file of somebody else; it is not replaced",
            path.display()
        )));
    }
    push(&mut plan, path, before, Some(PLUGIN.as_bytes().to_vec()));
    if mcp {
        let path = settings_path(env, scope)?;
        let before = read(&path)?;
        let text = as_text(&path, before.as_deref())?;
        match with_server(text) {
            Ok(after) => push(&mut plan, path, before, Some(after.into_bytes())),
            Err(why) => plan.notes.push(format!(
                "{} cannot be changed ({why}); add to its \"mcp\" by hand: \"{SERVER}\": {{ \"type\": \"local\", \"command\": [\"git\", \"takeup\", \"mcp\"], \"enabled\": true }}",
                path.display()
            )),
        }
    }
    if !plan.edits.is_empty() {
        plan.notes
            .push("restart OpenCode: it reads plugins when it starts".to_owned());
    }
    Ok(plan)
}

/// Plans the removal of what is ours, in whatever version.
pub(crate) fn uninstall(env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
    let mut plan = EditPlan::default();
    let path = plugin_path(env, scope)?;
    match read(&path)? {
        Some(bytes) if is_ours(&bytes) => push(&mut plan, path, Some(bytes), None),
        Some(_) => plan.notes.push(format!(
            "{} is a file of somebody else; it stays",
            path.display()
        )),
        None => {}
    }
    if let Scope::Project { root } = scope {
        remove_records(root, &mut plan)?;
    }
    let path = settings_path(env, scope)?;
    if let Some(before) = read(&path)? {
        let text = as_text(&path, Some(&before))?;
        match without_server(text) {
            Ok(Some(after)) => {
                let after = (!is_empty_object(&after)).then(|| after.into_bytes());
                push(&mut plan, path, Some(before), after);
            }
            Ok(None) => {}
            Err(why) => plan.notes.push(format!(
                "{} cannot be changed ({why}); take \"{SERVER}\" out of its \"mcp\" by hand if it is there",
                path.display()
            )),
        }
    }
    Ok(plan)
}

/// Plans the removal of the plugin's records where we made their folder and nobody else wrote into it.
fn remove_records(root: &Path, plan: &mut EditPlan) -> Result<(), AgentError> {
    let top = root.join(".agent-context");
    let ignore = top.join(".gitignore");
    if read(&ignore)?.as_deref() != Some(crate::effects::IGNORE.as_bytes()) {
        return Ok(());
    }
    let (_, found) = sidecar::identities(&sidecar::Paths::new(root));
    let foreign = found
        .items
        .iter()
        .any(|item| item.identity.object.get(sidecar::OWN_KEY).is_none());
    let mut files = Vec::new();
    let whole = list(&top, &mut files);
    if foreign || !found.issues.is_empty() || !whole {
        plan.notes.push(format!(
            "{} holds records of others too; it stays",
            top.display()
        ));
        return Ok(());
    }
    files.sort();
    for path in files {
        let before = read(&path)?;
        push(plan, path, before, None);
    }
    Ok(())
}

/// Lists the files below a folder; tells whether it holds nothing else than some files.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> bool {
    let Ok(entries) = folder.read_dir() else {
        return false;
    };
    entries.into_iter().all(|entry| {
        let Ok(entry) = entry else { return false };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => list(&entry.path(), files),
            Ok(kind) if !kind.is_symlink() && files.len() < MOST_RECORDS => {
                files.push(entry.path());
                true
            }
            Ok(_) | Err(_) => false,
        }
    })
}

/// Looks at the plugin file.
pub(crate) fn state(env: &Env, scope: &Scope) -> IntegrationState {
    let found = plugin_path(env, scope).and_then(|path| read(&path));
    match found {
        Ok(Some(bytes)) if bytes == PLUGIN.as_bytes() => IntegrationState::Installed,
        Ok(Some(bytes)) if is_ours(&bytes) => IntegrationState::Outdated {
            what: "the plugin is of another version, or was edited".to_owned(),
        },
        Ok(Some(_) | None) => IntegrationState::Absent,
        Err(error) => IntegrationState::Outdated {
            what: error.to_string(),
        },
    }
}

fn push(plan: &mut EditPlan, path: PathBuf, before: Option<Vec<u8>>, after: Option<Vec<u8>>) {
    if before != after {
        plan.edits.push(Edit {
            path,
            before,
            after,
            mode: 0o644,
        });
    }
}

fn as_text<'a>(path: &Path, bytes: Option<&'a [u8]>) -> Result<&'a str, AgentError> {
    std::str::from_utf8(bytes.unwrap_or_default()).map_err(|_| {
        AgentError::Other(format!(
            "{} is not UTF-8; it is left as it is",
            path.display()
        ))
    })
}

/// The object at the top, and the tree it belongs to.
fn parse(text: &str) -> Result<(CstRootNode, CstObject), String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root =
        CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| error.to_string())?;
    let object = root.object_value().ok_or("there is no object at its top")?;
    Ok((root, object))
}

/// Adds the server; what is there stays byte for byte.
fn with_server(text: &str) -> Result<String, String> {
    let (root, object) = parse(text)?;
    let servers = object
        .object_value_or_create("mcp")
        .ok_or("its \"mcp\" is no object")?;
    if servers.get(SERVER).is_none() {
        servers.append(
            SERVER,
            CstInputValue::Object(vec![
                ("type".to_owned(), "local".into()),
                (
                    "command".to_owned(),
                    CstInputValue::Array(vec!["git".into(), "takeup".into(), "mcp".into()]),
                ),
                ("enabled".to_owned(), true.into()),
            ]),
        );
    }
    Ok(root.to_string())
}

/// Takes the server out; `None` where it is not there.
fn without_server(text: &str) -> Result<Option<String>, String> {
    let (root, object) = parse(text)?;
    let Some(servers) = object.object_value("mcp") else {
        return Ok(None);
    };
    let Some(server) = servers.get(SERVER) else {
        return Ok(None);
    };
    server.remove();
    if servers.properties().is_empty()
        && let Some(property) = object.get("mcp")
    {
        property.remove();
    }
    Ok(Some(root.to_string()))
}

fn is_empty_object(text: &str) -> bool {
    text.chars()
        .filter(|c| !c.is_whitespace())
        .collect::<String>()
        == "{}"
}

#[cfg(test)]
mod tests {
    use super::*;
    use takeup_core::files::{make_private_folder, write_atomic};

    fn apply(plan: &EditPlan) {
        for edit in &plan.edits {
            assert_eq!(
                std::fs::read(&edit.path).ok(),
                edit.before,
                "the plan knows what is there"
            );
            match &edit.after {
                Some(bytes) => {
                    make_private_folder(edit.path.parent().unwrap()).unwrap();
                    write_atomic(&edit.path, bytes, edit.mode).unwrap();
                }
                None => std::fs::remove_file(&edit.path).unwrap(),
            }
        }
    }

    struct Home {
        _folder: tempfile::TempDir,
        env: Env,
        scopes: [Scope; 2],
    }

    fn home() -> Home {
        let folder = tempfile::tempdir().unwrap();
        let env = Env::of([("HOME", folder.path())], folder.path());
        let scopes = [
            Scope::User,
            Scope::Project {
                root: folder.path().join("repo"),
            },
        ];
        Home {
            _folder: folder,
            env,
            scopes,
        }
    }

    #[test]
    fn installing_and_removing_leaves_the_files_as_they_were() {
        let settings = "{\n  // mine\n  \"model\": \"a/b\", // keep\n  \"mcp\": {\n    \"other\": { \"type\": \"remote\", \"url\": \"x\" }\n  }\n}\n";
        for before in [Some(settings), Some("{ \"theme\": \"x\" }"), None] {
            let home = home();
            for scope in &home.scopes {
                let path = settings_path(&home.env, scope).unwrap();
                if let Some(before) = before {
                    make_private_folder(path.parent().unwrap()).unwrap();
                    write_atomic(&path, before.as_bytes(), 0o644).unwrap();
                }
                assert_eq!(state(&home.env, scope), IntegrationState::Absent);
                let plan = install(&home.env, scope, true).unwrap();
                assert_eq!(plan.edits.len(), 2);
                apply(&plan);
                assert_eq!(state(&home.env, scope), IntegrationState::Installed);
                assert_eq!(
                    install(&home.env, scope, true).unwrap(),
                    EditPlan::default(),
                    "twice equals once"
                );
                let now = std::fs::read_to_string(&path).unwrap();
                let value: serde_json::Value =
                    jsonc_parser::parse_to_serde_value(&now, &ParseOptions::default()).unwrap();
                assert_eq!(value["mcp"]["takeup"]["command"][2], "mcp");
                if before == Some(settings) {
                    assert!(now.contains("// mine") && now.contains("// keep"));
                }
                apply(&uninstall(&home.env, scope).unwrap());
                assert_eq!(state(&home.env, scope), IntegrationState::Absent);
                let after = std::fs::read_to_string(&path).ok();
                if before == Some(settings) || before.is_none() {
                    assert_eq!(after.as_deref(), before);
                } else {
                    // What stood on one line is written over several; the caller puts an unedited file back as it was.
                    let parse =
                        |text: &str| -> serde_json::Value { serde_json::from_str(text).unwrap() };
                    assert_eq!(parse(&after.unwrap()), parse(before.unwrap()));
                }
            }
        }
    }

    #[test]
    fn records_that_only_we_wrote_go_with_the_plugin() {
        use crate::OpenCode;
        use takeup_core::agent::{Agent as _, Effect};
        use takeup_core::ids::{SessionId, SessionRef, TaskId};
        let repo = crate::testing::Repo::new();
        let scope = Scope::Project {
            root: repo.place.root.clone(),
        };
        let adapter = OpenCode::new();
        let before = repo.output("git status --porcelain; ls -A");
        assert!(!adapter.mirrors(&repo.env, &repo.place));
        apply(&adapter.install(&repo.env, &scope).unwrap());
        assert!(adapter.mirrors(&repo.env, &repo.place));
        let effect = Effect::Mirrored {
            task_id: TaskId::new("t").unwrap(),
            title: "T".to_owned(),
            session: SessionRef::new(crate::agent_id(), SessionId::new("ses_1").unwrap()),
            status: takeup_core::status::Status::Active,
            allowed: Vec::new(),
            avoided: Vec::new(),
            checks: Vec::new(),
            at: takeup_core::time::Time::from_millis(0),
        };
        adapter.apply(&repo.env, &repo.place, &effect).unwrap();
        assert!(
            !repo
                .output("git status --porcelain")
                .contains(".agent-context")
        );
        // A record of the plugin itself keeps everything.
        let foreign = repo.identity("other", "ses_2", "active");
        let plan = adapter.uninstall(&repo.env, &scope).unwrap();
        assert_eq!((plan.edits.len(), plan.notes.len()), (1, 1));
        std::fs::remove_file(foreign).unwrap();
        apply(&adapter.uninstall(&repo.env, &scope).unwrap());
        repo.sh("find .agent-context .opencode -depth -type d -empty -delete");
        assert_eq!(repo.output("git status --porcelain; ls -A"), before);
    }

    #[test]
    fn files_of_others_and_broken_settings_are_left() {
        let home = home();
        let scope = &home.scopes[1];
        let path = plugin_path(&home.env, scope).unwrap();
        make_private_folder(path.parent().unwrap()).unwrap();
        write_atomic(&path, b"export const Mine = 1", 0o644).unwrap();
        assert!(install(&home.env, scope, false).is_err());
        assert_eq!(uninstall(&home.env, scope).unwrap().edits, []);
        std::fs::remove_file(&path).unwrap();
        let settings = settings_path(&home.env, scope).unwrap();
        write_atomic(&settings, b"{ broken", 0o644).unwrap();
        let plan = install(&home.env, scope, true).unwrap();
        assert_eq!(plan.edits.len(), 1);
        assert!(plan.notes[0].contains("by hand"));
    }

    #[test]
    fn an_edited_plugin_is_outdated() {
        let home = home();
        let scope = &home.scopes[0];
        let path = plugin_path(&home.env, scope).unwrap();
        make_private_folder(path.parent().unwrap()).unwrap();
        write_atomic(
            &path,
            format!("{MARKER} Something older.\n").as_bytes(),
            0o644,
        )
        .unwrap();
        assert!(matches!(
            state(&home.env, scope),
            IntegrationState::Outdated { .. }
        ));
        apply(&install(&home.env, scope, false).unwrap());
        assert_eq!(state(&home.env, scope), IntegrationState::Installed);
    }
}
