//! `git takeup bg list`
use std::io::IsTerminal as _;

use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::issue::Issue;
use takeup_core::text;
use takeup_core::time::Time;

use super::store;
use super::view::{TaskData, damaged};
use crate::agents::{AgentTask, AgentTaskState, background_tasks};
use crate::context::Context;
use crate::printer::{BOLD, DIM, RED, YELLOW, ago, cut, paint, table, width};
use crate::reply::{Failure, Reply};

/// How many tasks people are shown unless they ask for all.
const SHOWN: usize = 30;

/// Arguments of `bg list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  git takeup bg list --running")]
pub(crate) struct Args {
    /// Show all of them, not only the newest
    #[arg(long)]
    all: bool,

    /// Show only what is not over
    #[arg(long)]
    running: bool,
}

/// The answer of `bg list`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListData {
    /// The tasks, newest first.
    tasks: Vec<TaskData>,
    /// Tasks that agents started by themselves, out of their own records, newest first; put right by the processes.
    of_agents: Vec<AgentTask>,
    /// Records that cannot be read.
    issues: Vec<Issue>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Reply, Failure> {
    let store = store(context)?;
    let now = context.clock.now();
    let (seen, mut issues) = store.look_all(&*context.processes)?;
    let theirs = background_tasks(&context.env);
    issues.extend(theirs.issues);
    let mut of_agents = theirs.items;
    of_agents.retain(|task| {
        !args.running
            || matches!(
                task.state,
                AgentTaskState::Running | AgentTaskState::Unknown
            )
    });
    let tasks: Vec<TaskData> = seen
        .into_iter()
        .rev()
        .filter(|seen| !args.running || !seen.record.state.is_over())
        .map(|seen| TaskData::new(&store, seen, now))
        .collect();
    let running = tasks.iter().filter(|task| !task.state.is_over()).count();
    let summary = format!("{} background tasks, {running} running", tasks.len());
    let bar = std::io::stdout().is_terminal();
    let shown = if args.all { usize::MAX } else { SHOWN };
    let mut rows = Vec::new();
    for task in tasks.iter().take(shown) {
        let when = task.ended_at.unwrap_or(task.created_at);
        rows.push(vec![
            paint(BOLD, text::one_line(&task.name, 28)),
            task.painted(),
            task.took(),
            paint(DIM, ago(now, when)),
            task.how_far(bar),
            paint(DIM, text::one_line(&task.command, 200)),
        ]);
    }
    let mut human = fit(&table(&rows), width());
    for task in tasks.iter().take(shown) {
        if let Some(why) = &task.evidence_missing {
            human.push_str(&format!(
                "{} {}: evidence not recorded: {}\n",
                paint(YELLOW, "warning:"),
                text::one_line(&task.name, 28),
                text::one_line(why, 200)
            ));
        }
    }
    if tasks.is_empty() && of_agents.is_empty() {
        human.push_str(if args.running {
            "no background task runs\n"
        } else {
            "no background tasks; start one with `git takeup bg run -- COMMAND`\n"
        });
    }
    if tasks.len() > shown {
        human.push_str(&format!(
            "{} older ones: `git takeup bg list --all`\n",
            tasks.len().saturating_sub(shown)
        ));
    }
    human.push_str(&agent_rows(&of_agents, shown, now));
    for issue in &issues {
        human.push_str(&format!("{}\n", damaged(issue)));
    }
    let data = ListData {
        tasks,
        of_agents,
        issues,
    };
    Ok(Reply::new(summary, &data).human(human))
}

/// Tasks of agents, with what jcode says wrongly of them.
fn agent_rows(tasks: &[AgentTask], shown: usize, now: Time) -> String {
    if tasks.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = tasks
        .iter()
        .take(shown)
        .map(|task| {
            let style = match task.state {
                AgentTaskState::Failed | AgentTaskState::Lost => RED,
                AgentTaskState::Running | AgentTaskState::Unknown => YELLOW,
                AgentTaskState::Completed
                | AgentTaskState::Cancelled
                | AgentTaskState::Superseded => DIM,
            };
            let when = task.ended_at.or(task.started_at);
            let recorded = task
                .recorded
                .as_ref()
                .map_or_else(String::new, |word| format!(", recorded as {word}"));
            vec![
                paint(BOLD, task.label.as_deref().unwrap_or(&task.id)),
                paint(style, task.state.word()),
                when.map_or_else(String::new, |when| paint(DIM, ago(now, when))),
                paint(DIM, format!("{}{recorded}", task.proof)),
            ]
        })
        .collect();
    format!("of jcode:\n{}", fit(&table(&rows), width()))
}

/// Cuts lines that are wider than the terminal; styles are kept, they take no room.
fn fit(text: &str, width: usize) -> String {
    let mut result = String::new();
    for line in text.lines() {
        let plain = anstream::adapter::strip_str(line).to_string();
        let short = cut(&plain, width);
        let kept = if short == plain {
            usize::MAX
        } else {
            short.chars().count().saturating_sub(1)
        };
        let mut visible = 0_usize;
        let mut in_style = false;
        for c in line.chars() {
            in_style |= c == '\u{1b}';
            if in_style {
                result.push(c);
                in_style = !c.is_ascii_alphabetic();
            } else if visible < kept {
                result.push(c);
                visible = visible.saturating_add(1);
                if visible == kept {
                    result.push('…');
                }
            }
        }
        result.push('\n');
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_line_is_cut_and_its_styles_are_closed() {
        let line = format!("{} {}\n", paint(BOLD, "name"), paint(DIM, "command"));
        let fitted = fit(&line, 8);
        assert_eq!(
            anstream::adapter::strip_str(&fitted).to_string(),
            "name co…\n"
        );
        assert!(fitted.ends_with("\u{1b}[0m\n"));
        assert_eq!(fit(&line, 80), line);
    }
}
