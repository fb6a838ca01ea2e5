//! The settings of git that decide what the tree is.
//!
//! Plain files are read here (`git-config`, "CONFIGURATION FILE"). Where a file includes another, or where it is not
//! certain which system-wide file this git reads, git itself is asked, which costs a program.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::Stop;
use super::stat::Meta;
use crate::env::Env;
use crate::fingerprint::git::{Git, split_at_byte};
use crate::fingerprint::options::Options;
use crate::repository::Place;

/// The largest file of settings that is read.
const LARGEST: u64 = 64 << 20;

/// The settings.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Whether the executable bit counts.
    pub(super) file_mode: bool,
    /// Whether links are links, and not files that hold their target.
    pub(super) symlinks: bool,
    /// Whether line ends are converted without an attribute.
    pub(super) autocrlf: bool,
    /// Whether object ids are SHA-256.
    pub(super) sha256: bool,
    /// The user's file of ignore rules.
    pub(super) excludes: Option<PathBuf>,
    /// The system's and the user's files of attributes.
    pub(super) attributes: Vec<PathBuf>,
    /// Names of the clean filters that have a program, and whether the repository itself configures it.
    pub(super) filters: BTreeMap<Vec<u8>, bool>,
}

/// Where a value was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    User,
    Repository,
}

/// One value; `None` where a key stands alone, which means true.
type Value = (Scope, Vec<u8>, Option<Vec<u8>>);

/// By part of a filter: whether it has a value, and whether the repository gave it.
type Parts<'a> = BTreeMap<&'a [u8], (bool, bool)>;

/// A key and its value.
type Pair = (Vec<u8>, Option<Vec<u8>>);

/// Why the files alone do not tell.
enum Trouble {
    Include,
    Syntax(PathBuf),
    Unreadable(PathBuf, String),
}

impl Settings {
    /// Reads the settings. The number of programs that were started is added to `programs`.
    pub(super) fn read(
        place: &Place,
        options: &Options<'_>,
        folder: Option<&Path>,
        programs: &mut u64,
    ) -> Result<Self, Stop> {
        let program = program(options.env);
        let system = match system_file(options.env, program.as_deref()) {
            System::Unknown => said_by_git(place, options, program.as_deref(), folder, programs)?,
            known @ (System::None | System::File(_)) => known,
        };
        let read = match system {
            System::None => Some(files(place, options.env, None)),
            System::File(path) => Some(files(place, options.env, Some(&path))),
            System::Unknown => None,
        };
        let values = match read {
            Some(Ok(values)) => values,
            Some(Err(Trouble::Include)) | None => asked(place, options, programs)?,
            Some(Err(Trouble::Syntax(path))) => {
                return Err(Stop::Unsupported(format!(
                    "{} cannot be parsed",
                    path.display()
                )));
            }
            Some(Err(Trouble::Unreadable(path, why))) => {
                return Err(Stop::Unsupported(format!("{}: {why}", path.display())));
            }
        };
        Self::of(&values, place, options.env, program.as_deref())
    }

