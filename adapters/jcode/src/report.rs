//! Says in words what is damaged in a session's files, and where jcode itself would answer otherwise.
use std::collections::HashSet;
use std::path::Path;

use takeup_core::issue::{Issue, IssueKind};

use crate::json::members;
use crate::load::{Journal, State, name_of};

/// The snapshot is damaged or missing.
pub(crate) fn snapshot(
    bytes: Option<&[u8]>,
    used_backup: bool,
    path: &Path,
    issues: &mut Vec<Issue>,
    why: &mut Vec<String>,
) {
    let (kind, mut text) = match bytes {
        None => {
            if issues.iter().any(|issue| issue.path == path) {
                return;
            }
            (IssueKind::Missing, "the snapshot is missing".to_owned())
        }
        Some([]) => (IssueKind::Torn, "the snapshot is empty".to_owned()),
        Some(bytes) if bytes.iter().all(|byte| *byte == 0) => (
            IssueKind::Zeroed,
            "the snapshot holds only zero bytes".to_owned(),
        ),
        Some(bytes) => match members(bytes, 0) {
            Some(object) if object.end.is_none() => (
                IssueKind::Torn,
                format!(
                    "the snapshot ends in the middle, after {} bytes",
                    bytes.len()
                ),
            ),
            Some(_) => (
                IssueKind::Corrupt,
                "the snapshot is not clean JSON".to_owned(),
            ),
            None => (
                IssueKind::Corrupt,
                "the snapshot is no JSON object".to_owned(),
            ),
        },
    };
    why.push(text.clone());
    text.push_str(if used_backup {
        "; the backup before it is used"
    } else {
        "; there is no backup of it"
    });
    issues.push(Issue::new(path, kind, text));
}

/// Lines of the journal are torn, or jcode passes over them.
pub(crate) fn journal(
    found: &Journal,
    path: &Path,
    issues: &mut Vec<Issue>,
    why: &mut Vec<String>,
) {
    why.extend(found.refused.iter().cloned());
    if found.broken_text {
        why.push("the journal is cut inside a character".to_owned());
    } else if !found.torn_lines.is_empty() {
        why.push("a line of the journal is torn".to_owned());
    }
    if !found.torn_lines.is_empty() {
        let lines: Vec<String> = found.torn_lines.iter().map(ToString::to_string).collect();
        let kind = if found.zeroed {
            IssueKind::Zeroed
        } else {
            IssueKind::Torn
        };
        issues.push(Issue::new(
            path,
            kind,
            format!(
                "torn at line {}: {} bytes cannot be read",
                lines.join(", "),
                found.torn
            ),
        ));
    }
}

/// The backup is older than the damaged snapshot: what lies between the two is gone, and that is said.
pub(crate) fn gap(state: &State, journal: &Journal, path: &Path, issues: &mut Vec<Issue>) {
    let Some(first) = journal.first_at else {
        return;
    };
    let last = state
        .messages
        .iter()
        .filter_map(|message| message.at)
        .filter(|at| *at < first)
        .max();
    if let Some(last) = last {
        issues.push(Issue::new(
            path,
            IssueKind::Missing,
            format!("messages between {last} and {first} may be missing: the journal follows the damaged snapshot, not its backup"),
        ));
    }
}

/// Returns where jcode's own answer differs: `jcode` names the messages it would load, `None` where it loads nothing.
pub(crate) fn difference(
    state: &State,
    journal: &Journal,
    jcode: Option<&HashSet<String>>,
    why: &[String],
) -> Vec<String> {
    let mut recovered = Vec::new();
    let more = state
        .messages
        .iter()
        .filter(|message| jcode.is_none_or(|ids| !ids.contains(&name_of(message))))
        .count();
    let reason = if why.is_empty() {
        "it is left beside the session's files".to_owned()
    } else {
        why.join("; ")
    };
    if more > 0 {
        recovered.push(format!(
            "messages that jcode cannot load: {more} ({reason})"
        ));
    } else if jcode.is_none() {
        recovered.push(format!("jcode cannot load this session ({reason})"));
    }
    if journal.repeated > 0 && jcode.is_some() {
        let status = if journal.stale_meta {
            " and takes back the status"
        } else {
            ""
        };
        recovered.push(format!(
            "messages that jcode shows twice: {} (the snapshot already held what its journal repeats{status})",
            journal.repeated
        ));
    }
    recovered
}
