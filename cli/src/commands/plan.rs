//! `git takeup plan`
use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::engine::{self, PlanEdit, Which};
use takeup_core::ids::TaskId;
use takeup_core::plan::Plan;
use takeup_core::propose::Proposal;
use takeup_core::text;

use crate::context::Context;
use crate::options::SessionArgs;
use crate::printer::{CYAN, DIM, paint, shell};
use crate::reply::{Failure, Reply};

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup plan\n  git takeup plan add 'cargo test'\n  git takeup plan add 'make check' --must-fail 'make check BREAK=1'\n  git takeup plan remove 1\n  git takeup plan add --no-checks"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// The task
    #[arg(short, long, value_name = "TASK", global = true)]
    task: Option<String>,

    #[command(flatten)]
    session: SessionArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show the plan, and what the repository suggests
    List,
    /// Add a check
    Add {
        /// The command, as one shell line
        #[arg(value_name = "COMMAND", required_unless_present = "no_checks")]
        command: Option<String>,

        /// A command that has to fail for the check to count; a check that is added again without one keeps the one it has
        #[arg(long, value_name = "COMMAND")]
        must_fail: Option<String>,

        /// Nothing has to be proved
        #[arg(long, conflicts_with_all = ["command", "must_fail"])]
        no_checks: bool,
    },
    /// Take a check out
    Remove {
        /// The command, or its number in the list
        #[arg(value_name = "COMMAND")]
        command: String,
    },
}

/// The answer of `plan`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanData {
    /// The task.
    task_id: TaskId,
    /// Its plan.
    plan: Plan,
    /// Checks that the repository suggests; none of them was run.
    proposals: Vec<Proposal>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let which = Which {
        task: args.task,
        session: args.session.session,
        agent: args.session.agent,
    };
    let engine = context.engine();
    let edit = match args.action {
        None | Some(Action::List) => None,
        Some(Action::Add {
            no_checks: true, ..
        }) => Some(PlanEdit::NoChecks),
        Some(Action::Add {
            command, must_fail, ..
        }) => Some(PlanEdit::Add {
            command: command.unwrap_or_default(),
            must_fail,
        }),
        Some(Action::Remove { command }) => Some(PlanEdit::Remove(command)),
    };
    let (task_id, plan, proposals) = match edit {
        None => engine::plan_of(&engine, &which)?,
        Some(edit) => {
            let (task_id, plan) = engine::edit_plan(&engine, &which, &edit)?;
            (task_id, plan, Vec::new())
        }
    };
    let summary = match (plan.checks.len(), plan.no_checks) {
        (0, true) => format!("task {task_id}: nothing has to be proved"),
        (0, false) => format!("task {task_id}: no checks yet"),
        (count, _) => format!("task {task_id}: {}", text::count(count, "check", "checks")),
    };
    let mut listing = format!("{summary}\n");
    for (number, check) in plan.checks.iter().enumerate() {
        let control = check
            .must_fail
            .as_ref()
            .map(|command| format!(", must fail: {}", text::as_it_is(command, 300)))
            .unwrap_or_default();
        let note = paint(DIM, format!("({}{control})", check.source));
        listing.push_str(&format!(
            "  {}  {} {note}\n",
            number + 1,
            text::as_it_is(&check.command, 300)
        ));
    }
    let open = proposals.iter().filter(|proposal| {
        !plan
            .checks
            .iter()
            .any(|check| check.command == proposal.command)
    });
    for proposal in open {
        let command = shell([
            "git",
            "takeup",
            "plan",
            "add",
            "--task",
            task_id.as_str(),
            &proposal.command,
        ]);
        let line = format!(
            "  suggested by {}: {}\n",
            proposal.source,
            paint(CYAN, command)
        );
        listing.push_str(&line);
    }
    Ok(Reply::new(
        summary,
        &PlanData {
            task_id,
            plan,
            proposals,
        },
    )
    .human(listing))
}
