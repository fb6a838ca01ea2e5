//! `git takeup bg output` and `git takeup bg tail`
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::background::{
    Record, Shown, State, Store, Stream, look, read_output, tail_output,
};
use takeup_core::error::Exit;
use takeup_core::ids::BackgroundId;
use takeup_core::process;

use super::view::lost;
use super::{Meant, find_any, follow, foreign, store};
use crate::context::Context;
use crate::printer::{self, YELLOW, paint};
use crate::reply::{Failure, Reply};

/// The most that one JSON document holds.
pub(super) const JSON_MOST: u64 = 1 << 20;

/// Arguments of `bg output`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  git takeup bg output amber-otter --stream stderr\n\nSecrets are masked and escape sequences taken out; the raw bytes are in the file that `bg show` names."
)]
pub(crate) struct Args {
    /// The task: its id, its name, or the beginning of either
    task: String,

    /// Only what came from this stream
    #[arg(long, value_name = "STREAM")]
    stream: Option<Which>,
}

/// Arguments of `bg tail`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  git takeup bg tail -f amber-otter")]
pub(crate) struct TailArgs {
    /// The task: its id, its name, or the beginning of either
    task: String,

    /// How many lines
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 40)]
    lines: usize,

    /// Go on printing until the task is over
    #[arg(short, long, conflicts_with = "json")]
    follow: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The answer of `bg output` and `bg tail`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutputData {
    /// The task.
    pub(super) id: String,
    /// The text, masked.
    pub(super) text: String,
    /// How many bytes the command printed.
    pub(super) printed_bytes: u64,
    /// How many of them are not kept any more.
    pub(super) left_out_bytes: u64,
    /// How many more could not be written (a full disk); where in the text they are missing is not known.
    pub(super) lost_bytes: u64,
    /// There is more than this.
    pub(super) truncated: bool,
    /// The task is over.
    pub(super) over: bool,
}

fn record_of(id: &BackgroundId, store: &Store) -> Result<(Record, bool), Failure> {
    let record = look(store, id, &process::system())?.record;
    if record.adopted {
        return Err(Failure::new(
            "no-output",
            Exit::Missing,
            "its output goes where it went before it was taken under watch",
        ));
    }
    let path = store.output_path(id);
    let is_gone = std::fs::symlink_metadata(&path)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    if is_gone && !matches!(record.state, State::Starting) {
        return Err(Failure::new(
            "no-output",
            Exit::Missing,
            format!("its output is not there any more: {}", path.display()),
        ));
    }
    let over = record.state.is_over();
    Ok((record, over))
}

/// Says that something is missing in what is shown, beside it.
fn warn(lost_bytes: u64) {
    if let Some(lost) = lost(lost_bytes) {
        printer::err(&format!("{} {lost}\n", paint(YELLOW, "warning:")));
    }
}

fn reply(record: Record, over: bool, shown: Shown, context: &Context) -> Reply {
    if !context.json {
        // As it is, and quietly gone when the reader is.
        drop(printer::out_raw(shown.text.as_bytes()));
        warn(record.output_lost);
        return Reply::silent(Exit::Done);
    }
    let summary = format!("{} bytes were printed", shown.printed);
    // Another face than the command line shows what is for people besides.
    let human = shown.text.clone();
    let data = OutputData {
        id: record.id.to_string(),
        text: shown.text,
        printed_bytes: shown.printed,
        left_out_bytes: shown.left_out,
        lost_bytes: record.output_lost,
        truncated: shown.truncated,
        over,
    };
    Reply::new(summary, &data).human(human)
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Reply, Failure> {
    let store = store(context)?;
    let id = match find_any(&args.task, &store, context)? {
        Meant::Ours(id) => id,
        // Both streams stand in one file there, and nothing says which line is whose.
        Meant::Agents(task) if args.stream.is_some() => return Err(foreign::refuse(&task)),
        Meant::Agents(task) => return foreign::output(*task, None, context),
    };
    let (record, over) = record_of(&id, &store)?;
    let stream = args.stream.map(|which| match which {
        Which::Stdout => Stream::Stdout,
        Which::Stderr => Stream::Stderr,
    });
    let most = if context.json { JSON_MOST } else { u64::MAX };
    let shown = read_output(
        &store,
        &record.id,
        record.output_cap,
        stream,
        most,
        context.masker(),
    )?;
    Ok(reply(record, over, shown, context))
}

pub(super) fn tail(args: &TailArgs, context: &Context) -> Result<Reply, Failure> {
    let store = store(context)?;
    let id = match find_any(&args.task, &store, context)? {
        Meant::Ours(id) => id,
        Meant::Agents(task) if args.follow => return Err(foreign::refuse(&task)),
        Meant::Agents(task) => return foreign::output(*task, Some(args.lines), context),
    };
    let (record, over) = record_of(&id, &store)?;
    if args.follow {
        follow::follow(&store, &record, Some(args.lines), context, &mut || false)?;
        warn(
            look(&store, &record.id, &process::system())?
                .record
                .output_lost,
        );
        return Ok(Reply::silent(Exit::Done));
    }
    let shown = tail_output(
        &store,
        &record.id,
        record.output_cap,
        args.lines,
        context.masker(),
    )?;
    Ok(reply(record, over, shown, context))
}
