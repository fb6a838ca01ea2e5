//! Options that several commands share.
use takeup_core::engine::{Caller, Which};
use takeup_core::ids::{AgentId, SessionRef};

use crate::context::Context;

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

impl SessionArgs {
    /// Returns the options that name the session that calls, for a command that may be typed elsewhere: the one that was given,
    /// else the one that the environment names.
    pub(crate) fn words(&self, context: &Context) -> Vec<String> {
        let (session, agent) = (self.session.as_deref(), self.agent.as_deref());
        let caller = Caller::find(&context.engine(), session, agent, None);
        let session = caller.ok().and_then(|caller| caller.session);
        let Some(session) = session.filter(|session| !session.is_nobody_special()) else {
            return Vec::new();
        };
        let SessionRef { agent, id } = session;
        let mut words = vec!["--session".to_owned(), id.to_string()];
        if agent != AgentId::person() {
            words.extend(["--agent".to_owned(), agent.to_string()]);
        }
        words
    }
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
