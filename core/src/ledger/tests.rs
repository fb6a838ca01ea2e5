//! What the ledger keeps, and what it says of damage. Kills and races are tried with real processes in the tests crate.
use std::convert::Infallible;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::boundary::Boundary;
use crate::identity::{Before, Identity, Note, PlaceRecord, Task};
use crate::ids::{AgentId, RepositoryId, SessionId, SessionRef, TaskId, WorktreeId};
use crate::plan::Plan;
use crate::status::Status;
use crate::time::{FixedClock, Time};

pub(super) const CLOCK: FixedClock = FixedClock(Time::EPOCH);

pub(super) fn session(name: &str) -> SessionRef {
    SessionRef::new(
        AgentId::new("jcode").unwrap(),
        SessionId::new(name).unwrap(),
    )
}

pub(super) fn actor() -> Actor {
    Actor {
        session: session("fox"),
        pid: 7,
    }
}

pub(super) fn id(name: &str) -> TaskId {
    TaskId::new(name).unwrap()
}

pub(super) fn transition(changes: Vec<Change>) -> Transition {
    Transition {
        at: Time::EPOCH,
        actor: actor(),
        operation: "start".to_owned(),
        changes,
    }
}

pub(super) fn start(name: &str, status: Status) -> Transition {
    transition(vec![
        Change::Task {
            task: Task {
                task_id: id(name),
                title: name.to_owned(),
                boundary: Boundary::default(),
                plan: Plan::default(),
                created_at: Time::EPOCH,
            },
        },
        Change::Identity {
            identity: Box::new(Identity {
                task_id: id(name),
                session: session("fox"),
                place: PlaceRecord {
                    repository_id: RepositoryId::new("r").unwrap(),
                    worktree_id: WorktreeId::new("w").unwrap(),
                    root: "/r".to_owned(),
                    device: 1,
                    inode: 2,
                },
                status,
                base: None,
                before: Before::default(),
                latest: None,
                process: None,
                closing: None,
                open_effects: Vec::new(),
                inherited_effects: Vec::new(),
                resumed_from: None,
                resumed_to: None,
                closed_by: None,
                created_at: Time::EPOCH,
                updated_at: Time::EPOCH,
                revision: 1,
            }),
        },
    ])
}

pub(super) fn note(name: &str, text: &str) -> Transition {
    transition(vec![Change::Note {
        task_id: id(name),
        note: Note {
            at: Time::EPOCH,
            by: session("fox"),
            text: text.to_owned(),
        },
    }])
}

pub(super) fn put(ledger: &Ledger, transition: Transition) -> Committed<()> {
    ledger
        .transact(&CLOCK, Ledger::PATIENCE, |_| {
            Ok::<_, Infallible>((Some(transition), ()))
        })
        .unwrap()
}

pub(super) fn try_put(ledger: &Ledger, transition: Transition) -> Result<(), LedgerError> {
    match ledger.transact(&CLOCK, Duration::from_millis(20), |_| {
        Ok::<_, Infallible>((Some(transition), ()))
    }) {
        Ok(_) => Ok(()),
        Err(TransactError::Ledger(error)) => Err(error),
    }
}

pub(super) fn notes(view: &View, name: &str) -> Vec<String> {
    view.state.tasks[&id(name)]
        .notes
        .iter()
        .map(|note| note.text.clone())
        .collect()
}

/// A ledger with the task `t` and the notes 1 to `count`.
pub(super) fn noted(folder: &Path, count: usize) -> Ledger {
    let ledger = Ledger::at(folder.join("takeup"));
    put(&ledger, start("t", Status::Active));
    for number in 1..=count {
        put(&ledger, note("t", &number.to_string()));
    }
    ledger
}

pub(super) fn journal(ledger: &Ledger) -> PathBuf {
    ledger.dir().join("journal.jsonl")
}

