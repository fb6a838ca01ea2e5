//! Whether git might convert a file's content (`gitattributes`): deliberately too often, never too rarely.
//!
//! Only what a line could switch on is kept, not what it switches off, and macros are taken at their name. A file that might
//! be converted and holds something to convert goes through git itself.
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gix_glob::Pattern;
use gix_glob::pattern::Case;
use gix_glob::wildmatch::Mode;

use super::Stop;
use super::files::{open_beneath, open_rules, read_outside};

/// What might be done to a file's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct May {
    /// Line ends are converted.
    pub(super) text: bool,
    /// `$Id$` is shortened.
    pub(super) ident: bool,
    /// A filter runs, or the encoding is changed.
    pub(super) filter: bool,
}

impl May {
    const ANYTHING: Self = Self {
        text: true,
        ident: true,
        filter: true,
    };

    fn join(&mut self, other: Self) {
        self.text |= other.text;
        self.ident |= other.ident;
        self.filter |= other.filter;
    }
}

#[derive(Debug)]
struct Line {
    /// `None` matches everything.
    pattern: Option<Pattern>,
    may: May,
    /// Other attributes that are set: they may be macros.
    others: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Level {
    parent: Option<Arc<Self>>,
    base: usize,
    lines: Vec<Line>,
    /// The file stands in the index alone, and was not read.
    unknown: bool,
}

/// All attributes of a look.
#[derive(Debug)]
pub(super) struct Attributes {
    autocrlf: bool,
    filters: Vec<Vec<u8>>,
    outer: Vec<Line>,
    macros: Mutex<BTreeMap<Vec<u8>, May>>,
    known: Mutex<HashMap<Vec<u8>, Arc<Level>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Attributes {
    /// Reads the attributes outside the work tree. `filters` are the names of the filters that have a program.
    pub(super) fn new(
        autocrlf: bool,
        filters: Vec<Vec<u8>>,
        files: &[PathBuf],
    ) -> Result<Self, Stop> {
        let mut attributes = Self {
            autocrlf,
            filters,
            outer: Vec::new(),
            macros: Mutex::default(),
            known: Mutex::default(),
        };
        for file in files {
            if let Some(text) = read_outside(file)? {
                let lines = attributes.parse(&text);
                attributes.outer.extend(lines);
            }
        }
        Ok(attributes)
    }

    /// Tells what might be done to the file `path` in the directory `dir`. `in_index` tells whether the index holds a path.
    pub(super) fn may(
        &self,
        root: BorrowedFd<'_>,
        dir: &[u8],
        path: &[u8],
        in_index: &(dyn Fn(&[u8]) -> bool + Sync),
    ) -> Result<May, Stop> {
        let level = self.level(root, dir, in_index)?;
        let mut may = May {
            text: self.autocrlf,
            ..May::default()
        };
        let macros = locked(&self.macros);
        let mut next = Some(&level);
        while let Some(level) = next {
            if level.unknown {
                return Ok(May::ANYTHING);
            }
            gather(&level.lines, path, level.base, &macros, &mut may);
            next = level.parent.as_ref();
        }
        gather(&self.outer, path, 0, &macros, &mut may);
        drop(macros);
        Ok(may)
    }

    fn level(
        &self,
        root: BorrowedFd<'_>,
        dir: &[u8],
        in_index: &(dyn Fn(&[u8]) -> bool + Sync),
    ) -> Result<Arc<Level>, Stop> {
        if let Some(level) = locked(&self.known).get(dir) {
            return Ok(Arc::clone(level));
        }
        let parent = if dir.is_empty() {
            None
        } else {
            let above = memchr::memrchr(b'/', dir)
                .map_or(&b""[..], |slash| dir.get(..slash).unwrap_or_default());
            Some(self.level(root, above, in_index)?)
        };
        let text = match open_beneath(root, dir)? {
            Some(folder) => open_rules(folder.as_fd(), c".gitattributes")?,
            None => None,
        };
        let unknown = text.is_none() && in_index(&super::index::join(dir, b".gitattributes"));
        let level = Arc::new(Level {
            parent,
            base: if dir.is_empty() { 0 } else { dir.len() + 1 },
            lines: text.map_or_else(Vec::new, |text| self.parse(&text)),
            unknown,
        });
        locked(&self.known).insert(dir.to_vec(), Arc::clone(&level));
        Ok(level)
    }

    fn parse(&self, text: &[u8]) -> Vec<Line> {
        let text = super::ignore::cut_at_zeros(text);
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        let mut lines = Vec::new();
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let (pattern, rest) = if let Some(quoted) = line.strip_prefix(b"\"") {
                // What a quoted pattern matches is not looked into: it may match everything.
                (None, quoted)
            } else {
                let end = line
                    .iter()
                    .position(u8::is_ascii_whitespace)
                    .unwrap_or(line.len());
                let (pattern, rest) = line.split_at_checked(end).unwrap_or((line, b""));
                (Some(pattern), rest)
            };
            let (may, others) = self.attributes(rest);
            if pattern.is_some_and(|pattern| pattern.starts_with(b"[attr]")) {
                let name = pattern.and_then(|pattern| pattern.strip_prefix(b"[attr]"));
                let (name, rest) = match name {
                    Some(b"") | None => {
                        let rest = rest.trim_ascii_start();
                        let end = rest
                            .iter()
                            .position(u8::is_ascii_whitespace)
                            .unwrap_or(rest.len());
                        rest.split_at_checked(end).unwrap_or((rest, b""))
                    }
                    Some(name) => (name, rest),
                };
                let (mut may, others) = self.attributes(rest);
                // A macro that names others may be any of them.
                if !others.is_empty() {
                    may.join(May::ANYTHING);
                }
                let mut macros = locked(&self.macros);
                macros.entry(name.to_vec()).or_default().join(may);
                continue;
            }
            if may == May::default() && others.is_empty() {
                continue;
            }
            let pattern = match pattern {
                // Such lines are without effect in git.
                Some([b'!', ..]) => continue,
                Some([b'\\', ..]) | None => None,
                Some(pattern) => match Pattern::from_bytes_without_negation(pattern) {
                    Some(pattern) => Some(pattern),
                    None => continue,
                },
            };
            lines.push(Line {
                pattern,
                may,
                others,
            });
        }
        lines
    }

