//! Names of the plugin's records, and the order in which it sorts.
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use icu_collator::options::CollatorOptions;
use icu_collator::{Collator, CollatorBorrowed};
use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;

/// The folder of the plugin's records, below the root it was started with.
pub const SIDECAR: &str = ".agent-context/sidecar";

/// Makes the plugin's slug of a text: compatibility decomposition, lower case, runs outside `a-z 0-9` one hyphen, 56
/// characters at the most. A text of which nothing is left gives `task-` and a hash.
pub fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.nfkd().flat_map(char::to_lowercase) {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let mut slug = slug.trim_end_matches('-').to_owned();
    slug.truncate(56);
    if slug.is_empty() {
        return format!("task-{}", base36(hash(text).unsigned_abs()));
    }
    slug
}

/// The hash of a text of which no slug is left: 31 h + the first UTF-16 unit of each character, in 32 bits.
fn hash(text: &str) -> i32 {
    text.chars().fold(0_i32, |hash, c| {
        let mut units = [0; 2];
        let unit = c.encode_utf16(&mut units).first().copied().unwrap_or(0);
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// Returns SHA-256 in lower-case hexadecimal.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    takeup_core::text::hex(&Sha256::digest(bytes))
}

/// The first `digits` hexadecimal digits of the SHA-256 of a text.
pub fn short_hash(text: &str, digits: usize) -> String {
    sha256_hex(text).chars().take(digits).collect()
}

/// Paths of the plugin's records below a root.
#[derive(Clone, Debug)]
pub struct Paths {
    root: PathBuf,
}

impl Paths {
    /// Names the records below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of the records.
    pub fn sidecar(&self) -> PathBuf {
        self.root.join(SIDECAR)
    }

    /// Returns the record of a task in a session.
    pub fn identity(&self, task: &str, session: &str) -> PathBuf {
        self.sidecar().join(format!(
            "task-identity-{}-{}.json",
            slug(task),
            slug(session)
        ))
    }

    /// Returns the record of a session, or of the latest one.
    pub fn session(&self, session: Option<&str>) -> PathBuf {
        self.sidecar().join(match session {
            Some(session) => format!("plugin-session-{}.json", slug(session)),
            None => "plugin-session.json".to_owned(),
        })
    }

    /// Returns the workflow of a session.
    pub fn workflow(&self, session: &str) -> PathBuf {
        self.sidecar()
            .join(format!("plugin-workflow-{}.json", short_hash(session, 16)))
    }

    /// Returns the evaluation of a session.
    pub fn evaluate(&self, session: Option<&str>) -> PathBuf {
        self.sidecar().join(match session {
            Some(session) => format!("plugin-evaluate-{}.json", slug(session)),
            None => "plugin-evaluate.json".to_owned(),
        })
    }

    /// Returns the question to a person.
    pub fn review(&self, task: Option<&str>, session: Option<&str>) -> PathBuf {
        let task = task.map_or_else(|| "unknown-task".to_owned(), slug);
        self.sidecar().join(match session {
            Some(session) => format!("human-review-{task}-{}.json", slug(session)),
            None => format!("human-review-{task}.json"),
        })
    }

    /// Returns the run manifest of a task. The plugin takes the task as it is (a slug that was cut may end in a hyphen);
    /// anything that is no slug is made one first, so that it cannot lead out of the folder.
    pub fn manifest(&self, task: &str) -> PathBuf {
        let is_slug = !task.is_empty()
            && task
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        let folder = if is_slug { task.to_owned() } else { slug(task) };
        self.root
            .join(".agent-context/runs")
            .join(folder)
            .join("run.json")
    }
}

/// Sorts as `localeCompare` does in the runtime that OpenCode carries (locale `en-US`).
pub struct Collation(CollatorBorrowed<'static>);

impl std::fmt::Debug for Collation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Collation(en-US)")
    }
}

impl Collation {
    /// Loads the order.
    ///
    /// # Errors
    /// If the library's own data lacks it.
    pub fn new() -> Result<Self, String> {
        let locale = icu_locale_core::locale!("en-US");
        Collator::try_new(locale.into(), CollatorOptions::default())
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// Compares two texts.
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        self.0.compare(a, b)
    }

    /// Trims, drops blanks, sorts, and keeps one of each: how the plugin keeps lists of texts.
    pub fn normalise(&self, texts: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
        let mut unique: Vec<String> = Vec::new();
        let mut known = std::collections::HashSet::new();
        for text in texts {
            let text = trim(text.as_ref());
            if !text.is_empty() && known.insert(text.to_owned()) {
                unique.push(text.to_owned());
            }
        }
        unique.sort_by(|a, b| self.compare(a, b));
        unique
    }
}

/// Trims as JavaScript does: white space, line ends and the byte order mark.
pub fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors() -> serde_json::Value {
        serde_json::from_slice(include_bytes!("../../tests/fixtures/opencode-names.json")).unwrap()
    }

    #[test]
    fn slugs_are_the_plugins() {
        for vector in vectors()["slug"].as_array().unwrap() {
            assert_eq!(
                slug(vector["text"].as_str().unwrap()),
                vector["slug"].as_str().unwrap(),
                "{vector}"
            );
        }
    }

    #[test]
    fn names_are_the_plugins() {
        let paths = Paths::new("");
        for vector in vectors()["paths"].as_array().unwrap() {
            let task = vector["taskId"].as_str().unwrap();
            let session = vector["sessionId"].as_str().unwrap();
            for (key, path) in [
                ("identity", paths.identity(task, session)),
                ("workflow", paths.workflow(session)),
                ("session", paths.session(Some(session))),
                ("evaluate", paths.evaluate(Some(session))),
                ("humanReview", paths.review(Some(task), Some(session))),
                ("run", paths.manifest(task)),
            ] {
                assert_eq!(path.to_str().unwrap(), vector[key].as_str().unwrap());
            }
        }
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let paths = Paths::new("/root");
        for evil in [
            "../../etc/passwd",
            "/etc/passwd",
            "..",
            "a/../../b",
            "\u{0}",
            "\u{1b}[31m",
        ] {
            for path in [
                paths.identity(evil, evil),
                paths.workflow(evil),
                paths.session(Some(evil)),
                paths.evaluate(Some(evil)),
                paths.review(Some(evil), Some(evil)),
                paths.manifest(evil),
            ] {
                let below = path.strip_prefix("/root/.agent-context").unwrap();
                assert!(
                    below
                        .components()
                        .all(|part| matches!(part, std::path::Component::Normal(_)))
                );
            }
        }
    }

    #[test]
    fn the_order_is_that_of_the_runtime() {
        let order = Collation::new().unwrap();
        let vectors: serde_json::Value = serde_json::from_slice(include_bytes!(
            "../../tests/fixtures/opencode-fingerprint.json"
        ))
        .unwrap();
        let used: Vec<&str> = vectors["vectors"]
            .as_array()
            .unwrap()
            .iter()
            .find_map(|vector| vector["order_used"].as_array())
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect();
        let mut sorted = used.clone();
        sorted.reverse();
        sorted.sort_by(|a, b| order.compare(a, b));
        assert_eq!(sorted, used);
    }
}
