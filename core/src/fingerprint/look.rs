//! One look: the method is chosen, the repository scanned, its nested repositories looked into, the record put together.
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::engine::{self, Stop};
use super::error::FingerprintError;
use super::facts::Facts;
use super::loose::{self, Loose};
use super::options::Options;
use super::record::{
    Counters, DEFINITION, Deviation, DeviationKind, Look, Method, Submodule, TreeRecord,
};
use super::scan::Scan;
use super::{facts, nested, program};
use crate::files::is_own_folder;
use crate::ids::Fingerprint;
use crate::paths::text_of_bytes;
use crate::repository::{Place, guard};

/// How deep repositories may lie in one another.
const DEEPEST: u32 = 40;

/// How many looks are taken at a repository that changes under them.
const TRIES: u32 = 5;

/// Looks at the work tree of `place`.
///
/// A look that could not see everything is no error: its record has no fingerprint, says why in
/// [`TreeRecord::incomplete`], and equals nothing.
pub fn look(place: &Place, options: &Options<'_>) -> Result<Look, FingerprintError> {
    let outer = Outer {
        folder: cache_folder(place, options),
        path: Vec::new(),
        depth: 0,
    };
    look_at(place, options, &outer).map(|(look, _)| look)
}

/// Where a look is, seen from the outermost repository.
struct Outer {
    /// The folder of all caches.
    folder: Option<PathBuf>,
    /// The path of this repository.
    path: Vec<u8>,
    depth: u32,
}

impl Outer {
    /// Returns the file of this repository's cache. Those of nested ones lie in the outermost's folder: theirs are not ours
    /// to write into.
    fn cache(&self) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        if self.path.is_empty() {
            return Some(folder.join("look.cache"));
        }
        let digest = Sha256::digest(&self.path);
        let name: String = crate::text::hex(&digest).chars().take(16).collect();
        Some(folder.join(format!("look-{name}.cache")))
    }
}

/// Returns the folder of the caches: the work tree's own part of our records, where the repository has any and they are this
/// user's. Files of another user (root, by `sudo`) would stand in the owner's way.
fn cache_folder(place: &Place, options: &Options<'_>) -> Option<PathBuf> {
    if !options.use_cache && !options.write_cache {
        return None;
    }
    if !is_own_folder(&place.state()) {
        return None;
    }
    let folder = place.git_dir.join("takeup");
    if !is_own_folder(&folder) {
        use std::os::unix::fs::DirBuilderExt as _;
        if !options.write_cache {
            return None;
        }
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .ok()?;
    }
    Some(folder)
}

/// Looks until what was seen is the state of some moment: nothing of it changed since the look began, or two looks one after
/// the other saw the same. The second value tells whether it took two.
fn look_at(
    place: &Place,
    options: &Options<'_>,
    outer: &Outer,
) -> Result<(Look, bool), FingerprintError> {
    let mut before: Option<Look> = None;
    for _ in 0..TRIES {
        let (look, young) = look_once(place, options, outer)?;
        if look.record.incomplete.as_deref() == Some(super::MOVING) {
            before = None;
            continue;
        }
        if !young || look.record.incomplete.is_some() {
            return Ok((look, false));
        }
        if before.is_some_and(|before| before.record == look.record) {
            return Ok((look, true));
        }
        before = Some(look);
    }
    let mut look = match before {
        Some(look) => look,
        None => look_once(place, options, outer)?.0,
    };
    look.record.fingerprint = None;
    look.record.incomplete = Some(super::MOVING.to_owned());
    Ok((look, true))
}

/// Scans by the method asked for, else by the engine, and by git where the engine cannot.
fn scan(
    place: &Place,
    facts: &Facts,
    excluded: &[String],
    options: &Options<'_>,
    outer: &Outer,
) -> Result<(Scan, Method, Option<String>), FingerprintError> {
    if options.method == Some(Method::Git) {
        let scan = program::scan(place, facts, excluded, options)?;
        return Ok((scan, Method::Git, None));
    }
    let cache = outer.cache();
    match engine::scan(place, facts, excluded, options, cache.as_deref()) {
        Ok(scan) => Ok((scan, Method::Engine, None)),
        Err(Stop::Moving) => Ok((Scan::incomplete(super::MOVING), Method::Engine, None)),
        Err(Stop::Incomplete(reason)) => Ok((Scan::incomplete(reason), Method::Engine, None)),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Unsupported(reason)) if options.method == Some(Method::Engine) => {
            Err(FingerprintError::Unsupported(reason))
        }
        Err(Stop::Unsupported(reason)) => {
            let scan = program::scan(place, facts, excluded, options)?;
            Ok((scan, Method::Git, Some(reason)))
        }
    }
}

