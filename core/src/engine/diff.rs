//! `diff`: what changed since a task was left. Reads only.
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::candidate::RecordView;
use super::changes::{Changes, between};
use super::{Caller, Elsewhere, Engine, EngineError, Site, select};
use crate::files::read_bounded;
use crate::ids::{Oid, TaskId};
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

/// Compares the present content with what a task's last session left. With `patch` the text of the changes too, as far as
/// what was left is in git's object database.
pub fn diff(
    engine: &Engine<'_>,
    task: Option<&str>,
    from: Option<&str>,
    session: Option<&str>,
    patch: bool,
) -> Result<DiffView, EngineError> {
    let site = Site::open_used(engine)?;
    let caller = Caller::find(engine, session, None, None)?;
    let state = &site.view.state;
    let identity = match (task, from) {
        (Some(text), None) => select::task(state, text)?
            .holder()
            .ok_or_else(|| EngineError::NoTask(text.to_owned()))?,
        (task, Some(from)) => {
            let only = task.map(|text| select::task(state, text)).transpose()?;
            state
                .tasks
                .values()
                .filter(|entry| only.is_none_or(|only| only.task.task_id == entry.task.task_id))
                .flat_map(|entry| &entry.identities)
                .rfind(|identity| select::names(from, &identity.session))
                .ok_or_else(|| EngineError::NoSession(from.to_owned()))?
        }
        (None, None) => select::own_one(&site, state, &caller, None)?,
    };
    if let Some(there) = Elsewhere::of(&site, identity)?
        && !there.whereabouts.is_compared()
    {
        return Err(EngineError::HeldElsewhere(there));
    }
    let Some(left) = &identity.latest else {
        return Err(EngineError::NotAllowed(format!(
            "nothing was recorded of the content that session {} left",
            identity.session
        )));
    };
    let look = site.look(engine, false, false)?;
    if let Some(why) = &look.record.incomplete {
        return Err(EngineError::Incomplete(why.clone()));
    }
    let boundary = state
        .tasks
        .get(&identity.task_id)
        .map(|entry| entry.task.boundary.clone())
        .unwrap_or_default();
    let root = &site.place().root;
    let git = site.repository.git();
    let changes = between(git, root, &left.tree, &look.record, &boundary).masked(engine);
    let patches = if patch {
        changes
            .paths
            .iter()
            .map(|changed| {
                make(
                    &site,
                    root,
                    &changed.path,
                    changed.left.as_ref(),
                    &left.tree,
                )
            })
            .collect()
    } else {
        Vec::new()
    };
    let mut since = observation::since(
        &state.observations,
        &identity.place.worktree_id,
        left.provenance.at,
    );
    for happening in &mut since {
        happening.what = engine.mask(&happening.what);
    }
    Ok(DiffView {
        task_id: identity.task_id.clone(),
        session_id: identity.session.id.to_string(),
        left: RecordView::of(left, engine.clock.now()),
        equal: left.tree.same_content(&look.record),
        changes,
        since,
        patches,
    })
}

fn make(
    site: &Site,
    root: &Path,
    path: &str,
    left: Option<&Oid>,
    tree: &crate::fingerprint::TreeRecord,
) -> PathPatch {
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
    let blob = |oid: &Oid| {
        let id = git2::Oid::from_str(oid.as_str()).ok()?;
        repository
            .find_blob(id)
            .ok()
            .map(|blob| blob.content().to_vec())
    };
    // Where the left side is as HEAD was, HEAD's own tree has it.
    let old = if let Some(oid) = left {
        let Some(bytes) = blob(oid) else {
            return none("what was left was never stored in git: only its fingerprint is known");
        };
        bytes
    } else {
        let known = tree.deviations.iter().any(|found| found.path == path);
        let head = tree
            .head
            .as_ref()
            .and_then(|head| git2::Oid::from_str(head.as_str()).ok());
        head.filter(|_| !known)
            .and_then(|head| {
                repository
                    .find_commit(head)
                    .ok()?
                    .tree()
                    .ok()?
                    .get_path(&relative)
                    .ok()
            })
            .and_then(|entry| {
                repository
                    .find_blob(entry.id())
                    .ok()
                    .map(|blob| blob.content().to_vec())
            })
            .unwrap_or_default()
    };
    let new = match read_bounded(&root.join(&relative), LARGEST) {
        Ok(bytes) => bytes.unwrap_or_default(),
        Err(issue) => return none(&issue.message),
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
    match patch {
        Ok(text) => PathPatch {
            path: path.to_owned(),
            patch: Some(text),
            why: None,
        },
        Err(error) => none(error.message()),
    }
}
