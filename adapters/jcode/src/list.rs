//! The list of sessions. It costs one look at the folder and the head and tail of each file: the fields jcode writes
//! before and behind the messages, and the last messages. Files that are small, damaged or not compact are read whole.
//! Nothing is kept between calls: looking changes nothing.
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;

use takeup_core::issue::{Issue, IssueKind};
use takeup_core::time::Time;

use crate::alive::{Marker, time};
use crate::calls::{OpenCall, last_prompt, open_calls};
use crate::home::{Entry, Folder, Home, Key, Part, Sibling, entry};
use crate::json::{elements, last_elements, members, tail_of_snapshot};
use crate::load::{Loaded, load_with};
use crate::replay::{Line, lines};
use crate::wire::{Block, Message, Meta};

/// Files up to this size are read whole, in bytes.
const SMALL: u64 = 12 << 10;

/// Files above this size are not read whole for a list, in bytes.
const LARGE: u64 = 2 << 20;

/// How much of the beginning is read, in bytes: the fields before the messages fit.
const HEAD: usize = 1 << 10;

/// How much of the end is read at first, in bytes; eight times as much where that is not enough.
const TAIL: u64 = 3 << 10;

/// The same where the last messages are wanted, and for journals.
const TAIL_OF_MESSAGES: u64 = 8 << 10;

/// What the list knows of a session.
#[derive(Clone, Debug)]
pub(crate) struct Brief {
    pub(crate) key: Key,
    pub(crate) meta: Meta,
    pub(crate) open: Vec<OpenCall>,
    /// The model had the last word and called nothing: nothing is open, whatever else was not read.
    pub(crate) settled: bool,
    /// The number of messages, where the file was read whole.
    pub(crate) count: Option<u64>,
    pub(crate) last_prompt: Option<String>,
    pub(crate) recovered: Vec<String>,
    pub(crate) issues: Vec<Issue>,
    /// How much was read.
    pub(crate) depth: Depth,
}

/// How much of a session was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// The fields before and behind the messages.
    Fields,
    /// The last messages too: calls without a result are known.
    Tail,
    /// Everything.
    Whole,
}

impl Brief {
    pub(crate) fn of(loaded: Loaded) -> Self {
        Self {
            open: open_calls(&loaded.messages),
            settled: is_settled(&loaded.messages),
            count: Some(loaded.messages.len() as u64),
            last_prompt: last_prompt(&loaded.messages),
            key: loaded.key,
            meta: loaded.meta,
            recovered: loaded.recovered,
            issues: loaded.issues,
            depth: Depth::Whole,
        }
    }

    /// Returns the last write.
    pub(crate) fn updated_at(&self) -> Option<Time> {
        self.meta.updated_at.map(time)
    }

    /// Returns the title jcode shows, without that of the todos.
    pub(crate) fn title(&self) -> Option<&str> {
        let own = self.meta.custom_title.as_deref();
        own.or(self.meta.title.as_deref())
    }

    /// Returns the word people call it by.
    pub(crate) fn name(&self) -> Option<&str> {
        self.meta.short_name.as_deref().or_else(|| self.key.word())
    }
}

/// The sessions of a home.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) briefs: Vec<Brief>,
    pub(crate) names: Names,
    pub(crate) issues: Vec<Issue>,
}

/// What the folder of sessions holds, by its names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    journals: BTreeSet<Key>,
    siblings: BTreeMap<Key, Vec<Sibling>>,
}

impl Names {
    /// Reads what the list has passed over so far. Of what is too large to be read for a list, only the tail is.
    pub(crate) fn deepen(
        &self,
        home: &Home,
        brief: &Brief,
        depth: Depth,
    ) -> Result<Option<Brief>, Issue> {
        let size = std::fs::symlink_metadata(home.path(Part::Snapshot(&brief.key)));
        let depth = match size {
            Ok(data) if data.size() > LARGE => depth.min(Depth::Tail),
            Ok(_) | Err(_) => depth,
        };
        if brief.depth >= depth {
            return Ok(None);
        }
        self.brief(home, &brief.key, depth)
    }

