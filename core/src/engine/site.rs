//! The place of a call, opened: repository, tokens, ledger.
use schemars::JsonSchema;
use serde::Serialize;

use super::{Engine, EngineError};
use crate::fingerprint::{self, Look, Options};
use crate::identity::{Identity, PlaceRecord, SessionRecord};
use crate::ids::{RepositoryId, SessionRef, TaskId};
use crate::issue::{Issue, IssueKind};
use crate::ledger::{Actor, Change, Ledger, TaskEntry, Transition, View};
use crate::paths::{path_of_text, text_of_path};
use crate::repository::{self, Place, Repository, RepositoryError, Tokens};
use crate::verdict::{Sharing, Whereabouts};

/// The place of a call, opened for reading.
#[derive(Debug)]
pub struct Site {
    /// The repository.
    pub repository: Repository,
    /// Its tokens, as far as there are any.
    pub tokens: Tokens,
    /// The ledger.
    pub ledger: Ledger,
    /// What the ledger held when it was opened.
    pub view: View,
}

impl Site {
    /// Opens the place of the call. Creates nothing.
    pub fn open(engine: &Engine<'_>) -> Result<Self, EngineError> {
        let repository = Repository::discover(engine.env, &engine.env.cwd)?;
        let ledger = Ledger::at(repository.place().state()).during(engine.operation);
        let view = ledger.read()?;
        // After the ledger: whoever first writes there has made them.
        let tokens = repository::tokens(repository.place())?;
        Ok(Self {
            repository,
            tokens,
            ledger,
            view,
        })
    }

    /// Opens the place of the call for writing: makes the tokens where there are none.
    pub fn open_or_init(engine: &Engine<'_>) -> Result<Self, EngineError> {
        let mut site = Self::open(engine)?;
        site.make_tokens(engine)?;
        site.tokens = repository::tokens(site.place())?;
        Ok(site)
    }

    /// Makes the tokens of the place on disk where there are none.
    pub(super) fn make_tokens(&self, engine: &Engine<'_>) -> Result<(), EngineError> {
        if self.tokens.repository.is_none() || self.tokens.worktree.is_none() {
            self.refuse_sudo(engine)?;
            repository::create_tokens(self.place())?;
        }
        self.keep_out_of_content()?;
        // Also where a git hook made the tokens. The index of places is a convenience; a home that cannot be written is no
        // reason to fail.
        let _added = repository::add_place(
            engine.env,
            self.place(),
            &self.place_record()?,
            engine.clock.now(),
        );
        Ok(())
    }

    /// Tells git, and so the look, that our own folders are no content where git does not know so by itself: where the git folder
    /// has another name than `.git`, and so may lie in a work tree as any folder does.
    fn keep_out_of_content(&self) -> Result<(), EngineError> {
        let place = self.place();
        for folder in [&place.common_dir, &place.git_dir] {
            let is_known = folder.components().any(|part| part.as_os_str() == ".git");
            let ours = folder.join("takeup");
            let is_folder = std::fs::symlink_metadata(&ours).is_ok_and(|data| data.is_dir());
            if !is_known && is_folder {
                crate::files::keep_out_of_git(&ours)?;
            }
        }
        Ok(())
    }

    /// Refuses to begin here as root for the user who called `sudo` and owns the repository: what is made would belong to root,
    /// and that user could neither read nor write it from then on.
    fn refuse_sudo(&self, engine: &Engine<'_>) -> Result<(), EngineError> {
        use std::os::unix::fs::MetadataExt as _;
        let caller: Option<u32> = engine.env.text("SUDO_UID").and_then(|uid| uid.parse().ok());
        let own = rustix::process::geteuid().as_raw();
        let owner = std::fs::metadata(&self.place().common_dir).map(|data| data.uid());
        match (caller, owner) {
            (Some(caller), Ok(owner)) if caller == owner && owner != own => {
                Err(EngineError::NotAllowed(format!(
                    "{} belongs to the user who called sudo: what is made there now would be out of that user's reach; run it \
                     without sudo",
                    text_of_path(&self.place().root)
                )))
            }
            _ => Ok(()),
        }
    }

    /// Opens the place of the call and demands that takeup is used there. `asked` is the task that is asked for.
    pub fn open_used(engine: &Engine<'_>, asked: Option<&str>) -> Result<Self, EngineError> {
        let site = Self::open(engine)?;
        if site.is_used() {
            Ok(site)
        } else {
            Err(site.unused(asked))
        }
    }

