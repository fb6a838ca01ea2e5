//! A control group (version 2) that holds the processes of one task together to a limit of memory.
//!
//! A group is made beside the one the supervisor runs in, or further up, where its user may do so and memory is handed
//! down: that is so in a systemd user session, and for root. Elsewhere nothing is made, and resource limits have to do.
//!
//! Source: the kernel's description of control groups version 2, on delegation and on groups without processes of their own.
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::record::Record;
use crate::ids::BackgroundId;
use crate::paths;

/// Where this process stands among the control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The folder of all groups that can be seen.
    root: PathBuf,
    /// The folder of our own group.
    own: PathBuf,
}

impl Place {
    /// Returns the place of this process; `None` where there are no groups of version 2.
    pub(super) fn of_process() -> Option<Self> {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        Self::read(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
    }

    fn read(groups: &str, mounts: &str) -> Option<Self> {
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let (shown, root) = mounts.lines().find_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let fields: Vec<&str> = before.split(' ').collect();
            // A blank in the path is written as a backslash and digits; nobody mounts groups there.
            let root = *fields.get(4).filter(|path| !path.contains('\\'))?;
            after
                .starts_with("cgroup2 ")
                .then(|| Some((*fields.get(3)?, root)))?
        })?;
        let own = Path::new("/").join(own);
        let below = own.strip_prefix(shown).ok()?;
        Some(Self {
            root: PathBuf::from(root),
            own: Path::new(root).join(below),
        })
    }

    /// Makes a group for a task with a limit of memory in bytes. `None` where that is not granted.
    pub(super) fn make(&self, id: &BackgroundId, memory: u64) -> Option<Group> {
        let above = self.own.ancestors().skip(1);
        above
            .take_while(|folder| folder.starts_with(&self.root))
            .filter(|folder| {
                std::fs::read_to_string(folder.join("cgroup.subtree_control"))
                    .is_ok_and(|list| list.split_whitespace().any(|word| word == "memory"))
            })
            .find_map(|folder| {
                let group = Group {
                    folder: folder.join(format!("{PREFIX}{id}")),
                    former: self.own.clone(),
                };
                // One that is there already is somebody else's.
                std::fs::DirBuilder::new().create(&group.folder).ok()?;
                if write(&group.folder.join("memory.max"), &memory.to_string()).is_err() {
                    remove(&group.folder, id);
                    return None;
                }
                // Where there is no swap there is no such file.
                drop(write(&group.folder.join("memory.swap.max"), "0"));
                Some(group)
            })
    }
}

const PREFIX: &str = "takeup-";

/// The group of a task.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) folder: PathBuf,
    /// The supervisor's own.
    former: PathBuf,
}

impl Group {
    /// Puts this process into the group, so that what it starts begins there.
    pub(super) fn enter(&self) -> io::Result<()> {
        write(&self.folder.join("cgroup.procs"), "0")
    }

    /// Puts this process back where it was.
    pub(super) fn leave(&self) -> io::Result<()> {
        write(&self.former.join("cgroup.procs"), "0")
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    std::fs::OpenOptions::new()
        .write(true)
        .open(path)?
        .write_all(text.as_bytes())
}

/// Removes the group of a task. One that still holds processes stays, and no other folder goes.
pub(super) fn remove(folder: &Path, id: &BackgroundId) {
    let is_ours = folder
        .file_name()
        .is_some_and(|name| name.to_str() == Some(&format!("{PREFIX}{id}")));
    if is_ours {
        drop(std::fs::remove_dir(folder));
    }
}

/// Removes the group of a task that is over, where it has one.
pub(super) fn remove_of(record: &Record) {
    let folder = record.memory_group.as_deref().and_then(paths::path_of_text);
    if let Some(folder) = folder {
        remove(&folder, &record.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "24 1 0:21 / /proc rw - proc proc rw\n\
                          30 1 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_own_place_is_found() {
        let place = Place::read("0::/user.slice/app.slice/shell.scope\n", MOUNTS).unwrap();
        assert_eq!(place.root, Path::new("/sys/fs/cgroup"));
        assert_eq!(
            place.own,
            Path::new("/sys/fs/cgroup/user.slice/app.slice/shell.scope")
        );
        // In a container, a part of the tree is shown under another name.
        let inner = MOUNTS.replace("0:26 / ", "0:26 /docker/x ");
        let place = Place::read("4:memory:/y\n0::/docker/x/task\n", &inner).unwrap();
        assert_eq!(place.own, Path::new("/sys/fs/cgroup/task"));
        assert_eq!(Place::read("0::/elsewhere\n", &inner), None);
        assert_eq!(Place::read("4:memory:/y\n", MOUNTS), None);
        assert_eq!(
            Place::read("0::/\n", "24 1 0:21 / /proc rw - proc proc rw\n"),
            None
        );
    }

    /// Files stand for the kernel's: they are there before a group is made, as the kernel makes them with the folder.
    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's files need no durability"
    )]
    fn a_group_is_made_where_memory_is_handed_down_and_nowhere_else() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("user/app/shell");
        std::fs::create_dir_all(&own).unwrap();
        let place = Place {
            root: root.path().to_path_buf(),
            own: own.clone(),
        };
        let id = BackgroundId::new("t").unwrap();
        let control = |folder: &str, list: &str| {
            std::fs::write(
                root.path().join(folder).join("cgroup.subtree_control"),
                list,
            )
            .unwrap();
        };
        assert!(place.make(&id, 1).is_none(), "nothing is handed down");
        control("user/app/shell", "memory");
        assert!(
            place.make(&id, 1).is_none(),
            "a group with processes has no groups below"
        );
        control("user/app", "cpu pids memory_of_another_kind");
        assert!(place.make(&id, 1).is_none());
        control("user/app", "cpu memory pids");
        // No kernel makes the files of the group here: the limit cannot be written, and nothing is left behind.
        assert!(place.make(&id, 1).is_none());
        assert!(!root.path().join("user/app/takeup-t").exists());
        control("", "memory");
        assert!(place.make(&id, 1).is_none());
        // Only the task's own group is ever removed.
        remove(&own, &id);
        assert!(own.exists());
        std::fs::create_dir_all(root.path().join("takeup-t")).unwrap();
        remove(&root.path().join("takeup-t"), &id);
        assert!(!root.path().join("takeup-t").exists());
    }
}
