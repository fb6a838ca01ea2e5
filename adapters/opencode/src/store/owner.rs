//! Whether a session is alive: OpenCode records no process, but whoever has its database open holds a lock, and the system
//! says who that is, where it works and since when it runs.
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use takeup_core::process::{self, Liveness, ProcessIdentity, Processes as _, system};
use takeup_core::time::Time;
use takeup_sqlite::{Owner, lock_owner};

use super::Row;
use super::history::{self, Ending};

/// A running turn writes every few seconds, except during one long call; in milliseconds.
const FRESH: i64 = 120_000;
/// Clocks of the database and of the process table may differ by so much, in milliseconds.
const SLACK: i64 = 2_000;

/// The processes that have a database open.
#[derive(Clone, Debug)]
pub(super) struct Holders {
    owner: Owner,
    /// Those that could be found in the process table.
    known: Vec<Holder>,
    /// The store has no owner that could be asked (the JSON trees).
    without_lock: bool,
}

#[derive(Clone, Debug)]
struct Holder {
    pid: u32,
    cwd: Option<PathBuf>,
    process: Option<ProcessIdentity>,
    /// It stands above this very process: that it lives says nothing of other sessions than the caller's.
    calls_us: bool,
}

impl Holders {
    /// Asks who has a database open.
    pub(super) fn of(row: &Row) -> Self {
        let database = row.source.as_path();
        if !row.in_database {
            return Self {
                owner: Owner::Free,
                known: Vec::new(),
                without_lock: true,
            };
        }
        let owner = lock_owner(database);
        let known = match &owner {
            Owner::Free => Vec::new(),
            Owner::Held { .. } | Owner::Unknown { .. } => openers(database),
        };
        Self {
            owner,
            known,
            without_lock: false,
        }
    }

    /// Returns the process that works in a folder, if there is exactly one.
    pub(super) fn process_in(&self, folder: &Path) -> Option<ProcessIdentity> {
        let mut inside = self.known.iter().filter(|holder| holder.works_in(folder));
        match (inside.next(), inside.next()) {
            (Some(only), None) => only.process.clone(),
            (_, _) => None,
        }
    }

    /// Judges one session.
    pub(super) fn liveness(&self, row: &Row, ending: &Ending, now: Time) -> Liveness {
        let written = history::last_write(row);
        let dead = |proof: String| {
            if ending.in_turn {
                Liveness::Crashed { proof }
            } else {
                Liveness::Ended { proof }
            }
        };
        if self.without_lock {
            return Liveness::Unknown {
                why: "it lies in files of an earlier OpenCode, which say nothing of processes"
                    .to_owned(),
            };
        }
        match &self.owner {
            Owner::Free => {
                return dead(if ending.in_turn {
                    "no process has OpenCode's database open, and its last turn never ended"
                        .to_owned()
                } else {
                    "no process has OpenCode's database open".to_owned()
                });
            }
            Owner::Unknown { why } => return Liveness::Unknown { why: why.clone() },
            Owner::Held { .. } => {}
        }
        if self.known.is_empty() {
            return Liveness::Unknown {
                why: "a process that cannot be seen from here has OpenCode's database open"
                    .to_owned(),
            };
        }
        // Whoever runs a turn was there when it began.
        let since = if ending.in_turn {
            history::turn_start(row).unwrap_or(written)
        } else {
            written
        };
        let began_later = |holder: &Holder| {
            holder
                .process
                .as_ref()
                .and_then(|process| process.started_at)
                .is_some_and(|start| start.since(since) > SLACK)
        };
        if ending.in_turn && self.known.iter().all(began_later) {
            return dead(format!(
                "its last turn never ended, and every process that has OpenCode's database open began after that turn ({})",
                self.names()
            ));
        }
        let here = self
            .known
            .iter()
            .find(|holder| holder.works_in(&row.directory) && !began_later(holder));
        let age = now.since(written);
        if let Some(holder) = here {
            if holder.calls_us {
                return Liveness::Unknown {
                    why: format!(
                        "{} works in its folder, perhaps on another session: this command runs in it",
                        holder.name()
                    ),
                };
            }
            if ending.in_turn && age < FRESH {
                return Liveness::Live {
                    proof: format!(
                        "{} works in its folder, and it was written {} s ago",
                        holder.name(),
                        age.max(0) / 1000
                    ),
                };
            }
            if row.newest {
                return Liveness::Live {
                    proof: format!(
                        "{} works in its folder, where it is the newest session",
                        holder.name()
                    ),
                };
            }
            return Liveness::Unknown {
                why: format!(
                    "{} works in its folder, perhaps on another session",
                    holder.name()
                ),
            };
        }
        Liveness::Unknown {
            why: format!("OpenCode's database is open elsewhere ({})", self.names()),
        }
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.known.iter().map(Holder::name).collect();
        names.join("; ")
    }
}

impl Holder {
    fn works_in(&self, folder: &Path) -> bool {
        self.cwd
            .as_deref()
            .is_some_and(|cwd| cwd == folder || folder.canonicalize().is_ok_and(|real| real == cwd))
    }

    fn name(&self) -> String {
        self.process.as_ref().map_or_else(
            || format!("process {}", self.pid),
            |process| process.describe().trim_end_matches(',').to_owned(),
        )
    }
}

/// Finds the processes that have the database or a file beside it open, by the process table of Linux.
fn openers(database: &Path) -> Vec<Holder> {
    let files: Vec<PathBuf> = ["", "-wal", "-shm"]
        .iter()
        .map(|suffix| {
            let real = database
                .canonicalize()
                .unwrap_or_else(|_| database.to_path_buf());
            let mut name = OsString::from(real);
            name.push(suffix);
            PathBuf::from(name)
        })
        .collect();
    let own = std::process::id();
    let Ok(processes) = Path::new("/proc").read_dir() else {
        return Vec::new();
    };
    let table = system();
    let above = process::ancestors(&table, own).unwrap_or_default();
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| {
            Path::new("/proc")
                .join(pid.to_string())
                .join("fd")
                .read_dir()
                .is_ok_and(|mut handles| {
                    handles.any(|handle| {
                        handle.is_ok_and(|handle| {
                            handle
                                .path()
                                .read_link()
                                .is_ok_and(|target| files.contains(&target))
                        })
                    })
                })
        })
        .map(|pid| Holder {
            pid,
            calls_us: above.iter().any(|ancestor| ancestor.pid == pid),
            cwd: Path::new("/proc")
                .join(pid.to_string())
                .join("cwd")
                .read_link()
                .ok(),
            process: table.identify(pid).ok().flatten(),
        })
        .collect()
}
