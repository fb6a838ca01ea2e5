//! Whether a task stayed inside its boundary.
use std::collections::BTreeSet;

use super::changes::{ChangedPlace, Verb};
use super::{Changed, EngineError, Site, changes};
use crate::boundary::Boundary;
use crate::fingerprint::{Look, TreeRecord};
use crate::identity::{Before, Identity, Recorded};
use crate::ids::{Oid, TaskId};
use crate::ledger::TaskEntry;
use crate::text::{command_line, count};

/// How many paths outside a boundary are told.
const TOLD: usize = 1_000;
/// How many paths are named in a sentence.
const NAMED: usize = 20;

/// The paths changed since a task began that its boundary does not allow.
#[derive(Debug)]
pub(super) struct Strayed {
    task_id: TaskId,
    boundary: Boundary,
    base: Option<Recorded>,
    before: Before,
    /// The paths, as far as they are known.
    pub(super) outside: Vec<Changed>,
    /// Those of which nothing tells whether the task changed them, or somebody else before it was taken up.
    pub(super) doubtful: Vec<Changed>,
    /// Why it is not known whether there are more, where that is so: what is not known is not inside.
    pub(super) unknown: Option<String>,
}

impl Strayed {
    /// Compares what was there when the task began with what is there.
    pub(super) fn of(site: &Site, entry: &TaskEntry, identity: &Identity, look: &Look) -> Self {
        let mut strayed = Self::until(site, &entry.task.boundary, identity, &look.record);
        strayed.outside.truncate(TOLD);
        strayed.doubtful.truncate(TOLD);
        strayed
    }

    /// Compares what was there when the task began with what was there at a later look. All paths are listed.
    pub(super) fn until(
        site: &Site,
        boundary: &Boundary,
        identity: &Identity,
        there: &TreeRecord,
    ) -> Self {
        let mut strayed = Self {
            task_id: identity.task_id.clone(),
            boundary: boundary.clone(),
            base: identity.base.clone(),
            before: identity.before.clone(),
            outside: Vec::new(),
            doubtful: Vec::new(),
            unknown: None,
        };
        if !boundary.holds() {
            return strayed;
        }
        let Some(base) = &identity.base else {
            strayed.unknown =
                Some("what was there when the session began is not recorded".to_owned());
            return strayed;
        };
        let since = |begun: &TreeRecord| {
            let root = &site.place().root;
            let git = site.repository.git();
            changes::between_most(git, root, begun, there, boundary, changes::MOST_COMPARED)
        };
        let doubts: BTreeSet<&str> = identity
            .before
            .paths
            .iter()
            .filter(|known| known.doubtful)
            .map(|known| known.path.as_str())
            .collect();
        // What was changed since the base was made is the task's, whatever was before.
        let since_base: BTreeSet<String> = if doubts.is_empty() {
            BTreeSet::new()
        } else {
            let paths = since(&base.tree).paths.into_iter();
            paths.map(|changed| changed.path).collect()
        };
        let changes = if identity.before.paths.is_empty() {
            since(&base.tree)
        } else {
            since(&identity.before.laid_over(&base.tree))
        };
        strayed.unknown = changes.incomplete.or_else(|| {
            let why = base.tree.incomplete.as_ref()?;
            Some(format!(
                "what was there when the session began was not seen whole: {why}"
            ))
        });
        let is_doubtful = |changed: &Changed| {
            doubts.contains(changed.path.as_str()) && !since_base.contains(&changed.path)
        };
        let outside = changes.paths.into_iter();
        let outside = outside.filter(|changed| !changed.inside_boundary);
        let (doubtful, outside) = outside.partition(is_doubtful);
        strayed.doubtful = doubtful;
        strayed.outside = outside;
        strayed
    }

