//! The stores in SQLite.
use rusqlite::Connection;
use serde_json::{Value, json};
use takeup_core::agent::{Agent as _, AgentError, InterruptionReason, SessionQuery};
use takeup_core::files::write_atomic;
use takeup_core::issue::IssueKind;
use takeup_core::process::Liveness;
use takeup_sqlite::Owner as Lock;

use crate::store::owner::{Holder, Turn, liveness};
use crate::store::shared::{Owner, Run, Shared};

use super::world::{World, calls, id_of, result, says, transcript, user};

#[test]
fn secrets_in_calls_and_prompts_are_masked() {
    let world = World::new();
    let database = world.database("main");
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let prompt = format!("push with {token}");
    let command = format!("curl -H 'Authorization: token {token}' https://u:hunter22@h/");
    let events = transcript(&world.repo(), &[user(&prompt), calls("c1", &command)]);
    database.session("agent:main:main", None, &json!({}), &events);
    drop(database);
    let detail = world
        .agent()
        .session(&world.env(), "agent:main:main", 5)
        .unwrap();
    let all = format!("{detail:?}");
    assert!(
        !all.contains("a1B2a1B2") && !all.contains("hunter22"),
        "{all}"
    );
    assert!(detail.session.open_effects[0].argument.contains("redacted"));
    assert!(detail.session.title.unwrap().starts_with("push with"));
}

fn dangling(world: &World) -> Vec<Value> {
    transcript(
        &world.repo(),
        &[user("fix the parser"), calls("c1", "cargo test")],
    )
}

#[test]
fn sessions_of_this_place_and_no_others() {
    let world = World::new();
    let database = world.database("main");
    let finished = |folder: &str| {
        let folder = world.folder.path().join(folder);
        transcript(&folder, &[user("hello"), says("done", "stop")])
    };
    let done = Some("done");
    let none = json!({});
    database.session("agent:main:main", done, &none, &finished("repo"));
    database.session("agent:main:deep", done, &none, &finished("repo/src"));
    database.session("agent:main:x/y:z", done, &none, &finished("repo"));
    database.session("agent:main:elsewhere", done, &none, &finished("other"));
    let executes_here = json!({"execCwd": world.repo()});
    database.session("agent:main:exec", done, &executes_here, &finished("other"));
    let executes_there = json!({"execCwd": world.folder.path().join("other")});
    database.session("agent:main:moved", done, &executes_there, &finished("repo"));
    let workspace = json!({"systemPromptReport": {"workspaceDir": world.repo()}});
    database.session("agent:main:empty", None, &workspace, &[]);
    database.session("cron:7", done, &none, &finished("repo"));
    database.session("agent:main:boot:1", done, &none, &finished("repo"));
    database.session("agent:main:old", done, &none, &finished("repo"));
    database.session("agent:main:gone", done, &none, &finished("repo"));
    database
        .db
        .execute_batch(
            "update session_nodes set archived_at = 5 where session_key = 'agent:main:old';
             update session_nodes set entry_valid = -1 where session_key = 'agent:main:gone';",
        )
        .unwrap();
    drop(database);

    let names: Vec<String> = world.healthy().into_keys().collect();
    assert_eq!(
        names,
        [
            "agent:main:deep",
            "agent:main:empty",
            "agent:main:exec",
            "agent:main:main",
            "agent:main:x/y:z",
        ]
    );
}

