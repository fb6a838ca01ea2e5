//! Questions to a person: asked, answered, applied.
use std::path::Path;

use takeup_core::ids::{SessionRef, TaskId};
use takeup_core::review::{Review, ReviewState};
use takeup_core::status::Status;
use takeup_core::time::Time;

use super::{Writer, candidates_of, found, is_newer, title_and_kind, update};
use crate::sidecar::{
    self, BOUNDARY, Collation, Draft, Identity, Json, Object, Request, SidecarError, Step,
    WorkflowResumed as Resumed,
};

impl Writer<'_> {
    /// Shows a question of the ledger, and what came of it. `holder` has the task now, in `status`.
    pub(super) fn reviewed(
        &self,
        review: &Review,
        holder: &SessionRef,
        status: Status,
    ) -> Result<(), SidecarError> {
        let task = review.task_id.as_str();
        let asked_by = review.session.id.as_str();
        let path = self.paths.review(Some(task), Some(asked_by));
        let is_this = |request: &Request| request.has_id(review.review_id.as_str());
        match &review.state {
            ReviewState::Pending => {
                let order = Collation::new().map_err(SidecarError::Conflict)?;
                let now = review.created_at.to_string();
                let boundary_revision = found(&self.paths.manifest(task))
                    .ok()
                    .flatten()
                    .and_then(|manifest| manifest.get("boundaryRevision").and_then(Json::whole));
                update(&path, |object| {
                    let there = object.and_then(|object| Request::check(object).ok());
                    let stays = there.is_some_and(|there| {
                        // What the plugin asked since takes its place, as with the plugin's own questions.
                        let newer = there.is_pending()
                            && !there.is_of_ledger()
                            && is_newer(&there.object, review.created_at);
                        newer || is_this(&there)
                    });
                    if stays {
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
                if status == Status::HumanReview {
                    self.wait_for_person(task, asked_by, &review.created_at.to_string())?;
                }
                Ok(())
            }
            // Nothing came of it yet.
            ReviewState::Decided { .. } => Ok(()),
            ReviewState::Applied { decision, .. } => {
                let shown = found(&path)?.and_then(|object| Request::check(&object).ok());
                let Some(request) = shown.filter(|request| is_this(request) && request.is_open())
                else {
                    return Ok(());
                };
                let answer = Answer {
                    task,
                    request: &request,
                    path: &path,
                    asked_by,
                    holder: holder.id.as_str(),
                    status,
                    now: &decision.at.to_string(),
                };
                if decision.approved {
                    self.approve(&answer)
                } else {
                    self.reject(&answer)
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

    /// Applies a person's decision on a question that only the plugin's records hold.
    pub(super) fn decided(
        &self,
        task_id: &TaskId,
        id: &str,
        approved: bool,
        session: &SessionRef,
        at: Time,
    ) -> Result<(), SidecarError> {
        let (task, caller) = (task_id.as_str(), session.id.as_str());
        let (listing, identities) = sidecar::identities(&self.paths);
        let requests = sidecar::reviews(&self.paths, &listing).items;
        let exact = self.paths.review(Some(task), Some(caller));
        let Some((path, request)) =
            sidecar::find_request(&requests, &exact, task, Some(caller), Some(id))
        else {
            return Err(SidecarError::Conflict(format!(
                "task {task:?} has no such question in OpenCode++'s records"
            )));
        };
        let waits = || {
            let mut identities = identities.items.iter().map(|found| &found.identity);
            identities
                .find(|identity| identity.task == task && identity.status == Status::HumanReview)
        };
        let asked_by = match &request.session {
            Some(session) => session.as_str(),
            None => waits().map_or(caller, |identity| identity.session.as_str()),
        };
        let answer = Answer {
            task,
            request,
            path,
            asked_by,
            // Who decides at a terminal is no session that could hold a task: it stays where it is.
            holder: if session.is_nobody_special() {
                asked_by
            } else {
                caller
            },
            status: if approved {
                Status::Dirty
            } else {
                Status::Abandoned
            },
            now: &at.to_string(),
        };
        if approved {
            self.approve(&answer)
        } else {
            self.reject(&answer)
        }
    }

    fn approve(&self, answer: &Answer<'_>) -> Result<(), SidecarError> {
        let &Answer {
            task,
            request,
            path,
            asked_by,
            holder,
            status,
            now,
        } = answer;
        let conflict = |what: String| Err(SidecarError::Conflict(what));
        let of_ledger = self.shows_ledger;
        if !of_ledger && request.reason != BOUNDARY {
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
            if of_ledger {
                // It is made anew, with the boundary of now, when the task is shown.
                return note_answer(path, &request.id, "resumed", None, now);
            }
            return conflict(format!(
                "{} is missing or incomplete",
                manifest_path.display()
            ));
        };
        let of = |object: &Object, key: &str| object.texts(key).unwrap_or_default();
        let mut wanted = of(&request.object, "requestedBoundary");
        let avoided = of(&manifest, "avoidEditGlobs");
        let protects = |wanted: &String| {
            let mut globs = avoided.iter();
            globs.find(|glob| sidecar::glob_matches(glob, wanted))
        };
        if of_ledger {
            // The ledger grants what was asked for, without what must be avoided; where everything is allowed, nothing.
            let bounded = !of(&manifest, "allowedEditGlobs").is_empty();
            wanted.retain(|wanted| bounded && protects(wanted).is_none());
        } else {
            wanted.extend(of(&request.object, "affectedFiles"));
        }
        let protected = wanted
            .iter()
            .find_map(|wanted| Some((protects(wanted)?, wanted)));
        if let Some((glob, protected)) = protected {
            return conflict(format!(
                "{protected:?} is protected by {glob:?} and is never allowed"
            ));
        }
        let source = self.identity(task, asked_by)?;
        let gone = |source: &Identity| source.status.is_closed();
        // What the ledger moved before was shown as a take-up.
        let other_session = asked_by != holder && !(of_ledger && source.as_ref().is_none_or(gone));
        if other_session {
            self.refuse_other_task(task, holder)?;
        }
        let revision_of = |object: &Object| object.get("boundaryRevision").and_then(Json::whole);
        let asked_revision = revision_of(&request.object);
        let old_revision = revision_of(&manifest)
            .or(asked_revision)
            .unwrap_or(1)
            .max(asked_revision.unwrap_or(1));
        let mut allowed = of(&manifest, "allowedEditGlobs");
        allowed.extend(wanted.iter().cloned());
        let allowed = order.normalise(&allowed);
        let already = done
            || of_ledger && wanted.is_empty()
            || manifest.texts("allowedEditGlobs").as_ref() == Some(&allowed)
                && revision_of(&manifest) > asked_revision;
        let revision = if already {
            revision_of(&manifest).unwrap_or(old_revision)
        } else {
            old_revision + 1
        };
        let digest = self.digest();
        if other_session {
            if source.is_some() {
                self.release(task, asked_by, holder, None, now)?;
            }
            let left = found(&self.paths.workflow(asked_by))?;
            let base = source
                .as_ref()
                .map_or(digest.as_str(), |source| source.base.as_str());
            update(&self.paths.workflow(holder), |workflow| {
                Ok(Resumed {
                    target: holder,
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
            self.hold(task, &title, &kind, holder, now)?;
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
        if status != Status::Dirty {
            // Another question waits, or more has come of it since: the task is shown as it is.
            return note_answer(path, &request.id, "resumed", Some(revision), now);
        }
        self.step(
            holder,
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
        note_answer(path, &request.id, "resumed", Some(revision), now)?;
        let mine = self.identity(task, holder)?;
        let at = now.parse().unwrap_or_else(|_| Time::from_millis(0));
        let newer = mine
            .as_ref()
            .is_some_and(|mine| mine.status != Status::HumanReview && is_newer(&mine.object, at));
        if !newer {
            let base = source
                .as_ref()
                .map_or(digest.as_str(), |source| source.base.as_str());
            self.write_identity(task, holder, base, &digest, status, now)?;
        }
        self.evaluated(
            task,
            holder,
            &Evaluation {
                decision: "ready-for-review",
                blocking: false,
                next: "evaluate",
                finding: if wanted.is_empty() {
                    "A person approved; the evidence has to be collected anew."
                } else {
                    "A person approved the wider boundary; the evidence has to be collected anew."
                },
                allowed: &allowed,
                avoided: &avoided,
                revision: Some(revision),
            },
            &digest,
            now,
        )
    }

    fn reject(&self, answer: &Answer<'_>) -> Result<(), SidecarError> {
        let &Answer {
            task,
            request,
            path,
            asked_by,
            holder,
            now,
            ..
        } = answer;
        if !matches!(request.status.as_str(), "pending" | "approved" | "rejected") {
            return Err(SidecarError::Conflict(format!(
                "the question was already answered: {}",
                sidecar::printable(&request.status)
            )));
        }
        let digest = self.digest();
        note_answer(path, &request.id, "rejected", None, now)?;
        let mut sessions = vec![holder];
        if holder != asked_by && !self.shows_ledger {
            sessions.push(asked_by);
        }
        for session in sessions {
            if let Some(known) = self.identity(task, session)?
                && !known.status.is_closed()
            {
                update(&self.paths.identity(task, session), |object| {
                    Ok(object.map(|object| {
                        let mut next = object
                            .clone()
                            .with("status", Status::Abandoned.code())
                            .with("updatedAt", now)
                            .with("revision", object.revision().unwrap_or(0) + 1);
                        if self.shows_ledger {
                            sidecar::note_write(&mut next, None, true);
                        }
                        next
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
            holder,
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

/// A decision on a question, to be shown.
struct Answer<'a> {
    task: &'a str,
    request: &'a Request,
    path: &'a Path,
    asked_by: &'a str,
    /// The session that has the task after it.
    holder: &'a str,
    /// Its status there.
    status: Status,
    now: &'a str,
}

/// Notes the decision in the question itself.
fn note_answer(
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
