//! What stands below a folder, to the last nanosecond.
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Every name below a folder, with kind, mode, inode, links, owner, size, target or digest of the content, and the times of
/// the last change of content and of metadata. The time of the last access is left out: reading is allowed.
pub(crate) type Look = BTreeMap<String, String>;

/// Looks at everything below a folder but what `skip` names, by the path below the folder.
pub(crate) fn look(folder: &Path, skip: &dyn Fn(&str) -> bool) -> Look {
    let mut found = Look::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(path) = todo.pop() {
        let name = path.strip_prefix(folder).unwrap().to_string_lossy();
        if skip(&name) {
            continue;
        }
        let meta = path.symlink_metadata().unwrap();
        let content = if meta.is_dir() {
            todo.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            String::new()
        } else if meta.is_symlink() {
            format!("-> {}", std::fs::read_link(&path).unwrap().display())
        } else if meta.is_file() {
            digest(&std::fs::read(&path).unwrap())
        } else {
            "special".to_owned()
        };
        // As root, SQLite gives a `-wal` to its owner once more when it reads it.
        let changed = if name.ends_with(".db-wal") {
            (0, 0)
        } else {
            (meta.ctime(), meta.ctime_nsec())
        };
        let line = format!(
            "{:o} inode {} links {} owner {}:{} size {} {content} mtime {}.{:09} ctime {}.{:09}",
            meta.mode(),
            meta.ino(),
            meta.nlink(),
            meta.uid(),
            meta.gid(),
            meta.size(),
            meta.mtime(),
            meta.mtime_nsec(),
            changed.0,
            changed.1,
        );
        found.insert(name.into_owned(), line);
    }
    found
}

/// What stands below a folder by name, mode and content alone: what has to be back after an uninstall.
pub(crate) fn content(folder: &Path, skip: &dyn Fn(&str) -> bool) -> Look {
    look(folder, skip)
        .into_iter()
        .map(|(name, line)| {
            let words: Vec<&str> = line.split(' ').collect();
            let is_folder = words[0].starts_with('4');
            let kept = if is_folder {
                words[0].to_owned()
            } else {
                format!("{} {}", words[0], words[7..words.len() - 4].join(" "))
            };
            (name, kept)
        })
        .collect()
}

fn digest(bytes: &[u8]) -> String {
    use sha2::{Digest as _, Sha256};
    Sha256::digest(bytes)
        .iter()
        .take(8)
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Says what differs between two looks, one line a name.
pub(crate) fn differences(before: &Look, after: &Look) -> Vec<String> {
    let mut told = Vec::new();
    for (name, line) in before {
        match after.get(name) {
            None => told.push(format!("gone: {name}")),
            Some(now) if now != line => told.push(format!("changed: {name}\n  {line}\n  {now}")),
            Some(_) => {}
        }
    }
    for name in after.keys().filter(|name| !before.contains_key(*name)) {
        told.push(format!("new: {name}"));
    }
    told
}
