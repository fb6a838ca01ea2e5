//! Our own ledger, told through the program itself. What the program never leaves behind (a decision that is not applied, a
//! number that was given out again) is put there through the ledger's own interface.
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use takeup_core::identity::Identity;
use takeup_core::ids::SessionRef;
use takeup_core::ledger::{Actor, Change, Transition};
use takeup_core::review::{Decision, ReviewState};
use takeup_core::status::{self, Event, Status};
use takeup_core::time::SystemClock;

use super::super::stage::{self, Stage, TASK, TITLE};
use super::super::story::{Aftermath, Deed};
use super::{Teller, Untold, session_ref};
use crate::Ran;

/// The ledger.
#[derive(Debug, Default)]
pub(super) struct Ledgers {
    /// The events that happened, each as the status before and after it showed.
    events: Vec<Event>,
}

const AGENT: &str = "opencode";

impl Teller for Ledgers {
    fn session(&self, who: &str) -> SessionRef {
        session_ref(AGENT, who)
    }

    fn events(&self) -> &[Event] {
        &self.events
    }

    fn tell(&mut self, stage: &mut Stage, who: &str, deed: &Deed) -> Result<(), Untold> {
        let of = ["--session", who, "--agent", AGENT];
        match deed {
            Deed::Begins {
                allow,
                avoid,
                prove,
            } => {
                let pid = stage.begin(who, None).to_string();
                let mut words = vec!["start", TITLE, "--pid", &pid];
                words.extend(of);
                for (option, values) in [("--allow", allow), ("--avoid", avoid), ("--check", prove)]
                {
                    for value in values {
                        words.extend([option, value]);
                    }
                }
                if prove.is_empty() {
                    words.push("--no-checks");
                }
                self.happens(stage, &words, who, &[]);
            }
            Deed::Saves { same } => {
                let event = if *same {
                    Event::SavedUnchanged
                } else {
                    Event::SavedChanged
                };
                self.happens(stage, &[&["save"][..], &of].concat(), who, &[event]);
            }
            Deed::Calls { tool, argument } => {
                let said = serde_json::json!({"sessionID": who, "directory": stage.root(), "tool": tool,
                    "argument": argument});
                stage.recorded(|stage| hook(stage, "tool-start", &said.to_string()));
            }
            Deed::Dies(aftermath) => dies(stage, who, *aftermath),
            Deed::Ends => {
                if status_of(stage, who).is_closed() {
                    let said = serde_json::json!({"sessionID": who, "directory": stage.root()});
                    stage.recorded(|stage| hook(stage, "session-end", &said.to_string()));
                } else {
                    run(stage, &[&["save", "--end"][..], &of].concat());
                }
                stage.close(who);
            }
            Deed::Asks { question, allow } => {
                let mut words = vec!["review", "request", question];
                words.extend(of);
                match allow {
                    Some(glob) => {
                        words.extend(["--reason", "BOUNDARY_EXPANSION_REQUIRED", "--allow", glob])
                    }
                    None => words.extend(["--reason", "EXTERNAL_SIDE_EFFECT"]),
                }
                self.happens(stage, &words, who, &[Event::ReviewRequested]);
            }
            Deed::Approves => {
                let words = ["review", "approve", TASK, "--confirm", "--by", "eve"];
                self.happens(stage, &words, "", &[Event::ReviewApproved]);
            }
            Deed::Rejects => {
                let words = ["review", "reject", TASK, "--confirm", "--by", "eve"];
                self.happens(stage, &words, "", &[Event::ReviewRejected]);
            }
            Deed::Decides => decides(stage),
            Deed::Takes { from } => {
                let pid = stage.begin(who, None).to_string();
                let mut words = vec!["resume", TASK, "--from", from, "--to", who];
                words.extend(["--agent", AGENT, "--pid", &pid, "--confirm"]);
                self.happens(stage, &words, from, &[Event::TakenUp]);
            }
            Deed::Rebuilds { from } => {
                let pid = stage.begin(who, None).to_string();
                let mut words = vec!["resume", TASK, "--from", from, "--to", who];
                words.extend(["--agent", AGENT, "--pid", &pid, "--rebuild"]);
                self.happens(stage, &words, from, &[Event::FoundStale, Event::TakenUp]);
            }
            Deed::GoesOn => {
                let pid = stage.begin(who, None).to_string();
                let mut words = vec!["resume", TASK, "--from", who, "--to", who];
                words.extend(["--agent", AGENT, "--pid", &pid, "--rebuild"]);
                self.happens(stage, &words, who, &[Event::Rebuilt]);
            }
            Deed::Evaluates { proved } => {
                let event = if *proved {
                    Event::EvaluatedProved
                } else {
                    Event::EvaluatedUnproved
                };
                let before = status_of(stage, who);
                let words = [&["evaluate", "--json"][..], &of].concat();
                let ran = stage.scratch.takeup_in(&stage.place, &words);
                assert_eq!(ran.code, i32::from(!proved), "{}{}", ran.stdout, ran.stderr);
                self.follows(before, &[event], status_of(stage, who));
            }
            Deed::Checks { number } => {
                run(stage, &[&["check", "--planned", number][..], &of].concat());
            }
            Deed::Finishes => {
                self.happens(
                    stage,
                    &[&["finish"][..], &of].concat(),
                    who,
                    &[Event::Finished],
                );
            }
            Deed::GivesUp => {
                self.happens(
                    stage,
                    &[&["abandon", TASK][..], &of].concat(),
                    who,
                    &[Event::GivenUp],
                );
            }
            Deed::MarkedStale => {
                change(stage, who, |identity| {
                    identity.status = status::apply(identity.status, Event::FoundStale)
                        .expect("it can be marked");
                });
                self.events.push(Event::FoundStale);
            }
            Deed::Torn => stage::cut(&journal(stage), 5),
            Deed::Damaged => {
                let path = journal(stage);
                let mut bytes = std::fs::read(&path).expect("the journal is there");
                let middle = bytes.len() - 40;
                bytes[middle] ^= 1;
                std::fs::write(&path, bytes).expect("the journal can be written");
            }
        }
        Ok(())
    }
}

