//! `git takeup resume`
use std::ffi::OsString;
use std::path::Path;

use takeup_core::engine::{self, Confirm, EngineError, ResumeRequest, Resumed};
use takeup_core::error::Exit;
use takeup_core::ids::{AgentId, SessionId, SessionRef};
use takeup_core::paths::path_of_text;
use takeup_core::text;
use takeup_core::verdict::Verdict;

use crate::context::Context;
use crate::launch::{Launched, StillBorn};
use crate::options::TaskArgs;
use crate::printer::{self, CYAN, DIM, paint, shell};
use crate::reply::{Failure, Next, Reply};
use crate::{ask, render};

/// Arguments of `resume`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup resume fix-login                    # shows, and asks on a terminal\n  git takeup resume fix-login --confirm          # where it is as it was left\n  git takeup resume fix-login --confirm ok-1a2b3c4d5e   # exactly what inspect showed\n  git takeup resume fix-login --rebuild          # go on with the present content\n  git takeup resume fix-login --confirm -- codex   # start the one that goes on\n\nWith a command, the task is taken up when the command has come to life: it runs for two seconds, or it\nended before with exit status 0. Else nothing is changed, and the task can be taken up again. The command runs\nat the top of the work tree with TAKEUP_SESSION and TAKEUP_AGENT set; the exit status is its own.\n\nWithout a yes among the words a person is asked, on a terminal. Nobody is asked inside an agent's\nsession, named by its own variable, TAKEUP_SESSION or TAKEUP_AGENT, nor in CI or with --json or\n--no-input: then the command for a person is the answer, with exit status 3."
)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,

    /// The session that left it: its id, the beginning of that, or the word its agent calls it by
    #[arg(long, value_name = "SESSION")]
    from: Option<String>,

    /// The session that takes it up [default: the calling session, else a new name]
    #[arg(long, value_name = "SESSION", visible_alias = "session", short = 's')]
    to: Option<String>,

    /// The agent of the session that takes it up [default: the one whose program the command is, else the one that calls]
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

    /// A command that goes on with the task, and its arguments
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "pid")]
    command: Vec<OsString>,
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
        agent: args
            .agent
            .or_else(|| launched_agent(&args.command, context)),
        pid: args.pid,
        confirm,
        verify: args.verify,
    };
    if context.json && !args.command.is_empty() {
        return Err(Failure::new(
            "usage",
            Exit::Usage,
            "with a command, standard output is the command's: --json has no place there",
        ));
    }
    let mut taking = Taking {
        context,
        words: &args.command,
        launched: None,
        stillborn: None,
    };
    let resumed = match taking.resume(&request) {
        Err(EngineError::NeedsConfirmation { what, command }) => {
            // Where the look was incomplete there is no token: nothing binds the yes to a content.
            let token = command
                .rsplit(' ')
                .next()
                .filter(|word| word.starts_with("ok-"));
            let yes = token.map_or(Confirm::Rebuild, |token| Confirm::Token(token.to_owned()));
            let question = || {
                token
                    .and_then(|token| shown(context, &request, token))
                    .map_or_else(|| format!("{what}.\n"), |page| page + "\n")
                    + "Take it up?"
            };
            match ask::person(context, question) {
                ask::Answer::Yes => {
                    request.confirm = yes;
                    taking.resume(&request)
                }
                ask::Answer::No => return Err(Failure::new("declined", Exit::No, "not taken up")),
                ask::Answer::Nobody => {
                    return Err(needs_confirmation(&what, taking.with_words(&command)));
                }
            }
        }
        other => other,
    };
    match (resumed, taking.stillborn.take()) {
        // The command's exit status is the answer, where it has one.
        (Err(error), Some(stillborn)) => {
            printer::err(&format!(
                "{} {error}\n",
                paint(printer::RED, "git takeup resume:")
            ));
            let mut reply = Reply::silent(Exit::No);
            reply.code = Some(stillborn.code);
            Ok(reply)
        }
        (resumed, _) => {
            let resumed = resumed.map_err(explain)?;
            if args.command.is_empty() {
                Ok(reply(&resumed))
            } else {
                taking.follow(&resumed)
            }
        }
    }
}

/// Returns the agent that a command starts, where its program is a known agent's.
fn launched_agent(words: &[OsString], context: &Context) -> Option<String> {
    let program = Path::new(words.first()?).file_name()?;
    let any = SessionId::unnamed();
    let agent = context.agents.iter().find(|agent| {
        let command = agent.resume_command(&any).unwrap_or_default();
        command.first().is_some_and(|word| word == program)
    })?;
    Some(agent.id().to_string())
}

