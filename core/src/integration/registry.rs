//! Applies planned edits, and remembers what was there before, so that it can be put back byte for byte.
//!
//! What was there is kept in the user's state folder, one folder an installation: `manifest.json` and the old contents. An
//! uninstall puts a file back as it was if nobody touched it since; where somebody did, only our own part is taken out, by
//! the plan of the adapter.
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Edit, EditPlan, Scope};
use crate::env::Env;
use crate::error::{Exit, Explain};
use crate::fault;
use crate::files::{self, FileError, read_bounded};
use crate::ids::AgentId;
use crate::issue::{Issue, IssueKind};
use crate::paths::{path_of_text, state_dir, text_of_path};

/// The most bytes of a file that is edited: Claude Code keeps its projects' state in one of them.
pub const LONGEST: u64 = 64 << 20;
/// What the name of a folder whose record was put aside has behind it.
const ASIDE: &str = ".damaged";
/// The version of the manifest that is read and written here.
const VERSION: u32 = 1;

/// An installation or removal failed.
#[derive(Debug, thiserror::Error)]
pub enum IntegrationError {
    /// The user has no folder for state.
    #[error("there is no folder for state: neither HOME nor XDG_STATE_HOME is set")]
    NoStateFolder,
    /// A file is not what it was when the plan was made.
    #[error("{} changed while it was being edited", .0.display())]
    Moved(PathBuf),
    /// A file cannot be edited.
    #[error("{}: {}", .0.path.display(), .0.message)]
    Damaged(Issue),
    /// The record of what was there before an installation cannot be read.
    #[error("what was there before cannot be known: {}: {}", .0.path.display(), .0.message)]
    Record(Issue),
    /// Reading or writing failed.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Explain for IntegrationError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoStateFolder => "no-state-folder",
            Self::Moved(_) => "file-changed",
            Self::Damaged(_) => "file-damaged",
            Self::Record(_) => "integration-record",
            Self::File(error) => error.code(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Moved(_) => Some("nothing of that file was changed; try again".to_owned()),
            Self::NoStateFolder | Self::Damaged(_) => None,
            Self::Record(issue) => Some(way_out(issue)),
            Self::File(error) => error.hint(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Moved(_) => Exit::Conflict,
            Self::NoStateFolder | Self::Damaged(_) | Self::Record(_) | Self::File(_) => Exit::No,
        }
    }
}

/// Says what to do about a record that cannot be read.
pub fn way_out(issue: &Issue) -> String {
    if issue.kind == IssueKind::UnknownVersion {
        "a newer takeup wrote it: use that one".to_owned()
    } else if issue.is_closed() {
        let open = files::open_up(&issue.path);
        format!("it may be healthy; make it readable for yourself: {open}")
    } else {
        "`git takeup doctor --fix` puts the record aside; then the same command works by what the files themselves hold"
            .to_owned()
    }
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Files that were made, changed or removed.
    pub changed: Vec<PathBuf>,
    /// What a person has to do or know besides.
    pub notes: Vec<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    version: u32,
    files: Vec<Kept>,
    folders: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// The file, as [`text_of_path`].
    path: String,
    /// The name of the file beside the manifest that holds what was there; `None`: nothing was there.
    before: Option<String>,
    /// The permission bits that were there.
    mode: u32,
    /// SHA-256 of what was put there.
    after: Option<String>,
    /// What was there is what was there before another installation, which is taken out by now: it is not put back whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    inherited: bool,
}

/// Applies a plan and remembers what was there. A plan without edits changes nothing.
pub fn install(
    env: &Env,
    agent: &AgentId,
    scope: &Scope,
    plan: &EditPlan,
) -> Result<Done, IntegrationError> {
    let folder = folder(env, agent, scope)?;
    let mut manifest = read(&folder)?;
    let mut done = Done {
        changed: Vec::new(),
        notes: plan.notes.clone(),
    };
    for edit in plan.edits.iter().filter(|edit| edit.before != edit.after) {
        let there = current(&edit.path)?;
        if there != edit.before {
            return Err(IntegrationError::Moved(edit.path.clone()));
        }
        files::make_private_folder(&folder)?;
        let missing = missing_folders(&edit.path);
        manifest
            .folders
            .extend(missing.iter().map(|missing| text_of_path(missing)));
        let name = text_of_path(&edit.path);
        // What was there before the first of our edits is what is put back, unless somebody else wrote in between.
        let ours = |kept: &Kept| kept.path == name && kept.after == there.as_deref().map(digest);
        if !manifest.files.iter().any(ours) {
            manifest.files.retain(|kept| kept.path != name);
            let before = match &there {
                Some(bytes) => {
                    let file = format!("{}.before", digest(name.as_bytes()));
                    files::write_atomic(&folder.join(&file), bytes, 0o600)?;
                    Some(file)
                }
                None => None,
            };
            manifest.files.push(Kept {
                path: name.clone(),
                before,
                mode: mode_of(&edit.path),
                after: None,
                inherited: false,
            });
        }
        for kept in manifest.files.iter_mut().filter(|kept| kept.path == name) {
            kept.after = edit.after.as_deref().map(digest);
        }
        // Remembered first: what is there after a crash can be told from a stranger's.
        write(&folder, &manifest)?;
        make_folders(&missing)?;
        put(edit, mode_of(&edit.path))?;
        done.changed.push(edit.path.clone());
    }
    Ok(done)
}