    fn brief(&self, home: &Home, key: &Key, depth: Depth) -> Result<Option<Brief>, Issue> {
        if depth < Depth::Whole
            && let Some(brief) = light(home, key, self.journals.contains(key), depth)
        {
            return Ok(Some(brief));
        }
        let siblings = self.siblings.get(key).map_or(&[][..], Vec::as_slice);
        Ok(load_with(home, key, Some(siblings))?.map(Brief::of))
    }
}

/// Lists every session of a home, in the order of the ids: their fields, and all of those that are small or damaged.
pub(crate) fn list(home: &Home) -> Listing {
    let mut listing = Listing::default();
    let names = match home.list(Folder::Sessions) {
        Ok(names) => names,
        Err(issue) => {
            listing.issues.push(issue);
            return listing;
        }
    };
    let mut keys = BTreeSet::new();
    for name in &names {
        match entry(name) {
            Entry::Snapshot(key) => {
                keys.insert(key);
            }
            Entry::Journal(key) => {
                listing.names.journals.insert(key.clone());
                keys.insert(key);
            }
            Entry::Strange(name) => listing.issues.push(Issue::new(
                home.root().join("sessions").join(name),
                IssueKind::UnsafePath,
                "its name is no session id; it is not read",
            )),
            Entry::Sibling(key, sibling) => {
                let siblings = listing.names.siblings.entry(key).or_default();
                siblings.push(sibling);
            }
            Entry::Other => {}
        }
    }
    for siblings in listing.names.siblings.values_mut() {
        siblings.sort();
    }
    let keys: Vec<Key> = keys.into_iter().collect();
    let names = &listing.names;
    for result in in_parallel(&keys, |key| names.brief(home, key, Depth::Fields)) {
        match result {
            Ok(Some(brief)) => listing.briefs.push(brief),
            // Gone since the folder was listed.
            Ok(None) => {}
            Err(issue) => listing.issues.push(issue),
        }
    }
    listing
}

/// Does the same to every item, on as many threads as the machine has processors, and keeps the order.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(8);
    if threads < 2 || items.len() < 64 {
        return items.iter().map(work).collect();
    }
    let chunk = items.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = items
            .chunks(chunk)
            .map(|items| {
                let work = &work;
                scope.spawn(move || items.iter().map(work).collect::<Vec<R>>())
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| match worker.join() {
                Ok(results) => results,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    })
}

/// Reads head and tail. `None` where that does not do.
fn light(home: &Home, key: &Key, has_journal: bool, depth: Depth) -> Option<Brief> {
    // The journal first: see `load`.
    let journal = if has_journal {
        Some(journal_tail(home, key)?)
    } else {
        None
    };
    let file = home.open(Part::Snapshot(key)).ok()??;
    let size = file.metadata().ok()?.size();
    if size <= SMALL {
        return None;
    }
    let Ends {
        mut meta,
        mut messages,
        mut settled,
    } = ends(&file, size, depth)?;
    if meta.id.as_deref() != Some(key.as_str()) || !meta.strange.is_empty() {
        return None;
    }
    if let Some(journal) = journal {
        let newer = journal.meta.updated_at > meta.updated_at;
        let repeats = journal
            .messages
            .iter()
            .any(|message| messages.iter().any(|known| known.id == message.id));
        let answers = journal
            .messages
            .iter()
            .any(|message| message.role == "assistant");
        let enough = depth == Depth::Fields || journal.whole || answers;
        if !newer || repeats || !enough {
            return None;
        }
        if !journal.whole {
            // Between the two lies what was not read.
            messages.clear();
        }
        if !journal.messages.is_empty() {
            settled = is_settled(&journal.messages);
        }
        messages.extend(journal.messages);
        meta.replace(journal.meta);
    }
    Some(Brief {
        open: open_calls(&messages),
        settled,
        count: None,
        last_prompt: last_prompt(&messages),
        key: key.clone(),
        meta,
        recovered: Vec::new(),
        issues: Vec::new(),
        depth,
    })
}

/// The last entries of a journal.
struct JournalTail {
    meta: Meta,
    messages: Vec<Message>,
    /// These are all there are.
    whole: bool,
}