    /// Says that takeup is not used here.
    pub(super) fn unused(&self, asked: Option<&str>) -> EngineError {
        EngineError::NotInitialised {
            root: text_of_path(&self.place().root),
            asked: asked.map(str::to_owned),
        }
    }

    /// Tells whether takeup is used in this repository.
    pub fn is_used(&self) -> bool {
        self.tokens.repository.is_some() || self.ledger.exists()
    }

    /// Returns the place.
    pub fn place(&self) -> &Place {
        self.repository.place()
    }

    /// Returns the record of the place; fails where takeup was never used.
    pub fn place_record(&self) -> Result<PlaceRecord, EngineError> {
        Ok(repository::place_record(self.place())?)
    }

    /// Tells how this place relates to a recorded one.
    pub fn whereabouts(&self, recorded: &PlaceRecord) -> Result<Whereabouts, EngineError> {
        Ok(repository::whereabouts(
            self.place(),
            &self.tokens,
            recorded,
        )?)
    }

    /// Returns the root of a record's work tree, written as there: where that is now, if it is another one of this repository.
    pub(super) fn root_now(&self, recorded: &PlaceRecord, whereabouts: Whereabouts) -> String {
        let moved = (whereabouts == Whereabouts::OtherWorktree)
            .then(|| repository::root_of(self.place(), &recorded.worktree_id))
            .flatten();
        moved.map_or_else(|| recorded.root.clone(), |root| text_of_path(&root))
    }

    /// Tells whether something was recorded in this work tree.
    pub(super) fn is_here(&self, recorded: &PlaceRecord) -> bool {
        Some(&recorded.worktree_id) == self.tokens.worktree.as_ref()
    }

    /// Names the work tree of a record, for people.
    pub(super) fn described(
        &self,
        engine: &Engine<'_>,
        recorded: &PlaceRecord,
        whereabouts: Whereabouts,
    ) -> String {
        let root = self.root_now(recorded, whereabouts);
        if whereabouts != Whereabouts::WorktreeAway {
            return root;
        }
        match repository::lock_reason(self.place(), &recorded.worktree_id) {
            Some(why) if why.is_empty() => format!("{root}, locked"),
            Some(why) => format!("{root}, locked: {}", engine.mask(&why)),
            None => root,
        }
    }

    /// Looks at the tree. `write` allows keeping the cache up.
    pub fn look(
        &self,
        engine: &Engine<'_>,
        write: bool,
        verify: bool,
    ) -> Result<Look, EngineError> {
        if write {
            self.keep_out_of_content()?;
        }
        look_at(self.place(), engine, write, verify)
    }
}

/// Looks at the tree of the call's place, for those who want to know nothing else: neither git nor the ledger is opened where
/// the place is a plain one. Changes nothing on disk.
pub fn look_here(engine: &Engine<'_>, verify: bool) -> Result<Look, EngineError> {
    let place = match repository::plain_place(engine.env, &engine.env.cwd) {
        Some(place) => place,
        None => repository::discover(engine.env, &engine.env.cwd)?,
    };
    look_at(&place, engine, false, verify)
}

fn look_at(
    place: &Place,
    engine: &Engine<'_>,
    write: bool,
    verify: bool,
) -> Result<Look, EngineError> {
    let mut options = if write {
        Options::new(engine.env)
    } else {
        Options::reading_only(engine.env)
    };
    options.excluded.clone_from(&engine.settings.exclude);
    options.repository_programs = engine.settings.repository_programs;
    options.verify = verify;
    options.interrupt = engine.interrupt;
    let mut look = fingerprint::look(place, &options)?;
    // A name, for people to read: nothing is looked up by it.
    look.record.branch = look.record.branch.map(|branch| engine.mask(&branch));
    Ok(look)
}

/// Returns what is damaged in the ledger of this place, and what was put aside because of it: what is not found may have been
/// there. Reads only; a ledger that cannot be looked at has an error of its own.
pub fn losses(engine: &Engine<'_>) -> Vec<Issue> {
    let Ok(site) = Site::open(engine) else {
        return Vec::new();
    };
    let mut issues = site.view.issues;
    for path in site.ledger.aside().unwrap_or_default() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let kind = if name.starts_with("torn-") {
            IssueKind::Torn
        } else if name.starts_with("damaged-") {
            IssueKind::Corrupt
        } else {
            continue;
        };
        issues.push(Issue::new(&path, kind, "it was damaged and is kept aside"));
    }
    issues
}

