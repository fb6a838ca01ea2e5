//! Git, the process table, file systems, background tasks.
use std::path::Path;

use rustix::fs::Access;
use rustix::io::Errno;

use super::{Finding, Health, Remedy};
use crate::background::Store;
use crate::engine::Engine;
use crate::error::Explain as _;
use crate::hooks;
use crate::repository::{GitProgram, GitVersion};
use crate::text;

/// With less room than this a record may not fit, in bytes.
const ROOM: u64 = 16 << 10;

pub(super) fn git(engine: &Engine<'_>, found: &mut Vec<Finding>) {
    let Some(program) = GitProgram::find(engine.env) else {
        found.push(
            Finding::warn("git", "the git program was not found on PATH").advice(
                "install git, or put it on PATH; some repositories can be read by it alone",
            ),
        );
        return;
    };
    match program.version() {
        Ok(version) if version < GitVersion::OLDEST => found.push(
            Finding::fail(
                "git",
                format!("git {version} at {} is too old", program.path().display()),
            )
            .advice(format!("install git {} or later", GitVersion::OLDEST)),
        ),
        Ok(version) => found.push(Finding::ok(
            "git",
            format!("git {version} at {}", program.path().display()),
        )),
        Err(error) => found.push(Finding::fail("git", error.to_string()).advice(
            error.hint().unwrap_or_else(|| {
                format!(
                    "see what it answers: {} --version",
                    program.path().display()
                )
            }),
        )),
    }
}

pub(super) fn processes(engine: &Engine<'_>, found: &mut Vec<Finding>) {
    found.push(match engine.processes.identify(std::process::id()) {
        Ok(Some(_)) => Finding::ok("processes", "sessions can be told alive from dead"),
        Ok(None) => Finding::warn("processes", "the process table does not show this process")
            .advice("is /proc mounted, and for this pid namespace? Until then every session is of unknown liveness"),
        Err(error) => {
            Finding::of("processes", Health::Warn, &error)
        }
    });
}

/// Switches of the environment that people forget.
pub(super) fn switches(engine: &Engine<'_>, found: &mut Vec<Finding>) {
    if hooks::are_off(engine.env) {
        found.push(
            Finding::warn(
                "switches",
                "TAKEUP_HOOKS=0 or TAKEUP_SKIP=1 is set: git hooks record nothing",
            )
            .advice("unset it where it is set, such as in a shell's start-up file"),
        );
    }
}

/// What was wrong with the settings.
pub(super) fn settings(complaints: &[String], found: &mut Vec<Finding>) {
    if complaints.is_empty() {
        found.push(Finding::ok("settings", "every setting is known"));
    }
    for complaint in complaints {
        found.push(
            Finding::warn("settings", complaint.clone())
                .advice("it has no effect; see the settings there are with: git takeup config"),
        );
    }
}

pub(super) fn background(engine: &Engine<'_>, found: &mut Vec<Finding>) {
    let store = Store::of(engine.env);
    if let Ok(store) = &store {
        room_of_tasks(store, found);
    }
    let looked = store.and_then(|store| Ok((store.look_all(engine.processes)?, store)));
    match looked {
        Ok(((seen, issues), store)) => {
            for issue in &issues {
                let finding = Finding::fail(
                    "background",
                    format!("{}: {}", issue.path.display(), issue.message),
                );
                found.push(match store.aside(issue) {
                    Some(to) => finding
                        .advice("look at the file; `--fix` puts it aside with all that belongs to it, for 30 days")
                        .remedy(Remedy::MoveAside {
                            path: issue.path.clone(),
                            to,
                        }),
                    None => finding.advice("look at the file; `git takeup bg list` shows the others"),
                });
            }
            let lost = seen.iter().filter(|task| task.corrected).count();
            if lost > 0 {
                found.push(
                    Finding::warn(
                        "background",
                        format!(
                            "{} lost the supervisor",
                            text::count(lost, "background task has", "background tasks have")
                        ),
                    )
                    .advice("see them with: git takeup bg list"),
                );
            } else if issues.is_empty() {
                found.push(Finding::ok(
                    "background",
                    text::count(seen.len(), "background task", "background tasks"),
                ));
            }
        }
        Err(error) => {
            found.push(Finding::of("background", Health::Fail, &error));
        }
    }
}

