//! A small adapter, worked through in `docs/writing-an-adapter.md`.
//!
//! The agent it is for, Notes, does not exist. It keeps each session in `~/.notes/sessions/ID.json`:
//!
//! ```json
//! { "title": "Fix login", "folder": "/home/ana/shop", "changed": "2026-03-04T05:06:07Z", "open": true }
//! ```
//!
//! and calls `git-takeup hook notes EVENT` with `{ "session": "ID", "folder": "…" }` on standard input.
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use takeup_core::agent::{
    Agent, AgentError, Detection, Found, HookEvent, HookKind, Interruption, InterruptionReason,
    Session, SessionQuery,
};
use takeup_core::env::Env;
use takeup_core::files::read_bounded;
use takeup_core::ids::{AgentId, SessionId, SessionRef};
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::process::Liveness;
use takeup_core::text;
use takeup_core::time::Time;

/// The most bytes of a session that are read.
const LONGEST: u64 = 1 << 20;

/// Notes.
#[derive(Debug)]
struct Notes {
    id: AgentId,
}

/// A session's file. Unknown fields are passed over: the format is theirs.
#[derive(Debug, Deserialize)]
struct File {
    title: String,
    folder: PathBuf,
    changed: Time,
    #[serde(default)]
    open: bool,
}

/// What its hook hands over.
#[derive(Debug, Deserialize)]
struct Payload {
    session: SessionId,
    folder: Option<PathBuf>,
}

impl Notes {
    fn home(env: &Env) -> Option<PathBuf> {
        env.absolute("NOTES_HOME")
            .or_else(|| Some(env.home()?.join(".notes")))
    }

    fn read(&self, path: &Path, id: SessionId) -> Result<Option<Session>, Issue> {
        // A file that went away meanwhile is no damage. A link, a folder and what is too long is, and so is bad JSON.
        let Some(bytes) = read_bounded(path, LONGEST)? else {
            return Ok(None);
        };
        let file: File = serde_json::from_slice(&bytes)
            .map_err(|error| Issue::new(path, IssueKind::Corrupt, error.to_string()))?;
        Ok(Some(Session {
            session: SessionRef {
                agent: self.id.clone(),
                id,
            },
            name: None,
            title: Some(text::one_line(&file.title, 200)),
            cwd: Some(file.folder),
            created_at: None,
            updated_at: Some(file.changed),
            status: None,
            // Notes records no process, so nothing shows whether anybody is at work. Say so, and do not guess.
            liveness: if file.open {
                Liveness::Unknown {
                    why: "Notes does not record who has a session open".to_owned(),
                }
            } else {
                Liveness::Ended {
                    proof: "it is marked as closed".to_owned(),
                }
            },
            process: None,
            interruption: file.open.then(|| Interruption {
                reason: InterruptionReason::Unknown,
                proof: "it was not closed".to_owned(),
                until: None,
            }),
            open_effects: Vec::new(),
            messages: None,
            last_prompt: None,
            plan: Vec::new(),
            parent: None,
            helper: false,
            crash_group: None,
            snapshot_tree: None,
            snapshot_after: None,
            recovered: Vec::new(),
        }))
    }
}

impl Agent for Notes {
    fn id(&self) -> AgentId {
        self.id.clone()
    }

