//! Puts together what the rest of the program knows of a session: from its files, its todos and the process table.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use takeup_core::agent::{
    Found, Interruption, InterruptionReason, PlanItem, Session, SessionDetail, SessionQuery, Turn,
};
use takeup_core::identity::OpenEffect;
use takeup_core::ids::{AgentId, SessionId, SessionRef};
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::process::{Liveness, LivenessKind};
use takeup_core::repository::Folders;
use takeup_core::time::Time;

use crate::alive::{Answer, Marker, Signs, judge, time};
use crate::calls::argument;
use crate::copies::Children;
use crate::home::{Home, Key, Part};
use crate::list::{
    Brief, Depth, Listing, Todo, in_parallel, list, marker, markers, streaming, todos,
};
use crate::load::{Loaded, load};
use crate::processes::Processes;
use crate::shown::{line, lines};
use crate::wire::{Block, Message, Status};

/// So many sessions, the newest ones, are read whole for the list; of older ones head and tail.
const READ_WHOLE: usize = 200;

/// How far the ends of sessions may lie apart that crashed together, as in jcode.
const TOGETHER_MS: i64 = 60_000;

/// How many characters of a title are kept.
const TITLE: usize = 120;

/// How many characters of a turn are kept in a preview.
const TURN: usize = 2_000;

/// Where the answers come from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) agent: &'a AgentId,
    pub(crate) home: &'a Home,
    pub(crate) processes: &'a dyn Processes,
    pub(crate) now: Time,
}

/// A session with what was judged of it.
struct Judged {
    brief: Brief,
    answer: Answer,
    group: Option<String>,
    /// There is a copy to go on with.
    copied: bool,
}

impl Judged {
    fn crashed(&self) -> bool {
        matches!(self.answer.liveness, Liveness::Crashed { .. })
    }

    /// Tells whether the session, of which only the fields were read, may be one of those that are asked for.
    fn may_be(&self, query: &SessionQuery) -> bool {
        let liveness = self.answer.liveness.kind();
        let unfinished = self.crashed()
            || self.answer.interruption.is_some()
            || (liveness == LivenessKind::Ended && !self.brief.settled);
        (query.states.is_empty() || query.states.contains(&liveness))
            && (!query.unfinished || unfinished)
    }

    /// Says of a session that was left in the middle which copy there is of it. One that was gone on with there is left in the
    /// middle no more.
    fn note_copy(&mut self, home: &Home, children: &Children) {
        let Some(interruption) = &mut self.answer.interruption else {
            return;
        };
        let Some(copy) = children.copies(home, &self.brief.key).into_iter().next() else {
            return;
        };
        let note = copy.note();
        interruption.proof = format!("{}; {note}", interruption.proof);
        if let Liveness::Crashed { proof } = &mut self.answer.liveness {
            *proof = format!("{proof}; {note}");
        }
        self.copied = true;
        if copy.gone_on {
            self.answer.interruption = None;
        }
    }

    /// A session that ended in good order while calls had no result was left in the middle all the same, and so was one that was
    /// reloaded while it was the model's turn and did not come back.
    fn interrupt_open(&mut self, home: &Home, children: &Children) {
        if !matches!(self.answer.liveness, Liveness::Ended { .. })
            || self.answer.interruption.is_some()
        {
            return;
        }
        let brief = &self.brief;
        let awaited = brief.meta.status == Status::Reloaded
            && brief.count.is_some_and(|count| count > 0)
            && !brief.settled;
        let proof = if !brief.open.is_empty() {
            "it ended while calls had no result"
        } else if awaited {
            "it was reloaded while it was the model's turn, and did not come back"
        } else {
            return;
        };
        self.answer.interruption = Some(Interruption {
            reason: InterruptionReason::Closed,
            proof: proof.to_owned(),
            until: None,
        });
        self.note_copy(home, children);
    }

    /// Returns when it crashed, as jcode reckons it: when it was last marked active, else its last write.
    fn crashed_at(&self) -> Option<Time> {
        let at = self
            .brief
            .meta
            .last_active_at
            .or(self.brief.meta.updated_at);
        at.map(time)
    }
}

