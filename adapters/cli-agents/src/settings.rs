//! Our hooks in the clients' settings.
use std::path::Path;

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject};
use takeup_core::agent::AgentError;
use takeup_core::env::Env;
use takeup_core::ids::AgentId;
use takeup_core::integration::{EditPlan, IntegrationState, PROGRAM, Scope, unreachable};

use crate::clients::{Call, Client, Shape};
use crate::json::{Former, Present, all, list, object};
use crate::programs::is_gone_for_shell;

/// How long a client waits for one of our hooks, in seconds. Ours end sooner by themselves.
const SECONDS: u32 = 10;

/// Plans the installation.
pub(crate) fn install(client: &Client, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
    let file = present(client, env, scope)?;
    let mut plan = EditPlan::default();
    let mut found = Vec::new();
    let after = match client.shape {
        Shape::Flat if file.text()?.is_none() => new_file(client),
        Shape::Groups { .. } | Shape::Flat => file.edited(|top| {
            let hooks = object(top, "hooks")?;
            for (event, _) in client.events {
                put(client, event, &list(&hooks, event)?);
            }
            found = calls(client, top);
            Ok(())
        })?,
    };
    for event in inside(&found) {
        plan.notes.push(format!(
            "{}: in {event}, {PROGRAM} is called inside another command; that one is left as it is, and no second call is added",
            file.path.display()
        ));
    }
    let is_bare = |(_, call): &(String, Call)| matches!(call, Call::Ours { program, .. } if program == PROGRAM);
    if found.is_empty() || found.iter().any(is_bare) {
        plan.notes.extend(unreachable(env));
    }
    file.put(Some(after), 0o644, &mut plan);
    if let (Some(note), false) = (client.note, plan.edits.is_empty()) {
        plan.notes.push(note.to_owned());
    }
    Ok(plan)
}

/// Plans the removal: of every hook of ours, of any version, and of nothing else.
pub(crate) fn uninstall(
    client: &Client,
    agent: &AgentId,
    env: &Env,
    scope: &Scope,
) -> Result<EditPlan, AgentError> {
    let file = present(client, env, scope)?;
    let mut plan = EditPlan::default();
    let Some(text) = file.text()? else {
        return Ok(plan);
    };
    let mut left = Vec::new();
    let mut is_empty = false;
    let former = Former::of(env, agent, scope, &file.path);
    let after = file.edited(|top| {
        let is_any = calls(client, top).iter().any(|(_, call)| is_ours(call));
        if is_any {
            take_all(client, top, &former);
        }
        left = calls(client, top);
        // A file that held nothing but our hooks was made for them.
        is_empty = is_any
            && match client.shape {
                Shape::Groups { .. } => top.properties().is_empty(),
                Shape::Flat => top.properties().iter().all(|property| {
                    property
                        .decoded_name()
                        .is_some_and(|name| name == "version")
                }),
            };
        Ok(())
    });
    let after = match after {
        // In what cannot be read, and does not name us, is nothing of ours.
        Err(_) if !text.contains(PROGRAM) => return Ok(plan),
        after => after?,
    };
    for event in inside(&left) {
        plan.notes.push(format!(
            "{}: in {event}, {PROGRAM} is called inside another command; that one is left: take the call out by hand",
            file.path.display()
        ));
    }
    let after = if is_empty {
        file.emptied(env, agent, scope, after)
    } else {
        Some(after)
    };
    file.put(after, 0o644, &mut plan);
    Ok(plan)
}

/// Looks whether the hooks are there, and run.
pub(crate) fn state(client: &Client, env: &Env, scope: &Scope) -> IntegrationState {
    let outdated = |what: String| IntegrationState::Outdated { what };
    let file = match present(client, env, scope) {
        Ok(file) => file,
        Err(AgentError::NotInstalled { .. }) => return IntegrationState::Absent,
        Err(error) => return outdated(error.to_string()),
    };
    let text = match file.text() {
        Ok(Some(text)) => text,
        Ok(None) => return IntegrationState::Absent,
        Err(error) => return outdated(error.to_string()),
    };
    let mut found = Vec::new();
    let looked = file.edited(|top| {
        found = calls(client, top);
        Ok(())
    });
    if found.is_empty() {
        return match looked {
            Err(error) if text.contains(PROGRAM) => outdated(error.to_string()),
            Ok(_) | Err(_) => IntegrationState::Absent,
        };
    }
    if let Some(what) = switched_off(client, env, scope) {
        return outdated(what);
    }
    let plan = match install(client, env, scope) {
        Ok(plan) => plan,
        Err(error) => return outdated(error.to_string()),
    };
    let mut programs = found.iter().filter_map(|(_, call)| match call {
        Call::Ours { program, .. } => Some(program.as_str()),
        Call::Inside | Call::Other => None,
    });
    let is_any = programs.clone().next().is_some();
    if let Some(gone) = programs.clone().find(|program| is_gone_for_shell(program)) {
        return outdated(format!(
            "hooks in {} call {gone}, which is not there or cannot be executed",
            file.path.display()
        ));
    }
    match plan.edits.first() {
        // Calls that stand in somebody else's commands alone, and not at every event, are no installation.
        Some(_) if !is_any => IntegrationState::Absent,
        Some(edit) => outdated(format!(
            "hooks in {} are missing, there twice, or of another version",
            edit.path.display()
        )),
        None if programs.any(|program| program == PROGRAM) => {
            IntegrationState::Installed.as_reached(env)
        }
        None => IntegrationState::Installed,
    }
}

