//! Sessions of both stores, normalised.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use takeup_core::agent::{Found, Interruption, InterruptionReason, Session, SessionQuery, Turn};
use takeup_core::identity::OpenEffect;
use takeup_core::ids::{AgentId, SessionId, SessionRef};
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::process::{Liveness, Processes};
use takeup_core::repository::Folders;
use takeup_core::time::Time;
use takeup_sqlite::{ReadError, lock_owner};

use super::database::{GLANCE, Schema, SessionRow, Statements, WINDOW};
use super::entry::{Entry, is_name};
use super::files::{Files, is_migrated};
use super::owner::{self, Holder};
use super::shared::{self, Fate, Run, Shared};
use super::transcript::{End, Tail, active, end_of};
use crate::home::Home;
use crate::text::{masked, one_line, title};

/// Which sessions are wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    /// Of this work tree only.
    pub(crate) root: Option<PathBuf>,
    /// At most so many; 0 is all.
    pub(crate) limit: usize,
    /// Only the one with this id, key, or beginning of an id.
    pub(crate) id: Option<&'a str>,
    /// How many of the last turns.
    pub(crate) turns: usize,
}

impl Wanted<'_> {
    /// Sessions as they are asked for in a list.
    pub(crate) fn of(query: &SessionQuery) -> Self {
        Self {
            root: query.root.clone(),
            limit: query.limit,
            id: None,
            turns: 0,
        }
    }

    fn accepts(&self, row: &SessionRow) -> bool {
        self.id
            .is_none_or(|id| row.id.starts_with(id) || row.key == id)
    }
}

/// A session with its last turns and where its transcript lies.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) session: Session,
    pub(crate) key: String,
    pub(crate) turns: Vec<Turn>,
    pub(crate) transcript: PathBuf,
}

/// Lists the sessions of every agent, newest first.
pub(crate) fn list(home: &Home, processes: &dyn Processes, wanted: &Wanted<'_>) -> Found<Listed> {
    let mut found = Found::default();
    let shared = shared::read(home).unwrap_or_else(|issue| {
        found.issues.push(issue);
        Shared::default()
    });
    let mut agents: BTreeMap<String, PathBuf> = BTreeMap::new();
    match home.agents() {
        Ok(names) => {
            found.issues.extend(names.issues);
            agents.extend(names.items.into_iter().map(|name| {
                let path = home
                    .agent(&name)
                    .join("agent")
                    .join("openclaw-agent.sqlite");
                (name, path)
            }));
        }
        Err(issue) => found.issues.push(issue),
    }
    for (name, path) in &shared.agents {
        if std::fs::symlink_metadata(path).is_ok() {
            agents.insert(name.clone(), path.clone());
        }
    }
    let mut here = wanted.root.as_deref().map(Folders::of);
    for (name, database) in &agents {
        let mut store = Store {
            shared: &shared,
            processes,
            wanted,
            here: here.as_mut(),
        };
        let of_agent = if is_migrated(database) {
            store.database(database)
        } else if let Some(files) = Files::in_folder(home.agent(name).join("sessions")) {
            store.files(&files)
        } else {
            continue;
        };
        match of_agent {
            Ok(mut of_agent) => {
                found.items.append(&mut of_agent.items);
                found.issues.append(&mut of_agent.issues);
            }
            Err(issue) => found.issues.push(issue),
        }
    }
    name_parents(&mut found.items);
    found.items.sort_by(|a, b| {
        let by_time = b.session.updated_at.cmp(&a.session.updated_at);
        by_time.then_with(|| a.key.cmp(&b.key))
    });
    if wanted.limit > 0 {
        found.items.truncate(wanted.limit);
    }
    found
}

/// Parents are recorded by key; where the key is among the sessions found, its id is named.
fn name_parents(items: &mut [Listed]) {
    let ids: BTreeMap<String, SessionId> = items
        .iter()
        .map(|listed| (listed.key.clone(), listed.session.session.id.clone()))
        .collect();
    for listed in items {
        if let Some(id) = listed
            .session
            .parent
            .as_ref()
            .and_then(|key| ids.get(key.as_str()))
        {
            listed.session.parent = Some(id.clone());
        }
    }
}

