//! `git takeup review`
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::engine::{self, DecideRequest, Decided, EngineError, ReviewView, Which};
use takeup_core::error::Exit;
use takeup_core::review::{Review, ReviewState};
use takeup_core::text;

use crate::ask;
use crate::context::Context;
use crate::options::SessionArgs;
use crate::printer::{BOLD, DIM, YELLOW, ago, field, paint, shell};
use crate::reply::{Failure, Next, Reply};

/// Added to what is asked for.
const CHANGED: &str = "; the content changed since the question was asked";

/// Arguments of `review`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup review\n  git takeup review request --reason EXTERNAL_SIDE_EFFECT 'may I deploy?'\n  git takeup review approve review-01jd --remark 'fine'\n\nA pending review blocks taking the task up, from every session, even after the tree changed."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the questions that wait
    List {
        /// Decided ones too
        #[arg(long)]
        all: bool,
    },
    /// Show one question in full
    Show {
        /// The review, or its task
        review: String,
    },
    /// Put a question to a person
    Request {
        /// The question
        #[arg(value_name = "QUESTION")]
        explanation: String,
        /// The reason code, such as EXTERNAL_SIDE_EFFECT
        #[arg(long, value_name = "CODE", default_value = "UNVERIFIABLE_RESULT")]
        reason: String,
        /// One line
        #[arg(long)]
        title: Option<String>,
        /// What the person has to do
        #[arg(long, value_name = "TEXT")]
        action: Option<String>,
        /// When work goes on
        #[arg(long, value_name = "TEXT")]
        until: Option<String>,
        /// A command that may help; never run (repeatable)
        #[arg(long, value_name = "COMMAND")]
        suggest: Vec<String>,
        /// A file it is about (repeatable)
        #[arg(long, value_name = "PATH")]
        file: Vec<String>,
        /// A path pattern the task wants to edit (repeatable)
        #[arg(long, value_name = "GLOB")]
        allow: Vec<String>,
        /// The task
        #[arg(short, long, value_name = "TASK")]
        task: Option<String>,
        #[command(flatten)]
        session: SessionArgs,
    },
    /// Say yes
    Approve(Decide),
    /// Say no: the task is given up
    Reject(Decide),
}

/// Arguments of a decision.
#[derive(Debug, clap::Args)]
struct Decide {
    /// The review, or the task whose only pending review is meant
    review: String,
    /// A remark that is kept with the decision
    #[arg(long, value_name = "TEXT")]
    remark: Option<String>,
    /// Who decides [default: the login name]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Approve although the content changed since the question was asked
    #[arg(long)]
    content_changed: bool,
    /// A person's yes, where nobody can be asked on a terminal
    #[arg(long)]
    confirm: bool,
    #[command(flatten)]
    session: SessionArgs,
}

/// The answer of `review list` and `review show`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReviewsData {
    /// The reviews, oldest first.
    reviews: Vec<ReviewView>,
}

/// The answer of `review request`, `approve` and `reject`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReviewData {
    /// The review.
    review: Review,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let engine = context.engine();
    match args.action.unwrap_or(Action::List { all: false }) {
        Action::List { all } => {
            let found = engine::reviews(&engine, None, all)?;
            let summary = text::count(found.len(), "review", "reviews");
            let mut out = if found.is_empty() {
                "no question waits for a person".to_owned()
            } else {
                String::new()
            };
            for view in &found {
                out.push_str(&brief(view, context));
                let question = text::one_line(&view.review.explanation, 300);
                out.push_str(&field("  question", 11, &question));
            }
            Ok(Reply::new(summary, &ReviewsData { reviews: found }).human(out))
        }
        Action::Show { review } => {
            let found = engine::reviews(&engine, Some(&review), true)?;
            let out = found
                .iter()
                .map(|view| full(view, context))
                .collect::<Vec<_>>()
                .join("\n");
            let summary = text::count(found.len(), "review", "reviews");
            Ok(Reply::new(summary, &ReviewsData { reviews: found }).human(out))
        }
        Action::Request {
            explanation,
            reason,
            title,
            action,
            until,
            suggest,
            file,
            allow,
            task,
            session,
        } => {
            let request = engine::ReviewRequest {
                which: Which {
                    task,
                    session: session.session,
                    agent: session.agent,
                },
                reason_code: reason,
                title,
                explanation,
                required_action: action,
                resume_condition: until,
                suggested_commands: suggest,
                affected_files: file,
                requested_boundary: allow,
            };
            let review = engine::request_review(&engine, &request)?;
            let summary = format!(
                "task {} waits for a person: {}",
                review.task_id, review.review_id
            );
            let show = shell(["git", "takeup", "review", "show", review.review_id.as_str()]);
            Ok(Reply::new(summary, &ReviewData { review }).next(Next::new("human-review", show)))
        }
        Action::Approve(decide) => decision(decide, true, context),
        Action::Reject(decide) => decision(decide, false, context),
    }
}

