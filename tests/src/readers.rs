//! Everything that reads bytes of others, each behind one function that takes bytes: for the fuzz targets in `fuzz/`, and for
//! the bounded runs of the same in the tests. A reader may say whatever it likes; it must not panic, and must end.
use std::path::{Path, PathBuf};

use serde_json::json;
use takeup_core::agent::{Agent, SessionQuery};
use takeup_core::background::Store;
use takeup_core::env::Env;
use takeup_core::fingerprint::{Method, Options, look};
use takeup_core::ids::TaskId;
use takeup_core::ledger::Ledger;
use takeup_core::process::system;
use takeup_core::repository::Place;

/// A reader by its name.
pub type Reader = (&'static str, fn(&[u8]));

/// Every reader.
pub const READERS: &[Reader] = &[
    ("journal", journal),
    ("sealed_journal", sealed_journal),
    ("snapshot", snapshot),
    ("archive", archive),
    ("sidecar", sidecar),
    ("jcode_snapshot", jcode_snapshot),
    ("jcode_journal", jcode_journal),
    ("openclaw_jsonl", openclaw_jsonl),
    ("hook_payload", hook_payload),
    ("json_rpc", json_rpc),
    ("status_file", status_file),
    ("git_index", git_index),
    ("redact", redact),
];

/// A folder of its own, with what a reader needs around its bytes.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        // In memory where that is possible: a fuzzer writes many thousands of these.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        Self(folder.expect("a temporary folder can be made"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_path_buf()
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.0.path().join(name);
        let folder = path.parent().expect("it has a folder");
        takeup_core::files::make_private_folder(folder).expect("a folder can be made");
        std::fs::write(path, bytes).expect("a file can be written");
    }

    fn env(&self) -> Env {
        Env::of(
            [("HOME", self.path().join("home"))],
            self.path().join("repo"),
        )
    }

    /// A repository that git would take for one.
    fn repository(&self) -> Place {
        let root = self.path().join("repo");
        self.put("repo/.git/HEAD", b"ref: refs/heads/main\n");
        self.put(
            "repo/.git/config",
            b"[core]\n\trepositoryformatversion = 0\n",
        );
        for name in ["objects/x", "refs/heads/.x"] {
            self.put(&format!("repo/.git/{name}"), b"");
        }
        Place {
            git_dir: root.join(".git"),
            common_dir: root.join(".git"),
            root,
        }
    }
}

/// The journal of the ledger.
pub fn journal(bytes: &[u8]) {
    let desk = Desk::new();
    desk.put("takeup/journal.jsonl", bytes);
    drop(Ledger::at(desk.path().join("takeup")).read());
}

/// The journal again, every line with a sum that is right: what stands behind the sum is reached.
pub fn sealed_journal(bytes: &[u8]) {
    let mut sealed = Vec::new();
    let mut before = "0".repeat(64);
    for line in bytes.split(|byte| *byte == b'\n') {
        let mut body = line.to_vec();
        body.extend_from_slice(format!(",\"prev\":\"{before}\"").as_bytes());
        before = takeup_opencode::sidecar::sha256_hex(&body);
        sealed.extend_from_slice(&body);
        sealed.extend_from_slice(format!(",\"sum\":\"{before}\"}}\n").as_bytes());
    }
    journal(&sealed);
}

/// The snapshot of the ledger; its sum is right.
pub fn snapshot(bytes: &[u8]) {
    let desk = Desk::new();
    let sum = takeup_opencode::sidecar::sha256_hex(bytes);
    let sealed = [bytes, format!(",\"sum\":\"{sum}\"}}\n").as_bytes()].concat();
    desk.put("takeup/state.json", &sealed);
    drop(Ledger::at(desk.path().join("takeup")).read());
    desk.put("takeup/state.json", bytes);
    drop(Ledger::at(desk.path().join("takeup")).read());
}

/// A task in the archive; its sum is right.
pub fn archive(bytes: &[u8]) {
    let desk = Desk::new();
    let sum = takeup_opencode::sidecar::sha256_hex(bytes);
    let sealed = [bytes, format!(",\"sum\":\"{sum}\"}}\n").as_bytes()].concat();
    desk.put("takeup/archive/done.json", &sealed);
    let ledger = Ledger::at(desk.path().join("takeup"));
    drop(ledger.read_archive(&TaskId::new("done").expect("it is a slug")));
    drop(ledger.read_whole_archive());
}

/// A record of the OpenCode++ plugin.
pub fn sidecar(bytes: &[u8]) {
    use takeup_opencode::sidecar::{Identity, Json};
    if let Ok(Json::Object(object)) = Json::parse(bytes) {
        drop(Identity::check(&object, Path::new("/repo")));
    }
    if let Ok(value) = Json::parse(bytes) {
        // What was read can be written, and means the same. (A number beyond all bounds is written as null.)
        let text = value.pretty();
        let again = Json::parse(text.as_bytes()).expect("what we write can be read");
        assert_eq!(again.pretty(), text);
    }
    let desk = Desk::new();
    let place = desk.repository();
    for name in [
        "task-identity-a-b.json",
        "plugin-session.json",
        "human-review-a.json",
    ] {
        desk.put(&format!("repo/.agent-context/sidecar/{name}"), bytes);
    }
    drop(takeup_opencode::OpenCode::new().tasks(&desk.env(), &place));
}

