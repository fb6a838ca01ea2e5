mod damage;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use takeup_core::agent::{InterruptionReason, Session, SessionQuery};
use takeup_core::env::Env;
use takeup_core::issue::IssueKind;
use takeup_core::process::Liveness;
use takeup_core::time::{FixedClock, Time};
use takeup_sqlite::rusqlite::Connection;

/// The documented tables, with the columns that are read and some that are not.
const SCHEMA: &str = "
    create table session (id text primary key, project_id text, parent_id text, slug text, directory text, path text,
        title text, version text, revert text, permission text, time_created integer, time_updated integer,
        time_compacting integer, time_archived integer);
    create table message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
    create table part (id text primary key, message_id text, session_id text, time_created integer,
        time_updated integer, data text);
    create table todo (session_id text, content text, status text, priority text, position integer);
    create table credential (secret text);
    insert into credential values ('never read');";

struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn root(&self) -> PathBuf {
        let root = self.folder.path().canonicalize().unwrap().join("repo");
        std::fs::create_dir_all(&root).unwrap();
        root
    }

    fn data(&self) -> PathBuf {
        let data = self.folder.path().join("data/opencode");
        std::fs::create_dir_all(&data).unwrap();
        data
    }

    fn database(&self) -> Connection {
        let db = Connection::open(self.data().join("opencode.db")).unwrap();
        db.query_row("pragma journal_mode = wal", [], |_| Ok(()))
            .unwrap();
        db.execute_batch(SCHEMA).unwrap();
        db
    }

    fn env(&self) -> Env {
        Env::of(
            [
                (
                    "HOME".to_owned(),
                    self.folder.path().to_str().unwrap().to_owned(),
                ),
                (
                    "XDG_DATA_HOME".to_owned(),
                    self.folder.path().join("data").to_str().unwrap().to_owned(),
                ),
            ],
            self.folder.path(),
        )
    }

    fn sessions(&self) -> takeup_core::agent::Found<Session> {
        let query = SessionQuery {
            root: Some(self.root()),
            limit: 0,
            ..SessionQuery::default()
        };
        super::sessions(
            &self.env(),
            &query,
            &FixedClock(Time::from_millis(1_900_000_000_000)),
        )
    }

    fn only(&self) -> Session {
        let found = self.sessions();
        assert_eq!(found.issues, Vec::new());
        assert_eq!(found.items.len(), 1, "{:?}", found.items);
        found.items.into_iter().next().unwrap()
    }

    /// The files of the store with their content and times.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
        let mut files: Vec<_> = self
            .data()
            .read_dir()
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let modified = path.metadata().unwrap().modified().unwrap();
                let bytes = std::fs::read(&path).unwrap_or_default();
                (path, bytes, modified)
            })
            .collect();
        files.sort();
        files
    }
}

fn add_session(db: &Connection, id: &str, directory: &Path) {
    db.execute(
        "insert into session (id, slug, directory, title, time_created, time_updated) values (?1, ?2, ?3, ?4, 1000, 2000)",
        (id, "happy-nebula", directory.to_str().unwrap(), "Fix the login"),
    )
    .unwrap();
}

fn add_message(db: &Connection, session: &str, id: &str, data: &Value, parts: &[Value]) {
    db.execute(
        "insert into message (id, session_id, data) values (?1, ?2, ?3)",
        (id, session, data.to_string()),
    )
    .unwrap();
    for (n, part) in parts.iter().enumerate() {
        db.execute(
            "insert into part (id, message_id, session_id, data) values (?1, ?2, ?3, ?4)",
            (format!("prt_{id}_{n}"), id, session, part.to_string()),
        )
        .unwrap();
    }
}

fn user(text: &str) -> (Value, Vec<Value>) {
    (
        json!({"role": "user", "time": {"created": 1000}}),
        vec![
            json!({"type": "text", "text": "put there by a program", "synthetic": true}),
            json!({"type": "text", "text": text}),
        ],
    )
}

const TREE_A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const TREE_B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// A turn that was killed while its tool ran.
fn killed(db: &Connection, session: &str) {
    let (data, parts) = user("fix it\u{1b}[31m please");
    add_message(db, session, "msg_1", &data, &parts);
    add_message(
        db,
        session,
        "msg_2",
        &json!({"role": "assistant", "parentID": "msg_1", "time": {"created": 1100, "completed": 1200}, "finish": "tool-calls"}),
        &[
            json!({"type": "step-start", "snapshot": TREE_A}),
            json!({"type": "tool", "tool": "write", "state": {"status": "completed", "input": {"filePath": "a"}}}),
            json!({"type": "step-finish", "snapshot": TREE_B}),
        ],
    );
    add_message(
        db,
        session,
        "msg_3",
        &json!({"role": "assistant", "parentID": "msg_1", "time": {"created": 1300}}),
        &[json!({"type": "tool", "tool": "bash", "state": {
            "status": "running", "input": {"command": "make\u{1b}]0;x\u{7} deploy"}, "time": {"start": 1400}}})],
    );
}

