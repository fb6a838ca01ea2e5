//! The use cases, one function each: the only thing a face calls.
//!
//! Each goes the same way: gather facts (repository, fingerprint, ledger, agents), apply a pure rule, append one line,
//! return an outcome. Nothing slow happens while the ledger's lock is held.
mod again;
mod before;
mod caller;
mod candidate;
mod candidates;
mod changes;
mod close;
mod compared;
mod diff;
mod effects;
mod elsewhere;
mod error;
mod folder;
mod handover;
mod hook;
mod import;
mod inspect;
mod life;
mod meant;
mod others;
mod plan;
mod prove;
mod recorded;
mod resume;
mod review;
mod running;
mod select;
mod settled;
mod show;
mod site;
mod start;
mod stray;
mod taken;
mod unseen;
mod untold;
mod views;
mod whose;

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use caller::{Caller, Which};
pub use candidate::{Candidate, IdentityView, ReasonView, RecordView};
pub use changes::{Changed, ChangedPlace, Changes, Modes, Verb};
pub use close::{AbandonRequest, Closed, FinishRequest, abandon, finish};
pub use diff::{DiffView, PathPatch, diff};
pub use elsewhere::Elsewhere;
pub use error::{Choice, EngineError};
pub use folder::{folder_in, top};
pub use handover::{Delivered, gather, hand_over};
pub use hook::{agent_hook, is_used_at, notice};
pub use inspect::{InspectRequest, Inspection, RepositoryView, inspect};
pub use plan::{PlanEdit, edit_plan, plan_of, plan_to_prove};
pub use prove::{
    CheckView, Evaluation, NextStep, RunReport, add_evidence, evaluate, looked, next, present,
};
pub use recorded::recorded_sessions;
pub use resume::{Begin, Confirm, ResumeRequest, Resumed, resume, resume_and_begin};
pub use review::{
    BOUNDARY, DecideRequest, Decided, NotBack, REASON_CODES, ReviewRequest, ReviewView, decide,
    request_review, review_meant, reviews,
};
pub use running::{AgentRunningView, EndedView, Running, RunningView, repository_id};
pub use show::{LogLine, TaskView, log, show};
pub use site::{InitMode, Initialised, Site, init, look_here, losses};
pub use start::{
    AddNoteRequest, LONGEST_NOTE, SaveRequest, Saved, StartRequest, Started, add_note, save, start,
};
pub use unseen::is_content;
pub use untold::{Untold, untold};
pub use views::NextView;

use crate::agent::Agent;
use crate::boundary::Boundary;
use crate::env::Env;
use crate::process::Processes;
use crate::redact::Masker;
use crate::settings::Settings;
use crate::time::Clock;

/// What every use case is given.
#[derive(Clone, Copy)]
pub struct Engine<'a> {
    /// The environment of the call.
    pub env: &'a Env,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// The process table.
    pub processes: &'a dyn Processes,
    /// The adapters.
    pub agents: &'a [Box<dyn Agent>],
    /// The settings in effect.
    pub settings: &'a Settings,
    /// What is being done, in a word, for those who wait for the ledger's lock.
    pub operation: &'a str,
    /// The masks for secrets of that environment, made when they are first needed.
    pub masker: &'a OnceLock<Masker>,
    /// Raised by the caller to end a look at the tree early: nothing is recorded then.
    pub interrupt: Option<&'a AtomicBool>,
}

impl std::fmt::Debug for Engine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("env", self.env)
            .field("settings", self.settings)
            .finish_non_exhaustive()
    }
}

/// How long a writer waits for the ledger's lock.
pub const PATIENCE: Duration = Duration::from_secs(5);

impl Engine<'_> {
    fn masker(&self) -> &Masker {
        self.masker.get_or_init(|| Masker::of(self.env))
    }

    /// Reads path patterns as they are meant in the folder of the call. Refuses those that cannot be used, or that hold a secret:
    /// masked, they would name other paths.
    fn read_globs(&self, globs: &[String]) -> Result<Vec<String>, EngineError> {
        if globs.is_empty() {
            return Ok(Vec::new());
        }
        let folder = folder_in(&top(self)?, &self.env.cwd);
        let read = |glob: &String| {
            let masked = self.mask(glob);
            let meant = Boundary::given_in(&folder, glob)
                .map_err(|error| EngineError::NotAllowed(self.mask(&error.to_string())))?;
            if crate::redact::is_masked(&masked) {
                return Err(EngineError::NotAllowed(format!(
                    "a path pattern may not hold a secret: {masked}"
                )));
            }
            Ok(meant)
        };
        globs.iter().map(read).collect()
    }

    /// Masks secrets in a text before it is kept or shown.
    fn mask(&self, text: &str) -> String {
        self.masker().text(text).text
    }
}
