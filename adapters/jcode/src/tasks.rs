//! jcode's background tasks, with what jcode records wrongly put right by the processes and outputs themselves.
//!
//! jcode keeps two files for each task in a folder below the temporary folder: `<id>.status.json`, written in place, and
//! `<id>.output`. Its own list is wrong in several ways: a number that was given out again keeps a task running, a
//! marker anywhere in the output counts as the end, commands that were moved to the background always succeed, tasks
//! without an owner run for ever, half-written and missing status files hide a task, and the end is when somebody looked.
//!
//! Looking changes nothing. Folders and files of other users are not read: the folder's name in the shared temporary
//! folder is known to everybody.
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use takeup_core::agent::Found;
use takeup_core::env::Env;
use takeup_core::files::open_regular;
use takeup_core::ids::SessionId;
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::time::Time;

use crate::home::{Home, read_file};
use crate::json::members;
use crate::processes::Processes;
use crate::shown::line;

mod judge;
use judge::{Facts, judge};

/// The largest status file that is read, in bytes.
const LARGEST_STATUS: u64 = 4 << 20;

/// How much of the end of an output is read, in bytes.
const OUTPUT_END: u64 = 4 << 10;

/// The line jcode's shell prints at the end of a command.
const MARKER: (&str, &str) = ("--- Command finished with exit code: ", " ---");

impl TaskState {
    /// Returns the word as it stands in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
        }
    }
}

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// It runs.
    Running,
    /// It ended with exit code 0.
    Completed,
    /// It ended otherwise.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
    /// A newer one took its place.
    Superseded,
    /// Its process is gone, and how it ended is not known.
    Lost,
    /// Nothing reliable says whether it runs.
    Unknown,
}

/// How far a task is, as jcode recorded it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskProgress {
    /// Percent, 0 to 100.
    pub percent: Option<f64>,
    /// What it does.
    pub message: Option<String>,
    /// Read out of ordinary output by jcode's rules of thumb, which take dates for fractions.
    pub guessed: bool,
}

/// One background task.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundTask {
    /// Its id, which jcode gives out again.
    pub id: String,
    /// What it is called.
    pub label: Option<String>,
    /// The tool that started it.
    pub tool: Option<String>,
    /// The session that started it.
    pub session: Option<SessionId>,
    /// How it stands.
    pub state: TaskState,
    /// What shows it.
    pub proof: String,
    /// jcode's own word, where it differs from what is so.
    pub recorded: Option<String>,
    /// Its exit code, where it is known.
    pub exit_code: Option<i32>,
    /// What jcode says went wrong.
    pub error: Option<String>,
    /// When it began.
    pub started_at: Option<Time>,
    /// When it ended, or, where nobody recorded that, when its output was last written.
    pub ended_at: Option<Time>,
    /// The process number of a detached task.
    pub pid: Option<u32>,
    /// Whether it outlives jcode.
    pub detached: bool,
    /// How far it is.
    pub progress: Option<TaskProgress>,
    /// Its output.
    pub output: Option<PathBuf>,
    /// Its status file.
    pub status_file: Option<PathBuf>,
}

/// Returns the folders in which jcode may keep tasks: below `TMPDIR`, below the system's temporary folder, below the
/// scratch folder that jcode gives to shells it starts, and `tasks` in the home, of which older descriptions speak.
pub fn folders(env: &Env) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(folder) = env.absolute("TMPDIR") {
        folders.push(folder.join("jcode-bg-tasks"));
    }
    folders.push(PathBuf::from("/tmp/jcode-bg-tasks"));
    if let Some(folder) = env.absolute("JCODE_SCRATCH_DIR") {
        folders.push(folder.join("jcode-bg-tasks"));
    }
    if let Some(home) = Home::of(env) {
        folders.push(home.root().join("scratch/jcode-bg-tasks"));
        folders.push(home.root().join("tasks"));
    }
    let mut seen = BTreeSet::new();
    folders.retain(|folder| {
        seen.insert(std::fs::canonicalize(folder).unwrap_or_else(|_| folder.clone()))
    });
    folders
}

/// Lists the tasks of every folder, the newest first.
pub fn list(env: &Env, processes: &dyn Processes) -> Found<BackgroundTask> {
    let mut found = Found::default();
    for folder in folders(env) {
        list_folder(&folder, processes, &mut found);
    }
    found.items.sort_by(|a, b| {
        b.started_at
            .cmp(&a.started_at)
            .then_with(|| a.id.cmp(&b.id))
    });
    found
}

