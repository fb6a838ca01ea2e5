//! Writing into the plugin's records what the ledger decided, as the plugin would have written it.
//!
//! The order lets a crash be repaired by the same call again. The record that decides who holds a task, the source's
//! identity, comes first, under its lock and only if nobody else has it; the target's identity comes last, so that nobody
//! finds a task whose parts are missing. Nothing is written before everything that could contradict has been read.
mod review;

use std::path::Path;

use takeup_core::agent::{AgentError, Effect};
use takeup_core::env::Env;
use takeup_core::ids::{SessionRef, TaskId};
use takeup_core::repository::Place;
use takeup_core::status::Status;
use takeup_core::time::{SystemClock, Time};

use crate::sidecar::{
    self, Identity, Json, NewIdentity, Object, Paths, SidecarError, Step,
    WorkflowResumed as Resumed,
};

/// Applies an effect. Twice equals once.
pub(crate) fn apply(env: &Env, place: &Place, effect: &Effect) -> Result<(), AgentError> {
    let writer = Writer {
        env,
        place,
        paths: Paths::new(&place.root),
        root: place.root.to_string_lossy().into_owned(),
        concerned: match effect {
            Effect::TakenUp { target, .. } => target,
            Effect::Mirrored { session, .. }
            | Effect::Reviewed { session, .. }
            | Effect::ForeignReviewDecided { session, .. } => session,
        },
        shows_ledger: match effect {
            Effect::TakenUp { .. } | Effect::Mirrored { .. } | Effect::Reviewed { .. } => true,
            Effect::ForeignReviewDecided { .. } => false,
        },
    };
    begin_folder(place)?;
    match effect {
        Effect::TakenUp {
            task_id,
            title,
            source,
            target,
            compatible,
            at,
            fingerprint: _,
        } => writer.taken_up(task_id, title, source, target, *compatible, *at)?,
        Effect::Mirrored {
            task_id,
            title,
            session,
            status,
            resumed_to,
            allowed,
            avoided,
            checks,
            at,
        } => writer.mirrored(
            task_id,
            title,
            session,
            (*status, resumed_to.as_ref()),
            (allowed, avoided, checks),
            *at,
        )?,
        Effect::Reviewed {
            review,
            session,
            status,
        } => writer.reviewed(review, session, *status)?,
        Effect::ForeignReviewDecided {
            task_id,
            review_id,
            approved,
            session,
            at,
        } => writer.decided(task_id, review_id.as_str(), *approved, session, *at)?,
    }
    Ok(())
}

/// What stands in a folder of records that we made: git does not list it, and the removal of our plugin takes it away again.
pub(crate) const IGNORE: &str = "# Made by takeup for the plugin of OpenCode.\n*\n";

/// Makes the plugin's folder where there is none.
fn begin_folder(place: &Place) -> Result<(), SidecarError> {
    let folder = place.root.join(".agent-context");
    if folder.symlink_metadata().is_ok() {
        return Ok(());
    }
    takeup_core::files::make_private_folder(&folder)?;
    takeup_core::files::write_atomic(&folder.join(".gitignore"), IGNORE.as_bytes(), 0o644)?;
    Ok(())
}

struct Writer<'a> {
    env: &'a Env,
    place: &'a Place,
    paths: Paths,
    root: String,
    /// The session whose identity is written.
    concerned: &'a SessionRef,
    /// What is written is what the ledger holds. A question that only the plugin's records hold is none of the ledger's.
    shows_ledger: bool,
}

fn found(path: &Path) -> Result<Option<Object>, SidecarError> {
    Ok(sidecar::read(path)?.map(|document| document.object))
}

/// Whether a record was written at this moment or later: then it already shows the effect, or something newer.
fn is_newer(object: &Object, at: Time) -> bool {
    object
        .text("updatedAt")
        .and_then(|text| text.parse::<Time>().ok())
        .is_some_and(|written| written >= at)
}

fn update(
    path: &Path,
    change: impl FnOnce(Option<&Object>) -> Result<Option<Object>, SidecarError>,
) -> Result<Option<Object>, SidecarError> {
    sidecar::update(path, &SystemClock, change)
}

