//! Tasks of the project's own workshop: `cargo xtask --help`.
#![expect(clippy::print_stdout, reason = "a workshop tool talks to its terminal")]
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod conformance;
mod dist;
mod e2e;
mod generate;
mod soak;

/// Tasks of the project's own workshop
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Generate schemas, man pages, completions and the command reference
    Gen(generate::Args),
    /// Tell the stories of the corpus in every format, and write the table
    Conformance(conformance::Args),
    /// Measure, side by side with what a user could put in our place
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Run the random tests for long
    #[command(subcommand)]
    Soak(soak::Soak),
    /// Run against real clients (opt-in: they have to be installed first, see `e2e --help`)
    #[command(subcommand)]
    E2e(e2e::E2e),
    /// Build what is shipped, install it below a prefix, and play the demo from there
    Dist(dist::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Gen(args) => generate::run(&args),
        Task::Conformance(args) => conformance::run(&args),
        Task::Bench(bench) => bench::run(bench),
        Task::Soak(soak) => soak::run(soak),
        Task::E2e(client) => e2e::run(&client),
        Task::Dist(args) => dist::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
