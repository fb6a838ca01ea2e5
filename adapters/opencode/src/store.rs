//! OpenCode's own store, read only: the database, and the JSON trees of earlier versions.
//!
//! Source: runs of OpenCode 1.18.33 (database) and its published sources (JSON trees).
mod database;
mod history;
mod home;
mod owner;
mod tree;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use takeup_core::agent::{AgentError, Found, PlanItem, Session, SessionDetail, SessionQuery, Turn};
use takeup_core::env::Env;
use takeup_core::ids::{SessionId, SessionRef};
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::redact::Masker;
use takeup_core::repository::Folders;
use takeup_core::text;
use takeup_core::time::{Clock, Time};

use history::Message;
pub(crate) use home::{Homes, version_beside};
use owner::Holders;

/// How many of the last messages are looked at to tell how a session ended.
const LOOK_BACK: usize = 40;
/// How many sessions are looked at where several fit a name.
const MOST_NAMED: usize = 20;
/// The longest title or prompt that is shown.
const LONGEST: usize = 200;
/// How much of a text is looked at for secrets before it is cut: one that a cut goes through could not be told any more.
const LOOKED_AT: usize = LONGEST + 1_000;

/// A session as its store holds it.
#[derive(Clone, Debug, Default)]
struct Row {
    id: String,
    parent: Option<String>,
    slug: Option<String>,
    directory: PathBuf,
    title: String,
    created: i64,
    updated: i64,
    archived: bool,
    /// While an undo is pending: the first hidden message, and the first hidden part in it.
    revert: Option<(String, Option<String>)>,
    todos: Vec<PlanItem>,
    /// The last messages, oldest first, without those an undo hides.
    messages: Vec<Message>,
    /// How many messages there are.
    count: u64,
    /// What of it cannot be read, in words.
    damage: Vec<String>,
    /// The file it was read from.
    source: PathBuf,
    /// That file is a database, of which can be asked who has it open.
    in_database: bool,
    /// It is the newest session of its folder.
    newest: bool,
}

/// Which sessions are read from a store.
struct Wanted<'a> {
    which: Which<'a>,
    limit: usize,
    /// Messages of each.
    messages: usize,
}

enum Which<'a> {
    /// Those that work in a place (or anywhere) and are candidates: sub-agents, forks and archived ones are not.
    Place(Option<RefCell<Folders>>),
    /// One by id, name, the beginning of its id or a part of its title.
    Name(&'a str),
    /// These.
    These(&'a HashSet<String>),
}

impl Wanted<'_> {
    fn fits(&self, row: &Row) -> bool {
        match &self.which {
            Which::Place(folders) => {
                let is_here =
                    |folders: &RefCell<Folders>| folders.borrow_mut().hold(&row.directory);
                row.is_candidate() && folders.as_ref().is_none_or(is_here)
            }
            Which::Name(name) => row.fits(name).is_some(),
            Which::These(ids) => ids.contains(&row.id),
        }
    }

    /// By how well it fits the name that is asked for, the newest first.
    fn order(&self, row: &Row) -> (Option<Fit>, std::cmp::Reverse<i64>) {
        let fit = match self.which {
            Which::Name(name) => row.fits(name),
            Which::Place(_) | Which::These(_) => None,
        };
        (fit, std::cmp::Reverse(row.updated))
    }
}

/// How a session fits a name, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It is its id.
    Id,
    /// It is the word it is called by.
    Slug,
    /// Its id begins so.
    Beginning,
    /// A part of its title, in letters of either case.
    Title,
}

impl Row {
    const fn is_candidate(&self) -> bool {
        !self.archived && self.parent.is_none()
    }

    fn fits(&self, name: &str) -> Option<Fit> {
        if self.id == name {
            Some(Fit::Id)
        } else if self.slug.as_deref() == Some(name) {
            Some(Fit::Slug)
        } else if self.id.starts_with(name) {
            Some(Fit::Beginning)
        } else {
            let has = self.title.to_lowercase().contains(&name.to_lowercase());
            has.then_some(Fit::Title)
        }
    }

    /// Returns what is damaged about it.
    fn issue(&self) -> Option<Issue> {
        let why = format!("session {}: {}", self.id, self.damage.join("; "));
        (!self.damage.is_empty())
            .then(|| Issue::new(&self.source, IssueKind::Corrupt, text::one_line(&why, 400)))
    }
}

