//! Begins the session that takes a task up: a command in the work tree, with the session in its environment.
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use takeup_core::engine::EngineError;
use takeup_core::evidence::Outcome;
use takeup_core::ids::SessionRef;

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

    /// Ends the command, gently first: another session was faster.
    pub(crate) fn end(mut self) {
        if self.ended.is_some() {
            return;
        }
        let pid = rustix::process::Pid::from_child(&self.child);
        // It may have ended in this moment; then there is nothing to do.
        let _sent = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let ended = watch::wait(&mut self.child, &[], Some(ENDS_IN));
        if !matches!(ended, Ok(Some(_))) {
            let _killed = self.child.kill();
            let _ended = self.child.wait();
        }
    }
}

impl From<&StillBorn> for EngineError {
    fn from(born: &StillBorn) -> Self {
        Self::NotBegun(takeup_core::text::one_line(&born.why, 300))
    }
}
