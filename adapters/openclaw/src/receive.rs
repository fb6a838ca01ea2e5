//! Hand-over into OpenClaw: as a message to a new session where its gateway runs, else as a file with the command that
//! sends it. Its databases are never written.
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use takeup_core::agent::{AgentError, Parcel, Received};
use takeup_core::env::Env;
use takeup_core::files::{make_private_folder, write_atomic};
use takeup_core::ids::{AgentId, SessionId, SessionRef};
use takeup_core::paths::state_dir;
use takeup_core::process::Processes;
use takeup_core::repository::{Place, find_program};

use crate::home::Home;
use crate::store::entry::lenient;
use crate::store::shared::{self, Fate};
use crate::{ID, NAME};

/// How long the gateway is waited for: its command line alone takes seconds to start.
const PATIENCE: Duration = Duration::from_secs(45);
/// The longest answer that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Receives a hand-over.
pub(crate) fn receive(
    env: &Env,
    processes: &dyn Processes,
    place: &Place,
    parcel: &Parcel,
) -> Result<Received, AgentError> {
    let program = find_program(env, ID).ok_or_else(|| AgentError::NotInstalled {
        agent: NAME,
        why: format!("there is no program {ID} on PATH"),
    })?;
    let home = Home::of(env)
        .filter(|home| home.state.is_dir())
        .ok_or_else(|| AgentError::NotInstalled {
            agent: NAME,
            why: "it has no state folder".to_owned(),
        })?;
    let file = keep(env, parcel)?;
    let key = format!("agent:main:takeup-{}", parcel.task_id);
    let send = [
        OsString::from(ID),
        "agent".into(),
        "--session-key".into(),
        key.clone().into(),
        "--message-file".into(),
        file.clone().into_os_string(),
    ];
    let by_hand = Received {
        session: None,
        command: send.to_vec(),
        file: Some(file),
    };
    let gateway = shared::read(&home)
        .ok()
        .and_then(|shared| shared.gateway)
        .map(|owner| owner.fate(processes));
    let Some(Fate::Runs(_)) = gateway else {
        return Ok(by_hand);
    };
    match call(env, &program, &key, place, parcel) {
        Some(id) => Ok(Received {
            session: Some(SessionRef::new(
                AgentId::new(ID).map_err(|error| AgentError::Other(error.to_string()))?,
                id,
            )),
            command: vec![ID.into(), "tui".into(), "--session".into(), key.into()],
            file: by_hand.file,
        }),
        // Whether the message arrived is not known; the key is the same, so sending it by hand adds to the same session.
        None => Ok(by_hand),
    }
}

/// Keeps the document in a file of ours.
fn keep(env: &Env, parcel: &Parcel) -> Result<PathBuf, AgentError> {
    let folder = state_dir(env)
        .ok_or_else(|| AgentError::Other("the user has no folder for state".to_owned()))?
        .join("handovers");
    make_private_folder(&folder)?;
    let file = folder.join(format!("{ID}-{}.md", parcel.task_id));
    write_atomic(&file, parcel.document.as_bytes(), 0o600)?;
    Ok(file)
}

/// Asks the gateway for a session in the work tree with the document as its first message. The arguments are passed as
/// they are; no shell reads them.
fn call(env: &Env, program: &Path, key: &str, place: &Place, parcel: &Parcel) -> Option<SessionId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        #[serde(default, deserialize_with = "lenient")]
        session_id: Option<String>,
    }
    let parameters = json!({
        "key": key,
        "agentId": "main",
        "cwd": place.root.to_str()?,
        "label": parcel.title.chars().take(100).collect::<String>(),
        "message": parcel.document,
    });
    let child = Command::new(program)
        .args(["gateway", "call", "sessions.create", "--json", "--params"])
        .arg(parameters.to_string())
        .current_dir(&place.root)
        .env_clear()
        .envs(env.vars())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let printed = wait(child)?;
    let start = printed.iter().position(|byte| *byte == b'{')?;
    let answer: Answer = serde_json::from_slice(printed.get(start..)?).ok()?;
    SessionId::new(answer.session_id?).ok()
}

/// Waits for a program within bounds; `None` where it failed or had to be ended.
fn wait(mut child: Child) -> Option<Vec<u8>> {
    let stdout = child.stdout.take()?;
    let reader = spawn(move || {
        let mut printed = Vec::new();
        let read = stdout.take(LONGEST).read_to_end(&mut printed);
        read.map(|_| printed)
    });
    let end = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => sleep(Duration::from_millis(20)),
            Ok(None) | Err(_) => {
                // Where it has ended in between there is nothing to end.
                child.kill().and_then(|()| child.wait()).ok()?;
                return None;
            }
        }
    };
    let printed = reader.join().ok()?.ok()?;
    status.success().then_some(printed)
}
