//! How far the command is, and whether it still does something.
use super::*;
use crate::background::progress::{Progress, ProgressSource, Recognised, is_reported, recognise};

/// How often progress is looked for and recorded.
const LOOK: Duration = Duration::from_secs(1);
/// A command that stays quiet is looked at less and less often, at last after this many intervals: each look goes through
/// all processes.
const SLOWEST: u32 = 8;
/// How much of the newest output is kept for it.
const RECENT: usize = 4096;
/// How many reported lines are kept between two looks.
const REPORTS: usize = 256;

/// What is remembered of the output between two looks.
#[derive(Debug)]
pub(super) struct Reading {
    /// The end of what was printed.
    recent: Vec<u8>,
    /// Lines made for us.
    reports: VecDeque<Vec<u8>>,
    examine_at: Option<Instant>,
    examined_at: Option<Instant>,
    /// The command reports itself: lines made for people do not count any more.
    reports_itself: bool,
    quiet_after: Duration,
    printed_at: Instant,
    printed_time: Option<Time>,
    next_quiet_look: Option<Instant>,
    /// How many intervals lie between two looks.
    pace: u32,
    /// The processor time at the last look, and when that was.
    cpu: Option<(u64, Time)>,
    command_end_announced: bool,
}

impl Reading {
    pub(super) fn new(quiet_ms: u64) -> Self {
        let now = Instant::now();
        let quiet_after = Duration::from_millis(quiet_ms.max(1));
        Self {
            recent: Vec::new(),
            reports: VecDeque::new(),
            examine_at: None,
            examined_at: None,
            reports_itself: false,
            quiet_after,
            printed_at: now,
            printed_time: None,
            next_quiet_look: now.checked_add(quiet_after),
            pace: 1,
            cpu: None,
            command_end_announced: false,
        }
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        [self.examine_at, self.next_quiet_look]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns `true` the first time.
    pub(super) const fn announce_command_end(&mut self) -> bool {
        !std::mem::replace(&mut self.command_end_announced, true)
    }

    /// Takes note of what was printed.
    pub(super) fn printed(&mut self, bytes: &[u8]) {
        let now = Instant::now();
        self.printed_at = now;
        if bstr::ByteSlice::contains_str(bytes, "JCODE_") {
            for line in bytes.split(|&byte| byte == b'\n' || byte == b'\r') {
                if is_reported(line) {
                    if self.reports.len() >= REPORTS {
                        self.reports.pop_front();
                    }
                    self.reports.push_back(line.to_vec());
                }
            }
        }
        let end = bytes.len().saturating_sub(RECENT);
        let newest = bytes.get(end..).unwrap_or_default();
        let keep = RECENT.saturating_sub(newest.len()).min(self.recent.len());
        self.recent.drain(..self.recent.len().saturating_sub(keep));
        self.recent.extend_from_slice(newest);
        if self.examine_at.is_none() {
            self.examine_at = Some(
                self.examined_at
                    .and_then(|at| at.checked_add(LOOK))
                    .map_or(now, |at| at.max(now)),
            );
        }
    }

    /// Reads the newest line that says how far it is; lines made for us before those made for people.
    fn newest(&mut self, checkpoints: &mut Vec<Progress>) -> Option<Progress> {
        let mut reported = None;
        for line in std::mem::take(&mut self.reports) {
            match recognise(&line) {
                Some(Recognised::Checkpoint(progress)) => {
                    checkpoints.push(progress.clone());
                    reported = Some(progress);
                }
                Some(Recognised::Progress(progress))
                    if progress.source == ProgressSource::Reported =>
                {
                    reported = Some(progress);
                }
                Some(Recognised::Progress(_)) | None => {}
            }
        }
        let recent = std::mem::take(&mut self.recent);
        if reported.is_some() {
            self.reports_itself = true;
            return reported;
        }
        if self.reports_itself {
            return None;
        }
        recent
            .split(|&byte| byte == b'\n' || byte == b'\r')
            .rev()
            .find_map(|line| match recognise(line)? {
                Recognised::Progress(progress) | Recognised::Checkpoint(progress) => Some(progress),
            })
    }
}

impl Supervisor<'_> {
    pub(super) fn on_reading_time(&mut self, now: Instant) {
        if self.reading.examine_at.is_some_and(|at| now >= at) {
            self.examine(false);
        }
        if self.reading.next_quiet_look.is_some_and(|at| now >= at) {
            self.look_whether_quiet(now);
        }
    }

