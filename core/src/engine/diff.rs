//! `diff`: what changed since a task was left. Reads only.
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::candidate::{Candidate, RecordView};
use super::candidates::Gatherer;
use super::changes::{Changed, ChangedPlace, Changes, Modes, Verb, between};
use super::recorded::seen_here;
use super::{Caller, Elsewhere, Engine, EngineError, Site, select, untold, whose};
use crate::boundary::Boundary;
use crate::files::read_beneath;
use crate::fingerprint::TreeRecord;
use crate::identity::{Identity, Recorded};
use crate::ids::{Oid, SessionRef, TaskId, WorktreeId};
use crate::observation::{self, Happening};
use crate::paths::path_of_text;

/// The largest file of which a patch is made, in bytes.
const LARGEST: u64 = 1 << 20;

/// The answer of `diff`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffView {
    /// The task.
    pub task_id: TaskId,
    /// The session that left it.
    pub session_id: String,
    /// When and how what was left was recorded.
    pub left: RecordView,
    /// The content is what was left.
    pub equal: bool,
    /// What changed.
    pub changes: Changes,
    /// What git's hooks saw of this work tree since it was left, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub since: Vec<Happening>,
    /// The patches that were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<PathPatch>,
}

/// The patch of one path.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathPatch {
    /// The path.
    pub path: String,
    /// The patch, as text; `null` where none can be made.
    pub patch: Option<String>,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Compares the present content with what a task's last session left, or a session that holds no task here. With `patch` the text of the changes too, as far as
/// what was left is in git's object database.
pub fn diff(
    engine: &Engine<'_>,
    task: Option<&str>,
    from: Option<&str>,
    session: Option<&str>,
    patch: bool,
) -> Result<DiffView, EngineError> {
    let site = Site::open(engine)?;
    let caller = Caller::find(engine, session, None, None)?;
    let state = &site.view.state;
    let found = if site.is_used() {
        held(&site, &caller, task, from)
    } else {
        Err(site.unused(task))
    };
    let (look, left) = match found {
        Ok(identity) => (None, of_identity(&site, identity)?),
        Err(error) => {
            let none = matches!(
                error,
                EngineError::NoTask(_)
                    | EngineError::NoTasks
                    | EngineError::NoSession(_)
                    | EngineError::HoldsNothing { .. }
                    | EngineError::NotInitialised { .. }
            );
            if !none {
                return Err(error);
            }
            let look = site.look(engine, false, false)?;
            let gatherer = Gatherer::new(engine, &site, &caller, &look);
            let meant = from.map(|from| gatherer.meant(&site.view, from));
            let by_word = meant.as_deref().filter(|meant| Some(*meant) != from);
            let by_word = by_word.map(|meant| held(&site, &caller, task, Some(meant)));
            let left = if let Some(Ok(identity)) = by_word {
                of_identity(&site, identity)?
            } else {
                let found = untold::left(&gatherer, task, meant.as_deref())?;
                let [only] = found.as_slice() else {
                    return Err(error);
                };
                let Some(left) = of_session(&site, only) else {
                    return Err(nothing_recorded(&only.session()));
                };
                left
            };
            (Some(look), left)
        }
    };
    let Left {
        task_id,
        session,
        worktree,
        recorded,
        boundary,
    } = left;
    let Some(left) = &recorded else {
        return Err(nothing_recorded(&session));
    };
    let look = match look {
        Some(look) => look,
        None => site.look(engine, false, false)?,
    };
    if let Some(why) = &look.record.incomplete {
        return Err(EngineError::Incomplete(why.clone()));
    }
    let root = &site.place().root;
    let git = site.repository.git();
    let mut changes = between(git, root, &left.tree, &look.record, &boundary).masked(engine);
    whose::name(&mut changes, state, &session, &worktree, left);
    if let Some(repository) = site.repository.libgit2() {
        for changed in &mut changes.paths {
            add_modes(changed, repository, &left.tree, &look.record);
        }
    }
    let patches = if patch {
        changes
            .paths
            .iter()
            .map(|changed| make(&site, root, changed, &left.tree, &look.record))
            .collect()
    } else {
        Vec::new()
    };
    let mut since = observation::since(&state.observations, &worktree, left.provenance.at);
    for happening in &mut since {
        happening.what = engine.mask(&happening.what);
    }
    Ok(DiffView {
        task_id,
        session_id: session.id.to_string(),
        left: RecordView::of(left, &session, engine.clock.now()),
        equal: left.tree.same_content(&look.record),
        changes,
        since,
        patches,
    })
}

/// What was left, and by whom.
struct Left {
    task_id: TaskId,
    session: SessionRef,
    worktree: WorktreeId,
    recorded: Option<Recorded>,
    boundary: Boundary,
}

