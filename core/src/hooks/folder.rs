//! Where git looks for hooks.
use std::path::{Path, PathBuf};

use super::HookError;
use super::manager::{self, Manager};
use crate::paths::shell_word;
use crate::repository::{ConfigEntry, ConfigScope, Git, Place};

/// Where git looks for hooks at this place.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) manager: Option<Manager>,
    /// Git finds no hooks at all.
    pub(super) off: Option<Off>,
}

/// Why git finds no hooks at all.
pub(super) enum Off {
    /// By this setting.
    Setting(ConfigEntry),
    /// Something else stands in the place of the folder.
    NoFolder,
}

pub(super) fn folder(place: &Place, git: &dyn Git) -> Result<Folder, HookError> {
    let entry = git.config("core.hooksPath")?;
    let path = git.hooks_dir()?;
    let manager = manager::of_folder(place, &path, entry.as_ref().map(|entry| entry.scope));
    // `/dev/null` is the usual way. By an empty one git looks into the folder `/`.
    let is_empty = entry.as_ref().is_some_and(|entry| entry.value.is_empty());
    let off = (is_empty || is_blocked(&path)).then(|| entry.map_or(Off::NoFolder, Off::Setting));
    Ok(Folder { path, manager, off })
}

/// Tells whether there cannot be a folder: a file stands there or above it, or a link that leads nowhere.
fn is_blocked(path: &Path) -> bool {
    let there = path
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok());
    there.is_some_and(|there| !there.is_dir())
}

impl Off {
    pub(super) fn error(self, folder: &Path) -> HookError {
        match self {
            Self::Setting(entry) => HookError::SwitchedOff { entry },
            Self::NoFolder => HookError::NotAFolder {
                path: folder.to_path_buf(),
            },
        }
    }

    /// Says why, and after which commands it is otherwise.
    pub(super) fn text(&self, folder: &Path) -> (String, Vec<String>) {
        match self {
            Self::Setting(entry) => (
                format!("hooks are switched off: {}", super::switched_off(entry)),
                unset(entry.scope).into_iter().collect(),
            ),
            Self::NoFolder => (
                format!("{} is no folder", folder.display()),
                vec![aside(folder), "git takeup hooks install".to_owned()],
            ),
        }
    }
}

/// Returns the command that puts something aside.
pub(super) fn aside(path: &Path) -> String {
    let mut to = path.as_os_str().to_os_string();
    to.push(".aside");
    format!("mv {} {}", shell_word(path), shell_word(Path::new(&to)))
}

/// Returns the command that takes the setting of a hooks folder away; `None` where it was given for this call alone.
pub(super) fn unset(scope: ConfigScope) -> Option<String> {
    let option = match scope {
        ConfigScope::System => "--system ",
        ConfigScope::Global => "--global ",
        ConfigScope::Local => "",
        ConfigScope::Worktree => "--worktree ",
        ConfigScope::Command => return None,
    };
    Some(format!("git config {option}--unset-all core.hooksPath"))
}
