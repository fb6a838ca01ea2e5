//! Runs against real clients, opt-in: `TAKEUP_E2E_CLIENTS` names a folder with the clients installed from their registries.
//!
//! ```text
//! npm install --prefix DIR/node26 node@26
//! PATH=DIR/node26/node_modules/node/bin:$PATH npm install --prefix DIR/openclaw openclaw@2026.9.6
//! PATH=DIR/node26/node_modules/node/bin:$PATH npm install --prefix DIR/others @openai/codex @anthropic-ai/claude-code \
//!   @google/gemini-cli @github/copilot @earendil-works/pi-coding-agent
//! TAKEUP_E2E_CLIENTS=DIR cargo xtask e2e mcp
//! TAKEUP_E2E_CLIENTS=DIR unshare -rn sh -c 'ip link set lo up; cargo xtask e2e openclaw'
//! ```
use clap::Subcommand;

mod mcp;
mod model;
mod openclaw;
mod opencode;

/// Which client
#[derive(Debug, Subcommand)]
pub(crate) enum E2e {
    /// The MCP server under Codex, Claude Code, Gemini, Copilot and Pi
    Mcp(mcp::Args),
    /// OpenClaw: skill, notice, crash, recovery turn, hand-over in, uninstall
    Openclaw,
    /// OpenCode: plugin, tools, notice, kill, take-up, refusal, removal
    Opencode(opencode::Args),
}

/// Runs one client's suite, or says that it skips.
pub(crate) fn run(client: &E2e) -> anyhow::Result<()> {
    if let E2e::Opencode(args) = client {
        return opencode::run(args);
    }
    let Some(clients) = std::env::var_os("TAKEUP_E2E_CLIENTS") else {
        println!("skipped: TAKEUP_E2E_CLIENTS does not name a folder with the clients");
        return Ok(());
    };
    match client {
        E2e::Mcp(args) => mcp::run(args, clients.as_ref()),
        E2e::Openclaw => openclaw::run(clients.as_ref()),
        E2e::Opencode(args) => opencode::run(args),
    }
}
