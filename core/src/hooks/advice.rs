//! What to add to the file of a hook manager, by what stands in it: a key that is there already is not written again, since
//! YAML takes one key once.
use std::path::Path;

use bstr::ByteSlice as _;

use super::entry::{indent, is_blank, lines, overcommit_name};
use super::manager::Manager;
use super::stub;

/// What to add, and where in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Advice {
    pub(super) add: String,
    /// The keys below which it goes, from the outside in; none where it goes to the end.
    pub(super) below: Vec<String>,
}

/// The key of pre-commit's and prek's list.
const REPOS: &str = "repos";

/// Says what to add to a manager's file. `content` is what stands in it.
pub(super) fn advice(manager: Manager, file: &Path, content: &[u8], event: &str) -> Advice {
    let line = stub::line_without_arguments(event);
    match manager {
        Manager::Lefthook => in_lefthook(content, event, &line),
        Manager::PreCommit | Manager::Prek => {
            if file.extension().is_some_and(|end| end == "toml") {
                in_toml(content, event, &line)
            } else {
                in_repos(content, event, &line)
            }
        }
        Manager::Overcommit => {
            let name = overcommit_name(event);
            let entry = format!("Takeup:\n  enabled: true\n  command: ['sh', '-c', '{line}']");
            match Section::of(content, &name) {
                None => Advice {
                    add: format!("{name}:\n{}", indented(&entry, 2)),
                    below: Vec::new(),
                },
                Some(section) => Advice {
                    add: indented(&entry, section.width()),
                    below: vec![name],
                },
            }
        }
        Manager::Husky | Manager::UserHooksPath | Manager::TreeHooksPath | Manager::Own => Advice {
            add: stub::line(event),
            below: Vec::new(),
        },
    }
}

/// Takes from several pieces of advice what would be written twice, were all followed.
pub(super) fn written_once(mut advice: Vec<(&Path, &mut String, &mut Vec<String>)>) {
    let key = format!("{REPOS}:\n");
    let mut written: Vec<&Path> = Vec::new();
    for (file, add, below) in &mut advice {
        if !add.starts_with(&key) {
            continue;
        }
        if written.contains(file) {
            add.drain(..key.len());
            **below = vec![REPOS.to_owned()];
        } else {
            written.push(file);
        }
    }
}

/// Returns a key that stands twice at the top of a YAML file.
pub(super) fn twice(content: &[u8]) -> Option<String> {
    let mut seen = Vec::new();
    for line in lines(content) {
        // Another document begins.
        if line.starts_with(b"---") {
            seen.clear();
        }
        let Some(key) = key_of(line).filter(|_| indent(line) == 0) else {
            continue;
        };
        if seen.contains(&key) {
            return Some(crate::text::one_line(&key.to_str_lossy(), 60));
        }
        seen.push(key);
    }
    None
}

fn in_lefthook(content: &[u8], event: &str, line: &str) -> Advice {
    let job = format!("- name: takeup\n  run: |\n    {line}");
    let command = format!("takeup:\n  run: |\n    {line}");
    let Some(section) = Section::of(content, event) else {
        return Advice {
            add: format!("{event}:\n  jobs:\n{}", indented(&job, 4)),
            below: Vec::new(),
        };
    };
    let outer = section.width();
    for (key, item) in [("jobs", &job), ("commands", &command)] {
        if let Some(inner) = section.child(key) {
            return Advice {
                add: indented(item, inner.width()),
                below: vec![event.to_owned(), key.to_owned()],
            };
        }
    }
    Advice {
        add: indented(&format!("jobs:\n{}", indented(&job, 2)), outer),
        below: vec![event.to_owned()],
    }
}

fn in_repos(content: &[u8], event: &str, line: &str) -> Advice {
    let item = format!(
        "- repo: local\n  hooks:\n    - id: takeup-{event}\n      name: takeup\n      language: system\n      entry: >-\n        sh -c '{line}'\n      stages: [{event}]\n      always_run: true\n      pass_filenames: false"
    );
    match Section::of(content, REPOS) {
        None => Advice {
            add: format!("{REPOS}:\n{}", indented(&item, 2)),
            below: Vec::new(),
        },
        Some(section) => Advice {
            add: indented(&item, section.width()),
            below: vec![REPOS.to_owned()],
        },
    }
}

