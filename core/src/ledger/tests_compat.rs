//! Files of released versions, kept in `tests/fixtures`, load for good. What they hold is said here in code.
use std::path::{Path, PathBuf};

use super::tests::{CLOCK, actor, id, note, put, session, start};
use super::*;
use crate::agent::Effect;
use crate::boundary::{Boundary, Raise};
use crate::evidence::{Digest, Evidence, EvidenceSource, Outcome};
use crate::fingerprint::{
    DEFINITION, Deviation, DeviationKind, Provenance, ProvenanceEvent, Submodule, TreeRecord,
};
use crate::identity::{
    Before, Closing, Identity, OpenEffect, PlaceRecord, Recorded, SessionRecord, Task,
};
use crate::ids::{AgentId, Fingerprint, Oid, RepositoryId, ReviewId, WorktreeId};
use crate::observation::Observation;
use crate::plan::{Check, Plan};
use crate::process::ProcessIdentity;
use crate::review::{Decision, Review, ReviewState};
use crate::status::Status;
use crate::time::Time;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ledger-v1")
}

fn at(minute: u32) -> Time {
    format!("2026-03-04T05:{minute:02}:06.789Z")
        .parse()
        .unwrap()
}

fn oid() -> Oid {
    Oid::new("0123456789".repeat(4)).unwrap()
}

fn fingerprint() -> Fingerprint {
    Fingerprint::new(format!("{}+{}", oid(), "ab".repeat(32))).unwrap()
}

fn recorded() -> Recorded {
    Recorded {
        tree: TreeRecord {
            definition: DEFINITION,
            excluded: vec![".agent-context".to_owned()],
            fingerprint: Some(fingerprint()),
            incomplete: None,
            head: Some(oid()),
            branch: Some("main".to_owned()),
            index_tree: Some("conflict:ab".to_owned()),
            operation: Some("rebase".to_owned()),
            submodules: vec![Submodule {
                path: "sub".to_owned(),
                head: Some(oid()),
                dirty: true,
            }],
            stash: Some(oid()),
            deviations: vec![Deviation {
                path: "a\\xffb".to_owned(),
                kind: DeviationKind::Untracked,
                staged: false,
                mode: Some("100644".to_owned()),
                oid: Some(oid()),
                is_new: false,
            }],
            deviations_left_out: 3,
        },
        provenance: Provenance {
            event: ProvenanceEvent::TurnEnd,
            at: at(1),
            by: Some(session("fox")),
            provisional: true,
            after: Some("14 calls later it died".to_owned()),
        },
    }
}

fn place() -> PlaceRecord {
    PlaceRecord {
        repository_id: RepositoryId::new("repository").unwrap(),
        worktree_id: WorktreeId::new("worktree").unwrap(),
        root: "/home/me/project".to_owned(),
        device: 1,
        inode: 2,
    }
}

fn process() -> ProcessIdentity {
    ProcessIdentity {
        boot_id: "boot".to_owned(),
        pid: 12,
        start_ticks: 345,
        pid_namespace: Some(6),
        started_at: Some(at(0)),
        name: Some("jcode".to_owned()),
    }
}

fn open_effects() -> Vec<OpenEffect> {
    vec![OpenEffect {
        tool: "bash".to_owned(),
        argument: "make".to_owned(),
        at: Some(at(2)),
    }]
}

fn closing() -> Closing {
    Closing {
        at: at(9),
        reason: Some("exit".to_owned()),
        by: None,
    }
}

fn outcome() -> Outcome {
    Outcome::NotStarted {
        why: "it is not there".to_owned(),
    }
}

