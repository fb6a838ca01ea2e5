//! Carries out a plan: each change at once or not at all, and none on something that is not as it was planned for.
use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::HookError;
use super::plan::{Change, Plan, Seen};
use crate::files::{FileError, rename, sync_folder, write_atomic};

/// Carries out the changes of a plan, in order. A hook is never missing in between: what is there stays until what
/// follows takes its place. Stopped in the middle, the same command goes on from there.
pub fn apply(plan: &Plan) -> Result<(), HookError> {
    for change in &plan.changes {
        match change {
            Change::MakeFolder { path } => {
                std::fs::create_dir_all(path)
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
                std::fs::remove_file(path)
                    .map_err(|error| FileError::new("cannot remove", path, error))?;
            }
            Change::RemoveFolder { path } => {
                // Only an empty one goes; another one is somebody's.
                drop(std::fs::remove_dir(path));
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
    match std::fs::hard_link(from, to) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(HookError::Changed {
                path: to.to_path_buf(),
            });
        }
        // A file system without hard links.
        Err(_) => match Seen::at(from)? {
            Seen::Link { target } => std::os::unix::fs::symlink(target, to).map_err(fail)?,
            Seen::File { bytes, mode } => write_atomic(to, &bytes, mode)?,
            Seen::Nothing | Seen::Other => {
                return Err(fail(std::io::ErrorKind::InvalidInput.into()).into());
            }
        },
    }
    let folder = to.parent().unwrap_or_else(|| Path::new("/"));
    Ok(sync_folder(folder)?)
}

/// Writes a configuration file under the lock that git itself takes for it.
fn write_config(path: &Path, before: &Seen, after: &[u8], mode: u32) -> Result<(), HookError> {
    let mut lock = path.as_os_str().to_os_string();
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    let fail = |error| FileError::new("cannot write", &lock, error);
    let mut file = match File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&lock)
    {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(HookError::ConfigLocked { path: lock });
        }
        Err(error) => return Err(fail(error).into()),
    };
    let written = expect(path, before).and_then(|()| {
        file.write_all(after).map_err(fail)?;
        file.set_permissions(Permissions::from_mode(mode))
            .map_err(fail)?;
        file.sync_all().map_err(fail)?;
        Ok(rename(&lock, path)?)
    });
    if written.is_err() {
        drop(std::fs::remove_file(&lock));
    }
    written
}