impl Writer<'_> {
    /// The plugin's digest of the present tree. Where it cannot be taken, a word that equals no digest stands for it.
    fn digest(&self) -> String {
        crate::fingerprint(&self.place.root, self.env)
            .map_or_else(|_| "unknown".to_owned(), |taken| taken.digest)
    }

    fn identity(&self, task: &str, session: &str) -> Result<Option<Identity>, SidecarError> {
        let path = self.paths.identity(task, session);
        match found(&path)? {
            None => Ok(None),
            Some(object) => {
                let identity = Identity::check(&object, self.paths.root())
                    .map_err(|why| SidecarError::Conflict(format!("{}: {why}", path.display())))?;
                // Names meet: another task or session may stand in the file of this name.
                if identity.task != sidecar::slug(task) || identity.session != session {
                    return Err(SidecarError::Conflict(format!(
                        "{} is the record of task {:?} in session {:?}",
                        path.display(),
                        sidecar::printable(&identity.task),
                        sidecar::printable(&identity.session)
                    )));
                }
                Ok(Some(identity))
            }
        }
    }

    /// Fails where the session already works on another task: the plugin keeps one a session.
    fn refuse_other_task(&self, task: &str, session: &str) -> Result<(), SidecarError> {
        for path in [
            self.paths.workflow(session),
            self.paths.session(Some(session)),
        ] {
            let other = found(&path)?
                .filter(|object| object.text("sessionId") == Some(session))
                .and_then(|object| object.text("taskId").map(str::to_owned))
                .filter(|other| other != task);
            if let Some(other) = other {
                let open = found(&self.paths.identity(&other, session))?
                    .and_then(|object| Identity::check(&object, self.paths.root()).ok())
                    .is_none_or(|identity| !identity.status.is_closed());
                if open {
                    return Err(SidecarError::Conflict(format!(
                        "session {session:?} already works on task {other:?}"
                    )));
                }
            }
        }
        Ok(())
    }

    fn taken_up(
        &self,
        task_id: &TaskId,
        title: &str,
        source: &SessionRef,
        target: &SessionRef,
        compatible: bool,
        at: Time,
    ) -> Result<(), SidecarError> {
        let (task, from, to) = (task_id.as_str(), source.id.as_str(), target.id.as_str());
        let now = at.to_string();
        let left = self.identity(task, from)?;
        if let Some(taken) = left.as_ref().and_then(|left| left.resumed_to.as_deref())
            && taken != to
        {
            return Err(taken_by(task, taken));
        }
        let mine = self.identity(task, to)?;
        // The moment at which the source was given up; what the target wrote since then is newer than this effect.
        let decided = left
            .as_ref()
            .filter(|left| left.resumed_to.is_some())
            .and_then(|left| left.updated_at.parse().ok())
            .unwrap_or(at);
        let done = mine.is_some_and(|mine| is_newer(&mine.object, decided));
        if from == to || done {
            return Ok(());
        }
        self.refuse_other_task(task, to)?;
        let left_workflow = found(&self.paths.workflow(from))?;
        let manifest = self.complete_manifest(task, title, (&[], &[], &[]), left.is_some())?;
        let digest = self.digest();
        if left.is_some() {
            self.release(
                task,
                from,
                to,
                (!compatible).then_some(digest.as_str()),
                &now,
            )?;
        }
        let source_session = found(&self.paths.session(Some(from)))?;
        let (known_title, kind) = title_and_kind(source_session.as_ref(), manifest.as_ref(), title);
        let base = left
            .as_ref()
            .map_or(digest.as_str(), |left| left.base.as_str());
        let candidates = |status: &str, compatibility: &str| {
            candidates_of(left.as_ref(), status, compatibility, &digest)
        };
        if compatible {
            update(&self.paths.workflow(to), |workflow| {
                Ok(Resumed {
                    target: to,
                    source: from,
                    task,
                    root: &self.root,
                    base,
                    fingerprint: &digest,
                    left: left_workflow.as_ref(),
                    manifest: manifest.as_ref(),
                    candidates: candidates(
                        left.as_ref().map_or("active", |left| left.status.code()),
                        "resume-verification",
                    ),
                    at: &now,
                }
                .over(workflow))
            })?;
        } else {
            self.prepare_workflow(task, to, manifest.as_ref(), &digest, &now)?;
        }
        self.hold(task, &known_title, &kind, to, &now)?;
        let status = if compatible {
            Status::VerificationRequired
        } else {
            Status::Active
        };
        update(&self.paths.workflow(to), |workflow| {
            Ok(workflow.and_then(|workflow| {
                sidecar::with_candidates(workflow, candidates("abandoned", "not-resumable"), &now)
            }))
        })?;
        // The digest is taken again as the last thing: what the session begins with is what is there now.
        let latest = self.digest();
        let base = if compatible { base } else { latest.as_str() };
        self.write_identity(task, to, base, &latest, status, &now)
    }

    /// Gives the source's identity up in favour of the target. This decides who holds the task.
    fn release(
        &self,
        task: &str,
        from: &str,
        to: &str,
        stale: Option<&str>,
        now: &str,
    ) -> Result<(), SidecarError> {
        update(&self.paths.identity(task, from), |object| {
            let Some(object) = object else {
                return Ok(None);
            };
            if object.text("status") == Some(Status::Abandoned.code()) {
                return match object.text("resumedToSessionId") {
                    Some(taken) if sidecar::trim(taken) == to => Ok(None),
                    Some(taken) => Err(taken_by(task, taken)),
                    None => Err(SidecarError::Conflict(format!(
                        "task {task:?} was given up"
                    ))),
                };
            }
            let mut next = object.clone();
            let mut revision = object.revision().unwrap_or(0);
            if let Some(digest) = stale {
                // The plugin marks it first, with a write of its own.
                let marked = object.text("status") == Some(Status::StaleTask.code())
                    && object.text("latestWorkingTreeFingerprint") == Some(digest);
                if !marked {
                    revision += 1;
                }
                next.set("latestWorkingTreeFingerprint", digest);
            }
            next.set("status", Status::Abandoned.code());
            next.set("updatedAt", now);
            next.set("revision", revision + 1);
            next.set("resumedToSessionId", to);
            sidecar::note_write(&mut next, None, self.shows_ledger);
            Ok(Some(next))
        })?;
        Ok(())
    }

    fn write_identity(
        &self,
        task: &str,
        session: &str,
        base: &str,
        latest: &str,
        status: Status,
        now: &str,
    ) -> Result<(), SidecarError> {
        let head = crate::tasks::head(&self.place.root, self.env);
        update(&self.paths.identity(task, session), |object| {
            let mut next = NewIdentity {
                task,
                session,
                root: &self.root,
                base,
                latest,
                status,
                at: now,
            }
            .over(object);
            sidecar::note_write(&mut next, head.as_deref(), self.shows_ledger);
            if self.concerned.id.as_str() == session && self.concerned.agent != crate::agent_id() {
                sidecar::note_agent(&mut next, self.concerned.agent.as_str());
            }
            Ok(Some(next))
        })?;
        Ok(())
    }

    /// Notes which task a session holds, in its own record and in that of the latest session.
    fn hold(
        &self,
        task: &str,
        title: &str,
        kind: &str,
        session: &str,
        now: &str,
    ) -> Result<(), SidecarError> {
        for path in [self.paths.session(Some(session)), self.paths.session(None)] {
            update(&path, |object| {
                let same = object.is_some_and(|object| {
                    object.text("taskId") == Some(task) && object.text("sessionId") == Some(session)
                });
                Ok((!same).then(|| sidecar::session(object, task, title, kind, session, now)))
            })?;
        }
        Ok(())
    }

    /// Makes sure of a manifest with which the plugin can work. A damaged one is never overwritten and left for the list of
    /// issues.
    fn complete_manifest(
        &self,
        task: &str,
        title: &str,
        lists: (&[String], &[String], &[String]),
        existing_task: bool,
    ) -> Result<Option<Object>, SidecarError> {
        let path = self.paths.manifest(task);
        let before = match found(&path) {
            Ok(before) => before,
            Err(SidecarError::Damaged(_)) if existing_task => return Ok(None),
            Err(error) => return Err(error),
        };
        if let Some(other) = before.as_ref().and_then(|object| object.text("id"))
            && other != task
        {
            return Err(SidecarError::Conflict(format!(
                "{} is the run of task {:?}",
                path.display(),
                sidecar::printable(other)
            )));
        }
        if before
            .as_ref()
            .is_some_and(|object| sidecar::is_complete(object, task))
        {
            return Ok(before);
        }
        update(&path, |object| {
            Ok(Some(sidecar::manifest(object, task, title, lists)))
        })
    }

    /// Begins a workflow for a task, as the plugin's preparation does.
    fn prepare_workflow(
        &self,
        task: &str,
        session: &str,
        manifest: Option<&Object>,
        digest: &str,
        now: &str,
    ) -> Result<(), SidecarError> {
        let of_manifest = |key: &str| {
            manifest
                .and_then(|manifest| manifest.texts(key))
                .unwrap_or_default()
        };
        let (allowed, avoided) = (
            of_manifest("allowedEditGlobs"),
            of_manifest("avoidEditGlobs"),
        );
        let tests = of_manifest("requiredCommands");
        self.step(
            session,
            &Step {
                phase: "prepared",
                task: Some(task),
                context: Some(sidecar::context_label(&self.root, task)),
                boundary: Some((&allowed, &avoided)),
                boundary_revision: manifest
                    .and_then(|manifest| manifest.get("boundaryRevision"))
                    .and_then(Json::whole)
                    .or(Some(1)),
                tests: Some(&tests),
                event: &format!("prepare:{task}"),
            },
            digest,
            now,
        )
    }

    fn step(
        &self,
        session: &str,
        step: &Step<'_>,
        digest: &str,
        now: &str,
    ) -> Result<(), SidecarError> {
        update(&self.paths.workflow(session), |workflow| {
            let begun = || sidecar::new_workflow(session, digest, now);
            let workflow = workflow.cloned().unwrap_or_else(begun);
            Ok(step.over(&workflow, digest, now))
        })?;
        Ok(())
    }

    fn mirrored(
        &self,
        task_id: &TaskId,
        title: &str,
        session: &SessionRef,
        (status, resumed_to): (Status, Option<&SessionRef>),
        lists: (&[String], &[String], &[String]),
        at: Time,
    ) -> Result<(), SidecarError> {
        let (task, id) = (task_id.as_str(), session.id.as_str());
        let now = at.to_string();
        let known = self.identity(task, id)?;
        if known.is_none() && resumed_to.is_some() {
            // It was never shown, and is over.
            return Ok(());
        }
        if let Some(known) = &known {
            if is_newer(&known.object, at) {
                return Ok(());
            }
            if known.status.is_closed() {
                // Nothing happens to it any more; who took it up stays.
                return Ok(());
            }
            if let Some(taker) = resumed_to {
                return self.release(task, id, taker.id.as_str(), None, &now);
            }
        }
        if !status.is_closed() {
            self.refuse_other_task(task, id)?;
        }
        let manifest = self.complete_manifest(task, title, lists, known.is_some())?;
        let digest = self.digest();
        let source_session = found(&self.paths.session(Some(id)))?;
        let (known_title, kind) = title_and_kind(source_session.as_ref(), manifest.as_ref(), title);
        if known.is_none() {
            self.prepare_workflow(task, id, manifest.as_ref(), &digest, &now)?;
            self.hold(task, &known_title, &kind, id, &now)?;
        }
        let event;
        let phase = match status {
            Status::Active | Status::Abandoned => None,
            Status::Dirty => Some(("editing", format!("takeup:editing:{digest}"))),
            Status::VerificationRequired | Status::StaleTask => {
                Some(("evaluated", format!("takeup:evaluated:{digest}")))
            }
            Status::HumanReview => Some(("blocked", format!("takeup:blocked:{digest}"))),
            Status::Completed => Some(("finalize", format!("next:finalize:{digest}"))),
        };
        if let Some((phase, key)) = phase {
            event = key;
            self.step(
                id,
                &Step {
                    phase,
                    event: &event,
                    ..Step::default()
                },
                &digest,
                &now,
            )?;
        }
        let same = known
            .as_ref()
            .is_some_and(|known| known.status == status && known.latest == digest);
        if !same {
            self.write_identity(task, id, &digest, &digest, status, &now)?;
        }
        Ok(())
    }
}

