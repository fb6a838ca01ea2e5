//! The entry of takeup's MCP server in the settings of the clients that speak MCP.
//!
//! | Client | For the user | In a project |
//! |---|---|---|
//! | `claude-code` | `~/.claude.json`, or `$CLAUDE_CONFIG_DIR/.claude.json` | `.mcp.json` |
//! | `codex` | `$CODEX_HOME/config.toml` | `.codex/config.toml` |
//! | `gemini` | `~/.gemini/settings.json` | `.gemini/settings.json` |
//! | `copilot` | `$COPILOT_HOME/mcp-config.json` (`~/.copilot`) | – |
//! | `cursor` | `~/.cursor/mcp.json` | `.cursor/mcp.json` |
//! | `pi` | `~/.pi/agent/mcp.json` | `.pi/mcp.json` |
//! | `opencode` | `opencode.json` or `.jsonc` in `~/.config/opencode` | the same in the project |
//! | `openclaw` | `openclaw.json` in its state folder | – |
mod target;

use std::path::Path;

use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp};
use serde_json::Value;
use takeup_core::agent::{Agent, AgentError, Detection};
use takeup_core::env::Env;
use takeup_core::ids::AgentId;
use takeup_core::integration::{EditPlan, IntegrationState, PROGRAM, Scope, unreachable};
use toml_edit::{Array, DocumentMut, Item, Table, value};

use crate::json::{Former, Present, all, object, once, value_of};
use crate::programs::is_gone;
use target::{Form, Target, target};

/// The clients, in the order in which they are installed.
pub const CLIENTS: [&str; 8] = [
    "claude-code",
    "codex",
    "gemini",
    "copilot",
    "cursor",
    "pi",
    "opencode",
    "openclaw",
];

/// The name of the entry.
const NAME: &str = "takeup";

/// The entries as `git takeup agents` knows them: of every client that is installed for the user.
#[derive(Clone, Copy, Debug, Default)]
pub struct McpEntries;

impl McpEntries {
    fn agent() -> AgentId {
        #[expect(clippy::expect_used, reason = "the constant is a slug")]
        AgentId::new("mcp").expect("a slug")
    }

    /// Puts the plans of the installed clients together. Fails where every one of them fails.
    fn each(
        env: &Env,
        scope: &Scope,
        plan_of: fn(&str, &Env, &Scope) -> Result<EditPlan, AgentError>,
    ) -> Result<EditPlan, AgentError> {
        let mut whole = EditPlan::default();
        let mut failed = Vec::new();
        let mut is_any = false;
        for client in CLIENTS {
            if target(client, env, &Scope::User).is_err() {
                continue;
            }
            match plan_of(client, env, scope) {
                Ok(mut plan) => {
                    is_any = true;
                    whole.edits.append(&mut plan.edits);
                    whole.notes.append(&mut plan.notes);
                }
                Err(AgentError::Unsupported { .. }) => {}
                // One client's broken settings are no reason to leave the others out.
                Err(error) => failed.push(error),
            }
        }
        whole.notes.dedup();
        match failed.pop() {
            Some(error) if !is_any && failed.is_empty() => Err(error),
            Some(error) => {
                failed.push(error);
                let all: Vec<String> = failed.iter().map(ToString::to_string).collect();
                if !is_any {
                    return Err(AgentError::Other(all.join("; ")));
                }
                whole.notes.extend(all);
                Ok(whole)
            }
            None => Ok(whole),
        }
    }
}

impl Agent for McpEntries {
    fn id(&self) -> AgentId {
        Self::agent()
    }

