//! `git takeup gc`
use takeup_core::gc::{self, ItemKind, Limits};
use takeup_core::text;

use crate::context::Context;
use crate::printer::{self, paint};
use crate::reply::{Failure, Next, Reply};

/// Arguments of `gc`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "What is kept: the last 100 closed tasks and those of the last 14 days (others move into the archive, 32 MiB),\ndamaged pieces for 30 days, finished background tasks for 30 days and up to 2 GiB.\n\nExample:\n  git takeup gc --dry-run"
)]
pub(crate) struct Args {
    /// Show what would go and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let collected = gc::collect(&context.engine(), Limits::DEFAULT, args.dry_run)?;
    let moved = collected
        .items
        .iter()
        .filter(|item| item.kind == ItemKind::ClosedTask)
        .count();
    let gone = collected.items.len() - moved;
    let would = if args.dry_run { "would be " } else { "" };
    let summary = if collected.items.is_empty() {
        "nothing is beyond what is kept".to_owned()
    } else {
        format!(
            "{moved} tasks {would}archived, {gone} things {would}removed, {} {would}freed",
            bytes(collected.freed_bytes)
        )
    };
    let mut rows = Vec::new();
    for item in collected.items.iter().take(200) {
        rows.push(vec![
            kind(item.kind).to_owned(),
            printer::cut(&text::one_line(&item.name, 200), 60),
            bytes(item.bytes),
            paint(printer::DIM, text::one_line(&item.why, 80)),
        ]);
    }
    let mut human = printer::table(&rows);
    if collected.items.len() > rows.len() {
        human.push_str(&format!(
            "… and {} more\n",
            collected.items.len() - rows.len()
        ));
    }
    human.push_str(&summary);
    let reply = Reply::new(summary, &collected).human(human);
    Ok(if args.dry_run && !collected.items.is_empty() {
        reply.next(Next::new("gc", "git takeup gc"))
    } else {
        reply
    })
}

const fn kind(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::ClosedTask => "archive",
        ItemKind::ArchivedTask => "archived task",
        ItemKind::Aside => "damaged piece",
        ItemKind::Temporary => "temporary file",
        ItemKind::BackgroundTask => "background task",
        ItemKind::Leftover => "leftover",
        ItemKind::GonePlace => "place",
    }
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0 => String::new(),
        1..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}
