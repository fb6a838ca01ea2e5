//! The processes of this machine, as far as the questions of this crate go. Passed in, so that tests decide which live.
use std::fmt;

use takeup_core::process::{self, ProcessIdentity, Processes as _};
use takeup_core::time::Time;

/// What stands behind a process number now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// A process that runs.
    Running(Running),
    /// No process, or one that has ended and was not yet reaped.
    Gone,
    /// It could not be found out, and why.
    Unknown(String),
}

/// A process that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// When it began, where the machine says so.
    pub started_at: Option<Time>,
    /// The program's short name.
    pub name: Option<String>,
    /// Its identity, where the machine says so.
    pub identity: Option<ProcessIdentity>,
}

/// Looks at processes. jcode records bare numbers, so the question is what a number means now.
pub trait Processes: Send + Sync + fmt::Debug {
    /// Looks at one process number.
    fn look(&self, pid: u32) -> Look;

    /// Returns when the machine was started, where that is known.
    fn booted_at(&self) -> Option<Time> {
        None
    }
}

/// The processes of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemProcesses;

impl Processes for SystemProcesses {
    fn look(&self, pid: u32) -> Look {
        if pid == 0 || i32::try_from(pid).is_err() {
            return Look::Gone;
        }
        match process::system().identify(pid) {
            Ok(Some(identity)) => Look::Running(Running {
                started_at: identity.started_at,
                name: identity.name.clone(),
                identity: Some(identity),
            }),
            Ok(None) => Look::Gone,
            Err(error) => Look::Unknown(error.to_string()),
        }
    }

    fn booted_at(&self) -> Option<Time> {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        let seconds = text.lines().find_map(|line| line.strip_prefix("btime "))?;
        let seconds: i64 = seconds.trim().parse().ok()?;
        Some(Time::from_millis(seconds.saturating_mul(1000)))
    }
}

#[cfg(test)]
pub(crate) mod fake {
    use std::collections::BTreeMap;

    use super::{Look, Processes, Running, Time};

    /// Processes that a test made up.
    #[derive(Debug, Default)]
    pub(crate) struct Fake(pub(crate) BTreeMap<u32, Look>, pub(crate) Option<Time>);

    impl Fake {
        pub(crate) fn running(mut self, pid: u32, name: &str, started: &str) -> Self {
            let running = Running {
                started_at: started.parse::<Time>().ok(),
                name: Some(name.to_owned()),
                identity: None,
            };
            self.0.insert(pid, Look::Running(running));
            self
        }
    }

    impl Fake {
        pub(crate) fn booted(mut self, at: &str) -> Self {
            self.1 = at.parse().ok();
            self
        }
    }

    impl Processes for Fake {
        fn booted_at(&self) -> Option<Time> {
            self.1
        }

        fn look(&self, pid: u32) -> Look {
            self.0.get(&pid).cloned().unwrap_or(Look::Gone)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_process_runs_and_an_ended_child_does_not() {
        let Look::Running(own) = SystemProcesses.look(std::process::id()) else {
            panic!("running");
        };
        assert!(own.started_at.is_some());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        // Ended and not reaped: a zombie, at the latest once its end was awaited without reaping it.
        rustix::process::waitid(
            rustix::process::WaitId::Pid(rustix::process::Pid::from_child(&child)),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
        )
        .unwrap();
        assert_eq!(SystemProcesses.look(pid), Look::Gone);
        child.wait().unwrap();
        assert_eq!(SystemProcesses.look(pid), Look::Gone);
        for nobody in [0, u32::MAX, 1 << 31] {
            assert_eq!(SystemProcesses.look(nobody), Look::Gone);
        }
    }
}
