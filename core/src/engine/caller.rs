//! Who calls: the session and the process that stands for it.
use super::{Engine, EngineError};
use crate::agent::Agent;
use crate::env::Env;
use crate::identity::Identity;
use crate::ids::{AgentId, SessionId, SessionRef};
use crate::ledger::Actor;
use crate::process::{self, ProcessIdentity};

/// Who calls.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The session, where it is known: by argument, by `TAKEUP_SESSION`, or by the agent's own variable.
    pub session: Option<SessionRef>,
    /// The session that the environment names, whatever the call itself says.
    pub environment: Option<SessionRef>,
    /// The agent, also where its session is not known. `None` is a person, as far as anybody said.
    pub agent: Option<AgentId>,
    /// The process that stands for the session: the one that was named, else the nearest ancestor that is no shell.
    pub process: Option<ProcessIdentity>,
    /// The process is the session's for certain: the caller named it, or is the session itself.
    pub process_named: bool,
    /// The caller's ancestors, the nearest first.
    pub ancestors: Vec<ProcessIdentity>,
}

impl Caller {
    /// Finds out who calls. `session` may be `agent:id` for an agent that is known here.
    pub fn find(
        engine: &Engine<'_>,
        session: Option<&str>,
        agent: Option<&str>,
        pid: Option<u32>,
    ) -> Result<Self, EngineError> {
        let own = std::process::id();
        let ancestors = process::ancestors(engine.processes, own).unwrap_or_default();
        let (process, process_named) = match pid {
            Some(pid) => match engine.processes.identify(pid)? {
                Some(identity) => (Some(identity), true),
                None => {
                    return Err(EngineError::NotAllowed(format!(
                        "there is no process {pid}"
                    )));
                }
            },
            None => (
                process::session_process(engine.processes, own)
                    .ok()
                    .flatten(),
                false,
            ),
        };
        let session = Self::session(engine.env, engine.agents, session, agent)?;
        let agent = match &session {
            Some(session) => Some(session.agent.clone()),
            None => named_agent(engine.env, agent)?,
        };
        Ok(Self {
            session,
            environment: Self::by_environment(engine.env, engine.agents),
            agent,
            process,
            process_named,
            ancestors,
        })
    }

    /// As [`Caller::find`], for the session that `which` names.
    pub(super) fn of(engine: &Engine<'_>, which: &Which) -> Result<Self, EngineError> {
        Self::find(
            engine,
            which.session.as_deref(),
            which.agent.as_deref(),
            None,
        )
    }

    /// Returns the session that the environment names: `TAKEUP_SESSION`, or an agent's own variable.
    pub fn by_environment(env: &Env, agents: &[Box<dyn Agent>]) -> Option<SessionRef> {
        Self::session(env, agents, None, None).ok().flatten()
    }

    /// Tells whether the environment is that of an agent's session, by whatever variable.
    pub fn is_inside_agent(env: &Env, agents: &[Box<dyn Agent>]) -> bool {
        let person = AgentId::person();
        let named = env.text("TAKEUP_AGENT");
        agents.iter().any(|agent| agent.session_of(env).is_some())
            || named.is_some_and(|agent| agent != person.as_str())
            || Self::by_environment(env, agents).is_some_and(|session| session.agent != person)
    }

    fn session(
        env: &Env,
        agents: &[Box<dyn Agent>],
        session: Option<&str>,
        agent: Option<&str>,
    ) -> Result<Option<SessionRef>, EngineError> {
        let by_agent = || {
            agents.iter().find_map(|agent| {
                agent
                    .session_of(env)
                    .map(|id| SessionRef::new(agent.id(), id))
            })
        };
        let agent = named_agent(env, agent)?;
        let Some(text) = session.or_else(|| env.text("TAKEUP_SESSION")) else {
            return Ok(match (by_agent(), agent) {
                (Some(found), Some(agent)) => Some(SessionRef::new(agent, found.id)),
                (found, _) => found,
            });
        };
        if let Some((name, id)) = text.split_once(':')
            && let Some(known) = agents
                .iter()
                .map(|agent| agent.id())
                .find(|known| known.as_str() == name)
        {
            return Ok(Some(SessionRef::new(known, SessionId::new(id)?)));
        }
        let id = SessionId::new(text)?;
        let agent = agent.or_else(|| {
            by_agent()
                .filter(|found| found.id == id)
                .map(|found| found.agent)
        });
        Ok(Some(SessionRef::new(
            agent.unwrap_or_else(AgentId::person),
            id,
        )))
    }

