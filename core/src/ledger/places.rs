//! Where the files of a ledger are, and how one is told from another that has its name.
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The files of a ledger.
#[derive(Clone, Debug)]
pub(super) struct Files {
    /// The folder.
    pub(super) folder: PathBuf,
    /// The lines since the snapshot.
    pub(super) journal: PathBuf,
    /// The snapshot.
    pub(super) snapshot: PathBuf,
    /// The lines between the snapshot before and the present one.
    pub(super) old_journal: PathBuf,
    /// The snapshot before.
    pub(super) old_snapshot: PathBuf,
    /// The note of the last acknowledged record.
    pub(super) acknowledged: PathBuf,
}

impl Files {
    pub(super) fn of(folder: &Path) -> Self {
        Self {
            folder: folder.to_path_buf(),
            journal: folder.join("journal.jsonl"),
            snapshot: folder.join("state.json"),
            old_journal: folder.join("journal.old.jsonl"),
            old_snapshot: folder.join("state.old.json"),
            acknowledged: folder.join("acknowledged"),
        }
    }
}

/// Which file it was, and how long: enough to tell whether it is still the one that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Mark {
    pub(super) fn of(data: &std::fs::Metadata) -> Self {
        Self {
            device: data.dev(),
            inode: data.ino(),
            changed: (data.mtime(), data.mtime_nsec()),
        }
    }

    /// Tells whether it is the same file, whatever was added to it.
    pub(super) const fn same_file(self, other: Self) -> bool {
        self.device == other.device && self.inode == other.inode
    }
}
