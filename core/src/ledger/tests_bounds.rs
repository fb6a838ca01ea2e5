//! Numbers and sizes at their ends: what is written can be read, and no number from a file is trusted to have a next one.
use std::fs;

use serde_json::{Value, json};

use super::tests::{CLOCK, actor, id, note, noted, notes, overwrite, put, start, try_put};
use super::*;
use crate::status::Status;

/// Writes a record with a sound frame and another number.
fn renumber(path: &Path, seq: u64) {
    let text = fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut record: Value = serde_json::from_str(&lines.pop().unwrap()).unwrap();
    record.as_object_mut().unwrap().remove("sum");
    record["seq"] = json!(seq);
    let (line, _) = frame::seal(&record).unwrap();
    lines.push(String::from_utf8(line).unwrap());
    overwrite(path, format!("{}\n", lines.join("\n")).as_bytes());
}

#[test]
fn the_largest_number_is_damage_wherever_it_stands() {
    for name in ["state.json", "journal.jsonl", "acknowledged"] {
        for seq in [u64::MAX, u64::MAX - 1] {
            let folder = tempfile::tempdir().unwrap();
            let ledger = noted(folder.path(), 12);
            renumber(&ledger.dir().join(name), seq);
            let view = ledger.read().unwrap();
            assert!(
                view.issues.iter().any(|issue| issue.path.ends_with(name)),
                "{name}: {:?}",
                view.issues
            );
            // What is acknowledged after it is read, with a number of its own.
            put(&ledger, note("t", "after"));
            let after = ledger.read().unwrap();
            assert!(after.seq > 0 && after.seq < 1_000, "{name}: {}", after.seq);
            assert_eq!(notes(&after, "t").last().unwrap(), "after", "{name}");
        }
    }
}

#[test]
fn no_file_is_written_that_nobody_would_read() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 1);
    let long = "x".repeat(700 << 10);
    put(&ledger, start("large", Status::Completed));
    let mut refused = false;
    for number in 0..40 {
        match try_put(&ledger, note("large", &format!("{number}{long}"))) {
            Ok(()) => assert!(!refused, "accepted after it was full"),
            Err(error) => {
                assert!(matches!(error, LedgerError::Full { .. }), "{error}");
                refused = true;
            }
        }
        let view = ledger.read().unwrap();
        assert_eq!(view.issues, []);
    }
    assert!(refused);
    // It does not go into the archive either, where it could not be read; it is still there.
    let moved = ledger
        .archive(&CLOCK, Ledger::PATIENCE, &actor(), |_| true)
        .unwrap();
    assert_eq!(moved.value, []);
    assert!(
        ledger
            .read()
            .unwrap()
            .state
            .tasks
            .contains_key(&id("large"))
    );
}

/// A writer that was killed after it had made the journal, and before the folder was flushed, leaves it empty or with one line
/// that nobody was told of: the next writer flushes the folder.
#[test]
fn a_journal_that_another_writer_left_new_is_flushed_with_its_entry() {
    for lines in [0_usize, 1] {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(folder.path().join("takeup"));
        put(&ledger, start("t", Status::Active));
        let journal = ledger.dir().join("journal.jsonl");
        if lines == 0 {
            overwrite(&journal, b"");
        }
        fs::remove_file(ledger.dir().join("acknowledged")).unwrap();
        let done = put(&ledger, start("other", Status::Active));
        assert_eq!(done.work.flushes, 2, "{lines}");
        assert_eq!(put(&ledger, note("other", "x")).work.flushes, 1);
    }
}
