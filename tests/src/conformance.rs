//! Conformance: one story, told in every format and asked for through every face, has one answer.
//!
//! The corpus lies in `tests/conformance/*.toml`. A scenario is a [story] in words that belong to no format, and
//! the reasons that hold at its end. A [teller](tell) writes the story down in one format. What a format cannot carry is
//! declared, in `formats.toml` for every story or at the scenario for one; the answer that is right without that fact
//! follows from it ([`facts::without`]). Anything else is a difference.
//!
//! # Limitations
//! Tellers are written from the descriptions of the formats and from files that the real programs made; whether a newer
//! version of a program still writes so is what `cargo xtask e2e` tries.
pub mod corpus;
pub mod faces;
pub mod facts;
pub mod report;
pub mod stage;
pub mod story;
pub mod tell;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use takeup_core::ids::TaskId;
use takeup_core::status::Status;
use takeup_core::verdict::{ReasonCode, Verdict};

use corpus::{Corpus, Scenario};
use faces::{Answer, Said};
use facts::{Fact, Format, verdict_of};
use stage::{Programs, Stage, TASK};
use story::Step;
use tell::{Untold, teller};

/// The answer that is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Every reason, the deciding one first; none where there is no candidate.
    pub reasons: Vec<ReasonCode>,
    /// The recorded status.
    pub status: Option<Status>,
    /// The kinds of damage.
    pub issues: Vec<String>,
    /// The facts whose lack made a difference.
    pub lacks: Vec<Fact>,
}

impl Expected {
    /// Works out what is right for a scenario in a format.
    pub fn of(corpus: &Corpus, scenario: &Scenario, format: Format) -> Self {
        let mut expected = Self {
            reasons: scenario.reasons.clone(),
            status: scenario.status,
            issues: scenario.issues.clone(),
            lacks: Vec::new(),
        };
        if !format.holds_statuses() {
            expected.status = None;
        }
        if let Some(exception) = scenario.exception(format) {
            if let Some(reasons) = &exception.reasons {
                expected.reasons.clone_from(reasons);
            }
            expected.status = exception.status.or(expected.status);
            expected.issues = exception.issues.clone().unwrap_or(expected.issues);
            expected.lacks.extend(exception.lacks);
        }
        for fact in corpus.notes(format).lacks.keys() {
            if facts::without(*fact, &mut expected.reasons) {
                expected.lacks.push(*fact);
            }
        }
        expected.lacks.sort();
        expected.lacks.dedup();
        expected
    }

    /// Returns the verdict; `None` where there is no candidate.
    pub fn verdict(&self) -> Option<Verdict> {
        self.reasons.first().and_then(|reason| verdict_of(*reason))
    }
}

/// What came of one telling.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The scenario.
    pub scenario: String,
    /// The format.
    pub format: Format,
    /// What was expected, and found where there is no difference.
    pub expected: Expected,
    /// What was different.
    pub difference: Option<String>,
}

/// Tells scenarios in formats on as many threads as the machine has processors. `wanted` chooses.
pub fn run(
    corpus: &Corpus,
    programs: &Programs,
    wanted: impl Fn(&Scenario, Format) -> bool,
) -> Vec<Cell> {
    let work: Vec<(&Scenario, Format)> = corpus
        .scenarios()
        .flat_map(|scenario| Format::ALL.map(|format| (scenario, format)))
        .filter(|(scenario, format)| scenario.is_told_in(*format) && wanted(scenario, *format))
        .collect();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let (next, cells) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((scenario, format)) = work.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let cell = cell(corpus, programs, scenario, *format);
                    cells.lock().expect("nobody panics with it").push(cell);
                }
            });
        }
    });
    let mut cells = cells.into_inner().expect("nobody panics with it");
    cells.sort_by_key(|cell: &Cell| {
        work.iter()
            .position(|(scenario, format)| scenario.name == cell.scenario && *format == cell.format)
    });
    cells
}

fn cell(corpus: &Corpus, programs: &Programs, scenario: &Scenario, format: Format) -> Cell {
    let expected = Expected::of(corpus, scenario, format);
    let difference = catch_unwind(AssertUnwindSafe(|| {
        play(corpus, programs, scenario, format, &expected)
    }))
    .unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(text.unwrap_or_else(|| "a panic without words".to_owned()))
    });
    Cell {
        scenario: scenario.name.clone(),
        format,
        expected,
        difference: difference.err(),
    }
}

