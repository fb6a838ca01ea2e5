//! Named fault points around each write, flush and rename, so that tests can stop a process exactly there.
//!
//! They exist in builds with debug assertions only; in a release build every function here does the operation and nothing
//! else. Two variables drive them:
//!
//! - `TAKEUP_FAULT=POINT[#N]=ACTION` arms one point, or several with commas between them. `POINT` is a name and a moment, such as `journal-append:before`; the
//!   moments are `before`, `middle` (half of a write is done) and `after`. `#N` means the Nth time the point is reached,
//!   counted from 1. `ACTION` is `kill` (SIGKILL to this process), `enospc` (the operation fails as on a full disk),
//!   `full=FILE` (it fails so whenever `FILE` exists) or `pause=FILE` (waits until `FILE` exists, a minute at most; while it waits, `FILE.waiting` exists).
//! - `TAKEUP_FAULT_LOG=FILE` appends the name of each point that is reached, one a line.
use std::io::{self, Write};

/// Does `operation` between the fault points `name:before` and `name:after`.
pub fn around<T>(name: &'static str, operation: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    at(name, "before")?;
    let value = operation()?;
    at(name, "after")?;
    Ok(value)
}

/// Writes all of `bytes`, with the fault points `name:before`, `name:middle` and `name:after`.
pub fn write_all(name: &'static str, file: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    at(name, "before")?;
    if cfg!(debug_assertions) && is_armed(name, "middle") {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        file.write_all(first)?;
        at(name, "middle")?;
        file.write_all(second)?;
    } else {
        // Unarmed, it is one write call, as in a release build.
        file.write_all(bytes)?;
        at(name, "middle")?;
    }
    at(name, "after")
}

#[cfg(not(debug_assertions))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the shape of the build with debug assertions"
)]
#[inline]
fn at(_: &'static str, _: &'static str) -> io::Result<()> {
    Ok(())
}

#[cfg(not(debug_assertions))]
#[inline]
fn is_armed(_: &'static str, _: &'static str) -> bool {
    false
}

#[cfg(debug_assertions)]
use armed::{at, is_armed};

#[cfg(debug_assertions)]
mod armed {
    use std::fs::OpenOptions;
    use std::io::{self, Write as _};
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    struct Fault {
        point: String,
        hit: usize,
        action: Action,
        seen: AtomicUsize,
    }

    enum Action {
        Kill,
        NoSpace,
        Full(PathBuf),
        Pause(PathBuf),
    }

    fn parse(text: &str) -> Option<Fault> {
        let (point, action) = text.split_once('=')?;
        let (point, hit) = match point.split_once('#') {
            Some((point, hit)) => (point, hit.parse().ok()?),
            None => (point, 1),
        };
        let action = match action.split_once('=') {
            Some(("full", file)) => Action::Full(PathBuf::from(file)),
            Some(("pause", file)) => Action::Pause(PathBuf::from(file)),
            None if action == "kill" => Action::Kill,
            None if action == "enospc" => Action::NoSpace,
            _ => return None,
        };
        Some(Fault {
            point: point.to_owned(),
            hit,
            action,
            seen: AtomicUsize::new(0),
        })
    }

    fn fault() -> Option<&'static Fault> {
        static FAULT: OnceLock<Option<Fault>> = OnceLock::new();
        FAULT
            .get_or_init(|| {
                std::env::var("TAKEUP_FAULT")
                    .ok()
                    .as_deref()
                    .and_then(parse)
            })
            .as_ref()
    }

    fn record(name: &str, moment: &str) {
        static LOG: OnceLock<Option<PathBuf>> = OnceLock::new();
        let log = LOG.get_or_init(|| std::env::var_os("TAKEUP_FAULT_LOG").map(PathBuf::from));
        if let Some(log) = log
            && let Ok(mut file) = OpenOptions::new().append(true).create(true).open(log)
        {
            // A test that misses a line fails on its own.
            drop(file.write_all(format!("{name}:{moment}\n").as_bytes()));
        }
    }

    pub(super) fn is_armed(name: &str, moment: &str) -> bool {
        let point = format!("{name}:{moment}");
        fault().is_some_and(|fault| fault.point.split(',').any(|armed| armed == point))
    }

    pub(super) fn at(name: &'static str, moment: &'static str) -> io::Result<()> {
        record(name, moment);
        let Some(fault) = fault().filter(|_| is_armed(name, moment)) else {
            return Ok(());
        };
        if let Action::Full(file) = &fault.action {
            return if file.exists() {
                Err(rustix::io::Errno::NOSPC.into())
            } else {
                Ok(())
            };
        }
        if fault.seen.fetch_add(1, Ordering::Relaxed) + 1 != fault.hit {
            return Ok(());
        }
        match &fault.action {
            Action::Kill => {
                rustix::process::kill_process(
                    rustix::process::getpid(),
                    rustix::process::Signal::KILL,
                )?;
                // The signal ends the process before this returns; should it not, the operation fails.
                Err(rustix::io::Errno::INTR.into())
            }
            Action::NoSpace | Action::Full(_) => Err(rustix::io::Errno::NOSPC.into()),
            Action::Pause(file) => {
                let mut waiting = file.clone().into_os_string();
                waiting.push(".waiting");
                drop(
                    OpenOptions::new()
                        .write(true)
                        .create(true)
                        .truncate(false)
                        .open(waiting)?,
                );
                let began = Instant::now();
                while !file.exists() && began.elapsed() < Duration::from_mins(1) {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Ok(())
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_fault_is_read_from_one_line() {
            let fault = parse("journal-append:before#3=kill").unwrap();
            assert_eq!(
                (fault.point.as_str(), fault.hit),
                ("journal-append:before", 3)
            );
            assert!(matches!(fault.action, Action::Kill));
            let fault = parse("x:after=pause=/tmp/a=b").unwrap();
            assert!(matches!(fault.action, Action::Pause(file) if file.ends_with("a=b")));
            for text in ["", "x", "x=y", "x#n=kill", "x=pause"] {
                assert!(parse(text).is_none(), "{text}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unarmed_points_change_nothing() {
        let mut bytes = Vec::new();
        write_all("test-write", &mut bytes, b"whole").unwrap();
        assert_eq!(bytes, b"whole");
        assert_eq!(around("test", || Ok(7)).unwrap(), 7);
    }
}