/// Lists and shows every session of an agent.
fn sessions(agent: &dyn Agent, desk: &Desk) {
    let query = SessionQuery {
        root: None,
        limit: 0,
        ..SessionQuery::default()
    };
    let found = agent.sessions(&desk.env(), &query);
    for session in found.items {
        drop(agent.session(&desk.env(), session.session.id.as_str(), 3));
    }
}

/// A snapshot of a session of jcode.
pub fn jcode_snapshot(bytes: &[u8]) {
    let desk = Desk::new();
    desk.put("home/.jcode/sessions/session_fox_1777629600000.json", bytes);
    sessions(&takeup_jcode::Jcode::new(), &desk);
}

/// A journal of a session of jcode, beside a sound snapshot.
pub fn jcode_journal(bytes: &[u8]) {
    let desk = Desk::new();
    let snapshot = json!({
        "id": "session_fox_1777629600000", "parent_id": null, "title": null, "created_at": "2026-05-01T10:00:00Z",
        "updated_at": "2026-05-01T10:00:00Z", "messages": [], "working_dir": "/repo", "status": "Active",
    });
    desk.put(
        "home/.jcode/sessions/session_fox_1777629600000.json",
        snapshot.to_string().as_bytes(),
    );
    desk.put(
        "home/.jcode/sessions/session_fox_1777629600000.journal.jsonl",
        bytes,
    );
    sessions(&takeup_jcode::Jcode::new(), &desk);
}

/// A transcript of OpenClaw.
pub fn openclaw_jsonl(bytes: &[u8]) {
    let desk = Desk::new();
    let index =
        json!({"agent:main:main": {"sessionId": "s1", "updatedAt": 2000, "status": "running"}});
    desk.put(
        "home/.openclaw/agents/main/sessions/sessions.json",
        index.to_string().as_bytes(),
    );
    desk.put("home/.openclaw/agents/main/sessions/s1.jsonl", bytes);
    sessions(&takeup_openclaw::OpenClaw::new(), &desk);
    desk.put("home/.openclaw/agents/main/sessions/sessions.json", bytes);
    sessions(&takeup_openclaw::OpenClaw::new(), &desk);
}

/// What the hooks of every agent hand over.
pub fn hook_payload(bytes: &[u8]) {
    let env = Env::of([("HOME", "/nowhere")], "/nowhere");
    let mut agents: Vec<Box<dyn Agent>> = vec![
        Box::new(takeup_opencode::OpenCode::new()),
        Box::new(takeup_jcode::Jcode::new()),
        Box::new(takeup_openclaw::OpenClaw::new()),
    ];
    for agent in takeup_cli_agents::all() {
        agents.push(Box::new(agent));
    }
    for agent in agents {
        for event in [
            "SessionStart",
            "UserPromptSubmit",
            "Stop",
            "errorOccurred",
            "session-start",
            "turn-start",
            "turn-end",
            "tool-start",
            "session_start",
            "turn_end",
            "pre_tool",
        ] {
            drop(agent.hook(&env, event, bytes));
        }
    }
}

/// Messages of an MCP client.
pub fn json_rpc(bytes: &[u8]) {
    let desk = Desk::new();
    desk.repository();
    git_takeup::answer_client(bytes, desk.env());
}

/// The status file and the events of a background task.
pub fn status_file(bytes: &[u8]) {
    const ID: &str = "01m8m052e2-quick-meadow";
    let desk = Desk::new();
    desk.put(&format!("tasks/{ID}.status.json"), bytes);
    desk.put(&format!("tasks/{ID}.events.jsonl"), bytes);
    desk.put(&format!("tasks/{ID}.output"), b"one\ntwo\n");
    desk.put(&format!("tasks/{ID}.output.index"), bytes);
    let store = Store::at(desk.path().join("tasks"));
    drop(store.look_all(&system()));
    for id in store.ids().unwrap_or_default() {
        drop(store.events(&id, 10));
        drop(takeup_core::background::look(&store, &id, &system()));
    }
    drop(store.find("quick"));
}

/// Git's index.
pub fn git_index(bytes: &[u8]) {
    let desk = Desk::new();
    let place = desk.repository();
    desk.put("repo/.git/index", bytes);
    desk.put("repo/a.txt", b"one\n");
    let env = desk.env();
    // Where the engine gives up, git is asked: what git makes of an index is not asked here.
    let options = Options {
        method: Some(Method::Engine),
        ..Options::reading_only(&env)
    };
    drop(look(&place, &options));
}

/// The masks. No panic, and what was masked is masked: the same again changes nothing.
pub fn redact(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let once = takeup_core::redact::text(&text).text;
    drop(takeup_core::redact::text(&once));
    drop(takeup_core::text::clean(&text, 100));
    drop(takeup_core::text::one_line(&text, 100));
}
