//! Git through libgit2, in process.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{ConfigLevel, Delta, ErrorCode, RepositoryOpenFlags};

use super::config::{ConfigEntry, ConfigScope, config_key, of_environment};
use super::git::{
    ChangedPath, CommitLine, Git, Head, Listed, ObjectFormat, Operation, PathChange, git_dir_of,
    one_line, operation_by_marks,
};
use super::program::GitProgram;
use super::{Place, RepositoryError};
use crate::env::Env;
use crate::files::FileError;
use crate::ids::Oid;
use crate::paths::text_of_bytes;
use crate::time::Time;

/// Git through libgit2.
pub struct Libgit2 {
    repository: git2::Repository,
    place: Place,
    of_call: Vec<ConfigEntry>,
    home: Option<PathBuf>,
    /// Asked for settings where the environment names other files than libgit2 reads.
    settings: Option<GitProgram>,
}

impl std::fmt::Debug for Libgit2 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Libgit2")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl Libgit2 {
    /// Finds the repository that `start` lies in, as [`super::discover`] says.
    pub fn discover(env: &Env, start: &Path) -> Result<Self, RepositoryError> {
        let start = real_start(start)?;
        let named = super::program::named_git_dir(env, &start);
        let repository = match &named {
            Some(git_dir) => git2::Repository::open_ext(
                git_dir,
                RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT,
                [] as [&OsStr; 0],
            )
            .map_err(|error| unreadable(git_dir, &error))?,
            None => {
                git2::Repository::open_ext(&start, search(env), ceilings(env)).map_err(|error| {
                    let absent = error.code() == ErrorCode::NotFound
                        && error.class() == git2::ErrorClass::Repository;
                    if absent {
                        RepositoryError::NotARepository {
                            start: start.clone(),
                        }
                    } else {
                        unreadable(&start, &error)
                    }
                })?
            }
        };
        let natural = repository.workdir().map(Path::to_path_buf);
        let root = match (&named, super::program::named_work_tree(env, &start)) {
            (_, Some(tree)) => tree,
            (Some(_), None) if !repository.is_bare() => natural
                .filter(|top| super::program::contains(top, &start))
                .unwrap_or_else(|| start.clone()),
            _ => {
                let top = natural.ok_or_else(|| RepositoryError::Bare {
                    path: repository.path().to_path_buf(),
                })?;
                // libgit2 takes the work tree that a linked git folder names; in a copy of it git takes the copy.
                copied_top(&repository, &top, &start).unwrap_or(top)
            }
        };
        let place = Place {
            root: real(&root)?,
            git_dir: real(repository.path())?,
            common_dir: real(repository.commondir())?,
        };
        Self::at(env, repository, place)
    }

    /// Opens the repository of a place that was discovered before.
    pub fn open(env: &Env, place: &Place) -> Result<Self, RepositoryError> {
        let repository = git2::Repository::open_ext(
            &place.git_dir,
            RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT,
            [] as [&OsStr; 0],
        )
        .map_err(|error| unreadable(&place.git_dir, &error))?;
        Self::at(env, repository, place.clone())
    }

    fn at(env: &Env, repository: git2::Repository, place: Place) -> Result<Self, RepositoryError> {
        let other = repository
            .workdir()
            .and_then(|top| std::fs::canonicalize(top).ok())
            .is_none_or(|top| top != place.root);
        if other {
            repository
                .set_workdir(&place.root, false)
                .map_err(|error| unreadable(&place.root, &error))?;
        }
        let elsewhere = [
            "GIT_CONFIG_GLOBAL",
            "GIT_CONFIG_SYSTEM",
            "GIT_CONFIG_NOSYSTEM",
        ]
        .iter()
        .any(|name| env.var(name).is_some());
        Ok(Self {
            settings: elsewhere
                .then(|| GitProgram::find(env).map(|program| program.at(&place)))
                .flatten(),
            repository,
            place,
            of_call: of_environment(env),
            home: env.home(),
        })
    }

    /// Returns the place.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the libgit2 handle.
    pub const fn repository(&self) -> &git2::Repository {
        &self.repository
    }

    fn id(&self, id: &Oid) -> Result<git2::Oid, RepositoryError> {
        git2::Oid::from_str_ext(id.as_str(), self.repository.object_format())
            .map_err(|_| RepositoryError::MissingObject { id: id.clone() })
    }

    fn tree(&self, id: Option<&Oid>) -> Result<Option<git2::Tree<'_>>, RepositoryError> {
        let Some(id) = id else {
            return Ok(None);
        };
        self.repository
            .find_object(self.id(id)?, None)
            .and_then(|object| object.peel_to_tree())
            .map(Some)
            .map_err(|error| missing(id, "read a tree", &error))
    }
}

