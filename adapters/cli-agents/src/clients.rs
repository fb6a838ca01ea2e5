//! The table: what differs between the clients.
use std::path::{Path, PathBuf};

use takeup_core::env::Env;
use takeup_core::integration::PROGRAM;

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) program: &'static str,
    /// The variable that moves its home, and the home below the user's.
    pub(crate) home_variable: Option<&'static str>,
    pub(crate) home_folder: &'static str,
    /// The folder below the home that holds its sessions, which are not read.
    pub(crate) sessions: &'static str,
    /// That folder has one for each work tree.
    pub(crate) by_place: bool,
    /// Variables it sets in the commands it runs, the most exact first.
    pub(crate) session_variables: &'static [&'static str],
    /// The command that continues a session; `{}` is its id.
    pub(crate) resume: &'static [&'static str],
    /// Where its hooks are kept, below its home and below a project.
    pub(crate) user_settings: &'static str,
    pub(crate) project_settings: &'static str,
    pub(crate) shape: Shape,
    /// Its events and what they mean here.
    pub(crate) events: &'static [(&'static str, Meaning)],
    /// Events whose answer reaches the model.
    pub(crate) answered: &'static [&'static str],
    /// The setting that turns all hooks off.
    pub(crate) off_switch: Option<OffSwitch>,
    /// What a person has to know after the installation.
    pub(crate) note: Option<&'static str>,
}

/// A setting that turns all hooks off.
#[derive(Debug)]
pub(crate) struct OffSwitch {
    /// Where it stands in the settings.
    pub(crate) path: &'static [&'static str],
    /// What it says where it turns them off.
    pub(crate) off: bool,
    /// Files of a project that may say it, the strongest first. The user's own settings are the weakest.
    pub(crate) in_project: &'static [&'static str],
}

/// What a command in the settings has to do with us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// It is a hook of ours, of any version, and nothing else.
    Ours {
        /// The program as it stands there: its bare name, or a path.
        program: String,
        /// It is what would be put there, up to the program.
        is_current: bool,
    },
    /// A hook of ours stands inside a longer command of somebody else.
    Inside,
    /// Nothing.
    Other,
}

/// How hooks are written in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `hooks.EVENT[].hooks[]` with `type`, `command`, and a time limit in this many parts of a second.
    Groups {
        /// 1 for seconds, 1000 for milliseconds.
        parts: u32,
    },
    /// A file beside those of others: `version`, `hooks.EVENT[]` with `type`, `bash`, `timeoutSec`.
    Flat,
}

/// What an event means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    SessionStart,
    TurnStart,
    TurnEnd,
    Compaction,
    Error,
    SessionEnd,
}

/// Sources: each client's documentation of its hooks, read in November 2026.
pub(crate) const CLIENTS: &[Client] = &[
    Client {
        id: "claude-code",
        name: "Claude Code",
        program: "claude",
        home_variable: Some("CLAUDE_CONFIG_DIR"),
        home_folder: ".claude",
        sessions: "projects",
        by_place: true,
        session_variables: &["CLAUDE_CODE_SESSION_ID"],
        resume: &["claude", "-r", "{}"],
        user_settings: "settings.json",
        project_settings: ".claude/settings.json",
        shape: Shape::Groups { parts: 1 },
        events: &[
            ("SessionStart", Meaning::SessionStart),
            ("UserPromptSubmit", Meaning::TurnStart),
            ("Stop", Meaning::TurnEnd),
            ("PreCompact", Meaning::Compaction),
            ("SessionEnd", Meaning::SessionEnd),
        ],
        answered: &["SessionStart", "UserPromptSubmit"],
        off_switch: Some(OffSwitch {
            path: &["disableAllHooks"],
            off: true,
            in_project: &[".claude/settings.local.json", ".claude/settings.json"],
        }),
        note: None,
    },
    Client {
        id: "codex",
        name: "Codex",
        program: "codex",
        home_variable: Some("CODEX_HOME"),
        home_folder: ".codex",
        sessions: "sessions",
        by_place: false,
        session_variables: &["CODEX_SESSION_ID", "CODEX_THREAD_ID"],
        resume: &["codex", "resume", "{}"],
        user_settings: "hooks.json",
        project_settings: ".codex/hooks.json",
        shape: Shape::Groups { parts: 1 },
        events: &[
            ("SessionStart", Meaning::SessionStart),
            ("UserPromptSubmit", Meaning::TurnStart),
            ("Stop", Meaning::TurnEnd),
        ],
        answered: &["SessionStart", "UserPromptSubmit"],
        off_switch: None,
        note: Some(
            "Codex asks once whether each new hook is trusted; releases that know hooks only behind a switch need `codex_hooks = true` under [features] in config.toml",
        ),
    },
    Client {
        id: "gemini",
        name: "Gemini",
        program: "gemini",
        home_variable: None,
        home_folder: ".gemini",
        sessions: "tmp",
        by_place: false,
        session_variables: &[],
        resume: &["gemini", "-r", "{}"],
        user_settings: "settings.json",
        project_settings: ".gemini/settings.json",
        shape: Shape::Groups { parts: 1_000 },
        events: &[
            ("SessionStart", Meaning::SessionStart),
            ("BeforeAgent", Meaning::TurnStart),
            ("AfterAgent", Meaning::TurnEnd),
            ("PreCompress", Meaning::Compaction),
            ("SessionEnd", Meaning::SessionEnd),
        ],
        answered: &["SessionStart", "BeforeAgent"],
        off_switch: Some(OffSwitch {
            path: &["hooksConfig", "enabled"],
            off: false,
            in_project: &[".gemini/settings.json"],
        }),
        note: None,
    },
    Client {
        id: "copilot",
        name: "GitHub Copilot",
        program: "copilot",
        home_variable: Some("COPILOT_HOME"),
        home_folder: ".copilot",
        sessions: "session-state",
        by_place: false,
        session_variables: &["COPILOT_AGENT_SESSION_ID"],
        resume: &["copilot", "--resume={}"],
        user_settings: "hooks/takeup.json",
        project_settings: ".github/hooks/takeup.json",
        shape: Shape::Flat,
        events: &[
            ("sessionStart", Meaning::SessionStart),
            ("userPromptSubmitted", Meaning::TurnStart),
            ("agentStop", Meaning::TurnEnd),
            ("preCompact", Meaning::Compaction),
            ("errorOccurred", Meaning::Error),
            ("sessionEnd", Meaning::SessionEnd),
        ],
        answered: &["sessionStart"],
        off_switch: None,
        note: None,
    },
];

