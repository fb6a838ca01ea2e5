//! The drop-ins: hooks in `config.toml`, an entry in `mcp.json`, a skill.
//!
//! Who owns what: `config.toml` and `mcp.json` are the person's. Of the first only the values of the hooked events are
//! changed, of the second only the entry `takeup`; comments, order and all else stay. jcode has one command for each
//! event: where one is there already, ours is put before it and the old one still runs, with its own words at the end of
//! the line. The folder `skills/takeup` is ours.
use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use takeup_core::agent::AgentError;
use takeup_core::env::Env;
use takeup_core::ids::AgentId;
use takeup_core::integration::{Edit, EditPlan, IntegrationState, Scope, in_form_of};
use takeup_core::issue::{Issue, IssueKind};
use toml_edit::{Array, DocumentMut, Item, Table, Value};

use crate::adapter::NAME;
use crate::home::{Home, Part};
use crate::hook::EVENTS;

/// The skill.
const SKILL: &str = include_str!("skill.md");

/// What a chained command begins with: ours runs, then the words behind are the old command.
fn chain(event: &str) -> String {
    format!("sh -c 'git-takeup hook jcode {event}; exec \"$@\"' takeup ")
}

/// Our command for an event.
fn command(event: &str) -> String {
    format!("git-takeup hook jcode {event}")
}

/// Tells whether a command is ours, alone or before another.
fn is_ours(text: &str, event: &str) -> bool {
    text == command(event) || text.starts_with(&chain(event))
}

fn unsupported() -> AgentError {
    AgentError::Unsupported {
        agent: NAME,
        what: "be integrated for one project, since its hooks are the user's; add --user",
    }
}

/// Plans the installation.
pub(crate) fn install(home: &Home, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
    if *scope != Scope::User {
        return Err(unsupported());
    }
    let mut plan = EditPlan::default();
    if !home.root().is_dir() {
        return Err(AgentError::NotInstalled {
            agent: NAME,
            why: format!("{} is no folder", home.root().display()),
        });
    }
    let (path, before) = read(home, env, Part::Config)?;
    let after = with_hooks(&path, before.as_deref(), env)?;
    push(&mut plan, path, before, after);

    let (path, before) = read(home, env, Part::Mcp)?;
    if before.is_none() && has_codex_settings(env) {
        plan.notes.push(format!(
            "{} is not there yet, and jcode makes it itself from other settings when it first starts: start jcode once, then install again to add the MCP server",
            path.display()
        ));
    } else {
        let after = with_server(&path, before.as_deref())?;
        push(&mut plan, path, before, Some(after));
    }

    let (path, before) = read(home, env, Part::Skill)?;
    if before.as_deref().is_some_and(|bytes| !is_our_skill(bytes)) {
        plan.notes.push(format!(
            "{} is there and is not takeup's; it is left: move it away and install again",
            path.display()
        ));
    } else {
        push(&mut plan, path, before, Some(SKILL.as_bytes().to_vec()));
    }
    if !plan.edits.is_empty() {
        plan.notes.push(
            "a jcode server that runs already has to be started again to see the hooks".to_owned(),
        );
    }
    Ok(plan)
}

/// Plans the removal.
pub(crate) fn uninstall(home: &Home, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
    if *scope != Scope::User {
        return Err(unsupported());
    }
    let mut plan = EditPlan::default();
    let (path, before) = read(home, env, Part::Config)?;
    if let Some(bytes) = &before {
        let after = without_hooks(&path, bytes)?;
        push(&mut plan, path, before, Some(after));
    }
    let (path, before) = read(home, env, Part::Mcp)?;
    if let Some(bytes) = &before {
        let after = without_server(&path, bytes)?;
        push(&mut plan, path, before, Some(after));
    }
    let (path, before) = read(home, env, Part::Skill)?;
    if let Some(bytes) = &before {
        if is_our_skill(bytes) {
            push(&mut plan, path, before, None);
        } else {
            plan.notes
                .push(format!("{} is not ours; it stays", path.display()));
        }
    }
    Ok(plan)
}

/// Tells whether a skill is ours, of any version.
fn is_our_skill(bytes: &[u8]) -> bool {
    bytes.starts_with(b"---\nname: takeup\n")
}

/// Leaves the skill out where somebody edited it since; the other files are the person's.
pub(crate) fn without_edited(
    plan: EditPlan,
    home: &Home,
    env: &Env,
    agent: &AgentId,
    scope: &Scope,
) -> EditPlan {
    let skill = home.path(Part::Skill);
    plan.without_edited(env, agent, scope, |path| path == skill)
}