#[test]
fn how_a_transcript_ends_says_whether_it_is_unfinished() {
    let world = World::new();
    let database = world.database("main");
    let repo = world.repo();
    let add = |name: &str, status: Option<&str>, events: &[Value]| {
        let key = format!("agent:main:{name}");
        database.session(&key, status, &json!({}), &transcript(&repo, events));
    };
    let call = calls("c1", "make");
    add("finished", Some("done"), &[user("a"), says("b", "stop")]);
    add("calling", Some("running"), &[user("a"), call.clone()]);
    add("local", None, &[user("a"), call.clone()]);
    add("failed", Some("failed"), &[user("a"), call.clone()]);
    add(
        "between",
        Some("running"),
        &[user("a"), call.clone(), result("c1")],
    );
    add("asked", None, &[says("b", "stop"), user("and now?")]);
    add("aborted", None, &[user("a"), says("b", "aborted")]);
    add("error", Some("failed"), &[user("a"), says("b", "error")]);
    add("killed", Some("killed"), &[user("a"), call.clone()]);
    let reset = json!({"type": "reset", "reason": "new"});
    add("reset", None, &[user("a"), call.clone(), reset.clone()]);
    add(
        "anew",
        None,
        &[user("a"), call.clone(), reset, user("b"), says("c", "stop")],
    );
    let healed = [
        user("a"),
        call,
        result("c1"),
        user("[System] went on"),
        says("c", "stop"),
    ];
    add("healed", Some("done"), &healed);
    drop(database);

    let sessions = world.healthy();
    let seen: Vec<(&str, Option<InterruptionReason>, usize)> = sessions
        .iter()
        .map(|(name, session)| {
            (
                name.trim_start_matches("agent:main:"),
                session.interruption.as_ref().map(|it| it.reason),
                session.open_effects.len(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("aborted", Some(InterruptionReason::Cancelled), 0),
            ("anew", None, 0),
            ("asked", Some(InterruptionReason::Crash), 0),
            ("between", Some(InterruptionReason::Crash), 0),
            ("calling", Some(InterruptionReason::Crash), 1),
            ("error", Some(InterruptionReason::Error), 0),
            ("failed", Some(InterruptionReason::Crash), 1),
            ("finished", None, 0),
            ("healed", None, 0),
            ("killed", Some(InterruptionReason::Cancelled), 1),
            ("local", Some(InterruptionReason::Crash), 1),
            ("reset", None, 0),
        ]
    );
    let local = &sessions["agent:main:local"];
    assert_eq!(local.open_effects[0].tool, "exec");
    assert_eq!(local.open_effects[0].argument, "make");
    assert_eq!(local.title.as_deref(), Some("a"));
    assert!(matches!(local.liveness, Liveness::Crashed { .. }));
    assert!(matches!(
        sessions["agent:main:finished"].liveness,
        Liveness::Ended { .. }
    ));
}

#[test]
fn only_the_active_branch_counts() {
    let world = World::new();
    let database = world.database("main");
    // The call hangs on a branch that was left: the last message hangs on the first one.
    let mut events = transcript(
        &world.repo(),
        &[
            user("a"),
            calls("c1", "rm -r build"),
            user("other way"),
            says("done", "stop"),
        ],
    );
    events[3]["parentId"] = json!("e0");
    database.session("agent:main:branch", None, &json!({}), &events);
    // A mark that stands last leads back to the open call.
    let mut events = transcript(
        &world.repo(),
        &[
            user("a"),
            calls("c1", "make"),
            user("b"),
            says("done", "stop"),
            json!({"type": "leaf", "targetId": "e1"}),
        ],
    );
    events[3]["parentId"] = json!("e0");
    database.session("agent:main:leaf", None, &json!({}), &events);
    // A circle of parents is damage, and no reason to hang.
    let mut events = transcript(&world.repo(), &[user("a"), says("b", "stop")]);
    events[1]["parentId"] = json!("e1");
    database.session("agent:main:circle", None, &json!({}), &events);
    drop(database);
    let sessions = world.healthy();
    assert_eq!(sessions["agent:main:branch"].interruption, None);
    assert_eq!(sessions["agent:main:leaf"].open_effects.len(), 1);
    assert_eq!(sessions["agent:main:circle"].interruption, None);
}

#[test]
fn names_goals_parents_and_removed_work_trees() {
    let world = World::new();
    let database = world.database("main");
    let events = || transcript(&world.repo(), &[user("hello\nthere"), says("b", "stop")]);
    let goal = json!({"goal": {"objective": "ship\u{1b}[31m it", "status": "usage_limited"},
        "displayName": "x", "parentSessionKey": "agent:main:main"});
    database.session("agent:main:goal", Some("done"), &goal, &events());
    database.session(
        "agent:main:main",
        Some("done"),
        &json!({"displayName": "main"}),
        &events(),
    );
    let worktree = json!({"worktree": {"id": "w1", "repoRoot": world.folder.path().join("other")}});
    database.session("agent:main:tree", Some("done"), &worktree, &events());
    database
        .db
        .execute_batch(
            "update session_nodes set spawned_by = 'agent:main:main' where session_key like '%goal'",
        )
        .unwrap();
    drop(database);
    let shared = world.shared();
    shared
        .execute(
            "insert into worktrees values ('w1', ?1, 5, 'refs/openclaw/snapshots/w1')",
            [world.repo().join("src").to_str().unwrap()],
        )
        .unwrap();
    drop(shared);

    let sessions = world.healthy();
    let goal = &sessions["agent:main:goal"];
    assert_eq!(goal.title.as_deref(), Some("ship it"));
    assert_eq!(
        goal.interruption.as_ref().map(|it| it.reason),
        Some(InterruptionReason::UsageLimit)
    );
    assert_eq!(
        goal.parent
            .as_ref()
            .map(takeup_core::ids::SessionId::as_str),
        Some(id_of("agent:main:main").as_str())
    );
    assert_eq!(sessions["agent:main:main"].title.as_deref(), Some("hello"));
    let tree = &sessions["agent:main:tree"];
    assert_eq!(
        tree.cwd.as_deref(),
        Some(world.repo().join("src").as_path())
    );
    assert!(tree.recovered[0].contains("refs/openclaw/snapshots/w1"));
}

#[test]
fn a_live_owner_is_told_from_a_later_one() {
    let mut world = World::new();
    let me = std::process::id();
    world.table = vec![(me, 500, "node")];
    let database = world.database("main");
    database
        .db
        .pragma_update(None, "journal_mode", "wal")
        .unwrap();
    for name in ["works", "orphan", "background", "idle"] {
        let key = format!("agent:main:{name}");
        let (status, events) = if name == "idle" {
            (
                Some("done"),
                transcript(&world.repo(), &[user("a"), says("b", "stop")]),
            )
        } else {
            (Some("running"), dangling(&world))
        };
        database.session(&key, status, &json!({}), &events);
    }
    let shared = world.shared();
    let lease = json!({"owner": {"pid": me, "host": "h", "startedAt": 500}, "port": 1});
    shared
        .execute(
            "insert into state_leases values ('gateway-owner', ?1)",
            [lease.to_string()],
        )
        .unwrap();
    let run = "insert into task_runs(task_kind, child_session_key, task, status, started_at,
        execution_owner_pid, execution_owner_start_identity) values (?1, ?2, ?3, 'running', 2000, ?4, ?5)";
    let none = None::<String>;
    shared
        .execute(run, (&none, "agent:main:works", "fix", me, 500))
        .unwrap();
    // The same number, another start: a process of before.
    shared
        .execute(run, (&none, "agent:main:orphan", "fix", me, 400))
        .unwrap();
    shared
        .execute(
            run,
            (
                Some("exec"),
                "agent:main:background",
                "npm run dev",
                None::<u32>,
                None::<u32>,
            ),
        )
        .unwrap();
    drop(shared);

    // Nobody else has the database open: what its own process holds does not count as an owner, so all are dead.
    let sessions = world.healthy();
    for name in ["works", "orphan", "background"] {
        let session = &sessions[&format!("agent:main:{name}")];
        assert!(
            matches!(session.liveness, Liveness::Crashed { .. }),
            "{name}"
        );
    }
    let effects = &sessions["agent:main:background"].open_effects;
    assert_eq!(effects.len(), 2);
    assert_eq!(effects[1].argument, "npm run dev");

    // The rule itself, with somebody there.
    let run = |pid: u32, start: u64| Run {
        session_key: String::new(),
        is_exec: false,
        what: String::new(),
        started_at: None,
        owner: Owner {
            pid: Some(pid),
            start: Some(start),
        },
    };
    let holder = Holder::Somebody {
        who: "the gateway".to_owned(),
        process: None,
    };
    let look = |open: bool, run: &Run| {
        let turn = Turn {
            open,
            how: "a call had begun and not ended",
            last: None,
        };
        liveness(turn, &[run], &holder, &world.processes()).0
    };
    assert!(matches!(look(true, &run(me, 500)), Liveness::Live { .. }));
    assert!(matches!(look(false, &run(me, 500)), Liveness::Live { .. }));
    let Liveness::Crashed { proof } = look(true, &run(me, 400)) else {
        panic!("the process that worked on it is over")
    };
    assert!(proof.contains("may go on with it by itself"), "{proof}");
    assert!(matches!(look(false, &run(me, 400)), Liveness::Ended { .. }));
    assert!(matches!(look(true, &run(0, 0)), Liveness::Crashed { .. }));
}

#[test]
fn a_lock_of_a_process_that_is_over_is_nobody_s() {
    let mut world = World::new();
    world.table = vec![(7, 500, "openclaw-gateway")];
    let find = |pid| Holder::find(Lock::Held { pid }, &Shared::default(), &world.processes());
    assert!(matches!(
        find(Some(7)),
        Holder::Somebody {
            process: Some(_),
            ..
        }
    ));
    assert!(matches!(find(Some(8)), Holder::Nobody(_)));
    // Of another pid namespace: it has no number here, and may well live.
    assert!(matches!(find(None), Holder::Somebody { process: None, .. }));
}

#[test]
fn older_and_unknown_schemas() {
    let world = World::new();
    let folder = world.state().join("agents/main/agent");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("openclaw-agent.sqlite");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(
        "create table session_entries(session_key text primary key, session_id text,
           entry_json text, updated_at integer, status text);
         create table transcript_events(session_id text, seq integer, event_json text,
           created_at integer, primary key(session_id, seq));
         insert into session_entries values ('agent:main:main', 's1', '{\"sessionId\":\"s1\"}', 7, 'running');",
    )
    .unwrap();
    for (seq, event) in dangling(&world).iter().enumerate() {
        db.execute(
            "insert into transcript_events values ('s1', ?1, ?2, 0)",
            (i64::try_from(seq).unwrap(), event.to_string()),
        )
        .unwrap();
    }
    drop(db);
    let before = world.content();
    assert_eq!(world.healthy()["agent:main:main"].open_effects.len(), 1);
    assert_eq!(world.content(), before);

    let db = Connection::open(&path).unwrap();
    db.execute_batch("alter table session_entries rename column entry_json to entry_cbor")
        .unwrap();
    drop(db);
    let found = world.here();
    assert!(found.items.is_empty());
    assert_eq!(found.issues.len(), 1);
    assert_eq!(found.issues[0].kind, IssueKind::UnknownVersion);
    assert!(found.issues[0].message.contains("entry_json"));
}

