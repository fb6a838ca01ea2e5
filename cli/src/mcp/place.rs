//! Where a call is meant: which work tree.
//!
//! The server's own folder says little: some clients start it in theirs. In this order: the argument, the client's
//! roots, the folder a client names in the environment, the folders a call names in its metadata, the server's folder.
//! The first of these that lies in a work tree decides; where one of them names several work trees, the caller is asked.
use std::path::{Path, PathBuf};

use takeup_core::env::Env;
use takeup_core::error::Exit;
use takeup_core::paths::{path_of_text, text_of_path};
use takeup_core::repository::discover;

use super::client::{self, Client};
use crate::reply::Failure;

/// Variables in which clients name the project's folder.
const PROJECT: &[&str] = &[
    "CLAUDE_PROJECT_DIR",
    "GEMINI_PROJECT_DIR",
    "CURSOR_PROJECT_DIR",
];

/// Returns the folder a call is made in.
pub(super) fn folder(
    argument: Option<&str>,
    roots: &[PathBuf],
    client: &Client,
    env: &Env,
) -> Result<PathBuf, Failure> {
    if let Some(text) = argument {
        // As a path is, or as our own answers write one that holds bytes which are no text.
        let plain = PathBuf::from(text);
        let written = path_of_text(text).filter(|path| !plain.exists() && path.exists());
        let path = written.unwrap_or(plain);
        return if path.is_absolute() {
            Ok(path)
        } else {
            Err(Failure::new(
                "usage",
                Exit::Usage,
                "`repository` has to be an absolute path",
            ))
        };
    }
    let project: Vec<PathBuf> = PROJECT
        .iter()
        .filter_map(|name| env.absolute(name))
        .take(1)
        .collect();
    for named in [roots, &project, &client.folders] {
        let found = work_trees(named, client, env);
        match found.as_slice() {
            [] => {}
            // The folder itself, not the top: what lies between them is for git to say.
            [(_, folder)] => return Ok(folder.clone()),
            several => return Err(ask_back(several)),
        }
    }
    Ok(env.cwd.clone())
}

/// Returns the work trees that folders lie in, each with the first folder in it.
fn work_trees(folders: &[PathBuf], client: &Client, env: &Env) -> Vec<(PathBuf, PathBuf)> {
    let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_absolute()) {
        let env = client::env_in(env, client, folder.clone());
        if let Ok(place) = discover(&env, folder)
            && found.iter().all(|(known, _)| known != &place.root)
        {
            found.push((place.root, folder.clone()));
        }
    }
    found
}

fn ask_back(several: &[(PathBuf, PathBuf)]) -> Failure {
    let roots: Vec<String> = several.iter().map(|(root, _)| text_of_path(root)).collect();
    let mut failure = Failure::new(
        "ambiguous-place",
        Exit::Confirm,
        format!("several work trees are open: {}", roots.join(", ")),
    )
    .hint("name the one that is meant as `repository`");
    failure.data = Some(serde_json::json!({ "repositories": roots }));
    failure
}

/// Reads the path of a `file:` URI (RFC 8089), local host only.
pub(super) fn path_of_uri(uri: &str) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    let path = path.split(['?', '#']).next()?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                u8::from_str_radix(digits, 16).ok()?
            }
            byte => byte,
        });
    }
    if bytes.contains(&0) {
        return None;
    }
    let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
    Some(if path == Path::new("/") {
        path
    } else {
        path.components().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_uris_become_paths() {
        for (uri, path) in [
            ("file:///home/a%20b/c", Some("/home/a b/c")),
            ("file://localhost/x/", Some("/x")),
            ("file:///%C3%A4", Some("/ä")),
            ("file://server/x", None),
            ("https://x/y", None),
            ("file:///a%0", None),
            ("file:///a%00b", None),
        ] {
            assert_eq!(path_of_uri(uri), path.map(PathBuf::from), "{uri}");
        }
    }
}
