//! What runs in the background for the task: it goes on while the task changes hands.
use super::{COMMAND, Handover, Line, NAME, Pen, line};
use crate::handover::Grade;

pub(super) fn lines(handover: &Handover, pen: &mut Pen<'_>) -> Vec<Line> {
    let mut lines: Vec<Line> = handover
        .running
        .iter()
        .map(|task| {
            let (grade, how) = if task.is_seen {
                (Grade::Observed, "runs")
            } else {
                (
                    Grade::Unknown,
                    "was started, and cannot be seen from here; it may run",
                )
            };
            line(
                grade,
                format!(
                    "{} {how}: {}, since {}; look at it with {}, stop it with {}",
                    pen.code(&task.name, NAME),
                    pen.code(&task.command, COMMAND),
                    task.since,
                    pen.code(&task.look, COMMAND),
                    pen.code(&task.stop, COMMAND),
                ),
            )
        })
        .collect();
    lines.extend(handover.running_of_agents.iter().map(|task| {
        let (grade, how) = if task.runs {
            (Grade::Observed, "runs")
        } else {
            (Grade::Unknown, "may run")
        };
        line(
            grade,
            format!(
                "{} {how}, started by {} with its agent's own means: {}; look at it with {}",
                pen.code(&task.name, NAME),
                pen.code(&task.session.to_string(), NAME),
                pen.code(&task.proof, COMMAND),
                pen.code(&task.look, COMMAND),
            ),
        )
    }));
    lines.extend(handover.ended.iter().map(|task| {
        let at = task.at.map_or_else(String::new, |at| format!(" at {at}"));
        line(
            Grade::Observed,
            format!(
                "{} ended{at}: {}; look at it with {}",
                pen.code(&task.name, NAME),
                pen.code(&task.how, COMMAND),
                pen.code(&task.look, COMMAND),
            ),
        )
    }));
    lines.extend(handover.running_unread.iter().map(|path| {
        line(
            Grade::Unknown,
            format!(
                "the record of a background task cannot be read, it may be of this task: {}",
                pen.path(path)
            ),
        )
    }));
    lines
}
