//! `git takeup bg run`
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::background::{self, Limits, Readiness, Removal, Request, look};
use takeup_core::engine::{self, Which};
use takeup_core::error::Exit;
use takeup_core::ids::TaskId;

use super::check::{CheckData, Wanted};
use super::view::TaskData;
use super::{Lender, check, follow, session, settle, store, units};
use crate::context::Context;
use crate::printer::{self, BOLD, CYAN, DIM, YELLOW, paint, shell};
use crate::reply::{Failure, Next, Reply};

/// Arguments of `bg run`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup bg run -- cargo test\n  git takeup bg run --name server --ready port:8080 -- ./serve\n  git takeup bg run --timeout 10m -- sh -c 'make && make check'\n  git takeup bg run --planned 1"
)]
pub(crate) struct Args {
    /// A name for it; one is made where none is given
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The task of this repository's ledger that it belongs to
    #[arg(long, value_name = "TASK")]
    task: Option<TaskId>,

    /// The session that starts it
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Stop it after this time, such as 90s, 5m or 1h 30m
    #[arg(long, value_name = "TIME", value_parser = units::some_duration)]
    timeout: Option<Duration>,

    /// Record its end as evidence for the task, as `git takeup check` does
    #[arg(long)]
    check: bool,

    /// Run the planned check with this number by the shell, at the top of the work tree, and record its end as evidence
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["command", "cwd"])]
    planned: Option<usize>,

    /// Write the end into its output too
    #[arg(long)]
    notify: bool,

    /// The folder it runs in
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,

    /// Wait until it is ready: a text of its output, `port:8080`, or `cmd:COMMAND` that exits with 0
    #[arg(long, value_name = "WHAT", value_parser = Readiness::parse)]
    ready: Option<Readiness>,

    /// How long to wait for it to be ready
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "60s", requires = "ready")]
    ready_timeout: Duration,

    /// The most memory it may have, such as 2G: together where control groups can be made, else each process by itself
    #[arg(long, value_name = "SIZE", value_parser = units::some_size)]
    memory: Option<u64>,

    /// The most processor time each of its processes may use
    #[arg(long, value_name = "TIME", value_parser = units::some_duration)]
    cpu_time: Option<Duration>,

    /// The most output that is kept, 64K at least; the middle goes first
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "64M")]
    output_cap: u64,

    /// Show its output here until it is over; Ctrl-C stops it, Ctrl-Z twice leaves it alone
    #[arg(long, conflicts_with = "json")]
    foreground: bool,

    /// With --foreground: exit with its exit status
    #[arg(long, requires = "foreground")]
    exit_code: bool,

    /// The command and its arguments
    #[arg(
        last = true,
        value_name = "COMMAND",
        required_unless_present = "planned"
    )]
    command: Vec<OsString>,
}

/// The answer of `bg run`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunData {
    /// The task.
    task: TaskData,
    /// The check it is run for.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<CheckData>,
    /// It is ready; absent where nobody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<bool>,
    /// Why the system may end it all the same.
    warnings: Vec<String>,
    /// Tasks that were found without a supervisor and are watched again.
    watched_again: Vec<String>,
    /// Tasks that are over and beyond the limits of `bg clean`, and went.
    removed: Vec<Removal>,
}

