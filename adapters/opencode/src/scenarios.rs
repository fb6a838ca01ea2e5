//! Whole scenarios that were run with the plugin's own modules: its steps, its outcomes, its files afterwards.
//!
//! The records are read and written by this crate. Where the plugin breaks a promise of ours, [`difference`] names it, and
//! the test checks what happens instead.
use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use takeup_core::agent::{Agent as _, Effect, ForeignTask};
use takeup_core::ids::{Fingerprint, ReviewId, SessionId, SessionRef, TaskId};
use takeup_core::review::ReviewState;
use takeup_core::status::Status;
use takeup_core::time::{SystemClock, Time};
use takeup_core::verdict::Content;

use crate::OpenCode;
use crate::sidecar::{self, Collation, Draft, Json, Object, Paths, SidecarError, Step};
use crate::testing::Repo;

/// Why our outcome or files differ from the plugin's, by the number of the gap in the description of its format.
fn difference(scenario: &str) -> Option<&'static str> {
    Some(match scenario {
        "stale-inspect-marks-identity" | "commit-of-the-same-change-is-stale" => {
            "6: looking is not writing, so nothing is marked"
        }
        "resume-twice-same-source-and-target" => {
            "7: the same again is no error, and changes nothing"
        }
        "no-selector-takes-first-candidate" => "8: among several candidates one has to be named",
        "compatible-resume-without-source-workflow-and-session" => {
            "20: the boundary comes from the run instead of being empty"
        }
        "session-workflow-conflict-throws" => "10: a conflict is found before anything is written",
        "manifest-missing" => "the run is made anew from what the ledger knows",
        "manifest-corrupt" => "the damaged run is kept and reported, and the task is taken up",
        "manifest-without-required-commands" => "10: the run is completed first",
        "human-review-block-lost-when-tree-changes" => "1: a changed tree does not lift a question",
        _ => return None,
    })
}

fn fixture() -> Value {
    serde_json::from_slice(include_bytes!("../tests/fixtures/opencode-resume.json")).unwrap()
}

fn object(value: &Value) -> Object {
    let Json::Object(object) = Json::parse(value.to_string().as_bytes()).unwrap() else {
        panic!("an object")
    };
    object
}

fn session_ref(id: &str) -> SessionRef {
    SessionRef::new(crate::agent_id(), SessionId::new(id).unwrap())
}

fn put(path: &Path, change: impl FnOnce(Option<&Object>) -> Option<Object>) {
    sidecar::update(path, &SystemClock, |found| {
        Ok::<_, SidecarError>(change(found))
    })
    .unwrap();
}

struct Run {
    repo: Repo,
    paths: Paths,
    /// Steps run so far, so that each has a moment of its own.
    moment: i64,
    request: String,
}

impl Run {
    fn new() -> Self {
        let repo = Repo::empty();
        for line in fixture()["base_state"].as_array().unwrap() {
            repo.sh(line.as_str().unwrap());
        }
        let paths = Paths::new(&repo.place.root);
        Self {
            repo,
            paths,
            moment: 0,
            request: String::new(),
        }
    }

    fn now(&mut self) -> Time {
        self.moment += 1;
        Time::from_millis(
            "2026-04-01T10:00:00.000Z".parse::<Time>().unwrap().millis() + self.moment,
        )
    }

    /// Fills the placeholders of arguments.
    fn filled(&self, value: &Value) -> Value {
        let text = value
            .to_string()
            .replace("$ROOT", self.repo.place.root.to_str().unwrap())
            .replace("$RID", &self.request)
            .replace("$FP", &self.repo.digest());
        serde_json::from_str(&text).unwrap()
    }

    fn tasks(&self) -> Vec<ForeignTask> {
        OpenCode::new()
            .tasks(&self.repo.env, &self.repo.place)
            .items
    }

