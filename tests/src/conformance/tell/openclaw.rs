//! OpenClaw's sessions: the databases of 2026.9.6, and the files that 2026.7.1 kept. A session's process has the agent's
//! database open; with files it holds a lock file beside the transcript.
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use takeup_core::ids::SessionRef;
use takeup_core::process::{Processes as _, system};
use takeup_core::time::Time;
use takeup_sqlite::rusqlite::Connection;

use super::super::facts::Fact;
use super::super::stage::{self, Stage, TITLE};
use super::super::story::{Aftermath, Deed};
use super::{Teller, Untold, session_ref};

const AGENT: &str = "
    pragma user_version = 23;
    create table if not exists session_nodes (session_key text primary key, current_session_id text not null,
        entry_json text not null, entry_valid integer not null, status text, updated_at integer, created_at integer,
        last_interaction_at integer, last_activity_at integer, archived_at integer, pinned_at integer,
        last_read_at integer, created_via text, parent_session_key text, spawned_by text, fork_source_session_key text,
        fork_source_session_id text, fork_source_entry_id text, project_id text, label text, display_name text,
        category text);
    create table if not exists session_windows (session_id text primary key, session_key text not null,
        previous_session_id text, reason text not null, created_at integer, updated_at integer, started_at integer,
        ended_at integer, status text);
    create table if not exists transcript_events (session_id text not null, seq integer not null, event_json text,
        event_zstd blob, event_utf8_bytes integer, navigation_json text, created_at integer not null,
        primary key (session_id, seq));";

const SHARED: &str = "
    pragma user_version = 18;
    create table if not exists schema_meta (meta_key text primary key, role text, schema_version integer, agent_id text,
        app_version text);
    insert or ignore into schema_meta values ('primary', 'state', 18, null, '2026.9.6');
    create table if not exists agent_databases (agent_id text primary key, path text, schema_version integer,
        last_seen_at integer, size_bytes integer);
    insert or ignore into agent_databases values ('main', 'agents/main/agent/openclaw-agent.sqlite', 23, 0, 0);";

/// OpenClaw's sessions.
#[derive(Debug)]
pub(super) struct Openclaw {
    in_files: bool,
    sessions: BTreeMap<String, Session>,
}

#[derive(Clone, Debug)]
struct Session {
    cwd: String,
    began: Time,
    status: Option<&'static str>,
    events: Vec<Value>,
    calling: bool,
}

impl Openclaw {
    pub(super) fn databases() -> Self {
        Self {
            in_files: false,
            sessions: BTreeMap::new(),
        }
    }

    pub(super) fn files() -> Self {
        Self {
            in_files: true,
            sessions: BTreeMap::new(),
        }
    }
}

impl Teller for Openclaw {
    fn session(&self, who: &str) -> SessionRef {
        session_ref("openclaw", &id(who))
    }

