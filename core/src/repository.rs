//! The place: which repository and work tree, and what git says of them.
use std::path::PathBuf;

/// A work tree and its git folders. All paths are real paths (links resolved).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The top of the work tree.
    pub root: PathBuf,
    /// The work tree's own git folder.
    pub git_dir: PathBuf,
    /// The git folder that all work trees share.
    pub common_dir: PathBuf,
}

impl Place {
    /// Returns the folder of our own records, `<common git dir>/takeup`.
    pub fn state(&self) -> PathBuf {
        self.common_dir.join("takeup")
    }
}