fn list_folder(folder: &Path, processes: &dyn Processes, found: &mut Found<BackgroundTask>) {
    let data = match std::fs::symlink_metadata(folder) {
        Ok(data) => data,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => {
            let issue = Issue::new(folder, IssueKind::Unreadable, error.to_string());
            found.issues.push(issue);
            return;
        }
    };
    if data.is_symlink() {
        let why = "a link stands where jcode keeps its tasks; it is not followed";
        found
            .issues
            .push(Issue::new(folder, IssueKind::Symlink, why));
        return;
    }
    if !is_own(&data) {
        let why = "the folder of tasks belongs to another user; it is not read";
        found
            .issues
            .push(Issue::new(folder, IssueKind::ForeignOwner, why));
        return;
    }
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            let issue = Issue::new(folder, IssueKind::Unreadable, error.to_string());
            found.issues.push(issue);
            return;
        }
    };
    let mut files: BTreeMap<String, (bool, bool)> = BTreeMap::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if let Some(id) = name.strip_suffix(".status.json") {
            files.entry(id.to_owned()).or_default().0 = true;
        } else if let Some(id) = name.strip_suffix(".output") {
            files.entry(id.to_owned()).or_default().1 = true;
        }
    }
    for (id, (has_status, has_output)) in files {
        let plain = id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if id.is_empty() || id.len() > 64 || !plain {
            continue;
        }
        let task = Files {
            folder,
            id: &id,
            has_status,
            has_output,
        };
        match task.read(processes, &mut found.issues) {
            Ok(task) => found.items.extend(task),
            Err(issue) => found.issues.push(issue),
        }
    }
}

/// Reads what a task printed, of more than `most` bytes the last ones, and how much that is in all; `None` where it has no output.
///
/// # Errors
/// The output cannot be read, or belongs to another user.
pub fn output(task: &BackgroundTask, most: u64) -> Result<Option<(Vec<u8>, u64)>, Issue> {
    let Some(path) = &task.output else {
        return Ok(None);
    };
    let Some(file) = open_own(path)? else {
        return Ok(None);
    };
    let unreadable =
        |error: std::io::Error| Issue::new(path, IssueKind::Unreadable, error.to_string());
    let size = file.metadata().map_err(unreadable)?.size();
    let start = size.saturating_sub(most);
    let mut bytes = Vec::new();
    (&file).seek(SeekFrom::Start(start)).map_err(unreadable)?;
    (&file)
        .take(size.saturating_sub(start))
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    Ok(Some((bytes, size)))
}

/// Opens a file of the user's own.
fn open_own(path: &Path) -> Result<Option<File>, Issue> {
    let Some(file) = open_regular(path)? else {
        return Ok(None);
    };
    match file.metadata() {
        Ok(data) if is_own(&data) => Ok(Some(file)),
        Ok(_) => Err(Issue::new(
            path,
            IssueKind::ForeignOwner,
            "it belongs to another user; it is not read",
        )),
        Err(error) => Err(Issue::new(path, IssueKind::Unreadable, error.to_string())),
    }
}

fn is_own(data: &std::fs::Metadata) -> bool {
    data.uid() == rustix::process::geteuid().as_raw()
}

/// The files of one task.
struct Files<'a> {
    folder: &'a Path,
    id: &'a str,
    has_status: bool,
    has_output: bool,
}

/// The end of an output.
#[derive(Default)]
struct OutputEnd {
    /// The exit code of the marker, where the marker is the last line.
    code: Option<i32>,
    /// The exit code that stands at the end of the whole output of a command that was moved to the background.
    moved_code: Option<i32>,
    written_at: Option<Time>,
}

