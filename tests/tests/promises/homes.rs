//! Homes of all agents that are known, as they are left by a crash.
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};

/// Words that stand in the agents' stores.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    /// What a user asked for.
    pub(crate) prompt: String,
    /// A command that was running.
    pub(crate) command: String,
    /// The title of a session.
    pub(crate) title: String,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            prompt: "fix the parser".to_owned(),
            command: "make deploy".to_owned(),
            title: "The parser".to_owned(),
        }
    }
}

/// Fills a home with the stores of every agent; their sessions worked in `repo`. `temporary` is the folder for temporary files.
pub(crate) fn fill(home: &Path, repo: &Path, temporary: &Path, words: &Words) {
    jcode(home, repo, temporary);
    opencode(home, repo, temporary, words);
    opencode_sidecar(repo, words);
    openclaw(home, repo, words);
    settings(home);
}

fn put(path: PathBuf, bytes: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn copy(from: &Path, to: &Path, change: &dyn Fn(Vec<u8>) -> Vec<u8>) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to, change);
        } else {
            std::fs::write(to, change(std::fs::read(entry.path()).unwrap())).unwrap();
        }
    }
}

/// A home that the real jcode wrote, its sessions moved into `repo`.
fn jcode(home: &Path, repo: &Path, temporary: &Path) {
    let fixture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/jcode-home");
    let moved = |bytes: Vec<u8>| match String::from_utf8(bytes) {
        Ok(text) => text
            .replace(
                "\"working_dir\":\"/repo\"",
                &format!("\"working_dir\":\"{}\"", repo.display()),
            )
            .into_bytes(),
        Err(error) => error.into_bytes(),
    };
    copy(&fixture.join("home"), &home.join(".jcode"), &moved);
    copy(&fixture.join("tmpdir"), temporary, &moved);
    put(home.join(".jcode/auth.json"), "{\"never\": \"read\"}");
}

/// OpenCode's database with its write-ahead log beside it, as a killed process leaves it.
fn opencode(home: &Path, repo: &Path, temporary: &Path, words: &Words) {
    let data = home.join(".local/share/opencode");
    std::fs::create_dir_all(&data).unwrap();
    let made = temporary.join("opencode-made.db");
    let db = Connection::open(&made).unwrap();
    db.query_row("pragma journal_mode = wal", [], |_| Ok(()))
        .unwrap();
    db.execute_batch(
        "create table session (id text primary key, project_id text, parent_id text, slug text, directory text,
           path text, title text, version text, revert text, permission text, time_created integer,
           time_updated integer, time_compacting integer, time_archived integer);
         create table message (id text primary key, session_id text, time_created integer, time_updated integer,
           data text);
         create table part (id text primary key, message_id text, session_id text, time_created integer,
           time_updated integer, data text);
         create table todo (session_id text, content text, status text, priority text, position integer);",
    )
    .unwrap();
    db.execute(
        "insert into session (id, slug, directory, title, time_created, time_updated) values ('ses_1', 'happy-nebula', ?1, ?2, 1000, 2000)",
        (repo.to_str().unwrap(), &words.title),
    )
    .unwrap();
    let message = |id: &str, data: Value, parts: &[Value]| {
        db.execute(
            "insert into message (id, session_id, data) values (?1, 'ses_1', ?2)",
            (id, data.to_string()),
        )
        .unwrap();
        for (number, part) in parts.iter().enumerate() {
            db.execute(
                "insert into part (id, message_id, session_id, data) values (?1, ?2, 'ses_1', ?3)",
                (format!("prt_{id}_{number}"), id, part.to_string()),
            )
            .unwrap();
        }
    };
    message(
        "msg_1",
        json!({"role": "user", "time": {"created": 1000}}),
        &[json!({"type": "text", "text": words.prompt})],
    );
    message(
        "msg_2",
        json!({"role": "assistant", "parentID": "msg_1", "time": {"created": 1300}}),
        &[
            json!({"type": "text", "text": format!("I go on: {}", words.prompt)}),
            json!({"type": "tool", "tool": "bash", "state": {"status": "running",
                "input": {"command": words.command}, "time": {"start": 1400}}}),
        ],
    );
    db.execute(
        "insert into todo values ('ses_1', ?1, 'pending', 'high', 0)",
        [&words.prompt],
    )
    .unwrap();
    for ending in ["", "-wal"] {
        let from = temporary.join(format!("opencode-made.db{ending}"));
        std::fs::copy(from, data.join(format!("opencode.db{ending}"))).unwrap();
    }
    drop(db);
    for ending in ["", "-wal", "-shm"] {
        drop(std::fs::remove_file(
            temporary.join(format!("opencode-made.db{ending}")),
        ));
    }
    put(data.join("auth.json"), "{\"never\": \"read\"}");
    put(
        home.join(".config/opencode/opencode.jsonc"),
        "{\n  // mine\n  \"theme\": \"system\",\n}\n",
    );
}

