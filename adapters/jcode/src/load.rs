//! Loads one session from what its files hold: the snapshot, the journal replayed over it, and, where those are
//! damaged, the backups and leftovers beside them.
//!
//! Where jcode's own loader is right the answer is the same. Where it loses something that the files still hold, the
//! answer has it, and the difference is named in [`Loaded::recovered`].
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

use jiff::Timestamp;
use takeup_core::issue::{Issue, IssueKind};

use crate::home::{Home, Key, LARGEST, Part, Sibling, read_file};
use crate::json::{Members, elements, members, skip_space};
use crate::replay::{Entry, Line, lines};
use crate::wire::{Message, Meta, Status};
use crate::{leftovers, report};

/// Why jcode refuses a message.
const UNKNOWN_CONTENT: &str = "a message holds what jcode does not know";

/// A session as its files hold it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Which.
    pub key: Key,
    pub(crate) meta: Meta,
    /// Its messages, oldest first, none twice.
    pub messages: Vec<Message>,
    /// How many records of its environment, memories and replay events it holds.
    pub counts: Counts,
    /// What jcode itself cannot load, or would answer otherwise, in words.
    pub recovered: Vec<String>,
    /// The damage that was found.
    pub issues: Vec<Issue>,
    /// How many messages jcode itself would load; `None` where it cannot load the session at all.
    pub jcode_loads: Option<usize>,
}

/// Numbers of the lists that are kept beside the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// `env_snapshots`.
    pub environments: usize,
    /// `memory_injections`.
    pub memories: usize,
    /// `replay_events`.
    pub replays: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, object: &Members<'_>, prefix: &str) {
        let count = |name: &str| {
            object.get(&format!("{prefix}{name}")).map_or(0, |piece| {
                elements(piece.bytes).iter().filter(|p| p.whole).count()
            })
        };
        self.environments += count("env_snapshots");
        self.memories += count("memory_injections");
        self.replays += count("replay_events");
    }
}

impl Loaded {
    /// Returns the status.
    pub const fn status(&self) -> &Status {
        &self.meta.status
    }

    /// Returns the last write, as jcode recorded it.
    pub const fn updated_at(&self) -> Option<Timestamp> {
        self.meta.updated_at
    }

    /// Returns the title jcode shows: the person's own, else the generated one.
    pub fn title(&self) -> Option<&str> {
        let own = self.meta.custom_title.as_deref();
        own.or(self.meta.title.as_deref())
    }

    /// Returns the folder the session works in.
    pub fn working_dir(&self) -> Option<&str> {
        self.meta.working_dir.as_deref()
    }

    /// Returns the process that jcode recorded as the owner.
    pub const fn last_pid(&self) -> Option<u32> {
        self.meta.last_pid
    }

    /// Returns how many of the messages a summary stands for, never more than there are.
    pub fn compacted(&self) -> usize {
        let count = self.meta.compacted.unwrap_or_default();
        usize::try_from(count)
            .unwrap_or(usize::MAX)
            .min(self.messages.len())
    }

    /// Returns the word people call it by: its short name, else the word of its id.
    pub fn name(&self) -> Option<&str> {
        self.meta.short_name.as_deref().or_else(|| self.key.word())
    }
}

/// A snapshot's text, understood.
pub(crate) struct Snapshot {
    pub(crate) meta: Meta,
    pub(crate) messages: Vec<Message>,
    counts: Counts,
    /// The text is complete JSON.
    whole: bool,
    /// The described version of jcode could read it.
    loads: bool,
    /// Something was cut off to make it so.
    repaired: bool,
}

impl Snapshot {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let object = members(bytes, 0)?;
        let whole = object
            .end
            .is_some_and(|end| skip_space(bytes, end) == bytes.len())
            && std::str::from_utf8(bytes).is_ok()
            && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
        let meta = Meta::of_snapshot(&object);
        let list = object.get("messages");
        let messages = list.map_or_else(Vec::new, |piece| messages_of(piece.bytes));
        let mut counts = Counts::default();
        counts.add(&object, "");
        let loads =
            whole && meta.strange.is_empty() && messages.iter().all(|message| message.loads);
        Some(Self {
            meta,
            messages,
            counts,
            whole,
            loads,
            repaired: !whole,
        })
    }
}

