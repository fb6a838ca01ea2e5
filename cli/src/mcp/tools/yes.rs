//! The questions of the tools that need a person's yes, and what a yes does.
use rmcp::model::JsonObject;
use serde_json::Value;
use takeup_core::engine::{self, Candidate, EngineError, InspectRequest, ReviewView};
use takeup_core::error::Exit;
use takeup_core::text;
use takeup_core::verdict::Verdict;

use super::super::ask::Question;
use super::{Asks, Call, Words, Yes};
use crate::args;
use crate::context::Context;
use crate::reply::{Failure, Reply};

/// How many paths a question names.
const PATHS: usize = 12;

/// Makes the question that a command's refusal calls for. `None`: it was refused for another reason.
pub(super) fn question(
    asks: Asks,
    words: &Words,
    arguments: &JsonObject,
    failure: &Failure,
    call: &Call,
    context: &Context,
) -> Result<Option<Question>, Failure> {
    match (asks, failure.code.as_str()) {
        (Asks::TakeUp, "confirmation-needed") => take_up(words, failure, call, context),
        (Asks::Decide, "confirmation-needed") => decide(arguments, failure, context).map(Some),
        _ => Ok(None),
    }
}

/// Runs the command with the yes.
pub(super) fn confirmed(
    asks: Asks,
    words: &Words,
    arguments: &JsonObject,
    yes: &Yes,
    call: &Call,
    context: &Context,
) -> Result<Reply, Failure> {
    let subject = yes.subject.as_str();
    let words = match asks {
        // The engine itself refuses a token that does not fit what is there now.
        Asks::TakeUp => words.clone().with("confirm", Some(subject)),
        Asks::Decide => {
            let (view, now) = decision(arguments, context)?;
            if now != subject {
                let mut changed = Failure::new(
                    "changed-since-shown",
                    Exit::Conflict,
                    "the content or the question changed since it was shown",
                )
                .hint("make the call again; it asks anew");
                changed.retryable = true;
                return Err(changed);
            }
            words
                .clone()
                .with("by", yes.of_model.then_some(call.agent.as_str()))
                .when("confirm", true)
                .when("content-changed", view.content_changed != Some(false))
        }
    };
    args::answer(&words.all(), context)
}

/// What is to be said where the task changed between the refusal and the question: mostly that another session was faster,
/// which the command itself says when it is asked again.
fn overtaken(words: &Words, context: &Context) -> Failure {
    match args::answer(&words.all(), context) {
        Err(failure) if failure.code != "confirmation-needed" => failure,
        _ => {
            let mut changed = Failure::new(
                "changed-since-shown",
                Exit::Conflict,
                "the task changed while it was looked at",
            )
            .hint("make the call again");
            changed.retryable = true;
            changed
        }
    }
}

/// The question before a task is taken up. Its subject is the token that confirms exactly this candidate. `None`: the look
/// was incomplete, so no yes can be for what is shown.
fn take_up(
    words: &Words,
    failure: &Failure,
    call: &Call,
    context: &Context,
) -> Result<Option<Question>, Failure> {
    let command = failure
        .next
        .as_ref()
        .and_then(|next| next.command.clone())
        .unwrap_or_default();
    let Some(token) = command
        .rsplit(' ')
        .next()
        .filter(|word| word.starts_with("ok-"))
    else {
        return Ok(None);
    };
    let token = token.to_owned();
    let request = InspectRequest {
        session: call.session.clone(),
        agent: Some(call.agent.clone()),
        ..InspectRequest::default()
    };
    let found = engine::inspect(&context.engine(), &request)?;
    let Some(candidate) = found
        .candidates
        .iter()
        .find(|candidate| candidate.token.as_ref() == Some(&token))
    else {
        return Err(overtaken(words, context));
    };
    Ok(Some(Question {
        subject: token,
        what: failure
            .message
            .trim_end_matches("; a person has to confirm")
            .to_owned(),
        message: take_up_message(candidate, call),
        label: "Take the task up".to_owned(),
        command,
        is_plain: candidate.verdict == Verdict::ResumeVerification,
    }))
}

