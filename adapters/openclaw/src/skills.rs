//! The skill that any agent can use: one source for every copy of it.
//!
//! The same folder is right as `.agents/skills/takeup` (OpenClaw, Codex, Gemini, Copilot, Pi, OpenCode) and as
//! `.claude/skills/takeup` (Claude Code). It holds no program but short scripts in POSIX sh.
use std::path::{Component, Path, PathBuf};

use takeup_core::agent::{Agent, AgentError, Detection};
use takeup_core::env::Env;
use takeup_core::files::read_bounded;
use takeup_core::ids::AgentId;
use takeup_core::integration::{Edit, EditPlan, IntegrationState, Scope, is_others};
use takeup_core::issue::{Issue, IssueKind};

/// The skill's name, and that of its folder.
pub const SKILL: &str = "takeup";

/// Where a repository's copies lie: these two folders reach every agent that knows skills.
pub const REPOSITORY_FOLDERS: [&str; 2] = [".agents/skills/takeup", ".claude/skills/takeup"];

/// The text of `SKILL.md`, with a mark where the table of scripts goes.
const TEXT: &str = include_str!("../data/skill/SKILL.md");
/// The mark.
const TABLE: &str = "@@TABLE@@\n";
/// Stands in every script of ours, whatever its version: what a removal goes by.
const MARK: &str = "# Part of the takeup skill, made by git-takeup.";
/// The largest file that is looked at before it is replaced, in bytes.
const LIMIT: u64 = 1 << 20;

/// One script: one call of one command.
#[derive(Debug)]
struct Script {
    /// Its file name without `.sh`.
    name: &'static str,
    /// When to use it, for the table.
    when: &'static str,
    /// What it takes, as in a usage line.
    usage: &'static str,
    /// What is data whatever it begins with: so many arguments at the front.
    plain: usize,
    /// The command's words.
    command: &'static str,
    /// How the arguments go to the command.
    pass: Pass,
}

/// How arguments go to the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// All of them as options.
    Options,
    /// The plain one behind `--`, the rest as options before it.
    Data,
    /// The plain one as the value of `--task`, the rest as they are.
    Task,
    /// The first names what to do, the second is the plain one.
    Action,
    /// All of them behind `--`: a command to run.
    Command,
}

const SCRIPTS: &[Script] = &[
    Script {
        name: "inspect",
        when: "what is unfinished here, and may it be taken up",
        usage: "[--task TASK] [OPTION...]",
        plain: 0,
        command: "inspect",
        pass: Pass::Options,
    },
    Script {
        name: "resume",
        when: "take a task up, after the person's yes",
        usage: "TASK [--confirm TOKEN] [OPTION...]",
        plain: 1,
        command: "resume",
        pass: Pass::Task,
    },
    Script {
        name: "start",
        when: "begin a task",
        usage: "TITLE [--check COMMAND]... [OPTION...]",
        plain: 1,
        command: "start",
        pass: Pass::Data,
    },
    Script {
        name: "save",
        when: "record the present content for the task",
        usage: "[--task TASK] [OPTION...]",
        plain: 0,
        command: "save",
        pass: Pass::Options,
    },
    Script {
        name: "evaluate",
        when: "what is proved on the present content, what is missing",
        usage: "[--task TASK] [OPTION...]",
        plain: 0,
        command: "evaluate",
        pass: Pass::Options,
    },
    Script {
        name: "next",
        when: "the one next step",
        usage: "[--task TASK] [OPTION...]",
        plain: 0,
        command: "next",
        pass: Pass::Options,
    },
    Script {
        name: "review",
        when: "questions to a person; the data is a question or a review's id",
        usage: "list|show|request|approve|reject [DATA] [OPTION...]",
        plain: 1,
        command: "review",
        pass: Pass::Action,
    },
    Script {
        name: "handover",
        when: "write the document that lets another agent go on",
        usage: "[--task TASK] [--to AGENT] [OPTION...]",
        plain: 0,
        command: "handover",
        pass: Pass::Options,
    },
    Script {
        name: "bg-run",
        when: "run a command that outlives this session",
        usage: "COMMAND [ARGUMENT...]",
        plain: 1,
        command: "bg run",
        pass: Pass::Command,
    },
    Script {
        name: "bg-list",
        when: "background commands and their state",
        usage: "[OPTION...]",
        plain: 0,
        command: "bg list",
        pass: Pass::Options,
    },
    Script {
        name: "bg-output",
        when: "what a background command has printed",
        usage: "ID [OPTION...]",
        plain: 1,
        command: "bg output",
        pass: Pass::Data,
    },
];

