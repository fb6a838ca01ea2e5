//! What is dropped into OpenClaw's folders: the skill, the plugin, and for releases without plugins an internal hook.
//!
//! | What | Whose file | Where |
//! |---|---|---|
//! | skill | ours | `<state>/skills/takeup`, or `.agents/skills/takeup` in a workspace or work tree |
//! | plugin | ours | `<state>/takeup-plugin` |
//! | internal hook | ours | `<state>/hooks/takeup` |
//! | configuration | OpenClaw's and the user's | `openclaw.json`: one path in `plugins.load.paths`, one entry `plugins.entries.takeup`, and one word in `plugins.allow` where that list exists |
//!
//! The configuration is changed by its syntax tree: comments, order and quotes of everything else stay.
use std::path::Path;

use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::parse_to_serde_value;
use serde_json::Value;
use takeup_core::agent::AgentError;
use takeup_core::env::Env;
use takeup_core::files::{own, read_bounded};
use takeup_core::ids::AgentId;
use takeup_core::integration::{Edit, EditPlan, IntegrationState, Scope, before, is_others};
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::repository::find_program;

use crate::home::{CONFIG_LIMIT, Home, json5};
use crate::skills;
use crate::{ID, NAME, agent_id, version_of};

/// The id of the plugin.
const PLUGIN: &str = "takeup";
/// Stands in every file of ours that is code.
const MARK: &str = "Made by git-takeup";
/// The largest file of ours that is looked at, in bytes.
const LIMIT: u64 = 1 << 20;
/// Where a workspace or work tree has its skills.
const PROJECT_SKILLS: &str = ".agents/skills/takeup";

const PLUGIN_FILES: &[(&str, &str)] = &[
    ("index.js", include_str!("../data/plugin/index.js")),
    (
        "openclaw.plugin.json",
        include_str!("../data/plugin/openclaw.plugin.json"),
    ),
    ("package.json", include_str!("../data/plugin/package.json")),
];

const HOOK_FILES: &[(&str, &str)] = &[
    ("HOOK.md", include_str!("../data/hook/HOOK.md")),
    ("handler.js", include_str!("../data/hook/handler.js")),
];

/// Which of the two tells the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Teller {
    Plugin,
    Hook,
}

impl Teller {
    /// The plugin, unless the release is one of those without the hooks it needs (before 2026.7.2).
    fn of(env: &Env) -> Self {
        let version = find_program(env, ID).as_deref().and_then(version_of);
        match version.as_deref().and_then(numbers) {
            Some(version) if version < [2026, 7, 2] => Self::Hook,
            Some(_) | None => Self::Plugin,
        }
    }

    const fn folder(self) -> &'static str {
        match self {
            Self::Plugin => "takeup-plugin",
            Self::Hook => "hooks/takeup",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Plugin => Self::Hook,
            Self::Hook => Self::Plugin,
        }
    }

    fn files(self) -> impl Iterator<Item = (&'static str, String)> {
        let files = match self {
            Self::Plugin => PLUGIN_FILES,
            Self::Hook => HOOK_FILES,
        };
        files.iter().map(|(name, text)| {
            (
                *name,
                text.replace("@@VERSION@@", env!("CARGO_PKG_VERSION")),
            )
        })
    }
}

fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split(['.', '-']).map(str::parse::<u32>);
    Some([
        parts.next()?.ok()?,
        parts.next()?.ok()?,
        parts.next()?.ok()?,
    ])
}

