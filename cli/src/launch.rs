//! Begins the session that takes a task up: a command in the work tree, with the session in its environment.
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use takeup_core::background::MARK;
use takeup_core::engine::EngineError;
use takeup_core::evidence::Outcome;
use takeup_core::ids::SessionRef;
use takeup_core::process::{self, ProcessIdentity, Processes};

use crate::watch::{self, PassedOn};

/// How long a command has to run to have come to life. One that ends well before has lived too.
const ALIVE_AFTER: Duration = Duration::from_secs(2);
/// How long a command that is not wanted any more has to end by itself.
const ENDS_IN: Duration = Duration::from_secs(5);

/// A command that was begun.
pub(crate) struct Launched {
    child: Child,
    passed_on: PassedOn,
    ended: Option<ExitStatus>,
    session: SessionRef,
    started: Option<u64>,
}

/// Why a command did not come to life, and the exit status that says so.
pub(crate) struct StillBorn {
    /// Why, in words.
    pub why: String,
    /// The exit status: the command's own, 126 or 127.
    pub code: u8,
}

impl Launched {
    /// Starts a command in a folder and waits until it has come to life. Its standard streams are ours.
    pub(crate) fn begin(
        words: &[OsString],
        session: &SessionRef,
        folder: &Path,
    ) -> Result<Self, StillBorn> {
        let (program, args) = words.split_first().ok_or_else(|| StillBorn {
            why: "no command was given".to_owned(),
            code: 126,
        })?;
        let failed = |why: String| StillBorn {
            code: watch::code_of(&Outcome::NotStarted { why: why.clone() }),
            why,
        };
        let passed_on = watch::stay().map_err(|error| failed(error.to_string()))?;
        let mut child = Command::new(program)
            .args(args)
            .current_dir(folder)
            .env("TAKEUP_SESSION", session.id.as_str())
            .env("TAKEUP_AGENT", session.agent.as_str())
            .spawn()
            .map_err(|error| failed(watch::why_not(program, &error)))?;
        let started = process::system().start_ticks(child.id());
        let ended = watch::wait(&mut child, &passed_on, Some(ALIVE_AFTER))
            .map_err(|error| failed(error.to_string()))?;
        match ended {
            Some(status) if !status.success() => {
                let outcome = watch::outcome_of(status);
                let how = match &outcome {
                    Outcome::Signalled { signal } => format!("was ended by signal {signal}"),
                    Outcome::Exited { .. } | Outcome::NotStarted { .. } => {
                        format!("ended with exit status {}", watch::code_of(&outcome))
                    }
                };
                let name = program.to_string_lossy();
                Err(StillBorn {
                    why: format!("{name} {how} before it had come to life"),
                    code: watch::code_of(&outcome),
                })
            }
            ended => Ok(Self {
                child,
                passed_on,
                ended,
                session: session.clone(),
                started,
            }),
        }
    }

    /// Returns the process; `None` where it is over.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.ended.is_none().then(|| self.child.id())
    }

    /// Tells whether the command was still running when it was last looked at. One that ended at once may have handed the
    /// work to another process, as the starter of a window does.
    pub(crate) const fn is_running(&self) -> bool {
        self.ended.is_none()
    }

    /// Waits for the end and returns the exit status that a shell would give.
    pub(crate) fn wait(mut self) -> std::io::Result<u8> {
        let status = match self.ended {
            Some(status) => Some(status),
            None => watch::wait(&mut self.child, &self.passed_on, None)?,
        };
        let outcome = watch::outcome_of(status.unwrap_or_default());
        Ok(watch::code_of(&outcome))
    }

    /// Ends the command and what it started, gently first: another session was faster.
    pub(crate) fn end(mut self) {
        let processes = process::system();
        let deadline = Instant::now() + ENDS_IN;
        let asked = self.members(&processes);
        // What has ended in this moment is not signalled, and need not be.
        for process in &asked {
            let _sent = processes.signal(process, Signal::TERM);
        }
        for process in &asked {
            let left = deadline.saturating_duration_since(Instant::now());
            let _ended = processes.wait_end(process, left);
        }
        for process in &self.members(&processes) {
            let _killed = processes.signal(process, Signal::KILL);
        }
        if self.ended.is_none() {
            let _ended = self.child.wait();
        }
    }

    /// Lists the command, what descends from it, and what carries its session's mark: something may have left whoever started
    /// it. Background tasks that were started from inside go on.
    fn members(&self, processes: &dyn Processes) -> Vec<ProcessIdentity> {
        let mut members = Vec::new();
        if self.ended.is_none() {
            members.extend(processes.identify(self.child.id()).ok().flatten());
            members.extend(processes.descendants(self.child.id()).unwrap_or_default());
        }
        let is_marked = |process: &ProcessIdentity| {
            let says = |name: &str, value: &str| {
                processes
                    .variable(process.pid, name)
                    .is_some_and(|said| said == value)
            };
            self.started
                .is_some_and(|started| process.start_ticks >= started)
                && says("TAKEUP_SESSION", self.session.id.as_str())
                && says("TAKEUP_AGENT", self.session.agent.as_str())
        };
        let everyone = processes.everyone().unwrap_or_default().into_iter();
        for process in everyone.filter(is_marked) {
            if members.iter().all(|known| !known.is(&process)) {
                members.push(process);
            }
        }
        members.retain(|process| processes.variable(process.pid, MARK).is_none());
        members
    }
}

impl From<&StillBorn> for EngineError {
    fn from(born: &StillBorn) -> Self {
        Self::NotBegun(takeup_core::text::one_line(&born.why, 300))
    }
}
