//! The list of adapters: the only place that names them.
use takeup_core::agent::{Agent, AgentError, Found, Masked};
use takeup_core::env::Env;

/// A background task that an agent started by itself.
pub(crate) use takeup_jcode::tasks::{BackgroundTask as AgentTask, TaskState as AgentTaskState};

/// Returns every adapter, in the order in which lists show them. None is used but behind the masks: what agents recorded holds
/// secrets.
pub(crate) fn all() -> Vec<Box<dyn Agent>> {
    let mut agents: Vec<Box<dyn Agent>> = vec![
        masked(takeup_opencode::OpenCode::new()),
        masked(takeup_jcode::Jcode::new()),
        masked(takeup_openclaw::OpenClaw::new()),
    ];
    for agent in takeup_cli_agents::all() {
        agents.push(masked(agent));
    }
    // No agents of their own: what any agent can use, installed by the same commands.
    agents.push(masked(takeup_openclaw::skills::Skills));
    agents.push(masked(takeup_cli_agents::mcp::McpEntries));
    agents
}

fn masked(agent: impl Agent + 'static) -> Box<dyn Agent> {
    Box::new(Masked::new(agent))
}

/// Reads what such a task printed, of more than `most` bytes the last ones, and how much that is in all.
pub(crate) fn task_output(
    task: &AgentTask,
    most: u64,
) -> Result<Option<(Vec<u8>, u64)>, AgentError> {
    takeup_jcode::tasks::output(task, most).map_err(AgentError::Damaged)
}

/// Lists the background tasks that agents started by themselves, out of their own records. Changes nothing.
pub(crate) fn background_tasks(env: &Env) -> Found<AgentTask> {
    takeup_jcode::tasks::list(env, &takeup_jcode::SystemProcesses)
}
