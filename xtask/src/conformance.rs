//! One story in every format: `cargo xtask conformance`.
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use takeup_tests::conformance::corpus::Corpus;
use takeup_tests::conformance::facts::Format;
use takeup_tests::conformance::stage::Programs;
use takeup_tests::conformance::{report, run as tell};

/// Where the document lies.
const DOCUMENT: &str = "docs/conformance.md";

/// Arguments of `conformance`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail where the document is another one
    #[arg(long)]
    check: bool,
    /// Only scenarios whose name contains this; writes no document
    #[arg(long, value_name = "TEXT")]
    scenario: Option<String>,
    /// Only this format; writes no document
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,
}

fn format(word: &str) -> Result<Format, String> {
    Format::ALL
        .into_iter()
        .find(|format| format.word() == word)
        .ok_or_else(|| {
            let known: Vec<&str> = Format::ALL.map(Format::word).to_vec();
            format!("one of {}", known.join(", "))
        })
}

/// Tells every story, prints the table, and writes the document or compares it.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let corpus = Corpus::read();
    let programs = programs()?;
    let cells = tell(&corpus, &programs, |scenario, format| {
        let text = args.scenario.as_deref();
        text.is_none_or(|text| scenario.name.contains(text))
            && args.format.is_none_or(|only| only == format)
    });
    ensure!(!cells.is_empty(), "no scenario is called so");
    println!("{}", report::drawn(&corpus, &cells));
    let different = cells
        .iter()
        .filter(|cell| cell.difference.is_some())
        .count();
    ensure!(
        different == 0,
        "{different} of {} tellings have another answer than the one that is right",
        cells.len()
    );
    println!("{} tellings, no difference", cells.len());
    if args.scenario.is_some() || args.format.is_some() {
        return Ok(());
    }
    let document = report::document(&corpus);
    if args.check {
        let recorded = std::fs::read_to_string(DOCUMENT)
            .with_context(|| format!("{DOCUMENT} cannot be read"))?;
        ensure!(
            recorded == document,
            "{DOCUMENT} is out of date; run `cargo xtask conformance`"
        );
        return Ok(());
    }
    takeup_core::files::write_atomic(DOCUMENT.as_ref(), document.as_bytes(), 0o644)?;
    println!("written: {DOCUMENT}");
    Ok(())
}

/// Builds the programs of the tests, beside this one.
fn programs() -> anyhow::Result<Programs> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--package", "takeup-tests", "--bins"])
        .status()
        .context("cargo cannot be started")?;
    ensure!(built.success(), "the programs of the tests cannot be built");
    let own = std::env::current_exe()?;
    let folder = own.parent().map_or_else(PathBuf::new, PathBuf::from);
    Ok(Programs {
        takeup: folder.join("takeup-under-test"),
        stand_in: folder.join("stand-in"),
    })
}
