//! One agent's sessions in `SQLite`.
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use bstr::{ByteSlice as _, Finder};
use rusqlite::{Connection, Row, Statement};
use takeup_core::text::json_of_agent;
use takeup_sqlite::{Columns, ReadError, columns, integer, text};

use super::entry::{Entry, is_conversation};
use super::transcript::Event;

/// The largest event that is unpacked, in bytes (OpenClaw packs none beyond it).
const LARGEST_EVENT: u64 = 4 << 20;
/// The largest entry or plain event that is looked at, in bytes. Larger ones cost a look at their length.
const LARGEST: u64 = 16 << 20;
/// The last events of a session are read up to so many bytes together.
const LARGEST_TAIL: u64 = 4 * LARGEST;
/// How many of the last events are looked at for a list.
pub(crate) const WINDOW: usize = 64;
/// How many of them are looked at first where the row says that nothing is open.
pub(crate) const GLANCE: usize = 4;

/// One row of sessions, before its transcript is looked at.
#[derive(Clone, Debug)]
pub(crate) struct SessionRow {
    pub(crate) key: String,
    pub(crate) id: String,
    pub(crate) status: Option<String>,
    pub(crate) updated_at: Option<i64>,
    pub(crate) created_at: Option<i64>,
    pub(crate) label: Option<String>,
    pub(crate) display_name: Option<String>,
    pub(crate) parent_key: Option<String>,
    pub(crate) archived: bool,
    /// `None` where nothing in it was needed: the row says that its last run is over. The transcript has the last word.
    pub(crate) entry: Option<Entry>,
    /// The entry is not what it should be.
    pub(crate) damaged: Option<String>,
}

/// The tables of one schema. Before `session_nodes` there was `session_entries`, with the same entry inside.
#[derive(Debug)]
pub(crate) struct Schema {
    nodes: Columns,
    rows: String,
    newest: String,
    events: Columns,
}

impl Schema {
    /// Looks at the tables there are; fails where the ones that are needed are missing.
    pub(crate) fn of(db: &Connection) -> Result<Self, ReadError> {
        let nodes = columns(db, "session_nodes")?;
        let (nodes, table, id) = if nodes.exist() {
            (nodes, "session_nodes", "current_session_id")
        } else {
            (
                columns(db, "session_entries")?,
                "session_entries",
                "session_id",
            )
        };
        nodes.require(&["session_key", id, "entry_json"])?;
        let events = columns(db, "transcript_events")?;
        events.require(&["session_id", "seq", "event_json"])?;
        let valid = if nodes.has("entry_valid") {
            "where entry_valid = 1"
        } else {
            "where true"
        };
        let rows = format!(
            "select session_key, {id}, {}, {}, {}, {}, {}, {}, {}, coalesce({}, {}) from {table} {valid}",
            not_too_large("entry_json"),
            nodes.or_null("status"),
            nodes.or_null("updated_at"),
            nodes.or_null("created_at"),
            nodes.or_null("archived_at"),
            nodes.or_null("label"),
            nodes.or_null("display_name"),
            nodes.or_null("parent_session_key"),
            nodes.or_null("spawned_by"),
        );
        let order = if nodes.has("updated_at") {
            "updated_at"
        } else {
            "rowid"
        };
        let newest = format!("select session_key from {table} {valid} order by {order} desc");
        Ok(Self {
            nodes,
            rows,
            newest,
            events,
        })
    }

