//! Reading objects: the tree of HEAD's commit, to tell what differs from it, and rules that stand in the index alone.
use std::path::Path;

use super::Stop;
use super::content::Id;
use crate::fingerprint::git::Git;
use crate::fingerprint::options::Options;
use crate::repository::Place;

enum Database {
    Closed,
    Open(git2::Odb<'static>),
    Unreadable,
}

/// The object database, opened when it is first needed. libgit2 reads its files; git is asked where that fails.
pub(super) struct Objects<'a> {
    place: &'a Place,
    options: &'a Options<'a>,
    sha256: bool,
    database: Database,
    /// How many programs were started.
    pub(super) programs: u64,
}

impl<'a> Objects<'a> {
    pub(super) const fn new(place: &'a Place, options: &'a Options<'a>, sha256: bool) -> Self {
        Self {
            place,
            options,
            sha256,
            database: Database::Closed,
            programs: 0,
        }
    }

    const fn len(&self) -> usize {
        if self.sha256 { 32 } else { 20 }
    }

    /// Reads an object of the kind `what`, such as `tree`.
    pub(super) fn read(&mut self, id: &Id, what: &str) -> Result<Vec<u8>, Stop> {
        let len = self.len();
        let (sha256, place) = (self.sha256, self.place);
        if matches!(self.database, Database::Closed) {
            self.database =
                open(&place.common_dir, sha256).map_or(Database::Unreadable, Database::Open);
        }
        if let Database::Open(database) = &self.database
            && let Ok(oid) = git2::Oid::from_bytes(id.bytes(len))
            && let Ok(object) = database.read(oid)
            && object.kind().str() == what
        {
            return Ok(object.data().to_vec());
        }
        let mut git = Git::new(self.place, self.options);
        let answer = git.run(&["cat-file", what, &id.hex(len)], b"", None);
        self.programs += git.started;
        let answer = answer?;
        if !answer.ok {
            let hex = id.hex(len);
            if is_partial(self.place) {
                let fetch = if what == "tree" {
                    "ls-tree -r"
                } else {
                    "cat-file -p"
                };
                return Err(Stop::Incomplete(format!(
                    "the {what} {hex} is not here: this is a partial clone, and nothing is fetched for you; `git {fetch} {hex}` \
                     fetches what is missing of it"
                )));
            }
            return Err(Stop::Incomplete(format!(
                "the {what} {hex} cannot be read: {}",
                answer.complaint()
            )));
        }
        Ok(answer.stdout)
    }

    /// Returns the tree of a commit.
    pub(super) fn tree_of(&mut self, commit: &Id) -> Result<Id, Stop> {
        let text = self.read(commit, "commit")?;
        text.strip_prefix(b"tree ")
            .and_then(|rest| rest.get(..self.len() * 2))
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(Id::parse)
            .ok_or_else(|| Stop::Incomplete("HEAD's commit is damaged".to_owned()))
    }

    /// Reads a tree: mode, name and id of each entry.
    pub(super) fn tree(&mut self, id: &Id) -> Result<Vec<(u32, Vec<u8>, Id)>, Stop> {
        let bytes = self.read(id, "tree")?;
        entries(&bytes, self.len())
            .ok_or_else(|| Stop::Incomplete(format!("the tree {} is damaged", id.hex(self.len()))))
    }
}

/// Tells whether objects of a repository may be left with where it was cloned from (partial-clone, `remote.<name>.promisor`).
fn is_partial(place: &Place) -> bool {
    let config = crate::files::read_bounded(&place.common_dir.join("config"), 1 << 20);
    let text = config
        .ok()
        .flatten()
        .unwrap_or_default()
        .to_ascii_lowercase();
    ["promisor", "partialclone"]
        .iter()
        .any(|key| memchr::memmem::find(&text, key.as_bytes()).is_some())
}

fn open(common_dir: &Path, sha256: bool) -> Option<git2::Odb<'static>> {
    let format = if sha256 {
        git2::ObjectFormat::Sha256
    } else {
        git2::ObjectFormat::Sha1
    };
    let database = git2::Odb::new_ext(format).ok()?;
    database
        .add_disk_alternate(common_dir.join("objects").to_str()?)
        .ok()?;
    Some(database)
}

fn entries(mut bytes: &[u8], len: usize) -> Option<Vec<(u32, Vec<u8>, Id)>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let space = memchr::memchr(b' ', bytes)?;
        let mode = std::str::from_utf8(bytes.get(..space)?).ok()?;
        let mode = u32::from_str_radix(mode, 8).ok()?;
        let rest = bytes.get(space + 1..)?;
        let zero = memchr::memchr(0, rest)?;
        let name = rest.get(..zero)?.to_vec();
        let id = Id::of(rest.get(zero + 1..zero + 1 + len)?);
        bytes = rest.get(zero + 1 + len..)?;
        entries.push((mode, name, id));
    }
    Some(entries)
}