/// One transition of each kind of change, every field filled.
fn history() -> Vec<Transition> {
    let task_id = id("fix-login");
    let task = Task {
        task_id: task_id.clone(),
        title: "Fix the login — grüße".to_owned(),
        boundary: Boundary {
            allowed: vec!["src/**".to_owned()],
            avoided: vec!["secrets/**".to_owned()],
            revision: 1,
            raised: vec![Raise {
                at: at(3),
                by: session("fox"),
                why: "the schema".to_owned(),
                added: vec!["db/**".to_owned()],
            }],
        },
        plan: Plan {
            checks: vec![Check {
                command: "cargo test".to_owned(),
                source: "person".to_owned(),
                must_fail: Some("false".to_owned()),
            }],
            ..Plan::default()
        },
        created_at: at(0),
    };
    let identity = Identity {
        task_id: task_id.clone(),
        session: session("fox"),
        place: place(),
        status: Status::HumanReview,
        base: Some(recorded()),
        before: Before::default(),
        latest: Some(recorded()),
        process: Some(process()),
        closing: Some(closing()),
        open_effects: open_effects(),
        inherited_effects: Vec::new(),
        resumed_from: Some(session("owl")),
        resumed_to: Some(session("cat")),
        closed_by: None,
        created_at: at(0),
        updated_at: at(9),
        revision: 7,
    };
    let evidence = Evidence {
        task_id: task_id.clone(),
        by: session("fox"),
        command: "cargo test".to_owned(),
        folder: None,
        outcome: Outcome::Exited { code: 0 },
        started_at: at(4),
        finished_at: at(5),
        before: Some(fingerprint()),
        after: Some(fingerprint()),
        stdout: Some(Digest {
            sha256: "ab".repeat(32),
            size: 5,
        }),
        stderr: Some(Digest {
            sha256: "cd".repeat(32),
            size: 0,
        }),
        source: EvidenceSource::Observed,
        control: Some(outcome()),
    };
    let review = Review {
        review_id: ReviewId::new("rev-1").unwrap(),
        task_id: task_id.clone(),
        session: session("fox"),
        reason_code: "BOUNDARY_EXPANSION_REQUIRED".to_owned(),
        title: "May I?".to_owned(),
        explanation: "It needs a column.".to_owned(),
        required_action: "approve or reject".to_owned(),
        resume_condition: "decided".to_owned(),
        suggested_commands: vec!["git diff".to_owned()],
        affected_files: vec!["db/schema.sql".to_owned()],
        current_boundary: vec!["src/**".to_owned()],
        requested_boundary: vec!["db/**".to_owned()],
        fingerprint: Some(fingerprint()),
        created_at: at(5),
        state: ReviewState::Applied {
            decision: Decision {
                approved: true,
                by: "me".to_owned(),
                session: session("fox"),
                at: at(6),
                remark: Some("fine".to_owned()),
                fingerprint: Some(fingerprint()),
            },
            at: at(7),
        },
    };
    let observation = Observation {
        worktree_id: WorktreeId::new("worktree").unwrap(),
        event: "post-commit".to_owned(),
        at: at(6),
        head_before: Some(oid()),
        head_after: Some(oid()),
        branch: Some("main".to_owned()),
        operation: Some("merge".to_owned()),
        fingerprint: Some(fingerprint()),
        pending: true,
        by: Some(session("fox")),
    };
    let effect = PendingEffect {
        effect_id: "effect-1".to_owned(),
        agent: AgentId::new("opencode").unwrap(),
        root: "/home/me/project".to_owned(),
        effect: Effect::TakenUp {
            task_id: task_id.clone(),
            title: "Fix the login".to_owned(),
            source: session("fox"),
            target: session("cat"),
            fingerprint: fingerprint(),
            compatible: true,
            at: at(8),
        },
    };
    let record = SessionRecord {
        session: session("cat"),
        place: place(),
        latest: Some(recorded()),
        process: Some(process()),
        closing: Some(closing()),
        open_effects: open_effects(),
        acted_at: None,
        acted_after: None,
        told_at: None,
        started_as: None,
        prompt: Some("go on".to_owned()),
        left: Vec::new(),
        created_at: at(1),
        updated_at: at(2),
    };
    let hook = InstalledHook {
        name: "post-commit".to_owned(),
        place: ".git/hooks/post-commit".to_owned(),
        sha256: "ab".repeat(32),
        installed_at: at(0),
        last_ran: Some(at(6)),
        made_folder: true,
        head: None,
    };
    let other = PendingEffect {
        effect_id: "effect-2".to_owned(),
        ..effect.clone()
    };
    let changes = [
        Change::Task { task },
        Change::Identity {
            identity: Box::new(identity),
        },
        Change::Evidence {
            evidence: Box::new(evidence),
        },
        Change::Review {
            review: Box::new(review),
        },
        Change::Observation {
            observation: Box::new(observation),
        },
        Change::Decided {
            effect: Box::new(effect),
        },
        Change::Decided {
            effect: Box::new(other),
        },
        Change::Applied {
            effect_id: "effect-2".to_owned(),
        },
        Change::Session {
            session: Box::new(record),
        },
        Change::Hook {
            hook: Some(hook),
            name: "post-commit".to_owned(),
        },
        Change::Hook {
            hook: None,
            name: "post-merge".to_owned(),
        },
    ];
    let mut history: Vec<Transition> = changes
        .into_iter()
        .map(|change| Transition {
            at: at(9),
            actor: actor(),
            operation: "save".to_owned(),
            changes: vec![change],
        })
        .collect();
    history.push(note("fix-login", "a \"note\"\nof two lines"));
    history.push(start("done", Status::Completed));
    history
}

#[test]
#[ignore = "writes the fixture of this version"]
fn write_the_fixture() {
    let ledger = Ledger::at(fixture());
    for transition in history() {
        put(&ledger, transition);
    }
    ledger
        .archive(&CLOCK, Ledger::PATIENCE, &actor(), |entry| {
            entry.task.task_id == id("done")
        })
        .unwrap();
}

#[test]
fn files_of_version_1_are_read() {
    let folder = tempfile::tempdir().unwrap();
    // A copy, since files of another user are refused, and a checkout may belong to one.
    let copy = folder.path().join("takeup");
    std::fs::create_dir_all(copy.join("archive")).unwrap();
    for name in [
        "state.json",
        "journal.jsonl",
        "journal.old.jsonl",
        "archive/done.json",
    ] {
        std::fs::copy(fixture().join(name), copy.join(name)).unwrap();
    }
    let ledger = Ledger::at(&copy);
    let mut expected = State::default();
    let history = history();
    for (number, transition) in history.iter().enumerate() {
        expected.apply(number as u64 + 1, transition);
    }
    let done = expected.tasks[&id("done")].clone();
    expected.apply(
        history.len() as u64 + 1,
        &Transition {
            changes: vec![Change::Archived {
                task_ids: vec![id("done")],
            }],
            ..history[0].clone()
        },
    );
    let view = ledger.read().unwrap();
    assert_eq!(view.issues, []);
    assert_eq!(view.seq, 14);
    assert_eq!(view.state, expected);
    assert_eq!(ledger.read_archive(&id("done")).unwrap().unwrap(), done);
    assert_eq!(ledger.examine().unwrap(), []);
    // The snapshot held a part of it; from the older lines alone it is the same.
    std::fs::remove_file(copy.join("state.json")).unwrap();
    assert_eq!(ledger.read().unwrap().state, expected);
}