    fn apply(&self, effect: &Effect) -> Result<(), String> {
        let once = OpenCode::new()
            .apply(&self.repo.env, &self.repo.place, effect)
            .map_err(|error| error.to_string());
        if once.is_ok() {
            let before = self.files();
            OpenCode::new()
                .apply(&self.repo.env, &self.repo.place, effect)
                .unwrap();
            assert_eq!(self.files(), before, "twice equals once");
        }
        once
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.repo.place.root.join(".agent-context")];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    let name = entry
                        .path()
                        .strip_prefix(&self.repo.place.root)
                        .unwrap()
                        .to_owned();
                    files.insert(
                        name.to_str().unwrap().to_owned(),
                        std::fs::read(entry.path()).unwrap(),
                    );
                }
            }
        }
        files
    }

    /// One of the upstream writers.
    fn write(&mut self, operation: &str, args: &Value) -> Option<Value> {
        let text = |key: &str| args[key].as_str();
        match operation {
            "write_identity" => {
                let path = self
                    .paths
                    .identity(text("taskId").unwrap(), text("sessionId").unwrap());
                put(&path, |found| {
                    let revision = found.and_then(Object::revision).unwrap_or(0) + 1;
                    Some(object(args).with("revision", revision))
                });
            }
            "write_session" => {
                for path in [
                    self.paths.session(text("sessionId")),
                    self.paths.session(None),
                ] {
                    put(&path, |found| {
                        Some(sidecar::session(
                            found,
                            text("taskId").unwrap(),
                            text("task").unwrap(),
                            text("type").unwrap(),
                            text("sessionId").unwrap(),
                            text("updatedAt").unwrap(),
                        ))
                    });
                }
            }
            "write_evaluate" => {
                let path = self.paths.evaluate(text("sessionId"));
                put(&path, |_| Some(object(args).with("revision", 1)));
            }
            "init_workflow" => {
                let session = text("sessionId").unwrap();
                let digest = self.repo.digest();
                let now = self.now().to_string();
                put(&self.paths.workflow(session), |found| {
                    found
                        .is_none()
                        .then(|| sidecar::new_workflow(session, &digest, &now))
                });
            }
            "update_workflow" => {
                self.write("init_workflow", args);
                let session = text("sessionId").unwrap();
                let update = &args["update"];
                let boundary = object(
                    &update["editBoundary"]
                        .as_object()
                        .map_or_else(|| json!({}), |b| json!(b)),
                );
                let globs = |key: &str| boundary.texts(key).unwrap_or_default();
                let (allowed, avoided) = (globs("allowedEditGlobs"), globs("avoidEditGlobs"));
                let tests: Vec<String> =
                    serde_json::from_value(update["requiredTests"].clone()).unwrap_or_default();
                let digest = self.repo.digest();
                let now = self.now().to_string();
                let step = Step {
                    phase: update["phase"].as_str().unwrap(),
                    task: update["taskId"].as_str(),
                    context: None,
                    boundary: update["editBoundary"]
                        .is_object()
                        .then_some((allowed.as_slice(), avoided.as_slice())),
                    boundary_revision: update["boundaryRevision"].as_u64(),
                    tests: update["requiredTests"]
                        .is_array()
                        .then_some(tests.as_slice()),
                    event: update["eventKey"].as_str().unwrap(),
                };
                put(&self.paths.workflow(session), |found| {
                    step.over(found.unwrap(), &digest, &now)
                });
            }
            "upsert_human_review" => {
                let order = Collation::new().unwrap();
                let list = |key: &str| -> Option<Vec<String>> {
                    serde_json::from_value(args[key].clone()).ok()
                };
                let (files, current) = (
                    list("affectedFiles").unwrap_or_default(),
                    list("currentBoundary").unwrap_or_default(),
                );
                let requested = list("requestedBoundary");
                let draft = Draft {
                    task: text("taskId"),
                    session: text("sessionId"),
                    reason: text("reasonCode").unwrap(),
                    title: "",
                    explanation: text("explanation").unwrap(),
                    required_action: "",
                    resume_condition: "",
                    commands: &[],
                    files: &files,
                    current: &current,
                    requested: requested.as_deref(),
                    boundary_revision: args["boundaryRevision"].as_u64(),
                    at: text("now").unwrap(),
                };
                self.request = draft.id(&order);
                let path = self.paths.review(text("taskId"), text("sessionId"));
                put(&path, |found| draft.over(found, &order));
                return Some(
                    json!({"requestId": self.request, "revision": 1, "status": "pending"}),
                );
            }
            other => panic!("unknown operation {other}"),
        }
        None
    }

    /// The plugin's rules over what our reader found: what its tool would say. No rule of ours is in here.
    fn plugin_says(&self, args: &Value) -> (Value, Vec<ForeignTask>) {
        let own = args["sessionId"].as_str();
        let rank = |word: &str| {
            [
                "resume-verification",
                "stale-task",
                "not-resumable",
                "mismatched-repository",
            ]
            .iter()
            .position(|known| *known == word)
        };
        let mut found: Vec<(ForeignTask, &str, bool)> = self
            .tasks()
            .into_iter()
            .filter(|task| Some(task.session.id.as_str()) != own)
            .map(|task| {
                let equal = task.fingerprint == self.repo.digest();
                let word = if !task.root_matches {
                    "mismatched-repository"
                } else if task.status.is_closed() {
                    "not-resumable"
                } else if equal && task.status != Status::StaleTask {
                    "resume-verification"
                } else {
                    "stale-task"
                };
                (task, word, equal)
            })
            .collect();
        found.sort_by(|a, b| {
            rank(a.1)
                .cmp(&rank(b.1))
                .then_with(|| b.0.updated_at.cmp(&a.0.updated_at))
                .then_with(|| a.0.task_id.cmp(&b.0.task_id))
        });
        let candidates: Vec<Value> = found
            .iter()
            .map(|(task, word, equal)| {
                json!({
                    "taskId": task.task_id, "sessionId": task.session.id, "status": task.status,
                    "compatibility": word, "repositoryMatches": task.root_matches, "workingTreeCompatible": equal,
                })
            })
            .collect();
        (
            json!(candidates),
            found.into_iter().map(|(task, ..)| task).collect(),
        )
    }

    /// Takes up what the arguments name; an error is a refusal.
    fn resume(&mut self, args: &Value) -> Result<(), String> {
        let text = |key: &str| args[key].as_str();
        if text("action") != Some("resume") || args["confirmed"] != json!(true) {
            return Err("not confirmed".to_owned());
        }
        let target = text("sessionId").ok_or("no session")?;
        let fits = |task: &&ForeignTask| {
            text("taskId").is_none_or(|id| task.task_id.as_str() == id)
                && text("sourceSessionId").is_none_or(|id| task.session.id.as_str() == id)
                && task.session.id.as_str() != target
        };
        let all = self.tasks();
        let repeated = all.iter().filter(fits).any(|task| {
            task.resumed_to
                .as_ref()
                .is_some_and(|to| to.as_str() == target)
        });
        let open: Vec<&ForeignTask> = all
            .iter()
            .filter(fits)
            .filter(|task| !task.status.is_closed() || repeated)
            .collect();
        let [task] = open.as_slice() else {
            return Err(format!("{} candidates", open.len()));
        };
        if !task.root_matches {
            return Err("other repository".to_owned());
        }
        if task.review.is_some() || task.status == Status::HumanReview {
            return Err("human review".to_owned());
        }
        let compatible = repeated || task.fingerprint == self.repo.digest();
        let effect = Effect::TakenUp {
            task_id: task.task_id.clone(),
            title: task.title.clone(),
            source: task.session.clone(),
            target: session_ref(target),
            fingerprint: Fingerprint::new("0".repeat(40)).unwrap(),
            compatible,
            at: self.now(),
        };
        self.apply(&effect)
    }

    fn review(&mut self, args: &Value) -> Result<(), String> {
        let text = |key: &str| args[key].as_str();
        let approved = match text("action") {
            Some("approve") => true,
            Some("reject") => false,
            _ => return Err("no such action".to_owned()),
        };
        if args["confirmed"] != json!(true) {
            return Err("not confirmed".to_owned());
        }
        let task = TaskId::new(sidecar::slug(text("taskId").unwrap())).unwrap();
        let review = self
            .tasks()
            .into_iter()
            .filter(|found| found.task_id == task)
            .find_map(|found| found.review)
            .filter(|review| review.state == ReviewState::Pending)
            .ok_or("no question")?;
        let review_id = text("requestId").map_or(review.review_id, |id| ReviewId::new(id).unwrap());
        let effect = Effect::ForeignReviewDecided {
            task_id: task,
            review_id,
            approved,
            session: session_ref(text("sessionId").unwrap()),
            at: self.now(),
        };
        self.apply(&effect)
    }

    fn next(&mut self, args: &Value, expected: &Value) {
        // Whether a task may be finished is the engine's question; the records follow its answer.
        if expected["nextAction"] == json!("finalize") {
            let text = |key: &str| args[key].as_str().unwrap();
            let effect = Effect::Mirrored {
                task_id: TaskId::new(text("taskId")).unwrap(),
                title: "Fix login timeout".to_owned(),
                session: session_ref(text("sessionId")),
                status: Status::Completed,
                resumed_to: None,
                allowed: Vec::new(),
                avoided: Vec::new(),
                checks: Vec::new(),
                at: self.now(),
            };
            self.apply(&effect).unwrap();
        }
    }
}

