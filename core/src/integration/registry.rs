//! Applies planned edits, and remembers what was there before, so that it can be put back byte for byte.
//!
//! What was there is kept in the user's state folder, one folder an installation: `manifest.json` and the old contents. An
//! uninstall puts a file back as it was if nobody touched it since; where somebody did, only our own part is taken out, by
//! the plan of the adapter. Where several installations are in one file, their records are kept in step with each other, so
//! that the last to go puts back what was there before the first.
mod others;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use self::others::Others;
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

impl Manifest {
    /// Returns what is known of a file.
    fn of(&self, name: &str) -> Option<&Kept> {
        self.files.iter().find(|kept| kept.path == name)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// The file, as [`text_of_path`].
    path: String,
    /// The name of the file beside the manifest that holds what was there; `None`: nothing was there.
    before: Option<String>,
    /// The permission bits that were there.
    mode: u32,
    /// SHA-256 of what the file held when something of takeup was put in or taken out last, as far as nobody else wrote into it.
    after: Option<String>,
    /// Other installations came or went since in a way that what was there cannot be put back whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    inherited: bool,
}

impl Kept {
    /// Tells whether this is a file that holds what it held when something of takeup changed it last.
    fn is_at(&self, name: &str, there: Option<&str>) -> bool {
        self.path == name && self.after.as_deref() == there
    }
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
    let mut others = Others::beside(&folder)?;
    let mut done = Done {
        changed: Vec::new(),
        notes: plan.notes.clone(),
    };
    if others.join(&folder, &mut manifest, &plan.present)? {
        files::make_private_folder(&folder)?;
        write(&folder, &manifest)?;
    }
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
        let old = there.as_deref().map(digest);
        let new = edit.after.as_deref().map(digest);
        let mine = manifest.files.iter_mut().find(|kept| kept.path == name);
        let is_last = mine.as_ref().is_some_and(|kept| kept.after == old);
        // What was there before the first of our edits is what is put back, unless somebody else wrote in between.
        let is_ours = match mine {
            Some(kept) if is_last => {
                kept.after.clone_from(&new);
                true
            }
            Some(_) if others.is_known(&name, old.as_deref()) => true,
            Some(_) | None => {
                manifest.files.retain(|kept| kept.path != name);
                manifest.files.push(Kept {
                    path: name.clone(),
                    before: keep(&folder, &name, there.as_deref())?,
                    mode: mode_of(&edit.path),
                    after: new.clone(),
                    inherited: false,
                });
                false
            }
        };
        // Remembered first: what is there after a crash can be told from a stranger's.
        write(&folder, &manifest)?;
        if is_ours {
            others.follow(&name, old.as_deref(), new.as_deref(), is_last)?;
        }
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
    let mut others = Others::beside(&folder)?;
    let Removal { edits, stay } = removal(&folder, &manifest, &others, plan)?;
    let mut done = Done {
        changed: Vec::new(),
        notes: plan.notes.iter().cloned().chain(notes(&stay)).collect(),
    };
    // A file that somebody edited since stays, and so does what is known of it: the next removal must not take it for ours.
    let (left, gone): (Vec<Kept>, Vec<Kept>) = std::mem::take(&mut manifest.files)
        .into_iter()
        .partition(|kept| path_of_text(&kept.path).is_some_and(|path| plan.left.contains(&path)));
    let mut ours = Vec::new();
    for kept in gone {
        let Some(path) = path_of_text(&kept.path) else {
            continue;
        };
        if !stay.iter().any(|(other, _)| *other == path) {
            ours.push((current(&path)?.as_deref().map(digest), kept));
        }
    }
    for (edit, mode) in edits {
        if current(&edit.path)? != edit.before {
            return Err(IntegrationError::Moved(edit.path));
        }
        put(&edit, mode)?;
        done.changed.push(edit.path);
    }
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
    others.hand_on(&in_use)?;
    for (old, kept) in &ours {
        others.close(&folder, kept, old.as_deref())?;
    }
    manifest.files = left;
    if !manifest.files.is_empty() {
        manifest.folders.retain(|name| in_use.contains(name));
        write(&folder, &manifest)?;
    } else if folder.exists() {
        fault::around("folder-remove", || std::fs::remove_dir_all(&folder))
            .map_err(|source| FileError::new("cannot remove", &folder, source))?;
    }
    Ok(done)
}

/// Returns what [`uninstall`] would do, and say. Changes nothing.
pub fn planned_removal(
    env: &Env,
    agent: &AgentId,
    scope: &Scope,
    plan: &EditPlan,
) -> Result<EditPlan, IntegrationError> {
    let folder = folder(env, agent, scope)?;
    let Removal { edits, stay } =
        removal(&folder, &read(&folder)?, &Others::beside(&folder)?, plan)?;
    let mut plan = plan.clone();
    plan.edits = edits.into_iter().map(|(edit, _)| edit).collect();
    plan.notes.extend(notes(&stay));
    Ok(plan)
}

/// What a removal does to files.
struct Removal {
    /// Each edit with the permission bits that the file has afterwards.
    edits: Vec<(Edit, u32)>,
    /// The files that stay, each with the agent for which it is installed, too.
    stay: Vec<(PathBuf, String)>,
}

/// Plans a removal.
fn removal(
    folder: &Path,
    manifest: &Manifest,
    others: &Others,
    plan: &EditPlan,
) -> Result<Removal, IntegrationError> {
    let mut edits = Vec::new();
    let mut stay = Vec::new();
    let mut handled = Vec::new();
    for kept in manifest.files.iter().rev() {
        let Some(path) = path_of_text(&kept.path) else {
            continue;
        };
        let there = current(&path)?;
        if kept.inherited || there.as_deref().map(digest) != kept.after {
            continue;
        }
        handled.push(path.clone());
        if let Some(holder) = others.holder(&path, there.as_deref()) {
            stay.push((path, holder.to_owned()));
            continue;
        }
        let before = content(folder, kept)?;
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
    for edit in plan.edits.iter().filter(|edit| edit.before != edit.after) {
        if handled.contains(&real(&edit.path)) {
            continue;
        }
        // A whole file that another installation put there, and nothing of it is edited: it is that one's.
        let whole = edit.before.as_deref().filter(|_| edit.after.is_none());
        match others.holder(&edit.path, whole) {
            Some(holder) => stay.push((edit.path.clone(), holder.to_owned())),
            None => edits.push((edit.clone(), mode_of(&edit.path))),
        }
    }
    Ok(Removal { edits, stay })
}

/// Says which files stay, since another installation wants them, too: by the outermost folder that one put there.
fn notes(stay: &[(PathBuf, String)]) -> Vec<String> {
    let mut all: Vec<(&Path, &str)> = stay
        .iter()
        .map(|(path, holder)| (path.parent().unwrap_or(path), holder.as_str()))
        .collect();
    all.sort_unstable();
    all.dedup_by(|(path, holder), (above, other)| path.starts_with(above) && holder == other);
    all.iter()
        .map(|(folder, holder)| {
            format!(
                "what is in {} stays: it is installed for {holder}, too",
                folder.display()
            )
        })
        .collect()
}

/// Tells whether a file was put there, as it is now, by another installation and not by this one. Changes nothing.
pub fn is_others(env: &Env, agent: &AgentId, scope: &Scope, path: &Path) -> bool {
    let looked = folder(env, agent, scope).and_then(|folder| {
        let is_own = read(&folder)?.of(&text_of_path(path)).is_some();
        let others = Others::beside(&folder)?;
        Ok(!is_own && others.holder(path, current(path)?.as_deref()).is_some())
    });
    looked.unwrap_or(false)
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
    read(&folder).is_ok_and(|manifest| match manifest.of(&name) {
        Some(kept) => kept.after != there,
        None => there.is_some_and(|there| was_other(&folder, &there)),
    })
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
    content(&folder, manifest.of(&name)?).ok()?
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

/// Keeps what is in a file before an installation; returns the name under which it is kept.
fn keep(
    folder: &Path,
    name: &str,
    there: Option<&[u8]>,
) -> Result<Option<String>, IntegrationError> {
    let Some(bytes) = there else {
        return Ok(None);
    };
    files::make_private_folder(folder)?;
    let file = format!("{}.before", digest(name.as_bytes()));
    files::write_atomic(&folder.join(&file), bytes, 0o600)?;
    Ok(Some(file))
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
