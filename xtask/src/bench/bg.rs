//! Background tasks: how soon a command starts, what its output costs, how small a supervisor is.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::{Contender, markdown, pair, release_program};

/// Arguments of `bench bg`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Counted rounds
    #[arg(long, default_value_t = 15)]
    rounds: usize,

    /// Tasks at once in the last part
    #[arg(long, default_value_t = 200)]
    tasks: usize,

    /// Output of each of them, in MiB
    #[arg(long, default_value_t = 5)]
    mib: u64,

    /// A program that is built already
    #[arg(long)]
    program: Option<PathBuf>,
}

/// A folder for state, and the program.
struct Desk {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Desk {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("bg")
            .args(words)
            .current_dir(self.folder.path())
            .env("TAKEUP_HOME", self.folder.path().join("home"));
        command
    }

    fn run(&self, words: &[&str]) -> anyhow::Result<String> {
        let output = self.command(words).stderr(Stdio::inherit()).output()?;
        ensure!(
            output.status.code().is_some_and(|code| code < 2),
            "bg {words:?} failed: {}",
            output.status
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Measures.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let desk = Desk {
        folder: tempfile::tempdir()?,
        program: match &args.program {
            Some(program) => program.canonicalize()?,
            None => release_program()?,
        },
    };
    start(&desk, args.rounds)?;
    throughput(&desk, args.rounds.min(7))?;
    many(&desk, args)
}

/// How long from `bg run` to the command: the command writes the moment it runs, to the nanosecond.
fn start(desk: &Desk, rounds: usize) -> anyhow::Result<()> {
    let mark = desk.folder.path().join("mark");
    let mark_text = mark.to_string_lossy().into_owned();
    let mut times = Vec::new();
    for round in 0..=rounds {
        if mark.exists() {
            std::fs::remove_file(&mark)?;
        }
        let begun = std::time::UNIX_EPOCH.elapsed()?;
        desk.run(&["run", "--", "touch", &mark_text])?;
        let answered = std::time::UNIX_EPOCH.elapsed()?;
        while !mark.exists() {
            std::thread::sleep(Duration::from_micros(200));
        }
        let started = std::fs::metadata(&mark)?
            .modified()?
            .duration_since(std::time::UNIX_EPOCH)?;
        if round > 0 {
            times.push((
                started.saturating_sub(begun),
                answered.saturating_sub(begun),
            ));
        }
    }
    times.sort();
    let (command, _) = times.get(times.len() / 2).copied().unwrap_or_default();
    times.sort_by_key(|(_, answer)| *answer);
    let (_, answer) = times.get(times.len() / 2).copied().unwrap_or_default();
    println!(
        "from `bg run` to the command: median {:.2} ms; to the answer: median {:.2} ms\n",
        command.as_secs_f64() * 1000.0,
        answer.as_secs_f64() * 1000.0
    );
    Ok(())
}

/// Output through the supervisor beside a plain redirect. Both times include start and end.
fn throughput(desk: &Desk, rounds: usize) -> anyhow::Result<()> {
    let file = desk.folder.path().join("plain");
    for (name, script) in [
        (
            "1 GiB in blocks of 64 KiB",
            "dd if=/dev/zero bs=64k count=16384 2>/dev/null",
        ),
        ("20,000,000 short lines", "seq 20000000"),
    ] {
        let plain = format!("{script} > {}", file.display());
        let folder = desk.folder.path().to_path_buf();
        let program = desk.program.clone();
        let rows = pair(
            &[
                Contender {
                    name: "sh, redirected to a file".to_owned(),
                    make: Box::new(move || {
                        let mut command = Command::new("sh");
                        command.args(["-c", &plain]);
                        command
                    }),
                },
                Contender {
                    name: "bg run, then bg wait".to_owned(),
                    make: Box::new(move || {
                        let mut command = Command::new("sh");
                        command
                            .args(["-c", "\"$0\" bg run --name t -- sh -c \"$1\" >/dev/null && \"$0\" bg wait t"])
                            .arg(&program)
                            .arg(script)
                            .current_dir(&folder)
                            .env("TAKEUP_HOME", folder.join("home"));
                        command
                    }),
                },
            ],
            rounds,
        )?;
        println!("{name}\n\n{}", markdown(&rows));
        desk.run(&["clean", "--all"])?;
    }
    Ok(())
}

/// Many tasks at once: nothing is lost, supervisors stay small, the list is quick.
fn many(desk: &Desk, args: &Args) -> anyhow::Result<()> {
    let gate = desk.folder.path().join("gate");
    let lines = args.mib * 1024 * 1024 / 64;
    let script = format!(
        "seq -f '%063.0f' {lines}; while [ ! -e {} ]; do sleep 1; done",
        gate.display()
    );
    let begun = Instant::now();
    for _ in 0..args.tasks {
        desk.run(&["run", "--", "sh", "-c", &script])?;
    }
    println!(
        "{} tasks with {} MiB each were started in {:.1} s",
        args.tasks,
        args.mib,
        begun.elapsed().as_secs_f64()
    );
    let tasks = desk.folder.path().join("home/state/tasks");
    let expected = lines * 64;
    loop {
        let sizes = outputs(&tasks)?;
        if sizes.len() == args.tasks && sizes.iter().all(|(_, size)| *size >= expected) {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    println!(
        "all output was there after {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    for (path, _) in outputs(&tasks)? {
        let text = std::fs::read(&path)?;
        let right = text
            .chunks(64)
            .enumerate()
            .all(|(number, line)| line == format!("{:063}\n", number + 1).as_bytes());
        ensure!(
            right && text.len() as u64 == expected,
            "{} is torn",
            path.display()
        );
    }
    println!("every line is there, whole and in order");

    let supervisors = supervisors(&tasks)?;
    let before = switches(&supervisors);
    let cpu_before = cpu(&supervisors);
    std::thread::sleep(Duration::from_secs(10));
    println!(
        "{} supervisors: largest {} KiB resident ({} KiB of its own), {} wake-ups and {} ticks of processor time in 10 s together",
        supervisors.len(),
        supervisors
            .iter()
            .filter_map(|pid| status(*pid, "VmRSS:"))
            .max()
            .unwrap_or(0),
        supervisors
            .iter()
            .filter_map(|pid| status(*pid, "RssAnon:"))
            .max()
            .unwrap_or(0),
        switches(&supervisors).saturating_sub(before),
        cpu(&supervisors).saturating_sub(cpu_before)
    );
    let program = desk.program.clone();
    let folder = desk.folder.path().to_path_buf();
    let rows = pair(
        &[Contender {
            name: format!("bg list, {} tasks", args.tasks),
            make: Box::new(move || {
                let mut command = Command::new(&program);
                command
                    .args(["bg", "list"])
                    .current_dir(&folder)
                    .env("TAKEUP_HOME", folder.join("home"));
                command
            }),
        }],
        args.rounds,
    )?;
    println!("\n{}", markdown(&rows));
    std::fs::File::create(&gate)?;
    desk.run(&["wait"])?;
    desk.run(&["clean", "--all"])?;
    Ok(())
}

fn outputs(folder: &Path) -> anyhow::Result<Vec<(PathBuf, u64)>> {
    let mut outputs = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry
            .path()
            .extension()
            .is_some_and(|ending| ending == "output")
        {
            outputs.push((entry.path(), entry.metadata()?.len()));
        }
    }
    Ok(outputs)
}

fn supervisors(folder: &Path) -> anyhow::Result<Vec<u64>> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".status.json") {
            let record: serde_json::Value = serde_json::from_slice(&std::fs::read(&path)?)?;
            let pid = record
                .pointer("/takeup/supervisor/pid")
                .and_then(serde_json::Value::as_u64);
            pids.push(pid.context("a task has a supervisor")?);
        }
    }
    Ok(pids)
}

/// Returns a number of `/proc/PID/status`.
fn status(pid: u64, label: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix(label))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

fn switches(pids: &[u64]) -> u64 {
    pids.iter()
        .filter_map(|pid| status(*pid, "voluntary_ctxt_switches:"))
        .sum()
}

/// Returns the user and system time of processes in ticks.
fn cpu(pids: &[u64]) -> u64 {
    pids.iter()
        .filter_map(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let (_, rest) = stat.rsplit_once(')')?;
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let user: u64 = fields.get(11)?.parse().ok()?;
            let system: u64 = fields.get(12)?.parse().ok()?;
            Some(user + system)
        })
        .sum()
}
