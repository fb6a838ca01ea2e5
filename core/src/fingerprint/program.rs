//! The method by the `git` program: everything is read, in an index and an object folder that are thrown away.
//!
//! The scratch index holds the ids of the real one and neither its stat data nor its flags, so that nothing git overlooks
//! (a change in the clock tick of the last `git add`, assume-unchanged, skip-worktree on a file that is there) stays hidden.
//! That costs a read of every file. It is the method of last resort, right wherever git itself is.
//!
//! # Deviations from git
//!
//! * `git add -A` fails at an untracked repository without a commit; here it is left out of the tree and told apart. So what
//!   is tracked and what is not are added in two steps.
//! * The times of objects that are there already may move, as `git add` moves them; their content does not.
//! * git waits for ever on a pipe named `.gitignore` or `.gitattributes`; here such a pipe makes the look incomplete.
//! * Whether git still heeds a `.gitattributes` that is gone from the disk depends on which names come before it; here it
//!   never does, as after the deletion is staged.
//! * git neither finds nor misses a tracked file whose folder became a link to itself; here it is gone, as behind any link.
//! * git goes on after a folder it cannot read; here any complaint of git's makes the look incomplete.
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::error::FingerprintError;
use super::facts::Facts;
use super::git::{Git, Scratch, split_at_byte};
use super::nested;
use super::options::Options;
use super::scan::{
    Deviations, GITLINK, Index, Leaf, Scan, Tracked, conflict_digest, empty_blob, empty_tree,
    named_twice,
};
use crate::ids::Oid;
use crate::paths::text_of_bytes;
use crate::repository::Place;

/// One line of `git ls-files -s`.
struct Line {
    flagged: bool,
    skipped: bool,
    mode: u32,
    oid: String,
    stage: u8,
    path: Vec<u8>,
}

