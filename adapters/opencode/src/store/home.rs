//! Where OpenCode keeps its data and settings: XDG variables, else the Linux style folders, on every system.
use std::path::PathBuf;

use takeup_core::env::Env;
use takeup_core::issue::{Issue, IssueKind};

/// OpenCode's folders.
#[derive(Clone, Debug)]
pub(crate) struct Homes {
    /// Sessions.
    pub(crate) data: PathBuf,
    /// Settings, plugins.
    pub(crate) config: PathBuf,
}

impl Homes {
    /// Returns the folders of the caller; `None` without a home.
    pub(crate) fn of(env: &Env) -> Option<Self> {
        let folder = |variable: &str, fallback: &str| {
            env.absolute(variable)
                .or_else(|| env.home().map(|home| home.join(fallback)))
                .map(|base| base.join("opencode"))
        };
        Some(Self {
            data: folder("XDG_DATA_HOME", ".local/share")?,
            config: env
                .absolute("OPENCODE_CONFIG_DIR")
                .or_else(|| folder("XDG_CONFIG_HOME", ".config"))?,
        })
    }

    /// Returns every database there is: one a build channel, and the one that a variable names.
    pub(super) fn databases(&self, env: &Env, issues: &mut Vec<Issue>) -> Vec<PathBuf> {
        let mut found = Vec::new();
        match self.data.read_dir() {
            Ok(entries) => {
                for entry in entries.flatten() {
                    let name = entry.file_name();
                    let is_database = name.to_str().is_some_and(|name| {
                        name == "opencode.db"
                            || name
                                .strip_prefix("opencode-")
                                .is_some_and(|rest| rest.strip_suffix(".db").is_some())
                    });
                    if is_database {
                        found.push(entry.path());
                    }
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => issues.push(Issue::new(
                &self.data,
                IssueKind::Unreadable,
                error.to_string(),
            )),
        }
        if let Some(named) = env.var("OPENCODE_DB").filter(|named| *named != ":memory:") {
            // A relative one is relative to the data folder; `join` keeps an absolute one.
            let named = self.data.join(named);
            if !found.contains(&named) {
                found.push(named);
            }
        }
        found.sort();
        found
    }
}
