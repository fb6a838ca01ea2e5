//! Handing work over to OpenCode: a session with the document as its first message, brought in by OpenCode's own `import`.
//!
//! The session's shape is the smallest that `import` of 1.18.33 takes and `run --session` continues.
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use jsonc_parser::ParseOptions;
use serde_json::{Value, json};
use takeup_core::agent::{AgentError, Parcel, Received};
use takeup_core::env::Env;
use takeup_core::files::read_bounded;
use takeup_core::ids::{SessionId, SessionRef};
use takeup_core::repository::{Place, find_program};
use takeup_core::text;
use takeup_core::time::Time;

use crate::store::{self, Homes};

/// How long `import` may take. It needs some seconds, more when OpenCode starts for the first time.
const PATIENCE: Duration = Duration::from_mins(2);

/// Brings a hand-over in, and returns the command that continues it.
pub(crate) fn receive(env: &Env, place: &Place, parcel: &Parcel) -> Result<Received, AgentError> {
    let program = find_program(env, "opencode").ok_or_else(|| AgentError::NotInstalled {
        agent: crate::NAME,
        why: "there is no program opencode on PATH".to_owned(),
    })?;
    let model = model(env, place).ok_or_else(|| {
        AgentError::Other(
            "OpenCode needs to know which model goes on: start it once, or set \"model\" in opencode.json".to_owned(),
        )
    })?;
    let fail =
        |error: std::io::Error| AgentError::Other(format!("cannot hand over to OpenCode: {error}"));
    let random = || RandomState::new().build_hasher().finish();
    let ids = Ids::new(parcel.at, [random(), random(), random()]);
    let document = session(&ids, place, parcel, &model);
    let folder = tempfile::Builder::new()
        .prefix("takeup-")
        .tempdir()
        .map_err(fail)?;
    let path = folder.path().join("hand-over.json");
    let mut file = std::fs::File::create_new(&path).map_err(fail)?;
    file.write_all(document.to_string().as_bytes())
        .map_err(fail)?;
    let output = tempfile::tempfile().map_err(fail)?;
    let mut child = Command::new(&program)
        .arg("import")
        .arg(&path)
        .current_dir(&place.root)
        .env_clear()
        .envs(env.vars())
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(fail)?)
        .stderr(output.try_clone().map_err(fail)?)
        .spawn()
        .map_err(fail)?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(fail)? {
            break status;
        }
        if Instant::now() >= deadline {
            child.kill().map_err(fail)?;
            child.wait().map_err(fail)?;
            return Err(AgentError::Other(
                "`opencode import` does not end".to_owned(),
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let said = said(output);
    let session = SessionId::new(ids.session.as_str())
        .map_err(|error| AgentError::Other(error.to_string()))?;
    // It ends with 0 also where it took nothing, or refuses a message: it has to say that it took this very session, or the
    // session be there.
    let is_taken = || {
        let is_said = said.contains(&format!("Imported session: {session}"));
        is_said || store::holds(env, &session)
    };
    if !status.success() || said.contains("Missing key") || said.contains("Error") || !is_taken() {
        let said = match text::one_line(&said, 300) {
            said if said.is_empty() => "it said nothing".to_owned(),
            said => said,
        };
        return Err(AgentError::Other(format!(
            "`opencode import` did not take the session: {said}"
        )));
    }
    let command = ["opencode", "--session", session.as_str()]
        .into_iter()
        .map(OsString::from)
        .collect();
    Ok(Received {
        session: Some(SessionRef::new(crate::agent_id(), session)),
        command,
        file: None,
    })
}

fn said(mut output: std::fs::File) -> String {
    use std::io::{Read as _, Seek as _};
    let mut bytes = Vec::new();
    let read = output
        .rewind()
        .and_then(|()| output.take(64 * 1024).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => error.to_string(),
    }
}

/// A model as OpenCode names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Model {
    provider: String,
    name: String,
}

/// Returns the model that goes on: the one used last, else the one that the settings name. A session without one is refused
/// by OpenCode, and one with a model it does not have cannot be continued.
fn model(env: &Env, place: &Place) -> Option<Model> {
    if let Some((provider, name)) = store::last_model(env) {
        return Some(Model { provider, name });
    }
    let homes = Homes::of(env)?;
    [
        place.root.join("opencode.jsonc"),
        place.root.join("opencode.json"),
        homes.config.join("opencode.jsonc"),
        homes.config.join("opencode.json"),
    ]
    .iter()
    .find_map(|path| {
        let bytes = read_bounded(path, 1 << 20).ok()??;
        let settings: Value = jsonc_parser::parse_to_serde_value(
            std::str::from_utf8(&bytes).ok()?,
            &ParseOptions::default(),
        )
        .ok()?;
        let (provider, name) = settings.get("model")?.as_str()?.split_once('/')?;
        Some(Model {
            provider: provider.to_owned(),
            name: name.to_owned(),
        })
    })
}

struct Ids {
    session: String,
    message: String,
    part: String,
}

impl Ids {
    /// Makes ids as OpenCode does: a prefix, 48 bits of time and counter (inverted for sessions, so that newer ones sort
    /// first), 14 characters of chance.
    fn new(at: Time, random: [u64; 3]) -> Self {
        let stamp = |counter: u64| (at.millis().unsigned_abs() % (1 << 36)) * 4096 + counter;
        let [session, message, part] = random;
        Self {
            session: format!(
                "ses_{:012x}{}",
                !stamp(1) & ((1 << 48) - 1),
                chance(session)
            ),
            message: format!("msg_{:012x}{}", stamp(2), chance(message)),
            part: format!("prt_{:012x}{}", stamp(3), chance(part)),
        }
    }
}

fn chance(seed: u64) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut rest = u128::from(seed) << 40 | u128::from(std::process::id()) << 8;
    (0..14)
        .map(|_| {
            let digit = usize::try_from(rest % 62).unwrap_or(0);
            rest /= 62;
            DIGITS.get(digit).copied().map_or('0', char::from)
        })
        .collect()
}