    fn of(
        values: &[Value],
        place: &Place,
        env: &Env,
        program: Option<&Path>,
    ) -> Result<Self, Stop> {
        let last = |key: &str| {
            values
                .iter()
                .rev()
                .find(|(_, name, _)| name == key.as_bytes())
                .map(|(_, _, value)| value.as_deref())
        };
        let bool_of = |key: &str, default: bool| match last(key) {
            None => Ok(default),
            Some(value) => boolean(value)
                .ok_or_else(|| Stop::Unsupported(format!("the setting {key} is no boolean"))),
        };
        for (_, key, _) in values {
            if let Some(name) = key.strip_prefix(b"extensions.")
                && !matches!(
                    name,
                    b"objectformat"
                        | b"worktreeconfig"
                        | b"partialclone"
                        | b"noop"
                        | b"noop-v1"
                        | b"preciousobjects"
                        | b"refstorage"
                        | b"relativeworktrees"
                        | b"compatobjectformat"
                )
            {
                return Err(Stop::Unsupported(
                    "the repository has an extension that is not known".to_owned(),
                ));
            }
        }
        if last("attr.tree").is_some() {
            return Err(Stop::Unsupported(
                "attributes are read from a tree (attr.tree)".to_owned(),
            ));
        }
        if bool_of("core.ignorecase", false)? {
            return Err(Stop::Unsupported(
                "the case of names is ignored (core.ignoreCase)".to_owned(),
            ));
        }
        let sha256 = match last("extensions.objectformat").flatten() {
            None => false,
            Some(name) if name.eq_ignore_ascii_case(b"sha1") => false,
            Some(name) if name.eq_ignore_ascii_case(b"sha256") => true,
            Some(_) => {
                return Err(Stop::Unsupported(
                    "the object format is not known".to_owned(),
                ));
            }
        };
        let autocrlf = match last("core.autocrlf") {
            None => false,
            Some(Some(value)) if value.eq_ignore_ascii_case(b"input") => true,
            Some(_) => bool_of("core.autocrlf", false)?,
        };
        let mut filters: BTreeMap<Vec<u8>, Parts<'_>> = BTreeMap::new();
        for (scope, key, value) in values {
            if let Some(rest) = key.strip_prefix(b"filter.")
                && let Some(dot) = memchr::memrchr(b'.', rest)
                && let Some((name, part)) = rest.split_at_checked(dot)
                && matches!(part, b".clean" | b".process")
            {
                let set = value.as_ref().is_some_and(|value| !value.is_empty());
                filters
                    .entry(name.to_vec())
                    .or_default()
                    .insert(part, (set, *scope == Scope::Repository));
            }
        }
        let filters = filters
            .into_iter()
            .filter_map(|(name, parts)| {
                let set: Vec<bool> = parts
                    .values()
                    .filter(|(set, _)| *set)
                    .map(|(_, repository)| *repository)
                    .collect();
                (!set.is_empty()).then(|| (name, set.contains(&true)))
            })
            .collect();
        let path_of = |key: &str, default: &str| match last(key) {
            None => Ok(config_home(env).map(|home| home.join(default))),
            Some(Some(b"")) => Ok(None),
            Some(Some(value)) => expand(value, place, env).map(Some),
            Some(None) => Err(Stop::Unsupported(format!("the setting {key} has no value"))),
        };
        let mut attributes = Vec::new();
        if !env.text("GIT_ATTR_NOSYSTEM").is_some_and(truthy) {
            // Which of them git reads depends on how it was built; one too many is no harm.
            attributes.push(PathBuf::from("/etc/gitattributes"));
            attributes.push(PathBuf::from("/usr/local/etc/gitattributes"));
            if let Some(prefix) = program.and_then(Path::parent).and_then(Path::parent) {
                attributes.push(prefix.join("etc/gitattributes"));
            }
        }
        attributes.extend(path_of("core.attributesfile", "git/attributes")?);
        Ok(Self {
            file_mode: bool_of("core.filemode", true)?,
            symlinks: bool_of("core.symlinks", true)?,
            autocrlf,
            sha256,
            excludes: path_of("core.excludesfile", "git/ignore")?,
            attributes,
            filters,
        })
    }
}

fn truthy(text: &str) -> bool {
    boolean(Some(text.as_bytes())).unwrap_or(true)
}

/// Reads a boolean as git does: `None` where it is none.
fn boolean(value: Option<&[u8]>) -> Option<bool> {
    let Some(value) = value else {
        return Some(true);
    };
    let text = std::str::from_utf8(value).ok()?.to_ascii_lowercase();
    match text.as_str() {
        "true" | "yes" | "on" => Some(true),
        "" | "false" | "no" | "off" => Some(false),
        number => number.parse::<i64>().ok().map(|number| number != 0),
    }
}

