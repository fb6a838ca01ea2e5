//! Git hooks: put in without hindering anybody, taken out to the byte, and noticed when they are displaced.
//!
//! Who owns what: the hook files, the configuration and the files of hook managers are the user's. [`plan_install`] says
//! what would change; nothing is written before [`apply`]. Three ways, the first that fits:
//!
//! 1. git 2.54 and later runs hooks that the configuration names: no hook file is touched.
//! 2. Else a file in the folder that git itself names. A shell script that is there gets our lines after its first one, so
//!    it keeps its name, place, arguments, input and exit status. Another hook (a link, a program) is kept beside ours
//!    under the name `<hook>.takeup-kept`, and run first by ours.
//! 3. What a hook manager or the user's own `core.hooksPath` rules is left alone: the answer says what to add where.
//!
//! What runs is `git takeup hook git <event>`: see [`record`].
//!
//! # Limitations
//!
//! - Hooks named in the configuration are tested with a stand-in for git 2.54, and with a real one where a variable names it.
//! - A kept hook sees `.takeup-kept` at the end of its own name. Where it may ask for its name it is not kept; the answer
//!   says what to do by hand.
//! - Shell scripts are read as simple commands with what is around them: whether a line is reached is judged by the usual
//!   ways to switch it off, and not by what a condition comes to.
//! - The files of hook managers are read as lines: an entry that YAML writes in an unusual form, or that a file beside the
//!   usual one overrides, may be judged wrongly.
//! - The input of `post-rewrite` is not read: which commits became which is not recorded, only where HEAD was and is.
mod advice;
mod apply;
mod by_hand;
mod entry;
mod failure;
mod folder;
mod join;
mod leftovers;
mod manager;
mod missed;
mod plan;
mod record;
mod recorder;
mod removal;
mod seen;
mod shell;
mod status;
mod stub;
#[cfg(test)]
mod tests;

pub use self::apply::apply;
pub use self::by_hand::ByHand;
pub use self::leftovers::temporary_files;
pub use self::manager::Manager;
pub use self::missed::{UnseenMove, unseen_commits, unseen_head};
pub use self::plan::{Change, Installation, Outcome, Plan, plan_install};
pub use self::record::{Heard, Means, attribute, record};
pub use self::recorder::{
    Recorded, parse_git, record_pending, recorder_command, recorder_is_needed, release,
};
pub use self::removal::plan_uninstall;
pub use self::seen::Seen;
pub use self::status::{HookFailure, HookState, HookStatus, status};

use crate::error::{Exit, Explain};
use crate::files::FileError;
use crate::issue::Issue;
use crate::repository::RepositoryError;

/// The hooks that are installed.
pub const EVENTS: [&str; 5] = [
    "post-commit",
    "post-checkout",
    "post-merge",
    "post-rewrite",
    "post-applypatch",
];

/// The variables that turn the hooks off.
pub fn are_off(env: &crate::env::Env) -> bool {
    matches!(env.text("TAKEUP_HOOKS"), Some("0" | "false" | "off"))
        || env.text("TAKEUP_SKIP") == Some("1")
}

/// Hooks could not be planned, installed, removed or recorded.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// Git or the place.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] crate::ledger::LedgerError),
    /// The look at the content.
    #[error(transparent)]
    Fingerprint(#[from] crate::fingerprint::FingerprintError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that cannot be read.
    #[error("{}: {}", .0.path.display(), .0.message)]
    Unreadable(Issue),
    /// Something changed between planning and applying.
    #[error("{} was changed meanwhile", path.display())]
    Changed {
        /// The file.
        path: std::path::PathBuf,
    },
    /// Git looks for hooks in a folder outside the repository that is not there.
    #[error("git looks for hooks in {} (core.hooksPath), which is not there", path.display())]
    NoFolder {
        /// The folder.
        path: std::path::PathBuf,
        /// Where it is set.
        scope: Option<crate::repository::ConfigScope>,
    },
    /// Something else stands in the place of the hooks folder.
    #[error("git looks for hooks in {}, which is no folder", path.display())]
    NotAFolder {
        /// The place.
        path: std::path::PathBuf,
    },
    /// Git finds no hooks, by a setting.
    #[error("hooks are switched off here: {}", switched_off(entry))]
    SwitchedOff {
        /// The setting.
        entry: crate::repository::ConfigEntry,
    },
    /// Git itself is writing the configuration.
    #[error("the configuration is locked: {} exists", path.display())]
    ConfigLocked {
        /// The lock file.
        path: std::path::PathBuf,
    },
    /// Hooks for all repositories need a git that runs hooks named in the configuration.
    #[error("git {version} does not run hooks named in the configuration")]
    NoConfigHooks {
        /// Its version.
        version: crate::repository::GitVersion,
    },
    /// Not one of the hooks that are installed.
    #[error("{name:?} is none of the hooks that are recorded")]
    UnknownEvent {
        /// The name, cut.
        name: String,
    },
}

