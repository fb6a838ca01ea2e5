//! The process table of Linux: `/proc` and process file descriptors.
//!
//! Sources: `proc(5)`, `pidfd_open(2)`, `pid_namespaces(7)`, `time_namespaces(7)`.
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{ProcessDetails, ProcessError, ProcessIdentity, ProcessState, Processes, Signalled};
use crate::time::Time;

/// The table of this machine.
#[derive(Clone, Debug)]
pub struct LinuxProcesses {
    root: PathBuf,
    /// Read once: neither the boot nor our own namespace changes while we run.
    frame: OnceLock<Frame>,
    /// How much later than the machine's own clock our time namespace has every start, in ticks. Read once.
    shift: OnceLock<i64>,
}

impl Default for LinuxProcesses {
    fn default() -> Self {
        Self::new()
    }
}

/// What one line of `/proc/PID/stat` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The short name (`comm`), at most 15 bytes, as the process chose it.
    pub name: String,
    /// The state letter.
    pub state: char,
    /// The parent's number; 0 where it is outside the namespace.
    pub parent: u32,
    /// User and system time in clock ticks, without the children's.
    pub cpu_ticks: u64,
    /// Start in clock ticks since boot.
    pub start_ticks: u64,
}

impl Stat {
    /// Reads the line. The name stands in brackets and may hold brackets, blanks and newlines itself, so that fields are
    /// counted after the *last* closing one.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let open = text.iter().position(|&b| b == b'(')?;
        let close = text.iter().rposition(|&b| b == b')')?;
        let name = String::from_utf8_lossy(text.get(open.checked_add(1)?..close)?).into_owned();
        let rest = std::str::from_utf8(text.get(close.checked_add(1)?..)?).ok()?;
        // The first field after the name is field 3.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number.checked_sub(3)?).copied();
        let user: u64 = field(14)?.parse().ok()?;
        let system: u64 = field(15)?.parse().ok()?;
        Some(Self {
            name,
            state: field(3)?.chars().next()?,
            parent: field(4)?.parse().ok()?,
            cpu_ticks: user.saturating_add(system),
            start_ticks: field(22)?.parse().ok()?,
        })
    }

    /// Tells whether the process has ended and only waits to be reaped.
    pub const fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

fn ticks_per_second() -> i64 {
    i64::try_from(rustix::param::clock_ticks_per_second())
        .unwrap_or(100)
        .max(1)
}

/// Reads the offset of `boottime` (seconds and nanoseconds) in ticks.
fn shift_of(offsets: &str) -> i64 {
    let ticks = offsets.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        if fields.next()? != "boottime" {
            return None;
        }
        let seconds: i64 = fields.next()?.parse().ok()?;
        let nanos: i64 = fields.next()?.parse().ok()?;
        let whole = seconds.saturating_mul(ticks_per_second());
        Some(whole.saturating_add(nanos.saturating_mul(ticks_per_second()) / 1_000_000_000))
    });
    ticks.unwrap_or(0)
}

/// What all identities share.
#[derive(Clone, Debug)]
struct Frame {
    boot_id: String,
    namespace: u64,
    booted_at: Option<Time>,
}

impl Frame {
    fn identity(&self, pid: u32, stat: &Stat) -> ProcessIdentity {
        let ticks = ticks_per_second().unsigned_abs();
        let after = stat.start_ticks.saturating_mul(1000) / ticks;
        let started_at = self.booted_at.map(|boot| {
            let after = i64::try_from(after).unwrap_or(0);
            Time::from_millis(boot.millis().saturating_add(after))
        });
        ProcessIdentity {
            boot_id: self.boot_id.clone(),
            pid,
            start_ticks: stat.start_ticks,
            pid_namespace: Some(self.namespace),
            started_at,
            name: Some(readable(&stat.name)),
        }
    }
}

/// What is under a number.
enum Look {
    Found(Stat),
    Nothing,
    /// A process is there, and its entry is not shown (the `hidepid` mount option).
    Hidden,
}

impl LinuxProcesses {
    /// Returns the table at `/proc`.
    pub fn new() -> Self {
        Self {
            root: PathBuf::from("/proc"),
            frame: OnceLock::new(),
            shift: OnceLock::new(),
        }
    }

    fn table_error(path: PathBuf, source: io::Error) -> ProcessError {
        ProcessError::Table { path, source }
    }