impl Source<'_> {
    /// Lists sessions, newest first.
    pub(crate) fn sessions(&self, query: &SessionQuery) -> Found<Session> {
        let Listing {
            briefs,
            names,
            issues,
        } = list(self.home);
        let (markers, marker_issues) = markers(self.home);
        let mut found = Found {
            items: Vec::new(),
            issues,
        };
        found.issues.extend(marker_issues);
        if query.root.is_none() {
            found.issues.extend(self.lost(&markers, &briefs));
        }
        let children = Children::of(&briefs);
        let mut judged = self.judge_all(briefs, &markers, &children);
        if let Some(root) = &query.root {
            let mut here = Folders::of(root);
            judged.retain_mut(|judged| {
                let folder = judged.brief.meta.working_dir.as_deref();
                if folder.is_none() {
                    // It may belong here: what is damaged about it is said in every place.
                    found.issues.append(&mut judged.brief.issues);
                }
                folder.is_some_and(|folder| here.hold(Path::new(folder)))
            });
        }
        judged.retain(|judged| is_listed(judged) && judged.may_be(query));
        judged.sort_by(|a, b| {
            let key = |judged: &Judged| (judged.brief.updated_at(), judged.brief.key.clone());
            key(b).cmp(&key(a))
        });
        if query.limit > 0 {
            judged.truncate(query.limit);
        }
        let read_whole = judged.len().min(READ_WHOLE);
        let (newest, older) = judged.split_at_mut(read_whole);
        for (part, depth) in [(&mut *newest, Depth::Whole), (&mut *older, Depth::Tail)] {
            let briefs: Vec<&Brief> = part.iter().map(|judged| &judged.brief).collect();
            let deeper = in_parallel(&briefs, |brief| names.deepen(self.home, brief, depth));
            for (judged, deeper) in part.iter_mut().zip(deeper) {
                match deeper {
                    Ok(Some(brief)) => judged.brief = brief,
                    Ok(None) => {}
                    Err(issue) => found.issues.push(issue),
                }
                judged.interrupt_open(self.home, &children);
                found.issues.append(&mut judged.brief.issues);
            }
        }
        for judged in newest {
            let (todos, intention, issues) = todos(self.home, &judged.brief.key);
            found.issues.extend(issues);
            found
                .items
                .extend(self.session_of(judged, &todos, intention.as_deref()));
        }
        for judged in older {
            found.items.extend(self.session_of(judged, &[], None));
        }
        found
    }

    /// Judges sessions: alive or not, and which crashed together.
    fn judge_all(
        &self,
        briefs: Vec<Brief>,
        markers: &BTreeMap<Key, Marker>,
        children: &Children,
    ) -> Vec<Judged> {
        let mut judged: Vec<Judged> = briefs
            .into_iter()
            .map(|brief| {
                let marker = markers.get(&brief.key).unwrap_or(&Marker::None);
                let mut judged = Judged {
                    answer: self.judge(&brief, marker),
                    brief,
                    group: None,
                    copied: false,
                };
                judged.note_copy(self.home, children);
                judged
            })
            .collect();
        group(&mut judged);
        judged
    }

    fn judge(&self, brief: &Brief, marker: &Marker) -> Answer {
        let active = matches!(brief.meta.status, Status::Active | Status::Unknown(_));
        let signs = Signs {
            status: &brief.meta.status,
            last_pid: brief.meta.last_pid,
            last_active_at: brief.meta.last_active_at,
            updated_at: brief.meta.updated_at,
            marker,
            streaming: active && streaming(self.home, &brief.key),
        };
        judge(&signs, self.processes, self.now)
    }

    /// Finds a copy of a session, with everything that was said in it, that this program made before.
    pub(crate) fn whole_copy(&self, key: &Key) -> Option<Key> {
        let children = Children::of(&list(self.home).briefs);
        let mut copies = children.copies(self.home, key).into_iter();
        copies.find(|copy| copy.whole).map(|copy| copy.key)
    }

    /// Reports markers of sessions that have no files any more.
    fn lost(&self, markers: &BTreeMap<Key, Marker>, briefs: &[Brief]) -> Vec<Issue> {
        let known: std::collections::HashSet<&Key> = briefs.iter().map(|b| &b.key).collect();
        markers
            .keys()
            .filter(|key| !known.contains(key))
            .map(|key| {
                Issue::new(
                    self.home.path(Part::Active(key)),
                    IssueKind::Missing,
                    "a marker names a session of which no file is there",
                )
            })
            .collect()
    }

    fn session_of(
        &self,
        judged: &Judged,
        todos: &[Todo],
        intention: Option<&str>,
    ) -> Option<Session> {
        let brief = &judged.brief;
        let session = SessionRef::new(self.agent.clone(), brief.key.session()?);
        let title = brief
            .meta
            .custom_title
            .clone()
            .or_else(|| title_of_todos(todos, intention))
            .or_else(|| brief.meta.title.clone())
            .map(|title| line(&title, TITLE))
            .filter(|title| !title.is_empty());
        Some(Session {
            session,
            name: brief.name().map(|name| line(name, 60)),
            title,
            cwd: brief.meta.working_dir.as_ref().map(PathBuf::from),
            created_at: brief
                .meta
                .created_at
                .map(time)
                .or_else(|| time_of_id(&brief.key)),
            updated_at: brief.updated_at().or_else(|| time_of_id(&brief.key)),
            status: Some(line(brief.meta.status.word(), 40)),
            liveness: judged.answer.liveness.clone(),
            process: judged.answer.process.clone(),
            interruption: judged.answer.interruption.clone(),
            // A call of a live session is not open, it runs.
            open_effects: brief
                .open
                .iter()
                .filter(|_| judged.answer.liveness.kind() != LivenessKind::Live)
                .map(|call| OpenEffect {
                    tool: call.tool.clone(),
                    argument: call.argument.clone(),
                    at: call.at.map(time),
                })
                .collect(),
            messages: brief.count,
            last_prompt: brief.last_prompt.clone(),
            plan: todos
                .iter()
                .map(|todo| PlanItem {
                    text: line(&todo.content, 200),
                    done: !todo.is_open(),
                    state: todo.state(),
                })
                .collect(),
            parent: brief
                .meta
                .parent
                .as_ref()
                .and_then(|parent| SessionId::new(parent.clone()).ok()),
            helper: brief.meta.is_helper(),
            crash_group: judged.group.clone(),
            snapshot_tree: None,
            snapshot_after: None,
            recovered: brief.recovered.clone(),
        })
    }

    /// Shows one session with its last turns.
    pub(crate) fn show(&self, key: &Key, turns: usize) -> Result<Option<SessionDetail>, Issue> {
        let Some(loaded) = load(self.home, key)? else {
            return Ok(None);
        };
        let shown = last_turns(&loaded.messages, turns);
        let snapshot = self.home.path(Part::Snapshot(key));
        let transcript = [snapshot, self.home.path(Part::Journal(key))]
            .into_iter()
            .find(|path| std::fs::symlink_metadata(path).is_ok());
        let children = Children::of(&list(self.home).briefs);
        Ok(self.of(loaded, &children).map(|session| SessionDetail {
            session,
            turns: shown,
            transcript,
        }))
    }

    /// Makes the session of what was loaded, without a look at other sessions.
    pub(crate) fn of_loaded(&self, loaded: Loaded) -> Option<Session> {
        self.of(loaded, &Children::default())
    }

    fn of(&self, loaded: Loaded, children: &Children) -> Option<Session> {
        let (todos, intention, _) = todos(self.home, &loaded.key);
        let brief = Brief::of(loaded);
        let marker = marker(self.home, &brief.key).unwrap_or(Marker::None);
        let mut judged = Judged {
            answer: self.judge(&brief, &marker),
            brief,
            group: None,
            copied: false,
        };
        judged.note_copy(self.home, children);
        judged.interrupt_open(self.home, children);
        self.session_of(&judged, &todos, intention.as_deref())
    }
}

