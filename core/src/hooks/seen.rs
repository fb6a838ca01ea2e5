//! What is at the place of a hook or a configuration file.
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::HookError;
use crate::files::{FileError, read_bounded};

/// The largest hook or configuration file that is read.
const LARGEST: u64 = 16 << 20;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing.
    Nothing,
    /// A regular file.
    File {
        /// Its content.
        bytes: Vec<u8>,
        /// Its permission bits.
        mode: u32,
    },
    /// A link.
    Link {
        /// Where it leads.
        target: PathBuf,
    },
    /// Something else: a folder, a pipe.
    Other,
}

impl Seen {
    /// Looks at a path without following a link.
    pub fn at(path: &Path) -> Result<Self, HookError> {
        let meta = match std::fs::symlink_metadata(path) {
            Ok(meta) => meta,
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Self::Nothing);
            }
            Err(error) => return Err(FileError::new("cannot look at", path, error).into()),
        };
        if meta.is_symlink() {
            let target = std::fs::read_link(path)
                .map_err(|error| FileError::new("cannot read the link", path, error))?;
            return Ok(Self::Link { target });
        }
        if meta.is_dir() {
            return Ok(Self::Other);
        }
        match read_bounded(path, LARGEST) {
            Ok(Some(bytes)) => Ok(Self::File {
                bytes,
                mode: meta.permissions().mode() & 0o7777,
            }),
            Ok(None) => Ok(Self::Nothing),
            Err(issue) if issue.kind == crate::issue::IssueKind::NotAFile => Ok(Self::Other),
            Err(issue) => Err(HookError::Unreadable(issue)),
        }
    }
}

/// Returns the content and the permission bits of what a link leads to.
pub(super) fn target(path: &Path) -> Option<(Vec<u8>, u32)> {
    let target = std::fs::canonicalize(path).ok()?;
    let content = read_bounded(&target, LARGEST).ok().flatten()?;
    let mode = std::fs::metadata(&target).ok()?.permissions().mode();
    Some((content, mode & 0o7777))
}