/// Plans the installation.
pub(crate) fn install(env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
    let mut plan = EditPlan::default();
    match scope {
        Scope::Project { root } => {
            skills::put(root, Path::new(PROJECT_SKILLS), &mut plan)?;
            plan.notes.push(
                "only the skill is put into a project; `git takeup agents install openclaw --user` adds the plugin that shows the notice".to_owned(),
            );
        }
        Scope::User => {
            let home = installed(env)?;
            skills::put(&home.state, Path::new("skills/takeup"), &mut plan)?;
            let teller = Teller::of(env);
            let folder = Path::new(teller.folder());
            for (name, text) in teller.files() {
                put(&home.state, &folder.join(name), text, &mut plan)?;
            }
            for (name, _) in teller.other().files() {
                let path = Path::new(teller.other().folder()).join(name);
                take(&home.state, &path, &mut plan)?;
            }
            configure(&home, Some(teller), None, &mut plan)?;
            if !plan.edits.is_empty() {
                plan.notes
                    .push("restart the gateway: `openclaw gateway restart`".to_owned());
            }
        }
    }
    Ok(plan)
}

/// Plans the removal.
pub(crate) fn uninstall(env: &Env, scope: &Scope) -> Result<EditPlan, AgentError> {
    let mut plan = EditPlan::default();
    match scope {
        Scope::Project { root } => skills::take(root, Path::new(PROJECT_SKILLS), &mut plan)?,
        Scope::User => {
            let home = installed(env)?;
            let former = before(env, &agent_id(), scope, &home.config);
            let former = former.and_then(|bytes| String::from_utf8(bytes).ok());
            configure(&home, None, former.as_deref(), &mut plan)?;
            skills::take(&home.state, Path::new("skills/takeup"), &mut plan)?;
            for teller in [Teller::Plugin, Teller::Hook] {
                for (name, _) in teller.files() {
                    take(
                        &home.state,
                        &Path::new(teller.folder()).join(name),
                        &mut plan,
                    )?;
                }
            }
        }
    }
    Ok(plan)
}

/// Leaves out files of ours that somebody edited since; the configuration is not ours.
pub(crate) fn without_edited(
    plan: EditPlan,
    env: &Env,
    agent: &AgentId,
    scope: &Scope,
) -> EditPlan {
    let config = Home::of(env).map(|home| home.config);
    plan.without_edited(env, agent, scope, |path| Some(path) != config.as_deref())
}

/// Looks at what is installed.
pub(crate) fn state(env: &Env, scope: &Scope) -> IntegrationState {
    let is_others = |path: &Path| is_others(env, &agent_id(), scope, path);
    match scope {
        Scope::Project { root } => skills::state_of(root, Path::new(PROJECT_SKILLS), &is_others),
        Scope::User => {
            let Some(home) = Home::of(env) else {
                return IntegrationState::Absent;
            };
            let skill = skills::state_of(&home.state, Path::new("skills/takeup"), &is_others);
            let plan = match install(env, scope) {
                Ok(plan) => plan,
                Err(AgentError::NotInstalled { .. }) => return IntegrationState::Absent,
                Err(error) => {
                    return IntegrationState::Outdated {
                        what: error.to_string(),
                    };
                }
            };
            let anything = skill != IntegrationState::Absent
                || [Teller::Plugin, Teller::Hook].iter().any(|teller| {
                    let folder = home.state.join(teller.folder());
                    teller.files().any(|(name, _)| folder.join(name).exists())
                });
            match plan.edits.first() {
                _ if !anything => IntegrationState::Absent,
                None => match not_loaded(&home, Teller::of(env)) {
                    None => IntegrationState::Installed.as_reached(env),
                    Some(what) => IntegrationState::Outdated { what },
                },
                Some(edit) => IntegrationState::Outdated {
                    what: format!(
                        "{} is missing, of another version, or edited",
                        edit.path.display()
                    ),
                },
            }
        }
    }
}

fn installed(env: &Env) -> Result<Home, AgentError> {
    let missing = |why: String| AgentError::NotInstalled { agent: NAME, why };
    let home = Home::of(env).ok_or_else(|| missing("the user has no home".to_owned()))?;
    if home.state.is_dir() {
        // A link to nothing, or one that a repository brought, is named as such.
        own(env, &home.config).map_err(AgentError::Damaged)?;
        Ok(home)
    } else {
        Err(missing(format!("there is no {}", home.state.display())))
    }
}