/// Reads the messages of an array, as far as it goes.
pub(crate) fn messages_of(array: &[u8]) -> Vec<Message> {
    elements(array)
        .into_iter()
        .filter(|piece| piece.whole)
        .filter_map(|piece| Message::read(piece.bytes))
        .collect()
}

/// The bytes of snapshot and journal that belong together.
struct Pair {
    snapshot: Result<Option<Vec<u8>>, Issue>,
    journal: Result<Option<Vec<u8>>, Issue>,
}

/// Reads both so that nothing falls between them: the journal is opened first. If jcode replaces the snapshot and
/// removes the journal in between, what the journal held is in the new snapshot and is told by its ids; if it has begun
/// another journal since, everything is read again.
fn read_pair(home: &Home, key: &Key) -> Pair {
    const ATTEMPTS: usize = 5;
    let identity = |file: &File| file.metadata().map(|data| (data.dev(), data.ino())).ok();
    let mut attempt = 0;
    loop {
        attempt += 1;
        let opened = home.open(Part::Journal(key));
        let before = opened
            .as_ref()
            .ok()
            .and_then(Option::as_ref)
            .and_then(identity);
        let snapshot = home.read(Part::Snapshot(key));
        let journal = match opened {
            Ok(Some(file)) => read_file(&file, &home.path(Part::Journal(key)), LARGEST).map(Some),
            Ok(None) => Ok(None),
            Err(issue) => Err(issue),
        };
        let after = std::fs::symlink_metadata(home.path(Part::Journal(key)))
            .map(|data| (data.dev(), data.ino()))
            .ok();
        // A journal that is gone was taken into the snapshot that was read, or into one that was not.
        let settled = before == after;
        if settled || attempt == ATTEMPTS {
            return Pair { snapshot, journal };
        }
    }
}

/// Loads a session. `Ok(None)` where neither a snapshot, a backup nor a journal of that id is there.
pub fn load(home: &Home, key: &Key) -> Result<Option<Loaded>, Issue> {
    load_with(home, key, None)
}

/// Loads a session; `siblings` is what stands beside its snapshot, where that is known already.
pub(crate) fn load_with(
    home: &Home,
    key: &Key,
    siblings: Option<&[Sibling]>,
) -> Result<Option<Loaded>, Issue> {
    let pair = read_pair(home, key);
    let mut issues = Vec::new();
    let snapshot_path = home.path(Part::Snapshot(key));
    let mut why = Vec::new();

    let primary_bytes = match pair.snapshot {
        Ok(bytes) => bytes,
        Err(issue) => {
            why.push("the snapshot cannot be read".to_owned());
            issues.push(issue);
            None
        }
    };
    let primary = primary_bytes.as_deref().and_then(|bytes| {
        let (text, zeros) = without_zeros(bytes);
        if zeros > 0 {
            issues.push(Issue::new(
                &snapshot_path,
                IssueKind::Zeroed,
                format!("{zeros} zero bytes stand at its end"),
            ));
        }
        let mut snapshot = Snapshot::read(text)?;
        snapshot.loads &= zeros == 0;
        snapshot.repaired |= zeros > 0;
        Some(snapshot)
    });
    let primary_loads = primary.as_ref().is_some_and(|primary| primary.loads);
    let primary_whole = primary.as_ref().is_some_and(|primary| primary.whole);

    // jcode falls back to the backup only where a snapshot is there and cannot be parsed.
    let backup = if primary_loads {
        None
    } else {
        let bytes = home.read(Part::Backup(key)).unwrap_or_else(|issue| {
            issues.push(issue);
            None
        });
        bytes.as_deref().and_then(Snapshot::read)
    };
    let backup_loads =
        primary_bytes.is_some() && backup.as_ref().is_some_and(|backup| backup.loads);

    let journal_bytes = match pair.journal {
        Ok(bytes) => bytes,
        Err(issue) => {
            issues.push(issue);
            None
        }
    };
    if primary_bytes.is_none() && primary.is_none() && backup.is_none() && journal_bytes.is_none() {
        return issues.pop().map_or(Ok(None), Err);
    }

    // What jcode itself would have.
    let mut jcode = if primary_loads {
        primary.as_ref().map(|snapshot| ids(&snapshot.messages))
    } else if backup_loads {
        backup.as_ref().map(|snapshot| ids(&snapshot.messages))
    } else {
        None
    };

    let used_backup = !primary_whole && backup.is_some();
    if !primary_whole {
        report::snapshot(
            primary_bytes.as_deref(),
            used_backup,
            &snapshot_path,
            &mut issues,
            &mut why,
        );
    } else if let Some(primary) = primary.as_ref().filter(|primary| !primary.loads) {
        why.extend(primary.meta.strange.iter().cloned());
        if primary.messages.iter().any(|message| !message.loads) {
            why.push(UNKNOWN_CONTENT.to_owned());
        }
        if why.is_empty() {
            why.push("the snapshot is not clean JSON".to_owned());
        }
        issues.push(Issue::new(
            &snapshot_path,
            IssueKind::UnknownVersion,
            format!("jcode refuses it: {}", why.join(", ")),
        ));
    }

    let mut state = merge(primary, backup);
    let repeated = state.drop_repeated();
    let mut journal = Journal::default();
    if let Some(bytes) = &journal_bytes {
        journal = replay(&mut state, bytes, &mut jcode);
        report::journal(
            &journal,
            &home.path(Part::Journal(key)),
            &mut issues,
            &mut why,
        );
    }
    journal.repeated += repeated;
    if used_backup {
        report::gap(&state, &journal, &snapshot_path, &mut issues);
    }
    let unsettled = !primary_loads || state.meta.status != Status::Closed || journal.torn > 0;
    if unsettled {
        leftovers::take(home, key, siblings, &mut state, &mut issues, &mut why);
    }

    let recovered = report::difference(&state, &journal, jcode.as_ref(), &why);
    let jcode_loads = jcode.as_ref().map(|ids| ids.len() + journal.repeated);
    Ok(Some(Loaded {
        key: key.clone(),
        meta: state.meta,
        messages: state.messages,
        counts: state.counts,
        recovered,
        issues,
        jcode_loads,
    }))
}

