//! `git takeup sessions`
mod meant;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::agent::{Found, InterruptionReason, Session, SessionDetail, SessionQuery};
use takeup_core::engine;
use takeup_core::error::Exit;
use takeup_core::files;
use takeup_core::issue::Issue;
use takeup_core::process::{Liveness, LivenessKind};
use takeup_core::repository::{Folders, RepositoryError, discover, is_there};
use takeup_core::time::Time;

use crate::context::Context;
use crate::printer::{self, BOLD, CYAN, DIM, GREEN, RED, YELLOW, paint};
use crate::reply::{Failure, Next, Reply};
use meant::{add_recorded, agents, find, session_meant};

/// Arguments of `sessions`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  git takeup sessions --unfinished\n  git takeup sessions show fox\n  git takeup sessions recover fox --output fox.md"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show one session with its last turns
    Show(ShowArgs),
    /// Write what could be recovered of a session
    Recover(RecoverArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Sessions of every folder, not only of this work tree and unfinished ones that hooks recorded in others of the repository
    #[arg(long)]
    all: bool,

    /// Only sessions of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Only sessions in this state (may be given several times)
    #[arg(long, value_name = "STATE")]
    state: Vec<State>,

    /// Only sessions that were left in the middle
    #[arg(long)]
    unfinished: bool,

    /// At most so many of each agent, the newest; 0 is all
    #[arg(long, short = 'n', value_name = "N", default_value_t = 30)]
    limit: usize,
}

/// A state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum State {
    /// It is alive.
    Live,
    /// It ended and said so.
    Ended,
    /// It ended without saying so.
    Crashed,
    /// Nothing reliable says anything.
    Unknown,
}

impl State {
    const fn of(liveness: &Liveness) -> Self {
        match liveness.kind() {
            LivenessKind::Live => Self::Live,
            LivenessKind::Ended => Self::Ended,
            LivenessKind::Crashed => Self::Crashed,
            LivenessKind::Unknown => Self::Unknown,
        }
    }

    const fn kind(self) -> LivenessKind {
        match self {
            Self::Live => LivenessKind::Live,
            Self::Ended => LivenessKind::Ended,
            Self::Crashed => LivenessKind::Crashed,
            Self::Unknown => LivenessKind::Unknown,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Ended => "ended",
            Self::Crashed => "crashed",
            Self::Unknown => "unknown",
        }
    }

    fn painted(self) -> String {
        let style = match self {
            Self::Live => GREEN,
            Self::Ended => DIM,
            Self::Crashed => RED,
            Self::Unknown => YELLOW,
        };
        paint(style, self.word())
    }
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// Its id, the word it is called by, or a part of its title
    #[arg(value_name = "SESSION")]
    session: String,

    /// Look only at this agent's sessions
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// How many of the last turns to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    turns: usize,
}

#[derive(Debug, clap::Args)]
struct RecoverArgs {
    /// Its id, the word it is called by, or a part of its title
    #[arg(value_name = "SESSION")]
    session: String,

    /// Look only at this agent's sessions
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Write the document to this new file instead of printing it
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with = "as_session")]
    output: Option<PathBuf>,

    /// Write a new session of the same agent instead of a document; the old one stays as it is
    #[arg(long)]
    as_session: bool,
}

/// The answer of `sessions`. `root` and `sessions` are of the list, `detail` of `show`, the others of `recover`.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionsData {
    /// The work tree the list is for; none with `--all` or outside a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<PathBuf>,
    /// The sessions, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<Vec<Session>>,
    /// There are more than were asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
    /// One session with its last turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<SessionDetail>,
    /// What could be recovered, as Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<String>,
    /// The file the document was written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    /// The new session.
    #[serde(skip_serializing_if = "Option::is_none")]
    recovered_to: Option<String>,
    /// Which agents keep sessions that are not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread: Vec<String>,
    /// What was damaged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    issues: Vec<Issue>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    match args.action {
        None => list(&args.list, context),
        Some(Action::Show(args)) => show(&args, context),
        Some(Action::Recover(args)) => recover(args, context),
    }
}

