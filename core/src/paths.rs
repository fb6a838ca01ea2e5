//! Folders of the user, and paths as text.
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::env::Env;

/// Returns the folder for state that outlives sessions: `TAKEUP_HOME/state`, else `$XDG_STATE_HOME/takeup`, else
/// `~/.local/state/takeup` (XDG Base Directory Specification; a value that is not absolute is ignored).
pub fn state_dir(env: &Env) -> Option<PathBuf> {
    folder(env, "state", "XDG_STATE_HOME", ".local/state")
}

/// Returns the folder for the user's settings: `TAKEUP_HOME/config`, else `$XDG_CONFIG_HOME/takeup`, else
/// `~/.config/takeup`.
pub fn config_dir(env: &Env) -> Option<PathBuf> {
    folder(env, "config", "XDG_CONFIG_HOME", ".config")
}

fn folder(env: &Env, own: &str, xdg: &str, fallback: &str) -> Option<PathBuf> {
    if let Some(home) = env.absolute("TAKEUP_HOME") {
        return Some(home.join(own));
    }
    env.absolute(xdg)
        .or_else(|| env.home().map(|home| home.join(fallback)))
        .map(|base| base.join("takeup"))
}

/// Writes path bytes as text of which no two are equal for different paths: a backslash becomes `\\`, a byte that is not
/// part of UTF-8 becomes `\xNN`, and so does a control character.
pub fn text_of_bytes(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c if c.is_control() => {
                    let mut buffer = [0; 4];
                    for byte in c.encode_utf8(&mut buffer).bytes() {
                        // Writing to a string cannot fail.
                        let _: std::fmt::Result = write!(text, "\\x{byte:02x}");
                    }
                }
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _: std::fmt::Result = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Writes a path as text, as [`text_of_bytes`].
pub fn text_of_path(path: &Path) -> String {
    text_of_bytes(path.as_os_str().as_bytes())
}

/// Reads back what [`text_of_bytes`] wrote; `None` where the text holds an escape it never writes.
pub fn bytes_of_text(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'\\' {
            bytes.push(first);
            continue;
        }
        match rest {
            [b'\\', tail @ ..] => {
                bytes.push(b'\\');
                rest = tail;
            }
            [b'x', high, low, tail @ ..] => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = tail;
            }
            _ => return None,
        }
    }
    Some(bytes)
}

/// Reads back what [`text_of_path`] wrote.
pub fn path_of_text(text: &str) -> Option<PathBuf> {
    bytes_of_text(text).map(|bytes| PathBuf::from(std::ffi::OsStr::from_bytes(&bytes)))
}

/// Writes a path as one word that a shell reads back byte for byte. What is no printable UTF-8 stands in `$'…'` (POSIX.1-2024,
/// 2.2.4; bash, zsh and ksh know it since long).
pub fn shell_word(path: &Path) -> String {
    use std::fmt::Write as _;
    let bytes = path.as_os_str().as_bytes();
    let plain = std::str::from_utf8(bytes)
        .ok()
        .filter(|text| !text.chars().any(char::is_control))
        .and_then(|text| shlex::try_quote(text).ok());
    if let Some(word) = plain {
        return word.into_owned();
    }
    let mut word = "$'".to_owned();
    for byte in bytes {
        let _: std::fmt::Result = match byte {
            b'\\' | b'\'' => write!(word, "\\{}", char::from(*byte)),
            b' '..=b'~' => write!(word, "{}", char::from(*byte)),
            _ => write!(word, "\\{byte:03o}"),
        };
    }
    word.push('\'');
    word
}

/// As [`shell_word`], for a path that [`text_of_path`] wrote.
pub fn shell_word_of_text(text: &str) -> String {
    shell_word(&path_of_text(text).unwrap_or_else(|| PathBuf::from(text)))
}

/// Writes a path in JSON as [`text_of_path`] does, for serde's `serialize_with`: a path that is no UTF-8 has no other form there.
pub fn in_json<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text_of_path(path))
}

/// The same for a path that may be missing.
pub fn in_json_if_some<S: serde::Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => in_json(path, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_as_text() {
        for bytes in [
            &b"a/b"[..],
            b"a\\b",
            b"\xff\xfe",
            b"new\nline\x1b[31m",
            "ä".as_bytes(),
            b"\\x41",
            b"",
        ] {
            let text = text_of_bytes(bytes);
            assert!(!text.chars().any(char::is_control));
            assert_eq!(bytes_of_text(&text).unwrap(), bytes);
        }
        assert_eq!(bytes_of_text("\\q"), None);
    }

    #[test]
    fn folders_follow_the_specification() {
        let env = Env::of([("HOME", "/h"), ("XDG_STATE_HOME", "relative")], "/");
        assert_eq!(
            state_dir(&env).unwrap(),
            Path::new("/h/.local/state/takeup")
        );
        let env = Env::of([("HOME", "/h"), ("XDG_CONFIG_HOME", "/c")], "/");
        assert_eq!(config_dir(&env).unwrap(), Path::new("/c/takeup"));
        let env = Env::of([("TAKEUP_HOME", "/t")], "/");
        assert_eq!(state_dir(&env).unwrap(), Path::new("/t/state"));
    }

    #[test]
    fn a_shell_reads_back_the_word_of_any_path() {
        for bytes in [
            &b"/home/ada/a b"[..],
            b"/it's",
            b"/new\nline",
            b"/\xff\\ '$x`",
            "/\u{fc}ber".as_bytes(),
        ] {
            let path = Path::new(std::ffi::OsStr::from_bytes(bytes));
            let script = format!("printf %s {}", shell_word(path));
            let Ok(read) = std::process::Command::new("bash")
                .args(["-c", &script])
                .output()
            else {
                eprintln!("there is no bash here: skipped");
                return;
            };
            assert_eq!(read.stdout, bytes, "{script}");
            assert_eq!(shell_word_of_text(&text_of_path(path)), shell_word(path));
        }
    }
}
