//! `git takeup version`
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::reply::{Failure, Reply};

/// Arguments of `version`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// The answer of `version`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VersionData {
    /// The version of the program.
    version: &'static str,
    /// The version of the definition of fingerprints.
    fingerprint_definition: u32,
    /// Optional parts that were built in.
    features: Vec<&'static str>,
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of every command")]
pub(crate) fn run(_: Args, _: &Context) -> Result<Reply, Failure> {
    let mut features = Vec::new();
    if cfg!(feature = "mcp") {
        features.push("mcp");
    }
    let data = VersionData {
        version: env!("CARGO_PKG_VERSION"),
        fingerprint_definition: takeup_core::fingerprint::DEFINITION,
        features,
    };
    Ok(Reply::new(format!("git-takeup {}", data.version), &data))
}
