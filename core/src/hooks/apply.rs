//! Carries out a plan: each change at once or not at all, and none on something that is not as it was planned for.
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::HookError;
use super::plan::{Change, Plan};
use super::seen::Seen;
use crate::fault;
use crate::files::{FileError, Staged, is_left, remove, rename, sweep, sync_folder, write_atomic};

/// Carries out the changes of a plan, in order. A hook is never missing in between: what is there stays until what
/// follows takes its place. Stopped in the middle, the same command goes on from there.
pub fn apply(plan: &Plan) -> Result<(), HookError> {
    for folder in &plan.folders {
        let lock = folder.join("config.lock");
        if is_left(&lock) {
            remove(&lock)?;
        }
        sweep(folder);
    }
    for change in &plan.changes {
        match change {
            Change::MakeFolder { path } => {
                fault::around("folder-make", || std::fs::create_dir_all(path))
                    .map_err(|error| FileError::new("cannot make the folder", path, error))?;
            }
            Change::Keep { from, to } => keep(from, to)?,
            Change::Write {
                path,
                before,
                after,
                mode,
                config: false,
            } => {
                expect(path, before)?;
                write_atomic(path, after, *mode)?;
            }
            Change::Write {
                path,
                before,
                after,
                mode,
                config: true,
            } => write_config(path, before, after, *mode)?,
            Change::Restore { from, to } => rename(from, to)?,
            Change::Remove { path, before } => {
                expect(path, before)?;
                remove(path)?;
            }
            Change::RemoveFolder { path } => {
                // Only an empty one goes; another one is somebody's.
                drop(fault::around("folder-remove", || std::fs::remove_dir(path)));
            }
        }
    }
    Ok(())
}

fn expect(path: &Path, before: &Seen) -> Result<(), HookError> {
    if &Seen::at(path)? == before {
        Ok(())
    } else {
        Err(HookError::Changed {
            path: path.to_path_buf(),
        })
    }
}

/// Gives a hook a second name; a link stays a link, with the same target.
fn keep(from: &Path, to: &Path) -> Result<(), HookError> {
    let fail = |error| FileError::new("cannot keep", from, error);
    match fault::around("file-keep", || std::fs::hard_link(from, to)) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(HookError::Changed {
                path: to.to_path_buf(),
            });
        }
        // A file system without hard links.
        Err(_) => match Seen::at(from)? {
            Seen::Link { target } => {
                fault::around("file-keep", || std::os::unix::fs::symlink(target, to))
                    .map_err(fail)?;
            }
            Seen::File { bytes, mode } => write_atomic(to, &bytes, mode)?,
            Seen::Nothing | Seen::Other => {
                return Err(fail(ErrorKind::InvalidInput.into()).into());
            }
        },
    }
    let folder = to.parent().unwrap_or_else(|| Path::new("/"));
    Ok(sync_folder(folder)?)
}

/// Writes a configuration file under the lock that git itself takes for it. The lock is whole before it has its name, and
/// has a second name while its writer lives: so one that was left by a kill can be told from git's, and is taken away.
fn write_config(path: &Path, before: &Seen, after: &[u8], mode: u32) -> Result<(), HookError> {
    let mut lock = path.as_os_str().to_os_string();
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    if is_left(&lock) {
        remove(&lock)?;
    }
    sweep(lock.parent().unwrap_or_else(|| Path::new("/")));
    let staged = Staged::write(&lock, after, mode)?;
    match staged.link() {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(HookError::ConfigLocked { path: lock });
        }
        // A file system without hard links.
        Err(_) => write_lock(&lock, after, mode)?,
    }
    let written = expect(path, before).and_then(|()| Ok(rename(&lock, path)?));
    if written.is_err() {
        drop(std::fs::remove_file(&lock));
    }
    written
}

/// Makes the lock as git makes it.
fn write_lock(lock: &Path, after: &[u8], mode: u32) -> Result<(), HookError> {
    let fail = |error| FileError::new("cannot write", lock, error);
    let mut options = File::options();
    let mut file = match options.write(true).create_new(true).mode(0o600).open(lock) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(HookError::ConfigLocked {
                path: lock.to_path_buf(),
            });
        }
        Err(error) => return Err(fail(error).into()),
    };
    let written = file
        .write_all(after)
        .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
        .and_then(|()| file.sync_all());
    if let Err(error) = written {
        drop(std::fs::remove_file(lock));
        return Err(fail(error).into());
    }
    Ok(())
}