/// Reads the last entries of a journal that ends in good order. `None` where it has to be replayed.
fn journal_tail(home: &Home, key: &Key) -> Option<JournalTail> {
    let file = home.open(Part::Journal(key)).ok()??;
    let size = file.metadata().ok()?.size();
    let start = size.saturating_sub(TAIL_OF_MESSAGES);
    let window = read_at(&file, start, usize::try_from(size - start).ok()?)?;
    let window = window.strip_suffix(b"\n")?;
    let text = if start == 0 {
        window
    } else {
        let newline = memchr::memchr(b'\n', window)?;
        window.get(newline + 1..)?
    };
    let mut messages = Vec::new();
    let mut last = None;
    for line in lines(text) {
        match line {
            Line::Whole(entry) if entry.loads => {
                messages.extend(entry.messages);
                last = Some(entry.meta);
            }
            Line::Whole(_) | Line::Torn { .. } => return None,
            Line::Blank => {}
        }
    }
    last.map(|meta| JournalTail {
        meta,
        messages,
        whole: start == 0,
    })
}

fn read_at(file: &File, at: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

/// Tells whether the model had the last word and called nothing.
fn is_settled(messages: &[Message]) -> bool {
    messages.last().is_some_and(|last| {
        last.role == "assistant"
            && !last
                .blocks
                .iter()
                .any(|block| matches!(block, Block::ToolUse { .. }))
    })
}

/// The same, of the bytes of the last message. A word that looks like a call only makes the answer `false`.
fn is_last_word(message: &[u8]) -> bool {
    let by_model = members(message, 0)
        .and_then(|object| object.get("role"))
        .is_some_and(|role| role.bytes == b"\"assistant\"");
    by_model && memchr::memmem::find(message, b"\"tool_use\"").is_none()
}

/// What stands before and behind the messages of a snapshot.
struct Ends {
    meta: Meta,
    /// The last messages, as far as they were asked for.
    messages: Vec<Message>,
    /// See [`Brief::settled`].
    settled: bool,
}

/// Reads the fields before and behind the messages, and the last messages.
fn ends(file: &File, size: u64, depth: Depth) -> Option<Ends> {
    let head = read_at(file, 0, HEAD)?;
    let front = members(&head, 0)?;
    // Before the messages stand at least the id and the times, all of them whole.
    let (_, list) = front.list.iter().find(|(name, _)| *name == b"messages")?;
    if list.whole
        || front
            .list
            .iter()
            .any(|(name, piece)| !piece.whole && *name != b"messages")
    {
        return None;
    }
    let list_start = head.len() - list.bytes.len();
    let mut window = if depth == Depth::Fields {
        TAIL
    } else {
        TAIL_OF_MESSAGES
    };
    loop {
        let start = size.saturating_sub(window);
        let whole = start == 0;
        let bytes = read_at(file, start, usize::try_from(size - start).ok()?)?;
        if let Some((rest, messages, settled)) = behind(&bytes, depth) {
            let mut text = head.get(..list_start)?.to_vec();
            text.extend_from_slice(b"[],");
            // The rest is an object of its own: its brace falls away.
            text.extend_from_slice(rest.get(1..)?);
            let object = members(&text, 0)?;
            let meta = Meta::of_snapshot(&object);
            let strange = messages.iter().any(|message| !message.loads);
            return (!strange).then_some(Ends {
                meta,
                messages,
                settled,
            });
        }
        if whole || window >= 64 * TAIL_OF_MESSAGES {
            return None;
        }
        window *= 8;
    }
}

/// Understands the end of a snapshot.
fn behind(bytes: &[u8], depth: Depth) -> Option<(Vec<u8>, Vec<Message>, bool)> {
    let tail = tail_of_snapshot(bytes)?;
    let raw = last_elements(bytes, tail.messages_end);
    let settled = raw.last().is_some_and(|last| is_last_word(last));
    if depth == Depth::Fields {
        return Some((tail.rest, Vec::new(), settled));
    }
    let messages: Vec<Message> = raw
        .iter()
        .filter_map(|bytes| Message::read(bytes))
        .collect();
    if messages.len() != raw.len() || messages.is_empty() {
        return None;
    }
    // Calls stand in the last message of the model; its results follow it.
    messages
        .iter()
        .any(|message| message.role == "assistant")
        .then_some((tail.rest, messages, settled))
}

/// Reads the markers of living sessions.
pub(crate) fn markers(home: &Home) -> (BTreeMap<Key, Marker>, Vec<Issue>) {
    let names = match home.list(Folder::Active) {
        Ok(names) => names,
        Err(issue) => return (BTreeMap::new(), vec![issue]),
    };
    let mut markers = BTreeMap::new();
    let mut issues = Vec::new();
    for name in names {
        let Some(key) = std::str::from_utf8(&name).ok().and_then(Key::new) else {
            continue;
        };
        match marker(home, &key) {
            Ok(marker) => {
                markers.insert(key, marker);
            }
            Err(issue) => issues.push(issue),
        }
    }
    (markers, issues)
}

/// Reads one marker.
pub(crate) fn marker(home: &Home, key: &Key) -> Result<Marker, Issue> {
    let Some(file) = home.open(Part::Active(key))? else {
        return Ok(Marker::None);
    };
    let path = home.path(Part::Active(key));
    let written = file
        .metadata()
        .ok()
        .and_then(|data| {
            data.mtime()
                .checked_mul(1000)?
                .checked_add(data.mtime_nsec() / 1_000_000)
        })
        .map(Time::from_millis);
    let bytes = crate::home::read_file(&file, &path, 64).unwrap_or_default();
    let pid = std::str::from_utf8(&bytes)
        .ok()
        .and_then(|text| text.trim().parse().ok());
    Ok(pid.map_or(Marker::Garbage, |pid| Marker::Pid { pid, written }))
}

/// Tells whether a response was streaming.
pub(crate) fn streaming(home: &Home, key: &Key) -> bool {
    matches!(home.open(Part::Streaming(key)), Ok(Some(_)))
}

/// A todo of a session.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Todo {
    pub(crate) content: String,
    pub(crate) status: String,
    pub(crate) group: Option<String>,
}

