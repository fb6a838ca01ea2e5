//! The JSON Schemas of all answers, generated from the types that are printed.
use std::collections::BTreeMap;

use schemars::{Schema, schema_for};

/// Returns the schema of the envelope (`envelope`) and of each command's `data`, by command name.
pub fn schemas() -> BTreeMap<&'static str, Schema> {
    let mut schemas = BTreeMap::new();
    schemas.insert("envelope", schema_for!(crate::reply::Envelope<'static>));
    schemas.insert("doctor", schema_for!(crate::commands::doctor::DoctorData));
    schemas.insert("gc", schema_for!(takeup_core::gc::Collected));
    schemas.insert("hooks-edit", schema_for!(crate::commands::hooks::EditData));
    schemas.insert(
        "hooks-status",
        schema_for!(crate::commands::hooks::StatusData),
    );
    schemas.insert(
        "sessions",
        schema_for!(crate::commands::sessions::SessionsData),
    );
    schemas.insert(
        "version",
        schema_for!(crate::commands::version::VersionData),
    );
    schemas.extend(crate::commands::bg::schemas());
    schemas
}
