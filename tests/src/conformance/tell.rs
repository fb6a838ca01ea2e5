//! Tellers: each writes a story down in one format, as its description says and the real programs do.
mod hooked;
mod jcode;
mod ledger;
mod openclaw;
pub mod opencode;
mod sidecar;

use takeup_core::ids::SessionRef;
use takeup_core::status::Event;

use super::facts::{Fact, Format};
use super::stage::Stage;
use super::story::Deed;

/// A deed could not be written down: the format does not have the fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untold(pub Fact);

/// Writes a story down in one format.
pub trait Teller {
    /// Writes down what a session or a person did.
    fn tell(&mut self, stage: &mut Stage, who: &str, deed: &Deed) -> Result<(), Untold>;

    /// Returns the session of that name, as the format names it.
    fn session(&self, who: &str) -> SessionRef;

    /// Returns the events of the state machine that happened, where the format has one.
    fn events(&self) -> &[Event] {
        &[]
    }
}

/// Returns the teller of a format.
pub fn teller(format: Format) -> Box<dyn Teller> {
    match format {
        Format::Ledger => Box::new(ledger::Ledgers::default()),
        Format::Sidecar => Box::new(sidecar::Sidecar::default()),
        Format::Opencode => Box::new(opencode::Opencode::default()),
        Format::Jcode => Box::new(jcode::Jcode::default()),
        Format::Openclaw => Box::new(openclaw::Openclaw::databases()),
        Format::OpenclawFiles => Box::new(openclaw::Openclaw::files()),
        Format::JcodeHooks => Box::new(hooked::Hooked::new(jcode::Jcode::default())),
        Format::OpenclawPlugin => Box::new(hooked::Hooked::new(openclaw::Openclaw::databases())),
    }
}

/// Makes the name of a session.
fn session_ref(agent: &str, id: &str) -> SessionRef {
    SessionRef::new(
        takeup_core::ids::AgentId::new(agent).expect("it is a slug"),
        takeup_core::ids::SessionId::new(id).expect("it is printable"),
    )
}
