//! Carries remedies out.
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::Remedy;
use crate::engine::Engine;
use crate::files::{FileError, rename};
use crate::hooks::{self, HookError, Means};
use crate::ledger::Ledger;
use crate::repository::{discover, forget_gone_places};

/// What came of one remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mended {
    /// The remedy.
    pub remedy: Remedy,
    /// Why it failed; `None` where it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Carries out remedies that [`super::examine`] found, each once.
pub fn mend(engine: &Engine<'_>, remedies: &[Remedy]) -> Vec<Mended> {
    let mut done: Vec<Mended> = Vec::new();
    for remedy in remedies {
        if done.iter().any(|one| &one.remedy == remedy) {
            continue;
        }
        done.push(Mended {
            remedy: remedy.clone(),
            error: carry_out(engine, remedy)
                .err()
                .map(|error| error.to_string()),
        });
    }
    done
}

fn carry_out(engine: &Engine<'_>, remedy: &Remedy) -> Result<(), HookError> {
    match remedy {
        Remedy::RemoveTemporary { path } => std::fs::remove_file(path)
            .map_err(|error| FileError::new("cannot remove", path, error).into()),
        Remedy::MoveAside { path, to } => {
            let mut free = to.clone();
            let mut number = 2_u32;
            while std::fs::symlink_metadata(&free).is_ok() {
                let mut name = to.as_os_str().to_os_string();
                name.push(format!("-{number}"));
                free = name.into();
                number += 1;
            }
            Ok(rename(path, &free)?)
        }
        Remedy::ForgetPlaces { .. } => Ok(forget_gone_places(engine.env, true).map(|_| ())?),
        Remedy::SettleObservations { .. } => {
            let place = discover(engine.env, &engine.env.cwd)?;
            let means = Means {
                env: engine.env,
                processes: engine.processes,
                clock: engine.clock,
                settings: &|| engine.settings.clone(),
            };
            hooks::record_pending(&means, &place, None).map(|_| ())
        }
        Remedy::RewriteSnapshot { path } => {
            let ledger = Ledger::at(path).during("doctor");
            Ok(ledger.rewrite(engine.clock, Ledger::PATIENCE)?)
        }
        Remedy::ForgetLosses { path, .. } => {
            let ledger = Ledger::at(path).during("doctor");
            Ok(ledger.forget_losses(engine.clock, Ledger::PATIENCE)?)
        }
        Remedy::MakePrivate { path } => {
            std::fs::set_permissions(path, Permissions::from_mode(0o700))
                .map_err(|error| FileError::new("cannot change", path, error).into())
        }
    }
}
