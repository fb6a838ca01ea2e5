//! `git takeup hook <agent> <event>`: what the hooks of agents call. It ends in time, and with 0, whatever happens.
use std::ffi::OsString;
use std::io::Read as _;
use std::sync::mpsc;
use std::time::Duration;

use takeup_core::engine::{self, Engine};
use takeup_core::env::Env;
use takeup_core::error::{Exit, Explain as _};
use takeup_core::ledger::Ledger;
use takeup_core::process;
use takeup_core::repository::discover;
use takeup_core::settings::Settings;
use takeup_core::text;
use takeup_core::time::SystemClock;

use crate::context::Context;
use crate::printer;
use crate::reply::Reply;

/// The longest that an agent is held up.
const LIMIT: Duration = Duration::from_secs(4);
/// The most bytes of a payload.
const LONGEST: u64 = 8 << 20;

/// Records what the hook said and prints what the agent should show its model.
pub(crate) fn run(agent: String, event: String, rest: &[OsString], context: &Context) -> Reply {
    if ["0", "false", "off"].contains(&context.env.text("TAKEUP_HOOKS").unwrap_or_default()) {
        return Reply::silent(Exit::Done);
    }
    let env = context.env.clone();
    let settings = context.settings().clone();
    // Some agents hand the payload over as an argument.
    let argument = rest.first().map(|word| word.as_encoded_bytes().to_vec());
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let answer = answer(&env, &settings, &agent, &event, argument);
        // Nobody listens any more when the time is over.
        let _gone = done.send(answer);
    });
    if let Ok(Some(text)) = ended.recv_timeout(LIMIT) {
        printer::out_where_possible(&text);
    }
    Reply::silent(Exit::Done)
}

fn answer(
    env: &Env,
    settings: &Settings,
    agent: &str,
    event: &str,
    argument: Option<Vec<u8>>,
) -> Option<String> {
    let agents = crate::agents::all();
    let processes = process::system();
    let operation = format!("hook {agent} {event}");
    let engine = Engine {
        env,
        clock: &SystemClock,
        processes: &processes,
        agents: &agents,
        settings,
        operation: &operation,
        masker: &std::sync::OnceLock::new(),
        interrupt: None,
    };
    let Some(agent) = agents.iter().find(|known| known.id().as_str() == agent) else {
        complain(
            env,
            &format!("hook: no agent {:?} is known", text::one_line(agent, 40)),
        );
        return None;
    };
    let input = argument.unwrap_or_else(|| {
        use std::io::IsTerminal as _;
        let mut input = Vec::new();
        if !std::io::stdin().is_terminal() {
            // What cannot be read is a payload that cannot be understood, and is said as that.
            let _read = std::io::stdin().take(LONGEST).read_to_end(&mut input);
        }
        input
    });
    match engine::agent_hook(&engine, &**agent, event, &input) {
        Ok(reply) => reply,
        Err(error) => {
            complain(
                env,
                &format!("hook {} {event}: {} ({error})", agent.id(), error.code()),
            );
            None
        }
    }
}

/// Says in the ledger's log what cannot be said on a terminal; where takeup is not used, nowhere.
fn complain(env: &Env, message: &str) {
    if let Ok(place) = discover(env, &env.cwd) {
        Ledger::at(place.state())
            .during("hook")
            .log(&SystemClock, &text::one_line(message, 500));
    }
}
