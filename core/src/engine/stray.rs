//! Whether a task stayed inside its boundary.
use super::changes::{ChangedPlace, Verb};
use super::{Changed, EngineError, Site, changes};
use crate::boundary::Boundary;
use crate::fingerprint::Look;
use crate::identity::{Identity, Recorded};
use crate::ids::TaskId;
use crate::ledger::TaskEntry;
use crate::text::command_line;

/// How many paths of commits are compared with a boundary: all of any work that is one task.
const MOST_PATHS: usize = 100_000;
/// How many paths outside a boundary are told.
const TOLD: usize = 1_000;

/// The paths changed since a task began that its boundary does not allow.
#[derive(Debug)]
pub(super) struct Strayed {
    task_id: TaskId,
    boundary: Boundary,
    base: Option<Recorded>,
    /// The paths, as far as they are known.
    pub(super) outside: Vec<Changed>,
    /// Why it is not known whether there are more, where that is so: what is not known is not inside.
    pub(super) unknown: Option<String>,
}

impl Strayed {
    /// Compares what was there when the task began with what is there.
    pub(super) fn of(site: &Site, entry: &TaskEntry, identity: &Identity, look: &Look) -> Self {
        let boundary = &entry.task.boundary;
        let mut strayed = Self {
            task_id: identity.task_id.clone(),
            boundary: boundary.clone(),
            base: identity.base.clone(),
            outside: Vec::new(),
            unknown: None,
        };
        if boundary.allowed.is_empty() && boundary.avoided.is_empty() {
            return strayed;
        }
        let Some(base) = &identity.base else {
            strayed.unknown =
                Some("what was there when the session began is not recorded".to_owned());
            return strayed;
        };
        let changes = changes::between_most(
            site.repository.git(),
            &site.place().root,
            &base.tree,
            &look.record,
            boundary,
            MOST_PATHS,
        );
        strayed.unknown = changes.incomplete.or_else(|| {
            let why = base.tree.incomplete.as_ref()?;
            Some(format!(
                "what was there when the session began was not seen whole: {why}"
            ))
        });
        let outside = changes
            .paths
            .into_iter()
            .filter(|changed| !changed.inside_boundary);
        strayed.outside = outside.take(TOLD).collect();
        strayed
    }

    /// Returns the changed paths that the task must avoid.
    pub(super) fn avoided(&self) -> impl Iterator<Item = &Changed> {
        let outside = self.outside.iter();
        outside.filter(|changed| self.boundary.avoids(&changed.path))
    }

    /// Fails where a path that must be avoided is not as it was, or the ledger holds another boundary now than was compared.
    pub(super) fn demand_none_avoided(&self, entry: &TaskEntry) -> Result<(), EngineError> {
        let base = entry.holder().and_then(|holder| holder.base.as_ref());
        if entry.task.boundary != self.boundary || base != self.base.as_ref() {
            return Err(EngineError::Changed("the task".to_owned()));
        }
        match self.avoided().next() {
            Some(first) => Err(EngineError::OutsideBoundary {
                task_id: self.task_id.clone(),
                path: first.path.clone(),
                more: self.avoided().count().saturating_sub(1),
            }),
            None => Ok(()),
        }
    }

    /// Returns commands that put the paths back that must be avoided, as far as git has what was there. They mean the same from
    /// every folder of the work tree.
    pub(super) fn put_back(&self) -> Vec<String> {
        let Some(base) = self.base.as_ref().map(|base| &base.tree) else {
            return Vec::new();
        };
        // What was not committed when the session began is in no commit.
        let in_head = |changed: &&Changed| {
            !base
                .deviations
                .iter()
                .any(|found| found.path == changed.path)
        };
        let plain = |changed: &&Changed| !changed.path.contains('\\');
        let known: Vec<&Changed> = self.avoided().filter(in_head).filter(plain).collect();
        let mut commands = Vec::new();
        let mut command = |words: &[&str], is_meant: &dyn Fn(&Changed) -> bool| {
            let paths: Vec<String> = known
                .iter()
                .filter(|changed| is_meant(changed))
                .map(|changed| from_top(&changed.path))
                .collect();
            if !paths.is_empty() {
                let words = words.iter().copied().chain(["--"]);
                let paths = paths.iter().map(String::as_str);
                commands.push(command_line(["git"].into_iter().chain(words).chain(paths)));
            }
        };
        if let Some(head) = &base.head {
            let there = |changed: &Changed| {
                changed.verb != Verb::Added && changed.place != ChangedPlace::Nested
            };
            command(&["checkout", head.as_str()], &there);
        }
        command(&["rm", "-f"], &|changed| {
            changed.verb == Verb::Added
                && matches!(
                    changed.place,
                    ChangedPlace::Staged | ChangedPlace::Unstaged | ChangedPlace::Committed
                )
        });
        command(&["clean", "-f"], &|changed| {
            changed.verb == Verb::Added && changed.place == ChangedPlace::Untracked
        });
        commands
    }

    /// Fails where the task is not known to have stayed inside. `entry` and `identity` are what the ledger holds now; where
    /// they are not what was compared, somebody was at work meanwhile.
    pub(super) fn demand_none(
        &self,
        entry: &TaskEntry,
        identity: &Identity,
    ) -> Result<(), EngineError> {
        if entry.task.boundary != self.boundary || identity.base != self.base {
            return Err(EngineError::Changed("the task".to_owned()));
        }
        if let Some(first) = self.outside.first() {
            return Err(EngineError::OutsideBoundary {
                task_id: self.task_id.clone(),
                path: first.path.clone(),
                more: self.outside.len().saturating_sub(1),
            });
        }
        match &self.unknown {
            Some(why) => Err(EngineError::BoundaryUnknown {
                task_id: self.task_id.clone(),
                why: why.clone(),
            }),
            None => Ok(()),
        }
    }
}

/// Writes a path as git takes it from every folder of the work tree (`gitglossary(7)`, pathspec).
fn from_top(path: &str) -> String {
    if path.contains(['*', '?', '[']) {
        format!(":(top,literal){path}")
    } else {
        format!(":/{path}")
    }
}