struct Store<'a> {
    shared: &'a Shared,
    processes: &'a dyn Processes,
    wanted: &'a Wanted<'a>,
    /// The work tree that is asked for.
    here: Option<&'a mut Folders>,
}

impl Store<'_> {
    fn database(&mut self, path: &Path) -> Result<Found<Listed>, Issue> {
        // Asked before the database is opened here: a connection of this process hides nobody, but costs the answer.
        let holder = Holder::find(lock_owner(path), self.shared, self.processes);
        let found = takeup_sqlite::read(path, |db| {
            let schema = Schema::of(db)?;
            let mut statements = schema.statements(db)?;
            let mut found = Found::default();
            if self.wanted.limit == 0 {
                schema.each_session(db, |row| {
                    self.row(path, row, &holder, &mut statements, &mut found)
                })?;
            } else {
                schema.newest_sessions(db, |row| {
                    self.row(path, row, &holder, &mut statements, &mut found)?;
                    Ok(found.items.len() < self.wanted.limit)
                })?;
            }
            Ok(found)
        })?;
        Ok(found.unwrap_or_default())
    }

    /// Looks at one row, and adds what it gives.
    fn row(
        &mut self,
        path: &Path,
        mut row: SessionRow,
        holder: &Holder,
        statements: &mut Statements<'_>,
        found: &mut Found<Listed>,
    ) -> Result<(), ReadError> {
        if !self.wanted.accepts(&row) {
            return Ok(());
        }
        if row.id.is_empty() {
            row.damaged = Some("it names no session id".to_owned());
        }
        if let Some(why) = row.damaged.take() {
            let message = one_line(&format!("session {:?}: {why}", row.key), 300);
            found
                .issues
                .push(Issue::new(path, IssueKind::Corrupt, message));
            return Ok(());
        }
        let own = self.own_folder(&row);
        if own.is_some() && !self.is_here(own.as_deref()) {
            return Ok(());
        }
        let fallback = || row.entry.as_ref().and_then(Entry::fallback_folder);
        let nameless = named(&row).is_none();
        let mut here = false;
        let beginning = statements.beginning(&row.id, |header| {
            let folder = own.clone().or_else(|| header.map(Path::to_path_buf));
            here = self.is_here(folder.or_else(fallback).as_deref());
            here && nameless
        })?;
        if !here {
            return Ok(());
        }
        let folder = own.or(beginning.folder).or_else(fallback);
        // A row without an entry says that its last run is over: a glance shows whether the transcript says so too.
        let glance = row.entry.is_none() && self.wanted.turns == 0;
        let mut lost = 0;
        let mut read = |most| {
            let events = statements.last_events(&row.id, most)?;
            lost = events.iter().filter(|event| event.lost).count();
            Ok::<_, ReadError>(end_of(events, self.wanted.turns))
        };
        let most = WINDOW.max(self.wanted.turns.saturating_mul(4));
        let mut tail = read(if glance { GLANCE } else { most })?;
        if glance && tail.end != End::Finished {
            tail = read(most)?;
        }
        if lost > 0 {
            let message = format!(
                "session {:?}: {lost} of its last events cannot be read",
                row.key
            );
            let message = one_line(&message, 300);
            found
                .issues
                .push(Issue::new(path, IssueKind::Corrupt, message));
        }
        let facts = Facts {
            row,
            folder,
            tail,
            said: beginning.said,
            transcript: path.to_path_buf(),
        };
        match self.session(facts, holder) {
            Ok(listed) => found.items.push(listed),
            Err(why) => found.issues.push(Issue::new(path, IssueKind::Corrupt, why)),
        }
        Ok(())
    }

    fn files(&mut self, files: &Files) -> Result<Found<Listed>, Issue> {
        let (rows, issues) = files.sessions()?;
        let mut found = Found {
            items: Vec::new(),
            issues,
        };
        for row in rows.into_iter().filter(|row| self.wanted.accepts(row)) {
            let transcript = match files.transcript_of(&row.id) {
                Ok(read) => read,
                Err(issue) => {
                    found.issues.push(issue);
                    continue;
                }
            };
            let folder = self
                .own_folder(&row)
                .or(transcript.folder)
                .or_else(|| row.entry.as_ref().and_then(Entry::fallback_folder));
            if !self.is_here(folder.as_deref()) {
                continue;
            }
            found.issues.extend(transcript.damage);
            let holder = match files.lock(&row.id) {
                Ok(None) => Holder::Nobody("no lock file stands beside its transcript".to_owned()),
                Ok(Some(owner)) => match owner.fate(self.processes) {
                    Fate::Runs(process) => Holder::AtWork(process),
                    Fate::Over(why) => {
                        Holder::Nobody(format!("the holder of its lock file is over ({why})"))
                    }
                    Fate::Unknown(why) => Holder::Unknown(why),
                },
                Err(issue) => {
                    let why = issue.message.clone();
                    found.issues.push(issue);
                    Holder::Unknown(why)
                }
            };
            let tail = end_of(transcript.events.clone(), self.wanted.turns);
            let path = active(transcript.events);
            let said = path.iter().find_map(super::transcript::Event::said);
            let facts = Facts {
                tail,
                said,
                folder,
                transcript: files.transcript(&row.id).unwrap_or_default(),
                row,
            };
            match self.session(facts, &holder) {
                Ok(listed) => found.items.push(listed),
                Err(why) => found.issues.push(Issue::new(
                    files.transcript("sessions").unwrap_or_default(),
                    IssueKind::Corrupt,
                    why,
                )),
            }
            if self.wanted.limit > 0 && found.items.len() >= self.wanted.limit {
                break;
            }
        }
        Ok(found)
    }

    /// Where the session's commands run, by its entry and the managed work trees.
    fn own_folder(&self, row: &SessionRow) -> Option<PathBuf> {
        let entry = row.entry.as_ref()?;
        entry.execution_folder().or_else(|| {
            let id = entry.worktree.as_ref()?.id.as_deref()?;
            let path = &self.shared.worktrees.get(id)?.path;
            path.is_absolute().then(|| path.clone())
        })
    }

    fn is_here(&mut self, folder: Option<&Path>) -> bool {
        match &mut self.here {
            None => true,
            Some(here) => folder.is_some_and(|folder| here.hold(folder)),
        }
    }

    fn session(&self, facts: Facts, holder: &Holder) -> Result<Listed, String> {
        let Facts {
            row,
            folder,
            tail,
            said,
            transcript,
        } = facts;
        let id = SessionId::new(&row.id).map_err(|error| error.to_string())?;
        let agent = AgentId::new(crate::ID).map_err(|error| error.to_string())?;
        let runs: Vec<&Run> = self
            .shared
            .running
            .iter()
            .filter(|run| run.session_key == row.key)
            .collect();
        let updated_at = row.updated_at.map(Time::from_millis).max(tail.last_at);
        let says_running = row.entry.as_ref().is_some_and(Entry::says_running);
        let done = row.status.as_deref() == Some("done");
        let (open, how) = match &tail.end {
            End::Calling => (true, "a call had begun and not ended"),
            End::Between => (true, "a call had ended and the turn had not"),
            End::Lost => (true, "what stands at its end cannot be read"),
            End::Asked if !done => (true, "the last message was not answered"),
            End::Aborted => (false, "its last turn was stopped"),
            End::Failed(_) => (false, "its last turn failed"),
            End::Empty | End::Asked | End::Finished => (false, "its last turn ended"),
        };
        let held = matches!(holder, Holder::Somebody { .. });
        let turn = owner::Turn {
            open: open || says_running && held,
            how: if open || !says_running {
                how
            } else {
                "its last run is recorded as going on"
            },
            last: updated_at,
        };
        let (liveness, process) = owner::liveness(turn, &runs, holder, self.processes);
        let interruption = interruption(&row, &tail, open, how, &liveness);
        let mut open_effects = Vec::new();
        if interruption.is_some() {
            open_effects = tail.open;
            open_effects.extend(self.background(&runs));
        }
        let worktree = row
            .entry
            .as_ref()
            .and_then(|entry| entry.worktree.as_ref()?.id.as_ref())
            .and_then(|id| self.shared.worktrees.get(id));
        let recovered = worktree
            .filter(|worktree| worktree.removed)
            .and_then(|worktree| worktree.snapshot.as_deref())
            .map(|name| {
                let name = one_line(name, 200);
                format!("its managed work tree was removed; what was not committed is in {name}")
            });
        let title = named(&row)
            .map(str::to_owned)
            .or(said)
            .or_else(|| row.display_name.clone())
            .and_then(|text| title(&text));
        let session = Session {
            session: SessionRef::new(agent, id),
            name: Some(one_line(&row.key, 200)),
            title,
            cwd: folder,
            created_at: row.created_at.map(Time::from_millis),
            updated_at,
            status: row.status.as_deref().map(|status| one_line(status, 40)),
            liveness,
            process,
            interruption,
            open_effects,
            messages: None,
            last_prompt: tail.last_prompt,
            plan: Vec::new(),
            parent: row
                .parent_key
                .as_deref()
                .and_then(|key| SessionId::new(key).ok()),
            helper: row.parent_key.is_some(),
            crash_group: None,
            snapshot_tree: None,
            snapshot_after: None,
            recovered: recovered.into_iter().collect(),
        };
        Ok(Listed {
            session: self.with_crash_group(session),
            key: row.key,
            turns: tail.turns,
            transcript,
        })
    }

    /// Commands in the background that are recorded as going on: the record outlives them.
    fn background<'a>(&'a self, runs: &'a [&Run]) -> impl Iterator<Item = OpenEffect> + 'a {
        runs.iter()
            .filter(|run| run.is_exec)
            .filter(|run| !matches!(run.owner.fate(self.processes), Fate::Runs(_)))
            .map(|run| OpenEffect {
                tool: "exec".to_owned(),
                argument: masked(&run.what, 200),
                at: run.started_at,
            })
    }

    /// Sessions that one gateway took down with it belong together.
    fn with_crash_group(&self, mut session: Session) -> Session {
        if matches!(session.liveness, Liveness::Crashed { .. })
            && let Some(at) = session.updated_at
        {
            session.crash_group = self
                .shared
                .boots
                .iter()
                .rfind(|boot| boot.started_at <= at)
                .filter(|boot| !boot.completed)
                .map(|boot| one_line(&boot.id, 80));
        }
        session
    }
}

