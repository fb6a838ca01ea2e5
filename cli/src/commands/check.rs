//! `git takeup check`: runs what the caller asks for, like `time` does, and records it as evidence.
use std::ffi::OsString;
use std::io::IsTerminal as _;

use takeup_core::engine::{self, RunReport, Which};
use takeup_core::error::Exit;
use takeup_core::evidence::{EvidenceSource, Outcome};
use takeup_core::ids::TaskId;
use takeup_core::plan::{Check, Plan};
use takeup_core::{redact, text};

use super::evidence::EvidenceData;
use crate::context::Context;
use crate::options::SessionArgs;
use crate::printer::{self, CYAN, DIM, YELLOW, paint, shell};
use crate::reply::{Failure, Reply};
use crate::watch;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup check -- cargo test\n  git takeup check --planned 1\n\nA planned check runs at the top of the work tree; a command is run in this folder, and is a run of a\nplanned check only if this folder is the top. The exit status is the command's own. Standard output that is a terminal stays one, and is then not\ndigested. With --json the command's output goes to standard error."
)]
pub(crate) struct Args {
    /// The task
    #[arg(short, long, value_name = "TASK")]
    task: Option<String>,

    #[command(flatten)]
    session: SessionArgs,

    /// Run the planned check with this number by the shell, at the top of the work tree
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
    let (task_id, plan, _) = engine::plan_to_prove(&engine, &which)?;
    let (chosen, folder) = match args.planned {
        Some(number) => (by_number(&plan, number)?, engine::top(&engine)?),
        None => (by_words(&plan, args.command), context.env.cwd.clone()),
    };
    // The plan's own control counts: a caller cannot put another in its place.
    let must_fail = chosen
        .check
        .as_ref()
        .and_then(|check| check.must_fail.clone())
        .or(args.must_fail);
    let before = engine::present(&engine)?;
    let started_at = context.now();
    let seen = watch::run(&chosen.words, &folder, context.json).map_err(|error| {
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
            Some(watch::run(&words, &folder, true).map_or_else(
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
        command: chosen.line,
        folder: Some(folder),
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
    let planned = chosen.check.is_some();
    let elsewhere = evidence.elsewhere().filter(|_| planned);
    let in_other_folder = elsewhere.is_some();
    let mut notes = String::new();
    if content_changed {
        notes.push_str(&format!(
            "{} the content changed while it ran (or could not be seen): it proves nothing\n",
            paint(YELLOW, "takeup:")
        ));
    }
    if let Some(folder) = elsewhere {
        notes.push_str(&format!(
            "{} {}\n",
            paint(YELLOW, "takeup:"),
            not_the_top(folder)
        ));
    }
    if let Some(control) = &evidence.control
        && !control.said_no()
    {
        let how = if control.passed() {
            "passed too"
        } else {
            "could not be run, or was killed, so it did not fail"
        };
        notes.push_str(&format!(
            "{} the command that has to fail {how}: the check proves nothing\n",
            paint(YELLOW, "takeup:")
        ));
    }
    if !planned {
        notes.push_str(&format!(
            "{} {}\n",
            paint(DIM, "takeup:"),
            not_planned(&task_id, &evidence.command)
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
            "{}: {}{}",
            evidence.command,
            if code == 0 { "passed" } else { "failed" },
            if in_other_folder {
                ", and is no run of the planned check: another folder"
            } else {
                ""
            }
        ),
        &EvidenceData {
            evidence,
            planned,
            content_changed,
            in_other_folder,
        },
    )
    .human("");
    reply.code = Some(code);
    Ok(reply)
}

/// Says that a run is none of the planned check, and why.
pub(super) fn not_the_top(folder: &str) -> String {
    format!(
        "its folder is {}, and a planned check counts at the top of the work tree alone: use --planned, or go there",
        text::one_line(folder, 300)
    )
}

/// Says that the plan does not have a command, and how it gets there.
pub(super) fn not_planned(task_id: &TaskId, command: &str) -> String {
    let task = task_id.as_str();
    let add = shell(["git", "takeup", "plan", "add", "--task", task, command]);
    format!(
        "not in the plan; add it with {}",
        paint(CYAN, text::one_line(&add, 2_000))
    )
}

/// What is to be run.
pub(super) struct Chosen {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// The command as one shell line: the plan's own where it is planned.
    pub line: String,
    /// The planned check it is.
    pub check: Option<Check>,
}

/// Takes a planned check to be run by the shell.
pub(super) fn by_number(plan: &Plan, number: usize) -> Result<Chosen, Failure> {
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
    Chosen {
        words: vec!["sh".into(), "-c".into(), check.command.clone().into()],
        line: check.command.clone(),
        check: Some(check.clone()),
    }
}

/// Takes the words of the caller, and finds the planned check they are.
pub(super) fn by_words(plan: &Plan, words: Vec<OsString>) -> Chosen {
    let texts: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let given = match &texts[..] {
        // A planned line given as one word, as it was given to the plan: no program has such a name.
        [line] if line.contains(char::is_whitespace) => Some(line),
        // What is done with a planned line.
        [sh, option, line] if sh == "sh" && option == "-c" => Some(line),
        _ => None,
    };
    if let Some(line) = given.filter(|line| !redact::is_masked(line))
        && let Some(check) = plan.checks.iter().find(|check| &check.command == line)
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
    Chosen { words, line, check }
}