pub(super) fn lines(ledger: &Ledger) -> Vec<Vec<u8>> {
    fs::read(journal(ledger))
        .unwrap()
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

pub(super) fn overwrite(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::File::create(path)
        .unwrap()
        .write_all(bytes.as_ref())
        .unwrap();
}

pub(super) fn kinds(view: &View) -> Vec<IssueKind> {
    view.issues.iter().map(|issue| issue.kind).collect()
}

#[test]
fn what_is_put_is_read_and_reading_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("takeup"));
    assert_eq!(ledger.read().unwrap(), View::default());
    assert!(!ledger.exists());
    let first = put(&ledger, start("t", Status::Active));
    assert_eq!((first.seq, first.wrote), (1, true));
    put(&ledger, note("t", "hello"));
    let view = ledger.read().unwrap();
    assert_eq!((view.seq, view.issues.len()), (2, 0));
    assert_eq!(notes(&view, "t"), ["hello"]);
    assert_eq!(fs::metadata(ledger.dir()).unwrap().mode() & 0o777, 0o700);
    for item in fs::read_dir(ledger.dir()).unwrap() {
        assert_eq!(item.unwrap().metadata().unwrap().mode() & 0o777, 0o600);
    }
    let nothing = ledger
        .transact(&CLOCK, Ledger::PATIENCE, |view| {
            Ok::<_, Infallible>((None, view.seq))
        })
        .unwrap();
    assert_eq!(
        (nothing.value, nothing.wrote, nothing.work),
        (2, false, Work::default())
    );
}

#[test]
fn under_the_lock_nothing_is_read_again_and_one_flush_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 2);
    let committed = put(&ledger, note("t", "3"));
    assert_eq!((committed.work.read, committed.work.flushes), (0, 1));
    // What another writer added after the look and before the lock is all that is read.
    let before = read::load(&ledger.files).unwrap();
    put(&ledger, note("t", "4"));
    let added = lines(&ledger).last().unwrap().len() as u64;
    let lock = Lock::take(ledger.dir(), "test", &CLOCK, Ledger::PATIENCE).unwrap();
    let writer = Writer::new(&ledger.files, lock, before).unwrap();
    assert_eq!(writer.work.read, added);
    assert_eq!(notes(&writer.loaded.view, "t").len(), 4);
}

#[test]
fn a_torn_last_line_is_kept_aside_by_the_next_writer() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 3);
    let whole = fs::read(journal(&ledger)).unwrap();
    overwrite(&journal(&ledger), &whole[..whole.len() - 20]);
    let view = ledger.read().unwrap();
    // Half of it is there, and it was acknowledged.
    assert_eq!(kinds(&view), [IssueKind::Torn, IssueKind::Missing]);
    assert_eq!(notes(&view, "t"), ["1", "2"]);
    assert_eq!(
        fs::read(journal(&ledger)).unwrap(),
        whole[..whole.len() - 20]
    );
    put(&ledger, note("t", "after"));
    let view = ledger.read().unwrap();
    assert_eq!(
        (kinds(&view), notes(&view, "t")),
        (vec![], vec!["1".into(), "2".into(), "after".into()])
    );
    let aside = ledger.aside().unwrap();
    assert_eq!(aside.len(), 1);
    assert!(aside[0].ends_with("torn-4"));
    assert!(
        whole
            .windows(fs::read(&aside[0]).unwrap().len())
            .any(|part| part == fs::read(&aside[0]).unwrap())
    );
    assert!(
        fs::read_to_string(ledger.dir().join("log"))
            .unwrap()
            .contains("torn-4")
    );
}

#[test]
fn a_last_line_without_its_newline_is_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 2);
    let whole = fs::read(journal(&ledger)).unwrap();
    overwrite(&journal(&ledger), &whole[..whole.len() - 1]);
    assert_eq!(notes(&ledger.read().unwrap(), "t"), ["1", "2"]);
    put(&ledger, note("t", "3"));
    let view = ledger.read().unwrap();
    assert_eq!((notes(&view, "t").len(), view.issues.len()), (3, 0));
}

