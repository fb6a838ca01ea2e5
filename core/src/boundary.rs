//! What a task may edit.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::SessionRef;
use crate::time::Time;

/// Path globs a task may edit and must avoid. An empty `allowed` list allows every path that is not avoided.
///
/// `:(literal)PATH`, as git writes it, names a path as it stands (`gitglossary(7)`, pathspec): an approval is for paths, and a
/// path may hold what a pattern would read as something else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Boundary {
    /// Globs in git's pathspec meaning, and literal paths.
    pub allowed: Vec<String>,
    /// Globs that are never edited, whatever `allowed` says.
    pub avoided: Vec<String>,
    /// 0 at first, one more at every change.
    pub revision: u64,
    /// Who raised it, when and why, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raised: Vec<Raise>,
}

/// One change of a boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Raise {
    /// When.
    pub at: Time,
    /// By whom.
    pub by: SessionRef,
    /// Why.
    pub why: String,
    /// The globs that were added.
    pub added: Vec<String>,
}

/// A glob that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{glob:?} is no path pattern here: {why}")]
pub struct InvalidGlob {
    glob: String,
    why: &'static str,
}

/// Why a pattern that names everything is refused.
const WHOLE: &str = "it names the whole work tree; leave it out, or say '*'";

/// What stands before a path that is no pattern.
const LITERAL: &str = ":(literal)";

impl Boundary {
    /// Writes a path of the work tree as the pattern that names it and what lies below it, and nothing else.
    pub fn of_path(path: &str) -> String {
        let is_plain = Self::check(path).is_ok() && !path.contains(['*', '?', '[', '\\']);
        if is_plain {
            path.to_owned()
        } else {
            format!("{LITERAL}{path}")
        }
    }

    /// Returns a pattern without the mark of a literal path: the path, or the pattern as it is.
    pub fn unmarked(glob: &str) -> &str {
        glob.strip_prefix(LITERAL).unwrap_or(glob)
    }

    /// Checks a pattern a person or agent gave. What could never name a path of the work tree is refused, since it would be
    /// taken for a boundary that holds.
    pub fn check(glob: &str) -> Result<(), InvalidGlob> {
        let plain = glob.trim_start_matches("./").trim_end_matches('/');
        if glob
            .strip_prefix(LITERAL)
            .is_some_and(|path| !path.trim_end_matches('/').is_empty())
        {
            return Ok(());
        }
        let why = if glob.trim().is_empty() {
            "it is empty"
        } else if glob.starts_with(':') || glob.starts_with('!') {
            "pathspec magic (a leading ':' or '!') is not used, but for :/ and :(literal)"
        } else if glob.starts_with('/') || glob.starts_with("~/") {
            "paths are given from the present folder, or with :/ from the top of the work tree"
        } else if glob.split('/').any(|part| part == "..") {
            "it leads out of the work tree"
        } else if plain.is_empty() || plain == "." {
            WHOLE
        } else if plain.split('/').any(|part| part.is_empty() || part == ".") {
            "paths have no empty parts"
        } else if glob.chars().any(char::is_control) || glob.trim() != glob {
            "it holds a control character, or white space around it"
        } else {
            return Ok(());
        };
        Err(InvalidGlob {
            glob: glob.to_owned(),
            why,
        })
    }

    /// Reads a pattern that was given in a folder of the work tree, named from its top (`.` is the top), as git reads a
    /// pathspec: from that folder on, `.` and `..` resolved; from the top where it begins with `:/` or `:(top)`
    /// (`gitglossary(7)`, pathspec).
    pub fn given_in(folder: &str, glob: &str) -> Result<String, InvalidGlob> {
        let refuse = |why| InvalidGlob {
            glob: glob.to_owned(),
            why,
        };
        let of_top = [":/", ":(top)"]
            .iter()
            .find_map(|mark| glob.strip_prefix(mark));
        let mark = if glob.starts_with(LITERAL) {
            LITERAL
        } else {
            ""
        };
        let path = of_top.unwrap_or_else(|| Self::unmarked(glob));
        let is_relative = of_top.is_none() && !folder.starts_with('/') && folder != ".";
        let is_odd =
            path.trim() != path || path.starts_with(['/', ':', '!']) || path.starts_with("~/");
        if path.is_empty() || (is_odd && mark.is_empty()) {
            // Said as it is, whatever folder it was given in.
            return Self::check(path).map(|()| path.to_owned());
        }
        let mut parts: Vec<&str> = Vec::new();
        if is_relative {
            parts.extend(folder.split('/'));
        }
        // How many of the parts are the folder's.
        let mut given = parts.len();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts
                        .pop()
                        .ok_or_else(|| refuse("it leads out of the work tree"))?;
                    given = given.min(parts.len());
                }
                part => parts.push(part),
            }
        }
        let end = if path.ends_with('/') { "/" } else { "" };
        let meant = format!("{}{end}", parts.join("/"));
        if meant.trim_end_matches('/').is_empty() {
            return Err(refuse(WHOLE));
        }
        let special = ['*', '?', '[', '\\'];
        let mark = match mark {
            "" if parts.iter().take(given).any(|part| part.contains(special)) => {
                if path.contains(special) {
                    return Err(refuse(
                        "the folder it was given in has a name that would be read as a pattern; give it from the top, with :/ before it",
                    ));
                }
                LITERAL
            }
            mark => mark,
        };
        let meant = format!("{mark}{meant}");
        Self::check(&meant).map_err(|error| refuse(error.why))?;
        Ok(meant)
    }

    /// Tells whether a path may be edited: it is not avoided, and `allowed` is empty or names it.
    ///
    /// A pattern has git's plain pathspec meaning: a folder names everything below it, `*` also crosses `/`.
    pub fn allows(&self, path: &str) -> bool {
        !matches_any(&self.avoided, path)
            && (self.allowed.is_empty() || matches_any(&self.allowed, path))
    }

    /// Tells whether there is anything that it does not allow.
    pub const fn holds(&self) -> bool {
        !self.allowed.is_empty() || !self.avoided.is_empty()
    }

    /// Tells whether a path must be avoided.
    pub fn avoids(&self, path: &str) -> bool {
        matches_any(&self.avoided, path)
    }

    /// Tells whether a pattern that is asked for names what must be avoided.
    pub fn protects(&self, glob: &str) -> bool {
        self.avoided.iter().any(|avoided| avoided == glob) || self.avoids(Self::unmarked(glob))
    }
}

