//! The place: which repository and work tree, and what git says of them.
//!
//! Git is asked through one trait, [`Git`], with two implementations: libgit2 in process, and the `git` program for the
//! shapes libgit2 cannot open (partial clones, reftable and other extensions) and for ownership questions, which git
//! itself decides. One test suite runs over both.
//!
//! # Limitations
//!
//! - Commits and trees that a partial clone does not hold are never fetched: asking for them is
//!   [`RepositoryError::MissingObject`].
//! - `GIT_COMMON_DIR` and the object-store variables of the caller are not honoured.
//! - Where `GIT_DIR` is set without `GIT_WORK_TREE`, git takes the present folder for the top of the work tree. Here the
//!   work tree that belongs to the git folder is taken where the present folder lies inside it, so that a call from a
//!   subfolder does not name a part of the tree.
mod config;
mod environment;
mod folders;
mod git;
pub(crate) mod guard;
mod libgit2;
mod places;
mod plain;
mod program;
mod tokens;
mod whereabouts;

use std::path::{Path, PathBuf};

pub use self::config::{ConfigEntry, ConfigScope, config_key};
pub use self::environment::{
    LOCAL_VARIABLES, clean_environment, clean_git_environment, find_program, is_executable,
};
pub use self::folders::{Folders, is_there};
pub use self::git::{
    ChangedPath, CommitLine, Git, Head, LastMove, Listed, ObjectFormat, Operation, PathChange,
    Worktree, is_beside, last_move, last_moves, real_id, worktrees,
};
pub use self::libgit2::Libgit2;
pub use self::places::{KnownPlace, add_place, forget_gone_places, known_places};
pub use self::plain::{plain_head, plain_place};
pub use self::program::{GitProgram, GitVersion};
pub use self::tokens::{
    Tokens, create_tokens, forget_promise, new_tokens, place_record, promise_tokens,
    promised_tokens, put_tokens, tokens,
};
pub use self::whereabouts::{lock_reason, root_of, whereabouts};

use crate::env::Env;
use crate::error::{Exit, Explain};
use crate::files::FileError;
use crate::ids::Oid;
use crate::issue::{Issue, IssueKind};
use crate::verdict::Sharing;

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

    /// Tells whether the work tree is a linked one (`git worktree add`).
    pub fn is_linked(&self) -> bool {
        self.git_dir != self.common_dir
    }
}

