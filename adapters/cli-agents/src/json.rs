//! Small changes to other programs' JSON files by their syntax tree: comments, order and layout of the rest stay.
use std::path::{Component, Path, PathBuf};

use jsonc_parser::cst::{CstArray, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;
use takeup_core::agent::AgentError;
use takeup_core::env::Env;
use takeup_core::files::{own, read_bounded};
use takeup_core::ids::AgentId;
use takeup_core::integration::{Edit, EditPlan, LONGEST, Scope, before, in_form_of, without_mark};
use takeup_core::issue::{Issue, IssueKind};

/// What is allowed in the files of those who call them JSON: comments and trailing commas, and for JSON5 all of it.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: true,
        allow_trailing_commas: true,
        allow_missing_commas: false,
        allow_single_quoted_strings: true,
        allow_hexadecimal_numbers: true,
        allow_unary_plus_numbers: true,
        allow_bare_decimal_point_numbers: true,
        allow_non_finite_numbers: true,
        allow_extended_string_escapes: true,
    }
}

/// A file as it is now.
#[derive(Debug)]
pub(crate) struct Present {
    pub(crate) path: PathBuf,
    pub(crate) before: Option<Vec<u8>>,
}

impl Present {
    /// Reads `root/path`. The user's own settings may lie behind a link, as those who keep them in a folder of their own have
    /// it: then the file itself is read and edited, and the link stays one. Inside a project a link fails, since it came
    /// with the repository and what is written would land elsewhere.
    pub(crate) fn read(
        env: &Env,
        root: &Path,
        path: &Path,
        scope: &Scope,
    ) -> Result<Self, AgentError> {
        let path = match scope {
            Scope::User => own(env, &root.join(path)).map_err(AgentError::Damaged)?,
            Scope::Project { .. } => below(root, path)?,
        };
        let before = read_bounded(&path, LONGEST).map_err(AgentError::Damaged)?;
        Ok(Self { path, before })
    }

    /// Returns the text; an empty file counts as none.
    pub(crate) fn text(&self) -> Result<Option<String>, AgentError> {
        let Some(bytes) = &self.before else {
            return Ok(None);
        };
        let text =
            String::from_utf8(bytes.clone()).map_err(|error| self.damaged(error.to_string()))?;
        let text = without_mark(&text);
        Ok(Some(text.to_owned()).filter(|text| !text.trim().is_empty()))
    }

    /// Returns what a switch of the file says; clients read the last of several.
    pub(crate) fn switch(&self, path: &[&str]) -> Option<bool> {
        let root = CstRootNode::parse(&self.text().ok()??, &options()).ok()?;
        let (name, above) = path.split_last()?;
        let mut parent = root.object_value()?;
        for name in above {
            parent = all(&parent, name).last()?.object_value()?;
        }
        let value = all(&parent, name).last()?.value()?;
        Some(value.as_boolean_lit()?.value())
    }

    /// An error about this file.
    pub(crate) fn damaged(&self, why: impl Into<String>) -> AgentError {
        AgentError::Damaged(Issue::new(&self.path, IssueKind::Corrupt, why))
    }

    /// Changes the file's top object and returns the new text.
    pub(crate) fn edited(
        &self,
        change: impl FnOnce(&CstObject) -> Result<(), String>,
    ) -> Result<String, AgentError> {
        let text = self.text()?.unwrap_or_else(|| "{}\n".to_owned());
        let root = CstRootNode::parse(&text, &options())
            .map_err(|error| self.damaged(error.to_string()))?;
        let top = root
            .object_value()
            .ok_or_else(|| self.damaged("it is no object"))?;
        change(&top).map_err(|why| self.damaged(why))?;
        Ok(root.to_string())
    }

