//! What a session left that no task of the ledger tells of yet: its hooks, or its agent's own store, do. Reads only.
use super::candidate::{Candidate, Source};
use super::candidates::Gatherer;
use super::{Caller, Engine, EngineError, Site, select};
use crate::ids::{SessionRef, TaskId};
use crate::verdict::{Verdict, Whereabouts};

/// What a session left that is no task yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// The name it has until it is taken up, and afterwards.
    pub task_id: TaskId,
    /// The session.
    pub session: SessionRef,
}

/// Finds what a session left under this name; where none is given, the only thing that was left. `None` where there is nothing,
/// where nobody knows which is meant, and where it cannot be looked for: this says more of a failure, and is none itself.
pub fn untold(engine: &Engine<'_>, text: Option<&str>) -> Option<Untold> {
    let site = Site::open(engine).ok()?;
    let caller = Caller::find(engine, None, None, None).ok()?;
    let look = site.look(engine, false, false).ok()?;
    let gatherer = Gatherer::new(engine, &site, &caller, &look);
    let mut left = left(&gatherer, text, None).ok()?;
    // What is over in an agent's own files is nothing to take up.
    left.retain(|candidate| candidate.verdict != Verdict::NotResumable);
    let meant = match left.as_slice() {
        [only] => Some(only),
        several => several.first().filter(|_| text.is_some()),
    };
    meant.map(|candidate| Untold {
        task_id: candidate.identity.task_id.clone(),
        session: candidate.session(),
    })
}

/// Lists what sessions left under a name, or what one session left.
pub(super) fn left(
    gatherer: &Gatherer<'_>,
    text: Option<&str>,
    from: Option<&str>,
) -> Result<Vec<Candidate>, EngineError> {
    let mut found = gatherer.all(&gatherer.site.view)?;
    found.retain(|candidate| {
        let identity = &candidate.identity;
        // What lies in another work tree is that one's.
        !matches!(candidate.source, Source::Ledger)
            && (candidate.whereabouts.is_compared()
                || candidate.whereabouts == Whereabouts::OtherRepository)
            && text.is_none_or(|text| identity.task_id.as_str() == text || identity.title == text)
            && from.is_none_or(|from| select::names(from, &candidate.session()))
    });
    Ok(found)
}
