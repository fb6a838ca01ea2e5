//! `start` called again: which task a title means, and whether that task is what is asked for.
use super::{Elsewhere, EngineError, Site};
use crate::boundary::Boundary;
use crate::identity::{Identity, Task};
use crate::ids::{SessionRef, TaskId};
use crate::ledger::{State, TaskEntry};
use crate::plan::Plan;
use crate::text::command_line;

/// Finds the unfinished task that a title means, in the session that calls. Fails where another session holds it, or it was
/// left at another place. A title that differs by more than case and white space means another task, also where both would have
/// the same id.
pub(super) fn unfinished<'a>(
    site: &Site,
    state: &'a State,
    session: &SessionRef,
    title: &str,
) -> Result<Option<(&'a TaskEntry, &'a Identity)>, EngineError> {
    let own = |entry: &'a TaskEntry| {
        let known = entry.identity(session);
        known.filter(|identity| !identity.status.is_closed())
    };
    let folded = folded(title);
    let is_id = |entry: &TaskEntry| entry.task.task_id.as_str() == title;
    let mut same: Vec<&TaskEntry> = state
        .tasks
        .values()
        .filter(|entry| !entry.is_closed())
        .filter(|entry| is_id(entry) || self::folded(&entry.task.title) == folded)
        .collect();
    // Whose own it is goes before what another session holds.
    same.sort_by_key(|entry| (own(entry).is_none(), !is_id(entry)));
    let Some(entry) = same.first().copied() else {
        return Ok(None);
    };
    let found = own(entry).or_else(|| entry.holder());
    let Some(found) = found else {
        return Err(EngineError::NoTask(entry.task.task_id.to_string()));
    };
    if let Some(there) = Elsewhere::of(site, found)? {
        return Err(EngineError::TaskExistsElsewhere(there));
    }
    if &found.session != session {
        return Err(EngineError::TaskExists {
            task_id: entry.task.task_id.clone(),
            holder: found.session.clone(),
        });
    }
    Ok(Some((entry, found)))
}

/// Returns the closed task of the same title that was changed last, if there is one.
pub(super) fn closed_before(state: &State, title: &str) -> Option<TaskId> {
    let folded = folded(title);
    let closed = state.tasks.values().filter(|entry| entry.is_closed());
    let same = closed.filter(|entry| self::folded(&entry.task.title) == folded);
    same.max_by_key(|entry| entry.seq)
        .map(|entry| entry.task.task_id.clone())
}

/// Writes a title so that one which differs in case and white space alone is the same.
fn folded(title: &str) -> String {
    let words: Vec<&str> = title.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// Fails where a task that is going on lacks something that is asked for. What is not asked for is not compared: who asks with
/// fewer words means the same task.
pub(super) fn demand_same(
    task: &Task,
    plan: &Plan,
    boundary: &Boundary,
) -> Result<(), EngineError> {
    let id = task.task_id.as_str();
    let (mut missing, mut ways) = (Vec::new(), Vec::new());
    let planned = |command: &String| {
        task.plan
            .checks
            .iter()
            .any(|known| &known.command == command)
    };
    for check in &plan.checks {
        if !planned(&check.command) {
            missing.push(format!("the check {}", check.command));
            let words = [
                "git",
                "takeup",
                "plan",
                "add",
                "--task",
                id,
                "--",
                &check.command,
            ];
            ways.push(format!("`{}` adds the check", command_line(words)));
        }
    }
    if plan.no_checks && !task.plan.no_checks {
        missing.push("that nothing has to be proved".to_owned());
        let words = ["git", "takeup", "plan", "add", "--no-checks", "--task", id];
        ways.push(format!("`{}` empties the plan", command_line(words)));
    }
    let added: Vec<&String> = task
        .boundary
        .raised
        .iter()
        .flat_map(|raise| &raise.added)
        .collect();
    let began: Vec<&String> = task
        .boundary
        .allowed
        .iter()
        .filter(|glob| !added.contains(glob))
        .collect();
    let differs = |asked: &[String], has: &[&String]| {
        !asked.is_empty()
            && (asked.iter().any(|glob| !has.contains(&glob))
                || has.iter().any(|glob| !asked.contains(glob)))
    };
    let avoided: Vec<&String> = task.boundary.avoided.iter().collect();
    for (option, asked, has) in [
        ("--allow", &boundary.allowed, &began),
        ("--avoid", &boundary.avoided, &avoided),
    ] {
        if differs(asked, has) {
            missing.push(format!(
                "the boundary {option} {}",
                asked.join(&format!(" {option} "))
            ));
        }
    }
    if missing.iter().any(|what| what.starts_with("the boundary")) {
        ways.push(
            "a boundary is only widened, by a person: ask with `git takeup review request --allow GLOB`"
                .to_owned(),
        );
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(EngineError::TaskDiffers {
        task_id: task.task_id.clone(),
        missing,
        ways,
    })
}
