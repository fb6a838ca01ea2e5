//! What the tree's content was (DESIGN, section 5).
mod record;

pub use record::{
    Counters, DEFINITION, Deviation, DeviationKind, Look, Method, Provenance, ProvenanceEvent,
    Submodule, TreeRecord,
};
