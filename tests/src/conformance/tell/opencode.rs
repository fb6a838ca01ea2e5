//! OpenCode's database as 1.18.33 leaves it: sessions, messages, parts and todos, with the tree ids of its snapshots. A
//! session's process has the database open, as OpenCode's has.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use takeup_core::ids::SessionRef;
use takeup_sqlite::rusqlite::Connection;

use super::super::facts::Fact;
use super::super::stage::{self, Stage, TITLE};
use super::super::story::Deed;
use super::{Teller, Untold, session_ref};

const SCHEMA: &str = "
    create table if not exists session (id text primary key, project_id text not null, workspace_id text, parent_id text,
        slug text not null, directory text not null, path text, title text not null, version text not null,
        share_url text, summary_additions integer, summary_deletions integer, summary_files integer, summary_diffs text,
        metadata text, cost real, tokens_input integer, tokens_output integer, revert text, permission text, agent text,
        model text, time_created integer not null, time_updated integer not null, time_compacting integer,
        time_archived integer);
    create table if not exists message (id text primary key, session_id text not null, time_created integer not null,
        time_updated integer not null, data text not null);
    create table if not exists part (id text primary key, message_id text not null, session_id text not null,
        time_created integer not null, time_updated integer not null, data text not null);
    create table if not exists todo (session_id text not null, content text not null, status text not null,
        priority text not null, position integer not null, time_created integer not null,
        time_updated integer not null, primary key (session_id, position));
    create table if not exists migration (id text primary key);
    insert or ignore into migration values ('20260622202450_simplify_session_input');";

/// OpenCode's database.
#[derive(Debug, Default)]
pub(super) struct Opencode {
    count: u64,
    /// The last prompt of each session.
    asked: BTreeMap<String, String>,
}

impl Teller for Opencode {
    fn session(&self, who: &str) -> SessionRef {
        session_ref("opencode", &id(who))
    }

    fn tell(&mut self, stage: &mut Stage, who: &str, deed: &Deed) -> Result<(), Untold> {
        match deed {
            Deed::Begins { .. } | Deed::Takes { .. } | Deed::Rebuilds { .. } => {
                let db = open(stage);
                let at = stage::now().millis();
                db.execute(
                    "insert into session (id, project_id, slug, directory, path, title, version, agent, time_created,
                     time_updated) values (?1, 'global', ?2, ?3, '', ?4, '1.18.33', 'build', ?5, ?5)",
                    (id(who), format!("happy-{who}"), stage.root(), TITLE, at),
                )
                .expect("a session can be added");
                db.execute(
                    "insert into todo values (?1, ?2, 'in_progress', 'high', 0, ?3, ?3)",
                    (id(who), TITLE, at),
                )
                .expect("a todo can be added");
                drop(db);
                stage.begin(who, Some(&path(stage)));
                self.prompt(stage, who, TITLE);
            }
            Deed::Saves { .. } | Deed::Evaluates { .. } => {
                let tree = stage.tree();
                let parts = [
                    json!({"type": "step-start", "snapshot": tree}),
                    json!({"type": "text", "text": "done so far"}),
                    json!({"type": "step-finish", "reason": "stop", "snapshot": tree, "cost": 0,
                        "tokens": {"input": 1, "output": 1}}),
                ];
                self.answer(stage, who, Some("stop"), &parts);
            }
            Deed::Calls { tool, argument } => {
                self.prompt(stage, who, "go on");
                let at = stage::now().millis();
                let parts = [
                    json!({"type": "step-start", "snapshot": stage.tree()}),
                    json!({"type": "tool", "tool": tool, "callID": "call_1", "state": {"status": "running",
                        "input": {"command": argument}, "time": {"start": at}}}),
                ];
                self.answer(stage, who, None, &parts);
            }
            Deed::GoesOn => {
                stage.begin(who, Some(&path(stage)));
                self.prompt(stage, who, "go on");
                self.tell(stage, who, &Deed::Saves { same: true })?;
            }
            Deed::Dies(_) => {
                if !self.is_answering(stage, who) {
                    self.prompt(stage, who, "go on");
                    self.answer(stage, who, None, &[]);
                }
                stage.kill(who);
            }
            Deed::Ends => stage.close(who),
            Deed::Finishes | Deed::GivesUp => {
                let status = if *deed == Deed::Finishes {
                    "completed"
                } else {
                    "cancelled"
                };
                open(stage)
                    .execute(
                        "update todo set status = ?2 where session_id = ?1",
                        (id(who), status),
                    )
                    .expect("a todo can be changed");
                return Err(Untold(Fact::Closing));
            }
            Deed::Asks { .. } | Deed::Approves | Deed::Rejects | Deed::Decides => {
                return Err(Untold(Fact::Review));
            }
            Deed::MarkedStale => return Err(Untold(Fact::Marked)),
            Deed::Checks { .. } => return Err(Untold(Fact::Proof)),
            Deed::Torn => {
                settle(stage);
                stage::cut(&path(stage), 5_000);
            }
            Deed::Damaged => {
                settle(stage);
                let mut bytes = std::fs::read(path(stage)).expect("the database is there");
                bytes[..16].copy_from_slice(b"No SQLite at all");
                stage::put(&path(stage), bytes);
            }
        }
        Ok(())
    }
}

