//! Databases that nobody should have: right answers for what is healthy in them, an issue for the rest, nothing made beside
//! them, and an end in time.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::json;
use takeup_core::agent::{Found, Session};
use takeup_core::files::write_atomic;
use takeup_core::issue::IssueKind;

use super::world::{World, calls, says, transcript, user};

/// Names, kinds and sizes below the state folder: a pipe cannot be read for its content.
fn shape(world: &World) -> BTreeMap<PathBuf, String> {
    let mut shape = BTreeMap::new();
    let mut folders = vec![world.state()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                folders.push(entry.path());
            }
            shape.insert(
                entry.path(),
                format!("{:?} {}", meta.file_type(), meta.len()),
            );
        }
    }
    shape
}

fn store(world: &World, agent: &str) -> PathBuf {
    let folder = world.state().join("agents").join(agent).join("agent");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join("openclaw-agent.sqlite")
}

/// A world with one healthy session, whose agent comes after every other by name.
fn world() -> World {
    let world = World::new();
    let events = transcript(&world.repo(), &[user("all is well"), says("yes", "stop")]);
    world
        .database("zz")
        .session("agent:zz:good", None, &json!({}), &events);
    world
}

fn names(found: &Found<Session>) -> Vec<&str> {
    let names = found
        .items
        .iter()
        .filter_map(|session| session.name.as_deref());
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names
}

fn kinds(found: &Found<Session>, of: &Path) -> Vec<IssueKind> {
    assert!(
        found.issues.iter().all(|issue| issue.path == of),
        "{:?}",
        found.issues
    );
    found.issues.iter().map(|issue| issue.kind).collect()
}

fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo")
        .arg(path)
        .status()
        .unwrap();
    assert!(made.success());
}

#[test]
fn what_is_no_file_is_not_opened() {
    let world = world();
    let path = store(&world, "main");
    let elsewhere = world.folder.path().join("elsewhere");
    pipe(&elsewhere);
    let real = store(&world, "zz");
    let link = |target: &Path| std::os::unix::fs::symlink(target, &path).unwrap();
    for (make, kind) in [
        (&(|| pipe(&path)) as &dyn Fn(), IssueKind::NotAFile),
        (&|| link(&elsewhere), IssueKind::Symlink),
        (&|| link(&real), IssueKind::Symlink),
        (&|| link(Path::new("/nonexistent")), IssueKind::Symlink),
        (
            &|| write_atomic(&path, b"no database", 0o600).unwrap(),
            IssueKind::Corrupt,
        ),
        (
            &|| write_atomic(&path, b"", 0o600).unwrap(),
            IssueKind::UnknownVersion,
        ),
    ] {
        make();
        let before = shape(&world);
        let found = world.here();
        assert_eq!(names(&found), ["agent:zz:good"]);
        assert_eq!(kinds(&found, &path), [kind]);
        assert_eq!(shape(&world), before);
        std::fs::remove_file(&path).unwrap();
    }
    std::fs::create_dir_all(&path).unwrap();
    assert_eq!(kinds(&world.here(), &path), [IssueKind::NotAFile]);
}

#[test]
fn what_stands_in_the_place_of_a_table_does_not_run() {
    let forever = "with recursive n(i) as (select 1 union all select i + 1 from n) select";
    let events = "create table transcript_events(session_id text, seq integer, event_json text);";
    let nodes = "session_key text, current_session_id text";
    for schema in [
        format!(
            "{events} create view session_nodes as {forever} i as session_key, 'x' as current_session_id, '{{}}' as entry_json from n;"
        ),
        format!(
            "{events} create view session_entries as {forever} i as session_key, 'x' as session_id, '{{}}' as entry_json from n;"
        ),
        format!(
            "create table session_nodes({nodes}, entry_json text); create view transcript_events as {forever} 'x' as session_id, i as seq, '{{}}' as event_json from n;"
        ),
        format!(
            "{events} create virtual table session_nodes using fts5(session_key, current_session_id, entry_json);"
        ),
        format!("{events} create table session_nodes({nodes});"),
        "create table other(a);".to_owned(),
    ] {
        let world = world();
        let path = store(&world, "main");
        Connection::open(&path)
            .unwrap()
            .execute_batch(&schema)
            .unwrap();
        let before = world.content();
        let found = world.here();
        assert_eq!(names(&found), ["agent:zz:good"], "{schema}");
        assert_eq!(
            kinds(&found, &path),
            [IssueKind::UnknownVersion],
            "{schema}"
        );
        assert_eq!(world.content(), before, "{schema}");
    }
    // A trigger is no obstacle: nothing is written that could set it off. Nor is a table without row numbers.
    let world = world();
    let path = store(&world, "main");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!(
        "{events} create table session_nodes({nodes}, entry_json text, primary key(session_key)) without rowid;
         create trigger t after insert on transcript_events begin delete from session_nodes; end;"
    ))
    .unwrap();
    let entry = json!({"sessionId": "s", "execCwd": world.repo()}).to_string();
    db.execute(
        "insert into session_nodes values ('agent:main:one', 's', ?1)",
        [entry],
    )
    .unwrap();
    drop(db);
    let found = world.here();
    assert_eq!(
        names(&found),
        ["agent:main:one", "agent:zz:good"],
        "{:?}",
        found.issues
    );
}

