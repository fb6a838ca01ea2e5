//! What every command is given.
use takeup_core::agent::Agent;
use takeup_core::env::Env;
use takeup_core::time::{Clock, SystemClock};

/// What every command is given.
pub(crate) struct Context {
    /// The environment, taken once.
    pub env: Env,
    /// The clock.
    pub clock: Box<dyn Clock>,
    /// The adapters.
    pub agents: Vec<Box<dyn Agent>>,
    /// Answer as JSON.
    pub json: bool,
    /// Ask nobody.
    pub no_input: bool,
}

impl Context {
    /// Makes the context of this process.
    pub(crate) fn of_process(json: bool, no_input: bool) -> Self {
        let env = Env::of_process();
        let no_input = no_input || env.var("CI").is_some();
        Self {
            env,
            clock: Box::new(SystemClock),
            agents: crate::agents::all(),
            json,
            no_input,
        }
    }
}
