//! The one way in which files are read from strangers' folders, and the one way in which files are written.
mod own;

use std::fs::{File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::error::{Exit, Explain};
use crate::fault;
use crate::issue::{Issue, IssueKind};

pub use own::{own, read_own};

/// A file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{what} {}: {source}", path.display())]
pub struct FileError {
    /// What was tried, such as `cannot read`.
    pub what: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why it failed.
    pub source: io::Error,
}

impl FileError {
    /// Makes an error.
    pub fn new(what: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self {
            what,
            path: path.to_path_buf(),
            source: source.into(),
        }
    }
}

impl Explain for FileError {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the kinds of the standard library grow"
    )]
    fn code(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::NotFound => "file-missing",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "file-permission"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "disk-full",
            _ => "file-error",
        }
    }

    fn hint(&self) -> Option<String> {
        match self.code() {
            _ if self.source.kind() == io::ErrorKind::ReadOnlyFilesystem => Some(
                "the file system is mounted read-only: looking works, recording does not"
                    .to_owned(),
            ),
            "file-permission" => Some(match foreign_owner(&self.path) {
                Some((path, owner)) => format!("{} belongs to {owner}", path.display()),
                None => "check who owns the file and its permissions".to_owned(),
            }),
            "disk-full" => Some("free some space and try again; nothing was changed".to_owned()),
            _ => None,
        }
    }

    fn exit(&self) -> Exit {
        Exit::No
    }
}

/// Reads a regular file of at most `limit` bytes, without following a link at its last part and without waiting on a
/// pipe. Returns `Ok(None)` where there is no file, and an [`Issue`] where something else is wrong.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Issue> {
    match open_regular(path)? {
        Some(file) => read_open(&file, path, limit).map(Some),
        None => Ok(None),
    }
}

/// As [`read_bounded`], of a path below `root`, and without following a link at any part of it: `Ok(None)` where a link stands
/// in the way, since then nothing of this tree is there.
pub fn read_beneath(root: &Path, relative: &Path, limit: u64) -> Result<Option<Vec<u8>>, Issue> {
    let path = root.join(relative);
    let unreadable = |error: rustix::io::Errno| {
        Issue::new(
            &path,
            IssueKind::Unreadable,
            io::Error::from(error).to_string(),
        )
    };
    let folder = rustix::fs::open(
        root,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(unreadable)?;
    let open = |flags| {
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat2(&folder, relative, flags, Mode::empty(), resolve)
    };
    match open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY) {
        Ok(handle) => {
            let file = File::from(handle);
            regular(&file, &path)?;
            read_open(&file, &path, limit).map(Some)
        }
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
        // Without reading, the last part may be a link (openat2(2), RESOLVE_NO_SYMLINKS).
        Err(rustix::io::Errno::LOOP) => match open(OFlags::PATH) {
            Ok(_) => Err(link(&path)),
            Err(_) => Ok(None),
        },
        Err(error) => Err(unreadable(error)),
    }
}

fn read_open(file: &File, path: &Path, limit: u64) -> Result<Vec<u8>, Issue> {
    let unreadable = |error: io::Error| Issue::new(path, IssueKind::Unreadable, error.to_string());
    let size = file.metadata().map_err(unreadable)?.size();
    if size > limit {
        return Err(Issue::new(
            path,
            IssueKind::TooLarge,
            format!("{size} bytes are more than the {limit} that are read"),
        ));
    }
    // One byte more than there should be, so that its end is seen without another buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(size.saturating_add(1)).unwrap_or(0));
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(Issue::new(
            path,
            IssueKind::TooLarge,
            format!("it grew beyond {limit} bytes while it was read"),
        ));
    }
    Ok(bytes)
}

fn link(path: &Path) -> Issue {
    Issue::new(
        path,
        IssueKind::Symlink,
        "a link stands here; it is not followed",
    )
}

