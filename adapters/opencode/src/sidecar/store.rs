//! Reading and writing the plugin's records so that the plugin and this program can write at the same time.
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use takeup_core::agent::AgentError;
use takeup_core::fault;
use takeup_core::files::{self, FileError};
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::time::{Clock, Time};

use super::json::{Json, Object};

/// No record of the plugin is larger; a workflow with a long list of candidates has some hundred kilobytes.
const LARGEST: u64 = 8 * 1024 * 1024;
/// How long a writer waits for a lock, as the plugin does.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it tries.
const PAUSE: Duration = Duration::from_millis(10);
/// A lock of a dead holder is removed after this age, in milliseconds.
const STALE_AFTER: i64 = 120_000;

/// A record of the plugin could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SidecarError {
    /// Somebody else holds the record's lock.
    #[error("{} is locked by {holder}", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
        /// Who holds it, as the lock says.
        holder: String,
    },
    /// The record is damaged; it is never overwritten.
    #[error("{}: {}", .0.path.display(), .0.message)]
    Damaged(Issue),
    /// The record says something that contradicts what shall be written.
    #[error("{0}")]
    Conflict(String),
    /// Reading or writing failed.
    #[error(transparent)]
    File(#[from] FileError),
}

impl From<Issue> for SidecarError {
    fn from(issue: Issue) -> Self {
        Self::Damaged(issue)
    }
}

impl From<SidecarError> for AgentError {
    fn from(error: SidecarError) -> Self {
        match error {
            SidecarError::Locked { .. } => Self::InUse {
                agent: crate::NAME,
                proof: error.to_string(),
            },
            SidecarError::Damaged(issue) => Self::Damaged(issue),
            SidecarError::Conflict(what) => Self::Conflict {
                agent: crate::NAME,
                what,
            },
            SidecarError::File(error) => Self::File(error),
        }
    }
}

/// A record as it stands in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its content.
    pub object: Object,
    /// Its lines end in CR LF (an editor or git changed them); they are kept so.
    crlf: bool,
    /// When the file was last written, in nanoseconds since the epoch.
    pub written: i128,
}

impl Document {
    fn bytes(&self) -> Vec<u8> {
        let text = Json::Object(self.object.clone()).pretty();
        if self.crlf {
            text.replace('\n', "\r\n").into_bytes()
        } else {
            text.into_bytes()
        }
    }
}

/// Reads a record. `Ok(None)` where there is none.
pub fn read(path: &Path) -> Result<Option<Document>, Issue> {
    refuse_links(path)?;
    let Some(bytes) = files::read_bounded(path, LARGEST)? else {
        return Ok(None);
    };
    let written = path.symlink_metadata().map_or(0, |meta| {
        i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec())
    });
    if bytes.is_empty() {
        return Err(Issue::new(path, IssueKind::Torn, "it is empty"));
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return Err(Issue::new(
            path,
            IssueKind::Zeroed,
            "it holds zero bytes only",
        ));
    }
    let crlf = bytes.contains(&b'\r')
        && bytes
            .split_inclusive(|byte| *byte == b'\n')
            .all(|line| !line.ends_with(b"\n") || line.ends_with(b"\r\n"));
    match Json::parse(&bytes) {
        Ok(Json::Object(object)) => Ok(Some(Document {
            object,
            crlf,
            written,
        })),
        Ok(_) => Err(Issue::new(path, IssueKind::Corrupt, "it holds no object")),
        Err(why) => Err(Issue::new(
            path,
            IssueKind::Corrupt,
            format!("it is no JSON: {why}"),
        )),
    }
}

/// Refuses links at the plugin's own folders: what they lead to is not the plugin's.
pub(super) fn refuse_links(path: &Path) -> Result<(), Issue> {
    let mut below = Vec::new();
    for folder in path.ancestors().skip(1) {
        below.push(folder);
        if folder
            .file_name()
            .is_some_and(|name| name == ".agent-context")
        {
            for folder in below {
                if folder
                    .symlink_metadata()
                    .is_ok_and(|meta| meta.is_symlink())
                {
                    return Err(Issue::new(
                        folder,
                        IssueKind::Symlink,
                        "a link stands here; it is not followed",
                    ));
                }
            }
            return Ok(());
        }
    }
    Ok(())
}

/// Changes a record under its lock. `change` gets what is there and returns what shall be there; `None` leaves it.
///
/// # Errors
/// A damaged record is never overwritten.
pub fn update<E: From<SidecarError>>(
    path: &Path,
    clock: &dyn Clock,
    change: impl FnOnce(Option<&Object>) -> Result<Option<Object>, E>,
) -> Result<Option<Object>, E> {
    refuse_links(path).map_err(SidecarError::from)?;
    if let Some(folder) = path.parent() {
        files::make_private_folder(folder).map_err(SidecarError::from)?;
    }
    let lock = Lock::take(path, clock)?;
    let found = read(path).map_err(SidecarError::from)?;
    let Some(object) = change(found.as_ref().map(|document| &document.object))? else {
        return Ok(None);
    };
    let document = Document {
        object,
        crlf: found.is_some_and(|document| document.crlf),
        written: 0,
    };
    write(path, &document.bytes(), clock).map_err(SidecarError::from)?;
    drop(lock);
    Ok(Some(document.object))
}

