//! Records that were acknowledged and are gone from the end.
use std::fs;
use std::path::Path;

use super::tests::{
    CLOCK, id, journal, kinds, lines, note, noted, notes, overwrite, put, start, try_put,
};
use super::*;
use crate::status::Status;

fn is_doubtful(view: &View) -> bool {
    let identity = &view.state.tasks[&id("t")].identities[0];
    view.state.is_doubtful(identity)
}

fn note_file(ledger: &Ledger) -> PathBuf {
    ledger.dir().join("acknowledged")
}

/// Cuts whole records off the end of the journal.
fn cut(ledger: &Ledger, records: usize) {
    let mut all = lines(ledger);
    all.truncate(all.len().saturating_sub(records));
    overwrite(&journal(ledger), all.concat());
}

#[test]
fn whole_records_cut_off_the_end_are_missed_and_raise_doubt() {
    for (count, gone) in [(1, 1), (3, 1), (3, 2), (3, 4), (20, 1), (20, 64)] {
        let folder = tempfile::tempdir().unwrap();
        let ledger = noted(folder.path(), count);
        let last = ledger.read().unwrap().seq;
        cut(&ledger, gone);
        let context = format!("{gone} of {count}");
        let view = ledger.read().unwrap();
        assert_eq!(kinds(&view), [IssueKind::Missing], "{context}");
        assert!(!view.is_whole(), "{context}");
        let Some(entry) = view.state.tasks.get(&id("t")) else {
            // The task itself is gone. Its name is free, its number is not.
            assert_eq!(put(&ledger, start("t", Status::Active)).seq, last + 1);
            continue;
        };
        assert!(entry.notes.len() < count, "{context}");
        assert!(is_doubtful(&view), "{context}");
        // The number is not given again, and the doubt outlives the next records.
        assert_eq!(put(&ledger, note("t", "after")).seq, last + 1, "{context}");
        for further in 0..20 {
            let view = ledger.read().unwrap();
            assert_eq!(view.issues, [], "{context}");
            assert!(is_doubtful(&view), "{context}");
            put(&ledger, note("t", &format!("further {further}")));
        }
        put(&ledger, start("t", Status::Active));
        let view = ledger.read().unwrap();
        assert!(!is_doubtful(&view), "what is said anew is not doubted");
    }
}

#[test]
fn a_journal_that_is_gone_is_missed_too() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 12);
    fs::remove_file(journal(&ledger)).unwrap();
    let view = ledger.read().unwrap();
    assert_eq!(kinds(&view), [IssueKind::Missing]);
    assert!(is_doubtful(&view));
    ledger.rewrite(&CLOCK, Ledger::PATIENCE).unwrap();
    let view = ledger.read().unwrap();
    assert_eq!((view.issues.len(), view.seq), (0, 13));
    assert!(is_doubtful(&view));
    assert_eq!(put(&ledger, note("t", "after")).seq, 14);
    assert_eq!(ledger.read().unwrap().issues, []);
}

#[test]
fn another_record_in_the_place_of_the_acknowledged_one_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 3);
    let before = lines(&ledger);
    let (first, _) = before.split_at(2);
    let note_then = fs::read(note_file(&ledger)).unwrap();
    // Somebody puts an older journal back, and a program that knows of no note writes on.
    overwrite(&journal(&ledger), first.concat());
    fs::remove_file(note_file(&ledger)).unwrap();
    put(&ledger, note("t", "other 2"));
    put(&ledger, note("t", "other 3"));
    overwrite(&note_file(&ledger), &note_then);
    let view = ledger.read().unwrap();
    assert_eq!(kinds(&view), [IssueKind::Missing]);
    assert!(is_doubtful(&view));
    put(&ledger, note("t", "after"));
    assert_eq!(ledger.read().unwrap().issues, []);
}

#[test]
fn a_note_that_is_behind_or_missing_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 2);
    let behind = fs::read(note_file(&ledger)).unwrap();
    put(&ledger, note("t", "3"));
    let whole = ledger.read().unwrap();
    // A power loss may bring the older one back, or none.
    overwrite(&note_file(&ledger), &behind);
    assert_eq!(ledger.read().unwrap(), whole);
    fs::remove_file(note_file(&ledger)).unwrap();
    assert_eq!(ledger.read().unwrap(), whole);
    assert_eq!(put(&ledger, note("t", "4")).seq, 5);
    cut(&ledger, 1);
    assert_eq!(kinds(&ledger.read().unwrap()), [IssueKind::Missing]);
}