    fn tell(&mut self, stage: &mut Stage, who: &str, deed: &Deed) -> Result<(), Untold> {
        match deed {
            Deed::Begins { .. } | Deed::Takes { .. } | Deed::Rebuilds { .. } => {
                let at = stage::now();
                let header = json!({"type": "session", "version": if self.in_files { 3 } else { 4 }, "id": id(who),
                    "timestamp": at, "cwd": stage.root()});
                let session = Session {
                    cwd: stage.root(),
                    began: at,
                    status: Some("running"),
                    events: vec![header],
                    calling: false,
                };
                self.sessions.insert(who.to_owned(), session);
                if self.in_files {
                    let pid = stage.begin(who, None);
                    lock(stage, who, pid, 0);
                } else {
                    drop(open(database(stage), AGENT));
                    stage.begin(who, Some(&database(stage)));
                }
                self.says(stage, who, "user", json!(TITLE), None);
            }
            Deed::Saves { .. } | Deed::Evaluates { .. } => {
                let said = json!([{"type": "text", "text": "done so far"}]);
                self.of(who).status = Some("done");
                self.says(stage, who, "assistant", said, Some("stop"));
            }
            Deed::Calls { tool, argument } => {
                self.of(who).status = Some("running");
                self.says(stage, who, "user", json!("go on"), None);
                let call = json!([{"type": "toolCall", "id": "call_1", "name": tool, "arguments": {"command": argument}}]);
                self.says(stage, who, "assistant", call, Some("toolUse"));
                self.of(who).calling = true;
            }
            Deed::GoesOn => {
                if self.in_files {
                    let pid = stage.begin(who, None);
                    lock(stage, who, pid, 0);
                } else {
                    stage.begin(who, Some(&database(stage)));
                }
                self.of(who).status = Some("running");
                self.says(stage, who, "user", json!("go on"), None);
            }
            Deed::Dies(aftermath) => {
                if !self.of(who).calling {
                    self.of(who).status = Some("running");
                    self.says(stage, who, "user", json!("go on"), None);
                }
                stage.kill(who);
                if self.in_files && *aftermath != Aftermath::Gone {
                    let stranger = stage.stranger();
                    lock(stage, who, stranger, 360_000);
                }
            }
            Deed::Ends => {
                stage.close(who);
                if self.in_files {
                    std::fs::remove_file(sessions(stage).join(format!("{}.jsonl.lock", id(who))))
                        .expect("the lock file is there");
                }
            }
            Deed::Finishes | Deed::GivesUp => return Err(Untold(Fact::Closing)),
            Deed::Asks { .. } | Deed::Approves | Deed::Rejects | Deed::Decides => {
                return Err(Untold(Fact::Review));
            }
            Deed::MarkedStale => return Err(Untold(Fact::Marked)),
            Deed::Checks { .. } => return Err(Untold(Fact::Proof)),
            Deed::Torn if self.in_files => {
                stage::cut(&sessions(stage).join(format!("{}.jsonl", id(who))), 20);
            }
            Deed::Damaged if self.in_files => {
                let path = sessions(stage).join("sessions.json");
                let text = std::fs::read_to_string(&path).expect("the index is there");
                stage::put(&path, text.replace(':', ";"));
            }
            Deed::Torn => {
                settle(stage);
                stage::cut(&database(stage), 5_000);
            }
            Deed::Damaged => {
                settle(stage);
                let mut bytes = std::fs::read(database(stage)).expect("the database is there");
                bytes[..16].copy_from_slice(b"No SQLite at all");
                stage::put(&database(stage), bytes);
            }
        }
        Ok(())
    }
}

fn id(who: &str) -> String {
    let digits: String = who.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("6f1c2a90-0000-4000-8000-{digits:0>12}")
}

fn key(who: &str) -> String {
    format!("agent:main:{who}")
}

fn state(stage: &Stage) -> PathBuf {
    stage.scratch.home().join(".openclaw")
}

fn database(stage: &Stage) -> PathBuf {
    state(stage).join("agents/main/agent/openclaw-agent.sqlite")
}

fn sessions(stage: &Stage) -> PathBuf {
    state(stage).join("agents/main/sessions")
}

fn open(path: PathBuf, schema: &str) -> Connection {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).expect("a folder can be made");
    }
    let db = Connection::open(path).expect("the database can be made");
    db.query_row("pragma journal_mode = wal", [], |_| Ok(()))
        .expect("it takes a mode");
    db.execute_batch(schema).expect("the tables can be made");
    db
}

fn settle(stage: &Stage) {
    open(database(stage), AGENT)
        .query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))
        .expect("it can be settled");
}

/// Writes the lock file of a transcript, as held by a process that began so many clock ticks earlier than it did.
fn lock(stage: &Stage, who: &str, pid: u32, earlier: u64) {
    let start = system()
        .start_ticks(pid)
        .expect("the process was just started");
    let held = json!({"pid": pid, "createdAt": stage::now(), "maxHoldMs": 300_000,
        "starttime": start.saturating_sub(earlier)});
    stage::put(
        &sessions(stage).join(format!("{}.jsonl.lock", id(who))),
        held.to_string(),
    );
}