fn take_up_message(candidate: &Candidate, call: &Call) -> String {
    let identity = &candidate.identity;
    let mut lines = vec![
        format!(
            "Take up task {} ({})?",
            identity.task_id,
            text::one_line(&identity.title, 200)
        ),
        format!(
            "It was left by {}:{}.",
            candidate.agent, identity.session_id
        ),
        format!("Verdict: {}", candidate.verdict.code()),
    ];
    lines.extend(
        candidate
            .reasons
            .iter()
            .take(6)
            .map(|reason| format!("- {}", text::one_line(&reason.message, 300))),
    );
    if let Some(changes) = &candidate.changes {
        let paths: Vec<String> = changes
            .paths
            .iter()
            .map(|changed| changed.path.clone())
            .collect();
        lines.extend(listed("Changed since", &paths));
    }
    let effects: Vec<String> = candidate
        .open_effects
        .iter()
        .map(|effect| format!("{} {}", effect.tool, text::one_line(&effect.argument, 120)))
        .collect();
    lines.extend(listed("May or may not have happened", &effects));
    let agent = &call.agent;
    lines.push(match &call.session {
        Some(session) => format!("{agent}:{session} goes on with it."),
        None => format!("The calling session of {agent} goes on with it."),
    });
    lines.join("\n")
}

fn listed(label: &str, items: &[String]) -> Vec<String> {
    if items.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![format!("{label}:")];
    lines.extend(
        items
            .iter()
            .take(PATHS)
            .map(|item| format!("- {}", text::one_line(item, 200))),
    );
    if items.len() > PATHS {
        lines.push(format!("- and {} more", items.len() - PATHS));
    }
    lines
}

/// Finds the review that is meant, and what a decision on it stands for at this moment: the answer, the review and the
/// content of the tree.
fn decision(arguments: &JsonObject, context: &Context) -> Result<(ReviewView, String), Failure> {
    let text = |key: &str| {
        arguments
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let engine = context.engine();
    let view = engine::review_meant(&engine, text("review"))?;
    let content =
        engine::present(&engine)?.map_or_else(|| "unknown".to_owned(), |print| print.to_string());
    let subject = format!("{} {} {content}", text("action"), view.review.review_id);
    Ok((view, subject))
}

fn decide(
    arguments: &JsonObject,
    failure: &Failure,
    context: &Context,
) -> Result<Question, Failure> {
    let (view, subject) = decision(arguments, context)?;
    let review = &view.review;
    let action = if arguments.get("action").and_then(Value::as_str) == Some("approve") {
        "approve"
    } else {
        "reject"
    };
    if action == "approve"
        && let Some(not_back) = &view.not_back
    {
        return Err(EngineError::NotBack(not_back.clone()).into());
    }
    let mut lines = vec![
        format!(
            "{} review {} of task {} ({})?",
            if action == "approve" {
                "Approve"
            } else {
                "Reject"
            },
            review.review_id,
            review.task_id,
            text::one_line(&view.task_title, 200)
        ),
        format!("Reason: {}", review.reason_code),
        text::clean(&review.explanation, 1_500),
        format!("To do: {}", text::one_line(&review.required_action, 300)),
    ];
    lines.extend(listed("Files", &review.affected_files));
    lines.extend(listed("Paths asked for", &review.requested_boundary));
    if view.content_changed != Some(false) {
        lines.push("The content changed since the question was asked.".to_owned());
    }
    if action == "reject" {
        lines.push("A rejected task is given up.".to_owned());
    }
    let id = review.review_id.as_str();
    // On a terminal the question is put once more.
    let next = failure
        .next
        .as_ref()
        .and_then(|next| next.command.as_deref());
    let command = next.unwrap_or_default().trim_end_matches(" --confirm");
    Ok(Question {
        subject,
        what: format!("review {id} waits for a decision"),
        message: lines.join("\n"),
        label: format!(
            "{} it",
            if action == "approve" {
                "Approve"
            } else {
                "Reject"
            }
        ),
        command: command.to_owned(),
        is_plain: view.content_changed == Some(false),
    })
}
