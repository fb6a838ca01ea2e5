//! A process table that says that it does not know, for systems without one that can be read safely.
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::Signal;

use super::{ProcessDetails, ProcessError, ProcessIdentity, ProcessState, Processes, Signalled};

const WHY: &str = "the process table of this system is not read yet";

/// The table that knows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnknownProcesses;

impl Processes for UnknownProcesses {
    fn identify(&self, _: u32) -> Result<Option<ProcessIdentity>, ProcessError> {
        Err(ProcessError::Unsupported(WHY))
    }

    fn state(&self, _: &ProcessIdentity) -> ProcessState {
        ProcessState::Unknown(WHY.to_owned())
    }

    fn parent(&self, _: u32) -> Result<Option<u32>, ProcessError> {
        Err(ProcessError::Unsupported(WHY))
    }

    fn descendants(&self, _: u32) -> Result<Vec<ProcessIdentity>, ProcessError> {
        Err(ProcessError::Unsupported(WHY))
    }

    fn everyone(&self) -> Result<Vec<ProcessIdentity>, ProcessError> {
        Err(ProcessError::Unsupported(WHY))
    }

    fn variable(&self, _: u32, _: &str) -> Option<OsString> {
        None
    }

    fn start_ticks(&self, _: u32) -> Option<u64> {
        None
    }

    fn details(&self, _: u32) -> Option<ProcessDetails> {
        None
    }

    fn cpu_ticks(&self, _: u32) -> Option<u64> {
        None
    }

    fn program(&self, _: u32) -> Result<Option<String>, ProcessError> {
        Err(ProcessError::Unsupported(WHY))
    }

    fn signal(&self, _: &ProcessIdentity, _: Signal) -> Result<Signalled, ProcessError> {
        Err(ProcessError::Unsupported(WHY))
    }

    fn watch(&self, _: &ProcessIdentity) -> Result<Result<OwnedFd, ProcessState>, ProcessError> {
        Err(ProcessError::Unsupported(WHY))
    }

    fn wait_end(&self, _: &ProcessIdentity, _: Duration) -> Result<bool, ProcessError> {
        Err(ProcessError::Unsupported(WHY))
    }
}
