//! The tools: each is a command with typed arguments. [`run`] is the only place where one is carried out.
mod input;
mod list;
mod schema;
mod yes;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rmcp::model::JsonObject;
use serde_json::Value;
use takeup_core::env::Env;
use takeup_core::error::Exit;

use super::ask::Question;
use crate::args;
use crate::context::Context;
use crate::reply::{Failure, Reply};

pub(super) use list::{all, find};
pub(super) use schema::definition;

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marks {
    /// Looks only.
    Reads,
    /// Writes records; the same call again changes nothing more.
    Repeatable,
    /// Writes records; the same call again writes more.
    Adds,
    /// Ends or gives up something.
    Ends,
}

/// Which question a tool may put to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    /// Take the task up?
    TakeUp,
    /// Approve or reject?
    Decide,
}

/// A tool.
pub(super) struct Tool {
    /// The name.
    pub name: &'static str,
    title: &'static str,
    description: &'static str,
    marks: Marks,
    /// The field of the data that is a list, shown in parts.
    pub list: Option<&'static str>,
    asks: Option<Asks>,
    /// It starts a command of the caller's; off unless the user's settings allow it.
    pub runs: bool,
    input: fn() -> JsonObject,
    output: fn() -> JsonObject,
    words: fn(JsonObject, &Call) -> Result<Words, Failure>,
}

impl Tool {
    /// Tells whether it may ask a person.
    pub(super) const fn asks(&self) -> bool {
        self.asks.is_some()
    }
}

/// Who calls, and where.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The environment, with the folder of the call.
    pub env: Env,
    /// The agent.
    pub agent: String,
    /// The session.
    pub session: Option<String>,
    /// The process that stands for the session.
    pub pid: Option<u32>,
    /// Raised when nobody waits for the answer any more.
    pub interrupt: Option<Arc<AtomicBool>>,
}

impl Call {
    /// Makes the context in which the command runs: it answers as data and asks nobody by itself.
    pub(super) fn context(&self) -> Context {
        let mut context = Context::of(self.env.clone(), true, true);
        context.operation = "mcp";
        context.interrupt.clone_from(&self.interrupt);
        context
    }
}

/// The words of a command: options first, then what is no option however it looks.
#[derive(Clone, Debug, Default)]
struct Words {
    options: Vec<String>,
    rest: Vec<String>,
}

impl Words {
    /// Begins with the command's name, and its action.
    fn of(command: &[&str]) -> Self {
        Self {
            options: command.iter().map(|word| (*word).to_owned()).collect(),
            rest: Vec::new(),
        }
    }

    /// Adds an option with a value, where there is one.
    fn with(mut self, name: &str, value: Option<&str>) -> Self {
        self.options
            .extend(value.map(|value| format!("--{name}={value}")));
        self
    }

    /// Adds an option as often as there are values.
    fn each(mut self, name: &str, values: &[String]) -> Self {
        self.options
            .extend(values.iter().map(|value| format!("--{name}={value}")));
        self
    }

    /// Adds an option without a value.
    fn when(mut self, name: &str, set: bool) -> Self {
        self.options.extend(set.then(|| format!("--{name}")));
        self
    }

    /// Adds who calls.
    fn by(self, call: &Call) -> Self {
        self.with("session", call.session.as_deref())
            .with("agent", Some(&call.agent))
    }

    /// Adds the process that stands for the session.
    fn alive(self, call: &Call) -> Self {
        let pid = call.pid.map(|pid| pid.to_string());
        self.with("pid", pid.as_deref())
    }

    /// Adds a word that is no option.
    fn then(mut self, word: impl Into<String>) -> Self {
        self.rest.push(word.into());
        self
    }

    fn all(&self) -> Vec<String> {
        let mut all = self.options.clone();
        if !self.rest.is_empty() {
            all.push("--".to_owned());
            all.extend(self.rest.iter().cloned());
        }
        all
    }
}

/// What came of a tool.
pub(super) enum Step {
    /// The command's outcome.
    Done(Result<Reply, Failure>),
    /// A person has to say yes first; nothing was changed.
    Ask(Box<Question>),
}

/// A yes to the question that this same call gave.
#[derive(Clone, Debug)]
pub(super) struct Yes {
    /// What was confirmed.
    pub subject: String,
    /// It is the calling model's own word, which the user's settings let count.
    pub of_model: bool,
}

/// Runs a tool. `yes` is what was confirmed.
pub(super) fn run(tool: &Tool, arguments: JsonObject, call: &Call, yes: Option<&Yes>) -> Step {
    let context = call.context();
    if tool.runs && !context.settings().mcp_run {
        return Step::Done(Err(Failure::new(
            "not-allowed",
            Exit::No,
            "starting commands through MCP is off",
        )
        .hint("run it with `git takeup bg run` in a shell; the user can allow it with `git config --global takeup.mcpRun true`")));
    }
    let words = match (tool.words)(arguments.clone(), call) {
        Ok(words) => words,
        Err(failure) => return Step::Done(Err(failure)),
    };
    let outcome = match (tool.asks, yes) {
        (Some(asks), Some(yes)) => yes::confirmed(asks, &words, &arguments, yes, call, &context),
        _ => args::answer(&words.all(), &context),
    };
    match (tool.asks, yes, outcome) {
        (Some(asks), None, Err(failure)) => {
            match yes::question(asks, &words, &arguments, &failure, call, &context) {
                Ok(Some(question)) => Step::Ask(Box::new(question)),
                Ok(None) => Step::Done(Err(failure)),
                Err(failure) => Step::Done(Err(failure)),
            }
        }
        (_, _, outcome) => Step::Done(outcome),
    }
}

/// Reads a tool's arguments.
fn parse<T: serde::de::DeserializeOwned>(arguments: JsonObject) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Failure::new("usage", Exit::Usage, error.to_string()))
}