impl Script {
    fn text(&self) -> String {
        let Self {
            name,
            when,
            usage,
            plain,
            command,
            ..
        } = self;
        let absent = envelope(command, "not-installed", "git-takeup is not on PATH");
        let enough = if *plain > 0 {
            let usage = envelope(command, "usage", &format!("usage: {name}.sh {usage}"));
            format!("if [ \"$#\" -lt {plain} ]; then\n  printf '%s\\n' '{usage}'\n  exit 2\nfi\n")
        } else {
            String::new()
        };
        let call = match self.pass {
            Pass::Options => format!("exec git takeup {command} --json \"$@\"\n"),
            Pass::Data => {
                format!("data=$1\nshift\nexec git takeup {command} --json \"$@\" -- \"$data\"\n")
            }
            // Behind `--` stands a command to start, and a script starts none.
            Pass::Task => {
                format!(
                    "data=$1\nshift\nexec git takeup {command} --json --task=\"$data\" \"$@\"\n"
                )
            }
            Pass::Action => format!(
                "action=$1\nshift\nif [ \"$#\" -eq 0 ]; then\n  \
                 exec git takeup {command} \"$action\" --json\nfi\n\
                 data=$1\nshift\nexec git takeup {command} \"$action\" --json \"$@\" -- \"$data\"\n"
            ),
            Pass::Command => format!("exec git takeup {command} --json -- \"$@\"\n"),
        };
        format!(
            "#!/bin/sh\n{MARK}\n# {when}\n# usage: {name}.sh {usage}\nset -u\n\
             if ! command -v git-takeup >/dev/null 2>&1; then\n  \
             printf '%s\\n' '{absent}'\n  exit 1\nfi\n{enough}{call}"
        )
    }

    fn row(&self) -> String {
        let Self {
            name,
            when,
            usage,
            command,
            ..
        } = self;
        let usage = usage.replace('|', "\\|");
        let behind = if self.pass == Pass::Command {
            " --"
        } else {
            ""
        };
        format!("| {when} | `{name}.sh {usage}` | `git takeup {command} --json{behind}` |\n")
    }
}

/// What a script itself can fail with, in the shape in which the program fails. No text here holds a quote.
fn envelope(command: &str, code: &str, message: &str) -> String {
    let word = command.split(' ').next().unwrap_or(command);
    format!(
        r#"{{"schema":"takeup.v1","ok":false,"command":"{word}","error":{{"code":"{code}","message":"{message}","retryable":false}}}}"#
    )
}

/// Returns the skill's files with their paths below its folder, and whether they are run.
pub fn files() -> Vec<(String, String, bool)> {
    let table: String = SCRIPTS.iter().map(Script::row).collect();
    let mut files = vec![("SKILL.md".to_owned(), TEXT.replace(TABLE, &table), false)];
    for script in SCRIPTS {
        files.push((format!("scripts/{}.sh", script.name), script.text(), true));
    }
    files
}

/// The skill as `git takeup agents` knows it: it can be put into a repository, or into the user's home for all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Skills;

impl Skills {
    /// The folder the two copies lie below.
    fn root(env: &Env, scope: &Scope) -> Result<PathBuf, AgentError> {
        match scope {
            Scope::Project { root } => Ok(root.clone()),
            Scope::User => env.home().ok_or_else(|| AgentError::NotInstalled {
                agent: "the skill",
                why: "the user has no home".to_owned(),
            }),
        }
    }
}

