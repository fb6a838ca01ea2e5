//! A home of OpenClaw to be read: databases and files with sessions in them.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use serde_json::{Value, json};
use takeup_core::agent::{Agent as _, Found, Session, SessionQuery};
use takeup_core::env::Env;
use takeup_core::process::fake::FakeProcesses;
use tempfile::TempDir;

use crate::OpenClaw;

/// A home with a repository beside it.
pub(super) struct World {
    pub(super) folder: TempDir,
    /// Number, start time and name of every process.
    pub(super) table: Vec<(u32, u64, &'static str)>,
}

impl World {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for path in ["repo/.git", "repo/src", "state/state", "other/.git"] {
            std::fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        Self {
            folder,
            table: Vec::new(),
        }
    }

    pub(super) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(super) fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    pub(super) fn processes(&self) -> FakeProcesses {
        let empty = FakeProcesses::new();
        self.table.iter().fold(empty, |table, (pid, start, name)| {
            table.with(*pid, 1, *start, name)
        })
    }

    pub(super) fn agent(&self) -> OpenClaw {
        OpenClaw::with_processes(Arc::new(self.processes()))
    }

    pub(super) fn env(&self) -> Env {
        Env::of([("OPENCLAW_STATE_DIR", self.state())], "/")
    }

    /// The sessions of the repository.
    pub(super) fn here(&self) -> Found<Session> {
        let query = SessionQuery {
            root: Some(self.repo()),
            limit: 0,
            ..SessionQuery::default()
        };
        self.agent().sessions(&self.env(), &query)
    }

    /// The sessions of the repository, by name; nothing may be damaged.
    pub(super) fn healthy(&self) -> BTreeMap<String, Session> {
        let found = self.here();
        assert_eq!(found.issues, []);
        found
            .items
            .into_iter()
            .map(|session| (session.name.clone().unwrap(), session))
            .collect()
    }

    /// Makes the database of an agent, in the shape of 2026.9.
    pub(super) fn database(&self, agent: &str) -> Database {
        let folder = self.state().join("agents").join(agent).join("agent");
        std::fs::create_dir_all(&folder).unwrap();
        let db = Connection::open(folder.join("openclaw-agent.sqlite")).unwrap();
        db.execute_batch(
            "pragma user_version = 23;
             create table session_nodes(session_key text primary key, current_session_id text,
               entry_json text, entry_valid integer, updated_at integer, status text,
               created_at integer, label text, display_name text, archived_at integer,
               parent_session_key text, spawned_by text);
             create table transcript_events(session_id text, seq integer, event_json text,
               created_at integer, event_zstd blob, event_utf8_bytes integer,
               primary key(session_id, seq));",
        )
        .unwrap();
        Database { db }
    }

    /// Makes the shared database.
    pub(super) fn shared(&self) -> Connection {
        let db = Connection::open(self.state().join("state/openclaw.sqlite")).unwrap();
        db.execute_batch(
            "create table schema_meta(meta_key text, app_version text);
             insert into schema_meta values ('primary', '2026.9.6');
             create table agent_databases(agent_id text, path text);
             create table state_leases(scope text, payload_json text);
             create table gateway_boot_lifecycle(boot_id text, pid integer, started_at_ms integer,
               completed_at_ms integer);
             create table task_runs(task_id text, task_kind text, requester_session_key text,
               child_session_key text, owner_key text, label text, task text, status text,
               created_at integer, started_at integer, execution_owner_pid integer,
               execution_owner_start_identity integer);
             create table worktrees(id text, path text, removed_at integer, snapshot_ref text);",
        )
        .unwrap();
        db
    }

    /// Every file below the state folder with its content: what must not change.
    pub(super) fn content(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn walk(folder: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, into);
                } else {
                    into.insert(path.clone(), std::fs::read(&path).unwrap());
                }
            }
        }
        let mut content = BTreeMap::new();
        walk(&self.state(), &mut content);
        content
    }
}

/// One agent's database, open for writing.
pub(super) struct Database {
    pub(super) db: Connection,
}

impl Database {
    /// Puts a session in, with the entry and events given; the session id is made of the key.
    pub(super) fn session(&self, key: &str, status: Option<&str>, entry: &Value, events: &[Value]) {
        let id = id_of(key);
        let mut entry = entry.clone();
        entry["sessionId"] = json!(id);
        self.db
            .execute(
                "insert into session_nodes(session_key, current_session_id, entry_json, entry_valid,
                 updated_at, status, created_at) values (?1, ?2, ?3, 1, ?4, ?5, 1000)",
                (key, &id, entry.to_string(), 2_000, status),
            )
            .unwrap();
        for (seq, event) in events.iter().enumerate() {
            self.db
                .execute(
                    "insert into transcript_events(session_id, seq, event_json) values (?1, ?2, ?3)",
                    (&id, i64::try_from(seq).unwrap(), event.to_string()),
                )
                .unwrap();
        }
    }
}

/// The id the stand-in gives a session.
pub(super) fn id_of(key: &str) -> String {
    format!("id-{}", key.replace([':', '/'], "-"))
}

/// A transcript that begins in a folder; every event hangs on the one before.
pub(super) fn transcript(cwd: &Path, events: &[Value]) -> Vec<Value> {
    let mut all = vec![json!({"type": "session", "version": 4, "id": "s",
        "timestamp": "1970-01-01T00:00:01.000Z", "cwd": cwd})];
    let mut parent = Value::Null;
    for (n, event) in events.iter().enumerate() {
        let mut event = event.clone();
        let id = json!(format!("e{n}"));
        event["id"] = id.clone();
        event["parentId"] = parent;
        event["timestamp"] = json!("1970-01-01T00:00:02.000Z");
        parent = id;
        all.push(event);
    }
    all
}

pub(super) fn user(text: &str) -> Value {
    json!({"type": "message", "message": {"role": "user", "content": text}})
}

pub(super) fn says(text: &str, stop: &str) -> Value {
    json!({"type": "message", "message": {"role": "assistant", "stopReason": stop,
        "content": [{"type": "text", "text": text}]}})
}

pub(super) fn calls(id: &str, command: &str) -> Value {
    json!({"type": "message", "message": {"role": "assistant", "stopReason": "toolUse",
        "content": [{"type": "thinking", "thinking": "…"},
                    {"type": "toolCall", "id": id, "name": "exec", "arguments": {"command": command}}]}})
}

pub(super) fn result(id: &str) -> Value {
    json!({"type": "message", "message": {"role": "toolResult", "toolCallId": id, "toolName": "exec",
        "content": [{"type": "text", "text": "ok"}]}})
}
