//! Reads `SQLite` databases that belong to other programs: nothing is created or changed beside them, hostile content
//! costs bounded time, and who holds them open can be asked.
//!
//! A plain read-only open is not enough: in WAL mode `SQLite` makes or rewrites the `-shm` file even then. So:
//!
//! | Beside the database | Opened |
//! |---|---|
//! | somebody holds it open (the lock byte) | `mode=ro`: the owner's `-shm` is shared, by `SQLite`'s own protocol |
//! | a `-wal` with content, nobody holds it | `mode=ro`, the WAL's index in memory only: `-shm` is not touched |
//! | a `-journal` | `mode=ro`: `SQLite` refuses a hot one, since only a writer may roll back; one that is over is passed over |
//! | nothing | `immutable=1`: no lock, no file |
//!
//! The two ways without locks are checked afterwards: when the files changed meanwhile, the work is done again.
//!
//! # Limitations
//!
//! Lock owners are known on Unix only. Among several holders one is named. A holder in another pid namespace has no
//! number. If the owner ends between the question and the opening, `SQLite` may leave the `-shm` file it shares. For root,
//! `SQLite` gives a `-wal` to the owner of the database, whose it is already: only its time of change (ctime) moves.
//!
//! # Example
//!
//! ```
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("a.db");
//! rusqlite::Connection::open(&path)?.execute_batch("create table t(a); insert into t values (7)")?;
//! let seven = takeup_sqlite::read(&path, |db| {
//!     Ok(db.query_row("select a from t", [], |row| row.get::<_, i64>(0))?)
//! });
//! assert_eq!(seven.unwrap(), Some(7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod owner;
mod read;

pub use owner::{Owner, lock_owner};
pub use read::{Columns, ReadError, columns, integer, read, text, wal_present};
pub use rusqlite;
