//! How our entry stands in the file of a hook manager.
//!
//! The files are read as lines: what is commented out does not count, and of YAML only what decides whether our entry runs
//! is understood.
use bstr::ByteSlice as _;

use super::advice::{key_of, twice};
use super::manager::Manager;
use super::shell::line_in;

/// How our entry stands in a manager's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Missing,
    Runs,
    /// It is there and does not run, why.
    Idle(String),
}

pub(super) fn entry(manager: Manager, content: &[u8], event: &str) -> Entry {
    if !manager.is_in_yaml() {
        return line_in(content, event);
    }
    let twice = twice(content);
    let lines: Vec<&[u8]> = lines(content).collect();
    let mut found = Entry::Missing;
    for (at, line) in lines.iter().enumerate() {
        if !calls_us(line, event) {
            continue;
        }
        let one = if matches!(manager, Manager::Lefthook | Manager::Overcommit) {
            in_section(&lines, at, manager, event)
        } else {
            in_stages(&lines, at, event)
        };
        if one != Entry::Runs {
            found = one;
            continue;
        }
        return match twice {
            None => one,
            Some(key) => Entry::Idle(format!(
                "the key {key} stands in it twice, and one counts for nothing"
            )),
        };
    }
    found
}

/// Tells whether a file of shell lines calls us for an event, in a line that is no comment.
pub(super) fn has_live_call(content: &[u8], event: &str) -> bool {
    lines(content).any(|line| calls_us(line, event))
}

fn calls_us(line: &[u8], event: &str) -> bool {
    let plain = ["git-takeup", "git takeup"]
        .iter()
        .map(|program| format!("{program} hook git {event}"));
    // The words apart, as in a list of YAML.
    plain
        .chain([format!("'hook', 'git', '{event}'")])
        .any(|call| {
            line.find_iter(&call).any(|at| {
                let next = line.get(at + call.len());
                !next.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
            })
        })
}

/// Goes through the lines of a shell script or a YAML file, without comments.
pub(super) fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.lines().map(|line| {
        let mut quote = None;
        let mut before = b' ';
        for (at, byte) in line.iter().enumerate() {
            match (quote, *byte) {
                (None, b'#') if before.is_ascii_whitespace() => {
                    return line.get(..at).unwrap_or_default();
                }
                (None, b'"' | b'\'') => quote = Some(*byte),
                (Some(open), byte) if open == byte && before != b'\\' => quote = None,
                _ => {}
            }
            before = *byte;
        }
        line
    })
}

pub(super) fn indent(line: &[u8]) -> usize {
    line.iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count()
}

/// Returns how far the keys of a line are indented: behind the dash, where it begins an item.
fn key_indent(line: &[u8]) -> usize {
    let own = indent(line);
    let behind = line.get(own..).unwrap_or_default();
    match behind.strip_prefix(b"- ") {
        Some(rest) => own + 2 + indent(rest),
        None => own,
    }
}

pub(super) fn is_blank(line: &[u8]) -> bool {
    line.trim().is_empty()
}

/// Returns the keys that stand beside the one whose value the call in a line is, that one among them.
fn item<'a, 'b>(lines: &'a [&'b [u8]], at: usize) -> &'a [&'b [u8]] {
    let line_at = |at: usize| lines.get(at).copied().unwrap_or_default();
    let own = line_at(at);
    let has_key = ["run:", "entry:", "command:"]
        .iter()
        .any(|key| own.contains_str(key));
    let key = if has_key {
        at
    } else {
        // A text over several lines is indented more than its key.
        (0..at)
            .rev()
            .find(|above| !is_blank(line_at(*above)) && indent(line_at(*above)) < indent(own))
            .unwrap_or(at)
    };
    let width = key_indent(line_at(key));
    let begins = |at: usize| key_indent(line_at(at)) == width && indent(line_at(at)) < width;
    let start = if begins(key) {
        key
    } else {
        let above = (0..key)
            .rev()
            .find(|above| !is_blank(line_at(*above)) && indent(line_at(*above)) < width);
        match above {
            Some(above) if begins(above) => above,
            Some(above) => above + 1,
            None => 0,
        }
    };
    let end = (key + 1..lines.len())
        .find(|below| !is_blank(line_at(*below)) && indent(line_at(*below)) < width)
        .unwrap_or(lines.len());
    lines.get(start..end).unwrap_or_default()
}