fn run(stage: &Stage, words: &[&str]) -> Ran {
    stage.scratch.takeup_in(&stage.place, words).exits(0)
}

impl Ledgers {
    /// Runs a command, and demands that it does to the status what the events of the state machine say.
    fn happens(&mut self, stage: &Stage, words: &[&str], who: &str, events: &[Event]) {
        let before = (!events.is_empty()).then(|| status_of(stage, who));
        run(stage, words);
        if let Some(before) = before {
            self.follows(before, events, status_of(stage, who));
        }
    }

    fn follows(&mut self, before: Status, events: &[Event], after: Status) {
        let expected = events
            .iter()
            .try_fold(before, |status, event| status::apply(status, *event));
        assert_eq!(expected, Ok(after), "{before:?} and {events:?}");
        self.events.extend(events);
    }
}

/// Returns the status of the identity of a session, or of the only one there is.
fn status_of(stage: &Stage, who: &str) -> Status {
    let view = stage.ledger().read().expect("the ledger can be read");
    let entry = view.state.tasks.get(&crate::ledger::task_id(TASK));
    let identities = entry.map_or(&[][..], |entry| &entry.identities);
    identities
        .iter()
        .rev()
        .find(|identity| who.is_empty() || identity.session.id.as_str() == who)
        .map_or_else(|| panic!("{who} holds no task"), |identity| identity.status)
}

fn journal(stage: &Stage) -> std::path::PathBuf {
    stage.ledger().dir().join("journal.jsonl")
}

/// Hands an event over to the hook that an agent's plugin calls.
fn hook(stage: &Stage, event: &str, said: &str) {
    let mut child = stage
        .scratch
        .program_in(&stage.place)
        .args(["hook", AGENT, event])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut input = child.stdin.take().expect("its input is piped");
    input.write_all(said.as_bytes()).expect("it reads");
    drop(input);
    let ran = Ran::of(child.wait_with_output().expect("it ends")).exits(0);
    assert_eq!(ran.stderr, "");
}

fn dies(stage: &mut Stage, who: &str, aftermath: Aftermath) {
    stage.kill(who);
    if aftermath == Aftermath::Gone {
        return;
    }
    let stranger = stage.stranger();
    change(stage, who, |identity| {
        let process = identity.process.as_mut().expect("its process is recorded");
        process.pid = stranger;
        match aftermath {
            Aftermath::MachineRestarted => {
                process.boot_id = "00000000-0000-4000-8000-000000000000".to_owned();
            }
            Aftermath::NumberReused | Aftermath::Gone => {
                process.start_ticks = process.start_ticks.saturating_sub(360_000);
            }
        }
    });
}

fn change(stage: &Stage, who: &str, change: impl Fn(&mut Identity)) {
    put(stage, "test", |view| {
        let entry = view.state.tasks.get(&crate::ledger::task_id(TASK))?;
        let mut identity = entry.identity(&session_ref(AGENT, who))?.clone();
        change(&mut identity);
        identity.revision += 1;
        Some(Change::Identity {
            identity: Box::new(identity),
        })
    });
}

/// A person's yes is recorded, as it is before it is applied.
fn decides(stage: &Stage) {
    put(stage, "review-decide", |view| {
        let entry = view.state.tasks.get(&crate::ledger::task_id(TASK))?;
        let mut review = entry.reviews.last()?.clone();
        review.state = ReviewState::Decided {
            decision: Decision {
                approved: true,
                by: "eve".to_owned(),
                session: session_ref("person", "eve"),
                at: stage::now(),
                remark: None,
                fingerprint: review.fingerprint.clone(),
            },
        };
        Some(Change::Review {
            review: Box::new(review),
        })
    });
}

fn put(
    stage: &Stage,
    operation: &str,
    change: impl Fn(&takeup_core::ledger::View) -> Option<Change>,
) {
    let committed = stage
        .ledger()
        .transact(&SystemClock, Duration::from_mins(1), |view| {
            let changes = change(view).into_iter().collect();
            let transition = Transition {
                at: stage::now(),
                actor: Actor {
                    session: session_ref("person", "eve"),
                    pid: std::process::id(),
                },
                operation: operation.to_owned(),
                changes,
            };
            Ok::<_, std::convert::Infallible>((Some(transition), ()))
        })
        .expect("the ledger can be written");
    assert!(committed.wrote);
}
