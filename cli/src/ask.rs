//! Asks a person on the terminal. Never reads standard input: an agent could have filled it.
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};

use takeup_core::engine::Caller;
use takeup_core::text;

use crate::context::Context;

/// What the person said.
pub(crate) enum Answer {
    /// Yes.
    Yes,
    /// Anything else.
    No,
    /// There is nobody to ask.
    Nobody,
}

/// Asks for a yes on the controlling terminal. The question is made where there is somebody to ask.
///
/// Nobody is asked when the answer is wanted as JSON, with `--no-input`, in CI, when standard error is no terminal, or
/// inside an agent's session: an agent that runs commands in a terminal of its own is no person.
pub(crate) fn person(context: &Context, question: impl FnOnce() -> String) -> Answer {
    use std::io::IsTerminal as _;
    let by_agent = Caller::is_inside_agent(&context.env, &context.agents);
    if context.json || context.no_input || by_agent || !std::io::stderr().is_terminal() {
        return Answer::Nobody;
    }
    let Ok(mut terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return Answer::Nobody;
    };
    let prompt = format!("{} [y/N] ", text::clean(&question(), 20_000));
    if terminal
        .write_all(prompt.as_bytes())
        .and_then(|()| terminal.flush())
        .is_err()
    {
        return Answer::Nobody;
    }
    let mut line = String::new();
    match BufReader::new(terminal).read_line(&mut line) {
        Ok(_) if matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes") => Answer::Yes,
        _ => Answer::No,
    }
}