impl Agent for Skills {
    fn id(&self) -> AgentId {
        #[expect(clippy::expect_used, reason = "the constant is a slug")]
        AgentId::new("skills").expect("a slug")
    }

    fn name(&self) -> &'static str {
        "Skill for any agent"
    }

    fn detect(&self, _: &Env) -> Detection {
        Detection::default()
    }

    fn install(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        let plan = plan(&Self::root(env, scope)?, scope)?;
        Ok(plan.without_edited(env, &self.id(), scope, |_| true))
    }

    fn uninstall(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        let plan = unplan(&Self::root(env, scope)?, scope)?;
        Ok(plan.without_edited(env, &self.id(), scope, |_| true))
    }

    fn integration(&self, env: &Env, scope: &Scope) -> IntegrationState {
        let is_others = |path: &Path| is_others(env, &self.id(), scope, path);
        Self::root(env, scope).map_or(IntegrationState::Absent, |root| {
            state(&root, scope, &is_others)
        })
    }
}

/// Plans the two copies in a repository. Changes nothing.
pub fn plan(root: &Path, scope: &Scope) -> Result<EditPlan, AgentError> {
    let mut plan = EditPlan::default();
    for (root, folder) in places(root, scope) {
        put(&root, &folder, &mut plan)?;
    }
    Ok(plan)
}

/// Plans their removal: only what is ours, as far as it was not edited.
pub fn unplan(root: &Path, scope: &Scope) -> Result<EditPlan, AgentError> {
    let mut plan = EditPlan::default();
    for (root, folder) in places(root, scope) {
        take(&root, &folder, &mut plan)?;
    }
    Ok(plan)
}

/// Looks at the two copies. `is_others` tells which files were put there by another installation alone.
pub fn state(root: &Path, scope: &Scope, is_others: &dyn Fn(&Path) -> bool) -> IntegrationState {
    let places = places(root, scope);
    let states: Vec<IntegrationState> = places
        .iter()
        .map(|(root, folder)| state_of(root, folder, is_others))
        .collect();
    if states
        .iter()
        .all(|state| *state == IntegrationState::Absent)
    {
        return IntegrationState::Absent;
    }
    let outdated = states
        .into_iter()
        .zip(places)
        .find_map(|(state, (root, folder))| match state {
            IntegrationState::Outdated { what } => Some(what),
            IntegrationState::Absent => Some(format!("{} is missing", root.join(folder).display())),
            IntegrationState::Installed => None,
        });
    outdated.map_or(IntegrationState::Installed, |what| {
        IntegrationState::Outdated { what }
    })
}

