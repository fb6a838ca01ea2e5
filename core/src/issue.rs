//! Damage that was found while reading: reported by path and kind, never taken for an empty list (promise 4).
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One damaged or unreadable thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Issue {
    /// The file or folder it concerns.
    pub path: PathBuf,
    /// What kind of damage it is.
    pub kind: IssueKind,
    /// What was seen, in words; names line numbers where there are any.
    pub message: String,
}

impl Issue {
    /// Makes an issue.
    pub fn new(path: impl Into<PathBuf>, kind: IssueKind, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            kind,
            message: message.into(),
        }
    }

    /// Tells whether it says nothing of the content: that could not be looked at, and may be healthy.
    pub const fn is_closed(&self) -> bool {
        matches!(self.kind, IssueKind::Unreadable | IssueKind::ForeignOwner)
    }
}

/// Kinds of damage, with stable codes in JSON.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum IssueKind {
    /// The record ends in the middle.
    Torn,
    /// The record holds zero bytes where text should be.
    Zeroed,
    /// The record is not what its format says.
    Corrupt,
    /// The checksum of a record, or the link to the one before, does not hold.
    Checksum,
    /// The file cannot be read.
    Unreadable,
    /// Something else stands where a file should be.
    NotAFile,
    /// A link where none is followed.
    Symlink,
    /// The file is larger than is ever read.
    TooLarge,
    /// The file was written by a version this one does not know.
    UnknownVersion,
    /// The file or folder belongs to somebody else.
    ForeignOwner,
    /// A path inside the record leads out of its folder.
    UnsafePath,
    /// A record names something that is not there.
    Missing,
}
