use std::collections::BTreeMap;

use super::*;
use crate::processes::fake::Fake;
use crate::vectors::{expected, fixture};

/// The tasks of the vectors by their label, out of a copy that belongs to the caller.
fn tasks(processes: &Fake) -> (BTreeMap<String, BackgroundTask>, Vec<Issue>) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("jcode-bg-tasks");
    std::fs::create_dir_all(&to).unwrap();
    for entry in std::fs::read_dir(fixture("tmpdir/jcode-bg-tasks")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    let mut found = Found::default();
    list_folder(&to, processes, &mut found);
    let names = expected("names.json");
    let labels: BTreeMap<&str, &str> = names["tasks"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(label, id)| (id.as_str().unwrap(), label.as_str()))
        .collect();
    let tasks = found
        .items
        .into_iter()
        .map(|task| (labels[task.id.as_str()].to_owned(), task))
        .collect();
    (tasks, found.issues)
}

fn init() -> Fake {
    Fake::default().running(1, "systemd", "2026-04-01T00:00:00Z")
}

#[test]
fn every_task_stands_as_it_is() {
    use TaskState::{Cancelled, Completed, Failed, Lost, Superseded, Unknown};
    let (tasks, issues) = tasks(&init());
    let right = [
        ("cancelled", Cancelled, None, None),
        ("completed", Completed, Some(0), None),
        ("detached_fail", Failed, Some(7), Some("running")),
        ("detached_nocode", Lost, None, Some("running")),
        ("detached_ok", Completed, Some(0), Some("running")),
        ("detached_shutdown", Completed, Some(0), Some("running")),
        ("failed", Failed, Some(3), None),
        ("legacy", Unknown, None, None),
        ("orphan", Lost, None, Some("running")),
        ("output_only", Completed, Some(0), None),
        ("pidone", Lost, None, Some("running")),
        ("promoted", Failed, Some(7), Some("completed")),
        ("reload", Failed, None, None),
        ("spoofed", Lost, None, Some("running")),
        ("stall", Lost, None, Some("running")),
        ("superseded", Superseded, None, None),
        ("timeout", Failed, Some(124), None),
        ("torn", Unknown, None, None),
    ];
    assert_eq!(tasks.len(), right.len());
    for (label, state, code, recorded) in right {
        let task = &tasks[label];
        assert_eq!(
            (task.state, task.exit_code, task.recorded.as_deref()),
            (state, code, recorded),
            "{label}: {}",
            task.proof
        );
    }
    assert_eq!(issues.len(), 1, "the torn one is named");
    let torn = &tasks["torn"];
    assert_eq!(
        torn.label.as_deref(),
        Some("long benchmark"),
        "what it still says is kept"
    );
    assert!(
        tasks["completed"]
            .progress
            .as_ref()
            .is_some_and(|p| !p.guessed)
    );
    assert!(tasks["stall"].progress.as_ref().is_some_and(|p| p.guessed));
}

/// Where jcode's own answer is right, every field that both have is the same.
#[test]
fn what_jcode_says_rightly_is_said_the_same() {
    let (tasks, _) = tasks(&init());
    let by_id: BTreeMap<&str, &BackgroundTask> = tasks
        .values()
        .map(|task| (task.id.as_str(), task))
        .collect();
    let wrong = ["promoted", "spoofed", "pidone", "legacy"].map(|label| tasks[label].id.clone());
    let mut compared = 0;
    for theirs in expected("tasks-after-list.json").as_array().unwrap() {
        let ours = by_id[theirs["task_id"].as_str().unwrap()];
        assert_eq!(ours.label.as_deref(), theirs["display_name"].as_str());
        assert_eq!(ours.tool.as_deref(), theirs["tool_name"].as_str());
        assert_eq!(
            ours.session.as_ref().map(SessionId::as_str),
            theirs["session_id"].as_str()
        );
        assert_eq!(ours.pid.map(u64::from), theirs["pid"].as_u64());
        assert_eq!(ours.detached, theirs["detached"].as_bool().unwrap());
        let started = theirs["started_at"].as_str().unwrap().parse().ok();
        assert_eq!(ours.started_at, started);
        if wrong.contains(&ours.id) {
            continue;
        }
        compared += 1;
        assert_eq!(ours.exit_code.map(i64::from), theirs["exit_code"].as_i64());
        let state = match ours.state {
            TaskState::Completed => "completed",
            TaskState::Superseded => "superseded",
            TaskState::Failed | TaskState::Cancelled | TaskState::Lost => "failed",
            TaskState::Running | TaskState::Unknown => "?",
        };
        assert_eq!(Some(state), theirs["status"].as_str(), "{}", ours.id);
    }
    assert_eq!(compared, 12);
}

#[test]
fn a_living_process_is_known_by_its_start() {
    let at = "2026-05-01T21:20:00Z";
    let state = |processes: &Fake| tasks(processes).0["spoofed"].state;
    assert_eq!(
        state(&Fake::default().running(99_999_997, "bash", at)),
        TaskState::Running
    );
    let late = "2026-05-01T22:00:00Z";
    assert_eq!(
        state(&Fake::default().running(99_999_997, "bash", late)),
        TaskState::Lost
    );
    let early = "2026-05-01T20:00:00Z";
    assert_eq!(
        state(&Fake::default().running(99_999_997, "bash", early)),
        TaskState::Lost
    );
    let orphan = |processes: &Fake| tasks(processes).0["orphan"].state;
    let owner = Fake::default().running(99_999_996, "jcode", early);
    assert_eq!(
        orphan(&owner),
        TaskState::Running,
        "an owner is older than its task"
    );
    let other = Fake::default().running(99_999_996, "jcode", late);
    assert_eq!(orphan(&other), TaskState::Lost);
    let booted = Fake::default().booted("2026-05-02T00:00:00Z");
    assert_eq!(tasks(&booted).0["legacy"].state, TaskState::Lost);
}

#[test]
fn folders_of_others_and_links_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    std::fs::create_dir_all(&real).unwrap();
    let link = folder.path().join("jcode-bg-tasks");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let mut found = Found::default();
    list_folder(&link, &Fake::default(), &mut found);
    assert_eq!(
        found.issues.first().map(|issue| issue.kind),
        Some(IssueKind::Symlink)
    );
    std::os::unix::fs::symlink("/etc/passwd", real.join("aaaa.output")).unwrap();
    let mut found = Found::default();
    list_folder(&real, &Fake::default(), &mut found);
    assert_eq!(
        found.issues.first().map(|issue| issue.kind),
        Some(IssueKind::Symlink)
    );
    assert!(found.items.is_empty());
    // Giving a folder away needs the rights of root.
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give a folder to another user");
        return;
    }
    std::os::unix::fs::chown(&real, Some(65_534), None).unwrap();
    let mut found = Found::default();
    list_folder(&real, &Fake::default(), &mut found);
    assert_eq!(
        found.issues.first().map(|issue| issue.kind),
        Some(IssueKind::ForeignOwner)
    );
}

#[test]
fn the_folders_are_those_of_the_description() {
    let env = Env::of(
        [("HOME", "/h"), ("TMPDIR", "/t"), ("JCODE_HOME", "/j")],
        "/",
    );
    let folders: Vec<String> = folders(&env)
        .iter()
        .map(|f| f.display().to_string())
        .collect();
    assert_eq!(
        folders,
        [
            "/t/jcode-bg-tasks",
            "/tmp/jcode-bg-tasks",
            "/j/scratch/jcode-bg-tasks",
            "/j/tasks"
        ]
    );
}
