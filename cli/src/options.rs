//! Options that several commands share.
use takeup_core::engine::Which;

/// Who calls.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SessionArgs {
    /// The session, if it is not known by TAKEUP_SESSION or the agent's own variable
    #[arg(short, long, value_name = "ID", global = true)]
    pub session: Option<String>,

    /// The agent whose session it is
    #[arg(long, value_name = "NAME", global = true)]
    pub agent: Option<String>,
}

/// Which task.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TaskArgs {
    /// The task: its id, the beginning of its id, or its title
    #[arg(value_name = "TASK")]
    pub task_name: Option<String>,

    /// The same as TASK
    #[arg(short, long, value_name = "TASK", conflicts_with = "task_name")]
    pub task: Option<String>,
}

impl TaskArgs {
    /// Returns the task that was named.
    pub(crate) fn named(&self) -> Option<String> {
        self.task_name.clone().or_else(|| self.task.clone())
    }
}

/// Puts task and session together.
pub(crate) fn which(task: &TaskArgs, session: &SessionArgs) -> Which {
    Which {
        task: task.named(),
        session: session.session.clone(),
        agent: session.agent.clone(),
    }
}