impl Files<'_> {
    fn path(&self, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", self.id))
    }

    fn open(&self, extension: &str) -> Result<Option<File>, Issue> {
        open_own(&self.path(extension))
    }

    /// Reads the status file. jcode writes it in place, so a half one is looked at a second time.
    fn status(&self) -> Result<Option<(Value, bool)>, Issue> {
        let mut torn = Value::Null;
        for _ in 0..2 {
            let Some(file) = self.open("status.json")? else {
                return Ok(None);
            };
            let bytes = read_file(&file, &self.path("status.json"), LARGEST_STATUS)?;
            match serde_json::from_slice::<Value>(&bytes) {
                Ok(value) if value.is_object() => return Ok(Some((value, true))),
                Ok(_) | Err(_) => torn = rest_of(&bytes),
            }
        }
        Ok(Some((torn, false)))
    }

    fn output_end(&self) -> Result<OutputEnd, Issue> {
        let mut end = OutputEnd::default();
        let Some(file) = self.open("output")? else {
            return Ok(end);
        };
        let path = self.path("output");
        let unreadable =
            |error: std::io::Error| Issue::new(&path, IssueKind::Unreadable, error.to_string());
        let data = file.metadata().map_err(unreadable)?;
        end.written_at = data.mtime().checked_mul(1000).map(|seconds| {
            Time::from_millis(seconds.saturating_add(data.mtime_nsec() / 1_000_000))
        });
        let size = data.size();
        let start = size.saturating_sub(OUTPUT_END);
        let mut bytes = vec![0; usize::try_from(size - start).unwrap_or_default()];
        file.read_exact_at(&mut bytes, start).map_err(unreadable)?;
        let text = String::from_utf8_lossy(&bytes);
        let last = text.trim_end_matches(['\n', '\r']);
        let last = last.rsplit('\n').next().unwrap_or_default();
        end.code = last
            .strip_prefix(MARKER.0)
            .and_then(|rest| rest.strip_suffix(MARKER.1))
            .and_then(|code| code.parse().ok());
        // Written by jcode without a line end, behind an empty line.
        end.moved_code = text
            .rsplit_once("\n\nExit code: ")
            .and_then(|(_, code)| code.parse().ok());
        Ok(end)
    }

    fn read(
        &self,
        processes: &dyn Processes,
        issues: &mut Vec<Issue>,
    ) -> Result<Option<BackgroundTask>, Issue> {
        let status = if self.has_status {
            self.status()?
        } else {
            None
        };
        let end = if self.has_output {
            self.output_end()?
        } else {
            OutputEnd::default()
        };
        let Some((status, whole)) = status else {
            return Ok(self.has_output.then(|| self.untracked(&end)));
        };
        let status_path = self.path("status.json");
        if !whole {
            issues.push(Issue::new(
                &status_path,
                IssueKind::Torn,
                "the status file is half-written",
            ));
        }
        let text = |key: &str| status.get(key).and_then(Value::as_str);
        let number = |key: &str| {
            let number = status.get(key).and_then(Value::as_u64);
            number.and_then(|number| u32::try_from(number).ok())
        };
        let time = |key: &str| text(key).and_then(|text| text.parse::<Time>().ok());
        let facts = Facts {
            word: text("status"),
            error: text("error"),
            exit_code: status
                .get("exit_code")
                .and_then(Value::as_i64)
                .and_then(|code| i32::try_from(code).ok()),
            detached: status.get("detached").and_then(Value::as_bool) == Some(true),
            pid: number("pid"),
            owner: number("owner_pid"),
            started_at: time("started_at"),
            cancelled: was_cancelled(&status),
            whole,
        };
        let judged = judge(&facts, &end, processes);
        let differs = judged.recorded_differs.then(|| text("status")).flatten();
        let running = judged.state == TaskState::Running;
        let ended_at = if running || judged.state == TaskState::Unknown {
            None
        } else {
            time("completed_at").or(end.written_at)
        };
        Ok(Some(BackgroundTask {
            id: self.id.to_owned(),
            label: text("display_name").map(|text| line(text, 80)),
            tool: text("tool_name").map(|text| line(text, 80)),
            session: text("session_id").and_then(|id| SessionId::new(id).ok()),
            state: judged.state,
            proof: judged.proof,
            recorded: differs.map(|word| line(word, 40)),
            exit_code: judged.exit_code,
            error: facts.error.map(|text| line(text, 400)),
            started_at: facts.started_at,
            ended_at,
            pid: facts.pid,
            detached: facts.detached,
            progress: progress(&status),
            output: self.has_output.then(|| self.path("output")),
            status_file: Some(status_path),
        }))
    }

    /// An output without a status: jcode was killed before it made the command a task.
    fn untracked(&self, end: &OutputEnd) -> BackgroundTask {
        let (state, proof) = match end.code {
            Some(0) => (
                TaskState::Completed,
                "its output ends with exit code 0".to_owned(),
            ),
            Some(code) => (
                TaskState::Failed,
                format!("its output ends with exit code {code}"),
            ),
            None => (
                TaskState::Unknown,
                "jcode recorded no status for it, and its output does not say that it ended"
                    .to_owned(),
            ),
        };
        BackgroundTask {
            id: self.id.to_owned(),
            label: None,
            tool: None,
            session: None,
            state,
            proof,
            recorded: None,
            exit_code: end.code,
            error: None,
            started_at: None,
            ended_at: end.code.and(end.written_at),
            pid: None,
            detached: true,
            progress: None,
            output: Some(self.path("output")),
            status_file: None,
        }
    }
}

/// Returns what a half-written status file still says.
fn rest_of(bytes: &[u8]) -> Value {
    let mut object = serde_json::Map::new();
    if let Some(members) = members(bytes, 0) {
        for (key, piece) in members.list {
            if piece.whole
                && let (Ok(key), Ok(value)) = (
                    std::str::from_utf8(key),
                    serde_json::from_slice(piece.bytes),
                )
            {
                object.insert(key.to_owned(), value);
            }
        }
    }
    Value::Object(object)
}

fn was_cancelled(status: &Value) -> bool {
    let events = status.get("event_history").and_then(Value::as_array);
    let last = events.and_then(|events| events.last());
    last.is_some_and(|event| event["kind"] == "cancelled") || status["error"] == "Cancelled by user"
}

fn progress(status: &Value) -> Option<TaskProgress> {
    let progress = status
        .get("progress")
        .filter(|progress| progress.is_object())?;
    Some(TaskProgress {
        percent: progress["percent"]
            .as_f64()
            .filter(|percent| (0.0..=100.0).contains(percent)),
        message: progress["message"].as_str().map(|text| line(text, 200)),
        guessed: progress["source"] != "reported",
    })
}

#[cfg(test)]
mod tests;