/// Marks the newest session of each folder.
fn mark_newest(rows: &mut [Row]) {
    let mut newest: BTreeMap<PathBuf, i64> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.is_candidate()) {
        let known = newest.entry(row.directory.clone()).or_insert(row.updated);
        *known = (*known).max(row.updated);
    }
    for row in rows {
        row.newest = row.is_candidate() && newest.get(&row.directory) == Some(&row.updated);
    }
}

/// Reads what is wanted from every store, in the order of [`Wanted::order`], and tells which stores could not be read at all.
fn rows(env: &Env, wanted: &Wanted<'_>) -> (Found<Row>, Vec<Issue>) {
    let mut found = Found::default();
    let mut unread = Vec::new();
    let Some(homes) = Homes::of(env) else {
        return (found, unread);
    };
    for database in homes.databases(env, &mut unread) {
        match database::read(&database, wanted) {
            Ok((rows, issues)) => {
                found.items.extend(rows);
                found.issues.extend(issues);
            }
            Err(issue) => unread.push(issue),
        }
    }
    let known: HashSet<String> = found.items.iter().map(|row| row.id.clone()).collect();
    let trees = tree::read(&homes.data, wanted, &known);
    found.items.extend(trees.items);
    found.issues.extend(trees.issues);
    found.items.sort_by(|a, b| {
        let by_fit = wanted.order(a).cmp(&wanted.order(b));
        by_fit.then_with(|| b.id.cmp(&a.id))
    });
    if wanted.limit > 0 {
        found.items.truncate(wanted.limit);
    }
    (found, unread)
}

/// Lists sessions.
pub(crate) fn sessions(env: &Env, query: &SessionQuery, clock: &dyn Clock) -> Found<Session> {
    let (found, unread) = rows(
        env,
        &Wanted {
            which: Which::Place(query.root.as_deref().map(Folders::of).map(RefCell::new)),
            limit: query.limit,
            messages: LOOK_BACK,
        },
    );
    let mut context = Context::new(env, clock);
    let mut sessions = Found {
        items: Vec::with_capacity(found.items.len()),
        issues: unread,
    };
    sessions.issues.extend(found.issues);
    for row in &found.items {
        match context.session(row) {
            Some(session) => sessions.items.push(session),
            None => sessions.issues.push(Issue::new(
                &row.source,
                IssueKind::Corrupt,
                "a session has an id that is none",
            )),
        }
    }
    sessions
}

/// Reads these sessions, by id; what cannot be read is left out here and an issue of [`sessions`].
pub(crate) fn these(
    env: &Env,
    ids: &HashSet<String>,
    clock: &dyn Clock,
) -> HashMap<String, Session> {
    let wanted = Wanted {
        which: Which::These(ids),
        limit: 0,
        messages: LOOK_BACK,
    };
    let mut context = Context::new(env, clock);
    rows(env, &wanted)
        .0
        .items
        .iter()
        .filter_map(|row| Some((row.id.clone(), context.session(row)?)))
        .collect()
}

/// Tells whether a session is in the store. What cannot be read is not.
pub(crate) fn holds(env: &Env, id: &SessionId) -> bool {
    let ids = HashSet::from([id.to_string()]);
    let wanted = Wanted {
        which: Which::These(&ids),
        limit: 0,
        messages: 1,
    };
    rows(env, &wanted)
        .0
        .items
        .iter()
        .any(|row| row.id == id.as_str())
}

/// Returns provider and name of the model that was used last, in any session.
pub(crate) fn last_model(env: &Env) -> Option<(String, String)> {
    let homes = Homes::of(env)?;
    homes
        .databases(env, &mut Vec::new())
        .iter()
        .find_map(|database| database::last_model(database))
}

