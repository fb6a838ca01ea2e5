//! What agents keep by themselves and takeup does not read: said where it would otherwise seem that nothing was left.
use std::path::Path;

use takeup_core::paths::text_of_path;
use takeup_core::text;

use crate::context::Context;
use crate::printer::{DIM, paint};

/// Returns one sentence for each agent that keeps sessions of this work tree, or of any, that are not read.
pub(crate) fn unread(context: &Context, root: Option<&Path>) -> Vec<String> {
    let root = root.unwrap_or(&context.env.cwd);
    let found = context.agents.iter().filter_map(|agent| {
        let folder = agent.unread(&context.env, root)?;
        Some(format!(
            "what {} itself keeps is not read ({}); what its hooks record is: git takeup agents install {}",
            agent.name(),
            text::one_line(&text_of_path(&folder), 300),
            agent.id()
        ))
    });
    found.collect()
}

/// Shows the same to people.
pub(crate) fn page(context: &Context, root: Option<&Path>) -> String {
    unread(context, root)
        .iter()
        .fold(String::new(), |page, line| page + &paint(DIM, line) + "\n")
}