    fn name(&self) -> &'static str {
        "MCP server for any client"
    }

    fn detect(&self, _: &Env) -> Detection {
        Detection::default()
    }

    fn install(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        let plan = Self::each(env, scope, mcp_entry_plan)?;
        if plan.edits.is_empty()
            && !CLIENTS
                .iter()
                .any(|client| target(client, env, &Scope::User).is_ok())
        {
            return Err(AgentError::NotInstalled {
                agent: "a client that speaks MCP",
                why: format!("none of these has a folder: {}", CLIENTS.join(", ")),
            });
        }
        Ok(plan)
    }

    fn uninstall(&self, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
        Self::each(env, scope, mcp_entry_removal)
    }

    fn integration(&self, env: &Env, scope: &Scope) -> IntegrationState {
        let states: Vec<(&str, IntegrationState)> = CLIENTS
            .into_iter()
            .filter(|client| target(client, env, &Scope::User).is_ok())
            .filter(|client| target(client, env, scope).is_ok())
            // An entry of that name that is the user's own is neither ours nor missing.
            .filter(|client| !is_theirs(client, env, scope).unwrap_or(false))
            .map(|client| (client, mcp_entry_state(client, env, scope)))
            .collect();
        let is_absent = |(_, state): &(&str, IntegrationState)| *state == IntegrationState::Absent;
        if states.iter().all(is_absent) {
            return IntegrationState::Absent;
        }
        let missing: Vec<&str> = states
            .iter()
            .filter(|one| is_absent(one))
            .map(|(client, _)| *client)
            .collect();
        let mut wrong: Vec<String> = Vec::new();
        if !missing.is_empty() {
            wrong.push(format!("no entry for {}", missing.join(", ")));
        }
        for (_, state) in states {
            if let IntegrationState::Outdated { what } = state
                && !wrong.contains(&what)
            {
                wrong.push(what);
            }
        }
        if wrong.is_empty() {
            return IntegrationState::Installed;
        }
        IntegrationState::Outdated {
            what: wrong.join("; "),
        }
    }
}

/// Plans the entry of one client. Changes nothing.
pub fn mcp_entry_plan(client: &str, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
    let target = target(client, env, scope)?;
    let file = Present::read(env, &target.base, &target.file, scope)?;
    let mut plan = EditPlan::default();
    let there = entries(&file, &target)?;
    if there.is_empty()
        || there
            .iter()
            .any(|entry| entry.program.as_deref() == Some(PROGRAM))
    {
        plan.notes.extend(unreachable(env));
    }
    // A program of ours that is gone from its place is called by its name again.
    let is_gone = there.iter().any(Entry::is_gone);
    let after = if target.form == Form::Codex {
        let mut document = toml(&file)?;
        if !document.contains_key("mcp_servers") {
            let mut servers = Table::new();
            servers.set_implicit(true);
            document.insert("mcp_servers", Item::Table(servers));
        }
        let servers = document
            .get_mut("mcp_servers")
            .and_then(Item::as_table_like_mut)
            .ok_or_else(|| file.damaged("mcp_servers is no table"))?;
        if !servers.contains_key(NAME) {
            let mut entry = Table::new();
            entry.insert("command", value(PROGRAM));
            entry.insert("args", value(Array::from_iter(["mcp"])));
            servers.insert(NAME, Item::Table(entry));
        } else if let Some(entry) = servers.get_mut(NAME).and_then(Item::as_table_like_mut)
            && is_gone
        {
            entry.insert("command", value(PROGRAM));
        }
        document.to_string()
    } else {
        file.edited(|top| {
            let mut parent = top.clone();
            for name in target.path {
                parent = object(&parent, name)?;
            }
            once(&parent, NAME)?;
            match parent.get(NAME) {
                None => {
                    parent.append(NAME, entry(target.form));
                }
                Some(entry) if is_gone => call_by_name(&entry),
                Some(_) => {}
            }
            Ok(())
        })?
    };
    file.put(Some(after), 0o644, &mut plan);
    Ok(plan)
}

/// Writes the bare name of our program into an entry.
fn call_by_name(entry: &CstObjectProp) {
    let Some(command) = entry.object_value().and_then(|entry| entry.get("command")) else {
        return;
    };
    match command.array_value().map(|words| words.elements()) {
        // The first of a list is the program.
        Some(words) => {
            for word in words.iter().take(1).filter_map(CstNode::as_string_lit) {
                word.replace_with(PROGRAM.into());
            }
        }
        None => command.set_value(PROGRAM.into()),
    }
}

