use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use takeup_core::files::write_atomic;

use super::*;

/// Every file of a folder with its content: what must not change.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

fn count(database: &Path) -> Result<Option<i64>, Issue> {
    read(database, |db| {
        Ok(db.query_row("select count(*) from t", [], |row| row.get(0))?)
    })
}

/// A child of this test binary that has the database open and has written one row; killed when dropped.
struct Holder(Child);

impl Holder {
    fn start(database: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "read::tests::holder_process", "--nocapture"])
            .env("TAKEUP_TEST_HOLD", database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(
            lines.map_while(Result::ok).any(|line| line == "holding"),
            "the holder ended early"
        );
        Self(child)
    }

    fn kill(mut self) -> u32 {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        self.0.id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }
}

/// The locks this process holds on the lock byte of a database, as the kernel lists them.
fn own_locks(database: &Path) -> Vec<String> {
    let inode = std::fs::metadata(beside(database, "-shm")).unwrap().ino();
    let of_this_process = format!(" {} ", std::process::id());
    let range = format!(":{inode} 128 128");
    std::fs::read_to_string("/proc/locks")
        .unwrap()
        .lines()
        .filter(|line| line.contains(&of_this_process) && line.ends_with(&range))
        .map(|line| line.split_once(": ").unwrap().1.to_owned())
        .collect()
}

/// Does nothing as a test; with the variable set it is the other program.
#[test]
fn holder_process() {
    let Some(path) = std::env::var_os("TAKEUP_TEST_HOLD") else {
        return;
    };
    let db = Connection::open(path).unwrap();
    db.pragma_update(None, "journal_mode", "wal").unwrap();
    db.execute_batch("create table if not exists t(a); insert into t values (1)")
        .unwrap();
    println!("\nholding");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn a_live_owner_is_named_and_its_newest_rows_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a ?#%41.db");
    let holder = Holder::start(&database);
    assert_eq!(
        lock_owner(&database),
        Owner::Held {
            pid: Some(holder.0.id())
        }
    );
    assert_eq!(count(&database).unwrap(), Some(1));
    // Asking while a connection of ours is open takes nothing away from it.
    let nested = read(&database, |db| {
        let count = db.query_row("select count(*) from t", [], |row| row.get::<_, i64>(0))?;
        let locks = own_locks(&database);
        assert!(matches!(lock_owner(&database), Owner::Held { .. }));
        assert!(!locks.is_empty());
        assert_eq!(own_locks(&database), locks);
        Ok(count)
    });
    assert_eq!(nested.unwrap(), Some(1));
    assert!(matches!(lock_owner(&database), Owner::Held { .. }));
    holder.kill();
    assert_eq!(lock_owner(&database), Owner::Free);
}

#[test]
fn after_a_kill_the_wal_is_read_and_nothing_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.db");
    Holder::start(&database).kill();
    assert!(wal_present(&database));
    let before = content(folder.path());
    assert_eq!(count(&database).unwrap(), Some(1));
    assert_eq!(content(folder.path()), before);

    // Without the `-shm` (a backup): the same.
    std::fs::remove_file(folder.path().join("a.db-shm")).unwrap();
    let before = content(folder.path());
    assert_eq!(count(&database).unwrap(), Some(1));
    assert_eq!(content(folder.path()), before);

    // A torn WAL: what was committed before the tear, here nothing.
    let wal = folder.path().join("a.db-wal");
    let bytes = std::fs::read(&wal).unwrap();
    std::fs::File::options()
        .write(true)
        .open(&wal)
        .unwrap()
        .set_len(bytes.len() as u64 / 2)
        .unwrap();
    let before = content(folder.path());
    let outcome = count(&database);
    assert!(!matches!(outcome, Ok(Some(1..))), "{outcome:?}");
    assert_eq!(content(folder.path()), before);
}

#[test]
fn a_closed_database_is_read_without_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.db");
    let db = Connection::open(&database).unwrap();
    db.pragma_update(None, "journal_mode", "wal").unwrap();
    db.execute_batch("create table t(a); insert into t values (1), (2)")
        .unwrap();
    db.close().unwrap();
    let before = content(folder.path());
    assert_eq!(before.len(), 1);
    assert_eq!(count(&database).unwrap(), Some(2));
    assert_eq!(content(folder.path()), before);
    assert_eq!(count(&folder.path().join("none.db")).unwrap(), None);
}