fn decision(mut args: Decide, approve: bool, context: &Context) -> Result<Reply, Failure> {
    let engine = context.engine();
    let word = if approve { "approve" } else { "reject" };
    if !args.confirm {
        let shown = engine::review_meant(&engine, &args.review)?;
        let Review {
            review_id,
            explanation,
            state,
            ..
        } = shown.review;
        if approve && let Some(not_back) = shown.not_back {
            return Err(refused(EngineError::NotBack(not_back)));
        }
        if approve && let Some(why) = shown.no_yes {
            return Err(EngineError::NoYes { review_id, why }.into());
        }
        // What is decided is what is shown, whatever else the words may mean a moment later.
        args.review = review_id.to_string();
        if state == ReviewState::Pending {
            let changed = approve && shown.content_changed == Some(true) && !args.content_changed;
            let note = if changed { CHANGED } else { "" };
            args.content_changed |= changed;
            match ask::person(context, || {
                format!("{explanation}{note}\n{word} {review_id}?")
            }) {
                ask::Answer::Yes => {}
                ask::Answer::No => {
                    return Err(Failure::new("declined", Exit::No, "nothing was decided"));
                }
                ask::Answer::Nobody => {
                    let what = format!("a person has to decide this{note}");
                    return Err(unconfirmed(what, &args, word, context));
                }
            }
        }
    }
    let request = DecideRequest {
        review: args.review.clone(),
        approve,
        by: args.by.clone().unwrap_or_else(|| login(context)),
        session: args.session.session.clone(),
        agent: args.session.agent.clone(),
        remark: args.remark.clone(),
        content_changed: args.content_changed,
    };
    let Decided { review, next } = match engine::decide(&engine, &request) {
        Err(EngineError::NeedsConfirmation { what, .. }) => {
            args.content_changed = true;
            let what = format!("{what}; a person has to confirm");
            return Err(unconfirmed(what, &args, word, context));
        }
        decided => decided.map_err(refused)?,
    };
    let done = if approve { "approved" } else { "rejected" };
    let next = Next {
        action: next.action,
        command: next.command,
    };
    let later = if matches!(review.state, ReviewState::Decided { .. }) {
        "; it could not be written into the agent's own files yet, the next command that writes tries again"
    } else {
        ""
    };
    Ok(Reply::new(
        format!("{done} {}{later}", review.review_id),
        &ReviewData { review },
    )
    .next(next))
}

/// Returns the login name.
fn login(context: &Context) -> String {
    let env = &context.env;
    let name = env.text("USER").or_else(|| env.text("LOGNAME"));
    name.unwrap_or("a person").to_owned()
}

/// Makes the answer to a decision that a person has to confirm. Its command says all that was said with this call, wherever it is
/// typed: who asks, and with which words.
fn unconfirmed(what: String, args: &Decide, word: &str, context: &Context) -> Failure {
    let session = args.session.words(context);
    let mut words = vec!["git", "takeup", "review", word, &args.review];
    for (option, value) in [("--remark", &args.remark), ("--by", &args.by)] {
        if let Some(value) = value {
            words.extend([option, value]);
        }
    }
    words.extend(args.content_changed.then_some("--content-changed"));
    words.extend(session.iter().map(String::as_str));
    words.push("--confirm");
    let mut failure = Failure::new("confirmation-needed", Exit::Confirm, what);
    failure.next = Some(Next::new("confirm", shell(words)));
    failure
}

