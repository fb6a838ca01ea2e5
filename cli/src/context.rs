//! What every command is given.
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use takeup_core::agent::Agent;
use takeup_core::engine::Engine;
use takeup_core::env::Env;
use takeup_core::process::{self, Processes};
use takeup_core::redact::Masker;
use takeup_core::settings::Settings;
use takeup_core::time::{Clock, SystemClock, Time};

/// What every command is given.
pub(crate) struct Context {
    /// The environment, taken once.
    pub env: Env,
    /// The clock.
    pub clock: Box<dyn Clock>,
    /// The process table.
    pub processes: Box<dyn Processes>,
    /// The adapters.
    pub agents: Vec<Box<dyn Agent>>,
    /// The settings in effect, read when they are first asked for.
    settings: OnceLock<Settings>,
    /// The command's word.
    pub operation: &'static str,
    /// The masks for secrets of the environment, made when they are first needed.
    masker: OnceLock<Masker>,
    /// Raised when nobody waits for the answer any more.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Answer as JSON.
    pub json: bool,
    /// Ask nobody.
    pub no_input: bool,
}

impl Context {
    /// Makes the context of this process.
    pub(crate) fn of_process(json: bool, no_input: bool) -> Self {
        Self::of(Env::of_process(), json, no_input)
    }

    /// Makes the context of a call in an environment.
    pub(crate) fn of(env: Env, json: bool, no_input: bool) -> Self {
        let no_input = no_input || env.var("CI").is_some();
        Self {
            env,
            clock: Box::new(SystemClock),
            processes: Box::new(process::system()),
            agents: crate::agents::all(),
            settings: OnceLock::new(),
            operation: "takeup",
            masker: OnceLock::new(),
            interrupt: None,
            json,
            no_input,
        }
    }

    /// Returns what the use cases are given.
    pub(crate) fn engine(&self) -> Engine<'_> {
        Engine {
            env: &self.env,
            clock: &*self.clock,
            processes: &*self.processes,
            agents: &self.agents,
            settings: self.settings(),
            operation: self.operation,
            masker: &self.masker,
            interrupt: self.interrupt.as_deref(),
        }
    }

    /// Returns the settings in effect.
    pub(crate) fn settings(&self) -> &Settings {
        self.settings
            .get_or_init(|| crate::settings::load(&self.env).settings)
    }

    /// Returns the masks for secrets of the environment.
    pub(crate) fn masker(&self) -> &Masker {
        self.masker.get_or_init(|| Masker::of(&self.env))
    }

    /// Returns the present moment.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }
}
