//! Long runs of the random tests: `cargo xtask soak fingerprint --minutes 60`.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Subcommand;
use takeup_tests::fingerprint::walk::{Tally, Walk};

/// What to run for long
#[derive(Debug, Subcommand)]
pub(crate) enum Soak {
    /// Random walks through the states of a work tree, judged by plain git
    Fingerprint(Args),
}

/// Arguments of `soak fingerprint`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long to run
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// The first seed; else one from the clock, which is printed
    #[arg(long)]
    seed: Option<u64>,
    /// How many walks run at once
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Steps of one walk
    #[arg(long, default_value_t = 150)]
    steps: u64,
}

/// Runs it.
pub(crate) fn run(soak: Soak) -> anyhow::Result<()> {
    match soak {
        Soak::Fingerprint(args) => fingerprint(&args),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a fresh seed for each run, which is printed"
)]
fn fresh() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |time| time.as_secs())
}

fn fingerprint(args: &Args) -> anyhow::Result<()> {
    let seed = args.seed.unwrap_or_else(fresh);
    println!("seed {seed}");
    let begun = Instant::now();
    let end = begun + Duration::from_secs(args.minutes * 60);
    let (next, failed) = (AtomicU64::new(seed), AtomicBool::new(false));
    let told = AtomicU64::new(0);
    let sums: [AtomicU64; 4] = std::array::from_fn(|_| AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..args.threads.max(1) {
            scope.spawn(|| {
                while Instant::now() < end {
                    let mut walk = Walk::new(next.fetch_add(1, Ordering::Relaxed));
                    for _ in 0..args.steps {
                        if Instant::now() >= end {
                            break;
                        }
                        if let Err(difference) = walk.step() {
                            failed.store(true, Ordering::Relaxed);
                            println!("{difference:#?}");
                            break;
                        }
                    }
                    let Tally {
                        judged,
                        refused,
                        fallbacks,
                        drifts,
                    } = walk.tally;
                    for (sum, more) in sums.iter().zip([judged, refused, fallbacks, drifts]) {
                        sum.fetch_add(more, Ordering::Relaxed);
                    }
                    // A run that is stopped has said how far it came.
                    let minute = begun.elapsed().as_secs() / 60;
                    if told.fetch_max(minute, Ordering::Relaxed) < minute {
                        let judged = sums[0].load(Ordering::Relaxed);
                        println!("minute {minute}: {judged} steps judged");
                    }
                }
            });
        }
    });
    let [judged, refused, fallbacks, drifts] = sums.map(AtomicU64::into_inner);
    println!(
        "{judged} steps judged, {refused} states git refuses, {fallbacks} left to git, {drifts} with clean files that a later \
         setting would convert"
    );
    anyhow::ensure!(!failed.into_inner(), "there were differences");
    Ok(())
}
