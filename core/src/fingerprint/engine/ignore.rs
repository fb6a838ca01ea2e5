//! Ignore rules (`gitignore`), loaded only for directories that hold a name the index does not know.
use std::borrow::Cow;
use std::collections::HashMap;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use gix_glob::Pattern;
use gix_glob::pattern::Case;
use gix_glob::wildmatch::Mode;

use super::Stop;
use super::files::{is_absent, open_beneath, open_rules};

/// Rules of one directory, and of those above it.
#[derive(Debug)]
pub(super) struct Rules {
    parent: Option<Arc<Self>>,
    /// How many bytes of a path belong to this directory, with the slash behind it.
    base: usize,
    patterns: Vec<Pattern>,
    /// The directory is ignored, and with it all in it that the index does not know.
    ignored: bool,
}

/// All rules of a look.
#[derive(Debug)]
pub(super) struct Ignore {
    /// `info/exclude`, then the user's file.
    outer: [Vec<Pattern>; 2],
    known: Mutex<HashMap<Vec<u8>, Arc<Rules>>>,
}

/// Reads the rules of a `.gitignore` that is absent on disk and stands in the index alone.
pub(super) type FromIndex<'a> = dyn Fn(&[u8]) -> Result<Option<Vec<u8>>, Stop> + Sync + 'a;

impl Ignore {
    /// Reads the rules outside the work tree.
    pub(super) fn new(exclude: &Path, user: Option<&Path>) -> Result<Self, Stop> {
        let load = |path: &Path| -> Result<Vec<Pattern>, Stop> {
            Ok(super::files::read_outside(path)?.map_or_else(Vec::new, |text| parse(&text)))
        };
        Ok(Self {
            outer: [load(exclude)?, user.map_or_else(|| Ok(Vec::new()), load)?],
            known: Mutex::default(),
        })
    }

    /// Returns the rules for the names in a directory.
    pub(super) fn rules(
        &self,
        root: BorrowedFd<'_>,
        dir: &[u8],
        from_index: &FromIndex<'_>,
    ) -> Result<Arc<Rules>, Stop> {
        if let Some(rules) = self.lock().get(dir) {
            return Ok(Arc::clone(rules));
        }
        let parent = if dir.is_empty() {
            None
        } else {
            let above = memchr::memrchr(b'/', dir)
                .map_or(&b""[..], |slash| dir.get(..slash).unwrap_or_default());
            Some(self.rules(root, above, from_index)?)
        };
        let ignored = match &parent {
            None => false,
            Some(parent) => self.is_ignored(parent, dir, true),
        };
        let mut patterns = Vec::new();
        if !ignored {
            let folder: Option<OwnedFd> = open_beneath(root, dir)?;
            let text = match &folder {
                Some(folder) => open_rules(folder.as_fd(), c".gitignore")?,
                None => None,
            };
            // What is there is looked at, also under a flag; a link or a folder of that name holds no rules.
            let absent = folder
                .as_ref()
                .is_none_or(|folder| is_absent(folder.as_fd(), c".gitignore"));
            let text = match text {
                None if absent => from_index(&super::index::join(dir, b".gitignore"))?,
                text => text,
            };
            patterns = text.map_or_else(Vec::new, |text| parse(&text));
        }
        let rules = Arc::new(Rules {
            parent,
            base: if dir.is_empty() { 0 } else { dir.len() + 1 },
            patterns,
            ignored,
        });
        self.lock().insert(dir.to_vec(), Arc::clone(&rules));
        Ok(rules)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Vec<u8>, Arc<Rules>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether a path in the directory of `rules` is ignored.
    pub(super) fn is_ignored(&self, rules: &Arc<Rules>, path: &[u8], is_dir: bool) -> bool {
        if rules.ignored {
            return true;
        }
        let mut level = Some(rules);
        while let Some(rules) = level {
            if let Some(answer) = last_match(&rules.patterns, path, rules.base, is_dir) {
                return answer;
            }
            level = rules.parent.as_ref();
        }
        self.outer
            .iter()
            .find_map(|patterns| last_match(patterns, path, 0, is_dir))
            .unwrap_or(false)
    }
}

fn last_match(patterns: &[Pattern], path: &[u8], base: usize, is_dir: bool) -> Option<bool> {
    let path = path.get(base..)?;
    let name = memchr::memrchr(b'/', path).map(|slash| slash + 1);
    patterns
        .iter()
        .rev()
        .find(|pattern| {
            pattern.matches_repo_relative_path(
                path.into(),
                name,
                Some(is_dir),
                Case::Sensitive,
                Mode::NO_MATCH_SLASH_LITERAL,
            )
        })
        .map(|pattern| !pattern.is_negative())
}

/// Cuts each line at its first zero byte: for git, lines of rules are strings of C.
pub(super) fn cut_at_zeros(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(0, text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut cut = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match memchr::memchr(0, line) {
            Some(zero) => {
                cut.extend_from_slice(line.get(..zero).unwrap_or_default());
                cut.push(b'\n');
            }
            None => cut.extend_from_slice(line),
        }
    }
    Cow::Owned(cut)
}

fn parse(text: &[u8]) -> Vec<Pattern> {
    // git knows the mark of UTF-8 alone. The parser would take off those of other encodings as well, were they in front.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let text = [b"\n", cut_at_zeros(text).as_ref()].concat();
    gix_ignore::parse(&text, false)
        .map(|(pattern, _, _)| pattern)
        .collect()
}
