//! Measurements: one file each in `bench/`, and the pairing they share.
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Subcommand;

mod bg;
mod fingerprint;
mod hooks;
mod ledger;
mod mcp;
mod openclaw;
mod opencode;
mod sessions;
mod start;

/// What to measure
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Background tasks: start, output, size of a supervisor, beside a plain redirect
    Bg(bg::Args),
    /// Listing sessions out of a generated OpenClaw database
    Openclaw(openclaw::Args),
    /// Looking at many tasks of OpenCode++
    Opencode(opencode::Args),
    /// Listing sessions out of a generated jcode home
    Sessions(sessions::Args),
    /// Reading the ledger, adding to it, the archive, and masking secrets
    Ledger(ledger::Args),
    /// The MCP server: start, weight, idle
    Mcp(mcp::Args),
    /// What the git hooks cost a commit
    Hooks(hooks::Args),
    /// Start-up and the plain overview, beside git itself
    Start(start::Args),
    /// The fingerprint, beside git, libgit2 and the bare system calls
    Fingerprint(fingerprint::Args),
    /// One contender of `bench fingerprint`, in a process of its own
    #[command(hide = true)]
    One(fingerprint::One),
}

/// Runs a measurement.
pub(crate) fn run(bench: Bench) -> anyhow::Result<()> {
    match bench {
        Bench::Bg(args) => bg::run(&args),
        Bench::Openclaw(args) => openclaw::run(&args),
        Bench::Opencode(args) => opencode::run(&args),
        Bench::Sessions(args) => sessions::run(&args),
        Bench::Ledger(args) => ledger::run(&args),
        Bench::Mcp(args) => mcp::run(&args),
        Bench::Hooks(args) => hooks::run(&args),
        Bench::Start(args) => start::run(&args),
        Bench::Fingerprint(args) => fingerprint::run(&args),
        Bench::One(args) => fingerprint::one(&args),
    }
}

/// One command of a comparison.
pub(crate) struct Contender {
    /// Its name in the table.
    pub name: String,
    /// Makes the command anew for each round.
    pub make: Box<dyn Fn() -> Command>,
}

/// Median, minimum and maximum of one contender, and the median of its pairwise ratios to the first one.
pub(crate) struct Row {
    /// Its name.
    pub name: String,
    /// The median time.
    pub median: Duration,
    /// The shortest time.
    pub min: Duration,
    /// The longest time.
    pub max: Duration,
    /// How many times as long as the first contender, as the median of the rounds' ratios.
    pub ratio: f64,
}

/// Runs the contenders in turn, round after round, after one round that does not count.
pub(crate) fn pair(contenders: &[Contender], rounds: usize) -> anyhow::Result<Vec<Row>> {
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for (contender, times) in contenders.iter().zip(&mut times) {
            let mut command = (contender.make)();
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let begun = Instant::now();
            let status = command
                .status()
                .with_context(|| format!("{} cannot be started", contender.name))?;
            let took = begun.elapsed();
            ensure!(
                status.code().is_some_and(|code| code < 2),
                "{} failed: {status}",
                contender.name
            );
            if round > 0 {
                times.push(took);
            }
        }
    }
    let first = times.first().cloned().unwrap_or_default();
    Ok(contenders
        .iter()
        .zip(times)
        .map(|(contender, times)| {
            let mut ratios: Vec<f64> = times
                .iter()
                .zip(&first)
                .map(|(time, first)| time.as_secs_f64() / first.as_secs_f64())
                .collect();
            ratios.sort_by(f64::total_cmp);
            let mut sorted = times;
            sorted.sort();
            Row {
                name: contender.name.clone(),
                median: middle(&sorted).unwrap_or_default(),
                min: sorted.first().copied().unwrap_or_default(),
                max: sorted.last().copied().unwrap_or_default(),
                ratio: middle(&ratios).unwrap_or_default(),
            }
        })
        .collect())
}

fn middle<T: Copy>(sorted: &[T]) -> Option<T> {
    sorted.get(sorted.len() / 2).copied()
}

/// Writes rows as a Markdown table.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut text = String::from(
        "| command | median ms | min | max | times the first |\n|---|---|---|---|---|\n",
    );
    for row in rows {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        text.push_str(&format!(
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} |\n",
            row.name,
            ms(row.median),
            ms(row.min),
            ms(row.max),
            row.ratio
        ));
    }
    text
}

/// Builds the program with the release profile and returns its path.
pub(crate) fn release_program() -> anyhow::Result<std::path::PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "-p", "git-takeup"])
        .status()?;
    ensure!(status.success(), "the program does not build");
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| "target".into(), std::path::PathBuf::from);
    Ok(target.join("release/git-takeup").canonicalize()?)
}