/// How `init` is meant where the place has a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitMode {
    /// Make the ledger where there is none.
    #[default]
    Plain,
    /// The repository was moved here on purpose, or this work tree was made anew at the path of one that is gone: the tasks
    /// belong to this place now.
    Moved,
    /// This is a copy that becomes a place of its own: the tasks stay with the original.
    Copied,
}

/// The answer of `init`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Initialised {
    /// The top of the work tree.
    pub repository_root: String,
    /// The repository's id.
    pub repository_id: String,
    /// The work tree's id.
    pub worktree_id: String,
    /// Something was made or changed.
    pub changed: bool,
    /// Identities that were tied to this place after a move, or that were begun in a copy and stay with it.
    pub rebound: usize,
    /// Tasks that stay with the original (after a copy).
    pub left_behind: usize,
    /// Tasks of an original that is not where it was: the archive keeps their records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub archived: Vec<TaskId>,
}

/// Makes the ledger and the tokens of this place; after a move or a copy says whose the tasks are.
pub fn init(engine: &Engine<'_>, mode: InitMode) -> Result<Initialised, EngineError> {
    let mut site = Site::open(engine)?;
    let mut changed = site.tokens.repository.is_none() || site.tokens.worktree.is_none();
    let (mut rebound, mut left_behind, mut archived) = (0, 0, Vec::new());
    match mode {
        InitMode::Plain => {}
        InitMode::Moved => {
            if site.tokens.worktree.is_none() && stands_in_place_of_gone(&site) {
                site = Site::open_or_init(engine)?;
                changed = true;
            }
            rebound = move_here(engine, &site)?;
            if rebound == 0 {
                demand_unshared(&site, |sharing| sharing == Sharing::Link)?;
            }
        }
        InitMode::Copied => {
            if let Some(done) = leave_behind(engine, &site)? {
                (left_behind, archived, rebound) = (done.tasks, done.archived, done.rebound);
                site.tokens = repository::tokens(site.place())?;
                changed = true;
            }
        }
    }
    if changed {
        site = Site::open_or_init(engine)?;
    }
    let place = site.place_record()?;
    Ok(Initialised {
        repository_root: place.root.clone(),
        repository_id: place.repository_id.to_string(),
        worktree_id: place.worktree_id.to_string(),
        changed: changed || rebound > 0,
        rebound,
        left_behind,
        archived,
    })
}

fn is_now(site: &Site, identity: &Identity, whereabouts: Whereabouts) -> bool {
    lies(site, &identity.place, whereabouts)
}

fn lies(site: &Site, place: &PlaceRecord, whereabouts: Whereabouts) -> bool {
    site.whereabouts(place)
        .is_ok_and(|found| found == whereabouts)
}

/// Says why the folder that something was left in has the present git folder, where it has it.
fn shares(site: &Site, place: &PlaceRecord) -> Option<Sharing> {
    match site.whereabouts(place) {
        Ok(Whereabouts::Shared(sharing)) => Some(sharing),
        Ok(_) | Err(_) => None,
    }
}

/// Lists the places that tasks, and sessions without one, were left in.
fn places(site: &Site) -> impl Iterator<Item = &PlaceRecord> {
    let state = &site.view.state;
    let identities = state.tasks.values().flat_map(|entry| &entry.identities);
    identities
        .map(|identity| &identity.place)
        .chain(state.sessions.iter().flat_map(SessionRecord::places))
}

/// Fails where something was left in another folder with the present git folder: there is one ledger, and no copy of it.
fn demand_unshared(site: &Site, counts: impl Fn(Sharing) -> bool) -> Result<(), EngineError> {
    for place in places(site) {
        if let Some(sharing) = shares(site, place).filter(|sharing| counts(*sharing)) {
            return Err(EngineError::Repository(RepositoryError::SharedGitDir {
                root: site.place().root.clone(),
                other: path_of_text(&place.root).unwrap_or_default(),
                sharing,
            }));
        }
    }
    Ok(())
}

/// Tells whether something was left in a work tree that stood here and is gone.
fn was_here(site: &Site, place: &PlaceRecord) -> bool {
    lies(site, place, Whereabouts::WorktreeGone)
        && path_of_text(&place.root).as_ref() == Some(&site.place().root)
}

fn stands_in_place_of_gone(site: &Site) -> bool {
    places(site).any(|place| was_here(site, place))
}