#[test]
fn a_bad_line_is_reported_by_number_and_the_others_apply() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 4);
    let good = lines(&ledger);
    for (damage, kind) in [
        (b"rubbish\n".to_vec(), IssueKind::Corrupt),
        (vec![b'\n'], IssueKind::Corrupt),
        (
            [vec![0; good[2].len() - 1], vec![b'\n']].concat(),
            IssueKind::Zeroed,
        ),
        (
            String::from_utf8(good[2].clone())
                .unwrap()
                .replace("\"2\"", "\"9\"")
                .into_bytes(),
            IssueKind::Checksum,
        ),
    ] {
        let mut bad = good.clone();
        bad[2] = damage;
        overwrite(&journal(&ledger), bad.concat());
        let view = ledger.read().unwrap();
        assert_eq!(kinds(&view), [kind]);
        assert!(
            view.issues[0].message.contains("line 3"),
            "{:?}",
            view.issues
        );
        assert_eq!(notes(&view, "t"), ["1", "3", "4"]);
        assert!(!view.is_whole());
    }
    put(&ledger, note("t", "5"));
    let view = ledger.read().unwrap();
    assert_eq!(
        (view.seq, notes(&view, "t").len(), view.issues.len()),
        (6, 4, 1)
    );
}

#[test]
fn missing_and_repeated_lines_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 4);
    let good = lines(&ledger);
    let mut cut = good.clone();
    cut.remove(2);
    overwrite(&journal(&ledger), cut.concat());
    let view = ledger.read().unwrap();
    assert_eq!(
        (kinds(&view), notes(&view, "t").len()),
        (vec![IssueKind::Checksum], 3)
    );
    let mut twice = good.clone();
    twice.insert(3, good[1].clone());
    overwrite(&journal(&ledger), twice.concat());
    let view = ledger.read().unwrap();
    assert_eq!(
        (kinds(&view), notes(&view, "t").len()),
        (vec![IssueKind::Corrupt], 4)
    );
    overwrite(&journal(&ledger), good[1..].concat());
    assert_eq!(kinds(&ledger.read().unwrap()), [IssueKind::Checksum]);
}

#[test]
fn a_lost_newline_glues_no_records() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 4);
    let mut bytes = fs::read(journal(&ledger)).unwrap();
    let newline = bytes.iter().rposition(|byte| *byte == b'\n').unwrap();
    let before = bytes[..newline]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap();
    bytes[before] = b'!';
    overwrite(&journal(&ledger), &bytes);
    let view = ledger.read().unwrap();
    assert_eq!((view.issues.len(), notes(&view, "t").len()), (1, 4));
    // The same at the very end: the last line is two records and has no newline.
    overwrite(&journal(&ledger), &bytes[..newline]);
    put(&ledger, note("t", "5"));
    let view = ledger.read().unwrap();
    assert_eq!((view.issues.len(), notes(&view, "t").len()), (1, 5));
}

#[test]
fn snapshots_keep_the_journal_short_and_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 30);
    let view = ledger.read().unwrap();
    assert_eq!(
        (view.seq, notes(&view, "t").len(), view.issues.len()),
        (31, 30, 0)
    );
    assert!(lines(&ledger).len() < 8);
    let mut replayed = State::default();
    replayed.apply(1, &start("t", Status::Active));
    for number in 1..=30_u32 {
        replayed.apply(u64::from(number) + 1, &note("t", &number.to_string()));
    }
    assert_eq!(view.state, replayed);
}

