//! What happened without a hook having seen it.
use schemars::JsonSchema;
use serde::Serialize;

use super::HookError;
use crate::ids::{Oid, WorktreeId};
use crate::ledger::{InstalledHook, State};
use crate::observation::Observation;
use crate::repository::{LastMove, Place, Repository, last_moves};
use crate::time::Time;

/// HEAD moved, and no hook has seen it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnseenMove {
    /// Where HEAD was when a hook last saw it.
    pub seen: Option<Oid>,
    /// Where it is.
    pub head: Option<Oid>,
    /// When it moved last, where git's own log says so.
    pub at: Option<Time>,
    /// What git was doing then.
    pub reason: Option<String>,
}

/// Tells whether HEAD moved without a hook having seen it, by comparing the last observation of this work tree with HEAD
/// and with git's own log. `None` where no hook was ever installed, or where nothing was missed.
///
/// Moves that call no hook (`git reset`) count as well: the answer is about what is not in the ledger.
pub fn unseen_head(
    repository: &Repository,
    state: &State,
    worktree: &WorktreeId,
) -> Result<Option<UnseenMove>, HookError> {
    let Some(installed) = first_installed(state) else {
        return Ok(None);
    };
    let head = repository.git().head()?.commit;
    // What was seen before the hooks were taken out and put in again says nothing of the time between.
    let last = seen_since(state, installed)
        .iter()
        .rev()
        .find(|seen| &seen.worktree_id == worktree);
    let moves = last_moves(repository.place(), "HEAD");
    let missed = match last {
        Some(last) => last.head_after != head,
        None => !since(&moves, installed).is_empty(),
    };
    let moved = moves.last();
    Ok(missed.then(|| UnseenMove {
        seen: last.and_then(|last| last.head_after.clone()),
        head,
        at: moved.map(|moved| moved.at),
        reason: moved.map(|moved| moved.reason.clone()),
    }))
}

/// Returns the commits of this work tree, oldest first, that no hook saw although hooks were installed: git's own log has them
/// and the ledger does not. What came before the observations that are kept is not known.
pub fn unseen_commits(place: &Place, state: &State, worktree: &WorktreeId) -> Vec<LastMove> {
    let Some(installed) = first_installed(state) else {
        return Vec::new();
    };
    let seen: Vec<&Observation> = state
        .observations
        .iter()
        .filter(|seen| &seen.worktree_id == worktree)
        .collect();
    let known_since = seen
        .first()
        .filter(|_| state.observations.len() >= State::OBSERVATIONS)
        .map(|first| second(first.at));
    let moves = last_moves(place, "HEAD");
    since(&moves, installed)
        .into_iter()
        .filter(|moved| known_since.is_none_or(|known| second(moved.at) > known))
        .filter(|moved| moved.reason.starts_with("commit"))
        .filter(|moved| {
            !seen
                .iter()
                .any(|one| one.head_after.as_ref() == Some(&moved.after))
        })
        .cloned()
        .collect()
}

fn first_installed(state: &State) -> Option<&InstalledHook> {
    // Without those that were put into another place since.
    let present = state
        .hooks
        .iter()
        .filter(|(name, hook)| **name == hook.name);
    present
        .map(|(_, hook)| hook)
        .min_by_key(|hook| hook.installed_at)
}

/// Returns the observations from an installation on, in the order in which they were made: where the clock was set back in
/// between, the time alone would leave some out. That an installed hook ran is known of it, and a new installation knows nothing
/// of that.
fn seen_since<'a>(state: &'a State, installed: &InstalledHook) -> &'a [Observation] {
    let is_since = |seen: &Observation| {
        let hook = state.hooks.get(&seen.event);
        seen.at >= installed.installed_at || hook.is_some_and(|hook| hook.last_ran == Some(seen.at))
    };
    let first = state.observations.iter().position(is_since);
    let first = first.unwrap_or(state.observations.len());
    state.observations.get(first..).unwrap_or_default()
}

/// Git writes its log to the second.
fn second(at: Time) -> i64 {
    at.millis().div_euclid(1000)
}

/// Returns the moves that came after an installation. Of those in its very second, the last that begins where HEAD was then
/// is the first.
fn since<'a>(moves: &'a [LastMove], installed: &InstalledHook) -> Vec<&'a LastMove> {
    let then = second(installed.installed_at);
    let begins = |moved: &LastMove| {
        second(moved.at) == then
            && installed.head.is_some()
            && moved.before == installed.head
            && moved.before.as_ref() != Some(&moved.after)
    };
    let first = moves.iter().rposition(begins).unwrap_or(moves.len());
    let is_later = |(at, moved): &(usize, &LastMove)| {
        second(moved.at) > then || (second(moved.at) == then && *at >= first)
    };
    let later = moves.iter().enumerate().filter(is_later);
    later.map(|(_, moved)| moved).collect()
}
