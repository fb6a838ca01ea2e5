//! Listing sessions out of a generated jcode home, beside looking at the files and reading them.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::{Contender, markdown, pair, release_program};

/// Arguments of `bench sessions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many sessions
    #[arg(long, default_value_t = 10_000)]
    sessions: usize,

    /// Messages of one kilobyte in each; the last one is the model's if it is a multiple of four
    #[arg(long, default_value_t = 52)]
    messages: usize,

    /// Counted rounds
    #[arg(long, default_value_t = 11)]
    rounds: usize,

    /// Make the home here and keep it, instead of in a scratch folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

/// Measures.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let program = release_program()?;
    let scratch = tempfile::tempdir()?;
    let folder = args
        .keep
        .clone()
        .unwrap_or_else(|| scratch.path().to_path_buf());
    let repo = folder.join("repo");
    let home = folder.join("home");
    if !home.join("sessions").is_dir() {
        std::fs::create_dir_all(&repo)?;
        let made = Command::new("git")
            .args(["init", "-q"])
            .arg(&repo)
            .status()?;
        ensure!(made.success(), "git init failed");
        generate(&home, &repo, args.sessions, args.messages)?;
    }
    let contender = |name: &str, program: &Path, words: &[&str]| {
        let (program, repo, home) = (program.to_path_buf(), repo.clone(), home.clone());
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Contender {
            name: name.to_owned(),
            make: Box::new(move || {
                let mut command = Command::new(&program);
                command
                    .args(&words)
                    .current_dir(&repo)
                    .env("JCODE_HOME", &home);
                command
            }),
        }
    };
    let one = id(args.sessions / 2);
    let sessions = home.join("sessions");
    let sessions = sessions.to_str().context("the folder is not UTF-8")?;
    let read_all = format!("cat {sessions}/*.json");
    let look = ["-c", "find \"$0\" -type f -printf '%s %T@\\n'", sessions];
    let shell = Path::new("sh");
    let contenders = [
        contender("size and time of each file (find)", shell, &look),
        contender("every byte read (cat)", shell, &["-c", &read_all]),
        contender("git-takeup version", &program, &["version"]),
        contender("sessions", &program, &["sessions"]),
        contender("sessions --json", &program, &["sessions", "--json"]),
        contender(
            "sessions --all --json",
            &program,
            &["sessions", "--all", "--json"],
        ),
        contender(
            "sessions --state crashed (crash scan)",
            &program,
            &["sessions", "--state", "crashed", "--json"],
        ),
        contender(
            "sessions --unfinished",
            &program,
            &["sessions", "--unfinished", "--json"],
        ),
        contender("sessions show ID", &program, &["sessions", "show", &one]),
        contender("sessions show WORD", &program, &["sessions", "show", "fox"]),
    ];
    let rows = pair(&contenders, args.rounds)?;
    println!(
        "{} sessions of {} messages\n\n{}",
        args.sessions,
        args.messages,
        markdown(&rows)
    );
    for contender in &contenders {
        let Some(kib) = peak(&contender.make.as_ref()()) else {
            println!("peak memory: not measured (GNU time is not installed)");
            break;
        };
        println!("peak memory of {}: {} MB", contender.name, kib / 1024);
    }
    Ok(())
}

/// Runs a command once under GNU time and returns its peak memory in KiB.
fn peak(command: &Command) -> Option<u64> {
    let mut timed = Command::new("/usr/bin/time");
    timed
        .args(["-f", "%M"])
        .arg(command.get_program())
        .args(command.get_args())
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    if let Some(folder) = command.get_current_dir() {
        timed.current_dir(folder);
    }
    let output = timed.stdout(std::process::Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().last()?.trim().parse().ok()
}

fn id(number: usize) -> String {
    let words = ["fox", "owl", "otter", "panda", "tiger", "whale", "t-rex"];
    let word = words.get(number % words.len()).unwrap_or(&"fox");
    let millis = 1_777_600_000_000 + number * 60_000;
    format!("session_{word}_{millis}_{number:016x}")
}

/// Writes a home: of each hundred sessions one crashed with a marker and a journal, the others were closed.
#[expect(
    clippy::disallowed_methods,
    reason = "scratch files need no durability"
)]
fn generate(home: &Path, repo: &Path, sessions: usize, messages: usize) -> anyhow::Result<()> {
    let folder = home.join("sessions");
    std::fs::create_dir_all(&folder)?;
    std::fs::create_dir_all(home.join("active_pids"))?;
    let dir = repo.to_str().context("the folder is not UTF-8")?;
    let filler =
        "what was read or written in this step, in some words that fill a line; ".repeat(12);
    for number in 0..sessions {
        let id = id(number);
        let crashed = number % 100 == 7;
        let day = 1 + number % 28;
        let at = |message: usize| {
            format!(
                "2026-05-{day:02}T10:{:02}:{:02}.500000001Z",
                message / 60 % 60,
                message % 60
            )
        };
        let mut list = String::new();
        for message in 0..messages {
            if message > 0 {
                list.push(',');
            }
            let (role, block) = match message % 4 {
                1 => (
                    "assistant",
                    format!(
                        r#"{{"type":"text","text":"I will look."}},{{"type":"tool_use","id":"call_{message}","name":"bash","input":{{"command":"sed -n 1,80p src/{filler}","intent":"read"}}}}"#
                    ),
                ),
                2 => (
                    "user",
                    format!(
                        r#"{{"type":"tool_result","tool_use_id":"call_{}","content":"{filler}"}}"#,
                        message - 1
                    ),
                ),
                3 => (
                    "assistant",
                    format!(r#"{{"type":"text","text":"{filler}"}}"#),
                ),
                _ => (
                    "user",
                    format!(r#"{{"type":"text","text":"Step {message}: {filler}"}}"#),
                ),
            };
            write!(
                list,
                r#"{{"id":"message_{}_{message}","role":"{role}","content":[{block}],"timestamp":"{}"}}"#,
                1_777_600_000_000 + number * 60_000 + message,
                at(message)
            )?;
        }
        let status = if crashed { "Active" } else { "Closed" };
        let active = at(0);
        let written = at(messages);
        let text = format!(
            r#"{{"id":"{id}","parent_id":null,"title":"Work number {number}","created_at":"{active}","updated_at":"{written}","messages":[{list}],"provider_key":"mock","model":"mock-1","is_canary":false,"working_dir":"{dir}","status":"{status}","last_pid":99999999,"last_active_at":"{active}","is_debug":false,"saved":false}}"#
        );
        std::fs::write(folder.join(format!("{id}.json")), text)?;
        if crashed {
            let later = at(messages + 1);
            let line = format!(
                r#"{{"meta":{{"parent_id":null,"title":"Work number {number}","updated_at":"{later}","is_canary":false,"working_dir":"{dir}","status":"Active","last_pid":99999999,"last_active_at":"{active}","is_debug":false,"saved":false}},"append_messages":[{{"id":"message_last_{number}","role":"assistant","content":[{{"type":"tool_use","id":"call_last","name":"bash","input":{{"command":"make deploy"}}}}],"timestamp":"{later}"}}]}}"#
            );
            std::fs::write(folder.join(format!("{id}.journal.jsonl")), line + "\n")?;
            std::fs::write(home.join("active_pids").join(&id), "99999999")?;
        }
    }
    Ok(())
}
