//! What a task may edit.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::SessionRef;
use crate::time::Time;

/// Path globs a task may edit and must avoid. An empty `allowed` list allows every path that is not avoided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Boundary {
    /// Globs in git's pathspec meaning.
    pub allowed: Vec<String>,
    /// Globs that are never edited, whatever `allowed` says.
    pub avoided: Vec<String>,
    /// 0 at first, one more at every change.
    pub revision: u64,
    /// Who raised it, when and why, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raised: Vec<Raise>,
}

/// One change of a boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Raise {
    /// When.
    pub at: Time,
    /// By whom.
    pub by: SessionRef,
    /// Why.
    pub why: String,
    /// The globs that were added.
    pub added: Vec<String>,
}