/// Says of one of our own files that could not be read whose it is, where that is why: the file, or its folder, belongs to
/// another user.
pub fn foreign(issue: Issue) -> Issue {
    if issue.kind != IssueKind::Unreadable {
        return issue;
    }
    match foreign_owner(&issue.path) {
        Some((path, owner)) => Issue::new(
            path,
            IssueKind::ForeignOwner,
            format!("it belongs to {owner}: {}", issue.message),
        ),
        None => issue,
    }
}

/// Finds out whether a file or its folder belongs to another user, and to whom.
fn foreign_owner(path: &Path) -> Option<(&Path, String)> {
    let own = rustix::process::geteuid().as_raw();
    let paths = [Some(path), path.parent()];
    paths.into_iter().flatten().find_map(|path| {
        let owner = std::fs::symlink_metadata(path).ok()?.uid();
        (owner != own).then(|| (path, user(owner)))
    })
}

/// Names a user that is not this one.
pub(crate) fn user(uid: u32) -> String {
    if uid == 0 {
        "root".to_owned()
    } else {
        format!("another user (uid {uid})")
    }
}

/// Tells whether a path is a folder of this user's, and no link to one.
pub fn is_own_folder(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir() && meta.uid() == own)
}

/// The command that gives a file or folder of ours to this user.
pub fn give(path: &Path) -> String {
    format!(
        "sudo chown -R {} {}",
        rustix::process::geteuid().as_raw(),
        crate::paths::shell_word(path)
    )
}

/// The command that lets this user read a file of ours: it opens the file, or the folder that hides it.
pub fn open_up(path: &Path) -> String {
    let hidden = std::fs::symlink_metadata(path)
        .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    let word = crate::paths::shell_word;
    match path.parent().filter(|_| hidden) {
        Some(folder) => format!("chmod u+rwx {}", word(folder)),
        None => format!("chmod u+rw {}", word(path)),
    }
}

/// Opens a regular file for reading, without following a link at its last part and without waiting on a pipe.
/// Returns `Ok(None)` where there is no file.
pub fn open_regular(path: &Path) -> Result<Option<File>, Issue> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(handle) => File::from(handle),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(rustix::io::Errno::LOOP) => {
            return Err(link(path));
        }
        Err(error) => {
            return Err(Issue::new(
                path,
                IssueKind::Unreadable,
                io::Error::from(error).to_string(),
            ));
        }
    };
    regular(&file, path)?;
    Ok(Some(file))
}

fn regular(file: &File, path: &Path) -> Result<(), Issue> {
    let kind = file
        .metadata()
        .map_err(|error| Issue::new(path, IssueKind::Unreadable, error.to_string()))?;
    if kind.is_file() {
        return Ok(());
    }
    Err(Issue::new(
        path,
        IssueKind::NotAFile,
        "something else than a regular file stands here",
    ))
}

/// Writes a file so that at any moment either the old or the new content is there: temporary file in the same folder,
/// flush, rename, flush of the folder. The folder must exist. `mode` is given to the new file. What killed writers left in
/// the folder goes.
pub fn write_atomic(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    sweep(folder_of(path));
    Staged::write(path, bytes, mode)?.put()
}

/// A file that is written and flushed under a temporary name, and not yet in its place. Dropped, it is gone.
#[derive(Debug)]
#[must_use = "the file is not in its place before `put`"]
pub struct Staged {
    temporary: tempfile::NamedTempFile,
    path: PathBuf,
}

impl Staged {
    /// How the names of temporary files begin. One that is left was left by a process that was killed; see [`sweep`].
    pub const PREFIX: &'static str = ".takeup-tmp-";

    /// Writes and flushes the content for `path` beside it. `mode` is given to the new file.
    pub fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<Self, FileError> {
        let staged = Self::unflushed(path, bytes, mode, "file-create", "file-write")?;
        fault::around("file-flush", || staged.temporary.as_file().sync_all())
            .map_err(|source| FileError::new("cannot write", path, source))?;
        Ok(staged)
    }

