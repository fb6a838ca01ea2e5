//! `git takeup bg clean`
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::background::{self, Cleaned, Limits};

use super::{Lender, find, settle, store, units};
use crate::context::Context;
use crate::printer::{DIM, paint, table};
use crate::reply::{Failure, Reply};

/// Arguments of `bg clean`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup bg clean --dry-run\n  git takeup bg clean --age 7d\n  git takeup bg clean amber-otter\n\nWhat is not over always stays. Without options what is older than 30 days goes, and what is beyond the\nnewest 1000 tasks or 2 GiB."
)]
pub(crate) struct Args {
    /// Only these, whatever their age
    tasks: Vec<String>,

    /// All that are over
    #[arg(long, conflicts_with = "tasks")]
    all: bool,

    /// What was over longer ago than this
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    age: Option<Duration>,

    /// All but the newest ones of this number
    #[arg(long, value_name = "NUMBER")]
    keep: Option<usize>,

    /// All but the newest ones that fit into this much
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    size: Option<u64>,

    /// Remove nothing; say what would go
    #[arg(long)]
    dry_run: bool,
}

/// The answer of `bg clean`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CleanData {
    /// Nothing was removed.
    dry_run: bool,
    #[serde(flatten)]
    cleaned: Cleaned,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Reply, Failure> {
    let store = store(context)?;
    if !args.dry_run {
        settle(&store, &Lender::new(context).host(context));
    }
    let ids = args
        .tasks
        .iter()
        .map(|text| find(text, &store, context))
        .collect::<Result<Vec<_>, _>>()?;
    let limits = if args.all || !ids.is_empty() {
        Limits::NOTHING
    } else {
        Limits {
            age: args.age.unwrap_or(Limits::DEFAULT.age),
            number: args.keep.unwrap_or(Limits::DEFAULT.number),
            bytes: args.size.unwrap_or(Limits::DEFAULT.bytes),
        }
    };
    let cleaned = background::clean(
        &store,
        limits,
        (!ids.is_empty()).then_some(ids.as_slice()),
        args.dry_run,
        &*context.processes,
        context.clock.now(),
    )?;
    let bytes: u64 = cleaned.removed.iter().map(|removal| removal.bytes).sum();
    let verb = if args.dry_run {
        "would remove"
    } else {
        "removed"
    };
    let summary = format!(
        "{verb} {} tasks ({}) and {} leftovers; {} are not over and stay",
        cleaned.removed.len(),
        units::bytes(bytes),
        cleaned.leftovers.len(),
        cleaned.running
    );
    let rows: Vec<Vec<String>> = cleaned
        .removed
        .iter()
        .map(|removal| {
            vec![
                removal.name.clone(),
                removal.status.clone(),
                units::bytes(removal.bytes),
                paint(DIM, &removal.why),
            ]
        })
        .collect();
    let human = format!("{}{summary}", table(&rows));
    let data = CleanData {
        dry_run: args.dry_run,
        cleaned,
    };
    Ok(Reply::new(summary, &data).human(human))
}
