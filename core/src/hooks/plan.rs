//! What an installation or removal would change. Reads, and writes nothing.
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::by_hand::{ByHand, by_hand, idle, not_joined, together};
use super::folder::{Folder, folder};
use super::join::{Join, into_file, moved_ours};
use super::manager;
use super::seen::Seen;
use super::{EVENTS, HookError, leftovers, stub};
use crate::env::Env;
use crate::files::FileError;
use crate::ledger::{InstalledHook, State};
use crate::paths::text_of_path;
use crate::repository::{GitVersion, Repository};
use crate::time::Time;

/// What an installation is for.
#[derive(Clone, Debug)]
pub struct Installation<'a> {
    /// The caller's environment.
    pub env: &'a Env,
    /// The repository.
    pub repository: &'a Repository,
    /// The version of git that runs the hooks.
    pub version: GitVersion,
    /// The program that the hooks call; where it is gone one day, PATH is asked.
    pub program: &'a Path,
    /// For all repositories of the user, in the user's configuration.
    pub global: bool,
    /// Now.
    pub now: Time,
}

/// What would change, what comes of it, and what remains for a person to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// What comes of each hook.
    pub outcomes: Vec<Outcome>,
    /// What the ledger has to hold afterwards, by hook; `None` takes the record out.
    pub records: Vec<(String, Option<InstalledHook>)>,
    /// Hooks that are there and call us: the ledger has to hold them where it does not.
    pub known: Vec<InstalledHook>,
    /// What a person has to know besides.
    pub notes: Vec<String>,
    /// Folders from which goes what a killed installation left there.
    pub folders: Vec<PathBuf>,
}

impl Plan {
    /// Tells whether every hook runs afterwards.
    pub fn is_complete(&self) -> bool {
        self.outcomes.iter().all(|outcome| match outcome {
            Outcome::Put { .. }
            | Outcome::There { .. }
            | Outcome::Taken { .. }
            | Outcome::None { .. } => true,
            Outcome::ByHand { what, .. } => what.done,
            Outcome::Stays { .. } => false,
        })
    }

    /// Notes a hook that calls us afterwards: put there now, or before.
    fn take_in(&mut self, hook: InstalledHook, put: bool) {
        if put {
            self.records.push((hook.name.clone(), Some(hook)));
        } else {
            self.known.push(hook);
        }
    }

    /// Adds to the records what is there, calls us, and is not in the ledger. What stands in another place than the one that is
    /// recorded now, as where `core.hooksPath` was changed, stays recorded beside it: a removal takes it out as well.
    pub fn complete_records(&mut self, state: &State) {
        for hook in self.known.drain(..) {
            let recorded = state.hooks.get(&hook.name);
            if recorded.is_none_or(|recorded| recorded.place != hook.place) {
                self.records.push((hook.name.clone(), Some(hook)));
            }
        }
        let mut former = Vec::new();
        for (name, hook) in &self.records {
            let Some((now, then)) = hook.as_ref().zip(state.hooks.get(name)) else {
                continue;
            };
            if then.place != now.place && leftovers::is_ours_still(then) {
                former.push((leftovers::former_name(then), Some(then.clone())));
            }
        }
        self.records.append(&mut former);
    }
}

/// What comes of one hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// It is put in.
    Put {
        /// The hook.
        event: String,
        /// Where.
        place: String,
    },
    /// It is there already.
    There {
        /// The hook.
        event: String,
        /// Where.
        place: String,
    },
    /// It is taken out.
    Taken {
        /// The hook.
        event: String,
        /// From where.
        place: String,
    },
    /// There is nothing to take out.
    None {
        /// The hook.
        event: String,
    },
    /// It goes on: a person added the call, and has to take it out.
    Stays {
        /// The hook.
        event: String,
        /// The file.
        place: String,
        /// The numbers of the lines that call us, from one.
        lines: Vec<usize>,
    },
    /// Somebody else manages it: a person has to add something.
    ByHand {
        /// The hook.
        event: String,
        /// What to add where.
        #[serde(flatten)]
        what: ByHand,
    },
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A folder is made.
    MakeFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A hook is kept under a second name, as it is; its own name is taken by the next change.
    Keep {
        /// Its name.
        from: PathBuf,
        /// The second name.
        to: PathBuf,
    },
    /// A file is written, at once or not at all.
    Write {
        /// The file.
        path: PathBuf,
        /// What is there now; if it is something else by then, nothing is written.
        before: Seen,
        /// Its content.
        after: Vec<u8>,
        /// Its permission bits.
        mode: u32,
        /// Git's own lock for configuration files is taken.
        config: bool,
    },
    /// A kept hook gets its name back.
    Restore {
        /// The second name.
        from: PathBuf,
        /// Its name.
        to: PathBuf,
    },
    /// A file of ours is removed.
    Remove {
        /// The file.
        path: PathBuf,
        /// What is there now.
        before: Seen,
    },
    /// A folder of ours is removed where it is empty.
    RemoveFolder {
        /// The folder.
        path: PathBuf,
    },
}

