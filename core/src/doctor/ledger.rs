//! The ledger: its folder, its records, what waits in it; and the hooks it knows of.
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::{Finding, Health, Remedy, Scene};
use crate::files::Staged;
use crate::hooks::{self, ByHand, HookError, HookState, Manager};
use crate::issue::IssueKind;
use crate::ledger::{Ledger, View};
use crate::text;

/// A temporary file that is so old belongs to nobody any more.
const STALE_MILLIS: i64 = 60 * 60 * 1000;
/// An observation that waits so long for its look was forgotten.
const FORGOTTEN_MILLIS: i64 = 15 * 60 * 1000;
/// A size of which `gc` should hear.
const LARGE: u64 = 64 << 20;

/// Looks at the ledger's folder. Returns whether there is one whose content can be looked at.
pub(super) fn folder(scene: &Scene<'_>, found: &mut Vec<Finding>) -> bool {
    let path = scene.place.state();
    let Ok(meta) = std::fs::symlink_metadata(&path) else {
        return true;
    };
    if let Ok(target) = std::fs::read_link(&path) {
        let gone = if path.exists() {
            ""
        } else {
            ", which is not there"
        };
        let message = format!(
            "{} is a link to {}{gone}; the ledger has to be a folder, and nothing is read or recorded",
            path.display(),
            target.display(),
        );
        let advice = if gone.is_empty() {
            "put the folder itself in the place of the link"
        } else {
            "bring the folder back in the place of the link, or remove the link and begin anew with: git takeup init"
        };
        found.push(Finding::fail("ledger-folder", message).advice(advice));
        return false;
    }
    if !meta.is_dir() {
        let message = format!(
            "{} is a file where the ledger has to be a folder: nothing is read or recorded",
            path.display()
        );
        found.push(
            Finding::fail("ledger-folder", message)
                .advice("move it out of the way, and begin anew with: git takeup init"),
        );
        return false;
    }
    let mode = meta.permissions().mode() & 0o777;
    if mode.trailing_zeros() >= 6 {
        found.push(Finding::ok(
            "ledger-folder",
            format!("{} is private", path.display()),
        ));
    } else {
        found.push(
            Finding::warn(
                "ledger-folder",
                format!("{} has mode {mode:03o}: others may read it", path.display()),
            )
            .advice("`--fix` makes it 700")
            .remedy(Remedy::MakePrivate { path: path.clone() }),
        );
    }
    let ledger = Ledger::at(&path);
    if let Some(holder) = ledger.lock_holder() {
        found.push(
            Finding::warn("ledger-lock", format!("the ledger is locked by {holder}")).advice(
                "it is freed by itself when its holder ends; the file is never to be deleted",
            ),
        );
    }
    let lock = ledger.lock_path();
    if std::fs::symlink_metadata(&lock).is_ok_and(|data| !data.is_file()) {
        found.push(
            Finding::fail(
                "ledger-lock",
                format!("{} is no file: nothing can be recorded", lock.display()),
            )
            .advice("`--fix` puts it aside; the next writer makes the file anew")
            .remedy(Remedy::MoveAside {
                to: path.join("damaged-lock"),
                path: lock,
            }),
        );
    }
    let aside = ledger.aside().unwrap_or_else(|error| {
        found.push(Finding::of("ledger-temporary", Health::Warn, &error));
        Vec::new()
    });
    let mut kept = 0_usize;
    for file in aside {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with(Staged::PREFIX) {
            kept += 1;
            continue;
        }
        found.extend(left_behind(scene, "ledger-temporary", file));
    }
    if kept > 0 {
        found.push(
            Finding::warn(
                "ledger-aside",
                format!(
                    "{} kept in {}",
                    text::count(kept, "damaged piece is", "damaged pieces are"),
                    path.display()
                ),
            )
            .advice("look at them (torn-…, damaged-…); `git takeup gc` removes them after 30 days"),
        );
    }
    true
}

/// Makes the finding for a temporary file that is too old to belong to a process that still works.
fn left_behind(scene: &Scene<'_>, check: &str, file: PathBuf) -> Option<Finding> {
    let modified = std::fs::symlink_metadata(&file).and_then(|meta| meta.modified());
    let since = modified.ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    let then = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    let is_old = scene.engine.clock.now().millis().saturating_sub(then) > STALE_MILLIS;
    is_old.then(|| {
        let message = format!("{} was left by a killed process", file.display());
        Finding::warn(check, message)
            .advice("`--fix` removes it")
            .remedy(Remedy::RemoveTemporary { path: file })
    })
}

