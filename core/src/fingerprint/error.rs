//! Why no look could be taken at all. A look that saw only a part is no error but an incomplete record.
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Exit, Explain};
use crate::paths::text_of_path;
use crate::repository::Place;

/// Nothing can be said of the work tree.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FingerprintError {
    /// A file or folder that every look needs cannot be read.
    #[error("cannot {what} {}: {source}", text_of_path(path))]
    Io {
        /// What was tried, such as `read`.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The `git` program cannot be started.
    #[error("cannot start git: {0}")]
    NoGit(io::Error),
    /// The `git` program refused.
    #[error("git {command} failed: {message}")]
    Git {
        /// The subcommand.
        command: String,
        /// The first line of what it said.
        message: String,
    },
    /// A file of the repository is not what its format says.
    #[error("{} is damaged: {what}", text_of_path(path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A name that shall be left out is not the name of something at the top of the work tree.
    #[error("{0:?} cannot be left out: only a single name at the top of the work tree can")]
    Excluded(String),
    /// The interrupt flag was raised.
    #[error("the look was interrupted")]
    Interrupted,
    /// The method that was asked for cannot read this repository.
    #[error("{0}")]
    Unsupported(String),
}

impl FingerprintError {
    pub(super) fn io(what: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io {
            what,
            path: path.to_path_buf(),
            source: source.into(),
        }
    }

    /// Says of the index what git said of a copy of it.
    pub(super) fn of_index(mut self, copy: &Path, place: &Place) -> Self {
        if let Self::Git { message, .. } = &mut self {
            let index = text_of_path(&place.git_dir.join("index"));
            *message = message.replace(&text_of_path(copy), &index);
        }
        self
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_path_buf(),
            what: what.into(),
        }
    }
}

impl Explain for FingerprintError {
    fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "look-failed",
            Self::NoGit(_) => "git-missing",
            Self::Git { .. } => "git-failed",
            Self::Damaged { .. } => "repository-damaged",
            Self::Excluded(_) => "bad-exclusion",
            Self::Interrupted => "interrupted",
            Self::Unsupported(_) => "method-unsupported",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Io { path, source, .. }
                if source.kind() == io::ErrorKind::NotFound && *path == std::env::temp_dir() =>
            {
                Some("Make that folder, or let TMPDIR name one that is there.".to_owned())
            }
            Self::Io { .. } => Some("Check who owns it and its permissions.".to_owned()),
            Self::NoGit(_) => Some("Install git, or put it on PATH.".to_owned()),
            Self::Git { .. } => Some("Try `git status` in the same folder.".to_owned()),
            Self::Damaged { .. } => Some("Try `git fsck`.".to_owned()),
            Self::Excluded(_) => Some("Give a name such as `.agent-context`.".to_owned()),
            Self::Interrupted => None,
            Self::Unsupported(_) => Some("Let the method be chosen.".to_owned()),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Excluded(_) => Exit::Usage,
            Self::Io { .. }
            | Self::NoGit(_)
            | Self::Git { .. }
            | Self::Damaged { .. }
            | Self::Interrupted
            | Self::Unsupported(_) => Exit::No,
        }
    }
}
