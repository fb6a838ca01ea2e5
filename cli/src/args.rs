//! The command line: parsing, dispatch, and the one place where an answer is printed.
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args as _, FromArgMatches, Parser, Subcommand, ValueEnum};
use takeup_core::error::Exit;

use crate::commands;
use crate::context::Context;
use crate::printer;
use crate::reply::{Failure, Reply, envelope};

/// The name of the program.
const NAME: &str = "git-takeup";
/// How it is called.
const CALLED: &str = "git takeup";
/// The width of help texts on a wide terminal.
const WIDTH: usize = 100;

/// Take up any coding agent's unfinished work where it was left, and only if it is still as it was left
#[derive(Debug, Parser)]
#[command(
    name = NAME,
    bin_name = CALLED,
    version,
    max_term_width = WIDTH
)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,

    /// Without a command: every known repository
    #[arg(long)]
    all: bool,

    #[command(subcommand)]
    command: Option<Command>,
}

/// Options that every command has.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// Answer as one JSON document
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,

    /// When to colour
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global options"
    )]
    color: ColorWhen,

    /// Ask nobody; a question becomes exit status 3
    #[arg(long, global = true, help_heading = "Global options")]
    no_input: bool,
}

/// When to colour.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ColorWhen {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

macro_rules! commands {
    ($(#[doc = $about:literal] $name:ident => $module:ident, $word:literal $(or $alias:literal)?;)*) => {
        /// The commands, one file each in `commands/`.
        #[derive(Debug)]
        enum Command {
            $(#[doc = $about] $name(commands::$module::Args),)*
        }

        impl Command {
            const fn word(&self) -> &'static str {
                match self { $(Self::$name(_) => $word,)* }
            }

            fn run(self, context: &Context) -> Result<Reply, Failure> {
                match self { $(Self::$name(args) => alone(|| commands::$module::run(args, context)),)* }
            }

            /// Adds the command of this name; its arguments are made when it is called.
            fn add(program: clap::Command, word: &str) -> clap::Command {
                match word {
                    $($word $(| $alias)? => program.subcommand(clap::Command::new($word)$(.visible_alias($alias))?.about($about.trim_start()).defer(|command| {
                        commands::$module::Args::augment_args(command).about($about.trim_start()).long_about(None)
                    })),)*
                    _ => program,
                }
            }
        }

        // What is derived builds the arguments of every command at every start, which costs more than most commands do.
        impl Subcommand for Command {
            fn augment_subcommands(program: clap::Command) -> clap::Command {
                [$($word),*].into_iter().fold(program, Self::add)
            }

            fn augment_subcommands_for_update(program: clap::Command) -> clap::Command {
                Self::augment_subcommands(program)
            }

            fn has_subcommand(name: &str) -> bool {
                matches!(name, $($word $(| $alias)?)|*)
            }
        }

        impl FromArgMatches for Command {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                match matches.subcommand() {
                    $(Some(($word, matches)) => commands::$module::Args::from_arg_matches(matches).map(Self::$name),)*
                    Some(_) => Err(clap::Error::new(ErrorKind::InvalidSubcommand)),
                    None => Err(clap::Error::new(ErrorKind::MissingSubcommand)),
                }
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }
    };
}

commands! {
    /// Make the ledger in this repository's git folder
    Init => init, "init";
    /// Begin a task in this session
    Start => start, "start";
    /// Record what this session leaves
    Save => save, "save";
    /// Add a remark to a task
    Note => note, "note";
    /// Show or change what has to be proved
    Plan => plan, "plan";
    /// Run a command and record it as evidence
    Check => check, "check";
    /// Report evidence that takeup did not see
    Evidence => evidence, "evidence";
    /// Compare the present content with boundary and plan
    Evaluate => evaluate, "evaluate";
    /// Say the next step, and close the task when everything is proved
    Next => next, "next";
    /// Close a task that is proved on the present content
    Finish => finish, "finish";
    /// Give a task up
    Abandon => abandon, "abandon";
    /// See what may be taken up here and now, and why
    Inspect => inspect, "inspect";
    /// Take a task up
    Resume => resume, "resume";
    /// Show a task with all that is known of it
    Show => show, "show";
    /// Tell a task's history
    Log => log, "log";
    /// What the drop-ins of git and of agents call
    Hook => hook, "hook";
    /// Put git hooks in, look at them, take them out
    Hooks => hooks, "hooks";
    /// List sessions of all agents, show one, recover one
    Sessions => sessions, "sessions";
    /// Work that goes on when everything else goes away: run, list, show, output, wait, stop
    Bg => bg, "bg";
    /// See what changed since a task was left
    Diff => diff, "diff";
    /// Make a document that lets another agent take a task up
    Handover => handover, "handover" or "handoff";
    /// Questions to a person
    Review => review, "review";
    /// Check everything takeup rests on here, and say what to do
    Doctor => doctor, "doctor";
    /// Remove what is beyond what is kept
    Gc => gc, "gc";
    /// Agents that are known, and the drop-in files for them
    Agents => agents, "agents";
    /// Print the fingerprint of the work tree
    Fingerprint => fingerprint, "fingerprint";
    /// Show every setting and where it comes from
    Config => config, "config";
    /// Play the whole story in a scratch repository
    Demo => demo, "demo";
    /// Print a completion script for a shell
    Completions => completions, "completions";
    /// Serve agents over the Model Context Protocol
    Mcp => mcp, "mcp";
    /// Print the version and what it was built with
    Version => version, "version";
}

/// Runs one command outside the function that chooses among all: their frames together would fill many pages of the stack.
#[inline(never)]
fn alone<T>(run: impl FnOnce() -> T) -> T {
    run()
}

/// Parses the arguments of the process. Where the first word is a command, the others are not even named: what `clap` does to
/// each of them at every start takes longer than some commands do.
fn parse() -> Result<(Global, bool, Option<Command>), clap::Error> {
    let word = std::env::args_os()
        .nth(1)
        .and_then(|word| word.into_string().ok())
        .filter(|word| Command::has_subcommand(word));
    let Some(word) = word else {
        return Cli::try_parse().map(|cli| (cli.global, cli.all, cli.command));
    };
    let program = clap::Command::new(NAME)
        .bin_name(CALLED)
        .max_term_width(WIDTH);
    let program = Command::add(Global::augment_args(program), &word);
    let matches = program.try_get_matches()?;
    let global = Global::from_arg_matches(&matches)?;
    let command = Command::from_arg_matches(&matches)?;
    Ok((global, false, Some(command)))
}

/// Parses the arguments, runs the command and prints its answer. An answer that nobody got is no success.
pub(crate) fn run() -> ExitCode {
    let exit = answered();
    let Some(why) = printer::lost() else {
        return ExitCode::from(exit);
    };
    let label = printer::paint(printer::RED, "error:");
    let done = if exit == Exit::Done as u8 {
        "; the command itself was carried out"
    } else {
        ""
    };
    printer::err(&format!(
        "{label} cannot write to standard output: {why}{done}\n"
    ));
    ExitCode::from(if exit == Exit::Done as u8 {
        Exit::No as u8
    } else {
        exit
    })
}

fn answered() -> u8 {
    let (global, all, command) = match parse() {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error),
    };
    match global.color {
        ColorWhen::Auto => {}
        ColorWhen::Always => anstream::ColorChoice::Always.write_global(),
        ColorWhen::Never => anstream::ColorChoice::Never.write_global(),
    }
    let mut context = Context::of_process(global.json, global.no_input);
    let (word, outcome) = match command {
        Some(command) => {
            context.operation = command.word();
            (command.word(), command.run(&context))
        }
        None => (
            "overview",
            commands::overview::run(commands::overview::Args { all }, &context),
        ),
    };
    // The process ends: a large answer need not be taken apart first, which takes as long as it took to make it.
    let outcome = ManuallyDrop::new(outcome.map_err(|failure| told(failure, &context)));
    print(word, &outcome, context.json)
}

