//! The plugin's question to a person.
use std::path::{Path, PathBuf};

use takeup_core::ids::{AgentId, ReviewId, SessionId, SessionRef, TaskId};
use takeup_core::review::{Decision, Review, ReviewState};
use takeup_core::time::Time;

use super::json::{Json, Object};
use super::names::{Collation, short_hash};

/// The schema of questions.
pub(super) const SCHEMA: &str = "opencode-plusplus.human-review.v1";
/// The only kind of question the plugin lets a person approve.
pub const BOUNDARY: &str = "BOUNDARY_EXPANSION_REQUIRED";

/// A question, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The record as it stands.
    pub object: Object,
    /// Its id.
    pub id: String,
    /// The task.
    pub task: Option<String>,
    /// The session that asked.
    pub session: Option<String>,
    /// The kind.
    pub reason: String,
    /// `pending`, `approved`, `rejected`, `resumed` or `resolved`.
    pub status: String,
    /// The last write, as it stands.
    pub updated_at: String,
}

impl Request {
    /// Checks a record.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(object: &Object) -> Result<Self, String> {
        if object.text("schemaVersion") != Some(SCHEMA) {
            return Err(format!("its schema is not {SCHEMA}"));
        }
        let text = |key: &str| {
            object
                .text(key)
                .map(str::to_owned)
                .ok_or_else(|| format!("{key} must be a text"))
        };
        Ok(Self {
            id: text("requestId")?,
            task: object.text("taskId").map(str::to_owned),
            session: object.text("sessionId").map(str::to_owned),
            reason: text("reasonCode")?,
            status: text("status")?,
            updated_at: object.text("updatedAt").unwrap_or_default().to_owned(),
            object: object.clone(),
        })
    }

    /// The id of the ledger's question that this one shows.
    fn own_id(&self) -> Option<&str> {
        self.object
            .get(super::identity::OWN_KEY)?
            .object()?
            .text("reviewId")
    }

    /// Tells whether it goes by this id, the plugin's or ours.
    pub fn has_id(&self, id: &str) -> bool {
        self.id == id || self.own_id() == Some(id)
    }

    /// Tells whether the record still asks what a question of the ledger asks: an answer holds for nothing else.
    pub fn asks(&self, review: &Review, order: &Collation) -> bool {
        let lists = |key: &str| self.object.texts(key).unwrap_or_default();
        let (files, current, requested) = (
            lists("affectedFiles"),
            lists("currentBoundary"),
            lists("requestedBoundary"),
        );
        let shown = Draft {
            task: self.task.as_deref(),
            session: self.session.as_deref(),
            reason: &self.reason,
            explanation: self.object.text("explanation").unwrap_or_default(),
            files: &files,
            current: &current,
            requested: Some(&requested),
            ..Draft::default()
        };
        let asked = Draft {
            task: Some(review.task_id.as_str()),
            session: Some(review.session.id.as_str()),
            reason: &review.reason_code,
            explanation: &review.explanation,
            files: &review.affected_files,
            current: &review.current_boundary,
            requested: Some(&review.requested_boundary),
            ..Draft::default()
        };
        shown.id(order) == asked.id(order)
    }

    /// Tells whether it shows a question of the ledger.
    pub fn is_of_ledger(&self) -> bool {
        self.own_id().is_some()
    }

    /// Tells whether nobody has decided, or what was decided is not applied yet.
    pub fn is_open(&self) -> bool {
        self.is_pending() || self.status == "approved"
    }

    /// Tells whether nobody has decided.
    pub fn is_pending(&self) -> bool {
        self.status == "pending"
    }

    /// Translates a question that waits: for a person, or for a decision to be applied. `session` is the one whose task it
    /// stands in the way of.
    pub fn waiting(&self, task: &TaskId, session: &SessionRef) -> Option<Review> {
        let created_at = time(self.object.text("createdAt").unwrap_or_default());
        let state = match self.status.as_str() {
            "pending" => ReviewState::Pending,
            "approved" => ReviewState::Decided {
                decision: Decision {
                    approved: true,
                    by: "the plugin's user".to_owned(),
                    session: session.clone(),
                    at: time(&self.updated_at),
                    remark: None,
                    fingerprint: None,
                },
            },
            _ => return None,
        };
        let asked_by = self
            .session
            .as_deref()
            .and_then(|id| SessionId::new(id).ok())
            .map_or_else(
                || session.clone(),
                |id| SessionRef::new(AgentId::clone(&session.agent), id),
            );
        let text = |key: &str| printable(self.object.text(key).unwrap_or_default());
        let texts = |key: &str| {
            self.object
                .texts(key)
                .unwrap_or_default()
                .iter()
                .map(|text| printable(text))
                .collect()
        };
        Some(Review {
            review_id: ReviewId::new(self.own_id().unwrap_or(&self.id)).ok()?,
            task_id: task.clone(),
            session: asked_by,
            reason_code: printable(&self.reason),
            title: text("title"),
            explanation: text("explanation"),
            required_action: text("requiredUserAction"),
            resume_condition: text("resumeCondition"),
            suggested_commands: texts("suggestedCommands"),
            affected_files: texts("affectedFiles"),
            current_boundary: texts("currentBoundary"),
            requested_boundary: texts("requestedBoundary"),
            fingerprint: None,
            created_at,
            state,
        })
    }
}