/// Writes the file as the plugin does: left-over temporary files of it removed, temporary file, flush, rename.
fn write(path: &Path, bytes: &[u8], clock: &dyn Clock) -> Result<(), FileError> {
    let fail = |source: io::Error| FileError::new("cannot write", path, source);
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let prefix = format!("{name}.tmp-");
    for entry in folder.read_dir().map_err(fail)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix)
            && let Err(error) = std::fs::remove_file(entry.path())
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(FileError::new("cannot remove", &entry.path(), error));
        }
    }
    let mut temporary = tempfile::Builder::new()
        .prefix(&format!(
            "{prefix}{}-{}-",
            std::process::id(),
            clock.now().millis()
        ))
        .tempfile_in(folder)
        .map_err(fail)?;
    fault::write_all("sidecar-write", &mut temporary, bytes).map_err(fail)?;
    temporary.as_file().sync_all().map_err(fail)?;
    fault::around("sidecar-replace", || {
        temporary.persist(path).map_err(|error| error.error)
    })
    .map_err(fail)?;
    files::sync_folder(folder)
}

/// The lock of one record, the plugin's: a file beside it. Released when dropped.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    token: String,
}

impl Lock {
    fn take(record: &Path, clock: &dyn Clock) -> Result<Self, SidecarError> {
        let mut name = record.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let folder = record.parent().unwrap_or_else(|| Path::new("."));
        let fail = |source: io::Error| FileError::new("cannot lock", &path, source);
        // The content is complete before the name exists, so a crash leaves no empty lock, which nobody could remove.
        let mut temporary = tempfile::Builder::new()
            .prefix(".takeup-lock-")
            .tempfile_in(folder)
            .map_err(fail)?;
        let now = clock.now();
        let token = format!(
            "{}-{}-{}",
            std::process::id(),
            now.millis(),
            unique(temporary.path())
        );
        let content = Json::Object(
            Object::default()
                .with("schemaVersion", 1)
                .with("pid", u64::from(std::process::id()))
                .with("ownerToken", token.as_str())
                .with("createdAt", now.to_string()),
        )
        .compact();
        temporary.write_all(content.as_bytes()).map_err(fail)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match place(temporary.path(), &path, content.as_bytes()) {
                Ok(()) => return Ok(Self { path, token }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(fail(error).into()),
            }
            if remove_stale(&path, clock.now()) {
                continue;
            }
            if Instant::now() >= deadline {
                return Err(SidecarError::Locked {
                    holder: holder(&path),
                    path,
                });
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if token_of(&self.path).as_deref() == Some(self.token.as_str()) {
            // Nobody can be told; a lock that stays is removed by age.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// The random part of the temporary file's name.
fn unique(path: &Path) -> String {
    path.file_name()
        .map(|name| {
            name.to_string_lossy()
                .trim_start_matches(".takeup-lock-")
                .to_owned()
        })
        .unwrap_or_default()
}

/// Puts the lock in place, or fails because there is one. File systems without hard links get it in one write.
fn place(temporary: &Path, lock: &Path, content: &[u8]) -> io::Result<()> {
    match std::fs::hard_link(temporary, lock) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied
                    | io::ErrorKind::Unsupported
                    | io::ErrorKind::CrossesDevices
            ) =>
        {
            File::create_new(lock)?.write_all(content)
        }
        result => result,
    }
}

fn lock_content(path: &Path) -> Option<Object> {
    let bytes = files::read_bounded(path, 4096).ok()??;
    match Json::parse(&bytes) {
        Ok(Json::Object(object)) => Some(object),
        Ok(_) | Err(_) => None,
    }
}

fn token_of(path: &Path) -> Option<String> {
    lock_content(path)?.text("ownerToken").map(str::to_owned)
}

fn holder(path: &Path) -> String {
    match lock_content(path).and_then(|object| object.get("pid").and_then(Json::number)) {
        Some(pid) => format!("process {pid}"),
        None => "a lock that names no process; remove it by hand if nothing uses it".to_owned(),
    }
}

/// Removes a lock that is old and whose holder is gone. One that cannot be read, or names a live process, stays.
fn remove_stale(path: &Path, now: Time) -> bool {
    let Ok(meta) = path.symlink_metadata() else {
        // Released in between.
        return true;
    };
    let age = now.millis() - (meta.mtime() * 1_000 + meta.mtime_nsec() / 1_000_000);
    if age <= STALE_AFTER {
        return false;
    }
    let Some(content) = lock_content(path) else {
        return false;
    };
    if content
        .get("pid")
        .and_then(Json::number)
        .is_some_and(may_live)
    {
        return false;
    }
    // Only the very lock that was judged is removed: it is moved aside under a name of its own first.
    let token = content.text("ownerToken").map(str::to_owned);
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!("-stale-{}-{}", std::process::id(), now.millis()));
    let aside = PathBuf::from(aside);
    if std::fs::hard_link(path, &aside).is_err() {
        return false;
    }
    let same = token_of(&aside) == token
        && path
            .symlink_metadata()
            .is_ok_and(|other| other.ino() == meta.ino() && other.dev() == meta.dev());
    let removed = same && std::fs::remove_file(path).is_ok();
    drop(std::fs::remove_file(&aside));
    removed
}

/// Tells whether a process number may belong to a live process of which the plugin would not say "gone".
#[expect(clippy::cast_possible_truncation, reason = "checked just before")]
fn may_live(pid: f64) -> bool {
    if pid.fract() != 0.0 || pid < 1.0 || pid > f64::from(i32::MAX) {
        return true;
    }
    let Some(pid) = rustix::process::Pid::from_raw(pid as i32) else {
        return true;
    };
    // A process of somebody else counts as gone, as it does for the plugin.
    rustix::process::test_kill_process(pid).is_ok()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test's own files")]
mod tests {
    use super::*;
    use takeup_core::time::{FixedClock, SystemClock};

    fn bump(path: &Path) -> Result<Option<Object>, SidecarError> {
        update(path, &SystemClock, |found| {
            let mut object = found.cloned().unwrap_or_default();
            let revision = object.revision().unwrap_or(0);
            object.set("revision", revision + 1);
            Ok(Some(object))
        })
    }

    fn record(folder: &Path) -> PathBuf {
        folder.join(".agent-context/sidecar/task-identity-a-b.json")
    }

    #[test]
    fn nothing_but_the_record_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = record(folder.path());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = "{\n  \"z\": \"\\ud800\",\n  \"revision\": 7,\n  \"unknown\": {\n    \"b\": 1,\n    \"a\": []\n  }\n}\n";
        std::fs::write(&path, text).unwrap();
        std::fs::write(path.with_file_name("task-identity-a-b.json.tmp-1-2-3"), "x").unwrap();
        bump(&path).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            text.replace('7', "8")
        );
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 1);
        std::fs::write(&path, text.replace('\n', "\r\n")).unwrap();
        bump(&path).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            text.replace('7', "8").replace('\n', "\r\n")
        );
    }

    #[test]
    fn a_damaged_record_is_reported_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = record(folder.path());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for (bytes, kind) in [
            (&b"{broken"[..], IssueKind::Corrupt),
            (b"", IssueKind::Torn),
            (b"\0\0\0", IssueKind::Zeroed),
            (b"[]", IssueKind::Corrupt),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let Err(SidecarError::Damaged(issue)) = bump(&path) else {
                panic!("must be damaged");
            };
            assert_eq!((issue.path.as_path(), issue.kind), (path.as_path(), kind));
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }

    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::fs::create_dir_all(&elsewhere).unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join(".agent-context")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, root.join(".agent-context/sidecar")).unwrap();
        assert!(
            matches!(bump(&record(&root)), Err(SidecarError::Damaged(issue)) if issue.kind == IssueKind::Symlink)
        );
        assert_eq!(elsewhere.read_dir().unwrap().count(), 0);
    }

    #[test]
    fn writers_do_not_lose_a_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = record(folder.path());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        bump(&path).unwrap();
                    }
                });
            }
        });
        assert_eq!(read(&path).unwrap().unwrap().object.revision(), Some(80));
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn only_an_old_lock_of_a_dead_holder_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("x.json.lock");
        let dead = {
            let mut child = std::process::Command::new("true").spawn().unwrap();
            child.wait().unwrap();
            child.id()
        };
        let now = SystemClock.now();
        let later = Time::from_millis(now.millis() + STALE_AFTER + 60_000);
        for (content, when, removed) in [
            (format!("{{\"pid\":{dead}}}"), later, true),
            (format!("{{\"pid\":{dead}}}"), now, false),
            ("{}".to_owned(), later, true),
            ("{\"pid\":\"x\"}".to_owned(), later, true),
            (format!("{{\"pid\":{}}}", std::process::id()), later, false),
            (String::new(), later, false),
            ("{broken".to_owned(), later, false),
            ("{\"pid\":-1}".to_owned(), later, false),
            ("{\"pid\":0}".to_owned(), later, false),
        ] {
            std::fs::write(&lock, &content).unwrap();
            assert_eq!(
                remove_stale(&lock, FixedClock(when).now()),
                removed,
                "{content}"
            );
            assert_eq!(lock.exists(), !removed, "{content}");
        }
    }
}
