//! What an agent runs in the background by itself.
use std::path::PathBuf;

use crate::ids::SessionId;

/// A background task of an agent's own that is not over, or of which nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTask {
    /// Its id there.
    pub id: String,
    /// What it is called.
    pub name: Option<String>,
    /// The session that started it.
    pub session: SessionId,
    /// It is known to run; if not, it may.
    pub runs: bool,
    /// What shows that.
    pub proof: String,
    /// The file that takes its output.
    pub output: Option<PathBuf>,
}