/// Finds the question for a task in a session, as the plugin does: the exact file, else among all of the task, newest first,
/// the one with the id, or a pending one of the same session, or any pending one, or the newest.
pub fn find<'a>(
    requests: &'a [(PathBuf, Request)],
    exact: &Path,
    task: &str,
    session: Option<&str>,
    id: Option<&str>,
) -> Option<&'a (PathBuf, Request)> {
    let wanted = |request: &Request| id.is_none_or(|id| request.has_id(id));
    if let Some(found) = requests
        .iter()
        .find(|(path, request)| path == exact && wanted(request))
    {
        return Some(found);
    }
    let mut of_task: Vec<&(PathBuf, Request)> = requests
        .iter()
        .filter(|(_, request)| request.task.as_deref() == Some(task))
        .collect();
    of_task.sort_by(|a, b| {
        b.1.updated_at
            .cmp(&a.1.updated_at)
            .then_with(|| a.0.cmp(&b.0))
    });
    if id.is_some() {
        return of_task.into_iter().find(|(_, request)| wanted(request));
    }
    let pending = |same_session: bool| {
        of_task.iter().copied().find(|(_, request)| {
            request.is_pending() && (!same_session || request.session.as_deref() == session)
        })
    };
    pending(true)
        .or_else(|| pending(false))
        .or_else(|| of_task.first().copied())
}

/// What a new question consists of.
#[derive(Clone, Debug, Default)]
pub struct Draft<'a> {
    /// The task.
    pub task: Option<&'a str>,
    /// The session that asks.
    pub session: Option<&'a str>,
    /// The kind.
    pub reason: &'a str,
    /// One line.
    pub title: &'a str,
    /// The question.
    pub explanation: &'a str,
    /// What the person has to do.
    pub required_action: &'a str,
    /// When work goes on.
    pub resume_condition: &'a str,
    /// Commands that may help.
    pub commands: &'a [String],
    /// Files it is about.
    pub files: &'a [String],
    /// The boundary now.
    pub current: &'a [String],
    /// The boundary asked for; `None` means the files.
    pub requested: Option<&'a [String]>,
    /// The revision of the boundary.
    pub boundary_revision: Option<u64>,
    /// Now.
    pub at: &'a str,
}