/// Plans the installation. What is there already is left as it is, so a second one changes nothing.
pub fn plan_install(what: &Installation<'_>) -> Result<Plan, HookError> {
    let program = what.program;
    let by_config = what.version >= GitVersion::CONFIG_HOOKS;
    if what.global && !by_config {
        return Err(HookError::NoConfigHooks {
            version: what.version,
        });
    }
    let place = what.repository.place();
    let git = what.repository.git();
    let mut plan = Plan::default();
    if what.global {
        let file = user_config(what.env);
        into_config(&mut plan, what, &file, program)?;
        plan.records.clear();
        plan.known.clear();
        return Ok(plan);
    }
    let folder = folder(place, git)?;
    plan.folders = vec![place.common_dir.clone(), folder.path.clone()];
    into_place(&mut plan, what, folder)?;
    // Where HEAD cannot be read, its log tells by the time alone what came later.
    let head = git.head().ok().and_then(|head| head.commit);
    let put = plan
        .records
        .iter_mut()
        .filter_map(|(_, hook)| hook.as_mut());
    for hook in put.chain(&mut plan.known) {
        hook.head.clone_from(&head);
    }
    Ok(plan)
}

/// Plans the installation for one repository.
fn into_place(plan: &mut Plan, what: &Installation<'_>, folder: Folder) -> Result<(), HookError> {
    let place = what.repository.place();
    let program = what.program;
    let by_config = what.version >= GitVersion::CONFIG_HOOKS;
    // What is in files stays in files: no hook shall run twice.
    let in_files = EVENTS
        .iter()
        .any(|event| leftovers::is_ours(&folder.path.join(event)));
    if by_config && !in_files {
        return into_config(plan, what, &place.common_dir.join("config"), program);
    }
    if let Some(off) = folder.off {
        return Err(off.error(&folder.path));
    }
    into_folder(plan, what, &folder, program)
}

/// Returns the user's configuration file, by git's rules (git-config(1), FILES). Links are followed: git does.
pub(super) fn user_config(env: &Env) -> PathBuf {
    let home = env.home().unwrap_or_else(|| PathBuf::from("/"));
    let file = if let Some(file) = env.absolute("GIT_CONFIG_GLOBAL") {
        file
    } else {
        let own = home.join(".gitconfig");
        let xdg = env
            .absolute("XDG_CONFIG_HOME")
            .unwrap_or_else(|| home.join(".config"))
            .join("git/config");
        if !own.exists() && xdg.exists() {
            xdg
        } else {
            own
        }
    };
    std::fs::canonicalize(&file).unwrap_or(file)
}

fn into_config(
    plan: &mut Plan,
    what: &Installation<'_>,
    file: &Path,
    program: &Path,
) -> Result<(), HookError> {
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let before = Seen::at(&file)?;
    let (content, mode) = match &before {
        Seen::Nothing => (Vec::new(), 0o644),
        Seen::File { bytes, mode } => (bytes.clone(), *mode),
        Seen::Link { .. } | Seen::Other => {
            return Err(
                FileError::new("cannot use", &file, std::io::ErrorKind::InvalidInput).into(),
            );
        }
    };
    let bare = match stub::find(&content) {
        Some(found) => stub::removed(&content, found),
        None => content.clone(),
    };
    let after = stub::config_added(&bare, &EVENTS, program);
    let changed = after != content;
    for event in EVENTS {
        let key = format!(
            "hook.{}.command in {}",
            stub::config_name(event),
            file.display()
        );
        plan.outcomes.push(if changed {
            Outcome::Put {
                event: event.to_owned(),
                place: key.clone(),
            }
        } else {
            Outcome::There {
                event: event.to_owned(),
                place: key.clone(),
            }
        });
        if let Some(found) = stub::find(&after) {
            let hook = installed(event, key, stub::text_of(&after, found), what.now);
            plan.take_in(hook, changed);
        }
    }
    if changed {
        plan.changes.push(Change::Write {
            path: file,
            before,
            after,
            mode,
            config: true,
        });
    }
    Ok(())
}

