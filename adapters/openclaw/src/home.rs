//! Where OpenClaw keeps its things.
use std::path::{Path, PathBuf};

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;
use takeup_core::agent::Found;
use takeup_core::env::Env;
use takeup_core::files::{own, read_bounded};
use takeup_core::issue::{Issue, IssueKind};

/// The largest configuration that is read, in bytes.
pub(crate) const CONFIG_LIMIT: u64 = 4 << 20;

/// The folders of one installation, by the rules of its documentation (environment variables, then the profile).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// The state folder: `OPENCLAW_STATE_DIR`, else `~/.openclaw` or `~/.openclaw-<profile>`.
    pub(crate) state: PathBuf,
    /// The configuration: `OPENCLAW_CONFIG_PATH`, else `openclaw.json` in the state folder.
    pub(crate) config: PathBuf,
}

impl Home {
    /// Finds the folders; `None` where the user has no home.
    pub(crate) fn of(env: &Env) -> Option<Self> {
        let user = env.absolute("OPENCLAW_HOME").or_else(|| env.home());
        let state = match env.absolute("OPENCLAW_STATE_DIR") {
            Some(state) => state,
            None => user?.join(match env.text("OPENCLAW_PROFILE") {
                Some(profile) if is_plain(profile) && profile != "default" => {
                    format!(".openclaw-{profile}")
                }
                Some(_) | None => ".openclaw".to_owned(),
            }),
        };
        let config = env
            .absolute("OPENCLAW_CONFIG_PATH")
            .unwrap_or_else(|| state.join("openclaw.json"));
        // Who keeps it among dotfiles has a link there. One that leads nowhere is named by who reads it.
        let config = own(env, &config).unwrap_or(config);
        Some(Self { state, config })
    }

    /// The database that all agents share.
    pub(crate) fn shared_database(&self) -> PathBuf {
        self.state.join("state").join("openclaw.sqlite")
    }

    /// The folder of one agent.
    pub(crate) fn agent(&self, id: &str) -> PathBuf {
        self.state.join("agents").join(id)
    }

    /// Lists the agents that have a folder. A link in the place of one is named.
    pub(crate) fn agents(&self) -> Result<Found<String>, Issue> {
        let folder = self.state.join("agents");
        let unreadable =
            |error: std::io::Error| Issue::new(&folder, IssueKind::Unreadable, error.to_string());
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Found::default());
            }
            Err(error) => return Err(unreadable(error)),
        };
        let mut agents = Found::default();
        for entry in entries {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_symlink() {
                let why = "a link stands here; it is not followed";
                let issue = Issue::new(entry.path(), IssueKind::Symlink, why);
                agents.issues.push(issue);
            }
            if kind.is_dir()
                && let Ok(name) = entry.file_name().into_string()
            {
                agents.items.push(name);
            }
        }
        agents.items.sort();
        Ok(agents)
    }

    /// Reads the configuration; `Ok(None)` where there is none.
    pub(crate) fn read_config(&self) -> Result<Option<Value>, Issue> {
        let Some(bytes) = read_bounded(&self.config, CONFIG_LIMIT)? else {
            return Ok(None);
        };
        let corrupt = |why: String| Issue::new(&self.config, IssueKind::Corrupt, why);
        let text = String::from_utf8(bytes).map_err(|error| corrupt(error.to_string()))?;
        parse_to_serde_value::<Value>(&text, &json5())
            .map(Some)
            .map_err(|error| corrupt(error.to_string()))
    }
}

/// JSON5, as far as OpenClaw's configuration uses it.
pub(crate) fn json5() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: true,
        allow_trailing_commas: true,
        allow_missing_commas: false,
        allow_single_quoted_strings: true,
        allow_hexadecimal_numbers: true,
        allow_unary_plus_numbers: true,
        allow_bare_decimal_point_numbers: true,
        allow_non_finite_numbers: true,
        allow_extended_string_escapes: true,
    }
}

pub(crate) fn expand(text: &str, user: Option<&Path>) -> PathBuf {
    match (text.strip_prefix("~/"), user) {
        (Some(rest), Some(user)) => user.join(rest),
        _ => PathBuf::from(text),
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_folder_follows_the_variables() {
        let home = |vars: &[(&str, &str)]| Home::of(&Env::of(vars.iter().copied(), "/"));
        let state = |vars: &[(&str, &str)]| home(vars).map(|home| home.state);
        assert_eq!(state(&[("HOME", "/h")]), Some("/h/.openclaw".into()));
        assert_eq!(
            state(&[("HOME", "/h"), ("OPENCLAW_PROFILE", "work")]),
            Some("/h/.openclaw-work".into())
        );
        assert_eq!(
            state(&[("HOME", "/h"), ("OPENCLAW_PROFILE", "../x")]),
            Some("/h/.openclaw".into())
        );
        assert_eq!(
            state(&[("HOME", "/h"), ("OPENCLAW_HOME", "/o")]),
            Some("/o/.openclaw".into())
        );
        let custom = [("HOME", "/h"), ("OPENCLAW_STATE_DIR", "/s")];
        assert_eq!(
            home(&custom).map(|home| home.config),
            Some("/s/openclaw.json".into())
        );
    }
}
