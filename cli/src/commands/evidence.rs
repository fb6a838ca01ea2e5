//! `git takeup evidence`
use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::engine::{self, RunReport, Which};
use takeup_core::evidence::{Evidence, EvidenceSource, Outcome};

use crate::context::Context;
use crate::options::SessionArgs;
use crate::reply::{Failure, Reply};

/// Arguments of `evidence`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  git takeup evidence add --command 'cargo test' --exit-code 0\n\nReported evidence is marked as such, and counts only where the setting takeup.countReported says so."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Report a run that takeup did not see
    Add {
        /// The command, as one shell line
        #[arg(long, value_name = "COMMAND")]
        command: String,

        /// Its exit status
        #[arg(long, value_name = "STATUS")]
        exit_code: i32,

        /// The task
        #[arg(short, long, value_name = "TASK")]
        task: Option<String>,

        #[command(flatten)]
        session: SessionArgs,
    },
}

/// The answer of `evidence add` and `check`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EvidenceData {
    /// The evidence as it was recorded.
    pub evidence: Evidence,
    /// Whether the plan has this command.
    pub planned: bool,
    /// Whether the content changed while it ran, so that the run speaks of nothing.
    pub content_changed: bool,
    /// Whether the plan has this command and it ran in another folder than the top of the work tree, so that it is no run of the
    /// planned check.
    pub in_other_folder: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let Action::Add {
        command,
        exit_code,
        task,
        session,
    } = args.action;
    let engine = context.engine();
    let which = Which {
        task,
        session: session.session,
        agent: session.agent,
    };
    let (_, plan, _) = engine::plan_to_prove(&engine, &which)?;
    let present = engine::present(&engine)?;
    let now = context.now();
    let report = RunReport {
        command,
        folder: None,
        outcome: Outcome::Exited { code: exit_code },
        started_at: now,
        finished_at: now,
        before: present.clone(),
        after: present,
        stdout: None,
        stderr: None,
        source: EvidenceSource::Reported,
        control: None,
    };
    let evidence = engine::add_evidence(&engine, &which, &report)?;
    let planned = plan
        .checks
        .iter()
        .any(|check| check.command == evidence.command);
    let summary = format!(
        "reported for {}: {} exited with {exit_code}",
        evidence.task_id, evidence.command
    );
    Ok(Reply::new(
        summary,
        &EvidenceData {
            evidence,
            planned,
            content_changed: false,
            in_other_folder: false,
        },
    ))
}