#[test]
fn what_cannot_be_read_is_an_issue() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let issue = |name: &str| count(&path(name)).unwrap_err();

    write_atomic(
        &path("text.db"),
        b"no database at all, only some text",
        0o600,
    )
    .unwrap();
    assert_eq!(issue("text.db").kind, IssueKind::Corrupt);
    write_atomic(&path("empty.db"), b"", 0o600).unwrap();
    assert_eq!(issue("empty.db").kind, IssueKind::Corrupt);
    std::fs::create_dir_all(path("folder.db")).unwrap();
    assert_eq!(issue("folder.db").kind, IssueKind::NotAFile);
    std::os::unix::fs::symlink("text.db", path("link.db")).unwrap();
    assert_eq!(issue("link.db").kind, IssueKind::Symlink);

    let db = Connection::open(path("zero.db")).unwrap();
    db.execute_batch("create table t(a); insert into t values (zeroblob(100000))")
        .unwrap();
    db.close().unwrap();
    let file = std::fs::File::options().write(true).open(path("zero.db"));
    file.unwrap().set_len(4096 + 100).unwrap();
    assert_eq!(issue("zero.db").kind, IssueKind::Corrupt);

    let schema = read(&path("empty.db"), |db| {
        columns(db, "t")?.require(&["a"])?;
        Ok(())
    });
    assert_eq!(schema.unwrap_err().kind, IssueKind::UnknownVersion);
}

#[test]
fn a_view_in_the_place_of_a_table_does_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.db");
    let db = Connection::open(&database).unwrap();
    db.execute_batch(
        "create view t(a) as with recursive n(i) as (select 1 union all select i + 1 from n) \
         select i from n",
    )
    .unwrap();
    db.close().unwrap();
    let seen = read(&database, |db| Ok(columns(db, "t")?.exist()));
    assert_eq!(seen.unwrap(), Some(false));
}

#[test]
fn an_exclusive_lock_is_an_issue_after_the_wait() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.db");
    let db = Connection::open(&database).unwrap();
    db.execute_batch("create table t(a); begin exclusive; insert into t values (1)")
        .unwrap();
    // The journal that stands beside it says that somebody writes, so the locks are respected.
    assert_eq!(count(&database).unwrap_err().kind, IssueKind::Unreadable);
    db.execute_batch("commit").unwrap();
    assert_eq!(count(&database).unwrap(), Some(1));
}

/// A journal beside a database in WAL mode, or beside nothing: `SQLite` would make a log there, or roll back.
#[test]
fn a_journal_that_somebody_left_makes_nothing() {
    for wal_mode in [true, false] {
        for journal in [
            &[0_u8; 512][..],
            &[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7],
            b"x",
        ] {
            for size in [None, Some(0), Some(100)] {
                let folder = tempfile::tempdir().unwrap();
                let database = folder.path().join("a.db");
                let db = Connection::open(&database).unwrap();
                if wal_mode {
                    db.pragma_update(None, "journal_mode", "wal").unwrap();
                }
                db.execute_batch("create table t(a); insert into t values (1)")
                    .unwrap();
                db.close().unwrap();
                if let Some(size) = size {
                    let file = std::fs::File::options()
                        .write(true)
                        .open(&database)
                        .unwrap();
                    file.set_len(size).unwrap();
                }
                write_atomic(&beside(&database, "-journal"), journal, 0o600).unwrap();
                let before = content(folder.path());
                let outcome = count(&database);
                let first = journal[0];
                let context =
                    format!("WAL mode {wal_mode}, journal {first}…, size {size:?}: {outcome:?}");
                assert!(matches!(outcome, Ok(Some(1)) | Err(_)), "{context}");
                assert!(size.is_none() || outcome.is_err(), "{context}");
                assert!(content(folder.path()) == before, "{context}");
            }
        }
    }
}

/// A log that is no file: a pipe, a link, a folder.
#[test]
fn a_log_that_is_no_file_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.db");
    let db = Connection::open(&database).unwrap();
    db.pragma_update(None, "journal_mode", "wal").unwrap();
    db.execute_batch("create table t(a); insert into t values (1)")
        .unwrap();
    db.close().unwrap();
    let log = beside(&database, "-wal");
    let target = folder.path().join("target");
    write_atomic(&target, b"of somebody else", 0o600).unwrap();
    let made = Command::new("mkfifo").arg(&log).status().unwrap();
    assert!(made.success());
    assert_eq!(count(&database).unwrap(), Some(1));
    std::fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink(&target, &log).unwrap();
    let before = content(folder.path());
    let outcome = count(&database);
    assert!(matches!(outcome, Ok(Some(1)) | Err(_)), "{outcome:?}");
    assert_eq!(content(folder.path()), before);
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir_all(&log).unwrap();
    let outcome = count(&database);
    assert!(matches!(outcome, Ok(Some(1)) | Err(_)), "{outcome:?}");
}