fn session(ids: &Ids, place: &Place, parcel: &Parcel, model: &Model) -> Value {
    let at = parcel.at.millis();
    json!({
        "info": {
            "id": ids.session,
            "slug": format!("takeup-{}", parcel.task_id),
            "version": "1.18.33",
            "projectID": "global",
            "directory": place.root,
            "title": text::one_line(&format!("Hand-over: {}", parcel.title), 120),
            "time": { "created": at, "updated": at },
        },
        "messages": [{
            "info": {
                "id": ids.message,
                "sessionID": ids.session,
                "role": "user",
                "time": { "created": at },
                "agent": "build",
                "model": { "providerID": model.provider, "modelID": model.name },
            },
            "parts": [{
                "id": ids.part,
                "messageID": ids.message,
                "sessionID": ids.session,
                "type": "text",
                "text": parcel.document,
                "synthetic": true,
            }],
        }],
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test's own files")]
mod tests {
    use super::*;
    use crate::testing::Repo;
    use takeup_core::ids::TaskId;

    fn parcel() -> Parcel {
        Parcel {
            task_id: TaskId::new("fix-login").unwrap(),
            title: "Fix login".to_owned(),
            document: "- \"quotes\" $HOME `id` – ü\n-- leading dash\n".to_owned(),
            at: Time::from_millis(1_795_954_944_551),
        }
    }

    #[test]
    fn ids_are_of_opencodes_form() {
        let ids = Ids::new(parcel().at, [1, u64::MAX, 0]);
        for (id, prefix) in [
            (&ids.session, "ses_"),
            (&ids.message, "msg_"),
            (&ids.part, "prt_"),
        ] {
            let rest = id.strip_prefix(prefix).unwrap();
            assert_eq!(rest.len(), 26);
            assert!(rest.bytes().all(|b| b.is_ascii_alphanumeric()));
        }
        // The vector of a real session and message: the time comes back.
        let of = |id: &str| u64::from_str_radix(id.get(4..16).unwrap(), 16).unwrap();
        let real = !of("ses_dd8be55d8ffezncvi8dZe9YR6G") & ((1 << 48) - 1);
        assert_eq!(real >> 12, 1_795_954_944_551 % (1 << 36));
        assert_eq!((!of(&ids.session) & ((1 << 48) - 1)) >> 12, real >> 12);
        assert!(of(&ids.message) < of("msg_22741ab23001Cf4XrSaFvQm1UR"));
    }

    #[test]
    fn the_document_arrives_byte_for_byte_as_one_file() {
        let repo = Repo::new();
        let bin = repo.folder.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let copy = repo.folder.path().join("copy.json");
        let arguments = repo.folder.path().join("arguments");
        std::fs::write(
            bin.join("opencode"),
            format!(
                "#!/bin/sh\npwd > '{}'\nprintf '%s\\n' \"$@\" >> '{}'\ncp \"$2\" '{}'\n\
                 id=$(grep -o 'ses_[0-9A-Za-z]*' \"$2\" | head -n 1)\necho \"Imported session: $id\"\n",
                arguments.display(),
                arguments.display(),
                copy.display()
            ),
        )
        .unwrap();
        repo.sh_in(&bin, "chmod +x opencode");
        let with_path = |path: String| {
            let vars: Vec<_> = repo
                .env
                .vars()
                .filter(|(name, _)| *name != "PATH")
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .chain([("PATH".into(), path.into())])
                .collect();
            Env::of(vars, &repo.place.root)
        };
        let env = with_path(format!(
            "{}:{}",
            bin.display(),
            repo.env.text("PATH").unwrap()
        ));
        // Without a model it is refused and nothing is started.
        assert!(receive(&env, &repo.place, &parcel()).is_err());
        assert!(!arguments.exists());
        repo.sh("echo '{ // mine\n \"model\": \"fake/fake/1\" }' > opencode.json");
        let received = receive(&env, &repo.place, &parcel()).unwrap();
        let id = received.session.unwrap().id;
        assert_eq!(received.command, ["opencode", "--session", id.as_str()]);
        let said = std::fs::read_to_string(arguments).unwrap();
        assert!(said.starts_with(&format!("{}\nimport\n", repo.place.root.display())));
        assert_eq!(said.lines().count(), 3);
        let document: Value = serde_json::from_slice(&std::fs::read(copy).unwrap()).unwrap();
        assert_eq!(document["info"]["id"], id.as_str());
        assert_eq!(
            document["messages"][0]["parts"][0]["text"],
            parcel().document
        );
        assert_eq!(
            document["messages"][0]["info"]["model"]["modelID"],
            "fake/1"
        );
        // Not installed: a clear error.
        let none = with_path(repo.folder.path().join("none").display().to_string());
        assert!(matches!(
            receive(&none, &repo.place, &parcel()),
            Err(AgentError::NotInstalled { .. })
        ));
    }
}
