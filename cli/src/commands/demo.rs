//! `git takeup demo`: the whole story, played for real in a scratch repository.
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use takeup_core::error::Exit;
use takeup_core::files::write_atomic;

use crate::context::Context;
use crate::printer::{self, BOLD, CYAN, DIM, paint};
use crate::reply::{Failure, Reply};

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Everything happens in a temporary folder with a home of its own; your repositories and settings\nare not touched."
)]
pub(crate) struct Args {
    /// Keep the scratch folder and say where it is
    #[arg(long)]
    keep: bool,
}

/// The answer of `demo`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DemoData {
    /// What happened, in order.
    steps: Vec<StepData>,
    /// The scratch folder, where it was kept.
    folder: Option<String>,
}

/// One command of the story.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepData {
    /// What it shows.
    title: String,
    /// The command.
    command: String,
    /// Its exit status.
    exit: i32,
    /// The verdict it gave, where it gave one.
    verdict: Option<String>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let folder = tempfile::Builder::new()
        .prefix("takeup-demo-")
        .tempdir()
        .map_err(|error| fail(&error.to_string()))?;
    let mut stage = Stage {
        root: folder.path().to_path_buf(),
        steps: Vec::new(),
        quiet: context.json,
    };
    play(&mut stage)?;
    let kept = if args.keep {
        Some(folder.keep().to_string_lossy().into_owned())
    } else {
        None
    };
    let mut end = "\nThis was all real: every command above ran, every file was there.".to_owned();
    if let Some(kept) = &kept {
        end.push_str(&format!("\nThe scratch folder is {kept}"));
    }
    let data = DemoData {
        steps: stage.steps,
        folder: kept,
    };
    Ok(Reply::new("the story was played", &data).human(end))
}

fn fail(what: &str) -> Failure {
    Failure::new(
        "demo-failed",
        Exit::No,
        format!("the demo could not be played: {what}"),
    )
}

/// Where the story is played.
struct Stage {
    root: PathBuf,
    steps: Vec<StepData>,
    quiet: bool,
}

impl Stage {
    fn repository(&self) -> PathBuf {
        self.root.join("repository")
    }

    fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.repository()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("GIT_") || name.starts_with("TAKEUP_") {
                command.env_remove(name);
            }
        }
        command
            .env("HOME", self.root.join("home"))
            .env("TAKEUP_HOME", self.root.join("home/takeup"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "Demo")
                .env(format!("GIT_{who}_EMAIL"), "demo@example.invalid");
        }
        command
    }

    fn git(&self, words: &[&str]) -> Result<(), Failure> {
        let output = self
            .command(OsStr::new("git"))
            .args(words)
            .output()
            .map_err(|error| fail(&error.to_string()))?;
        if output.status.success() {
            Ok(())
        } else {
            Err(fail(&String::from_utf8_lossy(&output.stderr)))
        }
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        Ok(write_atomic(
            &self.repository().join(name),
            text.as_bytes(),
            0o644,
        )?)
    }

    fn takeup(&self, words: &[&str]) -> Result<Command, Failure> {
        let own = std::env::current_exe().map_err(|error| fail(&error.to_string()))?;
        let mut command = self.command(own.as_os_str());
        command.args(words);
        Ok(command)
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            printer::out(text);
        }
    }

    fn title(&self, text: &str) {
        self.say(&format!("\n{}\n", paint(BOLD, text)));
    }

    /// Runs a command of ours, shows it and what it printed, and demands an exit status.
    fn show(&mut self, title: &str, words: &[&str], exit: i32) -> Result<(), Failure> {
        let line = printer::shell(["git", "takeup"].into_iter().chain(words.iter().copied()));
        self.say(&format!("{} {}\n", paint(DIM, "$"), paint(CYAN, &line)));
        let output = self
            .takeup(words)?
            .output()
            .map_err(|error| fail(&error.to_string()))?;
        self.finish(title, line, words, &output, exit)
    }

    fn finish(
        &mut self,
        title: &str,
        line: String,
        words: &[&str],
        output: &Output,
        exit: i32,
    ) -> Result<(), Failure> {
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        for printed in String::from_utf8_lossy(&text).lines() {
            self.say(&format!("  {printed}\n"));
        }
        let code = output.status.code().unwrap_or(-1);
        if code != exit {
            return Err(fail(&format!(
                "`{line}` ended with {code}, not with {exit}"
            )));
        }
        let verdict = if words.first() == Some(&"inspect") {
            self.verdict()?
        } else {
            None
        };
        self.steps.push(StepData {
            title: title.to_owned(),
            command: line,
            exit: code,
            verdict,
        });
        Ok(())
    }

    /// Asks for the verdict of the one task.
    fn verdict(&self) -> Result<Option<String>, Failure> {
        let output = self
            .takeup(&["inspect", "--json"])?
            .output()
            .map_err(|error| fail(&error.to_string()))?;
        let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Ok(value
            .pointer("/data/candidates/0/verdict")
            .and_then(Value::as_str)
            .map(str::to_owned))
    }
}

