//! The plugin's tasks at a place, judged as far as its own records allow.
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use takeup_core::agent::{ForeignTask, Found};
use takeup_core::env::Env;
use takeup_core::ids::{AgentId, SessionId, SessionRef, TaskId};
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::process::Liveness;
use takeup_core::repository::Place;
use takeup_core::review::Review;
use takeup_core::status::Status;
use takeup_core::time::SystemClock;

use crate::fingerprint::{self, CLEAN_TREE, FingerprintError, PluginFingerprint};
use crate::sidecar::{self, FoundIdentity, Identity, Object, Paths};
use crate::store;

/// Lists the plugin's tasks at a place. One fingerprint at the most, whatever their number.
pub(crate) fn tasks(env: &Env, place: &Place) -> Found<ForeignTask> {
    let paths = Paths::new(&place.root);
    let (listing, identities) = sidecar::identities(&paths);
    let mut found = Found {
        items: Vec::with_capacity(identities.items.len()),
        issues: identities.issues,
    };
    if identities.items.is_empty() {
        return found;
    }
    let reviews = sidecar::reviews(&paths, &listing);
    found.issues.extend(reviews.issues);
    let sessions = store::these(env, &asked(&identities.items), &SystemClock);
    let present = Present::new(env, place);
    let mut context = Context {
        paths: &paths,
        manifests: HashMap::new(),
        roots: HashMap::new(),
    };
    for item in identities.items {
        let identity = &item.identity;
        let (Ok(task_id), Ok(session)) = (
            TaskId::new(identity.task.as_str()),
            SessionId::new(identity.session.as_str()),
        ) else {
            found.issues.push(Issue::new(
                &item.path,
                IssueKind::Corrupt,
                "its task or session is no identifier",
            ));
            continue;
        };
        let agent = identity
            .own_agent()
            .and_then(|agent| AgentId::new(agent).ok())
            .unwrap_or_else(crate::agent_id);
        let session = SessionRef::new(agent, session);
        let root_matches = context.root_matches(&place.root, &identity.root);
        let closed = identity.status.is_closed();
        let content = if closed || !root_matches {
            // Not asked: the verdict does not depend on it.
            takeup_core::verdict::Content::NotCompared
        } else {
            present.judge(&item)
        };
        let review = if closed {
            None
        } else {
            waiting(&paths, &reviews.items, identity, &task_id, &session)
        };
        let known = sessions
            .get(&identity.session)
            .filter(|known| known.session == session);
        let parts = context.parts(identity, closed, &mut found.issues);
        found.items.push(ForeignTask {
            task_id,
            title: parts.title,
            session,
            status: identity.status,
            root: identity.root.clone(),
            root_matches,
            content,
            began_clean: identity.base == CLEAN_TREE,
            fingerprint: sidecar::printable(&identity.latest),
            updated_at: identity
                .updated_at
                .parse()
                .unwrap_or_else(|_| file_time(item.written)),
            revision: identity.object.revision(),
            resumed_to: identity
                .resumed_to
                .as_deref()
                .and_then(|id| SessionId::new(id).ok()),
            review,
            allowed: parts.allowed,
            avoided: parts.avoided,
            checks: parts.checks,
            open_effects: known.map(|known| known.open_effects.clone()).unwrap_or_default(),
            liveness: known.map_or_else(
                || Liveness::Unknown {
                    why: "OpenCode's own store does not know the session, and OpenCode++'s records name no process"
                        .to_owned(),
                },
                |known| known.liveness.clone(),
            ),
            mirrored: identity.shows_ledger(),
        });
    }
    found
}

/// The most sessions that are looked up in OpenCode's own store.
const MOST_LOOKED_UP: usize = 200;

/// The sessions of unfinished tasks, of which OpenCode's own store may know whether they are alive.
fn asked(items: &[FoundIdentity]) -> HashSet<String> {
    items
        .iter()
        .filter(|item| !item.identity.status.is_closed())
        .map(|item| item.identity.session.clone())
        .take(MOST_LOOKED_UP)
        .collect()
}

/// The question that stands in the way of an identity. A changed status does not lift it: the plugin overwrites
/// `human-review` with `stale-task` as soon as any file changes, and the question is still there.
fn waiting(
    paths: &Paths,
    requests: &[(PathBuf, sidecar::Request)],
    identity: &Identity,
    task: &TaskId,
    session: &SessionRef,
) -> Option<Review> {
    let exact = paths.review(Some(&identity.task), Some(&identity.session));
    let (path, request) = sidecar::find_request(
        requests,
        &exact,
        &identity.task,
        Some(&identity.session),
        None,
    )?;
    let its_own = path == &exact || request.session.as_deref() == Some(identity.session.as_str());
    (its_own || identity.status == Status::HumanReview)
        .then(|| request.waiting(task, session))
        .flatten()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "clamped by the type of times"
)]
fn file_time(nanoseconds: i128) -> takeup_core::time::Time {
    takeup_core::time::Time::from_millis((nanoseconds / 1_000_000) as i64)
}

