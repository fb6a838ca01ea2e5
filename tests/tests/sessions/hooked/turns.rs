//! Turns that are going on.
use takeup_core::ids::SessionRef;
use takeup_core::ledger::{Actor, Change, Ledger, Transition};
use takeup_core::time::{Clock as _, SystemClock, Time};

use super::*;

/// Moves all times of a task and of its session that are recorded, as if the clock had been ahead then.
fn ahead(scratch: &Scratch) {
    let later = |time: &mut Time| *time = Time::from_millis(time.millis() + 60_000);
    let ledger = Ledger::at(scratch.repo().join(".git/takeup"));
    let moved = ledger.transact(&SystemClock, Ledger::PATIENCE, |view| {
        let mut changes = Vec::new();
        for mut session in view.state.sessions.iter().cloned() {
            if let Some(latest) = &mut session.latest {
                later(&mut latest.provenance.at);
            }
            if let Some(at) = &mut session.acted_at {
                later(at);
            }
            changes.push(Change::Session {
                session: Box::new(session),
            });
        }
        for mut identity in view
            .state
            .tasks
            .values()
            .flat_map(|entry| entry.identities.iter().cloned())
        {
            if let Some(latest) = &mut identity.latest {
                later(&mut latest.provenance.at);
            }
            changes.push(Change::Identity {
                identity: Box::new(identity),
            });
        }
        let actor = Actor {
            session: SessionRef::person(),
            pid: 1,
        };
        let transition = Transition {
            at: SystemClock.now(),
            actor,
            operation: "test".to_owned(),
            changes,
        };
        Ok::<_, std::convert::Infallible>((Some(transition), ()))
    });
    moved.unwrap();
}

#[test]
fn a_turn_is_open_by_what_was_told_after_what_also_where_the_clock_went_back() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let hook = |event: &str, more: &str| dying(&scratch, &scratch.repo(), "c1", event, more);
    let open = || {
        candidates(&scratch, &scratch.repo()).iter().any(|one| {
            let reasons = one["reasons"].as_array().unwrap();
            one["identity"]["taskId"] == "job"
                && reasons.iter().any(|reason| reason["code"] == "turn-open")
        })
    };
    hook("SessionStart", ",\"source\":\"startup\"");
    let of = ["--session", "c1", "--agent", "claude-code"];
    scratch
        .takeup(&[&["start", "Job", "--no-checks"][..], &of].concat())
        .exits(0);
    hook("UserPromptSubmit", ",\"prompt\":\"look around\"");
    scratch.write("a.txt", "by the turn\n");
    hook("Stop", "");
    assert!(!open());
    ahead(&scratch);
    hook("UserPromptSubmit", ",\"prompt\":\"deploy it\"");
    assert!(open(), "it began after the record");
    ahead(&scratch);
    scratch.write("a.txt", "by the other turn\n");
    hook("Stop", "");
    assert!(!open(), "it is over");
}
