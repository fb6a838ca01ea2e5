//! `git takeup hooks`
mod status;

use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::env::Env;
use takeup_core::error::Exit;
use takeup_core::hooks::{self, ByHand, Change, HookError, Installation, Outcome, Plan, Seen};
use takeup_core::ledger::{self, Actor, Ledger, State, TransactError, Transition};
use takeup_core::paths::{text_of_bytes, text_of_path};
use takeup_core::repository::{GitVersion, Repository, create_tokens};

use crate::context::Context;
use crate::printer::{self, paint};
use crate::reply::{Failure, Next, Reply};

pub(crate) use self::status::StatusData;

/// How long somebody else who changes the hooks is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Arguments of `hooks`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Put the hooks in; what is there goes on running
    #[command(after_help = "Example:\n  git takeup hooks install --dry-run")]
    Install(Edit),
    /// Show whether the hooks run, and what took their place
    Status,
    /// Take the hooks out, byte for byte
    Uninstall(Edit),
}

#[derive(Debug, clap::Args)]
struct Edit {
    /// Show every change and make none
    #[arg(long)]
    dry_run: bool,
    /// For all repositories of yours, in your own git configuration (git 2.54 and later)
    #[arg(long)]
    global: bool,
}

/// The answer of `hooks install` and `hooks uninstall`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EditData {
    /// Nothing was changed.
    dry_run: bool,
    /// Every hook runs afterwards, or, for `uninstall`, none does.
    complete: bool,
    /// The changes, in order.
    changes: Vec<ChangeData>,
    /// What comes of each hook.
    hooks: Vec<Outcome>,
    /// What a person has to know besides.
    notes: Vec<String>,
}

/// One change. Bytes that are not text are written `\xNN`, and a backslash `\\`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeData {
    /// `make-folder`, `keep`, `write`, `restore`, `remove` or `remove-folder`.
    change: &'static str,
    /// The file or folder.
    path: String,
    /// The second name, for `keep` and `restore`.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// The content before, for `write` and `remove`.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// The content afterwards, for `write`.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    /// The permission bits in octal, for `write`.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let mut repository = Repository::discover(&context.env, &context.env.cwd)?;
    let version = repository.program("to know its version")?.version()?;
    let action = args.action.unwrap_or(Action::Status);
    let edits = matches!(&action, Action::Install(edit) | Action::Uninstall(edit) if !edit.dry_run);
    let _turn = if edits {
        let turn = turn(&repository)?;
        // Who was before may have changed what was read.
        repository = Repository::discover(&context.env, &context.env.cwd)?;
        Some(turn)
    } else {
        None
    };
    match action {
        Action::Install(edit) => install(context, &repository, version, &edit),
        Action::Status => status::status(&context.env, &repository, version),
        Action::Uninstall(edit) => uninstall(context, &repository, version, &edit),
    }
}

/// Waits until nobody else changes the hooks of this repository: each would find what it planned for changed by the other, and
/// none would come to an end. It is the turn of the caller as long as it keeps the handle.
fn turn(repository: &Repository) -> Result<Option<File>, Failure> {
    let began = Instant::now();
    let Ok(folder) = File::open(&repository.place().common_dir) else {
        return Ok(None);
    };
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(Some(folder)),
            // No locks are to be had on some network file systems: each change still looks before it writes.
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) => {
                let mut failure = Failure::new(
                    "hooks-busy",
                    Exit::Busy,
                    "another process changes the hooks of this repository",
                );
                failure.retryable = true;
                return Err(failure.hint("try again when it is through"));
            }
        }
    }
}

/// Returns the program that the hooks shall call: this one, by the name it was called by. That may be a link that leads to the
/// next version one day.
fn program(env: &Env) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(|error| {
        Failure::new(
            "program-unknown",
            Exit::No,
            format!("cannot find out where this program is: {error}"),
        )
    })?;
    let called = std::env::args_os().next().unwrap_or_default();
    Ok(called_by(env, Path::new(&called), &own).unwrap_or(own))
}

/// Returns the whole path that a program was called by; `None` where it does not lead to the program.
fn called_by(env: &Env, called: &Path, own: &Path) -> Option<PathBuf> {
    let own = std::fs::canonicalize(own).ok()?;
    let folders = if called.components().count() > 1 {
        vec![env.cwd.clone()]
    } else {
        std::env::split_paths(env.var("PATH")?)
            .map(|folder| env.cwd.join(folder))
            .collect()
    };
    folders
        .into_iter()
        .map(|folder| folder.join(called))
        .find(|file| std::fs::canonicalize(file).is_ok_and(|file| file == own))
        // Without single dots.
        .map(|file| file.components().collect())
}