/// Says which setting switches hooks off, and where it is.
fn switched_off(entry: &crate::repository::ConfigEntry) -> String {
    let scope = entry.scope.code();
    if entry.value.is_empty() {
        format!("core.hooksPath is empty ({scope} configuration), and git looks in / alone")
    } else {
        let value = crate::text::one_line(&entry.value, 200);
        format!("core.hooksPath is {value} ({scope} configuration), which is no folder")
    }
}

impl Explain for HookError {
    fn code(&self) -> &'static str {
        match self {
            Self::Repository(error) => error.code(),
            Self::Ledger(error) => error.code(),
            Self::Fingerprint(error) => error.code(),
            Self::File(error) => error.code(),
            Self::Unreadable(_) => "hook-unreadable",
            Self::Changed { .. } => "hook-changed",
            Self::NoFolder { .. } => "hooks-folder-missing",
            Self::NotAFolder { .. } => "hooks-no-folder",
            Self::SwitchedOff { .. } => "hooks-switched-off",
            Self::ConfigLocked { .. } => "config-locked",
            Self::NoConfigHooks { .. } => "git-too-old",
            Self::UnknownEvent { .. } => "unknown-hook",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Repository(error) => error.hint(),
            Self::Ledger(error) => error.hint(),
            Self::Fingerprint(error) => error.hint(),
            Self::File(error) => error.hint(),
            Self::Unreadable(_) => Some("look at what stands there; nothing was changed".to_owned()),
            Self::Changed { .. } => Some("try again; nothing of it was overwritten".to_owned()),
            Self::NoFolder { path, scope } => {
                let make = format!(
                    "make it, and then install again: mkdir -p {}",
                    crate::paths::shell_word(path)
                );
                Some(match scope.and_then(folder::unset) {
                    Some(unset) => format!("{make}; or take the setting away: {unset}"),
                    None => make,
                })
            }
            Self::NotAFolder { path } => Some(format!(
                "a file, or a link that leads nowhere: put it aside, and then install again: {}",
                folder::aside(path)
            )),
            Self::SwitchedOff { entry } => Some(match folder::unset(entry.scope) {
                Some(unset) => format!("take the setting away, and then install again: {unset}"),
                None => "it was given for this call alone (git -c, GIT_CONFIG_COUNT): call it without".to_owned(),
            }),
            Self::ConfigLocked { .. } => {
                Some("try again when no git command is running; a lock left by a crash has to be removed by hand".to_owned())
            }
            Self::NoConfigHooks { .. } => Some(
                "install git 2.54 or later, or install in each repository without --global".to_owned(),
            ),
            Self::UnknownEvent { .. } => Some(format!("one of: {}", EVENTS.join(", "))),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Repository(error) => error.exit(),
            Self::Ledger(error) => error.exit(),
            Self::Fingerprint(error) => error.exit(),
            Self::File(error) => error.exit(),
            Self::Changed { .. } => Exit::Conflict,
            Self::ConfigLocked { .. } => Exit::Busy,
            Self::UnknownEvent { .. } => Exit::Usage,
            Self::Unreadable(_)
            | Self::NoFolder { .. }
            | Self::NotAFolder { .. }
            | Self::SwitchedOff { .. }
            | Self::NoConfigHooks { .. } => Exit::No,
        }
    }
}
