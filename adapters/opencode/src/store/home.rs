//! Where OpenCode keeps its data and settings: XDG variables, else the Linux style folders, on every system.
use std::path::{Path, PathBuf};

use takeup_core::env::Env;
use takeup_core::files::read_bounded;
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

/// Reads the version of an installed package from its manifest, some folders above the program.
pub(crate) fn version_beside(program: &Path) -> Option<String> {
    let real = program.canonicalize().ok()?;
    real.ancestors().skip(1).take(4).find_map(|folder| {
        let bytes = read_bounded(&folder.join("package.json"), 1 << 20).ok()??;
        let manifest: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        let name = manifest.get("name")?.as_str()?;
        name.starts_with("opencode")
            .then(|| manifest.get("version")?.as_str().map(str::to_owned))
            .flatten()
    })
}
