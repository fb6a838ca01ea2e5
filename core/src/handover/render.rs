//! From the facts to the lines, and from the lines to what fits.
use std::collections::VecDeque;

mod checks;
mod running;

use super::markdown::{self, code};
use super::{Claim, Document, Grade, Handover, LEAST_BUDGET, Line, Section, Standing};
use crate::redact::{Masker, TABLE_VERSION};
use crate::review::ReviewState;
use crate::text;
use crate::verdict::ReasonCode;

/// The longest single words of others, in characters.
const TITLE: usize = 160;
const NAME: usize = 120;
const PATH: usize = 200;
const COMMAND: usize = 240;
/// The longest quotes of others, in characters.
const ASKED: usize = 4_000;
const NOTE: usize = 800;
const EXPLANATION: usize = 600;
/// More than this of a text is not even looked at.
const LOOKED_AT: usize = 100_000;

/// A section before it is known how much of it fits.
struct Draft {
    id: &'static str,
    title: &'static str,
    /// Filled in this order; the smallest first.
    rank: u8,
    lines: Vec<Line>,
    /// The newest lines are kept and not the first.
    newest: bool,
    /// What one of its lines is called, and where all of them are found.
    what: &'static str,
    found: String,
}

/// Cleans, masks and cuts words of others, and counts the masks.
struct Pen<'a> {
    masker: &'a Masker,
    masked: usize,
    /// The characters of the whole document.
    budget: usize,
}

impl Pen<'_> {
    fn mask(&mut self, text: &str) -> String {
        let masked = self.masker.text(text);
        self.masked += masked.count;
        masked.text
    }

    /// Words on one line, as they are.
    fn plain(&mut self, words: &str, most: usize) -> String {
        let clean = self.mask(&text::one_line(words, LOOKED_AT));
        text::one_line(&clean, most)
    }

    /// Words on one line that are mostly ours, as Markdown without any meaning of its own.
    fn words(&mut self, words: &str, most: usize) -> String {
        let mut escaped = String::new();
        for c in self.plain(words, most).chars() {
            if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>') {
                escaped.push('\\');
            }
            escaped.push(c);
        }
        escaped
    }

    /// Words on one line, in a code span.
    fn code(&mut self, words: &str, most: usize) -> String {
        code(&self.plain(words, most))
    }

    /// A path, in a code span.
    fn path(&mut self, path: &str) -> String {
        let masked = self.mask(path);
        code(&text::path(&masked, PATH))
    }

    /// A longer text.
    fn quote(&mut self, quoted: &str, most: usize) -> String {
        let clean = self.mask(&text::clean(quoted, LOOKED_AT));
        text::clean(&clean, most)
    }
}

fn line(grade: Grade, text: impl Into<String>) -> Line {
    Line {
        grade,
        text: text.into(),
        quote: None,
    }
}

pub(super) fn document(handover: &Handover, budget: usize, masker: &Masker) -> Document {
    let budget = budget.max(LEAST_BUDGET);
    let mut pen = Pen {
        masker,
        masked: 0,
        budget,
    };
    let drafts = drafts(handover, &mut pen);
    let mut document = Document {
        task_id: handover.task_id.clone(),
        title: pen.plain(&handover.title, TITLE),
        made_at: handover.at,
        budget,
        sections: Vec::new(),
        left_out: Vec::new(),
        masked: pen.masked,
        mask_table: TABLE_VERSION,
    };
    let transcript = handover
        .transcript
        .as_ref()
        .map(|path| format!("the full transcript: {}", pen.path(path)));
    // What was left out is known only when the rest is chosen; where that makes the document too long, less is chosen.
    let mut room = budget;
    loop {
        let counts = choose(&drafts, room);
        document.left_out = left_out(&drafts, &counts, transcript.as_deref());
        document.sections = sections(&drafts, &counts);
        let length = markdown::of(&document).chars().count();
        match length.checked_sub(budget).filter(|over| *over > 0) {
            Some(over) if room > 0 => room = room.saturating_sub(over),
            Some(_) | None => return document,
        }
    }
}

