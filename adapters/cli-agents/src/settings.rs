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
        Shape::Flat if file.text()?.is_none() => new_file(client),
        Shape::Groups { .. } | Shape::Flat => file.edited(|top| {
            let hooks = object(top, "hooks")?;
            for (event, _) in client.events {
                let list = hooks
                    .array_value_or_create(event)
                    .ok_or_else(|| format!("hooks.{event} is no list"))?;
                put(client, event, &list);
            }
            Ok(())
        })?,
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
    if !client.is_ours(&text) {
        return Ok(plan);
    }
    let mut is_empty = false;
    let after = file.edited(|top| {
        take_all(client, top);
        // A file that held nothing but our hooks was made for them.
        is_empty = match client.shape {
            Shape::Groups { .. } => top.properties().is_empty(),
            Shape::Flat => top.properties().iter().all(|property| {
                property
                    .name()
                    .is_some_and(|name| name.decoded_value().is_ok_and(|name| name == "version"))
            }),
        };
        Ok(())
    })?;
    let after = Some(after).filter(|_| !is_empty);
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
            let missing = |why| AgentError::NotInstalled {
                agent: client.name,
                why,
            };
            let home = client
                .home(env)
                .ok_or_else(|| missing("the user has no home".to_owned()))?;
            if !home.is_dir() {
                return Err(missing(format!("there is no {}", home.display())));
            }
            Present::read(&home, Path::new(client.user_settings), scope)
        }
    }
}

fn new_file(client: &Client) -> String {
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

/// Puts our hook into the list of one event: an older one is replaced where it stands.
fn put(client: &Client, event: &str, list: &CstArray) {
    let field = client.shape.command_field();
    let command = client.command(event);
    let mut found = false;
    for hook in hooks_of(client, list) {
        if command_of(client, &hook).is_some_and(|text| client.is_ours(&text)) {
            if !found && command_of(client, &hook).as_deref() != Some(command.as_str()) {
                hook.get(field)
                    .map(|property| property.set_value(command.as_str().into()))
                    .unwrap_or_default();
            }
            found = true;
        }
    }
    if found {
        return;
    }
    let hook = |limit: &str, parts: u32| {
        CstInputValue::Object(vec![
            ("type".to_owned(), "command".into()),
            (field.to_owned(), command.as_str().into()),
            (
                limit.to_owned(),
                CstInputValue::Number((SECONDS * parts).to_string()),
            ),
        ])
    };
    list.append(match client.shape {
        Shape::Groups { parts } => CstInputValue::Object(vec![(
            "hooks".to_owned(),
            CstInputValue::Array(vec![hook("timeout", parts)]),
        )]),
        Shape::Flat => hook("timeoutSec", 1),
    });
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
        for hook in hooks_of(client, &groups) {
            if command_of(client, &hook).is_some_and(|text| client.is_ours(&text)) {
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

fn hooks_of(client: &Client, list: &CstArray) -> Vec<CstObject> {
    let elements = list.elements();
    let objects = elements.iter().filter_map(CstNode::as_object);
    match client.shape {
        Shape::Groups { .. } => objects
            .filter_map(|group| group.array_value("hooks"))
            .flat_map(|hooks| hooks.elements())
            .filter_map(|hook| hook.as_object())
            .collect(),
        Shape::Flat => objects.collect(),
    }
}

fn command_of(client: &Client, hook: &CstObject) -> Option<String> {
    hook.get(client.shape.command_field())?
        .value()?
        .as_string_lit()?
        .decoded_value()
        .ok()
}

#[cfg(test)]
mod tests;
