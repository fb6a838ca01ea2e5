//! What a person has to do where somebody else manages a hook, and whether it is done.
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bstr::ByteSlice as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::advice::{Advice, advice, written_once};
use super::entry::{Entry, entry, has_live_call, lines};
use super::folder::aside;
use super::manager::Manager;
use super::stub;
use crate::files::read_bounded;
use crate::paths::shell_word;
use crate::repository::{Place, is_executable};

/// The largest file of a manager that is read.
const LARGEST: u64 = 4 << 20;

/// Where generated parts of husky come from.
const HUSKY_MAKES: &str = "; husky makes it where it is installed (npm install, or npx husky)";

/// What a person has to do so that a hook runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ByHand {
    /// Who manages the hook.
    pub manager: Manager,
    /// The file to add to; it need not exist.
    #[serde(serialize_with = "crate::paths::in_json")]
    pub file: PathBuf,
    /// What to add; empty where commands alone do it.
    pub add: String,
    /// The keys in the file below which to add it, from the outside in; none where it goes to the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<String>,
    /// Commands to run besides, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,
    /// Whether it is there already, and runs as far as can be seen.
    pub done: bool,
    /// It is there, and this keeps it from running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
}

impl ByHand {
    /// Returns what to do, for people: what to add where and what to run.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        let mut run = self.run.as_slice();
        if !self.add.is_empty()
            && let [first, rest @ ..] = run
            && first.starts_with("mkdir ")
        {
            // What is added needs its folder first.
            parts.push(format!("run:\n{first}"));
            run = rest;
        }
        if self.obstacle.is_none() && !self.add.is_empty() {
            let file = self.file.display();
            let below: Vec<String> = self
                .below
                .iter()
                .rev()
                .map(|key| format!("`{key}`"))
                .collect();
            let below = if below.is_empty() {
                String::new()
            } else {
                format!(", below {}, which is there already", below.join(" of "))
            };
            parts.push(format!("add to {file}{below}:\n{}", self.add));
        }
        if !run.is_empty() {
            let first = if self.manager == Manager::Own && self.file.is_dir() {
                "a folder stands in the place of the hook; run:"
            } else if self.manager == Manager::Own {
                "it keeps its name in a folder of its own, called by a script that can be joined; run:"
            } else {
                "run:"
            };
            parts.push(format!("{first}\n{}", run.join("\n")));
        }
        parts.join("\n")
    }
}

/// Says what to do so that `event` reaches us, and whether it is done. `folder` is where git looks for hooks.
pub(super) fn by_hand(manager: Manager, place: &Place, folder: &Path, event: &str) -> ByHand {
    let root = &place.root;
    let hook = folder.join(event);
    let file = match manager {
        Manager::Husky => husky_folder(root, folder).join(event),
        Manager::Lefthook => lefthook_file(root, event),
        Manager::PreCommit => root.join(".pre-commit-config.yaml"),
        Manager::Prek => prek_file(root),
        Manager::Overcommit => root.join(".overcommit.yml"),
        Manager::UserHooksPath | Manager::TreeHooksPath | Manager::Own => hook.clone(),
    };
    let content = read_bounded(&file, LARGEST).ok().flatten();
    let Advice { add, below } = advice(
        manager,
        &file,
        content.as_deref().unwrap_or_default(),
        event,
    );
    let entry = match content.as_deref() {
        None => Entry::Missing,
        // Of other formats than YAML it is only known that we are called.
        Some(content) if manager.is_in_yaml() && !is_yaml(&file) => {
            if has_live_call(content, event) {
                Entry::Runs
            } else {
                Entry::Missing
            }
        }
        Some(content) => entry(manager, content, event),
    };
    let mut what = ByHand {
        manager,
        file,
        add,
        below,
        run: Vec::new(),
        done: false,
        obstacle: None,
    };
    let direct = what.file == hook;
    if direct && !folder.exists() {
        what.run.push(format!("mkdir -p {}", shell_word(folder)));
    }
    if direct && entry == Entry::Missing {
        match &content {
            None => what.add.insert_str(0, "#!/bin/sh\n"),
            Some(content) if !stub::is_shell(content) => {
                what.run = own_folder(&hook, event, Some(&what.add));
                what.add.clear();
                return what;
            }
            Some(_) => {}
        }
        if !is_executable(&hook) {
            what.run.push(format!("chmod +x {}", shell_word(&hook)));
        }
        return what;
    }
    what.obstacle = match &entry {
        Entry::Missing => None,
        Entry::Idle(why) => Some(format!("{}: {why}", what.file.display())),
        Entry::Runs => obstacle(&hook, folder),
    };
    what.done = entry == Entry::Runs && what.obstacle.is_none();
    if what.obstacle.is_some() && hook.is_file() && !is_executable(&hook) {
        what.run.push(format!("chmod +x {}", shell_word(&hook)));
    }
    what
}