/// prek.toml: tables of a list can stand anywhere, unless the list is written out.
fn in_toml(content: &[u8], event: &str, line: &str) -> Advice {
    let list = content.lines().any(|line| {
        line.strip_prefix(REPOS.as_bytes())
            .is_some_and(|rest| rest.trim_start().starts_with(b"="))
    });
    if list {
        Advice {
            add: format!(
                "  {{ repo = \"local\", hooks = [{{ id = \"takeup-{event}\", name = \"takeup\", language = \"system\", entry = '''sh -c '{line}' ''', stages = [\"{event}\"], always_run = true, pass_filenames = false }}] }},"
            ),
            below: vec![format!("{REPOS} = [")],
        }
    } else {
        Advice {
            add: format!(
                "[[repos]]\nrepo = \"local\"\n\n[[repos.hooks]]\nid = \"takeup-{event}\"\nname = \"takeup\"\nlanguage = \"system\"\nentry = '''sh -c '{line}' '''\nstages = [\"{event}\"]\nalways_run = true\npass_filenames = false\n"
            ),
            below: Vec::new(),
        }
    }
}

fn indented(text: &str, width: usize) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("{:width$}{line}", ""))
        .collect();
    lines.join("\n")
}

/// Returns the key that a line of YAML begins with.
pub(super) fn key_of(line: &[u8]) -> Option<&[u8]> {
    let (key, rest) = line.trim_start().split_once_str(":")?;
    let is_key = rest.first().is_none_or(u8::is_ascii_whitespace);
    let key = key.trim_with(|c| matches!(c, '"' | '\'' | ' '));
    (is_key && !key.is_empty() && !key.starts_with(b"-")).then_some(key)
}

/// What stands below a key.
struct Section<'a> {
    /// The indentation of the key.
    at: usize,
    lines: Vec<&'a [u8]>,
}

impl<'a> Section<'a> {
    fn of(content: &'a [u8], key: &str) -> Option<Self> {
        Self::below(&lines(content).collect::<Vec<_>>(), key, 0)
    }

    fn child(&self, key: &str) -> Option<Self> {
        Self::below(&self.lines, key, self.width())
    }