/// Cuts zero bytes off the end: a file whose size was written before its content.
fn without_zeros(bytes: &[u8]) -> (&[u8], usize) {
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    if zeros == bytes.len() {
        return (bytes, 0);
    }
    (bytes.get(..bytes.len() - zeros).unwrap_or(bytes), zeros)
}

/// The session while it is put together.
pub(crate) struct State {
    pub(crate) meta: Meta,
    pub(crate) messages: Vec<Message>,
    pub(crate) counts: Counts,
    /// The last write of the snapshot that is the base.
    base: Option<Timestamp>,
    /// What was read out of a damaged snapshot. Damage may have changed it, so the journal's word counts more.
    salvaged: HashSet<String>,
}

impl State {
    /// Tells whether a message of that id, or, without one, of those bytes, is there.
    pub(crate) fn has(&self, message: &Message) -> bool {
        self.messages.iter().any(|known| same(known, message))
    }

    /// Puts a message in the place of the one with its name.
    fn replace(&mut self, message: Message) {
        if let Some(old) = self.messages.iter_mut().find(|old| same(old, &message)) {
            *old = message;
        }
    }

    /// Takes out messages that stand there a second time: jcode writes them so after it has replayed a journal that was
    /// left behind. Returns how many.
    fn drop_repeated(&mut self) -> usize {
        let before = self.messages.len();
        let mut seen = HashSet::new();
        self.messages
            .retain(|message| seen.insert((name_of(message), message.raw.clone())));
        before - self.messages.len()
    }

    /// Puts a message in by its time: behind the last one that is not later.
    pub(crate) fn insert(&mut self, message: Message) {
        let place = message.at.map_or(self.messages.len(), |at| {
            self.messages
                .iter()
                .rposition(|known| known.at.is_some_and(|known| known <= at))
                .map_or(0, |place| place + 1)
        });
        self.messages.insert(place, message);
    }
}

fn same(a: &Message, b: &Message) -> bool {
    match (&a.id, &b.id) {
        (Some(a), Some(b)) => a == b,
        _ => a.raw == b.raw,
    }
}

/// What names a message: its id, or its bytes where it has none.
pub(crate) fn name_of(message: &Message) -> String {
    message.id.clone().unwrap_or_else(|| message.raw.clone())
}

fn ids(messages: &[Message]) -> HashSet<String> {
    messages.iter().map(name_of).collect()
}

