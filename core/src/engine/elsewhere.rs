//! What was left at another place than this one: where, and the way out.
use std::fmt;

use super::{EngineError, Site};
use crate::identity::Identity;
use crate::ids::{SessionRef, TaskId};
use crate::paths::shell_word_of_text;
use crate::verdict::{Sharing, Whereabouts};

/// A task, or what a session without one left, at another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The task; `None` where only a session was recorded.
    pub task_id: Option<TaskId>,
    /// The session that left it.
    pub session: SessionRef,
    /// The work tree it was left in, as [`crate::identity::PlaceRecord::root`].
    pub root: String,
    /// How the present place relates to it.
    pub whereabouts: Whereabouts,
}

impl Elsewhere {
    /// Tells where an identity was left; `None` where that is here.
    pub(super) fn of(site: &Site, identity: &Identity) -> Result<Option<Self>, EngineError> {
        let whereabouts = site.whereabouts(&identity.place)?;
        Ok((whereabouts != Whereabouts::Same).then(|| Self {
            task_id: Some(identity.task_id.clone()),
            session: identity.session.clone(),
            root: site.root_now(&identity.place, whereabouts),
            whereabouts,
        }))
    }

    /// Says what can be done about it.
    pub(super) fn way_out(&self) -> String {
        let show = self.task_id.as_ref().map_or_else(
            || {
                let id = self.session.id.to_string();
                crate::text::command_line(["git", "takeup", "sessions", "show", &id])
            },
            |task| format!("git takeup show {task}"),
        );
        match self.whereabouts {
            Whereabouts::OtherWorktree => format!(
                "go on there: git -C {} takeup inspect",
                shell_word_of_text(&self.root)
            ),
            Whereabouts::WorktreeAway => "go on there when it is back".to_owned(),
            Whereabouts::WorktreeUnlinked => format!(
                "mend its link: git worktree repair {}",
                shell_word_of_text(&self.root)
            ),
            Whereabouts::WorktreeGone => {
                let anew = format!(
                    "make a work tree anew at that path, and there: git takeup init --moved; `{show}` has its records"
                );
                match &self.task_id {
                    Some(task) => format!("{anew}, and `git takeup abandon {task}` gives it up"),
                    None => format!(
                        "{anew}, and `{}` ends its offer",
                        crate::text::command_line([
                            "git", "takeup", "save", "--end", "--session", self.session.id.as_str()
                        ])
                    ),
                }
            }
            Whereabouts::Shared(Sharing::Link) => format!(
                "go on there: git -C {} takeup inspect; or make a work tree of its own with git worktree add",
                shell_word_of_text(&self.root)
            ),
            Whereabouts::Shared(_) => {
                "go on there, by the command that `git takeup inspect` names; where the work tree is here for good: git takeup init \
                 --moved"
                    .to_owned()
            }
            Whereabouts::Relocated => {
                "confirm the move first, with `git takeup init --moved`".to_owned()
            }
            Whereabouts::Copied => {
                "make this copy a place of its own first, with `git takeup init --copied`".to_owned()
            }
            Whereabouts::CopyOfGone => {
                "where this copy takes its place: `git takeup init --moved`; else `git takeup init --copied`".to_owned()
            }
            Whereabouts::Same | Whereabouts::OtherRepository => {
                format!("`{show}` has its records")
            }
        }
    }
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = &self.root;
        match &self.task_id {
            Some(task) => write!(f, "task {task} of session {} ", self.session)?,
            None => write!(f, "what session {} did ", self.session)?,
        }
        match self.whereabouts {
            Whereabouts::Same => write!(f, "was left in {root}"),
            Whereabouts::OtherWorktree => {
                write!(
                    f,
                    "was left in another work tree of this repository, {root}"
                )
            }
            Whereabouts::WorktreeAway => write!(
                f,
                "was left in the work tree {root}, which is locked and not there at present"
            ),
            Whereabouts::WorktreeUnlinked => write!(
                f,
                "was left in the work tree {root}, whose link to this repository is broken"
            ),
            Whereabouts::WorktreeGone => {
                write!(f, "was left in the work tree {root}, which is gone")
            }
            Whereabouts::Relocated => {
                write!(
                    f,
                    "was left in {root}, before the repository was moved here"
                )
            }
            Whereabouts::Shared(Sharing::Link) => write!(
                f,
                "was left in {root}, of which this is a copy that shares its git folder"
            ),
            Whereabouts::Shared(_) => write!(
                f,
                "was left in {root}, another folder with the same git folder"
            ),
            Whereabouts::Copied => write!(f, "was left in {root}, of which this is a copy"),
            Whereabouts::CopyOfGone => {
                write!(
                    f,
                    "was left in {root}, which is gone, and of which this is a copy"
                )
            }
            Whereabouts::OtherRepository => write!(f, "was left in another repository, {root}"),
        }
    }
}