fn look_once(
    place: &Place,
    options: &Options<'_>,
    outer: &Outer,
) -> Result<(Look, bool), FingerprintError> {
    let excluded = options.exclusions()?;
    guard::both(&place.git_dir, &place.common_dir)
        .map_err(|issue| FingerprintError::damaged(&issue.path, issue.message))?;
    let facts = facts::facts(place, options)?;
    let (scan, method, fallback) = scan(place, &facts, &excluded, options, outer)?;
    let mut record = TreeRecord {
        definition: DEFINITION,
        excluded,
        fingerprint: None,
        incomplete: scan.incomplete.clone(),
        head: facts.head,
        branch: facts.branch,
        index_tree: scan.index_tree.clone(),
        operation: facts.operation,
        submodules: Vec::new(),
        stash: facts.stash,
        deviations: Vec::new(),
        deviations_left_out: 0,
    };
    let mut counters = scan.counters;
    let mut young = scan.young;
    young |= finish(place, options, outer, scan, &mut record, &mut counters)?;
    let look = Look {
        record,
        method,
        fallback,
        counters,
    };
    Ok((look, young))
}

/// Begins the digest of what no tree can hold.
fn second_part() -> Sha256 {
    Sha256::new().chain_update(b"takeup: content of nested repositories\0")
}

/// Adds the files in the folder of a submodule that is no repository, or that there are none. Returns whether there are any: they are not watched
/// while they are read, so two looks have to see the same.
fn add_loose(
    place: &Place,
    path: &[u8],
    options: &Options<'_>,
    scan: &mut Scan,
    record: &mut TreeRecord,
    counters: &mut Counters,
    beyond: &mut Option<Sha256>,
) -> Result<bool, FingerprintError> {
    let name = text_of_bytes(path);
    let files = match loose::look(place, path, options, counters) {
        Ok(Loose::Files(files)) => files,
        Ok(Loose::NoFolder) => return Ok(false),
        Ok(Loose::Empty) => {
            // git's tree is the same whether it is checked out or not; what lies on disk is not.
            let hasher = beyond.get_or_insert_with(second_part);
            hasher.update((path.len() as u64).to_be_bytes());
            hasher.update(path);
            hasher.update(b"absent");
            return Ok(false);
        }
        Ok(Loose::Broken(why)) => {
            record.incomplete = Some(format!("{name}: {why}"));
            return Ok(false);
        }
        Ok(Loose::TooMany) => {
            record.incomplete = Some(format!(
                "{name} is a submodule without its repository, and holds too many files to read each time"
            ));
            return Ok(false);
        }
        Err(FingerprintError::Interrupted) => return Err(FingerprintError::Interrupted),
        Err(error) => {
            record.incomplete = Some(format!("in {name}: {error}"));
            return Ok(false);
        }
    };
    let hasher = beyond.get_or_insert_with(second_part);
    hasher.update((path.len() as u64).to_be_bytes());
    hasher.update(path);
    hasher.update(b"loose ");
    hasher.update((files.len() as u64).to_be_bytes());
    for (file, mode, digest) in files {
        hasher.update((file.len() as u64).to_be_bytes());
        hasher.update(&file);
        hasher.update(mode);
        hasher.update(digest);
        scan.deviations.push(Deviation {
            path: format!("{name}/{}", text_of_bytes(&file)),
            kind: DeviationKind::Nested,
            staged: false,
            mode: Some(mode.to_owned()),
            oid: None,
            is_new: true,
        });
    }
    Ok(true)
}

