//! `bg run --check`: what is looked at before the start, and what is recorded at the end.
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use takeup_core::background::{CheckEnd, CheckFor, Stream};
use takeup_core::engine::{self, RunReport, Which};
use takeup_core::env::Env;
use takeup_core::error::Exit;
use takeup_core::evidence::{EvidenceSource, Outcome};
use takeup_core::ids::{SessionRef, TaskId};
use takeup_core::paths;

use crate::commands::check::by_words;
use crate::context::Context;
use crate::printer;
use crate::reply::Failure;

fn which(task: Option<&TaskId>, session: Option<&SessionRef>) -> Which {
    Which {
        task: task.map(ToString::to_string),
        session: session.map(|session| session.id.to_string()),
        agent: session.map(|session| session.agent.to_string()),
    }
}

/// Makes the context of a call in a folder, with the environment of this process.
fn context_in(folder: &Path) -> Context {
    let mut env = Env::of_process();
    env.cwd = folder.to_path_buf();
    Context::of(env, true, true)
}

/// Looks at the content before the start, and finds the task and its check.
pub(super) fn prepare(
    task: Option<TaskId>,
    session: Option<&SessionRef>,
    command: &[OsString],
    cwd: &Path,
) -> Result<(TaskId, CheckFor), Failure> {
    let context = context_in(cwd);
    let engine = context.engine();
    let (task_id, plan, _) = engine::plan_of(&engine, &which(task.as_ref(), session))?;
    let (_, line, check) = by_words(&plan, command.to_vec());
    let before = engine::present(&engine)?;
    let check = CheckFor {
        root: paths::text_of_path(cwd),
        line: context.masker().text(&line).text,
        must_fail: check.and_then(|check| check.must_fail),
        before,
    };
    Ok((task_id, check))
}

/// Records the end that standard input describes. Started by the supervisor.
pub(crate) fn record_check() -> ExitCode {
    match record() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            printer::err(&format!("{}\n", failure.message));
            ExitCode::from(failure.exit as u8)
        }
    }
}

fn record() -> Result<(), Failure> {
    let wrong = || Failure::new("bad-order", Exit::Usage, "standard input describes no end");
    let end = CheckEnd::read().ok_or_else(wrong)?;
    let check = end.record.check.clone().ok_or_else(wrong)?;
    let folder = paths::path_of_text(&check.root).ok_or_else(wrong)?;
    let context = context_in(&folder);
    let engine = context.engine();
    let after = engine::present(&engine)?;
    let outcome = end.outcome();
    let control = check
        .must_fail
        .filter(|_| outcome.passed())
        .map(|line| control(&line, &folder));
    let report = RunReport {
        command: check.line,
        outcome,
        started_at: end.started_at,
        finished_at: end.ended_at,
        before: check.before,
        after,
        stdout: end.digest(Stream::Stdout),
        stderr: end.digest(Stream::Stderr),
        source: EvidenceSource::Observed,
        control,
    };
    let which = which(end.record.task.as_ref(), end.record.session.as_ref());
    engine::add_evidence(&engine, &which, &report)?;
    Ok(())
}

/// Runs the command that has to fail.
fn control(line: &str, folder: &Path) -> Outcome {
    use std::os::unix::process::ExitStatusExt as _;
    let ran = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match ran.map(|status| (status.code(), status.signal())) {
        Ok((Some(code), _)) => Outcome::Exited { code },
        Ok((None, Some(signal))) => Outcome::Signalled { signal },
        Ok((None, None)) => Outcome::NotStarted {
            why: "it ended in a way that is not known".to_owned(),
        },
        Err(error) => Outcome::NotStarted {
            why: error.to_string(),
        },
    }
}
