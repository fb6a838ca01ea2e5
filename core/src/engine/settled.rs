//! The look of those who record what is left, close a task or take one up: not while a commit runs its hooks.
use std::time::Duration;

use super::{Caller, Engine, EngineError, Site};
use crate::fingerprint::Look;
use crate::process::{commit_above, undisturbed};

/// How long each hook of a commit of somebody else is waited for: less than an agent lets its own hooks run.
const PATIENCE: Duration = Duration::from_secs(2);

impl Site {
    /// As [`Site::look`], of the content that is there when no commit runs its hooks: what is not staged may be put away
    /// meanwhile. Fails with [`EngineError::CommitRuns`] inside such a hook, and where one does not end soon.
    pub(super) fn settled_look(
        &self,
        engine: &Engine<'_>,
        caller: &Caller,
        write: bool,
        verify: bool,
    ) -> Result<Look, EngineError> {
        let runs = |git: u32| EngineError::CommitRuns { git };
        if let Some(commit) = commit_above(engine.processes, &caller.ancestors) {
            return Err(runs(commit.git.pid));
        }
        let root = &self.place().root;
        undisturbed(engine.processes, root, &caller.ancestors, PATIENCE, || {
            self.look(engine, write, verify)
        })?
        .map_err(|commit| runs(commit.git.pid))
    }
}