/// Reads the ledger. `None` where it cannot be read at all.
pub(super) fn records(scene: &Scene<'_>, found: &mut Vec<Finding>) -> Option<View> {
    let path = scene.place.state();
    let view = match Ledger::at(&path).read() {
        Ok(view) => view,
        Err(error) => {
            found.push(Finding::of("ledger", Health::Fail, &error));
            return None;
        }
    };
    for issue in &view.issues {
        // Without the rest it goes on by what the other files hold.
        let until = if issue.path == Ledger::at(&path).journal_path() {
            "until then nothing is recorded here"
        } else {
            "until then it goes by what the other files hold, and records go on"
        };
        let message = format!("{}: {}", issue.path.display(), issue.message);
        let finding = if issue.kind == IssueKind::Torn {
            Finding::warn("ledger", message).advice(
                "nothing that was acknowledged is in it; the next record mends it, and `--fix` does so now",
            )
        } else if issue.kind == IssueKind::ForeignOwner {
            // Nothing is damaged, and more than this may belong to that user.
            found.push(Finding::fail("ledger", message).advice(format!(
                "make it yours: {}; {until}",
                crate::files::give(&path)
            )));
            continue;
        } else if matches!(issue.kind, IssueKind::Unreadable | IssueKind::TooLarge) {
            // It may be healthy: nothing of ours may take its place.
            found.push(Finding::fail("ledger", message).advice(format!(
                "make it readable for yourself (owner, mode) and look again; {until}"
            )));
            continue;
        } else {
            Finding::fail("ledger", message)
                .advice("the healthy records are used; `--fix` puts the damaged ones aside and writes the healthy ones anew")
        };
        found.push(finding.remedy(Remedy::RewriteSnapshot { path: path.clone() }));
    }
    let spare = Ledger::at(&path).examine().unwrap_or_else(|error| {
        found.push(Finding::of("ledger-spare", Health::Warn, &error));
        Vec::new()
    });
    for issue in spare.iter().filter(|issue| !view.issues.contains(issue)) {
        found.push(
            Finding::warn(
                "ledger-spare",
                format!("{}: {}", issue.path.display(), issue.message),
            )
            .advice("it is needed for a task in the archive, or after further damage, alone; nothing else rests on it"),
        );
    }
    if view.issues.is_empty() {
        let tasks = view.state.tasks.len();
        found.push(Finding::ok(
            "ledger",
            format!(
                "{}, {}",
                text::count(
                    usize::try_from(view.seq).unwrap_or(usize::MAX),
                    "record",
                    "records"
                ),
                text::count(tasks, "task", "tasks")
            ),
        ));
    }
    if let Some(loss) = view.loss(&path) {
        let message = format!("{}: {}", path.display(), loss.message);
        found.push(
            Finding::warn("ledger-lost", message)
                .advice("look at what was put aside, and at each task with `git takeup show`; `--fix` takes note, and this is said no more")
                .remedy(Remedy::ForgetLosses {
                    path: path.clone(),
                    records: view.state.lost,
                }),
        );
    }
    let undecided = view.state.pending.len();
    if undecided > 0 {
        found.push(
            Finding::warn(
                "ledger-effects",
                format!(
                    "{} not yet shown in the agents' own files",
                    text::count(undecided, "decision is", "decisions are")
                ),
            )
            .advice("the next command of takeup that writes here shows them; if they stay, their files are locked or cannot be written"),
        );
    }
    let now = scene.engine.clock.now();
    let waiting = view
        .state
        .observations
        .iter()
        .filter(|seen| {
            seen.pending
                && Some(&seen.worktree_id) == scene.tokens.worktree.as_ref()
                && now.since(seen.at) > FORGOTTEN_MILLIS
        })
        .count();
    if waiting > 0 {
        found.push(
            Finding::warn(
                "observations",
                format!(
                    "{} for a look at the content",
                    text::count(
                        waiting,
                        "observation of a git hook still waits",
                        "observations of git hooks still wait"
                    )
                ),
            )
            .advice("the next hook settles them; `--fix` does so now")
            .remedy(Remedy::SettleObservations {
                observations: waiting,
            }),
        );
    }
    let bytes = crate::gc::size_of(&path);
    if bytes > LARGE {
        found.push(
            Finding::warn(
                "ledger-size",
                format!("{} holds {} MiB", path.display(), bytes >> 20),
            )
            .advice("see what may go with: git takeup gc --dry-run"),
        );
    }
    Some(view)
}

fn unreadable_hooks(error: &HookError) -> Finding {
    let finding = Finding::of("hooks", Health::Fail, error);
    if finding.advice.is_some() {
        return finding;
    }
    finding.advice("look at what stands there; nothing was changed")
}

/// Says how a hook that was displaced runs again.
fn put_back(what: Option<&ByHand>, run: &[String]) -> String {
    let mut text = match what {
        Some(what) => what.text(),
        None => {
            "look at what took its place; put it back with: git takeup hooks install".to_owned()
        }
    };
    if !run.is_empty() {
        let run = run.join("\n");
        text.push_str(&format!(
            "\nor, where that setting is not wanted, run:\n{run}"
        ));
    }
    text
}

