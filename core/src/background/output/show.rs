//! Reading the output: whole, its end, or as it grows; masked, and without anything a terminal would obey.
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use super::{Layout, Stream};
use crate::background::store::{BackgroundError, Store};
use crate::files::{self, FileError};
use crate::ids::BackgroundId;
use crate::redact::Masker;

/// One entry of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// How much had been printed before.
    pub(super) offset: u64,
    /// The stream; `None` where they are not told apart.
    pub(super) stream: Option<Stream>,
}

impl Entry {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let offset = words.next()?.parse().ok()?;
        let _millis: i64 = words.next()?.parse().ok()?;
        let stream = match words.next()? {
            "o" => Some(Stream::Stdout),
            "e" => Some(Stream::Stderr),
            _ => None,
        };
        Some(Self { offset, stream })
    }
}

/// Output, ready to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The text: masked, without control characters but line ends and tabs.
    pub text: String,
    /// How many bytes the command printed.
    pub printed: u64,
    /// How many of them are not kept.
    pub left_out: u64,
    /// There is more than is shown.
    pub truncated: bool,
}

fn open(store: &Store, id: &BackgroundId) -> Result<Option<File>, BackgroundError> {
    files::open_regular(&store.output_path(id)).map_err(BackgroundError::Damaged)
}

fn failed(store: &Store, id: &BackgroundId) -> impl Fn(io::Error) -> BackgroundError {
    let path = store.output_path(id);
    move |error| FileError::new("cannot read", &path, error).into()
}

/// Reads the output, all of it or that of one stream; of more than `most` bytes, the last ones.
pub fn read_output(
    store: &Store,
    id: &BackgroundId,
    cap: u64,
    stream: Option<Stream>,
    most: u64,
    masker: &Masker,
) -> Result<Shown, BackgroundError> {
    let fail = failed(store, id);
    let Some(mut file) = open(store, id)? else {
        return Ok(Shown::default());
    };
    let layout = Layout::of(&file, cap).map_err(&fail)?;
    let len = file.metadata().map_err(&fail)?.len();
    let from = len.saturating_sub(most);
    file.seek(SeekFrom::Start(from)).map_err(&fail)?;
    let mut bytes = Vec::new();
    (&file)
        .take(len.saturating_sub(from))
        .read_to_end(&mut bytes)
        .map_err(&fail)?;
    if from > 0 {
        drop_torn_line(&mut bytes);
    }
    if let Some(stream) = stream {
        let first = len.saturating_sub(bytes.len() as u64);
        bytes = only(store, id, layout, first, &bytes, stream)?;
    }
    Ok(Shown {
        text: clean(&bytes, masker),
        printed: layout.printed(len),
        left_out: layout.left_out,
        truncated: from > 0,
    })
}

/// Reads the raw bytes that came from one stream; `None` where not all of them are kept or can be read.
pub(in crate::background) fn raw_stream(
    store: &Store,
    id: &BackgroundId,
    cap: u64,
    stream: Stream,
) -> Option<Vec<u8>> {
    let mut file = open(store, id).ok()??;
    let layout = Layout::of(&file, cap).ok()?;
    if layout.left_out > 0 {
        return None;
    }
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    let len = file.metadata().ok()?.len();
    (&file).take(len).read_to_end(&mut bytes).ok()?;
    only(store, id, layout, 0, &bytes, stream).ok()
}

fn drop_torn_line(bytes: &mut Vec<u8>) {
    if let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
        bytes.drain(..=end);
    }
}

/// Picks what came from one stream. `first` is the place of the first byte in the file.
fn only(
    store: &Store,
    id: &BackgroundId,
    layout: Layout,
    first: u64,
    bytes: &[u8],
    stream: Stream,
) -> Result<Vec<u8>, BackgroundError> {
    let index = files::read_bounded(&store.index_path(id), 1 << 28)
        .map_err(BackgroundError::Damaged)?
        .unwrap_or_default();
    let entries: Vec<Entry> = String::from_utf8_lossy(&index)
        .lines()
        .filter_map(Entry::parse)
        .collect();
    let mut picked = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        if entry.stream.is_some_and(|from| from != stream) {
            continue;
        }
        let begin = layout.place(entry.offset);
        let end = entries
            .get(number.saturating_add(1))
            .map_or(u64::MAX, |next| layout.place(next.offset));
        let within = |at: u64| usize::try_from(at.saturating_sub(first)).unwrap_or(usize::MAX);
        let begin = within(begin).min(bytes.len());
        let end = within(end).min(bytes.len());
        picked.extend_from_slice(bytes.get(begin..end).unwrap_or_default());
    }
    Ok(picked)
}