    /// Gives every conversation that is not archived to `each`, in any order.
    pub(crate) fn each_session(
        &self,
        db: &Connection,
        mut each: impl FnMut(SessionRow) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut statement = db.prepare(&self.rows)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let session = self.session(row)?;
            if !session.archived && is_conversation(&session.key) {
                each(session)?;
            }
        }
        Ok(())
    }

    /// Gives the same to `each`, newest first, until it returns `false`. Slower for all of them: rows are large, so they
    /// are fetched one by one instead of being sorted.
    pub(crate) fn newest_sessions(
        &self,
        db: &Connection,
        mut each: impl FnMut(SessionRow) -> Result<bool, ReadError>,
    ) -> Result<(), ReadError> {
        let mut newest = db.prepare(&self.newest)?;
        let mut keys = newest.query([])?;
        let mut statement = db.prepare(&format!("{} and session_key = ?1", self.rows))?;
        while let Some(key) = keys.next()? {
            let Some(key) = text(key, 0)?.filter(|key| is_conversation(key)) else {
                continue;
            };
            let mut rows = statement.query([&key])?;
            if let Some(row) = rows.next()? {
                let session = self.session(row)?;
                if !session.archived && !each(session)? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn session(&self, row: &Row<'_>) -> Result<SessionRow, ReadError> {
        let mut session = SessionRow {
            key: text(row, 0)?.unwrap_or_default(),
            id: text(row, 1)?.unwrap_or_default(),
            status: text(row, 3)?,
            updated_at: integer(row, 4)?,
            created_at: integer(row, 5)?,
            archived: integer(row, 6)?.is_some(),
            label: text(row, 7)?,
            display_name: text(row, 8)?,
            parent_key: text(row, 9)?,
            entry: None,
            damaged: None,
        };
        if session.archived || !is_conversation(&session.key) {
            return Ok(session);
        }
        let Ok(bytes) = row.get_ref(2)?.as_bytes() else {
            let most = LARGEST >> 20;
            session.damaged = Some(format!("its entry is no text, or larger than {most} MiB"));
            return Ok(session);
        };
        if self.nodes.has("status") && is_settled(session.status.as_deref(), bytes) {
            return Ok(session);
        }
        match json_of_agent::<Entry>(bytes) {
            Ok(entry) => {
                session.archived |= entry.archived_at.is_some();
                session.entry = Some(entry);
            }
            Err(error) => session.damaged = Some(error.to_string()),
        }
        Ok(session)
    }

    /// Prepares what is asked for every session.
    pub(crate) fn statements<'db>(
        &self,
        db: &'db Connection,
    ) -> Result<Statements<'db>, ReadError> {
        let (blob, size) = (
            self.events.or_null("event_zstd"),
            self.events.or_null("event_utf8_bytes"),
        );
        let plain = not_too_large("event_json");
        let select = format!("select {plain}, {blob}, {size} from transcript_events");
        Ok(Statements {
            last: db.prepare(&format!(
                "{select} where session_id = ?1 order by seq desc limit ?2"
            ))?,
            first: db.prepare(&format!(
                "{select} where session_id = ?1 and seq < 32 order by seq"
            ))?,
        })
    }
}

/// What is asked for every session, prepared once.
#[derive(Debug)]
pub(crate) struct Statements<'db> {
    last: Statement<'db>,
    first: Statement<'db>,
}

impl Statements<'_> {
    /// Reads the last `most` events of a session, oldest first.
    pub(crate) fn last_events(
        &mut self,
        session: &str,
        most: usize,
    ) -> Result<Vec<Event>, ReadError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut rows = self.last.query((session, most))?;
        let mut events = Vec::new();
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            bytes += [0, 1].map(|column| length(row, column)).iter().sum::<u64>();
            // What lies before is out of sight, as what lies before the window.
            if bytes > LARGEST_TAIL {
                break;
            }
            events.push(event(row)?.unwrap_or_else(Event::lost));
        }
        events.reverse();
        Ok(events)
    }

    /// Reads how a session began: the folder in its first event, where commands ran, and, where `wants` says so of that
    /// folder, the first thing the person said.
    pub(crate) fn beginning(
        &mut self,
        session: &str,
        wants: impl FnOnce(Option<&Path>) -> bool,
    ) -> Result<Beginning, ReadError> {
        let mut rows = self.first.query([session])?;
        let mut beginning = Beginning::default();
        if let Some(row) = rows.next()? {
            beginning.folder = event(row)?
                .and_then(|event| event.cwd)
                .filter(|path| path.is_absolute());
        }
        if !wants(beginning.folder.as_deref()) {
            return Ok(beginning);
        }
        while let Some(row) = rows.next()? {
            // Most of the first events are settings: they are not parsed.
            let plain = row.get_ref(0)?.as_bytes_or_null().ok().flatten();
            if plain.is_some_and(|bytes| !bytes.contains_str("user")) {
                continue;
            }
            beginning.said = event(row)?.and_then(|event| event.said());
            if beginning.said.is_some() {
                break;
            }
        }
        Ok(beginning)
    }
}

