//! What a walk does to a work tree.
#![expect(
    clippy::unnecessary_debug_formatting,
    reason = "names hold bytes that only the debug form shows"
)]
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Walk, gather};
use crate::fingerprint::repo::put;

const DIRS: &[&[u8]] = &[
    b"",
    b"",
    b"",
    b"a",
    b"a/b",
    b"a/b/c",
    b"a-b",
    b"a.b",
    b"sp ace",
    b"\xc3\xa9",
    b"\xff",
    b"ign",
    b"n",
];
const NAMES: &[&[u8]] = &[
    b"f0",
    b"f1",
    b"f2",
    b"x.txt",
    b"X.txt",
    b"y.log",
    b"z.bin",
    b"w.id",
    b"v.flt",
    b"new\nline",
    b"\xfe\"q",
    b"-dash",
    b"!bang",
    b"#hash",
    b"trail ",
    b"a",
    b"b",
    b"keep.log",
    b"\\back",
    b"aa[b]",
    b"+x",
    b"e.u16",
    b"r.own",
];
const RULES: &[&str] = &[
    "*.log",
    "!keep.log",
    "/a",
    "b/",
    "ign/",
    "ign/*",
    "!ign/f0",
    "**/c",
    "a/**/f1",
    "f[0-1]",
    "*",
    "!*/",
    "!f2",
    "x.txt",
    "\\#hash",
    "\\!bang",
    "trail\\ ",
    "trail ",
    "/a/b/",
    "a/b",
    "!a/b",
    "n",
    "# note",
    "",
    "*.t?t",
    "aa\\[b\\]",
    "é",
    "**",
    "/*",
    "!/a",
    "new*",
    "  f0",
    "f1\t",
];
const ATTRIBUTES: &[&str] = &[
    "* text=auto",
    "*.txt text",
    "*.bin -text",
    "*.id ident",
    "* -text",
    "*.flt filter=up",
    "x.txt eol=crlf",
    "*.log text=auto eol=lf",
    "[attr]mine text",
    "*.bin mine",
    "a/* text",
    "*.flt -filter",
    "b/ text",
    "*.u16 working-tree-encoding=UTF-16LE-BOM eol=lf",
    "*.txt crlf=input",
    "*.txt -crlf",
    "* !text",
    "[attr]binary text",
    "[attr]diff ident",
    "[attr]two mine",
    "*.log two",
    "f* diff",
    "x.* binary",
    "\"new\\nline\" text",
    "f0 -mine",
    "**/f1 text=auto",
    "*.own filter=own",
    "z.bin filter=own ident",
    "f2 filter=none",
];

impl Walk {
    fn some_path(&mut self) -> Vec<u8> {
        let dir = self.random.choose(DIRS);
        let name = self.random.choose(NAMES);
        if dir.is_empty() {
            name.to_vec()
        } else {
            [dir, b"/", name].concat()
        }
    }

    /// Chooses a file, link or folder that is there.
    pub(super) fn present(&mut self, want: impl Fn(&std::fs::Metadata) -> bool) -> Option<PathBuf> {
        let mut found = Vec::new();
        gather(&self.repo.root, &mut |path, meta| {
            if want(meta) {
                found.push(path.to_path_buf());
            }
        });
        found.sort();
        (!found.is_empty()).then(|| found.swap_remove(self.random.below(found.len())))
    }

    fn file(&mut self) -> Option<PathBuf> {
        self.present(std::fs::Metadata::is_file)
    }

    fn dir(&mut self) -> Option<PathBuf> {
        self.present(std::fs::Metadata::is_dir)
    }

    fn content(&mut self) -> Vec<u8> {
        let mut len = self.random.choose(&[0, 1, 3, 8, 8, 8, 40, 5000]);
        if self.random.below(100) == 0 {
            // Longer than what is read at once, with something to convert across the seam.
            len = self
                .random
                .choose(&[1 << 16, (1 << 20) - 1, 1 << 20, (1 << 20) + 7]);
        }
        let letters: &[u8] = self.random.choose(&[
            b"abc\n".as_slice(),
            b"ab\r\n",
            b"a\0b\n",
            b"$Id$\n",
            b"$Id: x $\r\n",
            b"\xff\xfea\0\n\0",
        ]);
        letters
            .iter()
            .copied()
            .cycle()
            .skip(self.random.below(3))
            .take(len)
            .collect()
    }

