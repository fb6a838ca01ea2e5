//! Background tasks: processes that outlive session, terminal, agent and takeup itself.
//!
//! Each task has a supervisor of its own: the program started again, in its own session, parent of the command. It reads
//! the command's output from two named pipes, writes it to a file, holds a lock as proof of its life and records how the
//! command ended. What is on disk (section 6.2 of the format of jcode's task files, and beside it our own record) can be
//! looked at by anyone at any time; looking corrects what it says by what the processes really do and writes nothing.
//!
//! | File in the folder of tasks | Content |
//! |---|---|
//! | `<id>.status.json` | the status, replaced as a whole; readable by jcode's rules, our own record under `takeup` |
//! | `<id>.output` | what the command printed, both streams in the order in which they arrived |
//! | `<id>.output.index` | which bytes came from which stream, and when |
//! | `<id>.events.jsonl` | what happened, one line each |
//! | `<id>.lock` | held by the supervisor as long as it lives |
//! | `<id>.stdout`, `<id>.stderr` | named pipes from the command to its supervisor; gone when the task is over |
//!
//! # Limitations
//! - Only Linux has the process table this rests on. Elsewhere starting a task is refused.
//! - Two streams have one order only as far as they are read: what the command writes to both within one wake-up of the
//!   supervisor may change places. Lines are never torn by each other.
//! - A command whose supervisor was killed waits when its pipe is full, until somebody takes it under watch again.
//! - File descriptors above 2 that the caller left open for its children reach the task, as they do with `nohup`.
//! - A limit of memory counts for all processes of a task together where a control group (version 2) can be made, which is so
//!   for root and in a systemd user session; elsewhere, and for processor time always, it counts for each process by itself.
//!   Control groups with a memory controller of version 2 were not at hand where this was tested: their files were.
mod adopt;
mod check;
mod clean;
mod events;
mod group;
mod look;
mod output;
mod progress;
mod record;
mod start;
mod stop;
mod store;
mod supervisor;
mod tree;
mod wait;

pub use adopt::adopt;
pub use check::{CheckEnd, EVIDENCE};
pub use clean::{Cleaned, Limits, Removal, clean};
pub use events::{Event, EventKind};
pub use look::{Seen, Watch, look};
pub use output::{Follow, Shown, Stream, clean_output, read_output, tail_output};
pub use progress::{Progress, ProgressKind, ProgressSource, Recognised, recognise};
pub use record::{CheckFor, CommandEnd, End, Failure, Record, State, Stopping, exit_status};
pub use start::{
    Host, Readiness, Request, SUPERVISE, Started, settle, start, wait_ready, warnings,
};
pub use stop::{Stopped, stop};
pub use store::{BackgroundError, Store};
pub use supervisor::supervise;
pub use tree::MARK;
pub use wait::{WaitFor, Waited, wait};