#[test]
fn a_damaged_row_or_agent_hides_no_other() {
    let world = World::new();
    let database = world.database("main");
    database.session("agent:main:good", None, &json!({}), &dangling(&world));
    database.session("agent:main:torn", None, &json!({}), &dangling(&world));
    database.session("agent:main:event", None, &json!({}), &dangling(&world));
    database
        .db
        .execute_batch(
            "update session_nodes set entry_json = '{\"sessionId' where session_key like '%torn';
             update transcript_events set event_json = x'00ff' where seq = 1 and session_id like '%event';
             insert into session_nodes(session_key, current_session_id, entry_json, entry_valid)
               values (x'00', 5, 7, 1);",
        )
        .unwrap();
    drop(database);
    let broken = world.state().join("agents/broken/agent");
    std::fs::create_dir_all(&broken).unwrap();
    write_atomic(
        &broken.join("openclaw-agent.sqlite"),
        b"not a database, but long enough to be looked at",
        0o600,
    )
    .unwrap();
    let shared = world.shared();
    shared
        .execute_batch(
            "insert into agent_databases values ('evil', '../../../etc/passwd'), ('evil2', '/etc/passwd')",
        )
        .unwrap();
    drop(shared);

    let found = world.here();
    let mut names: Vec<&str> = found
        .items
        .iter()
        .filter_map(|session| session.name.as_deref())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["agent:main:event", "agent:main:good"]);
    assert!(
        found
            .issues
            .iter()
            .all(|issue| issue.kind == IssueKind::Corrupt)
    );
    assert_eq!(found.issues.len(), 4, "{:?}", found.issues);
}