pub(super) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let store = store(context)?;
    let cwd = args.cwd.map_or_else(
        || context.env.cwd.clone(),
        |folder| context.env.cwd.join(folder),
    );
    let caller = session(args.session.as_deref(), context)?;
    if let Some(task) = &args.task {
        let which = Which {
            task: Some(task.to_string()),
            ..Which::default()
        };
        engine::plan_of(&context.engine(), &which)?;
    }
    let wanted = match args.planned {
        Some(number) => Some(Wanted::Planned(number)),
        None => args.check.then(|| Wanted::Words(args.command.clone())),
    };
    let prepared = wanted
        .map(|wanted| check::prepare(args.task.clone(), caller.as_ref(), wanted, &cwd))
        .transpose()?;
    let mut data = None;
    let mut note = None;
    let (task, session, check, command, cwd) = match prepared {
        Some(prepared) => {
            (data, note) = (Some(prepared.data), prepared.note);
            let (task, check) = (Some(prepared.task), Some(prepared.check));
            let session = caller.or(prepared.holder);
            (task, session, check, prepared.words, prepared.folder)
        }
        None => (args.task, caller, None, args.command, cwd),
    };
    let request = Request {
        name: args.name.filter(|name| !name.trim().is_empty()),
        session,
        repository: match &task {
            Some(_) => engine::repository_id(&context.engine())?,
            None => None,
        },
        task,
        check,
        timeout: args.timeout,
        memory: args.memory,
        cpu_seconds: args.cpu_time.map(|time| time.as_secs().max(1)),
        output_cap: args.output_cap,
        notify: args.notify,
        readiness: args.ready.clone(),
        ..Request::new(command, cwd)
    };
    let lender = Lender::new(context);
    let host = lender.host(context);
    let keys = args.foreground.then(follow::Keys::listen).transpose()?;
    let started = background::start(&store, &request, &host)?;
    let watched_again = settle(&store, &host);
    // What is over is kept within bounds; a failure of it must not stand in the way of what was started.
    let removed = background::clean(
        &store,
        Limits::DEFAULT,
        None,
        false,
        &*context.processes,
        context.now(),
    )
    .map(|cleaned| cleaned.removed)
    .unwrap_or_default();
    let id = started.record.id.clone();
    let ready = match &args.ready {
        None => None,
        Some(readiness) => Some(background::wait_ready(
            &store,
            &started.record,
            readiness,
            args.ready_timeout,
            context.interrupt.as_deref(),
            &host,
        )?),
    };
    if let Some(keys) = keys {
        return follow::foreground(&store, &started.record, args.exit_code, &keys, context);
    }
    let seen = look(&store, &id, &*context.processes)?;
    let task = TaskData::new(&store, seen, context.clock.now());
    let follow_command = shell(["git", "takeup", "bg", "tail", "-f", id.as_str()]);
    let mut human = format!(
        "{} {} {}\n",
        paint(BOLD, &task.name),
        task.painted(),
        paint(DIM, format!("{id}, pid {}", started.process.pid)),
    );
    if !task.limits.is_empty() {
        human.push_str(&format!(
            "{} {}\n",
            paint(DIM, "limits:"),
            task.limits.join(", ")
        ));
    }
    let warnings = background::warnings(&context.env);
    for warning in &warnings {
        human.push_str(&format!("{} {warning}\n", paint(YELLOW, "warning:")));
    }
    if let Some(note) = &note {
        human.push_str(&format!("{} {note}\n", paint(YELLOW, "note:")));
    }
    if !removed.is_empty() {
        human.push_str(&format!(
            "{} {} old tasks that were over are gone (`git takeup bg clean --help`)\n",
            paint(DIM, "note:"),
            removed.len()
        ));
    }
    if ready == Some(false) {
        human.push_str(&format!(
            "{} {}\n",
            paint(YELLOW, "warning:"),
            not_ready(&task)
        ));
    }
    human.push_str(&format!("  {}", paint(CYAN, &follow_command)));
    let summary = match ready {
        Some(true) => format!("background task {id} is ready"),
        Some(false) => format!("background task {id}: {}", not_ready(&task)),
        None => format!("background task {id} started"),
    };
    let exit = if ready == Some(false) {
        Exit::No
    } else {
        Exit::Done
    };
    let data = RunData {
        task,
        check: data,
        ready,
        warnings,
        watched_again,
        removed,
    };
    Ok(Reply::new(summary, &data)
        .human(human)
        .next(Next::new("follow", follow_command))
        .exit(exit))
}

/// Says why a task is not ready.
fn not_ready(task: &TaskData) -> String {
    if task.state.is_over() {
        let how = task.state.trouble();
        format!(
            "it ended before it was ready: {}",
            how.unwrap_or_else(|| "exit status 0".to_owned())
        )
    } else {
        "it did not get ready in time".to_owned()
    }
}

/// Says on standard error how to come back to a task that is left alone.
pub(super) fn left_alone(id: &str) {
    printer::err(&format!(
        "{id} goes on in the background; {}\n",
        paint(CYAN, shell(["git", "takeup", "bg", "tail", "-f", id]))
    ));
}
