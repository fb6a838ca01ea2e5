//! The JSON Schemas of all answers, generated from the types that are printed.
use std::collections::BTreeMap;

use schemars::{Schema, schema_for};
use takeup_core::engine;

use crate::commands;

/// Returns the schema of the envelope (`envelope`) and of each command's `data`, by command name.
pub fn schemas() -> BTreeMap<&'static str, Schema> {
    let mut schemas = BTreeMap::from([
        ("envelope", schema_for!(crate::reply::Envelope<'static>)),
        ("abandon", schema_for!(engine::Closed)),
        ("agents", schema_for!(commands::agents::AgentsData)),
        (
            "agents-edit",
            schema_for!(commands::agents::IntegrationData),
        ),
        ("check", schema_for!(commands::evidence::EvidenceData)),
        ("config", schema_for!(commands::config::ConfigData)),
        ("demo", schema_for!(commands::demo::DemoData)),
        ("diff", schema_for!(engine::DiffView)),
        ("doctor", schema_for!(commands::doctor::DoctorData)),
        ("evaluate", schema_for!(engine::Evaluation)),
        ("evidence", schema_for!(commands::evidence::EvidenceData)),
        (
            "fingerprint",
            schema_for!(commands::fingerprint::FingerprintData),
        ),
        ("finish", schema_for!(engine::Closed)),
        ("gc", schema_for!(takeup_core::gc::Collected)),
        ("handover", schema_for!(commands::handover::HandoverData)),
        ("hooks-edit", schema_for!(commands::hooks::EditData)),
        ("hooks-status", schema_for!(commands::hooks::StatusData)),
        ("init", schema_for!(engine::Initialised)),
        ("inspect", schema_for!(engine::Inspection)),
        ("log", schema_for!(commands::log::LogData)),
        ("next", schema_for!(engine::NextStep)),
        ("note", schema_for!(commands::note::NoteData)),
        ("overview", schema_for!(commands::overview::OverviewData)),
        ("plan", schema_for!(commands::plan::PlanData)),
        ("resume", schema_for!(engine::Resumed)),
        ("review", schema_for!(commands::review::ReviewsData)),
        ("review-edit", schema_for!(commands::review::ReviewData)),
        ("save", schema_for!(engine::Saved)),
        ("sessions", schema_for!(commands::sessions::SessionsData)),
        ("show", schema_for!(engine::TaskView)),
        ("start", schema_for!(engine::Started)),
        ("version", schema_for!(commands::version::VersionData)),
    ]);
    schemas.extend(commands::bg::schemas());
    schemas
}