/// What was read of one session.
struct Facts {
    row: SessionRow,
    folder: Option<PathBuf>,
    tail: Tail,
    said: Option<String>,
    transcript: PathBuf,
}

/// The name somebody gave the session.
fn named(row: &SessionRow) -> Option<&str> {
    let of_entry = row.entry.as_ref().and_then(|entry| entry.title(&row.key));
    of_entry.or_else(|| {
        [row.display_name.as_deref(), row.label.as_deref()]
            .into_iter()
            .flatten()
            .find(|text| is_name(text, &row.key))
    })
}

fn interruption(
    row: &SessionRow,
    tail: &Tail,
    open: bool,
    how: &str,
    liveness: &Liveness,
) -> Option<Interruption> {
    let goal = row.entry.as_ref().and_then(|entry| entry.goal.as_ref());
    let limited = goal
        .and_then(|goal| goal.status.as_deref())
        .filter(|status| matches!(*status, "usage_limited" | "budget_limited"));
    let interrupted = |reason: InterruptionReason, proof: String| {
        Some(Interruption {
            reason,
            proof,
            until: None,
        })
    };
    if matches!(liveness, Liveness::Live { .. }) {
        return None;
    }
    if let Some(status) = limited {
        return interrupted(
            InterruptionReason::UsageLimit,
            format!("its goal is marked {status}"),
        );
    }
    match &tail.end {
        End::Aborted => interrupted(InterruptionReason::Cancelled, how.to_owned()),
        End::Failed(text) if text.is_empty() => {
            interrupted(InterruptionReason::Error, how.to_owned())
        }
        End::Failed(text) => interrupted(InterruptionReason::Error, format!("{how}: {text}")),
        End::Calling | End::Between | End::Lost | End::Asked if open => match row.status.as_deref()
        {
            Some("killed") => interrupted(
                InterruptionReason::Cancelled,
                format!("{how}, and its row says that it was killed"),
            ),
            Some("timeout") => interrupted(
                InterruptionReason::Error,
                format!("{how}, and its row says that the time was over"),
            ),
            Some(_) | None => {
                let reason = if matches!(liveness, Liveness::Crashed { .. }) {
                    InterruptionReason::Crash
                } else {
                    InterruptionReason::Unknown
                };
                interrupted(reason, how.to_owned())
            }
        },
        End::Empty | End::Finished | End::Calling | End::Between | End::Lost | End::Asked => None,
    }
}