fn put(root: &Path, path: &Path, text: String, plan: &mut EditPlan) -> Result<(), AgentError> {
    let path = skills::below(root, path)?;
    let before = read_bounded(&path, LIMIT).map_err(AgentError::Damaged)?;
    let after = text.into_bytes();
    if before.as_ref() == Some(&after) {
        return Ok(());
    }
    if before
        .as_ref()
        .is_some_and(|before| !is_ours(&path, before))
    {
        plan.notes.push(format!(
            "{} is there and is not takeup's; it is left: move it away and install again",
            path.display()
        ));
    } else {
        plan.edits.push(Edit {
            path,
            before,
            after: Some(after),
            mode: 0o644,
        });
    }
    Ok(())
}

fn take(root: &Path, path: &Path, plan: &mut EditPlan) -> Result<(), AgentError> {
    let path = skills::below(root, path)?;
    let Some(before) = read_bounded(&path, LIMIT).map_err(AgentError::Damaged)? else {
        return Ok(());
    };
    if is_ours(&path, &before) {
        plan.edits.push(Edit {
            path,
            before: Some(before),
            after: None,
            mode: 0o644,
        });
    } else {
        plan.notes
            .push(format!("{} was edited and is left", path.display()));
    }
    Ok(())
}

/// Tells whether a file is ours, of any version.
fn is_ours(path: &Path, content: &[u8]) -> bool {
    let text = String::from_utf8_lossy(content);
    let is_data = path
        .extension()
        .is_some_and(|extension| extension == "json");
    text.contains(MARK) || is_data && text.contains("\"takeup\"")
}

/// Adds the edit of OpenClaw's configuration: to load what tells, or with `None` to load nothing of ours. `former` is what it
/// held before ours came in, as far as that is known.
fn configure(
    home: &Home,
    teller: Option<Teller>,
    former: Option<&str>,
    plan: &mut EditPlan,
) -> Result<(), AgentError> {
    let folder = home.state.join(Teller::Plugin.folder());
    let Some(before) = read_bounded(&home.config, CONFIG_LIMIT).map_err(AgentError::Damaged)?
    else {
        if teller == Some(Teller::Plugin) {
            plan.notes.push(format!(
                "{} is not there: set OpenClaw up first, then install again, so that it loads the plugin",
                home.config.display()
            ));
        }
        return Ok(());
    };
    // In what cannot be read, and does not name us, is nothing of ours.
    if teller.is_none() && !String::from_utf8_lossy(&before).contains(PLUGIN) {
        return Ok(());
    }
    let corrupt = |why: String| Issue::new(&home.config, IssueKind::Corrupt, why);
    let after = String::from_utf8(before.clone())
        .map_err(|error| corrupt(error.to_string()))
        .and_then(|text| edit(&text, teller, former, &folder).map_err(corrupt));
    match after {
        Ok(after) if after.as_bytes() == before.as_slice() => Ok(()),
        Ok(after) => {
            plan.edits.push(Edit {
                path: home.config.clone(),
                before: Some(before),
                after: Some(after.into_bytes()),
                mode: 0o600,
            });
            Ok(())
        }
        Err(issue) => {
            if teller == Some(Teller::Plugin) {
                plan.notes.push(format!(
                    "{}: {}; add by hand: plugins.load.paths {:?}, plugins.entries.{PLUGIN} {{ enabled: true, hooks: {{ allowConversationAccess: true }} }}",
                    issue.path.display(),
                    issue.message,
                    folder.display().to_string(),
                ));
                Ok(())
            } else {
                Err(AgentError::Damaged(issue))
            }
        }
    }
}