#[test]
fn a_row_that_says_done_does_not_hide_an_open_call() {
    let world = World::new();
    let database = world.database("main");
    let done = Some("done");
    database.session("agent:main:open", done, &json!({}), &dangling(&world));
    let mut long = vec![user("go"), calls("c1", "make")];
    long.extend((0..9).map(|_| json!({"type": "custom"})));
    database.session(
        "agent:main:long",
        done,
        &json!({}),
        &transcript(&world.repo(), &long),
    );
    let over = transcript(&world.repo(), &[user("go"), says("done", "stop")]);
    database.session("agent:main:over", done, &json!({}), &over);
    drop(database);
    let sessions = world.healthy();
    for (name, calls) in [("open", 1), ("long", 1), ("over", 0)] {
        let session = &sessions[&format!("agent:main:{name}")];
        assert_eq!(session.open_effects.len(), calls, "{name}");
        assert_eq!(session.interruption.is_some(), calls > 0, "{name}");
        let shown = world
            .agent()
            .session(&world.env(), &format!("agent:main:{name}"), 5)
            .unwrap()
            .session;
        assert_eq!(
            (&shown.liveness, &shown.interruption, &shown.open_effects),
            (
                &session.liveness,
                &session.interruption,
                &session.open_effects
            ),
            "the list and the page agree"
        );
    }
}

