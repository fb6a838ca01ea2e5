//! Whether a commit runs its hooks: hook managers put away what is not staged meanwhile, and then the work tree holds less
//! than anybody left in it.
//!
//! Git names the index that is being committed to the hooks of a commit (githooks(5), `GIT_INDEX_FILE`). So a hook is what has
//! that variable below a git command that was started without it.
//!
//! # Limitations
//! - Hooks of other commands (`pre-push`, `pre-rebase`) have no such sign.
//! - A commit of another user, or in another pid namespace, does not show its environment.
use std::path::Path;
use std::time::Duration;

use bstr::ByteSlice as _;

use super::{ProcessIdentity, Processes};

const INDEX: &str = "GIT_INDEX_FILE";
/// So many hooks are waited for, one after the other: a commit has five.
const HOOKS: usize = 8;

/// A commit whose hook runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningCommit {
    /// The git command.
    pub git: ProcessIdentity,
    /// What it called and waits for.
    pub hook: ProcessIdentity,
}

/// Finds the commit whose hook a process was called by. `chain` is that process and those above it.
pub fn commit_above(processes: &dyn Processes, chain: &[ProcessIdentity]) -> Option<RunningCommit> {
    chain.windows(2).enumerate().find_map(|(at, pair)| {
        let [called, git] = pair else { return None };
        // Whoever calls `git takeup` with the variable set is in no hook; a git command with it set that calls others may be
        // a commit.
        let is_hook = is_git(git)
            && processes.variable(called.pid, INDEX).is_some()
            && (at > 0 || processes.variable(git.pid, INDEX).is_none())
            && !writes_message(processes, called);
        is_hook.then(|| RunningCommit {
            git: git.clone(),
            hook: called.clone(),
        })
    })
}

/// Finds a commit in a work tree, by its real path, whose hook runs now. Those in `chain` do not count.
fn commit_beside(
    processes: &dyn Processes,
    root: &Path,
    chain: &[ProcessIdentity],
) -> Option<RunningCommit> {
    let everyone = processes.everyone().ok()?;
    let works_here = |git: &&ProcessIdentity| {
        is_git(git)
            && !chain.iter().any(|own| own.is(git))
            && processes.variable(git.pid, INDEX).is_none()
            // Git goes to the top of the work tree first.
            && processes
                .details(git.pid)
                .and_then(|details| details.cwd)
                .is_some_and(|cwd| cwd == root)
    };
    everyone.iter().filter(works_here).find_map(|git| {
        let is_hook = |called: &&ProcessIdentity| {
            processes
                .parent(called.pid)
                .is_ok_and(|parent| parent == Some(git.pid))
                && processes.variable(called.pid, INDEX).is_some()
                && !writes_message(processes, called)
        };
        everyone.iter().find(is_hook).map(|hook| RunningCommit {
            git: git.clone(),
            hook: hook.clone(),
        })
    })
}

/// Takes a look at a work tree while no commit runs its hooks there: waits for the end of each hook, so long. Returns the
/// commit that did not let it. A hook in `chain`, which is the caller and those above it, is not waited for.
pub fn undisturbed<T, E>(
    processes: &dyn Processes,
    root: &Path,
    chain: &[ProcessIdentity],
    patience: Duration,
    mut look: impl FnMut() -> Result<T, E>,
) -> Result<Result<T, RunningCommit>, E> {
    let mut hooks = 0;
    loop {
        if let Some(running) = commit_beside(processes, root, chain) {
            hooks += 1;
            let is_over = processes.wait_end(&running.hook, patience).unwrap_or(false);
            if hooks > HOOKS || !is_over {
                return Ok(Err(running));
            }
            continue;
        }
        let seen = look()?;
        // One may have begun in the middle of it.
        if commit_beside(processes, root, chain).is_none() {
            return Ok(Ok(seen));
        }
    }
}

fn is_git(process: &ProcessIdentity) -> bool {
    process.name.as_deref() == Some("git")
}

/// Tells whether a process is the editor of a commit's message, which is told the same: it may be open for hours, and no hook
/// runs meanwhile. Hooks that look at the message are given its file as well.
fn writes_message(processes: &dyn Processes, called: &ProcessIdentity) -> bool {
    processes.details(called.pid).is_some_and(|details| {
        let is_message = details.command.last().is_some_and(|last| {
            let file = Path::new(last);
            file.is_absolute() && file.ends_with("COMMIT_EDITMSG")
        });
        let is_hook =
            |word: &std::ffi::OsString| word.as_encoded_bytes().contains_str("commit-msg");
        is_message && !details.command.iter().any(is_hook)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::ancestors;
    use crate::process::fake::FakeProcesses;

    fn table(with_index: &[u32]) -> FakeProcesses {
        let mut table = FakeProcesses::new()
            .with(10, 1, 1, "bash")
            .with(11, 10, 2, "git")
            .with(12, 11, 3, "sh")
            .with(13, 12, 4, "git")
            .with(14, 13, 5, "git-takeup");
        for pid in with_index {
            let process = table.table.get_mut(pid).unwrap();
            process
                .variables
                .insert(INDEX.to_owned(), ".git/index".into());
        }
        table
    }

    fn above(table: &FakeProcesses, pid: u32) -> Option<u32> {
        let chain = ancestors(table, pid).unwrap();
        commit_above(table, &chain).map(|running| running.git.pid)
    }

    #[test]
    fn a_hook_is_what_git_names_an_index_to() {
        assert_eq!(above(&table(&[]), 14), None);
        assert_eq!(above(&table(&[12, 13, 14]), 14), Some(11));
        // Where the hook hands nothing on.
        assert_eq!(above(&table(&[12]), 14), Some(11));
        // It is the program itself.
        assert_eq!(above(&table(&[12]), 12), Some(11));
        // An index that somebody else named: `git takeup` with it, and a commit with it.
        assert_eq!(above(&table(&[13, 14]), 14), None);
        assert_eq!(above(&table(&[11, 12, 13, 14]), 14), Some(11));
    }
}
