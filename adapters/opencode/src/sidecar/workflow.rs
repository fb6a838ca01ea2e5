//! The plugin's record of what a session is doing, of the session itself, and of the run of a task.
use super::json::{Json, Object};
use super::names::sha256_hex;

/// Makes the workflow of a session that has just begun.
pub fn new_workflow(session: &str, fingerprint: &str, at: &str) -> Object {
    Object::default()
        .with("schemaVersion", 1)
        .with("revision", 1)
        .with("sessionId", session)
        .with("phase", "created")
        .with("taskId", Json::Null)
        .with("contextFingerprint", Json::Null)
        .with("initialWorkingTreeHash", fingerprint)
        .with("currentWorkingTreeHash", fingerprint)
        .with("editBoundary", boundary(&[], &[]))
        .with("boundaryRevision", 1)
        .with("requiredTests", Json::List(Vec::new()))
        .with("lastEventKey", Json::Null)
        .with("sourceChanged", false)
        .with("updatedAt", at)
}

/// Writes a boundary.
fn boundary(allowed: &[String], avoided: &[String]) -> Json {
    Json::Object(
        Object::default()
            .with("allowedEditGlobs", allowed)
            .with("avoidEditGlobs", avoided),
    )
}

/// The label the plugin gives to the context of a task.
pub fn context_label(root: &str, task: &str) -> String {
    sha256_hex(format!("{root}:{task}"))
}

/// One step of a workflow.
#[derive(Clone, Debug, Default)]
pub struct Step<'a> {
    /// The phase.
    pub phase: &'a str,
    /// The task.
    pub task: Option<&'a str>,
    /// The label of its context.
    pub context: Option<String>,
    /// Globs it may edit and must avoid.
    pub boundary: Option<(&'a [String], &'a [String])>,
    /// The revision of the boundary.
    pub boundary_revision: Option<u64>,
    /// Commands that have to pass.
    pub tests: Option<&'a [String]>,
    /// What happened; the same again changes nothing.
    pub event: &'a str,
}

impl Step<'_> {
    /// Applies the step. `None` where the last event is this one.
    pub fn over(&self, workflow: &Object, fingerprint: &str, at: &str) -> Option<Object> {
        if workflow.text("lastEventKey") == Some(self.event) {
            return None;
        }
        let mut next = workflow.clone();
        next.set("revision", workflow.revision().unwrap_or(0) + 1);
        next.set("phase", self.phase);
        next.set_some("taskId", self.task);
        next.set_some("contextFingerprint", self.context.clone());
        if let Some((allowed, avoided)) = self.boundary {
            next.set("editBoundary", boundary(allowed, avoided));
        }
        next.set_some("boundaryRevision", self.boundary_revision);
        next.set_some("requiredTests", self.tests);
        next.set("eventKey", self.event);
        next.set("lastEventKey", self.event);
        observe(&mut next, fingerprint);
        next.set("updatedAt", at);
        Some(next)
    }
}

/// Notes the present fingerprint; a workflow whose source once changed stays changed.
fn observe(workflow: &mut Object, fingerprint: &str) {
    let changed = workflow.get("sourceChanged") == Some(&Json::Bool(true))
        || workflow.text("initialWorkingTreeHash") != Some(fingerprint);
    workflow.set("currentWorkingTreeHash", fingerprint);
    workflow.set("sourceChanged", changed);
}

/// What a session that takes a task up begins with.
#[derive(Debug)]
pub struct Resumed<'a> {
    /// The session that takes up.
    pub target: &'a str,
    /// The session that left.
    pub source: &'a str,
    /// The task.
    pub task: &'a str,
    /// The root.
    pub root: &'a str,
    /// The fingerprint when the task began.
    pub base: &'a str,
    /// The present one.
    pub fingerprint: &'a str,
    /// The workflow of the session that left.
    pub left: Option<&'a Object>,
    /// The run manifest: boundary and tests where the workflow says nothing. (The plugin then begins without any.)
    pub manifest: Option<&'a Object>,
    /// What was there to choose from.
    pub candidates: Json,
    /// Now.
    pub at: &'a str,
}

