//! Start-up and the plain overview, beside `git status` in the same run.
use std::path::Path;
use std::process::Command;

use anyhow::ensure;

use super::{Contender, markdown, pair, release_program};

/// Arguments of `bench start`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Counted rounds
    #[arg(long, default_value_t = 25)]
    rounds: usize,
}

/// Measures in a scratch repository of 200 files.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let program = release_program()?;
    let folder = tempfile::tempdir()?;
    let repo = folder.path().to_path_buf();
    git(&repo, &["init", "-q", "-b", "main"])?;
    for number in 0..200 {
        let path = repo.join(format!("d{}/f{number}.txt", number % 10));
        std::fs::create_dir_all(path.parent().unwrap_or(&repo))?;
        #[expect(
            clippy::disallowed_methods,
            reason = "scratch files need no durability"
        )]
        std::fs::write(path, format!("{number}\n"))?;
    }
    git(&repo, &["add", "-A"])?;
    git(
        &repo,
        &[
            "-c",
            "user.name=b",
            "-c",
            "user.email=b@example.invalid",
            "commit",
            "-q",
            "-m",
            "x",
        ],
    )?;
    ensure!(
        run_in(
            &repo,
            &program,
            &["start", "t", "--session", "s", "--no-checks"]
        )?,
        "start failed"
    );
    ensure!(
        run_in(&repo, &program, &["save", "--session", "s"])?,
        "save failed"
    );
    let contender = |name: &str, program: &Path, words: &'static [&'static str]| {
        let (program, repo) = (program.to_path_buf(), repo.clone());
        Contender {
            name: name.to_owned(),
            make: Box::new(move || {
                let mut command = Command::new(&program);
                command.args(words).current_dir(&repo);
                command
            }),
        }
    };
    let git_program = Path::new("git");
    let rows = pair(
        &[
            contender(
                "git status",
                git_program,
                &["status", "--porcelain=v2", "-uall"],
            ),
            contender("git --version", git_program, &["--version"]),
            contender("git-takeup version", &program, &["version"]),
            contender("git-takeup", &program, &[]),
            contender(
                "git-takeup inspect --json",
                &program,
                &["inspect", "--json"],
            ),
        ],
        args.rounds,
    )?;
    println!("{}", markdown(&rows));
    Ok(())
}

fn git(folder: &Path, words: &[&str]) -> anyhow::Result<()> {
    ensure!(
        run_in(folder, Path::new("git"), words)?,
        "git {words:?} failed"
    );
    Ok(())
}

fn run_in(folder: &Path, program: &Path, words: &[&str]) -> anyhow::Result<bool> {
    Ok(Command::new(program)
        .args(words)
        .current_dir(folder)
        .stdout(std::process::Stdio::null())
        .status()?
        .success())
}
