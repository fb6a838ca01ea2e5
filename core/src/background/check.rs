//! The evidence of a task that is run for a check.
//!
//! The supervisor stays small, so it does not know git: it starts the program once more ([`EVIDENCE`]), which looks at the
//! content and writes to the ledger.
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::output::{Stream, raw_stream};
use super::record::{End, Record};
use super::store::Store;
use crate::error::Exit;
use crate::evidence::{Digest, Outcome};
use crate::paths;
use crate::time::Time;

/// The hidden command of the program that records the end of a check.
pub const EVIDENCE: &str = "bg-evidence";

/// How long recording may take: it looks at the whole work tree.
const MOST: Duration = Duration::from_mins(10);
/// How often it is tried where the ledger is busy; each try waits for it by itself.
const BUSY_TRIES: u32 = 12;
/// The longest message that is kept of a failure.
const MESSAGE: u64 = 500;

/// The end of a check, on its way from the supervisor to the program that records it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckEnd {
    /// The folder of tasks.
    folder: String,
    /// The task; its check is there.
    pub record: Record,
    /// How the command ended.
    how: End,
    /// When it began.
    pub started_at: Time,
    /// When it ended.
    pub ended_at: Time,
}

impl CheckEnd {
    /// Reads it from standard input.
    pub fn read() -> Option<Self> {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .take(1 << 20)
            .read_to_end(&mut bytes)
            .ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Returns how the command ended, in the words of evidence.
    pub const fn outcome(&self) -> Outcome {
        match self.how {
            End::Exited { code } => Outcome::Exited { code },
            End::Signalled { signal, .. } => Outcome::Signalled { signal },
        }
    }

    /// Returns the digest of what came from a stream; `None` where not all of it is kept.
    pub fn digest(&self, stream: Stream) -> Option<Digest> {
        use sha2::{Digest as _, Sha256};
        if self.record.output_lost > 0 {
            return None;
        }
        let store = Store::at(paths::path_of_text(&self.folder)?);
        let bytes = raw_stream(&store, &self.record.id, self.record.output_cap, stream)?;
        Some(Digest {
            sha256: crate::text::hex(&Sha256::digest(&bytes)),
            size: bytes.len() as u64,
        })
    }
}

/// Has the end of a check recorded; where the ledger is busy, tries again for a while. Fails with the reason in words.
pub(super) fn record(
    store: &Store,
    record: &Record,
    how: End,
    started_at: Time,
    ended_at: Time,
) -> Result<(), String> {
    for _ in 1..BUSY_TRIES {
        match record_once(store, record, how, started_at, ended_at) {
            Err((_, Some(code))) if code == i32::from(Exit::Busy as u8) => {}
            done => return done.map_err(|(why, _)| why),
        }
    }
    record_once(store, record, how, started_at, ended_at).map_err(|(why, _)| why)
}

/// Fails with the reason in words, and the exit status of who should have recorded it.
fn record_once(
    store: &Store,
    record: &Record,
    how: End,
    started_at: Time,
    ended_at: Time,
) -> Result<(), (String, Option<i32>)> {
    let Some(check) = &record.check else {
        return Ok(());
    };
    let end = CheckEnd {
        folder: paths::text_of_path(store.folder()),
        record: record.clone(),
        how,
        started_at,
        ended_at,
    };
    let failed = |error: &dyn std::fmt::Display| (error.to_string(), None);
    let text = serde_json::to_vec(&end).map_err(|error| failed(&error))?;
    // Whatever lies at our path now, this is the program that runs here.
    let mut child = Command::new("/proc/self/exe")
        .arg(EVIDENCE)
        .current_dir(paths::path_of_text(&check.root).unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&text).map_err(|error| failed(&error))?;
    }
    let deadline = Instant::now().checked_add(MOST);
    let mut pause = Duration::from_millis(5);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                drop(child.kill());
                drop(child.wait());
                return Err(("it took too long".to_owned(), None));
            }
            Ok(None) => {
                std::thread::sleep(pause);
                pause = pause.saturating_mul(2).min(Duration::from_secs(1));
            }
            Err(error) => return Err(failed(&error)),
        }
    };
    if status.success() {
        return Ok(());
    }
    let mut message = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        drop(stderr.take(MESSAGE).read_to_end(&mut message));
    }
    let message = crate::text::one_line(&String::from_utf8_lossy(&message), 500);
    let why = if message.is_empty() {
        status.to_string()
    } else {
        message
    };
    Err((why, status.code()))
}