/// Tells where the folder of background tasks has no room: their ends cannot be recorded then.
fn room_of_tasks(store: &Store, found: &mut Vec<Finding>) {
    if let Some(what) = used_up(store.folder()) {
        found.push(
            Finding::fail(
                "background",
                format!(
                    "{} is on a file system that has {what} left: no background task can be started, and output is lost",
                    store.folder().display()
                ),
            )
            .advice("make room on it: see how much the tasks take with `git takeup bg list`, stop what fills it with `git takeup bg stop`, and remove what is over with `git takeup bg clean`"),
        );
    }
}

/// File systems on which locks of other machines may not be seen, by `statfs(2)`.
pub(super) fn file_system(path: &Path, found: &mut Vec<Finding>) {
    let Ok(stat) = rustix::fs::statfs(path) else {
        return;
    };
    if rustix::fs::access(path, Access::WRITE_OK) == Err(Errno::ROFS) {
        found.push(
            Finding::warn(
                "file-system",
                format!(
                    "{} is on a file system that cannot be written: nothing can be recorded",
                    path.display()
                ),
            )
            .advice("looking goes on; what is done meanwhile has no record"),
        );
        return;
    }
    if rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK) == Err(Errno::ACCESS) {
        found.push(
            Finding::fail(
                "file-system",
                format!(
                    "{} cannot be written by you: nothing can be recorded",
                    path.display()
                ),
            )
            .advice("look at whose it is, and its mode: it has to be yours, with mode 700"),
        );
        return;
    }
    if let Some(what) = used_up(path) {
        found.push(
            Finding::fail(
                "file-system",
                format!(
                    "{} is on a file system that has {what} left: nothing can be recorded",
                    path.display()
                ),
            )
            .advice("make room on it; what is done meanwhile has no record"),
        );
        return;
    }
    #[expect(
        clippy::allow_attributes,
        reason = "the width of the field depends on the system"
    )]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "kinds have 32 bits"
    )]
    let kind = stat.f_type as u32;
    found.push(match shared_kind(kind) {
        None => Finding::ok("file-system", "locks hold on this file system"),
        Some(name) => Finding::warn(
            "file-system",
            format!(
                "{} is on {name}: locks may not hold between machines",
                path.display()
            ),
        )
        .advice("work on this repository from one machine at a time"),
    });
}

/// Names what a file system has too little of for a record: room, by `statvfs(3)`, or files.
fn used_up(path: &Path) -> Option<&'static str> {
    let stat = rustix::fs::statvfs(path).ok()?;
    // Some of the room is kept for the administrator.
    let blocks = if rustix::process::geteuid().is_root() {
        stat.f_bfree
    } else {
        stat.f_bavail
    };
    if stat.f_blocks > 0 && blocks.saturating_mul(stat.f_frsize) < ROOM {
        Some("no room")
    } else if stat.f_files > 0 && stat.f_ffree == 0 {
        Some("no files")
    } else {
        None
    }
}

/// Names a file system that several machines may share, by the numbers of `statfs(2)`; `None` for one of this machine.
const fn shared_kind(kind: u32) -> Option<&'static str> {
    Some(match kind {
        0x6969 => "NFS",
        0x517b => "SMB",
        0xff53_4d42 => "CIFS",
        0xfe53_4d42 => "SMB2",
        0x0102_1997 => "9P",
        0x5346_414f => "AFS",
        0x00c3_6400 => "Ceph",
        0x6573_5546 => "FUSE",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_that_machines_share_are_named() {
        // As `stat -f -c %t` names them; ext4, btrfs and tmpfs belong to one machine.
        for (kind, name) in [
            (0x6969, Some("NFS")),
            (0x0102_1997, Some("9P")),
            (0x6573_5546, Some("FUSE")),
            (0xef53, None),
            (0x9123_683e, None),
            (0x0102_1994, None),
        ] {
            assert_eq!(shared_kind(kind), name, "{kind:x}");
        }
        let mut found = Vec::new();
        file_system(Path::new("/proc/self"), &mut found);
        assert_eq!(found.len(), 1);
    }
}