/// Imports of other clients' sessions that were never gone on with, and sessions in which nothing was said and nothing
/// was lost, are not listed; jcode's own list leaves them out too.
fn is_listed(judged: &Judged) -> bool {
    let brief = &judged.brief;
    let ended = matches!(judged.answer.liveness, Liveness::Ended { .. });
    let untouched_import = brief.key.is_import() && brief.meta.status == Status::Closed;
    let empty = brief.count == Some(0) && ended && brief.issues.is_empty();
    !(untouched_import || empty)
}

/// Gives those the same group that crashed within a minute of each other. What was recovered is left out.
fn group(judged: &mut [Judged]) {
    let mut crashed: Vec<(Time, &mut Judged)> = judged
        .iter_mut()
        .filter(|judged| judged.crashed() && !judged.copied)
        .filter_map(|judged| Some((judged.crashed_at()?, judged)))
        .collect();
    crashed.sort_by(|(a, first), (b, second)| {
        b.cmp(a)
            .then_with(|| first.brief.key.cmp(&second.brief.key))
    });
    let mut newest: Option<Time> = None;
    for (at, judged) in crashed {
        let begins = newest
            .filter(|newest| newest.since(at) <= TOGETHER_MS)
            .unwrap_or(at);
        newest = Some(begins);
        judged.group = Some(begins.to_string());
    }
}