pub(super) fn hooks(scene: &Scene<'_>, view: &View, found: &mut Vec<Finding>) {
    let recorded = view.state.hooks.values();
    match hooks::temporary_files(scene.place, scene.repository.git(), recorded) {
        Ok(files) => {
            let files = files.into_iter();
            found.extend(files.filter_map(|file| left_behind(scene, "hooks-temporary", file)));
        }
        Err(error) => {
            found.push(unreadable_hooks(&error));
            return;
        }
    }
    let version = scene
        .repository
        .program("to know its version")
        .and_then(crate::repository::GitProgram::version);
    let Ok(version) = version else {
        return;
    };
    let hooks = match hooks::status(scene.repository, version, &view.state) {
        Ok(hooks) => hooks,
        Err(error) => {
            found.push(unreadable_hooks(&error));
            return;
        }
    };
    if hooks.iter().all(|hook| hook.state == HookState::Absent) {
        found.push(
            Finding::warn(
                "hooks",
                "no git hook is installed: what happens between sessions has no name",
            )
            .advice("install them with: git takeup hooks install"),
        );
        return;
    }
    if let Some((first, rest)) = hooks.split_first()
        && let HookState::NotRun { why, run } = &first.state
        && rest.iter().all(|hook| hook.state == first.state)
    {
        let advice = if run.is_empty() {
            "take the obstacle away; whether they run then says: git takeup hooks status".to_owned()
        } else {
            format!("run:\n{}", run.join("\n"))
        };
        found.push(Finding::warn("hooks", format!("no git hook runs: {why}")).advice(advice));
        return;
    }
    if let Some(failure) = hooks.iter().find_map(|hook| hook.failure.as_ref()) {
        found.push(
            Finding::warn(
                "hooks-failed",
                format!("what the hooks call failed the last time, and nothing was recorded: {}", failure.text()),
            )
            .advice(if failure.said.is_some() {
                "what it says of it is to be looked at: the hooks themselves run; the next commit shows whether it is over".to_owned()
            } else {
                format!(
                    "what it could say itself stands in {}; see whether it answers: {} version; where it does not, install takeup again, and then run: git takeup hooks install; the next commit shows whether it runs",
                    scene.place.state().join("log").display(),
                    crate::paths::text_of_path(&failure.program),
                )
            }),
        );
    }
    let running = hooks.iter().filter(|hook| hook.runs()).count();
    if running == hooks.len() {
        found.push(Finding::ok("hooks", format!("{running} git hooks run")));
    }
    for hook in &hooks {
        let check = format!("hook-{}", hook.event);
        if let HookState::Installed {
            missing_program: Some(program),
            ..
        } = &hook.state
        {
            found.push(
                Finding::warn(
                    check.clone(),
                    format!(
                        "it calls {}, which is gone or cannot be executed; git-takeup is looked for on PATH",
                        program.display()
                    ),
                )
                .advice("bring it up to date with: git takeup hooks install"),
            );
        }
        let (message, advice) = match &hook.state {
            HookState::Installed { .. } | HookState::ByHand { .. } => continue,
            HookState::Absent => (
                "it is not installed".to_owned(),
                "git takeup hooks install".to_owned(),
            ),
            HookState::Missing { what } => (
                if what.manager == Manager::Own {
                    "what stands there cannot be joined".to_owned()
                } else {
                    format!(
                        "{} manages it and does not call takeup",
                        what.manager.name()
                    )
                },
                what.text(),
            ),
            HookState::Displaced {
                by,
                since,
                what,
                run,
            } => (
                match since {
                    Some(since) => format!("it was displaced by {by}, since {since}"),
                    None => format!("it was displaced by {by}"),
                },
                put_back(what.as_ref(), run),
            ),
            HookState::NotRun { why, run } => (
                format!("it is there and does not run: {why}"),
                if run.is_empty() {
                    "take the obstacle away; whether it runs then says: git takeup hooks status"
                        .to_owned()
                } else {
                    format!("run:\n{}", run.join("\n"))
                },
            ),
        };
        found.push(Finding::warn(check, message).advice(advice));
    }
    let Some(worktree) = &scene.tokens.worktree else {
        return;
    };
    if let Ok(Some(unseen)) = hooks::unseen_head(scene.repository, &view.state, worktree) {
        let what = unseen
            .reason
            .as_deref()
            .map(|reason| format!(": {}", text::one_line(reason, 80)))
            .unwrap_or_default();
        found.push(
            Finding::warn("hooks-missed", format!("HEAD moved without a hook having seen it{what}"))
                .advice("a reset calls no hook; for anything else see whether the hooks run: git takeup hooks status"),
        );
        return;
    }
    let missed = hooks::unseen_commits(scene.place, &view.state, worktree);
    if let Some(last) = missed.last() {
        found.push(
            Finding::warn(
                "hooks-missed",
                format!(
                    "{} made without a hook having seen it, the last: {}",
                    text::count(missed.len(), "commit was", "commits were"),
                    text::one_line(&last.reason, 80)
                ),
            )
            .advice("was the program gone then, or were the hooks left out? whether they run now says: git takeup hooks status"),
        );
    }
}
