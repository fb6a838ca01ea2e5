//! `git takeup resume`
use takeup_core::engine::{self, Confirm, EngineError, ResumeRequest, Resumed};
use takeup_core::error::Exit;
use takeup_core::text;
use takeup_core::verdict::Verdict;

use crate::context::Context;
use crate::options::TaskArgs;
use crate::printer::{CYAN, DIM, paint};
use crate::reply::{Failure, Next, Reply};
use crate::{ask, render};

/// Arguments of `resume`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup resume fix-login                    # shows, and asks on a terminal\n  git takeup resume fix-login --confirm          # where it is as it was left\n  git takeup resume fix-login --confirm ok-1a2b3c4d5e   # exactly what inspect showed\n  git takeup resume fix-login --rebuild          # go on with the present content"
)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,

    /// The session that left it
    #[arg(long, value_name = "SESSION")]
    from: Option<String>,

    /// The session that takes it up [default: the calling session, else a new name]
    #[arg(long, value_name = "SESSION", visible_alias = "session", short = 's')]
    to: Option<String>,

    /// The agent of the session that takes it up
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// The process that stands for the session that takes it up
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,

    /// A person's yes: plain where the task is as it was left, with the token of `inspect` for exactly what was shown
    #[arg(long, value_name = "TOKEN", num_args = 0..=1, default_missing_value = "")]
    confirm: Option<String>,

    /// A person's yes to going on with the present content, whatever was left
    #[arg(long, conflicts_with = "confirm")]
    rebuild: bool,

    /// Trust no file metadata and no cache: read everything
    #[arg(long)]
    verify: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let mut task = args.task.named();
    let confirm = match (args.confirm, args.rebuild) {
        (_, true) => Confirm::Rebuild,
        (None, false) => Confirm::No,
        (Some(token), false) if token.is_empty() => Confirm::Plainly,
        (Some(word), false) if !word.starts_with("ok-") && task.is_none() => {
            // `resume --confirm TASK`: what follows is no token, so it is the task.
            task = Some(word);
            Confirm::Plainly
        }
        (Some(token), false) => Confirm::Token(token),
    };
    let mut request = ResumeRequest {
        task,
        from: args.from,
        to: args.to,
        agent: args.agent,
        pid: args.pid,
        confirm,
        verify: args.verify,
    };
    let engine = context.engine();
    let resumed = match engine::resume(&engine, &request) {
        Err(EngineError::NeedsConfirmation { what, command }) => {
            let token = command.rsplit(' ').next().unwrap_or_default().to_owned();
            match ask::person(context, &format!("{what}.\nTake it up?")) {
                ask::Answer::Yes => {
                    request.confirm = Confirm::Token(token);
                    engine::resume(&engine, &request)?
                }
                ask::Answer::No => return Err(Failure::new("declined", Exit::No, "not taken up")),
                ask::Answer::Nobody => return Err(needs_confirmation(&what, command)),
            }
        }
        other => other.map_err(explain)?,
    };
    Ok(reply(&resumed))
}

fn needs_confirmation(what: &str, command: String) -> Failure {
    let mut failure = Failure::new(
        "confirmation-needed",
        Exit::Confirm,
        format!("{what}; a person has to confirm"),
    );
    failure.next = Some(Next::new("confirm", command));
    failure
}

/// Adds the choices to an ambiguous call.
fn explain(error: EngineError) -> Failure {
    let mut data = None;
    if let EngineError::Ambiguous(choices) = &error {
        let list: Vec<serde_json::Value> = choices
            .iter()
            .map(|choice| serde_json::json!({"taskId": choice.task_id, "session": choice.session}))
            .collect();
        data = Some(serde_json::json!({ "choices": list }));
    }
    let mut failure = Failure::from(error);
    failure.data = data;
    failure
}

fn reply(resumed: &Resumed) -> Reply {
    let identity = &resumed.identity;
    let how = match resumed.verdict {
        Verdict::StaleTask => "taken up on the present content",
        _ => "taken up as it was left",
    };
    let from = resumed
        .source
        .as_ref()
        .map(|source| format!(" from {}", source.session_id))
        .unwrap_or_default();
    let summary = format!(
        "task {} {how} by {}:{}{from}",
        identity.task_id, resumed.agent, identity.session_id
    );
    let mut out = format!("{summary}\n");
    if let Some(changes) = &resumed.changes {
        out.push_str(&render::changed(changes, 12));
    }
    for effect in &resumed.open_effects {
        out.push_str(&format!(
            "  {} {} {}\n",
            paint(DIM, "may or may not have happened:"),
            effect.tool,
            text::one_line(&effect.argument, 120)
        ));
    }
    out.push_str(
        "Taking up proves nothing: old runs of checks count only for their own content.\n",
    );
    let command = resumed.next.command.clone().unwrap_or_default();
    out.push_str(&format!(
        "{}{}",
        paint(DIM, "next: "),
        paint(CYAN, &command)
    ));
    Reply::new(summary, resumed)
        .human(out)
        .next(Next::new(resumed.next.action.clone(), command))
}