/// How a session began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beginning {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) said: Option<String>,
}

/// Returns what stands for a column in a query: its value, or `null` where that is too large to be looked at. Its length
/// stands beside it in the database, so it is not read for that.
fn not_too_large(column: &str) -> String {
    format!("case when octet_length({column}) <= {LARGEST} then {column} end")
}

/// Returns the bytes of a text or blob, 0 for anything else.
fn length(row: &Row<'_>, column: usize) -> u64 {
    let value = row.get_ref(column).ok();
    value
        .and_then(|value| value.as_bytes().ok().map(|bytes| bytes.len() as u64))
        .unwrap_or(0)
}

/// Reads one event, packed or not; `None` where it is not what its format says.
fn event(row: &Row<'_>) -> Result<Option<Event>, ReadError> {
    if let Some(bytes) = row.get_ref(0)?.as_bytes_or_null().ok().flatten() {
        return Ok(json_of_agent(bytes).ok());
    }
    let Some(blob) = row.get_ref(1)?.as_bytes_or_null().ok().flatten() else {
        return Ok(None);
    };
    let most = integer(row, 2)?
        .and_then(|size| u64::try_from(size).ok())
        .unwrap_or(LARGEST_EVENT)
        .min(LARGEST_EVENT);
    Ok(unpack(blob, most).and_then(|bytes| json_of_agent(&bytes).ok()))
}

/// Unpacks at most `most` bytes; more is damage.
fn unpack(blob: &[u8], most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(blob)
        .ok()?
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

/// What an entry is parsed for: it names another folder or a goal, or says that it was stopped or put away.
static TELLING: LazyLock<[Finder<'static>; 5]> = LazyLock::new(|| {
    [
        "Cwd\":",
        "\"worktree\":",
        "\"goal\":",
        "\"abortedLastRun\":true",
        "\"archivedAt\":",
    ]
    .map(Finder::new)
});
/// Before the run that wrote last.
static WRITER: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new("\"activeWriterRunId\":\""));

/// Tells without parsing whether an entry says that nothing is open, which its transcript may still contradict: its row is `done`, the run that wrote last is the
/// run that ended last, and nothing in it is [`TELLING`]. Entries are large (the prompt of every skill
/// is in them), and most sessions are of this kind.
fn is_settled(status: Option<&str>, entry: &[u8]) -> bool {
    if status != Some("done") || !entry.starts_with(b"{") || !entry.ends_with(b"}") {
        return false;
    }
    if TELLING.iter().any(|needle| needle.find(entry).is_some()) {
        return false;
    }
    let Some(rest) = (WRITER.find(entry)).and_then(|at| entry.get(at + WRITER.needle().len()..))
    else {
        return true;
    };
    let Some((run, _)) = rest.split_once_str("\"") else {
        return false;
    };
    let mut needle = b"\"lastRunId\":\"".to_vec();
    needle.extend_from_slice(run);
    needle.push(b'"');
    entry.contains_str(&needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_settled_entry_is_known_without_parsing() {
        let done = Some("done");
        assert!(is_settled(done, br#"{"sessionId":"a"}"#));
        assert!(is_settled(
            done,
            br#"{"activeWriterRunId":"r1","lastRunId":"r1"}"#
        ));
        for open in [
            &br#"{"activeWriterRunId":"r2","lastRunId":"r1"}"#[..],
            br#"{"activeWriterRunId":"r2"}"#,
            br#"{"execCwd":"/r"}"#,
            br#"{"abortedLastRun":true}"#,
            br#"{"goal":{}}"#,
            br#"{"archivedAt":1}"#,
            b"",
            b"[]",
        ] {
            assert!(!is_settled(done, open), "{}", open.as_bstr());
        }
        assert!(!is_settled(None, b"{}"));
        assert!(!is_settled(Some("running"), b"{}"));
    }

    #[test]
    fn unpacking_stops_at_the_stated_size() {
        // A frame of one run-length block: a megabyte of the letter a.
        let bomb = [
            0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x03, 0x00, 0x40, b'a', 0x03, 0x00, 0x40, b'a',
        ];
        assert_eq!(unpack(&bomb, 100), None);
        assert_eq!(unpack(b"no frame", 100), None);
    }
}
