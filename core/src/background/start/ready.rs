//! Waiting until a task that was just started is of use.
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::background::events::{self, Event, EventKind};
use crate::background::look::look;
use crate::background::output::Follow;
use crate::background::record::Record;
use crate::background::start::Host;
use crate::background::store::{BackgroundError, Store};

/// What shows that a task is of use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Its output holds this text.
    Output(String),
    /// Something listens on this port of this machine.
    Port(u16),
    /// This command, run in the task's folder, exits with status 0.
    Command(Vec<OsString>),
}

impl Readiness {
    /// Reads `port:8080`, `cmd:curl -f localhost` (split into words, no shell) or `output:text`; anything else is a text
    /// of the output.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(port) = text.strip_prefix("port:") {
            return port
                .parse()
                .map(Self::Port)
                .map_err(|_| format!("{port:?} is no port number"));
        }
        if let Some(command) = text.strip_prefix("cmd:") {
            let words = shlex::split(command).filter(|words| !words.is_empty());
            return words
                .map(|words| Self::Command(words.into_iter().map(OsString::from).collect()))
                .ok_or_else(|| format!("{command:?} is no command"));
        }
        let text = text.strip_prefix("output:").unwrap_or(text);
        if text.is_empty() {
            return Err("an empty text is always there".to_owned());
        }
        Ok(Self::Output(text.to_owned()))
    }

    /// Tells whether it holds before the task is started: what answers on the port is then somebody else's, and would be
    /// taken for the task.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Port(port) if answers(*port))
    }
}

/// Tells whether something listens on a port of this machine.
fn answers(port: u16) -> bool {
    [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ]
    .into_iter()
    .any(|here| {
        TcpStream::connect_timeout(&SocketAddr::new(here, port), Duration::from_secs(1)).is_ok()
    })
}

/// How often is looked.
const PAUSE: Duration = Duration::from_millis(50);

/// Waits until the task is ready (`true`), or it is over, the time is, or `interrupt` is raised (`false`). What a task printed
/// shows that it was ready also when it is over; a port that answers, or a command, does not.
pub fn wait_ready(
    store: &Store,
    record: &Record,
    readiness: &Readiness,
    most: Duration,
    interrupt: Option<&AtomicBool>,
    host: &Host<'_>,
) -> Result<bool, BackgroundError> {
    let deadline = Instant::now().checked_add(most);
    let enough = || {
        interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed))
            || deadline.is_some_and(|deadline| Instant::now() >= deadline)
    };
    let mut follow = Follow::new(
        store,
        &record.id,
        record.output_cap,
        None,
        &crate::redact::Masker::default(),
    )?;
    let mut printed = String::new();
    loop {
        let over = look(store, &record.id, host.processes)?
            .record
            .state
            .is_over();
        let ready = match readiness {
            Readiness::Output(text) => {
                printed.push_str(&follow.more(true)?);
                let found = printed.contains(text.as_str());
                // What may be the beginning of the text stays.
                let keep = text.len().saturating_mul(4);
                let cut = printed.floor_char_boundary(printed.len().saturating_sub(keep));
                printed.drain(..cut);
                found
            }
            Readiness::Port(_) | Readiness::Command(_) if over => false,
            Readiness::Port(port) => answers(*port),
            Readiness::Command(words) => run(words, &record.cwd, &enough),
        };
        if ready {
            let event = Event::new(EventKind::Ready, host.clock.now());
            // The event is for people; the answer does not hang on it.
            drop(events::append(&store.events_path(&record.id), &event));
            return Ok(true);
        }
        if over || enough() {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Runs a command, and ends it when there is no more time.
fn run(words: &[OsString], cwd: &str, enough: &dyn Fn() -> bool) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(cwd) = crate::paths::path_of_text(cwd) {
        command.current_dir(cwd);
    }
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if !enough() => std::thread::sleep(PAUSE / 5),
            Ok(None) | Err(_) => {
                // It has nothing of its own to lose; one that is gone already needs no end.
                drop(child.kill());
                drop(child.wait());
                return false;
            }
        }
    }
}
