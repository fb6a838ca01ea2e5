//! An agent whose store is told by another teller, and whose own process calls the hooks that takeup installs: so what is
//! left at the end of a turn stands in the ledger.
use std::fmt::Debug;

use serde_json::json;
use takeup_core::ids::SessionRef;

use super::super::stage::Stage;
use super::super::story::Deed;
use super::{Teller, Untold};

/// An agent with hooks.
#[derive(Debug)]
pub(super) struct Hooked<T> {
    store: T,
}

impl<T: Teller> Hooked<T> {
    pub(super) const fn new(store: T) -> Self {
        Self { store }
    }

    /// Calls a hook from the session's own process, as the agent does.
    fn call(&self, stage: &mut Stage, who: &str, event: &str) {
        let session = self.store.session(who);
        let (id, place) = (session.id.as_str(), stage.root());
        let command = if session.agent.as_str() == "jcode" {
            // jcode names events with a line below, and says in variables what it has to say.
            let event = event.replace('-', "_");
            format!(
                "JCODE_HOOK_EVENT={event} JCODE_HOOK_SESSION_ID={id} JCODE_HOOK_CWD='{place}' JCODE_HOOK_STATUS=ok \
                 git-takeup hook jcode {event}"
            )
        } else {
            let said = json!({"sessionId": id, "workspaceDir": place, "cwd": place});
            format!("printf '%s' '{said}' | git-takeup hook openclaw {event}")
        };
        stage.recorded(|stage| stage.lets(who, &command));
    }
}

impl<T: Teller> Teller for Hooked<T> {
    fn session(&self, who: &str) -> SessionRef {
        self.store.session(who)
    }

    fn tell(&mut self, stage: &mut Stage, who: &str, deed: &Deed) -> Result<(), Untold> {
        match deed {
            Deed::Begins { .. } | Deed::Takes { .. } | Deed::Rebuilds { .. } => {
                // Hooks record where takeup is used.
                stage.scratch.takeup_in(&stage.place, &["init"]).exits(0);
                self.store.tell(stage, who, deed)?;
                self.call(stage, who, "session-start");
            }
            Deed::Saves { .. } | Deed::Evaluates { .. } => {
                self.store.tell(stage, who, deed)?;
                self.call(stage, who, "turn-end");
            }
            Deed::GoesOn => {
                self.store.tell(stage, who, deed)?;
                self.call(stage, who, "session-start");
                self.tell(stage, who, &Deed::Saves { same: false })?;
            }
            Deed::Ends => {
                self.call(stage, who, "session-end");
                self.store.tell(stage, who, deed)?;
            }
            _ => self.store.tell(stage, who, deed)?,
        }
        Ok(())
    }
}