/// Says which setting keeps a client's hooks from running, and where it stands.
fn switched_off(client: &Client, env: &Env, scope: &Scope) -> Option<String> {
    let switch = client.off_switch.as_ref()?;
    let mut files: Vec<Present> = Vec::new();
    if let Scope::Project { root } = scope {
        let read = |path: &&str| Present::read(env, root, Path::new(path), scope).ok();
        files.extend(switch.in_project.iter().filter_map(read));
    }
    files.extend(present(client, env, &Scope::User));
    let said = |file: Present| Some((file.switch(switch.path)?, file.path));
    let (value, path) = files.into_iter().find_map(said)?;
    (value == switch.off).then(|| {
        format!(
            "{} is {value} in {}, so none of its hooks runs",
            switch.path.join("."),
            path.display()
        )
    })
}

fn present(client: &Client, env: &Env, scope: &Scope) -> Result<Present, AgentError> {
    match scope {
        Scope::Project { root } => {
            Present::read(env, root, Path::new(client.project_settings), scope)
        }
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
            Present::read(env, &home, Path::new(client.user_settings), scope)
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

/// Puts our hook into the list of one event: an older one is replaced where it stands, by the program it names if that is
/// there, and a second one for the same is taken out. A command of somebody else that calls ours stays, and does for it.
fn put(client: &Client, event: &str, groups: &CstArray) {
    let field = client.shape.command_field();
    let mut served: Vec<Option<String>> = Vec::new();
    let mut found = false;
    for (matcher, hook) in hooks_of(client, groups) {
        match call_of(client, event, &hook) {
            Call::Other => {}
            Call::Inside => found = true,
            Call::Ours { .. } if served.contains(&matcher) => hook.remove(),
            Call::Ours {
                program,
                is_current,
            } => {
                let program = if is_gone_for_shell(&program) {
                    PROGRAM
                } else {
                    &program
                };
                let command = client.command_by(program, event);
                if !is_current || command_of(client, &hook).as_deref() != Some(command.as_str()) {
                    hook.get(field)
                        .map(|property| property.set_value(command.as_str().into()))
                        .unwrap_or_default();
                }
                served.push(matcher);
                found = true;
            }
        }
    }
    tidy(groups);
    let command = client.command(event);
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
    groups.append(match client.shape {
        Shape::Groups { parts } => CstInputValue::Object(vec![(
            "hooks".to_owned(),
            CstInputValue::Array(vec![hook("timeout", parts)]),
        )]),
        Shape::Flat => hook("timeoutSec", 1),
    });
}

/// Takes our hooks out, and what is empty then, as far as its owner did not have it so.
fn take_all(client: &Client, top: &CstObject, former: &Former) {
    for property in all(top, "hooks") {
        let Some(hooks) = property.object_value() else {
            continue;
        };
        for event in hooks.properties() {
            let (Some(name), Some(groups)) = (event.decoded_name(), event.array_value()) else {
                continue;
            };
            for (_, hook) in hooks_of(client, &groups) {
                if is_ours(&call_of(client, &name, &hook)) {
                    hook.remove();
                }
            }
            tidy(&groups);
            if groups.elements().is_empty() && !former.held_empty(&["hooks", &name]) {
                event.remove();
            }
        }
        if hooks.properties().is_empty() && !former.held_empty(&["hooks"]) {
            property.remove();
        }
    }
}

/// Takes out groups that hold nothing.
fn tidy(groups: &CstArray) {
    for group in groups.elements() {
        let emptied = group
            .as_object()
            .and_then(|group| group.array_value("hooks"))
            .is_some_and(|hooks| hooks.elements().is_empty());
        if emptied {
            group.remove();
        }
    }
}

/// Returns every command that has to do with us, with its event.
fn calls(client: &Client, top: &CstObject) -> Vec<(String, Call)> {
    let events = all(top, "hooks")
        .into_iter()
        .filter_map(|property| property.object_value())
        .flat_map(|hooks| hooks.properties());
    events
        .filter_map(|event| Some((event.decoded_name()?, event.array_value()?)))
        .flat_map(|(event, groups)| {
            let hooks = hooks_of(client, &groups).into_iter();
            hooks
                .map(|(_, hook)| (event.clone(), call_of(client, &event, &hook)))
                .collect::<Vec<_>>()
        })
        .filter(|(_, call)| *call != Call::Other)
        .collect()
}

/// Returns the events at which a call of ours stands inside another command.
fn inside(calls: &[(String, Call)]) -> impl Iterator<Item = &str> {
    let calls = calls.iter().filter(|(_, call)| *call == Call::Inside);
    calls.map(|(event, _)| event.as_str())
}

const fn is_ours(call: &Call) -> bool {
    matches!(call, Call::Ours { .. })
}

fn call_of(client: &Client, event: &str, hook: &CstObject) -> Call {
    command_of(client, hook).map_or(Call::Other, |command| client.call(event, &command))
}

/// Returns the hooks of an event, each with what its group is for.
fn hooks_of(client: &Client, list: &CstArray) -> Vec<(Option<String>, CstObject)> {
    let elements = list.elements();
    let objects = elements.iter().filter_map(CstNode::as_object);
    match client.shape {
        Shape::Groups { .. } => objects
            .filter_map(|group| {
                let matcher = group.get("matcher").map(|matcher| matcher.to_string());
                let hooks = group.array_value("hooks")?.elements();
                Some(hooks.into_iter().map(move |hook| (matcher.clone(), hook)))
            })
            .flatten()
            .filter_map(|(matcher, hook)| Some((matcher, hook.as_object()?)))
            .collect(),
        Shape::Flat => objects.map(|hook| (None, hook)).collect(),
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
