//! `git takeup gc`
use takeup_core::gc::{self, Collected, ItemKind, Limits};
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
    let summary = summary(&collected);
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

fn summary(collected: &Collected) -> String {
    if collected.items.is_empty() {
        return "nothing is beyond what is kept".to_owned();
    }
    let would = if collected.dry_run { "would be " } else { "" };
    let groups: [(&[ItemKind], &str, &str); 5] = [
        (&[ItemKind::ClosedTask], "closed task", "archived"),
        (&[ItemKind::ArchivedTask], "archived task", "removed"),
        (&[ItemKind::BackgroundTask], "background task", "removed"),
        (
            &[ItemKind::Aside, ItemKind::Temporary, ItemKind::Leftover],
            "leftover",
            "removed",
        ),
        (&[ItemKind::GonePlace], "gone place", "forgotten"),
    ];
    let mut parts = Vec::new();
    for (kinds, name, done) in groups {
        let count = collected
            .items
            .iter()
            .filter(|item| kinds.contains(&item.kind))
            .count();
        if count == 0 {
            continue;
        }
        let plural = if count == 1 { "" } else { "s" };
        parts.push(format!("{count} {name}{plural} {would}{done}"));
    }
    if collected.freed_bytes > 0 {
        parts.push(format!("{} {would}freed", bytes(collected.freed_bytes)));
    }
    parts.join(", ")
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

#[cfg(test)]
mod tests {
    use super::*;
    use takeup_core::gc::Item;

    fn collected(kinds: &[ItemKind], freed_bytes: u64, dry_run: bool) -> String {
        let items = kinds.iter().map(|&kind| Item {
            kind,
            name: String::new(),
            why: String::new(),
            bytes: 0,
        });
        summary(&Collected {
            dry_run,
            items: items.collect(),
            freed_bytes,
            ledger_bytes: 0,
        })
    }

    #[test]
    fn what_went_is_told_in_words_that_fit_its_number() {
        use ItemKind::{Aside, ClosedTask, GonePlace, Temporary};
        assert_eq!(collected(&[GonePlace], 0, false), "1 gone place forgotten");
        assert_eq!(
            collected(&[ClosedTask, ClosedTask, Aside, Temporary], 2048, true),
            "2 closed tasks would be archived, 2 leftovers would be removed, 2 KiB would be freed"
        );
        assert_eq!(
            collected(&[GonePlace, GonePlace, Aside], 5, false),
            "1 leftover removed, 2 gone places forgotten, 5 B freed"
        );
        assert_eq!(collected(&[], 0, true), "nothing is beyond what is kept");
    }
}
