//! Stories: what happens to a place and in sessions, line by line, in words that belong to no format.
//!
//! A line that begins with `$` is run by the shell in the place. `go PATH` makes another folder the place. Every other line
//! says what a session or a person does; how that is written down is each format's own matter.
use std::fmt;

/// One line of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A command for the shell, run in the place.
    Shell(String),
    /// Another folder is the place from here on, named from the present one.
    Go(String),
    /// Somebody does something.
    Told {
        /// The name of the session; empty where a person acts, or something happens to the records.
        who: String,
        /// What.
        deed: Deed,
    },
}

/// What a session or a person does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A session begins the task, and its process runs from here on.
    Begins {
        /// Globs it may edit.
        allow: Vec<String>,
        /// Globs it must avoid.
        avoid: Vec<String>,
        /// Commands that have to pass.
        prove: Vec<String>,
    },
    /// A turn ends, and what is left is recorded.
    Saves {
        /// Nothing changed since the record before.
        same: bool,
    },
    /// A call begins and does not end.
    Calls {
        /// The tool.
        tool: String,
        /// Its argument.
        argument: String,
    },
    /// Its process is killed in the middle of a turn.
    Dies(Aftermath),
    /// It ends in good order.
    Ends,
    /// It puts a question to a person.
    Asks {
        /// The question.
        question: String,
        /// A glob it wants to edit.
        allow: Option<String>,
    },
    /// A person says yes.
    Approves,
    /// A person says no.
    Rejects,
    /// A person has said yes, and nothing was done about it yet.
    Decides,
    /// It takes the task up, as it was left by another session.
    Takes {
        /// That session.
        from: String,
    },
    /// It takes the task up on other content than was left.
    Rebuilds {
        /// The session that left it.
        from: String,
    },
    /// It goes on with its own task, on other content than it left.
    GoesOn,
    /// What is proved is looked at.
    Evaluates {
        /// Everything is.
        proved: bool,
    },
    /// A planned check is run.
    Checks {
        /// Its number in the plan, from 1.
        number: String,
    },
    /// The task is closed.
    Finishes,
    /// The task is given up.
    GivesUp,
    /// The task was found on other content, and marked.
    MarkedStale,
    /// The end of the session's newest record is cut off.
    Torn,
    /// A byte in the middle of the session's record is another one.
    Damaged,
}

/// What becomes of the number of a process that died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aftermath {
    /// Nothing has it.
    Gone,
    /// Another process has it now.
    NumberReused,
    /// The machine was started again since, and another process has it now.
    MachineRestarted,
}

/// A line that is no step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoStep(String);

impl fmt::Display for NoStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no step of a story: {:?}", self.0)
    }
}

/// Reads a story.
pub fn read(text: &str) -> Result<Vec<Step>, NoStep> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(step)
        .collect()
}

fn step(line: &str) -> Result<Step, NoStep> {
    let refuse = || NoStep(line.to_owned());
    if let Some(command) = line.strip_prefix("$ ") {
        return Ok(Step::Shell(command.to_owned()));
    }
    if let Some(path) = line.strip_prefix("go ") {
        return Ok(Step::Go(path.to_owned()));
    }
    let told = |who: &str, deed| {
        Ok(Step::Told {
            who: who.to_owned(),
            deed,
        })
    };
    match line {
        "a person approves" => return told("", Deed::Approves),
        "a person rejects" => return told("", Deed::Rejects),
        "a person approves, and nothing is done yet" => return told("", Deed::Decides),
        _ => {}
    }
    let words = shlex::split(line).ok_or_else(refuse)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [who, rest @ ..] = words.as_slice() else {
        return Err(refuse());
    };
    told(who, deed(rest).ok_or_else(refuse)?)
}

fn deed(words: &[&str]) -> Option<Deed> {
    Some(match words {
        ["begins", options @ ..] => {
            let named = |name: &str| -> Vec<String> {
                let pairs = options.chunks(2).filter(|pair| pair.first() == Some(&name));
                pairs
                    .filter_map(|pair| pair.get(1).map(|value| (*value).to_owned()))
                    .collect()
            };
            let known = options
                .chunks(2)
                .all(|pair| matches!(pair, ["allow" | "avoid" | "prove", _]));
            known.then(|| Deed::Begins {
                allow: named("allow"),
                avoid: named("avoid"),
                prove: named("prove"),
            })?
        }
        ["saves"] => Deed::Saves { same: false },
        ["saves", "the", "same"] => Deed::Saves { same: true },
        ["calls", tool, argument] => Deed::Calls {
            tool: (*tool).to_owned(),
            argument: (*argument).to_owned(),
        },
        ["dies"] => Deed::Dies(Aftermath::Gone),
        ["dies,", "number", "reused"] => Deed::Dies(Aftermath::NumberReused),
        ["dies,", "machine", "restarted"] => Deed::Dies(Aftermath::MachineRestarted),
        ["ends"] => Deed::Ends,
        ["asks", question] => Deed::Asks {
            question: (*question).to_owned(),
            allow: None,
        },
        ["asks", question, "allow", glob] => Deed::Asks {
            question: (*question).to_owned(),
            allow: Some((*glob).to_owned()),
        },
        ["takes", "from", from] => Deed::Takes {
            from: (*from).to_owned(),
        },
        ["rebuilds", "from", from] => Deed::Rebuilds {
            from: (*from).to_owned(),
        },
        ["goes", "on"] => Deed::GoesOn,
        ["evaluates:", "unproved"] => Deed::Evaluates { proved: false },
        ["evaluates:", "proved"] => Deed::Evaluates { proved: true },
        ["runs", "check", number] => Deed::Checks {
            number: (*number).to_owned(),
        },
        ["finishes"] => Deed::Finishes,
        ["gives", "up"] => Deed::GivesUp,
        ["is", "marked", "stale"] => Deed::MarkedStale,
        ["loses", "the", "end", "of", "its", "record"] => Deed::Torn,
        ["has", "a", "damaged", "record"] => Deed::Damaged,
        _ => return None,
    })
}
