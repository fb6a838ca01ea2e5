//! The JSON trees of OpenCode before 1.2: one file a session, message and part. Names of files come from listings, never
//! from contents.
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use takeup_core::agent::{Found, PlanItem};
use takeup_core::files::read_bounded;
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::text::json_of_agent;

use super::database::plan_item;
use super::history::{Message, hide_reverted, revert_of};
use super::{Row, Wanted};

/// No such file is larger; a part with a tool's output has some megabytes at the most.
const LARGEST: u64 = 16 << 20;
/// How many files of one folder are looked at.
const MOST: usize = 20_000;

/// Where the messages and parts of a session lie.
#[derive(Clone, Copy)]
enum Layout {
    /// `message/<session>/<message>.json`, `part/<message>/<part>.json`.
    Flat,
    /// The same with parts in `part/<session>/<message>/<part>.json`.
    Nested,
}

/// Reads sessions that no database has.
pub(super) fn read(data: &Path, wanted: &Wanted<'_>, known: &HashSet<String>) -> Found<Row> {
    let mut found = Found::<(Row, PathBuf, Layout)>::default();
    let mut folders: Vec<(PathBuf, PathBuf, Layout)> = Vec::new();
    let storage = data.join("storage");
    for project in entries(&storage.join("session"), &mut found.issues) {
        folders.push((project, storage.clone(), Layout::Flat));
    }
    for project in entries(&data.join("project"), &mut found.issues) {
        let storage = project.join("storage");
        folders.push((
            storage.join("session/info"),
            storage.join("session"),
            Layout::Nested,
        ));
    }
    for (folder, storage, layout) in folders {
        for file in entries(&folder, &mut found.issues) {
            if file.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let Some(id) = id_of(&file).map(str::to_owned) else {
                continue;
            };
            if known.contains(&id) {
                continue;
            }
            let Some(info) = json(&file, &mut found.issues) else {
                continue;
            };
            match header(&id, &file, &info) {
                Some(row) if wanted.fits(&row) => {
                    found.items.push((row, storage.clone(), layout));
                }
                Some(_) => {}
                None => found.issues.push(Issue::new(
                    &file,
                    IssueKind::Corrupt,
                    "it names no folder, so its place is unknown",
                )),
            }
        }
    }
    let Found {
        mut items,
        mut issues,
    } = found;
    items.sort_by_key(|(row, ..)| wanted.order(row));
    if wanted.limit > 0 {
        items.truncate(wanted.limit);
    }
    let items = items
        .into_iter()
        .map(|(mut row, storage, layout)| {
            complete(&mut row, &storage, layout, wanted.messages, &mut issues);
            row
        })
        .collect();
    Found { items, issues }
}

/// The id a file is named after; names that are no ids could lead out of the folder.
fn id_of(file: &Path) -> Option<&str> {
    file.file_stem()?.to_str().filter(|stem| {
        stem.bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
    })
}

fn entries(folder: &Path, issues: &mut Vec<Issue>) -> Vec<PathBuf> {
    // A linked folder leads somewhere else.
    if folder
        .symlink_metadata()
        .is_ok_and(|meta| meta.is_symlink())
    {
        issues.push(Issue::new(
            folder,
            IssueKind::Symlink,
            "a link stands here; it is not followed",
        ));
        return Vec::new();
    }
    let Ok(listing) = folder.read_dir() else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = listing
        .flatten()
        .take(MOST + 1)
        .map(|entry| entry.path())
        .collect();
    if paths.len() > MOST {
        issues.push(Issue::new(
            folder,
            IssueKind::TooLarge,
            format!("it holds more than {MOST} entries; the rest was not looked at"),
        ));
        paths.truncate(MOST);
    }
    paths.sort();
    paths
}

fn json(file: &Path, issues: &mut Vec<Issue>) -> Option<Value> {
    match read_bounded(file, LARGEST) {
        Ok(bytes) => match json_of_agent(&bytes?) {
            Ok(value) => Some(value),
            Err(error) => {
                issues.push(Issue::new(
                    file,
                    IssueKind::Corrupt,
                    format!("it is no JSON: {error}"),
                ));
                None
            }
        },
        Err(issue) => {
            issues.push(issue);
            None
        }
    }
}

fn header(id: &str, file: &Path, info: &Value) -> Option<Row> {
    let text = |key: &str| info.get(key).and_then(Value::as_str).map(str::to_owned);
    let time = |pointer: &str| info.pointer(pointer).and_then(Value::as_i64);
    Some(Row {
        id: id.to_owned(),
        parent: text("parentID"),
        slug: text("slug"),
        directory: PathBuf::from(text("directory")?),
        title: text("title").unwrap_or_default(),
        created: time("/time/created").unwrap_or(0),
        updated: time("/time/updated")
            .or_else(|| time("/time/created"))
            .unwrap_or(0),
        archived: time("/time/archived").is_some(),
        revert: info.get("revert").and_then(revert_of),
        source: file.to_path_buf(),
        ..Row::default()
    })
}

fn complete(row: &mut Row, storage: &Path, layout: Layout, most: usize, issues: &mut Vec<Issue>) {
    let files = entries(&storage.join("message").join(&row.id), issues);
    row.count = files.len() as u64;
    for file in files.iter().skip(files.len().saturating_sub(most)) {
        let Some(id) = id_of(file) else {
            continue;
        };
        // What cannot be read stays a message, and its parts can be.
        let data = json(file, issues).unwrap_or_default();
        let folder = match layout {
            Layout::Flat => storage.join("part").join(id),
            Layout::Nested => storage.join("part").join(&row.id).join(id),
        };
        let parts = entries(&folder, issues)
            .iter()
            .filter_map(|file| {
                let id = id_of(file)?.to_owned();
                Some((id, json(file, issues).unwrap_or_default()))
            })
            .collect();
        row.messages.push(Message::new(id.to_owned(), data, parts));
    }
    row.messages.sort_by(|a, b| a.id().cmp(b.id()));
    hide_reverted(row);
    row.todos = todos(
        &storage.join("todo").join(format!("{}.json", row.id)),
        issues,
    );
}

fn todos(file: &Path, issues: &mut Vec<Issue>) -> Vec<PlanItem> {
    let Some(Value::Array(items)) = json(file, issues) else {
        return Vec::new();
    };
    items
        .iter()
        .take(500)
        .map(|item| {
            let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
            plan_item(text("content"), text("status"))
        })
        .collect()
}