    fn below(lines: &[&'a [u8]], key: &str, width: usize) -> Option<Self> {
        let is_it = |line: &&[u8]| indent(line) == width && key_of(line) == Some(key.as_bytes());
        let at = lines.iter().position(is_it)?;
        let below = lines.iter().skip(at + 1).take_while(|line| {
            let own = indent(line);
            // The items of a list may stand as far left as its key.
            is_blank(line) || own > width || (own == width && line.trim_start().starts_with(b"-"))
        });
        Some(Self {
            at: width,
            lines: below.copied().collect(),
        })
    }

    /// Returns how far what stands below is indented.
    fn width(&self) -> usize {
        let first = self.lines.iter().find(|line| !is_blank(line));
        first.map_or(self.at + 2, |line| indent(line))
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Entry, entry};
    use super::*;

    const EVENT: &str = "post-commit";

    /// Follows the advice to the letter: below the innermost key, else at the end.
    fn followed(content: &str, advice: &Advice) -> String {
        if advice.below.is_empty() {
            return format!("{content}{}\n", advice.add);
        }
        let mut keys = advice.below.iter().peekable();
        let mut text = String::new();
        for line in content.lines() {
            text.push_str(line);
            text.push('\n');
            let key = keys.peek();
            if key.is_some_and(|key| {
                line.trim_start()
                    .trim_matches('"')
                    .starts_with(key.as_str())
            }) {
                keys.next();
                if keys.peek().is_none() {
                    text.push_str(&advice.add);
                    text.push('\n');
                }
            }
        }
        assert_eq!(keys.next(), None, "{content}");
        text
    }

    #[test]
    fn advice_that_is_followed_to_the_letter_writes_no_key_twice_and_runs() {
        for (manager, content, keys) in [
            (Manager::Lefthook, "", 0),
            (Manager::Lefthook, "pre-push:\n  jobs:\n    - run: x\n", 0),
            (
                Manager::Lefthook,
                "post-commit:\n  jobs:\n    - run: x\n",
                2,
            ),
            (
                Manager::Lefthook,
                "post-commit:\n  jobs:\n  - run: x\npre-push:\n",
                2,
            ),
            (
                Manager::Lefthook,
                "\"post-commit\":\n    parallel: true\n\n    # theirs\n    commands:\n        theirs:\n            run: x\n",
                2,
            ),
            (
                Manager::Lefthook,
                "post-commit:\n   scripts:\n      x:\n         runner: sh\n",
                1,
            ),
            (Manager::Lefthook, "post-commit:\npre-push:\n  jobs:\n", 1),
            (Manager::PreCommit, "default_stages: [pre-commit]\n", 0),
            (
                Manager::PreCommit,
                "repos:\n- repo: local\n  hooks:\n  - id: x\n    entry: x\n",
                1,
            ),
            (
                Manager::Prek,
                "repos:\n    # theirs\n    -   repo: local\n        hooks:\n        -   id: x\nfail_fast: true\n",
                1,
            ),
            (
                Manager::Overcommit,
                "PreCommit:\n  X:\n    enabled: true\n",
                0,
            ),
            (
                Manager::Overcommit,
                "PostCommit:\n  X:\n    enabled: true\n",
                1,
            ),
        ] {
            let advice = advice(manager, Path::new("x.yml"), content.as_bytes(), EVENT);
            assert_eq!(advice.below.len(), keys, "{content}");
            let after = followed(content, &advice);
            assert_eq!(twice(after.as_bytes()), None, "{after}");
            assert_eq!(
                entry(manager, after.as_bytes(), EVENT),
                Entry::Runs,
                "{after}"
            );
            // As a file of two such keys it is refused, or one of them counts for nothing.
            let doubled = format!("{after}{after}");
            assert!(
                matches!(entry(manager, doubled.as_bytes(), EVENT), Entry::Idle(why) if why.contains("twice")),
                "{doubled}"
            );
        }
    }

    #[test]
    fn a_list_that_all_are_added_to_is_begun_once() {
        let file = Path::new("x.yaml");
        let mut all: Vec<Advice> = ["post-commit", "post-merge"]
            .map(|event| advice(Manager::PreCommit, file, b"", event))
            .into();
        let parts = all
            .iter_mut()
            .map(|one| (file, &mut one.add, &mut one.below));
        written_once(parts.collect());
        let text = all
            .iter()
            .fold(String::new(), |text, one| followed(&text, one));
        assert_eq!(text.matches("repos:").count(), 1, "{text}");
        for event in ["post-commit", "post-merge"] {
            assert_eq!(
                entry(Manager::PreCommit, text.as_bytes(), event),
                Entry::Runs
            );
        }
    }

    #[test]
    fn tables_are_added_as_tables_and_a_list_as_items() {
        for content in [
            "",
            "[[repos]]\nrepo = \"local\"\nhooks = []\n",
            "repos = [\n]\n",
        ] {
            let advice = advice(
                Manager::Prek,
                Path::new("prek.toml"),
                content.as_bytes(),
                EVENT,
            );
            let after = followed(content, &advice);
            let parsed: toml::Table = after.parse().unwrap();
            let hook = parsed["repos"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|repo| repo["hooks"].as_array().unwrap())
                .find(|hook| hook["id"].as_str() == Some("takeup-post-commit"))
                .unwrap();
            let line = hook["entry"].as_str().unwrap();
            let line = line.trim().strip_prefix("sh -c '").unwrap();
            assert_eq!(
                line.strip_suffix('\'').unwrap(),
                stub::line_without_arguments(EVENT)
            );
        }
    }
}
