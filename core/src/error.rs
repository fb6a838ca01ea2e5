//! What every error of the project can say of itself: a stable code, the way out, an exit status.

/// The exit status of the program, part of its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done, or the answer is yes.
    Done = 0,
    /// The answer is no, or it failed.
    No = 1,
    /// The arguments were wrong.
    Usage = 2,
    /// A person has to confirm.
    Confirm = 3,
    /// There is no such task, session or record.
    Missing = 4,
    /// Something changed in between, or somebody else was first.
    Conflict = 5,
    /// A lock or time limit.
    Busy = 6,
    /// A bug of the program.
    Bug = 70,
}

/// An error that names its code, the way out and the exit status.
///
/// Messages are lower-case fragments without a final period; the hint is a sentence of its own.
pub trait Explain: std::error::Error {
    /// Returns the stable machine code, such as `not-a-repository`.
    fn code(&self) -> &'static str;

    /// Returns what a person can do about it.
    fn hint(&self) -> Option<String> {
        None
    }

    /// Returns the name of the task that is not there, where that is what failed.
    fn missing_task(&self) -> Option<&str> {
        None
    }

    /// Returns the exit status.
    fn exit(&self) -> Exit {
        Exit::No
    }

    /// Tells whether the same call may succeed later without anybody doing anything.
    fn retryable(&self) -> bool {
        matches!(self.exit(), Exit::Busy)
    }
}