/// Changes the configuration's text.
fn edit(
    text: &str,
    teller: Option<Teller>,
    former: Option<&str>,
    folder: &Path,
) -> Result<String, String> {
    let root = CstRootNode::parse(text, &json5()).map_err(|error| error.to_string())?;
    let top = match root.value() {
        Some(value) => value.as_object().ok_or("it is no object")?,
        None => return Err("it is empty".to_owned()),
    };
    let path = folder
        .to_str()
        .ok_or("the state folder's name is no text")?;
    for name in ["plugins", "hooks"] {
        once(&top, name)?;
    }
    match teller {
        Some(Teller::Plugin) => load(&top, path)?,
        Some(Teller::Hook) => {
            unload(&top, path, former);
            hook(&top)?;
        }
        None => {
            unload(&top, path, former);
            unhook(&top);
        }
    }
    Ok(root.to_string())
}

/// Demands that a name stands once at the most: OpenClaw reads only the last.
fn once(parent: &CstObject, name: &str) -> Result<(), String> {
    let properties = parent.properties();
    let named = |property: &&CstObjectProp| property.decoded_name().is_some_and(|one| one == name);
    if properties.iter().filter(named).count() < 2 {
        return Ok(());
    }
    Err(format!(
        "{name} stands there more than once, and only the last one counts: make them one"
    ))
}

fn object(parent: &CstObject, name: &str) -> Result<CstObject, String> {
    once(parent, name)?;
    parent
        .object_value_or_create(name)
        .ok_or_else(|| format!("{name} is no object"))
}

/// Says why OpenClaw does not load what tells, though its files are there: what its configuration says, as it reads it.
fn not_loaded(home: &Home, teller: Teller) -> Option<String> {
    let shown = home.config.display();
    let config = match home.read_config() {
        Ok(Some(config)) => config,
        Ok(None) if teller == Teller::Hook => return None,
        Ok(None) => {
            return Some(format!(
                "{shown} is not there, so the plugin is not loaded: set OpenClaw up first, then install again"
            ));
        }
        Err(issue) => {
            return Some(format!(
                "{shown} cannot be read, so it is not known whether the plugin is loaded: {}",
                issue.message
            ));
        }
    };
    let says = |path: &str, flag: bool| config.pointer(path).and_then(Value::as_bool) == Some(flag);
    let holds = |path: &str, text: &str| {
        let list = config.pointer(path).and_then(Value::as_array);
        list.map(|list| list.iter().any(|one| one.as_str() == Some(text)))
    };
    let folder = home.state.join(Teller::Plugin.folder());
    let why = match teller {
        Teller::Plugin if holds("/plugins/load/paths", &folder.to_string_lossy()) != Some(true) => {
            "plugins.load.paths does not name the plugin"
        }
        Teller::Plugin if says("/plugins/enabled", false) => "plugins.enabled is false",
        Teller::Plugin if holds("/plugins/deny", PLUGIN) == Some(true) => {
            "plugins.deny names the plugin"
        }
        Teller::Plugin if holds("/plugins/allow", PLUGIN) == Some(false) => {
            "plugins.allow does not name the plugin"
        }
        Teller::Plugin if says("/plugins/entries/takeup/enabled", false) => {
            "plugins.entries.takeup.enabled is false"
        }
        Teller::Plugin
            if !says(
                "/plugins/entries/takeup/hooks/allowConversationAccess",
                true,
            ) =>
        {
            "plugins.entries.takeup.hooks.allowConversationAccess is not true"
        }
        Teller::Hook if says("/hooks/internal/enabled", false) => "hooks.internal.enabled is false",
        Teller::Hook if says("/hooks/internal/entries/takeup/enabled", false) => {
            "hooks.internal.entries.takeup.enabled is false"
        }
        Teller::Plugin | Teller::Hook => return None,
    };
    Some(format!(
        "{why} in {shown}, so OpenClaw does not load what is there"
    ))
}