/// A record of the OpenCode++ plugin in the work tree.
fn opencode_sidecar(repo: &Path, words: &Words) {
    let record = json!({
        "schemaVersion": "opencode-plusplus.task-resume.v1",
        "sessionId": "ses_1",
        "repositoryRoot": repo,
        "taskId": "the-parser",
        "title": words.title,
        "baseWorkingTreeFingerprint": "0".repeat(64),
        "latestWorkingTreeFingerprint": "0".repeat(64),
        "status": "dirty",
        "updatedAt": "2026-03-01T10:00:00.000Z",
        "revision": 1,
    });
    put(
        repo.join(".agent-context/sidecar/task-identity-the-parser-ses_1.json"),
        serde_json::to_vec_pretty(&record).unwrap(),
    );
}

/// Words in every field of these stores that is somebody's own: how sessions of jcode ended, and a question of OpenCode++.
pub(crate) fn told(home: &Path, repo: &Path, words: &str) {
    let ends = [
        ("fails", json!({"Error": {"message": words}})),
        ("dies", json!({"Crashed": {"message": words}})),
        ("odd", json!({words: {}})),
    ];
    for (name, status) in ends {
        let id = format!("session_{name}_1777639200000_00000000000000aa");
        let at = "2026-05-01T10:00:00Z";
        let session = json!({
            "id": id, "created_at": at, "updated_at": at, "working_dir": repo, "title": words, "short_name": words,
            "status": status, "messages": [{"id": "m1", "role": "user", "content": [{"type": "text", "text": words}]}],
        });
        put(
            home.join(format!(".jcode/sessions/{id}.json")),
            session.to_string(),
        );
        let todos = json!([{"content": words, "status": words, "priority": "high", "id": "1"}]);
        put(
            home.join(format!(".jcode/todos/{id}.json")),
            todos.to_string(),
        );
    }
    let question = json!({
        "schemaVersion": "opencode-plusplus.human-review.v1",
        "revision": 1,
        "requestId": "human-review-1",
        "taskId": "the-parser",
        "sessionId": "ses_1",
        "reasonCode": words,
        "title": words,
        "explanation": words,
        "requiredUserAction": words,
        "suggestedCommands": [words],
        "affectedFiles": [words],
        "currentBoundary": [words],
        "requestedBoundary": [words],
        "resumeCondition": words,
        "status": "pending",
        "createdAt": "2026-03-01T10:00:00.000Z",
        "updatedAt": "2026-03-01T10:00:00.000Z",
    });
    let sidecar = repo.join(".agent-context/sidecar");
    put(
        sidecar.join("human-review-the-parser-ses-1.json"),
        question.to_string(),
    );
    let manifest = json!({
        "id": "the-parser", "task": words, "allowedEditGlobs": [words], "avoidEditGlobs": [words], "requiredCommands": [words],
    });
    put(
        repo.join(".agent-context/runs/the-parser/run.json"),
        manifest.to_string(),
    );
}