/// Plans its removal: only an entry that runs our program, and the file where it holds nothing else.
pub fn mcp_entry_removal(client: &str, env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
    let target = target(client, env, scope)?;
    let file = Present::read(env, &target.base, &target.file, scope)?;
    let mut plan = EditPlan::default();
    let Some(text) = file.text()? else {
        return Ok(plan);
    };
    // In what cannot be read, and does not name us, is nothing of ours.
    if !text.contains(PROGRAM) || !entries(&file, &target)?.iter().any(Entry::is_ours) {
        return Ok(plan);
    }
    let after = if target.form == Form::Codex {
        let mut document = toml(&file)?;
        if let Some(servers) = document
            .get_mut("mcp_servers")
            .and_then(Item::as_table_like_mut)
        {
            servers.remove(NAME);
        }
        // The table that was made for it goes; a header that somebody wrote is theirs.
        let servers = document.get("mcp_servers").and_then(Item::as_table);
        if servers.is_some_and(|servers| servers.is_empty() && servers.is_implicit()) {
            document.remove("mcp_servers");
        }
        document.to_string()
    } else {
        file.edited(|top| {
            let mut path = target.path.to_vec();
            path.push(NAME);
            let former = Former::of(env, &McpEntries::agent(), scope, &file.path);
            take(top, &[], &path, &former);
            Ok(())
        })?
    };
    let after = if matches!(after.trim(), "" | "{}") {
        file.emptied(env, &McpEntries::agent(), scope, after)
    } else {
        Some(after)
    };
    file.put(after, 0o644, &mut plan);
    Ok(plan)
}

/// Takes our entry out, and what it stood in as far as that is empty then and its owner did not have it so.
fn take(top: &CstObject, above: &[&str], path: &[&str], former: &Former) {
    let Some((name, rest)) = path.split_first() else {
        return;
    };
    let here = [above, &[*name]].concat();
    for property in all(top, name) {
        if rest.is_empty() {
            if Entry::of_json(&property).is_ours() {
                property.remove();
            }
        } else if let Some(inner) = property.object_value() {
            take(&inner, &here, rest, former);
            if inner.properties().is_empty() && !former.held_empty(&here) {
                property.remove();
            }
        }
    }
}

/// Looks whether a client has the entry, and can run it. An entry of that name that does not run our program is none.
pub fn mcp_entry_state(client: &str, env: &Env, scope: &Scope) -> IntegrationState {
    let outdated = |what: String| IntegrationState::Outdated { what };
    let mut is_named = true;
    let looked = target(client, env, scope).and_then(|target| {
        let file = Present::read(env, &target.base, &target.file, scope)?;
        is_named = file.text()?.is_some_and(|text| text.contains(PROGRAM));
        let mut entries = entries(&file, &target)?;
        entries.retain(Entry::is_ours);
        Ok((
            mcp_entry_plan(client, env, scope)?,
            file.path,
            entries.pop(),
        ))
    });
    let (plan, path, entry) = match looked {
        Ok((plan, path, Some(entry))) => (plan, path, entry),
        Ok((_, _, None))
        | Err(AgentError::NotInstalled { .. } | AgentError::Unsupported { .. }) => {
            return IntegrationState::Absent;
        }
        // In what cannot be read, and does not name us, is nothing of ours.
        Err(_) if !is_named => return IntegrationState::Absent,
        Err(error) => return outdated(error.to_string()),
    };
    let path = path.display();
    if entry.is_off {
        return outdated(format!("the entry {NAME} in {path} is switched off"));
    }
    match entry.program.filter(|program| is_gone(program)) {
        Some(gone) => outdated(format!(
            "the entry {NAME} in {path} calls {gone}, which is not there or cannot be executed"
        )),
        None if !plan.edits.is_empty() => {
            outdated(format!("the entry {NAME} in {path} is of another version"))
        }
        None if plan.notes.is_empty() => IntegrationState::Installed,
        None => IntegrationState::Installed.as_reached(env),
    }
}