/// Shows what a yes would be for, as `inspect` does. `None` where that is no longer what was judged.
fn shown(context: &Context, request: &ResumeRequest, token: &str) -> Option<String> {
    let inspect = engine::InspectRequest {
        task: request.task.clone(),
        from: request.from.clone(),
        session: request.to.clone(),
        agent: request.agent.clone(),
        verify: request.verify,
    };
    let found = engine::inspect(&context.engine(), &inspect).ok()?;
    let candidate = found
        .candidates
        .iter()
        .find(|candidate| candidate.token.as_deref() == Some(token))?;
    Some(render::candidate(candidate, context.now()))
}

/// A take-up, with the command that goes on with the task, if there is one.
struct Taking<'a> {
    context: &'a Context,
    words: &'a [OsString],
    launched: Option<Launched>,
    stillborn: Option<StillBorn>,
}

impl Taking<'_> {
    /// Takes the task up; with a command, when that has come to life.
    fn resume(&mut self, request: &ResumeRequest) -> Result<Resumed, EngineError> {
        let engine = self.context.engine();
        if self.words.is_empty() {
            return engine::resume(&engine, request);
        }
        let taken =
            engine::resume_and_begin(
                &engine,
                request,
                &mut |session, folder| match Launched::begin(self.words, session, folder) {
                    Ok(launched) => {
                        let pid = launched.pid();
                        self.launched = Some(launched);
                        Ok(pid)
                    }
                    Err(stillborn) => {
                        let error = EngineError::from(&stillborn);
                        self.stillborn = Some(stillborn);
                        Err(error)
                    }
                },
            );
        if taken.is_err()
            && let Some(launched) = self.launched.take()
        {
            launched.end();
        }
        taken
    }

    /// Stays until the command is over. One whose session holds the task already was not begun yet.
    fn follow(&mut self, resumed: &Resumed) -> Result<Reply, Failure> {
        let failed = |why: String| Failure::new("not-begun", Exit::No, why);
        let launched = if let Some(launched) = self.launched.take() {
            launched
        } else {
            let agent =
                AgentId::new(resumed.agent.as_str()).map_err(|error| failed(error.to_string()))?;
            let session = SessionRef::new(agent, resumed.identity.session_id.clone());
            let folder = path_of_text(&resumed.identity.repository_root)
                .unwrap_or_else(|| self.context.env.cwd.clone());
            Launched::begin(self.words, &session, &folder)
                .map_err(|stillborn| failed(stillborn.why))?
        };
        let stayed = launched.is_running();
        let code = launched.wait().map_err(|error| failed(error.to_string()))?;
        // A command that ended by itself is no crash. What it may have recorded of its end itself stands.
        if stayed && code < 128 {
            let end = engine::SaveRequest {
                task: Some(resumed.identity.task_id.to_string()),
                session: Some(resumed.identity.session_id.to_string()),
                agent: Some(resumed.agent.clone()),
                pid: None,
                end: true,
                reason: Some(format!("its command ended with exit status {code}")),
                event: None,
                open_effects: None,
            };
            drop(engine::save(&self.context.engine(), &end));
        }
        // Said afterwards: until now the terminal was the command's.
        printer::err(&format!("{} {}\n", paint(DIM, "takeup:"), said(resumed)));
        if let Some(unknown) = &resumed.liveness_unknown {
            printer::err(&format!(
                "{} {}\n",
                paint(DIM, "takeup:"),
                text::one_line(unknown, 600)
            ));
        }
        for why in &resumed.not_applied {
            printer::err(&not_applied(why));
        }
        let mut reply = Reply::silent(Exit::Done);
        reply.code = Some(code);
        Ok(reply)
    }

    /// Adds the command that goes on to the one that confirms.
    fn with_words(&self, command: &str) -> String {
        if self.words.is_empty() {
            return command.to_owned();
        }
        let words: Vec<String> = self
            .words
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        format!("{command} -- {}", shell(words.iter().map(String::as_str)))
    }
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
    if let EngineError::Ambiguous(choices) | EngineError::AmbiguousOwn(choices) = &error {
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

/// Says in one line what was taken up, and how.
fn said(resumed: &Resumed) -> String {
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
    format!(
        "task {} {how} by {}:{}{from}",
        identity.task_id, resumed.agent, identity.session_id
    )
}

fn not_applied(why: &str) -> String {
    format!(
        "{} the agent's own files do not show it yet ({}); the next command of takeup that writes here tries again\n",
        paint(printer::YELLOW, "warning:"),
        text::one_line(why, 400)
    )
}

fn reply(resumed: &Resumed) -> Reply {
    let summary = said(resumed);
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
    if let Some(unknown) = &resumed.liveness_unknown {
        out.push_str(&format!("  {}\n", text::one_line(unknown, 600)));
    }
    for why in &resumed.not_applied {
        out.push_str(&not_applied(why));
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
