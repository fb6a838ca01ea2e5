//! `git takeup bg`: background tasks.
use std::path::PathBuf;

use schemars::Schema;
use takeup_core::background::{self, BackgroundError, Host, Store};
use takeup_core::engine::Caller;
use takeup_core::ids::{BackgroundId, SessionRef};
use takeup_core::redact::Masker;

use crate::agents::AgentTask;
use crate::context::Context;
use crate::reply::{Failure, Reply};

mod adopt;
mod check;
mod clean;
mod follow;
mod foreign;
pub(crate) mod list;
pub(crate) mod output;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod stop;
mod units;
mod view;
pub(crate) mod wait;

pub(crate) use view::{TaskData, damaged};

/// Arguments of `bg`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Bg,
}

#[derive(Debug, clap::Subcommand)]
enum Bg {
    /// Start a command that outlives this terminal, its session and its agent
    Run(run::Args),
    /// List the background tasks, newest first
    #[command(visible_alias = "ls")]
    List(list::Args),
    /// Show one task with everything that is known of it
    Show(show::Args),
    /// Print what a task printed, secrets masked
    Output(output::Args),
    /// Print the last lines of a task's output, and follow it
    Tail(output::TailArgs),
    /// Wait for the end of tasks
    Wait(wait::Args),
    /// Stop a task and everything it started
    Stop(stop::Args),
    /// Remove tasks that are over
    Clean(clean::Args),
    /// Take a process under watch that runs already
    Adopt(adopt::Args),
    /// Ask the terminal that shows a task to leave it alone
    Detach(show::DetachArgs),
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    match args.command {
        Bg::Run(args) => run::run(args, context),
        Bg::List(args) => list::run(&args, context),
        Bg::Show(args) => show::run(&args, context),
        Bg::Output(args) => output::run(&args, context),
        Bg::Tail(args) => output::tail(&args, context),
        Bg::Wait(args) => wait::run(&args, context),
        Bg::Stop(args) => stop::run(&args, context),
        Bg::Clean(args) => clean::run(&args, context),
        Bg::Adopt(args) => adopt::run(&args, context),
        Bg::Detach(args) => show::detach(&args, context),
    }
}

pub(crate) use check::record_check;

/// Returns the schemas of the answers.
pub(crate) fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("bg-run", crate::schema::of::<run::RunData>()),
        ("bg-list", crate::schema::of::<list::ListData>()),
        ("bg-show", crate::schema::of::<show::ShowData>()),
        ("bg-output", crate::schema::of::<output::OutputData>()),
        ("bg-adopt", crate::schema::of::<show::ShowData>()),
        ("bg-detach", crate::schema::of::<show::ShowData>()),
        ("bg-wait", crate::schema::of::<wait::WaitData>()),
        ("bg-stop", crate::schema::of::<stop::StopData>()),
        ("bg-clean", crate::schema::of::<clean::CleanData>()),
    ]
}

/// Returns the session that calls: the one that was given, else the one that is known.
fn session(given: Option<&str>, context: &Context) -> Result<Option<SessionRef>, Failure> {
    Ok(Caller::find(&context.engine(), given, None, None)?.session)
}

/// What a command lends to the functions that start and stop tasks.
struct Lender {
    program: PathBuf,
    masker: Masker,
}

impl Lender {
    fn new(context: &Context) -> Self {
        // This very program can be started again, also where its file was replaced meanwhile.
        let program = match std::env::current_exe() {
            Ok(path) if path.exists() => path,
            _ => PathBuf::from("/proc/self/exe"),
        };
        Self {
            program,
            masker: Masker::of(&context.env),
        }
    }

    fn host<'a>(&'a self, context: &'a Context) -> Host<'a> {
        Host {
            program: &self.program,
            processes: &*context.processes,
            clock: &*context.clock,
            masker: &self.masker,
        }
    }
}

fn store(context: &Context) -> Result<Store, Failure> {
    Ok(Store::of(&context.env)?)
}

/// Finds the background task that a text names.
fn find(text: &str, store: &Store, context: &Context) -> Result<BackgroundId, Failure> {
    store
        .find(text)
        .map_err(|error| not_ours(text, error, context))
}

/// Finds the background task that a text names; of several of one name, the one that runs.
fn find_running(text: &str, store: &Store, context: &Context) -> Result<BackgroundId, Failure> {
    store
        .find_running(text, &*context.processes)
        .map_err(|error| not_ours(text, error, context))
}

/// Says whose a task is that is not ours: the list shows those of agents, too.
fn not_ours(text: &str, error: BackgroundError, context: &Context) -> Failure {
    match foreign::meant(text, &error, context) {
        Some(task) => foreign::refuse(&task),
        None => error.into(),
    }
}

/// A background task, ours or one that an agent started by itself.
enum Meant {
    Ours(BackgroundId),
    Agents(Box<AgentTask>),
}

/// Finds the background task that a text names, also one of an agent.
fn find_any(text: &str, store: &Store, context: &Context) -> Result<Meant, Failure> {
    match store.find(text) {
        Ok(id) => Ok(Meant::Ours(id)),
        Err(error) => match foreign::meant(text, &error, context) {
            Some(task) => Ok(Meant::Agents(Box::new(task))),
            None => Err(error.into()),
        },
    }
}

/// Puts right what a look finds, before a command that writes. A failure of it must not stand in the command's way.
fn settle(store: &Store, host: &Host<'_>) -> Vec<String> {
    background::settle(store, host)
        .map(|again| again.iter().map(ToString::to_string).collect())
        .unwrap_or_default()
}
