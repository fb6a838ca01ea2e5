//! The plugin that is dropped in.
use std::path::{Path, PathBuf};

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

fn read(path: &Path) -> Result<Option<Vec<u8>>, AgentError> {
    read_bounded(path, LARGEST).map_err(AgentError::Damaged)
}

fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(MARKER.as_bytes())
}

/// Plans the installation.
pub(crate) fn install(env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
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
    let mut folders = vec![top.clone()];
    let whole = list(&top, &mut files, &mut folders);
    if foreign || !found.issues.is_empty() || !whole {
        plan.notes.push(format!(
            "{} holds records of others too; it stays",
            top.display()
        ));
        return Ok(());
    }
    plan.folders.append(&mut folders);
    files.sort();
    for path in files {
        let before = read(&path)?;
        push(plan, path, before, None);
    }
    Ok(())
}

/// Lists the files and folders below a folder; tells whether it holds nothing else than some of those.
fn list(folder: &Path, files: &mut Vec<PathBuf>, folders: &mut Vec<PathBuf>) -> bool {
    let Ok(entries) = folder.read_dir() else {
        return false;
    };
    entries.into_iter().all(|entry| {
        let Ok(entry) = entry else { return false };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => {
                folders.push(entry.path());
                list(&entry.path(), files, folders)
            }
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
        let home = home();
        for scope in &home.scopes {
            assert_eq!(state(&home.env, scope), IntegrationState::Absent);
            let plan = install(&home.env, scope).unwrap();
            assert_eq!(plan.edits.len(), 1);
            apply(&plan);
            assert_eq!(state(&home.env, scope), IntegrationState::Installed);
            assert_eq!(
                install(&home.env, scope).unwrap(),
                EditPlan::default(),
                "twice equals once"
            );
            apply(&uninstall(&home.env, scope).unwrap());
            assert_eq!(state(&home.env, scope), IntegrationState::Absent);
            assert_eq!(uninstall(&home.env, scope).unwrap(), EditPlan::default());
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
            resumed_to: None,
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
        let plan = adapter.uninstall(&repo.env, &scope).unwrap();
        apply(&plan);
        for folder in plan.folders.iter().rev() {
            std::fs::remove_dir(folder).unwrap();
        }
        repo.sh("find .opencode -depth -type d -empty -delete");
        assert_eq!(repo.output("git status --porcelain; ls -A"), before);
    }

    #[test]
    fn a_file_of_somebody_else_is_left() {
        let home = home();
        let scope = &home.scopes[1];
        let path = plugin_path(&home.env, scope).unwrap();
        make_private_folder(path.parent().unwrap()).unwrap();
        write_atomic(&path, b"export const Mine = 1", 0o644).unwrap();
        assert!(install(&home.env, scope).is_err());
        assert_eq!(uninstall(&home.env, scope).unwrap().edits, []);
        assert_eq!(state(&home.env, scope), IntegrationState::Absent);
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
        apply(&install(&home.env, scope).unwrap());
        assert_eq!(state(&home.env, scope), IntegrationState::Installed);
    }
}