/// Plays one scenario in one format, and compares every face's answer with what is right.
fn play(
    corpus: &Corpus,
    programs: &Programs,
    scenario: &Scenario,
    format: Format,
    expected: &Expected,
) -> Result<(), String> {
    let mut stage = Stage::new(programs);
    let mut teller = teller(format);
    for step in scenario.steps() {
        match &step {
            Step::Told { who, deed } => {
                if let Err(Untold(fact)) = teller.tell(&mut stage, who, deed)
                    && !corpus.notes(format).lacks.contains_key(&fact)
                {
                    return Err(format!(
                        "{deed:?} cannot be told, and {fact:?} is not declared"
                    ));
                }
            }
            Step::Shell(_) | Step::Go(_) => stage.set(&step),
        }
    }
    if format == Format::Ledger && !scenario.events.is_empty() && teller.events() != scenario.events
    {
        return Err(format!("the events were {:?}", teller.events()));
    }
    let session = teller.session(&scenario.asked());
    let answer = faces::command(&stage);
    compare(
        scenario,
        expected,
        &answer,
        session.agent.as_str(),
        session.id.as_str(),
    )?;

    let task = answer
        .candidates
        .iter()
        .find(|one| one.session == session.id.as_str())
        .map_or(TASK, |one| one.task.as_str());
    let (by_mcp, refused) = faces::mcp(&stage, task, session.id.as_str());
    same("the MCP server", &answer, &by_mcp)?;
    let takeable = matches!(
        expected.verdict(),
        Some(Verdict::ResumeVerification | Verdict::StaleTask)
    );
    match refused {
        None => return Err("a task was taken up without anybody's yes".to_owned()),
        Some(code) if takeable && code != "confirmation-needed" => {
            return Err(format!("without a yes the take-up is refused with {code}"));
        }
        Some(code) if !takeable && code == "confirmation-needed" => {
            return Err("a yes is asked for where nothing can be taken up".to_owned());
        }
        Some(_) => {}
    }
    same("the skill", &answer, &faces::skill(&stage))?;
    let (mut told, mut text) = faces::notice(&stage);
    for _ in 0..4 {
        // On a busy machine a hook gives up.
        if !text.is_empty() || answer.candidates.is_empty() {
            break;
        }
        (told, text) = faces::notice(&stage);
    }
    let due = matches!(
        expected.verdict(),
        Some(Verdict::ResumeVerification | Verdict::StaleTask | Verdict::HumanReview)
    );
    let verdict = expected.verdict().map_or("", Verdict::code);
    let said = told.iter().any(|(_, said)| said == verdict);
    if due != said && (due || told.len() == answer.candidates.len()) {
        return Err(format!("the notice does not fit {verdict:?}: {text:?}"));
    }
    if let Some(secret) = &scenario.secret {
        for (face, text) in [
            ("inspect", &answer.text),
            ("the MCP server", &by_mcp.text),
            ("the notice", &text),
        ] {
            if text.contains(secret.as_str()) {
                return Err(format!("{face} tells the secret"));
            }
        }
    }
    Ok(())
}

fn compare(
    scenario: &Scenario,
    expected: &Expected,
    answer: &Answer,
    agent: &str,
    session: &str,
) -> Result<(), String> {
    let found = answer
        .candidates
        .iter()
        .find(|one| one.agent == agent && one.session == session);
    if answer.issues != expected.issues {
        return Err(format!(
            "damage {:?} is reported, {:?} is right",
            answer.issues, expected.issues
        ));
    }
    let Some(found) = found else {
        if expected.reasons.is_empty() {
            return Ok(());
        }
        return Err(format!(
            "no candidate of {agent}:{session} in {:?}; right is {:?}",
            answer.candidates, expected.reasons
        ));
    };
    let right: Vec<&str> = expected.reasons.iter().map(|code| code.code()).collect();
    if found.reasons != right {
        return Err(format!(
            "{} for {:?}, right is {} for {right:?}",
            found.verdict,
            found.reasons,
            expected.verdict().map_or("none", Verdict::code),
        ));
    }
    if expected.verdict().map(Verdict::code) != Some(found.verdict.as_str()) {
        return Err(format!("{} does not follow from {right:?}", found.verdict));
    }
    // A session of which only our hooks know has no title, and is called by its id.
    if found.task != TASK && found.task != TaskId::from_title(session).as_str() {
        return Err(format!("the task is called {:?}", found.task));
    }
    if let Some(status) = expected.status
        && status.code() != found.status
    {
        return Err(format!(
            "status {}, right is {}",
            found.status,
            status.code()
        ));
    }
    if let Some(paths) = &scenario.paths
        && !found.paths.is_empty()
        && &found.paths != paths
    {
        return Err(format!(
            "changed paths {:?}, right are {paths:?}",
            found.paths
        ));
    }
    Ok(())
}

fn same(face: &str, one: &Answer, other: &Answer) -> Result<(), String> {
    let of = |answer: &Answer| -> (Vec<Said>, Vec<String>) {
        (answer.candidates.clone(), answer.issues.clone())
    };
    if of(one) == of(other) {
        return Ok(());
    }
    Err(format!(
        "{face} answers {:?}, inspect {:?}",
        of(other),
        of(one)
    ))
}
