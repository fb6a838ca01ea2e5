use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Command;

use takeup_core::agent::{Agent as _, AgentError, Effect};
use takeup_core::ids::{Fingerprint, SessionId, SessionRef, TaskId};
use takeup_core::status::Status;
use takeup_core::time::Time;

use crate::OpenCode;
use crate::sidecar::{self, Json, Object, Paths, SidecarError};
use crate::testing::Repo;

fn session(id: &str) -> SessionRef {
    SessionRef::new(crate::agent_id(), SessionId::new(id).unwrap())
}

fn at(text: &str) -> Time {
    text.parse().unwrap()
}

fn taken_up(target: &str) -> Effect {
    Effect::TakenUp {
        task_id: TaskId::new("fix-login").unwrap(),
        title: "Fix login".to_owned(),
        source: session("ses_old"),
        target: session(target),
        fingerprint: Fingerprint::new("0".repeat(40)).unwrap(),
        compatible: true,
        at: at("2026-04-01T10:00:00.000Z"),
    }
}

fn mirrored(status: Status, when: &str) -> Effect {
    Effect::Mirrored {
        task_id: TaskId::new("fix-login").unwrap(),
        title: "Fix login".to_owned(),
        session: session("ses_old"),
        status,
        resumed_to: None,
        allowed: vec!["src/**".to_owned()],
        avoided: vec!["dist/**".to_owned()],
        checks: vec!["npm test".to_owned()],
        at: at(when),
    }
}

fn read(path: impl AsRef<std::path::Path>) -> Object {
    sidecar::read(path.as_ref()).unwrap().unwrap().object
}

/// Every record, with our own key taken out.
fn records(repo: &Repo) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![repo.place.root.join(".agent-context")];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                let name = entry.file_name().into_string().unwrap();
                found.insert(name, std::fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    found
}

/// A writer that works as the plugin does, and shares nothing with ours but the rules.
#[expect(clippy::disallowed_methods, reason = "the plugin's own way of writing")]
fn plugin_touches(path: &std::path::Path, n: usize) {
    let lock = PathBuf::from(format!("{}.lock", path.display()));
    let mut file = loop {
        match std::fs::File::create_new(&lock) {
            Ok(file) => break file,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    };
    std::io::Write::write_all(
        &mut file,
        format!("{{\"pid\":{},\"ownerToken\":\"t{n}\"}}", std::process::id()).as_bytes(),
    )
    .unwrap();
    let mut record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    record["revision"] = (record["revision"].as_u64().unwrap() + 1).into();
    record[format!("touched{n}")] = true.into();
    let temporary = PathBuf::from(format!("{}.tmp-{n}-0-0", path.display()));
    std::fs::write(&temporary, serde_json::to_vec_pretty(&record).unwrap()).unwrap();
    std::fs::rename(&temporary, path).unwrap();
    std::fs::remove_file(&lock).unwrap();
}

#[test]
fn of_sixteen_takers_among_writers_of_the_plugin_one_wins() {
    let repo = Repo::new();
    repo.sh("echo changed > src/a");
    let path = repo.identity("fix-login", "ses_old", "active");
    let outcomes: Vec<(String, Result<(), AgentError>)> = std::thread::scope(|scope| {
        #[expect(
            clippy::needless_collect,
            reason = "all are started before one is waited for"
        )]
        let takers: Vec<_> = (0..16)
            .map(|n| {
                let repo = &repo;
                let path = &path;
                scope.spawn(move || {
                    plugin_touches(path, n);
                    let target = format!("ses_{n}");
                    let outcome = OpenCode::new().apply(&repo.env, &repo.place, &taken_up(&target));
                    (target, outcome)
                })
            })
            .collect();
        takers
            .into_iter()
            .map(|taker| taker.join().unwrap())
            .collect()
    });
    let winners: Vec<&str> = outcomes
        .iter()
        .filter(|(_, outcome)| outcome.is_ok())
        .map(|(target, _)| target.as_str())
        .collect();
    assert_eq!(winners.len(), 1, "{outcomes:?}");
    assert!(
        outcomes
            .iter()
            .all(|(_, outcome)| matches!(outcome, Ok(()) | Err(AgentError::Conflict { .. })))
    );
    let left = read(path);
    assert_eq!(left.text("resumedToSessionId"), Some(winners[0]));
    assert!(
        (0..16).all(|n| left.get(&format!("touched{n}")).is_some()),
        "no write was lost"
    );
    let tasks = OpenCode::new().tasks(&repo.env, &repo.place).items;
    let open: Vec<_> = tasks
        .iter()
        .filter(|task| !task.status.is_closed())
        .map(|task| task.session.id.as_str())
        .collect();
    assert_eq!(open, winners);
    assert!(
        records(&repo)
            .keys()
            .all(|name| !name.contains(".lock") && !name.contains(".tmp-"))
    );
}

