//! jcode's home as 0.79.1 leaves it: a snapshot when a session begins or its status changes, journal lines for messages,
//! a marker with the number of its process, and its todos.
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use takeup_core::ids::SessionRef;
use takeup_core::time::Time;

use super::super::facts::Fact;
use super::super::stage::{self, Stage, TITLE};
use super::super::story::{Aftermath, Deed};
use super::{Teller, Untold, session_ref};

/// jcode's home.
#[derive(Debug, Default)]
pub(super) struct Jcode {
    sessions: BTreeMap<String, Session>,
    count: u64,
}

#[derive(Clone, Debug)]
struct Session {
    pid: u32,
    active_at: Time,
    created_at: Time,
    status: &'static str,
    working_dir: String,
    messages: Vec<Value>,
    calling: bool,
}

impl Teller for Jcode {
    fn session(&self, who: &str) -> SessionRef {
        session_ref("jcode", &id(who))
    }

    fn tell(&mut self, stage: &mut Stage, who: &str, deed: &Deed) -> Result<(), Untold> {
        match deed {
            Deed::Begins { .. } | Deed::Takes { .. } | Deed::Rebuilds { .. } => {
                let at = stage::now();
                let pid = stage.begin(who, None);
                let session = Session {
                    pid,
                    active_at: stage::now(),
                    created_at: at,
                    status: "Active",
                    working_dir: stage.root(),
                    messages: Vec::new(),
                    calling: false,
                };
                self.sessions.insert(who.to_owned(), session);
                stage::put(
                    &home(stage).join("active_pids").join(id(who)),
                    pid.to_string(),
                );
                let todos = json!([{"content": TITLE, "status": "in_progress", "priority": "high", "id": "1"}]);
                stage::put(
                    &home(stage).join("todos").join(format!("{}.json", id(who))),
                    todos.to_string(),
                );
                self.snapshot(stage, who);
                self.says(stage, who, "user", text(TITLE));
            }
            Deed::Saves { .. } | Deed::Evaluates { .. } => {
                self.says(stage, who, "assistant", text("done so far"));
            }
            Deed::Calls { tool, argument } => {
                self.says(stage, who, "user", text("go on"));
                let call = json!([{"type": "tool_use", "id": "call_1", "name": tool, "input": {"command": argument}}]);
                self.says(stage, who, "assistant", call);
                self.of(who).calling = true;
            }
            Deed::GoesOn => {
                let pid = stage.begin(who, None);
                let session = self.of(who);
                session.pid = pid;
                session.active_at = stage::now();
                self.snapshot(stage, who);
                stage::put(
                    &home(stage).join("active_pids").join(id(who)),
                    pid.to_string(),
                );
            }
            Deed::Dies(aftermath) => {
                if !self.of(who).calling {
                    self.says(stage, who, "user", text("go on"));
                }
                stage.kill(who);
                if *aftermath != Aftermath::Gone {
                    // It was all written an hour ago; the number belongs to a process that began just now.
                    let pid = stage.stranger();
                    let session = self.of(who);
                    session.pid = pid;
                    session.active_at = Time::from_millis(session.active_at.millis() - 3_600_000);
                    self.snapshot(stage, who);
                    let marker = home(stage).join("active_pids").join(id(who));
                    stage::put(&marker, pid.to_string());
                    let before = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
                    let file = std::fs::File::options()
                        .append(true)
                        .open(marker)
                        .expect("the marker is there");
                    file.set_modified(before).expect("a time can be set");
                }
            }
            Deed::Ends => {
                self.of(who).status = "Closed";
                self.snapshot(stage, who);
                std::fs::remove_file(home(stage).join("active_pids").join(id(who)))
                    .expect("the marker is there");
                stage.close(who);
            }
            Deed::Finishes | Deed::GivesUp => return Err(Untold(Fact::Closing)),
            Deed::Asks { .. } | Deed::Approves | Deed::Rejects | Deed::Decides => {
                return Err(Untold(Fact::Review));
            }
            Deed::MarkedStale => return Err(Untold(Fact::Marked)),
            Deed::Checks { .. } => return Err(Untold(Fact::Proof)),
            Deed::Torn => stage::cut(&file(stage, who, "journal.jsonl"), 30),
            Deed::Damaged => {
                let path = file(stage, who, "json");
                let text = std::fs::read_to_string(&path).expect("the snapshot is there");
                stage::put(&path, text.replace("\"messages\"", "\"mess\u{1}ages\""));
            }
        }
        Ok(())
    }
}

fn id(who: &str) -> String {
    format!("session_{who}_1777641000000_0000000000000013")
}

fn home(stage: &Stage) -> PathBuf {
    stage.scratch.home().join(".jcode")
}

fn file(stage: &Stage, who: &str, ending: &str) -> PathBuf {
    home(stage)
        .join("sessions")
        .join(format!("{}.{ending}", id(who)))
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

impl Jcode {
    fn of(&mut self, who: &str) -> &mut Session {
        self.sessions
            .get_mut(who)
            .unwrap_or_else(|| panic!("{who} is no session"))
    }

    /// Adds a message by a line of the journal.
    fn says(&mut self, stage: &Stage, who: &str, role: &str, content: Value) {
        self.count += 1;
        let at = stage::now();
        let number = self.count;
        let message = json!({"id": format!("message_{}_{number}", at.millis()), "role": role, "content": content,
            "timestamp": at});
        let session = self.of(who);
        session.messages.push(message.clone());
        let line = format!(
            "{{\"meta\":{},\"append_messages\":[{message}]}}\n",
            meta(session, who, at)
        );
        stage::append(&file(stage, who, "journal.jsonl"), &line);
    }

    /// Writes the whole session, and begins the journal anew.
    fn snapshot(&mut self, stage: &Stage, who: &str) {
        let at = stage::now();
        let id = id(who);
        let session = self.of(who);
        let path = file(stage, who, "json");
        if path.exists() {
            let backup = file(stage, who, "bak");
            let _none_before = std::fs::remove_file(&backup);
            std::fs::hard_link(&path, &backup).expect("a link can be made");
        }
        // In jcode's order of keys.
        let whole = format!(
            "{{\"id\":\"{id}\",\"parent_id\":null,\"title\":\"{TITLE}\",\"created_at\":\"{}\",\"updated_at\":\"{at}\",\
             \"messages\":{},\"provider_key\":\"mock\",\"model\":\"mock-1\",\"is_canary\":false,\"working_dir\":{},\
             \"short_name\":\"{who}\",\"status\":\"{}\",\"last_pid\":{},\"last_active_at\":\"{}\",\"is_debug\":false,\
             \"saved\":false}}",
            session.created_at,
            Value::from(session.messages.clone()),
            json!(session.working_dir),
            session.status,
            session.pid,
            session.active_at,
        );
        stage::put(&path, whole);
        let _none_before = std::fs::remove_file(file(stage, who, "journal.jsonl"));
    }
}

/// What every line of a journal repeats.
fn meta(session: &Session, who: &str, at: Time) -> Value {
    json!({"parent_id": null, "title": TITLE, "updated_at": at, "compaction": null, "provider_session_id": null,
        "provider_key": "mock", "model": "mock-1", "reasoning_effort": null, "subagent_model": null,
        "improve_mode": null, "autoreview_enabled": null, "autojudge_enabled": null, "is_canary": false,
        "testing_build": null, "working_dir": session.working_dir, "short_name": who, "status": session.status,
        "last_pid": session.pid, "last_active_at": session.active_at, "is_debug": false, "saved": false,
        "save_label": null})
}