fn play(stage: &mut Stage) -> Result<(), Failure> {
    takeup_core::files::make_private_folder(&stage.repository())?;
    takeup_core::files::make_private_folder(&stage.root.join("home"))?;
    stage.git(&["init", "-q", "-b", "main"])?;
    stage.write("login.txt", "timeout = 30\n")?;
    stage.write("readme.txt", "a small project\n")?;
    stage.git(&["add", "-A"])?;
    stage.git(&["commit", "-q", "-m", "a small project"])?;

    stage.title("1. An agent's session begins a task, edits, and says what it leaves");
    let mut agent = agent_process(stage)?;
    let pid = agent.id().to_string();
    let told = begin(stage, &pid);
    stage.title("2. The session is killed in the middle");
    agent
        .kill()
        .and_then(|()| agent.wait())
        .map_err(|error| fail(&error.to_string()))?;
    told?;
    stage.say(&format!("  process {pid} got signal 9\n"));

    stage.title("3. Somebody changes the tree meanwhile: the task is stale, and the paths say why");
    stage.write("readme.txt", "a small project, changed by somebody\n")?;
    stage.write("new.txt", "and a new file\n")?;
    stage.show("stale", &["inspect"], 0)?;
    stage.show(
        "a plain yes is not enough",
        &["resume", "fix-login-timeout", "--to", "second", "--confirm"],
        3,
    )?;

    stage.title("4. The change is undone: the content is what was left");
    stage.git(&["checkout", "-q", "--", "readme.txt"])?;
    std::fs::remove_file(stage.repository().join("new.txt"))
        .map_err(|error| fail(&error.to_string()))?;
    stage.show("compatible", &["inspect"], 0)?;

    stage.title("5. Two sessions take it up at the same moment: one wins");
    race(stage)?;
    stage.show("the history", &["log", "fix-login-timeout"], 0)
}

/// A process that stands for an agent's session.
fn agent_process(stage: &Stage) -> Result<Child, Failure> {
    stage
        .command(OsStr::new("sleep"))
        .arg("600")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| fail(&error.to_string()))
}

fn begin(stage: &mut Stage, pid: &str) -> Result<(), Failure> {
    let start = [
        "start",
        "Fix login timeout",
        "--session",
        "first",
        "--pid",
        pid,
        "--check",
        "grep -q 60 login.txt",
    ];
    stage.show("started", &start, 0)?;
    stage.write("login.txt", "timeout = 60\n")?;
    stage.say(&format!(
        "  {}\n",
        paint(DIM, "(the session edits login.txt)")
    ));
    stage.show("saved", &["save", "--session", "first"], 0)?;
    stage.show("in use", &["inspect"], 0)
}

fn race(stage: &mut Stage) -> Result<(), Failure> {
    let takers = ["second", "third"];
    let mut running = Vec::new();
    for taker in takers {
        let words = [
            "resume",
            "fix-login-timeout",
            "--from",
            "first",
            "--to",
            taker,
            "--confirm",
        ];
        let line = printer::shell(["git", "takeup"].into_iter().chain(words));
        stage.say(&format!(
            "{} {}\n",
            paint(DIM, "$"),
            paint(CYAN, format!("{line} &"))
        ));
        let child = stage
            .takeup(&words)?
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| fail(&error.to_string()))?;
        running.push((line, child));
    }
    let mut codes = Vec::new();
    for (line, child) in running {
        let output = child
            .wait_with_output()
            .map_err(|error| fail(&error.to_string()))?;
        let code = output.status.code().unwrap_or(-1);
        stage.finish("a taker", line, &[], &output, code)?;
        codes.push(code);
    }
    codes.sort_unstable();
    if codes == [0, 5] {
        Ok(())
    } else {
        Err(fail(&format!(
            "the takers ended with {codes:?}, not with 0 and 5"
        )))
    }
}
