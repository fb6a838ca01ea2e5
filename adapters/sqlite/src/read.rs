//! Opening without touching, and reading within bounds.
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};
use takeup_core::files::open_regular;
use takeup_core::issue::{Issue, IssueKind};

use crate::owner::{Connected, Owner, beside, lock_owner};

/// Work on a database failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// `SQLite` says so.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The schema is not one that can be read; says what is missing.
    #[error("{0}")]
    Unsupported(String),
}

/// How long is waited for a lock of the owner.
const BUSY: Duration = Duration::from_secs(1);
/// How much of a database is kept in memory, in kilobytes with the sign that `SQLite` wants for that unit: the pages between
/// one session's events and the next are not read anew.
const CACHE: i32 = -16_384;
/// The longest text or blob that is accepted, in bytes.
const LONGEST: i32 = 64 << 20;
/// Steps of `SQLite`'s machine between two looks at the bound.
const STRIDE: i32 = 10_000;
/// How many strides one piece of work may take: about a minute of pure computing.
const STRIDES: u64 = 100_000;
/// How often work is done again when the files changed under it.
const TRIES: usize = 4;

/// How a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// With the owner, by its `-shm`.
    Shared,
    /// Without locks, the WAL's index in memory.
    Alone,
    /// Without locks and without a WAL.
    Immutable,
}

/// Tells whether a `-wal` with content lies beside a database.
pub fn wal_present(database: &Path) -> bool {
    std::fs::symlink_metadata(beside(database, "-wal")).is_ok_and(|wal| wal.len() > 0)
}

/// Reads a database without touching it or anything beside it; returns `Ok(None)` where there is no file.
///
/// `work` gets a connection that can only read, and may be called again when the files changed meanwhile. Everything
/// that goes wrong is an [`Issue`]: not a database, damaged, locked for longer than a second, a schema that cannot be
/// read, or work that takes more than a bounded number of steps (a hostile view).
pub fn read<T>(
    database: &Path,
    mut work: impl FnMut(&Connection) -> Result<T, ReadError>,
) -> Result<Option<T>, Issue> {
    let mut moved = None;
    for _ in 0..TRIES {
        let Some(file) = open_regular(database)? else {
            return Ok(None);
        };
        drop(file);
        let before = look(database);
        let way = choose(database);
        let outcome = connect(database, way).and_then(|(db, connected)| {
            let outcome = work(&db);
            // The order matters: the descriptors kept for the sake of this connection are closed after it.
            drop(db);
            drop(connected);
            outcome
        });
        if way == Way::Shared || before == look(database) {
            return outcome
                .map(Some)
                .map_err(|error| issue_of(database, &error));
        }
        moved = Some(outcome.err());
    }
    let seen = moved
        .flatten()
        .map_or_else(String::new, |error| format!(" ({error})"));
    Err(Issue::new(
        database,
        IssueKind::Unreadable,
        format!("it changed each of the {TRIES} times it was read{seen}"),
    ))
}

/// What shows that a file was replaced or written.
type Look = Vec<Option<(u64, u64, i64, i64)>>;

fn look(database: &Path) -> Look {
    let of = |meta: Metadata| (meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec());
    ["", "-wal", "-journal"]
        .into_iter()
        .map(|suffix| {
            std::fs::symlink_metadata(beside(database, suffix))
                .ok()
                .map(of)
        })
        .collect()
}

/// Tells whether a `-journal` with content stands there that counts. One that begins with a zero is over, or not begun
/// (sqlite.org/atomiccommit.html, section 9.2). Beside a database in WAL mode it is over, and taken for one that is not
/// begun it would let `SQLite` make a log.
fn has_journal(database: &Path) -> bool {
    let journal = beside(database, "-journal");
    let has_content = std::fs::symlink_metadata(&journal).is_ok_and(|journal| journal.len() > 0);
    let is_over =
        || byte_at(&journal, 0) == Some(0) && byte_at(database, READ_VERSION) == Some(WAL);
    has_content && !is_over()
}

/// Where a database says what it takes to read it (sqlite.org/fileformat.html, section 1.3).
const READ_VERSION: u64 = 19;
/// A write-ahead log.
const WAL: u8 = 2;

fn byte_at(path: &Path, at: u64) -> Option<u8> {
    use std::os::unix::fs::FileExt as _;
    let mut byte = [0];
    let file = open_regular(path).ok()??;
    file.read_exact_at(&mut byte, at).ok()?;
    Some(byte[0])
}

fn choose(database: &Path) -> Way {
    if has_journal(database) {
        return Way::Shared;
    }
    // An owner that has a WAL database open has made its `-wal`, so sharing creates nothing.
    let wal = std::fs::symlink_metadata(beside(database, "-wal"));
    match (lock_owner(database), wal) {
        (_, Err(_)) => Way::Immutable,
        (Owner::Free, Ok(wal)) if wal.len() == 0 => Way::Immutable,
        (Owner::Free, Ok(_)) => Way::Alone,
        (Owner::Held { .. } | Owner::Unknown { .. }, Ok(_)) => Way::Shared,
    }
}

