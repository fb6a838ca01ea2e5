//! The list of adapters: the only place that names them.
use takeup_core::agent::Agent;

/// Returns every adapter, in the order in which lists show them.
pub(crate) fn all() -> Vec<Box<dyn Agent>> {
    let mut agents: Vec<Box<dyn Agent>> = vec![
        Box::new(takeup_opencode::OpenCode::new()),
        Box::new(takeup_jcode::Jcode::new()),
        Box::new(takeup_openclaw::OpenClaw::new()),
    ];
    for agent in takeup_cli_agents::all() {
        agents.push(Box::new(agent));
    }
    // No agents of their own: what any agent can use, installed by the same commands.
    agents.push(Box::new(takeup_openclaw::skills::Skills));
    agents.push(Box::new(takeup_cli_agents::mcp::McpEntries));
    agents
}