    fn attributes(&self, rest: &[u8]) -> (May, Vec<Vec<u8>>) {
        let mut may = May::default();
        let mut others = Vec::new();
        for word in rest
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
        {
            if matches!(word.first(), Some(b'-' | b'!')) {
                continue;
            }
            let (name, value) = crate::fingerprint::git::split_at_byte(word, b'=')
                .map_or((word, None), |(name, value)| (name, Some(value)));
            match name {
                b"text" | b"eol" | b"crlf" => may.text = true,
                b"ident" => may.ident = true,
                b"working-tree-encoding" => may.filter = true,
                b"filter" => {
                    may.filter |= value
                        .is_some_and(|value| self.filters.iter().any(|filter| filter == value));
                }
                // Any name may be a macro, also those that mean something else.
                name => others.push(name.to_vec()),
            }
        }
        (may, others)
    }
}

fn gather(
    lines: &[Line],
    path: &[u8],
    base: usize,
    macros: &BTreeMap<Vec<u8>, May>,
    may: &mut May,
) {
    let path = path.get(base..).unwrap_or_default();
    let name = memchr::memrchr(b'/', path).map(|slash| slash + 1);
    for line in lines {
        let mut adds = line.may;
        for other in &line.others {
            if let Some(of_macro) = macros.get(other) {
                adds.join(*of_macro);
            }
        }
        if adds == May::default() {
            continue;
        }
        let matches = line.pattern.as_ref().is_none_or(|pattern| {
            pattern.matches_repo_relative_path(
                path.into(),
                name,
                Some(false),
                Case::Sensitive,
                Mode::NO_MATCH_SLASH_LITERAL,
            )
        });
        if matches {
            may.join(adds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_might_apply_is_never_missed() {
        let folder = tempfile::tempdir().unwrap();
        let root = rustix::fs::open(
            folder.path(),
            rustix::fs::OFlags::RDONLY,
            rustix::fs::Mode::empty(),
        )
        .unwrap();
        let text = b"* text=auto\n*.bin -text filter=big\n*.png filter=none\n[attr]odd ident\n\"a b\" working-tree-encoding=UTF-16\n*.o odd\n";
        crate::files::write_atomic(&folder.path().join(".gitattributes"), text, 0o600).unwrap();
        let attributes = Attributes::new(false, vec![b"big".to_vec()], &[]).unwrap();
        let may = |path: &str| {
            let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
            attributes
                .may(root.as_fd(), dir.as_bytes(), path.as_bytes(), &|_| false)
                .unwrap()
        };
        // The quoted line is taken to match everything.
        assert!(may("x").text && !may("x").ident && may("x").filter);
        assert!(may("d/x.o").ident);
        assert!(may("d/x.bin").filter);
    }
}