    /// Says what nothing tells of the time before the task was taken up, where that is so: a person has to.
    pub(super) fn unclear(&self) -> Option<String> {
        let mut said = Vec::new();
        if !self.doubtful.is_empty() {
            let number = self.doubtful.len();
            let paths: Vec<&str> = self
                .doubtful
                .iter()
                .take(NAMED)
                .map(|changed| changed.path.as_str())
                .collect();
            let more = match number.saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            said.push(format!(
                "{} outside what the task may edit changed before it was taken up, and nothing tells whether the task or somebody else did it: {}{more}",
                count(number, "path", "paths"),
                paths.join(", ")
            ));
        }
        if let Some(why) = &self.before.unknown {
            said.push(format!(
                "what the task changed outside before it was taken up is not known whole: {why}"
            ));
        }
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// Returns the changed paths that the task must avoid.
    pub(super) fn avoided(&self) -> impl Iterator<Item = &Changed> {
        let outside = self.outside.iter();
        outside.filter(|changed| self.boundary.avoids(&changed.path))
    }

    /// Fails where a path that must be avoided is not as it was, or the ledger holds another boundary now than was compared.
    pub(super) fn demand_none_avoided(&self, entry: &TaskEntry) -> Result<(), EngineError> {
        let holder = entry.holder();
        if entry.task.boundary != self.boundary || !holder.is_some_and(|held| self.is_of(held)) {
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
        // The commit that has a path as it was; what was not committed then is in none. `Some(None)`: there was no commit.
        let commit = |changed: &Changed| -> Option<Option<&Oid>> {
            if let Some(known) = self.before.path(&changed.path) {
                return known.commit.as_ref().map(Some);
            }
            let mut deviations = base.deviations.iter();
            let is_other = deviations.any(|found| found.path == changed.path);
            (!is_other).then_some(base.head.as_ref())
        };
        let known: Vec<(&Changed, Option<&Oid>)> = self
            .avoided()
            .filter(|changed| !changed.path.contains('\\'))
            .filter_map(|changed| Some((changed, commit(changed)?)))
            .collect();
        let mut commands = Vec::new();
        let mut command = |words: &[&str], is_meant: &dyn Fn(&Changed, Option<&Oid>) -> bool| {
            let paths: Vec<String> = known
                .iter()
                .filter(|(changed, commit)| is_meant(changed, *commit))
                .map(|(changed, _)| from_top(&changed.path))
                .collect();
            if !paths.is_empty() {
                let words = words.iter().copied().chain(["--"]);
                let paths = paths.iter().map(String::as_str);
                commands.push(command_line(["git"].into_iter().chain(words).chain(paths)));
            }
        };
        let commits: BTreeSet<&Oid> = known.iter().filter_map(|(_, commit)| *commit).collect();
        for of in commits {
            command(&["checkout", of.as_str()], &|changed, commit| {
                commit == Some(of)
                    && changed.verb != Verb::Added
                    && changed.place != ChangedPlace::Nested
            });
        }
        command(&["rm", "-f"], &|changed, _| {
            changed.verb == Verb::Added
                && matches!(
                    changed.place,
                    ChangedPlace::Staged
                        | ChangedPlace::Unstaged
                        | ChangedPlace::Committed
                        | ChangedPlace::Restored
                )
        });
        command(&["clean", "-f"], &|changed, _| {
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
        if entry.task.boundary != self.boundary || !self.is_of(identity) {
            return Err(EngineError::Changed("the task".to_owned()));
        }
        if let Some(first) = self.outside.first() {
            return Err(EngineError::OutsideBoundary {
                task_id: self.task_id.clone(),
                path: first.path.clone(),
                more: self.outside.len().saturating_sub(1),
            });
        }
        if let Some(what) = self.unclear() {
            return Err(EngineError::BoundaryDoubtful {
                task_id: self.task_id.clone(),
                what,
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

    /// Tells whether it was this record that was compared.
    fn is_of(&self, identity: &Identity) -> bool {
        identity.base == self.base && identity.before == self.before
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
