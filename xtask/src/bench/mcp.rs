//! The MCP server: from its start to its first answer, what it weighs, and what it costs to have it idle.
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::release_program;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
const INSPECT: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"takeup_inspect","arguments":{}}}"#;

/// Arguments of `bench mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Counted rounds
    #[arg(long, default_value_t = 25)]
    rounds: usize,
    /// How long to watch it idle, in seconds
    #[arg(long, default_value_t = 10)]
    idle: u64,
    /// Use this program instead of building one
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Measures in a scratch repository.
pub(crate) fn run(args: &Args) -> Result<()> {
    let program = match &args.program {
        Some(program) => program.canonicalize()?,
        None => release_program()?,
    };
    let folder = tempfile::tempdir()?;
    let git = Command::new("git")
        .args(["init", "-q"])
        .current_dir(folder.path())
        .status()?;
    ensure!(git.success(), "git init failed");
    let mut firsts = Vec::new();
    let mut looks = Vec::new();
    for round in 0..=args.rounds {
        let begun = Instant::now();
        let mut server = Server::start(&program, folder.path())?;
        server.ask(INITIALIZE)?;
        let first = begun.elapsed();
        let begun = Instant::now();
        server.ask(INSPECT)?;
        if round > 0 {
            firsts.push(first);
            looks.push(begun.elapsed());
        }
    }
    let mut server = Server::start(&program, folder.path())?;
    server.ask(INITIALIZE)?;
    let fresh = server.resident()?;
    server.ask(LIST)?;
    server.ask(INSPECT)?;
    // The thread that worked is kept for a while; idle is when it is gone.
    std::thread::sleep(Duration::from_secs(12));
    let ticks = server.ticks()?;
    std::thread::sleep(Duration::from_secs(args.idle));
    let ticks = server.ticks()? - ticks;
    println!("| | median | largest |\n|---|---|---|");
    println!("| start to first answer, ms | {} |", spread(&mut firsts));
    println!("| inspect, ms | {} |", spread(&mut looks));
    println!("| resident after the first answer, KiB | {fresh} | |");
    println!(
        "| resident when idle after a look, KiB | {} | |",
        server.resident()?
    );
    println!("| processor ticks in {} s idle | {ticks} | |", args.idle);
    Ok(())
}

fn spread(times: &mut [Duration]) -> String {
    times.sort();
    let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1000.0);
    format!(
        "{:.2} | {:.2}",
        ms(times.get(times.len() / 2)),
        ms(times.last())
    )
}

struct Server {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(program: &Path, folder: &Path) -> Result<Self> {
        let mut process = Command::new(program)
            .arg("mcp")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take().context("no input")?;
        let output = BufReader::new(process.stdout.take().context("no output")?);
        Ok(Self {
            process,
            input,
            output,
        })
    }

    /// Sends a request and reads one answer.
    fn ask(&mut self, request: &str) -> Result<()> {
        writeln!(self.input, "{request}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(line.contains("\"result\""), "no answer: {line}");
        Ok(())
    }

    fn proc(&self, name: &str) -> Result<String> {
        let path = format!("/proc/{}/{name}", self.process.id());
        std::fs::read_to_string(&path).with_context(|| path)
    }

    fn resident(&self) -> Result<u64> {
        let status = self.proc("status")?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        Ok(number.context("no VmRSS")?.parse()?)
    }

    fn ticks(&self) -> Result<u64> {
        let stat = self.proc("stat")?;
        let after = stat.rsplit(')').next().unwrap_or_default();
        let fields: Vec<&str> = after.split_whitespace().collect();
        let mut ticks = 0;
        for index in [11, 12] {
            ticks += fields.get(index).context("no times")?.parse::<u64>()?;
        }
        Ok(ticks)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _killed = self.process.kill();
        let _ended = self.process.wait();
    }
}