/// Puts back what was there; where a file was edited since, applies the adapter's own plan for it. A file that is not what it
/// was when it was planned is left, as [`install`] leaves it.
pub fn uninstall(
    env: &Env,
    agent: &AgentId,
    scope: &Scope,
    plan: &EditPlan,
) -> Result<Done, IntegrationError> {
    let folder = folder(env, agent, scope)?;
    let mut manifest = read(&folder)?;
    let mut done = Done::default();
    for (edit, mode) in removal(&folder, &manifest, plan)? {
        if current(&edit.path)? != edit.before {
            return Err(IntegrationError::Moved(edit.path));
        }
        put(&edit, mode)?;
        done.changed.push(edit.path);
    }
    done.notes.clone_from(&plan.notes);
    let mut in_use = Vec::new();
    for name in manifest.folders.iter().rev() {
        let Some(made) = path_of_text(name) else {
            continue;
        };
        match fault::around("folder-remove", || std::fs::remove_dir(&made)) {
            // Folders we made go when they are empty; one that holds something of somebody stays.
            Err(_) if is_in_use(&made) => in_use.push(name.clone()),
            Err(source) if made.is_dir() => {
                return Err(FileError::new("cannot remove", &made, source).into());
            }
            _ => {}
        }
    }
    for made in plan.folders.iter().rev() {
        let _gone = std::fs::remove_dir(made);
    }
    hand_on(&folder, &in_use, &manifest.files)?;
    // A file that somebody edited since stays, and so does what is known of it: the next removal must not take it for ours.
    let stays =
        |kept: &Kept| path_of_text(&kept.path).is_some_and(|path| plan.left.contains(&path));
    manifest.files.retain(stays);
    if !manifest.files.is_empty() {
        manifest.folders.retain(|name| in_use.contains(name));
        write(&folder, &manifest)?;
    } else if folder.exists() {
        fault::around("folder-remove", || std::fs::remove_dir_all(&folder))
            .map_err(|source| FileError::new("cannot remove", &folder, source))?;
    }
    Ok(done)
}

/// Returns what [`uninstall`] would do to files. Changes nothing.
pub fn planned_removal(
    env: &Env,
    agent: &AgentId,
    scope: &Scope,
    plan: &EditPlan,
) -> Result<Vec<Edit>, IntegrationError> {
    let folder = folder(env, agent, scope)?;
    let edits = removal(&folder, &read(&folder)?, plan)?;
    Ok(edits.into_iter().map(|(edit, _)| edit).collect())
}

/// Plans a removal: each edit with the permission bits that the file has afterwards.
fn removal(
    folder: &Path,
    manifest: &Manifest,
    plan: &EditPlan,
) -> Result<Vec<(Edit, u32)>, IntegrationError> {
    let mut edits = Vec::new();
    let mut handled = Vec::new();
    for kept in manifest.files.iter().rev() {
        let Some(path) = path_of_text(&kept.path) else {
            continue;
        };
        let there = current(&path)?;
        if kept.inherited || there.as_deref().map(digest) != kept.after {
            continue;
        }
        let before = content(folder, kept)?;
        handled.push(path.clone());
        if there != before {
            let edit = Edit {
                path,
                before: there,
                after: before,
                mode: kept.mode,
            };
            edits.push((edit, kept.mode));
        }
    }
    // A link that came or went since gives the same file another name.
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let handled: Vec<PathBuf> = handled.iter().map(|path| real(path)).collect();
    let rest = plan.edits.iter().filter(|edit| {
        let known = handled.contains(&real(&edit.path));
        !known && edit.before != edit.after
    });
    edits.extend(rest.map(|edit| (edit.clone(), mode_of(&edit.path))));
    Ok(edits)
}