/// Says what keeps git from running the hook at a path.
fn obstacle(hook: &Path, folder: &Path) -> Option<String> {
    let shown = hook.display();
    let Ok(meta) = std::fs::metadata(hook) else {
        let generated = if folder.ends_with(".husky/_") {
            HUSKY_MAKES
        } else {
            ""
        };
        return Some(if folder.is_dir() {
            format!("git looks for the hook at {shown}, which is not there{generated}")
        } else {
            format!(
                "git looks for hooks in {}, which is not there in this work tree{generated}",
                folder.display()
            )
        });
    };
    if !meta.is_file() {
        return Some(format!("{shown} is no file"));
    }
    if meta.permissions().mode() & 0o111 == 0 {
        return Some(format!("{shown} is not executable: git passes it by"));
    }
    // husky's hooks read a script beside them first, and end where it is not there.
    let content = read_bounded(hook, LARGEST).ok().flatten()?;
    let needed = [("/h\"", "h"), ("_/husky.sh\"", "_/husky.sh")]
        .into_iter()
        .find(|(sign, _)| lines(&content).any(|line| line.contains_str(sign)))
        .map(|(_, name)| folder.join(name))?;
    (!needed.is_file()).then(|| {
        format!(
            "{shown} needs {}, which is not there{HUSKY_MAKES}",
            needed.display()
        )
    })
}

/// Returns the numbers of the lines that call us, from one.
pub(super) fn calling_lines(file: &Path, event: &str) -> Vec<usize> {
    let content = read_bounded(file, LARGEST).ok().flatten();
    let content = content.unwrap_or_default();
    let lines = lines(&content).enumerate();
    let calls = lines.filter(|(_, line)| has_live_call(line, event));
    calls.map(|(at, _)| at + 1).collect()
}

/// Returns the commands after which a hook in any language runs as before, under its own name, and a shell script that
/// can bear our lines stands in its place. `line` is put into that script at once.
fn own_folder(hook: &Path, event: &str, line: Option<&str>) -> Vec<String> {
    let folder = hook.parent().unwrap_or_else(|| Path::new("/")).join("own");
    let (from, kept, to) = (
        shell_word(hook),
        shell_word(&folder.join(event)),
        shell_word(&folder),
    );
    let moved = match std::fs::canonicalize(hook) {
        // A link may lead on from its own folder only.
        Ok(target) if hook.is_symlink() => {
            format!("ln -s {} {kept} && rm {from}", shell_word(&target))
        }
        _ => format!("mv {from} {kept}"),
    };
    let line = line.map(|line| format!("'{line}' ")).unwrap_or_default();
    vec![
        format!("mkdir -p {to}"),
        moved,
        format!("printf '%s\\n' '#!/bin/sh' {line}'\"${{0%/*}}/own/{event}\" \"$@\"' >{from}"),
        format!("chmod +x {from}"),
    ]
}

/// Says what to do about something at the place of a hook that our text cannot be put into.
pub(super) fn not_joined(hook: &Path, event: &str) -> ByHand {
    let mut run = if hook.is_dir() {
        vec![aside(hook)]
    } else {
        own_folder(hook, event, None)
    };
    run.push("git takeup hooks install".to_owned());
    ByHand {
        manager: Manager::Own,
        file: hook.to_path_buf(),
        add: String::new(),
        below: Vec::new(),
        run,
        done: false,
        obstacle: None,
    }
}

/// Says what keeps a hook that calls us from doing so, and that it has to be taken away by hand.
pub(super) fn idle(hook: &Path, why: &str) -> ByHand {
    ByHand {
        manager: Manager::Own,
        file: hook.to_path_buf(),
        add: String::new(),
        below: Vec::new(),
        run: Vec::new(),
        done: false,
        obstacle: Some(format!(
            "{}: {why}; change that, and then run: git takeup hooks install",
            hook.display()
        )),
    }
}

/// Returns the folder of husky's own scripts, by the folder that git is told of: `.husky/_` since husky 9, `.husky` before.
fn husky_folder(root: &Path, folder: &Path) -> PathBuf {
    if folder.ends_with(".husky/_") {
        folder.parent().unwrap_or(folder).to_path_buf()
    } else if folder.ends_with(".husky") {
        folder.to_path_buf()
    } else {
        root.join(".husky")
    }
}