/// Looks into the nested repositories, and puts fingerprint and deviations together. Returns whether one of them changed
/// meanwhile.
fn finish(
    place: &Place,
    options: &Options<'_>,
    outer: &Outer,
    mut scan: Scan,
    record: &mut TreeRecord,
    counters: &mut Counters,
) -> Result<bool, FingerprintError> {
    let mut young = false;
    let mut inner: Vec<(Vec<u8>, bool)> = std::mem::take(&mut scan.gitlinks)
        .into_iter()
        .map(|path| (path, false))
        .chain(
            std::mem::take(&mut scan.headless)
                .into_iter()
                .map(|path| (path, true)),
        )
        .collect();
    inner.sort();
    let mut beyond: Option<Sha256> = None;
    for (path, headless) in inner {
        let name = text_of_bytes(&path);
        let nested = match nested::place(place, &path) {
            Ok(Some(nested)) => nested,
            Ok(None) => {
                young |= add_loose(
                    place,
                    &path,
                    options,
                    &mut scan,
                    record,
                    counters,
                    &mut beyond,
                )?;
                continue;
            }
            Err(error) => {
                record.incomplete = Some(error.to_string());
                continue;
            }
        };
        if outer.depth >= DEEPEST {
            record.incomplete = Some(format!("{name} lies too deep in other repositories"));
            break;
        }
        let inner = Outer {
            folder: outer.folder.clone(),
            path: [outer.path.as_slice(), b"/", &path].concat(),
            depth: outer.depth + 1,
        };
        let look = match look_at(&nested, options, &inner) {
            Ok((look, twice)) => {
                young |= twice;
                look
            }
            Err(FingerprintError::Interrupted) => return Err(FingerprintError::Interrupted),
            Err(error) => {
                record.incomplete = Some(format!("in {name}: {error}"));
                continue;
            }
        };
        *counters += &look.counters;
        let Some(fingerprint) = &look.record.fingerprint else {
            let reason = look.record.incomplete.as_deref().unwrap_or("incomplete");
            record.incomplete = Some(if reason == super::MOVING {
                reason.to_owned()
            } else {
                format!("in {name}: {reason}")
            });
            continue;
        };
        let unborn = look.record.head.is_none();
        let dirty = !look.record.deviations.is_empty()
            || look.record.deviations_left_out > 0
            || look.record.submodules.iter().any(|inner| inner.dirty);
        // Its tree does not tell all: something in it is not checked out.
        let more = fingerprint.as_str().contains('+');
        if headless {
            scan.deviations.push(Deviation {
                path: name.clone(),
                kind: DeviationKind::Nested,
                staged: false,
                mode: Some("160000".to_owned()),
                oid: None,
                is_new: true,
            });
        }
        if dirty || unborn || more {
            let hasher = beyond.get_or_insert_with(second_part);
            hasher.update((path.len() as u64).to_be_bytes());
            hasher.update(&path);
            hasher.update(if unborn { b"unborn" } else { b"dirty " });
            hasher.update((fingerprint.as_str().len() as u64).to_be_bytes());
            hasher.update(fingerprint.as_str());
            for deviation in look.record.deviations {
                scan.deviations.push(Deviation {
                    path: format!("{name}/{}", deviation.path),
                    kind: DeviationKind::Nested,
                    is_new: !deviation.is_in_head(),
                    ..deviation
                });
            }
            scan.deviations.left_out += look.record.deviations_left_out;
        }
        record.submodules.push(Submodule {
            path: name.clone(),
            head: look.record.head,
            dirty: dirty || unborn,
        });
        record
            .submodules
            .extend(look.record.submodules.into_iter().map(|deeper| Submodule {
                path: format!("{name}/{}", deeper.path),
                ..deeper
            }));
    }
    let mut kept = std::mem::take(&mut scan.deviations.kept);
    kept.sort_by(|a, b| a.path.cmp(&b.path));
    record.deviations = kept;
    record.deviations_left_out = scan.deviations.left_out;
    if record.incomplete.is_none() {
        let digest: Option<[u8; 32]> = beyond.map(|hasher| hasher.finalize().into());
        record.fingerprint = scan
            .tree
            .map(|tree| Fingerprint::from_parts(&tree, digest.as_ref()));
        if record.fingerprint.is_none() {
            record.incomplete = Some("no tree was found".to_owned());
        }
    }
    Ok(young)
}