/// Tells whether a file that was installed does not hold any more what was put there: somebody edited it since. Nothing is
/// known of a file that was not installed from here. Of one whose record is damaged and was put aside it is known by what is
/// left of that record.
pub(super) fn edited_since(env: &Env, agent: &AgentId, scope: &Scope, edit: &Edit) -> bool {
    let Ok(folder) = folder(env, agent, scope) else {
        return false;
    };
    let name = text_of_path(&edit.path);
    let there = edit.before.as_deref().map(digest);
    read(&folder).is_ok_and(
        |manifest| match manifest.files.iter().find(|kept| kept.path == name) {
            Some(kept) => kept.after != there,
            None => there.is_some_and(|there| was_other(&folder, &there)),
        },
    )
}

/// Tells whether records were put aside, and such content stands in none of them.
fn was_other(folder: &Path, content: &str) -> bool {
    let (Some(all), Some(name)) = (folder.parent(), folder.file_name()) else {
        return false;
    };
    let aside = format!("{}{ASIDE}", name.to_string_lossy());
    let records: Vec<Vec<u8>> = std::fs::read_dir(all)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&aside))
        .map(|entry| read_bounded(&entry.path().join("manifest.json"), LONGEST))
        .map(|record| record.ok().flatten().unwrap_or_default())
        .collect();
    let holds = |record: &Vec<u8>| String::from_utf8_lossy(record).contains(content);
    !records.is_empty() && !records.iter().any(holds)
}

/// Returns what a file held before something was installed in it from here; `None` where nothing was there, or where that is
/// not known. Changes nothing.
pub fn before(env: &Env, agent: &AgentId, scope: &Scope, path: &Path) -> Option<Vec<u8>> {
    let folder = folder(env, agent, scope).ok()?;
    let name = text_of_path(path);
    let manifest = read(&folder).ok()?;
    let kept = manifest.files.into_iter().find(|kept| kept.path == name)?;
    content(&folder, &kept).ok()?
}

/// Returns the records of what was there before integrations that cannot be read. Changes nothing.
pub fn damaged(env: &Env) -> Vec<Issue> {
    let Some(all) = state_dir(env).map(|state| state.join("installed")) else {
        return Vec::new();
    };
    let folders = match std::fs::read_dir(&all) {
        Ok(folders) => folders,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![Issue::new(&all, IssueKind::Unreadable, error.to_string())],
    };
    let mut issues: Vec<Issue> = folders
        .filter_map(|folder| folder.ok().map(|folder| folder.path()))
        .filter(|folder| !is_aside(folder))
        .filter_map(|folder| match read(&folder) {
            Err(IntegrationError::Record(issue)) => Some(issue),
            Ok(_)
            | Err(
                IntegrationError::NoStateFolder
                | IntegrationError::Damaged(_)
                | IntegrationError::Moved(_)
                | IntegrationError::File(_),
            ) => None,
        })
        .collect();
    issues.sort_by(|one, other| one.path.cmp(&other.path));
    issues
}

/// Gives folders that hold something of another installation to that one: its removal is the last to leave them. `left` is
/// ordered from the innermost to the outermost. What was in a file before this installation is what was there before the
/// next one, once this one is out.
fn hand_on(own: &Path, left: &[String], files: &[Kept]) -> Result<(), IntegrationError> {
    let Some(all) = own.parent().filter(|all| all.is_dir()) else {
        return Ok(());
    };
    let fail = |source| FileError::new("cannot list", all, source);
    for entry in std::fs::read_dir(all).map_err(fail)? {
        let other = entry.map_err(fail)?.path();
        if other == own || is_aside(&other) {
            continue;
        }
        // A damaged manifest is told by its own removal, and must not stand in the way of this one.
        let Ok(mut manifest) = read(&other) else {
            continue;
        };
        let mut is_changed = false;
        for name in left {
            let below = format!("{name}/");
            let holds = manifest
                .files
                .iter()
                .any(|kept| kept.path.starts_with(&below));
            if holds && !manifest.folders.iter().any(|made| made == name) {
                manifest.folders.insert(0, name.clone());
                is_changed = true;
            }
        }
        for kept in &mut manifest.files {
            let Some(mine) = files.iter().find(|mine| mine.path == kept.path) else {
                continue;
            };
            let found = content(&other, kept)?;
            if found.as_deref().map(digest) != mine.after {
                continue;
            }
            kept.before = match content(own, mine)? {
                Some(bytes) => {
                    let file = format!("{}.before", digest(kept.path.as_bytes()));
                    files::write_atomic(&other.join(&file), &bytes, 0o600)?;
                    Some(file)
                }
                None => None,
            };
            kept.inherited = true;
            is_changed = true;
        }
        if is_changed {
            write(&other, &manifest)?;
        }
    }
    Ok(())
}