fn taken_by(task: &str, session: &str) -> SidecarError {
    SidecarError::Conflict(format!(
        "task {task:?} was taken up by session {:?}",
        sidecar::printable(session)
    ))
}

/// The task's text and kind: from the session that left, else from the run, else as given.
fn title_and_kind(
    session: Option<&Object>,
    manifest: Option<&Object>,
    title: &str,
) -> (String, String) {
    let of = |key: &str| {
        [session, manifest]
            .into_iter()
            .flatten()
            .find_map(|object| object.text(key).map(str::to_owned))
    };
    (
        of("task").unwrap_or_else(|| title.to_owned()),
        of("type").unwrap_or_else(|| "auto".to_owned()),
    )
}

/// The list of candidates that stands in a workflow: the one that was taken up.
fn candidates_of(left: Option<&Identity>, status: &str, compatibility: &str, digest: &str) -> Json {
    let Some(left) = left else {
        return Json::List(Vec::new());
    };
    let mut identity = left.object.clone();
    identity.set("status", status);
    Json::List(vec![
        Object::default()
            .with("identity", identity)
            .with("currentWorkingTreeFingerprint", digest)
            .with("repositoryMatches", true)
            .with("workingTreeCompatible", left.latest == digest)
            .with("compatibility", compatibility)
            .with(
                "reason",
                if status == "abandoned" {
                    "The task was taken up by another session."
                } else {
                    "The repository and the work tree are those of the record."
                },
            )
            .into(),
    ])
}

#[cfg(test)]
mod tests;