/// What belongs to a task beside its identity.
#[derive(Clone, Default)]
struct Parts {
    title: String,
    allowed: Vec<String>,
    avoided: Vec<String>,
    checks: Vec<String>,
}

struct Context<'a> {
    paths: &'a Paths,
    manifests: HashMap<String, Option<Object>>,
    roots: HashMap<PathBuf, bool>,
}

impl Context<'_> {
    fn root_matches(&mut self, here: &Path, recorded: &Path) -> bool {
        if recorded == here {
            return true;
        }
        *self
            .roots
            .entry(recorded.to_path_buf())
            .or_insert_with(|| recorded.canonicalize().is_ok_and(|real| real == here))
    }

    fn manifest(&mut self, task: &str, issues: &mut Vec<Issue>) -> Option<Object> {
        if let Some(known) = self.manifests.get(task) {
            return known.clone();
        }
        let read = match sidecar::read(&self.paths.manifest(task)) {
            Ok(document) => document.map(|document| document.object),
            Err(issue) => {
                issues.push(issue);
                None
            }
        };
        self.manifests.insert(task.to_owned(), read.clone());
        read
    }

    fn parts(&mut self, identity: &Identity, closed: bool, issues: &mut Vec<Issue>) -> Parts {
        let manifest = self
            .manifest(&identity.task, issues)
            .filter(|manifest| manifest.text("id") == Some(identity.task.as_str()));
        let lists = |object: Option<&Object>, key: &str| -> Vec<String> {
            object
                .and_then(|object| object.texts(key))
                .unwrap_or_default()
                .iter()
                .map(|text| sidecar::printable(text))
                .collect()
        };
        let mut parts = Parts {
            title: manifest
                .as_ref()
                .and_then(|manifest| manifest.text("task"))
                .map_or_else(|| identity.task.clone(), sidecar::printable),
            allowed: lists(manifest.as_ref(), "allowedEditGlobs"),
            avoided: lists(manifest.as_ref(), "avoidEditGlobs"),
            checks: lists(manifest.as_ref(), "requiredCommands"),
        };
        if closed {
            return parts;
        }
        match sidecar::read(&self.paths.workflow(&identity.session)) {
            Ok(Some(workflow))
                if workflow.object.text("taskId") == Some(identity.task.as_str()) =>
            {
                let workflow = &workflow.object;
                if let Some(boundary) = workflow.get("editBoundary").and_then(sidecar::Json::object)
                    && boundary
                        .texts("allowedEditGlobs")
                        .is_some_and(|globs| !globs.is_empty())
                {
                    parts.allowed = lists(Some(boundary), "allowedEditGlobs");
                    parts.avoided = lists(Some(boundary), "avoidEditGlobs");
                }
                if parts.checks.is_empty() {
                    parts.checks = lists(Some(workflow), "requiredTests");
                }
            }
            Ok(Some(_) | None) => {}
            Err(issue) => issues.push(issue),
        }
        parts
    }
}

/// The present tree as the plugin sees it, looked at once and only if somebody asks.
struct Present<'a> {
    env: &'a Env,
    place: &'a Place,
    fingerprint: OnceCell<Result<PluginFingerprint, FingerprintError>>,
    overlooked: OnceCell<Option<String>>,
    head: OnceCell<Option<String>>,
}

impl<'a> Present<'a> {
    const fn new(env: &'a Env, place: &'a Place) -> Self {
        Self {
            env,
            place,
            fingerprint: OnceCell::new(),
            overlooked: OnceCell::new(),
            head: OnceCell::new(),
        }
    }