/// The place cannot be used, or git could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// No repository here.
    #[error("{} is not inside a git repository", start.display())]
    NotARepository {
        /// Where the search began.
        start: PathBuf,
    },
    /// The folder of the call was deleted.
    #[error("the current folder is gone")]
    NoFolder,
    /// A repository without a work tree.
    #[error("{} is a bare repository: it has no work tree", path.display())]
    Bare {
        /// The git folder.
        path: PathBuf,
    },
    /// Git refuses to use a repository of another owner.
    #[error("{} belongs to another user, so git does not use it", path.display())]
    Unsafe {
        /// The folder to name in `safe.directory`.
        path: PathBuf,
    },
    /// Neither libgit2 nor the `git` program could open it.
    #[error("cannot open the repository at {}: {why}", path.display())]
    Unreadable {
        /// Where.
        path: PathBuf,
        /// What they said.
        why: String,
    },
    /// The `git` program is needed and was not found.
    #[error("the git program was not found on PATH, and is needed here: {why}")]
    NoGit {
        /// Why it is needed.
        why: String,
    },
    /// Git was asked and failed.
    #[error("git could not {what}: {message}")]
    Git {
        /// What was asked, as a verb phrase.
        what: &'static str,
        /// What it said, one line.
        message: String,
    },
    /// A commit or tree that is not in the object database.
    #[error("the object {id} is not in this repository")]
    MissingObject {
        /// Its id.
        id: Oid,
    },
    /// A token of the place is damaged.
    #[error("{}: {}", .0.path.display(), .0.message)]
    DamagedToken(Issue),
    /// Something that git would wait on, or never come to the end of, stands where git has a file.
    #[error("{}: {}", .0.path.display(), .0.message)]
    Odd(Issue),
    /// The place has no tokens: it was never initialised.
    #[error("takeup was never used in {}", root.display())]
    NotInitialised {
        /// The work tree.
        root: PathBuf,
    },
    /// The folder is no copy: it shares the git folder of another one, and so the records.
    #[error("{} shares its git folder with {}", root.display(), other.display())]
    SharedGitDir {
        /// This folder.
        root: PathBuf,
        /// The other work tree.
        other: PathBuf,
        /// Why.
        sharing: Sharing,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    File(#[from] FileError),
}

impl RepositoryError {
    /// Returns the folder of ours in which something cannot be read.
    pub(crate) fn ledger_of(issue: &Issue) -> PathBuf {
        let mut folders = issue.path.ancestors();
        let ours = folders.find(|path| path.file_name().is_some_and(|name| name == "takeup"));
        ours.unwrap_or(&issue.path).to_path_buf()
    }
}

impl Explain for RepositoryError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotARepository { .. } => "not-a-repository",
            Self::NoFolder => "no-current-folder",
            Self::Bare { .. } => "bare-repository",
            Self::Unsafe { .. } => "unsafe-repository",
            Self::Unreadable { .. } | Self::Odd(_) => "unreadable-repository",
            Self::NoGit { .. } => "git-missing",
            Self::Git { .. } => "git-failed",
            Self::MissingObject { .. } => "object-missing",
            Self::DamagedToken(_) => "token-damaged",
            Self::NotInitialised { .. } => "not-initialised",
            Self::SharedGitDir { .. } => "shared-git-folder",
            Self::File(error) => error.code(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NotARepository { .. } => {
                Some("go into a repository, or make one with: git init".to_owned())
            }
            Self::NoFolder => Some("go into a folder that is there".to_owned()),
            Self::Bare { path } if path.file_name().is_some_and(|name| name == ".git") => {
                let root = path.parent().unwrap_or(path);
                Some(format!(
                    "its setting core.bare says so; where there is a work tree around it: git -C {} config core.bare false",
                    crate::paths::shell_word(root)
                ))
            }
            Self::Bare { .. } => Some(
                "work in one of its work trees; `git worktree list` names them, `git worktree add` makes one"
                    .to_owned(),
            ),
            Self::Unsafe { path } => Some(format!(
                "if you trust it: git config --global --add safe.directory {}",
                crate::paths::shell_word(path)
            )),
            Self::Unreadable { path, .. } => Some(match git::broken_link(path) {
                Some((root, target)) => format!(
                    "{} names the git folder {}, which is not there: where the main repository was moved, run in it: git worktree \
                     repair {}; where git pruned the work tree: make it anew with git worktree add",
                    root.join(".git").display(),
                    target.display(),
                    crate::paths::shell_word(&root)
                ),
                None => "see what `git status` says there".to_owned(),
            }),
            Self::Odd(_) => Some(
                "look at what it is; while it stands there, git itself does not come to an end"
                    .to_owned(),
            ),
            Self::NoGit { .. } => Some("install git, or put it on PATH".to_owned()),
            Self::Git { .. } => None,
            Self::MissingObject { .. } => Some(
                "it was pruned, or left out by a shallow or partial clone; nothing is fetched for you"
                    .to_owned(),
            ),
            Self::DamagedToken(issue) if issue.kind == IssueKind::ForeignOwner => Some(format!(
                "run it as that user, or make the ledger yours: {}",
                crate::files::give(&Self::ledger_of(issue))
            )),
            Self::DamagedToken(issue) if issue.kind == IssueKind::Unreadable => Some(format!(
                "it may be healthy; make it readable for yourself: {}",
                crate::files::open_up(&issue.path)
            )),
            Self::DamagedToken(_) => Some("run: git takeup doctor".to_owned()),
            Self::NotInitialised { .. } => Some("run: git takeup init".to_owned()),
            Self::SharedGitDir { sharing, .. } => Some(
                match sharing {
                    Sharing::Link => "this is a copy of a folder whose `.git` is a file; make a work tree of its own with: git worktree add",
                    Sharing::Setting => "the setting core.worktree makes this folder the work tree; where it is that for good: git takeup init --moved",
                    Sharing::Environment => "GIT_DIR and GIT_WORK_TREE make this folder the work tree; where it is that for good: git takeup init --moved",
                    Sharing::Named => "a setting or the environment made the other one the work tree; to tie what was left there to this folder: git takeup init --moved",
                }
                .to_owned(),
            ),
            Self::File(error) => error.hint(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::File(error) => error.exit(),
            Self::NotARepository { .. }
            | Self::Bare { .. }
            | Self::Unsafe { .. }
            | Self::Unreadable { .. }
            | Self::NoGit { .. }
            | Self::Git { .. }
            | Self::MissingObject { .. }
            | Self::DamagedToken(_)
            | Self::Odd(_)
            | Self::NotInitialised { .. }
            | Self::NoFolder
            | Self::SharedGitDir { .. } => Exit::No,
        }
    }
}