/// Tells whether everything in `expected` is so in `found`.
fn holds(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected
            .iter()
            .all(|(key, value)| found.get(key).is_some_and(|found| holds(found, value))),
        _ => found == expected,
    }
}

fn run(scenario: &Value) {
    let id = scenario["id"].as_str().unwrap();
    let differs = difference(id);
    let mut run = Run::new();
    let mut before_last = BTreeMap::new();
    for step in scenario["steps"].as_array().unwrap() {
        before_last = run.files();
        if let Some(path) = step["write"].as_str() {
            let path = run.repo.place.root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = step["text"].as_str().map_or_else(
                || Json::Object(object(&run.filled(&step["json"]))).pretty(),
                str::to_owned,
            );
            takeup_core::files::write_atomic(&path, text.as_bytes(), 0o644).unwrap();
            continue;
        }
        if let Some(script) = step["sh"].as_str() {
            run.repo.sh(script);
            continue;
        }
        let args = run.filled(&step["args"]);
        let expected = &step["expect"];
        match step["op"].as_str().unwrap() {
            "resume" if args["action"] == json!("inspect") => {
                let before = run.files();
                let (mut candidates, tasks) = run.plugin_says(&args);
                let mut wanted = expected["resume"]["candidates"].clone();
                if differs.is_some() {
                    // The plugin marked them, so its second look finds the mark.
                    for list in [&mut candidates, &mut wanted] {
                        for candidate in list.as_array_mut().unwrap() {
                            candidate["status"] = json!("");
                            candidate["workingTreeCompatible"] = json!("");
                        }
                    }
                }
                assert_eq!(candidates, wanted, "{id}");
                assert_eq!(run.files(), before, "{id}: looking is not writing");
                for task in tasks {
                    // Never equal where the plugin is blind.
                    assert!(
                        task.fingerprint != crate::CLEAN_TREE || task.content != Content::Equal,
                        "{id}: a clean tree is no proof"
                    );
                }
            }
            "resume" => {
                let outcome = run.resume(&args);
                let taken = matches!(
                    expected["resume"]["status"].as_str(),
                    Some("resumed" | "stale-task")
                );
                if differs.is_none() {
                    assert_eq!(outcome.is_ok(), taken, "{id}: {outcome:?}");
                }
            }
            "human_review" => {
                let outcome = run.review(&args);
                assert_eq!(
                    outcome.is_ok(),
                    expected["ok"] == json!(true),
                    "{id}: {outcome:?}"
                );
            }
            "next" => run.next(&args, expected),
            operation => {
                let outcome = run.write(operation, &args);
                if let Some(outcome) = outcome {
                    assert_eq!(&outcome, expected, "{id}");
                }
            }
        }
    }
    if differs.is_some() {
        check_difference(id, &run, &before_last);
        return;
    }
    let root = run.repo.place.root.to_str().unwrap();
    let files = run.files();
    for (name, expected) in scenario["files_after"].as_object().unwrap() {
        let bytes = files.get(name).unwrap_or_else(|| panic!("{id}: no {name}"));
        if expected == "unparsable" {
            assert!(Json::parse(bytes).is_err());
            continue;
        }
        let mut text = expected.to_string().replace("$ROOT", root);
        for (placeholder, digest) in scenario["fingerprints"].as_object().unwrap() {
            text = text.replace(placeholder, digest.as_str().unwrap());
        }
        let expected: Value = serde_json::from_str(&text).unwrap();
        let found: Value = serde_json::from_slice(bytes).unwrap();
        assert!(
            holds(&found, &expected),
            "{id}: {name}\nfound {found:#}\nexpected {expected:#}"
        );
        assert_eq!(
            String::from_utf8(bytes.clone()).unwrap(),
            Json::parse(bytes).unwrap().pretty(),
            "{id}: {name} has the plugin's text form"
        );
    }
    let known = scenario["files_after"].as_object().unwrap();
    for name in files.keys().filter(|name| !name.ends_with(".gitignore")) {
        assert!(known.contains_key(name), "{id}: {name} is not the plugin's");
    }
}