#[test]
fn a_killed_turn_is_interrupted_and_crashed() {
    let home = Home::new();
    let db = home.database();
    add_session(&db, "ses_1", &home.root());
    killed(&db, "ses_1");
    db.execute("insert into todo values ('ses_1', 'second', 'pending', 'high', 1), ('ses_1', 'first', 'completed', 'high', 0)", [])
        .unwrap();
    drop(db);
    let before = home.files();
    let session = home.only();
    assert_eq!(home.files(), before, "looking is not writing");
    assert_eq!(session.title.as_deref(), Some("Fix the login"));
    assert_eq!(session.status.as_deref(), Some("interrupted"));
    assert!(
        matches!(session.liveness, Liveness::Crashed { .. }),
        "{:?}",
        session.liveness
    );
    let interruption = session.interruption.unwrap();
    assert!(
        interruption.proof.contains("bash"),
        "{}",
        interruption.proof
    );
    assert_eq!(session.last_prompt.as_deref(), Some("fix it please"));
    let [effect] = session.open_effects.as_slice() else {
        panic!("one open call: {:?}", session.open_effects)
    };
    assert_eq!(
        (effect.tool.as_str(), effect.argument.as_str()),
        ("bash", "make deploy")
    );
    assert_eq!(effect.at, Some(Time::from_millis(1400)));
    assert_eq!(session.snapshot_tree.as_deref(), Some(TREE_B));
    assert_eq!(session.messages, Some(3));
    let plan: Vec<_> = session
        .plan
        .iter()
        .map(|item| (item.text.as_str(), item.done))
        .collect();
    assert_eq!(plan, [("first", true), ("second", false)]);
}

#[test]
fn how_a_session_ended_is_told_apart() {
    let assistant = |more: Value| {
        let mut data = json!({"role": "assistant", "time": {"created": 1100, "completed": 1200}});
        for (key, value) in more.as_object().unwrap() {
            data[key] = value.clone();
        }
        data
    };
    for (last, word, reason) in [
        (assistant(json!({"finish": "stop"})), "finished", None),
        (
            assistant(json!({"finish": "tool-calls"})),
            "interrupted",
            Some(InterruptionReason::Unknown),
        ),
        (
            assistant(json!({"finish": "length"})),
            "cut",
            Some(InterruptionReason::ContextFull),
        ),
        (
            assistant(json!({"error": {"name": "MessageAbortedError"}})),
            "aborted",
            Some(InterruptionReason::Cancelled),
        ),
        (
            assistant(json!({"error": {"name": "APIError", "data": {"message": "quota"}}})),
            "failed",
            Some(InterruptionReason::Error),
        ),
        (
            assistant(
                json!({"error": {"name": "APIError", "data": {"message": "slow down", "statusCode": 429}}}),
            ),
            "failed",
            Some(InterruptionReason::UsageLimit),
        ),
        (
            json!({"role": "user", "time": {"created": 5}}),
            "unanswered",
            Some(InterruptionReason::Unknown),
        ),
        (
            json!({"role": "assistant", "time": {"created": 1}}),
            "interrupted",
            Some(InterruptionReason::Unknown),
        ),
    ] {
        let home = Home::new();
        let db = home.database();
        add_session(&db, "ses_1", &home.root());
        let (data, parts) = user("go");
        add_message(&db, "ses_1", "msg_1", &data, &parts);
        add_message(&db, "ses_1", "msg_2", &last, &[]);
        drop(db);
        let session = home.only();
        assert_eq!(session.status.as_deref(), Some(word), "{last}");
        assert_eq!(
            session.interruption.map(|found| found.reason),
            reason,
            "{last}"
        );
    }
}

#[test]
fn a_finished_session_with_open_todos_is_unfinished() {
    let home = Home::new();
    let db = home.database();
    add_session(&db, "ses_1", &home.root());
    let done =
        json!({"role": "assistant", "time": {"created": 1, "completed": 2}, "finish": "stop"});
    add_message(&db, "ses_1", "msg_1", &done, &[]);
    db.execute(
        "insert into todo values ('ses_1', 'x', 'in_progress', 'high', 0)",
        [],
    )
    .unwrap();
    drop(db);
    let session = home.only();
    assert!(session.interruption.unwrap().proof.contains("1 of 1"));
    assert!(matches!(session.liveness, Liveness::Ended { .. }));
}

