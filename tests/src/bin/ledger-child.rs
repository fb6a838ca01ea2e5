//! A process that writes to a ledger, for tests that kill it, starve it or let it race.
//!
//! `ledger-child FOLDER COMMAND…`, where the command is `start TASK`, `note PREFIX COUNT [SIZE]`, `spawn TEXT` (a note, and
//! while the lock is held a child program is started that goes on), `archive`, `log`, or `read`. What was acknowledged is
//! printed at once as a line `ack TEXT`; an error goes to standard error, and the exit status is that of its kind.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a helper of the tests"
)]
use std::convert::Infallible;
use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use takeup_core::error::Explain as _;
use takeup_core::ledger::{Ledger, LedgerError, TransactError};
use takeup_core::status::Status;
use takeup_core::time::SystemClock;
use takeup_tests::ledger::{actor, note, notes, put, start};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", error.code());
            ExitCode::from(error.exit() as u8)
        }
    }
}

fn acknowledge(text: &str) {
    println!("ack {text}");
    std::io::stdout().flush().expect("the test reads");
}

fn unwrap(error: TransactError<Infallible>) -> LedgerError {
    match error {
        TransactError::Ledger(error) => error,
        TransactError::Decision(never) => match never {},
    }
}

fn run(args: &[&str]) -> Result<(), LedgerError> {
    let (folder, args) = args.split_first().expect("a folder is named");
    let ledger = Ledger::at(folder).during("save");
    match args {
        ["start", task] => {
            put(&ledger, start(task, Status::Completed)).map_err(unwrap)?;
            acknowledge(task);
        }
        ["note", prefix, count, rest @ ..] => {
            let size = rest
                .first()
                .map_or(0, |size| size.parse().expect("a number"));
            for number in 0..count.parse::<u32>().expect("a number") {
                let text = format!("{prefix}-{number}{}", "x".repeat(size));
                put(&ledger, note("t", &text)).map_err(unwrap)?;
                acknowledge(&text);
            }
        }
        ["spawn", text] => {
            let committed = ledger
                .transact(&SystemClock, Duration::from_mins(1), |_| {
                    let child = Command::new("sleep")
                        .arg("600")
                        .stdin(Stdio::null())
                        .stdout(Stdio::null())
                        .stderr(Stdio::null())
                        .spawn()
                        .expect("sleep can be started");
                    println!("child {}", child.id());
                    std::io::stdout().flush().expect("the test reads");
                    Ok::<_, Infallible>((Some(note("t", text)), ()))
                })
                .map_err(unwrap)?;
            acknowledge(&format!("{text} {}", committed.seq));
        }
        ["archive"] => {
            let moved = ledger.archive(&SystemClock, Duration::from_mins(1), &actor(), |_| true)?;
            for task in moved.value {
                acknowledge(task.as_str());
            }
        }
        ["log"] => ledger.log(&SystemClock, "a line"),
        ["read"] => {
            let view = ledger.read()?;
            println!("{}", notes(&view).len());
            for issue in view.issues {
                println!("{:?} {}", issue.kind, issue.path.display());
            }
        }
        other => eprintln!("what is {other:?}?"),
    }
    Ok(())
}
