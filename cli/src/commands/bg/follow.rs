//! Showing a task's output as it grows.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTSTP};
use takeup_core::background::{self, EventKind, Follow, Record, Store, WaitFor, look};
use takeup_core::error::Exit;
use takeup_core::process;
use takeup_core::time::Time;

use super::run::left_alone;
use super::view::TaskData;
use super::{Lender, stop};
use crate::context::Context;
use crate::printer::{self, DIM, paint};
use crate::reply::{Failure, Reply};

/// How long is waited between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// How soon the second Ctrl-Z has to come.
const TWICE: Duration = Duration::from_secs(3);

/// Prints new output until the task is over, the reader is gone, or `leave` says so. Tells whether the task is over.
pub(super) fn follow(
    store: &Store,
    record: &Record,
    lines: Option<usize>,
    context: &Context,
    leave: &mut dyn FnMut() -> bool,
) -> Result<bool, Failure> {
    let lender = Lender::new(context);
    let host = lender.host(context);
    let processes = process::system();
    let mut follow = Follow::new(
        store,
        &record.id,
        record.output_cap,
        lines,
        context.masker(),
    )?;
    loop {
        // Looked at first: what was printed before the end is then read after it.
        let over = look(store, &record.id, &processes)?.record.state.is_over();
        let text = follow.more(over)?;
        if !text.is_empty() && printer::out_raw(text.as_bytes()).is_err() {
            return Ok(over);
        }
        if over {
            // A large rest comes in pieces.
            if text.is_empty() {
                return Ok(true);
            }
            continue;
        }
        if leave() {
            return Ok(false);
        }
        if text.is_empty() {
            let ids = [record.id.clone()];
            let pause = Some(PAUSE);
            background::wait(
                store,
                &ids,
                WaitFor::All,
                pause,
                None,
                Some(&host),
                &processes,
            )?;
        }
    }
}

/// What the keys of a terminal say to a task that is shown as if it ran here.
pub(super) struct Keys {
    interrupted: Arc<AtomicBool>,
    suspended: Arc<AtomicBool>,
}

impl Keys {
    /// Listens from now on: before the task begins, so that no key is lost on it.
    pub(super) fn listen() -> Result<Self, Failure> {
        let keys = Self {
            interrupted: Arc::new(AtomicBool::new(false)),
            suspended: Arc::new(AtomicBool::new(false)),
        };
        for (signal, flag) in [(SIGINT, &keys.interrupted), (SIGTSTP, &keys.suspended)] {
            signal_hook::flag::register(signal, Arc::clone(flag)).map_err(|error| {
                Failure::new("signals-unavailable", Exit::Bug, error.to_string())
            })?;
        }
        Ok(keys)
    }
}

/// Shows a task that was just started as if it ran here.
pub(super) fn foreground(
    store: &Store,
    record: &Record,
    exit_code: bool,
    keys: &Keys,
    context: &Context,
) -> Result<Reply, Failure> {
    let Keys {
        interrupted,
        suspended,
    } = keys;
    let begun = context.clock.now();
    let mut first: Option<Instant> = None;
    let mut stopping = false;
    let mut asked_to_leave = false;
    let mut seen_events = 0;
    let mut leave = || {
        if interrupted.swap(false, Ordering::Relaxed) {
            stopping = true;
            return true;
        }
        if suspended.swap(false, Ordering::Relaxed) {
            if first.is_some_and(|at| at.elapsed() < TWICE) {
                asked_to_leave = true;
                return true;
            }
            first = Some(Instant::now());
            printer::err("press Ctrl-Z once more to leave it running in the background\n");
        }
        asked_to_leave = detached(store, record, begun, &mut seen_events);
        asked_to_leave
    };
    let over = follow(store, record, None, context, &mut leave)?;
    // Ctrl-C ends a pipe's reader as well, and that may be seen first.
    stopping |= interrupted.load(Ordering::Relaxed);
    if stopping {
        let by = stop::who(context)?;
        let lender = Lender::new(context);
        let grace = Duration::from_secs(5);
        background::stop(store, &record.id, &by, grace, &lender.host(context))?;
    } else if !over {
        left_alone(record.id.as_str());
        // Where only the reader is gone, nobody wished to go on without it.
        let exit = if asked_to_leave { Exit::Done } else { Exit::No };
        return Ok(Reply::silent(exit));
    }
    let seen = look(store, &record.id, &process::system())?;
    let task = TaskData::new(store, seen, context.clock.now());
    printer::err(&format!("{}\n", paint(DIM, task.sentence())));
    let exit = if task.is_well() { Exit::Done } else { Exit::No };
    let mut reply = Reply::silent(exit);
    if exit_code {
        reply.code = task.code_to_pass_on();
    }
    Ok(reply)
}

/// Tells whether somebody asked this terminal to leave the task alone.
fn detached(store: &Store, record: &Record, begun: Time, known: &mut u64) -> bool {
    let size = std::fs::metadata(store.events_path(&record.id)).map_or(0, |meta| meta.len());
    if std::mem::replace(known, size) == size {
        return false;
    }
    store
        .events(&record.id, 10)
        .iter()
        .any(|event| event.kind == EventKind::Detached && event.timestamp >= begun)
}