    fn unflushed(
        path: &Path,
        bytes: &[u8],
        mode: u32,
        create: &'static str,
        write: &'static str,
    ) -> Result<Self, FileError> {
        let fail = |source: io::Error| FileError::new("cannot write", path, source);
        let mut temporary =
            fault::around(create, || temporary_in(folder_of(path))).map_err(fail)?;
        fault::write_all(write, &mut temporary, bytes).map_err(fail)?;
        temporary
            .as_file()
            .set_permissions(Permissions::from_mode(mode))
            .map_err(fail)?;
        Ok(Self {
            temporary,
            path: path.to_path_buf(),
        })
    }

    /// Puts the file into its place and makes that durable.
    pub fn put(self) -> Result<(), FileError> {
        let folder = folder_of(&self.path).to_path_buf();
        self.put_unflushed()?;
        sync_folder(&folder)
    }

    /// As [`Self::put`], unless something is there already: then it stays, and the answer is `false`.
    pub fn put_new(self) -> Result<bool, FileError> {
        let Self { temporary, path } = self;
        let put = fault::around("file-link", || {
            temporary
                .persist_noclobber(&path)
                .map_err(|error| error.error)
        });
        match put {
            Ok(_) => sync_folder(folder_of(&path)).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(FileError::new("cannot write", &path, error)),
        }
    }

    /// Gives the file the name it is meant for as a second one, unless something is there. Until this is dropped, the second
    /// name can be told from others by [`is_left`], should the writer be killed.
    pub fn link(&self) -> io::Result<()> {
        fault::around("file-link", || {
            std::fs::hard_link(self.temporary.path(), &self.path)
        })
    }

    /// Puts the file into its place. Where many go into one folder, one [`sync_folder`] makes all of them durable.
    pub fn put_unflushed(self) -> Result<(), FileError> {
        self.rename("file-rename")
    }

    fn rename(self, point: &'static str) -> Result<(), FileError> {
        let Self { temporary, path } = self;
        fault::around(point, || {
            temporary.persist(&path).map_err(|error| error.error)
        })
        .map(drop)
        .map_err(|source| FileError::new("cannot write", &path, source))
    }
}

/// Makes an empty temporary file that its writer holds locked, so that [`sweep`] can tell it from one that was left.
fn temporary_in(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    loop {
        let temporary = tempfile::Builder::new()
            .prefix(Staged::PREFIX)
            .tempfile_in(folder)?;
        match temporary.as_file().lock() {
            // Not every file system knows locks; where there are none, nothing is swept.
            Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        // A sweep between making it and locking it took it away.
        if temporary.as_file().metadata()?.nlink() > 0 {
            return Ok(temporary);
        }
    }
}

/// Removes what killed writers left in a folder: temporary files of ours that nobody holds. What cannot be removed stays
/// for the next sweep.
pub fn sweep(folder: &Path) {
    for (path, _held) in left_in(folder) {
        drop(std::fs::remove_file(&path));
    }
}

/// Returns the temporary files of ours in a folder that no writer holds, each held by the handle that is returned with it.
fn left_in(folder: &Path) -> impl Iterator<Item = (PathBuf, File)> {
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            name.as_encoded_bytes()
                .starts_with(Staged::PREFIX.as_bytes())
        })
        .filter_map(|entry| {
            let path = entry.path();
            let file = open_regular(&path).ok()??;
            file.try_lock().is_ok().then_some((path, file))
        })
}

/// Tells whether a file has a second name that [`sweep`] would remove: a killed writer gave it its first with
/// [`Staged::link`].
pub fn is_left(path: &Path) -> bool {
    let Ok(meta) = std::fs::symlink_metadata(path) else {
        return false;
    };
    meta.is_file()
        && meta.nlink() > 1
        && left_in(folder_of(path)).any(|(_, file)| {
            file.metadata()
                .is_ok_and(|left| (left.dev(), left.ino()) == (meta.dev(), meta.ino()))
        })
}

/// Writes a file so that a reader finds either the old or the new content, without the flushes of [`write_atomic`]: for
/// what may be lost with the power, such as how far a running task is.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    Staged::unflushed(path, bytes, mode, "replace-create", "replace-write")?
        .rename("replace-rename")
}