#[test]
fn what_an_undo_hides_is_not_the_end() {
    let home = Home::new();
    let db = home.database();
    add_session(&db, "ses_1", &home.root());
    let done =
        json!({"role": "assistant", "time": {"created": 1, "completed": 2}, "finish": "stop"});
    add_message(&db, "ses_1", "msg_1", &done, &[]);
    add_message(&db, "ses_1", "msg_2", &json!({"role": "user"}), &[]);
    db.execute(
        "update session set revert = '{\"messageID\":\"msg_2\"}'",
        [],
    )
    .unwrap();
    drop(db);
    assert_eq!(home.only().status.as_deref(), Some("finished"));
}

#[test]
fn sub_agents_archived_and_foreign_sessions_are_no_candidates() {
    let home = Home::new();
    let db = home.database();
    let root = home.root();
    add_session(&db, "ses_1", &root.join("below"));
    add_session(&db, "ses_2", &root);
    add_session(&db, "ses_3", &root);
    add_session(&db, "ses_4", &root.with_file_name("repo-other"));
    db.execute(
        "update session set parent_id = 'ses_1' where id = 'ses_2'",
        [],
    )
    .unwrap();
    db.execute(
        "update session set time_archived = 5 where id = 'ses_3'",
        [],
    )
    .unwrap();
    drop(db);
    assert_eq!(home.only().session.id.as_str(), "ses_1");
    // By name any of them can be shown.
    for (id, found) in [
        ("ses_2", true),
        ("ses_3", true),
        ("ses_9", false),
        ("ses_", false),
        ("", false),
    ] {
        let shown = super::session(&home.env(), id, 5, &FixedClock(Time::from_millis(0)));
        assert_eq!(shown.is_ok(), found, "{id}");
    }
}

#[test]
fn a_live_owner_is_named_and_one_that_began_later_is_not_the_sessions() {
    let home = Home::new();
    let db = home.database();
    let root = home.root();
    add_session(&db, "ses_1", &root);
    killed(&db, "ses_1");
    drop(db);
    // A process of its own that has the database open, working in the folder.
    let script = "import sqlite3,sys\nc=sqlite3.connect(sys.argv[1])\nc.execute('select count(*) from session').fetchall()\nprint('open',flush=True)\nsys.stdin.read()";
    let Ok(mut child) = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(home.data().join("opencode.db"))
        .current_dir(&root)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
    else {
        eprintln!("skipped: no python3");
        return;
    };
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    // Written long before that process began: it cannot be the one that ran the turn.
    let Liveness::Crashed { proof } = home.only().liveness else {
        panic!("the turn is dead")
    };
    assert!(proof.contains("began after"), "{proof}");
    // Whatever was written meanwhile: the turn began before that process did.
    let now = 1_900_000_000_000_i64;
    let db = Connection::open(home.data().join("opencode.db")).unwrap();
    db.execute("update session set time_updated = ?1", [now])
        .unwrap();
    assert!(matches!(home.only().liveness, Liveness::Crashed { .. }));
    // A turn that began while it runs.
    let prompt = json!({"role": "user", "time": {"created": now}});
    db.execute(
        "update message set data = ?1 where id = 'msg_1'",
        [prompt.to_string()],
    )
    .unwrap();
    drop(db);
    let session = home.only();
    let Liveness::Live { proof } = &session.liveness else {
        panic!("it is alive: {:?}", session.liveness)
    };
    assert!(proof.contains(&child.id().to_string()), "{proof}");
    assert_eq!(session.process.map(|process| process.pid), Some(child.id()));
    assert_eq!(session.open_effects, Vec::new(), "what runs is not open");
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(matches!(home.only().liveness, Liveness::Crashed { .. }));
}

#[test]
fn damaged_and_unknown_databases_are_issues() {
    let home = Home::new();
    std::fs::create_dir_all(home.data().join("opencode.db")).unwrap();
    takeup_core::files::write_atomic(
        &home.data().join("opencode-dev.db"),
        b"no database at all, but long enough",
        0o600,
    )
    .unwrap();
    let db = Connection::open(home.data().join("opencode-next.db")).unwrap();
    db.execute_batch("create table session (id text)").unwrap();
    drop(db);
    let mut kinds: Vec<_> = home
        .sessions()
        .issues
        .iter()
        .map(|issue| issue.kind)
        .collect();
    kinds.sort();
    assert_eq!(
        kinds,
        [
            IssueKind::Corrupt,
            IssueKind::NotAFile,
            IssueKind::UnknownVersion
        ]
    );
}