    pub(super) fn write_file(&mut self) {
        let path = self.some_path();
        let content = self.content();
        self.say(format!("write {}", path.escape_ascii()));
        let path = self.repo.path(&path);
        if make_way(&self.repo.root, &path) {
            put(&path, &content);
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm a mutation")]
    pub(super) fn mutate(&mut self) {
        match self.random.below(62) {
            0..=5 => self.write_file(),
            6..=9 => self.same_size(false),
            10 | 11 => self.same_size(true),
            12 => {
                if let Some(path) = self.file() {
                    self.say(format!("chmod {path:?}"));
                    let mode = self.random.choose(&[0o644, 0o755, 0o600, 0o744]);
                    drop(std::fs::set_permissions(
                        &path,
                        std::fs::Permissions::from_mode(mode),
                    ));
                }
            }
            13 | 14 => {
                if let Some(from) = self.present(|_| true) {
                    let to = self.some_path();
                    self.say(format!("rename {from:?} to {}", to.escape_ascii()));
                    let to = self.repo.path(to);
                    rename(&from, &to);
                }
            }
            15 => {
                if let (Some(a), Some(b)) = (self.file(), self.file()) {
                    self.say(format!("swap {a:?} {b:?}"));
                    let middle = self.repo.common("takeup-swap");
                    rename(&a, &middle);
                    rename(&b, &a);
                    rename(&middle, &b);
                }
            }
            16 | 17 => {
                if let Some(path) = self.file() {
                    self.say(format!("delete {path:?}"));
                    drop(std::fs::remove_file(path));
                }
            }
            18 => {
                if let Some(path) = self.dir() {
                    self.say(format!("delete folder {path:?}"));
                    drop(std::fs::remove_dir_all(path));
                }
            }
            19 | 20 => {
                if let Some(path) = self.present(|_| true) {
                    let target = self
                        .random
                        .choose(&["f0", "a", "../a", "/nowhere/at/all", "a/b"]);
                    self.say(format!("{path:?} becomes a link to {target}"));
                    remove(&path);
                    drop(std::os::unix::fs::symlink(target, path));
                }
            }
            21 => {
                if let Some(path) = self.file() {
                    self.say(format!("{path:?} becomes a folder"));
                    remove(&path);
                    put(&path.join("inner"), b"x\n");
                }
            }
            22 => {
                if let Some(path) = self.dir() {
                    self.say(format!("{path:?} becomes a file"));
                    remove(&path);
                    put(&path, b"y\n");
                }
            }
            23..=25 => {
                let rules = self.lines(RULES);
                let path = match self.random.below(6) {
                    0 => self.repo.common("info/exclude"),
                    1 => self.repo.base().join("home/.config/git/ignore"),
                    2 => self.repo.path(".gitignore"),
                    _ => self
                        .dir()
                        .unwrap_or_else(|| self.repo.root.clone())
                        .join(".gitignore"),
                };
                self.say(format!("rules {path:?}: {rules:?}"));
                if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
                    remove(&path);
                }
                put(&path, rules.as_bytes());
            }
            26 => {
                let path = self
                    .dir()
                    .unwrap_or_else(|| self.repo.root.clone())
                    .join(".gitignore");
                self.say(format!("no rules {path:?}"));
                remove(&path);
            }
            27 => {
                let lines = self.lines(ATTRIBUTES);
                let path = match self.random.below(6) {
                    0 => self.repo.common("info/attributes"),
                    5 => self.repo.base().join("home/.config/git/attributes"),
                    1 | 2 => self
                        .dir()
                        .unwrap_or_else(|| self.repo.root.clone())
                        .join(".gitattributes"),
                    _ => self.repo.path(".gitattributes"),
                };
                self.say(format!("attributes {path:?}: {lines:?}"));
                if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
                    remove(&path);
                }
                put(&path, lines.as_bytes());
            }
            28 => {
                let (key, value) = self.random.choose(&[
                    ("core.fileMode", "false"),
                    ("core.fileMode", "true"),
                    ("core.autocrlf", "input"),
                    ("core.autocrlf", "false"),
                    ("core.autocrlf", "true"),
                    ("core.eol", "crlf"),
                    ("core.safecrlf", "true"),
                    ("core.trustctime", "false"),
                    ("core.checkStat", "minimal"),
                    ("core.untrackedCache", "true"),
                    ("index.skipHash", "true"),
                    ("feature.manyFiles", "true"),
                    ("core.symlinks", "false"),
                    ("core.symlinks", "true"),
                ]);
                self.git(&["config", key, value]);
            }
            29..=33 => self.stage(),
            34 | 35 => {
                self.git(&["add", "-A"]);
                self.git(&["commit", "-q", "-m", "m"]);
            }
            36 => self.git(&["commit", "-q", "-a", "-m", "m"]),
            37 => {
                let branch = self.random.choose(&["one", "two", "main"]);
                self.git(&["checkout", "-q", "-f", "-B", branch]);
            }
            38 => {
                let branch = self.random.choose(&["one", "two", "main"]);
                self.git(&["checkout", "-q", "-f", branch]);
            }
            39 => {
                let branch = self.random.choose(&["one", "two", "main"]);
                self.git(&["merge", "-q", "--no-edit", branch]);
            }
            40 => self.git(&["reset", "-q", "--hard"]),
            41 => {
                let args = self.random.choose(&[
                    &["stash", "-u"],
                    &["stash", "pop"],
                    &["merge", "--abort"],
                ]);
                self.git(args);
            }
            42 => {
                let dir = self.random.choose(&["a", "a/b", "sp ace", "ign"]);
                match self.random.below(4) {
                    0 => self.git(&["sparse-checkout", "disable"]),
                    1 => self.git(&["sparse-checkout", "set", "--cone", "--sparse-index", dir]),
                    2 => self.git(&["sparse-checkout", "set", "--no-cone", dir]),
                    _ => self.git(&["sparse-checkout", "set", "--cone", "--no-sparse-index", dir]),
                }
            }
            43 | 44 => {
                if let Some(path) = self.file() {
                    let flag = self.random.choose(&[
                        "--skip-worktree",
                        "--no-skip-worktree",
                        "--assume-unchanged",
                        "--no-assume-unchanged",
                    ]);
                    self.say(format!("{flag} {path:?}"));
                    drop(self.repo.try_git(
                        &self.repo.root,
                        &[
                            OsStr::new("update-index"),
                            OsStr::new(flag),
                            path.as_os_str(),
                        ],
                    ));
                }
            }
            45 => {
                let version = self.random.choose(&["2", "3", "4"]);
                self.git(&["update-index", "--index-version", version]);
            }
            46 => self.nested(),
            47 => {
                let path = self.some_path();
                self.say(format!("pipe or hard link {}", path.escape_ascii()));
                let path = self.repo.path(path);
                if path.symlink_metadata().is_err() && path.parent().is_some_and(Path::is_dir) {
                    if self.random.below(2) == 0 {
                        if let Some(other) = self.file() {
                            drop(std::fs::hard_link(other, path));
                        }
                    } else {
                        drop(std::process::Command::new("mkfifo").arg(path).status());
                    }
                }
            }
            48 => {
                self.say("runtime folder");
                let name = self
                    .random
                    .choose(&[".agent-context/x", ".agent-context/y/z"]);
                let path = self.repo.path(name);
                if make_way(&self.repo.root, &path) {
                    put(&path, b"1");
                }
                if self.random.below(3) == 0 {
                    self.git(&["add", "-f", ".agent-context"]);
                }
            }
            49 => {
                self.say("touch all");
                self.touch_all();
            }
            50 => self.git(&["status", "--short"]),
            51 => self.damage_cache(),
            52..=54 => self.submodule(),
            55 => self.worktree(),
            56 => self.clock(),
            57 => self.index_form(),
            58 | 59 => self.history(),
            _ => self.user_settings(),
        }
    }