/// Looks at the drop-ins.
pub(crate) fn state(home: &Home, env: &Env, scope: &Scope) -> IntegrationState {
    if *scope != Scope::User || !home.root().is_dir() {
        return IntegrationState::Absent;
    }
    let (missing, present) = match (install(home, env, scope), uninstall(home, env, scope)) {
        (Ok(missing), Ok(present)) => (missing, present),
        (Err(error), _) | (_, Err(error)) => {
            return IntegrationState::Outdated {
                what: error.to_string(),
            };
        }
    };
    if present.edits.is_empty() {
        return IntegrationState::Absent;
    }
    if missing.edits.is_empty() {
        return IntegrationState::Installed.as_reached(env);
    }
    let files: Vec<String> = missing
        .edits
        .iter()
        .map(|edit| edit.path.display().to_string())
        .collect();
    IntegrationState::Outdated {
        what: format!("not as installed: {}", files.join(", ")),
    }
}

/// Tells whether jcode would take over another client's settings at its first start. They are not opened.
fn has_codex_settings(env: &Env) -> bool {
    env.home()
        .is_some_and(|home| std::fs::symlink_metadata(home.join(".codex/config.toml")).is_ok())
}

type Found = (std::path::PathBuf, Option<Vec<u8>>);

fn read(home: &Home, env: &Env, part: Part<'_>) -> Result<Found, AgentError> {
    let found = if matches!(part, Part::Config | Part::Mcp) {
        home.read_own(env, part)
    } else {
        home.read(part).map(|bytes| (home.path(part), bytes))
    };
    found.map_err(AgentError::Damaged)
}

fn push(
    plan: &mut EditPlan,
    path: std::path::PathBuf,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
) {
    let after = match (&before, after) {
        (Some(before), Some(after)) => Some(in_form(before, after)),
        (_, after) => after,
    };
    if before != after {
        plan.edits.push(Edit {
            path,
            before,
            after,
            mode: 0o600,
        });
    }
}

/// Leaves the ends of lines and a byte order mark as they were; nobody but us writes the skill.
fn in_form(before: &[u8], after: Vec<u8>) -> Vec<u8> {
    match (std::str::from_utf8(before), std::str::from_utf8(&after)) {
        (Ok(before), Ok(text)) => in_form_of(before, text).into_bytes(),
        _ => after,
    }
}

fn damaged(path: &Path, message: impl std::fmt::Display) -> AgentError {
    AgentError::Damaged(Issue::new(
        path,
        IssueKind::Corrupt,
        format!("it cannot be read, so nothing is changed: {message}"),
    ))
}

fn parse(path: &Path, bytes: &[u8]) -> Result<DocumentMut, AgentError> {
    let text = std::str::from_utf8(bytes).map_err(|error| damaged(path, error))?;
    text.parse()
        .map_err(|error: toml_edit::TomlError| damaged(path, error.message()))
}

/// Puts our command into each event's value.
fn with_hooks(
    path: &Path,
    before: Option<&[u8]>,
    env: &Env,
) -> Result<Option<Vec<u8>>, AgentError> {
    let mut document = parse(path, before.unwrap_or_default())?;
    let hooks = document
        .entry("hooks")
        .or_insert_with(|| Item::Table(Table::new()));
    let Some(hooks) = hooks.as_table_like_mut() else {
        return Err(damaged(path, "`hooks` is no table"));
    };
    let mut changed = false;
    for event in EVENTS {
        let Some(item) = hooks.get_mut(event) else {
            hooks.insert(event, toml_edit::value(command(event)));
            changed = true;
            continue;
        };
        let Some(value) = item.as_value_mut() else {
            return Err(damaged(path, format!("`hooks.{event}` is no value")));
        };
        changed |= put_before(value, event, env).ok_or_else(|| {
            damaged(
                path,
                format!("`hooks.{event}` is neither a command nor a list of them"),
            )
        })?;
    }
    Ok(if changed {
        Some(document.to_string().into_bytes())
    } else {
        before.map(<[u8]>::to_vec)
    })
}

/// Puts our command into one value; tells whether that changed it.
fn put_before(value: &mut Value, event: &str, env: &Env) -> Option<bool> {
    let new = match value {
        Value::String(text) => {
            let old = text.value().trim();
            if is_ours(old, event) {
                return Some(false);
            }
            if old.is_empty() {
                command(event)
            } else {
                format!("{}{}", chain(event), absolute(old, env))
            }
        }
        // Newer versions take a list of commands.
        Value::Array(list) => {
            let there = list
                .iter()
                .any(|item| item.as_str().is_some_and(|text| is_ours(text, event)));
            if !there {
                list.push(command(event));
            }
            return Some(!there);
        }
        Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::InlineTable(_) => return None,
    };
    replace(value, new);
    Some(true)
}

