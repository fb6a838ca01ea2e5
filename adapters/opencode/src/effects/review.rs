//! Questions to a person: asked, answered, applied.
use std::path::Path;

use takeup_core::ids::{SessionRef, TaskId};
use takeup_core::review::{Review, ReviewState};
use takeup_core::status::Status;
use takeup_core::time::Time;

use super::{Writer, candidates_of, found, is_newer, title_and_kind, update};
use crate::sidecar::{
    self, BOUNDARY, Collation, Draft, Json, Object, Request, SidecarError, Step,
    WorkflowResumed as Resumed,
};

impl Writer<'_> {
    pub(super) fn reviewed(
        &self,
        review: &Review,
        session: &SessionRef,
    ) -> Result<(), SidecarError> {
        let task = review.task_id.as_str();
        let asked_by = review.session.id.as_str();
        let path = self.paths.review(Some(task), Some(asked_by));
        match &review.state {
            ReviewState::Pending => {
                let order = Collation::new().map_err(SidecarError::Conflict)?;
                let now = review.created_at.to_string();
                let boundary_revision = found(&self.paths.manifest(task))
                    .ok()
                    .flatten()
                    .and_then(|manifest| manifest.get("boundaryRevision").and_then(Json::whole));
                update(&path, |object| {
                    let known = object.is_some_and(|object| is_newer(object, review.created_at));
                    if known {
                        return Ok(None);
                    }
                    let draft = Draft {
                        task: Some(task),
                        session: Some(asked_by),
                        reason: &review.reason_code,
                        title: &review.title,
                        explanation: &review.explanation,
                        required_action: &review.required_action,
                        resume_condition: &review.resume_condition,
                        commands: &review.suggested_commands,
                        files: &review.affected_files,
                        current: &review.current_boundary,
                        requested: Some(&review.requested_boundary),
                        boundary_revision,
                        at: &now,
                    };
                    Ok(draft.over(object, &order).map(|object| {
                        object.with(
                            sidecar::OWN_KEY,
                            Object::default().with("reviewId", review.review_id.as_str()),
                        )
                    }))
                })?;
                self.wait_for_person(task, asked_by, &review.created_at.to_string())
            }
            ReviewState::Decided { decision } | ReviewState::Applied { decision, .. } => {
                let id = found(&path)?
                    .and_then(|object| Request::check(&object).ok())
                    .map(|request| request.id);
                match id {
                    Some(id) => self.decided(
                        &review.task_id,
                        Some(&id),
                        decision.approved,
                        session,
                        decision.at,
                    ),
                    // It was never shown to the plugin.
                    None => Ok(()),
                }
            }
        }
    }

    fn wait_for_person(&self, task: &str, session: &str, now: &str) -> Result<(), SidecarError> {
        let Some(known) = self.identity(task, session)? else {
            return Ok(());
        };
        if known.status.is_closed() || known.status == Status::HumanReview {
            return Ok(());
        }
        let digest = self.digest();
        self.write_identity(
            task,
            session,
            &known.base,
            &digest,
            Status::HumanReview,
            now,
        )?;
        self.step(
            session,
            &Step {
                phase: "blocked",
                event: &format!("takeup:blocked:{digest}"),
                ..Step::default()
            },
            &digest,
            now,
        )
    }

    /// Applies a person's decision on a question that stands in the plugin's records.
    pub(super) fn decided(
        &self,
        task_id: &TaskId,
        id: Option<&str>,
        approved: bool,
        session: &SessionRef,
        at: Time,
    ) -> Result<(), SidecarError> {
        let (task, caller) = (task_id.as_str(), session.id.as_str());
        let now = at.to_string();
        let (listing, _) = sidecar::identities(&self.paths);
        let requests = sidecar::reviews(&self.paths, &listing).items;
        let exact = self.paths.review(Some(task), Some(caller));
        let Some((path, request)) =
            sidecar::find_request(&requests, &exact, task, Some(caller), id)
        else {
            return Err(SidecarError::Conflict(format!(
                "task {task:?} has no such question in OpenCode++'s records"
            )));
        };
        let asked_by = request.session.clone().unwrap_or_else(|| caller.to_owned());
        if approved {
            self.approve(task, request, path, &asked_by, caller, &now)
        } else {
            self.reject(task, request, path, &asked_by, caller, &now)
        }
    }

    fn approve(
        &self,
        task: &str,
        request: &Request,
        path: &Path,
        asked_by: &str,
        caller: &str,
        now: &str,
    ) -> Result<(), SidecarError> {
        let conflict = |what: String| Err(SidecarError::Conflict(what));
        if request.reason != BOUNDARY {
            return conflict(format!(
                "OpenCode++ lets a person approve only {BOUNDARY}; this question is {}",
                sidecar::printable(&request.reason)
            ));
        }
        let done = match request.status.as_str() {
            "pending" | "approved" => false,
            "resumed" => true,
            other => {
                return conflict(format!(
                    "the question was already answered: {}",
                    sidecar::printable(other)
                ));
            }
        };
        let order = Collation::new().map_err(SidecarError::Conflict)?;
        let manifest_path = self.paths.manifest(task);
        let Some(manifest) =
            found(&manifest_path)?.filter(|manifest| sidecar::is_complete(manifest, task))
        else {
            return conflict(format!(
                "{} is missing or incomplete",
                manifest_path.display()
            ));
        };
        let of = |object: &Object, key: &str| object.texts(key).unwrap_or_default();
        let mut wanted = of(&request.object, "requestedBoundary");
        wanted.extend(of(&request.object, "affectedFiles"));
        let avoided = of(&manifest, "avoidEditGlobs");
        if let Some((glob, protected)) = wanted.iter().find_map(|wanted| {
            avoided
                .iter()
                .find(|glob| sidecar::glob_matches(glob, wanted))
                .map(|glob| (glob, wanted))
        }) {
            return conflict(format!(
                "{protected:?} is protected by {glob:?} and is never allowed"
            ));
        }
        let other_session = asked_by != caller;
        if other_session {
            self.refuse_other_task(task, caller)?;
        }
        let revision_of = |object: &Object| object.get("boundaryRevision").and_then(Json::whole);
        let asked_revision = revision_of(&request.object);
        let old_revision = revision_of(&manifest)
            .or(asked_revision)
            .unwrap_or(1)
            .max(asked_revision.unwrap_or(1));
        let mut allowed = of(&manifest, "allowedEditGlobs");
        allowed.extend(wanted);
        let allowed = order.normalise(&allowed);
        let already = done
            || manifest.texts("allowedEditGlobs").as_ref() == Some(&allowed)
                && revision_of(&manifest) > asked_revision;
        let revision = if already {
            revision_of(&manifest).unwrap_or(old_revision)
        } else {
            old_revision + 1
        };
        let digest = self.digest();
        let source = self.identity(task, asked_by)?;
        if other_session {
            if source.is_some() {
                self.release(task, asked_by, caller, None, now)?;
            }
            let left = found(&self.paths.workflow(asked_by))?;
            let base = source
                .as_ref()
                .map_or(digest.as_str(), |source| source.base.as_str());
            update(&self.paths.workflow(caller), |workflow| {
                Ok(Resumed {
                    target: caller,
                    source: asked_by,
                    task,
                    root: &self.root,
                    base,
                    fingerprint: &digest,
                    left: left.as_ref(),
                    manifest: Some(&manifest),
                    candidates: candidates_of(
                        source.as_ref(),
                        "human-review",
                        "resume-verification",
                        &digest,
                    ),
                    at: now,
                }
                .over(workflow))
            })?;
            let source_session = found(&self.paths.session(Some(asked_by)))?;
            let (title, kind) = title_and_kind(source_session.as_ref(), Some(&manifest), task);
            self.hold(task, &title, &kind, caller, now)?;
        }
        if !already {
            update(&manifest_path, |object| {
                Ok(object.map(|object| {
                    object
                        .clone()
                        .with("allowedEditGlobs", allowed.as_slice())
                        .with("boundaryRevision", revision)
                }))
            })?;
        }
        self.step(
            caller,
            &Step {
                phase: "editing",
                task: Some(task),
                boundary: Some((&allowed, &avoided)),
                boundary_revision: Some(revision),
                event: &format!("human-review-approved:{}:{revision}", request.id),
                ..Step::default()
            },
            &digest,
            now,
        )?;
        answer(path, &request.id, "resumed", Some(revision), now)?;
        let mine = self.identity(task, caller)?;
        let at = now.parse().unwrap_or_else(|_| Time::from_millis(0));
        let newer = mine
            .as_ref()
            .is_some_and(|mine| mine.status != Status::HumanReview && is_newer(&mine.object, at));
        if !newer {
            let base = source
                .as_ref()
                .map_or(digest.as_str(), |source| source.base.as_str());
            self.write_identity(task, caller, base, &digest, Status::Dirty, now)?;
        }
        self.evaluated(
            task,
            caller,
            &Evaluation {
                decision: "ready-for-review",
                blocking: false,
                next: "evaluate",
                finding: "A person approved the wider boundary; the evidence has to be collected anew.",
                allowed: &allowed,
                avoided: &avoided,
                revision: Some(revision),
            },
            &digest,
            now,
        )
    }

    fn reject(
        &self,
        task: &str,
        request: &Request,
        path: &Path,
        asked_by: &str,
        caller: &str,
        now: &str,
    ) -> Result<(), SidecarError> {
        if !matches!(request.status.as_str(), "pending" | "approved" | "rejected") {
            return Err(SidecarError::Conflict(format!(
                "the question was already answered: {}",
                sidecar::printable(&request.status)
            )));
        }
        let digest = self.digest();
        answer(path, &request.id, "rejected", None, now)?;
        let mut sessions = vec![asked_by];
        if caller != asked_by {
            sessions.push(caller);
        }
        for session in sessions {
            if let Some(known) = self.identity(task, session)?
                && !known.status.is_closed()
            {
                update(&self.paths.identity(task, session), |object| {
                    Ok(object.map(|object| {
                        object
                            .clone()
                            .with("status", Status::Abandoned.code())
                            .with("updatedAt", now)
                            .with("revision", object.revision().unwrap_or(0) + 1)
                    }))
                })?;
            }
        }
        let manifest = found(&self.paths.manifest(task))?;
        let of = |key: &str| {
            manifest
                .as_ref()
                .and_then(|manifest| manifest.texts(key))
                .unwrap_or_default()
        };
        let (allowed, avoided) = (of("allowedEditGlobs"), of("avoidEditGlobs"));
        self.evaluated(
            task,
            caller,
            &Evaluation {
                decision: "human-review",
                blocking: true,
                next: "human-review",
                finding: "A person rejected the request; the task was given up.",
                allowed: &allowed,
                avoided: &avoided,
                revision: request.object.get("boundaryRevision").and_then(Json::whole),
            },
            &digest,
            now,
        )
    }

    /// Writes the record of an evaluation.
    fn evaluated(
        &self,
        task: &str,
        session: &str,
        evaluation: &Evaluation<'_>,
        digest: &str,
        now: &str,
    ) -> Result<(), SidecarError> {
        update(&self.paths.evaluate(Some(session)), |object| {
            if object.is_some_and(|object| {
                object.text("updatedAt") == Some(now)
                    && object.text("decision") == Some(evaluation.decision)
            }) {
                return Ok(None);
            }
            let empty = || Json::List(Vec::new());
            let mut next = Object::default()
                .with("schemaVersion", "opencode-plusplus.desktop-harness.v1")
                .with("taskId", task)
                .with("sessionId", session)
                .with("taskIdSource", "argument")
                .with("workingTreeHash", digest)
                .with("currentPhase", "human-review")
                .with("decision", evaluation.decision)
                .with("blocking", evaluation.blocking)
                .with("findings", [evaluation.finding.to_owned()].as_slice())
                .with("missingEvidence", empty())
                .with("requiredCommands", empty())
                .with("mustInspect", empty())
                .with("allowedEditGlobs", evaluation.allowed)
                .with("avoidEditGlobs", evaluation.avoided);
            next.set_some("boundaryRevision", evaluation.revision);
            Ok(Some(
                next.with("artifacts", empty())
                    .with("nextAction", evaluation.next)
                    .with("summary", evaluation.finding)
                    .with("updatedAt", now)
                    .with(
                        "revision",
                        object.and_then(Object::revision).unwrap_or(0) + 1,
                    ),
            ))
        })?;
        Ok(())
    }
}

/// Notes the decision in the question itself.
fn answer(
    path: &Path,
    id: &str,
    status: &str,
    boundary_revision: Option<u64>,
    now: &str,
) -> Result<(), SidecarError> {
    update(path, |object| {
        let Some(object) = object.filter(|object| object.text("requestId") == Some(id)) else {
            return Err(SidecarError::Conflict(
                "the question was replaced by another one in between".to_owned(),
            ));
        };
        if object.text("status") == Some(status) {
            return Ok(None);
        }
        let mut next = object
            .clone()
            .with("revision", object.revision().unwrap_or(0) + 1)
            .with("status", status);
        next.set_some("boundaryRevision", boundary_revision);
        next.set("updatedAt", now);
        Ok(Some(next))
    })?;
    Ok(())
}

struct Evaluation<'a> {
    decision: &'a str,
    blocking: bool,
    next: &'a str,
    finding: &'a str,
    allowed: &'a [String],
    avoided: &'a [String],
    revision: Option<u64>,
}