/// Removes a file; one that is not there is removed.
pub fn remove(path: &Path) -> Result<(), FileError> {
    match fault::around("file-remove", || std::fs::remove_file(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FileError::new("cannot remove", path, error))
        }
        _ => Ok(()),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."))
}

/// Gives a file another name in the same folder, replacing what is there, and makes that durable.
pub fn rename(from: &Path, to: &Path) -> Result<(), FileError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place; the folder is flushed below"
    )]
    fault::around("file-move", || std::fs::rename(from, to))
        .map_err(|source| FileError::new("cannot rename", from, source))?;
    sync_folder(folder_of(to))
}

/// Makes the entries of a folder durable.
pub fn sync_folder(folder: &Path) -> Result<(), FileError> {
    fault::around("folder-flush", || {
        File::open(folder).and_then(|handle| handle.sync_all())
    })
    .map_err(|source| FileError::new("cannot flush", folder, source))
}

/// Makes a folder and its parents, the new ones with mode 0700.
pub fn make_private_folder(folder: &Path) -> Result<(), FileError> {
    use std::os::unix::fs::DirBuilderExt as _;
    fault::around("folder-make", || {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
    })
    .map_err(|source| FileError::new("cannot make the folder", folder, source))
}

/// Tells git to leave a folder of ours alone, for repositories that reach around it (a home that is a repository): without
/// this, what we write there would be content of that tree.
pub fn keep_out_of_git(folder: &Path) -> Result<(), FileError> {
    let file = folder.join(".gitignore");
    if std::fs::symlink_metadata(&file).is_ok() {
        return Ok(());
    }
    write_atomic(&file, b"*\n", 0o600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_file_system_is_no_question_of_owners() {
        let error =
            |kind: io::ErrorKind| FileError::new("cannot write", Path::new("/proc/self/x"), kind);
        let said = error(io::ErrorKind::ReadOnlyFilesystem).hint().unwrap();
        assert!(said.contains("read-only"), "{said}");
        let said = error(io::ErrorKind::PermissionDenied).hint().unwrap();
        assert!(said.contains("owns"), "{said}");
    }

    #[test]
    fn reading_follows_no_link_and_waits_on_no_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        write_atomic(&file, b"content", 0o600).unwrap();
        assert_eq!(read_bounded(&file, 7).unwrap().unwrap(), b"content");
        assert_eq!(
            read_bounded(&file, 6).unwrap_err().kind,
            IssueKind::TooLarge
        );
        assert_eq!(read_bounded(&folder.path().join("none"), 6).unwrap(), None);
        assert_eq!(
            read_bounded(folder.path(), 6).unwrap_err().kind,
            IssueKind::NotAFile
        );
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read_bounded(&link, 7).unwrap_err().kind, IssueKind::Symlink);
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .unwrap();
        assert_eq!(
            read_bounded(&pipe, 7).unwrap_err().kind,
            IssueKind::NotAFile
        );
    }

    #[test]
    fn writing_leaves_no_temporary_file_and_gives_the_mode() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        write_atomic(&file, b"one", 0o600).unwrap();
        write_atomic(&file, b"two", 0o640).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"two");
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_there_stays_where_a_new_file_was_meant() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let put = |bytes: &[u8]| Staged::write(&file, bytes, 0o600).unwrap().put_new();
        assert!(put(b"one").unwrap());
        assert!(!put(b"two").unwrap());
        assert_eq!(std::fs::read(&file).unwrap(), b"one");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "what was left is written half")]
    fn a_sweep_takes_what_was_left_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at(".takeup-tmp-left"), "half").unwrap();
        std::fs::write(at("of-somebody"), "whole").unwrap();
        std::os::unix::fs::symlink(at("of-somebody"), at(".takeup-tmp-link")).unwrap();
        let held = Staged::write(&at("file"), b"x", 0o600).unwrap();
        sweep(folder.path());
        assert!(!at(".takeup-tmp-left").exists());
        assert!(at("of-somebody").exists());
        assert!(at(".takeup-tmp-link").is_symlink());
        held.put().unwrap();
        assert!(at("file").exists());
    }
}
