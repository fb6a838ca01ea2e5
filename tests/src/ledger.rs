//! Records for the tests of the ledger, and what its child processes do.
use std::path::Path;
use std::time::Duration;

use takeup_core::boundary::Boundary;
use takeup_core::identity::{Before, Identity, Note, PlaceRecord, Task};
use takeup_core::ids::{AgentId, RepositoryId, SessionId, SessionRef, TaskId, WorktreeId};
use takeup_core::ledger::{Actor, Change, Committed, Ledger, TransactError, Transition, View};
use takeup_core::plan::Plan;
use takeup_core::status::Status;
use takeup_core::time::{SystemClock, Time};

/// Returns a session of that name.
pub fn session(name: &str) -> SessionRef {
    SessionRef::new(
        AgentId::new("jcode").expect("it is a slug"),
        SessionId::new(name).expect("it is printable"),
    )
}

/// Returns who acts in these tests.
pub fn actor() -> Actor {
    Actor {
        session: session("fox"),
        pid: std::process::id(),
    }
}

/// Returns the id of a task.
pub fn task_id(name: &str) -> TaskId {
    TaskId::new(name).expect("it is a slug")
}

/// Makes a transition of changes.
pub fn transition(operation: &str, changes: Vec<Change>) -> Transition {
    Transition {
        at: Time::EPOCH,
        actor: actor(),
        operation: operation.to_owned(),
        changes,
    }
}

/// Makes the transition that starts a task.
pub fn start(name: &str, status: Status) -> Transition {
    let task = Task {
        task_id: task_id(name),
        title: name.to_owned(),
        boundary: Boundary::default(),
        plan: Plan::default(),
        created_at: Time::EPOCH,
    };
    let identity = Identity {
        task_id: task_id(name),
        session: session("fox"),
        place: PlaceRecord {
            repository_id: RepositoryId::new("r").expect("it is a slug"),
            worktree_id: WorktreeId::new("w").expect("it is a slug"),
            root: "/r".to_owned(),
            device: 1,
            inode: 2,
        },
        status,
        base: None,
        before: Before::default(),
        latest: None,
        process: None,
        closing: None,
        open_effects: Vec::new(),
        inherited_effects: Vec::new(),
        resumed_from: None,
        resumed_to: None,
        closed_by: None,
        created_at: Time::EPOCH,
        updated_at: Time::EPOCH,
        revision: 1,
    };
    transition(
        "start",
        vec![
            Change::Task { task },
            Change::Identity {
                identity: Box::new(identity),
            },
        ],
    )
}

/// Makes the transition that adds a note.
pub fn note(name: &str, text: &str) -> Transition {
    transition(
        "note",
        vec![Change::Note {
            task_id: task_id(name),
            note: Note {
                at: Time::EPOCH,
                by: session("fox"),
                text: text.to_owned(),
            },
        }],
    )
}

/// Puts a transition into a ledger, waiting a minute for the lock at the most.
pub fn put(
    ledger: &Ledger,
    transition: Transition,
) -> Result<Committed<()>, TransactError<std::convert::Infallible>> {
    ledger.transact(&SystemClock, Duration::from_mins(1), |_| {
        Ok((Some(transition), ()))
    })
}

/// Makes a ledger with the task `t` and the notes `base-1` to `base-COUNT`.
pub fn noted(folder: &Path, count: usize) -> Ledger {
    let ledger = Ledger::at(folder);
    put(&ledger, start("t", Status::Active)).expect("a ledger can be written");
    for number in 1..=count {
        put(&ledger, note("t", &format!("base-{number}"))).expect("a ledger can be written");
    }
    ledger
}

/// Returns the texts of the notes of the task `t`.
pub fn notes(view: &View) -> Vec<String> {
    view.state
        .tasks
        .get(&task_id("t"))
        .map(|entry| entry.notes.iter().map(|note| note.text.clone()).collect())
        .unwrap_or_default()
}