    fn lines(&mut self, from: &[&str]) -> String {
        let mut text = String::new();
        for _ in 0..=self.random.below(4) {
            text.push_str(self.random.choose(from));
            text.push('\n');
        }
        text
    }

    pub(super) fn git(&mut self, args: &[&str]) {
        self.say(format!("git {args:?}"));
        drop(self.repo.try_git(&self.repo.root, args));
    }

    /// Writes other bytes of the same length, at once after git or we looked, perhaps with the times put back.
    fn same_size(&mut self, put_back: bool) {
        let Some(path) = self.file() else { return };
        let Ok(meta) = path.metadata() else { return };
        let Ok(mut bytes) = std::fs::read(&path) else {
            return;
        };
        match self.random.below(4) {
            0 => {
                let path = path.clone();
                drop(
                    self.repo
                        .try_git(&self.repo.root, &[OsStr::new("add"), path.as_os_str()]),
                );
            }
            1 => drop(self.repo.try_git(&self.repo.root, &["status", "--short"])),
            2 => drop(self.cached()),
            _ => {}
        }
        let new = self.random.choose(b"pqr");
        for byte in bytes.iter_mut().filter(|byte| byte.is_ascii_lowercase()) {
            *byte = new;
        }
        self.say(format!("same size {path:?}, put back {put_back}"));
        put(&path, &bytes);
        if put_back && let Ok(file) = std::fs::File::options().write(true).open(&path) {
            drop(file.set_modified(meta.modified().expect("a time")));
        }
    }