#[test]
fn a_damaged_or_missing_snapshot_loses_nothing() {
    type Damage = (&'static str, fn(&Path));
    let damage: [Damage; 4] = [
        ("zeroed", |path| {
            let size = fs::metadata(path).unwrap().len();
            overwrite(path, vec![0; usize::try_from(size).unwrap()]);
        }),
        ("cut", |path| {
            let bytes = fs::read(path).unwrap();
            overwrite(path, &bytes[..bytes.len() / 2]);
        }),
        ("empty", |path| overwrite(path, b"")),
        ("gone", |path| fs::remove_file(path).unwrap()),
    ];
    for count in [9, 17, 30] {
        for (name, damage) in damage {
            let folder = tempfile::tempdir().unwrap();
            let ledger = noted(folder.path(), count);
            let whole = ledger.read().unwrap();
            let snapshot = ledger.dir().join("state.json");
            damage(&snapshot);
            let view = ledger.read().unwrap();
            assert_eq!(view.state, whole.state, "{name} after {count}");
            assert_eq!(
                view.issues.len(),
                usize::from(name != "gone"),
                "{name}: {:?}",
                view.issues
            );
            for number in 0..17 {
                put(&ledger, note("t", &number.to_string()));
            }
            let view = ledger.read().unwrap();
            assert_eq!(notes(&view, "t").len(), count + 17);
            assert_eq!(view.issues, []);
            let kept = ledger.aside().unwrap();
            assert_eq!(kept.len(), usize::from(name != "gone"), "{name}: {kept:?}");
            damage(&snapshot);
            assert_eq!(
                ledger.read().unwrap().state,
                view.state,
                "again {name} after {count}"
            );
        }
    }
}

#[test]
fn what_stands_in_the_way_is_reported_and_left() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 9);
    fs::remove_file(journal(&ledger)).unwrap();
    fs::create_dir_all(journal(&ledger)).unwrap();
    let view = ledger.read().unwrap();
    assert_eq!(kinds(&view), [IssueKind::NotAFile]);
    assert!(view.state.tasks.contains_key(&id("t")));
    let error = try_put(&ledger, note("t", "x")).unwrap_err();
    assert_eq!(error.code(), "ledger-damaged");
    assert!(journal(&ledger).is_dir());
}

#[test]
fn an_unreadable_snapshot_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 9);
    let snapshot = ledger.dir().join("state.json");
    fs::remove_file(&snapshot).unwrap();
    std::os::unix::fs::symlink("elsewhere", &snapshot).unwrap();
    for number in 0..17 {
        put(&ledger, note("t", &number.to_string()));
    }
    assert!(fs::symlink_metadata(&snapshot).unwrap().is_symlink());
    let view = ledger.read().unwrap();
    assert_eq!(
        (kinds(&view), notes(&view, "t").len()),
        (vec![IssueKind::Symlink], 26)
    );
}

#[test]
fn a_linked_or_foreign_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 1);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(ledger.dir(), &link).unwrap();
    let error = Ledger::at(&link).read().unwrap_err();
    assert_eq!((error.code(), error.exit()), ("ledger-refused", Exit::No));
    assert!(try_put(&Ledger::at(&link), note("t", "x")).is_err());
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(ledger.dir(), Some(65_534), None).unwrap();
        assert!(matches!(
            ledger.read().unwrap_err(),
            LedgerError::Refused(issue) if issue.kind == IssueKind::ForeignOwner
        ));
    } else {
        println!("skipped: a folder can be given away by root only");
    }
    let file = folder.path().join("file");
    overwrite(&file, b"x");
    assert!(Ledger::at(&file).read().is_err());
}

#[test]
fn a_newer_version_is_refused_and_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 1);
    let newer = frame::seal(&serde_json::json!({"v": 2, "anything": true}))
        .unwrap()
        .0;
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(journal(&ledger))
        .unwrap();
    file.write_all(&newer).unwrap();
    file.write_all(b"\n").unwrap();
    let before = fs::read(journal(&ledger)).unwrap();
    for error in [
        ledger.read().unwrap_err(),
        try_put(&ledger, note("t", "x")).unwrap_err(),
    ] {
        assert!(
            matches!(
                error,
                LedgerError::NewerVersion {
                    version: Some(2),
                    line: 3,
                    ..
                }
            ),
            "{error}"
        );
    }
    assert_eq!(fs::read(journal(&ledger)).unwrap(), before);
    // Flipping a digit does not make a newer version: that is damage.
    let text = String::from_utf8(before).unwrap();
    let damaged = text
        .replacen("{\"v\":1", "{\"v\":3", 1)
        .replace(std::str::from_utf8(&newer).unwrap(), "");
    overwrite(&journal(&ledger), damaged.trim_end());
    assert_eq!(kinds(&ledger.read().unwrap())[0], IssueKind::Checksum);
}