fn config_home(env: &Env) -> Option<PathBuf> {
    env.var("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| env.var("HOME").map(|home| Path::new(home).join(".config")))
}

fn expand(value: &[u8], place: &Place, env: &Env) -> Result<PathBuf, Stop> {
    let unsupported = || {
        Stop::Unsupported(
            "a path in the settings names another user or git's own folder".to_owned(),
        )
    };
    if let Some(rest) = value.strip_prefix(b"~/") {
        let home = env.var("HOME").ok_or_else(unsupported)?;
        return Ok(Path::new(home).join(OsStr::from_bytes(rest)));
    }
    if value.starts_with(b"~") || value.starts_with(b"%(") || value.starts_with(b":(") {
        return Err(unsupported());
    }
    Ok(place.root.join(OsStr::from_bytes(value)))
}

/// The system-wide file of settings.
enum System {
    None,
    File(PathBuf),
    /// Only git knows: another build than the distribution's keeps it elsewhere.
    Unknown,
}

/// Finds the git program as it is found when it is started.
fn program(env: &Env) -> Option<PathBuf> {
    std::env::split_paths(env.var("PATH")?)
        .map(|folder| folder.join("git"))
        .find(|path| path.is_file())
}

/// Asks git where its system-wide settings are, once for each git program.
fn said_by_git(
    place: &Place,
    options: &Options<'_>,
    program: Option<&Path>,
    folder: Option<&Path>,
    programs: &mut u64,
) -> Result<System, Stop> {
    let Some(meta) = program
        .and_then(|program| rustix::fs::stat(program).ok())
        .map(|stat| Meta::of(&stat))
    else {
        return Ok(System::Unknown);
    };
    let noted = folder.map(|folder| folder.join("look-git.cache"));
    if let Some(path) = noted
        .as_deref()
        .filter(|_| options.use_cache && !options.verify)
        && let Some(file) = super::cache::system_file(path, &meta)
    {
        return Ok(System::File(file));
    }
    let mut git = Git::new(place, options);
    let answer = git.run(&["var", "GIT_CONFIG_SYSTEM"], b"", None)?;
    *programs += git.started;
    let file = answer.stdout.strip_suffix(b"\n").unwrap_or_default();
    // Before 2.42 git does not say.
    if !answer.ok || !file.starts_with(b"/") || file.contains(&b'\n') {
        return Ok(System::Unknown);
    }
    if let Some(path) = noted.filter(|_| options.write_cache) {
        super::cache::store_system_file(&path, &meta, file);
    }
    Ok(System::File(OsStr::from_bytes(file).into()))
}

fn system_file(env: &Env, program: Option<&Path>) -> System {
    if env.text("GIT_CONFIG_NOSYSTEM").is_some_and(truthy) {
        return System::None;
    }
    if let Some(path) = env.var("GIT_CONFIG_SYSTEM") {
        return System::File(PathBuf::from(path));
    }
    match program.and_then(Path::to_str) {
        Some("/usr/bin/git" | "/bin/git") => System::File(PathBuf::from("/etc/gitconfig")),
        _ => System::Unknown,
    }
}

fn files(place: &Place, env: &Env, system: Option<&Path>) -> Result<Vec<Value>, Trouble> {
    let mut values = Vec::new();
    let mut add = |path: &Path, scope: Scope| -> Result<(), Trouble> {
        let Some(text) = load(path)? else {
            return Ok(());
        };
        for (key, value) in parse(&text).ok_or_else(|| Trouble::Syntax(path.to_path_buf()))? {
            if key.starts_with(b"include.") || key.starts_with(b"includeif.") {
                return Err(Trouble::Include);
            }
            values.push((scope, key, value));
        }
        Ok(())
    };
    if let Some(path) = system {
        add(path, Scope::User)?;
    }
    if let Some(path) = env.var("GIT_CONFIG_GLOBAL") {
        add(Path::new(path), Scope::User)?;
    } else {
        if let Some(home) = config_home(env) {
            add(&home.join("git/config"), Scope::User)?;
        }
        if let Some(home) = env.var("HOME") {
            add(&Path::new(home).join(".gitconfig"), Scope::User)?;
        }
    }
    add(&place.common_dir.join("config"), Scope::Repository)?;
    let own = values
        .iter()
        .rev()
        .find(|(_, key, _)| key == b"extensions.worktreeconfig")
        .is_some_and(|(_, _, value)| boolean(value.as_deref()).unwrap_or(false));
    if own {
        let path = place.git_dir.join("config.worktree");
        if let Some(text) = load(&path)? {
            for (key, value) in parse(&text).ok_or(Trouble::Syntax(path))? {
                if key.starts_with(b"include.") || key.starts_with(b"includeif.") {
                    return Err(Trouble::Include);
                }
                values.push((Scope::Repository, key, value));
            }
        }
    }
    Ok(values)
}

/// Reads a file of settings, which may be a link: people keep theirs elsewhere.
fn load(path: &Path) -> Result<Option<Vec<u8>>, Trouble> {
    let unreadable = |why: String| Trouble::Unreadable(path.to_path_buf(), why);
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error.to_string())),
    };
    // How people say "no settings".
    if real == Path::new("/dev/null") {
        return Ok(None);
    }
    crate::files::read_bounded(&real, LARGEST).map_err(|issue| unreadable(issue.message))
}

fn asked(place: &Place, options: &Options<'_>, programs: &mut u64) -> Result<Vec<Value>, Stop> {
    let mut git = Git::new(place, options);
    let listing = git.must(&["config", "--list", "--show-scope", "-z"], b"", None)?;
    *programs += git.started;
    let mut values = Vec::new();
    let mut fields = listing.split(|byte| *byte == 0);
    while let (Some(scope), Some(pair)) = (fields.next(), fields.next()) {
        if scope == b"command" {
            continue;
        }
        let scope = if matches!(scope, b"local" | b"worktree") {
            Scope::Repository
        } else {
            Scope::User
        };
        let (key, value) = split_at_byte(pair, b'\n')
            .map_or((pair, None), |(key, value)| (key, Some(value.to_vec())));
        values.push((scope, key.to_vec(), value));
    }
    Ok(values)
}