fn installed(event: &str, place: String, text: &[u8], now: Time) -> InstalledHook {
    InstalledHook {
        name: event.to_owned(),
        place,
        sha256: stub::digest(text),
        installed_at: now,
        last_ran: None,
        made_folder: false,
        head: None,
    }
}

/// The record of a hook that is in a file.
fn in_file(event: &str, file: &Path, content: &[u8], now: Time) -> InstalledHook {
    let text = stub::find(content).map_or(content, |found| stub::text_of(content, found));
    installed(event, text_of_path(file), text, now)
}

fn into_folder(
    plan: &mut Plan,
    what: &Installation<'_>,
    folder: &Folder,
    program: &Path,
) -> Result<(), HookError> {
    let place = what.repository.place();
    let make_folder = folder.manager.is_none() && !folder.path.exists();
    let in_git = [&place.common_dir, &place.git_dir]
        .iter()
        .any(|git| folder.path.starts_with(git));
    if make_folder && !in_git {
        // Nothing is made outside the repository: perhaps the setting is wrong, perhaps a disk is not there.
        let entry = what.repository.git().config("core.hooksPath")?;
        return Err(HookError::NoFolder {
            path: folder.path.clone(),
            scope: entry.map(|entry| entry.scope),
        });
    }
    if make_folder {
        plan.changes.push(Change::MakeFolder {
            path: folder.path.clone(),
        });
    }
    for event in EVENTS {
        let path = folder.path.join(event);
        let seen = Seen::at(&path)?;
        let by = folder.manager.or_else(|| match &seen {
            Seen::File { bytes, .. } if stub::find(bytes).is_none() => manager::of_hook(bytes),
            Seen::File { .. } | Seen::Link { .. } | Seen::Nothing | Seen::Other => None,
        });
        if by.is_some()
            && let Some(legacy) = moved_ours(&path)
        {
            if let Seen::File { bytes, .. } = Seen::at(&legacy)? {
                plan.take_in(in_file(event, &legacy, &bytes, what.now), false);
            }
            plan.outcomes.push(Outcome::There {
                event: event.to_owned(),
                place: text_of_path(&legacy),
            });
            continue;
        }
        if let Some(manager) = by {
            let told = by_hand(manager, place, &folder.path, event);
            if told.done
                && let Seen::File { bytes, .. } = Seen::at(&told.file)?
            {
                plan.take_in(in_file(event, &told.file, &bytes, what.now), false);
            }
            plan.outcomes.push(Outcome::ByHand {
                event: event.to_owned(),
                what: told,
            });
            continue;
        }
        let by_hand = |what| Outcome::ByHand {
            event: event.to_owned(),
            what,
        };
        let (mut changes, after) = match into_file(&path, &seen, event, program)? {
            Join::Done(changes, after) => (changes, after),
            Join::Idle(why) => {
                plan.outcomes.push(by_hand(idle(&path, &why)));
                continue;
            }
            Join::Not => {
                plan.outcomes.push(by_hand(not_joined(&path, event)));
                continue;
            }
        };
        plan.take_in(in_file(event, &path, &after, what.now), !changes.is_empty());
        let (event, place) = (event.to_owned(), text_of_path(&path));
        plan.outcomes.push(if changes.is_empty() {
            Outcome::There { event, place }
        } else {
            Outcome::Put { event, place }
        });
        plan.changes.append(&mut changes);
    }
    together(
        plan.outcomes
            .iter_mut()
            .filter_map(|outcome| match outcome {
                Outcome::ByHand { what, .. } => Some(what),
                Outcome::Put { .. }
                | Outcome::There { .. }
                | Outcome::Taken { .. }
                | Outcome::Stays { .. }
                | Outcome::None { .. } => None,
            }),
    );
    for (_, record) in &mut plan.records {
        if let Some(record) = record {
            record.made_folder = make_folder;
        }
    }
    if folder.manager.is_some() && !folder.path.exists() {
        plan.notes.push(format!(
            "git looks for hooks in {}, which does not exist in this work tree: it has no hooks",
            folder.path.display()
        ));
    }
    Ok(())
}