/// Tells whether a client has an entry of our name that does not run our program.
fn is_theirs(client: &str, env: &Env, scope: &Scope) -> Result<bool, AgentError> {
    let target = target(client, env, scope)?;
    let file = Present::read(env, &target.base, &target.file, scope)?;
    let entries = entries(&file, &target)?;
    Ok(!entries.is_empty() && !entries.iter().any(Entry::is_ours))
}

/// What an entry of our name says.
#[derive(Debug, Default)]
struct Entry {
    program: Option<String>,
    is_off: bool,
}

impl Entry {
    fn of_json(property: &CstObjectProp) -> Self {
        let Some(value) = value_of(property) else {
            return Self::default();
        };
        let says = |name: &str, flag: bool| value.get(name).and_then(Value::as_bool) == Some(flag);
        let command = value.get("command");
        // Some clients have the whole command in one list.
        let program = command.and_then(|command| command.get(0)).or(command);
        Self {
            program: program.and_then(Value::as_str).map(str::to_owned),
            is_off: says("enabled", false) || says("disabled", true),
        }
    }

    fn of_toml(entry: &Item) -> Self {
        let command = entry.get("command").and_then(Item::as_str);
        Self {
            program: command.map(str::to_owned),
            is_off: entry.get("enabled").and_then(Item::as_bool) == Some(false),
        }
    }

    /// It runs our program, by whatever path.
    fn is_ours(&self) -> bool {
        let program = self.program.as_deref().map(Path::new);
        program
            .and_then(Path::file_name)
            .is_some_and(|name| name == PROGRAM)
    }

    fn is_gone(&self) -> bool {
        self.is_ours() && self.program.as_deref().is_some_and(is_gone)
    }
}

/// Returns the entries of our name; where keys stand there more than once, all of them.
fn entries(file: &Present, target: &Target) -> Result<Vec<Entry>, AgentError> {
    if target.form == Form::Codex {
        let document = toml(file)?;
        let servers = document.get("mcp_servers").and_then(Item::as_table_like);
        let entry = servers.and_then(|servers| servers.get(NAME));
        return Ok(entry.map(Entry::of_toml).into_iter().collect());
    }
    let mut found = Vec::new();
    file.edited(|top| {
        let mut parents = vec![top.clone()];
        for name in target.path {
            let properties = parents.iter().flat_map(|parent| all(parent, name));
            parents = properties.filter_map(|one| one.object_value()).collect();
        }
        let named = parents.iter().flat_map(|parent| all(parent, NAME));
        found = named.map(|property| Entry::of_json(&property)).collect();
        Ok(())
    })?;
    Ok(found)
}

fn toml(file: &Present) -> Result<DocumentMut, AgentError> {
    file.text()?
        .unwrap_or_default()
        .parse::<DocumentMut>()
        .map_err(|error| file.damaged(error.to_string()))
}

fn entry(form: Form) -> CstInputValue {
    let list =
        |words: &[&str]| CstInputValue::Array(words.iter().map(|word| (*word).into()).collect());
    let pair = |name: &str, value: CstInputValue| (name.to_owned(), value);
    let plain = || {
        vec![
            pair("command", PROGRAM.into()),
            pair("args", list(&["mcp"])),
        ]
    };
    CstInputValue::Object(match form {
        Form::Plain | Form::Codex => plain(),
        Form::Copilot => {
            let mut entry = vec![pair("type", "local".into())];
            entry.extend(plain());
            entry.push(pair("tools", list(&["*"])));
            entry
        }
        Form::Pi => {
            let mut entry = plain();
            entry.push(pair("exposure", "direct".into()));
            entry
        }
        Form::OpenCode => vec![
            pair("type", "local".into()),
            pair("command", list(&[PROGRAM, "mcp"])),
            pair("enabled", true.into()),
        ],
    })
}

#[cfg(test)]
mod tests;