    fn name(&self) -> &'static str {
        "Notes"
    }

    fn detect(&self, env: &Env) -> Detection {
        let home = Self::home(env).filter(|home| home.is_dir());
        Detection {
            installed: home.is_some(),
            home,
            ..Detection::default()
        }
    }

    fn sessions(&self, env: &Env, query: &SessionQuery) -> Found<Session> {
        let mut found = Found::default();
        let Some(folder) = Self::home(env).map(|home| home.join("sessions")) else {
            return found;
        };
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return found,
            Err(error) => {
                let issue = Issue::new(folder, IssueKind::Unreadable, error.to_string());
                found.issues.push(issue);
                return found;
            }
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str());
            // An id is checked before it is used for anything.
            let Some(Ok(id)) = name
                .and_then(|name| name.strip_suffix(".json"))
                .map(SessionId::new)
            else {
                continue;
            };
            match self.read(&path, id) {
                Ok(session) => found.items.extend(session),
                Err(issue) => found.issues.push(issue),
            }
        }
        if let Some(root) = &query.root {
            found.items.retain(|session| {
                session
                    .cwd
                    .as_ref()
                    .is_some_and(|cwd| cwd.starts_with(root))
            });
        }
        found
            .items
            .sort_by_key(|session| std::cmp::Reverse(session.updated_at));
        if query.limit > 0 {
            found.items.truncate(query.limit);
        }
        found
    }

    fn hook(&self, _: &Env, event: &str, input: &[u8]) -> Result<HookEvent, AgentError> {
        let payload: Payload =
            serde_json::from_slice(input).map_err(|error| AgentError::Payload {
                event: event.to_owned(),
                why: error.to_string(),
            })?;
        Ok(HookEvent {
            session: SessionRef {
                agent: self.id.clone(),
                id: payload.session,
            },
            cwd: payload.folder,
            kind: match event {
                "opened" => HookKind::SessionStart,
                "answered" => HookKind::TurnEnd { status: None },
                "closed" => HookKind::SessionEnd { reason: None },
                // A newer Notes may know more events: they do no harm.
                _ => HookKind::Ignored,
            },
            transcript: None,
        })
    }

    fn resume_command(&self, session: &SessionId) -> Option<Vec<OsString>> {
        Some(vec!["notes".into(), "open".into(), session.as_str().into()])
    }
}

#[expect(clippy::print_stdout, reason = "an example shows what it found")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let notes = Notes {
        id: AgentId::new("notes")?,
    };
    let found = notes.sessions(&Env::of_process(), &SessionQuery::default());
    for session in &found.items {
        let title = session.title.as_deref().unwrap_or_default();
        println!("{}  {title}  {:?}", session.session, session.liveness);
    }
    for issue in &found.issues {
        println!("{}: {}", issue.path.display(), issue.message);
    }
    Ok(())
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test's file needs no durability"
)]
mod tests {
    use super::*;

    #[test]
    fn the_open_one_is_unfinished_and_the_damaged_one_is_reported() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("sessions");
        std::fs::create_dir_all(&folder).unwrap();
        let session = |open| {
            format!(
                r#"{{"title":"a\u001b[31m","folder":"/shop","changed":"2026-03-04T05:06:07Z","open":{open},"more":1}}"#
            )
        };
        std::fs::write(folder.join("one.json"), session(true)).unwrap();
        std::fs::write(folder.join("two.json"), session(false)).unwrap();
        std::fs::write(folder.join("torn.json"), "{\"title\":").unwrap();

        let notes = Notes {
            id: AgentId::new("notes").unwrap(),
        };
        let env = Env::of([("NOTES_HOME", home.path().as_os_str())], "/");
        let found = notes.sessions(&env, &SessionQuery::default());
        let mut unfinished: Vec<_> = found
            .items
            .iter()
            .map(|session| (session.session.to_string(), session.interruption.is_some()))
            .collect();
        unfinished.sort();
        assert_eq!(
            unfinished,
            [
                ("notes:one".to_owned(), true),
                ("notes:two".to_owned(), false)
            ]
        );
        let [issue] = &found.issues[..] else {
            unreachable!("{:?}", found.issues)
        };
        assert!(issue.path.ends_with("torn.json"));
        assert!(!found.items.iter().any(|session| {
            session
                .title
                .as_ref()
                .is_some_and(|title| title.contains('\u{1b}'))
        }));
    }

    #[test]
    fn a_hook_it_does_not_know_is_ignored_and_a_bad_payload_is_an_error() {
        let notes = Notes {
            id: AgentId::new("notes").unwrap(),
        };
        let env = Env::of([("HOME", "/")], "/");
        let event = notes.hook(&env, "dreamed", br#"{"session":"s1"}"#).unwrap();
        assert_eq!(event.kind, HookKind::Ignored);
        assert!(notes.hook(&env, "closed", b"[]").is_err());
        assert!(
            notes
                .hook(&env, "closed", br#"{"session":"a\nb"}"#)
                .is_err()
        );
    }
}
