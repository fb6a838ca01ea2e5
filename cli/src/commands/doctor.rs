//! `git takeup doctor`
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::doctor::{self, Finding, Health, Mended, Remedy};
use takeup_core::error::Exit;
use takeup_core::text;

use crate::ask::{self, Answer};
use crate::context::Context;
use crate::printer::{self, paint};
use crate::reply::{Failure, Next, Reply};

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 all is well or to look at, 1 something does not work.\n\nExamples:\n  git takeup doctor\n  git takeup doctor --fix          # shows what it would do, and asks\n  git takeup doctor --fix --yes"
)]
pub(crate) struct Args {
    /// Mend what is takeup's own; what it would do is shown first
    #[arg(long)]
    fix: bool,

    /// With --fix: do not ask
    #[arg(long, requires = "fix")]
    yes: bool,
}

/// The answer of `doctor`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DoctorData {
    /// The worst verdict.
    verdict: Health,
    /// Every check.
    findings: Vec<Finding>,
    /// What `--fix` did; empty without it.
    mended: Vec<Mended>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let engine = context.engine();
    let complaints = crate::settings::load(&context.env).complaints;
    let findings = doctor::examine(&engine, &complaints);
    let remedies: Vec<Remedy> = findings
        .iter()
        .filter_map(|finding| finding.remedy.clone())
        .collect();
    if !args.fix {
        return Ok(reply(findings, Vec::new()));
    }
    if remedies.is_empty() {
        return Ok(reply(findings, Vec::new()));
    }
    if !args.yes {
        let mut preview = String::from("this would be done:\n");
        for remedy in &remedies {
            let _: std::fmt::Result = writeln!(preview, "  {}", remedy_text(remedy));
        }
        match ask::person(context, || format!("{preview}Do it?")) {
            Answer::Yes => {}
            Answer::No => {
                return Err(Failure::new(
                    "not-confirmed",
                    Exit::No,
                    "nothing was changed",
                ));
            }
            Answer::Nobody => {
                let mut failure = Failure::new(
                    "confirmation-needed",
                    Exit::Confirm,
                    format!(
                        "{} repairs wait for a yes; nothing was changed",
                        remedies.len()
                    ),
                );
                failure.hint = Some(preview.trim_end().to_owned());
                failure.next = Some(Next::new("confirm", "git takeup doctor --fix --yes"));
                failure.data = serde_json::to_value(DoctorData {
                    verdict: worst(&findings),
                    findings,
                    mended: Vec::new(),
                })
                .ok();
                return Err(failure);
            }
        }
    }
    let mended = doctor::mend(&engine, &remedies);
    Ok(reply(doctor::examine(&engine, &complaints), mended))
}

fn worst(findings: &[Finding]) -> Health {
    findings
        .iter()
        .map(|finding| finding.verdict)
        .max()
        .unwrap_or(Health::Ok)
}

fn reply(findings: Vec<Finding>, mended: Vec<Mended>) -> Reply {
    let verdict = worst(&findings);
    let count = |health| {
        findings
            .iter()
            .filter(|finding| finding.verdict == health)
            .count()
    };
    let (warn, fail) = (count(Health::Warn), count(Health::Fail));
    let summary = match verdict {
        Health::Ok => format!("{} checks, all is well", findings.len()),
        Health::Warn => format!("{} checks, {warn} to look at", findings.len()),
        Health::Fail => format!(
            "{} checks, {fail} failed, {warn} to look at",
            findings.len()
        ),
    };
    let mut text = String::new();
    let column = findings
        .iter()
        .map(|finding| finding.check.len())
        .max()
        .unwrap_or(0)
        + 2;
    for one in &mended {
        let (word, style) = match &one.error {
            None => ("done", printer::GREEN),
            Some(_) => ("failed", printer::RED),
        };
        let _: std::fmt::Result = writeln!(
            text,
            "{} {}{}",
            paint(style, word),
            remedy_text(&one.remedy),
            one.error
                .as_ref()
                .map(|error| format!(": {}", text::one_line(error, 200)))
                .unwrap_or_default()
        );
    }
    for finding in &findings {
        let (word, style) = match finding.verdict {
            Health::Ok => ("ok  ", printer::GREEN),
            Health::Warn => ("warn", printer::YELLOW),
            Health::Fail => ("fail", printer::RED),
        };
        let message = text::one_line(&finding.message, 400);
        let body = printer::field(&finding.check, column, &message);
        for (number, line) in body.lines().enumerate() {
            let head = if number == 0 {
                paint(style, word)
            } else {
                "    ".to_owned()
            };
            let _: std::fmt::Result = writeln!(text, "{head}  {line}");
        }
        if let Some(advice) = &finding.advice {
            let advice = text::clean(advice, 2000);
            // A sentence, and below it what is to be copied as it stands.
            let (sentence, to_copy) = advice.split_once('\n').unwrap_or((&advice, ""));
            for line in printer::field("", column, sentence).lines() {
                let _: std::fmt::Result = writeln!(text, "      {}", paint(printer::DIM, line));
            }
            for line in to_copy.lines() {
                let _: std::fmt::Result = writeln!(text, "{}", paint(printer::DIM, line));
            }
        }
    }
    text.push_str(&summary);
    let can_fix = findings.iter().any(|finding| finding.remedy.is_some());
    let mut reply = Reply::new(
        summary,
        &DoctorData {
            verdict,
            findings,
            mended,
        },
    )
    .human(text);
    if can_fix {
        reply = reply.next(Next::new("fix", "git takeup doctor --fix"));
    }
    reply.exit(if verdict == Health::Fail {
        Exit::No
    } else {
        Exit::Done
    })
}

fn remedy_text(remedy: &Remedy) -> String {
    match remedy {
        Remedy::RemoveTemporary { path } => format!("remove {}", path.display()),
        Remedy::MoveAside { path, to } => {
            format!("rename {} to {}", path.display(), to.display())
        }
        Remedy::ForgetPlaces { places } => format!("forget {places} places that are gone"),
        Remedy::SettleObservations { observations } => {
            format!("look at the content for {observations} observations")
        }
        Remedy::RewriteSnapshot { path } => format!(
            "write the healthy records in {} anew; the damaged ones are kept aside",
            path.display()
        ),
        Remedy::ForgetLosses { path, records } => format!(
            "take note that {records} records of {} are lost, and say so no more",
            path.display()
        ),
        Remedy::MakePrivate { path } => format!("make {} private (mode 700)", path.display()),
    }
}