impl Openclaw {
    fn of(&mut self, who: &str) -> &mut Session {
        self.sessions
            .get_mut(who)
            .unwrap_or_else(|| panic!("{who} is no session"))
    }

    /// Adds a message; every entry hangs on the one before.
    fn says(&mut self, stage: &Stage, who: &str, role: &str, content: Value, stop: Option<&str>) {
        let at = stage::now();
        let session = self.of(who);
        let number = session.events.len();
        let parent = session
            .events
            .last()
            .filter(|event| event["type"] == "message")
            .map_or(Value::Null, |event| event["id"].clone());
        let mut message = json!({"role": role, "content": content, "timestamp": at.millis()});
        if let Some(stop) = stop {
            message["stopReason"] = json!(stop);
        }
        session.events.push(
            json!({"type": "message", "id": format!("{number:08x}"), "parentId": parent,
            "timestamp": at, "message": message}),
        );
        let session = session.clone();
        if self.in_files {
            self.write_files(stage, who, &session);
        } else {
            write_database(stage, who, &session, at);
        }
    }

    fn write_files(&self, stage: &Stage, who: &str, session: &Session) {
        let lines: String = session
            .events
            .iter()
            .map(|event| format!("{event}\n"))
            .collect();
        let transcript = sessions(stage).join(format!("{}.jsonl", id(who)));
        stage::put(&transcript, lines);
        let at = stage::now().millis();
        let index: BTreeMap<String, Value> = self
            .sessions
            .iter()
            .map(|(who, session)| {
                let entry = json!({"sessionId": id(who), "updatedAt": at, "sessionStartedAt": session.began.millis(),
                    "sessionFile": sessions(stage).join(format!("{}.jsonl", id(who))), "status": session.status,
                    "abortedLastRun": false, "startedAt": session.began.millis(), "displayName": TITLE});
                (key(who), entry)
            })
            .collect();
        stage::put(
            &sessions(stage).join("sessions.json"),
            json!(index).to_string(),
        );
    }
}

fn write_database(stage: &Stage, who: &str, session: &Session, at: Time) {
    drop(open(state(stage).join("state/openclaw.sqlite"), SHARED));
    let db = open(database(stage), AGENT);
    let mut entry = json!({"sessionId": id(who), "updatedAt": at.millis(), "sessionStartedAt": session.began.millis(),
        "status": session.status, "execCwd": session.cwd, "displayName": TITLE});
    if session.status == Some("running") {
        entry["lifecycleRunId"] = json!("run-1");
    }
    db.execute(
        "insert or replace into session_nodes (session_key, current_session_id, entry_json, entry_valid, status,
         updated_at, created_at, created_via, display_name) values (?1, ?2, ?3, 1, ?4, ?5, ?6, 'operator', ?7)",
        (
            key(who),
            id(who),
            entry.to_string(),
            session.status,
            at.millis(),
            session.began.millis(),
            TITLE,
        ),
    )
    .expect("a session can be written");
    db.execute(
        "insert or replace into session_windows (session_id, session_key, reason, created_at, updated_at, started_at,
         status) values (?1, ?2, 'initial', ?3, ?4, ?3, ?5)",
        (
            id(who),
            key(who),
            session.began.millis(),
            at.millis(),
            session.status,
        ),
    )
    .expect("a window can be written");
    for (seq, event) in session.events.iter().enumerate() {
        let text = event.to_string();
        let length = i64::try_from(text.len()).unwrap_or(0);
        db.execute(
            "insert or replace into transcript_events (session_id, seq, event_json, event_utf8_bytes, created_at)
             values (?1, ?2, ?3, ?4, ?5)",
            (
                id(who),
                i64::try_from(seq).unwrap_or(0),
                text,
                length,
                at.millis(),
            ),
        )
        .expect("an event can be written");
    }
}
