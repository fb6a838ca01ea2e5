//! The repository, its tokens, and the places that are known.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Finding, Health, Remedy, Scene};
use crate::engine::{Engine, look_here};
use crate::fingerprint::ALLOW_PROGRAMS;
use crate::issue::IssueKind;
use crate::ledger::View;
use crate::repository::{Repository, RepositoryError, known_places, whereabouts};
use crate::text;
use crate::verdict::Whereabouts;

pub(super) fn known(engine: &Engine<'_>, found: &mut Vec<Finding>) {
    let places = known_places(engine.env);
    for issue in &places.issues {
        let finding = Finding::fail(
            "places",
            format!("{}: {}", issue.path.display(), issue.message),
        );
        found.push(if issue.kind == IssueKind::UnknownVersion {
            finding.advice("a newer takeup wrote it: use that one; it is left as it is")
        } else if issue.is_closed() {
            finding.advice(format!(
                "it may be healthy; make it readable for yourself: {}",
                crate::files::open_up(&issue.path)
            ))
        } else {
            finding
                .advice("it is made anew as places are used; `--fix` moves the damaged one aside")
                .remedy(move_aside(&issue.path))
        });
    }
    let gone = places.items.iter().filter(|place| place.gone).count();
    if gone > 0 {
        found.push(
            Finding::warn(
                "places",
                format!(
                    "{gone} of {} gone",
                    text::count(places.items.len(), "known place is", "known places are")
                ),
            )
            .advice("`--fix` forgets them; a place that comes back is added again when it is used")
            .remedy(Remedy::ForgetPlaces { places: gone }),
        );
    } else if places.issues.is_empty() {
        found.push(Finding::ok(
            "places",
            format!(
                "{}, all there",
                text::count(places.items.len(), "known place", "known places")
            ),
        ));
    }
}

pub(super) fn move_aside(path: &Path) -> Remedy {
    let mut to = path.as_os_str().to_os_string();
    to.push(".damaged");
    Remedy::MoveAside {
        path: path.to_path_buf(),
        to: PathBuf::from(to),
    }
}

/// What to do about what git itself cannot read.
const ASK_GIT: &str = "see what git says: git status, and git fsck";

/// No repository; or one in which git does not find what makes it one.
pub(super) fn none(start: &Path) -> Finding {
    let damaged = start
        .ancestors()
        .map(|folder| folder.join(".git"))
        .find(|git| git.exists());
    match damaged {
        Some(git) => Finding::fail(
            "repository",
            format!(
                "{} is there and is no repository: HEAD, objects or refs are missing or damaged",
                git.display()
            ),
        )
        .advice(ASK_GIT),
        None => Finding::ok(
            "repository",
            format!(
                "{} is in no repository: nothing more to look at",
                start.display()
            ),
        ),
    }
}

/// The shape of the repository, and who reads it. Returns whether its HEAD can be read.
pub(super) fn shape(repository: &Repository, found: &mut Vec<Finding>) -> bool {
    let root = repository.place().root.display();
    let git = repository.git();
    if let Err(error) = git.head().and_then(|_| git.operation()) {
        found.push(with_advice(Finding::of("repository", Health::Fail, &error)));
        return false;
    }
    found.push(match repository.fallback() {
        None => Finding::ok("repository", format!("{root}")),
        Some(why) => Finding::ok(
            "repository",
            format!("{root}, read by the git program: libgit2 says {why}"),
        ),
    });
    true
}

fn with_advice(finding: Finding) -> Finding {
    if finding.advice.is_some() {
        finding
    } else {
        finding.advice(ASK_GIT)
    }
}

/// Looks at the tree as every answer does: what cannot be seen whole equals nothing.
pub(super) fn tree(engine: &Engine<'_>, found: &mut Vec<Finding>) {
    found.push(match look_here(engine, false) {
        Ok(look) => match look.record.incomplete {
            None => Finding::ok("tree", "the tree can be seen whole"),
            Some(why) => Finding::warn(
                "tree",
                format!(
                    "the tree could not be seen whole, and so equals nothing that was left: {}",
                    text::one_line(&why, 600)
                ),
            )
            .advice(if why.contains(ALLOW_PROGRAMS) {
                "say once whether the repository's filter may run, as above"
            } else {
                ASK_GIT
            }),
        },
        Err(error) => with_advice(Finding::of("tree", Health::Fail, &error)),
    });
}