impl Git for Libgit2 {
    fn head(&self) -> Result<Head, RepositoryError> {
        let ask = |error: &git2::Error| failed("read HEAD", error);
        if let Some(name) = linked_head(&self.place.git_dir) {
            let commit = match self.repository.refname_to_id(&name) {
                Ok(id) => Some(own(id)?),
                Err(error) if error.code() == ErrorCode::NotFound => None,
                Err(error) => return Err(ask(&error)),
            };
            let branch = Some(short_branch(name.as_bytes()));
            return Ok(Head { commit, branch });
        }
        let head = self
            .repository
            .find_reference("HEAD")
            .map_err(|error| ask(&error))?;
        let branch = head.symbolic_target_bytes().map(short_branch);
        let commit = match self.repository.head() {
            Ok(reference) => {
                let id = reference.target().ok_or_else(|| RepositoryError::Git {
                    what: "read HEAD",
                    message: "it names no commit".to_owned(),
                })?;
                Some(own(id)?)
            }
            Err(error) if error.code() == ErrorCode::UnbornBranch => None,
            Err(error) => return Err(ask(&error)),
        };
        Ok(Head { commit, branch })
    }

    fn operation(&self) -> Result<Option<Operation>, RepositoryError> {
        operation_by_marks(&self.place.git_dir, |name| {
            match self.repository.refname_to_id(name) {
                Ok(_) => Ok(true),
                Err(error) if error.code() == ErrorCode::NotFound => Ok(false),
                Err(error) => Err(failed("read the operation in progress", &error)),
            }
        })
    }

    fn stash_tip(&self) -> Result<Option<Oid>, RepositoryError> {
        match self.repository.refname_to_id("refs/stash") {
            Ok(id) => own(id).map(Some),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(failed("read the stash", &error)),
        }
    }

    fn hooks_dir(&self) -> Result<PathBuf, RepositoryError> {
        let Some(entry) = self.config("core.hooksPath")? else {
            return Ok(self.place.common_dir.join("hooks"));
        };
        let value = crate::paths::path_of_text(&entry.value).unwrap_or_default();
        let bytes = value.as_os_str().as_bytes();
        if let Some(rest) = bytes.strip_prefix(b"~/")
            && let Some(home) = &self.home
        {
            return Ok(home.join(OsStr::from_bytes(rest)));
        }
        Ok(self.place.root.join(value))
    }

    fn config_entries(&self) -> Result<Vec<ConfigEntry>, RepositoryError> {
        if let Some(program) = &self.settings {
            return program.config_entries();
        }
        let ask = |error: git2::Error| failed("read its settings", &error);
        let mut config = self.repository.config().map_err(ask)?;
        let config = config.snapshot().map_err(ask)?;
        let mut found = Vec::new();
        config
            .entries(None)
            .map_err(ask)?
            .for_each(|entry| {
                found.push(ConfigEntry {
                    key: config_key(&text_of_bytes(entry.name_bytes())),
                    value: if entry.has_value() {
                        text_of_bytes(entry.value_bytes())
                    } else {
                        "true".to_owned()
                    },
                    scope: scope(entry.level()),
                });
            })
            .map_err(ask)?;
        found.extend_from_slice(&self.of_call);
        Ok(found)
    }

    fn object_format(&self) -> Result<ObjectFormat, RepositoryError> {
        Ok(match self.repository.object_format() {
            git2::ObjectFormat::Sha1 => ObjectFormat::Sha1,
            git2::ObjectFormat::Sha256 => ObjectFormat::Sha256,
        })
    }

    fn commits_between(
        &self,
        old: Option<&Oid>,
        new: &Oid,
        limit: usize,
    ) -> Result<Listed<CommitLine>, RepositoryError> {
        let what = "list commits";
        let ask = |error: git2::Error| failed(what, &error);
        let mut walk = self.repository.revwalk().map_err(ask)?;
        walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::TIME)
            .map_err(ask)?;
        walk.push(self.id(new)?)
            .map_err(|error| missing(new, what, &error))?;
        if let Some(old) = old {
            walk.hide(self.id(old)?)
                .map_err(|error| missing(old, what, &error))?;
        }
        let mut items = Vec::new();
        for id in walk {
            let id = id.map_err(ask)?;
            if items.len() == limit {
                return Ok(Listed { items, more: true });
            }
            let commit = self.repository.find_commit(id).map_err(ask)?;
            let author = commit.author();
            items.push(CommitLine {
                id: own(id)?,
                subject: one_line(commit.summary_bytes().unwrap_or_default()),
                author: one_line(author.name_bytes()),
                authored_at: Time::from_millis(author.when().seconds().saturating_mul(1000)),
            });
        }
        Ok(Listed { items, more: false })
    }

    fn changed_paths(
        &self,
        old: Option<&Oid>,
        new: Option<&Oid>,
        limit: usize,
    ) -> Result<Listed<ChangedPath>, RepositoryError> {
        let (old, new) = (self.tree(old)?, self.tree(new)?);
        let mut options = git2::DiffOptions::new();
        options.include_typechange(true);
        let diff = self
            .repository
            .diff_tree_to_tree(old.as_ref(), new.as_ref(), Some(&mut options))
            .map_err(|error| failed("compare two trees", &error))?;
        let mut changed: Vec<(&[u8], git2::DiffDelta<'_>)> = Vec::new();
        for delta in diff.deltas() {
            let side = if delta.status() == Delta::Deleted {
                delta.old_file()
            } else {
                delta.new_file()
            };
            changed.push((side.path_bytes().unwrap_or_default(), delta));
        }
        changed.sort_by_key(|(path, _)| *path);
        let mut items = Vec::new();
        for (path, delta) in &changed {
            if items.len() == limit {
                return Ok(Listed { items, more: true });
            }
            let change = match delta.status() {
                Delta::Added => PathChange::Added,
                Delta::Deleted => PathChange::Deleted,
                Delta::Unmodified
                | Delta::Modified
                | Delta::Renamed
                | Delta::Copied
                | Delta::Ignored
                | Delta::Untracked
                | Delta::Typechange
                | Delta::Unreadable
                | Delta::Conflicted => PathChange::Modified,
            };
            let there = change != PathChange::Deleted;
            let file = delta.new_file();
            items.push(ChangedPath {
                path: text_of_bytes(path),
                change,
                mode: there.then(|| format!("{:06o}", u32::from(file.mode()))),
                oid: if there { Some(own(file.id())?) } else { None },
            });
        }
        Ok(Listed { items, more: false })
    }
}