fn install(
    context: &Context,
    repository: &Repository,
    version: GitVersion,
    edit: &Edit,
) -> Result<Reply, Failure> {
    let program = program(&context.env)?;
    let mut plan = hooks::plan_install(&Installation {
        env: &context.env,
        repository,
        version,
        program: &program,
        global: edit.global,
        now: context.clock.now(),
    })?;
    plan.complete_records(&read_state(repository)?);
    if !edit.dry_run {
        carry_out(context, repository, &plan, "hooks install")?;
    }
    let by_hand = plan
        .outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Outcome::ByHand { what, .. } if !what.done))
        .count();
    let all = plan.outcomes.len();
    let summary = match (by_hand, edit.dry_run) {
        (0, false) if plan.changes.is_empty() => "the hooks were installed already".to_owned(),
        (0, false) => format!("{all} hooks are installed"),
        (0, true) => format!("{} changes would install {all} hooks", plan.changes.len()),
        (n, _) if n == all => "no hook was installed: somebody else manages them".to_owned(),
        (n, _) => {
            format!("{n} of {all} hooks need something by hand")
        }
    };
    if by_hand == all {
        let mut failure = Failure::new("hooks-managed", Exit::No, summary);
        failure.hint = Some(by_hand_text(to_do(&plan)) + &notes_text(&plan));
        failure.data = serde_json::to_value(edit_data(&plan, edit.dry_run)).ok();
        return Err(failure);
    }
    Ok(
        edit_reply(&plan, edit.dry_run, summary).exit(if by_hand == 0 {
            Exit::Done
        } else {
            Exit::No
        }),
    )
}

fn uninstall(
    context: &Context,
    repository: &Repository,
    version: GitVersion,
    edit: &Edit,
) -> Result<Reply, Failure> {
    let program = program(&context.env)?;
    let recorded = read_state(repository)?.hooks;
    let plan = hooks::plan_uninstall(
        &Installation {
            env: &context.env,
            repository,
            version,
            program: &program,
            global: edit.global,
            now: context.clock.now(),
        },
        &recorded,
    )?;
    if !edit.dry_run {
        carry_out(context, repository, &plan, "hooks uninstall")?;
    }
    let taken = plan
        .outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Outcome::Taken { .. }))
        .count();
    let stay = plan
        .outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Outcome::Stays { .. }))
        .count();
    let summary = match (taken, edit.dry_run) {
        (_, _) if stay > 0 => format!("{stay} hooks go on, by lines that were added by hand"),
        (0, _) => "no hook was installed".to_owned(),
        (_, true) => format!(
            "{} changes would take {taken} hooks out",
            plan.changes.len()
        ),
        (_, false) => format!("{taken} hooks are taken out"),
    };
    let reply = edit_reply(&plan, edit.dry_run, summary);
    Ok(if stay == 0 {
        reply
    } else {
        reply.exit(Exit::No)
    })
}

fn read_state(repository: &Repository) -> Result<State, Failure> {
    let ledger = Ledger::at(repository.place().state());
    Ok(ledger.read()?.state)
}

/// Carries out a plan and records it. A ledger that is there is locked first, so that nothing was touched where it is not to
/// be had.
fn carry_out(
    context: &Context,
    repository: &Repository,
    plan: &Plan,
    operation: &str,
) -> Result<(), Failure> {
    let ledger = Ledger::at(repository.place().state()).during(operation);
    let is_there = ledger.exists();
    if plan.records.is_empty() || !is_there {
        hooks::apply(plan)?;
    }
    if plan.records.is_empty() {
        return Ok(());
    }
    if plan.records.iter().any(|(_, hook)| hook.is_some()) {
        create_tokens(repository.place())?;
    }
    let clock = context.clock.as_ref();
    ledger
        .transact(clock, Ledger::PATIENCE, |_| {
            if is_there {
                hooks::apply(plan)?;
            }
            let changes = plan
                .records
                .iter()
                .map(|(name, hook)| ledger::Change::Hook {
                    hook: hook.clone(),
                    name: name.clone(),
                })
                .collect();
            let transition = Transition {
                at: clock.now(),
                actor: Actor {
                    session: takeup_core::ids::SessionRef::person(),
                    pid: std::process::id(),
                },
                operation: operation.to_owned(),
                changes,
            };
            Ok::<_, HookError>((Some(transition), ()))
        })
        .map_err(|error| match error {
            TransactError::Ledger(error) => Failure::from(HookError::from(error)),
            TransactError::Decision(error) => Failure::from(error),
        })?;
    Ok(())
}

fn edit_data(plan: &Plan, dry_run: bool) -> EditData {
    EditData {
        dry_run,
        complete: plan.is_complete(),
        changes: plan.changes.iter().map(change_data).collect(),
        hooks: plan.outcomes.clone(),
        notes: plan.notes.clone(),
    }
}

fn change_data(change: &Change) -> ChangeData {
    let blank = |change, path: &Path| ChangeData {
        change,
        path: text_of_path(path),
        to: None,
        before: None,
        after: None,
        mode: None,
    };
    match change {
        Change::MakeFolder { path } => blank("make-folder", path),
        Change::Keep { from, to } => ChangeData {
            to: Some(text_of_path(to)),
            ..blank("keep", from)
        },
        Change::Write {
            path,
            before,
            after,
            mode,
            ..
        } => ChangeData {
            before: before_text(before),
            after: Some(text_of_bytes(after)),
            mode: Some(format!("{mode:04o}")),
            ..blank("write", path)
        },
        Change::Restore { from, to } => ChangeData {
            to: Some(text_of_path(to)),
            ..blank("restore", from)
        },
        Change::Remove { path, before } => ChangeData {
            before: before_text(before),
            ..blank("remove", path)
        },
        Change::RemoveFolder { path } => blank("remove-folder", path),
    }
}