pub(super) fn damaged_token(error: &RepositoryError, found: &mut Vec<Finding>) {
    let mut finding = Finding::of("tokens", Health::Fail, error);
    if let RepositoryError::DamagedToken(issue) = error
        // The advice for what cannot be looked at is the error's own: nothing is known to be damaged.
        && !issue.is_closed()
    {
        finding = finding
            .advice(
                "put the file back from a backup if there is one; `--fix` moves it aside, and then `git takeup init` makes a \
                 new one: tasks recorded with the old one belong to another place from then on",
            )
            .remedy(move_aside(&issue.path));
    }
    found.push(finding);
}

pub(super) fn tokens(scene: &Scene<'_>, found: &mut Vec<Finding>) {
    found.push(match (&scene.tokens.repository, &scene.tokens.worktree) {
        (Some(_), Some(_)) => Finding::ok("tokens", "the repository and the work tree are known"),
        (Some(_), None) => Finding::ok("tokens", "this work tree has no token yet; it gets one with its first task"),
        (None, _) if scene.place.state().exists() => {
            Finding::fail("tokens", "there is a ledger, and the repository's token is gone")
                .advice("put .git/takeup/repository-id back from a backup; `git takeup init` makes a new one, and the old tasks belong to another place then")
        }
        (None, _) => Finding::ok("tokens", "takeup was never used in this repository")
            .advice("begin with: git takeup init"),
    });
}

/// Identities that were recorded for another place than this one.
pub(super) fn moved(scene: &Scene<'_>, view: &View, found: &mut Vec<Finding>) {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let open = view
        .state
        .tasks
        .values()
        .flat_map(|entry| &entry.identities)
        .filter(|identity| !identity.status.is_closed());
    for identity in open {
        let word = match whereabouts(scene.place, &scene.tokens, &identity.place) {
            Ok(Whereabouts::Same | Whereabouts::OtherWorktree | Whereabouts::WorktreeAway) => {
                continue;
            }
            Ok(Whereabouts::Relocated) => "relocated",
            Ok(Whereabouts::Copied) => "copied",
            Ok(Whereabouts::CopyOfGone) => "copy-of-gone",
            Ok(Whereabouts::Shared(_)) => "shared",
            Ok(Whereabouts::WorktreeUnlinked) => "worktree-unlinked",
            Ok(Whereabouts::WorktreeGone) => "worktree-gone",
            Ok(Whereabouts::OtherRepository) => "other-repository",
            Err(_) => "unreadable",
        };
        *counts.entry(word).or_default() += 1;
    }
    for (word, count) in counts {
        let (what, advice) = match word {
            "relocated" => (
                "left where this repository was before it was moved",
                "if it was moved on purpose: git takeup init --moved",
            ),
            "copied" => (
                "of the place this is a copy of",
                "to make the copy a place of its own: git takeup init --copied",
            ),
            "copy-of-gone" => (
                "of a place this is a copy of, and which is not there any more",
                "where this copy takes its place: git takeup init --moved; where the original lies elsewhere now: git takeup init --copied",
            ),
            "shared" => (
                "of another folder that shares this one's git folder",
                "`git takeup inspect` says why, and where to take them up",
            ),
            "worktree-unlinked" => (
                "of a work tree whose link to this repository is broken",
                "mend it: git worktree repair PATH, with the path that `git takeup inspect` names",
            ),
            "worktree-gone" => (
                "of a work tree that is gone",
                "give them up with `git takeup abandon`, begin anew from their records with `git takeup show`, or make a work tree at the same path, and there: git takeup init --moved",
            ),
            "other-repository" => (
                "recorded with another token",
                "if the token was made anew by hand, put the old one back",
            ),
            _ => ("nowhere to be placed", "look at the folders they name"),
        };
        found.push(
            Finding::warn(
                format!("places-{word}"),
                format!("{}, {what}", text::count(count, "open task", "open tasks")),
            )
            .advice(advice),
        );
    }
}
