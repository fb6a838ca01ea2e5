//! What a caller may ask of a look.
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::FingerprintError;
use super::record::Method;
use crate::env::Env;

/// The folders at the top of a work tree that are never part of its content: agents keep their own records there.
pub const RUNTIME_FOLDERS: &[&str] = &[".agent-context"];

/// How a look is taken.
#[derive(Clone)]
pub struct Options<'a> {
    /// The environment: where the user's git settings are, and what the `git` program is started with. Variables that
    /// point git at another repository are left out.
    pub env: &'a Env,
    /// Names at the top of the work tree that are left out beside [`RUNTIME_FOLDERS`].
    pub excluded: Vec<String>,
    /// Trust no metadata and no cache: read everything.
    pub verify: bool,
    /// Use what earlier looks remembered.
    pub use_cache: bool,
    /// Remember for later looks. Off for commands that promise not to write.
    pub write_cache: bool,
    /// Run clean filters that the repository itself configures (`.git/config`), and not only those of the user's or the
    /// system's settings. Off by default: a folder that was unpacked or copied brings its `.git/config` along.
    pub repository_programs: bool,
    /// Files of at least this many bytes are told to [`Options::progress`].
    pub large: u64,
    /// Called while a large file is read.
    pub progress: Option<&'a (dyn Fn(&Progress) + Sync)>,
    /// Raised by the caller to end the look with [`FingerprintError::Interrupted`].
    pub interrupt: Option<&'a AtomicBool>,
    /// Take this method and no other; for tests and comparison.
    pub method: Option<Method>,
}

/// How far the reading of a large file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The file.
    pub path: PathBuf,
    /// Bytes read so far.
    pub done: u64,
    /// Its size in bytes.
    pub size: u64,
}

impl<'a> Options<'a> {
    /// Makes the usual options: metadata and cache are trusted by the rules of this module, the cache is kept up.
    pub const fn new(env: &'a Env) -> Self {
        Self {
            env,
            excluded: Vec::new(),
            verify: false,
            use_cache: true,
            write_cache: true,
            repository_programs: false,
            large: 256 << 20,
            progress: None,
            interrupt: None,
            method: None,
        }
    }

    /// Makes the options for commands that promise to change nothing on disk.
    pub const fn reading_only(env: &'a Env) -> Self {
        let mut options = Self::new(env);
        options.write_cache = false;
        options
    }

    /// Returns the names that are left out, sorted, each once.
    pub(super) fn exclusions(&self) -> Result<Vec<String>, FingerprintError> {
        let mut names: Vec<String> = RUNTIME_FOLDERS
            .iter()
            .map(|name| (*name).to_owned())
            .collect();
        for name in &self.excluded {
            let name = name.trim_end_matches('/');
            if name.is_empty() || name.contains(['/', '\0']) || [".", "..", ".git"].contains(&name)
            {
                return Err(FingerprintError::Excluded(name.to_owned()));
            }
            names.push(name.to_owned());
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Fails when the interrupt flag is up.
    pub(super) fn check_interrupt(&self) -> Result<(), FingerprintError> {
        match self.interrupt {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(FingerprintError::Interrupted),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("excluded", &self.excluded)
            .field("verify", &self.verify)
            .field("use_cache", &self.use_cache)
            .field("write_cache", &self.write_cache)
            .field("repository_programs", &self.repository_programs)
            .field("large", &self.large)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