/// Decides how many lines of each section fit into `room` characters: a few of each first, then more.
fn choose(drafts: &[Draft], room: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..drafts.len()).collect();
    order.sort_by_key(|number| drafts.get(*number).map(|draft| draft.rank));
    let mut counts = vec![0; drafts.len()];
    let mut closed = vec![false; drafts.len()];
    let mut used = markdown::of(&Document {
        sections: Vec::new(),
        ..blank()
    })
    .chars()
    .count()
        + NAME;
    for round in [3, 12, usize::MAX] {
        for number in &order {
            let (Some(draft), Some(count), Some(closed)) = (
                drafts.get(*number),
                counts.get_mut(*number),
                closed.get_mut(*number),
            ) else {
                continue;
            };
            let lines: VecDeque<&Line> = if draft.newest {
                draft.lines.iter().rev().collect()
            } else {
                draft.lines.iter().collect()
            };
            for line in lines.iter().skip(*count) {
                if *count >= round || *closed {
                    break;
                }
                let heading = if *count == 0 {
                    markdown::heading(draft.title).chars().count()
                } else {
                    0
                };
                let cost = heading + markdown::line(line).chars().count();
                if used + cost > room {
                    // Lines are kept in a row: no later one takes the place of an earlier one.
                    *closed = true;
                    break;
                }
                used += cost;
                *count += 1;
            }
        }
    }
    counts
}

fn blank() -> Document {
    Document {
        task_id: crate::ids::TaskId::from_title("x"),
        title: String::new(),
        made_at: crate::time::Time::EPOCH,
        budget: 0,
        sections: Vec::new(),
        left_out: Vec::new(),
        masked: 0,
        mask_table: TABLE_VERSION,
    }
}

fn sections(drafts: &[Draft], counts: &[usize]) -> Vec<Section> {
    drafts
        .iter()
        .zip(counts)
        .filter(|(_, count)| **count > 0)
        .map(|(draft, count)| {
            let skipped = if draft.newest {
                draft.lines.len().saturating_sub(*count)
            } else {
                0
            };
            Section {
                id: draft.id,
                title: draft.title,
                lines: draft
                    .lines
                    .iter()
                    .skip(skipped)
                    .take(*count)
                    .cloned()
                    .collect(),
            }
        })
        .collect()
}

fn left_out(drafts: &[Draft], counts: &[usize], transcript: Option<&str>) -> Vec<String> {
    let mut left_out: Vec<String> = drafts
        .iter()
        .zip(counts)
        .filter_map(|(draft, count)| {
            let more = draft.lines.len().saturating_sub(*count);
            let end = if draft.newest { "older " } else { "" };
            (more > 0).then(|| {
                format!(
                    "{end}{}: {more} of {}; see `{}`",
                    draft.what,
                    draft.lines.len(),
                    draft.found
                )
            })
        })
        .collect();
    left_out.extend(transcript.map(ToOwned::to_owned));
    left_out
}

fn drafts(handover: &Handover, pen: &mut Pen<'_>) -> Vec<Draft> {
    let task_id = &handover.task_id;
    let draft = |id, title, rank, lines, what, found: String| Draft {
        id,
        title,
        rank,
        lines,
        newest: false,
        what,
        found,
    };
    let (contradicted, other): (Vec<&Claim>, Vec<&Claim>) = handover
        .claims
        .iter()
        .partition(|claim| matches!(claim.standing, Standing::Contradicted { .. }));
    vec![
        draft(
            "contradicted",
            "Claimed, and not so",
            1,
            contradicted
                .iter()
                .map(|claim| claim_line(claim, pen))
                .collect(),
            "contradicted claims",
            format!("git takeup handover {task_id} --budget 100000"),
        ),
        draft(
            "task",
            "The task",
            0,
            task(handover, pen),
            "facts",
            format!("git takeup show {task_id}"),
        ),
        draft(
            "verdict",
            "May it be taken up?",
            2,
            verdict(handover, pen),
            "reasons",
            "git takeup inspect".to_owned(),
        ),
        Draft {
            newest: true,
            ..draft(
                "asked",
                "What was asked",
                6,
                asked(handover, pen),
                "prompts",
                "git takeup sessions".to_owned(),
            )
        },
        draft(
            "reviews",
            "Waits for a person",
            3,
            reviews(handover, pen),
            "reviews",
            "git takeup review list".to_owned(),
        ),
        draft(
            "checks",
            "Checks",
            4,
            checks::lines(handover, pen),
            "checks",
            format!("git takeup plan list --task {task_id}"),
        ),
        draft(
            "running",
            "In the background",
            4,
            running::lines(handover, pen),
            "background tasks",
            "git takeup bg list".to_owned(),
        ),
        draft(
            "effects",
            "May or may not have happened",
            5,
            effects(handover, pen),
            "unfinished calls",
            format!("git takeup show {task_id}"),
        ),
        draft(
            "changes",
            "Changed since it was left",
            7,
            changes(handover, pen),
            "changes",
            format!("git takeup diff {task_id} --stat"),
        ),
        Draft {
            newest: true,
            ..draft(
                "notes",
                "Notes",
                8,
                notes(handover, pen),
                "notes",
                format!("git takeup show {task_id}"),
            )
        },
        draft(
            "todos",
            "The session's own plan",
            10,
            todos(handover, pen),
            "items of the plan",
            "git takeup sessions".to_owned(),
        ),
        draft(
            "claims",
            "Other claims",
            11,
            other.iter().map(|claim| claim_line(claim, pen)).collect(),
            "claims",
            "git takeup sessions".to_owned(),
        ),
        Draft {
            newest: true,
            ..draft(
                "sessions",
                "Sessions",
                9,
                sessions_of(handover, pen),
                "sessions",
                format!("git takeup log {task_id}"),
            )
        },
    ]
}