/// Ties every identity that was left at a place that is gone to this one.
fn move_here(engine: &Engine<'_>, site: &Site) -> Result<usize, EngineError> {
    if site.tokens.worktree.is_none() && site.tokens.repository.is_some() {
        // Other work trees have tasks, and none of them can have been left in this one.
        return Ok(0);
    }
    let place = site.place_record()?;
    let at = engine.clock.now();
    let actor = Actor {
        session: SessionRef::person(),
        pid: std::process::id(),
    };
    let moves = |place: &PlaceRecord| {
        lies(site, place, Whereabouts::Relocated)
            || lies(site, place, Whereabouts::CopyOfGone)
            || shares(site, place).is_some_and(|sharing| sharing != Sharing::Link)
            || was_here(site, place)
    };
    // Sessions that hold no task are only where hooks recorded them.
    let sessions: Vec<_> = site
        .view
        .state
        .sessions
        .iter()
        .filter(|record| record.places().any(moves))
        .map(|record| record.session.clone())
        .collect();
    let relocated: Vec<_> = site
        .view
        .state
        .tasks
        .values()
        .flat_map(|entry| &entry.identities)
        .filter(|identity| moves(&identity.place))
        .map(|identity| (identity.task_id.clone(), identity.session.clone()))
        .collect();
    let committed = site
        .ledger
        .transact(engine.clock, super::PATIENCE, |view| {
            let sessions = sessions
                .iter()
                .filter_map(|session| view.state.session(session))
                .map(|record| {
                    let tied = |known: &PlaceRecord| {
                        if moves(known) {
                            place.clone()
                        } else {
                            known.clone()
                        }
                    };
                    Change::Session {
                        session: Box::new(record.clone().tied(tied)),
                    }
                });
            let changes: Vec<Change> = relocated
                .iter()
                .filter_map(|(task, session)| view.state.identity(task, session))
                .map(|identity| {
                    let mut identity = identity.clone();
                    identity.place = place.clone();
                    identity.revision += 1;
                    Change::Identity {
                        identity: Box::new(identity),
                    }
                })
                .chain(sessions)
                .collect();
            let count = changes.len();
            let transition = (count > 0).then(|| Transition {
                at,
                actor: actor.clone(),
                operation: "init-moved".to_owned(),
                changes,
            });
            Ok::<_, EngineError>((transition, count))
        })?;
    Ok(committed.value)
}

/// Ends what a call of [`leave_behind`] began before it was cut off: the records are tied to ids that the place was not given
/// any more. Returns how many those are; `None` where nothing of the kind is left to do.
fn go_on_leaving_behind(site: &Site) -> Result<Option<usize>, EngineError> {
    let Some(ids) = repository::promised_tokens(site.place())? else {
        return Ok(None);
    };
    let present = &site.tokens;
    if (present.repository.as_ref(), present.worktree.as_ref()) == (Some(&ids.0), Some(&ids.1)) {
        repository::forget_promise(site.place())?;
        return Ok(None);
    }
    let state = &site.view.state;
    let count = |id: Option<&RepositoryId>| {
        let is_tied = |place: &PlaceRecord| Some(&place.repository_id) == id;
        let identities = state.tasks.values().flat_map(|entry| &entry.identities);
        let sessions = state.sessions.iter();
        identities
            .filter(|identity| is_tied(&identity.place))
            .count()
            + sessions
                .filter(|record| record.places().any(is_tied))
                .count()
    };
    let tied = count(Some(&ids.0));
    if tied == 0 && count(present.repository.as_ref()) > 0 {
        // It was cut off before anything was recorded.
        return Ok(None);
    }
    repository::put_tokens(site.place(), &ids)?;
    Ok(Some(tied))
}

/// What [`leave_behind`] did.
#[derive(Default)]
struct LeftBehind {
    tasks: usize,
    archived: Vec<TaskId>,
    rebound: usize,
}