fn connect(database: &Path, way: Way) -> Result<(Connection, Connected), ReadError> {
    let connected = Connected::new();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let mut db = Connection::open_with_flags(uri(database, way), flags)?;
    db.busy_timeout(BUSY)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    db.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST)?;
    let mut left = STRIDES;
    db.progress_handler(
        STRIDE,
        Some(move || {
            left = left.saturating_sub(1);
            left == 0
        }),
    )?;
    if way == Way::Alone {
        // With this mode the index of the WAL is kept in memory instead of in a file.
        db.query_row("pragma locking_mode = exclusive", [], |_| Ok(()))?;
    }
    // Not before: this opens the file, and without that mode a WAL that nobody holds cannot be opened read-only.
    db.pragma_update(None, "cache_size", CACHE)?;
    db.execute_batch("pragma query_only = on; pragma cell_size_check = on; begin")?;
    Ok((db, connected))
}

/// Writes the path so that `SQLite` reads no parameter out of it.
fn uri(database: &Path, way: Way) -> String {
    use std::fmt::Write as _;
    let mut uri = "file:".to_owned();
    for &byte in database.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _: std::fmt::Result = write!(uri, "%{byte:02X}");
        }
    }
    uri.push_str(match way {
        Way::Shared => "?mode=ro",
        Way::Alone => "?mode=ro&vfs=unix-none",
        Way::Immutable => "?mode=ro&immutable=1",
    });
    uri
}

fn issue_of(database: &Path, error: &ReadError) -> Issue {
    let kind = match error {
        ReadError::Unsupported(_) => IssueKind::UnknownVersion,
        ReadError::Sqlite(error) => match error.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly,
            ) => IssueKind::Unreadable,
            Some(ErrorCode::OperationInterrupted | ErrorCode::TooBig) => IssueKind::TooLarge,
            _ => IssueKind::Corrupt,
        },
    };
    let message = match error {
        ReadError::Sqlite(error)
            if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) =>
        {
            "reading it took too many steps".to_owned()
        }
        ReadError::Sqlite(_) | ReadError::Unsupported(_) => error.to_string(),
    };
    Issue::new(
        database,
        kind,
        message.replace(|c: char| c.is_control(), " "),
    )
}

/// Returns a value as text, whatever its type; `None` for null and blobs. Text that is not UTF-8 is mended.
pub fn text(row: &Row<'_>, column: usize) -> Result<Option<String>, ReadError> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Null | ValueRef::Blob(_) => None,
    })
}

/// Returns a value as a whole number, whatever its type; `None` where it is none.
pub fn integer(row: &Row<'_>, column: usize) -> Result<Option<i64>, ReadError> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(number) => Some(number),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a cast to a whole number stops at the ends of its range"
        )]
        ValueRef::Real(number) => Some(number as i64),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.trim().parse().ok()),
        ValueRef::Null | ValueRef::Blob(_) => None,
    })
}

/// The columns of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    table: String,
    names: BTreeSet<String>,
}

/// Looks which columns a table has. A view or virtual table counts as none: other people's programs run in them.
pub fn columns(db: &Connection, table: &str) -> Result<Columns, ReadError> {
    let plain: bool = db.query_row(
        "select exists(select 1 from sqlite_schema where type = 'table' and name = ?1 \
         and rootpage > 0)",
        [table],
        |row| row.get(0),
    )?;
    let mut names = BTreeSet::new();
    if plain {
        let mut statement = db.prepare("select name from pragma_table_info(?1)")?;
        let mut rows = statement.query([table])?;
        while let Some(row) = rows.next()? {
            names.insert(row.get(0)?);
        }
    }
    Ok(Columns {
        table: table.to_owned(),
        names,
    })
}

impl Columns {
    /// Tells whether there is such a table.
    pub fn exist(&self) -> bool {
        !self.names.is_empty()
    }

    /// Tells whether the table has a column.
    pub fn has(&self, column: &str) -> bool {
        self.names.contains(column)
    }

    /// Returns `column` where the table has it, else `null`, to be put into a query.
    pub fn or_null<'a>(&self, column: &'a str) -> &'a str {
        if self.has(column) { column } else { "null" }
    }

    /// Fails where one of these columns is missing, and names it.
    pub fn require(&self, columns: &[&str]) -> Result<(), ReadError> {
        if !self.exist() {
            return Err(ReadError::Unsupported(format!(
                "this schema cannot be read: it has no table {}",
                self.table
            )));
        }
        match columns.iter().find(|column| !self.has(column)) {
            Some(column) => Err(ReadError::Unsupported(format!(
                "this schema cannot be read: {} has no column {column}",
                self.table
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