#[test]
fn values_of_every_type_and_size_hide_no_session() {
    let world = world();
    let database = world.database("main");
    let repo = world.repo();
    let healthy = transcript(&repo, &[user("go on"), calls("c1", "make")]);
    let add = |name: &str| {
        database.session(&format!("agent:main:{name}"), None, &json!({}), &healthy);
    };
    let set = |name: &str, what: &str| {
        let key = format!("agent:main:{name}");
        let changed = database.db.execute(
            &format!("update session_nodes set {what} where session_key = ?1"),
            [&key],
        );
        assert_eq!(changed.unwrap(), 1, "{what}");
    };
    // The entry, the row and the events, each wrong in its own way. `true` where the session is still listed.
    let deep = "[".repeat(200_000);
    let rows = [
        (
            "blob-times",
            "updated_at = x'00', created_at = x'ff', status = x'00ff'",
            true,
        ),
        (
            "text-times",
            "updated_at = 'soon', created_at = '1e999', status = 5",
            true,
        ),
        (
            "far-times",
            "updated_at = 9223372036854775807, created_at = -9223372036854775808",
            true,
        ),
        (
            "real-times",
            "updated_at = 1e308, created_at = -1e308, status = 1.5",
            true,
        ),
        ("no-id", "current_session_id = null", false),
        ("blob-id", "current_session_id = x'00'", false),
        (
            "odd-id",
            "current_session_id = char(0) || char(27) || '[31m' || char(10)",
            false,
        ),
        (
            "names",
            "label = char(27) || ']0;x' || char(7), display_name = char(0), spawned_by = char(10)",
            true,
        ),
        ("no-entry", "entry_json = null", false),
        ("number", "entry_json = 7", false),
        ("blob", "entry_json = x'00'", false),
        (
            "large",
            "entry_json = cast(zeroblob(17 << 20) as text)",
            false,
        ),
        (
            "deep",
            "entry_json = cast(replace(hex(zeroblob(100000)), '0', '[') as text)",
            false,
        ),
        (
            "deep-field",
            "entry_json = '{\"goal\":' || replace(hex(zeroblob(100000)), '0', '[') || replace(hex(zeroblob(100000)), '0', ']') || '}'",
            true,
        ),
        (
            "nul-folder",
            "entry_json = '{\"execCwd\":\"/a\\u0000b\"}'",
            false,
        ),
    ];
    for (name, what, _) in rows {
        add(name);
        set(name, what);
    }
    let events = [
        ("large-event", "cast(zeroblob(17 << 20) as text)".to_owned()),
        ("deep-event", format!("'{{\"type\":\"message\",\"message\":{deep}'")),
        ("blob-event", "x'00ff'".to_owned()),
        ("number-event", "5".to_owned()),
        ("half-event", "substr(event_json, 1, 20)".to_owned()),
        ("nul-event", "'{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a\\u0000b\\u001b[1m\"}}'".to_owned()),
    ];
    for (name, event) in &events {
        add(name);
        let id = super::world::id_of(&format!("agent:main:{name}"));
        let sql = format!(
            "update transcript_events set event_json = {event} where session_id = ?1 and seq = 1"
        );
        assert_eq!(database.db.execute(&sql, [id]).unwrap(), 1);
    }
    drop(database);
    let found = world.here();
    let listed: Vec<String> = found
        .items
        .iter()
        .filter_map(|one| one.name.clone())
        .collect();
    for (name, expected) in rows
        .iter()
        .map(|(name, _, listed)| (*name, *listed))
        .chain(events.iter().map(|(name, _)| (*name, true)))
        .chain([("good", true)])
    {
        let is_listed = listed.iter().any(|one| one.ends_with(&format!(":{name}")));
        assert_eq!(is_listed, expected, "{name}: {:?}", found.issues);
    }
    // What is not listed is said, but for those of which nothing says where they are.
    let nowhere = ["odd-id", "nul-folder"];
    let said = |name: &str| {
        found
            .issues
            .iter()
            .any(|issue| issue.message.contains(&format!(":{name}\"")))
    };
    for (name, _, listed) in rows {
        assert_eq!(
            said(name),
            !listed && !nowhere.contains(&name),
            "{name}: {:?}",
            found.issues
        );
    }
    let shown = format!("{found:?}");
    assert!(
        !shown.contains("\\u{1b}") && !shown.contains("\\0"),
        "{shown}"
    );
}