/// Makes a copy a place of its own: the tasks that it brought along are put out of sight, for they belong to the original, and
/// what was begun in it is tied to its new tokens. Where the original is not known to be there, this may be the only record of
/// them, and the archive keeps it. `None` where nothing was brought along.
fn leave_behind(engine: &Engine<'_>, site: &Site) -> Result<Option<LeftBehind>, EngineError> {
    if let Some(rebound) = go_on_leaving_behind(site)? {
        return Ok(Some(LeftBehind {
            rebound,
            ..LeftBehind::default()
        }));
    }
    let entries = || site.view.state.tasks.values();
    let is_brought = |place: &PlaceRecord| {
        lies(site, place, Whereabouts::Copied) || lies(site, place, Whereabouts::CopyOfGone)
    };
    // What the original recorded in a folder that only the environment named was brought along as well.
    let is_copied = |identity: &Identity| {
        is_brought(&identity.place) || shares(site, &identity.place).is_some()
    };
    let sessions = || site.view.state.sessions.iter();
    if !places(site).any(is_brought) {
        demand_unshared(site, |_| true)?;
        return Ok(None);
    }
    let tokens = repository::new_tokens(site.place())?;
    repository::promise_tokens(site.place(), &tokens)?;
    let mut here = site.place_record()?;
    (here.repository_id, here.worktree_id) = tokens.clone();
    // Another work tree of the copy keeps its own token.
    let stays = |place: &PlaceRecord| {
        lies(site, place, Whereabouts::Same) || lies(site, place, Whereabouts::OtherWorktree)
    };
    let tied = |place: &PlaceRecord| {
        if lies(site, place, Whereabouts::Same) {
            here.clone()
        } else {
            PlaceRecord {
                repository_id: tokens.0.clone(),
                ..place.clone()
            }
        }
    };
    let at = engine.clock.now();
    let actor = Actor {
        session: SessionRef::person(),
        pid: std::process::id(),
    };
    let (kept, copied): (Vec<_>, Vec<_>) = entries()
        .filter(|entry| !entry.identities.is_empty())
        .partition(|entry| {
            let mut identities = entry.identities.iter();
            identities.any(|identity| stays(&identity.place))
        });
    let copied: Vec<_> = copied
        .into_iter()
        .filter(|entry| {
            // The original's linked work trees are none of the copy's.
            entry.identities.iter().any(|identity| {
                is_copied(identity)
                    || is_now(site, identity, Whereabouts::WorktreeGone)
                    || is_now(site, identity, Whereabouts::WorktreeAway)
                    || is_now(site, identity, Whereabouts::WorktreeUnlinked)
            })
        })
        .collect();
    let is_there = places(site).any(|place| lies(site, place, Whereabouts::Copied));
    let copied = if is_there {
        copied
    } else {
        site.ledger.write_archive(copied)?
    };
    let kept: Vec<_> = kept
        .into_iter()
        .flat_map(|entry| &entry.identities)
        .filter(|identity| stays(&identity.place))
        .map(|identity| (identity.task_id.clone(), identity.session.clone()))
        .collect();
    // Those of the original are out of sight by themselves: the ledger shows what hooks recorded under its own token.
    let kept_sessions: Vec<_> = sessions()
        .filter(|record| record.places().any(stays))
        .map(|record| record.session.clone())
        .collect();
    let committed = site
        .ledger
        .transact(engine.clock, super::PATIENCE, |view| {
            // Records go by what the ledger holds now: somebody may have saved meanwhile.
            let mut changes: Vec<Change> = kept
                .iter()
                .filter_map(|(task, session)| view.state.identity(task, session))
                .map(|identity| Change::Identity {
                    identity: Box::new(Identity {
                        place: tied(&identity.place),
                        revision: identity.revision + 1,
                        ..identity.clone()
                    }),
                })
                .collect();
            let sessions = kept_sessions
                .iter()
                .filter_map(|session| view.state.session(session))
                .map(|record| {
                    let tied = |known: &PlaceRecord| {
                        if stays(known) {
                            tied(known)
                        } else {
                            known.clone()
                        }
                    };
                    Change::Session {
                        session: Box::new(record.clone().tied(tied)),
                    }
                });
            changes.extend(sessions);
            let rebound = changes.len();
            let is_kept = |entry: &&&TaskEntry| {
                is_there || view.state.tasks.get(&entry.task.task_id) == Some(**entry)
            };
            let left: Vec<TaskId> = copied
                .iter()
                .filter(is_kept)
                .map(|entry| entry.task.task_id.clone())
                .collect();
            changes.push(Change::Archived {
                task_ids: left.clone(),
            });
            let transition = Transition {
                at,
                actor: actor.clone(),
                operation: "init-copied".to_owned(),
                changes,
            };
            let done = LeftBehind {
                tasks: if is_there { left.len() } else { 0 },
                archived: if is_there { Vec::new() } else { left },
                rebound,
            };
            Ok::<_, EngineError>((Some(transition), done))
        })?;
    repository::put_tokens(site.place(), &tokens)?;
    Ok(Some(committed.value))
}