    /// Returns what a file becomes that holds nothing any more: nothing, where it was made for what it held, and else what an
    /// empty one of its owner is.
    pub(crate) fn emptied(
        &self,
        env: &Env,
        agent: &AgentId,
        scope: &Scope,
        left: String,
    ) -> Option<String> {
        let before = before(env, agent, scope, &self.path)?;
        Some(if before.trim_ascii().is_empty() {
            String::from_utf8_lossy(&before).into_owned()
        } else {
            left
        })
    }

    /// Adds the edit to a plan; nothing where nothing would change.
    pub(crate) fn put(self, after: Option<String>, mode: u32, plan: &mut EditPlan) {
        let before = self.before.as_deref().map(String::from_utf8_lossy);
        let after = after
            .map(|after| match before {
                Some(before) => in_form_of(&before, &after),
                None => after,
            })
            .map(String::into_bytes);
        if self.before != after {
            plan.edits.push(Edit {
                path: self.path,
                before: self.before,
                after,
                mode,
            });
        }
    }
}

/// What a file held before something of takeup was put into it, as far as that is known.
#[derive(Debug)]
pub(crate) struct Former(Option<Value>);

impl Former {
    pub(crate) fn of(env: &Env, agent: &AgentId, scope: &Scope, path: &Path) -> Self {
        let bytes = before(env, agent, scope, path);
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        Self(text.and_then(|text| parse_to_serde_value(without_mark(&text), &options()).ok()))
    }

    /// Tells whether an empty object or list of its owner stood at a path.
    pub(crate) fn held_empty(&self, path: &[&str]) -> bool {
        let top = self.0.as_ref();
        let held = top.and_then(|top| path.iter().try_fold(top, |value, name| value.get(name)));
        held.is_some_and(|held| {
            held.as_object().is_some_and(serde_json::Map::is_empty)
                || held.as_array().is_some_and(Vec::is_empty)
        })
    }
}

/// Joins a path below a project's folder; fails where a link stands on the way.
fn below(root: &Path, path: &Path) -> Result<PathBuf, AgentError> {
    let mut joined = root.to_path_buf();
    for part in path.components() {
        if let Component::Normal(name) = part {
            joined.push(name);
        }
        if std::fs::symlink_metadata(&joined).is_ok_and(|meta| meta.is_symlink()) {
            let why = "a link stands here, and nothing is written through it; put what it names in its place, or install for the user with --user";
            let issue = Issue::new(joined, IssueKind::Symlink, why);
            return Err(AgentError::Damaged(issue));
        }
    }
    Ok(joined)
}

/// Returns every property of a name: nothing keeps a file from having several.
pub(crate) fn all(parent: &CstObject, name: &str) -> Vec<CstObjectProp> {
    let mut found = parent.properties();
    found.retain(|property| property.decoded_name().is_some_and(|one| one == name));
    found
}

/// Demands that a name stands once at the most: clients read only the last, and an edit of another would be seen by nobody.
pub(crate) fn once(parent: &CstObject, name: &str) -> Result<(), String> {
    if all(parent, name).len() < 2 {
        return Ok(());
    }
    Err(format!(
        "`{name}` stands there more than once, and only the last one counts: make them one"
    ))
}

/// Returns the object under a name, made where it is missing.
pub(crate) fn object(parent: &CstObject, name: &str) -> Result<CstObject, String> {
    once(parent, name)?;
    let object = parent.object_value_or_create(name);
    object.ok_or_else(|| format!("`{name}` is no object; make it {{}}, or take it out"))
}

/// Returns the list under a name, made where it is missing.
pub(crate) fn list(parent: &CstObject, name: &str) -> Result<CstArray, String> {
    once(parent, name)?;
    let list = parent.array_value_or_create(name);
    list.ok_or_else(|| format!("`{name}` is no list; make it [], or take it out"))
}

/// Returns what stands behind a name.
pub(crate) fn value_of(property: &CstObjectProp) -> Option<Value> {
    parse_to_serde_value(&property.value()?.to_string(), &options()).ok()
}
