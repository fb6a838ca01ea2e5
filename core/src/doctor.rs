//! A look at everything that takeup rests on here: each finding says what was checked, how it stands and what to do.
//!
//! [`examine`] changes nothing. Some findings carry a [`Remedy`]; [`mend`] carries remedies out, none of them touching
//! anything that is not takeup's own.
//!
//! # Limitations
//!
//! Whether locks hold on a file system is judged by its kind, not tried.
mod agents;
mod ledger;
mod machine;
mod mend;
mod place;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::mend::{Mended, mend};

use crate::engine::Engine;
use crate::error::Explain;
use crate::ledger::Ledger;
use crate::repository::{Place, Repository, RepositoryError, Tokens, tokens};

/// How a check came out, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// All is well.
    Ok,
    /// It works, and something should be looked at.
    Warn,
    /// Something does not work.
    Fail,
}

impl Health {
    /// Returns the name as it stands in JSON.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What was checked; a stable code, such as `hook-post-commit`.
    pub check: String,
    /// How it stands.
    pub verdict: Health,
    /// What was seen.
    pub message: String,
    /// What a person can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// What `--fix` would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

impl Finding {
    /// Makes a finding that all is well.
    pub(crate) fn ok(check: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(check, Health::Ok, message)
    }

    /// Makes a finding to look at.
    pub(crate) fn warn(check: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(check, Health::Warn, message)
    }

    /// Makes a finding of something that does not work.
    pub(crate) fn fail(check: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(check, Health::Fail, message)
    }

    /// Makes a finding of what could not be looked at.
    pub(crate) fn of(check: &str, verdict: Health, error: &impl Explain) -> Self {
        Self {
            advice: error.hint(),
            ..Self::new(check, verdict, error.to_string())
        }
    }

    fn new(check: impl Into<String>, verdict: Health, message: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            verdict,
            message: message.into(),
            advice: None,
            remedy: None,
        }
    }

    /// Adds what a person can do.
    #[must_use]
    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Adds what `--fix` would do.
    #[must_use]
    pub(crate) fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedy = Some(remedy);
        self
    }
}

/// What `--fix` can do. Each touches takeup's own files alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Remedy {
    /// Remove a temporary file that a killed process left.
    RemoveTemporary {
        /// The file.
        #[serde(serialize_with = "crate::paths::in_json")]
        path: PathBuf,
    },
    /// Give a damaged file, or the folder of a damaged record, another name, so that a new one can be made. Nothing of it is
    /// lost.
    MoveAside {
        /// The file.
        #[serde(serialize_with = "crate::paths::in_json")]
        path: PathBuf,
        /// Its new name.
        #[serde(serialize_with = "crate::paths::in_json")]
        to: PathBuf,
    },
    /// Take places that are gone out of the index.
    ForgetPlaces {
        /// How many.
        places: usize,
    },
    /// Look at the content for observations that wait for a look.
    SettleObservations {
        /// How many.
        observations: usize,
    },
    /// Make a new snapshot of the ledger from its healthy records; what is damaged is kept aside.
    RewriteSnapshot {
        /// The ledger's folder.
        #[serde(serialize_with = "crate::paths::in_json")]
        path: PathBuf,
    },
    /// Take note of lost records, so that nothing says any more that they are lost.
    ForgetLosses {
        /// The ledger's folder.
        #[serde(serialize_with = "crate::paths::in_json")]
        path: PathBuf,
        /// How many.
        records: u64,
    },
    /// Take the permissions of others away from a folder.
    MakePrivate {
        /// The folder.
        #[serde(serialize_with = "crate::paths::in_json")]
        path: PathBuf,
    },
}

/// What the checks are made on.
struct Scene<'a> {
    engine: &'a Engine<'a>,
    repository: &'a Repository,
    place: &'a Place,
    tokens: Tokens,
}

/// Looks at everything and changes nothing. Findings come in a fixed order: machine, settings, repository, ledger, hooks,
/// agents. `complaints` are what was wrong with the settings when they were read.
pub fn examine(engine: &Engine<'_>, complaints: &[String]) -> Vec<Finding> {
    let mut found = Vec::new();
    machine::git(engine, &mut found);
    machine::processes(engine, &mut found);
    machine::switches(engine, &mut found);
    machine::settings(complaints, &mut found);
    place::known(engine, &mut found);
    machine::background(engine, &mut found);
    match Repository::discover(engine.env, &engine.env.cwd) {
        Ok(repository) => here(engine, &repository, &mut found),
        Err(RepositoryError::NotARepository { start }) => found.push(place::none(&start)),
        Err(error) => {
            found.push(Finding::of("repository", Health::Fail, &error));
        }
    }
    agents::integrations(engine, &mut found);
    found
}

fn here(engine: &Engine<'_>, repository: &Repository, found: &mut Vec<Finding>) {
    let place = repository.place();
    let is_readable = place::shape(repository, found);
    let tokens = match tokens(place) {
        Ok(tokens) => tokens,
        Err(error) => {
            place::damaged_token(&error, found);
            return;
        }
    };
    let scene = Scene {
        engine,
        repository,
        place,
        tokens,
    };
    place::tokens(&scene, found);
    agents::stores(&scene, found);
    if scene.tokens.repository.is_none() && !Ledger::at(place.state()).exists() {
        return;
    }
    if !ledger::folder(&scene, found) {
        return;
    }
    machine::file_system(&place.state(), found);
    if is_readable {
        place::tree(engine, found);
    }
    let Some(view) = ledger::records(&scene, found) else {
        return;
    };
    place::moved(&scene, &view, found);
    ledger::hooks(&scene, &view, found);
    agents::silent(&scene, &view, found);
}
