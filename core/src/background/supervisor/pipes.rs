//! Reading what the command prints, in whole lines.
use std::fs::File;

use super::*;

/// How much is read at once.
const CHUNK: usize = 128 * 1024;
/// What a pipe holds unless it is asked to hold more.
const PLAIN_PIPE: usize = 64 * 1024;
/// What the pipe of a command holds that prints faster than it is read.
const WIDE_PIPE: usize = 256 * 1024;
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
    /// The beginning of a line, at most [`LONGEST`].
    pending: Vec<u8>,
    flush_at: Option<Instant>,
    /// There is something to read.
    ready: bool,
    is_wide: bool,
}

impl Pipe {
    pub(super) const fn new(stream: Stream, file: File) -> Self {
        Self {
            stream,
            file,
            pending: Vec::new(),
            flush_at: None,
            ready: true,
            is_wide: false,
        }
    }

    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    pub(super) const fn flush_at(&self) -> Option<Instant> {
        self.flush_at
    }

    pub(super) const fn set_ready(&mut self, ready: bool) {
        self.ready = ready;
    }

    /// Lets the command print ahead. The system grants it while its user does not use too much for pipes.
    fn widen(&mut self) {
        if !std::mem::replace(&mut self.is_wide, true) {
            let _granted = rustix::pipe::fcntl_setpipe_size(&self.file, WIDE_PIPE);
        }
    }
}

/// Returns how much of `bytes` is to be written now: all lines that have ended, and what is longer than a line should be.
fn whole_lines(bytes: &[u8]) -> usize {
    let end = memchr::memrchr2(b'\n', b'\r', bytes).map_or(0, |end| end.saturating_add(1));
    if bytes.len().saturating_sub(end) > LONGEST {
        bytes.len()
    } else {
        end
    }
}

impl Supervisor<'_> {
    /// Reads what there is. At the end of the task, everything there is.
    pub(super) fn read_pipes(&mut self, all: bool) {
        let mut pipes = std::mem::take(&mut self.pipes);
        pipes.retain_mut(|pipe| {
            let open = !(pipe.ready || all) || self.read_pipe(pipe, all);
            let due = pipe.flush_at.is_some_and(|at| Instant::now() >= at);
            if !open || all || due {
                let rest = std::mem::take(&mut pipe.pending);
                pipe.flush_at = None;
                self.put(pipe.stream, &rest);
            }
            open
        });
        self.pipes = pipes;
    }

    /// Returns whether the pipe may give more.
    fn read_pipe(&mut self, pipe: &mut Pipe, all: bool) -> bool {
        // One buffer for both streams; its pages are used only as far as something is read.
        let mut buffer = std::mem::take(&mut self.buffer);
        if buffer.is_empty() {
            buffer = vec![0; LONGEST + CHUNK];
        }
        let mut rounds = 0;
        let open = loop {
            let begin = pipe.pending.len();
            if let Some(room) = buffer.get_mut(..begin) {
                room.copy_from_slice(&pipe.pending);
            }
            let room = buffer.get_mut(begin..).unwrap_or_default();
            match (&pipe.file).read(room) {
                Ok(0) => break false,
                Ok(read) => {
                    let filled = begin.saturating_add(read);
                    self.put_lines(pipe, buffer.get(..filled).unwrap_or_default());
                    if read >= PLAIN_PIPE {
                        pipe.widen();
                    }
                    rounds += 1;
                    // Less than there is room for: it is empty now.
                    let is_drained = read < PLAIN_PIPE;
                    if (is_drained || rounds >= ROUNDS) && !all {
                        break true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break false,
            }
        };
        self.buffer = buffer;
        open
    }

    /// Writes what is whole, and keeps the beginning of a line for a moment.
    fn put_lines(&mut self, pipe: &mut Pipe, bytes: &[u8]) {
        let end = whole_lines(bytes);
        let (whole, rest) = bytes.split_at(end.min(bytes.len()));
        pipe.pending.clear();
        pipe.pending.extend_from_slice(rest);
        if !whole.is_empty() {
            self.put(pipe.stream, whole);
            pipe.flush_at = None;
        }
        if !rest.is_empty() && pipe.flush_at.is_none() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_whole_unless_they_are_too_long() {
        assert_eq!(whole_lines(b""), 0);
        assert_eq!(whole_lines(b"begun"), 0);
        assert_eq!(whole_lines(b"one\ntwo\rbegun"), 8);
        let mut long = vec![b'x'; LONGEST];
        assert_eq!(whole_lines(&long), 0);
        long.push(b'x');
        assert_eq!(whole_lines(&long), LONGEST + 1);
        long.insert(0, b'\n');
        assert_eq!(whole_lines(&long), LONGEST + 2);
    }
}