/// Returns where the copies lie, each as a folder below one under which no link is followed. One that is another name of the
/// other, by a link, is the same copy. In their own home users link folders as they like; what comes with a repository
/// leads nowhere else.
fn places(root: &Path, scope: &Scope) -> Vec<(PathBuf, PathBuf)> {
    let mut places: Vec<(PathBuf, PathBuf)> = Vec::new();
    let is_plain = |folder: &str| below(root, Path::new(folder)).is_ok();
    for folder in REPOSITORY_FOLDERS {
        let real_place = real(&root.join(folder));
        let is_other_name = !is_plain(folder)
            && REPOSITORY_FOLDERS.into_iter().any(|other| {
                let is_same = || joined(real(&root.join(other))) == joined(real_place.clone());
                is_plain(other) && is_same()
            });
        let place = match (scope, real_place) {
            (Scope::User, Some(place)) => place,
            (Scope::User, None) | (Scope::Project { .. }, _) => (root.into(), folder.into()),
        };
        if !is_other_name && !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

fn joined(place: Option<(PathBuf, PathBuf)>) -> Option<PathBuf> {
    place.map(|(there, rest)| there.join(rest))
}

/// Returns where a path really leads, as far as it is there, and what of it is not there yet.
fn real(path: &Path) -> Option<(PathBuf, PathBuf)> {
    path.ancestors().find_map(|above| {
        let real = std::fs::canonicalize(above).ok()?;
        Some((real, path.strip_prefix(above).ok()?.to_path_buf()))
    })
}

/// Adds the edits that put the skill into `root/folder`.
pub(crate) fn put(root: &Path, folder: &Path, plan: &mut EditPlan) -> Result<(), AgentError> {
    for (path, after, before) in present(root, folder)? {
        if let Some(before) = &before
            && *before != after.0
            && !is_ours(&path, before)
        {
            plan.notes.push(format!(
                "{} is there and is not takeup's; it is left: move it away and install again",
                path.display()
            ));
        } else if before.as_deref() == Some(after.0.as_slice()) {
            plan.present.push(path);
        } else {
            plan.edits.push(Edit {
                path,
                before,
                after: Some(after.0),
                mode: if after.1 { 0o755 } else { 0o644 },
            });
        }
    }
    Ok(())
}

/// Adds the edits that take the skill out of `root/folder`.
pub(crate) fn take(root: &Path, folder: &Path, plan: &mut EditPlan) -> Result<(), AgentError> {
    for (path, after, before) in present(root, folder)? {
        let Some(before) = before else {
            continue;
        };
        if before == after.0 || is_ours(&path, &before) {
            plan.edits.push(Edit {
                path,
                before: Some(before),
                after: None,
                mode: 0o644,
            });
        } else {
            plan.notes
                .push(format!("{} was edited and is left", path.display()));
        }
    }
    Ok(())
}

/// Looks at the skill in `root/folder`; one that another installation put there is that one's.
pub(crate) fn state_of(
    root: &Path,
    folder: &Path,
    is_others: &dyn Fn(&Path) -> bool,
) -> IntegrationState {
    let files = match present(root, folder) {
        Ok(files) => files,
        Err(error) => {
            return IntegrationState::Outdated {
                what: error.to_string(),
            };
        }
    };
    let is_absent = files.iter().all(|(_, _, before)| before.is_none());
    if is_absent || files.first().is_some_and(|(path, _, _)| is_others(path)) {
        return IntegrationState::Absent;
    }
    let other = files
        .iter()
        .find(|(_, after, before)| before.as_deref() != Some(after.0.as_slice()));
    match other {
        Some((path, _, Some(_))) => IntegrationState::Outdated {
            what: format!("{} is of another version, or edited", path.display()),
        },
        Some((path, _, None)) => IntegrationState::Outdated {
            what: format!("{} is missing", path.display()),
        },
        None => IntegrationState::Installed,
    }
}

/// A file of ours and what stands in its place now.
type Present = (PathBuf, (Vec<u8>, bool), Option<Vec<u8>>);

fn present(root: &Path, folder: &Path) -> Result<Vec<Present>, AgentError> {
    files()
        .into_iter()
        .map(|(name, text, runs)| {
            let path = below(root, &folder.join(name))?;
            let before = read_bounded(&path, LIMIT).map_err(AgentError::Damaged)?;
            Ok((path, (text.into_bytes(), runs), before))
        })
        .collect()
}

/// Joins a path to a folder; fails where a link stands on the way, since what is written there would land elsewhere.
pub(crate) fn below(root: &Path, path: &Path) -> Result<PathBuf, AgentError> {
    let mut joined = root.to_path_buf();
    for part in path.components() {
        if let Component::Normal(name) = part {
            joined.push(name);
        }
        if std::fs::symlink_metadata(&joined).is_ok_and(|meta| meta.is_symlink()) {
            return Err(AgentError::Damaged(Issue::new(
                joined,
                IssueKind::Symlink,
                "a link stands here, and nothing is written through it; put the folder it names in its place",
            )));
        }
    }
    Ok(joined)
}

fn is_ours(path: &Path, content: &[u8]) -> bool {
    let text = String::from_utf8_lossy(content);
    let mut lines = text.lines();
    if path.extension().is_some_and(|extension| extension == "sh") {
        lines.nth(1) == Some(MARK)
    } else {
        lines.next() == Some("---") && lines.next() == Some("name: takeup")
    }
}

#[cfg(test)]
mod tests;