fn id(who: &str) -> String {
    format!("ses_dd8be55d8ffe{who:A<14}")
}

fn path(stage: &Stage) -> PathBuf {
    of_home(&stage.scratch.home())
}

fn of_home(home: &Path) -> PathBuf {
    home.join(".local/share/opencode/opencode.db")
}

fn open(stage: &Stage) -> Connection {
    open_at(&path(stage))
}

/// Puts a session that `opencode import` is given, and what stands in its `todos`, into the database of a home, and returns
/// its id.
pub fn import(home: &Path, session: &Value) -> String {
    let db = open_at(&of_home(home));
    let info = &session["info"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let id = text(&info["id"]);
    db.execute(
        "insert into session (id, project_id, slug, directory, title, version, time_created, time_updated)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (
            &id,
            text(&info["projectID"]),
            text(&info["slug"]),
            text(&info["directory"]),
            text(&info["title"]),
            text(&info["version"]),
            info["time"]["created"].as_i64(),
            info["time"]["updated"].as_i64(),
        ),
    )
    .expect("every field is there");
    for message in session["messages"].as_array().into_iter().flatten() {
        let at = message["info"]["time"]["created"].as_i64();
        let number = text(&message["info"]["id"]);
        db.execute(
            "insert into message values (?1, ?2, ?3, ?3, ?4)",
            (&number, &id, at, message["info"].to_string()),
        )
        .expect("every field is there");
        for part in message["parts"].as_array().into_iter().flatten() {
            db.execute(
                "insert into part values (?1, ?2, ?3, ?4, ?4, ?5)",
                (text(&part["id"]), &number, &id, at, part.to_string()),
            )
            .expect("every field is there");
        }
    }
    let todos = session["todos"].as_array().into_iter().flatten();
    for (position, todo) in (0_i64..).zip(todos) {
        db.execute(
            "insert into todo values (?1, ?2, ?3, 'high', ?4, 0, 0)",
            (&id, text(&todo["content"]), text(&todo["status"]), position),
        )
        .expect("every field is there");
    }
    id
}

fn open_at(path: &Path) -> Connection {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).expect("a folder can be made");
    }
    let db = Connection::open(path).expect("the database can be made");
    db.query_row("pragma journal_mode = wal", [], |_| Ok(()))
        .expect("it takes a mode");
    db.execute_batch(SCHEMA).expect("the tables can be made");
    db
}

/// Brings everything into the one file, as the last process that closes it does.
fn settle(stage: &Stage) {
    open(stage)
        .query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))
        .expect("it can be settled");
}

impl Opencode {
    fn add(&mut self, stage: &Stage, who: &str, data: &Value, parts: &[Value]) -> String {
        self.count += 1;
        let (session, at) = (id(who), stage::now().millis());
        let message = format!("msg_22741ab2{:04x}Cf4XrSaFvQm1UR", self.count);
        let db = open(stage);
        db.execute(
            "insert into message values (?1, ?2, ?3, ?3, ?4)",
            (&message, &session, at, data.to_string()),
        )
        .expect("a message can be added");
        for (number, part) in parts.iter().enumerate() {
            let part_id = format!("prt_22741ab2{:04x}Cf4XrSaFvQm1U{number}", self.count);
            db.execute(
                "insert into part values (?1, ?2, ?3, ?4, ?4, ?5)",
                (part_id, &message, &session, at, part.to_string()),
            )
            .expect("a part can be added");
        }
        db.execute(
            "update session set time_updated = ?2 where id = ?1",
            (&session, at),
        )
        .expect("a session can be changed");
        message
    }

    fn prompt(&mut self, stage: &Stage, who: &str, text: &str) {
        let at = stage::now().millis();
        let data = json!({"role": "user", "time": {"created": at}, "agent": "build",
            "model": {"providerID": "mock", "modelID": "mock-1"}});
        let message = self.add(stage, who, &data, &[json!({"type": "text", "text": text})]);
        self.asked.insert(who.to_owned(), message);
    }

    /// Adds an answer; one that never ended where no finish is named.
    fn answer(&mut self, stage: &Stage, who: &str, finish: Option<&str>, parts: &[Value]) {
        let at = stage::now().millis();
        let root = stage.root();
        let mut data = json!({"role": "assistant", "parentID": self.asked.get(who), "mode": "build", "agent": "build",
            "path": {"cwd": root, "root": root}, "modelID": "mock-1", "providerID": "mock", "cost": 0,
            "tokens": {"input": 1, "output": 1}, "time": {"created": at}});
        if let Some(finish) = finish {
            data["finish"] = json!(finish);
            data["time"]["completed"] = json!(at);
        }
        self.add(stage, who, &data, parts);
    }

    fn is_answering(&self, stage: &Stage, who: &str) -> bool {
        let last: String = open(stage)
            .query_row(
                "select data from message where session_id = ?1 order by id desc limit 1",
                [id(who)],
                |row| row.get(0),
            )
            .expect("it has messages");
        last.contains("assistant") && !last.contains("completed")
    }
}
