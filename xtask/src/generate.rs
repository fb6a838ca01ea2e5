//! Generated files: schemas, the state diagram, the command reference. A test fails when they are out of date.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use takeup_core::status::{Status, table};

/// Arguments of `gen`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail when a file is out of date
    #[arg(long)]
    check: bool,

    /// Write man pages into this folder too
    #[arg(long, value_name = "DIR")]
    man: Option<PathBuf>,
}

/// Writes, or checks, every generated file.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let root = workspace()?;
    let mut outdated = Vec::new();
    for (path, content) in files()? {
        let path = root.join(path);
        if std::fs::read(&path).is_ok_and(|there| there == content.as_bytes()) {
            continue;
        }
        if args.check {
            outdated.push(path);
            continue;
        }
        write(&path, content.as_bytes())?;
        println!("wrote {}", path.display());
    }
    if let Some(folder) = &args.man {
        man_pages(folder)?;
    }
    if !outdated.is_empty() {
        bail!("out of date, run `cargo xtask gen`: {outdated:?}");
    }
    Ok(())
}

/// Returns the folder of the workspace.
pub(crate) fn workspace() -> anyhow::Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask lies in the workspace")
}

/// Writes a file, with its folders.
pub(crate) fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    std::fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
    #[expect(clippy::disallowed_methods, reason = "git keeps the old content")]
    std::fs::write(path, content)?;
    Ok(())
}

/// Returns every generated file with its path below the workspace.
fn files() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let mut files = vec![
        ("docs/states.md".into(), states()),
        ("docs/reference.md".into(), reference()),
    ];
    for (name, schema) in git_takeup::schemas() {
        files.push((
            format!("docs/schemas/{name}.json").into(),
            serde_json::to_string_pretty(&schema)? + "\n",
        ));
    }
    for (name, text, _) in takeup_openclaw::skills::files() {
        let folder = Path::new("skills").join(takeup_openclaw::skills::SKILL);
        files.push((folder.join(name), text));
    }
    Ok(files)
}

/// Draws the state machine from its table.
fn states() -> String {
    let mut text = String::from(
        "# States\n\nGenerated from the one table in `core/src/status.rs`. Events that change nothing are left out of the \
         drawing.\n\n```mermaid\nstateDiagram-v2\n    [*] --> active: start\n    [*] --> verification_required: resume\n",
    );
    let node = |status: Status| status.code().replace('-', "_");
    for from in Status::ALL {
        for to in Status::ALL {
            let events: Vec<&str> = table()
                .filter(|row| row.from == from && row.to == Ok(to) && from != to)
                .map(|row| row.event.code())
                .collect();
            if !events.is_empty() {
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "    {} --> {}: {}",
                    node(from),
                    node(to),
                    events.join(", ")
                );
            }
        }
    }
    text.push_str("    completed --> [*]\n    abandoned --> [*]\n```\n\n| status | event | then |\n|---|---|---|\n");
    for row in table() {
        let then = match row.to {
            Ok(to) => format!("`{}`", to.code()),
            Err(refusal) => format!("refused: `{}`", refusal.code()),
        };
        let _ = writeln!(
            text,
            "| `{}` | `{}` | {then} |",
            row.from.code(),
            row.event.code()
        );
    }
    text
}

/// Writes the help of every command into one document.
fn reference() -> String {
    let mut text =
        String::from("# Commands\n\nGenerated from the definition of the command line.\n");
    let mut command = git_takeup::command().term_width(100);
    command.build();
    let mut todo = vec![(String::from("git takeup"), command)];
    while let Some((name, mut command)) = todo.pop() {
        let help = command.render_long_help().to_string();
        let _ = write!(text, "\n## {name}\n\n```text\n");
        for line in help.trim_end().lines() {
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text.push_str("```\n");
        let mut below: Vec<(String, clap::Command)> = command
            .get_subcommands()
            .filter(|below| !below.is_hide_set() && below.get_name() != "help")
            .map(|below| {
                (
                    format!("{name} {}", below.get_name()),
                    below.clone().term_width(100),
                )
            })
            .collect();
        below.reverse();
        todo.extend(below);
    }
    text
}

/// Writes a man page for the program and each of its commands: `git takeup --help` looks for `git-takeup`.
pub(crate) fn man_pages(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut command = git_takeup::command();
    command.build();
    clap_mangen::generate_to(command, folder)?;
    println!("wrote man pages into {}", folder.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_up_to_date() {
        run(&Args {
            check: true,
            man: None,
        })
        .unwrap();
    }
}
