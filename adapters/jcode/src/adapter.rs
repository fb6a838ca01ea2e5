//! jcode as the rest of the program sees it.
use std::ffi::OsString;
use std::path::Path;

use takeup_core::agent::{
    Agent, AgentError, AgentTask, Detection, Found, HookEvent, Parcel, Received, Rung, Session,
    SessionDetail, SessionQuery,
};
use takeup_core::env::Env;
use takeup_core::ids::{AgentId, SessionId, SessionRef};
use takeup_core::integration::{EditPlan, IntegrationState, Scope};
use takeup_core::process::Liveness;
use takeup_core::repository::{Place, find_program};
use takeup_core::time::{Clock, SystemClock};

use crate::home::{Home, Key};
use crate::integrate::without_edited;
use crate::load::{Loaded, load};
use crate::names::resolve;
use crate::processes::{Processes, SystemProcesses};
use crate::sessions::Source;
use crate::tasks::TaskState;

/// The name for people.
pub(crate) const NAME: &str = "jcode";

/// The version of jcode whose files this crate was tested against.
const VERSION: &str = "0.79.1";

/// jcode.
#[derive(Debug)]
pub struct Jcode {
    id: AgentId,
    processes: Box<dyn Processes>,
    clock: Box<dyn ClockOfAll>,
}

/// A clock that may be shared.
trait ClockOfAll: Clock + Send + Sync + std::fmt::Debug {}
impl<T: Clock + Send + Sync + std::fmt::Debug> ClockOfAll for T {}

impl Default for Jcode {
    fn default() -> Self {
        Self::new()
    }
}

impl Jcode {
    /// Makes the adapter with the clock and the process table of this machine.
    pub fn new() -> Self {
        Self::with(SystemProcesses, SystemClock)
    }

    /// Makes the adapter with a clock and a process table of the caller's.
    #[expect(clippy::expect_used, reason = "the literal is a slug")]
    pub fn with(
        processes: impl Processes + 'static,
        clock: impl Clock + Send + Sync + std::fmt::Debug + 'static,
    ) -> Self {
        Self {
            id: AgentId::new("jcode").expect("a slug"),
            processes: Box::new(processes),
            clock: Box::new(clock),
        }
    }

    fn home(env: &Env) -> Result<Home, AgentError> {
        Home::of(env).ok_or_else(|| AgentError::NotInstalled {
            agent: NAME,
            why: "neither JCODE_HOME nor HOME is set".to_owned(),
        })
    }

    fn source<'a>(&'a self, home: &'a Home) -> Source<'a> {
        Source {
            agent: &self.id,
            home,
            processes: self.processes.as_ref(),
            now: self.clock.now(),
        }
    }

    fn loaded(home: &Home, key: &Key) -> Result<Loaded, AgentError> {
        load(home, key)
            .map_err(AgentError::Damaged)?
            .ok_or_else(|| no_session(key.as_str()))
    }

    fn received(&self, key: &Key) -> Result<Received, AgentError> {
        let session = key.session().ok_or_else(|| no_session(key.as_str()))?;
        Ok(Received {
            command: self.resume_command(&session).unwrap_or_default(),
            session: Some(SessionRef::new(self.id.clone(), session)),
            file: None,
        })
    }

    fn key(home: &Home, id: &str) -> Result<Key, AgentError> {
        resolve(home, id).ok_or_else(|| no_session(id))
    }
}

fn no_session(id: &str) -> AgentError {
    AgentError::NoSession {
        agent: NAME,
        id: takeup_core::text::one_line(id, 120),
    }
}