/// Returns the work tree of the caller; none outside a repository.
fn root(context: &Context) -> Result<Option<PathBuf>, Failure> {
    match discover(&context.env, &context.env.cwd) {
        Ok(place) => Ok(Some(place.root)),
        Err(RepositoryError::NotARepository { .. } | RepositoryError::Bare { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn list(args: &ListArgs, context: &Context) -> Result<Reply, Failure> {
    let root = if args.all { None } else { root(context)? };
    let filtered = !args.state.is_empty() || args.unfinished;
    let query = SessionQuery {
        root: root.clone(),
        // One more than is shown tells whether there are more; adapters may give more than passes the filter.
        limit: if filtered || args.limit == 0 {
            0
        } else {
            args.limit + 1
        },
        states: args.state.iter().map(|state| state.kind()).collect(),
        unfinished: args.unfinished,
    };
    let mut data = SessionsData {
        root,
        ..SessionsData::default()
    };
    let recorded = engine::recorded_sessions(&context.engine(), args.all);
    data.issues.extend(recorded.issues);
    let mut sessions = Vec::new();
    for agent in agents(args.agent.as_deref(), context)? {
        let Found { mut items, issues } = agent.sessions(&context.env, &query);
        data.issues.extend(issues);
        add_recorded(agent, &recorded.items, &mut items);
        items.retain(|session| {
            let state = State::of(&session.liveness);
            (args.state.is_empty() || args.state.contains(&state))
                && (!args.unfinished || is_unfinished(session))
        });
        if args.limit > 0 && items.len() > args.limit {
            data.more = true;
            items.truncate(args.limit);
        }
        sessions.extend(items);
    }
    sessions.sort_by(|a, b| {
        b.updated_at
            .cmp(&a.updated_at)
            .then_with(|| a.session.cmp(&b.session))
    });
    let summary = summary(&sessions);
    let mut human = page(&sessions, context.clock.now(), data.root.as_deref());
    if data.more {
        human.push_str(&paint(DIM, "There are more: --limit 0 shows all.\n"));
    }
    for issue in &data.issues {
        human.push_str(&issue_line(issue));
    }
    if sessions.is_empty() && data.issues.is_empty() {
        human = format!("{summary}\n");
    }
    let root = data.root.as_deref();
    data.unread = crate::unread::unread(context, root);
    human.push_str(&crate::unread::page(context, root));
    let next = sessions
        .iter()
        .find(|session| is_unfinished(session))
        .map(|session| Next::new("show", command("show", &session.session.id.to_string())));
    data.sessions = Some(sessions);
    let reply = Reply::new(summary, &data).human(human);
    Ok(match next {
        Some(next) => reply.next(next),
        None => reply,
    })
}

fn command(verb: &str, id: &str) -> String {
    printer::shell(["git", "takeup", "sessions", verb, id])
}

fn is_unfinished(session: &Session) -> bool {
    session.interruption.is_some()
}

fn summary(sessions: &[Session]) -> String {
    if sessions.is_empty() {
        return "no sessions".to_owned();
    }
    let states = [State::Live, State::Crashed, State::Unknown, State::Ended];
    let counts: Vec<String> = states
        .into_iter()
        .filter_map(|state| {
            let count = sessions
                .iter()
                .filter(|session| State::of(&session.liveness) == state)
                .count();
            (count > 0).then(|| format!("{count} {}", state.word()))
        })
        .collect();
    format!("sessions: {}", counts.join(", "))
}

/// Two lines for each: what it is, and what was said last; with its folder, where it is another than the work tree `root`.
fn page(sessions: &[Session], now: Time, root: Option<&Path>) -> String {
    let mut here = root.map(Folders::of);
    let mut elsewhere = |folder: &Path| here.as_mut().is_none_or(|here| !here.hold(folder));

    let rows: Vec<Vec<String>> = sessions
        .iter()
        .map(|session| {
            let name = session
                .name
                .clone()
                .unwrap_or_else(|| session.session.id.to_string());
            let title = session.title.clone().unwrap_or_default();
            vec![
                State::of(&session.liveness).painted(),
                paint(BOLD, printer::cut(&name, 26)),
                printer::cut(&title, 40),
                session.session.agent.to_string(),
                session
                    .updated_at
                    .map_or_else(String::new, |at| printer::ago(now, at)),
                facts(session),
            ]
        })
        .collect();
    let mut text = String::new();
    for (line, session) in printer::table(&rows).lines().zip(sessions) {
        text.push_str(line);
        text.push('\n');
        if let Some(folder) = session.cwd.as_deref().filter(|cwd| elsewhere(cwd)) {
            let is_gone = root.is_some() && !is_there(folder);
            let gone = if is_gone { ", which is gone" } else { "" };
            let folder = takeup_core::paths::text_of_path(folder);
            text.push_str(&format!(
                "    {}\n",
                paint(DIM, format!("in {folder}{gone}"))
            ));
        }
        if let Some(prompt) = &session.last_prompt {
            let room = printer::width().saturating_sub(4);
            text.push_str(&format!("    {}\n", paint(DIM, printer::cut(prompt, room))));
        }
        for note in &session.recovered {
            text.push_str(&format!(
                "    {}\n",
                paint(YELLOW, format!("recovered: {note}"))
            ));
        }
    }
    text.push_str(&groups(sessions));
    text
}

fn facts(session: &Session) -> String {
    let mut facts = Vec::new();
    if let Some(count) = session.messages {
        facts.push(format!("{count} msg"));
    }
    if !session.plan.is_empty() {
        let done = session.plan.iter().filter(|item| item.done).count();
        facts.push(format!("todo {done}/{}", session.plan.len()));
    }
    if !session.open_effects.is_empty() {
        facts.push(format!("open calls {}", session.open_effects.len()));
    }
    facts.join(" · ")
}

/// Names those that crashed together.
fn groups(sessions: &[Session]) -> String {
    let mut groups: std::collections::BTreeMap<&str, Vec<String>> =
        std::collections::BTreeMap::new();
    for session in sessions {
        if let Some(group) = &session.crash_group {
            let name = session.name.clone();
            groups
                .entry(group)
                .or_default()
                .push(name.unwrap_or_else(|| session.session.id.to_string()));
        }
    }
    groups
        .values()
        .filter(|names| names.len() > 1)
        .fold(String::new(), |text, names| {
            text + &format!("crashed together: {}\n", names.join(", "))
        })
}

fn issue_line(issue: &Issue) -> String {
    let path = takeup_core::paths::text_of_path(&issue.path);
    let message = takeup_core::text::one_line(&issue.message, 300);
    format!("{} {path}: {message}\n", paint(YELLOW, "damaged:"))
}

fn show(args: &ShowArgs, context: &Context) -> Result<Reply, Failure> {
    let detail = session_meant(args, context)?;
    let agent = context
        .agents
        .iter()
        .find(|agent| agent.id() == detail.session.session.agent);
    let id = &detail.session.session.id;
    // An id that its agent would read as an option is not put behind one.
    let resume = agent
        .filter(|_| !id.as_str().starts_with('-'))
        .and_then(|agent| agent.resume_command(id));
    // What the agent itself cannot load it cannot go on with.
    let lost = !detail.session.recovered.is_empty()
        && agent.is_some_and(|agent| agent.recover(&context.env, id.as_str()).is_ok());
    let recover = lost.then(|| command("recover", id.as_str()));
    let session = &detail.session;
    let running = background(session, context);
    let summary = format!(
        "{} is {}",
        session.session,
        State::of(&session.liveness).word()
    );
    let human = detail_page(&detail, &running, context.clock.now());
    let resume = resume.map(|words| {
        let words: Vec<String> = words
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        printer::shell(words.iter().map(String::as_str))
    });
    let (action, command) = match recover {
        Some(command) => ("recover", Some(command)),
        None => ("continue", resume),
    };
    let data = SessionsData {
        detail: Some(detail),
        ..SessionsData::default()
    };
    let reply = Reply::new(summary, &data);
    Ok(match command {
        Some(command) => {
            let line = format!("\n{action}: {}\n", paint(CYAN, &command));
            reply.human(human + &line).next(Next::new(action, command))
        }
        None => reply.human(human),
    })
}

/// Says what runs in the background for a session: the name, what shows it, and the command that looks at it.
fn background(session: &Session, context: &Context) -> Vec<String> {
    let agent = context
        .agents
        .iter()
        .find(|agent| agent.id() == session.session.agent);
    let tasks = agent.map_or_else(Vec::new, |agent| agent.background(&context.env).items);
    tasks
        .iter()
        .filter(|task| task.session == session.session.id)
        .map(|task| {
            let name = task.name.as_deref().unwrap_or(&task.id);
            let runs = if task.runs { "runs" } else { "may run" };
            let look = printer::shell(["git", "takeup", "bg", "show", task.id.as_str()]);
            format!("{name} {runs}: {} ({look})", task.proof)
        })
        .collect()
}

fn detail_page(detail: &SessionDetail, running: &[String], now: Time) -> String {
    const COLUMN: usize = 12;
    let session = &detail.session;
    let name = session.name.as_deref().unwrap_or("session");
    let mut text = format!(
        "{} {}\n",
        paint(BOLD, name),
        session.title.as_deref().unwrap_or_default()
    );
    let mut field = |label: &str, value: &str| {
        text.push_str(&printer::field(label, COLUMN, value));
    };
    field("session", &session.session.to_string());
    if let Some(cwd) = &session.cwd {
        field("folder", &takeup_core::paths::text_of_path(cwd));
    }
    let (Liveness::Live { proof }
    | Liveness::Ended { proof }
    | Liveness::Crashed { proof }
    | Liveness::Unknown { why: proof }) = &session.liveness;
    let state = State::of(&session.liveness).word();
    field("state", &format!("{state}: {proof}"));
    if let Some(interruption) = &session.interruption {
        let until = interruption
            .until
            .map_or_else(String::new, |until| format!(", until {until}"));
        let word = reason(interruption.reason);
        if interruption.proof == *proof {
            field("left", &format!("{word}{until}"));
        } else {
            field("left", &format!("{word}{until}: {}", interruption.proof));
        }
    }
    if let Some(at) = session.created_at {
        field("begun", &printer::ago(now, at));
    }
    if let Some(at) = session.updated_at {
        field("written", &printer::ago(now, at));
    }
    if let Some(count) = session.messages {
        field("messages", &count.to_string());
    }
    if let Some(parent) = &session.parent {
        field("parent", parent.as_str());
    }
    for note in &session.recovered {
        field("recovered", note);
    }
    for item in &session.plan {
        let mark = if item.done { "x" } else { " " };
        field("todo", &format!("[{mark}] {}", item.text));
    }
    for effect in &session.open_effects {
        let at = effect.at.map_or_else(String::new, |at| format!(" ({at})"));
        field(
            "open call",
            &format!(
                "{}: {}{at}, may or may not have happened",
                effect.tool, effect.argument
            ),
        );
    }
    for task in running {
        field("background", task);
    }
    if let Some(path) = &detail.transcript {
        field("file", &takeup_core::paths::text_of_path(path));
    }
    for turn in &detail.turns {
        text.push('\n');
        text.push_str(&printer::field(&turn.role, COLUMN, &turn.text));
    }
    text
}

const fn reason(reason: InterruptionReason) -> &'static str {
    match reason {
        InterruptionReason::Crash => "it crashed",
        InterruptionReason::Closed => "it was closed in the middle",
        InterruptionReason::ContextFull => "its context is full",
        InterruptionReason::UsageLimit => "a usage limit",
        InterruptionReason::Refused => "the model refused",
        InterruptionReason::Cancelled => "it was cancelled",
        InterruptionReason::Error => "an error",
        InterruptionReason::Unknown => "in the middle, nothing says why",
    }
}

fn recover(args: RecoverArgs, context: &Context) -> Result<Reply, Failure> {
    let agent = args.agent.as_deref();
    let meant = ShowArgs {
        session: args.session.clone(),
        agent: args.agent.clone(),
        turns: 0,
    };
    let unrecovered = |failure| meant::unrecovered(failure, &meant, context);
    if args.as_session {
        let received = find(&args.session, agent, context, |agent| {
            agent.recover_as_session(&context.env, &args.session)
        })
        .map_err(unrecovered)?;
        let words: Vec<String> = received
            .command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let command = printer::shell(words.iter().map(String::as_str));
        let session = received.session.map(|session| session.to_string());
        let summary = format!("recovered as {}", session.clone().unwrap_or_default());
        let human = format!("{summary}\ncontinue: {}\n", paint(CYAN, &command));
        let data = SessionsData {
            recovered_to: session,
            ..SessionsData::default()
        };
        return Ok(Reply::new(summary, &data)
            .human(human)
            .next(Next::new("continue", command)));
    }
    let document = find(&args.session, agent, context, |agent| {
        agent.recover(&context.env, &args.session)
    })
    .map_err(unrecovered)?;
    let Some(file) = args.output else {
        let data = SessionsData {
            document: Some(document.clone()),
            ..SessionsData::default()
        };
        return Ok(Reply::new("recovered", &data).human(document));
    };
    let path = context.env.cwd.join(&file);
    write_new(&path, &document)?;
    let summary = format!("recovered into {}", takeup_core::paths::text_of_path(&path));
    let data = SessionsData {
        file: Some(path),
        ..SessionsData::default()
    };
    Ok(Reply::new(summary, &data))
}

/// Writes the document to a file that is not there yet.
fn write_new(path: &Path, document: &str) -> Result<(), Failure> {
    if std::fs::symlink_metadata(path).is_ok() {
        return Err(Failure::new(
            "file-exists",
            Exit::Conflict,
            format!(
                "{} is there already",
                takeup_core::paths::text_of_path(path)
            ),
        )
        .hint("choose another name, or move the file away"));
    }
    Ok(files::write_atomic(path, document.as_bytes(), 0o600)?)
}
