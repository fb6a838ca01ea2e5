//! How our text gets into one hook file.
use std::path::{Path, PathBuf};

use super::entry::Entry;
use super::manager::{self, Manager};
use super::plan::Change;
use super::seen::{Seen, target};
use super::shell::{call_in, is_wrapped};
use super::{HookError, stub};

/// Returns our hook under the name that pre-commit and prek give to a hook they find and go on running.
pub(super) fn moved_ours(path: &Path) -> Option<PathBuf> {
    let generated = matches!(Seen::at(path), Ok(Seen::File { bytes, mode }) if mode & 0o111 != 0 && matches!(
        manager::of_hook(&bytes),
        Some(Manager::PreCommit | Manager::Prek)
    ));
    let legacy = named(path, ".legacy");
    let event = path.file_name().unwrap_or_default().to_string_lossy();
    let runs = matches!(Seen::at(&legacy), Ok(Seen::File { bytes, mode })
        if mode & 0o111 != 0
            && stub::find(&bytes).is_some()
            && call_in(&bytes, &event, None) == Entry::Runs);
    (generated && runs).then_some(legacy)
}

/// What can be done with one hook file.
pub(super) enum Join {
    /// These changes, none where it is so already, and the content afterwards.
    Done(Vec<Change>, Vec<u8>),
    /// What is there cannot bear our text.
    Not,
    /// It calls us, and is kept from it.
    Idle(String),
}

/// Plans what puts our text into one hook file.
pub(super) fn into_file(
    path: &Path,
    seen: &Seen,
    event: &str,
    program: &Path,
) -> Result<Join, HookError> {
    let write = |before: &Seen, after: &[u8], mode: u32| Change::Write {
        path: path.to_path_buf(),
        before: before.clone(),
        after: after.to_vec(),
        mode,
        config: false,
    };
    let kept = kept_path(path);
    match seen {
        Seen::Nothing => {
            let after = stub::file(event, program, false);
            Ok(Join::Done(vec![write(seen, &after, 0o755)], after))
        }
        Seen::File { bytes, mode } => {
            if stub::find(bytes).is_some() {
                // Ours: brought up to date in its place.
                if let Some(why) = is_wrapped(bytes) {
                    return Ok(Join::Idle(why));
                }
                let rest = stub::without(bytes);
                let after = if stub::is_empty_file(&rest) {
                    Some(stub::file(
                        event,
                        program,
                        Seen::at(&kept)? != Seen::Nothing,
                    ))
                } else {
                    stub::inserted(&rest, event, program)
                };
                let Some(after) = after else {
                    return Ok(Join::Not);
                };
                let executable = executable(*mode);
                let changes = if &after == bytes && executable == *mode {
                    Vec::new()
                } else {
                    vec![write(seen, &after, executable)]
                };
                return Ok(Join::Done(changes, after));
            }
            let runs = mode & 0o111 != 0;
            if runs {
                // A line that a person put in: once is enough.
                match call_in(bytes, event, None) {
                    Entry::Runs => return Ok(Join::Done(Vec::new(), bytes.clone())),
                    Entry::Idle(why) => return Ok(Join::Idle(why)),
                    Entry::Missing => {}
                }
            }
            if runs && let Some(after) = stub::inserted(bytes, event, program) {
                return Ok(Join::Done(vec![write(seen, &after, *mode)], after));
            }
            if runs && stub::asks_its_name(bytes) {
                return Ok(Join::Not);
            }
            keep(path, kept, seen, event, program)
        }
        Seen::Link { .. } => {
            if let Some((content, mode)) = target(path) {
                if mode & 0o111 != 0 {
                    match call_in(&content, event, None) {
                        Entry::Runs => return Ok(Join::Done(Vec::new(), content)),
                        Entry::Idle(why) => return Ok(Join::Idle(why)),
                        Entry::Missing => {}
                    }
                }
                if stub::asks_its_name(&content) {
                    return Ok(Join::Not);
                }
            }
            keep(path, kept, seen, event, program)
        }
        Seen::Other => Ok(Join::Not),
    }
}

/// Returns permission bits with which a file can be executed by whoever can read it, where nobody can execute it.
const fn executable(mode: u32) -> u32 {
    if mode & 0o111 == 0 {
        mode | 0o100 | ((mode & 0o444) >> 2)
    } else {
        mode
    }
}

fn keep(
    path: &Path,
    kept: PathBuf,
    seen: &Seen,
    event: &str,
    program: &Path,
) -> Result<Join, HookError> {
    if Seen::at(&kept)? != Seen::Nothing {
        // Something stands where the hook would be kept; it is not overwritten.
        return Ok(Join::Not);
    }
    let after = stub::file(event, program, true);
    let changes = vec![
        Change::Keep {
            from: path.to_path_buf(),
            to: kept,
        },
        Change::Write {
            path: path.to_path_buf(),
            before: seen.clone(),
            after: after.clone(),
            mode: 0o755,
            config: false,
        },
    ];
    Ok(Join::Done(changes, after))
}

pub(super) fn kept_path(path: &Path) -> PathBuf {
    named(path, stub::KEPT)
}

pub(super) fn named(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(ending);
    PathBuf::from(name)
}

/// Tells whether our text cannot be put into what is at the place of a hook.
pub(super) fn cannot_be_joined(path: &Path, seen: &Seen, event: &str) -> Result<bool, HookError> {
    let join = into_file(path, seen, event, Path::new("git-takeup"))?;
    Ok(matches!(join, Join::Not))
}
