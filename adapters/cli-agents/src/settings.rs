//! Our hooks in the clients' settings.
use std::path::Path;

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject};
use takeup_core::agent::AgentError;
use takeup_core::env::Env;
use takeup_core::integration::{EditPlan, IntegrationState, Scope};

use crate::clients::{Client, Shape};
use crate::json::{Present, object};

/// How long a client waits for one of our hooks, in seconds. Ours end sooner by themselves.
const SECONDS: u32 = 10;

/// Plans the installation.
pub(crate) fn install(client: &Client, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
    let file = present(client, env, scope)?;
    let mut plan = EditPlan::default();
    let after = match client.shape {
        Shape::Groups { parts } => file.edited(|top| {
            let hooks = object(top, "hooks")?;
            for (event, _) in client.events {
                let groups = hooks
                    .array_value_or_create(event)
                    .ok_or_else(|| format!("hooks.{event} is no list"))?;
                put(client, event, parts, &groups);
            }
            Ok(())
        })?,
        Shape::OwnFile => own_file(client),
    };
    file.put(Some(after), 0o644, &mut plan);
    if let (Some(note), false) = (client.note, plan.edits.is_empty()) {
        plan.notes.push(note.to_owned());
    }
    Ok(plan)
}

/// Plans the removal: of every hook of ours, of any version, and of nothing else.
pub(crate) fn uninstall(client: &Client, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
    let file = present(client, env, scope)?;
    let mut plan = EditPlan::default();
    let Some(text) = file.text()? else {
        return Ok(plan);
    };
    let after = match client.shape {
        Shape::Groups { .. } if !client.is_ours(&text) => return Ok(plan),
        Shape::Groups { .. } => Some(file.edited(|top| {
            take_all(client, top);
            Ok(())
        })?),
        Shape::OwnFile if client.is_ours(&text) => None,
        Shape::OwnFile => {
            let note = format!("{} was edited and is left", file.path.display());
            plan.notes.push(note);
            return Ok(plan);
        }
    };
    // A file that held nothing but our hooks was made for them.
    let after = after.filter(|text| text.trim() != "{}");
    file.put(after, 0o644, &mut plan);
    Ok(plan)
}

/// Looks whether the hooks are there.
pub(crate) fn state(client: &Client, env: &Env, scope: &Scope) -> IntegrationState {
    let file = present(client, env, scope);
    if let (Ok(file), Some(switch)) = (&file, client.off_switch)
        && file.is_on(switch)
        && file
            .text()
            .is_ok_and(|text| text.is_some_and(|text| client.is_ours(&text)))
    {
        return IntegrationState::Outdated {
            what: format!(
                "{switch} is true in {}, so none of its hooks runs",
                file.path.display()
            ),
        };
    }
    let text = file.and_then(|file| file.text());
    match (text, install(client, env, scope)) {
        (Ok(None), _) | (_, Err(AgentError::NotInstalled { .. })) => IntegrationState::Absent,
        (Ok(Some(text)), _) if !client.is_ours(&text) => IntegrationState::Absent,
        (Ok(Some(_)), Ok(plan)) => match plan.edits.first() {
            None => IntegrationState::Installed,
            Some(edit) => IntegrationState::Outdated {
                what: format!(
                    "hooks in {} are missing or of another version",
                    edit.path.display()
                ),
            },
        },
        (Err(error), _) | (_, Err(error)) => IntegrationState::Outdated {
            what: error.to_string(),
        },
    }
}

fn present(client: &Client, env: &Env, scope: &Scope) -> Result<Present, AgentError> {
    match scope {
        Scope::Project { root } => Present::read(root, Path::new(client.project_settings), scope),
        Scope::User => {
            let home = client.home(env).filter(|home| home.is_dir());
            let home = home.ok_or_else(|| AgentError::NotInstalled {
                agent: client.name,
                why: format!("there is no ~/{}", client.home_folder),
            })?;
            Present::read(&home, Path::new(client.user_settings), scope)
        }
    }
}

fn own_file(client: &Client) -> String {
    let mut hooks = serde_json::Map::new();
    for (event, _) in client.events {
        let entry = serde_json::json!([{
            "type": "command",
            "bash": client.command(event),
            "timeoutSec": SECONDS,
        }]);
        hooks.insert((*event).to_owned(), entry);
    }
    let file = serde_json::json!({ "version": 1, "hooks": hooks });
    format!("{file:#}\n")
}

/// Puts our hook into the groups of one event: an older one is replaced where it stands.
fn put(client: &Client, event: &str, parts: u32, groups: &CstArray) {
    let command = client.command(event);
    let mut found = false;
    for hook in hooks_of(groups) {
        if command_of(&hook).is_some_and(|text| client.is_ours(&text)) {
            if !found && command_of(&hook).as_deref() != Some(command.as_str()) {
                hook.get("command")
                    .map(|property| property.set_value(command.as_str().into()))
                    .unwrap_or_default();
            }
            found = true;
        }
    }
    if !found {
        let hook = CstInputValue::Object(vec![
            ("type".to_owned(), "command".into()),
            ("command".to_owned(), command.into()),
            (
                "timeout".to_owned(),
                CstInputValue::Number((SECONDS * parts).to_string()),
            ),
        ]);
        groups.append(CstInputValue::Object(vec![(
            "hooks".to_owned(),
            CstInputValue::Array(vec![hook]),
        )]));
    }
}

fn take_all(client: &Client, top: &CstObject) {
    let Some(property) = top.get("hooks") else {
        return;
    };
    let Some(hooks) = property.object_value() else {
        return;
    };
    for event in hooks.properties() {
        let Some(groups) = event.array_value() else {
            continue;
        };
        for hook in hooks_of(&groups) {
            if command_of(&hook).is_some_and(|text| client.is_ours(&text)) {
                hook.remove();
            }
        }
        for group in groups.elements() {
            let emptied = group
                .as_object()
                .and_then(|group| group.array_value("hooks"))
                .is_some_and(|hooks| hooks.elements().is_empty());
            if emptied {
                group.remove();
            }
        }
        if groups.elements().is_empty() {
            event.remove();
        }
    }
    if hooks.properties().is_empty() {
        property.remove();
    }
}

fn hooks_of(groups: &CstArray) -> Vec<CstObject> {
    groups
        .elements()
        .iter()
        .filter_map(CstNode::as_object)
        .filter_map(|group| group.array_value("hooks"))
        .flat_map(|hooks| hooks.elements())
        .filter_map(|hook| hook.as_object())
        .collect()
}

fn command_of(hook: &CstObject) -> Option<String> {
    hook.get("command")?
        .value()?
        .as_string_lit()?
        .decoded_value()
        .ok()
}

#[cfg(test)]
mod tests;
