//! Small changes to other programs' JSON files by their syntax tree: comments, order and layout of the rest stay.
use std::path::{Component, Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstObject, CstRootNode};
use takeup_core::agent::AgentError;
use takeup_core::files::read_bounded;
use takeup_core::integration::{Edit, EditPlan, Scope, in_form_of, without_mark};
use takeup_core::issue::{Issue, IssueKind};

/// The largest settings file that is read, in bytes: Claude Code keeps its projects' state in one of them.
const LIMIT: u64 = 64 << 20;

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
    pub(crate) fn read(root: &Path, path: &Path, scope: &Scope) -> Result<Self, AgentError> {
        if *scope == Scope::User
            && let Ok(path) = std::fs::canonicalize(root.join(path))
        {
            let before = read_bounded(&path, LIMIT).map_err(AgentError::Damaged)?;
            return Ok(Self { path, before });
        }
        let mut joined = root.to_path_buf();
        for part in path.components() {
            if let Component::Normal(name) = part {
                joined.push(name);
            }
            if std::fs::symlink_metadata(&joined).is_ok_and(|meta| meta.is_symlink()) {
                let why = match scope {
                    Scope::User => {
                        "a link to nothing stands here; make what it names, or remove it"
                    }
                    Scope::Project { .. } => {
                        "a link stands here, and nothing is written through it; put what it names in its place, or install for the user with --user"
                    }
                };
                return Err(AgentError::Damaged(Issue::new(
                    joined,
                    IssueKind::Symlink,
                    why,
                )));
            }
        }
        let before = read_bounded(&joined, LIMIT).map_err(AgentError::Damaged)?;
        Ok(Self {
            path: joined,
            before,
        })
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

    /// Tells whether the file's top object has a switch of this name that is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        let Ok(Some(text)) = self.text() else {
            return false;
        };
        let root = CstRootNode::parse(&text, &options()).ok();
        root.and_then(|root| root.object_value()?.get(name)?.value()?.as_boolean_lit())
            .is_some_and(|switch| switch.value())
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

/// Returns the object under a name, made where it is missing.
pub(crate) fn object(parent: &CstObject, name: &str) -> Result<CstObject, String> {
    parent
        .object_value_or_create(name)
        .ok_or_else(|| format!("{name} is no object"))
}

/// Takes a property out, and its parents as far as they are empty then.
pub(crate) fn remove(top: &CstObject, path: &[&str]) {
    let Some((name, rest)) = path.split_first() else {
        return;
    };
    let Some(property) = top.get(name) else {
        return;
    };
    if rest.is_empty() {
        property.remove();
        return;
    }
    let Some(inner) = property.object_value() else {
        return;
    };
    remove(&inner, rest);
    if inner.properties().is_empty() {
        property.remove();
    }
}