/// Puts what a damaged snapshot still holds over the backup, which is older.
fn merge(primary: Option<Snapshot>, backup: Option<Snapshot>) -> State {
    let state = |snapshot: Snapshot| State {
        base: snapshot.meta.updated_at,
        salvaged: if snapshot.repaired {
            ids(&snapshot.messages)
        } else {
            HashSet::new()
        },
        meta: snapshot.meta,
        messages: snapshot.messages,
        counts: snapshot.counts,
    };
    match (primary, backup) {
        (Some(primary), Some(backup)) if primary.repaired => {
            let backup_whole = backup.whole;
            let mut base = state(backup);
            if primary.whole || (!backup_whole && primary.meta.updated_at.is_some()) {
                base.base = primary.meta.updated_at;
                base.meta = primary.meta;
                base.counts = primary.counts;
            }
            for message in primary.messages {
                if !base.has(&message) {
                    base.salvaged.insert(name_of(&message));
                    base.messages.push(message);
                }
            }
            base
        }
        (Some(primary), _) => state(primary),
        (None, Some(backup)) => state(backup),
        (None, None) => State {
            meta: Meta::default(),
            messages: Vec::new(),
            counts: Counts::default(),
            base: None,
            salvaged: HashSet::new(),
        },
    }
}

/// What a replay found.
#[derive(Default)]
pub(crate) struct Journal {
    /// Bytes of lines that could not be read, and where.
    pub(crate) torn: usize,
    pub(crate) torn_lines: Vec<usize>,
    pub(crate) zeroed: bool,
    /// Messages that the snapshot already held.
    pub(crate) repeated: usize,
    /// The journal's own status was older than the snapshot's.
    pub(crate) stale_meta: bool,
    /// The file is not UTF-8 somewhere.
    pub(crate) broken_text: bool,
    pub(crate) first_at: Option<Timestamp>,
    /// Why the described version of jcode passes over lines that are complete.
    pub(crate) refused: Vec<String>,
}

/// Replays a journal over the state. An entry whose messages are all known and which is not newer than the snapshot was
/// left behind when the snapshot was written.
fn replay(state: &mut State, bytes: &[u8], jcode: &mut Option<HashSet<String>>) -> Journal {
    let mut journal = Journal {
        broken_text: std::str::from_utf8(bytes).is_err(),
        ..Journal::default()
    };
    if journal.broken_text {
        *jcode = None;
    }
    let mut known = ids(&state.messages);
    for (index, line) in lines(bytes).enumerate() {
        let (entries, torn) = match line {
            Line::Blank => continue,
            Line::Whole(entry) => (vec![*entry], Vec::new()),
            Line::Torn {
                entries,
                messages,
                lost,
                zeroed,
            } => {
                journal.torn += lost;
                journal.zeroed |= zeroed;
                journal.torn_lines.push(index + 1);
                (entries, messages)
            }
        };
        for message in torn {
            if known.insert(name_of(&message)) {
                state.messages.push(message);
            }
        }
        for entry in entries {
            apply(state, entry, jcode, &mut known, &mut journal);
        }
    }
    journal
}

fn apply(
    state: &mut State,
    entry: Entry,
    jcode: &mut Option<HashSet<String>>,
    known: &mut HashSet<String>,
    journal: &mut Journal,
) {
    let first = entry.messages.iter().find_map(|message| message.at);
    journal.first_at = journal.first_at.or(first);
    if entry.loads {
        if let Some(jcode) = jcode {
            jcode.extend(entry.messages.iter().map(name_of));
        }
    } else if entry.meta.strange.is_empty() {
        journal.refused.push(UNKNOWN_CONTENT.to_owned());
    } else {
        journal.refused.extend(entry.meta.strange.iter().cloned());
    }
    let mut fresh = 0;
    for message in entry.messages {
        if known.insert(name_of(&message)) {
            fresh += 1;
            state.messages.push(message);
        } else if state.salvaged.contains(&name_of(&message)) {
            state.replace(message);
        } else {
            journal.repeated += 1;
        }
    }
    let newer = match (entry.meta.updated_at, state.base) {
        (Some(entry), Some(base)) => entry > base,
        (Some(_), None) => true,
        (None, _) => fresh > 0,
    };
    if newer {
        // What lacks keys that jcode always writes would take away what the snapshot says.
        if entry.meta.is_complete() {
            state.meta.replace(entry.meta);
        }
        state.counts.environments += entry.counts.environments;
        state.counts.memories += entry.counts.memories;
        state.counts.replays += entry.counts.replays;
    } else {
        journal.stale_meta |= entry.meta.status != state.meta.status;
    }
}