#[test]
fn a_task_of_the_ledger_is_one_the_plugin_could_have_left() {
    let repo = Repo::new();
    let apply = |effect: &Effect| {
        OpenCode::new()
            .apply(&repo.env, &repo.place, effect)
            .unwrap();
        let before = records(&repo);
        OpenCode::new()
            .apply(&repo.env, &repo.place, effect)
            .unwrap();
        assert_eq!(records(&repo), before, "twice equals once");
    };
    let paths = Paths::new(&repo.place.root);
    apply(&mirrored(Status::Active, "2026-04-01T10:00:00.000Z"));
    let identity = read(paths.identity("fix-login", "ses_old"));
    assert_eq!(identity.text("status"), Some("active"));
    assert_eq!(
        identity.text("latestWorkingTreeFingerprint"),
        Some(repo.digest().as_str())
    );
    assert!(sidecar::is_complete(
        &read(paths.manifest("fix-login")),
        "fix-login"
    ));
    let workflow = read(paths.workflow("ses_old"));
    assert_eq!(workflow.text("phase"), Some("prepared"));
    assert_eq!(
        workflow
            .get("editBoundary")
            .and_then(Json::object)
            .and_then(|b| b.texts("allowedEditGlobs")),
        Some(vec!["src/**".to_owned()])
    );
    repo.sh("echo changed > src/a");
    apply(&mirrored(Status::Dirty, "2026-04-01T11:00:00.000Z"));
    // An older effect that comes late changes nothing.
    let before = records(&repo);
    OpenCode::new()
        .apply(
            &repo.env,
            &repo.place,
            &mirrored(Status::Active, "2026-04-01T10:30:00.000Z"),
        )
        .unwrap();
    assert_eq!(records(&repo), before);
    apply(&mirrored(Status::Completed, "2026-04-01T12:00:00.000Z"));
    let task = OpenCode::new()
        .tasks(&repo.env, &repo.place)
        .items
        .into_iter()
        .next()
        .unwrap();
    assert_eq!(task.status, Status::Completed);
    assert_eq!((task.title.as_str(), task.checks.len()), ("Fix login", 1));
}

#[test]
fn names_that_meet_are_a_conflict_and_overwrite_nothing() {
    let repo = Repo::new();
    repo.identity("fix-login", "SES_OLD", "active");
    let before = records(&repo);
    let outcome = OpenCode::new().apply(
        &repo.env,
        &repo.place,
        &mirrored(Status::Dirty, "2026-04-01T10:00:00.000Z"),
    );
    assert!(
        matches!(outcome, Err(AgentError::Conflict { .. })),
        "{outcome:?}"
    );
    assert_eq!(records(&repo), before);
}

const CRASH_ROOT: &str = "TAKEUP_TEST_CRASH_ROOT";

/// What the crash test starts again as a program of its own.
#[test]
fn crash_child() {
    let Some(root) = std::env::var_os(CRASH_ROOT).map(PathBuf::from) else {
        return;
    };
    let place = takeup_core::repository::Place {
        git_dir: root.join(".git"),
        common_dir: root.join(".git"),
        root,
    };
    let env = takeup_core::env::Env::of_process();
    OpenCode::new()
        .apply(&env, &place, &taken_up("ses_new"))
        .unwrap();
}

#[test]
fn a_crash_at_any_write_is_repaired_by_the_same_call() {
    let mut killed = 0;
    for moment in [
        "sidecar-write:middle",
        "sidecar-replace:before",
        "sidecar-replace:after",
    ] {
        for hit in 1.. {
            let repo = Repo::new();
            repo.sh("echo changed > src/a");
            repo.identity("fix-login", "ses_old", "active");
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "effects::tests::crash_child", "--nocapture"])
                .env_clear()
                .envs(repo.env.vars())
                .env(CRASH_ROOT, &repo.place.root)
                .env("TAKEUP_FAULT", format!("{moment}#{hit}=kill"))
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            let crashed = status.signal() == Some(9);
            assert!(crashed || status.success());
            // Nobody else gets it once it was given up, and nobody finds it without its parts.
            let open = OpenCode::new()
                .tasks(&repo.env, &repo.place)
                .items
                .into_iter()
                .filter(|task| !task.status.is_closed())
                .count();
            assert!(open <= 1, "{moment}#{hit}");
            unlock(&repo);
            OpenCode::new()
                .apply(&repo.env, &repo.place, &taken_up("ses_new"))
                .unwrap();
            let found = OpenCode::new().tasks(&repo.env, &repo.place);
            assert!(found.issues.is_empty());
            let mut states: Vec<_> = found
                .items
                .iter()
                .map(|task| {
                    (
                        task.session.id.as_str(),
                        task.status,
                        task.resumed_to.is_some(),
                    )
                })
                .collect();
            states.sort_unstable();
            assert_eq!(
                states,
                [
                    ("ses_new", Status::VerificationRequired, false),
                    ("ses_old", Status::Abandoned, true)
                ],
                "{moment}#{hit}"
            );
            let workflow = read(Paths::new(&repo.place.root).workflow("ses_new"));
            assert_eq!(workflow.text("resumedFromSessionId"), Some("ses_old"));
            if !crashed {
                break;
            }
            killed += 1;
        }
    }
    assert!(killed >= 18, "six records, three moments");
}