    /// Returns the caller as somebody who only reads, and may mean a task that is another's.
    pub(super) fn as_reader(&self) -> Self {
        Self {
            agent: self.session.as_ref().map(|session| session.agent.clone()),
            ..self.clone()
        }
    }

    /// Returns somebody who has nothing to do with the caller, such as one who reads later what it wrote.
    pub(super) const fn somebody_else() -> Self {
        Self {
            session: None,
            environment: None,
            agent: None,
            process: None,
            process_named: false,
            ancestors: Vec::new(),
        }
    }

    /// Returns who a journal line names.
    pub(super) fn actor(&self) -> Actor {
        Actor {
            session: self
                .session
                .clone()
                .unwrap_or_else(|| SessionRef::of_agent(self.agent_or_person())),
            pid: std::process::id(),
        }
    }

    /// Returns who it is that does something to what a session holds. It is the session itself, unless the caller only names
    /// it: what a person does with an agent's session by its id is no word of that session. Who names no session is given
    /// nothing but its own (`select::own`).
    pub(super) fn acts_as(&self, identity: &Identity) -> SessionRef {
        self.acts_for(&identity.session, identity.process.as_ref())
    }

    /// Returns who does it, where that is not the session itself.
    pub(super) fn acts_instead_of(&self, identity: &Identity) -> Option<SessionRef> {
        Some(self.acts_as(identity)).filter(|by| *by != identity.session)
    }

    /// As [`Caller::acts_as`], for a session and the process that stands for it.
    pub(super) fn acts_for(
        &self,
        held_by: &SessionRef,
        process: Option<&ProcessIdentity>,
    ) -> SessionRef {
        let person = AgentId::person();
        let is_it = |session: &SessionRef| {
            session.id == held_by.id && (session.agent == held_by.agent || held_by.agent == person)
        };
        let is_inside = self
            .environment
            .as_ref()
            .is_some_and(|session| session.id == held_by.id)
            || process.is_some_and(|process| self.descends_from(process));
        if is_inside || self.session.as_ref().is_none_or(is_it) {
            held_by.clone()
        } else {
            self.environment.clone().unwrap_or_else(SessionRef::person)
        }
    }

    /// Returns the agent that calls; a person where none was named.
    pub(super) fn agent_or_person(&self) -> AgentId {
        self.agent.clone().unwrap_or_else(AgentId::person)
    }

    /// Returns where a check comes from that the caller plans, as the plan keeps it.
    pub(super) fn source(&self) -> String {
        if self.agent_or_person() == AgentId::person() {
            "person".to_owned()
        } else {
            "session".to_owned()
        }
    }

    /// Tells whether a process is the caller itself or stands above it.
    pub(super) fn descends_from(&self, process: &ProcessIdentity) -> bool {
        self.ancestors.iter().any(|ancestor| ancestor.is(process))
    }
}

/// Returns the agent that is named by argument, else by the environment.
fn named_agent(env: &Env, agent: Option<&str>) -> Result<Option<AgentId>, EngineError> {
    Ok(agent
        .or_else(|| env.text("TAKEUP_AGENT"))
        .map(AgentId::new)
        .transpose()?)
}

/// Which task of which session is meant.
#[derive(Clone, Debug, Default)]
pub struct Which {
    /// The task; the caller's own where none is named.
    pub task: Option<String>,
    /// The session, where it is named.
    pub session: Option<String>,
    /// Its agent.
    pub agent: Option<String>,
}