/// Reads the last lines.
pub fn tail_output(
    store: &Store,
    id: &BackgroundId,
    cap: u64,
    lines: usize,
    masker: &Masker,
) -> Result<Shown, BackgroundError> {
    let mut most = 64 * 1024;
    loop {
        let mut shown = read_output(store, id, cap, None, most, masker)?;
        let count = shown.text.lines().count();
        if count < lines && shown.truncated && most < 16 << 20 {
            most = most.saturating_mul(4);
            continue;
        }
        if count > lines {
            let cut = shown
                .text
                .lines()
                .skip(count.saturating_sub(lines))
                .fold(String::new(), |text, line| text + line + "\n");
            shown.text = cut;
            shown.truncated = true;
        }
        return Ok(shown);
    }
}

/// Follows the output as it grows.
#[derive(Debug)]
pub struct Follow {
    store: Store,
    id: BackgroundId,
    cap: u64,
    /// How much of what was printed has been given out.
    offset: u64,
    /// The beginning of a line that has not ended yet.
    pending: Vec<u8>,
    masker: Masker,
}

impl Follow {
    /// Follows from the beginning, or from the last `lines` lines on.
    pub fn new(
        store: &Store,
        id: &BackgroundId,
        cap: u64,
        lines: Option<usize>,
        masker: &Masker,
    ) -> Result<Self, BackgroundError> {
        let mut follow = Self {
            store: store.clone(),
            id: id.clone(),
            cap,
            offset: 0,
            pending: Vec::new(),
            masker: masker.clone(),
        };
        if let Some(lines) = lines {
            follow.offset = follow.start_of_last(lines)?;
        }
        Ok(follow)
    }

    fn start_of_last(&self, lines: usize) -> Result<u64, BackgroundError> {
        let fail = failed(&self.store, &self.id);
        let Some(mut file) = open(&self.store, &self.id)? else {
            return Ok(0);
        };
        let layout = Layout::of(&file, self.cap).map_err(&fail)?;
        let len = file.metadata().map_err(&fail)?.len();
        let from = len.saturating_sub(1 << 20);
        file.seek(SeekFrom::Start(from)).map_err(&fail)?;
        let mut bytes = Vec::new();
        (&file)
            .take(len.saturating_sub(from))
            .read_to_end(&mut bytes)
            .map_err(&fail)?;
        let ends = bytes
            .iter()
            .enumerate()
            .rev()
            // The end of the last line does not begin another one.
            .skip(1)
            .filter(|(_, byte)| **byte == b'\n');
        let start = match lines.checked_sub(1) {
            None => bytes.len(),
            Some(before) => ends
                .map(|(at, _)| at.saturating_add(1))
                .nth(before)
                .unwrap_or(0),
        };
        Ok(layout.printed(from.saturating_add(start as u64)))
    }

    /// Returns what came since the last call, in whole lines; with `all`, an unfinished line as well.
    pub fn more(&mut self, all: bool) -> Result<String, BackgroundError> {
        let fail = failed(&self.store, &self.id);
        let mut text = String::new();
        if let Some(mut file) = open(&self.store, &self.id)? {
            let layout = Layout::of(&file, self.cap).map_err(&fail)?;
            let head_end = layout.resumes().saturating_sub(layout.left_out);
            if layout.left_out > 0 && self.offset > head_end && self.offset < layout.resumes() {
                let missed = layout.resumes().saturating_sub(self.offset);
                text.push_str(&clean(&std::mem::take(&mut self.pending), &self.masker));
                text.push_str("\n--- ");
                text.push_str(&missed.to_string());
                text.push_str(" bytes came too fast and are left out ---\n");
                self.offset = layout.resumes();
            }
            file.seek(SeekFrom::Start(layout.place(self.offset)))
                .map_err(&fail)?;
            // In bounded pieces, so that a fast command does not fill the memory.
            (&file)
                .take(4 << 20)
                .read_to_end(&mut self.pending)
                .map_err(&fail)?;
            let at = file.stream_position().map_err(&fail)?;
            self.offset = layout.printed(at);
        }
        let end = if all {
            self.pending.len()
        } else {
            self.pending
                .iter()
                .rposition(|&byte| byte == b'\n' || byte == b'\r')
                .map_or(0, |end| end.saturating_add(1))
        };
        let whole: Vec<u8> = self.pending.drain(..end).collect();
        text.push_str(&clean(&whole, &self.masker));
        Ok(text)
    }
}

/// Makes output fit to be shown: what a terminal would obey is taken out, secrets are masked.
pub fn clean(bytes: &[u8], masker: &Masker) -> String {
    masker.text(&plain(bytes)).text
}

/// Takes escape sequences and control characters out; a carriage return ends a line.
pub(super) fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    crate::text::clean(&text, usize::MAX)
}
