//! The checks of the plan, and whether they prove anything.
use super::{COMMAND, Handover, Line, NAME, Pen, line};
use crate::evidence::Outcome;
use crate::handover::Grade;

pub(super) fn lines(handover: &Handover, pen: &mut Pen<'_>) -> Vec<Line> {
    if handover.checks.is_empty() {
        let text = if handover.no_checks {
            "the plan is empty on purpose: nothing will be proved"
        } else {
            "the plan is empty"
        };
        return vec![line(Grade::Recorded, text)];
    }
    handover
        .checks
        .iter()
        .map(|check| {
            let run = match (&check.outcome, check.at) {
                (Some(outcome), Some(at)) => format!(": {}, {at}", outcome_words(outcome)),
                (Some(outcome), None) => format!(": {}", outcome_words(outcome)),
                (None, _) => String::new(),
            };
            let (mark, meaning) = if check.counts {
                ("fresh", "proved on the present content")
            } else {
                (check.proof.as_str(), "no proof of the present content")
            };
            let reported = if check.outcome.is_some() && !check.observed {
                "; reported, not seen by git takeup"
            } else {
                ""
            };
            line(
                if check.outcome.is_some() && !check.observed {
                    Grade::Claimed
                } else {
                    Grade::Recorded
                },
                format!(
                    "**{}** {}{run} ({meaning}{reported})",
                    pen.words(mark, NAME),
                    pen.code(&check.command, COMMAND)
                ),
            )
        })
        .collect()
}

fn outcome_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited { code: 0 } => "passed".to_owned(),
        Outcome::Exited { code } => format!("failed with exit status {code}"),
        Outcome::Signalled { signal } => format!("ended by signal {signal}"),
        Outcome::NotStarted { .. } => "not started".to_owned(),
    }
}
