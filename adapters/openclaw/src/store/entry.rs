//! The entry of a session, as both stores keep it, and the key it is filed under.
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use takeup_core::text::json_of_agent;

/// The fields that matter here. Unknown ones are left alone; one of another type than expected counts as absent.
/// Channel and delivery fields are private and not read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Entry {
    #[serde(deserialize_with = "lenient")]
    pub(crate) session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) session_file: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) updated_at: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) session_started_at: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) started_at: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) aborted_last_run: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) active_writer_run_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) last_run_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) exec_cwd: Option<PathBuf>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) spawned_cwd: Option<PathBuf>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) spawned_workspace_dir: Option<PathBuf>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) worktree: Option<Worktree>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) goal: Option<Goal>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) display_name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) label: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) archived_at: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) parent_session_key: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) spawned_by: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) system_prompt_report: Option<SystemPromptReport>,
}

/// A managed work tree.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Worktree {
    #[serde(deserialize_with = "lenient")]
    pub(crate) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) repo_root: Option<PathBuf>,
}

/// What the session is for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Goal {
    #[serde(deserialize_with = "lenient")]
    pub(crate) objective: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) status: Option<String>,
}

/// Of this large field only the workspace of the last turn.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SystemPromptReport {
    #[serde(deserialize_with = "lenient")]
    pub(crate) workspace_dir: Option<PathBuf>,
}

/// Reads a value; one of another type is `None`, so that one field of a newer version costs no session.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw = <&'de RawValue>::deserialize(deserializer)?;
    Ok(json_of_agent(raw.get().as_bytes()).ok())
}

impl Entry {
    /// Returns where its commands run, most telling first, without asking the transcript or the shared database.
    pub(crate) fn execution_folder(&self) -> Option<PathBuf> {
        [&self.exec_cwd, &self.spawned_cwd]
            .into_iter()
            .flatten()
            .find(|path| path.is_absolute())
            .cloned()
    }

    /// Returns the folder it is known by where nothing says where its commands run.
    pub(crate) fn fallback_folder(&self) -> Option<PathBuf> {
        let repository = self
            .worktree
            .as_ref()
            .and_then(|worktree| worktree.repo_root.as_ref());
        let workspace = self
            .system_prompt_report
            .as_ref()
            .and_then(|report| report.workspace_dir.as_ref());
        [repository, self.spawned_workspace_dir.as_ref(), workspace]
            .into_iter()
            .flatten()
            .find(|path| path.is_absolute())
            .cloned()
    }

    /// Returns the best title the entry itself has; a name made of the key alone is none.
    pub(crate) fn title(&self, key: &str) -> Option<&str> {
        let objective = self
            .goal
            .as_ref()
            .and_then(|goal| goal.objective.as_deref());
        [
            objective,
            self.display_name.as_deref(),
            self.label.as_deref(),
        ]
        .into_iter()
        .flatten()
        .find(|text| is_name(text, key))
    }

    /// Tells whether the entry says that a run had begun and not ended.
    pub(crate) fn says_running(&self) -> bool {
        self.status.as_deref() == Some("running")
            || self.active_writer_run_id.is_some() && self.active_writer_run_id != self.last_run_id
    }
}

/// Tells whether a name says more than the key does: OpenClaw names a session by the end of its key where nobody did.
pub(crate) fn is_name(text: &str, key: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text != key && !key.ends_with(&format!(":{text}"))
}

/// Tells whether a session key stands for a conversation: start-up runs, scheduled jobs and webhooks do not.
pub(crate) fn is_conversation(key: &str) -> bool {
    let kind = match key.split_once(':') {
        Some(("agent", rest)) => rest
            .split_once(':')
            .map_or("", |(_, kind)| kind.split(':').next().unwrap_or(kind)),
        Some((kind, _)) => kind,
        None => key,
    };
    !matches!(kind, "boot" | "cron" | "hook")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_machinery_are_no_conversations() {
        for key in [
            "agent:main:main",
            "agent:main:telegram:group:-100/7",
            "agent:a/b:explicit:0b0c",
            "global",
            "agent:cron:main",
            "",
        ] {
            assert!(is_conversation(key), "{key}");
        }
        for key in [
            "cron:7",
            "hook:0b0c",
            "agent:main:boot:1",
            "agent:main:cron:7:run:2",
        ] {
            assert!(!is_conversation(key), "{key}");
        }
    }

    #[test]
    fn a_field_of_another_type_costs_no_entry() {
        let entry: Entry = serde_json::from_str(
            r#"{"execCwd":5,"spawnedCwd":"/r","status":{"new":1},"goal":{"objective":"t"},"x":[[[]]]}"#,
        )
        .unwrap();
        assert_eq!(entry.execution_folder(), Some("/r".into()));
        assert_eq!(entry.title("agent:main:main"), Some("t"));
        assert_eq!(entry.status, None);
    }
}
