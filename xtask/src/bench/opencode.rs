//! Looking at many tasks of OpenCode++, beside its own fingerprint, which is taken once.
use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use serde_json::json;

use super::{Contender, markdown, pair, release_program};

/// Arguments of `bench opencode`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many tasks
    #[arg(long, default_value_t = 1_000)]
    tasks: usize,

    /// Counted rounds
    #[arg(long, default_value_t = 11)]
    rounds: usize,
}

/// Measures.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let program = release_program()?;
    let scratch = tempfile::tempdir()?;
    let home = scratch.path().to_path_buf();
    let mut folders = Vec::new();
    for (name, tasks) in [("one", 1), ("many", args.tasks)] {
        let folder = scratch.path().join(name);
        let made = Command::new("git")
            .args(["init", "-q"])
            .arg(&folder)
            .status()?;
        ensure!(made.success(), "git init failed");
        leave(&folder.canonicalize()?, tasks)?;
        folders.push(folder);
    }
    let contender = |name: String, program: &Path, folder: &Path, words: &[&str]| {
        let (program, folder, home) = (program.to_path_buf(), folder.to_path_buf(), home.clone());
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Contender {
            name,
            make: Box::new(move || {
                let mut command = Command::new(&program);
                command.args(&words).current_dir(&folder).env("HOME", &home);
                command
            }),
        }
    };
    let [one, many] = folders.as_slice() else {
        return Ok(());
    };
    let fingerprint = ["fingerprint", "--format", "opencode-plusplus"];
    let contenders = [
        contender("its fingerprint".to_owned(), &program, many, &fingerprint),
        contender(
            "inspect, 1 task".to_owned(),
            &program,
            one,
            &["inspect", "--json"],
        ),
        contender(
            format!("inspect, {} tasks", args.tasks),
            &program,
            many,
            &["inspect", "--json"],
        ),
        contender(
            format!("every record read (cat), {} tasks", args.tasks),
            Path::new("sh"),
            many,
            &["-c", "cat .agent-context/sidecar/*.json > /dev/null"],
        ),
    ];
    println!("{}", markdown(&pair(&contenders, args.rounds)?));
    Ok(())
}

/// Writes a commit, a change, and so many tasks with a run each, of every kind: as the tree is, changed, finished.
fn leave(root: &Path, tasks: usize) -> anyhow::Result<()> {
    let git = |words: &[&str]| -> anyhow::Result<()> {
        let author = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"];
        let done = Command::new("git")
            .args(author)
            .args(words)
            .current_dir(root)
            .status()?;
        ensure!(done.success(), "git {words:?} failed");
        Ok(())
    };
    let put = |path: &str, text: &str| -> anyhow::Result<()> {
        let path = root.join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        takeup_core::files::replace(&path, text.as_bytes(), 0o644)?;
        Ok(())
    };
    put("a.txt", "one\n")?;
    git(&["add", "."])?;
    git(&["commit", "-qm", "first"])?;
    put("a.txt", "two\n")?;
    for number in 0..tasks {
        let status = if number % 3 == 0 {
            "completed"
        } else {
            "active"
        };
        let digest = format!("{number:064x}");
        let record = json!({
            "schemaVersion": "opencode-plusplus.task-resume.v1",
            "sessionId": format!("ses_{number}"), "repositoryRoot": root, "taskId": format!("task-{number}"),
            "baseWorkingTreeFingerprint": digest, "latestWorkingTreeFingerprint": digest, "status": status,
            "updatedAt": "2026-03-01T10:00:00.000Z", "revision": 1,
        });
        put(
            &format!(".agent-context/sidecar/task-identity-task-{number}-ses-{number}.json"),
            &format!("{record:#}\n"),
        )?;
        let run = json!({
            "id": format!("task-{number}"), "task": format!("Task {number}"), "type": "feature", "mustInspect": [],
            "requiredCommands": ["npm test"], "allowedEditGlobs": ["src/**"], "avoidEditGlobs": ["dist/**"], "files": [],
        });
        put(
            &format!(".agent-context/runs/task-{number}/run.json"),
            &format!("{run:#}\n"),
        )?;
    }
    Ok(())
}
