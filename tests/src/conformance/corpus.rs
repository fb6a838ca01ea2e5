//! The corpus: `tests/conformance/*.toml`, one file a theme, and `formats.toml`.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use takeup_core::status::{Event, Status};
use takeup_core::verdict::ReasonCode;

use super::facts::{Fact, Format};
use super::story::{self, Step};

/// Scenarios of one theme.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Theme {
    /// The file's name without its ending.
    #[serde(skip)]
    pub name: String,
    /// What the theme is, in one line.
    pub about: String,
    /// The scenarios.
    #[serde(rename = "scenario")]
    pub scenarios: Vec<Scenario>,
}

/// One story with the answer that is right.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What happens, in one sentence.
    pub name: String,
    /// The story, one step a line.
    pub story: String,
    /// The session whose answer is asked for; the last one that is named where nothing is said.
    pub of: Option<String>,
    /// Every reason that holds, the deciding one first. None: there is no candidate.
    pub reasons: Vec<ReasonCode>,
    /// The status that is recorded.
    pub status: Option<Status>,
    /// The events of the state machine that happen, in order. Checked in our own ledger, the only format that has them all.
    #[serde(default)]
    pub events: Vec<Event>,
    /// What is reported as damaged, by kind, in the order of the report.
    #[serde(default)]
    pub issues: Vec<String>,
    /// The changed paths that are named.
    #[serde(default)]
    pub paths: Option<Vec<String>>,
    /// A text that must stand in no answer.
    pub secret: Option<String>,
    /// The formats it is told in, where not in all.
    pub only: Option<Vec<Format>>,
    /// Where a format gives another answer, and rightly so.
    #[serde(default)]
    pub except: BTreeMap<Group, Exception>,
}

/// Formats that an exception is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// The stores of agents that have our hooks.
    Hooked,
    /// The agents' own stores: every format but the ledger and the records of OpenCode++.
    Stores,
    /// Those in which the content is recorded at the end of a turn, and not before.
    Turns,
    /// Every format but the ledger.
    Others,
    /// The one of this name.
    #[serde(untagged)]
    One(Format),
}

impl Group {
    fn holds(self, format: Format) -> bool {
        match self {
            Self::One(one) => one == format,
            Self::Stores => !format.holds_statuses(),
            Self::Hooked => format.is_hooked(),
            Self::Turns => format.records_turns(),
            Self::Others => format != Format::Ledger,
        }
    }
}

/// The right answer of one format, where it is another one. The facts that its format never has are still taken out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The fact that the format cannot carry; none where it is only an exception among those of its group.
    pub lacks: Option<Fact>,
    /// Every reason that holds there.
    pub reasons: Option<Vec<ReasonCode>>,
    /// The status that is recorded there.
    pub status: Option<Status>,
    /// What is reported as damaged there.
    pub issues: Option<Vec<String>>,
}

impl Scenario {
    /// Returns the steps.
    pub fn steps(&self) -> Vec<Step> {
        story::read(&self.story).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Returns the name of the session whose answer is asked for.
    pub fn asked(&self) -> String {
        let last = self.steps().into_iter().rev().find_map(|step| match step {
            Step::Told { who, .. } if !who.is_empty() => Some(who),
            Step::Told { .. } | Step::Shell(_) | Step::Go(_) => None,
        });
        self.of.clone().or(last).unwrap_or_default()
    }

    /// Returns the exception for a format: its own, before that of its group.
    pub fn exception(&self, format: Format) -> Option<&Exception> {
        let fits = |(group, _): &(&Group, &Exception)| group.holds(format);
        let own = self.except.get(&Group::One(format));
        own.or_else(|| {
            self.except
                .iter()
                .find(fits)
                .map(|(_, exception)| exception)
        })
    }

    /// Tells whether it is told in a format.
    pub fn is_told_in(&self, format: Format) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&format))
    }
}

/// What is known of a format.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatNotes {
    /// Its name for people.
    pub name: String,
    /// The version that is told.
    pub version: String,
    /// The facts it cannot carry, each with what is so instead.
    #[serde(default)]
    pub lacks: BTreeMap<Fact, String>,
}

/// Everything.
#[derive(Debug)]
pub struct Corpus {
    /// The themes, by name.
    pub themes: Vec<Theme>,
    /// The formats.
    pub formats: BTreeMap<Format, FormatNotes>,
}

impl Corpus {
    /// Reads the corpus of this package.
    pub fn read() -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("conformance");
        let mut themes = Vec::new();
        let mut formats = BTreeMap::new();
        let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
            .expect("the corpus is there")
            .map(|entry| entry.expect("the corpus can be listed").path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
            .collect();
        files.sort();
        for file in files {
            let name = file
                .file_stem()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            if name == "formats" {
                formats = of_toml(&file);
            } else {
                themes.push(Theme {
                    name,
                    ..of_toml(&file)
                });
            }
        }
        Self { themes, formats }
    }

    /// Returns every scenario.
    pub fn scenarios(&self) -> impl Iterator<Item = &Scenario> {
        self.themes.iter().flat_map(|theme| &theme.scenarios)
    }

    /// Returns what is known of a format.
    pub fn notes(&self, format: Format) -> &FormatNotes {
        self.formats
            .get(&format)
            .unwrap_or_else(|| panic!("{format:?} is not described"))
    }
}

fn of_toml<T: for<'de> Deserialize<'de>>(file: &Path) -> T {
    let text = std::fs::read_to_string(file).expect("a file of the corpus can be read");
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