    /// Returns the id of this boot.
    pub fn boot_id(&self) -> Result<String, ProcessError> {
        let path = self.root.join("sys/kernel/random/boot_id");
        let bytes =
            std::fs::read(&path).map_err(|source| Self::table_error(path.clone(), source))?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        if text.len() != 36 || !text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
            let source = io::Error::new(io::ErrorKind::InvalidData, "it holds no boot id");
            return Err(Self::table_error(path, source));
        }
        Ok(text)
    }

    /// Returns the inode of the pid namespace whose numbers the table shows. Fails where the table is another namespace's:
    /// its numbers would be taken for ours.
    pub fn namespace(&self) -> Result<u64, ProcessError> {
        let own = self.root.join("self");
        let shown =
            std::fs::read_link(&own).map_err(|source| Self::table_error(own.clone(), source))?;
        if shown.to_str().and_then(|text| text.parse().ok()) != Some(std::process::id()) {
            let source = io::Error::other("it shows the processes of another pid namespace");
            return Err(Self::table_error(own, source));
        }
        let path = self.root.join("self/ns/pid");
        let link =
            std::fs::read_link(&path).map_err(|source| Self::table_error(path.clone(), source))?;
        link.to_str()
            .and_then(|text| text.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok())
            .ok_or_else(|| {
                let source = io::Error::new(io::ErrorKind::InvalidData, "it names no namespace");
                Self::table_error(path, source)
            })
    }

    /// Returns when the machine was started, for people.
    fn boot_time(&self) -> Option<Time> {
        let text = std::fs::read_to_string(self.root.join("stat")).ok()?;
        let seconds: i64 = text
            .lines()
            .find_map(|line| line.strip_prefix("btime "))?
            .trim()
            .parse()
            .ok()?;
        // What is added to the starts is taken from the boot.
        let shift = self.shift().saturating_mul(1000) / ticks_per_second();
        Some(Time::from_millis(
            seconds.saturating_mul(1000).saturating_add(shift),
        ))
    }

    /// Returns what our time namespace adds to every start that the table shows (`time_namespaces(7)`), in ticks.
    fn shift(&self) -> i64 {
        *self.shift.get_or_init(|| {
            let offsets = std::fs::read_to_string(self.root.join("self/timens_offsets"));
            shift_of(&offsets.unwrap_or_default())
        })
    }

    /// Reads a line of the table, the start as the machine's own clock has it, so that those of other time namespaces mean the
    /// same by it.
    fn parse(&self, text: &[u8]) -> Option<Stat> {
        let mut stat = Stat::parse(text)?;
        stat.start_ticks = stat.start_ticks.saturating_add_signed(-self.shift());
        Some(stat)
    }

    /// Reads the entry of a number.
    pub fn stat(&self, pid: u32) -> Result<Option<Stat>, ProcessError> {
        match self.look(pid)? {
            Look::Found(stat) => Ok(Some(stat)),
            Look::Nothing => Ok(None),
            Look::Hidden => Err(Self::table_error(
                self.root.join(pid.to_string()),
                io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "the process is there, and its entry is hidden",
                ),
            )),
        }
    }

    fn look(&self, pid: u32) -> Result<Look, ProcessError> {
        let path = self.root.join(pid.to_string()).join("stat");
        for last in [false, true] {
            match read_entry(&path) {
                Ok(bytes) => {
                    let stat = self.parse(&bytes).ok_or_else(|| {
                        let source = io::Error::new(io::ErrorKind::InvalidData, "not its format");
                        Self::table_error(path.clone(), source)
                    })?;
                    return Ok(Look::Found(stat));
                }
                Err(error) if is_missing(&error) => {
                    // Not shown is not the same as not there.
                    match as_pid(pid).map(rustix::process::test_kill_process) {
                        None | Some(Err(Errno::SRCH)) => return Ok(Look::Nothing),
                        Some(_) if last => return Ok(Look::Hidden),
                        // It may have appeared in between: look once more.
                        Some(_) => {}
                    }
                }
                Err(source) => return Err(Self::table_error(path, source)),
            }
        }
        Ok(Look::Nothing)
    }

    /// Tells why the number means nothing here, if so.
    fn where_from(&self, process: &ProcessIdentity) -> Option<ProcessState> {
        match self.boot_id() {
            Ok(boot) if boot != process.boot_id => return Some(ProcessState::OtherBoot),
            Ok(_) => {}
            Err(error) => return Some(ProcessState::Unknown(error.to_string())),
        }
        let recorded = process.pid_namespace?;
        match self.namespace() {
            Ok(own) if own != recorded => Some(ProcessState::OtherNamespace),
            Ok(_) => None,
            Err(error) => Some(ProcessState::Unknown(error.to_string())),
        }
    }

    /// Returns what all identities share.
    fn frame(&self) -> Result<&Frame, ProcessError> {
        if let Some(frame) = self.frame.get() {
            return Ok(frame);
        }
        let frame = Frame {
            boot_id: self.boot_id()?,
            namespace: self.namespace()?,
            booted_at: self.boot_time(),
        };
        Ok(self.frame.get_or_init(|| frame))
    }

    /// Returns every number of the table with its entry. Entries that vanish meanwhile are left out.
    fn all(&self) -> Result<BTreeMap<u32, Stat>, ProcessError> {
        let entries = std::fs::read_dir(&self.root)
            .map_err(|source| Self::table_error(self.root.clone(), source))?;
        let mut all = BTreeMap::new();
        for entry in entries {
            let entry = entry.map_err(|source| Self::table_error(self.root.clone(), source))?;
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            let path = entry.path().join("stat");
            match read_entry(&path) {
                Ok(bytes) => {
                    if let Some(stat) = self.parse(&bytes) {
                        all.insert(pid, stat);
                    }
                }
                Err(error) if is_missing(&error) || is_denied(&error) => {}
                Err(source) => return Err(Self::table_error(path, source)),
            }
        }
        Ok(all)
    }
}