    /// Compares what an identity left with the present tree. Equal digests are no proof where the plugin is blind.
    fn judge(&self, item: &FoundIdentity) -> takeup_core::verdict::Content {
        use takeup_core::verdict::Content;
        if item.identity.status == Status::StaleTask {
            // Whatever it is equal to now, it is not known what was left.
            return Content::Blind(
                "OpenCode++ marked it stale, and put the fingerprint of that moment in the place of the one that was left"
                    .to_owned(),
            );
        }
        let taken = self
            .fingerprint
            .get_or_init(|| fingerprint::fingerprint(&self.place.root, self.env));
        let taken = match taken {
            Ok(taken) => taken,
            Err(error) => return Content::LookIncomplete(error.to_string()),
        };
        if !taken.equals(&item.identity.latest) {
            return Content::Differs;
        }
        if let Some(why) = taken.blind.first() {
            return Content::Blind(format!("OpenCode++'s fingerprint is equal, but {why}"));
        }
        let overlooked = self.overlooked.get_or_init(|| {
            fingerprint::overlooked(&self.place.root, self.env)
                .unwrap_or_else(|error| Some(error.to_string()))
        });
        if let Some(why) = overlooked {
            return Content::Blind(format!("OpenCode++'s fingerprint is equal, but {why}"));
        }
        if let Some(left) = item.identity.own_head() {
            let now = self
                .head
                .get_or_init(|| head(&self.place.root, self.env))
                .as_deref();
            return if now == Some(left) {
                self.agents_file(item).unwrap_or(Content::Equal)
            } else {
                Content::Blind(
                    "OpenCode++'s fingerprint is equal, but it does not cover HEAD, which has moved since".to_owned(),
                )
            };
        }
        if item.identity.latest == CLEAN_TREE {
            return Content::Blind(
                "the tree is clean, and OpenCode++ records the same fingerprint for every clean tree of every commit, so \
                 nothing says which content was left"
                    .to_owned(),
            );
        }
        self.head_moved(item)
            .or_else(|| self.agents_file(item))
            .unwrap_or(Content::Equal)
    }

    /// The digest covers what differs from HEAD, and not which commit HEAD is. Whether HEAD moved since the record was
    /// written is seen from the times of git's own files.
    fn head_moved(&self, item: &FoundIdentity) -> Option<takeup_core::verdict::Content> {
        let blind = |why: &str| {
            Some(takeup_core::verdict::Content::Blind(format!(
                "OpenCode++'s fingerprint is equal, but it does not cover HEAD, {why}"
            )))
        };
        let Some(moved) = modified(&self.place.git_dir.join("logs/HEAD")) else {
            return blind("and there is no log of HEAD that says whether it moved since");
        };
        let pointer = self.place.git_dir.join("HEAD");
        let pointed = modified(&pointer).unwrap_or(i128::MAX);
        // The branch may have been moved from another work tree, which leaves the log of this HEAD alone.
        let branch = takeup_core::files::read_bounded(&pointer, 4096)
            .ok()
            .flatten()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .and_then(|text| {
                text.strip_prefix("ref: ")
                    .map(|name| name.trim().to_owned())
            })
            .and_then(|name| modified(&self.place.common_dir.join("logs").join(name)))
            .unwrap_or(0);
        if moved.max(pointed).max(branch) > left_at(item) {
            return blind("which moved since");
        }
        None
    }

    /// `AGENTS.md` at the top is content, and the plugin leaves it out.
    fn agents_file(&self, item: &FoundIdentity) -> Option<takeup_core::verdict::Content> {
        let meta = self.place.root.join("AGENTS.md").symlink_metadata().ok()?;
        let changed = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
        (changed > left_at(item)).then(|| {
            takeup_core::verdict::Content::Blind(
                "OpenCode++'s fingerprint is equal, but it leaves out AGENTS.md, which was written since".to_owned(),
            )
        })
    }
}

/// The times of files lag behind the clock by so much, in nanoseconds: the longest tick of a kernel.
const TICK: i128 = 10_000_000;

/// When a record was last written, in nanoseconds since the epoch: what it says itself, or the time of its file where that is
/// earlier. A file that was copied, restored or touched is newer than what stands in it. One that does not say when was
/// written before everything.
fn left_at(item: &FoundIdentity) -> i128 {
    let told = item.identity.updated_at.parse::<takeup_core::time::Time>();
    told.map_or(0, |at| i128::from(at.millis()) * 1_000_000 - TICK)
        .min(item.written)
}

/// When a file was last changed, in nanoseconds since the epoch.
fn modified(path: &Path) -> Option<i128> {
    let meta = path.symlink_metadata().ok()?;
    Some(i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()))
}

/// Returns the commit HEAD names.
pub(crate) fn head(root: &Path, env: &Env) -> Option<String> {
    let output = Command::new("git")
        .args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
        .current_dir(root)
        .env_clear()
        .envs(env.vars())
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_COMMON_DIR")
        .env("GIT_NO_LAZY_FETCH", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let id = text.trim();
    (output.status.success() && !id.is_empty()).then(|| id.to_owned())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test's own files")]
mod tests;
