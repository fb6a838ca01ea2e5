//! `git takeup handover`
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::agent::AgentError;
use takeup_core::engine::{self, EngineError};
use takeup_core::error::Exit;
use takeup_core::files::write_atomic;
use takeup_core::handover::{BUDGET, Document, LEAST_BUDGET};
use takeup_core::ids::SessionRef;

use crate::context::Context;
use crate::options::{SessionArgs, TaskArgs};
use crate::printer::{CYAN, DIM, YELLOW, paint, shell};
use crate::reply::{Failure, Next, Reply};

/// Arguments of `handover`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup handover fix-login\n  git takeup handover fix-login --output /tmp/handover.md\n  git takeup handover fix-login --to opencode\n\nAn agent that has a shell can run it itself. A file in the work tree that git does not ignore is new content: checks\nthat passed count no more, and the task is no longer as it was left.\n\nSecrets are masked, text of others is quoted as data, every line says how it is known."
)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,

    #[command(flatten)]
    session: SessionArgs,

    /// Deliver it to this agent, and print the command that goes on there
    #[arg(long, value_name = "AGENT")]
    to: Option<String>,

    /// Deliver nothing and write nothing: show the document
    #[arg(long)]
    dry_run: bool,

    /// The most characters of the document, 1500 at least
    #[arg(long, value_name = "NUMBER", default_value_t = BUDGET, value_parser = budget)]
    budget: usize,

    /// Write the document into this file; `-` prints it
    #[arg(short, long, value_name = "FILE", conflicts_with = "to")]
    output: Option<PathBuf>,
}

fn budget(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number >= LEAST_BUDGET => Ok(number),
        Ok(_) => Err(format!("{LEAST_BUDGET} characters are the least")),
        Err(error) => Err(format!("{error}")),
    }
}

/// The answer of `handover`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HandoverData {
    /// The document, in parts.
    document: Document,
    /// The document, as Markdown.
    markdown: String,
    /// How it was delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered: Option<DeliveredData>,
    /// Where it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<WrittenData>,
}

/// A hand-over in a file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WrittenData {
    /// The file, as it was named.
    file: String,
    /// The file is content of the work tree, which is no longer what was left.
    in_content: bool,
}

/// How a hand-over was delivered.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeliveredData {
    /// The agent.
    to: String,
    /// The session that was made.
    session: Option<SessionRef>,
    /// The file the document was put into.
    file: Option<String>,
    /// The command that goes on there, a word each.
    command: Vec<String>,
}

/// Says what can be done where an agent takes no hand-over by itself.
fn without_a_way_in(error: EngineError) -> Failure {
    let is_unsupported = matches!(error, EngineError::Agent(AgentError::Unsupported { .. }));
    let failure = Failure::from(error);
    if is_unsupported {
        return failure.hint(
            "let that agent run `git takeup handover TASK` itself, or read a file outside the work tree that `-o FILE` writes: it is for any reader",
        );
    }
    failure
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let engine = context.engine();
    let task = args.task.named();
    let (task, session) = (task.as_deref(), args.session.session.as_deref());
    let agent = match &args.to {
        Some(name) => {
            let found = context
                .agents
                .iter()
                .find(|agent| agent.id().as_str() == name);
            Some(found.ok_or_else(|| {
                Failure::new(
                    "no-such-agent",
                    Exit::Missing,
                    format!("no agent {name:?} is known"),
                )
                .hint("`git takeup agents list` names them")
            })?)
        }
        None => None,
    };
    if let Some(agent) = agent.filter(|agent| !agent.receives()) {
        let error = AgentError::cannot_receive(agent.name());
        return Err(without_a_way_in(error.into()));
    }
    if let (Some(agent), false) = (agent, args.dry_run) {
        let done = engine::hand_over(&engine, &**agent, task, session, args.budget)
            .map_err(without_a_way_in)?;
        let words: Vec<String> = done
            .received
            .command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let command = shell(words.iter().map(String::as_str));
        let is_sent = done.received.session.is_some() || done.received.file.is_none();
        let (summary, next) = if is_sent {
            let summary = format!("task {} handed over to {}", done.task_id, agent.name());
            (summary, "go on there: ")
        } else {
            let summary = format!(
                "the hand-over of task {} to {} is written, and not sent",
                done.task_id,
                agent.name()
            );
            (summary, "send it: ")
        };
        let data = HandoverData {
            markdown: done.document.markdown(),
            document: done.document,
            written: None,
            delivered: Some(DeliveredData {
                to: agent.id().to_string(),
                session: done.received.session,
                file: done
                    .received
                    .file
                    .map(|file| file.to_string_lossy().into_owned()),
                command: words,
            }),
        };
        let text = format!("{summary}\n{}{}", paint(DIM, next), paint(CYAN, &command));
        return Ok(Reply::new(summary, &data)
            .human(text)
            .next(Next::new("continue", command)));
    }
    let (found, document) = engine::gather(&engine, task, session, args.budget)?;
    if let Some(agent) = agent
        && !agent.detect(&context.env).installed
    {
        return Err(Failure::new(
            "agent-not-installed",
            Exit::No,
            format!("{} is not installed", agent.name()),
        ));
    }
    let markdown = document.markdown();
    let summary = format!("hand-over of task {}", found.task_id);
    let (mut text, mut written) = (markdown.clone(), None);
    if let Some(path) = &args.output
        && !args.dry_run
        && path.as_os_str() != "-"
    {
        if path.symlink_metadata().is_ok() {
            return Err(Failure::new(
                "file-exists",
                Exit::No,
                format!("{} is there already", path.display()),
            )
            .hint("name another file, or remove that one first"));
        }
        write_atomic(path, markdown.as_bytes(), 0o600)?;
        text = format!("{summary} written to {}", path.display());
        let in_content = engine::is_content(&engine, path)?;
        if in_content {
            text.push_str(&format!(
                "\n{} it is new content of the work tree: checks that passed count no more, and the task is not as it was left, \
                 until it is removed or git ignores it",
                paint(YELLOW, "warning:")
            ));
        }
        written = Some(WrittenData {
            file: path.to_string_lossy().into_owned(),
            in_content,
        });
    }
    Ok(Reply::new(
        summary,
        &HandoverData {
            document,
            markdown,
            delivered: None,
            written,
        },
    )
    .human(text))
}