/// Reads a short file of the table. Its size is not known before, so room for all of it is made at once: a look at every
/// process is mostly made of these reads.
fn read_entry(path: &std::path::Path) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::with_capacity(2048);
    std::fs::File::open(path)?
        .take(1 << 20)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn as_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// A process that ends while its entry is read gives `ESRCH`, not a missing file.
fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// A process chooses its name itself: control characters go.
fn readable(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

impl Processes for LinuxProcesses {
    fn identify(&self, pid: u32) -> Result<Option<ProcessIdentity>, ProcessError> {
        let frame = self.frame()?;
        Ok(self
            .stat(pid)?
            .filter(|stat| !stat.is_zombie())
            .map(|stat| frame.identity(pid, &stat)))
    }

    fn identify_with_parent(
        &self,
        pid: u32,
    ) -> Result<Option<(ProcessIdentity, Option<u32>)>, ProcessError> {
        let frame = self.frame()?;
        Ok(self
            .stat(pid)?
            .filter(|stat| !stat.is_zombie())
            .map(|stat| {
                let parent = Some(stat.parent).filter(|&parent| parent != 0);
                (frame.identity(pid, &stat), parent)
            }))
    }

    fn state(&self, process: &ProcessIdentity) -> ProcessState {
        if let Some(elsewhere) = self.where_from(process) {
            return elsewhere;
        }
        match self.look(process.pid) {
            Ok(Look::Found(stat)) if stat.start_ticks != process.start_ticks => {
                ProcessState::Recycled {
                    by: Some(readable(&stat.name)),
                }
            }
            Ok(Look::Found(stat)) if stat.is_zombie() => ProcessState::Zombie,
            Ok(Look::Found(_)) => ProcessState::Running,
            Ok(Look::Nothing) => ProcessState::Gone,
            Ok(Look::Hidden) => ProcessState::Unknown(
                "a process with this number is there, and its entry is hidden".to_owned(),
            ),
            Err(error) => ProcessState::Unknown(error.to_string()),
        }
    }

    fn parent(&self, pid: u32) -> Result<Option<u32>, ProcessError> {
        Ok(self
            .stat(pid)?
            .map(|stat| stat.parent)
            .filter(|&parent| parent != 0))
    }

    fn descendants(&self, pid: u32) -> Result<Vec<ProcessIdentity>, ProcessError> {
        let frame = self.frame()?;
        let all = self.all()?;
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (&child, stat) in &all {
            children.entry(stat.parent).or_default().push(child);
        }
        let mut found = Vec::new();
        let mut queue = std::collections::VecDeque::from([pid]);
        while let Some(parent) = queue.pop_front() {
            // Taking the list out makes sure that no loop of links is walked twice.
            for child in children.remove(&parent).unwrap_or_default() {
                queue.push_back(child);
                if let Some(stat) = all.get(&child).filter(|stat| !stat.is_zombie()) {
                    found.push(frame.identity(child, stat));
                }
            }
        }
        Ok(found)
    }

    fn everyone(&self) -> Result<Vec<ProcessIdentity>, ProcessError> {
        let frame = self.frame()?;
        Ok(self
            .all()?
            .into_iter()
            .filter(|(_, stat)| !stat.is_zombie())
            .map(|(pid, stat)| frame.identity(pid, &stat))
            .collect())
    }

    fn variable(&self, pid: u32, name: &str) -> Option<OsString> {
        let bytes = std::fs::read(self.root.join(pid.to_string()).join("environ")).ok()?;
        bytes
            .split(|&byte| byte == 0)
            .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
            .map(|value| OsString::from_vec(value.to_vec()))
    }

    fn start_ticks(&self, pid: u32) -> Option<u64> {
        Some(self.stat(pid).ok()??.start_ticks)
    }

    fn details(&self, pid: u32) -> Option<ProcessDetails> {
        let folder = self.root.join(pid.to_string());
        let user = std::fs::metadata(&folder).ok()?.uid();
        let bytes = std::fs::read(folder.join("cmdline")).ok()?;
        let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
        Some(ProcessDetails {
            user,
            command: bytes
                .split(|&byte| byte == 0)
                .map(|word| OsString::from_vec(word.to_vec()))
                .collect(),
            cwd: std::fs::read_link(folder.join("cwd")).ok(),
        })
    }

    fn cpu_ticks(&self, pid: u32) -> Option<u64> {
        Some(self.stat(pid).ok()??.cpu_ticks)
    }

    fn program(&self, pid: u32) -> Result<Option<String>, ProcessError> {
        let path = self.root.join(pid.to_string()).join("exe");
        if let Ok(exe) = std::fs::read_link(path)
            && let Some(name) = exe.file_name().and_then(|name| name.to_str())
        {
            // A program that was replaced while it runs.
            let name = name.strip_suffix(" (deleted)").unwrap_or(name);
            return Ok(Some(readable(name)));
        }
        Ok(self.stat(pid)?.map(|stat| readable(&stat.name)))
    }

    fn signal(&self, process: &ProcessIdentity, signal: Signal) -> Result<Signalled, ProcessError> {
        match self.watch(process)? {
            Err(over) => Ok(Signalled::NotThere(over)),
            Ok(handle) => match pidfd_send_signal(&handle, signal) {
                Ok(()) => Ok(Signalled::Sent),
                Err(Errno::SRCH) => Ok(Signalled::NotThere(ProcessState::Gone)),
                Err(error) => Err(ProcessError::Call {
                    what: "signal",
                    pid: process.pid,
                    source: error.into(),
                }),
            },
        }
    }

    fn watch(
        &self,
        process: &ProcessIdentity,
    ) -> Result<Result<OwnedFd, ProcessState>, ProcessError> {
        match self.where_from(process) {
            None => {}
            Some(elsewhere) => return Ok(Err(elsewhere)),
        }
        let Some(pid) = as_pid(process.pid) else {
            return Ok(Err(ProcessState::Gone));
        };
        match pidfd_open(pid, PidfdFlags::empty()) {
            // The handle was taken first: if the start time is still ours now, it is of our process.
            Ok(handle) => {
                let state = self.state(process);
                Ok(if state == ProcessState::Running {
                    Ok(handle)
                } else {
                    Err(state)
                })
            }
            Err(Errno::SRCH) => Ok(Err(ProcessState::Gone)),
            // The number belongs to a thread, so not to a process any more.
            Err(Errno::INVAL | Errno::NOENT) => Ok(Err(ProcessState::Recycled { by: None })),
            Err(error) => Err(ProcessError::Call {
                what: "watch",
                pid: process.pid,
                source: error.into(),
            }),
        }
    }

    fn wait_end(&self, process: &ProcessIdentity, most: Duration) -> Result<bool, ProcessError> {
        let handle = match self.watch(process)? {
            Ok(handle) => handle,
            Err(over) if over.is_over() => return Ok(true),
            Err(over) => {
                return Err(ProcessError::Call {
                    what: "watch",
                    pid: process.pid,
                    source: io::Error::other(over.describe()),
                });
            }
        };
        let deadline = std::time::Instant::now().checked_add(most);
        loop {
            let left = deadline.map_or(Duration::from_hours(1), |deadline| {
                deadline.saturating_duration_since(std::time::Instant::now())
            });
            let timeout = Timespec::try_from(left).ok();
            let mut watched = [PollFd::new(&handle, PollFlags::IN)];
            match poll(&mut watched, timeout.as_ref()) {
                Ok(0) if deadline.is_some() => return Ok(false),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => {
                    return Err(ProcessError::Call {
                        what: "watch",
                        pid: process.pid,
                        source: error.into(),
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
