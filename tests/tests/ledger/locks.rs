//! Many writers, dead holders, and a lock file that somebody deletes.
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use takeup_core::error::{Exit, Explain as _};
use takeup_core::ledger::{Ledger, LedgerError, TransactError};
use takeup_core::time::SystemClock;
use takeup_tests::ledger::{note, noted, notes, put};

use super::{acknowledged, child, reader, spawn, wait_for};

fn hurried(ledger: &Ledger, text: &str) -> Result<(), LedgerError> {
    ledger
        .transact(&SystemClock, Duration::from_millis(50), |_| {
            Ok::<_, Infallible>((Some(note("t", text)), ()))
        })
        .map(|_| ())
        .map_err(|error| match error {
            TransactError::Ledger(error) => error,
            TransactError::Decision(never) => match never {},
        })
}

/// Ends the threads that go on until the race is over, also when the test fails before.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn race(delete_the_lock: bool) {
    const WRITERS: usize = 40;
    const NOTES: usize = 5;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("takeup");
    let ledger = noted(&folder, 0);
    let over = AtomicBool::new(false);
    let mut known = Vec::new();
    std::thread::scope(|scope| {
        let _over = Over(&over);
        if delete_the_lock {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    drop(std::fs::remove_file(ledger.lock_path()));
                    std::thread::yield_now();
                }
            });
        }
        // Readers hold no lock and see whole records only.
        scope.spawn(|| {
            let mut last = 0;
            while !over.load(Ordering::Relaxed) {
                let view = ledger.read().unwrap();
                assert_eq!(view.issues, []);
                assert!(
                    view.seq >= last,
                    "a reader went back from {last} to {}",
                    view.seq
                );
                last = view.seq;
            }
        });
        let writers: Vec<Child> = (0..WRITERS)
            .map(|number| {
                let prefix = format!("w{number}");
                spawn(child(&folder, &["note", &prefix, &NOTES.to_string()]))
            })
            .collect();
        for writer in writers {
            let output = writer.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
            known.extend(acknowledged(&output));
        }
    });
    assert_eq!(known.len(), WRITERS * NOTES);
    let view = ledger.read().unwrap();
    assert_eq!(view.issues, []);
    let read = notes(&view);
    assert_eq!(read.len(), known.len());
    assert_eq!(
        read.iter().collect::<BTreeSet<_>>(),
        known.iter().collect::<BTreeSet<_>>()
    );
    let judged = reader::read(&folder);
    assert_eq!((judged.notes, judged.bad), (read, 0));
    // Every writer got a number of its own.
    assert_eq!(view.seq, 1 + (WRITERS * NOTES) as u64);
}

#[test]
fn forty_writers_at_once_lose_nothing() {
    race(false);
}

#[test]
fn forty_writers_lose_nothing_while_the_lock_file_is_deleted_under_them() {
    race(true);
}

/// Starts a child that stops under the lock, and waits until it is there.
fn stopped_holder(folder: &Path, args: &[&str], go: &Path) -> Child {
    let mut command = child(folder, args);
    command.env(
        "TAKEUP_FAULT",
        format!("journal-append:before=pause={}", go.display()),
    );
    let holder = spawn(command);
    let mut waiting = go.as_os_str().to_owned();
    waiting.push(".waiting");
    wait_for("the holder", || Path::new(&waiting).exists());
    holder
}

fn dead_holder(args: &[&str], has_child: bool) {
    if !cfg!(debug_assertions) {
        println!("skipped: fault points exist in builds with debug assertions only");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("takeup");
    let ledger = noted(&folder, 2);
    let lock = std::fs::metadata(ledger.lock_path()).unwrap().ino();
    let mut holder = stopped_holder(&folder, args, &scratch.path().join("go"));
    // Readers are not blocked.
    assert_eq!(notes(&ledger.read().unwrap()).len(), 2);
    // Writers wait as long as is said, and name the holder.
    let error = hurried(&ledger, "too early").unwrap_err();
    assert_eq!((error.code(), error.exit()), ("ledger-busy", Exit::Busy));
    let named = format!("process {} (save)", holder.id());
    assert!(error.to_string().contains(&named), "{error}");
    let heir = has_child.then(|| {
        let mut line = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        line.trim()
            .strip_prefix("child ")
            .unwrap()
            .parse::<i32>()
            .unwrap()
    });
    // The holder is killed; a program it started lives on.
    holder.kill().unwrap();
    holder.wait().unwrap();
    if let Some(heir) = heir {
        assert!(Path::new(&format!("/proc/{heir}")).exists());
    }
    hurried(&ledger, "at once").unwrap();
    assert_eq!(
        notes(&ledger.read().unwrap()),
        ["base-1", "base-2", "at once"]
    );
    assert_eq!(std::fs::metadata(ledger.lock_path()).unwrap().ino(), lock);
    if let Some(heir) = heir.and_then(rustix::process::Pid::from_raw) {
        rustix::process::kill_process(heir, rustix::process::Signal::KILL).unwrap();
    }
}

#[test]
fn the_lock_of_a_dead_holder_is_free_at_once() {
    dead_holder(&["note", "held", "1"], false);
}

#[test]
fn a_program_that_the_holder_started_does_not_keep_the_lock() {
    dead_holder(&["spawn", "held"], true);
}

#[test]
fn a_holder_that_goes_on_finds_its_record_whole() {
    if !cfg!(debug_assertions) {
        println!("skipped: fault points exist in builds with debug assertions only");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("takeup");
    let ledger = noted(&folder, 1);
    let go = scratch.path().join("go");
    let holder = stopped_holder(&folder, &["note", "held", "1"], &go);
    // Deleted under the holder, the lock file is made anew by the next writer, who still has to wait.
    std::fs::remove_file(ledger.lock_path()).unwrap();
    assert_eq!(
        hurried(&ledger, "too early").unwrap_err().code(),
        "ledger-busy"
    );
    std::fs::File::create(&go).unwrap();
    let output = holder.wait_with_output().unwrap();
    assert_eq!(acknowledged(&output), ["held-0"]);
    put(&ledger, note("t", "next")).unwrap();
    assert_eq!(notes(&ledger.read().unwrap()), ["base-1", "held-0", "next"]);
}

#[test]
fn only_the_journal_is_touched_under_the_lock() {
    if !cfg!(debug_assertions) {
        println!("skipped: fault points exist in builds with debug assertions only");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("takeup");
    noted(&folder, 2);
    let log = scratch.path().join("points");
    let output = child(&folder, &["note", "new", "1"])
        .env("TAKEUP_FAULT_LOG", &log)
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = std::fs::read_to_string(log).unwrap();
    let points: Vec<&str> = text.lines().collect();
    let held: Vec<&str> = points
        .iter()
        .skip_while(|point| **point != "lock-taken:before")
        .take_while(|point| **point != "lock-freed:before")
        .copied()
        .collect();
    assert_eq!(
        held,
        [
            "lock-taken:before",
            "lock-taken:after",
            "journal-open:before",
            "journal-open:after",
            "journal-append:before",
            "journal-append:middle",
            "journal-append:after",
            "journal-flush:before",
            "journal-flush:after",
            "acknowledged-write:before",
            "acknowledged-write:middle",
            "acknowledged-write:after",
        ]
    );
}