/// OpenClaw's stores: the databases of today, and the files of before.
fn openclaw(home: &Path, repo: &Path, words: &Words) {
    let state = home.join(".openclaw");
    put(
        state.join("openclaw.json"),
        "{\n  // mine\n  agents: { defaults: {} },\n}\n",
    );
    put(
        state.join("credentials/never.json"),
        "{\"never\": \"read\"}",
    );
    std::fs::create_dir_all(state.join("agents/main/agent")).unwrap();
    std::fs::create_dir_all(state.join("state")).unwrap();
    let events = [
        json!({"type": "session", "version": 4, "id": "s", "timestamp": "1970-01-01T00:00:01.000Z", "cwd": repo}),
        json!({"type": "message", "id": "e0", "parentId": null, "timestamp": "1970-01-01T00:00:02.000Z",
            "message": {"role": "user", "content": words.prompt}}),
        json!({"type": "message", "id": "e1", "parentId": "e0", "timestamp": "1970-01-01T00:00:02.000Z",
            "message": {"role": "assistant", "stopReason": "toolUse", "content": [{"type": "toolCall", "id": "c1",
                "name": "exec", "arguments": {"command": words.command}}]}}),
    ];
    let db = Connection::open(state.join("agents/main/agent/openclaw-agent.sqlite")).unwrap();
    db.execute_batch(
        "pragma user_version = 23;
         create table session_nodes(session_key text primary key, current_session_id text, entry_json text,
           entry_valid integer, updated_at integer, status text, created_at integer, label text,
           display_name text, archived_at integer, parent_session_key text, spawned_by text);
         create table transcript_events(session_id text, seq integer, event_json text, created_at integer,
           event_zstd blob, event_utf8_bytes integer, primary key(session_id, seq));",
    )
    .unwrap();
    db.execute(
        "insert into session_nodes(session_key, current_session_id, entry_json, entry_valid, updated_at, status,
           created_at, label) values ('agent:main:main', 'id-main', '{\"sessionId\":\"id-main\"}', 1, 2000, 'running', 1000, ?1)",
        [&words.title],
    )
    .unwrap();
    for (seq, event) in (0_i64..).zip(&events) {
        db.execute(
            "insert into transcript_events(session_id, seq, event_json) values ('id-main', ?1, ?2)",
            (seq, event.to_string()),
        )
        .unwrap();
    }
    let shared = Connection::open(state.join("state/openclaw.sqlite")).unwrap();
    shared
        .execute_batch(
            "create table schema_meta(meta_key text, app_version text);
             insert into schema_meta values ('primary', '2026.9.6');
             create table agent_databases(agent_id text, path text);
             create table state_leases(scope text, payload_json text);
             create table gateway_boot_lifecycle(boot_id text, pid integer, started_at_ms integer,
               completed_at_ms integer);
             create table task_runs(task_id text, task_kind text, requester_session_key text,
               child_session_key text, owner_key text, label text, task text, status text, created_at integer,
               started_at integer, execution_owner_pid integer, execution_owner_start_identity integer);
             create table worktrees(id text, path text, removed_at integer, snapshot_ref text);",
        )
        .unwrap();
    let index = json!({"agent:old:main": {"sessionId": "s1", "updatedAt": 2000, "sessionStartedAt": 1000, "status": "running"}});
    put(
        state.join("agents/old/sessions/sessions.json"),
        index.to_string(),
    );
    let lines = events.iter().fold(String::new(), |text, event| {
        text + &event.to_string() + "\n"
    });
    put(state.join("agents/old/sessions/s1.jsonl"), lines);
}

/// Settings of the agents that have hooks and MCP entries in files of theirs.
pub(crate) fn settings(home: &Path) {
    put(
        home.join(".claude/settings.json"),
        "{\n  \"model\": \"opus\",\n  \"hooks\": { \"Stop\": [ { \"hooks\": [ { \"type\": \"command\", \"command\": \"true\" } ] } ] }\n}\n",
    );
    put(home.join(".claude.json"), "{\"numStartups\": 7}\n");
    put(
        home.join(".claude/.credentials.json"),
        "{\"never\": \"read\"}",
    );
    put(
        home.join(".codex/config.toml"),
        "# mine\nmodel = \"m\"\n\n[features]\nx = true\n",
    );
    put(home.join(".codex/auth.json"), "{\"never\": \"read\"}");
    put(
        home.join(".gemini/settings.json"),
        "{\n\t\"theme\": \"Default\"\n}",
    );
    put(home.join(".copilot/config.json"), "{ }\n");
    put(
        home.join(".copilot/mcp-config.json"),
        "{\"mcpServers\": {}}",
    );
}
