//! Opening and reading below the work tree, so that no link of its leads out of it.
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use super::Stop;
use super::stat::{Kind, Meta};

/// Flags for every file: no link is followed, no pipe waited on.
pub(super) const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// The largest file of rules that is read, git's own limit for them.
const LARGEST_RULES: u64 = 100 << 20;

/// Says that something could not be looked at.
pub(super) fn unreadable(path: &[u8], error: impl Into<io::Error>) -> Stop {
    let name = if path.is_empty() { b"." } else { path };
    Stop::Incomplete(format!(
        "{} cannot be read: {}",
        crate::paths::text_of_bytes(name),
        error.into()
    ))
}

/// Opens a directory below `root` for reading its names, without following a link anywhere. `Ok(None)` where there is no
/// directory, or a link stands in the way.
pub(super) fn open_beneath(root: BorrowedFd<'_>, path: &[u8]) -> Result<Option<OwnedFd>, Stop> {
    open_dir(root, path, OFlags::RDONLY)
}

/// As [`open_beneath`], with `access` `RDONLY`, or `PATH` where nothing but lookups below it follow.
pub(super) fn open_dir(
    root: BorrowedFd<'_>,
    path: &[u8],
    access: OFlags,
) -> Result<Option<OwnedFd>, Stop> {
    let name = if path.is_empty() { b"." } else { path };
    let opened = openat2(
        root,
        name,
        access | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
    );
    match opened {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(Errno::NOSYS) => Err(Stop::Unsupported(
            "the kernel has no openat2 (Linux 5.6)".to_owned(),
        )),
        // The kernel could not rule out a race with a rename.
        Err(Errno::AGAIN | Errno::XDEV) => Err(Stop::Moving),
        Err(error) => Err(unreadable(path, error)),
    }
}

/// Reads a file of rules in a directory; `Ok(None)` where there is no regular file.
pub(super) fn open_rules(folder: BorrowedFd<'_>, name: &CStr) -> Result<Option<Vec<u8>>, Stop> {
    let file = match openat(folder, name, FILE, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(error) => return Err(unreadable(name.to_bytes(), error)),
    };
    read_rules(&file, name.to_bytes())
}

/// Tells whether a directory holds no such name at all, not even a link or a folder.
pub(super) fn is_absent(folder: BorrowedFd<'_>, name: &CStr) -> bool {
    matches!(
        rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW),
        Err(Errno::NOENT)
    )
}

fn read_rules(file: &OwnedFd, name: &[u8]) -> Result<Option<Vec<u8>>, Stop> {
    let meta = Meta::of(&fstat(file).map_err(|error| unreadable(name, error))?);
    if meta.kind() != Kind::File {
        return Ok(None);
    }
    if meta.size > LARGEST_RULES {
        return Err(Stop::Incomplete(format!(
            "{} is larger than git reads",
            crate::paths::text_of_bytes(name)
        )));
    }
    // One byte more than there should be, so that its end is seen without another buffer.
    let mut text = Vec::with_capacity(usize::try_from(meta.size).unwrap_or(0) + 1);
    loop {
        if text.len() == text.capacity() {
            text.reserve(1 << 12);
        }
        match rustix::io::read(file.as_fd(), rustix::buffer::spare_capacity(&mut text)) {
            Ok(0) => return Ok(Some(text)),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(unreadable(name, error)),
        }
    }
}

/// Reads a file of rules outside the work tree, which may be a link; `Ok(None)` where there is none.
pub(super) fn read_outside(path: &Path) -> Result<Option<Vec<u8>>, Stop> {
    use std::os::unix::ffi::OsStrExt as _;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => read_rules(&file, path.as_os_str().as_bytes()),
        // git warns at one it may not read, and goes on without it.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(None),
        Err(error) => Err(unreadable(path.as_os_str().as_bytes(), error)),
    }
}