/// Parses a file of settings; `None` where it is not well formed. Keys come with section and name in lower case.
fn parse(text: &[u8]) -> Option<Vec<Pair>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut values = Vec::new();
    let mut section: Vec<u8> = Vec::new();
    let mut bytes = Bytes { text, at: 0 };
    while let Some(byte) = bytes.next() {
        match byte {
            b'#' | b';' => bytes.skip_line(),
            byte if byte.is_ascii_whitespace() => {}
            b'[' => section = header(&mut bytes)?,
            byte if byte.is_ascii_alphabetic() => {
                if section.is_empty() {
                    return None;
                }
                let mut key = section.clone();
                key.push(b'.');
                key.push(byte.to_ascii_lowercase());
                while let Some(byte) = bytes.peek()
                    && (byte.is_ascii_alphanumeric() || byte == b'-')
                {
                    key.push(byte.to_ascii_lowercase());
                    bytes.at += 1;
                }
                while matches!(bytes.peek(), Some(b' ' | b'\t')) {
                    bytes.at += 1;
                }
                match bytes.next() {
                    None | Some(b'\n') => values.push((key, None)),
                    Some(b'\r') if bytes.peek() == Some(b'\n') => values.push((key, None)),
                    Some(b'#' | b';') => {
                        bytes.skip_line();
                        values.push((key, None));
                    }
                    Some(b'=') => {
                        let value = value(&mut bytes)?;
                        values.push((key, Some(value)));
                    }
                    Some(_) => return None,
                }
            }
            _ => return None,
        }
    }
    Some(values)
}

struct Bytes<'a> {
    text: &'a [u8],
    at: usize,
}

impl Bytes<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip_line(&mut self) {
        while let Some(byte) = self.next() {
            if byte == b'\n' {
                break;
            }
        }
    }
}

/// Reads a section's header behind its bracket.
fn header(bytes: &mut Bytes<'_>) -> Option<Vec<u8>> {
    let mut section = Vec::new();
    loop {
        match bytes.next()? {
            b']' => return (!section.is_empty()).then_some(section),
            byte if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.' => {
                section.push(byte.to_ascii_lowercase());
            }
            b' ' | b'\t' => break,
            _ => return None,
        }
    }
    while matches!(bytes.peek(), Some(b' ' | b'\t')) {
        bytes.at += 1;
    }
    if bytes.next()? != b'"' {
        return None;
    }
    section.push(b'.');
    loop {
        match bytes.next()? {
            b'"' => break,
            b'\n' => return None,
            b'\\' => section.push(bytes.next().filter(|byte| *byte != b'\n')?),
            byte => section.push(byte),
        }
    }
    (bytes.next()? == b']').then_some(section)
}

/// Reads a value behind its `=`, to the end of its line.
fn value(bytes: &mut Bytes<'_>) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    // How much of it stays when white space at the end is taken off.
    let mut kept = 0;
    let mut quoted = false;
    loop {
        match bytes.next() {
            None => break,
            Some(b'\n') => {
                if quoted {
                    return None;
                }
                break;
            }
            Some(b'\r') if bytes.peek() == Some(b'\n') => {}
            Some(b'#' | b';') if !quoted => {
                bytes.skip_line();
                break;
            }
            Some(b'"') => {
                quoted = !quoted;
                kept = value.len();
            }
            Some(b'\\') => {
                match bytes.next()? {
                    b'\n' => continue,
                    b'\r' if bytes.peek() == Some(b'\n') => {
                        bytes.at += 1;
                        continue;
                    }
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                }
                kept = value.len();
            }
            Some(byte) if byte.is_ascii_whitespace() && !quoted => {
                if !value.is_empty() {
                    value.push(byte);
                }
            }
            Some(byte) => {
                value.push(byte);
                kept = value.len();
            }
        }
    }
    if quoted {
        return None;
    }
    value.truncate(kept);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_as_git_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let text = b"[core]\n\tautoCRLF = input ; no\n fileMode\n# c\n[Filter \"a b\\\"c.D\"]clean = \"x ; y\" z\\\n  w \n\
            [a.B]\nk=  \"  q \"  \n[x]\ny = a\\tb\\n\\\"\\\\\nempty =\nz = 1 # c\n[inc]lude = 5\r\n";
        crate::files::write_atomic(&path, text, 0o600).unwrap();
        let judged = std::process::Command::new("git")
            .args(["config", "--list", "-z", "--file"])
            .arg(&path)
            .output()
            .unwrap();
        let mut ours = Vec::new();
        for (key, value) in parse(text).unwrap() {
            ours.extend(key);
            if let Some(value) = value {
                ours.push(b'\n');
                ours.extend(value);
            }
            ours.push(0);
        }
        assert_eq!(
            String::from_utf8_lossy(&ours),
            String::from_utf8_lossy(&judged.stdout)
        );
        for bad in [
            "[core",
            "key = 1",
            "[a \"b]\n",
            "[a]\nk = \"x\n",
            "[a]\n!k\n",
            "[a]\nk = \\x\n",
        ] {
            assert!(parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