/// Returns the short name of a branch; a HEAD that names something else keeps the whole name.
/// Returns the reference that HEAD names by being a link, as old versions of git made it (gitrepository-layout(5)): libgit2
/// reads through it, and finds a commit and no branch.
fn linked_head(git_dir: &Path) -> Option<String> {
    let target = std::fs::read_link(git_dir.join("HEAD")).ok()?;
    let name = target.to_str()?;
    (name.starts_with("refs/") && git2::Reference::is_valid_name(name)).then(|| name.to_owned())
}

pub(super) fn short_branch(name: &[u8]) -> String {
    text_of_bytes(name.strip_prefix(b"refs/heads/").unwrap_or(name))
}

fn own(id: git2::Oid) -> Result<Oid, RepositoryError> {
    Oid::new(id.to_string()).map_err(|error| RepositoryError::Git {
        what: "name an object",
        message: error.to_string(),
    })
}

pub(super) fn real(path: &Path) -> Result<PathBuf, RepositoryError> {
    std::fs::canonicalize(path)
        .map_err(|source| FileError::new("cannot resolve", path, source).into())
}

/// Resolves the folder a search begins in; one that is gone lies in no repository.
pub(super) fn real_start(start: &Path) -> Result<PathBuf, RepositoryError> {
    if start.as_os_str().is_empty() {
        return Err(RepositoryError::NoFolder);
    }
    std::fs::canonicalize(start).map_err(|source| {
        // Below a file there is no folder either.
        if matches!(
            source.kind(),
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
        ) {
            RepositoryError::NotARepository {
                start: start.to_path_buf(),
            }
        } else {
            FileError::new("cannot resolve", start, source).into()
        }
    })
}

fn copied_top(repository: &git2::Repository, named: &Path, start: &Path) -> Option<PathBuf> {
    if !repository.is_worktree() || super::program::contains(named, start) {
        return None;
    }
    let git_dir = std::fs::canonicalize(repository.path()).ok();
    start
        .ancestors()
        .find(|folder| git_dir.is_some() && git_dir_of(folder) == git_dir)
        .map(Path::to_path_buf)
}

fn search(env: &Env) -> RepositoryOpenFlags {
    let across = env
        .text("GIT_DISCOVERY_ACROSS_FILESYSTEM")
        .is_some_and(|value| matches!(value, "1" | "true" | "yes" | "on"));
    if across {
        RepositoryOpenFlags::CROSS_FS
    } else {
        RepositoryOpenFlags::empty()
    }
}

fn ceilings(env: &Env) -> Vec<PathBuf> {
    let Some(value) = env.var("GIT_CEILING_DIRECTORIES") else {
        return Vec::new();
    };
    std::env::split_paths(value)
        .filter(|path| path.is_absolute())
        .map(|path| std::fs::canonicalize(&path).unwrap_or(path))
        .collect()
}

fn scope(level: ConfigLevel) -> ConfigScope {
    match level {
        ConfigLevel::ProgramData | ConfigLevel::System => ConfigScope::System,
        ConfigLevel::XDG | ConfigLevel::Global => ConfigScope::Global,
        ConfigLevel::Worktree => ConfigScope::Worktree,
        ConfigLevel::App | ConfigLevel::Highest => ConfigScope::Command,
        ConfigLevel::Local => ConfigScope::Local,
    }
}

fn unreadable(path: &Path, error: &git2::Error) -> RepositoryError {
    if error.code() == ErrorCode::Owner {
        return RepositoryError::Unsafe {
            path: path.to_path_buf(),
        };
    }
    RepositoryError::Unreadable {
        path: path.to_path_buf(),
        why: one_line(error.message().as_bytes()),
    }
}

fn failed(what: &'static str, error: &git2::Error) -> RepositoryError {
    RepositoryError::Git {
        what,
        message: one_line(error.message().as_bytes()),
    }
}

fn missing(id: &Oid, what: &'static str, error: &git2::Error) -> RepositoryError {
    if error.code() == ErrorCode::NotFound {
        RepositoryError::MissingObject { id: id.clone() }
    } else {
        failed(what, error)
    }
}
