//! A repository, a store or a folder that somebody else made, with everything in it that could do harm by being looked at.
mod links;
mod names;
mod odd;
mod programs;
mod shapes;

use std::path::Path;
use std::process::Command;

use super::p5_looking_is_not_writing::{COMMANDS, Kind};
use super::world::World;

/// Every form of a command that only looks, with its words.
fn looks() -> impl Iterator<Item = Vec<&'static str>> {
    COMMANDS.iter().flat_map(|(words, kind)| {
        let (Kind::Reads(forms) | Kind::Writes(forms)) = kind;
        forms.iter().map(|form| {
            words
                .split_whitespace()
                .chain(form.iter().copied())
                .collect()
        })
    })
}

/// Runs a shell script; it has to succeed.
fn sh(folder: &Path, script: &str) {
    let done = Command::new("sh")
        .args(["-euc", script])
        .current_dir(folder)
        .status()
        .unwrap();
    assert!(done.success(), "{script}");
}

fn ends_well(world: &World, words: &[&str]) -> takeup_tests::Ran {
    world
        .bounded(world.program().args(words))
        .ended_well(format_args!("{words:?}"))
}
