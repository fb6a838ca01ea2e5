//! Whether the hooks run, and if not, what took their place since when.
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::by_hand::{ByHand, by_hand, not_joined, together};
use super::entry::Entry;
use super::failure;
pub use super::failure::HookFailure;
use super::folder::{Folder, folder, unset};
use super::join::{cannot_be_joined, kept_path, moved_ours};
use super::manager;
use super::seen::{Seen, target};
use super::shell::{call_in, is_wrapped};
use super::{EVENTS, HookError, stub};
use crate::ledger::{InstalledHook, State};
use crate::paths::shell_word;
use crate::repository::{ConfigEntry, GitVersion, Repository, is_executable};
use crate::time::Time;

/// How one hook is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookStatus {
    /// The hook.
    pub event: String,
    /// Whether it runs.
    #[serde(flatten)]
    pub state: HookState,
    /// When it was installed, by our own record.
    pub installed_at: Option<Time>,
    /// When it last ran, by our own record.
    pub last_ran: Option<Time>,
    /// The last call of the program, where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<HookFailure>,
}

impl HookStatus {
    /// Tells whether git calls us, and the program answers as far as is known.
    pub const fn runs(&self) -> bool {
        self.state.runs() && self.failure.is_none()
    }
}

/// Whether a hook runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(
    tag = "state",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum HookState {
    /// It was never installed.
    Absent,
    /// It is where git looks.
    Installed {
        /// Where.
        place: String,
        /// A hook of somebody else's that ours runs first.
        #[serde(serialize_with = "crate::paths::in_json_if_some")]
        kept: Option<PathBuf>,
        /// The program that it names, where that is gone or cannot be executed: `git-takeup` is looked for on PATH then.
        #[serde(
            serialize_with = "crate::paths::in_json_if_some",
            skip_serializing_if = "Option::is_none"
        )]
        missing_program: Option<PathBuf>,
    },
    /// A hook manager calls it.
    ByHand {
        /// What was added where.
        what: ByHand,
    },
    /// It is not installed, and cannot be but by hand.
    Missing {
        /// What has to be added where.
        what: ByHand,
    },
    /// It was installed and does not run any more.
    Displaced {
        /// What took its place.
        by: String,
        /// Since when, as far as can be told: not before this.
        since: Option<Time>,
        /// What has to be added where, if what took its place is somebody else's: to install again is refused there.
        #[serde(skip_serializing_if = "Option::is_none")]
        what: Option<ByHand>,
        /// Commands after which git looks where it was installed.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        run: Vec<String>,
    },
    /// It is there and does not run.
    NotRun {
        /// Why.
        why: String,
        /// Commands after which it runs, where they are known.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        run: Vec<String>,
    },
}

impl HookState {
    /// Tells whether git calls us.
    pub const fn runs(&self) -> bool {
        matches!(self, Self::Installed { .. } | Self::ByHand { .. })
    }
}

/// Looks at every hook. `state` is the ledger's, for what was installed and when it last ran.
pub fn status(
    repository: &Repository,
    version: GitVersion,
    state: &State,
) -> Result<Vec<HookStatus>, HookError> {
    let place = repository.place();
    let git = repository.git();
    let config = git.config_entries()?;
    let folder = folder(place, git)?;
    let hooks_path = config
        .iter()
        .rev()
        .find(|entry| entry.key == "core.hookspath");
    let mut found = Vec::new();
    let failure = failure::last(place, state);
    for event in EVENTS {
        let recorded = state.hooks.get(event);
        let one = Looked {
            event,
            config: &config,
            version,
            folder: &folder,
            hooks_path,
            recorded,
        };
        let found_state = one.state(repository)?;
        // Each names the same program.
        let installed = matches!(found_state, HookState::Installed { .. });
        let failure = failure
            .clone()
            .filter(|_| installed)
            .filter(|failure| recorded.is_none_or(|hook| hook.installed_at < failure.at));
        found.push(HookStatus {
            event: event.to_owned(),
            state: found_state,
            failure,
            installed_at: recorded.map(|hook| hook.installed_at),
            last_ran: recorded.and_then(|hook| hook.last_ran),
        });
    }
    together(found.iter_mut().filter_map(|hook| match &mut hook.state {
        HookState::Missing { what } => Some(what),
        HookState::Displaced { what, .. } => what.as_mut(),
        HookState::Absent
        | HookState::Installed { .. }
        | HookState::ByHand { .. }
        | HookState::NotRun { .. } => None,
    }));
    Ok(found)
}

