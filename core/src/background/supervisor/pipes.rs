//! Reading what the command prints, in whole lines.
use std::fs::File;

use super::*;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;
/// How long an unfinished line waits for its end, so that the streams do not tear each other's lines.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long an unfinished line may grow before it is written all the same.
const LONGEST: usize = 16 * 1024;
/// How many chunks are read in one go, so that signals are heard in between.
const ROUNDS: usize = 16;

/// One stream of the command.
#[derive(Debug)]
pub(super) struct Pipe {
    stream: Stream,
    file: File,
    pending: Vec<u8>,
    flush_at: Option<Instant>,
}

impl Pipe {
    pub(super) const fn new(stream: Stream, file: File) -> Self {
        Self {
            stream,
            file,
            pending: Vec::new(),
            flush_at: None,
        }
    }

    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    pub(super) const fn flush_at(&self) -> Option<Instant> {
        self.flush_at
    }
}

impl Supervisor<'_> {
    /// Reads what there is. At the end of the task, everything there is.
    pub(super) fn read_pipes(&mut self, all: bool) {
        let mut pipes = std::mem::take(&mut self.pipes);
        pipes.retain_mut(|pipe| self.read_pipe(pipe, all));
        self.pipes = pipes;
    }

    /// Returns whether the pipe may give more.
    fn read_pipe(&mut self, pipe: &mut Pipe, all: bool) -> bool {
        let mut rounds = 0;
        let open = loop {
            let begin = pipe.pending.len();
            pipe.pending.resize(begin.saturating_add(CHUNK), 0);
            let room = pipe.pending.get_mut(begin..).unwrap_or_default();
            let read = (&pipe.file).read(room);
            pipe.pending
                .truncate(begin.saturating_add(read.as_ref().map_or(0, |read| *read)));
            match read {
                Ok(0) => break false,
                Ok(_) => {
                    self.put_lines(pipe);
                    rounds += 1;
                    if rounds >= ROUNDS && !all {
                        break true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break false,
            }
        };
        let due = pipe.flush_at.is_some_and(|at| Instant::now() >= at);
        if !open || all || due {
            let rest = std::mem::take(&mut pipe.pending);
            pipe.flush_at = None;
            self.put(pipe.stream, &rest);
        }
        open
    }

    /// Writes what is whole, and keeps the beginning of a line for a moment.
    fn put_lines(&mut self, pipe: &mut Pipe) {
        let end = pipe
            .pending
            .iter()
            .rposition(|&byte| byte == b'\n' || byte == b'\r')
            .map_or(0, |end| end.saturating_add(1));
        let end = if pipe.pending.len().saturating_sub(end) > LONGEST {
            pipe.pending.len()
        } else {
            end
        };
        if end > 0 {
            let whole = pipe.pending.get(..end).unwrap_or_default();
            self.put(pipe.stream, whole);
            pipe.pending.drain(..end);
            pipe.flush_at = None;
        }
        if !pipe.pending.is_empty() && pipe.flush_at.is_none() {
            pipe.flush_at = Instant::now().checked_add(PATIENCE);
        }
    }

    /// Writes to the output file. What cannot be written is counted, and the command goes on.
    pub(super) fn put(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let now = self.now();
        self.reading.printed(bytes);
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.write(stream, bytes, now)
        {
            let is_first = self.record.output_lost == 0;
            self.record.output_lost = self.record.output_lost.saturating_add(bytes.len() as u64);
            if is_first {
                self.note(Event::new(EventKind::OutputLost, now).message(error.to_string()));
            }
        }
    }
}
