//! What a command answers, and how it fails: one envelope for all.
use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::engine::Untold;
use takeup_core::env::Env;
use takeup_core::error::{Exit, Explain};
use takeup_core::issue::Issue;
use takeup_core::paths::text_of_path;
use takeup_core::redact::Masker;
use takeup_core::text::command_line;

/// The name and version of the envelope.
pub(crate) const SCHEMA: &str = "takeup.v1";

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Next {
    /// The step, as a stable word: `evaluate`, `confirm`, `resume`, …
    pub action: String,
    /// A command ready to paste.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Next {
    /// Makes a step with a command.
    pub(crate) fn new(action: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            action: action.into(),
            command: Some(command.into()),
        }
    }
}

/// The answer of a command.
#[derive(Debug)]
pub(crate) struct Reply {
    /// One line for people and machines.
    pub summary: String,
    /// The answer for machines; its shape is in `docs/schemas/<command>.json`.
    pub data: serde_json::Value,
    /// The answer for people, with styles; ends without a line end.
    pub human: String,
    /// What to do next.
    pub next: Option<Next>,
    /// Done, or the answer is no.
    pub exit: Exit,
    /// An exit status that stands for somebody else's, such as that of a command that was run.
    pub code: Option<u8>,
    /// Print nothing: the command has printed what there was to print.
    pub silent: bool,
}

impl Reply {
    /// Makes a reply from typed data. Data that cannot be written as JSON is a bug and becomes `null`.
    pub(crate) fn new(summary: impl Into<String>, data: &impl Serialize) -> Self {
        let summary = summary.into();
        Self {
            human: summary.clone(),
            summary,
            data: serde_json::to_value(data).unwrap_or(serde_json::Value::Null),
            next: None,
            exit: Exit::Done,
            code: None,
            silent: false,
        }
    }

    /// Makes the reply of a command that printed for itself.
    pub(crate) const fn silent(exit: Exit) -> Self {
        Self {
            summary: String::new(),
            data: serde_json::Value::Null,
            human: String::new(),
            next: None,
            exit,
            code: None,
            silent: true,
        }
    }

    /// Sets what people see.
    #[must_use]
    pub(crate) fn human(mut self, text: impl Into<String>) -> Self {
        self.human = text.into();
        self
    }

    /// Sets the next step.
    #[must_use]
    pub(crate) fn next(mut self, next: Next) -> Self {
        self.next = Some(next);
        self
    }

    /// Sets the exit status.
    #[must_use]
    pub(crate) const fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
}

/// A failure, for people and machines.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The stable code.
    pub code: String,
    /// What went wrong.
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
    /// The same call may succeed later.
    pub retryable: bool,
    /// The exit status.
    pub exit: Exit,
    /// A command ready to paste.
    pub next: Option<Next>,
    /// Data that goes with it.
    pub data: Option<serde_json::Value>,
    /// The task that was asked for, where there is none of that name.
    pub missing_task: Option<String>,
}

impl Failure {
    /// Makes a failure.
    pub(crate) fn new(code: &str, exit: Exit, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            hint: None,
            retryable: false,
            exit,
            next: None,
            data: None,
            missing_task: None,
        }
    }

    /// Masks secrets: what was asked for is named in many failures.
    #[must_use]
    pub(crate) fn masked(mut self, env: &Env) -> Self {
        let masker = Masker::of(env);
        self.message = masker.text(&self.message).text;
        self.hint = self.hint.map(|hint| masker.text(&hint).text);
        self
    }

    /// Says of a task that is none yet what it is: what a session left, and how to take it up.
    #[must_use]
    pub(crate) fn untold(mut self, left: impl FnOnce(Option<&str>) -> Option<Untold>) -> Self {
        let unused = self.code == "not-initialised";
        if !unused && self.missing_task.is_none() {
            return self;
        }
        let Some(Untold { task_id, session }) = left(self.missing_task.as_deref()) else {
            return self;
        };
        let id = session.id.as_str();
        let show = command_line(["git", "takeup", "sessions", "show", id]);
        let task = task_id.as_str();
        let take_up = command_line(["git", "takeup", "resume", task, "--from", id]);
        if unused {
            self.message.push_str(&format!(
                " yet; what session {session} left here is {task_id}"
            ));
        } else {
            self.message = format!("{task_id} is what session {session} left, and no task yet");
        }
        self.hint = Some(format!(
            "`{show}` shows it; what can be done with a task can be done when it was taken up: `{take_up}`"
        ));
        self
    }

    /// Says of what was not found that it may be among what is damaged: a damaged ledger is no empty one.
    #[must_use]
    pub(crate) fn doubted(mut self, losses: impl FnOnce() -> Vec<Issue>) -> Self {
        const NOT_FOUND: [&str; 4] = [
            "no-such-task",
            "no-task",
            "no-such-session",
            "no-such-review",
        ];
        if !NOT_FOUND.contains(&self.code.as_str()) {
            return self;
        }
        let issues = losses();
        if let Some(first) = issues.first() {
            self.message.push_str(&format!(
                "; it may be among what is damaged: {}: {}",
                text_of_path(&first.path),
                first.message
            ));
            self.hint =
                Some("`git takeup doctor` says what is damaged and what can be done".to_owned());
            self.data = Some(serde_json::json!({ "issues": issues }));
        }
        self
    }

    /// Adds the way out.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl<E: Explain> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            code: error.code().to_owned(),
            message: error.to_string(),
            hint: error.hint(),
            retryable: error.retryable(),
            exit: error.exit(),
            next: None,
            data: None,
            missing_task: error.missing_task().map(str::to_owned),
        }
    }
}

/// The envelope of every `--json` answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Envelope<'a> {
    /// Always `takeup.v1`; another value means another shape.
    pub schema: &'a str,
    /// Whether the command did what it was asked.
    pub ok: bool,
    /// The command; `usage` where the words are no command line.
    pub command: &'a str,
    /// One line in words.
    pub summary: &'a str,
    /// The answer; its shape depends on the command, and stands in the schema that is named after it and its action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<&'a serde_json::Value>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<&'a Next>,
    /// The failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody<'a>>,
}

/// The failure inside the envelope.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorBody<'a> {
    /// The stable code.
    pub code: &'a str,
    /// What went wrong.
    pub message: &'a str,
    /// The way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'a str>,
    /// The same call may succeed later.
    pub retryable: bool,
}

/// Writes the envelope of an answer or failure as JSON.
pub(crate) fn envelope(command: &str, outcome: &Result<Reply, Failure>) -> String {
    let envelope = match outcome {
        Ok(reply) => Envelope {
            schema: SCHEMA,
            ok: true,
            command,
            summary: &reply.summary,
            data: Some(&reply.data),
            next: reply.next.as_ref(),
            error: None,
        },
        Err(failure) => Envelope {
            schema: SCHEMA,
            ok: false,
            command,
            summary: &failure.message,
            data: failure.data.as_ref(),
            next: failure.next.as_ref(),
            error: Some(ErrorBody {
                code: &failure.code,
                message: &failure.message,
                hint: failure.hint.as_deref(),
                retryable: failure.retryable,
            }),
        },
    };
    serde_json::to_string_pretty(&envelope).unwrap_or_default()
}
