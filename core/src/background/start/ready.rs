//! Waiting until a task that was just started is of use.
use std::ffi::OsString;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
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
}

/// How often is looked.
const PAUSE: Duration = Duration::from_millis(50);

/// Waits until the task is ready (`true`), it is over, or the time is (`false`).
pub fn wait_ready(
    store: &Store,
    record: &Record,
    readiness: &Readiness,
    most: Duration,
    host: &Host<'_>,
) -> Result<bool, BackgroundError> {
    let deadline = Instant::now().checked_add(most);
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
            Readiness::Port(port) => TcpStream::connect_timeout(
                &SocketAddr::from(([127, 0, 0, 1], *port)),
                Duration::from_secs(1),
            )
            .is_ok(),
            Readiness::Command(words) => run(words, &record.cwd),
        };
        if ready {
            let event = Event::new(EventKind::Ready, host.clock.now());
            // The event is for people; the answer does not hang on it.
            drop(events::append(&store.events_path(&record.id), &event));
            return Ok(true);
        }
        if over || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
}

fn run(words: &[OsString], cwd: &str) -> bool {
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
    command.status().is_ok_and(|status| status.success())
}
