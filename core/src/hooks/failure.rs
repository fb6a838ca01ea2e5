//! The note that the text in a hook leaves where the program failed: which one, and how.
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use bstr::ByteSlice as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::EVENTS;
use crate::files::read_bounded;
use crate::ledger::State;
use crate::paths::text_of_path;
use crate::repository::Place;
use crate::time::Time;

/// The file in the ledger's folder: event, exit status and program in one line, written by the text in the hook.
const NOTE: &str = "hook-failed";
/// A path may have 4096 bytes.
const LONGEST: u64 = 8 << 10;

/// How much of the log's end is read.
const LAST: u64 = 64 << 10;

/// The program of a hook failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookFailure {
    /// When.
    pub at: Time,
    /// In which hook.
    pub event: String,
    /// The program that the hook called.
    #[serde(serialize_with = "crate::paths::in_json")]
    pub program: PathBuf,
    /// How it ended.
    pub how: String,
    /// What it said of it in the log itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

/// Returns the last failure, where nothing ran well after it and the program is the same still.
pub(super) fn last(place: &Place, state: &State) -> Option<HookFailure> {
    let path = place.state().join(NOTE);
    let content = read_bounded(&path, LONGEST).ok().flatten()?;
    let moment = |seconds: i64, nanos: i64| {
        Time::from_millis(
            seconds
                .saturating_mul(1000)
                .saturating_add(nanos / 1_000_000),
        )
    };
    let meta = std::fs::symlink_metadata(&path).ok()?;
    let at = moment(meta.mtime(), meta.mtime_nsec());
    let ran = state.hooks.values().filter_map(|hook| hook.last_ran);
    let seen = state.observations.iter().map(|seen| seen.at);
    if ran.chain(seen).max().is_some_and(|well| well > at) {
        return None;
    }
    let line = content.strip_suffix(b"\n").unwrap_or(&content);
    let mut words = line.splitn_str(3, " ");
    let event = words.next()?.to_str().ok()?;
    let status: i32 = words.next()?.to_str().ok()?.parse().ok()?;
    let program = PathBuf::from(std::ffi::OsStr::from_bytes(words.next()?));
    if !EVENTS.contains(&event) {
        return None;
    }
    // Where it is gone, or another one has been put there since, this says nothing any more.
    let meta = std::fs::metadata(&program).ok()?;
    if moment(meta.ctime(), meta.ctime_nsec()) > at {
        return None;
    }
    let how = match status {
        126 | 127 => "could not be started".to_owned(),
        137 => "was killed, most likely since it did not end within two seconds".to_owned(),
        other => format!("ended with exit status {other}"),
    };
    Some(HookFailure {
        at,
        event: event.to_owned(),
        program,
        how,
        said: said(place, event, at),
    })
}

/// Returns what the program said in the log of the ledger's folder when it failed: `<time> <pid> hook git <event>: <message>`.
fn said(place: &Place, event: &str, at: Time) -> Option<String> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = crate::files::open_regular(&place.state().join("log")).ok()??;
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(LAST))).ok()?;
    let mut bytes = Vec::new();
    file.take(LAST).read_to_end(&mut bytes).ok()?;
    let operation = format!("hook git {event}: ");
    bytes.lines().rev().find_map(|line| {
        let mut words = line.to_str().ok()?.splitn(3, ' ');
        let when: Time = words.next()?.parse().ok()?;
        let message = words.nth(1)?.strip_prefix(&operation)?;
        // The program is killed after two seconds.
        let near = (-1000..=3000).contains(&at.since(when));
        near.then(|| crate::text::one_line(message, 300))
    })
}

impl HookFailure {
    /// Returns what happened, for people.
    pub fn text(&self) -> String {
        let said = self.said.as_deref();
        let said = said.map(|said| format!(": {said}")).unwrap_or_default();
        format!(
            "{} {} in {}, at {}{said}",
            text_of_path(&self.program),
            self.how,
            self.event,
            self.at
        )
    }
}