/// jcode puts the home in for `~/` at the beginning of a command; behind ours it would not.
fn absolute(command: &str, env: &Env) -> String {
    let home = env.home().and_then(|home| {
        let quoted = shlex::try_quote(home.to_str()?).ok()?.into_owned();
        Some(quoted)
    });
    match (command.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => format!("{home}/{rest}"),
        _ => command.to_owned(),
    }
}

/// Exchanges a value and keeps the space and comments around it.
fn replace(value: &mut Value, new: String) {
    let decor = value.decor().clone();
    *value = Value::from(new);
    *value.decor_mut() = decor;
}

fn without_hooks(path: &Path, before: &[u8]) -> Result<Vec<u8>, AgentError> {
    let mut document = parse(path, before)?;
    let Some(hooks) = document.get_mut("hooks").and_then(Item::as_table_like_mut) else {
        return Ok(before.to_vec());
    };
    let mut changed = false;
    for event in EVENTS {
        let Some(value) = hooks.get_mut(event).and_then(Item::as_value_mut) else {
            continue;
        };
        match value {
            Value::String(text) if text.value() == &command(event) => {
                hooks.remove(event);
                changed = true;
            }
            Value::String(text) => {
                if let Some(old) = text.value().strip_prefix(&chain(event)) {
                    let old = old.to_owned();
                    replace(value, old);
                    changed = true;
                }
            }
            Value::Array(list) => changed |= remove_from(list, event),
            Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_)
            | Value::InlineTable(_) => {}
        }
    }
    Ok(if changed {
        document.to_string().into_bytes()
    } else {
        before.to_vec()
    })
}

fn remove_from(list: &mut Array, event: &str) -> bool {
    let place = list
        .iter()
        .position(|item| item.as_str().is_some_and(|text| is_ours(text, event)));
    if let Some(place) = place {
        list.remove(place);
    }
    place.is_some()
}

/// Strict JSON, as jcode reads it.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn json(path: &Path, bytes: &[u8]) -> Result<(CstRootNode, CstObject), AgentError> {
    let text = std::str::from_utf8(bytes).map_err(|error| damaged(path, error))?;
    let root = CstRootNode::parse(text, &STRICT).map_err(|error| damaged(path, error))?;
    let object = root
        .object_value()
        .ok_or_else(|| damaged(path, "it is no object"))?;
    Ok((root, object))
}

fn server() -> CstInputValue {
    CstInputValue::Object(vec![
        (
            "command".to_owned(),
            CstInputValue::String("git-takeup".to_owned()),
        ),
        (
            "args".to_owned(),
            CstInputValue::Array(vec![CstInputValue::String("mcp".to_owned())]),
        ),
    ])
}

/// The keys under which jcode keeps servers: its own, and the one other clients use.
const SERVERS: [&str; 2] = ["servers", "mcpServers"];

fn with_server(path: &Path, before: Option<&[u8]>) -> Result<Vec<u8>, AgentError> {
    // An empty file holds as much as none.
    let Some(before) = before.filter(|before| !before.trim_ascii().is_empty()) else {
        return Ok(b"{\n  \"mcpServers\": {\n    \"takeup\": {\n      \"command\": \"git-takeup\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}\n".to_vec());
    };
    let (root, object) = json(path, before)?;
    let names = object.properties();
    let named = |name: &str| {
        let is_it = |one: &&CstObjectProp| one.decoded_name().is_some_and(|one| one == name);
        names.iter().filter(is_it).count()
    };
    if let Some(key) = SERVERS.into_iter().find(|key| named(key) > 1) {
        return Err(damaged(
            path,
            format!("`{key}` stands there more than once"),
        ));
    }
    let key = SERVERS
        .into_iter()
        .find(|key| object.get(key).is_some())
        .unwrap_or("mcpServers");
    let servers = object
        .object_value_or_create(key)
        .ok_or_else(|| damaged(path, format!("`{key}` is no object")))?;
    if servers.get("takeup").is_some() {
        return Ok(before.to_vec());
    }
    servers.append("takeup", server());
    Ok(root.to_string().into_bytes())
}

fn without_server(path: &Path, before: &[u8]) -> Result<Vec<u8>, AgentError> {
    if before.trim_ascii().is_empty() {
        return Ok(before.to_vec());
    }
    let (root, object) = json(path, before)?;
    let entry = SERVERS
        .into_iter()
        .find_map(|key| object.object_value(key)?.get("takeup"));
    match entry {
        Some(entry) => {
            entry.remove();
            Ok(root.to_string().into_bytes())
        }
        None => Ok(before.to_vec()),
    }
}

#[cfg(test)]
mod tests;
