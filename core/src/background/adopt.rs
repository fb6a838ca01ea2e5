//! Taking a process under watch that runs already.
use super::record::{Record, State, VERSION};
use super::start::{Answer, Host, Order, Started, launch, new_id, shown_name};
use super::store::{BackgroundError, Store};
use crate::ids::SessionRef;
use crate::paths;

/// Takes a process under watch: its end will be seen, its exit status will not, and its output goes where it goes.
pub fn adopt(
    store: &Store,
    pid: u32,
    name: Option<&str>,
    session: Option<SessionRef>,
    host: &Host<'_>,
) -> Result<Started, BackgroundError> {
    let now = host.clock.now();
    let process = host
        .processes
        .identify(pid)?
        .ok_or(BackgroundError::NoProcess(pid))?;
    let details = host
        .processes
        .details(pid)
        .ok_or(BackgroundError::NoProcess(pid))?;
    if details.user != rustix::process::geteuid().as_raw() {
        return Err(BackgroundError::ForeignProcess(pid));
    }
    let above = crate::process::ancestors(host.processes, std::process::id()).unwrap_or_default();
    if pid <= 1 || pid == std::process::id() || above.iter().any(|ancestor| ancestor.is(&process)) {
        return Err(BackgroundError::Above(pid));
    }
    store.make()?;
    let (id, made) = new_id(store, now)?;
    let words: Vec<String> = details
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let record = Record {
        version: VERSION,
        id,
        name: name.map_or(made, |name| shown_name(name, host.masker)),
        command: host.masker.command(&words).line(),
        cwd: details
            .cwd
            .as_deref()
            .map(paths::text_of_path)
            .unwrap_or_default(),
        session,
        task: None,
        repository: None,
        created_at: now,
        timeout_ms: None,
        memory_limit: None,
        memory_group: None,
        cpu_seconds: None,
        notify: false,
        output_cap: super::output::SMALLEST_CAP,
        adopted: true,
        check: None,
        supervisor: None,
        watched_again_at: None,
        state: State::Running {
            started_at: process.started_at.unwrap_or(now),
            process: process.clone(),
            command_end: None,
        },
        progress: None,
        quiet_since: None,
        output_lost: 0,
        evidence_missing: None,
    };
    let order = Order {
        folder: paths::text_of_path(store.folder()),
        record: record.clone(),
        command: Vec::new(),
        quiet_ms: 60_000,
    };
    match launch(&order, host.program, store.folder())? {
        Answer::Running { .. } => Ok(Started { record, process }),
        Answer::Taken | Answer::NotStarted { .. } => Err(BackgroundError::NoProcess(pid)),
        Answer::Failed { why } => Err(BackgroundError::Supervisor {
            what: format!("failed: {why}"),
        }),
    }
}
