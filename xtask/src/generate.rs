//! Generated files: schemas, man pages, completions, the command reference. A test fails when they are out of date.
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// Arguments of `gen`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail when a file is out of date
    #[arg(long)]
    check: bool,
}

/// Writes, or checks, every generated file.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask lies in the workspace")?;
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
        std::fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        #[expect(clippy::disallowed_methods, reason = "git keeps the old content")]
        std::fs::write(&path, content)?;
        println!("wrote {}", path.display());
    }
    if !outdated.is_empty() {
        bail!("out of date, run `cargo xtask gen`: {outdated:?}");
    }
    Ok(())
}

/// Returns every generated file with its path below the workspace.
fn files() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    for (name, schema) in git_takeup::schemas() {
        files.push((
            format!("docs/schemas/{name}.json").into(),
            serde_json::to_string_pretty(&schema)? + "\n",
        ));
    }
    Ok(files)
}