/// What happens with us where the plugin breaks a promise.
fn check_difference(id: &str, run: &Run, before_last: &BTreeMap<String, Vec<u8>>) {
    let identity = |session: &str| -> Option<Value> {
        let path = run.paths.identity("fix-login-timeout", session);
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    };
    match id {
        "stale-inspect-marks-identity" | "commit-of-the-same-change-is-stale" => {
            let old = identity("ses_old").unwrap();
            assert_eq!(
                (&old["status"], &old["revision"]),
                (&json!("active"), &json!(1)),
                "{id}"
            );
            assert!(
                run.tasks()
                    .iter()
                    .all(|task| task.content == Content::Differs)
            );
        }
        "session-workflow-conflict-throws"
        | "no-selector-takes-first-candidate"
        | "human-review-block-lost-when-tree-changes"
        | "resume-twice-same-source-and-target" => {
            assert_eq!(&run.files(), before_last, "{id}: nothing was written");
        }
        "compatible-resume-without-source-workflow-and-session"
        | "manifest-missing"
        | "manifest-corrupt"
        | "manifest-without-required-commands" => {
            assert_eq!(
                identity("ses_old").unwrap()["resumedToSessionId"],
                json!("ses_new"),
                "{id}"
            );
            assert_eq!(
                identity("ses_new").unwrap()["status"],
                json!("verification-required"),
                "{id}"
            );
            let workflow: Value =
                serde_json::from_slice(&std::fs::read(run.paths.workflow("ses_new")).unwrap())
                    .unwrap();
            let manifest = run.paths.manifest("fix-login-timeout");
            if id == "manifest-corrupt" {
                assert_eq!(std::fs::read(manifest).unwrap(), b"{broken");
                return;
            }
            let manifest: Value =
                serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
            assert!(
                sidecar::is_complete(&object(&manifest), "fix-login-timeout"),
                "{id}"
            );
            assert_eq!(
                workflow["editBoundary"]["allowedEditGlobs"], manifest["allowedEditGlobs"],
                "{id}"
            );
        }
        other => panic!("no check for {other}"),
    }
}