#[test]
fn a_writer_waits_no_longer_than_said_and_names_the_holder() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = noted(folder.path(), 1);
    let lock = Lock::take(ledger.dir(), "save", &CLOCK, Ledger::PATIENCE).unwrap();
    let error = try_put(&ledger, note("t", "x")).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(&format!("process {} (save)", std::process::id())),
        "{text}"
    );
    assert_eq!((error.exit(), error.retryable()), (Exit::Busy, true));
    assert_eq!(ledger.read().unwrap().seq, 2);
    // Deleted under the holder, the lock still excludes.
    fs::remove_file(ledger.lock_path()).unwrap();
    assert!(try_put(&ledger, note("t", "x")).is_err());
    drop(lock);
    try_put(&ledger, note("t", "x")).unwrap();
    assert!(ledger.lock_path().exists());
}

#[test]
fn the_archive_takes_closed_tasks_out_of_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("takeup"));
    put(&ledger, start("open", Status::Active));
    let long = "a".repeat(300);
    for name in ["done", &long] {
        put(&ledger, start(name, Status::Completed));
    }
    let before = ledger.read().unwrap();
    let moved = ledger
        .archive(&CLOCK, Ledger::PATIENCE, &actor(), |_| true)
        .unwrap();
    assert_eq!(moved.value, [id(&long), id("done")]);
    // Nor are they read with the snapshot any longer.
    let snapshot = fs::read_to_string(ledger.dir().join("state.json")).unwrap();
    assert!(snapshot.contains("\"active\"") && !snapshot.contains("\"completed\""));
    let view = ledger.read().unwrap();
    assert_eq!(view.state.tasks.keys().collect::<Vec<_>>(), [&id("open")]);
    assert_eq!(view.state.archived, moved.value);
    for name in ["done", &long] {
        assert!(ledger.knows(&State::default(), &id(name)));
        assert_eq!(
            ledger.read_archive(&id(name)).unwrap().unwrap(),
            before.state.tasks[&id(name)]
        );
    }
    assert_eq!(ledger.read_archive(&id("other")).unwrap(), None);
    let again = ledger
        .archive(&CLOCK, Ledger::PATIENCE, &actor(), |_| true)
        .unwrap();
    assert_eq!((again.value.len(), again.wrote), (0, false));
    let file = ledger.dir().join("archive/done.json");
    let bytes = fs::read(&file).unwrap();
    overwrite(&file, &bytes[..40]);
    assert!(ledger.read_archive(&id("done")).is_err());
    let whole = ledger.read_whole_archive().unwrap();
    assert_eq!((whole.items.len(), whole.issues.len()), (1, 1));
}

#[test]
fn the_log_is_bounded_and_private() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("takeup")).during("hook");
    ledger.log(&CLOCK, "nothing is made for this");
    assert!(!ledger.exists());
    put(&ledger, start("t", Status::Active));
    for _ in 0..200 {
        ledger.log(
            &CLOCK,
            &format!("\u{1b}[31m{}\nsecond line", "long ".repeat(1_000)),
        );
    }
    let log = fs::read_to_string(ledger.dir().join("log")).unwrap();
    assert!(
        log.lines()
            .all(|line| line.contains(" hook: ") && !line.contains('\u{1b}'))
    );
    let old = fs::metadata(ledger.dir().join("log.old")).unwrap();
    assert!(old.len() < 300 << 10 && log.len() < 300 << 10);
    assert_eq!(old.permissions().mode() & 0o777, 0o600);
}
