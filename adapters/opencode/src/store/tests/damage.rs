//! Odd rows, records that cannot be read, and what is told of them.
use super::*;

#[test]
fn rows_that_are_no_json_do_not_hide_the_rest() {
    let home = Home::new();
    let db = home.database();
    add_session(&db, "ses_1", &home.root());
    add_session(&db, "ses_\u{1b}[31m", &home.root());
    db.execute(
        "insert into message (id, session_id, data) values ('msg_1', 'ses_1', '{broken')",
        [],
    )
    .unwrap();
    drop(db);
    let found = home.sessions();
    assert_eq!(found.items.len(), 1);
    assert_eq!(found.issues.len(), 2);
    assert_eq!(found.issues[0].kind, IssueKind::Corrupt);
}

#[test]
fn an_odd_row_is_named_and_hides_no_other() {
    for (odd, listed, named) in [
        (
            "update session set title = null where id = 'ses_2'",
            3,
            "ses_2",
        ),
        (
            "update session set title = x'00ff' where id = 'ses_2'",
            3,
            "ses_2",
        ),
        (
            "update session set time_updated = 'abc' where id = 'ses_2'",
            3,
            "ses_2",
        ),
        (
            "update session set time_created = null where id = 'ses_2'",
            3,
            "ses_2",
        ),
        (
            "update session set slug = x'00', parent_id = null where id = 'ses_2'",
            3,
            "",
        ),
        (
            "update session set directory = null where id = 'ses_2'",
            2,
            "ses_2",
        ),
        (
            "update session set id = null where id = 'ses_2'",
            2,
            "no id",
        ),
        (
            "update message set data = x'00' where id = 'msg_ses_2'",
            3,
            "msg_ses_2",
        ),
        (
            "update message set data = substr(data, 1, 20) where id = 'msg_ses_2'",
            3,
            "msg_ses_2",
        ),
        (
            "update message set id = null where id = 'msg_ses_2'",
            3,
            "ses_2",
        ),
        (
            "update part set data = x'00', id = 7 where id = 'prt_msg_ses_2_0'",
            3,
            "ses_2",
        ),
        (
            "insert into todo values ('ses_2', null, x'00', 'high', 'first')",
            3,
            "",
        ),
    ] {
        let home = Home::new();
        let db = home.database();
        for id in ["ses_1", "ses_2", "ses_3"] {
            add_session(&db, id, &home.root());
            let (data, parts) = user("go");
            add_message(&db, id, &format!("msg_{id}"), &data, &parts);
        }
        // As in a database whose columns demand nothing.
        db.execute_batch("create table s as select * from session; drop table session; alter table s rename to session;
            create table m as select * from message; drop table message; alter table m rename to message;")
            .unwrap();
        db.execute(odd, []).unwrap();
        drop(db);
        let found = home.sessions();
        assert_eq!(found.items.len(), listed, "{odd}");
        let issues: Vec<_> = found.issues.iter().map(|issue| &issue.message).collect();
        if named.is_empty() {
            assert!(issues.is_empty(), "{odd}: {issues:?}");
        } else {
            assert!(
                matches!(issues.as_slice(), [one] if one.contains(named)),
                "{odd}: {issues:?}"
            );
        }
    }
}

#[test]
fn a_call_whose_record_cannot_be_read_is_not_passed_over() {
    let deep = format!(
        "{{\"type\":\"tool\",\"tool\":\"bash\",\"state\":{{\"status\":\"running\",\"input\":{}1{}}}}}",
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    for torn in [
        deep.as_str(),
        "{\"type\":\"tool\",\"tool\":\"bash\",\"callI",
        "",
        "nul",
    ] {
        let home = Home::new();
        let db = home.database();
        add_session(&db, "ses_1", &home.root());
        killed(&db, "ses_1");
        db.execute(
            "update part set data = ?1 where message_id = 'msg_3'",
            [torn],
        )
        .unwrap();
        drop(db);
        let found = home.sessions();
        assert_eq!(found.issues.len(), 1, "{torn:.60}");
        assert!(found.issues[0].message.contains("prt_msg_3_0"));
        let session = &found.items[0];
        assert_eq!(session.open_effects.len(), 1, "{torn:.60}");
        assert_eq!(session.snapshot_tree.as_deref(), Some(TREE_B));
        assert!(session.snapshot_after.is_some());
        assert!(session.interruption.is_some());
    }
    // A text that was cut is no call.
    let home = Home::new();
    let db = home.database();
    add_session(&db, "ses_1", &home.root());
    killed(&db, "ses_1");
    db.execute(
        "update part set data = '{\"type\":\"text\",\"te' where message_id = 'msg_3'",
        [],
    )
    .unwrap();
    drop(db);
    let found = home.sessions();
    assert_eq!(found.issues.len(), 1);
    assert_eq!(found.items[0].open_effects, []);
    assert_eq!(found.items[0].snapshot_after, None);
}

/// A program in JavaScript that cuts a text may cut a character in two, and writes the half as it is.
#[test]
fn half_a_character_is_no_damage() {
    let home = Home::new();
    let db = home.database();
    add_session(&db, "ses_1", &home.root());
    let (prompt, texts) = user("ask CUT");
    add_message(&db, "ses_1", "msg_1", &prompt, &texts);
    let done = json!({"type": "tool", "tool": "bash",
        "state": {"status": "completed", "input": {"command": "make"}, "output": "cut CUT"}});
    let answer = json!({"role": "assistant", "time": {"created": 2000}});
    add_message(&db, "ses_1", "msg_2", &answer, &[done]);
    db.execute("update part set data = replace(data, 'CUT', '\\ud83d')", [])
        .unwrap();
    drop(db);
    let session = home.only();
    assert_eq!(session.open_effects, []);
    assert_eq!(session.last_prompt.as_deref(), Some("ask \u{fffd}"));

    let home = Home::new();
    let old = format!(
        r#"{{"id":"ses_1","directory":{},"title":"Old \ud83d","time":{{"created":1,"updated":9}}}}"#,
        json!(home.root())
    );
    let folder = home.data().join("storage/session/global");
    std::fs::create_dir_all(&folder).unwrap();
    takeup_core::files::write_atomic(&folder.join("ses_1.json"), old.as_bytes(), 0o600).unwrap();
    assert_eq!(home.only().title.as_deref(), Some("Old \u{fffd}"));
}

#[test]
fn what_was_called_after_the_last_snapshot_is_told() {
    let start = json!({"type": "step-start", "snapshot": TREE_A});
    let unseen = json!({"type": "step-start"});
    let end = json!({"type": "step-finish", "snapshot": TREE_B});
    let patch = json!({"type": "patch", "hash": TREE_A, "files": ["/r/a"]});
    let tool = |name: &str, status: &str| json!({"type": "tool", "tool": name, "state": {"status": status, "input": {}}});
    for (parts, tree, after) in [
        (
            vec![
                start.clone(),
                tool("edit", "completed"),
                end.clone(),
                patch.clone(),
            ],
            TREE_B,
            None,
        ),
        (vec![start.clone(), tool("read", "completed")], TREE_A, None),
        (vec![start.clone(), tool("bash", "running")], TREE_A, None),
        (
            vec![start.clone(), patch],
            TREE_A,
            Some("1 later call: changed files"),
        ),
        (
            vec![start.clone(), tool("edit", "completed")],
            TREE_A,
            Some("1 later call: edit"),
        ),
        (
            vec![
                start.clone(),
                tool("bash", "error"),
                tool("grep", "completed"),
                tool("task", "completed"),
            ],
            TREE_A,
            Some("2 later calls: bash, task"),
        ),
        // A step whose snapshot failed.
        (
            vec![start, end, unseen, tool("my_own", "completed")],
            TREE_B,
            Some("1 later call: my_own"),
        ),
    ] {
        let home = Home::new();
        let db = home.database();
        add_session(&db, "ses_1", &home.root());
        add_message(
            &db,
            "ses_1",
            "msg_1",
            &json!({"role": "assistant", "time": {"created": 1}}),
            &parts,
        );
        drop(db);
        let session = home.only();
        assert_eq!(session.snapshot_tree.as_deref(), Some(tree), "{parts:?}");
        assert_eq!(session.snapshot_after.as_deref(), after, "{parts:?}");
    }
}

#[test]
fn a_session_is_found_by_a_part_of_its_title_and_several_are_named() {
    let home = Home::new();
    let db = home.database();
    for (id, title) in [
        ("ses_1", "Fix the Login"),
        ("ses_2", "Write the docs"),
        ("ses_3", "Fix the docs"),
    ] {
        add_session(&db, id, &home.root());
        db.execute(
            "update session set title = ?1, slug = ?1 where id = ?2",
            [title, id],
        )
        .unwrap();
    }
    // One that is damaged is no reason to doubt that there is no other.
    db.execute(
        "update session set time_updated = 'x' where id = 'ses_3'",
        [],
    )
    .unwrap();
    drop(db);
    let show =
        |name: &str| crate::store::session(&home.env(), name, 5, &FixedClock(Time::from_millis(0)));
    let id = |name: &str| show(name).unwrap().session.session.id.to_string();
    assert_eq!(id("login"), "ses_1");
    assert_eq!(id("Write"), "ses_2");
    assert_eq!(id("ses_3"), "ses_3");
    let several = show("docs").unwrap_err().to_string();
    assert!(
        several.contains("ses_2 (Write the docs)") && several.contains("ses_3 (Fix the docs)"),
        "{several}"
    );
    assert!(matches!(
        show("nothing like it"),
        Err(takeup_core::agent::AgentError::NoSession { .. })
    ));
}
