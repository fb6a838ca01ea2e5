//! The processes of this machine, as far as the questions of this crate go. Passed in, so that tests decide which live.
use std::fmt;

use takeup_core::process::ProcessIdentity;
use takeup_core::time::Time;

/// What stands behind a process number now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// A process that runs.
    Running(Running),
    /// A process that has ended and was not yet reaped by its parent.
    Zombie,
    /// No process.
    Gone,
    /// It could not be found out.
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

/// Looks at processes.
pub trait Processes: Send + Sync + fmt::Debug {
    /// Looks at one process number.
    fn look(&self, pid: u32) -> Look;
}

/// The processes of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemProcesses;

impl Processes for SystemProcesses {
    fn look(&self, pid: u32) -> Look {
        let Some(number) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else {
            return Look::Gone;
        };
        match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(text) => running(pid, &text),
            Err(_) => match rustix::process::test_kill_process(number) {
                Err(rustix::io::Errno::SRCH) => Look::Gone,
                // It is there, and this user may not look at it.
                Ok(()) | Err(rustix::io::Errno::PERM) => Look::Running(Running {
                    started_at: None,
                    name: None,
                    identity: None,
                }),
                Err(error) => Look::Unknown(error.to_string()),
            },
        }
    }
}

/// Understands `/proc/PID/stat`: `pid (name) state …`, the name may hold anything; the start time is field 22.
fn running(pid: u32, text: &str) -> Look {
    let parsed = text.rsplit_once(')').and_then(|(head, tail)| {
        let name = head.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = tail.split_whitespace().collect();
        let ticks: u64 = fields.get(19)?.parse().ok()?;
        Some((name, (*fields.first()?).to_owned(), ticks))
    });
    let Some((name, state, start_ticks)) = parsed else {
        return Look::Unknown(format!("/proc/{pid}/stat is not as expected"));
    };
    if matches!(state.as_str(), "Z" | "X" | "x") {
        return Look::Zombie;
    }
    let started_at = booted_at().map(|boot| {
        // The kernel reports in its user unit, which is 1/100 s on every machine.
        let millis = start_ticks.saturating_mul(10);
        Time::from_millis(boot.saturating_add(i64::try_from(millis).unwrap_or(i64::MAX)))
    });
    let identity = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .ok()
        .map(|boot| ProcessIdentity {
            boot_id: boot.trim().to_owned(),
            pid,
            start_ticks,
            pid_namespace: None,
            started_at,
            name: Some(name.clone()),
        });
    Look::Running(Running {
        started_at,
        name: Some(name),
        identity,
    })
}

/// Returns when the machine booted, in milliseconds since the epoch.
fn booted_at() -> Option<i64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let seconds: i64 = stat
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()?;
    seconds.checked_mul(1000)
}

#[cfg(test)]
pub(crate) mod fake {
    use std::collections::BTreeMap;

    use super::{Look, Processes, Running, Time};

    /// Processes that a test made up.
    #[derive(Debug, Default)]
    pub(crate) struct Fake(pub(crate) BTreeMap<u32, Look>);

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

        pub(crate) fn zombie(mut self, pid: u32) -> Self {
            self.0.insert(pid, Look::Zombie);
            self
        }
    }

    impl Processes for Fake {
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
        assert_eq!(SystemProcesses.look(pid), Look::Zombie);
        child.wait().unwrap();
        assert_eq!(SystemProcesses.look(pid), Look::Gone);
        for nobody in [0, u32::MAX, 1 << 31] {
            assert_eq!(SystemProcesses.look(nobody), Look::Gone);
        }
    }

    #[test]
    fn a_name_with_brackets_is_read_right() {
        let fields = "1 ".repeat(18);
        let text = format!("7 (a) R (b) S {fields}500 0");
        let Look::Running(running) = running(7, &text) else {
            panic!("running");
        };
        assert_eq!(running.name.as_deref(), Some("a) R (b"));
        assert_eq!(running.identity.unwrap().start_ticks, 500);
    }
}
