//! What a packager needs, made and tried: the stripped program with man pages and completions below one prefix, and the demo
//! played from there.
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::generate;

/// Arguments of `dist`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder that becomes the prefix, as `/usr/local` would be
    #[arg(long, value_name = "DIR", default_value = "target/dist-prefix")]
    prefix: PathBuf,
}

/// Where each shell looks for completions, below the prefix.
const COMPLETIONS: [(&str, &str); 4] = [
    ("bash", "share/bash-completion/completions/git-takeup"),
    ("zsh", "share/zsh/site-functions/_git-takeup"),
    ("fish", "share/fish/vendor_completions.d/git-takeup.fish"),
    ("nushell", "share/nushell/vendor/autoload/git-takeup.nu"),
];

/// Builds, installs below the prefix, and tries what was installed.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let root = generate::workspace()?;
    let prefix = root.join(&args.prefix);
    let mut build = Command::new(env!("CARGO"));
    build.current_dir(root).args([
        "build",
        "--locked",
        "--profile",
        "dist",
        "--package",
        "git-takeup",
    ]);
    succeed(&mut build)?;
    let built = root.join("target/dist/git-takeup");
    let program = prefix.join("bin/git-takeup");
    std::fs::create_dir_all(prefix.join("bin"))?;
    std::fs::copy(&built, &program)
        .with_context(|| format!("{} cannot be installed", built.display()))?;
    generate::man_pages(&prefix.join("share/man/man1"))?;
    for (shell, place) in COMPLETIONS {
        let script = succeed(Command::new(&program).args(["completions", shell]))?;
        generate::write(&prefix.join(place), &script)?;
    }
    try_out(&prefix)?;
    let size = std::fs::metadata(&program)?.len();
    println!(
        "{} bytes, with man pages and completions, below {}; the demo ran from there",
        size,
        prefix.display()
    );
    Ok(())
}

/// Runs what was installed as its user would: by git, with nothing else of ours on the search path.
fn try_out(prefix: &Path) -> anyhow::Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(prefix.join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(paths)?;
    let version = succeed(
        Command::new("git")
            .env("PATH", &path)
            .args(["takeup", "version"]),
    )?;
    ensure!(!version.is_empty(), "`git takeup version` printed nothing");
    succeed(
        Command::new("git")
            .env("PATH", &path)
            .args(["takeup", "demo"]),
    )?;
    let page = prefix.join("share/man/man1/git-takeup.1");
    ensure!(page.is_file(), "{} is missing", page.display());
    for (shell, place) in [
        ("bash", COMPLETIONS[0].1),
        ("zsh", COMPLETIONS[1].1),
        ("fish", COMPLETIONS[2].1),
    ] {
        // Only what is there can be asked whether it understands its script.
        match Command::new(shell)
            .arg("-n")
            .arg(prefix.join(place))
            .output()
        {
            Ok(read) => ensure!(
                read.status.success(),
                "{shell} does not read its completions: {}",
                String::from_utf8_lossy(&read.stderr)
            ),
            Err(_) => println!("{shell} is not installed: its completions were not tried"),
        }
    }
    Ok(())
}

/// Runs a command that has to succeed, and returns what it printed.
fn succeed(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let ran = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    if !ran.status.success() {
        bail!("{command:?} ended with {}", ran.status);
    }
    Ok(ran.stdout)
}
