//! `git takeup fingerprint`
use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::engine;
use takeup_core::error::Exit;
use takeup_core::fingerprint::Look;

use crate::context::Context;
use crate::printer::{YELLOW, paint};
use crate::reply::{Failure, Reply};

/// Arguments of `fingerprint`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup fingerprint\n  git takeup fingerprint --json --verify\n\nThe tree part is the id that `git add -A && git write-tree` would give in a scratch index.\nReads only. Exit status 1: the tree could not be seen whole."
)]
pub(crate) struct Args {
    /// Trust no file metadata and no cache: read everything
    #[arg(long)]
    verify: bool,

    /// Whose fingerprint: takeup's own, or the one of the OpenCode++ plugin
    #[arg(long, value_name = "FORMAT", default_value = "takeup")]
    format: Format,
}

/// Whose fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// takeup's own.
    Takeup,
    /// The one of the OpenCode++ plugin.
    OpencodePlusplus,
}

/// The answer of `fingerprint`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FingerprintData {
    /// Whose fingerprint: `takeup` or `opencode-plusplus`.
    format: &'static str,
    /// The fingerprint; `null` when the look was incomplete.
    fingerprint: Option<String>,
    /// What was seen and what it cost; `null` for foreign formats.
    look: Option<Look>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let here = context.engine();
    if args.format == Format::OpencodePlusplus {
        // The plugin compares the folder it is started in, whether or not that is the top of a work tree.
        let print = takeup_opencode::fingerprint(&context.env.cwd, &context.env)?.digest;
        let data = FingerprintData {
            format: "opencode-plusplus",
            fingerprint: Some(print.clone()),
            look: None,
        };
        return Ok(Reply::new(print, &data));
    }
    let look = engine::look_here(&here, args.verify)?;
    let print = look.record.fingerprint.as_ref().map(ToString::to_string);
    let why = look.record.incomplete.clone().unwrap_or_default();
    let data = FingerprintData {
        format: "takeup",
        fingerprint: print.clone(),
        look: Some(look),
    };
    if let Some(print) = print {
        return Ok(Reply::new(print, &data));
    }
    let summary = format!("the tree could not be seen whole: {why}");
    let text = format!("{} {summary}", paint(YELLOW, "incomplete:"));
    Ok(Reply::new(&summary, &data).human(text).exit(Exit::No))
}