#[test]
fn the_plugins_scenarios() {
    let fixture = fixture();
    let scenarios = fixture["scenarios"].as_array().unwrap();
    for scenario in scenarios {
        run(scenario);
    }
    assert_eq!(scenarios.len(), 37);
}

#[test]
fn approving_from_another_session_moves_the_task_there() {
    let mut run = Run::new();
    let fixture = fixture();
    let scenario = fixture["scenarios"]
        .as_array()
        .unwrap()
        .iter()
        .find(|scenario| scenario["id"] == json!("human-review-approve-same-session"))
        .unwrap();
    for step in scenario["steps"].as_array().unwrap() {
        let args = run.filled(&step["args"]);
        if let Some(path) = step["write"].as_str() {
            let path = run.repo.place.root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            takeup_core::files::write_atomic(&path, step["json"].to_string().as_bytes(), 0o644)
                .unwrap();
        } else if step["op"] == json!("human_review") {
            run.review(&json!({
                "action": "approve", "confirmed": true, "taskId": "fix-login-timeout", "sessionId": "ses_new",
            }))
            .unwrap();
        } else {
            run.write(step["op"].as_str().unwrap(), &args);
        }
    }
    let read = |path: std::path::PathBuf| -> Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let old = read(run.paths.identity("fix-login-timeout", "ses_old"));
    assert_eq!(old["status"], json!("abandoned"));
    assert_eq!(old["resumedToSessionId"], json!("ses_new"));
    let new = read(run.paths.identity("fix-login-timeout", "ses_new"));
    assert_eq!(
        (&new["status"], &new["revision"]),
        (&json!("dirty"), &json!(1))
    );
    let workflow = read(run.paths.workflow("ses_new"));
    assert_eq!(workflow["phase"], json!("editing"));
    assert_eq!(workflow["boundaryRevision"], json!(2));
    assert_eq!(
        workflow["editBoundary"]["allowedEditGlobs"],
        json!(["packages/shared/token.ts", "src/login.ts"])
    );
    assert_eq!(workflow["resumedFromSessionId"], json!("ses_old"));
    let request = read(run.paths.review(Some("fix-login-timeout"), Some("ses_old")));
    assert_eq!(
        (&request["status"], &request["boundaryRevision"]),
        (&json!("resumed"), &json!(2))
    );
}
