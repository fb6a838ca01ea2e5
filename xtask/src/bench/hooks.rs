//! What the git hooks cost a commit: the same commit in the same repository, in turn without hooks, with ours, and with
//! ours turned off.
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use takeup_core::ids::TaskId;
use takeup_core::ledger::{Actor, Change, Ledger, TaskEntry, Transition};
use takeup_core::time::{Clock as _, SystemClock};

use super::release_program;

/// Arguments of `bench hooks`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Counted rounds
    #[arg(long, default_value_t = 25)]
    rounds: usize,
    /// How many files the repositories have
    #[arg(long, value_delimiter = ',', default_values_t = [500, 10_000, 90_000])]
    files: Vec<usize>,
    /// How many finished tasks the ledgers hold
    #[arg(long, value_delimiter = ',', default_values_t = [0, 5_000])]
    tasks: Vec<usize>,
    /// Use this program instead of building one
    #[arg(long)]
    program: Option<PathBuf>,
}

/// One way to commit.
struct Way {
    name: &'static str,
    options: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
}

/// Where the empty script stands, from the repository.
const EMPTY: &str = "../empty";

/// The first is what the others are compared with. The second is what git itself takes for any hook.
const WAYS: [Way; 4] = [
    Way {
        name: "without hooks",
        options: &["-c", "core.hooksPath=/dev/null"],
        variables: &[],
    },
    Way {
        name: "with an empty shell script",
        options: &["-c", "core.hooksPath=../empty"],
        variables: &[],
    },
    Way {
        name: "with ours",
        options: &[],
        variables: &[],
    },
    Way {
        name: "ours turned off",
        options: &[],
        variables: &[("TAKEUP_HOOKS", "0")],
    },
];

/// Measures each size with each number of tasks, and a repository that does not use takeup.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let program = match &args.program {
        Some(program) => program.canonicalize()?,
        None => release_program()?,
    };
    println!(
        "| files | finished tasks | commit | median ms | more than without (median of pairs) | shortest, more |"
    );
    println!("|---|---|---|---|---|---|");
    for &files in &args.files {
        for &tasks in &args.tasks {
            let folder = tempfile::tempdir()?;
            let repo = repository(folder.path(), files)?;
            takeup(&program, &repo, &["hooks", "install"])?;
            finished_tasks(&program, &repo, tasks)?;
            measure(&repo, args.rounds, files, &format!("{tasks}"))?;
        }
    }
    let folder = tempfile::tempdir()?;
    let repo = repository(folder.path(), 500)?;
    takeup(&program, &repo, &["hooks", "install"])?;
    std::fs::remove_dir_all(repo.join(".git/takeup"))?;
    measure(&repo, args.rounds, 500, "not used here")?;
    ensure!(
        !repo.join(".git/takeup").exists(),
        "something was made in a repository that does not use takeup"
    );
    Ok(())
}

fn git(repo: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(repo)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("TAKEUP_HOME", repo.join("../home"))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "bench")
            .env(format!("GIT_{who}_EMAIL"), "bench@example.invalid");
    }
    command
}

fn repository(folder: &Path, files: usize) -> anyhow::Result<PathBuf> {
    let repo = folder.join("repo");
    for number in 0..files {
        let path = repo.join(format!("d{}/e{}/f{number}.txt", number % 97, number % 31));
        std::fs::create_dir_all(path.parent().unwrap_or(&repo))?;
        #[expect(
            clippy::disallowed_methods,
            reason = "scratch files need no durability"
        )]
        std::fs::write(path, format!("{number}\n"))?;
    }
    for words in [
        &["init", "-q", "-b", "main"][..],
        &["add", "-A"],
        // So many loose objects would start a collection that goes on while others are measured.
        &["-c", "gc.auto=0", "commit", "-q", "-m", "x"],
        &["gc", "-q"],
    ] {
        let status = git(&repo).args(words).status()?;
        ensure!(status.success(), "git {words:?} failed");
    }
    let empty = repo.join(EMPTY);
    std::fs::create_dir_all(&empty)?;
    takeup_core::files::write_atomic(&empty.join("post-commit"), b"#!/bin/sh\n", 0o755)?;
    Ok(repo)
}