fn before_text(before: &Seen) -> Option<String> {
    match before {
        Seen::File { bytes, .. } => Some(text_of_bytes(bytes)),
        Seen::Link { target } => Some(format!("-> {}", text_of_path(target))),
        Seen::Nothing | Seen::Other => None,
    }
}

fn edit_reply(plan: &Plan, dry_run: bool, summary: String) -> Reply {
    let mut text = format!("{summary}\n");
    if dry_run {
        for change in &plan.changes {
            text.push_str(&change_text(change));
        }
    } else {
        let mut rows = Vec::new();
        for outcome in &plan.outcomes {
            rows.push(outcome_row(outcome));
        }
        let _: std::fmt::Result = write!(text, "{}", printer::table(&rows));
    }
    text.push_str(&by_hand_text(to_do(plan)));
    text.push_str(&notes_text(plan));
    let mut reply = Reply::new(summary, &edit_data(plan, dry_run)).human(text);
    if dry_run && !plan.changes.is_empty() {
        let install = plan
            .outcomes
            .iter()
            .any(|outcome| matches!(outcome, Outcome::Put { .. }));
        let word = if install { "install" } else { "uninstall" };
        reply = reply.next(Next::new(word, format!("git takeup hooks {word}")));
    }
    reply
}

fn notes_text(plan: &Plan) -> String {
    let mut text = String::new();
    for note in &plan.notes {
        let _: std::fmt::Result = writeln!(text, "{} {note}", paint(printer::YELLOW, "note:"));
    }
    text
}

fn outcome_row(outcome: &Outcome) -> Vec<String> {
    let (event, word, place) = match outcome {
        Outcome::Put { event, place } => (event, paint(printer::GREEN, "installed"), place.clone()),
        Outcome::There { event, place } => (event, "was there".to_owned(), place.clone()),
        Outcome::Taken { event, place } => {
            (event, paint(printer::GREEN, "taken out"), place.clone())
        }
        Outcome::None { event } => (event, "was not there".to_owned(), String::new()),
        Outcome::Stays {
            event,
            place,
            lines,
        } => {
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            let where_to = match lines.as_slice() {
                [one] => format!("line {one}"),
                _ => format!("lines {}", lines.join(", ")),
            };
            (
                event,
                paint(printer::YELLOW, "goes on"),
                format!("take it out of {place}, {where_to}"),
            )
        }
        Outcome::ByHand { event, what } if what.done => (
            event,
            paint(printer::GREEN, "runs"),
            format!("by {} in {}", what.manager.name(), what.file.display()),
        ),
        Outcome::ByHand { event, what } => (
            event,
            paint(printer::YELLOW, "by hand"),
            format!("{}: {}", what.manager.name(), what.file.display()),
        ),
    };
    vec![event.clone(), word, place]
}

/// Says what is to be done by hand.
fn by_hand_text<'a>(all: impl IntoIterator<Item = &'a ByHand>) -> String {
    let mut text = String::new();
    let mut said = None;
    for what in all {
        if what.done {
            continue;
        }
        if let Some(obstacle) = &what.obstacle
            && said != Some(obstacle)
        {
            said = Some(obstacle);
            let _: std::fmt::Result = writeln!(text, "it does not run: {obstacle}");
        }
        for line in what.text().lines() {
            let _: std::fmt::Result = writeln!(text, "{}", paint(printer::CYAN, line));
        }
    }
    text
}

fn to_do(plan: &Plan) -> impl Iterator<Item = &ByHand> {
    plan.outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::ByHand { what, .. } => Some(what),
        _ => None,
    })
}

fn change_text(change: &Change) -> String {
    let mut text = String::new();
    let _: std::fmt::Result = match change {
        Change::MakeFolder { path } => writeln!(text, "make the folder {}", path.display()),
        Change::Keep { from, to } => {
            writeln!(text, "keep {} as {}", from.display(), to.display())
        }
        Change::Write {
            path, after, mode, ..
        } => {
            let done = writeln!(text, "write {} (mode {mode:04o}):", path.display());
            for line in after.split_inclusive(|byte| *byte == b'\n') {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                // Other people's bytes: nothing of them may reach the terminal as an escape sequence.
                let shown = line
                    .split(|byte| *byte == b'\t')
                    .map(text_of_bytes)
                    .collect::<Vec<_>>()
                    .join("\t");
                let _: std::fmt::Result = writeln!(text, "  {}", paint(printer::DIM, shown));
            }
            done
        }
        Change::Restore { from, to } => {
            writeln!(
                text,
                "give {} its name back: {}",
                from.display(),
                to.display()
            )
        }
        Change::Remove { path, .. } => writeln!(text, "remove {}", path.display()),
        Change::RemoveFolder { path } => {
            writeln!(text, "remove the folder {} if it is empty", path.display())
        }
    };
    text
}
