//! `git takeup note`
use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::engine::{self, AddNoteRequest, LONGEST_NOTE, Which};
use takeup_core::error::Exit;
use takeup_core::identity::Note;
use takeup_core::ids::TaskId;

use crate::context::Context;
use crate::options::SessionArgs;
use crate::reply::{Failure, Reply};

/// Arguments of `note`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup note 'the flaky test is not ours'\n  git takeup note --task fix-login -    # the text comes from standard input"
)]
pub(crate) struct Args {
    /// The text, or - for standard input; a text that begins with a dash goes behind --
    #[arg(value_name = "TEXT", required = true, num_args = 1..)]
    text: Vec<String>,

    /// The task
    #[arg(short, long, value_name = "TASK")]
    task: Option<String>,

    #[command(flatten)]
    session: SessionArgs,
}

/// The answer of `note`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NoteData {
    /// The task.
    task_id: TaskId,
    /// The note as it was kept, secrets masked.
    note: Note,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let text = match args.text.as_slice() {
        [dash] if dash == "-" => read_input()?,
        words => words.join(" "),
    };
    let request = AddNoteRequest {
        which: Which {
            task: args.task,
            session: args.session.session,
            agent: args.session.agent,
        },
        text,
    };
    let (task_id, note) = engine::add_note(&context.engine(), &request)?;
    let summary = format!("noted on {task_id}");
    Ok(Reply::new(summary, &NoteData { task_id, note }))
}

/// Reads standard input, a little more than a note may have: whether that is too much is not for us to say.
fn read_input() -> Result<String, Failure> {
    use std::io::Read as _;
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::new(
            "input",
            Exit::Usage,
            format!("standard input cannot be read: {error}"),
        )
    };
    let most = u64::try_from(LONGEST_NOTE).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error))?;
    if bytes.len() > LONGEST_NOTE {
        // The cut may lie in a character.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|error| unreadable(&error.utf8_error()))
}