/// Returns what was in a file before an installation, as it is kept in its folder.
fn content(folder: &Path, kept: &Kept) -> Result<Option<Vec<u8>>, IntegrationError> {
    match &kept.before {
        Some(name) if is_plain(name) => {
            read_bounded(&folder.join(name), LONGEST).map_err(IntegrationError::Damaged)
        }
        _ => Ok(None),
    }
}

fn folder(env: &Env, agent: &AgentId, scope: &Scope) -> Result<PathBuf, IntegrationError> {
    let base = state_dir(env)
        .ok_or(IntegrationError::NoStateFolder)?
        .join("installed");
    Ok(match scope {
        Scope::User => base.join(format!("{agent}-user")),
        Scope::Project { root } => {
            let key = digest(text_of_path(root).as_bytes());
            base.join(format!("{agent}-{}", key.get(..16).unwrap_or_default()))
        }
    })
}

/// Tells whether the doctor put a folder aside.
fn is_aside(folder: &Path) -> bool {
    folder
        .file_name()
        .is_some_and(|name| name.to_string_lossy().contains(ASIDE))
}

/// What every version of the manifest has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

fn read(folder: &Path) -> Result<Manifest, IntegrationError> {
    let path = folder.join("manifest.json");
    let Some(bytes) = read_bounded(&path, LONGEST).map_err(IntegrationError::Record)? else {
        return Ok(Manifest {
            version: VERSION,
            ..Manifest::default()
        });
    };
    let damaged =
        |kind, message: String| IntegrationError::Record(Issue::new(&path, kind, message));
    // The version first: what a newer one means by the rest is not known.
    let manifest = serde_json::from_slice(&bytes)
        .and_then(|Versioned { version }| match version {
            VERSION => serde_json::from_slice(&bytes).map(Ok),
            other => Ok(Err(other)),
        })
        .map_err(|error| damaged(IssueKind::Corrupt, error.to_string()))?;
    manifest.map_err(|version| {
        damaged(
            IssueKind::UnknownVersion,
            format!("version {version} is not known"),
        )
    })
}

fn write(folder: &Path, manifest: &Manifest) -> Result<(), IntegrationError> {
    let path = folder.join("manifest.json");
    let bytes = serde_json::to_vec_pretty(manifest)
        .map_err(|error| FileError::new("cannot write", &path, std::io::Error::other(error)))?;
    Ok(files::write_atomic(&path, &bytes, 0o600)?)
}

fn current(path: &Path) -> Result<Option<Vec<u8>>, IntegrationError> {
    read_bounded(path, LONGEST).map_err(IntegrationError::Damaged)
}

fn mode_of(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::symlink_metadata(path).map_or(0o644, |meta| meta.mode() & 0o7777)
}

/// Tells whether a folder holds anything.
fn is_in_use(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// Returns the folders above a file that are not there, the outermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> = path
        .ancestors()
        .skip(1)
        .take_while(|folder| !folder.exists())
        .map(Path::to_path_buf)
        .collect();
    missing.reverse();
    missing
}

fn make_folders(missing: &[PathBuf]) -> Result<(), IntegrationError> {
    for folder in missing {
        #[expect(clippy::create_dir, reason = "each folder that is made is remembered")]
        match fault::around("folder-make", || std::fs::create_dir(folder)) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(FileError::new("cannot make the folder", folder, error).into());
            }
            _ => {}
        }
    }
    Ok(())
}

fn put(edit: &Edit, mode: u32) -> Result<(), IntegrationError> {
    match &edit.after {
        Some(bytes) => {
            let mode = if edit.before.is_none() {
                edit.mode
            } else {
                mode
            };
            Ok(files::write_atomic(&edit.path, bytes, mode)?)
        }
        None => Ok(files::remove(&edit.path)?),
    }
}

fn is_plain(name: &str) -> bool {
    !name.contains('/') && !name.starts_with('.')
}

fn digest(bytes: &[u8]) -> String {
    crate::text::hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests;
