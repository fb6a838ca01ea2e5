//! Damaged, unreadable and read-only files, as an ordinary user meets them.
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use takeup_core::issue::IssueKind;
use takeup_core::ledger::Ledger;
use takeup_tests::ledger::{note, noted, notes, put};

use super::{copy, overwrite, reader};

const NOBODY: u32 = 65_534;

/// A ledger that belongs to an ordinary user, and the child program where that user can run it.
struct Ordinary {
    _scratch: tempfile::TempDir,
    ledger: PathBuf,
    program: PathBuf,
}

impl Ordinary {
    fn new(count: usize) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let ledger = scratch.path().join("takeup");
        noted(&ledger, count);
        let program = scratch.path().join("child");
        takeup_tests::copy_program(
            std::path::Path::new(env!("CARGO_BIN_EXE_ledger-child")),
            &program,
        );
        mode(scratch.path(), 0o755);
        mode(&program, 0o755);
        if rustix::process::geteuid().is_root() {
            for path in std::iter::once(ledger.clone()).chain(files(&ledger)) {
                chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        Self {
            _scratch: scratch,
            ledger,
            program,
        }
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.arg(&self.ledger).args(args);
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().unwrap()
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|item| item.unwrap().path())
        .collect()
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_read_only_ledger_is_read_and_not_written() {
    let ordinary = Ordinary::new(3);
    for file in files(&ordinary.ledger) {
        mode(&file, 0o400);
    }
    mode(&ordinary.ledger, 0o500);
    let read = ordinary.run(&["read"]);
    assert_eq!(text(&read.stdout), "3\n", "{}", text(&read.stderr));
    let written = ordinary.run(&["note", "new", "1"]);
    assert_eq!(written.status.code(), Some(1));
    assert!(
        text(&written.stderr).starts_with("file-permission: "),
        "{}",
        text(&written.stderr)
    );
    mode(&ordinary.ledger, 0o700);
}

#[test]
fn a_folder_where_nothing_can_be_made_keeps_what_it_has() {
    // The journal can be written, and no snapshot can be made beside it: the records go on.
    let ordinary = Ordinary::new(61);
    mode(&ordinary.ledger, 0o500);
    let written = ordinary.run(&["note", "new", "5"]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    assert_eq!(text(&ordinary.run(&["read"]).stdout), "66\n");
    mode(&ordinary.ledger, 0o700);
    assert!(ordinary.run(&["note", "more", "1"]).status.success());
    assert!(ordinary.ledger.join("state.json").exists());
    assert_eq!(text(&ordinary.run(&["read"]).stdout), "67\n");
}

#[test]
fn unreadable_files_are_reported_and_never_replaced() {
    let ordinary = Ordinary::new(70);
    let snapshot = ordinary.ledger.join("state.json");
    let before = std::fs::read(&snapshot).unwrap();
    mode(&snapshot, 0);
    let read = text(&ordinary.run(&["read"]).stdout);
    assert_eq!(read, format!("70\nUnreadable {}\n", snapshot.display()));
    // Records go on, and the file that may be healthy stays.
    assert!(ordinary.run(&["note", "new", "70"]).status.success());
    mode(&snapshot, 0o600);
    assert_eq!(std::fs::read(&snapshot).unwrap(), before);
    assert_eq!(text(&ordinary.run(&["read"]).stdout), "140\n");
    // A journal that cannot be read may hold anything: nothing is added to it.
    let journal = ordinary.ledger.join("journal.jsonl");
    mode(&journal, 0);
    let written = ordinary.run(&["note", "new", "1"]);
    assert!(
        text(&written.stderr).starts_with("ledger-damaged: "),
        "{}",
        text(&written.stderr)
    );
    assert!(text(&ordinary.run(&["read"]).stdout).contains("Unreadable"));
}

#[test]
fn somebody_elses_folder_is_not_looked_at() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a folder can be given away by root only");
        return;
    }
    let ordinary = Ordinary::new(1);
    chown(&ordinary.ledger, Some(0), Some(0)).unwrap();
    mode(&ordinary.ledger, 0o777);
    for args in [&["read"][..], &["note", "new", "1"]] {
        let output = ordinary.run(args);
        assert!(
            text(&output.stderr).starts_with("ledger-refused: "),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn several_damages_at_once_are_reported_one_by_one() {
    let scratch = tempfile::tempdir().unwrap();
    let ledger = noted(&scratch.path().join("takeup"), 140);
    let folder = ledger.dir().to_path_buf();
    let whole = reader::read(&folder);
    // The last twenty bytes of the journal are cut, the snapshot is zeroed, and a folder stands where the log would be.
    let journal = folder.join("journal.jsonl");
    let bytes = std::fs::read(&journal).unwrap();
    overwrite(&journal, &bytes[..bytes.len() - 20]);
    let snapshot = folder.join("state.json");
    let size = std::fs::metadata(&snapshot).unwrap().len();
    overwrite(&snapshot, vec![0; usize::try_from(size).unwrap()]);
    std::fs::create_dir_all(folder.join("log")).unwrap();
    let view = ledger.read().unwrap();
    let kinds: Vec<(IssueKind, PathBuf)> = view
        .issues
        .iter()
        .map(|issue| (issue.kind, issue.path.clone()))
        .collect();
    assert_eq!(
        kinds,
        [
            (IssueKind::Zeroed, snapshot),
            (IssueKind::Torn, journal.clone()),
            (IssueKind::Missing, journal)
        ]
    );
    assert_eq!(notes(&view), whole.notes[..139]);
    put(&ledger, note("t", "after")).unwrap();
    let view = ledger.read().unwrap();
    // The doubt about the missing record is kept in a new snapshot, and that mends the rest.
    assert_eq!((notes(&view).len(), view.issues.len()), (140, 0));
    assert_eq!(reader::read(&folder).notes, notes(&view));
    ledger.log(
        &takeup_core::time::SystemClock,
        "cannot be said, and harms nothing",
    );
}

#[test]
fn a_cut_at_any_byte_keeps_every_whole_record_and_the_next_one_is_readable() {
    let scratch = tempfile::tempdir().unwrap();
    let base = scratch.path().join("base");
    noted(&base, 3);
    let bytes = std::fs::read(base.join("journal.jsonl")).unwrap();
    for cut in (0..bytes.len()).step_by(7) {
        let folder = scratch.path().join("cut");
        copy(&base, &folder);
        overwrite(&folder.join("journal.jsonl"), &bytes[..cut]);
        let ledger = Ledger::at(&folder);
        let judged = reader::read(&folder);
        let view = ledger.read().unwrap();
        assert_eq!(notes(&view), judged.notes, "cut at {cut}");
        let missed = usize::from(judged.cut);
        assert_eq!(view.issues.len(), judged.bad + missed, "cut at {cut}");
        put(
            &ledger,
            takeup_tests::ledger::start("t", takeup_core::status::Status::Active),
        )
        .unwrap();
        put(&ledger, note("t", "after")).unwrap();
        let found = reader::read(&folder);
        assert_eq!(
            (found.bad, found.notes.last().unwrap().as_str()),
            (0, "after"),
            "cut at {cut}"
        );
        assert_eq!(notes(&ledger.read().unwrap()), found.notes);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