/// Shows one session with its last turns.
pub(crate) fn session(
    env: &Env,
    id: &str,
    turns: usize,
    clock: &dyn Clock,
) -> Result<SessionDetail, AgentError> {
    let missing = || AgentError::NoSession {
        agent: crate::NAME,
        id: text::one_line(id, 80),
    };
    if id.is_empty() {
        return Err(missing());
    }
    let (found, unread) = rows(
        env,
        &Wanted {
            which: Which::Name(id),
            limit: MOST_NAMED,
            messages: LOOK_BACK.max(turns.saturating_mul(3)),
        },
    );
    let best = found.items.first().and_then(|row| row.fits(id));
    let fitting: Vec<&Row> = found
        .items
        .iter()
        .filter(|row| row.fits(id) == best)
        .collect();
    let row = match fitting.as_slice() {
        [row] => *row,
        [] => {
            // A store, or a file of that name, that could not be read is no proof that there is no such session.
            let of_that_name = |issue: &Issue| {
                let name = issue.path.file_stem().and_then(|name| name.to_str());
                name.is_some_and(|name| name.starts_with(id))
            };
            let mut issues = found.issues.into_iter().filter(of_that_name);
            return Err(match unread.into_iter().next().or_else(|| issues.next()) {
                Some(issue) => AgentError::Damaged(issue),
                None => missing(),
            });
        }
        several => {
            let masker = Masker::of(env);
            let named: Vec<String> = several
                .iter()
                .take(5)
                .map(|row| format!("{} ({})", row.id, masker.text(&row.title).text))
                .collect();
            let more = if several.len() > named.len() {
                ", and more"
            } else {
                ""
            };
            return Err(AgentError::Other(text::one_line(
                &format!(
                    "{:?} fits several sessions of {}: {}{more}",
                    text::one_line(id, 80),
                    crate::NAME,
                    named.join(", ")
                ),
                800,
            )));
        }
    };
    let session = Context::new(env, clock).session(row).ok_or_else(missing)?;
    let masker = Masker::of(env);
    let mut shown: Vec<Turn> = row.messages.iter().filter_map(Message::turn).collect();
    let beyond = shown.len().saturating_sub(turns);
    shown.drain(..beyond);
    for turn in &mut shown {
        turn.text = masker.text(&turn.text).text;
    }
    Ok(SessionDetail {
        session,
        turns: shown,
        transcript: Some(row.source.clone()),
    })
}

/// What is asked once for many sessions.
struct Context<'a> {
    clock: &'a dyn Clock,
    /// Secrets stay out of lists and records.
    masker: Masker,
    holders: BTreeMap<PathBuf, Holders>,
}

impl<'a> Context<'a> {
    fn new(env: &Env, clock: &'a dyn Clock) -> Self {
        Self {
            clock,
            masker: Masker::of(env),
            holders: BTreeMap::new(),
        }
    }

    fn session(&mut self, row: &Row) -> Option<Session> {
        let id = SessionId::new(row.id.as_str()).ok()?;
        let ending = history::ending(row);
        let holders = self
            .holders
            .entry(row.source.clone())
            .or_insert_with(|| Holders::of(row));
        let liveness = holders.liveness(row, &ending, self.clock.now());
        let masked = |text: String| text::one_line(&self.masker.text(&text).text, LONGEST);
        let last_prompt = row
            .messages
            .iter()
            .rev()
            .find(|message| message.is_user())
            .and_then(Message::prompt)
            .map(masked);
        let mut open_effects = match liveness {
            // A call of a live session is not open, it runs.
            takeup_core::process::Liveness::Live { .. } => Vec::new(),
            takeup_core::process::Liveness::Ended { .. }
            | takeup_core::process::Liveness::Crashed { .. }
            | takeup_core::process::Liveness::Unknown { .. } => {
                history::open_effects(&row.messages)
            }
        };
        for effect in &mut open_effects {
            effect.argument = masked(std::mem::take(&mut effect.argument));
        }
        let snapshot = history::snapshot(&row.messages);
        let mut plan = row.todos.clone();
        for item in &mut plan {
            item.text = masked(std::mem::take(&mut item.text));
        }
        Some(Session {
            session: SessionRef::new(crate::agent_id(), id),
            name: row
                .slug
                .as_deref()
                .map(|slug| text::one_line(slug, LONGEST)),
            title: history::title(row).map(masked),
            cwd: Some(row.directory.clone()).filter(|folder| !folder.as_os_str().is_empty()),
            created_at: Some(Time::from_millis(row.created)),
            updated_at: Some(Time::from_millis(row.updated)),
            status: Some(ending.word.to_owned()),
            process: match &liveness {
                takeup_core::process::Liveness::Live { .. } => holders.process_in(&row.directory),
                takeup_core::process::Liveness::Ended { .. }
                | takeup_core::process::Liveness::Crashed { .. }
                | takeup_core::process::Liveness::Unknown { .. } => None,
            },
            liveness,
            interruption: ending.interruption.map(|mut found| {
                found.proof = masked(found.proof);
                found
            }),
            open_effects,
            messages: Some(row.count),
            last_prompt,
            plan,
            parent: row
                .parent
                .as_deref()
                .and_then(|parent| SessionId::new(parent).ok()),
            helper: row.parent.is_some(),
            crash_group: None,
            snapshot_tree: snapshot.tree,
            snapshot_after: snapshot.after,
            recovered: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests;
