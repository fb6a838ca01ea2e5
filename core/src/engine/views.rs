//! Small shapes that several answers share.
use schemars::JsonSchema;
use serde::Serialize;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextView {
    /// The step, as a stable word.
    pub action: String,
    /// The words of a command that does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl NextView {
    /// Makes a step with the words of its command.
    pub fn new(action: &str, words: &[&str]) -> Self {
        let command = words
            .iter()
            .map(|word| {
                shlex::try_quote(word)
                    .map_or_else(|_| "''".to_owned(), std::borrow::Cow::into_owned)
            })
            .collect::<Vec<_>>()
            .join(" ");
        Self {
            action: action.to_owned(),
            command: Some(command),
        }
    }
}
