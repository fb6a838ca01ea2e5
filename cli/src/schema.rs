//! The JSON Schemas of all answers, generated from the types that are printed.
use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use takeup_core::engine;

use crate::commands;

/// Returns the schema of what a type is written as: what is left out when it is empty is not required.
pub(crate) fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
}

/// Returns the schema of the envelope (`envelope`) and of each command's `data`, by command name.
pub fn schemas() -> BTreeMap<&'static str, Schema> {
    let mut schemas = BTreeMap::from([
        ("envelope", of::<crate::reply::Envelope<'static>>()),
        ("abandon", of::<engine::Closed>()),
        ("agents", of::<commands::agents::AgentsData>()),
        ("agents-edit", of::<commands::agents::IntegrationData>()),
        ("check", of::<commands::evidence::EvidenceData>()),
        ("config", of::<commands::config::ConfigData>()),
        ("demo", of::<commands::demo::DemoData>()),
        ("diff", of::<engine::DiffView>()),
        ("doctor", of::<commands::doctor::DoctorData>()),
        ("evaluate", of::<engine::Evaluation>()),
        ("evidence", of::<commands::evidence::EvidenceData>()),
        (
            "fingerprint",
            of::<commands::fingerprint::FingerprintData>(),
        ),
        ("finish", of::<engine::Closed>()),
        ("gc", of::<takeup_core::gc::Collected>()),
        ("handover", of::<commands::handover::HandoverData>()),
        ("hooks-edit", of::<commands::hooks::EditData>()),
        ("hooks-status", of::<commands::hooks::StatusData>()),
        ("init", of::<engine::Initialised>()),
        ("inspect", of::<engine::Inspection>()),
        ("log", of::<commands::log::LogData>()),
        ("next", of::<engine::NextStep>()),
        ("note", of::<commands::note::NoteData>()),
        ("overview", of::<commands::overview::OverviewData>()),
        ("plan", of::<commands::plan::PlanData>()),
        ("resume", of::<engine::Resumed>()),
        ("review", of::<commands::review::ReviewsData>()),
        ("review-edit", of::<commands::review::ReviewData>()),
        ("save", of::<engine::Saved>()),
        ("sessions", of::<commands::sessions::SessionsData>()),
        ("show", of::<engine::TaskView>()),
        ("start", of::<engine::Started>()),
        ("version", of::<commands::version::VersionData>()),
    ]);
    schemas.extend(commands::bg::schemas());
    schemas
}