/// Finds the identity that is meant.
fn held<'a>(
    site: &'a Site,
    caller: &Caller,
    task: Option<&str>,
    from: Option<&str>,
) -> Result<&'a Identity, EngineError> {
    let state = &site.view.state;
    match (task, from) {
        (Some(text), None) => select::task(state, text)?
            .holder()
            .ok_or_else(|| EngineError::NoTask(text.to_owned())),
        (task, Some(from)) => {
            let only = task.map(|text| select::task(state, text)).transpose()?;
            state
                .tasks
                .values()
                .filter(|entry| only.is_none_or(|only| only.task.task_id == entry.task.task_id))
                .flat_map(|entry| &entry.identities)
                .rfind(|identity| select::names(from, &identity.session))
                .ok_or_else(|| EngineError::NoSession(from.to_owned()))
        }
        (None, None) => select::to_read(site, state, caller),
    }
}

/// What the ledger holds of an identity that lies where it can be compared.
fn of_identity(site: &Site, identity: &Identity) -> Result<Left, EngineError> {
    if let Some(there) = Elsewhere::of(site, identity)?
        && !there.whereabouts.is_compared()
    {
        return Err(EngineError::HeldElsewhere(there));
    }
    let entry = site.view.state.tasks.get(&identity.task_id);
    let boundary = entry.map(|entry| entry.task.boundary.clone());
    Ok(Left {
        task_id: identity.task_id.clone(),
        session: identity.session.clone(),
        worktree: identity.place.worktree_id.clone(),
        recorded: identity.latest.clone(),
        boundary: boundary.unwrap_or_default(),
    })
}

/// What hooks recorded of a session that holds no task of that name; `None` where they recorded nothing here.
fn of_session(site: &Site, candidate: &Candidate) -> Option<Left> {
    let session = candidate.session();
    let record = site.view.state.session(&session)?;
    let record = seen_here(site, record)?;
    Some(Left {
        task_id: candidate.identity.task_id.clone(),
        session,
        worktree: record.place.worktree_id.clone(),
        recorded: record.latest.clone(),
        boundary: Boundary::default(),
    })
}

fn nothing_recorded(session: &SessionRef) -> EngineError {
    EngineError::NotAllowed(format!(
        "nothing was recorded of the content that session {session} left"
    ))
}

fn make(
    site: &Site,
    root: &Path,
    changed: &Changed,
    tree: &TreeRecord,
    there: &TreeRecord,
) -> PathPatch {
    let path = changed.path.as_str();
    let none = |why: &str| PathPatch {
        path: path.to_owned(),
        patch: None,
        why: Some(why.to_owned()),
    };
    let Some(repository) = site.repository.libgit2() else {
        return none("git's object database cannot be read here without the git program");
    };
    let Some(relative) = path_of_text(path) else {
        return none("the path cannot be read back");
    };
    let blob = |oid: &Oid| blob_of(repository, git2::Oid::from_str(oid.as_str()).ok()?);
    // Where the left side is as HEAD was, HEAD's own tree has it.
    let old = if let Some(oid) = &changed.left {
        let Some(bytes) = blob(oid) else {
            return none("what was left was never stored in git: only its fingerprint is known");
        };
        bytes
    } else {
        let is_as_head = !tree.deviations.iter().any(|found| found.path == path);
        if is_as_head && changed.place == ChangedPlace::Nested && changed.verb != Verb::Added {
            return none("it lies in another repository, whose git has what was left");
        }
        is_as_head
            .then(|| of_head(repository, tree, &relative))
            .flatten()
            .and_then(|entry| blob_of(repository, entry.id()))
            .unwrap_or_default()
    };
    let new = match read_beneath(root, &relative, LARGEST) {
        Ok(bytes) => bytes.unwrap_or_default(),
        Err(issue) => return none(&issue.message),
    };
    let committed = || of_head(repository, there, &relative).map(|entry| entry.id());
    let id = match &changed.there {
        Some(oid) => git2::Oid::from_str(oid.as_str()).ok(),
        None => committed(),
    };
    let Some(new) = in_git_form(new, id.filter(|_| changed.verb != Verb::Deleted)) else {
        return none("git's form of it is another than that of the file, and is not stored in git");
    };
    if old.len() as u64 > LARGEST || old.contains(&0) || new.contains(&0) {
        return none("binary or large");
    }
    let options = &mut git2::DiffOptions::new();
    let patch =
        git2::Patch::from_buffers(&old, Some(&relative), &new, Some(&relative), Some(options))
            .and_then(|mut patch| {
                patch
                    .to_buf()
                    .map(|buffer| String::from_utf8_lossy(&buffer).into_owned())
            });
    let side = match changed.verb {
        Verb::Added => Some((there, "new")),
        Verb::Deleted => Some((tree, "deleted")),
        Verb::Modified => None,
    };
    match patch {
        Ok(text) => PathPatch {
            path: path.to_owned(),
            patch: Some(match side {
                Some((record, word)) => {
                    let mode = mode_of(repository, record, path);
                    of_one_side(&text, changed, word, mode.as_deref())
                }
                None => with_modes(text, changed),
            }),
            why: None,
        },
        Err(error) => none(error.message()),
    }
}

