//! Settings of git: keys, scopes, and those given on the command line.
use schemars::JsonSchema;
use serde::Serialize;

use crate::env::Env;

/// One setting in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigEntry {
    /// The key, section and name in lower case.
    pub key: String,
    /// The value; `true` for a key without one. Bytes that are not UTF-8 are written as in
    /// [`crate::paths::text_of_bytes`].
    pub value: String,
    /// Where it was set.
    pub scope: ConfigScope,
}

impl ConfigEntry {
    /// Returns the value as a truth value, as git reads one; `None` where it is none.
    pub fn as_bool(&self) -> Option<bool> {
        match self.value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" | "" => Some(false),
            other => other.parse::<i64>().ok().map(|number| number != 0),
        }
    }
}

/// Where a setting was made, as `git config --show-scope` names it; later ones win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigScope {
    /// For the machine.
    System,
    /// For the user.
    Global,
    /// For the repository.
    Local,
    /// For one work tree.
    Worktree,
    /// For this call (`git -c`, `GIT_CONFIG_COUNT`).
    Command,
}

impl ConfigScope {
    /// Returns git's name of the scope.
    pub const fn code(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Global => "global",
            Self::Local => "local",
            Self::Worktree => "worktree",
            Self::Command => "command",
        }
    }
}

/// Writes a key as git lists it: section and name in lower case, a subsection as it is.
pub fn config_key(key: &str) -> String {
    match (key.find('.'), key.rfind('.')) {
        (Some(first), Some(last)) if first < last => {
            let (section, rest) = key.split_at(first);
            let (subsection, name) = rest.split_at(last - first);
            section.to_ascii_lowercase() + subsection + &name.to_ascii_lowercase()
        }
        _ => key.to_ascii_lowercase(),
    }
}

/// Reads the settings of this call from the environment: `GIT_CONFIG_PARAMETERS` (what `git -c` sets for its children),
/// then `GIT_CONFIG_COUNT` with its keys and values, git-config(1). Neither implementation gets to see these variables,
/// so both add them here. What git would refuse is passed by.
pub(super) fn of_environment(env: &Env) -> Vec<ConfigEntry> {
    let mut found = Vec::new();
    let mut add = |key: &str, value: Option<&str>| {
        if key.contains('.') {
            found.push(ConfigEntry {
                key: config_key(key),
                value: value.unwrap_or("true").to_owned(),
                scope: ConfigScope::Command,
            });
        }
    };
    if let Some(count) = env
        .text("GIT_CONFIG_COUNT")
        .and_then(|n| n.parse::<u16>().ok())
    {
        for n in 0..count {
            let Some(key) = env.text(&format!("GIT_CONFIG_KEY_{n}")) else {
                break;
            };
            add(
                key,
                Some(
                    env.text(&format!("GIT_CONFIG_VALUE_{n}"))
                        .unwrap_or_default(),
                ),
            );
        }
    }
    for (key, value) in parameters(env.text("GIT_CONFIG_PARAMETERS").unwrap_or_default()) {
        add(&key, value.as_deref());
    }
    found
}

/// Splits `'key'='value' 'key2'='value2'` (git 2.31 and later) and the older `'key=value'`, each part in single quotes as
/// the shell reads them.
fn parameters(text: &str) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let Some((first, tail)) = unquote(rest) else {
            break;
        };
        rest = tail;
        if let Some(tail) = rest.strip_prefix('=') {
            if tail.is_empty() || tail.starts_with(' ') {
                found.push((first, None));
                rest = tail.trim_start();
                continue;
            }
            let Some((value, tail)) = unquote(tail) else {
                break;
            };
            found.push((first, Some(value)));
            rest = tail.trim_start();
        } else {
            match first.split_once('=') {
                Some((key, value)) => found.push((key.to_owned(), Some(value.to_owned()))),
                None => found.push((first, None)),
            }
            rest = rest.trim_start();
        }
    }
    found
}

/// Reads one quoted word: `'…'`, with `'\''` and `'\!'` inside for the two characters that git quotes so.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut word = String::new();
    loop {
        let (part, tail) = rest.split_once('\'')?;
        word.push_str(part);
        let mut escaped = tail.chars();
        match (escaped.next(), escaped.next(), escaped.next()) {
            (Some('\\'), Some(c @ ('\'' | '!')), Some('\'')) => {
                word.push(c);
                rest = escaped.as_str();
            }
            _ => return Some((word, tail)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_subsection() {
        assert_eq!(config_key("Core.HooksPath"), "core.hookspath");
        assert_eq!(config_key("Hook.My.Name.Command"), "hook.My.Name.command");
    }

    #[test]
    fn settings_of_the_call_are_read_as_git_writes_them() {
        // Written by git 2.47 for: git -c a.b=c -c A.Sub.D="it's!" -c e.f …
        let env = Env::of(
            [
                (
                    "GIT_CONFIG_PARAMETERS",
                    r"'a.b'='c' 'A.Sub.D'='it'\''s'\!'' 'e.f'=",
                ),
                ("GIT_CONFIG_COUNT", "1"),
                ("GIT_CONFIG_KEY_0", "x.y"),
                ("GIT_CONFIG_VALUE_0", "z"),
            ],
            "/",
        );
        let found: Vec<_> = of_environment(&env)
            .into_iter()
            .map(|entry| (entry.key, entry.value))
            .collect();
        let expected = [
            ("x.y", "z"),
            ("a.b", "c"),
            ("a.Sub.d", "it's!"),
            ("e.f", "true"),
        ];
        assert_eq!(
            found,
            expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
        assert_eq!(
            parameters("'a.b=c d'"),
            [("a.b".to_owned(), Some("c d".to_owned()))]
        );
        assert!(parameters("'a.b").is_empty());
    }
}
