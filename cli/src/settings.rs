//! Settings, layered: built in, the user's file, git's configuration of the user, the environment. The last one wins.
//!
//! Every setting there is widens trust or changes what is compared, so none may come from the repository: what stands in
//! `.git/config` is reported and left out, since a folder that was unpacked or copied brings it along.
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::env::Env;
use takeup_core::files::read_own;
use takeup_core::paths::config_dir;
use takeup_core::repository::{ConfigScope, Repository, plain_place};
use takeup_core::settings::{ConfirmBy, Settings};

/// The most bytes of a settings file.
const LONGEST: u64 = 1 << 20;

/// One setting with where it comes from.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Setting {
    /// The key, as it is written in git's configuration after `takeup.`.
    pub key: &'static str,
    /// The value in effect.
    pub value: String,
    /// Where it comes from.
    pub origin: String,
    /// What it does.
    pub meaning: &'static str,
}

/// The settings in effect, where each comes from, and what was wrong on the way.
#[derive(Debug)]
pub(crate) struct Layered {
    /// The settings.
    pub settings: Settings,
    /// Each setting.
    pub origins: Vec<Setting>,
    /// What was wrong: unknown keys, values that are no values, keys that a repository may not set.
    pub complaints: Vec<String>,
}

/// A key.
struct Key {
    name: &'static str,
    meaning: &'static str,
    set: fn(&mut Settings, &str) -> Result<(), &'static str>,
    get: fn(&Settings) -> String,
}

fn flag(value: &str) -> Result<bool, &'static str> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err("true or false"),
    }
}

const KEYS: [Key; 5] = [
    Key {
        name: "confirm",
        meaning: "whose word confirms a take-up when nobody can be asked: person or caller",
        set: |settings, value| {
            settings.confirm = match value {
                "person" => ConfirmBy::Person,
                "caller" => ConfirmBy::Caller,
                _ => return Err("person or caller"),
            };
            Ok(())
        },
        get: |settings| match settings.confirm {
            ConfirmBy::Person => "person".to_owned(),
            ConfirmBy::Caller => "caller".to_owned(),
        },
    },
    Key {
        name: "countReported",
        meaning: "whether evidence that an agent only reports counts",
        set: |settings, value| flag(value).map(|value| settings.count_reported = value),
        get: |settings| settings.count_reported.to_string(),
    },
    Key {
        name: "exclude",
        meaning: "names at the top of the work tree left out of the fingerprint, separated by commas",
        set: |settings, value| {
            settings.exclude = value
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect();
            Ok(())
        },
        get: |settings| settings.exclude.join(","),
    },
    Key {
        name: "repositoryPrograms",
        meaning: "whether clean filters that the repository itself configures are run",
        set: |settings, value| flag(value).map(|value| settings.repository_programs = value),
        get: |settings| settings.repository_programs.to_string(),
    },
    Key {
        name: "mcpRun",
        meaning: "whether MCP clients may start background commands",
        set: |settings, value| flag(value).map(|value| settings.mcp_run = value),
        get: |settings| settings.mcp_run.to_string(),
    },
];

/// Where a value comes from, and whether the user, rather than the repository, said it.
struct Layer {
    origin: String,
    by_user: bool,
    values: Vec<(String, String)>,
}

/// Reads every layer.
pub(crate) fn load(env: &Env) -> Layered {
    let mut layered = Layered {
        settings: Settings::default(),
        origins: KEYS
            .iter()
            .map(|key| Setting {
                key: key.name,
                value: (key.get)(&Settings::default()),
                origin: "built in".to_owned(),
                meaning: key.meaning,
            })
            .collect(),
        complaints: Vec::new(),
    };
    let user = config_dir(env).map(|folder| folder.join("config.toml"));
    let repository = if are_absent(env) {
        None
    } else {
        Repository::discover(env, &env.cwd).ok()
    };
    let mut layers = Vec::new();
    layers.extend(user.and_then(|path| file(env, &path, &mut layered.complaints)));
    if let Some(repository) = &repository {
        layers.extend(git(repository));
    }
    layers.push(variables(env));
    for layer in layers {
        apply(&mut layered, layer);
    }
    layered
}