impl Draft<'_> {
    fn lists(&self, order: &Collation) -> (Vec<String>, Vec<String>, Vec<String>) {
        let files = order.normalise(self.files);
        let current = order.normalise(self.current);
        let requested = self
            .requested
            .map_or_else(|| files.clone(), |requested| order.normalise(requested));
        (files, current, requested)
    }

    /// Returns the id the plugin gives to it: a hash over what is asked.
    pub fn id(&self, order: &Collation) -> String {
        let (files, current, requested) = self.lists(order);
        let key = Object::default()
            .with("taskId", self.task)
            .with("sessionId", self.session)
            .with("reasonCode", self.reason)
            .with("explanation", self.explanation)
            .with("affectedFiles", files.as_slice())
            .with("currentBoundary", current.as_slice())
            .with("requestedBoundary", requested.as_slice());
        format!(
            "human-review-{}",
            short_hash(&Json::Object(key).compact(), 20)
        )
    }

    /// Writes the question over what is there. The same one, still pending, stays as it is (`None`).
    pub fn over(&self, found: Option<&Object>, order: &Collation) -> Option<Object> {
        let id = self.id(order);
        let old = found.and_then(|object| Request::check(object).ok());
        if old
            .as_ref()
            .is_some_and(|old| old.id == id && old.is_pending())
        {
            return None;
        }
        let (files, current, requested) = self.lists(order);
        let commands = order.normalise(self.commands);
        let mut object = Object::default()
            .with("schemaVersion", SCHEMA)
            .with(
                "revision",
                found.and_then(Object::revision).unwrap_or(0) + 1,
            )
            .with("requestId", id)
            .with("taskId", self.task)
            .with("sessionId", self.session)
            .with("reasonCode", self.reason)
            .with("title", self.title)
            .with("explanation", self.explanation)
            .with("requiredUserAction", self.required_action)
            .with("suggestedCommands", commands.as_slice())
            .with("affectedFiles", files.as_slice())
            .with("resumeCondition", self.resume_condition)
            .with("status", "pending");
        if !current.is_empty() {
            object.set("currentBoundary", current.as_slice());
        }
        if !requested.is_empty() {
            object.set("requestedBoundary", requested.as_slice());
        }
        object.set_some("boundaryRevision", self.boundary_revision);
        let created = found.and_then(|object| object.text("createdAt"));
        object.set("createdAt", created.unwrap_or(self.at));
        object.set("updatedAt", self.at);
        Some(object)
    }
}

/// Reads a time of the plugin; one that cannot be read is the epoch.
pub(crate) fn time(text: &str) -> Time {
    text.parse().unwrap_or_else(|_| Time::from_millis(0))
}

/// Takes control characters out: the text is somebody else's.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_plugins() {
        let order = Collation::new().unwrap();
        let vectors: serde_json::Value =
            serde_json::from_slice(include_bytes!("../../tests/fixtures/opencode-names.json"))
                .unwrap();
        let texts = |value: &serde_json::Value| -> Option<Vec<String>> {
            Some(
                value
                    .as_array()?
                    .iter()
                    .map(|item| item.as_str().unwrap().to_owned())
                    .collect(),
            )
        };
        for vector in vectors["human_review_request_id"].as_array().unwrap() {
            let draft = &vector["draft"];
            let files = texts(&draft["affectedFiles"]).unwrap_or_default();
            let current = texts(&draft["currentBoundary"]).unwrap_or_default();
            let requested = texts(&draft["requestedBoundary"]);
            let draft = Draft {
                task: draft["taskId"].as_str(),
                session: draft["sessionId"].as_str(),
                reason: draft["reasonCode"].as_str().unwrap(),
                title: "",
                explanation: draft["explanation"].as_str().unwrap(),
                required_action: "",
                resume_condition: "",
                commands: &[],
                files: &files,
                current: &current,
                requested: requested.as_deref(),
                boundary_revision: None,
                at: "2026-01-01T00:00:00.000Z",
            };
            assert_eq!(draft.id(&order), vector["requestId"].as_str().unwrap());
            let object = draft.over(None, &order).unwrap();
            assert_eq!(
                object.texts("affectedFiles"),
                texts(&vector["affectedFiles"])
            );
            assert_eq!(
                object.texts("requestedBoundary"),
                texts(&vector["requestedBoundary"])
            );
            assert_eq!(
                draft.over(Some(&object), &order),
                None,
                "the same again changes nothing"
            );
        }
    }
}