/// Returns the file of lefthook's in which we are called, else the one to add to: its main file where that is YAML, else its
/// local one, which lefthook reads besides in whatever format it is.
fn lefthook_file(root: &Path, event: &str) -> PathBuf {
    let named = |stem: &str| {
        let folders = ["", ".", ".config/"].map(|before| format!("{before}{stem}"));
        let files = folders.into_iter().flat_map(|name| {
            ["yml", "yaml", "toml", "json", "jsonc"].map(|end| root.join(format!("{name}.{end}")))
        });
        files.filter(|file| file.is_file()).collect::<Vec<_>>()
    };
    let (main, local) = (named("lefthook"), named("lefthook-local"));
    let calls_us = |file: &&PathBuf| {
        let content = read_bounded(file, LARGEST).ok().flatten();
        content.is_some_and(|content| has_live_call(&content, event))
    };
    if let Some(file) = main.iter().chain(&local).find(calls_us) {
        return file.clone();
    }
    match main.first() {
        None => root.join("lefthook.yml"),
        Some(file) if is_yaml(file) => file.clone(),
        // The local one has its folder and its dot from the main one.
        Some(file) => local
            .into_iter()
            .find(|file| is_yaml(file))
            .unwrap_or_else(|| {
                let dot = file
                    .file_name()
                    .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
                file.with_file_name(if dot {
                    ".lefthook-local.yml"
                } else {
                    "lefthook-local.yml"
                })
            }),
    }
}

/// Returns prek's file: the first that is there.
fn prek_file(root: &Path) -> PathBuf {
    let names = [
        "prek.toml",
        ".pre-commit-config.yaml",
        ".pre-commit-config.yml",
    ];
    let files = names.map(|name| root.join(name));
    let there = files.iter().find(|file| file.is_file());
    there
        .cloned()
        .unwrap_or_else(|| root.join(".pre-commit-config.yaml"))
}

/// Takes from what several hooks need in one file what would be written twice.
pub(super) fn together<'a>(all: impl IntoIterator<Item = &'a mut ByHand>) {
    let open = all
        .into_iter()
        .filter(|what| !what.done && what.obstacle.is_none());
    let parts = open.map(|what| (what.file.as_path(), &mut what.add, &mut what.below));
    written_once(parts.collect());
}

fn is_yaml(file: &Path) -> bool {
    file.extension()
        .is_some_and(|end| end == "yml" || end == "yaml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_is_made_before_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let place = Place {
            root: root.to_path_buf(),
            git_dir: root.join(".git"),
            common_dir: root.join(".git"),
        };
        let hooks = root.join("tools/hooks");
        let said = || by_hand(Manager::TreeHooksPath, &place, &hooks, "post-commit");
        let text = said().text();
        let at = |part: &str| text.find(part).unwrap();
        assert!(at("mkdir -p ") < at("add to ") && at("add to ") < at("chmod +x "));
        std::fs::create_dir_all(&hooks).unwrap();
        assert!(!said().text().contains("mkdir"));
    }

    #[test]
    fn every_name_that_lefthook_reads_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let put = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            crate::files::write_atomic(&path, text.as_bytes(), 0o600).unwrap();
        };
        let place = Place {
            root: root.to_path_buf(),
            git_dir: root.join(".git"),
            common_dir: root.join(".git"),
        };
        // lefthook is there and runs what it is told to.
        let hooks = root.join(".git/hooks");
        put(".git/hooks/post-commit", "#!/bin/sh\nlefthook run\n");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(hooks.join("post-commit"), executable).unwrap();
        let said = || by_hand(Manager::Lefthook, &place, &hooks, "post-commit");
        let file = |what: &ByHand| what.file.strip_prefix(root).unwrap().to_path_buf();
        assert_eq!(file(&said()), Path::new("lefthook.yml"));
        let ours = said().add;
        for name in [".config/lefthook.yaml", ".lefthook.yml", "lefthook.yml"] {
            put(name, "pre-push:\n");
            assert_eq!(file(&said()), Path::new(name));
            assert!(!said().done);
        }
        // Whichever of them calls us, also the one that is not shared.
        put(".lefthook-local.yml", &ours);
        assert!(said().done);
        assert_eq!(file(&said()), Path::new(".lefthook-local.yml"));
        put(
            ".lefthook-local.yml",
            &ours.replace("post-commit:", "pre-push:"),
        );
        assert!(!said().done && said().obstacle.is_some());
        // YAML cannot be added to another format.
        for name in [
            ".lefthook-local.yml",
            ".config/lefthook.yaml",
            ".lefthook.yml",
            "lefthook.yml",
        ] {
            std::fs::remove_file(root.join(name)).unwrap();
        }
        for (name, expected) in [
            (".config/lefthook.jsonc", ".config/lefthook-local.yml"),
            (".lefthook.jsonc", ".lefthook-local.yml"),
            ("lefthook.jsonc", "lefthook-local.yml"),
        ] {
            put(name, "{}\n");
            assert_eq!(file(&said()), Path::new(expected));
            std::fs::remove_file(root.join(name)).unwrap();
        }
        put("lefthook.toml", "[pre-push]\n");
        assert_eq!(file(&said()), Path::new("lefthook-local.yml"));
        put(
            "lefthook.toml",
            "[post-commit.commands.takeup]\nrun = \"git-takeup hook git post-commit\"\n",
        );
        assert!(said().done);
    }
}
