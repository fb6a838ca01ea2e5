//! A process table for tests: what it says is what it was told.
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::Signal;

use super::{ProcessDetails, ProcessError, ProcessIdentity, ProcessState, Processes, Signalled};

/// One process of the table.
#[derive(Clone, Debug)]
pub struct FakeProcess {
    /// The parent's number, 0 for none.
    pub parent: u32,
    /// Start in ticks.
    pub start_ticks: u64,
    /// The program.
    pub program: String,
    /// It has ended and is not reaped.
    pub zombie: bool,
    /// The processor time it has used, in ticks.
    pub cpu_ticks: u64,
    /// The environment it was started with.
    pub variables: BTreeMap<String, OsString>,
}

/// A process table made up by a test.
#[derive(Debug)]
pub struct FakeProcesses {
    /// The id of the present boot.
    pub boot_id: String,
    /// The pid namespace the numbers belong to.
    pub pid_namespace: u64,
    /// The processes by number.
    pub table: BTreeMap<u32, FakeProcess>,
    /// The table cannot be read, and why.
    pub broken: Option<&'static str>,
    sent: Mutex<Vec<(u32, Signal)>>,
}

impl Default for FakeProcesses {
    fn default() -> Self {
        Self {
            boot_id: "boot-1".to_owned(),
            pid_namespace: 1,
            table: BTreeMap::new(),
            broken: None,
            sent: Mutex::default(),
        }
    }
}

impl FakeProcesses {
    /// Makes an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a process that started at the tick `start_ticks`, and returns the table.
    #[must_use]
    pub fn with(mut self, pid: u32, parent: u32, start_ticks: u64, program: &str) -> Self {
        let process = FakeProcess {
            parent,
            start_ticks,
            program: program.to_owned(),
            zombie: false,
            cpu_ticks: 0,
            variables: BTreeMap::new(),
        };
        self.table.insert(pid, process);
        self
    }

    /// Returns the signals that were sent, in order.
    pub fn sent(&self) -> Vec<(u32, Signal)> {
        self.sent
            .lock()
            .map(|sent| sent.clone())
            .unwrap_or_default()
    }

    fn check(&self) -> Result<(), ProcessError> {
        self.broken.map_or(Ok(()), |why| {
            Err(ProcessError::Table {
                path: "/proc".into(),
                source: std::io::Error::other(why),
            })
        })
    }

    fn identity(&self, pid: u32, process: &FakeProcess) -> ProcessIdentity {
        ProcessIdentity {
            boot_id: self.boot_id.clone(),
            pid,
            start_ticks: process.start_ticks,
            pid_namespace: Some(self.pid_namespace),
            started_at: None,
            name: Some(process.program.clone()),
        }
    }
}

impl Processes for FakeProcesses {
    fn identify(&self, pid: u32) -> Result<Option<ProcessIdentity>, ProcessError> {
        self.check()?;
        Ok(self
            .table
            .get(&pid)
            .filter(|process| !process.zombie)
            .map(|process| self.identity(pid, process)))
    }

    fn state(&self, process: &ProcessIdentity) -> ProcessState {
        if let Some(why) = self.broken {
            return ProcessState::Unknown(why.to_owned());
        }
        if process.boot_id != self.boot_id {
            return ProcessState::OtherBoot;
        }
        if process
            .pid_namespace
            .is_some_and(|recorded| recorded != self.pid_namespace)
        {
            return ProcessState::OtherNamespace;
        }
        match self.table.get(&process.pid) {
            None => ProcessState::Gone,
            Some(found) if found.start_ticks != process.start_ticks => ProcessState::Recycled {
                by: Some(found.program.clone()),
            },
            Some(found) if found.zombie => ProcessState::Zombie,
            Some(_) => ProcessState::Running,
        }
    }

    fn parent(&self, pid: u32) -> Result<Option<u32>, ProcessError> {
        self.check()?;
        Ok(self
            .table
            .get(&pid)
            .map(|process| process.parent)
            .filter(|&parent| parent != 0))
    }

    fn descendants(&self, pid: u32) -> Result<Vec<ProcessIdentity>, ProcessError> {
        self.check()?;
        let mut found = Vec::new();
        let mut parents = vec![pid];
        while let Some(parent) = parents.pop() {
            for (&child, process) in self.table.iter().filter(|(_, p)| p.parent == parent) {
                parents.push(child);
                if !process.zombie {
                    found.push(self.identity(child, process));
                }
            }
        }
        Ok(found)
    }

    fn everyone(&self) -> Result<Vec<ProcessIdentity>, ProcessError> {
        self.check()?;
        Ok(self
            .table
            .iter()
            .filter(|(_, process)| !process.zombie)
            .map(|(&pid, process)| self.identity(pid, process))
            .collect())
    }

    fn variable(&self, pid: u32, name: &str) -> Option<OsString> {
        self.table.get(&pid)?.variables.get(name).cloned()
    }

    fn start_ticks(&self, pid: u32) -> Option<u64> {
        self.table.get(&pid).map(|process| process.start_ticks)
    }

    fn details(&self, _: u32) -> Option<ProcessDetails> {
        None
    }

    fn cpu_ticks(&self, pid: u32) -> Option<u64> {
        self.table.get(&pid).map(|process| process.cpu_ticks)
    }

    fn program(&self, pid: u32) -> Result<Option<String>, ProcessError> {
        self.check()?;
        Ok(self.table.get(&pid).map(|process| process.program.clone()))
    }

    fn signal(&self, process: &ProcessIdentity, signal: Signal) -> Result<Signalled, ProcessError> {
        self.check()?;
        let state = self.state(process);
        if state != ProcessState::Running {
            return Ok(Signalled::NotThere(state));
        }
        if let Ok(mut sent) = self.sent.lock() {
            sent.push((process.pid, signal));
        }
        Ok(Signalled::Sent)
    }

    fn watch(
        &self,
        process: &ProcessIdentity,
    ) -> Result<Result<OwnedFd, ProcessState>, ProcessError> {
        Err(ProcessError::Call {
            what: "watch",
            pid: process.pid,
            source: std::io::Error::other("it is made up"),
        })
    }

    fn wait_end(&self, process: &ProcessIdentity, _: Duration) -> Result<bool, ProcessError> {
        self.check()?;
        Ok(self.state(process).is_over())
    }
}
