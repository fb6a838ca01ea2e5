//! What has to be proved before a task is finished.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The checks of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The checks, in order.
    pub checks: Vec<Check>,
    /// The plan is empty on purpose.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_checks: bool,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// The command, as it is matched with evidence: one shell line, masked.
    pub command: String,
    /// Where it came from: `person`, `session`, or the file that proposed it.
    pub source: String,
    /// A command that has to fail for the check to count (negative control).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must_fail: Option<String>,
}
