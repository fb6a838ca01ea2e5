//! Runs against real clients, opt-in: `TAKEUP_E2E_CLIENTS` names a folder with the clients installed from their registries.
//!
//! ```text
//! npm install --prefix DIR/node26 node@26
//! export PATH=DIR/node26/node_modules/node/bin:$PATH
//! npm install --prefix DIR/opencode opencode-ai@1.18.33 @opencode-ai/plugin@1.18.33 @opencode-ai/sdk
//! npm install --prefix DIR/openclaw openclaw@2026.9.6
//! npm install --prefix DIR/openclaw-legacy openclaw@2026.7.1
//! npm install --prefix DIR/others @openai/codex @anthropic-ai/claude-code @google/gemini-cli @github/copilot \
//!   @earendil-works/pi-coding-agent
//! export TAKEUP_E2E_CLIENTS=DIR
//! cargo xtask e2e opencode
//! cargo xtask e2e openclaw
//! cargo xtask e2e mcp
//! ```
//!
//! The first two switch the network off by themselves and start everything in a home of its own.
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
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
    /// OpenClaw, the current and the last release with file stores: skill, notice, crash, recovery turn, removal
    Openclaw(openclaw::Args),
    /// OpenCode: plugin, tools, notice, compaction, kill, take-up, refusal, removal
    Opencode(opencode::Args),
}

/// Runs one client's suite, or says that it skips.
pub(crate) fn run(client: &E2e) -> Result<()> {
    let Some(clients) = std::env::var_os("TAKEUP_E2E_CLIENTS").map(PathBuf::from) else {
        println!("skipped: TAKEUP_E2E_CLIENTS does not name a folder with the clients");
        return Ok(());
    };
    match client {
        E2e::Mcp(args) => mcp::run(args, &clients),
        E2e::Openclaw(args) => openclaw::run(args, &clients),
        E2e::Opencode(args) => opencode::run(args, &clients),
    }
}

/// Runs this program again in a network of its own that has the loopback interface only, unless it is there already or the
/// network shall be left on. Returns whether that was done, and so nothing is left to do here.
fn without_network(leave_on: bool) -> Result<bool> {
    if leave_on || std::env::var_os("TAKEUP_E2E_OFFLINE").is_some() {
        return Ok(false);
    }
    let status = Command::new("unshare")
        .args(["-rn", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env("TAKEUP_E2E_OFFLINE", "1")
        .status()
        .context(
            "cannot switch the network off (needs `unshare` and `ip`); --with-network leaves it on",
        )?;
    ensure!(status.success(), "the suite failed");
    Ok(true)
}

/// The program under test: as named, else what `cargo build` made.
fn program(named: Option<&PathBuf>) -> Result<PathBuf> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let program = named.map_or_else(|| target.join("debug/git-takeup"), PathBuf::clone);
    program
        .canonicalize()
        .with_context(|| format!("{} is not built", program.display()))
}