/// Makes the locks of the dead old enough to be removed.
fn unlock(repo: &Repo) {
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
    for entry in Paths::new(&repo.place.root)
        .sidecar()
        .read_dir()
        .unwrap()
        .chain(
            repo.place
                .root
                .join(".agent-context/runs/fix-login")
                .read_dir()
                .into_iter()
                .flatten(),
        )
    {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "lock")
        {
            std::fs::File::open(path)
                .unwrap()
                .set_modified(old)
                .unwrap();
        }
    }
}

#[test]
fn a_lock_that_stays_is_an_error_that_names_it() {
    // The wait itself is ten seconds, so only the end of it is looked at.
    let error = AgentError::from(SidecarError::Locked {
        path: PathBuf::from("/x.json.lock"),
        holder: "process 1".to_owned(),
    });
    assert_eq!(
        error.to_string(),
        "OpenCode is using it: /x.json.lock is locked by process 1"
    );
}

#[test]
fn a_session_of_another_agent_stays_that_agents() {
    let repo = Repo::new();
    let Effect::Mirrored {
        task_id,
        title,
        status,
        resumed_to,
        allowed,
        avoided,
        checks,
        at,
        ..
    } = mirrored(Status::Active, "2026-04-01T10:00:00.000Z")
    else {
        panic!("a mirrored task")
    };
    let session = SessionRef::new(
        takeup_core::ids::AgentId::new("jcode").unwrap(),
        SessionId::new("session_x").unwrap(),
    );
    let effect = Effect::Mirrored {
        task_id,
        title,
        session: session.clone(),
        status,
        resumed_to,
        allowed,
        avoided,
        checks,
        at,
    };
    OpenCode::new()
        .apply(&repo.env, &repo.place, &effect)
        .unwrap();
    let found = OpenCode::new().tasks(&repo.env, &repo.place);
    assert_eq!(found.items[0].session, session);
    // Clean, and equal all the same: which commit was HEAD is in the record.
    assert_eq!(found.items[0].content, takeup_core::verdict::Content::Equal);
}

#[test]
fn a_question_of_the_ledger_is_shown_and_its_answer_applied() {
    use takeup_core::review::{Decision, Review, ReviewState};
    let repo = Repo::new();
    let apply = |effect: &Effect| {
        OpenCode::new()
            .apply(&repo.env, &repo.place, effect)
            .unwrap();
        let before = records(&repo);
        OpenCode::new()
            .apply(&repo.env, &repo.place, effect)
            .unwrap();
        assert_eq!(records(&repo), before, "twice equals once");
    };
    apply(&mirrored(Status::Active, "2026-04-01T10:00:00.000Z"));
    let mut review = Review {
        review_id: takeup_core::ids::ReviewId::new("review-1").unwrap(),
        task_id: TaskId::new("fix-login").unwrap(),
        session: session("ses_old"),
        reason_code: sidecar::BOUNDARY.to_owned(),
        title: "May it edit more?".to_owned(),
        explanation: "It needs the token helper.".to_owned(),
        required_action: "decide".to_owned(),
        resume_condition: "decided".to_owned(),
        suggested_commands: Vec::new(),
        affected_files: vec!["lib/token.ts".to_owned()],
        current_boundary: vec!["src/**".to_owned()],
        requested_boundary: vec!["lib/token.ts".to_owned()],
        fingerprint: None,
        created_at: at("2026-04-01T11:00:00.000Z"),
        state: ReviewState::Pending,
    };
    let shown = |review: &Review, status| Effect::Reviewed {
        review: Box::new(review.clone()),
        session: session("ses_old"),
        status,
    };
    apply(&shown(&review, Status::HumanReview));
    let only = || {
        OpenCode::new()
            .tasks(&repo.env, &repo.place)
            .items
            .into_iter()
            .next()
            .unwrap()
    };
    assert_eq!(only().status, Status::HumanReview);
    assert_eq!(
        only().review.unwrap().review_id,
        review.review_id,
        "one question, one id"
    );
    review.state = ReviewState::Applied {
        decision: Decision {
            approved: true,
            by: "ana".to_owned(),
            session: session("ses_old"),
            at: at("2026-04-01T12:00:00.000Z"),
            remark: None,
            fingerprint: None,
        },
        at: at("2026-04-01T12:00:00.000Z"),
    };
    apply(&shown(&review, Status::Dirty));
    assert_eq!((only().status, only().review), (Status::Dirty, None));
    assert_eq!(only().allowed, ["lib/token.ts", "src/**"]);
}