/// lefthook and overcommit: the entry has to stand below the name of the hook, and not be switched off.
fn in_section(lines: &[&[u8]], at: usize, manager: Manager, event: &str) -> Entry {
    let (name, off) = if manager == Manager::Overcommit {
        (overcommit_name(event), &b"enabled: false"[..])
    } else {
        (event.to_owned(), &b"skip: true"[..])
    };
    let before = lines.get(..=at).unwrap_or_default();
    let section = before
        .iter()
        .rposition(|line| !is_blank(line) && indent(line) == 0)
        .unwrap_or(0);
    let named = lines
        .get(section)
        .is_some_and(|line| key_of(line) == Some(name.as_bytes()));
    if !named {
        return Entry::Idle(format!("the entry does not stand below {name}"));
    }
    // What holds for the whole section, and what holds for the entry.
    let children = lines
        .iter()
        .skip(section + 1)
        .take_while(|line| is_blank(line) || indent(line) > 0);
    let width = children
        .clone()
        .find(|line| !is_blank(line))
        .map_or(0, |line| indent(line));
    let whole = children.filter(|line| indent(line) == width);
    let entry = item(lines, at);
    let own = entry.iter().map(|line| key_indent(line)).min().unwrap_or(0);
    let entry = entry.iter().filter(|line| key_indent(line) == own);
    let is_off = whole
        .chain(entry)
        .any(|line| line.trim().trim_start_with(|c| c == '-' || c == ' ') == off);
    if is_off {
        let off = off.to_str_lossy();
        Entry::Idle(format!("the entry is switched off ({off})"))
    } else {
        Entry::Runs
    }
}

/// pre-commit and prek: an entry runs in its stages, else in the default ones, else in all; and after a commit there are no
/// files, so that it has to run always.
fn in_stages(lines: &[&[u8]], at: usize, event: &str) -> Entry {
    let entry = item(lines, at);
    let stages = words_of(entry, "stages:").or_else(|| words_of(lines, "default_stages:"));
    if let Some(stages) = stages
        && !stages.iter().any(|stage| stage == event)
    {
        return Entry::Idle(format!(
            "the entry runs in other stages: {}",
            crate::text::one_line(&stages.join(", "), 80)
        ));
    }
    let always = words_of(entry, "always_run:");
    if always.is_none_or(|words| words.first().is_none_or(|word| word != "true")) {
        return Entry::Idle("the entry needs always_run: true".to_owned());
    }
    Entry::Runs
}