    fn stage(&mut self) {
        let Some(path) = self.present(|_| true) else {
            return;
        };
        let args: &[&str] = match self.random.below(6) {
            0 | 1 => &["add"],
            2 => &["add", "-N"],
            3 => &["rm", "-r", "-q", "--cached"],
            4 => &["reset", "-q", "--"],
            _ => &["add", "-f"],
        };
        self.say(format!("git {args:?} {path:?}"));
        let args: Vec<&OsStr> = args
            .iter()
            .map(OsStr::new)
            .chain([path.as_os_str()])
            .collect();
        drop(self.repo.try_git(&self.repo.root, &args));
    }

    fn damage_cache(&mut self) {
        let mut caches: Vec<_> = std::fs::read_dir(self.repo.own("takeup"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        caches.sort();
        if caches.is_empty() {
            return;
        }
        let path = caches.swap_remove(self.random.below(caches.len()));
        let Ok(mut bytes) = std::fs::read(&path) else {
            return;
        };
        match self.random.below(4) {
            0 => {
                self.say("cache: a byte");
                let at = self.random.below(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 0x55;
                }
                put(&path, &bytes);
            }
            1 => {
                self.say("cache: cut");
                bytes.truncate(self.random.below(bytes.len()));
                put(&path, &bytes);
            }
            2 => {
                self.say("cache: kept aside");
                self.old_cache = Some(bytes);
            }
            _ => {
                self.say("cache: an old one");
                if let Some(old) = &self.old_cache {
                    put(&path, old);
                }
            }
        }
    }

    pub(super) fn touch_all(&self) {
        gather(&self.repo.root, &mut |path, meta| {
            if meta.is_file()
                && let Ok(file) = std::fs::File::options().append(true).open(path)
            {
                drop(
                    file.set_modified(
                        std::fs::metadata(self.repo.base())
                            .and_then(|m| m.modified())
                            .expect("a time"),
                    ),
                );
            }
        });
    }
}

pub(super) fn remove(path: &Path) {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => drop(std::fs::remove_dir_all(path)),
        Ok(_) => drop(std::fs::remove_file(path)),
        Err(_) => {}
    }
}

#[expect(clippy::disallowed_methods, reason = "a rename of the tree under test")]
fn rename(from: &Path, to: &Path) {
    // Some renames cannot be; that is part of the walk.
    drop(std::fs::rename(from, to));
}

/// Makes the folders of a path below the root real ones, and the path free for a file; `false` where a folder stands there.
pub(super) fn make_way(root: &Path, path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(root) else {
        return false;
    };
    let mut at = root.to_path_buf();
    for part in inside.parent().into_iter().flat_map(Path::components) {
        at.push(part);
        match at.symlink_metadata() {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => {
                remove(&at);
                drop(std::fs::create_dir_all(&at));
            }
            Err(_) => drop(std::fs::create_dir_all(&at)),
        }
    }
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => false,
        Ok(meta) if meta.is_file() => true,
        Ok(_) => {
            remove(path);
            true
        }
        Err(_) => true,
    }
}