#[test]
fn a_session_is_found_by_a_part_of_its_title_beside_damaged_ones() {
    let world = World::new();
    let database = world.database("main");
    database.session(
        "agent:main:a",
        None,
        &json!({"goal": {"objective": "Mend the Parser"}}),
        &dangling(&world),
    );
    database.session(
        "agent:main:b",
        None,
        &json!({"goal": {"objective": "Write docs"}}),
        &dangling(&world),
    );
    database.session(
        "agent:main:c",
        None,
        &json!({"goal": {"objective": "Read docs"}}),
        &dangling(&world),
    );
    database.session("agent:main:torn", None, &json!({}), &dangling(&world));
    database
        .db
        .execute(
            "update session_nodes set entry_json = '{' where session_key like '%torn'",
            [],
        )
        .unwrap();
    drop(database);
    let show = |id: &str| world.agent().session(&world.env(), id, 1);
    assert_eq!(
        show("parser").unwrap().session.name.as_deref(),
        Some("agent:main:a")
    );
    assert!(matches!(
        show("no such thing"),
        Err(AgentError::NoSession { .. })
    ));
    assert!(matches!(
        show("agent:main:torn"),
        Err(AgentError::Damaged(_))
    ));
    let several = show("docs").unwrap_err().to_string();
    assert!(
        several.contains("id-agent-main-b (Write docs)") && several.contains("id-agent-main-c"),
        "{several}"
    );
}

#[test]
fn packed_events_are_read_within_bounds() {
    let world = World::new();
    let database = world.database("main");
    database.session("agent:main:main", None, &json!({}), &dangling(&world));
    // The last event as a frame with one raw block, the form without compression.
    let text = dangling(&world)[2].to_string();
    let size = u32::try_from(text.len()).unwrap();
    let header = (size << 3) | 1;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    frame.extend_from_slice(&header.to_le_bytes()[..3]);
    frame.extend_from_slice(text.as_bytes());
    let pack =
        "update transcript_events set event_json = null, event_zstd = ?1, event_utf8_bytes = ?2
        where seq = 2";
    database.db.execute(pack, (&frame, size)).unwrap();
    assert_eq!(world.healthy()["agent:main:main"].open_effects.len(), 1);
    // A size that is not the true one is damage of this event only.
    database.db.execute(pack, (&frame, 3)).unwrap();
    let found = world.here();
    assert!(found.issues[0].message.contains("agent:main:main"));
    let session = &found.items[0];
    assert_eq!(session.open_effects.len(), 1, "nobody knows what it was");
    assert_eq!(session.open_effects[0].tool, "unknown");
    assert_eq!(
        session.interruption.as_ref().unwrap().reason,
        InterruptionReason::Crash
    );
    assert_eq!(session.title.as_deref(), Some("fix the parser"));
}

#[test]
fn one_session_by_id_key_and_beginning() {
    let world = World::new();
    let database = world.database("main");
    database.session("agent:main:main", None, &json!({}), &dangling(&world));
    database.session("agent:main:mainly", None, &json!({}), &dangling(&world));
    drop(database);
    let show = |id: &str| world.agent().session(&world.env(), id, 1);
    for id in ["agent:main:main", "id-agent-main-main"] {
        let detail = show(id).unwrap();
        assert_eq!(detail.session.name.as_deref(), Some("agent:main:main"));
        assert_eq!(detail.turns.len(), 1);
        assert!(detail.turns[0].text.contains("exec cargo test"));
    }
    assert_eq!(
        show("id-agent-main-mainl").unwrap().session.name.as_deref(),
        Some("agent:main:mainly")
    );
    let several = show("id-agent-main").unwrap_err().to_string();
    assert!(several.contains("id-agent-main-mainly"), "{several}");
    for id in ["nothing", ""] {
        assert!(
            matches!(show(id), Err(AgentError::NoSession { .. })),
            "{id}"
        );
    }
    let limited = SessionQuery {
        root: None,
        limit: 1,
        ..SessionQuery::default()
    };
    assert_eq!(
        world.agent().sessions(&world.env(), &limited).items.len(),
        1
    );
}