    /// Looks at what was printed since the last look; records what is new, unless the end is near and records it anyway.
    pub(super) fn examine(&mut self, at_end: bool) {
        self.reading.examine_at = None;
        self.reading.examined_at = Some(Instant::now());
        let now = self.now();
        self.reading.printed_time = Some(now);
        let mut changed = false;
        if self.record.quiet_since.take().is_some() {
            self.note(Event::new(EventKind::Moving, now));
            changed = true;
        }
        let mut checkpoints = Vec::new();
        let newest = self.reading.newest(&mut checkpoints);
        for progress in checkpoints {
            let mut event = Event::new(EventKind::Checkpoint, now);
            event.message = progress
                .message
                .as_deref()
                .map(|text| self.masker.text(text).text);
            event.progress = Some(masked(progress, &self.masker));
            event.status = Some("running".to_owned());
            self.note(event);
            changed = true;
        }
        if let Some(progress) = newest.map(|progress| masked(progress, &self.masker)) {
            let progress = keep_measure(self.record.progress.as_ref(), progress);
            if self.record.progress.as_ref() != Some(&progress) {
                let mut event = Event::new(EventKind::Progress, now);
                event.message.clone_from(&progress.message);
                event.status = Some("running".to_owned());
                event.progress = Some(progress.clone());
                self.record.progress = Some(progress);
                self.note(event);
                changed = true;
            }
        }
        if changed && !at_end {
            self.write_status(false);
        }
    }

    /// Looks whether a command that prints nothing uses the processor. Nobody is judged by it: it is noted.
    fn look_whether_quiet(&mut self, now: Instant) {
        if now.saturating_duration_since(self.reading.printed_at) < self.reading.quiet_after {
            self.reading.cpu = None;
            self.reading.pace = 1;
            // No look before it could be quiet.
            self.reading.next_quiet_look = self
                .reading
                .printed_at
                .checked_add(self.reading.quiet_after);
            return;
        }
        let used = self
            .members()
            .iter()
            .filter_map(|process| self.processes.cpu_ticks(process.pid))
            .fold(0_u64, u64::saturating_add);
        let time = self.now();
        self.reading.pace = match self.record.quiet_since {
            Some(_) => self.reading.pace.saturating_mul(2).min(SLOWEST),
            None => 1,
        };
        let pause = self.reading.quiet_after.saturating_mul(self.reading.pace);
        self.reading.next_quiet_look = now.checked_add(pause);
        match self.reading.cpu {
            // One tick may be the accounting of a mere look around.
            Some((before, since)) if used.abs_diff(before) <= 1 => {
                if self.record.quiet_since.is_none() {
                    self.record.quiet_since = Some(since);
                    let event = Event::new(EventKind::Quiet, time)
                        .message("neither output nor processor time moves");
                    self.note(event);
                    self.write_status(false);
                }
            }
            _ => {
                if self.record.quiet_since.take().is_some() {
                    self.note(Event::new(EventKind::Moving, time));
                    self.write_status(false);
                }
                self.reading.cpu = Some((used, time));
            }
        }
    }
}

/// Masks the message: it is a line of the output.
fn masked(mut progress: Progress, masker: &Masker) -> Progress {
    progress.message = progress.message.map(|text| masker.text(&text).text);
    progress
}

/// A line without any measure changes the message and leaves the measure as it was.
fn keep_measure(known: Option<&Progress>, newest: Progress) -> Progress {
    match known {
        Some(known)
            if newest.percent.is_none()
                && newest.total.is_none()
                && (known.percent.is_some() || known.total.is_some()) =>
        {
            Progress {
                message: newest.message,
                ..known.clone()
            }
        }
        _ => newest,
    }
}
