//! What a task changed outside its boundary before it is taken up: the content it is taken up on becomes the base of what comes
//! after, and does not tell of it.
use std::collections::BTreeSet;

use super::candidate::{Candidate, Source};
use super::recorded::seen_here;
use super::stray::Strayed;
use super::{Changed, Site, changes};
use crate::boundary::Boundary;
use crate::fingerprint::{Look, TreeRecord};
use crate::identity::{Before, Identity, PathBefore, Recorded, Task};
use crate::ledger::{State, View};
use crate::verdict::Verdict;

/// How many paths are carried on.
const MOST: usize = 1_000;

/// Finds what goes on with a task besides its new base. `imported` are the records of what the ledger does not know.
///
/// What the session that left it changed outside, as far as its records tell, stays the task's. What was changed after its last
/// record is others', where it is known that the session did nothing more; else a person is asked.
pub(super) fn carried(
    site: &Site,
    view: &View,
    candidate: &Candidate,
    imported: Option<&(Task, Identity)>,
    look: &Look,
) -> Before {
    let entry = view.state.tasks.get(&candidate.identity.task_id);
    let known = entry.and_then(|entry| entry.identity(&candidate.session()));
    let source = known.or_else(|| imported.map(|(_, identity)| identity));
    let boundary = entry.map(|entry| &entry.task.boundary);
    let boundary = boundary.or_else(|| imported.map(|(task, _)| &task.boundary));
    let (Some(source), Some(boundary)) = (source, boundary) else {
        return Before::default();
    };
    if !boundary.holds() {
        return Before::default();
    }
    let compatible = candidate.verdict == Verdict::ResumeVerification;
    match &source.base {
        Some(_) if compatible => source.before.clone(),
        Some(base) => since(site, &view.state, boundary, source, base, &look.record),
        None => {
            let began_clean = match &candidate.source {
                Source::Foreign(task) => task.began_clean,
                Source::Ledger | Source::Session => false,
            };
            uncommitted(site, boundary, &look.record, compatible && began_clean)
        }
    }
}

/// What was changed outside since the task began, where its base is recorded.
fn since(
    site: &Site,
    state: &State,
    boundary: &Boundary,
    source: &Identity,
    base: &Recorded,
    there: &TreeRecord,
) -> Before {
    let is_there = Strayed::until(site, boundary, source, there);
    let mut unknown = source.before.unknown.clone();
    let (mut left, mut later) = (None, BTreeSet::new());
    if let Some(latest) = &source.latest {
        let until = Strayed::until(site, boundary, source, &latest.tree);
        let git = site.repository.git();
        let root = &site.place().root;
        let most = changes::MOST_COMPARED;
        later =
            paths_of(&changes::between_most(git, root, &latest.tree, there, boundary, most).paths);
        let seen_whole = || {
            let why = latest.tree.incomplete.as_ref()?;
            Some(format!("what was left was not seen whole: {why}"))
        };
        unknown = unknown
            .or_else(|| until.unknown.clone())
            .or_else(seen_whole);
        left = Some((paths_of(&until.outside), paths_of(&until.doubtful)));
    } else {
        unknown = unknown.or_else(|| Some("what was left is not recorded".to_owned()));
    }
    unknown = unknown.or_else(|| is_there.unknown.clone());

    let did_no_more = did_no_more(site, state, source);
    // Whether the task is in doubt to have changed a path; `None`: others did.
    let doubt = |path: &str| {
        let Some((own, doubtful)) = left.as_ref() else {
            return Some(true);
        };
        if own.contains(path) {
            return Some(later.contains(path));
        }
        (doubtful.contains(path) || !did_no_more).then_some(true)
    };
    let all = is_there.outside.iter().chain(&is_there.doubtful);
    let mut found: Vec<(&str, bool)> = all
        .filter_map(|changed| Some((changed.path.as_str(), doubt(&changed.path)?)))
        .collect();
    // Where there are too many, what is known is kept.
    found.sort_by_key(|(_, doubtful)| *doubtful);
    let begun = source.before.laid_over(&base.tree);
    let was = changes::seen_from(
        site.repository.git(),
        &begun,
        there.head.as_ref(),
        found.iter().map(|(path, _)| *path),
    );
    let was = match was {
        Ok(was) => was,
        Err(why) => {
            return Before {
                unknown: unknown.or(Some(why)),
                ..Before::default()
            };
        }
    };
    let commit = |path: &str| match source.before.path(path) {
        Some(known) => known.commit.clone(),
        None if begun.deviations.iter().any(|found| found.path == path) => None,
        None => begun.head.clone(),
    };
    let paths = found
        .iter()
        .zip(was)
        .map(|((path, doubtful), was)| PathBefore {
            path: (*path).to_owned(),
            was,
            commit: commit(path),
            doubtful: *doubtful,
        });
    bounded(paths.collect(), unknown)
}

/// What differs from HEAD outside, where it is not recorded what the task began with. `is_own`: it is known that nothing
/// differed when it began, and that what is there is what was left.
fn uncommitted(site: &Site, boundary: &Boundary, there: &TreeRecord, is_own: bool) -> Before {
    let clean = TreeRecord {
        deviations: Vec::new(),
        deviations_left_out: 0,
        ..there.clone()
    };
    let git = site.repository.git();
    let changes = changes::between(git, &site.place().root, &clean, there, boundary);
    let outside = changes.paths.iter();
    let paths = outside
        .filter(|changed| !changed.inside_boundary)
        .map(|changed| PathBefore {
            path: changed.path.clone(),
            was: None,
            commit: there.head.clone().filter(|_| is_own),
            doubtful: !is_own,
        });
    bounded(paths.collect(), changes.incomplete)
}

fn paths_of(changed: &[Changed]) -> BTreeSet<String> {
    changed.iter().map(|changed| changed.path.clone()).collect()
}

fn bounded(mut paths: Vec<PathBefore>, unknown: Option<String>) -> Before {
    let more = paths.len() > MOST;
    paths.truncate(MOST);
    Before {
        paths,
        unknown: unknown.or_else(|| more.then(|| format!("they are more than {MOST} paths"))),
        asked: None,
    }
}

/// Tells whether it is known that a session did nothing after the last record of its task: it said that it ended, or its hooks
/// told of every turn and the last of them is over.
fn did_no_more(site: &Site, state: &State, source: &Identity) -> bool {
    let recorded = source.latest.as_ref().map(|latest| latest.provenance.at);
    let told = state.session(&source.session);
    let told = told.and_then(|record| seen_here(site, record));
    match told.as_ref().and_then(|record| record.acted_at) {
        Some(at) => Some(at) <= recorded,
        None => source.closing.is_some() || told.is_some_and(|record| record.closing.is_some()),
    }
}
