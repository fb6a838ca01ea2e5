//! `git takeup start`
use takeup_core::engine::{self, StartRequest};
use takeup_core::text;

use crate::context::Context;
use crate::options::SessionArgs;
use crate::printer::{CYAN, DIM, YELLOW, paint, shell};
use crate::reply::{Failure, Next, Reply};

/// Arguments of `start`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup start 'Fix login timeout' --check 'cargo test'\n  git takeup start refactor --allow src/ --avoid src/generated --session ses_1\n\nThe title of a task that the session has not finished means that task. Another title, or one whose task is closed, begins another task."
)]
pub(crate) struct Args {
    /// What the work is, in one line
    #[arg(value_name = "TITLE", required_unless_present = "title")]
    title_name: Option<String>,

    /// The same as TITLE
    #[arg(
        short = 't',
        long = "title",
        alias = "task",
        value_name = "TITLE",
        conflicts_with = "title_name"
    )]
    title: Option<String>,

    #[command(flatten)]
    session: SessionArgs,

    /// The process that stands for the session [default: the nearest ancestor that is no shell]
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,

    /// A path pattern the task may edit, as git reads it here (repeatable); without any, every path
    #[arg(long, value_name = "GLOB")]
    allow: Vec<String>,

    /// A path pattern the task must avoid (repeatable)
    #[arg(long, value_name = "GLOB")]
    avoid: Vec<String>,

    /// A command that has to pass before the task is finished (repeatable)
    #[arg(long, value_name = "COMMAND")]
    check: Vec<String>,

    /// Nothing has to be proved
    #[arg(long, conflicts_with = "check")]
    no_checks: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let request = StartRequest {
        title: args.title_name.or(args.title).unwrap_or_default(),
        session: args.session.session,
        agent: args.session.agent,
        pid: args.pid,
        allowed: args.allow,
        avoided: args.avoid,
        checks: args.check,
        no_checks: args.no_checks,
    };
    let started = engine::start(&context.engine(), &request)?;
    let task = started.identity.task_id.as_str();
    let session = started.identity.session_id.as_str();
    let verb = if started.wrote {
        "started"
    } else {
        "is going on"
    };
    let summary = format!("task {task} {verb} in session {}:{session}", started.agent);
    let mut out = format!("{summary}\n");
    if let Some(before) = &started.closed_before {
        out.push_str(&format!(
            "{} {before} has the same title and is closed; this is another task\n",
            paint(DIM, "note:")
        ));
    }
    if started.session_made_up {
        out.push_str(&format!(
            "{} pass --session {session} or set TAKEUP_SESSION={session} in this session\n",
            paint(DIM, "note:")
        ));
    }
    if let Some(why) = &started.incomplete {
        out.push_str(&format!(
            "{} the tree could not be seen whole ({why}); nothing can be judged later\n",
            paint(YELLOW, "warning:")
        ));
    }
    if !started.unseen.is_empty() {
        out.push_str(&format!(
            "{} {}: what git ignores, or what is left out of the content, is never looked at; a change there is not noticed\n",
            paint(YELLOW, "warning:"),
            text::one_line(&started.unseen.join(" "), 500)
        ));
    }
    if !started.proposals.is_empty() {
        out.push_str("no checks are planned; the repository suggests:\n");
        for proposal in &started.proposals {
            let command = shell([
                "git",
                "takeup",
                "plan",
                "add",
                "--task",
                task,
                &proposal.command,
            ]);
            out.push_str(&format!(
                "  {}  {}\n",
                paint(CYAN, command),
                paint(DIM, format!("({})", proposal.source))
            ));
        }
    }
    out.push_str(&format!(
        "{}{}",
        paint(DIM, "when you stop: "),
        paint(CYAN, "git takeup save")
    ));
    let save = shell(["git", "takeup", "save", "--session", session]);
    Ok(Reply::new(summary, &started)
        .human(out)
        .next(Next::new("save", save)))
}