/// Tells whether one of the patterns names the path; patterns that cannot be used name nothing.
fn matches_any(globs: &[String], path: &str) -> bool {
    globs
        .iter()
        .filter(|glob| Boundary::check(glob).is_ok())
        .any(|glob| {
            if let Some(literal) = glob.strip_prefix(LITERAL) {
                let literal = literal.trim_end_matches('/');
                let below = path.strip_prefix(literal);
                return below.is_some_and(|below| below.is_empty() || below.starts_with('/'));
            }
            let glob = glob.strip_prefix("./").unwrap_or(glob);
            git2::Pathspec::new([glob.trim_end_matches('/')]).is_ok_and(|spec| {
                spec.matches_path(std::path::Path::new(path), git2::PathspecFlags::DEFAULT)
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_pathspecs_mean() {
        let boundary = Boundary {
            allowed: vec![
                "src/".to_owned(),
                "*.md".to_owned(),
                "./docs/a.txt".to_owned(),
            ],
            avoided: vec!["src/secret".to_owned()],
            ..Boundary::default()
        };
        for (path, allowed) in [
            ("src/a.rs", true),
            ("src/deep/b.rs", true),
            ("srcs/a.rs", false),
            ("deep/readme.md", true),
            ("docs/a.txt", true),
            ("docs/b.txt", false),
            ("src/secret/key", false),
        ] {
            assert_eq!(boundary.allows(path), allowed, "{path}");
        }
        assert!(Boundary::default().allows("anything"));
        // A path names itself, whatever it is made of.
        for (path, other) in [
            ("app/[id]/page.tsx", "app/i/page.tsx"),
            ("*", "anything"),
            ("a?b", "axb"),
            ("!x", "x"),
            (":x", "x"),
            (" x", "x"),
            ("x ", "x"),
            ("a\\\\b", "a\\b"),
            ("caf\\xe9", "café"),
            ("a\\x0ab", "a"),
            ("src/a.rs", "src/b.rs"),
        ] {
            let glob = Boundary::of_path(path);
            assert_eq!(Boundary::check(&glob), Ok(()), "{glob}");
            assert_eq!(Boundary::unmarked(&glob), path);
            let boundary = Boundary {
                allowed: vec![glob],
                ..Boundary::default()
            };
            assert!(boundary.allows(path), "{path}");
            assert!(boundary.allows(&format!("{path}/below")), "{path}");
            assert!(!boundary.allows(other), "{path} allows {other}");
            assert!(!boundary.allows(&format!("{path}x")), "{path}");
        }
        assert_eq!(Boundary::of_path("src/a.rs"), "src/a.rs");
        for (folder, given, meant) in [
            (".", "src/", "src/"),
            (".", "./src", "src"),
            (".", "a/../b", "b"),
            (".", ":/src", "src"),
            (".", "*.md", "*.md"),
            ("sub", "x", "sub/x"),
            ("sub", "./x/", "sub/x/"),
            ("sub", "../x", "x"),
            ("sub/deep", "../x", "sub/x"),
            ("sub", "*.md", "sub/*.md"),
            ("sub", ".", "sub"),
            ("sub", ":/x", "x"),
            ("sub", ":(top)x", "x"),
            ("sub", ":(literal)a*", ":(literal)sub/a*"),
            ("app/[id]", "page.tsx", ":(literal)app/[id]/page.tsx"),
            ("app/[id]", "../x", "app/x"),
            ("app/[id]/deep", "../x", ":(literal)app/[id]/x"),
            ("app/[id]", ":/x*", "x*"),
            // A folder that does not lie in the work tree.
            ("/elsewhere", "x", "x"),
        ] {
            assert_eq!(
                Boundary::given_in(folder, given),
                Ok(meant.to_owned()),
                "{given} in {folder}"
            );
        }
        for (folder, given) in [
            (".", "../x"),
            (".", "."),
            ("sub", "../../x"),
            ("sub", ".."),
            ("sub", ":/"),
            ("sub", ":/../x"),
            ("sub", "/x"),
            ("sub", "~/x"),
            ("sub", "!x"),
            ("sub", ":(exclude)x"),
            ("sub", ""),
            ("sub", " x"),
            ("app/[id]", "*.tsx"),
        ] {
            Boundary::given_in(folder, given).unwrap_err();
        }
        for odd in [
            ":(exclude)x",
            ":(literal)",
            "!x",
            "",
            " ",
            "/etc",
            "~/x",
            "../x",
            "a/../../x",
            ".",
            "./",
            "/",
            "a//b",
            "a/./b",
            " a",
            "a\n",
        ] {
            let error = Boundary::check(odd).unwrap_err();
            assert!(error.to_string().contains("no path pattern"), "{error}");
        }
        for glob in [
            "a", "./a", "a/", "*", "**", "a b", "a[b", "..a", "a..b", ".github/",
        ] {
            assert_eq!(Boundary::check(glob), Ok(()), "{glob}");
        }
    }
}