#[test]
fn what_a_kill_left_is_read_and_nothing_is_made() {
    let world = world();
    let path = store(&world, "main");
    let origin = World::new();
    let database = origin.database("main");
    database
        .db
        .pragma_update(None, "journal_mode", "wal")
        .unwrap();
    let events = transcript(&world.repo(), &[user("go on"), calls("c1", "make")]);
    database.session("agent:main:first", None, &json!({}), &events);
    // What is in the database alone, and then what is in the log alone.
    database
        .db
        .pragma_update(None, "wal_checkpoint", "truncate")
        .unwrap();
    database.session("agent:main:second", None, &json!({}), &events);
    let from = store(&origin, "main");
    let beside = |path: &Path, end: &str| PathBuf::from(format!("{}{end}", path.display()));
    for (wal, cut, expected) in [
        (
            true,
            None,
            vec!["agent:main:first", "agent:main:second", "agent:zz:good"],
        ),
        (
            true,
            Some(10_000),
            vec!["agent:main:first", "agent:zz:good"],
        ),
        (true, Some(16), vec!["agent:main:first", "agent:zz:good"]),
        (false, None, vec!["agent:main:first", "agent:zz:good"]),
    ] {
        std::fs::copy(&from, &path).unwrap();
        let log = beside(&path, "-wal");
        if wal {
            let mut bytes = std::fs::read(beside(&from, "-wal")).unwrap();
            bytes.truncate(cut.unwrap_or(bytes.len()));
            write_atomic(&log, &bytes, 0o600).unwrap();
        } else {
            std::fs::remove_file(&log).unwrap();
        }
        let before = world.content();
        let found = world.here();
        assert_eq!(names(&found), expected, "{cut:?}: {:?}", found.issues);
        assert_eq!(found.issues, []);
        assert_eq!(world.content(), before);
    }
}

#[test]
fn a_database_with_damaged_bytes_invents_nothing() {
    let world = world();
    let path = store(&world, "main");
    let database = world.database("main");
    let events = transcript(&world.repo(), &[user("go on"), calls("c1", "make")]);
    for number in 0..12 {
        database.session(&format!("agent:main:s{number}"), None, &json!({}), &events);
    }
    drop(database);
    let healthy = std::fs::read(&path).unwrap();
    // The same damage in each run.
    let mut dice = 0x7461_6b65_7570_u64;
    let mut below = |most: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        usize::try_from(dice >> 11).unwrap() % most
    };
    let mut damaged = 0;
    for round in 0..300 {
        let mut bytes = healthy.clone();
        for _ in 0..=below(4) {
            let at = below(bytes.len());
            let length = (1 + below(64)).min(bytes.len() - at);
            match below(4) {
                0 => bytes[at..at + length].fill(0),
                1 => bytes[at..at + length].fill(0xff),
                2 => bytes.truncate(at.max(1)),
                _ => bytes[at] ^= 1 << below(8),
            }
        }
        write_atomic(&path, &bytes, 0o600).unwrap();
        let before = world.content();
        let found = world.here();
        assert!(names(&found).contains(&"agent:zz:good"), "round {round}");
        damaged += found.issues.len();
        assert!(
            found.items.len() <= 13,
            "round {round}: {:?}",
            names(&found)
        );
        assert_eq!(world.content(), before, "round {round}");
    }
    assert!(damaged > 100, "{damaged}");
}

#[test]
fn a_database_that_is_locked_is_an_issue() {
    let world = world();
    let database = world.database("main");
    database
        .db
        .execute_batch("begin exclusive; create table held(a)")
        .unwrap();
    let found = world.here();
    assert_eq!(names(&found), ["agent:zz:good"]);
    assert_eq!(
        kinds(&found, &store(&world, "main")),
        [IssueKind::Unreadable]
    );
    database.db.execute_batch("rollback").unwrap();
    drop(database);
    assert_eq!(world.here().issues, []);
}