fn blob_of(repository: &git2::Repository, id: git2::Oid) -> Option<Vec<u8>> {
    let blob = repository.find_blob(id).ok()?;
    Some(blob.content().to_vec())
}

/// Finds a path in the commit that HEAD named at a look.
fn of_head(
    repository: &git2::Repository,
    record: &TreeRecord,
    path: &Path,
) -> Option<git2::TreeEntry<'static>> {
    let head = git2::Oid::from_str(record.head.as_ref()?.as_str()).ok()?;
    let tree = repository.find_commit(head).ok()?.tree().ok()?;
    tree.get_path(path).ok()
}

/// Finds the bytes that git has of a file's content, by the id that the look gave them: the file's own, or those with the
/// line ends that git stores. `None` where a filter makes others of them.
fn in_git_form(bytes: Vec<u8>, id: Option<git2::Oid>) -> Option<Vec<u8>> {
    let Some(id) = id else {
        return Some(bytes);
    };
    let is_it = |bytes: &[u8]| {
        git2::Oid::hash_object(git2::ObjectType::Blob, bytes).is_ok_and(|found| found == id)
    };
    if is_it(&bytes) {
        return Some(bytes);
    }
    let mut unix = Vec::with_capacity(bytes.len());
    for (number, byte) in bytes.iter().enumerate() {
        if *byte != b'\r' || bytes.get(number + 1) != Some(&b'\n') {
            unix.push(*byte);
        }
    }
    is_it(&unix).then_some(unix)
}

/// Finds the mode of a path at a look, in octal; `None` where it was not there, or nothing is known.
fn mode_of(repository: &git2::Repository, record: &TreeRecord, path: &str) -> Option<String> {
    let mut deviations = record.deviations.iter();
    if let Some(found) = deviations.find(|found| found.path == path) {
        return found.mode.clone();
    }
    let entry = of_head(repository, record, &path_of_text(path)?)?;
    Some(format!("{:06o}", entry.filemode()))
}

/// Names the modes of a change where what was left is as HEAD had it.
fn add_modes(
    changed: &mut Changed,
    repository: &git2::Repository,
    left: &TreeRecord,
    there: &TreeRecord,
) {
    if changed.verb != Verb::Modified || changed.place == ChangedPlace::Nested {
        return;
    }
    let mode = |record| mode_of(repository, record, &changed.path);
    if let Some(modes) = Modes::of(mode(left), mode(there)) {
        changed.modes = Some(modes);
    }
}

/// Says in a patch, as git does, that one side does not have the file, so that it is made or removed where the patch is
/// applied. `word` is git's for it.
fn of_one_side(patch: &str, changed: &Changed, word: &str, mode: Option<&str>) -> String {
    let is_new = changed.verb == Verb::Added;
    let (header, hunks) = match patch.find("\n@@") {
        Some(end) => patch.split_at(end + 1),
        None => (patch, ""),
    };
    // Of an empty file there is no patch yet.
    let first = header.lines().next().map_or_else(
        || format!("diff --git a/{0} b/{0}", changed.path),
        ToOwned::to_owned,
    );
    let mut out = format!("{first}\n{word} file mode {}\n", mode.unwrap_or("100644"));
    for line in header.lines().skip(1) {
        let ids = line.strip_prefix("index ").and_then(|ids| {
            let (old, new) = ids.split(' ').next()?.split_once("..")?;
            let nothing = "0".repeat(old.len());
            Some(if is_new {
                format!("index {nothing}..{new}")
            } else {
                format!("index {old}..{nothing}")
            })
        });
        let line = match ids {
            Some(ids) => ids,
            None if is_new && line.starts_with("--- ") => "--- /dev/null".to_owned(),
            None if !is_new && line.starts_with("+++ ") => "+++ /dev/null".to_owned(),
            None => line.to_owned(),
        };
        out.push_str(&line);
        out.push('\n');
    }
    out + hunks
}

/// Says in a patch, as git does, that the mode changed.
fn with_modes(patch: String, changed: &Changed) -> String {
    let Some(modes) = &changed.modes else {
        return patch;
    };
    let modes = format!("old mode {}\nnew mode {}\n", modes.left, modes.there);
    match patch.split_once('\n') {
        Some((first, rest)) => format!("{first}\n{modes}{rest}"),
        None => format!("diff --git a/{0} b/{0}\n{modes}", changed.path),
    }
}