/// Tells whether it is certain that git's settings hold none of ours, so that no repository has to be opened for them: a plain
/// place, and files in which the word does not stand and that include no other.
fn are_absent(env: &Env) -> bool {
    let Some(place) = plain_place(env, &env.cwd) else {
        return false;
    };
    let by_call = env
        .vars()
        .any(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_CONFIG"));
    let home = env.home();
    let folder = env
        .var("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| home.as_ref().map(|home| home.join(".config")));
    let files = [
        Some(PathBuf::from("/etc/gitconfig")),
        folder.map(|folder| folder.join("git/config")),
        home.map(|home| home.join(".gitconfig")),
        Some(place.common_dir.join("config")),
    ];
    !by_call
        && files.into_iter().flatten().all(|path| {
            match std::fs::read(path) {
                Ok(bytes) => {
                    let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
                    !text.contains("takeup") && !text.contains("include")
                }
                // Whatever else is wrong with it, git has to say.
                Err(error) => error.kind() == std::io::ErrorKind::NotFound,
            }
        })
}

fn apply(layered: &mut Layered, layer: Layer) {
    for (name, value) in layer.values {
        let found = KEYS
            .iter()
            .zip(&mut layered.origins)
            .find(|(key, _)| key.name.eq_ignore_ascii_case(&name));
        let Some((key, origin)) = found else {
            let known = nearest(&name)
                .map(|known| format!("; did you mean {known}?"))
                .unwrap_or_default();
            layered.complaints.push(format!(
                "{}: no setting {name:?} is known{known}",
                layer.origin
            ));
            continue;
        };
        if !layer.by_user {
            layered.complaints.push(format!(
                "{}: {} is the user's to say, not the repository's; it is left out",
                layer.origin, key.name
            ));
            continue;
        }
        match (key.set)(&mut layered.settings, &value) {
            Ok(()) => {
                origin.value = (key.get)(&layered.settings);
                origin.origin.clone_from(&layer.origin);
            }
            Err(expected) => {
                layered.complaints.push(format!(
                    "{}: {} has to be {expected}",
                    layer.origin, key.name
                ));
            }
        }
    }
}

/// Finds the key that a word was probably meant to be.
fn nearest(word: &str) -> Option<&'static str> {
    let alike = |key: &Key| {
        strsim::jaro_winkler(&key.name.to_ascii_lowercase(), &word.to_ascii_lowercase())
    };
    KEYS.iter()
        .map(|key| (alike(key), key.name))
        .filter(|(alike, _)| *alike > 0.8)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, name)| name)
}

fn file(env: &Env, path: &Path, complaints: &mut Vec<String>) -> Option<Layer> {
    let origin = path.display().to_string();
    let bytes = match read_own(env, path, LONGEST) {
        Ok(bytes) => bytes?,
        Err(issue) => {
            complaints.push(format!("{origin}: {}", issue.message));
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(error) => {
            complaints.push(format!(
                "{origin}: {}",
                takeup_core::text::one_line(&error.to_string(), 300)
            ));
            return None;
        }
    };
    let values = table
        .into_iter()
        .map(|(name, value)| {
            let value = match value {
                toml::Value::String(text) => text,
                toml::Value::Array(items) => items
                    .iter()
                    .filter_map(toml::Value::as_str)
                    .collect::<Vec<_>>()
                    .join(","),
                other => other.to_string(),
            };
            (name.replace(['-', '_'], ""), value)
        })
        .collect();
    Some(Layer {
        origin,
        by_user: true,
        values,
    })
}

/// Reads `takeup.*` of git's configuration, the user's part first.
fn git(repository: &Repository) -> Vec<Layer> {
    let Ok(entries) = repository.git().config_entries() else {
        return Vec::new();
    };
    let mut layers = Vec::new();
    for by_user in [true, false] {
        let own = |scope: ConfigScope| !matches!(scope, ConfigScope::Local | ConfigScope::Worktree);
        let values: Vec<(String, String)> = entries
            .iter()
            .filter(|entry| own(entry.scope) == by_user)
            .filter_map(|entry| {
                let name = entry.key.strip_prefix("takeup.")?;
                // A worktree's own switches of hooks live below it and are no settings.
                (!name.contains('.')).then(|| (name.to_owned(), entry.value.clone()))
            })
            .collect();
        let origin = if by_user {
            "git config --global"
        } else {
            "git config --local"
        };
        layers.push(Layer {
            origin: origin.to_owned(),
            by_user,
            values,
        });
    }
    layers
}

fn variables(env: &Env) -> Layer {
    let values = KEYS
        .iter()
        .filter_map(|key| {
            let mut name = String::from("TAKEUP_");
            for c in key.name.chars() {
                if c.is_ascii_uppercase() {
                    name.push('_');
                }
                name.push(c.to_ascii_uppercase());
            }
            env.text(&name)
                .map(|value| (key.name.to_owned(), value.to_owned()))
        })
        .collect();
    Layer {
        origin: "environment".to_owned(),
        by_user: true,
        values,
    }
}

/// Returns the file of the user's settings.
pub(crate) fn user_file(env: &Env) -> Option<PathBuf> {
    config_dir(env).map(|folder| folder.join("config.toml"))
}