fn takeup(program: &Path, repo: &Path, words: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(program)
        .args(words)
        .current_dir(repo)
        .env("TAKEUP_HOME", repo.join("../home"))
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "git takeup {words:?} failed");
    Ok(())
}

/// Puts finished tasks into the ledger: one that the program itself made, under many names.
fn finished_tasks(program: &Path, repo: &Path, count: usize) -> anyhow::Result<()> {
    if count == 0 {
        return Ok(());
    }
    takeup(
        program,
        repo,
        &["start", "done", "--session", "s", "--no-checks"],
    )?;
    takeup(program, repo, &["abandon", "done", "--session", "s"])?;
    let ledger = Ledger::at(repo.join(".git/takeup"));
    let state = ledger.read()?.state;
    let model = state.tasks.values().next().context("no task was made")?;
    for batch in (0..count).collect::<Vec<_>>().chunks(250) {
        let changes = batch
            .iter()
            .flat_map(|number| under_name(model, *number))
            .collect();
        let transition = Transition {
            at: SystemClock.now(),
            actor: Actor {
                session: takeup_core::ids::SessionRef::person(),
                pid: std::process::id(),
            },
            operation: "bench".to_owned(),
            changes,
        };
        ledger.transact(&SystemClock, Ledger::PATIENCE, |_| {
            Ok::<_, std::convert::Infallible>((Some(transition), ()))
        })?;
    }
    Ok(())
}

fn under_name(model: &TaskEntry, number: usize) -> Vec<Change> {
    let Ok(task_id) = TaskId::new(format!("done-{number}")) else {
        return Vec::new();
    };
    let mut task = model.task.clone();
    task.task_id = task_id.clone();
    let mut changes = vec![Change::Task { task }];
    for identity in &model.identities {
        let mut identity = identity.clone();
        identity.task_id = task_id.clone();
        changes.push(Change::Identity {
            identity: Box::new(identity),
        });
    }
    changes
}

fn measure(repo: &Path, rounds: usize, files: usize, tasks: &str) -> anyhow::Result<()> {
    let mut times: Vec<Vec<Duration>> = WAYS.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for (way, times) in WAYS.iter().zip(&mut times) {
            // The recorder of the commit before works on after the commit; it is not what is measured here.
            until_recorded(repo)?;
            let mut command = git(repo);
            command
                .args(way.options)
                .args(["commit", "-q", "--allow-empty", "-m", "x"])
                .envs(way.variables.iter().copied());
            let begun = Instant::now();
            let status = command.status()?;
            let took = begun.elapsed();
            ensure!(status.success(), "a commit failed");
            if round > 0 {
                times.push(took);
            }
        }
    }
    let first = times.first().cloned().unwrap_or_default();
    for (way, times) in WAYS.iter().zip(times) {
        let mut more: Vec<f64> = times
            .iter()
            .zip(&first)
            .map(|(time, first)| (time.as_secs_f64() - first.as_secs_f64()) * 1000.0)
            .collect();
        more.sort_by(f64::total_cmp);
        let mut sorted: Vec<f64> = times
            .iter()
            .map(|time| time.as_secs_f64() * 1000.0)
            .collect();
        sorted.sort_by(f64::total_cmp);
        let middle = |list: &[f64]| list.get(list.len() / 2).copied().unwrap_or_default();
        let shortest = sorted.first().copied().unwrap_or_default()
            - first
                .iter()
                .min()
                .map_or(0.0, |time| time.as_secs_f64() * 1000.0);
        println!(
            "| {files} | {tasks} | {} | {:.2} | {:.2} | {shortest:.2} |",
            way.name,
            middle(&sorted),
            middle(&more),
        );
    }
    Ok(())
}

/// Waits until the recorder has looked at what was committed last: it begins when git is over.
fn until_recorded(repo: &Path) -> anyhow::Result<()> {
    let folder = repo.join(".git/takeup");
    while Ledger::at(&folder)
        .read()?
        .state
        .observations
        .iter()
        .any(|seen| seen.pending)
    {
        std::thread::sleep(Duration::from_millis(2));
    }
    if let Ok(lock) = File::open(folder.join("recorder.lock")) {
        lock.lock_shared()?;
    }
    Ok(())
}
