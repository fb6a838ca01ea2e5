//! What the tree's content was (`docs/concepts.md`, The fingerprint).
//!
//! The content of a work tree is named by the id of the tree that `git add -A && git write-tree` would produce in a scratch
//! index: tracked and untracked files, not ignored ones, with git's filters, modes and links, without the runtime folders.
//! What no tree can hold makes a second part: dirt inside submodules, repositories without a commit, submodules that are not
//! checked out, and files in the folders of those. [`look`] finds it out without writing to the repository's index, objects or work tree.
//!
//! # Deviations from git
//!
//! * The flags skip-worktree and assume-unchanged hide nothing: a file that is there is looked at.
//! * An untracked repository without a commit, at which `git add -A` fails, is told in the second part.
//! * A submodule that is not checked out is told in the second part: git's tree is the same, and its files are not there.
//! * What git reports with a mere warning (a folder that cannot be read) makes the look incomplete.
//! * A clean filter that only the repository's own configuration names is not run, unless
//!   [`Options::repository_programs`] allows it; where such a filter would have to run, the look is incomplete.
//!
//! # Limitations
//!
//! * There is no snapshot of a folder: the record describes each file at some moment of the look. When the index moved
//!   meanwhile the look is taken again, three times at most, and is then incomplete.
//! * A file that is not there and is under skip-worktree counts as git's index has it, as outside a sparse checkout, whatever
//!   put the mark.
//! * Files in the folder of a submodule that is not checked out are read each time, ignored ones too, and at most 10,000.
//! * The file systems of macOS and Windows were not tried, nor any that ignores the case of names.
//!
//! # Example
//!
//! ```
//! use takeup_core::env::Env;
//! use takeup_core::fingerprint::{Options, look};
//! use takeup_core::repository::Place;
//!
//! let folder = tempfile::tempdir()?;
//! let root = folder.path().canonicalize()?;
//! let made = std::process::Command::new("git").arg("init").arg("-q").arg(&root).status()?;
//! assert!(made.success());
//! let git_dir = root.join(".git");
//! let place = Place { root, git_dir: git_dir.clone(), common_dir: git_dir };
//! let env = Env::of_process();
//! let look = look(&place, &Options::reading_only(&env))?;
//! // The tree without entries.
//! let fingerprint = look.record.fingerprint.expect("everything was seen");
//! assert_eq!(fingerprint.as_str(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod engine;
mod error;
mod facts;
mod git;
mod look;
mod loose;
mod nested;
mod options;
mod program;
mod reach;
mod record;
mod scan;

pub use error::FingerprintError;
pub use look::look;
pub use options::{Options, Progress, RUNTIME_FOLDERS};
pub use program::ALLOW_PROGRAMS;
pub use reach::Reach;
pub use record::{
    Counters, DEFINITION, Deviation, DeviationKind, Look, Method, Provenance, ProvenanceEvent,
    Submodule, TreeRecord,
};

/// The reason of a look whose repository kept changing.
const MOVING: &str = "the repository kept changing while it was looked at";