/// Makes the answer to a decision that was not recorded.
fn refused(error: EngineError) -> Failure {
    let command = match &error {
        EngineError::NotBack(not_back) => not_back.commands.first().cloned(),
        _ => None,
    };
    let mut failure = Failure::from(error);
    failure.next = command
        .map(|command| Next::new("put-back", command))
        .or(failure.next);
    failure
}

fn brief(view: &ReviewView, context: &Context) -> String {
    let review = &view.review;
    let mut out = format!(
        "{}  {}\n",
        paint(BOLD, &review.review_id),
        paint(YELLOW, state(&review.state))
    );
    out.push_str(&field(
        "  task",
        11,
        &format!(
            "{} — {}",
            review.task_id,
            text::one_line(&view.task_title, 120)
        ),
    ));
    out.push_str(&field(
        "  asks",
        11,
        &format!(
            "{} ({})",
            text::one_line(&review.title, 200),
            review.reason_code
        ),
    ));
    out.push_str(&field(
        "  since",
        11,
        &format!(
            "{} by {}",
            ago(context.now(), review.created_at),
            review.session
        ),
    ));
    if let Some(answer) = &view.answer {
        let word = if answer.approved { "yes" } else { "no" };
        out.push_str(&field(
            "  answer",
            11,
            &format!(
                "{word}, {} in {}; not taken over yet",
                ago(context.now(), answer.at),
                answer.session
            ),
        ));
    }
    out
}

fn full(view: &ReviewView, context: &Context) -> String {
    let review = &view.review;
    let mut out = brief(view, context);
    if view.content_changed == Some(true) {
        out.push_str(&field(
            "  note",
            11,
            "the content changed since this was asked",
        ));
    }
    if let Some(not_back) = &view.not_back {
        let more = match not_back.more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        out.push_str(&field(
            "  note",
            11,
            &format!(
                "it cannot be approved before this is as it was: {}{more}",
                text::one_line(&not_back.paths.join(", "), 1_000)
            ),
        ));
    }
    if let Some(why) = &view.no_yes {
        out.push_str(&field("  note", 11, &text::one_line(why, 1_000)));
    }
    for (label, text) in [
        ("  question", &review.explanation),
        ("  action", &review.required_action),
        ("  until", &review.resume_condition),
    ] {
        out.push_str(&field(label, 11, &text::clean(text, 4_000)));
    }
    for (label, items) in [
        ("  files", &review.affected_files),
        ("  allowed", &review.current_boundary),
        ("  wanted", &review.requested_boundary),
        ("  suggested", &review.suggested_commands),
    ] {
        for item in items.iter().take(20) {
            out.push_str(&field(label, 13, &text::one_line(item, 300)));
        }
    }
    if let ReviewState::Decided { decision } | ReviewState::Applied { decision, .. } = &review.state
    {
        let remark = decision
            .remark
            .as_ref()
            .map(|remark| format!(": {remark}"))
            .unwrap_or_default();
        out.push_str(&field(
            "  decided",
            11,
            &format!(
                "{} by {}{remark}",
                ago(context.now(), decision.at),
                decision.by
            ),
        ));
    } else {
        let id = review.review_id.as_str();
        let approve = shell(["git", "takeup", "review", "approve", id]);
        let first = match &view.not_back {
            Some(not_back) => not_back.commands.clone(),
            None if view.no_yes.is_some() => Vec::new(),
            None => vec![approve],
        };
        let reject = shell(["git", "takeup", "review", "reject", id]);
        for command in first.iter().chain([&reject]) {
            let _: std::fmt::Result = writeln!(out, "  {}", paint(DIM, command));
        }
    }
    out
}

const fn state(state: &ReviewState) -> &'static str {
    match state {
        ReviewState::Pending => "waits",
        ReviewState::Decided { .. } => "decided, not yet applied",
        ReviewState::Applied { decision, .. } => {
            if decision.approved {
                "approved"
            } else {
                "rejected"
            }
        }
    }
}
