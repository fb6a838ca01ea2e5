use serde_json::json;

use super::*;
use crate::fingerprint::ProvenanceEvent;
use crate::ids::{AgentId, SessionId};

fn session(name: &str) -> SessionRef {
    SessionRef::new(AgentId::person(), SessionId::new(name).unwrap())
}

fn place() -> PlaceRecord {
    let place =
        json!({"repositoryId": "r", "worktreeId": "w", "root": "/r", "device": 1, "inode": 2});
    serde_json::from_value(place).unwrap()
}

fn recorded(digit: char) -> Recorded {
    let print = digit.to_string().repeat(40);
    let recorded = json!({
        "tree": {
            "definition": 1, "excluded": [], "fingerprint": print, "head": null, "branch": null, "indexTree": null,
        },
        "provenance": {"event": "take-up", "at": Time::from_millis(9), "by": session("b")},
    });
    serde_json::from_value(recorded).unwrap()
}

fn identity(of: &str, status: Status) -> Identity {
    let identity = json!({
        "taskId": "t", "session": session(of), "place": place(), "status": status, "base": null, "latest": null,
        "createdAt": Time::from_millis(1), "updatedAt": Time::from_millis(2), "revision": 3,
    });
    serde_json::from_value(identity).unwrap()
}

fn with<T>(compatible: bool, act: impl FnOnce(&TakeUp<'_>) -> T) -> T {
    let caller = Caller {
        session: Some(session("b")),
        environment: None,
        agent: None,
        process: None,
        process_named: false,
        ancestors: Vec::new(),
    };
    act(&TakeUp {
        caller: &caller,
        target: &session("b"),
        place: &place(),
        now: &recorded('1'),
        before: &Before::default(),
        compatible,
        at: Time::from_millis(9),
    })
}

#[test]
fn the_same_session_on_its_own_content_writes_only_what_the_ledger_has_not() {
    let left = identity("b", Status::Active);
    assert_eq!(
        with(true, |taking| taking.same_session(&left, true)),
        Ok(None)
    );
    let imported = with(true, |taking| taking.same_session(&left, false));
    let imported = imported.unwrap().unwrap();
    let latest = imported.latest.unwrap();
    assert_eq!(latest.tree, recorded('1').tree);
    assert_eq!(latest.provenance.event, ProvenanceEvent::Import);
    assert_eq!(imported.status, Status::Active);
}

#[test]
fn the_same_session_on_other_content_begins_anew_there() {
    let mut left = identity("b", Status::Active);
    left.latest = Some(recorded('2'));
    let anew = with(false, |taking| taking.same_session(&left, true)).unwrap();
    let anew = anew.unwrap();
    assert_eq!(anew.latest.unwrap().tree, recorded('1').tree);
    assert_eq!(
        (anew.status, anew.revision),
        (Status::VerificationRequired, 4)
    );
}

#[test]
fn one_task_is_held_by_one_session_afterwards() {
    for compatible in [true, false] {
        let all = [
            identity("a", Status::Dirty),
            identity("c", Status::Active),
            identity("d", Status::Completed),
            identity("b", Status::Abandoned),
        ];
        let taken = with(compatible, |taking| taking.taken_over(&all, &all[0])).unwrap();
        assert_eq!(taken.source.status, Status::Abandoned);
        assert_eq!(taken.source.resumed_to, Some(session("b")));
        let others: Vec<_> = taken.others.iter().map(|other| &other.session).collect();
        assert_eq!(others, [&session("c")]);
        assert!(
            taken
                .others
                .iter()
                .all(|other| other.status == Status::Abandoned)
        );
        let next = taken.identity;
        assert_eq!(
            (next.status, next.revision),
            (Status::VerificationRequired, 4)
        );
        assert_eq!(next.resumed_from, Some(session("a")));
        let event = next.base.unwrap().provenance.event;
        assert_eq!(event == ProvenanceEvent::Import, compatible);
    }
}