impl Todo {
    /// Returns the state in one spelling.
    pub(crate) fn state(&self) -> String {
        match self
            .status
            .trim()
            .to_lowercase()
            .replace([' ', '-'], "_")
            .as_str()
        {
            "complete" | "completed" | "done" | "finished" => "completed".to_owned(),
            "canceled" | "cancelled" => "cancelled".to_owned(),
            "in_progress" => "in_progress".to_owned(),
            "pending" | "" => "pending".to_owned(),
            other => crate::shown::line(other, 40),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.state().as_str(), "completed" | "cancelled")
    }
}

/// Reads the todos of a session, and what the person wanted with them.
pub(crate) fn todos(home: &Home, key: &Key) -> (Vec<Todo>, Option<String>, Vec<Issue>) {
    let mut issues = Vec::new();
    let mut take = |part: Part<'_>| match home.read(part) {
        Ok(bytes) => bytes.map(|bytes| (home.path(part), bytes)),
        Err(issue) => {
            issues.push(issue);
            None
        }
    };
    let list = take(Part::Todos(key));
    let plan = take(Part::Plan(key));
    let corrupt = |path: PathBuf, error: serde_json::Error| {
        Issue::new(path, IssueKind::Corrupt, error.to_string())
    };
    let todos = match list {
        None => Vec::new(),
        Some((path, bytes)) => {
            // Each on its own, so that one that is not understood does not hide the others.
            let pieces = elements(&bytes);
            if pieces.is_empty() && bytes.trim_ascii() != b"[]" {
                issues.push(Issue::new(
                    path.clone(),
                    IssueKind::Corrupt,
                    "it is no list",
                ));
            }
            let mut todos = Vec::new();
            for piece in pieces {
                match serde_json::from_slice::<Todo>(piece.bytes) {
                    Ok(todo) => todos.push(todo),
                    Err(error) => issues.push(corrupt(path.clone(), error)),
                }
            }
            todos
        }
    };
    let intention =
        plan.and_then(
            |(path, bytes)| match serde_json::from_slice::<serde_json::Value>(&bytes) {
                Ok(value) => value.get("user_intention")?.as_str().map(str::to_owned),
                Err(error) => {
                    issues.push(corrupt(path, error));
                    None
                }
            },
        );
    (todos, intention, issues)
}