#[test]
fn a_damaged_note_is_reported_and_made_anew() {
    let whole = {
        let folder = tempfile::tempdir().unwrap();
        fs::read(note_file(&noted(folder.path(), 2))).unwrap()
    };
    let mut damages = vec![Vec::new(), b"\n".to_vec(), vec![0; whole.len()]];
    damages.extend(
        (1..whole.len() - 1)
            .step_by(9)
            .map(|at| whole[..at].to_vec()),
    );
    damages.extend((0..whole.len() - 1).step_by(9).map(|at| {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        damaged
    }));
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 2);
    for damaged in damages {
        overwrite(&note_file(&ledger), &damaged);
        let view = ledger.read().unwrap();
        assert_eq!(kinds(&view), [IssueKind::Torn], "{damaged:?}");
        assert!(!is_doubtful(&view));
        ledger.rewrite(&CLOCK, Ledger::PATIENCE).unwrap();
        assert_eq!(ledger.read().unwrap().issues, [], "{damaged:?}");
        overwrite(&note_file(&ledger), &damaged);
        put(&ledger, note("t", "x"));
        assert_eq!(ledger.read().unwrap().issues, [], "{damaged:?}");
    }
}

#[test]
fn whatever_stands_in_the_place_of_the_note_stops_no_record() {
    type PutThere = fn(&Path);
    let stand: [(&str, PutThere); 3] = [
        ("link", |path| {
            std::os::unix::fs::symlink("elsewhere", path).unwrap();
        }),
        ("folder", |path| fs::create_dir_all(path).unwrap()),
        ("pipe", |path| {
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, path, kind, 0o600.into(), 0).unwrap();
        }),
    ];
    for (name, put_there) in stand {
        let folder = tempfile::tempdir().unwrap();
        let ledger = noted(folder.path(), 1);
        fs::remove_file(note_file(&ledger)).unwrap();
        put_there(&note_file(&ledger));
        try_put(&ledger, note("t", "2")).unwrap();
        let view = ledger.read().unwrap();
        assert_eq!(notes(&view, "t"), ["1", "2"], "{name}");
        assert_eq!(view.issues.len(), 1, "{name}");
        assert_eq!(view.issues[0].path, note_file(&ledger), "{name}");
        let log = fs::read_to_string(ledger.dir().join("log")).unwrap();
        assert!(log.contains("acknowledged"), "{name}: {log}");
        assert!(!folder.path().join("takeup/elsewhere").exists());
    }
}

#[test]
fn readers_beside_writers_see_no_cut_that_is_none() {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let folder = folder.unwrap();
    let ledger = noted(folder.path(), 1);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(ledger.read().unwrap().issues, []);
                }
            });
        }
        for number in 0..400 {
            put(&ledger, note("t", &number.to_string()));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn lost_records_are_said_until_somebody_takes_note() {
    for (mend, zeros) in [(true, true), (true, false), (false, false)] {
        let folder = tempfile::tempdir().unwrap();
        let ledger = noted(folder.path(), 3);
        let older = lines(&ledger)[..2].concat();
        assert_eq!(ledger.read().unwrap().loss(ledger.dir()), None);
        let left = if zeros { vec![0; 4096] } else { older };
        overwrite(&journal(&ledger), left);
        let lost = if zeros { 4 } else { 2 };
        assert!(!ledger.read().unwrap().is_whole());
        if mend {
            ledger.rewrite(&CLOCK, Ledger::PATIENCE).unwrap();
        } else {
            put(&ledger, start("other", Status::Active));
        }
        for further in 0..20 {
            let view = ledger.read().unwrap();
            assert_eq!(view.issues, []);
            assert_eq!(view.state.lost, lost, "{mend} {zeros} {further}");
            let said = view.loss(ledger.dir()).unwrap().message;
            assert!(said.starts_with(&format!("{lost} acknowledged")), "{said}");
            put(&ledger, start(&format!("new-{further}"), Status::Active));
        }
        ledger.forget_losses(&CLOCK, Ledger::PATIENCE).unwrap();
        put(&ledger, start("last", Status::Active));
        let view = ledger.read().unwrap();
        assert_eq!((view.loss(ledger.dir()), view.state.lost), (None, 0));
    }
}
