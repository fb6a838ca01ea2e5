//! Files in the folder of a submodule that is no repository: git names the commit of the index there and looks no further.
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::error::FingerprintError;
use super::options::Options;
use super::record::Counters;
use crate::repository::Place;

/// How many files are read. More of them are a work tree without its repository, and reading it each time is no look.
const MOST: usize = 10_000;

/// What lies in such a folder.
#[derive(Debug)]
pub(super) enum Loose {
    /// There is no folder, or something stands in its way: git's tree tells of that.
    NoFolder,
    /// The folder is there and empty: git says the same of it as of a submodule that is checked out.
    Empty,
    /// `.git` is or names no repository: git refuses to add anything of the work tree around it.
    Broken(&'static str),
    /// More than is read.
    TooMany,
    /// Files: paths from the folder with mode and SHA-256 of the content, sorted by path.
    Files(Vec<(Vec<u8>, &'static str, [u8; 32])>),
}

/// Looks into the folder `path` of `outer`, which [`super::nested::place`] found to be no repository. Nothing is remembered:
/// the files are read each time.
pub(super) fn look(
    outer: &Place,
    path: &[u8],
    options: &Options<'_>,
    counters: &mut Counters,
) -> Result<Loose, FingerprintError> {
    let mut root = outer.root.clone();
    for part in path.split(|byte| *byte == b'/') {
        root.push(std::ffi::OsStr::from_bytes(part));
        if !root.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            return Ok(Loose::NoFolder);
        }
    }
    if root.join(".git").symlink_metadata().is_ok() {
        return Ok(Loose::Broken(
            "its .git is no repository; `git submodule update --init` or `git worktree repair` may mend it",
        ));
    }
    let mut files = Vec::new();
    let mut todo = vec![root.clone()];
    while let Some(folder) = todo.pop() {
        options.check_interrupt()?;
        counters.directories += 1;
        let failed = |error| FingerprintError::io("list", &folder, error);
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            if entry.file_name() == ".git" {
                continue;
            }
            if kind.is_dir() {
                todo.push(entry.path());
            } else {
                files.push(entry.path());
            }
            if files.len() + todo.len() > MOST {
                return Ok(Loose::TooMany);
            }
        }
    }
    files.sort();
    let mut found = Vec::new();
    for file in files {
        options.check_interrupt()?;
        if let Some((mode, digest)) = read(&file, counters)? {
            let name = file.strip_prefix(&root).unwrap_or(&file);
            found.push((name.as_os_str().as_bytes().to_vec(), mode, digest));
        }
    }
    Ok(if found.is_empty() {
        Loose::Empty
    } else {
        Loose::Files(found)
    })
}

/// Returns git's mode of a file or link, and the SHA-256 of its content or target; `None` for what git keeps nothing of.
fn read(
    path: &Path,
    counters: &mut Counters,
) -> Result<Option<(&'static str, [u8; 32])>, FingerprintError> {
    let failed = |error| FingerprintError::io("read", path, error);
    counters.stats += 1;
    let meta = path.symlink_metadata().map_err(failed)?;
    if meta.is_symlink() {
        let target = std::fs::read_link(path).map_err(failed)?;
        let digest = Sha256::digest(target.as_os_str().as_bytes());
        return Ok(Some(("120000", digest.into())));
    }
    if !meta.is_file() {
        return Ok(None);
    }
    let mut file: File = crate::files::open_regular(path)
        .map_err(|issue| FingerprintError::damaged(&issue.path, issue.message))?
        .ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    counters.files_read += 1;
    loop {
        let count = file.read(&mut buffer).map_err(failed)?;
        if count == 0 {
            break;
        }
        counters.bytes_read += count as u64;
        hasher.update(buffer.get(..count).unwrap_or_default());
    }
    let mode = if meta.permissions().mode() & 0o100 == 0 {
        "100644"
    } else {
        "100755"
    };
    Ok(Some((mode, hasher.finalize().into())))
}