impl Resumed<'_> {
    /// Writes the workflow over what the session has. `None` where it already says so.
    pub fn over(&self, found: Option<&Object>) -> Option<Object> {
        let same = |object: &Object| {
            object.text("taskId") == Some(self.task)
                && object.text("resumedFromSessionId") == Some(self.source)
        };
        if found.is_some_and(same) {
            return None;
        }
        let left = |key: &str| self.left.and_then(|object| object.get(key)).cloned();
        let of_manifest = |key: &str| {
            self.manifest
                .and_then(|manifest| manifest.texts(key))
                .unwrap_or_default()
        };
        let initial = self
            .left
            .and_then(|object| object.text("initialWorkingTreeHash"))
            .unwrap_or(self.base);
        let revision = found.and_then(Object::revision).unwrap_or(0) + 1;
        let mut next = Object::default()
            .with("schemaVersion", 1)
            .with("revision", revision)
            .with("sessionId", self.target)
            .with("phase", "evaluated")
            .with("taskId", self.task)
            .with(
                "contextFingerprint",
                left("contextFingerprint")
                    .filter(|label| label.text().is_some())
                    .unwrap_or_else(|| context_label(self.root, self.task).into()),
            )
            .with("initialWorkingTreeHash", initial)
            .with("currentWorkingTreeHash", self.fingerprint)
            .with(
                "editBoundary",
                left("editBoundary").unwrap_or_else(|| {
                    boundary(
                        &of_manifest("allowedEditGlobs"),
                        &of_manifest("avoidEditGlobs"),
                    )
                }),
            )
            .with(
                "boundaryRevision",
                left("boundaryRevision")
                    .or_else(|| {
                        self.manifest
                            .and_then(|m| m.get("boundaryRevision"))
                            .cloned()
                    })
                    .unwrap_or_else(|| 1.into()),
            )
            .with("resumeCandidates", self.candidates.clone())
            .with(
                "requiredTests",
                left("requiredTests")
                    .unwrap_or_else(|| of_manifest("requiredCommands").as_slice().into()),
            )
            .with("lastEventKey", self.event())
            .with("sourceChanged", initial != self.fingerprint)
            .with("resumedFromSessionId", self.source)
            .with("updatedAt", self.at);
        // Keys of others stay; the event of what the session did before does not.
        if let Some(found) = found {
            for (key, value) in found.entries() {
                if key != "eventKey" && next.get(key).is_none() {
                    next.set(key, value.clone());
                }
            }
        }
        Some(next)
    }

    fn event(&self) -> String {
        format!(
            "resume:{}:{}:{}",
            self.source, self.target, self.fingerprint
        )
    }
}

/// Notes the candidates in a workflow. `None` where they are there already.
pub fn with_candidates(workflow: &Object, candidates: Json, at: &str) -> Option<Object> {
    if workflow.get("resumeCandidates") == Some(&candidates) {
        return None;
    }
    let mut next = workflow.clone();
    next.set("revision", workflow.revision().unwrap_or(0) + 1);
    next.set("resumeCandidates", candidates);
    next.set("updatedAt", at);
    Some(next)
}

/// Makes the record of a session. Everything but the revision is replaced.
pub fn session(
    found: Option<&Object>,
    task: &str,
    title: &str,
    kind: &str,
    session: &str,
    at: &str,
) -> Object {
    Object::default()
        .with("taskId", task)
        .with("task", title)
        .with("type", kind)
        .with("sessionId", session)
        .with("updatedAt", at)
        .with("schemaVersion", 1)
        .with(
            "revision",
            found.and_then(Object::revision).unwrap_or(0) + 1,
        )
}

/// The lists without which the plugin fails on a manifest after it has changed everything else.
const NEEDED: &[&str] = &[
    "mustInspect",
    "requiredCommands",
    "allowedEditGlobs",
    "avoidEditGlobs",
    "files",
];

/// Tells whether the plugin can work with a manifest.
pub fn is_complete(manifest: &Object, task: &str) -> bool {
    manifest.text("id") == Some(task)
        && manifest.text("task").is_some()
        && manifest.text("type").is_some()
        && NEEDED.iter().all(|key| {
            manifest
                .get(key)
                .is_some_and(|value| value.list().is_some())
        })
}

/// Makes a manifest, or completes one.
pub fn manifest(
    found: Option<&Object>,
    task: &str,
    title: &str,
    lists: (&[String], &[String], &[String]),
) -> Object {
    let (allowed, avoided, checks) = lists;
    let file = format!(".agent-context/runs/{task}/run.json");
    let whole = Object::default()
        .with("id", task)
        .with("task", title)
        .with("type", "auto")
        .with("mustInspect", Json::List(Vec::new()))
        .with("allowedEditGlobs", allowed)
        .with("avoidEditGlobs", avoided)
        .with("relatedTests", Json::List(Vec::new()))
        .with("requiredCommands", checks)
        .with("requiredRegressionTests", Json::List(Vec::new()))
        .with("regressionMatches", Json::List(Vec::new()))
        .with("riskLevel", "medium")
        .with(
            "contextBudget",
            Json::Object(Object::default().with("maxTokens", 0).with("usedTokens", 0)),
        )
        .with(
            "impact",
            Json::Object(
                Object::default()
                    .with("base", "HEAD")
                    .with("changedFiles", Json::List(Vec::new()))
                    .with("directDependents", Json::List(Vec::new()))
                    .with("transitiveDependents", Json::List(Vec::new()))
                    .with("risk", "Medium"),
            ),
        )
        .with(
            "testSelection",
            Json::Object(
                Object::default()
                    .with("minimalTests", Json::List(Vec::new()))
                    .with("recommendedRegressionTests", Json::List(Vec::new()))
                    .with("fullConfidenceCommands", Json::List(Vec::new())),
            ),
        )
        .with("traceFile", format!(".agent-context/traces/{task}.json"))
        .with("files", std::slice::from_ref(&file))
        .with("boundaryRevision", 1);
    let Some(found) = found else {
        return whole;
    };
    let mut next = found.clone();
    for (key, value) in whole.entries() {
        let damaged =
            NEEDED.contains(&key) && next.get(key).is_none_or(|value| value.list().is_none());
        if next.get(key).is_none() || damaged {
            next.set(key, value.clone());
        }
    }
    next
}
