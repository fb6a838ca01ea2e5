//! `git takeup hook git <event>`: what git's own hooks call. It never hinders.
use std::ffi::OsString;
use std::sync::mpsc;
use std::time::Duration;

use takeup_core::engine::Caller;
use takeup_core::env::Env;
use takeup_core::error::{Exit, Explain as _};
use takeup_core::hooks::{self, Heard, HookError, Means};
use takeup_core::ledger::Ledger;
use takeup_core::process::{self, ProcessIdentity};
use takeup_core::repository::{Place, clean_environment, discover};
use takeup_core::time::SystemClock;

use crate::context::Context;
use crate::reply::Reply;

/// The longest that git is held up; the text in the hook ends the program soon after.
const LIMIT: Duration = Duration::from_millis(800);

/// Answers `hook git <event> …` without the command line being built: git waits. `None` where the words are others.
pub(crate) fn at_once(mut words: impl Iterator<Item = OsString>) -> Option<Exit> {
    let called = words.next()? == "hook" && words.next()? == "git";
    let event = words.next()?.into_string().ok()?;
    if !called || event.starts_with('-') {
        return None;
    }
    Some(hear(event, words.collect(), &Env::of_process()))
}

/// Records what a hook saw. Ends in time whatever happens, and with 0: only the text in the hook, which swallows it, is
/// told of a failure.
pub(crate) fn run(event: String, args: Vec<OsString>, context: &Context) -> Reply {
    Reply::silent(hear(event, args, &context.env))
}

fn hear(event: String, args: Vec<OsString>, env: &Env) -> Exit {
    if event == "recorder" {
        recorder(&args, env);
        return Exit::Done;
    }
    let (done, ended) = mpsc::channel::<()>();
    let (named, caller) = (event.clone(), env.clone());
    // Where no thread can be had, there is still the limit of the text in the hook.
    let _watch = std::thread::Builder::new().spawn(move || {
        if ended.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            too_late(&named, &caller);
            end(told_of(false, &caller));
        }
    });
    // git shall not see a panic either.
    let heard = std::panic::catch_unwind(|| record(env, &event, &args)).unwrap_or(Err(Failed));
    drop(done);
    match heard {
        Ok(Some(heard)) => {
            let looked = std::panic::catch_unwind(|| afterwards(&heard, env, &event));
            told_of(looked.is_ok(), env)
        }
        Ok(None) => told_of(true, env),
        Err(Failed) => told_of(false, env),
    }
}

#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "git goes on, whatever the first thread waits for"
)]
fn end(exit: Exit) -> ! {
    std::process::exit(i32::from(exit as u8))
}

/// Returns what the caller is told: only the text in the hook hears of a failure.
fn told_of(recorded: bool, env: &Env) -> Exit {
    if recorded || env.var("TAKEUP_STUB").is_none() {
        Exit::Done
    } else {
        Exit::No
    }
}

/// What went wrong is in the log.
struct Failed;

/// Records what a hook saw. Returns what is left to be done afterwards, if anything is.
fn record(env: &Env, event: &str, args: &[OsString]) -> Result<Option<Heard>, Failed> {
    let named = Caller::by_environment(env, &crate::agents::all());
    let heard = with_means(env, |means| {
        hooks::record(means, event, args, named.as_ref())
    });
    match heard {
        Ok(heard) => Ok(heard.filter(|heard| heard.needs_recorder)),
        Err(error) => {
            log(env, event, &error);
            Err(Failed)
        }
    }
}

/// Looks at the content when git is over, if nobody does yet: in this process where git does not wait for its end, and in
/// one of its own elsewhere.
fn afterwards(heard: &Heard, env: &Env, event: &str) {
    if !hooks::recorder_is_needed(&heard.place) {
        return;
    }
    // Before git goes on: the end of its process group or of its terminal, which may come at once, is not ours. It fails
    // where we lead a session already.
    let _leads = rustix::process::setsid();
    if hooks::release(env, &process::system(), &heard.chain) {
        let env = clean_environment(env).at(&heard.place.root);
        look_when_over(&env, &heard.place, heard.git.as_ref());
        return;
    }
    let started = std::env::current_exe().and_then(|program| {
        hooks::recorder_command(&program, &heard.place, heard.git.as_ref()).spawn()
    });
    if let Err(error) = started {
        Ledger::at(heard.place.state())
            .during(event)
            .log(&SystemClock, &format!("no recorder was started: {error}"));
    }
}

fn with_means<T>(env: &Env, work: impl FnOnce(&Means<'_>) -> T) -> T {
    work(&Means {
        env,
        processes: &process::system(),
        clock: &SystemClock,
        settings: &|| crate::settings::load(env).settings,
    })
}

/// What a hook saw was not recorded in time. Most likely there is too much to read: a recorder, which has all the time,
/// moves closed tasks out of the way, so that the next hook is in time.
fn too_late(event: &str, env: &Env) {
    let Ok(place) = discover(env, &env.cwd) else {
        return;
    };
    Ledger::at(place.state())
        .during(format!("hook git {event}"))
        .log(
            &SystemClock,
            &format!("not recorded within {} ms", LIMIT.as_millis()),
        );
    if place.state().exists() && hooks::recorder_is_needed(&place) {
        // There is nobody to tell of a failure.
        drop(
            std::env::current_exe()
                .and_then(|program| hooks::recorder_command(&program, &place, None).spawn()),
        );
    }
}

fn log(env: &Env, event: &str, error: &HookError) {
    // Where there is no ledger there is nothing to write to, and nothing is made.
    if let Ok(place) = discover(env, &env.cwd) {
        Ledger::at(place.state())
            .during(format!("hook git {event}"))
            .log(&SystemClock, &format!("{}: {error}", error.code()));
    }
}

/// The recorder in a process of its own.
fn recorder(args: &[OsString], env: &Env) {
    // Whoever started it may not have left the terminal's session.
    let _leads = rustix::process::setsid();
    let git = args
        .first()
        .and_then(|text| text.to_str())
        .and_then(|text| hooks::parse_git(&process::system(), text));
    if let Ok(place) = discover(env, &env.cwd) {
        look_when_over(env, &place, git.as_ref());
    }
}

/// Looks at the content when git is over.
fn look_when_over(env: &Env, place: &Place, git: Option<&ProcessIdentity>) {
    let done = with_means(env, |means| hooks::record_pending(means, place, git));
    if let Err(error) = done {
        log(env, "recorder", &error);
    }
}