fn task(handover: &Handover, pen: &mut Pen<'_>) -> Vec<Line> {
    let mut lines = vec![line(
        Grade::Recorded,
        format!("title: {}", pen.code(&handover.title, TITLE)),
    )];
    for (label, patterns) in [
        ("may edit only", &handover.boundary.allowed),
        ("must not touch", &handover.boundary.avoided),
    ] {
        if !patterns.is_empty() {
            let patterns = pen.code(&patterns.join(" "), COMMAND);
            lines.push(line(Grade::Recorded, format!("{label}: {patterns}")));
        }
    }
    if let Some(left) = &handover.left_in {
        let spot = spot(&left.root, left.branch.as_ref(), left.head.as_ref(), pen);
        lines.push(line(
            Grade::Recorded,
            format!("left in another place: {spot}"),
        ));
    }
    let spot = spot(
        &handover.root,
        handover.branch.as_ref(),
        handover.head.as_ref(),
        pen,
    );
    let what = match &handover.left_in {
        None => "work tree",
        Some(left) if left.is_compared => "the work tree that was compared",
        Some(_) => "this was made in a work tree that was not compared",
    };
    lines.push(line(Grade::Observed, format!("{what}: {spot}")));
    let command = handover
        .next
        .command
        .as_ref()
        .map(|command| format!(": {}", pen.code(command, COMMAND)));
    lines.push(line(
        Grade::Observed,
        format!(
            "next step at {}: {}{}",
            handover.at,
            pen.words(&handover.next.action, NAME),
            command.unwrap_or_default()
        ),
    ));
    lines
}

/// Names a work tree, its branch and its commit.
fn spot(root: &str, branch: Option<&String>, head: Option<&String>, pen: &mut Pen<'_>) -> String {
    format!(
        "{}, {}, {}",
        pen.path(root),
        branch.map_or_else(
            || "no branch".to_owned(),
            |branch| format!("branch {}", pen.code(branch, NAME))
        ),
        head.map_or_else(
            || "no commit".to_owned(),
            |head| format!("at {}", pen.code(head, 64))
        ),
    )
}

fn verdict(handover: &Handover, pen: &mut Pen<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    match &handover.judgement {
        Some(judgement) => {
            lines.push(line(
                Grade::Observed,
                format!(
                    "verdict `{}`; recorded status `{}`",
                    judgement.verdict.code(),
                    handover.status.code()
                ),
            ));
            lines.extend(judgement.reasons.iter().map(|reason| {
                line(
                    Grade::Observed,
                    format!(
                        "`{}`: {}",
                        reason.code.code(),
                        pen.code(&reason.message, COMMAND)
                    ),
                )
            }));
        }
        None => lines.push(line(
            Grade::Unknown,
            format!(
                "it could not be judged; recorded status `{}`",
                handover.status.code()
            ),
        )),
    }
    lines
}

fn asked(handover: &Handover, pen: &mut Pen<'_>) -> Vec<Line> {
    handover
        .asked
        .iter()
        .map(|asked| Line {
            grade: Grade::Recorded,
            text: format!(
                "to {}{}",
                pen.code(&asked.session.to_string(), NAME),
                asked.at.map_or_else(String::new, |at| format!(" at {at}"))
            ),
            quote: Some(pen.quote(&asked.text, ASKED.min(pen.budget / 3))),
        })
        .collect()
}