fn load(top: &CstObject, path: &str) -> Result<(), String> {
    let plugins = object(top, "plugins")?;
    let paths = object(&plugins, "load")?
        .array_value_or_create("paths")
        .ok_or("plugins.load.paths is no list")?;
    if !paths
        .elements()
        .iter()
        .any(|element| is_text(element, path))
    {
        paths.append(path.into());
    }
    // A list of allowed plugins shuts all others out, so it is added to and never made.
    if let Some(allow) = plugins.array_value("allow")
        && !allow
            .elements()
            .iter()
            .any(|element| is_text(element, PLUGIN))
    {
        allow.append(PLUGIN.into());
    }
    let entries = object(&plugins, "entries")?;
    if entries.get(PLUGIN).is_none() {
        let hooks =
            CstInputValue::Object(vec![("allowConversationAccess".to_owned(), true.into())]);
        entries.append(
            PLUGIN,
            CstInputValue::Object(vec![
                ("enabled".to_owned(), true.into()),
                ("hooks".to_owned(), hooks),
            ]),
        );
    }
    Ok(())
}

/// Takes ours out, and what is empty then, as far as its owner did not have it so.
fn unload(top: &CstObject, path: &str, former: Option<&str>) {
    let former = former.and_then(|text| parse_to_serde_value::<Value>(text, &json5()).ok());
    let was_empty = |pointer: &str| {
        let held = former.as_ref().and_then(|former| former.pointer(pointer));
        held.is_some_and(|held| {
            held.as_object().is_some_and(serde_json::Map::is_empty)
                || held.as_array().is_some_and(Vec::is_empty)
        })
    };
    let Some(plugins) = top.object_value("plugins") else {
        return;
    };
    // Where nothing of ours is, nothing that is empty was made for it.
    let mut is_any = false;
    if let Some(load) = plugins.object_value("load")
        && let Some(paths) = load.array_value("paths")
        && remove_text(&paths, path)
    {
        is_any = true;
        if paths.elements().is_empty() && !was_empty("/plugins/load/paths") {
            remove(&load, "paths");
        }
        if load.properties().is_empty() && !was_empty("/plugins/load") {
            remove(&plugins, "load");
        }
    }
    if let Some(allow) = plugins.array_value("allow") {
        remove_text(&allow, PLUGIN);
    }
    if let Some(entries) = plugins.object_value("entries")
        && remove(&entries, PLUGIN)
    {
        is_any = true;
        if entries.properties().is_empty() && !was_empty("/plugins/entries") {
            remove(&plugins, "entries");
        }
    }
    if is_any && plugins.properties().is_empty() && !was_empty("/plugins") {
        remove(top, "plugins");
    }
}

/// Switches the internal hook on. Naming an entry makes the entries the list of what is allowed, so one is added only
/// where there are some.
fn hook(top: &CstObject) -> Result<(), String> {
    let internal = object(&object(top, "hooks")?, "internal")?;
    if internal.get("enabled").is_none() {
        internal.append("enabled", true.into());
    }
    if let Some(entries) = internal.object_value("entries")
        && !entries.properties().is_empty()
        && entries.get(PLUGIN).is_none()
    {
        entries.append(
            PLUGIN,
            CstInputValue::Object(vec![("enabled".to_owned(), true.into())]),
        );
    }
    Ok(())
}

fn unhook(top: &CstObject) {
    let entries = top
        .object_value("hooks")
        .and_then(|hooks| hooks.object_value("internal"))
        .and_then(|internal| internal.object_value("entries"));
    if let Some(entries) = entries {
        remove(&entries, PLUGIN);
    }
}

/// Removes a property; tells whether it was there.
fn remove(object: &CstObject, name: &str) -> bool {
    let property = object.get(name);
    let is_there = property.is_some();
    if let Some(property) = property {
        property.remove();
    }
    is_there
}

/// Removes a text from a list; tells whether it was there.
fn remove_text(array: &jsonc_parser::cst::CstArray, text: &str) -> bool {
    let mut is_there = false;
    for element in array.elements() {
        if is_text(&element, text) {
            element.remove();
            is_there = true;
        }
    }
    is_there
}

fn is_text(node: &CstNode, text: &str) -> bool {
    node.as_string_lit()
        .and_then(|literal| literal.decoded_value().ok())
        .is_some_and(|value| value == text)
}

#[cfg(test)]
mod tests;
