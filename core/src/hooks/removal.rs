//! What a removal would change.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::by_hand::{by_hand, calling_lines};
use super::entry::Entry;
use super::folder::{Folder, folder};
use super::join::{kept_path, named};
use super::plan::{Change, Installation, Outcome, Plan, user_config};
use super::seen::{Seen, target};
use super::shell::{is_wrapped, line_in};
use super::{EVENTS, HookError, leftovers, manager, stub};
use crate::ledger::InstalledHook;
use crate::paths::text_of_path;
use crate::repository::Place;

/// Plans the removal of everything that was installed here, of whichever kind. Twice equals once.
///
/// `recorded` are the ledger's records by name: hooks are also taken out of the folders they were put into then.
pub fn plan_uninstall(
    what: &Installation<'_>,
    recorded: &BTreeMap<String, InstalledHook>,
) -> Result<Plan, HookError> {
    let place = what.repository.place();
    let git = what.repository.git();
    let mut plan = Plan::default();
    let config = if what.global {
        user_config(what.env)
    } else {
        place.common_dir.join("config")
    };
    let config = std::fs::canonicalize(&config).unwrap_or(config);
    let before = Seen::at(&config)?;
    let mut in_config = false;
    if let Seen::File { bytes, mode } = &before
        && let Some(found) = stub::find(bytes)
    {
        in_config = true;
        plan.changes.push(Change::Write {
            path: config.clone(),
            after: stub::removed(bytes, found),
            mode: *mode,
            before,
            config: true,
        });
    }
    let folders = leftovers::folders(place, git, recorded.values())?;
    if !what.global {
        plan.folders.clone_from(&folders);
        plan.folders.push(place.common_dir.clone());
    }
    let looked_at = folder(place, git)?;
    for event in EVENTS {
        let mut from = in_config.then(|| config.display().to_string());
        for folder in folders.iter().filter(|_| !what.global) {
            let path = folder.join(event);
            // pre-commit and prek, and lefthook, give a hook that they find these names.
            for file in [path.clone(), named(&path, ".legacy"), named(&path, ".old")] {
                if out_of_file(&mut plan, &file, &kept_path(&path))? && from.is_none() {
                    from = Some(file.display().to_string());
                }
            }
        }
        let event = event.to_owned();
        let of_event = recorded.iter().filter(|(_, hook)| hook.name == event);
        plan.records
            .extend(of_event.map(|(name, _)| (name.clone(), None)));
        let by_hand = if from.is_none() && !what.global {
            by_hand_in(place, &looked_at, &event)?
        } else {
            None
        };
        plan.outcomes.push(match (from, by_hand) {
            (Some(place), _) => Outcome::Taken { event, place },
            (None, Some(file)) => Outcome::Stays {
                lines: calling_lines(&file, &event),
                place: text_of_path(&file),
                event,
            },
            (None, None) => Outcome::None { event },
        });
    }
    if !what.global {
        let made = leftovers::made_folders(place, recorded.values()).into_iter();
        plan.changes
            .extend(made.map(|path| Change::RemoveFolder { path }));
        plan.notes
            .extend(leftovers::left_elsewhere(recorded.values(), &folders));
    }
    Ok(plan)
}

/// Returns the file in which a person added a call that runs.
fn by_hand_in(place: &Place, folder: &Folder, event: &str) -> Result<Option<PathBuf>, HookError> {
    let path = folder.path.join(event);
    let (content, mode) = match Seen::at(&path)? {
        Seen::File { bytes, mode } => (bytes, mode),
        Seen::Link { .. } => target(&path).unwrap_or_default(),
        Seen::Nothing | Seen::Other => (Vec::new(), 0),
    };
    if let Some(manager) = folder.manager.or_else(|| manager::of_hook(&content)) {
        let what = by_hand(manager, place, &folder.path, event);
        return Ok(what.done.then_some(what.file));
    }
    let runs = mode & 0o111 != 0
        && stub::find(&content).is_none()
        && line_in(&content, event) == Entry::Runs;
    Ok(runs.then_some(path))
}

/// Takes our text out of a file; what was kept beside the hook takes the place of a file that is ours alone.
fn out_of_file(plan: &mut Plan, path: &Path, kept: &Path) -> Result<bool, HookError> {
    let before = Seen::at(path)?;
    let Seen::File { bytes, mode } = &before else {
        return Ok(false);
    };
    let Some(found) = stub::find(bytes) else {
        return Ok(false);
    };
    let rest = if is_wrapped(bytes).is_some() {
        // A condition or a function without a command in it is no good shell.
        [
            stub::before(bytes, found),
            b":\n",
            stub::behind(bytes, found),
        ]
        .concat()
    } else {
        stub::without(bytes)
    };
    let restores = |change: &Change| matches!(change, Change::Restore { from, .. } if from == kept);
    if !stub::is_empty_file(&rest) {
        plan.changes.push(Change::Write {
            path: path.to_path_buf(),
            after: rest,
            mode: *mode,
            before,
            config: false,
        });
    } else if Seen::at(kept)? == Seen::Nothing || plan.changes.iter().any(restores) {
        plan.changes.push(Change::Remove {
            path: path.to_path_buf(),
            before,
        });
    } else {
        plan.changes.push(Change::Restore {
            from: kept.to_path_buf(),
            to: path.to_path_buf(),
        });
    }
    Ok(true)
}