struct Looked<'a> {
    event: &'a str,
    config: &'a [ConfigEntry],
    version: GitVersion,
    folder: &'a Folder,
    hooks_path: Option<&'a ConfigEntry>,
    recorded: Option<&'a InstalledHook>,
}

impl Looked<'_> {
    fn state(&self, repository: &Repository) -> Result<HookState, HookError> {
        let path = self.folder.path.join(self.event);
        let seen = Seen::at(&path)?;
        let by_file = self.by_file(&path, &seen);
        let by_config = self.by_config();
        if let Some(state) = by_config.as_ref().filter(|state| state.runs()) {
            return Ok(state.clone());
        }
        if let Some(off) = &self.folder.off {
            let (why, run) = off.text(&self.folder.path);
            return Ok(HookState::NotRun { why, run });
        }
        if let Some(state) = by_file {
            return Ok(state);
        }
        if let Some(state) = by_config {
            return Ok(state);
        }
        if let Some(legacy) = moved_ours(&path) {
            let missing_program = match Seen::at(&legacy)? {
                Seen::File { bytes, .. } => missing_program(&bytes),
                Seen::Link { .. } | Seen::Nothing | Seen::Other => None,
            };
            return Ok(HookState::Installed {
                place: legacy.display().to_string(),
                kept: None,
                missing_program,
            });
        }
        let gone = self.folder.manager.is_none() && !self.folder.path.exists();
        if let Some(entry) = self.hooks_path.filter(|_| gone && self.recorded.is_none()) {
            return Ok(HookState::NotRun {
                why: format!(
                    "git looks for hooks in {} (core.hooksPath), which is not there",
                    self.folder.path.display()
                ),
                run: unset(entry.scope).into_iter().collect(),
            });
        }
        let manager = self.folder.manager.or_else(|| match &seen {
            Seen::File { bytes, .. } => manager::of_hook(bytes),
            Seen::Link { .. } | Seen::Nothing | Seen::Other => None,
        });
        let by_hand = manager
            .map(|manager| by_hand(manager, repository.place(), &self.folder.path, self.event));
        match &by_hand {
            Some(what) if what.done => return Ok(HookState::ByHand { what: what.clone() }),
            Some(ByHand {
                obstacle: Some(why),
                run,
                ..
            }) => {
                return Ok(HookState::NotRun {
                    why: why.clone(),
                    run: run.clone(),
                });
            }
            Some(_) | None => {}
        }
        // What a person added is recorded by its file; where it is gone, it has to be added again.
        let is_told = |what: &ByHand| {
            let file = crate::paths::text_of_path(&what.file);
            self.recorded.is_some_and(|hook| hook.place == file)
        };
        if self.recorded.is_some() && !by_hand.as_ref().is_some_and(is_told) {
            return Ok(self.displaced(&path, &seen, by_hand));
        }
        if by_hand.is_none() && cannot_be_joined(&path, &seen, self.event)? {
            let what = not_joined(&path, self.event);
            return Ok(HookState::Missing { what });
        }
        Ok(by_hand.map_or(HookState::Absent, |what| HookState::Missing { what }))
    }

    fn by_file(&self, path: &Path, seen: &Seen) -> Option<HookState> {
        let followed;
        let (bytes, mode) = match seen {
            Seen::File { bytes, mode } => (bytes, *mode),
            Seen::Link { .. } => {
                // Git follows it.
                followed = target(path)?;
                (&followed.0, followed.1)
            }
            Seen::Nothing | Seen::Other => return None,
        };
        let ours = stub::find(bytes).is_some();
        // A line of ours that a person put into a hook of their own.
        if !ours && self.folder.manager.is_some() {
            return None;
        }
        let shown = crate::paths::text_of_path(path);
        let recorded = self.recorded.filter(|hook| hook.place == shown);
        let entry = call_in(bytes, self.event, recorded.map(|hook| hook.sha256.as_str()));
        if entry == Entry::Missing {
            return None;
        }
        if let Entry::Idle(why) = entry {
            let installs = ours && is_wrapped(bytes).is_none();
            return Some(HookState::NotRun {
                why: format!("{}: {why}", path.display()),
                run: installs
                    .then(|| "git takeup hooks install".to_owned())
                    .into_iter()
                    .collect(),
            });
        }
        Some(if mode & 0o111 == 0 {
            HookState::NotRun {
                why: format!("{} is not executable", path.display()),
                run: vec![format!("chmod +x {}", shell_word(path))],
            }
        } else {
            let kept = kept_path(path);
            HookState::Installed {
                place: path.display().to_string(),
                kept: std::fs::symlink_metadata(&kept).is_ok().then_some(kept),
                missing_program: missing_program(bytes),
            }
        })
    }

    fn by_config(&self) -> Option<HookState> {
        let name = stub::config_name(self.event);
        let last = |key: &str| self.config.iter().rev().find(|entry| entry.key == key);
        let command = last(&format!("hook.{name}.command"))?;
        if !command.value.contains("takeup_hook") {
            return None;
        }
        let off = [
            format!("hook.{name}.enabled"),
            format!("hook.{}.enabled", self.event),
        ]
        .into_iter()
        .find(|key| last(key).is_some_and(|entry| entry.as_bool() == Some(false)));
        let whole = command.value.starts_with("takeup_hook() {")
            && command
                .value
                .ends_with(&format!("takeup_hook {}", self.event));
        Some(if !whole {
            HookState::NotRun {
                why: format!("hook.{name}.command was changed"),
                run: vec!["git takeup hooks install".to_owned()],
            }
        } else if let Some(key) = off {
            HookState::NotRun {
                why: format!("{key} is false"),
                run: Vec::new(),
            }
        } else if self.version < GitVersion::CONFIG_HOOKS {
            HookState::NotRun {
                why: format!(
                    "git {} does not run hooks named in the configuration",
                    self.version
                ),
                run: Vec::new(),
            }
        } else {
            HookState::Installed {
                place: format!(
                    "hook.{name}.command in the {} configuration",
                    command.scope.code()
                ),
                kept: None,
                missing_program: crate::paths::bytes_of_text(&command.value)
                    .and_then(|text| missing_program(&text)),
            }
        })
    }

    fn displaced(&self, path: &Path, seen: &Seen, what: Option<ByHand>) -> HookState {
        let elsewhere = self.recorded.is_some_and(|hook| {
            crate::paths::path_of_text(&hook.place)
                .as_deref()
                .and_then(Path::parent)
                .is_some_and(|folder| folder.is_absolute() && folder != self.folder.path)
        });
        let (by, file) = match (self.hooks_path, seen) {
            (Some(entry), _) if elsewhere => (
                format!(
                    "core.hooksPath = {} ({} configuration)",
                    entry.value,
                    entry.scope.code()
                ),
                None,
            ),
            (_, Seen::Nothing) => (
                format!("somebody who removed it: {} is gone", path.display()),
                path.parent(),
            ),
            (_, Seen::File { bytes, .. }) => {
                let who = manager::of_hook(bytes)
                    .map(|manager| format!(" of {}", manager.name()))
                    .unwrap_or_default();
                (format!("{}{who}", path.display()), Some(path))
            }
            (_, Seen::Link { .. } | Seen::Other) => (path.display().to_string(), Some(path)),
        };
        let ran = self
            .recorded
            .map(|hook| hook.last_ran.unwrap_or(hook.installed_at));
        let changed = file
            .and_then(|file| std::fs::symlink_metadata(file).ok())
            .map(|meta| {
                Time::from_millis(meta.ctime().saturating_mul(1000) + meta.ctime_nsec() / 1_000_000)
            });
        let setting = self.hooks_path.filter(|_| elsewhere);
        HookState::Displaced {
            by,
            since: changed.max(ran),
            what,
            run: setting
                .and_then(|entry| unset(entry.scope))
                .into_iter()
                .collect(),
        }
    }
}

/// Returns the program that the text of a hook names, where it is gone or cannot be executed.
fn missing_program(text: &[u8]) -> Option<PathBuf> {
    stub::program_of(text).filter(|program| !is_executable(program))
}