/// Returns the words that stand behind a key in a YAML file: on its line, or in the list below it.
fn words_of(lines: &[&[u8]], key: &str) -> Option<Vec<String>> {
    let is_key = |line: &[u8]| {
        line.find(key).filter(|at| {
            let before = at.checked_sub(1).and_then(|at| line.get(at));
            before.is_none_or(|byte| b" \t{,".contains(byte))
        })
    };
    let (at, start) = lines
        .iter()
        .enumerate()
        .find_map(|(at, line)| Some((at, is_key(line)?)))?;
    let rest = lines.get(at)?.get(start + key.len()..).unwrap_or_default();
    let words = |text: &[u8]| -> Vec<String> {
        text.fields_with(|c| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
            .map(|word| word.to_str_lossy().into_owned())
            .filter(|word| word != "-")
            .collect()
    };
    if !rest.trim().is_empty() {
        // A list of its own ends there; so does a value among others on the line.
        let end = if rest.trim().starts_with(b"[") {
            &b"]"[..]
        } else {
            b","
        };
        let (inside, more) = rest
            .split_once_str(end)
            .map_or((rest, false), |(one, _)| (one, true));
        let mut found = words(inside);
        if end == b"]" && !more {
            for line in lines.iter().skip(at + 1) {
                let part = line.split_once_str("]").map_or(*line, |(one, _)| one);
                found.extend(words(part));
                if part.len() != line.len() {
                    break;
                }
            }
        }
        return Some(found);
    }
    let below = lines
        .iter()
        .skip(at + 1)
        .take_while(|line| line.trim().is_empty() || line.trim().starts_with(b"- "));
    Some(below.flat_map(|line| words(line)).collect())
}

/// Writes `post-commit` as `PostCommit`.
pub(super) fn overcommit_name(event: &str) -> String {
    event
        .split('-')
        .map(|word| {
            let mut chars = word.chars();
            chars
                .next()
                .map(|first| first.to_ascii_uppercase().to_string() + chars.as_str())
                .unwrap_or_default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::super::by_hand::by_hand;
    use super::*;
    use crate::repository::Place;

    const EVENT: &str = "post-commit";

    fn runs(manager: Manager, text: &str) -> Option<bool> {
        match entry(manager, text.as_bytes(), EVENT) {
            Entry::Missing => None,
            Entry::Runs => Some(true),
            Entry::Idle(_) => Some(false),
        }
    }

    fn advice(manager: Manager) -> String {
        let place = Place {
            root: PathBuf::from("/nowhere"),
            git_dir: PathBuf::from("/nowhere/.git"),
            common_dir: PathBuf::from("/nowhere/.git"),
        };
        by_hand(manager, &place, Path::new("/nowhere/.git/hooks"), EVENT).add
    }

    #[test]
    fn what_is_advised_is_recognised_and_what_is_commented_out_is_not() {
        for manager in [
            Manager::Husky,
            Manager::Lefthook,
            Manager::PreCommit,
            Manager::Prek,
            Manager::Overcommit,
            Manager::UserHooksPath,
        ] {
            let add = advice(manager);
            assert_eq!(runs(manager, &add), Some(true), "{add}");
            let commented = format!("  # {}", add.replace('\n', "\n  # "));
            assert_eq!(runs(manager, &commented), None, "{commented}");
            let other = add
                .replace(EVENT, "post-commit-msg")
                .replace("PostCommit", "Other");
            assert_eq!(runs(manager, &other), None, "{other}");
        }
        // What was advised before.
        for (manager, text) in [
            (
                Manager::Husky,
                "git-takeup hook git post-commit \"$@\" </dev/null >/dev/null 2>&1 || :",
            ),
            (
                Manager::Husky,
                "npm test # then\n\tgit takeup hook git post-commit",
            ),
            (
                Manager::Lefthook,
                "post-commit:\n  jobs:\n    - name: takeup\n      run: \"git-takeup hook git post-commit || :\"\n",
            ),
            (
                Manager::Lefthook,
                "post-commit:\n  commands:\n    other:\n      skip: true\n      run: x\n    takeup:\n      run: git-takeup hook git post-commit\n",
            ),
            (
                Manager::PreCommit,
                "repos:\n- repo: local\n  hooks:\n  - id: t\n    entry: git-takeup hook git post-commit\n    stages:\n    - post-merge\n    - post-commit\n    always_run: true\n",
            ),
            (
                Manager::PreCommit,
                "repos:\n  - repo: local\n    hooks:\n      - {id: t, stages: [post-commit], always_run: true, entry: git-takeup hook git post-commit}\n",
            ),
            (
                Manager::PreCommit,
                "default_stages: [pre-commit]\nrepos:\n  - repo: local\n    hooks:\n      - id: o\n        stages: [manual]\n        entry: o\n      - id: t\n        entry: git-takeup hook git post-commit\n        stages: [post-commit]\n        always_run: true\n      - id: p\n        stages: [manual]\n",
            ),
            (
                Manager::Overcommit,
                "PostCommit:\n  Takeup:\n    enabled: true\n    command: ['git-takeup', 'hook', 'git', 'post-commit']\n",
            ),
        ] {
            assert_eq!(runs(manager, text), Some(true), "{text}");
        }
    }

    #[test]
    fn an_entry_that_its_manager_does_not_run_does_not_count() {
        let commit = advice(Manager::PreCommit);
        let lefthook = advice(Manager::Lefthook);
        for (manager, text) in [
            (
                Manager::PreCommit,
                commit.replace("[post-commit]", "[manual]"),
            ),
            (
                Manager::PreCommit,
                commit.replace(
                    "[post-commit]",
                    "\n          - manual\n          - pre-push",
                ),
            ),
            (
                Manager::PreCommit,
                commit.replace("        stages: [post-commit]\n", "")
                    + "\ndefault_stages: [pre-commit]\n",
            ),
            (
                Manager::PreCommit,
                commit.replace("always_run: true", "verbose: true"),
            ),
            (
                Manager::Lefthook,
                lefthook.replace("post-commit:\n", "post-merge:\n"),
            ),
            (
                Manager::Lefthook,
                lefthook.replace("      run:", "      skip: true\n      run:"),
            ),
            (
                Manager::Lefthook,
                lefthook.replace("  jobs:", "  skip: true\n  jobs:"),
            ),
            (
                Manager::Overcommit,
                advice(Manager::Overcommit).replace("true", "false"),
            ),
        ] {
            assert_eq!(runs(manager, &text), Some(false), "{text}");
        }
    }
}