#[test]
fn the_trees_of_earlier_versions_are_read() {
    let home = Home::new();
    let root = home.root();
    let put = |path: &str, value: &Value| {
        let path = home.data().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        takeup_core::files::write_atomic(&path, value.to_string().as_bytes(), 0o600).unwrap();
    };
    let info = |id: &str| json!({"id": id, "directory": root, "title": "Old", "time": {"created": 1, "updated": 9}});
    let running = json!({"type": "tool", "tool": "bash", "state": {"status": "running", "input": {"command": "make"}}});
    put("storage/session/global/ses_1.json", &info("ses_1"));
    put(
        "storage/message/ses_1/msg_1.json",
        &json!({"role": "assistant", "time": {"created": 1}}),
    );
    put("storage/part/msg_1/prt_1.json", &running);
    put(
        "storage/todo/ses_1.json",
        &json!([{"content": "t", "status": "pending"}]),
    );
    put(
        "project/slug/storage/session/info/ses_2.json",
        &info("ses_2"),
    );
    put(
        "project/slug/storage/session/message/ses_2/msg_1.json",
        &json!({"role": "assistant", "time": {"created": 1}}),
    );
    put(
        "project/slug/storage/session/part/ses_2/msg_1/prt_1.json",
        &running,
    );
    // Names that lead elsewhere, and damage.
    put("storage/session/global/...json", &info("evil"));
    put("storage/session/global/ses_3.json", &json!([]));
    let found = home.sessions();
    let damaged: Vec<_> = found
        .issues
        .iter()
        .map(|issue| issue.path.file_name())
        .collect();
    assert_eq!(damaged, [Some("ses_3.json".as_ref())]);
    let ids: Vec<_> = found
        .items
        .iter()
        .map(|session| session.session.id.as_str())
        .collect();
    assert_eq!(ids, ["ses_2", "ses_1"]);
    for session in &found.items {
        assert_eq!(session.status.as_deref(), Some("interrupted"));
        assert_eq!(session.open_effects.len(), 1);
        assert!(matches!(session.liveness, Liveness::Unknown { .. }));
    }
    assert_eq!(found.items[1].plan.len(), 1);
    // What a database has is not read twice.
    let db = home.database();
    add_session(&db, "ses_1", &root);
    drop(db);
    let found = home.sessions();
    assert_eq!(found.items.len(), 2);
    assert!(
        found
            .items
            .iter()
            .any(|session| session.title.as_deref() == Some("Fix the login"))
    );
}

#[test]
fn secrets_are_masked_wherever_a_session_is_shown() {
    let home = Home::new();
    let db = home.database();
    add_session(&db, "ses_1", &home.root());
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let (data, parts) = user(&format!("use {token}"));
    add_message(&db, "ses_1", "msg_1", &data, &parts);
    let running = json!({"type": "tool", "tool": "bash", "state": {
        "status": "running", "input": {"command": format!("curl -H 'Authorization: Bearer {token}' x")}}});
    add_message(
        &db,
        "ses_1",
        "msg_2",
        &json!({"role": "assistant", "time": {"created": 1}}),
        &[running],
    );
    db.execute(
        "insert into todo values ('ses_1', ?1, 'pending', 'high', 0)",
        [&token],
    )
    .unwrap();
    db.execute("update session set title = ?1", [&token])
        .unwrap();
    drop(db);
    let session = home.only();
    assert_eq!((session.plan.len(), session.open_effects.len()), (1, 1));
    let shown = super::session(&home.env(), "ses_1", 5, &FixedClock(Time::from_millis(0))).unwrap();
    for text in [format!("{session:?}"), format!("{shown:?}")] {
        assert!(!text.contains(&token), "{text}");
    }
}

#[test]
fn turns_are_shown_without_control_characters() {
    let home = Home::new();
    let db = home.database();
    add_session(&db, "ses_1", &home.root());
    killed(&db, "ses_1");
    drop(db);
    let shown = super::session(
        &home.env(),
        "happy-nebula",
        2,
        &FixedClock(Time::from_millis(0)),
    )
    .unwrap();
    let turns: Vec<_> = shown.turns.iter().map(|turn| turn.text.as_str()).collect();
    assert_eq!(turns, ["[write completed]", "[bash running]"]);
    let shown =
        super::session(&home.env(), "ses_1", 10, &FixedClock(Time::from_millis(0))).unwrap();
    assert_eq!(shown.turns.len(), 3);
    assert!(shown.turns.iter().all(|turn| !turn.text.contains('\u{1b}')));
}
