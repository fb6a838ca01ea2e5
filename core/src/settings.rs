//! The settings in effect. Where each comes from is the business of the face that reads them.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose word counts as a confirmation when nobody can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConfirmBy {
    /// A person has to say it.
    #[default]
    Person,
    /// The caller's own argument counts. Only the user's settings may say so, never the repository's.
    Caller,
}

/// The settings in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Settings {
    /// Whose word counts as a confirmation.
    pub confirm: ConfirmBy,
    /// Whether evidence that an agent only reports counts.
    pub count_reported: bool,
    /// Names at the top of the work tree that are left out of the fingerprint, beside the built-in ones.
    pub exclude: Vec<String>,
    /// Whether clean filters that the repository itself configures are run.
    pub repository_programs: bool,
    /// Whether MCP clients may start background commands.
    pub mcp_run: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            confirm: ConfirmBy::Person,
            count_reported: false,
            exclude: Vec::new(),
            repository_programs: false,
            mcp_run: false,
        }
    }
}
