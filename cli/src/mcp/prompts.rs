//! The prompts: what a person may ask of any agent with one word.
use rmcp::model::{
    ErrorData, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role,
};
use serde_json::Value;
use takeup_core::text;

struct Known {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    text: &'static str,
}

const KNOWN: &[Known] = &[
    Known {
        name: "take-up",
        title: "Take up a task",
        description: "Go on with what another session left, if it is still as it was left",
        text: "Take up unfinished work in this repository{task}.\n1. Call takeup_inspect and tell me what may be taken up, with verdict and reasons.\n2. When I have chosen, call takeup_resume; I am asked for my yes there.\n3. Where content changed, read the changed files before you edit any. Where calls may or may not have happened, look first and do not repeat them.\n4. Call takeup_evaluate and takeup_next, and follow the next step.",
    },
    Known {
        name: "hand-over",
        title: "Hand over a task",
        description: "Leave the work so that another agent can go on",
        text: "Prepare the hand-over of your work{task} to another agent.\n1. Leave a remark with takeup_note: what is done, what is left, what was tried and failed, what to avoid.\n2. Call takeup_save.\n3. Call takeup_handover and show me the document.",
    },
    Known {
        name: "wrap-up",
        title: "Wrap up before the context ends",
        description: "Record everything while there is still room",
        text: "Your context is about to end. Do no further work{task}.\n1. Leave a remark with takeup_note: where you are, the next step, open questions.\n2. Call takeup_save with end and the reason.\n3. Tell me in one line how to go on.",
    },
];

/// Returns the prompts.
pub(super) fn all() -> Vec<Prompt> {
    KNOWN
        .iter()
        .map(|known| {
            let task = PromptArgument::new("task")
                .with_description("The task; the session's own where none is named")
                .with_required(false);
            Prompt::new(known.name, Some(known.description), Some(vec![task]))
                .with_title(known.title)
        })
        .collect()
}

/// Returns a prompt's text.
pub(super) fn get(
    name: &str,
    arguments: Option<&JsonObject>,
) -> Result<GetPromptResult, ErrorData> {
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else {
        return Err(ErrorData::invalid_params(
            format!("there is no prompt {name:?}"),
            None,
        ));
    };
    let task = arguments
        .and_then(|arguments| arguments.get("task")?.as_str())
        .map(|task| text::one_line(task, 200))
        .filter(|task| !task.is_empty())
        .map(|task| format!(" (task {})", Value::String(task)))
        .unwrap_or_default();
    let text = known.text.replace("{task}", &task);
    let mut result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    result.description = Some(known.description.to_owned());
    Ok(result)
}