impl Shape {
    /// The field of a hook that holds its command.
    pub(crate) const fn command_field(self) -> &'static str {
        match self {
            Self::Groups { .. } => "command",
            Self::Flat => "bash",
        }
    }
}

/// Tells whether a client's folder shows that the client is there. One that holds takeup's skill alone was made for that.
pub(crate) fn is_home(folder: &Path) -> bool {
    let holds_only = |folder: &Path, name: &str| {
        std::fs::read_dir(folder).is_ok_and(|mut entries| {
            entries.all(|one| one.is_ok_and(|one| one.file_name() == name))
        })
    };
    let skills = folder.join("skills");
    let is_ours = skills.join("takeup").is_dir()
        && holds_only(folder, "skills")
        && holds_only(&skills, "takeup");
    folder.is_dir() && !is_ours
}

impl Client {
    /// Returns the client's home, whether it is there or not.
    pub(crate) fn home(&self, env: &Env) -> Option<PathBuf> {
        self.home_variable
            .and_then(|name| env.absolute(name))
            .or_else(|| Some(env.home()?.join(self.home_folder)))
    }

    /// Returns the command of one event. It ends with success whatever happens, also without the program.
    pub(crate) fn command(&self, event: &str) -> String {
        self.command_by(PROGRAM, event)
    }

    /// As [`Self::command`], by a program that is called as it is written here.
    pub(crate) fn command_by(&self, program: &str, event: &str) -> String {
        format!("{program} hook {} {event} 2>/dev/null || :", self.id)
    }

    /// Tells what a command of an event has to do with us.
    pub(crate) fn call(&self, event: &str, command: &str) -> Call {
        let word = format!(" hook {}", self.id);
        let named = |(at, _): &(usize, &str)| {
            let (before, after) = command.split_at_checked(*at).unwrap_or_default();
            let before = before.trim_end_matches(['"', '\'']);
            let ends = |c: char| c.is_whitespace() || "'\"/;&|(`".contains(c);
            let after = after.get(word.len()..).unwrap_or_default();
            before.rsplit(ends).next() == Some(PROGRAM)
                && !after.starts_with(|c: char| !c.is_whitespace())
        };
        let Some((at, _)) = command.match_indices(&word).find(named) else {
            return Call::Other;
        };
        let program = command.get(..at).unwrap_or_default().trim();
        if !is_alone(program, command) {
            return Call::Inside;
        }
        Call::Ours {
            program: program.to_owned(),
            is_current: command == self.command_by(program, event),
        }
    }
}

/// What may stand behind a hook of ours without being a command of its own.
const TAILS: [&str; 7] = [
    "|| :",
    "||:",
    "|| true",
    "; :",
    "2>/dev/null",
    "2> /dev/null",
    "2>&1",
];

/// Tells whether a command runs one program and nothing else.
fn is_alone(program: &str, command: &str) -> bool {
    let mut rest = command.trim();
    while let Some(shorter) = TAILS.iter().find_map(|tail| rest.strip_suffix(tail)) {
        rest = shorter.trim_end();
    }
    let is_plain = |c: char| !c.is_control() && !"&|;<>()`#*?!".contains(c);
    let is_word = |word: &String| {
        // `NAME=value program`
        let assigns = word
            .split_once('=')
            .is_some_and(|(name, _)| !name.contains('/'));
        Path::new(word)
            .file_name()
            .is_some_and(|name| name == PROGRAM)
            && !assigns
    };
    let words = shlex::split(program).unwrap_or_default();
    rest.chars().all(is_plain) && words.len() == 1 && words.iter().all(is_word)
}
