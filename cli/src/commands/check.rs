//! `git takeup check`: runs what the caller asks for, like `time` does, and records it as evidence.
use std::ffi::OsString;
use std::io::IsTerminal as _;
use takeup_core::redact;

use takeup_core::engine::{self, RunReport, Which};
use takeup_core::error::Exit;
use takeup_core::evidence::{EvidenceSource, Outcome};
use takeup_core::plan::{Check, Plan};

use super::evidence::EvidenceData;
use crate::context::Context;
use crate::options::SessionArgs;
use crate::printer::{self, CYAN, DIM, YELLOW, paint, shell};
use crate::reply::{Failure, Reply};
use crate::watch;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup check -- cargo test\n  git takeup check --planned 1\n\nThe exit status is the command's own. Standard output that is a terminal stays one, and is then not\ndigested. With --json the command's output goes to standard error."
)]
pub(crate) struct Args {
    /// The task
    #[arg(short, long, value_name = "TASK")]
    task: Option<String>,

    #[command(flatten)]
    session: SessionArgs,

    /// Run the planned check with this number by the shell
    #[arg(long, value_name = "NUMBER", conflicts_with = "command")]
    planned: Option<usize>,

    /// A command line that has to fail for this run to count
    #[arg(long, value_name = "COMMAND")]
    must_fail: Option<String>,

    /// The command and its arguments
    #[arg(
        last = true,
        value_name = "COMMAND",
        required_unless_present = "planned"
    )]
    command: Vec<OsString>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let engine = context.engine();
    let which = Which {
        task: args.task,
        session: args.session.session,
        agent: args.session.agent,
    };
    let (task_id, plan, _) = engine::plan_of(&engine, &which)?;
    let (words, line, check) = match args.planned {
        Some(number) => by_number(&plan, number)?,
        None => by_words(&plan, args.command),
    };
    // The plan's own control counts: a caller cannot put another in its place.
    let must_fail = check
        .as_ref()
        .and_then(|check| check.must_fail.clone())
        .or(args.must_fail);
    let before = engine::present(&engine)?;
    let started_at = context.now();
    let seen = watch::run(&words, context.json).map_err(|error| {
        Failure::new(
            "check-failed",
            Exit::No,
            format!("the command cannot be watched: {error}"),
        )
    })?;
    let finished_at = context.now();
    let after = engine::present(&engine)?;
    let control = match &must_fail {
        Some(command) if seen.outcome.passed() => {
            let words = ["sh".into(), "-c".into(), OsString::from(command)];
            Some(watch::run(&words, true).map_or_else(
                |error| Outcome::NotStarted {
                    why: error.to_string(),
                },
                |seen| seen.outcome,
            ))
        }
        _ => None,
    };
    let code = seen.code();
    let report = RunReport {
        command: line,
        outcome: seen.outcome,
        started_at,
        finished_at,
        before,
        after,
        stdout: seen.stdout,
        stderr: seen.stderr,
        source: EvidenceSource::Observed,
        control,
    };
    let evidence = engine::add_evidence(&engine, &which, &report)?;
    let content_changed = evidence.content().is_none();
    let planned = check.is_some();
    let mut notes = String::new();
    if content_changed {
        notes.push_str(&format!(
            "{} the content changed while it ran (or could not be seen): it proves nothing\n",
            paint(YELLOW, "takeup:")
        ));
    }
    if let Some(control) = &evidence.control
        && control.passed()
    {
        notes.push_str(&format!(
            "{} the command that has to fail passed too: the check proves nothing\n",
            paint(YELLOW, "takeup:")
        ));
    }
    if !planned {
        let add = shell([
            "git",
            "takeup",
            "plan",
            "add",
            "--task",
            task_id.as_str(),
            &evidence.command,
        ]);
        notes.push_str(&format!(
            "{} not in the plan; add it with {}\n",
            paint(DIM, "takeup:"),
            paint(CYAN, takeup_core::text::one_line(&add, 2_000))
        ));
    }
    if notes.is_empty() && std::io::stderr().is_terminal() {
        let how = if evidence.outcome.passed() {
            "passed"
        } else {
            "failed"
        };
        notes.push_str(&format!(
            "{} {how}; recorded for this content\n",
            paint(DIM, "takeup:")
        ));
    }
    if !context.json {
        printer::err(&notes);
    }
    let mut reply = Reply::new(
        format!(
            "{}: {}",
            evidence.command,
            if code == 0 { "passed" } else { "failed" }
        ),
        &EvidenceData {
            evidence,
            planned,
            content_changed,
        },
    )
    .human("");
    reply.code = Some(code);
    Ok(reply)
}

type Chosen = (Vec<OsString>, String, Option<Check>);

/// Takes a planned check to be run by the shell.
fn by_number(plan: &Plan, number: usize) -> Result<Chosen, Failure> {
    let check = number
        .checked_sub(1)
        .and_then(|index| plan.checks.get(index))
        .ok_or_else(|| {
            Failure::new(
                "no-such-check",
                Exit::Missing,
                format!("the plan has no check number {number}"),
            )
            .hint("`git takeup plan` lists them")
        })?;
    if redact::is_masked(&check.command) {
        return Err(Failure::new(
            "check-masked",
            Exit::No,
            "the planned command holds a masked secret",
        )
        .hint("give the command itself after --"));
    }
    Ok(by_shell(check))
}

fn by_shell(check: &Check) -> Chosen {
    (
        vec!["sh".into(), "-c".into(), check.command.clone().into()],
        check.command.clone(),
        Some(check.clone()),
    )
}

/// Takes the words of the caller, and finds the planned check they are.
pub(super) fn by_words(plan: &Plan, words: Vec<OsString>) -> Chosen {
    let texts: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // A planned line given as one word, as it was given to the plan: no program has such a name.
    if let [line] = &texts[..]
        && line.contains(char::is_whitespace)
        && !redact::is_masked(line)
        && let Some(check) = plan.checks.iter().find(|check| check.command == *line)
    {
        return by_shell(check);
    }
    // No word of a command line holds a zero byte.
    let line = shlex::try_join(texts.iter().map(String::as_str)).unwrap_or_default();
    let check = plan
        .checks
        .iter()
        .find(|check| check.command == line || check.is_run_by(&texts))
        .cloned();
    let line = check.as_ref().map_or(line, |check| check.command.clone());
    (words, line, check)
}
