//! Runs a command under the caller's eyes: same terminal, same signals, same exit status; and digests its output where
//! that is no terminal.
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use takeup_core::evidence::{Digest, Outcome};

/// How a command ended and what it printed.
pub(crate) struct Seen {
    /// How it ended.
    pub outcome: Outcome,
    /// Digest of standard output; `None` where it was a terminal.
    pub stdout: Option<Digest>,
    /// Digest of standard error; `None` where it was a terminal.
    pub stderr: Option<Digest>,
}

impl Seen {
    /// Returns the exit status that a shell would give: its own, 128 and the signal's number, 126 or 127.
    pub(crate) fn code(&self) -> u8 {
        code_of(&self.outcome)
    }
}

/// Runs a command to its end in a folder. With `output_to_stderr` its standard output goes to ours for errors.
pub(crate) fn run(words: &[OsString], folder: &Path, output_to_stderr: bool) -> io::Result<Seen> {
    let Some((program, args)) = words.split_first() else {
        return Ok(not_started("no command was given".to_owned()));
    };
    let tee_stdout = output_to_stderr || !io::stdout().is_terminal();
    let tee_stderr = !io::stderr().is_terminal();
    let mut command = Command::new(program);
    command.args(args).current_dir(folder);
    command.stdout(if tee_stdout {
        Stdio::piped()
    } else {
        Stdio::inherit()
    });
    command.stderr(if tee_stderr {
        Stdio::piped()
    } else {
        Stdio::inherit()
    });

    let passed_on = stay()?;
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let why = why_not(program, &error);
            crate::printer::err(&format!(
                "git takeup check: {}\n",
                takeup_core::text::one_line(&why, 300)
            ));
            return Ok(not_started(why));
        }
    };
    let over = Arc::new(AtomicBool::new(false));
    let stdout = child.stdout.take().map(|pipe| {
        let over = Arc::clone(&over);
        thread::spawn(move || {
            if output_to_stderr {
                tee(pipe.into(), io::stderr(), &over)
            } else {
                tee(pipe.into(), io::stdout(), &over)
            }
        })
    });
    let stderr = child.stderr.take().map(|pipe| {
        let over = Arc::clone(&over);
        thread::spawn(move || tee(pipe.into(), io::stderr(), &over))
    });
    let status = wait(&mut child, &passed_on, None)?.unwrap_or_default();
    over.store(true, Ordering::Release);
    let join =
        |handle: Option<thread::JoinHandle<Digest>>| handle.and_then(|handle| handle.join().ok());
    Ok(Seen {
        outcome: outcome_of(status),
        stdout: join(stdout),
        stderr: join(stderr),
    })
}

/// Says why a program could not be started.
pub(crate) fn why_not(program: &OsStr, error: &io::Error) -> String {
    let name = program.to_string_lossy();
    match error.kind() {
        io::ErrorKind::NotFound => format!("{name}: not found"),
        _ => format!("{name}: {error}"),
    }
}

/// Says how a command ended.
pub(crate) fn outcome_of(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(code), _) => Outcome::Exited { code },
        (None, Some(signal)) => Outcome::Signalled { signal },
        (None, None) => Outcome::NotStarted {
            why: "it ended in a way that is not known".to_owned(),
        },
    }
}

/// Returns the exit status that a shell would give: its own, 128 and the signal's number, 126 or 127.
pub(crate) fn code_of(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Exited { code } => u8::try_from(code & 0xff).unwrap_or(1),
        Outcome::Signalled { signal } => u8::try_from(128 + signal).unwrap_or(255),
        Outcome::NotStarted { why } if why.contains("not found") => 127,
        Outcome::NotStarted { .. } => 126,
    }
}

/// Signals that are passed on, each with the flag that it came.
pub(crate) type PassedOn = Vec<(i32, Arc<AtomicBool>)>;

/// Makes this process stay when a signal comes. What the terminal sends goes to the command too, and we stay to see how it
/// ends; what is sent to us alone is passed on.
pub(crate) fn stay() -> io::Result<PassedOn> {
    let mut passed_on = Vec::new();
    for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
        let flag = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
        if signal == SIGTERM || signal == SIGHUP {
            passed_on.push((signal, flag));
        }
    }
    Ok(passed_on)
}

const fn not_started(why: String) -> Seen {
    Seen {
        outcome: Outcome::NotStarted { why },
        stdout: None,
        stderr: None,
    }
}

/// Waits for the end, passing on the signals that came to us alone. `None`: the time was over first.
pub(crate) fn wait(
    child: &mut Child,
    passed_on: &[(i32, Arc<AtomicBool>)],
    most: Option<Duration>,
) -> io::Result<Option<ExitStatus>> {
    let deadline = most.and_then(|most| Instant::now().checked_add(most));
    let pid = rustix::process::Pid::from_child(child);
    let handle: Option<OwnedFd> =
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        for (number, flag) in passed_on {
            if flag.swap(false, Ordering::AcqRel)
                && let Some(signal) = rustix::process::Signal::from_named_raw(*number)
            {
                // It may have ended in this moment.
                let _sent = rustix::process::kill_process(pid, signal);
            }
        }
        // A signal ends the wait early; the limit only bounds the case that it came just before.
        let second = Duration::from_secs(1);
        let sleep = left.map_or(second, |left| left.min(second));
        let Some(handle) = &handle else {
            thread::sleep(sleep.min(Duration::from_millis(20)));
            continue;
        };
        let mut fds = [PollFd::new(handle, PollFlags::IN)];
        let _woken = poll(&mut fds, Timespec::try_from(sleep).ok().as_ref());
    }
}

/// Copies a pipe to a stream and digests it. Ends at the end of the pipe, or when the command is over and nothing more is
/// there: a process it left in the background may hold the pipe open for ever.
fn tee(pipe: OwnedFd, mut to: impl Write, over: &AtomicBool) -> Digest {
    use sha2::{Digest as _, Sha256};
    let mut digest = Sha256::new();
    let mut size = 0_u64;
    let mut buffer = vec![0; 64 * 1024];
    let mut file = File::from(pipe);
    loop {
        let was_over = over.load(Ordering::Acquire);
        let mut fds = [PollFd::new(&file, PollFlags::IN)];
        let ready = poll(
            &mut fds,
            Some(&Timespec {
                tv_sec: 0,
                tv_nsec: 20_000_000,
            }),
        );
        match ready {
            Ok(0) if was_over => break,
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => break,
        }
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                let bytes = buffer.get(..count).unwrap_or_default();
                digest.update(bytes);
                size += count as u64;
                if to.write_all(bytes).and_then(|()| to.flush()).is_err() {
                    // The reader went away; the command shall notice as it would have without us.
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    Digest {
        sha256: takeup_core::text::hex(&digest.finalize()),
        size,
    }
}