impl Agent for Jcode {
    fn id(&self) -> AgentId {
        self.id.clone()
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn ladder(&self) -> Vec<Rung> {
        let rung = |rung, run_against| Rung { rung, run_against };
        vec![
            rung("seen", Some(VERSION)),
            rung("read", Some(VERSION)),
            rung("judged", Some(VERSION)),
            rung("hooked", Some(VERSION)),
            rung("hand-over-out", Some(VERSION)),
            rung("hand-over-in", Some(VERSION)),
        ]
    }

    fn detect(&self, env: &Env) -> Detection {
        let home = Home::of(env)
            .map(|home| home.root().to_path_buf())
            .filter(|home| Path::is_dir(home));
        let program = find_program(env, "jcode");
        Detection {
            installed: home.is_some() || program.is_some(),
            program,
            home,
            version: None,
        }
    }

    fn session_of(&self, env: &Env) -> Option<SessionId> {
        ["JCODE_SESSION_ID", "JCODE_HOOK_SESSION_ID"]
            .iter()
            .find_map(|name| Key::new(env.text(name)?)?.session())
    }

    fn sessions(&self, env: &Env, query: &SessionQuery) -> Found<Session> {
        match Home::of(env) {
            Some(home) => self.source(&home).sessions(query),
            None => Found::default(),
        }
    }

    fn session(&self, env: &Env, id: &str, turns: usize) -> Result<SessionDetail, AgentError> {
        let home = Self::home(env)?;
        let key = Self::key(&home, id)?;
        self.source(&home)
            .show(&key, turns)
            .map_err(AgentError::Damaged)?
            .ok_or_else(|| no_session(id))
    }

    fn recover(&self, env: &Env, id: &str) -> Result<String, AgentError> {
        let home = Self::home(env)?;
        let key = Self::key(&home, id)?;
        let loaded = Self::loaded(&home, &key)?;
        let session = self
            .source(&home)
            .of_loaded(loaded.clone())
            .ok_or_else(|| no_session(id))?;
        Ok(crate::document::document(&session, &loaded))
    }

    fn recover_as_session(&self, env: &Env, id: &str) -> Result<Received, AgentError> {
        let home = Self::home(env)?;
        let key = Self::key(&home, id)?;
        let loaded = Self::loaded(&home, &key)?;
        let source = self.source(&home);
        if let Some(Session {
            liveness: Liveness::Live { proof },
            ..
        }) = source.of_loaded(loaded.clone())
        {
            return Err(AgentError::InUse { agent: NAME, proof });
        }
        // Asked again, the same answer: one conversation is not gone on with twice.
        let key = match source.whole_copy(&key) {
            Some(copy) => copy,
            None => crate::create::copy(&home, source.now, &loaded)?,
        };
        self.received(&key)
    }

    fn background(&self, env: &Env) -> Found<AgentTask> {
        let Found { items, issues } = crate::tasks::list(env, self.processes.as_ref());
        let items = items.into_iter().filter_map(|task| {
            let runs = task.state == TaskState::Running;
            let session = task
                .session
                .filter(|_| runs || task.state == TaskState::Unknown)?;
            Some(AgentTask {
                id: task.id,
                name: task.label,
                session,
                runs,
                proof: task.proof,
                output: task.output,
            })
        });
        Found {
            items: items.collect(),
            issues,
        }
    }

    fn install(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        let home = Self::home(env)?;
        let plan = crate::integrate::install(&home, env, scope)?;
        Ok(without_edited(plan, &home, env, &self.id, scope))
    }

    fn uninstall(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        let home = Self::home(env)?;
        let plan = crate::integrate::uninstall(&home, env, scope)?;
        Ok(without_edited(plan, &home, env, &self.id, scope))
    }

    fn integration(&self, env: &Env, scope: &Scope) -> IntegrationState {
        Self::home(env).map_or(IntegrationState::Absent, |home| {
            crate::integrate::state(&home, env, scope)
        })
    }

    fn hook(&self, env: &Env, event: &str, input: &[u8]) -> Result<HookEvent, AgentError> {
        crate::hook::hook(&self.id, env, event, input)
    }

    /// jcode reads what a hook prints for one event only, which newer versions have; it takes plain text.
    fn hook_reply(&self, event: &str, notice: &str) -> Option<String> {
        (event == "session_start_context").then(|| notice.to_owned())
    }

    fn receives(&self) -> bool {
        true
    }

    fn receive(&self, env: &Env, place: &Place, parcel: &Parcel) -> Result<Received, AgentError> {
        if find_program(env, "jcode").is_none() {
            return Err(AgentError::NotInstalled {
                agent: NAME,
                why: "there is no program jcode on PATH".to_owned(),
            });
        }
        let home = Self::home(env)?;
        let root = place.root.to_str().ok_or_else(|| {
            AgentError::Other("jcode cannot be told of a folder whose path is not UTF-8".to_owned())
        })?;
        let title = takeup_core::text::one_line(&parcel.title, 120);
        let now = self.clock.now();
        let key = crate::create::with_text(&home, now, &title, root, &parcel.document)?;
        self.received(&key)
    }

    fn resume_command(&self, session: &SessionId) -> Option<Vec<OsString>> {
        let key = Key::new(session.as_str())?;
        Some(vec!["jcode".into(), "--resume".into(), key.as_str().into()])
    }
}
