//! The table: what differs between the clients.
use std::path::PathBuf;

use takeup_core::env::Env;

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
    /// The setting at the top of the same file that turns all hooks off.
    pub(crate) off_switch: Option<&'static str>,
    /// What a person has to know after the installation.
    pub(crate) note: Option<&'static str>,
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
        off_switch: Some("disableAllHooks"),
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
        off_switch: None,
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

impl Client {
    /// Returns the client's home, whether it is there or not.
    pub(crate) fn home(&self, env: &Env) -> Option<PathBuf> {
        self.home_variable
            .and_then(|name| env.absolute(name))
            .or_else(|| Some(env.home()?.join(self.home_folder)))
    }

    /// Returns the command of one event. It ends with success whatever happens, also without the program.
    pub(crate) fn command(&self, event: &str) -> String {
        format!("git-takeup hook {} {event} 2>/dev/null || :", self.id)
    }

    /// Tells whether a command is one of ours, of any version.
    pub(crate) fn is_ours(&self, command: &str) -> bool {
        command.contains(&format!("git-takeup hook {} ", self.id))
    }
}