/// Looks at one repository.
pub(super) fn scan(
    place: &Place,
    facts: &Facts,
    excluded: &[String],
    options: &Options<'_>,
) -> Result<Scan, FingerprintError> {
    let before = match signature(place, options)? {
        Signature::Of(digest) => digest,
        Signature::Blocked(path) => {
            return Ok(Scan::incomplete(format!(
                "{} is no regular file, and git would wait on it",
                text_of_bytes(path.as_os_str().as_bytes())
            )));
        }
    };
    let scratch = Scratch::new()?;
    let mut git = Git::new(place, options);
    let result = scan_in(&mut git, &scratch, place, facts, excluded, options);
    let started = git.started;
    match result {
        Ok(mut scan) => {
            scan.incomplete = scan.incomplete.map(|why| with_damage(place, why));
            scan.counters.programs = started;
            scan.young =
                !matches!(signature(place, options)?, Signature::Of(after) if after == before);
            Ok(scan)
        }
        // What git refuses is its answer; that it cannot be asked is an error.
        Err(FingerprintError::Git { command, message }) => {
            let why = with_damage(place, format!("git {command}: {message}"));
            let mut scan = Scan::incomplete(why);
            scan.counters.programs = started;
            Ok(scan)
        }
        // So is a folder inside that it could not look into.
        Err(FingerprintError::Io { what, path, source }) if path != place.root => {
            let error = FingerprintError::Io { what, path, source };
            Ok(Scan::incomplete(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

fn scan_in(
    git: &mut Git<'_>,
    scratch: &Scratch,
    place: &Place,
    facts: &Facts,
    excluded: &[String],
    options: &Options<'_>,
) -> Result<Scan, FingerprintError> {
    let mut scan = Scan::default();
    let blocked = if options.repository_programs {
        Vec::new()
    } else {
        git.repository_filters()?
    };
    for name in &blocked {
        git.without_filter(name);
    }
    git.scratch_objects(&scratch.objects());

    // The index as it is, read once.
    let original = scratch.file("original");
    let before = std::fs::symlink_metadata(place.git_dir.join("index")).ok();
    match std::fs::read(place.git_dir.join("index")) {
        Ok(bytes) => crate::files::write_atomic(&original, &bytes, 0o600)
            .map_err(|error| FingerprintError::io("write", &original, error.source))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(FingerprintError::io(
                "read",
                &place.git_dir.join("index"),
                error,
            ));
        }
    }
    let listing = git
        .must(&["ls-files", "-s", "-v", "-z"], b"", Some(&original))
        .map_err(|error| error.of_index(&original, place))?;
    let mut lines = lines(&listing)?;
    lines.retain(|line| !is_excluded(&line.path, excluded));
    let mut held = HashSet::new();
    let twice = lines
        .iter()
        .any(|line| !held.insert((line.path.as_slice(), line.stage)));
    if twice && let Some(path) = damaged_folder(git, &original)? {
        scan.incomplete = Some(named_twice(&path));
        return Ok(scan);
    }
    scan.counters.entries = lines.len() as u64;
    scan.index_tree = Some(index_tree(git, scratch, &original, &lines, excluded)?);

    // The same ids without anything else.
    let work = scratch.file("work");
    let mut info = Vec::new();
    let mut skipped = Vec::new();
    let mut became_folder = Vec::new();
    let intended = intended(git, &lines, &original)?;
    for line in &lines {
        let stale = line.path.split(|byte| *byte == b'/').next_back() == Some(b".gitattributes")
            && !line.skipped
            && !place
                .root
                .join(OsStr::from_bytes(&line.path))
                .symlink_metadata()
                .is_ok_and(|meta| meta.is_file());
        let oid = if stale {
            empty_blob(line.oid.len() == 64)
        } else {
            line.oid.as_str()
        };
        scan.counters.stats += 1;
        let there = rustix::fs::lstat(place.root.join(OsStr::from_bytes(&line.path)));
        if !line.skipped && matches!(there, Err(rustix::io::Errno::LOOP)) {
            continue;
        }
        // What is only meant to be added, and is nowhere, is in no tree.
        if line.skipped && there.is_err() && intended.contains(&line.path) {
            continue;
        }
        info.extend(format!("{:06o} {oid} {}\t", line.mode, line.stage).bytes());
        info.extend(&line.path);
        info.push(0);
        if line.skipped && line.stage == 0 && there.is_err() {
            skipped.extend(&line.path);
            skipped.push(0);
        }
        if line.mode != GITLINK
            && there.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
        {
            became_folder.push(line.path.as_slice());
        }
    }
    let written = git.run(&["update-index", "-z", "--index-info"], &info, Some(&work))?;
    if let Some(reason) = written.shortfall() {
        scan.incomplete = Some(reason);
        return Ok(scan);
    }
    if !skipped.is_empty() {
        git.must(
            &["update-index", "--skip-worktree", "-z", "--stdin"],
            &skipped,
            Some(&work),
        )?;
    }

    // Compares what is tracked without writing an object. What is untracked is found before what differs is added, as
    // `git add -A` does: a folder is no repository of its own while the index knows a file in it, gone or not.
    git.run(&["update-index", "-q", "--refresh"], b"", Some(&work))?;
    let others = ["ls-files", "-o", "--exclude-standard", "-z"];
    let listing = git.run(&others, b"", Some(&work))?;
    if let Some(reason) = listing.shortfall() {
        scan.incomplete = Some(reason);
        return Ok(scan);
    }
    let updated = git.run(&["add", "-u"], b"", Some(&work))?;
    if let Some(reason) = updated.shortfall() {
        scan.incomplete = Some(reason);
        return Ok(scan);
    }
    // A repository where the index has a file is not listed before that entry is gone.
    let again = if became_folder.is_empty() {
        Vec::new()
    } else {
        git.must(&others, b"", Some(&work))?
    };
    let again = again.split(|byte| *byte == 0).filter(|path| {
        let folder = path.strip_suffix(b"/");
        folder.is_some_and(|folder| became_folder.contains(&folder))
    });
    let mut untracked = Vec::new();
    for path in listing.stdout.split(|byte| *byte == 0).chain(again) {
        if path.is_empty() || is_excluded(path, excluded) {
            continue;
        }
        let folder = path.strip_suffix(b"/");
        if let Some(folder) = folder {
            // A repository without a commit cannot be added.
            let has_commit = match nested::place(place, folder)? {
                Some(inner) => super::facts::head(&inner, options)?.is_some(),
                None => false,
            };
            if !has_commit {
                scan.headless.push(folder.to_vec());
                continue;
            }
        }
        untracked.extend(folder.unwrap_or(path));
        untracked.push(0);
    }
    let added = git.run(
        &["update-index", "--add", "--replace", "-z", "--stdin"],
        &untracked,
        Some(&work),
    )?;
    if let Some(reason) = added.shortfall() {
        scan.incomplete = Some(reason);
        return Ok(scan);
    }
    let disk = self::lines(&git.must(&["ls-files", "-s", "-v", "-z"], b"", Some(&work))?)?;
    if let Some(reason) = behind_filter(git, &disk, &blocked, &work)? {
        scan.incomplete = Some(reason);
        return Ok(scan);
    }
    scan.gitlinks = disk
        .iter()
        .filter(|line| line.mode == GITLINK)
        .map(|line| line.path.clone())
        .collect();
    let tree = written_tree(git, &work)?;
    scan.deviations = deviations(git, facts, &tree, &lines, &disk, excluded)?;
    let after = std::fs::symlink_metadata(place.git_dir.join("index")).ok();
    if !same_file(before.as_ref(), after.as_ref()) {
        scan.incomplete = Some(super::MOVING.to_owned());
        return Ok(scan);
    }
    scan.tree = Some(tree);
    Ok(scan)
}

/// Adds to why a look was incomplete that the index is damaged, where it is: git takes what it finds in one that was cut off,
/// and stumbles over that.
fn with_damage(place: &Place, why: String) -> String {
    let index = place.git_dir.join("index");
    let is_damaged = std::fs::read(&index).is_ok_and(|bytes| !has_checksum(&bytes));
    if !is_damaged {
        return why;
    }
    format!(
        "{} is damaged: its checksum is another; moved away, `git reset` makes it anew from HEAD, without what was staged ({why})",
        text_of_bytes(index.as_os_str().as_bytes())
    )
}

/// Tells whether an index ends with the checksum of what is before it, or with the zeros that stand for none (gitformat-index,
/// `index.skipHash`).
fn has_checksum(index: &[u8]) -> bool {
    [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256]
        .into_iter()
        .any(|kind| {
            let end = index.len().saturating_sub(kind.len_in_bytes());
            let Some((content, sum)) = index.split_at_checked(end) else {
                return false;
            };
            let mut hasher = gix_hash::hasher(kind);
            hasher.update(content);
            sum.iter().all(|byte| *byte == 0)
                || hasher
                    .try_finalize()
                    .is_ok_and(|found| found.as_slice() == sum)
        })
}

/// Lists what is only meant to be added (`git add -N`) among the entries outside a sparse checkout: such an entry looks like
/// an empty file, and only this listing of git's tells it from one.
fn intended(
    git: &mut Git<'_>,
    lines: &[Line],
    index: &Path,
) -> Result<HashSet<Vec<u8>>, FingerprintError> {
    const INTENT: u32 = 0x2000_0000;
    let empty = |line: &Line| line.oid == empty_blob(line.oid.len() == 64);
    if !lines.iter().any(|line| line.skipped && empty(line)) {
        return Ok(HashSet::new());
    }
    let listing = git.must(&["ls-files", "--debug", "-z"], b"", Some(index))?;
    let mut found = HashSet::new();
    let mut rest = listing.as_slice();
    // A path, and behind it five lines, the last of which ends with `flags: <hex>`.
    while let Some((path, after)) = split_at_byte(rest, b'\0') {
        let end = memchr::memchr_iter(b'\n', after)
            .nth(4)
            .unwrap_or(after.len());
        let (details, next) = after.split_at_checked(end).unwrap_or((after, b""));
        let flags = std::str::from_utf8(details)
            .ok()
            .and_then(|details| details.rsplit(' ').next())
            .and_then(|flags| u32::from_str_radix(flags, 16).ok())
            .ok_or_else(|| FingerprintError::Git {
                command: "ls-files --debug".to_owned(),
                message: format!("it printed {:?}", text_of_bytes(details)),
            })?;
        if flags & INTENT != 0 {
            found.insert(path.to_vec());
        }
        rest = next.strip_prefix(b"\n").unwrap_or(next);
    }
    Ok(found)
}

fn same_file(a: Option<&std::fs::Metadata>, b: Option<&std::fs::Metadata>) -> bool {
    let key = |meta: &std::fs::Metadata| {
        (
            meta.dev(),
            meta.ino(),
            meta.size(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec(),
        )
    };
    a.map(key) == b.map(key)
}

/// Tells whether a path is, or lies below, a name that is left out.
pub(super) fn is_excluded(path: &[u8], excluded: &[String]) -> bool {
    let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    excluded.iter().any(|name| name.as_bytes() == first)
}

/// Finds a path that is named more than once by the tree of a folder that the index names as a whole.
fn damaged_folder(git: &mut Git<'_>, index: &Path) -> Result<Option<Vec<u8>>, FingerprintError> {
    let sparse = [
        "-c",
        "core.sparseCheckout=true",
        "-c",
        "core.sparseCheckoutCone=true",
        "-c",
        "index.sparse=true",
    ];
    let list = ["ls-files", "--sparse", "-s", "-v", "-z"];
    let listing = git.must(&[&sparse[..], &list].concat(), b"", Some(index))?;
    for folder in lines(&listing)? {
        if folder.mode != 0o040_000 {
            continue;
        }
        let args = ["ls-tree", "-r", "-z", "--name-only", folder.oid.as_str()];
        let names = git.must(&args, b"", Some(index))?;
        let mut held = HashSet::new();
        if let Some(name) = names
            .split(|byte| *byte == 0)
            .find(|name| !held.insert(*name))
        {
            return Ok(Some([folder.path.as_slice(), name].concat()));
        }
    }
    Ok(None)
}

fn lines(listing: &[u8]) -> Result<Vec<Line>, FingerprintError> {
    listing
        .split(|byte| *byte == 0)
        .filter(|line| !line.is_empty())
        .map(|line| {
            parse_line(line).ok_or_else(|| FingerprintError::Git {
                command: "ls-files".to_owned(),
                message: format!("it printed {:?}", text_of_bytes(line)),
            })
        })
        .collect()
}

/// Reads `<tag> <mode> <id> <stage>\t<path>`. A tag in lower case is assume-unchanged, `S` is skip-worktree.
fn parse_line(line: &[u8]) -> Option<Line> {
    let (head, path) = split_at_byte(line, b'\t')?;
    let head = std::str::from_utf8(head).ok()?;
    let mut fields = head.split(' ');
    let tag = fields.next()?;
    let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
    let oid = fields.next()?.to_owned();
    let stage = fields.next()?.parse().ok()?;
    let skipped = tag.eq_ignore_ascii_case("s");
    Some(Line {
        flagged: skipped || tag.bytes().all(|byte| byte.is_ascii_lowercase()),
        skipped,
        mode,
        oid,
        stage,
        path: path.to_vec(),
    })
}

fn index_tree(
    git: &mut Git<'_>,
    scratch: &Scratch,
    original: &Path,
    lines: &[Line],
    excluded: &[String],
) -> Result<String, FingerprintError> {
    if lines.iter().any(|line| line.stage != 0) {
        return Ok(conflict_digest(
            lines.iter().filter(|line| line.stage != 0).map(|line| {
                (
                    line.mode,
                    line.oid.as_str(),
                    line.stage,
                    line.path.as_slice(),
                )
            }),
        ));
    }
    // git may keep the tree of entries that are no longer there.
    let sha256 = lines.first().is_some_and(|line| line.oid.len() == 64);
    let staged = scratch.file("staged");
    if !lines.is_empty() && original.exists() {
        std::fs::copy(original, &staged)
            .map_err(|error| FingerprintError::io("write", &staged, error))?;
        // git may keep trees that are not those of the entries: a name that comes and goes makes it forget them.
        let mut info = Vec::new();
        let mut folders: Vec<&[u8]> = lines.iter().map(|line| folder_of(&line.path)).collect();
        folders.sort_unstable();
        folders.dedup();
        for folder in folders {
            let name = [folder, b".takeup-comes-and-goes"].concat();
            if lines.iter().any(|line| line.path == name) {
                continue;
            }
            let id = empty_blob(sha256);
            for head in [
                format!("100644 {id} 0\t"),
                format!("0 {} 0\t", "0".repeat(id.len())),
            ] {
                info.extend(head.bytes());
                info.extend(&name);
                info.push(0);
            }
        }
        git.must(
            &["update-index", "-z", "--index-info"],
            &info,
            Some(&staged),
        )?;
        let listing = git.must(&["ls-files", "-z"], b"", Some(&staged))?;
        let mut left_out = Vec::new();
        for path in listing.split(|byte| *byte == 0) {
            if is_excluded(path, excluded) {
                left_out.extend(path);
                left_out.push(0);
            }
        }
        if !left_out.is_empty() {
            git.must(
                &["update-index", "--force-remove", "-z", "--stdin"],
                &left_out,
                Some(&staged),
            )?;
        }
    }
    written_tree(git, &staged).map(|tree| tree.as_str().to_owned())
}

/// The part of a path up to its last slash.
fn folder_of(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).map_or(b"", |slash| path.get(..=slash).unwrap_or_default())
}

fn written_tree(git: &mut Git<'_>, index: &Path) -> Result<Oid, FingerprintError> {
    let text = git.must(&["write-tree", "--missing-ok"], b"", Some(index))?;
    std::str::from_utf8(text.trim_ascii())
        .ok()
        .and_then(|text| Oid::new(text).ok())
        .ok_or_else(|| FingerprintError::Git {
            command: "write-tree".to_owned(),
            message: "it printed no object id".to_owned(),
        })
}

/// Returns a reason where a file's content would go through a filter that is not run.
fn behind_filter(
    git: &mut Git<'_>,
    disk: &[Line],
    blocked: &[Vec<u8>],
    index: &Path,
) -> Result<Option<String>, FingerprintError> {
    if blocked.is_empty() {
        return Ok(None);
    }
    let mut paths = Vec::new();
    for line in disk
        .iter()
        .filter(|line| line.mode & 0o170_000 == 0o100_000)
    {
        paths.extend(&line.path);
        paths.push(0);
    }
    let answer = git.must(
        &["check-attr", "--stdin", "-z", "filter"],
        &paths,
        Some(index),
    )?;
    let mut fields = answer.split(|byte| *byte == 0);
    while let (Some(path), Some(_), Some(value)) = (fields.next(), fields.next(), fields.next()) {
        if blocked.iter().any(|name| name == value) {
            return Ok(Some(filter_reason(path, value)));
        }
    }
    Ok(None)
}

/// How a user says that programs of a repository may run.
pub const ALLOW_PROGRAMS: &str = "git config --global takeup.repositoryPrograms true";

/// The reason of a look that would have had to run a program the repository configures, and the way out.
pub(super) fn filter_reason(path: &[u8], filter: &[u8]) -> String {
    format!(
        "{} goes through the filter {}, which only the repository configures and which is not run; configure it in your own \
         settings (git config --global), or allow what repositories configure: `{ALLOW_PROGRAMS}`",
        text_of_bytes(path),
        text_of_bytes(filter)
    )
}

fn deviations(
    git: &mut Git<'_>,
    facts: &Facts,
    tree: &Oid,
    lines: &[Line],
    disk: &[Line],
    excluded: &[String],
) -> Result<Deviations, FingerprintError> {
    let head = facts.head.as_ref().map_or_else(
        || empty_tree(tree.as_str().len() == 64).to_owned(),
        |head| format!("{}^{{tree}}", head.as_str()),
    );
    let raw = git.must(
        &[
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            "--no-abbrev",
            // Without this git reads `.gitmodules`, and refuses where that is no file of settings.
            "--ignore-submodules=none",
            &head,
            tree.as_str(),
        ],
        b"",
        None,
    )?;
    let index: Index = lines
        .iter()
        .filter_map(|line| {
            let tracked = if line.stage == 0 {
                Tracked::Merged {
                    leaf: Leaf {
                        mode: line.mode,
                        oid: Oid::new(line.oid.clone()).ok()?,
                    },
                    flagged: line.flagged,
                }
            } else {
                Tracked::Conflicted
            };
            Some((line.path.clone(), tracked))
        })
        .collect();
    let there: HashSet<&[u8]> = disk.iter().map(|line| line.path.as_slice()).collect();
    let mut deviations = Deviations::default();
    let mut fields = raw.split(|byte| *byte == 0);
    while let (Some(meta), Some(path)) = (fields.next(), fields.next()) {
        if is_excluded(path, excluded) {
            continue;
        }
        // `:<mode in HEAD> <mode> <id in HEAD> <id> <letter>`
        let meta = std::str::from_utf8(meta).unwrap_or_default();
        let mut parts = meta.trim_start_matches(':').split(' ');
        let (Some(old), Some(new), Some(_), Some(oid)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let disk = match (u32::from_str_radix(new, 8), Oid::new(oid)) {
            (Ok(mode), Ok(oid)) if mode != 0 => Some(Leaf { mode, oid }),
            _ => None,
        };
        // A damaged tree of HEAD's names a path more than once: what it names besides is not gone.
        if disk.is_none() && there.contains(path) {
            continue;
        }
        deviations.judge(path, old != "000000", disk, index.get(path));
    }
    Ok(deviations)
}

/// A digest of all names and metadata in the work tree, to see whether it changed during the look. Fails to be one where a
/// file of rules is no regular file: git would wait for ever on a pipe.
enum Signature {
    Of([u8; 32]),
    Blocked(PathBuf),
}

fn signature(place: &Place, options: &Options<'_>) -> Result<Signature, FingerprintError> {
    use sha2::Digest as _;
    let mut hasher = sha2::Sha256::new();
    let mut folders = vec![place.root.clone()];
    while let Some(folder) = folders.pop() {
        options.check_interrupt()?;
        // A folder that cannot be read is git's to complain about.
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        let mut inside = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Ok(meta) = entry.metadata() else {
                continue;
            };
            if name == ".git" {
                continue;
            }
            let kind = meta.file_type();
            if (name == ".gitignore" || name == ".gitattributes")
                && (kind.is_fifo() || kind.is_socket() || kind.is_char_device())
            {
                let path = entry.path();
                let path = path.strip_prefix(&place.root).unwrap_or(&path);
                return Ok(Signature::Blocked(path.to_path_buf()));
            }
            inside.push((name, meta));
        }
        inside.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, meta) in inside {
            hasher.update(name.as_bytes());
            hasher.update([0]);
            for number in [meta.ino(), meta.size(), u64::from(meta.mode())] {
                hasher.update(number.to_le_bytes());
            }
            for number in [
                meta.ctime(),
                meta.ctime_nsec(),
                meta.mtime(),
                meta.mtime_nsec(),
            ] {
                hasher.update(number.to_le_bytes());
            }
            if meta.is_dir() {
                folders.push(folder.join(name));
            }
        }
    }
    Ok(Signature::Of(hasher.finalize().into()))
}