/// An open repository: its place, and git to ask about it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use takeup_core::{env::Env, repository::Repository};
/// let folder = tempfile::tempdir()?;
/// git2::Repository::init(folder.path())?;
/// let env = Env::of([("HOME", folder.path())], folder.path());
/// let repository = Repository::discover(&env, folder.path())?;
/// assert_eq!(repository.place().root, std::fs::canonicalize(folder.path())?);
/// assert_eq!(repository.git().head()?.commit, None);
/// # Ok(())
/// # }
/// ```
pub struct Repository {
    place: Place,
    backend: Backend,
    program: Option<GitProgram>,
}

enum Backend {
    Libgit2(Libgit2),
    Program { git: GitProgram, why: String },
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repository")
            .field("place", &self.place)
            .field("fallback", &self.fallback())
            .finish_non_exhaustive()
    }
}

impl Repository {
    /// Finds the repository that `start` lies in and opens it. See [`discover`].
    pub fn discover(env: &Env, start: &Path) -> Result<Self, RepositoryError> {
        let program = GitProgram::find(env);
        let folder = libgit2::real_start(start)?;
        guard::around(program::named_git_dir(env, &folder).as_deref(), &folder)
            .map_err(RepositoryError::Odd)?;
        match Libgit2::discover(env, start) {
            Ok(git) => Ok(Self {
                place: git.place().clone(),
                program: program.map(|program| program.at(git.place())),
                backend: Backend::Libgit2(git),
            }),
            Err(
                error @ (RepositoryError::NotARepository { .. } | RepositoryError::Bare { .. }),
            ) => Err(error),
            Err(error) => {
                // What libgit2 cannot open, git decides: it knows more extensions, and its rules of ownership count.
                let why = if let RepositoryError::Unreadable { why, .. } = &error {
                    Some(why.clone())
                } else {
                    None
                };
                let Some(program) = program else {
                    return Err(why.map_or(error, |why| RepositoryError::NoGit { why }));
                };
                let why = why.unwrap_or_else(|| error.to_string());
                let git = program.discover(env, start)?;
                let place = git.place()?.clone();
                Ok(Self {
                    place,
                    program: Some(git.clone()),
                    backend: Backend::Program { git, why },
                })
            }
        }
    }

    /// Opens the repository of a place that was discovered before.
    pub fn open(env: &Env, place: &Place) -> Result<Self, RepositoryError> {
        guard::both(&place.git_dir, &place.common_dir).map_err(RepositoryError::Odd)?;
        let program = GitProgram::find(env).map(|program| program.at(place));
        match Libgit2::open(env, place) {
            Ok(git) => Ok(Self {
                place: place.clone(),
                program,
                backend: Backend::Libgit2(git),
            }),
            Err(error) => {
                let why = error.to_string();
                let git = program.ok_or(error)?;
                Ok(Self {
                    place: place.clone(),
                    program: Some(git.clone()),
                    backend: Backend::Program { git, why },
                })
            }
        }
    }

    /// Returns the place.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Returns git.
    pub fn git(&self) -> &dyn Git {
        match &self.backend {
            Backend::Libgit2(git) => git,
            Backend::Program { git, .. } => git,
        }
    }

    /// Returns the libgit2 handle, where libgit2 can open the repository.
    pub const fn libgit2(&self) -> Option<&git2::Repository> {
        match &self.backend {
            Backend::Libgit2(git) => Some(git.repository()),
            Backend::Program { .. } => None,
        }
    }

    /// Returns the `git` program for this place; fails where there is none on PATH. `why` says what it is needed for.
    pub fn program(&self, why: &str) -> Result<&GitProgram, RepositoryError> {
        self.program.as_ref().ok_or_else(|| RepositoryError::NoGit {
            why: why.to_owned(),
        })
    }

    /// Tells whether git ignores a path, relative to the top of the work tree: what git tracks is not ignored. The path need not
    /// be there. Asks the `git` program.
    pub fn ignores(&self, path: &Path) -> Result<bool, RepositoryError> {
        self.program("to tell what is ignored")?
            .ignores(&self.place.root.join(path))
    }

    /// Returns why the `git` program is used instead of libgit2; `None` where libgit2 is used.
    pub fn fallback(&self) -> Option<&str> {
        match &self.backend {
            Backend::Libgit2(_) => None,
            Backend::Program { why, .. } => Some(why),
        }
    }
}

/// Finds the work tree that `start` lies in.
///
/// `GIT_DIR` and `GIT_WORK_TREE` are honoured when `start` is the folder of the call, as inside a git hook;
/// `GIT_CEILING_DIRECTORIES` always. A `.git` folder that git would not take for a repository is passed by, as git does.
/// Fails for a folder outside any repository, a bare repository (a work tree of one is fine), and a repository of
/// another owner that `safe.directory` does not name.
pub fn discover(env: &Env, start: &Path) -> Result<Place, RepositoryError> {
    Repository::discover(env, start).map(|repository| repository.place)
}

#[cfg(test)]
mod tests;
