//! Git hooks with real git: they record, never hinder, and are taken out to the byte.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::create_dir,
    reason = "tests make files as a user does"
)]
#[path = "hooks/beside.rs"]
mod beside;
#[path = "hooks/changed.rs"]
mod changed;
#[path = "hooks/copies.rs"]
mod copies;
#[path = "hooks/doctor.rs"]
mod doctor;
#[path = "hooks/half.rs"]
mod half;
#[path = "hooks/handing_on.rs"]
mod handing_on;
#[path = "hooks/histories.rs"]
mod histories;
#[path = "hooks/install.rs"]
mod install;
#[path = "hooks/managers.rs"]
mod managers;
#[path = "hooks/obstacles.rs"]
mod obstacles;
#[path = "hooks/places.rs"]
mod places;
#[path = "hooks/real_git.rs"]
mod real_git;
#[path = "hooks/real_managers.rs"]
mod real_managers;
#[path = "hooks/sessions.rs"]
mod sessions;
#[path = "hooks/told.rs"]
mod told;
#[path = "hooks/twins.rs"]
mod twins;
#[path = "hooks/unhindered.rs"]
mod unhindered;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use takeup_core::hooks::EVENTS;
use takeup_core::ledger::{Ledger, State};
use takeup_core::observation::Observation;
use takeup_tests::{Scratch, picture, until, until_nobody_works_in};

const PROGRAM: &str = env!("CARGO_BIN_EXE_takeup-under-test");

/// A repository with the hooks installed.
fn installed() -> Scratch {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["hooks", "install"]).exits(0);
    scratch
}

/// Writes an executable file, through a child: were it open for writing here while another thread of the tests starts a
/// program, that program would hold it open for a moment, and it could not be executed.
fn script(path: &Path, text: &str) {
    use std::io::Write as _;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut shell = Command::new("sh")
        .args(["-c", "cat >\"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    shell
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    assert!(shell.wait().unwrap().success());
}

/// What the ledger of a repository holds, healthy or not at all.
fn state(repo: &Path) -> State {
    let view = Ledger::at(repo.join(".git/takeup")).read().unwrap();
    assert!(view.issues.is_empty(), "{:?}", view.issues);
    view.state
}

fn events(observations: &[Observation]) -> Vec<&str> {
    observations
        .iter()
        .map(|seen| seen.event.as_str())
        .collect()
}

/// Waits until no observation is pending and nobody is at work, and returns the state.
fn settled(repo: &Path) -> State {
    until("no observation is pending", || {
        state(repo).observations.iter().all(|seen| !seen.pending)
    });
    until_nobody_works_in(repo);
    state(repo)
}

/// A picture of a repository without our own folder.
fn whole(repo: &Path) -> String {
    picture(repo, &|name| name == ".git/takeup")
}

/// A picture without the times: what an edited file that was put back byte for byte has new.
fn timeless(picture: &str) -> String {
    let without = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [name, mode, size, _, hash] if mode.starts_with("10") => {
                format!("{name} {mode} {size} {hash}")
            }
            _ => line.to_owned(),
        }
    };
    picture.lines().map(without).collect::<Vec<_>>().join("\n")
}

/// Git in a folder with a command dressed by hand.
fn git_with(
    scratch: &Scratch,
    folder: &Path,
    dress: impl Fn(&mut Command),
    args: &[&str],
) -> Output {
    let mut command = Command::new("git");
    scratch.dress(&mut command);
    command.current_dir(folder).args(args);
    dress(&mut command);
    command.output().unwrap()
}

fn hooks_folder(scratch: &Scratch) -> PathBuf {
    scratch.repo().join(".git/hooks")
}
