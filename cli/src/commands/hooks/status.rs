//! `git takeup hooks status`
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::env::Env;
use takeup_core::error::Exit;
use takeup_core::hooks::{self, HookState, HookStatus, UnseenMove};
use takeup_core::repository::{GitVersion, Repository, tokens};

use super::{by_hand_text, read_state};
use crate::printer::{self, paint};
use crate::reply::{Failure, Next, Reply};

/// The answer of `hooks status`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusData {
    /// The version of git.
    git: String,
    /// Every hook.
    hooks: Vec<HookStatus>,
    /// A variable turns the hooks off for what is called from here.
    turned_off: bool,
    /// A move of HEAD that no hook saw.
    unseen: Option<UnseenMove>,
}

pub(super) fn status(
    env: &Env,
    repository: &Repository,
    version: GitVersion,
) -> Result<Reply, Failure> {
    let state = read_state(repository)?;
    let found = hooks::status(repository, version, &state)?;
    let unseen = match tokens(repository.place())?.worktree {
        Some(worktree) => hooks::unseen_head(repository, &state, &worktree)?,
        None => None,
    };
    let running = found.iter().filter(|hook| hook.runs()).count();
    let turned_off = hooks::are_off(env);
    let mut summary = format!("{running} of {} hooks run", found.len());
    if turned_off {
        summary.push_str(", and record nothing here: TAKEUP_HOOKS or TAKEUP_SKIP turns them off");
    }
    let mut rows = Vec::new();
    for hook in &found {
        let (mut word, mut detail) = state_text(&hook.state);
        if let Some(failure) = &hook.failure {
            word = paint(printer::RED, "fails");
            detail = failure.text();
        }
        let ran = hook
            .last_ran
            .map(|at| format!("last ran {at}"))
            .unwrap_or_default();
        rows.push(vec![hook.event.clone(), word, ran, detail]);
    }
    let mut text = format!("{summary}\n{}", printer::table(&rows));
    if let Some(unseen) = &unseen {
        let _: std::fmt::Result = writeln!(
            text,
            "{} HEAD moved without a hook having seen it{}",
            paint(printer::YELLOW, "note:"),
            unseen
                .reason
                .as_ref()
                .map(|reason| format!(": {}", takeup_core::text::one_line(reason, 80)))
                .unwrap_or_default()
        );
    }
    text.push_str(&by_hand_text(found.iter().filter_map(
        |hook| match &hook.state {
            HookState::Missing { what } => Some(what),
            HookState::Displaced { what, .. } => what.as_ref(),
            _ => None,
        },
    )));
    let mut commands: Vec<&str> = Vec::new();
    for hook in &found {
        if let HookState::NotRun { run, .. } = &hook.state {
            commands.extend(run.iter().map(String::as_str));
        }
    }
    commands.dedup();
    if !commands.is_empty() {
        let commands = paint(printer::CYAN, commands.join("\n"));
        let _: std::fmt::Result = writeln!(text, "run:\n{commands}");
    }
    let all = running == found.len();
    // What a person has to do is said; only the rest does an installation help.
    let helps = found.iter().any(|hook| {
        let state = &hook.state;
        matches!(
            state,
            HookState::Absent | HookState::Displaced { what: None, .. }
        )
    });
    let reply = Reply::new(
        summary,
        &StatusData {
            git: version.to_string(),
            hooks: found,
            turned_off,
            unseen,
        },
    )
    .human(text);
    Ok(match (all, helps) {
        (true, _) if turned_off => reply.exit(Exit::No),
        (true, _) => reply,
        (false, false) => reply.exit(Exit::No),
        (false, true) => reply
            .exit(Exit::No)
            .next(Next::new("install", "git takeup hooks install")),
    })
}

fn state_text(state: &HookState) -> (String, String) {
    match state {
        HookState::Absent => ("not installed".to_owned(), String::new()),
        HookState::Installed {
            place,
            kept,
            missing_program,
        } => {
            let mut detail = place.clone();
            if let Some(kept) = kept {
                detail.push_str(&format!(", after {}", kept.display()));
            }
            if let Some(program) = missing_program {
                let gone = format!(
                    ", by PATH, since {} is gone or cannot be executed",
                    program.display()
                );
                detail.push_str(&paint(printer::YELLOW, gone));
            }
            (paint(printer::GREEN, "runs"), detail)
        }
        HookState::ByHand { what } => (
            paint(printer::GREEN, "runs"),
            format!("by {} in {}", what.manager.name(), what.file.display()),
        ),
        HookState::Missing { what } => (
            paint(printer::YELLOW, "by hand"),
            format!("{}: {}", what.manager.name(), what.file.display()),
        ),
        HookState::Displaced { by, since, .. } => (
            paint(printer::RED, "displaced"),
            since.map_or_else(
                || format!("by {by}"),
                |since| format!("by {by}, since {since}"),
            ),
        ),
        HookState::NotRun { why, .. } => (paint(printer::RED, "does not run"), why.clone()),
    }
}
