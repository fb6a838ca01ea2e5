//! The records of the other installations. Where two of them are in one file, each keeps what was there before it: the records
//! of one file make a chain, from what was there before all of them to what is there now, and it stays one whichever of them
//! goes first. A file that two installations want alike goes with the second of them.
use std::path::{Path, PathBuf};

use super::{IntegrationError, Kept, Manifest, content, current, digest, is_aside, read, write};
use crate::files::FileError;
use crate::paths::{path_of_text, text_of_path};

/// The records of the installations beside one.
pub(super) struct Others(Vec<Other>);

struct Other {
    folder: PathBuf,
    manifest: Manifest,
}

impl Others {
    /// Reads them. A damaged one is told by its own installation, and must not stand in the way of another.
    pub(super) fn beside(own: &Path) -> Result<Self, FileError> {
        let mut found = Vec::new();
        let Some(all) = own.parent().filter(|all| all.is_dir()) else {
            return Ok(Self(found));
        };
        let fail = |source| FileError::new("cannot list", all, source);
        for entry in std::fs::read_dir(all).map_err(fail)? {
            let folder = entry.map_err(fail)?.path();
            if folder == own || is_aside(&folder) {
                continue;
            }
            if let Ok(manifest) = read(&folder) {
                found.push(Other { folder, manifest });
            }
        }
        found.sort_by(|one, other| one.folder.cmp(&other.folder));
        Ok(Self(found))
    }

    /// Returns the installation that put a file there as it is now, by the name of its agent.
    pub(super) fn holder(&self, path: &Path, there: Option<&[u8]>) -> Option<&str> {
        let (name, there) = (text_of_path(path), there.map(digest)?);
        self.0
            .iter()
            .find(|other| other.shares(&name, &there).is_some())
            .map(Other::agent)
    }

    /// Tells whether a file is as takeup left it, by what another installation knows.
    pub(super) fn is_known(&self, name: &str, there: Option<&str>) -> bool {
        self.files().any(|kept| kept.is_at(name, there))
    }

    /// Records the files that an installation wants and found as it wants them, where another one put them there.
    pub(super) fn join(
        &self,
        own: &Path,
        manifest: &mut Manifest,
        present: &[PathBuf],
    ) -> Result<bool, IntegrationError> {
        let mut is_changed = false;
        for path in present {
            let name = text_of_path(path);
            let there = current(path)?.as_deref().map(digest);
            let (None, Some(there)) = (manifest.of(&name), there) else {
                continue;
            };
            let found = self.0.iter().find_map(|other| {
                let kept = other.shares(&name, &there)?;
                Some((other, kept))
            });
            let Some((other, kept)) = found else {
                continue;
            };
            let before = content(&other.folder, kept)?;
            manifest.files.push(Kept {
                before: super::keep(own, &name, before.as_deref())?,
                path: name,
                mode: kept.mode,
                after: Some(there),
                inherited: false,
            });
            is_changed = true;
        }
        Ok(is_changed)
    }

    /// An installation changes a file from `old` to `new` for another time. `is_last`: nobody has come after it.
    pub(super) fn follow(
        &mut self,
        name: &str,
        old: Option<&str>,
        new: Option<&str>,
        is_last: bool,
    ) -> Result<(), IntegrationError> {
        self.change(|_, kept| {
            if !kept.is_at(name, old) {
                return Ok(false);
            }
            kept.after = new.map(str::to_owned);
            // What it found is not what is there without it any more.
            kept.inherited |= !is_last;
            Ok(true)
        })
    }

    /// Gives folders that hold something of another installation to that one: its removal is the last to leave them. `left` is
    /// ordered from the innermost to the outermost.
    pub(super) fn hand_on(&mut self, left: &[String]) -> Result<(), IntegrationError> {
        for Other { folder, manifest } in &mut self.0 {
            let mut is_changed = false;
            for name in left {
                let below = format!("{name}/");
                let holds = manifest
                    .files
                    .iter()
                    .any(|kept| kept.path.starts_with(&below));
                if holds && !manifest.folders.iter().any(|made| made == name) {
                    manifest.folders.insert(0, name.clone());
                    is_changed = true;
                }
            }
            if is_changed {
                write(folder, manifest)?;
            }
        }
        Ok(())
    }

    /// An installation went out of a file, which held `old` and holds what is there now. What was there before it is what was
    /// there before the next one, and where nobody else wrote, the last one knows the file again.
    pub(super) fn close(
        &mut self,
        own: &Path,
        mine: &Kept,
        old: Option<&str>,
    ) -> Result<(), IntegrationError> {
        let Some(path) = path_of_text(&mine.path) else {
            return Ok(());
        };
        let now = current(&path)?.as_deref().map(digest);
        let found = content(own, mine)?;
        let found_digest = found.as_deref().map(digest);
        self.change(|folder, kept| {
            if kept.path != mine.path {
                return Ok(false);
            }
            let is_last = kept.after.as_deref() == old;
            let is_next = content(folder, kept)?.as_deref().map(digest) == mine.after;
            let is_previous = mine.after.as_deref() == old && kept.after == found_digest;
            if is_next {
                kept.before = super::keep(folder, &kept.path, found.as_deref())?;
                kept.inherited = mine.inherited || !is_last;
            } else if is_last {
                kept.inherited = true;
            }
            if is_last || is_previous {
                kept.after.clone_from(&now);
            }
            Ok(is_next || is_last || is_previous)
        })
    }

    fn files(&self) -> impl Iterator<Item = &Kept> {
        self.0.iter().flat_map(|other| &other.manifest.files)
    }

    /// Changes records and writes those of which something changed.
    fn change(
        &mut self,
        mut change: impl FnMut(&Path, &mut Kept) -> Result<bool, IntegrationError>,
    ) -> Result<(), IntegrationError> {
        for Other { folder, manifest } in &mut self.0 {
            let mut is_changed = false;
            for kept in &mut manifest.files {
                is_changed |= change(folder, kept)?;
            }
            if is_changed {
                write(folder, manifest)?;
            }
        }
        Ok(())
    }
}

impl Other {
    /// Returns the agent: the folder's name is that and the scope.
    fn agent(&self) -> &str {
        let name = self.folder.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        name.rsplit_once('-').map_or(name, |(agent, _)| agent)
    }

    /// Returns the record of a file that this installation put there, where that is what is there.
    fn shares(&self, name: &str, there: &str) -> Option<&Kept> {
        let kept = self.manifest.of(name)?;
        (!kept.inherited && kept.after.as_deref() == Some(there)).then_some(kept)
    }
}
