//! Finding the plugin's records: by name only to find the files, by content for everything else.
use std::io;
use std::path::{Path, PathBuf};

use takeup_core::agent::Found;
use takeup_core::issue::{Issue, IssueKind};

use super::identity::Identity;
use super::names::{Collation, Paths};
use super::review::Request;
use super::store::{self, Document};

/// How many entries of the folder are looked at. The plugin removes nothing, so there may be many.
const MOST_ENTRIES: usize = 1_000_000;
/// How many records of a kind are read.
const MOST_RECORDS: usize = 10_000;

/// An identity with where it stands.
#[derive(Clone, Debug)]
pub struct FoundIdentity {
    /// The file.
    pub path: PathBuf,
    /// When the file was last written, in nanoseconds since the epoch.
    pub written: i128,
    /// The identity.
    pub identity: Identity,
}

/// What lies in the plugin's folder.
#[derive(Debug, Default)]
pub struct Listing {
    identities: Vec<String>,
    reviews: Vec<String>,
}

/// Lists the folder. A folder that is not there is empty.
fn list(paths: &Paths, issues: &mut Vec<Issue>) -> Listing {
    let mut listing = Listing::default();
    let folder = paths.sidecar();
    if let Err(issue) = store::refuse_links(&folder.join("x")) {
        issues.push(issue);
        return listing;
    }
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) => {
            if !matches!(error.kind(), io::ErrorKind::NotFound) {
                issues.push(Issue::new(folder, IssueKind::Unreadable, error.to_string()));
            }
            return listing;
        }
    };
    for (count, entry) in entries.enumerate() {
        if count >= MOST_ENTRIES {
            issues.push(Issue::new(
                &folder,
                IssueKind::TooLarge,
                format!("it holds more than {MOST_ENTRIES} entries; the rest was not looked at"),
            ));
            break;
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                issues.push(Issue::new(
                    &folder,
                    IssueKind::Unreadable,
                    error.to_string(),
                ));
                break;
            }
        };
        // A name that is not UTF-8 is none of the plugin's.
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if matches(&name, "task-identity-") {
            listing.identities.push(name);
        } else if matches(&name, "human-review-") {
            listing.reviews.push(name);
        }
    }
    for (names, what) in [
        (&mut listing.identities, "tasks"),
        (&mut listing.reviews, "questions"),
    ] {
        if names.len() > MOST_RECORDS {
            issues.push(Issue::new(
                &folder,
                IssueKind::TooLarge,
                format!(
                    "it holds {} {what}; only {MOST_RECORDS} are read",
                    names.len()
                ),
            ));
            names.select_nth_unstable(MOST_RECORDS);
            names.truncate(MOST_RECORDS);
        }
    }
    if let Ok(order) = Collation::new() {
        listing.identities.sort_by(|a, b| order.compare(a, b));
        listing.reviews.sort_by(|a, b| order.compare(a, b));
    }
    listing
}

/// The plugin's pattern: the prefix, at least one more character, `.json`, in any case.
fn matches(name: &str, prefix: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.strip_prefix(prefix)
        .and_then(|rest| rest.strip_suffix(".json"))
        .is_some_and(|middle| !middle.is_empty())
}

/// Reads every identity; damaged ones are issues.
pub fn identities(paths: &Paths) -> (Listing, Found<FoundIdentity>) {
    let mut found = Found::default();
    let listing = list(paths, &mut found.issues);
    for name in &listing.identities {
        let path = paths.sidecar().join(name);
        match read(&path) {
            Ok(Some(document)) => match Identity::check(&document.object, paths.root()) {
                Ok(identity) => found.items.push(FoundIdentity {
                    path,
                    written: document.written,
                    identity,
                }),
                Err(why) => found.issues.push(wrong(&path, &document, why)),
            },
            // It went away in between.
            Ok(None) => {}
            Err(issue) => found.issues.push(issue),
        }
    }
    (listing, found)
}

fn read(path: &Path) -> Result<Option<Document>, Issue> {
    store::read(path)
}

fn wrong(path: &Path, document: &Document, why: String) -> Issue {
    let version = document.object.text("schemaVersion");
    let kind = match version {
        Some(version) if version != super::identity::SCHEMA => IssueKind::UnknownVersion,
        Some(_) | None => IssueKind::Corrupt,
    };
    Issue::new(path, kind, why)
}

/// Reads every question to a person; damaged and foreign ones are issues.
pub fn reviews(paths: &Paths, listing: &Listing) -> Found<(PathBuf, Request)> {
    let mut found = Found::default();
    for name in &listing.reviews {
        let path = paths.sidecar().join(name);
        match read(&path) {
            Ok(Some(document)) => match Request::check(&document.object) {
                Ok(request) => found.items.push((path, request)),
                Err(why) => found.issues.push(Issue::new(path, IssueKind::Corrupt, why)),
            },
            Ok(None) => {}
            Err(issue) => found.issues.push(issue),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_plugins_pattern() {
        for (name, yes) in [
            ("task-identity-a-b.json", true),
            ("Task-Identity-A.JSON", true),
            ("task-identity-.json", false),
            ("task-identity-a.json.lock", false),
            ("task-identity-a.json.tmp-1-2-3", false),
            ("xtask-identity-a.json", false),
        ] {
            assert_eq!(matches(name, "task-identity-"), yes, "{name}");
        }
    }
}
