//! What could be recovered of a session, as Markdown for people and other agents.
use std::fmt::Write as _;

use takeup_core::agent::Session;
use takeup_core::process::Liveness;

use crate::alive::time;
use crate::load::Loaded;
use crate::shown::{line, lines};
use crate::wire::{Block, Message};

/// How many characters of one text or result are kept.
const LONGEST: usize = 20_000;

/// Writes the document.
pub(crate) fn document(session: &Session, loaded: &Loaded) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _: std::fmt::Result = write(&mut out, session, loaded);
    out
}

fn write(out: &mut String, session: &Session, loaded: &Loaded) -> std::fmt::Result {
    let name = session.name.as_deref().unwrap_or("jcode session");
    let title = session.title.as_deref().unwrap_or(name);
    writeln!(out, "# {}\n", plain(title))?;
    writeln!(out, "- Session: `{}` of jcode", session.session.id)?;
    if let Some(cwd) = &session.cwd {
        writeln!(
            out,
            "- Folder: `{}`",
            line(&cwd.to_string_lossy(), 400).replace('`', "'")
        )?;
    }
    if let Some(at) = session.created_at {
        writeln!(out, "- Begun: {at}")?;
    }
    if let Some(at) = session.updated_at {
        writeln!(out, "- Last written: {at}")?;
    }
    let state = match &session.liveness {
        Liveness::Live { proof } => format!("alive ({proof})"),
        Liveness::Ended { proof } => format!("ended ({proof})"),
        Liveness::Crashed { proof } => format!("crashed ({proof})"),
        Liveness::Unknown { why } => format!("unknown ({why})"),
    };
    writeln!(out, "- State: {}", plain(&line(&state, 400)))?;
    writeln!(out, "- Messages: {}", loaded.messages.len())?;
    for note in &loaded.recovered {
        writeln!(out, "- Recovered: {}", plain(&line(note, 400)))?;
    }
    for issue in &loaded.issues {
        writeln!(out, "- Damage: {}", plain(&line(&issue.message, 400)))?;
    }
    if !session.plan.is_empty() {
        out.push_str("\n## Todos\n\n");
        for item in &session.plan {
            let mark = if item.done { "x" } else { " " };
            writeln!(out, "- [{mark}] {} ({})", plain(&item.text), item.state)?;
        }
    }
    if !session.open_effects.is_empty() {
        out.push_str("\n## Calls without a result\n\nThese may or may not have happened.\n\n");
        for effect in &session.open_effects {
            let at = effect.at.map_or_else(String::new, |at| format!(", {at}"));
            writeln!(
                out,
                "- {}: {}{at}",
                plain(&effect.tool),
                code(&effect.argument)
            )?;
        }
    }
    if let Some(summary) = &loaded.meta.summary {
        let count = loaded.compacted();
        writeln!(out, "\n## Summary of the first messages ({count})\n")?;
        fenced(out, &lines(summary, LONGEST))?;
    }
    out.push_str("\n## Conversation\n");
    for message in loaded.messages.iter().filter(|message| is_shown(message)) {
        turn(out, message)?;
    }
    Ok(())
}

fn is_shown(message: &Message) -> bool {
    message.is_visible() || message.display_role.as_deref() == Some("background_task")
}

fn turn(out: &mut String, message: &Message) -> std::fmt::Result {
    let who = match (message.role.as_str(), message.display_role.as_deref()) {
        (_, Some("background_task")) => "Background task",
        ("assistant", _) => "Assistant",
        _ if message.is_prompt() => "User",
        _ => "Tool",
    };
    let at = message
        .at
        .map_or_else(String::new, |at| format!(", {}", time(at)));
    writeln!(out, "\n### {who}{at}\n")?;
    for block in &message.blocks {
        match block {
            Block::Text(text) => fenced(out, &lines(text.trim_end(), LONGEST))?,
            Block::ToolUse { name, input, .. } => {
                writeln!(out, "Call of {}:\n", plain(&line(name, 80)))?;
                fenced(out, &lines(input, LONGEST))?;
            }
            Block::ToolResult {
                content, failed, ..
            } => {
                let word = if *failed { "Failed" } else { "Result" };
                writeln!(out, "{word}:\n")?;
                fenced(out, &lines(content.trim_end(), LONGEST))?;
            }
            Block::Image { media_type } => {
                writeln!(out, "(a picture, {})\n", plain(&line(media_type, 40)))?;
            }
            Block::Hidden => {}
            Block::Unknown { kind, text } => match text {
                Some(text) => fenced(out, &lines(text, LONGEST))?,
                None => writeln!(out, "(something unknown: {})\n", plain(&line(kind, 40)))?,
            },
        }
    }
    Ok(())
}

/// Puts a text of somebody else into a fence that it cannot close.
fn fenced(out: &mut String, text: &str) -> std::fmt::Result {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    writeln!(out, "{fence}text\n{text}\n{fence}\n")
}

/// Puts one line into code marks that it cannot close.
fn code(text: &str) -> String {
    let marks = "`".repeat(longest_run(text) + 1);
    format!("{marks} {text} {marks}")
}

fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Takes the meaning from characters that Markdown would read.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_fence() {
        let mut out = String::new();
        fenced(&mut out, "a\n````\n# not a heading").unwrap();
        assert!(out.starts_with("`````text\n") && out.ends_with("`````\n\n"));
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(plain("# <b>[x](y)"), "\\# \\<b\\>\\[x\\](y)");
    }
}
