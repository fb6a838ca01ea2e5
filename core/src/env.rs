//! The environment of a call, taken once and passed in, so that tests are deterministic.
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// The environment of a call. Its debug form shows names only: values may be secret.
#[derive(Clone, Default)]
pub struct Env {
    vars: BTreeMap<OsString, OsString>,
    /// The folder the call was made in.
    pub cwd: PathBuf,
}

impl Env {
    /// Takes the environment of this process. The folder is empty when it is gone.
    pub fn of_process() -> Self {
        Self {
            vars: std::env::vars_os().collect(),
            cwd: std::env::current_dir().unwrap_or_default(),
        }
    }

    /// Makes an environment for tests.
    pub fn of<K: Into<OsString>, V: Into<OsString>>(
        vars: impl IntoIterator<Item = (K, V)>,
        cwd: impl Into<PathBuf>,
    ) -> Self {
        Self {
            vars: vars
                .into_iter()
                .map(|(k, v)| (k.into(), v.into()))
                .collect(),
            cwd: cwd.into(),
        }
    }

    /// Returns the same environment in another folder.
    #[must_use]
    pub fn at(&self, cwd: impl Into<PathBuf>) -> Self {
        Self {
            vars: self.vars.clone(),
            cwd: cwd.into(),
        }
    }

    /// Returns a variable that is set and not empty.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.vars
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    /// Returns a variable that is set, not empty and UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.var(name).and_then(OsStr::to_str)
    }

    /// Returns a variable that holds an absolute path.
    pub fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.var(name)
            .map(Path::new)
            .filter(|path| path.is_absolute())
            .map(Path::to_path_buf)
    }

    /// Returns the user's home: `HOME`; where that is not set, what the system says. A relative one is none: what would be
    /// written below it would land in whatever folder the call was made in.
    pub fn home(&self) -> Option<PathBuf> {
        if self.var("HOME").is_some() {
            return self.absolute("HOME");
        }
        dirs::home_dir().filter(|home| home.is_absolute())
    }

    /// Returns every variable, for programs that are started on purpose with the caller's environment.
    pub fn vars(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.vars
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("vars", &self.vars.keys())
            .field("cwd", &self.cwd)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_home_is_none() {
        let home = |home: &str| Env::of([("HOME", home)], "/").home();
        assert_eq!(home("/h"), Some(PathBuf::from("/h")));
        assert_eq!(home("relative"), None);
        assert_eq!(home("./relative"), None);
    }
}
