//! The resources: the tasks of the place, and each task's hand-over document. Reading one changes nothing.
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;
use takeup_core::text;

use super::answer;
use super::tools::Call;
use crate::args;
use crate::reply::{Failure, Reply};

/// The tasks of the place.
const TASKS: &str = "takeup://tasks";
/// Before a task's id.
const TASK: &str = "takeup://task/";
/// After a task's id.
const HANDOVER: &str = "/handover";

/// What of all resources is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The tasks of the place.
    Tasks,
    /// The hand-over document of a task.
    Handover(String),
}

impl Wanted {
    /// Reads a resource's address.
    pub(super) fn of(uri: &str) -> Option<Self> {
        if uri == TASKS {
            return Some(Self::Tasks);
        }
        let task = uri.strip_prefix(TASK)?.strip_suffix(HANDOVER)?;
        let is_id = !task.is_empty()
            && task
                .chars()
                .all(|c| c.is_alphanumeric() || "-_.".contains(c));
        is_id.then(|| Self::Handover(task.to_owned()))
    }

    /// Returns the command that looks.
    pub(super) fn look(self) -> impl FnOnce(&Call) -> Result<Reply, Failure> + Send + 'static {
        move |call| match self {
            Self::Tasks => tasks(call),
            Self::Handover(task) => {
                let words = ["handover", "--dry-run", &format!("--task={task}")];
                args::answer(&words.map(str::to_owned), &call.context())
            }
        }
    }
}

/// Looks at the tasks of the place.
pub(super) fn tasks(call: &Call) -> Result<Reply, Failure> {
    args::answer(&["inspect".to_owned()], &call.context())
}

/// Lists the resources: the tasks, and the document of each that is not closed. `inspection` is the data of `inspect`.
pub(super) fn list(inspection: &Value) -> Vec<Resource> {
    let mut found = vec![
        Resource::new(TASKS, "tasks")
            .with_title("Tasks of this work tree")
            .with_description("What may be taken up here, with verdicts")
            .with_mime_type("application/json"),
    ];
    let candidates = inspection.get("candidates").and_then(Value::as_array);
    for candidate in candidates.into_iter().flatten() {
        let text = |pointer: &str| candidate.pointer(pointer).and_then(Value::as_str);
        let (Some(task), Some(verdict)) = (text("/identity/taskId"), text("/verdict")) else {
            continue;
        };
        let uri = format!("{TASK}{task}{HANDOVER}");
        // Only what the ledger knows has a document.
        let known = candidate
            .pointer("/identity/revision")
            .and_then(Value::as_u64)
            .is_some_and(|revision| revision > 0);
        if !known || verdict == "not-resumable" || found.iter().any(|known| known.uri == uri) {
            continue;
        }
        let title = text::one_line(text("/identity/title").unwrap_or(task), 120);
        found.push(
            Resource::new(uri, format!("{task} hand-over"))
                .with_title(format!("Hand-over of {title}"))
                .with_description(verdict)
                .with_mime_type("text/markdown"),
        );
    }
    found
}

/// Returns the template of the documents.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{TASK}{{task}}{HANDOVER}"), "hand-over")
            .with_title("Hand-over document of a task")
            .with_description("What another session has to know to go on; secrets masked")
            .with_mime_type("text/markdown"),
    ]
}

/// Packs what a look found: a document as Markdown where there is one, else the data.
pub(super) fn read(uri: &str, reply: Reply) -> ReadResourceResult {
    let mut data = reply.data;
    answer::clean(&mut data);
    let markdown = data.get("markdown").and_then(Value::as_str);
    let contents = match markdown {
        Some(markdown) => ResourceContents::text(markdown, uri).with_mime_type("text/markdown"),
        None => ResourceContents::text(data.to_string(), uri).with_mime_type("application/json"),
    };
    ReadResourceResult::new(vec![contents])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_tasks_and_nothing_else() {
        assert_eq!(Wanted::of(TASKS), Some(Wanted::Tasks));
        assert_eq!(
            Wanted::of("takeup://task/fix-login/handover"),
            Some(Wanted::Handover("fix-login".to_owned()))
        );
        for strange in [
            "takeup://task//handover",
            "takeup://task/a b/handover",
            "takeup://task/../handover/handover",
            "takeup://task/a",
            "file:///etc/passwd",
        ] {
            assert_eq!(Wanted::of(strange), None, "{strange}");
        }
    }
}