/// jcode's title of a task list: of its last item in progress, else its last open one, else its last.
pub(crate) fn title_of_todos(todos: &[Todo], intention: Option<&str>) -> Option<String> {
    let last = |wanted: fn(&Todo) -> bool| todos.iter().rev().find(|todo| wanted(todo));
    let todo = last(|todo| todo.state() == "in_progress")
        .or_else(|| last(Todo::is_open))
        .or_else(|| todos.last())?;
    let group = todo
        .group
        .as_deref()
        .filter(|group| !group.trim().is_empty());
    let title = group.or(intention).unwrap_or(&todo.content);
    let title = line(title, 72);
    (!title.is_empty()).then_some(title)
}

/// Reads the time that stands in an id: its first part of 13 digits.
fn time_of_id(key: &Key) -> Option<Time> {
    let digits = key
        .as_str()
        .split('_')
        .find(|part| part.len() == 13 && part.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok().map(Time::from_millis)
}

/// Returns the last turns for a preview, oldest first. What no person is shown in jcode is left out.
fn last_turns(messages: &[Message], count: usize) -> Vec<Turn> {
    let mut turns: Vec<Turn> = messages
        .iter()
        .rev()
        .flat_map(|message| {
            let mut turns = turns_of(message);
            turns.reverse();
            turns
        })
        .take(count)
        .collect();
    turns.reverse();
    turns
}

/// Returns what one message shows.
pub(crate) fn turns_of(message: &Message) -> Vec<Turn> {
    let background = message.display_role.as_deref() == Some("background_task");
    if !message.is_visible() && !background {
        return Vec::new();
    }
    let turn = |role: &str, text: String| Turn {
        role: role.to_owned(),
        at: message.at.map(time),
        text,
    };
    let role = match message.role.as_str() {
        _ if background => "tool",
        "assistant" => "assistant",
        _ => "user",
    };
    message
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => {
                let text = lines(text.trim(), TURN);
                (!text.is_empty()).then(|| turn(role, text))
            }
            Block::ToolUse { name, input, .. } => Some(turn(
                "tool",
                format!("{}: {}", line(name, 80), argument(input)),
            )),
            Block::ToolResult {
                content, failed, ..
            } => {
                let text = lines(content.trim(), TURN);
                let text = match (failed, text.is_empty()) {
                    (true, _) => format!("failed: {text}"),
                    (false, true) => "(no output)".to_owned(),
                    (false, false) => text,
                };
                Some(turn("tool", text))
            }
            Block::Image { media_type } => {
                Some(turn(role, format!("[picture, {}]", line(media_type, 40))))
            }
            Block::Hidden => None,
            Block::Unknown { kind, text } => {
                let kind = line(kind, 40);
                let text = text.as_deref().map(|text| lines(text.trim(), TURN));
                Some(turn(role, text.unwrap_or_else(|| format!("[{kind}]"))))
            }
        })
        .collect()
}
