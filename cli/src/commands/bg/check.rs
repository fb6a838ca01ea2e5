//! `bg run --check`: what is looked at before the start, and what is recorded at the end.
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::background::{BackgroundError, CheckEnd, CheckFor, Stream};
use takeup_core::engine::{self, RunReport, Which};
use takeup_core::env::Env;
use takeup_core::error::Exit;
use takeup_core::evidence::{Evidence, EvidenceSource, Outcome};
use takeup_core::ids::{AgentId, SessionRef, TaskId};
use takeup_core::paths;

use crate::commands::check::{by_number, by_words, not_planned, not_the_top};
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

/// The answer of `bg run` on the check it runs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckData {
    /// The check as one shell line, masked.
    pub command: String,
    /// Whether the plan has this command.
    pub planned: bool,
    /// Whether the plan has this command and it runs in another folder than the top of the work tree, so that it is no run of the
    /// planned check.
    pub in_other_folder: bool,
}

/// What is run for a check.
pub(super) struct Prepared {
    /// The task it is for.
    pub task: TaskId,
    /// The agent's session that holds it: what records the end runs in no session.
    pub holder: Option<SessionRef>,
    /// What is recorded with the background task.
    pub check: CheckFor,
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// The folder it runs in.
    pub folder: PathBuf,
    /// What is said of it.
    pub data: CheckData,
    /// What is told to people.
    pub note: Option<String>,
}

/// What is to be run for a check.
pub(super) enum Wanted {
    /// A command, in the folder that is given.
    Words(Vec<OsString>),
    /// The planned check of this number, at the top of the work tree.
    Planned(usize),
}

/// Looks at the content before the start, and finds the task and its check.
pub(super) fn prepare(
    task: Option<TaskId>,
    session: Option<&SessionRef>,
    wanted: Wanted,
    cwd: &Path,
) -> Result<Prepared, Failure> {
    if !cwd.is_dir() {
        return Err(BackgroundError::NoWorkingFolder(cwd.to_path_buf()).into());
    }
    // Where it runs is said by its real name: a link may lead elsewhere when it ends.
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_path_buf());
    let context = context_in(&cwd);
    let engine = context.engine();
    let (task, plan, holder) = engine::plan_to_prove(&engine, &which(task.as_ref(), session))?;
    let top = engine::top(&engine)?;
    let (chosen, folder) = match wanted {
        Wanted::Words(words) => (by_words(&plan, words), cwd),
        Wanted::Planned(number) => (by_number(&plan, number)?, top.clone()),
    };
    let before = engine::present(&engine)?;
    let command = context.masker().text(&chosen.line).text;
    let named = engine::folder_in(&top, &folder);
    let planned = chosen.check.is_some();
    let in_other_folder = planned && named != Evidence::TOP;
    let note = if in_other_folder {
        Some(not_the_top(&context.masker().text(&named).text))
    } else if planned {
        None
    } else {
        Some(not_planned(&task, &command))
    };
    let check = CheckFor {
        root: paths::text_of_path(&folder),
        line: command.clone(),
        must_fail: chosen.check.and_then(|check| check.must_fail),
        before,
    };
    Ok(Prepared {
        task,
        holder: Some(holder).filter(|holder| holder.agent != AgentId::person()),
        check,
        words: chosen.words,
        folder,
        data: CheckData {
            command,
            planned,
            in_other_folder,
        },
        note,
    })
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
        folder: Some(folder),
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
