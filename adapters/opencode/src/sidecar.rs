//! The plugin's records, byte for byte.
mod discover;
mod globs;
mod identity;
mod json;
mod names;
mod review;
mod store;
mod workflow;

pub use discover::{FoundIdentity, Listing, identities, reviews};
pub use globs::matches as glob_matches;
pub use identity::{Identity, NewIdentity, OWN_KEY, note_agent, note_write};
pub use json::{Json, Object};
pub use names::{Collation, Paths, SIDECAR, sha256_hex, short_hash, slug, trim};
pub use review::{BOUNDARY, Draft, Request, find as find_request};
pub(crate) use review::{printable, time};
pub use store::{Document, SidecarError, read, update};
pub use workflow::{
    Resumed as WorkflowResumed, Step, context_label, is_complete, manifest, new_workflow, session,
    with_candidates,
};
