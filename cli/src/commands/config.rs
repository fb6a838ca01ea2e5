//! `git takeup config`
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::printer::{DIM, YELLOW, paint, table};
use crate::reply::{Failure, Reply};
use crate::settings::{self, Setting};

/// Arguments of `config`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The last one wins: built in, ~/.config/takeup/config.toml, `git config --global takeup.KEY`, the\nenvironment (TAKEUP_KEY). A repository's own configuration may set none of them.\n\nExample:\n  git config --global takeup.countReported true"
)]
pub(crate) struct Args {}

/// The answer of `config`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigData {
    /// Every setting.
    settings: Vec<Setting>,
    /// What was wrong: unknown keys, values that are no values, keys that a repository may not set.
    complaints: Vec<String>,
    /// The file of the user's settings; it need not be there.
    user_file: Option<String>,
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of every command")]
pub(crate) fn run(_: Args, context: &Context) -> Result<Reply, Failure> {
    let layered = settings::load(&context.env);
    let rows: Vec<Vec<String>> = layered
        .origins
        .iter()
        .map(|origin| {
            let value = if origin.value.is_empty() {
                "-".to_owned()
            } else {
                origin.value.clone()
            };
            vec![
                origin.key.to_owned(),
                value,
                paint(DIM, &origin.origin),
                paint(DIM, origin.meaning),
            ]
        })
        .collect();
    let mut text = table(&rows);
    for complaint in &layered.complaints {
        text.push_str(&format!(
            "{} {}\n",
            paint(YELLOW, "warning:"),
            takeup_core::text::one_line(complaint, 300)
        ));
    }
    let data = ConfigData {
        settings: layered.origins,
        complaints: layered.complaints,
        user_file: settings::user_file(&context.env)
            .map(|path| path.to_string_lossy().into_owned()),
    };
    Ok(Reply::new(
        takeup_core::text::count(data.settings.len(), "setting", "settings"),
        &data,
    )
    .human(text))
}