/// Runs a command that is given as words, without printing anything: how another face calls it.
#[cfg(feature = "mcp")]
pub(crate) fn answer(words: &[String], context: &Context) -> Result<Reply, Failure> {
    let words = std::iter::once("git-takeup").chain(words.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words).map_err(|error| {
        let message = error.render().to_string();
        let first = message.lines().next().unwrap_or_default();
        Failure::new("usage", Exit::Usage, first.trim_start_matches("error: "))
    })?;
    match cli.command {
        Some(command) => command.run(context),
        None => commands::overview::run(commands::overview::Args { all: cli.all }, context),
    }
    .map_err(|failure| told(failure, context))
}

/// Makes a failure fit to be told.
fn told(failure: Failure, context: &Context) -> Failure {
    failure
        .untold(|task| takeup_core::engine::untold(&context.engine(), task))
        .doubted(|| takeup_core::engine::losses(&context.engine()))
        .masked(&context.env)
}

/// Prints what clap says; help goes to standard output and is no failure.
fn refuse(error: &clap::Error) -> u8 {
    let wants_json = std::env::args_os().any(|arg| arg == "--json");
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            printer::out(&error.render().ansi().to_string());
            Exit::Done as u8
        }
        _ if wants_json => {
            let failure = Failure::new(
                "usage",
                Exit::Usage,
                error
                    .render()
                    .to_string()
                    .trim()
                    .trim_start_matches("error: ")
                    .to_owned(),
            );
            print("usage", &Err(failure), true)
        }
        _ => {
            printer::err(&error.render().ansi().to_string());
            Exit::Usage as u8
        }
    }
}

fn print(command: &str, outcome: &Result<Reply, Failure>, json: bool) -> u8 {
    match outcome {
        Ok(reply) if reply.silent => {}
        _ if json => printer::out_json(envelope(command, outcome)),
        Ok(reply) => {
            let text = reply.human.trim_end();
            if !text.is_empty() {
                printer::out(&format!("{text}\n"));
            }
        }
        Err(failure) => {
            let label = printer::paint(printer::RED, "error:");
            let mut text = format!("{label} {}\n", failure.message);
            if let Some(hint) = &failure.hint {
                text.push_str(&format!(
                    "{} {hint}\n",
                    printer::paint(printer::DIM, "hint:")
                ));
            }
            if let Some(command) = failure.next.as_ref().and_then(|next| next.command.as_ref()) {
                text.push_str(&format!("  {}\n", printer::paint(printer::CYAN, command)));
            }
            printer::err(&text);
        }
    }
    match outcome {
        Ok(reply) => reply.code.unwrap_or(reply.exit as u8),
        Err(failure) => failure.exit as u8,
    }
}
