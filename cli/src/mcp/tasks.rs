//! The Tasks extension, for clients that declare it: what goes on after the call is over. A background task that was
//! started or is waited for, and a question that waits for a person.
//!
//! A task's id names a record of ours and says what it is here, so any later call finds it, also after a new start.
use rmcp::model::{
    DetailedTask, InputRequests, InputResponses, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::Value;
use takeup_core::error::Exit;
use takeup_core::text;

use super::answer::{Wanted, pack};
use super::ask::{self, Question, Said};
use super::tools::Call;
use crate::args;
use crate::reply::{Failure, Reply};

/// How often a client may ask, in milliseconds.
const POLL_MS: u64 = 2_000;

/// What a task is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Handle {
    /// A background task that was started: to cancel it is to stop it.
    Run(String),
    /// A background task that is waited for: to cancel it is to wait no longer.
    Wait(String),
    /// A question to a person.
    Review(String),
}

impl Handle {
    /// Finds the handle of what a tool did. `None`: it is over with the call.
    pub(super) fn of(tool: &str, arguments: &JsonObject, reply: &Reply) -> Option<Self> {
        let text = |pointer: &str| Some(reply.data.pointer(pointer)?.as_str()?.to_owned());
        match tool {
            "takeup_bg_run" => text("/task/id").map(Self::Run),
            "takeup_bg_show" => text("/task/id").map(Self::Wait),
            "takeup_review"
                if arguments.get("action").and_then(Value::as_str) == Some("request") =>
            {
                text("/review/reviewId").map(Self::Review)
            }
            _ => None,
        }
    }

    /// Reads an id.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let (kind, name) = id.split_once(':')?;
        let name = name.to_owned();
        match kind {
            "run" => Some(Self::Run(name)),
            "wait" => Some(Self::Wait(name)),
            "review" => Some(Self::Review(name)),
            _ => None,
        }
    }

    fn id(&self) -> String {
        match self {
            Self::Run(name) => format!("run:{name}"),
            Self::Wait(name) => format!("wait:{name}"),
            Self::Review(name) => format!("review:{name}"),
        }
    }

    /// Looks where it stands.
    pub(super) fn look(&self, call: &Call) -> Result<DetailedTask, Failure> {
        match self {
            Self::Run(name) | Self::Wait(name) => {
                let reply = run(&["bg", "show"], name, call)?;
                Ok(self.of_background(reply))
            }
            Self::Review(name) => {
                let reply = run(&["review", "show"], name, call)?;
                Ok(self.of_review(reply))
            }
        }
    }

    fn task(&self, status: TaskStatus, created: &str, updated: &str, message: &str) -> Task {
        Task::new(self.id(), status, created, updated)
            .with_poll_interval_ms(POLL_MS)
            .with_status_message(text::one_line(message, 300))
    }

    fn of_background(&self, reply: Reply) -> DetailedTask {
        let text = |name: &str| {
            let value = reply.data.pointer(&format!("/task/{name}"));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (created, ended) = (text("createdAt"), text("endedAt"));
        let updated = if ended.is_empty() { &created } else { &ended };
        let status = text("status");
        let task = self.task(TaskStatus::Working, &created, updated, &reply.summary);
        let payload = match status.as_str() {
            "starting" | "running" => TaskPayload::Working,
            "stopped" => TaskPayload::Cancelled,
            _ => completed(reply),
        };
        DetailedTask::new(task, payload)
    }

    fn of_review(&self, reply: Reply) -> DetailedTask {
        let text = |pointer: &str| {
            let value = reply.data.pointer(&format!("/reviews/0/{pointer}"));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let created = text("review/createdAt");
        let decided = text("review/state/decision/at");
        let updated = if decided.is_empty() {
            &created
        } else {
            &decided
        };
        let task = self.task(
            TaskStatus::InputRequired,
            &created,
            updated,
            &text("review/title"),
        );
        let payload = if text("review/state/state") == "pending" {
            let question = Question {
                subject: String::new(),
                what: String::new(),
                message: format!(
                    "Approve review {} of task {} ({})?\nReason: {}\n{}",
                    text("review/reviewId"),
                    text("review/taskId"),
                    text("taskTitle"),
                    text("review/reasonCode"),
                    text("review/explanation"),
                ),
                label: "Approve it".to_owned(),
                command: String::new(),
                is_plain: false,
            };
            TaskPayload::InputRequired {
                input_requests: InputRequests::from([ask::request(&question)]),
            }
        } else {
            completed(reply)
        };
        DetailedTask::new(task, payload)
    }

    /// Takes the person's answer. Only a yes does something: the approval counts for the content that was asked about,
    /// and is refused where that changed.
    pub(super) fn update(&self, answers: &InputResponses, call: &Call) -> Result<(), Failure> {
        match self {
            Self::Run(_) | Self::Wait(_) => {
                Err(Failure::new("usage", Exit::Usage, "this task asks nothing"))
            }
            Self::Review(name) => {
                if ask::said_in(answers) == Said::Yes {
                    run(&["review", "approve", "--confirm"], name, call)?;
                }
                Ok(())
            }
        }
    }

    /// Ends it, where ending it is the client's to say.
    pub(super) fn cancel(&self, call: &Call) -> Result<(), Failure> {
        match self {
            Self::Run(name) => run(&["bg", "stop"], name, call).map(drop),
            Self::Wait(_) | Self::Review(_) => Ok(()),
        }
    }
}

fn completed(reply: Reply) -> TaskPayload {
    let result = pack(Ok(reply), None, Wanted::default());
    let result = match serde_json::to_value(result) {
        Ok(Value::Object(result)) => result,
        _ => JsonObject::new(),
    };
    TaskPayload::Completed { result }
}

fn run(command: &[&str], name: &str, call: &Call) -> Result<Reply, Failure> {
    let words: Vec<String> = command
        .iter()
        .chain(&["--", name])
        .map(|word| (*word).to_owned())
        .collect();
    args::answer(&words, &call.context())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_back() {
        for handle in [
            Handle::Run("a".to_owned()),
            Handle::Wait("b".to_owned()),
            Handle::Review("review-1".to_owned()),
        ] {
            assert_eq!(Handle::parse(&handle.id()), Some(handle));
        }
        assert_eq!(Handle::parse("task:1"), None);
        assert_eq!(Handle::parse("run"), None);
    }
}