fn changes(handover: &Handover, pen: &mut Pen<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    if handover
        .left_in
        .as_ref()
        .is_some_and(|left| !left.is_compared)
    {
        let text = "not compared: it was left in another place";
        return vec![line(Grade::Unknown, text)];
    }
    if let Some(why) = &handover.changes_incomplete {
        lines.push(line(
            Grade::Unknown,
            format!("this list is not whole: {}", pen.code(why, COMMAND)),
        ));
    } else if handover.changes.is_empty() && handover.commits.is_empty() {
        let is_equal = handover
            .judgement
            .as_ref()
            .is_some_and(|judgement| judgement.has(ReasonCode::ContentEqual));
        lines.push(if is_equal {
            line(Grade::Observed, "nothing")
        } else {
            line(Grade::Unknown, "no list of what changed could be made")
        });
    }
    lines.extend(handover.changes.iter().map(|change| {
        let outside = if change.inside_boundary {
            ""
        } else {
            ", **outside the boundary**"
        };
        line(
            Grade::Observed,
            format!(
                "{}: {}{outside}",
                pen.path(&change.path),
                pen.words(&change.what, NAME)
            ),
        )
    }));
    lines.extend(handover.commits.iter().map(|commit| {
        line(
            Grade::Observed,
            format!("commit {}", pen.code(commit, NAME)),
        )
    }));
    lines
}

fn reviews(handover: &Handover, pen: &mut Pen<'_>) -> Vec<Line> {
    handover
        .reviews
        .iter()
        .map(|review| {
            let state = match &review.state {
                ReviewState::Pending => "nobody has decided".to_owned(),
                ReviewState::Decided { decision } => {
                    format!("{} and not yet applied", decided(decision.approved))
                }
                ReviewState::Applied { decision, .. } => decided(decision.approved).to_owned(),
            };
            Line {
                grade: Grade::Recorded,
                text: format!(
                    "{} {}: {state}; what to do: {}",
                    pen.code(review.review_id.as_str(), NAME),
                    pen.code(&review.reason_code, NAME),
                    pen.code(&review.required_action, COMMAND)
                ),
                quote: Some(pen.quote(
                    &format!("{}\n{}", review.title, review.explanation),
                    EXPLANATION,
                )),
            }
        })
        .collect()
}

const fn decided(approved: bool) -> &'static str {
    if approved { "approved" } else { "rejected" }
}

fn effects(handover: &Handover, pen: &mut Pen<'_>) -> Vec<Line> {
    handover
        .effects
        .iter()
        .map(|effect| {
            line(
                Grade::Unknown,
                format!(
                    "{} {}{}; look before you do it again",
                    pen.code(&effect.tool, NAME),
                    pen.code(&effect.argument, COMMAND),
                    effect
                        .at
                        .map_or_else(String::new, |at| format!(", begun {at}"))
                ),
            )
        })
        .collect()
}

fn notes(handover: &Handover, pen: &mut Pen<'_>) -> Vec<Line> {
    handover
        .notes
        .iter()
        .map(|note| Line {
            grade: Grade::Claimed,
            text: format!("{} at {}", pen.code(&note.by.to_string(), NAME), note.at),
            quote: Some(pen.quote(&note.text, NOTE)),
        })
        .collect()
}

fn todos(handover: &Handover, pen: &mut Pen<'_>) -> Vec<Line> {
    handover
        .todos
        .iter()
        .map(|item| {
            line(
                Grade::Claimed,
                format!(
                    "[{}] {} ({})",
                    if item.done { "x" } else { " " },
                    pen.code(&item.text, COMMAND),
                    pen.code(&item.state, NAME)
                ),
            )
        })
        .collect()
}

fn claim_line(claim: &Claim, pen: &mut Pen<'_>) -> Line {
    let by = pen.code(&claim.by.to_string(), NAME);
    let words = pen.code(&claim.text, COMMAND);
    match &claim.standing {
        Standing::Contradicted { by: proof } => line(
            Grade::Observed,
            format!("{by} said {words}; but {}", pen.words(proof, COMMAND)),
        ),
        Standing::Confirmed { by: proof } => line(
            Grade::Observed,
            format!("{by} said {words}; it is so: {}", pen.words(proof, COMMAND)),
        ),
        Standing::Unchecked => line(
            Grade::Claimed,
            format!("{by} said {words}; nothing here tells"),
        ),
    }
}

fn sessions_of(handover: &Handover, pen: &mut Pen<'_>) -> Vec<Line> {
    let last = handover.sessions.len().saturating_sub(1);
    handover
        .sessions
        .iter()
        .enumerate()
        .map(|(number, session)| {
            let resume = session.resume_command.as_ref().map(|command| {
                format!(
                    "; its own agent continues it with {}",
                    pen.code(command, COMMAND)
                )
            });
            line(
                Grade::Recorded,
                format!(
                    "{}{}: `{}`, {}, last record {}{}",
                    if number == last { "last: " } else { "" },
                    pen.code(&session.session.to_string(), NAME),
                    session.status.code(),
                    pen.words(&session.liveness, COMMAND),
                    session.last_record,
                    resume.unwrap_or_default()
                ),
            )
        })
        .collect()
}
