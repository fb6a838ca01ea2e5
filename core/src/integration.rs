//! Changes to other people's files: planned as edits that can be shown, applied atomically, put back byte for byte.
mod form;
mod registry;

use std::path::{Path, PathBuf};

pub use form::{in_form_of, without_mark};
pub use registry::{
    Done, IntegrationError, LONGEST, before, damaged, install, is_others, planned_removal,
    uninstall, way_out,
};

use serde::{Deserialize, Serialize};

use crate::env::Env;
use crate::ids::AgentId;
use crate::repository::find_program;

/// What an installation or removal would change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditPlan {
    /// The edits, in order.
    pub edits: Vec<Edit>,
    /// What a person has to do or know besides.
    pub notes: Vec<String>,
    /// Files of ours that an installation wants and that are there as it wants them: another one may have put them there.
    pub present: Vec<PathBuf>,
    /// Folders of ours that a removal takes away where its edits leave them empty, the outermost first.
    pub folders: Vec<PathBuf>,
    /// Files of ours that stay as they are, since somebody edited them after they were installed.
    pub left: Vec<PathBuf>,
}

impl EditPlan {
    /// Leaves out those files of ours that somebody edited since they were installed, and says so: they are neither
    /// replaced nor removed. `is_own` tells which files are ours as a whole; of the others only our part is edited.
    #[must_use]
    pub fn without_edited(
        mut self,
        env: &Env,
        agent: &AgentId,
        scope: &Scope,
        is_own: impl Fn(&Path) -> bool,
    ) -> Self {
        let edited = |edit: &Edit| {
            edit.before.is_some()
                && is_own(&edit.path)
                && registry::edited_since(env, agent, scope, edit)
        };
        let (left, edits): (Vec<Edit>, Vec<Edit>) = self.edits.into_iter().partition(edited);
        self.edits = edits;
        for Edit { path, .. } in left {
            self.notes.push(format!(
                "{} was edited since it was installed and is left; remove it to be without your changes",
                path.display()
            ));
            self.left.push(path);
        }
        self
    }
}

/// One edit of one file. `before` and `after` are the whole content; `None` is "no such file".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The file; links are not followed at its last part.
    pub path: PathBuf,
    /// What is there now.
    pub before: Option<Vec<u8>>,
    /// What will be there.
    pub after: Option<Vec<u8>>,
    /// The permission bits of a new file.
    pub mode: u32,
}

/// Where an integration is installed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "kebab-case")]
pub enum Scope {
    /// For this user.
    User,
    /// Inside one project (a work tree or an agent's workspace).
    Project {
        /// Its top folder.
        root: PathBuf,
    },
}

/// How an integration is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum IntegrationState {
    /// Nothing of ours is there.
    Absent,
    /// Everything is there and of this version.
    Installed,
    /// It is there, and of another version or edited since.
    Outdated {
        /// What differs.
        what: String,
    },
}

/// The program that what is dropped in calls.
pub const PROGRAM: &str = "git-takeup";

/// Says what keeps drop-ins that call [`PROGRAM`] by its bare name from running: it is not on PATH. `None` where it is, or where
/// there is no PATH to look at.
pub fn unreachable(env: &Env) -> Option<String> {
    (env.var("PATH").is_some() && find_program(env, PROGRAM).is_none()).then(|| {
        format!("{PROGRAM} is not on PATH, so what is dropped in calls nothing: put it into a folder of PATH, as a link if need be")
    })
}

impl IntegrationState {
    /// Turns what is installed into what does not run, where it calls the program by its bare name and there is none.
    #[must_use]
    pub fn as_reached(self, env: &Env) -> Self {
        match (self, unreachable(env)) {
            (Self::Installed, Some(what)) => Self::Outdated { what },
            (state, _) => state,
        }
    }
}
